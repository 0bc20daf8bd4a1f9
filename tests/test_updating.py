"""Updates: new documents in a run, what is new in them, and new topics beside the old ones."""

from __future__ import annotations

import csv
import json
import shutil
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest

import topicloom as tl
from command_line import call, refused
from topicloom.datasets import synthetic_lda
from topicloom.reports.run import write
from topicloom.topics.edits import read_edits, write_edits
from topicloom.topics.saved import EDITS, METRICS

SUBJECTS = {
    name: [f"{name}{chr(97 + each)}" for each in range(20)] for name in ("weather", "market", "garden", "football")
}


def write_month(path: Path, month: int, subjects: list[str], n_each: int = 40, *, ids: bool = False) -> Path:
    """Write documents of 20 words each; two of them are of football."""
    random = np.random.default_rng(month)
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["body", "label", "timestamp", "source", *(["id"] if ids else [])])
        for number in range(n_each * len(subjects)):
            subject = subjects[number % len(subjects)]
            words = random.choice(SUBJECTS[subject], 18).tolist()
            words += random.choice(SUBJECTS["football"], 2).tolist()
            if subject == "football":
                words += ["goalkeeper"] if number % 8 == 1 else []
            day = date(2024, month, 1) + timedelta(number % 28)
            own = [f"{month}-{number}"] if ids else []
            table.writerow([" ".join(words), subject, day, f"paper{month}", *own])
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("updates")
    may = write_month(folder / "may.csv", 5, ["weather", "market", "garden"])
    call(
        "train", may, "--text", "body", "--model", "lda", "--topics", 3, "--epochs", 10, "--covariate", "source",
        "--out", folder / "run", "--no-explorer", "--min-df", 2, "--quiet",
    )  # fmt: skip
    return folder


@pytest.fixture
def place(trained, tmp_path) -> Path:
    shutil.copytree(trained, tmp_path / "here")
    return tmp_path / "here"


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_an_update_keeps_topics_and_says_how_well_they_fit(place):
    before = tl.Topics.from_run(place / "run")
    june = write_month(place / "june.csv", 6, ["weather", "market", "garden"])
    same = tl.update(place / "run", june, out=place / "same")
    other = tl.update(place / "run", write_month(place / "other.csv", 6, ["market", "football"]), out=place / "other")
    assert same.badly_explained_share < 0.2
    is_football = np.array(other.topics.documents.labels[-80:]) == "football"
    assert other.badly_explained[is_football].mean() > 0.9
    assert other.badly_explained[~is_football].mean() < 0.2
    assert other.new_words == {"goalkeeper": 10}
    after = tl.Topics.from_run(place / "same")
    np.testing.assert_array_equal(after.components, before.components)
    np.testing.assert_array_equal(after.documents.theta[:120], before.documents.theta)
    np.testing.assert_allclose(after.documents.theta[120:], before.model.transform(after.corpus[120:]), atol=1e-6)
    assert after.corpus.times[120].astype(str).startswith("2024-06-01")
    assert after.corpus.covariates["source"].values()[120] == "paper6"
    assert len((place / "same" / "doc_topics.csv").read_text().splitlines()) == 1 + 240


def test_documents_without_known_words_are_explained_badly(place):
    found = tl.update(place / "run", ["goalkeeper striker", "referee penalty"], force=True)
    assert found.badly_explained.tolist() == [True, True]
    assert not any("cannot predict" in sentence for sentence in found.sentences())


