"""TopicModel: the base of all models, whatever method trains them."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import Field
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from torch import Tensor

from ..corpus import Corpus
from ..corpus.inputs import corpus_of, refuse_vocabulary_as_y
from ..corpus.parts import own_part, sum_of_ranks, totals
from ..corpus.reference import CorpusReference
from ..distributed.ranks import current
from ..errors import InputError, SettingError
from ..metrics.vocabularies import Vocabulary
from ..nn.network import TopicNetwork
from ..settings import ReadableSettings, settle_settings
from ..training.batches import BatchReader
from ..training.callbacks import Callback, check_callbacks
from ..training.checkpoints import Checkpoints, check_start
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
class TopicModel(FittedTopics, ReadableSettings, BaseEstimator, ABC):  # type: ignore[misc]
    """The base of all topic models.

    A model is a scikit-learn estimator: the constructor stores its settings, `fit` checks them, and names of learned
    attributes end in an underscore. After `fit`, use `topics`, `transform`, `infer`, `perplexity` and `save`.

    To write a model of your own that is not trained by gradient descent, define `build_network`, `fit_corpus` and
    `partial_fit_corpus`; for any other, see `NeuralTopicModel`. These methods are for your class to call:
    `word_statistics()` returns the vocabulary for the network, `draw_seed()` a seed, and `adopt_network(network)` makes
    a trained network the one that `transform` and `topics` use. `from_saved` reads a saved model; you may override it.

    Args:
        n_topics: the number of topics K, from 2 to the size of the vocabulary.
        seed_words: words that a topic should be about, by the number of the topic, such as {0: ["market", "bank"]}.
            Related words join them during training. The topic keeps its number.
        random_state: the seed. The same one gives the same model on the same machine, None another model each time.
        fractional_counts: whether matrices may contain fractions, such as weights. Not all models can use them.
        device: "cpu", "cuda", "cuda:1" or "mps"; "auto" is CUDA if it is available, and the CPU otherwise.
        verbose: 1 shows a progress bar on standard error, 0 shows nothing.

    Attributes:
        components_: the topics, (K, V) float32; each row is a distribution over the words.
        vocabulary_: the V words.
        word_counts_: (V,) the number of tokens of each word in the training documents.
        document_counts_: (V,) the number of training documents with each word.
        n_documents_: the number of training documents that are not empty.
        history_: a list with a dictionary for each epoch: the terms of the loss, and the measures of collapse.
        tokenizer_: the tokenizer of the training documents, which splits raw text in `transform`.
        n_features_in_: the size of the vocabulary V.
        fields_: what is known of each training document besides its words, as `topicloom.models.words.Words` has it.
    """

    uses_validation: ClassVar[bool] = False  # whether `fit` can measure a loss on held-out documents
    uses_ranks: ClassVar[bool] = False  # whether several processes can train it together (`topicloom.distributed`)

    n_topics: Annotated[int, Field(ge=2)] = 20
    _: KW_ONLY
    seed_words: dict[int, list[str]] | None = None
    random_state: Annotated[int, Field(ge=0, lt=2**32)] | np.random.RandomState | None = None
    fractional_counts: bool = False
    device: str = "auto"
    verbose: Literal[0, 1] | bool = 0

    # What a model defines.

    @abstractmethod
    def build_network(self, words: Words, generator: torch.Generator) -> TopicNetwork:
        """Return the network before training. A loaded model builds it too, and then reads its weights.

        Args:
            words: what is known about the vocabulary.
            generator: draws the initial weights, on the CPU.
        """

    @abstractmethod
    def fit_corpus(
        self,
        corpus: Corpus,
        callbacks: Sequence[Callback] = (),
        monitors: Sequence[Monitor] = (),
        snapshot: Snapshot | None = None,
        validation: Corpus | None = None,
    ) -> None:
        """Learn from a corpus: fill `history_` and adopt the trained network.

        Args:
            corpus: the documents.
            callbacks: objects that watch the training.
            monitors: functions that measure the network after each epoch, for the epoch's row of `history_`.
            snapshot: the state of an earlier fit with the same documents and settings, from which to continue.
            validation: held-out documents over the same words; None for models with `uses_validation` off.
        """

    @abstractmethod
    def partial_fit_corpus(self, corpus: Corpus) -> None:
        """Learn from more documents in one pass, as `fit_corpus` does from all of them."""

    def check_combinations(self) -> None:
        """Raise SettingError if settings cannot be combined, each of which is allowed. By default, do nothing."""

    @property
    def n_history_rows(self) -> int:
        """The greatest number of rows that `history_` can have after `fit`."""
        return self.rows_of(int(getattr(self, "epochs", None) or 0))

    def rows_of(self, epochs: int) -> int:
        """Return how many rows so many epochs have in `history_`."""
        return epochs

    # Learning.

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        vocabulary: Vocabulary | None = None,
        callbacks: Sequence[Callback] = (),
        monitor: Iterable[str] = (),
        monitor_every: int = 5,
        validation: Any = None,
        resume_from: Snapshot | None = None,
        checkpoint: str | Path | Checkpoints | None = None,
    ) -> Self:
        """Learn the topics of documents.

        Args:
            X: a Corpus, texts, lists of tokens, a data frame with a column "text", or counts (D, V), sparse or dense.
            y: not used; it is there for scikit-learn.
            vocabulary: the V words of the columns, if X is a matrix; a list, or a mapping from words to columns.
            callbacks: objects that watch the training; see `topicloom.Callback`.
            monitor: measures of the topics that become columns of `history_`, taken on the documents of X. Any of
                "document_npmi", "u_mass", "topic_uniqueness", "inverted_rbo" and "redundancy"; with texts or lists of
                tokens, whose order is known, also "c_npmi", "c_v" and "c_uci". "topic_diversity" is there anyway,
                but not after every epoch of a model that changes slowly, unless it is asked for.
            monitor_every: the number of epochs from one measurement to the next. The last epoch is always measured.
            validation: held-out documents, in any form that X can have. Their mean loss becomes the column
                `validation_loss` of `history_`, and `patience` stops training by it. Without them, `patience` holds
                out `validation_fraction` of X. Models without a loss by epoch do not take them.
            resume_from: the state of an earlier fit with the same documents, settings and seed, which a callback took
                in `Callback.on_state`. Training continues from it and gives the result of a fit that never stopped.
            checkpoint: a directory for the state of the fit, which is written every minute and at the end; or
                `topicloom.Checkpoints`, which has settings. If the directory has a checkpoint of the same fit, training
                goes on from it.

        Returns:
            the model itself.

        Raises:
            InputError: X or a setting cannot be used, or the checkpoints are of another fit. An earlier fit is kept.
            TrainingDivergedError: a loss is not finite. The model has the state of the last complete epoch.
            OutOfMemoryError: the device has too little memory for a batch. The model has that state, too.
            TrainingInterrupted: a signal stopped the training, and there is a checkpoint.
        """
        refuse_vocabulary_as_y(X, y)
        check_callbacks(callbacks)
        check_start(checkpoint, resume_from)
        names = check_monitors(monitor, monitor_every)
        with ExitStack() as stack:
            with self._kept_on_mistakes():
                corpus = self._begin(X, vocabulary)
                held_out = None if validation is None else own_part(self._held_out(validation, vocabulary))
                snapshot = resume_from
                if checkpoint is not None:
                    checkpoints = Checkpoints.of(checkpoint)
                    snapshot = stack.enter_context(checkpoints.watching(self, corpus, held_out))
                    callbacks = [*callbacks, checkpoints]
                done = 0 if snapshot is None else len(snapshot.values["history"])
                n_rows = self.n_history_rows
                if snapshot is not None and snapshot.continued is not None:
                    n_rows = done + self.rows_of(snapshot.continued.epochs)
                reference = CorpusReference(corpus, "the training corpus", total=sum_of_ranks())
                words = self.vocabulary_, self.word_counts_
                topic_monitor = TopicMonitor(names, monitor_every, n_rows, reference, *words, seen=done)
            self.fit_corpus(corpus, callbacks, [topic_monitor] if names else [], snapshot, held_out)
        return self

    def partial_fit(self, X: Any, y: Any = None, *, vocabulary: Vocabulary | None = None) -> Self:
        """Learn from more documents in one pass.

        The first call determines the vocabulary. Later calls use only the words in it. `history_` gets a row for each
        call; models that are trained by gradient descent keep the last 1,000.

        Args:
            X, y, vocabulary: as for `fit`. A matrix with another vocabulary is matched word by word.

        Returns:
            the model itself.

        Raises:
            InputError, TrainingDivergedError: as for `fit`.
        """
        refuse_vocabulary_as_y(X, y)
        if current().size > 1:
            raise SettingError("`partial_fit` learns in one process; use `fit`, or start it without others")
        if not hasattr(self, "components_"):
            with self._kept_on_mistakes():
                corpus = self._begin(X, vocabulary)
            self.partial_fit_corpus(corpus)
            return self
        settle_settings(self)
        self.check_combinations()
        if self.n_topics != len(self.components_):
            raise SettingError(
                f"n_topics is {self.n_topics}, but the model has {len(self.components_)} topics; set it back, or call "
                "fit to start again"
            )
        corpus = self.documents(X, vocabulary)
        if corpus.counts.nnz:
            self.partial_fit_corpus(corpus)
            self._count_words(corpus)
        elif corpus.n_docs:
            logger.warning("no document has a word of the first call of `partial_fit`, so nothing was learned")
        return self

    @contextmanager
    def _kept_on_mistakes(self) -> Iterator[None]:
        """Restore an earlier fit if an error is raised inside this context."""
        before = dict(vars(self))
        try:
            yield
        except Exception:
            self.__dict__ = before
            raise

    def _begin(self, X: Any, vocabulary: Vocabulary | None) -> Corpus:
        """Check the settings, discard an earlier fit, and return X as a corpus whose words are noted."""
        settle_settings(self)
        self.check_combinations()
        if current().size > 1 and not self.uses_ranks:
            raise SettingError(f"{type(self).__name__} is trained by one process; start it without others")
        for learned in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, learned)  # an earlier fit has topics over other words
        corpus = corpus_of(X, vocabulary, fractional=self.fractional_counts, matrix=self._matrix)
        if self.n_topics > corpus.n_words:
            raise InputError(
                f"`n_topics={self.n_topics}` is more than the {corpus.n_words} words of the vocabulary; "
                "ask for fewer topics, or keep more words (`min_df`, `max_df`)"
            )
        if corpus.is_empty.all():
            raise InputError("every document is empty, so there are no words to learn from")
        self.vocabulary_, self.tokenizer_ = list(corpus.vocabulary), corpus.tokenizer
        corpus = own_part(corpus)
        self.word_counts_, self.document_counts_, self.n_documents_ = totals(corpus)
        self.n_features_in_, self.fields_ = corpus.n_words, corpus.fields.kinds()
        self.history_: list[dict[str, Any]] = []
        self.settings_ = self.get_params(deep=False)  # the settings to save, which set_params does not change
        return corpus

    def _held_out(self, X: Any, vocabulary: Vocabulary | None) -> Corpus:
        """Return documents for validation as a corpus over the words of training."""
        if not self.uses_validation:
            raise SettingError(f"{type(self).__name__} has no loss by epoch, so `validation` should be None")
        corpus = self._over_words(X, vocabulary)
        if corpus.is_empty.all():
            raise InputError("no document of `validation` has a word of the training documents")
        return corpus

    def _count_words(self, corpus: Corpus) -> None:
        """Add the words of documents to the counts, which the ranking of words and the network read."""
        tokens, documents, n_documents = totals(corpus)
        self.word_counts_ = self.word_counts_ + tokens
        self.document_counts_ = self.document_counts_ + documents
        self.n_documents_ += n_documents  # empty documents add nothing

    # What the methods of a model use.

    def adopt_network(self, network: TopicNetwork) -> None:
        """Make a trained network the one that `transform` and `topics` use."""
        self.network_ = network.eval()
        with torch.inference_mode():
            self.components_: Array = network.topic_word().float().cpu().contiguous().numpy()

    def word_statistics(self) -> Words:
        """Return what is known about the vocabulary, for `build_network`."""
        counts = torch.from_numpy(self.word_counts_ + 1.0)
        idf = np.log((1 + self.n_documents_) / (1 + self.document_counts_)) + 1
        log_frequency = (counts / counts.sum()).log().float()
        sizes = self.n_documents_, float(self.word_counts_.sum())
        seeds = seed_weights(self.seed_words, self.vocabulary_, self.n_topics)
        return Words(log_frequency, torch.from_numpy(idf).float(), self.vocabulary_, *sizes, seeds, self.fields_)

    def draw_seed(self) -> int:
        """Return a seed that `random_state` determines. The global random state is not read."""
        if self.random_state is None:
            return int(np.random.SeedSequence().generate_state(1)[0] >> 1)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def collapse_watch(self, reader: BatchReader) -> CollapseWatch:
        """Return an object that measures a network for collapse on a sample of the documents."""
        return CollapseWatch.of(reader, self.word_counts_, self.n_topics)

    def warn_of_collapse(self, watch: CollapseWatch) -> None:
        """Warn if the trained network has collapsed; it need not be the network of the last epoch."""
        if not current().is_first:
            return
        row = self.history_[-1] | evaluated(self.network_, device_of(self.network_), watch)
        for sentence in watch.advice(self, row):
            logger.warning("%s", sentence)

    @property
    def origin(self) -> TopicModel:
        """The trained model: this one, unless it is an edited model."""
        return self

    def further_config(self) -> dict[str, Any]:
        """Return further entries of a saved model's config.json."""
        return {}

    @classmethod
    def from_saved(cls, config: dict[str, Any], vocabulary: list[str], tensors: dict[str, Tensor]) -> Self:
        """Return a saved model, given the contents of its files; `topicloom.load` calls this.

        Args:
            config: the content of config.json.
            vocabulary: the V words.
            tensors: the content of model.safetensors.
        """
        return restore(cls, config, vocabulary, tensors)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags
