"""Descriptions of settings for people: the type in words, the default, and the meaning from the docstring."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from typing import Any

from pydantic import TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import GenerateJsonSchema

from .checks import adapters


@dataclasses.dataclass(frozen=True)
class Setting:
    """The description of a setting."""

    name: str
    type: str  # the values that it can have, in words
    default: Any
    meaning: str


def describe_settings(kind: type[Any]) -> list[Setting]:
    """Return the settings of an estimator class, its own before those that it shares, as docstrings describe them."""
    meanings: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        meanings |= _arguments(base.__doc__ or "")
    order: dict[str, int] = {}
    for depth, base in enumerate(kind.__mro__):
        order |= dict.fromkeys(inspect.get_annotations(base), depth)  # by the class that adds the setting
    known = adapters(kind)  # type: ignore[arg-type]  # a class hashes
    settings = [field for field in dataclasses.fields(kind) if field.init]
    return [
        Setting(field.name, _type(known[field.name]), field.default, meanings.get(field.name, ""))
        for field in sorted(settings, key=lambda field: order[field.name])
    ]


def _arguments(doc: str) -> dict[str, str]:
    """Return the entries of a docstring's Args, 'name: meaning', with the lines that are indented further."""
    block = re.search(r"^Args:\n((?:    .*\n?|\n)*)", inspect.cleandoc(doc), re.MULTILINE)
    entries = re.findall(r"^    (\w[\w, ]*): (.*(?:\n     .*)*)", block[1], re.MULTILINE) if block else []
    return {name: " ".join(text.split()) for names, text in entries for name in names.split(", ")}


class _Schema(GenerateJsonSchema):
    """A JSON schema in which Python objects appear under the names of their classes."""

    def is_instance_schema(self, schema: Any) -> dict[str, Any]:
        return {"type": schema["cls"].__name__}


def _type(adapter: TypeAdapter[Any]) -> str:
    try:
        return _in_words(adapter.json_schema(schema_generator=_Schema))
    except PydanticInvalidForJsonSchema:
        return "object"


def _in_words(schema: dict[str, Any]) -> str:
    """Return the values that a JSON schema allows, in words."""
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_in_words(part) for part in schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return " or ".join(json.dumps(value) for value in schema.get("enum", [schema.get("const")]))
    limits = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to", "exclusiveMaximum": "below"}
    said = [f"{word} {schema[name]:g}" for name, word in limits.items() if abs(schema.get(name, 1e9)) < 1e9]
    if schema.get("type") == "array":
        return f"list of {_in_words(schema.get('items', {}))}"
    if schema.get("type") == "object":
        values = schema.get("additionalProperties")
        return f"dictionary, each value a {_in_words(values)}" if isinstance(values, dict) else "dictionary"
    words = {"integer": "whole number", "string": "text", "boolean": "true or false"}
    kind = schema.get("type", "any")
    return " ".join([words.get(kind, kind), *said])
