"""Stretches of an axis on which words are present, and by how much they overlap: sorts and searches, no loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Longs = npt.NDArray[np.int64]

_STRETCHES_AT_ONCE = 1 << 21
_OVERLAPS_AT_ONCE = 1 << 21


class Stretches(NamedTuple):
    """n stretches [start, end), those of one word apart from one another."""

    word: Longs  # (n,) ranks, rising
    start: Longs  # (n,) rising within a word
    end: Longs  # (n,)
    length: int  # of the axis


def stretches_of(tokens: npt.NDArray[np.int32], offsets: Longs, window: int, forget: bool) -> Stretches:
    """Which windows hold each word; a place on the axis is a window.

    Document d of n tokens has the windows that start at its tokens 0 to n - window, or one if it is shorter.

    Args:
        tokens: (n_tokens,) the rank of each token among the words that matter, -1 for the others.
        offsets: (D + 1,) where documents begin and end.
        window: tokens in a window.
        forget: a window no longer holds a word once the first of its occurrences there has left it, until the next
            one comes in (as gensim counts); otherwise until the last has left it.
    """
    place: Longs = np.flatnonzero(tokens >= 0)  # (n,)
    document = np.searchsorted(offsets, place, side="right") - 1
    word: npt.NDArray[Any] = tokens[place]
    # numpy sorts 16-bit numbers by radix, several times as fast.
    order = np.argsort(word.astype(np.uint16) if word.max(initial=0) < 1 << 16 else word, kind="stable")
    place, document, word = place[order], document[order], word[order].astype(np.int64)

    n_windows = np.maximum(np.diff(offsets) - window + 1, 1)
    axis = np.concatenate([[0], np.cumsum(n_windows)])  # (D + 1,)
    entered = np.maximum(place - window + 1, offsets[document])  # the first window that holds this occurrence
    left = place
    if forget:
        n_tokens = len(tokens)
        left = place[np.searchsorted(word * n_tokens + place, word * n_tokens + entered)]
    shift = axis[document] - offsets[document]
    start: Longs = entered + shift
    end: Longs = np.minimum(left + shift + 1, axis[document + 1])

    # Starts and ends both rise within a word, so touching stretches are neighbours and their union is one.
    fresh = np.ones(len(word), bool)
    fresh[1:] = (word[1:] != word[:-1]) | (start[1:] > end[:-1])
    first = np.flatnonzero(fresh)
    last = np.append(first[1:], len(word)) - 1
    return Stretches(word[first], start[first], end[last] if len(first) else end, int(axis[-1]))


def overlap_sums(
    stretches: Stretches, groups: Sequence[npt.NDArray[np.integer[Any]]], n_words: int
) -> npt.NDArray[np.float64]:
    """(G, n, n) by how much the stretches of a group's words overlap, pair by pair; the diagonal is their own length.

    Args:
        stretches: of all words.
        groups: G lists of word ranks, each once in its list; n is the longest.
        n_words: ranks go from 0 to n_words - 1.
    """
    size = max((len(group) for group in groups), default=0)
    member_word = np.concatenate([np.asarray(group, np.int64) for group in groups])
    member_cell = np.concatenate([row * size + np.arange(len(group)) for row, group in enumerate(groups)])
    per_word = np.bincount(stretches.word, minlength=n_words)
    sums = np.zeros(len(groups) * size * size)
    # Groups go together while their stretches are few: words shared by many groups are repeated for each.
    load = np.cumsum(np.bincount(member_cell // size, per_word[member_word], minlength=len(groups)))
    batch = (load // _STRETCHES_AT_ONCE).astype(np.int64)[member_cell // size]
    for number in np.unique(batch):
        mine = batch == number
        _add(sums, stretches, member_word[mine], member_cell[mine], size, per_word)
    square = sums.reshape(len(groups), size, size)
    return square + square.transpose(0, 2, 1)


def _add(
    sums: npt.NDArray[np.float64], stretches: Stretches, words: Longs, cells: Longs, size: int, per_word: Longs
) -> None:
    """Adds the overlaps of some members to `sums`, half of each length on the diagonal, pairs in either order.

    Args:
        sums: (G * size * size,)
        stretches: of all words.
        words: (m,) the rank of each member.
        cells: (m,) its group * size + its place there.
        size: the longest group.
        per_word: stretches of each word.
    """
    first = np.cumsum(per_word) - per_word
    counts = per_word[words]
    chosen = np.repeat(first[words], counts) + _ranges(counts)
    cell = np.repeat(cells, counts)
    group, local = np.divmod(cell, size)
    start, end = stretches.start[chosen], stretches.end[chosen]
    base = group * size * size
    sums += np.bincount(base + local * (size + 1), (end - start) / 2, minlength=len(sums))

    key = group * stretches.length + start
    order = np.argsort(key)
    key, start, end, local, base = key[order], start[order], end[order], local[order], base[order]
    # Those that begin later and before this one ends, in the same group, are next to it.
    partners = np.searchsorted(key, key - start + end) - np.arange(1, len(key) + 1)
    for low, high in _pieces(partners):
        left = np.repeat(np.arange(low, high), partners[low:high])
        right = left + 1 + _ranges(partners[low:high])
        overlap = np.minimum(end[left], end[right]) - start[right]
        sums += np.bincount(base[left] + local[left] * size + local[right], overlap, minlength=len(sums))


def _ranges(counts: Longs) -> Longs:
    """0, 1, ... up to each of the counts, one after another."""
    ends = np.cumsum(counts)
    return np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts, counts)


def _pieces(counts: Longs) -> Iterator[tuple[int, int]]:
    """Runs whose counts add up to little, or hold a single one."""
    ends = np.cumsum(counts)
    low = 0
    while low < len(counts):
        done = ends[low - 1] if low else 0
        high = max(int(np.searchsorted(ends, done + _OVERLAPS_AT_ONCE, side="right")), low + 1)
        yield low, high
        low = high
