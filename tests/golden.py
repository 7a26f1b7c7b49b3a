"""Golden files: text that a person has read and agreed to, compared to the byte."""

from __future__ import annotations

from pathlib import Path


def assert_golden(path: Path, text: str, update: bool) -> None:
    """The text is that of the file; with `--update` the file is written instead."""
    if update:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.exists(), f"{path} is not there; run pytest --update and read it"
    assert text == path.read_text(encoding="utf-8")
