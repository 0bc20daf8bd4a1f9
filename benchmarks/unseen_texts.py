"""Write labelled texts of public repositories as the corpora of `vectors.py --own`.

    python benchmarks/unseen_texts.py CLONES FOLDER

CLONES is a folder that contains clones of these GitHub repositories, or links to them, under their own names:
qiang2100/STTM, rashadulrakib/short-text-clustering-enhancement, PolyAI-LDN/task-specific-datasets, clinc/oos-eval,
CLUEbenchmark/FewCLUE and tblock/10kGNAD. Equal texts of a corpus are written once.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Pairs = Iterable[tuple[str, str]]


def of_two_files(texts: Path, labels: Path) -> Pairs:
    """Yield the lines of a file of texts and of one of labels."""
    lines = (path.read_text(encoding="utf-8", errors="replace").split("\n") for path in (texts, labels))
    return zip(*lines, strict=False)  # one of the files may end with more empty lines


def of_clue(folder: Path, text: str, label: str) -> Pairs:
    """Yield the labelled texts of a task of FewCLUE."""
    for name in ("train_few_all", "dev_few_all", "test_public"):
        for line in (folder / f"{name}.json").read_text(encoding="utf-8").split("\n"):
            if line.strip():
                row = json.loads(line)
                yield row[text], row[label]


def of_csv(*files: Path, text: str | int, label: str | int, delimiter: str = ",", quote: str | None = '"') -> Pairs:
    """Yield two columns of CSV files, by name, or by number if the files have no header."""
    form: dict[str, Any] = {"delimiter": delimiter, "quotechar": quote or '"'}
    form["quoting"] = csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE
    for file in files:
        with file.open(encoding="utf-8", newline="") as opened:
            if isinstance(text, str):
                for row in csv.DictReader(opened, **form):
                    yield row[text], row[str(label)]
            else:
                for cells in csv.reader(opened, **form):
                    yield cells[text], cells[int(label)]


def corpora(clones: Path) -> dict[str, Pairs]:
    """Return the texts and labels of each corpus, by NAME.LANGUAGE."""
    short, banking = clones / "STTM" / "dataset", clones / "task-specific-datasets" / "banking_data"
    biomedical = clones / "short-text-clustering-enhancement" / "data" / "biomedical" / "biomedical_true_text"
    clue = clones / "FewCLUE" / "datasets"
    requests = json.loads((clones / "oos-eval" / "data" / "data_full.json").read_text(encoding="utf-8"))
    return {
        "snippets.en": of_two_files(short / "SearchSnippets.txt", short / "SearchSnippets_label.txt"),
        "tweets.en": of_two_files(short / "Tweet.txt", short / "Tweet_LABEL.txt"),
        "googlenews.en": of_two_files(short / "GoogleNews.txt", short / "GoogleNews_LABEL.txt"),
        "biomedical.en": of_csv(biomedical, text=1, label=0, delimiter="\t", quote=None),
        "banking.en": of_csv(banking / "train.csv", banking / "test.csv", text="text", label="category"),
        "clinc.en": ((text, label) for part in ("train", "val", "test") for text, label in requests[part]),
        "tnews.zh": of_clue(clue / "tnews", "sentence", "label_desc"),
        "csldcp.zh": of_clue(clue / "csldcp", "content", "label"),
        "iflytek.zh": of_clue(clue / "iflytek", "sentence", "label_des"),
        "gnad.de": of_csv(clones / "10kGNAD" / "test.csv", text=1, label=0, delimiter=";", quote="'"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clones", type=Path)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, pairs in corpora(options.clones).items():
        labels: dict[str, str] = {}  # of each text
        for text, label in pairs:
            if text.strip() and label.strip():
                labels.setdefault(" ".join(text.split()), label.strip())
        with (options.folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["text", "label"])
            writer.writerows(labels.items())
        print(f"{name}: {len(labels):,} texts, {len(set(labels.values()))} classes")


if __name__ == "__main__":
    main()
