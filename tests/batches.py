"""Random generators and batches of counts, for tests of networks and of their parts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from scipy import sparse

from topicloom.nn.sparse import Batch, SparseCounts
from topicloom.training.batches import sparse_counts

CPU = torch.device("cpu")


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def sparse_batch(counts: sparse.csr_array, rows: Any, device: torch.device) -> Batch:
    """Return a batch of some documents, whose counts are (D, V)."""
    return Batch(sparse_counts(counts, rows, device), torch.from_numpy(rows).to(device, torch.int64))


def batch_of(counts: Any) -> SparseCounts:
    """Return counts, dense (D, V) or (V,) or sparse (D, V), as a batch."""
    rows = sparse.csr_array(counts if sparse.issparse(counts) else np.atleast_2d(counts))
    return sparse_batch(rows, np.arange(rows.shape[0]), CPU).counts


def dense_of(counts: SparseCounts) -> torch.Tensor:
    """Return counts as a dense tensor (B, V)."""
    dense = torch.zeros(counts.n_docs, counts.n_words, dtype=counts.values.dtype, device=counts.device)
    return dense.index_put_((counts.documents, counts.indices), counts.values)


def double_batch_of(counts: Any) -> SparseCounts:
    """Return the batch in float64, so that results differ from those of a reference by rounding alone."""
    batch = batch_of(counts)
    return replace(batch, values=batch.values.double())
