"""Topics over time and by group: against references, on planted trends, and on data without any."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq, minimize
from scipy.stats import bootstrap, false_discovery_control, kendalltau, kruskal, kstat, kstest, norm, skew
from scipy.stats import t as student

from topicloom.corpus.fields import Fields
from topicloom.errors import InputError, SettingError
from topicloom.topics.curves import share_curve
from topicloom.topics.periods import period_name, periods_of
from topicloom.topics.shares import (
    GroupShares,
    by_covariate,
    by_group,
    distinctive_words,
    group_shares,
    group_word_counts,
    groups_of,
    normal_scores,
    quantile_groups,
    theta_errors,
    words_of_groups,
)
from topicloom.topics.trends import _variance_prior, over_time, topic_bursts, topic_trends, within_periods


def days(*texts: str) -> np.ndarray:
    return np.array(texts, "datetime64[us]")


@pytest.mark.parametrize(
    ("period", "code"), [("day", "D"), ("week", "W"), ("month", "M"), ("quarter", "Q"), ("year", "Y")]
)
def test_periods_are_those_of_pandas(period, code):
    random = np.random.default_rng(0)
    times = np.datetime64("1965-01-01", "us") + random.integers(0, 3000 * 86_400_000_000, 300).astype("m8[us]")
    found = periods_of(times, period)
    starts, codes = found.starts, found.codes
    expected = pd.Series(times).dt.to_period(code)
    assert (starts[codes] == expected.dt.start_time.to_numpy().astype("M8[D]")).all()
    assert len(starts) == len(pd.period_range(expected.min(), expected.max()))
    if period in ("month", "year"):
        assert [found.names[code] for code in codes] == expected.astype(str).tolist()


def test_names_of_periods():
    start = np.datetime64("2024-12-30")
    names = [period_name(start, period) for period in ("day", "week", "month", "quarter", "year")]
    assert names == ["2024-12-30", "2025-W01", "2024-12", "2024-Q4", "2024"]


def test_the_period_is_chosen_by_the_time_spanned():
    spans = {
        "2024-02-09": "day",
        "2024-09-01": "week",
        "2027-01-01": "month",
        "2033-01-01": "quarter",
        "2063-01-01": "year",
        "2099-01-01": "decade",
        "2024-01-02T10:00": "hour",
    }
    for end, period in spans.items():
        assert periods_of(days("2024-01-01", end)).unit == period


def test_documents_without_a_time_are_in_no_period():
    found = periods_of(days("2024-03-05", "NaT", "2024-01-31"), "month")
    assert found.codes.tolist() == [2, -1, 0]
    assert len(found.starts) == 3  # February has no document


@pytest.mark.parametrize("times", [None, days("NaT", "NaT"), days()])
def test_no_times(times):
    with pytest.raises(InputError, match="no document has a time"):
        periods_of(times)


def test_too_many_periods():
    with pytest.raises(InputError, match="longer `period`"):
        periods_of(days("0001-01-01", "2024-01-01"), "day")
    with pytest.raises(SettingError, match="did you mean month"):
        periods_of(days("2024-01-01"), "months")


@pytest.mark.parametrize(
    ("period", "names"),
    [
        ("hour", ["2024-03-05T14", "2024-03-05T15", "2024-03-05T16"]),
        ("12 hours", ["2024-03-05T12 to 2024-03-05T23"]),
        ("decade", ["2020s"]),
        ("2 quarters", ["2024-Q1 to 2024-Q2"]),
        ("2 days", ["2024-03-04 to 2024-03-05"]),
    ],
)
def test_periods_of_any_length(period, names):
    found = periods_of(days("2024-03-05T14:10", "2024-03-05T16:59"), period)
    assert found.names == names
    times = days("2024-03-05T14:10", "2024-03-05T16:59")
    assert (found.starts[found.codes] <= times).all()
    assert (times < found.ends[found.codes]).all()


def test_bins_are_those_of_pandas():
    times = np.datetime64("2024-01-01", "us") + np.random.default_rng(0).integers(0, 86_400 * 300, 200).astype("m8[s]")
    edges = ["2024-02-01", "2024-03-10", "2024-09-01"]
    found = periods_of(times, bins=edges)
    expected = pd.cut(pd.Series(times), pd.to_datetime(edges), right=False, labels=False).fillna(-1)
    assert found.codes.tolist() == expected.astype(int).tolist()
    assert found.names == ["2024-02-01 to 2024-03-09", "2024-03-10 to 2024-08-31"]
    assert found.n_outside == (expected < 0).sum()
    with pytest.raises(SettingError, match=r"^`bins='apple'` should be a number of bins"):
        periods_of(times, bins=["apple"])
    equal = periods_of(times, bins=5)
    lengths = (equal.ends - equal.starts).astype(int)
    assert (len(lengths), np.ptp(lengths) <= 1, equal.n_outside) == (5, True, 0)


def test_documents_from_a_date_to_a_date():
    times = days("2024-01-31", "2024-02-01", "2024-05-31T23:59", "2024-06-01", "NaT")
    found = periods_of(times, "month", start="2024-02", end="2024-05")
    assert (found.codes.tolist(), found.n_outside) == ([-1, 0, 3, -1, -1], 2)
    assert found.names[0] == "2024-02"
    for end in ("2024-05-31", np.datetime64("2024-05"), pd.Timestamp("2024-05-31T23:59").date()):
        assert periods_of(times, "month", end=end).codes.tolist() == [0, 1, 4, -1, -1]


@pytest.mark.parametrize(
    ("end", "after"),
    [
        ("2024", "2025-01-01"),
        ("2024年5月", "2024-06-01"),
        ("May 2024", "2024-06-01"),
        ("2024-W18", "2024-05-06"),
        ("2024-05-03", "2024-05-04"),
        ("3 May 2024", "2024-05-04"),
        ("2024-05-03T14", "2024-05-03T15"),
    ],
)
def test_the_end_is_a_whole_period(end, after):
    times = days(after, after)
    times[0] -= np.timedelta64(1, "us")
    assert periods_of(times, "year", end=end).n_outside == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"period": "2 fortnights"}, "several such as '2 weeks'"),
        ({"period": "0 days"}, "is unknown"),
        ({"bins": 0}, "number from 1"),
        ({"bins": ["2024"]}, "at least two dates"),
        ({"bins": ["2024-05", "2024-01"]}, "2024-01 follows 2024-05"),
        ({"bins": ["2024", "someday"]}, "`bins=someday` is no date"),
        ({"bins": ["2020", "2021"]}, "no document is in one of the bins; the documents are from 2024-03-05"),
        ({"bins": 3, "period": "day"}, "give one of them"),
        ({"start": "2025"}, "no document has a time from 2025; the documents are from 2024-03-05 to 2024-03-07"),
        ({"end": "soon"}, "`end=soon` is no date"),
        ({"start": "2025", "end": "2024"}, "exchange them"),
    ],
)
def test_periods_that_cannot_be(given, message):
    with pytest.raises((InputError, SettingError), match=message):
        periods_of(days("2024-03-05", "2024-03-07"), **given)


def test_intervals_are_those_of_scipy():
    theta = np.random.default_rng(0).dirichlet(np.full(3, 0.3), 80)
    found = group_shares(theta, np.zeros(80, int), 1, n_samples=20_000)
    np.testing.assert_allclose(found.mean[0], theta.mean(axis=0))
    for topic in range(3):
        peer = bootstrap((theta[:, topic],), np.mean, n_resamples=20_000, method="percentile", random_state=1)
        wider = np.sqrt(80 / 79)
        low, high = theta[:, topic].mean() + wider * (np.array(peer.confidence_interval) - theta[:, topic].mean())
        one, other = scores([theta[:, topic]])[0]
        expected = [min(low, one), max(high, other)]
        np.testing.assert_allclose([found.low[0, topic], found.high[0, topic]], expected, atol=0.003)


def scores(groups: list[np.ndarray]) -> list[list[float]]:
    """The score interval of each group's mean of one topic, as the roots of (mean - m)^2 = z^2 phi m (1 - m) / n."""
    between = sum(len(x) ** 2 / (len(x) - 1) * ((x - x.mean()) ** 2).mean() for x in groups)
    phi = between / (between + sum((x - x**2).sum() for x in groups))
    widths = [norm.ppf(0.975) ** 2 * phi / len(x) for x in groups]
    found = [np.roots([1 + w, -2 * x.mean() - w, x.mean() ** 2]) for w, x in zip(widths, groups, strict=True)]
    return [sorted(each.real.tolist()) for each in found]


