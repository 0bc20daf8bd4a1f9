"""Counting the words of documents and choosing the vocabulary, with only a few chunks of text in memory at a time."""

from __future__ import annotations

import logging
import numbers
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, compress, islice
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from scipy import sparse

from ..display import progress_console
from ..errors import InputError, SettingError
from ..messages import counted
from ..preparing import TimeOptions, WordOptions
from ..text import (
    AnyTokenizer,
    CustomTokenizer,
    Document,
    Pretokenized,
    Tokenizer,
    boilerplate,
    duplicates,
    make_tokenizer,
    speakers,
)
from ..text.boilerplate import find_boilerplate
from ..text.counting import Counts, Text, chunked, count_chunks, remap
from ..text.duplicates import MOST_READ, Copies
from ..text.languages import can_split
from ..text.phrases import find_phrases, one_token
from ..text.recognition import (
    is_spaced_out,
    is_traditional,
    language_shares,
    mismatch,
    mixture,
    other_language,
    recognise,
    two_scripts,
    unsplit,
)
from ..text.strings import ArrayWriter, TextWriter, is_utf8, require_utf8, write_array
from ..text.tokenizing import resolve_stop_words, torn_entities
from .dates import UNIT, TimeReader, Times
from .fields import read_times, row_numbers, spelled_numbers

logger = logging.getLogger("topicloom")

_NAMED = 10  # words of a message
_MOST_CHARACTERS = 200_000_000  # of the documents in which phrases and boilerplate are looked for
_OF_BUILT_IN = ("preset", "handles", "hashtags", "links", "emoji", "lemmatise", "ngrams", "phrases", "drop_boilerplate")
_FEW_DOCUMENTS = 3  # which may be long texts
_ADVICE_ON_PIECES = "; of long texts, `split_texts` makes the paragraphs, the sentences or equal pieces the documents"

# The filters, and the counts of all words to which they are applied.


@dataclass(frozen=True)
class Filters:
    """The filters that choose the vocabulary, which `WordOptions` describes.

    Raises:
        SettingError: a filter has a value that it cannot have.
    """

    min_df: float = 5
    max_df: float = 0.5
    max_features: int | None = None
    remove_top: int = 0

    @classmethod
    def of(cls, options: WordOptions) -> Filters:
        """Return the filters among the options of words."""
        return cls(options.min_df, options.max_df, options.max_features, options.remove_top)

    def __post_init__(self) -> None:
        for name in ("min_df", "max_df"):
            value = getattr(self, name)
            share = isinstance(value, (float, np.floating)) and 0 <= value <= 1
            if not (share or _is_whole(value, 0)):
                raise SettingError(
                    f"`{name}={value!r}` should be a whole number of documents, or a share of them from 0.0 to 1.0"
                )
        if not _is_whole(self.remove_top, 0):
            raise SettingError(f"`remove_top={self.remove_top!r}` should be a whole number from 0")
        if self.max_features is not None and not _is_whole(self.max_features, 1):
            raise SettingError(f"`max_features={self.max_features!r}` should be a whole number from 1, or None")

    def keeps_all(self, n_docs: int) -> bool:
        """Return whether no word of so many documents is left out, however many of them contain it."""
        rare, common = _threshold(self.min_df, n_docs), _threshold(self.max_df, n_docs)
        return rare <= 1 and common >= n_docs and self.remove_top == 0 and self.max_features is None

    def choose(
        self,
        words: list[str],
        document_counts: npt.NDArray[np.int64],
        totals: npt.NDArray[np.int64],
        n_docs: int,
        n_with_words: int,
    ) -> npt.NDArray[np.intp]:
        """Choose the words to keep, the most frequent first; words of the same frequency are in alphabetical order.

        Args:
            words: the n words that were found.
            document_counts: (n,) the number of documents that contain each word.
            totals: (n,) the number of occurrences of each word.
            n_docs: the number of documents.
            n_with_words: the number of those that have a word, of which `min_df` and `max_df` may be shares.

        Returns:
            the positions in `words` of the words to keep.

        Raises:
            InputError: no word is left.
        """
        if not words:
            raise InputError(
                f"no word was found in {counted(n_docs, 'document')}; check the language (`language`) and the stop "
                "words (`stop_words`)"
            )
        found = f"{len(words):,} in {counted(n_with_words, 'document')}{' with words' if n_with_words < n_docs else ''}"
        rare = document_counts < _threshold(self.min_df, n_with_words)
        common = document_counts > _threshold(self.max_df, n_with_words)
        left = np.flatnonzero(~rare & ~common).tolist()
        if len(left) <= self.remove_top:
            one = _is_whole(self.max_df, 0) and self.max_df == 1  # who writes 1 may mean all documents
            raise InputError(
                f"no word is left of {found}: `min_df={self.min_df}` drops {rare.sum():,}, `max_df={self.max_df}` "
                f"drops {(common & ~rare).sum():,}, `remove_top={self.remove_top}` drops {len(left):,}; loosen these "
                f"filters or give more text{'; `max_df=1` is one document, and 1.0 is all of them' if one else ''}"
                f"{_ADVICE_ON_PIECES if n_with_words <= _FEW_DOCUMENTS else ''}"
            )

        # A word that one document repeats is not common, so the most common words are those of the most documents.
        def by_documents(word: int) -> tuple[int, int, str]:
            return -document_counts[word], -totals[word], words[word]

        left.sort(key=by_documents)
        left = left[self.remove_top :]
        if common.any():
            dropped = sorted(np.flatnonzero(common).tolist(), key=by_documents)
            names = ", ".join(words[word] for word in dropped[:_NAMED])
            logger.info(
                "`max_df=%s` drops %s, which %s in more documents: %s%s", self.max_df, counted(len(dropped), "word"),
                "is" if len(dropped) == 1 else "are", names, " and more" if len(dropped) > _NAMED else "",
            )  # fmt: skip
        left.sort(key=lambda word: (-totals[word], words[word]))
        return np.array(left[: self.max_features], np.intp)


