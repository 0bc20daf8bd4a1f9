"""The recognition of the language of texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from .languages import NAMES, SCRIPTS, UNSPACED, can_split

# Scripts that are written with spaces, each under the language that it most probably stands for.
_SPACED_SCRIPTS = {
    "ar": "\u0620-\u064a",
    "bn": "\u0980-\u09ff",
    "el": "\u0370-\u03ff",
    "he": "\u05d0-\u05ea",
    "hi": "\u0900-\u097f",
    "hy": "\u0531-\u0587",
    "ru": "\u0400-\u04ff",
    "ta": "\u0b80-\u0bff",
    "te": "\u0c00-\u0c7f",
}
# Other languages in the same script.
_SHARED_SCRIPTS = {
    "ar": {"fa", "ur"},
    "el": {"grc"},
    "hi": {"mr", "ne", "sa"},
    "ru": {"bg", "ky", "mk", "sr", "tt", "uk"},
}
_SAMPLE_CHARACTERS = 300  # of each text; enough to recognise a script
_FEW_UNSPLIT, _SHARE_UNSPLIT = 5, 0.05  # fewer texts, or a smaller share of them, need no remark
# Frequent characters that are written only in traditional or only in simplified Chinese, in the same order.
_TRADITIONAL = frozenset("們個國來說時為會這學對發經過與後還沒點開關裡體實現動種問從當長無進機讓見門東車電話買賣義業書")
_SIMPLIFIED = frozenset("们个国来说时为会这学对发经过与后还没点开关里体实现动种问从当长无进机让见门东车电话买卖义业书")
_ALONE = re.compile(rf"(?<!\S)[{SCRIPTS['han']}](?!\S)")  # a Chinese character between blanks


def detect_language(sample: Iterable[str]) -> str:
    """Return the language that the scripts in `sample` suggest, which is "en" for the Latin script.

    Where several languages share a script, the script is only a hint: French, Ukrainian or Persian, for example, must
    be named.

    Examples:
        >>> from topicloom.text import detect_language
        >>> detect_language(["今天天气很好"]), detect_language(["Сегодня хорошая погода"]), detect_language(["Bonjour"])
        ('zh', 'ru', 'en')
    """
    text = " ".join(str(entry)[:2000] for entry in sample)
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
    return best if spaced[best] > 0.5 * letters else "en"


def other_language(language: str, sample: Iterable[str]) -> str | None:
    """Return the language that most texts clearly have, if it is not the one that was named.

    Args:
        language: the code of the language that was named.
        sample: a few texts.

    Returns:
        A language code, or None if the script of most texts agrees with `language` or is Latin.
    """
    texts = [text[:_SAMPLE_CHARACTERS] for text in sample if not text.isspace() and text]
    votes = Counter("en" if text.isascii() else detect_language([text]) for text in texts)
    if not votes:
        return None
    found, n_votes = votes.most_common(1)[0]
    agrees = found in ("en", language) or language in _SHARED_SCRIPTS.get(found, ())
    # A single title in Chinese characters may be Japanese, which only all texts together show.
    if agrees or 2 * n_votes <= len(texts) or found != detect_language(texts):
        return None
    return found


def unsplit(language: str, sample: Iterable[str]) -> str | None:
    """Return a sentence about texts that the tokenizer of a language does not split into words, if they are many.

    Args:
        language: the code of the tokenizer's language.
        sample: the first texts.
    """
    texts = [text[:_SAMPLE_CHARACTERS] for text in sample if text.strip()]
    found = Counter(detect_language([text]) for text in texts if UNSPACED.search(text))
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
    text = " ".join(entry[:_SAMPLE_CHARACTERS] for entry in sample)
    return sum(map(_TRADITIONAL.__contains__, text)) > sum(map(_SIMPLIFIED.__contains__, text))


def is_spaced_out(sample: Iterable[str]) -> bool:
    """Whether most Chinese characters of texts stand alone between blanks."""
    text = " ".join(entry[:_SAMPLE_CHARACTERS] for entry in sample)
    n_characters = len(re.findall(f"[{SCRIPTS['han']}]", text))
    return 2 * len(_ALONE.findall(text)) > n_characters


def mismatch(language: str, other: str) -> str:
    """Return a sentence that names the language that was given and the one that the texts look like."""
    return (
        f'the texts look {NAMES[other]} ({other}), but `language="{language}"` was given; give the language of the '
        f'texts, such as `language="{other}"`'
    )
