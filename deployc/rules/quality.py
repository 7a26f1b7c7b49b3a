"""What the limits of quantization.quality make of measured figures: the gate of a build, and a line of the plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from deployc.diagnostics import Diagnostic, Span, error, warning
from deployc.types.bundle import Measurement
from deployc.types.figure import Figure
from deployc.types.quality import Layer, Quality

Place = Callable[[str], Span | None]
"""Where a key stands in the user's file."""


def gate(quality: Quality, limits: Measurement, at: Place = lambda _: None) -> list[Diagnostic]:
    """DC267 for every limit that a figure breaks, DC268 where it keeps it and its band does not.

    The value decides, as the limit is on the user's own text; the band says how sure that is of other text.
    """
    return [found for found in _judged(quality, limits, at) if found is not None]


def known(limits: Measurement | None, quality: Quality | None, at: Place) -> list[Diagnostic]:
    """What a plan says of an artifact that is measured already, on the text that the file names now."""
    if limits is None or quality is None or not quality.is_of(limits.text):
        return []
    return gate(quality, limits, at)


def asks_no_json(at: Span | None = None) -> Diagnostic:
    """min_valid_json is set, and there is nothing to count."""
    detail = "quantization.quality.min_valid_json is set, and no line of the text says that its answer must be JSON."
    fix = 'Add "json": true to the lines whose answer must be JSON, or take the limit out.'
    return error("DC265", "quality cannot be measured", detail, fix, at)


def _judged(quality: Quality, limits: Measurement, at: Place) -> Iterator[Diagnostic | None]:
    fix = _fix(quality.worst_layers)
    if (most := limits.max_perplexity_increase) is not None:
        place = at("quantization.quality.max_perplexity_increase")
        yield _at_most("the increase of perplexity", quality.perplexity_increase, most, _percent, fix, place)
    if (most := limits.max_mean_kl) is not None:
        place = at("quantization.quality.max_mean_kl")
        yield _at_most("the mean KL divergence", quality.mean_kl, most, _nats, fix, place)
    if (least := limits.min_top1_agreement) is not None:
        place = at("quantization.quality.min_top1_agreement")
        yield _at_least("the agreement of the likeliest token", quality.top1_agreement, least, fix, place)
    if (least := limits.min_valid_json) is not None:
        place = at("quantization.quality.min_valid_json")
        if quality.valid_json is None:
            yield asks_no_json(place)
        else:
            beside = f"; the 16-bit model's is {_percent(quality.valid_json.reference.value)}"
            yield _at_least("the share of valid JSON", quality.valid_json.artifact, least, fix, place, beside)


def _at_most(
    name: str, figure: Figure, limit: float, show: Callable[[float], str], fix: str, at: Span | None
) -> Diagnostic | None:
    said = f"{name} is {_shown(figure, show)}, the limit {show(limit)}"
    if figure.value > limit:
        return _broken(said, fix, at)
    return _unsure(said, at) if figure.high > limit else None


def _at_least(
    name: str, figure: Figure, limit: float, fix: str, at: Span | None, beside: str = ""
) -> Diagnostic | None:
    said = f"{name} is {_shown(figure, _percent)}, the limit {_percent(limit)}{beside}"
    if figure.value < limit:
        return _broken(said, fix, at)
    return _unsure(said, at) if figure.low < limit else None


def _broken(said: str, fix: str, at: Span | None) -> Diagnostic:
    return error("DC267", "quantization costs more than a limit allows", f"{_sentence(said)}.", fix, at)


def _unsure(said: str, at: Span | None) -> Diagnostic:
    detail = f"{_sentence(said)}: kept on this text, but the band reaches past it."
    fix = "Measure on more lines (quantization.quality.samples) to be sure."
    return warning("DC268", "a limit on quality lies within the band of the figure", detail, fix, at)


def _fix(worst: Sequence[Layer]) -> str:
    named = ""
    if worst:
        entries = ", ".join(module for layer in worst for module in layer.modules)
        errors = " / ".join(_percent(layer.error) for layer in worst)
        named = f", leave the layers with the largest error of weights at 16 bit (ignore: {entries}: {errors})"
    return (
        "Choose a format that loses less (fp8 or int8 before int4; int4-gptq or int4-awq before int4-rtn), calibrate "
        f"on text like this{named}, or raise the limit."
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _shown(figure: Figure, show: Callable[[float], str]) -> str:
    return f"{show(figure.value)} ({show(figure.low)} to {show(figure.high)})"


def _percent(share: float) -> str:
    """ "1.2 %", "98.1 %", "0.04 %": three significant digits, at most two after the point."""
    size = abs(share * 100)
    return f"{share * 100:.{2 if size < 1 else 1}f} %"


def _nats(value: float) -> str:
    return f"{value:.3g} nats"
