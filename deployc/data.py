"""Finds the data that ships with the tool: templates/, schemas/, profiles/, docs/codes/, here or inside the wheel."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def data_root() -> Path:
    """The folder that holds templates/, schemas/, profiles/, docs/: `deployc/_data` in a wheel, else the checkout."""
    package = Path(__file__).resolve().parent
    shipped = package / "_data"
    return shipped if shipped.is_dir() else package.parent


def templates() -> Path:
    """Jinja2 templates, one a file kind."""
    return data_root() / "templates"


def schemas() -> Path:
    """JSON Schemas generated from the models."""
    return data_root() / "schemas"


def profiles() -> Path:
    """GPU figures, engine catalogues and calibration, each figure with its source."""
    return data_root() / "profiles"


def pages() -> Path:
    """What each code of a diagnostic means, one Markdown file a code; in Chinese in zh/."""
    return data_root() / "docs" / "codes"
