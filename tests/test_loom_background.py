"""What all documents have of a background topic is divided among all topics; otherwise background topics stay."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from safetensors.torch import load_file, save_file

from batches import CPU, dense_of
from planted import found_shares
from topicloom.corpus import Corpus
from topicloom.datasets import synthetic_lda
from topicloom.models import Loom
from topicloom.models.loom import collapsed
from topicloom.models.loom.collapsed import BackgroundDivision
from topicloom.models.loom.model import LoomNetwork
from topicloom.training.batches import BatchReader
from topicloom.training.callbacks import Callback
from topicloom.training.state import Snapshot, TrainingState

N_WORDS, N_TOPICS = 400, 12
SETTINGS = {"n_topics": N_TOPICS, "epochs": 150, "hidden_size": 32, "random_state": 1, "device": "cpu"}


def drawn(common: float, n_docs: int = 300, length: int = 200) -> tuple[Corpus, np.ndarray, np.ndarray]:
    """Return documents, topics that have a share of common words, and theta, whose mean differs between topics."""
    random = np.random.default_rng(0)
    zipf = 1 / np.arange(1, N_WORDS + 1)
    topics = (1 - common) * random.dirichlet(np.full(N_WORDS, 0.05), N_TOPICS) + common * zipf / zipf.sum()
    shares = np.linspace(1, 5, N_TOPICS) / np.linspace(1, 5, N_TOPICS).sum()
    theta = random.dirichlet(shares, n_docs)
    counts = np.stack([random.multinomial(length, row / row.sum()) for row in theta @ topics])
    return Corpus.from_counts(sp.csr_array(counts), [f"w{number}" for number in range(N_WORDS)]), topics, theta


COMMON, TOPICS, THETA = drawn(0.3)


@pytest.fixture(scope="module")
def divided() -> Loom:
    return Loom(**SETTINGS).fit(COMMON)


@pytest.fixture(scope="module")
def undivided() -> Loom:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(BackgroundDivision, "divide", lambda self: None)
        return Loom(**SETTINGS).fit(COMMON)


def test_words_common_to_all_topics_form_no_topic(divided, undivided):
    shares, distance = found_shares(TOPICS, divided, COMMON)
    other_shares, other_distance = found_shares(TOPICS, undivided, COMMON)
    planted = THETA.mean(0)
    assert np.corrcoef(shares, planted)[0, 1] > 0.95 > np.corrcoef(other_shares, planted)[0, 1]
    assert distance.mean() < other_distance.mean() - 0.01


def test_words_are_predicted_about_as_well(divided, undivided):
    corpus, _, _ = drawn(0.3, n_docs=600)
    new = corpus[300:]
    assert divided.perplexity(new) < 1.005 * undivided.perplexity(new)


def test_the_encoder_alone_has_less_of_the_background_topic_too(divided, undivided):
    """With no refinement, theta is the encoder's."""
    which = divided.network_.counting.background.numpy()
    before, after = (model.transform(COMMON, refine=0).mean(0)[which].sum() for model in (undivided, divided))
    assert after < before * 2 / 3


def test_a_background_topic_stays_if_documents_differ_in_it(monkeypatch):
    """Half of the documents have the common words; their topic says something about them."""
    random = np.random.default_rng(1)
    zipf = 1 / np.arange(1, N_WORDS + 1)
    topics = np.vstack([random.dirichlet(np.full(N_WORDS, 0.05), N_TOPICS - 1), zipf / zipf.sum()])
    theta = random.dirichlet(np.full(N_TOPICS - 1, 0.2), 300) * 0.6
    share = np.where(np.arange(300) % 2, 0.4, 0.0)[:, None]
    counts = np.stack([random.multinomial(100, r / r.sum()) for r in np.hstack([theta, share]) @ topics])
    corpus = Corpus.from_counts(sp.csr_array(counts), [f"w{number}" for number in range(N_WORDS)])
    found, own = [], BackgroundDivision._common_share
    monkeypatch.setattr(BackgroundDivision, "_common_share", lambda self: found.append(own(self)) or found[-1])
    model = Loom(**SETTINGS).fit(corpus)
    assert len(found) == 1
    assert model.network_.counting.background.sum() == 1
    assert not found[0].any()


