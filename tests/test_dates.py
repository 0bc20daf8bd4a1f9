"""Dates: each is read as it was written, or refused with its row."""

from __future__ import annotations

import datetime as dt
import os
import random
import re
import warnings

import numpy as np
import pytest

import topicloom as tl
from topicloom.corpus.fields import parse_times
from topicloom.errors import InputError, SettingError

N_SPELLINGS = int(os.environ.get("TOPICLOOM_DATES", "10000"))
TEXTS = ["cat apple horse", "dog pear river", "bird plum ocean"]


def one(value, **options):
    return parse_times([value], **options).tolist()[0]


@pytest.mark.parametrize(
    "written", ["0000-00-00", "0000-00-00 00:00:00", "0000-00-00T00:00:00.000000", "00/00/0000", "0000/00/00"]
)
def test_a_date_of_zeros_is_unknown(written):
    assert one(written) is None
    assert one(written, date_format="%Y-%m-%d") is None


@pytest.mark.parametrize(
    "written",
    ["2020-05-00", "2020-00-15", "2020-00-00", "2020/00/15", "2020-00", "00/05/2020", "0000-05-03", "0000", "0000-05"],
)
def test_other_zeros_are_refused(written):
    with pytest.raises(InputError, match="the timestamp of document 1 is"):
        parse_times([None, written])


@pytest.mark.parametrize("kind", [int, float, str, np.int64])
def test_numbers_since_1970_have_four_sizes(kind):
    moment = dt.datetime(2020, 1, 1, 7, 8, 9)
    seconds = int((moment - dt.datetime(1970, 1, 1)).total_seconds())
    for per_second in (1, 10**3, 10**6, 10**9):
        # A float64 holds nanoseconds to 256.
        assert abs(one(kind(seconds * per_second)) - moment) <= dt.timedelta(microseconds=1 if kind is float else 0)
    assert one(kind(-seconds)) == dt.datetime(1970, 1, 1) - (moment - dt.datetime(1970, 1, 1))


@pytest.mark.parametrize("number", [0, 1, 999, 3001, 10**7, 5 * 10**9, 9_999_999_999, 10**13, 10**16, 10**19, 1e300])
def test_other_numbers_are_refused(number):
    with pytest.raises(InputError, match="the timestamp of document 0 is"):
        one(number)


def test_numbers_that_are_dates():
    assert one(1998) == one("1998") == one(1998.0) == dt.datetime(1998, 1, 1)
    assert one(20210503101112) == dt.datetime(2021, 5, 3, 10, 11, 12)
    with pytest.raises(InputError, match="to the minute or milliseconds since 1970; give `date_format`"):
        one(202105031011)
    assert one(202105031011, date_format="%Y%m%d%H%M") == dt.datetime(2021, 5, 3, 10, 11)
    with pytest.raises(InputError, match="float32, which does not hold such numbers exactly"):
        one(np.float32(20210503))


@pytest.mark.parametrize(
    "value",
    [
        np.datetime64("300000-01-01"), np.datetime64("-284555-12-13"), np.datetime64(2**62, "s"), "0001-01-01",
        "9999-12-31T00:00:00", dt.datetime(1, 1, 1), dt.date(9999, 12, 31), "1/15/0050",
    ],
)  # fmt: skip
def test_years_out_of_range_are_refused(value):
    with pytest.raises(InputError, match=r"document 1 is .*, which is not in the years 100 to 3000"):
        parse_times(["2021", value])
    if isinstance(value, np.datetime64):
        column = np.array([np.datetime64("2021"), value], value.dtype)
        with pytest.raises(InputError, match=r"document 1 is .*, which is not in the years 100 to 3000"):
            parse_times(column)


