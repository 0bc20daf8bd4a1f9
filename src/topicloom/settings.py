"""Settings of estimators: their types, the checks of values against them, and their descriptions in words.

The types contain the limits: `fit` checks them, and help texts show them in words.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import inspect
import json
import re
import sys
import traceback
from collections.abc import Mapping, Set
from contextlib import suppress
from functools import cache
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Protocol, Self, get_args, get_type_hints, runtime_checkable

import numpy as np
from numpy.random import Generator
from pydantic import AfterValidator, ConfigDict, Field, PydanticUserError, TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import GenerateJsonSchema

from .errors import InputError, SettingError
from .messages import nearest, refusal

# Types of settings, and the checks of names and values against them.

AtLeastOne = Annotated[int, Field(ge=1)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
LayerSizes = Annotated[list[AtLeastOne] | tuple[AtLeastOne, ...], Field(min_length=1)]

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
_INTERVAL = re.compile(r"(\d+(?:\.\d+)?)\s*(s|sec|seconds?|min|minutes?|h|hours?|epochs?)")
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_REQUEST = re.compile("set_[a-z_]+_request")  # the methods of scikit-learn's metadata routing
_LONGEST = 200  # characters of a value in a message
# How messages describe settings whose types say less, or more, than a user has to know.
_SEEDS = 2**32  # so many seeds has a RandomState of NumPy
_DICTIONARIES = {"seed_words": 'a dictionary such as {3: ["match", "coach"]}'}
_WIDTHS = "should be a list of one or more whole numbers above 0, such as [64, 32]"
_IN_WORDS = {
    "random_state": f"should be a whole number from 0 to {_SEEDS - 1}",
    "hidden_sizes": _WIDTHS,
    "decoder_sizes": _WIDTHS,
}


class _BriefMethod:
    """A method that scikit-learn writes, with one line instead of its 30 lines of help."""

    def __init__(self, method: Any) -> None:
        self.method = method

    def __get__(self, instance: object, owner: type) -> Any:
        function = self.method.__get__(instance, owner)
        function.__doc__ = "Say which arguments a meta-estimator of scikit-learn passes on (metadata routing)."
        return function


class ReadableSettings:
    """A base for estimators whose settings are fields of a dataclass with limits: `Annotated[int, Field(ge=1)]`.

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
        for name in [name for name in vars(cls) if _REQUEST.fullmatch(name)]:
            setattr(cls, name, _BriefMethod(vars(cls)[name]))
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
            wanted = wanted.replace("a dictionary", _DICTIONARIES.get(name, "a dictionary"))
            shown = repr(value)
            shown = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."
            seed = "; draw one from it, as int(generator.integers(2**32))" if isinstance(value, Generator) else ""
            raise SettingError(f"`{name}` of {type(estimator).__name__} {wanted}; it is {shown}{seed}") from None


def settle_settings(estimator: Any) -> None:
    """Check every setting, and replace NumPy's numbers by equal ones of Python, which JSON and PyTorch can hold.

    Raises:
        SettingError: a setting cannot have its value.
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
    """Raise SettingError for an argument that is not a whole number from `least`.

    >>> require_whole("top_n", 0)
    Traceback (most recent call last):
    topicloom.errors.SettingError: `top_n=0` should be a whole number from 1
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise SettingError(f"`{name}={value!r:.60}` should be a whole number from {least}")


