"""What other programs take, tables in every form, and vectors of words and topics."""

from __future__ import annotations

import csv
import gc
import io
import json
import math
import re
import sys
import zipfile
from dataclasses import replace
from datetime import date
from pathlib import Path

import joblib
import numpy as np
import openpyxl
import pyarrow.parquet
import pytest
import scipy.sparse as sp

import topicloom as tl
from topicloom.corpus import Corpus
from topicloom.errors import InputError, MissingExtraError, SettingError
from topicloom.text import read
from topicloom.topics.export import document_coordinates, pyldavis_data, unique_names
from topicloom.topics.hierarchy import distributional_vectors, free_names, nearest_of
from topicloom.topics.table import Table, describe, write_documents, write_topics

HOSTILE = '<script>alert("1")</script> & 50 % | $x_1$ #{a}~^\\ 中文'
TEXTS = [
    "the cat sat on the mat with another cat", "a dog and a cat are friends",
    "stocks fell as the bank cut rates", "the bank raised rates and stocks rose",
] * 8  # fmt: skip


@pytest.fixture(scope="module")
def view() -> tl.Topics:
    texts = [*TEXTS, "", "zebra", f"cat {HOSTILE}"]
    corpus = Corpus.from_texts(
        texts,
        language="en",
        min_df=4,
        max_df=1.0,
        labels=["pets", "pets", "money", "money"] * 8 + ["", "", "pets"],
        timestamps=[f"2024-0{1 + n % 4}-01" for n in range(32)] + [None, "2024-05-01", "2024-05-01"],
    )
    return tl.Topics(tl.ETM(n_topics=3, embedding_size=8, epochs=5, random_state=0).fit(corpus), corpus)


@pytest.fixture(scope="module")
def plain(view: tl.Topics) -> tl.Topics:
    """A view of a model without an embedding, whose documents have neither texts nor fields."""
    counts = Corpus.from_counts(view.corpus.counts, view.vocabulary)
    return tl.Topics(tl.GSM(n_topics=3, epochs=5, random_state=0).fit(counts), counts)


def table() -> Table:
    return Table(
        {
            "name": [HOSTILE, "plain"],
            "share": [0.25, None],
            "documents": [3, 4],
            "words": [["a", "b|c"], []],
            "start": [date(2024, 5, 1), None],
        },
        "A <b>title</b>",
    )


def test_a_table_gives_columns_rows_and_slices():
    letters = Table({"n": [1, 2, 3], "letter": ["a", "b", "c"]}, "Letters", decimals=1)
    assert letters["n"] == [1, 2, 3]
    assert letters[-1] == {"n": 3, "letter": "c"}
    assert list(letters) == [letters[0], letters[1], letters[2]]
    part = letters[1:]
    assert (list(part), part.title, part.decimals) == ([letters[1], letters[2]], "Letters", 1)
    with pytest.raises(IndexError, match="has 3 rows, and no row 3"):
        letters[3]
    with pytest.raises(KeyError, match="no column 'm'; its columns are n, letter"):
        letters["m"]
    with pytest.raises(TypeError, match="columns by name, and rows by number or slice"):
        letters[1.5]


def test_a_table_as_frames():
    frame = table().to_pandas()
    assert list(frame.columns) == ["name", "share", "documents", "words", "start"]
    assert frame["name"][0] == HOSTILE
    assert np.isnan(frame["share"][1])
    arrow = table().to_arrow()
    assert arrow.column("words").to_pylist() == [["a", "b|c"], []]
    assert arrow.column("share").to_pylist() == [0.25, None]
    assert list(Table.of_frame(frame).columns) == list(frame.columns)
    assert list(table().rows())[1]["documents"] == 4


