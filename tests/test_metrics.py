"""Measures and word rankings, by hand on tiny cases and against the project's judge."""

from __future__ import annotations

import copy
import importlib.util
import json
import pickle
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy import sparse

from topicloom.errors import InputError
from topicloom.metrics import (
    Measured,
    active_topics,
    active_units_by_divergence,
    active_units_by_variance,
    adjusted_rand_index,
    c_npmi,
    classification_accuracy,
    completion_split,
    cross_validated_accuracy,
    document_npmi,
    duplicate_topics,
    embedding_diversity,
    frequent_mass,
    inverted_rbo,
    kl_per_dimension,
    largest_share,
    normalised_mutual_information,
    perplexity,
    pooled_npmi,
    purity,
    rank_biased_overlap,
    redundancy,
    topic_diversity,
    topic_uniqueness,
    u_mass,
)
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


# Figures with their settings.


def test_a_figure_is_a_number_with_its_settings():
    figure = topic_diversity([["a", "b"], ["a", "c"]], top_n=2)
    assert (figure, figure + 1, figure.settings) == (0.75, 1.75, {"top_n": 2})
    assert json.dumps([figure]) == "[0.75]"
    again = pickle.loads(pickle.dumps(figure))
    assert (type(again), again, again.settings) == (Measured, figure, figure.settings)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_figure_survives_pickling(protocol):
    figure = document_npmi([[0, 1], [2, 3]], COUNTS)
    for again in (pickle.loads(pickle.dumps(figure, protocol)), copy.deepcopy(figure), copy.copy(figure)):
        assert (type(again), again, again.settings) == (Measured, figure, figure.settings)
        np.testing.assert_array_equal(again.per_topic, figure.per_topic)


def test_a_figure_as_json():
    figure = Measured(np.inf, per_topic=np.array([1.0, 0.0]), undefined=(1,), unseen=(np.int64(7), "a"), top_n=2)
    said = {"value": None, "top_n": 2, "per_topic": [1.0, 0.0], "undefined": [1], "unseen": [7, "a"]}
    assert json.loads(json.dumps(figure.to_dict())) == said


# Perplexity.


def test_completion_split_adds_up():
    observed, scored = completion_split(COUNTS)
    assert (observed + scored != COUNTS).nnz == 0
    assert observed.sum() == pytest.approx(COUNTS.sum() / 2, rel=0.1)
    assert (observed.data > 0).all()
    assert (scored.data > 0).all()


def test_completion_split_of_weights_gives_each_fraction_to_one_half():
    weights = COUNTS + 0.25 * (COUNTS > 0)
    halves = [half.toarray() for half in completion_split(weights)]
    np.testing.assert_allclose(halves[0] + halves[1], weights.toarray())
    tokens = [np.floor(half) for half in halves]
    assert {*np.unique(halves[0] - tokens[0])} == {*np.unique(halves[1] - tokens[1])} == {0, 0.25}
    whole = [half.toarray() for half in completion_split(COUNTS)]  # the tokens are divided as without fractions
    np.testing.assert_array_equal(tokens, whole)
    assert halves[0].sum() == pytest.approx(weights.sum() / 2, rel=0.1)


def test_completion_split_of_huge_counts():
    """As `fit` takes them: 2**63 and more tokens cannot be drawn."""
    huge = sparse.csr_array(np.array([[2.0**62, 2.0**63, 1e38, 3.0]], np.float32))
    observed, scored = (half.toarray()[0] for half in completion_split(huge))
    np.testing.assert_allclose(observed[:3], huge.data[:3] / 2, rtol=1e-6)
    np.testing.assert_allclose(observed + scored, huge.data, rtol=1e-6)


def test_completion_split_is_the_seeds():
    first, same, other = (completion_split(COUNTS, seed)[0] for seed in (0, 0, 1))
    assert (first != same).nnz == 0
    assert (first != other).nnz > 0


