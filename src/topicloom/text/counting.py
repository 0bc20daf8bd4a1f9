"""Counting the words of texts, in this process or in others."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import count, islice
from numbers import Integral
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ..errors import InputError, SettingError
from ..processes import ATTEMPTS, LocalPool, Lost, Pool, Sent, cluster_pool
from .records import MOST_CHARACTERS, too_long
from .strings import is_utf8, replace_surrogates
from .tokenizing import BOUNDARY, AnyTokenizer, Pretokenized, Tokenizer

Counts: TypeAlias = "sparse.csr_array"
Text: TypeAlias = "str | Iterable[str]"  # raw text, or a list of tokens

# The column of a piece whose words are not counted, and of a boundary. Smaller numbers are pieces of several words.
_NO_COLUMN, _END = -1, -2
_MOST = 1 << 18  # pieces that are remembered
_LONGEST = 64  # characters or bytes of a piece that is remembered
_MOST_RECENT = 4  # pairs of a vocabulary and a tokenizer that are remembered


class PieceColumns(dict["bytes | str", int]):
    """The column of each piece of text, which is found when the piece occurs for the first time.

    Args:
        tokenizer: the tokenizer that splits the pieces.
        column_of: the column of a word, or None if it is not counted.
    """

    def __init__(self, tokenizer: AnyTokenizer, column_of: Callable[[str], int | None]) -> None:
        super().__init__({BOUNDARY: _END, BOUNDARY.encode(): _END})
        self._tokens_of: Callable[[Any], tuple[str, ...]] = _own_token
        if isinstance(tokenizer, Tokenizer):
            self._tokens_of = tokenizer.tokens_of
        self._column_of = column_of
        self._several: dict[int, list[int]] = {}  # the columns of pieces of several words
        self._codes = count(_END - 1, -1)

    def __missing__(self, piece: bytes | str) -> int:
        tokens = self._tokens_of(piece)
        if len(tokens) == 1:
            found = self._column_of(tokens[0])
            column = _NO_COLUMN if found is None else found
        elif not tokens:
            column = _NO_COLUMN
        else:
            column = next(self._codes)
            places = map(self._column_of, tokens)
            self._several[column] = [_NO_COLUMN if place is None else place for place in places]
        if len(piece) <= _LONGEST:
            self[piece] = column
        return column

    @property
    def is_full(self) -> bool:
        """Whether so many pieces are remembered that new columns should be made."""
        return len(self) + len(self._several) > _MOST

    def count(self, pieces: Sequence[bytes] | Sequence[str], n_columns: Callable[[], int]) -> Counts:
        """Count the words of documents.

        Args:
            pieces: the pieces of all documents, with a boundary after each document.
            n_columns: returns the number of columns, which may have grown.

        Returns:
            Counts of shape (n_docs, n_columns) and type float32.
        """
        columns = np.fromiter(map(self.__getitem__, pieces), np.int32, len(pieces))
        if self._several:
            columns = self._spread(columns)
        known = columns >= 0
        indptr = np.zeros(np.count_nonzero(columns == _END) + 1, np.int32)
        indptr[1:] = np.cumsum(known, dtype=np.int32)[columns == _END]
        found = columns[known]
        shape = (len(indptr) - 1, n_columns())
        counts = sparse.csr_array((np.ones(len(found), np.float32), found, indptr), shape=shape)
        if len(found) > shape[1]:  # linear sorting, whose cost contains the number of columns
            counts = counts.tocsc().tocsr()
            counts.has_sorted_indices = True
        counts.sum_duplicates()
        return counts

    def _spread(self, columns: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Replace each piece of several words by the columns of these words."""
        places = np.flatnonzero(columns < _END)
        if not len(places):
            return columns
        several = [self._several[code] for code in columns[places].tolist()]
        lengths = np.ones(len(columns), np.intp)
        lengths[places] = [len(each) for each in several]
        spread = np.repeat(columns, lengths)
        spread[np.repeat(np.isin(np.arange(len(columns)), places), lengths)] = np.concatenate(several)
        return spread


