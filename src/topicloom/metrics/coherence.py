"""How well the top words of a topic go together in documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


def document_npmi(topics: Sequence[Sequence[int]], counts: Any, top_n: int = 10) -> npt.NDArray[np.float64]:
    """Normalised pointwise mutual information of a topic's word pairs, over whole documents.

    log(p(i, j) / (p(i) p(j))) / -log p(i, j), with p the share of documents; -1 for words that never meet, 1 for
    words in every document.

    Args:
        topics: each topic's word ids, best first.
        counts: (D, V) CSR counts of the reference corpus.

    Returns:
        (K,) means over the pairs of each topic, from -1 to 1.

    Source: Bouma 2009; Lau, Newman & Baldwin 2014.
    """
    words = np.unique([word for topic in topics for word in topic[:top_n]])
    present = (counts[:, words] > 0).astype(np.float64)  # (D, W), sparse
    joint = (present.T @ present).toarray() / counts.shape[0]  # (W, W)
    alone = np.diag(joint)
    with np.errstate(divide="ignore", invalid="ignore"):
        npmi = np.log(joint / np.outer(alone, alone)) / -np.log(joint)
    npmi[joint == 0] = -1.0
    npmi[joint >= 1] = 1.0
    means = []
    for topic in topics:
        ids = np.searchsorted(words, topic[:top_n])
        pairs = npmi[np.ix_(ids, ids)][np.triu_indices(len(ids), 1)]
        means.append(pairs.mean() if len(pairs) else 0.0)
    return np.array(means)
