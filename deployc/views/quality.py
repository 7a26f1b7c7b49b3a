"""What quantization was measured to cost, for people, out of the plan document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deployc.views.layout import escape, paint, wrap
from deployc.views.words import BAND_DASH, Show, counted


def lines(document: Mapping[str, Any], color: bool, width: int) -> list[str]:
    """A few lines; none where the artifact is not there or was not measured."""
    of = document["quality"]
    if of is None:
        return []
    measured = f"{counted(of['lines'], 'line')}, {counted(of['tokens'], 'token')} of {escape(of['text']['path'])}"
    said = [
        f"perplexity {_banded(of['perplexity_increase'], _signed(of['perplexity_increase']['value']))}",
        f"KL {_banded(of['mean_kl'], _nats)} nats a token",
        f"top-1 {_banded(of['top1_agreement'], _percent)}",
    ]
    text = [f"Against the 16-bit model: {', '.join(said)}."]
    if valid := of["valid_json"]:
        text.append(
            f"Valid JSON: {_banded(valid['artifact'], _percent)} of {counted(valid['asked'], 'answer')}; "
            f"the 16-bit model's {_percent(valid['reference']['value'])}."
        )
    text += of["not_covered"]
    if not of["current"]:
        text.append("The file names another text or none now: the next build measures on that.")
    heading = wrap(f"QUALITY, measured on {measured}", width)
    return [paint(line, "strong", color) for line in heading] + [
        line for sentence in text for line in wrap(sentence, width, "  ")
    ]


def _banded(figure: Mapping[str, Any], show: Show) -> str:
    low, high = show(figure["low"]), show(figure["high"])
    return f"{show(figure['value'])} ({low.removesuffix(' %')} {BAND_DASH} {high})"


def _percent(share: float) -> str:
    """ "98.1 %"."""
    return f"{share * 100:.1f} %"


def _signed(size: float) -> Show:
    """ "+1.2 %"; two digits after the point where a share of this size is less than one per cent."""
    return lambda share: f"{share * 100:+.{1 if abs(size) >= 0.01 else 2}f} %"


def _nats(value: float) -> str:
    return f"{value:.3g}"