def test_word_probabilities_stay_where_documents_have_the_share(divided):
    network = divided.network_
    assert isinstance(network, LoomNetwork)
    share = torch.zeros(N_TOPICS)
    share[3] = 0.2
    reader = BatchReader.of(COMMON, 64, CPU)
    with torch.inference_mode():
        topics = network.background_division(reader.sample(20))
        beta_t, alpha = topics._divided(share)
    theta = torch.softmax(torch.randn(5, N_TOPICS, generator=torch.Generator().manual_seed(0)), 1)
    whole = 0.8 * theta + share
    torch.testing.assert_close(beta_t @ theta.mT, network.counting.topics() @ whole.mT)
    torch.testing.assert_close(beta_t.sum(0), torch.ones(N_TOPICS))
    assert alpha[3] == pytest.approx(max(float(network.counting.alpha[3] - 0.2 * network.counting.alpha.sum()), 1e-3))


def test_the_commonest_word_is_given_in_half_the_documents(divided):
    """It is the first word of the vocabulary, and would always be given if the words of a document took turns."""
    batch = BatchReader.of(COMMON, 64, CPU).sample(300)
    with torch.inference_mode():
        given = divided.network_.background_division(batch).given
    has_word, is_given = (dense_of(counts)[:, 0] > 0 for counts in (batch.counts, given))
    assert has_word.sum() > 250
    assert 0.35 < is_given.sum() / has_word.sum() < 0.65


def test_a_second_call_changes_nothing(divided):
    reader = BatchReader.of(COMMON, 64, CPU)
    again = Loom(**SETTINGS).fit(COMMON, callbacks=[Twice(reader)])
    np.testing.assert_array_equal(again.components_, divided.components_)
    np.testing.assert_array_equal(again.transform(COMMON), divided.transform(COMMON))


class Twice(Callback):
    """Calls `end_training` again after the last epoch."""

    def __init__(self, reader: BatchReader) -> None:
        self.reader, self.planned = reader, 0

    def on_start(self, model, n_epochs: int, n_batches: int) -> None:
        self.planned = n_epochs

    def on_state(self, state: TrainingState) -> None:
        if state.epoch == self.planned:
            with torch.inference_mode():
                state.network.end_training(self.reader)


class Snapshots(Callback):
    def __init__(self) -> None:
        self.last: list[Snapshot] = []

    def on_state(self, state: TrainingState) -> None:
        self.last = [*self.last[-1:], state.snapshot()]


def test_resuming_before_or_after_the_background_changes_no_topics(tmp_path: Path, divided):
    recorder = Snapshots()
    whole = Loom(**SETTINGS).fit(COMMON, callbacks=[recorder])
    np.testing.assert_array_equal(whole.components_, divided.components_)
    for snapshot in recorder.last:
        save_file(snapshot.tensors, tmp_path / "state.safetensors")
        values = json.loads(json.dumps(snapshot.values))
        model = Loom(**SETTINGS)
        stored = Snapshot(load_file(tmp_path / "state.safetensors"), values)
        model.fit_corpus(model._begin(COMMON, None), snapshot=stored)
        np.testing.assert_array_equal(model.components_, whole.components_)
        np.testing.assert_array_equal(model.transform(COMMON), whole.transform(COMMON))


def test_a_stream_goes_on_after_division():
    """Without spare topics, the network is the one that was trained, and the stream changes its counts in place."""
    model = Loom(**SETTINGS | {"random_state": 2}, spare_topics=0).fit(COMMON)
    network = model.network_
    assert model.transform(COMMON)[:, network.counting.background].mean() < 0.1  # it was divided
    assert not any(buffer.is_inference() for buffer in network.buffers())
    model.partial_fit(COMMON)


def test_higher_shares_are_tried_only_while_predictions_improve(monkeypatch):
    rises, tried = iter([0.0, 1.0, 1.1, 9.0]), []  # of each document
    topics = BackgroundDivision.__new__(BackgroundDivision)
    topics.theta = torch.linspace(0.1, 0.5, 101)[:, None].expand(101, 2)
    topics.counting = type("Counting", (), {"background": torch.tensor([False, True])})()
    noise = torch.randn(101, generator=torch.Generator().manual_seed(0))

    def log_likelihood(self: BackgroundDivision, share: torch.Tensor) -> torch.Tensor:
        tried.append(share)
        return next(rises) + 5 * noise * len(tried)

    monkeypatch.setattr(BackgroundDivision, "_log_likelihood", log_likelihood)
    best = topics._common_share()
    assert best.tolist() == pytest.approx([0.0, 0.1 + 0.4 * collapsed._QUANTILES[0]])
    assert len(tried) == 3


def test_without_background_topics_nothing_is_computed(monkeypatch):
    def fail(self, *_, **__):
        raise AssertionError("there are no background topics")

    monkeypatch.setattr(BackgroundDivision, "__init__", fail)
    corpus = synthetic_lda(200, 5, 100, 30, random_state=0).corpus
    Loom(5, epochs=30, hidden_size=16, random_state=0, device="cpu").fit(corpus)
