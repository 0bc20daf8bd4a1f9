"""Loom's counts, against references that say the same in loops, and against integrals."""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import integrate, sparse, special, stats

from topicloom.datasets import synthetic_lda
from topicloom.models.loom import compiled
from topicloom.models.loom import counting as weft_module
from topicloom.models.loom import cvb0 as collapsed
from topicloom.models.loom.counting import (
    _COMMON_SHARE,
    _NEW_STEPS,
    _NOISY,
    _PLAIN,
    _TINT,
    _TRUST,
    Weft,
)
from topicloom.models.loom.cvb0 import (
    CountedTopics,
    dirichlet_step,
    expected_counts,
    noisy,
    sharpened,
    tinted,
)
from topicloom.nn.batch import Batch
from topicloom.nn.posteriors import DirichletPosterior
from topicloom.nn.sparse import SparseCounts
from topicloom.training.batches import sparse_batch

N_DOCS, N_WORDS, N_TOPICS, ETA = 6, 9, 3, 0.02
COUNTS = np.random.default_rng(0).poisson(1.2, (N_DOCS, N_WORDS)).astype(np.float32)
COUNTS[:, 4] = 0  # a word that no document has
COUNTS[3, 1] = 40  # so much of one word that what it has in its topics is less than what is taken off
ALPHA = np.array([0.1, 0.5, 0.02])


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def batch_of(counts: np.ndarray) -> SparseCounts:
    """In float64, so that what is compared differs by nothing but rounding."""
    batch = sparse_batch(
        sparse.csr_array(np.atleast_2d(counts)), np.arange(len(np.atleast_2d(counts))), torch.device("cpu")
    ).counts
    return replace(batch, values=batch.values.double())


def positive(*size: int, seed: int = 0, scale: float = 5.0) -> np.ndarray:
    return scale * np.random.default_rng(seed).random(size) ** 2


def simplex(*size: int, seed: int = 0) -> np.ndarray:
    """Rows that sum to 1."""
    return np.random.default_rng(seed).dirichlet(np.full(size[-1], 0.5), size[:-1])


def tensors(*arrays: np.ndarray) -> list[torch.Tensor]:
    return [torch.tensor(array, dtype=torch.float64) for array in arrays]


# Tokens shared out anew.


def reassigned(values: np.ndarray, doc_topics: np.ndarray, word_topics: np.ndarray, left_out: float) -> np.ndarray:
    """(D, V, K) x_dv gamma_dvk as the docstring of `reassign` has it, one token of one topic at a time."""
    sizes = word_topics.sum(0) + N_WORDS * ETA
    out = np.zeros((len(values), N_WORDS, N_TOPICS))
    for d, v in zip(*np.nonzero(values), strict=True):
        own = [(doc_topics[d, k] + ALPHA[k]) * (word_topics[v, k] + ETA) / sizes[k] for k in range(N_TOPICS)]
        own = [share / sum(own) for share in own]
        for k in range(N_TOPICS):
            of_doc = max(doc_topics[d, k] - own[k], 0) + ALPHA[k]
            of_word = max(word_topics[v, k] - values[d, v] * own[k] * left_out, 0) + ETA
            out[d, v, k] = of_doc * of_word / sizes[k]
        out[d, v] *= values[d, v] / out[d, v].sum()
    return out


