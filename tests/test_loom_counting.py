"""Loom's counting stage, compared with references written as loops, and with integrals."""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import integrate, sparse, special, stats

from batches import double_batch_of, seeded, sparse_batch
from topicloom.datasets import synthetic_lda
from topicloom.models.loom import collapsed, cvb0
from topicloom.models.loom.collapsed import (
    _INITIAL_BACKGROUND_SHARE,
    _REFINEMENT_STEPS,
    PRIOR_TOKENS,
    CollapsedCounts,
)
from topicloom.models.loom.cvb0 import CountedTopics, dirichlet_step_plain, draw_counts, expected_counts, sharpen
from topicloom.nn import execution
from topicloom.nn import sparse as nn_sparse
from topicloom.nn.execution import helper_threads
from topicloom.nn.posteriors import DirichletPosterior
from topicloom.nn.sparse import Batch, SparseCounts

N_DOCS, N_WORDS, N_TOPICS, ETA = 6, 9, 3, 0.02
COUNTS = np.random.default_rng(0).poisson(1.2, (N_DOCS, N_WORDS)).astype(np.float32)
COUNTS[:, 4] = 0  # a word that no document contains
COUNTS[3, 1] = 40  # more of one word than its topics contain, so that the own count exceeds the others
ALPHA = np.array([0.1, 0.5, 0.02])


def positive(*size: int, seed: int = 0, scale: float = 5.0) -> np.ndarray:
    return scale * np.random.default_rng(seed).random(size) ** 2


def simplex(*size: int, seed: int = 0) -> np.ndarray:
    """Return rows that sum to 1."""
    return np.random.default_rng(seed).dirichlet(np.full(size[-1], 0.5), size[:-1])


def tensors(*arrays: np.ndarray) -> list[torch.Tensor]:
    return [torch.tensor(array, dtype=torch.float64) for array in arrays]


# Reassignment of tokens.


def reassigned(values: np.ndarray, doc_topics: np.ndarray, word_topics: np.ndarray, excluded: bool) -> np.ndarray:
    """Return x_dv gamma_dvk (D, V, K) by the formula in the docstring of `reassign`, one at a time."""
    sizes = word_topics.sum(0) + N_WORDS * ETA
    out = np.zeros((len(values), N_WORDS, N_TOPICS))
    for d, v in zip(*np.nonzero(values), strict=True):
        own = [(doc_topics[d, k] + ALPHA[k]) * (word_topics[v, k] + ETA) / sizes[k] for k in range(N_TOPICS)]
        own = [share / sum(own) for share in own]
        for k in range(N_TOPICS):
            of_doc = max(doc_topics[d, k] - own[k], 0) + ALPHA[k]
            of_word = max(word_topics[v, k] - values[d, v] * own[k] * excluded, 0) + ETA
            out[d, v, k] = of_doc * of_word / sizes[k]
        out[d, v] *= values[d, v] / out[d, v].sum()
    return out


