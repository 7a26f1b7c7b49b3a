"""Several launches of one file on one card."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from deployc.adopt.deploy import devices_of
from deployc.adopt.judge.case import Judged
from deployc.diagnostics import Diagnostic, error, warning

MOST = 0.95
"""Of a card for all engines on it together: each holds some 0.5 GiB of context outside its share."""


def one_card(cases: Sequence[Judged]) -> Iterator[Diagnostic]:
    """Shares of all engines that use the same card: together at most 1, and started one after the other."""
    by_card: dict[str, list[Judged]] = {}
    for case in cases:
        if case.launch.source == "compose":
            for card in cards(case):
                by_card.setdefault(card, []).append(case)
    said: set[tuple[str, ...]] = set()
    for card, sharing in by_card.items():
        names = tuple(case.launch.name for case in sharing)
        if len(sharing) < 2 or names in said:
            continue
        said.add(names)
        yield from _judge(card, sharing)


def cards(case: Judged) -> list[str]:
    """The cards by index or UUID: those named, else the first ones, as many as there are ranks."""
    return devices_of(case.launch) or [str(index) for index in range(case.ranks)]


def _judge(card: str, sharing: Sequence[Judged]) -> Iterator[Diagnostic]:
    default = sharing[0].engine.facts.gpu_memory_utilization
    shares = [found[0] if (found := case.share("gpu-memory-utilization")) else default for case in sharing]
    last = sharing[-1]
    place = last.share("gpu-memory-utilization")
    total = sum(shares)
    ordered = all(_waits(case, sharing) for case in sharing[1:])
    fixed = all(case.launch.flag("kv-cache-memory-bytes") for case in sharing)
    if (total <= MOST or fixed) and ordered:
        return
    shown = " + ".join(f"{share:g} ({case.launch.name})" for share, case in zip(shares, sharing, strict=True))
    why = f"Card {card}: {shown} = {total:.3g} of it."
    if total > 1:
        why += " The second to start finds less free than its share and stops."
    elif total > MOST:
        why += " Each share is of the whole card, and each engine holds some 0.5 GiB of context beside it."
    if not ordered:
        why += " They start at once, and count each other's memory while they profile."
    made = error if total > 1 and not fixed else warning
    yield made(
        "DC726",
        "services share a card",
        why,
        f"--gpu-memory-utilization of {0.9 / len(sharing):.2f} each, or --kv-cache-memory-bytes where the version has "
        "it; depends_on with condition: service_healthy, so that one starts after the other",
        place[1] if place else last.launch.at,
    )


def _waits(case: Judged, sharing: Sequence[Judged]) -> bool:
    """Whether it starts after another one on the card is up."""
    others = {other.launch.name for other in sharing}
    return any(name in others and how == "service_healthy" for name, how in case.launch.depends.items())
