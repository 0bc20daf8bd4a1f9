"""Languages: their codes, names, scripts and stop words."""

from __future__ import annotations

import re
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

SCRIPTS = {
    "th": "\u0e00-\u0e7f",
    "lo": "\u0e80-\u0eff",
    "my": "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f",
    "km": "\u1780-\u17ff\u19e0-\u19ff",
    "kana": "\u3041-\u30ff\u31f0-\u31ff",
    "han": "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af",
    "ko": "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af",
}
UNSPACED = re.compile(f"[{''.join(ranges for code, ranges in SCRIPTS.items() if code != 'ko')}]")

NAMES = {
    "af": "Afrikaans", "am": "Amharic", "ar": "Arabic", "az": "Azerbaijani", "bg": "Bulgarian", "bn": "Bengali",
    "bo": "Tibetan", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German", "dsb": "Lower Sorbian",
    "el": "Greek", "en": "English", "es": "Spanish", "et": "Estonian", "eu": "Basque", "fa": "Persian",
    "fi": "Finnish", "fr": "French", "ga": "Irish", "gd": "Scottish Gaelic", "grc": "Ancient Greek",
    "gu": "Gujarati", "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hsb": "Upper Sorbian",
    "ht": "Haitian Creole", "hu": "Hungarian", "hy": "Armenian", "id": "Indonesian", "is": "Icelandic",
    "it": "Italian", "ja": "Japanese", "km": "Khmer", "kmr": "Kurmanji", "kn": "Kannada", "ko": "Korean",
    "ky": "Kyrgyz", "la": "Latin", "lb": "Luxembourgish", "lg": "Ganda", "lij": "Ligurian", "lo": "Lao",
    "lt": "Lithuanian", "lv": "Latvian", "mk": "Macedonian", "ml": "Malayalam", "mr": "Marathi", "ms": "Malay",
    "my": "Burmese", "nb": "Norwegian", "ne": "Nepali", "nl": "Dutch", "pl": "Polish", "pt": "Portuguese",
    "ro": "Romanian", "ru": "Russian", "sa": "Sanskrit", "si": "Sinhala", "sk": "Slovak", "sl": "Slovenian",
    "sq": "Albanian", "sr": "Serbian", "sv": "Swedish", "ta": "Tamil", "te": "Telugu", "th": "Thai",
    "ti": "Tigrinya", "tl": "Tagalog", "tn": "Tswana", "tr": "Turkish", "tt": "Tatar", "uk": "Ukrainian",
    "ur": "Urdu", "vi": "Vietnamese", "yo": "Yoruba", "zh": "Chinese",
}  # fmt: skip


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


def can_split(language: str, other: str) -> bool:
    """Whether the tokenizer of one language finds words in text of another language."""
    unspaced = other in ICU_LANGUAGES or other == "zh"
    return not unspaced or language in ICU_LANGUAGES or (language, other) == ("zh", "ja")


def language_name(code: str) -> str:
    """Return the name of a language with its code, such as "Chinese (zh)"; the code alone where no name is known."""
    return f"{NAMES[code]} ({code})" if code in NAMES else code