@pytest.mark.parametrize("way", ["whole", "in chunks", "one by one", "compiled"])
@pytest.mark.parametrize("excluded", [True, False])
def test_tokens_are_reassigned_by_the_formula(excluded, way, monkeypatch):
    reassign = cvb0.reassign_plain
    if way == "compiled":
        pytest.importorskip("numba")
        reassign = cvb0.reassign
        monkeypatch.setattr(cvb0, "reassign_plain", None)  # it must not be used instead
    elif way != "whole":
        monkeypatch.setattr(nn_sparse, "_CPU_BLOCK", {"in chunks": 4 * N_TOPICS, "one by one": 1}[way])
    values = COUNTS**0.7
    doc_topics, word_topics = positive(N_DOCS, N_TOPICS), positive(N_WORDS, N_TOPICS, seed=1)
    before = positive(N_WORDS, N_TOPICS, seed=2)
    batch = double_batch_of(COUNTS)
    topics = CountedTopics.from_counts(torch.from_numpy(word_topics), ETA)
    docs, alpha, added = tensors(doc_topics, ALPHA, before)
    copies = docs.clone(), topics.beta_t.clone(), alpha.clone()
    ours = reassign(batch, batch.values**0.7, docs, topics, alpha, added, excluded=excluded).numpy()

    expected = reassigned(values, doc_topics, word_topics, excluded)  # (D, V, K)
    np.testing.assert_allclose(ours, expected.sum(1), rtol=1e-6)  # values are float32 to the power, once each
    np.testing.assert_allclose(added.numpy() - before, expected.sum(0), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(ours.sum(1), values.sum(1), rtol=1e-6)
    np.testing.assert_allclose((added.numpy() - before).sum(1), values.sum(0), rtol=1e-6, atol=1e-12)
    for tensor, copy in zip((docs, topics.beta_t, alpha), copies, strict=True):
        torch.testing.assert_close(tensor, copy, atol=0, rtol=0)  # the inputs have not changed


@pytest.fixture
def uncompiled():
    """Forget the compiled function before and after a test."""
    for function in (execution.compiled, execution._warn_that_loops_are_slower):
        function.cache_clear()
    yield
    for function in (execution.compiled, execution._warn_that_loops_are_slower):
        function.cache_clear()


@pytest.mark.parametrize("why", ["no numba", "broken", "not compiled", "not contiguous", "another device"])
def test_tokens_are_reassigned_even_if_nothing_can_be_compiled(why, monkeypatch, uncompiled, caplog):
    batch = double_batch_of(COUNTS)
    topics = CountedTopics.from_counts(torch.from_numpy(positive(N_WORDS, N_TOPICS, seed=1)), ETA)
    docs, alpha, added = tensors(positive(N_DOCS, N_TOPICS), ALPHA, np.zeros((N_WORDS, N_TOPICS)))
    given = batch, batch.values, docs, topics, alpha
    calls, expected = [], torch.ones(1)
    monkeypatch.setattr(cvb0, "reassign_plain", lambda *_, **settings: calls.append(settings) or expected)
    if why == "no numba":
        monkeypatch.setitem(sys.modules, "numba", None)
    elif why == "broken":
        numba = pytest.importorskip("numba")

        def broken(*_, **__):
            raise OSError("libllvmlite.so: cannot open shared object file")

        monkeypatch.setattr(numba, "njit", broken)
    elif why == "not compiled":
        numba = pytest.importorskip("numba")
        monkeypatch.setattr(numba.config, "DISABLE_JIT", True)
    elif why == "not contiguous":
        added = torch.zeros(N_TOPICS, N_WORDS, dtype=torch.float64).mT
    else:
        given = batch, batch.values.to("meta"), docs, topics, alpha
    assert cvb0.reassign(*given, added, excluded=False) is expected
    assert calls == [{"excluded": False}]
    assert ("installed but cannot be used, so Loom" in caplog.text) == (why == "broken")
    assert ("not installed, so Loom and LDA are slower" in caplog.text) == (why == "no numba")


def test_the_compiled_loop_does_not_need_a_cache_on_disk(monkeypatch, uncompiled):
    numba = pytest.importorskip("numba")
    njit = numba.njit

    def nowhere(*, cache: bool = False, **settings):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(**settings)

    monkeypatch.setattr(numba, "njit", nowhere)
    assert execution.compiled(cvb0._recount_loop, cvb0._recount_example).signatures


@pytest.mark.parametrize("counts", [COUNTS, COUNTS * 0, COUNTS[:0], np.eye(N_DOCS, N_WORDS, dtype=np.float32)])
@pytest.mark.parametrize("n_topics", [1, 3, 50])
def test_the_compiled_loop_agrees_in_single_precision(counts, n_topics, monkeypatch):
    pytest.importorskip("numba")
    batch = single(counts).counts
    topics = CountedTopics.from_counts(torch.from_numpy(positive(N_WORDS, n_topics, seed=1)).float(), ETA)
    # A word that no topic contains.
    topics = replace(topics, beta_t=topics.beta_t.index_fill(0, torch.tensor([2]), 0.0))
    docs, alpha = torch.from_numpy(positive(len(counts), n_topics)).float(), torch.full((n_topics,), 0.1)
    ours, theirs = torch.zeros(N_WORDS, n_topics), torch.zeros(N_WORDS, n_topics)
    expected = cvb0.reassign_plain(batch, batch.values, docs, topics, alpha, theirs)
    monkeypatch.setattr(cvb0, "reassign_plain", None)
    torch.testing.assert_close(cvb0.reassign(batch, batch.values, docs, topics, alpha, ours), expected)
    torch.testing.assert_close(ours, theirs)


def test_two_threads_reassign_what_one_reassigns(monkeypatch):
    """A batch is counted in two halves, unless its non-zeros are few for the number of words."""
    pytest.importorskip("numba")
    batch = single(COUNTS).counts
    topics = CountedTopics.from_counts(torch.from_numpy(positive(N_WORDS, N_TOPICS, seed=1)).float(), ETA)
    docs, alpha = torch.from_numpy(positive(N_DOCS, N_TOPICS)).float(), torch.from_numpy(ALPHA).float()
    found = []
    for n_helpers, most in ((0, 10.0), (1, 10.0), (0, 0.0)):
        monkeypatch.setattr(cvb0, "_MOST_WORDS", most)
        word_topics = torch.ones(N_WORDS, N_TOPICS)
        with helper_threads(n_helpers):
            of_docs = cvb0.reassign(batch, batch.values, docs, topics, alpha, word_topics)
        found.append((of_docs, word_topics))
    for one, two, whole in zip(*found, strict=True):
        assert torch.equal(one, two)
        torch.testing.assert_close(one, whole)


def test_the_compiled_loop_passes_nan_on():
    pytest.importorskip("numba")
    batch = single(COUNTS).counts
    topics = CountedTopics.from_counts(torch.from_numpy(positive(N_WORDS, N_TOPICS, seed=1)).float(), ETA)
    docs = torch.from_numpy(positive(N_DOCS, N_TOPICS)).float()
    docs[2, 1] = torch.nan
    added = torch.zeros(N_WORDS, N_TOPICS)
    counts = cvb0.reassign(batch, batch.values, docs, topics, torch.from_numpy(ALPHA).float(), added)
    assert counts.isnan().any(dim=1).tolist() == [False, False, True, False, False, False]
    assert added.isnan().any()


def test_counted_topics_are_smoothed_counts():
    counts = positive(N_WORDS, N_TOPICS)
    topics = CountedTopics.from_counts(torch.from_numpy(counts), ETA)
    for k in range(N_TOPICS):
        size = sum(counts[:, k]) + N_WORDS * ETA
        np.testing.assert_allclose(topics.sizes[k], size)
        np.testing.assert_allclose(topics.smallest[k], ETA / size)
        np.testing.assert_allclose(topics.beta_t[:, k], (counts[:, k] + ETA) / size)


# The Dirichlet parameters.


def test_dirichlet_steps_recover_the_parameters_of_drawn_counts():
    planted = np.array([0.05, 0.2, 0.6])
    random = np.random.default_rng(0)
    counts = torch.from_numpy(random.multinomial(80, random.dirichlet(planted, 8000)).astype(np.float64))
    alpha = torch.ones(3, dtype=torch.float64)
    for _ in range(60):
        numerator, denominator = dirichlet_step_plain(counts, alpha)
        alpha = alpha * numerator / denominator
    np.testing.assert_allclose(alpha, planted, rtol=0.06)


def test_a_dirichlet_step_is_an_expectation_over_randomly_rounded_counts():
    counts = np.array([[0.3, 2.3], [1.4, 0.0], [1.0, 7.9], [0.0, 0.6]])
    alpha = np.array([0.2, 1.5])
    numerator, denominator = dirichlet_step_plain(*tensors(counts, alpha))
    expected = np.zeros(2)
    for row in counts:
        for k, count in enumerate(row):
            down = math.floor(count)
            for whole, chance in ((down + 1, count - down), (down, 1 - count + down)):
                expected[k] += chance * (special.digamma(whole + alpha[k]) - special.digamma(alpha[k]))
    np.testing.assert_allclose(numerator, expected)
    total = sum(special.digamma(row.sum() + 1.7) - special.digamma(1.7) for row in counts)
    assert float(denominator) == pytest.approx(total)


def test_the_compiled_dirichlet_step_agrees(monkeypatch):
    pytest.importorskip("numba")
    random = np.random.default_rng(0)
    counts = random.choice([0, 0, 0.4, 1, 2, 2.75, 15.5, 16, 17, 300.5, 1e9], (60, 5)).astype(np.float32)
    alpha = torch.tensor([0.001, 0.05, 0.5, 2.0, 5.0])
    numerator, denominator = cvb0.dirichlet_step_plain(torch.from_numpy(counts).double(), alpha.double())
    monkeypatch.setattr(cvb0, "dirichlet_step_plain", None)
    found = cvb0.dirichlet_step(torch.from_numpy(counts), alpha)
    torch.testing.assert_close(found[0].double(), numerator, rtol=1e-6, atol=0)
    torch.testing.assert_close(found[1].double(), denominator, rtol=1e-5, atol=0)
    counts[2, 1] = np.nan
    numerator, _ = cvb0.dirichlet_step(torch.from_numpy(counts), alpha)
    assert numerator.isnan().tolist() == [False, True, False, False, False]


def test_the_compiled_denominator_agrees():
    pytest.importorskip("numba")
    totals, alpha = torch.rand(5_000, generator=seeded(0)) * 30, torch.rand(40, generator=seeded(1)) * 0.3
    totals[::7] = 0
    total = float(alpha.sum())
    expected = (special.digamma(totals.double().numpy() + total) - special.digamma(total)).sum()
    assert float(cvb0.denominator_of(totals, alpha)) == pytest.approx(expected, rel=1e-5)
    totals[3] = torch.nan
    assert cvb0.denominator_of(totals, alpha).isnan()


def test_rises_of_whole_counts():
    alpha = torch.tensor([0.001, 0.3, 5.0])
    ends = alpha.double().numpy()[:, None] + np.arange(64)
    np.testing.assert_allclose(cvb0.rises_of(alpha), special.digamma(ends) - special.digamma(ends[:, :1]), rtol=1e-10)


def test_a_step_of_eta_with_parts_of_tokens():
    counts, eta = torch.rand(400, 45, generator=seeded(0)) * 300, torch.tensor(0.2)
    counts[::2] = counts[::2].floor()
    counts[::3] = 0
    n, start = counts.double().numpy(), float(eta)
    rises = (special.digamma(n + start) - special.digamma(start)).sum()
    sizes = (special.digamma(n.sum(0) + 400 * start) - special.digamma(400 * start)).sum()
    assert float(cvb0.eta_step(counts, eta)) == pytest.approx(min(1.0, start * rises / (400 * sizes)), rel=1e-5)


# Noise.


def test_the_compiled_loop_draws_counts_of_the_same_distribution():
    """Many documents of two words, whose counts follow from what is drawn."""
    pytest.importorskip("numba")
    n, n_topics = 20_000, 5
    words = torch.tensor([0, 2]).repeat(n)
    counts = SparseCounts(words, torch.tensor([1.0, 2.0]).repeat(n), torch.arange(0, 2 * n + 1, 2), 3)
    means = torch.tensor([1.7, 0.9, 0.3, 0.1, 1e-5]).expand(n, -1).contiguous()
    alpha = torch.tensor([0.05, 0.5, 0.02, 0.3, 0.1])
    topics = CountedTopics.from_counts(9 * torch.rand(3, n_topics, generator=seeded()), 0.01)
    found = {}
    for way in (cvb0.recount, cvb0.recount_plain):
        added = torch.zeros(3, n_topics)
        new = way(counts, counts.values, means, topics, alpha, added, seeded())
        assert new.doc_topics is not None
        numerator, denominator = dirichlet_step_plain(new.doc_topics.double(), alpha.double())
        torch.testing.assert_close(new.numerator.double(), numerator, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(new.denominator.double(), denominator, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(added.sum(0), new.doc_topics.sum(0), rtol=1e-3, atol=1e-2)
        found[way] = new.doc_topics
    ours, plain = found.values()
    error = ((ours.var(0) + plain.var(0)) / n).sqrt()
    assert ((ours.mean(0) - plain.mean(0)).abs() < 4 * error + 1e-4).all()
    torch.testing.assert_close(ours.std(0), plain.std(0), rtol=0.05, atol=1e-3)


def test_the_parameter_of_topics_takes_the_same_step_compiled(monkeypatch):
    counts = torch.from_numpy(positive(40, 6)).float().contiguous()
    counts[::3] = counts[::3].floor()
    counts[5], counts[7] = 0.0, 900.0
    compiled = cvb0.eta_step(counts, torch.tensor(0.02))
    monkeypatch.setattr(cvb0, "compiled", lambda *_: None)
    torch.testing.assert_close(cvb0.eta_step(counts, torch.tensor(0.02)), compiled, rtol=1e-5, atol=0)


def test_drawn_counts_have_the_right_mean_and_variance():
    means = torch.tensor([0.0, 0.02, 0.5, 4.0, 60.0], dtype=torch.float64)
    drawn = draw_counts(means.expand(200_000, -1), seeded())
    assert (drawn >= 0).all()
    assert not drawn[:, 0].any()  # a topic that the document does not have
    np.testing.assert_allclose(drawn.mean(0)[1:], means[1:], rtol=0.05)
    np.testing.assert_allclose(drawn.var(0)[1:], means[1:], rtol=0.15)
    for k in range(1, len(means)):
        assert stats.kstest(drawn[:20_000, k].numpy(), stats.gamma(float(means[k])).cdf).statistic < 0.015


# New documents.


def test_without_steps_inference_returns_its_start():
    start, beta_t, alpha = tensors(simplex(N_DOCS, N_TOPICS), simplex(N_TOPICS, N_WORDS).T, ALPHA)
    counts = expected_counts(double_batch_of(COUNTS), beta_t, alpha, start, 0)
    np.testing.assert_allclose(counts, COUNTS.sum(1)[:, None] * start.numpy())


def inferred(x: np.ndarray, beta: np.ndarray, alpha: np.ndarray, theta: np.ndarray, steps: int) -> np.ndarray:
    """Return the counts (K,) of one document by the formula in the docstring of `expected_counts`."""
    gamma = {}
    for step in range(steps):
        counts = sum((x[v] * gamma[v] for v in gamma), np.zeros(len(alpha)))
        for v in np.flatnonzero(x):
            share = np.maximum(counts - gamma[v], 0) + alpha if step else theta
            gamma[v] = share * beta[:, v] / (share @ beta[:, v])
    return sum(x[v] * gamma[v] for v in gamma)


@pytest.mark.parametrize("way", ["whole", "in pieces", "one by one", "compiled"])
def test_steps_of_inference_agree_with_loops(way, monkeypatch):
    theta, beta = simplex(N_DOCS, N_TOPICS, seed=1), simplex(N_TOPICS, N_WORDS, seed=2)
    start, beta_t, alpha = tensors(theta, beta.T, ALPHA)
    infer = cvb0.expected_counts_plain
    if way == "compiled":
        pytest.importorskip("numba")
        infer = expected_counts
        monkeypatch.setattr(cvb0, "FEWEST_DOCUMENTS_TO_COMPILE", 1)
        monkeypatch.setattr(cvb0, "expected_counts_plain", None)  # it must not be used instead
    elif way != "whole":
        monkeypatch.setattr(nn_sparse, "_CPU_BLOCK", {"in pieces": 12 * N_TOPICS, "one by one": 1}[way])
    ours = infer(double_batch_of(COUNTS), beta_t, alpha, start, 3)
    for d in range(N_DOCS):
        np.testing.assert_allclose(ours[d], inferred(COUNTS[d], beta, ALPHA, theta[d], 3), rtol=1e-5)


def test_documents_without_words_have_no_counts(monkeypatch):
    monkeypatch.setattr(cvb0, "FEWEST_DOCUMENTS_TO_COMPILE", 1)
    counts = COUNTS * np.array([[0], [1], [0], [0], [1], [0]], dtype=np.float32)
    beta_t, alpha, start = (
        each.float() for each in tensors(simplex(N_TOPICS, N_WORDS).T, ALPHA, simplex(N_DOCS, N_TOPICS))
    )
    for infer in (cvb0.expected_counts_plain, expected_counts):
        ours = infer(single(counts).counts, beta_t, alpha, start, 4)
        torch.testing.assert_close(ours.sum(1), torch.from_numpy(counts.sum(1)))


def test_a_token_does_not_confirm_itself():
    """Two words of opposite topics: with their own counts, whichever topic is ahead at first would win."""
    beta, alpha = np.array([[0.6, 0.4], [0.4, 0.6]]), np.array([0.05, 0.05])
    start, beta_t, prior = tensors(np.array([[0.7, 0.3]]), beta.T, alpha)
    once = double_batch_of(np.array([1.0, 0.0], dtype=np.float32))
    np.testing.assert_allclose(expected_counts(once, beta_t, prior, start, 10)[0], [0.6, 0.4], rtol=1e-6)


# Topics from counts.


def sharpen_in_loops(counts: np.ndarray, tokens: np.ndarray, sharpness: float) -> np.ndarray:
    smoothed = counts + ETA
    topic = smoothed.sum(0) / smoothed.sum()
    beta_t = np.zeros_like(counts)
    for v in range(len(counts)):
        share = [
            (smoothed[v, k] / smoothed[v].sum()) ** sharpness * topic[k] ** (1 - sharpness) for k in range(N_TOPICS)
        ]
        for k in range(N_TOPICS):
            beta_t[v, k] = (tokens[v] + ETA) * share[k] / sum(share)
    return beta_t / beta_t.sum(0)


@pytest.mark.parametrize("sharpness", [0.5, 1.0, 1.35, 4.0])
def test_topics_are_sharpened_by_the_formula(sharpness):
    counts, tokens = positive(N_WORDS, N_TOPICS), positive(N_WORDS, seed=1, scale=50)
    ours = sharpen(*tensors(counts, tokens), sharpness, ETA).numpy()
    np.testing.assert_allclose(ours, sharpen_in_loops(counts, tokens, sharpness))
    np.testing.assert_allclose(ours.sum(0), 1)
    # With suitable sizes of the topics, words have their share of the corpus, whatever the sharpness.
    sizes, _, _, _ = np.linalg.lstsq(ours, tokens + ETA, rcond=None)
    np.testing.assert_allclose(ours @ sizes, tokens + ETA)
    assert (sizes > 0).all()


def test_only_top_words_are_sharpened():
    """Top words are the 30 first of each topic, by probability or by relevance .6; the others stay as counted."""
    counts, tokens = positive(400, 2, scale=20), positive(400, seed=1, scale=50)
    ours = sharpen(*tensors(counts, tokens), 3.0, ETA).numpy()
    smoothed = counts + ETA
    topic = smoothed.sum(0) / smoothed.sum()
    plain = smoothed / smoothed.sum(1, keepdims=True)
    sharp = plain**3.0 * topic**-2.0
    sharp /= sharp.sum(1, keepdims=True)
    frequency = (tokens + ETA) / (tokens + ETA).sum()
    beta_t = sharp * frequency[:, None]
    beta_t /= beta_t.sum(0)
    relevance = 0.6 * np.log(beta_t) + 0.4 * np.log(beta_t / frequency[:, None])
    is_top = {v for ranked in (beta_t, relevance) for k in range(2) for v in ranked[:, k].argsort()[-30:]}
    assert 60 < len(is_top) < 120
    shares = np.array([(sharp if v in is_top else plain)[v] for v in range(400)])
    expected = shares * frequency[:, None]
    np.testing.assert_allclose(ours, expected / expected.sum(0))


def test_topics_with_a_sharpness_of_1_are_the_counts():
    counts = positive(N_WORDS, N_TOPICS)
    ours = sharpen(*tensors(counts, counts.sum(1)), 1.0, 1e-12)
    np.testing.assert_allclose(ours, counts / counts.sum(0), rtol=1e-6)


def test_sharper_topics_share_fewer_words():
    counts = positive(N_WORDS, N_TOPICS)
    counts /= counts.sum(0)  # with topics of equal size, the largest p(k | v) belongs to the topic of the highest lift

    def largest(sharpness: float) -> np.ndarray:
        """(V,) max_k p(k | v)"""
        beta_t = sharpen(*tensors(counts, np.ones(N_WORDS)), sharpness, 1e-9).numpy()
        sizes, _, _, _ = np.linalg.lstsq(beta_t, np.ones(N_WORDS), rcond=None)
        return (beta_t * sizes).max(1)

    found = [largest(sharpness) for sharpness in (0.5, 1.0, 1.35, 3.0)]
    assert (np.diff(found, axis=0) > 0).all()


# The start of the counting stage, and its passes.


def new_counts(**settings) -> CollapsedCounts:
    plain = {"eta": ETA, "count_power": 1.0, "sharpness": 1.0, "n_background": 0}
    return CollapsedCounts(N_WORDS, N_TOPICS, **plain | settings)


def started(kept: bool = True, counts: np.ndarray = COUNTS, usage=(0.5, 0.1, 0.4), **settings) -> CollapsedCounts:
    """Return counts that start from random topics, of documents whose counts are kept or of a stream."""
    new = new_counts(**settings)
    if kept:
        new.keep_documents(len(counts), torch.from_numpy(counts.sum(0)))
    else:
        new.tokens.copy_(torch.from_numpy(counts.sum(0)))
    beta_t = torch.from_numpy(simplex(N_TOPICS, N_WORDS, seed=5).T.copy()).float()
    new.start(beta_t, torch.tensor(usage), seeded())
    return new


def single(counts: np.ndarray) -> Batch:
    return sparse_batch(sparse.csr_array(counts), np.arange(len(counts)), torch.device("cpu"))


def encoded(n_docs: int = N_DOCS) -> torch.Tensor:
    return torch.from_numpy(simplex(n_docs, N_TOPICS, seed=6)).float()


def test_topics_of_pretraining_become_counts():
    new, usage = started(), np.array([0.5, 0.1, 0.4])
    assert bool(new.started)
    beta_t = simplex(N_TOPICS, N_WORDS, seed=5).T
    np.testing.assert_allclose(new.beta_t, beta_t, rtol=1e-5)
    posterior = beta_t * usage / (beta_t * usage).sum(1, keepdims=True)  # p(k | v)
    np.testing.assert_allclose(new.word_topics, posterior * COUNTS.sum(0)[:, None], rtol=1e-5)
    assert not new.background.any()


@pytest.mark.parametrize(("n_background", "background"), [(1, {1}), (2, {1, 2})])
def test_background_topics_replace_the_least_used_topics(n_background, background):
    new = started(n_background=n_background)
    assert set(new.background.nonzero()[:, 0].tolist()) == background
    assert new.protected.tolist() == new.background.tolist()  # pruning must not remove them
    np.testing.assert_allclose(new.beta_t.sum(0), 1, rtol=1e-5)
    np.testing.assert_allclose(new.word_topics.sum(1), COUNTS.sum(0), rtol=1e-5)
    corpus = COUNTS.sum(0) / COUNTS.sum()
    for topic in range(N_TOPICS):
        words = new.beta_t[:, topic].numpy()
        # A background topic has the words of the corpus alone; these were removed from the others.
        assert (words[corpus == 0] == 0).all() == (topic in background)
        assert (new.alpha[topic] > new_counts().alpha[topic]) == (topic in background)
    assert torch.isfinite(new.word_topics).all()


def test_a_background_topic_never_replaces_a_seeded_one():
    words = torch.zeros(N_WORDS, N_TOPICS)
    words[2, 1] = 5.0
    new = started(n_background=1, seed_counts=words)
    assert new.background.tolist() == [False, False, True]  # topic 1 is used less, and is seeded
    assert new.protected.tolist() == [False, True, True]


def test_documents_start_with_a_share_of_background_topics():
    new, theta = started(n_background=1), encoded()
    start = new._initial_counts(single(COUNTS), theta.clone()) / torch.from_numpy(COUNTS.sum(1))[:, None]
    for d in range(N_DOCS):
        rest = 1 - _INITIAL_BACKGROUND_SHARE
        shares = [_INITIAL_BACKGROUND_SHARE if k == 1 else rest * float(theta[d, k]) for k in range(N_TOPICS)]
        np.testing.assert_allclose(start[d], np.array(shares) / sum(shares), rtol=1e-5)


def test_a_stream_after_a_fit_starts_from_inferred_counts():
    """The encoder knows the background topics by then."""
    new, batch, theta = started(n_background=1), single(COUNTS), encoded()
    new.count(batch, theta, seeded())
    new.end_pass()
    new.finish(torch.ones(3))
    assert new.background.tolist() == [False, True, False]
    start = new._initial_counts(batch, theta)
    torch.testing.assert_close(start, expected_counts(batch.counts, new.beta_t, new.alpha, theta, _REFINEMENT_STEPS))


@pytest.mark.parametrize("count_power", [1.0, 0.5])
def test_a_pass_counts_every_token_once(count_power):
    new = started(count_power=count_power)
    posterior = new.count(single(COUNTS), encoded(), seeded())
    values = COUNTS**count_power
    np.testing.assert_allclose((posterior.alpha - new.alpha).sum(1), values.sum(1), rtol=1e-5)
    np.testing.assert_allclose(new.document_topics, posterior.alpha - new.alpha, atol=1e-5)
    new.end_pass()
    np.testing.assert_allclose(new.word_topics.sum(1), values.sum(0), rtol=1e-5)
    np.testing.assert_allclose(new.tokens, COUNTS.sum(0))
    np.testing.assert_allclose(new.beta_t.sum(0), 1, rtol=1e-5)


def test_all_batches_of_a_pass_use_the_same_topics(monkeypatch):
    """Without noise, the division of documents into batches makes no difference."""
    monkeypatch.setattr(collapsed, "recount", cvb0.recount_plain)
    monkeypatch.setattr(cvb0, "draw_counts", lambda counts, *_: counts)
    whole, divided = started(), started()
    theta = encoded()
    for _ in range(2):
        whole.count(single(COUNTS), theta, seeded())
        for rows in ([3, 0], [1, 2, 4, 5]):
            batch = sparse_batch(sparse.csr_array(COUNTS), np.array(rows), torch.device("cpu"))
            divided.count(batch, theta[rows], seeded())
        for each in (whole, divided):
            each.end_pass()
    torch.testing.assert_close(divided.word_topics, whole.word_topics)
    torch.testing.assert_close(divided.document_topics, whole.document_topics)


def test_the_counts_of_documents_are_drawn_in_each_pass(monkeypatch):
    counts, calls = COUNTS, []

    def recorded(means: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        calls.append(means.clone())
        return draw_counts(means, generator)

    monkeypatch.setattr(collapsed, "recount", cvb0.recount_plain)
    monkeypatch.setattr(cvb0, "draw_counts", recorded)
    new, again, other = (started(counts=counts) for _ in range(3))
    for each, seed in ((new, 1), (again, 1), (other, 2)):
        each.count(single(counts), encoded(), seeded(seed))
    expected = encoded() * torch.from_numpy(counts).sum(1, keepdim=True)
    torch.testing.assert_close(calls[0], expected)  # first around the encoder's counts
    torch.testing.assert_close(new.document_topics, again.document_topics, atol=0, rtol=0)
    assert not torch.allclose(new.document_topics, other.document_topics)
    kept = new.document_topics.clone()
    new.end_pass()
    new.count(single(counts), 1 - encoded(), seeded(1))
    torch.testing.assert_close(calls[-1], kept)  # then around those of the previous pass


def test_a_stream_does_not_exclude_a_tokens_own_count(monkeypatch):
    """Its counts do not contain the token yet."""
    found = []

    def recorded(*args, excluded: bool) -> cvb0.Recounted:
        found.append(excluded)
        return cvb0.recount(*args, excluded=excluded)

    monkeypatch.setattr(collapsed, "recount", recorded)
    for kept in (True, False):
        started(kept=kept).count(single(COUNTS), encoded(), seeded())
    assert found == [True, False]


def test_a_pass_does_not_sort_documents_by_word():
    batch = single(COUNTS)
    started().count(batch, encoded(), seeded())
    assert "by_word" not in vars(batch.counts)


def test_passes_recover_planted_topics():
    random = np.random.default_rng(1)
    planted, shares = random.dirichlet(np.full(N_WORDS, 0.2), N_TOPICS), random.dirichlet(np.full(N_TOPICS, 0.1), 400)
    counts = random.multinomial(40, shares @ planted).astype(np.float32)
    new = started(counts=counts)
    blurred = 0.8 * planted.mean(0)[:, None] + 0.2 * planted.T  # (V, K) nearly equal
    new.word_topics.copy_(torch.from_numpy(blurred * counts.sum() / N_TOPICS))
    generator = seeded()
    for _ in range(35):
        new.count(single(counts), torch.full((len(counts), N_TOPICS), 1 / N_TOPICS), generator)
        new.end_pass()
    distance = np.abs(new.beta_t.numpy().T - planted).sum(1) / 2
    assert distance.max() < 0.1
    assert distance.max() < 0.5 * (np.abs(blurred.T - planted).sum(1) / 2).min()


def test_passes_learn_the_dirichlet_parameter_of_each_topic():
    planted, random = np.array([0.3, 0.15, 0.1, 0.1, 0.05]), np.random.default_rng(0)
    topics = synthetic_lda(1, 5, 100).topics.astype(float)
    words = random.dirichlet(planted, 1000) @ topics  # (D, V)
    counts = random.multinomial(60, words / words.sum(1, keepdims=True)).astype(np.float32)
    new = CollapsedCounts(100, 5, eta=ETA, count_power=1.0, sharpness=1.0, n_background=0)
    new.keep_documents(len(counts), torch.from_numpy(counts.sum(0)))
    new.start(torch.from_numpy(topics.T).float(), torch.full((5,), 0.2), seeded())
    batch, even, generator = single(counts), torch.full((len(counts), 5), 0.2), seeded()
    for _ in range(50):
        new.count(batch, even, generator)
        new.end_pass()
    np.testing.assert_allclose(new.alpha, planted, rtol=0.35)
    assert (np.abs(new.beta_t.numpy().T - topics).sum(1) / 2).max() < 0.06


def test_kept_documents_replace_counts_and_streamed_ones_add_to_them():
    kept, stream = started(), started(kept=False)
    before = stream.word_topics.sum(1).clone()
    np.testing.assert_allclose(before, COUNTS.sum(0), rtol=1e-5)
    for number in (1, 2, 3):
        for each in (kept, stream):
            each.count(single(COUNTS), encoded(), seeded(number))
            each.end_pass()
        np.testing.assert_allclose(kept.word_topics.sum(1), COUNTS.sum(0), rtol=1e-5)
        np.testing.assert_allclose(kept.tokens, COUNTS.sum(0))
        np.testing.assert_allclose(stream.word_topics.sum(1), (1 + number) * COUNTS.sum(0), rtol=1e-5)
        np.testing.assert_allclose(stream.tokens, (1 + number) * COUNTS.sum(0))


@pytest.mark.parametrize("seen", [1, 9])
def test_a_stream_changes_alpha_by_its_share_of_the_tokens(seen):
    new = started(kept=False, counts=seen * COUNTS)
    before = new.alpha.clone()
    new.count(single(COUNTS), encoded(), seeded())
    current = new.current_pass
    numerator, denominator = current.alpha_numerator.clone(), current.alpha_denominator.clone()
    new.end_pass()
    torch.testing.assert_close(new.alpha, before * (numerator / denominator) ** (1 / (1 + seen)))
    assert not torch.equal(new.alpha, before)


def test_the_counts_of_seed_words_are_not_added_up():
    words = torch.zeros(N_WORDS, N_TOPICS)
    words[2, 1] = 100.0
    new = started(seed_counts=words, sharpness=1.35)
    for number in range(3):
        new.count(single(COUNTS), encoded(), seeded(number))
        new.end_pass()
    assert new.beta_t[2].argmax() == 1
    torch.testing.assert_close(new.beta_t, sharpen(new.word_topics + words, new.tokens, 1.35, ETA))
    np.testing.assert_allclose(new.word_topics.sum(1), COUNTS.sum(0), rtol=1e-5)


def test_the_state_of_a_run_ends_with_it():
    new = started(n_background=1)
    new.count(single(COUNTS), encoded(), seeded())
    new.finish(torch.ones(2))
    assert (new.document_topics, new.current_pass, new.passes_done) == (None, None, 0)
    assert bool(new.started)


# The bound.


def evidence(x: np.ndarray, beta: np.ndarray, alpha: np.ndarray) -> float:
    """Return the logarithm of the integral of prod_v (theta beta)_v^x_v over Dirichlet(alpha), of two topics."""

    def integrand(share: float) -> float:
        return stats.beta.pdf(share, *alpha) * np.prod((share * beta[0] + (1 - share) * beta[1]) ** x)

    value, _ = integrate.quad(integrand, 0, 1, epsabs=0, epsrel=1e-9, limit=200)
    return float(np.log(value))


def bound(x: np.ndarray, beta: np.ndarray, alpha: np.ndarray, counts: np.ndarray) -> float:
    """Return minus the loss of Dirichlet(alpha + counts)."""
    new = CollapsedCounts(len(x), 2, eta=ETA, count_power=1.0, sharpness=1.0, n_background=0).double()
    beta_t, prior, of_doc = tensors(beta.T, alpha, counts)
    new.beta_t.copy_(beta_t)
    loss = new.loss(DirichletPosterior((prior + of_doc)[None], prior), Batch(double_batch_of(x)))
    return -float(loss.without_extras())


def test_the_loss_bounds_the_evidence():
    x, beta, alpha = np.array([2.0, 1.0, 3.0]), simplex(2, 3, seed=4), np.array([1.2, 2.0])
    exact = evidence(x, beta, alpha)
    shares = np.linspace(0, 1, 21)
    bounds = [bound(x, beta, alpha, 6 * np.array([share, 1 - share])) for share in shares]
    assert max(bounds) < exact
    assert max(bounds) > exact - 1.0


def test_the_bound_is_tight_if_each_word_has_one_topic():
    x, alpha = np.array([2.0, 1.0, 3.0]), np.array([1.2, 2.0])
    beta = np.array([[0.4, 0.6, 0.0], [0.0, 0.0, 1.0]])
    assert bound(x, beta, alpha, np.array([3.0, 3.0])) == pytest.approx(evidence(x, beta, alpha), abs=1e-5)


def test_inference_counts_all_tokens():
    new = started()
    posterior, sizes = new.infer(single(COUNTS), encoded(), 5), COUNTS.sum(1)
    alpha = float(new.alpha.sum()) + PRIOR_TOKENS / np.maximum(sizes, 1)
    np.testing.assert_allclose(posterior.alpha.sum(1), sizes + alpha, rtol=1e-5)


@pytest.mark.parametrize("predicted", [None, 20.0])
@pytest.mark.parametrize("steps", [0, 3])
def test_part_of_a_documents_prior_follows_the_encoder(steps, predicted):
    """alpha_dk = (1 + 2 / (A n)) (alpha_k + A theta_k) / 2, and with a vector 20 theta_k more, which n counts."""
    new, batch, theta = started(), single(COUNTS), encoded()
    new.alpha = torch.tensor([0.4, 1.4, 0.2])  # A = 2
    n = batch.counts.totals.clamp_min(1)[:, None] + (predicted or 0)
    alpha = (1 + 1 / n) * (new.alpha + 2 * theta) / 2 + (predicted or 0) * theta
    extra = None if predicted is None else torch.full((N_DOCS,), predicted)
    posterior = new.infer(batch, theta, steps, extra)
    torch.testing.assert_close(posterior.alpha, alpha + expected_counts(batch.counts, new.beta_t, alpha, theta, steps))
    torch.testing.assert_close(posterior.prior, new.alpha)


def test_there_is_no_background_topic_if_all_topics_are_seeded():
    words = torch.zeros(N_WORDS, N_TOPICS)
    words[:3] = torch.eye(3)
    new = started(n_background=1, seed_counts=words)
    assert not new.background.any()
