"""The recognition of the language of texts, by the script and by stop words."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import chain
from typing import NamedTuple

from .languages import NAMES, SCRIPTS, UNSPACED, can_split, language_name, listed_languages, stop_words
from .strings import normalise

# Scripts that are written with spaces, each under the language that it most probably stands for.
_SPACED_SCRIPTS = {
    "am": "\u1200-\u137f",
    "ar": "\u0620-\u064a\u0671-\u06d3\u06fa-\u06fc\u0750-\u077f",
    "bn": "\u0980-\u09ff",
    "bo": "\u0f00-\u0fff",
    "el": "\u0370-\u03ff",
    "gu": "\u0a80-\u0aff",
    "he": "\u05d0-\u05ea",
    "hi": "\u0900-\u097f",
    "hy": "\u0531-\u0587",
    "kn": "\u0c80-\u0cff",
    "ml": "\u0d00-\u0d7f",
    "ru": "\u0400-\u04ff",
    "si": "\u0d80-\u0dff",
    "ta": "\u0b80-\u0bff",
    "te": "\u0c00-\u0c7f",
}
# Languages that share a script, under the first one. Stop words tell them apart.
_SHARED_SCRIPTS = {
    "am": ("am", "ti"),
    "ar": ("ar", "fa", "ur"),
    "el": ("el", "grc"),
    "hi": ("hi", "mr", "ne", "sa"),
    "ru": ("ru", "bg", "ky", "mk", "sr", "tt", "uk"),
}
_OTHER_SCRIPTS = {"ja", "km", "ko", "lo", "my", "th", "zh", *_SPACED_SCRIPTS, *chain(*_SHARED_SCRIPTS.values())}
# The lists of the Sorbian languages are too short to recognise them, and Malay has the list of Indonesian.
_NOT_RECOGNISED = {"dsb", "hsb", "ms"}
_LEAST_SHARE = 0.08  # of the words that must be stop words of a language
_LEAST_LEAD = 2  # standard deviations
_LEAST_DIFFERENT = 3  # stop words, as one frequent word of a field may be a stop word of another language
_CLEAR_RATIO = 1.6  # of the stop words of one language alone to those of the next alone
_LEAST_OF_A_TEXT = 2  # stop words by which the first language of one text leads
_LEAST_KNOWN = 0.2  # of the texts that must show their language
_FEW_TEXTS, _LEAST_PART = 5, 0.05  # texts in another language that need a remark
_FEW_WORDS = 100  # fewer words need no warning that they show no language
_SAMPLE_CHARACTERS = 300  # of each text; enough to recognise a script
_FEW_UNSPLIT, _SHARE_UNSPLIT = 5, 0.05  # fewer texts, or a smaller share of them, need no remark
# Frequent characters that are written only in traditional or only in simplified Chinese, in the same order.
_TRADITIONAL = frozenset("們個國來說時為會這學對發經過與後還沒點開關裡體實現動種問從當長無進機讓見門東車電話買賣義業書")
_SIMPLIFIED = frozenset("们个国来说时为会这学对发经过与后还没点开关里体实现动种问从当长无进机让见门东车电话买卖义业书")
_NO_WORDS = re.compile(r"<[^<>]*>|&\w+;|\S+://\S+|\S+@\S+")  # tags, entities and addresses
_JOINERS = "\u200c\u200d"  # inside words of Persian and of Indic languages
_ALONE = re.compile(rf"(?<!\S)[{SCRIPTS['han']}](?!\S)")  # a Chinese character between blanks


class Recognition(NamedTuple):
    """The language that texts seem to have, and how sure this is.

    Args:
        language: its code.
        is_by_stop_words: whether stop words show it; if not, the script does.
        is_sure: whether it is clearly this language.
        share: the share of the words that are stop words of this language.
        second: the code of the language in the same script whose stop words come next; None if there is none.
        second_share: the share of the words that are stop words of that language.
        n_words: the number of words that were compared.
    """

    language: str
    is_by_stop_words: bool = False
    is_sure: bool = True
    share: float = 0.0
    second: str | None = None
    second_share: float = 0.0
    n_words: int = 0

    @property
    def needs_warning(self) -> bool:
        """Whether there is enough text, and it still does not show one language."""
        return not self.is_sure and self.n_words >= _FEW_WORDS

    @property
    def sentence(self) -> str:
        """A sentence that says which language is taken, how sure that is, and what to do."""
        name = language_name(self.language)
        if self.second is None:
            return f"language: {name}, recognised by its script; `language` sets another one"
        second = language_name(self.second)
        ours, theirs = f"{100 * self.share:.0f} %", f"{100 * self.second_share:.0f} %"
        if not self.is_by_stop_words:
            return (
                f"language: {name}, a guess by the script alone, because stop words show no language ({ours} of the "
                f"words are those of {name}, {theirs} those of {second}); if it is another one, give `language`"
            )
        if not self.is_sure:
            return (
                f"language: {name}, but this is not sure: {ours} of the words are its stop words, and {theirs} are "
                f"those of {second}; if it is another one, give `language`"
            )
        return (
            f"language: {name}, recognised by its stop words, which are {ours} of the words ({second}, the next "
            f"language: {theirs}); `language` sets another one"
        )


def recognise(sample: Iterable[str]) -> Recognition:
    """Recognise the language of texts: by their script, and by stop words if languages share the script.

    A text in a language without a list of stop words is taken for one whose stop words it contains, which is not sure
    as a rule.

    Args:
        sample: some hundred texts, of which the beginnings are read.
    """
    texts = [str(text)[:_SAMPLE_CHARACTERS] for text in sample]
    script = _language_of_script(" ".join(texts)) or "en"
    return Recognition(script) if len(_rivals(script)) < 2 else _by_stop_words(_counts(texts), script)


def detect_language(sample: Iterable[str]) -> str:
    """Return the language of texts: their script shows it, or their stop words if languages share the script.

    Without enough stop words, Latin script is taken for English, Cyrillic for Russian, Arabic script for Arabic, and
    Devanagari for Hindi.

    Args:
        sample: some hundred texts, of which the beginnings are read.

    Examples:
        >>> from topicloom.text import detect_language
        >>> detect_language(["今天天气很好"]), detect_language(["Bonjour"])
        ('zh', 'en')
        >>> detect_language(["Der Hund und die Katze sind nicht in dem Haus, aber sie waren es, und das ist gut."])
        'de'
    """
    return recognise(sample).language


def language_shares(sample: Iterable[str]) -> dict[str, float]:
    """Return the languages of which at least five texts and a twentieth of the texts clearly are, the commonest first.

    Args:
        sample: some hundred texts, of which the beginnings are read.

    Returns:
        The share of each language in the texts. Texts without stop words are shared out among the languages of their
        script in proportion to the others.
    """
    by_script: defaultdict[str, list[Counter[str]]] = defaultdict(list)
    for text in sample:
        beginning = text[:_SAMPLE_CHARACTERS]
        if script := _language_of_script(beginning):
            by_script[script].append(Counter(_words(beginning)))
    n_texts = sum(map(len, by_script.values()))
    least = max(_FEW_TEXTS, _LEAST_PART * n_texts)
    found: dict[str, float] = {}
    for script, texts in by_script.items():
        for language, n in _languages_of(texts, script).items():
            if n >= least:
                found[language] = n
    total = sum(found.values())
    return {language: n / total for language, n in sorted(found.items(), key=lambda pair: -pair[1])}


def _languages_of(texts: list[Counter[str]], script: str) -> dict[str, float]:
    """Return how many texts of one script are in each of its languages, given the counts of their words."""
    if len(_rivals(script)) < 2:
        return {script: len(texts)}
    groups: defaultdict[str, list[Counter[str]]] = defaultdict(list)
    for counts in texts:
        hits = _hits(counts, script)
        first, second, *_ = sorted(hits.values(), reverse=True)
        if first - second >= _LEAST_OF_A_TEXT and first >= _LEAST_SHARE * counts.total():
            groups[max(hits, key=hits.__getitem__)].append(counts)
    main = _by_stop_words(_sum(texts), script).language
    sizes = {main: len(groups.pop(main, ()))}
    for language, group in groups.items():
        counts = _sum(group)
        hits = _hits(counts, script)
        if len(group) >= _FEW_TEXTS and hits[language] >= _CLEAR_RATIO * hits[main]:
            found = _by_stop_words(counts, script)
            if found.is_sure and found.language == language:
                sizes[language] = len(group)
    known = sum(sizes.values())
    if known < _LEAST_KNOWN * len(texts):  # as in texts of which the stop words were removed
        return {main: len(texts)}
    return {language: len(texts) * size / known for language, size in sizes.items()}


def _sum(texts: Iterable[Counter[str]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for counts in texts:
        total.update(counts)
    return total


def _language_of_script(text: str) -> str | None:
    """Return the language that the script of a text stands for: "en" for Latin and unknown scripts, None for none."""
    if text.isascii():
        return "en" if any(map(str.isalpha, text)) else None
    found = {code: len(re.findall(f"[{ranges}]", text)) for code, ranges in SCRIPTS.items()}
    kana, han = found.pop("kana"), found.pop("han")
    # Japanese text mixes kana with Chinese characters. A few kana in Chinese text are a name or a quotation.
    found["ja" if kana > 0.1 * (kana + han) else "zh"] = kana + han
    letters = sum(map(str.isalpha, text))
    best = max(found, key=lambda code: found[code])
    # One such character carries about as much as three letters. The tokenizer of an unspaced language splits mixed
    # text better.
    if found[best] > 0.15 * letters:
        return best
    spaced = {code: len(re.findall(f"[{ranges}]", text)) for code, ranges in _SPACED_SCRIPTS.items()}
    best = max(spaced, key=lambda code: spaced[code])
    if spaced[best] > 0.5 * letters:
        return best
    return "en" if letters else None


@cache
def _rivals(script: str) -> dict[str, float]:
    """Return the languages of a script, and what each of their stop words in a text says for them.

    Args:
        script: the language that the script stands for.
    """
    codes: Iterable[str] = _SHARED_SCRIPTS.get(script, (script,))
    if script == "en":
        codes = sorted(listed_languages() - _OTHER_SCRIPTS - _NOT_RECOGNISED)
    # A word of a short list is rarely a word of another language: the lists of Afrikaans and Dutch have 60 and 350.
    return {code: math.log(1e5 / max(len(stop_words(code)), 1)) for code in codes}


@cache
def _languages_of_words(script: str) -> dict[str, tuple[str, ...]]:
    """Return the languages of a script that have each stop word."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for code in _rivals(script):
        for word in _folded_stop_words(code):
            found[word].append(code)
    return {word: tuple(codes) for word, codes in found.items()}


