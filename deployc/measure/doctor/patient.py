"""A server under diagnosis: what was said of it, and what is expected; with the sums that several judgements share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from deployc.cost.arithmetic import prompt_arithmetic
from deployc.cost.weights import loaded_bytes
from deployc.diagnostics import Span
from deployc.measure.doctor.description import Described, Description
from deployc.measure.doctor.expected import Expected, with_weights
from deployc.rules.case import Case
from deployc.rules.remedies import with_value
from deployc.types.figure import Figure, exact


@dataclass(frozen=True)
class Patient:
    """Speeds are output tokens/s of the whole server; sizes bytes of one card."""

    described: Described
    expected: Expected

    @property
    def said(self) -> Description:
        """What was described."""
        return self.described.values

    @property
    def case(self) -> Case:
        """What is expected."""
        return self.expected.case

    def at(self, key: str) -> Span | None:
        """Where a key of the description stands."""
        return self.described.at(key)

    @property
    def in_flight(self) -> int | None:
        """Requests at once, where that is known."""
        return self.said.concurrency

    @cached_property
    def speed(self) -> Figure | None:
        """Output tokens/s that were seen: as said, or requests/s x answer."""
        said = self.said
        if said.tokens_per_second is not None:
            return exact(said.tokens_per_second, "1/s")
        if said.requests_per_second is not None and said.output_tokens is not None:
            return exact(said.requests_per_second * said.output_tokens, "1/s")
        return None

    @cached_property
    def predicted(self) -> Figure:
        """Output tokens/s of the load described; of one stream its own speed, without its prompt."""
        prediction = self.case.prediction
        return prediction.single_stream.tokens_per_second if self.alone else prediction.speed.tokens_per_second

    @property
    def alone(self) -> bool:
        """Whether one request at a time is all that is known to be sent."""
        return (self.in_flight or 1) == 1 and self.said.requests_per_second is None

    @cached_property
    def stream(self) -> float | None:
        """Tokens/s of one request: its share of all, or its answer in its latency."""
        said = self.said
        if said.latency is not None and said.output_tokens is not None:
            return said.output_tokens / said.latency
        if said.tokens_per_second is not None and self.in_flight:
            return said.tokens_per_second / self.in_flight
        return None

    @cached_property
    def slow(self) -> float:
        """How many times slower than predicted; 1 where nothing was seen, or where it is no slower."""
        return max(1.0, self.predicted.value / self.speed.value) if self.speed and self.speed.value else 1.0

    @cached_property
    def plain_weights(self) -> float:
        """Bytes of the weights in 16 bit on one card."""
        plain = with_weights(self.said, self.case, "none")
        return loaded_bytes(plain.facts, plain.choices, 0)

    @property
    def weights(self) -> float:
        """Bytes of the weights as described."""
        return self.case.prediction.memory.weights.value

    @cached_property
    def eager(self) -> Figure:
        """The speed predicted without CUDA graphs."""
        from deployc.cost import predict

        case = self.case
        there = predict(case.deploy, case.facts, with_value(case.choices, enforce_eager=True))
        return there.single_stream.tokens_per_second if self.alone else there.speed.tokens_per_second

    @cached_property
    def arithmetic(self) -> tuple[float, float] | None:
        """FLOP/s of one card that the prompts need at the rate that was seen, and its peak; None where unknown."""
        said, case = self.said, self.case
        found = prompt_arithmetic(case.deploy, case.facts, case.choices, case.prediction)
        if found is None or said.requests_per_second is None or said.input_tokens is None or not found.rate.value:
            return None
        return found.needed.value / found.rate.value * said.requests_per_second, found.peak
