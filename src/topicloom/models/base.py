"""TopicModel: what every model shares with its user, however it is fitted."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Literal, Self

import numpy as np
import torch
from pydantic import Field
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from torch import Tensor

from ..corpus import Corpus
from ..corpus.inputs import corpus_of
from ..corpus.reference import CorpusReference
from ..errors import InputError, SettingError
from ..nn.network import TopicNetwork
from ..settings import ReadableSettings, check_settings
from ..text import AnyTokenizer
from ..training.batches import BatchReader
from ..training.callbacks import Callback
from ..training.collapse import CollapseWatch
from ..training.loop import Monitor, evaluated
from ..training.monitors import TopicMonitor, check_monitors
from ..training.state import Snapshot
from .fitted import FittedTopics
from .inference import Array, device_of
from .saving import restore
from .words import Words, seed_weights

logger = logging.getLogger("topicloom")


@dataclass(eq=False, repr=False)
class TopicModel(FittedTopics, ReadableSettings, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """The base of all models: data in, topics and document-topic shares out, files.

    A model is a scikit-learn estimator. The constructor stores its settings, `fit` checks them, and what is learned
    ends in an underscore.

    Args:
        n_topics: the number of topics K, from 2 to the size of the vocabulary.
        seed_words: words that a topic is to be about, by the topic's index, such as {0: ["market", "bank"]}; the topic
            keeps its index. Words that have to do with them follow by themselves.
        random_state: a seed; the same seed gives the same model on the same machine. None: another one each time.
        fractional_counts: accepts matrices with counts that are not whole (weights), where the model can use them.
        device: "auto" is CUDA where there is one and else the CPU; or "cpu", "cuda", "cuda:1", "mps".
        verbose: 0 is silent, 1 shows a progress bar on standard error.

    Attributes:
        components_: (K, V) float32, the words of each topic, rows sum to 1.
        vocabulary_: the V words.
        word_counts_: (V,) tokens of each word in the training corpus.
        history_: one row per epoch, a dict of every loss term.
        tokenizer_: what cuts a raw text as the training corpus was cut.
        n_features_in_: V.
    """

    n_topics: Annotated[int, Field(ge=2)] = 20
    _: KW_ONLY
    seed_words: dict[int, list[str]] | None = None
    random_state: Annotated[int, Field(ge=0, lt=2**32)] | np.random.RandomState | None = None
    fractional_counts: bool = False
    device: str = "auto"
    verbose: Literal[0, 1] | bool = 0

    # What a model provides.

    @abstractmethod
    def build_network(self, words: Words, generator: torch.Generator) -> TopicNetwork:
        """Return the untrained network, its weights drawn from `generator` (on the CPU)."""

    @abstractmethod
    def fit_corpus(
        self,
        corpus: Corpus,
        callbacks: Sequence[Callback] = (),
        monitors: Sequence[Monitor] = (),
        snapshot: Snapshot | None = None,
    ) -> None:
        """Learn from a corpus, fill history_ and adopt the trained network.

        Args:
            monitors: each measures the network after each epoch, for its row of history_.
            snapshot: the state of an earlier fit of the same corpus and settings, to go on from.
        """

    @abstractmethod
    def partial_fit_corpus(self, corpus: Corpus) -> None:
        """Learn a little more from a corpus."""

    # Learning.

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        vocabulary: Sequence[str] | None = None,
        callbacks: Sequence[Callback] = (),
        monitor: Iterable[str] = (),
        monitor_every: int = 5,
        resume_from: Snapshot | None = None,
    ) -> Self:
        """Learn the topics.

        Args:
            X: a Corpus, texts, token lists, a data frame with a column "text", or (D, V) counts, sparse or dense.
            y: not used, present for scikit-learn.
            vocabulary: the V words of the columns, when X is a matrix.
            callbacks: objects that are called while the model trains; see `topicloom.Callback`.
            monitor: measures of the topics that become columns of history_, against the documents of X: "c_npmi",
                "c_v" and "c_uci" (of texts or token lists, whose order is known), "document_npmi", "u_mass",
                "topic_uniqueness", "inverted_rbo", "redundancy". "topic_diversity" is always there.
            monitor_every: the number of epochs between two measurements; the last epoch is always measured.
            resume_from: goes on from this state of an earlier fit with the same documents, settings and seed, which a
                callback took (`Callback.on_state`). The result is that of a fit that was never stopped.

        Raises:
            InputError: X or a setting cannot be used; one sentence says why.
            TrainingDivergedError: a loss was not finite; the model keeps its state of the last whole epoch.
        """
        _check_callbacks(callbacks)
        names = check_monitors(monitor, monitor_every)
        with self._kept_on_mistakes():
            corpus = self._begin(X, vocabulary)
            reference = CorpusReference(corpus, "the training corpus")
            watcher = TopicMonitor(
                names, monitor_every, self.n_history_rows, reference, self.vocabulary_, self.word_counts_
            )
        self.fit_corpus(corpus, callbacks, [watcher] if watcher.names else [], resume_from)
        return self

    @property
    def n_history_rows(self) -> int:
        """The most rows that history_ will have."""
        return int(getattr(self, "epochs", None) or 0)

    def partial_fit(self, X: Any, y: Any = None, *, vocabulary: Sequence[str] | None = None) -> Self:
        """Learn from more documents in one pass; the first call fixes the vocabulary, later calls count only its words.

        Args:
            X, y, vocabulary: as for `fit`; a matrix with another vocabulary is matched word by word.
        """
        if not hasattr(self, "components_"):
            with self._kept_on_mistakes():
                corpus = self._begin(X, vocabulary)
            self.partial_fit_corpus(corpus)
            return self
        check_settings(self)
        if self.n_topics != len(self.components_):
            raise SettingError(f"n_topics is {self.n_topics}, and learning began with {len(self.components_)}")
        corpus = self.documents(X, vocabulary)
        if corpus.counts.nnz:
            self.partial_fit_corpus(corpus)
            self._count_words(corpus)
        return self

    @contextmanager
    def _kept_on_mistakes(self) -> Iterator[None]:
        """Take an earlier fit back when what is in this context fails: a mistake costs no fitted model."""
        before = dict(vars(self))
        try:
            yield
        except Exception:
            self.__dict__ = before
            raise

    def _begin(self, X: Any, vocabulary: Sequence[str] | None) -> Corpus:
        """Check the settings, note what the corpus says of its words, and return it."""
        check_settings(self)
        for learned in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, learned)  # the topics of an earlier fit are not of these words
        corpus = corpus_of(X, vocabulary, fractional=self.fractional_counts, matrix=self._matrix)
        if self.n_topics > corpus.n_words:
            raise InputError(
                f"`n_topics={self.n_topics}` is more than the {corpus.n_words} words of the vocabulary; "
                "ask for fewer topics, or keep more words (`min_df`, `max_df`)"
            )
        if corpus.is_empty.all():
            raise InputError("every document is empty, so there are no words to learn from")
        self.vocabulary_ = list(corpus.vocabulary)
        self.tokenizer_: AnyTokenizer = corpus.tokenizer
        self.word_counts_ = np.zeros(corpus.n_words)
        self.document_counts_ = np.zeros(corpus.n_words, np.int64)
        self.n_documents_ = 0
        self._count_words(corpus)
        self.n_features_in_ = corpus.n_words
        self.history_: list[dict[str, Any]] = []
        self.settings_ = self.get_params(deep=False)  # what is saved, whatever set_params says later
        return corpus

    def _count_words(self, corpus: Corpus) -> None:
        """Add the words of documents to the counts that ranking and priors read."""
        self.word_counts_ = self.word_counts_ + np.asarray(corpus.counts.sum(axis=0, dtype=np.float64)).ravel()
        self.document_counts_ = self.document_counts_ + np.bincount(corpus.counts.indices, minlength=corpus.n_words)
        self.n_documents_ += int((~corpus.is_empty).sum())  # empty documents teach nothing

    def adopt_network(self, network: TopicNetwork) -> None:
        """Take over the trained network: it is what transform and topics read."""
        self.network_ = network.eval()
        with torch.inference_mode():
            self.components_: Array = network.topic_word().float().cpu().contiguous().numpy()

    def collapse_watch(self, reader: BatchReader) -> CollapseWatch:
        return CollapseWatch.of(reader, self.word_counts_, self.n_topics)

    def warn_of_collapse(self, watch: CollapseWatch) -> None:
        """Warn of what has collapsed in the trained network, which need not be that of the last epoch."""
        row = self.history_[-1] | evaluated(self.network_, device_of(self.network_), watch)
        for sentence in watch.advice(self, row):
            logger.warning("%s", sentence)

    def word_statistics(self) -> Words:
        counts = torch.from_numpy(self.word_counts_ + 1.0)
        idf = np.log((1 + self.n_documents_) / (1 + self.document_counts_)) + 1
        log_frequency = (counts / counts.sum()).log().float()
        mean_length = float(self.word_counts_.sum() / self.n_documents_)
        seeds = seed_weights(self.seed_words, self.vocabulary_, self.n_topics)
        return Words(log_frequency, torch.from_numpy(idf).float(), self.vocabulary_, mean_length, seeds)

    def draw_seed(self) -> int:
        """Return a seed drawn from random_state; the global random state is not read."""
        if self.random_state is None:
            return int(np.random.SeedSequence().generate_state(1)[0] >> 1)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    @classmethod
    def from_saved(cls, config: dict[str, Any], vocabulary: list[str], tensors: dict[str, Tensor]) -> Self:
        """Return the model that was saved as these parts; see `saving.restore`."""
        return restore(cls, config, vocabulary, tensors)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)  # for get_feature_names_out


def _check_callbacks(callbacks: Any) -> None:
    if isinstance(callbacks, Callback):
        raise SettingError("callbacks should be a list; give [callback]")
    for callback in callbacks:
        if not isinstance(callback, Callback):
            raise SettingError(
                f"callbacks holds {callback!r:.60}, which is no topicloom.Callback; make a subclass of it"
            )
