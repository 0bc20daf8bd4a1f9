"""Boilerplate: text that many documents have word for word at their edges, such as a website's footer or a signature.

Runs of eight words are hashed. One is boilerplate if at least 1 % of the documents, and at least ten, have it at their
beginning or end, next to text of their own. Sentences inside of texts, such as quotations and definitions, are not
boilerplate, and neither are whole documents that are repeated. In scripts without blanks between words, characters take
the place of words.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .pieces import CHARACTERS

SHARE, FEWEST = 0.01, 10  # the fewest documents of a run
LINE_SHARE = 0.05  # of a run that fills lines in the middle of texts
MOST_DOCUMENTS, MOST_CHARACTERS = 20_000, 20_000_000  # that are compared, at equal distances
MOST_REPORTED, MOST_REPORTED_CHARACTERS = 1_000, 1_000_000  # of the sample, if boilerplate is only reported

_RUN = 8  # words
_RUN_OF_CHARACTERS = {"zh": 16, "ja": 16}  # about as many as eight words have
_RUN_OF_LETTERS = 32  # of Thai and similar scripts
_GAP = 5  # words between boilerplate and the edge of a text, or other boilerplate: a date, a name
_REST = 0.1  # the least share of a document's words that are its own, if it is to show what is boilerplate
_MOST_RUNS = 1_000
_MOST_SHOWN = 80  # characters of an example
_SLOTS = 22  # bits
_NUMBER = "0"  # the word that stands for all numbers, which differ from page to page
_WORD = re.compile(rf"[{CHARACTERS}]|[^\W_{CHARACTERS}]+(?:['-][^\W_{CHARACTERS}]+)*")
_WORD_IN_ASCII = re.compile(r"[A-Za-z0-9]+(?:['-][A-Za-z0-9]+)*")  # the same for such texts, in half the time
_BREAK = " 。 "  # in place of boilerplate: no token, and the end of a sentence in every language
_FACTOR = np.uint64(0x9E3779B97F4A7C15)

Integers = npt.NDArray[np.intp]


def length_of_run(language: str, is_segmented: bool) -> int:
    """Return how many words, or characters of a script without blanks, are compared at a time.

    >>> length_of_run("en", False), length_of_run("zh", True)
    (8, 16)
    """
    return _RUN_OF_CHARACTERS.get(language, _RUN_OF_LETTERS) if is_segmented else _RUN


class Repeated(NamedTuple):
    """Text that is boilerplate.

    Args:
        words: its words in lower case, with blanks between them; 0 stands for a number.
        share: the share of the documents that have it.
        example: the beginning of it, as a document writes it.
    """

    words: str
    share: float
    example: str


def _folded(word: str) -> str:
    return _NUMBER if word.isdecimal() else word.casefold()


def find_boilerplate(texts: Sequence[str], length: int = _RUN) -> list[Repeated]:
    """Return the boilerplate of texts, that of the most documents first.

    Args:
        texts: texts without HTML and addresses.
        length: the fewest words of boilerplate, as `length_of_run` returns it.

    Examples:
        >>> from topicloom.text.boilerplate import find_boilerplate
        >>> footer = "Copyright 2024 by the Daily Example. All rights reserved."
        >>> animals = ["cat", "dog", "cow", "hen", "pig", "fox", "elk", "owl", "bee", "ape"]
        >>> find_boilerplate([f"Much is known of the {each}. {footer}" for each in animals])[0].example
        'Copyright 2024 by the Daily Example. All rights reserved'
    """
    fewest = max(FEWEST, int(np.ceil(SHARE * len(texts))))
    if len(texts) < fewest:
        return []
    codes, bounds, is_line_start = _coded(texts)
    if len(codes) < length:
        return []
    n_docs = len(texts)
    document = np.repeat(np.arange(n_docs), np.diff(bounds))
    hashes = np.zeros(len(codes) - length + 1, np.uint64)
    for each in range(length):
        hashes = hashes * _FACTOR + codes[each : len(hashes) + each]
    hashes = (hashes ^ (hashes >> np.uint64(29))) * _FACTOR
    slots = (hashes >> np.uint64(64 - _SLOTS)).astype(np.intp)
    is_inside = document[: len(hashes)] == document[length - 1 :]
    # A slot counts the runs that share it, so that its count is never too small. Few runs are counted exactly.
    often = np.bincount(slots[is_inside], minlength=1 << _SLOTS) >= fewest
    places = np.flatnonzero(is_inside & often[slots])
    if not len(places):
        return []
    gram = np.unique(hashes[places], return_inverse=True)[1]
    n_with = _documents_of(gram, document[places], n_docs)
    is_frequent = n_with[gram] >= fewest
    places, gram = places[is_frequent], gram[is_frequent]
    if not len(places):
        return []
    at_edge, on_lines = _evidence(places, length, document, bounds, is_line_start)
    of = document[places]
    n_edge, n_line = (
        _documents_of(gram[flags], of[flags], n_docs, len(n_with)) for flags in (at_edge, on_lines | at_edge)
    )
    is_boilerplate = (n_edge >= fewest) & (2 * n_edge >= n_with)
    is_boilerplate |= (n_line >= max(FEWEST, LINE_SHARE * n_docs)) & (2 * n_line >= n_with)
    chosen = is_boilerplate[gram]
    chosen[chosen] = _are_varied(codes, places[chosen], length)
    return _runs(texts, places[chosen], gram[chosen], n_with, length, codes, bounds)


def sampled(texts: list[str]) -> list[str]:
    """Return so many texts at equal distances that comparing them takes seconds."""
    step = max(-(-len(texts) // MOST_DOCUMENTS), 1)
    sample = texts[::step]
    n_characters = sum(map(len, sample))
    return sample if n_characters <= MOST_CHARACTERS else sample[:: -(-n_characters // MOST_CHARACTERS)]


def _coded(texts: Sequence[str]) -> tuple[npt.NDArray[np.uint64], Integers, npt.NDArray[np.bool_]]:
    """Return a code for each word of all texts, where the texts begin and end, and which words begin lines."""
    known = _Codes()
    codes: list[int] = []
    bounds = [0]
    line_starts: list[int] = []
    for text in texts:
        words = (_WORD_IN_ASCII if text.isascii() else _WORD).findall
        for line in text.split("\n"):
            line_starts.append(len(codes))
            codes += map(known.__getitem__, words(line))
        bounds.append(len(codes))
    starts = np.zeros(len(codes) + 1, bool)
    starts[line_starts] = True
    return np.array(codes, np.uint64), np.array(bounds), starts


class _Codes(dict[str, int]):
    """The code of each word, as it is written."""

    def __missing__(self, word: str) -> int:
        code = self[word] = _code(_folded(word))
        return code


def _code(word: str) -> int:
    return zlib.crc32(word.encode("utf-8", "surrogatepass"))


def _documents_of(gram: Integers, document: Integers, n_docs: int, n_grams: int = 0) -> Integers:
    """Return how many documents have each run."""
    return np.bincount(np.unique(gram * n_docs + document) // n_docs, minlength=n_grams)


def _evidence(
    places: Integers, length: int, document: Integers, bounds: Integers, is_line_start: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return which frequent runs are at the edge of their document, and which ones fill lines of it.

    This is no evidence in documents that consist of little else: such a document is repeated as a whole.
    """
    breaks = np.flatnonzero(np.diff(places) != 1) + 1
    firsts, lasts = np.r_[0, breaks], np.r_[breaks, len(places)] - 1
    begins, ends = places[firsts], places[lasts] + length
    of = document[begins]
    edge, lines = np.zeros(len(begins), bool), is_line_start[begins] & is_line_start[ends]
    groups = np.flatnonzero(np.diff(of, prepend=-1, append=-1) != 0)
    for start, stop in pairwise(groups.tolist()):
        first, last = int(bounds[of[start]]), int(bounds[of[start] + 1])
        reached = first
        for each in range(start, stop):
            if begins[each] > reached + _GAP:
                break
            edge[each], reached = True, int(ends[each])
        reached = last
        for each in range(stop - 1, start - 1, -1):
            if ends[each] < reached - _GAP:
                break
            edge[each], reached = True, int(begins[each])
        covered = np.zeros(last - first, bool)
        for each in range(start, stop):
            covered[begins[each] - first : ends[each] - first] = True
        if np.count_nonzero(~covered) < max(length // 2, _REST * len(covered)):
            edge[start:stop] = lines[start:stop] = False
    n_runs = lasts - firsts + 1
    return np.repeat(edge, n_runs), np.repeat(lines, n_runs)


def _are_varied(codes: npt.NDArray[np.uint64], places: Integers, length: int) -> npt.NDArray[np.bool_]:
    """Return which runs have different words, unlike the rows of a table of numbers, or laughter."""
    words = np.sort(codes[places[:, None] + np.arange(length)], axis=1)
    n_different = 1 + np.count_nonzero(np.diff(words, axis=1), axis=1)
    is_varied: npt.NDArray[np.bool_] = n_different - np.any(words == _code(_NUMBER), axis=1) > length // 2
    return is_varied


def _runs(
    texts: Sequence[str], places: Integers, gram: Integers, n_with: Integers, length: int,
    codes: npt.NDArray[np.uint64], bounds: Integers,
) -> list[Repeated]:  # fmt: skip
    """Return the longest runs whose parts are all boilerplate."""
    if not len(places):
        return []
    breaks = np.flatnonzero(np.diff(places) != 1) + 1
    regions: dict[bytes, list[int]] = {}
    for first, last in pairwise([0, *breaks.tolist(), len(places)]):
        key = codes[places[first] : places[last - 1] + length].tobytes()
        regions.setdefault(key, [0, first, last])[0] += 1
    covered: set[int] = set()
    repeated: list[Repeated] = []
    for _, first, last in sorted(regions.values(), key=lambda each: (-each[0], each[1] - each[2], each[1])):
        grams = gram[first:last].tolist()
        if covered.issuperset(grams) or len(repeated) == _MOST_RUNS:
            continue
        covered.update(grams)
        row = int(np.searchsorted(bounds, places[first], "right")) - 1
        words = list(_WORD.finditer(texts[row]))
        own = words[int(places[first] - bounds[row]) : int(places[last - 1] + length - bounds[row])]
        example = " ".join(texts[row][own[0].start() : own[-1].end()].split())
        if len(example) > _MOST_SHOWN:
            example = f"{example[:_MOST_SHOWN].rpartition(' ')[0] or example[:_MOST_SHOWN]} …"
        share = int(n_with[grams].min()) / len(texts)
        repeated.append(Repeated(" ".join(_folded(word[0]) for word in own), share, example))
    return sorted(repeated, key=lambda each: (-each.share, each.words))


class Remover:
    """Remove boilerplate from texts: all words that are in a run of its words.

    Args:
        boilerplate: the words of each text, as `Repeated.words` has them.
        length: the words of a run, as `length_of_run` returns it.

    Examples:
        >>> from topicloom.text.boilerplate import Remover
        >>> remove = Remover(["copyright 0 by the daily example all rights reserved"])
        >>> remove("Rates rise. Copyright 2025 by the Daily Example - all rights reserved!")
        'Rates rise.  。 !'
    """

    def __init__(self, boilerplate: Iterable[str], length: int = _RUN) -> None:
        self._length = length
        self._runs: set[tuple[str, ...]] = set()
        signs: dict[str, None] = {}  # words of which each run has one
        for text in boilerplate:
            words = text.split(" ")
            last = -1
            for end in range(length, len(words) + 1):
                run = tuple(words[end - length : end])
                if set(run) == {_NUMBER}:  # a row of a table
                    continue
                self._runs.add(run)
                if last < end - length:
                    sign = max((word for word in run if word != _NUMBER), key=len)
                    last = end - 1 - run[::-1].index(sign)
                    signs[sign] = None
        self._signs = tuple(signs)

    def __call__(self, text: str) -> str:
        """Return a text without boilerplate."""
        folded = text.casefold()
        if not any(sign in folded for sign in self._signs):
            return text
        found = list(_WORD.finditer(text))
        words = [_folded(word[0]) for word in found]
        kept, place, end = [], 0, 0
        for first, run in enumerate(zip(*(words[n:] for n in range(self._length)), strict=False)):
            if run in self._runs:
                if first >= end:
                    kept.append(text[place : found[first].start()])
                end = first + self._length
                place = found[end - 1].end()
        return _BREAK.join([*kept, text[place:]]) if kept else text


def remark(found: Sequence[Repeated], n_docs: int, left_out: bool) -> str | None:
    """Return a sentence that says what boilerplate was found; None if there is none.

    Args:
        found: the boilerplate.
        n_docs: the number of documents that were compared.
        left_out: whether it is left out.
    """
    if not found:
        return "no boilerplate was found" if left_out else None
    texts = f"{len(found):,} texts are" if len(found) > 1 else "one text is"
    said = (
        f"{texts} repeated word for word at the edges of many documents, such as {found[0].example!r} in "
        f"{found[0].share:.1%} of {n_docs:,}"
    )
    return f"{said}; this is left out" if left_out else f"{said}; `drop_boilerplate=True` leaves out such text"
