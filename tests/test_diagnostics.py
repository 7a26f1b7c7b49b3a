"""The report every stage returns: each finding once, ordered for people, errors lowered only with a reason."""

from __future__ import annotations

from deployc.diagnostics import ExitCode, Report, Severity, Span, Stop, error, note, warning


def at(line: int, column: int = 1, file: str = "deploy.yaml") -> Span:
    return Span(file, line, column, column + 1, f"line {line}")


def test_each_finding_once() -> None:
    one = error("DC1", "a", "b", "c", at(1))
    report = Report([one])
    report.add(error("DC1", "a", "b", "c", Span("deploy.yaml", 1, 1, 2, "another excerpt of the same place")))
    report.extend([one, error("DC1", "a", "b", "c", at(2)), error("DC1", "a", "d", "c", at(1))])
    assert len(report) == 3


def test_many_findings_take_no_square_time() -> None:
    report = Report()
    report.extend(error("DC1", "a", str(number), "", at(number)) for number in range(50_000))
    assert len(report) == 50_000


def test_order_is_errors_first_then_place_then_code() -> None:
    found = [
        note("DC9", "n", at=at(1)), warning("DC8", "w", at=at(1)), error("DC7", "e"), error("DC6", "e", at=at(3)),
        error("DC5", "e", at=at(2, 9)), error("DC4", "e", at=at(2, 1)), error("DC3", "e", at=at(2, 1)),
        error("DC2", "e", at=at(9, file="base.yaml")),
    ]  # fmt: skip
    assert [d.code for d in Report(found).ordered()] == ["DC2", "DC3", "DC4", "DC5", "DC6", "DC7", "DC8", "DC9"]


def test_errors_alone() -> None:
    report = Report([warning("DC8", "w"), error("DC7", "e"), note("DC9", "n")])
    assert [d.code for d in report.errors] == ["DC7"]


def test_lowered_says_why() -> None:
    report = Report([error("DC402", "misses", "by 3 s"), error("DC403", "misses")])
    report.lowered(0, "agreed")
    report.lowered(1, "agreed")
    assert not report.errors and {d.severity for d in report} == {Severity.WARNING}
    assert [d.detail for d in report] == ["by 3 s\nAccepted: agreed", "Accepted: agreed"]


def test_stop_carries_one_or_many() -> None:
    assert [d.code for d in Stop(error("DC1", "e")).report] == ["DC1"]
    stop = Stop(Report([error("DC1", "e"), error("DC2", "f")]), ExitCode.REFUSED)
    assert stop.exit_code == 5 and str(stop) == "DC1: e; DC2: f"


def test_a_place_is_shown_as_editors_open_it() -> None:
    assert str(at(3, 7)) == "deploy.yaml:3:7"
