"""The division of a corpus into documents for training, for validation and for testing."""

from __future__ import annotations

from numbers import Real
from typing import NamedTuple

import numpy as np

from ..errors import InputError, SettingError
from ..messages import brief, nearest
from ..settings import require_seed
from .corpus import Corpus
from .fields import Categories

_SPLIT_SEED = 0
_PARTS = {
    "train": "train",
    "training": "train",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "dev": "validation",
    "test": "test",
}


class Split(NamedTuple):
    """The three parts of a corpus."""

    train: Corpus
    validation: Corpus
    test: Corpus


def split(corpus: Corpus, validation: float = 0.1, test: float = 0.2, random_state: int = _SPLIT_SEED) -> Split:
    """Divide a corpus at random. Documents without words are left out.

    Args:
        corpus: the documents.
        validation: the share of the documents on which settings are chosen, above 0.
        test: the share of the documents on which results are reported, above 0. The sum of both shares is below 1.
        random_state: the seed; the same seed gives the same parts.

    Raises:
        InputError: a part would be empty.
        SettingError: a share is not above 0, both together leave nothing for training, or `random_state` is no seed.

    Examples:
        >>> from topicloom.corpus.parts import split
        >>> from topicloom.datasets import synthetic_lda
        >>> train, validation, test = split(synthetic_lda(100).corpus)
        >>> len(train), len(validation), len(test)
        (70, 10, 20)
    """
    are_shares = isinstance(validation, Real) and isinstance(test, Real)
    if not (are_shares and validation > 0 and test > 0 and validation + test < 1):
        own = "" if are_shares else "; give documents of your own as `split`"
        raise SettingError(
            "`validation` and `test` should be shares above 0, and together below 1; they are "
            f"{brief(validation)} and {brief(test)}{own}"
        )
    require_seed(random_state)
    rows = np.random.default_rng(random_state).permutation(np.flatnonzero(~corpus.is_empty))
    ends = np.cumsum([round(len(rows) * test), round(len(rows) * validation)])
    for_test, for_validation, kept = np.split(rows, ends)
    if not (len(for_test) and len(for_validation) and len(kept)):
        raise InputError(
            f"{len(rows)} documents with words are too few for training, validation and testing; give more documents"
        )
    return Split(corpus[np.sort(kept)], corpus[np.sort(for_validation)], corpus[np.sort(for_test)])


def split_by_covariate(corpus: Corpus, name: str) -> Split:
    """Divide a corpus by the values of a covariate. A part may be empty.

    Args:
        corpus: the documents.
        name: the covariate, whose values are train, validation (or val, valid, dev) and test.

    Raises:
        InputError: there is no such covariate, or it has other values.

    Examples:
        >>> import topicloom as tl
        >>> from topicloom.corpus.parts import split_by_covariate
        >>> parts = {"part": ["train", "test", "train", "dev"]}
        >>> corpus = tl.Corpus.from_counts([[1], [2], [3], [4]], ["cat"], covariates=parts)
        >>> [part.n_tokens for part in split_by_covariate(corpus, "part")]
        [4, 4, 2]
    """
    if name not in corpus.covariates:
        known = f"; {nearest(name, corpus.covariates)}" if corpus.covariates else "; it has none"
        raise InputError(f"`split` names {name!r}, which is no covariate of the corpus{known}")
    column = corpus.covariates[name]
    if not isinstance(column, Categories):
        raise InputError(f"the values of {name!r} are numbers; they should be train, validation and test")
    rows: dict[str, list[int]] = {part: [] for part in Split._fields}
    for row, value in enumerate(column.values()):
        part = _PARTS.get((value or "").strip().lower())
        if part is None:
            raise InputError(f"document {row} has {value!r} as {name!r}; it should be train, validation or test")
        rows[part].append(row)
    return Split(*(corpus.subset(chosen) for chosen in rows.values()))
