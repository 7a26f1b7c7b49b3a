"""The engine's verdicts about memory, at both sides of each limit; sums by hand from the architecture.

Qwen2.5-7B: 28 layers x 4 KV heads x (128 + 128) x 2 B = 57,344 B a token, a block of 16 tokens 917,504 B.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from configured import GIB, QWEN_7B, card, case_of, facts_of

from deployc.diagnostics import Diagnostic
from deployc.facts.engine import load
from deployc.rules import memory, start
from deployc.rules.case import Case
from deployc.types.architecture import LayerCache, State, Tower
from deployc.types.choices import Choice
from deployc.types.facts import Facts
from deployc.types.figure import Factor, Figure, exact

WRITTEN = Path(__file__).resolve().parents[2] / "examples" / "written_by_hand"
BLOCK = 917_504
CONTEXT = Factor(0.5 * GIB, 0.25 * GIB, 0.6 * GIB, "B", "transferred", "this test")
JOINED = Factor(1 * GIB, 0.9 * GIB, 1.2 * GIB, "B", "transferred", "this test")
ALONE = "{version: 0.33.0, gpu_memory_utilization: %s}"


def written(name: str) -> dict[str, Any]:
    """A config.json of the examples."""
    read: dict[str, Any] = json.loads((WRITTEN / name / "config.json").read_text())
    return read


def facts_with(config: dict[str, Any] = QWEN_7B, version: str = "0.33.0", **given: Any) -> Facts:
    """Facts whose engine's own context takes 0.25 to 0.6 GiB before its check."""
    facts = facts_of(config, version=version, **given)
    factors = {**facts.calibration.factors, "context_before_check": CONTEXT, "context_before_check_pcie": JOINED}
    return replace(facts, calibration=replace(facts.calibration, factors=factors))


def billed(case: Case, **parts: Figure | float) -> Case:
    """The case with some lines of its bill put in place, in bytes."""
    figures = {name: part if isinstance(part, Figure) else exact(part, "B") for name, part in parts.items()}
    bill: Any = replace(case.prediction.memory, **figures)
    return replace(case, prediction=replace(case.prediction, memory=bill))


def figure(low: float, high: float) -> Figure:
    return Figure(high, low, high, "B", "transferred")


def said(found: Iterator[Diagnostic]) -> dict[str, str]:
    return {d.code: str(d.severity) for d in found}


# --- what is left for KV ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "needed"),
    [
        ("0.28.0", 512 * BLOCK),  # 8,192 tokens are 512 blocks
        ("0.29.0", 513 * BLOCK),  # from 0.29 on the null block counts
    ],
)
def test_a_request_of_full_length_fits_or_does_not(version: str, needed: int) -> None:
    case = case_of(facts_with(version=version))
    verdict = memory.longest_request_fits
    assert said(verdict(billed(case, kv_cache=figure(needed, needed)))) == {}
    assert said(verdict(billed(case, kv_cache=figure(needed - 1, needed)))) == {"DC302": "warning"}
    assert said(verdict(billed(case, kv_cache=figure(needed - 2, needed - 1)))) == {"DC302": "error"}


def test_the_longest_that_fits_is_of_whole_blocks_beside_the_null_block() -> None:
    """100 blocks and a half are 100; less the null block 99 x 16 = 1,584 tokens."""
    (found,) = memory.longest_request_fits(billed(case_of(facts_with()), kv_cache=figure(100.5 * BLOCK, 101 * BLOCK)))
    assert "8,192 tokens of 56.0 KiB each are 449 MiB a card" in found.detail  # 513 x 917,504 B
    assert "The longest that fits is 1,584 tokens." in found.detail
    assert found.fix.startswith("set workload.max_context to 1584;")


def test_nothing_left_is_said_as_the_engine_says_it() -> None:
    """available_memory <= 0 comes first; above it the engine complains of max_model_len."""
    case = case_of(facts_with())
    for left, verdicts in (
        (figure(-2, 0), {"DC301": "error"}),
        (figure(-2, 1), {"DC302": "error"}),  # something, but no request of full length in any case
        (figure(-2, 513 * BLOCK), {"DC301": "warning"}),  # the band holds both verdicts: one word is enough
        (figure(1, 513 * BLOCK), {"DC302": "warning"}),
    ):
        one = billed(case, kv_cache=left)
        assert said(memory.room_for_kv_cache(one)) | said(memory.longest_request_fits(one)) == verdicts, left
    (found,) = memory.room_for_kv_cache(billed(case, kv_cache=figure(-GIB, 0)))
    assert '"No available memory for the cache blocks"' in found.detail


def test_weights_above_the_budget_fail_while_loading_or_after() -> None:
    """20 GiB at 0.95: 19 to take, 20 - 0.6 = 19.4 surely free."""
    case = case_of(facts_with(cards=(card("odd", 20 * GIB),)), engine=ALONE % 0.95)
    assert said(memory.weights_fit(billed(case, weights=19 * GIB))) == {}
    (loads,) = memory.weights_fit(billed(case, weights=19.3 * GIB))
    (breaks,) = memory.weights_fit(billed(case, weights=19.5 * GIB))
    assert "They load; then" in loads.detail
    assert "19.4 GiB are free: CUDA runs out of memory" in breaks.detail
    assert {str(d.severity) for d in (loads, breaks)} == {"error"}


