"""What the file asks of our quantizer, against what its format takes and what the model's layers allow."""

from __future__ import annotations

from collections.abc import Iterator

from deployc import units
from deployc.cost.capability import eight_bit
from deployc.cost.weights.cuts import GROUP_SIZES, Cut, cuts, indivisible, largest_group, rows
from deployc.cost.weights.formats import CALIBRATED, scheme
from deployc.cost.weights.names import read
from deployc.diagnostics import Diagnostic, error, warning
from deployc.rules.case import Case

WORD = 4
"""8-bit integers in a word of 32 bits: a rank takes whole words."""


def calibration_is_there(case: Case) -> Iterator[Diagnostic]:
    """What looks at activations needs a text."""
    weights = case.choices.weights.value
    if weights not in CALIBRATED or case.deploy.quantization.calibration is not None:
        return
    yield error(
        "DC256",
        "calibrated weights need a text to calibrate with",
        f"{weights} chooses the integers by what the model's layers do on a text, and none is named.",
        "add quantization.calibration: {data: ./calib.jsonl}, JSON Lines with `text` or `messages` like those that "
        "will be served; or set quantization.weights: int4-rtn, which needs none and loses more",
        case.deploy.at("quantization.weights"),
    )


def settings_apply(case: Case) -> Iterator[Diagnostic]:
    """Settings that say something of another format than the one that is made."""
    asked, weights = case.deploy.quantization, case.choices.weights.value
    calibration = asked.calibration
    smooth = calibration is not None and calibration.smoothquant is not None
    if smooth and weights != "int8":
        yield error(
            "DC259",
            "a setting of quantization is not of this format",
            f"smoothquant makes activations easier to round to 8 bits; with weights: {weights} "
            + ("they are fp8, which has no need of it." if weights == "fp8" else "none are rounded."),
            "set quantization.weights: int8, or remove quantization.calibration.smoothquant",
            case.deploy.at("quantization.calibration.smoothquant"),
        )
    unread = calibration is not None and not smooth and weights not in CALIBRATED and asked.quality is None
    if unread and asked.weights != "auto":
        yield warning(
            "DC259",
            "a setting of quantization is not of this format",
            f"weights: {weights} is made without data, and no quality is measured: the calibration is not read.",
            "remove it; or set limits in quantization.quality, which are measured on it",
            case.deploy.at("quantization.calibration"),
        )
    made = scheme(case.choices)
    if asked.group_size != "auto" and not (made and made.group):
        yield warning(
            "DC259",
            "a setting of quantization is not of this format",
            f"weights: {weights} has no groups: quantization.group_size is not read.",
            "remove it",
            case.deploy.at("quantization.group_size"),
        )


def layers_fit(case: Case) -> Iterator[Diagnostic]:
    """Inputs of packed layers, as a rank holds them, against groups, words and the CPU's tiles."""
    made = scheme(case.choices)
    if made is None or made.kind != "packed":
        return
    layers = list(cuts(case.facts, case.choices))
    size = made.group or WORD
    hidden = case.facts.model.architecture.hidden_size
    multiple, tile = case.facts.calibration.kernels.packed_byte_experts, case.facts.calibration.kernels.cpu_tile
    if not made.group and hidden % multiple and any(layer.routed for layer in layers):
        detail = f"The engine's kernel for experts with a scale a row takes multiples of {multiple}: not {hidden:,}."
        yield _error(case, detail, _others(case))
    if unfit := indivisible(layers, size):
        yield _unfit(case, unfit, _groups(case, layers) if made.group else _others(case))
    elif case.on_cpu and (narrow := [name for name, count in rows(layers).items() if count % tile]):
        detail = f"{narrow[0]}: its outputs on a rank are no multiple of {tile}, as the CPU engine's kernel wants them."
        yield _error(case, detail, _others(case))


def experts_are_apart(case: Case) -> Iterator[Diagnostic]:
    """Experts that lie in one tensor are none of the linear layers that a quantizer sees."""
    if scheme(case.choices) is None:
        return
    held = [g for g in case.facts.model.tensors if read(g.pattern).routed and len(g.shape) == 3]
    if not held:
        return
    size, whole = (sum(group.bytes for group in groups) for groups in (held, case.facts.model.tensors))
    yield warning(
        "DC257",
        "layers do not fit the format of their weights",
        f"{held[0].pattern} holds all experts of a layer in one tensor: such experts stay at 16 bit, "
        f"{units.show_bytes(size)} of the model's {units.show_bytes(whole)}.",
        "take a checkpoint whose experts have matrices of their own, or one that is quantized already",
        case.deploy.at("quantization.weights"),
    )


def _unfit(case: Case, unfit: list[Cut], fix: str) -> Diagnostic:
    ranks = case.choices.tensor_parallel_size.value
    where = f" on each of {ranks} ranks" if ranks > 1 else ""
    made = scheme(case.choices)
    size = f"the group of {made.group}" if made and made.group else f"{WORD}, the integers of a word"
    more = f", and {len(unfit) - 1} more like it" if len(unfit) > 1 else ""
    return _error(case, f"{unfit[0].pattern} has {unfit[0].inputs:,} inputs{where}, no multiple of {size}{more}.", fix)


def _error(case: Case, detail: str, fix: str) -> Diagnostic:
    written = case.deploy.written("quantization.group_size")
    key = "quantization.group_size" if written else "quantization.weights"
    return error("DC257", "layers do not fit the format of their weights", detail, fix, case.deploy.at(key))


def _groups(case: Case, layers: list[Cut]) -> str:
    found = largest_group(layers)
    if found is not None:
        return f"set quantization.group_size: {found}"
    least = {layer.pattern.rpartition(".")[2] for layer in indivisible(layers, GROUP_SIZES[-1])}
    alone = f"leave {', '.join(sorted(least))} at 16 bit in quantization.ignore"
    if case.choices.tensor_parallel_size.value > 1:
        alone += ", use fewer cards an engine (engine.parallel.tensor)"
    return f"{alone}, or {_others(case)}"


def _others(case: Case) -> str:
    return f"set quantization.weights: {eight_bit(case.facts) or 'none'}"
