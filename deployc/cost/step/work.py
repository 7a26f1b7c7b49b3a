"""What one step of the engine computes: the sequences it extends, and the prompts that it takes a part of."""

from __future__ import annotations

from typing import NamedTuple


class Work(NamedTuple):
    """One step's batch. Tokens and sequences of one engine; sums over the sequences."""

    decodes: int  # sequences that get their next token
    context: float  # tokens that these have before it, together
    prompts: int = 0  # sequences of which a part of the prompt is computed
    tokens: int = 0  # of those parts
    area: float = 0.0  # sum of tokens x (tokens before the part + half of it): what prompt attention grows with
    finished: int = 0  # prompts that end here: their first token is sampled
    begun: int = 0  # requests that were waiting until now

    @property
    def rows(self) -> int:
        """Tokens that go through the layers."""
        return self.decodes + self.tokens

    @property
    def sampled(self) -> int:
        """Sequences that get a token."""
        return self.decodes + self.finished
