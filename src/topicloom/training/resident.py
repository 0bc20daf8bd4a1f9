"""Counts that stay on a GPU, where batches are gathered without the processor."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor

from ..nn.sparse import SparseCounts

_SHARE = 0.25  # of the free memory of the device that counts may take


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

    def batch(self, rows: np.ndarray[Any, Any], on_device: Tensor) -> SparseCounts | None:
        """Return the counts of some documents, or None if the counts are not on the device.

        Args:
            rows: (B,) the documents.
            on_device: the same, on the device.
        """
        if self._arrays is None:
            return None
        indptr, indices, data = self._arrays
        # The device does not tell the processor how many non-zeros there are, which would wait for it.
        n = int((self.counts.indptr[rows + 1].astype(np.int64) - self.counts.indptr[rows]).sum())
        starts = indptr[on_device]  # (B,)
        lengths = indptr[on_device + 1] - starts
        offsets = F.pad(lengths.cumsum(0), (1, 0))  # (B + 1,)
        shift = torch.repeat_interleave(starts - offsets[:-1], lengths, output_size=n)
        where = torch.arange(n, device=self.device) + shift  # (N,) positions in the CSR arrays
        return SparseCounts(indices[where].long(), data[where], offsets, int(self.counts.shape[1]))


def room(device: torch.device) -> float:
    """Return how many bytes counts may take on a device: none on a CPU, which has them in memory already."""
    return _SHARE * torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else 0.0
