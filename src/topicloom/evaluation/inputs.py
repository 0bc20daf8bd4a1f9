"""What measures read of a model and of documents, made once and when the first of them asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import metrics
from ..corpus import Corpus
from ..corpus.fields import Fields
from ..corpus.inputs import as_texts, is_matrix
from ..corpus.topic_measures import LONGEST, Source
from ..errors import InputError
from ..metrics import Average, Measured, Reference
from ..models.base import TopicModel
from ..models.fitted import Perplexity
from ..text import Pretokenized
from ..text.counting import counts_of

Array = npt.NDArray[Any]


class Documents:
    """Documents as a corpus over the model's vocabulary, and as a source that coherence is measured against."""

    def __init__(self, model: TopicModel, X: Any, labels: Sequence[Any] | None, name: str) -> None:
        texts, tokens, tokenizer = None, None, model.tokenizer_
        if isinstance(X, Corpus):
            texts, tokenizer = X.texts, X.tokenizer
            labels = X.labels if labels is None else labels
        if isinstance(X, Corpus) or is_matrix(X):
            counts = model.encode(X)
        else:
            tokens = list(as_texts(X))  # a raw text is cut again for its order, just as a list of tokens is
            if tokens and isinstance(tokens[0], list | tuple) and not isinstance(tokenizer, Pretokenized):
                tokenizer = Pretokenized()  # tokens for a model that cuts texts: they are cut already
            counts = counts_of(tokens, model.vocabulary_, tokenizer)
        ids = [str(row) for row in range(counts.shape[0])]
        self.corpus = Corpus(counts, model.vocabulary_, Fields(ids, texts=texts), tokenizer=tokenizer)
        self.source = Source.of_corpus(name, self.corpus, tokens)
        self.labels = None if labels is None else np.array(["" if x is None else str(x) for x in labels], dtype=object)
        if self.labels is not None and len(self.labels) != self.corpus.n_docs:
            raise InputError(
                f"there are {len(self.labels)} labels and {self.corpus.n_docs} documents; one each, please"
            )


class Bench:
    """What measures read, made when the first of them asks for it."""

    def __init__(
        self,
        model: TopicModel,
        X: Any,
        labels: Sequence[Any] | None,
        training: Any,
        reference: Any,
        vectors: Any,
        top_n: int | None,
        relevance: float | None,
    ) -> None:
        self.model, self.vectors, self.top_n, self.relevance = model, vectors, top_n, relevance
        self.given = Documents(model, X, labels, "the documents given")
        self.training = None if training is None else Documents(model, training, None, "the training corpus")
        self.topics = model.topics(max(LONGEST, top_n or 0), relevance)
        if isinstance(reference, Reference):
            self.source = Source.of_reference(reference)
        elif reference is not None:
            self.source = Documents(model, reference, None, "the reference").source
        else:
            self.source = (self.training or self.given).source

    def about(self) -> dict[str, Any]:
        """What the evaluation is of."""
        corpus = self.given.corpus
        return {
            "model": type(self.model).__name__,
            "n_topics": len(self.topics),
            "documents": corpus.n_docs,
            "empty_documents": int(corpus.is_empty.sum()),
            "tokens": corpus.n_tokens,
            "held_out": self.training is not None,
            "coherence_against": self.source.name,
            "relevance": "the package's rule" if self.relevance is None else self.relevance,
        }

    @cached_property
    def theta(self) -> Array:
        return self.model.transform(self.given.corpus)

    @cached_property
    def latent(self) -> tuple[Array, Array]:
        """Means and divergences of the documents that have words."""
        return self.model.latent(self.given.corpus.subset(~self.given.corpus.is_empty))

    @cached_property
    def means(self) -> Array:
        if not self.latent[0].shape[1]:
            raise InputError(f"the latent code of {type(self.model).__name__} is theta, which active_topics speaks of")
        return self.latent[0]

    @cached_property
    def divergence(self) -> Array:
        if not self.latent[1].shape[1]:
            raise InputError(f"{type(self.model).__name__} has no posterior that diverges from a prior")
        return self.latent[1]

    @cached_property
    def _scores(self) -> dict[Perplexity, tuple[Array, Array]]:
        return {}

    def perplexity(self, method: Perplexity, average: Average) -> Measured:
        if method not in self._scores:
            self._scores[method] = self.model.log_likelihood(self.given.corpus, method)
        found = metrics.perplexity(*self._scores[method], average)
        found.settings["method"] = method
        return found

    def labelled(self, documents: Documents) -> npt.NDArray[np.bool_]:
        """(D,) the documents whose class is known.

        Raises:
            InputError: there is none.
        """
        if documents.labels is None or not (documents.labels != "").any():
            raise InputError("no labels were given")
        known: npt.NDArray[np.bool_] = documents.labels != ""
        return known

    def clusters(self) -> tuple[Array, Array]:
        """The classes of the labelled documents, and their largest topics."""
        known = self.labelled(self.given)
        assert self.given.labels is not None
        return self.given.labels[known], self.theta[known].argmax(axis=1)

    def accuracy(self) -> Measured:
        known = self.labelled(self.given)
        assert self.given.labels is not None
        theta, labels = self.theta[known], self.given.labels[known]
        if self.training is None or self.training.labels is None:
            return metrics.cross_validated_accuracy(theta, labels)
        teaching = self.labelled(self.training)
        known_theta = self.model.transform(self.training.corpus.subset(teaching))
        return metrics.classification_accuracy(known_theta, self.training.labels[teaching], theta, labels)

    def word_vectors(self) -> Any:
        if self.vectors is None:
            raise InputError("no word vectors were given")
        return self.vectors
