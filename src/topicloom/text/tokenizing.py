"""From a text to its tokens: addresses and HTML are removed, and a tokenizer splits the rest into words.

There is a tokenizer for each language, and others for a user's own function and for documents that are lists of tokens.
A tokenizer consists of settings that are saved with each model.
"""

from __future__ import annotations

import html
import io
import logging
import re
import string
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, TypeAdapter, ValidationError

from ..errors import InputError, MissingExtraError, SettingError
from ..messages import brief, type_with_article
from ..settings import import_named, is_allowed
from .languages import ICU_LANGUAGES, UNSPACED, language_code, read_words, stop_words
from .recognition import detect_language
from .strings import normalise, replace_surrogates

logger = logging.getLogger("topicloom")

# Addresses in texts, which are removed before a text is split into words.
#
# The same as replacing these two expressions by a blank, one after the other; a search for rare characters is faster:
#
#     (?:(?:https?|ftp)://|\bwww\.)[!-~]+                   in any case, which includes İ and ı
#     (?<![\w.+-])[\w.+-]++@[\w-]+(?:\.[\w-]+)+             in ASCII

# Where a URL begins with its scheme, the match begins at the colon.
_URL = re.compile(
    r"""
    [:wW] (?: (?<=:)// (?: (?<=[hH][tT][tT][pP]://) | (?<=[hH][tT][tT][pP][sS]://) | (?<=[fF][tT][pP]://) )
            | (?<=[wW])[wW][wW]\. (?<!\w[wW][wW][wW]\.) )
    [!-~İı]+
    """,
    re.VERBOSE,
)
_HOST = re.compile(r"@[\w-]+(?:\.[\w-]+)+", re.ASCII)
_BEFORE_HOST = string.ascii_letters + string.digits + "_.+-"


def without_addresses(text: str) -> str:
    """Replace each URL and each e-mail address by a blank."""
    return _without_emails(_without_urls(text))


def _without_urls(text: str) -> str:
    kept, place = [], 0
    for url in _URL.finditer(text):
        begin = url.start()
        if text[begin] == ":":
            begin -= 3 if text[begin - 3] in "fF" else 5 if text[begin - 1] in "sS" else 4
        kept.append(text[place:begin])
        place = url.end()
    return " ".join([*kept, text[place:]]) if kept else text


def _without_emails(text: str) -> str:
    if "@" not in text:
        return text
    kept, place, after = [], 0, 0  # `after` is the end of an address, or the place after an @ that is in none
    for host in _HOST.finditer(text):
        at = host.start()
        begin = after + len(text[after:at].rstrip(_BEFORE_HOST))
        if begin == at or begin == place > 0:  # there is no name, or it continues the address before
            after = at + 1
            continue
        kept.append(text[place:begin])
        place = after = host.end()
    return " ".join([*kept, text[place:]]) if kept else text


# HTML in texts: tags, comments and entities are removed before a text is split into words.

_ELEMENTS = """
    a|abbr|acronym|address|applet|area|article|aside|audio|b|base|basefont|bdi|bdo|big|blockquote|
    body|br|button|canvas|caption|center|cite|code|col|colgroup|data|datalist|dd|del|details|dfn|
    dialog|dir|div|dl|dt|em|embed|fieldset|figcaption|figure|font|footer|form|frame|frameset|h1|h2|
    h3|h4|h5|h6|head|header|hgroup|hr|html|i|iframe|img|input|ins|kbd|label|legend|li|link|main|
    map|mark|marquee|math|menu|meta|meter|nav|nobr|noframes|noscript|object|ol|optgroup|option|
    output|p|param|path|picture|pre|progress|q|rp|rt|ruby|s|samp|script|search|section|select|slot|
    small|source|span|strike|strong|style|sub|summary|sup|svg|table|tbody|td|template|textarea|tfoot|
    th|thead|time|title|tr|track|tt|u|ul|var|video|wbr
"""  # blanks are ignored in the expression below
# Only the elements of HTML and names with a prefix (o:p) are tags, so that <unk> and "a <b and c> d" stay text.
# Possessive quantifiers keep the search linear on hostile text.
_TAG = re.compile(
    rf"""
    </?(?:{_ELEMENTS}|[a-z][\w-]*+:[a-z][\w-]*+)(?=[\s/>])
    (?:(?:\s++[\w:@.-]++)++\s*+=[^<>]*+ | \s*+/?+)>   # attributes, at least one with a value, or none
    | <!doctype\b[^<>]*+> | <\?xml\b[^<>]*+> | <!\[CDATA\[
    """,
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)
# The content of these elements is not text of the page.
_BLOCKS = [
    (re.compile("<!--"), re.compile("-->")),
    *(
        (re.compile(rf"<{name}(?:\s[^<>]*+)?>", re.IGNORECASE), re.compile(rf"</{name}\s*+>", re.IGNORECASE))
        for name in ("script", "style")
    ),
]
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")