def _own_token(token: str) -> tuple[str]:
    """Return a token of the user's own, if it can be a word of a vocabulary."""
    token = replace_surrogates(token)
    refuse_line_breaks([token])
    return (token,)


def pieces_of(texts: Sequence[Text], tokenizer: AnyTokenizer, first_row: int = 0) -> Sequence[bytes] | Sequence[str]:
    """Return the pieces of texts, with a boundary after each; for the user's own tokens, the tokens are the pieces.

    Raises:
        InputError: the tokenizer does not take a document, and the message names its row.
    """
    if isinstance(tokenizer, Tokenizer) and all(isinstance(text, str) for text in texts):
        return tokenizer.pieces(texts)  # type: ignore[arg-type]
    pieces: list[str] = []
    for row, text in enumerate(texts, first_row):
        try:
            pieces += tokenizer(text)  # type: ignore[arg-type]
        except InputError as error:
            raise InputError(f"document {row}: {error}") from None
        pieces.append(BOUNDARY)
    return pieces


class Part(NamedTuple):
    """The counts of a chunk of documents.

    Args:
        words: the word of each column.
        counts: counts of shape (n_docs, len(words)).
    """

    words: Sequence[str]
    counts: Counts


class OpenCounter:
    """Count all words. Pieces are remembered from one chunk to the next, for one thread.

    Args:
        tokenizer: the tokenizer that splits the texts.
    """

    def __init__(self, tokenizer: AnyTokenizer) -> None:
        self._tokenizer = tokenizer
        self._begin()

    def _begin(self) -> None:
        self._places: defaultdict[str, int] = defaultdict()
        self._places.default_factory = self._places.__len__
        self._columns = PieceColumns(self._tokenizer, self._places.__getitem__)
        self._words: list[str] = []

    def __call__(self, first_row: int, texts: Sequence[Text]) -> Part:
        """Count texts, of which the first one has the number `first_row`, over the words that they contain.

        Raises:
            InputError: the tokenizer does not take a document, and the message names its row.
        """
        if self._columns.is_full:
            self._begin()
        places = self._places
        counts = self._columns.count(pieces_of(texts, self._tokenizer, first_row), places.__len__)
        if len(self._words) < len(places):
            self._words = list(places)
        is_used = np.zeros(len(places), bool)
        is_used[counts.indices] = True
        used = np.flatnonzero(is_used)
        column = np.cumsum(is_used, dtype=np.int32) - 1
        arrays = (counts.data, column[counts.indices], counts.indptr)
        # The result is compact, because it is sent between processes.
        words = [self._words[place] for place in used.tolist()]
        return Part(words, sparse.csr_array(arrays, shape=(counts.shape[0], len(words))))


class FixedCounter:
    """Count the words of a vocabulary. Pieces are remembered from one call to the next; threads may share them.

    Args:
        vocabulary: the word of each column, or the column of each word.
        tokenizer: the tokenizer that splits the texts.
    """

    def __init__(self, vocabulary: Sequence[str] | Mapping[str, int], tokenizer: AnyTokenizer) -> None:
        self._given = vocabulary, tokenizer
        if isinstance(vocabulary, Mapping):
            self.places = vocabulary
            self.words: Sequence[str] = ()
        else:
            self.words = list(vocabulary)
            self.places = {word: column for column, word in enumerate(self.words)}
        self._columns = self._fresh()

    def _fresh(self) -> PieceColumns:
        return PieceColumns(self._given[1], self.places.get)

    def is_for(self, vocabulary: Sequence[str] | Mapping[str, int], tokenizer: AnyTokenizer) -> bool:
        """Whether the counter was made for these, and the vocabulary is still the same."""
        is_same = isinstance(vocabulary, Mapping) or vocabulary == self.words
        return is_same and vocabulary is self._given[0] and tokenizer is self._given[1]

    def __call__(self, first_row: int, texts: Sequence[Text]) -> Part:
        """Count texts, of which the first one has the number `first_row`.

        Raises:
            InputError: the tokenizer does not take a document, and the message names its row.
        """
        columns = self._columns
        if columns.is_full:
            self._columns = columns = self._fresh()
        pieces = pieces_of(texts, self._given[1], first_row)
        return Part(self.words, columns.count(pieces, self.places.__len__))


