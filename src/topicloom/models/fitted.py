"""FittedTopics: what a fitted model offers. Nothing here changes the model, so that threads can share one."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from safetensors import SafetensorError
from sklearn.utils.validation import check_is_fitted, validate_data

from .. import metrics
from ..corpus import Corpus
from ..corpus.inputs import corpus_over
from ..errors import InputError, SettingError
from ..files import atomic_directory
from ..nn.network import TopicNetwork
from ..text import AnyTokenizer
from ..topics.document_topics import DocumentTopics, empty_warning
from ..topics.saved import MODEL_FILES
from ..topics.words import topic_word_ids
from .inference import Array, Inference, document_topics, evidence_bound, latent_codes, log_likelihood
from .saving import save_into

if TYPE_CHECKING:
    from .base import TopicModel

logger = logging.getLogger("topicloom")

Perplexity = Literal["bound", "completion"]


class FittedTopics:
    """Reads documents with the network and the vocabulary that `fit` has learned."""

    network_: TopicNetwork
    components_: Array
    vocabulary_: list[str]
    word_counts_: Array
    tokenizer_: AnyTokenizer
    fractional_counts: bool

    def _matrix(self, X: Any, *, reset: bool = True) -> tuple[Any, Sequence[str] | None]:
        """Check a matrix as scikit-learn does; return it, and the words of its columns if it is a data frame."""
        # Values that are not finite are left to Corpus.from_counts, which names their row and column.
        limits = {"ensure_all_finite": False, "ensure_min_features": 2 if reset else 1}
        try:
            matrix = validate_data(self, X, reset=reset, accept_sparse="csr", dtype="numeric", **limits)
        except ValueError as error:
            message = " ".join(str(error).split())  # scikit-learn's run over lines, and may quote a whole text
            raise InputError(message if len(message) < 300 else f"{message[:297]}...") from None
        return matrix, getattr(self, "feature_names_in_", None)

    def documents(self, X: Any, vocabulary: Sequence[str] | None = None) -> Corpus:
        """Turn X, as for `transform`, into a corpus over the model's words."""
        check_is_fitted(self, "components_")
        return corpus_over(
            X,
            self.vocabulary_,
            self.tokenizer_,
            vocabulary,
            fractional=self.fractional_counts,
            matrix=lambda counts: self._matrix(counts, reset=False),
        )

    def infer(self, X: Any) -> DocumentTopics:
        """Infer the topics of documents, and return them with what is known of the documents.

        Args:
            X: as for `fit`; texts are split as in training, and a Corpus with other words is matched word by word.

        Returns:
            theta (n_docs, K), which rows were empty, and the ids, labels, times and texts that X has.
        """
        return self.infer_with(X)

    def infer_with(self, X: Any, posterior: Inference | None = None) -> DocumentTopics:
        """Infer with another posterior than the network's, if one is given."""
        corpus = self.documents(X)
        return document_topics(self.network_, corpus, posterior)

    def transform(self, X: Any) -> Array:
        """Infer the topic shares of documents.

        Args:
            X: as for `infer`.

        Returns:
            (n_docs, K) float32, rows sum to 1; row i is document i. A document without a known word gets the model's
            average shares, and one warning counts such documents.
        """
        return theta_of(self.infer_with(X))

    def topics(self, top_n: int = 10, relevance: float | None = None) -> list[list[str]]:
        """Return the words that stand for each topic.

        Args:
            top_n: how many words a topic has.
            relevance: 1 ranks by probability, 0.6 as Sievert & Shirley (2014) recommend; None is the package's own
                rule, relevance 0.5 with the lift of rare words shrunk.

        Returns:
            K lists of words, best first.
        """
        return [[self.vocabulary_[word] for word in row] for row in self.topic_ids(top_n, relevance)]

    def topic_ids(self, top_n: int = 10, relevance: float | None = None) -> npt.NDArray[np.intp]:
        """Return (K, min(top_n, V)) the words of `topics` as columns of components_."""
        check_is_fitted(self, "components_")
        return topic_word_ids(self.components_, self.word_counts_, top_n, relevance)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the evidence lower bound per token in nats, -log(`perplexity(X)`): higher is better."""
        return -float(np.log(self.perplexity(X)))

    def perplexity(self, X: Any, method: Perplexity = "bound", average: metrics.Average = "corpus") -> float:
        """Return how surprised the model is by a word of X: lower is better.

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
        """Return the log likelihood of each document and the number of its tokens: (n_docs,) nats, (n_docs,) tokens.

        Args:
            method: "bound" is the evidence lower bound of all tokens. "completion" infers theta from one half of each
                document's tokens and scores the other (whole counts only; the halves are drawn with a fixed seed).

        Raises:
            InputError: no document has a word that the model knows, or the method cannot be used on X.
        """
        corpus = self.documents(X)
        if not corpus.counts.nnz:
            raise InputError("no document has a word that the model knows, so there is nothing to score")
        if method == "completion":
            if not corpus.is_whole:
                raise InputError('completion divides whole counts; with weights take method="bound"')
            observed, scored = (_with_counts(corpus, half) for half in metrics.completion_split(corpus.counts))
            theta = document_topics(self.network_, observed).theta
            return log_likelihood(self.network_, theta, scored), scored.counts.sum(axis=1)
        if method != "bound":
            raise SettingError(f'method should be "bound" or "completion"; it is {method!r}')
        return evidence_bound(self.network_, corpus), corpus.counts.sum(axis=1)

    def latent(self, X: Any) -> tuple[Array, Array]:
        """Return where each document is in the latent space, and its divergence from the prior in nats.

        Returns:
            code: (n_docs, L), the posterior mean of a Gaussian code; the logarithms of a Dirichlet's or Weibull's
                weights (L = K); for other models theta as centred log-ratios (L = K).
            divergence: (n_docs, M), a column for each latent variable: M = L, or L + 1 where a mixture component is one
                more; (n_docs, 0) for models whose posterior has no divergence.
        """
        corpus = self.documents(X)
        return latent_codes(self.network_, corpus)

    def encode(self, X: Any) -> sp.csr_array:
        """Return (n_docs, V) counts of X over the model's words; X as for `transform`."""
        return self.documents(X).counts

    def save(self, directory: str | Path, overwrite: bool = False) -> None:
        """Write model.safetensors, config.json and vocabulary.txt to a directory, all of them or none.

        Raises:
            InputError: the directory holds something and `overwrite` is off.
        """
        check_is_fitted(self, "components_")
        try:
            with atomic_directory(Path(directory), "config.json", overwrite=overwrite, known=MODEL_FILES) as folder:
                save_into(cast("TopicModel", self), folder)
        except SafetensorError as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"{directory} cannot be written: {reason}; is the disk full?") from None


def theta_of(found: DocumentTopics) -> Array:
    """Return theta, with a warning where documents are empty."""
    if found.empty.any():
        logger.warning("%s", empty_warning(int(found.empty.sum()), len(found)))
    return found.theta


def _with_counts(corpus: Corpus, counts: sp.csr_array) -> Corpus:
    """The same documents with other counts."""
    return Corpus(counts, corpus.vocabulary, corpus.fields, corpus.tokenizer)
