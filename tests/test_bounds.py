"""The bound of every variational model, against the log likelihood of theta that NumPy draws from the prior."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import integrate, special
from scipy.sparse import csr_array

import topicloom as tl
from topicloom.nn.dirichlet_posteriors import InverseDirichlet
from topicloom.training.batches import sparse_batch

K, V, N_DRAWS = 3, 15, 20_000
Array = np.ndarray[Any, Any]


def planted(n_docs: int) -> Array:
    random = np.random.default_rng(0)
    beta, theta = random.dirichlet(np.full(V, 0.1), K), random.dirichlet(np.full(K, 0.3), n_docs)
    return np.vstack([random.multinomial(8, each @ beta) for each in theta]).astype(np.float32)


COUNTS = planted(200)


def log_gammas(random: np.random.Generator, shapes: Array) -> Array:
    """Logarithms of gamma variables, (N_DRAWS, K), of which none underflows."""
    size = (N_DRAWS, K)
    return np.log(random.gamma(shapes + 1, size=size)) + np.log(random.random(size)) / shapes


def log_weibulls(random: np.random.Generator, network: Any) -> Array:
    alpha = network.alpha.double().numpy()
    if network.of_gammas:
        return log_gammas(random, np.maximum(alpha, 0.05))
    shape = float(network.head.prior_shape(network.alpha))
    scale = np.log(alpha) - special.gammaln(1 + 1 / shape)  # the means are alpha
    return scale + np.log(-np.log(random.random((N_DRAWS, K)))) / shape


def draw_prior(model: Any) -> Array:
    """Draw theta from the prior of a fitted model, (N_DRAWS, K)."""
    network, random = model.network_, np.random.default_rng(1)
    if isinstance(model, tl.Loom | tl.LDA):
        return random.dirichlet((network.counting if isinstance(model, tl.Loom) else network).alpha.double(), N_DRAWS)
    if isinstance(model, tl.DirichletVAE):
        if model.estimator == "laplace":
            noise = random.standard_normal((N_DRAWS, K))
            logits = network.prior.mean.numpy() + network.prior.var.sqrt().numpy() * noise + b_of(network)
        elif model.estimator == "weibull":
            logits = log_weibulls(random, network)
        else:
            logits = log_gammas(random, network.alpha.double().numpy())
        if model.sparsity is not None:
            logits -= 1e4 * (random.random(logits.shape) > model.sparsity)
        return special.softmax(logits, axis=1)
    prior = network.prior
    if isinstance(model, tl.GMNTM):
        component = random.choice(K, N_DRAWS, p=special.softmax(prior.weights.double().numpy()))
        spread = np.broadcast_to(prior.log_var.exp().sqrt().numpy(), (K, K))[component]
        z = prior.means.numpy()[component] + spread * random.standard_normal((N_DRAWS, K))
    else:
        n_latent = len(prior.mean)
        z = prior.mean.numpy() + prior.var.sqrt().numpy() * random.standard_normal((N_DRAWS, n_latent))
    return network.to_theta(torch.from_numpy(z).float()).numpy()


def b_of(network: Any) -> Array:
    logits: Array = network.shares.logits.numpy()
    return logits


KINDS: dict[str, Callable[..., Any]] = {
    "GSM": tl.GSM,
    "GSM, matrix": lambda **s: tl.GSM(latent_size=4, **s),
    "GSM, mlp": lambda **s: tl.GSM(decoder="mlp", **s),
    "NVDM": tl.NVDM,
    "NVDM, none": lambda **s: tl.NVDM(rotation="none", **s),
    "ETM": tl.ETM,
    "ProdLDA": tl.ProdLDA,
    "ProdLDA, batch norm": lambda **s: tl.ProdLDA(batch_norm=True, **s),
    "NVLDA": tl.NVLDA,
    "GMNTM": tl.GMNTM,
    "GMNTM, variances": lambda **s: tl.GMNTM(component_variances=True, spread=None, **s),
    "LDA": tl.LDA,
    "Loom": lambda **s: tl.Loom(**s | {"epochs": 40}),
}
for sparsity in (0.3, 0.7):
    KINDS[f"DirichletVAE, sparsity {sparsity}"] = lambda p=sparsity, **s: tl.DirichletVAE(sparsity=p, **s)
for estimator in ("implicit", "rsvi", "weibull", "icdf"):
    for divergence in ("dirichlet", "gammas"):
        chosen = {"estimator": estimator, "divergence": divergence}
        KINDS[f"DirichletVAE, {estimator}, {divergence}"] = lambda c=chosen, **s: tl.DirichletVAE(**c, **s)


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_the_bound_is_below_the_log_likelihood(kind):
    model = KINDS[kind](n_topics=K, epochs=5, random_state=0, device="cpu").fit(COUNTS)
    network, some = model.network_, COUNTS[:30]
    theta = torch.from_numpy(draw_prior(model)).float()
    p = network.word_probabilities(theta).double().numpy()  # (N_DRAWS, V)
    np.testing.assert_allclose(p.sum(1), 1, rtol=1e-4)
    log_p = np.log(np.maximum(p, 1e-40))  # some are 0 in single precision
    log_likelihood = special.logsumexp(some @ log_p.T, axis=1) - np.log(N_DRAWS)  # (30,)
    batch, noise = sparse_batch(csr_array(some), np.arange(len(some)), torch.device("cpu")), torch.Generator()
    draws = np.stack([network.bound(batch, noise).double().numpy() for _ in range(100)])
    above = draws.mean(0) - log_likelihood
    assert (above < 4 * draws.std(0) / 10 + 0.05).all(), above.max()
    assert draws.mean() > log_likelihood.mean() - 40  # the divergence of gammas is by far the loosest


def test_a_bound_needs_the_exact_draws_of_icdf():
    """The divergence is that of a Dirichlet, which varies more than the draws of the loss."""
    beta, x, alpha = np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([70, 30]), 0.5
    highest = x @ np.log(x / x.sum())

    def likelihood(t: float) -> float:
        return float(np.exp(x @ np.log(t * beta[0] + (1 - t) * beta[1]) - highest))

    integral = integrate.quad(likelihood, 0, 1, weight="alg", wvar=(alpha - 1, alpha - 1))[0]
    log_evidence = np.log(integral) - special.betaln(alpha, alpha) + highest

    def best(*, exact: bool) -> float:
        """The highest bound of such posteriors, found on a grid."""
        found = []
        for total in (20, 40, 60, 80):
            a = total * torch.tensor([0.75, 0.25])
            posterior = InverseDirichlet(a.expand(100_000, 2), torch.full((2,), alpha))
            draws = posterior.exact() if exact else posterior
            theta = draws.sample(torch.Generator().manual_seed(0)).theta.double().numpy()
            found.append((np.log(theta @ beta) @ x).mean() - float(posterior.divergence()[0].sum()))
        return max(found)

    assert best(exact=True) - log_evidence == pytest.approx(0, abs=0.02)
    assert best(exact=False) - log_evidence == pytest.approx(0.78, abs=0.02)
