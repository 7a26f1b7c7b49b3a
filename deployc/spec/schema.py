"""The JSON Schema of deploy.yaml, generated from the models for editors and for whoever checks a file without us."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from deployc.spec.deploy import Deploy
from deployc.spec.keys import MEANING
from deployc.spec.unsupported import NOT_YET

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_VARIABLE = {"$ref": "#/$defs/Variable"}
_TEXT = ({"type": "string"}, {"type": "string", "minLength": 1})

Node = dict[str, Any]


def json_schema() -> str:
    """The text of schemas/deploy.schema.json, the same to the byte for the same models."""
    schema = Deploy.model_json_schema()
    sections: dict[str, Node] = schema["$defs"]
    _describe(schema, "", sections)
    for node in (schema, *sections.values()):
        _allow_variables(node)
    sections["Variable"] = {
        "description": "${NAME} or ${NAME:-default} from the environment.",
        "type": "string",
        "pattern": r"\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^{}]*)?\}",
    }
    sections["SecretRef"] |= {"minProperties": 1, "maxProperties": 1}
    schema["properties"] = {"extends": {"type": "string", "description": MEANING["extends"]}, **schema["properties"]}
    schema["patternProperties"] = {"^x-": {"description": "Free: notes, and values shared by anchors."}}
    schema["if"], schema["else"] = {"required": ["extends"]}, _complete(schema, sections)
    head = {"$schema": DIALECT, "$id": "urn:deployc:deploy.schema.json"}
    return json.dumps(head | schema, indent=2, ensure_ascii=False) + "\n"


def _complete(schema: Node, sections: dict[str, Node]) -> Node:
    """What a file must have that extends no other: taken out of the sections, as an overlay may leave it to a base."""
    needed: dict[str, Node] = {
        name: {"required": sections[reference].pop("required")}
        for name, entry in schema["properties"].items()
        for reference in _references(entry)
        if "items" not in entry and "required" in sections[reference]
    }
    needed["workload"]["oneOf"] = [_only("concurrency", "request_rate"), _only("request_rate", "concurrency")]
    return {"required": schema.pop("required"), "properties": needed}


def _only(given: str, silent: str) -> Node:
    return {"required": [given], "properties": {given: {"not": {"type": "null"}}, silent: {"type": "null"}}}


def _describe(node: Node, prefix: str, sections: dict[str, Node]) -> None:
    """Give every key its meaning and take pydantic's titles away."""
    node.pop("title", None)
    for name, entry in node.get("properties", {}).items():
        dotted = f"{prefix}{name}"
        limits = " Not all of it is supported yet." if dotted in NOT_YET else ""
        entry.pop("title", None)
        entry["description"] = MEANING[dotted] + limits
        for reference in _references(entry):
            _describe(sections[reference], f"{dotted}.", sections)


def _references(entry: Any) -> Iterator[str]:
    """The sections that an entry names, at any depth."""
    if isinstance(entry, dict):
        if "$ref" in entry:
            yield entry["$ref"].rsplit("/", 1)[-1]
        for inner in entry.values():
            yield from _references(inner)
    elif isinstance(entry, list):
        for inner in entry:
            yield from _references(inner)


def _allow_variables(section: Node) -> None:
    """Every scalar that is not any text may also be a variable."""
    for name, entry in section.get("properties", {}).items():
        section["properties"][name] = _with_variable(entry)


def _with_variable(entry: Node) -> Node:
    about: Node = {key: entry[key] for key in ("description", "default", "examples") if key in entry}
    rest = {key: value for key, value in entry.items() if key not in about}
    if "patternProperties" in rest:
        return {**entry, "additionalProperties": False}
    if "items" in rest:
        return {**about, **rest, "items": _with_variable(rest["items"])}
    if rest in _TEXT or "$ref" in rest or rest.get("type") == "object" or not rest:
        return entry
    choices = list(_flat([rest]))
    choices = [_with_variable(choice) if "items" in choice else choice for choice in choices]
    if any(choice in _TEXT for choice in choices):
        return {**about, "anyOf": choices}
    if all("$ref" in choice or choice.get("type") in ("null", "object", "array") for choice in choices):
        return {**about, "anyOf": choices}
    return {**about, "anyOf": [*choices, _VARIABLE]}


def _flat(choices: list[Node]) -> Iterator[Node]:
    """Choices that hold nothing but choices give way to them."""
    for choice in choices:
        yield from _flat(choice["anyOf"]) if set(choice) <= {"anyOf", "examples"} else [choice]
