"""200 flags drawn at random, each against a version drawn at random: what is said is what that version's parser does.

The parsers are the versions' own, recorded by running their code. Names are those of all versions, with those that
went and those that were to come, spelled as people spell them, and names that no version has.
"""

from __future__ import annotations

import random
from dataclasses import replace

import parsers
import pytest
from handmade import QWEN_ON_4090, choices, deploy_of, facts, prediction

from deployc.facts.engine import load
from deployc.facts.lore import lore
from deployc.rules.case import Case
from deployc.rules.flags import known

SEED, PAIRS = 20260131, 200
ALL = sorted({name for version in parsers.VERSIONS for name in parsers.spellings(version)})
EVER = sorted({name for version in parsers.VERSIONS for name in parsers.actions(version)})
MADE_UP = (
    "max-model-length", "max-batch-size", "gpu-mem", "num-gpu", "quantisation", "tensor-paralel-size", "n-gpu-layers",
    "ctx-size", "flash-attn", "kv-cache-type", "max-total-tokens", "sharded", "num-shard", "enable-lora-modules",
    "max-running-requests", "mem-fraction-static", "tp-size-auto", "chunked-prefill", "speculative-model-path",
    "no-max-model-len", "no-port",
)  # fmt: skip
BEFORE = ("worker-use-ray", "engine-use-ray", "quantization-param-path", "max-context-len-to-capture")
"""They went before 0.8, the oldest version that was recorded."""


def drawn() -> list[tuple[str, str]]:
    """(flag as written, version): three in five are of some version, the others of none or of one before all."""
    dice = random.Random(SEED)
    pairs = []
    for index in range(PAIRS):
        name = dice.choice(ALL if index % 5 < 3 else EVER if index % 5 == 3 else MADE_UP + BEFORE)
        written = dice.choice([name, name, name.replace("-", "_"), f"--{name}"])
        pairs.append((written, dice.choice(parsers.VERSIONS)))
    return pairs


def verdict(written: str, version: str) -> str:
    """The code that is said of the flag; "" where it is taken."""
    text = QWEN_ON_4090.replace("0.32.0", f"{version}\n  args: {{'{written}': 1}}")
    of_version = replace(facts(), engine=load(version), lore=lore(version))
    found = list(known(Case(deploy_of(text), of_version, choices(), prediction())))
    assert len(found) <= 1
    return found[0].code if found else ""


def expected(written: str, version: str) -> str:
    """By the recorded parsers alone: DC502 once there was one, DC507 while there is none yet, DC500 where never."""
    name = written.lstrip("-").replace("_", "-")
    if name in parsers.spellings(version):
        return ""
    switch = parsers.actions(version).get(name.removeprefix("no-"))
    if switch and parsers.kind(switch) == "bool":
        return ""  # `no-x: true` is `x: false`: where x has no twin it is left out
    index = parsers.VERSIONS.index(version)
    if name in BEFORE or any(name in parsers.spellings(one) for one in parsers.VERSIONS[:index]):
        return "DC502"
    return "DC507" if any(name in parsers.spellings(one) for one in parsers.VERSIONS[index:]) else "DC500"


@pytest.mark.parametrize(("written", "version"), drawn())
def test_a_flag_is_judged_as_the_versions_own_parser_does(written: str, version: str) -> None:
    assert verdict(written, version) == expected(written, version)


@pytest.mark.parametrize(("written", "version"), drawn())
def test_an_alias_is_the_flag_it_stands_for(written: str, version: str) -> None:
    """A short form, an older name and a `no-` twin are the flag's own; what is none stays what it is."""
    name = written.lstrip("-").replace("_", "-")
    assert load(version).canonical(written) == parsers.spellings(version).get(name, name)


def test_the_draw_has_every_kind() -> None:
    """Of each verdict a good many, and of versions nearly all."""
    told = [expected(*pair) for pair in drawn()]
    assert {code: told.count(code) >= 15 for code in ("", "DC500", "DC502", "DC507")} == dict.fromkeys(
        ("", "DC500", "DC502", "DC507"), True
    )
    assert len({version for _, version in drawn()}) > 0.9 * len(parsers.VERSIONS)
    assert len(set(drawn())) > 0.95 * PAIRS