def test_small_groups_have_the_score_interval():
    random = np.random.default_rng(3)
    theta, groups = random.dirichlet(np.full(10, 0.05), 30), np.repeat([0, 1, 2], [3, 7, 20])
    theta[:3] = np.eye(10)[0]  # nothing varies among them, so that a bootstrap interval would have no length
    found = group_shares(theta, groups, 3)
    for topic in range(1, 10):
        low, high = scores([theta[groups == group, topic] for group in range(3)])[0]
        assert found.mean[0, topic] == 0
        assert (found.low[0, topic], found.high[0, topic]) == (pytest.approx(low, abs=1e-9), pytest.approx(high))


def test_intervals_contain_the_share_of_rare_topics():
    random = np.random.default_rng(0)
    hits = {3: [], 8: [], 20: [], 50: []}
    codes = np.repeat(np.arange(12), [3, 8, 20, 50] * 3)
    for seed in range(20):
        theta = random.dirichlet(np.full(50, 0.02), len(codes))
        found = group_shares(theta, codes, 12, n_samples=100, random_state=seed)
        for group, n_docs in enumerate(found.n_docs.tolist()):
            hits[n_docs].append((found.low[group] <= 0.02) & (found.high[group] >= 0.02))
    # Bootstrap intervals contain it in 20 % (3 documents) to 78 % (50 documents).
    assert all(np.mean(each) > 0.94 for each in hits.values())


