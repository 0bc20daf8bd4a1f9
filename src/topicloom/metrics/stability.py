"""Stability: whether a model finds the same topics again when it is fitted with another seed.

The topics of two runs are matched one to one by the Hungarian method, so that their distances have the least sum. All
pairs of runs are compared, after Hoyle et al. 2022. The distance is the square root of the Jensen-Shannon divergence
to base 2. It is a metric (Endres & Schindelin 2003) from 0 (the same topic) to 1 (no word in common).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from .measured import Measured, check_top_n

Array = npt.NDArray[Any]

DISTANCE = "square root of the Jensen-Shannon divergence, base 2"


class Matching(NamedTuple):
    """Topics of two runs, matched one to one. If one run has more topics, some of them are in no pair.

    Attributes:
        first: (n,) topics of the first run, rising.
        second: (n,) their partners in the second run.
        distance: (n,) distances within the pairs, from 0 to 1.

    Examples:
        >>> import numpy as np
        >>> from topicloom.metrics import Matching
        >>> Matching(np.array([0, 1]), np.array([1, 0]), np.array([0.1, 0.2])).second.tolist()
        [1, 0]
    """

    first: Array
    second: Array
    distance: Array


@dataclass(frozen=True)
class Stability:
    """How stable topics are over runs: means over all pairs of runs.

    Attributes:
        distance: mean distance between matched topics, from 0 to 1.
        returning_by_distance: share of topics whose partner is nearer than `threshold`.
        returning_by_words: share of topics whose partner has at least half of their `top_n` words.
        threshold, top_n: the settings of these two shares.
        runs: the number of runs.
        topics: the number of topics in the largest run.
        pair_distances: the mean distance for each pair of runs (0, 1), (0, 2), ... Pairs with a run in common are not
            independent, so that their spread is no standard error of `distance`.

    Examples:
        >>> import numpy as np
        >>> from topicloom.metrics import stability
        >>> stability([np.eye(2), np.eye(2)[::-1]], top_n=1).to_dict()["returning_by_words"]
        1.0
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
        """Return all fields as values for JSON, with the name of the distance."""
        return asdict(self) | {"pair_distances": list(self.pair_distances), "measure": DISTANCE}


def jensen_shannon(p: Array, q: Array) -> Array:
    """Return the distances between every topic of p and every topic of q.

    Args:
        p: (K, V) topics; each row is normalised. A row of zeros has distance 1 from every topic.
        q: (L, V) other topics.

    Returns:
        (K, L) square roots of the Jensen-Shannon divergence to base 2, from 0 (the same topic) to 1 (no common word).

    Raises:
        InputError: the vocabularies differ in size, or an entry is negative or not finite.

    Source: Endres & Schindelin 2003, who show that this is a metric.

    Examples:
        >>> import numpy as np
        >>> from topicloom.metrics import jensen_shannon
        >>> jensen_shannon(np.array([[1.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])).tolist()
        [[0.0, 1.0]]
    """
    from scipy.special import rel_entr

    first, second = _distributions(p), _distributions(q)
    if first.shape[1] != second.shape[1]:
        raise InputError(
            f"topics over {first.shape[1]} and over {second.shape[1]} words cannot be compared; use one vocabulary"
        )
    distances = np.empty((len(first), len(second)))
    for row, topic in zip(distances, first, strict=True):  # one topic against all others: (L, V) at a time
        middle = (topic + second) / 2
        divergence = (rel_entr(topic, middle) + rel_entr(second, middle)).sum(axis=1) / (2 * np.log(2))
        row[:] = np.sqrt(np.clip(divergence, 0, 1))
    distances[first.sum(axis=1) == 0] = 1.0
    distances[:, second.sum(axis=1) == 0] = 1.0
    return distances


