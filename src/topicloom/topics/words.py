"""The words that stand for each topic, as word ids, and the names and numbers of topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import SettingError
from ..ranking import top_words, word_scores
from ..settings import require_whole


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
    require_whole("top_n", top_n)
    return top_words(word_scores(components, word_counts, relevance), int(top_n))


def complete_names(given: Sequence[str | None], words: Sequence[Sequence[str]]) -> list[str]:
    """Return a name for each topic: the one that it was given, or else its first words, such as "cat, dog, mat"."""
    return [", ".join(topic[:3]) if name is None else name for name, topic in zip(given, words, strict=True)]


def names_or_numbers(names: Sequence[str] | None, n_topics: int) -> list[str]:
    """Return the names of topics, or their numbers if they have none."""
    return [str(topic) for topic in range(n_topics)] if names is None else list(names)


def chosen_topics(topics: Sequence[int] | None, n_topics: int) -> list[int]:
    """Return the given topics, or all.

    Raises:
        SettingError: there is no such topic.
    """
    chosen = list(range(n_topics)) if topics is None else [int(topic) for topic in topics]
    for topic in chosen:
        if not 0 <= topic < n_topics:
            raise SettingError(f"there is no topic {topic}; topics are numbered 0 to {n_topics - 1}")
    return chosen
