"""The commands hierarchy, trends, by, match, export, nearest and vectors, and --tokenizer and --covariate of train."""

from __future__ import annotations

import json
import random
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml

import topicloom as tl
from command_line import call, refused, shown, table
from topicloom.cli.analyses import bars
from topicloom.topics.publication import groups_for_print, trends_for_print

WORDS = {
    "pets": "cat dog vet pets fur paw kitten puppy animal leash",
    "money": "bank rate stock bond market money profit trade share fund",
    "sport": "goal match team league coach player score win cup season",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Articles of two years, in which pets become more frequent and money less."""
    place = tmp_path_factory.mktemp("analyses")
    drawn = random.Random(0)
    with (place / "news.jsonl").open("w", encoding="utf-8") as file:
        for n in range(480):
            month = n % 24
            label = drawn.choices(list(WORDS), [1 + month / 3, 8 - month / 4, 4])[0]
            pool = WORDS[label].split() * 9 + " ".join(WORDS.values()).split()
            row = {
                "text": " ".join(drawn.choices(pool, k=20)),
                "section": label,
                "date": f"{2022 + month // 12}-{month % 12 + 1:02}-{drawn.randint(1, 28):02}",
                "price": n / 10,
                "author": f"author {n % 3}" if n % 5 else None,
            }
            file.write(json.dumps(row) + "\n")
    fields = ("--label", "section", "--timestamp", "date", "--covariate", "price", "--covariate", "author")
    fast = ("--model", "lda", "--epochs", 10, "--quiet", "--monitor", "none", "--no-texts")
    for name, seed in (("run", 0), ("old", 3)):
        made = call("train", place / "news.jsonl", *fields, *fast, "--topics", 3, "--seed", seed, "--out", place / name)
        assert made.exit_code == 0, made.output
    plain = call("train", place / "news.jsonl", *fast, "--topics", 3, "--out", place / "plain")
    assert plain.exit_code == 0, plain.output
    return place


def as_json(*arguments: object) -> dict:
    return json.loads(shown(*arguments, "--json"))


def main_topic(folder: Path, label: str) -> int:
    view = tl.Topics.from_run(folder / "run")
    found = [topic for topic, each in zip(view.documents.main_topics, view.documents.labels or [], strict=True)
             if each == label]  # fmt: skip
    return max(set(found), key=found.count)


def test_no_default_is_in_parentheses():
    assert "default: (" not in call("by", "--help").stdout
    assert "4 by" in call("by", "--help").stdout


def test_hierarchy(folder):
    found = as_json("hierarchy", folder / "run", "--groups", 2)
    assert len(found["nodes"]) == 5
    assert sorted(found["order"]) == [0, 1, 2]
    assert len(found["groups"]) == 2
    shown = call("hierarchy", folder / "run", "--words", 2).stdout
    assert shown.count("topic ") == 3
    assert "├─ " in shown
    refused("hierarchy", folder / "run", "--groups", 9, says=["--groups 9 should be a whole number from 1 to 3"])


def test_trends(folder):
    found = as_json("trends", folder / "run", "--period", "month", "--samples", 50)
    assert (len(found["periods"]), found["documents"][0]) == (24, 20)
    directions = {row["topic"]: row["trend"] for row in found["trends"]}
    assert directions[main_topic(folder, "pets")] == "rising"
    assert directions[main_topic(folder, "money")] == "falling"
    assert len(found["shares"]) == 72
    shown = call("trends", folder / "run", "--samples", 50).stdout
    assert "↑ rising" in shown
    assert "2022-01 to" in " ".join(shown.split())
    assert "trend" in shown
    few = call("trends", folder / "run", "--period", "year", "--samples", 50).stdout
    assert "trend" not in few  # two years have none, and there is no empty column


@pytest.mark.parametrize(("width", "n_bars"), [(120, 24), (66, 24), (55, 12)])
def test_the_bars_of_a_topic_are_on_one_line(folder, monkeypatch, width, n_bars):
    monkeypatch.setenv("COLUMNS", str(width))
    shown = call("trends", folder / "run", "--period", "month", "--samples", 50).stdout
    assert [len(line) for line in re.findall("[▁-█]+", shown)] == [n_bars] * 3


def test_a_bar_of_periods_is_the_mean_of_their_documents():
    nan = float("nan")
    assert bars([0.5, nan, 1.0], [1, 0, 1]) == "▅ █"
    assert bars([0.2, nan, nan, nan, 0.2, 1.0], [9, 0, 0, 0, 3, 1], 2) == "▅ █"  # 0.2 and 0.4
    assert bars([nan], [0]) == " "


def test_trends_of_one_topic(folder, tmp_path):
    out = tmp_path / "shares.csv"
    result = call("trends", folder / "run", "--topic", 1, "--period", "year", "--samples", 50, "--out", out)
    assert result.exit_code == 0
    assert "2023" in result.stdout
    assert len(out.read_text("utf-8").splitlines()) == 1 + 3 * 2
    name = tl.Topics.from_run(folder / "run").names[1]
    found = as_json("trends", folder / "run", "--topic", name, "--period", "year", "--samples", 50)
    assert found["topic"] == 1
    refused("trends", folder / "run", "--topic", 7, says=["no topic 7"])
    refused("trends", folder / "run", "--out", out, says=["--overwrite"])
    refused("trends", folder / "run", "--overwrite", says=["--overwrite replaces the file of --out; give that, too"])
    refused("trends", folder / "run", "--out", tmp_path / "x.doc", says=[".csv"])


def test_by(folder):
    found = as_json("by", folder / "run", "--samples", 50)
    assert found["groups"] == ["money", "pets", "sport"]
    highest = {row["topic"]: row["highest"] for row in found["differences"]}
    assert highest[main_topic(folder, "sport")] == "sport"
    assert as_json("by", folder / "run", "price", "--groups", 2, "--samples", 50)["groups"] == [
        "0 to 23.9",
        "24 to 47.9",
    ]
    authors = as_json("by", folder / "run", "author", "--samples", 50)
    assert (len(authors["groups"]), authors["without_group_or_words"]) == (3, 96)
    shown = call("by", folder / "run", "--topic", 0, "--samples", 50).stdout
    assert "%" in shown
    assert "documents are left out" in call("by", folder / "run", "author", "--samples", 50).stderr
    for covariate, warned in (("author", True), ("class", True), ("price", False)):
        said = call("by", folder / "run", covariate, "--groups", 2, "--samples", 50).stderr
        assert (f"--groups does nothing, because the values of '{covariate}' are not numbers" in said) is warned


def test_labels_are_known_by_their_column(folder, tmp_path):
    by_class, by_name = (as_json("by", folder / "run", name, "--samples", 50) for name in ("class", "section"))
    assert (by_class.pop("by"), by_name.pop("by")) == ("class", "section")
    for row in by_name["shares"]:
        row["class"] = row.pop("section")
    assert by_name == by_class
    assert as_json("by", folder / "run", "section", "--crosstab")["cells"][0]["section"] in WORDS
    for name in ("class", "section"):
        words = call("by", folder / "run", name, "--topic", 0, "--samples", 50).stdout.split()
        assert words.count("section") == 1
        assert "class" not in words
    refused("by", folder / "run", "sections", says=["did you mean section"])
    refused("by", folder / "run", "shop", says=["section (their labels)", "price"])
    view = tl.Topics.from_run(folder / "run")
    assert view.words_by(0, "section").to_dicts() == view.words_by(0).to_dicts()
    assert tl.Topics.of(view.model, view.corpus, view.documents).label_column is None
    shutil.copytree(folder / "run", tmp_path / "run")
    (tmp_path / "run" / "metrics.json").unlink()
    (tmp_path / "run" / "topics.csv").unlink()  # a model alone, with the options of its training
    assert tl.Topics.from_run(tmp_path / "run").label_column == "section"
    (tmp_path / "run" / "train.yaml").write_text("label: [", encoding="utf-8")
    assert tl.Topics.from_run(tmp_path / "run").label_column is None


def for_print(path: Path, *arguments: object) -> tuple[list[list[str]], str]:
    """Return the cells of a LaTeX table, as LaTeX shows them, and the whole text."""
    shown(*arguments, "--out", path)
    text = path.read_text(encoding="utf-8")
    parts = re.split(r"\\(?:toprule|midrule|bottomrule|endfirsthead|endhead|endfoot)\n", text)
    full = [part for part in parts if " & " in part]
    rows = [row for part in (full[0], full[-1]) for row in re.findall(r"^(.+) \\\\$", part, re.M)]
    for written, meant in (("--", "–"), (r"\textless{}", "<"), (r"\%", "%"), (r"\_", "_"), (r"\&", "&")):
        rows = [row.replace(written, meant) for row in rows]
    return [row.split(" & ") for row in rows], text


def percent(value: float | None) -> str:
    return "–" if value is None else format(100 * value, ".2f")


def interval(row: dict) -> str:
    return "–" if row["low"] is None else f"{percent(row['low'])}–{percent(row['high'])}"


def test_trends_go_into_a_paper(folder, tmp_path):
    command = ("trends", folder / "run", "--period", "month", "--from", "2022-01-15", "--min-documents", 20,
               "--level", 0.9, "--samples", 50)  # fmt: skip
    (head, *rows), text = for_print(tmp_path / "a.tex", *command)
    assert head == ["Topic", "Words", "Period", "Share (%)", "90 % CI", "Documents", "Sparse"]
    expected = as_json(*command)["shares"]
    assert {row["sparse"] for row in expected} == {True, False}
    assert rows == [
        [str(row["topic"]), row["name"], row["period"], percent(row["share"]), interval(row), str(row["documents"]),
         "yes" if row["sparse"] else "no"]
        for row in expected
    ]  # fmt: skip
    assert r"\begin{longtable}" in text  # 72 rows
    n_docs = sum(row["documents"] for row in expected if row["topic"] == 0)
    assert rf"by month in {n_docs} documents, with 90 \% confidence intervals" in text
    assert r"\label{tab:trends}" in text


def test_groups_go_into_a_paper(folder, tmp_path):
    command = ("by", folder / "run", "--samples", 50)
    (head, *rows), text = for_print(tmp_path / "a.tex", *command)
    assert head == ["Topic", "Words", "section", "Share (%)", "95 % CI", "Documents"]
    shares = [
        [str(row["topic"]), row["name"], row["class"], percent(row["share"]), interval(row), str(row["documents"])]
        for row in as_json(*command)["shares"]
    ]
    assert rows == shares
    assert r"\begin{table}" in text
    assert r"\label{tab:by-section}" in text
    (head, *rows), text = for_print(tmp_path / "b.tex", *command, "--crosstab")
    assert head[6:] == ["Lift", "p", "Differs"]
    assert [row[:6] for row in rows] == shares
    assert [row[6:] for row in rows] == [
        [f"{row['lift']:.2f}", "<0.001" if row["p_corrected"] < 0.001 else f"{row['p_corrected']:.3f}",
         row["differs"] or "–"]
        for row in as_json(*command, "--crosstab")["cells"]
    ]  # fmt: skip
    shown(*command, "--out", tmp_path / "c.csv")
    assert next(iter(table((tmp_path / "c.csv").read_text(encoding="utf-8"))[0])) == "class"  # data keep their form


def test_words_go_into_a_paper(folder, tmp_path):
    command = ("export", folder / "run", "--to", "words")
    (head, *rows), text = for_print(tmp_path / "a.tex", *command, "--caption", "Words & co", "--label", "tab:w")
    assert head == ["Topic", "Rank", "Word", "Probability (%)"]
    words = tl.Topics.from_run(folder / "run").word_table(10).to_dicts()
    assert rows == [[str(w["topic"]), str(w["rank"]), w["word"], percent(w["probability"])] for w in words]
    assert r"\caption{Words \& co}" in text
    assert r"\label{tab:w}" in text
    shown(*command, "--out", tmp_path / "a.md", "--table-language", "zh")
    caption, _, head, *_ = (tmp_path / "a.md").read_text(encoding="utf-8").splitlines()
    assert caption.startswith("Table: 3 个主题各自的前 10 个代表词")
    assert head == "| 主题 | 排名 | 词 | 概率（%） |"


def test_names_and_languages_of_printed_shares(folder):
    view = tl.Topics.from_run(folder / "run").rename({0: "R&D"})
    found = view.by("author", n_samples=20)
    english = groups_for_print(found, view.given_names, 0.95, "en", title="Documents")
    assert list(english.columns)[:2] == ["Name", "Documents (group)"]
    assert english["Name"][0] == "R&D"
    assert english["Name"][-1] == view.names[2]
    months = view.over_time("quarter", n_samples=20)
    chinese = trends_for_print(months, view.given_names, 0.95, "zh")
    assert list(chinese.columns) == ["名称", "时段", "占比（%）", "95% 区间", "文档数", "稀疏"]
    assert set(chinese["稀疏"]) == {"否"}
    assert chinese.caption == "480 篇文档的主题占比，按季度统计，附 95% 区间。"


def test_marks_of_missing_values_in_a_table(tmp_path):
    rows = "".join(f"cat and dog,{n if n % 3 else 'N/A'},{n if n != 7 else 'cheap'},-\n" for n in range(1, 20))
    (tmp_path / "a.csv").write_text(f"text,price,cost,when\n{rows}", encoding="utf-8")
    columns = ("--covariate", "price", "--covariate", "cost", "--timestamp", "when", "--label", "price")
    fast = ("--model", "lda", "--epochs", 1, "--topics", 2, "--max-df", "1.0", "--monitor", "none")
    result = call("train", tmp_path / "a.csv", *columns, *fast, "--out", tmp_path / "run")
    assert result.exit_code == 0, result.output
    assert result.stderr.count("'cost' is taken as a category although it has numbers, because it is 'cheap' in") == 1
    assert "'price' is taken" not in result.stderr
    documents = tl.Corpus.load(tmp_path / "run" / "documents")
    np.testing.assert_array_equal(documents.covariates["price"], [n if n % 3 else np.nan for n in range(1, 20)])
    assert "cheap" in documents.covariates["cost"].names
    assert documents.labels == [str(n) if n % 3 else "" for n in range(1, 20)]
    assert np.isnat(documents.times).all()


NEW = """text,author,price,shelf
cat and dog,author 1,2.50,3
bank and rate,author 9,,4
goal and team,,cheap,5
goal and cup,author 2,n/a,6
"""


@pytest.mark.parametrize("at_once", [2, 100])
def test_covariates_of_new_documents(folder, tmp_path, monkeypatch, at_once):
    monkeypatch.setattr("topicloom.cli.apply._CHUNK", at_once)
    (tmp_path / "new.csv").write_text(NEW, "utf-8")
    result = call("infer", folder / "run", tmp_path / "new.csv")
    assert result.exit_code == 0, result.output
    assert result.stderr.count("the covariate 'price' is 'cheap' in document 2, which is no number") == 1
    rows = table(result.stdout)
    trained = (folder / "run" / "doc_topics.csv").read_text("utf-8").splitlines()[0].split(",")
    known = [name for name in trained if name not in ("label", "timestamp")]  # which new.csv does not have
    assert list(rows[0]) == [*known, "text"]
    assert [row["price"] for row in rows] == ["2.5", "", "", ""]
    assert [row["author"] for row in rows] == ["author 1", "author 9", "", "author 2"]
    piped = call("infer", folder / "run", "-", "--format", "csv", stdin=NEW)
    assert table(piped.stdout) == rows

    pytest.importorskip("pyarrow")
    assert call("infer", folder / "run", tmp_path / "new.csv", "--out", tmp_path / "new.parquet").exit_code == 0
    found = pytest.importorskip("pyarrow.parquet").read_table(tmp_path / "new.parquet").to_pydict()
    assert found["price"] == [2.5, None, None, None]
    assert found["author"] == ["author 1", "author 9", "", "author 2"]


def test_missing_columns_are_left_out(folder, tmp_path):
    (tmp_path / "new.jsonl").write_text('{"text": "cat", "price": null, "shelf": 3}\n{"text": "dog"}\n', "utf-8")
    rows = table(shown("infer", folder / "run", tmp_path / "new.jsonl"))
    assert {"price", "author", "shelf"} & {*rows[0]} == {"price"}
    assert {"price", "author", "shelf"} & {*table(shown("infer", folder / "plain", tmp_path / "new.jsonl"))[0]} == set()
    (tmp_path / "new.txt").write_text("cat\ndog\n", "utf-8")
    assert "price" not in table(shown("infer", folder / "run", tmp_path / "new.txt"))[0]
    (tmp_path / "twice.csv").write_text("text,price,price\ncat,1,2\n", "utf-8")
    refused("infer", folder / "run", tmp_path / "twice.csv", says=["has 2 columns 'price'; rename all but the one"])


def test_runs_without_fields(folder):
    refused("trends", folder / "plain", says=["no document has a time", "--timestamp"])
    refused("by", folder / "plain", says=["no document has a class", "--label"])
    refused("by", folder / "plain", "price", says=["no covariate 'price'", "--covariate"])
    refused("by", folder / "run", "prize", says=["did you mean price"])


def test_match(folder, tmp_path):
    found = as_json("match", folder / "run", folder / "old")
    assert [row["status"] for row in found["topics"]] == ["matched"] * 3
    assert found["gone"] == []
    refused(
        "match", folder / "run", folder / "old", "--edits", tmp_path / "names.yaml",
        says=["none of the topics of", "that have partners has a name; name them first"],
    )  # fmt: skip
    named = tmp_path / "named"  # the first words of topic 2 are not its name
    assert call("edit", folder / "old", "--rename", "0=one", "--rename", "1=two", "--out", named).exit_code == 0
    result = call("match", folder / "run", named, "--edits", tmp_path / "names.yaml")
    assert "3 topics matched" in result.stderr
    edits = yaml.safe_load((tmp_path / "names.yaml").read_text("utf-8"))
    given = {0: "one", 1: "two"}
    expected = {row["topic"]: given[row["old"]] for row in found["topics"] if row["old"] in given}
    assert edits["edits"] == [{"rename": expected}]
    assert edits["model"] == tl.load(folder / "run").fingerprint
    new = call("match", folder / "run", folder / "old", "--threshold", 1)
    assert "3 new, 3 gone" in new.stderr
    refused("match", folder / "run", folder / "none", says=["none does not exist"])
    refused("match", folder / "run", folder / "old", "--threshold", 2, says=["--threshold 2"])


def test_options_without_effect_are_refused(folder):
    run = folder / "run"
    refused("evaluate", run, "--vary", "order", says=["--vary says what differs between the fits of --stability"])
    refused("trends", run, "--words", 9, says=["--words shows those of one topic in each period; name it by --topic"])
    refused("by", run, "author", "--words", 9, says=["--words shows those of one topic in each group"])
    refused("by", run, "author", "--words", 9, "--topic", 1, "--crosstab", says=["without --crosstab"])
    refused("by", run, "author", "--correction", "holm", says=["--correction is that of the table of --crosstab"])
    refused("name", run, "--documents", 3, says=["--rule words gets no documents; leave out --documents"])
    refused("name", run, "--timeout", 3, says=["--timeout needs a language model; give --llm"])


@pytest.mark.parametrize(
    ("to", "name"),
    [
        ("topics", "topics.tex"), ("words", "words.md"), ("documents", "documents.parquet"), ("pyldavis", "v.json"),
        ("topicwizard", "w.joblib"), ("datamapplot", "d.npz"), ("word2vec", "v.txt"),
    ],
)  # fmt: skip
def test_export(folder, tmp_path, to, name):
    out = tmp_path / name
    result = call("export", folder / "run", "--to", to, "--out", out)
    assert result.exit_code == 0, result.output
    assert out.stat().st_size > 0
    refused("export", folder / "run", "--to", to, "--out", out, says=["already exists", "--overwrite"])
    refused("export", folder / "run", "--to", to, "--out", tmp_path / "x.png", says=["should end in"])
    without = ["--texts"] * (to != "documents") + ["--words=3"] * (to not in ("topics", "words"))
    for option in without:
        refused("export", folder / "run", "--to", to, "--out", tmp_path / f"new{out.suffix}", option, says=["leave it"])
    if to == "word2vec":
        assert "topic_2" in tl.read_word_vectors(out)


def test_nearest(folder):
    found = as_json("nearest", folder / "run", "cat", "--words", 4)["nearest"]
    assert {row["item"] for row in found if row["kind"] == "word"} <= set(WORDS["pets"].split())
    number = main_topic(folder, "money")
    words = [row["item"] for row in as_json("nearest", folder / "run", number)["nearest"] if row["kind"] == "word"]
    assert set(words) == set(WORDS["money"].split())
    assert "similarity" in call("nearest", folder / "run", "cat").stdout
    refused("nearest", folder / "run", "catt", says=["did you mean cat"])
    refused("nearest", folder / "run", 99, says=["has no topic of this name; the topics are 0 to"])
    assert "say little" not in call("nearest", folder / "run", "cat").stdout


def test_nearest_says_that_learned_word_vectors_say_little(folder, tmp_path):
    still = ("--set", "start=random", "--set", "learning_rate=1e-6", "--epochs", 1, "--monitor", "none", "--no-texts")
    made = call("train", folder / "news.jsonl", "--model", "etm", "--topics", 3, *still, "--out", tmp_path / "etm")
    assert made.exit_code == 0, made.output
    assert "The neighbours of words say little: " in call("nearest", tmp_path / "etm", "cat").stdout
    words_alone = ("--model", "gaussianbatm", "--set", "embedding_size=4", "--epochs", 1, "--monitor", "none")
    made = call("train", folder / "news.jsonl", "--topics", 3, *words_alone, "--no-texts", "--out", tmp_path / "batm")
    assert made.exit_code == 0, made.output
    assert "say little" not in call("nearest", tmp_path / "batm", "cat").stdout


def test_vectors(folder, tmp_path):
    options = ("--size", 8, "--epochs", 3, "--quiet")
    for name in ("a.txt", "b.txt.gz"):
        assert call("vectors", folder / "news.jsonl", "--out", tmp_path / name, *options).exit_code == 0
    one, other = (tl.read_word_vectors(tmp_path / name) for name in ("a.txt", "b.txt.gz"))
    assert one.digest == other.digest
    assert (one.size, "cat" in one) == (8, True)
    refused("vectors", folder / "news.jsonl", "--out", tmp_path / "a.bin", says=["should end in .txt"])
    refused("vectors", folder / "news.jsonl", "--out", tmp_path / "a.txt", says=["--overwrite"])


def test_a_tokenizer_of_ones_own(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "halves.py").write_text("def cut(text):\n    return [word[:3] for word in text.split()]\n", "utf-8")
    fast = ("--model", "lda", "--topics", 2, "--epochs", 2, "--quiet", "--monitor", "none", "--no-explorer")
    made = call("train", folder / "news.jsonl", "--tokenizer", "halves:cut", *fast, "--out", "own")
    assert made.exit_code == 0, made.output
    assert "kit" in tl.load("own").vocabulary_
    refused("infer", "own", folder / "news.jsonl", says=["your own tokenizer 'halves:cut'", "--allow halves"])
    inferred = call("infer", "own", folder / "news.jsonl", "--allow", "halves")
    assert inferred.exit_code == 0, inferred.output
    for command, text in (("find", "kitten puppy"), ("tokens", "kitten puppy")):
        refused(command, "own", text, says=["your own tokenizer 'halves:cut'", "--allow halves"])
        found = call(command, "own", text, "--allow", "halves", "--json")
        assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["text"] == "kitten puppy"
    assert json.loads(call("tokens", "own", 0, "--allow", "halves", "--json").stdout)["text"] is not None
    assert tl.load("own", allow=["halves"]).transform(["kitten"]).shape == (1, 2)
    corpus = tl.Corpus.from_texts(["kitten puppy"] * 6, tokenizer="halves:cut", max_df=1.0)
    assert corpus.vocabulary == ["kit", "pup"]
    for wrong, says in (
        ("halves:none", "no function 'none'"),
        ("nowhere:f", "no module 'nowhere'"),
        (":f", "module:function"),
    ):
        refused("train", folder / "news.jsonl", "--tokenizer", wrong, *fast, "--out", "x", says=[says])
