"""The tokenizers, filters, counts and fields of several corpora as those of one, for `Corpus.concatenate`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ..errors import InputError
from ..messages import brief
from ..text import AnyTokenizer, CustomTokenizer, TextEncoder, Tokenizer
from ..text.counting import Counts
from ..text.strings import TextWriter, release
from .building import index_type
from .fields import Categories, Covariate, Fields, Vectors, compact, row_numbers

logger = logging.getLogger("topicloom")

JointVocabulary: TypeAlias = Literal["union", "first"]

_UNKNOWN_TIME = np.datetime64("NaT", "us")
_NAMED = 5  # corpora in a message
_KINDS = {
    "language": "splits texts by the rules of a language",
    "custom": "is a function of your own",
    "pretokenized": "takes lists of tokens or counts",
}


WORDS_OF: dict[str, int | None] = {"union": None, "first": 1}  # how many corpora give their words


def common_tokenizer(tokenizers: Sequence[AnyTokenizer]) -> AnyTokenizer:
    """Return the tokenizer of several corpora; of equal ones, the first that can split texts.

    Raises:
        InputError: two of them split texts in different ways.
    """
    first: AnyTokenizer = tokenizers[0]
    for number, tokenizer in enumerate(tokenizers[1:], 1):
        if difference := tokenizer_difference(first, tokenizer):
            raise InputError(
                f"the tokenizers of corpus 0 and corpus {number} differ: {difference}; make both corpora with the same "
                "tokenizer"
            )
        if not can_split(first):
            first = tokenizer
        if isinstance(first, Tokenizer) and isinstance(tokenizer, Tokenizer):
            for name in _OF_DOCUMENTS:
                both = tuple(dict.fromkeys((*getattr(first, name), *getattr(tokenizer, name))))
                if both != getattr(first, name):
                    first = Tokenizer.model_validate(first.model_dump() | {name: both})
    return first


# Lists of a tokenizer that depend on the documents, so that those of two months differ; the union is for both.
_OF_DOCUMENTS = ("boilerplate", "speakers")


def tokenizer_difference(one: AnyTokenizer, other: AnyTokenizer) -> str | None:
    """Return in what two tokenizers differ, or None if they split texts by the same settings."""
    ours, theirs = one.model_dump(), other.model_dump()
    for name in ours:
        here, there = ours[name], theirs.get(name)
        if here == there or name in _OF_DOCUMENTS:
            continue
        if name == "kind":
            return f"one {_KINDS[one.kind]}, and the other {_KINDS[other.kind]}"
        if isinstance(here, tuple) and isinstance(there, tuple) and set(here) != set(there):
            only = min(set(here) ^ set(there))
            return f"{only!r} is in `{name}` of one alone"
        return f"`{name}` is {brief(here)} in one, and {brief(there)} in the other"
    if isinstance(one, CustomTokenizer) and isinstance(other, CustomTokenizer) and not one.has_same_function(other):
        return f"they are different functions of the name {one.name!r}"
    return None


def can_split(tokenizer: AnyTokenizer) -> bool:
    """Return whether a tokenizer can split texts. A user's own one that was loaded from disk may lack its function."""
    return not isinstance(tokenizer, CustomTokenizer) or tokenizer.has_function


def require_equal_filters(filters: Sequence[Mapping[str, Any]]) -> None:
    """Check that all corpora chose their words by the same filters.

    Args:
        filters: the settings of each corpus.

    Raises:
        InputError: a filter differs.
    """
    first = filters[0]
    for number, other in enumerate(filters[1:], 1):
        for name in dict.fromkeys([*first, *other]):
            here, there = (
                f"`{name}={settings[name]!r}`" if name in settings else "without filters" for settings in (first, other)
            )
            if here != there:
                raise InputError(
                    f"the filters of corpus 0 ({here}) and corpus {number} ({there}) differ; make both corpora with "
                    "the same filters, or keep the words of the first one by `vocabulary='first'`"
                )


def warn_of_incomplete(numbers: Sequence[int], tokenizer: AnyTokenizer) -> None:
    """Warn that some words are not counted in some corpora.

    Args:
        numbers: these corpora.
        tokenizer: the tokenizer of all corpora.
    """
    if not numbers:
        return
    which = ("corpus " if len(numbers) == 1 else "corpora ") + ", ".join(map(str, numbers[:_NAMED]))
    which += ", ..." if numbers[_NAMED:] else ""
    if can_split(tokenizer):
        cause, advice = f"the texts of {which} are not known", "make each corpus with `keep_texts=True`"
    else:
        cause, advice = "the tokenizer's function is not known", "include a corpus that was not loaded from disk"
    logger.warning("%s, so the words that the filters left out of %s are not counted there; %s", cause, which, advice)


def stacked(parts: Iterable[Counts], n_words: int) -> Counts:
    """Return counts over the same words as one matrix. SciPy would copy row starts of another type than the columns."""
    found = list(parts)
    index = index_type(sum(part.nnz for part in found))
    ends = np.cumsum([0, *(part.nnz for part in found)])
    starts = [part.indptr[:-1].astype(index) + index(end) for part, end in zip(found, ends[:-1], strict=True)]
    data = np.concatenate([part.data for part in found]).astype(np.float32, copy=False)
    indices = np.concatenate([part.indices for part in found]).astype(index, copy=False)
    indptr = np.concatenate([*starts, ends[-1:].astype(index)])
    for part in found:
        release(part.data, part.indices)
    return sparse.csr_array((data, indices, indptr), shape=(len(indptr) - 1, n_words))


