"""The words that stand for each topic, as word ids."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import SettingError
from ..ranking import top_words, word_scores


def topic_word_ids(
    components: npt.NDArray[Any], word_counts: npt.NDArray[Any], top_n: int = 10, relevance: float | None = None
) -> npt.NDArray[np.intp]:
    """Rank the words of each topic.

    Args:
        components: (K, V), rows sum to 1.
        word_counts: (V,) tokens of each word in the training corpus.
        top_n: how many words a topic has.
        relevance: as for `TopicModel.topics`.

    Returns:
        (K, min(top_n, V)) columns of components, best first.

    Raises:
        SettingError: `top_n` or `relevance` is out of its range.
    """
    if relevance is not None and not 0 <= relevance <= 1:
        raise SettingError(f"`relevance` should be from 0 to 1; it is {relevance!r}")
    if not isinstance(top_n, Integral) or top_n < 1:
        raise SettingError(f"`top_n` should be a whole number from 1; it is {top_n!r}")
    return top_words(word_scores(components, word_counts, relevance), int(top_n))


def complete_names(given: Sequence[str | None], words: Sequence[Sequence[str]]) -> list[str]:
    """Return a name for each topic: the one that it was given, or else its first words, such as "cat, dog, mat"."""
    return [", ".join(topic[:3]) if name is None else name for name, topic in zip(given, words, strict=True)]
