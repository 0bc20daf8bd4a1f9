"""The counts of topics in documents, N_dk, for so many documents that an array of all of them would be too large."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import pad

DENSE = 1 << 26  # counts: up to 256 MiB, they are an array of 32-bit numbers
KEPT = 32  # counts that are kept of each document otherwise, besides the mean of the others
_LARGEST = 65504.0  # 16-bit number
_AT_ONCE = 1 << 16  # documents


class LargestCounts:
    """An array of counts (D, K) that keeps the largest ones of each document, and the mean of the others.

    Documents of a few hundred words have tokens of a few topics, however many there are. The many small counts are
    hardly above 0 each, but without them a document would keep to the topics that it has.

    Rows are read and written as those of a tensor: `counts[rows]` is (B, K) float32.

    Args:
        topics: (D, n) the topics of the kept counts, of a type of whole numbers.
        values: (D, n + 1) float16, the counts, and the mean of the other counts of the document.
        n_topics: the number of topics K.
    """

    def __init__(self, topics: Tensor, values: Tensor, n_topics: int) -> None:
        self.topics, self.values, self.n_topics = topics, values, n_topics

    @classmethod
    def zeros(cls, n_docs: int, n_topics: int, device: torch.device) -> LargestCounts:
        """Return counts that are all 0."""
        n_kept = min(KEPT, n_topics)
        number = torch.int16 if n_topics < 1 << 15 else torch.int32
        return cls(
            torch.zeros(n_docs, n_kept, dtype=number, device=device),
            torch.zeros(n_docs, n_kept + 1, dtype=torch.float16, device=device),
            n_topics,
        )

    def __len__(self) -> int:
        return len(self.values)

    @property
    def shape(self) -> tuple[int, int]:
        """(D, K)."""
        return len(self), self.n_topics

    def __getitem__(self, rows: Tensor | None) -> Tensor:
        assert rows is not None  # documents without rows are in no corpus
        values = self.values[rows].float()  # (B, n + 1)
        others = values[:, -1:]
        counts = others.expand(-1, self.n_topics).clone()  # (B, K)
        return counts.scatter_add_(1, self.topics[rows].long(), values[:, :-1] - others).clamp_min_(0)

    def __setitem__(self, rows: Tensor | None, counts: Tensor) -> None:
        assert rows is not None
        places = self.topics.shape[1]
        values, topics = counts.topk(min(places, self.n_topics), dim=1, sorted=False)
        n_others = self.n_topics - values.shape[1]
        rest = (counts.sum(1, keepdim=True) - values.sum(1, keepdim=True)).clamp_min_(0)
        unused = (0, places - values.shape[1])
        stored = torch.cat([pad(values, unused), rest / max(1, n_others)], dim=1)  # (B, n + 1)
        self.values[rows] = stored.clamp_max_(_LARGEST).half()
        self.topics[rows] = pad(topics.to(self.topics.dtype), unused)

    def select(self, which: Tensor) -> LargestCounts:
        """Return the counts of some topics (m,), in their order, which replace these. Those of the others are lost."""
        place = torch.full((self.n_topics,), -1, dtype=self.topics.dtype, device=which.device)
        place[which] = torch.arange(len(which), dtype=place.dtype, device=which.device)
        new = LargestCounts(self.topics, self.values, len(which))
        for start in range(0, len(self), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            topics, values = place[self.topics[part].int()], self.values[part]
            values[:, :-1] = values[:, :-1].where(topics >= 0, values[:, -1:])  # as much as any other topic has
            self.topics[part] = topics.clamp_min_(0)
        return new


DocumentCounts: TypeAlias = Tensor | LargestCounts  # (D, K) N_dk


def zero_counts(n_docs: int, n_topics: int, device: torch.device) -> DocumentCounts:
    """Return counts (D, K) that are all 0: a tensor if it is not too large, and `LargestCounts` otherwise."""
    if n_docs * n_topics > DENSE:
        return LargestCounts.zeros(n_docs, n_topics, device)
    return torch.zeros(n_docs, n_topics, device=device)


def select(counts: DocumentCounts, which: Tensor) -> DocumentCounts:
    """Return the counts of some topics (m,), (D, K) -> (D, m)."""
    return counts.select(which) if isinstance(counts, LargestCounts) else counts[:, which]


def tensors_of(counts: DocumentCounts | None) -> dict[str, Tensor]:
    """Return tensors by name, from which `from_tensors` makes the same counts."""
    if isinstance(counts, LargestCounts):
        return {"document_topics": counts.topics, "document_counts": counts.values}
    return {} if counts is None else {"document_topics": counts}


def from_tensors(tensors: Mapping[str, Tensor], n_topics: int) -> DocumentCounts | None:
    """Return the counts of `tensors_of`, of so many topics."""
    if "document_counts" in tensors:
        return LargestCounts(tensors["document_topics"], tensors["document_counts"], n_topics)
    return tensors.get("document_topics")
