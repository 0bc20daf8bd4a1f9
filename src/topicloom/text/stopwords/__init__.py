"""Stop words by language, a text file each; where the lists come from is said in NOTICE."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent


@cache
def stop_words(language: str) -> frozenset[str]:
    """The stop words of a language, NFKC-normalised and casefolded; none for a language without a list.

    Args:
        language: a code such as "en" or "zh"; "zh" holds simplified and traditional words.
    """
    path = _FOLDER / f"{language}.txt"
    return frozenset(read_words(path)) if language in listed_languages() else frozenset()


@cache
def listed_languages() -> frozenset[str]:
    """The codes of the languages with a list."""
    return frozenset(path.stem for path in _FOLDER.glob("*.txt"))


def read_words(path: Path) -> list[str]:
    """Reads one entry a line; blank lines and lines that begin with # are passed over."""
    lines = (line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines())
    return [line for line in lines if line and not line.startswith("#")]
