"""The catalogue against the parser of every version, recorded by running that version's own code."""

from __future__ import annotations

from collections.abc import Iterator

import parsers
import pytest

from deployc.facts.engine import load, versions
from deployc.types.facts import Flag

UNKNOWN = {
    "log-error-stack": "of an environment variable",
    "mm-hasher-algorithm": "of an environment variable",
    "ssl-cert-reqs": "a constant of Python's ssl",
    "limit-mm-per-prompt": "a field behind a cast",
    "compilation-config": "a configuration that prints itself as a map",
}
"""Options whose default the catalogue leaves out although the parser has a plain one."""
OF_THE_DEVICE = {"mm-processor-device"}
"""Its choices hang on the device at hand."""
BY_CHANCE = {"guided-decoding-backend"}
"""Of two sets of choices the parser takes one, another in the next process; the catalogue has those of the V1 engine,
which are in both."""


def test_every_version_was_recorded() -> None:
    assert versions() == parsers.VERSIONS


@pytest.mark.parametrize("version", parsers.VERSIONS)
def test_names_are_those_of_the_parser(version: str) -> None:
    """All of them and no others, aliases and twins too."""
    ours = {spelled: flag.name for flag in load(version).flags.values() for spelled in (flag.name, *flag.aliases)}
    assert ours == parsers.spellings(version)


@pytest.mark.parametrize("version", parsers.VERSIONS)
def test_type_choices_and_default_are_those_of_the_parser(version: str) -> None:
    flags = load(version).flags
    assert [line for name in parsers.actions(version) for line in differing(version, flags[name])] == []


def differing(version: str, flag: Flag) -> Iterator[str]:
    action = parsers.actions(version)[flag.name]
    if flag.type != parsers.kind(action):
        yield f"{flag.name}: {flag.type}, not {parsers.kind(action)}"
    chance = flag.name in BY_CHANCE and set(flag.choices) <= parsers.choices(action)
    if set(flag.choices) != parsers.choices(action) and flag.name not in OF_THE_DEVICE and not chance:
        yield f"{flag.name}: {flag.choices}, not {parsers.choices(action)}"
    known = action.get("default", "").startswith("<") or (flag.default is None and flag.name in UNKNOWN)
    if flag.default != parsers.default(action) and not known:
        yield f"{flag.name}: {flag.default!r}, not {parsers.default(action)!r}"
