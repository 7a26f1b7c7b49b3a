"""generation_config.json of an artifact: what ends a turn is among what ends generation.

vLLM 0.32.0 stops at the tokenizer's eos_token and at every eos_token_id of generation_config.json; at those of
config.json only where there is no generation_config.json (`sampling_params.py` update_from_generation_config,
`v1/engine/input_processor.py`, `v1/core/sched/utils.py` check_stop, `transformers_utils/config.py`
try_get_generation_config). Where a turn's end is none of them it is added, beside those that are there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deployc.build.tokenizer import faults, ids
from deployc.build.tokenizer.ending import End, ends
from deployc.build.tokenizer.meaning import Tokenizer
from deployc.build.tokenizer.small import GENERATION, Small, written
from deployc.build.tokenizer.template import DEFAULT, templates
from deployc.diagnostics import Diagnostic, Report

_TAKEN = (
    "bos_token_id", "eos_token_id", "pad_token_id", "do_sample", "temperature", "top_k", "top_p", "min_p",
    "repetition_penalty",
)  # fmt: skip
"""What a generation_config.json that is made new takes from config.json, where the engine had read them until then."""


def ending(
    artifact: Small, config: Mapping[str, Any], tokenizer: Tokenizer, rows: int, template: str | None, report: Report
) -> dict[str, bytes]:
    """generation_config.json where it must change, else nothing. Raises Fault DC203.

    `config` is config.json; `template` is the one that is served instead of the artifact's own.
    """
    old = artifact.json(GENERATION)
    new = {**old, **ids.mended(old, GENERATION, tokenizer, rows, True, report)}
    shown = "template of api.chat_template" if template is not None else "chat template"
    served = {DEFAULT: template} if template is not None else templates(artifact)
    if not served:
        report.add(faults.no_template())
    found, wrong = ends(served, tokenizer, shown) if served else ([], [])
    report.extend(wrong)
    high = {end.token: end.id for end in found if end.id >= rows}
    if high and not any(d.code == "DC294" for d in report.errors):  # else it is said of all the adapter's tokens
        report.add(faults.beyond("the end of a turn", list(high.items()), rows))
    holder = GENERATION if GENERATION in artifact.files else "config.json"
    basis = new if GENERATION in artifact.files else _of_config(config)
    own = tokenizer.id("eos_token")
    stops = [*ids.listed(basis.get("eos_token_id")), *([] if own is None else [own])]
    if missing := [end for end in found if end.id < rows and end.id not in stops]:
        more = list(dict.fromkeys(end.id for end in missing))
        report.add(_told(missing, holder, basis, tokenizer))
        new = {**basis, "eos_token_id": [*ids.listed(basis.get("eos_token_id")), *more]}
    if new == old:
        return {}
    # what is written here is no longer what config.json says, to which transformers would go back by this key
    gone = {"_from_model_config", *(key for key in old if old[key] is not None and new[key] is None)}
    new = {key: value for key, value in new.items() if key not in gone}
    return {GENERATION: written(new)}


def _of_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """As transformers' GenerationConfig.from_model_config: the language part's where the outer has none."""
    nested = config.get(ids.NESTED)
    inner = nested if isinstance(nested, dict) else {}
    found = {key: config[key] if config.get(key) is not None else inner.get(key) for key in _TAKEN}
    return {key: value for key, value in found.items() if value is not None}


def _told(missing: list[End], holder: str, basis: Mapping[str, Any], tokenizer: Tokenizer) -> Diagnostic:
    """DC295, one for all templates that end so."""
    known = []
    if numbers := ids.listed(basis.get("eos_token_id")):
        known.append(f"{', '.join(map(str, numbers))} (eos_token_id of {holder})")
    if (own := tokenizer.id("eos_token")) is not None:
        known.append(f"{own} (the tokenizer's {tokenizer.special['eos_token']!r})")
    tokens = list(dict.fromkeys(f"{end.token!r} ({end.id})" for end in missing))
    more = list(dict.fromkeys(end.id for end in missing))
    return faults.turn_did_not_end(missing[0].shown, tokens, " and ".join(known) or "no token at all", more)
