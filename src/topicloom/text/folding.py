"""One spelling for each word of a language: case, marks that writers may leave out, and letters with several codes.

The sources are the Unicode standard (default case folding, NFKC, SpecialCasing, the joiners of UAX 31) and, for what a
language adds, CLDR: its rules of case (az, el, hy, lt, tr), its alphabets, which say which codes of a letter a language
uses (ar, fa, ro, ur), and its orders of sorting, in which what is folded here differs no more than an accent or a
capital letter does (German ß and ss, French œ and oe, Russian ё and е).
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from functools import cache

# Characters that are not seen and belong to no word: the ignorable ones of UAX 29, except the two joiners.
_UNSEEN = "\xad\u034f\u061c\u180b-\u180f\u200e\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff"
unseen = re.compile(f"[{_UNSEEN}]")
_JOINERS = re.compile("[\u200c\u200d]+")
_ALL_ALIKE = {"\u2010": "-", "\u058a": "-", "\u05be": "-", "\u201b": "'", "\u055a": "'", "\u2027": "·"}

_ARABIC_VOWELS = "\u0610-\u061a\u064b-\u0652\u0656-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"
_STRESS = "\u0300\u0301"  # й, ї, ќ, ѝ and the like are letters of their own
_ARABIC = _ARABIC_VOWELS + "\u0640"  # with tatweel
_ALEF_WASLA = {"\u0671": "\u0627"}
_CHILLUS = {f"{letter}\u0d4d\u200d": chillu for letter, chillu in zip("ണനരലളക", "ൺൻർൽൾൿ", strict=True)}


@dataclass(frozen=True)
class _Rules:
    """What a language adds to the folding of Unicode.

    Args:
        first: characters that are replaced before case folding.
        marks: marks that are left out, as a character class.
        split: whether letters are split into letter and marks, so that the marks of composed letters are left out too.
        letters: characters that are replaced after case folding.
    """

    first: dict[str, str] = field(default_factory=dict)
    marks: str = ""
    split: bool = False
    letters: dict[str, str] = field(default_factory=dict)


_TURKIC = _Rules(first={"I": "ı", "İ": "i"})
_CYRILLIC = _Rules(marks=_STRESS)
_GREEK = _Rules(marks="\u0300-\u036f", split=True)  # capitals are written without accents
_RULES = {
    "ar": _Rules(marks=_ARABIC, letters=_ALEF_WASLA | dict(zip("کیہھەۃ", "كيهههة", strict=True))),
    "az": _TURKIC,
    "bg": _CYRILLIC,
    "bn": _Rules(letters={"ত্\u200d": "ৎ"}),
    "ca": _Rules(letters=dict.fromkeys("•∙⋅", "·")),
    "el": _GREEK,
    "fa": _Rules(marks=_ARABIC + "\u0654", letters=_ALEF_WASLA | dict(zip("كيىۀەہھ", "کییهههه", strict=True))),
    "fr": _Rules(letters={"œ": "oe", "æ": "ae"}),
    "grc": _GREEK,
    "he": _Rules(
        marks="\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7", letters=dict(zip("׳״”“„", "'\"\"\"\"", strict=True))
    ),
    "hy": _Rules(marks="՛՜՞", letters={"եւ": "եվ"}),  # marks inside of words, and և, whose capitals are ԵՎ
    "ky": _CYRILLIC,
    "la": _Rules(marks="\u0304\u0306", split=True),  # the length of vowels
    "mk": _CYRILLIC,
    "ml": _Rules(letters=_CHILLUS),
    "ro": _Rules(letters={"ş": "ș", "ţ": "ț"}),
    "ru": _Rules(marks=_STRESS, letters={"ё": "е"}),
    "sr": _CYRILLIC,
    "tr": _TURKIC,
    "tt": _CYRILLIC,
    "uk": _CYRILLIC,
    "ur": _Rules(marks=_ARABIC, letters=_ALEF_WASLA | dict(zip("كيىهەةۀ", "کییہہۃۂ", strict=True))),
}  # fmt: skip


class Folding:
    """Folds words of one language.

    Args:
        language: a language code; a language without rules of its own has those of Unicode alone.

    Examples:
        >>> Folding("tr").word("IŞIK"), Folding("de").word("STRASSE"), Folding("de").word("straße")
        ('ışık', 'strasse', 'strasse')
    """

    def __init__(self, language: str) -> None:
        rules = _RULES.get(language, _Rules())
        self.first = str.maketrans(rules.first)
        self.is_plain = rules == _Rules()
        self._is_ascii_alike = not rules.first
        self._split = rules.split
        self._marks = re.compile(f"[{rules.marks}]") if rules.marks else None
        letters = _ALL_ALIKE | rules.letters
        self._single = str.maketrans({each: to for each, to in letters.items() if len(each) == 1})
        self._longer = [(each, to) for each, to in letters.items() if len(each) > 1]

    def text(self, text: str) -> str:
        """Fold text that `normalise` returned. Each letter is folded with its marks, and apart from other letters."""
        if self._is_ascii_alike and text.isascii():
            return text.lower()
        text = unicodedata.normalize("NFC", unseen.sub("", text).translate(self.first).casefold())
        if "\u0307" in text:  # the dot of İ, or one that Lithuanian keeps under an accent
            text = unicodedata.normalize("NFC", re.sub("(?<=[ijį])\u0307", "", text))
        if self._marks is not None:
            if self._split:
                text = unicodedata.normalize("NFD", text)
            text = self._marks.sub("", text)
            if self._split:
                text = unicodedata.normalize("NFC", text)
        for each, to in self._longer:
            text = text.replace(each, to)
        return text.translate(self._single)

    def word(self, word: str) -> str:
        """Fold a word that `normalise` returned."""
        if self.is_plain and word.isalpha():  # most words; there are no marks and no joiners
            folded = word.casefold()
            if folded == word or folded.isascii():
                return folded
        word = self.text(word)
        if "\u200c" in word or "\u200d" in word:
            word = _JOINERS.sub(_kept_joiner, word)
        return word


def _kept_joiner(found: re.Match[str]) -> str:
    """Return a joiner where it shows, as UAX 31 says: after a virama, and between letters of Arabic scripts."""
    text, begin, end = found.string, found.start(), found.end()
    if begin == 0:
        return ""
    if unicodedata.category(text[end : end + 1] or " ")[0] not in "LMN":
        return ""
    if unicodedata.combining(text[begin - 1]) == 9:
        return found[0][0]
    is_between = _is_arabic(text[begin - 1]) and _is_arabic(text[end])
    return "\u200c" if is_between and "\u200c" in found[0] else ""


def _is_arabic(character: str) -> bool:
    return unicodedata.bidirectional(character) == "AL"


@cache
def folding(language: str) -> Folding:
    """Return the folding of a language."""
    return Folding(language)
