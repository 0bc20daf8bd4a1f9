"""The documents of a run in SQLite, with full-text search.

The file is built completely or not at all, and is only read afterwards.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import groupby, repeat
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..corpus import Corpus
from ..errors import InputError
from ..files import atomic_file
from ..text.languages import UNSPACED
from ..text.strings import normalise
from ..topics.table import written_times

# Texts and queries as words of the full-text index
#
# SQLite's tokenizers cannot segment Chinese. Therefore the run's own tokenizer splits both texts and queries. It can
# segment two texts differently around the same word, so scripts without spaces are also indexed by character, and their
# words are also found as sequences of characters.
#
# Every token is stored in lower case, as the hexadecimal digits of its UTF-8. SQLite reads the digits as one word, and
# they cannot contain operators of its query language.

Tokenize = Callable[[str], Iterable[str]]
_MAX_QUERY_WORDS = 32
_GAP = "x"  # not a hexadecimal digit, so no sequence of characters crosses it


def entry(text: str, tokens: Iterable[str]) -> tuple[str, str]:
    """Return the two texts of a document in the index: its tokens, and its characters of scripts without spaces."""
    return " ".join(map(_encoded, tokens)), _characters(text)


def query_words(query: str, tokenize: Tokenize | None) -> list[str]:
    """Return the words of a query.

    Args:
        query: the text of the user.
        tokenize: the run's tokenizer; None splits at spaces.
    """
    try:
        words = list(query.casefold().split() if tokenize is None else tokenize(query))
    except InputError:  # the user's tokenizer is not available, or does not accept the text
        words = query.casefold().split()
    if not words:  # the tokenizer drops, for example, a single character of Chinese
        words = ["".join(run) for unspaced, run in groupby(normalise(query), _is_unspaced) if unspaced]
    return list(dict.fromkeys(words))[:_MAX_QUERY_WORDS]


def match(words: Sequence[str]) -> str:
    """Return the query of FTS5 for documents that have all words."""
    return " AND ".join(map(_clause, words))


def _clause(word: str) -> str:
    token = f'tokens : "{_encoded(word)}"'
    if word and all(map(_is_unspaced, word)):
        return f'({token} OR characters : "{" ".join(map(_encoded, word))}")'
    return f"({token})"


def _characters(text: str) -> str:
    runs = groupby(normalise(text).casefold(), _is_unspaced)
    return " ".join(" ".join(map(_encoded, run)) if unspaced else _GAP for unspaced, run in runs)


def _is_unspaced(character: str) -> bool:
    return character > "\u0300" and UNSPACED.match(character) is not None


def _encoded(token: str) -> str:
    """Return a token as words of the index. A token with spaces is several words, which a query finds as a phrase."""
    return " ".join(part.encode("utf-8", "replace").hex() for part in token.casefold().split())


FORMAT_VERSION = 3
_MAX_REPEATS = 1000  # the most repetitions of a word in a document
_TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE documents (row INTEGER PRIMARY KEY, id TEXT NOT NULL, label TEXT, time TEXT, text TEXT);
CREATE VIRTUAL TABLE words USING fts5 (tokens, characters, content='', tokenize='ascii');
"""
_WHOLE_ID, _PART_OF_ID = -2e9, -1e9  # ranks of documents that are found by their ids, before all ranks of BM25
_HEADER_BYTES = 100  # the size of SQLite's header, which has the numbers user_version and application_id
_FREE = (slice(60, 64), slice(68, 72))
_INDEX = "CREATE INDEX ids ON documents (id)"


@dataclass(frozen=True)
class StoredDocument:
    """A document in the index. Fields that it does not have are None."""

    row: int
    id: str
    label: str | None
    time: str | None
    text: str | None


class SlowQueryError(Exception):
    """A query took too long."""


class ReplacedError(InputError):
    """The run in the directory is no longer the one that is served."""

    def __init__(self) -> None:
        super().__init__("the run was replaced or removed after the service had been started; start the service again")


