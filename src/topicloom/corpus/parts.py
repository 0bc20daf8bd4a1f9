"""The part of a corpus that one of several processes learns from, and what is counted over all parts."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from ..distributed.ranks import current
from ..errors import InputError
from ..metrics.cooccurrence import Total
from .corpus import Corpus


def own_part(corpus: Corpus) -> Corpus:
    """Return the documents that this rank learns from: one of as many runs of consecutive documents as there are ranks.

    A memory-mapped corpus stays on disk.

    Raises:
        InputError: the corpora of the ranks have different words.
    """
    ranks = current()
    if ranks.size == 1:
        return corpus
    words = hashlib.sha256("\n".join(corpus.vocabulary).encode("utf-8", "surrogatepass")).digest()
    code = int.from_bytes(words[:7], "big")
    if len(set(ranks.every(code))) > 1:
        raise InputError("the processes have corpora with different words; give all of them the same vocabulary")
    if ranks.documents == "part":
        return corpus
    if len(set(ranks.every(corpus.n_docs))) > 1:
        raise InputError(
            "the processes have corpora of different sizes; give each all documents, or join with `documents='part'`"
        )
    first, last = (corpus.n_docs * number // ranks.size for number in (ranks.rank, ranks.rank + 1))
    return corpus[first:last]


def sum_of_ranks() -> Total | None:
    """Return a function that returns the sum of the arrays of all current ranks; None if there is only one."""
    return None if current().size == 1 else lambda array: current().sum(torch.from_numpy(array)).numpy()


def totals(corpus: Corpus) -> tuple[npt.NDArray[Any], npt.NDArray[Any], int]:
    """Count over the documents of all ranks.

    Returns:
        (V,) the tokens of each word, (V,) the documents with each word, and the number of documents with words.
    """
    filled = np.array([(~corpus.is_empty).sum()])
    found = corpus.word_counts, corpus.document_counts, filled
    counted = [current().sum(torch.from_numpy(array)).numpy() for array in found]
    return counted[0], counted[1], int(counted[2][0])
