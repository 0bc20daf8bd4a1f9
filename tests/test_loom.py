"""Loom as a user sees it: its two stages, refined inference, streams, and settings at their limits."""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from scipy.special import digamma, gammaln, logsumexp

from batches import sparse_batch
from planted import matched
from topicloom.datasets import synthetic_lda
from topicloom.errors import SettingError, TrainingDivergedError
from topicloom.models import Loom
from topicloom.models.loading import load
from topicloom.models.loom import cvb0
from topicloom.models.loom import model as loom_model
from topicloom.models.loom.collapsed import _FIXED_ALPHA_PASSES, PRIOR_TOKENS, CollapsedCounts
from topicloom.models.loom.model import LoomNetwork
from topicloom.models.words import Words
from topicloom.nn.posteriors import DirichletPosterior

N_TOPICS, N_WORDS = 4, 60
CORPUS, TOPICS, THETA = synthetic_lda(n_docs=400, n_topics=N_TOPICS, n_words=N_WORDS, doc_length=40)
COUNTS = CORPUS.counts
AS_LDA = {"background_topics": 0.0, "count_power": 1.0, "sharpness": 1.0}


def small(n_topics: int = N_TOPICS, **settings: Any) -> Loom:
    fixed = {"epochs": 20, "pretrain_share": 0.2, "sample_share": 0.6, "hidden_size": 16, "random_state": 1}
    return Loom(n_topics, **{**fixed, "device": "cpu", **settings})


@pytest.fixture(scope="module")
def fitted() -> Loom:
    """A fitted model that no test may change."""
    return small().fit(CORPUS)


def network_of(model: Loom) -> LoomNetwork:
    assert isinstance(model.network_, LoomNetwork)
    return model.network_


def distances(components: np.ndarray) -> np.ndarray:
    """Return the total variation distance of each planted topic from its topic in the best matching."""
    return matched(TOPICS, components)[1]


def finite(model: Loom, X: Any) -> bool:
    theta = model.transform(X)
    np.testing.assert_allclose(theta.sum(axis=1), 1, rtol=1e-4)
    np.testing.assert_allclose(model.components_.sum(axis=1), 1, rtol=1e-4)
    return bool(np.isfinite(model.components_).all() and np.isfinite(theta).all() and np.isfinite(model.perplexity(X)))


# The two stages.


def test_pretraining_is_followed_by_counting():
    model = small(epochs=12, pretrain_share=0.25).fit(CORPUS)
    counting = ["concentration" in row for row in model.history_]
    assert counting == [False] * 3 + [True] * 9
    measured = ["encoder_divergence" in row for row in model.history_]
    assert measured == [False] * 4 + [True] + [False] * 6 + [True]  # in the last pass of each stage
    assert ["separation" in row for row in model.history_] == [not each for each in counting]
    assert model.history_[-1]["concentration"] == pytest.approx(float(network_of(model).counting.alpha.sum()))


@pytest.mark.parametrize(
    ("n_docs", "length", "expected"),
    [
        (100, 8, (4, 28, 0, 254)),  # titles
        (5_000, 20, (4, 28, 0, 254)),
        (5_000, 80, (4, 28, 0, 127)),  # four times the tokens
        (10_000, 125, (4, 28, 0, 85)),
        (131_071, 20, (4, 28, 0, 85)),
        (131_072, 20, (4, 28, 64, 85)),  # twice the documents of the subset
        (131_072, 1, (4, 28, 109, 145)),  # not more than 286 in all
        (10**6, 2_000, (4, 28, 64, 85)),
    ],
)
def test_large_corpora_are_sampled_less(n_docs, length, expected):
    words = Words(torch.zeros(5), torch.zeros(5), list("abcde"), n_docs, float(n_docs * length))
    assert Loom(3).stage_epochs(words) == expected
    assert Loom(3, epochs=15).stage_epochs(words)[2] == 0  # too few for a subset
    assert Loom(3, epochs=3, pretrain_share=0.2, sample_share=0.4).stage_epochs(words) == (1, 1, 0, 1)
    assert Loom(3, sample_share=0.0).stage_epochs(words)[2:] == (0, 0)


