"""Tables of topics and of documents, and the files that they are written to."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, TypedDict

import numpy as np

from ..errors import MissingExtraError
from ..files import atomic_file
from .spreadsheets import BOM, as_text_cell

if TYPE_CHECKING:
    from ..corpus.covariates import Covariate
    from .document_topics import DocumentTopics

_WORDS_OF_MAIN_TOPIC = 5


class HasTopics(Protocol):
    """A fitted model, or the topics that were saved with one."""

    @property
    def given_names(self) -> list[str | None]:
        """The name that each topic was given; None for one without."""

    def topics(self, top_n: int = 10, relevance: float | None = None) -> list[list[str]]:
        """Return the words that stand for each topic, best first."""


class Topic(TypedDict):
    """A topic as a row of a table."""

    topic: int
    name: str | None  # None if nobody named it
    share: float | None  # the mean of theta over the documents; None if it is not known
    words: list[str]


def with_covariates(columns: Mapping[str, Any], documents: DocumentTopics) -> dict[str, Any]:
    """Return the columns of a table of documents, with the covariates before the column "topic".

    A covariate with the name of another column has " (covariate)" after its name.
    """
    names = list(columns)
    place = names.index("topic")
    covariates: dict[str, Covariate] = {
        f"{name} (covariate)" if name in columns else name: values for name, values in documents.covariates.items()
    }
    first, rest = ({name: columns[name] for name in part} for part in (names[:place], names[place:]))
    return first | covariates | rest


def describe(
    topics: HasTopics, shares: Iterable[float] | None, top_n: int, relevance: float | None = None
) -> list[Topic]:
    """Return topics as rows of a table.

    Args:
        shares: (K,) the part of the corpus that each topic has, if it is known.
        top_n: how many words a topic has.
        relevance: as for `TopicModel.topics`.
    """
    words = topics.topics(top_n, relevance)
    known = [None] * len(words) if shares is None else [round(float(share), 6) for share in shares]
    names = topics.given_names
    return [Topic(topic=k, name=names[k], share=known[k], words=words[k]) for k in range(len(words))]


def write_topics(path: Path, topics: Sequence[Topic], documents: DocumentTopics, *, excel: bool = False) -> None:
    """Write topics.csv: topic, share, documents whose main topic it is, words, and names if there are any.

    Args:
        excel: makes the file safe to open in Excel: it begins with a byte order mark, which Excel needs for Chinese,
            and a text that would be a formula gets a "'".
    """
    counts = Counter(documents.main_topics)
    with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        file.write(BOM if excel else "")
        table = csv.writer(file, lineterminator="\n")
        named = any(topic["name"] is not None for topic in topics)
        table.writerow(["topic", "share", "documents", "words", *(["name"] if named else [])])
        for topic in topics:
            row = [topic["topic"], topic["share"], counts[topic["topic"]], " ".join(topic["words"])]
            row += [topic["name"]] if named else []
            table.writerow(map(as_text_cell, row) if excel else row)


def write_documents(
    target: Path | IO[str],
    parts: Iterable[DocumentTopics],
    topics: HasTopics,
    *,
    texts: bool = True,
    excel: bool = False,
) -> None:
    """Write documents with their topics, part by part.

    The columns are id; label, timestamp and the covariates (where they are known); topic, the main topic; its name, if
    any topic was given one; its words; the share of each topic; and text (where it is known). A document without a
    known word has no main topic.

    Args:
        target: a file, .parquet or else CSV; or an open stream, for CSV.
        topics: whose words stand for the main topics.
        texts: whether the texts are written.
        excel: for CSV, as in `write_topics`.

    Raises:
        MissingExtraError: a .parquet file without pyarrow.
    """
    rows = _Rows(topics.topics(_WORDS_OF_MAIN_TOPIC), topics.given_names, texts)
    if not isinstance(target, Path):
        _write_csv(target, parts, rows, excel)
    elif target.suffix.lower() == ".parquet":
        _write_parquet(target, parts, rows)
    else:
        with atomic_file(target) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
            _write_csv(file, parts, rows, excel)


class _Rows:
    """Columns of documents, by name."""

    def __init__(self, words: list[list[str]], names: list[str | None], texts: bool) -> None:
        self.words, self.texts = [" ".join(topic) for topic in words], texts
        self.names = [name or "" for name in names] if any(names) else None

    def columns(self, part: DocumentTopics) -> dict[str, Any]:
        """Return a list of values for each column, and a covariate as it is."""
        main = part.main_topics
        times = None if part.times is None else np.datetime_as_string(part.times, "s").tolist()
        known: dict[str, Sequence[Any] | None] = {
            "id": part.ids,
            "label": part.labels,
            "timestamp": None if times is None else ["" if time == "NaT" else time for time in times],
            "topic": main,
            "topic_name": self.names and ["" if topic is None else self.names[topic] for topic in main],
            "topic_words": ["" if topic is None else self.words[topic] for topic in main],
        }
        shares = part.theta.astype(np.float64).round(6)
        known |= {f"topic_{k}": column.tolist() for k, column in enumerate(shares.T)}
        known["text"] = part.texts if self.texts else None
        return with_covariates({name: column for name, column in known.items() if column is not None}, part)


def _write_csv(file: IO[str], parts: Iterable[DocumentTopics], rows: _Rows, excel: bool) -> None:
    file.write(BOM if excel else "")
    table = csv.writer(file, lineterminator="\n")
    for number, part in enumerate(parts):
        columns = rows.columns(part)
        if number == 0:
            table.writerow(map(as_text_cell, columns) if excel else columns)
        plain = map(plain_column, columns.values())
        cells = (map(as_text_cell, column) if excel else column for column in plain)
        table.writerows(zip(*cells, strict=True))


def plain_column(column: Any) -> Sequence[Any]:
    """Return the values of a column of `with_covariates`."""
    from ..corpus.covariates import Categories, plain_values

    return plain_values(column) if isinstance(column, Categories | np.ndarray) else column


def _arrow_type(pyarrow: Any, column: Any) -> Any:
    """Return the type of a covariate, which may have no value in a part; None finds it by the values."""
    from ..corpus.covariates import Categories

    if isinstance(column, Categories):
        return pyarrow.string()
    return pyarrow.float64() if isinstance(column, np.ndarray) else None


def _write_parquet(path: Path, parts: Iterable[DocumentTopics], rows: _Rows) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError.of("a .parquet file", "pyarrow", "io") from None
    writer = None
    with atomic_file(path) as temporary, ExitStack() as stack:
        for part in parts:
            columns = rows.columns(part)
            arrays = {
                name: pyarrow.array(list(plain_column(column)), _arrow_type(pyarrow, column))
                for name, column in columns.items()
            }
            arrays["topic"] = pyarrow.array(part.main_topics, pyarrow.int32())
            for k, column in enumerate(part.theta.T):
                arrays[f"topic_{k}"] = pyarrow.array(column)
            table = pyarrow.table(arrays)
            writer = writer or stack.enter_context(parquet.ParquetWriter(temporary, table.schema))
            writer.write_table(table)