def _hits(counts: Counter[str], script: str) -> dict[str, int]:
    """Return how many words of a text are stop words of each language of a script."""
    hits = dict.fromkeys(_rivals(script), 0)
    languages_of = _languages_of_words(script)
    for word, n in counts.items():
        for code in languages_of.get(word, ()):
            hits[code] += n
    return hits


def _by_stop_words(counts: Counter[str], script: str) -> Recognition:
    """Recognise a language of a script, given the counts of the words."""
    hits, weights = _hits(counts, script), _rivals(script)
    best, second = sorted(hits, key=lambda code: -hits[code] * weights[code])[:2]
    n_words = counts.total()
    total = max(n_words, 1)
    is_shown = hits[best] >= _LEAST_SHARE * total and _leads(counts, best, second if best == script else script)
    if not is_shown and best != script:
        best, second = script, best
    return Recognition(
        best,
        is_by_stop_words=is_shown,
        is_sure=is_shown and _leads(counts, best, second, _CLEAR_RATIO),
        share=hits[best] / total,
        second=second,
        second_share=hits[second] / total,
        n_words=n_words,
    )


def _leads(counts: Counter[str], language: str, other: str, ratio: float = 1.0) -> bool:
    """Return whether words are stop words of one language rather than of another one.

    Args:
        counts: the counts of the words.
        language: the one language.
        other: the other language.
        ratio: how many times more words should be stop words of the first language alone than of the other one alone.
    """
    ours, theirs = _folded_stop_words(language), _folded_stop_words(other)
    alone = [n for word, n in counts.items() if word in ours and word not in theirs]
    against = sum(n for word, n in counts.items() if word in theirs and word not in ours)
    n = sum(alone)
    leads = n - against >= _LEAST_LEAD * math.sqrt(n + against) and n >= ratio * against
    return leads and len(alone) >= _LEAST_DIFFERENT


