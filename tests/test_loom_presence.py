"""The likelihood of the presence of words, `criterion="bernoulli"`: its value, its gradient, and what it predicts."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import topicloom as tl
from batches import batch_of
from topicloom.datasets import synthetic_lda
from topicloom.models.nvdm import LogRatioDecoder
from topicloom.nn.decoders import Decoder, FreeTopics, MixtureDecoder, ProductDecoder

N_WORDS, N_TOPICS = 12, 3
COUNTS = np.random.default_rng(0).poisson(1.5, (5, N_WORDS)).astype(np.float64)
COUNTS[2] = 0  # an empty document
DECODERS = [MixtureDecoder, ProductDecoder, LogRatioDecoder]


def decoder_of(kind: type[Decoder], scale: float = 1.0) -> Decoder:
    topics = FreeTopics(torch.zeros(N_WORDS), N_TOPICS, torch.Generator().manual_seed(0)).double()
    with torch.no_grad():
        topics.weight.mul_(scale)
    return kind(topics)


def thetas(n_docs: int = len(COUNTS)) -> torch.Tensor:
    return torch.softmax(torch.randn(n_docs, N_TOPICS, generator=torch.Generator().manual_seed(1)).double(), dim=1)


@pytest.mark.parametrize("kind", DECODERS)
def test_value_by_numpy(kind):
    decoder, theta = decoder_of(kind), thetas()
    p = decoder.log_probabilities(theta).exp().detach().numpy()
    expected = np.zeros(len(COUNTS))
    for document, row in enumerate(COUNTS):
        for word, count in enumerate(row):
            absent = (1 - p[document, word]) ** row.sum()
            expected[document] += np.log(1 - absent if count else absent)
    found = decoder.score(theta, batch_of(COUNTS), "bernoulli").detach().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
    assert found[2] == 0  # nothing can be in an empty document


@pytest.mark.parametrize("kind", DECODERS)
def test_gradient_by_finite_differences(kind):
    decoder, batch = decoder_of(kind), batch_of(COUNTS)

    class Scored(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.decoder = decoder

        def forward(self, theta: torch.Tensor) -> torch.Tensor:
            return self.decoder.score(theta, batch, "bernoulli")

    module, name = Scored(), "decoder.topics.weight"

    def function(theta: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(module, {name: weight}, theta)

    weight = decoder.topics.weight.detach().clone().requires_grad_()
    assert torch.autograd.gradcheck(function, (thetas().requires_grad_(), weight))


@pytest.mark.parametrize("kind", DECODERS)
@pytest.mark.parametrize("scale", [100.0, 1000.0])
def test_probabilities_near_0_and_1_stay_finite(kind, scale):
    decoder = decoder_of(kind, scale).float()
    batch = batch_of(COUNTS.astype(np.float32))
    theta = thetas().float().requires_grad_()
    score = decoder.score(theta, batch, "bernoulli")
    score.sum().backward()
    assert score.isfinite().all()
    assert theta.grad.isfinite().all()
    assert decoder.topics.weight.grad.isfinite().all()


def test_a_rare_word_in_single_precision_has_its_probability():
    decoder = ProductDecoder(FreeTopics(torch.tensor([0.0, -40.0, -60.0]), 2, torch.Generator().manual_seed(0)))
    with torch.no_grad():
        decoder.topics.weight.zero_()
    counts = np.array([[9, 1, 0], [9, 0, 1]], np.float32)
    batch = batch_of(counts)
    score = decoder.score(torch.full((2, 2), 0.5), batch, "bernoulli")
    torch.testing.assert_close(score.detach(), np.log(10) + torch.tensor([-40.0, -60.0]), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    "model", [tl.GSM(3, criterion="bernoulli", random_state=0), tl.ProdLDA(3, criterion="bernoulli", random_state=0)]
)
def test_documents_have_as_many_distinct_words_as_the_model_expects(model):
    corpus = synthetic_lda(n_docs=300, n_topics=3, n_words=150, doc_length=60).corpus
    theta = model.fit(corpus).transform(corpus)
    with torch.inference_mode():
        p = model.network_.decoder.log_probabilities(torch.from_numpy(theta)).exp().numpy().astype(np.float64)
    contains = 1 - (1 - p) ** corpus.counts.sum(axis=1)[:, None]  # (D, V)
    observed = np.diff(corpus.counts.indptr).mean()
    assert observed > 20
    assert contains.sum(axis=1).mean() == pytest.approx(observed, rel=0.2)
