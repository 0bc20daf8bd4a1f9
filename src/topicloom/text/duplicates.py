"""Copies of documents, found while documents are read: exact ones by their words, near ones by MinHash.

Two texts are near copies if at least 0.8 of their runs of three words are common to both (Jaccard similarity). MinHash
finds candidates [1]; each one is then compared exactly, so that no text is a near copy by chance.

[1] A. Z. Broder. On the resemblance and containment of documents. Compression and Complexity of Sequences, 1997.
"""

from __future__ import annotations

import logging
import re
import zlib
from collections.abc import Sequence
from hashlib import blake2b
from itertools import chain

import numpy as np
import numpy.typing as npt

from .pieces import CHARACTERS
from .strings import normalise
from .tokenizing import Cache, without_addresses, without_html

logger = logging.getLogger("topicloom")

NEAR = 0.8  # the least similarity of near copies
MOST_READ = 100_000  # documents that are compared if copies are only counted

_RUN = 3  # words
_FEWEST = 10  # words; shorter texts can only be exact copies
# With 12 bands of 4 hashes, 99.8 % of the pairs with a similarity of 0.8 are candidates, and 54 % of those with 0.5.
_BANDS, _ROWS = 12, 4
_MIX = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64)
_WORD = re.compile(rf"[{CHARACTERS}]|[^\W_{CHARACTERS}]+(?:['-][^\W_{CHARACTERS}]+)*")


