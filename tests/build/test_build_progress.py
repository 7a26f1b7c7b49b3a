"""What the command line shows of a build: plain lines, a bar on a terminal, JSON for programs, nothing when quiet."""

from __future__ import annotations

import io
import json
import sys
from typing import get_args, get_type_hints

import pytest

from deployc.cli.applying import Telling
from deployc.cli.options import Style
from deployc.cli.progress import SAYS, Lines, Objects, progress
from deployc.types.manifest import Progress
from deployc.types.plan import Step

MIB = 2**20
EVENTS = [
    (0, Progress("wait", item="k")),
    (1, Progress("check", 5 * MIB, 5 * MIB)),
    (2, Progress("write", 0, 100 * MIB)),
    (2.5, Progress("write", 1 * MIB, 100 * MIB, "a")),
    (7, Progress("write", 10 * MIB, 100 * MIB, "b")),
    (12, Progress("write", 20 * MIB, 100 * MIB, "c")),
    (12.5, Progress("write", 30 * MIB, 100 * MIB, "d")),
    (42, Progress("write", 100 * MIB, 100 * MIB, "e")),
    (50, Progress("calibrate", 0, 32, "", "layers")),
    (60, Progress("calibrate", 2, 32, "", "layers")),
    (210, Progress("calibrate", 32, 32, "", "layers")),
]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(kind: type[Lines | Objects], events: list[tuple[float, Progress]]) -> list[str]:
    stream, at = io.StringIO(), [0.0]
    watch = kind(stream, lambda: at[0])
    for second, now in events:
        at[0] = float(second)
        watch(now)
    return stream.getvalue().splitlines()


def test_plain_lines_at_the_ends_of_a_phase_and_every_ten_seconds() -> None:
    assert shown(Lines, EVENTS) == [
        "waiting for another build",
        "check adapter: 5.00 MiB of 5.00 MiB",
        "write weights: 0 B of 100 MiB",
        "write weights: 20.0 MiB of 100 MiB, 2.00 MiB/s, 40.0 s left",
        "write weights: 100 MiB of 100 MiB, 2.50 MiB/s",
        "calibrate: 0 of 32 layers",
        "calibrate: 2 of 32 layers, 2.5 min left",
        "calibrate: 32 of 32 layers",
    ]


def test_one_json_object_a_line_at_most_one_a_second_between_the_ends() -> None:
    found = [json.loads(line) for line in shown(Objects, EVENTS)]
    assert {tuple(one) for one in found} == {
        ("phase", "done", "total", "unit", "bytes_per_second", "seconds_left", "item")
    }
    assert [(one["phase"], one["done"], one["total"], one["unit"]) for one in found] == [
        ("wait", 0, None, "bytes"), ("check", 5 * MIB, 5 * MIB, "bytes"), ("write", 0, 100 * MIB, "bytes"),
        ("write", 10 * MIB, 100 * MIB, "bytes"), ("write", 20 * MIB, 100 * MIB, "bytes"),
        ("write", 100 * MIB, 100 * MIB, "bytes"), ("calibrate", 0, 32, "layers"), ("calibrate", 2, 32, "layers"),
        ("calibrate", 32, 32, "layers"),
    ]  # fmt: skip
    assert [(one["bytes_per_second"], one["seconds_left"]) for one in found[3:]] == [
        (2 * MIB, 45.0), (2 * MIB, 40.0), (round(2.5 * MIB), None), (None, None), (None, 150.0), (None, None),
    ]  # fmt: skip
    assert [one["item"] for one in found[3:6]] == ["b", "c", "e"]


def test_every_phase_has_its_words() -> None:
    assert set(get_args(get_type_hints(Progress)["phase"])) == set(SAYS)


def test_what_was_finished_before_is_not_counted_as_speed() -> None:
    events = [(0.0, Progress("write", 80 * MIB, 100 * MIB)), (10.0, Progress("write", 90 * MIB, 100 * MIB))]
    assert shown(Lines, events)[-1] == "write weights: 90.0 MiB of 100 MiB, 1.00 MiB/s, 10.0 s left"


def test_a_bar_on_a_terminal() -> None:
    terminal = Terminal()
    with progress(stream=terminal) as watch:
        watch(Progress("wait"))
        watch(Progress("write", 50 * MIB, 100 * MIB))
        watch(Progress("write", 100 * MIB, 100 * MIB))
        watch(Progress("measure", 7, 7, "", "tokens"))
    for words in ("waiting for another build", "write weights", "100 MiB of 100 MiB", "7 of 7 tokens"):
        assert words in terminal.getvalue()


@pytest.mark.parametrize(
    ("style", "terminal", "starts"),
    [
        (Style.AUTO, False, "write weights: 1.00 MiB of 2.00 MiB\n"), (Style.LINES, True, "write weights: "),
        (Style.JSON, True, '{"phase": "write", '), (Style.JSON, False, '{"phase": "write", '),
        (Style.NONE, True, ""), (Style.NONE, False, ""),
    ],
)  # fmt: skip
def test_the_style_that_was_asked_for(style: Style, terminal: bool, starts: str) -> None:
    stream = Terminal() if terminal else io.StringIO()
    with progress(style, stream) as watch:
        watch(Progress("write", MIB, 2 * MIB))
    assert stream.getvalue().startswith(starts)
    assert bool(stream.getvalue()) == bool(starts)


def test_a_bar_where_there_is_no_terminal_but_it_was_asked_for() -> None:
    stream = io.StringIO()
    with progress(Style.BAR, stream) as watch:
        watch(Progress("write", 2 * MIB, 2 * MIB))
    assert "\x1b[" in stream.getvalue()


def apply(style: Style, monkeypatch: pytest.MonkeyPatch) -> str:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    telling = Telling(style)
    telling.step(Step("2", "create", "engine", "nothing runs"))
    telling.waiting(1.25, 300.0, "loading")
    telling.waiting(2.0, 300.0, "loading")
    telling.say("started")
    telling.close()
    return stream.getvalue()


def test_an_apply_tells_in_the_same_styles(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = apply(Style.AUTO, monkeypatch)
    assert lines.splitlines() == ["create engine: nothing runs", "  1 s of at most 300 s: loading", "started"]
    assert apply(Style.LINES, monkeypatch) == lines
    assert apply(Style.NONE, monkeypatch) == ""
    assert apply(Style.BAR, monkeypatch).count("\r\x1b[K") == 2
    found = [json.loads(line) for line in apply(Style.JSON, monkeypatch).splitlines()]
    assert [(one["phase"], one["done"], one["total"], one["unit"], one["item"]) for one in found] == [
        ("step", 0, None, None, "create engine: nothing runs"), ("start", 1.2, 300.0, "seconds", "loading"),
        ("note", 0, None, None, "started"),
    ]  # fmt: skip
