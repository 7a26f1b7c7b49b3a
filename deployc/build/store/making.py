"""How an artifact comes into the store: `<store>/.building-<key>/` is one being made, held by a lock of its key.

What survives a crash or a power cut at any moment, in the order it happens:
- the store's own folder: each folder that had to be made for it is synced into its parent (`held`);
- a shard: written as `.<name>.partial`, synced, renamed, the folder synced, and only then a synced line of the journal
  says that it is finished. A partial file counts for nothing and goes when the build is begun again;
- a small file and the manifest: temporary name, synced, renamed (`files.write`); the folder is synced before the next;
- the artifact: the folder gets its key's name by one rename when all in it is synced, then the store is synced. Its
  journal goes last: without the rename, the next build finds all shards finished.
The lock is the kernel's: it is free as soon as tool and worker are gone, however they went.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from deployc.build import faults
from deployc.build.store.shelf import MANIFEST, size, write_manifest
from deployc.build.weights.journal import NAME as JOURNAL
from deployc.build.weights.safetensors_file import sync
from deployc.diagnostics import Stop
from deployc.types.manifest import Artifact, Manifest

SPARE = 16 * 2**20
"""Bytes that stay free beside an artifact: journal, manifest, the file system's own needs."""
BUILDING = ".building-"


class Busy(Exception):
    """Another process holds the lock of a key."""


def refuse() -> None:
    """For `held`: do not wait. Raises Busy."""
    raise Busy


@contextmanager
def held(store: Path, key: str, waiting: Callable[[], None]) -> Iterator[int]:
    """Hold the lock of one key; `waiting` is called once where another build has it. Yields the lock's descriptor.

    A child that inherits the descriptor holds the lock too. Raises Stop DC281 where the store cannot be written.
    """
    path = store / f"{BUILDING}{key}.lock"
    try:
        _make(store)
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

    `needed` is the bytes of the whole artifact and of what is made on the way to it; what lies there already counts.
    """
    into = store / f"{BUILDING}{key}"
    into.mkdir(exist_ok=True)
    for path in into.glob(".*.partial"):
        path.unlink()
    there = size(into)
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
    write_manifest(into, manifest)
    for path in into.iterdir():
        if path.name not in (*manifest.files, MANIFEST, JOURNAL):
            _remove(path)
    sync(into)
    final = store / manifest.key
    if final.is_symlink() or final.exists():  # under our key and no artifact, or it would have been taken
        _remove(final)
    into.rename(final)
    sync(store)
    (final / JOURNAL).unlink(missing_ok=True)
    return Artifact(final, manifest)


def abandon(store: Path, key: str) -> None:
    """Remove what an unfinished build left."""
    shutil.rmtree(store / f"{BUILDING}{key}", ignore_errors=True)


def _make(folder: Path) -> None:
    """Make a folder and those above it, each durable in its parent."""
    if folder.is_dir():
        return
    if folder.exists():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    _make(folder.parent)
    folder.mkdir(exist_ok=True)
    sync(folder.parent)


def _remove(path: Path) -> None:
    """A file, a folder with all that is in it, or a link and not what it leads to."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


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