@pytest.mark.parametrize(("n_lent", "expected"), [(0, 254), (20_000, 204), (50_000, 127), (99_000, 39)])
def test_documents_with_lent_words_are_sampled_less(n_lent, expected):
    words = Words(torch.zeros(5), torch.zeros(5), list("abcde"), 5_000, 100_000.0, n_lent=n_lent)
    assert Loom(3).stage_epochs(words) == (4, 28, 0, expected)


@pytest.mark.parametrize(("batch_size", "rate"), [(None, 0.01), (64, 0.01), (1024, 0.02), (10_000, 0.02)])
def test_the_learning_rate_grows_with_a_large_batch(batch_size, rate):
    corpus = synthetic_lda(1024, 3, 40, doc_length=150, random_state=0).corpus
    model = Loom(3, batch_size=batch_size, epochs=2, sample_share=0.0, schedule="constant").fit(corpus)
    assert model.history_[0]["learning_rate"] == pytest.approx(rate, rel=0.01)


@pytest.mark.parametrize(("length", "rate"), [(5, 0.025), (60, 0.0144), (300, 0.01)])
def test_the_learning_rate_is_higher_for_short_documents(length, rate):
    corpus = synthetic_lda(200, 3, 40, doc_length=length, random_state=0).corpus
    model = Loom(3, epochs=2, sample_share=0.0, schedule="constant").fit(corpus)
    assert model.history_[0]["learning_rate"] == pytest.approx(rate, rel=0.05)
    model = Loom(3, epochs=2).partial_fit(corpus)
    assert model.history_[0]["learning_rate"] == pytest.approx(0.01)


def test_an_epoch_of_a_small_corpus_has_sixteen_steps(monkeypatch):
    sizes, prepare = [], Loom.prepare_training

    def noted(self, network, reader):
        sizes.append(reader.batch_size)
        prepare(self, network, reader)

    monkeypatch.setattr(Loom, "prepare_training", noted)
    for n_docs in (100, 1000):
        Loom(3, epochs=2, sample_share=0.0).fit(synthetic_lda(n_docs, 3, 40, random_state=0).corpus)
    assert sizes == [32, 62]


def test_tokens_are_reassigned_by_the_compiled_loop(monkeypatch):
    pytest.importorskip("numba")
    monkeypatch.setattr(cvb0, "reassign_plain", None)
    assert finite(small(epochs=12, spare_topics=2.0).fit(CORPUS), CORPUS)


def test_counting_improves_the_topics_of_pretraining():
    model = small(**AS_LDA).fit(CORPUS)
    pretrained = network_of(model).decoder.topic_word().detach().numpy()  # counting does not change these
    assert distances(model.components_).max() < min(0.06, 0.75 * distances(pretrained).max())


def test_the_encoder_learns_to_predict_the_counts():
    """After pretraining, its theta is far from that of the counts."""
    model = small(epochs=84, sample_share=0.0, pretrain_share=0.05).fit(CORPUS)
    quick, counted = model.transform(CORPUS, refine=0), model.transform(CORPUS, refine=100)
    assert (quick.argmax(1) == counted.argmax(1)).mean() > 0.93
    divergences = [row["encoder_divergence"] for row in model.history_ if "encoder_divergence" in row]
    assert len(divergences) == 20
    assert 0 < min(divergences) <= divergences[-1] < 0.7 * max(divergences)


def test_alpha_is_fixed_for_some_passes_and_then_learned():
    sizes = [row["concentration"] for row in small(spare_topics=0.0).fit(CORPUS).history_ if "concentration" in row]
    assert len(set(sizes[:_FIXED_ALPHA_PASSES])) == 1
    assert len(set(sizes)) == len(sizes) - _FIXED_ALPHA_PASSES + 1


