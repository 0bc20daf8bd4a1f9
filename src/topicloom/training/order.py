"""The order in which an epoch reads the documents.

The counts of a small corpus fit in memory, and every order of its documents is equally likely. A large corpus may be
memory-mapped and larger than the memory. A random order would read each of its documents from another place of the
file. So the file is divided into blocks of documents. The blocks are read in random order, many of them at a time, and
the documents of these blocks are shuffled together, as in a shuffle buffer. Every document is still read once.
"""

from __future__ import annotations

import torch
from torch import Tensor

LARGE = 1 << 25  # non-zeros of a corpus that is read by blocks: 256 MiB of counts
BLOCK = 1 << 14  # non-zeros of a block, about
BUFFER = 1 << 23  # non-zeros of the blocks whose documents are shuffled together: 64 MiB


def draw_order(n_docs: int, non_zeros: int, generator: torch.Generator) -> Tensor:
    """Return a random order of documents, (n_docs,) int64.

    It depends on these arguments alone, and not on whether the counts are memory-mapped.

    Args:
        n_docs: the number of documents.
        non_zeros: the number of non-zeros in all documents. With `LARGE` or more, the order is one of blocks.
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