class Tally:
    """Sums over chunks of documents. The counts of the chunks stay in a file until the vocabulary is known.

    Args:
        spool: the file to which the counts are written.
    """

    def __init__(self, spool: IO[bytes]) -> None:
        self._spool = spool
        self._n_parts = 0
        self._places: defaultdict[str, int] = defaultdict()
        self._places.default_factory = self._places.__len__
        self._document_counts = np.zeros(1 << 12, np.int64)
        self._totals = np.zeros(1 << 12, np.int64)
        self.n_docs = self.n_with_words = 0

    def add(self, words: Sequence[str], counts: Counts) -> None:
        """Add the counts of a chunk.

        Args:
            words: the n words of the chunk.
            counts: (chunk's documents, n) the counts of these words.
        """
        places = np.fromiter(map(self._places.__getitem__, words), np.int32, len(words))
        while len(self._places) > len(self._totals):
            self._document_counts = np.concatenate([self._document_counts, np.zeros_like(self._document_counts)])
            self._totals = np.concatenate([self._totals, np.zeros_like(self._totals)])
        self._document_counts[places] += np.bincount(counts.indices, minlength=len(words))
        self._totals[places] += np.bincount(counts.indices, counts.data, minlength=len(words)).astype(np.int64)
        for array in (counts.data, places[counts.indices], counts.indptr):
            write_array(self._spool, array)
        self._n_parts += 1
        self.n_docs += counts.shape[0]
        self.n_with_words += int(np.count_nonzero(np.diff(counts.indptr)))

    def filtered(self, filters: Filters, folder: Path | None) -> tuple[Counts, list[str]]:
        """Return the counts of the words that pass the filters, and these words.

        Args:
            filters: the filters.
            folder: a folder for the arrays; None keeps them in memory.

        Raises:
            InputError: no word passes the filters.
        """
        words = list(self._places)
        n_all = len(words)
        kept = filters.choose(
            words, self._document_counts[:n_all], self._totals[:n_all], self.n_docs, self.n_with_words
        )
        columns = np.full(n_all, -1, np.int32)
        columns[kept] = np.arange(len(kept))
        n_entries = int(self._document_counts[kept].sum())
        index = index_type(n_entries)
        data = ArrayWriter(folder, "data", n_entries, np.float32)
        indices = ArrayWriter(folder, "indices", n_entries, index)
        indptr = ArrayWriter(folder, "indptr", self.n_docs + 1, index)
        entry = 0
        self._spool.seek(0)
        with data, indices, indptr:
            indptr.append(np.zeros(1, index))
            for _ in range(self._n_parts):
                arrays = tuple(np.load(self._spool, allow_pickle=False) for _ in range(3))
                part = remap(sparse.csr_array(arrays, shape=(len(arrays[2]) - 1, n_all)), columns, len(kept))
                data.append(part.data)
                indices.append(part.indices)
                indptr.append(part.indptr[1:] + index(entry))
                entry += part.nnz
        arrays = (data.array, indices.array, indptr.array)
        counts = sparse.csr_array(arrays, shape=(self.n_docs, len(kept)))
        return counts, [words[place] for place in kept]


