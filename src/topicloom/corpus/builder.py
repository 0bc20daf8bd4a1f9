"""Documents to counts and a vocabulary, with no more than a few chunks of the text in memory.

Texts are counted chunk by chunk, in worker processes where the text is long, and the counts of each chunk are spooled.
Once all words are known, the filters choose the vocabulary, and the spool is read back into the final arrays.
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
from ..text.languages import can_split, mismatch, other_language
from ..text.storage import TextWriter
from ..text.tokenizers import resolve_stop_words
from .vocabulary import Filters, Tally

logger = logging.getLogger("topicloom")

TokenizerLike: TypeAlias = "AnyTokenizer | Callable[[str], Iterable[str]] | None"

_SPOOL_IN_MEMORY = 1 << 26  # bytes of spooled counts before they go to disk
_SAMPLE = 200  # documents that show the language
_SAMPLE_CHARACTERS = 500  # of each of them


class Built(NamedTuple):
    """The result of counting; the names are those of a Corpus."""

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
    replace_stop_words: bool = False,
) -> tuple[AnyTokenizer, Iterator[Document]]:
    """Choose the tokenizer from the settings and the first documents.

    Args:
        tokenizer: The user's own tokenizer, if any.
        documents: The documents. The first ones are read to see their language.
        language: A language code, or "auto".
        stop_words: As for `topicloom.text.make_tokenizer`, like the arguments that follow.
        user_dictionary: A file of words that Chinese segmentation keeps whole.
        replace_stop_words: Use no other stop words than those given.

    Returns:
        The tokenizer, and all the documents.

    Raises:
        InputError: No document is given, settings exclude each other, or the texts are in a language that the
            tokenizer of the named one cannot split into words.
        SettingError: A language or stop words are not possible.
        MissingExtraError: The language's segmenter is not installed.
    """
    first = list(islice(documents, _SAMPLE))
    documents = chain(first, documents)
    if not first:
        raise InputError("no documents were given; give at least one")
    if tokenizer is not None and user_dictionary is not None:
        raise InputError(
            "user_dictionary= belongs to the built-in Chinese tokenizer and cannot be combined with tokenizer=; "
            "leave one of them out"
        )
    texts = [document.text for document in first if isinstance(document.text, str)]
    if isinstance(tokenizer, (Tokenizer, CustomTokenizer, Pretokenized)):
        if replace_stop_words or not (isinstance(stop_words, str) and stop_words == "auto"):
            raise InputError("tokenizer= has its own stop words; leave stop_words= and replace_stop_words= out")
        if isinstance(tokenizer, Tokenizer) and (other := other_language(tokenizer.language, texts)):
            logger.warning("%s", mismatch(tokenizer.language, other))
        return tokenizer, documents
    if tokenizer is not None or isinstance(first[0].text, (list, tuple)):
        dropped = resolve_stop_words(stop_words, None, replace_stop_words)
        if tokenizer is None:
            return Pretokenized(stop_words=dropped), documents
        return CustomTokenizer.of(tokenizer, dropped), documents
    made = make_tokenizer(language, stop_words, user_dictionary, replace_stop_words=replace_stop_words, sample=texts)
    if language == "auto":
        logger.info("language: %s, detected from its script (language=, --language)", made.language)
    elif other := other_language(made.language, texts):
        if not can_split(made.language, other):
            raise InputError(mismatch(made.language, other))
        logger.warning("%s", mismatch(made.language, other))
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
    """Count the words of all documents.

    Args:
        documents: The documents, which are read once.
        tokenizer: The tokenizer that splits their texts.
        filters: The filters that choose the vocabulary.
        keep_texts: Keep the texts that are strings.
        n_jobs: The number of worker processes, as for `Corpus.from_texts`.
        progress: Show a progress bar on standard error.
        folder: A folder in which the arrays and texts are written to files; None keeps them in memory.

    Raises:
        InputError: A document is not text, or no word passes the filters.
    """
    notes: list[tuple[str | None, str | None, str | None]] = []
    sample: list[str] = []
    with (
        TextWriter(folder if keep_texts else None) as writer,
        tempfile.SpooledTemporaryFile(
            1 if folder else _SPOOL_IN_MEMORY, dir=None if folder is None else str(folder)
        ) as spool,
    ):

        def texts() -> Iterator[Text]:
            for document in documents:
                notes.append(document[1:])
                if len(sample) < _SAMPLE and isinstance(document.text, str):
                    sample.append(document.text[:_SAMPLE_CHARACTERS])
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
        try:
            counts, vocabulary = tally.filtered(filters, folder)
        except InputError:
            language = getattr(tokenizer, "language", None)
            if language and (other := other_language(language, sample)):
                raise InputError(f"no word is left: {mismatch(language, other)}") from None
            raise
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
    """The values with "" for those that are not known, or None if none of them is known."""
    return None if all(value is None for value in values) else [value or "" for value in values]


def _progress(shown: bool) -> Progress:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), disable=not shown)
