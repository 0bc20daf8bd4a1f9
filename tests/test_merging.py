"""Merging of runs: the documents of all, and their topics, of which similar ones are joined."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import dirichlet

import topicloom as tl
from command_line import call, refused
from test_updating import SUBJECTS, write_month
from topicloom.reports.merging import _dirichlet_parameter, completed
from topicloom.reports.run import write
from topicloom.topics.saved import METRICS

OPTIONS = ("--text", "body", "--covariate", "source", "--no-explorer", "--min-df", 2, "--quiet")


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("merging")
    may = write_month(folder / "may.csv", 5, ["weather", "market", "garden"])
    june = write_month(folder / "june.csv", 6, ["market", "football", "garden"])
    lda, gsm = ("--model", "lda", "--epochs", 10), ("--model", "gsm", "--epochs", 40)
    call("train", may, *OPTIONS, *lda, "--topics", 3, "--out", folder / "plain-may")
    call("train", june, *OPTIONS, *gsm, "--topics", 3, "--out", folder / "plain-june")
    topics = tl.Topics.from_run(folder / "plain-june")
    names = {topics.documents[topics.documents.labels.index(name) :].main_topics[0]: name for name in ("football",)}
    others = [k for k in range(3) if k not in names]
    call("edit", folder / "plain-may", "--rename", "1=money", "--out", folder / "may", "--quiet")
    edits = [f"{others[0]}=one", f"{others[1]}=two", *(f"{k}=money" for k in names)]
    renames = [part for edit in edits for part in ("--rename", edit)]
    call("edit", folder / "plain-june", *renames, "--out", folder / "june", "--quiet")
    return folder


@pytest.fixture(scope="module")
def merged(runs) -> tl.MergedRuns:
    return tl.merge([runs / "may", runs / "june"], runs / "both")


def test_topics_of_one_subject_are_joined(merged):
    assert [len(merged.topics), len(merged.joined)] == [4, 2]
    assert [origin.numbers[0] for origin in merged.origins] == [0, 1, 2, None]
    labels, mains = np.array(merged.topics.documents.labels), np.array(merged.topics.documents.main_topics)
    for label in ("weather", "market", "garden", "football"):
        counts = np.bincount(mains[labels == label], minlength=4)
        assert counts.max() >= 0.95 * counts.sum()
    assert len({int(np.bincount(mains[labels == label]).argmax()) for label in SUBJECTS}) == 4
    assert all(sum(number is None for number in origin.numbers) == (not origin.is_joined) for origin in merged.origins)


def test_a_joined_topic_is_the_mean_of_its_parts(runs, merged):
    parts = [tl.Topics.from_run(runs / name) for name in ("may", "june")]
    words = [word for word in parts[0].vocabulary if word in parts[1].vocabulary]
    for origin in merged.joined:
        topics, tokens = [], []
        for part, number in zip(parts, origin.numbers, strict=True):
            topics.append([part.components[number, part.vocabulary.index(word)] for word in words])
            of_documents = part.corpus.counts.toarray().sum(axis=1)
            tokens.append(
                sum(n * float(row[number]) for n, row in zip(of_documents, part.documents.theta, strict=True))
            )
        mean = np.average(topics, axis=0, weights=tokens)
        found = [merged.topics.components[origin.topic, merged.topics.vocabulary.index(word)] for word in words]
        np.testing.assert_allclose(np.array(found) / sum(found), mean / mean.sum(), rtol=1e-3, atol=1e-6)


def test_names_of_both_runs_are_kept(merged):
    assert merged.topics.given_names[1] == "money"
    assert {"one", "two"} & set(filter(None, merged.topics.given_names))
    assert merged.topics.given_names[3] == "money (june)"
    assert merged.renamed == {3: "money (june)"}
    assert any("money (june)" in sentence for sentence in merged.sentences())


def test_documents_of_both_runs_keep_their_fields(runs, merged):
    saved = tl.Topics.from_run(runs / "both")
    assert merged.n_documents == [120, 120]
    assert len(saved.corpus) == 240
    assert saved.corpus.covariates["run"].values()[::120] == ["may", "june"]
    assert saved.corpus.covariates["source"].values()[::120] == ["paper5", "paper6"]
    np.testing.assert_array_equal(saved.documents.theta, merged.topics.documents.theta)
    np.testing.assert_allclose(saved.model.transform(saved.corpus), saved.documents.theta, atol=1e-5)
    column = saved.vocabulary.index("goalkeeper")  # which the run of May does not know
    assert saved.corpus.counts[:, [column]].sum() == 5
    about = json.loads((runs / "both" / METRICS).read_text(encoding="utf-8"))["merged"]
    assert about["runs"] == ["may", "june"]
    assert [topic["numbers"] for topic in about["topics"]] == [list(each.numbers) for each in merged.origins]


def test_everything_works_on_a_merged_run(runs, merged, tmp_path):
    july = write_month(tmp_path / "july.csv", 7, ["market", "football"])
    call("edit", runs / "both", "--merge", "0,1", "--out", tmp_path / "edited", "--quiet")
    assert json.loads((tmp_path / "edited" / METRICS).read_text(encoding="utf-8"))["merged"]["runs"] == ["may", "june"]
    found = tl.update(runs / "both", july, out=tmp_path / "updated")
    assert found.n_documents == 80
    assert found.badly_explained_share < 0.2
    refused("train", "--continue", runs / "both", "--epochs", "+1", says=["merged from other runs", "both/documents"])
    refused("train", "--continue", tmp_path / "updated", "--epochs", "+1", says=["merged from other runs"])
    again = tl.merge([runs / "both", runs / "plain-june"], tmp_path / "again")
    assert [len(again.topics), again.n_documents, again.n_repeated] == [4, [240, 0], 120]
    assert set(again.topics.corpus.covariates["run"].values()) == {"may", "june"}
    assert tl.Topics.from_run(runs / "both").by("run").groups == ["june", "may"]


def test_a_run_whose_documents_are_repeated_gives_its_topics(runs, tmp_path):
    tl.update(runs / "plain-may", runs / "june.csv", out=tmp_path / "year")
    found = tl.merge([tmp_path / "year", runs / "plain-june"], tmp_path / "both")
    assert (found.n_documents, found.n_repeated) == ([240, 0], 120)
    assert len(found.topics) == 4
    assert found.shares[0].sum() == pytest.approx(1, abs=1e-5)
    assert set(found.table()["share in plain-june"]) == {None}  # it has no documents of its own
    column = found.topics.vocabulary.index("goalkeeper")  # known to the second run alone, and in documents of the first
    assert found.topics.corpus.counts[:, [column]].sum() == 5


def test_documents_with_few_common_words_are_not_repeated(tmp_path):
    """Without texts, documents can be compared only by the words that both runs know."""
    long = " ".join(f"word{n}" for n in range(12))
    for name, texts in (
        ("one", ["cat dog mouse", "rain sun snow", "fish", "bird cow", f"{long} hen"]),
        ("two", ["cat dog virus", "bank loan price", "tax", "sun snow rain", f"{long} oil"]),
    ):
        corpus = tl.Corpus.from_texts(texts * 3, language="en", min_df=1, max_df=1.0, keep_texts=False)
        model = tl.LDA(2, epochs=1, random_state=0).fit(corpus)
        write(tmp_path / name, model, corpus, model.infer(corpus), 0.0)
    found = tl.merge([tmp_path / "one", tmp_path / "two"], tmp_path / "both")
    assert (found.n_documents, found.n_repeated) == ([15, 9], 6)
    assert {"virus", "bank", "tax"} <= set(np.array(found.topics.vocabulary)[found.topics.corpus.word_counts > 0])


def test_a_covariate_named_run_is_replaced_with_a_warning(tmp_path, caplog):
    texts = ["cat dog mouse", "rain sun snow"] * 6
    for name, values in (("one", ["x", "y"] * 6), ("two", [1.5] * 12)):
        corpus = tl.Corpus.from_texts([f"{text} {name}" for text in texts], covariates={"run": values})
        model = tl.LDA(2, epochs=1, random_state=0).fit(corpus)
        write(tmp_path / name, model, corpus, model.infer(corpus), 0.0)
    found = tl.merge([tmp_path / "one", tmp_path / "two"], tmp_path / "both")
    assert found.topics.corpus.covariates["run"].values() == ["one"] * 12 + ["two"] * 12
    said = [record.message for record in caplog.records if "covariate 'run'" in record.message]
    assert len(said) == 2


def test_runs_that_differ_are_refused(runs, tmp_path):
    german = write_month(tmp_path / "german.csv", 8, ["market", "garden"])
    lda = ("--model", "lda", "--epochs", 1, "--topics", 2)
    call("train", german, *OPTIONS, *lda, "--language", "de", "--out", tmp_path / "german")
    (tmp_path / "stop.txt").write_text("marketa", encoding="utf-8")
    call("train", german, *OPTIONS, *lda, "--stop-words", tmp_path / "stop.txt", "--out", tmp_path / "other")
    may, out = runs / "may", ("--out", tmp_path / "out")
    refused("merge", may, tmp_path / "german", *out, says=["English", "German", "only runs of one language"])
    refused("merge", may, tmp_path / "other", *out, says=["split texts in different ways", "train both"])
    refused("merge", may, *out, says=["give two or more"])
    refused("merge", may, may, *out, says=["twice"])
    refused("merge", may, runs / "june", "--out", may, says=["one of the runs"])
    assert not (tmp_path / "out").exists()


def test_unknown_words_of_topics_are_learned_from_documents():
    random = np.random.default_rng(0)
    truth = random.dirichlet(np.full(60, 0.2), 4)
    theta = random.dirichlet(np.full(4, 0.3), 1500)
    counts = np.array([random.multinomial(80, row @ truth) for row in theta])
    corpus = tl.Corpus.from_counts(counts, [f"w{each}" for each in range(60)])
    known = np.ones((4, 60), bool)
    known[0, :20] = known[3, 40:] = False
    given = np.where(known, truth, 0)
    topics, alpha = completed(given / given.sum(axis=1, keepdims=True), known, corpus)
    assert np.abs(topics - truth).sum(axis=1).max() < 0.1
    np.testing.assert_allclose(topics[1], truth[1], atol=1e-6)
    np.testing.assert_allclose(alpha, 0.3, atol=0.1)


def test_the_dirichlet_parameter_is_the_most_likely_one():
    sample = np.random.default_rng(1).dirichlet([0.2, 1.5, 0.7], 400) + 1e-12
    sample /= sample.sum(axis=1, keepdims=True)
    best = minimize(lambda log: -dirichlet.logpdf(sample.T, np.exp(log)).sum(), np.zeros(3)).x
    found = np.full(3, 1 / 3)
    for _ in range(20):
        found = _dirichlet_parameter(np.log(sample).mean(axis=0), found)
    np.testing.assert_allclose(found, np.exp(best), rtol=1e-3)


def test_a_model_of_given_topics_refuses_what_is_none():
    corpus = tl.Corpus.from_counts([[2, 1, 0], [0, 1, 3]], ["cat", "dog", "rain"])
    for topics, alpha in (([[1, 0], [0, 1]], None), ([[1, -1, 0], [0, 1, 0]], None), ([[1, 0, 0], [0, 0, 0]], None)):
        with pytest.raises(tl.InputError, match="`topics`"):
            tl.LDA.of_topics(topics, corpus, alpha)
    with pytest.raises(tl.InputError, match="`alpha`"):
        tl.LDA.of_topics([[1, 0, 0], [0, 1, 1]], corpus, [1, 2, 3])
    with pytest.raises(tl.InputError, match="numbers"):
        tl.LDA.of_topics([["a", 0, 0], [0, 1, 1]], corpus)
    with pytest.raises(tl.InputError, match="`corpus`"):
        tl.LDA.of_topics([[1, 0, 0], [0, 1, 1]], ["cat dog"])
