"""The loss of each model in training, computed once more in NumPy from the formulas of the model's page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import cdist
from scipy.special import digamma, expit, gammaln, log_softmax, logsumexp, softmax

import topicloom as tl
from batches import batch_of, seeded
from topicloom.models.batm import draw_documents
from topicloom.nn.network import Loss
from topicloom.nn.sparse import Batch

K, V, D, H = 3, 8, 6, 5
Array = np.ndarray[Any, Any]
X = np.random.default_rng(0).poisson(1.5, (D, V)).astype(np.float32) + np.eye(D, V, dtype=np.float32)
VECTORS = np.random.default_rng(1).normal(size=(D, 4)).astype(np.float32)
CORPUS = tl.Corpus.from_counts(X, [f"word{v}" for v in range(V)])
FREQUENCY = np.log((X.sum(0) + 1) / (X.sum(0) + 1).sum())  # m, with one more token of each word
LENGTHS = X.sum(1)
QUICK = {"epochs": 2, "hidden_size": H, "spare_topics": 0, "random_state": 0, "device": "cpu"}
UNDISTURBED = {"input_dropout": 0.0, "dropout": 0.0}


def network_of(model: Any, corpus: tl.Corpus = CORPUS) -> Any:
    """The network of a fitted model in training. Its weights are moved, so that none of them is 0 or 1 any more."""
    network = model.fit(corpus).network_.train()
    noise = seeded(3)
    with torch.no_grad():
        for weights in network.parameters():
            weights.add_(0.3 * torch.randn(weights.shape, generator=noise))
    return network


def batch(*, vectors: bool = False) -> Batch:
    return Batch(batch_of(X), fields={"vectors": torch.from_numpy(VECTORS)} if vectors else {})


@torch.no_grad()
def loss_of(network: Any, documents: Batch | None = None) -> Loss:
    network.generator = seeded(5)
    loss: Loss = network.loss(documents or batch())
    return loss


def normal_noise() -> Array:
    return torch.empty(D, K).normal_(generator=seeded(5)).numpy()


def array(tensor: torch.Tensor) -> Array:
    return tensor.detach().double().numpy()


def hidden(network: Any, read: Array | None, vectors: Array | None = None) -> Array:
    """h = f(A f(W x + C e + b) + a), where f is softplus: (D, H)."""
    encoder = network.encoder
    sums = array(encoder.bias) + (0 if read is None else read @ array(encoder.weight))
    if vectors is not None:
        sums = sums + vectors / np.linalg.norm(vectors, axis=1, keepdims=True) @ array(encoder.of_vectors)
    h = np.logaddexp(0, sums)
    return np.logaddexp(0, h @ array(encoder.hidden.weight).T + array(encoder.hidden.bias))


def normalised(x: Array, eps: float = 1e-8) -> Array:
    return (x - x.mean(0)) / np.sqrt(x.var(0) + eps)


def gaussian(network: Any, h: Array, prior_var: float, *, published: float | None = None) -> tuple[Array, Array]:
    """mu and log sigma^2 of q(z | x), (D, K) each. `published` is the number that a paper adds to the variance."""
    head = network.head
    mean, log_var = (h @ array(layer.weight).T for layer in (head.mean, head.log_var))
    shifts = [None if norm.shift is None else 5 * array(norm.shift) for norm in (head.mean_norm, head.log_var_norm)]
    if published is not None:
        return normalised(mean, published) + shifts[0], normalised(log_var, published) + shifts[1]
    least = [
        least ** expit(5 * array(norm.scale)) for least, norm in ((0.75, head.mean_norm), (0.05, head.log_var_norm))
    ]
    mean = least[0] * normalised(mean) * np.sqrt(prior_var)
    return mean, least[1] * normalised(log_var) + np.tanh(shifts[1]) + np.log(prior_var) - 1


def kl_gaussian(mean: Array, log_var: Array, prior_mean: Any, prior_var: Any) -> Array:
    return 0.5 * (np.log(prior_var) - log_var + (np.exp(log_var) + (mean - prior_mean) ** 2) / prior_var - 1).sum(-1)


def laplace_var(alpha: float) -> float:
    return (1 - 2 / K) / alpha + 1 / (K * alpha)


def words_of(p: Array) -> Array:
    return -(X * np.log(p)).sum(1)


def check(found: Loss, reconstruction: Array, divergence: Array) -> None:
    assert array(found.reconstruction) == pytest.approx(reconstruction, rel=1e-4)
    assert array(found.divergence) == pytest.approx(divergence, rel=1e-4, abs=1e-4)


# Gaussian codes.


@pytest.mark.parametrize("prior", ["laplace", "standard"])
def test_etm_has_softmaxes_of_inner_products(prior):
    network = network_of(model := tl.ETM(K, embedding_size=4, prior=prior, **QUICK, **UNDISTURBED))
    var = laplace_var(0.3) if prior == "laplace" else 1.0
    mean, log_var = gaussian(network, hidden(network, np.log1p(X)), var)
    theta = softmax(mean + np.exp(log_var / 2) * normal_noise() + array(network.shares.logits), axis=1)
    rho, alpha = array(network.decoder.topics.word_vectors), array(network.decoder.topics.topic_vectors)
    beta = softmax(FREQUENCY + alpha @ rho.T, axis=1)
    check(found := loss_of(network), words_of(theta @ beta), kl_gaussian(mean, log_var, 0.0, var))
    p = theta.mean(0)
    information = (p[:, None] * beta * np.log(beta / (p @ beta))).sum()
    weight = float(network.separation.weight)
    assert array(found.extras["separation"]) == pytest.approx(-weight * information * LENGTHS, rel=1e-3)
    assert model.divergence_weight == 1


@pytest.mark.parametrize("rotation", ["none", "varimax"])
def test_nvdm_reconstructs_words_from_the_code_itself(rotation):
    network = network_of(tl.NVDM(K, rotation=rotation, **QUICK | UNDISTURBED))
    mean, log_var = gaussian(network, hidden(network, np.log1p(X)), 1.0)
    z = mean + np.exp(log_var / 2) * normal_noise()
    centred = z - z.mean(1, keepdims=True)
    logits = centred @ array(network.decoder.topics.deviations()).T + FREQUENCY
    check(loss_of(network), words_of(softmax(logits, axis=1)), kl_gaussian(mean, log_var, 0.0, 1.0))


# The Laplace approximation of a Dirichlet: ProdLDA, NVLDA, CombinedTM and ZeroShotTM.

CONTEXTUALIZED = {"dropout": 0.0, "theta_dropout": 0.0, "hidden_size": H, "epochs": 2}


@pytest.mark.parametrize(("recipe", "reads"), [("combined", "both"), ("zeroshot", "vectors")])
def test_contextualized_recipes_are_prodlda_with_vectors(recipe, reads, monkeypatch):
    monkeypatch.setattr("topicloom.nn.encoders._WITHOUT_VECTOR", 0.0)
    model = tl.ProdLDA.as_published(K, recipe=recipe, random_state=0, device="cpu", **CONTEXTUALIZED)
    network = network_of(model, CORPUS.with_vectors(VECTORS))
    h = hidden(network, X.astype(float) if reads == "both" else None, VECTORS)
    mean, log_var = gaussian(network, h, 1.0, published=1e-5)
    theta = softmax(mean + np.exp(log_var / 2) * normal_noise(), axis=1)
    weights, shift = array(network.decoder.topics.deviations()), array(network.decoder.norm.shift)
    p = softmax(normalised(theta @ weights.T, 1e-5) + shift, axis=1)
    check(loss_of(network, batch(vectors=True)), words_of(p), kl_gaussian(mean, log_var, 0.0, laplace_var(1.0)))


@pytest.mark.parametrize("batch_norm", [False, True])
def test_prodlda_averages_logits(batch_norm):
    network = network_of(tl.ProdLDA(K, batch_norm=batch_norm, **QUICK | UNDISTURBED))
    mean, log_var = gaussian(network, hidden(network, np.log1p(X)), laplace_var(0.5))
    theta = softmax(mean + np.exp(log_var / 2) * normal_noise() + array(network.shares.logits), axis=1)
    logits = theta @ array(network.decoder.topics.deviations()).T
    if batch_norm:
        logits = normalised(logits, 1e-5) + array(network.decoder.norm.shift)
    p = softmax(logits + FREQUENCY, axis=1)
    check(loss_of(network), words_of(p), kl_gaussian(mean, log_var, 0.0, laplace_var(0.5)))


def test_nvlda_averages_probabilities():
    network = network_of(tl.NVLDA(K, **QUICK | UNDISTURBED))
    mean, log_var = gaussian(network, hidden(network, np.log1p(X)), laplace_var(0.3))
    theta = softmax(mean + np.exp(log_var / 2) * normal_noise() + array(network.shares.logits), axis=1)
    beta = softmax(FREQUENCY + array(network.decoder.topics.deviations()).T, axis=1)
    check(loss_of(network), words_of(theta @ beta), kl_gaussian(mean, log_var, 0.0, laplace_var(0.3)))


# Dirichlets.


def dirichlet(head: Any, h: Array, alpha: Array) -> Array:
    """a(x) = alpha + c n softmax(2 BN(A h) + log alpha) + 1e-5, where c is learned between .175 and 1.75."""
    c = 1.75 * 0.1 ** expit(5 * array(head.concentration.scale))
    logits = 2 * normalised(h @ array(head.log_alpha.weight).T) + np.log(alpha)
    return alpha + c * LENGTHS[:, None] * softmax(logits, axis=1) + 1e-5


def kl_dirichlet(a: Array, alpha: Array) -> Array:
    constant = gammaln(a.sum(1)) - gammaln(a).sum(1) - gammaln(alpha.sum()) + gammaln(alpha).sum()
    return constant + ((a - alpha) * (digamma(a) - digamma(a.sum(1, keepdims=True)))).sum(1)


@pytest.mark.parametrize("estimator", ["implicit", "rsvi", "icdf", "score"])
def test_dirichletvae_adds_observed_tokens_to_the_prior(estimator):
    network = network_of(tl.DirichletVAE(K, estimator=estimator, **QUICK | UNDISTURBED))
    alpha = 0.07 * K * softmax(array(network.shares.logits))
    a = dirichlet(network.head, hidden(network, np.log1p(X)), alpha)
    theta = array(network.posterior(batch()).sample(seeded(5)).theta)
    beta = softmax(FREQUENCY + array(network.decoder.topics.deviations()).T, axis=1)
    check(loss_of(network), words_of(theta @ beta), kl_dirichlet(a, alpha))
    assert array(network.posterior(batch()).point()) == pytest.approx(a / a.sum(1, keepdims=True), rel=1e-4)


def test_sparsity_adds_the_divergence_of_present_topics():
    network = network_of(tl.DirichletVAE(K, sparsity=0.3, **QUICK | UNDISTURBED))
    h, alpha = hidden(network, np.log1p(X)), 0.07 * K * softmax(array(network.shares.logits))
    a, part = dirichlet(network.head, h, alpha), network.indicator
    logits = normalised(h @ array(part.logits.weight).T) * 5 * array(part.norm.scale) + 5 * array(part.norm.shift)
    present = expit(logits + np.log(0.3 / 0.7))
    bernoulli = present * np.log(present / 0.3) + (1 - present) * np.log((1 - present) / 0.7)
    assert array(loss_of(network).divergence) == pytest.approx(kl_dirichlet(a, alpha) + bernoulli.sum(1), rel=1e-4)
    theta = present * a / (present * a).sum(1, keepdims=True)
    assert array(network.posterior(batch()).point()) == pytest.approx(theta, rel=1e-4)


def test_weibulls_have_the_means_of_gammas():
    """KL(Weibull(k, r lambda) || Weibull(k0, lambda0)), at the common factor r with which it is least."""
    network = network_of(tl.DirichletVAE(K, estimator="weibull", **QUICK | UNDISTURBED))
    alpha = 0.07 * K * softmax(array(network.shares.logits))
    a, posterior = dirichlet(network.head.mean, hidden(network, np.log1p(X)), alpha), network.posterior(batch())
    k, k0 = array(posterior.shape), array(network.head.prior_shape(network.alpha))
    scale, scale0 = a / np.exp(gammaln(1 + 1 / k)), alpha / np.exp(gammaln(1 + 1 / k0))

    def divergence(log_r: float, d: int) -> float:
        log_ratio = log_r + np.log(scale[d] / scale0)
        moment = np.exp(k0 * log_ratio + gammaln(1 + k0 / k[d]))  # E[(w / lambda0)^k0]
        return float((np.log(k[d] / k0) - k0 * log_ratio + np.euler_gamma * (k0 / k[d] - 1) + moment - 1).sum())

    least = [minimize_scalar(divergence, bracket=(-20, 20), args=(d,)).fun for d in range(D)]
    theta = array(posterior.sample(seeded(5)).theta)
    beta = softmax(FREQUENCY + array(network.decoder.topics.deviations()).T, axis=1)
    check(loss_of(network), words_of(theta @ beta), np.array(least))
    assert array(posterior.point()) == pytest.approx(a / a.sum(1, keepdims=True), rel=1e-4)


# A single theta for each document.


def kernel(left: Array, right: Array) -> float:
    return float(np.exp(-(np.arccos(min(1 - 1e-6, np.sqrt(left * right).sum())) ** 2)))


@pytest.mark.parametrize("settings", [{}, {"decoder": "product", "mmd_pairs": "all", "code_norm": "none"}], ids=str)
def test_wlda_compares_theta_with_samples_of_the_prior(settings, monkeypatch):
    network = network_of(tl.WLDA(K, **QUICK | UNDISTURBED | settings))
    random = np.random.default_rng(2)
    sample, eta = (random.dirichlet(np.full(K, 0.4), D) for _ in range(2))
    monkeypatch.setattr(network.prior, "sample", lambda n, generator: torch.from_numpy(sample).float())
    monkeypatch.setattr(network.eta, "sample", lambda n, generator: torch.from_numpy(eta).float())
    f, b = hidden(network, np.log1p(X)) @ array(network.code.weight).T, array(network.shares.logits)
    if settings:
        theta = compared = softmax(3 * (f + 5 * array(network.norm.shift)) + b, axis=1)
        pairs = [(i, j) for i in range(D) for j in range(D) if i != j]
    else:
        theta = softmax(3 * normalised(f) + b, axis=1)
        compared = softmax(3 * np.vstack([normalised(half) for half in np.split(f, 2)]) + b, axis=1)
        pairs = [(i, j) for i in range(D // 2) for j in range(D // 2, D)]
    own = np.mean([kernel(compared[i], compared[j]) for i, j in pairs])
    of_prior = np.mean([kernel(sample[i], sample[j]) for i in range(D) for j in range(D) if i != j])
    mmd = own + of_prior - 2 * np.mean([kernel(p, t) for p in sample for t in compared])
    disturbed, topics = 0.95 * theta + 0.05 * eta, array(network.decoder.topics.deviations()).T
    p = softmax(disturbed @ topics + FREQUENCY, axis=1) if settings else disturbed @ softmax(topics + FREQUENCY, axis=1)
    check(loss_of(network), words_of(p), np.full(D, LENGTHS.mean() * np.log(V) * mmd))


def test_batm_adds_the_gap_in_nats_per_token():
    network = network_of(tl.BATM(K, critic_size=4, reconstruction_weight=0.7, **QUICK | UNDISTURBED))
    prior = torch.from_numpy(np.random.default_rng(2).dirichlet(np.full(K, 0.4), D)).float()
    network._prior_theta = lambda n: prior
    f = normalised(hidden(network, np.log1p(X)) @ array(network.code.weight).T)
    spread = np.sqrt(laplace_var(0.1))
    theta = softmax(spread * f + array(network.shares.logits), axis=1)
    beta = softmax(FREQUENCY + array(network.decoder.topics.deviations()).T, axis=1)
    drawn = draw_documents(prior, network.topic_word(), torch.from_numpy(LENGTHS), seeded(5))
    false = np.zeros((D, V))
    np.add.at(false, (drawn.documents.numpy(), drawn.indices.numpy()), 1.0)
    critic = network.critic

    def judged(theta: Array, x: Array) -> Array:
        shares = x / x.sum(1, keepdims=True)
        h = shares @ array(critic.words) + theta @ array(critic.topics) + array(critic.bias)
        h = np.maximum(h, 0.1 * h) @ array(critic.hidden.weight).T + array(critic.hidden.bias)
        return np.maximum(h, 0.1 * h) @ array(critic.out)

    gap = judged(theta, X) - judged(array(prior), false)
    check(loss_of(network), 0.7 * words_of(theta @ beta), LENGTHS.mean() * gap)
    network.generator = seeded(5)
    assert array(network.critic_loss(batch()).extras["gap"]) == pytest.approx(-gap, rel=1e-4)


# Components and clusters.


def test_gmntm_has_a_component_for_each_topic():
    settings = {"pretrain_epochs": 1, "mutual_distance": 0.5, "component_separation": 3.0, "balance": 2.0}
    network = network_of(tl.GMNTM(K, **settings, **QUICK | UNDISTURBED))
    network.prior.set(torch.tensor([0.5, 0.3, 0.2]), 2 * torch.eye(K) + 0.1, torch.tensor([0.5, 1.0, 2.0]))
    mean, log_var = gaussian(network, hidden(network, np.log1p(X)), 1.0)
    mu, var = array(network.prior.means), np.exp(array(network.prior.log_var))
    log_pi, b = log_softmax(array(network.prior.weights)), array(network.shares.logits)
    theta = softmax(2 * (mean + np.exp(log_var / 2) * normal_noise()) + b, axis=1)
    beta = softmax(FREQUENCY + array(network.decoder.topics.deviations()).T, axis=1)
    kl = np.stack([kl_gaussian(mean, log_var, centre, var) for centre in mu], axis=1)  # (D, K)
    eta = softmax(log_pi - kl, axis=1)  # E_q[log N(z | mu_c)] is -KL up to a constant
    found = loss_of(network)
    check(found, words_of(theta @ beta), (eta * (kl + np.log(eta) - log_pi)).sum(1))
    directions, shares = mu / np.linalg.norm(mu, axis=1, keepdims=True), softmax(2 * mu + b, axis=1)
    terms = {
        "mutual_distance": 0.5 * ((directions @ directions.T).sum() + (shares @ shares.T).sum()),
        "component_separation": -3 * np.diag(log_softmax(2 * mu, axis=1)).mean(),
        "balance": 2 * (np.exp(log_pi) * (log_pi - np.log(eta.mean(0)))).sum(),
    }
    for name, value in terms.items():
        assert array(found.extras[name]) == pytest.approx(np.full(D, value), rel=1e-4), name
    assert array(network.topic_word()) == pytest.approx(shares @ beta, rel=1e-4)
    point = softmax(2 * mean + b, axis=1)
    check(network.pretraining_loss(batch()), words_of(point @ beta), np.zeros(D))


def test_ecrtm_transports_words_to_topics():
    network = network_of(tl.ECRTM(K, embedding_size=4, **QUICK | UNDISTURBED))
    mean, log_var = gaussian(network, hidden(network, np.log1p(X)), 1.0, published=1e-8)
    theta = softmax(mean + np.exp(log_var / 2) * normal_noise(), axis=1)
    distances = cdist(array(network.topics.word_vectors), array(network.topics.topic_vectors), "sqeuclidean")
    shares = softmax(-distances / 0.2, axis=1)  # (V, K)
    p = softmax(normalised(theta @ shares.T, 1e-5) + array(network.decoder.norm.shift), axis=1)
    found = loss_of(network)
    check(found, words_of(p), kl_gaussian(mean, log_var, 0.0, laplace_var(1.0)))
    plan = -20 * distances
    for _ in range(2000):
        plan = plan - logsumexp(plan, axis=0) - np.log(K)
        plan = plan - logsumexp(plan, axis=1, keepdims=True) - np.log(V)
    cost = 100 * (np.exp(plan) * distances).sum()
    assert array(found.extras["clustering"]) == pytest.approx(np.full(D, cost), rel=1e-2)
