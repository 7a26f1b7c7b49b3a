"""What one engine has to do in the run of a load, added up once for all configurations that share the load."""

from __future__ import annotations

from dataclasses import dataclass, field

from deployc.cost.prediction import Setting
from deployc.cost.request import run_of
from deployc.cost.simulate import Load
from deployc.cost.simulate.outcome import percentile


@dataclass(frozen=True, slots=True)
class Totals:
    """Tokens, tokens x steps, requests of a whole run of one engine. What the prefix cache may hold is not computed."""

    requests: int
    concurrency: int  # 0 = they come at a rate
    answered: int  # tokens of all answers
    decoded: int  # of these, all but the first of each
    context: float  # tokens before them, summed over steps
    held: float  # the same, of those that each request holds by itself
    prompts: int
    area: float
    cached: int  # tokens of a prompt that the prefix cache holds, at most
    shortest: int  # prompt
    long_input: float  # 95th percentile
    longest: int
    shortest_answer: int
    long_answer: float
    longest_answer: int
    burst: int  # tokens of prompts at the start of a closed run that all of the slowest twentieth have before them

    @property
    def mean_context(self) -> float:
        """Tokens before a decoded one, on average."""
        return self.context / self.decoded if self.decoded else 0.0


@dataclass(slots=True)
class Runs:
    """Totals by how many engines share the load, and by what the prefix cache does."""

    known: dict[tuple[int, int], Totals] = field(default_factory=dict)

    def of(self, at: Setting) -> Totals:
        """Of the run that this configuration would be simulated with."""
        replicas, block = at.choices.replicas.value, at.pages.block_size or 1
        cached = at.deploy.workload.shared_prefix_tokens // block * block
        if not at.choices.enable_prefix_caching.value:
            cached = 0
        found = self.known.get((replicas, cached))
        if found is None:
            found = self.known[replicas, cached] = totals(run_of(at.deploy, replicas), cached)
        return found


def totals(load: Load, cached: int) -> Totals:
    """Added up over its requests. The prefix cache holds at most `cached` tokens of each."""
    decoded, context, held, prompts, area = 0, 0.0, 0.0, 0, 0.0
    fresh = [max(1, tokens - cached) for tokens in load.inputs]
    for tokens, answer, new in zip(load.inputs, load.outputs, fresh, strict=True):
        steps = answer - 1
        decoded += steps
        context += steps * (tokens + steps / 2)
        held += steps * (new + steps / 2)
        prompts += new
        area += new * (tokens - new / 2)
    inputs, outputs = sorted(load.inputs), sorted(load.outputs)
    slow = load.requests - int(0.95 * load.requests)
    before = min(load.concurrency, load.requests) - slow
    return Totals(
        load.requests, load.concurrency, sum(outputs), decoded, context, held, prompts, area, cached,
        inputs[0], percentile(inputs, 0.95), inputs[-1], outputs[0], percentile(outputs, 0.95), outputs[-1],
        sum(fresh[: before + 1]) if before > 0 else 0,
    )  # fmt: skip
