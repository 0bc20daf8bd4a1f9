"""Languages: their codes, and what the script of a text says of its language."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..errors import SettingError, nearest
from .stopwords import listed_languages

ICU_LANGUAGES = frozenset({"ja", "km", "lo", "my", "th"})
_ALIASES = {
    "chinese": "zh", "cmn": "zh", "english": "en", "french": "fr", "german": "de", "italian": "it", "japanese": "ja",
    "korean": "ko", "no": "nb", "portuguese": "pt", "russian": "ru", "spanish": "es", "thai": "th",
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

# Scripts with spaces that point to one language more than to others.
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


def languages() -> list[str]:
    """The codes of all supported languages, sorted."""
    return sorted(listed_languages() | ICU_LANGUAGES)


def language_code(language: str) -> str:
    """The code of a language, from a code with a region ("zh-TW", "en_US") or a few English names.

    Raises:
        SettingError: the language is not known.
    """
    name = str(language).strip().lower()
    code = re.split("[-_]", name)[0]
    code = _ALIASES.get(name, _ALIASES.get(code, code))
    if code not in languages():
        raise SettingError(f'language={language!r} is not known; {nearest(name, languages())}; or "auto"')
    return code


def detect_language(sample: Iterable[str]) -> str:
    """The language that the scripts in `sample` point to; en for the Latin one.

    A script is only a hint where several languages share it: French, Ukrainian or Persian, say, must be named.
    """
    text = " ".join(str(entry)[:2000] for entry in sample)
    found = {code: len(re.findall(f"[{ranges}]", text)) for code, ranges in _SCRIPTS.items()}
    kana, han = found.pop("kana"), found.pop("han")
    # Japanese mixes kana with Chinese characters; a little kana in Chinese text is a name or a quotation.
    found["ja" if kana > 0.1 * (kana + han) else "zh"] = kana + han
    letters = sum(map(str.isalpha, text))
    best = max(found, key=lambda code: found[code])
    # One character carries about as much as three letters, and mixed text is better cut as the unspaced language.
    if found[best] > 0.15 * letters:
        return best
    spaced = {code: len(re.findall(f"[{ranges}]", text)) for code, ranges in _SPACED_SCRIPTS.items()}
    best = max(spaced, key=lambda code: spaced[code])
    return best if spaced[best] > 0.5 * letters else "en"
