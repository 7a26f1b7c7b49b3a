"""One quoting filter for each format that the bundle is written in; what a format cannot hold is refused.

Text of the user reaches a file only through one of these. Placeholders are the `${DEPLOYC_…}` of `Launch.paths`:
in shell they stay expansions; the other formats get fixed paths in their place before they are quoted.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable

PLACEHOLDER = re.compile(r"(\$\{DEPLOYC_[A-Z0-9_]+\})")
_YAML_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_PLAIN = re.compile(r"[A-Za-z0-9._/-]+")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]*")
_NUMBER = re.compile(r"-(?:[0-9]+|[0-9]*\.[0-9]+)")  # what argparse takes for a value
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_PLANES = range(0, 0x110000, 0x10000)
_NOT_IN_A_UNIT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # systemd takes tab and newline, no other control
_NONCHARACTER = re.compile(
    "[\ufdd0-\ufdef" + "".join(chr(high | 0xFFFE) + chr(high | 0xFFFF) for high in _PLANES) + "]"
)
"""What systemd takes for damaged UTF-8: it ignores the whole line, and the unit has no ExecStart (utf8.c)."""
_LONGEST_FOLDER = 200
LONGEST = 60_000
"""Bytes of a command line, or of a variable, as a Dockerfile has it: BuildKit refuses lines of more than 65,535."""


class Unquotable(ValueError):
    """A value holds a character that the format has no way to write."""


def shell(word: str) -> str:
    """One POSIX shell word (`shlex.quote`); placeholders become double-quoted expansions inside it."""
    if "\0" in word:
        raise Unquotable("a NUL character cannot stand on a command line")
    pieces = [piece for piece in PLACEHOLDER.split(word) if piece]
    return "".join(f'"{p}"' if PLACEHOLDER.fullmatch(p) else shlex.quote(p) for p in pieces) or "''"


def yaml(text: str) -> str:
    """A double-quoted YAML 1.2 scalar: JSON's escapes are YAML's, and what YAML calls unprintable is escaped too."""
    quoted = json.dumps(text, ensure_ascii=False)
    return _YAML_UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", quoted)


def compose(text: str) -> str:
    """A YAML scalar that Compose's interpolation gives back as it was: `$` doubled."""
    return yaml(text.replace("$", "$$"))


def systemd_word(word: str) -> str:
    """One word of `ExecStart=` (systemd.service, "Command lines"): `%` and `$` doubled, C escapes in double quotes."""
    return systemd_value(word).replace("$", "$$")


def systemd_value(text: str) -> str:
    """One double-quoted value of a unit file, where `$` is plain but `%` names a specifier (systemd.syntax)."""
    if match := _NOT_IN_A_UNIT.search(text):
        raise Unquotable(f"a unit file cannot hold the control character {match[0]!r}")
    if match := _NONCHARACTER.search(text):
        raise Unquotable(f"a unit file cannot hold U+{ord(match[0]):04X}, which is no character")
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return '"' + text.replace("\n", "\\n").replace("\t", "\\t") + '"'


def dockerfile(text: str) -> str:
    """A double-quoted value of ENV or LABEL, nothing in it expanded; a line break has no form there."""
    if match := _CONTROL.search(text):
        raise Unquotable(f"ENV and LABEL cannot hold the control character {match[0]!r}")
    quoted = '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$") + '"'
    return _short(quoted)


def exec_form(words: Iterable[str]) -> str:
    """The JSON array of a Dockerfile's ENTRYPOINT, CMD or HEALTHCHECK CMD: no shell, nothing expanded."""
    return _short(json.dumps(list(words), ensure_ascii=False))


def _short(quoted: str) -> str:
    size = len(quoted.encode())
    if size > LONGEST:
        raise Unquotable(f"with {size:,} bytes it is longer than a line of a Dockerfile may be")
    return quoted


def comment(text: str) -> str:
    """Text that stays inside one `#` comment line in every format: no line break, no control character."""
    return " ".join(_CONTROL.sub(" ", text).replace("\u2028", " ").replace("\u2029", " ").split())


def plain(text: str) -> str:
    """A name or path of ours that needs no quoting in any format; anything else is refused."""
    if not _PLAIN.fullmatch(text):
        raise Unquotable(f"{text!r} may hold only letters, digits and . _ - /")
    return text


def folder(text: str) -> str:
    """The absolute path of a folder that needs no quoting, without `.` and `..`: what a unit takes for one."""
    parts = plain(text).split("/")
    if parts[0] or len(text) > _LONGEST_FOLDER or {".", ".."} & set(parts):
        raise Unquotable(f"a unit needs an absolute path without . and .., of {_LONGEST_FOLDER} characters at most")
    return text


def value(word: str) -> str:
    """A word that follows a flag: one that begins with a dash would be taken for a flag itself, a number excepted."""
    if word.startswith("-") and not _NUMBER.fullmatch(word):
        raise Unquotable(f"{word[:60]!r} begins with a dash, and the engine would take it for another flag")
    return systemd_word(word)


def lora_name(name: str) -> str:
    """The first half of a value NAME=PATH of `--lora-modules`."""
    if "=" in name:
        raise Unquotable(f"{name!r} holds an equals sign, and --lora-modules takes NAME=PATH")
    return value(name)


def lora_source(source: str) -> str:
    """Its second half: with a comma the engine reads it as JSON, and older versions stop at a second `=`."""
    if found := {",", "="} & set(source):
        raise Unquotable(f"--lora-modules takes NAME=PATH, and the path holds {' and '.join(sorted(found))}")
    return systemd_word(source)


def image(text: str) -> str:
    """An image reference, by tag or digest, after FROM, where nothing can be quoted."""
    if not _IMAGE.fullmatch(text):
        raise Unquotable(f"{text!r} is no image reference")
    return text


def variable(text: str) -> str:
    """The name of an environment variable, as POSIX has it."""
    if not _VARIABLE.fullmatch(text):
        raise Unquotable(f"{text!r} is no name of an environment variable")
    return text


def required(name: str) -> str:
    """The expansion of a variable that must be set, as both the shell and Compose write it."""
    return f'"${{{variable(name)}:?}}"'


def shell_secret(reference: str) -> str:
    """A secret's reference as shell: the expansion of its variable, or the content of its file; never the value."""
    kind, _, where = reference.partition(":")
    if kind == "env":
        return required(where)
    root, rest = _root(where)
    return f'"$(cat "${root}"/{shlex.quote(rest)})"' if root else f'"$(cat {shlex.quote(where)})"'


def compose_secret(reference: str) -> str:
    """A secret's reference as an entry of Compose's top-level `secrets`: `environment: …` or `file: …`."""
    kind, _, where = reference.partition(":")
    if kind == "env":
        return f"environment: {yaml(variable(where))}"
    root, rest = _root(where)
    return f'file: "${{{root}:?}}/{compose(rest)[1:]}' if root else f"file: {compose(where)}"


def _root(path: str) -> tuple[str, str]:
    """The variable of the folder that a path starts from, and the path in it; "" where it is absolute."""
    if path.startswith("/"):
        return "", path
    return ("HOME", path[2:]) if path.startswith("~/") else ("DEPLOYC_FOLDER", path)
