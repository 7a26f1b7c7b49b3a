"""Placeholders for what differs from machine to machine, so that launch, files and digest do not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from deployc.emit.quote import PLACEHOLDER

_LONGEST_NAME = 100


class Placeholders:
    """Hands out `${DEPLOYC_MODEL}`, `${DEPLOYC_ADAPTER_<n>}` and `${DEPLOYC_FILE_<n>}`, and keeps what each stands for.

    What one stands for is "store:<key>", "folder:<path>" or "file:<path>", as in `Launch.paths`.
    """

    def __init__(self) -> None:
        self.paths: dict[str, str] = {}

    def model(self, content: str) -> str:
        """The placeholder of the model's folder."""
        self.paths["DEPLOYC_MODEL"] = content
        return "${DEPLOYC_MODEL}"

    def adapter(self, folder: str) -> str:
        """The placeholder of one more adapter folder, path relative to the deploy.yaml."""
        return self._next("DEPLOYC_ADAPTER_", f"folder:{folder}")

    def file(self, path: str) -> str:
        """The placeholder of one more file named in deploy.yaml."""
        return self._next("DEPLOYC_FILE_", f"file:{path}")

    def _next(self, prefix: str, content: str) -> str:
        name = f"{prefix}{sum(taken.startswith(prefix) for taken in self.paths)}"
        self.paths[name] = content
        return f"${{{name}}}"


def is_path(value: str) -> bool:
    """Whether a flag's value names a file beside the deploy.yaml: it starts with `./` or `../`."""
    return value.startswith(("./", "../"))


def in_container(paths: Mapping[str, str]) -> dict[str, str]:
    """Where a container finds each placeholder's content."""
    return {name: f"/deployc/{_place(name, content)}" for name, content in paths.items()}


def in_state_folder(paths: Mapping[str, str], folder: str) -> dict[str, str]:
    """Where a unit finds each placeholder's content: links that `apply` makes in the deployment's state folder."""
    return {name: f"{folder}/{_place(name, content)}" for name, content in paths.items()}


def filled(word: str, places: Mapping[str, str]) -> str:
    """A word of a launch with every placeholder replaced by its place."""
    return PLACEHOLDER.sub(lambda match: places[match[0][2:-1]], word)


def _place(name: str, content: str) -> str:
    kind = name.removeprefix("DEPLOYC_").lower()  # "model" | "adapter_0" | "file_0"
    if not kind.startswith("file_"):
        return kind
    name = re.sub(r"[^A-Za-z0-9._-]", "_", PurePosixPath(content.removeprefix("file:")).name)[-_LONGEST_NAME:]
    return f"{kind}/{name.lstrip('.-') or 'file'}"  # the engine may look at the suffix
