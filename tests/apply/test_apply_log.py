"""The engine's log: bounded, masked, harmless to a terminal, followed through rotations."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from deployc.apply import logfile
from deployc.apply.logfile import LogFile, follow, printable, since_start, tail

SECRET = "s3cret-canary"


def test_lines_are_written_whole_whatever_pieces_they_come_in(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "a.log", [])
    for piece in (b"one", b" line\ntw", b"o\r", b"10%\r20%\r\n", b"rest"):
        log.write(piece)
    assert (tmp_path / "a.log").read_text() == "one line\ntwo\n10%\n20%\n"
    log.flush()
    assert tail(tmp_path / "a.log", 1) == ["rest"]


@given(st.lists(st.integers(1, 40), max_size=20))
def test_a_secret_cut_in_pieces_is_masked_all_the_same(cuts: list[int]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.log"
        log = LogFile(path, [SECRET])
        text = f"key={SECRET} and {SECRET}{SECRET}\n".encode()
        position = 0
        for cut in cuts:
            log.write(text[position : position + cut])
            position += cut
        log.write(text[position:])
        assert SECRET not in path.read_text() and "key=********" in path.read_text()


def test_a_log_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    log = LogFile(path, [], limit=1000)
    for number in range(500):
        log.write(f"line {number}\n".encode())
    sizes = [f.stat().st_size for f in tmp_path.iterdir()]
    assert len(sizes) == 2 and sum(sizes) <= 2000
    assert tail(path, 3) == ["line 497", "line 498", "line 499"]
    assert len(tail(path, 120)) > 60, "the rotated part is read too"


def test_a_line_without_end_does_not_fill_memory(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "a.log", [])
    for _ in range(100):
        log.write(b"x" * 2**14)
    assert (tmp_path / "a.log").stat().st_size > 2**20


def test_a_full_disk_loses_lines_and_not_the_engine() -> None:
    log = LogFile(Path("/dev/full"), [])
    log.write(b"no room for this\n")
    log.say("nor for this")


@given(st.text())
def test_nothing_printable_controls_a_terminal(text: str) -> None:
    shown = printable(text)
    assert not any((c < " " and c not in "\t\n") or "\x7f" <= c <= "\x9f" for c in shown)


def test_colours_go_and_titles_are_shown() -> None:
    assert printable("\x1b[31mred\x1b[0m \x1b]0;title\x07") == "red \\x1b]0;title\\x07"


def test_only_the_latest_start_is_looked_at(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "a.log", [])
    log.say(f"{logfile.STARTING} 1-aa")
    log.write(b"CUDA out of memory\n")
    log.say(f"{logfile.STARTING} 1-aa")
    log.write(b"[deployc] starting is only a word here\nfine\n")
    assert since_start(tmp_path / "a.log", 100) == ["[deployc] starting is only a word here", "fine"]


def test_follow_goes_on_through_rotations_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    log = LogFile(path, [], limit=100)
    log.write(b"before\n")
    batches = [b"second\n", b"third\n" + b"x" * 90 + b"\n", b"half of", b" one\n"]
    seen = list(follow(path, 10, lambda: not batches, lambda: log.write(batches.pop(0))))
    assert seen == ["before", "second", "third", "x" * 90, "half of one"]
