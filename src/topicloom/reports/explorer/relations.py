"""How topics are related to each other, to times and to classes, in the form that the page shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ...errors import InputError
from ...topics.groups import groups_of
from ...topics.hierarchy import Hierarchy, hierarchy
from ...topics.shares import GroupShares, group_shares, words_of_groups
from ...topics.trends import over_time
from .packing import Array

if TYPE_CHECKING:
    from ...topics.view import Topics

_MOST_CLASSES = 40
_WORDS_OF_CLASS = 12


def topic_tree(topics: Topics) -> Hierarchy:
    """Return the tree of the topics and their distances."""
    documents = topics.documents
    return hierarchy(
        topics.components, documents.theta, topics.word_counts, topics.vocabulary, empty=documents.empty, top_n=1
    )


def period_shares(topics: Topics) -> dict[str, Any] | None:
    """Return the shares of topics by period and their trends, or None if no time is known."""
    documents = topics.documents
    if documents.times is None:
        return None
    try:
        found = over_time(documents.theta, documents.times, empty=documents.empty)
    except InputError:
        return None
    trends = [{"topic": each.topic, "slope": each.slope, "direction": each.direction} for each in found.trends]
    return {"names": found.period_names, "unit": found.period, "trends": trends} | _rows(found.shares)


def class_shares(topics: Topics) -> dict[str, Any] | None:
    """Return the shares of topics by class and the words of each class, or None if no class is known.

    Of many classes, those with the most documents are shown.
    """
    documents = topics.documents
    if documents.labels is None:
        return None
    try:
        groups, names = groups_of(documents.fields)
    except InputError:
        return None
    sizes = np.bincount(groups[groups >= 0], minlength=len(names))
    shown = np.sort(np.argsort(-sizes, kind="stable")[:_MOST_CLASSES])
    place = np.full(len(names) + 1, -1, np.intp)  # the last entry is that of no group
    place[shown] = np.arange(len(shown))
    names = [names[group] for group in shown.tolist()]
    codes = place[groups]
    known = np.where(documents.empty, -1, codes)
    found = group_shares(documents.theta, known, len(names))
    members = sp.csr_array(
        (np.ones(int((codes >= 0).sum())), (codes[codes >= 0], np.flatnonzero(codes >= 0))),
        shape=(len(names), len(codes)),
    )
    typical = words_of_groups(sp.csr_array(members @ topics.corpus.counts), topics.vocabulary, _WORDS_OF_CLASS)
    words = [[word for word, *_ in row] for row in typical]
    return {"names": names, "words": words} | _rows(found)


def _rows(shares: GroupShares) -> dict[str, Any]:
    """Return shares as rows of JSON; a row without documents, or without an interval, is null."""
    return {
        "mean": _plain(shares.mean),
        "low": _plain(shares.low),
        "high": _plain(shares.high),
        "documents": shares.n_docs.tolist(),
    }


def _plain(values: Array) -> list[list[float] | None]:
    rounded = values.round(5)
    return [row if np.isfinite(row).all() else None for row in rounded.tolist()]