def test_the_same_random_state_gives_the_same_model(fitted):
    again = small().fit(CORPUS)
    np.testing.assert_array_equal(again.components_, fitted.components_)
    np.testing.assert_array_equal(again.transform(CORPUS), fitted.transform(CORPUS))
    np.testing.assert_array_equal(network_of(again).counting.alpha, network_of(fitted).counting.alpha)


def spoil(patch: pytest.MonkeyPatch, last_good: int) -> None:
    """Make the counts of documents NaN after so many batches of the counting stage."""
    whole, n_batches = CollapsedCounts.count, [0]

    def count(counting: CollapsedCounts, *args: Any, **kwargs: Any) -> DirichletPosterior | None:
        posterior = whole(counting, *args, **kwargs)
        n_batches[0] += 1
        if n_batches[0] <= last_good:
            return posterior
        counting.current_pass.alpha_numerator.fill_(torch.nan)
        return None if posterior is None else dataclasses.replace(posterior, alpha=posterior.alpha * torch.nan)

    patch.setattr(CollapsedCounts, "count", count)


def test_counting_that_diverged_keeps_its_last_whole_pass(monkeypatch, interrupted_after):
    for name in ("_COUNTING_BATCH", "_SAMPLING_BATCH"):
        monkeypatch.setattr(loom_model, name, 1)
    model, whole = small(batch_size=50), small(batch_size=50)  # eight steps per epoch, one of which trains the encoder
    with pytest.raises(KeyboardInterrupt):
        whole.fit(CORPUS, callbacks=[interrupted_after(12)])
    with monkeypatch.context() as patch:
        n_pretraining = sum("concentration" not in row for row in whole.history_)
        spoil(patch, (12 - n_pretraining) * 8 + 5)
        with pytest.raises(TrainingDivergedError, match="epoch 13, batch 6"):
            model.fit(CORPUS)
    for name, tensor in network_of(whole).counting.state_dict().items():
        torch.testing.assert_close(network_of(model).counting.state_dict()[name], tensor, atol=0, rtol=0)
    np.testing.assert_array_equal(model.transform(CORPUS), whole.transform(CORPUS))


def test_a_fitted_model_keeps_no_counts_of_the_training_documents(fitted):
    counting = network_of(fitted).counting
    assert counting.document_topics is None
    assert counting.current_pass is None
    assert not any(len(tensor) == len(COUNTS.indptr) - 1 for tensor in counting.state_dict().values() if tensor.ndim)


# Inference.


def test_without_refinement_theta_is_the_encoders(fitted):
    network = network_of(fitted)
    with torch.inference_mode():
        batch = sparse_batch(COUNTS, np.arange(400), torch.device("cpu"))
        theta = torch.softmax(network.logits(network.code(batch).mean), dim=1)
        sizes = torch.from_numpy(COUNTS.sum(axis=1))[:, None]
        alpha = network.counting.alpha
        alpha = alpha * (1 + PRIOR_TOKENS / (alpha.sum() * sizes))
        total = alpha.sum(1, keepdim=True)
        expected = (alpha / 2 + (total / 2 + sizes) * theta) / (total + sizes)
    np.testing.assert_allclose(fitted.transform(CORPUS, refine=0), expected, atol=1e-6)


def test_refinement_fits_held_out_words_better(fitted):
    """The setting does not change the topics, only theta of documents."""
    unseen = synthetic_lda(200, N_TOPICS, N_WORDS, 40, topics=TOPICS, random_state=1).corpus
    quick = small(refine=0).fit(CORPUS)
    np.testing.assert_array_equal(quick.components_, fitted.components_)
    assert not np.allclose(quick.transform(unseen), fitted.transform(unseen), atol=0.01)
    assert fitted.perplexity(unseen) < 0.99 * quick.perplexity(unseen)
    bounds = [model.perplexity(unseen, method="bound") for model in (quick, fitted)]
    assert bounds[0] == pytest.approx(bounds[1])  # it has its own posterior


