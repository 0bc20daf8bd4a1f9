"""Corpora that are larger than the memory: memory-mapped counts, and reading by blocks."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from scipy import sparse

import topicloom as tl
from batches import CPU, seeded
from topicloom import Callback
from topicloom.metrics import Reference
from topicloom.text.strings import pieces, release
from topicloom.training.batches import BatchReader, draw_order
from topicloom.training.state import Snapshot

CORPUS = tl.datasets.synthetic_lda(n_docs=400, n_topics=4, n_words=60, doc_length=30, random_state=0).corpus


@pytest.fixture
def by_blocks(monkeypatch):
    """Read small corpora by blocks, too: about 20 documents in a block, and 4 blocks at a time."""
    monkeypatch.setattr("topicloom.training.batches.LARGE", 0)
    monkeypatch.setattr("topicloom.training.batches.BLOCK", CORPUS.counts.nnz // 20)
    monkeypatch.setattr("topicloom.training.batches.BUFFER", CORPUS.counts.nnz // 5 + 1)


def test_a_small_corpus_is_read_in_any_order():
    drawn = BatchReader.of(CORPUS, 50, CPU).draw_order(seeded())
    assert drawn.equal(torch.randperm(400, generator=seeded()))


def test_a_large_corpus_is_read_by_blocks(by_blocks):
    reader = BatchReader.of(CORPUS, 50, CPU)
    drawn = reader.draw_order(seeded())
    assert drawn.sort()[0].equal(torch.arange(400))
    assert drawn.equal(reader.draw_order(seeded()))
    assert not drawn.equal(reader.draw_order(seeded(1)))
    parts = drawn.view(5, 80)  # as many documents as the buffer has
    blocks = [set((part // 20).tolist()) for part in parts]
    assert [len(each) for each in blocks] == [4] * 5
    assert set().union(*blocks) == set(range(20))
    inside = parts[0] // 20  # the blocks of the documents that are read together
    assert (inside.diff() != 0).float().mean() > 0.5


@pytest.mark.parametrize("n_docs", [1, 2, 19, 399])
def test_every_document_is_read_once(by_blocks, n_docs):
    for non_zeros in (n_docs, 100, 10_000, 10**7):
        assert draw_order(n_docs, non_zeros, seeded()).sort()[0].equal(torch.arange(n_docs))


class Recorder(Callback):
    """Keeps a state in the middle of an epoch."""

    taken: Snapshot

    def __init__(self, step: int) -> None:
        self.step, self.seen = step, 0

    def on_step(self, state):
        self.seen += 1
        if self.seen == self.step:
            self.taken = state.snapshot()


def test_a_fit_by_blocks_resumes_in_the_middle_of_epochs(by_blocks):
    settings = {"n_topics": 3, "epochs": 3, "batch_size": 64, "hidden_size": 8, "spare_topics": 0, "random_state": 0}
    recorder = Recorder(step=10)  # seven batches in an epoch
    whole = tl.GSM(**settings).fit(CORPUS, callbacks=[recorder])
    again = tl.GSM(**settings).fit(CORPUS, resume_from=recorder.taken)
    np.testing.assert_array_equal(again.components_, whole.components_)


def test_counting_in_pieces_changes_nothing(monkeypatch):
    whole = tl.Corpus.from_counts(CORPUS.counts)
    monkeypatch.setattr("topicloom.text.strings._AT_ONCE", 100)
    parts = tl.Corpus.from_counts(CORPUS.counts)
    dense = CORPUS.counts.toarray()
    assert parts.is_whole
    assert parts.n_tokens == dense.sum()
    assert parts.counts_digest == whole.counts_digest
    np.testing.assert_array_equal(parts.word_counts, dense.sum(0))
    np.testing.assert_array_equal(parts.document_counts, (dense > 0).sum(0))
    assert not tl.Corpus.from_counts(CORPUS.counts * 0.5, fractional=True).is_whole


@pytest.mark.parametrize("n_words", [3, 60])
def test_some_documents_are_a_reference_without_a_copy(n_words):
    rows, read = np.array([0, 3, 4, 17, 399]), []
    group = [np.arange(n_words)]
    found = Reference.from_counts(CORPUS.counts, rows=rows, after_piece=lambda: read.append(1))
    expected = Reference.from_counts(CORPUS.counts[rows]).joint(group, None)
    np.testing.assert_array_equal(found.joint(group, None), expected)
    assert (found.n_documents, found.n_tokens, len(read)) == (5, CORPUS.counts[rows].nnz, 2)


def test_words_that_occur_very_often_are_counted_exactly():
    """Sums of 32-bit numbers end at 2^24."""
    corpus = tl.Corpus.from_counts(sparse.csr_array(np.array([[2**24, 1], [1, 0], [1, 0], [1, 1]], np.float32)))
    assert corpus.word_counts.tolist() == [2**24 + 3, 2]


def test_memory_is_released_of_files_alone(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(10_000))
    for mode in ("r", "c", "r+", None):
        array = np.load(tmp_path / "a.npy", mmap_mode=mode)
        if mode == "c":
            array[5] = 7
        release(array, np.asarray(array)[2:])
        assert array[5] == (7 if mode == "c" else 5)
        assert sum(map(len, pieces(array))) == 10_000


def test_a_stream_keeps_the_last_rows_of_its_history(monkeypatch, tmp_path):
    monkeypatch.setattr("topicloom.models.neural._STREAM_ROWS", 3)
    model = tl.GSM(2, hidden_size=4, random_state=0)
    for start in range(0, 50, 10):
        model.partial_fit(CORPUS[start : start + 10])
    assert [row["epoch"] for row in model.history_] == [3, 4, 5]
    model.save(tmp_path / "model")
    loaded = tl.load(tmp_path / "model").partial_fit(CORPUS[50:60])
    assert [row["epoch"] for row in loaded.history_] == [4, 5, 6]


def test_consecutive_documents_of_a_mapped_corpus_stay_on_disk(tmp_path):
    CORPUS.save(tmp_path / "corpus")
    mapped = tl.Corpus.load(tmp_path / "corpus")
    for rows in (slice(100, 200), slice(399, None), slice(0, 0), slice(0, 9, 2), [5, 4], np.arange(400) > 396):
        part, expected = mapped[rows], CORPUS[rows]
        assert (part.counts != expected.counts).nnz == 0
        assert part.counts_digest == expected.counts_digest
    assert np.shares_memory(mapped[100:200].counts.data, mapped.counts.data)
    assert not np.shares_memory(CORPUS[100:200].counts.data, CORPUS.counts.data)
    assert mapped[100:200][50:].ids == CORPUS.ids[150:200]


LIMITED = """
import re, resource, sys
import numpy as np
import topicloom as tl
from topicloom.training import batches

