"""Cards and how the model is spread over them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from deployc import units
from deployc.cost.capability import built, is_built, words
from deployc.cost.other_cards import starts
from deployc.cost.parallel import undivided
from deployc.diagnostics import Diagnostic, error, warning
from deployc.rules.case import Case
from deployc.types.choices import Choice, Choices
from deployc.types.facts import MOST_CARDS


def model_divides(case: Case) -> Iterator[Diagnostic]:
    """Heads, KV heads, intermediate size and vocabulary must divide over the ranks."""
    architecture, tp = case.facts.model.architecture, case.choices.tensor_parallel_size.value
    if wrong := undivided(architecture, tp):
        count = len(case.facts.devices)
        fit = [n for n in range(1, min(max(tp, count), MOST_CARDS) + 1) if not undivided(architecture, n)]
        most = max((n for n in fit if n <= count and count % n == 0), default=1)
        beside = f", replicas: {count // most}" if count > most else ""
        yield error(
            "DC530",
            "the model does not divide over the cards",
            f"{' and '.join(wrong)} over {tp} cards: not whole; the engine does not start.",
            f"set engine.parallel: {{tensor: {most}{beside}}} (it divides over {', '.join(map(str, fit))})",
            case.at("tensor-parallel-size", "engine.parallel.tensor"),
        )


def cards_suffice(case: Case) -> Iterator[Diagnostic]:
    """Cards left idle are worth a word; more engines than cards are refused by COMPILE."""
    count = len(case.facts.devices)
    used = case.choices.tensor_parallel_size.value * case.choices.replicas.value
    if used < count:
        more = case.deploy.engine.parallel.replicas != "auto" and count // case.choices.tensor_parallel_size.value > 1
        yield warning(
            "DC534",
            "some cards are left idle",
            f"{case.choices.replicas.value} engine(s) of {case.choices.tensor_parallel_size.value} card(s) use {used} "
            f"of {count}.",
            ("set engine.parallel.replicas: auto, or " if more else "") + f"lower hardware.count to {used}",
            case.deploy.at("hardware.count"),
        )


def cards_are_alike(case: Case) -> Iterator[Diagnostic]:
    """Under tensor parallelism the smallest card rules: the others' surplus is lost."""
    sizes = sorted({d.memory.value for d in case.facts.devices})
    if len(sizes) > 1 and case.choices.tensor_parallel_size.value > 1:
        lost = sum(d.memory.value - sizes[0] for d in case.facts.devices)
        yield warning(
            "DC532",
            "the cards are unequal",
            f"Every rank gets the share of the smallest, {units.show_bytes(sizes[0])}: "
            f"{units.show_bytes(lost)} lie idle.",
            "serve one engine a card instead (engine.parallel: {tensor: 1, replicas: auto}), or use equal cards"
            if starts(case.facts, _alone(case))
            else "use equal cards: the smallest does not hold an engine of its own",
            case.deploy.at("hardware.gpu"),
        )


def _alone(case: Case) -> Choices:
    """The same cards with one engine on each."""
    cards = case.choices.tensor_parallel_size.value * case.choices.replicas.value
    return replace(case.choices, tensor_parallel_size=Choice(1, "search"), replicas=Choice(cards, "search"))


def kernels_are_built(case: Case) -> Iterator[Diagnostic]:
    """Wheels and images carry code for some cards: recent versions none for old ones, old versions none for new."""
    image = case.deploy.target.kind not in ("process", "systemd")
    kernels, own = case.facts.calibration.kernels, built(case.facts)
    torch = kernels.torch_image if image else kernels.torch_wheel
    for card in {card.name: card for card in case.facts.devices}.values():
        if card.compute_capability is None or is_built(case.facts, card, image=image):
            continue
        lists = f"the engine's kernels for {', '.join(map(words, own))}; torch" if own else "torch"
        older = card.compute_capability < torch[0]
        yield error(
            "DC535",
            "this engine version has no kernels for the card",
            f"{card.name} has compute capability {words(card.compute_capability)}; the {'image' if image else 'wheel'} "
            f"of vLLM {case.facts.engine.version} has no code for it: {lists} for {', '.join(map(words, torch))}.",
            "use a newer card, or set engine.version to an older one that is built for this card"
            if older
            else "set engine.version to a newer one, built for this card",
            case.deploy.at("hardware.gpu"),
        )
