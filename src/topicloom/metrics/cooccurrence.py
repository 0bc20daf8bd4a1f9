"""A reference corpus: how many of its windows contain a word, or two words. Only wanted pairs are counted."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, islice
from typing import Any, Literal, NamedTuple, Self, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ..errors import InputError
from ..messages import counted

# Vocabularies of other libraries.

Vocabulary: TypeAlias = Iterable[str] | Mapping[int, str]  # the forms that `words_by_column` reads


def words_by_column(vocabulary: Iterable[Any]) -> list[Any]:
    """Return the words of a vocabulary in the order of their columns.

    Args:
        vocabulary: the word of each column, in order; or a mapping from words to columns, such as `vocabulary_` of
            scikit-learn's CountVectorizer, or from columns to words, such as a Dictionary of gensim.

    Raises:
        InputError: a set, which has no order; or a mapping whose numbers are not 0, 1, ..., V - 1.
    """
    if isinstance(vocabulary, set | frozenset):
        raise InputError("`vocabulary` is a set, which has no order; give a list with the word of each column")
    if not isinstance(vocabulary, Mapping):
        return list(vocabulary)
    columns = set(range(len(vocabulary)))
    if set(vocabulary) == columns:
        return [vocabulary[column] for column in range(len(vocabulary))]
    words = {column: word for word, column in vocabulary.items()}
    if set(words) == columns:
        return [words[column] for column in range(len(vocabulary))]
    raise InputError(
        "`vocabulary` is a mapping that does not number the columns 0, 1, 2 and so on; give a list with the word of "
        "each column"
    )


# Documents that contain two words, counted with one bit for each word and document.

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
        tokens: (n_tokens,) the rank of each token among the words that are counted, -1 for all other tokens.
        n_documents: D.
        groups: G arrays of word ranks.
        n_words: ranks go from 0 to n_words - 1.
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


# Windows that contain two words, counted by sorted intervals; there is no loop over windows.

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


# The reference corpus, which counts wanted pairs and remembers the counts.

Counting: TypeAlias = Literal["gensim", "exact"]
Ints: TypeAlias = npt.NDArray[np.integer[Any]]
Total: TypeAlias = Callable[[npt.NDArray[Any]], npt.NDArray[Any]]

ORDER_UNKNOWN = "counts do not include the order of words; give lists of tokens, or `window=None` for whole documents"
_NOTHING = (np.empty(0, np.int64), np.empty(0, np.int64))  # no pair, and no count
_TOKENS_AT_ONCE = 1 << 21
_DOCUMENTS_AT_ONCE = 1 << 12


class Reference:
    """The corpus that coherence is measured against. It remembers the counts of the word pairs asked for so far.

    Asking again for the same pairs, or for some of them, costs nothing. Make one with `from_tokens`, `from_ids` or
    `from_counts`.

    Attributes:
        name: the name that results give it.
        n_documents: the number of documents, including empty ones.
        n_tokens: the number of tokens in all documents; for counts, the number of entries above zero.
        n_words: known words have ids from 0 to n_words - 1.
        ordered: False if only counts are known, so that the only possible window is the whole document.

    Examples:
        >>> from topicloom.metrics import Reference, c_npmi
        >>> reference = Reference.from_tokens([["cat", "dog"], ["cat", "dog"], ["rain"]], name="pets")
        >>> reference.n_documents, reference.n_words
        (3, 3)
        >>> c_npmi([["cat", "dog"]], reference).settings["reference"]
        'pets'
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
        starts: Ints | None = None,
        after_piece: Callable[[], None] | None = None,
        total: Total | None = None,
    ) -> None:
        self.name, self.ordered, self.n_words = name, ordered, n_words
        n_documents = len(offsets) - 1
        self.n_documents = n_documents if total is None else int(total(np.array([n_documents]))[0])
        self.n_tokens = int(offsets[-1])
        self._ids, self._offsets, self._starts = ids, offsets, starts
        self._after_piece, self._total = after_piece, total
        self._numbers, self._takes_ids = numbers or {}, takes_ids
        self._longest = int(np.diff(offsets).max(initial=0))
        self._known: dict[tuple[int, str], tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = {}

    @property
    def digest(self) -> str:
        """A digest of the words of all documents; references with the same one give the same coherence."""
        starts = "" if self._starts is None else self._starts.tolist()
        found = hashlib.sha256(repr((self.ordered, self.n_words, list(self._numbers), starts)).encode())
        for array in (self._ids, self._offsets):
            found.update(np.ascontiguousarray(array, np.int64).tobytes())
        return found.hexdigest()[:16]

    @classmethod
    def from_tokens(cls, documents: Iterable[Collection[Hashable]], name: str = "") -> Self:
        """Make a reference from lists of tokens. They are read once, and four bytes are kept for each token.

        Args:
            documents: each a list of tokens; a generator will do.
            name: the name that results give the reference.

        Raises:
            InputError: a document is not a list of tokens, or the documents are a single string.
        """
        if isinstance(documents, str):
            raise InputError("the reference corpus is a single string; give a list of documents, each a list of tokens")
        numbers: defaultdict[Hashable, int] = defaultdict()
        numbers.default_factory = numbers.__len__  # a new word gets the next number
        parts, lengths = [np.empty(0, np.int32)], [np.empty(0, np.int64)]
        rest = iter(documents)
        n_done = 0
        while batch := list(islice(rest, _DOCUMENTS_AT_ONCE)):
            for number, document in enumerate(batch, start=n_done):
                _require_tokens(document, number)
            length = np.fromiter(map(len, batch), np.int64, len(batch))
            tokens = map(numbers.__getitem__, chain.from_iterable(batch))
            try:
                parts.append(np.fromiter(tokens, np.int32, int(length.sum())))
            except TypeError as error:
                raise InputError(
                    f"a document of the reference corpus contains something else than tokens: {error}"
                ) from None
            lengths.append(length)
            n_done += len(batch)
        offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
        return cls(np.concatenate(parts), offsets, len(numbers), dict(numbers), name=name, takes_ids=False)

    @classmethod
    def from_ids(
        cls, ids: npt.ArrayLike, offsets: npt.ArrayLike, vocabulary: Sequence[str] | None = None, name: str = ""
    ) -> Self:
        """Make a reference from one flat array of word ids. It may be memory-mapped: it is read in pieces, not copied.

        Args:
            ids: (n_tokens,) word ids; -1 is a token that is not a word but takes up a place in a window.
            offsets: (n_documents + 1,) document d is ids[offsets[d]:offsets[d + 1]].
            vocabulary: the word of each id; needed only if topics are words.
            name: the name that results give the reference.

        Raises:
            InputError: the offsets do not fit, an id is outside the vocabulary, or the vocabulary repeats a word.
        """
        tokens, ends = np.asanyarray(ids), np.asanyarray(offsets)
        if tokens.ndim != 1 or ends.ndim != 1 or ends.dtype.kind not in "iu" or tokens.dtype.kind not in "iu":
            if tokens.size:
                raise InputError("`ids` and `offsets` must be flat arrays of whole numbers")
            tokens = np.empty(0, np.int32)
        if not len(ends) or ends[0] != 0 or ends[-1] != len(tokens) or (np.diff(ends.astype(np.int64)) < 0).any():
            raise InputError(f"`offsets` must rise from 0 to the number of ids, which is {len(tokens)}")
        numbers = _numbered(vocabulary)
        least, most = (int(tokens.min()), int(tokens.max())) if len(tokens) else (0, -1)
        n_words = most + 1 if vocabulary is None else len(vocabulary)
        if least < -1 or most >= n_words:
            raise InputError(f"ids go from {least} to {most}; each must be -1 or the place of one of {n_words} words")
        return cls(tokens, ends.astype(np.int64), n_words, numbers, name=name)

    @classmethod
    def from_counts(
        cls,
        counts: Any,
        vocabulary: Sequence[str] | None = None,
        name: str = "",
        *,
        rows: Ints | None = None,
        after_piece: Callable[[], None] | None = None,
        total: Total | None = None,
    ) -> Self:
        """Make a reference from counts, which contain the words of each document without their order.

        Args:
            counts: (D, V) sparse or dense. A CSR matrix may be memory-mapped: it is read in pieces, not copied.
            vocabulary: the V words; needed only if topics are words.
            name: the name that results give the reference.
            rows: (n,) the documents of the reference; all by default.
            after_piece: called after each piece of the counts that has been read, for example to release its memory.
            total: returns the sum of an array over several references of the same words, each of which has a part of
                the documents. They are then one reference, and are asked for the same pairs in the same order.

        Raises:
            InputError: the vocabulary does not have V words, or it repeats a word.
        """
        matrix = counts if sp.issparse(counts) and counts.format == "csr" else sp.csr_array(counts)
        for start in range(0, len(matrix.data), _TOKENS_AT_ONCE):
            if not (matrix.data[start : start + _TOKENS_AT_ONCE] > 0).all():
                matrix = sp.csr_array(matrix > 0)
                break
            if after_piece is not None:
                after_piece()
        if vocabulary is not None and len(vocabulary) != matrix.shape[1]:
            raise InputError(
                f"the vocabulary has {counted(len(vocabulary), 'word')}, and the counts have "
                f"{counted(matrix.shape[1], 'column')}"
            )
        numbers = _numbered(vocabulary)
        offsets, starts = matrix.indptr, None
        if rows is not None:
            starts = matrix.indptr[rows].astype(np.int64)
            offsets = np.concatenate([[0], np.cumsum(matrix.indptr[rows + 1] - starts)])
        return cls(
            matrix.indices,
            offsets,
            matrix.shape[1],
            numbers,
            name=name,
            ordered=False,
            starts=starts,
            after_piece=after_piece,
            total=total,
        )

    def pooled(self, pools: npt.ArrayLike, words: npt.NDArray[np.int64]) -> Reference:
        """Return a reference whose documents are pools of these documents. A pool has the words of all its members.

        Args:
            pools: (M, n) the documents of each pool; -1 for none.
            words: (W,) ids of words in ascending order. The new reference knows only them, by the ids 0 to W - 1.

        Raises:
            InputError: there are no pools, or they contain something else than numbers of documents.
        """
        members = np.asarray(pools)
        n_documents = len(self._offsets) - 1
        if members.ndim != 2 or not members.size or members.dtype.kind not in "iu":
            raise InputError("`pools` should be an array with the numbers of the documents of each pool in a row")
        if members.min() < -1 or members.max() >= n_documents:
            raise InputError(
                f"`pools` has numbers from {members.min()} to {members.max()}; each must be one of the {n_documents:,} "
                "documents, or -1 for none"
            )
        is_member = members >= 0
        documents, place = np.unique(members[is_member], return_inverse=True)
        sizes = np.concatenate([[0], np.cumsum(is_member.sum(axis=1))])
        joined = sp.csr_array((np.ones(len(place), np.float32), place, sizes), shape=(len(members), len(documents)))
        return Reference.from_counts(joined @ self._presence(documents, words), name=self.name)

    def _presence(self, documents: Ints, words: npt.NDArray[np.int64]) -> sp.csr_array:
        """Return how often documents (M,) contain words (W,): a matrix (M, W)."""
        column = np.full(self.n_words + 1, -1, np.int64)  # the last entry is for tokens that are not words
        column[words] = np.arange(len(words))
        offsets = np.asarray(self._offsets, np.int64)
        starts, lengths = offsets[:-1] if self._starts is None else self._starts, offsets[1:] - offsets[:-1]
        parts = []
        for first in range(0, len(documents), _DOCUMENTS_AT_ONCE):
            part = documents[first : first + _DOCUMENTS_AT_ONCE]
            length = lengths[part]
            ends = np.cumsum(length)
            where = np.arange(int(ends[-1])) + np.repeat(starts[part] - (ends - length), length)
            found = column[self._ids[where]]
            row = np.repeat(np.arange(len(part)), length)[found >= 0]
            found = found[found >= 0]
            shape = (len(part), len(words))
            parts.append(sp.csr_array((np.ones(len(found), np.float32), (row, found)), shape=shape))
            if self._after_piece is not None:
                self._after_piece()
        return sp.csr_array(sp.vstack(parts, format="csr"))

    def id_of(self, word: Hashable) -> int:
        """Return the id of a word (or of an id itself), or -1 if the reference does not know it."""
        if self._takes_ids and isinstance(word, (int, np.integer)):
            return int(word) if 0 <= word < self.n_words else -1
        return self._numbers.get(word, -1)

    def require_kind_of(self, word: Hashable) -> None:
        """Raise InputError if a word cannot be known because it is of another kind than the reference's tokens."""
        token = next(iter(self._numbers), None)
        if self._takes_ids and token is None and self.n_words and isinstance(word, str):
            raise InputError(
                f"the topics are words such as {word!r}, but the reference corpus has only word ids; "
                "give it the vocabulary, or give topics of word ids"
            )
        if not self._takes_ids and token is not None and isinstance(word, str) != isinstance(token, str):
            raise InputError(
                f"the topics have words such as {word!r}, but the reference corpus has tokens such as {token!r}; "
                "both must be words or both must be ids"
            )

    def n_windows(self, window: int | None) -> int:
        """Return the number of windows. A document that is no longer than a window has one, even if it is empty.

        Args:
            window: tokens in a window; None is the whole document.
        """
        if window is None:
            return self.n_documents
        return int(np.maximum(np.diff(self._offsets) - window + 1, 1).sum())

    def joint(
        self, groups: Sequence[npt.NDArray[np.int64]], window: int | None, counting: Counting = "gensim"
    ) -> list[npt.NDArray[np.int64]]:
        """Count the windows that contain both words of every pair within a group.

        Args:
            groups: arrays of word ids without repeats. Pairs of words in different groups are not counted.
            window: tokens in a window; None is the whole document.
            counting: "exact" counts every window that contains both words. "gensim" counts as gensim 4 does: when the
                first of several occurrences of a word leaves the window, the word is taken to be gone until it enters
                again.

        Returns:
            for each group of n words, (n, n) counts. The diagonal counts the windows that contain the word.

        Raises:
            InputError: the window or the counting is impossible, or there are windows but only counts.
        """
        if counting not in get_args(Counting):
            raise InputError(f"`counting={counting!r}` is unknown; it must be one of {', '.join(get_args(Counting))}")
        if window is not None and window < 1:
            raise InputError(f"`window={window}` contains no token; give 1 or more, or None for whole documents")
        if window is not None and not self.ordered:
            raise InputError(ORDER_UNKNOWN)
        # A window as long as the longest document is the whole document.
        width = self._longest if window is None else min(window, self._longest)
        width = max(width, 1)
        if width >= self._longest:
            counting = "exact"  # a word that has entered the window never leaves it, so both ways agree
        wanted = [self._pairs(group) for group in groups]
        codes, _ = self._known.get((width, counting), _NOTHING)
        asked = {
            group.tobytes(): group for group, pairs in zip(groups, wanted, strict=True) if not _contains(codes, pairs)
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
        """Count all pairs of the groups and remember the counts."""
        words = np.unique(np.concatenate(groups))
        ranks = [np.searchsorted(words, group) for group in groups]
        place = np.full(self.n_words + 1, -1, np.int32)  # the last entry is for tokens that are not words
        place[words] = np.arange(len(words))
        size = max((len(group) for group in groups), default=0)
        sums = np.zeros((len(groups), size, size))
        whole = window >= self._longest
        for first, last in self._pieces(documents_at_once(len(words)) if whole else _TOKENS_AT_ONCE):
            ends = np.asarray(self._offsets[first : last + 1], np.int64)
            offsets = ends - ends[0]
            tokens = place[self._ids_of(first, last)]
            if whole and bits_are_faster(tokens, last - first, ranks, len(words)):
                sums += joint_document_counts(tokens, offsets, ranks, len(words))
            else:
                intervals = intervals_of(tokens, offsets, window, forget=counting == "gensim")
                sums += overlap_sums(intervals, ranks, len(words))
            if self._after_piece is not None:
                self._after_piece()
        if self._total is not None:
            sums = self._total(sums)
        pairs = [self._pairs(group).ravel() for group in groups]
        values = [sums[row, : len(group), : len(group)].ravel() for row, group in enumerate(groups)]
        codes, counts = self._known.get((window, counting), _NOTHING)
        codes, where = np.unique(np.concatenate([codes, *pairs]), return_index=True)
        self._known[window, counting] = codes, np.concatenate([counts, *values]).astype(np.int64)[where]

    def _ids_of(self, first: int, last: int) -> Ints:
        """Return the ids of a run of documents, one document after the other."""
        ends = np.asarray(self._offsets[first : last + 1], np.int64)
        if self._starts is None:
            return self._ids[ends[0] : ends[-1]]
        shift = self._starts[first:last] - ends[:-1]
        where: Ints = np.arange(ends[0], ends[-1]) + np.repeat(shift, np.diff(ends))
        return self._ids[where]

    def _pieces(self, most: int) -> Iterator[tuple[int, int]]:
        """Yield runs of at most `most` documents with so few tokens that little memory is needed at a time."""
        first = 0
        n_documents = len(self._offsets) - 1
        while first < n_documents:
            last = int(np.searchsorted(self._offsets, int(self._offsets[first]) + _TOKENS_AT_ONCE, side="right")) - 1
            last = min(max(last, first + 1), n_documents, first + min(most, _TOKENS_AT_ONCE))
            yield first, last
            first = last


def _require_tokens(document: Any, number: int) -> None:
    """Raise InputError if a document of a reference corpus is not a list of tokens."""
    if isinstance(document, str | bytes):
        raise InputError(f"document {number} of the reference corpus is a string; give lists of tokens")
    listed = isinstance(document, Collection) and not isinstance(document, Mapping)
    if not listed or getattr(document, "ndim", 1) != 1:
        kind = type(document).__name__
        raise InputError(f"document {number} of the reference corpus is of type {kind}; give lists of tokens")
    token = next(iter(document), "")
    if isinstance(token, float | np.floating):
        raise InputError(f"document {number} of the reference corpus contains the number {token}; give lists of tokens")


def _contains(codes: npt.NDArray[np.int64], pairs: npt.NDArray[np.int64]) -> bool:
    """Return whether all pairs are among the sorted codes."""
    at = np.searchsorted(codes, pairs)
    return bool((at < len(codes)).all() and (codes[at] == pairs).all())


def _numbered(vocabulary: Sequence[str] | None) -> dict[Hashable, int] | None:
    if vocabulary is None:
        return None
    numbers: dict[Hashable, int] = {word: number for number, word in enumerate(words_by_column(vocabulary))}
    if len(numbers) < len(vocabulary):
        raise InputError("the vocabulary contains a word twice; every id needs a word of its own")
    return numbers
