"""Give articles dates, so that a collection without any can show what topics over time look like.

    python examples/stories/date_articles.py corpus.tsv

reads the articles of BBC News in the form of the OCTIS collection: a text, a part and a section, separated by tabs. It
writes articles.csv, with dates from January to May 2024, and june.csv, with dates in June. The dates are drawn at
random: articles about entertainment become rarer from month to month, those about politics more frequent, and the
other sections stay as they are. As this is known, one can check whether the topics show it.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

# The density of dates is 1 + slope * x for x from -1, the first day, to 1, the last one.
SLOPES = {"entertainment": -0.9, "politics": 0.9}


def main(source: str, folder: str = ".") -> list[Path]:
    lines = Path(source).read_text(encoding="utf-8").splitlines()
    random = np.random.default_rng(0)
    rows = []
    for line in lines:
        text, _, section = line.split("\t")
        slope, x = SLOPES.get(section, 0.0), random.uniform(-1, 1)
        if random.uniform(0, 2) > 1 + slope * x:  # rejection: the mirrored day has the density that is missing here
            x = -x
        rows.append((np.datetime64("2024-01-01") + np.timedelta64(int((x + 1) / 2 * 182), "D"), section, text))
    rows.sort(key=lambda row: row[0])
    print(f"{len(rows)} articles from {rows[0][0]} to {rows[-1][0]}")
    parts = {
        "articles.csv": [row for row in rows if row[0] < np.datetime64("2024-06-01")],
        "june.csv": [row for row in rows if row[0] >= np.datetime64("2024-06-01")],
    }
    return [write(Path(folder) / name, part) for name, part in parts.items()]


def write(path: Path, rows: list) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(("date", "section", "text"))
        table.writerows(rows)
    return path


if __name__ == "__main__":
    main(*sys.argv[1:])
