"""Table: columns of plain values, and every form in which people take a table with them."""

from __future__ import annotations

import csv
import io
import json
import logging
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import date
from itertools import repeat
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NotRequired, Protocol, TypedDict, overload

import numpy as np
import numpy.typing as npt

from ..display import as_cell, as_text, html_table
from ..errors import InputError, MissingExtraError, SettingError
from ..files import atomic_file
from ..messages import counted

if TYPE_CHECKING:
    from ..corpus.fields import Covariate
    from .document_topics import DocumentTopics

logger = logging.getLogger("topicloom")

OUTLIER = 0.05  # a document whose `fit` is lower fits no topic
BOM = "\ufeff"  # at the beginning of a file, by which Excel recognises UTF-8
# Spreadsheets take a field that begins so for a formula, and some of its functions send data or start programs. The
# full-width characters are taken for the others in East Asian settings.
_FORMULA = re.compile(r"[\s\x00-\x1f]*[=+\-@＝＋－＠]")
# What XML has no characters for, and what Excel would read as one of their escapes (ECMA-376, 22.9.2.19).
_NOT_IN_EXCEL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)")
_MOST_OF_A_CELL = 32_767  # characters
_LONG_CELL = 60  # characters; a longer cell is broken into lines in LaTeX
_WIDE_TABLE, _VERY_WIDE_TABLE = 60, 75  # characters of the columns of a LaTeX table; wider ones are set in small type
_ROWS_OF_A_PAGE = 40  # a longer LaTeX table goes on over pages
_WORDS_OF_MAIN_TOPIC = 5  # in the table of documents
FORMATS = (".csv", ".tsv", ".json", ".jsonl", ".parquet", ".xlsx", ".tex", ".md", ".html")
NOT_IN_LABELS = re.compile(r"[\\{}%#~\x00-\x1f]")
_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "\n": " ", "\r": " ", "\t": " ", "±": r"$\pm$", "–": "--", "—": "---", "−": "$-$",
    # At the start of a row, these would be arguments of the end of the row before.
    "[": "{[}", "]": "{]}", "*": "{*}",
}  # fmt: skip
# Characters that pdfTeX has no glyphs for: Chinese, Japanese and Korean, which ctex has fonts for, and other scripts.
_EAST_ASIAN = re.compile("[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")
_OTHER_SCRIPT = re.compile("[\u0250-\u10ff\u1200-\u1dff\U0001f000-\U0001faff]")
_NUMBER = re.compile(r"[-<]?\d[\d,]*(?:\.\d+)?(?:(?: ± |–)\d[\d,]*(?:\.\d+)?)?")
_MARKDOWN = {character: f"\\{character}" for character in "\\`*_[]|~#"} | {
    "<": "&lt;", ">": "&gt;", "&": "&amp;", "\n": " ", "\r": " ", "\t": " ",
}  # fmt: skip


