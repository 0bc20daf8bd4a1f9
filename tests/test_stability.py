"""Topics matched across runs: by hand, and against a search of all matchings."""

from __future__ import annotations

import json
from itertools import permutations

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon
from scipy.stats import t

from topicloom.errors import InputError
from topicloom.metrics import jensen_shannon, match_topics, stability, topic_returns, topic_similarity

RANDOM = np.random.default_rng(0)
TOPICS = RANDOM.dirichlet(np.full(30, 0.1), 6)


def test_distances_by_hand():
    one = np.array([[1.0, 0, 0], [0.5, 0.5, 0]])
    other = np.array([[1.0, 0, 0], [0, 0, 1.0]])
    # Of (1, 0) and (1/2, 1/2) the middle is (3/4, 1/4).
    divergence = (np.log2(4 / 3) + (np.log2(2 / 3) + np.log2(2)) / 2) / 2
    np.testing.assert_allclose(jensen_shannon(one, other), [[0, 1], [np.sqrt(divergence), 1]], atol=1e-12)


def test_distances_are_scipys():
    other = RANDOM.dirichlet(np.full(30, 0.1), 4)
    expected = [[jensenshannon(p, q, base=2) for q in other] for p in TOPICS]
    np.testing.assert_allclose(jensen_shannon(TOPICS, other), expected, atol=1e-9)
    np.testing.assert_allclose(jensen_shannon(TOPICS * 7, other), expected, atol=1e-9)  # rows are normalised


def test_the_same_topics_in_another_order_all_return():
    order = np.array([3, 1, 5, 0, 2, 4])
    matching = match_topics(TOPICS, TOPICS[order])
    np.testing.assert_array_equal(order[matching.second], matching.first)
    assert matching.distance.tolist() == [0] * 6
    found = stability([TOPICS, TOPICS[order]])
    assert (found.distance, found.returning_by_distance, found.returning_by_words) == (0, 1, 1)


def test_the_matching_is_the_best_of_all():
    other = RANDOM.dirichlet(np.full(30, 0.1), 6)
    distances = jensen_shannon(TOPICS, other)
    best = min(distances[range(6), list(order)].sum() for order in permutations(range(6)))
    assert match_topics(TOPICS, other).distance.sum() == pytest.approx(best)


def blocks(*starts):
    """Topics of four words each, evenly, in a vocabulary of 20."""
    topics = np.zeros((len(starts), 20))
    for topic, start in zip(topics, starts, strict=True):
        topic[start : start + 4] = 0.25
    return topics


def test_topics_that_return_by_distance_and_by_words():
    # 4 and 5 share three words of four, 8 and 10 two, 12 and 16 none; a share s of words is at sqrt(1 - s).
    first, second = blocks(0, 4, 8, 12), blocks(16, 10, 5, 0)
    found = stability([first, second], threshold=0.6, top_n=4)
    assert found.distance == pytest.approx((0 + np.sqrt(1 / 4) + np.sqrt(1 / 2) + 1) / 4)
    assert found.returning_by_distance == 2 / 4
    assert found.returning_by_words == 3 / 4
    assert (found.runs, found.topics, found.threshold, found.top_n) == (2, 4, 0.6, 4)


def test_several_runs_are_all_pairs():
    runs = [blocks(0, 4), blocks(4, 0), blocks(0, 8)]
    found = stability(runs, top_n=4)
    assert found.pair_distances == pytest.approx((0, 0.5, 0.5))
    assert (found.distance, found.returning_by_distance) == (pytest.approx(1 / 3), pytest.approx((1 + 0.5 + 0.5) / 3))
    said = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert said["measure"] == "square root of the Jensen-Shannon divergence, base 2"
    assert said["pair_distances"] == list(found.pair_distances)


def test_a_ranking_of_ones_own():
    topics = blocks(0, 4)
    found = stability([topics, topics], [np.array([[0, 1], [2, 3]]), np.array([[0, 1], [4, 5]])], top_n=2)
    assert (found.returning_by_distance, found.returning_by_words) == (1, 0.5)


def test_more_topics_in_one_run_do_not_return():
    found = stability([blocks(0), blocks(8, 0)], top_n=4)
    assert (found.distance, found.returning_by_distance, found.returning_by_words) == (0, 0.5, 0.5)


def test_a_topic_without_mass_is_far_from_all():
    empty = np.vstack([blocks(0), np.zeros((1, 20))])
    np.testing.assert_array_equal(jensen_shannon(empty, empty), [[0, 1], [1, 1]])
    assert stability([empty, empty], top_n=4).returning_by_distance == 0.5


