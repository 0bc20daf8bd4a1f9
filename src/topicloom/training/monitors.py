"""Measures during training: the quality of topics, and signs of collapse.

A topic model can fail without any sign in its loss. The latent code may carry no information, because its divergence
from the prior vanishes; topics may repeat each other; or all topics may consist of the most frequent words. No single
measure shows all of this, so the collapse watch takes several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
from torch import Tensor

from ..corpus.corpus import CorpusReference
from ..errors import InputError
from ..metrics import CATALOGUE, Measured, MeasureInputs, Reference
from ..metrics.catalogue import TOP_WORDS, Measure, known_measures, measures_of
from ..nn.network import TopicNetwork
from ..nn.posteriors import Posterior
from ..nn.sparse import Batch
from ..ranking import top_words, word_scores
from ..settings import require_whole
from .batches import BatchReader

# Signs of failing training. The loop and the collapse watch find them, and a model names remedies.

CollapseKind = Literal[
    "few documents",
    "idle dimensions",
    "unused topics",
    "one large topic",
    "duplicate topics",
    "similar topics",
    "frequent words",
]


@dataclass(frozen=True)
class CollapseSign:
    """A sign that the topics are unused or not distinct.

    Attributes:
        kind: what is wrong. "few documents" means fewer documents than topics.
        epoch: the number of epochs of the training.
        fewer_topics: a smaller number of topics that may help.
    """

    kind: CollapseKind
    epoch: int
    fewer_topics: int


@dataclass(frozen=True)
class NotFinite:
    """A loss or a gradient is not finite.

    Attributes:
        at_first_step: whether this happened at the first step, so that no earlier step can be the cause.
    """

    at_first_step: bool


@dataclass(frozen=True)
class TooLittleMemory:
    """A batch does not fit into the memory of the device.

    Attributes:
        smaller_batch: a number of documents that may fit; None if smaller batches do not help.
    """

    smaller_batch: int | None


Sign = CollapseSign | NotFinite | TooLittleMemory


class Advised(Protocol):
    """A model that names remedies."""

    n_topics: int

    def remedies(self, sign: Sign) -> str:
        """Return a clause that says what to try against a sign, such as "try `epochs=120`"."""


Array = npt.NDArray[Any]

_WATCHED_DOCUMENTS, _WATCHED_PER_TOPIC = 1024, 20  # the size of the sample is the larger of the two
_TOLERATED_SHARE = 0.2  # the share of topics or latent dimensions that may be inactive without a warning
# With fewer, some topics must be unused or alike, so there is no warning.
_FEWEST_DOCUMENTS_PER_TOPIC, _FEWEST_WORDS = 5, 200
# The share from which a topic is said to be large, and the same as a multiple of equal shares. In ten topics whose
# shares fall as rank to the power of -1.5, the first has half of the text.
_LARGE_SHARE, _LARGE_MULTIPLE = 0.3, 5
# Topics are said to be similar if their diversity is below this share of the highest one that the vocabulary allows.
_LEAST_DIVERSITY = 0.3
_N_FREQUENT = 50  # the number of most frequent words whose weight is measured


class TopicMonitor:
    """Measures a network's topics every few epochs and after the last one.

    Words are ranked by the package's default rule. The reference keeps the counts of word pairs, so topics that no
    longer change take almost no time. Measures of the collapse watch can be taken here too, because the watch does not
    measure every epoch of every model. Both find the same value.

    Args:
        names: names of measures (see `check_monitors`).
        every: the number of epochs from one measurement to the next.
        n_epochs: the number of epochs, unless training stops early.
        reference: the corpus on which coherence is measured.
        vocabulary: the V words.
        word_counts: (V,) tokens of each word.
        seen: the number of earlier epochs, if training continues from a checkpoint.
        word_vectors: returns vectors of the words, trained on the documents of `reference`, for the measures that need
            them. It is called once, before training.

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
        word_vectors: Callable[[], Any] = lambda: None,
    ) -> None:
        self.names = check_monitors(names, every)
        self.every, self.n_epochs, self.seen = every, n_epochs, seen
        self.reference, self.vocabulary, self.word_counts = reference, np.array(vocabulary, dtype=object), word_counts
        for name in self.names:
            if {"token order", "word vectors"} & CATALOGUE[name].needs and reference.order_unknown is not None:
                raise InputError(f"{name} cannot be measured: {reference.order_unknown}")
        needs_vectors = any("word vectors" in CATALOGUE[name].needs for name in self.names)
        self.word_vectors = word_vectors() if needs_vectors else None

    def __call__(self, network: TopicNetwork) -> dict[str, Any]:
        """Measure a network after an epoch.

        Returns:
            columns for the epoch's row of history_; none if this epoch is not measured.
        """
        self.seen += 1
        if not self.names or (self.seen % self.every and self.seen != self.n_epochs):
            return {}
        topic_word = network.topic_word().float().cpu().numpy()  # (K, V)
        best = self.vocabulary[top_words(word_scores(topic_word, self.word_counts), TOP_WORDS)].tolist()
        inputs = _TopicInputs(best, self.reference, self.word_vectors)
        return {name: float(CATALOGUE[name].function(inputs)) for name in self.names}


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
    require_whole("monitor_every", every)
    return chosen


