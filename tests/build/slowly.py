"""A worker that waits after every piece that it has written, so that something can happen in the middle of it."""

from __future__ import annotations

from deployc.build import process

SLOW = """
import time
from deployc.build.weights import shard
fast = shard.write
def slow(*given):
    *rest, advance = given
    def late(item, written):
        time.sleep(0.02)
        advance(item, written)
    return fast(*rest, late)
shard.write = slow
"""
"""Goes before the worker's `main()`."""


def bootstrap() -> str:
    """`process.BOOTSTRAP` with that in it."""
    start = "module.main()"
    assert start in process.BOOTSTRAP
    return process.BOOTSTRAP.replace(start, f"{SLOW}\n{start}")
