"""What a setting does to the speed: the prediction with it beside the one without."""

from __future__ import annotations

import math
from dataclasses import dataclass

from deployc import units
from deployc.types.figure import Basis, Figure, weakest
from deployc.types.prediction import Speed
from deployc.types.speed import Errors

LEAST = 0.03
"""Share from which an effect is worth a word, if all of its band lies beyond it."""
NAMES = {
    "tokens_per_second": "output tokens",
    "ttft_p95": "time to first token, p95,",
    "tpot_p95": "time per output token, p95,",
}


@dataclass(frozen=True, slots=True)
class Effect:
    """One quantity with the setting and without it; `cost` is how many times worse it is with it."""

    name: str
    ours: float
    theirs: float
    cost: Figure

    @property
    def hurts(self) -> bool:
        """Worse for certain, and by enough."""
        return self.cost.low >= 1 + LEAST

    @property
    def helps(self) -> bool:
        """Better for certain, and by enough."""
        return self.cost.high <= 1 - LEAST

    def __str__(self) -> str:
        change = f", {self._change()}" if math.isfinite(self.cost.value) and self.cost.value else ""
        return f"{NAMES[self.name]} {self._value(self.ours)} against {self._value(self.theirs)}{change}"

    def _value(self, value: float) -> str:
        if math.isinf(value):
            return "unbounded"
        if self.name == "tokens_per_second":
            return f"{units.show_count(float(f'{value:.3g}'))}/s"
        return units.show_seconds(value)

    def _change(self) -> str:
        """ "12 % fewer (7 to 17 %)"; "2.1 times as long (1.7 to 2.6)" where a share would be hard to read."""
        value, low, high = self.cost.value, self.cost.low, self.cost.high
        if self.name == "tokens_per_second":
            value, low, high = 1 / value, 1 / high, 1 / low
            word = "fewer" if value < 1 else "more"
        else:
            word = "longer" if value > 1 else "shorter"
        if value >= 2:
            times = "as many" if self.name == "tokens_per_second" else "as long"
            return f"{value:.1f} times {times} ({low:.1f} to {high:.1f})"
        least, most = sorted((abs(low - 1), abs(high - 1)))
        return f"{abs(value - 1):.0%} {word} ({least:.0%} to {most:.0%})"


def effects(ours: Speed, theirs: Speed, errors: Errors) -> list[Effect]:
    """Of each quantity that has a value at least on one side: in a queue that grows for ever nobody waits less, and
    where a token comes with the one before there is no time per token to compare."""
    found = []
    for name in NAMES:
        one, other = getattr(ours, name), getattr(theirs, name)
        if one.value == other.value == math.inf or 0.0 in (one.value, other.value):
            continue
        cost = other.value / one.value if name == "tokens_per_second" else one.value / other.value
        found.append(Effect(name, one.value, other.value, _cost(cost, name, errors, weakest((one.basis, other.basis)))))
    return found


def _cost(cost: float, name: str, errors: Errors, basis: Basis) -> Figure:
    """What the two predictions have in common cancels in their ratio. Left are the model's error where it was measured,
    and an effect that may be as many times larger or smaller as figures carried over to this card may be off."""
    noise = errors.of("measured", name)
    carried = errors.of(basis, name) / noise if basis in ("transferred", "modelled") else 1.0
    ends = sorted((cost**carried, cost ** (1 / carried)))
    return Figure(cost, ends[0] / noise, ends[1] * noise, "times", basis)
