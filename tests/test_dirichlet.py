"""The Dirichlet posteriors: draws, gradients of expectations against closed forms and quadrature, divergences."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy import integrate, special, stats
from torch.distributions import Dirichlet, Gamma, Weibull, kl_divergence

from batches import seeded
from topicloom.nn.dirichlet_posteriors import (
    ImplicitDirichlet,
    InverseDirichlet,
    LaplacePosterior,
    RejectionDirichlet,
    ScoreDirichlet,
    SimplexPosterior,
    SparsePosterior,
    WeibullPosterior,
    log_gamma_slope,
    weibull_shape,
)
from topicloom.nn.encoders import WeibullHead
from topicloom.nn.layers import FoldedNorm
from topicloom.nn.posteriors import kl_bernoulli, kl_dirichlet, kl_weibull, kl_weibull_gamma, laplace_dirichlet

N_DRAWS = 200_000
PRIOR = torch.full((3,), 0.5, dtype=torch.float64)
Integrand = Callable[[torch.Tensor], torch.Tensor]  # theta (N, K) -> (N,)


def gradient(make: Callable[[torch.Tensor], SimplexPosterior], a: list[float], f: Integrand) -> tuple[np.ndarray, ...]:
    """Mean and standard error (K,) of the estimated gradient of E[f(theta)] by the parameters a (K,)."""
    parameters = torch.tensor(a, dtype=torch.float64).repeat(N_DRAWS, 1).requires_grad_()  # (N, K), a document a draw
    draw = make(parameters).sample(seeded())
    (each,) = torch.autograd.grad(draw.surrogate(f(draw.theta)).sum(), parameters)  # (N, K)
    assert each.isfinite().all()
    return each.mean(0).numpy(), (each.std(0) / N_DRAWS**0.5).numpy()


def assert_within(found: tuple[np.ndarray, ...], expected: np.ndarray, errors: float = 4.5, bias: float = 0.0) -> None:
    mean, error = found
    assert (np.abs(mean - expected) <= errors * error + bias + 1e-9).all(), (mean, error, expected)


def differences(expectation: Callable[[np.ndarray], float], a: list[float], step: float = 1e-4) -> np.ndarray:
    """Central finite differences of an exact expectation: (K,)"""
    steps = step * np.eye(len(a))
    return np.array([(expectation(a + e) - expectation(a - e)) / (2 * step) for e in steps])


def second_moment(a: np.ndarray) -> float:
    """E[theta_0^2] of a Dirichlet."""
    total = a.sum()
    return float(a[0] * (a[0] + 1) / (total * (total + 1)))


EXACT = {
    "implicit": lambda a: ImplicitDirichlet(a, PRIOR),
    "rsvi, B=1": lambda a: RejectionDirichlet(a, PRIOR, 1),
    "rsvi, B=5": lambda a: RejectionDirichlet(a, PRIOR, 5),
    "score": lambda a: ScoreDirichlet(a, PRIOR),
}
SHAPES = [[0.05, 0.1, 0.3], [0.8, 1.0, 1.5], [4.0, 12.0, 30.0]]


def test_what_others_have_is_taken_off_without_bias():
    """A loss is large and grows with the document: its size alone must not drown the gradient."""
    a = SHAPES[1]
    sizes = 20 + 80 * torch.rand(N_DRAWS, dtype=torch.float64, generator=seeded(1))
    found = {}
    for name, given in (("plain", None), ("with others taken off", sizes)):
        alpha = torch.tensor(a, dtype=torch.float64).repeat(N_DRAWS, 1).requires_grad_()
        draw = RejectionDirichlet(alpha, PRIOR, 1).sample(seeded())
        f = sizes * (7.0 + draw.theta[:, 0] ** 2)
        (each,) = torch.autograd.grad((draw.surrogate(f, given) / sizes).sum(), alpha)
        found[name] = each.mean(0).numpy(), (each.std(0) / N_DRAWS**0.5).numpy()
        assert_within(found[name], differences(second_moment, a))
    assert (found["with others taken off"][1] < found["plain"][1] / 3).all()


@pytest.mark.parametrize("a", SHAPES, ids=str)
@pytest.mark.parametrize("name", EXACT)
def test_exact_estimators_have_the_gradient_of_the_expectation(name, a):
    """E[theta_0^2] and E[log(theta_0 + 1/10)] in K=3; the second by quadrature over theta_0 ~ Beta."""
    assert_within(gradient(EXACT[name], a, lambda theta: theta[:, 0] ** 2), differences(second_moment, a))

    def expected_log(a: np.ndarray) -> float:
        # Over the quantiles of the Beta, which has poles where shapes are small.
        beta = stats.beta(a[0], a[1:].sum())
        if min(a[0], a[1:].sum()) > 2:
            return float(beta.expect(lambda t: np.log(t + 0.1)))
        weight = (a[0] - 1, a[1:].sum() - 1)
        value = integrate.quad(lambda t: np.log(t + 0.1), 0, 1, weight="alg", wvar=weight)[0]
        return float(value / special.beta(a[0], a[1:].sum()))

    found = gradient(EXACT[name], a, lambda theta: (theta[:, 0] + 0.1).log())
    assert_within(found, differences(expected_log, a), bias=1e-6)


@pytest.mark.parametrize("name", EXACT)
def test_gradient_of_the_expected_log(name):
    """E[log theta_k] = digamma(a_k) - digamma(sum a), whose gradient is in trigammas."""
    a = [0.7, 1.3, 3.0]
    trigamma = special.polygamma(1, a)
    expected = np.array([trigamma[0], 0, 0]) - special.polygamma(1, np.sum(a))
    assert_within(gradient(EXACT[name], a, lambda theta: theta[:, 0].log()), expected)


def test_the_score_varies_as_its_density_says():
    """The gradient of E[f] by a_k is f (log theta_k - digamma(a_k) + digamma(sum a)), whose moments are integrals."""
    a = [0.8, 1.5]
    beta = stats.beta(*a)
    slope = special.digamma(a[0]) - special.digamma(sum(a))
    moments = [
        integrate.quad(lambda t, power=power: (t**2 * (np.log(t) - slope)) ** power * beta.pdf(t), 0, 1)[0]
        for power in (1, 2)
    ]
    deviation = (moments[1] - moments[0] ** 2) ** 0.5
    mean, error = gradient(lambda alpha: ScoreDirichlet(alpha, PRIOR[:2]), a, lambda theta: theta[:, 0] ** 2)
    assert abs(mean[0] - moments[0]) < 4.5 * error[0]
    assert error[0] * N_DRAWS**0.5 == pytest.approx(deviation, rel=0.02)


def test_the_path_alone_misses_part_of_the_gradient_of_rsvi():
    a = [0.8, 1.0, 1.5]
    parameters = torch.tensor(a, dtype=torch.float64).repeat(N_DRAWS, 1).requires_grad_()
    theta = RejectionDirichlet(parameters, PRIOR, 1).sample(seeded()).theta
    (each,) = torch.autograd.grad((theta[:, 0].log()).sum(), parameters)
    expected = special.polygamma(1, a[0]) - special.polygamma(1, np.sum(a))
    assert abs(float(each[:, 0].mean()) - expected) > 5 * float(each[:, 0].std()) / N_DRAWS**0.5


def weibull_expectation(k: np.ndarray, log_scale: np.ndarray) -> float:
    """E[theta_0^2] of two Weibulls, theta_0 = w_0 / (w_0 + w_1), by quadrature over the two exponentials."""
    scale = np.exp(log_scale)
    nodes, weights = np.polynomial.legendre.leggauss(400)
    u, weight = (nodes + 1) / 2, weights / 2
    w0, w1 = (s * (-np.log(u)) ** (1 / c) for s, c in zip(scale, k, strict=True))
    share = w0[:, None] / (w0[:, None] + w1[None])
    return float(weight @ share**2 @ weight)


def test_gradient_of_weibull_by_quadrature():
    k, log_scale = [1.2, 2.0], [0.3, -0.4]
    prior = torch.ones(2)
    fixed = torch.tensor(log_scale, dtype=torch.float64)
    by_k = gradient(lambda k: WeibullPosterior(k, fixed.expand_as(k), prior), k, lambda theta: theta[:, 0] ** 2)
    assert_within(by_k, differences(lambda k: weibull_expectation(k, np.array(log_scale)), k), bias=1e-5)
    shape = torch.tensor(k, dtype=torch.float64)
    by_scale = gradient(
        lambda scale: WeibullPosterior(shape.expand_as(scale), scale, prior), log_scale, lambda theta: theta[:, 0] ** 2
    )
    assert_within(by_scale, differences(lambda scale: weibull_expectation(np.array(k), scale), log_scale), bias=1e-5)


def test_gradient_of_laplace_by_quadrature():
    mean, log_var = [0.4, -0.2], [0.1, -0.6]
    nodes, weights = np.polynomial.hermite_e.hermegauss(100)

    def expectation(mean: np.ndarray, log_var: np.ndarray) -> float:
        z = mean[0] - mean[1] + np.exp(log_var).sum() ** 0.5 * nodes  # theta_0 is the sigmoid of a Gaussian
        return float(weights @ special.expit(z) ** 2 / weights.sum())

    prior = laplace_dirichlet(torch.ones(2, dtype=torch.float64))
    for by_mean in (True, False):
        other = torch.tensor(log_var if by_mean else mean, dtype=torch.float64)

        def make(x: torch.Tensor, by_mean: bool = by_mean, other: torch.Tensor = other) -> SimplexPosterior:
            parts = (x, other.expand_as(x)) if by_mean else (other.expand_as(x), x)
            return LaplacePosterior(*parts, prior)

        found = gradient(make, mean if by_mean else log_var, lambda theta: theta[:, 0] ** 2)
        expected = (
            differences(lambda x: expectation(x, np.array(log_var)), mean)
            if by_mean
            else differences(lambda x: expectation(np.array(mean), x), log_var)
        )
        assert_within(found, expected, bias=1e-6)


def test_gradient_of_icdf():
    """Its own expectation exactly, E[log theta_0 - log theta_1] = log Gamma(a + 1) / a - 1 / a, and the Dirichlet's
    gradient where shapes are small."""
    a = [0.6, 1.4]

    def log_ratio(theta: torch.Tensor) -> torch.Tensor:
        return theta[:, 0].log() - theta[:, 1].log()

    def expectation(a: np.ndarray) -> float:
        expected_log = (special.gammaln(a + 1) - 1) / a
        return float(expected_log[0] - expected_log[1])

    prior = torch.ones(2)
    found = gradient(lambda a: InverseDirichlet(a, prior), a, log_ratio)
    assert_within(found, differences(expectation, a))
    small = [0.02, 0.05]
    found = gradient(lambda a: InverseDirichlet(a, prior), small, lambda theta: theta[:, 0] ** 2)
    assert_within(found, differences(second_moment, small), bias=0.02 * abs(differences(second_moment, small)).max())


# Draws.


@pytest.mark.parametrize("make", EXACT.values(), ids=EXACT)
@pytest.mark.parametrize("a", SHAPES, ids=str)
def test_exact_draws_are_dirichlet(make, a):
    alpha = torch.tensor(a, dtype=torch.float64).expand(50_000, 3)
    theta = make(alpha).sample(seeded()).theta
    reference = Dirichlet(alpha[0])
    torch.testing.assert_close(theta.mean(0), reference.mean, atol=0.01, rtol=0)
    torch.testing.assert_close(theta.var(0), reference.variance, atol=0.005, rtol=0.02)
    assert stats.kstest(theta[:, 0], stats.beta(a[0], sum(a[1:])).cdf).pvalue > 1e-3


@pytest.mark.parametrize("a", [1e-5, 1e-3, 0.1, 1.0, 50.0, 1e4])
@pytest.mark.parametrize("kind", ["implicit", "rsvi", "icdf", "weibull", "score"])
def test_draws_and_gradients_are_finite(kind, a):
    alpha = torch.full((500, 20), a).requires_grad_()
    prior = torch.full((20,), 0.1)
    posterior = {
        "implicit": lambda: ImplicitDirichlet(alpha, prior),
        "rsvi": lambda: RejectionDirichlet(alpha, prior, 5),
        "icdf": lambda: InverseDirichlet(alpha, prior),
        "score": lambda: ScoreDirichlet(alpha, prior),
        "weibull": lambda: WeibullPosterior(alpha.clamp_min(0.1), alpha.log(), prior),
    }[kind]()
    draw = posterior.sample(seeded())
    torch.testing.assert_close(draw.theta.sum(1), torch.ones(500))
    loss = draw.surrogate((draw.theta @ torch.rand(20, 5, generator=seeded(1)) + 1e-10).log().sum(1))
    (grad,) = torch.autograd.grad((loss + posterior.divergence().sum(1)).sum(), alpha)
    assert grad.isfinite().all()


@pytest.mark.parametrize("a", [0.01, 0.3, 1.0, 7.0, 60.0])
def test_slope_of_a_log_gamma_keeps_its_quantile(a):
    quantile = np.array([0.001, 0.1, 0.5, 0.9, 0.999])
    step = 1e-5 * a

    def log_quantile(a: float) -> np.ndarray:
        by_series = (np.log(quantile) + special.gammaln(a + 1)) / a  # exact where the gamma is tiny
        with np.errstate(divide="ignore"):
            return np.where(by_series < -20, by_series, np.log(special.gammaincinv(a, quantile)))

    expected = (log_quantile(a + step) - log_quantile(a - step)) / (2 * step)
    log_g = torch.from_numpy(log_quantile(a))
    found = log_gamma_slope(torch.full_like(log_g, a), log_g)
    np.testing.assert_allclose(found, expected, rtol=2e-3)


def test_slope_is_torchs():
    a = torch.tensor([0.2, 1.0, 5.0], dtype=torch.float64).requires_grad_()
    g = Gamma(a, torch.ones_like(a)).rsample()
    (expected,) = torch.autograd.grad(g.log().sum(), a)
    torch.testing.assert_close(log_gamma_slope(a.detach(), g.detach().log()), expected)


def test_noise_comes_from_the_generator_alone():
    alpha = torch.full((4, 3), 0.3)
    before = torch.random.get_rng_state()
    for make in EXACT.values():
        torch.testing.assert_close(make(alpha).sample(seeded()).theta, make(alpha).sample(seeded()).theta)
    torch.testing.assert_close(torch.random.get_rng_state(), before)


# Divergences.


def test_kl_of_dirichlets_is_shared_out_without_debts():
    alpha = 0.01 + 3 * torch.rand(50, 4, generator=seeded()).double()
    prior = torch.tensor([0.05, 0.2, 0.8, 2.0]).double()
    alpha.requires_grad_()
    shares = kl_dirichlet(alpha, prior)
    reference = kl_divergence(Dirichlet(alpha), Dirichlet(prior.expand_as(alpha)))
    assert (shares >= 0).all()
    torch.testing.assert_close(shares.sum(1), reference)
    gradients = [torch.autograd.grad(kl.sum(), alpha)[0] for kl in (shares, reference)]
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("difference", [0.0, 1e-7, 1e-5, 1e-3])
@pytest.mark.parametrize("n_topics", [2, 50])
def test_kl_of_dirichlets_near_the_prior_is_near_zero(difference, n_topics):
    prior = torch.full((n_topics,), 0.3)
    alpha = (prior + difference * torch.rand(200, n_topics, generator=seeded())).requires_grad_()
    shares = kl_dirichlet(alpha, prior)
    (gradient,) = torch.autograd.grad(shares.sum(), alpha)
    assert shares.sum(1).abs().max() < 1e-3
    assert gradient.abs().max() < 0.1


@pytest.mark.parametrize("shape", [0.4, 1.0, 3.0])
def test_kl_weibull_gamma(shape):
    k, scale, prior = (torch.tensor([x], dtype=torch.float64) for x in (shape, 0.7, 0.6))
    weibull, gamma = stats.weibull_min(shape, scale=0.7), stats.gamma(0.6)
    expected = integrate.quad(
        lambda q: weibull.logpdf(weibull.ppf(q)) - gamma.logpdf(weibull.ppf(q)), 1e-12, 1 - 1e-12, limit=500
    )[0]
    found = kl_weibull_gamma(k[None], scale.log()[None], prior)
    assert found.item() == pytest.approx(expected, rel=1e-4)
    draws = Weibull(scale, k).sample((N_DRAWS,))
    assert draws.log().mean().item() == pytest.approx(math.log(0.7) - 0.5772156649 / shape, abs=0.02)


def test_the_rate_of_the_gammas_minimizes_the_divergence():
    """theta does not see the scale that the weights share, so neither does what it costs."""
    prior = torch.tensor([0.1, 0.4, 0.2], dtype=torch.float64)
    k = torch.tensor([[0.5, 1.0, 3.0]], dtype=torch.float64)
    log_scale = torch.tensor([[0.0, 1.0, -2.0]], dtype=torch.float64)
    found = WeibullPosterior(k, log_scale, prior).divergence().sum()
    torch.testing.assert_close(WeibullPosterior(k, log_scale + 3, prior).divergence().sum(), found)
    shifts = torch.linspace(-5, 5, 1001, dtype=torch.float64)[:, None]  # logarithms of rates
    least = kl_weibull_gamma(k, log_scale + shifts, prior).sum(1).min()
    assert found.item() <= least.item()
    assert found.item() == pytest.approx(least.item(), abs=1e-3)


@pytest.mark.parametrize("shape", [0.2, 1.0, 3.0])
def test_kl_weibull(shape):
    """One topic has the factor at which its moment is 1; that of the density ratio is then the divergence."""
    k, k0, log_scale0 = (torch.tensor(x, dtype=torch.float64) for x in (shape, 0.5, -1.2))
    log_scale = log_scale0 - torch.lgamma(1 + k0 / k) / k0
    posterior = stats.weibull_min(shape, scale=math.exp(log_scale))
    prior = stats.weibull_min(0.5, scale=math.exp(-1.2))
    expected = integrate.quad(
        lambda q: posterior.logpdf(posterior.ppf(q)) - prior.logpdf(posterior.ppf(q)), 1e-12, 1 - 1e-12, limit=500
    )[0]
    found = kl_weibull(k[None, None], log_scale[None, None] + 3, k0, log_scale0[None])
    assert found.item() == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_the_factor_of_the_weibulls_minimizes_the_divergence():
    prior, k0 = torch.tensor([0.1, 0.4, 0.2], dtype=torch.float64), torch.tensor(0.3, dtype=torch.float64)
    k = torch.tensor([[0.5, 1.0, 3.0]], dtype=torch.float64)
    log_scale = torch.tensor([[0.0, 1.0, -2.0]], dtype=torch.float64)
    found = WeibullPosterior(k, log_scale, prior, k0).divergence().sum()
    q = [torch.distributions.Weibull(scale, shape) for scale, shape in zip(log_scale[0].exp(), k[0], strict=True)]
    scales = (prior.log() - torch.lgamma(1 + 1 / k0)).exp()
    least = math.inf
    for log_factor in torch.linspace(-8, 8, 801, dtype=torch.float64):
        total = 0.0
        for each, scale in zip(q, scales, strict=True):  # E_q[log q - log p] by quadrature
            u = (torch.arange(4000, dtype=torch.float64) + 0.5) / 4000
            w = each.scale * (-(1 - u).log()) ** (1 / each.concentration)
            p = torch.distributions.Weibull(scale * log_factor.exp(), k0)
            total += (each.log_prob(w) - p.log_prob(w)).mean().item()
        least = min(least, total)
    assert found.item() == pytest.approx(least, abs=0.01)


def test_a_document_without_tokens_costs_nothing_with_weibulls():
    head = WeibullHead(6, 4, seeded(), concentration=1.75)
    alpha = torch.tensor([0.2, 0.04, 0.02, 0.02])
    k, log_scale = head(torch.randn(8, 6, generator=seeded()), alpha, torch.zeros(8))
    found = WeibullPosterior(k, log_scale, alpha, head.prior_shape(alpha)).divergence()
    torch.testing.assert_close(found, torch.zeros_like(found), atol=1e-3, rtol=0)


def test_a_weibull_varies_like_its_gamma():
    a = torch.tensor([0.01, 0.3, 1.0, 5.0, 200.0], dtype=torch.float64)
    torch.testing.assert_close(math.pi**2 / (6 * weibull_shape(a) ** 2), torch.polygamma(1, a), rtol=1e-3, atol=0)


def test_kl_bernoulli():
    logits = torch.tensor([-30.0, -2.0, 0.5, 30.0], dtype=torch.float64)
    p = torch.sigmoid(logits)
    prior = torch.distributions.Bernoulli(torch.tensor(0.2, dtype=torch.float64))
    torch.testing.assert_close(kl_bernoulli(logits, 0.2), kl_divergence(torch.distributions.Bernoulli(p), prior))


# Sparsity.


def test_the_relaxation_is_nearly_a_bernoulli():
    """At a low temperature b is 0 or 1, and 1 with the probability that it should be."""
    n = 100_000
    even = LaplacePosterior(torch.zeros(n, 2), torch.full((n, 2), -50.0), laplace_dirichlet(torch.ones(2)))
    logits = torch.tensor([[1.0, -0.5]]).expand(n, 2)
    log_weights, _ = SparsePosterior(even, logits, 0.5, temperature=0.05).draw(seeded())
    b = log_weights.exp()
    assert ((b < 0.05) | (b > 0.95)).double().mean() > 0.9
    torch.testing.assert_close((b > 0.5).float().mean(0), torch.sigmoid(logits[0]), atol=0.01, rtol=0)


def test_a_topic_that_is_absent_has_no_share():
    alpha = torch.tensor([[2.0, 2.0, 2.0]])
    posterior = SparsePosterior(ImplicitDirichlet(alpha, torch.ones(3)), torch.tensor([[40.0, 40.0, -40.0]]), 0.2, 0.5)
    torch.testing.assert_close(posterior.point(), torch.tensor([[0.5, 0.5, 0.0]]))
    assert float(posterior.sample(seeded()).theta[0, 2]) < 1e-6
    whole = posterior.weights.divergence() + kl_bernoulli(posterior.logits, 0.2)
    torch.testing.assert_close(posterior.divergence(), whole)


# Parts.


def test_the_folded_norm_is_batch_norm():
    x = torch.softmax(2 * torch.randn(40, 3, generator=seeded()), 1).double()
    weight = torch.randn(7, 3, generator=seeded(1)).double().requires_grad_()
    ours, theirs = FoldedNorm(3, 7).double(), torch.nn.BatchNorm1d(7).double()
    theirs.running_mean, theirs.running_var = weight.detach().sum(1) / 3, weight.detach().square().sum(1) / 3
    for training in (True, False):
        ours.train(training), theirs.train(training)
        folded, bias = ours(x, weight)
        y, reference = x @ folded.T + bias, theirs(x @ weight.T)
        torch.testing.assert_close(y, reference)
        gradients = [torch.autograd.grad((out * torch.arange(7)).square().sum(), weight)[0] for out in (y, reference)]
        if training:  # afterwards, ours still knows what the variance is made of
            torch.testing.assert_close(*gradients)
