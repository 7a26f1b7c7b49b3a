"""`${NAME}` and `${NAME:-default}` from the environment; `$${` is a literal `${`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from deployc.diagnostics import Diagnostic, Report, Span, error
from deployc.source.parse import unusable_number
from deployc.source.scalar import resolved
from deployc.source.secrets import secret_name, secret_value
from deployc.source.tree import Node, Path, Scalar, walk

_REFERENCE = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]{0,200})(?::-([^{}]{0,400}))?\}|\$\{")
_UNUSABLE = re.compile("[\0-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_REFERENCES = (("target", "api_key"), ("target", "hub_token"))


def interpolate(root: Node, env: Mapping[str, str], report: Report) -> dict[str, str]:
    """Put variables into every scalar, in place, and read plain ones anew (`${PORT}` may be a number).

    Returns the names used with the sha256 of what each gave. Secrets are refused, and neither used nor hashed.
    """
    used: dict[str, str] = {}
    for path, node in walk(root):
        if isinstance(node, Scalar) and "${" in node.text:
            _scalar(path, node, env, used, report)
    return dict(sorted(used.items()))


def _scalar(path: Path, node: Scalar, env: Mapping[str, str], used: dict[str, str], report: Report) -> None:
    parts: list[str] = []
    end = 0
    for found in _REFERENCE.finditer(node.text):
        parts.append(node.text[end : found.start()])
        end = found.end()
        if found[0] == "$${":
            parts.append("${")
            continue
        given = _given(path, found, env, node.span)
        if isinstance(given, Diagnostic):
            report.add(given)
            if found[1] is None:
                return  # where the reference ends is not known, so neither is what follows
        else:
            parts.append(given)
            used[found[1]] = "sha256:" + hashlib.sha256(given.encode()).hexdigest()
    text = node.text = "".join([*parts, node.text[end:]])
    try:
        node.value = resolved(text) if node.plain else text
    except ValueError as wrong:
        report.add(unusable_number(text, wrong, node.span))


def _given(path: Path, found: re.Match[str], env: Mapping[str, str], at: Span) -> str | Diagnostic:
    """What a reference stands for. As in a shell, `:-` also takes the place of an empty value."""
    name, default = found[1], found[2]
    if name is None:
        return _malformed(at)
    if path[:2] in _REFERENCES:
        return _secret(f"`{'.'.join(map(str, path))}` holds a reference, and ${{{name}}} would put a value there.", at)
    if secret_name(name):
        return _secret(f"{name} looks like the name of a secret; its value would end in plans, files and logs.", at)
    value = env.get(name) or default if default is not None else env.get(name)
    if value is None:
        fix = f"export {name}, or give it a default: ${{{name}:-…}}"
        return error("DC120", "a variable is not set", f"${{{name}}} has no value in the environment.", fix, at)
    if _UNUSABLE.search(value):
        detail = f"What {name} holds has control characters or is no UTF-8 text."
        return error("DC123", "a variable's value cannot be used", detail, f"set {name} to plain text", at)
    if secret_value(value):
        return _secret(f"What {name} holds looks like a secret; it would end in plans, files and logs.", at)
    return value


def _secret(detail: str, at: Span) -> Diagnostic:
    fix = "name where the secret is found, {env: NAME} or {file: PATH}, in target.api_key or target.hub_token"
    return error("DC121", "a secret must not be interpolated", detail, fix, at)


def _malformed(at: Span) -> Diagnostic:
    detail = "After `${` comes a name of letters, digits and _, then `}` or `:-default}`; nothing nests."
    fix = "write ${NAME} or ${NAME:-default}; $${ stands for the characters themselves"
    return error("DC122", "a variable reference is not well formed", detail, fix, at)
