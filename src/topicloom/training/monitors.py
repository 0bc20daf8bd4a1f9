"""Measures that are taken while a model trains: the quality of its topics, and signs of collapse."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from ..corpus.corpus import CorpusReference
from ..errors import InputError, SettingError
from ..metrics import CATALOGUE, Measured, MeasureInputs, Reference
from ..metrics.catalogue import TOP_WORDS, Measure, known_measures, measures_of
from ..nn.network import TopicNetwork
from ..nn.posteriors import Posterior
from ..nn.sparse import Batch
from ..ranking import top_words, word_scores
from .batches import BatchReader


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


# The collapse watch: measures that show while a model trains whether the topics are in use and distinct.
#
# A topic model can fail without any sign in its loss. The latent code may carry no information, because its divergence
# from the prior vanishes; topics may repeat each other; or all topics may consist of the most frequent words. No single
# measure shows all of this, so several are taken.

Array = npt.NDArray[Any]

_SAMPLE = 1024  # documents, or 20 for each topic
_TOLERATED = 0.2  # share of topics or latent dimensions that may be inactive without a warning
_DOCS_PER_TOPIC, _WORDS = 5, 200  # below these, some topics must be unused or alike, so there is no warning
_FREQUENT = 50  # words
_DISCREPANCY_WEIGHTS = ("mmd_weight", "critic_weight")  # of terms that keep theta near a prior
_SUSPECTS = (
    "background", "prior", "input_dropout", "weight_decay", "latent_size", "embedding_size", "alpha", "eta",
    "kl_weight", *_DISCREPANCY_WEIGHTS, "learning_rate", "min_diversity",
)  # fmt: skip


@dataclass(frozen=True)
class CollapseWatch:
    """Measures a network on the same documents after every epoch, or after some epochs of one that changes slowly.

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
        return cls(reader.sample_of_all(max(_SAMPLE, 20 * n_topics)), word_counts)

    def __call__(self, network: TopicNetwork) -> dict[str, Any]:
        """Measure a network.

        Returns:
            the values of the catalogue's measures with the use "watch", which become columns of history_ and which
            docs/collapse.md describes. `kl_per_dimension` is a list with a number for each latent dimension. A network
            without a divergence from a prior has neither this column nor `active_units_by_divergence`. The network's
            own columns follow (`TopicNetwork.further_measures`).
        """
        posterior = network.posterior(self.batch)
        return self.figures(posterior, network.topic_word()) | network.further_measures(posterior)

    def figures(self, posterior: Posterior, topic_word: Tensor) -> dict[str, Any]:
        """Return the same values for given topics.

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

    def advice(self, model: Any, row: dict[str, Any]) -> Iterator[str]:
        """Yield a sentence for each sign of collapse, with settings to try.

        A corpus with few documents for each topic gives no such sentences, and one that says so if it has fewer
        documents than topics.

        Args:
            model: the estimator, whose settings the sentences name.
            row: a row of its history_, with the columns of the watch.
        """
        n_topics, n_docs, n_words = model.n_topics, self.batch.n_docs, self.batch.n_words
        longer = _longer_training(model, int(row["epoch"]))
        if n_docs < n_topics:
            yield f"there are more topics ({n_topics}) than documents ({n_docs}); {_fewer_topics(n_topics, n_docs)}"
        if n_docs < _DOCS_PER_TOPIC * n_topics:
            return
        yield from _idle_dimensions(model, row, longer)
        n_used = row["active_topics"]
        are_unused = n_used < (1 - _TOLERATED) * n_topics
        duplicates = row["duplicate_topics"] if n_words >= _WORDS else 0
        useful = [n_used] if are_unused else []
        if duplicates:
            alike = (1 + (1 + 8 * duplicates) ** 0.5) / 2  # n topics that are all alike make n * (n - 1) / 2 pairs
            useful.append(n_topics - round(alike - 1))
        fewer = max(2, min(useful, default=n_topics // 2))  # the same number in all sentences
        if are_unused:
            yield _unused_topics(model, n_topics - n_used, fewer, longer)
        if duplicates:
            yield _duplicate_topics(model, duplicates, fewer, longer)
        if n_words >= _WORDS:
            yield from self._frequent_words(model, row["frequent_mass"], fewer)

    def _frequent_words(self, model: Any, mass: float, fewer: int) -> Iterator[str]:
        """Yield a sentence if the most frequent words have much more of the topics' weight than of the corpus."""
        frequent = np.argsort(-self.word_counts, kind="stable")[:_FREQUENT]
        usual = float(self.word_counts[frequent].sum() / self.word_counts.sum())
        if mass > (1 + usual) / 2:
            yield (
                f"the {_FREQUENT} most frequent words have {mass:.0%} of the topics' weight and make "
                f"up {usual:.0%} of the corpus; leave out common words with `remove_top={_FREQUENT}`, or "
                f"{_cures(model, background=True, n_topics=fewer)}"
            )


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