def test_perplexity():
    # Four tokens of probabilities 1/2, 1/2, 1/4 and 1/16: their geometric mean is 1/4.
    assert perplexity(np.log([1 / 4, 1 / 64]), [2, 2]) == pytest.approx(4)
    assert perplexity([0.0], [0]) == float("inf")


def test_perplexity_needs_the_tokens_of_each_document():
    for tokens in ([4], [4, 2, 1]):
        with pytest.raises(InputError, match=f"2 log likelihoods and {len(tokens)} numbers of tokens"):
            perplexity([-10.0, -5.0], tokens)


def test_perplexity_by_document_and_by_corpus():
    # Two tokens of 1/2 each, and six of 1/8: documents weigh alike, or tokens do. The empty document says nothing.
    logs, tokens = [2 * np.log(1 / 2), 6 * np.log(1 / 8), -3.0], [2, 6, 0]
    by_corpus, by_document = perplexity(logs, tokens), perplexity(logs, tokens, "document")
    assert by_corpus == pytest.approx(2 ** ((2 * 1 + 6 * 3) / 8))
    assert by_document == pytest.approx(2 ** ((1 + 3) / 2))
    assert by_corpus.settings == {"average": "corpus", "documents": 2, "tokens": 8}
    assert by_document.settings["average"] == "document"
    assert perplexity([], [], "document") == float("inf")
    assert perplexity([-1e9], [1]) == float("inf")
    with pytest.raises(ValueError, match='"corpus" or "document"'):
        perplexity(logs, tokens, "word")


def test_perplexity_is_the_judges(judge, model):
    theta, beta = model
    observed, scored = completion_split(COUNTS, random_state=3)
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


def endless_overlap(first, second, p, deepest=3000):
    """Rank-biased overlap summed from its definition, agreement past the last word staying what it was there."""
    shorter, longer = sorted((first, second), key=len)
    total = 0.0
    for depth in range(1, deepest):
        seen = min(depth, len(longer))
        shared = len(set(longer[:seen]) & set(shorter[:seen]))
        unseen = max(seen - len(shorter), 0) * len(set(longer[: len(shorter)]) & set(shorter)) / len(shorter)
        total += (1 - p) * p ** (depth - 1) * (shared + unseen) / seen
    return total


def test_rank_biased_overlap_by_hand():
    # Depth 1: none of 1. Depth 2: both of 2. From there on they agree.
    overlap = rank_biased_overlap([["a", "b"], ["b", "a"], ["c", "d"]], weight=0.9)
    np.testing.assert_allclose(overlap, [[1, 0.9, 0], [0.9, 1, 0], [0, 0, 1]], atol=1e-12)
    assert inverted_rbo([["a", "b"], ["b", "a"], ["c", "d"]]) == pytest.approx(1 - 0.3)


@pytest.mark.parametrize("weight", [0.5, 0.9, 0.98])
def test_rank_biased_overlap_is_the_definitions(weight):
    random = np.random.default_rng(0)
    topics = [random.permutation(16)[:length].tolist() for length in (10, 10, 10, 7, 3, 1, 9)]
    expected = [[endless_overlap(one, other, weight) for other in topics] for one in topics]
    np.testing.assert_allclose(rank_biased_overlap(topics, weight), expected, atol=1e-9)
    np.testing.assert_allclose(rank_biased_overlap(topics, weight, top_n=4)[0, 1],
                               endless_overlap(topics[0][:4], topics[1][:4], weight))  # fmt: skip
    above = [expected[i][j] for i in range(7) for j in range(i + 1, 7)]
    found = inverted_rbo(topics, weight)
    assert found == pytest.approx(1 - np.mean(above))
    assert found.settings == {"top_n": 10, "weight": weight, "overlap": "extrapolated", "pairs": 21}


