"""Tokenizers by language. A tokenizer consists of settings that are saved with each model.

Text that is written with spaces is split by one regular expression. Chinese is segmented by rjieba, or by jieba where a
user dictionary is given; the other unspaced scripts are segmented by ICU's word breaker. English words inside such text
go through the same regular expression, so that they stay whole.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache, cached_property, lru_cache
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ..errors import InputError, SettingError
from .addresses import without_addresses
from .characters import brief, describe, normalise, replace_surrogates
from .custom import CustomTokenizer, Pretokenized
from .languages import ICU_LANGUAGES, UNSPACED, detect_language, language_code
from .markup import strip_html as without_html
from .pieces import BOUNDARY, Cache, in_blocks, inner_characters, join_runs, joined, spaced_pieces
from .segmenters import Segmenter, check_dictionary, segmenter
from .stopwords import read_words, stop_words

_ELIDING_LANGUAGES = frozenset({"ca", "fr", "it", "lij"})  # l'homme is two words, don't is one
_TABLES = {False: inner_characters("'-"), True: inner_characters("-")}  # by whether the apostrophe separates words


class Tokenizer(BaseModel):
    """The tokenizer of one language, which turns a text into a list of tokens.

    Text is NFKC-normalised and casefolded. HTML, addresses (URLs and e-mail), punctuation and emoji leave no tokens. A
    token is a run of letters and digits, which may be joined by hyphens and apostrophes; a trailing 's is removed.

    Args:
        language: a code from languages().
        stop_words: words to remove, normalised and casefolded.
        min_length: the minimum number of characters of a token.
        keep_numbers: keep tokens without any letter, such as 2024.
        user_dictionary: lines of a jieba dictionary ("word", "word frequency" or "word frequency tag"), for Chinese.
        strip_html: remove HTML tags and decode entities first. Text without HTML is not affected.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["language"] = "language"
    language: str
    stop_words: tuple[str, ...] = ()
    min_length: int = Field(default=2, ge=1)
    keep_numbers: bool = False
    user_dictionary: tuple[str, ...] = ()
    strip_html: bool = True

    def __call__(self, document: str) -> list[str]:
        """Split one text into tokens.

        Raises:
            InputError: `document` is not a string.
        """
        return list(chain.from_iterable(map(self._tokens.__getitem__, self.pieces([document]))))

    def pieces(self, documents: Sequence[str]) -> list[bytes] | list[str]:
        """Split texts into pieces; the tokens of a text are those of its pieces, which `tokens_of` returns.

        Returns:
            The pieces of all texts, with a boundary after each text.

        Raises:
            InputError: a document is not a string.
        """
        for document in documents:
            if not isinstance(document, str):
                raise InputError(f"expected a text, got {describe(document)}: {brief(document)}")
        if self.strip_html:
            documents = [without_html(text) if "<" in text or "&" in text else text for text in documents]
        texts = [text if text.isascii() else normalise(text) for text in documents]
        if self._segment is None:
            return spaced_pieces(without_addresses(joined(texts)), _TABLES[self.elides])
        found: list[str] = []
        if self.language == "zh":  # jieba's words do not cross a boundary; ICU's may
            for text in in_blocks(texts):
                found += join_runs(list(self._segment(replace_surrogates(without_addresses(text)))), self._joins)
            return found
        for text in texts:
            pieces = join_runs(list(self._segment(replace_surrogates(without_addresses(text)))), self._joins)
            found += pieces if BOUNDARY not in text else (piece for piece in pieces if piece != BOUNDARY)
            found.append(BOUNDARY)
        return found

    def tokens_of(self, piece: bytes | str) -> tuple[str, ...]:
        """Return the tokens of a piece."""
        text = piece.decode("utf-8", "surrogatepass") if isinstance(piece, bytes) else piece
        if text.isalpha():  # the most frequent case, and one word in every script
            word = text.casefold()
            return (word,) if len(word) >= self.min_length and word not in self._dropped else ()
        if isinstance(piece, str) and UNSPACED.search(text):
            word = text.strip().casefold()
            return (word,) if self._keeps(word) else ()
        return tuple(filter(self._keeps, self._words(text.casefold())))

    def __reduce__(self) -> tuple[Any, ...]:
        # Workers receive the settings alone, because segmenters cannot be pickled. They keep what they have cached.
        return _restored, (self.model_dump_json(),)

    @property
    def elides(self) -> bool:
        """Whether an apostrophe separates words, as in French, and does not join them."""
        return self.language in _ELIDING_LANGUAGES

    @property
    def is_segmented(self) -> bool:
        """Whether the language is written without spaces, so that a segmenter finds its words."""
        return self.language == "zh" or self.language in ICU_LANGUAGES

    def _keeps(self, word: str) -> bool:
        if len(word) < self.min_length or word in self._dropped:
            return False
        return word.isalpha() or self.keep_numbers or any(map(str.isalpha, word))

    def _words(self, text: str) -> list[str]:
        words: list[str] = _spaced_words(self.elides).findall(text.replace("_", " "))
        if "'s" in text:
            words = [word.removesuffix("'s") for word in words]
        return words

    @cached_property
    def _dropped(self) -> frozenset[str]:
        return frozenset(self.stop_words)

    @cached_property
    def _tokens(self) -> Cache[Any, tuple[str, ...]]:
        return Cache(self.tokens_of)

    @cached_property
    def _joins(self) -> Cache[str, bool]:
        # The pieces of spaced scripts are joined again, and split like any spaced text.
        may_join = re.compile(rf"[\w{_marks()}'-]").search
        return Cache(lambda piece: not UNSPACED.search(piece) and may_join(piece) is not None)

    @cached_property
    def _segment(self) -> Segmenter | None:
        return segmenter(self.language, self.user_dictionary)


