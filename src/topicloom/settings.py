"""Settings of an estimator: their types carry their limits, and `fit` holds them to it."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, get_type_hints

import numpy as np
from pydantic import ConfigDict, Field, PydanticUserError, TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema

from .errors import SettingError, nearest

AtLeastOne = Annotated[int, Field(ge=1)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, lt=1)]
Rate = Annotated[float, Field(ge=0, lt=1)]

OTHER_NAMES = {
    **dict.fromkeys(("n_components", "num_topics", "k", "K", "nr_topics", "n_topic", "topics"), "n_topics"),
    **dict.fromkeys(("n_epochs", "num_epochs", "max_iter", "iterations"), "epochs"),
    **dict.fromkeys(("lr", "eta0"), "learning_rate"),
    **dict.fromkeys(("seed", "random_seed"), "random_state"),
}


@dataclasses.dataclass(frozen=True)
class Setting:
    """A setting as a reader meets it."""

    name: str
    type: str  # what it may be, in words
    default: Any
    meaning: str


def describe_settings(kind: type[Any]) -> list[Setting]:
    """The settings of an estimator class, its own before those that it shares, as docstrings describe them."""
    meanings: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        meanings |= _arguments(base.__doc__ or "")
    order: dict[str, int] = {}
    for depth, base in enumerate(kind.__mro__):
        order |= dict.fromkeys(inspect.get_annotations(base), depth)  # by the class that brings it in
    adapters = _adapters(kind)  # type: ignore[arg-type]  # a class hashes
    settings = [field for field in dataclasses.fields(kind) if field.init]
    return [
        Setting(field.name, _type(adapters[field.name]), field.default, meanings.get(field.name, ""))
        for field in sorted(settings, key=lambda field: order[field.name])
    ]


def from_text(kind: type[Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings out of JSON or TOML, in which the keys of a dictionary are always strings, as `kind` takes them.

    A value that is of another type stays as it is; `check_settings` will refuse it.
    """
    read = dict(settings)
    adapters = _adapters(kind)  # type: ignore[arg-type]  # a class hashes
    for name in settings.keys() & adapters.keys():
        if isinstance(settings[name], dict):
            try:
                read[name] = adapters[name].validate_json(json.dumps(settings[name]), strict=True)
            except ValidationError:
                continue
    return read


def refuse_unknown(kind: type[Any], names: list[str]) -> None:
    """Raises SettingError for the first of `names` that is no setting of the estimator class `kind`."""
    known = [field.name for field in dataclasses.fields(kind) if field.init]
    for name in names:
        if name in known:
            continue
        ours = OTHER_NAMES.get(name)
        if ours in known:
            raise SettingError(f"{kind.__name__} has no setting {name!r}: here it is called {ours!r}")
        raise SettingError(f"{kind.__name__} has no setting {name!r}; {nearest(name, known)}")


def check_settings(estimator: Any) -> None:
    """Holds every setting to its annotated type.

    Raises:
        SettingError: naming the setting, what it may be, and what it is.
    """
    for name, adapter in _adapters(type(estimator)).items():  # type: ignore[arg-type]  # a class hashes
        value = getattr(estimator, name)
        plain = value.item() if isinstance(value, np.generic) else value
        try:
            adapter.validate_python(plain, strict=True)
        except ValidationError as error:
            wanted = " or ".join(dict.fromkeys(_wanted(problem) for problem in error.errors()))
            raise SettingError(f"{name} of {type(estimator).__name__} {wanted}; it is {value!r}") from None


@cache
def _adapters(kind: type[Any]) -> dict[str, TypeAdapter[Any]]:
    hints = get_type_hints(kind, include_extras=True)
    names = [field.name for field in dataclasses.fields(kind) if field.init]
    return {name: _adapter(hints[name]) for name in names}


def _adapter(hint: Any) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(hint, config=ConfigDict(arbitrary_types_allowed=True))
    except PydanticUserError:  # a dataclass or model, which brings a configuration of its own
        return TypeAdapter(hint)


def _wanted(problem: Any) -> str:
    """'Input should be ...' -> 'should be ...', with the place in a list or dictionary"""
    message = str(problem["msg"]).removeprefix("Input ")
    if problem["loc"][-1:] == ("[key]",):
        return message.replace("should be", "should have as keys")
    inside = [part for part in problem["loc"] if isinstance(part, int)]
    return f"{message} at {''.join(f'[{part}]' for part in inside)}" if inside else message


def _arguments(doc: str) -> dict[str, str]:
    """The entries of a docstring's Args: 'name: meaning', going on in lines that are set in further."""
    block = re.search(r"^Args:\n((?:    .*\n?|\n)*)", inspect.cleandoc(doc), re.MULTILINE)
    entries = re.findall(r"^    (\w[\w, ]*): (.*(?:\n     .*)*)", block[1], re.MULTILINE) if block else []
    return {name: " ".join(text.split()) for names, text in entries for name in names.split(", ")}


def _type(adapter: TypeAdapter[Any]) -> str:
    try:
        return _in_words(adapter.json_schema())
    except PydanticInvalidForJsonSchema:  # an object that only Python has
        return "object"


def _in_words(schema: dict[str, Any]) -> str:
    """What a JSON schema allows, in words."""
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_in_words(part) for part in schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return " or ".join(json.dumps(value) for value in schema.get("enum", [schema.get("const")]))
    limits = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to", "exclusiveMaximum": "below"}
    said = [f"{word} {schema[name]:g}" for name, word in limits.items() if abs(schema.get(name, 1e9)) < 1e9]
    if schema.get("type") == "array":
        return f"list of {_in_words(schema.get('items', {}))}"
    if schema.get("type") == "object":
        return f"dictionary, each value a {_in_words(schema.get('additionalProperties', {}))}"
    words = {"integer": "whole number", "string": "text", "boolean": "true or false"}
    kind = schema.get("type", "any")
    return " ".join([words.get(kind, kind), *said])
