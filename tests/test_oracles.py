"""The mathematics, against references that compute the same thing another way: dense, in closed form, by quadrature."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import integrate, sparse, special, stats
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize
from torch import nn
from torch.distributions import Bernoulli, Normal, kl_divergence

from batches import CPU, dense_of, double_batch_of, seeded, sparse_batch
from topicloom.models import GSM, LDA
from topicloom.nn import mean_field
from topicloom.nn.decoders import EmbeddedTopics, FreeTopics, MixtureDecoder, MLPDecoder, ProductDecoder, column_softmax
from topicloom.nn.encoders import encoder_values
from topicloom.nn.layers import BatchNorm, dropout
from topicloom.nn.posteriors import DirichletPosterior, GaussianPosterior, kl_normal, laplace_dirichlet, standard_normal
from topicloom.nn.sparse import TINY, bag_product, mixture_log_likelihood

N_DOCS, N_WORDS, N_TOPICS = 6, 9, 3
COUNTS = np.random.default_rng(0).poisson(0.8, (N_DOCS, N_WORDS)).astype(np.float32)
COUNTS[2] = 0  # an empty document
COUNTS[:, 4] = 0  # a word that no document has
BATCHES = {"some empty": COUNTS, "all empty": np.zeros((2, N_WORDS), np.float32), "one document": COUNTS[:1]}


def uniform(*size: int, seed: int = 0) -> torch.Tensor:
    return torch.rand(*size, generator=seeded(seed), dtype=torch.float64)


def simplex(*size: int, seed: int = 0) -> torch.Tensor:
    """Rows that sum to 1, in float64."""
    return torch.softmax(2 * uniform(*size, seed=seed), dim=-1)


@pytest.fixture(params=BATCHES)
def x(request) -> torch.Tensor:
    """(B, V) counts"""
    return torch.from_numpy(BATCHES[request.param]).double()


@pytest.fixture(params=["library's product", "gathered rows"])
def both_ways(request, monkeypatch):
    """With the sampled product of the library, and without it, in several pieces."""
    monkeypatch.setattr("topicloom.nn.sparse._has_sampled_product", lambda device: request.param == "library's product")
    monkeypatch.setattr("topicloom.nn.sparse._CPU_BLOCK", 4 * N_TOPICS)


# Sparse products.


@pytest.mark.usefixtures("both_ways")
def test_sparse_products(x):
    batch = double_batch_of(x.numpy())
    values = uniform(len(batch.values), seed=1)
    s = dense_of(batch.with_values(values))
    left, right = uniform(len(x), N_TOPICS, seed=2), uniform(N_WORDS, N_TOPICS, seed=3)
    torch.testing.assert_close(dense_of(batch), x)
    torch.testing.assert_close(batch.totals, x.sum(1))
    torch.testing.assert_close(batch.sum_by_document(values), s.sum(1))
    torch.testing.assert_close(batch.times(values, right), s @ right)
    torch.testing.assert_close(batch.transposed_times(values, left), s.T @ left)
    torch.testing.assert_close(batch.sampled_product(left, right), (left @ right.T)[x > 0])
    torch.testing.assert_close(batch.at_counts(left @ right.T), (left @ right.T)[x > 0])


@pytest.mark.usefixtures("both_ways")
def test_mixture_log_likelihood(x):
    batch = double_batch_of(x.numpy())
    theta = simplex(len(x), N_TOPICS).requires_grad_()
    beta_t = simplex(N_TOPICS, N_WORDS, seed=1).T.contiguous().requires_grad_()
    weights = 1 + torch.arange(len(x))  # so that each document's gradient is its own

    ours = mixture_log_likelihood(theta, beta_t, batch)
    dense = (x * (theta @ beta_t.T).log()).sum(1)
    torch.testing.assert_close(ours, dense, atol=1e-8, rtol=1e-8)
    gradients = [torch.autograd.grad((weights * value).sum(), (theta, beta_t)) for value in (ours, dense)]
    torch.testing.assert_close(*gradients, atol=1e-7, rtol=1e-7)  # TINY is the difference
    assert torch.autograd.gradcheck(lambda *inputs: mixture_log_likelihood(*inputs, batch), (theta, beta_t))


def test_impossible_words_have_a_finite_likelihood():
    theta, beta_t = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0], [1.0, 0.0]])  # (1, 2), (2, 2)
    batch = double_batch_of(np.array([[3.0, 0.0]]))
    expected = torch.tensor([3 * np.log(TINY)])
    torch.testing.assert_close(mixture_log_likelihood(theta.double(), beta_t.double(), batch), expected)


def test_bag_product(x):
    batch = double_batch_of(x.numpy())
    weight = uniform(N_WORDS, 5).requires_grad_()
    values = uniform(len(batch.values), seed=1)
    ours = bag_product(weight, values, batch)
    bag = F.embedding_bag(
        batch.indices, weight, batch.offsets, mode="sum", per_sample_weights=values, include_last_offset=True
    )
    torch.testing.assert_close(ours, bag)
    if len(values):
        assert torch.autograd.gradcheck(lambda weight: bag_product(weight, values, batch), weight)


@pytest.mark.parametrize("n_columns", [1, N_TOPICS])
def test_column_softmax(n_columns: int):
    weight, offset, gain = 9 * uniform(N_WORDS, N_TOPICS), 300 * uniform(N_WORDS, n_columns, seed=1), 3.0
    weight.requires_grad_()
    expected = torch.softmax(offset + gain * weight, dim=0)
    torch.testing.assert_close(column_softmax(weight, offset, gain), expected)
    assert torch.autograd.gradcheck(lambda weight: column_softmax(weight, offset / 300, gain), weight)


# Decoders.

BACKGROUND = simplex(N_WORDS, seed=7).log()


def free() -> FreeTopics:
    """Topics that differ a good deal, and not by the little that training starts with."""
    topics = FreeTopics(BACKGROUND, N_TOPICS, seeded()).double()
    nn.init.normal_(topics.weight, std=0.3, generator=seeded(1))
    return topics


def product_probabilities(decoder: ProductDecoder, theta: torch.Tensor) -> torch.Tensor:
    return torch.softmax(theta @ decoder.topics.deviations().T + decoder.topics.background, dim=1)


def mlp_probabilities(decoder: MLPDecoder, theta: torch.Tensor) -> torch.Tensor:
    h = F.softplus(theta @ decoder.hidden.weight.T + decoder.hidden.bias)
    return torch.softmax(h @ decoder.topics.deviations().T + decoder.topics.background, dim=1)


def mixture_probabilities(decoder: MixtureDecoder, theta: torch.Tensor) -> torch.Tensor:
    return theta @ torch.softmax(decoder.topics.deviations().T + decoder.topics.background, dim=1)


DECODERS = {
    "mixture": (lambda: MixtureDecoder(free()), mixture_probabilities),
    "product": (lambda: ProductDecoder(free()), product_probabilities),
    "mlp": (lambda: MLPDecoder(BACKGROUND, N_TOPICS, 4, seeded()).double(), mlp_probabilities),
}


@pytest.mark.parametrize("name", DECODERS)
def test_decoder_against_dense(name, x):
    make, probabilities = DECODERS[name]
    decoder, batch, theta = make(), double_batch_of(x.numpy()), simplex(len(x), N_TOPICS)
    p = probabilities(decoder, theta)  # (B, V)
    torch.testing.assert_close(decoder.log_probabilities(theta).exp(), p)
    likelihood = (x * p.log()).sum(1)
    contains = 1 - (1 - p) ** x.sum(1, keepdim=True)  # (B, V) that so many tokens contain the word
    expected = Bernoulli(contains).log_prob((x > 0).double()).sum(1)
    torch.testing.assert_close(decoder.score(theta, batch, "cross_entropy"), likelihood, atol=1e-7, rtol=1e-7)
    torch.testing.assert_close(decoder.score(theta, batch, "bernoulli"), expected, atol=1e-7, rtol=1e-7)


@pytest.mark.parametrize("name", DECODERS)
def test_topics_are_what_the_decoder_says_of_one_topic_alone(name):
    make, probabilities = DECODERS[name]
    decoder = make().float()
    corners = probabilities(decoder, torch.eye(N_TOPICS))
    torch.testing.assert_close(decoder.topic_word(), corners)


def test_reading_the_topics_leaves_batch_statistics_alone():
    decoder = ProductDecoder(free().float(), batch_norm=True).train()
    before = decoder.norm.running_mean.clone()
    decoder.topic_word()
    assert decoder.training
    torch.testing.assert_close(decoder.norm.running_mean, before, atol=0, rtol=0)


def test_embedded_topics_are_products_of_vectors():
    topics = EmbeddedTopics(BACKGROUND, N_TOPICS, 4, seeded())
    words, topic_vectors = topics.word_vectors.detach().numpy(), topics.topic_vectors.detach().numpy()
    np.testing.assert_allclose(topics.deviations().detach(), np.einsum("vl,kl->vk", words, topic_vectors), rtol=1e-5)


# Layers and encoder inputs.


def test_batch_norm_is_torchs():
    ours, theirs = BatchNorm(4), nn.BatchNorm1d(4, affine=False)
    for step in range(5):
        x = 3 + 2 * torch.randn(7, 4, generator=seeded(step))
        torch.testing.assert_close(ours(x), theirs(x))
    torch.testing.assert_close(ours.eval()(x), theirs.eval()(x))


def test_batch_norm_of_one_document_uses_the_running_figures():
    layer, one = BatchNorm(4), torch.randn(1, 4, generator=seeded())
    torch.testing.assert_close(layer.train()(one), one / (1 + 1e-5) ** 0.5)


def test_dropout_keeps_the_mean():
    dropped = dropout(torch.ones(100_000), 0.3, seeded())
    assert dropped.unique().tolist() == pytest.approx([0, 1 / 0.7])
    assert float(dropped.mean()) == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(
    ("kind", "reference"),
    [
        ("raw", lambda x: x),
        ("log1p", np.log1p),
        ("l1", lambda x: normalize(x, norm="l1")),
        # Documents without words do not count: how rare a word is, is not for them to say.
        ("tfidf", lambda x: TfidfTransformer().fit(x[x.any(1)]).transform(x).toarray()),
    ],
)
def test_encoder_inputs_are_scikit_learns(kind, reference):
    model = GSM(2, epochs=1, device="cpu", random_state=0).fit(COUNTS)
    batch = double_batch_of(COUNTS)
    values = encoder_values(batch, kind, model.word_statistics().idf)
    np.testing.assert_allclose(dense_of(batch.with_values(values)), reference(COUNTS), rtol=1e-6)


# Distributions.


def test_kl_normal():
    mean, log_var = 4 * uniform(5, 3) - 2, 4 * uniform(5, 3, seed=1) - 2
    prior_mean, prior_var = uniform(3, seed=2), 0.1 + uniform(3, seed=3)
    reference = kl_divergence(Normal(mean, (0.5 * log_var).exp()), Normal(prior_mean, prior_var.sqrt()))
    torch.testing.assert_close(kl_normal(mean, log_var, prior_mean, prior_var), reference)


def test_laplace_dirichlet_by_hand():
    prior = laplace_dirichlet(torch.tensor([1.0, 2.0, 4.0]))  # K = 3; sum of 1 / alpha is 7/4
    torch.testing.assert_close(prior.mean, torch.tensor([-1.0, 0.0, 1.0]) * np.log(2))
    torch.testing.assert_close(prior.var, torch.tensor([1 / 3, 1 / 6, 1 / 12]) + 7 / 36)


def test_laplace_dirichlet_describes_draws():
    alpha = torch.tensor([40.0, 80.0, 60.0])
    prior = laplace_dirichlet(alpha)
    draws = np.log(np.random.default_rng(0).dirichlet(alpha, 100_000))
    z = draws - draws.mean(1, keepdims=True)  # the code of theta whose entries sum to zero
    np.testing.assert_allclose(z.mean(0), prior.mean, atol=0.01)
    np.testing.assert_allclose(z.var(0), prior.var, rtol=0.05)


def test_gaussian_posterior_by_quadrature():
    mean, log_var = torch.tensor([[0.8, -0.4]]), torch.tensor([[0.2, -0.5]])
    posterior = GaussianPosterior(
        mean.expand(200_000, 2), log_var, standard_normal(2), lambda z: torch.softmax(z, dim=1)
    )
    difference = stats.norm(1.2, np.exp([0.2, -0.5]).sum() ** 0.5)  # of the two codes; theta_0 is its sigmoid
    expected = integrate.quad(lambda z: special.expit(z) * difference.pdf(z), -20, 20)[0]
    assert float(posterior.sample(seeded()).theta[:, 0].mean()) == pytest.approx(expected, abs=3e-3)
    assert float(posterior.point()[0, 0]) == pytest.approx(special.expit(1.2))


def test_dirichlet_posterior_in_closed_form():
    alpha = torch.tensor([[0.3, 1.0, 4.0]])
    posterior = DirichletPosterior(alpha, torch.ones(3))
    torch.testing.assert_close(posterior.point(), torch.distributions.Dirichlet(alpha).mean)
    expected = special.digamma([0.3, 1.0, 4.0]) - special.digamma(5.3)
    torch.testing.assert_close(posterior.expected_log()[0], torch.tensor(expected).float())


# GSM: the loss is the evidence lower bound.

GSM_SETTINGS = [
    {},
    {"latent_size": 4},
    {"prior": "laplace"},
    {"decoder": "mlp", "decoder_size": 5},
    {"background": False},
    {"criterion": "bernoulli", "n_samples": 3},
    {"encoder_input": "l1", "alpha": 0.1},
]


@pytest.mark.parametrize("settings", GSM_SETTINGS, ids=str)
def test_gsm_loss_is_the_bound(settings):
    model = GSM(N_TOPICS, epochs=3, hidden_size=8, batch_size=2, random_state=0, device="cpu", **settings).fit(COUNTS)
    network, x = model.network_, torch.from_numpy(COUNTS)
    network.generator = seeded(5)
    with torch.no_grad():
        loss = network.loss(sparse_batch(sparse.csr_array(COUNTS), np.arange(N_DOCS), CPU))
        posterior = dense_gsm_posterior(model, x)
        noise = seeded(5)
        scores = []
        for _ in range(model.n_samples):
            z = posterior.mean + posterior.stddev * torch.empty_like(posterior.mean).normal_(generator=noise)
            p = dense_gsm_words(model, z)
            contains = 1 - (1 - p) ** x.sum(1, keepdim=True)  # (B, V) that so many tokens contain the word
            words = Bernoulli(contains).log_prob((x > 0).float()) if model.criterion == "bernoulli" else x * p.log()
            scores.append(words.sum(1))
        prior = (
            laplace_dirichlet(torch.full((N_TOPICS,), model.alpha or 0.3))
            if model.prior == "laplace" or model.alpha is not None
            else standard_normal(model.latent_size or N_TOPICS)
        )
        divergence = kl_divergence(posterior, Normal(prior.mean, prior.var.sqrt())).sum(1)
    torch.testing.assert_close(loss.reconstruction, -torch.stack(scores).mean(0), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(loss.divergence, divergence, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(loss.total(0.5) - loss.extras["separation"], loss.reconstruction + 0.5 * loss.divergence)


def dense_gsm_posterior(model: GSM, x: torch.Tensor) -> Normal:
    """q(z | x) by torch's own dense layers."""
    encoder, head = model.network_.encoder, model.network_.head
    seen = x / x.sum(1, keepdim=True).clamp_min(1e-12) if model.encoder_input == "l1" else x.log1p()
    h = F.softplus(encoder.hidden(F.softplus(seen @ encoder.weight + encoder.bias)))
    mean, log_var = (
        F.batch_norm(layer(h), part.norm.running_mean, part.norm.running_var) * least ** torch.sigmoid(5 * part.scale)
        for layer, part, least in ((head.mean, head.mean_norm, 0.75), (head.log_var, head.log_var_norm, 0.05))
    )
    log_var = log_var + (5 * head.log_var_norm.shift).tanh()
    return Normal(mean * (0.5 * head.prior_log_var).exp(), (0.5 * (log_var + head.prior_log_var - 1)).exp())


