"""The content-addressed store of artifacts.

In: a key and what was built. Out: a folder that is whole or is none; what nothing needs any more, and its removal.
"""

from deployc.build.store.making import SPARE, abandon, begin, check_space, held, publish
from deployc.build.store.shelf import (
    FORMAT_VERSION,
    MANIFEST,
    READABLE,
    artifact_for,
    artifacts,
    damaged,
    locate,
    verify,
)

__all__ = [
    "FORMAT_VERSION", "MANIFEST", "READABLE", "SPARE", "abandon", "artifact_for", "artifacts", "begin", "check_space",
    "damaged", "held", "locate", "publish", "verify",
]  # fmt: skip
