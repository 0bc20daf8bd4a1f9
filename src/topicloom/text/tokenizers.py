"""Tokenizers: settings that can be called, and that are saved whole beside a model.

Spaced scripts are cut by one regular expression. Chinese is cut by rjieba (jieba when a user dictionary is given), the
other unspaced scripts by ICU's word breaker; English words inside such text go through the same regular expression, so
they stay whole.
"""

from __future__ import annotations

import io
import logging
import re
import unicodedata
import warnings
from collections.abc import Callable, Iterable
from functools import cache, cached_property, lru_cache
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, TypeAdapter, ValidationError

from ..errors import InputError, MissingExtraError
from .languages import (
    ICU_LANGUAGES,
    UNSPACED,
    detect_language,
    language_code,
)
from .stopwords import read_words, stop_words

Segmenter = Callable[[str], Iterable[str]]

_ELIDING_LANGUAGES = frozenset({"ca", "fr", "it", "lij"})  # l'homme is two words, don't is one
_URL = re.compile(r"(?:(?:https?|ftp)://|\bwww\.)[!-~]+", re.IGNORECASE)
# The look-behind and the possessive + keep this linear on long runs of letters.
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]++@[\w-]+(?:\.[\w-]+)+", re.ASCII)


class Tokenizer(BaseModel):
    """A language's tokenizer: text in, list of tokens out.

    Text is NFKC-normalised and casefolded; addresses (URLs, e-mail), punctuation and emoji leave no token. A token is a
    run of letters and digits, joined inside by hyphens and apostrophes; a trailing 's is dropped.

    Args:
        language: a code out of languages().
        stop_words: words to drop, normalised and casefolded.
        min_length: the fewest characters a token has.
        keep_numbers: keeps tokens without any letter, such as 2024.
        user_dictionary: lines of a jieba dictionary ("word", "word frequency" or "word frequency tag"); Chinese only.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["language"] = "language"
    language: str
    stop_words: tuple[str, ...] = ()
    min_length: int = Field(default=2, ge=1)
    keep_numbers: bool = False
    user_dictionary: tuple[str, ...] = ()

    def __call__(self, document: str) -> list[str]:
        """The tokens of one text.

        Raises:
            InputError: `document` is not a string.
        """
        if not isinstance(document, str):
            raise InputError(f"a text is needed, and this is {_article(document)}: {document!r:.60}")
        text = _EMAIL.sub(" ", _URL.sub(" ", normalise(document)))
        words = self._words(text.casefold()) if self._segment is None else self._cut(text)
        dropped, shortest, numbers = self._dropped, self.min_length, self.keep_numbers
        return [
            word
            for word in words
            if len(word) >= shortest and word not in dropped and (numbers or word.isalpha() or _has_letter(word))
        ]

    def __reduce__(self) -> tuple[Any, ...]:
        # A worker is sent the settings alone; segmenters cannot be pickled.
        return Tokenizer.model_validate, (self.model_dump(),)

    def _words(self, text: str) -> Iterable[str]:
        words: list[str] = _spaced_words(self.language in _ELIDING_LANGUAGES).findall(text.replace("_", " "))
        if "'s" in text:
            words = [word.removesuffix("'s") for word in words]
        return words

    def _cut(self, text: str) -> Iterable[str]:
        assert self._segment is not None
        text = text.encode("utf-8", "replace").decode()  # lone surrogates stop the segmenters
        for unspaced, pieces in groupby(self._segment(text), key=_is_unspaced):
            if unspaced:
                yield from (piece.strip().casefold() for piece in pieces)
            else:  # whatever the segmenter cut within spaced scripts is joined, and cut as such
                yield from self._words("".join(pieces).casefold())

    @cached_property
    def _dropped(self) -> frozenset[str]:
        return frozenset(self.stop_words)

    @cached_property
    def _segment(self) -> Segmenter | None:
        return _segmenter(self.language, self.user_dictionary)


class CustomTokenizer(BaseModel):
    """A user's own function from text to tokens. Only its name can be saved; after loading it must be given again.

    Args:
        name: the function's qualified name.
        stop_words: tokens to drop.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["custom"] = "custom"
    name: str
    stop_words: tuple[str, ...] = ()
    _function: Callable[[str], Iterable[str]] | None = PrivateAttr(default=None)

    @classmethod
    def of(cls, function: Callable[[str], Iterable[str]], stop_words: Iterable[str] = ()) -> CustomTokenizer:
        """Wraps a function."""
        name = getattr(function, "__qualname__", type(function).__qualname__)
        module = getattr(function, "__module__", type(function).__module__)
        tokenizer = cls(name=f"{module}.{name}", stop_words=tuple(stop_words))
        tokenizer._function = function
        return tokenizer

    def __call__(self, document: str) -> list[str]:
        """The tokens of one text.

        Raises:
            InputError: the function was not given again after loading.
        """
        if self._function is None:
            raise InputError(
                f"this model was trained with your own tokenizer {self.name!r}; pass it again: "
                f"tl.load(dir, tokenizer={self.name.rpartition('.')[2]})"
            )
        return _checked(self._function(document), self._dropped)

    @cached_property
    def _dropped(self) -> frozenset[str]:
        return frozenset(self.stop_words)


