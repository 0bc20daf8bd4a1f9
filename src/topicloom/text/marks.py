"""What social media write beside words: handles, hashtags, links and emoji, which become tokens, words or nothing.

A token that is no word is marked by a control character before it, so that it passes the rules that cut words.
"""

from __future__ import annotations

import re
from functools import partial

# Characters that no text keeps. None of them is a blank for `bytes.split`.
_HANDLE, _TAG, _OTHER, _DOT = "\x1c", "\x1d", "\x1f", "\x1a"
MARKS = f"{_HANDLE}{_TAG}{_OTHER}{_DOT}"

MARKED = re.compile(rf"([{_HANDLE}{_TAG}{_OTHER}]\S+)")
_ANY_MARK = re.compile(f"[{MARKS}]")
_SIGNS = {_HANDLE: "@", _TAG: "#", _OTHER: ""}

_HANDLES = re.compile(r"(?<![\w.@/])@(\w{1,50})")
_HASHTAGS = re.compile(r"(?<![\w&/#])#(\w{1,100})")
_ENCLOSED_HASHTAGS = re.compile(r"#([^#\s@]{1,40})#")  # 微博 writes #话题#
_LINKS = re.compile(r"(?:(?:https?|ftp)://|\bwww\.)([\w-]+(?:\.[\w-]+)*)[!-~]*", re.ASCII | re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-zß-öø-ÿ])(?=[A-ZÀ-ÖØ-Þ])|(?<=[A-ZÀ-ÖØ-Þ])(?=[A-ZÀ-ÖØ-Þ][a-zß-öø-ÿ])|_+")
_PICTURE = "[\U0001f300-\U0001f3fa\U0001f400-\U0001faff\u2600-\u27bf\u231a\u231b\u23e9-\u23fa\u2b50\u2b55\u2b1b\u2b1c]"
_STYLE = "[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]"  # colour or not, and the colour of skin
_EMOJI = re.compile(
    rf"[\U0001f1e6-\U0001f1ff]{{2}}|{_PICTURE}{_STYLE}*(?:\u200d{_PICTURE}{_STYLE}*)*|[0-9]\ufe0f?\u20e3"
)
_STYLES = re.compile(_STYLE)


def marked(text: str, handles: str, hashtags: str, links: str, emoji: bool) -> str:
    """Mark the handles, hashtags, links and emoji of a text that become tokens, and remove those that are dropped.

    Args:
        text: the text, without HTML.
        handles: word, keep or drop.
        hashtags: word, keep, split or drop.
        links: keep or drop; those to drop are left to `without_addresses`.
        emoji: whether emoji become tokens.
    """
    text = _ANY_MARK.sub(" ", text)
    if links == "keep":
        text = _LINKS.sub(_link, text)
    if emoji and not text.isascii():
        text = _EMOJI.sub(_emoji, text)
    if "@" in text and handles != "word":
        text = _HANDLES.sub(partial(_replaced, _HANDLE, handles), text)
    if "#" in text and hashtags != "word":
        text = _ENCLOSED_HASHTAGS.sub(partial(_replaced, _TAG, hashtags), text)
        text = _HASHTAGS.sub(partial(_replaced, _TAG, hashtags), text)
    return text


def _replaced(mark: str, way: str, found: re.Match[str]) -> str:
    if way == "drop":
        return " "
    return f" {_CAMEL.sub(' ', found[1])} " if way == "split" else f" {mark}{found[1]} "


def _link(found: re.Match[str]) -> str:
    host = found[1].lower().removeprefix("www.")
    return f" {_OTHER}{host.replace('.', _DOT)} "


def _emoji(found: re.Match[str]) -> str:
    return f" {_OTHER}{_STYLES.sub('', found[0])} "


def token_of(piece: str) -> str | None:
    """Return the token that a marked piece stands for; None if the piece is not marked."""
    sign = _SIGNS.get(piece[:1])
    return None if sign is None else sign + piece[1:].replace(_DOT, ".")


_BEGINS = frozenset((*f"{_HANDLE}{_TAG}{_OTHER}", *(mark.encode() for mark in f"{_HANDLE}{_TAG}{_OTHER}")))


def is_marked(piece: str | bytes) -> bool:
    """Return whether a piece is marked, so that it is a token, but no word of a phrase."""
    return piece[:1] in _BEGINS
