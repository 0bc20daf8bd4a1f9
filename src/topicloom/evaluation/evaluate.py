"""The measures of an evaluation by name, and `evaluate`, which takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from .. import metrics
from ..corpus.topic_measures import TOPIC_MEASURES, Measure, known_names
from ..errors import InputError, SettingError
from ..metrics import Measured, c_w2v
from ..models.base import TopicModel
from .inputs import Bench
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
    """Measures a fitted model.

    Args:
        model: the model.
        X: the documents for perplexity, classes and the latent code: a Corpus, texts, token lists, or (D, V) counts
            over the model's vocabulary.
        labels: a class for each document of X, None or "" where it is not known; a Corpus brings its own.
        training: the documents that the model learned from, likewise, where X is others. Coherence is measured
            against them, and a classifier learns from their labels, where they have any; otherwise it learns from X
            itself, in folds.
        reference: another corpus to measure coherence against, likewise, or a `metrics.Reference`.
        vectors: word vectors for the measures of meaning: `WordVectors`, or a vector by word.
        measures: names out of `MEASURES`; None is all for which there is what they need, and `skipped` says why the
            others are not there.
        top_n: the words of a topic that are read; None is each measure's own number, which papers use.
        relevance: how topics rank their words, as for `TopicModel.topics`.

    Raises:
        InputError: a measure that was asked for by name cannot be taken, or X cannot be read.
    """
    names = list(MEASURES) if measures is None else known_names(measures, MEASURES, "measures")
    if isinstance(top_n, bool) or (top_n is not None and (not isinstance(top_n, int) or top_n < 1)):
        raise SettingError(f"top_n should be a whole number from 1, or None; it is {top_n!r}")
    bench = Bench(model, X, labels, training, reference, vectors, top_n, relevance)
    figures, skipped = {}, {}
    for name in names:
        try:
            figures[name] = MEASURES[name](bench)
        except InputError as error:
            if measures is not None:
                raise InputError(f"{name} cannot be measured: {error}") from None
            skipped[name] = str(error)
    return Evaluation(figures, skipped, bench.about())


def _of_topics(measure: Measure) -> Callable[[Bench], Measured]:
    return lambda bench: measure(bench.topics, bench.source, bench.top_n)


def _vector_coherence(bench: Bench) -> Measured:
    found = c_w2v(bench.topics, bench.word_vectors(), top_n=bench.top_n or 10).to_dict()
    settings = {name: found[name] for name in ("top_n", "unseen", "undefined", "per_topic")}
    return Measured(found["mean"], **settings)


def _mean_divergence(bench: Bench) -> Measured:
    per_dimension = metrics.kl_per_dimension(bench.divergence).tolist()
    return Measured(float(np.mean(per_dimension)), unit="nats", units=len(per_dimension), per_dimension=per_dimension)


def _duplicates(bench: Bench) -> Measured:
    return Measured(metrics.duplicate_topics(bench.topics), top_n=10, shared=8)


MEASURES: dict[str, Callable[[Bench], Measured]] = {
    **{name: _of_topics(measure) for name, measure in TOPIC_MEASURES.items()},
    "c_w2v": _vector_coherence,
    "embedding_diversity": lambda bench: metrics.embedding_diversity(
        bench.topics, bench.word_vectors(), bench.top_n or 10
    ),
    "perplexity_bound": lambda bench: bench.perplexity("bound", "corpus"),
    "perplexity_bound_by_document": lambda bench: bench.perplexity("bound", "document"),
    "perplexity_completion": lambda bench: bench.perplexity("completion", "corpus"),
    "purity": lambda bench: metrics.purity(*bench.clusters()),
    "nmi": lambda bench: metrics.normalised_mutual_information(*bench.clusters()),
    "ari": lambda bench: metrics.adjusted_rand_index(*bench.clusters()),
    "accuracy": Bench.accuracy,
    "duplicate_topics": _duplicates,
    "active_topics": lambda bench: Measured(metrics.active_topics(bench.theta), topics=len(bench.topics)),
    "frequent_mass": lambda bench: metrics.frequent_mass(bench.model.components_, bench.model.word_counts_),
    "kl_per_dimension": _mean_divergence,
    "active_units_by_divergence": lambda bench: metrics.units_by_divergence(bench.divergence),
    "active_units_by_variance": lambda bench: metrics.units_by_variance(bench.means),
}
