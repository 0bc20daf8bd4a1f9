"""Dates and times of documents, read in the forms that files and tables have, and kept as datetime64 in UTC."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..text.characters import brief
from .missing import is_mark, is_missing, values_of

Times: TypeAlias = "npt.NDArray[np.datetime64]"

_UNIT = "datetime64[us]"
# 2021, 2021-5, 2021/05/03, 2021.5.3, 2021年5月3日, each with or without a time of day after it.
_LOOSE = re.compile(
    r"(\d{4})(?:[-/.年](\d{1,2})(?:[-/.月](\d{1,2})日?)?月?)?年?"
    r"(?:[ T](\d{1,2}):(\d{2})(?::(\d{2}))?)?"
)
_DAY_OR_MONTH = re.compile(r"\d{1,2}([-/.])\d{1,2}\1\d{2,4}\b")  # 31/12/2024, 12/31/2024, 31.12.2024
_SECONDS, _MILLISECONDS = 1e8, 1e11  # numbers from these on are seconds or milliseconds since 1970


def parse_times(values: Iterable[Any], first_row: int = 0) -> Times:
    """Read dates and times.

    Args:
        values: one value for each document: an ISO 8601 string ("2021-05-03", "2021-05-03T10:00:00+02:00"), a year or
            a month ("2021", "2021-05"), "2021/05/03", "2021年5月3日", a date as in e-mail, a date, datetime or
            datetime64, a year or a day as a number (2021, 20210503), or the seconds or milliseconds since 1970. None,
            NaN, NaT, pandas' NA, and the usual marks such as "", "-" and "N/A" stand for an unknown time. Times without
            a time zone are in UTC.
        first_row: the row of the first value, for messages.

    Returns:
        (n,) datetime64[us]; NaT if the time is unknown.

    Raises:
        InputError: a value cannot be read; the message names its row.
    """
    column = values_of("`timestamps`", values)
    if isinstance(column, np.ndarray) and column.dtype.kind == "M":
        return column.astype(_UNIT)
    return np.array([_parsed(value, row) for row, value in enumerate(column, first_row)], _UNIT)


def _parsed(value: Any, row: int) -> np.datetime64 | None:
    if is_missing(value) or is_mark(value):
        return None
    try:
        return _read(value)
    except (ValueError, TypeError, OverflowError):
        fault = f"the timestamp of document {row} is {brief(value)}, which"
        if _DAY_OR_MONTH.match(str(value).strip()):
            raise InputError(
                f"{fault} may begin with the day or with the month; write the year first, as 2021-05-03, for example "
                "by pandas.to_datetime(column, dayfirst=True)"
            ) from None
        raise InputError(f"{fault} cannot be read as a date; write it as 2021-05-03 or 2021-05-03T10:00:00") from None


def _read(value: Any) -> np.datetime64:
    if isinstance(value, np.datetime64):
        return np.datetime64(value.astype(_UNIT).item(), "us")
    if isinstance(value, datetime):
        in_utc = value.astimezone(UTC) if value.tzinfo else value
        return np.datetime64(in_utc.replace(tzinfo=None), "us")
    if isinstance(value, date):
        return np.datetime64(value, "us")
    if isinstance(value, int | float | np.number):
        return _from_number(float(value))
    text = str(value).strip()
    try:
        return _read(datetime.fromisoformat(text))
    except ValueError:
        pass
    if loose := _LOOSE.fullmatch(text):
        year, month, day, hour, minute, second = (int(part) if part else None for part in loose.groups())
        return np.datetime64(datetime(year or 1, month or 1, day or 1, hour or 0, minute or 0, second or 0), "us")
    if re.fullmatch(r"-?\d+(\.\d+)?", text):
        return _from_number(float(text))
    return _read(parsedate_to_datetime(text))


def _from_number(number: float) -> np.datetime64:
    if number.is_integer() and 1000 <= number <= 3000:
        return np.datetime64(date(int(number), 1, 1), "us")
    if number.is_integer() and 1000_01_01 <= number <= 3000_12_31:  # year, month and day
        return np.datetime64(datetime.strptime(str(int(number)), "%Y%m%d"), "us")
    if abs(number) < _SECONDS:
        raise ValueError
    seconds = number / 1000 if abs(number) >= _MILLISECONDS else number
    return np.datetime64(round(seconds * 1e6), "us")
