"""Characters: the normal form that words are compared in, and the replacement of what UTF-8 cannot represent."""

from __future__ import annotations

import unicodedata


def normalise(text: str) -> str:
    """Apply NFKC, unify apostrophes and remove soft hyphens."""
    text = unicodedata.normalize("NFKC", text)
    if text.isascii():
        return text
    # NFKC splits the vowel am in Thai and Lao, which dictionaries do not.
    text = text.replace("\u0e4d\u0e32", "\u0e33").replace("\u0ecd\u0eb2", "\u0eb3")
    return text.replace("’", "'").replace("‘", "'").replace("ʼ", "'").replace("\xad", "")


def replace_surrogates(text: str) -> str:
    r"""Replace each lone surrogate by U+FFFD, so that the text can be written as UTF-8.

    Lone surrogates come from JSON escapes such as "\ud800" and from file names that are not UTF-8. The two halves of a
    surrogate pair are joined to the character that they stand for.
    """
    if is_utf8(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def is_utf8(text: str) -> bool:
    """Whether a text can be written as UTF-8, which is true unless it contains a surrogate."""
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def brief(value: object) -> str:
    """Return a value as the beginning of one line of Python, for messages."""
    try:
        return " ".join(repr(value)[:200].split())[:60]
    except RecursionError:  # a list in a list in a list
        return describe(value)


def describe(value: object) -> str:
    """Return a value's type with its article, such as "a float", for messages."""
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
