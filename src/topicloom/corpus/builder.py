"""Count the words of documents and choose the vocabulary, with only a few chunks of text in memory at a time.

Texts are counted chunk by chunk; worker processes count long texts. The counts of each chunk go to a temporary file.
Once all words are known, the filters choose the vocabulary, and the counts are read back into the final arrays.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from ..errors import InputError
from ..text import AnyTokenizer, CustomTokenizer, Document, Pretokenized, Tokenizer, make_tokenizer
from ..text.chunks import chunked, count_chunks
from ..text.counting import Counts, Text
from ..text.languages import can_split, is_spaced_out, is_traditional, mismatch, other_language, unsplit
from ..text.storage import TextWriter
from ..text.tokenizers import resolve_stop_words
from .fields import numbers
from .times import Times, parse_times
from .vocabulary import Filters, Tally

logger = logging.getLogger("topicloom")

TokenizerLike: TypeAlias = "AnyTokenizer | Callable[[str], Iterable[str]] | str | None"

_SPOOL_IN_MEMORY = 1 << 26  # bytes of counts that are kept in memory before the temporary file goes to disk
_BATCH = 200  # documents that are read together
_SAMPLE = 200  # documents from which the language is recognised
_SAMPLE_CHARACTERS = 500  # of each of them


class Built(NamedTuple):
    """The result of counting; the names are those of a Corpus."""

    counts: Counts
    vocabulary: list[str]
    ids: Sequence[str]
    labels: Sequence[str] | None
    timestamps: Times | None
    texts: Sequence[str] | None


def choose_tokenizer(
    tokenizer: TokenizerLike,
    documents: Iterator[Document],
    language: str,
    stop_words: str | Path | Iterable[str] | None,
    user_dictionary: str | Path | None,
    replace_stop_words: bool = False,
) -> tuple[AnyTokenizer, Iterator[Document]]:
    """Choose the tokenizer from the settings and the first documents.

    Args:
        tokenizer: the user's own tokenizer, if any; a string names it, as "module:function".
        documents: the documents; the first ones are read to recognise their language.
        language: a language code, or "auto".
        stop_words, user_dictionary, replace_stop_words: as for `topicloom.text.make_tokenizer`.

    Returns:
        the tokenizer, and all the documents.

    Raises:
        InputError: there are no documents, settings exclude each other, or the texts are in a language that the
            tokenizer of `language` cannot split into words.
        SettingError: the language is not known, or the stop words cannot be used.
        MissingExtraError: the language's segmenter is not installed.
    """
    first = list(islice(documents, _SAMPLE))
    documents = chain(first, documents)
    if not first:
        raise InputError("no documents were given; give at least one")
    if tokenizer is not None and user_dictionary is not None:
        raise InputError(
            "`user_dictionary` belongs to the built-in Chinese tokenizer and cannot be combined with `tokenizer`; "
            "leave one of them out"
        )
    texts = [document.text for document in first if isinstance(document.text, str)]
    if language != "auto" and (tokenizer is not None or not texts):
        why = "the documents are lists of tokens" if tokenizer is None else "`tokenizer` splits the texts"
        logger.warning("`language` has no effect, because %s; leave it out", why)
    if isinstance(tokenizer, (Tokenizer, CustomTokenizer, Pretokenized)):
        if replace_stop_words or not (isinstance(stop_words, str) and stop_words == "auto"):
            raise InputError("`tokenizer` has its own stop words; leave `stop_words` and `replace_stop_words` out")
        if isinstance(tokenizer, Tokenizer) and (other := other_language(tokenizer.language, texts)):
            logger.warning("%s", mismatch(tokenizer.language, other))
        return tokenizer, documents
    if tokenizer is not None or isinstance(first[0].text, (list, tuple)):
        dropped = resolve_stop_words(stop_words, None, replace_stop_words)
        if tokenizer is None:
            return Pretokenized(stop_words=dropped), documents
        if isinstance(tokenizer, str):
            return CustomTokenizer.named(tokenizer, dropped), documents
        return CustomTokenizer.of(tokenizer, dropped), documents
    made = make_tokenizer(language, stop_words, user_dictionary, replace_stop_words=replace_stop_words, sample=texts)
    if language == "auto":
        logger.info("language: %s, recognised by its script; `language` sets another one", made.language)
    elif other := other_language(made.language, texts):
        if not can_split(made.language, other):
            raise InputError(mismatch(made.language, other))
        logger.warning("%s", mismatch(made.language, other))
    if remark := unsplit(made.language, texts):
        logger.warning("%s", remark)
    if made.language == "zh":
        _check_chinese(texts, made)
    return made, documents


def _check_chinese(texts: list[str], tokenizer: Tokenizer) -> None:
    """Warn of Chinese texts in which the segmenter finds no words, or wrong ones."""
    if is_spaced_out(texts):
        logger.warning(
            "most Chinese characters in the texts stand alone between blanks, so that they form no words; remove the "
            "blanks"
        )
    if is_traditional(texts) and not tokenizer.user_dictionary:
        logger.warning(
            "the texts look like traditional Chinese, but the segmenter knows simplified words, and splits many others "
            "wrongly; convert the texts to simplified Chinese first, for example with OpenCC, or give a "
            "`user_dictionary` of traditional words"
        )


def build(
    documents: Iterator[Document],
    tokenizer: AnyTokenizer,
    filters: Filters,
    keep_texts: bool,
    n_jobs: int | None,
    progress: bool,
    folder: Path | None = None,
    cluster: str | None = None,
) -> Built:
    """Count the words of all documents.

    Args:
        documents: the documents, which are read once.
        tokenizer: splits their texts into words.
        filters: the filters that choose the vocabulary.
        keep_texts: whether to keep the texts that are strings.
        n_jobs: the number of worker processes, as for `Corpus.from_texts`.
        progress: whether to show a progress bar on standard error.
        folder: a folder in which the arrays and texts are written to files; None keeps them in memory.
        cluster: a Ray cluster whose nodes count, as for `Corpus.from_texts`.

    Raises:
        InputError: a document is not text, or no word passes the filters.
    """
    ids, labels, timestamps = _Notes(str), _Notes(), _Times()
    notes: list[_Notes | _Times] = [ids, labels, timestamps]
    sample: list[str] = []
    with (
        TextWriter(folder if keep_texts else None) as writer,
        tempfile.SpooledTemporaryFile(
            1 if folder else _SPOOL_IN_MEMORY, dir=None if folder is None else str(folder)
        ) as spool,
    ):

        def texts() -> Iterator[Text]:
            while batch := list(islice(documents, _BATCH)):
                texts, *columns = zip(*batch, strict=True)
                for field, column in zip(notes, columns[:3], strict=True):  # ids, labels and timestamps
                    field.extend(column)
                strings = [text for text in texts if isinstance(text, str)] if keep_texts or not sample else []
                if not sample:
                    sample.extend(text[:_SAMPLE_CHARACTERS] for text in strings)
                if keep_texts:
                    writer.extend(strings)
                yield from texts

        tally = Tally(spool)
        with _progress(progress) as bar:
            task = bar.add_task("documents", total=None)
            for part in count_chunks(chunked(texts()), tokenizer, n_jobs, cluster=cluster):
                tally.add(part.words, part.counts)
                bar.update(task, completed=tally.n_docs)
            bar.update(task, total=tally.n_docs)
        try:
            counts, vocabulary = tally.filtered(filters, folder)
        except InputError:
            language = getattr(tokenizer, "language", None)
            if language and (other := other_language(language, sample)):
                raise InputError(f"no word is left: {mismatch(language, other)}") from None
            raise
        stored = writer.finish() if keep_texts else None
    return Built(
        counts,
        vocabulary,
        ids.finish() or numbers(tally.n_docs),
        labels.finish(),
        timestamps.finish(),
        stored,
    )


class _Notes:
    """A field of all documents. Nothing is stored while it is unknown of all.

    Args:
        unknown: Returns what stands for an unknown value, given the document's row.
    """

    def __init__(self, unknown: Callable[[int], str] = lambda row: "") -> None:
        self._unknown = unknown
        self._n_docs = 0
        self._writer: TextWriter | None = None

    def extend(self, values: Sequence[str | None]) -> None:
        """Add the values of the next documents."""
        start, self._n_docs = self._n_docs, self._n_docs + len(values)
        if self._writer is None:
            if values.count(None) == len(values):
                return
            self._writer = TextWriter()
            self._writer.extend([self._unknown(row) for row in range(start)])
        known = (self._unknown(row) if value is None else value for row, value in enumerate(values, start))
        self._writer.extend(list(known))

    def finish(self) -> Sequence[str] | None:
        """Return the values of all documents, or None if it is unknown of all."""
        return None if self._writer is None else self._writer.finish()


class _Times:
    """The times of all documents. They are read while texts are counted, so that a wrong one is found early."""

    def __init__(self) -> None:
        self._n_docs, self._are_known = 0, False
        self._parts = [np.empty(0, "datetime64[us]")]

    def extend(self, values: Sequence[str | None]) -> None:
        """Add the values of the next documents.

        Raises:
            InputError: a value cannot be read; the message names its row.
        """
        self._parts.append(parse_times(values, self._n_docs))
        self._n_docs += len(values)
        self._are_known |= values.count(None) < len(values)

    def finish(self) -> Times | None:
        """Return (n_docs,) times, or None if they are unknown of all."""
        return np.concatenate(self._parts) if self._are_known else None


def _progress(shown: bool) -> Progress:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True, quiet=not shown)  # before rich 14.3, a disabled bar prints an empty line
    return Progress(*columns, console=console, disable=not shown)
