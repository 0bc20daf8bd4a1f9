"""Where the tokens of a text stand in it."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from .characters import normalise
from .languages import UNSPACED

Span = tuple[int, int]
_FARTHEST = 5000  # characters between a token and the next; a token that is not found costs no more than this


def token_spans(text: str, tokens: Iterable[str]) -> list[Span | None]:
    """Return where each token begins and ends in a text; None for one that is not found.

    Args:
        text: the text.
        tokens: its tokens in their order, normalised and casefolded, without those that the tokenizer dropped.
    """
    folded, places = _folded(text)
    spans: list[Span | None] = []
    end = 0
    for token in tokens:
        begin = _find(folded, token, end)
        if begin < 0 or not token:
            spans.append(None)
            continue
        end = begin + len(token)
        # One character may stand for several words, such as U+FDFA; a word that begins and ends inside it has no place.
        spans.append((places[begin], places[end]) if places[begin] < places[end] else None)
    return spans


def excerpt(text: str, words: Iterable[str], length: int) -> str:
    """Return the part of a text, at most `length` characters and two ellipses, that has the most of some words."""
    text = " ".join(text.split())
    if len(text) <= length:
        return text
    folded, places = _folded(text)
    hits = sorted(places[at] for word in set(words) for at in _occurrences(folded, word))
    start, most, last = 0, 0, 0
    for first, hit in enumerate(hits):
        last = max(last, first)
        while last < len(hits) and hits[last] < hit + length - 20:
            last += 1
        if last - first > most:
            start, most = max(0, hit - 20), last - first
    start = min(start, len(text) - length)
    if start > 0 and (blank := text.find(" ", start, start + 20)) > 0:
        start = blank + 1
    end = min(start + length, len(text))
    if end < len(text) and (blank := text.rfind(" ", end - 20, end)) > 0:
        end = blank
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


def _folded(text: str) -> tuple[str, list[int]]:
    """Return the text as tokenizers compare it, and the place in the text of each of its characters and of the end."""
    if text.isascii():
        return text.casefold(), list(range(len(text) + 1))
    pieces: list[str] = []
    places: list[int] = []
    start = 0
    while start < len(text):
        end = start + 1
        while end < len(text) and unicodedata.combining(text[end]):
            end += 1
        piece = normalise(text[start:end]).casefold()
        pieces.append(piece)
        places.extend([start] * len(piece))
        start = end
    return "".join(pieces), [*places, len(text)]


def _find(folded: str, token: str, start: int) -> int:
    """Return where a token begins as a word of its own, or -1."""
    farthest = start + _FARTHEST + len(token)
    while (begin := folded.find(token, start, farthest)) >= 0:
        if _is_edge(folded, begin - 1, begin) and _is_edge(folded, begin + len(token), begin + len(token) - 1):
            return begin
        start = begin + 1
    return -1


def _occurrences(folded: str, word: str) -> list[int]:
    found, begin = [], folded.find(word)
    while begin >= 0 and word:
        found.append(begin)
        begin = folded.find(word, begin + len(word))
    return found


def _is_edge(folded: str, outside: int, inside: int) -> bool:
    """Return whether a word can end between two characters next to each other."""
    if not 0 <= outside < len(folded) or not folded[outside].isalnum():
        return True
    return UNSPACED.match(folded[outside]) is not None or UNSPACED.match(folded[inside]) is not None