def without_html(text: str) -> str:
    """Replace the tags, comments, scripts and styles in a text by blanks, and entities by their characters.

    Text that contains no HTML is returned as it is; this includes "a < b" and "AT&T".
    """
    if "&" in text:
        text = _ENTITY.sub(_character, text)
        if "&" in text:  # &amp;nbsp; is an entity that was escaped twice
            text = _ENTITY.sub(_character, text)
    if "<" not in text:
        return text
    for opening, closing in _BLOCKS:
        text = _without_blocks(text, opening, closing)
    return _TAG.sub(" ", text)


def _character(entity: re.Match[str]) -> str:
    return html.unescape(entity[0])


def _without_blocks(text: str, opening: re.Pattern[str], closing: re.Pattern[str]) -> str:
    # A single expression would be slow: if an end is missing, it would search for the end again from each beginning.
    kept, place = [], 0
    while (begin := opening.search(text, place)) and (end := closing.search(text, begin.end())):
        kept += [text[place : begin.start()], " "]
        place = end.end()
    return "".join([*kept, text[place:]]) if kept else text


# Pieces of texts. No token crosses the border of a piece, so that each distinct piece is split into tokens only once.
#
# Pieces of spaced text are UTF-8 between ASCII characters that no token contains. They are found by methods of `bytes`,
# which are many times faster than a regular expression. Pieces of unspaced text are those of a segmenter.

Key = TypeVar("Key", bound="bytes | str")
Value = TypeVar("Value")

BOUNDARY = "\x1e"  # the piece after each document; it is blank, so no token contains it
_MOST = 1 << 18  # entries of a cache
_LONGEST = 64  # characters or bytes of a key
_BLOCK = 20_000  # characters
_RUNS = re.compile(rb"\x01{2,}")


class Cache(dict[Key, Value], Generic[Key, Value]):
    """The values of a function, which is called once for most keys. The memory is bounded.

    Args:
        function: the function from a key to its value.
    """

    def __init__(self, function: Callable[[Key], Value]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, key: Key) -> Value:
        value = self._function(key)
        if len(key) <= _LONGEST:
            if len(self) >= _MOST:
                self.clear()
            self[key] = value
        return value


def inner_characters(joiners: str) -> bytes:
    """Return a table for `spaced_pieces`: letters and digits in lower case, joiners, all beyond ASCII; else a blank."""
    kept = f"{joiners}{BOUNDARY}".encode()
    return bytes(c if c >= 128 or chr(c).isalnum() or c in kept else 32 for c in range(256)).lower()


def joined(texts: Sequence[str]) -> str:
    """Return all texts as one, with a boundary after each."""
    whole = "".join(f"{text} {BOUNDARY} " for text in texts)
    if whole.count(BOUNDARY) == len(texts):
        return whole
    return joined([text.replace(BOUNDARY, " ") for text in texts])


def in_blocks(texts: Sequence[str]) -> Iterator[str]:
    """Yield texts joined to blocks of some thousand characters, because each call of a segmenter takes time."""
    block: list[str] = []
    length = 0
    for text in texts:
        block.append(text)
        length += len(text)
        if length >= _BLOCK:
            yield joined(block)
            block, length = [], 0
    if block:
        yield joined(block)


def spaced_pieces(text: str, table: bytes) -> list[bytes]:
    """Return the pieces of text that is written with spaces.

    Args:
        text: the text.
        table: the byte that each byte becomes; pieces lie between blanks.
    """
    return text.encode("utf-8", "surrogatepass").translate(table).split()


def join_runs(pieces: list[str], joins: Mapping[str, int]) -> list[str]:
    """Join the pieces of a segmenter that a token may cross.

    Args:
        pieces: the pieces.
        joins: 1 for each piece that is joined to neighbours of which this is true, too; 0 for others.
    """
    flags = bytes(map(joins.__getitem__, pieces))
    if b"\1\1" not in flags:
        return pieces
    found: list[str] = []
    place = 0
    for run in _RUNS.finditer(flags):
        found += pieces[place : run.start()]
        found.append("".join(pieces[run.start() : run.end()]))
        place = run.end()
    return found + pieces[place:]


# Word segmentation of scripts that are written without spaces.

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


# Tokens that come from the user: from a function of the user's own, or as documents that are lists of tokens.

T = TypeVar("T")
_EXAMPLE = "module:function, such as my_tokenizer:split"


