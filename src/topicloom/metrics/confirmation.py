"""How strongly words confirm each other, given counts of windows: the formulas that coherence measures share.

Source: Röder, Both & Hinneburg 2015, section 3.3.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def pmi(together: Floats, n_windows: int, epsilon: float) -> Floats:
    """(n, n) log((p(i, j) + epsilon) / (p(i) p(j))).

    Args:
        together: (n, n) windows that contain both words; the diagonal is above 0.
        n_windows: number of windows of the reference.
        epsilon: added to the share of windows that contain a pair.
    """
    joint = together / n_windows
    alone = np.diag(joint)
    return np.asarray(np.log((joint + epsilon) / np.outer(alone, alone)))


def npmi(together: Floats, n_windows: int, epsilon: float) -> Floats:
    """(n, n) pmi / -log(p(i, j) + epsilon); for a pair in every window the formula gives -1."""
    return np.asarray(pmi(together, n_windows, epsilon) / -np.log(together / n_windows + epsilon))


def npmi_without_epsilon(together: Floats, n_windows: int) -> Floats:
    """(n, n) NPMI with its limits: -1 for pairs in no window, 1 for pairs in every window."""
    joint = together / max(n_windows, 1)
    alone = np.diag(joint)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.log(joint / np.outer(alone, alone)) / -np.log(joint)
    values[joint == 0] = -1.0
    values[joint >= 1] = 1.0
    return np.asarray(values)


def mean_log_conditional(together: Floats, n_windows: int, epsilon: float) -> float:
    """Mean of log((p(i, j) + epsilon) / p(j)) over the pairs in which j ranks before i; 0 where j is in no window."""
    later, before = np.tril_indices(len(together), -1)
    given = together[before, before]
    seen = given > 0
    joint = together[later, before][seen] / n_windows
    return float(np.log((joint + epsilon) / (given[seen] / n_windows)).sum() / len(given))


def indirect_cosine(values: Floats, repeats: npt.NDArray[np.int64]) -> float:
    """Mean cosine between each word's vector of confirmations and the sum of all these vectors.

    Args:
        values: (n, n) direct confirmations among a topic's n different words.
        repeats: (n,) how often each word is in the topic. It counts as often in the mean, and as an entry of vectors.
    """
    vectors = values * repeats
    return float(np.average(cosines(vectors, repeats @ vectors), weights=repeats))


def cosines(vectors: Floats, other: Floats) -> Floats:
    """(n,) cosines between (n, L) vectors and one vector (L,); 0 where either is zero."""
    norms = np.linalg.norm(vectors, axis=1) * np.linalg.norm(other)
    return np.asarray(np.divide(vectors @ other, norms, out=np.zeros(len(vectors)), where=norms > 0))


def pair_mean(values: Floats) -> float:
    """Mean of a symmetric (n, n) array above its diagonal; 0 if there is no pair."""
    pairs = values[np.triu_indices(len(values), 1)]
    return float(pairs.mean()) if len(pairs) else 0.0