@pytest.mark.parametrize("n_docs", [12, 60])
def test_intervals_contain_the_share_as_often_as_they_say(n_docs):
    random = np.random.default_rng(0)
    alpha = np.array([0.5, 1.0, 1.5])
    hits = []
    for seed in range(300):
        theta = random.dirichlet(alpha, n_docs)
        found = group_shares(theta, np.zeros(n_docs, int), 1, n_samples=300, random_state=seed)
        hits.append((found.low[0] <= alpha / 3) & (alpha / 3 <= found.high[0]))
    assert 0.9 < np.mean(hits) < 0.975


def test_errors_of_theta_are_those_of_drawn_tokens():
    random = np.random.default_rng(0)
    alpha, sizes, groups = np.array([0.2, 0.5, 0.3]), random.integers(3, 30, 60), np.repeat([0, 1], [20, 40])
    misses, expected = [], []
    for _ in range(400):
        true = random.dirichlet(alpha, 60)
        tokens = np.array([random.multinomial(size, row) for size, row in zip(sizes, true, strict=True)])
        theta = (tokens + alpha) / (sizes + 1)[:, None]
        misses.append([(theta - true)[groups == group].mean(axis=0) for group in (0, 1)])
        expected.append(theta_errors(theta, sizes, groups, 2) ** 2)
    np.testing.assert_allclose(np.sqrt(np.mean(expected, axis=0)), np.std(misses, axis=0), rtol=0.12)


def test_tables_over_time_have_both_standard_errors():
    theta = np.random.default_rng(0).dirichlet(np.full(3, 0.3), 40)
    found = over_time(theta, days(*["2024-01-05"] * 20, *["2024-02-05"] * 20), "month", n_tokens=np.full(40, 10))
    row = next(found.table([1]).rows())
    assert row["sampling_error"] == pytest.approx(theta[:20, 1].std(ddof=1) / np.sqrt(20))
    assert row["theta_error"] == pytest.approx(np.sqrt((theta[:20, 1] * (1 - theta[:20, 1]) / 11).sum()) / 20)


def test_intervals_do_not_leave_the_range_of_shares():
    found = group_shares(np.array([[0.0, 1.0], [0.0, 1.0], [0.6, 0.4]]), np.zeros(3, int), 1)
    assert (found.low[0, 0], found.high[0, 1]) == (0, 1)


def test_large_groups_are_resampled_in_parts():
    theta = np.random.default_rng(0).dirichlet(np.full(2, 0.5), 30_001)
    found = group_shares(theta, np.zeros(30_001, int), 1)
    error = theta.std(axis=0) / np.sqrt(30_001)
    np.testing.assert_allclose(found.high[0] - found.low[0], 2 * 1.96 * error, rtol=0.1)
    assert found.n_docs.tolist() == [30_001]


def test_empty_groups_and_groups_of_one():
    theta = np.array([[0.2, 0.8], [0.5, 0.5], [0.7, 0.3]], np.float32)
    found = group_shares(theta, np.array([2, 0, 0]), 4)
    assert np.isnan(found.mean[1]).all()
    assert np.isnan(found.mean[3]).all()
    np.testing.assert_allclose(found.mean[2], [0.2, 0.8], rtol=1e-6)
    assert np.isnan(found.low[2]).all()  # one document says nothing about the spread
    assert np.isfinite(found.low[0]).all()
    assert found.n_docs.tolist() == [2, 0, 1, 0]
    with pytest.raises(SettingError, match="level"):
        group_shares(theta, np.zeros(3, int), 1, level=1.0)


def summary(theta: np.ndarray, codes: np.ndarray) -> tuple[GroupShares, tuple[np.ndarray, np.ndarray]]:
    n_docs = np.bincount(codes)
    mean = np.stack([theta[codes == period].mean(axis=0) for period in range(len(n_docs))])
    shares = GroupShares(mean, mean, mean, n_docs)
    return shares, within_periods(theta, codes, shares)