@lru_cache(maxsize=4)
def _restored(settings: str) -> Tokenizer:
    return Tokenizer.model_validate_json(settings)


_A_FILE = "an existing file with one word on each line"
AnyTokenizer = Tokenizer | CustomTokenizer | Pretokenized
_ADAPTER: TypeAdapter[AnyTokenizer] = TypeAdapter(Annotated[AnyTokenizer, Field(discriminator="kind")])


def make_tokenizer(
    language: str = "auto",
    stop_words: str | Path | Iterable[str] | None = "auto",
    user_dictionary: str | Path | None = None,
    *,
    replace_stop_words: bool = False,
    min_length: int = 2,
    keep_numbers: bool = False,
    strip_html: bool = True,
    sample: Iterable[str] = (),
) -> Tokenizer:
    """Make the tokenizer of a language.

    Args:
        language: a code such as "en", "zh-TW" or "chinese"; "auto" detects the language of `sample`.
        stop_words: words to remove besides the language's stop words, or a file with one word on each line. "auto"
            removes the language's stop words only, and None or "none" removes no words. For Chinese, the English stop
            words are removed too, because Chinese lines often contain English.
        user_dictionary: a file of words that jieba keeps whole, for Chinese.
        replace_stop_words: remove `stop_words` only, and not the language's stop words.
        min_length: the minimum number of characters of a token.
        keep_numbers: keep tokens without any letter.
        strip_html: remove HTML tags and decode entities.
        sample: a few texts, for language="auto".

    Raises:
        InputError: a file cannot be read, or there is a user dictionary for another language than Chinese.
        SettingError: the language is not known, or stop words are to be replaced and none are given.
        MissingExtraError: the language's segmenter is not installed.
    """
    code = detect_language(sample) if language == "auto" else language_code(language)
    lines: tuple[str, ...] = ()
    if user_dictionary is not None:
        if code != "zh":
            raise InputError(f"`user_dictionary` is for Chinese, and the language is {code!r}; leave it out")
        lines = tuple(normalise(line) for line in _read_list(user_dictionary, "`user_dictionary`", _A_FILE))
        check_dictionary(lines)
    tokenizer = Tokenizer(
        language=code,
        stop_words=resolve_stop_words(stop_words, code, replace_stop_words),
        min_length=min_length,
        keep_numbers=keep_numbers,
        user_dictionary=lines,
        strip_html=strip_html,
    )
    tokenizer("")  # raises the error of a missing segmenter or a faulty dictionary here, not in a worker
    return tokenizer


