"""`${NAME}` and `${NAME:-default}` from the environment; `$${` is a literal `${`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from deployc.diagnostics import Diagnostic, Report, error
from deployc.source.scalar import resolved
from deployc.source.tree import Node, Path, Scalar, walk

_REFERENCE = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|\$\{")
SECRET_NAME = re.compile(r"(?i)(token|secret|passw|credential|private_?key|api_?key|access_?key)")
SECRET_PLACES: tuple[Path, ...] = (("target", "api_key"), ("target", "hub_token"))


def interpolate(root: Node, env: Mapping[str, str], report: Report) -> dict[str, str]:
    """Put variables in, in place. Returns the names used with the sha256 of each value; secrets are refused."""
    used: dict[str, str] = {}
    for path, node in walk(root):
        if isinstance(node, Scalar) and "${" in node.text and isinstance(node.value, str):
            _scalar(path, node, env, used, report)
    return dict(sorted(used.items()))


def _scalar(path: Path, node: Scalar, env: Mapping[str, str], used: dict[str, str], report: Report) -> None:
    wrong: list[Diagnostic] = []

    def value(found: re.Match[str]) -> str:
        name, default = found[1], found[2]
        if found[0] == "$${":
            return "${"
        if name is None:
            wrong.append(
                error(
                    "DC122",
                    "a variable reference is not well formed",
                    f"{node.text[found.start() : found.start() + 40]!r} is neither ${{NAME}} nor ${{NAME:-default}}.",
                    "close it with }, or write $${ for the characters themselves",
                    node.span,
                )
            )
            return ""
        if problem := _secret(path, name):
            wrong.append(
                error(
                    "DC121",
                    "a secret must not be interpolated",
                    problem,
                    "name where it is found: {env: NAME} or {file: PATH}; apply reads it there",
                    node.span,
                )
            )
            return ""
        given = env.get(name, default)
        if given is None:
            wrong.append(
                error(
                    "DC120",
                    "a variable is not set",
                    f"${{{name}}} has no value in the environment.",
                    f"export {name}, or write ${{{name}:-default}}",
                    node.span,
                )
            )
            return ""
        used[name] = "sha256:" + hashlib.sha256(given.encode()).hexdigest()
        return given

    text = _REFERENCE.sub(value, node.text)
    report.extend(wrong)
    node.text = text
    try:
        node.value = resolved(text) if node.plain else text
    except ValueError as unusable:
        report.add(
            error("DC109", "a number cannot be used", f"{text[:80]!r} {unusable}.", "write a finite number", node.span)
        )


def _secret(path: Path, name: str) -> str:
    if any(path[: len(place)] == place for place in SECRET_PLACES):
        return f"${{{name}}} stands inside {'.'.join(map(str, path))}, which holds a reference, not a value."
    if SECRET_NAME.search(name):
        return f"{name} looks like the name of a secret; its value would be written into plans and files."
    return ""
