"""The inputs of measures: what a measure can read from a model and from documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from .cooccurrence import Reference

Array = npt.NDArray[Any]


class MeasureInputs(Protocol):
    """Everything that a measure of the catalogue can ask for.

    An implementation overrides what it can provide, and makes each attribute when it is first read. An attribute that
    it cannot provide raises InputError with a sentence that says why; that is what all attributes do here.
    """

    @property
    def topics(self) -> Sequence[Sequence[Any]]:
        """K topics, each the words (or word ids) that describe it, best first."""
        _refuse("the topics are")

    @property
    def relevant_topics(self) -> Sequence[Sequence[Any]]:
        """The same topics with words ranked by relevance 0.6 (Sievert & Shirley 2014)."""
        _refuse("the topics by relevance are")

    @property
    def top_n(self) -> int | None:
        """The number of words of a topic to use, or None for each measure's own number."""
        return None

    @property
    def documents(self) -> Reference:
        """The reference corpus of coherence: the words that each document contains."""
        _refuse("the reference corpus is")

    @property
    def ordered_documents(self) -> Reference:
        """The reference corpus of coherence: the tokens of each document in their order."""
        _refuse("the order of words is")

    @property
    def word_vectors(self) -> Any:
        """A vector for each word, by `word_vectors[word]`."""
        _refuse("word vectors are")

    @property
    def topic_word(self) -> Array:
        """(K, V) probabilities of words in topics."""
        _refuse("the topic-word matrix is")

    @property
    def word_counts(self) -> Array:
        """(V,) tokens of each word in the training corpus."""
        _refuse("the word counts are")

    @property
    def theta(self) -> Array:
        """(D, K) topic shares of the documents."""
        _refuse("the topic shares of documents are")

    @property
    def labels(self) -> Array:
        """(D,) the class of each document, "" where it is unknown; at least one is known."""
        _refuse("labels are")

    @property
    def training_theta(self) -> Array:
        """(E, K) topic shares of the training documents whose class is known."""
        _refuse("the topic shares of training documents are")

    @property
    def training_labels(self) -> Array | None:
        """(E,) the classes of the same documents, or None if no other documents have labels."""
        return None

    def log_likelihood(self, method: Literal["bound", "completion"]) -> tuple[Array, Array]:
        """(D,) the log likelihood of each document, and (D,) the number of tokens that it covers."""
        _refuse("the likelihood of documents is")

    @property
    def divergence(self) -> Array:
        """(D, L) divergence of each document's posterior from the prior, in nats."""
        _refuse("the divergence of the posterior is")

    @property
    def latent_means(self) -> Array:
        """(D, L) mean of each document's posterior."""
        _refuse("the latent code is")

    @property
    def seconds(self) -> float:
        """How long the fit took."""
        _refuse("the time of the fit is")

    @property
    def other_runs(self) -> Sequence[Array]:
        """(K, V) topics of other fits of the same model, which differ in the seed alone."""
        _refuse("the topics of other runs are")


def is_known(labels: Array) -> npt.NDArray[np.bool_]:
    """(D,) True for documents whose class is known."""
    found: npt.NDArray[np.bool_] = labels != ""
    return found


def _refuse(what: str) -> NoReturn:
    raise InputError(f"{what} not known here")
