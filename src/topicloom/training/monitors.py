"""Measures of the topics that are taken every few epochs of training, as columns of history_."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..corpus.reference import CorpusReference
from ..errors import InputError, SettingError
from ..metrics import CATALOGUE, MeasureInputs, Reference
from ..metrics.catalogue import TOP_WORDS, known_measures, measures_of
from ..nn.network import TopicNetwork
from ..ranking import top_words, word_scores


def check_monitors(names: Iterable[str], every: int) -> list[str]:
    """Check the arguments `monitor` and `monitor_every` of `fit`.

    Args:
        names: names of measures.
        every: the number of epochs from one measurement to the next.

    Returns:
        the names, each once.

    Raises:
        SettingError: a name is unknown, or `every` is not a whole number above 0.
    """
    chosen = known_measures(names, measures_of("monitor"), "`monitor`")
    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        raise SettingError(f"`monitor_every={every!r}` should be a whole number from 1")
    return chosen


class TopicMonitor:
    """Measures a network's topics every few epochs and after the last one.

    Words are ranked by the package's default rule. The reference remembers the word pairs that it has counted, so that
    topics that no longer change take next to no time. A measure of the collapse watch is taken here too, because the
    watch is not taken after every epoch of every model. Both find the same value.

    Args:
        names: names of measures (see `check_monitors`).
        every: the number of epochs from one measurement to the next.
        n_epochs: the number of epochs, unless training stops early.
        reference: the corpus on which coherence is measured.
        vocabulary: the V words.
        word_counts: (V,) tokens of each word.
        seen: the number of epochs before, if training goes on from a checkpoint.

    Raises:
        SettingError: a name is unknown, or `every` is not a whole number above 0.
        InputError: a measure needs the order of words, which is not known.
    """

    def __init__(
        self,
        names: Iterable[str],
        every: int,
        n_epochs: int,
        reference: CorpusReference,
        vocabulary: Sequence[str],
        word_counts: npt.NDArray[Any],
        seen: int = 0,
    ) -> None:
        self.names = check_monitors(names, every)
        self.every, self.n_epochs, self.seen = every, n_epochs, seen
        self.reference, self.vocabulary, self.word_counts = reference, np.array(vocabulary, dtype=object), word_counts
        for name in self.names:
            if "token order" in CATALOGUE[name].needs and reference.order_unknown is not None:
                raise InputError(f"{name} cannot be measured: {reference.order_unknown}")

    def __call__(self, network: TopicNetwork) -> dict[str, Any]:
        """Measure a network after an epoch.

        Returns:
            the columns of the epoch's row of history_; none, if it is not one of the epochs that are measured.
        """
        self.seen += 1
        if not self.names or (self.seen % self.every and self.seen != self.n_epochs):
            return {}
        topic_word = network.topic_word().float().cpu().numpy()  # (K, V)
        best = self.vocabulary[top_words(word_scores(topic_word, self.word_counts), TOP_WORDS)].tolist()
        inputs = _TopicInputs(best, self.reference)
        return {name: float(CATALOGUE[name].function(inputs)) for name in self.names}


class _TopicInputs(MeasureInputs):
    """The inputs of the measures: the topics, and the corpus on which coherence is measured."""

    def __init__(self, topics: list[list[str]], reference: CorpusReference) -> None:
        self._topics, self._reference = topics, reference

    @property
    def topics(self) -> list[list[str]]:
        return self._topics

    @property
    def documents(self) -> Reference:
        return self._reference.documents

    @property
    def ordered_documents(self) -> Reference:
        return self._reference.ordered_documents
