"""Counting the words of texts, chunk by chunk. Worker processes count large amounts of text."""

from __future__ import annotations

import logging
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import joblib
import numpy as np
import numpy.typing as npt
from scipy import sparse

from ..errors import InputError, SettingError
from ..processes import ATTEMPTS, cause_in, end_with
from .characters import is_utf8, replace_surrogates
from .custom import Pretokenized
from .tokenizers import AnyTokenizer

logger = logging.getLogger("topicloom")

Counts: TypeAlias = "sparse.csr_array"
Text: TypeAlias = "str | Iterable[str]"  # raw text, or a list of tokens

_CHUNK_DOCUMENTS = 2_000
_CHUNK_CHARACTERS = 1_000_000
_SERIAL_CHARACTERS = 20_000_000  # below this, starting workers takes longer than it saves


class Chunk(NamedTuple):
    """Documents that are counted together.

    Args:
        first_row: The row of the first document.
        texts: The documents.
        n_characters: The number of characters in them.
    """

    first_row: int
    texts: list[Text]
    n_characters: int


class Part(NamedTuple):
    """The counts of a chunk over its own words.

    Args:
        words: The words of the chunk.
        counts: Their counts, of shape (n_docs, len(words)).
    """

    words: list[str]
    counts: Counts


def counts_of(
    texts: Iterable[Text],
    vocabulary: Iterable[str] | Mapping[str, int],
    tokenizer: AnyTokenizer,
    n_jobs: int | None = None,
) -> Counts:
    """Count the words of texts over a fixed vocabulary.

    Args:
        texts: Texts or lists of tokens, whichever the tokenizer takes.
        vocabulary: The word of each column, or the column of each word, which need not be computed for each call then.
            Other words are left out, and every document keeps its row.
        tokenizer: The tokenizer that splits the texts.
        n_jobs: As for `count_chunks`.

    Returns:
        Counts of shape (n_docs, n_words) and type float32.

    Raises:
        InputError: The tokenizer does not take a document.
    """
    places = vocabulary
    if not isinstance(places, Mapping):
        places = {word: column for column, word in enumerate(vocabulary)}
    parts = [
        remap(part.counts, columns_of(part.words, places), len(places))
        for part in count_chunks(chunked(texts), tokenizer, n_jobs)
    ]
    if len(parts) == 1:
        return parts[0]
    parts.append(sparse.csr_array(np.zeros((0, len(places)), np.float32)))  # vstack needs one matrix at least
    counts: Counts = sparse.vstack(parts, format="csr", dtype=np.float32)
    return counts


def chunked(texts: Iterable[Text]) -> Iterator[Chunk]:
    """Divide a stream of documents into chunks of bounded size."""
    chunk: list[Text] = []
    row = characters = 0
    for text in texts:
        chunk.append(text)
        characters += len(text) if isinstance(text, str) else 0
        if len(chunk) == _CHUNK_DOCUMENTS or characters >= _CHUNK_CHARACTERS:
            yield Chunk(row, chunk, characters)
            row, chunk, characters = row + len(chunk), [], 0
    if chunk:
        yield Chunk(row, chunk, characters)


def count_chunks(chunks: Iterator[Chunk], tokenizer: AnyTokenizer, n_jobs: int | None = None) -> Iterator[Part]:
    """Count chunks, in their order.

    Args:
        chunks: The documents.
        tokenizer: The tokenizer that splits them.
        n_jobs: The number of worker processes, or -1 for one on each core. None starts workers once 20 million
            characters have been counted. Chunks whose worker was killed are counted again.

    Raises:
        InputError: The tokenizer does not take a document, and the message names its row; or worker processes are
            killed again and again.
        SettingError: `n_jobs` is 0.
    """
    if n_jobs == 0:
        raise SettingError("`n_jobs=0` is not possible; give 1 for this process alone, or -1 for all cores")
    workers = joblib.effective_n_jobs(-1 if n_jobs is None else n_jobs)
    if isinstance(tokenizer, Pretokenized):
        workers = 1  # sending tokens to a worker takes longer than counting them
    characters = 0
    while workers == 1 or (n_jobs is None and characters < _SERIAL_CHARACTERS):
        chunk = next(chunks, None)
        if chunk is None:
            return
        characters += chunk.n_characters
        yield count_chunk(chunk, tokenizer)
    # Chunks are read here, in batches, because joblib's own streaming would wrap an error of the reader.
    while batch := list(islice(chunks, 4 * workers)):
        yield from _counted_by_workers(batch, tokenizer, workers)


def _counted_by_workers(batch: Sequence[Chunk], tokenizer: AnyTokenizer, workers: int) -> list[Part]:
    """Count chunks in worker processes, and count all of them again if a process died."""
    rows = f"documents {batch[0].first_row} to {batch[-1].first_row + len(batch[-1].texts) - 1}"
    cause = ""
    for attempt in range(1, ATTEMPTS + 1):
        pool = joblib.Parallel(workers, backend="loky", initializer=end_with, initargs=(os.getpid(),))
        try:
            parts: list[Part] = pool(joblib.delayed(count_chunk)(chunk, tokenizer) for chunk in batch)
        except BrokenProcessPool as error:
            cause = cause_in(str(error))
            if attempt < ATTEMPTS:
                logger.warning("a worker process that counted %s died (%s); they are counted again", rows, cause)
        else:
            return parts
    raise InputError(
        f"worker processes that counted {rows} died {ATTEMPTS} times ({cause}); use `n_jobs=1`, which starts none"
    )


def count_chunk(chunk: Chunk, tokenizer: AnyTokenizer) -> Part:
    """Count one chunk. The result is compact, because it is sent between processes."""
    places: defaultdict[str, int] = defaultdict()
    places.default_factory = places.__len__
    columns: list[int] = []
    ends = [0]
    for row, text in enumerate(chunk.texts, chunk.first_row):
        try:
            columns.extend(map(places.__getitem__, tokenizer(text)))  # type: ignore[arg-type]
        except InputError as error:
            raise InputError(f"document {row}: {error}") from None
        ends.append(len(columns))
    words = list(places)
    if not is_utf8("".join(words)):
        merged: dict[str, int] = {}  # two words may become the same one
        moved = [merged.setdefault(replace_surrogates(word), len(merged)) for word in words]
        words, columns = list(merged), [moved[column] for column in columns]
    refuse_line_breaks(words)
    counts = sparse.csr_array(
        (np.ones(len(columns), np.float32), np.array(columns, np.int32), np.array(ends, np.int32)),
        shape=(len(chunk.texts), len(words)),
    )
    counts.sum_duplicates()
    return Part(words, counts)


def columns_of(words: Iterable[str], places: Mapping[str, int]) -> npt.NDArray[np.int32]:
    """The column of each word, or -1 for a word without a column, of shape (len(words),)."""
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


def refuse_line_breaks(words: Sequence[str]) -> None:
    """Refuse words that cannot be a line of vocabulary.txt.

    Raises:
        InputError: A word is blank, or contains a line break or a lone surrogate.
    """
    for word in words:
        if "\n" in word or "\r" in word or not word.strip():
            raise InputError(f"the word {word!r} is blank or contains a line break; remove it from the vocabulary")
    if not is_utf8("".join(words)):
        word = next(word for word in words if not is_utf8(word))
        raise InputError(f"the word {word!r} contains a lone surrogate, which cannot be saved; replace it")
