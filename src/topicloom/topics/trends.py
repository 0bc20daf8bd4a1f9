"""Topics over time: their shares in each period, and which of them rise or fall."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from ..errors import InputError, SettingError
from ..messages import nearest
from ..ranking import chosen_topics, names_or_numbers
from .shares import GroupShares, group_shares, holm, share_cells
from .table import Table

Array = npt.NDArray[Any]
Direction = Literal["rising", "falling", "steady"]
Period = Literal["auto", "day", "week", "month", "quarter", "year"]
_PERIODS_BY_LENGTH: tuple[Period, ...] = ("day", "week", "month", "quarter", "year")
_MONTHS_OF_PERIOD = {"month": 1, "quarter": 3, "year": 12}
_MOST_PERIODS = 20_000
_ALL_PAIRS = 300  # periods up to which the slopes of all pairs are computed
FEWEST_PERIODS = 5  # with documents; with four, no p-value is below 1/12
_MOST_BY_DEFAULT = 40  # periods, where the length of a period is chosen automatically

# Calendar periods.


def check_period(period: str) -> None:
    """Raise SettingError for a period that does not exist."""
    if period not in get_args(Period):
        raise SettingError(f"`period={period!r}` is unknown; {nearest(str(period), get_args(Period))}")


def periods_of(
    times: npt.NDArray[np.datetime64] | None, period: str = "auto"
) -> tuple[str, npt.NDArray[np.datetime64], npt.NDArray[np.intp]]:
    """Assign documents to calendar periods. Weeks begin on Monday.

    Args:
        times: (n_docs,) NaT where the time is unknown; None if no time is known.
        period: "day", "week", "month", "quarter" or "year". "auto" is the shortest of them that gives at most
            40 periods.

    Returns:
        the period; the first day of each of P periods, datetime64[D], from the first document to the last without a
        gap; and the period of each document, (n_docs,), -1 where the time is unknown.

    Raises:
        InputError: no time is known, or there would be too many periods.
        SettingError: there is no such period.
    """
    check_period(period)
    known = np.zeros(0, bool) if times is None else ~np.isnat(times)
    if times is None or not known.any():
        raise InputError(
            "no document has a time, so there is nothing to show over time; times are given when the corpus is made "
            "(`timestamps`)"
        )
    if period == "auto":
        few = (each for each in _PERIODS_BY_LENGTH if np.ptp(_numbers(times[known], each)) < _MOST_BY_DEFAULT)
        period = next(few, _PERIODS_BY_LENGTH[-1])
    numbers = _numbers(times[known], period)
    first, last = int(numbers.min()), int(numbers.max())
    if last - first >= _MOST_PERIODS:
        raise InputError(
            f"from the first document to the last there are {last - first + 1:,} periods of a {period}, which is too "
            "many; choose a longer `period`, or correct the times"
        )
    codes = np.full(len(times), -1, np.intp)
    codes[known] = numbers - first
    return period, _starts(np.arange(first, last + 1), period), codes


def period_name(start: np.datetime64, period: str) -> str:
    """Return the name of a period, such as 2024-05-03, 2024-W18, 2024-05, 2024-Q2 or 2024."""
    day = start.astype("datetime64[D]").item()
    if period == "week":
        year, week, _ = day.isocalendar()
        return f"{year}-W{week:02}"
    if period == "quarter":
        return f"{day.year}-Q{(day.month + 2) // 3}"
    return str(start.astype({"day": "M8[D]", "month": "M8[M]", "year": "M8[Y]"}[period]))


def _numbers(times: Any, period: str) -> npt.NDArray[np.int64]:
    """Number the periods since 1970, in which the first is 0."""
    if period in ("day", "week"):
        days: npt.NDArray[np.int64] = times.astype("datetime64[D]").astype(np.int64)
        return days if period == "day" else (days + 3) // 7  # 1970 began on a Thursday
    months = times.astype("datetime64[M]").astype(np.int64)
    found: npt.NDArray[np.int64] = months // _MONTHS_OF_PERIOD[period]
    return found


def _starts(numbers: npt.NDArray[np.int64], period: str) -> npt.NDArray[np.datetime64]:
    if period == "day":
        return numbers.astype("datetime64[D]")
    if period == "week":
        return (numbers * 7 - 3).astype("datetime64[D]")
    months = numbers * _MONTHS_OF_PERIOD[period]
    return months.astype("datetime64[M]").astype("datetime64[D]")


# Topics over time.


@dataclass(frozen=True)
class Trend:
    """How the share of a topic changes from period to period.

    Attributes:
        topic: its number.
        slope: the median change of its share per period (Theil & Sen); None with fewer than two periods.
        tau: Kendall's rank correlation of share and time, from -1 to 1; None where it is not defined.
        p: of the Mann-Kendall test that the periods are in no order, two-sided (see `topic_trends`); None where it is
            not defined.
        p_holm: p corrected after Holm (1979) for the tests of all topics.
        direction: "rising" or "falling" if `p_holm` is below the level of the test, and else "steady".
    """

    topic: int
    slope: float | None
    tau: float | None
    p: float | None
    p_holm: float | None
    direction: Direction


@dataclass(frozen=True, eq=False, repr=False)
class OverTime:
    """Shares of topics by period.

    Attributes:
        period: the length of a period.
        starts: (P,) the first day of each period, datetime64[D], without a gap.
        shares: mean, low and high, (P, K), and n_docs, (P,). A period without a document has NaN.
        names: the K names of the topics.
        trends: one for each topic.
        n_unknown: the number of documents that are left out because their time or all their words are unknown.
    """

    period: str
    starts: npt.NDArray[np.datetime64]
    shares: GroupShares
    names: list[str]
    trends: list[Trend]
    n_unknown: int = 0

    @property
    def rising(self) -> list[int]:
        """The topics that rise, by their slope."""
        return self._moving("rising")

    @property
    def falling(self) -> list[int]:
        """The topics that fall, by their slope."""
        return self._moving("falling")

    def _moving(self, direction: Direction) -> list[int]:
        found = [trend for trend in self.trends if trend.direction == direction]
        return [trend.topic for trend in sorted(found, key=lambda trend: -abs(trend.slope or 0))]

    @property
    def period_names(self) -> list[str]:
        """The P names of the periods, such as 2024-05."""
        return [period_name(start, self.period) for start in self.starts]

    def table(self, topics: Sequence[int] | None = None) -> Table:
        """Return a row for each topic and period: period, start, topic, name, share, low, high, documents.

        Args:
            topics: these topics only.

        Raises:
            SettingError: there is no such topic.
        """
        chosen = chosen_topics(topics, len(self.names))
        labels, days = self.period_names, self.starts.tolist()
        rows = [
            {"period": labels[t], "start": days[t], **share_cells(self.shares, t, k, self.names)}
            for k in chosen
            for t in range(len(labels))
        ]
        return Table.of(rows, f"Shares of topics by {self.period}")

    def trend_table(self) -> Table:
        """Return a row for each topic, those that rise most first.

        The columns are topic, name, trend, the slope as "change per" period (such as "change per month"), tau, p and
        p_holm.
        """
        ranked = sorted(self.trends, key=lambda trend: (trend.direction == "steady", -(trend.slope or 0), trend.topic))
        rows = [
            {
                "topic": trend.topic,
                "name": self.names[trend.topic],
                "trend": trend.direction,
                f"change per {self.period}": trend.slope,
                "tau": trend.tau,
                "p": trend.p,
                "p_holm": trend.p_holm,
            }
            for trend in ranked
        ]
        return Table.of(rows, "Rising and falling topics (Mann-Kendall test; p_holm is corrected for all topics)")

    def __repr__(self) -> str:
        return (
            f"OverTime({len(self.starts)} periods of a {self.period}, {len(self.names)} topics, "
            f"{len(self.rising)} rising, {len(self.falling)} falling)"
        )

    def _repr_html_(self) -> str:
        return self.trend_table()._repr_html_()


def over_time(
    theta: Array,
    times: npt.NDArray[np.datetime64] | None,
    period: str = "auto",
    *,
    empty: npt.NDArray[np.bool_] | None = None,
    names: Sequence[str] | None = None,
    level: float = 0.95,
    n_samples: int = 1000,
    random_state: int = 0,
) -> OverTime:
    """Return the shares of topics by period, and which topics rise or fall.

    Args:
        theta: (n_docs, K) topic shares.
        times: (n_docs,) the times of the documents, NaT where unknown.
        period: "day", "week", "month", "quarter" or "year". "auto" is the shortest of them that gives at most
            40 periods.
        empty: (n_docs,) True for documents without a known word, which are left out.
        names: the K names of the topics.
        level: the probability of the intervals; the tests have the level 1 - `level`.
        n_samples: the number of bootstrap samples.
        random_state: a seed.

    Raises:
        InputError: no document has a time.
        SettingError: an argument cannot have its value.
    """
    period, starts, codes = periods_of(times, period)
    if empty is not None:
        codes = np.where(empty, -1, codes)
    shares = group_shares(theta, codes, len(starts), level=level, n_samples=n_samples, random_state=random_state)
    found = topic_trends(shares.mean, 1 - level, corrected_for_skewness(theta, codes, shares.mean))
    return OverTime(period, starts, shares, names_or_numbers(names, theta.shape[1]), found, int((codes < 0).sum()))


def topic_trends(shares: Array, level: float = 0.05, corrected: Array | None = None) -> list[Trend]:
    """Test which topics rise or fall.

    The Mann-Kendall test compares the shares of all pairs of periods. It counts periods and not documents, because the
    documents of one period are not independent of each other: they are about the same events. Periods without
    documents are left out. The p-values of all topics are corrected after Holm, so that with no trend in any topic, the
    chance that even one is called rising or falling is about `level` at most. With fewer than 5 periods, all topics are
    steady.

    The share of a rare topic is a mean of few large and many small numbers. With few documents it is usually below its
    expectation, so that most topics seem to rise where the number of documents grows. If shares that are corrected for
    this are given, they are tested too, and p is the larger of both p-values, or 1 if both change in different
    directions. If all periods have the same number of documents, both tests are the same.

    The test assumes that periods are independent. If topics come in waves that are longer than a period, it finds too
    many trends; choose a longer period.

    Args:
        shares: (P, K) shares by period; NaN where a period has no documents.
        level: the chance of any false positive.
        corrected: (P, K) as `corrected_for_skewness` returns them; None tests the shares alone.
    """
    place = np.flatnonzero(np.isfinite(shares).all(axis=1))
    series = shares[place].T  # (K, n)
    tested = len(place) >= FEWEST_PERIODS
    tau, p = zip(*(_kendall(place, each) if tested else (None, None) for each in series), strict=True)
    if corrected is not None and tested:
        p = tuple(_larger(p[k], tau[k], *_kendall(place, each)) for k, each in enumerate(corrected[place].T))
    slopes = [_slope(place, each) for each in series]
    trends = []
    for topic, adjusted in enumerate(holm(p)):
        direction: Direction = "steady"
        if adjusted is not None and adjusted < level:
            direction = "rising" if (tau[topic] or 0) > 0 else "falling"
        trends.append(Trend(topic, slopes[topic], tau[topic], p[topic], adjusted, direction))
    return trends


def corrected_for_skewness(theta: Array, codes: Array, shares: Array) -> Array:
    """Return shares by period that are as often above as below their expectations, whatever the number of documents.

    The median of a mean of n numbers is below its expectation by about k3 / (6 k2 n) (Johnson 1978), where k2 and k3
    are the variance and the third cumulant of the numbers, here those of all documents around the means of their
    periods.

    Args:
        theta: (n_docs, K) topic shares.
        codes: (n_docs,) the period of each document, from 0 to P - 1; -1 for a document in none.
        shares: (P, K) means by period; NaN where a period has no documents.

    Returns:
        (P, K) shares plus k3 / (6 k2 n).
    """
    inside = np.flatnonzero(codes >= 0)
    periods = codes[inside]
    n_docs = np.bincount(periods, minlength=len(shares))
    n = n_docs[n_docs > 0].astype(np.float64)
    of_second, of_third = (n - 1).sum(), ((n - 1) * (n - 2) / n).sum()
    corrected = shares.copy()
    for topic in range(theta.shape[1]):
        deviations = theta[inside, topic] - shares[periods, topic]
        square = float((deviations**2).sum())
        if of_third > 0 and square > 0:
            third, second = float((deviations**3).sum()) / of_third, square / of_second
            corrected[:, topic] += third / (6 * second * np.maximum(n_docs, 1))
    return corrected


def _larger(p: float | None, tau: float | None, other_tau: float | None, other_p: float | None) -> float | None:
    """Return the p-value of both tests together, or None where one of them is not defined."""
    if p is None or tau is None or other_p is None or other_tau is None:
        return None
    return max(p, other_p) if tau * other_tau > 0 else 1.0


def _kendall(place: Array, series: Array) -> tuple[float | None, float | None]:
    from scipy.stats import kendalltau

    if np.ptp(series) < 1e-9:  # rounding only, as where one topic has all shares
        return None, None
    found = kendalltau(place, series)
    return float(found.statistic), float(found.pvalue)


def _slope(place: Array, series: Array) -> float | None:
    """Return the median slope of all pairs, or in a long series of the pairs that are half of it apart (Theil 1950)."""
    n = len(place)
    if n < 2:
        return None
    first, second = np.triu_indices(n, 1) if n <= _ALL_PAIRS else (np.arange(n - n // 2), np.arange(n // 2, n))
    return float(np.median((series[second] - series[first]) / (place[second] - place[first])))