def dense_gsm_words(model: GSM, z: torch.Tensor) -> torch.Tensor:
    """p(w | z): (B, V)"""
    network, decoder = model.network_, model.network_.decoder
    logits = z * (1 if network.spread is None else network.spread)
    if model.latent_size is not None:
        logits = z @ network.projection.weight.T
    theta = torch.softmax(logits + network.shares.logits, dim=1)
    frequency = torch.from_numpy(COUNTS.sum(0) + 1)
    background = (frequency / frequency.sum()).log() if model.background else torch.zeros(N_WORDS)
    weight = decoder.topics.deviations()
    if model.decoder == "mixture":
        return theta @ torch.softmax(weight.T + background, dim=1)
    h = F.softplus(decoder.hidden(theta)) if model.decoder == "mlp" else theta
    return torch.softmax(h @ weight.T + background, dim=1)


# LDA: mean-field inference.


@pytest.fixture
def to_convergence(monkeypatch):
    monkeypatch.setattr(mean_field, "TOLERANCE", 1e-7)
    monkeypatch.setattr(mean_field, "MAX_STEPS", 2000)


def lda_network(beta: np.ndarray, alpha: np.ndarray) -> mean_field.MeanFieldNetwork:
    network = mean_field.MeanFieldNetwork(beta.shape[1], len(beta))
    network.beta_t.copy_(torch.from_numpy(beta.T))
    network.alpha.copy_(torch.from_numpy(alpha))
    return network


