"""Values of settings as text for plans and reports. Equal values give the same text, and different values do not."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any, Protocol, get_args, runtime_checkable

import numpy as np

from .checks import limited_types

_LONGEST = 10_000  # characters of a value; a longer one is replaced by its digest


@runtime_checkable
class Summarised(Protocol):
    """A value that is too large for a plan or a report, which gives its summary and its digest instead."""

    @property
    def digest(self) -> str:
        """A hash of the content."""

    def summary(self) -> dict[str, Any]:
        """A few facts about the value, as JSON can hold them."""


def settings_as_text(estimator: Any) -> dict[str, str]:
    """Return each setting of an estimator as `describe_value` gives it, and the path of a file by its content."""
    paths = path_settings(type(estimator))
    described = {}
    for name, value in estimator.get_params(deep=False).items():
        is_file = isinstance(value, str) and name in paths and Path(value).is_file()
        described[name] = describe_value(Path(value) if is_file else value)
    return described


def settings_as_json(estimator: Any) -> dict[str, Any]:
    """Return the settings of an estimator as JSON can hold them, whatever they are.

    A value that JSON cannot express, or only at great length, is replaced by its summary or its description.
    """
    return {name: _as_json(value) for name, value in estimator.get_params(deep=False).items()}


def path_settings(kind: type) -> list[str]:
    """Return the settings of a class that may be the path of a file."""
    return [name for name, hint in limited_types(kind).items() if _allows_path(hint)]


def describe_value(value: Any) -> str:
    """Return a string that is the same for equal values in any process, and differs where values differ.

    Plain values are written out. Arrays, states of random generators, files and long values appear by a digest.

    Raises:
        OSError: the value is the path of a file that cannot be read.
    """
    described = _described(value)
    return described if len(described) <= _LONGEST else f"{_name(type(value))} {_digest(described.encode())}"


def _described(value: Any) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str | bytes):
        return repr(value)
    if isinstance(value, type) or inspect.isroutine(value):
        return _name(value)
    if isinstance(value, Summarised):
        return f"{_name(type(value))} {value.digest}"
    if isinstance(value, Path) and value.is_file():
        with value.open("rb") as file:
            return f"file {value.name} {hashlib.file_digest(file, 'sha256').hexdigest()[:16]}"
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        return f"array {value.shape} {value.dtype.str} {_digest(np.ascontiguousarray(value).tobytes())}"
    if isinstance(value, Mapping):
        pairs = sorted(f"{describe_value(key)}: {describe_value(each)}" for key, each in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, Set):
        return f"{{{', '.join(sorted(map(describe_value, value)))}}}"
    if isinstance(value, list | tuple | np.ndarray):
        return f"[{', '.join(map(describe_value, value))}]"
    content = _content(value)
    if content is not None:
        return f"{_name(type(value))}({describe_value(content)})"
    return re.sub(" at 0x[0-9a-fA-F]+", "", repr(value))  # without addresses in memory


def _content(value: Any) -> Any:
    """Return what distinguishes an object whose `repr` does not, or None for any other."""
    if isinstance(value, np.random.RandomState):
        return value.get_state(legacy=False)
    if isinstance(value, np.random.Generator):
        return value.bit_generator.state
    if hasattr(value, "index_to_key") and hasattr(value, "vectors"):  # gensim's, whose other attributes are caches
        return [value.index_to_key, value.vectors]
    shows_nothing = type(value).__repr__ is object.__repr__  # type: ignore[comparison-overlap]
    return getattr(value, "__dict__", None) if shows_nothing else None


def _as_json(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Summarised):
        return value.summary() | {"digest": value.digest}
    if isinstance(value, Path):
        return str(value)
    try:
        if len(json.dumps(value, allow_nan=False)) <= _LONGEST:
            return value
    except (TypeError, ValueError, RecursionError):  # an object, a number such as NaN, or something that holds itself
        pass
    try:
        return describe_value(value)
    except (OSError, RecursionError):
        return _name(type(value))


def _allows_path(hint: Any) -> bool:
    return hint is Path or any(map(_allows_path, get_args(hint)))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _name(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"
