"""What a diagnostic advises: the figure in it must be one with which the file then passes."""

from __future__ import annotations

import re
from dataclasses import replace

from configured import GIB, card, case_of, codes, facts_of

from deployc.diagnostics import Diagnostic
from deployc.rules import judge
from deployc.types.facts import Facts


def said(facts: Facts | None = None, **sections: str) -> dict[str, Diagnostic]:
    """Code -> the first diagnostic of it."""
    case = case_of(facts, **sections)
    found: dict[str, Diagnostic] = {}
    for diagnostic in judge(case.deploy, case.facts, case.choices, case.prediction):
        found.setdefault(diagnostic.code, diagnostic)
    return found


def test_a_refusal_for_a_low_utilization_says_the_least_that_does() -> None:
    found = said(engine="{version: 0.32.0, gpu_memory_utilization: 0.5}")["DC300"]
    least = re.search(r"gpu_memory_utilization to at least (0\.\d+)", found.fix)
    assert least is not None
    assert codes(engine=f"{{version: 0.32.0, gpu_memory_utilization: {least[1]}}}") == {}
    lower = float(least[1]) - 0.02
    assert codes(engine=f"{{version: 0.32.0, gpu_memory_utilization: {lower:.2f}}}") != {}


def test_a_model_too_large_for_the_card_says_which_card_would_do() -> None:
    found = said(facts_of(cards=(card("rtx-3070", 7.7 * GIB),)))["DC300"]
    size = re.search(r"a card with at least ([0-9.]+) GiB", found.fix)
    assert size is not None
    assert codes(facts_of(cards=(card("odd", (float(size[1]) + 0.1) * GIB),))) == {}


def test_fp8_kv_is_no_remedy_where_the_card_may_not_have_it() -> None:
    load = "{input_tokens: 6000, output_tokens: 256, concurrency: 64}"
    assert "kv_cache: fp8" in said(workload=load)["DC306"].fix
    ampere = facts_of(cards=(card("rtx-3090", capability=(8, 6)),))
    assert "kv_cache: fp8" not in said(ampere, workload=load)["DC306"].fix


def test_a_gone_flag_says_since_when_and_what_instead() -> None:
    found = said(engine="{version: 0.32.0, args: {rope_scaling: x}}")["DC502"]
    assert "0.11.1" in found.detail
    assert "model.context" in found.fix


def test_a_deprecated_flag_is_said_with_the_engines_own_words() -> None:
    facts = facts_of()
    old = replace(facts.engine.flags["seed"], deprecated="it has no effect")
    facts = replace(facts, engine=replace(facts.engine, flags={**facts.engine.flags, "seed": old}))
    assert "it has no effect" in said(facts, engine="{version: 0.32.0, args: {seed: 1}}")["DC505"].detail
    assert "DC505" not in codes(engine="{version: 0.32.0, args: {seed: 1}}")


def test_what_a_flag_sets_is_pointed_at_where_the_flag_stands() -> None:
    workload = "{input_tokens: 1500, output_tokens: 256, concurrency: 8}"
    engine = "{version: 0.32.0, args: {max-model-len: 65536, gpu-memory-utilization: 1.0, max-num-seqs: 4}}"
    found = said(workload=workload, engine=engine)
    excerpts = {code: d.at.excerpt[d.at.column - 1 :] for code, d in found.items() if d.at}
    assert excerpts["DC520"].startswith("65536")
    assert excerpts["DC303"].startswith("1.0")
    assert excerpts["DC306"].startswith("4")


def test_waiting_requests_are_no_reason_to_buy_a_card_for_one_request() -> None:
    found = said(workload="{input_tokens: 6000, output_tokens: 256, concurrency: 64}")["DC306"]
    assert "a card with at least" not in found.fix
