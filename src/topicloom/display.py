"""Text for people to look at: HTML for notebooks, and text without what could change a terminal or a page.

Whatever comes from texts is escaped, so that a document cannot become markup.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any

from .messages import counted

_ROWS = 60  # of a table; more are left out, and the last line says how many
_LONGEST = 1_000  # characters of a cell
_DIRECTION = re.compile("[\u202a-\u202e\u2066-\u2069]")  # these change the direction of what follows
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def printable(text: str) -> str:
    """Return a text without what could change how a terminal or a page shows the text around it.

    Control characters, other ends of lines than \\n and lone surrogates become blanks, and characters that change the
    direction of text are left out. Lines and tabs stay.

    >>> printable("a \\x1b[2J screen")
    'a  [2J screen'
    """
    return text if text.isascii() and text.isprintable() else _CONTROL.sub(" ", _DIRECTION.sub("", text))


def as_markup(text: str) -> str:
    """Return a text as HTML that shows it, without what `printable` removes.

    >>> as_markup("a < b")
    'a &lt; b'
    """
    return escape(printable(text))


def html_table(
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    title: str = "",
    note: str = "",
    *,
    whole: bool = False,
) -> str:
    """Return a table as HTML.

    Args:
        head: the names of the columns.
        rows: the cells, as text, numbers or None.
        title: a line above the table.
        note: a line below it.
        whole: whether all rows and long texts are shown, as in a file; otherwise, the first 60 rows and the beginning
            of each text are.
    """
    lines = list(rows)
    more = f"and {counted(len(lines) - _ROWS, 'more row')}" if len(lines) > _ROWS and not whole else ""
    shown = lines if whole else lines[:_ROWS]
    cells = "".join(f"<tr>{''.join(_cell(value, whole) for value in line)}</tr>" for line in shown)
    names = "".join(f'<th style="text-align:left">{as_markup(_cut(name, whole))}</th>' for name in head)
    notes = "".join(f"<p>{as_markup(line)}</p>" for line in (more, note) if line)
    caption = f"<p><b>{as_markup(_cut(title, whole))}</b></p>" if title else ""
    table = f'<table class="dataframe"><thead><tr>{names}</tr></thead><tbody>{cells}</tbody></table>'
    return f"<div>{caption}{table if lines or head else ''}{notes}</div>"


def as_text(value: object) -> str:
    """Return a cell as people read it: four digits of a fraction, words one after another, nothing for None.

    >>> as_text(2 / 3), as_text(["cat", "dog"]), as_text(None)
    ('0.6667', 'cat dog', '')
    """
    if value is None:
        return ""
    if isinstance(value, float):
        return "" if value != value else f"{value:.4g}"
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return str(value)


def as_cell(value: object) -> str:
    """Return a cell on one line, for the text of a table: a long text is cut."""
    return " ".join(printable(_cut(as_text(value))).splitlines())


def _cut(text: str, whole: bool = False) -> str:
    return text if whole or len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _cell(value: object, whole: bool) -> str:
    side = "right" if isinstance(value, int | float) and not isinstance(value, bool) else "left"
    return f'<td style="text-align:{side}">{as_markup(_cut(as_text(value), whole))}</td>'


def progress_console(shown: bool = True) -> dict[str, Any]:
    """Return the arguments of rich's Progress that show it on standard error, or not at all where that is a file.

    In a file or a pipe, a bar would be a line without use, printed at the end or before an error.
    """
    from rich.console import Console

    console = Console(stderr=True)
    is_shown = shown and (console.is_terminal or console.is_jupyter)
    console.quiet = not is_shown  # before rich 14.3, a disabled bar prints an empty line
    return {"console": console, "disable": not is_shown}


@contextmanager
def progress_bar(shown: bool, what: str = "texts encoded", total: int | None = None) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on standard error, and yield a function that says how many more are done.

    Args:
        shown: whether it is shown, if standard error is a terminal or a notebook.
        what: what is counted.
        total: how many there are; None if that is not known.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    known = [] if total is None else [BarColumn()]
    columns = (SpinnerColumn(), TextColumn("{task.description}"), *known, MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, **progress_console(shown)) as bar:
        task = bar.add_task(what, total=total)
        yield lambda count: bar.advance(task, count)