def test_markdown_escapes():
    head, rule, first, second = table().to_markdown().splitlines()
    assert head == "| name | share | documents | words | start |"
    assert rule == "| --- | ---: | ---: | --- | --- |"
    assert "&lt;script&gt;" in first
    assert "<" not in first
    assert "\\|" in first
    assert first.replace("\\|", "").count("|") == second.count("|") == 6
    assert "2024-05-01" in first
    prices = Table({"$K$": [2], "text": ["the $K$-theory"]}, caption="Shares by a_b in $ for each $K$")
    assert prices.to_markdown() == (
        "Table: Shares by a\\_b in $ for each K\n\n| K | text |\n| ---: | --- |\n| 2 | the $K$-theory |\n"
    )


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.csv", "a.xlsx"])
def test_numbers_that_are_not_finite_stay_readable(name, tmp_path):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    path = tmp_path / name
    Table({"n": [math.inf, -math.inf, np.float64("inf"), math.nan, 1.5]}).save(path)
    text = "" if name == "a.xlsx" else path.read_text(encoding="utf-8")
    if name == "a.xlsx":
        found = [cell.value for cell in openpyxl.load_workbook(path).active["A"][1:]]
    elif name == "a.csv":
        found = [row["n"] or None for row in csv.DictReader(io.StringIO(text))]
    else:
        lines = [text] if name == "a.json" else text.splitlines()
        rows = [json.loads(line, parse_constant=refuse) for line in lines]
        found = [row["n"] for row in (rows[0] if name == "a.json" else rows)]
    assert found[:3] == ["inf", "-inf", "inf"]
    assert [value and float(value) for value in found[-1:]] == [1.5]


def test_latex_escapes():
    text = table().to_latex(caption="50 % of $x", label="tab:x")
    assert r"\begin{tabular}{lrrll}" in text
    assert r"\textless{}script\textgreater{}" in text
    assert r"\& 50 \% \textbar{} \$x\_1\$ \#\{a\}\textasciitilde{}\textasciicircum{}\textbackslash{} 中文" in text
    assert r"\caption{50 \% of \$x}" in text
    assert r"\label{tab:x}" in text
    for label in ("tab:x}", "\\tab", "50%", "a\nb"):
        with pytest.raises(SettingError, match="which LaTeX does not take"):
            table().to_latex(label=label)
    body = table().to_latex()
    assert body.startswith(r"\begin{tabular}")
    assert all(line.count("&") - line.count(r"\&") == 4 for line in body.splitlines() if line.endswith(r"\\"))


def test_html_escapes():
    html = table()._repr_html_()
    assert "<script" not in html
    assert "<b>title" not in html
    assert "&lt;script&gt;" in html


@pytest.mark.parametrize("kind", [".csv", ".tsv", ".json", ".jsonl", ".parquet", ".xlsx", ".tex", ".md", ".html"])
def test_a_table_as_a_file(tmp_path, kind):
    file = tmp_path / f"table{kind}"
    table().save(file)
    if kind in (".csv", ".tsv"):
        with file.open(encoding="utf-8", newline="") as text:
            rows = list(csv.DictReader(text, delimiter="," if kind == ".csv" else "\t"))
        assert rows[0] == {"name": HOSTILE, "share": "0.25", "documents": "3", "words": "a b|c", "start": "2024-05-01"}
        assert rows[1]["share"] == ""
    elif kind == ".json":
        assert json.loads(file.read_text("utf-8")) == table().to_dicts()
    elif kind == ".jsonl":
        assert [json.loads(line) for line in file.read_text("utf-8").splitlines()] == table().to_dicts()
    elif kind == ".parquet":
        assert pyarrow.parquet.read_table(file).column("name").to_pylist()[0] == HOSTILE
    elif kind == ".xlsx":
        sheet = openpyxl.load_workbook(file).active
        assert sheet["A2"].value == HOSTILE
        assert sheet["D2"].value == "a b|c"
    else:
        assert "<script>" not in file.read_text("utf-8")


def test_files_that_cannot_be_written(tmp_path):
    with pytest.raises(InputError, match=r"should end in one of \.csv"):
        table().save(tmp_path / "table.doc")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no file that is always full")
def test_excel_on_a_full_disk_raises_one_error(monkeypatch):
    unheard = []  # errors that Python prints while it removes an object
    monkeypatch.setattr(sys, "unraisablehook", unheard.append)
    with pytest.raises(OSError, match="No space left"):
        Table({"n": [1, 2]})._write_excel(Path("/dev/full"))
    gc.collect()
    assert unheard == []


