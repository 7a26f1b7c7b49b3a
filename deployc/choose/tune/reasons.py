"""Why each value of the choice is what it is: the user's line, what `plan` would take anyway, or the search."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from deployc.choose.tune.change import FIELDS, Change, value_of
from deployc.choose.tune.search import Level, Tuned
from deployc.choose.tune.space import OPEN, Candidate, Cards, fixed
from deployc.choose.tune.verdict import Run
from deployc.spec.deploy import Deploy
from deployc.types.choices import Choice, Choices
from deployc.types.facts import Facts
from deployc.units import show_count

COUNT, GPU = "hardware.count", "hardware.gpu"


@dataclass(frozen=True, slots=True)
class Setting:
    """One value of the choice beside what `plan` takes now. `because` as in the plan document."""

    name: str
    value: str | int
    before: str | int | None
    because: str
    reason: str


def settings(
    deploy: Deploy, facts: Facts, now: Choices, tuned: Tuned, cards: Sequence[Cards], made: Iterable[Change],
    free: Iterable[str] = (),
) -> list[Setting]:  # fmt: skip
    """Of the chosen configuration; none where nothing is chosen. `now`: what `plan` chooses for the file as it is."""
    if tuned.chosen is None:
        return []
    chosen = tuned.chosen.candidate
    held = {name: at for name, at in fixed(deploy, facts).items() if name not in free}
    found = list(_cards(deploy, facts, tuned, chosen, cards))
    changed = {change.name for change in made}
    for name in OPEN:
        because, reason = _why(name, held, tuned, tuned.chosen, name in changed)
        found.append(Setting(name, value_of(chosen.choices, name), value_of(now, name), because, reason))
    return found


def _cards(deploy: Deploy, facts: Facts, tuned: Tuned, chosen: Candidate, cards: Sequence[Cards]) -> Iterator[Setting]:
    why = _cheapest(tuned, chosen)
    before = Cards(facts.devices)
    for name, value, was in ((GPU, chosen.cards.name, before.name), (COUNT, chosen.cards.count, before.count)):
        several = len({one.name if name == GPU else one.count for one in cards}) > 1
        because = "search" if several else deploy.because(name) if value == was else "command line"
        yield Setting(name, value, was, because, why if several else "no others were looked at")


def _cheapest(tuned: Tuned, chosen: Candidate) -> str:
    cost = tuned.cost(chosen.cards)
    cheaper = _count(tuned, lambda level: level.cost < cost)
    what = "for less money" if tuned.money else "on fewer cards"
    return f"none of the {show_count(cheaper)} configurations {what} will do" if cheaper else "nothing is cheaper"


def _why(name: str, held: dict[str, str], tuned: Tuned, chosen: Run, changed: bool) -> tuple[str, str]:
    choice: Choice[str | int] = getattr(chosen.candidate.choices, FIELDS[name])
    if name in held:
        return held[name], "as written"
    if name == "weights":
        return "search", _weights(tuned, chosen.candidate)
    if name == "kv_cache":
        return "search", _kv_cache(tuned, chosen.candidate)
    if name in ("tensor", "replicas"):
        return "search", "there is one card" if chosen.candidate.cards.count == 1 else _best(chosen)
    if changed:
        return "search", "the longest that surely starts" if name == "max_model_len" else _best(chosen)
    return choice.because, choice.reason


def _best(chosen: Run) -> str:
    """Under an open load the throughput is the load's own."""
    opened = chosen.candidate.deploy.workload.request_rate is not None
    best = "the shortest whole answer" if opened else "the most tokens/s, or within 5 % of it,"
    return f"{best} of those that will do with as few flags"


def _weights(tuned: Tuned, chosen: Candidate) -> str:
    cost, (bits, _) = tuned.cost(chosen.cards), chosen.loss
    if not bits:
        return "weights as they are will do"
    plainer = _count(tuned, lambda level: level.cost == cost and level.loss[0] < bits)
    return f"none of the {show_count(plainer)} configurations of this cost with more bits a weight will do"


def _kv_cache(tuned: Tuned, chosen: Candidate) -> str:
    cost, (bits, rounded) = tuned.cost(chosen.cards), chosen.loss
    if not rounded:
        return "the model's own type will do"
    plainer = _count(tuned, lambda level: level.cost == cost and level.loss == (bits, 0))
    return f"none of the {show_count(plainer)} configurations of this cost with the model's own type will do"


def _count(tuned: Tuned, of: Callable[[Level], bool]) -> int:
    return sum(level.candidates for level in tuned.levels if of(level))
