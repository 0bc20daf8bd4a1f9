"""Evaluation of a fitted model: all measures at once, each with its settings and the documents it was taken on."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from .corpus import Corpus
from .corpus.corpus import CorpusReference
from .corpus.frames import check_index
from .display import html_table
from .embeddings.expansion import pools_of
from .errors import InputError, SettingError
from .messages import brief, counted
from .metrics import Measured, MeasureInputs, Reference, TopicReturns, topic_returns
from .metrics.catalogue import CATALOGUE, TOP_WORDS, is_known, known_measures, measures_of
from .models.base import Perplexity, TopicModel
from .models.refitting import Variation, refit, require_variation
from .settings import require_whole
from .topics.document_topics import DocumentTopics
from .topics.publication import TableLanguage, chosen_language, evaluation_for_print
from .topics.saved import RETURNING
from .topics.table import Table

Array = npt.NDArray[Any]

# Settings that are not shown, because they are the same for every measure or clear from its name.
_NOT_SHOWN = {"measure", "reference", "epsilon", "counting", "method", "tokens", "unit", "vectors"}

# The pools of reference corpora, which measures of several models share.
_pools_of: WeakKeyDictionary[CorpusReference, Array] = WeakKeyDictionary()

# The inputs of measures, which are computed when a measure first needs them.


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
    def of(cls, model: TopicModel, X: Any, labels: Sequence[Any] | None, name: str, **reading: Any) -> Documents:
        """Read documents.

        Args:
            model: the fitted model.
            X: documents in any form that `transform` of a model takes.
            labels: a class for each document, None or "" where it is unknown; a Corpus has its own.
            name: the name that results and messages give the documents.
            reading: further arguments of `TopicModel.documents`.

        Raises:
            InputError: X cannot be read, or the numbers or the pandas indexes of labels and documents differ.
        """
        check_index(X, {"labels": labels})
        corpus = model.documents(X, **reading)
        return cls(corpus if labels is None else corpus.with_labels(labels), name)


class GivenReference:
    """A `metrics.Reference` that the user made, with a name.

    Attributes:
        order_unknown: a sentence that says why the order of the words is not known; None if it is known.
    """

    def __init__(self, reference: Reference) -> None:
        self.name = reference.name or "the reference"
        why = None if reference.ordered else f"the order of words is not known, because {self.name} has only counts"
        self.order_unknown: str | None = why
        self.documents = copy.copy(reference)  # shares what it has counted
        self.documents.name = self.name

    @property
    def ordered_documents(self) -> Reference:
        """The documents, if the order of their words is known.

        Raises:
            InputError: the order is not known.
        """
        if self.order_unknown is not None:
            raise InputError(self.order_unknown)
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
        relevance: how topics rank their words, from 0 (by lift) to 1 (by probability); None is the package's rule.
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
    def pools(self) -> Array:
        if isinstance(self.reference, GivenReference):
            raise InputError("no vectors of documents were given")
        if self.reference not in _pools_of:
            vectors = self.reference.vectors
            pools = None if vectors is None else pools_of(vectors)
            if pools is None or not len(pools):
                raise InputError("no vectors of documents were given")
            _pools_of[self.reference] = pools
        return _pools_of[self.reference]

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

    @property
    def _has_topics(self) -> Array:
        """(D,) False for documents without a known word or vector, whose theta is the average of the others."""
        return ~self.document_topics.empty

    @cached_property
    def theta(self) -> Array:
        if not self._has_topics.any():
            raise InputError("no document has a word that the model knows")
        return self.document_topics.theta[self._has_topics]

    @property
    def labels(self) -> Array:
        if self.given.labels is None or not is_known(self.given.labels).any():
            raise InputError("no labels were given")
        found: Array = self.given.labels[self._has_topics]
        if not is_known(found).any():
            raise InputError("no labelled document has a word that the model knows")
        return found

    @cached_property
    def _labelled(self) -> tuple[Array, Array]:
        """Theta and labels of the documents that have both."""
        labels = self.given.labels
        if labels is None:
            return np.empty((0, 0), np.float32), np.empty(0, object)
        known = is_known(labels)
        found = self.document_topics if known.all() else self.model.infer(self.given.corpus.subset(known))
        return found.theta[~found.empty], labels[known][~found.empty]

    @property
    def training_theta(self) -> Array:
        if self.training is None:
            raise InputError("no training documents were given")
        return self.training._labelled[0]

    @property
    def training_labels(self) -> Array | None:
        found = np.empty(0) if self.training is None else self.training._labelled[1]
        return found if len(found) else None

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
    def other_runs(self) -> Sequence[Array]:
        raise InputError("the model was fitted once; `stability` fits it again")

    @property
    def divergence(self) -> Array:
        if not self._latent[1].shape[1]:
            raise InputError(f"the posterior of {type(self.model).__name__} has no divergence from a prior")
        return self._latent[1]


# The result.


@dataclass(frozen=True, eq=False)
class Evaluation(Mapping[str, Measured]):
    """The result of an evaluation: figures by the name of the measure. Each is a number with its `settings`.

    Attributes:
        figures: what was measured.
        skipped: why a measure was not taken, by its name.
        about: the model, the documents, and how topics rank their words.
        stability: for "seed", "order" or "bootstrap", in which further fits each topic returns; empty without any.
        topic_names: the names of the topics, if there were further fits.

    Examples:
        >>> import topicloom as tl
        >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
        >>> found = tl.evaluate(tl.LDA(3, random_state=0).fit(texts), texts, measures=["topic_diversity"])
        >>> list(found), found["topic_diversity"].settings
        (['topic_diversity'], {'top_n': 25})
    """

    figures: dict[str, Measured]
    skipped: dict[str, str]
    about: dict[str, Any]
    stability: dict[str, TopicReturns] = field(default_factory=dict)
    topic_names: Sequence[str] = ()

    def __getitem__(self, name: str) -> Measured:
        return self.figures[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.figures)

    def __len__(self) -> int:
        return len(self.figures)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as values for JSON. A value that is not finite is null but keeps its settings."""
        figures = {name: found.to_dict() | {"value": _plain(name, found)} for name, found in self.figures.items()}
        returns = {vary: found.to_dict() for vary, found in self.stability.items()}
        return self.about | {"measures": figures, "skipped": self.skipped} | ({"stability": returns} if returns else {})

    def table(self) -> list[dict[str, Any]]:
        """Return a row for each measure, in plain types.

        Returns:
            dicts with name, title, value (None if it is not finite or was not measured), settings, and skipped (None,
            or why it was not measured).
        """
        rows: list[dict[str, Any]] = [
            {
                "name": name,
                "title": CATALOGUE[name].title,
                "value": _plain(name, found),
                "settings": dict(found.settings),
                "skipped": None,
            }
            for name, found in self.figures.items()
        ]
        for name, reason in self.skipped.items():
            title = CATALOGUE[name].title
            rows.append({"name": name, "title": title, "value": None, "settings": {}, "skipped": reason})
        return rows

    def publication_table(self, *, table_language: TableLanguage = "auto") -> Table:
        """Return a table that can go into a paper as it is, with a row for each measure and two decimals.

        Args:
            table_language: "en" or "zh", of headings and caption; "auto" is "en".

        Examples:
            >>> import topicloom as tl
            >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
            >>> found = tl.evaluate(tl.LDA(3, random_state=0).fit(texts), texts, measures=["topic_diversity"])
            >>> print(found.publication_table().to_markdown(), end="")
            Table: Measures of LDA with 3 topics on 24 documents.
            <BLANKLINE>
            | Measure | Value |
            | --- | ---: |
            | Diversity | 0.33 |
        """
        language = chosen_language(table_language, argument="table_language")
        return evaluation_for_print(self.table(), self.about, language)

    def stability_table(self) -> Table:
        """Return a row for each topic: in which share of the further fits it returns, and its similarity in each.

        The columns are topic, name, returns, and one for each fit, such as "seed 1", with the similarity of the partner
        there, from 0 to 1. The table has no rows if there were no further fits.
        """
        shares = [found.shares for found in self.stability.values()]
        rows = [
            {
                "topic": topic,
                "name": name,
                "returns": float(np.mean([each[topic] for each in shares])),
                **{
                    f"{vary} {fit}": float(value)
                    for vary, found in self.stability.items()
                    for fit, value in enumerate(found.similarity[topic], start=1)
                },
            }
            for topic, name in enumerate(self.topic_names)
        ]
        return Table.of(rows, "; ".join(_said(vary, found) for vary, found in self.stability.items()))

    @property
    def title(self) -> str:
        """A sentence that says which model and documents the figures are of."""
        about = self.about
        held_out = "held-out " if about["held_out"] else ""
        return (
            f"{about['model']}, {about['n_topics']} topics: {counted(about['documents'], held_out + 'document')} "
            f"({about['empty_documents']:,} without a known word); coherence against {about['coherence_against']}"
        )

    def lines(self) -> list[tuple[str, str, str]]:
        """Return name, value and settings of each measure as text, for people to read."""
        lines = [(name, _shown(name, found), _settings_line(found)) for name, found in self.figures.items()]
        return lines + [(name, "-", reason) for name, reason in self.skipped.items()]

    def __repr__(self) -> str:
        lines = (f"{name:<28} {value:>12}  {settings}".rstrip() for name, value, settings in self.lines())
        return "\n".join([self.title, *lines])

    def _repr_html_(self) -> str:
        return html_table(["measure", "value", "settings"], self.lines(), self.title)


