"""Rows of which every field is known. They are written to files by other libraries, and every field comes back.

The package never says what is right: times are read by strptime, numbers are fractions, and vectors are rounded by the
struct module.
"""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import re
import struct
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from topicloom.corpus import Corpus
from topicloom.corpus.fields import Categories

from ..campaign import Target
from ..case import Case, same
from .corpora import MARKS

WORDS = ["cat", "dog", "bird", "stock", "bank"]
LAYOUTS = ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S.%f", "%d %b %Y", "%B %d, %Y %H:%M", "%Y/%m/%d %H:%M",
           "%a, %d %b %Y %H:%M:%S", "%Y%m%d", "%d.%m.%Y", "%m/%d/%Y %I:%M %p"]  # fmt: skip
ZONES = {"": 0, "Z": 0, "+02:00": 120, "-03:30": -210}
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
UNKNOWN = ["", "N/A", "nan", "-"]
CODE = re.compile(r"[+-]?0[0-9].*|[+][0-9]{7,}|[+-]?[0-9]+[eE][0-9]+")  # zeros, telephones, products
CODES = ["0005", "-01", "01234.50", "+4930123456", "12E3"]
ODD = [*CODES, "1_000", "0x10", "1,5", "two", "9007199254740993", "1e400", "1e-400", "5 %"]


def time(case: Case, layout: str) -> tuple[str, dt.datetime | None]:
    """A time as it is written, and what it means; None if it is not known."""
    if case.chance(0.1):
        return case.pick(UNKNOWN), None
    start = dt.datetime(1900, 1, 13)  # days from the 13th on are no months
    moment = start.replace(year=1900 + case.below(130), month=1 + case.below(12), day=13 + case.below(16))
    moment += dt.timedelta(microseconds=case.below(86_400_000_000))
    written = moment.strftime(layout)
    zone = case.pick(list(ZONES)) if "T%H" in layout else ""
    return written + zone, dt.datetime.strptime(written, layout) - dt.timedelta(minutes=ZONES[zone])


def number(case: Case, odd: bool) -> str:
    """A number as it is written, a mark of an unknown one, or something that is none."""
    value = (case.random.random() - 0.5) * 10.0 ** case.below(12)
    kinds = [
        str(int(value)),
        f"{value:.3f}",
        f"{value:e}",
        repr(value),
        f"{value:+.1f}",
        f" {value:.2f}",
        "0",
        "5.",
        ".5",
    ]
    return case.pick(ODD if odd and case.chance(0.3) else UNKNOWN if case.chance(0.1) else kinds)


def exactly(written: str) -> float | None:
    """The nearest float64 to a number; None if it is no number, or if a whole number is not one exactly."""
    text = written.strip()
    if not NUMBER.fullmatch(text):
        return None
    exact = Fraction(text)
    try:
        found = float(exact)
    except OverflowError:
        return None
    lost = found == 0 != exact or (re.fullmatch(r"[+-]?\d+", text) and Fraction(found) != exact)
    return None if lost else found


def check_numbers(found: Any, column: list[str]) -> None:
    """Check a covariate: numbers if all are numbers or unknown and none is a code, and otherwise the words."""
    known = [exactly(each) for each in column]
    unknown = [each.strip().lower() in MARKS for each in column]
    are_numbers = any(each is not None for each in known) and all(
        mark or each is not None for each, mark in zip(known, unknown, strict=True)
    )
    if are_numbers and any(CODE.fullmatch(each.strip()) for each in column):
        assert isinstance(found, Categories), f"numbers of {column}"
        same(found.values(), [None if mark else each for each, mark in zip(column, unknown, strict=True)], "code")
    elif are_numbers:
        assert not isinstance(found, Categories), f"categories of {column}"
        same([None if each != each else each for each in found.tolist()], known, "number")
    else:
        assert isinstance(found, Categories), f"numbers of {column}"
        same([each or "" for each in found.values()], column, "category")


def write(case: Case, columns: dict[str, list[str]]) -> Path:
    """Write a table as one of the formats, by the library of the format."""
    ending = case.pick(["csv", "csv", "tsv", "jsonl", "jsonl", "parquet"])
    path = case.folder / f"rows.{ending}"
    rows = list(zip(*columns.values(), strict=True))
    if ending == "parquet":
        import pyarrow
        from pyarrow import parquet

        parquet.write_table(pyarrow.table(columns), path)
    elif ending == "jsonl":
        lines = [json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=case.chance(0.5)) for row in rows]
        path.write_text("".join(line + "\n" for line in lines), "utf-8")
    else:
        out = io.StringIO(newline="")
        csv.writer(out, delimiter="\t" if ending == "tsv" else ",").writerows([list(columns), *rows])
        path.write_bytes(out.getvalue().encode())
    return path