def require_seed(value: object) -> None:
    """Raise SettingError for a `random_state` that is no seed."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= int(value) < _SEEDS:
        raise SettingError(f"`random_state={value!r:.60}` {_IN_WORDS['random_state']}")


def read_interval(every: str) -> tuple[float | None, int | None]:
    """Return the seconds or the epochs of an interval, and None for the other.

    Args:
        every: such as "90s", "10min", "2 hours" or "5 epochs".

    Raises:
        SettingError: it is no such interval, or it is zero.
    """
    found = _INTERVAL.fullmatch(str(every).strip())
    number = float(found[1]) if found else 0.0
    if found is None or not number or (found[2].startswith("epoch") and not number.is_integer()):
        raise SettingError(
            f"`every={every!r}` should be a time or a number of epochs, such as '10min', '90s' or '5 epochs'"
        )
    if found[2].startswith("epoch"):
        return None, int(number)
    return number * _SECONDS[found[2][0]], None


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
    """Return what a setting should be, such as "should be a number", with the place in a list or of a key."""
    message = refusal(problem).removeprefix("it ")
    if problem["loc"][-1:] == ("[key]",):
        return message.replace("should be", "should have as keys")
    inside = [part for part in problem["loc"] if isinstance(part, int)]
    if not inside:
        return message
    return f"{message.replace('should be a', 'should have a')} at {''.join(f'[{part}]' for part in inside)}"


# Values of settings as text for plans and reports. Equal values give the same text, and different values do not.

_LONGEST_IN_PLANS = 10_000  # characters of a value; a longer one is replaced by its digest


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
    return described if len(described) <= _LONGEST_IN_PLANS else f"{_name(type(value))} {_digest(described.encode())}"


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
        if len(json.dumps(value, allow_nan=False)) <= _LONGEST_IN_PLANS:
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


# Descriptions of settings for people: the type in words, the default, and the meaning from the docstring.
#
# A docstring describes settings under "Args:". A class with many of them has a section for each group, such as
# "Training args:"; the name of the group stands before "args".

# The groups in the order of their use. Groups with other names follow, and settings without a group come first.
GROUPS = ("Main", "Text", "Vectors", "Shape", "Prior", "Training", "Collapse", "Run")


@dataclasses.dataclass(frozen=True)
class Setting:
    """The description of a setting.

    Attributes:
        name: its name.
        type: the values that it can have, in words.
        default: its default.
        meaning: what it means.
        group: the group that it belongs to, such as "Training"; "" if the docstring names none.
    """

    name: str
    type: str
    default: Any
    meaning: str
    group: str = ""


def describe_settings(kind: type[Any]) -> list[Setting]:
    """Return the settings of an estimator class as docstrings describe them.

    They are sorted by their groups. In a group, the class's own settings come before those that it inherits, but the
    main ones begin with those that all models have.

    >>> from topicloom import GSM
    >>> first = describe_settings(GSM)[0]
    >>> first.name, first.type, first.default, first.group
    ('n_topics', 'whole number from 2', 20, 'Main')
    """
    described: dict[str, tuple[str, str]] = {}
    for base in reversed(kind.__mro__):
        described |= _arguments(base.__doc__ or "")
    depths: dict[str, int] = {}
    for depth, base in enumerate(kind.__mro__):
        depths |= dict.fromkeys(inspect.get_annotations(base), depth)  # of the class that adds the setting
    known = adapters(kind)  # type: ignore[arg-type]  # a class hashes
    settings = [
        Setting(field.name, _type(known[field.name]), field.default, *described.get(field.name, ("", "")))
        for field in dataclasses.fields(kind)
        if field.init
    ]
    places = {group: place for place, group in enumerate(("", *GROUPS))}

    def place(setting: Setting) -> tuple[int, int]:
        depth = depths[setting.name]
        return places.get(setting.group, len(places)), -depth if setting.group == "Main" else depth

    return sorted(settings, key=place)


def _arguments(doc: str) -> dict[str, tuple[str, str]]:
    """Return the meaning and the group of each argument that a docstring describes.

    >>> _arguments("Args:\\n    a: one\\n        thing.\\n\\nTraining args:\\n    b: another.")
    {'a': ('one thing.', ''), 'b': ('another.', 'Training')}
    """
    found: dict[str, tuple[str, str]] = {}
    sections = re.findall(r"^(?:(\w[\w ]*) args|Args):\n((?:    .*\n?|\n)*)", inspect.cleandoc(doc), re.MULTILINE)
    for group, block in sections:
        for names, text in re.findall(r"^    (\w[\w, ]*): (.*(?:\n     .*)*)", block, re.MULTILINE):
            found |= dict.fromkeys(names.split(", "), (" ".join(text.split()), group))
    return found


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


# Importing what a user names as "module:name", such as a model's class or a tokenizer.


def import_named(text: str, example: str) -> Any:
    """Import what "module:name" names. The current directory is searched first.

    Args:
        text: the module and the name.
        example: what a correct text looks like, such as "module:Class, such as my_model:MyModel".

    Returns:
        what the module has under this name; None if it has nothing.

    Raises:
        InputError: the text names no module, or the module cannot be imported.
    """
    module_name, _, name = text.partition(":")
    if not module_name or module_name.startswith("."):
        raise InputError(f"{text!r} does not name a module; write {example}")
    here = str(Path.cwd())
    importlib.invalidate_caches()  # the module may have been written a moment ago
    sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # the module's own code may raise anything
        raise InputError(_why_not_imported(module_name, error)) from error
    finally:
        with suppress(ValueError):  # the module's own code may have removed it
            sys.path.remove(here)
    file = getattr(module, "__file__", None)
    if file is not None and Path(file).is_relative_to(here) and here not in sys.path:
        sys.path.append(here)  # worker processes, which inherit the path, import the module as well
    return getattr(module, name, None) if name else None


def is_allowed(module: str, allowed: set[str]) -> bool:
    """Return whether a module may be imported: it is named in `allowed`, or the package that it belongs to is."""
    return module in allowed or module.split(".")[0] in allowed


def _why_not_imported(module: str, error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name and f"{module}.".startswith(f"{error.name}."):
        return f"there is no module {error.name!r} in the current directory, nor where Python finds modules"
    if isinstance(error, SyntaxError):
        return f"the module {module!r} cannot be imported: {error.msg} ({error.filename}, line {error.lineno})"
    last = traceback.extract_tb(error.__traceback__)[-1]
    reason = f"{type(error).__name__}: {error}".splitlines()[0]
    return f"the module {module!r} cannot be imported: {reason} ({last.filename}, line {last.lineno})"
