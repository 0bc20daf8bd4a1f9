"""NVDM: the readout of theta from a code, and the rotation of the code."""

from __future__ import annotations

import copy
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment, minimize

from batches import batch_of
from planted import matched
from topicloom import NVDM, Callback, load
from topicloom.datasets import synthetic_lda
from topicloom.errors import SettingError
from topicloom.models import nvdm
from topicloom.models.nvdm import TopicCoordinates, mixture_counts, readout, topic_simplex, varimax
from topicloom.training.batches import BatchReader

K = 5
SMALL = {"epochs": 20, "random_state": 0, "device": "cpu"}
CORPUS, TOPICS, _ = synthetic_lda(n_docs=500, n_topics=K, n_words=100, doc_length=60, alpha=0.1)


@cache
def fitted(rotation="varimax"):
    """Not to be changed."""
    return NVDM(K, rotation=rotation, **SMALL).fit(CORPUS)


def rotated_simplex(n=2000, seed=0):
    """Codes of documents whose theta is sparse, after a random linear map; and the codes of the corners."""
    random = np.random.default_rng(seed)
    theta = random.dirichlet(np.full(K, 0.05), n)
    corners = random.normal(size=(K, K))
    corners -= corners.mean(1, keepdims=True)
    return torch.from_numpy(theta @ corners), torch.from_numpy(corners), torch.from_numpy(theta)


def test_varimax_undoes_a_rotation():
    random = np.random.default_rng(0)
    heavy = torch.from_numpy(random.laplace(size=(5000, 4)))
    turn = torch.from_numpy(np.linalg.qr(random.normal(size=(4, 4)))[0])
    found = turn @ varimax(heavy @ turn)  # a permutation with signs, if the axes are found
    torch.testing.assert_close(found.abs().amax(0), torch.ones(4, dtype=torch.float64), rtol=0, atol=0.02)
    torch.testing.assert_close(found @ found.mT, torch.eye(4, dtype=torch.float64))


def test_varimax_never_lowers_its_criterion(monkeypatch):
    x = torch.randn(300, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64) ** 3
    values = []
    for steps in range(1, 12):
        monkeypatch.setattr("topicloom.models.nvdm._STEPS", steps)
        y = x @ varimax(x)
        values.append(float((y**2).var(0).sum()))
    assert all(later >= earlier * (1 - 1e-9) for earlier, later in pairwise(values))


@pytest.mark.parametrize("seed", range(3))
def test_the_corners_of_a_simplex_are_found(seed):
    codes, corners, theta = rotated_simplex(seed=seed)
    simplex = topic_simplex(codes, torch.full((K,), 1e-6))
    found = (codes @ simplex.linear + simplex.shift) * simplex.weights  # barycentric coordinates
    torch.testing.assert_close(found.sum(1), torch.ones(len(codes), dtype=torch.float64))
    distance = torch.cdist(corners, simplex.corners).numpy()
    rows, columns = linear_sum_assignment(distance)
    assert (distance[rows, columns] < 0.25 * torch.cdist(corners, corners).max().item()).all()
    for planted, k in zip(rows, columns, strict=True):
        assert np.corrcoef(theta[:, planted], found[:, k])[0, 1] > 0.97


def test_coordinates_and_codes_are_inverse_to_each_other():
    codes, _, _ = rotated_simplex()
    coordinates = TopicCoordinates(K).double()
    torch.testing.assert_close(coordinates.code(coordinates.theta(codes)), codes)  # dimensions are topics
    coordinates.place(topic_simplex(codes, torch.full((K,), 0.1)))
    theta = coordinates.theta(codes)
    assert (theta - torch.softmax(codes, 1)).abs().max() > 0.1
    torch.testing.assert_close(coordinates.code(theta), codes)
    torch.testing.assert_close(coordinates.theta(coordinates.topic_codes()).argmax(1), torch.arange(K))


def test_the_rotation_changes_topics_and_no_distribution_of_words():
    turned, plain = fitted(), fitted("none")
    theta, before = turned.transform(CORPUS), plain.transform(CORPUS)
    words, same = (
        model.network_.word_probabilities(torch.from_numpy(each)).detach()
        for model, each in ((turned, theta), (plain, before))
    )
    torch.testing.assert_close(words, same, rtol=1e-3, atol=1e-6)
    assert turned.perplexity(CORPUS) == pytest.approx(plain.perplexity(CORPUS), rel=1e-3)
    assert turned.perplexity(CORPUS, "bound") == pytest.approx(plain.perplexity(CORPUS, "bound"), rel=1e-2)
    distances = []
    for model in (turned, plain):
        distances.append(matched(TOPICS, model.components_)[1].mean())
    assert distances[0] < 0.6 * distances[1]


def test_seed_words_and_the_setting_keep_the_dimensions():
    word = CORPUS.vocabulary[0]
    seeded = NVDM(K, seed_words={0: [word]}, **SMALL).fit(CORPUS)
    for model in (seeded, fitted("none")):
        torch.testing.assert_close(model.network_.decoder.coordinates.linear, torch.eye(K))
    with pytest.raises(SettingError, match="rotation"):
        NVDM(K, rotation="promax").fit(CORPUS)


