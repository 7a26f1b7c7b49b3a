"""The bundle's files read back by their formats' own rules: what a reader of each would take from them."""

from __future__ import annotations

import json
import re

_CONTROLS = {"a": b"\a", "b": b"\b", "f": b"\f", "n": b"\n", "r": b"\r", "t": b"\t", "v": b"\v"}
_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", '"': '"'}


def systemd_words(line: str, *, exec_line: bool) -> list[str]:
    """The words of a unit's value: systemd.syntax quoting and C escapes, then `%%`, and `$$` on a command line."""
    words, position = [], 0
    while position < len(line):
        assert line[position] == '"', "every word is double-quoted"
        position += 1
        word = ""
        while line[position] != '"':
            if line[position] == "\\":
                position += 1
                word += _ESCAPES[line[position]]
            else:
                word += line[position]
            position += 1
        words.append(word)
        position += 1
        assert position == len(line) or line[position] == " "
        position += 1
    return [_unspecified(word, exec_line) for word in words]


def _unspecified(word: str, exec_line: bool) -> str:
    assert not re.search(r"(?<!%)(%%)*%(?!%)", word), "a lone % is a specifier"
    word = word.replace("%%", "%")
    if not exec_line:
        return word
    assert not re.search(r"(?<!\$)(\$\$)*\$(?!\$)", word), "a lone $ is a variable"
    return word.replace("$$", "$")


def unit(text: str) -> list[tuple[str, str, str]]:
    """(section, key, value) of every setting; a line that ends in a backslash goes on in the next one."""
    found, section = [], ""
    for line in text.replace("\\\n", " ").split("\n"):
        if line.startswith("["):
            section = line
        elif line and not line.startswith(("#", ";")):
            key, equals, value = line.partition("=")
            assert equals and section, line
            found.append((section, key, value))
    return found


def dockerfile(text: str) -> list[tuple[str, str]]:
    """(instruction, the rest) of every instruction; comments go before continued lines are joined."""
    kept = "\n".join(line for line in text.split("\n") if not line.startswith("#"))
    joined = [line for line in re.sub(r"\\[ \t]*\n", "", kept).split("\n") if line.strip()]
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1].strip()) for line in joined]


def dockerfile_value(quoted: str) -> str:
    """A double-quoted word of ENV, as Docker's own lexer reads it: `\\` keeps `"`, `$` and itself from acting."""
    assert quoted[0] == quoted[-1] == '"' and "\n" not in quoted
    out, position, inner = "", 0, quoted[1:-1]
    while position < len(inner):
        character = inner[position]
        if character == "\\" and inner[position + 1] in '"$\\':
            position += 1
            character = inner[position]
        else:
            assert character not in '"$', "would end the word or expand a variable"
        out += character
        position += 1
    return out


def dockerfile_words(rest: str) -> list[str]:
    """The words of an exec form."""
    words: list[str] = json.loads(rest)
    return words


def systemd_dump(text: str) -> dict[str, str]:
    """Unit -> its part of what `systemd --test` prints."""
    parts = re.split(r"^\t*-> Unit (\S+):$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def dumped_command(part: str) -> list[str]:
    """The words of ExecStart= as systemd's dump quotes them, with `$$` made one as it does when it starts the unit."""
    line = part.split("-> ExecStart:\n", 1)[1].split("Command Line: ", 1)[1].split("\n", 1)[0]
    words, position = [], 0
    while position < len(line):
        quoted = line[position] == '"'
        position += quoted
        word = bytearray()
        while position < len(line) and line[position] != ('"' if quoted else " "):
            if line[position] == "\\":
                character, position = _unescaped(line, position + 1)
                word += character
            else:
                word += line[position].encode()
                position += 1
        words.append(word.decode().replace("$$", "$"))
        position += 1 + quoted
    return words


def _unescaped(line: str, at: int) -> tuple[bytes, int]:
    kind = line[at]
    if kind == "x":
        return bytes([int(line[at + 1 : at + 3], 16)]), at + 3
    if kind.isdigit():
        return bytes([int(line[at : at + 3], 8)]), at + 3
    return _CONTROLS.get(kind, kind.encode()), at + 1