# --- layers of several kinds -----------------------------------------------------------------------------------------


def test_a_request_of_a_model_with_windows_is_no_product_of_tokens() -> None:
    """gemma-3-4b: 5 full layers and 29 with a window of 1,024, in 7 groups of 5 layers.

    A token in a layer: 2 x 4 heads x 256 x 2 B = 4,096 B; a block of 16 in 5 layers 327,680 B. 131,072 tokens are
    8,192 blocks of the full group; each of the 6 others holds 1,023 + 2 batches of 2,048 in flight = 5,119 tokens: 320
    blocks, and one as it need not start at a block's first token. 8,192 + 6 x 321 + the null block = 10,119 blocks.
    """
    case = case_of(
        facts_with(written("gemma-3-4b-it")),
        workload="{input_tokens: 1500, output_tokens: 256, concurrency: 4, max_context: 131072}",
    )
    needed = 10_119 * 327_680
    assert said(memory.longest_request_fits(billed(case, kv_cache=figure(needed, needed)))) == {}
    (found,) = memory.longest_request_fits(billed(case, kv_cache=figure(needed - 2, needed - 1)))
    assert found.detail.startswith("A request of 131,072 tokens takes 3.09 GiB a card (not every layer keeps")
    # one block fewer is sixteen tokens fewer
    assert "The longest that fits is 131,056 tokens." in found.detail
    assert "KV tokens" not in found.fix


@pytest.mark.parametrize("cards", [1, 2])
def test_latents_are_whole_on_every_card(cards: int) -> None:
    """DeepSeek-V2-Lite: 27 layers x 576 x 2 B = 31,104 B a token, whatever the tensor parallelism.

    163,840 tokens are 10,240 blocks of 16, and the null block: 10,241 x 497,664 B = 4.75 GiB.
    """
    case = case_of(
        facts_with(written("deepseek-v2-lite-chat"), cards=(card("a100-80", 79 * GIB, capability=(8, 0)),) * cards),
        workload="{input_tokens: 1500, output_tokens: 256, concurrency: 4, max_context: 163840}",
        engine=f"{{version: 0.33.0, parallel: {{tensor: {cards}}}}}",
    )
    needed = 10_241 * 497_664
    assert said(memory.longest_request_fits(billed(case, kv_cache=figure(needed, needed)))) == {}
    (found,) = memory.longest_request_fits(billed(case, kv_cache=figure(needed - 2, needed - 1)))
    assert "163,840 tokens of 30.4 KiB each are 4.75 GiB a card" in found.detail


def test_a_model_of_states_alone_has_no_longest_request() -> None:
    """28 layers with a state of 2 MiB, two of them a request under prefix caching: it fits or it does not."""
    facts = facts_with()
    kept = (LayerCache("state", tuple(range(28)), states=(State(2**20),), name="mamba2"),)
    facts = replace(facts, model=replace(facts.model, architecture=replace(facts.model.architecture, caches=kept)))
    (found,) = memory.longest_request_fits(billed(case_of(facts), kv_cache=figure(28 * 2**21, 28 * 2**21)))
    assert "however long it is" in found.detail
    assert "max_context" not in found.fix
    assert "kv_cache" not in found.fix


def test_pages_that_cannot_be_made_equal_are_refused_by_the_versions_that_do_not_pad() -> None:
    """Heads of 128 beside heads of 192: pages of 4 x 256 x 2 x 16 = 32,768 and 4 x 384 x 2 x 16 = 49,152 B."""
    kept = (
        LayerCache("full", tuple(range(14)), 4, 128, 128),
        LayerCache("sliding", tuple(range(14, 28)), 4, 192, 192, 64),
    )

    def verdict(version: str) -> dict[str, str]:
        facts = facts_with(version=version)
        model = replace(facts.model, architecture=replace(facts.model.architecture, caches=kept))
        return said(memory.layers_fit_together(case_of(replace(facts, model=model))))

    odd = {v: facts_with(version=v).calibration.memory.kv.odd_pages_padded for v in ("0.19.0", "0.33.0")}
    assert odd == {"0.19.0": False, "0.33.0": True}
    assert verdict("0.19.0") == {"DC307": "error"}
    assert verdict("0.33.0") == {}


# --- what must be free, and what is outside --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("share", "reserved", "used", "verdict"),
    [
        (0.96, 0, 0, None),  # 19.2 GiB asked, 20 - 0.6 = 19.4 surely free
        (0.98, 0, 0, "warning"),  # 19.6: below the 19.75 that may be free
        (0.99, 0, 0, "error"),  # 19.8: above
        (0.86, 2, 0, None),  # 17.2 of 17.4 to 17.75
        (0.88, 2, 0, "warning"),
        (0.89, 2, 0, "error"),
        (0.89, 0, 2, "error"),  # as NVML saw it
        (0.86, 1, 2, None),  # what is seen is part of what is reserved
    ],
)
def test_the_start_check_asks_for_a_share_of_the_whole_card(
    share: float, reserved: int, used: int, verdict: str | None
) -> None:
    facts = facts_with(cards=(card("odd", 20 * GIB, used=used * GIB),))
    case = case_of(facts, hardware=f"{{gpu: rtx-4090, reserved_memory: {reserved}GiB}}", engine=ALONE % share)
    assert said(start.start_check(case)).get("DC303") == verdict


