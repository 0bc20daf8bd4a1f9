"""A corpus in three parts, and the figures of a model on each: what comparing and tuning have in common."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import metrics
from ..corpus import Corpus
from ..corpus.topic_measures import TOPIC_MEASURES, WINDOWED, Source
from ..errors import InputError, SettingError
from ..models.base import TopicModel

Array = npt.NDArray[Any]
Figures = dict[str, float]

HELD_OUT = ("validation", "test")
OF_TOPICS = ("document_npmi", "c_v", "c_npmi", "topic_diversity", "topic_uniqueness", "redundancy")
_SPLIT_SEED = 0
_LONGEST = 25  # words of a topic that a measure reads


class Split(NamedTuple):
    """A corpus in three, drawn with a fixed seed."""

    train: Corpus
    validation: Corpus
    test: Corpus


def split(corpus: Corpus, validation: float = 0.1, test: float = 0.2, seed: int = _SPLIT_SEED) -> Split:
    """Documents to learn from, to choose on, and to report on.

    Args:
        validation, test: shares of the documents that have words, above 0 and together below 1.
        seed: of the draw.

    Raises:
        InputError: a part would be empty.
        SettingError: shares that leave nothing to learn from.
    """
    if not (validation > 0 and test > 0 and validation + test < 1):
        raise SettingError(
            f"validation and test should be shares above 0, together below 1; they are {validation} and {test}"
        )
    rows = np.random.default_rng(seed).permutation(np.flatnonzero(~corpus.is_empty))
    ends = np.cumsum([round(len(rows) * test), round(len(rows) * validation)])
    held_test, held_validation, kept = np.split(rows, ends)
    if not (len(held_test) and len(held_validation) and len(kept)):
        raise InputError(f"{len(rows)} documents with words are too few to learn from, to choose on and to test on")
    return Split(corpus[np.sort(kept)], corpus[np.sort(held_validation)], corpus[np.sort(held_test)])


def digest(corpus: Corpus) -> str:
    """A short name of what a corpus holds: its words, counts and labels."""
    counts = corpus.counts
    digest = hashlib.sha256("\n".join([*corpus.vocabulary, "", *(corpus.labels or ())]).encode())
    for array in (counts.indptr.astype(np.int64), counts.indices.astype(np.int64), counts.data.astype(np.float64)):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


class Judge:
    """Fits models on the training part and measures them, all alike.

    Coherence is taken against the training documents: the document-level NPMI always, the windowed ones where the
    corpus kept its texts. Words are ranked by the package's rule.
    """

    def __init__(self, parts: Split) -> None:
        self.parts = parts
        self.source = Source.of_corpus("training documents", parts.train)

    def fit(self, model: TopicModel) -> float:
        """The seconds that it took."""
        began = time.perf_counter()
        model.fit(self.parts.train)
        return time.perf_counter() - began

    def figures(self, model: TopicModel, on: Sequence[str] = HELD_OUT) -> dict[str, Figures]:
        """The figures of a fitted model: those of its topics, and those of each part that is asked for."""
        theta = model.transform(self.parts.train)
        common = {**self._of_topics(model), "active_topics": float(len(np.unique(theta.argmax(1))))}
        return {name: common | self._of_documents(model, theta, getattr(self.parts, name)) for name in on}

    def _of_topics(self, model: TopicModel) -> Figures:
        words = model.topics(_LONGEST)
        names = [name for name in OF_TOPICS if self.parts.train.texts is not None or name not in WINDOWED]
        return {name: float(TOPIC_MEASURES[name](words, self.source, None)) for name in names}

    def _of_documents(self, model: TopicModel, theta_train: Array, held: Corpus) -> Figures:
        figures: Figures = {}
        train = self.parts.train
        if np.array_equal(held.counts.data, np.floor(held.counts.data)):
            figures["perplexity"] = float(model.perplexity(held, method="completion"))
        if held.labels is not None and train.labels is not None:
            theta = model.transform(held)
            leading = theta.argmax(axis=1)
            figures |= {
                "purity": float(metrics.purity(held.labels, leading)),
                "nmi": float(metrics.normalised_mutual_information(held.labels, leading)),
                "ari": float(metrics.adjusted_rand_index(held.labels, leading)),
                "accuracy": float(metrics.classification_accuracy(theta_train, train.labels, theta, held.labels)),
            }
        return figures
