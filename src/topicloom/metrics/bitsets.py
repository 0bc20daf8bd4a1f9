"""In how many documents words are together: a bit for each word and document, and no sort."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Groups = Sequence[npt.NDArray[np.integer[Any]]]

_CELLS_AT_ONCE = 1 << 23  # numbers of one or two bytes that are worked on
_OF_A_STRETCH = 200  # operations on bits that take as long as one stretch does


@cache
def _bits_set() -> npt.NDArray[np.uint8]:
    """(65536,) how many bits of each number are set; NumPy counts them itself from version 2 on."""
    numbers = np.arange(1 << 16, dtype=np.uint16)
    set_bits: npt.NDArray[np.uint8] = np.unpackbits(numbers.view(np.uint8)).reshape(-1, 16).sum(1, dtype=np.uint8)
    return set_bits


def documents_at_once(n_words: int) -> int:
    """Of how many documents the presence of so many words is to be counted at a time."""
    return _CELLS_AT_ONCE // max(1, n_words) + 1


def bits_pay(tokens: npt.NDArray[np.int32], n_documents: int, groups: Groups, n_words: int) -> bool:
    """Whether bits are faster than stretches, of which rare words have few, however many documents there are.

    Args:
        tokens, groups, n_words: as for `presence_sums`.
        n_documents: D.
    """
    per_word = np.bincount(tokens[tokens >= 0], minlength=n_words)
    stretches = sum(int(per_word[group].sum()) for group in groups)
    pairs = sum(len(group) ** 2 for group in groups) / 2
    return bool((n_words + pairs / 16) * n_documents < _OF_A_STRETCH * stretches)


def presence_sums(
    tokens: npt.NDArray[np.int32], offsets: npt.NDArray[np.int64], groups: Groups, n_words: int
) -> npt.NDArray[np.float64]:
    """(G, n, n) documents that hold both of two words of a group, pair by pair; the diagonal is those that hold one.

    Args:
        tokens: (n_tokens,) the rank of each token among the words that matter, -1 for the others.
        offsets: (D + 1,) where documents begin and end.
        groups: G lists of word ranks, each once in its list; n is the longest. What stands beyond the end of a shorter
            one means nothing.
        n_words: ranks go from 0 to n_words - 1.
    """
    n_documents = len(offsets) - 1
    there = np.zeros((n_words + 1, -(-n_documents // 16) * 16), bool)  # the last row is for what does not matter
    there[tokens, np.repeat(np.arange(n_documents), np.diff(offsets))] = True
    bits = np.packbits(there, axis=1).view(np.uint16)  # (W + 1, D / 16)

    size = max((len(group) for group in groups), default=0)
    members = np.zeros((len(groups), size), np.int64)
    for row, group in zip(members, groups, strict=True):
        row[: len(group)] = group
    sums, bits_set = np.zeros((len(groups), size, size)), _bits_set()
    step = max(1, _CELLS_AT_ONCE // max(1, size * bits.shape[1]))
    for first in range(0, len(groups), step):
        own = bits[members[first : first + step]]  # (g, n, D / 16)
        some = sums[first : first + step]
        for place in range(size):
            both = own[:, place:] & own[:, [place]]  # (g, n - place, D / 16)
            some[:, place, place:] = some[:, place:, place] = bits_set[both].sum(2, dtype=np.int64)
    return sums