def test_inverted_rbo_at_the_edges():
    assert inverted_rbo([["a", "b"]] * 3) == pytest.approx(0)
    assert inverted_rbo([["a", "b"], ["c", "d"]]) == 1
    for topics in ([], [["a"]], [["a"], []]):
        assert (inverted_rbo(topics), inverted_rbo(topics).settings["pairs"]) == (1, 0)
    assert inverted_rbo([["a", "b"], [], ["a", "b"]]) == pytest.approx(0)
    assert inverted_rbo([["a", "a", "b"], ["a", "b"]]) == pytest.approx(0)  # a repeat is no further word
    with pytest.raises(ValueError, match="above 0 and below 1"):
        inverted_rbo([["a"]], weight=1.0)
    with pytest.raises(ValueError, match="above 0 and below 1"):
        rank_biased_overlap([["a"], ["b"]], weight=1.0)
    with pytest.raises(ValueError, match="topic 1 has no words"):
        rank_biased_overlap([["a"], []])


def test_embedding_diversity():
    vectors = {"east": np.array([1.0, 0]), "north": np.array([0, 2.0]), "west": np.array([-1.0, 0])}
    assert embedding_diversity([["east"], ["north"]], vectors) == pytest.approx(1)
    assert embedding_diversity([["east"], ["west"]], vectors) == pytest.approx(2)
    # Centroids (1/2, 1) and (1, 0): the cosine is (1/2) / sqrt(5/4).
    half = embedding_diversity([["east", "north", "unheard"], ["east"], ["unheard"]], vectors)
    assert half == pytest.approx(1 - 0.5 / np.sqrt(1.25))
    assert half.settings == {"top_n": 10, "pairs": 1, "words_without_vector": 2, "topics_left_out": 1}
    ids = embedding_diversity([[0, 1], [0]], np.array([[1.0, 0], [0, 2.0]]))
    assert ids == pytest.approx(float(half))
    nowhere = embedding_diversity([["east", "west"], ["north"], []], vectors)  # a centroid of 0 points nowhere
    assert (nowhere, nowhere.settings["pairs"], nowhere.settings["topics_left_out"]) == (1, 0, 2)


@pytest.mark.parametrize("word", [3, -1, "east", 0.0])
def test_rows_of_vectors_are_found_by_word_ids(word):
    with pytest.raises(InputError, match=r"is no row of 3 vectors; give word ids|neither a word nor the number of one"):
        embedding_diversity([[0], [word]], np.eye(3))


def test_redundancy():
    words = [[f"{letter}{n}" for n in range(10)] for letter in "ab"]
    topics = [*words, [*words[0][:8], "x", "y"], [*words[0][:7], "x", "y", "z"]]
    assert duplicate_topics(topics) == 2  # 0 and 2 share 8 words; 2 and 3 share 9
    assert redundancy(topics) == pytest.approx(2 / 6)
    assert redundancy(topics).settings == {"top_n": 10, "shared": 8, "pairs": 6}
    assert redundancy(topics, shared=7) == pytest.approx(3 / 6)
    assert duplicate_topics([[], [], ["a"]]) == 0  # topics without words have none in common
    assert (redundancy([["a"]]), redundancy([])) == (0, 0)


VECTORS = {"game": np.ones(2), "win": np.ones(2)}


@pytest.mark.parametrize(
    "measure",
    [
        topic_diversity,
        topic_uniqueness,
        inverted_rbo,
        rank_biased_overlap,
        redundancy,
        duplicate_topics,
        lambda topics, top_n=10: embedding_diversity(topics, VECTORS, top_n),
    ],
)
def test_diversity_is_that_of_lists_of_words(measure):
    for topics in (["game", "win"], np.array(["game", "win"]), np.arange(3), None, 3):
        with pytest.raises(InputError, match=r"give a list of topics|give one, each topic a list"):
            measure(topics)
    for top_n in (0, -1):
        with pytest.raises(InputError, match=f"`top_n={top_n}` leaves no word"):
            measure([["game", "win"], ["win"]], top_n=top_n)
    topics = [["game", "win"], ["win"]]
    np.testing.assert_array_equal(measure(iter(topics)), measure(topics))


# Collapse.


