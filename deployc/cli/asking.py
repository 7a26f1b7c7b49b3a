"""Asking before something is lost."""

from __future__ import annotations

import typer


def agreed(question: str) -> bool:
    """The user's answer; no answer is a no."""
    try:
        return typer.confirm(question, err=True)
    except typer.Abort:
        return False
