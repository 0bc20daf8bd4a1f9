"""Settings of an estimator: their types carry their limits, and `fit` holds them to it."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Annotated, Any, get_type_hints

import numpy as np
from pydantic import ConfigDict, Field, PydanticUserError, TypeAdapter, ValidationError

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
    """'Input should be ...' -> 'should be ...'"""
    message = str(problem["msg"])
    return message.removeprefix("Input ")
