"""The choice of the vocabulary: the filters, and the counts of all words that the filters are applied to."""

from __future__ import annotations

import numbers
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ..errors import InputError, SettingError
from ..text.counting import Counts, remap
from ..text.storage import ArrayWriter


@dataclass(frozen=True)
class Filters:
    """The filters that choose the vocabulary; `Corpus.from_texts` explains each.

    Raises:
        SettingError: a filter has a value that it cannot have.
    """

    min_df: float = 5
    max_df: float = 0.5
    max_features: int | None = None
    remove_top: int = 0

    def __post_init__(self) -> None:
        for name in ("min_df", "max_df"):
            value = getattr(self, name)
            share = isinstance(value, (float, np.floating)) and 0 <= value <= 1
            if not (share or _is_whole(value, 0)):
                raise SettingError(
                    f"`{name}={value!r}` should be a whole number of documents, or a share of them from 0.0 to 1.0"
                )
        if not _is_whole(self.remove_top, 0):
            raise SettingError(f"`remove_top={self.remove_top!r}` should be a whole number from 0")
        if self.max_features is not None and not _is_whole(self.max_features, 1):
            raise SettingError(f"`max_features={self.max_features!r}` should be a whole number from 1, or None")

    def keeps_all(self, n_docs: int) -> bool:
        """Return whether no word of so many documents is left out, however many of them contain it."""
        rare, common = _threshold(self.min_df, n_docs), _threshold(self.max_df, n_docs)
        return rare <= 1 and common >= n_docs and self.remove_top == 0 and self.max_features is None

    def choose(
        self, words: list[str], document_counts: npt.NDArray[np.int64], totals: npt.NDArray[np.int64], n_docs: int
    ) -> npt.NDArray[np.intp]:
        """Choose the words to keep, the most frequent first; words of the same frequency are in alphabetical order.

        Args:
            words: the n words that were found.
            document_counts: (n,) the number of documents that contain each word.
            totals: (n,) the number of occurrences of each word.
            n_docs: the number of documents.

        Returns:
            the positions in `words` of the words to keep.

        Raises:
            InputError: no word is left.
        """
        if not words:
            raise InputError(
                f"no word was found in {_plural(n_docs, 'document')}; check the language (`language`) and the stop "
                "words (`stop_words`)"
            )
        found = f"{len(words)} in {_plural(n_docs, 'document')}"
        rare = document_counts < _threshold(self.min_df, n_docs)
        common = document_counts > _threshold(self.max_df, n_docs)
        left = np.flatnonzero(~rare & ~common).tolist()
        if len(left) <= self.remove_top:
            one = _is_whole(self.max_df, 0) and self.max_df == 1  # who writes 1 may mean all documents
            raise InputError(
                f"no word is left of {found}: `min_df={self.min_df}` drops {rare.sum()}, `max_df={self.max_df}` drops "
                f"{(common & ~rare).sum()}, `remove_top={self.remove_top}` drops {len(left)}; loosen these filters or "
                f"give more text{'; `max_df=1` is one document, and 1.0 is all of them' if one else ''}"
            )
        # A word that one document repeats is not common, so the most common words are those of the most documents.
        left.sort(key=lambda word: (-document_counts[word], -totals[word], words[word]))
        left = left[self.remove_top :]
        left.sort(key=lambda word: (-totals[word], words[word]))
        return np.array(left[: self.max_features], np.intp)


class Tally:
    """Sums over chunks of documents; the counts of the chunks are in a file until the vocabulary is known.

    Args:
        spool: the file to which the counts are written.
    """

    def __init__(self, spool: IO[bytes]) -> None:
        self._spool = spool
        self._n_parts = 0
        self._places: defaultdict[str, int] = defaultdict()
        self._places.default_factory = self._places.__len__
        self._document_counts = np.zeros(1 << 12, np.int64)
        self._totals = np.zeros(1 << 12, np.int64)
        self.n_docs = 0

    def add(self, words: Sequence[str], counts: Counts) -> None:
        """Add the counts of a chunk.

        Args:
            words: the n words of the chunk.
            counts: (chunk's documents, n) the counts of these words.
        """
        places = np.fromiter(map(self._places.__getitem__, words), np.int32, len(words))
        while len(self._places) > len(self._totals):
            self._document_counts = np.concatenate([self._document_counts, np.zeros_like(self._document_counts)])
            self._totals = np.concatenate([self._totals, np.zeros_like(self._totals)])
        self._document_counts[places] += np.bincount(counts.indices, minlength=len(words))
        self._totals[places] += np.bincount(counts.indices, counts.data, minlength=len(words)).astype(np.int64)
        for array in (counts.data, places[counts.indices], counts.indptr):
            np.save(self._spool, array)
        self._n_parts += 1
        self.n_docs += counts.shape[0]

    def filtered(self, filters: Filters, folder: Path | None) -> tuple[Counts, list[str]]:
        """Return the counts of the words that pass the filters, and these words.

        Args:
            filters: the filters.
            folder: a folder for the arrays; None keeps them in memory.

        Raises:
            InputError: no word passes the filters.
        """
        words = list(self._places)
        n_all = len(words)
        kept = filters.choose(words, self._document_counts[:n_all], self._totals[:n_all], self.n_docs)
        columns = np.full(n_all, -1, np.int32)
        columns[kept] = np.arange(len(kept))
        n_entries = int(self._document_counts[kept].sum())
        index = index_type(n_entries)
        data = ArrayWriter(folder, "data", n_entries, np.float32)
        indices = ArrayWriter(folder, "indices", n_entries, index)
        indptr = ArrayWriter(folder, "indptr", self.n_docs + 1, index)
        entry = 0
        self._spool.seek(0)
        with data, indices, indptr:
            indptr.append(np.zeros(1, index))
            for _ in range(self._n_parts):
                arrays = tuple(np.load(self._spool, allow_pickle=False) for _ in range(3))
                part = remap(sparse.csr_array(arrays, shape=(len(arrays[2]) - 1, n_all)), columns, len(kept))
                data.append(part.data)
                indices.append(part.indices)
                indptr.append(part.indptr[1:] + index(entry))
                entry += part.nnz
        arrays = (data.array, indices.array, indptr.array)
        counts = sparse.csr_array(arrays, shape=(self.n_docs, len(kept)))
        return counts, [words[place] for place in kept]


def index_type(n_entries: int) -> type[np.int32] | type[np.int64]:
    """Return the type of column numbers and of row starts. SciPy would copy one of them if their types differed."""
    return np.int32 if n_entries < 2**31 else np.int64


def _threshold(value: float, n_docs: int) -> float:
    return float(value) if isinstance(value, numbers.Integral) else value * n_docs


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= least


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
