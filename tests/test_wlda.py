"""The discrepancy of WLDA is unbiased in small batches, and its history has that of many documents."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from topicloom import load
from topicloom.datasets import synthetic_lda
from topicloom.models import WLDA
from topicloom.nn.dirichlet_posteriors import log_gamma_draws
from topicloom.nn.samplers import GaussianSampler, mmd
from topicloom.nn.sparse import Batch
from topicloom.training.batches import BatchReader

N_TOPICS, N_DOCS, N_BATCHES, ALPHA = 5, 16, 1500, 0.5
CORPUS = synthetic_lda(n_docs=200, n_topics=N_TOPICS, n_words=60, doc_length=20).corpus


class Given(nn.Module):
    """An encoder that returns independent codes, whatever the documents are."""

    def __init__(self, draw):
        super().__init__()
        self.draw = draw
        self.generator = torch.Generator().manual_seed(7)

    def forward(self, batch, noise):
        return self.draw(batch.n_docs, self.generator)


def gaussian(n, generator):
    return torch.randn(n, N_TOPICS, generator=generator)


def log_gammas(n, generator):
    return log_gamma_draws(torch.full((n, N_TOPICS), ALPHA), generator)


# The codes before the norm, whose softmax follows the prior at this standard deviation.
PRIORS = {
    "gaussian": (gaussian, 1.0, {}),
    "dirichlet": (log_gammas, float(torch.polygamma(1, torch.tensor(ALPHA)).sqrt()), {"alpha": ALPHA}),
}


@pytest.fixture(params=PRIORS)
def network(request):
    draw, spread, settings = PRIORS[request.param]
    model = WLDA(N_TOPICS, prior=request.param, spread=spread, learn_shares=False, spare_topics=0, epochs=1, **settings)
    network = model.set_params(random_state=0, device="cpu", min_diversity=0.0).fit(CORPUS).network_
    network.encoder, network.code = Given(draw), nn.Identity()
    return network.train()


def batch() -> Batch:
    return next(iter(BatchReader(CORPUS.counts, N_DOCS, torch.device("cpu"))))


def mean_and_error(values):
    return np.mean(values), np.std(values) / math.sqrt(len(values))


@torch.no_grad()
def test_it_is_about_nothing_for_codes_that_follow_the_prior(network):
    documents = batch()
    found = [float(network.loss(documents).divergence[0]) / network.nats for _ in range(N_BATCHES)]
    mean, error = mean_and_error(found)
    assert abs(mean) < 4 * error + 2e-3


@torch.no_grad()
def test_codes_of_one_normalised_batch_would_be_biased(network):
    found = []
    for _ in range(N_BATCHES):
        theta = torch.softmax(network.codes(batch()), dim=1)
        found.append(float(mmd(network.prior.sample(N_DOCS, network.generator), theta, network.tau)))
    mean, error = mean_and_error(found)
    assert mean < -10 * error


def test_pairs_across_halves_by_hand():
    prior = GaussianSampler(4).sample(6, torch.Generator().manual_seed(0))
    drawn = GaussianSampler(4, 2.0).sample(6, torch.Generator().manual_seed(1))
    pairs = [float(mmd(drawn[i : i + 1], drawn[j : j + 1])) / -2 for i in range(3) for j in range(3, 6)]  # kernels
    between = [float(mmd(prior[i : i + 1], drawn[j : j + 1])) / -2 for i in range(6) for j in range(6)]
    among_prior = [float(mmd(prior[i : i + 1], prior[j : j + 1])) / -2 for i in range(6) for j in range(6) if i != j]
    by_hand = np.mean(among_prior) + np.mean(pairs) - 2 * np.mean(between)
    assert float(mmd(prior, drawn, n_first=3)) == pytest.approx(by_hand, abs=1e-6)


def test_a_batch_of_one_or_three_documents_is_trained():
    for n_docs in (1, 3):
        model = WLDA(2, batch_size=n_docs, epochs=1, hidden_size=8, random_state=0, device="cpu").fit(CORPUS[:7])
        assert np.isfinite(model.components_).all()


def test_history_has_the_discrepancy_of_many_documents():
    model = WLDA(N_TOPICS, prior="gaussian", epochs=3, hidden_size=16, random_state=0, device="cpu").fit(CORPUS)
    assert all(-0.01 < row["mmd"] < 1 for row in model.history_)
    far = WLDA(N_TOPICS, alpha=5.0, spread=9.0, mmd_weight=0.0, epochs=3, hidden_size=16, random_state=0, device="cpu")
    assert far.fit(CORPUS).history_[-1]["mmd"] > 0.1
    assert far.network_.prior_theta().sum() == pytest.approx(1)


def test_the_mean_of_a_gaussian_prior_follows_the_codes():
    codes = torch.tensor([2.0, 0.0, -1.0]) + torch.randn(64, 3, generator=torch.Generator().manual_seed(0))
    fixed, follows = GaussianSampler(3), GaussianSampler(3, follows=True)
    for _ in range(200):
        fixed.update(codes)
        follows.update(codes)
    assert torch.equal(fixed.mean(), torch.full((3,), 1 / 3))
    assert torch.allclose(follows.mean(), torch.softmax(codes.mean(0), dim=0), atol=1e-3)
    drawn = GaussianSampler(3, 0.5).sample(20_000, torch.Generator().manual_seed(0)).log()
    assert torch.allclose(
        (drawn - drawn.mean(1, keepdim=True)).std(0), torch.full((3,), 0.5 * (2 / 3) ** 0.5), atol=0.01
    )


def test_the_scale_of_the_loss_follows_a_stream(tmp_path):
    short, long = (synthetic_lda(60, 3, 40, doc_length=n, random_state=0).corpus for n in (10, 100))
    model = WLDA(3, hidden_size=8, random_state=0, device="cpu").partial_fit(short).partial_fit(long)
    model.save(tmp_path / "model")
    found = [each.partial_fit(short).network_.nats for each in (model, load(tmp_path / "model"))]
    assert found == pytest.approx([55 * math.log(40)] * 2, rel=0.05)
