"""What is known beyond one version of the engine: held against the catalogues of the versions themselves."""

from __future__ import annotations

import re
from functools import cache

import pytest
from configured import yaml_of
from handmade import deploy_of

from deployc.facts.catalogue.history import release
from deployc.facts.engine import engine, versions
from deployc.facts.lore import lore
from deployc.types.facts import EngineFacts

NEWEST = versions()[-1]


@cache
def shipped(version: str) -> EngineFacts:
    facts, report = engine(deploy_of(yaml_of(engine=f"{{version: {version}}}")))
    assert facts is not None, [d.detail for d in report]
    return facts


def spelled(version: str) -> set[str]:
    """Every name and alias of a version's flags."""
    return {name for flag in shipped(version).flags.values() for name in (flag.name, *flag.aliases)}


@pytest.mark.parametrize("name", sorted(lore(NEWEST).gone))
def test_a_flag_is_gone_from_the_version_that_is_named_and_not_before(name: str) -> None:
    gone = lore(NEWEST).gone[name]
    after = [v for v in versions() if release(v) >= release(gone.gone)]
    assert after and not [v for v in after if name in spelled(v)]
    before = [v for v in versions() if release(v) < release(gone.gone)]
    assert not before or name in spelled(before[-1])
    assert gone.source
    assert not gone.useless or release(gone.useless) < release(gone.gone)


def test_no_flag_that_went_is_missing() -> None:
    """Nor another spelling of one: what was told of the flag is told of it."""
    assert ("disable-log-requests" in lore("0.32.0").gone, "disable-log-requests" in lore("0.33.0").gone) == (
        True,
        False,
    )
    ever = {name for v in versions() for name in spelled(v)}
    assert ever - spelled(NEWEST) <= lore(NEWEST).gone.keys()
    assert (
        lore(NEWEST).gone["spec-draft-tp"].instead
        == lore(NEWEST).gone["speculative-draft-tensor-parallel-size"].instead
    )


@pytest.mark.parametrize("name", sorted(n for n, gone in lore(NEWEST).gone.items() if gone.instead))
def test_what_to_set_instead_is_there(name: str) -> None:
    """Every flag that an advice names is one of the newest version."""
    instead = lore(NEWEST).gone[name].put("7")
    for word in instead.replace(":", " ").split():
        if word.startswith("engine.args."):
            assert word.removeprefix("engine.args.") in shipped(NEWEST).flags
    for flag, key in re.findall(r"engine\.args\.([a-z-]+): \{(\w+):", instead):
        assert key in lore(NEWEST).keys[flag]
    assert "{value}" not in instead and "{{" not in instead