def fields(case: Case) -> int:
    """Files with every field of a row, compared field by field."""
    n_rows, layout, odd = 1 + case.below(8), case.pick(LAYOUTS), case.chance(0.3)
    words = [case.some(lambda: case.pick(WORDS), 6, 1) for _ in range(n_rows)]
    times = [time(case, layout) for _ in range(n_rows)]
    columns = {
        "id": [f"{row} {case.text(most=2)}".replace("\0", "").strip() for row in range(n_rows)],
        "text": [case.pick([" ", ", ", "; ", " \n"]).join(each) for each in words],
        "label": [case.pick(["pets", "деньги", "a,b", 'say "x"', "x y"]) for _ in range(n_rows)],
        "timestamp": [written for written, _ in times],
        "price": [number(case, odd) for _ in range(n_rows)],
        "place": [case.pick(["here", "там", "a_b", "007 a"]) for _ in range(n_rows)],
    }
    if not any(columns["price"]):  # a column without any value is refused
        columns["price"][0] = "5"
    kind = case.pick(["f2", "f4", "f8"])
    vectors = np.array([[case.random.random() * 10 - 5 for _ in range(3)] for _ in words]).astype(kind)
    corpus = Corpus.from_file(
        write(case, columns), covariates=["price", "place"], vectors=vectors, min_df=1, max_df=1.0, language="en",
        stop_words="none",
    )  # fmt: skip
    if case.chance(0.3):
        corpus.save(case.folder / "corpus")
        corpus = Corpus.load(case.folder / "corpus")
    same(corpus.ids, columns["id"], "id")
    same(corpus.labels or (), columns["label"], "label")
    moments = [None] * n_rows if corpus.times is None else corpus.times.tolist()
    same(moments, [moment for _, moment in times], f"time by {layout}")
    check_numbers(corpus.covariates["price"], columns["price"])
    check_numbers(corpus.covariates["place"], columns["place"])
    code = "e" if kind == "f2" else "f"
    expected = [struct.unpack(code, struct.pack(code, each))[0] for each in vectors.ravel().tolist()]
    assert corpus.vectors is not None
    same(corpus.vectors.ravel().tolist(), expected, "number of a vector")
    dense = corpus.counts.toarray()
    for row, each in enumerate(words):
        found = {word: int(count) for word, count in zip(corpus.vocabulary, dense[row], strict=True) if count}
        assert found == dict(Counter(each)), f"{found} instead of {each}"
    return n_rows


def given_time(case: Case) -> tuple[Any, dt.datetime | None]:
    """A time as an object of Python, NumPy or pandas, or in microseconds, and what it means."""
    import pandas

    moment = dt.datetime(1975, 1, 1) + dt.timedelta(milliseconds=case.below(3 * 10**12))
    zone = dt.timezone(dt.timedelta(minutes=case.below(1440) - 720))
    since = (moment - dt.datetime(1970, 1, 1)) // dt.timedelta(milliseconds=1)
    kinds = [moment, moment.replace(tzinfo=dt.UTC).astimezone(zone), np.datetime64(since, "ms"), since * 1000,
             np.datetime64(since * 10**6, "ns"), pandas.Timestamp(moment)]  # fmt: skip
    return (None, None) if case.chance(0.1) else (case.pick(kinds), moment)


def objects(case: Case) -> int:
    """Weights of words, times and numbers that are given as objects, compared one by one."""
    n_rows = 1 + case.below(8)
    weights = [[case.random.random() * 10.0 ** (case.below(40) - 20) for _ in range(3)] for _ in range(n_rows)]
    times = [given_time(case) for _ in range(n_rows)]
    numbers = [case.pick([None, case.below(10**6), case.random.random(), np.float32(0.1)]) for _ in range(n_rows)]
    corpus = Corpus.from_counts(
        weights, fractional=True, timestamps=[value for value, _ in times], covariates={"price": [*numbers[:-1], 7]}
    )
    expected = [struct.unpack("f", struct.pack("f", each))[0] for row in weights for each in row]
    same(corpus.counts.toarray().ravel().tolist(), expected, "weight")
    assert corpus.times is not None
    same(corpus.times.tolist(), [moment for _, moment in times], "time")
    price: Any = corpus.covariates["price"]
    exact = [None if each is None else Fraction(float(each)) for each in [*numbers[:-1], 7]]
    same([None if each != each else Fraction(each) for each in price.tolist()], exact, "number")
    return n_rows


TARGETS = {
    "corpus.rows": Target(fields, "a row, compared field by field", 2, needs=("pyarrow",)),
    "corpus.objects": Target(objects, "a row of objects, compared field by field", 1, needs=("pandas",)),
}