class Pretokenized(BaseModel):
    """Documents that are lists of tokens already.

    Args:
        stop_words: tokens to drop.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["pretokenized"] = "pretokenized"
    stop_words: tuple[str, ...] = ()

    def __call__(self, document: Iterable[str]) -> list[str]:
        """The document's tokens.

        Raises:
            InputError: `document` is one string, or holds something that is not a string.
        """
        if isinstance(document, str):
            raise InputError(
                "raw text was given, and the corpus was made of tokens or counts, so how to cut text is unknown; "
                "give each document as a list of tokens"
            )
        return _checked(document, self._dropped)

    @cached_property
    def _dropped(self) -> frozenset[str]:
        return frozenset(self.stop_words)


AnyTokenizer = Tokenizer | CustomTokenizer | Pretokenized
_ADAPTER: TypeAdapter[AnyTokenizer] = TypeAdapter(Annotated[AnyTokenizer, Field(discriminator="kind")])


def make_tokenizer(
    language: str = "auto",
    stop_words: str | Path | Iterable[str] | None = "auto",
    user_dictionary: str | Path | None = None,
    *,
    min_length: int = 2,
    keep_numbers: bool = False,
    sample: Iterable[str] = (),
) -> Tokenizer:
    """A language's tokenizer.

    Args:
        language: a code such as "en", "zh-TW" or "chinese"; "auto" is found from `sample`.
        stop_words: "auto" for the language's own list (Chinese: with the English one, as lines are often mixed); None
            or "none" for none; the words themselves; or a file of one word a line.
        user_dictionary: a file of words that jieba is to keep whole; Chinese only.
        min_length: the fewest characters a token has.
        keep_numbers: keeps tokens without any letter.
        sample: a few texts, for language="auto".

    Raises:
        InputError: an unknown language, or a file that cannot be read.
        MissingExtraError: the language's segmenter is not installed.
    """
    code = detect_language(sample) if language == "auto" else language_code(language)
    lines: tuple[str, ...] = ()
    if user_dictionary is not None:
        if code != "zh":
            raise InputError(f"user_dictionary is for Chinese, and the language is {code!r}; leave it out")
        lines = tuple(normalise(line) for line in _read_list(user_dictionary, "user_dictionary"))
    tokenizer = Tokenizer(
        language=code,
        stop_words=resolve_stop_words(stop_words, code),
        min_length=min_length,
        keep_numbers=keep_numbers,
        user_dictionary=lines,
    )
    tokenizer("")  # a missing segmenter or a faulty dictionary is told here, not in a worker
    return tokenizer


def tokenizer_from_settings(settings: dict[str, Any]) -> AnyTokenizer:
    """The tokenizer whose `model_dump(mode="json")` is `settings`.

    Raises:
        InputError: the settings are not a tokenizer's.
    """
    try:
        return _ADAPTER.validate_python(settings)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "kind"
        raise InputError(f"the tokenizer's settings cannot be read: {where}: {first['msg']}") from None


def resolve_stop_words(given: str | Path | Iterable[str] | None, language: str | None) -> tuple[str, ...]:
    """The words that a `stop_words` argument means, sorted; "auto" without a language means none.

    Raises:
        InputError: a file that cannot be read.
    """
    words: Iterable[str]
    if given is None or (isinstance(given, str) and given == "none"):
        return ()
    if isinstance(given, str) and given == "auto":
        words = stop_words(language) if language else ()
        if language == "zh":
            words = stop_words("zh") | stop_words("en")
    elif isinstance(given, (str, Path)):
        words = _read_list(given, "stop_words")
    else:
        words = given
    if language is None:  # the tokens are the user's own, and so is their spelling
        return tuple(sorted(set(words)))
    return tuple(sorted({normalise(word).casefold() for word in words}))


def normalise(text: str) -> str:
    """NFKC, with one apostrophe and without soft hyphens."""
    text = unicodedata.normalize("NFKC", text)
    if text.isascii():
        return text
    # NFKC takes Thai and Lao am apart, which no dictionary does.
    text = text.replace("\u0e4d\u0e32", "\u0e33").replace("\u0ecd\u0eb2", "\u0eb3")
    return text.replace("’", "'").replace("‘", "'").replace("ʼ", "'").replace("\xad", "")


@cache
def _spaced_words(eliding: bool) -> re.Pattern[str]:
    run = rf"\w[\w{_marks()}]*"  # \w lacks combining marks, which are parts of letters in Indic and other scripts
    joiner = "-" if eliding else "['-]"
    return re.compile(rf"{run}(?:{joiner}{run})*")


@cache
def _marks() -> str:
    """Combining marks and joiners as a character class, without those that only style an emoji."""
    marks = [c for c in range(0x300, 0xFE00) if unicodedata.category(chr(c))[0] == "M" and not 0x20D0 <= c <= 0x20FF]
    ranges: list[list[int]] = []
    for mark in [*marks, 0x200C, 0x200D]:
        if ranges and ranges[-1][1] == mark - 1:
            ranges[-1][1] = mark
        else:
            ranges.append([mark, mark])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


@lru_cache(maxsize=8)
def _segmenter(language: str, user_dictionary: tuple[str, ...]) -> Segmenter | None:
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


def _jieba_with(user_dictionary: tuple[str, ...]) -> Segmenter:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import jieba
    except ImportError:
        raise MissingExtraError.of("a user dictionary", "jieba", "zh") from None
    logging.getLogger("jieba").setLevel(logging.WARNING)
    own = jieba.Tokenizer()  # jieba's module-level one is everybody's
    try:
        own.load_userdict(io.StringIO("\n".join(user_dictionary)))
    except ValueError as error:
        raise InputError(f"user_dictionary: {error}; each line is a word, its frequency and its tag") from None
    cut: Segmenter = own.cut
    return cut


def _read_list(path: str | Path, what: str) -> list[str]:
    try:
        return read_words(Path(path))
    except OSError as error:
        raise InputError(f"{what}: {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{what}: {path} is not UTF-8 (byte {error.start}); save it as UTF-8") from None


def _checked(tokens: Iterable[str], dropped: frozenset[str]) -> list[str]:
    if not isinstance(tokens, Iterable):
        raise InputError(f"a list of tokens is needed, and this is {_article(tokens)}: {tokens!r:.60}")
    tokens = list(tokens)
    for token in tokens:
        if not isinstance(token, str):
            raise InputError(f"a token is {_article(token)}, not a string: {token!r:.60}")
    return [token for token in tokens if token.strip() and token not in dropped]


def _is_unspaced(piece: str) -> bool:
    return UNSPACED.search(piece) is not None


def _has_letter(word: str) -> bool:
    return any(map(str.isalpha, word))


def _article(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
