"""Documents as sparse word counts, with the vocabulary, the row ids and the tokenizer that made them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .builder import (
    Built,
    TokenizerLike,
    build,
    choose_tokenizer,
)
from ..errors import InputError
from ..files import (
    atomic_directory,
    read_json,
    read_lines,
    require_free,
    write_json,
    write_lines,
)
from ..text import (
    AnyTokenizer,
    Document,
    Pretokenized,
    read,
    tokenizer_from_settings,
)
from ..text.counting import (
    Counts,
    Text,
    columns_of,
    counts_of,
    refuse_line_breaks,
    remap,
)
from ..text.storage import (
    StoredTexts,
    damaged,
    load_array,
    write_texts,
)
from .vocabulary import Filters, index_type

__all__ = ["Corpus", "Counts", "Filters", "Text", "align", "counts_of"]

logger = logging.getLogger("topicloom")

FORMAT_VERSION = 1


@dataclass(frozen=True, eq=False, repr=False)
class Corpus:
    """Documents as counts of words; row i is document i, always, however few of its words are in the vocabulary.

    Attributes:
        counts: (n_docs, n_words) CSR, float32, without explicit zeros or duplicates, columns sorted within a row.
        vocabulary: the word of each column; the constructors from text put frequent words first.
        ids: a name for each row; "0", "1", ... unless given.
        labels: a class for each row, or None.
        timestamps: a time for each row, or None.
        texts: the raw texts, or None; a loaded corpus reads them from disk when asked.
        tokenizer: what cuts a new text the same way.
        settings: the filters that chose the vocabulary.
    """

    counts: Counts
    vocabulary: list[str]
    ids: list[str]
    labels: list[str] | None = None
    timestamps: list[str] | None = None
    texts: Sequence[str] | None = None
    tokenizer: AnyTokenizer = field(default_factory=Pretokenized)
    settings: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[Text],
        language: str = "auto",
        min_df: float = 5,
        max_df: float = 0.5,
        max_features: int | None = None,
        stop_words: str | Path | Iterable[str] | None = "auto",
        remove_top: int = 0,
        tokenizer: TokenizerLike = None,
        *,
        ids: Iterable[Any] | None = None,
        labels: Iterable[Any] | None = None,
        timestamps: Iterable[Any] | None = None,
        keep_texts: bool = True,
        user_dictionary: str | Path | None = None,
        n_jobs: int | None = None,
        progress: bool = False,
    ) -> Corpus:
        """Counts the words of texts; columns are ordered by falling frequency, ties by the alphabet.

        Args:
            texts: raw texts, or documents that are lists of tokens already; a generator will do.
            language: a code such as "en" or "zh"; "auto" looks at the scripts of the first texts.
            min_df: words in fewer documents are dropped; a whole number of documents, or a share of all as a float.
            max_df: words in more documents are dropped; likewise.
            max_features: keeps the most frequent words only.
            stop_words: "auto" is the language's list, and none for tokens or your own tokenizer; None is none; or
                words, or a file of them.
            remove_top: drops this many of the most frequent words that the document filters have left.
            tokenizer: your own function from a text to tokens, or another corpus' tokenizer.
            ids: a name for each document.
            labels: a class for each document.
            timestamps: a time for each document.
            keep_texts: keeps the raw texts; lists of tokens are never kept.
            user_dictionary: a file of words that Chinese segmentation is to keep whole.
            n_jobs: worker processes (-1: all cores); None starts them only when there is much text.
            progress: shows a progress bar on standard error.

        Raises:
            InputError: a document is not text, lengths differ, or no word passes the filters.
            SettingError: a filter or language that cannot be.
            MissingExtraError: the language's segmenter is not installed.
        """
        if isinstance(texts, (str, bytes)):
            raise InputError("texts is a single string; give a list with a string for each document")
        documents: Iterator[Document] = (Document(cast(Any, text)) for text in texts)
        filters = Filters(min_df, max_df, max_features, remove_top)
        chosen, documents = choose_tokenizer(tokenizer, documents, language, stop_words, user_dictionary)
        keep_texts = keep_texts and not isinstance(chosen, Pretokenized)
        built = build(documents, chosen, filters, keep_texts, n_jobs, progress)
        n_docs = len(built.ids)
        built = built._replace(
            ids=_column("ids", ids, n_docs) or built.ids,
            labels=_column("labels", labels, n_docs),
            timestamps=_column("timestamps", timestamps, n_docs),
        )
        return cls._of(built, chosen, filters)

    @classmethod
    def from_file(
        cls,
        source: str | Path,
        language: str = "auto",
        min_df: float = 5,
        max_df: float = 0.5,
        max_features: int | None = None,
        stop_words: str | Path | Iterable[str] | None = "auto",
        remove_top: int = 0,
        tokenizer: TokenizerLike = None,
        *,
        text: str = "text",
        id: str | None = None,
        label: str | None = None,
        timestamp: str | None = None,
        format: str | None = None,
        encoding: str = "utf-8",
        errors: str = "strict",
        out: str | Path | None = None,
        overwrite: bool = False,
        keep_texts: bool = True,
        user_dictionary: str | Path | None = None,
        n_jobs: int | None = None,
        progress: bool = False,
    ) -> Corpus:
        """Counts the words of a file's documents; the filters are those of `from_texts`.

        Args:
            source: a .txt (a document a line), .csv, .tsv, .jsonl or .parquet file, or a folder of .txt files.
            text: the column with the text; `id`, `label` and `timestamp` likewise (see `topicloom.text.read`).
            format: the file's format, when its name does not say it.
            encoding: the encoding of text files.
            errors: what to do with undecodable bytes: "strict", "replace" or "ignore".
            out: a directory to write the corpus to while it is built, so that it need not fit in memory; what comes
                back is memory-mapped from there.
            overwrite: replaces what `out` holds.

        Raises:
            InputError: the file cannot be read, or no word passes the filters.
            SettingError: a filter or language that cannot be.
            MissingExtraError: an optional package is needed and not installed.
        """
        filters = Filters(min_df, max_df, max_features, remove_top)
        if out is not None:
            require_free(Path(out), "corpus.json", overwrite)
        documents = read(
            source, text=text, id=id, label=label, timestamp=timestamp, format=format, encoding=encoding, errors=errors
        )
        chosen, documents = choose_tokenizer(tokenizer, documents, language, stop_words, user_dictionary)
        if out is None:
            return cls._of(build(documents, chosen, filters, keep_texts, n_jobs, progress), chosen, filters)
        with atomic_directory(Path(out), "corpus.json", overwrite=overwrite) as folder:
            built = build(documents, chosen, filters, keep_texts, n_jobs, progress, folder)
            cls._of(built, chosen, filters)._save_into(folder)
        return cls.load(out)

    @classmethod
    def from_counts(
        cls,
        counts: Any,
        vocabulary: Iterable[str] | None = None,
        texts: Sequence[str] | None = None,
        ids: Iterable[Any] | None = None,
        labels: Iterable[Any] | None = None,
        timestamps: Iterable[Any] | None = None,
        *,
        fractional: bool = False,
    ) -> Corpus:
        """A corpus of counts made elsewhere; the given matrix is left as it is.

        Args:
            counts: (n_docs, n_words) sparse or dense; whole numbers from 0.
            vocabulary: the word of each column; "word0", "word1", ... unless given.
            texts: the raw texts of the rows.
            ids: a name for each row.
            labels: a class for each row.
            timestamps: a time for each row.
            fractional: allows counts that are not whole.

        Raises:
            InputError: a count that cannot be (its row and column are named), or lengths that differ.
        """
        matrix = _checked_counts(counts, fractional)
        n_docs, n_words = matrix.shape
        words = [f"word{i}" for i in range(n_words)] if vocabulary is None else [str(word) for word in vocabulary]
        if len(words) != n_words:
            raise InputError(f"the vocabulary has {len(words)} words, and the counts have {n_words} columns")
        if len(set(words)) < n_words:
            seen: set[str] = set()
            twice = next(word for word in words if word in seen or seen.add(word))  # type: ignore[func-returns-value]
            raise InputError(f"the vocabulary holds {twice!r} twice; every column needs a word of its own")
        refuse_line_breaks(words)
        if texts is not None and len(texts) != n_docs:
            raise InputError(f"there are {len(texts)} texts and {n_docs} documents; give one for each")
        return cls(
            matrix,
            words,
            _column("ids", ids, n_docs) or _numbers(n_docs),
            _column("labels", labels, n_docs),
            _column("timestamps", timestamps, n_docs),
            texts,
        )

    @classmethod
    def _of(cls, built: Built, tokenizer: AnyTokenizer, filters: Filters) -> Corpus:
        """A corpus of what was counted, with a warning where documents have no word."""
        corpus = cls(**built._asdict(), tokenizer=tokenizer, settings=asdict(filters))
        if n_empty := int(corpus.is_empty.sum()):
            logger.warning(
                "%s of %s documents hold no word of the vocabulary; their rows are kept", n_empty, len(corpus)
            )
        return corpus

    @cached_property
    def is_empty(self) -> npt.NDArray[np.bool_]:
        """(n_docs,) True where a document has no word of the vocabulary."""
        empty: npt.NDArray[np.bool_] = np.diff(self.counts.indptr) == 0
        return empty

    @property
    def shape(self) -> tuple[int, int]:
        """(n_docs, n_words), as scikit-learn asks of what it splits."""
        return self.n_docs, self.n_words

    @property
    def n_docs(self) -> int:
        """The number of documents."""
        return int(self.counts.shape[0])

    @property
    def n_words(self) -> int:
        """The size of the vocabulary."""
        return int(self.counts.shape[1])

    @cached_property
    def n_tokens(self) -> int:
        """The sum of all counts."""
        return round(float(self.counts.data.sum(dtype=np.float64)))

    def __len__(self) -> int:
        return self.n_docs

    def __repr__(self) -> str:
        return f"Corpus({self.n_docs:,} documents, {self.n_words:,} words, {self.n_tokens:,} tokens)"

    def __getitem__(self, rows: Any) -> Corpus:
        return self.subset(rows[0] if isinstance(rows, tuple) else rows)  # scikit-learn asks for [rows, ...]

    def subset(self, rows: Any) -> Corpus:
        """Some of the documents, over the same vocabulary.

        Args:
            rows: a slice, row numbers, or a (n_docs,) mask.

        Raises:
            IndexError: there is no such row.
        """
        chosen: npt.NDArray[np.intp] = np.atleast_1d(np.arange(self.n_docs)[rows])

        def pick(column: Sequence[str] | None) -> list[str] | None:
            return None if column is None else [column[row] for row in chosen]

        return Corpus(
            self.counts[chosen],
            self.vocabulary,
            pick(self.ids) or [],
            pick(self.labels),
            pick(self.timestamps),
            self.texts.take(chosen) if isinstance(self.texts, StoredTexts) else pick(self.texts),
            self.tokenizer,
            self.settings,
        )

    def encode(self, texts: Iterable[Text], n_jobs: int | None = None) -> Counts:
        """(n, n_words) counts of new texts, cut as this corpus was; words outside the vocabulary are left out."""
        return counts_of(texts, self.vocabulary, self.tokenizer, n_jobs)

    def save(self, directory: str | Path, overwrite: bool = False) -> None:
        """Writes the corpus to a directory.

        Raises:
            InputError: the directory holds something and `overwrite` is off.
        """
        with atomic_directory(Path(directory), "corpus.json", overwrite=overwrite) as folder:
            self._save_into(folder)

    @classmethod
    def load(cls, directory: str | Path, mmap: bool = True) -> Corpus:
        """Reads what `save` wrote.

        Args:
            directory: where it was saved.
            mmap: leaves counts and texts on disk, and reads them as they are needed.

        Raises:
            InputError: not a corpus, one of a newer version, or one that is damaged.
        """
        folder = Path(directory)
        if not (folder / "corpus.json").is_file():
            raise InputError(f"{folder} is not a saved corpus (it has no corpus.json); check the path")
        about = read_json(folder / "corpus.json")
        if about.get("format_version", 0) > FORMAT_VERSION:
            raise InputError(f"{folder} was written by a newer topicloom; upgrade with pip install -U topicloom")
        wanted = ("n_docs", "n_words", "columns", "tokenizer", "settings")
        if not all(name in about for name in wanted):
            raise damaged(folder / "corpus.json")
        n_docs, n_words, columns, tokenizer, settings = (about[name] for name in wanted)
        data, indices, indptr = (load_array(folder / f"{name}.npy", mmap) for name in ("data", "indices", "indptr"))
        try:
            words = read_lines(folder / "vocabulary.txt")
        except (OSError, UnicodeDecodeError):
            raise damaged(folder / "vocabulary.txt") from None
        sound = {
            "indptr.npy": len(indptr) == n_docs + 1,
            "indices.npy": len(indices) == indptr[-1],
            "data.npy": len(data) == indptr[-1],
            "vocabulary.txt": len(words) == n_words,
        }
        for name, is_sound in sound.items():
            if not is_sound:
                raise damaged(folder / name)
        ids, labels, timestamps, texts = (
            StoredTexts.load(folder, name, n_docs, mmap) if columns[name] else None
            for name in ("ids", "labels", "timestamps", "texts")
        )
        return cls(
            sparse.csr_array((data, indices, indptr), shape=(n_docs, n_words)),
            words,
            list(ids or _numbers(n_docs)),
            None if labels is None else list(labels),
            None if timestamps is None else list(timestamps),
            texts,
            tokenizer_from_settings(tokenizer),
            settings,
        )

    def _save_into(self, folder: Path) -> None:
        """Writes what is not in `folder` yet; a corpus built there already has its arrays and texts in place."""
        for name in ("data", "indices", "indptr"):
            if not (folder / f"{name}.npy").exists():
                np.save(folder / f"{name}.npy", getattr(self.counts, name))
        write_lines(folder / "vocabulary.txt", self.vocabulary)
        columns = {name: getattr(self, name) for name in ("ids", "labels", "timestamps", "texts")}
        if self.ids == _numbers(self.n_docs):
            columns["ids"] = None
        for name, column in columns.items():
            if column is not None and not (folder / f"{name}.utf8").exists():
                write_texts(folder, name, column)
        about = {
            "format_version": FORMAT_VERSION,
            "n_docs": self.n_docs,
            "n_words": self.n_words,
            "columns": {name: column is not None for name, column in columns.items()},
            "settings": self.settings,
            "tokenizer": self.tokenizer.model_dump(mode="json"),
        }
        write_json(folder / "corpus.json", about)


def align(corpus: Corpus, vocabulary: Iterable[str]) -> Counts:
    """(n_docs, n_words) the corpus' counts over another vocabulary, matched by word; other words are left out."""
    vocabulary = list(vocabulary)
    if vocabulary == corpus.vocabulary:
        return corpus.counts  # as they are, for they may be memory-mapped
    places = {word: column for column, word in enumerate(vocabulary)}
    return remap(corpus.counts, columns_of(corpus.vocabulary, places), len(places))


