"""What the command line shows of a build: plain lines, a bar on a terminal, nothing when quiet."""

from __future__ import annotations

import io

from deployc.cli.progress import Lines, progress
from deployc.types.manifest import Progress

MIB = 2**20


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_plain_lines_at_the_ends_of_a_phase_and_every_ten_seconds() -> None:
    stream, at = io.StringIO(), [0.0]
    lines = Lines(stream, lambda: at[0])
    for second, now in [
        (0, Progress("wait", item="k")),
        (1, Progress("check", 5 * MIB, 5 * MIB)),
        (2, Progress("write", 0, 100 * MIB)),
        (7, Progress("write", 10 * MIB, 100 * MIB)),
        (12, Progress("write", 20 * MIB, 100 * MIB)),
        (13, Progress("write", 30 * MIB, 100 * MIB)),
        (42, Progress("write", 100 * MIB, 100 * MIB)),
    ]:
        at[0] = float(second)
        lines(now)
    assert stream.getvalue().splitlines() == [
        "waiting for another build",
        "check adapter: 5.00 MiB of 5.00 MiB",
        "write weights: 0 B of 100 MiB",
        "write weights: 20.0 MiB of 100 MiB, 2.00 MiB/s, 40.0 s left",
        "write weights: 100 MiB of 100 MiB, 2.50 MiB/s",
    ]


def test_what_was_finished_before_is_not_counted_as_speed() -> None:
    stream, at = io.StringIO(), [0.0]
    lines = Lines(stream, lambda: at[0])
    lines(Progress("write", 80 * MIB, 100 * MIB))
    at[0] = 10.0
    lines(Progress("write", 90 * MIB, 100 * MIB))
    assert stream.getvalue().splitlines()[-1] == "write weights: 90.0 MiB of 100 MiB, 1.00 MiB/s, 10.0 s left"


def test_a_bar_on_a_terminal_and_nothing_when_quiet() -> None:
    terminal, quiet = Terminal(), Terminal()
    with progress(stream=terminal) as watch:
        watch(Progress("wait"))
        watch(Progress("write", 50 * MIB, 100 * MIB))
        watch(Progress("write", 100 * MIB, 100 * MIB))
    assert "write weights" in terminal.getvalue()
    assert "100.0/100.0 MiB" in terminal.getvalue()
    with progress(quiet=True, stream=quiet) as watch:
        watch(Progress("write", 100 * MIB, 100 * MIB))
    assert quiet.getvalue() == ""
