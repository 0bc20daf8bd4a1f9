"""Counts of documents that contain two words, from one bit for each word and document. Nothing is sorted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Groups = Sequence[npt.NDArray[np.integer[Any]]]

_NUMBERS_AT_ONCE = 1 << 23  # size of a working array whose numbers take one or two bytes
_OPERATIONS_PER_INTERVAL = 200  # operations on bits that take as long as handling one interval


@cache
def _bits_set() -> npt.NDArray[np.uint8]:
    """(65536,) how many bits of each number are set; NumPy has a function for this only from version 2 on."""
    numbers = np.arange(1 << 16, dtype=np.uint16)
    set_bits: npt.NDArray[np.uint8] = np.unpackbits(numbers.view(np.uint8)).reshape(-1, 16).sum(1, dtype=np.uint8)
    return set_bits


def documents_at_once(n_words: int) -> int:
    """Return the number of documents to work on at a time for this number of words."""
    return _NUMBERS_AT_ONCE // max(1, n_words) + 1


def bits_are_faster(tokens: npt.NDArray[np.int32], n_documents: int, groups: Groups, n_words: int) -> bool:
    """Return whether bits are faster than intervals.

    Intervals are faster for rare words, which have few of them however many documents there are.

    Args:
        tokens, groups, n_words: as for `joint_document_counts`.
        n_documents: D.
    """
    per_word = np.bincount(tokens[tokens >= 0], minlength=n_words)
    n_intervals = sum(int(per_word[group].sum()) for group in groups)
    pairs = sum(len(group) ** 2 for group in groups) / 2
    return bool((n_words + pairs / 16) * n_documents < _OPERATIONS_PER_INTERVAL * n_intervals)


def joint_document_counts(
    tokens: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64], groups: Groups, n_words: int
) -> npt.NDArray[np.float64]:
    """Count the documents that contain both words of every pair within a group.

    Args:
        tokens: (n_tokens,) the rank of each token among the words that are counted, -1 for all other tokens.
        offsets: (D + 1,) where documents begin and end.
        groups: G arrays of word ranks. No array contains a word twice; n is the length of the longest.
        n_words: ranks go from 0 to n_words - 1.

    Returns:
        (G, n, n) counts. The diagonal counts the documents that contain the word. Entries beyond the end of a shorter
        group have no meaning.
    """
    n_documents = len(offsets) - 1
    contains = np.zeros((n_words + 1, -(-n_documents // 16) * 16), bool)  # the last row is for all other tokens
    contains[tokens, np.repeat(np.arange(n_documents), np.diff(offsets))] = True
    bits = np.packbits(contains, axis=1).view(np.uint16)  # (W + 1, D / 16)

    size = max((len(group) for group in groups), default=0)
    members = np.zeros((len(groups), size), np.int64)
    for row, group in zip(members, groups, strict=True):
        row[: len(group)] = group
    sums, bits_set = np.zeros((len(groups), size, size)), _bits_set()
    step = max(1, _NUMBERS_AT_ONCE // max(1, size * bits.shape[1]))
    for first in range(0, len(groups), step):
        own = bits[members[first : first + step]]  # (g, n, D / 16)
        some = sums[first : first + step]
        for place in range(size):
            both = own[:, place:] & own[:, [place]]  # (g, n - place, D / 16)
            some[:, place, place:] = some[:, place:, place] = bits_set[both].sum(2, dtype=np.int64)
    return sums
