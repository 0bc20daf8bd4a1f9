"""Vocabularies in the forms that other libraries have: a list, or a mapping between words and their columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from ..errors import InputError

Vocabulary: TypeAlias = Iterable[str] | Mapping[int, str]  # the forms that `words_by_column` reads


def words_by_column(vocabulary: Iterable[Any]) -> list[Any]:
    """Return the words of a vocabulary in the order of their columns.

    Args:
        vocabulary: the word of each column, in order; or a mapping from words to columns, such as `vocabulary_` of
            scikit-learn's CountVectorizer, or from columns to words, such as a Dictionary of gensim.

    Raises:
        InputError: a set, which has no order; or a mapping whose numbers are not 0, 1, ..., V - 1.
    """
    if isinstance(vocabulary, set | frozenset):
        raise InputError("`vocabulary` is a set, which has no order; give a list with the word of each column")
    if not isinstance(vocabulary, Mapping):
        return list(vocabulary)
    columns = set(range(len(vocabulary)))
    if set(vocabulary) == columns:
        return [vocabulary[column] for column in range(len(vocabulary))]
    words = {column: word for word, column in vocabulary.items()}
    if set(words) == columns:
        return [words[column] for column in range(len(vocabulary))]
    raise InputError(
        "`vocabulary` is a mapping that does not number the columns 0, 1, 2 and so on; give a list with the word of "
        "each column"
    )
