"""Perplexity: how surprised a model is by a word, on the average."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp


def completion_split(counts: Any, seed: int = 0) -> tuple[sp.csr_array, sp.csr_array]:
    """Document completion: every token goes to the observed or to the scored half, by a fair coin.

    Args:
        counts: (n_docs, n_words) CSR of whole counts.
        seed: of the coin.

    Returns:
        observed, scored: (n_docs, n_words) CSR each, which add up to `counts`.

    Raises:
        ValueError: counts that are not whole, which no coin can split.

    Source: Wallach, Murray, Salakhutdinov & Mimno 2009, section 5.
    """
    if not np.array_equal(counts.data, np.floor(counts.data)):
        raise ValueError("document completion needs whole counts: it tosses a coin for every token")
    draws = np.random.default_rng(seed).binomial(counts.data.astype(np.int64), 0.5)
    halves = []
    for data in (draws, counts.data - draws):
        half = counts.copy()
        half.data = data.astype(np.float32)
        half.eliminate_zeros()
        halves.append(half)
    return halves[0], halves[1]


def perplexity(log_likelihood: npt.ArrayLike, n_tokens: npt.ArrayLike) -> float:
    """exp(-sum of log likelihoods / sum of tokens); infinite when there is no token.

    Args:
        log_likelihood: (n_docs,) natural logarithms, or bounds on them.
        n_tokens: (n_docs,) tokens that each of them speaks of.
    """
    tokens = float(np.sum(n_tokens, dtype=np.float64))
    if tokens == 0:
        return float("inf")
    with np.errstate(over="ignore"):  # too much surprise for a float is infinite
        return float(np.exp(-np.sum(log_likelihood, dtype=np.float64) / tokens))
