"""Documents that fit no topic."""

from __future__ import annotations

import csv

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import cosine_similarity

import topicloom as tl
from command_line import call, refused

SUBJECTS = {name: [f"{name}{chr(97 + each)}" for each in range(12)] for name in ("sea", "law", "art")}
WORDS = [word for words in SUBJECTS.values() for word in words]


def texts_of(n: int, seed: int, n_mixed: int = 0) -> list[str]:
    """Return texts of one subject each, and at last texts of all words."""
    random = np.random.default_rng(seed)
    subjects = list(SUBJECTS.values())
    texts = [" ".join(random.choice(subjects[each % 3], random.integers(4, 9))) for each in range(n)]
    return texts + [" ".join(random.choice(WORDS, 6)) for _ in range(n_mixed)]


@pytest.fixture(scope="module")
def topics() -> tl.Topics:
    corpus = tl.Corpus.from_texts(texts_of(90, 0, 3), language="en", min_df=2)
    return tl.Topics(tl.LDA(3, random_state=0, epochs=20).fit(corpus), corpus)


def test_mixed_documents_fit_worst(topics):
    found = topics.outliers(3)
    assert set(found["document"]) == {90, 91, 92}
    assert found["outlier"] == [True] * 3
    assert topics.outliers(None)["fit"] == sorted(topics.outliers(None)["fit"])


def test_fit_is_what_a_slow_reference_finds(topics):
    """p of each criterion is counted document by document, and so is the share of lower mean logarithms."""
    theta = topics.documents.theta.astype(float)
    weights = TfidfVectorizer(sublinear_tf=True, token_pattern="[a-z]+").fit_transform(topics.documents.texts)
    cosines = cosine_similarity(weights)
    np.fill_diagonal(cosines, -1)
    near = np.sort(cosines, axis=1)[:, -5:].mean(axis=1)
    n, share = len(theta), theta.max(axis=1)

    def p(values):
        return np.array([np.mean(values <= value + 1e-12) for value in values])

    score = (np.log(p(share)) + np.log(p(near))) / 2
    found = topics.outliers(None)
    rows = np.array(found["document"])
    np.testing.assert_allclose(found["similarity"], near[rows], atol=1e-9)
    np.testing.assert_allclose(found["fit"], p(score)[rows], atol=1.5 / n)  # equal scores may round apart


def test_new_documents_are_judged_by_those_of_the_run(topics):
    new = [*texts_of(30, 1), " ".join(WORDS[::7]), "words of nothing"]
    found = topics.outliers(None, X=new)
    fit = dict(zip(found["document"], found["fit"], strict=True))
    assert min(fit, key=lambda row: fit[row] if row != 31 else 1) == 30
    assert found["document"][-1] == 31  # without a known word
    assert (fit[31], found["topic"][-1]) == (0, None)
    assert np.mean([fit[row] < 0.05 for row in range(30)]) < 0.2
    alone = topics.outliers(1, X=[new[30]])
    assert alone["fit"] == [fit[30]]


def test_vectors_tell_documents_that_are_like_no_others(topics):
    random = np.random.default_rng(0)
    vectors = np.repeat(np.eye(3, 8), 31, axis=0) + 0.05 * random.standard_normal((93, 8))
    vectors[7] = -np.ones(8)
    vectors[8] = 0  # no vector
    seen = topics.corpus.with_vectors(vectors.astype(np.float32))
    found = tl.Topics.of(topics.model, seen, topics.documents).outliers(None)
    similarity = dict(zip(found["document"], found["similarity"], strict=True))
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    cosines = units @ units.T
    np.fill_diagonal(cosines, -2)
    cosines[:, 8] = -2
    near = np.sort(cosines, axis=1)[:, -5:].mean(axis=1)
    rows = [row for row in range(93) if row != 8]
    np.testing.assert_allclose([similarity[row] for row in rows], near[rows], atol=1e-5)
    assert min(rows, key=similarity.get) == 7


def test_of_many_documents_a_part_stands_for_all(topics, monkeypatch):
    monkeypatch.setattr("topicloom.topics.outliers._MOST_COMPARED", 60)
    part = tl.Topics.of(topics.model, topics.corpus, topics.documents).outliers(None)
    whole = topics.outliers(None)
    assert set(part["document"][:5]) >= set(whole["document"][:2])
    assert all(0 < fit <= 1 for fit in part["fit"])


def test_commands_show_outliers_and_add_columns(tmp_path):
    source, new = tmp_path / "old.csv", tmp_path / "new.csv"
    for path, texts in ((source, texts_of(90, 0, 3)), (new, [*texts_of(5, 1), "words of nothing"])):
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["text"], *([text] for text in texts)])
    run = tmp_path / "run"
    call("train", source, "--model", "lda", "--topics", 3, "--epochs", 20, "--min-df", 2, "--language", "en", "--out",
         run, "--no-explorer", "--quiet")  # fmt: skip
    call("documents", run, "--outliers", "-n", 3, "--out", tmp_path / "outliers.csv")
    with (tmp_path / "outliers.csv").open(encoding="utf-8") as file:
        assert {row["document"] for row in csv.DictReader(file)} == {"90", "91", "92"}
    plain, more = tmp_path / "plain.csv", tmp_path / "more.csv"
    call("infer", run, new, "--out", plain)
    call("infer", run, new, "--out", more, "--outliers")
    before, after = (path.read_text(encoding="utf-8").splitlines() for path in (plain, more))
    assert [line.rsplit(",", 2)[0] for line in after] == before
    assert after[0].endswith(",text,fit,outlier")
    assert after[-1].endswith(",0.0,True")
    refused("documents", run, 1, "--outliers", says=["leave out the topic"])
    refused("infer", run, new, "--outliers", "--by-parent", says=["leave out --by-parent"])
    refused("infer", run / "model", new, "--outliers", says=["does not hold its documents"])
