"""The adversaries of BATM: what the critic sees, what holds it, and what passes through drawn words."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from batches import CPU, batch_of, seeded, sparse_batch
from topicloom.datasets import synthetic_lda
from topicloom.models import BATM
from topicloom.models.batm import PairCritic, draw_documents

N_WORDS, N_TOPICS, N_HIDDEN = 9, 3, 5
COUNTS = np.random.default_rng(0).poisson(1.2, (6, N_WORDS)).astype(np.float32) + np.eye(6, N_WORDS, dtype=np.float32)
CORPUS = synthetic_lda(n_docs=200, n_topics=N_TOPICS, n_words=30, doc_length=20).corpus


def simplex(*size: int, seed: int = 0) -> torch.Tensor:
    return torch.softmax(3 * torch.randn(*size, generator=seeded(seed)), dim=-1)


def critic(seed: int = 0) -> PairCritic:
    return PairCritic(N_WORDS, N_TOPICS, N_HIDDEN, seeded(seed))


def small(**settings: object) -> BATM:
    defaults = {"epochs": 3, "hidden_size": 16, "critic_size": 8, "random_state": 0, "device": "cpu"}
    return BATM(N_TOPICS, **{**defaults, **settings})


def dense_critic(network: PairCritic, theta: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """D(theta, x) from documents as shares of words (B, V)."""
    h = F.leaky_relu(x @ network.words + theta @ network.topics + network.bias, 0.1)
    return F.leaky_relu(F.linear(h, network.hidden.weight, network.hidden.bias), 0.1) @ network.out


# Drawn documents.


def test_drawn_documents_have_their_lengths():
    theta, beta, lengths = simplex(4, N_TOPICS), simplex(N_TOPICS, N_WORDS, seed=1), torch.tensor([3.0, 0, 2.5, 7])
    batch = draw_documents(theta, beta, lengths, seeded())
    assert batch.totals.tolist() == [3, 0, 3, 7]
    values, right = torch.ones(len(batch.indices)), torch.randn(4, 2, generator=seeded(2))
    dense = torch.zeros(4, N_WORDS).index_put_((batch.documents, batch.indices), values, accumulate=True)
    assert dense.sum() == 13
    assert batch.n_words == N_WORDS
    torch.testing.assert_close(batch.times(values, right.new_ones(N_WORDS, 1))[:, 0], batch.totals)
    torch.testing.assert_close(batch.transposed_times(values, right), dense.T @ right)


def test_long_documents_are_drawn_in_part():
    """A count of a million takes no more memory than one of ten thousand."""
    theta, beta = torch.eye(N_TOPICS), torch.full((N_TOPICS, 4), 0.25)
    lengths = torch.full((N_TOPICS,), 1e9)
    lengths[0] = 7
    drawn = draw_documents(theta, beta, lengths, seeded())
    assert len(drawn.values) < 1 << 21
    assert drawn.values[:7].tolist() == [1.0] * 7
    torch.testing.assert_close(drawn.totals, lengths, rtol=1e-2, atol=0)  # sums in single precision


def test_drawn_words_follow_theta_beta():
    theta, beta = simplex(2, N_TOPICS), simplex(N_TOPICS, N_WORDS, seed=1)
    beta = torch.cat([beta[:2], torch.eye(N_WORDS)[:1]])  # a topic of one word; the others are impossible in it
    drawn = draw_documents(theta, beta, torch.full((2,), 200_000.0), seeded())
    counts = torch.stack([torch.bincount(drawn.indices[drawn.documents == row], minlength=N_WORDS) for row in range(2)])
    torch.testing.assert_close(counts / 200_000, theta @ beta, atol=4e-3, rtol=0)
    only = draw_documents(torch.eye(N_TOPICS)[2:], beta, torch.tensor([1000.0]), seeded())
    assert set(only.indices.tolist()) == {0}


class SinglePrecision(TorchDispatchMode):
    """Refuses what a device without double precision refuses: random numbers of 64 bits, drawn there."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if (kwargs or {}).get("generator") is not None:
            assert kwargs.get("dtype") != torch.float64
        return func(*args, **(kwargs or {}))


