"""Documents as lists of tokens, which other packages read."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp


def tokens(counts: sp.csr_matrix) -> Iterator[list[str]]:
    """Yield the tokens of each document; the word of column v is "v"."""
    names = np.arange(counts.shape[1]).astype(str).astype(object)
    for start, end in zip(counts.indptr[:-1], counts.indptr[1:], strict=True):
        yield np.repeat(names[counts.indices[start:end]], counts.data[start:end].astype(int)).tolist()