def test_columns_of_frames():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": TEXTS, "timestamp": np.array(["2020", "NaT", "300000"], "datetime64[s]")})
    with pytest.raises(InputError, match=r"document 2 is .*years 100 to 3000"):
        tl.Corpus.from_frame(frame, language="en", min_df=1, max_df=1.0)
    frame["timestamp"] = ["15/02/2015", "03/04/2015", ""]
    corpus = tl.Corpus.from_frame(frame, language="en", min_df=1, max_df=1.0)
    assert corpus.times.astype("datetime64[D]").astype(str).tolist() == ["2015-02-15", "2015-04-03", "NaT"]


def test_datetime64_of_every_unit_comes_back():
    for unit in ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"):
        column = np.array(["1999-12-30", "NaT", "2021-05-03"], f"datetime64[{unit}]")
        found = parse_times(column)
        assert found.dtype == "datetime64[us]"
        np.testing.assert_array_equal(found.astype(column.dtype), column)


@pytest.mark.parametrize("unit", ["ns", "ps", "fs", "as"])
def test_the_earliest_time_of_a_fine_unit(unit):
    counts = [-(2**63) + 1, -1001, -1, 0, 999, 2**63 - 1]
    per_microsecond = {"ns": 10**3, "ps": 10**6, "fs": 10**9, "as": 10**12}[unit]
    expected = [dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=count // per_microsecond) for count in counts]
    column = np.array(counts).view(f"datetime64[{unit}]")
    assert parse_times(column).tolist() == expected
    assert parse_times(list(column)).tolist() == expected


def days(values, **options):
    return parse_times(values, **options).astype("datetime64[D]").astype(str).tolist()


def test_a_column_decides_its_order():
    assert days(["03/04/2015", "15/02/2015"]) == ["2015-04-03", "2015-02-15"]
    assert days(["03/04/2015", "02/15/2015"]) == ["2015-03-04", "2015-02-15"]
    assert days(["05/05/2015"]) == ["2015-05-05"]
    with pytest.raises(InputError, match=r"document 1 is '02/15/2015', whose month is first, but in document 0"):
        parse_times(["15/02/2015", "02/15/2015"])
    with pytest.raises(InputError, match=r"document 1 is '03/04/2015', .* and no row shows which; give `day_first`"):
        parse_times(["2021", "03/04/2015"])
    with pytest.raises(InputError, match="cannot be read"):
        parse_times(["15/16/2015"])


def test_options_decide():
    assert days(["03/04/2015"], day_first=True) == ["2015-04-03"]
    assert days(["03/04/2015"], day_first=False) == ["2015-03-04"]
    assert days(["03/04/15"], date_format="%d/%m/%y") == ["2015-04-03"]
    with pytest.raises(InputError, match="'02/15/2015', which has no day in the first place"):
        parse_times(["02/15/2015"], day_first=True)
    with pytest.raises(InputError, match=r"'45000', which .* if it is a day number of Excel"):
        parse_times(["45000"])
    with pytest.raises(InputError, match=r"'2015', which cannot be read as a date; the format is %d/%m/%Y"):
        parse_times(["2015"], date_format="%d/%m/%Y")
    for options in ({"date_format": "%d/%m"}, {"date_format": "%Y %d"}, {"date_format": 3}, {"day_first": "yes"},
                    {"day_first": True, "date_format": "%Y"}, {"date_format": "2021"}):  # fmt: skip
        with pytest.raises(SettingError):
            parse_times(["2021"], **options)


@pytest.mark.parametrize("layout", ["%d%m%Y", "%m%d%Y", "%Y%m%d", "%d%m%y"])
def test_digits_without_zeros_are_never_another_day(layout):
    for day in (dt.date(2015, 1, 1) + dt.timedelta(number) for number in range(365)):
        whole, short = day.strftime(layout), day.strftime(layout.replace("%d", "%-d").replace("%m", "%-m"))
        assert days([whole], date_format=layout) == [str(day)]
        try:
            assert days([int(short)], date_format=layout) == days([short], date_format=layout) == [str(day)]
        except InputError:
            assert short != whole
    assert one("20150503101112123", date_format="%Y%m%d%H%M%S%f") == dt.datetime(2015, 5, 3, 10, 11, 12, 123_000)


@pytest.mark.parametrize("given", [{"day_first": False}, {"date_format": "%Y"}])
def test_options_of_times_need_times(given, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("text\ncat dog\n")
    options = {"language": "en", "min_df": 1, "max_df": 1.0} | given
    for source, read in ((path, tl.Corpus.from_file), (["cat dog"], tl.Corpus.from_texts)):
        with pytest.raises(InputError, match=rf"`{next(iter(given))}.*` is for times, and no document has one"):
            read(source, **options)


def test_the_order_of_a_file_and_of_new_documents(tmp_path):
    from topicloom.corpus.inputs import documents_of_file

    rows = [*("03/04/2015" for _ in range(400)), "15/02/2015"]
    path = tmp_path / "a.csv"
    path.write_text("text,timestamp\n" + "".join(f"cat dog,{row}\n" for row in rows))
    options = {"language": "en", "min_df": 1, "max_df": 1.0}
    corpus = tl.Corpus.from_file(path, **options)
    assert set(corpus.times.astype("datetime64[D]").astype(str)) == {"2015-04-03", "2015-02-15"}
    assert tl.Corpus.from_file(path, date_format="%d/%m/%Y", **options).times.tolist() == corpus.times.tolist()
    with pytest.raises(InputError, match="document 400"):
        tl.Corpus.from_file(path, day_first=False, **options)
    path.write_text("text,timestamp\n" + "".join(f"cat dog,{row}\n" for row in reversed(rows)))
    parts = list(documents_of_file(str(path), corpus.vocabulary, corpus.tokenizer, {}, {}, 50))
    assert np.concatenate([part.times for part in parts]).tolist() == corpus.times[::-1].tolist()


def test_all_parts_of_a_file_have_the_same_fields(tmp_path):
    from topicloom.corpus.inputs import documents_of_file

    path = tmp_path / "a.jsonl"
    without, with_both = '{"text": "cat"}\n', '{"text": "cat", "label": "pet", "timestamp": "2021"}\n'
    path.write_text(with_both + without * 4)
    corpus = tl.Corpus.from_texts(["cat"], language="en", min_df=1, max_df=1.0)
    first, second = documents_of_file(str(path), corpus.vocabulary, corpus.tokenizer, {}, {}, 3)
    assert first.times.astype(str).tolist() == ["2021-01-01T00:00:00.000000", "NaT", "NaT"]
    assert second.times.astype(str).tolist() == ["NaT", "NaT"]
    assert (first.labels, second.labels) == (["pet", "", ""], ["", ""])
    path.write_text(without * 4 + with_both)
    with pytest.raises(InputError, match="document 3 or a later one has a label, but the results of the 3 before it"):
        list(documents_of_file(str(path), corpus.vocabulary, corpus.tokenizer, {}, {}, 3))
    path.write_text(without * 4 + '{"text": "cat", "price": 5}\n')
    with pytest.raises(InputError, match="document 3 or a later one has a value of 'price'"):
        list(documents_of_file(str(path), corpus.vocabulary, corpus.tokenizer, {}, {"price": 1}, 3))
    path.write_text(without * 4)
    for optional in ([], ["timestamp"]):
        parts = documents_of_file(str(path), [], corpus.tokenizer, {"day_first": True}, {}, 3, optional)
        assert next(parts).times is None
        if optional:
            assert len(list(parts)) == 1
        else:
            with pytest.raises(InputError, match="`day_first=True` is for times, and no document has one"):
                list(parts)


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("Feb 15 2015", (2015, 2, 15)), ("15 Feb 2015", (2015, 2, 15)), ("15-Feb-2015", (2015, 2, 15)),
        ("Sunday, February 15, 2015", (2015, 2, 15)), ("15th february 2015", (2015, 2, 15)), ("Feb 2015", (2015, 2, 1)),
        ("24-02-2015 11.35", (2015, 2, 24, 11, 35)), ("2/15/2015 3:04 PM", (2015, 2, 15, 15, 4)),
        ("2/15/2015 12:04 a.m.", (2015, 2, 15, 0, 4)), ("2021-05-03 10:00 UTC", (2021, 5, 3, 10)),
        ("2021-05-03 10:00:00GMT", (2021, 5, 3, 10)), ("2021-05-03T10:00Z", (2021, 5, 3, 10)),
        ("2021-05-03 10:00 +02:00", (2021, 5, 3, 8)), ("2021-05-03 10:00 -0330", (2021, 5, 3, 13, 30)),
        ("Sun Feb 15 11:35:00 2015", (2015, 2, 15, 11, 35)),
        ("Wed May  5 10:11:12 +0000 2021", (2021, 5, 5, 10, 11, 12)),
        ("Mon, 5 Apr 93 23:13:18 GMT", (1993, 4, 5, 23, 13, 18)),
        ("Mon, 05 Apr 1993 23:13:18 +0200 (CEST)", (1993, 4, 5, 21, 13, 18)),
        ("5 Apr 1993 23:13:18 EST", (1993, 4, 6, 4, 13, 18)), ("2021年5月3日 10:20", (2021, 5, 3, 10, 20)),
    ],
)  # fmt: skip
def test_spellings(written, moment):
    assert one(written) == dt.datetime(*moment)