def test_the_refinement_of_one_call_does_not_affect_others(fitted):
    usual = fitted.transform(CORPUS)
    quick = small(refine=0).fit(CORPUS)
    np.testing.assert_array_equal(fitted.transform(CORPUS, refine=0), quick.transform(CORPUS))
    np.testing.assert_array_equal(fitted.transform(CORPUS), usual)
    np.testing.assert_array_equal(fitted.transform(CORPUS, 10), usual)
    np.testing.assert_array_equal(quick.transform(CORPUS, refine=10), usual)
    with pytest.raises(ValueError, match="2D"):
        fitted.transform(np.ones(N_WORDS), refine=0)
    np.testing.assert_array_equal(fitted.transform(CORPUS), usual)


def test_threads_with_different_refinement_do_not_affect_each_other(fitted):
    steps = [None, 0, 1, 50] * 2
    expected = {each: fitted.transform(CORPUS, refine=each) for each in steps}
    assert np.abs(expected[0] - expected[50]).max() > 0.05
    with ThreadPoolExecutor(len(steps)) as pool:
        found = list(pool.map(lambda each: [fitted.transform(CORPUS, refine=each) for _ in range(5)], steps))
    for each, thetas in zip(steps, found, strict=True):
        for theta in thetas:
            np.testing.assert_allclose(theta, expected[each], atol=1e-6)


def test_inference_does_not_write_to_the_network(fitted, monkeypatch):
    """Not even for a moment: no attribute is set, and no tensor changes."""
    before = {name: tensor.clone() for name, tensor in network_of(fitted).state_dict().items()}

    own, set_attribute = set(map(id, network_of(fitted).modules())), torch.nn.Module.__setattr__

    def refused(module: torch.nn.Module, name: str, value: Any) -> None:
        assert id(module) not in own, f"{name} of {type(module).__name__} was set"
        set_attribute(module, name, value)

    monkeypatch.setattr(torch.nn.Module, "__setattr__", refused)
    fitted.transform(CORPUS, refine=3)
    fitted.perplexity(CORPUS)
    fitted.perplexity(CORPUS, method="bound")
    fitted.latent(CORPUS)
    for name, tensor in network_of(fitted).state_dict().items():
        assert torch.equal(tensor, before[name])


def test_the_main_topics_of_documents_are_found(fitted):
    theta = fitted.transform(CORPUS)
    found, _ = matched(TOPICS, fitted.components_)
    assert (theta[:, found].argmax(1) == THETA.argmax(1)).mean() > 0.93


def test_the_prior_is_the_one_that_counting_learned(fitted):
    alpha = network_of(fitted).counting.alpha
    np.testing.assert_allclose(network_of(fitted).prior_theta(), alpha / alpha.sum())


# Streams.


def streamed(model: Loom, counts: sparse.csr_array, size: int = 100) -> list[bool]:
    """Return whether counting had started before each chunk."""
    started = []
    for start in range(0, counts.shape[0], size):
        started.append(hasattr(model, "network_") and bool(network_of(model).counting.started))
        model.partial_fit(counts[start : start + size])
    return started


STREAM = synthetic_lda(3000, N_TOPICS, N_WORDS, 40, topics=TOPICS, random_state=2).corpus.counts


def test_a_stream_reaches_the_counting_stage(monkeypatch):
    monkeypatch.setattr(loom_model, "_PRETRAINING_STEPS_OF_STREAM", 100)
    model = small(batch_size=20, **AS_LDA)
    started = streamed(model, STREAM, 200)  # ten steps each
    assert started == [False] * 10 + [True] * 5
    counting, tokens = network_of(model).counting, STREAM.sum(axis=0)
    np.testing.assert_allclose(counting.tokens, tokens)
    np.testing.assert_allclose(counting.word_topics.sum(1), tokens, rtol=1e-4)  # with those of pretraining
    even = np.full((N_TOPICS, N_WORDS), 1 / N_WORDS)
    assert distances(model.components_).max() < min(0.1, 0.2 * distances(even).min())


