"""Golden files: text that a person has read and agreed to, compared to the byte."""

from __future__ import annotations

import os
from pathlib import Path


def assert_golden(path: Path, text: str) -> None:
    """The text is that of the file. `DEPLOYC_UPDATE=1` writes the file: read the difference before committing it."""
    if os.environ.get("DEPLOYC_UPDATE"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.exists(), f"{path} is not there; run with DEPLOYC_UPDATE=1 and read it"
    assert text == path.read_text(encoding="utf-8")