class Strong(str):
    """A cell that LaTeX and Markdown set in bold."""

    __slots__ = ()


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """A table as columns of equal length.

    Attributes:
        columns: name -> values, each a text, a number, a date, a list of words, or None where there is none.
        title: a sentence about the table.
        caption, label: those of the table in LaTeX and Markdown; "" is none.
        decimals: the decimal places of fractions as text; None shows four digits.

    Examples:
        >>> from topicloom.topics.table import Table
        >>> table = Table({"topic": [0, 1], "words": [["cat", "dog"], ["rain", "sun"]]})
        >>> table
        topic  words
        0      cat dog
        1      rain sun
        >>> table["topic"], len(table)
        ([0, 1], 2)
        >>> table[1]
        {'topic': 1, 'words': ['rain', 'sun']}
        >>> table[:1]
        topic  words
        0      cat dog
        >>> print(table.to_markdown(), end="")
        | topic | words |
        | ---: | --- |
        | 0 | cat dog |
        | 1 | rain sun |
    """

    columns: Mapping[str, Sequence[Any]]
    title: str = ""
    caption: str = ""
    label: str = ""
    decimals: int | None = None

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]], title: str = "", columns: Sequence[str] = ()) -> Table:
        """Make a table of rows. Its columns are `columns` in their order, or else those of the first row."""
        names = list(columns or (rows[0] if rows else ()))
        return cls({name: [row[name] for row in rows] for name in names}, title)

    @classmethod
    def of_frame(cls, frame: Any, title: str = "") -> Table:
        """Make a table of a pandas or polars DataFrame or a pyarrow Table."""
        import narwhals

        table = narwhals.from_native(frame, eager_only=True)
        return cls({str(name): table[name].to_list() for name in table.columns}, title)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    @overload
    def __getitem__(self, key: str) -> Sequence[Any]: ...
    @overload
    def __getitem__(self, key: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: slice) -> Table: ...
    def __getitem__(self, key: str | int | slice) -> Sequence[Any] | dict[str, Any] | Table:
        if isinstance(key, slice):
            return replace(self, columns={name: values[key] for name, values in self.columns.items()})
        if isinstance(key, int | np.integer) and not isinstance(key, bool):
            if not -len(self) <= key < len(self):
                raise IndexError(f"the table has {counted(len(self), 'row')}, and no row {key}")
            return {name: values[key] for name, values in self.columns.items()}
        if not isinstance(key, str):
            raise TypeError(f"a table has columns by name, and rows by number or slice; it is asked for {key!r:.60}")
        if key not in self.columns:
            raise KeyError(f"the table has no column {key!r:.60}; its columns are {', '.join(self.columns)}")
        return self.columns[key]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self.rows()

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield each row as a dictionary."""
        for values in zip(*self.columns.values(), strict=True):
            yield dict(zip(self.columns, values, strict=True))

    def lines(self) -> list[list[str]]:
        """Return the rows as text, for people to read."""
        return [[self._cell(value) for value in row.values()] for row in self.rows()]

    def _cell(self, value: Any) -> str:
        if isinstance(value, float) and value == value and self.decimals is not None:
            return f"{value:.{self.decimals}f}"
        return value if isinstance(value, Strong) else as_text(value)

    def __repr__(self) -> str:
        lines = [list(map(as_cell, line)) for line in (self.columns, *(row.values() for row in self.rows()))]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
        return "\n".join(line.rstrip() for line in text)

    def _repr_html_(self) -> str:
        return html_table(list(self.columns), [list(row.values()) for row in self.rows()], self.title)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the rows as values for JSON; a date is written as 2021-05-03, and infinity as the text inf."""
        return [{name: _plain(value) for name, value in row.items()} for row in self.rows()]

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError:
            raise MissingExtraError.of("a data frame", "pandas", "io") from None
        return pandas.DataFrame(dict(self.columns))

    def to_arrow(self) -> Any:
        """Return a pyarrow Table.

        Raises:
            MissingExtraError: pyarrow is not installed.
        """
        try:
            import pyarrow
        except ImportError:
            raise MissingExtraError.of("an Arrow table", "pyarrow", "io") from None
        return pyarrow.table({name: pyarrow.array(list(values)) for name, values in self.columns.items()})

    def to_markdown(self) -> str:
        """Return a Markdown table. Characters that Markdown or HTML would read are escaped."""
        head = _markdown_line(map(_plain_heading, self.columns))
        sides = " | ".join("---:" if side == "r" else "---" for side in self._sides())
        lines = (_markdown_line(line) for line in self.lines())
        caption = _markdown_line([_plain_heading(self.caption)])
        above = f"Table: {caption}\n\n" if caption else ""  # as pandoc reads it
        return above + "\n".join(f"| {line} |" for line in (head, sides, *lines)) + "\n"

    def to_latex(self, caption: str | None = None, label: str | None = None) -> str:
        r"""Return a LaTeX table, which needs \usepackage{booktabs}.

        Long texts are broken into lines: their columns share .6 of the width of the line. A table with a caption and
        more than 40 rows is a longtable, which goes on over pages. Comments say which packages it needs, and what a
        table with Chinese or with other scripts needs.

        Args:
            caption: the caption; with it or a label, the table floats. None is that of the table, if it has one.
            label: the name by which \ref finds the table; None is that of the table.

        Raises:
            SettingError: the label has a character that LaTeX does not take there.
        """
        caption, label = (
            self.caption or None if caption is None else caption,
            self.label or None if label is None else label,
        )
        if label is not None and (wrong := NOT_IN_LABELS.search(label)):
            raise SettingError(f"`label={label!r:.60}` has {wrong[0]!r}, which LaTeX does not take; leave it out")
        lines = self.lines()
        head = [_heading(name) for name in self.columns]
        rows = [" & ".join(cells) + r" \\" for cells in (head, *([_in_latex(cell) for cell in line] for line in lines))]
        lengths = [max(map(len, column)) for column in zip(*lines, strict=True)] or [0] * len(self.columns)
        long = [length > _LONG_CELL for length in lengths]
        wide = rf"p{{{0.6 / max(1, sum(long)):.2g}\linewidth}}"
        sides = "".join(wide if is_long else side for is_long, side in zip(long, self._sides(), strict=True))
        body = [
            rf"\begin{{tabular}}{{{sides}}}", r"\toprule", rows[0], r"\midrule", *rows[1:],
            r"\bottomrule", r"\end{tabular}",
        ]  # fmt: skip
        if caption is None and label is None:
            return "\n".join(body) + "\n"
        said = [] if caption is None else [rf"\caption{{{_heading(caption)}}}"]
        said += [] if label is None else [rf"\label{{{label}}}"]
        widths = [max(length, len(name)) for length, name in zip(lengths, head, strict=True)]
        is_wide = not any(long) and sum(widths) > _WIDE_TABLE
        size = [r"\small", r"\setlength{\tabcolsep}{4pt}"] if is_wide else []
        if is_wide and sum(widths) > _VERY_WIDE_TABLE:
            size = [r"\footnotesize", r"\setlength{\tabcolsep}{3pt}"]
        if caption is not None and len(lines) > _ROWS_OF_A_PAGE:
            top = [r"\toprule", rows[0], r"\midrule"]
            whole = [
                r"\begingroup", *size, r"\setlength{\LTcapwidth}{\linewidth}", rf"\begin{{longtable}}{{{sides}}}",
                *said[:-1], said[-1] + r" \\", *top, r"\endfirsthead", *top, r"\endhead", r"\bottomrule", r"\endfoot",
                *rows[1:], r"\end{longtable}", r"\endgroup",
            ]  # fmt: skip
        else:
            whole = [r"\begin{table}", r"\centering", *size, *said, *body, r"\end{table}"]
        written = "\n".join(whole) + "\n"
        return "".join(f"% {line}\n" for line in _needs(written)) + written

    def save(self, path: str | Path, *, excel: bool = False) -> None:
        """Write the table to a file, whose name's end is one of .csv, .tsv, .json, .jsonl, .parquet, .xlsx, .tex, .md
        and .html.

        Args:
            path: the file, which is replaced.
            excel: makes a .csv or .tsv file safe to open in Excel: it begins with a byte order mark, which Excel needs
                for Chinese, and a text that would be a formula gets a "'". Without it, texts are written as they are.

        Raises:
            InputError: the name ends in something else, or in none of .csv and .tsv, with `excel`.
            MissingExtraError: a .parquet or .xlsx file without the package that writes it.
        """
        target = Path(path)
        kind = target.suffix.lower()
        require_format(target, excel=excel)
        with atomic_file(target) as temporary:
            if kind == ".parquet":
                arrow = self.to_arrow()
                from pyarrow import parquet

                parquet.write_table(arrow, temporary)
            elif kind == ".xlsx":
                self._write_excel(temporary)
            else:
                temporary.write_text(self._text(kind, excel), encoding="utf-8", newline="\n")

    def _text(self, kind: str, excel: bool) -> str:
        if kind in (".csv", ".tsv"):
            return _delimited(self, "," if kind == ".csv" else "\t", excel)
        if kind == ".json":
            return json.dumps(self.to_dicts(), ensure_ascii=False, indent=1) + "\n"
        if kind == ".jsonl":
            return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in self.to_dicts())
        if kind == ".tex":
            return self.to_latex()
        if kind == ".md":
            return self.to_markdown()
        rows = [list(row.values()) for row in self.rows()]
        table = html_table(list(self.columns), rows, self.title, whole=True)
        return f'<!doctype html>\n<meta charset="utf-8">\n{table}\n'

    def _write_excel(self, path: Path) -> None:
        try:
            from openpyxl import Workbook
            from openpyxl.cell import WriteOnlyCell
        except ImportError:
            raise MissingExtraError.of("an .xlsx file", "openpyxl", "io") from None
        book = Workbook(write_only=True)
        sheet = book.create_sheet("topics")

        n_cut = 0

        def cell(value: Any) -> Any:
            nonlocal n_cut
            if not isinstance(value, list | str):
                return value
            text = _NOT_IN_EXCEL.sub(lambda found: f"_x{ord(found[0]):04X}_", as_text(value))
            n_cut += len(text) > _MOST_OF_A_CELL
            written = WriteOnlyCell(sheet, text[:_MOST_OF_A_CELL])
            written.data_type = "s"  # a text that begins with "=" is no formula, which Excel would run
            return written

        for row in ([*self.columns], *(row.values() for row in self.to_dicts())):
            sheet.append([cell(value) for value in row])
        if n_cut:
            logger.warning(
                "%s cut after %s characters, the most that a cell of Excel holds; write .csv or .jsonl to have all",
                f"{counted(n_cut, 'text')} {'is' if n_cut == 1 else 'are'}", f"{_MOST_OF_A_CELL:,}",
            )  # fmt: skip
        whole = io.BytesIO()  # on a full disk, openpyxl would leave an open archive, which ends in a traceback
        book.save(whole)
        path.write_bytes(whole.getbuffer())

    def _sides(self) -> list[str]:
        """Return "r" for the columns of numbers and "l" for the others."""

        def side(values: Sequence[Any]) -> str:
            known = [value for value in values if value is not None]
            if self.decimals is not None:  # numbers may be texts, such as 0.51 ± 0.02
                known = [value for value in known if value != "–"]
                if known and all(isinstance(value, str) and _NUMBER.fullmatch(value) for value in known):
                    return "r"
            return "r" if known and all(isinstance(value, int | float) for value in known) else "l"

        return [side(values) for values in self.columns.values()]


