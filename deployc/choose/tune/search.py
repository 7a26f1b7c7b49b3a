"""The search: all configurations bounded by arithmetic, the few that may be better than the best seen simulated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from deployc.choose.tune import front
from deployc.choose.tune.space import Candidate, Cards, candidates
from deployc.choose.tune.starting import Bounded, bounded
from deployc.choose.tune.verdict import Lines, Run, all_kept, missed, predicted, run
from deployc.diagnostics import Diagnostic
from deployc.spec.deploy import Deploy
from deployc.types.facts import Facts
from deployc.types.prediction import Prediction

MOST = 100
"""Configurations that are simulated."""
ALIKE = front.STEP
"""Share of throughput and of time that a flag less is worth."""

Key = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Level:
    """How many configurations there are of one cost and one loss of quality."""

    cost: float
    loss: tuple[int, int]
    candidates: int


@dataclass(slots=True)
class Tuned:
    """What the search found. `money`: costs are money an hour, else cards."""

    money: bool
    sure: bool
    chosen: Run | None = None
    nearest: Run | None = None  # where none is chosen, and any starts
    refused: tuple[Diagnostic, ...] = ()  # why nothing is chosen, where rules refuse all that was looked at
    front: list[Run] = field(default_factory=list)
    candidates: int = 0
    not_starting: int = 0
    bounded: int = 0
    simulated: int = 0
    left: int = 0  # that might be better and were not simulated
    levels: list[Level] = field(default_factory=list)  # the cheapest first

    def cost(self, cards: Cards) -> float:
        """Money an hour, or cards."""
        return (cards.price or 0.0) * cards.count if self.money else float(cards.count)


def tune(
    deploy: Deploy, facts: Facts, like: Prediction, cards: Sequence[Cards], *, free: Iterable[str] = (),
    sure: bool = True, most: int = MOST,
) -> Tuned:  # fmt: skip
    """The cheapest configuration that keeps every limit of the SLA, and the front.

    `like`: the prediction of the file as it is. `free`: names of `space.OPEN` that may change though they are written.
    `sure`: a limit is kept where all of the band keeps it; else where the value does. At equal cost the one that takes
    least from weights and cache, then the one with most tokens/s; of those about as good (`ALIKE`) the one with the
    fewest flags. Under an open load, where tokens/s are given, the fewest flags and the shortest whole answer.
    """
    money = all(one.price is not None for one in cards)
    return _Search(Tuned(money, sure), like, most).over(list(candidates(deploy, facts, cards, free)))


class _Search:
    """One search: what is bounded, what was simulated."""

    def __init__(self, result: Tuned, like: Prediction, most: int) -> None:
        self.result, self.like, self.most = result, like, most
        self.runs: dict[int, Run] = {}
        self.refused: set[tuple[object, ...]] = set()
        self.unseen: set[int] = set()  # numbers of those that might be better and were not simulated

    def over(self, every: list[Candidate]) -> Tuned:
        result = self.result
        starting, result.not_starting = bounded(every, self.like, sure=result.sure)
        possible = [one for one in starting if self.kept(one.lines) and not one.bounds.over_capacity]
        levels = Counter((result.cost(one.cards), one.loss) for one in every)
        result.levels = [Level(*level, levels[level]) for level in sorted(levels)]
        result.chosen = self.best(((self.hope(one), one) for one in possible), self.worth)
        if result.chosen is not None and not _opened(result.chosen.candidate.deploy):
            result.chosen = self.plainer(result.chosen, possible)
        if result.chosen is None:
            result.nearest = self.best(((self.hoped_miss(one), one) for one in starting), self.miss)
            if result.nearest is None and self.runs:
                result.refused = next(iter(self.runs.values())).errors
        result.chosen, result.nearest = (ran and _whole(ran) for ran in (result.chosen, result.nearest))
        points, left = front.explored(self.pool(starting), self.point)
        result.front = [_whole(self.runs[int(point.rank[-1])]) for point in points]
        self.unseen |= {int(point.rank[-1]) for point in left}
        result.candidates, result.simulated = len(every), len(self.runs)
        result.left = len(self.unseen - self.runs.keys())
        result.bounded = result.candidates - result.not_starting - result.simulated - result.left
        return result

    def kept(self, lines: Lines, *but: str) -> bool:
        return all_kept(lines, sure=self.result.sure, but=but)

    def best(self, pool: Iterable[tuple[Key, Bounded]], worth: Callable[[Run], Key | None]) -> Run | None:
        """The run with the least key. Each of the pool has a key that its own is no less than."""
        found: tuple[Key, Run] | None = None
        waiting = sorted(pool, key=lambda entry: entry[0])
        for index, (hoped, one) in enumerate(waiting):
            if found is not None and found[0] <= hoped:
                break
            try:
                ran = self.look(one)
            except front.Spent:
                self.unseen |= {one.number for key, one in waiting[index:] if found is None or key < found[0]}
                break
            own = worth(ran) if ran else None
            if ran and own is not None and (found is None or own < found[0]):
                found = own, ran
        return found[1] if found else None

    def look(self, one: Bounded) -> Run | None:
        """Its simulation; None where another of these cards and formats was refused for what no size mends."""
        family = one.candidate.family
        if family in self.refused:
            return None
        if one.number not in self.runs:
            if len(self.runs) >= self.most:
                raise front.Spent
            self.runs[one.number] = ran = run(one.candidate, self.like, sure=self.result.sure)
            if any(not found.code.startswith(("DC3", "DC4")) for found in ran.errors):
                self.refused.add(family)
        return self.runs[one.number]

    def hope(self, one: Bounded) -> Key:
        """The order of choice, by bounds."""
        return self.order(one.candidate, one.bounds.tokens_per_second, one.bounds.e2e_p95)

    def worth(self, ran: Run) -> Key | None:
        """The order of choice; None for what is not to be chosen."""
        speed = ran.prediction.speed
        if ran.errors or ran.prediction.over_capacity or not self.kept(ran.lines):
            return None
        return self.order(ran.candidate, speed.tokens_per_second.value, speed.e2e_p95.value)

    def order(self, of: Candidate, tokens: float, whole: float) -> Key:
        """Under an open load all give the same tokens/s: there the fewest flags come before the time of an answer."""
        rest = (-of.choices.max_model_len.value, of.number)
        best = (of.apart, whole) if _opened(of.deploy) else (-tokens, whole, of.apart)
        return (self.result.cost(of.cards), *of.loss, *best, *rest)

    def plainer(self, best: Run, possible: Iterable[Bounded]) -> Run:
        """The one with fewest flags among those of the same cost and loss that are about as good."""
        (cost, *loss), speed = self.order(best.candidate, 0, 0)[:3], best.prediction.speed
        tokens = speed.tokens_per_second.value * (1 - ALIKE)
        whole = speed.e2e_p95.value * (1 + ALIKE)

        def key(of: Candidate, has: float, takes: float) -> Key | None:
            if has < tokens or takes > whole:
                return None
            return (float(of.apart), *self.order(of, has, takes))

        def worth(ran: Run) -> Key | None:
            own = ran.prediction.speed
            return self.worth(ran) and key(ran.candidate, own.tokens_per_second.value, own.e2e_p95.value)

        pool = [
            (hoped, one)
            for one in possible
            if one.candidate.apart < best.candidate.apart
            and [self.result.cost(one.candidate.cards), *one.candidate.loss] == [cost, *loss]
            and (hoped := key(one.candidate, one.bounds.tokens_per_second, one.bounds.e2e_p95)) is not None
        ]
        return self.best(pool, worth) or best

    def hoped_miss(self, one: Bounded) -> Key:
        most = one.bounds.requests_per_second
        return self.order_of_misses(one.candidate, one.lines, most if one.bounds.over_capacity else None)

    def miss(self, ran: Run) -> Key | None:
        """How far from the SLA; a configuration that is refused is not near it."""
        speed = ran.prediction.speed
        over = speed.requests_per_second.value if ran.prediction.over_capacity else None
        return None if ran.errors else self.order_of_misses(ran.candidate, ran.lines, over)

    def order_of_misses(self, of: Candidate, lines: Lines, most: float | None) -> Key:
        """`most`: the rate that can be answered, where more is asked for; then no latency is worth comparing."""
        far = missed(lines, sure=self.result.sure) if most is None else (of.deploy.workload.request_rate or 0) / most
        return (float(most is not None), far, self.result.cost(of.cards), *of.loss, of.apart, of.number)

    def pool(self, starting: Iterable[Bounded]) -> list[tuple[front.Point, Bounded]]:
        """What may lie on the front: every limit but that on the time per token is kept."""
        return [
            (self.at(one.candidate, one.bounds.tokens_per_second, one.bounds.tpot_p95), one)
            for one in starting
            if self.kept(one.lines, "tpot_p95") and not one.bounds.over_capacity
        ]

    def point(self, one: Bounded) -> front.Point | None:
        ran = self.look(one)
        if ran is None or ran.errors or ran.prediction.over_capacity or not self.kept(ran.lines, "tpot_p95"):
            return None
        speed = ran.prediction.speed
        return self.at(ran.candidate, speed.tokens_per_second.value, speed.tpot_p95.value)

    def at(self, of: Candidate, tokens: float, tpot: float) -> front.Point:
        return front.point(tokens / self.result.cost(of.cards), tpot, (*of.loss, of.apart, of.number))


def _opened(deploy: Deploy) -> bool:
    return deploy.workload.request_rate is not None


def _whole(ran: Run) -> Run:
    return ran if ran.whole else predicted(ran.candidate)