def by_days(random, n_days: int, n_docs: int, factors: float, n_topics: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Documents without a trend, whose topics differ between days by factors of this logarithmic deviation."""
    alpha = 0.6 / n_topics * np.exp(factors * random.normal(size=(n_days, n_topics)))
    return np.concatenate([random.dirichlet(each, n_docs) for each in alpha]), np.repeat(np.arange(n_days), n_docs)


def test_cumulants_are_those_of_scipy():
    theta = np.random.default_rng(0).exponential(size=(40, 2))
    _, spread = summary(theta, np.zeros(40, int))
    assert spread.variance.tolist() == pytest.approx([kstat(column, 2) for column in theta.T])
    assert spread.third.tolist() == pytest.approx([kstat(column, 3) for column in theta.T])


def test_the_trend_test_is_that_of_knapp_and_hartung():
    random = np.random.default_rng(0)
    theta, codes = by_days(random, 9, 50, 0.5, n_topics=3)
    theta, codes = np.concatenate([theta, theta[-30:]]), np.concatenate([codes, codes[-30:]])
    shares, spread = summary(theta, codes)
    found = topic_trends(shares, spread)
    x = np.column_stack([np.ones(9), np.arange(9)])
    for topic, trend in enumerate(found):
        y, v = shares.mean[:, topic], spread.variance[topic] / shares.n_docs

        def squares(between, y=y, v=v):
            w = np.diag(1 / (v + between))
            b = np.linalg.inv(x.T @ w @ x) @ x.T @ w @ y
            return (y - x @ b) @ w @ (y - x @ b), b, np.linalg.inv(x.T @ w @ x)

        between = brentq(lambda each: squares(each)[0] - 7, 0, 1) if squares(0)[0] > 7 else 0
        q, b, inverse = squares(between)
        expected = 2 * student.sf(abs(b[1]) / np.sqrt(inverse[1, 1] * q / 7), 7)
        assert (trend.slope, trend.p) == (pytest.approx(b[1]), pytest.approx(expected, rel=1e-6))
        assert trend.tau == pytest.approx(kendalltau(range(9), y).statistic)


@pytest.mark.parametrize("factors", [0.0, 0.4])
def test_without_a_trend_p_values_are_uniform(factors):
    random = np.random.default_rng(0)
    p_values, any_trend = [], 0
    for _ in range(40):
        trends = topic_trends(*summary(*by_days(random, 9, 100, factors)))
        p_values += [trend.p for trend in trends]
        any_trend += any(trend.direction != "steady" for trend in trends)
    assert kstest(p_values, "uniform").statistic < 0.06
    assert any_trend <= 6  # 5 % of 40, with three standard deviations


def test_more_documents_are_no_trend():
    random = np.random.default_rng(0)
    codes = np.repeat(np.arange(24), np.round(np.geomspace(5, 100, 24)).astype(int))
    any_trend = 0
    for _ in range(25):
        trends = topic_trends(*summary(random.dirichlet(np.full(50, 0.02), len(codes)), codes))
        any_trend += any(trend.direction != "steady" for trend in trends)
    assert any_trend <= 4  # 5 % of 25, with three standard deviations


def test_few_runs_without_a_burst_have_one():
    random = np.random.default_rng(1)
    found = {0.0: 0, 0.2: 0}
    for factors in found:
        for _ in range(25):
            bursts = topic_bursts(*summary(*by_days(random, 9, 100, factors)))
            found[factors] += any(burst.is_found for burst in bursts)
    assert max(found.values()) <= 4  # 5 % of 25, with three standard deviations


@pytest.mark.parametrize("n_topics", [3, 8])
def test_one_document_is_no_burst(n_topics):
    random = np.random.default_rng(3)
    theta = random.dirichlet(np.full(n_topics, 1.0), 240)
    theta[:, 0] = random.normal(0.004, 0.001, 240).clip(0)  # a topic of no document
    theta[100] = np.eye(n_topics)[0]
    theta /= theta.sum(axis=1, keepdims=True)
    found = over_time(theta, np.datetime64("2024-01-01") + random.integers(24, size=240), "day", n_samples=20)
    assert found.bursting == []


def test_a_burst_of_two_days_is_found():
    random = np.random.default_rng(2)
    theta, codes = by_days(random, 9, 800, 0.05)
    in_burst = np.flatnonzero((codes == 5) | (codes == 6))
    more = random.choice(in_burst, len(in_burst) // 16, replace=False)
    theta[more] = np.eye(20)[3]  # the share of topic 3 grows from 5 % to about 11 %
    times = np.datetime64("2015-02-16") + codes
    found = over_time(theta, times, "day")
    assert (found.bursting, found.rising) == ([3], [])
    burst = found.bursts[3]
    assert (found.span(burst), burst.share > 0.09, burst.share_elsewhere < 0.06) == (
        "2015-02-21 to 2015-02-22", True, True,
    )  # fmt: skip
    assert next(found.burst_table().rows())["topic"] == 3
    assert next(row for row in found.trend_table().rows() if row["topic"] == 3)["burst"] == found.span(burst)
    assert "1 with a burst" in repr(found)


def test_the_prior_of_variances_is_found_from_many_topics():
    random = np.random.default_rng(0)
    true = 2.0 * 8 / random.chisquare(8, 20_000)  # the prior has 8 degrees of freedom
    ratios = true * random.chisquare(6, 20_000) / 6
    prior = _variance_prior(ratios, 6)
    assert (prior.freedom, prior.ratio) == (pytest.approx(8, rel=0.1), pytest.approx(2, rel=0.03))
    means = prior.moderated(ratios, 6)
    chosen = np.abs(means - 3) < 0.2
    precision = (1 / true[chosen]).mean()  # its posterior mean is the reciprocal of the shrunk variance
    assert 1 / precision == pytest.approx(3, rel=0.05)


def test_a_step_of_one_topic_of_thirty_is_found():
    random = np.random.default_rng(5)
    theta, codes = [], np.repeat(np.arange(8), 400)
    for day in range(8):
        mean = np.full(30, 1 / 30) * np.exp(0.1 * random.normal(size=30))
        mean[0] = 0.04 if day < 4 else 0.091
        theta.append(random.dirichlet(0.6 * mean / mean.sum(), 400))
    found = over_time(np.concatenate(theta), np.datetime64("2015-02-17") + codes, "day", n_samples=20)
    assert (found.rising, found.falling, found.bursting) == ([0], [], [])


def test_a_period_of_four_documents_changes_no_test():
    random = np.random.default_rng(3)
    alpha = np.full(20, 0.03)
    theta = [random.dirichlet(np.r_[alpha[0] * (1 + day / 4), alpha[1:]], 500) for day in range(8)]
    times = np.datetime64("2015-02-17") + np.repeat(np.arange(8), 500)
    few, first = np.eye(20)[[0, 0, 5, 5]], np.full(4, np.datetime64("2015-02-16"))
    found = over_time(np.concatenate([few, *theta]), np.r_[first, times], "day", n_samples=20)
    rest = over_time(np.concatenate(theta), times, "day", n_samples=20)
    assert found.sparse.tolist() == [True] + [False] * 8
    assert (found.rising, rest.rising) == ([0], [0])
    assert found.trends[0].p == pytest.approx(rest.trends[0].p, rel=0.05)
    assert [row["sparse"] for row in found.table([0]).rows()][:2] == [True, False]
    assert over_time(np.concatenate([few, *theta]), np.r_[first, times], "day", min_documents=1).n_tested == 9


def test_too_few_periods_for_a_test():
    theta, codes = by_days(np.random.default_rng(0), 5, 30, 0.0)
    five = over_time(theta, np.datetime64("2024-01-01") + codes, "day", n_samples=20)
    assert (five.bursts, {trend.direction for trend in five.trends} <= {"steady", "rising", "falling"}) == ([], True)
    four = over_time(theta[codes < 4], np.datetime64("2024-01-01") + codes[codes < 4], "day", n_samples=20)
    assert {(trend.direction, trend.p) for trend in four.trends} == {("too few periods", None)}


def planted(n_months: int = 18, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Documents whose topic 0 rises and topic 1 falls, and of which topics 2 to 9 only vary."""
    random = np.random.default_rng(seed)
    theta, times = [], []
    for month in range(n_months):
        alpha = np.full(10, 0.5)
        alpha[0] += month / 5
        alpha[1] += (n_months - month) / 5
        theta.append(random.dirichlet(alpha, 40))
        start = (np.datetime64("2023-01", "M") + np.timedelta64(month, "M")).astype("M8[us]")
        times.append(start + random.integers(0, 28 * 24, 40).astype("m8[h]"))
    return np.concatenate(theta), np.concatenate(times)


def test_planted_trends_are_found():
    theta, times = planted()
    found = over_time(theta, times, "month", names=[f"t{k}" for k in range(10)])
    assert (found.rising, found.falling) == ([0], [1])
    rows = list(found.table(topics=[0]).rows())
    assert [row["period"] for row in rows][:2] == ["2023-01", "2023-02"]
    assert rows[3]["share"] == pytest.approx(theta[times.astype("M8[M]") == np.datetime64("2023-04")][:, 0].mean())
    assert all(row["low"] < row["share"] < row["high"] for row in rows)
    trend = next(found.trend_table().rows())
    assert (trend["name"], trend["trend"]) == ("t0", "rising")
    assert "1 rising" in repr(found)
    assert "rising" in found._repr_html_()
    with pytest.raises(SettingError, match="no topic 10"):
        found.table(topics=[10])


def test_topics_are_ranked_by_how_much_they_rise():
    month = np.repeat(np.arange(8), 30)
    noise = np.random.default_rng(0).normal(0, 0.01, len(month))
    theta = np.stack(
        [0.1 + 0.02 * month + noise, 0.1 + 0.05 * month - noise, 0.5 - 0.07 * month, np.full(240, 0.3)], axis=1
    )
    times = (np.datetime64("2023-01", "M") + month.astype("m8[M]")).astype("M8[us]")
    found = over_time(theta, times, "month", n_samples=20)
    assert (found.rising, found.falling) == ([1, 0], [2])
    assert [row["topic"] for row in found.trend_table().rows()] == [1, 0, 2, 3]
    assert [trend.slope for trend in found.trends] == pytest.approx([0.02, 0.05, -0.07, 0], abs=0.002)
    assert found.trends[3].p_holm is None
    assert found.trends[1].p_holm == pytest.approx(3 * found.trends[1].p, rel=1)  # three topics are tested


def test_documents_are_left_out_and_counted():
    theta, times = planted()
    times[:5] = "NaT"
    empty = np.arange(len(theta)) % 100 == 50
    found = over_time(theta, times, "quarter", empty=empty)
    assert found.n_unknown == 5 + empty[5:].sum()
    assert found.shares.n_docs.sum() == len(theta) - found.n_unknown


def test_one_period_one_topic():
    found = over_time(np.ones((3, 1), np.float32), days("2024-01-01", "2024-01-02", "2024-01-03"), "year")
    assert found.shares.mean.tolist() == [[1.0]]
    assert [(t.direction, t.slope, t.p) for t in found.trends] == [("too few periods", None, None)]
    long = over_time(np.ones((90, 1), np.float32), np.datetime64("2020-01-01") + np.arange(90) * 30, "month")
    assert [(t.direction, t.p) for t in long.trends] == [("steady", None)]
    assert len(long.table()) == len(long.starts)


def test_expected_tokens_are_those_of_a_loop():
    random = np.random.default_rng(0)
    counts = sp.csr_array(random.poisson(0.5, (20, 15)).astype(np.float32))
    theta, beta = random.dirichlet(np.ones(4), 20), random.dirichlet(np.ones(15), 4)
    groups = random.integers(-1, 3, 20)
    expected = np.zeros((3, 15))
    for d in range(20):
        for w in range(15):
            if groups[d] >= 0:
                expected[groups[d], w] += counts[d, w] * theta[d, 2] * beta[2, w] / (theta[d] @ beta[:, w])
    found = group_word_counts(counts, theta, beta, groups, 3, 2)
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-5)