def _longer_training(model: Any, n_epochs: int) -> dict[str, int]:
    """Return the setting, with its value, that makes training longer: `patience` if it has ended training."""
    if getattr(model, "patience", None) is not None and n_epochs < model.n_history_rows:
        return {"patience": 2 * model.patience}
    return {"epochs": 2 * max(n_epochs, getattr(model, "epochs", None) or 0)}


def _idle_dimensions(model: Any, row: dict[str, Any], longer: dict[str, int]) -> Iterator[str]:
    """Yield a sentence if many latent dimensions, where the model has any, carry no information."""
    units = len(row.get("kl_per_dimension", ()))
    if units and row["active_units_by_divergence"] < (1 - _TOLERATED) * units:
        weaker: dict[str, Any] = {"kl_weight": getattr(model, "divergence_weight", 1) / 2}
        warmup = max(1, max(int(row["epoch"]), getattr(model, "epochs", None) or 0) // 2)
        if not hasattr(model, "training_plan") or warmup > model.training_plan().kl_warmup:
            weaker = {"kl_warmup": warmup} | weaker
        yield (
            f"posterior collapse: only {row['active_units_by_divergence']} of {units} latent dimensions carry "
            f"information about the documents; {_cures(model, **weaker, **longer)}"
        )


def _unused_topics(model: Any, n_unused: int, fewer: int, longer: dict[str, int]) -> str:
    """Return the sentence on topics that are no document's main topic."""
    # A prior that follows the topics' shares draws documents to the large ones; an even one spreads them.
    factor = 0.5 if getattr(model, "learn_shares", False) else 2
    weights = {name: factor * getattr(model, name) for name in _DISCREPANCY_WEIGHTS if hasattr(model, name)}
    return (
        f"{n_unused} of {model.n_topics} topics {'is' if n_unused == 1 else 'are'} no document's main topic; "
        f"{_cures(model, **weights, n_topics=fewer, **longer)}"
    )


def _duplicate_topics(model: Any, n_pairs: int, fewer: int, longer: dict[str, int]) -> str:
    """Return the sentence on pairs of topics that are alike."""
    # A model without the separation term by default is better without it.
    is_separated = getattr(type(model), "min_diversity", 0) > 0
    stricter = {"min_diversity": round((1 + model.min_diversity) / 2, 2)} if is_separated else {}
    pairs = "1 pair of topics shares" if n_pairs == 1 else f"{n_pairs} pairs of topics share"
    return f"{pairs} at least 8 of their 10 top words; {_cures(model, **stricter, n_topics=fewer, **longer)}"


def _fewer_topics(n_topics: int, n_docs: int) -> str:
    """Return a clause such as "try `n_topics=4` or more documents"."""
    fewer = max(2, n_docs // _DOCS_PER_TOPIC)
    return f"try `n_topics={fewer}` or more documents" if fewer < n_topics else "try more documents"


def _cures(model: Any, **known: Any) -> str:
    """Return a clause such as "try `a=1` or `b=2`".

    Settings that differ from the model's defaults come first, with the default as the value to try, because defaults
    are known to work.

    Args:
        model: the estimator.
        known: settings with values that help. Those that the model does not have are left out.
    """
    now = model.get_params(deep=False)
    default = {field.name: field.default for field in fields(model) if field.init}
    if now.get("kl_weight") is not None and default["kl_weight"] is None:  # the usual one depends on other settings
        default["kl_weight"] = replace(model, kl_weight=None).divergence_weight
    changed = {name: default[name] for name in _SUSPECTS if name in now and now[name] != default[name] is not None}
    if changed:
        known.pop("n_topics", None)  # the number of topics was asked for, and is probably not the cause
    if "patience" not in known and default.get("epochs") is not None and now["epochs"] < default["epochs"]:
        known["epochs"] = default["epochs"]
    others = {
        name: value for name, value in known.items() if name in now and now[name] != value and name not in changed
    }
    settings = changed | others
    if not settings:
        return "try more documents"
    *others_said, last = [f"`{name}={value!r}`" for name, value in settings.items()]
    return f"try {', '.join(others_said)} or {last}" if others_said else f"try {last}"