@pytest.mark.parametrize(("kind", "missing"), [(".parquet", "pyarrow"), (".xlsx", "openpyxl")])
def test_a_file_that_needs_an_extra(tmp_path, monkeypatch, kind, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtraError, match=rf"needs {missing}: pip install 'topicloom\[io\]'"):
        table().save(tmp_path / f"table{kind}")
    assert list(tmp_path.iterdir()) == []


FORMULAS = ["=1+1", "+1", "-2+3", "@SUM(A1)", "\t=1", " \r\n=cmd|' /C calc'!A0", "＝1+1", "\x00=1"]
HARMLESS = ["", "cat", "a=b", "'=1", "3-4", "中文", "\u202e", "e@x.org"]


def test_a_spreadsheet_finds_no_formula(tmp_path):
    texts = [*FORMULAS, *HARMLESS]
    odd = Table({"=HYPERLINK(1)": texts, "share": [-0.5] * len(texts)})
    for name, excel in (("plain.csv", False), ("excel.csv", True), ("excel.tsv", True), ("excel.xlsx", False)):
        odd.save(tmp_path / name, excel=excel)
    with pytest.raises(InputError, match=r"`excel` is for .csv and .tsv files; leave it out for .*a\.json"):
        odd.save(tmp_path / "a.json", excel=True)

    def rows(name: str) -> list[list[str]]:
        with (tmp_path / name).open(encoding="utf-8", newline="") as file:
            return list(csv.reader(file, delimiter="\t" if name.endswith(".tsv") else ","))

    assert rows("plain.csv") == [["=HYPERLINK(1)", "share"], *([text, "-0.5"] for text in texts)]
    expected = [["\ufeff'=HYPERLINK(1)", "share"], *([f"'{text}", "-0.5"] for text in FORMULAS)]
    assert rows("excel.csv") == rows("excel.tsv") == [*expected, *([text, "-0.5"] for text in HARMLESS)]
    sheet = openpyxl.load_workbook(tmp_path / "excel.xlsx").active
    assert [cell.data_type for cell in sheet["A"] if cell.value] == ["s"] * (len(texts))
    assert sheet["A2"].value == "=1+1"


def test_tables_of_documents_have_no_formula(tmp_path):
    texts = [*FORMULAS, "cat dog"]
    ids = [f"{text} {n}" for n, text in enumerate(texts)]
    corpus = tl.Corpus.from_counts(np.ones((9, 2), int), ["=cat", "@dog"], ids=ids, labels=texts, texts=texts)
    named = tl.GSM(2, epochs=1, random_state=0).fit(corpus).rename({0: "=1+1"})
    write_documents(tmp_path / "d.csv", [named.infer(corpus)], named, excel=True)
    write_topics(tmp_path / "t.csv", describe(named, None, 3), named.infer(corpus), excel=True)
    for name in ("d.csv", "t.csv"):
        with (tmp_path / name).open(encoding="utf-8-sig", newline="") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        texts = [cell for cell in cells if not re.fullmatch(r"-?[0-9.e-]+", cell)]
        assert not [text for text in texts if text.lstrip()[:1] in set("=+-@＝\x00") and text]
        assert "'=1+1" in texts


def test_the_table_of_documents_is_what_csv_would_write(tmp_path):
    texts = ["", 'say "cat, dog"', "line\nbreak cat", "cat\r\ndog", "=dog"] * 4
    corpus = tl.Corpus.from_counts(
        np.arange(40).reshape(20, 2) % 7, ["cat", "dog"], ids=[f"{n};" for n in range(20)], texts=texts
    )
    model = tl.GSM(2, epochs=1, random_state=0).fit(corpus)
    found = model.infer(corpus)
    found = replace(found, theta=np.array([[1, 0], [1e-5, 0.99999], [1 / 3, 2 / 3], [4e-7, 1]] * 5, np.float32))
    words = [" ".join(topic) for topic in model.topics(5, written=True)]
    shares = found.theta.astype(np.float64).round(6).tolist()
    expected = io.StringIO()
    writer = csv.writer(expected, lineterminator="\n")
    writer.writerow(["id", "topic", "topic_words", "topic_0", "topic_1", "text"])
    for id, topic, row, text in zip(corpus.ids, found.main_topics, shares, texts, strict=True):
        writer.writerow([id, topic, "" if topic is None else words[topic], *row, text])
    with (tmp_path / "d.csv").open("w+", encoding="utf-8", newline="") as file:
        write_documents(file, [found[:7], found[7:]], model)
        file.seek(0)
        assert file.read() == expected.getvalue()


