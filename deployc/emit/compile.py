"""The bundle: launches, recipe and files under one digest, or the reasons why there is none."""

from __future__ import annotations

from deployc.diagnostics import Report
from deployc.emit.check import check, too_long
from deployc.emit.environment import secrets, variables
from deployc.emit.flags import engine_flags
from deployc.emit.launch import Engine, launches, program
from deployc.emit.manifest import inputs
from deployc.emit.paths import Placeholders
from deployc.emit.recipe import recipe as to_recipe
from deployc.emit.shipment import Shipment, digest
from deployc.emit.source import source as to_source
from deployc.emit.texts import Texts
from deployc.emit.timing import timing
from deployc.spec.deploy import Deploy
from deployc.types.bundle import Bundle
from deployc.types.choices import Choices
from deployc.types.facts import Facts
from deployc.types.prediction import Prediction


def compile_bundle(
    deploy: Deploy, facts: Facts, choices: Choices, prediction: Prediction
) -> tuple[Bundle | None, Report]:
    """Everything that is shipped, as text; None where a value cannot be shipped as written.

    The files of every target are in every bundle. The prediction serves only for how long to wait at start and stop.
    """
    report = check(deploy, facts, choices)
    kind = deploy.target.kind
    if report.errors or kind == "kubernetes":
        return None, report
    places = Placeholders()
    recipe = to_recipe(deploy, facts, choices)
    source = to_source(deploy, facts, choices, recipe, places, report)
    downloads = sum(group.bytes for group in facts.model.tensors) if source.downloads else 0
    waits = timing(deploy, prediction, downloads)
    engine = Engine(
        model=source.model,
        flags=engine_flags(deploy, facts, choices, source, waits, places),
        variables=variables(deploy, choices, source),
        secrets=secrets(deploy, source),
        paths=places.paths,
    )
    outside = launches(deploy, facts, choices, engine, container=False)
    report.extend(too_long(deploy, outside[0]))
    if report.errors:
        return None, report
    shipment = Shipment(
        name=deploy.name,
        target=kind,
        engine=facts.engine.name,
        version=facts.engine.version,
        image=deploy.engine.image or facts.engine.image,
        bake=deploy.target.image_mode == "bake" and "DEPLOYC_MODEL" in places.paths,
        state=_unit_folder(deploy),
        program=program(facts, source.model),
        host=outside,
        container=launches(deploy, facts, choices, engine, container=True),
        timing=waits,
        recipe=recipe,
        variables=engine.variables,
        inputs=inputs(facts),
    )
    sum256 = digest(shipment)
    texts = Texts(shipment, sum256)
    return Bundle(deploy.name, f"sha256:{sum256}", texts, shipment.launches, recipe, kind, downloads), report


def _unit_folder(deploy: Deploy) -> str:
    """Where a unit runs from: another target's state may lie beside the deploy.yaml, a unit's cannot."""
    own = deploy.target.kind == "systemd" and deploy.target.state != "auto"
    return deploy.target.state if own else f"/var/lib/deployc/{deploy.name}"
