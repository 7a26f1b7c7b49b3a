"""What the engine loads: the artifact, a folder or a hub id at its pinned commit, and the adapters it serves."""

from __future__ import annotations

from dataclasses import dataclass

from deployc.diagnostics import Report, warning
from deployc.emit.arguments import flag
from deployc.emit.paths import Placeholders
from deployc.spec.deploy import Deploy
from deployc.types.bundle import EngineFlag, Recipe
from deployc.types.choices import Choices
from deployc.types.facts import AdapterFacts, Facts


@dataclass(frozen=True, slots=True)
class Source:
    """`model` is the engine's model argument, `adapters` are the values of `--lora-modules`.

    `downloads` = the engine itself fetches something from a hub when it starts.
    """

    model: str
    adapters: tuple[str, ...]
    flags: tuple[EngineFlag, ...]
    downloads: bool


def source(
    deploy: Deploy, facts: Facts, choices: Choices, recipe: Recipe | None, places: Placeholders, report: Report
) -> Source:
    """Where weights and adapters come from when the engine starts."""
    model, flags, downloads = _model(deploy, facts, recipe, places)
    served = facts.adapters if choices.adapter_mode.value == "serve" else ()
    adapters = []
    for index, adapter in enumerate(served):
        if adapter.revision is None:
            adapters.append(f"{adapter.name}={places.adapter(adapter.source)}")
            continue
        adapters.append(f"{adapter.name}={adapter.source}")
        downloads = True
        report.add(
            warning(
                "DC611",
                "the engine cannot pin this adapter",
                _unpinned(adapter),
                "download the adapter into a folder and name that folder as its source",
                deploy.at(f"adapters.{index}.source"),
            )
        )
    return Source(model, tuple(adapters), flags, downloads)


def _model(
    deploy: Deploy, facts: Facts, recipe: Recipe | None, places: Placeholders
) -> tuple[str, tuple[EngineFlag, ...], bool]:
    if recipe is not None:
        return places.model(f"store:{recipe.key}"), (), False
    if facts.model.hub == "folder":
        return places.model(f"folder:{facts.model.source}"), (), False
    flags = []
    if facts.model.revision is not None:
        because = deploy.because("model.revision" if deploy.written("model.revision") else "model.source")
        reason = "the commit that was planned"
        flags = [flag(name, facts.model.revision, because, reason) for name in ("revision", "tokenizer-revision")]
    return facts.model.source, tuple(flags), True


def _unpinned(adapter: AdapterFacts) -> str:
    return (
        f"Adapter {adapter.name} was planned at commit {adapter.revision}, but `--lora-modules` takes no revision: "
        f"the engine downloads whatever {adapter.source} holds when it starts."
    )
