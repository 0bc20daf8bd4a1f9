"""The readout of theta from a code: the shares of a mixture, and the linear function that is fitted to them."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from batches import batch_of
from topicloom import NVDM
from topicloom.datasets import synthetic_lda
from topicloom.models import nvdm
from topicloom.models.nvdm import TopicCoordinates, mixture_counts, readout, topic_simplex
from topicloom.training.batches import BatchReader

K, N = 4, 3000
FAST = {"epochs": 25, "hidden_size": 32, "random_state": 0, "device": "cpu"}


def positions(seed=0):
    """Coordinates of documents, a weighted sum of which is 1."""
    random = np.random.default_rng(seed)
    y = random.normal(size=(N, K))
    y[:, 0] = 1 - y[:, 1:] @ np.array([0.5, 0.4, 0.3])
    return torch.from_numpy(y)


def test_counts_are_those_of_the_most_likely_mixture():
    planted = synthetic_lda(n_docs=20, n_topics=3, n_words=40, doc_length=50, alpha=0.3, random_state=1)
    counts = planted.corpus.counts.toarray().astype(float)
    found = mixture_counts(batch_of(planted.corpus.counts), torch.from_numpy(planted.topics.T).float()).numpy()
    np.testing.assert_allclose(found.sum(1), counts.sum(1), rtol=1e-4)

    def loss(logits, document):
        theta = np.exp(logits - logits.max())
        return -document @ np.log(theta / theta.sum() @ planted.topics + 1e-30)

    for document, tokens in zip(counts, found, strict=True):
        best = minimize(
            loss, np.zeros(3), args=(document,), method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-8}
        )
        ours = loss(np.log(tokens + 1e-30), document)
        assert ours == pytest.approx(best.fun, abs=0.05)


def test_a_document_without_words_has_no_tokens():
    empty = batch_of(synthetic_lda(n_docs=3, n_topics=3, n_words=40, doc_length=5).corpus.counts * 0)
    assert mixture_counts(empty, torch.full((40, 3), 1 / 40)).tolist() == [[0.0] * 3] * 3


def test_the_readout_is_the_function_by_which_shares_were_made(monkeypatch):
    monkeypatch.setattr("topicloom.models.nvdm._PRIOR_TOKENS", 0.0)
    y, matrix = positions(), torch.randn(K, K, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    shares = torch.softmax(y @ matrix, 1)
    found = torch.softmax(y @ readout(y, 50 * shares), 1)
    torch.testing.assert_close(found, shares, rtol=0, atol=2e-3)


def test_the_mean_of_the_readout_is_that_of_the_shares(monkeypatch):
    monkeypatch.setattr("topicloom.models.nvdm._PRIOR_TOKENS", 0.0)
    tokens = torch.from_numpy(np.random.default_rng(1).dirichlet([2.0, 1.0, 0.3, 0.1], N)) * 60
    y = positions()
    theta = torch.softmax(y @ readout(y, tokens), 1)
    torch.testing.assert_close(theta.mean(0), tokens.mean(0) / 60, rtol=0, atol=2e-3)


def test_codes_and_theta_are_inverse_after_a_readout():
    random = np.random.default_rng(0)
    corners = random.normal(size=(K, K))
    codes = torch.from_numpy(random.dirichlet(np.full(K, 0.1), N) @ (corners - corners.mean(1, keepdims=True)))
    simplex = topic_simplex(codes, torch.full((K,), 0.01))
    coordinates = TopicCoordinates(K).double()
    coordinates.place(simplex)
    before = coordinates.theta(codes)
    y = codes @ simplex.linear + simplex.shift
    torch.testing.assert_close(before, torch.softmax(y, 1))  # without a readout, the coordinates are the log-odds
    coordinates.place(simplex, readout(y, torch.from_numpy(random.dirichlet(np.full(K, 0.5), N)) * 30))
    theta = coordinates.theta(codes)
    assert float((theta - before).abs().max()) > 0.1
    torch.testing.assert_close(coordinates.code(theta), codes)


def test_documents_of_a_single_topic_have_a_finite_readout():
    tokens = torch.zeros(N, K)
    tokens[:, 2] = 30.0
    found = readout(positions(), tokens)
    assert found.isfinite().all()
    assert (torch.softmax(positions() @ found, 1)[:, 2] > 0.9).all()


def test_nvdm_reads_shares_as_a_mixture_of_topics():
    planted = synthetic_lda(800, 5, 200, 60, alpha=0.1, shares=[0.5, 0.25, 0.15, 0.06, 0.04], random_state=0)
    model = NVDM(5, **FAST).fit(planted.corpus)
    tokens = mixture_counts(batch_of(planted.corpus.counts), torch.from_numpy(model.components_.T.copy()))
    expected = (tokens / tokens.sum(1, keepdim=True)).mean(0).numpy()
    np.testing.assert_allclose(model.transform(planted.corpus).mean(0), expected, atol=0.04)


@pytest.mark.parametrize(("n_planted", "length", "n_topics"), [(4, 40, 20), (20, 8, 30)])
def test_a_readout_with_surplus_topics_predicts_words_as_before(n_planted, length, n_topics):
    """Codes hardly differ in some directions: theta must neither leave the range of numbers there nor lose the code."""
    corpus = synthetic_lda(300, n_planted, 100, length, alpha=0.1, random_state=0).corpus
    read, plain = (NVDM(n_topics, rotation=rotation, **FAST).fit(corpus) for rotation in ("varimax", "none"))
    assert read.perplexity(corpus) == pytest.approx(plain.perplexity(corpus), rel=1e-3)
    assert read.perplexity(corpus, "bound") == pytest.approx(plain.perplexity(corpus, "bound"), rel=0.02)


def test_a_code_returns_from_theta_though_topics_ignore_most_directions():
    codes = torch.randn(N, K, generator=torch.Generator().manual_seed(0)).double()
    codes = codes - codes.mean(1, keepdim=True)
    coordinates = TopicCoordinates(K)
    matrix = torch.zeros(K, K, dtype=torch.float64)
    matrix[0, 0] = 1.0  # the log-odds of one topic against the others, and nothing else
    coordinates.place(topic_simplex(codes, torch.full((K,), 0.01)), matrix)
    theta = coordinates.theta(codes.float())
    torch.testing.assert_close(coordinates.code(theta), codes.float(), rtol=0, atol=1e-3)


def test_a_large_corpus_is_read_in_part(monkeypatch):
    planted, seen = synthetic_lda(300, 4, 100, 40, alpha=0.1, random_state=0), []

    def keep(coordinates, tokens):
        seen.append((coordinates, tokens))
        return torch.eye(4, dtype=torch.float64)

    model = NVDM(4, **FAST | {"epochs": 3}).fit(planted.corpus)
    monkeypatch.setattr(nvdm, "readout", keep)
    for most in (5000, 5):  # one of 60 documents, so that some batches have none
        monkeypatch.setattr(nvdm, "_MOST_READ", most)
        with torch.inference_mode():
            model.network_.end_training(BatchReader.of(planted.corpus, 20, torch.device("cpu")))
    (_, whole), (coordinates, some) = seen
    assert len(whole) == 300
    assert coordinates.shape == (5, 4)
    torch.testing.assert_close(some, whole[::60], rtol=1e-4, atol=1e-4)
