"""Corpus: documents as sparse word counts, with the vocabulary, the fields of each row and the tokenizer."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from itertools import chain, compress
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt

from ..display import html_table
from ..errors import InputError, SettingError
from ..files import as_path, atomic_directory, lock_directory, require_free
from ..messages import brief, counted
from ..metrics import Reference
from ..metrics.cooccurrence import Total, Vocabulary
from ..preparing import ReadOptions, TimeOptions, WordOptions, described
from ..text import AnyTokenizer, Document, Pretokenized, TextEncoder, Tokenizer
from ..text.counting import Counts, Text, columns_of, counts_of, remap
from ..text.folding import cased_forms, folding, written_forms
from ..text.reading import Source, documents_in
from ..text.strings import asked_rows, pieces, release, replace_surrogates, rows_of
from ..text.tokenizing import without_html
from .building import Built, Filters, TokenizerLike, build, choose_tokenizer
from .checks import checked_counts, checked_vocabulary, wanted_words, warn_of_empty, warn_of_ids
from .concatenation import (
    WORDS_OF,
    JointVocabulary,
    can_split,
    common_tokenizer,
    joined_fields,
    require_equal_filters,
    stacked,
    warn_of_incomplete,
)
from .fields import Categories, Fields, WithFields
from .frames import check_index, check_options, given_texts, read_frame, words_of
from .storage import MANIFEST, load_parts, remove_texts, save_into

_SHOWN_WORDS, _SHOWN_DOCUMENTS, _SHOWN_CHARACTERS = 20, 5, 200  # in a notebook


@dataclass(frozen=True, eq=False, repr=False)
class Corpus(WithFields):
    """Documents as counts of words. `from_texts`, `from_file`, `from_frame`, `from_counts` and `load` make one.

    Attributes:
        counts: (n_docs, n_words) CSR, float32, without explicit zeros or duplicates, columns sorted within a row. Row i
            is always document i, even if none of its words is in the vocabulary.
        vocabulary: the word of each column. Constructors that read text put the most frequent words first.
        fields: `ids`, `labels`, `times`, `texts`, `vectors`, `encoder` and `covariates`, which are also properties of
            the corpus.
        tokenizer: the tokenizer that split the texts, and that splits new ones in the same way.
        settings: the filters that chose the vocabulary.

    Examples:
        >>> import topicloom as tl
        >>> texts = ["The cat sees a dog.", "The dog sees a bird.", "A bird sings."]
        >>> corpus = tl.Corpus.from_texts(texts, language="en", min_df=1, max_df=1.0)
        >>> corpus
        Corpus(3 documents, 5 words, 8 tokens)
        >>> corpus.vocabulary
        ['bird', 'dog', 'sees', 'cat', 'sings']
        >>> corpus.counts.toarray()
        array([[0., 1., 1., 1., 0.],
               [1., 1., 1., 0., 0.],
               [1., 0., 0., 0., 1.]], dtype=float32)
        >>> list(corpus[[0, 2]].texts)
        ['The cat sees a dog.', 'A bird sings.']
    """

    counts: Counts
    vocabulary: list[str]
    fields: Fields
    tokenizer: AnyTokenizer = field(default_factory=Pretokenized)
    settings: dict[str, Any] = field(default_factory=dict)

    @classmethod
    @described(words=WordOptions, times=TimeOptions)
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
        vectors: Any = None,
        encoder: Any = None,
        encoder_cache: str | Path | None = None,
        covariates: Mapping[str, Iterable[Any]] | None = None,
        day_first: bool | None = None,
        date_format: str | None = None,
        replace_stop_words: bool = False,
        preset: str | None = None,
        handles: str | None = None,
        hashtags: str | None = None,
        links: str | None = None,
        emoji: bool | None = None,
        lemmatise: bool = False,
        ngrams: Any = None,
        phrases: bool = False,
        drop_duplicates: bool = False,
        drop_boilerplate: bool = False,
        keep_texts: bool = True,
        user_dictionary: str | Path | None = None,
        n_jobs: int | None = None,
        cluster: str | None = None,
        progress: bool = False,
    ) -> Corpus:
        """Count the words of texts. The most frequent words come first; equally frequent ones are alphabetical.

        Args:
            texts: raw texts, or documents that are already lists of tokens; any iterable, such as a generator. In a
                column of a data frame, a missing value is an empty document. If it is a Series of pandas, the other
                arguments that are too must have its index.
            {words}
            ids: a name for each document; one warning says which ids are repeated or empty.
            labels: a class for each document; None and "" are unknown, and so are "N/A" and the like among numbers.
            timestamps: a date or time for each document: ISO 8601 and similar strings, dates, datetime64, years, or
                seconds, milliseconds, microseconds or nanoseconds since 1970. None, NaN, marks such as "N/A" and
                MySQL's 0000-00-00 are unknown.
            vectors: (n_docs, E) a vector for each document, such as a sentence embedding. Zeros mean that it has none.
            encoder: what gives each document its vector: a function from n texts to (n, E) numbers, an object with such
                a method `encode`, or a name, as `TextEncoder.of` takes them.
            encoder_cache: a directory that keeps vectors while the texts are encoded, so that an interrupted call goes
                on.
            covariates: name -> one number or category for each document. Among numbers, "N/A", "-", "" and other usual
                marks are missing values. A column with any other word is a category.
            {times}
            keep_texts: whether to keep the raw texts. Lists of tokens are kept in memory, but not saved.
            n_jobs: the number of worker processes; -1 is all cores. None starts them if one process takes seconds.
            cluster: "auto" or the address of a Ray cluster, whose nodes then count in place of worker processes.
            progress: whether to show a progress bar on standard error.

        Raises:
            InputError: a document is not text, a field has another length or another index than `texts` or a value that
                cannot be read, or no word passes the filters.
            SettingError: the language is not known, or a filter has a value that it cannot have.
            MissingExtraError: the language's segmenter is not installed.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["The cat sees a dog.", "The dog sees a bird.", "A bird sings."]
            >>> corpus = tl.Corpus.from_texts(
            ...     texts, language="en", min_df=2, max_df=1.0, labels=["pets", "pets", "birds"],
            ...     covariates={"stars": [5, 3, None]},
            ... )
            >>> corpus.vocabulary
            ['bird', 'dog', 'sees']
            >>> corpus.labels
            ['pets', 'pets', 'birds']
            >>> corpus.covariates["stars"]
            array([ 5.,  3., nan])
            >>> tl.Corpus.from_texts([["neural", "topic"], ["topic"]], min_df=1, max_df=1.0).vocabulary
            ['topic', 'neural']
        """
        columns = {"ids": ids, "labels": labels, "timestamps": timestamps, "vectors": vectors, "covariates": covariates}
        check_index(texts, columns)
        texts = given_texts(texts)
        documents: Iterator[Document] = map(Document, cast(Any, texts))
        options = WordOptions(
            language=language, min_df=min_df, max_df=max_df, max_features=max_features, remove_top=remove_top,
            stop_words=stop_words, replace_stop_words=replace_stop_words, user_dictionary=user_dictionary,
            tokenizer=tokenizer, preset=preset, handles=handles, hashtags=hashtags, links=links, emoji=emoji,
            lemmatise=lemmatise, ngrams=ngrams, phrases=phrases, drop_duplicates=drop_duplicates,
            drop_boilerplate=drop_boilerplate,
        )  # fmt: skip
        filters = Filters.of(options)
        chosen, documents = choose_tokenizer(documents, options)
        are_tokens = isinstance(chosen, Pretokenized)
        found = _encoder_of(encoder, vectors, encoder_cache, chosen)
        built = build(
            documents, chosen, filters, keep_texts=(keep_texts or found is not None) and not are_tokens, n_jobs=n_jobs,
            cluster=cluster, progress=progress, drop_duplicates=drop_duplicates,
        )  # fmt: skip
        tokens = texts if keep_texts and are_tokens and isinstance(texts, list | tuple) else None
        fields = Fields.of(
            len(built.ids), ids=ids, labels=labels, timestamps=timestamps, tokens=tokens, vectors=vectors,
            covariates=covariates, day_first=day_first, date_format=date_format,
        )  # fmt: skip
        corpus = cls._of(built, fields, chosen, filters)
        if found is not None:
            corpus = corpus.with_vectors(encoder=found, encoder_cache=encoder_cache, progress=progress)
        return corpus if keep_texts else corpus._without_texts()

    @classmethod
    @described(reading=ReadOptions, words=WordOptions)
    def from_file(
        cls,
        source: Source,
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
        covariates: Sequence[str] = (),
        vectors: Any = None,
        encoder: Any = None,
        encoder_cache: str | Path | None = None,
        format: str | None = None,
        encoding: str = "utf-8",
        errors: str = "strict",
        delimiter: str | None = None,
        header: bool = True,
        sheet: str | None = None,
        quotechar: str | None = None,
        escapechar: str | None = None,
        quoting: bool = True,
        split_texts: str | None = None,
        day_first: bool | None = None,
        date_format: str | None = None,
        replace_stop_words: bool = False,
        preset: str | None = None,
        handles: str | None = None,
        hashtags: str | None = None,
        links: str | None = None,
        emoji: bool | None = None,
        lemmatise: bool = False,
        ngrams: Any = None,
        phrases: bool = False,
        drop_duplicates: bool = False,
        drop_boilerplate: bool = False,
        out: str | Path | None = None,
        overwrite: bool = False,
        keep_texts: bool = True,
        user_dictionary: str | Path | None = None,
        n_jobs: int | None = None,
        cluster: str | None = None,
        progress: bool = False,
    ) -> Corpus:
        r"""Count the words of a file's documents. The file is read once, from its beginning to its end.

        Args:
            source: a file, a folder, a .zip file, a pattern such as "2024-*.csv", a list of these, or "-" for standard
                input, as `topicloom.text.read` describes them.
            {reading}
            covariates: the columns with a number or a category for each document. A column that has only numbers and
                usual marks of missing values, such as "N/A" or an empty cell, is one of numbers.
            vectors: (n_docs, E) a vector for each document, such as a sentence embedding. Zeros mean that it has none.
            encoder: what gives each document its vector: a function from n texts to (n, E) numbers, an object with such
                a method `encode`, or a name, as `TextEncoder.of` takes them.
            encoder_cache: a directory that keeps vectors while the texts are encoded, so that an interrupted call goes
                on.
            {words}
            out: a directory. The corpus is written there while it is built, so that it need not fit in memory, and the
                result is memory-mapped from there.
            overwrite: whether to replace the contents of `out`.
            keep_texts: whether to keep the raw texts.
            n_jobs: the number of worker processes; -1 is all cores. None starts them if one process takes seconds.
            cluster: "auto" or the address of a Ray cluster, whose nodes then count in place of worker processes.
            progress: whether to show a progress bar on standard error.

        Raises:
            InputError: the file cannot be read, a column is missing, `out` is not empty or is being written, or no word
                passes the filters.
            SettingError: the language or the format is not known, or a filter has a value that it cannot have.
            MissingExtraError: an optional package is needed and not installed.

        Examples:
            >>> import topicloom as tl
            >>> import tempfile
            >>> from pathlib import Path
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     path = Path(folder, "news.csv")
            ...     _ = path.write_text("text,label,stars\nThe cat sees a dog,pets,5\nA bird sings,birds,n/a\n")
            ...     corpus = tl.Corpus.from_file(path, language="en", min_df=1, max_df=1.0, covariates=["stars"])
            >>> corpus.vocabulary
            ['bird', 'cat', 'dog', 'sees', 'sings']
            >>> corpus.labels
            ['pets', 'birds']
            >>> corpus.covariates["stars"]
            array([ 5., nan])
        """
        if isinstance(covariates, str):
            raise InputError(f"`covariates` should be a list of columns; give [{covariates!r}]")
        words = WordOptions(
            language=language, min_df=min_df, max_df=max_df, max_features=max_features, remove_top=remove_top,
            stop_words=stop_words, replace_stop_words=replace_stop_words, user_dictionary=user_dictionary,
            tokenizer=tokenizer, preset=preset, handles=handles, hashtags=hashtags, links=links, emoji=emoji,
            lemmatise=lemmatise, ngrams=ngrams, phrases=phrases, drop_duplicates=drop_duplicates,
            drop_boilerplate=drop_boilerplate,
        )  # fmt: skip
        reading = ReadOptions(
            text=text, id=id, label=label, timestamp=timestamp, format=format, encoding=encoding, errors=errors,
            delimiter=delimiter, header=header, sheet=sheet, quotechar=quotechar, escapechar=escapechar,
            quoting=quoting, split_texts=split_texts, day_first=day_first, date_format=date_format,
        )  # fmt: skip
        documents = documents_in(source, reading, dict.fromkeys(covariates, "covariates"))
        return cls.from_documents(
            documents, words, times=reading, vectors=vectors, encoder=encoder, encoder_cache=encoder_cache, out=out,
            overwrite=overwrite, keep_texts=keep_texts, n_jobs=n_jobs, cluster=cluster, progress=progress,
        )  # fmt: skip

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[Document],
        words: WordOptions,
        *,
        times: TimeOptions | None = None,
        vectors: Any = None,
        encoder: Any = None,
        encoder_cache: str | Path | None = None,
        out: str | Path | None = None,
        overwrite: bool = False,
        keep_texts: bool = True,
        n_jobs: int | None = None,
        cluster: str | None = None,
        progress: bool = False,
    ) -> Corpus:
        """Count the words of documents that come one after another, such as those that `topicloom.text.read` yields.

        Args:
            documents: the documents with their ids, labels, timestamps and covariates.
            words: which words are kept.
            times: how dates are written; None recognises it.
            vectors: (n_docs, E) a vector for each document, such as a sentence embedding. Zeros mean that it has none.
            encoder: what gives each document its vector: a function from n texts to (n, E) numbers, an object with such
                a method `encode`, or a name, as `TextEncoder.of` takes them.
            encoder_cache: a directory that keeps vectors while the texts are encoded, so that an interrupted call goes
                on.
            out: a directory. The corpus is written there while it is built, so that it need not fit in memory, and the
                result is memory-mapped from there.
            overwrite: whether to replace the contents of `out`.
            keep_texts: whether to keep the raw texts.
            n_jobs: the number of worker processes; -1 is all cores. None starts them if one process takes seconds.
            cluster: "auto" or the address of a Ray cluster, whose nodes then count in place of worker processes.
            progress: whether to show a progress bar on standard error.

        Raises:
            InputError: a document cannot be read or is not text, `out` is not empty or is being written, or no word
                passes the filters.
            SettingError: the language is not known, or a filter has a value that it cannot have.
            MissingExtraError: the language's segmenter is not installed.

        Examples:
            >>> import topicloom as tl
            >>> from topicloom.preparing import WordOptions
            >>> from topicloom.text import Document
            >>> documents = [Document("The cat sees a dog", id="a"), Document("A bird sings", id="b")]
            >>> corpus = tl.Corpus.from_documents(documents, WordOptions(language="en", min_df=1, max_df=1.0))
            >>> corpus.vocabulary
            ['bird', 'cat', 'dog', 'sees', 'sings']
            >>> corpus.ids
            ['a', 'b']
        """
        filters = Filters.of(words)
        if out is not None:
            require_free(Path(out), MANIFEST, overwrite)
        tokenizer, every = choose_tokenizer(iter(documents), words)
        found = _encoder_of(encoder, vectors, encoder_cache, tokenizer)
        keeps = (keep_texts or found is not None) and not isinstance(tokenizer, Pretokenized)

        def made(folder: Path | None = None) -> Corpus:
            built = build(
                every, tokenizer, filters, keep_texts=keeps, n_jobs=n_jobs, cluster=cluster, progress=progress,
                folder=folder, times=times, drop_duplicates=words.drop_duplicates,
            )  # fmt: skip
            fields = Fields.of(
                len(built.ids), ids=built.ids, labels=built.labels, timestamps=built.timestamps, vectors=vectors,
                covariates=built.covariates,
            )  # fmt: skip
            corpus = cls._of(built, fields, tokenizer, filters)
            if found is not None:
                corpus = corpus.with_vectors(encoder=found, encoder_cache=encoder_cache, progress=progress)
            return corpus if keep_texts else corpus._without_texts()

        if out is None:
            return made()
        with lock_directory(out), atomic_directory(Path(out), MANIFEST, overwrite=overwrite) as folder:
            corpus = made(folder)
            if not keep_texts:
                remove_texts(folder)
            save_into(corpus, folder)
        return cls.load(out)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        text: str = "text",
        *,
        id: str | None = None,
        label: str | None = None,
        timestamp: str | None = None,
        covariates: Sequence[str] = (),
        vectors: Any = None,
        **options: Any,
    ) -> Corpus:
        """Count the words of a column of a pandas or polars DataFrame, or of a pyarrow Table.

        Args:
            frame: the table; row i is document i.
            text: the column with the texts.
            id: the column with the documents' ids; by default the column id, if there is one.
            label: the column with the documents' classes; by default the column label, if there is one.
            timestamp: the column with the documents' times; by default the column timestamp, if there is one.
            covariates: the columns with a number or a category for each document.
            vectors: the column with a list of numbers in each row, or (n_docs, E) numbers, such as an array.
            options: other arguments of `from_texts`, such as `language`, `min_df` and `max_df`.

        Raises:
            InputError: a column does not exist or has a value that cannot be read, a document is not text, or no word
                passes the filters.
            SettingError: `options` has an argument that `from_texts` does not have, the language is not known, or a
                filter has a value that it cannot have.
            MissingExtraError: the language's segmenter is not installed.

        Examples:
            >>> import topicloom as tl
            >>> import pandas as pd
            >>> frame = pd.DataFrame({"review": ["The cat sees a dog", "A bird sings"], "stars": [5, 3]})
            >>> options = {"language": "en", "min_df": 1, "max_df": 1.0}
            >>> corpus = tl.Corpus.from_frame(frame, text="review", covariates=["stars"], **options)
            >>> corpus.vocabulary
            ['bird', 'cat', 'dog', 'sees', 'sings']
            >>> corpus.covariates["stars"]
            array([5., 3.])
        """
        check_options(options, cls.from_texts, "Corpus.from_frame")
        check_index(frame, options)
        columns = read_frame(
            frame, text, id=id, label=label, timestamp=timestamp, covariates=covariates, vectors=vectors
        )
        return cls.from_texts(columns.texts, **(columns.fields() | options))

    @classmethod
    @described(times=TimeOptions)
    def from_counts(
        cls,
        counts: Any,
        vocabulary: Vocabulary | None = None,
        texts: Sequence[str] | None = None,
        ids: Iterable[Any] | None = None,
        labels: Iterable[Any] | None = None,
        timestamps: Iterable[Any] | None = None,
        *,
        vectors: Any = None,
        covariates: Mapping[str, Iterable[Any]] | None = None,
        day_first: bool | None = None,
        date_format: str | None = None,
        fractional: bool = False,
    ) -> Corpus:
        """Make a corpus of counts that were made elsewhere. The matrix is copied.

        Args:
            counts: (n_docs, n_words) sparse or dense, or a data frame; whole numbers from 0.
            vocabulary: the words by column: a list, or a mapping from each word to its column. None takes the names of
                a data frame's columns, or word0, word1 and so on.
            texts: the raw texts of the rows.
            ids: a name for each document; one warning says which ids are repeated or empty.
            labels: a class for each document; None and "" are unknown, and so are "N/A" and the like among numbers.
            timestamps: a date or time for each document: ISO 8601 and similar strings, dates, datetime64, years, or
                seconds, milliseconds, microseconds or nanoseconds since 1970. None, NaN, marks such as "N/A" and
                MySQL's 0000-00-00 are unknown.
            vectors: (n_docs, E) a vector for each document, such as a sentence embedding.
            covariates: name -> one number or category for each document. Among numbers, "N/A", "-", "" and other usual
                marks are missing values. A column with any other word is a category.
            {times}
            fractional: whether counts may be fractions.

        Raises:
            InputError: a count is not allowed (the message names its row and column), a field or the vocabulary has
                another length than the matrix, or a field has another index of pandas.

        Examples:
            >>> import topicloom as tl
            >>> corpus = tl.Corpus.from_counts([[2, 0, 1], [0, 3, 0]], ["cat", "dog", "bird"], ids=["a", "b"])
            >>> corpus
            Corpus(2 documents, 3 words, 6 tokens)
            >>> corpus.word_counts
            array([2., 3., 1.])
        """
        columns = {"ids": ids, "labels": labels, "timestamps": timestamps, "vectors": vectors, "covariates": covariates}
        check_index(counts, columns | {"texts": texts})
        matrix = checked_counts(counts, fractional)
        words = words_of(counts) if vocabulary is None else vocabulary
        known = Fields.of(
            matrix.shape[0], ids=ids, labels=labels, timestamps=timestamps, texts=texts, vectors=vectors,
            covariates=covariates, day_first=day_first, date_format=date_format,
        )  # fmt: skip
        warn_of_ids(known.ids)
        return cls(matrix, checked_vocabulary(words, matrix.shape[1]), known)

    @classmethod
    def load(cls, directory: str | Path, mmap: bool = True, *, verify: bool | None = None) -> Corpus:
        """Read a corpus that `save` wrote to a directory.

        Args:
            directory: where the corpus was saved.
            mmap: whether counts, vectors and texts stay on disk and are read when they are needed.
            verify: which files are checked by checksum: all, none, or (None) those of up to 64 MiB.

        Raises:
            CorpusFileError: a file is missing, damaged or of a newer format; the message names it.

        Examples:
            >>> import topicloom as tl
            >>> import tempfile
            >>> from pathlib import Path
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     tl.Corpus.from_counts([[2, 1]], ["cat", "dog"]).save(Path(folder, "corpus"))
            ...     corpus = tl.Corpus.load(Path(folder, "corpus"), mmap=False)
            >>> corpus
            Corpus(1 document, 2 words, 3 tokens)
        """
        return cls(**load_parts(as_path(directory, "directory"), mmap, verify))

    @classmethod
    def concatenate(
        cls, corpora: Iterable[Corpus], vocabulary: JointVocabulary = "union", *, n_jobs: int | None = None
    ) -> Self:
        """Return the documents of several corpora as one corpus, in their order.

        If a corpus lacks words of the vocabulary, for example because `min_df` left them out, and its texts are known,
        its documents are counted again. If only its counts are known, these words have no counts in it; a warning says
        so if its filters may have left some out.

        A field that only some of the corpora have is unknown for the documents of the others: labels are "", times NaT,
        numbers NaN, and categories have the code -1. The texts (and lists of tokens) are kept if all corpora have them.
        Ids stay as they are; if no corpus has ids of its own, the documents are numbered anew.

        The result is in memory, also if the corpora are memory-mapped.

        Args:
            corpora: the corpora, whose texts were split by the same tokenizer.
            vocabulary: "union" has the words of the first corpus in their order, then the further words of the second
                one, and so on; all corpora have the same filters. "first" has the words of the first corpus, with
                which a model may have been trained. Other words are left out, and only the first corpus's filters
                matter.
            n_jobs: the number of worker processes that count texts again; -1 is all cores. None starts them if one
                process takes seconds.

        Raises:
            InputError: there is no corpus, or something else than a corpus; their tokenizers or filters differ; only
                some have vectors, or vectors of another length; or a covariate has numbers in one corpus and
                categories in another.
            SettingError: `vocabulary` is neither "union" nor "first".

        Examples:
            >>> import topicloom as tl
            >>> may = tl.Corpus.from_counts([[1, 2]], ["cat", "dog"], ids=["may"])
            >>> june = tl.Corpus.from_counts([[3, 4]], ["dog", "bird"], ids=["june"])
            >>> both = tl.Corpus.concatenate([may, june])
            >>> both.vocabulary
            ['cat', 'dog', 'bird']
            >>> both.counts.toarray()
            array([[1., 2., 0.],
                   [0., 3., 4.]], dtype=float32)
            >>> tl.Corpus.concatenate([may, june], "first").counts.toarray()
            array([[1., 2.],
                   [0., 3.]], dtype=float32)
        """
        if not isinstance(vocabulary, str) or vocabulary not in WORDS_OF:
            raise SettingError(
                f"`vocabulary={brief(vocabulary)}` should be 'union' or 'first'; `over` gives the result other words"
            )
        given = _checked_corpora(corpora)
        tokenizer = common_tokenizer([each.tokenizer for each in given])
        if vocabulary == "union":
            require_equal_filters([each.settings for each in given])
        words = list(dict.fromkeys(chain.from_iterable(each.vocabulary for each in given[: WORDS_OF[vocabulary]])))
        fields = joined_fields([each.fields for each in given], [each.n_docs for each in given])
        found = [each._counts_over(words, tokenizer, n_jobs) for each in given]
        warn_of_incomplete([number for number, (_, is_complete) in enumerate(found) if not is_complete], tokenizer)
        counts = stacked([counts for counts, _ in found], len(words))
        corpus = cls(counts, words, fields, tokenizer, dict(given[0].settings))
        warn_of_empty(corpus.is_empty)
        warn_of_ids(corpus.ids)
        return corpus

    def _counts_over(self, words: list[str], tokenizer: AnyTokenizer, n_jobs: int | None) -> tuple[Counts, bool]:
        """Return the counts of other words, and whether they are complete. Texts are counted again if a word is new.

        The counts are incomplete if filters may have left out a new word and the documents cannot be counted again.
        """
        if set(words) <= set(self.vocabulary):
            return self.over(words).counts, True
        if self.has_order and can_split(tokenizer):
            documents: Sequence[Any] = self.fields.tokens or self.fields.texts or ()
            return counts_of(documents, words, tokenizer, n_jobs), True
        # Counts that were made elsewhere have no filters.
        is_filtered = bool(self.settings) and not Filters(**self.settings).keeps_all(self.n_docs)
        return self.over(words).counts, not is_filtered

    @classmethod
    def _of(cls, built: Built, fields: Fields, tokenizer: AnyTokenizer, filters: Filters) -> Corpus:
        """Make a corpus of the counts, and warn if documents have no word of the vocabulary, or not their own id.

        Args:
            built: the counts.
            fields: the fields of all documents that were read, without texts.
            tokenizer: what split the texts.
            filters: what chose the words.
        """
        if built.kept is not None:
            rows, numbers = built.kept
            fields = fields.take(rows).with_copies(numbers)
        fields = replace(fields, texts=built.texts)
        corpus = cls(built.counts, built.vocabulary, fields, tokenizer, asdict(filters))
        warn_of_empty(corpus.is_empty)
        warn_of_ids(corpus.ids)
        return corpus

    @cached_property
    def is_empty(self) -> npt.NDArray[np.bool_]:
        """(n_docs,) True where a document has no word of the vocabulary."""
        empty: npt.NDArray[np.bool_] = np.diff(self.counts.indptr) == 0
        return empty

    @cached_property
    def is_whole(self) -> bool:
        """Whether all counts are whole numbers."""
        return all(np.array_equal(part, np.floor(part)) for part in pieces(self.counts.data))

    @property
    def shape(self) -> tuple[int, int]:
        """(n_docs, n_words). scikit-learn needs it to split a corpus."""
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
        return round(sum(float(part.sum(dtype=np.float64)) for part in pieces(self.counts.data)))

    @cached_property
    def word_counts(self) -> npt.NDArray[np.float64]:
        """(n_words,) the number of tokens of each word in all documents."""
        counts, totals = self.counts, np.zeros(self.n_words)
        for indices, data in zip(pieces(counts.indices), pieces(counts.data), strict=True):
            totals += np.bincount(indices, data, minlength=self.n_words)
        return totals

    @cached_property
    def document_counts(self) -> npt.NDArray[np.int64]:
        """(n_words,) the number of documents with each word."""
        totals = np.zeros(self.n_words, np.int64)
        for indices in pieces(self.counts.indices):
            totals += np.bincount(indices, minlength=self.n_words)
        return totals

    @cached_property
    def counts_digest(self) -> str:
        """A short digest of the words and the counts."""
        digest = hashlib.sha256("\n".join(self.vocabulary).encode("utf-8", "surrogatepass"))
        counts = self.counts
        for array, dtype in ((counts.indptr, np.int64), (counts.indices, np.int64), (counts.data, np.float64)):
            for part in pieces(array):
                digest.update(np.ascontiguousarray(part, dtype).data)
        return digest.hexdigest()[:16]

    @cached_property
    def digest(self) -> str:
        """A short digest of the words, counts and labels: equal for equal corpora, wherever they were made."""
        labels = "\n".join(self.labels or ()).encode("utf-8", "surrogatepass")
        return hashlib.sha256(self.counts_digest.encode() + labels).hexdigest()[:16]

    @property
    def has_order(self) -> bool:
        """Whether the order of the words is known."""
        has_texts = self.fields.texts is not None and not isinstance(self.tokenizer, Pretokenized)
        return has_texts or self.fields.tokens is not None

    def tokens(self) -> Iterator[Sequence[str]]:
        """Return an iterator over the documents' tokens, in their order, including words outside the vocabulary.

        Raises:
            InputError: the corpus has counts only.

        Examples:
            >>> import topicloom as tl
            >>> corpus = tl.Corpus.from_texts(["The cat sees a dog"], language="en", min_df=1, max_df=1.0)
            >>> list(corpus.tokens())
            [['cat', 'sees', 'dog']]
        """
        documents: Sequence[Any] | None = self.fields.tokens or self.fields.texts
        if documents is None or not self.has_order:
            raise InputError(
                "the order of the words is not known, because this corpus has counts without texts; give lists of "
                "tokens, or make the corpus from raw texts with `keep_texts=True`"
            )
        return map(self.tokenizer, documents)

    @cached_property
    def written(self) -> dict[str, str]:
        """The commonest written form of each word in the texts, where it differs from the word.

        It is empty if the texts were not kept, and for languages without spaces between words. Word vectors are looked
        up by it.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["Das Haus in der Straße", "In London steht ein Haus", "Die Straße nach London"]
            >>> tl.Corpus.from_texts(texts, language="de", min_df=2, max_df=1.0).written
            {'haus': 'Haus', 'london': 'London', 'strasse': 'Straße'}
        """
        tokenizer = self.tokenizer
        if self.fields.texts is None or not isinstance(tokenizer, Tokenizer) or tokenizer.is_segmented:
            return {}
        return cased_forms(self.fields.texts, self.vocabulary, tokenizer.fold_word)

    @cached_property
    def spellings(self) -> dict[str, str]:
        """The commonest written form of each word in lower case, where it differs from the word: straße for strasse.

        It is empty if the texts were not kept, and for languages without spaces between words. Topics are shown with
        it.

        Examples:
            >>> import topicloom as tl
            >>> texts = ["Das Haus in der Straße", "In London steht ein Haus", "Die Straße nach London"]
            >>> tl.Corpus.from_texts(texts, language="de", min_df=2, max_df=1.0).spellings
            {'strasse': 'straße'}
        """
        tokenizer = self.tokenizer
        if self.fields.texts is None or not isinstance(tokenizer, Tokenizer) or tokenizer.is_segmented:
            return {}
        totals = dict(zip(self.vocabulary, self.word_counts.tolist(), strict=True))
        lower = folding(tokenizer.language).lower
        return written_forms(self.fields.texts, totals, tokenizer.fold_word, lower)

    def reference(self, ordered: bool = False) -> Reference:
        """Return the corpus as a reference of coherence measures.

        Args:
            ordered: whether the measure needs the order of words, as `metrics.c_v` does. If so, the texts are split
                once more.

        Raises:
            InputError: the order of words is needed, and the corpus has no texts.

        Examples:
            >>> import topicloom as tl
            >>> corpus = tl.Corpus.from_counts([[1, 1, 0], [1, 1, 0], [0, 0, 1], [1, 0, 1]], ["cat", "dog", "rain"])
            >>> measured = tl.metrics.c_npmi([["cat", "dog"], ["cat", "rain"]], corpus.reference(), window=None)
            >>> measured.per_topic.round(2)
            array([ 0.42, -0.29])
        """
        return self._references.reference(ordered)

    @cached_property
    def _references(self) -> CorpusReference:
        return CorpusReference(self)

    def __len__(self) -> int:
        return self.n_docs

    def __getitem__(self, rows: Any) -> Corpus:
        return self.subset(asked_rows(rows))

    def __repr__(self) -> str:
        sizes = counted(self.n_docs, "document"), counted(self.n_words, "word"), counted(self.n_tokens, "token")
        return f"Corpus({', '.join(sizes)})"

    def _repr_html_(self) -> str:
        """Return a summary of the corpus as HTML, in which all text is escaped."""
        most_frequent = np.argsort(-self.word_counts, kind="stable")[:_SHOWN_WORDS]
        rows: list[tuple[str, Any]] = [
            ("documents without a word", f"{int(self.is_empty.sum()):,}"),
            ("most frequent words", [self.vocabulary[word] for word in most_frequent]),
            *_known_fields(self.fields),
        ]
        about = html_table(["", ""], rows, repr(self))
        return about + (_first_documents(self.fields) if self.n_docs else "")

    def with_labels(self, labels: Iterable[Any]) -> Corpus:
        """Return the same documents with other classes. None and "" stand for an unknown class.

        Raises:
            InputError: there are more or fewer labels than documents.

        Examples:
            >>> import topicloom as tl
            >>> corpus = tl.Corpus.from_counts([[1, 0], [0, 1]], ["cat", "dog"])
            >>> corpus.with_labels(["pets", None]).labels
            ['pets', '']
        """
        return replace(self, fields=replace(self.fields, labels=Fields.of(self.n_docs, labels=labels).labels))

    def with_vectors(
        self,
        vectors: Any = None,
        *,
        encoder: Any = None,
        encoder_cache: str | Path | None = None,
        progress: bool = False,
    ) -> Corpus:
        """Return the same documents with other vectors.

        HTML is removed from texts before they are encoded, if the tokenizer of the corpus removes it. The vectors are
        stored as the encoder gives them, in half precision.

        Args:
            vectors: (n_docs, E) a vector for each document, such as a sentence embedding. Zeros mean that it has none.
            encoder: what gives each document its vector: a function from n texts to (n, E) numbers, an object with such
                a method `encode`, or a name, as `TextEncoder.of` takes them.
            encoder_cache: a directory that keeps vectors while the texts are encoded, so that an interrupted call goes
                on.
            progress: whether to show a progress bar on standard error.

        Raises:
            InputError: the texts are not known, the encoder fails, or there are more or fewer vectors than documents.
            SettingError: both vectors and an encoder are given, or neither.

        Examples:
            >>> import topicloom as tl
            >>> corpus = tl.Corpus.from_texts(["The cat sees a dog", "A bird sings"], language="en", min_df=1)
            >>> corpus.with_vectors(encoder=lambda texts: [[len(text), 1] for text in texts]).vectors
            array([[18.,  1.],
                   [12.,  1.]], dtype=float16)
        """
        found = _encoder_of(encoder, vectors, encoder_cache, self.tokenizer, self.fields.texts or ())
        if found is None:
            made = Fields.of(self.n_docs, vectors=vectors).vectors
            if made is None:
                raise SettingError("`with_vectors` needs `vectors` or `encoder`; give one of them")
        elif self.fields.texts is None:
            raise InputError(
                "the texts of the corpus are not known, so they cannot be encoded; make it with `keep_texts=True`, or "
                "give `vectors`"
            )
        else:
            prepare = without_html if getattr(self.tokenizer, "strip_html", False) else replace_surrogates
            made = found.encode(self.fields.texts, prepare=prepare, cache=encoder_cache, progress=progress)
        return replace(self, fields=replace(self.fields, vectors=made, encoder=found))

    def _without_texts(self) -> Corpus:
        return replace(self, fields=replace(self.fields, texts=None))

    def subset(self, rows: Any) -> Corpus:
        """Return some of the documents. Consecutive ones of a memory-mapped corpus stay on disk.

        Args:
            rows: a slice, row numbers, or a (n_docs,) mask.

        Raises:
            IndexError: there is no such row.

        Examples:
            >>> import topicloom as tl
            >>> corpus = tl.Corpus.from_counts([[1, 0], [0, 1], [2, 2]], ["cat", "dog"])
            >>> corpus.subset([2, 0]).counts.toarray()
            array([[2., 2.],
                   [1., 0.]], dtype=float32)
            >>> corpus[:1]
            Corpus(1 document, 2 words, 1 token)
        """
        chosen = np.atleast_1d(np.arange(self.n_docs)[rows])
        return replace(self, counts=rows_of(self.counts, chosen), fields=self.fields.take(chosen))

    def over(self, vocabulary: Vocabulary) -> Corpus:
        """Return the same documents over another vocabulary. Words that are not in it are left out.

        Args:
            vocabulary: the words by column: a list, or a mapping from each word to its column.

        Raises:
            InputError: a word occurs twice, or their order is not known.

        Examples:
            >>> import topicloom as tl
            >>> corpus = tl.Corpus.from_counts([[1, 2]], ["cat", "dog"])
            >>> corpus.over(["dog", "bird"]).counts.toarray()
            array([[2., 0.]], dtype=float32)
        """
        if vocabulary is self.vocabulary or (words := wanted_words(vocabulary)) == self.vocabulary:
            return self  # no copy, because the counts may be memory-mapped
        places = {word: column for column, word in enumerate(words)}
        counts = remap(self.counts, columns_of(self.vocabulary, places), len(places))
        return replace(self, counts=counts, vocabulary=words)

    def encode(self, texts: Iterable[Text], n_jobs: int | None = None) -> Counts:
        """Count the words of n new texts, which are split as those of this corpus were.

        Words that are not in the vocabulary are left out.

        Args:
            texts: n raw texts or lists of tokens, whichever this corpus was made of.
            n_jobs: the number of worker processes; -1 is all cores. None starts them if one process takes seconds.

        Returns:
            (n, n_words) CSR, float32.

        Raises:
            InputError: a document is not text.

        Examples:
            >>> import topicloom as tl
            >>> corpus = tl.Corpus.from_texts(["The cat sees a dog"], language="en", min_df=1, max_df=1.0)
            >>> corpus.vocabulary
            ['cat', 'dog', 'sees']
            >>> corpus.encode(["A dog and a dog", "Nothing new"]).toarray()
            array([[0., 2., 0.],
                   [0., 0., 0.]], dtype=float32)
        """
        return counts_of(given_texts(texts), self.vocabulary, self.tokenizer, n_jobs)

    def save(self, directory: str | Path, overwrite: bool = False) -> None:
        """Write the corpus to a directory, from which `load` reads it.

        Args:
            directory: where it is written. It appears when all of it is there.
            overwrite: whether to replace the contents of the directory.

        Raises:
            InputError: the directory is not empty, and `overwrite` is not set.

        Examples:
            >>> import topicloom as tl
            >>> import tempfile
            >>> from pathlib import Path
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     tl.Corpus.from_counts([[2, 1]], ["cat", "dog"]).save(Path(folder, "corpus"))
            ...     sorted(path.name for path in Path(folder, "corpus").iterdir())
            ['corpus.json', 'data.npy', 'indices.npy', 'indptr.npy', 'vocabulary.txt']
        """
        with atomic_directory(as_path(directory, "directory"), MANIFEST, overwrite=overwrite) as folder:
            save_into(self, folder)


class CorpusReference:
    """A corpus as the reference of coherence measures. References are made when they are first needed, and kept.

    Args:
        corpus: the corpus.
        name: the name of the corpus in results and messages.
        whole: whether documents without a word of the vocabulary count, as for gensim. With every blank line, any two
            words seem to occur together more often than by chance.
        total: returns the sum of an array over the processes that train together; `documents` are then those of all.
            `ordered_documents` are always those of this process.

    Attributes:
        order_unknown: a sentence that says why the order of the words is not known; None if it is known.
    """

    def __init__(
        self, corpus: Corpus, name: str = "the corpus", *, whole: bool = False, total: Total | None = None
    ) -> None:
        self.corpus, self.name, self.total = corpus, name, total
        self._counted = None if whole or not corpus.is_empty.any() else ~corpus.is_empty
        why = None if corpus.has_order else f"the order of words is not known, because {name} has counts without texts"
        self.order_unknown: str | None = why

    def reference(self, ordered: bool) -> Reference:
        """Return the corpus as a `metrics.Reference`.

        Args:
            ordered: whether the order of words is needed.

        Raises:
            InputError: the order of words is needed, and it is not known.
        """
        return self.ordered_documents if ordered else self.documents

    @cached_property
    def documents(self) -> Reference:
        """The words of the vocabulary that each document contains."""
        counts = self.corpus.counts
        return Reference.from_counts(
            counts,
            self.corpus.vocabulary,
            self.name,
            rows=None if self._counted is None else np.flatnonzero(self._counted),
            after_piece=partial(release, counts.data, counts.indices),
            total=self.total,
        )

    @cached_property
    def ordered_documents(self) -> Reference:
        """All tokens of each document in their order, including those that are not in the vocabulary.

        Raises:
            InputError: the order of words is not known.
        """
        if self.order_unknown is not None:
            raise InputError(self.order_unknown)
        tokens = self.corpus.tokens()
        return Reference.from_tokens(tokens if self._counted is None else compress(tokens, self._counted), self.name)

    @property
    def vectors(self) -> npt.NDArray[Any] | None:
        """(n, E) the vectors of the documents, if they have vectors."""
        vectors = self.corpus.vectors
        return vectors if vectors is None or self._counted is None else vectors[self._counted]


def _encoder_of(
    encoder: Any, vectors: Any, cache: object, tokenizer: AnyTokenizer, texts: Sequence[str] = ()
) -> TextEncoder | None:
    """Return the encoder that was given; None if none was given."""
    if encoder is None:
        if cache is not None:
            raise SettingError("`encoder_cache` keeps the vectors of an `encoder`; give that, too, or leave it out")
        return None
    if vectors is not None:
        raise SettingError("`vectors` and `encoder` both give vectors; give one of them")
    if isinstance(tokenizer, Pretokenized) and not texts:
        raise InputError("an encoder reads texts, and these documents are lists of tokens; give texts, or `vectors`")
    return TextEncoder.of(encoder, getattr(tokenizer, "language", None), texts)


def _checked_corpora(corpora: Any) -> list[Corpus]:
    advice = "give a list such as [last_month, this_month]"
    if isinstance(corpora, Corpus):
        raise InputError(f"`corpora` is a single corpus; {advice}")
    if isinstance(corpora, str | bytes | set | frozenset) or not isinstance(corpora, Iterable):
        raise InputError(f"`corpora` is {brief(corpora)}; {advice}")
    given = list(corpora)
    if not given:
        raise InputError(f"`corpora` is empty; {advice}")
    for number, each in enumerate(given):
        if not isinstance(each, Corpus):
            raise InputError(f"corpus {number} of `corpora` is {brief(each)}; make a corpus of it by Corpus.from_texts")
    return given


def _known_fields(fields: Fields) -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    if fields.labels is not None:
        classes = sorted({label for label in fields.labels if label})
        rows.append(
            (
                "classes",
                f"{len(classes):,}: {', '.join(classes[:_SHOWN_WORDS])}{', ...' if classes[_SHOWN_WORDS:] else ''}",
            )
        )
    if fields.times is not None and not np.isnat(fields.times).all():
        first, last = (np.datetime_as_string(end, "D") for end in (np.nanmin(fields.times), np.nanmax(fields.times)))
        rows.append(("times", f"{first} to {last}"))
    if fields.vectors is not None:
        by = "" if fields.encoder is None else f", by {fields.encoder.name}"
        rows.append(("vectors", f"of {fields.vectors.shape[1]:,} numbers{by}"))
    for name, values in fields.covariates.items():
        kind = f"{len(values.names):,} categories" if isinstance(values, Categories) else "numbers"
        rows.append((f"covariate {name}", kind))
    return [*rows, ("texts", "kept" if fields.texts is not None else "not kept")]


def _first_documents(fields: Fields) -> str:
    count = min(_SHOWN_DOCUMENTS, len(fields.ids))
    columns: dict[str, list[Any]] = {"id": [fields.ids[row] for row in range(count)]}
    if fields.labels is not None:
        columns["class"] = [fields.labels[row] for row in range(count)]
    if fields.times is not None:
        columns["time"] = [
            None if np.isnat(time) else str(np.datetime_as_string(time, "D")) for time in fields.times[:count]
        ]
    if fields.texts is not None:
        columns["text"] = [_beginning(fields.texts[row]) for row in range(count)]
    return html_table(list(columns), list(zip(*columns.values(), strict=True)), "The first documents")


def _beginning(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}..."
