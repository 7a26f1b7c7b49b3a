"""The section on what is needed: words for each kind of answer, at every width."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deployc.views import explain
from deployc.views.layout import width

CASES = Path(__file__).resolve().parent.parent / "cases"


def planned(case: str) -> dict[str, Any]:
    """The plan document of a golden case."""
    read: dict[str, Any] = json.loads((CASES / case / "expect" / "plan.json").read_text())
    return read


def shown(document: dict[str, Any], columns: int = 200) -> dict[str, str]:
    """Name -> text of each row, on lines so long that nothing is broken."""
    rows = explain.lines(document, False, columns)[1:]
    return {row[:20].strip(): row[20:] for row in rows if row[2] != " "}


@pytest.mark.parametrize("columns", [30, 44, 60, 80, 120])
@pytest.mark.parametrize("case", ["windows", "latent", "states", "cpu-int8", "tp4-yarn", "lora-4090"])
def test_no_line_is_wider_than_the_terminal(case: str, columns: int) -> None:
    lines = explain.lines(planned(case), False, columns)
    assert lines
    assert max(width(line) for line in lines) <= columns


def test_one_screen_holds_it() -> None:
    assert all(len(explain.lines(planned(case), False, 80)) <= 17 for case in ("windows", "latent", "lora-4090"))


def test_a_document_without_explanation_has_no_section() -> None:
    document = planned("lora-4090")
    document["prediction"]["explain"] = None
    assert explain.lines(document, False, 80) == []


def test_needed_against_reserved() -> None:
    document = planned("lora-4090")
    needs = shown(document)["this load needs"]
    share = document["prediction"]["explain"]["gpu_memory_utilization"]
    assert f"(gpu_memory_utilization {share:.2f}) of the 21.6 GiB that vLLM reserves whatever comes" in needs
    document["prediction"]["explain"]["needed"] |= {"value": 2**34 * 1.4, "high": 2**34 * 1.5}
    assert shown(document)["this load needs"].startswith("22.4 GiB where 21.6 GiB may be taken")
    document["prediction"]["explain"]["needed"] |= {"value": 2**34, "high": 2**34 * 1.5}
    assert shown(document)["this load needs"].startswith("up to 24.0 GiB where 21.6 GiB may be taken")


def test_a_logged_size_that_is_no_capacity_is_called_so() -> None:
    assert "no capacity" in shown(planned("states"))["KV cache size"]
    assert "KV cache size" not in shown(planned("latent"))


def test_a_length_without_bound_is_the_models_own() -> None:
    document = planned("lora-4090")
    document["prediction"]["explain"]["longest_context"]["by_memory"]["value"] = 2**31 - 1
    assert "a longer one would need no more memory" in shown(document)["longest request"]


def test_the_smallest_card_may_be_this_one_or_none() -> None:
    document = planned("lora-4090")
    document["prediction"]["explain"]["smallest_card"] = {"name": "rtx-4090", "memory": 2**34}
    assert shown(document)["smallest card"] == "this one: rtx-4090"
    document["prediction"]["explain"]["smallest_card"] = None
    assert shown(document)["smallest card"] == "none with a profile holds this load"


def test_moments_have_words() -> None:
    peak = shown(planned("windows"))["activation peak"]
    assert "in the encoder" in peak
    assert "in logits and sampler" in peak


def test_graphs_are_told_where_they_take_much_or_are_doubled() -> None:
    document = planned("lora-4090")
    graphs, memory = document["prediction"]["explain"]["graphs"], document["prediction"]["memory"]
    assert "CUDA graphs" not in shown(document)
    graphs |= {"captured": 70, "with_adapters": True, "in_budget": False}
    assert (
        "70 are captured, every batch size with and without adapters; outside the budget"
        in (shown(document)["CUDA graphs"])
    )
    graphs |= {"captured": 35, "with_adapters": False, "in_budget": True}
    memory["cuda_graphs"]["value"] = 2**29
    assert shown(document)["CUDA graphs"].startswith("512 MiB: 35 are captured; the engine takes its own estimate")
    memory["cuda_graphs"]["value"] = 2**29 - 1
    assert "CUDA graphs" not in shown(document)


@pytest.mark.parametrize(("rate", "share", "sure"), [(10.0, "63%", True), (2.0, "13%", False)])
def test_the_share_of_a_cards_arithmetic(rate: float, share: str, sure: bool) -> None:
    """10 requests/s x 1,500 tokens x 2 x 6.53e9 weights on a card of 312 TFLOP/s: only then it cannot be idle."""
    document, needed = planned("lora-4090"), rate * 1500 * 2 * 6.53e9
    exact = {"low": rate, "value": rate, "high": rate, "basis": "exact"}
    document["prediction"]["explain"]["arithmetic"] = {
        "requests_per_second": exact, "tokens": 1500.0, "weights": 6530000000, "cards": 1, "peak": 312000000000000,
        "needed": exact | {"low": needed, "value": needed, "high": needed},
    }  # fmt: skip
    said = shown(document)["arithmetic"]
    assert said.startswith(
        f"prompts take {share} of a card's 312 TFLOP/s: {rate:g} requests/s x 1,500 tokens x 2 x 6.53e9"
    )
    assert ("hit the prefix cache" in said) is sure
    document["prediction"]["explain"]["arithmetic"]["cards"] = 4
    assert "weights / 4 cards are" in shown(document)["arithmetic"]


def test_scaled_positions_and_the_size_of_a_full_request_are_said() -> None:
    document = planned("tp4-yarn")
    document["prediction"]["explain"]["longest_context"]["own_positions"] = 32768
    rows = shown(document)
    assert "with its own 32,768 positions scaled" in rows["longest request"]
    assert "requests of 131,072 tokens (7.00 GiB of KV each)" in rows["most at once"]
    assert "GiB on 4 cards)" in rows["this load needs"]
