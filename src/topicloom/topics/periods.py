"""Periods of time: from an hour to decades, or bins of any length, and the documents in each of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from ..corpus.fields import parse_times
from ..errors import InputError, SettingError
from ..messages import nearest

Array = npt.NDArray[Any]
Times = npt.NDArray[np.datetime64]

UNITS = ("hour", "day", "week", "month", "quarter", "year", "decade")
_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
_MOST_PERIODS = 20_000
_MOST_BY_DEFAULT = 40  # periods, where the length of a period is chosen automatically
_BINS = "bins"  # the name of periods that are bins
# The first periods after 1970-01-01: it was a Thursday, and weeks begin on Monday.
_DAYS_BEFORE = 3


@dataclass(frozen=True, eq=False)
class Periods:
    """P periods, and the period of each document.

    Attributes:
        unit: the length of a period, such as "month" or "2 weeks"; "bins" for bins.
        starts: (P,) when each begins, datetime64[D], or datetime64[m] where periods do not begin at midnight.
        ends: (P,) when each is over, of the same type. A period does not contain its end.
        names: the P names, such as 2024-05.
        codes: (n_docs,) the period of each document; -1 if its time is unknown or in no period.
        n_outside: the number of documents whose time is known and in no period.
    """

    unit: str
    starts: Times
    ends: Times
    names: list[str]
    codes: npt.NDArray[np.intp]
    n_outside: int = 0


def periods_of(
    times: Times | None, period: str = "auto", *, bins: Any = None, start: Any = None, end: Any = None
) -> Periods:
    """Assign documents to periods. Weeks begin on Monday.

    Args:
        times: (n_docs,) NaT where the time is unknown; None if no time is known.
        period: "hour", "day", "week", "month", "quarter", "year", "decade", or several of them, such as "2 weeks".
            "auto" is the shortest of them that gives at most 40 periods; hours only if documents have times of day.
        bins: in place of `period`, a number of bins of equal length, or the dates at which bins begin and, at last, the
            date at which the last one is over.
        start, end: documents before `start` and after `end` are left out. "2024-05" as the end is the whole May.

    Returns:
        the periods from the first document to the last, without a gap.

    Raises:
        InputError: no time is known or from `start` to `end`, or there would be too many periods.
        SettingError: there is no such period, or a date cannot be read.
    """
    number, unit = _unit_of(period)
    known = np.zeros(0, bool) if times is None else ~np.isnat(times)
    if times is None or not known.any():
        raise InputError(
            "no document has a time, so there is nothing to show over time; times are given when the corpus is made "
            "(`timestamps`)"
        )
    all_times = times.astype("datetime64[us]")
    inside = known & _between(all_times, known, start, end)
    if bins is not None:
        if unit != "auto":
            raise SettingError("`period` and `bins` both divide the time; give one of them")
        found = _bins_of(all_times, inside, bins)
    else:
        if unit == "auto":
            number, unit = 1, _automatic(all_times[inside])
        found = _calendar(all_times, inside, number, unit)
    n_outside = int((known & (found.codes < 0)).sum())
    return replace(found, n_outside=n_outside)


def period_name(start: np.datetime64, unit: str) -> str:
    """Return the name of a period, such as 2024-05-03T14, 2024-05-03, 2024-W18, 2024-05, 2024-Q2, 2024 or 1990s."""
    day = start.astype("datetime64[D]").item()
    if unit == "week":
        year, week, _ = day.isocalendar()
        return f"{year}-W{week:02}"
    if unit == "quarter":
        return f"{day.year}-Q{(day.month + 2) // 3}"
    if unit == "decade":
        return f"{day.year // 10 * 10}s"
    return str(start.astype({"hour": "M8[h]", "day": "M8[D]", "month": "M8[M]", "year": "M8[Y]"}[unit]))


def _unit_of(period: Any) -> tuple[int, str]:
    """Split "2 weeks" into 2 and "week"."""
    if isinstance(period, str):
        found = re.fullmatch(r"\s*(?:(\d{1,6})\s*)?([a-z]+?)(s?)\s*", period)
        is_one = found is not None and found[1] is None
        if found is not None and found[2] in (*UNITS, *(("auto",) if is_one else ())) and not (is_one and found[3]):
            number = int(found[1] or 1)
            if number > 0:
                return number, found[2]
    units = (*UNITS, "auto")
    raise SettingError(
        f"`period={period!r}` is unknown; {nearest(str(period), units)}, and for several such as '2 weeks' or '6 hours'"
    )


def _automatic(times: Times) -> str:
    has_hours = bool((times != times.astype("datetime64[D]")).any())
    units = UNITS if has_hours else UNITS[1:]
    return next((unit for unit in units if np.ptp(_numbers(times, unit)) < _MOST_BY_DEFAULT), UNITS[-1])


def _calendar(times: Times, inside: npt.NDArray[np.bool_], number: int, unit: str) -> Periods:
    numbers = _numbers(times[inside], unit) // number
    first, last = int(numbers.min()), int(numbers.max())
    if last - first >= _MOST_PERIODS:
        length = unit if number == 1 else f"{number} {unit}s"
        raise InputError(
            f"from the first document to the last there are {last - first + 1:,} periods of a {length}, which is too "
            "many; choose a longer `period`, or correct the times"
        )
    codes = np.full(len(times), -1, np.intp)
    codes[inside] = numbers - first
    bounds = np.arange(first, last + 2) * number
    edges, lasts = _starts(bounds, unit), _starts(bounds[1:] - 1, unit)
    names = [period_name(start, unit) for start in edges[:-1]]
    if number > 1:
        names = [f"{name} to {period_name(end, unit)}" for name, end in zip(names, lasts, strict=True)]
    return Periods(unit if number == 1 else f"{number} {unit}s", edges[:-1], edges[1:], names, codes)


def _numbers(times: Times, unit: str) -> npt.NDArray[np.int64]:
    """Number the periods since 1970, in which the first is 0."""
    if unit == "hour":
        return times.astype("datetime64[h]").astype(np.int64)
    if unit in ("day", "week"):
        days: npt.NDArray[np.int64] = times.astype("datetime64[D]").astype(np.int64)
        return days if unit == "day" else (days + _DAYS_BEFORE) // 7
    months: npt.NDArray[np.int64] = times.astype("datetime64[M]").astype(np.int64)
    return months // _MONTHS[unit]


def _starts(numbers: npt.NDArray[np.int64], unit: str) -> Times:
    if unit == "hour":
        return numbers.astype("datetime64[h]").astype("datetime64[m]")
    if unit == "day":
        return numbers.astype("datetime64[D]")
    if unit == "week":
        return (numbers * 7 - _DAYS_BEFORE).astype("datetime64[D]")
    return (numbers * _MONTHS[unit]).astype("datetime64[M]").astype("datetime64[D]")


def _bins_of(times: Times, inside: npt.NDArray[np.bool_], bins: Any) -> Periods:
    if isinstance(bins, int | np.integer) and not isinstance(bins, bool):
        if not 1 <= bins <= _MOST_PERIODS:
            raise SettingError(f"`bins={bins}` should be a number from 1 to {_MOST_PERIODS:,}, or at least two dates")
        edges = _equal(times[inside], int(bins))
    else:
        if isinstance(bins, str | bytes) or not isinstance(bins, Iterable) or len(given := list(bins)) < 2:
            shown = bins[0] if isinstance(bins, list) and len(bins) == 1 else bins
            raise SettingError(
                f"`bins={shown!r:.60}` should be a number of bins, or at least two dates, such as 2024-01 and 2024-07"
            )
        edges = np.array([_time("bins", each) for each in given], "datetime64[us]")
        if not (edges[1:] > edges[:-1]).all():
            place = int(np.flatnonzero(edges[1:] <= edges[:-1])[0])
            raise SettingError(
                f"the dates of `bins` should ascend; {given[place + 1]} follows {given[place]}, which is not before it"
            )
    codes = np.searchsorted(edges, times, side="right") - 1
    codes = np.where(inside & (codes >= 0) & (codes < len(edges) - 1), codes, -1).astype(np.intp)
    if not (codes >= 0).any():
        raise InputError(f"no document is in one of the bins; {_range(times[inside])}")
    by_days = bool((edges == edges.astype("datetime64[D]")).all())
    edges = edges.astype("datetime64[D]") if by_days else edges.astype("datetime64[m]")
    lasts = edges[1:] - np.timedelta64(1, "D") if by_days else edges[1:]
    names = [str(a) if a == b else f"{a} to {b}" for a, b in zip(edges[:-1], lasts, strict=True)]
    return Periods(_BINS, edges[:-1], edges[1:], names, codes)


def _equal(times: Times, n_bins: int) -> Times:
    """Return the ends of bins of equal length: whole days if there are enough of them, and else whole minutes."""
    for unit in ("D", "m"):
        numbers = times.astype(f"datetime64[{unit}]").astype(np.int64)
        first, last = int(numbers.min()), int(numbers.max()) + 1
        if last - first >= n_bins * (2 if unit == "D" else 1) or unit == "m":
            n = min(n_bins, last - first)
            edges = first + np.round(np.linspace(0, last - first, n + 1)).astype(np.int64)
            return edges.astype(f"datetime64[{unit}]").astype("datetime64[us]")
    raise AssertionError


def _between(times: Times, known: npt.NDArray[np.bool_], start: Any, end: Any) -> npt.NDArray[np.bool_]:
    inside = np.ones(len(times), bool)
    if start is not None:
        inside &= times >= _time("start", start)
    if end is not None:
        inside &= times < _end_of(end)
    if start is not None and end is not None and _time("start", start) >= _end_of(end):
        raise SettingError(f"`start={start}` is after `end={end}`; exchange them")
    if not (inside & known).any():
        asked = " ".join(f"{word} {value}" for word, value in (("from", start), ("to", end)) if value is not None)
        raise InputError(f"no document has a time {asked}; {_range(times[known])}")
    return inside


def _range(times: Times) -> str:
    first, last = times.min().astype("datetime64[D]"), times.max().astype("datetime64[D]")
    return f"the documents are from {first} to {last}"


def _time(name: str, value: Any) -> np.datetime64:
    """Return the beginning of a date or time that an argument names."""
    try:
        found = parse_times([value])[0]
    except InputError:
        found = np.datetime64("NaT", "us")
    if np.isnat(found):
        raise SettingError(f"`{name}={value}` is no date; give one such as 2024, 2024-05 or 2024-05-03")
    return np.datetime64(found, "us")


def _end_of(value: Any) -> np.datetime64:
    """Return when a date is over. An hour or anything longer is meant as a whole; a finer time is itself included."""
    found = _time("end", value)
    text = str(value).strip()
    unit = "us"
    if isinstance(value, date) and not isinstance(value, datetime):
        unit = "D"
    elif isinstance(value, np.datetime64):
        unit = np.datetime_data(value.dtype)[0]
    elif re.fullmatch(r"\d{4}年?", text):
        unit = "Y"
    elif re.fullmatch(r"\d{4}[-/年.]\d{1,2}月?|[A-Za-z]+\.?,?[- ]\d{4}", text):  # 2024-05, May 2024
        unit = "M"
    elif re.fullmatch(r"\d{4}-?W\d{2}", text):
        return found + np.timedelta64(7, "D")  # NumPy's weeks begin on Thursday
    elif re.fullmatch(r"\d{4}-?\d{2}-?\d{2}[T ]\d{2}", text):
        unit = "h"
    elif isinstance(value, str | int) and ":" not in text and found == found.astype("datetime64[D]"):
        unit = "D"
    return np.datetime64((found.astype(f"datetime64[{unit}]") + np.array(1, f"m8[{unit}]")).astype("datetime64[us]"))
