"""The topics of a saved model, read without the network and without PyTorch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open

from ..errors import InputError, ModelFileError
from ..files import (
    as_path,
    check_digests,
    holds_corpus,
    holds_stopped_run,
    plain_file,
    put_back,
    read_json,
    read_lines,
    read_manifest,
)
from .words import complete_names, topic_word_ids

CONFIG, WEIGHTS, VOCABULARY = "config.json", "model.safetensors", "vocabulary.txt"
MODEL_FILES = frozenset({CONFIG, WEIGHTS, VOCABULARY})
EDITS = "edits.yaml"  # what the service stores in a run
COMPONENTS = "components_"
FORMAT_VERSION = 3  # the first knows no edits, and the first two no checksum of config.json

# The entries of config.json and their types.
_ENTRIES = {
    "format_version": int,
    "model": str,
    "settings": dict,
    "tokenizer": dict,
    "history": list,
    "n_documents": int,
    "named_columns": bool,
}


@dataclass(frozen=True, eq=False)
class SavedTopics:
    """Topics as distributions over words, with what ranking their words needs.

    Attributes:
        components: (K, V) float32, rows sum to 1.
        vocabulary: the V words.
        word_counts: (V,) tokens of each word in the training corpus.
        names: the name that each topic was given, None for one without; None if no topic was named.
    """

    components: npt.NDArray[Any]
    vocabulary: list[str]
    word_counts: npt.NDArray[Any]
    names: list[str | None] | None = None

    @property
    def given_names(self) -> list[str | None]:
        """The name that each topic was given; None for one without."""
        return self.names or [None] * len(self.components)

    @property
    def topic_names(self) -> list[str]:
        """A name for each topic: the one that it was given, or else its first three words."""
        return complete_names(self.given_names, self.topics(3))

    def topics(self, top_n: int = 10, relevance: float | None = None) -> list[list[str]]:
        """Return the words that stand for each topic, best first; as `TopicModel.topics`."""
        return [[self.vocabulary[word] for word in row] for row in self.word_ids(top_n, relevance)]

    def word_ids(self, top_n: int = 10, relevance: float | None = None) -> npt.NDArray[np.intp]:
        """Return the words that `topics` returns as columns of components: (K, min(top_n, V))."""
        return topic_word_ids(self.components, self.word_counts, top_n, relevance)


def find_model(directory: str | Path) -> Path:
    """Return the folder of a saved model: `directory`, or model/ in a run directory.

    Raises:
        ModelFileError: there is no model.
    """
    folder = as_path(directory, "directory")
    put_back(folder)
    if not (folder / CONFIG).is_file() and (folder / "model").is_dir():
        folder = folder / "model"
    if not (folder / CONFIG).is_file():
        if holds_corpus(folder):
            raise ModelFileError(f"{folder} is a saved corpus and holds no model; give it to train, which writes one")
        if holds_stopped_run(folder):
            raise ModelFileError(
                f"the run in {folder} is not complete; if it was stopped, repeat its command train with --resume"
            )
        if not folder.exists():
            raise ModelFileError(f"{folder} does not exist; check the path")
        if not folder.is_dir():
            raise ModelFileError(f"{folder} is a file; give a run directory, or the directory of a saved model")
        raise ModelFileError(f"{folder} holds no saved model (no {CONFIG}); check the path")
    return folder


def read_config(folder: Path) -> dict[str, Any]:
    """Return config.json of a saved model, after a check of all files against their checksums.

    Raises:
        ModelFileError: a file is missing or damaged, or the model is of a newer format.
    """
    path = folder / CONFIG
    config = read_manifest(path, ModelFileError, FORMAT_VERSION, sealed=3)
    for name, kind in _ENTRIES.items():
        if not isinstance(config.get(name), kind):
            problem = f"{name!r} is {config[name]!r:.60}" if name in config else f"it has no {name!r}"
            raise ModelFileError.of(path, f"is damaged: {problem}")
    if not all(isinstance(row, dict) for row in config["history"]):
        raise ModelFileError.of(path, "is damaged: 'history' is no list of rows")
    if not isinstance(config.setdefault("module", ""), str):
        raise ModelFileError.of(path, f"is damaged: 'module' is {config['module']!r:.60}")
    missing = {WEIGHTS, VOCABULARY} - config["sha256"].keys()
    if missing and config["format_version"] >= 3:
        raise ModelFileError.of(path, f"is damaged: it has no checksum of {min(missing)}")
    check_digests(folder, config["sha256"], ModelFileError)
    for name in missing:
        plain_file(folder, name, ModelFileError)
    return config


def weights_digest(folder: Path) -> str | None:
    """Return the checksum of the weights of a saved model that was read before; None if it has none."""
    digest: str | None = read_json(folder / CONFIG, ModelFileError).get("sha256", {}).get(WEIGHTS)
    return digest


def read_vocabulary(folder: Path) -> list[str]:
    """Return the words of a saved model.

    Raises:
        ModelFileError: they cannot be read.
    """
    try:
        return read_lines(folder / VOCABULARY)
    except UnicodeDecodeError as error:
        raise ModelFileError.of(folder / VOCABULARY, f"is damaged: byte {error.start} is not UTF-8") from None


def read_topics(directory: str | Path) -> SavedTopics:
    """Read the topics of a saved model or of a run.

    Raises:
        ModelFileError: there is no model, or it is damaged.
    """
    folder = find_model(directory)
    config = read_config(folder)
    try:
        with safe_open(folder / WEIGHTS, framework="numpy") as file:
            components, counts = file.get_tensor(COMPONENTS), file.get_tensor("word_counts_")
    except OSError as error:
        raise ModelFileError.unreadable(folder / WEIGHTS, error) from None
    except SafetensorError as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise ModelFileError.of(folder / WEIGHTS, f"is damaged: {reason}") from None
    words = read_vocabulary(folder)
    if components.ndim != 2 or components.shape[1] != len(words) or counts.shape != (len(words),):
        raise ModelFileError.of(folder / WEIGHTS, f"is damaged: its words are not the {len(words)} of {VOCABULARY}")
    for name, numbers in ((COMPONENTS, components), ("word_counts_", counts)):
        if numbers.dtype.kind not in "fi" or not np.isfinite(numbers).all() or numbers.min() < 0:
            raise ModelFileError.of(folder / WEIGHTS, f"is damaged: {name!r} contains what no model has")
    names = config.get("topic_names")
    if names is not None and (not isinstance(names, list) or len(names) != len(components)):
        raise ModelFileError.of(folder / CONFIG, "is damaged: its topics and their names differ in number")
    return SavedTopics(components, words, counts, names)


def load_model(run: Path, device: str, allow: Iterable[str]) -> Any:
    """Do what `topicloom.load` does, which is looked up when a model is needed.

    Models are above this package, and need PyTorch.
    """
    return import_module("topicloom.models.persistence").load(run, device=device, allow=allow)


def load_model_of(topics: SavedTopics, run: Path, device: str, allow: Iterable[str]) -> Any:
    """Load the model of a run whose topics were read before.

    Args:
        topics: the topics.
        run, device, allow: as for `topicloom.load`.

    Raises:
        InputError: the run has been replaced by one with other topics since then.
    """
    model = load_model(run, device, allow)
    is_same = model.vocabulary_ == topics.vocabulary and model.components_.shape == topics.components.shape
    if not is_same or not np.allclose(model.components_, topics.components, rtol=1e-3, atol=1e-6):
        raise InputError(f"the run in {run} was replaced after its topics had been read; read it again")
    return model
