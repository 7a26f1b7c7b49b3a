"""`gpu: auto`: a stand-in for NVML's module where cards are needed, the real one where there is no driver."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest
from handmade import QWEN_ON_4090, deploy_of

from deployc.diagnostics import Diagnostic, Severity
from deployc.facts.gpu import devices
from deployc.types.facts import GpuFacts

MIB = 2**20


@dataclass
class Card:
    """A card as the stand-in has it: sizes in MiB, `links` the state of each NVLink."""

    name: str | bytes = "NVIDIA GeForce RTX 4090"
    total: int = 24564
    reserved: int = 480
    used: int = 1
    capability: tuple[int, int] = (8, 9)
    mig: int | None = None
    links: tuple[int, ...] | None = ()  # None: NVML does not support the question
    uuid: str = "GPU-1"


@dataclass
class StandIn:
    """What `import pynvml` gives: the calls that are made, answered from `cards`, and pynvml's own errors."""

    cards: list[Card]
    fails: int | None = None  # NVML error code of nvmlInit
    lost: bool = False  # every card fell off the bus
    old: bool = False  # a driver without the second version of the memory call
    open: int = field(default=0)

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("NVML", "nvmlMemory")):
            return getattr(pynvml, name)
        raise AttributeError(name)

    def nvmlInit(self) -> None:  # NVML's own names
        if self.fails is not None:
            raise pynvml.NVMLError(self.fails)
        self.open += 1

    def nvmlShutdown(self) -> None:
        self.open -= 1

    def nvmlSystemGetDriverVersion(self) -> str | bytes:
        return b"570.133.20"

    def nvmlDeviceGetCount(self) -> int:
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Card:
        return self.cards[index]

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> Card:
        for card in self.cards:
            if card.uuid == uuid:
                return card
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)

    def nvmlDeviceGetName(self, card: Card) -> str | bytes:
        if self.lost:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return card.name

    def nvmlDeviceGetMigMode(self, card: Card) -> tuple[int, int]:
        if card.mig is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return card.mig, card.mig

    def nvmlDeviceGetMemoryInfo(self, card: Card, version: int | None = None) -> Any:
        if version is None:
            return SimpleNamespace(total=card.total * MIB, used=(card.used + card.reserved) * MIB)
        if self.old:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        return SimpleNamespace(total=card.total * MIB, reserved=card.reserved * MIB, used=card.used * MIB)

    def nvmlDeviceGetNvLinkState(self, card: Card, link: int) -> int:
        if card.links is None:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        if link >= len(card.links):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return card.links[link]

    def nvmlDeviceGetCudaComputeCapability(self, card: Card) -> list[int]:
        return list(card.capability)


