"""Sizes of quantized layers on a rank, against the kernels of this version for their format and this card."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deployc.cost.capability import eight_bit, multiplies, words
from deployc.cost.other_cards import starts
from deployc.cost.parallel import undivided
from deployc.cost.weights.formats import SCHEMES
from deployc.cost.weights.packed import Stored, stored
from deployc.diagnostics import Diagnostic, Span, error, warning
from deployc.rules import checkpoint, formats
from deployc.rules.case import Case
from deployc.rules.remedies import with_value
from deployc.types.choices import Choices
from deployc.types.formats import PackedKernel

EXPERT_HIDDEN, EXPERT_INNER = 128, 64
"""Of experts in Marlin's kernel for them, multiples of hidden and intermediate size (vllm 0.32, quantization/utils/
marlin_utils.py, check_moe_marlin_supports_config; 0.9.2 the same)."""
LEAST_GROUP = 32
"""Experts of GPTQ and AWQ whose groups lie on two ranks get smaller ones, down to this (quantization/moe_wna16.py)."""


def layers_have_a_kernel(case: Case) -> Iterator[Diagnostic]:
    """An error where no kernel takes a layer; a warning where one does that is slow, or that pads."""
    capability = case.facts.smallest.compute_capability
    if case.on_cpu or capability is None or not case.facts.lore.formats.kernels:
        return
    if any(checkpoint.method_runs_on_the_card(case)) or any(formats.weights_have_a_kernel(case)):
        return  # the card runs none of the format, whatever its sizes
    layers = stored(case.facts, case.choices)
    unfit = [(one, why) for one in layers if (why := _refused(case, case.choices, one))]
    if unfit:
        yield _error(case, unfit)
        return
    yield from _slow(case, layers)


def _refused(case: Case, choices: Choices, one: Stored) -> str:
    """Why the engine does not load it; "" = it does."""
    if one.method == "widened_fp8" and not _widened(case):
        return _blocks(choices, one)
    ours = choices.weights.value in SCHEMES
    halved = one.routed and one.method in ("gptq", "gptq_plain", "awq") and _halved(one) >= LEAST_GROUP
    if one.layer.group and one.layer.split and one.layer.inputs % one.layer.group and not ours and not halved:
        return f"no whole number of the checkpoint's groups of {one.layer.group}"
    if one.block != (0, 0) and (why := _blocks(choices, one)):
        return why
    if one.routed or _taker(case, choices, one) is not None:
        return ""
    running = _running(case, choices, one)
    if not running:
        half = _running(case, with_value(choices, dtype="float16"), one)
        return f"{half[0].name}, the one kernel for it, reads float16 alone" if half else "no kernel for it"
    taken = []
    for kernel in running:
        tiles = " or ".join(f"{inner} inputs and {out} outputs" for out, inner in kernel.tiles)
        taken.append(f"{kernel.name} takes multiples of {tiles}")
    return ", ".join(taken)


def _blocks(choices: Choices, one: Stored) -> str:
    """fp8 with a scale a block: vllm 0.32, quantization/utils/fp8_utils.py, validate_fp8_block_shape and …_moe."""
    outputs, inputs = one.block
    if one.block == (0, 0) or (choices.tensor_parallel_size.value == 1 and not one.routed):
        return ""
    column = one.module in ("gate_proj", "up_proj", "w1", "w3", "q_proj", "k_proj", "v_proj")
    if column and one.outputs % outputs:
        return f"{one.outputs:,} outputs are no whole blocks of {outputs}"
    if one.layer.split and one.layer.inputs % inputs:
        return f"no whole number of the checkpoint's blocks of {inputs}"
    return ""


def _running(case: Case, choices: Choices, one: Stored) -> list[PackedKernel]:
    capability, dtype = case.facts.smallest.compute_capability, choices.dtype.value
    kernels = case.facts.lore.formats.kernels[one.method]
    return [kernel for kernel in kernels if capability and kernel.runs(one.layer, capability, dtype)]


def _taker(case: Case, choices: Choices, one: Stored) -> PackedKernel | None:
    return next((kernel for kernel in _running(case, choices, one) if kernel.pads or kernel.fits(one.layer)), None)


def _widened(case: Case) -> bool:
    return not multiplies(case.facts, "fp8")


def _halved(one: Stored) -> int:
    group = one.layer.group
    while group and one.layer.inputs % group:
        group //= 2
    return group


def _error(case: Case, unfit: Sequence[tuple[Stored, str]]) -> Diagnostic:
    one, why = unfit[0]
    ranks, card = case.choices.tensor_parallel_size.value, case.facts.smallest
    where = f" on each of {ranks} ranks" if ranks > 1 else ""
    others = sorted({other.module for other, _ in unfit[1:]} - {one.module})
    more = f" {', '.join(others)} too." if others else ""
    return error(
        "DC580",
        "no kernel of this version takes a quantized layer",
        f"{one.pattern} has {one.layer.inputs:,} inputs and {one.layer.outputs:,} outputs{where}: {why}. It is "
        f"{_format(one)}, on {case.card} (compute capability {words(card.compute_capability or (0, 0))}) with vLLM "
        f"{case.facts.engine.version}, which does not start with it.{more}",
        "; or ".join(_fixes(case, one)),
        _at(case),
    )


def _format(one: Stored) -> str:
    kinds = {
        "packed": "integers in words (compressed-tensors)",
        "gptq": "GPTQ",
        "gptq_plain": "GPTQ",
        "awq": "AWQ",
        "widened_fp8": "fp8",
    }
    group = f"a scale for {one.layer.group} inputs" if one.layer.group else "a scale a row"
    points = ", with zero points" if one.method == "gptq_plain" and one.layer.zero_points else ""
    return f"{kinds[one.method]} of {one.layer.bits} bits, {group}{points}"


def _fixes(case: Case, one: Stored) -> Iterator[str]:
    """What makes every layer fit: fewer cards an engine, float16, a version that pads, another format."""
    known, ours = case.facts.lore.formats, case.choices.weights.value in SCHEMES
    if sizes := _fitting(case):
        replicas = len(case.facts.devices) // sizes[-1]
        beside = f", replicas: {replicas}" if replicas > 1 else ""
        also = f" (of {', '.join(map(str, sizes))})" if len(sizes) > 1 else ""
        yield f"set engine.parallel: {{tensor: {sizes[-1]}{beside}}}{also}"
    if one.routed and not _any_refused(case, with_value(case.choices, expert_parallel=True)):
        yield "set engine.args: {enable-expert-parallel: true}, which leaves experts whole"
    if not _any_refused(case, with_value(case.choices, dtype="float16")):
        yield "set model.dtype: float16, which a slower kernel takes"
    whole = not one.layer.group or one.layer.inputs % one.layer.group == 0
    if whole and not any(kernel.pads for kernels in known.kernels.values() for kernel in kernels):
        yield f"set engine.version to {known.pads_since} or newer, which pads such layers with zeros"
    if ours:
        yield f"set quantization.weights: {eight_bit(case.facts) or 'none'}"
    else:
        yield "take a checkpoint in another format, or the 16-bit model with quantization.weights"


def _fitting(case: Case) -> list[int]:
    """Numbers of cards an engine on which every layer has a kernel and the engine starts."""
    cards, now = len(case.facts.devices), case.choices.tensor_parallel_size.value
    sizes = [n for n in range(1, cards + 1) if n != now and cards % n == 0]
    divided = [n for n in sizes if not undivided(case.facts.model.architecture, n)]
    spread = {n: with_value(case.choices, tensor_parallel_size=n, replicas=cards // n) for n in divided}
    return [n for n, choices in spread.items() if not _any_refused(case, choices) and starts(case.facts, choices)]


def _any_refused(case: Case, choices: Choices) -> bool:
    return any(_refused(case, choices, one) for one in stored(case.facts, choices))


def _slow(case: Case, layers: Sequence[Stored]) -> Iterator[Diagnostic]:
    padded, slow = [], []
    for one in layers:
        if one.method == "widened_fp8" and not _widened(case):
            continue
        if one.routed:
            hidden, inner = case.facts.model.architecture.hidden_size, one.layer.inputs
            down = one.module in ("down_proj", "w2")
            if down and (hidden % EXPERT_HIDDEN or inner % max(EXPERT_INNER, one.layer.group)):
                slow.append((one, "experts that Marlin's kernel for them does not take as they are"))
            continue
        kernel = _taker(case, case.choices, one)
        if kernel is None:
            continue
        if kernel.slow:
            slow.append((one, f"{kernel.name}, a last resort that is not tuned for this"))
        elif not kernel.fits(one.layer):
            out, inner = kernel.padded(one.layer)
            padded.append((one, f"{kernel.name}, padded with zeros to {inner:,} inputs and {out:,} outputs"))
    for found in (slow, padded):
        if found:
            one, how = found[0]
            names = sorted({other.module for other, _ in found} - {one.module})
            more = f" So are {', '.join(names)}." if names else ""
            yield warning(
                "DC581",
                "quantized layers run in a slower way than their format allows",
                f"{one.pattern} ({one.layer.inputs:,} inputs and {one.layer.outputs:,} outputs on a rank, "
                f"{_format(one)}) is multiplied by {how}: more work at every step.{more}",
                _faster(case),
                _at(case),
            )


def _faster(case: Case) -> str:
    def plain(choices: Choices) -> bool:
        taken = ((one, _taker(case, choices, one)) for one in stored(case.facts, choices) if not one.routed)
        return all(kernel is not None and not kernel.slow and kernel.fits(one.layer) for one, kernel in taken)

    sizes = [n for n in _fitting(case) if plain(with_value(case.choices, tensor_parallel_size=n))]
    also = f"set engine.parallel.tensor: {sizes[-1]}; or " if sizes else ""
    eight, ours = eight_bit(case.facts), case.choices.weights.value in SCHEMES
    other = f"quantization.weights: {eight or 'none'}"
    return f"{also}{f'set {other}' if ours else f'take the 16-bit model with {other}'}, if it is too slow"


def _at(case: Case) -> Span | None:
    if case.choices.tensor_parallel_size.value > 1:
        return case.at("tensor-parallel-size", "engine.parallel.tensor")
    written = case.deploy.written("quantization.weights")
    return case.deploy.at("quantization.weights" if written else "model.source")