def test_active_units():
    means = np.array([[1.0, 0.5, 3.0], [-1.0, 0.5, 3.3], [1.0, 0.5, 3.0], [-1.0, 0.5, 3.1]])  # variances 1, 0, .015
    assert active_units_by_variance(means) == 2
    assert active_units_by_variance(means, threshold=0.1) == 1
    assert active_units_by_variance(means).settings == {
        "by": "variance of the posterior mean", "threshold": 0.01, "units": 3,
    }  # fmt: skip
    divergence = np.array([[0.5, 0.0, 0.01], [1.5, 0.018, 0.03]])
    found = kl_per_dimension(divergence)
    np.testing.assert_allclose(found.per_dimension, [1, 0.009, 0.02])
    assert (found, found.settings) == (pytest.approx(1.029 / 3), {"unit": "nats", "units": 3})
    assert active_units_by_divergence(divergence) == 2
    assert active_units_by_divergence(divergence).settings["by"] == "mean divergence"
    nobody = np.zeros((0, 3))
    assert (
        active_units_by_variance(nobody),
        active_units_by_divergence(nobody),
        active_units_by_divergence(means[:, :0]),
    ) == (0, 0, 0)


def test_topics_that_somebody_has_and_words_that_everybody_has():
    assert active_topics(np.array([[0.6, 0.3, 0.1], [0.5, 0.4, 0.1], [0.1, 0.2, 0.7]])) == 2
    assert active_topics(np.zeros((0, 3))) == 0
    assert largest_share(np.array([[0.6, 0.3, 0.1], [0.2, 0.7, 0.1]])) == pytest.approx(0.5)
    assert largest_share(np.zeros((0, 3))) == 0
    found = frequent_mass(np.array([[0.5, 0.2, 0.3], [0.1, 0.1, 0.8]]), np.array([1, 9, 5]), top_n=2)
    assert (found, found.settings) == (pytest.approx((0.5 + 0.9) / 2), {"top_n": 2})


# Classes.


def test_clusters_by_hand():
    labels, clusters = list("aaabbb"), [0, 0, 1, 1, 1, 7]
    assert purity(labels, clusters) == pytest.approx(5 / 6)
    assert purity(labels, clusters).settings == {"documents": 6, "classes": 2, "clusters": 3}
    # Pairs in one class 6, in one cluster 4, in both 2, of 15: (2 - 24/15) / ((6 + 4) / 2 - 24/15).
    assert adjusted_rand_index(labels, clusters) == pytest.approx((2 - 24 / 15) / (5 - 24 / 15))
    entropy = {"class": np.log(2), "cluster": -(2 * np.log(1 / 3) + 3 * np.log(1 / 2) + np.log(1 / 6)) / 6}
    joint = -(2 * np.log(2 / 6) + 1 * np.log(1 / 6) + 2 * np.log(2 / 6) + np.log(1 / 6)) / 6
    mutual = entropy["class"] + entropy["cluster"] - joint
    found = normalised_mutual_information(labels, clusters)
    assert found == pytest.approx(2 * mutual / (entropy["class"] + entropy["cluster"]))


@pytest.mark.parametrize("measure", [purity, normalised_mutual_information, adjusted_rand_index])
@pytest.mark.parametrize(
    ("labels", "clusters", "message"),
    [
        ([1, 2, 1], [0], "`labels` should have a value for each document, 1 in all; it has 3"),
        ([1], [0, 1], "2 in all; it has 1"),
        ([[1], [2]], [0, 1], r"one value for each document; its shape is \(2, 1\)"),
        ([1, 2], np.eye(2), r"`clusters` should have one value for each document; its shape is \(2, 2\)"),
        (["a", None], [0, 1], "`labels` has no value for document 1"),
        (["a", float("nan")], [0, 1], "`labels` has no value for document 1"),
        ([float("nan"), 2.0], [0, 1], "`labels` has no value for document 0"),
        ([1, 2], [0, None], "`clusters` has no value for document 1"),
    ],
)
def test_each_document_needs_a_class_and_a_cluster(measure, labels, clusters, message):
    with pytest.raises(InputError, match=message):
        measure(labels, clusters)