def _checked_counts(counts: Any, fractional: bool) -> Counts:
    """A copy as CSR float32, after the checks that `Corpus.from_counts` promises."""
    if not sparse.issparse(counts):
        counts = np.asarray(counts)
    if counts.ndim != 2 or 0 in counts.shape:
        raise InputError(f"counts have shape {counts.shape}; (documents, words) is needed, with one of each at least")
    if counts.dtype.kind not in "biuf":
        raise InputError(f"counts are of type {counts.dtype}; numbers are needed")
    matrix = sparse.csr_array(counts).astype(np.float32)  # always a copy
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    faults = {
        "not finite": ~np.isfinite(matrix.data),
        "negative": matrix.data < 0,
        "not a whole number (fractional=True allows it, in a model fractional_counts=True)": matrix.data
        != np.trunc(matrix.data),
    }
    if fractional:
        faults.popitem()
    for fault, bad in faults.items():
        if bad.any():
            entry = int(bad.argmax())
            row = int(np.searchsorted(matrix.indptr, entry, side="right")) - 1
            column = int(matrix.indices[entry])
            raise InputError(f"the count in row {row}, column {column} is {matrix.data[entry]:g}, which is {fault}")
    index = index_type(matrix.nnz)
    arrays = (matrix.data, matrix.indices.astype(index, copy=False), matrix.indptr.astype(index, copy=False))
    return sparse.csr_array(arrays, shape=matrix.shape)


def _numbers(count: int) -> list[str]:
    return [str(row) for row in range(count)]


def _column(name: str, values: Iterable[Any] | None, n_docs: int) -> list[str] | None:
    if values is None:
        return None
    column = ["" if value is None else str(value) for value in values]
    if len(column) != n_docs:
        raise InputError(f"there are {len(column)} {name} and {n_docs} documents; give one for each")
    return column