class _TopicInputs(MeasureInputs):
    """The inputs of the measures: the topics, the corpus on which coherence is measured, and vectors of its words."""

    def __init__(self, topics: list[list[str]], reference: CorpusReference, vectors: Any) -> None:
        self._topics, self._reference, self._vectors = topics, reference, vectors

    @property
    def topics(self) -> list[list[str]]:
        return self._topics

    @property
    def documents(self) -> Reference:
        return self._reference.documents

    @property
    def ordered_documents(self) -> Reference:
        return self._reference.ordered_documents

    @property
    def word_vectors(self) -> Any:
        return self._vectors


@dataclass(frozen=True)
class CollapseWatch:
    """Measures collapse on the same documents after every epoch. Networks that change slowly skip some epochs.

    Attributes:
        batch: a sample of the training documents.
        word_counts: (V,) tokens of each word in the training documents.
    """

    batch: Batch
    word_counts: Array

    @classmethod
    def of(cls, reader: BatchReader, word_counts: Array, n_topics: int) -> CollapseWatch:
        """Make a watch over a sample of a reader's documents.

        Args:
            reader: reads the training documents.
            word_counts: (V,) tokens of each word.
            n_topics: the number of topics; the sample has at least 20 documents for each.
        """
        return cls(reader.sample_of_all(max(_WATCHED_DOCUMENTS, _WATCHED_PER_TOPIC * n_topics)), word_counts)

    def __call__(self, network: TopicNetwork) -> dict[str, Any]:
        """Measure a network.

        Returns:
            the catalogue's measures with the use "watch", as columns of history_. docs/collapse.md describes them.
            `kl_per_dimension` is a list with a number for each latent dimension. A network without a divergence from a
            prior has neither this column nor `active_units_by_divergence`. The network's own columns follow
            (`TopicNetwork.further_measures`).
        """
        posterior = network.posterior(self.batch)
        return self.figures(posterior, network.topic_word()) | network.further_measures(posterior)

    def figures(self, posterior: Posterior, topic_word: Tensor) -> dict[str, Any]:
        """Measure given topics and a given posterior. The values are those that a call returns.

        Args:
            posterior: the posterior of the documents of `batch`.
            topic_word: (K, V), rows sum to 1.
        """
        inputs = _WatchInputs(posterior, topic_word.float().cpu().numpy(), self.word_counts)
        has_divergence = inputs.divergence.shape[1] > 0
        return {
            name: _column(measure, measure.function(inputs))
            for name, measure in measures_of("watch").items()
            if has_divergence or "divergence" not in measure.needs
        }

    def advice(self, model: Advised, row: dict[str, Any]) -> Iterator[str]:
        """Yield a sentence for each sign of collapse, with the remedies that the model names.

        If there are few documents for each topic, there are no such sentences. If there are even fewer documents than
        topics, one sentence says so.

        Args:
            model: the estimator.
            row: a row of its history_, with the columns of the watch.
        """
        n_topics, n_docs, n_words = model.n_topics, self.batch.n_docs, self.batch.n_words

        def remedies(kind: CollapseKind, fewer_topics: int) -> str:
            return model.remedies(CollapseSign(kind, int(row["epoch"]), fewer_topics))

        if n_docs < n_topics:
            advice = remedies("few documents", max(2, n_docs // _FEWEST_DOCUMENTS_PER_TOPIC))
            yield f"there are more topics ({n_topics}) than documents ({n_docs}); {advice}"
        if n_docs < _FEWEST_DOCUMENTS_PER_TOPIC * n_topics:
            return

        n_used, n_pairs = row["active_topics"], row["duplicate_topics"] if n_words >= _FEWEST_WORDS else 0
        are_unused = n_used < (1 - _TOLERATED_SHARE) * n_topics
        useful = [n_used] if are_unused else []
        if n_pairs:
            alike = (1 + (1 + 8 * n_pairs) ** 0.5) / 2  # n topics that are all alike make n * (n - 1) / 2 pairs
            useful.append(n_topics - round(alike - 1))
        fewer = max(2, min(useful, default=n_topics // 2))  # the same number in all sentences

        n_dimensions = len(row.get("kl_per_dimension", ()))
        if n_dimensions and row["active_units_by_divergence"] < (1 - _TOLERATED_SHARE) * n_dimensions:
            yield (
                f"posterior collapse: only {row['active_units_by_divergence']} of {n_dimensions} latent dimensions "
                f"carry information about the documents; {remedies('idle dimensions', fewer)}"
            )
        if are_unused:
            n_unused = n_topics - n_used
            yield (
                f"{n_unused} of {n_topics} topics {'is' if n_unused == 1 else 'are'} not the main topic of any document"
                f"; {remedies('unused topics', fewer)}"
            )
        if row["largest_share"] > max(_LARGE_SHARE, _LARGE_MULTIPLE / n_topics):
            yield (
                f"one topic has {row['largest_share']:.0%} of the text, and equal shares would be {1 / n_topics:.0%}; "
                f"if the texts do not explain it, {remedies('one large topic', fewer)}"
            )
        if n_pairs:
            pairs = "1 pair of topics shares" if n_pairs == 1 else f"{n_pairs} pairs of topics share"
            yield f"{pairs} at least 8 of their 10 top words; {remedies('duplicate topics', fewer)}"
        n_tops, diversity = TOP_WORDS * n_topics, row["topic_diversity"]
        if n_words >= _FEWEST_WORDS and diversity < _LEAST_DIVERSITY * min(1, n_words / n_tops):
            yield (
                f"the topics are alike: their {n_tops:,} top words are only {round(diversity * n_tops):,} different "
                f"ones; {remedies('similar topics', fewer)}"
            )
        if n_words >= _FEWEST_WORDS and row["frequent_mass"] > (1 + (usual := self._frequent_share())) / 2:
            yield (
                f"the {_N_FREQUENT} most frequent words have {row['frequent_mass']:.0%} of the topics' weight and make "
                f"up {usual:.0%} of the corpus; leave out common words with `remove_top={_N_FREQUENT}`, or "
                f"{remedies('frequent words', fewer)}"
            )

    def _frequent_share(self) -> float:
        """Return the share of the most frequent words in the tokens of the corpus."""
        frequent = np.argsort(-self.word_counts, kind="stable")[:_N_FREQUENT]
        return float(self.word_counts[frequent].sum() / self.word_counts.sum())


class _WatchInputs(MeasureInputs):
    """The inputs of the measures: the posterior of the watched documents, and the topics."""

    def __init__(self, posterior: Posterior, topic_word: Array, word_counts: Array) -> None:
        self._posterior, self._topic_word, self._word_counts = posterior, topic_word, word_counts

    @cached_property
    def topics(self) -> Any:
        return self._ranked(None)

    @cached_property
    def relevant_topics(self) -> Any:
        return self._ranked(0.6)

    def _ranked(self, relevance: float | None) -> Any:
        """Return the top words of each topic: (K, 25) word ids."""
        return top_words(word_scores(self._topic_word, self._word_counts, relevance), TOP_WORDS)

    @property
    def topic_word(self) -> Array:
        return self._topic_word

    @property
    def word_counts(self) -> Array:
        return self._word_counts

    @cached_property
    def theta(self) -> Array:
        theta: Array = self._posterior.point().cpu().numpy()  # (B, K)
        return theta

    @cached_property
    def divergence(self) -> Array:
        divergence: Array = self._posterior.divergence().cpu().numpy()  # (B, L)
        return divergence


def _column(measure: Measure, value: Measured) -> Any:
    """Return a value as a number or list that can be written as JSON."""
    if value.per_dimension is not None:
        return [round(number, 5) for number in value.per_dimension.tolist()]
    return int(value) if measure.is_count else float(value)
