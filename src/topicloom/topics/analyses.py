"""Analyses: the methods of `Topics` that compare topics, over time, by group and with those of another run.

Each passes the documents of the view to a function of arrays, which has a module of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import SettingError
from .base import View
from .groups import ByGroup, by_group, groups_of
from .hierarchy import Hierarchy, Method, hierarchy
from .matching import DEFAULT_THRESHOLD, Matches, match
from .periods import period_name, periods_of
from .saved import read_topics
from .shares import group_word_counts, words_of_groups
from .table import Table
from .trends import OverTime, over_time

Array = npt.NDArray[Any]


class Analyses(View):
    """Methods of a view that compare its topics."""

    def hierarchy(self, *, word_weight: float = 0.5, method: Method = "average", n_words: int = 10) -> Hierarchy:
        """Return the tree of topics that belong together, by the words and the documents that they share.

        Args:
            word_weight: the weight of words, from 0 to 1; the rest is that of documents.
            method: "average", "complete" or "single" linkage.
            n_words: the number of words for each node.

        Raises:
            SettingError: an argument cannot have its value.
        """
        return hierarchy(
            self.components, self.documents.theta, self.word_counts, self.vocabulary, empty=self.documents.empty,
            names=self.names, word_weight=word_weight, method=method, top_n=n_words,
        )  # fmt: skip

    def over_time(
        self, period: str = "auto", *, level: float = 0.95, n_samples: int = 1000, random_state: int = 0
    ) -> OverTime:
        """Return the shares of topics by period with intervals, and the topics that rise or fall.

        Args:
            period: "day", "week", "month", "quarter" or "year"; "auto" gives at most 40 periods.
            level: the probability of the intervals; the tests of trends have the level 1 - `level`.
            n_samples: the number of bootstrap samples.
            random_state: a seed.

        Raises:
            InputError: no document has a time.
            SettingError: an argument cannot have its value.
        """
        return over_time(
            self.documents.theta, self.documents.times, period, empty=self.documents.empty, names=self.names,
            level=level, n_samples=n_samples, random_state=random_state,
        )  # fmt: skip

    def words_over_time(self, topic: Any, period: str = "auto", n_words: int = 10) -> Table:
        """Return the words that a topic uses more in each period than in the others.

        Args:
            topic: its number or its name.
            period: as for `over_time`.
            n_words: the number of words for each period.

        Returns:
            a table with the columns period, word, score (see `distinctive_words`) and tokens (expected).

        Raises:
            InputError: there is no such topic, or no document has a time.
        """
        period, starts, codes = periods_of(self.documents.times, period)
        return self._words_by(topic, "period", codes, [period_name(start, period) for start in starts], n_words)

    def by_class(self, **options: Any) -> ByGroup:
        """Return the shares of topics by class with intervals; `options` as for `by`.

        Raises:
            InputError: no document has a class.
        """
        return self.by("class", **options)

    def by(
        self,
        covariate: str,
        *,
        n_groups: int = 4,
        level: float = 0.95,
        n_samples: int = 1000,
        random_state: int = 0,
    ) -> ByGroup:
        """Return the shares of topics by a covariate with intervals, and how topics differ.

        Args:
            covariate: its name, or "class" for the documents' labels.
            n_groups: the number of groups into which numbers are divided at their quantiles.
            level: the probability of the intervals.
            n_samples, random_state: as for `over_time`.

        Raises:
            InputError: the documents have no such covariate.
            SettingError: an argument cannot have its value.
        """
        groups, group_names = groups_of(self.documents.fields, covariate, n_groups)
        return by_group(
            self.documents.theta, groups, group_names, covariate, empty=self.documents.empty, names=self.names,
            level=level, n_samples=n_samples, random_state=random_state,
        )  # fmt: skip

    def words_by(self, topic: Any, covariate: str = "class", n_words: int = 10, n_groups: int = 4) -> Table:
        """Return the words that each group uses more for a topic than the other groups.

        Args:
            topic: its number or its name.
            covariate, n_groups: as for `by`.
            n_words: the number of words for each group.

        Returns:
            a table with the columns group, word, score (see `distinctive_words`) and tokens (expected).

        Raises:
            InputError: there is no such topic, or the documents have no such covariate.
        """
        groups, group_names = groups_of(self.documents.fields, covariate, n_groups)
        return self._words_by(topic, "group", groups, group_names, n_words)

    def match(self, other: Any, *, threshold: float = DEFAULT_THRESHOLD) -> Matches:
        """Match these topics with those of an older run, so that they can have its names.

        Args:
            other: the older run: a path, a view or a fitted model.
            threshold: the similarity, from 0 to 1, below which a topic is new.

        Returns:
            the pairs; `topics.rename(topics.match("runs/may").renames())` carries names over.

        Raises:
            InputError: there is no such run, or the runs have no word in common.
            SettingError: `threshold` is not from 0 to 1, or `other` is no run.
        """
        components, vocabulary, names, given = _topics_and_names(other)
        return match(
            self.components, self.vocabulary, components, vocabulary, threshold=threshold, names=self.names,
            old_names=names, given=given,
        )  # fmt: skip

    def _words_by(self, topic: Any, column: str, groups: Array, group_names: Sequence[str], n_words: int) -> Table:
        k = self.number_of(topic)
        counts = group_word_counts(
            self.corpus.counts, self.documents.theta, self.components, groups, len(group_names), k
        )
        rows = [
            {column: name, "word": word, "score": score, "tokens": tokens}
            for name, words in zip(group_names, words_of_groups(counts, self.vocabulary, n_words), strict=True)
            for word, score, tokens in words
        ]
        return Table.of(rows, f"Words of topic {k} by {column}", (column, "word", "score", "tokens"))


def _topics_and_names(other: Any) -> tuple[Array, list[str], list[str], list[str | None]]:
    """Return the topics, the words, the names and the names that people gave, of a run, a view or a model."""
    if isinstance(other, str | Path):
        saved = read_topics(other)
        return saved.components, saved.vocabulary, saved.topic_names, saved.given_names
    if isinstance(other, View):
        return other.components, other.vocabulary, other.names, other.given_names
    if not hasattr(other, "components_"):
        raise SettingError(f"`other` should be an older run, as a path, a view or a fitted model; it is {other!r:.60}")
    return np.asarray(other.components_), list(other.vocabulary_), other.topic_names_, other.given_names
