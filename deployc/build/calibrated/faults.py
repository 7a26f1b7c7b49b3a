"""What can go wrong while calibrating, one function a code."""

from __future__ import annotations

from deployc.diagnostics import Diagnostic, error
from deployc.units import show_bytes

INSTALL = "deployc engine install --quantizer"


def no_quantizer(weights: str) -> Diagnostic:
    """llm-compressor's environment was not made, or not finished."""
    detail = f"{weights} is made by llm-compressor, in an environment of its own: its pins clash with the engine's."
    return error("DC260", "the quantizer's environment is not there", detail, f"Run `{INSTALL}` once on this host.")


def too_little_memory(needed: int, available: int, largest: str) -> Diagnostic:
    """Known before a weight is read."""
    detail = f"It takes {show_bytes(needed)} of memory (most of it: {largest}), {show_bytes(available)} are available."
    fix = "Lower quantization.calibration.samples or tokens, free memory, or choose a format without calibration."
    return _undone(detail, fix)


def failed(doing: str, why: str) -> Diagnostic:
    """The library stopped; `doing` is what it was at."""
    fix = "Choose a format without calibration (int4-rtn, int8, fp8) if this model is one that the library cannot take."
    return _undone(f"While {doing}: {why}", fix)


def other_tensors(names: list[str]) -> Diagnostic:
    """What was written is not what was planned: the engine would load another size, or not load it at all."""
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    fix = "Choose a format without calibration (int4-rtn, int8, fp8): the library names this model's layers otherwise."
    return _undone(f"llm-compressor wrote other tensors than planned: {shown}.", fix)


def _undone(detail: str, fix: str) -> Diagnostic:
    return error("DC264", "the weights cannot be calibrated", detail, fix)
