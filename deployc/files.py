"""Files that are either the old or the new content, never half of one."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deployc.diagnostics import Stop, error


def home(env: Mapping[str, str]) -> Path:
    """$HOME, else the user's own entry among the system's users; Stop where there is neither, as in some containers."""
    try:
        return Path(env.get("HOME") or Path.home())
    except RuntimeError:
        detail = f"HOME is not set, and user {os.getuid()} is not among the system's users"
        raise Stop(error("DC617", "No home folder is known", detail, "export HOME=/a/folder/of/yours")) from None


def beside(folder: Path, written: str) -> Path:
    """The absolute path that a deploy.yaml in `folder` names; `~` is home, `~name` of nobody stays as it is."""
    return (folder / os.path.expanduser(written)).absolute()  # noqa: PTH111  Path's own raises for an unknown name


def write(path: Path, content: str | bytes, mode: int = 0o600) -> None:
    """Replace a file whole: a temporary file in the same folder, synced, then renamed. Text is UTF-8."""
    # backslashreplace: JSON's own escape for half a surrogate pair, which UTF-8 cannot hold
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Replace a JSON file whole."""
    write(path, json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in a JSON file; None where there is no file; Stop where it holds something else."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(document, dict):
            raise ValueError(f"holds {type(document).__name__}, not an object")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as wrong:
        detail = f"{path}: {wrong}; this tool writes the file whole, so something else changed it"
        raise Stop(error("DC630", "A state file is damaged", detail, f"look at {path}; without it, the engine it named "
                         "counts as not running")) from wrong  # fmt: skip
    return document


def is_locked(path: Path) -> bool:
    """Whether another process holds a lock on a file; nothing is changed by looking. Raises PermissionError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