def test_distinctive_words_are_those_of_the_formula():
    ours, total = np.array([30.0, 5.0, 0.0, 0.0]), np.array([40.0, 50.0, 10.0, 0.0])
    prior = 500 * total / total.sum()
    expected = []
    for w in range(3):
        a, b = ours[w] + prior[w], total[w] - ours[w] + prior[w]
        odds = np.log(a / (35 + 500 - a)) - np.log(b / (65 + 500 - b))
        expected.append(odds / np.sqrt(1 / a + 1 / b))
    np.testing.assert_allclose(distinctive_words(ours, total), [*expected, 0])
    assert not distinctive_words(np.zeros(3), np.zeros(3)).any()


def test_words_of_groups():
    counts = sp.csr_array(np.array([[50.0, 100, 0, 0], [5, 100, 60, 0], [0, 0, 0, 0]]))
    first, second, none = words_of_groups(counts, ["a", "both", "b", "never"])
    assert [word for word, *_ in first] == ["a"]  # that "both" is a little more frequent may be chance
    assert [word for word, *_ in second] == ["b"]
    assert second[0][2] == 60
    assert none == []
    alone = words_of_groups(counts[[0]], ["a", "both", "b", "never"])
    assert [word for word, *_ in alone[0]] == ["both", "a"]


