"""A fitted model as a directory of plain files. Nothing in them is executed when they are read.

config.json           the model's class, settings, tokenizer and history, and the checksums of all files; for an edited
                      model, the class and settings of the trained model, and the edits
model.safetensors     the network's weights, the counts of words, and components_
vocabulary.txt        one word on each line
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from ..corpus.fields import FieldKind
from ..files import write_lines, write_manifest
from ..nn.execution import full_precision
from ..settings import check_settings, from_text, path_settings
from ..text import tokenizer_from_settings
from ..topics.saved import COMPONENTS, CONFIG, FORMAT_VERSION, VOCABULARY, WEIGHTS
from ..training.batches import choose_device
from .words import with_fields

if TYPE_CHECKING:
    from .base import TopicModel

logger = logging.getLogger("topicloom")

COUNTS = ("word_counts_", "document_counts_")
Model = TypeVar("Model", bound="TopicModel")


def save_into(model: TopicModel, folder: Path) -> None:
    """Write a fitted model into an empty folder."""
    weights = {name: tensor.cpu().contiguous() for name, tensor in model.network_.state_dict().items()}
    learned = {name: torch.from_numpy(np.ascontiguousarray(getattr(model, name))) for name in (*COUNTS, COMPONENTS)}
    save_file(weights | learned, folder / WEIGHTS)
    write_lines(folder / VOCABULARY, model.vocabulary_)
    kind = type(model.origin)
    config = {
        "format_version": FORMAT_VERSION,
        "model": kind.__name__,
        "module": kind.__module__,
        "settings": _as_json(model.origin.settings_),
        "n_documents": model.n_documents_,
        "tokenizer": model.tokenizer_.model_dump(mode="json"),
        "history": model.history_,
        "named_columns": hasattr(model, "feature_names_in_"),
    }
    if isinstance(model.network_.fields, Mapping):
        config["fields"] = {name: kind for name, kind in model.network_.fields.items() if kind is not None}
    write_manifest(folder / CONFIG, config | model.further_config(), (WEIGHTS, VOCABULARY))


@full_precision()
def restore(kind: type[Model], config: dict[str, Any], vocabulary: list[str], tensors: dict[str, Tensor]) -> Model:
    """Return the model that `save_into` wrote.

    Args:
        kind: the model's class.
        config: the content of config.json.
        vocabulary: the V words.
        tensors: the content of model.safetensors, which is emptied of all but the weights.

    Raises:
        ValueError: the files do not fit together, or contain what no model can have.
        SettingError: the class does not have a setting, or a setting cannot have its value.
    """
    _refuse_paths(kind, config["settings"])
    model = kind(**from_text(kind, config["settings"]))
    check_settings(model)
    _check_vocabulary(vocabulary)
    _check_tensors(tensors, model.n_topics, len(vocabulary))
    model.settings_ = model.get_params(deep=False)
    model.vocabulary_ = vocabulary
    model.tokenizer_ = tokenizer_from_settings(config["tokenizer"])
    model.n_features_in_ = len(vocabulary)
    model.n_documents_ = config["n_documents"]
    if model.n_documents_ < max(1, int(tensors["document_counts_"].max())):
        raise ValueError(f"{CONFIG} says that there were {model.n_documents_} documents, and {WEIGHTS} counts more")
    model.history_ = config["history"]
    model.fields_ = {name: _kind(kind) for name, kind in config.get("fields", {}).items()}
    if config["named_columns"]:
        model.feature_names_in_ = np.array(vocabulary, dtype=object)  # a data frame's columns are checked again
    for name in COUNTS:
        setattr(model, name, tensors.pop(name).numpy())
    tensors.pop(COMPONENTS)  # it is computed from the weights
    words = model.word_statistics()
    network = with_fields(model.build_network(words, torch.Generator().manual_seed(0)), words)
    try:
        network.load_state_dict(tensors)
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise ValueError(f"{WEIGHTS} does not fit the network that {kind.__name__} builds: {reason}") from None
    if torch.get_default_dtype() != torch.float32:  # which the user may have changed; batches have single precision
        network.float()
    model.adopt_network(network.on(choose_device(model.device), seed=0))
    return model


def _refuse_paths(kind: type[TopicModel], settings: Mapping[str, Any]) -> None:
    """Refuse a setting that makes a model of this package read a file elsewhere; a model is saved without any."""
    for name in path_settings(kind) if kind.__module__.split(".")[0] == "topicloom" else ():
        if settings.get(name) is not None:
            raise ValueError(f"the setting {name!r} is {settings[name]!r:.60}, and a saved model reads no other file")


def _kind(kind: Any) -> FieldKind:
    """Return the kind of a field that JSON has: a number, or the list of the categories' names."""
    if isinstance(kind, list) and all(isinstance(name, str) for name in kind):
        return tuple(kind)
    if isinstance(kind, int) and kind > 0:
        return kind
    raise ValueError(f"{CONFIG} says that a field of the documents is {kind!r:.60}, not a size or names")


def _check_vocabulary(vocabulary: Sequence[str]) -> None:
    lines: dict[str, int] = {}
    for line, word in enumerate(vocabulary, start=1):
        if lines.setdefault(word, line) != line:
            raise ValueError(f"{VOCABULARY} has the word {word!r} on lines {lines[word]} and {line}")


def _check_tensors(tensors: Mapping[str, Tensor], n_topics: int, n_words: int) -> None:
    sizes = {**dict.fromkeys(COUNTS, (n_words,)), COMPONENTS: (n_topics, n_words)}
    for name, size in sizes.items():
        if name not in tensors:
            raise ValueError(f"{WEIGHTS} has no {name!r}")
        if tuple(tensors[name].shape) != size:
            raise ValueError(
                f"{name!r} in {WEIGHTS} has the shape {tuple(tensors[name].shape)}, but {n_topics} topics "
                f"({CONFIG}) and {n_words} words ({VOCABULARY}) need {size}"
            )
    for name, tensor in tensors.items():
        if tensor.is_complex() or not bool(tensor.isfinite().all()):
            raise ValueError(f"{name!r} in {WEIGHTS} contains a number that is not finite")
        if name in sizes and not bool((tensor >= 0).all()):
            raise ValueError(f"{name!r} in {WEIGHTS} contains a negative number")


def _as_json(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that JSON can express; a loaded model has the defaults of the others."""
    kept = {}
    for name, value in settings.items():
        plain = value.item() if isinstance(value, np.generic) else value
        try:
            json.dumps(plain, allow_nan=False)
        except (TypeError, ValueError):
            if name != "random_state":  # the state of a random generator is of no use to a fitted model
                logger.warning("the setting %s cannot be saved as JSON; a loaded model will have its default", name)
            continue
        kept[name] = plain
    return kept