def test_a_table_without_rows(tmp_path):
    empty = Table.of([], columns=("a", "b"))
    assert (len(empty), empty.to_dicts(), repr(empty)) == (0, [], "a  b")
    for kind in (".csv", ".parquet", ".tex", ".md", ".html", ".xlsx"):
        empty.save(tmp_path / f"empty{kind}")


def test_pyldavis_counts_many_tokens_exactly():
    n_docs, count = 40, 1_000_001  # float32 holds each count, and not their sum
    corpus = Corpus.from_counts(np.full((n_docs, 2), [[count, 1]]), ["often", "once"])
    data = pyldavis_data(np.full((2, 2), 0.5), corpus.vocabulary, corpus, np.full((n_docs, 2), 0.5))
    assert data["term_frequency"].tolist() == [n_docs * count, n_docs]


def test_pyldavis(view):
    data = view.to_pyldavis()
    n_known = len(view.corpus) - 2
    assert data["doc_topic_dists"].shape == (n_known, 3)
    assert data["doc_lengths"].tolist() == view.corpus.counts.sum(axis=1)[~view.corpus.is_empty].tolist()
    assert (data["doc_lengths"] > 0).all()
    np.testing.assert_allclose(data["topic_term_dists"].sum(axis=1), 1)
    np.testing.assert_allclose(data["topic_term_dists"], view.components, rtol=1e-4)
    np.testing.assert_allclose(data["doc_topic_dists"].sum(axis=1), 1)
    np.testing.assert_allclose(data["doc_topic_dists"], view.documents.theta[~view.corpus.is_empty], rtol=1e-4)
    assert data["term_frequency"].tolist() == view.corpus.counts.sum(axis=0).tolist()
    assert data["vocab"] == view.vocabulary
    assert (data["sort_topics"], data["start_index"]) == (False, 0)
    nothing = view.corpus[view.corpus.is_empty]
    with pytest.raises(InputError, match="no document has a word"):
        tl.Topics(view.model, nothing).to_pyldavis()


def test_topicwizard(view, plain):
    data = view.to_topicwizard()
    assert data["corpus"] == list(view.corpus.texts)
    np.testing.assert_array_equal(data["document_topic_matrix"], view.documents.theta)
    np.testing.assert_array_equal(data["topic_term_matrix"], view.components)
    assert data["vocab"].tolist() == view.vocabulary
    assert (data["document_term_matrix"] != view.corpus.counts).nnz == 0
    assert isinstance(data["document_term_matrix"], sp.csr_matrix)
    np.testing.assert_allclose(data["transform"](["cat"]), view.model.transform(["cat"]))
    assert data["topic_names"] == view.names
    assert plain.to_topicwizard()["corpus"][0].split() == sorted(
        view.vocabulary[word] for word in view.corpus.counts[[0]].indices
    )