@pytest.mark.parametrize(
    ("runs", "says"),
    [
        ([TOPICS], "two runs or more; 1 given"),
        ([TOPICS, TOPICS[:, :9]], "over 30 and over 9 words"),
        ([TOPICS, TOPICS[:0]], "without topics"),
        ([TOPICS, -TOPICS], "not negative"),
        ([TOPICS, TOPICS * np.nan], "finite"),
    ],
)
def test_runs_that_cannot_be_compared(runs, says):
    with pytest.raises(ValueError, match=says):
        stability(runs)


def test_top_words_are_those_of_the_runs():
    words = np.argsort(-TOPICS, axis=1)[:, :10]
    found = stability([TOPICS, TOPICS], [words, words.tolist()])
    assert found == stability([TOPICS, TOPICS])
    for top_words in ([words], [words] * 3, [words, words[:5]], [words, words[0]]):
        with pytest.raises(InputError, match=r"`top_words` should have for each run a \(K, n\) array"):
            stability([TOPICS, TOPICS], top_words)
    with pytest.raises(InputError, match="`top_n=0` leaves no word"):
        stability([TOPICS, TOPICS], top_n=0)


@pytest.mark.parametrize("run", [object(), [["cat", "dog"]], [[1.0, 2.0], [1.0]]])
def test_runs_that_are_no_matrices_are_refused(run):
    for use in (lambda: stability([run, run]), lambda: match_topics(run, run)):
        with pytest.raises(InputError, match="such as `components_` of a model"):
            use()


def characteristic(topics):
    """What distinguishes topics from their mean, word by word."""
    mean = topics.mean(axis=0)
    rows = [[max(p * np.log(p / m), 0) if p else 0 for p, m in zip(row, mean, strict=True)] for row in topics]
    return np.array([np.array(row) / sum(row) for row in rows])


def test_similarity_is_one_minus_scipys_distance_of_characteristic_words():
    other = RANDOM.dirichlet(np.full(30, 0.1), 4)
    pairs = [[1 - jensenshannon(p, q, base=2) for q in characteristic(other)] for p in characteristic(TOPICS)]
    np.testing.assert_allclose(topic_similarity(TOPICS, other), pairs, atol=1e-9)


def test_returns_are_those_of_the_best_matching_of_all():
    others = [RANDOM.permutation(0.6 * TOPICS + 0.4 * RANDOM.dirichlet(np.full(30, 0.1), 6)) for _ in range(3)]
    found = topic_returns(TOPICS, others, threshold=0.55)
    for run, other in enumerate(others):
        similarity = topic_similarity(TOPICS, other)
        best = max(permutations(range(6)), key=lambda order: similarity[range(6), list(order)].sum())
        assert found.partners[:, run].tolist() == list(best)
        np.testing.assert_allclose(found.similarity[:, run], similarity[range(6), list(best)])
    returned = found.similarity >= 0.55
    assert 0 < returned.mean() < 1
    np.testing.assert_allclose(found.shares, returned.sum(axis=1) / 3)
    by_run = returned.sum(axis=0) / 6
    margin = t.ppf(0.975, 2) * by_run.std(ddof=1) / 3**0.5
    assert found.interval == pytest.approx((max(by_run.mean() - margin, 0), min(by_run.mean() + margin, 1)))


def test_topics_without_a_partner_do_not_return():
    found = topic_returns(TOPICS.tolist(), [TOPICS[[4, 2]].tolist()], n_chance=1)
    assert np.isfinite(found.chance)
    with pytest.raises(InputError, match="run 1 of the others has no topics"):
        topic_returns(TOPICS, [TOPICS, TOPICS[:0]])
    found = topic_returns(TOPICS, [TOPICS[[4, 2]]], n_chance=0)
    assert found.partners[:, 0].tolist() == [-1, -1, 1, -1, 0, -1]
    assert found.similarity[[0, 1, 3, 5], 0].tolist() == [0] * 4
    assert np.isnan(found.chance)
    assert found.to_dict()["chance"] is None
    assert found.interval is None


def test_chance_is_far_below_topics_that_return():
    topics = RANDOM.dirichlet(np.full(1000, 0.02), 10)
    unrelated = RANDOM.dirichlet(np.full(1000, 0.02), 10)
    assert topic_returns(topics, [unrelated]).mean == 0
    assert 0.02 < topic_returns(topics, [topics]).chance < 0.25
