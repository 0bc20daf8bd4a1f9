"""Measures and word rankings, by hand on tiny cases and against the project's judge."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy import sparse

from topicloom.metrics import completion_split, document_npmi, perplexity, topic_diversity, topic_uniqueness
from topicloom.ranking import top_words, word_scores

JUDGE = Path(__file__).parents[2] / "shared" / "judge" / "judge.py"
COUNTS = sparse.csr_array(np.random.default_rng(0).poisson(0.7, (50, 40)).astype(np.float32))


@pytest.fixture(scope="module")
def judge() -> ModuleType:
    if not JUDGE.exists():
        pytest.skip("the judge, which compares models with their peers, is not beside this repository")
    spec = importlib.util.spec_from_file_location("judge", JUDGE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def model() -> tuple[np.ndarray, np.ndarray]:
    """theta (50, 4) and beta (4, 40)"""
    random = np.random.default_rng(1)
    return random.dirichlet(np.ones(4), 50), random.dirichlet(np.full(40, 0.1), 4)


# Perplexity.


def test_completion_split_adds_up():
    observed, scored = completion_split(COUNTS)
    assert (observed + scored != COUNTS).nnz == 0
    assert observed.sum() == pytest.approx(COUNTS.sum() / 2, rel=0.1)
    assert (observed.data > 0).all()
    assert (scored.data > 0).all()


def test_completion_split_is_the_seeds():
    first, same, other = (completion_split(COUNTS, seed)[0] for seed in (0, 0, 1))
    assert (first != same).nnz == 0
    assert (first != other).nnz > 0


def test_perplexity():
    # Four tokens of probabilities 1/2, 1/2, 1/4 and 1/16: their geometric mean is 1/4.
    assert perplexity(np.log([1 / 4, 1 / 64]), [2, 2]) == pytest.approx(4)
    assert perplexity([0.0], [0]) == float("inf")


def test_perplexity_is_the_judges(judge, model):
    theta, beta = model
    observed, scored = completion_split(COUNTS, seed=3)
    theirs, held = judge.split_counts(sparse.csr_matrix(COUNTS), seed=3)
    assert (sparse.csr_matrix(observed) != theirs).nnz == 0
    log_likelihood = (scored.toarray() * np.log(theta @ beta)).sum(axis=1)
    expected = judge.completion_perplexity(theta, beta, held)
    assert perplexity(log_likelihood, scored.sum(axis=1)) == pytest.approx(expected, rel=1e-6)


# Topics.


def test_topic_diversity():
    topics = [["a", "b", "c"], ["a", "b", "d"]]
    assert topic_diversity(topics) == pytest.approx(4 / 6)
    assert topic_diversity(topics, top_n=1) == pytest.approx(1 / 2)
    assert topic_diversity([["a"], ["b"]]) == 1
    assert topic_diversity([]) == 0


def test_topic_uniqueness():
    topics = [["a", "b"], ["a", "c"], ["d", "e"]]
    assert topic_uniqueness(topics) == pytest.approx((0.75 + 0.75 + 1) / 3)
    assert topic_uniqueness(topics[:1] * 4) == pytest.approx(1 / 4)
    assert topic_uniqueness([]) == 0


def test_document_npmi():
    # Words 0 and 1 are together in one document of four, word 2 is in all, words 0 and 3 never meet.
    documents = sparse.csr_array([[2, 1, 1, 0], [1, 0, 1, 0], [0, 3, 1, 1], [0, 0, 1, 0]])
    together = np.log((1 / 4) / (1 / 2 * 1 / 2)) / -np.log(1 / 4)
    topics = [[0, 1], [0, 3], [2, 2], [1, 3], [0]]
    with_three = np.log((1 / 4) / (1 / 2 * 1 / 4)) / -np.log(1 / 4)
    np.testing.assert_allclose(document_npmi(topics, documents), [together, -1, 1, with_three, 0])
    np.testing.assert_allclose(document_npmi([[0, 1, 3]], documents), [(together - 1 + with_three) / 3])
    np.testing.assert_allclose(document_npmi([[0, 1, 3]], documents, top_n=2), [together])


def test_topic_measures_are_the_judges(judge, model):
    topics = top_words(model[1], 25).tolist()
    topics[1][:5] = topics[0][:5]
    np.testing.assert_allclose(document_npmi(topics, COUNTS), judge.npmi(topics, sparse.csr_matrix(COUNTS)), rtol=1e-9)
    assert topic_diversity(topics) == pytest.approx(judge.diversity(topics))
    assert topic_uniqueness(topics) == pytest.approx(judge.uniqueness(topics))


# Ranking.


def test_relevance_one_is_probability(model):
    beta = model[1]
    scores = word_scores(beta, np.arange(40.0), relevance=1.0)
    np.testing.assert_allclose(scores, np.log(beta + 1e-12))


def test_relevance_weighs_probability_and_lift():
    topic_word, word_counts = np.array([[0.6, 0.4]]), np.array([5.0, 1.0])  # p(w) with one more each: 3/4 and 1/4
    lift = np.log(topic_word / [3 / 4, 1 / 4])
    np.testing.assert_allclose(word_scores(topic_word, word_counts, 0.0), lift)
    np.testing.assert_allclose(word_scores(topic_word, word_counts, 0.3), 0.3 * np.log(topic_word) + 0.7 * lift)


def test_the_default_does_not_trust_the_lift_of_rare_words():
    """Two words as frequent in the topic, one of them rare elsewhere: counts of 3 and 30 weigh as 53 and 80."""
    topic_word, word_counts = np.array([[0.01, 0.01]]), np.array([3.0, 30.0])
    ahead = -np.diff(word_scores(topic_word, word_counts))
    assert ahead == pytest.approx(0.5 * np.log(80 / 53))
    assert ahead < -np.diff(word_scores(topic_word, word_counts, 0.5))


def test_relevance_is_the_judges(judge, model):
    beta = model[1]
    counts = np.asarray(COUNTS.sum(axis=0)).ravel()
    np.testing.assert_allclose(
        word_scores(beta, counts, 0.6), judge.relevance(beta, sparse.csr_matrix(COUNTS), 0.6), rtol=1e-6
    )


def test_top_words():
    scores = np.array([[1.0, 3.0, 2.0, 3.0], [0.0, 0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(top_words(scores, 3), [[1, 3, 2], [0, 1, 2]])
    np.testing.assert_array_equal(top_words(scores, 9), [[1, 3, 2, 0], [0, 1, 2, 3]])


def test_ties_go_to_the_lower_word():
    scores = np.random.default_rng(0).integers(0, 9, (3, 400)).astype(float)
    np.testing.assert_array_equal(top_words(scores, 250), np.argsort(-scores, axis=1, kind="stable")[:, :250])
