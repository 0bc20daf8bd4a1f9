"""A batch of documents as networks see it: sparse counts, and the fields of their rows that a network asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from .sparse import SparseCounts


@dataclass(frozen=True)
class Batch:
    """B documents: their counts, which rows of the corpus they are, and their fields as tensors.

    Attributes:
        counts: the word counts.
        rows: (B,) int64, the row of each document in the corpus; None where documents have no row, as drawn ones.
        fields: a tensor whose first dimension is B for each field that the network names in `TopicNetwork.fields`, such
            as "vectors" (B, E), "times" (B,) or a covariate (B,).
    """

    counts: SparseCounts
    rows: Tensor | None = None
    fields: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def n_docs(self) -> int:
        """B, the number of documents."""
        return self.counts.n_docs

    @property
    def n_words(self) -> int:
        """V, the size of the vocabulary."""
        return self.counts.n_words

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self.counts.device
