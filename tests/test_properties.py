"""Properties that hold for all input, with examples that hypothesis looks for."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
import tempfile
from collections import Counter
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from hostile import FIELDS, MARKS, PLAIN_WORDS, SEPARATORS, SURROGATES
from topicloom.corpus import Corpus
from topicloom.corpus.fields import parse_times
from topicloom.embeddings import WordVectors, read_word_vectors
from topicloom.errors import InputError
from topicloom.text import Pretokenized, make_tokenizer, read
from topicloom.text.strings import replace_surrogates
from topicloom.text.tokenizing import without_html
from topicloom.topics.edits import checked_edits, read_edits, write_edits

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from hypothesis.extra import numpy as arrays  # noqa: E402

settings.register_profile("suite", derandomize=True, database=None, deadline=None, max_examples=80)
settings.load_profile("suite")

needs_icu = pytest.mark.skipif(find_spec("icu4py") is None, reason="needs icu4py, of the extra intl")

_HOSTILE = st.sampled_from([*FIELDS, *MARKS, *SEPARATORS, *SURROGATES, *PLAIN_WORDS])
TIMES = st.datetimes(min_value=datetime(100, 1, 1), max_value=datetime(3000, 12, 31))
ANY = st.text(st.characters()) | _HOSTILE  # surrogates included
TEXT = st.text(st.characters(exclude_categories=["Cs"])) | _HOSTILE.filter(
    lambda text: text == replace_surrogates(text)
)
LINE = TEXT.filter(lambda text: not {"\r", "\n"} & set(text))
COUNTS = arrays.arrays(
    st.sampled_from([np.int8, np.uint16, np.int64, np.float64]),
    st.tuples(st.integers(1, 5), st.integers(1, 5)),
    elements=st.integers(0, 100),
)


def documents(data: bytes, **options):
    before, sys.stdin = sys.stdin, SimpleNamespace(buffer=io.BytesIO(data))
    try:
        return list(read("-", **options))
    finally:
        sys.stdin = before


def clean(text: str) -> str:
    return replace_surrogates(text.replace("\0", " "))


@given(st.lists(LINE, min_size=1), st.sampled_from(["\n", "\r\n", "\r"]))
def test_every_line_is_a_document(lines, end):
    data = ("\ufeffx" + end + end.join(lines) + end).encode()
    assert [each.text for each in documents(data)] == ["x", *map(clean, lines)]


@given(st.lists(st.tuples(TEXT, TEXT), min_size=1), st.sampled_from(",;\t|"))
def test_every_row_of_a_table_is_a_document(rows, delimiter):
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter).writerows([("id", "text"), *rows])
    found = documents(out.getvalue().encode(), format="csv", delimiter=delimiter)
    assert [(each.id, each.text) for each in found] == [tuple(map(clean, row)) for row in rows]


@given(st.lists(st.tuples(TEXT, ANY), min_size=1), st.booleans())
def test_every_line_of_json_is_a_document(rows, ascii_only):
    lines = [json.dumps({"id": name, "text": text}, ensure_ascii=ascii_only) for name, text in rows]
    data = "\n".join(lines).encode("utf-8", "backslashreplace")  # which is how JSON escapes
    found = documents(data, format="jsonl")
    assert [each.text for each in found] == [clean(text) for _, text in rows]
    assert [each.id for each in found] == [name for name, _ in rows]


@given(st.binary(), st.sampled_from(["txt", "md", "csv", "tsv", "jsonl"]), st.sampled_from(["strict", "replace"]))
def test_bytes_are_documents_or_a_refusal(data, format, errors):
    try:
        assert documents(data, format=format, errors=errors)
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    "language", ["en", "fr", "de", "zh", pytest.param("ja", marks=needs_icu), pytest.param("th", marks=needs_icu)]
)
@given(text=ANY)
@settings(max_examples=40)
def test_tokens_are_words(language, text):
    tokenizer = make_tokenizer(language, None, strip_html=False)
    for token in tokenizer(text):
        assert len(token) > 1
        assert any(map(str.isalpha, token))
        assert not any(map(str.isspace, token))


@given(st.lists(ANY, max_size=5))
def test_tokens_of_joined_texts_are_the_tokens_of_each(texts):
    tokenizer = make_tokenizer("en", strip_html=False)
    assert tokenizer("\n".join(texts)) == [token for text in texts for token in tokenizer(text)]


@given(ANY)
def test_markup_only_shortens(text):
    assert len(without_html(text)) <= len(text)


@given(COUNTS, st.sampled_from(["dense", "list", "csr", "csc", "coo", "bsr", "dia", "lil", "dok"]))
def test_counts_stay(counts, form):
    made = {"dense": lambda x: x, "list": lambda x: x.tolist()}.get(form) or getattr(sparse, f"{form}_array")
    found = Corpus.from_counts(made(counts)).counts
    np.testing.assert_array_equal(found.toarray(), counts)
    assert found.nnz == (counts > 0).sum()


@given(COUNTS, st.sampled_from([-1, 0.5, np.nan, np.inf, -np.inf, 1e39]), st.data())
def test_a_count_that_cannot_be_is_refused_with_its_place(counts, wrong, data):
    counts = counts.astype(np.float64)
    row, column = (data.draw(st.integers(0, size - 1)) for size in counts.shape)
    counts[row, column] = wrong
    for X in (counts, sparse.csr_array(counts), sparse.coo_array(counts)):
        with pytest.raises(InputError, match=f"row {row}, column {column} is"):
            Corpus.from_counts(X)


@given(
    st.lists(st.lists(st.sampled_from("abcdefg"), max_size=8), min_size=1, max_size=12),
    st.sampled_from([0, 1, 2, 0.2]), st.sampled_from([1.0, 0.6, 3]), st.integers(0, 2), st.sampled_from([None, 2]),
)  # fmt: skip
def test_the_vocabulary_by_its_rules(texts, min_df, max_df, remove_top, max_features):
    counters = [Counter(text) for text in texts]
    of_documents = Counter(word for counter in counters for word in counter)
    totals = sum(counters, Counter())
    low, high = (limit if isinstance(limit, int) else limit * sum(map(bool, texts)) for limit in (min_df, max_df))
    kept = sorted(
        (word for word in totals if low <= of_documents[word] <= high),
        key=lambda word: (-of_documents[word], -totals[word], word),
    )[remove_top:]
    kept = sorted(kept, key=lambda word: (-totals[word], word))[:max_features]
    options = {"min_df": min_df, "max_df": max_df, "remove_top": remove_top, "max_features": max_features}
    if not kept:
        with pytest.raises(InputError, match="no word"):
            Corpus.from_texts(texts, tokenizer=Pretokenized(), **options)
        return
    corpus = Corpus.from_texts(texts, tokenizer=Pretokenized(), **options)
    assert corpus.vocabulary == kept
    assert corpus.counts.toarray().tolist() == [[counter[word] for word in kept] for counter in counters]


@given(
    st.lists(
        st.tuples(
            ANY,
            TEXT,
            st.none() | TEXT,
            st.none() | st.floats(),
            TIMES,
        ),
        min_size=1,
        max_size=5,
    )
)
@settings(max_examples=30)
def test_a_corpus_that_is_saved_comes_back(rows):
    texts, ids, kinds, prices, times = map(list, zip(*rows, strict=True))
    corpus = Corpus.from_counts(
        np.ones((len(rows), 2)), texts=texts, ids=ids, labels=kinds, timestamps=times,
        covariates={"kind": kinds, "price": prices}, vectors=np.ones((len(rows), 2)),
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        corpus.save(Path(folder, "corpus"))
        again = Corpus.load(Path(folder, "corpus"), mmap=False)
    assert (again.ids, again.labels) == (corpus.ids, corpus.labels)
    assert list(again.texts) == [replace_surrogates(text) for text in texts]
    assert again.times.tolist() == corpus.times.tolist() == times
    np.testing.assert_array_equal(again.covariates["price"], corpus.covariates["price"])
    assert repr(again.covariates["kind"]) == repr(corpus.covariates["kind"])


@given(
    st.datetimes(timezones=st.just(UTC), min_value=datetime(100, 1, 2), max_value=datetime(3000, 12, 30)),
    st.integers(-12, 12),
)
def test_times_come_back(moment, hours):
    from datetime import timedelta, timezone

    elsewhere = moment.astimezone(timezone(timedelta(hours=hours)))
    naive = moment.replace(tzinfo=None)
    for written in (moment, elsewhere, elsewhere.isoformat(), naive, np.datetime64(naive)):
        assert parse_times([written]).tolist() == [naive]


@given(st.lists(TEXT, unique=True, min_size=1, max_size=4), st.data())
def test_word_vectors_come_back(words, data):
    rows = data.draw(
        arrays.arrays(np.float32, (len(words), 3), elements=st.floats(width=32, allow_nan=False, allow_infinity=False))
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "vectors.vec")
        try:
            WordVectors(words, rows).save(path)
        except InputError:
            assert any(not word or any(map(str.isspace, word)) or not word.isprintable() for word in words)
            return
        found = read_word_vectors(path)
    assert list(found.words) == ["_".join(re.split("[ \t\r\n]+", word)) for word in words]
    np.testing.assert_array_equal(found.vectors, rows)


@given(
    st.lists(
        st.one_of(
            st.builds(lambda topics: {"merge": topics}, st.lists(st.integers(0, 99), unique=True, min_size=1)),
            st.builds(lambda topic, name: {"rename": {topic: name}}, st.integers(0, 99), ANY),
            st.builds(lambda number: {"reduce_to": number}, st.integers(2)),
        )
    )
)
def test_edits_come_back(edits):
    try:
        edits = checked_edits(edits)
    except InputError as error:
        assert "is empty" in str(error) or "at most" in str(error)  # noqa: PT017
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "edits.yaml")
        write_edits(path, edits, "fingerprint")
        assert read_edits(path).edits == edits
