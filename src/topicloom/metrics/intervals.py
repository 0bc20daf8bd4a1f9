"""Intervals of windows that contain a word, and how much the intervals of two words overlap.

Everything is done by sorting and binary search; there is no loop over windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Longs = npt.NDArray[np.int64]

_INTERVALS_AT_ONCE = 1 << 21
_OVERLAPS_AT_ONCE = 1 << 21


class Intervals(NamedTuple):
    """n half-open intervals [start, end) on the axis of all windows. Those of the same word do not touch."""

    word: Longs  # (n,) ranks, rising
    start: Longs  # (n,) rising within a word
    end: Longs  # (n,)
    length: int  # of the axis, in windows


def intervals_of(tokens: npt.NDArray[np.int32], offsets: Longs, window: int, forget: bool) -> Intervals:
    """Find the windows that contain each word.

    The windows of all documents are numbered one after another. A document of n tokens has the windows that start at
    its tokens 0 to n - window, or a single window if it is shorter than that.

    Args:
        tokens: (n_tokens,) the rank of each token among the words that are counted, -1 for all other tokens.
        offsets: (D + 1,) where documents begin and end.
        window: tokens in a window.
        forget: count as gensim does. A window then no longer contains a word once the first of the word's occurrences
            has left it, until the next occurrence enters. Otherwise the word is there until its last occurrence leaves.
    """
    place: Longs = np.flatnonzero(tokens >= 0)  # (n,)
    document = np.searchsorted(offsets, place, side="right") - 1
    word: npt.NDArray[Any] = tokens[place]
    # NumPy sorts 16-bit numbers by radix, which is several times as fast.
    order = np.argsort(word.astype(np.uint16) if word.max(initial=0) < 1 << 16 else word, kind="stable")
    place, document, word = place[order], document[order], word[order].astype(np.int64)

    n_windows = np.maximum(np.diff(offsets) - window + 1, 1)
    axis = np.concatenate([[0], np.cumsum(n_windows)])  # (D + 1,)
    entered = np.maximum(place - window + 1, offsets[document])  # the first window that contains this occurrence
    left = place
    if forget:
        n_tokens = len(tokens)
        left = place[np.searchsorted(word * n_tokens + place, word * n_tokens + entered)]
    shift = axis[document] - offsets[document]
    start: Longs = entered + shift
    end: Longs = np.minimum(left + shift + 1, axis[document + 1])

    # Starts and ends both rise within a word, so intervals that touch are neighbours and can be joined.
    fresh = np.ones(len(word), bool)
    fresh[1:] = (word[1:] != word[:-1]) | (start[1:] > end[:-1])
    first = np.flatnonzero(fresh)
    last = np.append(first[1:], len(word)) - 1
    return Intervals(word[first], start[first], end[last] if len(first) else end, int(axis[-1]))


def overlap_sums(
    intervals: Intervals, groups: Sequence[npt.NDArray[np.integer[Any]]], n_words: int
) -> npt.NDArray[np.float64]:
    """Sum the overlaps between the intervals of every pair of words within a group.

    Args:
        intervals: those of all words.
        groups: G arrays of word ranks. No array contains a word twice; n is the length of the longest.
        n_words: ranks go from 0 to n_words - 1.

    Returns:
        (G, n, n) windows that contain both words. The diagonal is the total length of a word's own intervals.
    """
    size = max((len(group) for group in groups), default=0)
    member_word = np.concatenate([np.asarray(group, np.int64) for group in groups])
    member_slot = np.concatenate([row * size + np.arange(len(group)) for row, group in enumerate(groups)])
    per_word = np.bincount(intervals.word, minlength=n_words)
    sums = np.zeros(len(groups) * size * size)
    # Groups are handled together while they have few intervals: those of a word are repeated for each group it is in.
    load = np.cumsum(np.bincount(member_slot // size, per_word[member_word], minlength=len(groups)))
    batch = (load // _INTERVALS_AT_ONCE).astype(np.int64)[member_slot // size]
    for number in np.unique(batch):
        mine = batch == number
        _add(sums, intervals, member_word[mine], member_slot[mine], size, per_word)
    square = sums.reshape(len(groups), size, size)
    return square + square.transpose(0, 2, 1)


def _add(
    sums: npt.NDArray[np.float64], intervals: Intervals, words: Longs, slots: Longs, size: int, per_word: Longs
) -> None:
    """Add the overlaps of some members to `sums`: each pair in one of its orders, half of a length on the diagonal.

    Args:
        sums: (G * size * size,)
        intervals: those of all words.
        words: (m,) the rank of each member.
        slots: (m,) the member's group * size + its place in that group.
        size: length of the longest group.
        per_word: number of intervals of each word.
    """
    first = np.cumsum(per_word) - per_word
    counts = per_word[words]
    chosen = np.repeat(first[words], counts) + _ranges(counts)
    slot = np.repeat(slots, counts)
    group, local = np.divmod(slot, size)
    start, end = intervals.start[chosen], intervals.end[chosen]
    base = group * size * size
    sums += np.bincount(base + local * (size + 1), (end - start) / 2, minlength=len(sums))

    key = group * intervals.length + start
    order = np.argsort(key)
    key, start, end, local, base = key[order], start[order], end[order], local[order], base[order]
    # The intervals of the same group that start after this one and before its end directly follow it.
    partners = np.searchsorted(key, key - start + end) - np.arange(1, len(key) + 1)
    for low, high in _pieces(partners):
        left = np.repeat(np.arange(low, high), partners[low:high])
        right = left + 1 + _ranges(partners[low:high])
        overlap = np.minimum(end[left], end[right]) - start[right]
        sums += np.bincount(base[left] + local[left] * size + local[right], overlap, minlength=len(sums))


def _ranges(counts: Longs) -> Longs:
    """Return 0, 1, ... up to each of the counts, one range after another."""
    ends = np.cumsum(counts)
    return np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts, counts)


def _pieces(counts: Longs) -> Iterator[tuple[int, int]]:
    """Yield consecutive ranges whose counts have a bounded sum, or that consist of a single count."""
    ends = np.cumsum(counts)
    low = 0
    while low < len(counts):
        done = ends[low - 1] if low else 0
        high = max(int(np.searchsorted(ends, done + _OVERLAPS_AT_ONCE, side="right")), low + 1)
        yield low, high
        low = high