@cache
def _folded_stop_words(language: str) -> frozenset[str]:
    return frozenset(map(_folded, stop_words(language)))


def _counts(texts: Iterable[str]) -> Counter[str]:
    """Count the words of different texts: a text that is repeated shows no more than once what language it is in."""
    return Counter(chain.from_iterable(map(_words, dict.fromkeys(texts))))


def _words(text: str) -> list[str]:
    """Return the runs of letters in a text, folded."""
    text = _folded(_NO_WORDS.sub(" ", text))
    others = {ord(c): " " for c in set(text) if unicodedata.category(c)[0] not in "LM" and c not in _JOINERS}
    return text.translate(others).split()


def _folded(text: str) -> str:
    return normalise(text).casefold().replace("\u0307", "")  # the dot of the capital letter İ


def other_language(language: str, sample: Iterable[str]) -> str | None:
    """Return the language that most texts clearly have, if it is not the one that was named.

    Args:
        language: the code of the language that was named.
        sample: a few texts.

    Returns:
        A language code, or None if most texts may be in `language`.
    """
    texts = [text[:_SAMPLE_CHARACTERS] for text in sample if not text.isspace() and text]
    votes = Counter(_language_of_script(text) or "en" for text in texts)
    if not votes:
        return None
    script, n_votes = votes.most_common(1)[0]
    # A single title in Chinese characters may be Japanese, which only all texts together show.
    if 2 * n_votes <= len(texts) or script != (_language_of_script(" ".join(texts)) or "en"):
        return None
    if len(_rivals(script)) < 2:
        return None if script == language else script
    counts = _counts(texts)
    found = _by_stop_words(counts, script)
    if found.language == language or (found.language, language) == ("en", "zh"):  # which keeps the words of English
        return None
    if not found.is_by_stop_words:
        return None if script == "en" or language in _rivals(script) else script
    return found.language if _leads(counts, found.language, language, _CLEAR_RATIO) else None


