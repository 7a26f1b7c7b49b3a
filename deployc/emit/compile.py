"""The bundle: launches, recipe and files under one digest, or the reasons why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from deployc.diagnostics import Report
from deployc.emit.check import check, unquotable
from deployc.emit.digest import PENDING, sha256
from deployc.emit.environment import secrets, variables
from deployc.emit.files import Shipment, files
from deployc.emit.flags import engine_flags
from deployc.emit.launch import Engine, launches
from deployc.emit.manifest import manifest
from deployc.emit.paths import Placeholders
from deployc.emit.quote import Unquotable
from deployc.emit.recipe import recipe as to_recipe
from deployc.emit.source import source as to_source
from deployc.emit.timing import timing as to_timing
from deployc.spec.deploy import Deploy
from deployc.types.bundle import Bundle, Launch, Recipe
from deployc.types.choices import Choices
from deployc.types.facts import Facts
from deployc.types.prediction import Prediction


def compile_bundle(
    deploy: Deploy, facts: Facts, choices: Choices, prediction: Prediction
) -> tuple[Bundle | None, Report]:
    """Everything that is shipped, as text; None where a value cannot be shipped as written.

    All files are made for every target, so that the digest does not depend on who asks, and a target's change shows in
    the launches alone. The prediction serves only for how long to wait at start and stop.
    """
    report = check(deploy, facts, choices)
    kind = deploy.target.kind
    if report.errors or kind == "kubernetes":
        return None, report
    places = Placeholders()
    recipe = to_recipe(deploy, facts, choices)
    source = to_source(deploy, facts, choices, recipe, places, report)
    timing = to_timing(deploy, prediction)
    engine = Engine(
        model=source.model,
        flags=engine_flags(deploy, facts, choices, source, timing, places),
        variables=variables(deploy, choices, source),
        secrets=secrets(deploy, source),
        paths=places.paths,
    )
    host = launches(deploy, facts, choices, engine, container=False)
    container = launches(deploy, facts, choices, engine, container=True)
    chosen = container if kind in ("docker", "compose") else host
    try:
        texts = files(Shipment(deploy, facts, host, container, timing))
    except Unquotable as refused:
        report.add(unquotable(refused, deploy.at("engine")))
        return None, report
    texts["manifest.json"] = manifest(deploy, facts, recipe, chosen, engine.variables)
    digest = bundle_digest(texts, chosen, recipe)
    texts = {path: text.replace(PENDING, digest) for path, text in sorted(texts.items())}
    return Bundle(deploy.name, f"sha256:{digest}", texts, chosen, recipe, kind), report


def bundle_digest(texts: Mapping[str, str], chosen: tuple[Launch, ...], recipe: Recipe | None) -> str:
    """64 hex digits over the files (their digest still pending), the launches and the recipe."""
    return sha256(
        {
            "files": dict(texts),
            "launches": [asdict(launch) for launch in chosen],
            "recipe": None if recipe is None else asdict(recipe),
        }
    )