class CustomTokenizer(BaseModel):
    """A user's own function from a text to tokens.

    Only the function's name is saved with a model. After loading, the function must be passed again, or its module
    allowed.

    Args:
        name: the function's qualified name, or "module:function".
        stop_words: tokens to remove.

    Examples:
        >>> from topicloom.text import CustomTokenizer
        >>> CustomTokenizer.of(str.split, stop_words=["the"])("the neural topic model")
        ['neural', 'topic', 'model']
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["custom"] = "custom"
    name: str
    stop_words: tuple[str, ...] = ()
    _function: Callable[[str], Iterable[str]] | None = PrivateAttr(default=None)

    @classmethod
    def of(cls, function: Callable[[str], Iterable[str]], stop_words: Iterable[str] = ()) -> CustomTokenizer:
        """Wrap a function.

        Raises:
            SettingError: it is not a function.
        """
        if not callable(function):
            raise SettingError(f"`tokenizer` should be a function from a text to its tokens; it is {brief(function)}")
        name = getattr(function, "__qualname__", type(function).__qualname__)
        module = getattr(function, "__module__", type(function).__module__)
        tokenizer = cls(name=f"{module}.{name}", stop_words=tuple(stop_words))
        tokenizer._function = function
        return tokenizer

    @classmethod
    def named(cls, path: str, stop_words: Iterable[str] = ()) -> CustomTokenizer:
        """Import the function that "module:function" names, such as "my_tokenizer:split".

        Raises:
            InputError: there is no such module, or no such function in it.
        """
        function = import_named(path, _EXAMPLE)
        if not callable(function):
            module, _, name = path.partition(":")
            raise InputError(f"the module {module!r} has no function {name!r}; write {_EXAMPLE}")
        return cls.of(function, stop_words).model_copy(update={"name": path})

    @property
    def module(self) -> str | None:
        """The module that can be imported to have the function again; None if only the function's name is known."""
        return self.name.partition(":")[0] if ":" in self.name else None

    @property
    def has_function(self) -> bool:
        """Whether texts can be split; after loading, only the function's name is known."""
        return self._function is not None

    def has_same_function(self, other: CustomTokenizer) -> bool:
        """Return whether another tokenizer of this name may have the same function: neither is known to differ."""
        return self._function is None or other._function is None or self._function == other._function

    def __call__(self, document: str) -> list[str]:
        """Split one text into tokens.

        Raises:
            InputError: the function was not passed again after loading, or it does not return strings.
        """
        if self._function is None:
            function = self.name.rpartition("." if self.module is None else ":")[2]
            imported = "" if self.module is None else f"give `allow={self.module!r}`, which imports it, or "
            raise InputError(
                f"this model was trained with your own tokenizer {self.name!r}; {imported}pass it again: "
                f"tl.load(dir, tokenizer={function})"
            )
        return _checked(self._function(document), self._dropped)

    @cached_property
    def _dropped(self) -> frozenset[str]:
        return frozenset(self.stop_words)


def with_allowed(tokenizer: T, allow: Iterable[str]) -> T | CustomTokenizer:
    """Return a saved tokenizer with its function, if the function's module may be imported; else as it is.

    Args:
        tokenizer: a tokenizer of any kind.
        allow: the modules that may be imported, or one of them.
    """
    allowed = {allow} if isinstance(allow, str) else set(allow)
    if isinstance(tokenizer, CustomTokenizer) and is_allowed(tokenizer.module or "", allowed):
        return CustomTokenizer.named(tokenizer.name, tokenizer.stop_words)
    return tokenizer


