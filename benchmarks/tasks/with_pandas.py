"""Reading with pandas, for tools without a reader of their own; they take lists of texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd


def open_csv(job: Any) -> Any:
    """With pandas."""
    return pd.read_csv("titles.csv")["text"].tolist()


def open_excel(job: Any) -> Any:
    """With pandas and openpyxl."""
    return pd.read_excel("book.xlsx", sheet_name="titles")["text"].tolist()


def open_folder(job: Any) -> Any:
    """With pathlib."""
    return [file.read_text(encoding="utf-8") for file in sorted(Path("texts").glob("*.txt"))]


def bad_file(job: Any) -> Any:
    """pandas says a position in bytes, and the wrong name only."""
    said = []
    for read in (lambda: pd.read_csv("broken.csv"), lambda: pd.read_csv("titles.csv")["body"]):
        try:
            read()
        except (UnicodeDecodeError, KeyError) as error:
            said.append(f"{type(error).__name__}: {error}")
    return said