def require_format(path: Path, *, excel: bool = False) -> None:
    """Check that a table can be written to a file of this name.

    Raises:
        InputError: its end names no format of `Table.save`, or none that `excel` is for.
    """
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{path} should end in one of {', '.join(FORMATS)}, which says how the table is written")
    if excel:
        require_delimited(path)


def require_delimited(path: Path) -> None:
    """Check that a file is one that `excel` is for.

    Raises:
        InputError: it is neither .csv nor .tsv.
    """
    if path.suffix.lower() not in (".csv", ".tsv"):
        raise InputError(f"`excel` is for .csv and .tsv files; leave it out for {path}")


def _delimited(table: Table, delimiter: str, excel: bool) -> str:
    rows = ([*table.columns], *(row.values() for row in table.to_dicts()))
    cells = ([" ".join(map(str, value)) if isinstance(value, list) else value for value in row] for row in rows)
    return (BOM if excel else "") + "".join(as_csv(cells, delimiter, excel=excel))


def as_csv(rows: Iterable[Iterable[Any]], delimiter: str = ",", *, excel: bool = False) -> Iterator[str]:
    """Yield each row as a line of CSV. A field with a line break of any kind has quotation marks.

    Args:
        rows: the fields of each row.
        delimiter: the character between fields.
        excel: whether fields are written as `as_text_cell` returns them.
    """
    line = _LastLine()
    table = csv.writer(line, delimiter=delimiter, lineterminator="\r\n")  # csv quotes these two characters
    for row in rows:
        table.writerow(map(as_text_cell, row) if excel else row)
        yield line.text[:-2] + "\n"


