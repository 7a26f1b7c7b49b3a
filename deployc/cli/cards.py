"""The cards that a search looks at: those named on the command line, else the file's own, of which fewer may do."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from deployc.diagnostics import ExitCode, Report, Stop

if TYPE_CHECKING:
    from deployc.choose.tune import Cards
    from deployc.spec.deploy import Deploy
    from deployc.types.facts import Facts, GpuFacts


def cards(
    deploy: Deploy, facts: Facts, names: Sequence[str], counts: Sequence[str], prices: Sequence[str], *, offline: bool
) -> list[Cards]:
    """Each kind in each number, as `--gpu`, `--count` and `--price` say. Raises Stop or BadParameter: wrong usage.

    Without `--count`: the file's own number, or with `gpu: auto` and none written the host's, and each power of two
    below it. `offline`: the host is not asked.
    """
    from deployc.choose.tune import Cards

    own, money = facts.devices if offline or names else _on_host(deploy, facts), _prices(prices)
    alike = all((card.name, card.memory) == (own[0].name, own[0].memory) for card in own)
    _refuse(deploy, own, alike=alike, named=bool(names), counted=bool(counts))
    here = {own[0].name: deploy.hardware.price} if alike and deploy.hardware.price is not None else {}
    priced = {**here, **money}
    if not names and (not alike or deploy.hardware.devices is not None or own[0].name == "cpu"):
        return [Cards(own, None, priced.get(own[0].name) if alike else None)]
    many = _counts(counts) or sorted({len(own), *(2**n for n in range(10) if 2**n < len(own))})
    if not names:
        if deploy.hardware.gpu == "auto" and many[-1] > len(own):
            raise typer.BadParameter(f"there are {len(own)} on this host; name the kind of more with --gpu")
        written = own[0].name if isinstance(deploy.hardware.gpu, list) else None
        card = replace(own[0], used=max(card.used for card in own))
        return [Cards((card,) * n, written, priced.get(card.name)) for n in many]
    said = own[0].name if deploy.hardware.gpu == own[0].name else ""
    kinds = [(card, None if card.name == said else card.name) for card in _kinds(deploy, names)]
    return [Cards((card,) * n, written, priced.get(card.name)) for card, written in kinds for n in many]


def _on_host(deploy: Deploy, facts: Facts) -> tuple[GpuFacts, ...]:
    """All cards of this host where the file leaves kind and number to it; else those of the file."""
    hardware = deploy.hardware
    if hardware.gpu != "auto" or hardware.devices is not None or deploy.written("hardware.count"):
        return facts.devices
    from deployc.choose.tune.space import with_values
    from deployc.facts import gpu, nvml

    if (here := nvml.count()) <= len(facts.devices):
        return facts.devices
    found, _ = gpu.devices(with_values(deploy, hardware={"count": here}), os.environ)
    return found or facts.devices


def _refuse(deploy: Deploy, own: Sequence[GpuFacts], *, alike: bool, named: bool, counted: bool) -> None:
    if deploy.hardware.devices is not None and (named or counted):
        raise typer.BadParameter("hardware.devices names the cards one by one; --gpu and --count would name others")
    if counted and not named and (not alike or own[0].name == "cpu"):
        raise typer.BadParameter("--count needs cards of one kind: name it with --gpu")


def _kinds(deploy: Deploy, names: Sequence[str]) -> list[GpuFacts]:
    """The cards of these names, joined as the file says."""
    from deployc.facts import gpu, gpu_profile

    report = Report()
    found = [name for written in names if (name := gpu.named(written, None, report)) is not None]
    joined = [gpu.linked(deploy, gpu_profile.load(name), "auto", report) for name in dict.fromkeys(found)]
    if report.errors:
        raise Stop(report, ExitCode.USAGE)
    return [card for card in joined if card is not None]


def _counts(written: Sequence[str]) -> list[int]:
    from deployc.types.facts import MOST_CARDS

    found = set()
    for part in ",".join(written).split(",") if written else ():
        if not (part.strip().isascii() and part.strip().isdecimal() and 1 <= int(part) <= MOST_CARDS):
            raise typer.BadParameter(f"--count {part!r} is no number of cards; write it as 1,2,4")
        found.add(int(part))
    return sorted(found)


def _prices(written: Sequence[str]) -> dict[str, float]:
    from deployc.facts import gpu

    found = {}
    for part in written:
        name, equals, number = part.partition("=")
        try:
            money = float(number)
        except ValueError:
            money = 0.0
        if not equals or not 0 < money < float("inf"):
            raise typer.BadParameter(f"--price {part!r} is not GPU=NUMBER with a number above 0")
        found[gpu.profile(name).name] = money
    return found
