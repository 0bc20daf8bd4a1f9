"""Loops over tokens that numba compiles, on a CPU, where it is installed: the extra `fast`.

They do what functions of `nn` do, which are there for every device. Those go over memory once for each operation; here
what is worked on stays in a core's nearest cache.
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
from . import cvb0 as collapsed
from .cvb0 import CountedTopics

Array = np.ndarray[Any, Any]
_log = logging.getLogger("topicloom")
_FAST = {"reassoc", "contract", "nsz", "arcp"}  # sums in any order, so that they are vectorised; NaN stays NaN
_LEAST = np.float32(collapsed.LEAST)


def reassign(
    counts: SparseCounts,
    values: Tensor,
    doc_topics: Tensor,
    topics: CountedTopics,
    alpha: Tensor,
    word_topics: Tensor,
    *,
    left_out: float = 1.0,
) -> Tensor:
    """`collapsed.reassign` but for rounding: compiled if it can be."""
    loop = _compiled() if values.device.type == "cpu" else None
    if loop is None or not word_topics.is_contiguous():
        return collapsed.reassign(counts, values, doc_topics, topics, alpha, word_topics, left_out=left_out)
    of_docs = doc_topics.new_zeros(doc_topics.shape)
    inputs = (
        counts.offsets, counts.indices, values, doc_topics + alpha, topics.beta_t, -left_out / topics.sizes,
        topics.least, alpha,
    )  # fmt: skip
    loop(*(each.contiguous().numpy() for each in inputs), of_docs.numpy(), word_topics.numpy(), _LEAST)
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
    tiny: np.float32,
) -> None:
    """Adds to of_docs (B, K) and of_words (V, K); see `collapsed.reassign`."""
    n_topics = len(alpha)
    gamma = np.empty_like(alpha)
    for doc in range(len(offsets) - 1):
        theta, of_doc = shares[doc], of_docs[doc]
        for i in range(offsets[doc], offsets[doc + 1]):
            x, beta, of_word = values[i], beta_t[words[i]], of_words[words[i]]
            total = tiny
            for k in range(n_topics):
                gamma[k] = theta[k] * beta[k]
                total += gamma[k]
            one, rest = np.float32(1) / total, tiny
            for k in range(n_topics):
                own = gamma[k] * one
                gamma[k] = max(theta[k] - own, alpha[k]) * max(beta[k] + own * x * per_size[k], least[k])
                rest += gamma[k]
            part = x / rest
            for k in range(n_topics):
                of_doc[k] += gamma[k] * part
                of_word[k] += gamma[k] * part


@cache
def _compiled() -> Callable[..., None] | None:
    """`_reassign`, compiled and kept on disk if that can be; None where it cannot be compiled.

    numba is tried on a document of one word: much that may be wrong with an installation shows at the first call.
    """
    if importlib.util.find_spec("numba") is None:
        return None
    reason: Exception | None = None
    for kept in (True, False):
        try:
            import numba

            if getattr(numba.config, "DISABLE_JIT", False):  # Python itself would take a thousand times as long
                return None
            compiled = numba.njit(nogil=True, fastmath=_FAST, error_model="numpy", cache=kept)(_reassign)
            compiled(*_one_word())
            return compiled
        except Exception as error:  # whatever it is, there is another way
            reason = error
    _log.warning("numba is there but cannot be used, so that Loom takes longer: %s", reason)
    return None


def _one_word() -> tuple[Any, ...]:
    """Arguments of `_reassign`."""
    of_topics, table = np.ones(1, np.float32), np.ones((1, 1), np.float32)
    offsets, words = np.array([0, 1]), np.zeros(1, np.int64)
    return offsets, words, of_topics, table, table, of_topics, of_topics, of_topics, table.copy(), table.copy(), _LEAST
