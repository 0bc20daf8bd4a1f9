"""Priors, samplers and discrepancies against independent calculations."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from batches import seeded
from topicloom.models.nvdm import LogRatioDecoder
from topicloom.nn import samplers
from topicloom.nn.decoders import FreeTopics
from topicloom.nn.network import SeparationTerm
from topicloom.nn.posteriors import MixturePrior, topic_information
from topicloom.nn.samplers import CornerMixture, DirichletSampler, FittedMixture, GaussianSampler, diffusion_kernel, mmd


def simplex(n: int, k: int, seed: int = 0) -> torch.Tensor:
    return torch.softmax(2 * torch.randn(n, k, generator=seeded(seed), dtype=torch.float64), dim=1)


def kernel_by_hand(a: np.ndarray, b: np.ndarray, tau: float) -> float:
    return math.exp(-(math.acos(min(1 - 1e-6, sum(math.sqrt(x * y) for x, y in zip(a, b, strict=True)))) ** 2) / tau)


@pytest.mark.parametrize("tau", [1.0, 0.3])
def test_mmd_is_the_unbiased_estimate(tau):
    p, q = simplex(5, 4, 0), simplex(7, 4, 1)
    within_p = np.mean([kernel_by_hand(p[i], p[j], tau) for i in range(5) for j in range(5) if i != j])
    within_q = np.mean([kernel_by_hand(q[i], q[j], tau) for i in range(7) for j in range(7) if i != j])
    between = np.mean([kernel_by_hand(a, b, tau) for a in p for b in q])
    assert float(mmd(p, q, tau)) == pytest.approx(within_p + within_q - 2 * between, rel=1e-9)


def test_mmd_is_near_zero_for_equal_distributions_only():
    prior, other = DirichletSampler(6, 0.1), DirichletSampler(6, 1.0)
    same = [float(mmd(prior.sample(200, seeded(s)), prior.sample(200, seeded(s + 100)))) for s in range(20)]
    assert abs(np.mean(same)) < 3 * np.std(same) / math.sqrt(20) + 1e-4
    assert min(same) < 0  # unbiased, so it may be below zero
    assert float(mmd(prior.sample(200, seeded(0)), other.sample(200, seeded(1)))) > 0.05


def test_the_kernel_has_finite_slopes_for_equal_and_disjoint_vectors():
    theta = torch.tensor([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.3, 0.3, 0.4]], requires_grad=True)
    diffusion_kernel(theta, theta).sum().backward()
    assert torch.isfinite(theta.grad).all()
    assert float(mmd(theta[:1].detach(), theta[:1].detach())) == pytest.approx(-2, abs=0.01)  # no pairs in one


def test_a_mixture_prior_diverges_as_monte_carlo_says():
    prior = MixturePrior(3, 2)
    prior.set(
        torch.tensor([0.5, 0.3, 0.2]), torch.tensor([[2.0, 0.0], [-1.0, 1.0], [0.0, -2.0]]), torch.tensor([0.5, 1.5])
    )
    mean, log_var = torch.tensor([[0.5, 0.2], [-2.0, 1.0]]), torch.tensor([[-1.0, 0.3], [0.0, -0.5]])
    eta = prior.responsibilities(mean, log_var)  # (2, 3)
    assert torch.allclose(eta.sum(1), torch.ones(2))
    assert prior.divergence(mean, log_var).shape == (2, 3)
    posterior = torch.distributions.Normal(mean, (0.5 * log_var).exp())
    z = mean + (0.5 * log_var).exp() * torch.randn(200_000, 2, 2, generator=seeded())  # (S, 2, 2)
    components = torch.distributions.Normal(prior.means, prior.log_var.exp().sqrt())
    log_joint = components.log_prob(z[:, :, None]).sum(3) + prior.weights  # (S, 2, 3) log p(z, c)
    expected = posterior.log_prob(z).sum(2) + (eta * (eta.log() - log_joint)).sum(2)  # (S, 2)
    assert torch.allclose(prior.divergence(mean, log_var).sum(1), expected.mean(0), atol=0.02)


def test_no_other_responsibilities_make_the_bound_tighter():
    prior = MixturePrior(3, 2)
    prior.set(torch.tensor([0.2, 0.3, 0.5]), torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]]), torch.ones(2))
    mean, log_var = torch.tensor([[0.4, -0.1]]), torch.tensor([[-0.7, 0.1]])
    best = prior.divergence(mean, log_var).sum().item()
    own = prior.responsibilities(mean, log_var)
    for step in (0.05, -0.05):
        for c in range(3):
            moved = (own + step * torch.eye(3)[c]).clamp_min(1e-6)
            moved = moved / moved.sum()
            prior.responsibilities = lambda *_, eta=moved: eta  # the bound with other responsibilities
            assert prior.divergence(mean, log_var).sum().item() > best
            del prior.responsibilities


@pytest.mark.parametrize("block", [None, 6, 1], ids=["whole", "in pairs of words", "word by word"])
def test_topic_information(block, monkeypatch):
    if block:
        monkeypatch.setattr("topicloom.nn.posteriors._CACHED_NUMBERS", block)
    shares = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
    apart = torch.eye(3, dtype=torch.float64)
    entropy = float(-(shares * shares.log()).sum())
    assert float(topic_information(apart, shares)) == pytest.approx(entropy, rel=1e-6)
    same = torch.full((4, 3), 0.25, dtype=torch.float64)
    assert float(topic_information(same, shares)) == pytest.approx(0, abs=1e-9)
    beta_t = simplex(3, 6).T.contiguous().requires_grad_()
    by_hand = sum(
        float(shares[k]) * float(beta_t[v, k]) * math.log(float(beta_t[v, k] / (beta_t[v] @ shares)))
        for k in range(3)
        for v in range(6)
    )
    assert float(topic_information(beta_t, shares)) == pytest.approx(by_hand, rel=1e-9)
    assert torch.autograd.gradcheck(lambda logits: topic_information(torch.softmax(logits, 0), shares), beta_t)


def test_a_topic_without_documents_is_not_pushed():
    beta_t = simplex(3, 6).T.contiguous().requires_grad_()
    topic_information(beta_t, torch.tensor([0.6, 0.4, 0.0], dtype=torch.float64)).backward()
    assert (beta_t.grad[:, 2] == 0).all()
    assert (beta_t.grad[:, 0] != 0).all()


def test_the_push_follows_the_diversity():
    term = SeparationTerm(0.8, n_topics=5, n_words=1000)
    started = float(term.weight)
    assert term.adapt(0.2, active=1, epoch=1) == {"separation_weight": started}  # topics are not settled yet
    raised = term.adapt(0.2, active=5, epoch=2)["separation_weight"]
    assert raised > started
    assert term.adapt(0.75, active=5, epoch=3)["separation_weight"] < raised  # at that pace it is there soon
    assert term.adapt(0.2, active=1, epoch=30)["separation_weight"] > raised * 0.9  # not settled, but late
    for epoch in range(31, 200):
        term.adapt(0.9, active=5, epoch=epoch)
    assert float(term.weight) == pytest.approx(1e-3)
    copy = SeparationTerm(0.8, n_topics=5, n_words=1000)
    copy.load_state_dict(term.state_dict())
    assert copy.adapt(0.5, 5, 200) == term.adapt(0.5, 5, 200)


def test_the_push_is_weight_times_information_of_all_tokens():
    term, beta_t = SeparationTerm(0.8, n_topics=3, n_words=1000), simplex(3, 6).T.contiguous()
    shares, totals = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64), torch.tensor([7.0, 0.0, 20.0])
    mixed = beta_t @ shares
    by_hand = float((shares * beta_t * (beta_t / mixed[:, None]).log()).sum())
    weight = float(term.weight)
    assert term(beta_t, shares, totals).tolist() == pytest.approx([-weight * by_hand * n for n in (7, 0, 20)])


@pytest.mark.parametrize(
    ("before", "now", "error"),
    [
        (0.70, 0.72, -0.02),  # it rose by .02, and is at .82 after five such epochs
        (0.85, 0.79, 0.01),  # it fell, which is not taken to go on
        (0.20, 0.20, 0.1),  # a larger error counts as .1
    ],
)
def test_the_weight_of_the_push_by_hand(before, now, error):
    term = SeparationTerm(0.8, n_topics=5, n_words=1000)
    started = float(term.weight)
    term.last_diversity.fill_(before)
    assert term.adapt(now, active=5, epoch=2)["separation_weight"] == pytest.approx(started * math.exp(3 * error))
    for epoch in range(3, 200):
        term.adapt(0.1, active=5, epoch=epoch)
    assert float(term.weight) == pytest.approx(0.3)


def test_few_words_are_asked_for_less_diversity():
    assert SeparationTerm(0.8, n_topics=5, n_words=1000).target == 0.8
    assert SeparationTerm(0.8, n_topics=20, n_words=250).target == pytest.approx(0.6 * 250 / 500)
    off = SeparationTerm(0.0, n_topics=5, n_words=1000)
    assert off.target == 0
    assert off.adapt(0.1, 5, 50) == {}


def test_samplers_draw_what_they_say():
    alpha = torch.tensor([0.5, 1.0, 2.5])
    prior = DirichletSampler(3, 4 / 3)
    prior.shares.copy_(alpha / 4)
    drawn = prior.sample(20_000, seeded())
    assert torch.allclose(drawn.mean(0), alpha / 4, atol=0.01)
    assert torch.allclose(drawn[:, 0].var(), (alpha[0] / 4 * (1 - alpha[0] / 4)) / 5, rtol=0.05)
    corners = CornerMixture(4).sample(4000, seeded())
    assert torch.allclose(corners.mean(0), torch.full((4,), 0.25), atol=0.03)
    assert float(corners.max(1).values.mean()) > 0.95
    for sampler in (prior, CornerMixture(4), FittedMixture(4, 3.0)):
        assert torch.allclose(sampler.mean().sum(), torch.tensor(1.0))


@pytest.mark.parametrize("kind", [DirichletSampler, CornerMixture])
def test_samplers_follow_the_shares_of_documents(kind):
    """Each batch has a twentieth of the weight, and no topic less than a thousandth of an even share."""
    more = {"alpha": 0.5} if kind is DirichletSampler else {}
    follower, other = kind(3, **more, follows=True), kind(3, **more)
    even, shares = follower.mean(), torch.tensor([0.7, 0.3, 0.0])
    for each in (follower, other):
        each.update(100 * torch.tensor([[1.0, 0.0, 0.0]] * 7 + [[0.0, 1.0, 0.0]] * 3))
    torch.testing.assert_close(other.mean(), even)
    held = follower.shares if kind is DirichletSampler else follower.weights
    torch.testing.assert_close(held, 0.95 * even + 0.05 * shares.clamp_min(1e-3 / 3))


def test_the_centre_of_a_gaussian_follows_the_codes():
    follower, other = GaussianSampler(3, follows=True), GaussianSampler(3)
    for each in (follower, other):
        each.update(torch.tensor([[4.0, 1.0, 1.0], [2.0, 0.0, 4.0]]))
    torch.testing.assert_close(follower.means, 0.05 * torch.tensor([[1.0, -1.5, 0.5]]))  # about the mean of 2
    assert not other.means.any()


def test_the_components_of_a_mixture_prior_follow_their_documents():
    prior = MixturePrior(3, 2)
    prior.set(torch.tensor([0.5, 0.3, 0.2]), torch.zeros(3, 2), torch.ones(2))
    prior.follow(torch.tensor([0.9, 0.1, 0.0]))
    torch.testing.assert_close(prior.log_pi.exp(), torch.tensor([0.52, 0.29, 0.19]))
    for _ in range(400):
        prior.follow(torch.tensor([0.9, 0.1, 0.0]))
    torch.testing.assert_close(prior.log_pi.exp()[2], torch.tensor(1e-3 / 3), rtol=0.01, atol=0)  # it is not lost


def test_a_fitted_mixture_follows_the_codes():
    fitted = FittedMixture(3, 3.0)
    centres = torch.tensor([[7.0, 1.0, 0.0], [0.0, 5.0, -1.0], [-1.0, 0.0, 8.0]])
    generator = seeded()
    for _ in range(300):
        component = torch.randint(3, (64,), generator=generator)
        fitted.update(centres[component] + 0.5 * torch.randn(64, 3, generator=generator))
    assert torch.allclose(fitted.means, centres, atol=0.3)
    assert torch.allclose(fitted.vars, torch.full((3, 3), 0.25), atol=0.1)
    assert torch.allclose(fitted.weights, torch.full((3,), 1 / 3), atol=0.1)


def test_a_fitted_mixture_follows_the_codes_in_parts(monkeypatch):
    whole, parts = FittedMixture(7, 3.0), FittedMixture(7, 3.0)
    for n_codes in (50, 30):
        codes = torch.randn(n_codes, 7, generator=seeded(n_codes))
        whole.update(codes)
        with monkeypatch.context() as context:
            context.setattr(samplers, "_MOST_NUMBERS_AT_ONCE", 3 * codes.numel())
            parts.update(codes)
    for name, tensor in whole.state_dict().items():
        torch.testing.assert_close(parts.state_dict()[name], tensor)


def test_a_log_ratio_decoder_recovers_the_code_from_theta():
    topics = FreeTopics(torch.zeros(7), 4, seeded())
    decoder = LogRatioDecoder(topics)
    z = torch.randn(5, 4, generator=seeded(1))
    centred = z - z.mean(1, keepdim=True)
    expected = torch.log_softmax(centred @ topics.deviations().T, dim=1)
    assert torch.allclose(decoder.log_probabilities(torch.softmax(z, dim=1)), expected, atol=1e-5)
    topic = decoder.topic_word()
    assert torch.allclose(topic.sum(1), torch.ones(4), atol=1e-5)
    code = 2.0 * torch.eye(4)  # sqrt(4)
    assert torch.allclose(topic, decoder.log_probabilities(torch.softmax(code, dim=1)).exp(), atol=1e-5)
