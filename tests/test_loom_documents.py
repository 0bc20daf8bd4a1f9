"""Loom's counts of documents that are too many for an array: the largest of each document are kept."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import topicloom as tl
from batches import CPU
from topicloom import Callback
from topicloom.models.loom import collapsed
from topicloom.models.loom import model as loom_model
from topicloom.models.loom.collapsed import LargestCounts, from_tensors, select, tensors_of, zero_counts

PLANTED = tl.datasets.synthetic_lda(n_docs=300, n_topics=4, n_words=80, doc_length=60, random_state=0)


@pytest.fixture
def three_kept(monkeypatch):
    """Keep three counts of each document, in small corpora, too."""
    monkeypatch.setattr(collapsed, "MAX_DENSE_COUNTS", 0)
    monkeypatch.setattr(collapsed, "N_KEPT_COUNTS", 3)


def test_an_array_that_is_too_large_is_replaced(monkeypatch):
    assert isinstance(zero_counts(10, 4, CPU), torch.Tensor)
    monkeypatch.setattr(collapsed, "MAX_DENSE_COUNTS", 39)
    large = zero_counts(10, 4, CPU)
    assert isinstance(large, LargestCounts)
    assert (len(large), large.shape, large[torch.arange(10)].sum()) == (10, (10, 4), 0)


def test_the_largest_counts_and_the_others_mean_are_kept(three_kept):
    counts, rows = zero_counts(5, 6, CPU), torch.tensor([4, 1])
    counts[rows] = torch.tensor([[0.0, 4, 1, 3, 0, 0], [1.0, 2, 0, 6, 0, 3]])
    expected = torch.zeros(5, 6)
    expected[4, [1, 2, 3]] = torch.tensor([4.0, 1, 3])
    expected[1] = torch.tensor([1 / 3, 2, 1 / 3, 6, 1 / 3, 3])
    torch.testing.assert_close(counts[torch.arange(5)], expected, rtol=1e-3, atol=0)
    counts[rows[:1]] = torch.full((1, 6), 1e6)  # more than a 16-bit number can be
    assert counts[rows].isfinite().all()


def test_some_topics_are_selected_in_their_order(three_kept):
    counts, rows = zero_counts(4, 5, CPU), torch.arange(4)
    counts[rows] = torch.rand(4, 5, generator=torch.Generator().manual_seed(0))
    whole, which = counts[rows], torch.tensor([4, 0])
    torch.testing.assert_close(select(counts, which)[rows], whole[:, which])
    fewer = select(zero_counts(4, 5, CPU), which)
    fewer[rows] = whole[:, which]  # three places, and two topics
    torch.testing.assert_close(fewer[rows], whole[:, which], rtol=1e-3, atol=0)


def test_their_tensors_are_all_that_they_have(three_kept):
    counts, rows = zero_counts(4, 5, CPU), torch.arange(4)
    counts[rows] = torch.rand(4, 5)
    assert from_tensors(tensors_of(counts), 5)[rows].equal(counts[rows])
    assert from_tensors(tensors_of(whole := torch.rand(4, 5)), 5) is whole
    assert from_tensors(tensors_of(None), 5) is None


class Recorder(Callback):
    """Keeps the states after each batch of the last epochs."""

    def __init__(self) -> None:
        self.taken = []

    def on_step(self, state):
        if state.epoch > 2 and state.batch == 2:
            self.taken.append(state.snapshot())


def test_fits_with_the_largest_counts_find_topics_and_continue(three_kept, monkeypatch):
    monkeypatch.setattr(loom_model, "_COUNTING_BATCH", 1)
    settings = {"epochs": 10, "pretrain_share": 0.2, "sample_share": 0.6, "batch_size": 80, "random_state": 0}
    model, recorder = tl.Loom(4, **settings), Recorder()
    model.fit(PLANTED.corpus, callbacks=[recorder])
    counted = [each for each in recorder.taken if "run.document_counts" in each.tensors]
    assert 0 < len(counted) < len(recorder.taken)  # until the topics of tokens take their place
    assert all(each.tensors["run.document_counts"].shape == (300, 4) for each in counted)
    found = model.components_ @ PLANTED.topics.T / (PLANTED.topics**2).sum(1)
    assert sorted(found.argmax(1)) == [0, 1, 2, 3]
    for snapshot in recorder.taken[:: len(recorder.taken) - 1]:  # before and after topics are removed
        again = tl.Loom(4, **settings).fit(PLANTED.corpus, resume_from=snapshot)
        np.testing.assert_array_equal(again.components_, model.components_)