def index_type(n_entries: int) -> type[np.int32] | type[np.int64]:
    """Return the type of column numbers and of row starts. SciPy would copy one of them if their types differed."""
    return np.int32 if n_entries < 2**31 else np.int64


def _threshold(value: float, n_docs: int) -> float:
    return float(value) if isinstance(value, numbers.Integral) else value * n_docs


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= least


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
    covariates: dict[str, Sequence[str | float | None]]
    kept: tuple[npt.NDArray[np.intp], list[float]] | None  # rows that are not left out, and how often each text occurs


def choose_tokenizer(documents: Iterator[Document], options: WordOptions) -> tuple[AnyTokenizer, Iterator[Document]]:
    """Choose the tokenizer from the options and the first documents.

    Args:
        documents: the documents; the first ones are read to recognise their language.
        options: which words are kept.

    Returns:
        the tokenizer, and all the documents.

    Raises:
        InputError: there are no documents, settings exclude each other, or the texts are in a language that the
            tokenizer of `language` cannot split into words.
        SettingError: the language is not known, or the stop words cannot be used.
        MissingExtraError: the language's segmenter is not installed.
    """
    tokenizer: TokenizerLike = options.tokenizer
    language, stop_words, replace_stop_words = options.language, options.stop_words, options.replace_stop_words
    first = list(islice(documents, _SAMPLE))
    documents = chain(first, documents)
    if not first:
        raise InputError("no documents were given; give at least one")
    if tokenizer is not None and options.user_dictionary is not None:
        raise InputError(
            "`user_dictionary` belongs to the built-in Chinese tokenizer and cannot be combined with `tokenizer`; "
            "leave one of them out"
        )
    texts = [document.text for document in first if isinstance(document.text, str)]
    if tokenizer is not None or not texts:
        usual = WordOptions()
        for name in _OF_BUILT_IN:
            if getattr(options, name) != getattr(usual, name):
                raise InputError(
                    f"`{name}` belongs to the built-in tokenizers, and the tokens are your own; leave it out"
                )
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
    made = make_tokenizer(
        language, stop_words, options.user_dictionary, replace_stop_words=replace_stop_words, preset=options.preset,
        handles=options.handles, hashtags=options.hashtags, links=options.links, emoji=options.emoji,
        lemmatise=options.lemmatise, ngrams=options.ngrams, sample=texts,
    )  # fmt: skip
    if language == "auto":
        found = recognise(texts)
        logger.log(logging.WARNING if found.needs_warning else logging.INFO, "%s", found.sentence)
    elif other := other_language(made.language, texts):
        if not can_split(made.language, other):
            raise InputError(mismatch(made.language, other))
        logger.warning("%s", mismatch(made.language, other))
    if remark := unsplit(made.language, texts):
        logger.warning("%s", remark)
    if made.language == "zh":
        _check_chinese(texts, made)
    looks_far = options.phrases or options.drop_boilerplate
    if not looks_far and made.language != "zh":
        return made, documents
    read = list(_beginning(documents, _MOST_CHARACTERS if looks_far else speakers.MOST_CHARACTERS))
    texts = [document.text for document in read if isinstance(document.text, str)]
    if options.drop_boilerplate:
        made = _with_boilerplate(made, texts)
    if made.language == "zh":
        made = _with_speakers(made, texts)
    if options.phrases:
        made = _with_phrases(made, texts)
    return made, chain(read, documents)


