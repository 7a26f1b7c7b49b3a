"""`quantization.ignore`: it names something, leaves something, and does not part what the engine runs as one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from deployc.cost.weights import is_named, is_quantized
from deployc.cost.weights.formats import SCHEMES
from deployc.diagnostics import Diagnostic, Span, error, warning
from deployc.rules.case import Case
from deployc.types.facts import TensorGroup
from deployc.types.groups import Tensor, expand
from deployc.types.scheme import FUSED

DEFAULT = ("lm_head",)
EXPERTS = re.compile(r"(.+\.experts)\.")


def ignore_is_coherent(case: Case) -> Iterator[Diagnostic]:
    """Told when it is planned; with the default there is nothing to look for."""
    ignore = tuple(case.deploy.quantization.ignore)
    if case.choices.weights.value not in SCHEMES or ignore == DEFAULT or case.facts.model.quantization:
        return
    tensors = [(name, group.dtype, group.shape) for group in case.facts.model.tensors for name in expand(group)]
    yield from check(case.facts.model.source, tensors, ignore, case.deploy.at("quantization.ignore"))


def quantized(tensors: Iterable[Tensor], ignore: tuple[str, ...]) -> list[str]:
    """Names of the tensors that are quantized, by the rule that the prediction of memory uses."""
    return [name for name, dtype, shape in tensors if is_quantized(TensorGroup(name, dtype, shape), ignore)]


def check(
    model: str, tensors: Sequence[Tensor], ignore: tuple[str, ...], at: Span | None = None
) -> Iterator[Diagnostic]:
    """DC282-DC284: what `ignore` must not do."""
    taken = quantized(tensors, ignore)
    if not taken:
        yield error(
            "DC284",
            "there is nothing to quantize",
            f"{model}: no linear layer is left that would be quantized.",
            "Shorten quantization.ignore, or set weights: none.",
            at,
        )
    for name in ignore:
        if name not in DEFAULT and not any(is_named(tensor, name) for tensor, _, _ in tensors):
            detail = f"{name!r} is part of no tensor's name, so nothing is left at 16 bit by it."
            yield warning("DC283", "quantization.ignore names nothing", detail, "Correct it, or take it out.", at)
    modules = [name.removesuffix(".weight") for name in quantized(tensors, ())]
    kept = {name.removesuffix(".weight") for name in taken}
    for parent, names in _split([m for m in modules if m not in kept], modules):
        yield error(
            "DC282",
            "quantization.ignore splits a fused layer",
            f"{parent}: quantization.ignore leaves {', '.join(names)} at 16 bit but not those it is fused with.",
            "Ignore q_proj, k_proj and v_proj together, gate_proj and up_proj together, and a layer's experts all or "
            "none: the engine runs each as one.",
            at,
        )
        break  # every layer would say the same


def _split(alone: Iterable[str], modules: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """What the engine runs as one and `alone` holds in part: the module around it, with the names that it holds."""
    left, known = set(alone), set(modules)
    for parent in sorted({module.rpartition(".")[0] for module in known}):
        for names in FUSED:
            there = [name for name in names if f"{parent}.{name}" in known]
            held = [name for name in there if f"{parent}.{name}" in left]
            if held and len(held) < len(there):
                yield parent, held
    routed: dict[str, list[str]] = {}
    for module in sorted(known):
        if match := EXPERTS.match(module):
            routed.setdefault(match[1], []).append(module)
    for parent, members in routed.items():
        held = [member.removeprefix(f"{parent}.") for member in members if member in left]
        if held and len(held) < len(members):
            yield parent, [*held[:3], "…"] if len(held) > 3 else held
