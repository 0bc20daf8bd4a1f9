"""A run in which every field is hostile: its words, texts, ids, labels, times, covariates, names and its title."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import topicloom as tl
from hostile import FIELDS, TITLE, WORDS
from topicloom.reports.explorer import PageOptions, write_page
from topicloom.text.strings import is_utf8
from topicloom.topics.saved import write_stored

NAMES = [each for each in FIELDS if is_utf8(each)]  # ids, labels and categories refuse what no file can hold


def hostile_corpus(n_docs: int = 60) -> tl.Corpus:
    """Documents of hostile words, of which each has plain ones, too."""
    words = ["cat", "dog", "bank", "rate", *WORDS]
    counts = np.zeros((n_docs, len(words)), int)
    for row in range(n_docs):
        counts[row, [2 * (row % 2), 2 * (row % 2) + 1]] = 3
        counts[row, [4 + row % len(WORDS), 4 + (row + 7) % len(WORDS)]] = 1
    moments = np.linspace(-5.9e10, 3.25e10, n_docs)  # seconds, from the year 100 to the year 2999
    return tl.Corpus.from_counts(
        counts,
        words,
        texts=[f"cat dog bank {FIELDS[n % len(FIELDS)]}" for n in range(n_docs)],
        ids=[f"{NAMES[n % len(NAMES)]}{n}" for n in range(n_docs)],
        labels=[NAMES[n // 3 % len(NAMES)] for n in range(n_docs)],
        timestamps=[None if n % 5 == 0 else np.datetime64(int(moments[n]), "s") for n in range(n_docs)],
        covariates={WORDS[0]: list(range(n_docs)), WORDS[1]: [NAMES[n % len(NAMES)] for n in range(n_docs)]},
    )


def hostile_run(folder: Path, n_docs: int = 60) -> Path:
    """Write what the service and the commands read of a run into a folder with a hostile name."""
    corpus = hostile_corpus(n_docs)
    model = tl.GSM(4, epochs=2, random_state=0, verbose=False).fit(corpus)
    named = model.rename({0: WORDS[0], 1: WORDS[1], 2: WORDS[6] + WORDS[7]})
    out = folder / TITLE
    out.mkdir(parents=True)
    named.save(out / "model")
    write_stored(out, corpus, named.transform(corpus))
    write_page(out / "explorer.html", tl.Topics(named, corpus), PageOptions(TITLE))
    return out
