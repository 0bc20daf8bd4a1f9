"""Dates and times: which spellings and numbers are read, and how a column decides between day first and month first.

The parser is strict. What it cannot read in exactly one way, it refuses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import InputError, SettingError
from ..messages import brief

Times: TypeAlias = "npt.NDArray[np.datetime64]"

UNIT = "datetime64[us]"
# Systems write 0001-01-01 for "not set" and 9999-12-31 for "never". Documents are between these years.
FIRST_YEAR, LAST_YEAR = 100, 3000
_YEARS_AS_NUMBERS = range(1000, 3001)  # 1998 is a year
_DAYS_AS_NUMBERS = range(1000_01_01, 3000_12_32)  # 19980215 is a day
_HOURS_AS_NUMBERS = range(1900_01_01_00, 2100_01_01_00)  # 1998021510
_MINUTES_AS_NUMBERS = range(1000_01_01_00_00, 3000_12_31_24_00)  # 199802151030
_SECONDS_AS_NUMBERS = range(1000_01_01_00_00_00, 3000_12_31_24_00_00)  # 19980215103000
# Seconds since 1970 from March 1973 to the end of 2099, and as many before 1970. Up to this size, the numbers of
# seconds, milliseconds, microseconds and nanoseconds do not overlap.
_LEAST_SECONDS, _MOST_SECONDS = 10**8, 4_102_444_800
_EPOCH = datetime(1970, 1, 1)
_PER_SECOND = (1, 10**3, 10**6, 10**9)
_LARGEST_EXACT = {2: 2**11, 4: 2**24}  # by the bytes of a float: up to here it holds every whole number

_MONTHS = {
    name: number
    for number, names in enumerate(
        ("jan january", "feb february", "mar march", "apr april", "may", "jun june", "jul july", "aug august",
         "sep sept september", "oct october", "nov november", "dec december"), 1,
    )
    for name in names.split()
}  # fmt: skip
_MONTH = rf"(?P<name>{'|'.join(sorted(_MONTHS, key=len, reverse=True))})\.?"
_WEEKDAY = r"(?:(?:mon|tue|tues|wed|thu|thur|thurs|fri|sat|sun|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\.?,?\ )?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_CLOCK = r"""
    (?P<hour>\d{1,2})(?P<colon>[:.])(?P<minute>\d{2})(?:(?P=colon)(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?
    (?:\ ?(?P<half>[ap])\.?m\.?)?
"""
# RFC 5322 gives the zones of North America one meaning each. Other abbreviations have several, and are refused; so
# is CST where the date is not one of e-mail.
_ZONES = {
    "z": 0, "utc": 0, "gmt": 0, "ut": 0, "est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8,
    "pdt": -7,
}  # fmt: skip
_ZONE = rf"(?P<zone>{'|'.join(_ZONES)}|(?:utc|gmt)?[+-]00:?00|[+-]\d{{2}}(?::?\d{{2}})?)(?:\ \([a-z ]+\))?"
_TIME = rf"(?:(?:,?\ |t){_CLOCK}(?:(?:\ |(?<=\d)){_ZONE})?)?"


def _pattern(day: str) -> re.Pattern[str]:
    return re.compile(day, re.VERBOSE | re.IGNORECASE)


_PATTERNS = (
    # 2021, 2021-5, 2021/05/03, 2021.5.3, 2021年5月3日
    _pattern(rf"(?P<year>\d{{4}})(?:年|(?:[-/.年](?P<month>\d{{1,2}})(?:[-/.月](?P<day>\d{{1,2}})日?|月)){_TIME})?"),
    _pattern(r"(?P<year>\d{4})[-/](?P<month>\d{1,2})"),
    # 15 Feb 2015, Sun, 15-Feb-2015
    _pattern(rf"{_WEEKDAY}{_DAY}(?P<gap>[-\ /]|\.\ ?){_MONTH},?(?:[-\ /])(?P<year>\d{{4}}){_TIME}"),
    # Feb 15 2015, Sunday, February 15, 2015
    _pattern(rf"{_WEEKDAY}{_MONTH}[-\ ]{_DAY}(?:,\ ?|[-\ ])(?P<year>\d{{4}}){_TIME}"),
    _pattern(rf"{_MONTH},?[-\ ](?P<year>\d{{4}})"),  # Feb 2015
    _pattern(rf"(?P<year>\d{{4}})[-\ ]{_MONTH}[-\ ]{_DAY}{_TIME}"),  # 2015-Feb-15
    # Sun Feb 15 11:35:00 2015, and with a zone before the year
    _pattern(rf"{_WEEKDAY}{_MONTH}\ {_DAY}\ {_CLOCK}(?:\ {_ZONE})?\ (?P<year>\d{{4}})"),
)
# An e-mail's 5 Apr 93 23:13:18 GMT
_MAIL = _pattern(rf"{_WEEKDAY}{_DAY}[-\ ]{_MONTH}[-\ ](?P<year>\d{{2}})\ {_CLOCK}\ {_ZONE}")
_OF_MAIL = (_PATTERNS[2], _MAIL)
_CST = "whose zone CST is -06:00 in America and +08:00 in China; write the offset"  # as `date` and Java write both
# 31/12/2024, 12/31/2024, 31.12.2024
_DAY_OR_MONTH = _pattern(rf"(?P<first>\d{{1,2}})(?P<gap>[-/.])(?P<next>\d{{1,2}})(?P=gap)(?P<year>\d{{4}}){_TIME}")
_SHORT_YEAR = re.compile(r"\d{1,2}([-/.])\d{1,2}\1\d{2}(?:\D.*)?")
# Python reads these; it would also read some that are no ISO 8601, such as an offset of +01:75.
_ISO_TIME = r"[T ]\d\d(?::?\d\d(?::?\d\d(?:[.,]\d+)?)?)?(?:Z|[+-][012]\d(?::?[0-5]\d(?::[0-5]\d(?:\.\d+)?)?)?)?"
_ISO = re.compile(rf"(?:\d{{4}}-\d\d-\d\d|\d{{4}}-?W\d\d(?:-?\d)?)(?:{_ISO_TIME})?|\d{{8}}{_ISO_TIME}", re.ASCII)
_WHOLE_OR_DECIMAL = re.compile(r"[+-]?\d+(\.\d+)?")
_DAY_OF_EXCEL = re.compile(r"[2-7]\d{4}(\.\d+)?")  # days since 1900, from 1954 to 2119
_ZERO_DATE = re.compile(r"(?:0000([-/.])00\1|00([-/.])00\2)(?:00|0000)(?:[T ]00:00(?::00(?:\.0+)?)?Z?)?")


class _Ambiguous(NamedTuple):
    """A time that begins with the day or with the month."""

    day_first: datetime
    month_first: datetime


class _Refused(ValueError):
    """The reason why a value is no time, as the end of a sentence."""


@dataclass
class _Evidence:
    """The first row that shows an order."""

    row: int
    value: str


class TimeReader:
    """Read a column of dates and times, one part after another.

    Dates such as 03/04/2015 are read as the other rows show it: beside 15/02/2015, the day is first. What one part has
    shown holds for all later ones.

    Args:
        day_first: whether such dates begin with the day (True) or with the month (False); None lets the column decide.
        date_format: the format of all strings, as `datetime.strptime` takes it; None recognises the usual ones.

    Raises:
        SettingError: both are given, or one has a value that it cannot have.
    """

    def __init__(self, day_first: bool | None = None, date_format: str | None = None) -> None:
        if day_first is not None and not isinstance(day_first, bool | np.bool_):
            raise SettingError(f"`day_first={day_first!r}` should be True, False or None")
        if day_first is not None and date_format is not None:
            raise SettingError("`date_format` says where the day is; leave `day_first` out")
        self._given = "date_format" if date_format is not None else None  # what was given, for a message
        if day_first is not None:
            self._given = f"day_first={day_first}"
        self._day_first, self._format = day_first, None if date_format is None else _checked_format(date_format)
        self._seen: dict[bool, _Evidence] = {}  # by whether the day is first
        self._begin()

    def require_none_given(self) -> None:
        """Check that nothing says how times are written, where there are no times.

        Raises:
            InputError: an argument does.
        """
        if self._given is not None:
            raise InputError(f"`{self._given}` is for times, and no document has one; give times, or leave it out")

    def _begin(self) -> None:
        self._parts: list[Times] = []
        self._n_read = 0
        self._open: list[tuple[int, _Ambiguous]] = []  # places of times whose order is not yet known
        self._first_open: _Evidence | None = None

    def add(self, values: Iterable[Any], first_row: int) -> None:
        """Read the next values, of which `is_missing` values are None.

        Args:
            values: strings, numbers, dates and times; a datetime64 array is read as a whole.
            first_row: the row of the first value, for messages.

        Raises:
            InputError: a value cannot be read, or its day and month are in another order than those of an earlier row;
                the message names the row.
        """
        if isinstance(values, np.ndarray) and values.dtype.kind == "M":
            self._parts.append(_whole_column(values, first_row))
            self._n_read += len(values)
            return
        read = self._read
        found: list[datetime | None] = []
        for row, value in enumerate(values, first_row):
            # Most columns are of ISO dates; these need no other step.
            if type(value) is str and self._format is None and _ISO.fullmatch(value):
                try:
                    time = datetime.fromisoformat(value)
                except ValueError:
                    found.append(read(value, row, len(found)))
                    continue
                if time.tzinfo is None and FIRST_YEAR <= time.year <= LAST_YEAR:
                    found.append(time)
                    continue
            found.append(None if value is None else read(value, row, len(found)))
        self._parts.append(np.array(found, UNIT))
        self._n_read += len(found)

    def finish(self) -> Times:
        """Return (n,) datetime64[us], the times that were added since the last call; NaT if a time is unknown.

        Raises:
            InputError: the day and the month of a time cannot be told apart.
        """
        times = np.concatenate([np.empty(0, UNIT), *self._parts])
        if self._first_open is not None:
            day_first = next(iter(self._seen), self._day_first)
            if day_first is None:
                raise InputError(
                    f"the timestamp of document {self._first_open.row} is {brief(self._first_open.value)}, which may "
                    "begin with the day or with the month, and no row shows which; give `day_first` or `date_format`, "
                    "or write the year first, as 2021-05-03"
                )
            for place, time in self._open:
                times[place] = time.day_first if day_first else time.month_first
        self._begin()
        return times

    def _read(self, value: Any, row: int, place: int) -> datetime | None:
        """Read a value. Remember its place if its order is not known yet."""
        try:
            read = _time_of(value) if self._format is None else _from_format(value, self._format)
            found = self._ordered(read, str(value), row) if isinstance(read, _DayOrMonth) else read
            if isinstance(found, _Ambiguous):
                self._open.append((self._n_read + place, found))
                self._first_open = self._first_open or _Evidence(row, str(value))
                return None
            return found
        except _Refused as reason:
            raise InputError(f"the timestamp of document {row} is {brief(value)}, {reason}") from None
        except (ValueError, TypeError, OverflowError, ArithmeticError):
            advice = (
                "write it as 2021-05-03 or 2021-05-03T10:00:00, or give `date_format`"
                if self._format is None
                else f"the format is {self._format}"
            )
            if _DAY_OF_EXCEL.fullmatch(str(value)) and self._format is None:
                advice = f"format its column as a date if it is a day number of Excel, or {advice}"
            raise InputError(
                f"the timestamp of document {row} is {brief(value)}, which cannot be read as a date; {advice}"
            ) from None

    def _ordered(self, found: _DayOrMonth, value: str, row: int) -> datetime | _Ambiguous:
        if found.day_first is None or found.month_first is None:
            time, day_first = (found.month_first, False) if found.day_first is None else (found.day_first, True)
            if time is None:
                raise ValueError
            if self._day_first is (not day_first):
                order = "day" if self._day_first else "month"
                raise _Refused(f"which has no {order} in the first place; correct it, or `day_first`")
            other = self._seen.get(not day_first)
            if other is not None:
                shown = ("month", "day") if day_first else ("day", "month")
                raise _Refused(
                    f"whose {shown[1]} is first, but in document {other.row}, {brief(other.value)}, the {shown[0]} is; "
                    "write all dates in one order"
                )
            self._seen.setdefault(day_first, _Evidence(row, value))
            return time
        if found.day_first == found.month_first:
            return found.day_first
        if self._day_first is not None:
            return found.day_first if self._day_first else found.month_first
        return _Ambiguous(found.day_first, found.month_first)


class _DayOrMonth(NamedTuple):
    """The two times that a spelling may mean; None for one that does not exist."""

    day_first: datetime | None
    month_first: datetime | None


def _whole_column(column: Times, first_row: int) -> Times:
    """Convert datetime64 of any unit, of which parts of a microsecond are cut off.

    Raises:
        InputError: a time is out of range.
    """
    times, is_wrong = _converted(column)
    if is_wrong.any():
        row = int(is_wrong.argmax())
        raise InputError(f"the timestamp of document {first_row + row} is {column[row]}, {_out_of_range()}")
    return times


def _converted(column: Times) -> tuple[Times, npt.NDArray[np.bool_]]:
    """Return the times in microseconds, and whether each is out of range."""
    unit = np.datetime_data(column.dtype)[0]
    is_wrong = np.zeros(len(column), bool)
    with np.errstate(all="ignore"):
        if unit in ("ns", "ps", "fs", "as"):  # NumPy's own conversion overflows at the earliest times
            elapsed: npt.NDArray[Any] = column.view(column.dtype.str.replace("M8", "m8"))
            times = (elapsed // np.timedelta64(1, "us")).astype(UNIT)
            times[np.isnat(column)] = np.datetime64("NaT", "us")
        else:  # far times would overflow, which NumPy refuses for the whole column from 2.5 on
            first, last = (np.datetime64(year, "us").astype(column.dtype) for year in ("0000", "4000"))
            is_wrong = (column < first) | (column > last)
            times = np.where(is_wrong, np.array("NaT", column.dtype), column).astype(UNIT)
    earliest, latest = np.datetime64(f"{FIRST_YEAR:04}", "us"), np.datetime64(str(LAST_YEAR + 1), "us")
    return times, (is_wrong | (times < earliest) | (times >= latest)) & ~np.isnat(column)


def _out_of_range() -> str:
    return (
        f"which is not in the years {FIRST_YEAR} to {LAST_YEAR}; correct it, or leave it empty if the time is unknown"
    )


def _in_range(time: datetime) -> datetime:
    if not FIRST_YEAR <= time.year <= LAST_YEAR:
        raise _Refused(_out_of_range())
    return time


def _naive(time: datetime) -> datetime:
    """Return a time in UTC without a zone."""
    return _in_range(time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time)


def _time_of(value: Any) -> datetime | _DayOrMonth | None:
    """Read a value of any type."""
    if hasattr(value, "to_datetime64"):  # a Timestamp of pandas may be outside the years of datetime
        value = value.to_datetime64()
    if isinstance(value, np.datetime64):
        times, is_wrong = _converted(np.array([value]))
        if is_wrong[0]:
            raise _Refused(_out_of_range())
        found: datetime | None = times[0].item()
        return found
    if isinstance(value, datetime):
        return _naive(value)
    if isinstance(value, date):
        return _in_range(datetime(value.year, value.month, value.day))
    if isinstance(value, int | float | np.number):
        return _in_range(_from_number(value))
    return _from_text(" ".join(str(value).split()))


def _from_text(text: str) -> datetime | _DayOrMonth | None:
    if _WHOLE_OR_DECIMAL.fullmatch(text) and not re.fullmatch(r"0\d{3}", text):
        return _in_range(_from_number(Decimal(text)))
    if _ZERO_DATE.fullmatch(text):  # MySQL's missing value
        return None
    if _ISO.fullmatch(text):
        try:
            return _naive(datetime.fromisoformat(text))
        except ValueError as error:
            if isinstance(error, _Refused):
                raise
    for pattern in (*_PATTERNS, _MAIL):
        if found := pattern.fullmatch(text):
            parts = found.groupdict()
            if (parts.get("zone") or "").lower() == "cst" and pattern not in _OF_MAIL:
                raise _Refused(_CST)
            year = _full_year(parts["year"])
            month = _MONTHS[parts["name"].lower()] if "name" in parts else _number(parts["month"], 1)
            day = _number(parts.get("day"), 1)
            if 0 in (month, day):
                raise _Refused("whose month or day is 0; correct it, or leave it empty if the time is unknown")
            return _at(datetime(year, month, day), parts)
    if found := _DAY_OR_MONTH.fullmatch(text):
        parts = found.groupdict()
        if (parts.get("zone") or "").lower() == "cst":
            raise _Refused(_CST)
        year, first, second = int(parts["year"]), int(parts["first"]), int(parts["next"])
        return _DayOrMonth(_time_or_none(year, second, first, parts), _time_or_none(year, first, second, parts))
    if _SHORT_YEAR.fullmatch(text):
        raise _Refused("whose year has two digits; write the year with four, or give `date_format`, such as %d/%m/%y")
    raise ValueError


def _number(part: str | None, absent: int) -> int:
    """Return a number that is written, or the one that stands for it if none is. A written 0 is 0."""
    return absent if part is None else int(part)


def _full_year(year: str) -> int:
    """Return a year of which mail may have written two digits; RFC 5322 and POSIX agree on those from 69 to 49."""
    if len(year) == 4:
        return int(year)
    if 50 <= int(year) < 69:
        raise _Refused("whose year has two digits; write the year with four")
    return int(year) + (1900 if int(year) >= 69 else 2000)


def _time_or_none(year: int, month: int, day: int, parts: dict[str, str | None]) -> datetime | None:
    try:
        midnight = datetime(year, month, day)
    except ValueError:
        return None
    return _at(midnight, parts)


def _at(midnight: datetime, parts: dict[str, Any]) -> datetime:
    """Add the time of day and the zone that were written."""
    hour = _number(parts.get("hour"), 0)
    if half := parts.get("half"):
        if not 1 <= hour <= 12:
            raise ValueError
        hour = hour % 12 + (12 if half.lower() == "p" else 0)
    microsecond = int((parts.get("fraction") or "").ljust(6, "0")[:6])
    time = midnight.replace(
        hour=hour, minute=_number(parts.get("minute"), 0), second=_number(parts.get("second"), 0),
        microsecond=microsecond,
    )  # fmt: skip
    zone = parts.get("zone")
    return _in_range(time) if zone is None else _naive(time.replace(tzinfo=_zone(zone.lower())))


def _zone(written: str) -> timezone:
    if written in _ZONES:
        return timezone(timedelta(hours=_ZONES[written]))
    sign, digits = (-1 if "-" in written else 1), re.sub(r"\D", "", written)
    hours, minutes = int(digits[:2]), int(digits[2:] or 0)
    if minutes > 59:
        raise ValueError
    return timezone(sign * timedelta(hours=hours, minutes=minutes))


def _from_number(number: Any) -> datetime:
    """Read a year, a day or the time since 1970.

    Seconds, milliseconds, microseconds and nanoseconds are told apart by their size.
    """
    largest = _LARGEST_EXACT.get(number.itemsize) if isinstance(number, np.floating) else None
    if largest is not None and abs(number) >= largest:
        raise _Refused(f"a {number.dtype}, which does not hold such numbers exactly; give whole numbers or float64")
    exact = number if isinstance(number, Decimal) else Decimal(int(number) if number == int(number) else float(number))
    if exact == exact.to_integral_value():
        whole = int(exact)
        if whole in _YEARS_AS_NUMBERS:
            return datetime(whole, 1, 1)
        if whole in _DAYS_AS_NUMBERS:
            return datetime.strptime(str(whole), "%Y%m%d")
        if whole in _SECONDS_AS_NUMBERS:
            return datetime.strptime(str(whole), "%Y%m%d%H%M%S")
        for numbers, written, may_be in (
            (_HOURS_AS_NUMBERS, "%Y%m%d%H", "a time to the hour or seconds"),
            (_MINUTES_AS_NUMBERS, "%Y%m%d%H%M", "a time to the minute or milliseconds"),
        ):
            if whole in numbers and _is_written(whole, written):
                raise _Refused(f"which may be {may_be} since 1970; give `date_format`, such as {written}")
    for per_second in _PER_SECOND:
        if _LEAST_SECONDS * per_second <= abs(exact) < _MOST_SECONDS * per_second:
            rounding = ROUND_HALF_EVEN if isinstance(number, float | np.floating) else ROUND_FLOOR
            microseconds = (exact * 10**6 / per_second).to_integral_value(rounding)
            return _EPOCH + timedelta(microseconds=int(microseconds))
    raise ValueError


def _is_written(number: int, written: str) -> bool:
    try:
        datetime.strptime(str(number), written)
    except ValueError:
        return False
    return True


_EXAMPLE = datetime(2015, 2, 15, 22, 35)  # of which no two parts are the same number
_ALIKE = _EXAMPLE.replace(year=2026)  # all but the year is the same, also the day of the week


def _checked_format(written: Any) -> str:
    """Return a format of dates.

    Raises:
        SettingError: it is no format, or it leaves out the year, or the month of a day.
    """
    advice = "give one such as %d/%m/%Y, with the directives of Python's strptime"
    try:
        example = _EXAMPLE.strftime(written)
        has_year = example != _ALIKE.strftime(written)
        whole = (example, written) if has_year else (f"{example} 2015", f"{written} %Y")  # Python warns without a year
        found = datetime.strptime(*whole)
    except (TypeError, ValueError):
        raise SettingError(f"`date_format={brief(written)}` is no format of dates; {advice}") from None
    if not has_year or found.year != _EXAMPLE.year or (found.month, found.day) not in ((2, 15), (2, 1), (1, 1)):
        raise SettingError(f"`date_format={brief(written)}` leaves out the year or the month; {advice}")
    return str(written)


def _from_format(value: Any, written: str) -> datetime | _DayOrMonth | None:
    """Read a string, or a whole number as its digits. Dates and times are what they are."""
    if isinstance(value, int | float | np.number):
        if isinstance(value, bool) or value != int(value):
            raise ValueError
        value = str(int(value))
    if not isinstance(value, str):
        return _time_of(value)
    text = value.strip()
    if _ZERO_DATE.fullmatch(text):
        return None
    found = datetime.strptime(text, written)
    # Python takes 3042015 for 30 April by %d%m%Y, but a zero may be missing before 3 April.
    whole = found.strftime(written.replace("%Y", f"{found.year:04}"))
    if text.isdecimal() and text.strip("0") != whole.strip("0"):
        raise _Refused(f"which has too few digits for the format {written}; write all zeros, as {whole}")
    return _naive(found)
