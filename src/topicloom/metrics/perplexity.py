"""Perplexity: how surprised a model is by a word, on the average."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .measured import Measured

Average = Literal["corpus", "document"]


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


def perplexity(log_likelihood: npt.ArrayLike, n_tokens: npt.ArrayLike, average: Average = "corpus") -> Measured:
    """How surprised a model is by a word; infinite when there is no token.

    Papers average in two ways, whose figures cannot be compared:
    "corpus": exp(-sum of log likelihoods / sum of tokens), every token with the same weight (Blei et al. 2003);
    "document": exp(-mean over documents of log likelihood / tokens), every document with the same weight (NVDM, Miao
    et al. 2016, and GSM, ProdLDA and others after it).

    Args:
        log_likelihood: (n_docs,) natural logarithms, or bounds on them.
        n_tokens: (n_docs,) tokens that each of them speaks of; a document without any is left out.

    Returns:
        Measured, with the numbers of documents and tokens.
    """
    logs, tokens = np.asarray(log_likelihood, np.float64), np.asarray(n_tokens, np.float64)
    logs, tokens = logs[tokens > 0], tokens[tokens > 0]
    total = float(tokens.sum())
    settings = {"average": average, "documents": len(tokens), "tokens": int(total) if total.is_integer() else total}
    if average not in ("corpus", "document"):
        raise ValueError(f'average should be "corpus" or "document"; it is {average!r}')
    if not len(tokens):
        return Measured(float("inf"), **settings)
    surprise = -logs.sum() / total if average == "corpus" else -(logs / tokens).mean()
    with np.errstate(over="ignore"):  # too much surprise for a float is infinite
        return Measured(float(np.exp(surprise)), **settings)
