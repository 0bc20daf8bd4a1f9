"""Perplexity: how uncertain a model is about a word, on average."""

from __future__ import annotations

import logging
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ..errors import InputError
from .measured import Measured

logger = logging.getLogger("topicloom")

_MANY = 2.0**62  # tokens of a word in a document

Average = Literal["corpus", "document"]


def completion_split(counts: Any, random_state: int = 0) -> tuple[sp.csr_array, sp.csr_array]:
    """Divide every document into two halves for document completion: each token goes to either half at random.

    Where a count is not whole, the fraction that its tokens leave goes to either half at random.

    Args:
        counts: (n_docs, n_words) CSR array.
        random_state: the seed of the draw.

    Returns:
        observed, scored: (n_docs, n_words) CSR arrays of 32-bit numbers that add up to `counts`.

    Source: Wallach, Murray, Salakhutdinov & Mimno 2009, section 5.

    Examples:
        >>> import scipy.sparse as sp
        >>> from topicloom.metrics import completion_split
        >>> observed, scored = completion_split(sp.csr_array([[4, 0, 2], [1, 3, 0]]))
        >>> (observed + scored).toarray().tolist()
        [[4.0, 0.0, 2.0], [1.0, 3.0, 0.0]]
    """
    generator, whole = np.random.default_rng(random_state), np.floor(counts.data)
    can_draw = whole < _MANY  # more tokens than that cannot be drawn, and divide into halves that hardly differ
    draws = np.where(can_draw, generator.binomial(np.where(can_draw, whole, 0).astype(np.int64), 0.5), whole / 2)
    if (fractions := counts.data - whole).any():
        draws = draws + np.where(generator.random(len(whole)) < 0.5, fractions, 0)
    halves = []
    for data in (draws, counts.data - draws):
        half = counts.copy()
        half.data = data.astype(np.float32)
        half.eliminate_zeros()
        halves.append(half)
    return halves[0], halves[1]


def perplexity(log_likelihood: npt.ArrayLike, n_tokens: npt.ArrayLike, average: Average = "corpus") -> Measured:
    """Perplexity from the log likelihoods of documents. It is infinite if there is no token.

    A warning says if it is infinite for another reason.

    Papers average in two ways, and figures of one cannot be compared with figures of the other:
    "corpus" gives every token the same weight: exp(-sum of log likelihoods / sum of tokens) (Blei et al. 2003).
    "document" gives every document the same weight: exp(-mean over documents of log likelihood / tokens) (NVDM, Miao
    et al. 2016, and GSM, ProdLDA and others after it).

    Args:
        log_likelihood: (n_docs,) natural logarithms, or lower bounds on them.
        n_tokens: (n_docs,) the number of tokens that each of them covers. Documents without tokens are left out.
        average: "corpus" or "document".

    Returns:
        Measured, with the numbers of documents and tokens in its settings.

    Raises:
        InputError: another `average`, or there are not as many log likelihoods as numbers of tokens.

    Examples:
        >>> import numpy as np
        >>> from topicloom.metrics import perplexity
        >>> round(perplexity([2 * np.log(1 / 100), 8 * np.log(1 / 100)], [2, 8]))
        100
    """
    logs, tokens = np.asarray(log_likelihood, np.float64), np.asarray(n_tokens, np.float64)
    if logs.shape != tokens.shape:
        raise InputError(f"there are {logs.size} log likelihoods and {tokens.size} numbers of tokens; give one of each")
    logs, tokens = logs[tokens > 0], tokens[tokens > 0]
    total = float(tokens.sum())
    settings: dict[str, Any] = {
        "average": average,
        "documents": len(tokens),
        "tokens": int(total) if total.is_integer() else total,
    }
    if average not in ("corpus", "document"):
        raise InputError(f'`average` should be "corpus" or "document"; it is {average!r}')
    if not len(tokens):
        return Measured(float("inf"), **settings)
    negative = -logs.sum() / total if average == "corpus" else -(logs / tokens).mean()
    with np.errstate(over="ignore"):  # beyond the largest float, perplexity is infinite
        found = float(np.exp(negative))
    if not np.isfinite(found):
        logger.warning(
            "the perplexity is infinite, because the log likelihood per token is %.4g nats; the model does not fit "
            "these documents, so try a lower `learning_rate`",
            -negative,
        )
    return Measured(found, **settings)
