"""Steps: what would be done in each state of the target, and which line it hangs on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from handmade import QWEN_ON_4090, choices, deploy_of, edited, facts, prediction

from deployc.emit import compile_bundle
from deployc.plan.steps import changes, steps, switch
from deployc.spec.deploy import Deploy
from deployc.types.bundle import Bundle
from deployc.types.choices import Choice
from deployc.types.plan import Observed, Step

UNSEEN = Observed(None, None, complete=False)
NOTHING = Observed(None, "2030-01-01T00:00:00Z", complete=True, artifact=False)


def made(text: str = QWEN_ON_4090, **given: Any) -> tuple[Deploy, Bundle]:
    deploy = deploy_of(text)
    bundle, report = compile_bundle(deploy, given.get("facts", facts()), given.get("choices", choices()), prediction())
    assert bundle is not None, report.diagnostics
    return deploy, bundle


def running(bundle: Bundle, **changed: Any) -> Observed:
    """The bundle as its apply would have kept it."""
    launch = bundle.launches[0]
    seen = Observed(
        bundle.digest,
        "2030-01-01T00:00:00Z",
        complete=True,
        healthy=True,
        artifact=True,
        flags={flag.name: flag.value or "" for flag in launch.flags},
        env=dict(launch.env),
        paths=dict(launch.paths),
        engine="0.32.0",
    )
    return replace(seen, **changed)


def lines(taken: tuple[Step, ...]) -> list[str]:
    return [
        f"{step.id}: {step.action} {step.target} | {step.cause} | {step.at} | {','.join(step.needs)}" for step in taken
    ]


def test_a_first_apply() -> None:
    deploy, bundle = made()
    assert bundle.recipe is not None
    key = bundle.recipe.key[:12]
    assert lines(steps(deploy, bundle, NOTHING, "0.32.0")) == [
        f"build: build artifact {key} | merge domain-qa into Qwen/Qwen2.5-7B-Instruct; not in the store"
        " | deploy.yaml:6:3 | ",
        "engine: create process domain-qa | first apply: nothing runs | deploy.yaml:21:3 | build",
        "verify: verify http://127.0.0.1:8000 | /health answers, /v1/models lists domain-qa, one completion is made"
        " | None | engine",
    ]


def test_the_artifact_is_built_only_where_it_is_missing() -> None:
    deploy, bundle = made()
    there = steps(deploy, bundle, replace(NOTHING, artifact=True), "0.32.0")
    assert [step.action for step in there] == ["create", "verify"]
    assert there[0].needs == ()
    as_is = made(choices=choices(adapter_mode=Choice("none", "default", "")))
    assert [step.action for step in steps(*as_is, NOTHING, "0.32.0")] == ["create", "verify"]


def test_what_was_not_looked_at_is_unknown() -> None:
    deploy, bundle = made()
    taken = steps(deploy, bundle, UNSEEN, "0.32.0")
    assert [step.action for step in taken] == ["build", "create", "verify"]
    assert all("unknown: the target was not looked at" in step.cause for step in taken[:2])


def test_what_runs_as_written_is_kept() -> None:
    deploy, bundle = made()
    assert lines(steps(deploy, bundle, running(bundle), "0.32.0")) == [
        "engine: keep process domain-qa | it runs as written | None | "
    ]
    (kept,) = steps(deploy, bundle, running(bundle, artifact=False), "0.32.0")
    assert kept.action == "keep"
    assert "not in the store any more" in kept.cause


def test_what_runs_but_does_not_serve_is_replaced() -> None:
    deploy, bundle = made()
    taken = steps(deploy, bundle, running(bundle, healthy=False, detail="/health gives 503"), "0.32.0")
    assert [step.action for step in taken] == ["replace", "verify"]
    assert taken[0].cause == "it runs but does not serve: /health gives 503"


def after(text: str, **given: Any) -> list[tuple[str, str | None]]:
    """What `changes` says of going from the usual deployment to another."""
    before, now = made()[1], made(text, **given)[1]
    version = given["facts"].engine.version if "facts" in given else "0.32.0"
    return changes(now, running(before), version)


@pytest.mark.parametrize(
    ("text", "given", "expected"),
    [
        (
            edited(QWEN_ON_4090, {"  version: 0.32.0\n": "  version: 0.32.0\n  args: {max-num-seqs: 64}\n"}),
            {},
            [("--max-num-seqs 32 -> 64", "deploy.yaml:20")],
        ),
        (
            edited(QWEN_ON_4090, {"  version: 0.32.0\n": "  version: 0.32.0\n  args: {seed: 1, headless: true}\n"}),
            {},
            [("--seed 1 added", "deploy.yaml:20"), ("--headless added", "deploy.yaml:20")],
        ),
        (
            edited(QWEN_ON_4090, {"  version: 0.32.0\n": "  version: 0.32.0\n  args: {max-num-seqs: null}\n"}),
            {},
            [("--max-num-seqs removed", None)],
        ),
        (
            QWEN_ON_4090,
            {"choices": choices(enable_prefix_caching=Choice(False, "DC444", ""))},
            [("--enable-prefix-caching on -> false", None)],
        ),
        (
            edited(QWEN_ON_4090, {"  version: 0.32.0\n": "  version: 0.32.0\n  env: {A: b}\n"}),
            {},
            [("variable A b added", None)],
        ),
    ],
)
def test_a_change_is_named_with_its_line(
    text: str, given: dict[str, Any], expected: list[tuple[str, str | None]]
) -> None:
    assert after(text, **given) == expected


def test_another_artifact_and_another_engine_are_named() -> None:
    found = after(QWEN_ON_4090, choices=choices(weights=Choice("int8", "default", "")))
    assert len(found) == 1
    assert found[0][0].startswith("model store:")
    _, bundle = made()
    assert changes(bundle, running(bundle, engine="0.31.0"), "0.32.0") == [("engine 0.31.0 -> 0.32.0", None)]


def test_a_replacement_says_what_changed_and_where() -> None:
    before = made()[1]
    text = edited(QWEN_ON_4090, {"  version: 0.32.0\n": "  version: 0.32.0\n  args: {max-num-seqs: 64}\n"})
    deploy, bundle = made(text)
    taken = steps(deploy, bundle, running(before), "0.32.0")
    assert (taken[0].action, taken[0].cause, taken[0].at) == ("replace", "--max-num-seqs 32 -> 64", "deploy.yaml:20")
    blind = Observed(before.digest, "2030-01-01T00:00:00Z", complete=True, healthy=True, artifact=True)
    assert steps(deploy, bundle, blind, "0.32.0")[0].cause.startswith("the bundle changed: sha256:")


def test_a_step_a_replica() -> None:
    text = edited(QWEN_ON_4090, {"  gpu: rtx-4090\n": "  gpu: rtx-4090\n  count: 2\n"})
    deploy, bundle = made(text, choices=choices(replicas=Choice(2, "search", "")), facts=facts(cards=2))
    taken = steps(deploy, bundle, NOTHING, "0.32.0")
    assert [step.id for step in taken] == ["build", "engine-0", "engine-1", "verify"]
    assert [step.target for step in taken[1:3]] == ["process domain-qa-0", "process domain-qa-1"]
    assert taken[3].needs == ("engine-0", "engine-1")


@pytest.mark.parametrize(
    ("observed", "strategy", "gap", "worst"),
    [
        (UNSEEN, "unknown", None, 120.0),
        (NOTHING, "first", 0.0, 0.0),
        ("running", "none", 0.0, 0.0),
        ("other", "stop-first", 60.0, 120.0),
    ],
)
def test_the_gap(observed: Any, strategy: str, gap: float | None, worst: float) -> None:
    deploy, bundle = made()
    if observed == "running":
        observed = running(bundle)
    elif observed == "other":
        observed = running(bundle, digest="sha256:" + "0" * 64)
    over = switch(steps(deploy, bundle, observed, "0.32.0"), observed, prediction(), drain=30)
    assert (over.strategy, over.gap_seconds, over.worst_case) == (strategy, gap, worst)
