"""The documents that users give in all their forms, as a Corpus, and their division into parts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import replace
from itertools import islice
from numbers import Real
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..errors import InputError, SettingError
from ..files import holds_corpus
from ..messages import brief, counted, nearest
from ..metrics.cooccurrence import Vocabulary
from ..preparing import ReadOptions
from ..settings import require_seed
from ..text import AnyTokenizer, Document, Pretokenized
from ..text.counting import add_left_out, counts_of
from ..text.pieces import PARENT
from ..text.reading import Source, documents_in
from .corpus import Corpus
from .dates import TimeReader
from .fields import Categories, FieldKind, Fields, as_number, covariate_like, is_arrow_column, read_times
from .frames import column_names, is_frame, is_numeric, read_frame, refuse_bags, texts_of

# The division of a corpus into documents for training, for validation and for testing.

_SPLIT_SEED = 0
_PARTS = {
    "train": "train",
    "training": "train",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "dev": "validation",
    "test": "test",
}


class Split(NamedTuple):
    """The three parts of a corpus."""

    train: Corpus
    validation: Corpus
    test: Corpus


def split(corpus: Corpus, validation: float = 0.1, test: float = 0.2, random_state: int = _SPLIT_SEED) -> Split:
    """Divide a corpus at random. Documents without words are left out.

    Args:
        corpus: the documents.
        validation: the share of the documents on which settings are chosen, above 0.
        test: the share of the documents on which results are reported, above 0. The sum of both shares is below 1.
        random_state: the seed; the same seed gives the same parts.

    Raises:
        InputError: a part would be empty.
        SettingError: a share is not above 0, both together leave nothing for training, or `random_state` is no seed.

    Examples:
        >>> from topicloom.corpus.inputs import split
        >>> from topicloom.datasets import synthetic_lda
        >>> train, validation, test = split(synthetic_lda(100).corpus)
        >>> len(train), len(validation), len(test)
        (70, 10, 20)
    """
    are_shares = isinstance(validation, Real) and isinstance(test, Real)
    if not (are_shares and validation > 0 and test > 0 and validation + test < 1):
        own = "" if are_shares else "; give documents of your own as `split`"
        raise SettingError(
            "`validation` and `test` should be shares above 0, and together below 1; they are "
            f"{brief(validation)} and {brief(test)}{own}"
        )
    require_seed(random_state)
    rows = np.random.default_rng(random_state).permutation(np.flatnonzero(~corpus.is_empty))
    ends = np.cumsum([round(len(rows) * test), round(len(rows) * validation)])
    for_test, for_validation, kept = np.split(rows, ends)
    if not (len(for_test) and len(for_validation) and len(kept)):
        raise InputError(
            f"{counted(len(rows), 'document')} with words {'is' if len(rows) == 1 else 'are'} too few for training, "
            "validation and testing; give more documents"
        )
    return Split(corpus[np.sort(kept)], corpus[np.sort(for_validation)], corpus[np.sort(for_test)])


def split_by_covariate(corpus: Corpus, name: str) -> Split:
    """Divide a corpus by the values of a covariate. A part may be empty.

    Args:
        corpus: the documents.
        name: the covariate, whose values are train, validation (or val, valid, dev) and test.

    Raises:
        InputError: there is no such covariate, or it has other values.

    Examples:
        >>> import topicloom as tl
        >>> from topicloom.corpus.inputs import split_by_covariate
        >>> parts = {"part": ["train", "test", "train", "dev"]}
        >>> corpus = tl.Corpus.from_counts([[1], [2], [3], [4]], ["cat"], covariates=parts)
        >>> [part.n_tokens for part in split_by_covariate(corpus, "part")]
        [4, 4, 2]
    """
    if name not in corpus.covariates:
        known = f"; {nearest(name, corpus.covariates)}" if corpus.covariates else "; it has none"
        raise InputError(f"`split` names {name!r}, which is no covariate of the corpus{known}")
    column = corpus.covariates[name]
    if not isinstance(column, Categories):
        raise InputError(f"the values of {name!r} are numbers; they should be train, validation and test")
    rows: dict[str, list[int]] = {part: [] for part in Split._fields}
    for row, value in enumerate(column.values()):
        part = _PARTS.get((value or "").strip().lower())
        if part is None:
            raise InputError(f"document {row} has {value!r} as {name!r}; it should be train, validation or test")
        rows[part].append(row)
    return Split(*(corpus.subset(chosen) for chosen in rows.values()))


logger = logging.getLogger("topicloom")

Kind = Literal["corpus", "counts", "frame", "texts"]


def kind_of(X: Any) -> Kind:
    """Return the form of X: "corpus", "counts" (a matrix), "frame" (a data frame with texts) or "texts".

    Texts are raw texts or lists of tokens.

    Raises:
        InputError: X has none of these forms.
    """
    if isinstance(X, Corpus):
        return "corpus"
    if isinstance(X, str | bytes):
        raise InputError("give a list of texts, even for one text: [text]")
    if isinstance(X, set | frozenset):
        raise InputError("the documents are a set, which has no order; give a list of texts")
    if is_frame(X):
        return "counts" if is_numeric(X) else "frame"
    _refuse_table_of_texts(X)
    if is_arrow_column(X) and any(isinstance(value, str | list) for value in X.to_pylist()):
        return "texts"
    refuse_bags(X)
    if _is_matrix(X):
        _refuse_flat(X)
        return "counts"
    if not isinstance(X, Iterable) or isinstance(X, dict):
        raise InputError(
            f"a Corpus, a list of texts or of token lists, a data frame or counts are needed; this is {brief(X)}"
        )
    return "texts"


def corpus_of(
    X: Any,
    vocabulary: Vocabulary | None = None,
    *,
    fractional: bool = False,
    matrix: Callable[[Any], tuple[Any, Sequence[str] | None]] = lambda X: (X, None),
    encoder: Any = None,
) -> Corpus:
    """Convert X to a corpus with a vocabulary of its own.

    Args:
        X: a Corpus, texts, token lists, a data frame with a column "text", or (n_docs, n_words) counts.
        vocabulary: the word of each column, if X is a matrix.
        fractional: whether counts may be fractions.
        matrix: a function that checks a matrix, and returns it with the words of its columns, or None for the words.
        encoder: what gives each document its vector, as `Corpus.from_texts` takes it.

    Raises:
        InputError: X cannot be used.
    """
    kind = kind_of(X)
    if kind == "counts":
        if encoder is not None:
            raise InputError("an encoder reads texts, and these are counts; give texts, or a Corpus with vectors")
        counts, words = matrix(X)
        return Corpus.from_counts(counts, words if vocabulary is None else vocabulary, fractional=fractional)
    _refuse_vocabulary(vocabulary)
    if kind == "corpus":
        corpus = _whole(X, fractional)
        return corpus if encoder is None else corpus.with_vectors(encoder=encoder)
    if kind == "frame":
        _require_text(X)
        return Corpus.from_frame(X, encoder=encoder)
    return Corpus.from_texts(list(texts_of(X)), encoder=encoder)


def corpus_over(
    X: Any,
    words: Sequence[str],
    tokenizer: AnyTokenizer,
    vocabulary: Vocabulary | None = None,
    *,
    fractional: bool = False,
    matrix: Callable[[Any], tuple[Any, Sequence[str] | None]] = lambda X: (X, None),
    columns_of: Callable[[], Mapping[str, int]] | None = None,
    left_out: dict[str, float] | None = None,
) -> Corpus:
    """Convert X to a corpus over the words of a fitted model.

    Words that the model does not know are left out. Every document keeps its row, even if no word of it is left.

    Args:
        X, vocabulary, fractional, matrix: as for `corpus_of`.
        words: the V words of the model.
        tokenizer: the tokenizer of the training corpus, which splits the texts.
        columns_of: a function that returns the column of each word, if they need not be computed for each call.
        left_out: a dictionary to which the words that are left out are added, with how often each occurs.

    Raises:
        InputError: X cannot be used.
    """
    kind = kind_of(X)
    if kind == "counts" and vocabulary is None:
        return Corpus.from_counts(matrix(X)[0], words, fractional=fractional)
    if kind == "counts":
        X = Corpus.from_counts(X, vocabulary, fractional=fractional)
    else:
        _refuse_vocabulary(vocabulary)
    if isinstance(X, Corpus):
        if left_out is not None and X.vocabulary is not words:
            places = columns_of() if columns_of else {word: column for column, word in enumerate(words)}
            add_left_out(left_out, X.vocabulary, X.counts, places)
        return _whole(X, fractional).over(words)
    columns = None
    if kind == "frame":
        _require_text(X)
        columns = read_frame(X)
    documents = list(texts_of(X)) if columns is None else columns.texts
    are_tokens = bool(documents) and isinstance(documents[0], list | tuple)
    if are_tokens and not isinstance(tokenizer, Pretokenized):
        tokenizer = Pretokenized()
    counts = counts_of(documents, words if columns_of is None else columns_of(), tokenizer, left_out=left_out)
    known = {} if columns is None else columns.fields()
    texts, tokens = (None, documents) if are_tokens else (documents, None)
    return Corpus(counts, list(words), Fields.of(len(documents), texts=texts, tokens=tokens, **known), tokenizer)


def corpus_of_documents(
    documents: Sequence[Document],
    words: Sequence[str],
    tokenizer: AnyTokenizer,
    first_row: int = 0,
    covariates: Mapping[str, FieldKind] | None = None,
    times: TimeReader | None = None,
    known: Collection[str] = (),
) -> Corpus:
    """Turn documents that were read from a file into a corpus over the words of a fitted model.

    Args:
        first_row: the number of the first document, which is its id if it has no other.
        covariates: the covariates that the corpus gets, with the kinds that they have in the training documents.
        times: the reader of times that read those of the documents before; None makes one.
        known: which of "label" and "timestamp" the corpus has.

    Raises:
        InputError: a document cannot be used.
    """
    counts = counts_of((document.text for document in documents), words, tokenizer)
    ids = [str(row) if each.id is None else each.id for row, each in enumerate(documents, first_row)]
    reader = times or TimeReader()
    read_times(reader, [document.timestamp for document in documents], first_row)
    read = reader.finish()
    fields = Fields.of(
        len(documents),
        ids=ids,
        labels=[document.label for document in documents] if "label" in known else None,
        timestamps=read if "timestamp" in known else None,
        texts=[document.text for document in documents],
    )
    further = {}
    for name, kind in (covariates or {}).items():
        values = [(document.covariates or {}).get(name) for document in documents]
        further[name] = covariate_like(values, numbers=not isinstance(kind, tuple))
    return Corpus(counts, list(words), replace(fields, covariates=further), tokenizer)


def _whole(corpus: Corpus, fractional: bool) -> Corpus:
    """Return the corpus.

    Raises:
        InputError: a count is a fraction, and `fractional` is not set.
    """
    if not fractional and not corpus.is_whole:
        raise InputError(
            "the corpus has counts that are not whole numbers; `fractional_counts=True` accepts them as weights"
        )
    return corpus


def _require_text(frame: Any) -> None:
    names = column_names(frame)
    if "text" not in names:
        raise InputError(
            f"the data frame has no column 'text' (its columns: {', '.join(names[:10])}); make a corpus with "
            "Corpus.from_frame(frame, text=...), or give a data frame that holds counts only"
        )


def _is_matrix(X: Any) -> bool:
    """Return whether X holds counts: an array, a sparse matrix, or nested lists of numbers."""
    if sp.issparse(X):
        return True
    if hasattr(X, "dtype"):
        kind = getattr(X.dtype, "kind", "O")  # types of tensors and of polars' columns have no kind
        return not (kind in "OUST" and any(x is None or isinstance(x, str | list | tuple) for x in X))
    if isinstance(X, list | tuple) and X:
        first = X[0]
        # Tokens of which one is not a string are refused as such.
        tokens = isinstance(first, list | tuple) and (not first or any(isinstance(word, str) for word in first))
        return not (first is None or isinstance(first, str) or tokens)
    return hasattr(X, "__array__")


def _refuse_table_of_texts(X: Any) -> None:
    """Raise InputError if X is an array of texts with another number of axes than one."""
    if not isinstance(X, np.ndarray) or X.ndim == 1 or not X.size or not isinstance(X.flat[0], str):
        return
    raise InputError(
        "give a list of texts, even for one text: [text]"
        if X.ndim == 0
        else f"texts should be a list or an array of one axis, and these have {X.ndim} axes; give one column, X[:, 0]"
    )


def _refuse_flat(X: Any) -> None:
    """Raise InputError if X is a list or a column of numbers, or of other values that are no texts.

    Arrays are left to scikit-learn, whose checks ask for its own words about their shape.
    """
    if is_arrow_column(X):
        X, is_flat = X.to_pylist(), True
    elif isinstance(X, list | tuple):
        is_flat = not isinstance(X[0], Iterable) or isinstance(X[0], bytes | dict)
    else:
        is_flat = getattr(X, "ndim", 2) == 1 and not isinstance(X, np.ndarray) and not sp.issparse(X)
    if not is_flat:
        return
    advice = "give a list of texts, or counts with a row for each document and a column for each word"
    if len(X) == 0:
        raise InputError(f"the column is empty; {advice}")
    first: Any = next(iter(X))
    shown = brief(first.item() if hasattr(first, "item") else first)  # 1.0, and not np.float64(1.0)
    raise InputError(f"document 0 is {shown}, which is neither a text nor a row of counts; {advice}")


def refuse_vocabulary_as_y(X: Any, y: Any) -> None:
    """Raise InputError if the second argument of `fit`, which is `y` of scikit-learn and not used, is a vocabulary.

    A mapping or a vectorizer is one, and so are strings if there is one for each column of X and not for each row.
    """
    is_vectorizer = hasattr(y, "get_feature_names_out")
    if y is None or not (is_vectorizer or isinstance(y, Mapping) or _are_words_of_columns(X, y)):
        return
    words = "vectorizer.get_feature_names_out()" if is_vectorizer else "..."
    raise InputError(
        "the second argument is `y` of scikit-learn, which is not used, and this one is a vocabulary; give it as "
        f"`vocabulary={words}`"
    )


def _are_words_of_columns(X: Any, y: Any) -> bool:
    if isinstance(X, list) and X and isinstance(X[0], list | tuple):
        shape: tuple[int, ...] = len(X), len(X[0])
    else:
        shape = () if isinstance(X, Corpus) else tuple(getattr(X, "shape", ()))
    if len(shape) != 2 or isinstance(y, str) or not (isinstance(y, Sized) and isinstance(y, Iterable)):
        return False
    return len(y) == shape[1] != shape[0] and all(isinstance(word, str) for word in y)


def _refuse_vocabulary(vocabulary: Vocabulary | None) -> None:
    if vocabulary is not None:
        raise InputError(
            "`vocabulary` names the columns of a matrix of counts; leave it out for a Corpus, texts or a data frame"
        )


# Documents of files, over the words of a fitted model.

_NO_COVARIATES = ("vectors", "times")  # fields with names of their own


def stored_or_read(
    source: Source,
    words: Sequence[str],
    tokenizer: AnyTokenizer,
    reading: Mapping[str, Any] = MappingProxyType({}),
    fields: Mapping[str, FieldKind] = MappingProxyType({}),
) -> Corpus:
    """Return a corpus that `prepare` wrote, or the documents of a file as `documents_of_file` reads them.

    Raises:
        InputError: it cannot be read.
    """
    if holds_corpus(source):
        return Corpus.load(source)
    return next(documents_of_file(source, words, tokenizer, reading, fields))


def documents_of_file(
    source: Source,
    words: Sequence[str],
    tokenizer: AnyTokenizer,
    reading: Mapping[str, Any],
    fields: Mapping[str, FieldKind],
    at_once: int | None = None,
    optional: Collection[str] = (),
) -> Iterator[Corpus]:
    """Yield the documents of a file as corpora over the words of a model.

    All of them have the same fields: those that the first corpus has, and of the covariates those of the training
    documents. A word among numbers is an unknown value, and a warning names the first one.

    Args:
        source: the file, several of them, or "-" for standard input.
        words, tokenizer: the words and the tokenizer of the model.
        reading: the options of reading that are not the defaults.
        fields: the fields of the training documents, as `Fields.kinds` returns them.
        at_once: the number of documents of a corpus; None is all.
        optional: the options that may not suit the file, as `documents_in` takes them.

    Raises:
        InputError: the file cannot be read, or a document cannot be used; a label or a time occurs first after the
            first corpus; or the options of reading are for times, and there are none.
    """
    known = {name: kind for name, kind in fields.items() if name not in _NO_COVARIATES}
    options = ReadOptions(**reading)
    if options.split_texts is not None:
        known.pop(PARENT, None)
    documents = documents_in(source, options, dict.fromkeys(known), optional)
    if options.split_texts is not None:
        known[PARENT] = ()
    times = TimeReader(options.day_first, options.date_format)
    n_done = 0
    warned: set[str] = set()
    has: set[str] = set()
    wanted = set(known)
    while chunk := list(islice(documents, at_once)):
        present = {name for document in chunk for name in document.covariates or ()}
        found = {name for name in ("label", "timestamp") if any(getattr(each, name) is not None for each in chunk)}
        if n_done == 0:
            has, known = found, {name: kind for name, kind in known.items() if name in present}
        new = [*sorted(found - has), *(f"value of {name!r}" for name in sorted(present & wanted - known.keys()))]
        if new:
            raise InputError(
                f"document {n_done} or a later one has a {new[0]}, but the results of the {n_done:,} before it are "
                f"written without that column; put a document with a {new[0]} first"
            )
        for name in [name for name, kind in known.items() if not isinstance(kind, tuple) and name not in warned]:
            if (row := _first_word(chunk, name)) is not None:
                warned.add(name)
                logger.warning(
                    "the covariate %r is %s in document %d, which is no number, as the training documents have; such "
                    "values are taken as unknown",
                    name, brief((chunk[row].covariates or {})[name]), n_done + row,
                )  # fmt: skip
        yield corpus_of_documents(chunk, words, tokenizer, n_done, known, times, has)
        n_done += len(chunk)
    if "timestamp" not in (*has, *optional):
        times.require_none_given()


def _first_word(documents: Sequence[Document], name: str) -> int | None:
    """Return the first document whose value of a covariate is neither a number nor missing; None if there is none."""
    values = ((document.covariates or {}).get(name) for document in documents)
    return next((row for row, value in enumerate(values) if as_number(value) is None), None)


def parts_of_source(
    source: Source,
    words: Sequence[str],
    tokenizer: AnyTokenizer,
    reading: Mapping[str, Any],
    fields: Mapping[str, FieldKind],
    column: str,
) -> Split:
    """Read the documents again that a model was trained on, and divide them as in training.

    Args:
        source: the file, or a saved corpus.
        words, tokenizer, reading, fields: as for `documents_of_file`.
        column: the column, or the covariate of the corpus, that says the part of each document.

    Raises:
        InputError: it cannot be read, or the column is missing or says something else.
    """
    found = stored_or_read(source, words, tokenizer, reading, {**fields, column: ()})
    return split_by_covariate(found.over(words), column)