def test_each_document_needs_a_class_to_be_predicted():
    theta = np.eye(3)
    with pytest.raises(InputError, match=r"`labels_train` should .* 3 in all; it has 2"):
        classification_accuracy(theta, [0, 1], theta, [0, 1, 1])
    with pytest.raises(InputError, match="`labels_test` has no value for document 2"):
        classification_accuracy(theta, [0, 1, 1], theta, [0, 1, float("nan")])
    with pytest.raises(InputError, match=r"`labels` should .* 3 in all; it has 2"):
        cross_validated_accuracy(theta, [0, 1])


def test_one_class_or_none():
    assert purity(["a"] * 4, [0, 1, 1, 2]) == 1
    assert np.isfinite(
        [normalised_mutual_information(["a"] * 4, [0, 1, 1, 2]), adjusted_rand_index(["a"] * 4, [0] * 4)]
    ).all()
    assert (purity([], []), normalised_mutual_information([], []), adjusted_rand_index([], [])) == (0, 0, 0)
    theta = np.random.default_rng(0).dirichlet(np.ones(3), 6)
    assert classification_accuracy(theta, ["a"] * 6, theta, list("aaabbb")) == 0.5
    assert classification_accuracy(theta[:0], [], theta, ["a"] * 6) == 0
    assert cross_validated_accuracy(theta, ["a"] * 6) == 1
    assert cross_validated_accuracy(theta, list("abcdef")) == 0  # no class is there twice
    assert cross_validated_accuracy(theta[:0], []) == 0


def test_classes_that_follow_topics_are_predicted():
    random = np.random.default_rng(0)
    theta = np.concatenate([random.dirichlet([9, 1, 1], 40), random.dirichlet([1, 9, 1], 40)])
    labels = np.repeat(["a", "b"], 40)
    found = cross_validated_accuracy(theta, labels)
    assert found > 0.9
    assert found.settings == {
        "classifier": "logistic regression",
        "c": 10.0,
        "folds": 5,
        "random_state": 0,
        "documents": 80,
    }
    assert cross_validated_accuracy(theta, random.permutation(labels)) < 0.7


def test_class_measures_are_the_judges(judge):
    random = np.random.default_rng(2)
    labels = random.integers(0, 5, 300)
    theta = random.dirichlet(np.ones(8), 300) + np.eye(8)[labels] * 0.3
    theta /= theta.sum(axis=1, keepdims=True)
    theirs = judge.cluster(theta, labels)
    clusters = theta.argmax(axis=1)
    assert purity(labels, clusters) == pytest.approx(theirs["purity"], abs=1e-9)
    assert normalised_mutual_information(labels, clusters) == pytest.approx(theirs["nmi"], abs=1e-9)
    halves = theta[:200], labels[:200], theta[200:], labels[200:]
    assert classification_accuracy(*halves) == pytest.approx(judge.classify(*halves), abs=1e-9)


# Coherence over documents.


def test_document_npmi():
    # Words 0 and 1 are together in one document of four, word 2 is in all, words 0 and 3 never meet.
    documents = sparse.csr_array([[2, 1, 1, 0], [1, 0, 1, 0], [0, 3, 1, 1], [0, 0, 1, 0]])
    together = np.log((1 / 4) / (1 / 2 * 1 / 2)) / -np.log(1 / 4)
    topics = [[0, 1], [0, 3], [2, 2], [1, 3], [0]]
    with_three = np.log((1 / 4) / (1 / 2 * 1 / 4)) / -np.log(1 / 4)
    found = document_npmi(topics, documents)
    np.testing.assert_allclose(found.per_topic, [together, -1, 1, with_three, 0])
    assert found == pytest.approx((together + with_three) / 5)
    np.testing.assert_allclose(document_npmi([[0, 1, 3]], documents).per_topic, [(together - 1 + with_three) / 3])
    np.testing.assert_allclose(document_npmi([[0, 1, 3]], documents, top_n=2).per_topic, [together])