def test_datamapplot(view):
    data = view.to_datamapplot()
    assert data["coordinates"].shape == (35, 2)
    assert np.isfinite(data["coordinates"]).all()
    assert data["labels"][32:34].tolist() == ["Unlabelled"] * 2  # without a known word
    assert data["topics"][:32].tolist() == view.documents.main_topics[:32]
    assert data["labels"][0] == view.names[data["topics"][0]]
    assert data["hover_text"][34] == f"cat {HOSTILE}"
    places = np.random.default_rng(0).random((35, 2))
    np.testing.assert_allclose(view.to_datamapplot(places)["coordinates"], places, rtol=1e-6)
    least = float(np.median(view.documents.theta.max(axis=1)))
    labelled = view.to_datamapplot(places, least_share=least)["topics"] >= 0
    assert labelled.tolist() == ((view.documents.theta.max(axis=1) >= least) & ~view.documents.empty).tolist()
    with pytest.raises(SettingError, match="35 finite pairs"):
        view.to_datamapplot(places[:3])
    with pytest.raises(SettingError, match="tsne or pca"):
        view.to_datamapplot(layout="umap")


@pytest.mark.parametrize("shape", [(0, 3), (1, 3), (3, 3), (6, 1), (6, 2)])
def test_maps_of_few_documents(shape):
    theta = np.random.default_rng(0).dirichlet(np.ones(shape[1]), shape[0]).astype(np.float32)
    places = document_coordinates(theta)
    assert places.shape == (shape[0], 2)
    assert np.isfinite(places).all()


def test_documents_of_one_topic_are_near_each_other():
    theta = np.random.default_rng(0).dirichlet(np.full(3, 0.1), 120)
    places, main = document_coordinates(theta), theta.argmax(axis=1)
    centres = np.stack([places[main == k].mean(axis=0) for k in range(3)])
    nearest = np.linalg.norm(places[:, None] - centres, axis=2).argmin(axis=1)
    assert (nearest == main).mean() > 0.9


def test_files_for_other_programs(view, plain, tmp_path):
    view.save_pyldavis(tmp_path / "v.json")
    read = json.loads((tmp_path / "v.json").read_text("utf-8"))
    np.testing.assert_allclose(read["doc_topic_dists"], view.to_pyldavis()["doc_topic_dists"])
    view.save_topicwizard(tmp_path / "v.joblib")
    file = joblib.load(tmp_path / "v.joblib")
    assert file["document_names"] == list(view.documents.ids)
    assert file["group_labels"][32:] == ["(unknown)", "(unknown)", "pets"]
    assert file["topic_data"]["transform"] is None
    plain.save_topicwizard(tmp_path / "p.joblib")
    assert joblib.load(tmp_path / "p.joblib")["group_labels"] is None
    view.save_datamapplot(tmp_path / "v.npz", layout="pca")
    arrays = np.load(tmp_path / "v.npz")
    assert arrays["hover_text"][34] == f"cat {HOSTILE}"
    assert arrays["labels"][33] == "Unlabelled"


def test_vectors_of_an_etm_are_its_embedding(view, tmp_path):
    words, topics = view.vectors()
    np.testing.assert_array_equal(words, view.model.word_embeddings_)
    np.testing.assert_array_equal(topics, view.model.topic_embeddings_)
    near = view.nearest("cat", 3)
    assert [row["item"] for row in near.rows() if row["kind"] == "word"] == (
        tl.WordVectors(view.vocabulary, words).nearest("cat", 3)
    )
    assert [row["item"] for row in view.nearest(1, 4).rows() if row["kind"] == "word"] == view.model.nearest_words(1, 4)
    view.word_vectors().save(tmp_path / "v.txt")
    read = tl.read_word_vectors(tmp_path / "v.txt")
    np.testing.assert_array_equal(read["topic_2"], topics[2])
    assert len(read) == len(view.vocabulary) + 3
    renamed = view.rename({0: "pets"})
    for found, learned in zip(renamed.vectors(), (words, topics), strict=True):
        np.testing.assert_array_equal(found, learned)
    assert renamed.nearest("cat", 3)["similarity"] == view.nearest("cat", 3)["similarity"]
    assert view.merge([0, 1]).vectors()[0].shape == (len(view.vocabulary), 2)


