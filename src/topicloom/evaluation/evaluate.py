"""`evaluate`: every measure of a fitted model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ..corpus.reference import CorpusReference
from ..errors import InputError, SettingError
from ..metrics import Reference
from ..metrics.catalogue import CATALOGUE, known_measures, measures_of
from ..models.base import TopicModel
from ..text.characters import brief
from .inputs import Documents, GivenReference, ModelInputs
from .result import Evaluation


def evaluate(
    model: TopicModel,
    X: Any,
    *,
    labels: Sequence[Any] | None = None,
    training: Any = None,
    reference: Any = None,
    vectors: Any = None,
    measures: Iterable[str] | None = None,
    top_n: int | None = None,
    relevance: float | None = None,
) -> Evaluation:
    """Measure a fitted model.

    Args:
        model: the fitted model.
        X: the documents that perplexity, classes and the latent code are measured on: a Corpus, texts, lists of
            tokens, or (D, V) counts over the model's vocabulary.
        labels: a class for each document of X, None or "" where it is unknown. A Corpus has its own labels.
        training: the documents that the model was trained on, if X is others; of the same types as X. Coherence is
            measured against them, and a classifier is trained on their labels. Without labelled training documents,
            the classifier is cross-validated on X.
        reference: another corpus to measure coherence against, of the same types, or a `metrics.Reference`.
        vectors: word vectors for the measures that need them: `WordVectors`, or a mapping from words to vectors.
        measures: names of measures. None takes all that can be taken; `Evaluation.skipped` says why others are missing.
        top_n: the number of words of a topic to use. None is each measure's own number, which is that of its paper.
        relevance: how topics rank their words, as for `TopicModel.topics`.

    Raises:
        InputError: the model is not fitted, X cannot be read, or a measure that was asked for by name cannot be taken.
    """
    _require_fitted(model)
    known = measures_of("evaluation")
    names = list(known) if measures is None else known_measures(measures, known, "`measures`")
    if isinstance(top_n, bool) or (top_n is not None and (not isinstance(top_n, int) or top_n < 1)):
        raise SettingError(f"`top_n` should be a whole number from 1, or None; it is {top_n!r}")
    inputs = _inputs(model, X, labels, training, reference, vectors, top_n, relevance)
    about = _about(inputs)
    figures, skipped = {}, {}
    for name in names:
        try:
            figures[name] = CATALOGUE[name].function(inputs)
        except InputError as error:
            if measures is not None:
                raise InputError(f"{name} cannot be measured: {error}") from None
            skipped[name] = str(error)
    return Evaluation(figures, skipped, about)


def _require_fitted(model: Any) -> None:
    """Raise InputError unless this is a fitted topic model."""
    if not isinstance(model, TopicModel):
        raise SettingError(f"`model` should be a fitted topic model; it is of type {type(model).__name__}")
    try:
        check_is_fitted(model, "components_")
    except NotFittedError:
        raise InputError(f"this {type(model).__name__} is not fitted yet; call fit before evaluate") from None


def _inputs(
    model: TopicModel,
    X: Any,
    labels: Sequence[Any] | None,
    training: Any,
    reference: Any,
    vectors: Any,
    top_n: int | None,
    relevance: float | None,
) -> ModelInputs:
    given = Documents.of(model, X, labels, "the documents given")
    against: CorpusReference | GivenReference = given.reference
    trained = None
    if training is not None:
        learned = Documents.of(model, training, None, "the training corpus")
        against = learned.reference
        trained = ModelInputs(model, learned, against)
    if isinstance(reference, Reference):
        against = GivenReference(reference)
    elif reference is not None:
        against = Documents.of(model, reference, None, "the reference").reference
    if vectors is not None and (isinstance(vectors, str) or not hasattr(vectors, "__contains__")):
        raise SettingError(
            "`vectors` should be WordVectors or a mapping from words to vectors; "
            f"it is {brief(vectors)} (topicloom.read_word_vectors reads a file)"
        )
    return ModelInputs(model, given, against, trained, vectors, top_n, relevance)


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
