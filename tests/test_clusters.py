"""Clusters of documents, and models whose training starts at them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import topicloom as tl
from batches import batch_of, dense_of, seeded
from topicloom.models.starting import _sums, find_clusters, vectors
from topicloom.nn.decoders import EmbeddedTopics, FreeTopics

WORDS, GROUPS = 40, 4
PLANTED = tl.datasets.synthetic_lda(400, 4, 40, alpha=0.02, random_state=0)


def grouped(n_docs: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Return counts (D, V) of documents in groups with words of their own and common ones, and the groups, (D,)."""
    rng = np.random.default_rng(0)
    groups = np.arange(n_docs) % GROUPS
    counts = np.zeros((n_docs, WORDS), int)
    for row, group in enumerate(groups):
        counts[row, rng.choice(np.arange(group * 8, group * 8 + 8), 5, replace=False)] = rng.integers(1, 4, 5)
        counts[row, rng.integers(32, WORDS, 3)] += 1
    return counts, groups


def idf_of(counts: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.log((1 + len(counts)) / (1 + (counts > 0).sum(0))) + 1).float()


def test_vectors_are_those_of_the_definition():
    counts, _ = grouped()
    idf = idf_of(counts)
    expected = np.log1p(counts) * idf.numpy()
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    batch = batch_of(counts)
    np.testing.assert_allclose(dense_of(batch.with_values(vectors(batch, idf))), expected, rtol=1e-5)


def test_sums_of_clusters():
    counts, groups = grouped()
    batch = batch_of(counts)
    found = _sums(batch, batch.values, torch.from_numpy(groups), GROUPS)
    np.testing.assert_array_equal(found, np.stack([counts[groups == group].sum(0) for group in range(GROUPS)], 1))


def test_groups_are_found():
    counts, groups = grouped()
    clusters = find_clusters(batch_of(counts), idf_of(counts), GROUPS, seeded(3))
    theta = clusters.theta(batch_of(counts))
    np.testing.assert_allclose(theta.sum(1), 1, rtol=1e-6)
    own = theta.argmax(1).numpy()
    assert len({*zip(groups, own, strict=True)}) == GROUPS == len(set(own))  # one cluster for each group
    for group, cluster in {*zip(groups, own, strict=True)}:
        assert {*clusters.deviations[:, cluster].argsort(descending=True)[:8].tolist()} == {
            *range(group * 8, group * 8 + 8)
        }


def test_centres_are_a_fixed_point_of_spherical_k_means():
    counts, _ = grouped()
    idf = idf_of(counts)
    clusters = find_clusters(batch_of(counts), idf, GROUPS, seeded())
    weights = np.log1p(counts) * idf.numpy()
    weights /= np.linalg.norm(weights, axis=1, keepdims=True)
    own = (weights @ clusters.centres.numpy()).argmax(1)
    expected = np.stack([weights[own == k].sum(0) for k in range(GROUPS)], 1)
    np.testing.assert_allclose(clusters.centres, expected / np.linalg.norm(expected, axis=0), atol=1e-5)


def test_a_document_without_known_words_has_equal_shares():
    counts, _ = grouped()
    clusters = find_clusters(batch_of(counts), idf_of(counts), GROUPS, seeded())
    np.testing.assert_allclose(clusters.theta(batch_of(np.zeros(WORDS, int)))[0], 1 / GROUPS)


def test_clusters_of_seeded_topics_stay_at_their_words():
    counts, _ = grouped()
    seeds = torch.zeros(WORDS, GROUPS)
    seeds[16:18, 0] = seeds[0:2, 3] = 4.0  # words of the third and of the first group
    clusters = find_clusters(batch_of(counts), idf_of(counts), GROUPS, seeded(), seeds)
    assert clusters.deviations[:, 0].argmax() in range(16, 24)
    assert clusters.deviations[:, 3].argmax() in range(8)


@pytest.mark.parametrize("n_clusters", [3, 9])
def test_more_clusters_than_different_documents(n_clusters):
    counts = np.array([[3, 0, 1], [3, 0, 1], [0, 2, 0]])
    clusters = find_clusters(batch_of(counts), idf_of(counts), n_clusters, seeded())
    assert clusters.centres.isfinite().all()
    assert clusters.deviations.isfinite().all()
    theta = clusters.theta(batch_of(counts))
    assert theta[0].argmax() == theta[1].argmax() != theta[2].argmax()


