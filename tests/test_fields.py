"""The fields of documents: read in many forms, each of one type and length, saved, and subset with the rows."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal

import numpy as np
import pytest

from topicloom.corpus import Corpus
from topicloom.corpus.fields import Categories, Fields, parse_times
from topicloom.errors import CorpusFileError, InputError
from topicloom.files import write_manifest

TEXTS = ["the cat sat", "dog and cat", "", "mouse and dog"]
OPEN = {"min_df": 1, "max_df": 1.0}
VECTORS = np.arange(12, dtype=np.float32).reshape(4, 3)


def full() -> Corpus:
    return Corpus.from_texts(
        TEXTS,
        **OPEN,
        ids=["a", "b", "c", "d"],
        labels=["x", None, float("nan"), "y"],
        timestamps=["2021", "2021-05-03T10:00:00+02:00", None, "2021年5月3日"],
        vectors=VECTORS,
        covariates={"price": [1, None, 2.5, 3], "source": ["web", "print", None, "web"]},
    )


@pytest.mark.parametrize("mmap", [True, False])
def test_fields_are_saved_and_loaded(tmp_path, mmap):
    corpus = full()
    corpus.save(tmp_path / "corpus")
    loaded = Corpus.load(tmp_path / "corpus", mmap=mmap)
    for one in (corpus, loaded):
        assert one.ids == ["a", "b", "c", "d"]
        assert one.labels == ["x", "", "", "y"]
        assert [str(time)[:13] for time in one.times] == ["2021-01-01T00", "2021-05-03T08", "NaT", "2021-05-03T00"]
        np.testing.assert_array_equal(one.vectors, VECTORS)
        np.testing.assert_array_equal(one.covariates["price"], [1, np.nan, 2.5, 3])
        source = one.covariates["source"]
        assert isinstance(source, Categories)
        assert source.values() == ["web", "print", None, "web"]
    assert loaded.digest == corpus.digest


def test_a_subset_takes_its_fields_along(tmp_path):
    full().save(tmp_path / "corpus")
    for corpus in (full(), Corpus.load(tmp_path / "corpus")):
        part = corpus[[3, 0]]
        assert (part.ids, part.labels, list(part.texts)) == (["d", "a"], ["y", "x"], [TEXTS[3], TEXTS[0]])
        np.testing.assert_array_equal(part.vectors, VECTORS[[3, 0]])
        assert part.covariates["source"].values() == ["web", "web"]
        assert part.times[1] == np.datetime64("2021-01-01")


def test_fields_as_numbers():
    fields = full().fields
    assert fields.array("vectors").shape == (4, 3)
    assert fields.array("times")[0] == (np.datetime64("2021-01-01") - np.datetime64("1970-01-01")).astype(int)
    assert fields.array("source").tolist() == [1, 0, -1, 1]
    assert np.isnan(fields.array("price")[1])
    with pytest.raises(InputError, match="the field 'length'"):
        fields.array("length")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ids": ["a"]}, "1 ids and 4 documents"),
        ({"labels": list("abcde")}, "5 labels and 4 documents"),
        ({"timestamps": ["2021"]}, "1 timestamps and 4 documents"),
        ({"timestamps": ["2021", "soon", "", ""]}, "timestamp of document 1 is 'soon', which cannot be read as a date"),
        ({"timestamps": ["03/04/2024", "", "", ""]}, "is '03/04/2024', which may begin with the day or with the month"),
        ({"timestamps": ["01.12.2024 10:00", "", "", ""]}, "write the year first, as 2021-05-03"),
        ({"vectors": VECTORS[:2]}, "2 vectors and 4 documents"),
        ({"vectors": VECTORS[0]}, r"`vectors` has shape \(3,\)"),
        ({"vectors": VECTORS * [1, np.nan, 1]}, "vector of document 0 contains a number that is not finite"),
        ({"covariates": {"price": [1, 2]}}, "2 values of 'price' and 4 documents"),
        ({"covariates": {"tags": [["a"], ["b"], [], []]}}, "'tags' contains a list"),
        ({"covariates": {"tags": list(VECTORS)}}, "'tags' contains a list"),  # an array is not a missing value
        ({"covariates": {"price": 3}}, "the covariate 'price' is 3; give a list"),
        ({"covariates": [1, 2]}, r'`covariates` is a list; give a dictionary such as \{"price"'),
        ({"ids": 3}, "`ids` is 3; give a list"),
        ({"timestamps": "2021"}, "`timestamps` is '2021'; give a list"),
        ({"vectors": [[1, 2], [3], [4], [5]]}, "the vector of document 1 has 1 number, and that of document 0 has 2"),
    ],
)
def test_fields_that_cannot_be_used(given, message):
    with pytest.raises(InputError, match=message):
        Corpus.from_texts(TEXTS, **OPEN, **given)


def test_times_in_many_forms():
    given = [
        "2021-05-03", "2021/5/3", "20210503", "2021年5月3日", datetime.date(2021, 5, 3), datetime.datetime(2021, 5, 3),
        np.datetime64("2021-05-03"), 1620000000, "1620000000000", "Mon, 03 May 2021 00:00:00 GMT",
    ]  # fmt: skip
    days = parse_times(given).astype("datetime64[D]")
    assert set(days.tolist()) == {datetime.date(2021, 5, 3)}
    assert parse_times(["2021/5/3 10:20:30", "2021.5.3 10:20", 1620037230.5, 1620037230500]).tolist() == [
        datetime.datetime(2021, 5, 3, 10, 20, 30), datetime.datetime(2021, 5, 3, 10, 20),
        *[datetime.datetime(2021, 5, 3, 10, 20, 30, 500_000)] * 2,
    ]  # fmt: skip
    assert [str(day)[:7] for day in parse_times(["2021", 2021, "2021-12", "2021年12月", "1850"])] == [
        "2021-01", "2021-01", "2021-12", "2021-12", "1850-01",
    ]  # fmt: skip
    assert np.isnat(parse_times([None, "", " ", float("nan"), np.datetime64("NaT")])).all()
    assert parse_times([20210503, 20210503.0]).astype("datetime64[D]").tolist() == [datetime.date(2021, 5, 3)] * 2
    with pytest.raises(InputError, match="timestamp of document 0 is 20211332"):
        parse_times([20211332])


MARKS = ["N/A", "n/a", "NA", "null", "NULL", "None", "none", "-", "nan", "NaN", "#N/A", "", " "]


def test_marks_of_missing_values(caplog):
    assert np.isnat(parse_times([*MARKS, "NaT"])).all()
    given = [1.5, *MARKS, "2"]
    texts = ["the cat sat"] * len(given)
    covariates = {
        "price": given,
        "code": ["7", *MARKS, "8"],
        "country": ["DE", "NA", "", " ", *["FR"] * (len(given) - 4)],
    }
    corpus = Corpus.from_texts(texts, **OPEN, labels=given, covariates=covariates)
    n_marks = len(MARKS)
    np.testing.assert_array_equal(corpus.covariates["price"], [1.5, *[np.nan] * n_marks, 2])
    assert corpus.labels == ["1.5", *[""] * n_marks, "2"]
    assert corpus.with_labels(["1", *MARKS, "2"]).labels == ["1", *[""] * n_marks, "2"]
    assert corpus.covariates["code"].values() == ["7", *[None] * n_marks, "8"]  # strings are categories
    assert corpus.covariates["country"].names == ("DE", "FR", "NA")  # among words, a mark is a word
    assert corpus.covariates["country"].values()[:4] == ["DE", "NA", None, None]  # but an empty cell is not
    assert corpus.with_labels(["DE", *MARKS, "FR"]).labels == ["DE", *MARKS, "FR"]
    assert caplog.messages == [
        "the covariate 'code' is taken as a category, because its numbers are strings, such as '7' in document 0; "
        "convert the column if it should hold numbers"
    ]


def test_a_word_among_numbers_makes_a_category_and_is_reported(caplog):
    corpus = Corpus.from_texts(TEXTS, **OPEN, covariates={"price": [1, "N/A", "cheap", 2], "word": list("xyzx")})
    assert corpus.covariates["price"].names == ("1", "2", "N/A", "cheap")
    assert caplog.messages[:-1] == [  # the last one is about the empty document
        "the covariate 'price' is taken as a category although it has numbers, because it is 'cheap' in document 2; "
        "correct this value if the column should hold numbers"
    ]


@pytest.mark.parametrize(
    ("ids", "says"),
    [
        (list("aaba"), "the id 'a' occurs 3 times; give each document an id of its own"),
        (list("abab"), "the id 'a' occurs 2 times, 1 other id is repeated; give"),
        (["a", None, "b", ""], "2 documents have an empty id; give"),
        (["a", "a", "b", ""], "the id 'a' occurs 2 times, 1 document has an empty id; give"),
        (list("abcd"), None),
        (None, None),
    ],
)
def test_ids_that_are_repeated_or_empty(tmp_path, caplog, ids, says):
    Corpus.from_texts(["the cat sat"] * 4, **OPEN, ids=ids)
    Corpus.from_counts(np.ones((4, 2)), ids=ids)
    rows = "".join(f"{id or ''},the cat sat\n" for id in ids or [])
    if ids:
        (tmp_path / "a.csv").write_text(f"id,text\n{rows}", encoding="utf-8")
        Corpus.from_file(tmp_path / "a.csv", **OPEN)
    assert len(caplog.messages) == (3 if says else 0)
    assert all(message.startswith(says) for message in caplog.messages)


def test_missing_values_of_pandas():
    pandas = pytest.importorskip("pandas")
    assert np.isnat(parse_times(pandas.array(["2021", pandas.NA], "string"))).tolist() == [False, True]
    text = pandas.array(["the cat sat", pandas.NA], "string")
    frame = pandas.DataFrame({"text": text, "label": text, "timestamp": pandas.array([2021, pandas.NA], "Int64")})
    corpus = Corpus.from_frame(frame, **OPEN)
    assert (list(corpus.texts), corpus.labels) == (["the cat sat", ""], ["the cat sat", ""])
    assert np.isnat(corpus.times).tolist() == [False, True]


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_from_frame(library):
    module = pytest.importorskip(library)
    columns = {
        "body": ["the cat sat", None, "dog and cat"],
        "label": ["x", "y", None],
        "when": [datetime.datetime(2021, 5, 3), None, datetime.datetime(2022, 1, 1)],
        "price": [1.5, None, 2.0],
        "source": ["web", "print", None],
    }
    frame = module.table(columns) if library == "pyarrow" else module.DataFrame(columns)
    corpus = Corpus.from_frame(frame, "body", timestamp="when", covariates=["price", "source"], **OPEN)
    assert list(corpus.texts) == ["the cat sat", "", "dog and cat"]
    assert corpus.labels == ["x", "y", ""]
    assert [str(time)[:10] for time in corpus.times] == ["2021-05-03", "NaT", "2022-01-01"]
    assert corpus.covariates["source"].values() == ["web", "print", None]
    np.testing.assert_array_equal(corpus.covariates["price"], [1.5, np.nan, 2.0])
    with pytest.raises(InputError, match="no column 'bodi' for `text`; did you mean body"):
        Corpus.from_frame(frame, "bodi")
    with pytest.raises(InputError, match=r"contains 1\.5 in row 0, which is not a text"):
        Corpus.from_frame(frame, "price")
    with pytest.raises(InputError, match=r"`covariates` should be a list of columns; give \['price'\]"):
        Corpus.from_frame(frame, "body", covariates="price")
    with pytest.raises(InputError, match=r"use Corpus\.from_frame"):
        Corpus.from_texts(frame)


def test_options_of_from_frame_are_those_of_from_texts():
    frame = pytest.importorskip("pandas").DataFrame({"text": TEXTS})
    with pytest.raises(TypeError, match=r"Corpus.from_frame has no argument 'lang'; did you mean language"):
        Corpus.from_frame(frame, lang="zh")
    with pytest.raises(TypeError, match=r"Corpus.from_frame has no argument 'texts'"):
        Corpus.from_frame(frame, texts=TEXTS)


def test_vectors_of_half_precision_stay_as_they_are(tmp_path):
    half = VECTORS.astype(np.float16)
    corpus = Corpus.from_counts(np.eye(4), vectors=half)
    corpus.save(tmp_path / "corpus")
    for found in (corpus, Corpus.load(tmp_path / "corpus")):
        assert found.vectors.dtype == np.float16
        assert found.vectors.tobytes() == half.tobytes()
        assert found[[2, 0]].vectors.tolist() == half[[2, 0]].tolist()
    assert Corpus.concatenate([corpus, corpus]).vectors.tolist() == np.r_[half, half].tolist()


def test_a_zero_vector_stands_for_none(caplog):
    Corpus.from_counts(np.eye(4), vectors=VECTORS * [[1], [0], [1], [0]])
    assert "the vectors of 2 documents are zero, which stands for no vector; the first is that" in caplog.text
    assert "document 1" in caplog.text


def test_a_column_of_lists_gives_vectors():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": TEXTS, "v": VECTORS.tolist(), "w": [[1.0], None, [2.0], [3.0]]})
    corpus = Corpus.from_frame(frame, vectors="v", **OPEN)
    np.testing.assert_array_equal(corpus.vectors, VECTORS)
    assert corpus.vectors.dtype == np.float32
    with pytest.raises(InputError, match="the vector of document 1 is None, and that of document 0 has 1"):
        Corpus.from_frame(frame, vectors="w", **OPEN)


@pytest.mark.parametrize(
    "made",
    [
        lambda torch: torch.tensor(VECTORS, requires_grad=True),
        lambda torch: torch.tensor(VECTORS).bfloat16(),
        lambda torch: [torch.tensor(row, requires_grad=True) for row in VECTORS],
        lambda torch: [torch.tensor(row).bfloat16() for row in VECTORS],
        lambda torch: pytest.importorskip("pandas").Series(list(VECTORS)),
    ],
)
def test_tensors_and_columns_of_arrays_are_vectors(made):
    found = Fields.of(4, vectors=made(pytest.importorskip("torch"))).vectors
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, VECTORS)  # bfloat16 holds whole numbers up to 256


def test_tensors_without_numbers_are_refused():
    torch = pytest.importorskip("torch")
    for tensor in (torch.tensor(VECTORS).to_sparse(), torch.tensor(VECTORS, device="meta")):
        with pytest.raises(InputError, match=r"`vectors` cannot be read; give an \(n_docs, E\) array"):
            Fields.of(4, vectors=tensor)


def test_times_are_no_vectors():
    for given in (np.zeros((4, 3), "M8[D]"), np.ones((4, 3), "m8[s]"), VECTORS + 1j):
        with pytest.raises(InputError, match="`vectors` cannot be read"):
            Fields.of(4, vectors=given)


def test_null_of_arrow_is_missing():
    arrow = pytest.importorskip("pyarrow")
    words, numbers = arrow.array(["a", None, "c"]), arrow.chunked_array([[1, None], [3]])
    days = arrow.array([datetime.date(2021, 5, 3), None, datetime.date(2022, 5, 3)])
    found = Fields.of(3, ids=numbers, labels=words, timestamps=days, covariates={"word": words, "number": numbers})
    assert (list(found.ids), list(found.labels)) == (["1", "", "3"], ["a", "", "c"])
    assert list(found.covariates["word"]) == ["a", None, "c"]
    np.testing.assert_array_equal(found.covariates["number"], [1, np.nan, 3])
    np.testing.assert_array_equal(found.times, np.array(["2021-05-03", "NaT", "2022-05-03"], "M8[us]"))


def test_what_a_mask_hides_is_missing():
    def hidden(values: list) -> np.ma.MaskedArray:
        return np.ma.array(values, mask=[False, True, False])

    found = Fields.of(
        3, ids=hidden([7, 8, 9]), labels=hidden(["a", "b", "c"]), covariates={"price": hidden([1.5, 2.5, 3.5])},
        timestamps=hidden(np.array(["2001", "2002", "2003"], "M8[Y]")),
    )  # fmt: skip
    assert (list(found.ids), list(found.labels)) == (["7", "", "9"], ["a", "", "c"])
    assert np.isnat(found.times).tolist() == np.isnan(found.covariates["price"]).tolist() == [False, True, False]
    for given in ({"vectors": np.ma.masked_greater(VECTORS, 10)}, {"vectors": np.ma.masked_equal(np.eye(4), 1)}):
        with pytest.raises(InputError, match=r"vector of document [03] contains a number that is not finite"):
            Fields.of(4, **given)
    with pytest.raises(InputError, match="the count in row 1, column 0 is nan"):
        Corpus.from_counts(np.ma.masked_equal([[1, 2], [3, 4]], 3))


def test_no_other_thing_is_a_frame():
    with pytest.raises(InputError, match="list cannot be read"):
        Corpus.from_frame([1, 2])


def test_classes_of_svmlight_are_whole_numbers(tmp_path):
    from sklearn.datasets import dump_svmlight_file, load_svmlight_file

    dump_svmlight_file(np.eye(4), [2, 10, 2.5, -1], str(tmp_path / "a.svm"))
    counts, classes = load_svmlight_file(str(tmp_path / "a.svm"))
    written = [line.split()[0] for line in (tmp_path / "a.svm").read_text().splitlines()]
    assert Corpus.from_counts(counts, labels=classes).labels == written == ["2", "10", "2.5", "-1"]
    single = Corpus.from_counts(counts, labels=classes.astype(np.float32), ids=[1.0, 2.0, np.nan, 1e20])
    assert (single.labels, single.ids) == (written, ["1", "2", "", "1e+20"])


def test_labels_can_be_replaced():
    corpus = full()
    again = corpus.with_labels([1, 2, None, 4])
    assert (again.labels, corpus.labels) == (["1", "2", "", "4"], ["x", "", "", "y"])
    assert again.ids == corpus.ids
    assert again.vocabulary == corpus.vocabulary
    with pytest.raises(InputError, match="there are 1 labels and 4 documents"):
        corpus.with_labels(["x"])


def test_the_order_of_words_is_that_of_texts_or_tokens():
    tokens = [["b", "a", "zz"], ["a"]]
    texts = [" ".join(words) for words in tokens]
    for documents, tokenizer in ((texts, str.split), (tokens, None)):
        corpus = Corpus.from_texts(documents, **OPEN, tokenizer=tokenizer, max_features=2)
        assert corpus.has_order
        assert corpus.vocabulary == ["a", "b"]
        assert [list(words) for words in corpus.tokens()] == tokens
        assert [list(words) for words in corpus[[1, 0]].tokens()] == tokens[::-1]
    for corpus in (Corpus.from_counts([[1, 2]]), Corpus.from_texts(tokens, **OPEN, keep_texts=False)):
        assert not corpus.has_order
        with pytest.raises(InputError, match="the order of the words is not known"):
            corpus.tokens()
        with pytest.raises(InputError, match="the order of words is not known"):
            corpus.reference(ordered=True)
        assert corpus.reference() is corpus.reference()


def damage(folder, **changes):
    """Change corpus.json, given by the name "about", or the arrays of other names; the checksums fit."""
    path = folder / "corpus.json"
    for name, change in changes.items():
        if name != "about":
            np.save(folder / f"{name.replace('_', '-')}.npy", change)
    about = json.loads(path.read_text()) | changes.get("about", {})
    write_manifest(path, about, about["sha256"].keys() - {"corpus.json"})


WRONG = [
    *({"about": {name: value}} for name in ("n_docs", "fields", "covariates", "settings", "tokenizer")
      for value in (None, "x", [3])),
    {"about": {"covariates": [{"name": ["price"], "categories": None}]}},
    {"about": {"covariates": [{"name": "price", "categories": 3}]}},
    *({name: np.array(["a", "b", "c", "d"])} for name in ("times", "vectors", "covariate_0", "covariate_1")),
    *({name: np.zeros((4, 2, 2))} for name in ("times", "vectors", "covariate_0", "covariate_1")),
]  # fmt: skip


@pytest.mark.parametrize("changes", WRONG)
def test_fields_on_disk_that_are_damaged(tmp_path, changes):
    full().save(tmp_path / "corpus")
    damage(tmp_path / "corpus", **changes)
    with pytest.raises(CorpusFileError, match="is damaged"):
        Corpus.load(tmp_path / "corpus")


@pytest.mark.parametrize("field", ["ids", "labels", "timestamps", "covariates"])
@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"2001": "w", "2002": "x", "2003": "y", "2004": "z"}, "is a mapping; give a list with one value"),
        ({"2001", "2002", "2003", "2004"}, "is a set, which has no order; give a list with one value"),
        ("2001", "is '2001'; give a list with one value"),
        (np.array([["2001"]] * 4), r"has shape \(4, 1\); give a list with one value"),
    ],
)
def test_a_column_says_which_value_each_document_has(field, values, says):
    given = {"covariates": {"price": values}} if field == "covariates" else {field: values}
    if isinstance(values, str) and field in ("ids", "labels"):
        assert list(getattr(Corpus.from_texts(TEXTS, **OPEN, **given), field)) == list(values)
        return
    with pytest.raises(InputError, match=says):
        Corpus.from_texts(TEXTS, **OPEN, **given)


def test_categories_are_indexed_and_compared_like_a_list():
    pandas, given = pytest.importorskip("pandas"), ["b", "a", None, "b"]
    corpus = Corpus.from_counts(np.eye(4), covariates={"who": given})
    who, objects = corpus.covariates["who"], np.array(given, object)
    assert (list(who), len(who), [who[row] for row in range(-4, 4)]) == (given, 4, given * 2)
    for rows in (np.array([True, False, True, False]), slice(1, None), slice(None, None, -1), [3, 0], [], [[2]][0]):
        assert list(who[rows]) == objects[rows].tolist()
        assert list(who[rows]) == list(corpus.fields.take(np.arange(4)[rows]).covariates["who"])
    for other in ("a", "nobody", None, 3, ["b", "x", None, "b"], objects, who):
        np.testing.assert_array_equal(who == other, objects == other)
        np.testing.assert_array_equal(who != other, objects != other)
    np.testing.assert_array_equal(np.asarray(who), objects)
    assert np.array(who).shape == (4,)
    assert pandas.isna(pandas.DataFrame({"who": who}).who).tolist() == [False, False, True, False]
    assert pandas.Series(who).dropna().tolist() == ["b", "a", "b"]
    for error, wrong in [(IndexError, 4), (IndexError, np.zeros((4, 4), int)), (IndexError, "b"), (IndexError, 1.5)]:
        with pytest.raises(error):
            who[wrong]
    with pytest.raises(InputError, match=r"^4 categories cannot be compared with values of shape \(1,\)$"):
        _ = who == ["b"]
    assert Corpus.from_counts(np.eye(4), covariates={"who": list(who)}).covariates["who"].names == who.names


@pytest.mark.parametrize("given", [{"ids": [b"a", b"b"]}, {"labels": np.array(["a", "b"], "S")},
                                   {"covariates": {"shop": ["a", b"b"]}}])  # fmt: skip
def test_bytes_are_no_strings(given):
    with pytest.raises(InputError, match=r"of document [01] is .*b'[ab]'.*, which is bytes; decode it"):
        Fields.of(2, **given)


@pytest.mark.parametrize("value", [["a", "b"], ("a",), {"a": 1}, np.array(["a"]), {"a"}])
def test_lists_are_no_strings(value):
    for name in ("ids", "labels"):
        with pytest.raises(InputError, match=rf"the {name[:-1]} of document 1 is .*, which is not one value; give a"):
            Fields.of(2, **{name: ["a", value]})


def test_decimals_are_numbers():
    prices = [Decimal("1.50"), None, Decimal("2.25")]
    found = Fields.of(3, covariates={"price": prices}).covariates["price"]
    np.testing.assert_array_equal(found, [1.5, np.nan, 2.25])
    codes = Fields.of(2, covariates={"code": [Decimal(2**53 + 1), Decimal(3)]}).covariates["code"]
    assert list(codes) == ["9007199254740993", "3"]  # float64 cannot hold the first