def _plain(name: str, value: float) -> float | int | None:
    if not math.isfinite(value):
        return None
    return int(value) if CATALOGUE[name].is_count else float(value)


def _shown(name: str, value: float) -> str:
    if CATALOGUE[name].is_count:
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.4f}"


def _settings_line(measured: Measured) -> str:
    """Return the settings that distinguish a figure from others."""
    shown = {
        name.replace("_", " "): value
        for name, value in measured.settings.items()
        if value not in (None, "") and name not in _NOT_SHOWN and not name.startswith("n_")
    }
    return ", ".join(f"{name} {value}" for name, value in shown.items())


def _said(vary: str, found: TopicReturns) -> str:
    """Return a clause about the topics that return."""
    n_fits = found.similarity.shape[1]
    interval = "" if found.interval is None else " (95 % interval {:.2f} to {:.2f})".format(*found.interval)
    return (
        f"{vary}: {found.mean:.2f}{interval} of the topics return in {counted(n_fits, 'further fit')}, with a "
        f"similarity from {found.threshold:g} on; by chance, it is below {found.chance:.2f}"
    )


# The evaluation.


def evaluate(
    model: TopicModel,
    X: Any,
    *,
    labels: Sequence[Any] | None = None,
    training: Any = None,
    reference: Any = None,
    vectors: Any = None,
    encoder: Any = None,
    word_vectors: Any = None,
    measures: Iterable[str] | None = None,
    top_n: int | None = None,
    relevance: float | None = None,
    stability: int = 0,
    vary: Variation | Sequence[Variation] = "seed",
    refits: str | Path | None = None,
) -> Evaluation:
    """Measure a fitted model.

    Args:
        model: the fitted model.
        X: the documents that perplexity, classes and the latent code are measured on: a Corpus, texts, lists of
            tokens, or (D, V) counts over the model's vocabulary. Coherence is measured against those that have a word
            of the vocabulary. Classes and shares of topics are measured on the same, and on those with a vector alone
            if the model infers their topics from it.
        labels: a class for each document of X, None or "" where it is unknown. A Corpus has its own labels.
        training: the documents that the model was trained on, if X is others; of the same types as X. Coherence is
            measured against them in place of X, and a classifier is trained on their labels. Without labelled training
            documents, the classifier is cross-validated on X.
        reference: another corpus to measure coherence against, of the same types, or a `metrics.Reference`. All of its
            documents count, as for gensim.
        vectors: (D, E) the vectors of the documents of X, by the encoder of the model's training documents.
        encoder: that encoder, if the model reads vectors and its `encoder_` is None.
        word_vectors: word vectors for the measures that need them: `WordVectors`, or a mapping from words to vectors.
        measures: names of measures. None takes all that can be taken; `Evaluation.skipped` says why others are missing.
        top_n: the number of words of a topic to use. None is each measure's own number, which is that of its paper.
        relevance: how topics rank their words: 1 by probability, 0 by lift (p(w|k) / p(w)). None is the rule of the
            package, a relevance of 0.5 with little effect of the lift of rare words.
        stability: how often the model is fitted again to its training documents (`training`, or X), to see which topics
            return. This takes as many times as long as the training took. 0 leaves it out.
        vary: what differs between these fits: the "seed"; the "order" of the documents; or the documents, which are a
            "bootstrap" sample. Several names make `stability` fits each.
        refits: a directory that keeps the topics of these fits, so that a call that was stopped, or one with more fits,
            continues. None keeps nothing.

    Raises:
        InputError: the model is not fitted, X cannot be read, or a measure that was asked for by name cannot be taken.
        SettingError: `model` is not a topic model, or an argument cannot have its value.

    Examples:
        >>> import topicloom as tl
        >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
        >>> model = tl.LDA(3, random_state=0).fit(texts)
        >>> found = tl.evaluate(model, texts, labels=["animals", "weather", "money"] * 8, measures=["purity", "nmi"])
        >>> found["purity"]
        1.0
    """
    _require_fitted(model)
    known = measures_of("evaluation")
    names = list(known) if measures is None else known_measures(measures, known, "`measures`")
    if top_n is not None:
        require_whole("top_n", top_n)
        top_n = int(top_n)
    varied = [vary] if isinstance(vary, str) or not isinstance(vary, Iterable) else vary
    kinds = list(dict.fromkeys(map(require_variation, varied)))
    if not kinds:
        raise SettingError('`vary` names nothing that differs between fits; give "seed", "order" or "bootstrap"')
    require_whole("stability", stability, 0)
    given = Documents.of(model, X, labels, "the documents given", vectors=vectors, encoder=encoder)
    inputs = _inputs(model, given, training, reference, encoder, word_vectors, top_n, relevance)
    about = _about(inputs)
    returns: dict[str, TopicReturns] = {}
    if stability:
        documents = (inputs.training or inputs).given.corpus
        for each in kinds:
            topics = refit(model, documents, stability, each, refits)
            returns[each] = topic_returns(model.components_, topics)
    figures, skipped = {}, {}
    for name in names:
        try:
            figures[name] = _measured(returns) if returns and name == RETURNING else CATALOGUE[name].function(inputs)
        except InputError as error:
            if measures is not None:
                raise InputError(f"{name} cannot be measured: {error}") from None
            skipped[name] = str(error)
    return Evaluation(figures, skipped, about, returns, model.topic_names_ if returns else ())


