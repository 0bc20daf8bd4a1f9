"""In how many windows of a reference corpus words are, and are together: counted for the pairs asked for, and kept.

A window is a run of tokens of one document. The windows of all documents are laid out one after another on an axis; a
word is in the windows of some stretches of it, and two words meet as often as their stretches overlap. Stretches come
from the places of the topics' words alone, so no window is ever visited. Where windows are whole documents, and words
are not rare, bits that say which documents a word is in are faster.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .bitsets import bits_pay, documents_at_once, presence_sums
from .intervals import overlap_sums, stretches_of

Counting: TypeAlias = Literal["gensim", "exact"]
Ints: TypeAlias = npt.NDArray[np.integer[Any]]

_TOKENS_AT_ONCE = 1 << 21
_DOCUMENTS_AT_ONCE = 1 << 12


class Reference:
    """The corpus that coherence is measured against, with the counts of word pairs that were asked of it so far.

    Asking again for the same pairs, or some of them, costs nothing. Make one with `from_tokens`, `from_ids` or
    `from_counts`.

    Attributes:
        name: what results call it.
        n_documents: empty ones included.
        n_tokens: tokens of all documents; of counts, their entries above zero.
        n_words: known words have ids from 0 to n_words - 1.
        ordered: False where only counts are known, so that the one window is the whole document.
    """

    def __init__(
        self,
        ids: Ints,
        offsets: Ints,
        n_words: int,
        numbers: dict[Hashable, int] | None,
        *,
        name: str = "",
        ordered: bool = True,
        takes_ids: bool = True,
    ) -> None:
        self.name, self.ordered, self.n_words = name, ordered, n_words
        self.n_documents, self.n_tokens = len(offsets) - 1, len(ids)
        self._ids, self._offsets = ids, offsets
        self._numbers, self._takes_ids = numbers or {}, takes_ids
        self._longest = int(np.diff(offsets).max(initial=0))
        self._known: dict[tuple[int, str], tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = {}

    @classmethod
    def from_tokens(cls, documents: Iterable[Sequence[Hashable]], name: str = "") -> Self:
        """Documents as sequences of tokens, read once; four bytes a token are kept.

        Raises:
            ValueError: a document is a string.
        """
        if isinstance(documents, str):
            raise ValueError("the reference is one string; give a list of documents, each a list of tokens")
        numbers: defaultdict[Hashable, int] = defaultdict()
        numbers.default_factory = numbers.__len__  # a new word gets the next number
        parts, lengths = [np.empty(0, np.int32)], [np.empty(0, np.int64)]
        rest = iter(documents)
        while batch := list(islice(rest, _DOCUMENTS_AT_ONCE)):
            if any(isinstance(document, str) for document in batch):
                raise ValueError("a reference document is a string; give lists of tokens")
            length = np.fromiter(map(len, batch), np.int64, len(batch))
            tokens = map(numbers.__getitem__, chain.from_iterable(batch))
            parts.append(np.fromiter(tokens, np.int32, int(length.sum())))
            lengths.append(length)
        offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
        return cls(np.concatenate(parts), offsets, len(numbers), dict(numbers), name=name, takes_ids=False)

    @classmethod
    def from_ids(
        cls, ids: npt.ArrayLike, offsets: npt.ArrayLike, vocabulary: Sequence[str] | None = None, name: str = ""
    ) -> Self:
        """Documents as one flat array of word ids, which may be memory-mapped: it is read in pieces, never copied.

        Args:
            ids: (n_tokens,) word ids; -1 is a token that is no word, which takes its place in a window.
            offsets: (n_documents + 1,) document d is ids[offsets[d]:offsets[d + 1]].
            vocabulary: the word of each id, needed only where topics are words.
            name: what results call it.

        Raises:
            ValueError: offsets that do not fit, ids outside the vocabulary, or a word that is there twice.
        """
        tokens, ends = np.asanyarray(ids), np.asanyarray(offsets)
        if tokens.ndim != 1 or ends.ndim != 1 or ends.dtype.kind not in "iu" or tokens.dtype.kind not in "iu":
            if tokens.size:
                raise ValueError("ids and offsets must be flat arrays of whole numbers")
            tokens = np.empty(0, np.int32)
        if not len(ends) or ends[0] != 0 or ends[-1] != len(tokens) or (np.diff(ends.astype(np.int64)) < 0).any():
            raise ValueError(f"offsets must rise from 0 to the number of ids, which is {len(tokens)}")
        numbers = _numbered(vocabulary)
        least, most = (int(tokens.min()), int(tokens.max())) if len(tokens) else (0, -1)
        n_words = most + 1 if vocabulary is None else len(vocabulary)
        if least < -1 or most >= n_words:
            raise ValueError(f"ids go from {least} to {most}; they must be -1 or places of the {n_words} words")
        return cls(tokens, ends.astype(np.int64), n_words, numbers, name=name)

    @classmethod
    def from_counts(cls, counts: Any, vocabulary: Sequence[str] | None = None, name: str = "") -> Self:
        """(D, V) counts, sparse or dense: which words a document has, without their order.

        Raises:
            ValueError: the vocabulary has not V words, or one twice.
        """
        matrix = counts if sp.issparse(counts) and counts.format == "csr" else sp.csr_array(counts)
        if not (matrix.data > 0).all():
            matrix = sp.csr_array(matrix > 0)
        if vocabulary is not None and len(vocabulary) != matrix.shape[1]:
            raise ValueError(
                f"the vocabulary has {len(vocabulary)} words, and the counts have {matrix.shape[1]} columns"
            )
        numbers = _numbered(vocabulary)
        return cls(matrix.indices, matrix.indptr, matrix.shape[1], numbers, name=name, ordered=False)

    def id_of(self, word: Hashable) -> int:
        """The id of a word, or of an id itself; -1 for what the reference does not know."""
        if self._takes_ids and isinstance(word, (int, np.integer)):
            return int(word) if 0 <= word < self.n_words else -1
        return self._numbers.get(word, -1)

    def n_windows(self, window: int | None) -> int:
        """How many windows there are: one for a document that is no longer than a window, empty ones included.

        Args:
            window: its tokens; None is the whole document.
        """
        if window is None:
            return self.n_documents
        return int(np.maximum(np.diff(self._offsets) - window + 1, 1).sum())

    def joint(
        self, groups: Sequence[npt.NDArray[np.int64]], window: int | None, counting: Counting = "gensim"
    ) -> list[npt.NDArray[np.int64]]:
        """In how many windows the words of a group are together, pair by pair.

        Args:
            groups: word ids, each once in its group; pairs within a group are counted, others are not.
            window: its tokens; None is the whole document.
            counting: "exact" is every window that holds both words. "gensim" is what gensim 4 counts: a word that is
                several times in a window is taken to have left with the first of them, until it comes again.

        Returns:
            for each group of n words (n, n) counts; on the diagonal, the windows that hold the word.

        Raises:
            ValueError: no such window, or windows are asked of counts.
        """
        if counting not in get_args(Counting):
            raise ValueError(f"counting={counting!r} is not known; there are {', '.join(get_args(Counting))}")
        if window is not None and window < 1:
            raise ValueError(f"window={window} holds no token; give 1 or more, or None for whole documents")
        if window is not None and not self.ordered:
            raise ValueError("counts do not know the order of words; give token sequences, or window=None")
        # A window as long as the longest document is the whole document.
        width = self._longest if window is None else min(window, self._longest)
        width = max(width, 1)
        if width >= self._longest:
            counting = "exact"  # a word that is in a window stays to its end, so that both are the same
        wanted = [self._pairs(group) for group in groups]
        codes, _ = self._known.get((width, counting), _NOTHING)
        asked = {
            group.tobytes(): group for group, pairs in zip(groups, wanted, strict=True) if not _holds(codes, pairs)
        }
        if asked:
            self._count(list(asked.values()), width, counting)
        codes, counts = self._known.get((width, counting), _NOTHING)
        return [counts[np.searchsorted(codes, pairs)] for pairs in wanted]

    def _pairs(self, group: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """(n, n) a number for each pair of words, the same in both orders."""
        low, high = np.minimum.outer(group, group), np.maximum.outer(group, group)
        return np.asarray(low * np.int64(self.n_words) + high, np.int64)

    def _count(self, groups: list[npt.NDArray[np.int64]], window: int, counting: Counting) -> None:
        """Counts all pairs of the groups, and keeps them."""
        words = np.unique(np.concatenate(groups))
        ranks = [np.searchsorted(words, group) for group in groups]
        place = np.full(self.n_words + 1, -1, np.int32)  # the last is for tokens that are no word
        place[words] = np.arange(len(words))
        size = max((len(group) for group in groups), default=0)
        sums = np.zeros((len(groups), size, size))
        whole = window >= self._longest
        for first, last in self._pieces(documents_at_once(len(words)) if whole else _TOKENS_AT_ONCE):
            ends = np.asarray(self._offsets[first : last + 1], np.int64)
            tokens, offsets = place[self._ids[ends[0] : ends[-1]]], ends - ends[0]
            if whole and bits_pay(tokens, last - first, ranks, len(words)):
                sums += presence_sums(tokens, offsets, ranks, len(words))
            else:
                stretches = stretches_of(tokens, offsets, window, forget=counting == "gensim")
                sums += overlap_sums(stretches, ranks, len(words))
        pairs = [self._pairs(group).ravel() for group in groups]
        values = [sums[row, : len(group), : len(group)].ravel() for row, group in enumerate(groups)]
        codes, counts = self._known.get((window, counting), _NOTHING)
        codes, where = np.unique(np.concatenate([codes, *pairs]), return_index=True)
        self._known[window, counting] = codes, np.concatenate([counts, *values]).astype(np.int64)[where]

    def _pieces(self, most: int) -> Iterator[tuple[int, int]]:
        """Runs of documents, no more than `most`, with so few tokens that work on them stays small."""
        first = 0
        while first < self.n_documents:
            last = int(np.searchsorted(self._offsets, int(self._offsets[first]) + _TOKENS_AT_ONCE, side="right")) - 1
            last = min(max(last, first + 1), self.n_documents, first + min(most, _TOKENS_AT_ONCE))
            yield first, last
            first = last


_NOTHING = (np.empty(0, np.int64), np.empty(0, np.int64))


def _holds(codes: npt.NDArray[np.int64], pairs: npt.NDArray[np.int64]) -> bool:
    """All pairs are among the sorted codes."""
    at = np.searchsorted(codes, pairs)
    return bool((at < len(codes)).all() and (codes[at] == pairs).all())


def _numbered(vocabulary: Sequence[str] | None) -> dict[Hashable, int] | None:
    if vocabulary is None:
        return None
    numbers: dict[Hashable, int] = {word: number for number, word in enumerate(vocabulary)}
    if len(numbers) < len(vocabulary):
        raise ValueError("the vocabulary holds a word twice; every id needs a word of its own")
    return numbers
