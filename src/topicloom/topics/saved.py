"""The topics of a saved model, read without the network and without PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open

from ..errors import InputError
from ..files import check_digests, read_json, read_lines
from .words import complete_names, topic_word_ids

CONFIG, WEIGHTS, VOCABULARY = "config.json", "model.safetensors", "vocabulary.txt"
MODEL_FILES = frozenset({CONFIG, WEIGHTS, VOCABULARY})
COMPONENTS = "components_"


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
        InputError: there is no model.
    """
    folder = Path(directory)
    if not (folder / CONFIG).is_file() and (folder / "model").is_dir():
        folder = folder / "model"
    if not (folder / CONFIG).is_file():
        raise InputError(f"{folder} holds no saved model (no {CONFIG}); check the path")
    return folder


def read_topics(directory: str | Path) -> SavedTopics:
    """Read the topics of a saved model or of a run.

    Raises:
        InputError: there is no model, or it is damaged.
    """
    folder = find_model(directory)
    config = read_json(folder / CONFIG)
    digests = config.get("sha256") if isinstance(config, dict) else None
    check_digests(folder, digests if isinstance(digests, dict) else {})
    try:
        with safe_open(folder / WEIGHTS, framework="numpy") as file:
            components, counts = file.get_tensor(COMPONENTS), file.get_tensor("word_counts_")
        words = read_lines(folder / VOCABULARY)
    except (OSError, UnicodeDecodeError, SafetensorError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"{folder} is damaged ({reason}); train or copy it again") from None
    if components.ndim != 2 or components.shape[1] != len(words) or counts.shape != (len(words),):
        raise InputError(f"{folder} is damaged (its words and its topics have different sizes); train or copy it again")
    if not np.isfinite(components).all() or not np.isfinite(counts).all():
        raise InputError(f"{folder / 'model.safetensors'} holds a number that is not finite; train or copy it again")
    names = config.get("topic_names")
    if names is not None and (not isinstance(names, list) or len(names) != len(components)):
        raise InputError(f"{folder / CONFIG} is damaged (its topics and their names differ in number); copy it again")
    return SavedTopics(components, words, counts, names)