def test_a_stream_with_the_usual_settings(monkeypatch):
    monkeypatch.setattr(loom_model, "_PRETRAINING_STEPS_OF_STREAM", 100)
    model = small(batch_size=20)
    streamed(model, STREAM, 200)
    counting = network_of(model).counting
    np.testing.assert_allclose(counting.tokens, STREAM.sum(axis=0))
    parts = (STREAM[start : start + 200] for start in range(2000, 3000, 200))
    later = sum((part.power(0.6).sum(axis=0) for part in parts), np.zeros(N_WORDS))
    np.testing.assert_allclose(counting.word_topics.sum(1), STREAM[:2000].sum(axis=0) + later, rtol=1e-4)
    assert finite(model, CORPUS)


def test_a_stream_continues_a_fitted_model_and_a_loaded_one(tmp_path):
    model = small(**AS_LDA).fit(CORPUS)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model", device="cpu")
    np.testing.assert_array_equal(loaded.components_, model.components_)
    np.testing.assert_array_equal(loaded.transform(CORPUS), model.transform(CORPUS))
    np.testing.assert_array_equal(loaded.transform(CORPUS, refine=0), model.transform(CORPUS, refine=0))
    before, alpha = distances(model.components_).max(), network_of(model).counting.alpha.clone()
    for each in (model, loaded):
        assert streamed(each, STREAM[:1000]) == [True] * 10
        tokens = COUNTS.sum(axis=0) + STREAM[:1000].sum(axis=0)
        np.testing.assert_allclose(network_of(each).counting.tokens, tokens)
        np.testing.assert_allclose(network_of(each).counting.word_topics.sum(1), tokens, rtol=1e-4)
        assert distances(each.components_).max() < max(before, 0.05)
        assert not torch.allclose(network_of(each).counting.alpha, alpha, rtol=0.01)


def test_fit_after_a_stream_starts_again(fitted):
    model = small().partial_fit(STREAM[:100])
    np.testing.assert_array_equal(model.fit(CORPUS).components_, fitted.components_)


# Corpora that are hard to learn from, and settings at their limits.


def test_validation_documents_are_not_counted():
    model = small(patience=30, validation_fraction=0.25, **AS_LDA).fit(CORPUS)
    counting = network_of(model).counting
    assert bool(counting.started)
    assert 0.6 * COUNTS.sum() < float(counting.tokens.sum()) < 0.9 * COUNTS.sum()
    losses = [row["validation_loss"] for row in model.history_]
    assert len(losses) == 20
    assert np.isfinite(losses).all()
    assert distances(model.components_).max() < 0.15


@pytest.mark.parametrize("settings", [{}, AS_LDA, {"background_topics": 0.5}], ids=str)
@pytest.mark.parametrize(
    ("counts", "n_topics"),
    [
        pytest.param(np.ones((50, 10)), 4, id="all equal"),
        pytest.param(np.eye(6), 3, id="a word each"),
        pytest.param(COUNTS[:3].toarray(), 10, id="more topics than documents"),
        pytest.param(np.array([[300, 1, 1]] * 20 + [[1, 1, 300]]), 2, id="one word"),
    ],
)
def test_hard_corpora_leave_finite_numbers(counts, n_topics, settings):
    model = small(n_topics, **settings).fit(counts)
    assert finite(model, counts)
    assert bool(network_of(model).counting.started)


