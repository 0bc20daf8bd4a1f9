"""Word segmentation of scripts that are written without spaces."""

from __future__ import annotations

import io
import logging
import re
import warnings
from collections.abc import Callable, Iterable
from functools import lru_cache

from ..errors import InputError, MissingExtraError
from .languages import ICU_LANGUAGES

logger = logging.getLogger("topicloom")

Segmenter = Callable[[str], Iterable[str]]

# As in jieba: an entry of a user dictionary, and the characters that its words can have.
_ENTRY = re.compile("(.+?)(?: [0-9]+)?(?: [a-z]+)?")
_WORD = re.compile("[\u4e00-\u9fd5a-zA-Z0-9+#&._%-]+")


@lru_cache(maxsize=8)
def segmenter(language: str, user_dictionary: tuple[str, ...]) -> Segmenter | None:
    """Return the function that splits a language's text into words, or None for a language that is written with spaces.

    Args:
        language: a language code.
        user_dictionary: lines of a jieba dictionary; without any, Chinese is segmented by rjieba.

    Raises:
        InputError: a line of the dictionary cannot be used.
        MissingExtraError: the segmenter is not installed.
    """
    if user_dictionary:
        return _jieba_with(user_dictionary)
    if language == "zh":
        try:
            import rjieba
        except ImportError:
            raise MissingExtraError.of("Chinese text", "rjieba", "zh") from None
        cut: Segmenter = rjieba.cut
        return cut
    if language in ICU_LANGUAGES:
        try:
            from icu4py.breakers import WordBreaker
        except ImportError:
            raise MissingExtraError.of(f"text in language {language!r}", "icu4py", "intl") from None
        return lambda text: WordBreaker(text, language)
    return None


def check_dictionary(lines: Iterable[str]) -> None:
    """Warn of the entries of a user dictionary that jieba reads, but finds in no text."""
    entries = [entry[1] for entry in map(_ENTRY.fullmatch, lines) if entry]
    if lost := [word for word in entries if not _WORD.fullmatch(word)]:
        logger.warning(
            "`user_dictionary`: %d of %d words are never found, because a blank or another character in them separates "
            "words; the first one is %r. Each line is a word; its frequency and its tag may follow, after blanks",
            len(lost),
            len(entries),
            lost[0],
        )


def _jieba_with(user_dictionary: tuple[str, ...]) -> Segmenter:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import jieba
    except ImportError:
        raise MissingExtraError.of("a user dictionary", "jieba", "zh") from None
    logging.getLogger("jieba").setLevel(logging.WARNING)
    own = jieba.Tokenizer()  # the tokenizer of jieba's module is shared by the whole process
    try:
        own.load_userdict(io.StringIO("\n".join(user_dictionary)))
    except ValueError as error:
        raise InputError(
            f"`user_dictionary` cannot be read: {error}; each line should be a word, and its frequency and its tag may "
            "follow, after blanks"
        ) from None
    cut: Segmenter = own.cut
    return cut
