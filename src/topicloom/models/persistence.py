"""Reading a saved model: safetensors, JSON and a list of words; nothing in them is executed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file

from ..errors import InputError, nearest
from ..files import read_json, read_lines
from ..settings import from_text
from ..text import CustomTokenizer
from .base import FORMAT_VERSION, TopicModel
from .registry import MODELS


def model_class(name: str) -> type[TopicModel]:
    """The model class of this name, in any case.

    Raises:
        InputError: there is none; the message offers those there are.
    """
    known = {model.__name__.lower(): model for model in MODELS}
    if name.lower() not in known:
        raise InputError(f"there is no model {name!r}; {nearest(name.lower(), known)}")
    return known[name.lower()]


def estimator_named(text: str) -> TopicModel:
    """An estimator from 'lda:method=gibbs+epochs=500'."""
    name, _, rest = text.partition(":")
    kind = model_class(name)
    settings: dict[str, Any] = {}
    for part in filter(None, rest.split("+")):
        setting, equals, value = part.partition("=")
        if not equals:
            raise InputError(f"{text}: give settings as {name}:name=value+name=value")
        try:
            settings[setting] = json.loads(value)
        except ValueError:
            settings[setting] = value
    return kind(**from_text(kind, settings))


def load(
    directory: str | Path, *, tokenizer: Callable[[str], Iterable[str]] | None = None, device: str = "auto"
) -> TopicModel:
    """A model as it was saved, ready for `transform` on raw text.

    Args:
        directory: what `model.save` wrote, or a run directory of the command line.
        tokenizer: your own tokenizer, for a model that was trained with one.
        device: where the model goes, whatever it was trained on.

    Raises:
        InputError: no model there, one of a newer version, or one that is damaged.
    """
    folder = Path(directory)
    if not (folder / "config.json").is_file() and (folder / "model").is_dir():
        folder = folder / "model"  # a run directory
    if not (folder / "config.json").is_file():
        raise InputError(f"{folder} holds no saved model (no config.json); check the path")
    config = read_json(folder / "config.json")
    try:
        if config["format_version"] > FORMAT_VERSION:
            raise InputError(f"{folder} was written by a newer topicloom; upgrade with pip install -U topicloom")
        config["settings"]["device"] = device
        kind = model_class(config["model"])
        tensors = load_file(folder / "model.safetensors")
        model = kind._from_saved(config, read_lines(folder / "vocabulary.txt"), tensors)
    except InputError:
        raise
    except (OSError, KeyError, TypeError, AttributeError, UnicodeDecodeError, RuntimeError, SafetensorError) as error:
        raise InputError(f"{folder} is damaged ({str(error).splitlines()[0]}); train or copy it again") from None
    if tokenizer is not None:
        model.tokenizer_ = CustomTokenizer.of(tokenizer, getattr(model.tokenizer_, "stop_words", ()))
    return model