def match_topics(p: Array, q: Array) -> Matching:
    """Match the topics of two runs in min(K, L) pairs, so that the sum of distances is minimal.

    The distance is the square root of the Jensen-Shannon divergence to base 2. The assignment is found by the Hungarian
    method.

    Args:
        p: (K, V) topics; each row is normalised.
        q: (L, V) topics of another run over the same words.

    Raises:
        InputError: the vocabularies differ in size, or an entry is negative or not finite.

    Examples:
        >>> import numpy as np
        >>> from topicloom.metrics import match_topics
        >>> match_topics(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.0, 1.0], [1.0, 0.0]])).second.tolist()
        [1, 0]
    """
    distances = jensen_shannon(p, q)
    from scipy.optimize import linear_sum_assignment  # which takes long to import, and few measures need

    first, second = linear_sum_assignment(distances)
    return Matching(first, second, distances[first, second])


def topic_distance(topic_word: Array, others: Sequence[Array]) -> Measured:
    """Mean distance between the topics of one run and their partners in other runs.

    Args:
        topic_word: (K, V) the topics of the run.
        others: one or more matrices (L, V) of other runs.

    Raises:
        InputError: there are no other runs, the vocabularies differ in size, or an entry is negative or not finite.

    Examples:
        >>> import numpy as np
        >>> from topicloom.metrics import topic_distance
        >>> topic_distance(np.eye(2), [np.eye(2)[::-1]])
        0.0
    """
    if not len(others):
        raise InputError("there is no other run to compare topics with")
    distances = [match_topics(topic_word, other).distance.mean() for other in others]
    return Measured(float(np.mean(distances)), distance=DISTANCE, runs=len(others) + 1)


def stability(
    runs: Sequence[Array], top_words: Sequence[Array] | None = None, threshold: float = 0.5, top_n: int = 10
) -> Stability:
    """Measure how similar the topics of runs with different seeds are.

    Args:
        runs: two or more topic-word matrices (K, V) over the same vocabulary; K may differ. A topic without a partner
            does not return, and has no distance.
        top_words: (K, n) word ids of each run, best first; None ranks words by probability.
        threshold: the distance below which a topic counts as returning.
        top_n: the number of words of two topics that are compared.

    Raises:
        InputError: fewer than two runs, a run without topics, matrices that cannot be compared, or `top_words` that are
            not those of the runs.

    Source: after Hoyle et al. 2022, who match the topics of all pairs of runs.

    Examples:
        >>> import numpy as np
        >>> from topicloom.metrics import stability
        >>> found = stability([np.eye(3), np.eye(3)[[2, 0, 1]]], top_n=1)
        >>> found.distance, found.returning_by_distance, found.runs
        (0.0, 1.0, 2)
    """
    runs = [_numbers(run) for run in runs]
    if len(runs) < 2:
        raise InputError(f"stability compares two runs or more; {len(runs)} given")
    if not all(run.size for run in runs):
        raise InputError("a run without topics cannot be compared")
    check_top_n(top_n)
    if top_words is None:
        words = [np.argsort(-run, axis=1, kind="stable") for run in runs]
    else:
        words = [np.asarray(each) for each in top_words]
        if [each.shape[:1] for each in words if each.ndim == 2] != [(len(run),) for run in runs]:
            raise InputError("`top_words` should have for each run a (K, n) array with a row of words for each topic")
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


def _numbers(matrix: Any) -> Array:
    try:
        return np.asarray(matrix, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"topics should be a (K, V) matrix of numbers, such as `components_` of a model; these are of type "
            f"{type(matrix).__name__}"
        ) from None


def _distributions(matrix: Array) -> Array:
    matrix = _numbers(matrix)
    if matrix.ndim != 2 or not np.isfinite(matrix).all() or (matrix < 0).any():
        raise InputError("topics should be a (K, V) matrix of finite numbers that are not negative")
    totals = matrix.sum(axis=1, keepdims=True)
    shares: Array = np.divide(matrix, totals, out=np.zeros_like(matrix), where=totals > 0)
    return shares


def _shared_words(first: Array, second: Array) -> Array:
    """(n,) the share of the words in each row of `first` (n, m) that are also in the same row of `second`."""
    shares: Array = (first[:, :, None] == second[:, None, :]).any(axis=2).mean(axis=1)
    return shares