def test_free_topics_start_at_deviations():
    wanted = torch.randn(50, 3, generator=seeded(1))
    topics = FreeTopics(torch.randn(50, generator=seeded()), 3, seeded(), gain=10.0)
    noise = topics.learned().detach().clone()
    topics.start_at(wanted)
    torch.testing.assert_close(topics.learned(), 0.2 * noise + wanted - wanted.mean(0))


def test_topic_vectors_start_where_they_give_the_deviations():
    rho, wanted = torch.randn(60, 4, generator=seeded(1)), torch.randn(4, 3, generator=seeded(2))
    topics = EmbeddedTopics(torch.zeros(60), 3, 4, seeded(), word_vectors=rho)
    with torch.no_grad():
        topics.weight.zero_()
    topics.start_at(rho @ wanted)
    centred = (rho @ wanted).numpy() - (rho @ wanted).numpy().mean(0)
    expected = np.linalg.lstsq(rho.numpy(), centred, rcond=None)[0]
    np.testing.assert_allclose(topics.topic_vectors.detach().mT, expected, atol=0.05)


class Stages(tl.Callback):
    """Keeps theta's shares of the planted topics after each epoch, and the number of rows of the history by then."""

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.distances: list[float] = []

    def on_state(self, state) -> None:
        self.rows.append(len(state.history))
        topics = state.network.topic_word().detach().numpy()
        distance = np.abs(PLANTED.topics[:, None] - topics[None]).sum(2) / 2
        self.distances.append(distance.min(1).mean())


def test_the_start_is_not_in_the_history():
    seen = Stages()
    model = tl.GSM(4, epochs=5, random_state=0, device="cpu").fit(PLANTED.corpus, callbacks=[seen])
    assert seen.rows == [0, 1, 2, 3, 4, 5]
    assert [row["epoch"] for row in model.history_] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("name", ["GSM", "ETM", "WLDA", "ProdLDA", "DirichletVAE", "BATM"])
def test_topics_start_at_the_planted_ones(name):
    distances = {}
    for start in ("clusters", "random"):
        seen = Stages()
        model = getattr(tl, name)(4, epochs=1, random_state=0, start=start, device="cpu")
        model.fit(PLANTED.corpus, callbacks=[seen])
        distances[start] = seen.distances[0]
    assert distances["clusters"] < distances["random"] - 0.04


class FirstPass(tl.Callback):
    """Keeps the weights after the first and the last step of the pass in which the encoder learns the clusters."""

    def __init__(self) -> None:
        self.first: dict[str, torch.Tensor] = {}
        self.last: dict[str, torch.Tensor] = {}

    def on_step(self, state) -> None:
        if not state.history and state.stage == 0:
            self.last = {name: weights.detach().clone() for name, weights in state.network.named_parameters()}
            self.first = self.first or self.last


def test_only_the_encoder_trains_while_it_learns_the_clusters():
    seen = FirstPass()
    tl.BATM(4, epochs=1, random_state=0, device="cpu").fit(PLANTED.corpus, callbacks=[seen])
    same = {name for name, weights in seen.first.items() if weights.equal(seen.last[name])}
    assert {name for name in seen.first if name.startswith(("critic.", "decoder."))} <= same
    assert not {name for name in same if name.startswith("encoder.")}


def test_only_fit_starts_at_clusters():
    stream = tl.GSM(4, random_state=0, device="cpu").partial_fit(PLANTED.corpus)
    same = tl.GSM(4, random_state=0, device="cpu", start="random").partial_fit(PLANTED.corpus)
    np.testing.assert_array_equal(stream.components_, same.components_)


def test_the_same_seed_starts_at_the_same_clusters():
    first, second = (tl.GSM(4, epochs=1, random_state=5, device="cpu").fit(PLANTED.corpus) for _ in range(2))
    np.testing.assert_array_equal(first.components_, second.components_)