def kib(name):
    return int(re.search(name + r":\\s+(\\d+)", open("/proc/self/status").read())[1])

def limit(mib):
    resource.setrlimit(resource.RLIMIT_DATA, ((kib("VmData") + mib * 1024) * 1024,) * 2)

batches.LARGE, batches.BUFFER = 1 << 20, 1 << 20
whole = tl.Corpus.load(sys.argv[1])
settings = dict(n_topics=5, hidden_size=16, epochs=1, batch_size=500, random_state=0)
tl.GSM(**settings).fit(whole[:1000])  # whatever training loads and compiles is loaded before the limit
before = kib("RssFile")
limit(80)
try:
    tl.Corpus.load(sys.argv[1], mmap=False)
except Exception:
    model = tl.GSM(**settings).fit(whole)
    print(model.history_[0]["loss"], (kib("RssFile") - before) / 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory and /proc are those of Linux")
def test_training_needs_less_memory_than_the_counts_have(tmp_path):
    """The counts have 92 MiB, and the process may have 80 MiB more of its own."""
    n_docs, length, n_words = 60_000, 200, 1000
    random = np.random.default_rng(0)
    steps = random.integers(1, 2 * n_words // length - 4, (n_docs, length), np.int32)
    indices = np.cumsum(steps, axis=1, dtype=np.int32) - 1  # ascending, without repeats
    assert indices.max() < n_words
    arrays = np.ones(indices.size, np.float32), indices.ravel(), np.arange(0, indices.size + 1, length, np.int32)
    words = [f"word{number}" for number in range(n_words)]
    fields = tl.corpus.fields.Fields.of(n_docs)
    tl.Corpus(sparse.csr_array(arrays, shape=(n_docs, n_words)), words, fields).save(tmp_path / "corpus")

    command = [sys.executable, "-c", LIMITED, str(tmp_path / "corpus")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loss, mapped = map(float, done.stdout.split())  # nothing is printed if the counts fit in memory as a whole
    assert np.isfinite(loss)
    assert mapped < 24  # MiB, of the 92 that have been read
