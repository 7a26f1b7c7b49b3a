"""All small files of an artifact but config.json, by rule, so that what ends a turn ends generation.

The rules: `choice.py` (whose files), `ids.py` (ids without a row), `ending.py` (what ends a turn). vLLM 0.32.0 stops at
the tokenizer's eos_token and at every eos_token_id of generation_config.json, of config.json only where there is no
generation_config.json (`sampling_params.py` update_from_generation_config, `v1/engine/input_processor.py`,
`v1/core/sched/utils.py` check_stop, `transformers_utils/config.py` try_get_generation_config). Where a turn's end is
none of them it is added to generation_config.json, beside those that are there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deployc.build.tokenizer import ids, small
from deployc.build.tokenizer.choice import Choice, choose
from deployc.build.tokenizer.ending import End, ends
from deployc.build.tokenizer.faults import beyond, beyond_in_model, no_template, turn_did_not_end
from deployc.build.tokenizer.small import GENERATION, Small, written
from deployc.build.tokenizer.template import DEFAULT, templates
from deployc.diagnostics import Diagnostic, Report, Severity
from deployc.facts.faults import Fault
from deployc.types.manifest import Content

_GENERATION_KEYS = (
    "bos_token_id", "eos_token_id", "pad_token_id", "do_sample", "temperature", "top_k", "top_p", "min_p",
    "repetition_penalty",
)  # fmt: skip
"""What a generation_config.json that is made new takes from config.json, where the engine had read them until then."""


@dataclass(frozen=True, slots=True)
class Carried:
    """Files of the artifact; changes to its config.json; warnings and notes; a report of the errors alone.

    `inputs` is what was read, named as in a manifest: "model/tokenizer.json", "qa/chat_template.jinja".
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
    inputs = {f"model/{n}": _content(raw) for n, raw in own.files.items()}
    inputs |= {f"{name}/{n}": _content(raw) for name, s in theirs.items() for n, raw in s.files.items()}
    files: dict[str, bytes] = {}
    changes: dict[str, Any] = {}
    try:
        chosen = choose(own, list(theirs.values()), report)
        files = dict(chosen.files)
        _rows(chosen, rows, report)
        changes = ids.of_config(config, chosen.means, rows, report)
        _end_generation(files, {**config, **changes}, chosen, rows, template, report)
    except Fault as fault:
        report.add(fault.diagnostic)
    notes = tuple(d for d in report if d.severity is not Severity.ERROR)
    return Carried(files, changes, inputs, notes, Report(report.errors))


def _rows(chosen: Choice, rows: int, report: Report) -> None:
    """Every token has a row. A model that came without some is served as it is, with a warning."""
    high = sorted(((t, n) for t, n in chosen.means.tokens.items() if n >= rows), key=lambda pair: pair[1])
    if high:
        say = beyond if chosen.foreign else beyond_in_model
        report.add(say(chosen.means.where, high, rows))


def _end_generation(
    files: dict[str, bytes],
    config: Mapping[str, Any],
    chosen: Choice,
    rows: int,
    template: str | None,
    report: Report,
) -> None:
    """Mend generation_config.json of `files` where needed."""
    artifact = Small("the artifact", files)
    generation = artifact.json(GENERATION)
    changes = ids.mended(generation, GENERATION, chosen.means, rows, report)
    served = {DEFAULT: template} if template is not None else templates(artifact)
    if served:
        found, wrong = ends(served, chosen.means)
        report.extend(wrong)
        high = {end.token: end.id for end in found if end.id >= rows}
        if high and not chosen.foreign:  # an adapter's was said with all its tokens
            report.add(beyond("the end of a turn", list(high.items()), rows))
        present = GENERATION in files
        basis = {**generation, **changes} if present else _of_config(config)
        missing = [end for end in found if end.id < rows and end.id not in _stops(basis, chosen)]
        if missing:
            report.extend(_told(missing, basis, chosen, present))
            extra = list(dict.fromkeys(end.id for end in missing))
            changes = {
                **({} if present else basis),
                **changes,
                "eos_token_id": [*ids.listed(basis.get("eos_token_id")), *extra],
            }
    else:
        report.add(no_template())
    if changes:
        # what is written here is no longer what config.json says: transformers would go back to that
        rest = {key: value for key, value in generation.items() if key != "_from_model_config"}
        files[GENERATION] = written({k: v for k, v in {**rest, **changes}.items() if v is not None or k not in changes})


def _of_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """As transformers' GenerationConfig.from_model_config: the language part's where the outer has none."""
    nested = config.get(ids.NESTED)
    inner = nested if isinstance(nested, dict) else {}
    found = {key: config[key] if config.get(key) is not None else inner.get(key) for key in _GENERATION_KEYS}
    return {key: value for key, value in found.items() if value is not None}


def _stops(generation: Mapping[str, Any], chosen: Choice) -> list[int]:
    own = chosen.means.id("eos_token")
    return ids.listed(generation.get("eos_token_id")) + ([own] if own is not None else [])


def _told(missing: list[End], basis: Mapping[str, Any], chosen: Choice, present: bool) -> list[Diagnostic]:
    """DC295, one for all templates that end alike."""
    known = []
    if numbers := ids.listed(basis.get("eos_token_id")):
        known.append(f"{', '.join(map(str, numbers))} (eos_token_id of {GENERATION if present else 'config.json'})")
    if (own := chosen.means.id("eos_token")) is not None:
        known.append(f"{own} (the tokenizer's {chosen.means.special['eos_token']!r})")
    tokens = list(dict.fromkeys(f"{end.token!r} ({end.id})" for end in missing))
    numbers = list(dict.fromkeys(end.id for end in missing))
    names = "chat template" if any(end.name == DEFAULT for end in missing) else f"chat template {missing[0].name!r}"
    return [turn_did_not_end(tokens, " and ".join(known) or "no token at all", GENERATION, numbers, names)]


def _content(raw: bytes) -> Content:
    return Content(len(raw), hashlib.sha256(raw).hexdigest())
