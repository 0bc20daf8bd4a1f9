"""Documents in pandas, polars and Arrow tables, which are read through narwhals."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import takewhile
from numbers import Integral
from typing import Any, cast

from ..errors import InputError, SettingError
from ..messages import brief, nearest
from .fields import is_arrow_column, is_missing


@dataclass(frozen=True)
class FrameColumns:
    """The columns of a data frame, under the names of the arguments of `Corpus.from_texts`."""

    texts: list[str]
    ids: list[Any] | None
    labels: list[Any] | None
    timestamps: Any
    vectors: Any
    covariates: dict[str, list[Any]]

    def fields(self) -> dict[str, Any]:
        """Return all columns but the texts, by name."""
        return {part.name: getattr(self, part.name) for part in fields(self) if part.name != "texts"}


def is_frame(X: Any) -> bool:
    """Return whether X is a table with named columns, of any library."""
    kind = type(X)  # whose attributes compute nothing, as those of a lazy frame do
    return hasattr(kind, "columns") and (hasattr(kind, "dtypes") or hasattr(kind, "schema"))


def texts_of(texts: Iterable[Any]) -> Iterable[Any]:
    """Return the texts of a column of a data frame or of an array, whose missing values are empty documents.

    Anything else is returned as it is: a missing value in a list is a mistake.
    """
    if not hasattr(texts, "dtype") and not is_arrow_column(texts):
        return texts
    values = list(cast(Any, texts).to_pylist() if is_arrow_column(texts) else texts)
    are_tokens = any(isinstance(value, list | tuple) for value in values)
    return [([] if are_tokens else "") if is_missing(value) else value for value in values]


def given_texts(texts: Any) -> Iterable[Any]:
    """Return the argument `texts` as `texts_of` does.

    Raises:
        InputError: it is not an iterable of documents.
    """
    advice = "give a list with a string for each document"
    if isinstance(texts, str | bytes):
        raise InputError(f"`texts` is a single string; {advice}")
    if is_frame(texts):
        raise InputError("`texts` is a data frame; use Corpus.from_frame(frame, text=...), which names the columns")
    if isinstance(texts, Mapping):
        raise InputError(f"`texts` is a mapping; {advice}, such as list(texts.values()), and its keys as `ids`")
    if isinstance(texts, set | frozenset):
        raise InputError(f"`texts` is a set, which has no order; {advice}")
    if getattr(texts, "ndim", 1) == 2:
        raise InputError(f"`texts` has shape {texts.shape}; {advice}, or counts to Corpus.from_counts")
    if not isinstance(texts, Iterable) or getattr(texts, "ndim", 1) != 1:
        raise InputError(f"`texts` is {brief(texts)}; {advice}")
    refuse_bags(texts)
    return texts_of(texts)


def check_index(documents: Any, fields: Mapping[str, Any]) -> None:
    """Check that pandas' columns have the index of the documents, if these have one too.

    Pandas would match the rows by their labels, and a list is taken by position; whoever gives two orders has to say
    which of both is meant.

    Args:
        documents: texts or counts, in pandas or in any other form.
        fields: the columns by the names of the arguments; `covariates` is a mapping of columns.

    Raises:
        InputError: an index has other labels, or the same ones in another order.
    """
    index = _index_of(documents)
    if index is None:
        return
    covariates = fields.get("covariates")
    columns = {f"`{name}`": column for name, column in fields.items() if name != "covariates"}
    if isinstance(covariates, Mapping):
        columns |= {f"the covariate {name!r}": column for name, column in covariates.items()}
    for name, column in columns.items():
        other = _index_of(column)
        if other is None or len(other) != len(index) or other.equals(index):  # another length is refused elsewhere
            continue
        pairs = zip(other.tolist(), index.tolist(), strict=True)
        row, (found, wanted) = next((row, pair) for row, pair in enumerate(pairs) if not _is_same(*pair))
        raise InputError(
            f"{name} and the documents have different indexes: row {row} is {brief(found)} in one and {brief(wanted)} "
            "in the other; give column.loc[documents.index] to match the rows by their labels, or column.to_numpy() to "
            "take them in their order"
        )


def _index_of(column: Any) -> Any:
    """Return the index of a Series or a DataFrame of pandas, or of a library like it; None for anything else."""
    kind = type(column)
    return column.index if hasattr(kind, "iloc") and hasattr(getattr(column, "index", None), "equals") else None


def _is_same(one: Any, other: Any) -> bool:
    return bool(is_missing(one) and is_missing(other)) or one == other


def refuse_bags(documents: Any) -> None:
    """Raise InputError if documents are lists of pairs of a word's number and its count, as gensim has them."""
    if not isinstance(documents, list | tuple) and not type(documents).__module__.startswith("gensim."):
        return  # a corpus of gensim, such as MmCorpus, can be read more than once
    lists = takewhile(lambda document: isinstance(document, list | tuple), documents)
    first: Sequence[Any] = next((document for document in lists if document), ())
    pairs = [each for each in first if isinstance(each, tuple) and len(each) == 2 and isinstance(each[0], Integral)]
    if pairs and len(pairs) == len(first):
        raise InputError(
            f"the documents are lists of pairs such as {first[0]}, as bags of words of gensim are; give "
            "gensim.matutils.corpus2csc(bags, num_terms=len(dictionary)).T, with `vocabulary=dictionary`"
        )


