"""Loops over tokens that numba compiles, on a CPU, where it is installed: the extra `fast`.

They do what functions of `nn` do, which are there for every device. Those go over memory once for each operation; here
what is worked on stays in a core's nearest cache.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from torch import Tensor

from .nn import collapsed
from .nn.collapsed import CountedTopics
from .nn.sparse import SparseBatch

Array = np.ndarray[Any, Any]
_LEAST = np.float32(collapsed.LEAST)
# Sums in any order, so that they can be vectorised; a - b where a is infinite does not occur.
_FAST = {"reassoc", "contract", "nsz", "nnan", "ninf", "arcp"}


def reassign(
    batch: SparseBatch,
    values: Tensor,
    doc_topics: Tensor,
    topics: CountedTopics,
    alpha: Tensor,
    word_topics: Tensor,
    *,
    left_out: float = 1.0,
) -> Tensor:
    """`collapsed.reassign` but for rounding: compiled if it can be."""
    loop = _compiled(_reassign) if values.device.type == "cpu" else None
    if loop is None or not word_topics.is_contiguous():
        return collapsed.reassign(batch, values, doc_topics, topics, alpha, word_topics, left_out=left_out)
    of_docs = doc_topics.new_zeros(doc_topics.shape)
    inputs = (
        batch.offsets, batch.indices, values, doc_topics + alpha, topics.beta_t, -left_out / topics.sizes,
        topics.least, alpha,
    )  # fmt: skip
    loop(*(each.contiguous().numpy() for each in inputs), of_docs.numpy(), word_topics.numpy())
    return of_docs


def _reassign(
    offsets: Array,
    words: Array,
    values: Array,
    shares: Array,
    beta_t: Array,
    per_size: Array,
    least: Array,
    alpha: Array,
    of_docs: Array,
    of_words: Array,
) -> None:
    """Adds to of_docs (B, K) and of_words (V, K); see `collapsed.reassign`."""
    n_topics = len(alpha)
    gamma = np.empty_like(alpha)
    for doc in range(len(offsets) - 1):
        theta, of_doc = shares[doc], of_docs[doc]
        for i in range(offsets[doc], offsets[doc + 1]):
            x, beta, of_word = values[i], beta_t[words[i]], of_words[words[i]]
            total = _LEAST
            for k in range(n_topics):
                gamma[k] = theta[k] * beta[k]
                total += gamma[k]
            one, rest = np.float32(1) / total, _LEAST
            for k in range(n_topics):
                own = gamma[k] * one
                gamma[k] = max(theta[k] - own, alpha[k]) * max(beta[k] + own * x * per_size[k], least[k])
                rest += gamma[k]
            part = x / rest
            for k in range(n_topics):
                of_doc[k] += gamma[k] * part
                of_word[k] += gamma[k] * part


@cache
def _compiled(function: Callable[..., None]) -> Callable[..., None] | None:
    """The function, compiled when it is first called and kept on disk if that can be; None where there is no numba."""
    try:
        import numba
    except ImportError:  # or a NumPy that is newer than it knows
        return None
    if getattr(numba.config, "DISABLE_JIT", False):  # Python itself would take a thousand times as long
        return None
    compiled: Callable[..., None]
    try:
        compiled = numba.njit(function, nogil=True, fastmath=_FAST, error_model="numpy", cache=True)
    except RuntimeError:  # there is nowhere to keep it
        compiled = numba.njit(function, nogil=True, fastmath=_FAST, error_model="numpy")
    return compiled
