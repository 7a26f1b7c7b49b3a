"""Which cards a search looks at."""

from __future__ import annotations

import pytest
import typer
from configured import A100, HOST, card, facts_of, yaml_of
from handmade import deploy_of

from deployc.choose.tune import Cards
from deployc.cli.cards import cards
from deployc.diagnostics import ExitCode, Stop
from deployc.facts import gpu, nvml
from deployc.types.facts import GpuFacts


def seen(
    hardware: str, own: tuple[GpuFacts, ...], *, names: tuple[str, ...] = (), counts: tuple[str, ...] = (),
    prices: tuple[str, ...] = (), offline: bool = True,
) -> list[tuple[int, str, str | None, float | None]]:  # fmt: skip
    """Count, name, what would be written, price."""
    deploy = deploy_of(yaml_of(hardware=hardware))
    found = cards(deploy, facts_of(cards=own), names, counts, prices, offline=offline)
    assert all(isinstance(one, Cards) for one in found)
    return [(one.count, one.name, one.written, one.price) for one in found]


def test_of_the_files_own_fewer_may_do() -> None:
    own = (card(),) * 6
    found = seen("{gpu: rtx-4090, count: 6, price: 2}", own)
    assert found == [(n, "rtx-4090", None, 2.0) for n in (1, 2, 4, 6)]
    assert [count for count, *_ in seen("{gpu: rtx-4090, count: 6}", own, counts=("3,1", "8"))] == [1, 3, 8]


def test_a_list_of_equal_cards_is_written_as_name_and_count() -> None:
    found = seen("{gpu: [rtx-4090, rtx-4090]}", (card(),) * 2)
    assert found == [(1, "rtx-4090", "rtx-4090", None), (2, "rtx-4090", "rtx-4090", None)]


def test_unequal_cards_named_devices_and_the_cpu_stay_as_they_are() -> None:
    unequal = (card(), A100)
    assert [count for count, *_ in seen("{gpu: [rtx-4090, a100-80]}", unequal)] == [2]
    assert [count for count, *_ in seen("{gpu: rtx-4090, count: 2, devices: [0, 3]}", (card(),) * 2)] == [2]
    assert [count for count, *_ in seen("{gpu: cpu}", (HOST,))] == [1]
    for hardware, own in (("{gpu: [rtx-4090, a100-80]}", unequal), ("{gpu: cpu}", (HOST,))):
        with pytest.raises(typer.BadParameter, match="--count"):
            seen(hardware, own, counts=("2",))
    with pytest.raises(typer.BadParameter, match=r"hardware\.devices"):
        seen("{gpu: rtx-4090, count: 2, devices: [0, 3]}", (card(),) * 2, names=("l40s",))


def test_other_kinds_are_joined_as_the_file_says() -> None:
    found = seen("{gpu: rtx-4090}", (card(),), names=("RTX 4090", "l40s", "rtx-4090"), counts=("2",))
    assert [(count, name, written) for count, name, written, _ in found] == [
        (2, "rtx-4090", None), (2, "l40s", "l40s"),
    ]  # fmt: skip
    with pytest.raises(Stop) as stop:
        seen("{gpu: rtx-4090, interconnect: nvlink}", (card(),), names=("l40s",))
    assert stop.value.exit_code == ExitCode.USAGE
    assert [found.code for found in stop.value.report.errors] == ["DC668"]


def test_a_price_on_the_command_line_wins_over_that_of_the_file() -> None:
    both = ("rtx-4090", "l40s")
    found = seen("{gpu: rtx-4090, price: 2}", (card(),), names=both, prices=("rtx-4090=3", "l40s=4"))
    assert [price for *_, price in found] == [3.0, 4.0]
    assert [price for *_, price in seen("{gpu: rtx-4090, price: 2}", (card(),), names=both)] == [2.0, None]


def test_all_cards_of_the_host_where_the_file_leaves_them_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "count", lambda: 4)
    monkeypatch.setattr(gpu, "devices", lambda deploy, _: ((card(),) * deploy.hardware.count, None))
    assert [count for count, *_ in seen("{gpu: auto}", (card(),), offline=False)] == [1, 2, 4]
    assert [count for count, *_ in seen("{gpu: auto}", (card(),), offline=True)] == [1]
    assert [count for count, *_ in seen("{gpu: auto, count: 2}", (card(),) * 2, offline=False)] == [1, 2]
    with pytest.raises(typer.BadParameter, match="there are 4"):
        seen("{gpu: auto}", (card(),), counts=("8",), offline=False)
