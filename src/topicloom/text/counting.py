"""Texts to sparse counts, chunk by chunk, in worker processes when there is much text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import joblib
import numpy as np
import numpy.typing as npt
from scipy import sparse

from ..errors import InputError, SettingError
from .tokenizers import AnyTokenizer, Pretokenized

Counts: TypeAlias = "sparse.csr_array"
Text: TypeAlias = "str | Iterable[str]"  # raw, or a list of tokens

_CHUNK_DOCUMENTS = 2_000
_CHUNK_CHARACTERS = 1_000_000
_SERIAL_CHARACTERS = 20_000_000  # below this, starting workers takes longer than it saves


class Chunk(NamedTuple):
    """Documents that are counted together."""

    first_row: int
    texts: list[Text]
    n_characters: int


class Part(NamedTuple):
    """A chunk's counts (n_docs, len(words)) over its own words."""

    words: list[str]
    counts: Counts


def counts_of(
    texts: Iterable[Text], vocabulary: Iterable[str], tokenizer: AnyTokenizer, n_jobs: int | None = None
) -> Counts:
    """(n, n_words) float32 counts of texts over a fixed vocabulary; unknown words are left out, rows never are.

    Raises:
        InputError: a document is not what the tokenizer takes.
    """
    places = {word: column for column, word in enumerate(vocabulary)}
    parts = [sparse.csr_array(np.zeros((0, len(places)), np.float32))]  # so that no texts make no rows
    for part in count_chunks(chunked(texts), tokenizer, n_jobs):
        parts.append(remap(part.counts, columns_of(part.words, places), len(places)))
    counts: Counts = sparse.vstack(parts, format="csr", dtype=np.float32)
    return counts


def chunked(texts: Iterable[Text]) -> Iterator[Chunk]:
    """Cuts a stream of documents into chunks of bounded size."""
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
    """Counts chunks, in their order.

    Args:
        chunks: the documents.
        tokenizer: cuts them.
        n_jobs: worker processes (-1: all cores); None starts them once there has been much text.

    Raises:
        InputError: a document is not what the tokenizer takes; its row is named.
        SettingError: n_jobs is 0.
    """
    if n_jobs == 0:
        raise SettingError("n_jobs=0 means nothing; use 1 for this process alone, or -1 for all cores")
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
    # Batches rather than joblib's own streaming: chunks are then read here, where a reader's error is raised as such.
    with joblib.Parallel(workers) as pool:
        while batch := list(islice(chunks, 4 * workers)):
            yield from pool(joblib.delayed(count_chunk)(chunk, tokenizer) for chunk in batch)


def count_chunk(chunk: Chunk, tokenizer: AnyTokenizer) -> Part:
    """Counts one chunk; what comes back is compact, as it travels between processes."""
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
    refuse_line_breaks(words)
    counts = sparse.csr_array(
        (np.ones(len(columns), np.float32), np.array(columns, np.int32), np.array(ends, np.int32)),
        shape=(len(chunk.texts), len(words)),
    )
    counts.sum_duplicates()
    return Part(words, counts)


def columns_of(words: Iterable[str], places: Mapping[str, int]) -> npt.NDArray[np.int32]:
    """(len(words),) the column of each word, -1 where it has none."""
    return np.array([places.get(word, -1) for word in words], np.int32)


def remap(counts: Counts, columns: npt.NDArray[np.int32], n_words: int) -> Counts:
    """Moves every column j of `counts` to columns[j] out of n_words, and drops it where that is -1."""
    moved = columns[counts.indices]
    kept = moved >= 0
    kept_before: npt.NDArray[Any] = np.concatenate([[0], np.cumsum(kept)])
    indptr = kept_before[counts.indptr].astype(counts.indptr.dtype)
    result = sparse.csr_array((counts.data[kept], moved[kept], indptr), shape=(counts.shape[0], n_words))
    result.sort_indices()
    return result


def refuse_line_breaks(words: Iterable[str]) -> None:
    """Raises InputError for a word that cannot stand on a line of vocabulary.txt."""
    for word in words:
        if "\n" in word or "\r" in word or not word.strip():
            raise InputError(f"the word {word!r} is blank or holds a line break, which a vocabulary cannot; remove it")
