"""Why quality cannot be measured, one function a reason."""

from __future__ import annotations

from deployc.diagnostics import Diagnostic, error
from deployc.units import show_bytes


def no_transformers(python: str, reason: str) -> Diagnostic:
    """The build interpreter has torch alone."""
    fix = "pip install 'transformers>=4.46' there, or name an interpreter that has it in build.python."
    return _cannot(f"{python} cannot import transformers, which runs both models: {reason}.", fix)


def not_run(what: str, reason: str) -> Diagnostic:
    """transformers makes no model of a folder, or its model does not run."""
    fix = "A newer transformers may know it (build.python); without quantization.quality it is built unmeasured."
    return _cannot(f"{what} cannot be run by transformers: {reason}.", fix)


def not_followed(what: str) -> Diagnostic:
    """A stored form that is not undone here."""
    return _cannot(f"{what}.", "Take quantization.quality out, or choose a format that deployc itself writes.")


def not_finite(what: str) -> Diagnostic:
    """NaN or infinity among a model's logits."""
    fix = "Set model.dtype to bfloat16, or choose another format: such answers are noise."
    return _cannot(f"{what} computes NaN or infinity on this text.", fix)


def nothing_to_score(shown: str, tokens: int) -> Diagnostic:
    """No token is left to score."""
    detail = f"{shown}: no line has two tokens to score within its first {tokens:,}."
    return _cannot(detail, "Add lines with longer text or answers, or raise quantization.quality.tokens.")


def bad_line(shown: str, number: int, reason: str) -> Diagnostic:
    """A line that the model's own tokenizer or template refuses."""
    detail = f"{shown}: line {number}: {reason}."
    fix = "Correct the line so that the model's chat template takes it; lines of `text` need no template."
    return _cannot(detail, fix)


def little_memory(available: int, needed: int, parts: str) -> Diagnostic:
    """Known before the first weight is read."""
    detail = f"{show_bytes(available)} are free, measuring takes {show_bytes(needed)}: {parts}."
    fix = "Free memory, lower quantization.quality.tokens, or take quantization.quality out."
    return _too_little(detail, fix)


def little_disk(folder: str, free: int, needed: int) -> Diagnostic:
    """The reference's logits are kept beside the artifact until the artifact was computed."""
    detail = f"{show_bytes(free)} are free at {folder}, the 16-bit model's logits take {show_bytes(needed)} meanwhile."
    fix = "Free some, lower quantization.quality.samples or tokens, or set build.store to another disk."
    return _too_little(detail, fix)


def out_of_memory(device: str, reason: str) -> Diagnostic:
    """It was not enough after all."""
    fix = "Free memory there, or lower quantization.quality.tokens."
    return _too_little(f"{device}: {reason}.", fix)


def _cannot(detail: str, fix: str) -> Diagnostic:
    return error("DC265", "quality cannot be measured", detail, fix)


def _too_little(detail: str, fix: str) -> Diagnostic:
    return error("DC266", "too little memory or disk to measure quality", detail, fix)
