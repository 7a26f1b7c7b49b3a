"""Variables of the environment: those that a version does not read, and what they do to the CPU engine."""

from __future__ import annotations

from dataclasses import replace

import pytest
from configured import A100, HOST, case_of, facts_of
from versioned import codes_of, env, said

from deployc.facts.engine import load
from deployc.rules import judge

NO_CARD = "{gpu: cpu}"


def test_threads_of_the_cpu_engine() -> None:
    one, host = env("OMP_NUM_THREADS: '1'"), facts_of(cards=(HOST,), version="0.32.0")
    assert "DC516" in codes_of(said(one, "0.32.0", facts=host, sections={"hardware": NO_CARD}))
    assert "DC516" not in codes_of(said(one, "0.32.0", facts=facts_of(cards=(A100,), version="0.32.0")))


def test_a_variable_that_the_version_does_not_read() -> None:
    facts = facts_of(version="0.33.0")
    known = replace(load("0.33.0"), variables=("VLLM_LOGGING_LEVEL", "VLLM_SERVER_DEV_MODE"))
    typo, right = (env(f"{name}: '1'") for name in ("VLLM_LOGING_LEVEL", "VLLM_LOGGING_LEVEL"))
    for setting, engine, expected in ((typo, known, True), (right, known, False)):
        case = case_of(replace(facts, engine=engine), engine=f"{{version: 0.33.0, {setting}}}")
        found = [d for d in judge(case.deploy, case.facts, case.choices, case.prediction) if d.code == "DC514"]
        assert bool(found) is expected
        assert not found or found[0].fix == "did you mean VLLM_LOGGING_LEVEL?"
    nothing = replace(known, variables=())
    case = case_of(replace(facts, engine=nothing), engine=f"{{version: 0.33.0, {typo}}}")
    found = judge(case.deploy, case.facts, case.choices, case.prediction)
    assert "DC514" not in codes_of(found), "its list is not known"


@pytest.mark.parametrize(
    ("variable", "version", "when", "fix"),
    [
        ("VLLM_ATTENTION_BACKEND: FLASHINFER", "0.33.0", "went in vLLM 0.15.0", "attention-backend: FLASHINFER"),
        ("VLLM_USE_V1: '0'", "0.33.0", "went in vLLM 0.11.1", "V1 is the only engine"),
        ("VLLM_USE_RUST_FRONTEND: '1'", "0.13.0", "came in vLLM 0.", "remove it"),
        ("vllm_logging_level: DEBUG", "0.33.0", "reads no vllm_logging_level.", "did you mean VLLM_LOGGING_LEVEL?"),
        ("VLLM_NO_SUCH_THING: '1'", "0.33.0", "reads no VLLM_NO_SUCH_THING.", "remove it"),
    ],
)
def test_a_variable_of_another_version_says_of_which(variable: str, version: str, when: str, fix: str) -> None:
    (found,) = [d for d in said(env(variable), version) if d.code == "DC514"]
    assert when in found.detail and fix in found.fix
