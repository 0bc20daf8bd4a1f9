"""Synthetic corpora whose words are as unequally frequent as those of a text, drawn from LDA with known topics."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import shared
import topicloom as tl

FOLDER = shared.RESULTS / "zipf"
PLANTED, LENGTH = 50, 63  # topics; tokens of a document, of about 60 different words
_SKIPPED = 10.0  # added to the ranks, as stop words are left out


def corpus(n_docs: int, n_words: int) -> Path:
    """Return the folder of a saved corpus, which is made once.

    The word of rank r has a frequency in proportion to 1 / (r + 10) (Zipf's law without the stop words). The topics are
    drawn around these frequencies, and documents from LDA with a Dirichlet parameter of .05 for each topic.
    """
    folder = FOLDER / f"{n_docs}-{n_words}"
    if (folder / "corpus.json").exists():
        return folder
    random = np.random.default_rng(0)
    frequencies = 1 / (np.arange(n_words) + _SKIPPED)
    shapes = np.maximum(0.1 * n_words * frequencies / frequencies.sum(), 1e-3)
    topics = random.gamma(shapes, size=(PLANTED, n_words)) + 1e-12
    topics /= topics.sum(1, keepdims=True)
    drawn = tl.datasets.synthetic_lda(n_docs, topics=topics, alpha=0.05, doc_length=LENGTH)
    drawn.corpus.save(folder, overwrite=True)
    return folder
