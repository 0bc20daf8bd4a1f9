"""In how many documents words are together: a bit for each word and document, and no sort."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_CELLS_AT_ONCE = 1 << 24  # bytes of what is worked on
_ONES = np.unpackbits(np.arange(1 << 16, dtype=np.uint16).view(np.uint8)).reshape(-1, 16).sum(1, dtype=np.uint8)


def documents_at_once(n_words: int) -> int:
    """Of how many documents the presence of so many words is to be counted at a time."""
    return _CELLS_AT_ONCE // max(1, n_words) + 1


def presence_sums(
    tokens: npt.NDArray[np.int32],
    offsets: npt.NDArray[np.int64],
    groups: Sequence[npt.NDArray[np.integer[Any]]],
    n_words: int,
) -> npt.NDArray[np.float64]:
    """(G, n, n) documents that hold both of two words of a group, pair by pair; the diagonal is those that hold one.

    Args:
        tokens: (n_tokens,) the rank of each token among the words that matter, -1 for the others.
        offsets: (D + 1,) where documents begin and end.
        groups: G lists of word ranks, each once in its list; n is the longest. Shorter ones are filled up with 0.
        n_words: ranks go from 0 to n_words - 1.
    """
    n_documents = len(offsets) - 1
    there = np.zeros((n_words + 1, -(-n_documents // 16) * 16), bool)  # the last row is of no word
    there[tokens, np.repeat(np.arange(n_documents), np.diff(offsets))] = True
    there[-1] = False
    bits = np.packbits(there, axis=1).view(np.uint16)  # (W + 1, D / 16)

    size = max((len(group) for group in groups), default=0)
    members = np.full((len(groups), size), n_words)  # (G, n)
    for row, group in zip(members, groups, strict=True):
        row[: len(group)] = group
    sums = np.zeros((len(groups), size, size))
    step = max(1, _CELLS_AT_ONCE // max(1, size * bits.shape[1]))
    for first in range(0, len(groups), step):
        some = slice(first, first + step)
        own = bits[members[some]]  # (g, n, D / 16)
        for place in range(size):
            sums[some, place] = _ONES[own & own[:, [place]]].sum(2, dtype=np.int64)  # (g, n)
    return sums
