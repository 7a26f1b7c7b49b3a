"""What is said of lines of `engine` with the shipped catalogue of one version of vLLM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from configured import QWEN_7B, case_of, facts_of

from deployc.diagnostics import Diagnostic
from deployc.facts.engine import load
from deployc.rules import judge
from deployc.types.facts import Facts


def said(
    settings: str,
    version: str,
    config: dict[str, Any] | None = None,
    facts: Facts | None = None,
    sections: Mapping[str, str] | None = None,
) -> list[Diagnostic]:
    """Everything that is said with these lines of `engine`, of the shipped catalogue of this version."""
    known = facts or facts_of(config or QWEN_7B, version=version)
    case = case_of(
        replace(known, engine=load(version)), **{"engine": f"{{version: {version}, {settings}}}", **(sections or {})}
    )
    return judge(case.deploy, case.facts, case.choices, case.prediction)


def codes_of(found: list[Diagnostic]) -> dict[str, str]:
    return {d.code: str(d.severity) for d in found}


def args(text: str) -> str:
    return f"args: {{{text}}}"


def env(text: str) -> str:
    return f"env: {{{text}}}"
