"""A corpus in three parts, and the figures of a model on each: what comparisons and tuning have in common."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from ..corpus import Corpus
from ..errors import InputError, SettingError
from ..evaluation.inputs import Documents, ModelInputs
from ..metrics import CATALOGUE, Measure
from ..metrics.catalogue import Use
from ..models.base import TopicModel

Figures = dict[str, float]

HELD_OUT = ("validation", "test")
_SPLIT_SEED = 0
_COMPARED: tuple[Use, ...] = ("comparison",)
_OF_SEVERAL_FITS = {"seconds", "other runs"}  # needs that only the caller of several fits can meet


class Split(NamedTuple):
    """A corpus in three parts, drawn with a fixed seed."""

    train: Corpus
    validation: Corpus
    test: Corpus


def split(corpus: Corpus, validation: float = 0.1, test: float = 0.2, random_state: int = _SPLIT_SEED) -> Split:
    """Split a corpus into documents to train on, to choose by, and to report on.

    Args:
        corpus: the corpus; its empty documents are left out.
        validation, test: shares of the documents, above 0 and together below 1.
        random_state: the seed of the draw.

    Raises:
        InputError: a part would be empty.
        SettingError: the shares leave nothing to train on.
    """
    if not (validation > 0 and test > 0 and validation + test < 1):
        raise SettingError(
            f"validation and test should be shares above 0, together below 1; they are {validation} and {test}"
        )
    rows = np.random.default_rng(random_state).permutation(np.flatnonzero(~corpus.is_empty))
    ends = np.cumsum([round(len(rows) * test), round(len(rows) * validation)])
    held_test, held_validation, kept = np.split(rows, ends)
    if not (len(held_test) and len(held_validation) and len(kept)):
        raise InputError(f"{len(rows)} documents with words are too few to train on, to choose by and to test on")
    return Split(corpus[np.sort(kept)], corpus[np.sort(held_validation)], corpus[np.sort(held_test)])


def digest(corpus: Corpus) -> str:
    """Return a short digest of a corpus's words, counts and labels."""
    counts = corpus.counts
    digest = hashlib.sha256("\n".join([*corpus.vocabulary, "", *(corpus.labels or ())]).encode())
    for array in (counts.indptr.astype(np.int64), counts.indices.astype(np.int64), counts.data.astype(np.float64)):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


class Evaluator:
    """Fits models on the training part and measures all of them in the same way.

    Topics, with words ranked by the package's rule, are measured against the training documents; perplexity and classes
    are measured on held-out documents. A measure that the corpus does not allow is left out (see `unavailable`).
    """

    def __init__(self, parts: Split) -> None:
        self.parts = parts
        self._documents = {
            "train": Documents(parts.train, "training documents"),
            "validation": Documents(parts.validation, "validation documents"),
            "test": Documents(parts.test, "test documents"),
        }

    def fit(self, model: TopicModel) -> float:
        """Fit a model on the training part and return the seconds it took."""
        began = time.perf_counter()
        model.fit(self.parts.train)
        return time.perf_counter() - began

    def unavailable(self, name: str, on: str) -> str | None:
        """Return why a measure cannot be taken on a part of this corpus, or None if it can."""
        needs, corpus = CATALOGUE[name].needs, self._documents[on].corpus
        if "labels" in needs and not (any(corpus.labels or ()) and any(self.parts.train.labels or ())):
            return "the corpus has no labels"
        if "token order" in needs:
            return self._documents["train"].reference.order_unknown
        if "whole counts" in needs and not np.array_equal(corpus.counts.data, np.floor(corpus.counts.data)):
            return "the counts of the corpus are not whole numbers"
        return None

    def figures(
        self, model: TopicModel, on: Sequence[str] = HELD_OUT, uses: Collection[Use] = _COMPARED
    ) -> dict[str, Figures]:
        """Measure a fitted model.

        Args:
            model: the fitted model.
            on: the parts to measure on.
            uses: takes the measures that the catalogue has for these uses.

        Returns:
            for each part, the figures of the topics and those of the part's documents, by name.
        """
        reference = self._documents["train"].reference
        trained = ModelInputs(model, self._documents["train"], reference)
        parts = {name: ModelInputs(model, self._documents[name], reference, trained) for name in on}
        found: dict[str, Figures] = {name: {} for name in on}
        for measure in CATALOGUE.values():
            if not measure.uses.intersection(uses) or measure.needs & _OF_SEVERAL_FITS:
                continue
            of_documents = measure.group in ("prediction", "classes")
            common = None if of_documents else self._figure(measure, "train", trained)
            for part, inputs in parts.items():
                figure = self._figure(measure, part, inputs) if of_documents else common
                if figure is not None:
                    found[part][measure.name] = figure
        return found

    def _figure(self, measure: Measure, part: str, inputs: ModelInputs) -> float | None:
        return None if self.unavailable(measure.name, part) else float(measure.function(inputs))
