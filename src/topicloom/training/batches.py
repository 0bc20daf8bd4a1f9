"""Batches of documents: from counts in CSR form to sparse tensors on a device.

The counts of a small corpus fit in memory, and every order of its documents is equally likely. A large corpus may be
memory-mapped and larger than the memory, and a random order would read each document from another place of the file.
Therefore the file is divided into blocks of documents. The blocks are read in random order, many of them at a time, and
the documents of these blocks are shuffled together (a shuffle buffer). Every document is still read once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor

from ..corpus import Corpus
from ..corpus.fields import array_digest
from ..distributed import current
from ..embeddings.expansion import ExpandedCorpus
from ..errors import InputError
from ..messages import counted
from ..metrics.cooccurrence import Total
from ..nn.sparse import Batch, SparseCounts
from ..text.strings import release

LARGE = 1 << 25  # non-zeros of a corpus that is read by blocks: 256 MiB of counts
BLOCK = 1 << 14  # the approximate number of non-zeros in a block
BUFFER = 1 << 23  # non-zeros of the blocks whose documents are shuffled together: 64 MiB
_SHARE_OF_DEVICE = 0.25  # the share of a GPU's free memory that counts may take


class BatchReader:
    """Reads batches of documents from counts, which may be memory-mapped and are not copied.

    Args:
        counts: (D, V), a CSR matrix with sorted, unique indices.
        batch_size: the greatest number of documents in a batch.
        device: the device of the batches.
        rows: the documents to read; all by default.
        fields: further arrays (D, ...) that batches contain, by name.
        own: (D, V) the documents' own counts, if `counts` also has words of their neighbours.
    """

    def __init__(
        self,
        counts: sp.csr_array,
        batch_size: int,
        device: torch.device,
        rows: np.ndarray[Any, Any] | None = None,
        fields: Mapping[str, np.ndarray[Any, Any]] | None = None,
        own: sp.csr_array | None = None,
    ) -> None:
        self.counts, self.own = counts, own
        self.batch_size = batch_size
        self.device = torch.device(device)
        self.resident = ResidentCounts(counts, self.device)
        self.resident_own = None if own is None else ResidentCounts(own, self.device)
        self.rows = np.arange(counts.shape[0]) if rows is None else rows
        self.parts: list[int] = []  # the documents of each rank, if there are several
        self.first = 0  # the number of documents of the ranks before this one
        self.n_non_zeros = int(counts.nnz)  # the non-zeros of all ranks
        self.fields = fields or {}
        self.seed = 0  # of the documents that `subset` draws
        self._subset: BatchReader | None = None  # its last result
        self._whole: list[Batch] = []  # the batch of all documents once it is read; `with_batches_of` shares the list

    @classmethod
    def of(cls, corpus: Corpus, batch_size: int, device: torch.device, fields: Collection[str] = ()) -> BatchReader:
        """Return a reader of all documents of a corpus.

        Args:
            corpus: the documents.
            batch_size: the greatest number of documents in a batch.
            device: the device of the batches.
            fields: the names of the fields that batches should contain, or a mapping from the names to their kinds in
                the training documents (see `Fields.array`).

        Raises:
            InputError: the corpus has no such field, or it is of another kind.
        """
        kinds = fields if isinstance(fields, Mapping) else dict.fromkeys(fields)
        arrays = {name: corpus.fields.array(name, kind) for name, kind in kinds.items()}
        own = corpus.own if isinstance(corpus, ExpandedCorpus) else None
        return cls(corpus.counts, batch_size, device, fields=arrays, own=own)

    @property
    def n_docs(self) -> int:
        """The number of documents that are read."""
        return len(self.rows)

    @property
    def n_docs_of_all(self) -> int:
        """The number of documents that are read by all ranks with which this reader is `shared`."""
        return sum(self.parts) or self.n_docs

    def shared(self) -> BatchReader:
        """Return a reader of the same documents for training with the other ranks, each of which reads a part.

        A batch then consists of the documents of all ranks, and all ranks have the same number of batches.

        Raises:
            InputError: a rank has fewer documents than there are batches.
        """
        ranks = current()
        if ranks.size == 1:
            return self
        reader = self._of(self.rows)
        reader.parts, reader.n_non_zeros = ranks.every(self.n_docs), sum(ranks.every(self.n_non_zeros))
        reader.first = sum(reader.parts[: ranks.rank])
        if min(reader.parts) < len(reader) and not ranks.same_noise:
            raise InputError(
                f"process {int(np.argmin(reader.parts))} of {ranks.size} has {counted(min(reader.parts), 'document')}, "
                f"too few for {counted(len(reader), 'batch', 'batches')}; use fewer processes or a larger `batch_size`"
            )
        return reader

    @property
    def n_words(self) -> int:
        """The size of the vocabulary V."""
        return int(self.counts.shape[1])

    def digests(self) -> dict[str, str]:
        """Return a digest of each field, by its name."""
        return {name: array_digest(field) for name, field in self.fields.items()}

    def __len__(self) -> int:
        """Return the number of batches in one pass."""
        return -(-self.n_docs_of_all // self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        """Yield the documents in their order, in batches of about the same size."""
        return self._batches(self.rows)

    def chunks(self) -> Iterator[Batch]:
        """Yield the documents in their order. All batches but the last are full.

        The place of a document in its batch does not depend on the documents after it.
        """
        starts = range(0, self.n_docs, self.batch_size)
        return self._read(self.rows[start : start + self.batch_size] for start in starts)

    def draw_order(self, generator: torch.Generator) -> torch.Tensor:
        """Return a random order for `ordered`. With many documents, blocks of documents are shuffled.

        Args:
            generator: draws the order, on the CPU.

        Returns:
            (n_docs,); (n_docs_of_all,) if all ranks have the same noise.
        """
        n_docs = self.n_docs_of_all if current().same_noise else self.n_docs
        return draw_order(n_docs, self.n_non_zeros, generator)

    def ordered(self, order: torch.Tensor, skip: int = 0) -> Iterator[Batch]:
        """Yield the documents in an order of `draw_order`, without the first `skip` batches.

        If all documents are one batch, they keep their own order, so that the batch is read only once.
        """
        if self.parts:
            # With a single batch, several ranks need the same order as one process.
            yield from self._shared_batches(np.arange(len(order)) if len(self) == 1 else order.numpy(), skip)
        elif len(self) == 1:
            if not self._whole:
                self._whole.append(self._batch(self.rows))
            yield from self._whole[skip:]
        else:
            yield from self._batches(self.rows[order.numpy()], skip)

    def _shared_batches(self, order: np.ndarray[Any, Any], skip: int) -> Iterator[Batch]:
        """Yield this rank's documents of each batch, with the numbers of those of the other ranks.

        Args:
            order: the order that `draw_order` returned.
            skip: the number of batches that are left out at the start.
        """
        own, sizes, positions = [], [], []
        ends = np.cumsum(self.parts)
        for chosen in np.array_split(order, len(self)):
            if current().same_noise:
                positions.append(np.flatnonzero((chosen >= self.first) & (chosen < self.first + self.n_docs)))
                sizes.append(np.bincount(np.searchsorted(ends, chosen, side="right"), minlength=len(ends)).tolist())
                own.append(self.rows[chosen[positions[-1]] - self.first])
            else:
                number = len(own)
                sizes.append([part // len(self) + (number < part % len(self)) for part in self.parts])
                own.append(self.rows[chosen])
        for number, batch in enumerate(self._read(own[skip:]), start=skip):
            where = torch.from_numpy(positions[number]).to(self.device) if positions else None
            yield replace(batch, sizes=sizes[number], positions=where)

    def sample(self, n_docs: int) -> Batch:
        """Return a batch of up to `n_docs` documents at even distances. It does not change between calls."""
        some = np.linspace(0, self.n_docs - 1, min(n_docs, self.n_docs)).astype(np.intp)
        batch = self._batch(self.rows[some])
        release(self.counts.data, self.counts.indices)  # reading distant documents maps many others into memory
        return batch

    def own_sample(self, n_docs: int) -> Batch:
        """Return the documents of `sample_of_all` that this rank has."""
        if current().size == 1:
            return self.sample(n_docs)
        parts = self.parts or current().every(self.n_docs)
        first, total = sum(parts[: current().rank]), sum(parts)
        some = np.linspace(0, total - 1, min(n_docs, total)).astype(np.intp) - first
        return self._batch(self.rows[some[(some >= 0) & (some < self.n_docs)]])

    def sample_of_all(self, n_docs: int) -> Batch:
        """Return the same sample as `sample`, from the documents of all ranks."""
        ranks, part = current(), self.own_sample(n_docs)
        if ranks.size == 1:
            return part

        def joined(counts: SparseCounts) -> SparseCounts:
            offsets = torch.nn.functional.pad(ranks.rows(counts.offsets.diff()).cumsum(0), (1, 0))
            return SparseCounts(ranks.rows(counts.indices), ranks.rows(counts.values), offsets, counts.n_words)

        fields = {name: ranks.rows(field) for name, field in part.fields.items()}
        return Batch(joined(part.counts), fields=fields, own=None if part.own is None else joined(part.own))

    def subset(self, n_docs: int | None) -> BatchReader:
        """Return a reader of a random subset of the documents of all ranks, the same one in each call.

        They are drawn at about even distances, so that each rank has its share of them. Their counts are copied, and
        `Batch.rows` are numbers within the subset.

        Args:
            n_docs: the size of the subset. None, or a number that is not smaller than that of all documents, is all.
        """
        total = self.n_docs_of_all
        if n_docs is None or n_docs >= total:
            return self
        if self._subset is None or self._subset.n_docs_of_all != n_docs:
            starts = torch.arange(n_docs + 1) * total // n_docs  # of as many equal parts, each with one document
            draws = torch.rand(n_docs, generator=torch.Generator().manual_seed(self.seed), dtype=torch.float64)
            places = (starts[:-1] + (draws * starts.diff()).long()).numpy() - self.first
            rows = self.rows[places[(places >= 0) & (places < self.n_docs)]]
            fields = {name: field[rows] for name, field in self.fields.items()}
            own = None if self.own is None else self.own[rows]
            new = BatchReader(self.counts[rows], self.batch_size, self.device, fields=fields, own=own)
            release(self.counts.data, self.counts.indices)
            self._subset = new.shared() if self.parts else new
        return self._subset

    def with_batches_of(self, least: int) -> BatchReader:
        """Return a reader of the same documents in batches of at least `least` documents."""
        if least <= self.batch_size:
            return self
        new = copy(self)
        new.batch_size = least
        return new

    def without_empty(self) -> BatchReader:
        """Return a reader of the documents that have words."""
        lengths = np.diff(self.counts.indptr)[self.rows]
        return self._of(self.rows[lengths > 0])

    def split(self, share: float, generator: torch.Generator) -> tuple[BatchReader, BatchReader]:
        """Divide the documents at random.

        Args:
            share: the share of the documents that are held out.
            generator: draws the held-out documents, on the CPU.

        Returns:
            a reader of the other documents and one of the held-out documents, at least one document each.
        """
        shares_order = bool(self.parts) and current().same_noise
        n_docs, first = (self.n_docs_of_all, self.first) if shares_order else (self.n_docs, 0)
        order = torch.randperm(n_docs, generator=generator).numpy()
        n_held_out = min(max(1, round(share * n_docs)), n_docs - 1)
        parts = [part[(part >= first) & (part < first + self.n_docs)] - first for part in np.split(order, [n_held_out])]
        held_out, others = (self._of(self.rows[np.sort(part)]) for part in parts)
        return others, held_out

    def _of(self, rows: np.ndarray[Any, Any]) -> BatchReader:
        reader = BatchReader(self.counts, self.batch_size, self.device, rows, self.fields, self.own)
        reader.resident, reader.resident_own, reader.seed = self.resident, self.resident_own, self.seed
        return reader

    def _batches(self, order: np.ndarray[Any, Any], skip: int = 0) -> Iterator[Batch]:
        if len(order) == 0:
            return
        # All batches have about the same size. A last batch of one or two documents would have unreliable statistics.
        yield from self._read(np.array_split(order, len(self))[skip:])

    def _read(self, parts: Iterable[np.ndarray[Any, Any]]) -> Iterator[Batch]:
        """Yield batches of these documents. Release the memory of counts that are mapped from a file."""
        held = 0  # non-zeros
        for rows in parts:
            batch = self._batch(rows)
            held += len(batch.counts.indices)
            if held >= BUFFER:
                release(self.counts.data, self.counts.indices)
                held = 0
            yield batch

    def _batch(self, rows: np.ndarray[Any, Any]) -> Batch:
        chosen = _sent(np.ascontiguousarray(rows, dtype=np.int64), self.device)  # (B,)
        fields = {name: _sent(_numbers(field[rows]), self.device) for name, field in self.fields.items()}
        own = None if self.resident_own is None else self.resident_own.batch(rows, chosen)
        return Batch(self.resident.batch(rows, chosen), chosen, fields, own=own)


def _numbers(field: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a field in the type that networks read: vectors of float16 become float32."""
    if field.dtype != np.float16:
        return field
    return torch.from_numpy(np.ascontiguousarray(field)).float().numpy()  # ten times as fast as NumPy


