"""Names of attention backends, which the parser takes unread and the engine looks up at its start."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from deployc.diagnostics import Diagnostic, error
from deployc.rules.case import Case
from deployc.rules.settings import settings

NAMES = ("attention-backend", "attention-config.backend", "VLLM_ATTENTION_BACKEND")
"""Where one is named; the suffix _VLLM_V1 of 0.8 to 0.10 is taken off by 0.11 and 0.12, with a warning."""


def is_known(case: Case) -> Iterator[Diagnostic]:
    """One that went, came later, or never was: the engine stops where it looks it up."""
    known, variables, set_here = case.facts.lore.backends, case.facts.engine.variables, settings(case)
    for name in NAMES:
        setting = set_here.get(name)
        read = name.partition(".")[0] in case.facts.engine.flags or (name.isupper() and name in variables)
        if setting is None or not known or not read:
            continue
        written = setting.value.upper()
        if written in ("AUTO", "CUSTOM") or {written, written.removesuffix("_VLLM_V1")} & set(known):
            continue
        close = get_close_matches(written, known, 1, 0.7)
        yield error(
            "DC537",
            "the engine has no such attention backend",
            f"{name} is {setting.value}; vLLM {case.facts.engine.version} has none of that name, and stops.",
            f"did you mean {close[0]}?" if close else "remove it: the engine chooses one for this card and model",
            setting.at,
        )