def test_vectors_of_other_models_are_the_topics_of_words():
    components = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.1, 0.4, 0.5]])
    shares, tokens = np.array([0.25, 0.75]), np.array([1e6, 1e6, 1e6, 1.0])
    words, topics = distributional_vectors(components, shares, tokens)
    np.testing.assert_allclose(np.linalg.norm(words, axis=1), 1, rtol=1e-6)
    np.testing.assert_allclose(words[1] ** 2, [5 / 8, 3 / 8], atol=1e-4)  # .25 * .5 to .75 * .1
    np.testing.assert_allclose(words[3] ** 2, [50 * 0.25 / 51, (50 * 0.75 + 1) / 51], rtol=1e-5)
    assert [word for word, _ in nearest_of(words, topics[1], 4)] == [2, 3, 1, 0]  # the rare word 3 is not the first
    assert nearest_of(words, words[0], 1, without=0)[0][0] == 1


def test_what_is_near(view, plain):
    rows = list(plain.nearest("cat", 2).rows())
    assert [row["kind"] for row in rows] == ["word", "word", "topic", "topic"]
    assert all(row["item"] != "cat" for row in rows)
    topics = [row for row in plain.nearest(0, 5).rows() if row["kind"] == "topic"]
    similarity = plain.hierarchy().similarity[0]  # that of the figure and of the explorer
    order = sorted(range(1, plain.n_topics), key=lambda topic: -similarity[topic])
    assert [int(row["item"]) for row in topics] == order
    assert [row["similarity"] for row in topics] == pytest.approx(similarity[order])
    assert topics[0]["similarity"] > 0
    assert plain.nearest(plain.names[1], 2).to_dicts() == plain.nearest(1, 2).to_dicts()
    with pytest.raises(InputError, match="did you mean cat"):
        view.nearest("catt")
    with pytest.raises(InputError, match="no word 'qqqq'"):
        view.nearest("qqqq")
    with pytest.raises(InputError, match="no topic 9"):
        view.nearest(9)
    with pytest.raises(SettingError, match="n=0"):
        view.nearest("cat", 0)


def test_names():
    assert unique_names(["a", "b", "a", ""]) == ["a (0)", "b", "a (2)", "(3)"]
    names = unique_names(["a", "a", "a (0)", "", "(3)", "a (0) (0)"])
    assert len(set(names)) == 6
    assert names[1] == "a (1)"
    assert free_names(2, ["topic_1"]) == ["topic__0", "topic__1"]


def test_tables_of_words_and_documents(view, plain):
    words = view.word_table(4)
    assert len(words) == 12
    assert words["rank"][:4] == [1, 2, 3, 4]
    assert [(row["word"], row["probability"]) for row in words.rows()][:4] == view.words_of(0, 4)
    documents = view.document_table(texts=True)
    row = list(documents.rows())[34]
    assert (row["id"], row["label"], row["time"], row["text"]) == (
        "34",
        "pets",
        "2024-05-01T00:00:00",
        f"cat {HOSTILE}",
    )
    assert list(documents.rows())[32]["topic"] is None
    assert list(plain.document_table(texts=True).columns) == ["id", "topic", "share", "topic_0", "topic_1", "topic_2"]


def test_tables_of_documents_have_the_covariates(tmp_path):
    covariates = {
        "year": [2021, None, 2023, 2024] * 8,
        "price": [1.5, 2, None, 4] * 8,
        "source": ["web", None, "=print", "web"] * 8,
        "topic": [None, *range(31)],  # a name that another column has
        "=x": [None] * 31 + [0.5],
    }
    corpus = Corpus.from_texts(TEXTS, language="en", min_df=4, max_df=1.0, covariates=covariates)
    model = tl.LDA(n_topics=2, epochs=2, random_state=0).fit(corpus)
    names = ["id", "year", "price", "source", "topic (covariate)", "=x", "topic"]
    table = tl.Topics(model, corpus).document_table()
    assert list(table.columns)[:7] == names
    assert [table[name][1] for name in names[1:4]] == [None, 2, None]
    assert str(table["year"][0]) == "2021"  # and not 2021.0
    found = model.infer(corpus)
    write_documents(tmp_path / "a.csv", found.parts(5), model)
    first, second, *_ = csv.reader((tmp_path / "a.csv").read_text(encoding="utf-8").splitlines()[1:])
    assert first[:6] == ["0", "2021", "1.5", "web", "", ""]
    assert second[:5] == ["1", "", "2.0", "", "0"]
    write_documents(tmp_path / "b.csv", [found], model, excel=True)
    (head, *rows) = csv.reader((tmp_path / "b.csv").read_text(encoding="utf-8-sig").splitlines())
    assert (head[5], rows[2][3]) == ("'=x", "'=print")
    write_documents(tmp_path / "a.parquet", found.parts(5), model)  # some parts have no value of "=x"
    read = pyarrow.parquet.read_table(tmp_path / "a.parquet")
    assert read["=x"].to_pylist() == [None] * 31 + [0.5]
    assert read["source"].to_pylist() == covariates["source"]
    assert read["year"].to_pylist() == covariates["year"]


