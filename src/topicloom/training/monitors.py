"""Measures of the topics while they are learned: columns of history_, every few epochs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..corpus.topic_measures import (
    LONGEST,
    TOPIC_MEASURES,
    Source,
    known_names,
)
from ..errors import SettingError
from ..nn.network import TopicNetwork
from ..ranking import top_words, word_scores
from .collapse import COLUMNS


class TopicMonitor:
    """Measures a network's topics, ranked by the package's rule, after every few epochs and the last.

    The reference keeps the word pairs that it has counted: topics that have settled cost next to nothing.

    Args:
        names: out of `TOPIC_MEASURES`. What the collapse watch measures after every epoch is not measured again.
        every: epochs from one time to the next.
        n_epochs: how many there will be at most.
        source: what coherence is measured against.
        vocabulary: the V words.
        word_counts: (V,) tokens of each.

    Raises:
        SettingError: a name is not known, or `every` is not a whole number from 1.
        InputError: a measure needs the order of words, which is not known.
    """

    def __init__(
        self,
        names: Iterable[str],
        every: int,
        n_epochs: int,
        source: Source,
        vocabulary: Sequence[str],
        word_counts: npt.NDArray[Any],
    ) -> None:
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise SettingError(f"monitor_every should be a whole number from 1; it is {every!r}")
        self.names = [name for name in known_names(names, TOPIC_MEASURES, "monitor") if name not in COLUMNS]
        self.every, self.n_epochs, self.seen = every, n_epochs, 0
        self.source, self.vocabulary, self.word_counts = source, np.array(vocabulary, dtype=object), word_counts
        source.require(self.names)

    def __call__(self, network: TopicNetwork) -> dict[str, Any]:
        """The columns of an epoch: none where it is not measured."""
        self.seen += 1
        if not self.names or (self.seen % self.every and self.seen != self.n_epochs):
            return {}
        topics = network.topic_word().float().cpu().numpy()
        best = self.vocabulary[top_words(word_scores(topics, self.word_counts), LONGEST)].tolist()
        return {name: float(TOPIC_MEASURES[name](best, self.source, None)) for name in self.names}
