"""What quantization costs: the artifact beside the 16-bit model that it was made of, on a text."""

from __future__ import annotations

from dataclasses import dataclass

from deployc.types.bundle import Text
from deployc.types.figure import Figure

METHOD = 1
"""Raised whenever the same artifact and text would give other figures."""


@dataclass(frozen=True, slots=True)
class ValidJson:
    """Of the prompts whose answer must be JSON, how many there are and the share of answers that parse."""

    asked: int
    reference: Figure
    artifact: Figure


@dataclass(frozen=True, slots=True)
class Answer:
    """What both models say to one prompt, the likeliest token at a time; long ones are cut, with "…" at the end."""

    prompt: str
    reference: str
    artifact: str


@dataclass(frozen=True, slots=True)
class Layer:
    """Layers that an engine runs as one: their modules, and |stored - 16-bit| / |16-bit| over all their weights."""

    modules: tuple[str, ...]
    error: float


@dataclass(frozen=True, slots=True)
class Quality:
    """Figures of the artifact against the 16-bit model (the reference), basis "measured", bands of 95 %.

    `method` numbers the way of measuring: figures of another number are not comparable. Scored are the tokens of a
    `text`, or of the last answer of `messages`. Perplexity is exp(mean -ln p); `mean_kl` is KL(reference || artifact)
    of the next token, in nats; `top1_agreement` the share of tokens where the artifact's likeliest is the reference's.
    """

    method: int  # METHOD when it was measured
    text: Text
    lines: int  # scored
    tokens: int  # scored
    perplexity_reference: Figure
    perplexity_artifact: Figure
    perplexity_increase: Figure  # 0.03 = 3 %
    mean_kl: Figure
    top1_agreement: Figure
    valid_json: ValidJson | None  # None where no line asks for JSON
    answers: tuple[Answer, ...]
    worst_layers: tuple[Layer, ...]  # the worst first; () where weights were rescaled, so that they cannot be compared
    not_covered: tuple[str, ...]  # what these figures leave out, in sentences
    device: str  # what computed them
    seconds: float

    def is_of(self, text: Text) -> bool:
        """Whether these figures are what measuring on this text would give; not known of a text that was not read."""
        same = (self.text.digest, self.text.samples, self.text.tokens) == (text.digest, text.samples, text.tokens)
        return same and bool(text.digest) and self.method == METHOD