def unsplit(language: str, sample: Iterable[str]) -> str | None:
    """Return a sentence about texts that the tokenizer of a language does not split into words, if they are many.

    Args:
        language: the code of the tokenizer's language.
        sample: the first texts.
    """
    texts = [text[:_SAMPLE_CHARACTERS] for text in sample if text.strip()]
    found = Counter(_language_of_script(text) or "en" for text in texts if UNSPACED.search(text))
    votes = [(code, n) for code, n in found.most_common() if code != language and not can_split(language, code)]
    n_texts = sum(n for _, n in votes)
    if n_texts < max(_FEW_UNSPLIT, _SHARE_UNSPLIT * len(texts)):
        return None
    other = votes[0][0]
    return (
        f"{n_texts} of the first {len(texts)} texts look {NAMES[other]} ({other}), and are not split into words with "
        f'`language="{language}"`; `language="{other}"` splits them, and keeps the words of the other texts'
    )


def is_traditional(sample: Iterable[str]) -> bool:
    """Whether texts are in traditional Chinese rather than simplified Chinese."""
    return _traditional_lead(" ".join(entry[:_SAMPLE_CHARACTERS] for entry in sample)) > 0


def two_scripts(sample: Iterable[str]) -> str | None:
    """Return a sentence about texts of which some are in traditional and others in simplified Chinese."""
    leads = [_traditional_lead(text[:_SAMPLE_CHARACTERS]) for text in sample]
    n_traditional, n_simplified = sum(lead > 0 for lead in leads), sum(lead < 0 for lead in leads)
    n_known = n_traditional + n_simplified
    if min(n_traditional, n_simplified) < max(_FEW_TEXTS, _LEAST_PART * n_known):
        return None
    return (
        f"about {100 * n_traditional / n_known:.0f} % of the texts are in traditional Chinese and the others in "
        "simplified Chinese, so that one word is two words of the vocabulary, and topics follow the characters; "
        "convert all texts to simplified Chinese first, for example with OpenCC"
    )


def _traditional_lead(text: str) -> int:
    """Return how many more characters of a text are traditional than simplified."""
    return sum(map(_TRADITIONAL.__contains__, text)) - sum(map(_SIMPLIFIED.__contains__, text))


def is_spaced_out(sample: Iterable[str]) -> bool:
    """Whether most Chinese characters of texts stand alone between blanks."""
    text = " ".join(entry[:_SAMPLE_CHARACTERS] for entry in sample)
    n_characters = len(re.findall(f"[{SCRIPTS['han']}]", text))
    return 2 * len(_ALONE.findall(text)) > n_characters


def mixture(shares: Mapping[str, float]) -> str:
    """Return a sentence about texts in several languages, of which `language_shares` gives the shares."""
    parts = ", ".join(f"{100 * share:.0f} % {language_name(code)}" for code, share in shares.items())
    return (
        f"the texts are in several languages: {parts}; topics then follow the languages, so make a corpus of each "
        "language, or give the stop words of all of them by `stop_words`"
    )


def mismatch(language: str, other: str) -> str:
    """Return a sentence that names the language that was given and the one that the texts look like."""
    return (
        f'the texts look {NAMES[other]} ({other}), but `language="{language}"` was given; give the language of the '
        f'texts, such as `language="{other}"`'
    )
