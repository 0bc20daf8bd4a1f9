"""`cvb0.reassign` as a loop over tokens that numba compiles for the CPU, if numba is installed (the extra `fast`).

The version in `cvb0` runs on every device, but each of its operations reads and writes memory once. In a compiled loop
the intermediate values of a token stay in the core's nearest cache.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from torch import Tensor

from ...nn.sparse import SparseCounts
from . import cvb0
from .cvb0 import CountedTopics

Array = np.ndarray[Any, Any]
_log = logging.getLogger("topicloom")
_FAST = {"reassoc", "contract", "nsz", "arcp"}  # sums in any order, so that they are vectorised; NaN stays NaN
# A compiled loop has two forms: one that is vectorised, and one for arrays that may overlap, which adds in another
# order. It takes the second one if two arrays begin within a few hundred bytes, as small ones can by chance. With this
# many numbers between `gamma` and any other array, the sums are always the same.
_DISTANCE = 256
_SMALLEST = np.float32(cvb0.SMALLEST)


def reassign(
    counts: SparseCounts,
    values: Tensor,
    doc_topics: Tensor,
    topics: CountedTopics,
    alpha: Tensor,
    word_topics: Tensor,
    *,
    excluded: float = 1.0,
) -> Tensor:
    """`cvb0.reassign` up to rounding: compiled where possible, and otherwise that function itself."""
    loop = _compiled() if values.device.type == "cpu" else None
    if loop is None or not word_topics.is_contiguous():
        return cvb0.reassign(counts, values, doc_topics, topics, alpha, word_topics, excluded=excluded)
    new = doc_topics.new_zeros(doc_topics.shape)
    inputs = (
        counts.offsets, counts.indices, values, doc_topics + alpha, topics.beta_t, -excluded / topics.sizes,
        topics.smallest, alpha,
    )  # fmt: skip
    loop(*(each.contiguous().numpy() for each in inputs), new.numpy(), word_topics.numpy(), _SMALLEST)
    return new


def _reassign(
    offsets: Array,
    words: Array,
    values: Array,
    shares: Array,
    beta_t: Array,
    per_size: Array,
    smallest: Array,
    alpha: Array,
    of_docs: Array,
    of_words: Array,
    tiny: np.float32,
) -> None:
    """Add the new counts to of_docs (B, K) and of_words (V, K); `cvb0.reassign` has the formula."""
    n_topics = len(alpha)
    gamma = np.empty(n_topics + 2 * _DISTANCE, alpha.dtype)[_DISTANCE : _DISTANCE + n_topics]
    for doc in range(len(offsets) - 1):
        theta, of_doc = shares[doc], of_docs[doc]
        for i in range(offsets[doc], offsets[doc + 1]):
            x, beta, of_word = values[i], beta_t[words[i]], of_words[words[i]]
            total = tiny
            for k in range(n_topics):
                gamma[k] = theta[k] * beta[k]
                total += gamma[k]
            scale, rest = np.float32(1) / total, tiny
            for k in range(n_topics):
                own = gamma[k] * scale
                gamma[k] = max(theta[k] - own, alpha[k]) * max(beta[k] + own * x * per_size[k], smallest[k])
                rest += gamma[k]
            part = x / rest
            for k in range(n_topics):
                of_doc[k] += gamma[k] * part
                of_word[k] += gamma[k] * part


@cache
def _compiled() -> Callable[..., None] | None:
    """Return `_reassign` as compiled by numba, cached on disk if possible, or None if it cannot be compiled.

    The compiled function is called once with a document of one word, because the first call reveals most problems of an
    installation.
    """
    if importlib.util.find_spec("numba") is None:
        return None
    reason: Exception | None = None
    for on_disk in (True, False):
        try:
            import numba

            if getattr(numba.config, "DISABLE_JIT", False):  # the plain Python loop would take a thousand times as long
                return None
            compiled = numba.njit(nogil=True, fastmath=_FAST, error_model="numpy", cache=on_disk)(_reassign)
            compiled(*_one_word())
            return compiled
        except Exception as error:  # whatever fails, there is another implementation
            reason = error
    _log.warning("numba is installed but cannot be used, so Loom trains more slowly: %s", reason)
    return None


def _one_word() -> tuple[Any, ...]:
    """Return arguments of `_reassign` for one document of one word and one topic."""
    of_topics, table = np.ones(1, np.float32), np.ones((1, 1), np.float32)
    offsets, words = np.array([0, 1]), np.zeros(1, np.int64)
    copies = table.copy(), table.copy()
    return offsets, words, of_topics, table, table, of_topics, of_topics, of_topics, *copies, _SMALLEST