def joined_fields(parts: Sequence[Fields], sizes: Sequence[int]) -> Fields:
    """Return the fields of all documents.

    Args:
        parts: the fields of each corpus.
        sizes: the number of documents of each.
    """
    return Fields(
        _joined_ids(parts, sizes),
        _filled([part.labels for part in parts], sizes, lambda size: [""] * size, _all_strings),
        _filled([part.times for part in parts], sizes, lambda size: np.full(size, _UNKNOWN_TIME), np.concatenate),
        _texts_of_all(parts),
        _tokens_of_all(parts),
        _joined_vectors(parts),
        {
            name: _joined_covariate(name, [part.covariates.get(name) for part in parts], sizes)
            for name in dict.fromkeys(chain.from_iterable(part.covariates for part in parts))
        },
        _common_encoder(parts),
    )


def _filled(
    columns: Sequence[Any], sizes: Sequence[int], unknown: Callable[[int], Any], join: Callable[[list[Any]], Any]
) -> Any:
    """Join a column of all corpora. Those that lack it get unknown values; None if all lack it."""
    if all(column is None for column in columns):
        return None
    pairs = zip(columns, sizes, strict=True)
    return join([unknown(size) if column is None else column for column, size in pairs])


def _joined_ids(parts: Sequence[Fields], sizes: Sequence[int]) -> Sequence[str]:
    if all(part.ids == row_numbers(size) for part, size in zip(parts, sizes, strict=True)):
        return row_numbers(sum(sizes))
    return _all_strings([part.ids for part in parts])


def _all_strings(columns: Sequence[Sequence[str]]) -> Sequence[str]:
    return compact(_stored(columns))


def _stored(columns: Sequence[Sequence[str]]) -> Sequence[str]:
    with TextWriter() as writer:
        for text in chain.from_iterable(columns):
            writer.append(text)
        return writer.finish()


def _texts_of_all(parts: Sequence[Fields]) -> Sequence[str] | None:
    """Return the texts, or None if a corpus has none: the order of words is known for all documents or for none."""
    known = [part.texts for part in parts if part.texts is not None]
    if len(known) == len(parts):
        return _stored(known)
    if known:
        without = next(number for number, part in enumerate(parts) if part.texts is None)
        logger.warning(
            "corpus %d has no texts, so the texts of the others are left out; make it with `keep_texts=True` to keep "
            "them", without,
        )  # fmt: skip
    return None


def _tokens_of_all(parts: Sequence[Fields]) -> Sequence[Sequence[str]] | None:
    known = [part.tokens for part in parts if part.tokens is not None]
    return list(chain.from_iterable(known)) if len(known) == len(parts) else None


def _joined_vectors(parts: Sequence[Fields]) -> Vectors | None:
    known = {number: part.vectors for number, part in enumerate(parts) if part.vectors is not None}
    if not known:
        return None
    first = next(iter(known))
    for number in range(len(parts)):
        if number not in known:
            raise InputError(
                f"corpus {first} has a vector for each document, and corpus {number} has none; make it with `vectors`"
            )
        if known[number].shape[1] != known[first].shape[1]:
            raise InputError(
                f"the vectors of corpus {number} have {known[number].shape[1]} numbers, and those of corpus {first} "
                f"{known[first].shape[1]}; make both with the same model"
            )
    joined: Vectors = np.concatenate(list(known.values()))
    return joined


def _common_encoder(parts: Sequence[Fields]) -> TextEncoder | None:
    """Return the encoder of all vectors; None if it is not known for each corpus."""
    known = {number: part.encoder for number, part in enumerate(parts) if part.encoder is not None}
    for number, encoder in known.items():
        first = next(iter(known))
        encoder.require_same(known[first], f"corpus {first}", f"corpus {number}")
    return known[0] if len(known) == len(parts) else None


def _joined_covariate(name: str, columns: Sequence[Covariate | None], sizes: Sequence[int]) -> Covariate:
    """Join a covariate. A column of numbers that are all missing may be one of categories, as their type is not known.

    Raises:
        InputError: it has numbers in one corpus, and categories in another.
    """
    is_category = [isinstance(column, Categories) for column in columns]
    has_numbers = [isinstance(column, np.ndarray) and not np.isnan(column).all() for column in columns]
    if not any(is_category):
        return cast(Covariate, _filled(columns, sizes, lambda size: np.full(size, np.nan), np.concatenate))
    if any(has_numbers):
        raise InputError(
            f"the covariate {name!r} has numbers in corpus {has_numbers.index(True)} and categories in corpus "
            f"{is_category.index(True)}; give it the same type in both"
        )
    found = [column for column in columns if isinstance(column, Categories)]
    names = tuple(sorted({value for column in found for value in column.names}))
    places = {value: code for code, value in enumerate(names)}

    def codes(column: Covariate | None, size: int) -> npt.NDArray[np.int32]:
        if not isinstance(column, Categories):
            return np.full(size, -1, np.int32)
        moved = np.array([*(places[value] for value in column.names), -1], np.int32)  # the last: not known
        chosen: npt.NDArray[np.int32] = moved[column.codes]
        return chosen

    return Categories(np.concatenate([codes(*pair) for pair in zip(columns, sizes, strict=True)]), names)
