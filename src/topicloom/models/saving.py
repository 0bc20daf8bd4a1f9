"""A fitted model as a directory of plain files: nothing in it is executed when it is read.

config.json           the model's class, settings, tokenizer and history
model.safetensors     the network's weights, the counts of words, and components_
vocabulary.txt        a word on each line
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from ..files import write_json, write_lines
from ..settings import from_text
from ..text import tokenizer_from_settings
from ..topics.saved import COMPONENTS
from ..training.batches import choose_device

if TYPE_CHECKING:
    from .base import TopicModel

FORMAT_VERSION = 1
COUNTS = ("word_counts_", "document_counts_")
Model = TypeVar("Model", bound="TopicModel")


def save_into(model: TopicModel, folder: Path) -> None:
    """Write a fitted model into an empty folder."""
    weights = {name: tensor.cpu().contiguous() for name, tensor in model.network_.state_dict().items()}
    learned = {name: torch.from_numpy(np.ascontiguousarray(getattr(model, name))) for name in (*COUNTS, COMPONENTS)}
    save_file(weights | learned, folder / "model.safetensors")
    write_lines(folder / "vocabulary.txt", model.vocabulary_)
    kind = type(model)
    config = {
        "format_version": FORMAT_VERSION,
        "model": kind.__name__,
        "module": kind.__module__,
        "settings": {name: _plain(value) for name, value in model.settings_.items()},
        "n_documents": model.n_documents_,
        "tokenizer": model.tokenizer_.model_dump(mode="json"),
        "history": model.history_,
        "named_columns": hasattr(model, "feature_names_in_"),
    }
    write_json(folder / "config.json", config)


def restore(kind: type[Model], config: dict[str, Any], vocabulary: list[str], tensors: dict[str, Tensor]) -> Model:
    """Return the model that `save_into` wrote.

    Raises:
        ValueError: the parts do not fit together, or hold numbers that are not finite.
        SettingError: a setting that the model does not take.
    """
    model = kind(**from_text(kind, config["settings"]))
    model.settings_ = model.get_params(deep=False)
    model.vocabulary_ = vocabulary
    model.tokenizer_ = tokenizer_from_settings(config["tokenizer"])
    model.n_features_in_ = len(vocabulary)
    model.n_documents_ = config["n_documents"]
    model.history_ = config["history"]
    if config["named_columns"]:
        model.feature_names_in_ = np.array(vocabulary, dtype=object)  # a data frame's columns are checked again
    for name in COUNTS:
        setattr(model, name, tensors.pop(name).numpy())
    tensors.pop(COMPONENTS)
    sizes = {len(vocabulary), len(set(vocabulary)), *(len(getattr(model, name)) for name in COUNTS)}
    if len(sizes) > 1:
        raise ValueError(f"the vocabulary and the counts of words have different sizes: {sorted(sizes)}")
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise ValueError(f"the weights {name!r} hold a number that is not finite")
    network = model._network(model._words(), torch.Generator().manual_seed(0))
    network.load_state_dict(tensors)
    model._adopt(network.on(choose_device(model.device), seed=0))
    return model


def _plain(value: Any) -> Any:
    """A setting as JSON can hold it."""
    if isinstance(value, np.generic):
        return value.item()
    try:
        json.dumps(value)
    except TypeError:
        return None  # a RandomState or the like, which says nothing to a model that is already fitted
    return value