def test_every_card_is_asked_of_unequal_ones() -> None:
    """Two ranks hold 0.9 to 1.2 GiB of each. At 0.9 the card of 20 GiB has 18.8 free or more of 18.0 asked; that of
    10 GiB between 8.8 and 9.1 of 9.0."""
    cards = (card("large", 20 * GIB), card("small", 10 * GIB))
    engine = "{version: 0.33.0, parallel: {tensor: 2}, gpu_memory_utilization: 0.9}"
    (found,) = start.start_check(case_of(facts_with(cards=cards), engine=engine))
    assert (str(found.severity), found.detail.partition(":")[0]) == ("warning", "small")
    assert "at most 0.88" in found.fix  # 1 - 1.2 / 10


@pytest.mark.parametrize(
    ("graphs", "verdict"),
    [
        (figure(0.1, 0.4), None),  # 20 - 19 - 0.6 = 0.4 GiB are surely beside the budget
        (figure(0.1, 0.5), "warning"),
        (figure(1.7, 1.8), "warning"),  # 1 - 0.25 and the 1 GiB of activations, which are not there at the capture
        (figure(1.76, 1.8), "error"),
    ],
)
def test_graphs_outside_the_budget(graphs: Figure, verdict: str | None) -> None:
    facts = facts_with(cards=(card("odd", 20 * GIB),))
    case = case_of(facts, engine=ALONE % 0.95)
    sized = Figure(graphs.value * GIB, graphs.low * GIB, graphs.high * GIB, "B", "transferred")
    case = billed(case, cuda_graphs=sized, activations=GIB, budget=19 * GIB)
    assert said(start.graphs_outside_the_budget(case)).get("DC305") == verdict
    counted = replace(case.facts, engine=replace(case.facts.engine, graphs_in_budget=("V1", "V2")))
    assert said(start.graphs_outside_the_budget(replace(case, facts=counted))) == {}


def test_a_budget_that_leaves_room_for_the_graphs_passes() -> None:
    facts = facts_with(cards=(card("odd", 20 * GIB),), version="0.19.0")
    engine = "{version: 0.19.0, gpu_memory_utilization: %s, args: {max-num-seqs: 256}}"
    (found,) = start.graphs_outside_the_budget(case_of(facts, engine=engine % 0.95))
    share = found.fix.split("at most ")[1].split()[0]
    assert said(start.graphs_outside_the_budget(case_of(facts, engine=engine % share))) == {}
    fewer = found.fix.split("max-num-seqs: ")[1].split("}")[0]
    less = engine.replace("256", fewer) % 0.95
    assert said(start.graphs_outside_the_budget(case_of(facts, engine=less))) == {}
    assert "one stream stays at" in found.fix  # that card reads longer than the host launches


@pytest.mark.parametrize(("version", "expected"), [("0.26.0", "warning"), ("0.27.1", None), ("0.19.0", None)])
def test_images_that_the_second_runner_did_not_profile(version: str, expected: str | None) -> None:
    # 32 images of 4,096 patches x (2 x 4,304 + 4 x 1,152) x 2 B = 3.2 GiB at 8,192 tokens; a card of 24 GiB at 0.92
    # leaves 1.9 GiB less the context, and the peak of 1.0 GiB: 2.4 at most. The first runner profiles them
    facts = facts_with(cards=(card("odd", 24 * GIB),), version=version)
    tower = Tower("vision", 27, 1152, 4304, 16, patch_size=14, image_size=896, tokens=256)
    architecture = replace(facts.model.architecture, towers=(tower,))
    engine = load(version)
    facts = replace(facts, engine=engine, model=replace(facts.model, architecture=architecture))
    written = "{version: %s, gpu_memory_utilization: %s, args: {max-num-batched-tokens: 8192}}"
    found = list(start.images_outside_the_profile(case_of(facts, engine=written % (version, 0.92))))
    assert said(iter(found)).get("DC304") == expected
    if found:
        share = found[0].fix.split("at most ")[1].split()[0]
        assert said(start.images_outside_the_profile(case_of(facts, engine=written % (version, share)))) == {}
        told = written.replace("8192", "8192, limit-mm-per-prompt: '{\"image\": 0}'") % (version, 0.92)
        assert said(start.images_outside_the_profile(case_of(facts, engine=told))) == {}


def test_choices_of_the_test_are_what_they_seem() -> None:
    """One card, 8,192 tokens, blocks of 16: what the sums above start from."""
    choices = case_of(facts_with()).choices
    assert choices.max_model_len == Choice(8192, "deploy.yaml:5", "as written")
    assert (choices.tensor_parallel_size.value, choices.max_num_batched_tokens.value) == (1, 2048)
