"""The JSON Schema of deploy.yaml, generated from the models for editors and for whoever checks a file without us."""

from __future__ import annotations

import json
from typing import Any

from deployc.spec.deploy import Deploy
from deployc.spec.keys import MEANING
from deployc.spec.unsupported import NOT_YET

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> str:
    """The text of schemas/deploy.schema.json, the same to the byte for the same models."""
    schema = Deploy.model_json_schema()
    definitions = schema.get("$defs", {})
    _describe(schema, "", definitions)
    schema["properties"] = {**schema["properties"], "extends": {"type": "string", "description": MEANING["extends"]}}
    schema["patternProperties"] = {"^x-": {}}
    schema |= {"if": {"required": ["extends"]}, "else": _whole(schema, definitions)}
    schema = {"$schema": DIALECT, "$id": "deploy.schema.json", **schema}
    return json.dumps(schema, indent=2, ensure_ascii=False, sort_keys=False) + "\n"


def _whole(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """What a file that extends no other must hold itself, taken out of the schema: an overlay may be any part of it."""
    sections = {}
    for name, entry in schema["properties"].items():
        section = definitions.get(entry.get("$ref", "").rsplit("/", 1)[-1], {})
        if required := section.pop("required", None):
            sections[name] = {"required": required}
    sections["workload"]["oneOf"] = [_only("concurrency", "request_rate"), _only("request_rate", "concurrency")]
    return {"required": schema.pop("required"), "properties": sections}


def _only(given: str, silent: str) -> dict[str, Any]:
    return {"required": [given], "properties": {silent: {"type": "null"}}}


def _describe(node: dict[str, Any], prefix: str, definitions: dict[str, Any]) -> None:
    for name, entry in node.get("properties", {}).items():
        dotted = f"{prefix}{name}"
        if meaning := MEANING.get(dotted):
            limits = " Not all of it is supported yet." if dotted in NOT_YET else ""
            entry["description"] = meaning + limits
        entry.pop("title", None)
        for reference in _references(entry):
            _describe(definitions[reference], f"{dotted}.", definitions)


def _references(entry: dict[str, Any]) -> list[str]:
    own = [entry["$ref"].rsplit("/", 1)[-1]] if "$ref" in entry else []
    inner = [entry["items"]] if isinstance(entry.get("items"), dict) else []
    return own + [found for part in [*entry.get("anyOf", []), *inner] for found in _references(part)]