@pytest.mark.parametrize("way", ["whole", "in pieces", "one by one", "compiled"])
@pytest.mark.parametrize("left_out", [1.0, 0.4, 0.0])
def test_tokens_are_shared_out_as_the_formula_says(left_out, way, monkeypatch):
    reassign = collapsed.reassign
    if way == "compiled":
        pytest.importorskip("numba")
        reassign = compiled.reassign
        monkeypatch.setattr(collapsed, "reassign", None)  # not this in its place
    elif way != "whole":
        monkeypatch.setattr(collapsed, "_CHUNK", {"in pieces": 4 * N_TOPICS, "one by one": 1}[way])
    values = COUNTS**0.7
    doc_topics, word_topics = positive(N_DOCS, N_TOPICS), positive(N_WORDS, N_TOPICS, seed=1)
    before = positive(N_WORDS, N_TOPICS, seed=2)
    batch = batch_of(COUNTS)
    topics = CountedTopics.of(torch.from_numpy(word_topics), ETA)
    docs, alpha, added = tensors(doc_topics, ALPHA, before)
    kept = docs.clone(), topics.beta_t.clone(), alpha.clone()
    ours = reassign(batch, batch.values**0.7, docs, topics, alpha, added, left_out=left_out).numpy()

    expected = reassigned(values, doc_topics, word_topics, left_out)  # (D, V, K)
    np.testing.assert_allclose(ours, expected.sum(1), rtol=1e-6)  # values are float32 to the power, once each
    np.testing.assert_allclose(added.numpy() - before, expected.sum(0), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(ours.sum(1), values.sum(1), rtol=1e-6)
    np.testing.assert_allclose((added.numpy() - before).sum(1), values.sum(0), rtol=1e-6, atol=1e-12)
    for tensor, copy in zip((docs, topics.beta_t, alpha), kept, strict=True):
        torch.testing.assert_close(tensor, copy, atol=0, rtol=0)  # nothing else was written to


@pytest.fixture
def uncompiled():
    """What numba made is forgotten, before and after."""
    compiled._compiled.cache_clear()
    yield
    compiled._compiled.cache_clear()


@pytest.mark.parametrize("why", ["no numba", "broken", "not compiled", "not contiguous", "another device"])
def test_tokens_are_shared_out_all_the_same_where_nothing_can_be_compiled(why, monkeypatch, uncompiled, caplog):
    batch = batch_of(COUNTS)
    topics = CountedTopics.of(torch.from_numpy(positive(N_WORDS, N_TOPICS, seed=1)), ETA)
    docs, alpha, added = tensors(positive(N_DOCS, N_TOPICS), ALPHA, np.zeros((N_WORDS, N_TOPICS)))
    given = batch, batch.values, docs, topics, alpha
    asked, expected = [], torch.ones(1)
    monkeypatch.setattr(collapsed, "reassign", lambda *_, **settings: asked.append(settings) or expected)
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
    assert compiled.reassign(*given, added, left_out=0.3) is expected
    assert asked == [{"left_out": 0.3}]
    assert ("cannot be used" in caplog.text) == (why == "broken")  # who has asked for it is told


def test_what_is_compiled_need_not_be_kept(monkeypatch, uncompiled):
    numba = pytest.importorskip("numba")
    njit = numba.njit

    def nowhere(*, cache: bool = False, **settings):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(**settings)

    monkeypatch.setattr(numba, "njit", nowhere)
    assert compiled._compiled().signatures


@pytest.mark.parametrize("counts", [COUNTS, COUNTS * 0, COUNTS[:0], np.eye(N_DOCS, N_WORDS, dtype=np.float32)])
@pytest.mark.parametrize("n_topics", [1, 3, 50])
def test_what_is_compiled_does_the_same_in_single_precision(counts, n_topics, monkeypatch):
    pytest.importorskip("numba")
    batch = single(counts).counts
    topics = CountedTopics.of(torch.from_numpy(positive(N_WORDS, n_topics, seed=1)).float(), ETA)
    topics = replace(topics, beta_t=topics.beta_t.index_fill(0, torch.tensor([2]), 0.0))  # a word that no topic has
    docs, alpha = torch.from_numpy(positive(len(counts), n_topics)).float(), torch.full((n_topics,), 0.1)
    ours, theirs = torch.zeros(N_WORDS, n_topics), torch.zeros(N_WORDS, n_topics)
    expected = collapsed.reassign(batch, batch.values, docs, topics, alpha, theirs, left_out=0.4)
    monkeypatch.setattr(collapsed, "reassign", None)
    torch.testing.assert_close(
        compiled.reassign(batch, batch.values, docs, topics, alpha, ours, left_out=0.4), expected
    )
    torch.testing.assert_close(ours, theirs)


def test_what_is_not_finite_does_not_get_lost_where_it_is_compiled():
    pytest.importorskip("numba")
    batch = single(COUNTS).counts
    topics = CountedTopics.of(torch.from_numpy(positive(N_WORDS, N_TOPICS, seed=1)).float(), ETA)
    docs = torch.from_numpy(positive(N_DOCS, N_TOPICS)).float()
    docs[2, 1] = torch.nan
    added = torch.zeros(N_WORDS, N_TOPICS)
    counts = compiled.reassign(batch, batch.values, docs, topics, torch.from_numpy(ALPHA).float(), added)
    assert counts.isnan().any(dim=1).tolist() == [False, False, True, False, False, False]
    assert added.isnan().any()


def test_counted_topics_are_smoothed_counts():
    counts = positive(N_WORDS, N_TOPICS)
    topics = CountedTopics.of(torch.from_numpy(counts), ETA)
    for k in range(N_TOPICS):
        size = sum(counts[:, k]) + N_WORDS * ETA
        np.testing.assert_allclose(topics.sizes[k], size)
        np.testing.assert_allclose(topics.least[k], ETA / size)
        np.testing.assert_allclose(topics.beta_t[:, k], (counts[:, k] + ETA) / size)


def test_topics_go_beyond_what_was_counted():
    before, after = positive(N_WORDS, N_TOPICS, seed=1), positive(N_WORDS, N_TOPICS, seed=2)
    old, new = (CountedTopics.of(torch.from_numpy(counts), ETA) for counts in (before, after))
    kept = new.beta_t.clone()
    further = new.beyond(old.beta_t)
    for k in range(N_TOPICS):
        change = [min(2.0, max(0.5, float(new.beta_t[v, k] / old.beta_t[v, k]))) for v in range(N_WORDS)]
        weights = np.array([float(new.beta_t[v, k]) * change[v] ** 0.8 for v in range(N_WORDS)])
        np.testing.assert_allclose(further.beta_t[:, k], weights / weights.sum())
    assert further.sizes is new.sizes
    torch.testing.assert_close(new.beta_t, kept, atol=0, rtol=0)
    torch.testing.assert_close(new.beyond(new.beta_t).beta_t, new.beta_t)  # where nothing changes, nothing goes on


# The Dirichlet parameters.


def test_dirichlet_steps_lead_to_the_parameters_that_counts_were_drawn_with():
    planted = np.array([0.05, 0.2, 0.6])
    random = np.random.default_rng(0)
    counts = torch.from_numpy(random.multinomial(80, random.dirichlet(planted, 8000)).astype(np.float64))
    alpha = torch.ones(3, dtype=torch.float64)
    for _ in range(60):
        numerator, denominator = dirichlet_step(counts, alpha)
        alpha = alpha * numerator / denominator
    np.testing.assert_allclose(alpha, planted, rtol=0.06)


def test_a_dirichlet_step_is_the_mean_over_counts_rounded_at_random():
    counts = np.array([[0.3, 2.3], [1.4, 0.0], [1.0, 7.9], [0.0, 0.6]])
    alpha = np.array([0.2, 1.5])
    numerator, denominator = dirichlet_step(*tensors(counts, alpha))
    expected = np.zeros(2)
    for row in counts:
        for k, count in enumerate(row):
            down = math.floor(count)
            for whole, chance in ((down + 1, count - down), (down, 1 - count + down)):
                expected[k] += chance * (special.digamma(whole + alpha[k]) - special.digamma(alpha[k]))
    np.testing.assert_allclose(numerator, expected)
    total = sum(special.digamma(row.sum() + 1.7) - special.digamma(1.7) for row in counts)
    assert float(denominator) == pytest.approx(total)


# Noise.


@pytest.mark.parametrize("noise", [1.0, 0.2])
def test_drawn_counts_have_their_mean_and_their_variance(noise: float):
    means = torch.tensor([0.0, 0.02, 0.5, 4.0, 60.0], dtype=torch.float64)
    drawn = noisy(means.expand(200_000, -1), noise, seeded())
    assert (drawn >= 0).all()
    assert not drawn[:, 0].any()  # a topic that a document has not
    np.testing.assert_allclose(drawn.mean(0)[1:], means[1:], rtol=0.05)
    np.testing.assert_allclose(drawn.var(0)[1:], noise * means[1:], rtol=0.15)
    for k in range(1, len(means)):
        exact = stats.gamma(float(means[k]) / noise, scale=noise)
        assert stats.kstest(drawn[:20_000, k].numpy(), exact.cdf).statistic < 0.015


# New documents.


def test_no_steps_are_the_start():
    start, beta_t, alpha = tensors(simplex(N_DOCS, N_TOPICS), simplex(N_TOPICS, N_WORDS).T, ALPHA)
    counts = expected_counts(batch_of(COUNTS), beta_t, alpha, start, 0)
    np.testing.assert_allclose(counts, COUNTS.sum(1)[:, None] * start.numpy())


def test_steps_of_inference_are_the_fixed_point_in_loops():
    theta, beta = simplex(N_DOCS, N_TOPICS, seed=1), simplex(N_TOPICS, N_WORDS, seed=2)
    start, beta_t, alpha = tensors(theta, beta.T, ALPHA)
    ours = expected_counts(batch_of(COUNTS), beta_t, alpha, start, 3)
    for d in range(N_DOCS):
        share = theta[d]
        for _ in range(3):
            counts = sum(COUNTS[d, v] * share * beta[:, v] / (share @ beta[:, v]) for v in np.flatnonzero(COUNTS[d]))
            share = (counts + ALPHA) / (counts + ALPHA).sum()
        np.testing.assert_allclose(ours[d], counts, rtol=1e-5)


def test_steps_of_inference_climb_to_the_best_theta():
    """The fixed point is expectation maximisation of sum_v x_v log (theta beta)_v + sum_k alpha_k log theta_k."""
    beta, x, alpha = simplex(2, N_WORDS, seed=3), COUNTS[0], np.array([0.3, 0.8])
    start, beta_t, prior = tensors(np.array([[0.02, 0.98]]), beta.T, alpha)

    def value(theta: np.ndarray) -> np.ndarray:
        return np.log(theta @ beta) @ x + np.log(theta) @ alpha

    reached = [value(start[0].numpy())]
    for steps in range(1, 60):
        theta = expected_counts(batch_of(x), beta_t, prior, start, steps)[0] + prior
        reached.append(value((theta / theta.sum()).numpy()))
    assert np.diff(reached).min() > -1e-6
    grid = np.linspace(1e-4, 1 - 1e-4, 5001)
    assert reached[-1] == pytest.approx(value(np.stack([grid, 1 - grid], axis=1)).max(), abs=1e-4)
    assert reached[-1] > reached[0] + 1


# Topics of counts.


def sharpened_in_loops(counts: np.ndarray, tokens: np.ndarray, sharpness: float) -> np.ndarray:
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
def test_sharpened_topics_are_what_the_formula_says(sharpness):
    counts, tokens = positive(N_WORDS, N_TOPICS), positive(N_WORDS, seed=1, scale=50)
    ours = sharpened(*tensors(counts, tokens), sharpness, ETA).numpy()
    np.testing.assert_allclose(ours, sharpened_in_loops(counts, tokens, sharpness))
    np.testing.assert_allclose(ours.sum(0), 1)
    # Mixed by some sizes of the topics, words have their share of the corpus whatever the sharpness.
    sizes, _, _, _ = np.linalg.lstsq(ours, tokens + ETA, rcond=None)
    np.testing.assert_allclose(ours @ sizes, tokens + ETA)
    assert (sizes > 0).all()


def test_only_words_that_lead_a_topic_are_sharpened():
    """The 30 best of each by probability or by relevance .6; the others are shared out as they were counted."""
    counts, tokens = positive(400, 2, scale=20), positive(400, seed=1, scale=50)
    ours = sharpened(*tensors(counts, tokens), 3.0, ETA).numpy()
    smoothed = counts + ETA
    topic = smoothed.sum(0) / smoothed.sum()
    plain = smoothed / smoothed.sum(1, keepdims=True)
    sharp = plain**3.0 * topic**-2.0
    sharp /= sharp.sum(1, keepdims=True)
    frequency = (tokens + ETA) / (tokens + ETA).sum()
    beta_t = sharp * frequency[:, None]
    beta_t /= beta_t.sum(0)
    relevance = 0.6 * np.log(beta_t) + 0.4 * np.log(beta_t / frequency[:, None])
    leads = {v for ranked in (beta_t, relevance) for k in range(2) for v in ranked[:, k].argsort()[-30:]}
    assert 60 < len(leads) < 120
    shares = np.array([(sharp if v in leads else plain)[v] for v in range(400)])
    expected = shares * frequency[:, None]
    np.testing.assert_allclose(ours, expected / expected.sum(0))


def test_topics_that_are_not_sharpened_are_the_counts():
    counts = positive(N_WORDS, N_TOPICS)
    ours = sharpened(*tensors(counts, counts.sum(1)), 1.0, 1e-12)
    np.testing.assert_allclose(ours, counts / counts.sum(0), rtol=1e-6)


def test_sharper_topics_share_fewer_words():
    counts = positive(N_WORDS, N_TOPICS)
    counts /= counts.sum(0)  # topics of one size, so that a word's first topic is the one it stands out in

    def surest(sharpness: float) -> np.ndarray:
        """(V,) max_k p(k | v)"""
        beta_t = sharpened(*tensors(counts, np.ones(N_WORDS)), sharpness, 1e-9).numpy()
        sizes, _, _, _ = np.linalg.lstsq(beta_t, np.ones(N_WORDS), rcond=None)
        return (beta_t * sizes).max(1)

    found = [surest(sharpness) for sharpness in (0.5, 1.0, 1.35, 3.0)]
    assert (np.diff(found, axis=0) > 0).all()


def test_tinted_topics_have_their_share_of_the_common_ones_words():
    beta_t, weights = simplex(N_TOPICS + 1, N_WORDS, seed=7).T, np.array([0.0, 3.0, 0.0, 1.0])
    ours = tinted(*tensors(beta_t, weights), 0.2)
    for v in range(N_WORDS):
        words = (3 * beta_t[v, 1] + beta_t[v, 3]) / 4
        for k in range(N_TOPICS + 1):
            expected = beta_t[v, k] if weights[k] else 0.8 * beta_t[v, k] + 0.2 * words
            assert ours[v, k] == pytest.approx(expected)
    np.testing.assert_allclose(ours.sum(0), 1)


# A pass, and what is there before it.


def weft(**settings) -> Weft:
    return Weft(N_WORDS, N_TOPICS, **{"eta": ETA, "damping": 1.0, "sharpness": 1.0, "n_common": 0, **settings})


def begun(kept: bool = True, counts: np.ndarray = COUNTS, usage=(0.5, 0.1, 0.4), **settings) -> Weft:
    """One whose topics come from elsewhere, of documents that are kept or of a stream."""
    new = weft(**settings)
    if kept:
        new.keep(len(counts), torch.from_numpy(counts.sum(0)))
    else:
        new.tokens.copy_(torch.from_numpy(counts.sum(0)))
    beta_t = torch.from_numpy(simplex(N_TOPICS, N_WORDS, seed=5).T.copy()).float()
    new.begin(beta_t, torch.tensor(usage), seeded())
    return new


def single(counts: np.ndarray) -> SparseCounts:
    return sparse_batch(sparse.csr_array(counts), np.arange(len(counts)), torch.device("cpu"))


def encoded(n_docs: int = N_DOCS) -> torch.Tensor:
    return torch.from_numpy(simplex(n_docs, N_TOPICS, seed=6)).float()


def test_topics_found_otherwise_become_counts():
    new, usage = begun(), np.array([0.5, 0.1, 0.4])
    assert bool(new.begun)
    beta_t = simplex(N_TOPICS, N_WORDS, seed=5).T
    np.testing.assert_allclose(new.beta_t, beta_t, rtol=1e-5)
    posterior = beta_t * usage / (beta_t * usage).sum(1, keepdims=True)  # p(k | v)
    np.testing.assert_allclose(new.word_topics, posterior * COUNTS.sum(0)[:, None], rtol=1e-5)
    assert not new.common.any()


@pytest.mark.parametrize(("n_common", "common"), [(1, {1}), (2, {1, 2})])
def test_common_topics_take_the_place_of_the_least_used(n_common, common):
    new = begun(n_common=n_common)
    assert set(new.common.nonzero()[:, 0].tolist()) == common
    assert new.held.tolist() == new.common.tolist()  # no choice of topics may leave them out
    np.testing.assert_allclose(new.beta_t.sum(0), 1, rtol=1e-5)
    np.testing.assert_allclose(new.word_topics.sum(1), COUNTS.sum(0), rtol=1e-5)
    corpus = COUNTS.sum(0) / COUNTS.sum()
    for topic in range(N_TOPICS):
        words = new.beta_t[:, topic].numpy()
        # A common topic has nothing but what the corpus has; the others were freed of that.
        assert (words[corpus == 0] == 0).all() == (topic in common)
        assert (new.alpha[topic] > weft().alpha[topic]) == (topic in common)
    assert torch.isfinite(new.word_topics).all()


def test_a_common_topic_never_takes_a_seeded_ones_place():
    words = torch.zeros(N_WORDS, N_TOPICS)
    words[2, 1] = 5.0
    new = begun(n_common=1, seeded=words)
    assert new.common.tolist() == [False, False, True]  # topic 1 has less, and is seeded
    assert new.held.tolist() == [False, True, True]


def test_documents_start_with_common_words_in_their_topics():
    new, theta = begun(n_common=1), encoded()
    start = new._start(single(COUNTS), theta.clone(), torch.ones(N_DOCS, 1))
    for d in range(N_DOCS):
        shares = [_COMMON_SHARE if k == 1 else (1 - _COMMON_SHARE) * float(theta[d, k]) for k in range(N_TOPICS)]
        np.testing.assert_allclose(start[d], np.array(shares) / sum(shares), rtol=1e-5)


def test_a_stream_after_a_fit_starts_where_inference_says():
    """The encoder knows the common topics by then."""
    new, batch, theta = begun(n_common=1), single(COUNTS), encoded()
    new.weave(batch, theta, seeded())
    new.gather()
    new.end(torch.ones(3))
    assert new.common.tolist() == [False, True, False]
    start = new._start(batch, theta, torch.from_numpy(COUNTS.sum(1))[:, None])
    torch.testing.assert_close(start, expected_counts(batch.counts, new.beta_t, new.alpha, theta, _NEW_STEPS))


@pytest.mark.parametrize("damping", [1.0, 0.5])
def test_a_pass_counts_every_token_once(damping):
    new = begun(damping=damping)
    posterior = new.weave(single(COUNTS), encoded(), seeded())
    values = COUNTS**damping
    np.testing.assert_allclose((posterior.alpha - new.alpha).sum(1), values.sum(1), rtol=1e-5)
    np.testing.assert_allclose(new.local, posterior.alpha - new.alpha, atol=1e-5)
    new.gather()
    np.testing.assert_allclose(new.word_topics.sum(1), values.sum(0), rtol=1e-5)
    np.testing.assert_allclose(new.tokens, COUNTS.sum(0))
    np.testing.assert_allclose(new.beta_t.sum(0), 1, rtol=1e-5)


def test_batches_of_a_pass_go_by_the_topics_before_it(monkeypatch):
    """Without noise, documents are shared out the same whatever batches they come in."""
    monkeypatch.setattr(weft_module, "noisy", lambda counts, noise, generator: counts)
    whole, parted = begun(), begun()
    theta = encoded()
    for _ in range(2):
        whole.weave(single(COUNTS), theta, seeded())
        for rows in ([3, 0], [1, 2, 4, 5]):
            batch = sparse_batch(sparse.csr_array(COUNTS), np.array(rows), torch.device("cpu"))
            parted.weave(batch, theta[rows], seeded())
        for each in (whole, parted):
            each.gather()
    torch.testing.assert_close(parted.word_topics, whole.word_topics)
    torch.testing.assert_close(parted.local, whole.local)


@pytest.mark.parametrize("times", [1, 100])
def test_the_counts_of_documents_are_drawn_anew_at_each_pass(times, monkeypatch):
    counts, asked = times * COUNTS, []
    noise = min(1.0, counts.sum() / N_WORDS / _NOISY)
    assert (noise == 1.0) == (times == 100)

    def drawn(counts: torch.Tensor, by: float, generator: torch.Generator) -> torch.Tensor:
        asked.append((counts.clone(), by))
        return noisy(counts, by, generator)

    monkeypatch.setattr(weft_module, "noisy", drawn)
    new, again, other = (begun(counts=counts) for _ in range(3))
    for each, seed in ((new, 1), (again, 1), (other, 2)):
        each.weave(single(counts), encoded(), seeded(seed))
    said = encoded() * torch.from_numpy(counts).sum(1, keepdim=True)
    torch.testing.assert_close(asked[0], (said, noise))  # first about what the encoder says
    torch.testing.assert_close(new.local, again.local, atol=0, rtol=0)
    assert not torch.allclose(new.local, other.local)
    kept = new.local.clone()
    new.gather()
    new.weave(single(counts), 1 - encoded(), seeded(1))
    torch.testing.assert_close(asked[-1], (kept, noise))  # then about what the pass before left


def test_a_token_is_left_out_the_more_the_fewer_there_are():
    asked = []

    def noted(*args, left_out: float) -> torch.Tensor:
        asked.append(left_out)
        return collapsed.reassign(*args, left_out=left_out)

    for n_tokens in (1.0, 40.0, 79.0, 400.0):
        new = begun(reassign=noted)
        new.word_topics.fill_(n_tokens / N_TOPICS)
        new.local, new.passes = torch.full((N_DOCS, N_TOPICS), 6.0), int(n_tokens > 40)
        new.weave(single(COUNTS), encoded(), seeded())
    stream = begun(kept=False, reassign=noted)
    stream.weave(single(COUNTS), encoded(), seeded())  # its tokens are in no counts yet
    assert asked == pytest.approx([1 - 0.0125**2, 0.75, 1 - 0.9875**2, 0, 0])


def test_a_pass_does_not_put_documents_in_the_order_of_words():
    batch = single(COUNTS)
    begun().weave(batch, encoded(), seeded())
    assert "by_word" not in vars(batch.counts)


@pytest.mark.parametrize(("n_tokens", "sharpness"), [(4.0, 2.5), (25.0, 1 + 10 / 8), (400.0, 1 + 10 / 23)])
def test_topics_are_sharper_the_fewer_tokens_a_word_there_are(n_tokens: float, sharpness: float):
    new = begun(sharpness=None)
    new.keep(N_DOCS, torch.full((N_WORDS,), n_tokens))
    new.local = torch.full((N_DOCS, N_TOPICS), 6.0)
    new.weave(single(COUNTS), encoded(), seeded())
    new.tally.tokens.fill_(n_tokens)
    new.gather()
    torch.testing.assert_close(new.beta_t, sharpened(new.word_topics, new.tokens, sharpness, ETA))


def test_a_word_many_times_in_a_document_is_less_reason_for_noise_than_one_in_many():
    """Noise goes by the tokens as damping counts them."""
    few_long = np.where(COUNTS > 0, 60.0, 0.0).astype(np.float32)
    damped, plain = (begun(counts=few_long, damping=damping) for damping in (0.5, 1.0))
    for each in (damped, plain):
        each.weave(single(few_long), encoded(), seeded())
        each.gather()
    n_pairs = (few_long > 0).sum() / N_WORDS  # a word
    assert damped._start_pass(seeded()).noise == pytest.approx(60**0.5 * n_pairs / _NOISY)
    assert plain._start_pass(seeded()).noise == pytest.approx(min(1, 60 * n_pairs / _NOISY))


def test_noise_is_the_same_when_topics_have_gone():
    new = begun()
    before = new._start_pass(seeded()).noise
    new._leave(torch.tensor([0, 2]))
    assert new.word_topics.shape == (N_WORDS, 2)
    assert new._start_pass(seeded()).noise == pytest.approx(before)


def test_counts_of_words_are_noisy_in_the_first_half_of_the_passes():
    """Each pass draws them around what was counted, with a tenth of the variance of documents' counts."""
    words = torch.zeros(N_WORDS, N_TOPICS)
    words[2, 1] = 100.0  # what seed words count beforehand is not drawn
    new = begun(seeded=words)
    new.n_passes = 8
    draws = []
    for number in range(4_000):
        new.before = None
        tally = new._start_pass(seeded(number))
        draws.append(tally.topics.beta_t * tally.topics.sizes - ETA - words)
    drawn = torch.stack(draws)
    torch.testing.assert_close(drawn.mean(0), new.word_topics, rtol=0.05, atol=0.02)
    torch.testing.assert_close(drawn.var(0), 0.1 * tally.noise * new.word_topics, rtol=0.2, atol=0.01)


@pytest.mark.parametrize(("n_passes", "noisy_passes"), [(0, 0), (1, 0), (3, 0), (5, 2), (8, 4), (28, 14)])
@pytest.mark.parametrize("gone", [False, True])
def test_the_last_passes_go_by_the_counts_of_words_as_they_are(n_passes: int, noisy_passes: int, gone: bool):
    new = begun()
    if gone:
        new._leave(torch.tensor([0, 2]))
    new.n_passes = n_passes
    counted = CountedTopics.of(new.word_topics, ETA).beta_t
    went_by = []
    for number in range(max(n_passes, 1)):
        new.passes, new.before = number, None
        went_by.append(torch.equal(new._start_pass(seeded(number)).topics.beta_t, counted))
    assert went_by == [False] * noisy_passes + [True] * (max(n_passes, 1) - noisy_passes)


def test_momentum_goes_on_from_the_noisy_topics_of_the_pass_before():
    new = begun()
    new.n_passes = 20
    drawn = []
    for number in range(2):
        new.before = None
        drawn.append(new._start_pass(seeded(number)).topics)
    new.before = None
    new._start_pass(seeded(0))
    torch.testing.assert_close(new._start_pass(seeded(1)).topics.beta_t, drawn[1].beyond(drawn[0].beta_t).beta_t)


def test_counts_are_noisier_the_more_tokens_a_word_there_are():
    """Their variance is that of a sampler's times the noise, their mean what it was."""
    drawn = []
    for n_tokens, noise in ((8.0, 0.1), (40.0, 0.5), (400.0, 1.0)):
        new = begun(reassign=lambda batch, values, counts, *_, **__: drawn.append(counts) or counts)
        new.word_topics.fill_(n_tokens / N_TOPICS)
        new.local, new.passes = torch.full((N_DOCS, N_TOPICS), 6.0), 1
        drawn.clear()
        for seed in range(400):
            new.weave(single(COUNTS), None, seeded(seed))
            new.local.fill_(6.0)
        values = torch.stack(drawn)
        assert float(values.mean()) == pytest.approx(6.0, rel=0.03)
        assert float(values.var()) == pytest.approx(6.0 * noise, rel=0.1)


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts of words are not noisy."""
    monkeypatch.setattr(weft_module, "_NOISY_PASSES", 0.0)


def test_passes_but_the_last_go_by_topics_beyond_those_counted(quiet: None):
    new, n_passes = begun(), _PLAIN + 3
    new.n_passes, counted = n_passes, []
    for number in range(n_passes):
        counted.append(CountedTopics.of(new.word_topics, ETA))
        new.weave(single(COUNTS), encoded(), seeded(number))
        beyond = 0 < number < n_passes - _PLAIN
        expected = counted[-1].beyond(counted[-2].beta_t) if beyond else counted[-1]
        torch.testing.assert_close(new.tally.topics.beta_t, expected.beta_t)
        assert beyond != torch.allclose(new.tally.topics.beta_t, counted[-1].beta_t, rtol=1e-3)
        new.gather()


def test_a_pass_after_topics_went_goes_by_those_counted(quiet: None):
    new = begun(n_common=2)  # topics 1 and 2
    new.n_passes = 20
    for number in range(2):
        new.weave(single(COUNTS), encoded(), seeded(number))
        new.gather()
    new._leave(torch.tensor([0, 2]))
    assert new.common.tolist() == [False, True]
    for beyond in (False, True):
        counted = CountedTopics.of(new.word_topics, ETA)
        new.weave(single(COUNTS), None, seeded())
        assert beyond != torch.allclose(new.tally.topics.beta_t, counted.beta_t)
        new.gather()


def test_a_stream_goes_by_the_topics_counted():
    new = begun(kept=False)
    for number in range(3):
        counted = CountedTopics.of(new.word_topics, ETA)
        new.weave(single(COUNTS), encoded(), seeded(number))
        torch.testing.assert_close(new.tally.topics.beta_t, counted.beta_t)
        new.gather()


def test_topics_have_some_words_of_the_common_ones():
    new = begun(n_common=2, sharpness=1.35)  # topics 1 and 2
    new.alpha = torch.tensor([0.05, 0.5, 0.2])
    new.weave(single(COUNTS), encoded(), seeded())
    new.gather()
    alone = sharpened(new.word_topics, new.tokens, 1.35, ETA)
    torch.testing.assert_close(new.beta_t, tinted(alone, torch.tensor([0.0, 0.5, 0.2]), _TINT))
    torch.testing.assert_close(new.beta_t[:, 1:], alone[:, 1:])
    assert not torch.allclose(new.beta_t, alone)


def test_passes_find_the_topics_that_documents_were_drawn_from():
    random = np.random.default_rng(1)
    planted, shares = random.dirichlet(np.full(N_WORDS, 0.2), N_TOPICS), random.dirichlet(np.full(N_TOPICS, 0.1), 400)
    counts = random.multinomial(40, shares @ planted).astype(np.float32)
    new = begun(counts=counts)
    blurred = 0.8 * planted.mean(0)[:, None] + 0.2 * planted.T  # (V, K) hardly apart
    new.word_topics.copy_(torch.from_numpy(blurred * counts.sum() / N_TOPICS))
    generator = seeded()
    for _ in range(35):
        new.weave(single(counts), torch.full((len(counts), N_TOPICS), 1 / N_TOPICS), generator)
        new.gather()
    distance = np.abs(new.beta_t.numpy().T - planted).sum(1) / 2
    assert distance.max() < 0.08
    assert distance.max() < 0.5 * (np.abs(blurred.T - planted).sum(1) / 2).min()


def test_passes_learn_how_common_each_topic_is():
    planted, random = np.array([0.3, 0.15, 0.1, 0.1, 0.05]), np.random.default_rng(0)
    topics = synthetic_lda(1, 5, 100).topics.astype(float)
    words = random.dirichlet(planted, 1000) @ topics  # (D, V)
    counts = random.multinomial(60, words / words.sum(1, keepdims=True)).astype(np.float32)
    new = Weft(100, 5, eta=ETA, damping=1.0, sharpness=1.0, n_common=0)
    new.keep(len(counts), torch.from_numpy(counts.sum(0)))
    new.begin(torch.from_numpy(topics.T).float(), torch.full((5,), 0.2), seeded())
    batch, even, generator = single(counts), torch.full((len(counts), 5), 0.2), seeded()
    for _ in range(50):
        new.weave(batch, even, generator)
        new.gather()
    np.testing.assert_allclose(new.alpha, planted, rtol=0.35)
    assert (np.abs(new.beta_t.numpy().T - topics).sum(1) / 2).max() < 0.06


def test_kept_documents_replace_their_counts_and_those_of_a_stream_are_added():
    kept, stream = begun(), begun(kept=False)
    before = stream.word_topics.sum(1).clone()
    np.testing.assert_allclose(before, COUNTS.sum(0), rtol=1e-5)
    for number in (1, 2, 3):
        for each in (kept, stream):
            each.weave(single(COUNTS), encoded(), seeded(number))
            each.gather()
        np.testing.assert_allclose(kept.word_topics.sum(1), COUNTS.sum(0), rtol=1e-5)
        np.testing.assert_allclose(kept.tokens, COUNTS.sum(0))
        np.testing.assert_allclose(stream.word_topics.sum(1), (1 + number) * COUNTS.sum(0), rtol=1e-5)
        np.testing.assert_allclose(stream.tokens, (1 + number) * COUNTS.sum(0))


@pytest.mark.parametrize("seen", [1, 9])
def test_a_stream_moves_the_parameters_by_its_share_of_the_tokens(seen):
    new = begun(kept=False, counts=seen * COUNTS)
    before = new.alpha.clone()
    new.weave(single(COUNTS), encoded(), seeded())
    numerator, denominator = (part.clone() for part in new.tally.alpha)
    new.gather()
    torch.testing.assert_close(new.alpha, before * (numerator / denominator) ** (1 / (1 + seen)))
    assert not torch.equal(new.alpha, before)


def test_seed_words_count_beforehand_and_are_not_added_up():
    words = torch.zeros(N_WORDS, N_TOPICS)
    words[2, 1] = 100.0
    new = begun(seeded=words, sharpness=1.35)
    for number in range(3):
        new.weave(single(COUNTS), encoded(), seeded(number))
        new.gather()
    assert new.beta_t[2].argmax() == 1
    torch.testing.assert_close(new.beta_t, sharpened(new.word_topics + words, new.tokens, 1.35, ETA))
    np.testing.assert_allclose(new.word_topics.sum(1), COUNTS.sum(0), rtol=1e-5)


def test_what_is_of_one_run_goes():
    new = begun(n_common=1)
    new.weave(single(COUNTS), encoded(), seeded())
    new.end(torch.ones(2))
    assert (new.local, new.before, new.tally, new.passes) == (None, None, None, 0)
    assert bool(new.begun)


# The bound.


def evidence(x: np.ndarray, beta: np.ndarray, alpha: np.ndarray) -> float:
    """log of the integral of prod_v (theta beta)_v^x_v over Dirichlet(alpha), of two topics."""

    def integrand(share: float) -> float:
        return stats.beta.pdf(share, *alpha) * np.prod((share * beta[0] + (1 - share) * beta[1]) ** x)

    value, _ = integrate.quad(integrand, 0, 1, epsabs=0, epsrel=1e-9, limit=200)
    return float(np.log(value))


def bound(x: np.ndarray, beta: np.ndarray, alpha: np.ndarray, counts: np.ndarray) -> float:
    """Minus the loss of Dirichlet(alpha + counts)."""
    new = Weft(len(x), 2, eta=ETA, damping=1.0, sharpness=1.0, n_common=0).double()
    beta_t, prior, of_doc = tensors(beta.T, alpha, counts)
    new.beta_t.copy_(beta_t)
    loss = new.loss(DirichletPosterior((prior + of_doc)[None], prior), Batch(batch_of(x)))
    return -float(loss.without_extras())


def test_the_loss_bounds_the_evidence():
    x, beta, alpha = np.array([2.0, 1.0, 3.0]), simplex(2, 3, seed=4), np.array([1.2, 2.0])
    exact = evidence(x, beta, alpha)
    shares = np.linspace(0, 1, 21)
    bounds = [bound(x, beta, alpha, 6 * np.array([share, 1 - share])) for share in shares]
    assert max(bounds) < exact
    assert max(bounds) > exact - 1.0


def test_the_bound_is_the_evidence_where_words_tell_their_topic():
    x, alpha = np.array([2.0, 1.0, 3.0]), np.array([1.2, 2.0])
    beta = np.array([[0.4, 0.6, 0.0], [0.0, 0.0, 1.0]])
    assert bound(x, beta, alpha, np.array([3.0, 3.0])) == pytest.approx(evidence(x, beta, alpha), abs=1e-5)


def test_inference_is_of_all_tokens():
    new = begun()
    posterior = new.infer(single(COUNTS), encoded(), 5)
    np.testing.assert_allclose(posterior.alpha.sum(1), COUNTS.sum(1) + float(new.alpha.sum()), rtol=1e-5)


@pytest.mark.parametrize("steps", [0, 3])
def test_part_of_a_documents_prior_is_what_the_encoder_says(steps):
    new, batch, theta = begun(), single(COUNTS), encoded()
    new.alpha = torch.tensor([0.2, 0.7, 0.1])
    alpha = (1 - _TRUST) * new.alpha + _TRUST * theta  # alpha sums to 1
    posterior = new.infer(batch, theta, steps)
    torch.testing.assert_close(posterior.alpha, alpha + expected_counts(batch.counts, new.beta_t, alpha, theta, steps))
    torch.testing.assert_close(posterior.prior, new.alpha)


def test_seeds_on_all_topics_leave_none_to_be_common():
    words = torch.zeros(N_WORDS, N_TOPICS)
    words[:3] = torch.eye(3)
    new = begun(n_common=1, seeded=words)
    assert not new.common.any()