def test_npmi_of_pools_by_brute_force():
    rng = np.random.default_rng(0)
    counts = (rng.random((30, 8)) < 0.1).astype(int)
    pools = rng.integers(-1, 30, size=(25, 4))
    topics = [[0, 1, 2], [7, 3, 5], [4, 4, 6]]
    joined = np.array([counts[pool[pool >= 0]].sum(axis=0) for pool in pools])
    expected = document_npmi(topics, joined)
    found = pooled_npmi(topics, counts, pools)
    np.testing.assert_array_equal(found.per_topic, expected.per_topic)
    assert found.settings["n_documents"] == 25
    assert found.settings["pool_size"] == (pools >= 0).sum(axis=1).max()
    assert found != document_npmi(topics, counts)
    tokens = [[f"w{word}" for word in np.flatnonzero(row)] + ["other"] for row in counts]
    words = [[f"w{word}" for word in topic] for topic in topics]
    np.testing.assert_array_equal(pooled_npmi(words, tokens, pools).per_topic, expected.per_topic)
    assert pooled_npmi([["w0", "nowhere"]], tokens, pools).unseen == ("nowhere",)


@pytest.mark.parametrize("pools", [[[0, 30]], [[0, -2]], [0, 1], [[0.5, 1.0]], []])
def test_pools_of_other_documents_are_refused(pools):
    with pytest.raises(InputError, match="pools"):
        pooled_npmi([[0, 1]], np.ones((30, 2), int), pools)


def test_topic_measures_are_the_judges(judge, model):
    topics = top_words(model[1], 25).tolist()
    topics[1][:5] = topics[0][:5]
    np.testing.assert_allclose(
        document_npmi(topics, COUNTS).per_topic, judge.npmi(topics, sparse.csr_matrix(COUNTS)), rtol=1e-9
    )
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


def test_an_infinite_perplexity_is_reported(caplog):
    assert perplexity([-1e6], [2.0]) == float("inf")
    assert "the perplexity is infinite, because the log likelihood per token is -5e+05 nats" in caplog.text
    caplog.clear()
    assert np.isfinite(perplexity([-10.0], [2.0]))
    assert not caplog.records


@pytest.mark.parametrize("measure", [topic_diversity, inverted_rbo, lambda topics: c_npmi(topics, [["cat", "dog"]])])
@pytest.mark.parametrize(
    "topics",
    [
        np.array([[0.75, 0.25], [0.5, 0.5]], np.float32),  # the probabilities of words
        [("cat", 0.3), ("dog", 0.2)],
        [[("cat", 0.3), ("dog", 0.2)], [("cat", 0.1)]],  # what gensim's show_topics returns
        [[(0.3, "cat")]],
    ],
)
def test_topics_with_probabilities_are_refused(measure, topics):
    with pytest.raises(InputError, match=r"topic 0 contains .*neither a word nor the number of one.*model\.topics\(\)"):
        measure(topics)


@pytest.mark.parametrize("measure", [c_npmi, document_npmi, u_mass])
def test_a_reference_that_was_read_before_is_refused(measure):
    documents = iter([["cat", "dog"]])
    measure([["cat", "dog"]], documents)
    with pytest.raises(InputError, match="an iterator without documents, which may have been read before"):
        measure([["cat", "dog"]], documents)


def test_topic_shares_may_be_a_data_frame():
    pandas = pytest.importorskip("pandas")
    theta, labels = np.eye(2)[[0, 1] * 10], ["a", "b"] * 10
    frame = pandas.DataFrame(theta, index=range(100, 120))
    assert cross_validated_accuracy(frame, labels) == cross_validated_accuracy(theta, labels) == 1
    assert classification_accuracy(frame, labels, frame, labels) == 1
    assert active_topics(frame) == active_topics(theta) == 2
    for wrong in (theta.argmax(axis=1), theta * np.nan, labels):
        with pytest.raises(InputError, match=r"`theta` should be a \(D, K\) matrix"):
            cross_validated_accuracy(wrong, labels)
