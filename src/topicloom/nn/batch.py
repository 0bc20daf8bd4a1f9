"""A batch of documents as a network receives it: sparse counts, and the fields of documents that the network needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from .sparse import SparseCounts


@dataclass(frozen=True)
class Batch:
    """B documents: their counts, their rows in the corpus, and their fields as tensors.

    Attributes:
        counts: the word counts.
        rows: (B,) int64, the row of each document in the corpus; None for documents that are in no corpus.
        fields: a tensor for each field that the network names in `TopicNetwork.fields`, such as "vectors" (B, E),
            "times" (B,) or a covariate (B,).
        sizes, positions: where the documents are in a batch of several ranks, as in `topicloom.distributed.ranks.Step`.
    """

    counts: SparseCounts
    rows: Tensor | None = None
    fields: Mapping[str, Tensor] = field(default_factory=dict)
    sizes: Sequence[int] = ()
    positions: Tensor | None = None

    @property
    def n_docs(self) -> int:
        """The number of documents B."""
        return self.counts.n_docs

    @property
    def n_words(self) -> int:
        """The size of the vocabulary V."""
        return self.counts.n_words

    @property
    def device(self) -> torch.device:
        """The device of the tensors."""
        return self.counts.device
