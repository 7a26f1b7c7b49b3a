"""docs/advice.md is what the cases say; what was measured comes from runs that ship."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"
sys.path.append(str(DOCS))
import make_advice  # noqa: E402


def test_the_page_is_in_step_with_the_cases() -> None:
    assert make_advice.ADVICE.read_text(encoding="utf-8") == make_advice.advice(make_advice.cases())


def test_all_that_circulates_is_judged() -> None:
    """Thirty-four pieces of advice came in answers to three questions."""
    known = make_advice.cases()
    assert len({"-".join(name.split("-")[:2]) for name in known if name.startswith("seed-")}) == 34
    assert {case["source"] for case in known.values() if "://" not in case["source"]} == set(make_advice.THREADS)
    assert {case["verdict"] for case in known.values()} <= set(make_advice.VERDICTS)


def test_every_code_and_anchor_leads_somewhere() -> None:
    text = make_advice.ADVICE.read_text(encoding="utf-8")
    assert [code for code in re.findall(r"\]\((codes/DC\d{3}\.md)\)", text) if not (DOCS / code).is_file()] == []
    assert set(re.findall(r"\]\(#([\w-]+)\)", text)) == set(re.findall(r'<a id="([\w-]+)">', text))


def test_what_was_measured_is_computed_from_the_rows() -> None:
    one = {
        "run": "q7-seqs64/1500x256/c256",
        "against": "q7-bf16/1500x256/c256",
        "differs": "max_num_seqs 64 in place of 128",
    }
    assert make_advice.measured(one) == (
        "4,411 tokens/s against 5,093, 13% fewer: max_num_seqs 64 in place of 128 (qwen2.5-7b, vLLM 0.25.1 on "
        "h200-sxm, 1,500 tokens in, 256 out, 256 in flight; runs `q7-seqs64/1500x256/c256` and "
        "`q7-bf16/1500x256/c256`)."
    )
    for other, why in (("l8-bf16/1500x256/c128", "model"), ("q7-bf16/1500x256/c128", "load")):
        with pytest.raises(ValueError, match=rf"cannot be compared \({why}\)"):
            make_advice.measured(one | {"against": other})
