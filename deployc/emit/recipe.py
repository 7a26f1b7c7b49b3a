"""What BUILD is to make, and the key that names it in the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace

from deployc.cost.weights.formats import scheme
from deployc.emit.calibration import calibration, measurement, smoothing
from deployc.emit.digest import sha256
from deployc.emit.flags import is_template
from deployc.spec.deploy import Deploy
from deployc.types.bundle import Recipe
from deployc.types.choices import Choices
from deployc.types.facts import Facts

BUILD_FORMAT = 2
"""Raised whenever the same recipe would be built to other bytes, so that older artifacts are not taken for it."""

_WHERE_GIVEN = ("assume", "group_size", "calibration", "smoothquant", "template")
"""No part of the key where they are empty, so that keys of formats that do not know them stay what they were."""


def recipe(deploy: Deploy, facts: Facts, choices: Choices) -> Recipe | None:
    """The recipe of the artifact, None where the source is served as it is."""
    if not choices.needs_build:
        return None
    merged = facts.adapters if choices.adapter_mode.value == "merge" else ()
    weight = {adapter.name: adapter.weight for adapter in deploy.adapters}
    weights = choices.weights.value
    unnamed = Recipe(
        key="",
        model_source=facts.model.source,
        model_hub=facts.model.hub,
        model_revision=facts.model.revision,
        model_files=dict(facts.model.files),
        adapters=tuple((a.name, a.source, a.revision, weight[a.name]) for a in merged),
        adapter_files={f"{a.name}/{path}": content for a in merged for path, content in a.files.items()},
        weights=weights,
        dtype=choices.dtype.value,
        ignore=tuple(deploy.quantization.ignore) if weights != "none" else (),
        assume=facts.model.assume,
        group_size=made.group if (made := scheme(choices)) else 0,
        calibration=calibration(deploy, facts.texts, weights),
        smoothquant=smoothing(deploy, weights),
        template=_template(deploy, facts.texts),
        quality=measurement(deploy, facts.texts) if weights not in ("none", "checkpoint") else None,
    )
    return replace(unnamed, key=_key(unnamed))


def sixteen_bit(recipe: Recipe) -> Recipe:
    """The recipe of the same model before it is quantized, with a key of its own."""
    plain = replace(recipe, weights="none", ignore=(), group_size=0, calibration=None, smoothquant=0.0, quality=None)
    return replace(plain, key=_key(replace(plain, key="")))


def _template(deploy: Deploy, texts: Mapping[str, str]) -> tuple[str, str] | None:
    """api.chat_template: what ends its turns must end generation. None where it is a file that is not there."""
    named = deploy.api.chat_template
    if named is not None and is_template(named):
        return named, f"sha256:{sha256(named)}"
    return (named, texts[named]) if named is not None and named in texts else None


def _key(recipe: Recipe) -> str:
    """sha256 of all that the bytes depend on: not of how they are measured, nor of where a text lies."""
    made_of = {name: value for name, value in asdict(recipe).items() if value or name not in _WHERE_GIVEN}
    del made_of["quality"]
    if "calibration" in made_of:
        del made_of["calibration"]["path"]
    if recipe.template is not None:
        made_of["template"] = recipe.template[1]
    return sha256({"format": BUILD_FORMAT, **made_of})
