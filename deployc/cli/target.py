"""What a command needs to look at or act on the target of an analysed file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from deployc.types.plan import Observed

if TYPE_CHECKING:
    from deployc.pipeline import Analysis

ACTS_ON = "process"
"""The one kind of target that `apply` acts on in this version."""


def observe(analysis: Analysis) -> Observed:
    """What runs now; incomplete, with the reason, where this version cannot look at that kind of target."""
    from deployc.apply.observe import observe as look
    from deployc.apply.state import locate
    from deployc.build.store import artifact_for
    from deployc.build.store import locate as store

    deploy = analysis.deploy
    if deploy is None or deploy.target.kind != ACTS_ON:
        kind = deploy.target.kind if deploy else "unknown"
        recipe = analysis.bundle.recipe if analysis.bundle else None
        built = artifact_for(store(deploy, os.environ), recipe.key) if deploy and recipe else None
        quality = built.manifest.quality if built else None
        detail = f"looking at a {kind} target is not supported yet"
        return Observed(None, None, complete=False, quality=quality, detail=detail)
    return look(analysis.bundle, locate(deploy, analysis.path.parent, os.environ), store(deploy, os.environ))
