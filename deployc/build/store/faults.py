"""What can be wrong with the store as a whole, one function a code, so that each summary is written once."""

from __future__ import annotations

from pathlib import Path

from deployc.diagnostics import Diagnostic, error, warning


def unknown_uses(where: str, why: str) -> Diagnostic:
    """A deployment whose history cannot be read: any artifact may be one of its own."""
    detail = f"{where}: {why.rstrip('.')}. Which artifacts it uses is not known."
    fix = "Mend it, or remove it where nothing of it is needed; until then `deployc store gc` removes no artifact."
    return warning("DC289", "a deployment's history cannot be read", detail, fix)


def at_work(who: str, kept: str) -> Diagnostic:
    """A build or an apply that is at work: what it needs is written nowhere yet."""
    return warning("DC290", "the store is being used", f"{who} is at work: {kept}.", "Run it again when that is done.")


def not_removed(path: Path, reason: str) -> Diagnostic:
    """Something that is not needed and cannot be removed."""
    detail = f"{path}: {reason.rstrip('.')}."
    return error("DC291", "a part of the store cannot be removed", detail, "Give this user rights there, then again.")


def no_such_artifact(store: Path, key: str) -> Diagnostic:
    """`store verify` with digits that no finished artifact's key begins with."""
    fix = "`deployc store list` shows the keys; its first digits are enough."
    return error(
        "DC292", "there is no such artifact", f"{store} has no artifact whose key begins with {key!r:.80}.", fix
    )