_recent: OrderedDict[tuple[int, int], FixedCounter] = OrderedDict()
_lock = threading.Lock()


def fixed_counter(vocabulary: Iterable[str] | Mapping[str, int], tokenizer: AnyTokenizer) -> FixedCounter:
    """Return the counter of a vocabulary; the last ones are remembered, because models count one text after another."""
    if not isinstance(vocabulary, list | tuple | Mapping):
        return FixedCounter(list(vocabulary), tokenizer)
    key = id(vocabulary), id(tokenizer)
    with _lock:
        counter = _recent.pop(key, None)
        if counter is None or not counter.is_for(vocabulary, tokenizer):
            counter = FixedCounter(vocabulary, tokenizer)
        _recent[key] = counter
        if len(_recent) > _MOST_RECENT:
            _recent.popitem(last=False)
    return counter


def columns_of(words: Iterable[str], places: Mapping[str, int]) -> npt.NDArray[np.int32]:
    """Return the column of each word, or -1 for a word without a column, of shape (len(words),)."""
    return np.array([places.get(word, -1) for word in words], np.int32)


def remap(counts: Counts, columns: npt.NDArray[np.int32], n_words: int) -> Counts:
    """Move every column j of `counts` to columns[j] out of n_words columns, and drop it if that is -1."""
    moved = columns[counts.indices]
    kept = moved >= 0
    kept_before: npt.NDArray[Any] = np.concatenate([[0], np.cumsum(kept)])
    indptr = kept_before[counts.indptr].astype(counts.indptr.dtype)
    result = sparse.csr_array((counts.data[kept], moved[kept], indptr), shape=(counts.shape[0], n_words))
    result.sort_indices()
    return result


def add_left_out(left_out: dict[str, float], words: Sequence[str], counts: Counts, places: Mapping[str, int]) -> None:
    """Add the words that are not in a vocabulary to a dictionary, with how often each occurs.

    Args:
        left_out: the dictionary.
        words: the word of each column of the counts.
        counts: (n_docs, len(words)).
        places: the vocabulary: the column of each word.
    """
    numbers = np.bincount(counts.indices, counts.data, len(words))
    for column in np.flatnonzero((columns_of(words, places) < 0) & (numbers > 0)).tolist():
        left_out[words[column]] = left_out.get(words[column], 0) + float(numbers[column])


def refuse_line_breaks(words: Sequence[str]) -> None:
    """Refuse words that cannot be a line of vocabulary.txt.

    Raises:
        InputError: a word is blank, or contains a line break or a lone surrogate.
    """
    for word in words:
        if "\n" in word or "\r" in word or not word.strip():
            raise InputError(f"the word {word!r} is blank or contains a line break; remove it from the vocabulary")
    if not is_utf8("".join(words)):
        word = next(word for word in words if not is_utf8(word))
        raise InputError(f"the word {word!r} contains a lone surrogate, which cannot be saved; replace it")


# Chunks of texts, counted by this process, worker processes or a cluster. The counts do not depend on which.

_CHUNK_DOCUMENTS = 20_000
_CHUNK_CHARACTERS = 1_000_000
_TOKEN_CHARACTERS = 8  # a token counts as so many characters
_SERIAL_SECONDS = 1.0  # of counting in this process; only then does starting workers save time
_CHUNKS_AHEAD = 4  # chunks that wait for each worker


class Chunk(NamedTuple):
    """Documents that are counted together, and the row of the first one."""

    first_row: int
    texts: list[Text]


