"""Compiled loops of training steps, against autograd in double precision and the modules that they replace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import Tensor, nn

import topicloom as tl
from batches import CPU, dense_of, seeded, sparse_batch
from topicloom.models import autoencoders
from topicloom.models.gsm import GSMNetwork
from topicloom.nn import decoders, execution, posteriors
from topicloom.nn import sparse as sparse_products
from topicloom.nn.decoders import column_softmax
from topicloom.nn.posteriors import topic_information
from topicloom.nn.sparse import Batch, bag_product, expected_tokens, mixture_log_likelihood
from topicloom.training.callbacks import Callback

pytest.importorskip("numba")
B, V, K = 70, 400, 45  # V * K and N * K are large enough for compiled loops
COUNTS = np.random.default_rng(0).poisson(0.03, (B, V)).astype(np.float32)
COUNTS[3] = 0  # an empty document


@pytest.fixture
def loops(monkeypatch) -> list[str]:
    """The names of the loops that have been compiled for training steps."""
    names: list[str] = []

    def noted(function: Any, *others: Any) -> Any:
        found = execution.compiled_for(function, *others)
        if found is not None:
            names.append(function.__name__)
        return found

    for module in (decoders, posteriors, sparse_products):
        monkeypatch.setattr(module, "compiled_for", noted)
    return names


def batch() -> Batch:
    return sparse_batch(sparse.csr_array(COUNTS), np.arange(B), CPU)


def normal(*size: int, seed: int = 0) -> Tensor:
    return torch.randn(*size, generator=seeded(seed))


def gradients(loss: Tensor, inputs: list[Tensor]) -> list[Tensor]:
    return list(torch.autograd.grad(loss, inputs))


def assert_close(found: list[Tensor], expected: list[Tensor]) -> None:
    for own, other in zip(found, expected, strict=True):
        scale = other.abs().max()
        torch.testing.assert_close(own.double() / scale, other / scale, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("n_columns", [1, K])
def test_column_softmax(loops, n_columns):
    weight, offset, of_out = normal(V, K).requires_grad_(), 9 * normal(V, n_columns, seed=1), normal(V, K, seed=2)
    out = column_softmax(weight, offset, 7.0)
    wide = weight.detach().double().requires_grad_()
    expected = torch.softmax(offset.double() + 7 * wide, dim=0)
    found = [out.detach(), *gradients((out * of_out).sum(), [weight])]
    assert_close(found, [expected.detach(), *gradients((expected * of_out).sum(), [wide])])
    assert loops == ["_softmax_loop", "_softmax_gradient_loop"]


def test_topic_information(loops):
    logits, shares = 3 * normal(V, K), torch.softmax(normal(K, seed=1), 0)
    shares[5] = 0
    beta_t = torch.softmax(logits, 0).requires_grad_()
    wide, p = beta_t.detach().double().requires_grad_(), shares.double()
    mean = (wide @ p).detach()[:, None]  # its own gradient is a constant for columns that sum to 1
    expected = ((wide * (wide / mean).log()) @ p).sum()
    found = topic_information(beta_t, shares)
    of_beta = (wide / mean).log() * p  # (V, K)
    assert_close([found.detach(), *gradients(found, [beta_t])], [expected.detach(), of_beta.detach()])
    assert loops == ["_information_loop"]


def test_mixture_log_likelihood(loops):
    counts = batch().counts
    theta, beta_t = torch.softmax(3 * normal(B, K), 1), torch.softmax(3 * normal(V, K, seed=1), 0)
    given, weights = [theta.requires_grad_(), beta_t.requires_grad_()], normal(B, seed=2)
    out = mixture_log_likelihood(theta, beta_t, counts)
    wide = [each.detach().double().requires_grad_() for each in given]
    expected = (torch.from_numpy(COUNTS).double() * (wide[0] @ wide[1].mT + 1e-10).log()).sum(1)
    assert_close(
        [out.detach(), *gradients((out * weights).sum(), given)],
        [expected.detach(), *gradients((expected * weights).sum(), wide)],
    )
    assert loops == ["mixture_loop", "mixture_gradient_loop"]


@pytest.mark.parametrize("k", [K, 2])
def test_expected_tokens(loops, k):
    theta, beta_t = torch.softmax(3 * normal(B, k), 1), torch.softmax(3 * normal(V, k, seed=1), 0)
    p = theta.double()[:, None] * beta_t.double()  # (B, V, K)
    expected = (torch.from_numpy(COUNTS).double()[:, :, None] * p / (p.sum(2, keepdim=True) + 1e-10)).sum(1)
    assert_close([expected_tokens(theta, beta_t, batch().counts)], [expected])
    assert loops == ["_tokens_loop"] * (k == K)  # with few topics, there is too little to read


def test_bag_product(loops):
    counts, weight, of_out = batch().counts, normal(V, K).requires_grad_(), normal(B, K, seed=1)
    values = torch.rand(len(counts.values), generator=seeded(2))
    dense, wide = dense_of(counts.with_values(values)).double(), weight.detach().double().requires_grad_()
    found = gradients((bag_product(weight, values, counts) * of_out).sum(), [weight])
    assert_close(found, gradients(((dense @ wide) * of_out).sum(), [wide]))
    assert loops == ["_bag_gradient_loop"]


def test_nan_stays_nan():
    weight = normal(V, K).requires_grad_()
    with torch.no_grad():
        weight[2, 1] = torch.nan
    beta_t = column_softmax(weight, torch.zeros(V, 1))
    assert beta_t[:, 1].isnan().all()
    assert topic_information(beta_t, torch.full((K,), 1 / K)).isnan()
    theta = torch.full((B, K), 1 / K, requires_grad=True)
    assert mixture_log_likelihood(theta, beta_t, batch().counts).isnan()[COUNTS.any(1)].all()


def test_evaluation_does_not_depend_on_the_size_of_a_batch(loops):
    theta, beta_t = torch.softmax(normal(B, K), 1), torch.softmax(normal(V, K, seed=1), 0)
    whole = mixture_log_likelihood(theta, beta_t, batch().counts)
    one = sparse_batch(sparse.csr_array(COUNTS), np.array([7]), CPU).counts
    assert mixture_log_likelihood(theta[7:8], beta_t, one).equal(whole[7:8])
    assert not loops


def test_exponential_and_logarithm():
    powers, numbers = np.zeros(10_000, np.float32), np.zeros(10_000, np.float32)
    x, y = np.linspace(-87, 88, 10_000, dtype=np.float32), np.logspace(-37, 38, 10_000, dtype=np.float32)
    loop = execution.compiled(_elementwise_loop, _elementwise_example)
    assert loop is not None
    loop(x, y, powers, numbers)
    np.testing.assert_allclose(powers, np.exp(x.astype(float)), rtol=1e-5)  # x itself is rounded
    np.testing.assert_allclose(numbers, np.log(y.astype(float)), rtol=3e-7, atol=1e-7)


def _elementwise_loop(x: Any, y: Any, powers: Any, numbers: Any) -> None:
    for i in range(len(x)):
        powers[i], numbers[i] = execution.exponential(x[i]), execution.logarithm(y[i])


def _elementwise_example() -> tuple[Any, ...]:
    one = np.ones(1, np.float32)
    return one, one, one.copy(), one.copy()


# The whole loss of an autoencoder with a Gaussian code

CORPUS = tl.datasets.synthetic_lda(400, 8, 300, random_state=0).corpus
VECTORS = np.random.default_rng(0).normal(size=(400, 30)).astype(np.float32)
VECTORS[8] = 0
MODELS = {
    "GSM": lambda: tl.GSM(8, epochs=3, random_state=0),
    "GSM laplace": lambda: tl.GSM(8, alpha=0.2, epochs=3, dropout=0.0, encoder_input="tfidf", random_state=0),
    "GSM affine": lambda: tl.GSM(8, code_norm="affine", epochs=3, input_dropout=0.0, random_state=0),
    "ETM": lambda: tl.ETM(8, epochs=3, random_state=0, embedding_size=20),
    "Loom": lambda: tl.Loom(8, epochs=150, random_state=0),
    "GSM vectors": lambda: tl.GSM(8, epochs=3, random_state=0),
    "Loom vectors": lambda: tl.Loom(8, epochs=150, random_state=0),
}


class FirstSteps(Callback):
    """Compares the losses of the first steps in the last stage of training, and ends training after them."""

    def __init__(self) -> None:
        self.compared = 0

    def on_step(self, state: Any) -> None:
        if state.stage and state.step in (1, 9) and not getattr(state.network, "counting", _NotStarted).started:
            rows = np.arange(0, len(VECTORS), 4)
            documents = sparse_batch(CORPUS.counts, rows, state.device)
            own, vectors = documents.counts, torch.from_numpy(VECTORS[rows])
            with_others = own.with_values(own.values + torch.rand(own.values.shape, generator=seeded(0)))
            if state.network.encoder.reads == "both":
                documents = replace(documents, counts=with_others, own=own, fields={"vectors": vectors})
            compare(state.network, documents)
            self.compared += 1


class _NotStarted:
    started = False


def compare(network: Any, documents: Batch) -> None:
    """Compare the compiled loss with that of the network's modules, for the same noise."""
    weights = {name: each.clone() for name, each in network.state_dict().items()}
    noise, parameters = network.generator.get_state(), [each for each in network.parameters() if each.requires_grad]
    found, compiled_loss = [], autoencoders.compiled_loss
    for is_compiled in (True, False):
        network.load_state_dict(weights)
        network.generator.set_state(noise)
        called: list[bool] = []

        def noted(*given: Any, is_compiled: bool = is_compiled, called: list[bool] = called) -> Any:
            result = compiled_loss(*given) if is_compiled else None
            called.append(result is not None)
            return result

        autoencoders.compiled_loss = noted
        try:
            loss = network.loss(documents)
        finally:
            autoencoders.compiled_loss = compiled_loss
        assert called == [is_compiled]
        gradient = torch.autograd.grad(loss.total(0.7).sum(), parameters)
        buffers = [each.double() for each in network.state_dict().values()]
        terms = [each.detach().double() for each in loss.terms().values()]
        found.append((terms, gradient, buffers, network.generator.get_state()))
    network.load_state_dict(weights)
    (terms, gradient, buffers, generator), (terms_2, gradient_2, buffers_2, generator_2) = found
    for own, other in zip(terms, terms_2, strict=True):
        torch.testing.assert_close(own, other, rtol=1e-5, atol=1e-4)
    for own, other in zip(gradient, gradient_2, strict=True):
        scale = other.abs().max().clamp_min(1e-3)
        torch.testing.assert_close(own / scale, other / scale, rtol=1e-4, atol=3e-4)  # biases: sums that cancel
    for own, other in zip(buffers, buffers_2, strict=True):  # the running statistics
        torch.testing.assert_close(own, other, rtol=1e-4, atol=1e-5)
    assert generator.equal(generator_2)


@pytest.mark.parametrize("name", MODELS)
def test_the_compiled_loss_is_that_of_the_modules(name):
    watch, corpus = FirstSteps(), CORPUS.with_vectors(VECTORS) if "vectors" in name else CORPUS
    MODELS[name]().fit(corpus, callbacks=[watch])
    assert watch.compared == 2


class OtherNetwork(GSMNetwork):
    """A network whose theta is another function of the code."""

    def to_theta(self, z: Tensor) -> Tensor:
        return torch.softmax(-z, dim=1)


def test_a_derived_network_keeps_its_own_loss(monkeypatch):
    model = tl.GSM(8, epochs=1, random_state=0).fit(CORPUS)
    network = model.network_
    network.train()
    asked: list[nn.Module] = []
    monkeypatch.setattr(autoencoders, "compiled_loss", lambda network, batch: asked.append(network))
    documents = sparse_batch(CORPUS.counts, np.arange(50), CPU)
    network.loss(documents)
    assert asked == [network]
    network.__class__ = OtherNetwork
    network.loss(documents)
    assert asked == [network]
