"""The text that weights are calibrated with and that quality is measured on, as the recipe names it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from deployc.cost.weights.formats import CALIBRATED
from deployc.diagnostics import Diagnostic, error
from deployc.spec.deploy import Deploy
from deployc.types.bundle import Measurement, Text


def method(weights: str, smoothquant: float) -> str | None:
    """ "gptq", "awq" or "smoothquant" where weights are made by looking at text, else None."""
    return "smoothquant" if weights == "int8" and smoothquant else CALIBRATED.get(weights)


def smoothing(deploy: Deploy, weights: str) -> float:
    """The strength of SmoothQuant where int8 weights are made with it, else 0."""
    asked = deploy.quantization.calibration
    return asked.smoothquant or 0.0 if asked and weights == "int8" else 0.0


def calibration(deploy: Deploy, texts: Mapping[str, str], weights: str) -> Text | None:
    """What weights are calibrated with; None where they need no data. `texts` maps files to their digests."""
    asked = deploy.quantization.calibration
    if asked is None or method(weights, smoothing(deploy, weights)) is None:
        return None
    return Text(asked.data, texts.get(asked.data, ""), asked.samples, asked.tokens)


def measurement(deploy: Deploy, texts: Mapping[str, str]) -> Measurement | None:
    """How quality is measured; None where the file does not ask for it, or names no text."""
    asked, data = deploy.quantization.quality, measured_on(deploy)
    if asked is None or data is None:
        return None
    return Measurement(
        text=Text(data, texts.get(data, ""), asked.samples, asked.tokens),
        max_perplexity_increase=asked.max_perplexity_increase,
        max_mean_kl=asked.max_mean_kl,
        min_top1_agreement=asked.min_top1_agreement,
        min_valid_json=asked.min_valid_json,
    )


def measured_on(deploy: Deploy) -> str | None:
    """The file that quality is measured on: its own, else that of calibration."""
    quality, calibrated = deploy.quantization.quality, deploy.quantization.calibration
    return (quality.data if quality else None) or (calibrated.data if calibrated else None)


def check(deploy: Deploy) -> Iterator[Diagnostic]:
    """DC263: quality is asked for, and no text is named."""
    if deploy.quantization.quality is not None and measured_on(deploy) is None:
        detail = "Quality is asked for, and neither quantization.quality.data nor calibration.data names a text."
        fix = "Name a JSON Lines file, with `text` or `messages` like those that will be served, in quality.data."
        yield error("DC263", "no text to measure quality on", detail, fix, deploy.at("quantization.quality"))
