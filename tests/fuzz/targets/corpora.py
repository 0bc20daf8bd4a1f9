"""Corpora: counts, texts, tokens, data frames, files of all formats, and what is saved and loaded again."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from typing import Any

import numpy as np
from scipy import sparse

from hostile import PLAIN_WORDS, SURROGATES
from topicloom.corpus import Corpus
from topicloom.corpus.fields import Categories, is_missing
from topicloom.corpus.inputs import corpus_of, corpus_over, kind_of
from topicloom.errors import InputError
from topicloom.text import Pretokenized, read
from topicloom.text.strings import replace_surrogates

from ..campaign import Target
from ..case import Case, same
from .readers import json_value
from .words import PIECES, anything, tokenizer

TYPES = [
    "i1",
    "u1",
    "i2",
    "u2",
    "i4",
    "u4",
    "i8",
    "u8",
    "f2",
    "f4",
    "f8",
    "g",
    "?",
    "c16",
    "O",
    "U2",
    "M8[s]",
    "m8[s]",
    "V4",
]
ODD_NUMBERS = [
    -1,
    0.5,
    math.nan,
    math.inf,
    -math.inf,
    1e39,
    1e300,
    2**31,
    2**53 + 1,
    3.4e38,
    1e-46,
    -1e-46,
    -0.0,
    16777217,
]
FORMATS = ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"]


def matrix(case: Case) -> np.ndarray[Any, Any]:
    """A small matrix, most often of whole numbers."""
    shape = (
        (case.below(5), case.below(5))
        if case.chance(0.9)
        else case.pick([(3,), (), (2, 2, 2), (0, 3), (1, 1), (40, 1)])
    )
    size = math.prod(shape)
    values: list[Any] = [case.below(4) if case.chance(0.6) else 0 for _ in range(size)]
    if size and case.chance(0.3):
        values[case.below(size)] = case.pick(ODD_NUMBERS)
    made = np.array(values, object).reshape(shape)
    try:
        return made.astype(case.pick(TYPES[:13] if case.chance(0.9) else TYPES))
    except (TypeError, ValueError, OverflowError):
        return made.astype(np.float64)


def refused(dense: np.ndarray[Any, Any], fractional: bool) -> bool:
    """Whether a matrix of counts is to be refused, by the rules of the documentation."""
    if dense.ndim != 2 or 0 in dense.shape or dense.dtype.kind not in "biuf":
        return True
    for number in dense.ravel().tolist():  # exact, as Python's integers, or its floats
        value = float(number) if dense.dtype.char == "g" else number
        if not math.isfinite(value) or value < 0:
            return True
        if not fractional and (value != int(value) or value > 2**24):
            return True
        if fractional and value and not 2.0**-126 <= value < 2.0**128 - 2.0**103:
            with np.errstate(all="ignore"):
                if float(np.float32(value)) != value:  # very small ones may be exact
                    return True
    return False


def counts(case: Case) -> int:
    """Dense and sparse matrices of all types, compared entry by entry."""
    for _ in range(10):
        dense, fractional = matrix(case), case.chance(0.3)
        given: Any = dense
        if dense.ndim == 2 and dense.dtype.kind in "biuf" and dense.dtype.char != "e" and case.chance(0.6):
            make = getattr(sparse, f"{case.pick(FORMATS)}_{case.pick(['array', 'matrix'])}")
            given = make(dense)
        elif case.chance(0.2):
            given = dense.tolist()
            dense = np.asarray(given)
        if case.chance(0.2) and dense.dtype.kind != "b" and getattr(given, "format", "") in ("csr", "csc", "coo"):
            given, dense = doubled(case, given)
        try:
            corpus = Corpus.from_counts(given, fractional=fractional)
        except InputError as error:
            assert refused(dense, fractional) and "\n" not in str(error), f"{error}: {dense!r}"
            continue
        assert not refused(dense, fractional), f"accepted {dense!r}"
        check_counts(corpus, dense)
    return 10


def doubled(case: Case, given: Any) -> tuple[Any, np.ndarray[Any, Any]]:
    """The same matrix with entries in another order and some of them twice."""
    coordinates = given.tocoo()
    order = [place for place in range(coordinates.nnz) for _ in range(1 + case.below(2))]
    case.random.shuffle(order)
    data, row, column = coordinates.data[order], coordinates.row[order], coordinates.col[order]
    with np.errstate(all="ignore"):
        dense = np.zeros(given.shape, np.int64 if data.dtype.kind in "iu" and data.dtype != np.uint64 else np.float64)
        np.add.at(dense, (row, column), data.astype(dense.dtype))
    if given.format == "coo":
        return sparse.coo_array((data, (row, column)), shape=given.shape), dense
    rows = row if given.format == "csr" else column
    order = np.argsort(rows, kind="stable")
    starts = np.concatenate(
        [[0], np.cumsum(np.bincount(rows, minlength=given.shape[0 if given.format == "csr" else 1]))]
    )
    made = sparse.csr_array if given.format == "csr" else sparse.csc_array
    other = (column if given.format == "csr" else row)[order]
    return made((data[order], other, starts), shape=given.shape), dense


def check_counts(corpus: Corpus, dense: np.ndarray[Any, Any]) -> None:
    found = corpus.counts
    assert found.dtype == np.float32 and found.shape == dense.shape
    np.testing.assert_array_equal(found.toarray(), dense.astype(np.float32))
    assert (found.data != 0).all() and found.has_canonical_format
    assert len(corpus) == len(corpus.ids) == len(dense)


def damaged_counts(case: Case) -> int:
    """Sparse matrices whose arrays do not fit together: refused, or a corpus that can be read safely."""
    wrong = [-1, 2**31 - 1, -(2**31), 5, 100, 2**30]
    for _ in range(10):
        made = getattr(sparse, f"{case.pick(FORMATS)}_{case.pick(['array', 'matrix'])}")(
            np.array([[1, 0, 2], [0, 0, 3], [1, 1, 0], [0, 2, 0]], case.pick(["f4", "i8", "f8"]))
        )
        if case.chance(0.3) and made.format == "csr":
            made = sparse.bsr_array(made, blocksize=(2, 1))
        names = [
            name for name in ("indices", "indptr", "data", "offsets", "row", "col", "coords") if hasattr(made, name)
        ]
        if made.format == "lil":
            made.rows[case.below(4)] = case.pick([[-1], [5], [0, 1, 2, 3], [2, 0], [0.5], [2**40], ["a"]])
        for _ in range((1 + case.below(2)) if names else 0):
            name = case.pick(names)
            array = getattr(made, name)
            try:
                if isinstance(array, np.ndarray) and array.dtype != object and array.size:
                    array, how = array.copy(), case.below(4)
                    if how == 0:
                        array.flat[case.below(array.size)] = case.pick(wrong)
                    elif how == 1:
                        array = array[: case.below(len(array))]
                    elif how == 2:
                        array = array.astype(case.pick(["i1", "i8", "f8", "u4", "?", "O"]))
                    else:
                        array = np.concatenate([array, array])
                    setattr(made, name, array)
                elif isinstance(array, tuple):
                    made.coords = tuple(each + case.pick([0, -1, 1, 2**30]) for each in array)
            except (AttributeError, ValueError, OverflowError, TypeError):
                pass
        try:
            corpus = Corpus.from_counts(made)
        except InputError as error:
            assert "\n" not in str(error)
            continue
        assert corpus.shape == made.shape
        corpus.counts.check_format(full_check=True)
    return 10


def values(case: Case, n_rows: int) -> Any:
    """A value for each document, of all types; the number of values may be wrong."""
    n_values = n_rows if case.chance(0.95) else case.below(5)
    kind = case.below(8)
    if kind == 0:
        return [case.text(PIECES, 4) for _ in range(n_values)]
    if kind == 1:
        return [case.pick(["x", "x", "y", None, math.nan, ""]) for _ in range(n_values)]
    if kind == 2:
        return np.arange(n_values) if case.chance(0.5) else range(n_values)
    if kind == 3:
        return [dt.datetime(2020, 1, 1) + dt.timedelta(days=case.below(1000)) for _ in range(n_values)]
    if kind == 4:
        return [json_value(case) for _ in range(n_values)]
    if kind == 5:
        return np.array([case.random.random() for _ in range(n_values)], object)
    if kind == 6:
        return [anything(case) for _ in range(n_values)]
    return anything(case)


MARKS = {"", "-", "#n/a", "#na", "<na>", "n/a", "na", "nan", "nat", "none", "null"}


def spells_number(text: str) -> bool:
    """Whether a label is a number that is known."""
    try:
        return "_" not in text and float(text) == float(text)
    except ValueError:
        return False


def fields(case: Case) -> int:
    """Fields of all types: a value for each row, or a refusal."""
    n_rows = 1 + case.below(4)
    given = {name: values(case, n_rows) for name in ("ids", "labels", "timestamps") if case.chance(0.4)}
    if case.chance(0.3):
        given["covariates"] = {case.text(PIECES, 3): values(case, n_rows)} if case.chance(0.9) else anything(case)
    if case.chance(0.2):
        given["vectors"] = case.pick([matrix(case), np.ones((n_rows, 2)), values(case, n_rows)])
    if case.chance(0.2):
        given["vocabulary"] = values(case, 2)
    corpus = Corpus.from_counts(np.ones((n_rows, 2)), **given)
    for name in ("ids", "labels"):
        if given.get(name) is not None:
            expected = ["" if is_missing(value) else replace_surrogates(str(value)) for value in given[name]]
            marked = [each.strip().lower() in MARKS for each in expected]
            numbers = [spells_number(each) for each in expected]
            if name == "labels" and any(numbers) and all(map(max, marked, numbers)):
                expected = ["" if is_marked else each for each, is_marked in zip(expected, marked, strict=True)]
            same(getattr(corpus, name), expected, name)
    for column in (corpus.times, corpus.vectors, *corpus.covariates.values()):
        assert column is None or len(column) == n_rows
    if case.chance(0.2):
        round_trip(case, corpus)
    return 1


def round_trip(case: Case, corpus: Corpus) -> None:
    """Save and load a corpus; everything is equal."""
    corpus.save(case.folder / "corpus")
    check_equal(Corpus.load(case.folder / "corpus", mmap=case.chance(0.5)), corpus)


def check_equal(found: Corpus, corpus: Corpus) -> None:
    np.testing.assert_array_equal(found.counts.toarray(), corpus.counts.toarray())
    same(found.vocabulary, corpus.vocabulary, "word")
    same(found.ids, corpus.ids, "id")
    assert found.labels == corpus.labels and found.tokenizer == corpus.tokenizer and found.digest == corpus.digest
    for one, other in ((found.times, corpus.times), (found.vectors, corpus.vectors)):
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_array_equal(one, other)
    assert (found.texts is None) == (corpus.texts is None)
    if corpus.texts is not None:
        same(found.texts or (), map(replace_surrogates, corpus.texts), "text")
    assert list(found.covariates) == list(corpus.covariates)
    for name, covariate in corpus.covariates.items():
        again = found.covariates[name]
        if isinstance(covariate, Categories):
            assert isinstance(again, Categories) and again.values() == covariate.values()
        else:
            np.testing.assert_array_equal(again, covariate)


def filtered(all_counts: list[Counter[str]], min_df: Any, max_df: Any, remove_top: int, most: int | None) -> list[str]:
    """The vocabulary, by the rules of `Corpus.from_texts`."""
    n_with_words = sum(map(bool, all_counts))
    document, total = Counter(), Counter()  # type: ignore[var-annotated]
    for each in all_counts:
        document.update(each.keys())
        total.update(each)
    low = min_df if isinstance(min_df, int) else min_df * n_with_words
    high = max_df if isinstance(max_df, int) else max_df * n_with_words
    kept = [word for word in total if low <= document[word] <= high]
    kept = sorted(kept, key=lambda word: (-document[word], -total[word], word))[remove_top:]
    return sorted(kept, key=lambda word: (-total[word], word))[:most]


def texts(case: Case) -> int:
    """Texts and lists of tokens with filters, compared with slow counts of each document."""
    are_tokens = case.chance(0.4)
    if are_tokens:
        documents: list[Any] = [[case.text(SURROGATES, 3) for _ in range(case.below(5))] for _ in range(case.below(30))]
        of: Any = Pretokenized()
    else:
        documents = [case.text(PIECES) for _ in range(case.below(30))]
        of = tokenizer(case.pick(["en", "zh", "de"]))
    options: dict[str, Any] = {
        "min_df": case.pick([0, 1, 1, 2, 0.0, 0.1, 0.5]), "max_df": case.pick([1.0, 1.0, 0.5, 2, 0.3, 100]),
        "remove_top": case.pick([0, 0, 1, 3]), "max_features": case.pick([None, None, 1, 5]),
    }  # fmt: skip
    expected = [Counter(map(replace_surrogates, of(text))) for text in documents]
    vocabulary = filtered(expected, *(options[name] for name in ("min_df", "max_df", "remove_top", "max_features")))
    broken = any("\n" in word or "\r" in word for each in expected for word in each)
    given: Any = documents if case.chance(0.7) else iter(documents)
    try:
        corpus = Corpus.from_texts(given, tokenizer=of, **options)
    except InputError as error:
        assert not vocabulary or broken, f"{error}: {documents!r:.300}"
        return 1
    assert not broken
    check_documents(corpus, expected, vocabulary)
    if case.chance(0.1):
        round_trip(case, corpus)
    return len(documents)


def concatenation(case: Case) -> int:
    """Corpora that become one, compared with slow counts of each document; some were saved, some have no texts."""
    of = tokenizer("en")
    options: dict[str, Any] = {"min_df": case.pick([1, 1, 2, 0.5]), "max_df": 1.0, "max_features": case.pick([None, 3])}
    parts: list[Corpus] = []
    expected: list[Counter[str]] = []
    for number in range(1 + case.below(3)):
        documents = [case.text(["cat", "dog"]) for _ in range(1 + case.below(8))]
        fields: dict[str, Any] = {"labels": ["x"] * len(documents)} if case.chance(0.4) else {}
        if case.chance(0.4):
            kinds = [case.text(most=2) + "a" for _ in documents]
            fields["covariates"] = {"price": range(len(documents)), "kind": kinds}
        try:
            part = Corpus.from_texts(documents, tokenizer=of, keep_texts=case.chance(0.8), **options, **fields)
        except InputError:  # no word is left
            continue
        if case.chance(0.3):
            part.save(case.folder / str(number))
            part = Corpus.load(case.folder / str(number))
        parts.append(part)
        expected += [Counter(map(replace_surrogates, of(text))) for text in documents]
    if not parts:
        return 1
    which = case.pick(["union", "first"])
    found = Corpus.concatenate(parts, which)  # type: ignore[arg-type]
    words = list(dict.fromkeys(word for part in (parts if which == "union" else parts[:1]) for word in part.vocabulary))
    same(found.vocabulary, words, "word")
    row = 0
    for part in parts:
        counted = set(words) if part.texts is not None else set(part.vocabulary)
        for _ in range(part.n_docs):
            counts = [expected[row][word] if word in counted else 0 for word in words]
            same(found.counts[[row]].toarray()[0], counts, f"count in row {row}")
            row += 1
    same(found.labels or [""] * row, [label for part in parts for label in part.labels or [""] * part.n_docs], "label")
    for name in found.covariates:
        assert len(found.covariates[name]) == row
    round_trip(case, found)
    return row


def check_documents(corpus: Corpus, expected: list[Counter[str]], vocabulary: list[str]) -> None:
    same(corpus.vocabulary, vocabulary, "word")
    assert len(corpus) == len(expected), f"{len(corpus)} rows of {len(expected)} documents"
    dense = corpus.counts.toarray()
    for row, counts in enumerate(expected):
        same(dense[row], [counts[word] for word in vocabulary], f"count in row {row}")


def anything_as_texts(case: Case) -> int:
    """Values of all kinds instead of documents: a row for each document, or a refusal."""
    given: Any = case.pick([
        lambda: anything(case), lambda: [anything(case) for _ in range(3)], lambda: [case.text(), anything(case)],
        lambda: [[case.text(), anything(case)]], lambda: [["a"], "b"], lambda: json_value(case), lambda: matrix(case),
        lambda: (text for text in PLAIN_WORDS), lambda: np.array(PLAIN_WORDS), lambda: np.array([["a", "b"]]),
        lambda: [np.str_("a b")],
        lambda: [["a", "b"], None], lambda: dict.fromkeys(PLAIN_WORDS), lambda: set(PLAIN_WORDS), lambda: "text",
        lambda: [[]], lambda: [[[]]],
    ])()  # fmt: skip
    call = case.below(4)
    if call == 0:
        corpus = Corpus.from_texts(given, min_df=1, max_df=1.0)
    elif call == 1:
        corpus = corpus_of(given)
    elif call == 2:
        corpus = corpus_over(given, ["cat", "dog"], tokenizer("en"))
    else:
        kind_of(given)
        return 1
    if hasattr(given, "__len__"):
        assert len(corpus) == len(given)
    assert len(corpus.ids) == len(corpus)
    return 1


def frame(case: Case) -> int:
    """Data frames of pandas, polars and Arrow with columns of all types."""
    import pandas
    import polars
    import pyarrow

    n_rows = case.below(6)
    columns: dict[str, Any] = {"text": [case.text(PIECES[:12]) if case.chance(0.9) else None for _ in range(n_rows)]}
    for name in ("id", "label", "timestamp", "x", case.text(most=2)):
        if case.chance(0.4) and name != "text":
            columns[name] = values(case, n_rows)
    if case.chance(0.1):
        columns["text"] = values(case, n_rows)
    make = case.pick([pandas.DataFrame, polars.DataFrame, pyarrow.table])
    try:
        made = make(columns)
    except Exception:  # the library refuses the columns
        return 0
    options = {"covariates": ["x"]} if "x" in columns and case.chance(0.5) else {}
    corpus = Corpus.from_frame(made, min_df=1, max_df=1.0, **options)
    assert len(corpus) == len(made)
    if isinstance(columns["text"], list) and all(isinstance(text, str | None) for text in columns["text"]):
        same(corpus.texts or (), [replace_surrogates(text or "") for text in columns["text"]], "text")
    if "x" in columns and options:
        assert len(corpus.covariates["x"]) == len(made)
    return max(1, len(made))


def file(case: Case) -> int:
    """Files of all formats, built in memory or on disk: the same corpus, with a row for each document."""
    ending = case.pick(
        ["csv", "jsonl", "txt", "csv.gz", "parquet", "xlsx"] if case.chance(0.5) else ["csv", "jsonl", "txt"]
    )
    data = case.seed_bytes({"txt": ".csv"}.get(ending, f".{ending}"))
    path = case.write(f"input.{ending}", case.mutated(data) if case.chance(0.7) else data)
    options: dict[str, Any] = {"min_df": 1, "max_df": 1.0, "language": "en", "errors": case.pick(["strict", "replace"])}
    documents = list(read(path, errors=options["errors"]))
    corpus = Corpus.from_file(path, **options)
    assert len(corpus) == len(documents)
    same(corpus.texts or (), [each.text for each in documents], "text")
    same(corpus.ids, [str(row) if each.id is None else each.id for row, each in enumerate(documents)], "id")
    check_equal(Corpus.from_file(path, out=case.folder / "out", **options), corpus)
    return len(documents)


def saved(case: Case) -> int:
    """A corpus with one file damaged: refused, or equal to the one that was saved."""
    corpus = Corpus.from_texts(
        ["a cat and a dog", "stocks, rates", "dogs", "", "a cat"], min_df=1, max_df=1.0, language="en",
        labels=[*list("xyxy"), None],
        timestamps=range(2000, 2005), vectors=np.eye(5), covariates={"price": [1.5, 2, None, 0, 1],
        "kind": list("abcab")}, ids=list("vwxyz"),
    )  # fmt: skip
    folder = case.folder / "corpus"
    corpus.save(folder)
    case.damage_one_of(folder)
    found = Corpus.load(folder, mmap=case.chance(0.5))
    check_equal(found, corpus)
    return 1


TARGETS = {
    "corpus.from_counts": Target(counts, "a matrix, compared entry by entry", 3),
    "corpus.from_counts.damaged": Target(damaged_counts, "a sparse matrix", 2),
    "corpus.fields": Target(fields, "a set of fields", 1.5, allow_refusal=True),
    "corpus.from_texts": Target(texts, "a document, compared word by word", 3),
    "corpus.concatenate": Target(concatenation, "a document, compared word by word", 1),
    "corpus.from_anything": Target(anything_as_texts, "a value", 1, allow_refusal=True),
    "corpus.from_frame": Target(
        frame, "a row of a data frame", 1, allow_refusal=True, needs=("pandas", "polars", "pyarrow")
    ),
    "corpus.from_file": Target(file, "a document of a file", 1, allow_refusal=True),
    "corpus.load": Target(saved, "a saved corpus", 1, allow_refusal=True),
}
