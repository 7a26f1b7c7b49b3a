"""Attention backends: read where a version's enumeration of them stands, or the sources are said to be unreadable."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_engine import small_engine

from deployc.data import profiles
from deployc.facts.catalogue import Unreadable
from deployc.facts.catalogue.backends import backends
from deployc.facts.catalogue.history import at
from deployc.facts.catalogue.source import Tree

OLD = """
class _Backend(enum.Enum):
    FLASH_ATTN = enum.auto()
    XFORMERS = enum.auto()
"""


def test_the_members_of_the_enumeration(tmp_path: Path) -> None:
    assert list(backends(small_engine(tmp_path))) == ["CUSTOM", "FLASH_ATTN", "TRITON_ATTN"]


@pytest.mark.parametrize("place", ["vllm/platforms/interface.py", "vllm/attention/backends/registry.py"])
def test_where_older_versions_have_it(place: str, tmp_path: Path) -> None:
    path = tmp_path / place
    path.parent.mkdir(parents=True)
    path.write_text(OLD)
    assert list(backends(Tree(tmp_path))) == ["FLASH_ATTN", "XFORMERS"]


def test_sources_without_one_are_not_read(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="no attention backends"):
        backends(Tree(tmp_path))


@pytest.mark.parametrize(
    ("name", "has", "lacks"),
    [
        ("XFORMERS", "0.9.2", "0.33.0"),  # vllm/platforms/interface.py:45 in 0.9.2
        ("CPU_ATTN", "0.11.1", "0.11.0"),  # vllm/attention/backends/registry.py in 0.11.1
        ("FLASH_ATTN_VLLM_V1", "0.8.0", "0.11.0"),  # vllm/platforms/interface.py:31 in 0.8.0
    ],
)
def test_what_ships(name: str, has: str, lacks: str) -> None:
    history = json.loads((profiles() / "engines" / "vllm" / "backends.json").read_bytes())
    assert name in at(history, has)
    assert name not in at(history, lacks)
