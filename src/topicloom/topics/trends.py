"""Topics over time: their shares in each period, which of them rise or fall, and which have bursts.

Both tests are random-effects regressions of the shares by period (Thompson & Sharp 1999), as in a meta-analysis with
periods for studies. The variance of a share consists of the variance of its documents, which is known from their
number, and of the variance between periods, which all topics estimate together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ..messages import counted
from ..ranking import chosen_topics, names_or_numbers
from ..settings import require_whole
from .periods import Periods, periods_of
from .shares import GroupShares, group_shares, holm, normal_scores, share_cells, theta_errors
from .table import Table

Array = npt.NDArray[Any]
Direction = Literal["rising", "falling", "steady", "too few periods"]
FEWEST_PERIODS = 5  # with enough documents, for a test of trends
FEWEST_FOR_BURSTS = 6
_SPARSE_PART, _MOST_SPARSE = 0.1, 30  # periods with fewer documents than this part of the median, but at most so many
_LONGEST_BURST = 1 / 3  # of all periods
_FEWEST_OUTSIDE = 4  # periods
_MOST_LENGTHS = 24  # of bursts that are tried; in long series, not every length
_BISECTIONS = 60
_FEWEST_POOLED = 5  # topics whose variances are pooled
_MOST_FREEDOM = 10  # of the pooled variance, as a multiple of those of one topic
# The third cumulant of the variation between periods, as a multiple of its variance squared over the mean: that of a
# log-normal distribution, for small variation.
_SKEWNESS_BETWEEN = 3.0
_OFFSET = 0.1  # part of its mean that is added to a share before its logarithm is taken, as it may be 0


# Topics over time.


@dataclass(frozen=True)
class Trend:
    """How the share of a topic changes from period to period.

    Attributes:
        topic: its number.
        slope: the change of its share per period, by the regression of `topic_trends`; None with fewer than two
            periods.
        tau: Kendall's rank correlation of share and time, from -1 to 1; None where it is not defined.
        p: of the test that the share does not change, two-sided (see `topic_trends`); None where there is no test.
        p_holm: p corrected after Holm (1979) for the tests of all topics.
        direction: "rising" or "falling" if `p_holm` is below the level of the test, else "steady"; "too few periods" if
            fewer than 5 periods have enough documents for a test.
    """

    topic: int
    slope: float | None
    tau: float | None
    p: float | None
    p_holm: float | None
    direction: Direction


@dataclass(frozen=True)
class Burst:
    """The consecutive periods in which the share of a topic is most clearly above that of all other periods.

    Attributes:
        topic: its number.
        first, last: the positions of these periods.
        share: the share of the topic in these periods.
        share_elsewhere: the share in the others.
        p: of the test that the share is the same (see `topic_bursts`), corrected for all choices of periods.
        p_holm: p corrected after Holm (1979) for the tests of all topics.
        is_found: whether `p_holm` is below the level of the test.
    """

    topic: int
    first: int
    last: int
    share: float
    share_elsewhere: float
    p: float
    p_holm: float
    is_found: bool


@dataclass(frozen=True, eq=False, repr=False)
class OverTime:
    """Shares of topics by period.

    Attributes:
        periods: the P periods.
        shares: mean, low and high, (P, K), and n_docs, (P,). A period without a document has NaN.
        names: the K names of the topics.
        trends: one for each topic.
        bursts: one for each topic; empty if there are too few periods.
        sparse: (P,) True for a period with too few documents, which is left out of the tests.
        min_documents: the number of documents from which a period is not sparse.
        n_unknown: the number of documents that are left out because their time or all their words are unknown, or
            because their time is in no period.
    """

    periods: Periods
    shares: GroupShares
    names: list[str]
    trends: list[Trend]
    bursts: list[Burst]
    sparse: npt.NDArray[np.bool_]
    min_documents: int = 1
    n_unknown: int = 0

    @property
    def period(self) -> str:
        """The length of a period, such as "month" or "2 weeks"; "bins" for bins."""
        return self.periods.unit

    @property
    def starts(self) -> npt.NDArray[np.datetime64]:
        """(P,) when each period begins, without a gap: datetime64[D], or datetime64[m] for hours."""
        return self.periods.starts

    @property
    def period_names(self) -> list[str]:
        """The P names of the periods, such as 2024-05."""
        return self.periods.names

    @property
    def n_tested(self) -> int:
        """The number of periods with enough documents for the tests."""
        return int((~self.sparse & (self.shares.n_docs > 0)).sum())

    @property
    def rising(self) -> list[int]:
        """The topics that rise, by their slope."""
        return self._moving("rising")

    @property
    def falling(self) -> list[int]:
        """The topics that fall, by their slope."""
        return self._moving("falling")

    @property
    def bursting(self) -> list[int]:
        """The topics with a burst, the clearest first."""
        return [each.topic for each in sorted(self.bursts, key=lambda each: each.p) if each.is_found]

    def _moving(self, direction: Direction) -> list[int]:
        found = [trend for trend in self.trends if trend.direction == direction]
        return [trend.topic for trend in sorted(found, key=lambda trend: -abs(trend.slope or 0))]

    def span(self, burst: Burst) -> str:
        """Return the names of the periods of a burst, such as "2024-05 to 2024-06"."""
        first, last = self.period_names[burst.first], self.period_names[burst.last]
        return first if first == last else f"{first.split(' to ')[0]} to {last.split(' to ')[-1]}"

    def table(self, topics: Sequence[int] | None = None) -> Table:
        """Return a row for each topic and period.

        The columns are period, start, topic, name, share, low, high, documents and sparse; and sampling_error and
        theta_error, the standard errors by the choice of documents and, at least, by the uncertainty of theta
        (`shares.theta_errors`), if the lengths of the documents are known.

        Args:
            topics: these topics only.

        Raises:
            SettingError: there is no such topic.
        """
        chosen = chosen_topics(topics, len(self.names))
        labels, days = self.period_names, self.starts.tolist()
        sparse = self.sparse.tolist()
        rows = [
            {
                "period": labels[t], "start": days[t], **share_cells(self.shares, t, k, self.names),
                "sparse": sparse[t], **self._errors(t, k),
            }
            for k in chosen
            for t in range(len(labels))
        ]  # fmt: skip
        return Table.of(rows, f"Shares of topics by {self.period}")

    def _errors(self, period: int, topic: int) -> dict[str, float | None]:
        """Return the cells of the standard errors."""
        named = {"sampling_error": self.shares.sampling_error, "theta_error": self.shares.theta_error}
        if any(each is None for each in named.values()):
            return {}
        cells = {name: float(each[period, topic]) for name, each in named.items() if each is not None}
        return {name: value if np.isfinite(value) else None for name, value in cells.items()}

    def trend_table(self) -> Table:
        """Return a row for each topic, those that rise most first.

        The columns are topic, name, trend, the slope as "change per" period (such as "change per month"), tau, p,
        p_holm; then the periods of its burst or None, and p_holm of the test for bursts as burst_p_holm.
        """
        still = ("steady", "too few periods")
        ranked = sorted(self.trends, key=lambda trend: (trend.direction in still, -(trend.slope or 0), trend.topic))
        bursts = {each.topic: each for each in self.bursts}
        rows = []
        for trend in ranked:
            burst = bursts.get(trend.topic)
            rows.append(
                {
                    "topic": trend.topic,
                    "name": self.names[trend.topic],
                    "trend": trend.direction,
                    f"change per {'bin' if self.period == 'bins' else self.period}": trend.slope,
                    "tau": trend.tau,
                    "p": trend.p,
                    "p_holm": trend.p_holm,
                    "burst": self.span(burst) if burst is not None and burst.is_found else None,
                    "burst_p_holm": None if burst is None else burst.p_holm,
                }
            )
        return Table.of(rows, "Trends and bursts of topics (p_holm is corrected for all topics)")

    def burst_table(self) -> Table:
        """Return a row for each topic, the clearest burst first.

        The columns are topic, name, periods, share, share_elsewhere, p, p_holm and found.
        """
        rows = [
            {
                "topic": each.topic, "name": self.names[each.topic], "periods": self.span(each), "share": each.share,
                "share_elsewhere": each.share_elsewhere, "p": each.p, "p_holm": each.p_holm, "found": each.is_found,
            }
            for each in sorted(self.bursts, key=lambda each: (each.p, each.topic))
        ]  # fmt: skip
        columns = ("topic", "name", "periods", "share", "share_elsewhere", "p", "p_holm", "found")
        return Table.of(rows, "Bursts of topics (p_holm is corrected for all topics)", columns)

    def __repr__(self) -> str:
        one, of = ("bin", "") if self.period == "bins" else ("period", f" of a {self.period}")
        if self.period[0].isdigit():
            of = f" of {self.period}"
        return (
            f"OverTime({counted(len(self.starts), one)}{of}, {len(self.names)} topics, "
            f"{len(self.rising)} rising, {len(self.falling)} falling, {len(self.bursting)} with a burst)"
        )

    def _repr_html_(self) -> str:
        return self.trend_table()._repr_html_()


def over_time(
    theta: Array,
    times: npt.NDArray[np.datetime64] | None,
    period: str = "auto",
    *,
    bins: Any = None,
    start: Any = None,
    end: Any = None,
    min_documents: int | None = None,
    empty: npt.NDArray[np.bool_] | None = None,
    n_tokens: Array | None = None,
    names: Sequence[str] | None = None,
    level: float = 0.95,
    n_samples: int = 1000,
    random_state: int = 0,
) -> OverTime:
    """Return the shares of topics by period, and which topics rise, fall or have a burst.

    Args:
        theta: (n_docs, K) topic shares.
        times: (n_docs,) the times of the documents, NaT where unknown.
        period: the length of a period, such as "month", "2 weeks" or "auto"; see `periods_of`.
        bins: in place of `period`, a number of bins or the dates that divide them.
        start, end: documents before `start` and after `end` are left out.
        min_documents: a period with fewer documents is sparse, and left out of the tests. None is a tenth of the
            median of all periods with documents, and at most 30.
        empty: (n_docs,) True for documents without a known word, which are left out.
        n_tokens: (n_docs,) how many tokens of each document the model knows, for the uncertainty of theta.
        names: the K names of the topics.
        level: the probability of the intervals; the tests have the level 1 - `level`.
        n_samples: the number of bootstrap samples.
        random_state: a seed.

    Raises:
        InputError: no document has a time, or none is in the time asked for.
        SettingError: an argument cannot have its value.
    """
    if min_documents is not None:
        require_whole("min_documents", min_documents)
    periods = periods_of(times, period, bins=bins, start=start, end=end)
    codes = periods.codes if empty is None else np.where(empty, -1, periods.codes)
    shares = group_shares(
        theta, codes, len(periods.starts), level=level, n_samples=n_samples, random_state=random_state
    )
    if n_tokens is not None:
        shares = shares._replace(theta_error=theta_errors(theta, np.asarray(n_tokens), codes, len(periods.starts)))
    if min_documents is None:
        min_documents = _least_documents(shares.n_docs)
    sparse = shares.n_docs < min_documents
    spread = within_periods(theta, codes, shares)
    kept = shares._replace(mean=np.where(sparse[:, None], np.nan, shares.mean))
    return OverTime(
        periods, shares, names_or_numbers(names, theta.shape[1]), topic_trends(kept, spread, 1 - level),
        topic_bursts(kept, spread, 1 - level), sparse, min_documents, int((codes < 0).sum()),
    )  # fmt: skip


def _least_documents(n_docs: Array) -> int:
    """Return the number of documents from which a period is not sparse."""
    full = n_docs[n_docs > 0]
    return max(1, min(_MOST_SPARSE, int(np.ceil(_SPARSE_PART * np.median(full))))) if len(full) else 1


class Spread(NamedTuple):
    """The second and third cumulant of theta around the means of its periods, both (K,)."""

    variance: Array
    third: Array


def within_periods(theta: Array, codes: Array, shares: GroupShares) -> Spread:
    """Return how the topics of documents vary within periods.

    Args:
        theta: (n_docs, K) topic shares.
        codes: (n_docs,) the period of each document, from 0 to P - 1; -1 for a document in none.
        shares: the shares by period.
    """
    inside = np.flatnonzero(codes >= 0)
    periods = codes[inside]
    n = shares.n_docs[shares.n_docs > 0].astype(np.float64)
    of_second, of_third = (n - 1).sum(), ((n - 1) * (n - 2) / n).sum()
    variance, third = np.zeros(theta.shape[1]), np.zeros(theta.shape[1])
    for topic in range(theta.shape[1]):
        deviations = theta[inside, topic] - shares.mean[periods, topic]
        variance[topic] = (deviations**2).sum() / max(of_second, 1)
        third[topic] = (deviations**3).sum() / of_third if of_third > 0 else 0
    return Spread(variance, third)


def topic_trends(shares: GroupShares, spread: Spread, level: float = 0.05) -> list[Trend]:
    """Test which topics rise or fall.

    The share of a topic in each period is regressed on time, with random effects of the periods (Thompson & Sharp
    1999). The variance of a share is that of theta within periods, divided by the number of documents, plus the
    variance tau^2 between periods. Five topics or more estimate it together: tau is the same part of the mean share of
    each topic. Of fewer topics, each has its own (Paule & Mandel 1982). The test is that of Knapp & Hartung (2003), a
    t-test with P - 2 degrees of freedom, in which the variance of a topic is shrunk to that of all topics by empirical
    Bayes (Smyth 2004). The more alike the topics are in it, the more degrees of freedom this adds. Thus many documents
    make the test sharper, but documents of a period need not be independent: what they have in common, such as an
    event, is in tau^2. The variance does not depend on the share itself, since the share of a rare topic would
    otherwise seem to grow with the number of documents.

    The p-values of all topics are corrected after Holm, so that with no trend in any topic, the chance that even one is
    called rising or falling is about `level` at most. The test assumes that periods are independent. If topics come in
    waves that are longer than a period, it finds too many trends; choose a longer period.

    Args:
        shares: shares by period; a period whose mean is NaN is left out.
        spread: how topics vary within periods.
        level: the chance of any false positive.
    """
    place = np.flatnonzero(np.isfinite(shares.mean).all(axis=1))
    n_topics = shares.mean.shape[1]
    if len(place) < 2:
        return [Trend(topic, None, None, None, None, "too few periods") for topic in range(n_topics)]
    y, sampling = shares.mean[place], _sampling(spread, shares.n_docs[place])
    design = np.column_stack([np.ones(len(place)), place - place.mean()])
    between = _between(y, sampling, design)
    fit = _regression(y, sampling, design, between)
    slopes = fit.coefficients[:, 1]
    taus = [_kendall(place, each) for each in y.T]
    varies = np.ptp(y, axis=0) > 1e-9  # the rest is rounding, as where one topic has all shares
    p_values: list[float | None] = [None] * n_topics
    if len(place) >= FEWEST_PERIODS:
        from scipy.stats import t as student

        own = len(place) - 2
        prior = _variance_prior(fit.ratio[varies], own)
        error = np.sqrt(np.linalg.inv(fit.information)[:, 1, 1] * prior.moderated(fit.ratio, own))
        statistic = np.divide(slopes, error, out=np.full(n_topics, np.inf), where=error > 0)
        two_sided = 2 * student.sf(np.abs(statistic), own + prior.freedom)
        p_values = [float(p) if one else None for p, one in zip(two_sided, varies, strict=True)]
    trends = []
    for topic, adjusted in enumerate(holm(p_values)):
        direction: Direction = "steady" if len(place) >= FEWEST_PERIODS else "too few periods"
        if adjusted is not None and adjusted < level:
            direction = "rising" if slopes[topic] > 0 else "falling"
        trends.append(Trend(topic, float(slopes[topic]), taus[topic], p_values[topic], adjusted, direction))
    return trends


def topic_bursts(shares: GroupShares, spread: Spread, level: float = 0.05) -> list[Burst]:
    """Test which topics have a burst: a share above the others in some consecutive periods, at most a third of all.

    Every choice of consecutive periods is compared with the periods outside, with the variances of `topic_trends` and a
    t-test whose variance comes from the periods outside, shrunk as there. If the topics differ so much that all of them
    add fewer degrees of freedom than a topic has, no variance is made smaller. With fewer than five topics, it is at
    least that by the documents. The difference is first made normal by the cube-root transformation of Wilson &
    Hilferty (1931), with its skewness, because the share of a rare topic is a mean of few large and many small numbers.
    As shares vary between periods by factors, their logarithms are tested too, and p is the larger of both. The
    smallest p is multiplied by the number of choices (Bonferroni), and then corrected after Holm for all topics.

    Args:
        shares: shares by period; a period whose mean is NaN is left out.
        spread: how topics vary within periods.
        level: the chance of any false positive.

    Returns:
        one for each topic; none if fewer than 6 periods have a share.
    """
    place = np.flatnonzero(np.isfinite(shares.mean).all(axis=1))
    if len(place) < FEWEST_FOR_BURSTS:
        return []
    y, n_docs = shares.mean[place], shares.n_docs[place].astype(np.float64)[:, None]
    sampling = _sampling(spread, shares.n_docs[place])
    ones = np.ones((len(place), 1))
    varies = np.ptp(y, axis=0) > 1e-9
    between = _between(y, sampling, ones)
    p_values, first, last = _best_windows(y, n_docs, spread, between, varies)
    if y.shape[1] < _FEWEST_POOLED:  # once more, with the variance between the periods outside of the burst
        order = np.arange(len(place))[:, None]
        sampling[(order >= first) & (order <= last)] = np.inf
        between = _between(y, sampling, ones)
        p_values, first, last = _best_windows(y, n_docs, spread, between, varies)
    corrected = holm([float(p) if one else 1.0 for p, one in zip(p_values, varies, strict=True)])
    bursts = []
    for topic, adjusted in enumerate(corrected):
        inside = np.zeros(len(place), bool)
        inside[first[topic] : last[topic] + 1] = True
        share, elsewhere = (np.average(y[part, topic], weights=n_docs[part, 0]) for part in (inside, ~inside))
        p = float(p_values[topic]) if varies[topic] else 1.0
        assert adjusted is not None
        bursts.append(
            Burst(
                topic, int(place[first[topic]]), int(place[last[topic]]), float(share), float(elsewhere), p, adjusted,
                adjusted < level,
            )
        )  # fmt: skip
    return bursts


def _best_windows(
    y: Array, n_docs: Array, spread: Spread, between: Array, varies: npt.NDArray[np.bool_]
) -> tuple[Array, Array, Array]:
    """Return the p-value of the clearest burst of each topic, times the number of choices, and its ends, all (K,).

    Args:
        y: (P, K) shares.
        n_docs: (P, 1) documents.
        spread: how topics vary within periods.
        between: (K,) the variance between periods.
        varies: (K,) False for topics whose share does not change.
    """
    n_periods, n_topics = y.shape
    mean = np.maximum((n_docs * y).sum(axis=0) / n_docs.sum(), 1e-12)
    sampling = _sampling(spread, n_docs[:, 0])
    weights = 1 / (sampling + between)
    skewed = weights**3 * (spread.third / n_docs**2 + _SKEWNESS_BETWEEN * between**2 / mean)
    of_shares = _running_sums(weights, y, skewed)
    # On the logarithmic scale, on which variation by factors is normal.
    offset = _OFFSET * mean
    of_logarithms = _running_sums(weights * (mean + offset) ** 2, np.log(y + offset), np.zeros_like(y))
    priors = []
    for sums in (of_shares, of_logarithms):
        total = [each[-1] for each in sums]
        ratio = np.maximum(total[2] - total[1] ** 2 / total[0], 0) / (n_periods - 1)
        priors.append(_variance_prior(ratio[varies], n_periods - 1))
    longest = max(1, min(int(n_periods * _LONGEST_BURST), n_periods - _FEWEST_OUTSIDE))
    lengths = np.arange(1, longest + 1)
    if longest > _MOST_LENGTHS:
        lengths = np.unique(np.round(np.geomspace(1, longest, _MOST_LENGTHS)).astype(int))
    best, first, last = np.full(n_topics, np.inf), np.zeros(n_topics, int), np.zeros(n_topics, int)
    for length in lengths.tolist():
        both = zip((of_shares, of_logarithms), priors, strict=True)
        p = np.maximum(*(_p_of_windows(sums, length, prior) for sums, prior in both))  # (beginnings, K)
        place = p.argmin(axis=0)
        smallest = p[place, np.arange(n_topics)]
        better = smallest < best
        best = np.where(better, smallest, best)
        first, last = np.where(better, place, first), np.where(better, place + length - 1, last)
    n_choices = int((n_periods - lengths + 1).sum())
    return np.minimum(best * n_choices, 1), first, last


def _running_sums(weights: Array, y: Array, skewed: Array) -> list[Array]:
    """Return the sums of some terms up to each period, (P + 1, K) each."""
    terms = (weights, weights * y, weights * y**2, skewed)
    return [np.vstack([np.zeros(y.shape[1]), np.cumsum(each, axis=0)]) for each in terms]


def _p_of_windows(sums: list[Array], length: int, prior: _VariancePrior) -> Array:
    """Return the p-values of the bursts of a length, by the period in which they begin and by topic."""
    from scipy.stats import t as student

    n_periods = len(sums[0]) - 1
    begins = np.arange(n_periods - length + 1)
    inside = [each[begins + length] - each[begins] for each in sums]
    outside = [each[-1] - part for each, part in zip(sums, inside, strict=True)]
    freedom = n_periods - length - 1
    ratio = np.maximum(outside[2] - outside[1] ** 2 / outside[0], 0) / freedom
    error = np.sqrt(1 / inside[0] + 1 / outside[0])
    difference = (inside[1] / inside[0] - outside[1] / outside[0]) / error
    skewness = (inside[3] / inside[0] ** 3 - outside[3] / outside[0] ** 3) / error**3
    # If the topics differ much in their variance, none is made smaller: the largest share of a topic that varies much
    # would seem to be a burst.
    is_small = (ratio < prior.ratio) | (prior.freedom >= freedom)
    # Without a prior, a topic that only one document has would vary too little in the periods outside.
    least = 1e-12 if prior.freedom else prior.ratio
    scale = np.sqrt(np.maximum(np.where(is_small, prior.moderated(ratio, freedom), ratio), least))
    degrees = freedom + np.where(is_small, prior.freedom, 0)
    found: Array = student.sf(normal_scores(difference, skewness) / scale, degrees)
    return found


class _Fit(NamedTuple):
    """A regression of the shares of K topics with random effects of periods."""

    coefficients: Array  # (K, p)
    information: Array  # (K, p, p), the inverse of their covariance, but for `ratio`
    ratio: Array  # (K,) the weighted squares that remain, per degree of freedom


def _sampling(spread: Spread, n_docs: Array) -> Array:
    """Return the variances of the shares of n_docs documents, (P, K); never 0, so that weights are finite."""
    variances: Array = np.maximum(spread.variance, 1e-18) / np.maximum(n_docs, 1)[:, None]
    return variances


def _regression(y: Array, sampling: Array, design: Array, between: Array) -> _Fit:
    """Fit the regression, given the variance between periods.

    Args:
        y: (P, K) shares.
        sampling: (P, K) their variances by documents; infinite for a share that is left out.
        design: (P, p) the row of each period.
        between: (K,) the variance between periods.
    """
    weights = 1 / (sampling + between)
    information = np.einsum("pi,pk,pj->kij", design, weights, design)
    coefficients = np.linalg.solve(information, (design.T @ (weights * y)).T[:, :, None])[:, :, 0]
    squares = (weights * (y - design @ coefficients.T) ** 2).sum(axis=0)
    freedom = np.maximum(np.isfinite(sampling).sum(axis=0) - design.shape[1], 1)
    return _Fit(coefficients, information, squares / freedom)


def _between(y: Array, sampling: Array, design: Array) -> Array:
    """Return the variance between periods of each topic, (K,).

    It is c^2 times the square of the topic's mean share. With the common factor c, the median of the topics' `ratio` is
    that of a chi-squared variable. Of few topics, each has its own variance, with which its `ratio` is 1, or 0 (Paule &
    Mandel 1982).
    """
    from scipy.stats import chi2

    if y.shape[1] < _FEWEST_POOLED:
        lows, highs = np.zeros(y.shape[1]), np.maximum(len(y) * y.var(axis=0), 1e-18)
        is_zero = _regression(y, sampling, design, lows).ratio <= 1
        for _ in range(_BISECTIONS):
            middles = (lows + highs) / 2
            small = _regression(y, sampling, design, middles).ratio > 1
            lows, highs = np.where(small, middles, lows), np.where(small, highs, middles)
        own: Array = np.where(is_zero, 0, (lows + highs) / 2)
        return own

    freedom = max(len(y) - design.shape[1], 1)
    usual = float(chi2.median(freedom)) / freedom
    square: Array = y.mean(axis=0) ** 2

    def too_small(factor: float) -> bool:
        return bool(np.median(_regression(y, sampling, design, factor * square).ratio) > usual)

    low, high = 0.0, 1.0
    if not too_small(low):
        return np.zeros(len(square))
    while too_small(high) and high < 1e6:
        high *= 10
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if too_small(middle) else (low, middle)
    pooled: Array = (low + high) / 2 * square
    return pooled


class _VariancePrior(NamedTuple):
    """What all topics say about the variance of one: `freedom` degrees of freedom with the mean `ratio`."""

    ratio: float
    freedom: float

    def moderated(self, ratio: Array, freedom: float) -> Array:
        """Return the ratios of topics, each with its degrees of freedom, shrunk to the prior (Smyth 2004)."""
        mean: Array = (self.freedom * self.ratio + freedom * ratio) / (self.freedom + freedom)
        return mean


def _variance_prior(ratios: Array, freedom: int) -> _VariancePrior:
    """Return the prior by the moments of the logarithms of the ratios of all topics (Smyth 2004, section 6.2)."""
    from scipy.special import digamma, polygamma

    if len(ratios) < _FEWEST_POOLED:
        return _VariancePrior(1.0, 0.0)
    logs = np.log(np.maximum(ratios, 1e-5 * np.median(ratios) + 1e-300)) - digamma(freedom / 2) + np.log(freedom / 2)
    excess = float(logs.var(ddof=1) - polygamma(1, freedom / 2))
    most = _MOST_FREEDOM * freedom
    half = most / 2
    if excess > polygamma(1, half):  # which falls as the degrees of freedom grow
        low, high = 1e-3, half
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            low, high = (middle, high) if polygamma(1, middle) > excess else (low, middle)
        half = (low + high) / 2
    mean = float(np.exp(logs.mean() + digamma(half) - np.log(half)))
    return _VariancePrior(max(mean, 1.0), 2 * half)  # the variance is at least that by the documents


def _kendall(place: Array, series: Array) -> float | None:
    from scipy.stats import kendalltau

    if np.ptp(series) < 1e-9:  # rounding only, as where one topic has all shares
        return None
    return float(kendalltau(place, series).statistic)
