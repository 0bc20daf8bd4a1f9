"""One spelling for each word of a language: case, marks that writers may leave out, and letters with several codes.

And the way back: how texts write the words, Haus for haus and straße for strasse.

The sources are the Unicode standard (default case folding, NFKC, SpecialCasing, the joiners of UAX 31) and, for what a
language adds, CLDR: its rules of case (az, el, hy, lt, tr), its alphabets, which say which codes of a letter a language
uses (ar, fa, ro, ur), and its orders of sorting, in which what is folded here differs no more than an accent or a
capital letter does (German ß and ss, French œ and oe, Russian ё and е).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from .strings import normalise

# Characters that are not seen and belong to no word: the ignorable ones of UAX 29, except the two joiners.
_UNSEEN = "\xad\u034f\u061c\u180b-\u180f\u200e\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff"
unseen = re.compile(f"[{_UNSEEN}]")
_JOINERS = re.compile("[\u200c\u200d]+")
_ALL_ALIKE = {"\u2010": "-", "\u058a": "-", "\u05be": "-", "\u201b": "'", "\u055a": "'", "\u2027": "·"}
_ALIKE = str.maketrans(_ALL_ALIKE)

_ARABIC_VOWELS = "\u0610-\u061a\u064b-\u0652\u0656-\u065f\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed"
_STRESS = "\u0300\u0301"  # й, ї, ќ, ѝ and the like are letters of their own
_ARABIC = _ARABIC_VOWELS + "\u0640"  # with tatweel
_ALEF_WASLA = {"\u0671": "\u0627"}
_ARMENIAN_MARKS = "՛՜՞"  # inside of words
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
    "hy": _Rules(marks=_ARMENIAN_MARKS, letters={"եւ": "եվ"}),  # և, whose capitals are ԵՎ
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
        text = _without_dots(unseen.sub("", text).translate(self.first).casefold())
        if self._marks is not None:
            if self._split:
                text = unicodedata.normalize("NFD", text)
            text = self._marks.sub("", text)
            if self._split:
                text = unicodedata.normalize("NFC", text)
        for each, to in self._longer:
            text = text.replace(each, to)
        return text.translate(self._single)

    def lower(self, word: str) -> str:
        """Return a word that `normalise` returned in lower case, with its letters and marks: straße for STRAßE."""
        return _without_dots(unseen.sub("", word).translate(self.first).lower()).translate(_ALIKE)

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


def _without_dots(text: str) -> str:
    text = unicodedata.normalize("NFC", text)
    if "\u0307" not in text:
        return text
    # The dot of İ, or one that Lithuanian keeps under an accent.
    return unicodedata.normalize("NFC", re.sub("(?<=[ijį])\u0307", "", text))


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


# The way back: the commonest form in which texts write each word.

_EDGES = "'\"-_·•∙⋅׳״" + "".join(_ALL_ALIKE)  # signs that may be inside of a word
_INNER = re.compile("['-]")
_AT_ONCE = 1000  # texts
_MOST = 1 << 20  # different runs that are remembered


def cased_forms(texts: Iterable[str], vocabulary: Sequence[str], fold: Callable[[str], str]) -> dict[str, str]:
    """Return the commonest written form of each word, where it is not the word itself.

    Args:
        texts: texts that are written with spaces.
        vocabulary: folded words.
        fold: folds a normalised word.
    """
    best = {}
    for word, found in _forms(_runs(texts), vocabulary, fold).items():
        _, is_another, form = min((-n, form != word, form) for form, n in found.items())
        if is_another:
            best[word] = form
    return best


def written_forms(
    texts: Iterable[str], words: Mapping[str, float], fold: Callable[[str], str], lower: Callable[[str], str]
) -> dict[str, str]:
    """Return the commonest written form of each word in lower case, where it is not the word itself.

    Args:
        texts: texts that are written with spaces.
        words: the folded words, and how often the texts have each.
        fold: folds a normalised word.
        lower: puts a normalised word into lower case.
    """
    # The only form in ASCII is the word itself.
    runs = _runs(text for text in texts if not text.isascii())
    found = _forms({run: n for run, n in runs.items() if not run.isascii()}, [*words], fold)
    best = {}
    for word, forms in found.items():
        counts: Counter[str] = Counter()
        for form, n in forms.items():
            counts[lower(form)] += n
        own: float = counts.pop(word, 0)
        if word.isascii():
            own = max(own, words[word] - counts.total())
        if counts:
            n, form = min((-n, form) for form, n in counts.items())
            if -n > own:
                best[word] = form
    return best


def _runs(texts: Iterable[str]) -> Counter[str]:
    """Return the runs of characters that may be words in texts, and how often they occur."""
    counts: Counter[str] = Counter()
    for batch in _batches(texts):
        counts.update(run.strip(_EDGES) for run in _run().findall(batch))
        if len(counts) > _MOST:
            counts = Counter(dict(counts.most_common(_MOST // 2)))
    return counts


@cache
def _run() -> re.Pattern[str]:
    """Anything but white space and signs, apart from those that may be inside of a word."""
    ranges: list[list[int]] = []
    for code in range(0x21, 0x10000):
        if unicodedata.category(chr(code))[0] in "PS" and chr(code) not in _EDGES + _ARMENIAN_MARKS:
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    signs = "".join(f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in ranges)
    return re.compile(rf"[^\s{signs}\U0001f000-\U0001faff]+")


def _forms(runs: Mapping[str, int], vocabulary: Sequence[str], fold: Callable[[str], str]) -> dict[str, Counter[str]]:
    """Return how often each word of the vocabulary is written in each form, in the order of the vocabulary."""
    known = set(vocabulary)
    forms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for run, n in runs.items():
        for form in [run] if fold(run) in known else _INNER.split(run):  # l'Homme has the word homme in French
            if form and (word := fold(form)) in known:
                forms[word][form] += n
    return {word: forms[word] for word in vocabulary if word in forms}


def _batches(texts: Iterable[str]) -> Iterable[str]:
    """Yield normalised texts, many in one string."""
    batch: list[str] = []
    for text in texts:
        batch.append(text)
        if len(batch) == _AT_ONCE:
            yield normalise("\n".join(batch))
            batch = []
    yield normalise("\n".join(batch))