def check_options(options: Iterable[str], function: Callable[..., Any], caller: str) -> None:
    """Raise SettingError if a function to which `caller` passes options does not have one of them.

    The first argument of the function is not an option.
    """
    known = list(inspect.signature(function).parameters)[1:]
    for name in options:
        if name not in known:
            raise SettingError(f"{caller} has no argument {name!r}; {nearest(name, known)}")


def column_names(frame: Any) -> list[str]:
    """Return the names of the columns of a data frame."""
    return [str(name) for name in _narwhals(frame).columns]


def named_columns(frame: Any) -> list[str]:
    """Return the names of the columns that are strings. A frame made of an array may have numbers as names."""
    return [name for name in _narwhals(frame).columns if isinstance(name, str)]


def words_of(counts: Any) -> list[str] | None:
    """Return the names of the columns of a data frame; None for anything else, or if a name is not a text."""
    names = named_columns(counts) if is_frame(counts) else []
    return names if names and len(names) == counts.shape[1] else None


def is_numeric(frame: Any) -> bool:
    """Return whether all columns of a data frame hold numbers, like those of a document-term matrix."""
    table = _narwhals(frame)
    # Narwhals does not know the types of pandas' sparse columns.
    sparse = [kind.subtype for kind in getattr(frame, "dtypes", ()) if hasattr(kind, "fill_value")]
    if sparse and len(sparse) == frame.shape[1]:
        return all(kind.kind in "biuf" for kind in sparse)
    return all(kind.is_numeric() or kind == _boolean() for kind in table.schema.values())


def read_frame(
    frame: Any,
    text: str = "text",
    *,
    id: str | None = None,
    label: str | None = None,
    timestamp: str | None = None,
    covariates: Sequence[str] = (),
    vectors: Any = None,
) -> FrameColumns:
    """Read columns of a data frame.

    Args:
        frame: a pandas or polars DataFrame, or a pyarrow Table.
        text: the column with the texts. A missing value is an empty document.
        id, label, timestamp: the columns with ids, classes and times; None takes the column of that name, if the table
            has one.
        covariates: the columns with numbers or categories.
        vectors: the column with a list of numbers in each row, or (n_docs, E) numbers.

    Raises:
        InputError: a column does not exist, or the texts are not strings.
    """
    if isinstance(covariates, str):
        raise InputError(f"`covariates` should be a list of columns; give [{covariates!r}]")
    table = _narwhals(frame)
    present = [str(name) for name in table.columns]

    def column(role: str, name: str | None) -> list[Any] | None:
        if name is None:
            return table[role].to_list() if role in present else None
        if not isinstance(name, str):
            raise InputError(f"`{role}` is {brief(name)}; give the name of a column")
        if name not in present:
            raise InputError(f"the data frame has no column {name!r} for `{role}`; {nearest(name, present)}")
        return list(table[name].to_list())

    texts = column("text", text) or []
    for row, value in enumerate(texts):
        if not isinstance(value, str) and not is_missing(value):
            raise InputError(
                f"the column {text!r} contains {brief(value)} in row {row}, which is not a text; name the column with "
                "the texts by `text`"
            )
    if isinstance(vectors, str):
        vectors = column("vectors", vectors)
    return FrameColumns(
        ["" if is_missing(value) else value for value in texts],
        column("id", id),
        column("label", label),
        column("timestamp", timestamp),
        vectors,
        {name: column("covariates", name) or [] for name in covariates},
    )


def _narwhals(frame: Any) -> Any:
    import narwhals
    from narwhals.exceptions import DuplicateError

    try:
        return narwhals.from_native(frame, eager_only=True)
    except TypeError:
        lazy = "; its collect() returns one" if hasattr(frame, "collect") else ""
        raise InputError(
            f"{type(frame).__name__} cannot be read; give a pandas or polars DataFrame, or a pyarrow Table{lazy}"
        ) from None
    except DuplicateError:
        names = [str(name) for name in getattr(frame, "column_names", frame.columns)]  # an Arrow table's, or a frame's
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"the data frame has several columns {twice!r}; give each a name of its own") from None


def _boolean() -> Any:
    import narwhals

    return narwhals.Boolean
