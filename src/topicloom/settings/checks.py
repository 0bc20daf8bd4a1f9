"""Types of settings, and the checks of names and values against them."""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Mapping
from functools import cache
from numbers import Integral
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, get_type_hints

import numpy as np
from numpy.random import Generator
from pydantic import AfterValidator, ConfigDict, Field, PydanticUserError, TypeAdapter, ValidationError

from ..errors import SettingError, nearest

AtLeastOne = Annotated[int, Field(ge=1)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]

# Beyond these limits, numbers of 32 bits cannot compute with it. A limit after a validator is checked after the others,
# so that errors and descriptions of most values are those of `Positive`.
DirichletParameter = Annotated[Positive, AfterValidator(float), Field(ge=1e-30, le=1e30)]
Share = Annotated[float, Field(gt=0, lt=1)]
Rate = Annotated[float, Field(ge=0, lt=1)]

# Names of other packages, and names that are easily mistaken for ours.
OTHER_NAMES = {
    **dict.fromkeys(("n_components", "num_topics", "k", "K", "nr_topics", "n_topic", "topics"), "n_topics"),
    **dict.fromkeys(("n_epochs", "num_epochs", "max_epochs", "max_iter", "iterations", "passes"), "epochs"),
    **dict.fromkeys(("lr", "eta0"), "learning_rate"),
    **dict.fromkeys(("seed", "random_seed", "rng"), "random_state"),
    **dict.fromkeys(("jobs", "workers", "n_workers", "num_workers", "processes", "threads", "n_threads"), "n_jobs"),
    **dict.fromkeys(("vectors", "embeddings", "word_embeddings"), "word_vectors"),
}
_LONGEST = 200  # characters of a value in a message
# What users may give for settings that the package itself also takes in other forms.
_SEEDS = 2**32  # so many seeds has a RandomState of NumPy
_DICTIONARIES = {"seed_words": 'a dictionary such as {3: ["match", "coach"]}'}
_IN_WORDS = {"random_state": f"should be a whole number from 0 to {_SEEDS - 1}"}


class ReadableSettings:
    """A base for estimators whose settings are fields of a dataclass with limits, as in `Annotated[int, Field(ge=1)]`.

    Each subclass keeps the limits for `check_settings`. Its annotations become plain types such as `int`, so that its
    signature and `help` are readable. An unknown setting is refused with a suggestion.
    """

    _limited_types: ClassVar[dict[str, Any]] = {}

    def __new__(cls, *args: Any, **settings: Any) -> Self:
        refuse_unknown(cls, list(settings))
        return super().__new__(cls)

    if TYPE_CHECKING:  # methods of scikit-learn, which has no types

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **settings: Any) -> Self: ...

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = inspect.get_annotations(cls)
        try:
            limited, plain = get_type_hints(cls, include_extras=True), get_type_hints(cls)
        except NameError:  # a name that only type checkers see; `check_settings` cannot resolve it either
            return
        cls._limited_types = {name: limited[name] for name in own}
        cls.__annotations__ = {name: plain[name] for name in own}


def check_settings(estimator: Any) -> None:
    """Check every setting against its annotated type.

    Raises:
        SettingError: a setting cannot have its value. The message names the setting, its limits and the value.
    """
    for name, adapter in adapters(type(estimator)).items():  # type: ignore[arg-type]  # a class hashes
        value = getattr(estimator, name)
        plain = value.item() if isinstance(value, np.generic) else value
        try:
            adapter.validate_python(plain, strict=True)
        except ValidationError as error:
            wanted = " or ".join(dict.fromkeys(_wanted(problem) for problem in error.errors()))
            wanted = _IN_WORDS.get(name, wanted.replace(" or should be ", " or "))
            wanted = wanted.replace("a valid dictionary", _DICTIONARIES.get(name, "a dictionary"))
            shown = repr(value)
            shown = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."
            seed = "; draw one from it, as int(generator.integers(2**32))" if isinstance(value, Generator) else ""
            raise SettingError(f"`{name}` of {type(estimator).__name__} {wanted}; it is {shown}{seed}") from None


def settle_settings(estimator: Any) -> None:
    """Check every setting, and replace NumPy's numbers by equal ones of Python, which JSON and PyTorch can hold.

    Raises:
        SettingError: as for `check_settings`.
    """
    check_settings(estimator)
    for name in adapters(type(estimator)):  # type: ignore[arg-type]  # a class hashes
        if isinstance(value := getattr(estimator, name), np.generic):
            setattr(estimator, name, value.item())


def refuse_unknown(kind: type[Any], names: list[str]) -> None:
    """Raise SettingError for the first of `names` that is not a setting of the estimator class `kind`."""
    known = [field.name for field in dataclasses.fields(kind) if field.init]
    for name in names:
        if name in known:
            continue
        ours = OTHER_NAMES.get(name)
        if ours in known:
            raise SettingError(f"{kind.__name__} has no setting {name!r}; it is called `{ours}` here")
        raise SettingError(f"{kind.__name__} has no setting {name!r}; {nearest(name, known)}")


def require_whole(name: str, value: object, least: int = 1) -> None:
    """Raise SettingError for an argument that is not a whole number from `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise SettingError(f"`{name}={value!r:.60}` should be a whole number from {least}")


def require_seed(value: object) -> None:
    """Raise SettingError for a `random_state` that is no seed."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= int(value) < _SEEDS:
        raise SettingError(f"`random_state={value!r:.60}` {_IN_WORDS['random_state']}")


def from_text(kind: type[Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings from JSON or TOML, where every key of a dictionary is a string, with keys as `kind` takes them.

    A value of a wrong type is returned as it is; `check_settings` refuses it later.
    """
    read = dict(settings)
    known = adapters(kind)  # type: ignore[arg-type]  # a class hashes
    for name in settings.keys() & known.keys():
        if isinstance(settings[name], dict):
            try:
                read[name] = known[name].validate_json(json.dumps(settings[name]), strict=True)
            except ValidationError:
                continue
    return read


def limited_types(kind: type[Any]) -> dict[str, Any]:
    """Return the types of the fields of an estimator class, with their limits."""
    types = get_type_hints(kind, include_extras=True)
    for base in reversed(kind.__mro__):
        types |= vars(base).get("_limited_types", {})
    return types


@cache
def adapters(kind: type[Any]) -> dict[str, TypeAdapter[Any]]:
    """Return what validates each setting of an estimator class."""
    types = limited_types(kind)
    names = [field.name for field in dataclasses.fields(kind) if field.init]
    return {name: _adapter(types[name]) for name in names}


def _adapter(hint: Any) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(hint, config=ConfigDict(arbitrary_types_allowed=True))
    except PydanticUserError:  # a dataclass or model, which has a configuration of its own
        return TypeAdapter(hint)


def _wanted(problem: Any) -> str:
    """Turn 'Input should be ...' into 'should be ...', with the place in a list or the key of a dictionary."""
    message = str(problem["msg"]).removeprefix("Input ")
    limit = next((value for name, value in problem.get("ctx", {}).items() if name in ("ge", "gt", "le", "lt")), None)
    if isinstance(limit, float):  # 1e-30, and not 0.000000000000000000000000000001
        message = f"{message.rpartition(' ')[0]} {limit:g}"
    if problem["loc"][-1:] == ("[key]",):
        return message.replace("should be", "should have as keys")
    inside = [part for part in problem["loc"] if isinstance(part, int)]
    if not inside:
        return message
    return f"{message.replace('should be a valid', 'should have a')} at {''.join(f'[{part}]' for part in inside)}"