class _LastLine:
    """A file that knows the last line that was written to it."""

    text = ""

    def write(self, text: str) -> None:
        self.text = text


def as_text_cell(value: Any) -> Any:
    """Return a value of a table so that a spreadsheet shows it: a text that it would take for a formula gets a "'"."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def _plain(value: Any) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):  # JSON and workbooks have no such numbers
        return None if math.isnan(value) else str(float(value))
    return list(value) if isinstance(value, tuple) else value


def _markdown_line(cells: Iterable[str]) -> str:
    written = ((cell, _escaped(cell, _MARKDOWN)) for cell in cells)
    return " | ".join(f"**{text}**" if isinstance(cell, Strong) else text for cell, text in written)


def _in_latex(cell: str) -> str:
    """Return a cell in LaTeX: escaped, numbers with a minus sign and not a hyphen, and bold if it is strong."""
    text = _escaped(cell, _LATEX)
    if _NUMBER.fullmatch(cell):
        text = re.sub("^-", "$-$", text)
    return rf"\textbf{{{text}}}" if isinstance(cell, Strong) else text


def _heading(text: str) -> str:
    """Return a heading or a caption in LaTeX, in which $K$ stays."""
    return "$K$".join(_escaped(part, _LATEX) for part in text.split("$K$"))


def _plain_heading(text: str) -> str:
    """Return a heading or a caption without the marks of $K$."""
    return text.replace("$K$", "K")


def _needs(latex: str) -> list[str]:
    """Return what a LaTeX table needs in the preamble of a document."""
    packages = [r"\usepackage{booktabs}"]
    packages += [r"\usepackage{longtable}"] if r"\begin{longtable}" in latex else []
    if _EAST_ASIAN.search(latex):
        return [
            *packages,
            r"Chinese: compile with XeLaTeX or LuaLaTeX, and \usepackage[UTF8]{ctex} or the xeCJK package with a font.",
        ]
    if _OTHER_SCRIPT.search(latex):
        return [
            *packages,
            r"Compile with XeLaTeX or LuaLaTeX, and a font (fontspec) with these characters.",
        ]
    return packages


def _escaped(text: str, escapes: Mapping[str, str]) -> str:
    return "".join(escapes.get(character, character) for character in text)


# Tables of topics and of documents.


class HasTopics(Protocol):
    """A fitted model, or the topics that were saved with one."""

    @property
    def given_names(self) -> list[str | None]:
        """The name that each topic was given; None for one without."""

    def topics(self, top_n: int = 10, relevance: float | None = None, *, written: bool = False) -> list[list[str]]:
        """Return the words that stand for each topic, best first, as in the vocabulary or as texts write them."""


class Topic(TypedDict):
    """A topic as a row of a table."""

    topic: int
    name: str | None  # None if nobody named it
    share: float | None  # the mean of theta over the documents; None if it is not known
    words: list[str]
    sentence: NotRequired[str | None]  # what a language model wrote about it
    agreement: NotRequired[float]  # the share of the fits of an ensemble that have it


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


def document_table(documents: DocumentTopics, *, texts: bool = False) -> Table:
    """Return a row for each document.

    The columns are id; label, time and the covariates (where they are known); topic, the largest; its share; theta as
    topic_0, topic_1, ...; and text (where it is known). A document without a known word has no topic.

    Args:
        documents: the documents with their topics.
        texts: whether there is a column with the texts.
    """
    main = documents.main_topics
    known: dict[str, Sequence[Any] | None] = {
        "id": documents.ids,
        "label": documents.labels,
        "time": None if documents.times is None else written_times(documents.times),
        "topic": main,
        "share": [None if k is None else float(row[k]) for k, row in zip(main, documents.theta, strict=True)],
    }
    known |= {f"topic_{k}": column.astype(float).tolist() for k, column in enumerate(documents.theta.T)}
    known["text"] = documents.texts if texts else None
    columns = with_covariates({name: column for name, column in known.items() if column is not None}, documents)
    return Table({name: plain_column(column) for name, column in columns.items()}, "Topics of the documents")


def written_times(times: npt.NDArray[np.datetime64]) -> list[str | None]:
    """Return times to the second, such as 2021-05-03T10:00:00, with fractions where they have some; None for NaT."""
    written = np.datetime_as_string(times, "us").tolist()
    return [None if time == "NaT" else time.removesuffix(".000000") for time in written]


def describe(
    topics: HasTopics,
    shares: Iterable[float] | None,
    top_n: int,
    relevance: float | None = None,
    sentences: Sequence[str | None] = (),
) -> list[Topic]:
    """Return topics as rows of a table.

    Args:
        shares: (K,) the part of the corpus that each topic has, if it is known.
        top_n: how many words a topic has.
        relevance: how words are ranked, from 0 (by lift) to 1 (by probability); None is the package's rule.
        sentences: (K,) what a language model wrote about topics; without any, rows have no "sentence".
    """
    words = topics.topics(top_n, relevance, written=True)
    known = [None] * len(words) if shares is None else [round(float(share), 6) for share in shares]
    names = topics.given_names
    rows = [Topic(topic=k, name=names[k], share=known[k], words=words[k]) for k in range(len(words))]
    if any(sentences):
        for row, sentence in zip(rows, sentences, strict=True):
            row["sentence"] = sentence
    agreement = getattr(topics, "agreement_", None)  # of an ensemble
    if agreement is not None:
        for row, share in zip(rows, agreement, strict=True):
            row["agreement"] = round(float(share), 6)
    return rows


def write_topics(path: Path, topics: Sequence[Topic], documents: DocumentTopics, *, excel: bool = False) -> None:
    """Write topics.csv: topic, share, documents whose main topic it is, words, and names if there are any.

    Args:
        excel: makes the file safe to open in Excel: it begins with a byte order mark, which Excel needs for Chinese,
            and a text that would be a formula gets a "'".
    """
    counts = Counter(documents.main_topics)
    named = any(topic["name"] is not None for topic in topics)
    agreed = any("agreement" in topic for topic in topics)
    further = [*(["name"] if named else []), *(["agreement"] if agreed else [])]
    rows: list[list[Any]] = [["topic", "share", "documents", "words", *further]]
    for topic in topics:
        row = [topic["topic"], topic["share"], counts[topic["topic"]], " ".join(topic["words"])]
        row += [topic["name"]] if named else []
        row += [topic["agreement"]] if agreed else []
        rows.append(row)
    with atomic_file(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        file.write(BOM if excel else "")
        file.writelines(as_csv(rows, excel=excel))


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
    any topic was given one; its words; the share of each topic; text (where it is known); and fit and outlier (where
    `fit` of the documents is known). A document without a known word has no main topic.

    Args:
        target: a file, .parquet or else CSV; or an open stream, for CSV.
        topics: whose words stand for the main topics.
        texts: whether the texts are written.
        excel: makes a CSV file safe to open in Excel: it begins with a byte order mark, and a text that would be a
            formula gets a "'".

    Raises:
        MissingExtraError: a .parquet file without pyarrow.
    """
    rows = _Rows(topics.topics(_WORDS_OF_MAIN_TOPIC, written=True), topics.given_names, texts)
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
        """Return a list of values for each column but the shares, and a covariate as it is."""
        main = part.main_topics
        known: dict[str, Sequence[Any] | None] = {
            "id": part.ids,
            "label": part.labels,
            "timestamp": None if part.times is None else [time or "" for time in written_times(part.times)],
            "topic": main,
            "topic_name": self.names and ["" if topic is None else self.names[topic] for topic in main],
            "topic_words": ["" if topic is None else self.words[topic] for topic in main],
        }
        known["text"] = part.texts if self.texts else None
        if part.fit is not None:
            known["fit"] = [round(float(fit), 6) for fit in part.fit]
            known["outlier"] = (part.fit < OUTLIER).tolist()
        return with_covariates({name: column for name, column in known.items() if column is not None}, part)


