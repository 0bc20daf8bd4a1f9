"""Matching the topics of two runs: against all assignments, and on topics whose partners are known."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import topicloom as tl
from topicloom.errors import InputError, SettingError
from topicloom.metrics import jensen_shannon
from topicloom.topics.matching import match


def topics(n_topics: int = 8, n_words: int = 60, seed: int = 0) -> tuple[np.ndarray, list[str]]:
    beta = np.random.default_rng(seed).dirichlet(np.full(n_words, 0.05), n_topics)
    return beta, [f"w{n}" for n in range(n_words)]


def shuffled(beta: np.ndarray, words: list[str], seed: int = 1) -> tuple[np.ndarray, list[str], np.ndarray]:
    """The same topics with some noise, in another order, over another order of the words and ten words more."""
    random = np.random.default_rng(seed)
    order, columns = random.permutation(len(beta)), random.permutation(len(words))
    noisy = beta[order] * random.uniform(0.7, 1.3, beta.shape)
    extra = random.random((len(beta), 10)) * 0.01
    matrix = np.concatenate([noisy[:, columns], extra], axis=1)
    matrix /= matrix.sum(axis=1, keepdims=True)
    return matrix, [words[column] for column in columns] + [f"new{n}" for n in range(10)], order


def test_topics_find_themselves_over_another_vocabulary():
    beta, words = topics()
    new, new_words, order = shuffled(beta, words)
    found = match(new, new_words, beta, words, old_names=[f"old {k}" for k in range(8)])
    assert [pair.old for pair in found.pairs] == order.tolist()
    assert (found.new, found.gone, found.n_shared) == ([], [], 60)
    assert found.renames() == {topic: f"old {old}" for topic, old in enumerate(order)}
    assert min(pair.similarity for pair in found.pairs) > 0.7


def test_new_topics_and_topics_that_are_gone():
    beta, words = topics()
    found = match(beta[[0, 1, 2, 3]], words, beta[[3, 2, 6]], words, names=list("abcd"), old_names=list("xyz"))
    assert [pair.old for pair in found.pairs] == [None, None, 1, 0]
    assert (found.new, found.gone) == ([0, 1], [2])
    nearest = found.similarity.argmax(axis=1)
    assert [pair.nearest for pair in found.pairs] == nearest.tolist()
    assert [pair.similarity for pair in found.pairs] == found.similarity[range(4), nearest].tolist()
    rows = list(found.table().rows())
    assert [row["status"] for row in rows] == ["new", "new", "matched", "matched", "gone"]
    assert rows[2]["old_name"] == "y"
    assert rows[4]["topic"] is None
    assert "2 topics matched, 2 new, 1 gone" in repr(found)
    assert "gone" in found._repr_html_()


def test_the_assignment_is_the_best_of_all():
    random = np.random.default_rng(3)
    words = [f"w{n}" for n in range(12)]
    for _ in range(20):
        one, other = random.dirichlet(np.ones(12), 5), random.dirichlet(np.ones(12), 5)
        found = match(one, words, other, words, threshold=0.3)
        gains = np.maximum(found.similarity - 0.3, 0)
        best = max(gains[range(5), list(order)].sum() for order in permutations(range(5)))
        ours = sum(pair.similarity - 0.3 for pair in found.pairs if pair.old is not None)
        assert ours == pytest.approx(best, abs=1e-6)
        partners = [pair.old for pair in found.pairs if pair.old is not None]
        assert len(set(partners)) == len(partners)


def test_words_of_all_topics_do_not_make_topics_similar():
    beta, words = topics(6)
    background = np.full(60, 1 / 60)
    mixed = 0.2 * beta + 0.8 * background
    found = match(mixed[:3], words, mixed[3:], words)
    assert 1 - jensen_shannon(mixed[:3], mixed[3:]).max() > 0.4
    assert found.similarity.max() < 0.2


@pytest.mark.parametrize("threshold", [0.0, 1.0])
def test_the_ends_of_the_threshold(threshold):
    beta, words = topics(3)
    other, _ = topics(3, seed=9)
    found = match(beta, words, other, words, threshold=threshold)
    assert len(found.new) == (0 if threshold == 0 else 3)


@pytest.mark.parametrize(("n_shared", "warns"), [(60, False), (35, False), (20, True)])
def test_few_shared_words_are_a_warning(caplog, n_shared, warns):
    even = np.full((2, 60), 1 / 60)
    words = [f"w{n}" for n in range(60)]
    with caplog.at_level("WARNING", logger="topicloom"):
        found = match(even, words, even, [*words[:n_shared], *(f"old{n}" for n in range(60 - n_shared))])
    assert found.n_shared == n_shared
    assert ("only 20 words in common, with 33 % of the probability in the new topics" in caplog.text) == warns
    assert bool(caplog.records) == warns


def test_runs_that_hardly_share_words_are_called_different():
    old, words = np.full((2, 40), 1 / 40), [f"w{n}" for n in range(40)]
    for n_shared in (3, 5):
        new = np.full((2, n_shared), 1 / n_shared)
        found = match(new, words[:n_shared], old, words)
        assert found.shared_probability == pytest.approx((1, n_shared / 40))
        if n_shared == 3:
            with pytest.raises(InputError, match=r"have only 3 words in common, with 100 % .* and 8 % in the old ones"):
                found.require_shared()
        else:
            found.require_shared()


def test_words_that_one_run_lacks_count_as_differences():
    beta, words = topics()
    mixed = 0.01 * beta + 0.99 * np.roll(beta, 30, axis=1)
    names = [f"old{n}" for n in range(55)] + words[55:]  # the runs have five words in common
    assert match(mixed, words, beta, names).similarity.max() < 0.35
    own = np.kron(np.eye(3), np.full(20, 1 / 20))  # three topics, each with twenty words of its own
    found = match(own, words, own, [*(f"old{n}" for n in range(20)), *words[20:]])
    np.testing.assert_allclose(found.similarity, np.diag([0.0, 1.0, 1.0]), atol=1e-6)
    assert (found.new, found.gone) == ([0], [0])
    half = match(own, words, own, [*(f"old{n}" for n in range(10)), *words[10:]])
    assert half.similarity[0, 0] == pytest.approx(1 - np.sqrt(0.5))
    assert half.shared_probability == pytest.approx((5 / 6, 5 / 6))


def test_one_topic():
    beta, words = topics(1)
    found = match(beta, words, beta, words)
    assert [(pair.old, round(pair.similarity, 6)) for pair in found.pairs] == [(0, 1.0)]


def test_mistakes():
    beta, words = topics(2)
    with pytest.raises(InputError, match="no word in common"):
        match(beta, words, beta, [f"{word}x" for word in words])
    with pytest.raises(SettingError, match="threshold"):
        match(beta, words, beta, words, threshold=2)


def test_runs_views_and_models_can_be_matched(tmp_path):
    drawn = tl.datasets.synthetic_lda(200, 4, 80, 60, 0.1, 0.05)
    model = tl.LDA(n_topics=4, random_state=0, epochs=30).fit(drawn.corpus)
    again = tl.LDA(n_topics=4, random_state=5, epochs=30).fit(drawn.corpus)
    view = tl.Topics(again, drawn.corpus)
    model.save(tmp_path / "old")
    from_model, from_path = view.match(model), view.match(tmp_path / "old")
    from_view = view.match(tl.Topics(model, drawn.corpus))
    assert [pair.old for pair in from_model.pairs] == [pair.old for pair in from_path.pairs]
    assert [pair.old for pair in from_model.pairs] == [pair.old for pair in from_view.pairs]
    assert from_path.renames() == from_model.renames() == from_view.renames() == {}
    assert view.rename(from_model.renames()).names == view.names
    named = model.rename({0: "first"})
    place = next((pair.topic for pair in from_model.pairs if pair.old == 0), None)
    assert view.match(named).renames() == ({} if place is None else {place: "first"})
    assert len(from_model.new) <= 1
    with pytest.raises(InputError, match="does not exist"):
        view.match(tmp_path / "none")


def test_runs_of_few_documents_are_warned_of(caplog):
    texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
    small = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts)
    large = tl.Topics(tl.LDA(3, random_state=0).fit(texts * 10), texts)
    large.match(large)
    assert not caplog.messages
    large.match(small)
    assert [message.partition(",")[0] for message in caplog.messages] == ["the old run has 3 topics of 24 documents"]
    small.match(large)
    assert caplog.messages[1].startswith("the new run has 3 topics of 24 documents")
