"""Table: columns of plain values, and every form in which people take a table with them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from ..display import as_cell, as_text, html_table
from ..errors import InputError, MissingExtraError
from ..files import atomic_file
from .spreadsheets import BOM, as_text_cell

_LONG_CELL = 60  # characters; a longer cell is broken into lines in LaTeX
FORMATS = (".csv", ".tsv", ".json", ".jsonl", ".parquet", ".xlsx", ".tex", ".md", ".html")
_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "\n": " ", "\r": " ", "\t": " ",
}  # fmt: skip
_MARKDOWN = {character: f"\\{character}" for character in "\\`*_[]|~#"} | {
    "<": "&lt;", ">": "&gt;", "&": "&amp;", "\n": " ", "\r": " ", "\t": " ",
}  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """A table as columns of equal length.

    Attributes:
        columns: name -> values, each a text, a number, a date, a list of words, or None where there is none.
        title: a sentence about the table.
    """

    columns: Mapping[str, Sequence[Any]]
    title: str = ""

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]], title: str = "", columns: Sequence[str] = ()) -> Table:
        """Make a table of rows; `columns` names the columns of a table without rows."""
        names = list(rows[0]) if rows else list(columns)
        return cls({name: [row[name] for row in rows] for name in names}, title)

    @classmethod
    def of_frame(cls, frame: Any, title: str = "") -> Table:
        """Make a table of a pandas or polars DataFrame or a pyarrow Table."""
        import narwhals

        table = narwhals.from_native(frame, eager_only=True)
        return cls({str(name): table[name].to_list() for name in table.columns}, title)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __getitem__(self, name: str) -> Sequence[Any]:
        return self.columns[name]

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield each row as a dictionary."""
        for values in zip(*self.columns.values(), strict=True):
            yield dict(zip(self.columns, values, strict=True))

    def lines(self) -> list[list[str]]:
        """Return the rows as text, for people to read."""
        return [[as_text(value) for value in row.values()] for row in self.rows()]

    def __repr__(self) -> str:
        lines = [list(map(as_cell, line)) for line in (self.columns, *(row.values() for row in self.rows()))]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
        return "\n".join(line.rstrip() for line in text)

    def _repr_html_(self) -> str:
        return html_table(list(self.columns), [list(row.values()) for row in self.rows()], self.title)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the rows as values for JSON; a date is written as 2021-05-03."""
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
        head = _line(self.columns, _MARKDOWN, " | ")
        sides = " | ".join("---:" if side == "r" else "---" for side in self._sides())
        lines = (_line(line, _MARKDOWN, " | ") for line in self.lines())
        return "\n".join(f"| {line} |" for line in (head, sides, *lines)) + "\n"

    def to_latex(self, caption: str | None = None, label: str | None = None) -> str:
        r"""Return a LaTeX table, which needs \usepackage{booktabs}.

        Long texts are broken into lines: their columns share .6 of the width of the line.

        Args:
            caption: the caption; with it or a label, the table floats.
            label: the name by which \ref finds the table.
        """
        lines = self.lines()
        rows = [_line(line, _LATEX, " & ") + r" \\" for line in (list(self.columns), *lines)]
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
        above = [] if caption is None else [rf"\caption{{{_escaped(caption, _LATEX)}}}"]
        above += [] if label is None else [rf"\label{{{label}}}"]
        return "\n".join([r"\begin{table}", r"\centering", *above, *body, r"\end{table}"]) + "\n"

    def save(self, path: str | Path, *, excel: bool = False) -> None:
        """Write the table to a file, whose name's end is one of .csv, .tsv, .json, .jsonl, .parquet, .xlsx, .tex, .md
        and .html.

        Args:
            path: the file, which is replaced.
            excel: makes a .csv or .tsv file safe to open in Excel: it begins with a byte order mark, which Excel needs
                for Chinese, and a text that would be a formula gets a "'". Without it, texts are written as they are.

        Raises:
            InputError: the name ends in something else.
            MissingExtraError: a .parquet or .xlsx file without the package that writes it.
        """
        target = Path(path)
        kind = target.suffix.lower()
        require_format(target)
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
            from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
        except ImportError:
            raise MissingExtraError.of("an .xlsx file", "openpyxl", "io") from None
        book = Workbook(write_only=True)
        sheet = book.create_sheet("topics")

        def cell(value: Any) -> Any:
            if not isinstance(value, list | str):
                return value
            written = WriteOnlyCell(sheet, ILLEGAL_CHARACTERS_RE.sub("", as_text(value)))
            written.data_type = "s"  # a text that begins with "=" is no formula, which Excel would run
            return written

        for row in ([*self.columns], *(row.values() for row in self.to_dicts())):
            sheet.append([cell(value) for value in row])
        whole = io.BytesIO()  # on a full disk, openpyxl would leave an open archive, which ends in a traceback
        book.save(whole)
        path.write_bytes(whole.getbuffer())

    def _sides(self) -> list[str]:
        """Return "r" for the columns of numbers and "l" for the others."""

        def side(values: Sequence[Any]) -> str:
            known = [value for value in values if value is not None]
            return "r" if known and all(isinstance(value, int | float) for value in known) else "l"

        return [side(values) for values in self.columns.values()]


def require_format(path: Path) -> None:
    """Check that a table can be written to a file of this name.

    Raises:
        InputError: its end names no format of `Table.save`.
    """
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{path} should end in one of {', '.join(FORMATS)}, which says how the table is written")


def _delimited(table: Table, delimiter: str, excel: bool) -> str:
    file = io.StringIO()
    file.write(BOM if excel else "")
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    for row in ([*table.columns], *(row.values() for row in table.to_dicts())):
        cells = [" ".join(map(str, value)) if isinstance(value, list) else value for value in row]
        writer.writerow(map(as_text_cell, cells) if excel else cells)
    return file.getvalue()


def _plain(value: Any) -> Any:
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, float) and value != value:
        return None
    return list(value) if isinstance(value, tuple) else value


def _line(cells: Any, escapes: Mapping[str, str], between: str) -> str:
    return between.join(_escaped(cell, escapes) for cell in cells)


def _escaped(text: str, escapes: Mapping[str, str]) -> str:
    return "".join(escapes.get(character, character) for character in text)