class Copies:
    """Find the documents that are copies of earlier ones, in time and memory that grow linearly.

    Args:
        limit: compare so many of the first documents; None compares all.

    Attributes:
        n_docs: the number of documents that were compared.
        first_of: the row of a copy -> the row of the document that it copies.
        n_near: the number of copies that are only near.

    Examples:
        >>> from topicloom.text.duplicates import Copies
        >>> copies = Copies()
        >>> copies.add(["The cat sees a dog.", "A bird sings", "the CAT sees a dog!"])
        array([ True,  True, False])
        >>> copies.first_of
        {2: 0}
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self.n_docs = self.n_near = 0
        self.first_of: dict[int, int] = {}
        self._exact: dict[bytes, int] = {}
        self._rows_of_bands: dict[int, int] = {}  # the hash of a band, which differs between bands -> the first row
        self._runs: dict[int, npt.NDArray[np.uint32]] = {}
        self._codes: Cache[str, int] = Cache(lambda word: zlib.crc32(word.encode("utf-8", "surrogatepass")))
        rng = np.random.default_rng(0)
        self._factors = rng.integers(1 << 62, size=_BANDS * _ROWS, dtype=np.uint64) * np.uint64(2) + np.uint64(1)

    @property
    def is_full(self) -> bool:
        """Whether as many documents were compared as `limit` allows."""
        return self._limit is not None and self.n_docs >= self._limit

    def add(self, documents: Sequence[str | Sequence[str]]) -> npt.NDArray[np.bool_]:
        """Compare the next documents with all earlier ones.

        Args:
            documents: texts, or lists of tokens. Documents without words are no copies.

        Returns:
            (len(documents),) False for copies.
        """
        is_first = np.ones(len(documents), bool)
        if self.is_full:
            return is_first
        begin, self.n_docs = self.n_docs, self.n_docs + len(documents)
        long: list[tuple[int, list[str]]] = []
        found: dict[int, int] = {}
        for row, document in enumerate(documents, begin):
            words = words_of(document)
            if not words:
                continue
            key = blake2b("\0".join(words).encode("utf-8", "surrogatepass"), digest_size=16).digest()
            first = self._exact.setdefault(key, row)
            if first != row:
                found[row] = first
            elif len(words) >= _FEWEST:
                long.append((row, words))
        near = self._near(long)
        self.n_near += len(near)
        for row, first in sorted({**found, **near}.items()):
            is_first[row - begin] = False
            self.first_of[row] = self.first_of.get(first, first)  # an exact copy of a near copy
        return is_first

    def _near(self, documents: list[tuple[int, list[str]]]) -> dict[int, int]:
        """Return the near copies among some of the next documents, each with the row that it copies."""
        found: dict[int, int] = {}
        if not documents:
            return found
        lengths = np.array([len(words) for _, words in documents])
        codes = np.fromiter(
            map(self._codes.__getitem__, chain.from_iterable(words for _, words in documents)), np.uint64, lengths.sum()
        )
        runs = codes[:-2] * _MIX[0] + codes[1:-1] * _MIX[1] + codes[2:] * _MIX[2]
        ends = np.cumsum(lengths)
        is_within = np.ones(len(runs) + 2, bool)
        is_within[ends - 1] = is_within[ends - 2] = False  # runs that would cross the end of a document
        runs = runs[is_within[:-2]] >> np.uint64(32)
        starts = np.cumsum(lengths - 2) - (lengths - 2)
        least = [np.minimum.reduceat((runs * factor) >> np.uint64(32), starts) for factor in self._factors]
        bands = np.repeat(np.arange(_BANDS, dtype=np.uint64)[:, None], len(documents), axis=1)
        for place, hashes in enumerate(least):
            band = bands[place // _ROWS]
            band *= _MIX[0]
            band += hashes + np.uint64(1)
        of_documents = np.split(runs.astype(np.uint32), starts[1:])
        table = self._rows_of_bands
        for (row, _), keys, own in zip(documents, bands.T.tolist(), of_documents, strict=True):
            if table.keys().isdisjoint(keys):  # nearly always
                table.update(dict.fromkeys(keys, row))
                self._runs[row] = own
                continue
            first = self._copied(np.unique(own), sorted({table[key] for key in keys if key in table}))
            if first is not None:
                found[row] = first
                continue
            for key in keys:
                table.setdefault(key, row)
            self._runs[row] = own
        return found

    def _copied(self, runs: npt.NDArray[np.uint32], candidates: list[int]) -> int | None:
        for row in candidates:
            others = np.unique(self._runs[row])
            n_common = len(np.intersect1d(runs, others, assume_unique=True))
            if n_common >= NEAR * (len(runs) + len(others) - n_common):
                return row
        return None

    def numbers(self, rows: npt.NDArray[np.intp]) -> list[float]:
        """Return how often the text of each of some rows occurs, with its copies."""
        found = dict.fromkeys(rows.tolist(), 1.0)
        for first in self.first_of.values():
            found[first] += 1
        return list(found.values())


def words_of(document: str | Sequence[str]) -> list[str]:
    """Return the words by which documents are compared: in lower case, without HTML, addresses and punctuation."""
    if not isinstance(document, str):
        return [str(token) for token in document]
    if "<" in document or "&" in document:
        document = without_html(document)
    if not document.isascii():
        document = normalise(document)
    return _WORD.findall(without_addresses(document).casefold())


def remark(copies: Copies, n_docs: int, dropped: bool) -> str | None:
    """Return a sentence that says how many copies were found; None if that is not worth a line.

    Args:
        copies: the copies.
        n_docs: the number of documents.
        dropped: whether they were left out.
    """
    n_copies = len(copies.first_of)
    if n_copies < (1 if dropped else 5):
        return None
    n_exact = n_copies - copies.n_near
    kinds = [f"{n_exact:,} word for word"] * bool(n_exact) + [f"{copies.n_near:,} nearly"] * bool(copies.n_near)
    row, first = next(iter(copies.first_of.items()))
    share = n_copies / copies.n_docs
    of = f"{copies.n_docs:,} documents" if copies.n_docs == n_docs else f"the first {copies.n_docs:,} documents"
    found = (
        f"{n_copies:,} of {of} ({share:.1%}) repeat earlier ones ({', '.join(kinds)}), such as document {row} "
        f"repeats document {first}"
    )
    if dropped:
        return f"{found}; they are left out, and the covariate copies says how often each text occurs"
    return f"{found}; `drop_duplicates=True` keeps the first of each"
