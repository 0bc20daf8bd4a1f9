"""Calendar periods of documents."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from ..errors import InputError, SettingError, nearest

Period = Literal["auto", "day", "week", "month", "quarter", "year"]
_LENGTHS: tuple[Period, ...] = ("day", "week", "month", "quarter", "year")
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_MOST_PERIODS = 20_000
_MOST_BY_DEFAULT = 40  # periods, where the period is chosen by the time that the documents span


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
        period: "day", "week", "month", "quarter" or "year". "auto" is the shortest of them of which there are at most
            40 from the first document to the last.

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
            "no document has a time, so there is nothing to show over time; times are given when the corpus is made: "
            "--timestamp COLUMN of train, or timestamps=... of Corpus"
        )
    if period == "auto":
        period = next(
            (each for each in _LENGTHS if np.ptp(_numbers(times[known], each)) < _MOST_BY_DEFAULT), _LENGTHS[-1]
        )
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
    found: npt.NDArray[np.int64] = months // _MONTHS[period]
    return found


def _starts(numbers: npt.NDArray[np.int64], period: str) -> npt.NDArray[np.datetime64]:
    if period == "day":
        return numbers.astype("datetime64[D]")
    if period == "week":
        return (numbers * 7 - 3).astype("datetime64[D]")
    months = numbers * _MONTHS[period]
    return months.astype("datetime64[M]").astype("datetime64[D]")