def test_quantiles_are_those_of_pandas():
    values = np.random.default_rng(0).lognormal(size=200)
    values[3] = np.nan
    groups, names = quantile_groups(values, 4)
    expected = pd.qcut(values, 4, labels=False)
    np.testing.assert_array_equal(groups, np.nan_to_num(expected, nan=-1))
    assert len(names) == 4
    assert " to " in names[0]


@pytest.mark.parametrize(
    ("values", "groups", "names"),
    [
        ([1.0, 2.0, 2.0, np.nan], [0, 1, 1, -1], ["1", "2"]),
        ([7.0], [0], ["7"]),
        ([0.0] * 90 + [1, 2, 3, 4, 5, 6], [0] * 90 + [1] * 6, ["0", "1 to 6"]),
        ([np.nan, np.inf], [-1, -1], []),
    ],
)
def test_quantiles_of_few_numbers(values, groups, names):
    found = quantile_groups(np.array(values), 4)
    assert (found[0].tolist(), found[1]) == (groups, names)


def test_names_of_quantiles_have_the_digits_that_tell_them_apart():
    codes, names = quantile_groups(np.array([121.473701, 121.473702, 5, 1e20, 1e20 + 20000]), 12)
    assert (codes.tolist(), [float(name) for name in names]) == (
        [1, 2, 0, 3, 4],
        [5, 121.473701, 121.473702, 1e20, 1e20 + 20000],
    )
    _, names = quantile_groups(1_000_000.0 + np.arange(40), 4)
    assert names == [f"10000{first:02d} to 10000{first + 9:02d}" for first in (0, 10, 20, 30)]
    _, names = quantile_groups(1e5 + np.arange(40) / 1000, 4)
    assert names[0] == "100000 to 100000.009"


def fields() -> Fields:
    return Fields.of(
        4, labels=["b", "a", "", "b"], covariates={"price": [1.0, 2.0, 3.0, 4.0], "kind": ["x", None, "y", "x"]}
    )


def test_groups():
    assert groups_of(fields())[0].tolist() == [1, 0, -1, 1]
    assert groups_of(fields())[1] == ["a", "b"]
    assert groups_of(fields(), "price", 2)[0].tolist() == [0, 0, 1, 1]
    assert groups_of(fields(), "kind")[0].tolist() == [0, -1, 1, 0]


