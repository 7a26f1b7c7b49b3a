"""The plan as people read it: golden at three widths, honest bars, no letter of the user's taken as a command."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from golden import assert_golden
from handmade import (
    GIB,
    QWEN_ON_4090,
    choices,
    cpu_choices,
    deploy_of,
    edited,
    facts,
    figure,
    gpu,
    memory,
    prediction,
)

from deployc.diagnostics import Report, error, warning
from deployc.emit import compile_bundle
from deployc.plan.document import document
from deployc.plan.figures import figure as figure_json
from deployc.plan.figures import prediction as prediction_json
from deployc.plan.steps import steps, switch
from deployc.types.choices import Choice
from deployc.types.figure import Figure, exact
from deployc.types.plan import Observed
from deployc.types.prediction import Growth, Prediction, SlaLine
from deployc.views import text, words
from deployc.views.layout import width
from deployc.views.memory import bar

UNSEEN = Observed(None, None, complete=False)


def planned(
    yaml: str = QWEN_ON_4090, predicted: Prediction | None = None, observed: Observed = UNSEEN, **given: Any
) -> dict[str, Any]:
    """A plan document, as PLAN makes it."""
    deploy, figures = deploy_of(yaml), predicted or prediction()
    known, chosen = given.get("facts", facts()), given.get("choices", choices())
    bundle, report = compile_bundle(deploy, known, chosen, figures)
    assert bundle is not None, report.diagnostics
    taken = steps(deploy, bundle, observed, known.engine.version)
    return document(
        deploy=deploy,
        inputs={},
        variables={},
        facts=known,
        choices=chosen,
        prediction=figures,
        bundle=bundle,
        sla=[
            SlaLine("ttft_p95", exact(0.8, "s"), figures.speed.ttft_p95, "tight", "deploy.yaml:15:13"),
            SlaLine("tpot_p95", exact(0.04, "s"), figures.speed.tpot_p95, "meets", "deploy.yaml:16:13"),
        ],
        observed=observed,
        switch=switch(taken, observed, figures, 30),
        steps=taken,
        report=report,
        grown=given.get("grown"),
    )


def tight() -> Report:
    at = deploy_of(QWEN_ON_4090).at("sla.ttft_p95")
    return Report(
        [warning("DC402", "may miss the SLA", "900 ms, the limit is 800 ms", "lower concurrency", at, "modelled")]
    )


def golden(name: str) -> Path:
    return Path(__file__).parent / "expect" / f"{name}.txt"


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_golden_plan(columns: int) -> None:
    shown = text.plan(planned(), tight(), width=columns)
    assert all(width(line) <= columns for line in shown.splitlines())
    assert_golden(golden(f"plan-{columns}"), shown)


def test_golden_plan_on_a_cpu() -> None:
    """A bill without graphs, int8 weights, the engine already running as written."""
    figures = prediction(
        memory=memory(
            total=exact(16 * GIB, "B"), budget=exact(12 * GIB, "B"), weights=exact(7.2 * GIB, "B"),
            cuda_graphs=exact(0, "B"), non_torch=figure(0.5 * GIB, "B"), activations=figure(0.3 * GIB, "B"),
            kv_cache=exact(4 * GIB, "B"),
        )
    )  # fmt: skip
    made = planned(
        edited(QWEN_ON_4090, {"rtx-4090": "cpu"}), figures, facts=facts(card=gpu("cpu", 16)), choices=cpu_choices()
    )
    assert_golden(golden("plan-cpu"), text.plan(made, Report(), file="x/deploy.yaml"))


def test_it_says_that_fp16_fits_how_many_tokens_and_what_bounds_a_stream() -> None:
    shown = " ".join(text.plan(planned(), Report()).split())
    assert "FP16 (16-bit weights, bfloat16) fits on 24 GB (rtx-4090, 23.5 GiB as CUDA shows it)" in shown
    assert "105,600 KV tokens at 56.0 KiB each" in shown
    assert "One stream is bound by memory bandwidth: 58 tokens/s (46.4 – 69.6, modelled)" in shown
    assert "66 tokens/s is the physical limit" in shown


def test_what_does_not_fit_is_said_with_the_figure() -> None:
    over = memory(weights=exact(28.4 * GIB, "B"), kv_cache=figure_below(-8.57 * GIB))
    shown = " ".join(text.plan(planned(predicted=prediction(memory=over)), Report()).split())
    assert "does not fit on 24 GB" in shown
    assert "8.57 GiB too much" in shown


def figure_below(value: float) -> Any:
    return replace(figure(0, "B"), value=value, low=value - GIB, high=value + GIB / 2)


def test_a_band_across_zero_may_just_fit() -> None:
    edge = memory(kv_cache=replace(figure(0, "B"), value=0.1 * GIB, low=-0.2 * GIB, high=0.4 * GIB))
    assert "may just fit on 24 GB" in " ".join(text.plan(planned(predicted=prediction(memory=edge)), Report()).split())


def cells(shown: str) -> dict[str, int]:
    return {mark: shown.count(mark) for mark in "█▓▒░▚▂·┊│"}


def test_the_bar_is_to_scale() -> None:
    shown = bar(prediction_json(prediction())["memory"], 103, False)
    counted = cells(shown)
    assert width(shown) == 103
    total = 23.5
    for mark, size in {"█": 14.19, "▓": 1.04, "▒": 0.5, "░": 0.25, "▂": 5.64, "·": 23.5 - 21.62}.items():
        assert abs(counted[mark] - size / total * 100) <= 1, mark
    assert shown[1:-1].index("┊") == round(21.62 / total * 100)
    assert "▚" not in shown


def test_graphs_outside_the_budget_are_drawn_outside_it() -> None:
    bill = prediction_json(prediction(memory=memory(kv_cache=exact(6.14 * GIB, "B"))))["memory"]
    shown = bar(bill, 83, False)
    assert shown.index("▂") < shown.index("┊") < shown.index("▒") < shown.index("·")
    made = planned(predicted=prediction(memory=memory(kv_cache=exact(6.14 * GIB, "B"))))
    assert "graphs, outside it" in text.plan(made, Report())


def test_what_is_too_much_reaches_past_the_budget() -> None:
    bill = prediction_json(prediction(memory=memory(weights=exact(28 * GIB, "B"), kv_cache=exact(-8 * GIB, "B"))))
    shown = bar(bill["memory"], 83, False)
    assert width(shown) == 83
    assert shown.rindex("█") > shown.index("┊")
    assert "▂" not in shown


@pytest.mark.parametrize(
    ("memory_bytes", "sold"), [(23.5, "24 GB"), (22.06, "24 GB"), (79.2, "80 GB"), (139.8, "141 GB"), (44.4, "48 GB")]
)
def test_card_classes(memory_bytes: float, sold: str) -> None:
    assert words.card_class(memory_bytes * GIB) == sold


def test_bands_name_a_unit_once_where_it_is_the_same() -> None:
    from deployc.units import show_bytes, show_seconds

    assert words.band(figure_json(figure(5.64 * GIB, "B", band=0.1)), show_bytes) == "5.08 – 6.20 GiB"
    assert words.band(figure_json(figure(1.04 * GIB, "B")), show_bytes) == "852 MiB – 1.25 GiB"
    assert (
        words.with_band(figure_json(figure(58, "1/s")), words.rate("tokens")) == "58 tokens/s (46.4 – 69.6, modelled)"
    )
    assert words.with_band(figure_json(figure(130, "s")), show_seconds) == "2.2 min (104 s – 2.6 min, modelled)"
    assert words.band(figure_json(exact(1, "B")), show_bytes) == ""
    assert words.with_band({"value": None, "low": 2.0, "high": None, "basis": "modelled"}, show_seconds) == (
        "unbounded (2.00 s – unbounded, modelled)"
    )


def test_the_next_command() -> None:
    def last(made: dict[str, Any], report: Report, file: str = "deploy.yaml") -> str:
        return text.plan(made, report, file=file).splitlines()[-1]

    assert last(planned(), Report()) == "Next: `deployc apply`"
    assert last(planned(), Report(), "a b/x.yaml") == "Next: `deployc apply -f 'a b/x.yaml'`"
    assert text.plan(planned(), Report(), applies=False).endswith("\nNext: `deployc compile -o out`\n")
    assert last(planned(), Report([error("DC302", "no")])) == "Next: mend what is said above, then `deployc plan`"
    digest = planned()["digest"]
    seen = Observed(digest, "2030-01-01T00:00:00Z", complete=True, healthy=True, artifact=True)
    assert last(planned(observed=seen), Report()) == "Nothing to do."


def test_a_plan_that_did_not_come_far() -> None:
    made: dict[str, Any] = {
        **dict.fromkeys(planned()),
        "name": "x",
        "sla": [],
        "steps": [],
        "accepted": [],
        "diagnostics": [],
    }
    shown = text.plan(made, Report([error("DC201", "no such model")]))
    assert shown.startswith("x\n\nerror[DC201]: no such model")


def test_colour_changes_no_letter() -> None:
    colored = text.plan(planned(), tight(), color=True)
    assert "\x1b[" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == text.plan(planned(), tight())


def test_nothing_of_the_users_reaches_the_terminal_raw() -> None:
    made = planned(facts=facts(source="Qwen/\x1b[31mred\u202e"))
    made["steps"][0]["cause"] += "\x07"
    shown = text.plan(made, Report([error("DC201", "s", "\x1b]0;title\x07")]))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown)
    assert "Qwen/\\x1b[31mred\\u202e" in shown


def test_two_cards_and_replicas() -> None:
    yaml = edited(QWEN_ON_4090, {"  gpu: rtx-4090\n": "  gpu: rtx-4090\n  count: 4\n"})
    chosen = choices(replicas=Choice(2, "search", ""), tensor_parallel_size=Choice(2, "search", ""))
    shown = " ".join(text.plan(planned(yaml, facts=facts(cards=4), choices=chosen), Report()).split())
    assert "on 4 x rtx-4090" in shown
    assert "2 engines of 2 cards" in shown
    assert "fits on 2 cards of 24 GB each (rtx-4090, 23.5 GiB as CUDA shows it)" in shown
    assert "that the engine may take of each" in shown
    assert "KV tokens at 28.0 KiB a card" in shown


def test_unequal_cards_are_named_by_the_one_that_rules() -> None:
    yaml = edited(QWEN_ON_4090, {"  gpu: rtx-4090\n": "  gpu: [rtx-3090, rtx-3070]\n  count: 2\n"})
    chosen = choices(tensor_parallel_size=Choice(2, "search", ""))
    known = replace(facts(), devices=(gpu("rtx-3090"), gpu("rtx-3070")))
    shown = " ".join(text.plan(planned(yaml, facts=known, choices=chosen), Report()).split())
    assert "(the smallest of rtx-3090, rtx-3070, " in shown


def test_an_engine_that_cannot_start_has_no_speed_and_no_steps() -> None:
    over = memory(weights=exact(28.4 * GIB, "B"), kv_cache=figure_below(-8.57 * GIB))
    shown = text.plan(planned(predicted=prediction(memory=over)), Report())
    assert re.search(r"missing for KV cache +8.57 GiB +8.07 – 9.57 GiB +modelled", shown)
    assert not [word for word in ("SPEED", "SLA", "STEPS", "-8.57") if word in shown]


def test_a_band_below_zero_that_reaches_above_it() -> None:
    edge = memory(kv_cache=replace(figure(0, "B"), value=-0.1 * GIB, low=-0.2 * GIB, high=0.4 * GIB))
    shown = " ".join(text.plan(planned(predicted=prediction(memory=edge)), Report()).split())
    assert "probably does not fit on 24 GB" in shown
    assert "SPEED" in shown


@pytest.mark.parametrize(
    ("severity", "said"),
    [
        ("error", ", but too little of it is free."),
        ("warning", ", but perhaps too little of it is free."),
        ("note", "."),
    ],
)
def test_what_fits_a_card_that_is_not_free_does_not_just_fit(severity: str, said: str) -> None:
    document = planned()
    document["diagnostics"] = [{"code": "DC303", "severity": severity}]
    shown = " ".join(text.plan(document, Report()).split())
    assert re.search(r"fits on [^)]*\)" + re.escape(said), shown)


def test_the_capacity_says_whether_a_limit_is_in_it() -> None:
    inside = " ".join(text.plan(planned(), Report()).split())
    assert "Capacity inside the SLA: 5.60 requests/s" in inside
    none = prediction(capacity=figure(0, "1/s"))
    assert "Capacity inside the SLA: none, a single request at a time misses it already." in " ".join(
        text.plan(planned(predicted=none), Report()).split()
    )


def said(**changed: Any) -> str:
    """The plan in one line, with a prediction changed."""
    return " ".join(text.plan(planned(predicted=prediction(**changed)), Report()).split())


def test_the_capacity_says_how_many_at_once_and_what_gives_more() -> None:
    assert "Capacity inside the SLA: 5.60 requests/s (4.48 – 6.72, modelled) with 24 at once." in said(
        capacity_in_flight=exact(24, "requests")
    )
    grown = planned(grown=Growth("set quantization.weights: int8", figure(9.0, "1/s")))
    shown = " ".join(text.plan(grown, Report()).split())
    assert "The next cheapest change gives 9 requests/s (7.20 – 10.8, modelled): set quantization.weights: int8." in (
        shown
    )


def test_money_is_counted_where_the_file_has_a_price() -> None:
    """2.5 an hour, 1,254 tokens/s: 2.5 / 3600 / 1254 x 10^6 = 0.554; at 5.6 of 4.9 requests/s 0.485."""
    priced = edited(QWEN_ON_4090, {"  gpu: rtx-4090\n": "  gpu: rtx-4090\n  price: 2.5\n"})
    shown = " ".join(text.plan(planned(priced), Report()).split())
    assert "A million output tokens cost 0.554 (0.461 – 0.692, modelled) under this load, 0.485 (" in shown
    assert "million output tokens cost" not in said()


def test_what_bounds_the_load_and_how_busy_an_open_one_keeps_the_engine() -> None:
    assert "The load is bound by memory bandwidth: each step reads all weights" in said()
    busy = said(utilization=replace(exact(0.97, "share"), low=0.9, high=1.0, basis="modelled"), bound_by="load")
    assert "The load is bound by the load alone: the engine waits for requests." in busy
    assert "An engine is in a step 97 % (90 – 100, modelled) of the time, at 88 % of its capacity." in busy


def test_a_p95_that_is_of_the_start_says_so() -> None:
    assert "(p95 is the start, when all 32 are sent at once)" in said(ttft_p95_from_start=True)
    assert "p95 is the start" not in said()


def test_an_overload_shows_no_latency_of_a_whole_request() -> None:
    endless = Figure(math.inf, math.inf, math.inf, "s", "modelled")
    speed = replace(prediction().speed, ttft_p50=endless, ttft_p95=endless, e2e_p95=endless)
    shown = said(speed=speed, over_capacity=True)
    assert shown.count("unbounded modelled") == 3
    assert "The stated rate is above it: the queue grows without bound." in shown


def test_a_limit_that_is_not_known_exactly_has_its_band() -> None:
    stream = replace(prediction().single_stream, physical_limit=figure(2.6, "1/s"))
    shown = " ".join(text.plan(planned(predicted=prediction(single_stream=stream)), Report()).split())
    assert "so 2.60 tokens/s (2.08 – 3.12, modelled) is the physical limit" in shown


def test_what_grows_for_ever_has_no_band() -> None:
    endless = {"value": None, "low": None, "high": None, "basis": "modelled"}
    assert words.with_band(endless, str) == "unbounded (modelled)"


@pytest.mark.parametrize(("flight", "shown"), [(1, "1 request at once"), (32, "32 requests at once")])
def test_one_request_is_one(flight: int, shown: str) -> None:
    assert words.load({"concurrency": flight, "input_tokens": 1, "output_tokens": 1}).startswith(shown)
