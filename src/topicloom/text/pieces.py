"""Dividing long texts into pieces: paragraphs, sentences, or a number of tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import pairwise

from ..errors import InputError, SettingError
from .records import Document

PARENT = "parent"  # the covariate of a piece that names the text it is from

_BLANK_LINES = re.compile(r"\n[^\S\n]*\n\s*")
_END_OF_SENTENCE = re.compile(
    r"""[。！？；…｡]+["'”’」』）)】》]*                       # of Chinese and Japanese
        |[.!?…؟।۔።]+["'”’»)\]]*(?=\s)                     # of other languages, before a blank
        |\n[^\S\n]*\n""",
    re.VERBOSE,
)
_LAST_WORD = re.compile(r"([^\W\d_]+(?:\.[^\W\d_]+)*|\d+)\.[\"'”’»)\]]*$")
# Words before a full stop that seldom end a sentence, in lower case.
_ABBREVIATIONS = frozenset({
    *("mr", "mrs", "ms", "dr", "prof", "rev", "gen", "sen", "rep", "gov", "capt", "lt", "col", "sgt", "st", "mt"),
    *("no", "vs", "etc", "cf", "al", "fig", "figs", "eq", "eqs", "sec", "ch", "vol", "ed", "eds", "pp", "approx"),
    *("inc", "ltd", "co", "corp", "dept", "est", "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct"),
    *("nov", "dec", "hr", "fr", "str", "nr", "bzw", "ca", "ggf", "usw", "evtl", "vgl", "bsp", "sog", "inkl", "bd"),
    *("jh", "mme", "mlle", "sr", "sra", "dott"),
})  # fmt: skip
# A token: a word, or one character of a script that puts no blanks between words.
CHARACTERS = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_TOKEN = re.compile(rf"[{CHARACTERS}]|[^\W{CHARACTERS}]+(?:['’][^\W{CHARACTERS}]+)*")


def paragraphs(text: str) -> list[str]:
    r"""Return the paragraphs of a text: what is between blank lines or, if there are none, each line.

    >>> paragraphs("One\nline.\n\nTwo."), paragraphs("One.\nTwo.")
    (['One\nline.', 'Two.'], ['One.', 'Two.'])
    """
    text = text.replace("\r\n", "\n").strip()
    parts = _BLANK_LINES.split(text) if _BLANK_LINES.search(text) else text.split("\n")
    return [part.strip() for part in parts if part.strip()]


def sentences(text: str) -> list[str]:
    """Return the sentences of a text.

    >>> sentences("Mr. Smith came at 5 p.m. on Monday. He left! 他来了。“走吧！”他说。")
    ['Mr. Smith came at 5 p.m. on Monday.', 'He left!', '他来了。', '“走吧！”', '他说。']
    """
    return [sentence for paragraph in paragraphs(text) for sentence in _sentences(paragraph)]


def _sentences(text: str) -> Iterator[str]:
    start = 0
    for mark in _END_OF_SENTENCE.finditer(text):
        if mark[0][0] in ".!?…" and _goes_on(text, start, mark):
            continue
        if part := " ".join(text[start : mark.end()].split()):
            yield part
        start = mark.end()
    if rest := " ".join(text[start:].split()):
        yield rest


def _goes_on(text: str, start: int, mark: re.Match[str]) -> bool:
    """Return whether a mark ends no sentence: a word in lower case follows, or the full stop is of an abbreviation."""
    following = text[mark.end() : mark.end() + 40].lstrip("\"'“‘«([ \n\t\r")
    if following[:1].islower():
        return True
    if not mark[0].startswith(".") or mark[0].startswith(".."):
        return False
    found = _LAST_WORD.search(text, max(start, mark.start() - 40), mark.end())
    if found is None:
        return False
    word = found[1]
    if len(word) == 1 and word.isalpha():
        return True  # an initial, or as in German "z. B."
    if word.isdecimal():  # an ordinal number, as in German "3. Oktober"; a year and a large number may end a sentence
        return len(word) <= 2 and found.start() > start
    return word.lower() in _ABBREVIATIONS or ("." in word and len(word) < 6 and not following[:1].isupper())


def runs_of_tokens(text: str, n_tokens: int) -> list[str]:
    """Return pieces of about so many tokens, which end with a sentence where that is possible.

    A token is a word; in a script without blanks between words, such as Chinese, it is a character. A rest of less than
    half a piece joins the last piece.

    >>> runs_of_tokens("One two. Three four. Five.", 2)
    ['One two.', 'Three four. Five.']
    """
    pieces: list[list[str]] = [[]]
    n_last = 0
    for part, n_part in _short_parts(text, n_tokens):
        if n_last and n_last + n_part > n_tokens + n_tokens // 10:
            pieces.append([])
            n_last = 0
        pieces[-1].append(part)
        n_last += n_part
    if len(pieces) > 1 and 2 * n_last <= n_tokens:
        rest = pieces.pop()
        pieces[-1] += rest
    return [" ".join(piece) for piece in pieces if piece]


def _short_parts(text: str, n_tokens: int) -> Iterator[tuple[str, int]]:
    """Yield sentences with their numbers of tokens. A sentence of more tokens is cut."""
    for sentence in sentences(text):
        starts = [token.start() for token in _TOKEN.finditer(sentence)]
        cuts = [0, *starts[n_tokens::n_tokens], len(sentence)]
        for number, (start, end) in enumerate(pairwise(cuts)):
            yield sentence[start:end].strip(), len(starts[number * n_tokens : (number + 1) * n_tokens])


_WAYS: dict[str, Callable[[str], list[str]]] = {"paragraphs": paragraphs, "sentences": sentences}


def splitter(way: str) -> Callable[[str], list[str]]:
    """Return the function that divides a text in a way that `split_texts` names.

    Raises:
        SettingError: there is no such way.
    """
    if way in _WAYS:
        return _WAYS[way]
    name, _, number = way.partition(":") if isinstance(way, str) else ("", "", "")
    if name == "tokens" and number.isdecimal() and 0 < int(number[:9]) <= 10_000_000:
        return partial(runs_of_tokens, n_tokens=int(number))
    raise SettingError(
        f"`split_texts={way!r}` is not known; give paragraphs, sentences, or a number of tokens such as tokens:300"
    )


def pieces_of(documents: Iterable[Document], split: Callable[[str], list[str]]) -> Iterator[Document]:
    """Yield the pieces of documents. A piece has the fields of its document, which is its covariate `parent`.

    The ids of pieces are `parent#1`, `parent#2` and so on. A document without text is one piece.

    Raises:
        InputError: the documents have a covariate of this name already.

    >>> from topicloom.text.pieces import paragraphs, pieces_of
    >>> [piece.id for piece in pieces_of([Document("One.\\nTwo.", id="a"), Document("Three.")], paragraphs)]
    ['a#1', 'a#2', '1#1']
    """
    for row, document in enumerate(documents):
        known = document.covariates or {}
        if PARENT in known:
            raise InputError(
                f"`split_texts` makes a covariate {PARENT!r}, and the documents have one already; give it another name"
            )
        parent = str(row) if document.id is None else document.id
        covariates = {**known, PARENT: parent}
        for number, text in enumerate(split(document.text) or [""], 1):
            yield document._replace(text=text, id=f"{parent}#{number}", covariates=covariates)