def test_tables_keep_the_fractions_of_seconds(tmp_path):
    times = ["2024-05-01T10:00:00.250", "2024-05-01T10:00:00.000001", "2024-05-01T10:00:00", None] * 8
    corpus = Corpus.from_texts(TEXTS, language="en", min_df=4, max_df=1.0, timestamps=times)
    model = tl.LDA(n_topics=2, epochs=2, random_state=0).fit(corpus)
    write_documents(tmp_path / "d.csv", [model.infer(corpus)], model)
    with (tmp_path / "d.csv").open(encoding="utf-8", newline="") as file:
        written = [row["timestamp"] or None for row in csv.DictReader(file)]
    assert written == tl.Topics(model, corpus).document_table()["time"]
    assert written[2:4] == times[2:4]
    expected = np.array(times, "datetime64[us]")
    np.testing.assert_array_equal(np.array(written, "datetime64[us]"), expected)


@pytest.mark.parametrize("excel", [False, True])
def test_csv_keeps_line_breaks_of_every_kind(excel, tmp_path):
    labels = ["old\rMac", "Windows\r\nline", "Unix\nline", "none"] * 8
    corpus = Corpus.from_texts(TEXTS, language="en", min_df=4, max_df=1.0, labels=labels, covariates={"a\rb": labels})
    model = tl.LDA(n_topics=2, epochs=2, random_state=0).fit(corpus)
    write_documents(tmp_path / "d.csv", [model.infer(corpus)], model, excel=excel)
    tl.Topics(model, corpus).document_table().save(tmp_path / "t.csv", excel=excel)
    for name in ("d.csv", "t.csv"):
        with (tmp_path / name).open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
        assert [row["label"] for row in rows] == [row["a\rb"] for row in rows] == labels


def test_long_texts_are_broken_into_lines_in_latex():
    short, long = "x" * 60, "x " * 31
    one = Table({"topic": [0, 1], "words": [short, long.split()]})
    assert one.to_latex().startswith(r"\begin{tabular}{rp{0.6\linewidth}}")
    two = Table({"a": [long, "y"], "n": [1, 2], "b": ["y", long], "c": [short, "y"]})
    assert two.to_latex().startswith(r"\begin{tabular}{p{0.3\linewidth}rp{0.3\linewidth}l}")
    assert Table({"a": [], "b": []}).to_latex().startswith(r"\begin{tabular}{ll}")


