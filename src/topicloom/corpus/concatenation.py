"""Several corpora as one, such as the documents of each month: their counts over common words, and their fields."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ..errors import InputError, SettingError
from ..text import AnyTokenizer, CustomTokenizer
from ..text.counting import Counts, counts_of
from ..text.strings import TextWriter, brief, release
from .building import Filters, index_type
from .counts import warn_of_empty, warn_of_ids
from .fields import Categories, Covariate, Fields, compact, row_numbers

if TYPE_CHECKING:
    from .corpus import Corpus

logger = logging.getLogger("topicloom")

JointVocabulary: TypeAlias = Literal["union", "first"]

_UNKNOWN_TIME = np.datetime64("NaT", "us")
_NAMED = 5  # corpora in a message
_KINDS = {
    "language": "splits texts by the rules of a language",
    "custom": "is a function of your own",
    "pretokenized": "takes lists of tokens or counts",
}


class WithConcatenation:
    """The method that makes one corpus of several."""

    @classmethod
    def concatenate(
        cls, corpora: Iterable[Corpus], vocabulary: JointVocabulary = "union", *, n_jobs: int | None = None
    ) -> Self:
        """Return the documents of several corpora as one corpus, in their order.

        If a corpus lacks words of the vocabulary, for example because `min_df` left them out, and its texts are known,
        its documents are counted again. If only its counts are known, these words have no counts in it; a warning says
        so if its filters may have left some out.

        A field that only some of the corpora have is unknown of the documents of the others: labels are "", times NaT,
        numbers NaN, and categories have the code -1. The texts (and lists of tokens) are kept if all corpora have them.
        Ids stay as they are; if no corpus has ids of its own, the documents are numbered anew.

        The result is in memory, also if the corpora are memory-mapped.

        Args:
            corpora: the corpora, whose texts were split by the same tokenizer.
            vocabulary: "union" has the words of the first corpus in their order, then the further words of the second
                one, and so on; all corpora have the same filters. "first" has the words of the first corpus, with
                which a model may have been trained. Other words are left out, and only the first corpus's filters
                matter.
            n_jobs: the number of worker processes if texts are counted again, as for `Corpus.from_texts`.

        Raises:
            InputError: there is no corpus, or something else than a corpus; their tokenizers or filters differ; only
                some have vectors, or vectors of another length; or a covariate has numbers in one corpus and
                categories in another.
            SettingError: `vocabulary` is neither "union" nor "first".
        """
        if not isinstance(vocabulary, str) or vocabulary not in _USED:
            raise SettingError(
                f"`vocabulary={brief(vocabulary)}` should be 'union' or 'first'; `over` gives the result other words"
            )
        given = _checked(corpora)
        tokenizer = _common_tokenizer(given)
        if vocabulary == "union":
            _require_equal_filters(given)
        words = list(dict.fromkeys(chain.from_iterable(each.vocabulary for each in given[: _USED[vocabulary]])))
        fields = _joined_fields([each.fields for each in given], [each.n_docs for each in given])
        counts = _stacked(_counted(given, words, tokenizer, n_jobs), len(words))
        corpus: Any = cast(Any, cls)(counts, words, fields, tokenizer, dict(given[0].settings))
        warn_of_empty(corpus)
        warn_of_ids(corpus.ids)
        return cast(Self, corpus)


_USED: dict[str, int | None] = {"union": None, "first": 1}  # how many corpora give their words


def _checked(corpora: Any) -> list[Corpus]:
    from .corpus import Corpus

    advice = "give a list such as [last_month, this_month]"
    if isinstance(corpora, Corpus):
        raise InputError(f"`corpora` is a single corpus; {advice}")
    if isinstance(corpora, str | bytes | set | frozenset) or not isinstance(corpora, Iterable):
        raise InputError(f"`corpora` is {brief(corpora)}; {advice}")
    given = list(corpora)
    if not given:
        raise InputError(f"`corpora` is empty; {advice}")
    for number, each in enumerate(given):
        if not isinstance(each, Corpus):
            raise InputError(f"corpus {number} of `corpora` is {brief(each)}; make a corpus of it by Corpus.from_texts")
    return given


def _common_tokenizer(corpora: Sequence[Corpus]) -> AnyTokenizer:
    """Return the tokenizer of all corpora; of a function that is not known everywhere, the one that can be called."""
    first: AnyTokenizer = corpora[0].tokenizer
    for number, corpus in enumerate(corpora[1:], 1):
        if difference := _difference(first, corpus.tokenizer):
            raise InputError(
                f"the tokenizers of corpus 0 and corpus {number} differ: {difference}; make both corpora with the same "
                "tokenizer"
            )
        if not _is_callable(first):
            first = corpus.tokenizer
    return first


def _difference(one: AnyTokenizer, other: AnyTokenizer) -> str | None:
    """Return in what two tokenizers differ, or None if they split texts in the same way."""
    ours, theirs = one.model_dump(), other.model_dump()
    for name in ours:
        here, there = ours[name], theirs.get(name)
        if here == there:
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


def _is_callable(tokenizer: AnyTokenizer) -> bool:
    """Return whether a tokenizer can split texts; one of the user's own that was loaded may lack its function."""
    return not isinstance(tokenizer, CustomTokenizer) or tokenizer.has_function