def test_new_topics_find_a_new_subject_beside_the_old_ones(place):
    call("edit", place / "run", "--rename", "1=second", "--merge", "0,2", "--out", place / "edited", "--quiet")
    before = tl.Topics.from_run(place / "edited")
    june = write_month(place / "june.csv", 6, ["market", "football"])
    call("update", place / "edited", june, "--new-topics", 1, "--quiet")
    after = tl.Topics.from_run(place / "edited")
    np.testing.assert_allclose(after.components[:2], before.components, atol=1e-7)
    assert after.given_names == [*before.given_names, None]
    assert set(after.model.topics(10)[2]) <= set(SUBJECTS["football"])
    is_football = np.array(after.documents.labels[120:]) == "football"
    mains = np.array(after.documents.main_topics[120:])
    assert (mains[is_football] == 2).mean() > 0.95
    assert (mains[~is_football] == 2).mean() < 0.05
    np.testing.assert_allclose(after.documents.theta.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(after.model.transform(after.corpus), after.documents.theta, atol=1e-3)


def test_a_second_update_goes_on_from_the_first(place):
    write_month(place / "june.csv", 6, ["market", "football"])
    write_month(place / "july.csv", 7, ["football", "garden"])
    call("update", place / "run", place / "june.csv", "--new-topics", 1, "--quiet")
    again = json.loads(call("update", place / "run", place / "july.csv", "--json").stdout)
    assert (again["documents"], again["new_topics"], again["repeated"]) == (80, [], 0)
    assert again["badly_explained"] < 0.2  # the topic of June explains July
    says = ["has got more documents", "run/documents --out NEW", "--replay"]
    refused("train", "--continue", place / "run", "--epochs", "+1", says=says)
    about = json.loads((place / "run" / METRICS).read_text())
    assert [each["documents"] for each in about["updates"]] == [80, 80]
    assert about["trained_on"]["path"].endswith("may.csv")
    topics = tl.Topics.from_run(place / "run")
    assert len(topics.over_time("month").table()) > 0
    call("edit", place / "run", "--rename", "3=football", "--out", place / "named", "--quiet")
    assert [each["documents"] for each in json.loads((place / "named" / METRICS).read_text())["updates"]] == [80, 80]


def test_documents_that_a_run_has_are_left_out(place):
    june, july = write_month(place / "june.csv", 6, ["market"]), write_month(place / "july.csv", 7, ["garden"])
    call("update", place / "run", june, "--quiet")
    before = files_of(place / "run")
    refused("update", place / "run", june, says=["has all 40 documents of", "--keep-repeated"])
    assert files_of(place / "run") == before
    both = tl.update(place / "run", (june, july))
    assert (both.n_documents, both.n_repeated) == (40, 40)
    assert tl.update(place / "run", june, keep_repeated=True).n_documents == 40


def test_vectors_for_a_run_without_them_are_not_dropped_unsaid(place, caplog, monkeypatch):
    june = write_month(place / "june.csv", 6, ["market"])
    np.save(place / "june.npy", np.eye(40, 3) + 1)
    (place / "lengths.py").write_text("def encode(texts):\n    return [[len(text), 1] for text in texts]\n")
    monkeypatch.syspath_prepend(str(place))
    for option, says in (
        (("--vectors", place / "june.npy"), "only the new documents have vectors, so the run keeps none"),
        (("--encoder", "lengths:encode"), "so the given vectors or encoder change nothing"),
    ):
        caplog.clear()
        call("update", place / "run", june, *option, "--out", place / option[0][2:])
        assert sum(says in message for message in caplog.messages) == 1
        assert tl.Corpus.load(place / option[0][2:] / "documents").vectors is None


def test_options_named_for_an_update_replace_those_of_the_training(place):
    june = write_month(place / "june.csv", 6, ["weather"])
    june.write_text(june.read_text(encoding="utf-8").replace("body", "text", 1), encoding="utf-8")
    refused("update", place / "run", june, says=["body"])
    call("update", place / "run", june, "--text", "text", "--out", place / "june", "--quiet")  # the default, but named
    assert len(tl.Topics.from_run(place / "june").documents) == 160


def test_a_file_without_the_columns_of_training_is_accepted(place, caplog):
    june = write_month(place / "june.csv", 6, ["weather", "market"])
    rows = list(csv.DictReader(june.open(encoding="utf-8")))
    with june.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, ["body", "label"], extrasaction="ignore")
        table.writeheader()
        table.writerows(rows)
    run = place / "dated"
    call(
        "train", place / "may.csv", "--text", "body", "--timestamp", "timestamp", "--covariate", "source", "--model",
        "lda", "--topics", 3, "--epochs", 2, "--out", run, "--no-explorer", "--min-df", 2, "--quiet",
    )  # fmt: skip
    found = tl.update(run, june, out=place / "more")
    assert found.unknown == {"time": 80, "source": 80}
    assert "all of them have no time, so the views over time leave them out" in found.sentences()
    after = tl.Topics.from_run(place / "more")
    assert np.isnat(after.documents.times[120:]).all()
    assert not np.isnat(after.documents.times[:120]).any()
    assert after.over_time("month").n_unknown == 80
    again = tl.update(place / "more", june, out=place / "again", keep_repeated=True)
    assert again.n_documents == 80
    refused("update", run, june, "--timestamp", "timestamp", says=[f"{june} has no column 'timestamp'"])
    (place / "bare.csv").write_text("words\nsome words\n", encoding="utf-8")
    refused("update", run, place / "bare.csv", says=["has no column 'body'"])


