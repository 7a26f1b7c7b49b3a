"""Keys of deploy.yaml that become flags, against versions that lack the flag or take other values."""

from __future__ import annotations

from dataclasses import replace

import pytest
from handmade import QWEN_ON_4090, choices, deploy_of, facts, prediction

from deployc.diagnostics import Diagnostic
from deployc.facts.engine import load
from deployc.facts.lore import lore
from deployc.rules.case import Case
from deployc.rules.keys import are_taken, have_their_flag


def said(api: str, version: str) -> list[Diagnostic]:
    text = QWEN_ON_4090.replace("0.32.0", version) + f"api: {{{api}}}\n"
    case = Case(deploy_of(text), replace(facts(), engine=load(version), lore=lore(version)), choices(), prediction())
    return [*have_their_flag(case), *are_taken(case)]


@pytest.mark.parametrize(
    ("code", "api", "version", "neighbour"),
    [
        ("DC507", "servers: 2", "0.8.5", ("servers: 2", "0.9.1")),
        ("DC507", "servers: 2", "0.9.0", ("servers: auto", "0.9.0")),
        ("DC501", "reasoning_parser: qwen3", "0.8.5", ("reasoning_parser: qwen3", "0.9.0")),
        ("DC501", "reasoning_parser: qwen3", "0.8.0", ("reasoning_parser: deepseek_r1", "0.8.0")),
        ("DC501", "tool_call_parser: qwen3_xml", "0.10.0", ("tool_call_parser: hermes", "0.10.0")),
    ],
)
def test_a_key_whose_flag_this_version_lacks_or_reads_otherwise(
    code: str, api: str, version: str, neighbour: tuple[str, str]
) -> None:
    [found] = said(api, version)
    key = api.partition(":")[0]
    assert (found.code, str(found.severity), found.detail.startswith(f"api.{key} is --")) == (code, "error", True)
    assert version in found.detail
    assert said(*neighbour) == []


def test_the_fix_names_the_version_that_brought_it() -> None:
    [found] = said("servers: 2", "0.8.5")
    assert found.fix == "set engine.version: 0.9.1 or a newer one, or remove api.servers"
    [found] = said("reasoning_parser: qwen3", "0.8.5")
    assert found.fix == "write one of deepseek_r1, granite"