def _require_equal_filters(corpora: Sequence[Corpus]) -> None:
    first = corpora[0].settings
    for number, corpus in enumerate(corpora[1:], 1):
        for name in dict.fromkeys([*first, *corpus.settings]):
            here, there = (
                f"`{name}={settings[name]!r}`" if name in settings else "without filters"
                for settings in (first, corpus.settings)
            )
            if here != there:
                raise InputError(
                    f"the filters of corpus 0 ({here}) and corpus {number} ({there}) differ; make both corpora with "
                    "the same filters, or keep the words of the first one by `vocabulary='first'`"
                )


def _counted(
    corpora: Sequence[Corpus], words: list[str], tokenizer: AnyTokenizer, n_jobs: int | None
) -> Iterable[Counts]:
    """Yield the counts of each corpus over the words; texts are counted again if a word may be missing."""
    incomplete = []
    for number, corpus in enumerate(corpora):
        may_lack_words = not set(words) <= set(corpus.vocabulary)
        if may_lack_words and corpus.has_order and _is_callable(tokenizer):
            documents: Sequence[Any] = corpus.fields.tokens or corpus.fields.texts or ()
            yield counts_of(documents, words, tokenizer, n_jobs)
            continue
        if may_lack_words and _is_filtered(corpus):
            incomplete.append(str(number))
        yield corpus.over(words).counts
    if incomplete:
        which = ("corpus " if len(incomplete) == 1 else "corpora ") + ", ".join(incomplete[:_NAMED])
        which += ", ..." if incomplete[_NAMED:] else ""
        if _is_callable(tokenizer):
            cause, advice = f"the texts of {which} are not known", "make each corpus with `keep_texts=True`"
        else:
            cause, advice = "the tokenizer's function is not known", "include a corpus that was not loaded from disk"
        logger.warning(
            "%s, so the words that the filters left out of %s are not counted there; %s", cause, which, advice
        )


def _is_filtered(corpus: Corpus) -> bool:
    """Return whether filters may have left words out. Counts that were made elsewhere have no filters."""
    return bool(corpus.settings) and not Filters(**corpus.settings).keeps_all(corpus.n_docs)


def _stacked(parts: Iterable[Counts], n_words: int) -> Counts:
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


def _joined_fields(parts: Sequence[Fields], sizes: Sequence[int]) -> Fields:
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
    )


def _filled(
    columns: Sequence[Any], sizes: Sequence[int], unknown: Callable[[int], Any], join: Callable[[list[Any]], Any]
) -> Any:
    """Join a column of all corpora, with unknown values of those that do not have it; None if none of them has it."""
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
    """Return the texts; without those of some documents, the order of the words would be known of the others alone."""
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


def _joined_vectors(parts: Sequence[Fields]) -> npt.NDArray[np.float32] | None:
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
    return np.concatenate(list(known.values()))


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