def _write_csv(file: IO[str], parts: Iterable[DocumentTopics], rows: _Rows, excel: bool) -> None:
    file.write(BOM if excel else "")
    shares = _Shares()
    for number, part in enumerate(parts):
        columns = rows.columns(part)
        names = list(columns)
        place = names.index(_BEFORE_SHARES) + 1
        if number == 0:
            head = [*names[:place], *(f"topic_{k}" for k in range(part.theta.shape[1])), *names[place:]]
            file.writelines(as_csv([head], excel=excel))
        cells = list(map(plain_column, columns.values()))
        before = as_csv(zip(*cells[:place], strict=True), excel=excel)
        further = zip(repeat("", len(part)), *cells[place:], strict=True)
        after = as_csv(further, excel=excel) if cells[place:] else repeat("\n")
        for first in range(0, len(part), _ROWS_AT_ONCE):
            millionths = np.rint(part.theta[first : first + _ROWS_AT_ONCE].astype(np.float64) * 1e6)
            texts = (",".join(map(shares.__getitem__, row)) for row in millionths.tolist())
            file.writelines(f"{start[:-1]},{text}{end}" for text, start, end in zip(texts, before, after, strict=False))


_BEFORE_SHARES = "topic_words"  # the column
_ROWS_AT_ONCE = 1000


class _Shares(dict[float, str]):
    """The shares of topics as text, by their millionths. Few of them differ, and to write a number takes time."""

    def __missing__(self, millionths: float) -> str:
        text = self[millionths] = repr(millionths / 1e6)
        return text


def plain_column(column: Any) -> Sequence[Any]:
    """Return the values of a column of `with_covariates`."""
    from ..corpus.fields import Categories, plain_values

    return plain_values(column) if isinstance(column, Categories | np.ndarray) else column


def _arrow_type(pyarrow: Any, column: Any) -> Any:
    """Return the type of a covariate, which may have no value in a part; None finds it by the values."""
    from ..corpus.fields import Categories

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
            shares = {f"topic_{k}": pyarrow.array(column) for k, column in enumerate(part.theta.T)}
            place = list(arrays).index(_BEFORE_SHARES) + 1
            table = pyarrow.table(dict([*list(arrays.items())[:place], *shares.items(), *list(arrays.items())[place:]]))
            writer = writer or stack.enter_context(parquet.ParquetWriter(temporary, table.schema))
            writer.write_table(table)
