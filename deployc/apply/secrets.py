"""Secrets on this host: read from their references at apply, kept 0600 below the state folder, one folder an apply.

They reach the engine through its environment; no argument, log, bundle or history holds one.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from deployc import files
from deployc.apply.state import State
from deployc.diagnostics import Report, error


def resolve(references: Mapping[str, str], folder: Path, env: Mapping[str, str]) -> tuple[dict[str, str], Report]:
    """The values of `{NAME: "env:VARIABLE" | "file:PATH"}`; a path is relative to the deploy.yaml's folder."""
    values, report = {}, Report()
    for name, reference in references.items():
        kind, _, place = reference.partition(":")
        value, wrong = _from_env(place, env) if kind == "env" else _from_file(files.beside(folder, place))
        if value is not None:
            values[name] = value
        else:
            fix = f"export {place}" if kind == "env" else "write the secret there, readable by you alone"
            report.add(error("DC634", "A secret cannot be read", f"{reference}, for the engine's {name}: {wrong}", fix))
    return values, report


def store(state: State, entry: str, values: Mapping[str, str]) -> None:
    """Keep the secrets of one apply."""
    folder = state.secrets / entry
    folder.mkdir(mode=0o700, exist_ok=True)
    for name, value in values.items():
        files.write(folder / name, value)


def kept(state: State, entry: str) -> dict[str, str]:
    """The secrets that one apply gave its engine."""
    folder = state.secrets / entry
    if not folder.is_dir():
        return {}
    return {file.name: file.read_text(encoding="utf-8") for file in folder.iterdir() if not file.name.startswith(".")}


def forget(state: State, *, but: tuple[str, ...] = ()) -> None:
    """Remove the secrets of every apply but those named."""
    for folder in state.secrets.iterdir() if state.secrets.is_dir() else ():
        if folder.name not in but:
            shutil.rmtree(folder)


def _from_env(variable: str, env: Mapping[str, str]) -> tuple[str | None, str]:
    value = env.get(variable)
    if value is None:
        return None, f"the variable {variable} is not set"
    return _checked(value)


def _from_file(path: Path) -> tuple[str | None, str]:
    try:
        return _checked(path.read_text(encoding="utf-8").rstrip("\r\n"))
    except UnicodeDecodeError:
        return None, "the file is not UTF-8 text"
    except OSError as failure:
        return None, failure.strerror or str(failure)


def _checked(value: str) -> tuple[str | None, str]:
    if not value:
        return None, "it is empty"
    if any(character in value for character in "\0\r\n"):
        return None, "it holds a line break, which neither a header nor the environment can carry"
    return value, ""
