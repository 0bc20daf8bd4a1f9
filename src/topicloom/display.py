"""HTML for notebooks. Whatever comes from texts is escaped, so that a document cannot become markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_ROWS = 60  # of a table; more are left out, and the last line says how many


def html_table(
    head: Sequence[str], rows: Iterable[Sequence[object]], title: str = "", note: str = "", limit: int = _ROWS
) -> str:
    """Return a table as HTML.

    Args:
        head: the names of the columns.
        rows: the cells, as text, numbers or None.
        title: a line above the table.
        note: a line below it.
        limit: the number of rows that are shown.
    """
    lines = list(rows)
    more = f"and {len(lines) - limit:,} more rows" if len(lines) > limit else ""
    cells = "".join(f"<tr>{''.join(_cell(value) for value in line)}</tr>" for line in lines[:limit])
    names = "".join(f'<th style="text-align:left">{escape(name)}</th>' for name in head)
    notes = "".join(f"<p>{escape(line)}</p>" for line in (more, note) if line)
    caption = f"<p><b>{escape(title)}</b></p>" if title else ""
    table = f'<table class="dataframe"><thead><tr>{names}</tr></thead><tbody>{cells}</tbody></table>'
    return f"<div>{caption}{table if lines or head else ''}{notes}</div>"


def as_text(value: object) -> str:
    """Return a cell as people read it: four digits of a fraction, words one after another, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, float):
        return "" if value != value else f"{value:.4g}"
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return str(value)


def _cell(value: object) -> str:
    side = "right" if isinstance(value, int | float) and not isinstance(value, bool) else "left"
    return f'<td style="text-align:{side}">{escape(as_text(value))}</td>'
