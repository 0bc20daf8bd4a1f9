"""FittedTopics: the methods of a fitted model. None of them changes the model, so threads can share one."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Sequence
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from safetensors import SafetensorError
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import metrics
from ..corpus import Corpus
from ..corpus.counts import no_matrix
from ..corpus.frames import is_frame, named_columns
from ..corpus.inputs import corpus_over
from ..errors import InputError, SettingError
from ..files import as_path, atomic_directory
from ..metrics.vocabularies import Vocabulary
from ..nn.network import TopicNetwork
from ..text import AnyTokenizer
from ..topics.document_topics import DocumentTopics, empty_warning
from ..topics.saved import MODEL_FILES
from ..topics.words import topic_word_ids
from .editable import Editable
from .inference import Array, Inference, document_topics, evidence_bound, latent_codes, log_likelihood
from .interpolation import Interpolation, interpolate
from .notebook import InNotebook
from .saving import save_into
from .transformer import Transformer

if TYPE_CHECKING:
    from .base import TopicModel

logger = logging.getLogger("topicloom")

Perplexity = Literal["bound", "completion"]

# The words and their columns, by network. They are not in the model, which inference does not change.
_columns_of: WeakKeyDictionary[TopicNetwork, tuple[list[str], dict[str, int]]] = WeakKeyDictionary()


class FittedTopics(InNotebook, Editable, Transformer):
    """The methods of a model that use its network and vocabulary after `fit`."""

    network_: TopicNetwork
    components_: Array
    vocabulary_: list[str]
    word_counts_: Array
    tokenizer_: AnyTokenizer
    fractional_counts: bool

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        ForkingPickler.register(cls, _by_value)

    def _matrix(self, X: Any, *, reset: bool = True) -> tuple[Any, Sequence[str] | None]:
        """Check a matrix as scikit-learn does, and return it with the words of its columns if it is a data frame."""
        if not reset:
            self._check_columns(X)
        # Corpus.from_counts checks for values that are not finite, and names their row and column.
        limits = {"ensure_all_finite": False, "ensure_min_features": 2 if reset else 1}
        try:
            matrix = validate_data(self, X, reset=reset, accept_sparse="csr", dtype="numeric", **limits)
        except ValueError as error:
            message = " ".join(str(error).split())  # messages of scikit-learn have several lines and may quote texts
            raise InputError(message if len(message) < 300 else f"{message[:297]}...") from None
        except (TypeError, RuntimeError):
            if isinstance(X, np.ndarray | list | tuple):
                raise  # the checks of scikit-learn want its own error
            raise no_matrix(X) from None  # a sparse tensor, or one that has a gradient
        return matrix, getattr(self, "feature_names_in_", None)

    def _check_columns(self, X: Any) -> None:
        """Raise InputError if X is a data frame whose columns are words of the model in another order.

        scikit-learn compares the columns only if the model was fitted with a data frame.
        """
        if hasattr(self, "feature_names_in_") or not is_frame(X):
            return
        names = named_columns(X)
        if names != self.vocabulary_ and not set(names).isdisjoint(self.vocabulary_):
            raise InputError(
                "the columns of the data frame are not the words of `vocabulary_` in their order; give "
                "Corpus.from_counts(frame), whose words are found by their names"
            )

    def documents(self, X: Any, vocabulary: Vocabulary | None = None) -> Corpus:
        """Return X as a corpus over the model's words.

        Args:
            X: as for `infer`.
            vocabulary: the words of the columns, if X is a matrix with another vocabulary.
        """
        check_is_fitted(self, "components_")
        return self._over_words(X, vocabulary)

    def _over_words(self, X: Any, vocabulary: Vocabulary | None = None) -> Corpus:
        return corpus_over(
            X,
            self.vocabulary_,
            self.tokenizer_,
            vocabulary,
            fractional=self.fractional_counts,
            matrix=lambda counts: self._matrix(counts, reset=False),
            columns_of=self._columns,
        )

    def _columns(self) -> dict[str, int]:
        """Return the column of each word, which is computed once for a network."""
        network = getattr(self, "network_", None)
        words, columns = _columns_of.get(network, (None, {})) if network is not None else (None, {})
        if words is not self.vocabulary_:
            columns = {word: column for column, word in enumerate(self.vocabulary_)}
            if network is not None:
                _columns_of[network] = self.vocabulary_, columns
        return columns

    def infer(self, X: Any) -> DocumentTopics:
        """Infer the topics of documents, and return them together with the ids, labels, times and texts that X has.

        Args:
            X: as for `fit`. Texts are split as in training, and a Corpus with other words is matched word by word.

        Returns:
            an object with theta (n_docs, K), the documents that have no known word, and the fields of the documents.

        Raises:
            InputError: X cannot be used.
        """
        return self.infer_with(X)

    def infer_with(self, X: Any, posterior: Inference | None = None) -> DocumentTopics:
        """Infer the topics of documents with another posterior than that of the network.

        Args:
            X: as for `infer`.
            posterior: a function from a batch to a posterior; None is `network_.posterior`.
        """
        corpus = self.documents(X)
        return document_topics(self.network_, corpus, posterior)

    def transform(self, X: Any) -> Array:
        """Infer the topic shares of documents.

        Args:
            X: as for `infer`.

        Returns:
            (n_docs, K) float32; rows sum to 1, and row i is always document i. A document without a known word gets
            the model's average shares, and one warning says how many there are.

        Raises:
            InputError: X cannot be used.
        """
        return theta_of(self.infer_with(X))

    def topics(self, top_n: int = 10, relevance: float | None = None) -> list[list[str]]:
        """Return the words that stand for each topic.

        Args:
            top_n: the number of words for each topic.
            relevance: 1 ranks words by probability; a lower value prefers words that are rarer elsewhere. Sievert &
                Shirley (2014) recommend 0.6. None is the package's own rule: 0.5, with less weight on rare words.

        Returns:
            K lists of words, best first.

        Raises:
            SettingError: `top_n` is not a whole number from 1, or `relevance` is not from 0 to 1.
        """
        return [[self.vocabulary_[word] for word in row] for row in self.topic_ids(top_n, relevance)]

    def topic_ids(self, top_n: int = 10, relevance: float | None = None) -> npt.NDArray[np.intp]:
        """Return the words that `topics` returns as columns of components_: (K, min(top_n, V))."""
        check_is_fitted(self, "components_")
        return topic_word_ids(self.components_, self.word_counts_, top_n, relevance)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log likelihood per token in nats by document completion, -log(`perplexity(X)`).

        Higher is better. The tokens are those of the halves that `perplexity(X)` scores, so settings that
        `GridSearchCV` chooses by this score have the lowest perplexity.
        """
        return -float(np.log(self.perplexity(X)))

    def perplexity(self, X: Any, method: Perplexity = "completion", average: metrics.Average = "corpus") -> float:
        """Return the perplexity of documents, the exponential of the negative log likelihood per token.

        Lower is better.

        Args:
            X: as for `infer`.
            method: as for `log_likelihood`. The bound can be so loose that its perplexity says little: on short titles
                it was 2.4e12 where completion gave 336.
            average: "corpus" gives every token the same weight: exp(-sum of log likelihoods / sum of tokens).
                "document" gives every document the same weight: exp(-mean of log likelihood / tokens), as papers on
                neural models do since Miao et al. 2016.

        Raises:
            InputError: no document has a word that the model knows, or there is no token to score.
            SettingError: the method cannot be used with this model.
        """
        if average not in ("corpus", "document"):
            raise SettingError(f'average should be "corpus" or "document"; it is {average!r}')
        log_likelihoods, n_tokens = self.log_likelihood(X, method)
        if not n_tokens.any():
            raise InputError("the documents are so short that no token is left to score; give more documents")
        return metrics.perplexity(log_likelihoods, n_tokens, average)

    def log_likelihood(self, X: Any, method: Perplexity = "completion") -> tuple[Array, Array]:
        """Return the log likelihood of each document in nats, (n_docs,), and the number of its tokens, (n_docs,).

        Args:
            X: as for `infer`.
            method: "completion" infers theta from one half of each document's tokens and scores the other half, with
                the model's own p(w | theta). A fixed seed draws the halves. "bound" is the evidence lower bound of all
                tokens, and not available for a model that was trained with `criterion="bernoulli"`.

        Raises:
            InputError: no document has a word that the model knows.
            SettingError: the method is unknown, or cannot be used with this model.
        """
        corpus = self.documents(X)
        if not corpus.counts.nnz:
            raise InputError("no document has a word that the model knows, so there is nothing to score")
        if method == "completion":
            observed, scored = (_with_counts(corpus, half) for half in metrics.completion_split(corpus.counts))
            theta = document_topics(self.network_, observed).theta
            return log_likelihood(self.network_, theta, scored), scored.counts.sum(axis=1)
        if method != "bound":
            raise SettingError(f'method should be "completion" or "bound"; it is {method!r}')
        if not self.network_.bounds_tokens:
            raise SettingError(
                'edited models have no bound, and those with `criterion="bernoulli"` have only one of the presence of '
                'words; use `method="completion"`'
            )
        return evidence_bound(self.network_, corpus), corpus.counts.sum(axis=1)

    def latent(self, X: Any) -> tuple[Array, Array]:
        """Return the position of each document in the latent space, and its divergence from the prior in nats.

        Args:
            X: as for `infer`.

        Returns:
            code: (n_docs, L). For a Gaussian posterior, the mean of the code; for a Dirichlet or Weibull posterior, the
                logarithms of its weights (L = K); for other models, theta as centred log-ratios (L = K).
            divergence: (n_docs, M), a column for each latent variable. M is L, or L + 1 if the component of a mixture
                is a latent variable too, or 0 if the posterior has no divergence.
        """
        corpus = self.documents(X)
        return latent_codes(self.network_, corpus)

    def interpolate(self, a: Any, b: Any, steps: int = 8, top_n: int = 10) -> Interpolation:
        """Return what the model expects between two documents, at equal steps on a straight line in the latent space.

        The line is that of `latent`: for a Gaussian posterior it runs between the means of the codes; for other models
        it runs between log-weights or log-ratios of theta. The first step has the topics of `transform(a)`, and the
        last step those of `transform(b)`.

        Args:
            a: the first document: a text, or one document in any form that `infer` takes, such as a list of tokens in
                a list, or a Corpus with one document.
            b: the last document.
            steps: the number of steps; both documents count as steps.
            top_n: the number of words for each step, which are ranked as `topics` ranks those of a topic.

        Raises:
            InputError: `a` or `b` is not one document, or contains no word that the model knows.
            SettingError: `steps` is not a whole number from 2, or `top_n` not one from 1.
        """
        check_is_fitted(self, "components_")
        return interpolate(self, a, b, steps, top_n)

    def encode(self, X: Any) -> sp.csr_array:
        """Return the counts of X over the model's words, (n_docs, V); X as for `infer`."""
        return self.documents(X).counts

    def save(self, directory: str | Path, overwrite: bool = False) -> None:
        """Write the model to a directory, from which `topicloom.load` reads it.

        The files are model.safetensors, config.json and vocabulary.txt. They are written completely or not at all.

        Args:
            directory: the directory.
            overwrite: whether an earlier model may be replaced.

        Raises:
            InputError: the directory is not empty and `overwrite` is off, or it contains other files; or the model
                cannot be written.
        """
        check_is_fitted(self, "components_")
        place = as_path(directory, "directory")
        try:
            with atomic_directory(place, "config.json", overwrite=overwrite, known=MODEL_FILES) as folder:
                save_into(cast("TopicModel", self), folder)
        except SafetensorError as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"{directory} cannot be written: {reason}; is the disk full?") from None


def _by_value(model: FittedTopics) -> tuple[Callable[[bytes], Any], tuple[bytes]]:
    """Send a model to another process by multiprocessing as pickle does it, which copies the weights.

    Otherwise torch would share their memory: training in the other process would change this model, and a process could
    not be started with a model in which two tensors share their memory.
    """
    return pickle.loads, (pickle.dumps(model),)


def theta_of(found: DocumentTopics) -> Array:
    """Return theta, and warn of documents without a known word."""
    if found.empty.any():
        logger.warning("%s", empty_warning(int(found.empty.sum()), len(found)))
    return found.theta


def _with_counts(corpus: Corpus, counts: sp.csr_array) -> Corpus:
    """Return the same documents with other counts."""
    return Corpus(counts, corpus.vocabulary, corpus.fields, corpus.tokenizer)
