"""What the texts of the file may hold, so that they are safe wherever they are passed on to: one table of checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from deployc.diagnostics import Diagnostic
from deployc.source.tree import Path
from deployc.spec import faults
from deployc.spec.faults import Wrong, fault, said
from deployc.spec.written import Written

UNSAFE = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Control characters: line ends, NUL, escapes, and those that turn the direction of what is shown."""
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\Z")
_NAME = re.compile(r"[\w][\w./:@+~=-]{0,254}\Z")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_VERSION = re.compile(r"[0-9]{1,5}\.[0-9]{1,5}\.[0-9]{1,5}(?:\.?(?:post|dev|rc)[0-9]{1,5})?\Z")
_CARD = re.compile(r"(?:GPU|MIG)-[0-9A-Za-z/-]{4,80}\Z")


def text(value: str) -> None:
    """One line that is not empty and that no command line takes for an option."""
    paragraph(value)
    setting(value)
    if value.startswith("-"):
        raise Wrong(faults.TEXT, f"{said(value)} would be taken for an option", "begin it with another sign than -")


def paragraph(value: str) -> None:
    """Text for people, of one line or several."""
    if not value.strip():
        raise Wrong(faults.TEXT, "it is empty", "write it, or remove the key")
    setting(re.sub(r"[\n\t]", " ", value))


def setting(value: str) -> None:
    """One line, empty too."""
    if found := UNSAFE.search(value):
        detail = f"it holds U+{ord(found[0]):04X}, a line end or another control character"
        raise Wrong(faults.TEXT, detail, "keep it to one plain line")


def name(value: str) -> None:
    """No blanks or quotes, nothing that a command line takes for an option."""
    text(value)
    if not _NAME.match(value):
        detail = f"{said(value)} begins with a sign or holds blanks, quotes or other signs"
        raise Wrong(faults.TEXT, detail, "use letters, digits and . _ - / : @")


def label(value: str) -> None:
    """A DNS label."""
    if not _LABEL.match(value):
        detail = f"{said(value)} is not 1 to 63 of a-z, 0-9 and -, begun and ended by a letter or digit"
        meant = re.sub(r"[^a-z0-9]+", "-", value.lower())[:63].strip("-")
        raise Wrong(faults.LABEL, detail, f"rename it, e.g. {meant or 'domain-qa'}")


def variable(value: str) -> None:
    """The name of an environment variable."""
    if not _VARIABLE.match(value):
        detail = "an environment variable's name is letters, digits and _, not begun by a digit"
        raise Wrong(faults.TEXT, detail, "rename it")


def reference(value: str) -> None:
    """The name of an environment variable that holds a secret."""
    if not _VARIABLE.match(value):
        raise Wrong(
            faults.REFERENCE, "it is not the name of an environment variable", "write its name alone, without $"
        )


def secret_file(value: str) -> None:
    """The path of a file that holds a secret."""
    if not value.strip() or UNSAFE.search(value):
        raise Wrong(faults.REFERENCE, "it is not a path", "write the path of a file that holds the secret alone")


def version(value: str) -> None:
    """A release: three numbers with dots."""
    if not _VERSION.match(value):
        detail = f"{said(value)} is no release; `latest` or a range would change under you"
        raise Wrong(faults.RELEASE, detail, "write three numbers, e.g. 0.33.0")


def address(value: str) -> None:
    """An IP address, or localhost."""
    import ipaddress

    try:
        ipaddress.ip_address("127.0.0.1" if value == "localhost" else value)
    except ValueError:
        fix = "write 127.0.0.1 for this machine alone, or 0.0.0.0 for all its networks"
        raise Wrong(faults.ADDRESS, f"{said(value)} is neither an IP address nor localhost", fix) from None


def card(value: str) -> None:
    """The UUID of a card or of a MIG slice."""
    if not _CARD.match(value):
        fix = "write 0, or GPU-… or MIG-… as `nvidia-smi -L` prints it"
        raise Wrong(faults.TEXT, f"{said(value)} is neither an index nor a UUID", fix)


def code(value: str) -> None:
    """The code of a diagnostic."""
    if not re.fullmatch(r"DC[0-9]{3}", value):
        raise Wrong(faults.TEXT, f"{said(value)} is no diagnostic's code", "write it as DC402")


_VALUES: Mapping[str, Callable[[str], None]] = {
    "name": label, "model.revision": name, "adapters.*.name": name, "adapters.*.revision": name, "engine.image": name,
    "engine.version": version, "engine.env.*": setting, "api.served_model_name.*": name, "api.tool_call_parser": name,
    "api.reasoning_parser": name, "hardware.devices.*": card, "target.bind": address, "target.networks.*": name,
    "target.extra_hosts.*": name, "target.labels.*": setting, "target.api_key.env": reference,
    "target.hub_token.env": reference, "target.api_key.file": secret_file, "target.hub_token.file": secret_file,
    "accept.*.code": code, "accept.*.reason": paragraph,
}  # fmt: skip
_KEYS: Mapping[str, Callable[[str], None]] = {"engine.env": variable, "target.labels": name}
_FREE = ("model.overrides", "engine.args", "engine.speculative", "api.generation")
"""Maps whose texts are the engine's business: they are quoted where they are written, and may hold line ends."""


def texts(written: Written, hidden: list[Path]) -> Iterator[Diagnostic]:
    """What is wrong with texts and with the keys of open maps; nothing of the values at `hidden` paths."""
    for path, value in written.leaves():
        if isinstance(value, str) and path not in hidden and not ".".join(map(str, path[:2])).startswith(_FREE):
            yield from _checked(_VALUES.get(_pattern(path), text), value, path, written)
    for dotted, check in _KEYS.items():
        place = tuple(dotted.split("."))
        for key in written.section(*place):
            yield from _checked(check, key, (*place, key), written, of_key=True)


def _pattern(path: Path) -> str:
    open_map = ".".join(map(str, path[:-1])) in _KEYS
    return ".".join("*" if isinstance(p, int) or (open_map and p is path[-1]) else p for p in path)


def _checked(
    check: Callable[[str], None], value: str, path: Path, written: Written, of_key: bool = False
) -> Iterator[Diagnostic]:
    try:
        check(value)
    except Wrong as wrong:
        at = written.at_key(*path) if of_key else written.at(*path)
        yield fault(wrong.kind, f"`{'.'.join(map(str, path))}`: {wrong.detail}.", wrong.fix, at)
