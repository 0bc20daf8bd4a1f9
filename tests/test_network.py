"""The parts of every network: the bound, the target of the reconstruction, and the sparsity of theta."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy import integrate, special
from scipy.sparse import csr_array
from sklearn.feature_extraction.text import TfidfTransformer

import topicloom as tl
from batches import dense_of, sparse_batch
from topicloom import BATM, ETM, GMNTM, GSM, NVDM, NVLDA, WLDA, Corpus, DirichletVAE, Loom, ProdLDA, load
from topicloom.errors import SettingError
from topicloom.models.neural import NeuralTopicModel
from topicloom.nn.dirichlet_posteriors import InverseDirichlet, SparsePosterior
from topicloom.nn.encoders import tfidf_counts
from topicloom.training.batches import BatchReader

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
for estimator in ("implicit", "rsvi", "weibull", "icdf", "score"):
    for divergence in ("dirichlet", "gammas"):
        chosen = {"estimator": estimator, "divergence": divergence}
        KINDS[f"DirichletVAE, {estimator}, {divergence}"] = lambda c=chosen, **s: tl.DirichletVAE(**c, **s)


def marks_of_kind(kind):
    """The divergence of gammas is the same code for all estimators."""
    return pytest.mark.slow if ("gammas" in kind and "weibull" not in kind) or "0.7" in kind else ()


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=marks_of_kind(kind)) for kind in KINDS])
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


# What the loss of the neural models reconstructs: counts, or counts weighted by tf-idf.

DENSE = np.random.default_rng(0).poisson(np.geomspace(3, 0.05, 30), (120, 30))
DENSE[:, 0] += 1  # a word that is in every document
CORPUS = Corpus.from_counts(sp.csr_array(DENSE), [f"word{word}" for word in range(30)])
SETTINGS = {"epochs": 3, "batch_size": 30, "hidden_size": 8, "random_state": 0, "device": "cpu"}
MODELS = [
    DirichletVAE, ETM, GMNTM, GSM, WLDA,
    *(pytest.param(kind, marks=pytest.mark.slow) for kind in (BATM, NVDM, NVLDA, ProdLDA)),
]  # fmt: skip


def by_scikit_learn() -> np.ndarray:
    """The weighted counts by scikit-learn, with the totals of the documents."""
    return TfidfTransformer(norm="l1").fit_transform(DENSE).toarray() * DENSE.sum(1, keepdims=True)


def batch():
    return sparse_batch(CORPUS.counts, np.arange(len(DENSE)), torch.device("cpu"))


def started(kind, **settings):
    """A network before its first step."""
    model = kind(4, **SETTINGS, **settings)
    model._begin(CORPUS, None)
    return model._start(for_fit=True).network


def test_weights_are_those_of_scikit_learn():
    counts, idf = batch().counts, started(GSM).encoder.idf
    weighted = tfidf_counts(counts, idf)
    np.testing.assert_allclose(dense_of(weighted), by_scikit_learn(), rtol=1e-5)
    np.testing.assert_allclose(weighted.totals, DENSE.sum(1), rtol=1e-5)
    right = torch.rand(len(DENSE), 3)
    product = weighted.transposed_times(weighted.values, right)
    np.testing.assert_allclose(product, by_scikit_learn().T @ right.numpy(), rtol=1e-4)
    np.testing.assert_array_equal(dense_of(counts), DENSE)


def test_a_document_without_words():
    corpus = Corpus.from_counts(sp.csr_array(np.array([[0, 0], [1, 2]])), ["a", "b"])
    counts = sparse_batch(corpus.counts, np.arange(2), torch.device("cpu")).counts
    np.testing.assert_allclose(dense_of(tfidf_counts(counts, torch.ones(2))), [[0, 0], [1, 2]])


@pytest.mark.parametrize("kind", MODELS)
def test_the_loss_scores_the_weighted_counts(kind, monkeypatch):
    network = started(kind, target="tfidf").on(torch.device("cpu"), 0)
    seen = []
    score = network.decoder.score

    def watched(theta, counts, criterion):
        seen.append(dense_of(counts))
        return score(theta, counts, criterion)

    monkeypatch.setattr(network.decoder, "score", watched)
    network.train().loss(batch())
    assert seen
    for dense in seen:
        np.testing.assert_allclose(dense, by_scikit_learn(), rtol=1e-5)


@pytest.mark.parametrize("kind", MODELS)
def test_a_word_of_every_document_has_less_weight_in_topics(kind):
    settings = SETTINGS | {"epochs": 20, "background": False}
    if kind is NVDM:
        settings["rotation"] = "none"  # corners are found anew in each fit, and are farther away in one than in another
    counts, tfidf = (kind(4, target=target, **settings).fit(CORPUS) for target in ("counts", "tfidf"))
    assert tfidf.components_[:, 0].mean() < counts.components_[:, 0].mean()


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("method", ["bound", "completion"])
def test_perplexity_is_that_of_the_counts(kind, method):
    model = kind(4, target="tfidf", **SETTINGS).fit(CORPUS)
    perplexity = model.perplexity(CORPUS, method=method)
    model.network_.target = "counts"
    assert model.perplexity(CORPUS, method=method) == perplexity


def test_a_loaded_model_keeps_its_target(tmp_path):
    GSM(4, target="tfidf", **SETTINGS).fit(CORPUS).save(tmp_path / "model")
    again = load(tmp_path / "model", device="cpu").partial_fit(CORPUS)
    assert again.network_.target == "tfidf"


def test_targets_that_cannot_be():
    with pytest.raises(SettingError, match="`target` of Loom should be 'counts'; it is 'tfidf'"):
        Loom(4, target="tfidf").fit(CORPUS)
    model = GSM(4, **SETTINGS).fit(CORPUS)
    topics = model.components_
    with pytest.raises(SettingError, match="`criterion='bernoulli'` does not use weights of words, so `target`"):
        model.set_params(target="tfidf", criterion="bernoulli").fit(CORPUS)
    assert model.components_ is topics  # an earlier fit is kept


def test_a_network_that_has_no_target():
    @dataclasses.dataclass(eq=False, repr=False, kw_only=True)
    class Other(NeuralTopicModel):
        def build_network(self, words, generator):
            return torch.nn.Linear(1, 1)

    with pytest.raises(SettingError, match="Other cannot reconstruct `target='tfidf'`; use 'counts'"):
        Other(4, target="tfidf", device="cpu").fit(CORPUS)


# With a sparsity, the number of topics differs between documents as far as the texts do.

N_DOCS, N_TOPICS, N_WORDS = 600, 8, 160
N_PLANTED = np.repeat([1, 4], N_DOCS // 2)  # topics of each document


def of_unequal_length():
    """Return counts (600, 160) of documents with one or four of eight topics, which share no words."""
    random = np.random.default_rng(0)
    topics = np.kron(np.eye(N_TOPICS), random.dirichlet(np.ones(N_WORDS // N_TOPICS)))
    theta = np.zeros((N_DOCS, N_TOPICS))
    for document, n in enumerate(N_PLANTED):
        theta[document, random.choice(N_TOPICS, n, replace=False)] = 1 / n
    return np.stack([random.multinomial(60, p) for p in theta @ topics]).astype(np.float32)


def n_present(model, counts):
    documents = BatchReader.of(model.documents(counts), N_DOCS, torch.device("cpu"), ())
    with torch.inference_mode():
        posterior = model.network_.posterior(next(iter(documents)))
    assert isinstance(posterior, SparsePosterior)
    return posterior.n_present().numpy()


@pytest.mark.parametrize("code_norm", ["mean", "fixed"])
def test_documents_of_more_topics_have_more_topics(code_norm):
    counts = of_unequal_length()
    model = DirichletVAE(N_TOPICS, sparsity=0.3, epochs=20, hidden_size=32, random_state=0, device="cpu")
    found = n_present(model.set_params(code_norm=code_norm).fit(counts), counts)
    few, many = found[N_PLANTED == 1].mean(), found[N_PLANTED == 4].mean()
    assert many - few > 1
    last = model.history_[-1]
    assert last["topics_per_document"] == pytest.approx(found.mean(), rel=0.01)
    assert last["topics_per_document_deviation"] == pytest.approx(found.std(), rel=0.01)


def test_only_sparse_models_have_the_columns():
    model = DirichletVAE(N_TOPICS, epochs=1, hidden_size=8, random_state=0, device="cpu").fit(of_unequal_length()[:50])
    assert not [name for name in model.history_[-1] if name.startswith("topics_per_document")]