@pytest.mark.usefixtures("to_convergence")
def test_lda_inference_is_scikit_learns():
    random = np.random.default_rng(0)
    beta = random.dirichlet(np.full(20, 0.3), N_TOPICS)  # (K, V)
    counts = random.poisson(1.5, (30, 20)).astype(np.float32)
    alpha = 0.4
    reference = LatentDirichletAllocation(
        N_TOPICS, doc_topic_prior=alpha, max_iter=1, mean_change_tol=1e-8, max_doc_update_iter=2000, random_state=0
    ).fit(counts.astype(np.float64))
    reference.exp_dirichlet_component_ = beta
    network = lda_network(beta, np.full(N_TOPICS, alpha))
    ours = network.posterior(sparse_batch(sparse.csr_array(counts), np.arange(30), CPU)).point()
    np.testing.assert_allclose(ours, reference.transform(counts.astype(np.float64)), atol=1e-3)


@pytest.mark.usefixtures("to_convergence")
@pytest.mark.parametrize("alpha", [[1.0, 1.0], [0.3, 0.8], [5.0, 2.0]], ids=str)
def test_lda_bound_is_just_below_the_evidence(alpha):
    random = np.random.default_rng(1)
    beta = random.dirichlet(np.full(6, 0.8), 2)
    counts = np.vstack([random.multinomial(8, t * beta[0] + (1 - t) * beta[1]) for t in (0.0, 0.3, 0.9)])

    def log_evidence(x: np.ndarray) -> float:
        """log of the integral over theta = (t, 1 - t) of Dirichlet(theta; alpha) p(x | theta)"""

        def likelihood(t: float) -> float:
            return float(np.prod((t * beta[0] + (1 - t) * beta[1]) ** x))

        value = integrate.quad(likelihood, 0, 1, weight="alg", wvar=(alpha[0] - 1, alpha[1] - 1))[0]
        return float(np.log(value) - special.betaln(*alpha))

    network = lda_network(beta, np.array(alpha))
    loss = network.loss(sparse_batch(sparse.csr_array(counts.astype(np.float32)), np.arange(3), CPU))
    gap = np.array([log_evidence(x) for x in counts]) + loss.total().numpy()
    assert (gap > -1e-5).all()
    assert (gap < 1).all()


def test_an_empty_document_has_no_loss():
    network = lda_network(np.full((2, 4), 0.25), np.array([0.5, 1.5]))
    batch = sparse_batch(sparse.csr_array(np.zeros((1, 4), np.float32)), np.arange(1), CPU)
    assert network.loss(batch).total().item() == pytest.approx(0, abs=1e-6)
    np.testing.assert_allclose(network.posterior(batch).point()[0], network.prior_theta())


def test_lda_completion_perplexity_by_hand():
    model = LDA(2, epochs=2, random_state=0, device="cpu").fit(COUNTS)
    observed, scored = (half.toarray() for half in completion_halves(COUNTS))
    p = model.transform(observed) @ model.components_
    expected = np.exp(-(scored * np.log(p)).sum() / scored.sum())
    assert model.perplexity(COUNTS, method="completion") == pytest.approx(expected, rel=1e-5)


def completion_halves(counts: np.ndarray) -> tuple[sparse.csr_array, sparse.csr_array]:
    whole = sparse.csr_array(counts)
    observed = whole.copy()
    observed.data = np.random.default_rng(0).binomial(whole.data.astype(int), 0.5).astype(np.float32)
    return observed, whole - observed
