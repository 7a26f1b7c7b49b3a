"""The command line itself: the program, the model, words that belong to nothing, values with quotes or variables."""

from __future__ import annotations

from collections.abc import Iterator

from deployc.adopt.complete import twice
from deployc.adopt.flags import canonical, is_open
from deployc.adopt.judge.case import Judged
from deployc.adopt.read.program import takes_model
from deployc.adopt.typed import as_json, python_literal, unquoted
from deployc.diagnostics import Diagnostic, error, note, warning
from deployc.types.launch import FoundFlag


def names_a_model(case: Judged) -> Iterator[Diagnostic]:
    """Without one, vLLM serves a small model of its own choice."""
    launch = case.launch
    later = launch.source == "dockerfile" and not launch.arguments and launch.entrypoint is None  # when it is run
    if launch.model is not None or launch.flag("config") is not None or later:
        return
    default = case.engine.facts.flags["model"].default if "model" in case.engine.facts.flags else None
    made = warning if default else error
    yield made(
        "DC708",
        "the launch names no model",
        f"vLLM {case.engine.facts.version} would serve {default}, its own default."
        if default
        else "The engine would not know what to serve.",
        "name it: `vllm serve org/model`, or model: in the file",
        launch.at,
    )


def program_once(case: Judged) -> Iterator[Diagnostic]:
    """A container's words come behind its entrypoint: the program given there a second time is read as the model."""
    words = twice(case.launch)
    if not words or not case.official:
        return
    said = " ".join(word.value for word in words)
    starts = case.engine.facts.entrypoint
    yield error(
        "DC709",
        "the program stands twice",
        f"The image starts `{starts}` itself; with {said!r} behind it the engine is handed its own name as an argument "
        "and refuses it.",
        f"leave out {said!r}, or set the entrypoint to it",
        words[0].at,
    )


def model_by_position(case: Judged) -> Iterator[Diagnostic]:
    """`vllm serve --model X`: refused at first, then taken with a warning."""
    launch = case.launch
    if not launch.model_flag or launch.model is None:
        return
    refused = case.engine.model_as_flag == "refused"
    made = error if refused else warning
    yield made(
        "DC710",
        "`vllm serve` takes the model without --model",
        f"vLLM {case.engine.facts.version} "
        + ("stops with a ValueError: --model is no option of `serve`." if refused else "warns that this form will go.")
        + (f" The image's entrypoint is `{case.engine.facts.entrypoint}`." if launch.image else ""),
        f"write {launch.model.value} as the first word behind the program",
        launch.model.at,
    )


def stray_words(case: Judged) -> Iterator[Diagnostic]:
    """argparse refuses words that no flag takes."""
    launch = case.launch
    if launch.source == "python":
        for piece in launch.stray:
            yield note(
                "DC729",
                "a value is not written out",
                f"{piece.value} is no plain literal: what it is shows when the program runs; nothing here runs it.",
                "write it into deploy.yaml by hand",
                piece.at,
            )
        return
    further = launch.flag("config")
    if further is not None:
        yield note(
            "DC729",
            "a value is not written out",
            f"--config {further.text} holds further flags, which were not read: they lie in another file.",
            f"`deployc import {further.text}` reads them",
            further.at,
        )
    for piece in [piece for piece in launch.stray if not is_open(piece.value)][:10]:
        switch = _switch_before(case, piece.at.line, piece.at.column)
        why = f"--{switch} is a switch and takes no value." if switch else "It belongs to no flag."
        model = " The model goes behind --model here." if not takes_model(launch.program) and not launch.model else ""
        yield error(
            "DC707",
            "a word belongs to no flag",
            f"{piece.value!r}: {why}{model} The engine stops with `unrecognized arguments`.",
            f"remove it; to switch it off, write --no-{switch}" if switch else "remove it, or put its flag before it",
            piece.at,
        )


def _switch_before(case: Judged, line: int, column: int) -> str:
    before = [flag for flag in case.launch.flags if (flag.at.line, flag.at.column) < (line, column)]
    known = case.engine.known(canonical(before[-1].name, case.engine)) if before else None
    return known.name if known is not None and known.type == "bool" and before[-1].value is True else ""


def json_is_bare(case: Judged) -> Iterator[Diagnostic]:
    """A JSON value with quotes of its own around it, or as Python writes a dict: the engine cannot read it."""
    for flag in case.launch.flags:
        known = case.engine.known(canonical(flag.name, case.engine))
        text = flag.value if isinstance(flag.value, str) else ""
        if known is None or known.type != "json" or not text or as_json(text) is not None:
            continue
        inner = unquoted(text)
        if inner is not None and as_json(inner) is not None:
            why = f"The value of {flag.written} begins and ends with a quote that no shell took away: {text[:60]}"
        elif python_literal(text) is not None or python_literal(inner or "") is not None:
            why = f"The value of {flag.written} is a Python dict, not JSON: {text[:60]}"
        elif "{" in text and '"' not in text and ":" in text:
            why = f"The shell took the quotes of {flag.written}'s JSON away: {text[:60]}"
        else:
            continue
        yield error(
            "DC725",
            "quotes of a JSON value went wrong",
            f"{why}. The engine does not start, or leaves the setting out.",
            "one argument of valid JSON: in a shell single quotes outside and double quotes inside, in a compose file "
            "a list of words; deploy.yaml takes it as a map",
            flag.at,
        )


def variables(case: Judged) -> Iterator[Diagnostic]:
    """`$MODEL`, `$(…)`, `<your-model>`: what they stand for is not known here."""
    found = [flag for flag in case.launch.flags if isinstance(flag.value, str) and _open(flag)]
    model = case.launch.model
    places = [("a word", piece.value, piece.at) for piece in case.launch.stray if is_open(piece.value)]
    places += [(flag.written, flag.text, flag.at) for flag in found]
    if model is not None and is_open(model.value):
        places.insert(0, ("the model", model.value, model.at))
    for name, value, at in places:
        yield warning(
            "DC728",
            "a variable stands for a value",
            f"{name} is {value[:60]}: nothing is expanded or run here, so the text itself was taken.",
            "write the value into deploy.yaml; it takes ${NAME} from the environment too",
            at,
        )


def _open(flag: FoundFlag) -> bool:
    return flag.name not in ("chat-template", "api-key") and is_open(flag.value)


def shell_form(case: Judged) -> Iterator[Diagnostic]:
    """A text that a shell takes apart: it is process 1, and does not hand on TERM."""
    text = case.launch.shell
    if text is None or text.value.strip().startswith("exec ") or case.launch.image is None:
        return
    yield warning(
        "DC723",
        "a shell takes the command apart",
        "What Docker starts is a shell with one text: every space, quote and $ in it counts, and where the shell stays "
        "process 1 the engine never sees the TERM of `docker stop` and is killed in the middle of its answers.",
        'write a list of words, ["vllm", "serve", …]; or begin the text with exec',
        text.at,
    )
