"""Phrases in two languages, and the choice of the language."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from ...errors import SettingError

Language = Literal["en", "zh"]
FigureLanguage = Literal["auto", "en", "zh"]


@dataclass(frozen=True)
class Phrase:
    """A phrase in both languages. What is in braces are values that a call fills in, as `str.format` does."""

    en: str
    zh: str

    def __call__(self, language: Language, **values: object) -> str:
        return (self.zh if language == "zh" else self.en).format(**values)


def chosen_language(language: FigureLanguage, tokenizer: object = None, argument: str = "language") -> Language:
    """Return the language that is meant: for "auto", Chinese if the texts are Chinese, and otherwise English.

    Args:
        language: "auto", "en" or "zh".
        tokenizer: the tokenizer of the texts; None if they are not known.
        argument: the argument that gives the language, for the message.

    Raises:
        SettingError: it is none of them.
    """
    if language not in get_args(FigureLanguage):
        raise SettingError(f"`{argument}={language!r}` should be en or zh, or auto for that of the texts")
    if language == "auto":
        return "zh" if getattr(tokenizer, "language", None) == "zh" else "en"
    return language


def joined(sentences: Iterable[str], language: Language) -> str:
    """Join sentences, with a blank between English ones. Empty ones are left out."""
    return ("" if language == "zh" else " ").join(filter(None, sentences))
