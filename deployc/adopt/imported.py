"""A text of others -> a deploy.yaml and what is to be said: the stages of an import strung together."""

from __future__ import annotations

from dataclasses import dataclass, field

from deployc.adopt.complete import completed
from deployc.adopt.deploy import values
from deployc.adopt.engine import engine_of
from deployc.adopt.judge.case import Judged
from deployc.adopt.judge.code import judge_python
from deployc.adopt.judge.page import judge_page
from deployc.adopt.judge.registry import judge
from deployc.adopt.read.kind import MOST, Text, read
from deployc.adopt.write import text as written
from deployc.diagnostics import Diagnostic, ExitCode, Report, note
from deployc.types.launch import FoundLaunch

_SAID_OF = {"python": "the arguments in", "config": "the flags in", "dockerfile": "the image of"}


@dataclass(slots=True)
class Imported:
    """One deploy.yaml a launch, the first one first; none where nothing could be read."""

    files: list[str] = field(default_factory=list)
    launches: list[Judged] = field(default_factory=list)
    report: Report = field(default_factory=Report)
    unread: bool = False

    @property
    def exit_code(self) -> int:
        """3 where nothing could be read, else 0: what is wrong with a launch is the news, not a failure."""
        return ExitCode.OK if not self.unread else ExitCode.WRONG_FILE


def imported(text: str, name: str, *, engine_version: str | None = None, gpu: str | None = None) -> Imported:
    """Read, judge and write. `engine_version` where the text says none or another, `gpu` a profile's name.

    Code around an engine is judged too; a page that only talks to one has no launch and no deploy.yaml.
    """
    found = Imported()
    source = read(text, name)
    found.report.extend(source.report)
    found.report.extend(_code(source))
    for launch in source.launches:
        engine, said = engine_of(launch, engine_version)
        found.report.extend(said)
        found.launches.append(Judged(completed(launch, engine), engine))
    found.report.extend(judge(found.launches))
    found.unread = not found.launches and not source.about_an_engine
    for case in found.launches:
        if case.launch.model is not None:
            found.files.append(written(values(case.launch, case.engine, gpu), _origin(case.launch, name)))
    if found.files:
        found.report.add(_open_questions(found.launches[0].launch, gpu))
    if len(found.files) > 1:
        found.report.add(_several(found))
    return found


def _code(source: Text) -> list[Diagnostic]:
    if source.module is not None:
        return judge_python(source)
    return judge_page(source) if source.kind == "page" else []


def _open_questions(launch: FoundLaunch, gpu: str | None) -> Diagnostic:
    missing = "the load" if gpu is not None else "the card and the load"
    return note(
        "DC706",
        "a launch does not say everything",
        f"{missing[:1].upper()}{missing[1:]} {'is' if gpu is not None else 'are'} in no launch line: what deploy.yaml "
        "has there is a placeholder, and a plan of it is of that.",
        "set workload.input_tokens, output_tokens and concurrency"
        + ("" if gpu is not None else ", and hardware.gpu (or --gpu)"),
        launch.at,
    )


def _several(found: Imported) -> Diagnostic:
    names = ", ".join(case.launch.name or f"line {case.launch.at.line}" for case in found.launches)
    return note(
        "DC727",
        "several engines in one file",
        f"A deploy.yaml is one engine's; here are {len(found.launches)}: {names}. The first was written."
        + (f" No more than {MOST} are looked at." if len(found.launches) == MOST else ""),
        "hand in one service or command at a time for the others",
        found.launches[1].launch.at,
    )


def _origin(launch: FoundLaunch, name: str) -> str:
    inside = f", {launch.name}" if launch.name and launch.source == "compose" else ""
    return " ".join(part for part in (_SAID_OF.get(launch.source, ""), f"{name}:{launch.at.line}{inside}") if part)
