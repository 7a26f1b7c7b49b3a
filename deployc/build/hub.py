"""Weights of a hub's repository at its pinned commit, kept in the store under `sources/<hub>/<owner>/<name>/<commit>/`.

Hugging Face by huggingface_hub's own downloader, ModelScope by ranges of its HTTP API; both go on after what an
interrupted download left, and a folder that is complete needs no network.
"""

from __future__ import annotations

import glob
import hashlib
import json
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from deployc.build import faults
from deployc.build.store import check_space
from deployc.diagnostics import Stop
from deployc.facts.faults import Fault
from deployc.facts.headers import INDEX
from deployc.facts.source import SMALL
from deployc.types.manifest import Progress

if TYPE_CHECKING:
    from deployc.facts.huggingface import HuggingFace
    from deployc.facts.modelscope import ModelScope
    from deployc.facts.opening import Access

Watch = Callable[[Progress], None]
RANGE = 32 * 2**20
"""Bytes asked for at once; each range is tried again by itself."""
_BEAT = 0.2  # seconds between two looks at how much has come


def fetch(
    source: str, revision: str | None, pins: Mapping[str, str], access: Access | None, store: Path, progress: Watch
) -> Path:
    """The folder with the pinned files of a repository. Raises Stop: what the hub answers, DC277, DC287; OSError."""
    if access is None or revision is None or not pins:
        raise Stop(faults.unpinned(source))
    folder = store / "sources" / access.hub / source / revision
    folder.mkdir(parents=True, exist_ok=True)
    try:
        small = [name for name in pins if not name.endswith(".safetensors")]
        _complete(source, revision, small, pins, access, folder, progress)
        _complete(source, revision, _weights(pins, folder), pins, access, folder, progress)
    except Fault as fault:
        raise Stop(fault.diagnostic) from None
    except OSError as full:
        if full.errno in faults.FULL:  # what is half there would only keep the disk full
            shutil.rmtree(folder / ".cache", ignore_errors=True)
            for part in folder.glob(".*.partial"):
                part.unlink()
        raise
    if wrong := sorted(name for name in small if not _fits(folder / name, pins[name])):
        for name in wrong:
            (folder / name).unlink()
        raise Stop(faults.changed_inputs(f"{source} at {revision[:12]}", wrong))
    return folder


def _complete(
    source: str,
    revision: str,
    names: list[str],
    pins: Mapping[str, str],
    access: Access,
    folder: Path,
    progress: Watch,
) -> None:
    """Fetch those of the files that are not there. Raises Fault, Stop DC272."""
    from deployc.facts.opening import open_hub

    missing = [name for name in names if not (folder / name).is_file()]
    if not missing:
        return
    hub = open_hub(access, source, revision)
    listed = hub.files()
    if gone := sorted(set(missing) - set(listed)):
        raise Stop(faults.changed_inputs(hub.where, gone))
    sizes = {name: listed[name].size for name in missing}
    check_space(folder, sum(sizes.values()))
    with _watched(folder, sizes, progress):
        if access.hub == "huggingface":
            _huggingface(hub, access, source, revision, missing, folder)  # type: ignore[arg-type]
        else:
            for name in missing:
                _by_range(hub, name, sizes[name], pins[name], folder)  # type: ignore[arg-type]


def _huggingface(hub: HuggingFace, access: Access, source: str, revision: str, names: list[str], folder: Path) -> None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()  # the command line shows its own

    def download() -> OSError | None:
        try:
            snapshot_download(
                source,
                revision=revision,
                endpoint=access.endpoint,
                token=access.token or False,
                local_dir=folder,
                allow_patterns=[glob.escape(name) for name in names],
                library_name="deployc",
            )
        except OSError as wrong:
            if wrong.errno in faults.FULL:
                return wrong  # no fault of the hub
            raise
        except RuntimeError as wrong:  # what the library's own transfer protocol raises
            raise ConnectionError(str(wrong)) from None
        return None

    if (full := hub.asked(download, revision, "the weights")) is not None:
        raise full


def _by_range(hub: ModelScope, name: str, size: int, pin: str, folder: Path) -> None:
    """One file, by ranges appended to `.<name>.partial`; renamed once its sha256 is the pinned one."""
    temporary = folder / f".{name}.partial"
    with temporary.open("ab") as file:
        at = file.tell()
        while at < size:
            file.write(hub.range(name, at, min(at + RANGE, size)))
            at = file.tell()
    if not _fits(temporary, pin):
        temporary.unlink()
        raise Stop(faults.changed_inputs(hub.where, [name]))
    temporary.replace(folder / name)


@contextmanager
def _watched(folder: Path, sizes: Mapping[str, int], progress: Watch) -> Iterator[None]:
    """Tell how many bytes have come, by looking: it serves any downloader."""
    total, before, done = sum(sizes.values()), _bytes(folder), threading.Event()

    def look() -> None:
        while not done.wait(_BEAT):
            progress(Progress("download", min(_bytes(folder) - before, total), total, folder.parent.name))

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
        done.set()
        watcher.join()
        progress(Progress("download", total, total, folder.parent.name))
    finally:
        done.set()


def _bytes(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:  # renamed since it was listed
            continue
    return total


def _weights(pins: Mapping[str, str], folder: Path) -> list[str]:
    """The files that hold the weights: an adapter's, those of the index, or the single one."""
    if INDEX in pins:
        try:
            placed = json.loads((folder / INDEX).read_bytes())["weight_map"]
            return sorted(set(placed.values()) & set(pins))
        except (ValueError, TypeError, KeyError, AttributeError):
            return []  # the check of the folder says what is wrong with its index
    return [name for name in ("model.safetensors", "adapter_model.safetensors") if name in pins]


def _fits(path: Path, pin: str) -> bool:
    """Whether a file is what its pin says; "etag:" is git's blob id. A large file with no sha256 cannot be told."""
    kind, _, value = pin.partition(":")
    if kind == "sha256":
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == value
    if kind == "etag" and len(value) == 40 and path.stat().st_size <= SMALL:
        content = path.read_bytes()
        return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest() == value
    return True
