"""The hierarchy of topics: against scikit-learn's agglomeration, and on topics whose groups are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import rankdata
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score

from topicloom.errors import SettingError
from topicloom.topics.hierarchy import Hierarchy, hellinger, hierarchy, length_in_directions

WORDS = [f"w{n}" for n in range(30)]
COUNTS = np.full(30, 100.0)


def random_topics(n_topics: int = 12, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.dirichlet(np.full(30, 0.3), n_topics), random.dirichlet(np.full(n_topics, 0.2), 200)


def in_families() -> Hierarchy:
    """Topics 0, 2, 4 share the words 0 to 9; topics 1, 3, 5 the words 10 to 19. No document has both kinds."""
    random = np.random.default_rng(0)
    components = np.zeros((6, 30))
    theta = np.zeros((90, 6))
    for topic in range(6):
        family = topic % 2
        components[topic, family * 10 : family * 10 + 10] = random.dirichlet(np.full(10, 2.0))
        theta[family::2, topic] = random.random(45)
    theta /= theta.sum(axis=1, keepdims=True)
    return hierarchy(components, theta, COUNTS, WORDS)


def test_hellinger_is_its_definition():
    columns = np.random.default_rng(1).dirichlet(np.ones(50), 4).T
    columns[:, 3] = 0  # a topic that nobody has
    found = hellinger(columns * [1, 5, 0.1, 1])
    for one in range(3):
        for other in range(3):
            expected = np.linalg.norm(np.sqrt(columns[:, one]) - np.sqrt(columns[:, other])) / np.sqrt(2)
            assert found[one, other] == pytest.approx(expected, abs=1e-7)
    assert found[3].tolist() == [1, 1, 1, 0]


@pytest.mark.parametrize("method", ["average", "complete", "single"])
def test_every_cut_is_that_of_scikit_learn(method):
    components, theta = random_topics()
    tree = hierarchy(components, theta, COUNTS, WORDS, method=method, word_weight=0.3)
    expected = 0.3 * hellinger(components.T) + 0.7 * hellinger(theta)
    np.testing.assert_allclose(tree.distances, expected)
    for n_groups in range(1, 13):
        peer = AgglomerativeClustering(n_clusters=n_groups, metric="precomputed", linkage=method).fit(expected)
        groups = tree.cut(n_groups)
        assert sorted(topic for group in groups for topic in group) == list(range(12))
        labels = np.empty(12, int)
        for number, group in enumerate(groups):
            labels[group] = number
        assert len(groups) == n_groups
        assert adjusted_rand_score(peer.labels_, labels) == 1


def test_families_are_found_and_named():
    tree = in_families()
    assert sorted(tree.cut(2)) == [[0, 2, 4], [1, 3, 5]]
    assert sorted(tree.cut(distance=0.95)) == [[0, 2, 4], [1, 3, 5]]
    assert sorted(tree.order[:3]) in ([0, 2, 4], [1, 3, 5])
    node = next(node for node in range(6, 11) if sorted(tree.members(node)) == [0, 2, 4])
    assert set(tree.words[node]) <= set(WORDS[:10])
    assert tree.shares[-1] == pytest.approx(1)
    assert tree.shares[node] == pytest.approx(tree.shares[[0, 2, 4]].sum())
    rows = list(tree.table().rows())
    assert [row["parent"] for row in rows].count(None) == 1
    assert sorted(rows[-1]["topics"]) == list(range(6))


def test_a_node_weighs_the_words_of_its_topics_by_share():
    components = np.array([[0.6, 0.4, 0.0], [0.0, 0.35, 0.65]])
    tree = hierarchy(components, np.tile([0.9, 0.1], (4, 1)), np.full(3, 100.0), ["a", "b", "c"])
    assert tree.words[2] == ["a", "b", "c"]  # .54, .395 and .065
    even = hierarchy(components, np.tile([0.5, 0.5], (4, 1)), np.full(3, 100.0), ["a", "b", "c"])
    assert even.words[2] == ["b", "c", "a"]  # .375, .325 and .3


def test_documents_without_a_word_say_nothing():
    components, theta = random_topics()
    empty = np.arange(200) % 3 == 0
    theta[empty] = np.eye(12)[0]
    found = hierarchy(components, theta, COUNTS, WORDS, empty=empty)
    rest = hierarchy(components, theta[~empty], COUNTS, WORDS)
    np.testing.assert_allclose(found.distances, rest.distances)
    np.testing.assert_allclose(found.shares, rest.shares)


def test_the_tree_as_text():
    tree = in_families()
    lines = tree.tree().splitlines()
    assert len(lines) == 11
    assert sum("topic " in line for line in lines) == 6
    assert len(tree.tree(n_groups=2).splitlines()) == 9  # the root, two groups, six topics
    assert len(tree.tree(n_groups=1).splitlines()) == 7
    assert "<b>" not in Hierarchy(tree.linkage, tree.distances, ["<b>"] * 6, tree.words, tree.shares)._repr_html_()


def test_ties_leave_every_cut_possible():
    components = np.full((5, 30), 1 / 30)
    tree = hierarchy(components, np.full((4, 5), 0.2), COUNTS, WORDS)
    assert [len(tree.cut(n)) for n in range(1, 6)] == [1, 2, 3, 4, 5]


def test_one_topic_and_no_document():
    tree = hierarchy(np.full((1, 30), 1 / 30), np.empty((0, 1)), COUNTS, WORDS)
    assert (tree.cut(1), tree.order, len(tree.table()), len(tree.tree().splitlines())) == ([[0]], [0], 1, 1)
    two = hierarchy(np.full((2, 30), 1 / 30), np.empty((0, 2)), COUNTS, WORDS)
    assert two.cut(2) in ([[0], [1]], [[1], [0]])
    assert two.distances[0, 1] == pytest.approx(0.5)  # no document says anything


def test_many_topics():
    components, theta = random_topics(300)
    tree = hierarchy(components, theta, COUNTS, WORDS)
    assert len(tree.tree().splitlines()) == 599
    heights = tree.linkage[:, 2]
    assert (np.diff(heights) >= -1e-12).all()
    assert rankdata(tree.order).sum() == 300 * 301 / 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda tree: tree.cut(), "either"),
        (lambda tree: tree.cut(7), "from 1 to 6"),
        (lambda tree: tree.cut(True), "from 1 to 6"),
        (lambda tree: tree.members(11), "no node 11"),
    ],
)
def test_mistakes(call, message):
    with pytest.raises(SettingError, match=message):
        call(in_families())


def test_wrong_settings():
    components, theta = random_topics()
    with pytest.raises(SettingError, match="word_weight"):
        hierarchy(components, theta, COUNTS, WORDS, word_weight=2)
    with pytest.raises(SettingError, match="average, complete, single"):
        hierarchy(components, theta, COUNTS, WORDS, method="ward")  # type: ignore[arg-type]


def test_random_words_have_the_length_of_chance_in_topics():
    random = np.random.default_rng(4)
    topics, words = random.normal(size=(5, 40)), random.normal(size=(3000, 40))
    part, chance = length_in_directions(words, topics)
    assert chance == 4 / 40  # the topics without their mean
    assert part == pytest.approx(chance, abs=0.01)
    assert length_in_directions(topics - topics.mean(0), topics)[0] == pytest.approx(1)
    outside = np.linalg.svd(topics)[2][5:]  # orthogonal to all topics
    assert length_in_directions(outside, topics)[0] == pytest.approx(0, abs=1e-9)
