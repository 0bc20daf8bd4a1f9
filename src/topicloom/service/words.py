"""How texts and queries become words of the full-text index.

SQLite's tokenizers do not know the words of Chinese. The index therefore receives the tokens that the run's own
tokenizer finds, and a query passes through the same tokenizer. Two texts can be segmented differently around the same
word, so scripts without spaces are indexed by character, too, and their words are also found as a run of characters.

Every token is written in lower case, as the hexadecimal digits of its UTF-8. SQLite takes them for one word, whatever
characters the token has, and no operator of its query language can occur in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from ..errors import InputError
from ..text.characters import normalise
from ..text.languages import UNSPACED

Tokenize = Callable[[str], Iterable[str]]
_MOST_WORDS = 32  # of a query
_GAP = "x"  # no hexadecimal digit, so no run of characters goes across it


def entry(text: str, tokens: Iterable[str]) -> tuple[str, str]:
    """Return what the index keeps of a document: its tokens, and its characters of scripts without spaces."""
    return " ".join(map(_encoded, tokens)), _characters(text)


def query_words(query: str, tokenize: Tokenize | None) -> list[str]:
    """Return the words that a query asks for.

    Args:
        query: what the user wrote.
        tokenize: the run's tokenizer; None splits at spaces.
    """
    try:
        words = list(query.casefold().split() if tokenize is None else tokenize(query))
    except InputError:  # a tokenizer of the user's own that is not here, or does not take a text
        words = query.casefold().split()
    if not words:  # such as a single character of Chinese, which the tokenizer drops
        words = ["".join(run) for unspaced, run in groupby(normalise(query), _is_unspaced) if unspaced]
    return list(dict.fromkeys(words))[:_MOST_WORDS]


def match(words: Sequence[str]) -> str:
    """Return the query of FTS5 for documents that have all words."""
    return " AND ".join(map(_clause, words))


def _clause(word: str) -> str:
    token = f'tokens : "{_encoded(word)}"'
    if word and all(map(_is_unspaced, word)):
        return f'({token} OR characters : "{" ".join(map(_encoded, word))}")'
    return f"({token})"


def _characters(text: str) -> str:
    runs = groupby(normalise(text).casefold(), _is_unspaced)
    return " ".join(" ".join(map(_encoded, run)) if unspaced else _GAP for unspaced, run in runs)


def _is_unspaced(character: str) -> bool:
    return character > "\u0300" and UNSPACED.match(character) is not None


def _encoded(token: str) -> str:
    """A token as words of the index; a token with spaces is several, which a query finds side by side."""
    return " ".join(part.encode("utf-8", "replace").hex() for part in token.casefold().split())