class Pretokenized(BaseModel):
    """Documents that are lists of tokens already.

    Args:
        stop_words: tokens to remove.

    Examples:
        >>> from topicloom.text import Pretokenized
        >>> Pretokenized(stop_words=("the",))(["the", "cat", "sees"])
        ['cat', 'sees']
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["pretokenized"] = "pretokenized"
    stop_words: tuple[str, ...] = ()

    def __call__(self, document: Iterable[str]) -> list[str]:
        """Return the tokens of one document, without stop words and blank tokens.

        Raises:
            InputError: the document is a string, or one of its tokens is not a string.
        """
        if isinstance(document, str):
            raise InputError(
                "this document is raw text, but the corpus was made from tokens or counts and has no tokenizer; "
                "give each document as a list of tokens"
            )
        return _checked(document, self._dropped)

    @cached_property
    def _dropped(self) -> frozenset[str]:
        return frozenset(self.stop_words)


def _checked(tokens: Iterable[str], dropped: frozenset[str]) -> list[str]:
    if not isinstance(tokens, Iterable):
        raise InputError(f"expected a list of tokens, got {type_with_article(tokens)}: {brief(tokens)}")
    tokens = list(tokens)
    for token in tokens:
        if not isinstance(token, str):
            raise InputError(f"expected tokens that are strings, got {type_with_article(token)}: {brief(token)}")
    return [token for token in tokens if token.strip() and token not in dropped]


# Tokenizers by language.
#
# Text that is written with spaces is split by one regular expression. Chinese is segmented by rjieba, or by jieba where
# a user dictionary is given; the other unspaced scripts are segmented by ICU's word breaker. English words inside such
# text go through the same regular expression, so that they stay whole.

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

    Examples:
        >>> from topicloom.text import Tokenizer
        >>> tokenizer = Tokenizer(language="en", stop_words=("the",), keep_numbers=True)
        >>> tokenizer("The user's <b>guide</b> of 2024: see https://example.org")
        ['user', 'guide', 'of', '2024', 'see']
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
                raise InputError(f"expected a text, got {type_with_article(document)}: {brief(document)}")
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

    Examples:
        >>> from topicloom.text import make_tokenizer
        >>> make_tokenizer("en")("The neural topic models of the state-of-the-art")
        ['neural', 'topic', 'models', 'state-of-the-art']
        >>> make_tokenizer("fr", stop_words=["jour"])("L'autre jour, une belle journée")
        ['belle', 'journée']
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

    Examples:
        >>> from topicloom.text import make_tokenizer, tokenizer_from_settings
        >>> settings = make_tokenizer("en").model_dump(mode="json")
        >>> tokenizer_from_settings(settings)("The cat sees a dog")
        ['cat', 'sees', 'dog']
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


Span = tuple[int, int]
_FARTHEST = 5000  # characters between a token and the next; a token that is not found costs no more than this


def token_spans(text: str, tokens: Iterable[str]) -> list[Span | None]:
    """Return where each token begins and ends in a text; None for one that is not found.

    Args:
        text: the text.
        tokens: its tokens in their order, normalised and casefolded, without those that the tokenizer dropped.
    """
    folded, places = _folded(text)
    spans: list[Span | None] = []
    end = 0
    for token in tokens:
        begin = _find(folded, token, end)
        if begin < 0 or not token:
            spans.append(None)
            continue
        end = begin + len(token)
        # One character may stand for several words, such as U+FDFA; a word that begins and ends inside it has no place.
        spans.append((places[begin], places[end]) if places[begin] < places[end] else None)
    return spans


def excerpt(text: str, words: Iterable[str], length: int) -> str:
    """Return the part of a text that has the most of some words: at most `length` characters and two ellipses."""
    text = " ".join(text.split())
    if len(text) <= length:
        return text
    folded, places = _folded(text)
    hits = sorted(places[at] for word in set(words) for at in _occurrences(folded, word))
    start, most, last = 0, 0, 0
    for first, hit in enumerate(hits):
        last = max(last, first)
        while last < len(hits) and hits[last] < hit + length - 20:
            last += 1
        if last - first > most:
            start, most = max(0, hit - 20), last - first
    start = min(start, len(text) - length)
    if start > 0 and (blank := text.find(" ", start, start + 20)) > 0:
        start = blank + 1
    end = min(start + length, len(text))
    if end < len(text) and (blank := text.rfind(" ", end - 20, end)) > 0:
        end = blank
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


def _folded(text: str) -> tuple[str, list[int]]:
    """Return the text as tokenizers compare it, and the place in the text of each of its characters and of the end."""
    if text.isascii():
        return text.casefold(), list(range(len(text) + 1))
    pieces: list[str] = []
    places: list[int] = []
    start = 0
    while start < len(text):
        end = start + 1
        while end < len(text) and unicodedata.combining(text[end]):
            end += 1
        piece = normalise(text[start:end]).casefold()
        pieces.append(piece)
        places.extend([start] * len(piece))
        start = end
    return "".join(pieces), [*places, len(text)]


def _find(folded: str, token: str, start: int) -> int:
    """Return where a token begins as a word of its own, or -1."""
    farthest = start + _FARTHEST + len(token)
    while (begin := folded.find(token, start, farthest)) >= 0:
        if _is_edge(folded, begin - 1, begin) and _is_edge(folded, begin + len(token), begin + len(token) - 1):
            return begin
        start = begin + 1
    return -1


def _occurrences(folded: str, word: str) -> list[int]:
    found, begin = [], folded.find(word)
    while begin >= 0 and word:
        found.append(begin)
        begin = folded.find(word, begin + len(word))
    return found


def _is_edge(folded: str, outside: int, inside: int) -> bool:
    """Return whether a word can end between two characters next to each other."""
    if not 0 <= outside < len(folded) or not folded[outside].isalnum():
        return True
    return UNSPACED.match(folded[outside]) is not None or UNSPACED.match(folded[inside]) is not None
