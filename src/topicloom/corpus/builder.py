"""Documents -> counts and their vocabulary, in two passes that hold no more of the text than a few chunks.

Texts are counted chunk by chunk (in worker processes when there is much), each chunk's counts are spooled; once all
words are known the filters choose the vocabulary, and the spool is read back into the final arrays.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple, TypeAlias

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from ..errors import InputError
from ..text import (
    AnyTokenizer,
    CustomTokenizer,
    Document,
    Pretokenized,
    Tokenizer,
    make_tokenizer,
)
from ..text.counting import (
    Counts,
    Text,
    chunked,
    count_chunks,
)
from ..text.storage import TextWriter
from ..text.tokenizers import resolve_stop_words
from .vocabulary import Filters, Tally

logger = logging.getLogger("topicloom")

TokenizerLike: TypeAlias = "AnyTokenizer | Callable[[str], Iterable[str]] | None"

_SPOOL_IN_MEMORY = 1 << 26  # bytes of spooled counts before they go to disk


class Built(NamedTuple):
    """What was counted, by the names that a Corpus has for it."""

    counts: Counts
    vocabulary: list[str]
    ids: list[str]
    labels: list[str] | None
    timestamps: list[str] | None
    texts: Sequence[str] | None


def choose_tokenizer(
    tokenizer: TokenizerLike,
    documents: Iterator[Document],
    language: str,
    stop_words: str | Path | Iterable[str] | None,
    user_dictionary: str | Path | None,
) -> tuple[AnyTokenizer, Iterator[Document]]:
    """The tokenizer that the settings and the first documents ask for, and the documents as they were.

    Raises:
        InputError: there is no document, or settings that exclude each other.
        SettingError: a language or stop words that cannot be.
        MissingExtraError: the language's segmenter is not installed.
    """
    first = list(islice(documents, 200))
    documents = chain(first, documents)
    if not first:
        raise InputError("there is no document; give at least one")
    if tokenizer is not None and user_dictionary is not None:
        raise InputError("user_dictionary= belongs to the built-in Chinese tokenizer; leave it or tokenizer= out")
    if isinstance(tokenizer, (Tokenizer, CustomTokenizer, Pretokenized)):
        if not (isinstance(stop_words, str) and stop_words == "auto"):
            raise InputError("tokenizer= has stop words of its own; leave stop_words= out")
        return tokenizer, documents
    if tokenizer is not None:
        return CustomTokenizer.of(tokenizer, resolve_stop_words(stop_words, None)), documents
    if isinstance(first[0].text, (list, tuple)):
        return Pretokenized(stop_words=resolve_stop_words(stop_words, None)), documents
    sample = [document.text for document in first if isinstance(document.text, str)]
    made = make_tokenizer(language, stop_words, user_dictionary, sample=sample)
    if language == "auto":
        logger.info("language: %s, by its script", made.language)
    return made, documents


def build(
    documents: Iterator[Document],
    tokenizer: AnyTokenizer,
    filters: Filters,
    keep_texts: bool,
    n_jobs: int | None,
    progress: bool,
    folder: Path | None = None,
) -> Built:
    """Counts all documents.

    Args:
        documents: read once.
        tokenizer: what cuts their texts.
        filters: what chooses the vocabulary.
        keep_texts: keeps the texts that are strings.
        n_jobs: worker processes, as for `Corpus.from_texts`.
        progress: shows a bar on standard error.
        folder: where the arrays and the texts are to be files, rather than in memory.

    Raises:
        InputError: a document is not text, or no word passes the filters.
    """
    notes: list[tuple[str | None, str | None, str | None]] = []
    with (
        TextWriter(folder if keep_texts else None) as writer,
        tempfile.SpooledTemporaryFile(
            1 if folder else _SPOOL_IN_MEMORY, dir=None if folder is None else str(folder)
        ) as spool,
    ):

        def texts() -> Iterator[Text]:
            for document in documents:
                notes.append(document[1:])
                if keep_texts and isinstance(document.text, str):
                    writer.append(document.text)
                yield document.text

        tally = Tally(spool)
        with _progress(progress) as bar:
            task = bar.add_task("documents", total=None)
            for part in count_chunks(chunked(texts()), tokenizer, n_jobs):
                tally.add(part.words, part.counts)
                bar.update(task, completed=tally.n_docs)
            bar.update(task, total=tally.n_docs)
        counts, vocabulary = tally.filtered(filters, folder)
        stored = writer.finish() if keep_texts else None
    ids, labels, timestamps = ([note[place] for note in notes] for place in range(3))
    return Built(
        counts,
        vocabulary,
        [str(row) if name is None else name for row, name in enumerate(ids)],
        _known(labels),
        _known(timestamps),
        stored,
    )


def _known(values: list[str | None]) -> list[str] | None:
    """The column with blanks for what is not known, or None when nothing is."""
    return None if all(value is None for value in values) else [value or "" for value in values]


def _progress(shown: bool) -> Progress:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), disable=not shown)
