"""Batches of documents: read by blocks from corpora larger than memory, with the fields that a network asks for."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import Tensor

import topicloom as tl
from batches import CPU, dense_of, seeded, sparse_batch
from topicloom import Callback, Corpus, NeuralTopicModel
from topicloom.errors import InputError
from topicloom.experiments.jobs import require_same_documents, split_documents
from topicloom.metrics import Reference
from topicloom.models.words import Words
from topicloom.nn.decoders import FreeTopics, MixtureDecoder
from topicloom.nn.layers import linear
from topicloom.nn.network import AutoencoderNetwork, Loss
from topicloom.nn.posteriors import PointPosterior
from topicloom.nn.sparse import Batch
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


# Fields of the documents reach the network that asks for them, in training and in inference, row by row.

N_DOCS = 90
RANDOM = np.random.default_rng(0)
GROUP = RANDOM.integers(0, 3, N_DOCS)  # what a document is about, which only its vector says
VECTORS = np.eye(3, dtype=np.float32)[GROUP]
COUNTS = RANDOM.poisson(0.2 + 5 * np.kron(np.eye(3), np.ones((1, 4)))[GROUP])
COUNTS[:, 0] += 1  # no document is empty


class VectorNetwork(AutoencoderNetwork):
    """theta = softmax(A v), v being the document's vector: the words are not read at all."""

    fields = ("vectors", "source")

    def __init__(self, settings: VectorTM, words: Words, generator: torch.Generator) -> None:
        topics = FreeTopics(settings.background_logits(words), settings.n_topics, generator)
        encoder = settings.build_encoder(words, generator)
        super().__init__(MixtureDecoder(topics), encoder, settings.build_separation_term(words))
        self.head = linear(words.field_size("vectors"), settings.n_topics, generator)
        self.n_sources = words.field_size("source")
        self.seen: list[Batch] = []

    def posterior(self, batch: Batch) -> PointPosterior:
        self.seen.append(batch)
        return PointPosterior(torch.softmax(self.head(batch.fields["vectors"]), dim=1))

    def loss(self, batch: Batch) -> Loss:
        theta = self.posterior(batch).point()  # (B, K)
        return Loss(-self.decoder.log_likelihood(theta, batch.counts), torch.zeros(batch.n_docs))

    def prior_theta(self) -> Tensor:
        return torch.full((self.head.out_features,), 1 / self.head.out_features)


@dataclass(eq=False, repr=False, kw_only=True)
class VectorTM(NeuralTopicModel):
    """Topics from document vectors."""

    def build_network(self, words: Words, generator: torch.Generator) -> VectorNetwork:
        return VectorNetwork(self, words, generator)


def corpus(**fields: object) -> Corpus:
    return Corpus.from_counts(COUNTS, **fields)


def test_a_network_reads_the_fields_that_it_names():
    source = ["web", "print"] * 45
    whole = corpus(vectors=VECTORS, covariates={"source": source})
    model = VectorTM(n_topics=3, epochs=30, batch_size=30, random_state=0).fit(whole)
    for batch in model.network_.seen:
        rows = batch.rows.numpy()
        np.testing.assert_array_equal(batch.fields["vectors"].numpy(), VECTORS[rows])
        assert [("print", "web")[code] for code in batch.fields["source"].tolist()] == [source[row] for row in rows]
    theta = model.transform(whole)
    assert [len(set(theta[group == GROUP].argmax(1))) for group in range(3)] == [1, 1, 1]
    np.testing.assert_array_equal(model.transform(whole[[5, 2]]), theta[[5, 2]])


def test_networks_read_half_precision_as_float32():
    whole = corpus(vectors=VECTORS.astype(np.float16))
    (batch,) = BatchReader.of(whole, N_DOCS, torch.device("cpu"), ["vectors"])
    assert batch.fields["vectors"].dtype == torch.float32
    np.testing.assert_array_equal(batch.fields["vectors"].numpy(), VECTORS.astype(np.float16).astype(np.float32))