def test_a_file_of_another_format_is_added(place):
    run, may = place / "delimited", place / "may.csv"
    may.write_text(may.read_text(encoding="utf-8").replace(",", ";"), encoding="utf-8")
    call(
        "train", may, "--text", "body", "--delimiter", ";", "--model", "lda", "--topics", 3, "--epochs", 2, "--out",
        run, "--no-explorer", "--quiet",
    )  # fmt: skip
    june = list(csv.DictReader(write_month(place / "june.csv", 6, ["market"]).open(encoding="utf-8")))
    (place / "june.jsonl").write_text("\n".join(map(json.dumps, june)), encoding="utf-8")
    (place / "june.txt").write_text("\n".join(row["body"] for row in june), encoding="utf-8")
    for name in ("june.jsonl", "june.txt"):
        assert call("update", run, place / name, "--out", place / f"with {name}").exit_code == 0
        assert tl.Topics.from_run(place / f"with {name}").documents.texts[120:] == [row["body"] for row in june]
    refused("update", run, place / "june.txt", "--text", "body", says=["--text body is for .csv, .tsv, .xlsx, .jsonl"])


def test_an_id_with_another_text_is_refused(place):
    june = write_month(place / "june.csv", 6, ["market"], ids=True)
    call("update", place / "run", june, "--quiet")
    refused("update", place / "run", june, says=["has all 40 documents of"])
    june.write_text(june.read_text().replace("marketa", "marketb"))
    refused("update", place / "run", june, says=["have the id of a document in the run with another text"])


