"""The bundle: what stops it, its recipe's key, its digest, and that its files hold under the formats' own tools."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from configured import card, facts_of, yaml_of
from handmade import QWEN_ON_4090, choices, deploy_of, edited, engine_facts, facts, prediction
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from deployc.diagnostics import Report
from deployc.emit import compile_bundle
from deployc.emit.launch import devices
from deployc.spec.deploy import bind
from deployc.types.bundle import Bundle
from deployc.types.choices import Choice

SERVE = choices(adapter_mode=Choice("serve", "default", "served"))
SERVED_AS_QA = edited(QWEN_ON_4090, {"name: domain-qa\n    source": "name: qa\n    source"})
TWO = choices(replicas=Choice(2, "search", "faster"))


def outcome(text: str = QWEN_ON_4090, **values: Any) -> tuple[Bundle | None, Report]:
    return compile_bundle(
        deploy_of(text),
        values.get("facts", facts()),
        values.get("choices", choices()),
        values.get("prediction", prediction()),
    )


def compiled(text: str = QWEN_ON_4090, **values: Any) -> Bundle:
    bundle, report = outcome(text, **values)
    assert bundle is not None, report.diagnostics
    return bundle


def engine_section(extra: str) -> str:
    return edited(QWEN_ON_4090, {"  version: 0.32.0\n": f"  version: 0.32.0\n{extra}"})


def of_a_unit(state: str) -> str:
    return edited(QWEN_ON_4090, {"kind: process": "kind: systemd"}) + f"  state: {state}\n"


@pytest.mark.parametrize(
    ("text", "given", "code", "line"),
    [
        (engine_section("  args: {port: 9000}\n"), {}, "DC612", 20),
        (engine_section("  args: {--api_key: x}\n"), {}, "DC612", 20),
        (engine_section("  args: {config: ./flags.yaml}\n"), {}, "DC612", 20),
        (engine_section("  env: {CUDA_VISIBLE_DEVICES: '1'}\n"), {}, "DC612", 20),
        (engine_section("  env: {'A B': x}\n"), {}, "DC614", 20),
        (engine_section('  env: {A: "x\\ny"}\n'), {}, "DC614", 20),
        (engine_section('  args: {seed: "\\e[0m"}\n'), {}, "DC614", 20),
        (engine_section("  args: {seed: '${DEPLOYC_MODEL}'}\n"), {}, "DC614", 20),
        (engine_section("  image: 'a b'\n"), {}, "DC614", 20),
        (of_a_unit("/tmp/a b"), {}, "DC614", 23),
        (of_a_unit("./state"), {}, "DC614", 23),
        (of_a_unit("/srv/../etc"), {}, "DC614", 23),
        (of_a_unit("/" + 300 * "a"), {}, "DC614", 23),
        (engine_section("  args: {seed: '--trust-remote-code'}\n"), {}, "DC614", 20),
        (engine_section("  args: {middleware: [a.b, '-x']}\n"), {}, "DC614", 20),
        (engine_section('  args: {seed: "a\\uFFFFb"}\n'), {}, "DC614", 20),
        (engine_section(f"  args: {{seed: {70_000 * 'a'}}}\n"), {}, "DC614", 20),
        (engine_section(f"  env: {{A: {70_000 * 'a'}}}\n"), {}, "DC614", 20),
        (
            edited(QWEN_ON_4090, {"name: domain-qa\n    source": "name: a=b\n    source"}),
            {"choices": SERVE},
            "DC614",
            6,
        ),
        (SERVED_AS_QA.replace("./adapters/domain-qa", "./a,b=c"), {"choices": SERVE}, "DC614", 7),
        (edited(QWEN_ON_4090, {"DEPLOYC_API_KEY": "NO-NAME"}), {}, "DC614", 22),
        (QWEN_ON_4090, {"choices": SERVE}, "DC613", 6),
        (QWEN_ON_4090, {"choices": TWO}, "DC616", 18),
    ],
)
def test_what_cannot_be_shipped_is_said_at_its_line(text: str, given: dict[str, Any], code: str, line: int) -> None:
    bundle, report = outcome(text, **given)
    assert bundle is None
    assert [(d.code, d.at.line if d.at else None) for d in report.errors] == [(code, line)]
    assert report.errors[0].detail
    assert report.errors[0].fix


def test_all_findings_come_at_once() -> None:
    _, report = outcome(engine_section("  args: {port: 1, host: x}\n  env: {'A B': x}\n"))
    assert sorted(d.code for d in report.errors) == ["DC612", "DC612", "DC614"]


def test_replicas_are_shipped_with_a_warning() -> None:
    text = edited(QWEN_ON_4090, {"  gpu: rtx-4090\n": "  gpu: rtx-4090\n  count: 2\n"})
    bundle, report = outcome(text, choices=TWO, facts=facts(cards=2))
    assert bundle is not None
    assert [d.code for d in report] == ["DC610"]
    assert "ports 8000 to 8001" in report.diagnostics[0].detail


def test_an_adapter_from_a_hub_cannot_be_pinned() -> None:
    text = edited(QWEN_ON_4090, {"name: domain-qa\nmodel": "name: qa\nmodel"})
    bundle, report = outcome(text, choices=SERVE, facts=facts(adapter_revision="abc"))
    assert bundle is not None
    assert [d.code for d in report] == ["DC611"]
    assert "HF_HUB_OFFLINE" not in bundle.launches[0].env


def test_the_key_of_the_artifact_follows_what_it_is_made_of() -> None:
    keys = {
        "as is": compiled(),
        "other weight": compiled(edited(QWEN_ON_4090, {"-qa\nhardware": "-qa\n    weight: 0.5\nhardware"})),
        "int8": compiled(choices=choices(weights=Choice("int8", "default", ""))),
        "float16": compiled(choices=choices(dtype=Choice("float16", "default", ""))),
        "other model": compiled(facts=facts(source="Qwen/Other")),
    }
    made = [bundle.recipe.key for bundle in keys.values() if bundle.recipe]
    assert len(set(made)) == len(keys)
    assert all(len(key) == 64 for key in made)
    same = compiled(engine_section("  args: {seed: 1}\n")).recipe
    assert same is not None
    assert same.key == made[0]


def test_no_recipe_where_nothing_is_made() -> None:
    assert compiled(choices=choices(adapter_mode=Choice("none", "default", ""))).recipe is None


def test_the_digest_is_the_same_twice_and_changes_with_anything_shipped() -> None:
    digests = [
        compiled().digest,
        compiled(engine_section("  args: {seed: 1}\n")).digest,
        compiled(engine_section("  env: {A: b}\n")).digest,
        compiled(engine_section("  image: my/vllm:1\n")).digest,
        compiled(QWEN_ON_4090 + "  port: 8001\n").digest,
        compiled(QWEN_ON_4090 + "  image_mode: bake\n").digest,
        compiled(facts=facts(engine=engine_facts("0.33.0"))).digest,
        compiled(choices=choices(dtype=Choice("float16", "default", ""))).digest,
        compiled(
            prediction=replace(prediction(), startup_seconds=replace(prediction().startup_seconds, high=900.0))
        ).digest,
    ]
    assert len(set(digests)) == len(digests)
    assert compiled().digest == digests[0]
    assert digests[0].startswith("sha256:")
    assert len(digests[0]) == 71


def test_no_template_engine_for_a_digest() -> None:
    program = (
        "import sys; sys.path[:0] = ['tests']; import handmade as h; from deployc.emit import compile_bundle;"
        "b, _ = compile_bundle(h.deploy_of(h.QWEN_ON_4090), h.facts(), h.choices(), h.prediction());"
        "assert b.digest; print('jinja2' in sys.modules, end=' '); b.files['Dockerfile'];"
        "print('jinja2' in sys.modules)"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout == "False True\n"


ANYTHING = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@settings(max_examples=60, deadline=None)
@example("\x1f", "²", "", "", "")
@given(ANYTHING, ANYTHING, ANYTHING, ANYTHING, ANYTHING)
def test_any_text_is_shipped_whole_or_refused_with_a_reason(
    value: str, nested: str, model: str, secret: str, image: str
) -> None:
    """No text of the user's makes rendering fail: what a format cannot hold was refused before."""
    values = yaml_map(QWEN_ON_4090)
    values["model"]["source"] = model
    values["engine"] |= {"env": {"A": value}, "args": {"seed": nested, "x": {nested: [value]}}, "image": image or None}
    values["target"]["api_key"] = {"file": secret}
    bundle, report = compile_bundle(bind(values, {}), facts(source=model), choices(), prediction())
    if bundle is None:
        assert {d.code for d in report.errors} == {"DC614"}
        return
    assert "manifest.json" in list(bundle.files)
    assert nested in bundle.launches[0].argv
    assert all(not re.search("[\x00-\x08\x0b-\x1f]", text) for text in bundle.files.values())


def yaml_map(text: str) -> dict[str, Any]:
    values: dict[str, Any] = YAML(typ="safe", pure=True).load(text)
    return values


def test_no_secret_value_and_no_path_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOYC_API_KEY", "sk-very-secret")
    text = "\n".join(compiled().files.values())
    assert "sk-very-secret" not in text
    assert str(Path.cwd()) not in text
    assert str(Path.home()) + "/" not in text


def test_a_list_of_cards_counts_itself() -> None:
    """`hardware.count` may be left out beside a list; two cards are two, whatever the count's default."""
    facts = facts_of(cards=(card(), card("rtx-3090")))
    deploy = deploy_of(
        yaml_of(hardware="{gpu: [rtx-4090, rtx-3090]}", engine="{version: 0.32.0, parallel: {tensor: 2}}")
    )
    assert devices(deploy, facts) == ("0", "1")
    assert devices(deploy_of(yaml_of()), facts_of()) == ("0",)
