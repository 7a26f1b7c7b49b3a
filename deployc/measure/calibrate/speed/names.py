"""The constants of the speed model as one flat list of numbers, by name: "host_step", "fp8.stream"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from deployc.types.speed import Constants, Kernel

BESIDE = "host_beside"
"""No constant of an engine: by how much its host is slower beside other engines, though idle ones."""
OF_KERNEL = tuple(field.name for field in fields(Kernel))
PLAIN = tuple(field.name for field in fields(Constants) if field.name != "kernels")


def flat(constants: Constants) -> dict[str, float]:
    """Every number by its name."""
    named = {name: getattr(constants, name) for name in PLAIN}
    for kernel, values in constants.kernels.items():
        named |= {f"{kernel}.{name}": getattr(values, name) for name in OF_KERNEL}
    return named


def constants_of(named: Mapping[str, float], *, alone: bool = True) -> Constants:
    """The constants of a flat list; of a run that was not alone on its host, with what that costs the host.

    KeyError where one is missing.
    """
    if not alone:
        named = {name: value * (named[BESIDE] if "host_" in name else 1.0) for name, value in named.items()}
    kernels = sorted({name.split(".")[0] for name in named if "." in name})
    made = {kernel: Kernel(**{name: named[f"{kernel}.{name}"] for name in OF_KERNEL}) for kernel in kernels}
    return Constants(kernels=made, **{name: named[name] for name in PLAIN})