@pytest.mark.parametrize("fields", [{}, {"vectors": VECTORS}, {"covariates": {"source": ["x"] * N_DOCS}}])
def test_documents_without_such_a_field_are_refused(fields):
    with pytest.raises(InputError, match=r"reads the field '(vectors|source)'"):
        VectorTM(n_topics=3, epochs=1).fit(corpus(**fields))


@pytest.fixture(scope="module")
def fitted() -> VectorTM:
    covariates = {"source": ["web", "print", "radio"] * 30}
    return VectorTM(n_topics=3, epochs=30, batch_size=30, random_state=0).fit(
        corpus(vectors=VECTORS, covariates=covariates)
    )


def codes_in(model: VectorTM, documents: Corpus) -> list[int]:
    """Return the codes of the sources that the network reads in inference."""
    model.network_.seen.clear()
    model.transform(documents)
    return torch.cat([batch.fields["source"] for batch in model.network_.seen]).tolist()


def test_new_documents_have_the_codes_of_the_training_documents(fitted, caplog, tmp_path):
    assert fitted.network_.n_sources == 3
    new = corpus(vectors=VECTORS, covariates={"source": ["web", "radio", None] * 30})  # "print" does not occur
    fitted.save(tmp_path / "model")
    for model in (fitted, tl.load(tmp_path / "model", allow=[__name__])):
        assert codes_in(model, new) == [2, 1, -1] * 30
    assert codes_in(fitted, new[[1, 2]]) == [1, -1]
    assert codes_in(fitted, corpus(vectors=VECTORS, covariates={"source": [None] * N_DOCS})) == [-1] * N_DOCS
    assert not caplog.messages
    assert codes_in(fitted, corpus(vectors=VECTORS, covariates={"source": ["blog", "web"] * 45})) == [-1, 2] * 45
    message = (
        "the covariate 'source' has values that no training document has, which the model takes as unknown: 'blog'"
    )
    assert caplog.messages == [message]


def test_validation_has_the_codes_of_the_training_documents():
    whole = corpus(vectors=VECTORS, covariates={"source": ["print", "web"] * 45})
    model = VectorTM(n_topics=3, epochs=1, random_state=0)
    model.fit(whole, validation=corpus(vectors=VECTORS, covariates={"source": ["web"] * N_DOCS}))
    codes = [batch.fields["source"].tolist() for batch in model.network_.seen if not model.network_.training]
    assert sum(len(part) for part in codes if 0 not in part) == N_DOCS


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"vectors": VECTORS[:, :2], "covariates": {"source": ["web"] * N_DOCS}},
            "have 2 numbers, and those of the tr",
        ),
        ({"vectors": VECTORS, "covariates": {"source": [1.5] * N_DOCS}}, "'source' has numbers, but categories in the"),
    ],
)
def test_documents_with_fields_of_another_kind_are_refused(fitted, fields, message):
    with pytest.raises(InputError, match=message):
        fitted.transform(corpus(**fields))


def test_categories_in_place_of_numbers_are_refused():
    model = VectorTM(n_topics=3, epochs=1).fit(corpus(vectors=VECTORS, covariates={"source": [1.5] * N_DOCS}))
    assert model.network_.n_sources == 1
    with pytest.raises(InputError, match="'source' has categories, but numbers in the training documents"):
        model.transform(corpus(vectors=VECTORS, covariates={"source": ["web"] * N_DOCS}))


@pytest.mark.parametrize("needs_words", [True, False])
def test_a_network_can_infer_documents_without_words(fitted, needs_words, monkeypatch):
    monkeypatch.setattr(fitted.network_, "needs_words", needs_words)
    covariates = {"source": ["web", "print", "radio"] * 30}
    whole = corpus(vectors=VECTORS, covariates=covariates)
    theta = fitted.transform(whole)
    found = fitted.infer(Corpus.from_counts(0 * COUNTS, vectors=VECTORS, covariates=covariates))
    expected = np.full_like(theta, 1 / 3) if needs_words else theta
    np.testing.assert_allclose(found.theta, expected, rtol=1e-6)
    assert found.empty.all() == needs_words == found.empty.any()
    merged = fitted.merge([0, 1]).infer(Corpus.from_counts(0 * COUNTS, vectors=VECTORS, covariates=covariates))
    np.testing.assert_allclose(merged.theta[:, 0], expected[:, :2].sum(1), rtol=1e-5)