class DocumentIndex:
    """Reads an index that `build_index` wrote. Threads can share it; each query in progress has its own connection.

    Args:
        path: the file.
        seconds: the longest time that a query may take.
        digest: a text that identifies the documents. If it is given, and the file has been replaced by that of other
            documents, no connection to it is opened.
    """

    def __init__(self, path: Path, seconds: float = 10.0, digest: str | None = None) -> None:
        self.path, self.seconds, self.digest = path, seconds, digest
        self._free: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self._is_open = True
        self._n_own_ids: int | None = None  # 0 if the ids are the documents' numbers; None until it is needed

    def documents(self, rows: Sequence[int]) -> list[StoredDocument]:
        """Return documents by their rows, in the order of `rows`."""
        marks = ",".join("?" * len(rows))
        found = self._read(f"SELECT row, id, label, time, text FROM documents WHERE row IN ({marks})", rows)
        by_row = {each[0]: StoredDocument(*each) for each in found}
        return [by_row[row] for row in rows if row in by_row]

    def having_id(self, id: str) -> npt.NDArray[np.intp]:
        """Return the rows of all documents that have an id, in ascending order."""
        return self._rows_where("SELECT row FROM documents WHERE id = ? ORDER BY row", id)

    def containing_id(self, part: str, common: bool) -> list[tuple[float, int]]:
        """Return ranks and rows of documents whose id contains a text, regardless of case. Whole ids come first.

        Ids that are only the numbers of documents are found by the whole id only.

        Args:
            part: the text.
            common: whether to search for a text that more than half of the ids contain.
        """
        if not part:
            return []
        if self._n_own_ids is None:
            own = "SELECT count(*) FROM documents WHERE EXISTS (SELECT 1 FROM documents WHERE id <> CAST(row AS TEXT))"
            self._n_own_ids = int(self._read(own, ())[0][0])
        whole, has = "lower(id) = lower(?)", "instr(lower(id), lower(?))"
        n = self._read(f"SELECT count(*) FROM documents WHERE {has}", (part,))[0][0] if self._n_own_ids else 0
        if self._n_own_ids and not n:
            return []
        found = self._read(
            f"SELECT CASE WHEN {whole} THEN {_WHOLE_ID} ELSE {_PART_OF_ID} END AS rank, row FROM documents "
            f"WHERE {has if n and (common or 2 * n <= self._n_own_ids) else whole} ORDER BY rank, row",
            (part, part),
        )
        return [(float(rank), int(row)) for rank, row in found]

    def having_label(self, label: str) -> npt.NDArray[np.intp]:
        """Return the rows of all documents of a class, in ascending order."""
        return self._rows_where("SELECT row FROM documents WHERE label = ? ORDER BY row", label)

    def matching(self, words: Sequence[str]) -> npt.NDArray[np.intp]:
        """Return the rows of all documents that have all words, in ascending order."""
        return self._rows_where("SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid", match(words))

    def count(self, words: Sequence[str]) -> int:
        """Return the number of documents that have all words."""
        return int(self._read("SELECT count(*) FROM words WHERE words MATCH ?", (match(words),))[0][0])

    def ranked(self, words: Sequence[str], after: tuple[float, int] | None, n: int) -> list[tuple[float, int]]:
        """Return documents that have all words, best first by BM25.

        Args:
            words: the words that `query_words` returned.
            after: the rank and the row of the document after which the answer begins.
            n: how many documents.

        Returns:
            the ranks, lowest first, and the rows of the documents.
        """
        rank, row = after or (float("-inf"), -1)
        found = self._read(
            "WITH found AS MATERIALIZED (SELECT bm25(words) AS rank, rowid AS row FROM words WHERE words MATCH ?) "
            "SELECT rank, row FROM found WHERE rank > ? OR (rank = ? AND row > ?) ORDER BY rank, row LIMIT ?",
            (match(words), rank, rank, row, n),
        )
        return [(float(rank), int(row)) for rank, row in found]

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            self._is_open = False
            while self._free:
                self._free.pop().close()

    def _rows_where(self, query: str, value: str) -> npt.NDArray[np.intp]:
        return np.array([row for (row,) in self._read(query, (value,))], np.intp)

    def _read(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        with self._connection() as connection:
            end = time.monotonic() + self.seconds
            connection.set_progress_handler(lambda: time.monotonic() > end, 10_000)
            try:
                rows: list[tuple[Any, ...]] = connection.execute(query, values).fetchall()
            except sqlite3.OperationalError as error:
                if "interrupted" in str(error):
                    raise SlowQueryError from None
                raise
            return rows

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            connection = self._free.pop() if self._free else None
        connection = connection or self._connect()
        try:
            yield connection
        finally:
            with self._lock:
                if self._is_open:
                    self._free.append(connection)
                else:
                    connection.close()

    def _connect(self) -> sqlite3.Connection:
        """Open the file. Raise an error if it is gone, or belongs to a run that has replaced this one."""
        if not self.path.exists():
            raise ReplacedError
        connection = _open(self.path)
        if self.digest is not None and not _is_of(connection, self.digest):
            connection.close()
            raise ReplacedError
        return connection


def build_index(path: Path, digest: str, corpus: Corpus, tokenize: Tokenize | None) -> None:
    """Write the index of documents, completely or not at all.

    Args:
        path: the file.
        digest: a text that identifies the documents; `is_current` compares it.
        corpus: the documents.
        tokenize: splits a text into tokens. If it is None, or the texts are not known, the words of the corpus are
            indexed.

    Raises:
        InputError: this Python's SQLite has no full-text search.
        OSError: the file cannot be written.
    """
    require_full_text_search()
    with atomic_file(path) as temporary:
        try:
            with closing(sqlite3.connect(temporary, isolation_level=None)) as connection:
                connection.execute("PRAGMA journal_mode = OFF")
                connection.execute("PRAGMA synchronous = OFF")
                connection.executescript(_TABLES)
                connection.execute("BEGIN")
                connection.executemany("INSERT INTO documents VALUES (?, ?, ?, ?, ?)", _rows(corpus))
                connection.executemany(
                    "INSERT INTO words (rowid, tokens, characters) VALUES (?, ?, ?)",
                    ((row, *entry(text, tokens)) for row, (text, tokens) in enumerate(_texts(corpus, tokenize))),
                )
                connection.execute("INSERT INTO words (words) VALUES ('optimize')")
                connection.execute(_INDEX)
                connection.execute("INSERT INTO about VALUES ('digest', ?)", (_mark(digest),))
                connection.execute("COMMIT")
        except sqlite3.OperationalError as error:
            number = errno.ENOSPC if "full" in str(error) else errno.EIO
            raise OSError(number, os.strerror(number), str(path)) from error
        seal = _seal(temporary)
        with temporary.open("r+b") as file:
            for place, part in zip(_FREE, (seal[:4], seal[4:]), strict=True):
                file.seek(place.start)
                file.write(part)


def is_current(path: Path, digest: str) -> bool:
    """Whether a file is an undamaged index of the documents that `digest` identifies, written by this version."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(_HEADER_BYTES)
    if b"".join(head[place] for place in _FREE) != _seal(path):
        return False
    try:
        with closing(_open(path)) as connection:
            return _is_of(connection, digest)
    except sqlite3.Error:
        return False


def _is_of(connection: sqlite3.Connection, digest: str) -> bool:
    found = connection.execute("SELECT value FROM about WHERE name = 'digest'").fetchone()
    return bool(found == (_mark(digest),))


def require_full_text_search() -> None:
    """Check that SQLite has FTS5.

    Raises:
        InputError: SQLite has no FTS5.
    """
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute("CREATE VIRTUAL TABLE words USING fts5 (tokens)")
        except sqlite3.OperationalError:
            raise InputError(
                f"SQLite {sqlite3.sqlite_version} of this Python has no full-text search (FTS5), which the service "
                "needs for documents; use a Python whose SQLite has it, such as that of python.org or of Debian"
            ) from None


def _seal(path: Path) -> bytes:
    """Return a checksum of a database, 8 bytes. It excludes the bytes of the header that store it."""
    with path.open("rb") as file:
        head = bytearray(file.read(_HEADER_BYTES))
        for place in _FREE:
            head[place] = bytes(4)
        found = hashlib.sha256(head)
        while part := file.read(1 << 20):
            found.update(part)
    return found.digest()[:8]


def _open(path: Path) -> sqlite3.Connection:
    # An immutable file is read without locks, so it may lie on a read-only disk.
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False)


def _mark(digest: str) -> str:
    return json.dumps([FORMAT_VERSION, digest])


def _rows(corpus: Corpus) -> Iterator[tuple[int, str, str | None, str | None, str | None]]:
    times = repeat(None) if corpus.times is None else written_times(corpus.times)
    for row, (id, moment) in enumerate(zip(corpus.ids, times, strict=False)):
        label = corpus.labels[row] or None if corpus.labels is not None else None
        yield row, id, label, moment, None if corpus.texts is None else corpus.texts[row]


def _texts(corpus: Corpus, tokenize: Tokenize | None) -> Iterator[tuple[str, Iterable[str]]]:
    """Yield the text and the tokens of each document, or its words in any order if the text is not known."""
    if tokenize is not None and corpus.texts is not None:
        yield from ((text, tokenize(text)) for text in corpus.texts)
        return
    counts, words = corpus.counts, corpus.vocabulary
    for row in range(corpus.n_docs):
        part = slice(counts.indptr[row], counts.indptr[row + 1])
        pairs = zip(counts.indices[part].tolist(), counts.data[part].tolist(), strict=True)
        tokens = [words[word] for word, count in pairs for _ in range(min(_MAX_REPEATS, max(1, round(count))))]
        yield " ".join(tokens), tokens
