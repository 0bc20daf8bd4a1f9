"""FASTopic: its formulas, computed once more in NumPy, and documents with and without vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

import topicloom as tl
from batches import sparse_batch
from planted import matched
from topicloom.datasets import synthetic_lda
from topicloom.errors import InputError

N_TOPICS = 4
COUNTED, TOPICS, THETA = synthetic_lda(n_docs=400, n_topics=N_TOPICS, n_words=60, doc_length=40, alpha=0.1)
DIRECTIONS = np.random.default_rng(0).normal(size=(N_TOPICS, 10))
NOISE = 0.1 * np.random.default_rng(1).normal(size=(400, 10))
VECTORS = (THETA @ DIRECTIONS + NOISE).astype(np.float32)
CORPUS = COUNTED.with_vectors(VECTORS)
FAST: dict[str, Any] = {"epochs": 150, "learning_rate": 0.05, "random_state": 0, "device": "cpu"}


@pytest.fixture(scope="module")
def model() -> tl.FASTopic:
    """Not to be changed."""
    return tl.FASTopic(N_TOPICS, **FAST).fit(CORPUS)


def test_settings_of_neighbours_without_effect_give_a_warning(caplog):
    tl.FASTopic(N_TOPICS, **FAST | {"epochs": 1}, neighbour_tokens=5, infer_with_neighbours=True).fit(CORPUS)
    assert [message.split(" in ")[0] for message in caplog.messages] == [
        "`neighbour_tokens=5` has no effect",
        "`infer_with_neighbours=True` has no effect",
    ]


def plan_by_numpy(cost: np.ndarray, a: np.ndarray, b: np.ndarray, sharpness: float) -> np.ndarray:
    kernel, u = np.exp(-sharpness * cost), np.ones(len(a))
    for _ in range(5000):
        v = b / (kernel.T @ u)
        u = a / (kernel @ v)
    return u[:, None] * kernel * v


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_planted_topics_are_found(model):
    found, distance = matched(TOPICS, model.components_)
    assert max(distance) < 0.3  # topics are smoothed by the entropy
    theta = model.transform(CORPUS)[:, found]
    assert min(np.corrcoef(theta[:, k], THETA[:, k])[0, 1] for k in range(N_TOPICS)) > 0.8


def test_the_loss_is_that_of_the_paper(model):
    network = model.network_
    batch = sparse_batch(CORPUS.counts, np.arange(400), torch.device("cpu"))
    batch.fields["vectors"] = torch.from_numpy(VECTORS)
    t, w = (each.detach().double().numpy() for each in (network.topic_vectors, network.word_vectors))
    masses = [torch.softmax(each.detach().double(), 0).numpy() for each in (network.topic_logits, network.word_logits)]
    costs = cdist(unit(VECTORS), t, "sqeuclidean"), cdist(t, w, "sqeuclidean")
    p = plan_by_numpy(costs[0], np.full(400, 1 / 400), masses[0], 3.0)
    q = plan_by_numpy(costs[1], np.full(N_TOPICS, 1 / N_TOPICS), masses[1], 2.0)
    likely = np.log(400 * p @ q * N_TOPICS)
    before = network.nearness.clone()
    network.train()
    loss = network.loss(batch)
    network.eval()
    network.nearness.copy_(before)
    expected = -(CORPUS.counts.toarray() * likely).sum(1)
    assert loss.reconstruction.detach().numpy() == pytest.approx(expected, rel=5e-3)
    assert float(loss.extras["document_cost"][0]) == pytest.approx((p * costs[0]).sum(), rel=1e-2)
    assert float(loss.extras["word_cost"][0]) == pytest.approx((q * costs[1]).sum(), rel=1e-2)
    assert model.components_ == pytest.approx(q / q.sum(1, keepdims=True), rel=2e-2, abs=1e-5)


def test_new_documents_have_the_theta_of_the_paper(model):
    some = unit(np.random.default_rng(2).normal(size=(5, 10)))
    closeness = np.exp(-cdist(some, model.topic_embeddings_, "sqeuclidean"))
    theta = closeness / np.exp(-cdist(unit(VECTORS), model.topic_embeddings_, "sqeuclidean")).sum(0)
    found = model.transform(COUNTED[:5].with_vectors(some.astype(np.float32)))
    assert found == pytest.approx(theta / theta.sum(1, keepdims=True), abs=1e-4)


def test_a_saved_model_infers_the_same(model, tmp_path):
    model.save(tmp_path / "model")
    loaded = tl.load(tmp_path / "model", device="cpu")
    np.testing.assert_array_equal(loaded.components_, model.components_)
    np.testing.assert_array_equal(loaded.transform(CORPUS), model.transform(CORPUS))


def test_documents_without_vectors_are_refused(model):
    with pytest.raises(InputError, match=r"FASTopic .* vectors"):
        tl.FASTopic(N_TOPICS).fit(COUNTED)
    with pytest.raises(InputError, match="vectors"):
        model.transform(COUNTED)


def test_seed_words_have_more_weight_in_their_topic():
    word = COUNTED.vocabulary[int(TOPICS[:, 5:].sum(0).argmin()) + 5]
    seeded = tl.FASTopic(N_TOPICS, seed_words={1: [word]}, **FAST | {"epochs": 10}).fit(CORPUS)
    assert seeded.components_[:, COUNTED.vocabulary.index(word)].argmax() == 1


def test_batches_and_parts_of_a_stream_are_learned_too():
    in_batches = tl.FASTopic(N_TOPICS, batch_size=100, **FAST | {"epochs": 40}).fit(CORPUS)
    assert max(matched(TOPICS, in_batches.components_)[1]) < 0.4
    stream = tl.FASTopic(N_TOPICS, **FAST)
    for part in (CORPUS[:200], CORPUS[200:]):
        stream.partial_fit(part)
    assert stream.transform(CORPUS).sum(1) == pytest.approx(1, abs=1e-5)
