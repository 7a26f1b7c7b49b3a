"""`engine.args.quantization` against what the served weights are in."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from deployc.diagnostics import Diagnostic, error
from deployc.rules.case import Case
from deployc.rules.settings import served_method, settings


def is_known(case: Case) -> Iterator[Diagnostic]:
    """A method that this version does not know; nothing is said where its list is not known, or the parser has one."""
    setting, known = settings(case).get("quantization"), case.facts.engine.methods
    if setting is None or not known or setting.value in known or setting.value == "marlin":
        return
    flag = case.facts.engine.flags.get("quantization")
    if flag is not None and flag.choices:
        return  # DC501
    close = get_close_matches(setting.value, list(known), 1, 0.75)
    guess = f"did you mean {close[0]}?" if close else "remove it: the engine reads the method in the checkpoint"
    yield error(
        "DC529",
        "the engine has no such quantization method",
        f"vLLM {case.facts.engine.version} knows no {setting.value!r}, and stops. It knows {', '.join(sorted(known))}.",
        case.facts.lore.meant.get(setting.value.lower(), guess),
        setting.at,
    )


def fits_the_checkpoint(case: Case) -> Iterator[Diagnostic]:
    """vllm/config/model.py, `_verify_quantization`: a method of its own choice beside a quantized checkpoint stops the
    engine, and one that reads quantized weights finds none in 16-bit ones."""
    setting = settings(case).get("quantization")
    method, lore = served_method(case), case.facts.lore
    if setting is None or setting.value == method:
        return
    flag = case.facts.engine.flags.get("quantization")
    if (flag is not None and flag.choices and setting.value not in flag.choices) or any(is_known(case)):
        return
    if method == "none" and setting.value in lore.needs_checkpoint:
        why = f"{setting.value} reads weights that are in that form already; those served here are 16 bit, "
        why += "so that nothing is quantized and the engine does not start."
        fix = "set quantization.weights: int4-gptq or fp8 and remove it, or name a checkpoint in that form"
    elif setting.value not in lore.accepts.get(method, (setting.value,)):
        why = f'The served weights are in {method}; the engine stops with "Quantization method specified in the model '
        why += f'config ({method}) does not match … ({setting.value})".'
        fix = "remove it: the engine reads the method in the weights"
    else:
        return
    yield error("DC510", "the weights are not in this quantization method", why, fix, setting.at)
