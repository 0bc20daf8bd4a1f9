"""Measures of topics by their words, under one name each: what training can watch and evaluation reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, TypeAlias

from .. import metrics
from ..errors import InputError, SettingError, nearest
from ..metrics import Coherence, Measured, Reference
from ..text import Pretokenized
from .corpus import Corpus

Topics: TypeAlias = "list[list[str]]"

LONGEST = 25  # words of a topic that some measure reads by default


class Source:
    """Documents that coherence is measured against, their words counted when they are first asked for, and kept.

    Args:
        name: what results call it.
        documents: gives which words each document has.
        windows: gives the documents' tokens in their order; or a sentence that says why they are not known.
    """

    def __init__(self, name: str, documents: Callable[[], Reference], windows: Callable[[], Reference] | str) -> None:
        self.name, self._documents, self._windows = name, documents, windows

    @classmethod
    def of_corpus(cls, name: str, corpus: Corpus, tokens: Iterable[Sequence[str]] | None = None) -> Source:
        """A corpus, whose raw texts are cut again where it kept them.

        Args:
            tokens: the lists of tokens that it was made of, where they are at hand.
        """
        windows: Callable[[], Reference] | str
        texts: Iterable[Any] | None = corpus.texts if tokens is None else tokens
        if texts is None or (tokens is None and isinstance(corpus.tokenizer, Pretokenized)):
            windows = f"the order of words is not known: of {name} there are only counts"
        else:
            windows = lambda: Reference.from_tokens(map(corpus.tokenizer, texts), name)  # noqa: E731
        return cls(name, lambda: Reference.from_counts(corpus.counts, corpus.vocabulary, name), windows)

    @classmethod
    def of_reference(cls, reference: Reference) -> Source:
        """A reference corpus of the user's making."""
        name = reference.name or "the reference"
        unknown = f"the order of words is not known: of {name} there are only counts"
        return cls(name, lambda: reference, (lambda: reference) if reference.ordered else unknown)

    def require(self, names: Iterable[str]) -> None:
        """Raises InputError where one of the measures needs the order of words, and it is not known."""
        for name in WINDOWED & set(names):
            if isinstance(self._windows, str):
                raise InputError(f"{name} cannot be measured: {self._windows}")

    @cached_property
    def documents(self) -> Reference:
        """Which words each document has."""
        return self._documents()

    @cached_property
    def windows(self) -> Reference:
        """The documents' tokens in their order.

        Raises:
            InputError: they are not known.
        """
        if isinstance(self._windows, str):
            raise InputError(self._windows)
        return self._windows()


Measure: TypeAlias = "Callable[[Topics, Source, int | None], Measured]"


def _document_npmi(topics: Topics, source: Source, top_n: int | None) -> Measured:
    n = top_n or 10
    per_topic = metrics.document_npmi(topics, source.documents, n)
    documents = {"reference": source.name, "n_documents": source.documents.n_documents}
    return Measured(
        float(per_topic.mean()) if len(per_topic) else 0.0, top_n=n, **documents, per_topic=per_topic.tolist()
    )


def _coherence(name: str) -> Measure:
    measure: Callable[..., Coherence] = getattr(metrics, name)

    def measured(topics: Topics, source: Source, top_n: int | None) -> Measured:
        reference = source.windows if name in WINDOWED else source.documents
        found = measure(topics, reference, top_n=top_n or 10).to_dict()
        value = found.pop("mean")
        del found["measure"]
        return Measured(value, **(found | {"reference": source.name, "unseen": list(found["unseen"])}))

    return measured


def _diversity(function: Callable[..., Measured]) -> Measure:
    def measured(topics: Topics, source: Source, top_n: int | None) -> Measured:
        return function(topics) if top_n is None else function(topics, top_n=top_n)

    return measured


WINDOWED = {"c_v", "c_npmi", "c_uci"}  # need the order of words
COHERENCES: dict[str, Measure] = {"document_npmi": _document_npmi} | {
    name: _coherence(name) for name in ("c_v", "c_npmi", "c_uci", "u_mass")
}
DIVERSITIES: dict[str, Measure] = {
    name: _diversity(getattr(metrics, name))
    for name in ("topic_diversity", "topic_uniqueness", "inverted_rbo", "redundancy")
}
TOPIC_MEASURES: dict[str, Measure] = COHERENCES | DIVERSITIES


def known_names(names: Iterable[str], known: Iterable[str], what: str) -> list[str]:
    """The names, each once, in their order.

    Raises:
        SettingError: one of them is not known, or they are one string.
    """
    if isinstance(names, str):
        raise SettingError(f"{what} should be a list of names; give [{names!r}]")
    for name in (chosen := list(dict.fromkeys(names))):
        if name not in known:
            raise SettingError(f"{what} names {name!r}; {nearest(str(name), known)}")
    return chosen


_UNTOLD = {"reference", "epsilon", "counting", "method", "tokens", "unit"}  # the same in every line, or in the name


def line_of(measured: Measured) -> str:
    """The settings of a figure that tell it from others, on a line."""
    told = {
        name.replace("_", " "): value
        for name, value in measured.settings.items()
        if value not in (None, "") and not isinstance(value, list | tuple | dict)
        if name not in _UNTOLD and not name.startswith("n_")
    }
    return ", ".join(f"{name} {value}" for name, value in told.items())