def test_cst_is_a_zone_in_mail_alone():
    """Central time of America by RFC 5322; on a computer in China, `date` and Java write the time there with CST."""
    for mail in ("Sat, 1 May 2021 10:00:00 CST", "1 May 2021 10:00 CST", "1 May 21 10:00:00 CST"):
        assert one(mail) == dt.datetime(2021, 5, 1, 16)
    for written in (
        "Sat May  1 10:00:00 CST 2021",
        "2021-05-01 10:00 CST",
        "2021年5月1日 10:00 cst",
        "13/5/2021 10:00 CST",
    ):
        with pytest.raises(InputError, match=r"zone CST is -06:00 in America and \+08:00 in China; write the offset"):
            one(written)
    assert one("Sat May  1 10:00:00 CDT 2021") == dt.datetime(2021, 5, 1, 15)


@pytest.mark.parametrize("kind", [int, str, float])
def test_hours_are_no_seconds(kind):
    for written in ("2024050110", "1999123123", "2000010100"):
        with pytest.raises(InputError, match="to the hour or seconds since 1970; give `date_format`, such as %Y%m%d%H"):
            one(kind(written))
        assert parse_times([written], date_format="%Y%m%d%H")[0].item() == dt.datetime.strptime(written, "%Y%m%d%H")
    for seconds in (2024050124, 2024053210, 1899123123, 1893456000):  # no hour
        assert one(kind(seconds)) == dt.datetime(1970, 1, 1) + dt.timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "written",
    [
        "31/12/24", "2021-05-03 10:00 CET", "2021-05-03 10:00 GMT+2", "2021-05-03x10:00", "2021.5", "1e9", "12:30",
        "31 Feb 2015", "29.02.2015", "2021-05-03 25:00", "2/15/2015 13:04 PM", "15 Feb 15", "5 Apr 55 10:00:00 GMT",
        "May", "today", "2021-13-01", "00000000", "2021-05-03 10:61", "2021-05-03 10:00 +01:75", "1-2-3-4",
        "2021-02-30",
    ],
)  # fmt: skip
def test_what_is_not_one_date_is_refused(written):
    with pytest.raises(InputError, match="the timestamp of document 0 is"):
        one(written)


