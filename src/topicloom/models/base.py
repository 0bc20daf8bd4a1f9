"""TopicModel: what every model shares with its user, however it is fitted."""

from __future__ import annotations

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from pydantic import Field
from safetensors import SafetensorError
from safetensors.torch import save_file
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from .. import metrics
from ..corpus.corpus import Corpus, align, counts_of
from ..corpus.inputs import as_texts, is_matrix, refuse_vocabulary
from ..corpus.topic_measures import Source
from ..errors import InputError, SettingError, nearest
from ..files import atomic_directory, write_json, write_lines
from ..nn.network import TopicNetwork
from ..nn.sparse import SparseBatch
from ..ranking import top_words, word_scores
from ..settings import ReadableSettings, check_settings, from_text
from ..text import AnyTokenizer, Pretokenized, tokenizer_from_settings
from ..training.batches import BatchReader, choose_device, sparse_batch
from ..training.callbacks import Callback
from ..training.collapse import CollapseWatch
from ..training.loop import Monitor, evaluate, evaluated
from ..training.monitors import TopicMonitor

logger = logging.getLogger("topicloom")

FORMAT_VERSION = 1
MODEL_FILES = frozenset({"config.json", "model.safetensors", "vocabulary.txt"})
Array = npt.NDArray[Any]
Perplexity = Literal["bound", "completion"]
_COUNTS = ("word_counts_", "document_counts_")
_SEED_STRENGTH = 4.0  # nats: a seed word starts 50 times as likely in its topic as elsewhere
_READING_BATCH = 1024  # documents at a time where no gradient is kept


@dataclass(frozen=True)
class Words:
    """What a network may know of the vocabulary before it is trained."""

    log_frequency: Tensor  # (V,) logarithm of each word's share of the tokens, counts plus one
    idf: Tensor  # (V,) log((1 + documents) / (1 + documents with the word)) + 1
    names: Sequence[str]  # the V words
    mean_length: float  # tokens a document
    seeds: Tensor | None = None  # (V, K) log weights that seed words have in their topics from the start

    def __len__(self) -> int:
        return len(self.log_frequency)


