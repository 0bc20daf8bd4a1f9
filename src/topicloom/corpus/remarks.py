"""What is said about the documents of a corpus when it is made."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence

import numpy as np

from ..text.characters import brief
from ..text.strings import RowNumbers
from .counts import CountedDocuments

logger = logging.getLogger("topicloom")


def warn_of_empty(corpus: CountedDocuments) -> None:
    """Warn if documents have no word of the vocabulary."""
    if n_empty := int(corpus.is_empty.sum()):
        logger.warning(
            "%s of %s documents have no word of the vocabulary; they keep their rows", n_empty, corpus.counts.shape[0]
        )


def warn_of_ids(ids: Sequence[str]) -> None:
    """Warn if an id occurs more than once, or is empty."""
    if isinstance(ids, RowNumbers):
        return
    # Hashes take 8 bytes for each document; the ids of a large corpus may not fit in memory.
    hashes = np.fromiter(map(hash, ids), np.int64, len(ids))
    distinct, n_each = np.unique(hashes, return_counts=True)
    repeated = set(distinct[n_each > 1].tolist()) | {hash("")}
    if len(distinct) == len(ids) and not (hashes == hash("")).any():
        return
    found = Counter(each for each, digest in zip(ids, hashes.tolist(), strict=True) if digest in repeated)
    n_empty = found.pop("", 0)
    several = [(each, count) for each, count in found.most_common() if count > 1]
    clauses = []
    if several:
        clauses.append(f"the id {brief(several[0][0])} occurs {several[0][1]:,} times")
        if n_more := len(several) - 1:
            clauses.append("1 other id is repeated" if n_more == 1 else f"{n_more:,} other ids are repeated")
    if n_empty:
        clauses.append("1 document has an empty id" if n_empty == 1 else f"{n_empty:,} documents have an empty id")
    logger.warning("%s; give each document an id of its own, by which it can be found", ", ".join(clauses))
