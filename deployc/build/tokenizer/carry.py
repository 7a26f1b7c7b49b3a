"""All small files of an artifact but config.json, by rule, so that what ends a turn ends generation.

The rules: `choice.py` (whose files), `ids.py` (ids without a row), `ending.py` (what ends a turn), `generation.py`
(what ends generation).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deployc.build.tokenizer import faults, generation, ids, small
from deployc.build.tokenizer.choice import Choice, choose
from deployc.build.tokenizer.small import GENERATION, Small
from deployc.diagnostics import Diagnostic, Report, Severity
from deployc.facts.faults import Fault
from deployc.types.manifest import Content


@dataclass(frozen=True, slots=True)
class Carried:
    """Files of the artifact; changes to its config.json; warnings and notes; a report of the errors alone.

    `inputs` is what was read, named as in a manifest: "model/tokenizer.json", "adapters/qa/chat_template.jinja".
    """

    files: Mapping[str, bytes] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, Content] = field(default_factory=dict)
    notes: tuple[Diagnostic, ...] = ()
    report: Report = field(default_factory=Report)


def carry(
    model: Path, adapters: Mapping[str, Path], config: Mapping[str, Any], rows: int, template: str | None = None
) -> Carried:
    """The small files of an artifact of `model` and `adapters` (name -> folder, in order of merging).

    `config` is the artifact's config.json so far; `rows` are those of its input embedding; `template` is the text of
    api.chat_template where the deploy.yaml names one: it is served, so its turns must end. Raises OSError; everything
    that is wrong with the files is in the report: DC203, DC293, DC294, DC297, DC298.
    """
    report = Report()
    own = small.of_model(model)
    theirs = {name: small.of_adapter(folder, name) for name, folder in adapters.items()}
    read = {"model": own, **{f"adapters/{name}": files for name, files in theirs.items()}}
    inputs = {f"{place}/{name}": content for place, found in read.items() for name, content in found.read.items()}
    files: dict[str, bytes] = {}
    changes: dict[str, Any] = {}
    try:
        chosen = choose(own, list(theirs.values()), report)
        files = dict(chosen.files)
        _rows(chosen, rows, report)
        changes = ids.of_config(config, chosen.means, rows, GENERATION not in files, report)
        files |= generation.ending(
            Small("the artifact", files), {**config, **changes}, chosen.means, rows, template, report
        )
    except Fault as fault:
        report.add(fault.diagnostic)
    notes = tuple(d for d in report if d.severity is not Severity.ERROR)
    return Carried(files, changes, inputs, notes, Report(report.errors))


def _rows(chosen: Choice, rows: int, report: Report) -> None:
    """Every token that an adapter brings has a row. What the model came without is served as it is, and noted."""
    high = sorted(((t, n) for t, n in chosen.means.tokens.items() if n >= rows), key=lambda pair: pair[1])
    inherited = [(token, number) for token, number in high if chosen.model.tokens.get(token) == number]
    if brought := [pair for pair in high if pair not in inherited]:
        report.add(faults.beyond(chosen.means.where, brought, rows))
    if inherited:
        report.add(faults.beyond_in_model(chosen.model.where, inherited, rows))