@dataclass(eq=False, repr=False)
class TopicModel(ReadableSettings, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, ABC):  # type: ignore[misc]
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
    def _network(self, words: Words, generator: torch.Generator) -> TopicNetwork:
        """The untrained network, its weights drawn from `generator` (on the CPU)."""

    @abstractmethod
    def _fit(self, counts: sp.csr_array, callbacks: Sequence[Callback] = (), monitors: Sequence[Monitor] = ()) -> None:
        """Learns from (D, V) counts, fills history_ and adopts the trained network.

        Args:
            monitors: what measures the network after each epoch, for its row of history_.
        """

    @abstractmethod
    def _partial_fit(self, counts: sp.csr_array) -> None:
        """Learns a little more from (D, V) counts."""

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
    ) -> Self:
        """Learns the topics.

        Args:
            X: a Corpus, texts, token lists, or (D, V) counts, sparse or dense.
            y: not used, present for scikit-learn.
            vocabulary: the V words of the columns, when X is a matrix.
            callbacks: what watches the epochs.
            monitor: measures of the topics that become columns of history_, against the documents of X: "c_npmi",
                "c_v" and "c_uci" (of texts or token lists, whose order is known), "document_npmi", "u_mass",
                "topic_uniqueness", "inverted_rbo", "redundancy". "topic_diversity" is there in any case.
            monitor_every: rows of history_ from one measurement to the next; the last of all epochs has one as well.

        Raises:
            InputError: X or a setting cannot be used; one sentence says why.
            TrainingDivergedError: a loss was not finite; the model keeps its state of the last whole epoch.
        """
        corpus = self._begin(X, vocabulary)
        cut = isinstance(X, list | tuple) and not is_matrix(X) and isinstance(corpus.tokenizer, Pretokenized)
        source = Source.of_corpus("the training corpus", corpus, X if cut else None)
        watcher = TopicMonitor(monitor, monitor_every, self._n_rows, source, self.vocabulary_, self.word_counts_)
        self._fit(corpus.counts, callbacks, [watcher] if watcher.names else [])
        return self

    @property
    def _n_rows(self) -> int:
        """The most rows that history_ will have."""
        return int(getattr(self, "epochs", None) or 0)

    def partial_fit(self, X: Any, y: Any = None, *, vocabulary: Sequence[str] | None = None) -> Self:
        """One pass over more documents; the first call fixes the vocabulary, later calls count only its words.

        Args:
            X, y, vocabulary: as for `fit`; a matrix with another vocabulary is matched word by word.
        """
        if not hasattr(self, "components_"):
            counts = self._begin(X, vocabulary).counts
        else:
            check_settings(self)
            if self.n_topics != len(self.components_):
                raise SettingError(f"n_topics is {self.n_topics}, and learning began with {len(self.components_)}")
            if not is_matrix(X):
                refuse_vocabulary(vocabulary)
            elif vocabulary is not None:
                X = Corpus.from_counts(X, vocabulary, fractional=self.fractional_counts)
            counts = self.encode(X)
        if counts.nnz:
            self._partial_fit(counts)
        return self

    def _begin(self, X: Any, vocabulary: Sequence[str] | None) -> Corpus:
        """Checks the settings, notes what the corpus says of its words, and returns it."""
        check_settings(self)
        for learned in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, learned)  # an earlier fit's topics are not of these words
        corpus = self._corpus(X, vocabulary)
        if self.n_topics > corpus.n_words:
            raise InputError(
                f"`n_topics={self.n_topics}` is more than the {corpus.n_words} words of the vocabulary; "
                "ask for fewer topics, or keep more words (`min_df`, `max_df`)"
            )
        if corpus.is_empty.all():
            raise InputError("every document is empty: there is nothing to learn from")
        self.vocabulary_ = list(corpus.vocabulary)
        self.tokenizer_: AnyTokenizer = corpus.tokenizer
        self.word_counts_ = np.asarray(corpus.counts.sum(axis=0, dtype=np.float64)).ravel()
        self.document_counts_ = np.bincount(corpus.counts.indices, minlength=corpus.n_words)
        self.n_documents_ = int((~corpus.is_empty).sum())  # empty documents teach nothing
        self.n_features_in_ = corpus.n_words
        self.history_: list[dict[str, Any]] = []
        self.settings_ = self.get_params(deep=False)  # what is saved, whatever set_params says later
        return corpus

    def _adopt(self, network: TopicNetwork) -> None:
        """The trained network becomes what transform and topics read, where it is."""
        self.network_ = network.eval()
        with torch.inference_mode():
            self.components_: Array = network.topic_word().float().cpu().contiguous().numpy()

    def _watch(self, reader: BatchReader) -> CollapseWatch:
        return CollapseWatch.of(reader, self.word_counts_, self.n_topics)

    def _advise(self, watch: CollapseWatch) -> None:
        """Warns of what has collapsed in the trained network, which need not be that of the last epoch."""
        row = self.history_[-1] | evaluated(self.network_, self._device, watch)
        for sentence in watch.advice(self, row):
            logger.warning("%s", sentence)

    def _words(self) -> Words:
        counts = torch.from_numpy(self.word_counts_ + 1.0)
        idf = np.log((1 + self.n_documents_) / (1 + self.document_counts_)) + 1
        log_frequency = (counts / counts.sum()).log().float()
        mean_length = float(self.word_counts_.sum() / self.n_documents_)
        return Words(log_frequency, torch.from_numpy(idf).float(), self.vocabulary_, mean_length, self._seeds())

    def _seeds(self) -> Tensor | None:
        """(V, K) what seed_words adds to the logarithms of the topics, or None.

        Raises:
            SettingError: there is no such topic, or no such word.
        """
        if not self.seed_words:
            return None
        place = {word: number for number, word in enumerate(self.vocabulary_)}
        seeds = torch.zeros(len(place), self.n_topics)
        for topic, words in self.seed_words.items():
            if not 0 <= int(topic) < self.n_topics:
                raise SettingError(f"seed_words names topic {topic}; topics are numbered 0 to {self.n_topics - 1}")
            missing = [word for word in words if word not in place]
            if missing:
                raise SettingError(
                    f"seed words outside the vocabulary: {', '.join(map(repr, missing[:5]))}"
                    f"{' and more' if len(missing) > 5 else ''}; {nearest(missing[0], place)}"
                )
            seeds[[place[word] for word in words], int(topic)] = _SEED_STRENGTH
        return seeds

    def _seed(self) -> int:
        """A seed drawn from random_state; the global random state is not read."""
        if self.random_state is None:
            return int(np.random.SeedSequence().generate_state(1)[0] >> 1)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _corpus(self, X: Any, vocabulary: Sequence[str] | None) -> Corpus:
        if is_matrix(X):
            matrix = self._matrix(X, reset=True)
            words = getattr(self, "feature_names_in_", None) if vocabulary is None else vocabulary  # a frame's columns
            return Corpus.from_counts(matrix, words, fractional=self.fractional_counts)
        refuse_vocabulary(vocabulary)
        return X if isinstance(X, Corpus) else Corpus.from_texts(as_texts(X))

    def _matrix(self, X: Any, *, reset: bool) -> Any:
        # Values that are not finite are left to Corpus.from_counts, which names their row and column.
        limits = {"ensure_all_finite": False, "ensure_min_features": 2 if reset else 1}
        try:
            return validate_data(self, X, reset=reset, accept_sparse="csr", dtype="numeric", **limits)
        except ValueError as error:
            message = " ".join(str(error).split())  # scikit-learn's run over lines, and may quote a whole text
            raise InputError(message if len(message) < 300 else f"{message[:297]}...") from None

    # Reading.

    def transform(self, X: Any) -> Array:
        """The topics of documents.

        Args:
            X: as for `fit`; texts are cut as in training, and a Corpus with other words is matched word by word.

        Returns:
            (n_docs, K) float32, rows sum to 1; row i is document i. A document without a known word gets the prior's
            mean, and one warning counts such documents.
        """
        counts = self.encode(X)
        empty = np.diff(counts.indptr) == 0
        if empty.any():
            logger.warning(
                "%d of %d documents have no word that the model knows; they get the prior's mean",
                empty.sum(),
                len(empty),
            )
        return self._theta(counts)

    def topics(self, top_n: int = 10, relevance: float | None = None) -> list[list[str]]:
        """The words that speak for each topic.

        Args:
            top_n: how many words a topic.
            relevance: 1 ranks by probability, 0.6 as Sievert & Shirley (2014) recommend; None is the package's own
                rule, relevance 0.5 with the lift of rare words shrunk.

        Returns:
            K lists of words, best first.
        """
        return [[self.vocabulary_[word] for word in row] for row in self.topic_ids(top_n, relevance)]

    def topic_ids(self, top_n: int = 10, relevance: float | None = None) -> npt.NDArray[np.intp]:
        """(K, min(top_n, V)) what `topics` says, as columns of components_."""
        check_is_fitted(self, "components_")
        if relevance is not None and not 0 <= relevance <= 1:
            raise SettingError(f"relevance should be from 0 to 1; it is {relevance!r}")
        if not isinstance(top_n, Integral) or top_n < 1:
            raise SettingError(f"top_n should be a whole number from 1; it is {top_n!r}")
        return top_words(word_scores(self.components_, self.word_counts_, relevance), top_n)

    def score(self, X: Any, y: Any = None) -> float:
        """The evidence lower bound per token, in nats: higher is better. Minus the logarithm of `perplexity(X)`."""
        return -float(np.log(self.perplexity(X)))

    def perplexity(self, X: Any, method: Perplexity = "bound", average: metrics.Average = "corpus") -> float:
        """How surprised the model is by a word of X: lower is better.

        Args:
            method: as for `log_likelihood`.
            average: "corpus" gives every token the same weight, exp(-sum of bounds / sum of tokens); "document" every
                document, exp(-mean of bound / tokens), as papers on neural models do since Miao et al. 2016.

        Raises:
            InputError: no document has a word that the model knows, or the method cannot be used on X.
        """
        if average not in ("corpus", "document"):
            raise SettingError(f'average should be "corpus" or "document"; it is {average!r}')
        return metrics.perplexity(*self.log_likelihood(X, method), average)

    def log_likelihood(self, X: Any, method: Perplexity = "bound") -> tuple[Array, Array]:
        """The log likelihood of each document, and of how many tokens it is: (n_docs,) each, in nats and in tokens.

        Args:
            method: "bound" is the evidence lower bound of all tokens. "completion" infers theta from one half of each
                document's tokens and scores the other (whole counts only; the halves are drawn with a fixed seed).

        Raises:
            InputError: no document has a word that the model knows, or the method cannot be used on X.
        """
        counts = self.encode(X)
        if not counts.nnz:
            raise InputError("no document has a word that the model knows: there is nothing to score")
        if method == "completion":
            if not np.array_equal(counts.data, np.floor(counts.data)):
                raise InputError('completion divides whole counts; with weights take method="bound"')
            observed, scored = metrics.completion_split(counts)
            return self._log_likelihood(self._theta(observed), scored), scored.sum(axis=1)
        if method != "bound":
            raise SettingError(f'method should be "bound" or "completion"; it is {method!r}')
        return self._bound(counts), counts.sum(axis=1)

    def latent(self, X: Any) -> tuple[Array, Array]:
        """Each document's posterior in the latent space: its mean and its divergence from the prior, in nats.

        Returns:
            mean: (n_docs, L) of a Gaussian code; (n_docs, 0) where the code is theta itself.
            divergence: (n_docs, L); (n_docs, 0) for models that have none.
        """
        sizes = [0]

        def read(batch: SparseBatch, _: slice) -> Tensor:
            posterior = self.network_.posterior(batch)
            divergence = posterior.divergence()
            mean = getattr(posterior, "mean", divergence[:, :0])
            sizes[0] = mean.shape[1]
            return torch.cat([mean, divergence], dim=1)

        parts = list(self._read(self.encode(X), read)) or [np.empty((0, 0), np.float32)]
        both = np.concatenate(parts)
        return both[:, : sizes[0]], both[:, sizes[0] :]

    def _theta(self, counts: sp.csr_array) -> Array:
        """(D, K) shares; a document without a word gets the prior's mean."""
        posteriors = self._read(counts, lambda batch, _: self.network_.posterior(batch).point())
        theta = np.concatenate([np.empty((0, len(self.components_)), np.float32), *posteriors])
        theta[np.diff(counts.indptr) == 0] = self.network_.prior_theta().detach().cpu().numpy()
        return theta

    def _log_likelihood(self, theta: Array, counts: sp.csr_array) -> Array:
        """(D,) sum_v x_dv log p(v | theta_d)"""

        def read(batch: SparseBatch, rows: slice) -> Tensor:
            return self.network_.log_likelihood(torch.from_numpy(theta[rows]).to(batch.device), batch)

        return np.concatenate([np.empty(0), *self._read(counts, read)])

    def _bound(self, counts: sp.csr_array) -> Array:
        """(D,) evidence lower bound of each document"""
        reader = BatchReader(counts, _READING_BATCH, self._device)
        bounds = evaluate(self.network_, reader, self.network_.bound)
        return np.concatenate([np.empty(0), *(bound.cpu().numpy() for bound in bounds)])

    def _read(self, counts: sp.csr_array, function: Callable[[SparseBatch, slice], Tensor]) -> Iterator[Array]:
        """What `function` says of each batch of documents, in order and without gradients."""
        for start in range(0, counts.shape[0], _READING_BATCH):
            rows = np.arange(start, min(start + _READING_BATCH, counts.shape[0]))
            with torch.inference_mode():
                batch = sparse_batch(counts, rows, self._device)
                result = function(batch, slice(start, start + len(rows))).cpu().numpy()
            yield result

    @property
    def _device(self) -> torch.device:
        some: Tensor = next(iter(self.network_.state_dict().values()))
        return some.device

    def encode(self, X: Any) -> sp.csr_array:
        """(n_docs, V) counts of X over the model's words; X as for `transform`."""
        check_is_fitted(self, "components_")
        if isinstance(X, Corpus):
            return align(X, self.vocabulary_)
        if is_matrix(X):
            matrix = self._matrix(X, reset=False)
            return Corpus.from_counts(matrix, self.vocabulary_, fractional=self.fractional_counts).counts
        return counts_of(as_texts(X), self.vocabulary_, self.tokenizer_)

    # Files.

    def save(self, directory: str | Path, overwrite: bool = False) -> None:
        """Writes model.safetensors, config.json and vocabulary.txt to a directory, all of them or none.

        Raises:
            InputError: the directory holds something and `overwrite` is off.
        """
        check_is_fitted(self, "components_")
        try:
            with atomic_directory(Path(directory), "config.json", overwrite=overwrite, known=MODEL_FILES) as folder:
                self._save_into(folder)
        except SafetensorError as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"{directory} cannot be written: {reason}; is the disk full?") from None

    def _save_into(self, folder: Path) -> None:
        weights = {name: tensor.cpu().contiguous() for name, tensor in self.network_.state_dict().items()}
        counts = {name: torch.from_numpy(getattr(self, name)) for name in _COUNTS}
        save_file(weights | counts, folder / "model.safetensors")
        write_lines(folder / "vocabulary.txt", self.vocabulary_)
        config = {
            "format_version": FORMAT_VERSION,
            "model": type(self).__name__,
            "settings": {name: _plain(value) for name, value in self.settings_.items()},
            "n_documents": self.n_documents_,
            "tokenizer": self.tokenizer_.model_dump(mode="json"),
            "history": self.history_,
            "named_columns": hasattr(self, "feature_names_in_"),
        }
        write_json(folder / "config.json", config)

    @classmethod
    def _from_saved(cls, config: dict[str, Any], vocabulary: list[str], tensors: dict[str, Tensor]) -> Self:
        model = cls(**from_text(cls, config["settings"]))
        model.settings_ = model.get_params(deep=False)
        model.vocabulary_ = vocabulary
        model.tokenizer_ = tokenizer_from_settings(config["tokenizer"])
        model.n_features_in_ = len(vocabulary)
        model.n_documents_ = config["n_documents"]
        model.history_ = config["history"]
        if config["named_columns"]:
            model.feature_names_in_ = np.array(vocabulary, dtype=object)  # a data frame's columns are checked again
        for name in _COUNTS:
            setattr(model, name, tensors.pop(name).numpy())
        if len(vocabulary) != len(model.word_counts_):
            raise RuntimeError(f"{len(vocabulary)} words in the vocabulary, {len(model.word_counts_)} in the counts")
        network = model._network(model._words(), torch.Generator().manual_seed(0))
        network.load_state_dict(tensors)
        model._adopt(network.on(choose_device(model.device), seed=0))
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)  # for get_feature_names_out


def _plain(value: Any) -> Any:
    """A setting as JSON can hold it."""
    if isinstance(value, np.generic):
        return value.item()
    try:
        json.dumps(value)
    except TypeError:
        return None  # a RandomState or the like, which says nothing to a model that is already fitted
    return value