def test_a_device_without_double_precision_draws_rare_words_too(monkeypatch):
    monkeypatch.setattr("topicloom.models.batm._has_double_precision", lambda device: False)
    n_words, rare = 50_000, 1e-9  # in single precision, most of these words would never be drawn
    beta = torch.full((1, n_words), rare)
    beta[0, 0] = 1 - n_words * rare
    theta, lengths = torch.ones(4, 1), torch.full((4,), 100_000.0)
    with SinglePrecision():
        drawn = draw_documents(theta, beta / beta.sum(), lengths, seeded())
    assert drawn.totals.tolist() == lengths.tolist()
    rares = drawn.indices[drawn.indices > 0]
    expected = 400_000 * (n_words - 1) * rare  # 20
    assert abs(len(rares) - expected) < 4 * expected**0.5
    assert rares.max() > n_words / 2
    even = draw_documents(torch.ones(1, 1), torch.full((1, 8), 1 / 8), torch.tensor([80_000.0]), seeded())
    torch.testing.assert_close(torch.bincount(even.indices) / 80_000, torch.full((8,), 1 / 8), atol=5e-3, rtol=0)


# The critic.


def test_critic_against_dense():
    network, theta, batch = critic(), simplex(6, N_TOPICS), batch_of(COUNTS)
    x = torch.from_numpy(COUNTS / COUNTS.sum(1, keepdims=True))
    torch.testing.assert_close(network(theta, network.read(batch)), dense_critic(network, theta, x))


def test_critic_stays_within_its_bounds():
    network = critic()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(30)
    for _ in range(100):  # the power iteration needs some steps
        network.keep_lipschitz()
    assert float(network.words.detach().norm(dim=1).max()) <= 1 + 1e-5
    assert float(torch.linalg.matrix_norm(network.hidden.weight.detach(), 2)) == pytest.approx(1, abs=1e-3)
    one, other = (simplex(500, N_WORDS, seed=seed) for seed in (1, 2))
    theta = simplex(500, N_TOPICS, seed=3)
    moved = (dense_critic(network, theta, one) - dense_critic(network, theta, other)).abs()
    assert (moved <= (one - other).abs().sum(1) * (1 + 1e-3)).all()


def test_a_critic_within_its_bounds_is_left_alone():
    network = critic()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(0.1)
    before = [parameter.clone() for parameter in network.parameters()]
    network.keep_lipschitz()
    torch.testing.assert_close(list(network.parameters()), before, rtol=0, atol=0)


# The network.


def test_the_gradient_of_drawn_words_is_that_of_their_expectation():
    """With a critic that is linear in the document, that is the gradient of the expected score itself."""
    model = small(reconstruction_weight=0.0, min_diversity=0.0).fit(CORPUS)
    network = model.network_.train()
    weight = network.decoder.topics.weight
    with torch.no_grad():
        network.critic.bias.fill_(50.0)  # all rectifiers open
        network.critic.hidden.bias.fill_(50.0)
    batch = sparse_batch(CORPUS.counts, np.arange(50), CPU)
    network.generator = seeded(7)
    (ours,) = torch.autograd.grad(network.loss(batch).total().mean(), weight)

    network.generator = seeded(7)  # the same theta of the prior
    network.posterior(batch)
    theta = network.prior.sample(50, network.generator)
    fake = dense_critic(network.critic, theta, theta @ network.topic_word())
    (theirs,) = torch.autograd.grad((-batch.counts.totals.mean() * fake).mean(), weight)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


def test_the_bound_is_the_likelihood_at_the_point():
    model = small().fit(CORPUS)
    x, theta = CORPUS.counts.toarray(), model.transform(CORPUS)
    expected = np.exp(-(x * np.log(theta @ model.components_)).sum() / x.sum())
    assert model.perplexity(CORPUS, method="bound") == pytest.approx(expected, rel=1e-4)


def test_a_point_posterior_has_no_divergence():
    model = small().fit(CORPUS)
    posterior = model.network_.posterior(sparse_batch(CORPUS.counts, np.arange(4), CPU))
    assert posterior.divergence().shape == (4, 0)
    assert "kl_per_dimension" not in model.history_[-1]


def test_the_critic_moves_oftener():
    model = small(critic_steps=4, batch_size=20, epochs=2).fit(CORPUS)  # twenty steps
    critic_adam, other_adam = model.state_.optimizers
    assert {int(state["step"]) for state in critic_adam.state.values()} == {20}
    assert {int(state["step"]) for state in other_adam.state.values()} == {5}
    assert {"critic_loss", "critic_gap", "loss", "reconstruction", "divergence"} <= set(model.history_[0])


def test_a_bar_is_shown_where_only_the_critic_has_moved():
    model = small(critic_steps=5, verbose=1)
    for _ in range(3):
        model.partial_fit(CORPUS[:20])
    small(critic_steps=5, verbose=1).fit(CORPUS[:20])
    assert len(model.history_) == 3
