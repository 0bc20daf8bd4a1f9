"""Models by name, and reading a saved model: safetensors, JSON and a list of words, none of which is executed."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file

from ..errors import InputError, nearest
from ..files import read_json, read_lines
from ..settings import from_text
from ..text import CustomTokenizer
from ..topics.saved import find_model
from .base import TopicModel
from .registry import REGISTRY, load_model
from .saving import FORMAT_VERSION


def model_class(name: str) -> type[TopicModel]:
    """Return the model class of this name, in any case; "module:Class" is a class of your own, which is imported.

    Raises:
        InputError: there is none; the message offers those there are.
    """
    if ":" in name:
        return _imported(name)
    known = {each.lower(): each for each in REGISTRY}
    if name.lower() not in known:
        raise InputError(
            f"there is no model {name!r}; {nearest(name.lower(), known)}; a model of your own is named module:Class"
        )
    return load_model(known[name.lower()])


def estimator_named(text: str) -> TopicModel:
    """Return an estimator from "lda:method=gibbs+epochs=500" or "mymodule:MyModel:alpha=0.1"."""
    parts = text.split(":")
    n_name = 1 if len(parts) == 1 or "=" in parts[1] else 2
    name, rest = ":".join(parts[:n_name]), ":".join(parts[n_name:])
    kind = model_class(name)
    settings: dict[str, Any] = {}
    for part in filter(None, re.split(r"\+(?=[A-Za-z_]\w*=)", rest)):  # the + of 1e+0 is no separator
        setting, equals, value = part.partition("=")
        if not equals:
            raise InputError(f"{text}: give settings as {name}:name=value+name=value")
        try:
            settings[setting] = json.loads(value)
        except ValueError:
            settings[setting] = value
    return kind(**from_text(kind, settings))


def load(
    directory: str | Path,
    *,
    tokenizer: Callable[[str], Iterable[str]] | None = None,
    device: str = "auto",
    allow: Iterable[str] = (),
) -> TopicModel:
    """Read a model that was saved, ready for `transform` on raw text.

    Args:
        directory: what `model.save` wrote, or a run directory of the command line.
        tokenizer: your own tokenizer, for a model that was trained with one.
        device: where the model goes, whatever it was trained on.
        allow: modules that may be imported for a model of your own, such as ["mymodule"]. Importing a module runs its
            code, so none is imported unless you name it.

    Raises:
        InputError: no model there, one of a newer version, one that is damaged, or one whose module is not allowed.
    """
    folder = find_model(directory)
    config = read_json(folder / "config.json")
    kind = _saved_class(folder, config, {allow} if isinstance(allow, str) else set(allow))
    try:
        tensors = load_file(folder / "model.safetensors")
        words = read_lines(folder / "vocabulary.txt")
    except (OSError, UnicodeDecodeError, SafetensorError) as error:
        raise _damaged(folder, error) from None
    config["settings"]["device"] = device
    try:
        model = kind._from_saved(config, words, tensors)
    except InputError as error:
        raise InputError(f"{folder / 'config.json'} cannot be used: {error}") from None
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        raise _damaged(folder, error) from None
    except RuntimeError as error:
        if "state_dict" in str(error) or "size" in str(error):
            raise _damaged(folder, error) from None
        raise  # of the device, such as memory that does not suffice
    if tokenizer is not None:
        model.tokenizer_ = CustomTokenizer.of(tokenizer, getattr(model.tokenizer_, "stop_words", ()))
    return model


def _saved_class(folder: Path, config: Any, allowed: set[str]) -> type[TopicModel]:
    """The class of a saved model, imported from a module of the user's only if that is allowed."""
    wanted = ("format_version", "model", "settings", "tokenizer", "history", "n_documents", "named_columns")
    if not isinstance(config, dict) or not all(name in config for name in wanted):
        raise InputError(f"{folder / 'config.json'} is damaged: it lacks some of {', '.join(wanted)}; copy it again")
    if not isinstance(config["format_version"], int) or not isinstance(config["settings"], dict):
        raise InputError(f"{folder / 'config.json'} is damaged; train or copy it again")
    if config["format_version"] > FORMAT_VERSION:
        raise InputError(f"{folder} was written by a newer topicloom; upgrade with pip install -U topicloom")
    name, module = str(config["model"]), str(config.get("module", ""))
    if name in REGISTRY and module.split(".")[0] in ("", "topicloom"):
        return load_model(name)
    if module not in allowed and module.split(".")[0] not in allowed:
        raise InputError(
            f"{folder} holds a model {name} of the module {module!r}, which is not imported unless you allow it: "
            f"load(..., allow=[{module!r}]) (--allow {module})"
        )
    return _imported(f"{module}:{name}")


def _imported(name: str) -> type[TopicModel]:
    """The class that "module:Class" names. The current directory is searched for the module too."""
    module_name, _, class_name = name.partition(":")
    added = str(Path.cwd())
    sys.path.insert(0, added)
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise InputError(f"the module {module_name!r} cannot be imported: {error}") from None
    finally:
        sys.path.remove(added)
    kind = getattr(module, class_name, None)
    if not (isinstance(kind, type) and issubclass(kind, TopicModel)):
        raise InputError(f"the module {module_name!r} has no model {class_name!r}; name a subclass of TopicModel")
    return kind


def _damaged(folder: Path, error: Exception) -> InputError:
    reason = (str(error) or type(error).__name__).splitlines()[0]
    return InputError(f"{folder} is damaged ({reason}); train or copy it again")