def test_a_failed_update_leaves_the_run_as_it_was(place, monkeypatch):
    june = write_month(place / "june.csv", 6, ["market", "football"])
    before = files_of(place / "run")
    refused("update", place / "run", june, "--new-topics", 60, says=["too few for 60 new topics; ask for fewer"])
    refused("update", place / "run", june, "--out", place, says=[str(place)])
    refused("update", place / "run", place / "none.csv", says=["none.csv"])
    monkeypatch.setattr("topicloom.reports.run.write_topics", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        tl.update(place / "run", june, new_topics=1)
    assert files_of(place / "run") == before


def test_edits_of_the_service_survive_new_topics(place):
    run, june = place / "run", write_month(place / "june.csv", 6, ["market", "football"])
    model = tl.load(run)
    edits = [{"rename": {1: "second"}}, {"merge": [0, 2]}]
    write_edits(run / EDITS, edits, model.fingerprint, sealed=True)
    tl.update(run, june)
    assert read_edits(run / EDITS).edits == edits
    found = tl.update(run, write_month(place / "july.csv", 7, ["football"]), new_topics=1)
    stored = read_edits(run / EDITS)
    assert stored.edits == [*edits, *found.topics.edits]
    assert stored.fingerprint == tl.load(run).origin.fingerprint
    replayed = tl.Topics(model, found.topics.corpus).apply(stored.edits)
    assert replayed.given_names == [None, "second", None]
    assert set(replayed.model.topics(10)[2]) <= set(SUBJECTS["football"])


def test_an_update_does_not_count_repeated_documents_of_the_run(place, caplog):
    may, june = place / "may.csv", write_month(place / "june.csv", 6, ["weather"])
    lines = may.read_text(encoding="utf-8").splitlines()
    may.write_text("\n".join([*lines, *lines[1:20]]) + "\n", encoding="utf-8")
    call("train", may, "--text", "body", "--model", "lda", "--topics", 3, "--no-explorer", "--out", place / "copies")
    caplog.clear()
    with caplog.at_level("INFO", "topicloom"):
        tl.update(place / "copies", june)
    assert "repeat earlier ones" not in caplog.text


@pytest.mark.parametrize("with_vectors", [True, False])
def test_a_new_subject_of_short_texts_becomes_a_topic(tmp_path, with_vectors):
    random = np.random.default_rng(0)
    subjects = list(SUBJECTS)
    centres = np.eye(4, 16)

    def documents(n_each: dict[str, int]) -> tuple[list[str], list[str], np.ndarray | None]:
        # Most words are of all subjects, so that a text alone says little.
        names = [name for name, n in n_each.items() for _ in range(n)]
        texts = [
            " ".join([*random.choice(SUBJECTS[each][:6], 2), *random.choice(SUBJECTS["football"], 2)]) for each in names
        ]
        vectors = np.stack([centres[subjects.index(each)] + random.normal(0, 0.1, 16) for each in names])
        return names, texts, vectors.astype(np.float32) if with_vectors else None

    _, texts, vectors = documents({"weather": 60, "market": 60, "garden": 60})
    corpus = tl.Corpus.from_texts(texts, vectors=vectors, language="en", min_df=1)
    model = tl.LDA(3, random_state=0).fit(corpus)
    write(tmp_path / "run", model, corpus, model.infer(corpus), 0.0)
    names, new, vectors = documents({"weather": 20, "football": 20})
    found = tl.update(tmp_path / "run", new, vectors=vectors, new_topics=1, keep_repeated=True)
    assert found.new_topics == [3]
    is_football = np.array(names) == "football"
    mains = np.array(found.topics.documents.main_topics[180:])
    assert (mains[is_football] == 3).mean() > (0.95 if with_vectors else 0.6)
    assert (mains[~is_football] == 3).mean() < 0.1
    again = tl.Topics.from_run(tmp_path / "run")
    np.testing.assert_allclose(again.model.transform(again.corpus), found.topics.documents.theta, atol=1e-3)


def test_documents_like_the_old_ones_form_nothing_new(place, caplog):
    tl.update(place / "run", write_month(place / "june.csv", 6, ["weather", "market", "garden"]), new_topics=1)
    assert "form no group that the run lacks" in caplog.text


def test_new_topics_can_be_learned_from_documents_with_one_vector():
    planted = synthetic_lda(60, 3, 40, random_state=0).corpus
    vectors = np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32)
    vectors[40:] = vectors[40]
    corpus = planted.with_vectors(vectors)
    topics = tl.Topics(tl.LDA(3, epochs=3, random_state=0).fit(corpus), corpus)
    edited = topics.apply([{"add": 2, "rows": list(range(40, 60))}])
    assert edited.n_topics == 5
    np.testing.assert_allclose(edited.documents.theta.sum(1), 1, atol=1e-5)


def test_documents_outside_the_sample_belong_to_new_topics(monkeypatch):
    monkeypatch.setattr("topicloom.models.editing._MOST_DOCUMENTS", 20)
    is_new = np.arange(300) < 100  # only their vectors differ from those of the other documents
    random = np.random.default_rng(0)
    vectors = np.eye(4)[is_new.astype(int)] + random.normal(scale=0.1, size=(300, 4))
    corpus = tl.Corpus.from_counts(1 + random.poisson(0.3, (300, 20)), vectors=vectors)
    model = tl.LDA(3, epochs=2, neighbour_tokens=0, random_state=0).fit(corpus)
    shares = model.apply([{"add": 1, "rows": np.flatnonzero(is_new).tolist()}], corpus).transform(corpus)[:, -1]
    assert shares[is_new].mean() > 0.8 > 0.1 > shares[~is_new].mean()
