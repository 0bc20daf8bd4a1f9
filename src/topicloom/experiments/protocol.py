"""The training, validation and test documents of an experiment, and the measures of a model on each of these parts."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

from ..corpus import Corpus
from ..corpus.inputs import Split, corpus_of, corpus_over, split_by_covariate
from ..corpus.inputs import split as split_at_random
from ..errors import InputError, SettingError
from ..evaluation import Documents, ModelInputs
from ..metrics import CATALOGUE, Measure
from ..metrics.catalogue import Use
from ..models.base import TopicModel

Measures = dict[str, float]
Parts: TypeAlias = "Split | Sequence[Any] | str | None"

HELD_OUT = ("validation", "test")
_COMPARED: tuple[Use, ...] = ("comparison",)
_OF_SEVERAL_FITS = {"seconds", "other runs"}  # needs that only the caller, who makes several fits, can meet


def split_documents(
    documents: Any, parts: Parts = None, validation: float = 0.1, test: float = 0.2
) -> tuple[Split, dict[str, Any]]:
    """Divide documents into three parts. Documents without a word are left out.

    Args:
        documents: a Corpus, or anything else that `fit` takes.
        parts: None draws the parts at random, with a fixed seed. The name of a covariate takes the parts from its
            values, which are train, validation (or val, valid, dev) and test. Three corpora, for training, validation
            and test, are used as they are, over the vocabulary of the first; `documents` is then not read.
        validation, test: the shares of the documents, for parts that are drawn.

    Returns:
        the parts, and what a plan says about them: digests of the documents, and how they were divided.

    Raises:
        InputError: the documents cannot be read, a part would be empty, or the covariate has other values.
        SettingError: the shares leave nothing to train on.
    """
    if parts is not None and not isinstance(parts, str):
        found = _own_parts(parts)
        return found, {"corpus": _digest(found), "split": "own parts", **_fields_of(found)}
    corpus = documents if isinstance(documents, Corpus) else corpus_of(documents)
    if parts is None:
        drawn = split_at_random(corpus, validation, test)
        return drawn, {"corpus": corpus.digest, "split": {"validation": validation, "test": test}, **_fields_of(drawn)}
    found = _without_empty(split_by_covariate(corpus, parts))
    return found, {"corpus": corpus.digest, "split": {"column": parts, "digest": _digest(found)}, **_fields_of(found)}


def _digest(parts: Split) -> str:
    return hashlib.sha256(" ".join(part.digest for part in parts).encode()).hexdigest()[:16]


def _fields_of(parts: Split) -> dict[str, Any]:
    """Return, for a plan, digests of the fields of the documents that a model can read, if there are any."""
    fields = {name: digests for name, part in parts._asdict().items() if (digests := part.fields.digests())}
    return {"fields": fields} if fields else {}


def require_same_documents(before: Mapping[str, Any], divided: Mapping[str, Any], kept: str) -> None:
    """Check that a directory has the documents that `split_documents` divided.

    Args:
        before: the plan in the directory. Those of earlier versions do not have the fields of the documents.
        divided: what `split_documents` says about the documents.
        kept: the directory and what it has, as the beginning of a message.

    Raises:
        InputError: it has other documents, or divided them differently.
    """
    for name, value in divided.items():
        if name == "fields" and before.get(name, value) != value:
            raise InputError(f"{kept} with other vectors, times or covariates of the documents; give another directory")
        if name != "fields" and before.get(name) != value:
            raise InputError(f"{kept} with another {name}; give another directory")


def _own_parts(parts: Sequence[Any]) -> Split:
    """Return three parts over the vocabulary of the first."""
    if isinstance(parts, Corpus) or not isinstance(parts, Sequence) or len(parts) != 3:
        raise SettingError(
            "`split` should be three corpora (for training, validation and test) or the name of a covariate"
        )
    train = parts[0] if isinstance(parts[0], Corpus) else corpus_of(parts[0])
    rest = (corpus_over(part, train.vocabulary, train.tokenizer, fractional=True) for part in parts[1:])
    return _without_empty(Split(train, *rest))


def _without_empty(parts: Split) -> Split:
    """Leave out documents without a word of the vocabulary."""
    kept = Split(*(part.subset(~part.is_empty) if part.is_empty.any() else part for part in parts))
    for name, part in zip(Split._fields, kept, strict=True):
        if not part.n_docs:
            raise InputError(f"the {name} part has no document with a word of the vocabulary; give it some documents")
    return kept


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
        return None

    def measure(
        self, model: TopicModel, on: Sequence[str] = HELD_OUT, uses: Collection[Use] = _COMPARED
    ) -> dict[str, Measures]:
        """Measure a fitted model.

        Args:
            model: the fitted model.
            on: the parts to measure on.
            uses: takes the measures that the catalogue has for these uses.

        Returns:
            for each part, the measures of the topics and those of the part's documents, by name.
        """
        reference = self._documents["train"].reference
        trained = ModelInputs(model, self._documents["train"], reference)
        parts = {name: ModelInputs(model, self._documents[name], reference, trained) for name in on}
        found: dict[str, Measures] = {name: {} for name in on}
        for measure in CATALOGUE.values():
            if not measure.uses.intersection(uses) or measure.needs & _OF_SEVERAL_FITS:
                continue
            of_documents = measure.group in ("prediction", "classes")
            common = None if of_documents else self._value(measure, "train", trained)
            for part, inputs in parts.items():
                value = self._value(measure, part, inputs) if of_documents else common
                if value is not None:
                    found[part][measure.name] = value
        return found

    def _value(self, measure: Measure, part: str, inputs: ModelInputs) -> float | None:
        return None if self.unavailable(measure.name, part) else float(measure.function(inputs))
