"""schemas/deploy.schema.json: of this version, a schema by the metaschema, and each key explained."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema  # type: ignore[import-untyped]
from pydantic import BaseModel

from deployc.data import schemas
from deployc.spec.deploy import Deploy
from deployc.spec.keys import ELSEWHERE, MEANING
from deployc.spec.schema import json_schema
from deployc.spec.unsupported import NOT_YET


def fields(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield prefix + name
        for inner in models(field.annotation):
            yield from fields(inner, f"{prefix}{name}.")


def models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in getattr(annotation, "__args__", ()) for model in models(inner)]


def test_the_file_is_of_this_version() -> None:
    assert (schemas() / "deploy.schema.json").read_text(encoding="utf-8") == json_schema()


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(json_schema()))


def test_every_key_is_explained_and_nothing_else() -> None:
    assert set(MEANING) == set(fields(Deploy)) | {"extends"}


def test_every_key_has_its_sentence_in_the_schema() -> None:
    schema = json.loads(json_schema())
    sections = {"deploy": schema, **schema["$defs"]}
    silent = [
        f"{name}.{key}"
        for name, section in sections.items()
        for key, entry in section.get("properties", {}).items()
        if not entry.get("description")
    ]
    assert silent == []


def test_tables_name_real_keys() -> None:
    known = set(fields(Deploy))
    assert set(ELSEWHERE.values()) <= known
    assert set(NOT_YET) <= known