def _beginning(documents: Iterator[Document], most_characters: int) -> Iterator[Document]:
    """Yield the first documents, in which phrases, boilerplate and names are looked for."""
    n_characters = 0
    for document in islice(documents, MOST_READ):
        yield document
        n_characters += len(document.text) if isinstance(document.text, str) else 0
        if n_characters >= most_characters:
            return


def _with_speakers(tokenizer: Tokenizer, texts: list[str]) -> Tokenizer:
    """Return a tokenizer of Chinese that cuts verbs of speech off the names in texts."""
    ends = accumulate(map(len, texts))
    texts = [text for text, end in zip(texts, ends, strict=True) if end <= speakers.MOST_CHARACTERS]
    if not speakers.has_speeches(texts):
        return tokenizer
    counts: Counter[str] = Counter()
    for start in range(0, len(texts), _BATCH):
        counts.update(chain.from_iterable(filter(None, tokenizer.runs(texts[start : start + _BATCH]))))
    own = {line.split(" ")[0] for line in tokenizer.user_dictionary}
    found = [word for word in speakers.find_speakers(counts) if word not in own]
    if not found:
        return tokenizer
    first = max(found, key=lambda word: (counts[word], word))
    logger.info(
        "%s with a verb of speech %s cut, such as %s to %s",
        counted(len(found), "name"), "is" if len(found) == 1 else "are", first, first[:-1],
    )  # fmt: skip
    return tokenizer.with_speakers(found)


def _with_boilerplate(tokenizer: Tokenizer, texts: list[str]) -> Tokenizer:
    """Return a tokenizer that leaves out the boilerplate of texts."""
    texts = boilerplate.sampled(texts)
    found = find_boilerplate(tokenizer.cleaned(texts), tokenizer.length_of_run)
    logger.info("%s", boilerplate.remark(found, len(texts), left_out=True))
    return tokenizer.with_boilerplate(each.words for each in found)


