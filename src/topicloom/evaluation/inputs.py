"""The inputs of measures, from a fitted model and documents. Everything is computed when a measure first needs it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..corpus import Corpus
from ..corpus.reference import CorpusReference
from ..errors import InputError
from ..metrics import MeasureInputs, Reference
from ..metrics.catalogue import TOP_WORDS
from ..metrics.inputs import is_known
from ..models.base import TopicModel
from ..models.fitted import Perplexity
from ..topics.document_topics import DocumentTopics

Array = npt.NDArray[Any]


class Documents:
    """Documents over a model's vocabulary, with their labels, and as a reference of coherence.

    Args:
        corpus: the documents, over the model's vocabulary.
        name: the name that results and messages give them.
    """

    def __init__(self, corpus: Corpus, name: str) -> None:
        self.corpus = corpus
        self.reference = CorpusReference(corpus, name)
        self.labels = None if corpus.labels is None else np.array(corpus.labels, dtype=object)

    @classmethod
    def of(cls, model: TopicModel, X: Any, labels: Sequence[Any] | None, name: str) -> Documents:
        """Read documents.

        Args:
            model: the fitted model.
            X: as for `TopicModel.transform`.
            labels: a class for each document, None or "" where it is unknown; a Corpus has its own.
            name: the name that results and messages give the documents.

        Raises:
            InputError: X cannot be read, or the numbers of labels and documents differ.
        """
        corpus = model.documents(X)
        return cls(corpus if labels is None else corpus.with_labels(labels), name)


class GivenReference:
    """A `metrics.Reference` that the user made, with a name."""

    def __init__(self, reference: Reference) -> None:
        self.name = reference.name or "the reference"
        self.documents = copy.copy(reference)  # shares what it has counted
        self.documents.name = self.name

    @property
    def ordered_documents(self) -> Reference:
        """The documents, if the order of their words is known.

        Raises:
            InputError: the order is not known.
        """
        if not self.documents.ordered:
            raise InputError(f"the order of words is not known, because {self.name} has only counts")
        return self.documents


class ModelInputs(MeasureInputs):
    """A fitted model and documents, as measures read them.

    Args:
        model: the fitted model.
        given: the documents that perplexity, classes and the latent code are measured on.
        reference: what coherence is measured against.
        training: the same for the training documents, whose labels a classifier learns from; None if there are none.
        word_vectors: a vector by word, or None.
        top_n: the number of words of a topic to use; None is each measure's own number.
        relevance: how topics rank their words, as for `TopicModel.topics`.
    """

    def __init__(
        self,
        model: TopicModel,
        given: Documents,
        reference: CorpusReference | GivenReference,
        training: ModelInputs | None = None,
        word_vectors: Any = None,
        top_n: int | None = None,
        relevance: float | None = None,
    ) -> None:
        self.model, self.given, self.reference, self.training = model, given, reference, training
        self.relevance = relevance
        self._word_vectors, self._top_n = word_vectors, top_n
        self._likelihoods: dict[Perplexity, tuple[Array, Array]] = {}

    @property
    def top_n(self) -> int | None:
        return self._top_n

    @cached_property
    def topics(self) -> list[list[str]]:
        return self.model.topics(max(TOP_WORDS, self.top_n or 0), self.relevance)

    @cached_property
    def relevant_topics(self) -> list[list[str]]:
        return self.model.topics(max(TOP_WORDS, self.top_n or 0), 0.6)

    @property
    def documents(self) -> Reference:
        return self.reference.documents

    @property
    def ordered_documents(self) -> Reference:
        return self.reference.ordered_documents

    @property
    def word_vectors(self) -> Any:
        if self._word_vectors is None:
            raise InputError("no word vectors were given")
        return self._word_vectors

    @property
    def topic_word(self) -> Array:
        return self.model.components_

    @property
    def word_counts(self) -> Array:
        return self.model.word_counts_

    @cached_property
    def document_topics(self) -> DocumentTopics:
        """The documents with their topics."""
        return self.model.infer(self.given.corpus)

    @cached_property
    def theta(self) -> Array:
        return self.document_topics.theta

    @property
    def labels(self) -> Array:
        if self.given.labels is None or not is_known(self.given.labels).any():
            raise InputError("no labels were given")
        return self.given.labels

    @cached_property
    def training_theta(self) -> Array:
        if self.training is None:
            raise InputError("no training documents were given")
        known = is_known(self.training.labels)
        if known.all():
            return self.training.theta
        return self.model.infer(self.training.given.corpus.subset(known)).theta

    @property
    def training_labels(self) -> Array | None:
        found = None if self.training is None else self.training.given.labels
        if found is None or not is_known(found).any():
            return None
        known: Array = found[is_known(found)]
        return known

    def log_likelihood(self, method: Perplexity) -> tuple[Array, Array]:
        if method not in self._likelihoods:
            self._likelihoods[method] = self.model.log_likelihood(self.given.corpus, method)
        return self._likelihoods[method]

    @cached_property
    def _latent(self) -> tuple[Array, Array]:
        """Means and divergences of the documents that have words."""
        return self.model.latent(self.given.corpus.subset(~self.given.corpus.is_empty))

    @property
    def latent_means(self) -> Array:
        if not self._latent[0].shape[1]:
            kind = type(self.model).__name__
            raise InputError(f"the latent code of {kind} is theta itself, which active_topics measures")
        return self._latent[0]

    @property
    def divergence(self) -> Array:
        if not self._latent[1].shape[1]:
            raise InputError(f"the posterior of {type(self.model).__name__} has no divergence from a prior")
        return self._latent[1]