def _measured(returns: Mapping[str, TopicReturns]) -> Measured:
    """Return the share of topics that return; with several kinds of fits, the lowest."""
    vary = min(returns, key=lambda each: returns[each].mean)
    return returns[vary].measured(vary=vary)


def _require_fitted(model: Any) -> None:
    """Check that this is a fitted topic model.

    Raises:
        InputError: it is not fitted.
        SettingError: it is no topic model.
    """
    if not isinstance(model, TopicModel):
        raise SettingError(f"`model` should be a fitted topic model; it is of type {type(model).__name__}")
    try:
        check_is_fitted(model, "components_")
    except NotFittedError:
        raise InputError(f"this {type(model).__name__} is not fitted yet; call fit before evaluate") from None


def _inputs(
    model: TopicModel,
    given: Documents,
    training: Any,
    reference: Any,
    encoder: Any,
    word_vectors: Any,
    top_n: int | None,
    relevance: float | None,
) -> ModelInputs:
    against: CorpusReference | GivenReference = given.reference
    trained = None
    if training is not None:
        learned = Documents.of(model, training, None, "the training corpus", encoder=encoder)
        against = learned.reference
        trained = ModelInputs(model, learned, against)
    if isinstance(reference, Reference):
        against = GivenReference(reference)
    elif reference is not None:
        against = CorpusReference(model.documents(reference, words_only=True), "the reference", whole=True)
    if word_vectors is not None and (isinstance(word_vectors, str) or not hasattr(word_vectors, "__contains__")):
        raise SettingError(
            "`word_vectors` should be WordVectors or a mapping from words to vectors; "
            f"it is {brief(word_vectors)} (topicloom.read_word_vectors reads a file)"
        )
    return ModelInputs(model, given, against, trained, word_vectors, top_n, relevance)


def _about(inputs: ModelInputs) -> dict[str, Any]:
    """Return a description of the model and of the documents."""
    corpus = inputs.given.corpus
    return {
        "model": type(inputs.model).__name__,
        "n_topics": len(inputs.topics),
        "documents": corpus.n_docs,
        "empty_documents": int(corpus.is_empty.sum()),
        "tokens": corpus.n_tokens,
        "held_out": inputs.training is not None,
        "coherence_against": inputs.reference.name,
        "relevance": "the package's rule" if inputs.relevance is None else inputs.relevance,
    }