def _with_phrases(tokenizer: Tokenizer, texts: list[str]) -> Tokenizer:
    """Return a tokenizer with the phrases of texts."""

    def runs() -> Iterator[list[str]]:
        for start in range(0, len(texts), _BATCH):
            yield from filter(None, tokenizer.runs(texts[start : start + _BATCH]))

    found = find_phrases(runs)
    names = ", ".join(one_token(phrase.split()) for phrase in found[:_NAMED])
    logger.info("%s found%s", counted(len(found), "phrase"), f", such as {names}" if found else "")
    return tokenizer.with_phrases(found)


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
    *,
    keep_texts: bool,
    n_jobs: int | None,
    cluster: str | None,
    progress: bool,
    folder: Path | None = None,
    times: TimeOptions | None = None,
    drop_duplicates: bool = False,
) -> Built:
    """Count the words of all documents, and collect their texts, ids, labels, times and covariates.

    Args:
        documents: the documents, which are read once.
        tokenizer: splits their texts into words.
        filters: the filters that choose the vocabulary.
        keep_texts: whether to keep the texts that are strings.
        n_jobs: the number of worker processes; -1 is all cores. None starts them if one process takes seconds.
        cluster: "auto" or the address of a Ray cluster, whose nodes then count in place of worker processes.
        progress: whether to show a progress bar on standard error.
        folder: a folder in which the arrays and texts are written to files; None keeps them in memory.
        times: how dates are written; None recognises it.
        drop_duplicates: whether to leave out documents that repeat earlier ones. The fields of all are read.

    Raises:
        InputError: a document is not text, or no word passes the filters.
    """
    ids, labels, timestamps = _StringField("id", str), _StringField("label"), _TimeField(times or TimeOptions())
    known: list[_StringField | _TimeField] = [ids, labels, timestamps]
    covariates: dict[str, list[str | None]] = {}
    sample = _Sample()
    whole = _Sample(boilerplate.MOST_REPORTED, None, boilerplate.MOST_REPORTED_CHARACTERS)
    is_reported = isinstance(tokenizer, Tokenizer) and not tokenizer.boilerplate
    copies = Copies(None if drop_duplicates else MOST_READ)
    kept: list[npt.NDArray[np.bool_]] = []
    with (
        TextWriter(folder if keep_texts else None) as writer,
        tempfile.SpooledTemporaryFile(
            1 if folder else _SPOOL_IN_MEMORY, dir=None if folder is None else str(folder)
        ) as spool,
    ):

        def texts() -> Iterator[Text]:
            while batch := list(islice(documents, _BATCH)):
                texts, *columns = zip(*batch, strict=True)
                for field, column in zip(known, columns[:3], strict=True):  # ids, labels and timestamps
                    field.extend(column)
                _add_covariates(covariates, batch, ids.n_docs)
                if not copies.is_full:
                    is_first = copies.add(_compared(texts, tokenizer))
                if drop_duplicates:
                    kept.append(is_first)
                    texts = tuple(compress(texts, is_first))
                strings = [text for text in texts if isinstance(text, str)]
                sample.extend(strings)
                if is_reported:
                    whole.extend(strings)
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
            if language and (other := other_language(language, sample.texts)):
                raise InputError(f"no word is left: {mismatch(language, other)}") from None
            raise
        stored = writer.finish() if keep_texts else None
    if isinstance(tokenizer, Tokenizer) and len(shares := language_shares(sample.texts)) > 1:
        logger.warning("%s", mixture(shares))
    if isinstance(tokenizer, Tokenizer) and tokenizer.language == "zh" and (said := two_scripts(sample.texts)):
        logger.warning("%s", said)
    if said := duplicates.remark(copies, ids.n_docs, drop_duplicates):
        logger.info("%s", said)
    if isinstance(tokenizer, Tokenizer) and len(whole.texts) >= boilerplate.FEWEST:
        _remark_on_repeated(whole.texts, tokenizer, vocabulary)
    rows = np.flatnonzero(np.concatenate(kept)) if drop_duplicates else None
    return Built(
        counts,
        vocabulary,
        ids.finish() or row_numbers(ids.n_docs),
        labels.finish(),
        timestamps.finish(),
        stored,
        {name: spelled_numbers(name, column) for name, column in covariates.items()},
        None if rows is None else (rows, copies.numbers(rows)),
    )


def _remark_on_repeated(texts: Sequence[str], tokenizer: Tokenizer, vocabulary: Sequence[str]) -> None:
    """Log boilerplate of texts, and a word that is left of HTML."""
    repeated = find_boilerplate(tokenizer.cleaned(texts), tokenizer.length_of_run)
    if said := boilerplate.remark(repeated, len(texts), left_out=False):
        logger.info("%s", said)
    for name, n_texts in torn_entities(texts).most_common(1):
        if n_texts >= boilerplate.SHARE * len(texts) and name in vocabulary:
            logger.info(
                "%d of %d texts have HTML without its ampersand, such as %s; for &%s; so %r is a word; put the "
                "ampersand back, or list the word in a file of `stop_words`",
                n_texts, len(texts), name, name, name,
            )  # fmt: skip


def _compared(texts: Sequence[Any], tokenizer: AnyTokenizer) -> list[str | Sequence[str]]:
    """Return what of each document is compared to find copies."""
    if isinstance(tokenizer, Tokenizer) and tokenizer.boilerplate and all(isinstance(text, str) for text in texts):
        return list(tokenizer.cleaned(texts))
    return [text if isinstance(text, str | list | tuple) else () for text in texts]


