"""A fitted model as a directory of plain files. Nothing in them is executed when they are read.

config.json           the model's class, settings, tokenizer and history, and the checksums of all files; for an edited
                      model, the class and settings of the trained model, and the edits
model.safetensors     the network's weights, the counts of words, and components_
vocabulary.txt        one word on each line
README.md             the model card, for people; it has no checksum, so that its owner may change it
neighbours.safetensors  the counts and the vectors of the training documents, if inference needs them
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from ..corpus.fields import FieldKind
from ..embeddings.expansion import DocumentExpansion
from ..files import write_lines, write_manifest
from ..settings import path_settings
from ..topics.saved import CARD, COMPONENTS, CONFIG, NEIGHBOURS, VOCABULARY, WEIGHTS

logger = logging.getLogger("topicloom")

COUNTS = ("word_counts_", "document_counts_")


def write_model(
    folder: Path,
    config: Mapping[str, Any],
    network: nn.Module,
    vocabulary: list[str],
    learned: Mapping[str, npt.NDArray[Any]],
    expansion: DocumentExpansion | None = None,
    *,
    card: str,
) -> None:
    """Write the files of a model into an empty folder.

    Args:
        folder: the folder.
        config: the content of config.json without the checksums.
        network: the network, whose weights are written.
        vocabulary: the V words.
        learned: the counts of words and the topics, by the names of the attributes.
        expansion: the training documents whose words new documents get, if inference needs them.
        card: the text of README.md.
    """
    weights = {name: tensor.cpu().contiguous() for name, tensor in network.state_dict().items()}
    arrays = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in learned.items()}
    save_file(weights | arrays, folder / WEIGHTS)
    write_lines(folder / VOCABULARY, vocabulary)
    write_lines(folder / CARD, card.split("\n"))
    files = [WEIGHTS, VOCABULARY]
    if expansion is not None:
        arrays_of = expansion.arrays().items()  # they may be mapped from a file
        parts = {name: torch.from_numpy(np.require(array, None, ["C", "W"])) for name, array in arrays_of}
        save_file(parts, folder / NEIGHBOURS)
        files.append(NEIGHBOURS)
    write_manifest(folder / CONFIG, dict(config), files)


def fingerprint_of(network: nn.Module, vocabulary: Sequence[str]) -> str:
    """Return a short hash of a model's weights and words, which is the same after saving and loading."""
    digest = hashlib.sha256("\n".join(vocabulary).encode("utf-8", "surrogatepass"))
    for name, tensor in sorted(network.state_dict().items()):
        digest.update(f"{name} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return f"tm-{digest.hexdigest()[:16]}"  # the letters keep YAML from reading digits and an e as a number


def refuse_paths(kind: type[Any], settings: Mapping[str, Any]) -> None:
    """Refuse settings that would make a saved model of this package read another file. Saving never writes any."""
    for name in path_settings(kind) if kind.__module__.split(".")[0] == "topicloom" else ():
        if settings.get(name) is not None:
            raise ValueError(f"the setting {name!r} is {settings[name]!r:.60}, and a saved model reads no other file")


def field_kind(kind: Any) -> FieldKind:
    """Return the kind of a field from its value in JSON: a number, or the list of the names of categories."""
    if isinstance(kind, list) and all(isinstance(name, str) for name in kind):
        return tuple(kind)
    if isinstance(kind, int) and kind > 0:
        return kind
    raise ValueError(f"{CONFIG} says that a field of the documents is {kind!r:.60}, not a size or names")


def check_vocabulary(vocabulary: Sequence[str]) -> None:
    """Refuse words that occur twice."""
    lines: dict[str, int] = {}
    for line, word in enumerate(vocabulary, start=1):
        if lines.setdefault(word, line) != line:
            raise ValueError(f"{VOCABULARY} has the word {word!r} on lines {lines[word]} and {line}")


def check_tensors(tensors: Mapping[str, Tensor], n_topics: int, n_words: int) -> None:
    """Refuse counts and topics of wrong sizes, and numbers that are negative or not finite."""
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


def settings_for_json(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that JSON can express. A loaded model has the defaults of the others."""
    kept = {}
    for name, value in settings.items():
        plain = value.item() if isinstance(value, np.generic) else value
        try:
            json.dumps(plain, allow_nan=False)
        except (TypeError, ValueError):
            if name != "random_state":  # a fitted model does not need the state of a random generator
                logger.warning("the setting %s cannot be saved as JSON; a loaded model will have its default", name)
            continue
        kept[name] = plain
    return kept
