"""What can be wrong with a text file of the user's, one function a code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from deployc.diagnostics import Diagnostic, error, warning

_SHOWN = 20  # runs of line numbers for one reason


def bad_lines(shown: str, bad: Mapping[str, Sequence[int]]) -> Diagnostic:
    """Lines that cannot be used, by why; none at all where the file holds nothing."""
    said = "; ".join(f"{_numbers(numbers)}: {why}" for why, numbers in bad.items())
    return _unusable(shown, said or "it is empty")


def unreadable(shown: str, reason: str) -> Diagnostic:
    """No such file, or one that the system does not let be read."""
    return _unusable(shown, reason[:1].lower() + reason[1:])


def few_lines(shown: str, found: int, samples: int) -> Diagnostic:
    """Fewer than `samples`."""
    detail = f"{shown}: {found} {'line' if found == 1 else 'lines'}; samples is {samples}. All are used."
    fix = "Add lines like those that will be served, or lower `samples` to what there is."
    return warning("DC262", "the text has fewer lines than samples", detail, fix)


def _unusable(shown: str, detail: str) -> Diagnostic:
    fix = 'Write one JSON object a line: {"text": "…"} or {"messages": [{"role": "user", "content": "…"}, …]}.'
    return error("DC261", "the text cannot be used", f"{shown}: {detail}.", fix)


def _numbers(numbers: Sequence[int]) -> str:
    """ "line 3", "lines 3, 7-9 and 40 more"."""
    runs = list(_runs(numbers))
    shown = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs[:_SHOWN])
    more = sum(last - first + 1 for first, last in runs[_SHOWN:])
    return f"{'line' if len(numbers) == 1 else 'lines'} {shown}" + (f" and {more} more" if more else "")


def _runs(numbers: Iterable[int]) -> Iterable[tuple[int, int]]:
    first = last = 0
    for number in numbers:
        if first and number == last + 1:
            last = number
            continue
        if first:
            yield first, last
        first = last = number
    if first:
        yield first, last