def test_a_text_that_looks_like_a_formula_stays_a_text(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    text = '=HYPERLINK("http://127.0.0.1","x")'
    Table({"text": [text, "plain"], "n": [1, 2]}).save(tmp_path / "t.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "t.xlsx").active
    assert [(cell.value, cell.data_type) for cell in sheet[2]] == [(text, "s"), (1, "n")]


def test_all_characters_come_back_from_excel(tmp_path, caplog):
    """XML has no control characters, and openpyxl drops some and raises ValueError at others; Excel escapes all."""
    pytest.importorskip("openpyxl")
    texts = ["a\x08b\x00", "\x0b\x0c\x1f", "\ufffe\uffff", "a_x0041_b", "_x005F_x0041_", "max_x_x12", "👍", "\x1b[31m"]
    Table({"text": texts}).save(tmp_path / "t.xlsx")
    with zipfile.ZipFile(tmp_path / "t.xlsx") as book:
        xml = "".join(book.read(name).decode() for name in book.namelist() if name.endswith(".xml"))
    assert "a_x0008_b_x0000_" in xml
    assert "a_x005F_x0041_b" in xml
    assert "max_x_x12" in xml
    assert [each.text for each in read(tmp_path / "t.xlsx")] == [text.replace("\0", " ") for text in texts]
    assert not caplog.messages
    Table({"text": ["x" * 32_767, "y" * 32_768]}).save(tmp_path / "t.xlsx")
    assert [len(each.text) for each in read(tmp_path / "t.xlsx")] == [32_767, 32_767]
    assert caplog.messages == [
        "1 text is cut after 32,767 characters, the most that a cell of Excel holds; write .csv or .jsonl to have all"
    ]


def printed(named: bool = False, language: str = "en") -> tl.Topics:
    texts = ["cat dog mouse_1", "rain sun 50%", "bank loan price"] * 8
    if language == "zh":
        texts = ["猫 狗 老鼠", "雨 太阳 雪", "银行 贷款 价格"] * 8
    tokens = [text.split() for text in texts]
    topics = tl.Topics(tl.LDA(3, random_state=0).fit(tokens), tokens)
    return topics.rename({0: "R&D [new]", 1: "100 % #1"}) if named else topics


def latex_rows(text: str) -> list[list[str]]:
    body = text.split(r"\toprule", 1)[1].split(r"\bottomrule")[0].replace(r"\midrule", "")
    rows = [row.strip() for row in re.split(r"\\\\\n", body) if row.strip()]
    return [[cell.strip() for cell in re.split(r"(?<!\\)&", row)] for row in rows]


@pytest.mark.parametrize(("language", "says"), [("en", "Topics of 1 document. "), ("zh", "1 篇文档的主题。")])
def test_a_single_document_is_no_plural(language, says):
    topics = printed()
    single = tl.Topics(topics.model, topics.corpus[:1])
    assert says in single.publication_table(table_language=language).to_markdown()


def test_topics_go_into_a_paper():
    topics = printed()
    text = topics.publication_table().to_latex()
    assert text.startswith("% \\usepackage{booktabs}\n\\begin{table}")
    assert r"\label{tab:topics}" in text
    assert r"\caption{Topics of 24 documents." in text
    head, *rows = latex_rows(text)
    assert head == ["Topic", "Words", r"Share (\%)", "NPMI"]
    for k, row in enumerate(rows):
        assert row[0] == str(k)
        assert {word.replace("\\", "") for word in row[1].split(", ")} == {word for word, _ in topics.words_of(k)}
        assert row[2] == f"{100 * topics.shares[k]:.2f}"
        assert row[3] == f"{topics.table()['coherence'][k]:.2f}".replace("-", "$-$")
    names = [row[0] for row in latex_rows(printed(named=True).publication_table().to_latex())]
    assert names[:3] == ["Name", r"R\&D {[}new{]}", r"100 \% \#1"]
    markdown = printed(named=True).publication_table(3).to_markdown()
    assert markdown.startswith("Table: Topics of 24 documents.")
    assert markdown.splitlines()[2:4] == ["| Name | Words | Share (%) | NPMI |", "| --- | --- | ---: | ---: |"]


def test_a_chinese_table_says_how_it_is_compiled():
    text = printed(language="zh").publication_table(table_language="zh").to_latex()
    assert "ctex" in text.splitlines()[1]
    assert latex_rows(text)[0] == ["主题", "代表词", r"占比（\%）", "NPMI"]
    assert r"\caption{24 篇文档的主题。" in text
    with pytest.raises(SettingError, match="`table_language='fr'`"):
        printed().publication_table(table_language="fr")


def test_a_cell_is_no_argument_of_the_row_before():
    text = Table({"a": ["[0]", "*"], "b": [-1.5, 2.0]}, decimals=2).to_latex()
    assert latex_rows(text)[1:] == [["{[}0{]}", "$-$1.50"], ["{*}", "2.00"]]
