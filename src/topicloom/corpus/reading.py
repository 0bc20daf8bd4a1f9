"""The documents of a file, over the words of a fitted model and with the covariates that it knows."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from ..files import holds_corpus
from ..text import AnyTokenizer, Document, read
from ..text.characters import brief
from .corpus import Corpus
from .fields import FieldKind
from .inputs import corpus_of_documents
from .missing import as_number
from .split import Split, split_by_covariate

logger = logging.getLogger("topicloom")

_NO_COVARIATES = ("vectors", "times")  # fields with names of their own


def documents_of_file(
    source: str,
    words: Sequence[str],
    tokenizer: AnyTokenizer,
    reading: Mapping[str, Any],
    fields: Mapping[str, FieldKind],
    at_once: int | None = None,
) -> Iterator[Corpus]:
    """Yield the documents of a file as corpora over the words of a model.

    All of them have the same covariates: those of the training documents that the first documents have. A word among
    numbers is an unknown value, and a warning names the first one.

    Args:
        source: the file, or "-" for standard input.
        words, tokenizer: the words and the tokenizer of the model.
        reading: how the file is read, as for `topicloom.text.read`.
        fields: the fields of the training documents, as `Fields.kinds` returns them.
        at_once: the number of documents of a corpus; None is all.

    Raises:
        InputError: the file cannot be read, or a document cannot be used.
    """
    known = {name: kind for name, kind in fields.items() if name not in _NO_COVARIATES}
    documents = read(source, **reading, covariates=tuple(known))
    n_done = 0
    warned: set[str] = set()
    while chunk := list(islice(documents, at_once)):
        if n_done == 0:
            present = {name for document in chunk for name in document.covariates or ()}
            known = {name: kind for name, kind in known.items() if name in present}
        for name in [name for name, kind in known.items() if not isinstance(kind, tuple) and name not in warned]:
            if (row := _first_word(chunk, name)) is not None:
                warned.add(name)
                logger.warning(
                    "the covariate %r is %s in document %d, which is no number, as the training documents have; such "
                    "values are taken as unknown",
                    name, brief((chunk[row].covariates or {})[name]), n_done + row,
                )  # fmt: skip
        yield corpus_of_documents(chunk, words, tokenizer, n_done, known)
        n_done += len(chunk)


def _first_word(documents: Sequence[Document], name: str) -> int | None:
    """Return the first document whose value of a covariate is neither a number nor missing; None if there is none."""
    values = ((document.covariates or {}).get(name) for document in documents)
    return next((row for row, value in enumerate(values) if as_number(value) is None), None)


def parts_of_source(
    source: str,
    words: Sequence[str],
    tokenizer: AnyTokenizer,
    reading: Mapping[str, Any],
    fields: Mapping[str, FieldKind],
    column: str,
) -> Split:
    """Read what a model was trained on once more, and divide it as for the training.

    Args:
        source: the file, or a saved corpus.
        words, tokenizer, reading, fields: as for `documents_of_file`.
        column: the column, or the covariate of the corpus, that says the part of each document.

    Raises:
        InputError: it cannot be read, or the column is missing or says something else.
    """
    if holds_corpus(source):
        return split_by_covariate(Corpus.load(source).over(words), column)
    found = documents_of_file(source, words, tokenizer, reading, {**fields, column: ()})
    return split_by_covariate(next(found), column)