def tokenizer_from_settings(settings: dict[str, Any]) -> AnyTokenizer:
    """Return the tokenizer that has `settings` as its `model_dump(mode="json")`.

    Raises:
        InputError: the settings are not those of a tokenizer.
    """
    if isinstance(settings, dict) and settings.get("kind") == "language":
        settings = {"strip_html": False, **settings}  # tokenizers saved before this setting left HTML in the text
    try:
        return _ADAPTER.validate_python(settings)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "kind"
        raise InputError(f"the tokenizer's settings cannot be read: {where}: {first['msg']}") from None


def resolve_stop_words(
    given: str | Path | Iterable[str] | None, language: str | None, replace: bool = False
) -> tuple[str, ...]:
    """Return the stop words that the arguments of `make_tokenizer` ask for, sorted.

    Args:
        given: as for `make_tokenizer`.
        language: a language code, or None for the user's own tokens, which have no list of stop words.
        replace: use the given words only, and not the language's stop words.

    Raises:
        InputError: a file cannot be read.
        SettingError: `replace` is set, and no words are given.
    """
    if given is None or (isinstance(given, str) and given == "none"):
        return ()
    own: Iterable[str] = ()
    if isinstance(given, str) and given == "auto":
        if replace:
            raise SettingError("`replace_stop_words=True` needs the words to use instead; give them by `stop_words`")
    elif isinstance(given, (str, Path)):
        own = _read_list(given, "`stop_words`", f"{_A_FILE} (or, in Python, a list of words)")
    else:
        own = _checked_words(given)
    if language is None:  # the user's own tokens are compared as they are spelled
        return tuple(sorted(set(own)))
    listed: frozenset[str] = frozenset() if replace else stop_words(language)
    if language == "zh" and not replace:
        listed |= stop_words("en")
    return tuple(sorted({normalise(word).casefold() for word in {*own, *listed}}))


def _checked_words(given: Iterable[str]) -> list[str]:
    words = list(given) if isinstance(given, Iterable) else [given]
    for word in words:
        if not isinstance(word, str):
            raise InputError(f"`stop_words` contains {brief(word)}, which is not a word; give a list of strings")
    return [replace_surrogates(word) for word in words]


@cache
def _spaced_words(eliding: bool) -> re.Pattern[str]:
    # \w lacks combining marks, which are parts of letters in Indic and other scripts.
    run = rf"\w[\w{_marks()}]*"
    joiner = "-" if eliding else "['-]"
    return re.compile(rf"{run}(?:{joiner}{run})*")


@cache
def _marks() -> str:
    """Combining marks and joiners as a character class, without the marks that only style an emoji."""
    marks = [c for c in range(0x300, 0xFE00) if unicodedata.category(chr(c))[0] == "M" and not 0x20D0 <= c <= 0x20FF]
    ranges: list[list[int]] = []
    for mark in [*marks, 0x200C, 0x200D]:
        if ranges and ranges[-1][1] == mark - 1:
            ranges[-1][1] = mark
        else:
            ranges.append([mark, mark])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


def _read_list(path: str | Path, argument: str, expected: str) -> list[str]:
    try:
        return read_words(Path(path))
    except OSError as error:
        raise InputError(f"{argument}: {path} cannot be read: {error.strerror}; give {expected}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{argument}: {path} is not UTF-8 (byte {error.start}); save it as UTF-8") from None
    except ValueError:  # the name contains NUL
        raise InputError(f"{argument}: {str(path)!r:.60} cannot be the name of a file; check it") from None
