"""The topics of a saved model, read without the network and without PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open

from ..errors import InputError, SettingError
from ..files import check_digests, read_json, read_lines
from ..ranking import top_words, word_scores


@dataclass(frozen=True, eq=False)
class SavedTopics:
    """Topics as distributions over words, with what ranking their words needs.

    Attributes:
        components: (K, V) float32, rows sum to 1.
        vocabulary: the V words.
        word_counts: (V,) tokens of each word in the training corpus.
    """

    components: npt.NDArray[Any]
    vocabulary: list[str]
    word_counts: npt.NDArray[Any]

    def topics(self, top_n: int = 10, relevance: float | None = None) -> list[list[str]]:
        """Return the words that stand for each topic, best first; as `TopicModel.topics`."""
        ranked = rank_words(self.components, self.word_counts, top_n, relevance)
        return [[self.vocabulary[word] for word in row] for row in ranked]


def rank_words(
    components: npt.NDArray[Any], word_counts: npt.NDArray[Any], top_n: int = 10, relevance: float | None = None
) -> npt.NDArray[np.intp]:
    """Return the columns of the words that stand for each topic, (K, min(top_n, V)), best first.

    Args:
        components: (K, V), rows sum to 1.
        word_counts: (V,) tokens of each word in the training corpus.
        top_n, relevance: as for `TopicModel.topics`.

    Raises:
        SettingError: `top_n` is not a whole number from 1, or `relevance` is not from 0 to 1.
    """
    if relevance is not None and not 0 <= relevance <= 1:
        raise SettingError(f"relevance should be from 0 to 1; it is {relevance!r}")
    if isinstance(top_n, bool) or not isinstance(top_n, Integral) or top_n < 1:
        raise SettingError(f"top_n should be a whole number from 1; it is {top_n!r}")
    return top_words(word_scores(components, word_counts, relevance), int(top_n))


def read_topics(directory: str | Path) -> SavedTopics:
    """Read the topics of a saved model or of a run.

    Raises:
        InputError: there is no model, or it is damaged.
    """
    folder = Path(directory)
    if not (folder / "config.json").is_file() and (folder / "model").is_dir():
        folder = folder / "model"  # a run directory
    if not (folder / "config.json").is_file():
        raise InputError(f"{folder} holds no saved model (no config.json); check the path")
    config = read_json(folder / "config.json")
    digests = config.get("sha256") if isinstance(config, dict) else None
    check_digests(folder, digests if isinstance(digests, dict) else {})
    try:
        with safe_open(folder / "model.safetensors", framework="numpy") as file:
            components, counts = file.get_tensor("components_"), file.get_tensor("word_counts_")
        words = read_lines(folder / "vocabulary.txt")
    except (OSError, UnicodeDecodeError, SafetensorError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"{folder} is damaged ({reason}); train or copy it again") from None
    if components.ndim != 2 or components.shape[1] != len(words) or counts.shape != (len(words),):
        raise InputError(f"{folder} is damaged (its words and its topics have different sizes); train or copy it again")
    if not np.isfinite(components).all() or not np.isfinite(counts).all():
        raise InputError(f"{folder / 'model.safetensors'} holds a number that is not finite; train or copy it again")
    return SavedTopics(components, words, counts)