def draw_order(n_docs: int, non_zeros: int, generator: torch.Generator) -> Tensor:
    """Return a random order of documents, (n_docs,) int64.

    It depends on these arguments alone, and not on whether the counts are memory-mapped.

    Args:
        n_docs: the number of documents.
        non_zeros: the number of non-zeros in all documents. With `LARGE` or more, blocks of documents are shuffled.
        generator: draws the order, on the CPU.
    """
    if non_zeros < LARGE:
        return torch.randperm(n_docs, generator=generator)
    size = max(1, round(BLOCK * n_docs / non_zeros))  # documents of a block
    blocks = torch.randperm(-(-n_docs // size), generator=generator)
    n_parts = -(-non_zeros // BUFFER)
    parts = []
    for chosen in blocks.tensor_split(n_parts):
        places = (chosen[:, None] * size + torch.arange(size)).flatten()
        places = places[places < n_docs]  # the last block may be smaller
        parts.append(places[torch.randperm(len(places), generator=generator)])
    return torch.cat(parts)


def sparse_counts(counts: sp.csr_array, rows: np.ndarray[Any, Any], device: torch.device) -> SparseCounts:
    """Return the counts of some documents.

    Args:
        counts: (n_docs, V) word counts.
        rows: (B,) the documents.
        device: the device of the result.
    """
    starts = counts.indptr[rows].astype(np.int64)
    lengths = counts.indptr[rows + 1] - starts
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if len(rows) and (np.diff(rows) == 1).all():
        part = slice(starts[0], starts[0] + offsets[-1])
        indices, values = counts.indices[part].copy(), counts.data[part].copy()  # (N,) each
    else:
        where = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)  # (N,) positions in the CSR arrays
        indices, values = counts.indices[where], counts.data[where]

    def send(array: np.ndarray[Any, Any], dtype: torch.dtype) -> torch.Tensor:
        return _sent(array, device).to(dtype)

    n_words = counts.shape[1]

    def by_word() -> torch.Tensor:
        # SciPy converts CSR to CSC by a linear counting sort. Applied to positions, it sorts them by word.
        positions = np.arange(offsets[-1])
        by_word = sp.csr_array((positions, indices, offsets), shape=(len(offsets) - 1, n_words)).tocsc()
        return send(by_word.data, torch.int64)

    return SparseCounts(
        indices=send(indices, torch.int64),
        values=send(values, torch.float32),
        offsets=send(offsets, torch.int64),
        n_words=n_words,
        find_by_word=by_word,
    )


def _sent(array: np.ndarray[Any, Any], device: torch.device) -> torch.Tensor:
    """Return an array on a device. Pinned memory lets a GPU copy it while the processor continues."""
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor.to(device)


# Devices


class ResidentCounts:
    """The counts of all documents on a GPU, if they fit. They are copied when the first batch is read.

    Args:
        counts: (D, V), a CSR matrix with sorted, unique indices.
        device: the device.
    """

    def __init__(self, counts: sp.csr_array, device: torch.device) -> None:
        self.counts, self.device = counts, device

    @cached_property
    def _arrays(self) -> tuple[Tensor, Tensor, Tensor] | None:
        """The CSR arrays: where documents start (D + 1,), words (nnz,) and counts (nnz,)."""
        counts = self.counts
        if counts.nnz * 8 + len(counts.indptr) * 8 > room(self.device):
            return None
        parts = ((counts.indptr, torch.int64), (counts.indices, torch.int32), (counts.data, torch.float32))
        starts, words, values = (torch.tensor(np.asarray(part), dtype=dtype).to(self.device) for part, dtype in parts)
        return starts, words, values

    def batch(self, rows: np.ndarray[Any, Any], on_device: Tensor) -> SparseCounts:
        """Return the counts of some documents.

        Args:
            rows: (B,) the documents.
            on_device: (B,) `rows` as a tensor on the device.
        """
        if self._arrays is None:
            return sparse_counts(self.counts, rows, self.device)
        indptr, indices, data = self._arrays
        # The processor counts the non-zeros itself, because asking the device would wait for it.
        n = int((self.counts.indptr[rows + 1].astype(np.int64) - self.counts.indptr[rows]).sum())
        starts = indptr[on_device]  # (B,)
        lengths = indptr[on_device + 1] - starts
        offsets = F.pad(lengths.cumsum(0), (1, 0))  # (B + 1,)
        shift = torch.repeat_interleave(starts - offsets[:-1], lengths, output_size=n)
        where = torch.arange(n, device=self.device) + shift  # (N,) positions in the CSR arrays
        return SparseCounts(indices[where].long(), data[where], offsets, int(self.counts.shape[1]))


def room(device: torch.device) -> float:
    """Return how many bytes counts may take on a device. It is 0 on a CPU, where counts are in memory already."""
    return _SHARE_OF_DEVICE * torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else 0.0


def choose_device(name: str) -> torch.device:
    """Return a device by its name.

    Args:
        name: "cpu", "cuda", "cuda:1" and so on, or "mps". "auto" is CUDA if it is available, and the CPU otherwise.

    Raises:
        InputError: the name is unknown, or this machine has no such device.
    """
    if name == "auto":
        gpu = f"cuda:{current().local_rank}" if current().size > 1 else "cuda"
        return torch.device(gpu if torch.cuda.is_available() else "cpu")
    if name.partition(":")[0] not in ("cpu", "cuda", "mps"):
        raise InputError(f"device {name!r} is not known; give auto, cpu, cuda, cuda:1 and so on, or mps")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"device {name!r} cannot be used here ({reason}); try `device='auto'`") from None
    return device


# The parts of a corpus that several processes learn from


def own_part(corpus: Corpus) -> Corpus:
    """Return the documents that this rank learns from. Each rank has one part of consecutive documents.

    A memory-mapped corpus stays on disk.

    Raises:
        InputError: the corpora of the ranks have different words.
    """
    ranks = current()
    if ranks.size == 1:
        return corpus
    words = hashlib.sha256("\n".join(corpus.vocabulary).encode("utf-8", "surrogatepass")).digest()
    code = int.from_bytes(words[:7], "big")
    if len(set(ranks.every(code))) > 1:
        raise InputError("the processes have corpora with different words; give all of them the same vocabulary")
    if ranks.documents == "part":
        return corpus
    if len(set(ranks.every(corpus.n_docs))) > 1:
        raise InputError(
            "the processes have corpora of different sizes; give each all documents, or join with `documents='part'`"
        )
    first, last = (corpus.n_docs * number // ranks.size for number in (ranks.rank, ranks.rank + 1))
    return corpus[first:last]


def sum_of_ranks() -> Total | None:
    """Return a function that adds an array over all current ranks, or None if there is only one rank."""
    return None if current().size == 1 else lambda array: current().sum(torch.from_numpy(array)).numpy()


def totals(corpus: Corpus) -> tuple[npt.NDArray[Any], npt.NDArray[Any], int]:
    """Count words and documents over all ranks.

    Returns:
        (V,) the tokens of each word, (V,) the documents with each word, and the number of documents with words.
    """
    filled = np.array([(~corpus.is_empty).sum()])
    found = corpus.word_counts, corpus.document_counts, filled
    counted = [current().sum(torch.from_numpy(array)).numpy() for array in found]
    return counted[0], counted[1], int(counted[2][0])