@pytest.mark.parametrize(
    "settings",
    [
        AS_LDA,
        {"count_power": 0.01},
        {"sharpness": 20.0},
        {"sharpness": 0.1},
        {"eta": 1e-6},
        {"eta": 10.0},
        {"epochs": 1},
        {"epochs": 2},
        {"pretrain_share": 0.01},
        {"refine": 200},
        {"seed_words": {k: [CORPUS.vocabulary[k]] for k in range(N_TOPICS)}, "background_topics": 0.5},
    ],
    ids=str,
)
def test_settings_at_their_limits_are_accepted(settings):
    assert finite(small(**settings).fit(CORPUS), CORPUS)


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("count_power", 0.0, "greater than 0"),
        ("count_power", 1.5, "less than or equal to 1"),
        ("refine", -1, "greater than or equal to 0"),
        ("refine", 2.5, "a whole number"),
        ("pretrain_share", 0.0, "greater than 0"),
        ("pretrain_share", 1.0, "less than 1"),
        ("background_topics", 1.0, "less than 1"),
        ("background_topics", -0.1, "greater than or equal to 0"),
        ("sharpness", 0.0, "greater than 0"),
        ("eta", 0.0, "greater than or equal to 1e-06"),
    ],
)
def test_settings_beyond_their_limits_are_refused_in_one_sentence(name, value, wanted):
    with pytest.raises(SettingError, match=f"`{name}` of Loom should be {wanted}.*; it is {value}") as caught:
        small(**{name: value}).fit(CORPUS)
    assert "\n" not in str(caught.value)


def test_a_partial_fit_that_diverged_leaves_no_counts(monkeypatch):
    model = small().fit(CORPUS)
    before = network_of(model).counting.tokens.clone()
    with monkeypatch.context() as patch:
        spoil(patch, 2)
        with pytest.raises(TrainingDivergedError):
            model.partial_fit(STREAM[:200])
    model.partial_fit(STREAM[200:300])
    np.testing.assert_allclose(network_of(model).counting.tokens - before, STREAM[200:300].sum(axis=0), atol=1e-2)


def test_not_all_topics_are_background_topics():
    assert finite(small(background_topics=0.99).fit(CORPUS), CORPUS)


def test_patience_does_not_end_training_during_pretraining():
    assert bool(network_of(small(epochs=40, patience=2).fit(CORPUS)).counting.started)


@pytest.mark.parametrize("settings", [{"epochs": 1}, {"epochs": 3, "pretrain_share": 0.99}], ids=str)
def test_counting_that_started_has_made_a_pass(settings):
    model = small(**settings).fit(CORPUS)
    assert bool(network_of(model).counting.started) == ("concentration" in model.history_[-1])


def test_the_refinement_of_a_call_is_checked():
    model = small().fit(CORPUS)
    for refine in (-1, 1.5, True):
        with pytest.raises(SettingError, match="refine should be a whole number from 0"):
            model.transform(CORPUS, refine=refine)


def test_a_stream_gets_no_worse_where_counting_starts(monkeypatch):
    monkeypatch.setattr(loom_model, "_PRETRAINING_STEPS_OF_STREAM", 100)
    model, found = small(batch_size=20), []
    for start in range(0, 3000, 200):
        model.partial_fit(STREAM[start : start + 200])
        found.append(model.perplexity(CORPUS, "completion"))
    assert max(found[9:]) < 1.05 * found[8], [round(x, 1) for x in found]


def test_the_bound_is_that_of_mean_field(fitted):
    counting = network_of(fitted).counting
    alpha, beta = counting.alpha.double().numpy(), fitted.components_.astype(float)
    documents, total = CORPUS[:20], 0.0
    for x in documents.counts.toarray():
        gamma = alpha + x.sum() / len(alpha)
        for _ in range(1000):
            logs = digamma(gamma) - digamma(gamma.sum())  # (K,)
            weights = np.exp(logs)[:, None] * beta  # (K, V)
            gamma = alpha + (weights / weights.sum(0)) @ x
        logs = digamma(gamma) - digamma(gamma.sum())
        divergence = gammaln(gamma.sum()) - gammaln(gamma).sum() - gammaln(alpha.sum()) + gammaln(alpha).sum()
        total += x @ logsumexp(logs[:, None] + np.log(beta), axis=0) - divergence - (gamma - alpha) @ logs
    bound = fitted.perplexity(documents, method="bound")
    assert bound == pytest.approx(np.exp(-total / documents.n_tokens), rel=1e-3)
    batch = sparse_batch(documents.counts, np.arange(20), torch.device("cpu"))
    with torch.inference_mode():
        loss = float(network_of(fitted).loss(batch).without_extras().sum())
    assert bound < np.exp(loss / documents.n_tokens)