def test_readers_keep_fields_through_splits_and_samples():
    whole = corpus(vectors=VECTORS)
    reader = BatchReader.of(whole, 20, torch.device("cpu"), ["vectors"]).without_empty()
    kept, validation = reader.split(0.2, torch.Generator().manual_seed(0))
    for part in (kept, validation):
        for batch in [*part, *part.chunks(), part.sample(5)]:
            np.testing.assert_array_equal(batch.fields["vectors"].numpy(), VECTORS[batch.rows.numpy()])


@pytest.mark.parametrize("rows", [[], [3], [2, 3, 4, 5], [5, 4, 3], [2, 4], [0, 0]])
def test_a_batch_is_a_copy_of_its_documents(rows):
    counts = sparse.csr_array(COUNTS.astype(np.float32))
    batch = sparse_batch(counts, np.array(rows, np.intp), torch.device("cpu"))
    np.testing.assert_array_equal(dense_of(batch.counts).numpy(), COUNTS[rows])
    batch.counts.values.zero_()
    np.testing.assert_array_equal(counts.toarray(), COUNTS)


@pytest.mark.parametrize("n_docs", [1, 7, 19])
def test_a_subset_has_documents_at_about_even_distances(n_docs):
    vectors = np.arange(len(COUNTS))[:, None]  # from which the original row of each document is known
    whole = BatchReader.of(corpus(vectors=vectors), 5, torch.device("cpu"), ["vectors"])
    reader = whole._of(whole.rows[1::2])
    subset = reader.subset(n_docs)
    batch = subset.sample(n_docs)
    rows = batch.fields["vectors"][:, 0].long().numpy()
    assert batch.rows.tolist() == list(range(n_docs))
    assert (rows % 2 == 1).all()
    np.testing.assert_array_equal(dense_of(batch.counts).numpy(), COUNTS[rows])
    distance = len(COUNTS) / 2 / n_docs
    assert np.abs(rows // 2 - distance * np.arange(n_docs)).max() <= distance + 1
    assert len(set(rows)) == n_docs
    assert reader.subset(n_docs) is subset
    assert reader.subset(None) is reader.subset(len(COUNTS) // 2) is reader
    other = whole._of(whole.rows[1::2])
    other.seed = 1
    assert (other.subset(n_docs).sample(n_docs).fields["vectors"][:, 0] != batch.fields["vectors"][:, 0]).any()


def test_a_fit_goes_on_with_the_fields_that_it_had(tmp_path):
    model, source = VectorTM(n_topics=3, epochs=2, random_state=0), {"source": ["web", "print"] * 45}
    whole, other = (corpus(vectors=vectors, covariates=source) for vectors in (VECTORS, -VECTORS))
    for _ in range(2):
        model.fit(whole, validation=whole[:9], checkpoint=tmp_path / "fit")
    for documents, validation in ((other, whole[:9]), (whole, other[:9])):
        with pytest.raises(InputError, match="other values of the documents' field 'vectors"):
            model.fit(documents, validation=validation, checkpoint=tmp_path / "fit")


@pytest.mark.parametrize("split", [None, "source", "parts"])
def test_comparisons_go_on_with_the_fields_that_they_had(split):
    plans = []
    for vectors, price in ((VECTORS, 1), (-VECTORS, 1), (VECTORS, 2)):
        covariates = {"source": ["train", "test", "validation"] * (N_DOCS // 3), "price": [price] * N_DOCS}
        made = corpus(vectors=vectors, covariates=covariates)
        plans.append(split_documents(made, (made[:50], made[50:70], made[70:]) if split == "parts" else split)[1])
    first, *others = plans
    require_same_documents(first, first, "runs/compare has a comparison")
    require_same_documents({"corpus": first["corpus"], "split": first["split"]}, first, "of an earlier version")
    for other in others:
        with pytest.raises(InputError, match="runs/compare has a comparison with other vectors"):
            require_same_documents(first, other, "runs/compare has a comparison")
