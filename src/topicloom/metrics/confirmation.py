"""How strongly words confirm one another, from how often they meet: the formulas that coherence measures share.

Source: Röder, Both & Hinneburg 2015, section 3.3.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def pmi(together: Floats, n_windows: int, epsilon: float) -> Floats:
    """(n, n) log((p(i, j) + epsilon) / (p(i) p(j))).

    Args:
        together: (n, n) windows that hold both words; the diagonal is above 0.
        n_windows: of the reference.
        epsilon: added to the share of windows that hold a pair.
    """
    joint = together / n_windows
    alone = np.diag(joint)
    return np.asarray(np.log((joint + epsilon) / np.outer(alone, alone)))


def npmi(together: Floats, n_windows: int, epsilon: float) -> Floats:
    """(n, n) pmi / -log(p(i, j) + epsilon); -1 for words in every window, as the formula has it."""
    return np.asarray(pmi(together, n_windows, epsilon) / -np.log(together / n_windows + epsilon))


def npmi_without_epsilon(together: Floats, n_windows: int) -> Floats:
    """(n, n) with the limits of NPMI: -1 for words that never meet, 1 for words in every window."""
    joint = together / max(n_windows, 1)
    alone = np.diag(joint)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.log(joint / np.outer(alone, alone)) / -np.log(joint)
    values[joint == 0] = -1.0
    values[joint >= 1] = 1.0
    return np.asarray(values)


def mean_log_conditional(together: Floats, n_windows: int, epsilon: float) -> float:
    """Mean of log((p(i, j) + epsilon) / p(j)) over the pairs with j before i, with 0 where j was never seen."""
    later, before = np.tril_indices(len(together), -1)
    given = together[before, before]
    seen = given > 0
    joint = together[later, before][seen] / n_windows
    return float(np.log((joint + epsilon) / (given[seen] / n_windows)).sum() / len(given))


def indirect_cosine(values: Floats, repeats: npt.NDArray[np.int64]) -> float:
    """Mean cosine of each word's vector of confirmations with the sum of all of them.

    Args:
        values: (n, n) direct confirmations among a topic's n different words.
        repeats: (n,) how often each word is in the topic: a vector's entries are counted as often, and so is the word.
    """
    vectors = values * repeats
    return float(np.average(cosines(vectors, repeats @ vectors), weights=repeats))


def cosines(vectors: Floats, other: Floats) -> Floats:
    """(n,) cosines of (n, L) vectors with (L,) another; 0 where either is zero."""
    norms = np.linalg.norm(vectors, axis=1) * np.linalg.norm(other)
    return np.asarray(np.divide(vectors @ other, norms, out=np.zeros(len(vectors)), where=norms > 0))


def pair_mean(values: Floats) -> float:
    """Of a symmetric (n, n) above its diagonal; 0 without a pair."""
    pairs = values[np.triu_indices(len(values), 1)]
    return float(pairs.mean()) if len(pairs) else 0.0