@pytest.mark.parametrize(
    ("known", "by", "message"),
    [
        (Fields.of(2), "class", "no document has a class"),
        (Fields.of(2, labels=["", ""]), "class", "no document has a class"),
        (fields(), "prize", "did you mean price"),
        (Fields.of(1, covariates={"x": [None]}), "x", "no document has a value of 'x'"),
    ],
)
def test_no_groups(known, by, message):
    with pytest.raises(InputError, match=message):
        groups_of(known, by)
    with pytest.raises(SettingError, match="n_groups"):
        groups_of(known, by, n_groups=1)


def test_topics_that_differ_between_groups():
    random = np.random.default_rng(0)
    groups = random.integers(0, 3, 300)
    alpha = np.full((3, 6), 0.5)
    alpha[1, 4] = 2
    theta = np.stack([random.dirichlet(alpha[group]) for group in groups])
    found = by_group(theta, groups, ["a", "b", "c"], "section")
    assert found.differences[4].highest == "b"
    means = [theta[groups == group].mean(axis=0) for group in range(3)]
    assert [each.lowest for each in found.differences] == ["abc"[k] for k in np.argmin(means, axis=0)]
    np.testing.assert_allclose([each.difference for each in found.differences], np.ptp(means, axis=0))
    peer = kruskal(*(theta[groups == group, 4] for group in range(3))).pvalue
    assert found.differences[4].p == pytest.approx(peer)
    assert found.differences[4].p_holm == pytest.approx(6 * peer)
    assert next(found.difference_table().rows())["topic"] == 4
    assert [row["section"] for row in found.table([4]).rows()] == ["a", "b", "c"]
    assert "3 groups by section" in repr(found)


def test_documents_without_a_word_are_in_no_group():
    theta = np.random.default_rng(0).dirichlet(np.ones(3), 12)
    groups, empty = np.arange(12) % 2, np.arange(12) < 3
    found = by_group(theta, groups, ["a", "b"], empty=empty)
    rest = by_group(theta[3:], groups[3:], ["a", "b"])
    np.testing.assert_array_equal(found.shares.mean, rest.shares.mean)
    assert (found.shares.n_docs.tolist(), found.n_unknown) == ([4, 5], 3)
    assert found.differences == rest.differences


def test_groups_without_a_comparison():
    alone = by_group(np.full((3, 2), 0.5), np.zeros(3, int), ["only"])
    assert [(d.highest, d.p, d.p_holm) for d in alone.differences] == [(None, None, None)] * 2
    same = by_group(np.full((4, 2), 0.5), np.array([0, 0, 1, 1]), ["a", "b"])
    assert [(d.difference, d.p) for d in same.differences] == [(0, None)] * 2
    single = by_group(np.random.default_rng(0).dirichlet(np.ones(2), 3), np.array([0, 0, 2]), ["a", "nobody", "b"])
    assert next(single.table().rows())["documents"] == 2
    assert list(single.table([0]).rows())[1]["share"] is None


def test_curves_are_those_of_a_general_optimizer():
    random = np.random.default_rng(0)
    price = random.lognormal(1, 0.7, 300)
    mean = 0.1 + 0.5 / (1 + np.exp(3 - price))
    theta = random.beta(2 * mean, 2 - 2 * mean)
    curve = share_curve(np.column_stack([theta, 1 - theta]), price)
    knots = np.quantile(price, [0.05, 0.275, 0.5, 0.725, 0.95])

    def logits(heights, x):  # the natural spline through heights at the knots, straight outside
        spline = CubicSpline(knots, heights, bc_type="natural")
        inside = np.clip(x, knots[0], knots[-1])
        return spline(inside) + spline(inside, 1) * (x - inside)

    def loss(heights):
        eta = logits(heights, price)
        return (np.logaddexp(0, eta) - theta * eta).sum()

    best = minimize(loss, np.zeros(5), tol=1e-10).x
    expected = 1 / (1 + np.exp(-logits(best, curve.values)))
    np.testing.assert_allclose(curve.mean[:, 0], expected, atol=0.003)
    np.testing.assert_allclose(curve.mean.sum(axis=1), 1, atol=1e-6)
    assert (np.diff(curve.values) > 0).all()
    assert curve.n_docs == 300


def test_intervals_of_curves_contain_the_truth():
    random = np.random.default_rng(1)
    hits = []
    for _ in range(60):
        age = random.uniform(20, 80, 400)
        mean = 0.02 + 0.1 / (1 + np.exp((50 - age) / 8))
        theta = random.beta(0.6 * mean, 0.6 - 0.6 * mean)
        curve = share_curve(np.column_stack([theta, 1 - theta]), age)
        expected = 0.02 + 0.1 / (1 + np.exp((50 - curve.values) / 8))
        hits.append(((curve.low[:, 0] <= expected) & (expected <= curve.high[:, 0])).mean())
    assert 0.9 < np.mean(hits) < 0.99


def test_curves_leave_out_what_is_unknown():
    theta = np.random.default_rng(0).dirichlet(np.ones(3), 40)
    numbers = np.arange(40.0)
    numbers[:5] = np.nan
    known = share_curve(theta[7:], numbers[7:])
    found = share_curve(theta, numbers, empty=np.arange(40) < 7)
    np.testing.assert_array_equal(found.mean, known.mean)
    assert share_curve(theta, np.arange(40) % 4) is None
    rare = np.zeros((40, 2))
    rare[:, 1] = 1  # a topic that no document has
    assert np.isfinite(share_curve(rare, np.arange(40.0)).high).all()


