"""Keys of flags that take a map, read from the config classes."""

from __future__ import annotations

from pathlib import Path

from small_engine import small_engine

from deployc.facts.catalogue.maps import maps


def test_fields_that_can_be_given_and_whether_others_are_refused(tmp_path: Path) -> None:
    assert maps(small_engine(tmp_path)) == {
        "compilation-config.cudagraph_mode": {"refused": True},
        "compilation-config.mode": {"refused": True},
        "speculative-config.method": {"refused": True},
        "speculative-config.num_speculative_tokens": {"refused": True},
    }


def test_a_config_that_forbids_nothing_drops_what_it_does_not_know(tmp_path: Path) -> None:
    read = small_engine(tmp_path)
    (read.root / "vllm/config/utils.py").write_text("def config(cls):\n    return dataclass(cls)\n")
    assert maps(read)["compilation-config.mode"] == {}
