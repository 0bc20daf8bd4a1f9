"""Loom from outside: its two parts, inference that may be refined, streams, and settings at their limits."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from topicloom.datasets import synthetic_lda
from topicloom.errors import SettingError, TrainingDivergedError
from topicloom.models import Loom
from topicloom.models.loom import cvb0 as collapsed
from topicloom.models.loom import model as module
from topicloom.models.loom.counting import _SETTLING, Weft
from topicloom.models.loom.model import LoomNetwork
from topicloom.models.persistence import load
from topicloom.nn.posteriors import DirichletPosterior
from topicloom.training.batches import sparse_batch

N_TOPICS, N_WORDS = 4, 60
CORPUS, TOPICS, THETA = synthetic_lda(n_docs=400, n_topics=N_TOPICS, n_words=N_WORDS, doc_length=40)
COUNTS = CORPUS.counts
AS_LDA = {"common": 0.0, "damping": 1.0, "sharpness": 1.0}


def small(n_topics: int = N_TOPICS, **settings: Any) -> Loom:
    return Loom(n_topics, **{"epochs": 20, "hidden_size": 16, "random_state": 1, "device": "cpu", **settings})


@pytest.fixture(scope="module")
def fitted() -> Loom:
    """Not to be changed."""
    return small().fit(CORPUS)


def network_of(model: Loom) -> LoomNetwork:
    assert isinstance(model.network_, LoomNetwork)
    return model.network_


def distances(components: np.ndarray) -> np.ndarray:
    """How far off each planted topic is, as total variation, in the best pairing."""
    distance = np.abs(TOPICS[:, None] - components[None]).sum(axis=2) / 2  # (K, K)
    return distance[linear_sum_assignment(distance)]


def finite(model: Loom, X: Any) -> bool:
    theta = model.transform(X)
    np.testing.assert_allclose(theta.sum(axis=1), 1, rtol=1e-4)
    np.testing.assert_allclose(model.components_.sum(axis=1), 1, rtol=1e-4)
    return bool(np.isfinite(model.components_).all() and np.isfinite(theta).all() and np.isfinite(model.perplexity(X)))


# Two parts.


def test_training_goes_from_warp_to_weft():
    """Documents of 40 words need fewer epochs of the warp than titles, which get all that `warp` says."""
    titles = small(epochs=12, warp=0.25).fit(synthetic_lda(400, N_TOPICS, N_WORDS, doc_length=8).corpus)
    assert ["amortisation" in row for row in titles.history_] == [False] * 3 + [True] * 9
    model = small(epochs=12, warp=0.25).fit(CORPUS)
    woven = ["amortisation" in row for row in model.history_]
    assert woven == [False] * 2 + [True] * 9
    assert ["concentration" in row for row in model.history_] == woven
    assert ["distinctness" in row for row in model.history_] == [not each for each in woven]
    assert model.history_[-1]["concentration"] == pytest.approx(float(network_of(model).weft.alpha.sum()))


def test_tokens_are_shared_out_by_what_is_compiled(monkeypatch):
    pytest.importorskip("numba")
    monkeypatch.setattr(collapsed, "reassign", None)  # what does the same, more slowly
    assert finite(small(epochs=12, spare=2.0).fit(CORPUS), CORPUS)


def test_the_weft_betters_the_topics_of_the_warp():
    model = small(**AS_LDA).fit(CORPUS)
    warp = network_of(model).decoder.topic_word().detach().numpy()  # no gradient reaches these in the weft
    assert distances(model.components_).max() < min(0.06, 0.75 * distances(warp).max())


def test_the_encoder_learns_what_the_counts_say(fitted):
    """Its mean was that of a Gaussian in the warp, which is far from theta of the counts."""
    quick, counted = fitted.transform(CORPUS, refine=0), fitted.transform(CORPUS, refine=100)
    assert (quick.argmax(1) == counted.argmax(1)).mean() > 0.93
    lessons = [row["amortisation"] for row in fitted.history_ if "amortisation" in row]
    assert 0 < min(lessons) <= lessons[-1] < 0.9 * max(lessons)


def test_alpha_is_learned_once_topics_have_settled():
    sizes = [row["concentration"] for row in small(spare=0.0).fit(CORPUS).history_ if "concentration" in row]
    assert len(set(sizes[:_SETTLING])) == 1
    assert len(set(sizes)) == len(sizes) - _SETTLING + 1


def test_a_seed_is_a_model(fitted):
    again = small().fit(CORPUS)
    np.testing.assert_array_equal(again.components_, fitted.components_)
    np.testing.assert_array_equal(again.transform(CORPUS), fitted.transform(CORPUS))
    np.testing.assert_array_equal(network_of(again).weft.alpha, network_of(fitted).weft.alpha)


def spoil(patch: pytest.MonkeyPatch, last_good: int) -> None:
    """Counts of documents are NaN after so many batches of the weft."""
    whole, woven = Weft.weave, [0]

    def weave(weft: Weft, *args: Any) -> DirichletPosterior:
        posterior = whole(weft, *args)
        woven[0] += 1
        return posterior if woven[0] <= last_good else dataclasses.replace(posterior, alpha=posterior.alpha * torch.nan)

    patch.setattr(Weft, "weave", weave)


def test_a_weft_that_diverged_keeps_its_last_whole_pass(monkeypatch, interrupted_after):
    model, whole = small(batch_size=50), small(batch_size=50)  # eight steps an epoch, one of which teaches
    with pytest.raises(KeyboardInterrupt):
        whole.fit(CORPUS, callbacks=[interrupted_after(12)])
    with monkeypatch.context() as patch:
        n_warp = sum("amortisation" not in row for row in whole.history_)
        spoil(patch, (12 - n_warp) * 8 + 5)
        with pytest.raises(TrainingDivergedError, match="epoch 13, batch 6"):
            model.fit(CORPUS)
    for name, tensor in network_of(whole).weft.state_dict().items():
        torch.testing.assert_close(network_of(model).weft.state_dict()[name], tensor, atol=0, rtol=0)
    np.testing.assert_array_equal(model.transform(CORPUS), whole.transform(CORPUS))


def test_nothing_of_the_training_documents_stays(fitted):
    weft = network_of(fitted).weft
    assert weft.local is None
    assert weft.tally is None
    assert not any(len(tensor) == len(COUNTS.indptr) - 1 for tensor in weft.state_dict().values() if tensor.ndim)


# Inference.


def test_no_refinement_is_what_the_encoder_says(fitted):
    network = network_of(fitted)
    with torch.inference_mode():
        batch = sparse_batch(COUNTS, np.arange(400), torch.device("cpu"))
        theta = torch.softmax(network.code(batch).mean, dim=1)
        alpha, sizes = network.weft.alpha, torch.from_numpy(COUNTS.sum(axis=1))[:, None]
        expected = (alpha / 2 + (alpha.sum() / 2 + sizes) * theta) / (alpha.sum() + sizes)
    np.testing.assert_allclose(fitted.transform(CORPUS, refine=0), expected, atol=1e-6)


def test_refined_steps_fit_held_out_words_better(fitted):
    """The setting has no part in what is learned, only in what is said of documents."""
    held = synthetic_lda(200, N_TOPICS, N_WORDS, 40, topics=TOPICS, random_state=1).corpus
    quick = small(refine=0).fit(CORPUS)
    np.testing.assert_array_equal(quick.components_, fitted.components_)
    assert not np.allclose(quick.transform(held), fitted.transform(held), atol=0.01)
    assert fitted.perplexity(held, method="completion") < 0.99 * quick.perplexity(held, method="completion")
    assert fitted.perplexity(held) < quick.perplexity(held)


def test_the_refinement_of_one_call_does_not_stay(fitted):
    usual = fitted.transform(CORPUS)
    quick = small(refine=0).fit(CORPUS)
    np.testing.assert_array_equal(fitted.transform(CORPUS, refine=0), quick.transform(CORPUS))
    np.testing.assert_array_equal(fitted.transform(CORPUS), usual)
    np.testing.assert_array_equal(fitted.transform(CORPUS, 5), usual)
    np.testing.assert_array_equal(quick.transform(CORPUS, refine=5), usual)
    with pytest.raises(ValueError, match="2D"):
        fitted.transform(np.ones(N_WORDS), refine=0)
    np.testing.assert_array_equal(fitted.transform(CORPUS), usual)


def test_a_document_is_told_by_its_topics(fitted):
    theta = fitted.transform(CORPUS)
    distance = np.abs(TOPICS[:, None] - fitted.components_[None]).sum(axis=2)
    _, found = linear_sum_assignment(distance)
    assert (theta[:, found].argmax(1) == THETA.argmax(1)).mean() > 0.93


def test_the_prior_is_what_the_weft_learned(fitted):
    alpha = network_of(fitted).weft.alpha
    np.testing.assert_allclose(network_of(fitted).prior_theta(), alpha / alpha.sum())


# Streams.


def streamed(model: Loom, counts: sparse.csr_array, size: int = 100) -> list[bool]:
    """Whether the weft had begun, before each chunk."""
    begun = []
    for start in range(0, counts.shape[0], size):
        begun.append(hasattr(model, "network_") and bool(network_of(model).weft.begun))
        model.partial_fit(counts[start : start + size])
    return begun


STREAM = synthetic_lda(3000, N_TOPICS, N_WORDS, 40, topics=TOPICS, random_state=2).corpus.counts


def test_a_stream_reaches_the_weft(monkeypatch):
    monkeypatch.setattr(module, "_STREAM_STEPS", 100)
    model = small(batch_size=20, **AS_LDA)
    begun = streamed(model, STREAM, 200)  # ten steps each
    assert begun == [False] * 10 + [True] * 5
    weft, tokens = network_of(model).weft, STREAM.sum(axis=0)
    np.testing.assert_allclose(weft.tokens, tokens)
    np.testing.assert_allclose(weft.word_topics.sum(1), tokens, rtol=1e-4)  # with the warp's, shared out by its topics
    even = np.full((N_TOPICS, N_WORDS), 1 / N_WORDS)
    assert distances(model.components_).max() < min(0.1, 0.2 * distances(even).min())


def test_a_stream_with_the_usual_settings(monkeypatch):
    monkeypatch.setattr(module, "_STREAM_STEPS", 100)
    model = small(batch_size=20)
    streamed(model, STREAM, 200)
    weft = network_of(model).weft
    np.testing.assert_allclose(weft.tokens, STREAM.sum(axis=0))
    later = sum((STREAM[start : start + 200].sqrt().sum(axis=0) for start in range(2000, 3000, 200)), np.zeros(N_WORDS))
    np.testing.assert_allclose(weft.word_topics.sum(1), STREAM[:2000].sum(axis=0) + later, rtol=1e-4)  # damped
    assert finite(model, CORPUS)


def test_a_stream_goes_on_after_a_fit_and_after_a_file(tmp_path):
    model = small(**AS_LDA).fit(CORPUS)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model", device="cpu")
    np.testing.assert_array_equal(loaded.components_, model.components_)
    np.testing.assert_array_equal(loaded.transform(CORPUS), model.transform(CORPUS))
    np.testing.assert_array_equal(loaded.transform(CORPUS, refine=0), model.transform(CORPUS, refine=0))
    before, alpha = distances(model.components_).max(), network_of(model).weft.alpha.clone()
    for each in (model, loaded):
        assert streamed(each, STREAM[:1000]) == [True] * 10
        tokens = COUNTS.sum(axis=0) + STREAM[:1000].sum(axis=0)
        np.testing.assert_allclose(network_of(each).weft.tokens, tokens)
        np.testing.assert_allclose(network_of(each).weft.word_topics.sum(1), tokens, rtol=1e-4)
        assert distances(each.components_).max() < max(before, 0.05)
        assert not torch.allclose(network_of(each).weft.alpha, alpha, rtol=0.01)


def test_fit_after_a_stream_begins_anew(fitted):
    model = small().partial_fit(STREAM[:100])
    np.testing.assert_array_equal(model.fit(CORPUS).components_, fitted.components_)


# Corpora that are hard to learn from, and settings at their limits.


def test_documents_set_apart_by_patience_are_not_counted():
    model = small(patience=30, validation_fraction=0.25, **AS_LDA).fit(CORPUS)
    weft = network_of(model).weft
    assert bool(weft.begun)
    assert 0.6 * COUNTS.sum() < float(weft.tokens.sum()) < 0.9 * COUNTS.sum()
    losses = [row["validation_loss"] for row in model.history_]
    assert len(losses) == 17  # seven of the warp
    assert np.isfinite(losses).all()
    assert distances(model.components_).max() < 0.15


@pytest.mark.parametrize("settings", [{}, AS_LDA, {"common": 0.5}], ids=str)
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
    assert bool(network_of(model).weft.begun)


@pytest.mark.parametrize(
    "settings",
    [
        AS_LDA,
        {"damping": 0.01},
        {"sharpness": 20.0},
        {"sharpness": 0.1},
        {"eta": 1e-6},
        {"eta": 10.0},
        {"epochs": 1},
        {"epochs": 2},
        {"warp": 0.01},
        {"refine": 200},
        {"seed_words": {k: [CORPUS.vocabulary[k]] for k in range(N_TOPICS)}, "common": 0.5},
    ],
    ids=str,
)
def test_settings_at_their_limits_are_accepted(settings):
    assert finite(small(**settings).fit(CORPUS), CORPUS)


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("damping", 0.0, "greater than 0"),
        ("damping", 1.5, "less than or equal to 1"),
        ("refine", -1, "greater than or equal to 0"),
        ("refine", 2.5, "a valid integer"),
        ("warp", 0.0, "greater than 0"),
        ("warp", 1.0, "less than 1"),
        ("common", 1.0, "less than 1"),
        ("common", -0.1, "greater than or equal to 0"),
        ("sharpness", 0.0, "greater than 0"),
        ("eta", 0.0, "greater than or equal to 0.000001"),
    ],
)
def test_settings_beyond_them_are_refused_in_a_sentence(name, value, wanted):
    with pytest.raises(SettingError, match=f"`{name}` of Loom should be {wanted}.*; it is {value}") as caught:
        small(**{name: value}).fit(CORPUS)
    assert "\n" not in str(caught.value)


def test_a_partial_fit_that_diverged_leaves_no_counts(monkeypatch):
    model = small().fit(CORPUS)
    before = network_of(model).weft.tokens.clone()
    with monkeypatch.context() as patch:
        spoil(patch, 2)
        with pytest.raises(TrainingDivergedError):
            model.partial_fit(STREAM[:200])
    model.partial_fit(STREAM[200:300])
    np.testing.assert_allclose(network_of(model).weft.tokens - before, STREAM[200:300].sum(axis=0), atol=1e-2)


def test_some_topics_are_never_common():
    assert finite(small(common=0.99).fit(CORPUS), CORPUS)


def test_patience_does_not_end_training_in_the_warp():
    assert bool(network_of(small(epochs=40, patience=2).fit(CORPUS)).weft.begun)


@pytest.mark.parametrize("settings", [{"epochs": 1}, {"epochs": 3, "warp": 0.99}], ids=str)
def test_a_weft_that_began_has_had_a_pass(settings):
    model = small(**settings).fit(CORPUS)
    assert bool(network_of(model).weft.begun) == ("concentration" in model.history_[-1])


def test_the_refinement_of_a_call_is_checked():
    model = small().fit(CORPUS)
    for refine in (-1, 1.5, True):
        with pytest.raises(SettingError, match="refine should be a whole number from 0"):
            model.transform(CORPUS, refine=refine)


def test_a_stream_is_not_spoilt_where_the_weft_begins(monkeypatch):
    monkeypatch.setattr(module, "_STREAM_STEPS", 100)
    model, said = small(batch_size=20), []
    for start in range(0, 3000, 200):
        model.partial_fit(STREAM[start : start + 200])
        said.append(model.perplexity(CORPUS, "completion"))
    assert max(said[9:]) < 1.05 * said[8], [round(x, 1) for x in said]