Counter = Callable[[int, list[Text]], Part]


def counts_of(
    texts: Iterable[Text],
    vocabulary: Iterable[str] | Mapping[str, int],
    tokenizer: AnyTokenizer,
    n_jobs: int | None = None,
    left_out: dict[str, float] | None = None,
) -> Counts:
    """Count the words of texts over a fixed vocabulary.

    Args:
        texts: texts or lists of tokens, whichever the tokenizer takes.
        vocabulary: the word of each column, or the column of each word, which must not change between calls. Other
            words are left out, and every document keeps its row.
        tokenizer: the tokenizer that splits the texts.
        n_jobs: the number of worker processes; -1 is all cores. None starts them if one process takes seconds.
        left_out: a dictionary to which the other words are added, with how often each occurs.

    Returns:
        Counts of shape (n_docs, n_words) and type float32.

    Raises:
        InputError: the tokenizer does not take a document.
    """
    counter = fixed_counter(vocabulary, tokenizer)
    n_words = len(counter.places)
    parts = []
    for part in count_chunks(chunked(texts), tokenizer, n_jobs, counter if left_out is None else None):
        if left_out is not None:
            add_left_out(left_out, part.words, part.counts, counter.places)
        is_over_words = part.words is counter.words
        parts.append(
            part.counts if is_over_words else remap(part.counts, columns_of(part.words, counter.places), n_words)
        )
    if len(parts) == 1:
        return parts[0]
    parts.append(sparse.csr_array(np.zeros((0, n_words), np.float32)))  # vstack needs one matrix at least
    counts: Counts = sparse.vstack(parts, format="csr", dtype=np.float32)
    return counts


def chunked(texts: Iterable[Text]) -> Iterator[Chunk]:
    """Divide a stream of documents into chunks of bounded size.

    Raises:
        InputError: a text is longer than a document can be.
    """
    chunk: list[Text] = []
    row = characters = 0
    for text in texts:
        chunk.append(text)
        if isinstance(text, str):
            n_characters = len(text)
            if n_characters > MOST_CHARACTERS:
                raise too_long(f"document {row + len(chunk) - 1}", f"{n_characters:,}")
            characters += n_characters
        elif isinstance(text, list | tuple):
            characters += _TOKEN_CHARACTERS * len(text)
        if len(chunk) == _CHUNK_DOCUMENTS or characters >= _CHUNK_CHARACTERS:
            yield Chunk(row, chunk)
            row, chunk, characters = row + len(chunk), [], 0
    if chunk:
        yield Chunk(row, chunk)


def count_chunks(
    chunks: Iterator[Chunk],
    tokenizer: AnyTokenizer,
    n_jobs: int | None = None,
    counter: Counter | None = None,
    cluster: str | None = None,
) -> Iterator[Part]:
    """Count chunks, in their order.

    Args:
        chunks: the documents.
        tokenizer: the tokenizer that splits them.
        n_jobs: the number of worker processes, or -1 for one on each core. None starts workers once this process has
            counted for some seconds. Chunks whose worker was killed are counted again.
        counter: counts the chunks that are counted in this process, in place of `OpenCounter`.
        cluster: the address of a Ray cluster whose nodes count the chunks in place of worker processes.

    Raises:
        InputError: the tokenizer does not take a document, and the message names its row; or worker processes are
            killed again and again; or there is no such cluster.
        MissingExtraError: Ray is not installed.
        SettingError: `n_jobs` is 0, or not a whole number.
    """
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise SettingError(
            f"`n_jobs={n_jobs!r:.60}` is not possible; give 1 for this process alone, or -1 for all cores"
        )
    if isinstance(tokenizer, Pretokenized):
        n_jobs, cluster = 1, None  # sending tokens to a worker takes longer than counting them
    if cluster is not None:
        yield from _counted_on_nodes(chunks, tokenizer, cluster)
        return
    count = counter or OpenCounter(tokenizer)
    seconds = 0.0
    workers = 1 if n_jobs in (None, 1) else _n_workers(n_jobs)
    while workers == 1:
        chunk = next(chunks, None)
        if chunk is None:
            return
        start = time.perf_counter()
        part = count(*chunk)
        seconds += time.perf_counter() - start
        yield part
        if n_jobs is None and seconds >= _SERIAL_SECONDS:
            workers, seconds = _n_workers(-1), 0.0
    yield from _counted_by_workers(chunks, tokenizer, workers)