class _Sample:
    """Some texts, at equal distances, of a stream whose length is not known.

    Args:
        n_texts: the fewest texts of a longer stream; at most twice as many are kept.
        n_first: the characters at the beginning of each text that are kept; None is all.
        n_characters: the most characters of all texts.

    Attributes:
        texts: the texts.
    """

    def __init__(
        self, n_texts: int = _SAMPLE, n_first: int | None = _SAMPLE_CHARACTERS, n_characters: int = 1 << 40
    ) -> None:
        self.texts: list[str] = []
        self._most, self._n_first, self._n_characters = 2 * n_texts, n_first, n_characters
        self._n_texts, self._step = 0, 1
        self._length = 0

    def extend(self, texts: Sequence[str]) -> None:
        """Add some of the next texts."""
        first = -self._n_texts % self._step
        added = [text[: self._n_first] for text in texts[first :: self._step]]
        self.texts += added
        self._length += sum(map(len, added))
        self._n_texts += len(texts)
        while len(self.texts) > 1 and (len(self.texts) > self._most or self._length > self._n_characters):
            self.texts, self._step = self.texts[::2], 2 * self._step
            self._length = sum(map(len, self.texts))


def _add_covariates(columns: dict[str, list[str | None]], batch: Sequence[Document], n_docs: int) -> None:
    """Add the covariates of the next documents.

    Args:
        columns: the values of each covariate so far, to which those of the batch are added.
        batch: the next documents.
        n_docs: the number of documents with those of the batch.
    """
    known = [document.covariates or {} for document in batch]
    if not columns and not any(known):
        return
    for name in dict.fromkeys(chain.from_iterable(known)):
        column = columns.setdefault(name, [])
        column += [None] * (n_docs - len(batch) - len(column))
        column += [each.get(name) for each in known]
    for column in columns.values():
        column += [None] * (n_docs - len(column))


class _StringField:
    """A string for each document. Nothing is stored until a document has one.

    Args:
        name: what the string is, for messages.
        unknown: returns what stands for an unknown value, given the document's row.
    """

    def __init__(self, name: str, unknown: Callable[[int], str] = lambda row: "") -> None:
        self._name, self._unknown = name, unknown
        self.n_docs = 0
        self._writer: TextWriter | None = None

    def extend(self, values: Sequence[str | None]) -> None:
        """Add the values of the next documents.

        Raises:
            InputError: a value contains a lone surrogate.
        """
        start, self.n_docs = self.n_docs, self.n_docs + len(values)
        if self._writer is None:
            if values.count(None) == len(values):
                return
            self._writer = TextWriter()
            self._writer.extend([self._unknown(row) for row in range(start)])
        known = [self._unknown(row) if value is None else value for row, value in enumerate(values, start)]
        if not is_utf8("".join(known)):
            known = [require_utf8(each, f"the {self._name} of document {row}") for row, each in enumerate(known, start)]
        self._writer.extend(known)

    def finish(self) -> Sequence[str] | None:
        """Return a string for each document, or None if no document has one."""
        return None if self._writer is None else self._writer.finish()


class _TimeField:
    """A time for each document, which is read while texts are counted, so that a wrong one is found early."""

    def __init__(self, options: TimeOptions) -> None:
        self._n_docs, self._are_known = 0, False
        self._reader = TimeReader(options.day_first, options.date_format)

    def extend(self, values: Sequence[str | None]) -> None:
        """Add the values of the next documents.

        Raises:
            InputError: a value cannot be read; the message names its row.
        """
        if values.count(None) == len(values):
            self._reader.add(np.full(len(values), "NaT", UNIT), self._n_docs)
        else:
            read_times(self._reader, values, self._n_docs)
            self._are_known = True
        self._n_docs += len(values)

    def finish(self) -> Times | None:
        """Return (n_docs,) times, or None if no document has one.

        Raises:
            InputError: the day and the month of a time cannot be told apart, or the options are for times and there
                are none.
        """
        if self._are_known:
            return self._reader.finish()
        self._reader.require_none_given()
        return None


def _progress(shown: bool) -> Progress:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, **progress_console(shown))
