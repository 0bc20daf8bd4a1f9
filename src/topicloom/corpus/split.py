"""A corpus in three parts: to learn from, to choose settings on, and to report on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..errors import InputError, SettingError
from .corpus import Corpus

_SPLIT_SEED = 0


class Split(NamedTuple):
    """A corpus in three parts."""

    train: Corpus
    validation: Corpus
    test: Corpus


def split(corpus: Corpus, validation: float = 0.1, test: float = 0.2, random_state: int = _SPLIT_SEED) -> Split:
    """Divide the documents that have words at random.

    Args:
        corpus: the documents.
        validation: the share of documents to choose settings on, above 0.
        test: the share of documents to report on, above 0; together with `validation` it is below 1.
        random_state: the same seed draws the same parts.

    Raises:
        InputError: a part would be empty.
        SettingError: shares that leave nothing to learn from.
    """
    if not (validation > 0 and test > 0 and validation + test < 1):
        raise SettingError(
            f"validation and test should be shares above 0, together below 1; they are {validation} and {test}"
        )
    rows = np.random.default_rng(random_state).permutation(np.flatnonzero(~corpus.is_empty))
    ends = np.cumsum([round(len(rows) * test), round(len(rows) * validation)])
    for_test, for_validation, kept = np.split(rows, ends)
    if not (len(for_test) and len(for_validation) and len(kept)):
        raise InputError(f"{len(rows)} documents with words are too few to learn from, to choose on and to test on")
    return Split(corpus[np.sort(kept)], corpus[np.sort(for_validation)], corpus[np.sort(for_test)])