DATES = ["%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%b %d %Y", "%d %b %Y",
         "%B %d, %Y", "%d %B %Y", "%a, %d %b %Y", "%A, %B %d, %Y", "%d-%b-%Y", "%Y%m%d", "%Y-%j", "%d.%m.%y",
         "%m/%d/%y", "%b %Y", "%Y-%m", "%Y", "%H:%M", "%d %b %y", "%y%m%d", "%m %d %Y"]  # fmt: skip
CLOCKS = ["", "", " %H:%M", " %H:%M:%S", "T%H:%M:%S", " %I:%M %p", " %H.%M", " %H:%M:%S.%f", "T%H:%M:%S.%f",
          ", %H:%M", " %H%M", " %I:%M:%S%p"]  # fmt: skip
ZONES = {"": 0, "Z": 0, " UTC": 0, " GMT": 0, "+02:00": 120, " +0530": 330, "-08:00": -480, " -0330": -210}


def spelling(random_):
    """Return a moment, a spelling of it, and what that spelling means by the format of strptime that wrote it."""
    moment = dt.datetime(100, 1, 1) + dt.timedelta(
        days=random_.randrange(365 * 2900), seconds=random_.randrange(86400), microseconds=random_.randrange(10**6)
    )
    if random_.random() < 0.7:
        moment = moment.replace(year=random_.randrange(1900, 2030), day=min(moment.day, 28))
    layout, clock = random_.choice(DATES), random_.choice(CLOCKS)
    clock = "" if layout == "%H:%M" else clock
    zone = random_.choice(list(ZONES)) if clock else ""
    layout += clock
    year = f"{moment.year:04}"  # strftime does not fill years up with zeros on every system
    written = moment.strftime(layout.replace("%Y", year)) + zone
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            meant = dt.datetime.strptime(written.removesuffix(zone), layout) - dt.timedelta(minutes=ZONES[zone])
    except ValueError:
        return spelling(random_)
    if random_.random() < 0.1:  # a slip of the pen
        place = random_.randrange(len(written))
        written = written[:place] + random_.choice("0123456789/.- ") + written[place + random_.randrange(2) :]
        return written, None, None
    return written, meant, layout


