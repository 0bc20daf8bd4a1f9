"""Texts in chunks, which this process or worker processes count. The result does not depend on their number."""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from itertools import islice
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..errors import InputError, SettingError
from ..processes import ATTEMPTS, cause_in, end_with
from .counting import Counts, OpenCounter, Part, Text, columns_of, fixed_counter, remap
from .custom import Pretokenized
from .tokenizers import AnyTokenizer, Tokenizer

logger = logging.getLogger("topicloom")

_CHUNK_DOCUMENTS = 20_000
_CHUNK_CHARACTERS = 1_000_000
_TOKEN_CHARACTERS = 8  # as many characters as a token stands for
_SERIAL_SECONDS = 3.0  # before, starting workers takes longer than it saves
_CHUNKS_AHEAD = 4  # chunks that are read for each worker


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
) -> Counts:
    """Count the words of texts over a fixed vocabulary.

    Args:
        texts: texts or lists of tokens, whichever the tokenizer takes.
        vocabulary: the word of each column, or the column of each word, which must not change between calls. Other
            words are left out, and every document keeps its row.
        tokenizer: the tokenizer that splits the texts.
        n_jobs: as for `count_chunks`.

    Returns:
        Counts of shape (n_docs, n_words) and type float32.

    Raises:
        InputError: the tokenizer does not take a document.
    """
    counter = fixed_counter(vocabulary, tokenizer)
    n_words = len(counter.places)
    parts = [
        part.counts
        if part.words is counter.words
        else remap(part.counts, columns_of(part.words, counter.places), n_words)
        for part in count_chunks(chunked(texts), tokenizer, n_jobs, counter)
    ]
    if len(parts) == 1:
        return parts[0]
    parts.append(sparse.csr_array(np.zeros((0, n_words), np.float32)))  # vstack needs one matrix at least
    counts: Counts = sparse.vstack(parts, format="csr", dtype=np.float32)
    return counts


def chunked(texts: Iterable[Text]) -> Iterator[Chunk]:
    """Divide a stream of documents into chunks of bounded size."""
    chunk: list[Text] = []
    row = characters = 0
    for text in texts:
        chunk.append(text)
        if isinstance(text, str):
            characters += len(text)
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


class _Job:
    """A chunk that a worker counts."""

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self.future: Future[Part] | None = None

    @property
    def is_counted(self) -> bool:
        return self.future is not None and self.future.done() and self.future.exception() is None


def _counted_by_workers(chunks: Iterator[Chunk], tokenizer: AnyTokenizer, workers: int) -> Iterator[Part]:
    """Count chunks in worker processes. If a process dies, the chunks that are not counted yet are given again."""
    from joblib.externals.loky import get_reusable_executor

    n_deaths = 0  # since the last chunk was counted
    jobs = deque(map(_Job, islice(chunks, _CHUNKS_AHEAD * workers)))
    pool = None
    try:
        while jobs:
            try:
                pool = pool or get_reusable_executor(workers, timeout=60, initializer=end_with, initargs=(os.getpid(),))
                for job in jobs:
                    if job.future is None:
                        job.future = pool.submit(_count, job.chunk, tokenizer)
                part = jobs[0].future.result()  # type: ignore[union-attr]
            except BrokenProcessPool as error:
                pool, n_deaths = None, n_deaths + 1
                again = [job for job in jobs if not job.is_counted]
                last = again[-1].chunk
                rows = f"documents {again[0].chunk.first_row} to {last.first_row + len(last.texts) - 1}"
                cause = cause_in(str(error))
                if n_deaths == ATTEMPTS:
                    raise InputError(
                        f"worker processes that counted {rows} died {ATTEMPTS} times ({cause}); use `n_jobs=1`, which "
                        "starts none"
                    ) from None
                logger.warning("a worker process that counted %s died (%s); they are counted again", rows, cause)
                for job in again:
                    job.future = None
                continue
            n_deaths = 0
            jobs.popleft()
            jobs.extend(map(_Job, islice(chunks, 1)))
            yield part
    except KeyboardInterrupt:
        if pool is not None:
            pool.shutdown(kill_workers=True)  # or this process would wait until they have counted their chunks
        raise
    finally:
        for job in jobs:
            if job.future is not None:
                job.future.cancel()


def _counted_on_nodes(chunks: Iterator[Chunk], tokenizer: AnyTokenizer, address: str) -> Iterator[Part]:
    """Count chunks on the nodes of a cluster. Those of a node that is lost are counted by others."""
    from ..processes.cluster import Lost, calls_on

    with calls_on(address, _count_sent, lambda rows: f"documents {rows[0]} to {rows[1] - 1}") as calls:
        sent = calls.share(tokenizer)
        counted: dict[int, tuple[int, Part]] = {}  # by the first row, with the row after the last one
        row = 0
        while True:
            n_free = _CHUNKS_AHEAD * calls.n_cores - len(calls) - len(counted)
            for chunk in islice(chunks, max(n_free, 0 if len(calls) else 1)):
                calls.begin((chunk.first_row, chunk.first_row + len(chunk.texts)), chunk, sent)
            if not len(calls):
                return
            (first, end), part = calls.next()
            if isinstance(part, Lost):
                raise InputError(
                    f"documents {first} to {end - 1} could not be counted in {ATTEMPTS} attempts ({part.cause}); leave "
                    "`cluster` out to count them on this machine"
                )
            counted[first] = end, part
            while row in counted:
                row, part = counted.pop(row)
                yield part


def _count_sent(chunk: Chunk, sent: tuple[Any]) -> Part:
    """Count a chunk on a node of a cluster, to which the tokenizer was sent once."""
    from ..processes.cluster import shared

    return _count(chunk, shared(sent))


def _count(chunk: Chunk, tokenizer: AnyTokenizer) -> Part:
    """Count a chunk in a worker process, which remembers the pieces of the chunks before."""
    counter = _counter(tokenizer) if isinstance(tokenizer, Tokenizer) else OpenCounter(tokenizer)
    return counter(*chunk)


@lru_cache(maxsize=1)
def _counter(tokenizer: Tokenizer) -> OpenCounter:
    return OpenCounter(tokenizer)
