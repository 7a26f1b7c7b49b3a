"""What the sections of deploy.yaml are made of: strict models whose values are each read by one plain function."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import CoreSchema, core_schema


class Section(BaseModel):
    """Unknown keys are errors; values are taken as written, never coerced between types.

    Validators are built at the first use, once, as part of the whole Deploy: building one a section costs 80 ms.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


# defaults as values, not factories: pydantic copies them, and would inspect the signature of every factory
SILENT: Any = Field({}, validate_default=True)
"""Default of a section that the file does not mention: the section of an empty map."""


@dataclass(frozen=True, eq=False, slots=True)
class Read:
    """Marks a value that `parse` reads, raising Wrong; `schema` is its JSON Schema.

    A plain function in the schema itself: pydantic's own validators inspect signatures and unions at each field.
    """

    parse: Callable[[Any], Any]
    schema: Mapping[str, Any]

    def __get_pydantic_core_schema__(self, _source: Any, _handler: Any) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.parse)

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, _handler: Any) -> dict[str, Any]:
        return dict(self.schema)


@dataclass(frozen=True, eq=False, slots=True)
class OrShort:
    """Marks a value that is a map, read by `section`, or a short form, read by `short`."""

    section: type[Section]
    short: Read

    def __get_pydantic_core_schema__(self, _source: Any, handler: Any) -> CoreSchema:
        def parse(value: Any, as_section: Callable[[Any], Any]) -> Any:
            return as_section(value) if isinstance(value, dict | Section) else self.short.parse(value)

        inner = handler.generate_schema(self.section)
        return core_schema.no_info_wrap_validator_function(parse, inner, serialization=_AS_IT_IS)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: Any) -> dict[str, Any]:
        return {"anyOf": [dict(self.short.schema), handler(schema)]}


@dataclass(frozen=True, eq=False, slots=True)
class OneOrMany:
    """Marks a list of `item` that may be written as its one item."""

    item: Any

    def __get_pydantic_core_schema__(self, _source: Any, handler: Any) -> CoreSchema:
        def parse(value: Any, as_list: Callable[[Any], Any]) -> Any:
            return as_list(value) if isinstance(value, list) else as_list([value])[0]

        inner = handler.generate_schema(list[self.item])  # type: ignore[name-defined]
        return core_schema.no_info_wrap_validator_function(parse, inner, serialization=_AS_IT_IS)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: Any) -> dict[str, Any]:
        many = handler(schema)
        return {"anyOf": [many["items"], {**many, "minItems": 1}]}


def _dumped(value: Any) -> Any:
    if isinstance(value, list):
        return [_dumped(item) for item in value]
    return value.model_dump() if isinstance(value, Section) else value


_AS_IT_IS = core_schema.plain_serializer_function_ser_schema(_dumped)
