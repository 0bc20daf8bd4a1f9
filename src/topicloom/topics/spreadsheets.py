"""What spreadsheets need of tables: how Excel recognises UTF-8, and that no text is run as a formula."""

from __future__ import annotations

import re
from typing import Any

BOM = "\ufeff"  # at the beginning of a file
# Spreadsheets take a field that begins so for a formula, and some of its functions send data or start programs. The
# full-width characters are taken for the others in East Asian settings.
_FORMULA = re.compile(r"[\s\x00-\x1f]*[=+\-@＝＋－＠]")


def as_text_cell(value: Any) -> Any:
    """Return a value of a table so that a spreadsheet shows it: a text that it would take for a formula gets a "'"."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value