def _n_workers(n_jobs: int) -> int:
    import joblib  # here, because most texts are counted without workers

    workers: int = joblib.effective_n_jobs(n_jobs)
    return workers


_ChunkPool: TypeAlias = "Pool[tuple[int, int], Part | InputError]"  # a chunk's key: its first row, and the row after it


def _in_order(
    pool: _ChunkPool, chunks: Iterator[Chunk], tokenizer: AnyTokenizer, failed: Callable[[str, Lost], str]
) -> Iterator[Part]:
    """Count chunks with a pool, and yield their counts in the order of the chunks.

    Args:
        pool: counts with `_count_sent`.
        chunks: the documents.
        tokenizer: the tokenizer that splits them.
        failed: says that documents cannot be counted, given their rows and the loss.
    """
    sent = pool.share(tokenizer, "the tokenizer")
    begun: deque[tuple[int, int]] = deque()  # and not yielded
    counted: dict[tuple[int, int], Part | InputError] = {}
    while True:
        n_free = _CHUNKS_AHEAD * pool.n_workers - len(begun)
        for chunk in islice(chunks, max(n_free, 0 if len(pool) else 1)):
            begun.append((chunk.first_row, chunk.first_row + len(chunk.texts)))
            pool.begin(begun[-1], chunk, sent)
        if not begun:
            return
        rows, ended = pool.next()
        if isinstance(ended, Lost):
            raise InputError(failed(_rows(rows), ended))
        counted[rows] = ended
        while begun and begun[0] in counted:
            part = counted.pop(begun.popleft())
            if isinstance(part, InputError):  # in order, so that the first such document is named
                raise part
            yield part


def _rows(rows: tuple[int, int]) -> str:
    return f"documents {rows[0]} to {rows[1] - 1}"


def _counted_by_workers(chunks: Iterator[Chunk], tokenizer: AnyTokenizer, n_workers: int) -> Iterator[Part]:
    """Count chunks in worker processes."""

    def failed(rows: str, lost: Lost) -> str:
        return (
            f"worker processes that counted {rows} died {ATTEMPTS} times ({lost.reason}); use `n_jobs=1`, which starts "
            "none"
        )

    with LocalPool(_count_sent, _rows, n_workers, short_calls=True) as pool:
        yield from _in_order(pool, chunks, tokenizer, failed)


def _counted_on_nodes(chunks: Iterator[Chunk], tokenizer: AnyTokenizer, address: str) -> Iterator[Part]:
    """Count chunks on the nodes of a cluster."""

    def failed(rows: str, lost: Lost) -> str:
        return (
            f"{rows} could not be counted in {ATTEMPTS} attempts ({lost.cause}); leave `cluster` out to count them on "
            "this machine"
        )

    with cluster_pool(address, _count_sent, _rows) as pool:
        yield from _in_order(pool, chunks, tokenizer, failed)


def _count_sent(chunk: Chunk, sent: Sent) -> Part | InputError:
    """Count a chunk in a worker, which remembers the pieces of the chunks before. Return the error of a document."""
    tokenizer = sent.value()
    counter = _counter(tokenizer) if isinstance(tokenizer, Tokenizer) else OpenCounter(tokenizer)
    try:
        return counter(*chunk)
    except InputError as error:
        return error


@lru_cache(maxsize=1)
def _counter(tokenizer: Tokenizer) -> OpenCounter:
    return OpenCounter(tokenizer)
