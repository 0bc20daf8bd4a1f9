"""Whether topics come back when a model is fitted again with another seed.

Topics are matched one to one across runs, by the Hungarian method, so that the sum of their distances is least; of
several runs, all pairs are compared, after Hoyle et al. 2022. The distance is the square root of the Jensen-Shannon
divergence to base 2: a metric (Endres & Schindelin 2003) from 0, the same, to 1, no word in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from scipy.special import rel_entr

Array = npt.NDArray[Any]

DISTANCE = "square root of the Jensen-Shannon divergence, base 2"


class Matching(NamedTuple):
    """Topics of two runs, one to one; those of the larger run that are left over are in no pair."""

    first: Array  # (n,) topics of the one run, rising
    second: Array  # (n,) their partners in the other
    distance: Array  # (n,) between them, from 0 to 1


@dataclass(frozen=True)
class Stability:
    """How far topics came back, means over all pairs of runs.

    Attributes:
        distance: between matched topics, from 0 to 1.
        returning_by_distance: the share of topics whose partner is nearer than `threshold`.
        returning_by_words: the share whose partner has at least half of their `top_n` words.
        threshold, top_n: what the two shares depend on.
        runs, topics: how many runs, and topics in the largest.
        pair_distances: for each pair of runs, (0, 1), (0, 2), ..., its distance; their spread is the uncertainty.
    """

    distance: float
    returning_by_distance: float
    returning_by_words: float
    threshold: float
    top_n: int
    runs: int
    topics: int
    pair_distances: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """All of it, as JSON can hold it, with the distance by its name."""
        return asdict(self) | {"pair_distances": list(self.pair_distances), "measure": DISTANCE}


def jensen_shannon(p: Array, q: Array) -> Array:
    """(K, L) distance of every topic of p (K, V) from every topic of q (L, V), rows being distributions.

    Rows are normalised. One without mass is no distribution: it is at distance 1 from all.

    Raises:
        ValueError: the vocabularies differ in size, or an entry is negative or not finite.
    """
    first, second = _distributions(p), _distributions(q)
    if first.shape[1] != second.shape[1]:
        raise ValueError(f"topics of {first.shape[1]} and of {second.shape[1]} words cannot be compared")
    distances = np.empty((len(first), len(second)))
    for row, topic in zip(distances, first, strict=True):  # one against all: (L, V) at a time
        middle = (topic + second) / 2
        divergence = (rel_entr(topic, middle) + rel_entr(second, middle)).sum(axis=1) / (2 * np.log(2))
        row[:] = np.sqrt(np.clip(divergence, 0, 1))
    distances[first.sum(axis=1) == 0] = 1.0
    distances[:, second.sum(axis=1) == 0] = 1.0
    return distances


def match_topics(p: Array, q: Array) -> Matching:
    """The pairs of topics of p (K, V) and q (L, V) whose distances have the least sum; min(K, L) of them."""
    distances = jensen_shannon(p, q)
    first, second = linear_sum_assignment(distances)
    return Matching(first, second, distances[first, second])


def stability(
    runs: Sequence[Array], top_words: Sequence[Array] | None = None, threshold: float = 0.5, top_n: int = 10
) -> Stability:
    """How far the topics of runs with different seeds are the same.

    Args:
        runs: two or more topic-word matrices, (K, V) each, over one vocabulary; K may differ. A topic of the larger
            run that is left without a partner does not return, and has no distance.
        top_words: (K, n) word ids of each run, best first; None ranks words by probability.
        threshold: the distance below which a topic counts as come back.
        top_n: how many words of two topics are compared.

    Raises:
        ValueError: fewer than two runs, a run without topics, or matrices that cannot be compared.

    Source: after Hoyle et al. 2022, who match the topics of all pairs of runs.
    """
    if len(runs) < 2:
        raise ValueError(f"stability compares two runs or more; there is {len(runs)}")
    if not all(len(run) for run in runs):
        raise ValueError("a run without topics cannot be compared")
    words = [np.argsort(-run, axis=1, kind="stable") for run in runs] if top_words is None else top_words
    rows = []
    for one, other in combinations(range(len(runs)), 2):
        matching = match_topics(runs[one], runs[other])
        n_topics = max(len(runs[one]), len(runs[other]))
        shared = _shared_words(words[one][matching.first, :top_n], words[other][matching.second, :top_n])
        near = matching.distance < threshold
        rows.append((matching.distance.mean(), near.sum() / n_topics, (shared >= 0.5).sum() / n_topics))
    distance, by_distance, by_words = np.mean(rows, axis=0).tolist()
    return Stability(
        distance,
        by_distance,
        by_words,
        threshold=threshold,
        top_n=top_n,
        runs=len(runs),
        topics=max(map(len, runs)),
        pair_distances=tuple(float(row[0]) for row in rows),
    )


def _distributions(matrix: Array) -> Array:
    matrix = np.asarray(matrix, dtype=np.float64)
    if matrix.ndim != 2 or not np.isfinite(matrix).all() or (matrix < 0).any():
        raise ValueError("topics should be a (K, V) matrix of finite numbers from 0")
    totals = matrix.sum(axis=1, keepdims=True)
    shares: Array = np.divide(matrix, totals, out=np.zeros_like(matrix), where=totals > 0)
    return shares


def _shared_words(first: Array, second: Array) -> Array:
    """(n,) the share of the words of each row of `first` (n, m) that the same row of `second` has."""
    shares: Array = (first[:, :, None] == second[:, None, :]).any(axis=2).mean(axis=1)
    return shares
