"""What BUILD is to make, and the key that names it in the store."""

from __future__ import annotations

from dataclasses import asdict, replace

from deployc.emit.digest import sha256
from deployc.spec.deploy import Deploy
from deployc.types.bundle import Recipe
from deployc.types.choices import Choices
from deployc.types.facts import Facts

BUILD_FORMAT = 1
"""Raised whenever the same recipe would be built to other bytes, so that older artifacts are not taken for it."""


def recipe(deploy: Deploy, facts: Facts, choices: Choices) -> Recipe | None:
    """The recipe of the artifact, None where the source is served as it is."""
    if not choices.needs_build:
        return None
    merged = facts.adapters if choices.adapter_mode.value == "merge" else ()
    weight = {adapter.name: adapter.weight for adapter in deploy.adapters}
    unnamed = Recipe(
        key="",
        model_source=facts.model.source,
        model_hub=facts.model.hub,
        model_revision=facts.model.revision,
        model_files=dict(facts.model.files),
        adapters=tuple((a.name, a.source, a.revision, weight[a.name]) for a in merged),
        adapter_files={f"{a.name}/{path}": content for a in merged for path, content in a.files.items()},
        weights=choices.weights.value,
        dtype=choices.dtype.value,
        ignore=tuple(deploy.quantization.ignore),
        assume=facts.model.assume,
    )
    made_of = {name: value for name, value in asdict(unnamed).items() if value or name != "assume"}
    return replace(unnamed, key=sha256({"format": BUILD_FORMAT, **made_of}))