class Machine:
    """The stand-in in place of pynvml, and what `gpu: auto` makes of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def ask(
        self, *cards: Card, hardware: str = "gpu: auto", env: dict[str, str] | None = None, **machine: Any
    ) -> tuple[tuple[GpuFacts, ...] | None, list[Diagnostic]]:
        nvml = StandIn(list(cards), **machine)
        self._monkeypatch.setitem(sys.modules, "pynvml", nvml)
        deploy = deploy_of(QWEN_ON_4090.replace("hardware:\n  gpu: rtx-4090\n", f"hardware: {{{hardware}}}\n"))
        found, report = devices(deploy, env or {})
        assert nvml.open == 0, "NVML is left open"
        return found, list(report)

    def card(self, card: Card, **machine: Any) -> GpuFacts:
        found, said = self.ask(card, **machine)
        assert found is not None and len(found) == 1 and not said, said
        return found[0]

    def refusal(self, *cards: Card, code: str, **machine: Any) -> list[Diagnostic]:
        found, said = self.ask(*cards, **machine)
        assert found is None
        assert {(d.code, d.severity) for d in said} == {(code, Severity.ERROR)}
        assert all(d.detail and d.fix and d.at for d in said)
        return said


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def test_memory_is_nvmls_and_speed_the_profiles(machine: Machine) -> None:
    found = machine.card(Card(used=1200))
    assert found.name == "rtx-4090"
    assert (found.memory.value, found.memory.basis) == ((24564 - 480) * MIB, "nvml")
    assert found.used == 1200 * MIB
    assert found.bandwidth is not None and found.bandwidth.value == 1008e9
    assert found.flops["bf16"].value == 165.2e12
    assert (found.compute_capability, found.interconnect) == ((8, 9), "pcie")
    assert found.driver == "570.133.20"


def test_an_old_driver_that_does_not_tell_what_it_reserves(machine: Machine) -> None:
    found = machine.card(Card(), old=True)
    assert (found.memory.value, found.used) == (24564 * MIB, 481 * MIB)


@pytest.mark.parametrize(
    ("card", "name"),
    [
        (Card(total=49140), "rtx-4090-48g"),
        (Card("NVIDIA GeForce RTX 4090 D"), "rtx-4090d"),
        (Card("NVIDIA GeForce RTX 4090 D", total=49140), "rtx-4090d-48g"),
        (Card(b"Tesla T4", 15360, 450, capability=(7, 5)), "t4"),
        (Card("NVIDIA A100-SXM4-80GB", 81920, 500, capability=(8, 0), mig=0, links=(1,) * 12), "a100-80"),
        (Card("NVIDIA A100 80GB PCIe", 81920, 500, capability=(8, 0), mig=0, links=(0,) * 12), "a100-80-pcie"),
        (Card("NVIDIA H200", 143771, 600, capability=(9, 0), mig=0, links=(1,) * 18), "h200-sxm"),
        (Card("NVIDIA L40S", 46068, 450), "l40s"),
    ],
)
def test_names_that_nvml_reports(card: Card, name: str, machine: Machine) -> None:
    found = machine.card(card)
    assert found.name == name
    assert found.memory.value == (card.total - card.reserved) * MIB


def test_links_are_what_nvml_sees(machine: Machine) -> None:
    bridged = Card("NVIDIA GeForce RTX 3090", 24576, 300, capability=(8, 6), links=(0, 0, 1, 1))
    found = machine.card(bridged)
    assert found.interconnect_bandwidth is not None
    assert (found.interconnect, found.interconnect_bandwidth.value) == ("nvlink", 56.25e9)
    bridged.links = (0, 0, 0, 0)
    assert machine.card(bridged).interconnect == "pcie"
    assert machine.card(bridged, hardware="gpu: auto, interconnect: nvlink").interconnect == "nvlink"


@pytest.mark.parametrize("links", [None, ()])
def test_where_nvml_does_not_say_the_profile_does(links: tuple[int, ...] | None, machine: Machine) -> None:
    """As on an H200 passed through to a virtual machine, driver 580: reserved 616 MiB, links not supported."""
    found = machine.card(Card("NVIDIA H200", 143771, 616, capability=(9, 0), mig=0, links=links))
    assert found.interconnect == "nvlink"
    assert found.memory.value / 2**30 == pytest.approx(139.80, abs=0.005)  # what CUDA shows there
    ampere = Card("NVIDIA GeForce RTX 3090", 24576, 300, capability=(8, 6), links=links)
    assert machine.card(ampere).interconnect == "pcie"


def test_the_first_cards_are_taken_or_those_that_are_named(machine: Machine) -> None:
    cards = [Card(uuid="GPU-a", used=1), Card(uuid="GPU-b", used=2), Card(uuid="GPU-c", used=3)]

    def used(hardware: str) -> list[int]:
        found, said = machine.ask(*cards, hardware=hardware)
        assert found is not None and not said
        return [card.used // MIB for card in found]

    assert used("gpu: auto, count: 2") == [1, 2]
    assert used("gpu: auto, count: 2, devices: [2, 0]") == [3, 1]
    assert used("gpu: auto, count: 3, devices: [GPU-c, '1', GPU-a]") == [3, 2, 1]


def test_cards_may_differ(machine: Machine) -> None:
    found, _ = machine.ask(Card(), Card(total=49140), hardware="gpu: auto, count: 2")
    assert found is not None
    assert [card.name for card in found] == ["rtx-4090", "rtx-4090-48g"]


def test_cards_that_are_not_there(machine: Machine) -> None:
    assert "machine: 1;" in machine.refusal(Card(), code="DC664", hardware="gpu: auto, count: 2")[0].detail
    assert "machine: 0;" in machine.refusal(code="DC664")[0].detail
    several = machine.refusal(Card(), code="DC664", hardware="gpu: auto, count: 3, devices: [0, 1, GPU-x]")
    assert len(several) == 2


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, "there is none here"),
        (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, "there is none here"),
        (pynvml.NVML_ERROR_NO_PERMISSION, "may not ask"),
        (pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, "was updated"),
        (pynvml.NVML_ERROR_UNKNOWN, "the driver answers"),
    ],
)
def test_a_driver_that_does_not_answer(failure: int, words: str, machine: Machine) -> None:
    assert words in machine.refusal(Card(), code="DC663", fails=failure)[0].detail


def test_a_card_that_fell_off_the_bus(machine: Machine) -> None:
    machine.refusal(Card(), code="DC663", lost=True)


def test_mig_mode_is_refused(machine: Machine) -> None:
    sliced = Card("NVIDIA A100-SXM4-80GB", 81920, 500, mig=1)
    assert "in MIG mode" in machine.refusal(sliced, code="DC665")[0].detail


@pytest.mark.parametrize("card", [Card("NVIDIA GeForce RTX 4080", 16376), Card(total=81920)])
def test_a_card_without_profile_is_no_other_card(card: Card, machine: Machine) -> None:
    said = machine.refusal(card, code="DC666")[0]
    assert f"memory: {card.total - 480}MiB" in said.fix


def test_a_schedulers_choice_of_cards_is_named(machine: Machine) -> None:
    _, said = machine.ask(Card(), Card(), env={"CUDA_VISIBLE_DEVICES": "1"})
    assert [(d.code, d.severity) for d in said] == [("DC667", Severity.WARNING)]
    for hardware, visible in (("gpu: auto", "0"), ("gpu: auto, count: 2", "0, 1"), ("gpu: auto, devices: [1]", "1")):
        assert not machine.ask(Card(), Card(), hardware=hardware, env={"CUDA_VISIBLE_DEVICES": visible})[1]


def test_without_a_driver_the_real_nvml_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: object) -> None:
        raise OSError("no such library")

    monkeypatch.setattr(pynvml, "CDLL", absent)  # the same answer on a machine that has a driver
    monkeypatch.setattr(pynvml, "nvmlLib", None)
    found, report = devices(deploy_of(QWEN_ON_4090.replace("gpu: rtx-4090", "gpu: auto")), {})
    assert found is None
    assert [d.code for d in report] == ["DC663"]
    assert "Library Not Found" in next(iter(report)).detail
