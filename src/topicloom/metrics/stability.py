"""Stability: whether a model finds the same topics again when it is fitted once more.

The topics of two runs are matched one to one by the Hungarian method. `stability` compares all pairs of runs by their
word distributions, after Hoyle et al. 2022: the distance is the square root of the Jensen-Shannon divergence to base 2.
It is a metric (Endres & Schindelin 2003) from 0 (the same topic) to 1 (no word in common). `topic_returns` says of each
topic of one run in which other runs it returns. It compares what is characteristic of topics (`topic_similarity`), so
that words that all topics have do not make all topics similar.
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

# The similarity from which on a topic returns. Five models were fitted to news with 20 topics, and other seeds. Of the
# partners with a similarity from .4 to .5, 52 to 81 % had half of their ten best words in common; of those from .2 to
# .3, 0 to 33 %. With words that exchanged their places, 99 % were below .14.
RETURN_THRESHOLD = 0.4
_SIMILAR_FREQUENCY = 25  # words whose places are exchanged to see how similar matched topics are by chance
_SAME_BY_CHANCE = 0.95  # the quantile of the similarities by chance
_CONFIDENCE = 0.95  # of the interval of the share of topics that return
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


def characteristic_words(topics: Array) -> Array:
    """Return what distinguishes each topic from the mean of all topics, (K, V); rows do not sum to 1.

    That is p(w|k) log(p(w|k) / p(w)) where it is positive; p(w) is the mean of the topics. A topic that equals the mean
    is returned as it is.

    Args:
        topics: (K, V) topics; each row is normalised.

    Examples:
        >>> import numpy as np
        >>> from topicloom.metrics.stability import characteristic_words
        >>> characteristic_words(np.array([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5]])).round(2)
        array([[0.  , 0.35, 0.  ],
               [0.  , 0.  , 0.35]])
    """
    p = topics.astype(np.float64)
    p /= np.maximum(p.sum(axis=1, keepdims=True), 1e-300)
    excess: Array = p * np.log(np.maximum(p, 1e-300) / np.maximum(p.mean(axis=0), 1e-300)).clip(0)
    flat = excess.sum(axis=1) < 1e-9
    excess[flat] = p[flat]
    return excess


def topic_similarity(p: Array, q: Array) -> Array:
    """Return the similarities between every topic of p and every topic of q, by what is characteristic of them.

    The similarity is 1 minus the square root of the Jensen-Shannon divergence (base 2) of p(w|k) log(p(w|k) / p(w))
    where it is positive, normalised; p(w) is the mean of a run's topics. Words that all topics have would otherwise
    make all topics similar.

    Args:
        p: (K, V) the topics of a run.
        q: (L, V) those of another one, over the same words.

    Returns:
        (K, L) from 0 (no characteristic word in common) to 1 (the same).

    Raises:
        InputError: the vocabularies differ in size, or an entry is negative or not finite.

    Examples:
        >>> import numpy as np
        >>> from topicloom.metrics import topic_similarity
        >>> topics = np.array([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5]])
        >>> topic_similarity(topics, topics)
        array([[1., 0.],
               [0., 1.]])
    """
    similarity: Array = 1 - jensen_shannon(*(characteristic_words(_distributions(each)) for each in (p, q)))
    return similarity


@dataclass(frozen=True, eq=False)
class TopicReturns:
    """In which other runs of a model the topics of one run return.

    Attributes:
        similarity: (K, R) how similar each topic is to its partner in each other run, from 0 to 1; 0 without a partner.
        partners: (K, R) the partners; -1 where the other run has fewer topics and none is left.
        threshold: the similarity from which on a topic returns.
        chance: the similarity that 95 % of matched topics stay below if words of similar frequency exchange their
            places at random in the other runs; NaN if it was not measured.

    Examples:
        >>> import numpy as np
        >>> from topicloom.metrics import topic_returns
        >>> topics = np.eye(3)
        >>> found = topic_returns(topics, [topics[[2, 0, 1]], np.eye(3)[[0, 1, 1]]])
        >>> found.shares.tolist(), round(found.mean, 3)
        ([1.0, 1.0, 0.5], 0.833)
    """

    similarity: Array
    partners: Array
    threshold: float
    chance: float

    @property
    def shares(self) -> Array:
        """(K,) the share of the other runs in which each topic returns."""
        shares: Array = (self.similarity >= self.threshold).mean(axis=1)
        return shares

    @property
    def mean(self) -> float:
        """The share of topics that return, a mean over the other runs."""
        return float(self.shares.mean())

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % confidence interval of the mean by Student's t over the other runs; None with a single one."""
        from scipy.stats import t

        by_run = (self.similarity >= self.threshold).mean(axis=0)  # (R,)
        if len(by_run) < 2:
            return None
        margin = float(t.ppf((1 + _CONFIDENCE) / 2, len(by_run) - 1) * by_run.std(ddof=1) / np.sqrt(len(by_run)))
        return max(self.mean - margin, 0.0), min(self.mean + margin, 1.0)

    def measured(self, **settings: Any) -> Measured:
        """Return the mean as a measured value, with the share of each topic.

        Args:
            settings: further settings of the value.
        """
        interval = self.interval
        known: dict[str, Any] = {} if interval is None else {"interval": f"{interval[0]:.2f} to {interval[1]:.2f}"}
        return Measured(
            self.mean, per_topic=self.shares, fits=self.similarity.shape[1] + 1, **settings, **known,
            threshold=self.threshold,
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Return everything as values for JSON."""
        low, high = self.interval or (None, None)
        return {
            "share": self.mean,
            "low": low,
            "high": high,
            "threshold": self.threshold,
            "chance": None if np.isnan(self.chance) else self.chance,
            "shares": self.shares.tolist(),
            "similarity": self.similarity.round(4).tolist(),
            "partners": self.partners.tolist(),
        }


def topic_returns(
    topic_word: Array,
    others: Sequence[Array],
    *,
    threshold: float = RETURN_THRESHOLD,
    n_chance: int = 3,
    random_state: int = 0,
) -> TopicReturns:
    """Find in which other runs of a model the topics of one run return.

    The topics of each other run are matched one to one with those of the first, so that the sum of their similarities
    (`topic_similarity`) is the greatest. A topic returns in a run if its partner there is similar enough.

    Args:
        topic_word: (K, V) the topics of the run.
        others: one or more matrices (L, V) of other runs over the same words.
        threshold: the similarity from which on a topic returns, from 0 to 1.
        n_chance: how often the words of each other run are exchanged to see how similar topics are by chance; 0 leaves
            that out.
        random_state: the seed of these exchanges.

    Raises:
        InputError: there are no other runs, the vocabularies differ in size, or an entry is negative or not finite.

    Examples:
        >>> import numpy as np
        >>> from topicloom.metrics import topic_returns
        >>> topics = np.random.default_rng(0).dirichlet(np.full(200, 0.05), 5)
        >>> found = topic_returns(topics, [topics[::-1]])
        >>> found.partners.ravel().tolist(), found.mean, bool(found.chance < 0.3)
        ([4, 3, 2, 1, 0], 1.0, True)
    """
    if not len(others):
        raise InputError("there is no other run to compare topics with")
    own = _distributions(topic_word)
    similarity = np.zeros((len(own), len(others)))
    partners = np.full(similarity.shape, -1)
    generator = np.random.default_rng(random_state)
    by_chance: list[Array] = []
    for run, other in enumerate(map(_distributions, others)):
        if not (len(own) and len(other)):
            raise InputError(f"{'the run' if not len(own) else f'run {run} of the others'} has no topics; leave it out")
        rows, columns, values = _most_similar(own, other)
        similarity[rows, run], partners[rows, run] = values, columns
        by_chance += [_most_similar(own, _exchanged(other, generator))[2] for _ in range(n_chance)]
    chance = float(np.quantile(np.concatenate(by_chance), _SAME_BY_CHANCE)) if by_chance else float("nan")
    return TopicReturns(similarity, partners, threshold, chance)


def _most_similar(p: Array, q: Array) -> tuple[Array, Array, Array]:
    """Match topics so that the sum of similarities is the greatest: the topics, their partners, and similarities."""
    from scipy.optimize import linear_sum_assignment

    similarity = topic_similarity(p, q)
    rows, columns = linear_sum_assignment(similarity, maximize=True)
    return rows, columns, similarity[rows, columns]


def _exchanged(topics: Array, generator: np.random.Generator) -> Array:
    """Return distributions (K, V) in which words of similar probability have exchanged their places."""
    order = np.argsort(-topics.mean(axis=0), kind="stable")
    places = order.copy()
    for start in range(0, len(order), _SIMILAR_FREQUENCY):
        part = slice(start, start + _SIMILAR_FREQUENCY)
        places[part] = generator.permutation(places[part])
    exchanged = np.empty_like(topics)
    exchanged[:, order] = topics[:, places]
    return exchanged


def returning_topics(topic_word: Array, others: Sequence[Array]) -> Measured:
    """Share of the topics of a run that return in other runs of the same model, as `topic_returns` finds them.

    Args:
        topic_word: (K, V) the topics of the run.
        others: one or more matrices (L, V) of other runs.

    Raises:
        InputError: there are no other runs, the vocabularies differ in size, or an entry is negative or not finite.

    Examples:
        >>> import numpy as np
        >>> from topicloom.metrics import returning_topics
        >>> returning_topics(np.eye(3), [np.eye(3)[[1, 0, 2]]])
        1.0
    """
    return topic_returns(topic_word, others, n_chance=0).measured()


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
