"""The argparse keywords that vLLM derives from the fields of its configuration dataclasses.

`keywords` follows `vllm/engine/arg_utils.py`: the same questions in the same order. Its `type` is our word for what the
value must be, not a function. What the versions do differently is read from that file, see `Derivation`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from deployc.facts.catalogue.hints import ClassField, Hint, hints
from deployc.facts.catalogue.source import Tree, Unreadable

_ARGUMENTS = "vllm.engine.arg_utils"


@dataclass(frozen=True, slots=True)
class Derivation:
    """How one version makes keywords of a field.

    `by_hint` = from the members of its type (0.8.5 on); else from whether it is optional (0.8.4). `sizes` are the
    integers that take "16k". `closed` = the values of a Literal are all that is taken, even where its type has `str`
    beside it (up to 0.10.1). `paired` = the parser gives `--enable-x` its `--disable-x` and the other way round (0.33).
    """

    by_hint: bool = True
    sizes: frozenset[str] = frozenset()
    closed: bool = False
    paired: bool = False


def derivation(tree: Tree) -> Derivation:
    """Of `_compute_kwargs`, which was `get_kwargs` (up to 0.9.1), and before that (0.8.4) a function inside another.

    Up to 0.8.3 every option is written out, and nothing asks for what is returned here. Raises Unreadable.
    """
    module = tree.module(_ARGUMENTS)
    if module is None:
        raise Unreadable(f"{_ARGUMENTS} is not in the sources")
    compute = module.names.get("_compute_kwargs") or module.names.get("get_kwargs")
    if compute is None:
        text = tree.text(module.path)
        if "get_kwargs(" in text and "    def get_kwargs(cls: type[Any]) -> Dict[str, Any]:" not in text:
            raise Unreadable(f"{module.path} makes keywords of fields by no function that this reader knows")
        return Derivation(by_hint=False)
    literal = module.names.get("literal_to_kwargs")
    closed = literal is None or "metavar" not in ast.unparse(literal)
    for branch in ast.walk(compute):
        if isinstance(branch, ast.If) and "contains_type(type_hints, int)" in ast.unparse(branch.test):
            inside = [n for statement in branch.body for n in ast.walk(statement)]
            texts = [n.value for n in inside if isinstance(n, ast.Constant) and isinstance(n.value, str)]
            sizes = frozenset(text for text in texts if "_" in text and text.isidentifier())
            return Derivation(True, sizes, closed, _paired(tree))
    raise Unreadable(f"{module.path}:{getattr(compute, 'lineno', 0)} does not say which integers take a suffix")


def _paired(tree: Tree) -> bool:
    """Raises Unreadable where the parser puts another action in the place of argparse's own than this reader knows."""
    module = tree.module("vllm.utils.argparse_utils")
    text = tree.text(module.path) if module else ""
    if "BooleanOptionalAction" not in text:
        return False
    if '{"--enable-": "--disable-", "--disable-": "--enable-"}' not in text:
        raise Unreadable("vllm/utils/argparse_utils.py: what it makes of BooleanOptionalAction is not known")
    return True


def keywords(field: ClassField, how: Derivation) -> dict[str, Any]:
    """argparse keywords of one field but its default."""
    found = {hint.kind: hint for hint in hints(field.annotation, field.owner)}
    return {"help": field.doc} | (_by_hint(field.name, found, how) if how.by_hint else _by_need(set(found)))


def _by_need(kinds: set[str]) -> dict[str, Any]:
    """A switch's action is the parser's to write; what is optional, or may be a text, is taken as one."""
    if kinds == {"bool"}:
        return {}
    plain = next((kind for kind in ("int", "float") if kinds == {kind}), "str")
    return {"type": plain}


def _by_hint(name: str, found: dict[str, Hint], how: Derivation) -> dict[str, Any]:
    kinds = set(found)
    keys: dict[str, Any] = {}
    if "dataclass" in kinds:
        keys["type"] = "json"
    elif kinds == {"bool", "str", "None"}:
        keys |= {"type": "str", "nargs": "?"}
    elif "bool" in kinds:
        return keys | {"type": "bool", "action": "BooleanOptionalAction"}
    elif "Literal" in kinds:
        keys |= _literal(found["Literal"].values, closed=how.closed or "str" not in kinds)
    elif sequence := next((found[kind] for kind in ("tuple", "list", "set") if kind in kinds), None):
        keys |= {"type": "list", "nargs": "+"}
        literal = next((hint for hint in sequence.element if hint.kind == "Literal"), None)
        if literal and len(sequence.element) == 1:
            keys |= {"choices": _literal(literal.values, closed=True)["choices"]}
    elif "int" in kinds:
        keys["type"] = "size" if name in how.sizes else "int"
    elif "float" in kinds:
        keys["type"] = "float"
    elif "dict" in kinds:
        keys["type"] = "json"
    else:
        keys["type"] = "str"
    return keys


def _literal(values: tuple[Any, ...], closed: bool) -> dict[str, Any]:
    kind = "int" if all(isinstance(value, int) for value in values) else "str"
    return {"type": kind} | ({"choices": sorted(values)} if closed else {})
