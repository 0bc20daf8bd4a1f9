"""A corpus in a notebook: its sizes, its fields, its most frequent words and its first documents."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..display import html_table
from .counts import CountedDocuments
from .covariates import Categories
from .fields import Fields

_WORDS, _DOCUMENTS, _CHARACTERS = 20, 5, 200


def corpus_as_html(corpus: CountedDocuments) -> str:
    """Return a summary of a corpus as HTML, in which all text is escaped."""
    fields: Fields = getattr(corpus, "fields", None) or Fields.of(corpus.n_docs)
    tokens = np.asarray(corpus.counts.sum(axis=0)).ravel()
    frequent = [corpus.vocabulary[word] for word in np.argsort(-tokens, kind="stable")[:_WORDS]]
    rows: list[tuple[str, Any]] = [
        ("documents without a word", f"{int(corpus.is_empty.sum()):,}"),
        ("most frequent words", frequent),
        *_known_fields(fields),
    ]
    about = html_table(["", ""], rows, repr(corpus))
    return about + (_first_documents(fields) if corpus.n_docs else "")


def _known_fields(fields: Fields) -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    if fields.labels is not None:
        classes = sorted({label for label in fields.labels if label})
        rows.append(
            ("classes", f"{len(classes):,}: {', '.join(classes[:_WORDS])}{', ...' if classes[_WORDS:] else ''}")
        )
    if fields.times is not None and not np.isnat(fields.times).all():
        first, last = (np.datetime_as_string(end, "D") for end in (np.nanmin(fields.times), np.nanmax(fields.times)))
        rows.append(("times", f"{first} to {last}"))
    if fields.vectors is not None:
        rows.append(("vectors", f"of {fields.vectors.shape[1]:,} numbers"))
    for name, values in fields.covariates.items():
        kind = f"{len(values.names):,} categories" if isinstance(values, Categories) else "numbers"
        rows.append((f"covariate {name}", kind))
    return [*rows, ("texts", "kept" if fields.texts is not None else "not kept")]


def _first_documents(fields: Fields) -> str:
    count = min(_DOCUMENTS, len(fields.ids))
    columns: dict[str, list[Any]] = {"id": [fields.ids[row] for row in range(count)]}
    if fields.labels is not None:
        columns["class"] = [fields.labels[row] for row in range(count)]
    if fields.times is not None:
        columns["time"] = [
            None if np.isnat(time) else str(np.datetime_as_string(time, "D")) for time in fields.times[:count]
        ]
    if fields.texts is not None:
        columns["text"] = [_beginning(fields.texts[row]) for row in range(count)]
    return html_table(list(columns), list(zip(*columns.values(), strict=True)), "The first documents")


def _beginning(text: str) -> str:
    return text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]}..."
