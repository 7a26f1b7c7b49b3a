"""The content-addressed store: `<store>/<key>/` is a finished artifact, `<store>/.building-<key>/` one being made.

An artifact appears by one rename, with its manifest in it. A folder without a manifest that fits it is no artifact.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from deployc import files
from deployc.build import faults
from deployc.build.weights.safetensors_file import sha256, sync_folder
from deployc.diagnostics import Diagnostic, Stop
from deployc.facts.codec import Malformed, decode, encode
from deployc.spec.deploy import Deploy
from deployc.types.manifest import Artifact, Manifest

MANIFEST = "manifest.json"
READABLE = 0o644
"""Mode of an artifact's files: a container's user and a unit's must read them."""
FORMAT_VERSION = "1.0"
SPARE = 16 * 2**20
"""Bytes that stay free beside an artifact: journal, manifest, the file system's own needs."""
_KEY = re.compile(r"[0-9a-f]{64}")


def locate(deploy: Deploy, env: Mapping[str, str]) -> Path:
    """`build.store`, relative to the deploy.yaml; else `$XDG_CACHE_HOME/deployc/store` (a relative one is ignored)."""
    if deploy.build.store != "auto":
        named = deploy.build.store
        return (Path(deploy.folder) / (files.home(env) / named[2:] if named.startswith("~/") else named)).absolute()
    cache = Path(env.get("XDG_CACHE_HOME", ""))
    return (cache if cache.is_absolute() else files.home(env) / ".cache") / "deployc" / "store"


def artifact_for(store: Path, key: str) -> Artifact | None:
    """The finished artifact of a recipe, None where there is none. Sizes are compared, not content: see `verify`."""
    manifest, _ = _manifest(store / key, key)
    return None if manifest is None else Artifact(store / key, manifest)


def artifacts(store: Path) -> list[Artifact]:
    """Every finished artifact, the latest first."""
    found = [artifact for key in _keys(store) if (artifact := artifact_for(store, key)) is not None]
    return sorted(found, key=lambda artifact: artifact.manifest.built_at, reverse=True)


def verify(store: Path, key: str) -> list[Diagnostic]:
    """DC280 for every file of an artifact that is not what the manifest says: all of it is read and hashed."""
    path = store / key
    manifest, wrong = _manifest(path, key)
    if manifest is None:
        return [faults.damaged(path, wrong)]
    found = []
    for name, content in manifest.files.items():
        if (have := sha256(path / name)) != content.sha256:
            found.append(
                faults.damaged(path, f"{name} has sha256 {have[:12]}…, its manifest says {content.sha256[:12]}….")
            )
    extra = {p.name for p in path.iterdir()} - set(manifest.files) - {MANIFEST}
    if extra:
        found.append(faults.damaged(path, f"{', '.join(sorted(extra))} does not belong to it."))
    return found


def damaged(store: Path) -> list[Diagnostic]:
    """DC280 for every folder under a key's name that is no artifact."""
    found = []
    for key in _keys(store):
        manifest, wrong = _manifest(store / key, key)
        if manifest is None:
            found.append(faults.damaged(store / key, wrong))
    return found


@contextmanager
def held(store: Path, key: str, waiting: Callable[[], None]) -> Iterator[int]:
    """Hold the lock of one key; `waiting` is called once where another build has it. Yields the lock's descriptor.

    A child that inherits the descriptor holds the lock too. Raises Stop DC281 where the store cannot be written.
    """
    path = store / f".building-{key}.lock"
    try:
        store.mkdir(parents=True, exist_ok=True)
        descriptor = _lock(path, waiting)
    except OSError as wrong:
        raise Stop(faults.bad_store(store, wrong.strerror or str(wrong))) from None
    try:
        yield descriptor
    finally:
        path.unlink(missing_ok=True)  # whoever waits on the old file sees that and takes the new one
        os.close(descriptor)


def begin(store: Path, key: str, needed: int) -> Path:
    """The folder to build in, with the finished shards of an interrupted build. Raises Stop DC272.

    `needed` is the bytes of the whole artifact; what lies there already counts.
    """
    into = store / f".building-{key}"
    into.mkdir(exist_ok=True)
    for path in into.glob(".*.partial"):
        path.unlink()
    there = sum(path.stat().st_size for path in into.iterdir())
    try:
        check_space(into, max(needed - there, 0))
    except Stop:
        if not there:
            into.rmdir()
        raise
    return into


def check_space(folder: Path, needed: int) -> None:
    """Raises Stop DC272 where a disk has not `needed` bytes and SPARE more, before the first one is written."""
    disk = os.statvfs(folder)
    if (free := disk.f_bavail * disk.f_frsize) < needed + SPARE:
        raise Stop(faults.too_little_disk(folder, free, needed + SPARE))


def publish(store: Path, into: Path, manifest: Manifest) -> Artifact:
    """Write the manifest and make the folder an artifact by one rename; what the manifest does not list goes."""
    files.write(into / MANIFEST, json.dumps(encode(manifest), indent=2, ensure_ascii=False) + "\n", READABLE)
    for path in into.iterdir():
        if path.name not in manifest.files and path.name != MANIFEST:
            path.unlink()
    sync_folder(into)
    final = store / manifest.key
    if final.exists():  # under our key and no artifact, or it would have been taken
        shutil.rmtree(final)
    into.rename(final)
    sync_folder(store)
    return Artifact(final, manifest)


def abandon(store: Path, key: str) -> None:
    """Remove what an unfinished build left."""
    shutil.rmtree(store / f".building-{key}", ignore_errors=True)


def _lock(path: Path, waiting: Callable[[], None]) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            with suppress(FileNotFoundError):  # its holder removed it: lock the one that is there now
                if path.stat().st_ino == os.fstat(descriptor).st_ino:
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _keys(store: Path) -> list[str]:
    return sorted(p.name for p in store.iterdir() if _KEY.fullmatch(p.name)) if store.is_dir() else []


def _manifest(path: Path, key: str) -> tuple[Manifest | None, str]:
    """The manifest of a folder, or why it is no artifact."""
    try:
        manifest = decode(Manifest, json.loads((path / MANIFEST).read_bytes()))
    except OSError as wrong:
        return None, f"{MANIFEST}: {wrong.strerror}."
    except Malformed as wrong:
        return None, f"{MANIFEST}: {wrong.where}: {wrong.why}."
    except (ValueError, RecursionError):
        return None, f"{MANIFEST} is no JSON."
    if manifest.format_version != FORMAT_VERSION or manifest.key != key or "config.json" not in manifest.files:
        return None, f"{MANIFEST} is of {manifest.key[:12]}…, format {manifest.format_version}."
    for name, content in manifest.files.items():
        file = path / name
        if "/" in name or not file.is_file() or file.stat().st_size != content.bytes:
            return None, f"{name} is missing or has another size than {content.bytes:,} bytes."
    return manifest, ""
