"""Write the files of the tasks, with planted facts that the checks know.

    python benchmarks/tasks/data.py SHARED FOLDER

SHARED has data/so-titles, data/thuc-titles and data/ag-news. All is drawn with a fixed seed.

- titles.csv: 15,000 titles of 19 classes, with columns id, text, label, date, team and score. Planted: class 18 rises
  from month to month; three quarters of class 3 are of team A, and half of each other class; the scores of class 5 are
  higher. The columns `label`, date, team and score are never used for training.
- book.xlsx: the same as the second sheet of two. texts/: 1,000 of them as files. broken.csv: a byte in row 7,000 that
  is no UTF-8. copies.csv: 500 titles once more, with other case and end. posts.csv: with handles, links and emoji.
- new.csv: 2,000 further titles of the same classes. next.csv: 700 more, and 300 of class 20, which titles.csv lacks.
- strange.csv: 200 of the new titles and 100 news. zh.csv: 10,000 Chinese titles.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np

NEW_CLASS, RISING, GROUPED, SCORED = "20", "18", "3", "5"
N = 15_000


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def described(rows: list[dict[str, str]], random: np.random.Generator) -> list[dict[str, Any]]:
    """Give each row an id, a date, a team and a score."""
    done = []
    for number, row in enumerate(rows):
        label = row["label"]
        weights = np.arange(1, 13) if label == RISING else np.ones(12)
        month = int(random.choice(12, p=weights / weights.sum())) + 1
        day = int(random.integers(1, 29))
        team = "A" if random.random() < (0.75 if label == GROUPED else 0.5) else "B"
        score = int(np.clip(round(random.normal(4 if label == SCORED else 3, 1)), 1, 5))
        done.append({"id": f"t{number}", "text": row["text"], "label": label, "date": f"2025-{month:02}-{day:02}",
                     "team": team, "score": score})  # fmt: skip
    return done


def make(shared: Path, folder: Path) -> None:
    random = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    source = [row for row in rows_of(shared / "data" / "so-titles" / "titles.csv") if row["text"].strip()]
    old = [row for row in source if row["label"] != NEW_CLASS]
    order = random.permutation(len(old))
    described_rows = described([old[at] for at in order], random)
    titles, new, later = described_rows[:N], described_rows[N : N + 2_000], described_rows[N + 2_000 : N + 2_700]
    fresh = described([row for row in source if row["label"] == NEW_CLASS][:300], random)
    write(folder / "titles.csv", titles)
    write(folder / "new.csv", new)
    next_month = [{**row, "id": f"n{at}", "date": f"2026-01-{at % 28 + 1:02}"} for at, row in enumerate(later + fresh)]
    write(folder / "next.csv", next_month)
    news = rows_of(shared / "data" / "ag-news" / "articles.csv")[:100]
    strange = [{**row, "news": 0} for row in new[:200]]
    strange += [{**row, "id": f"s{at}", "text": item["text"], "news": 1} for at, (row, item) in
                enumerate(zip(new, news, strict=False))]  # fmt: skip
    write(folder / "strange.csv", strange)
    write(folder / "zh.csv", rows_of(shared / "data" / "thuc-titles" / "titles.csv"))
    copies = [{**row, "id": f"c{at}", "text": row["text"].upper().rstrip("?!. ") + "!"} for at, row in
              enumerate(titles[:500])]  # fmt: skip
    write(folder / "copies.csv", titles + copies)
    posts = [
        {**row, "text": f"RT @user{at % 997}: {row['text']} &amp; #DevHelp {'🚀' * (at % 5 == 0)} https://t.co/zq{at}"}
        for at, row in enumerate(titles)
    ]
    write(folder / "posts.csv", posts)
    lines = (folder / "titles.csv").read_bytes().split(b"\n")
    lines[7_000] = lines[7_000][:8] + b"\xff" + lines[7_000][8:]
    (folder / "broken.csv").write_bytes(b"\n".join(lines))
    (folder / "texts").mkdir(exist_ok=True)
    for row in titles[:1_000]:
        (folder / "texts" / f"{row['id']}.txt").write_text(row["text"], encoding="utf-8")
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    book.create_sheet("notes").append(["about", "titles of 2025"])
    sheet = book.create_sheet("titles")
    sheet.append(list(titles[0]))
    for row in titles:
        sheet.append(list(row.values()))
    book.save(folder / "book.xlsx")


if __name__ == "__main__":
    make(Path(sys.argv[1]), Path(sys.argv[2]))