def test_a_covariate_gives_groups_and_a_curve():
    theta = np.random.default_rng(0).dirichlet(np.ones(3), 60)
    fields = Fields.of(
        60, covariates={"stars": np.arange(60) % 5 + 1, "price": np.arange(60.0), "shop": ["a", "a", "b", "c"] * 15}
    )
    stars = by_covariate(theta, fields, "stars", names=["x", "y", "z"])
    assert stars.groups == ["1", "2", "3", "4", "5"]  # few different numbers are groups of their own
    assert stars.curve.values.tolist() == [1, 2, 3, 4, 5]
    assert next(stars.curve.table([1]).rows())["name"] == "y"
    assert len(by_covariate(theta, fields, "price").groups) == 4
    assert by_covariate(theta, fields, "price", n_groups=2).groups == ["0 to 29", "30 to 59"]
    shops = by_covariate(theta, fields, "shop", most_groups=1)
    assert (shops.groups, shops.n_unknown, shops.curve) == (["a"], 30, None)
    np.testing.assert_allclose(shops.shares.mean[0], theta[np.arange(60) % 4 < 2].mean(axis=0))


def test_the_cross_table_has_counts_and_lifts():
    random = np.random.default_rng(0)
    groups = random.integers(0, 3, 90)
    theta = np.stack([random.dirichlet(np.where(np.arange(5) == 2, 1 + 2 * (group == 1), 0.5)) for group in groups])
    found = by_group(theta, groups, ["a", "b", "c"], "shop")
    frame = found.cross_table().to_pandas()
    main = pd.crosstab(theta.argmax(axis=1), np.array(list("abc"))[groups]).reindex(range(5), fill_value=0)
    pd.testing.assert_frame_equal(
        frame.pivot(index="topic", columns="shop", values="main_documents"), main, check_names=False, check_dtype=False
    )
    cell = frame[(frame.topic == 2) & (frame["shop"] == "b")].iloc[0]
    assert cell.lift == pytest.approx(theta[groups == 1, 2].mean() / theta[:, 2].mean())
    assert cell.differs == "higher"
    expected = false_discovery_control(frame.p)
    np.testing.assert_allclose(frame.p_corrected, expected)
    by_holm = found.cross_table([2], correction="holm").to_pandas()
    assert by_holm.p_corrected[1] == pytest.approx(min(15 * cell.p, 1), rel=0.2)
    with pytest.raises(SettingError, match="choose one of benjamini-hochberg, holm"):
        found.cross_table(correction="none")


def test_a_covariate_may_have_the_name_of_another_column():
    theta, groups = np.random.default_rng(0).dirichlet([1, 1], 40), np.arange(40) % 2
    plain = by_group(theta, groups, ["a", "b"], "shop").cross_table().to_pandas()
    for name in plain.columns.drop("shop"):
        frame = by_group(theta, groups, ["a", "b"], name).cross_table().to_pandas()
        pd.testing.assert_frame_equal(frame.rename(columns={f"{name} (group)": "shop"}), plain)


def test_p_values_of_groups_are_those_of_permutations():
    random = np.random.default_rng(4)
    theta, groups = random.dirichlet(np.full(4, 0.3), 60), np.repeat([0, 1], [12, 48])
    theta[:12, 0] = np.minimum(theta[:12, 0] + 0.12, 1)
    found = by_group(theta, groups, ["few", "many"])
    drawn = np.stack([theta[random.permutation(60)[:12]].mean(axis=0) for _ in range(20_000)])
    center = theta.mean(axis=0)
    for topic in range(4):
        mean = theta[:12, topic].mean()
        one_sided = (drawn[:, topic] >= mean).mean() if mean > center[topic] else (drawn[:, topic] <= mean).mean()
        assert found.p[0, topic] == pytest.approx(2 * one_sided, rel=0.25, abs=0.01)


def test_the_skewness_of_groups_is_that_of_all_permutations():
    theta = np.random.default_rng(0).exponential(size=(12, 1))
    found = by_group(theta, np.repeat([0, 1], [4, 8]), ["few", "many"])
    means = np.array([theta[list(drawn), 0].mean() for drawn in combinations(range(12), 4)])
    distance = (theta[:4, 0].mean() - means.mean()) / means.std()
    score = normal_scores(np.array([distance]), np.array([skew(means)]))[0]
    assert found.p[:, 0] == pytest.approx(2 * norm.sf(abs(score)))


def test_several_covariates_at_once_are_refused_with_advice():
    fields = Fields.of(2, covariates={"a": [1, 2], "b": [3, 4]})
    with pytest.raises(SettingError, match=r"name of one covariate; it is \['a', 'b'\].*document_table"):
        groups_of(fields, ["a", "b"])
