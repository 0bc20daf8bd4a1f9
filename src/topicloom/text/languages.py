"""Languages: their codes, the recognition of a text's language by its script, and stop words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from ..errors import SettingError
from ..messages import nearest

# Stop words: one text file for each language. The file NOTICE names the sources of the lists.

_FOLDER = Path(__file__).parent / "stopwords"


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the stop words of a language, NFKC-normalised and casefolded; empty for a language without a list.

    Args:
        language: a code such as "en" or "zh"; the list of "zh" has simplified and traditional words.

    Examples:
        >>> from topicloom.text import stop_words
        >>> "the" in stop_words("en"), "的" in stop_words("zh"), len(stop_words("und"))
        (True, True, 0)
    """
    path = _FOLDER / f"{language}.txt"
    return frozenset(read_words(path)) if language in listed_languages() else frozenset()


@cache
def listed_languages() -> frozenset[str]:
    """Return the codes of the languages that have a list."""
    return frozenset(path.stem for path in _FOLDER.glob("*.txt"))


def read_words(path: Path) -> list[str]:
    """Read one entry from each line, without blank lines and lines that begin with #."""
    lines = (line.strip() for line in path.read_text(encoding="utf-8-sig").split("\n"))
    return [line for line in lines if line and not line.startswith("#")]


ICU_LANGUAGES = frozenset({"ja", "km", "lo", "my", "th"})
_ALIASES = {
    "chinese": "zh", "cmn": "zh", "cn": "zh", "english": "en", "french": "fr", "german": "de", "italian": "it",
    "japanese": "ja", "korean": "ko", "no": "nb", "portuguese": "pt", "russian": "ru", "spanish": "es", "thai": "th",
}  # fmt: skip

_SCRIPTS = {
    "th": "\u0e00-\u0e7f",
    "lo": "\u0e80-\u0eff",
    "my": "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f",
    "km": "\u1780-\u17ff\u19e0-\u19ff",
    "kana": "\u3041-\u30ff\u31f0-\u31ff",
    "han": "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af",
    "ko": "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af",
}
UNSPACED = re.compile(f"[{''.join(ranges for code, ranges in _SCRIPTS.items() if code != 'ko')}]")

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
_NAMES = {
    "ar": "Arabic", "bn": "Bengali", "el": "Greek", "he": "Hebrew", "hi": "Hindi", "hy": "Armenian", "ja": "Japanese",
    "km": "Khmer", "ko": "Korean", "lo": "Lao", "my": "Burmese", "ru": "Russian", "ta": "Tamil", "te": "Telugu",
    "th": "Thai", "zh": "Chinese",
}  # fmt: skip
_SAMPLE_CHARACTERS = 300  # of each text; enough to recognise a script
_FEW_UNSPLIT, _SHARE_UNSPLIT = 5, 0.05  # fewer texts, or a smaller share of them, need no remark
# Frequent characters that are written only in traditional or only in simplified Chinese, in the same order.
_TRADITIONAL = frozenset("們個國來說時為會這學對發經過與後還沒點開關裡體實現動種問從當長無進機讓見門東車電話買賣義業書")
_SIMPLIFIED = frozenset("们个国来说时为会这学对发经过与后还没点开关里体实现动种问从当长无进机让见门东车电话买卖义业书")
_ALONE = re.compile(rf"(?<!\S)[{_SCRIPTS['han']}](?!\S)")  # a Chinese character between blanks


def languages() -> list[str]:
    """Return the codes of all supported languages, sorted.

    Examples:
        >>> from topicloom.text import languages
        >>> {"en", "zh", "th"} <= set(languages())
        True
    """
    return sorted(listed_languages() | ICU_LANGUAGES)


def language_code(language: str) -> str:
    """Return the code of a language, given a code with a region ("zh-TW", "en_US") or one of a few English names.

    Raises:
        SettingError: the language is not known.
    """
    name = str(language).strip().lower()
    code = re.split("[-_]", name)[0]
    code = _ALIASES.get(name, _ALIASES.get(code, code))
    if code not in languages():
        raise SettingError(f"`language={language!r}` is not known; {nearest(name, [*languages(), 'auto'])}")
    return code


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
    found = {code: len(re.findall(f"[{ranges}]", text)) for code, ranges in _SCRIPTS.items()}
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
        f"{n_texts} of the first {len(texts)} texts look {_NAMES[other]} ({other}), and are not split into words with "
        f'`language="{language}"`; `language="{other}"` splits them, and keeps the words of the other texts'
    )


def is_traditional(sample: Iterable[str]) -> bool:
    """Whether texts are in traditional Chinese rather than simplified Chinese."""
    text = " ".join(entry[:_SAMPLE_CHARACTERS] for entry in sample)
    return sum(map(_TRADITIONAL.__contains__, text)) > sum(map(_SIMPLIFIED.__contains__, text))


def is_spaced_out(sample: Iterable[str]) -> bool:
    """Whether most Chinese characters of texts stand alone between blanks."""
    text = " ".join(entry[:_SAMPLE_CHARACTERS] for entry in sample)
    n_characters = len(re.findall(f"[{_SCRIPTS['han']}]", text))
    return 2 * len(_ALONE.findall(text)) > n_characters


def can_split(language: str, other: str) -> bool:
    """Whether the tokenizer of one language finds words in text of another language."""
    unspaced = other in ICU_LANGUAGES or other == "zh"
    return not unspaced or language in ICU_LANGUAGES or (language, other) == ("zh", "ja")


def language_name(code: str) -> str:
    """Return the name of a language with its code, such as "Chinese (zh)"; the code alone where no name is known."""
    name = _NAMES.get(code, "English" if code == "en" else "")
    return f"{name} ({code})" if name else code


def mismatch(language: str, other: str) -> str:
    """Return a sentence that names the language that was given and the one that the texts look like."""
    return (
        f'the texts look {_NAMES[other]} ({other}), but `language="{language}"` was given; give the language of the '
        f'texts, such as `language="{other}"`'
    )