def test_against_an_independent_parser():
    """Either both agree or ours refuses. The year, the day and the month of a spelling are read in no other way."""
    dateutil = pytest.importorskip("dateutil.parser")
    random_ = random.Random(20261127)
    n_read = n_known = 0
    for _ in range(N_SPELLINGS):
        written, meant, layout = spelling(random_)
        # Where the year is last, the order is told to both.
        for day_first in (True, False):
            try:
                found = one(written, day_first=day_first)
            except InputError:
                continue
            n_read += 1
            if meant is not None and (layout.startswith("%Y") or "%b" in layout or "%B" in layout):
                assert found == meant, (written, found, meant)
                n_known += 1
                continue
            if written.isdigit() or found is None or re.search(r"[a-z][- ]\d\d\s", written):
                continue  # numbers and years of two digits have tests of their own
            try:
                # With `dayfirst`, dateutil would take 2015-03-01 for the third of January.
                year_first = written.strip()[:4].isdigit()
                order = {"dayfirst": day_first and not year_first, "yearfirst": year_first}
                # It drops the minutes of 05.51 PM.
                plain = re.sub(r" (\d\d)\.(\d\d)(?= ?[AP]M)", r" \1:\2", written)
                other = dateutil.parse(plain, default=dt.datetime(2001, 1, 1), **order)
            except (ValueError, OverflowError):
                continue
            if other.tzinfo is not None:
                other = other.astimezone(dt.UTC).replace(tzinfo=None)
            assert found == other, (written, day_first, found, other)
    assert n_read > N_SPELLINGS // 2
    assert n_known > N_SPELLINGS // 4


@pytest.mark.parametrize("layout", [layout for layout in DATES if "%Y" in layout or "%y" in layout])
def test_a_given_format_is_read_as_python_reads_it(layout):
    if layout == "%Y-%j":
        pytest.skip("the day of the year needs no month")
    random_ = random.Random(3)
    for _ in range(50):
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(days=random_.randrange(20_000))
        written = moment.strftime(layout)
        assert one(written, date_format=layout) == dt.datetime.strptime(written, layout)
