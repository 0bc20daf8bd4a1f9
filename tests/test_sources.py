"""A source of documents is opened once, whatever is read of it; standard input has the columns that a file has."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import topicloom as tl
from command_line import MONEY, PETS, call, refused
from topicloom.corpus.fields import Categories

N_DOCS = 40
PREPARE = ("--min-df", 1, "--max-df", 1.0, "--quiet")
TRAIN = (*PREPARE, "--model", "gsm", "--topics", 2, "--epochs", 1, "--monitor", "none", "--no-explorer")
STARS = [("N/A" if n == 7 else "" if n == 9 else str(n % 5)) for n in range(N_DOCS)]
ROWS = [
    {
        "text": f"{MONEY if n % 2 else PETS} w{n % 7}a",
        "label": "money" if n % 2 else "pets",
        "stars": STARS[n],
        "shop": f"shop {n % 3}",
        "part": "test" if n % 5 == 0 else "train",
    }
    for n in range(N_DOCS)
]
opens: Counter[str] = Counter()


def _count_opens(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open":
        opens[str(arguments[0])] += 1


sys.addaudithook(_count_opens)  # which cannot be taken out again


def written(suffix: str) -> str:
    """The documents in a format, as text."""
    if suffix == ".jsonl":
        return "".join(json.dumps(row) + "\n" for row in ROWS)
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, ROWS[0], delimiter="\t" if suffix == ".tsv" else ",")
    writer.writeheader()
    writer.writerows(ROWS)
    return file.getvalue()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for suffix in (".csv", ".tsv", ".jsonl"):
        (tmp_path / f"news{suffix}").write_text(written(suffix), "utf-8")
    opens.clear()
    return tmp_path


def check(corpus: tl.Corpus) -> None:
    """The covariates are those of the table: numbers, of which some are unknown, and categories."""
    numbers = [float(each) if each.isdecimal() else np.nan for each in STARS]
    np.testing.assert_array_equal(corpus.covariates["stars"], numbers)
    shops = corpus.covariates["shop"]
    assert isinstance(shops, Categories)
    assert shops.values() == [row["shop"] for row in ROWS]
    assert corpus.labels == [row["label"] for row in ROWS]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_covariates_come_with_the_texts(place, suffix):
    corpus = tl.Corpus.from_file(f"news{suffix}", min_df=1, max_df=1.0, covariates=["stars", "shop"])
    assert opens[f"news{suffix}"] == 1
    check(corpus)
    plain = tl.Corpus.from_file(f"news{suffix}", min_df=1, max_df=1.0)
    assert (corpus.digest, plain.covariates) == (plain.digest, {})
    given = {name: [row[name] for row in ROWS] for name in ("stars", "shop")}
    given["stars"] = [float(each) if each.isdecimal() else None for each in STARS]
    again = tl.Corpus.from_texts(corpus.texts, min_df=1, max_df=1.0, labels=corpus.labels, covariates=given)
    np.testing.assert_array_equal(again.covariates["stars"], corpus.covariates["stars"])
    tl.Corpus.from_file(f"news{suffix}", min_df=1, max_df=1.0, covariates=["stars", "shop"], out="out")
    check(tl.Corpus.load("out"))


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_commands_open_a_file_once(place, suffix):
    source = f"news{suffix}"
    columns = ("--covariate", "stars", "--covariate", "shop")
    np.save("vectors.npy", np.ones((N_DOCS, 3)))
    calls = [
        ("prepare", source, *PREPARE, *columns, "--document-vectors", "vectors.npy", "--out", "corpus"),
        ("train", source, *TRAIN, *columns, "--split", "part", "--document-vectors", "vectors.npy", "--out", "run"),
    ]
    for arguments in calls:
        opens.clear()
        result = call(*arguments)
        assert result.exit_code == 0, result.output
        assert opens[source] == 1
    check(tl.Corpus.load("corpus"))
    assert list(tl.Corpus.load("run/documents").covariates) == ["stars", "shop"]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_standard_input_has_columns(place, suffix):
    columns = ("--format", suffix[1:], "--covariate", "stars", "--covariate", "shop")
    np.save("vectors.npy", np.arange(N_DOCS * 3.0).reshape(N_DOCS, 3))
    prepare = ("prepare", "-", *PREPARE, *columns, "--document-vectors", "vectors.npy", "--out", "corpus")
    assert call(*prepare, stdin=written(suffix)).exit_code == 0
    check(tl.Corpus.load("corpus"))
    assert tl.Corpus.load("corpus").vectors[:, 0].tolist() == [3.0 * n for n in range(N_DOCS)]
    train = ("train", "-", *TRAIN, *columns, "--split", "part", "--out", "run")
    assert call(*train, stdin=written(suffix)).exit_code == 0
    found = tl.Corpus.load("run/documents").covariates["shop"].values()
    assert found == [row["shop"] for row in ROWS if row["part"] == "train"]


@pytest.mark.parametrize(
    ("suffix", "options", "says"),
    [
        (
            ".csv",
            ("--covariate", "star"),
            ["news.csv has no column 'star'", "name the column by --covariate"],
        ),
        (".jsonl", ("--covariate", "star"), ["no record of news.jsonl has 'star', the column of --covariate"]),
        (".csv", ("--split", "parts"), ["news.csv has no column 'parts'", "name the column by --split"]),
        (".csv", ("--covariate", "void"), ["no document of news.csv has a value of 'void'", "(--covariate)"]),
        (".txt", ("--covariate", "stars"), ["news.txt: plain text has no columns for --covariate; use .csv or .jsonl"]),
    ],
)
def test_columns_that_are_not_there(place, suffix, options, says):
    lines = written(".csv").splitlines()
    if "void" in options:
        lines = [f"{lines[0]},void", *(f"{line}," for line in lines[1:])]
    for name in {f"news{suffix}"} - {"news.jsonl"}:
        (place / name).write_text("\n".join(lines) + "\n", "utf-8")
    refused("train", f"news{suffix}", *TRAIN, *options, "--out", "run", says=says)
    assert not (place / "run" / "model").exists()


def test_covariates_of_a_file_are_a_list_of_columns(place):
    with pytest.raises(tl.InputError, match=r"`covariates` should be a list of columns; give \['stars'\]"):
        tl.Corpus.from_file("news.csv", covariates="stars")
    with pytest.raises(tl.InputError, match=r"has no column 'star'; .* name the column by `covariates`"):
        tl.Corpus.from_file("news.csv", covariates=["star"])
    with pytest.raises(tl.InputError, match="there are 39 vectors and 40 documents"):
        tl.Corpus.from_documents(tl.text.read("news.csv"), tl.preparing.WordOptions(min_df=1), vectors=np.ones((39, 2)))


def test_an_index_of_pandas_says_which_row_is_meant():
    pandas = pytest.importorskip("pandas")
    texts = pandas.Series(["cat cat", "dog dog", "fox fox"], index=["a", "b", "c"])
    labels = pandas.Series(["C", "D", "F"], index=["a", "b", "c"])
    options = {"language": "en", "min_df": 1, "max_df": 1.0}
    counts, vectors = pandas.DataFrame(np.eye(3), texts.index), pandas.DataFrame(np.eye(3), ["a", "c", "b"])
    for other in (labels.iloc[[2, 0, 1]], labels.reset_index(drop=True), labels.rename({"b": "x"})):
        for name, given in {"labels": other, "ids": other, "covariates": {"shop": other}, "vectors": vectors}.items():
            what = "the covariate 'shop'" if name == "covariates" else f"`{name}`"
            makers = (
                lambda **fields: tl.Corpus.from_texts(texts, **options, **fields),
                lambda **fields: tl.Corpus.from_counts(counts, **fields),
                lambda **fields: tl.Corpus.from_frame(texts.to_frame("text"), **options, **fields),
            )
            for make in makers if name in ("labels", "ids") else makers[:2]:
                with pytest.raises(
                    tl.InputError, match=rf"^{what} and the documents have different indexes: row [012]"
                ):
                    make(**{name: given})
    times = pandas.Series([2001, 2002, 2003], [np.nan, 1.0, np.nan])  # repeated labels, in the same order
    for given in (labels, list(labels.iloc[[2, 0, 1]]), labels.to_numpy(), labels.loc[texts.index]):
        assert list(tl.Corpus.from_texts(texts, **options, labels=given).labels) == list(given)
    assert tl.Corpus.from_texts(texts.set_axis(times.index), **options, timestamps=times).times is not None
    assert tl.Corpus.from_texts(list(texts), **options, labels=labels.iloc[[2, 0, 1]]).labels == ["F", "C", "D"]
    model = tl.LDA(2, random_state=0).fit(tl.Corpus.from_texts(texts, **options))
    with pytest.raises(tl.InputError, match=r"^`labels` and the documents have different indexes: row 0 is 'c'"):
        tl.evaluate(model, texts, labels=labels.iloc[[2, 0, 1]])
