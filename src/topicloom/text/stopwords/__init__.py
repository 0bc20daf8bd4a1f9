"""Stop words, in one text file for each language. The file NOTICE names the sources of the lists."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the stop words of a language, NFKC-normalised and casefolded; empty for a language without a list.

    Args:
        language: a code such as "en" or "zh"; the list of "zh" has simplified and traditional words.
    """
    path = _FOLDER / f"{language}.txt"
    return frozenset(read_words(path)) if language in listed_languages() else frozenset()


@cache
def listed_languages() -> frozenset[str]:
    """Return the codes of the languages that have a list."""
    return frozenset(path.stem for path in _FOLDER.glob("*.txt"))


def read_words(path: Path) -> list[str]:
    """Read one entry from each line, without blank lines and lines that begin with #."""
    lines = (line.strip() for line in path.read_text(encoding="utf-8-sig").split("\n"))
    return [line for line in lines if line and not line.startswith("#")]