def test_unrotated_topics_are_dimensions_of_typical_length():
    model = NVDM(K, rotation="none", spare_topics=1.0, **SMALL).fit(CORPUS)  # trained with more topics at first
    codes = model.network_.decoder.coordinates.topic_codes()
    torch.testing.assert_close(codes, K**0.5 * (torch.eye(K) - 1 / K))


def test_ending_twice_and_streaming_keep_the_topics():
    model = copy.deepcopy(fitted())
    coordinates = model.network_.decoder.coordinates
    before = {name: tensor.clone() for name, tensor in coordinates.state_dict().items()}
    assert before["placed"]
    reader = BatchReader.of(CORPUS, 100, torch.device("cpu"))
    with torch.inference_mode():
        model.network_.end_training(reader)
    for name, tensor in coordinates.state_dict().items():
        torch.testing.assert_close(tensor, before[name], rtol=1e-3, atol=1e-4)
    model.partial_fit(CORPUS)
    torch.testing.assert_close(model.network_.decoder.coordinates.linear, before["linear"], rtol=1e-3, atol=1e-4)


def test_a_fit_that_ends_early_is_rotated():
    stopped = NVDM(K, patience=1, **(SMALL | {"epochs": 200})).fit(CORPUS)
    assert len(stopped.history_) < 200
    assert stopped.network_.decoder.coordinates.placed

    class Stop(Callback):
        def on_epoch(self, row):
            raise KeyboardInterrupt

    interrupted = NVDM(K, **SMALL)
    with pytest.raises(KeyboardInterrupt):
        interrupted.fit(CORPUS, callbacks=[Stop()])
    assert interrupted.network_.decoder.coordinates.placed


@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e18])
@pytest.mark.parametrize("variance", [1e-30, 1.0, 1e18])
def test_codes_that_are_equal_or_huge_have_finite_corners(scale, variance):
    codes, _, _ = rotated_simplex(n=20)
    found = topic_simplex(scale * codes, torch.full((K,), variance))
    assert all(tensor.isfinite().all() for tensor in (found.linear, found.shift, found.corners))


def test_a_loaded_model_has_the_same_topics(tmp_path):
    model = fitted()
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model", device="cpu")
    np.testing.assert_array_equal(loaded.components_, model.components_)
    np.testing.assert_array_equal(loaded.transform(CORPUS), model.transform(CORPUS))


# The readout of theta from a code: the shares of a mixture, and the linear function that is fitted to them.

N_TOPICS, N = 4, 3000
FAST = {"epochs": 25, "hidden_size": 32, "random_state": 0, "device": "cpu"}


def positions(seed=0):
    """Coordinates of documents, a weighted sum of which is 1."""
    random = np.random.default_rng(seed)
    y = random.normal(size=(N, N_TOPICS))
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
    y, matrix = (
        positions(),
        torch.randn(N_TOPICS, N_TOPICS, generator=torch.Generator().manual_seed(0), dtype=torch.float64),
    )
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
    corners = random.normal(size=(N_TOPICS, N_TOPICS))
    codes = torch.from_numpy(random.dirichlet(np.full(N_TOPICS, 0.1), N) @ (corners - corners.mean(1, keepdims=True)))
    simplex = topic_simplex(codes, torch.full((N_TOPICS,), 0.01))
    coordinates = TopicCoordinates(N_TOPICS).double()
    coordinates.place(simplex)
    before = coordinates.theta(codes)
    y = codes @ simplex.linear + simplex.shift
    torch.testing.assert_close(before, torch.softmax(y, 1))  # without a readout, the coordinates are the log-odds
    coordinates.place(simplex, readout(y, torch.from_numpy(random.dirichlet(np.full(N_TOPICS, 0.5), N)) * 30))
    theta = coordinates.theta(codes)
    assert float((theta - before).abs().max()) > 0.1
    torch.testing.assert_close(coordinates.code(theta), codes)


def test_documents_of_a_single_topic_have_a_finite_readout():
    tokens = torch.zeros(N, N_TOPICS)
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


@pytest.mark.parametrize(
    ("n_planted", "length", "n_topics"), [(4, 40, 20), pytest.param(20, 8, 30, marks=pytest.mark.slow)]
)
def test_a_readout_with_surplus_topics_predicts_words_as_before(n_planted, length, n_topics):
    """Codes hardly differ in some directions: theta must neither leave the range of numbers there nor lose the code."""
    corpus = synthetic_lda(300, n_planted, 100, length, alpha=0.1, random_state=0).corpus
    read, plain = (NVDM(n_topics, rotation=rotation, **FAST).fit(corpus) for rotation in ("varimax", "none"))
    assert read.perplexity(corpus) == pytest.approx(plain.perplexity(corpus), rel=1e-3)
    assert read.perplexity(corpus, "bound") == pytest.approx(plain.perplexity(corpus, "bound"), rel=0.02)


def test_a_code_returns_from_theta_though_topics_ignore_most_directions():
    codes = torch.randn(N, N_TOPICS, generator=torch.Generator().manual_seed(0)).double()
    codes = codes - codes.mean(1, keepdim=True)
    coordinates = TopicCoordinates(N_TOPICS)
    matrix = torch.zeros(N_TOPICS, N_TOPICS, dtype=torch.float64)
    matrix[0, 0] = 1.0  # the log-odds of one topic against the others, and nothing else
    coordinates.place(topic_simplex(codes, torch.full((N_TOPICS,), 0.01)), matrix)
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
