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
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, TypeAdapter, ValidationError

from ..errors import InputError, MissingExtraError, SettingError
from ..messages import brief, counted, type_with_article
from ..settings import import_named, is_allowed, require_whole
from .boilerplate import Remover, length_of_run
from .folding import folding, unseen
from .languages import ICU_LANGUAGES, UNSPACED, language_code, read_words, stop_words
from .marks import MARKED, MARKS, marked, token_of
from .phrases import Composer, composed, range_of_ngrams, runs
from .recognition import detect_language
from .strings import normalise, replace_surrogates

logger = logging.getLogger("topicloom")

# The version of the rules by which texts are cut and words are folded. It is saved with each tokenizer. Version 1 has
# one case folding for all languages, splits at "_", and cuts every word of an eliding language at its apostrophes.
RULES: Literal[2] = 2

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


# Some programs lose the ampersand of entities: "he said quot;yes quot;".
_TORN_ENTITY = re.compile(r"(?<![&\w])(quot|amp|apos|nbsp|lt|gt|[lr][sd]quo|[mn]dash|hellip);")


def torn_entities(texts: Iterable[str]) -> Counter[str]:
    """Return the names of entities that have no ampersand, with the number of texts that contain each.

    >>> torn_entities(["he said quot;yes quot;", "AT&amp;T"])
    Counter({'quot': 1})
    """
    return Counter(name for text in texts if ";" in text for name in set(_TORN_ENTITY.findall(text)))


def _character(entity: re.Match[str]) -> str:
    return html.unescape(entity[0])


def _without_blocks(text: str, opening: re.Pattern[str], closing: re.Pattern[str]) -> str:
    # A single expression would be slow: if an end is missing, it would search for the end again from each beginning.
    kept, place = [], 0
    while (begin := opening.search(text, place)) and (end := closing.search(text, begin.end())):
        kept += [text[place : begin.start()], " "]
        place = end.end()
    return "".join([*kept, text[place:]]) if kept else text


# Where the words on both sides are no n-gram: a piece that has no token takes the place of these marks.
_PAUSE = re.compile(r"[.,;:!?…؛،؟।]+(?=\s|$)|[()\[\]{}“”«»\n\r]+|\s[-–—]+\s")
_BREAK = " - "

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


def inner_characters(joiners: str, folds: bool = True) -> bytes:
    """Return a table for `spaced_pieces`: letters and digits in lower case, joiners, all beyond ASCII; else a blank.

    Args:
        joiners: ASCII characters besides letters and digits that a token may contain.
        folds: whether I is an i in capitals; otherwise, letters keep their case.
    """
    kept = f"{joiners}{BOUNDARY}".encode()
    table = bytes(c if c >= 128 or chr(c).isalnum() or c in kept else 32 for c in range(256))
    return table.lower() if folds else table


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


_JOINS, _HAS_SPACED_EDGE = 1, 2


def join_runs(pieces: list[str], joins: Mapping[str, int], segment: Segmenter | None = None) -> list[str]:
    """Join the pieces of a segmenter that a token may cross.

    Args:
        pieces: the pieces.
        joins: 1 for each piece that is joined to neighbours of which this is true, too; another number for others.
        segment: the segmenter, if its pieces may begin or end inside of a word of a spaced script.
    """
    flags = bytes(map(joins.__getitem__, pieces))
    if segment is not None and b"\2" in flags:
        pieces, flags = without_torn_words(pieces, flags, joins, segment)
    if b"\1\1" not in flags:
        return pieces
    found: list[str] = []
    place = 0
    for run in _RUNS.finditer(flags):
        found += pieces[place : run.start()]
        found.append("".join(pieces[run.start() : run.end()]))
        place = run.end()
    return found + pieces[place:]


_SPACED_START = re.compile(rf"[^\W_{UNSPACED.pattern[1:-1]}]+")
_SPACED_END = re.compile(rf"[^\W_{UNSPACED.pattern[1:-1]}]+\Z")


def without_torn_words(
    pieces: list[str], flags: bytes, joins: Mapping[str, int], segment: Segmenter
) -> tuple[list[str], bytes]:
    """Cut again where an entry of a dictionary begins or ends inside of a word of a spaced script: w底 in "wow底".

    Args:
        pieces: the pieces of the segmenter.
        flags: the number of each piece in `joins`.
        joins: 2 for each piece that begins or ends with such a letter and is not joined to others, or another number.
        segment: the segmenter.

    Returns:
        the pieces and their numbers.
    """
    done: list[str] = []
    done_flags = b""
    place = flags.find(_HAS_SPACED_EDGE)
    while place >= 0:
        if _is_torn(pieces[max(place - 1, 0) : place + 1]):
            begin, end = place - 1, place + 1
        elif _is_torn(pieces[place : place + 2]):
            begin, end = place, place + 2
        else:
            place = flags.find(_HAS_SPACED_EDGE, place + 1)
            continue
        # The word, with the pieces that it is torn into, and the unspaced text on both sides of it.
        while begin > 0 and _is_torn(pieces[begin - 1 : begin + 1]):
            begin -= 1
        while _is_torn(pieces[end - 1 : end + 1]):
            end += 1
        text = "".join(pieces[begin:end])
        word = next(found for found in _SPACED_START.finditer(text) if found.end() > len(pieces[begin]))
        first, last = begin, end
        while first > 0 and _is_unspaced_word(pieces[first - 1]):
            first -= 1
        while last < len(pieces) and _is_unspaced_word(pieces[last]):
            last += 1
        before = "".join(pieces[first:begin]) + text[: word.start()]
        after = text[word.end() :] + "".join(pieces[end:last])
        left, right = [*segment(before), word[0]], list(segment(after))
        done += pieces[:first] + left
        done_flags += flags[:first] + bytes(map(joins.__getitem__, left))
        pieces, flags = right + pieces[last:], bytes(map(joins.__getitem__, right)) + flags[last:]
        place = flags.find(_HAS_SPACED_EDGE)
    return done + pieces, done_flags + flags


def _is_torn(neighbours: list[str]) -> bool:
    return len(neighbours) == 2 and bool(_SPACED_END.search(neighbours[0]) and _SPACED_START.match(neighbours[1]))


def _is_unspaced_word(piece: str) -> bool:
    return all(map(UNSPACED.match, piece))


# Word segmentation of scripts that are written without spaces.

Segmenter = Callable[[str], Iterable[str]]

_ENTRY = re.compile("(.+?)(?: [0-9]+)?(?: [a-z]+)?")  # of a user dictionary, as in jieba
_JIEBA_HAN = range(0x9FD5, 0x4DFF, -1)  # rare characters are at the end


@lru_cache(maxsize=8)
def segmenter(language: str, user_dictionary: tuple[str, ...], rules: int = RULES) -> Segmenter | None:
    """Return the function that splits a language's text into words, or None for a language that is written with spaces.

    Args:
        language: a language code.
        user_dictionary: lines of a jieba dictionary; without any, Chinese is segmented by rjieba.
        rules: the version of the rules.

    Raises:
        InputError: a line of the dictionary cannot be used.
        MissingExtraError: the segmenter is not installed.
    """
    if user_dictionary:
        return _load(_jieba(), user_dictionary) if rules == 1 else _folding_jieba(user_dictionary)
    if language == "zh":
        try:
            import rjieba
        except ImportError:
            raise MissingExtraError.of("Chinese text", "rjieba", "zh") from None
        cut: Segmenter = rjieba.cut
        return cut if rules == 1 else lambda text: cut(text.upper())  # most of its words with letters have capitals
    if language in ICU_LANGUAGES:
        try:
            from icu4py.breakers import WordBreaker
        except ImportError:
            raise MissingExtraError.of(f"text in language {language!r}", "icu4py", "intl") from None
        return lambda text: WordBreaker(text, language)
    return None


def _jieba() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import jieba
    except ImportError:
        raise MissingExtraError.of("a user dictionary", "jieba", "zh") from None
    logging.getLogger("jieba").setLevel(logging.WARNING)
    own = jieba.Tokenizer()  # the tokenizer of jieba's module is shared by the whole process
    own.initialize()
    return own


def _load(own: Any, user_dictionary: Iterable[str]) -> Segmenter:
    try:
        own.load_userdict(io.StringIO("\n".join(user_dictionary)))
    except ValueError as error:
        raise InputError(
            f"`user_dictionary` cannot be read: {error}; each line should be a word, and its frequency and its tag may "
            "follow, after blanks"
        ) from None
    cut: Segmenter = own.cut
    return cut


# Han characters that jieba does not take for letters, so that it finds no word with them.
_UNKNOWN_HAN = re.compile("[\u3400-\u4dbf\u9fd6-\u9fff\U00020000-\U000323af]")


def _folding_jieba(user_dictionary: tuple[str, ...]) -> Segmenter:
    """Return jieba with a user dictionary that it finds in lower and upper case, and with all Han characters.

    jieba reads the text in upper case, as most of its own words have it, and with another rare character in place of
    each one that it does not know.
    """
    own = _jieba()
    stand_ins: dict[int, str] = {}
    if unknown := sorted(set(_UNKNOWN_HAN.findall("".join(user_dictionary)))):
        used = {*own.FREQ, *"".join(user_dictionary)}
        spare, *others = islice((each for each in map(chr, _JIEBA_HAN) if each not in used), len(unknown) + 1)
        stand_ins = {ord(each): other for each, other in zip(unknown, others, strict=False)}
        stand_ins |= {ord(other): spare for other in others}  # so that the rare character itself is not in an entry
    entries = ((line, _ENTRY.fullmatch(line)) for line in user_dictionary)
    cut = _load(own, (_upper(entry[1]).translate(stand_ins) + line[entry.end(1) :] for line, entry in entries if entry))

    def segment(text: str) -> Iterator[str]:
        begin = 0
        read = _upper(text)
        for piece in cut(read.translate(stand_ins) if stand_ins else read):
            yield text[begin : begin + len(piece)]
            begin += len(piece)

    return segment


def _upper(text: str) -> str:
    """Return a text with its ASCII letters in upper case."""
    return text.encode().upper().decode()


# Base forms of simplemma's English dictionary with a letter too many, which are no words.
_MISSPELT = {
    "abutt", "appeall", "cancell", "dispell", "extoll", "labell", "modell", "outputt", "preferr", "signall", "travell",
    "victuall",
}  # fmt: skip


def lemmatiser(language: str) -> Callable[[str], str]:
    """Return the function from a word to its base form.

    Raises:
        MissingExtraError: simplemma is not installed.
        InputError: it does not know the language.
    """
    try:
        from simplemma import lemmatize
    except ImportError:
        raise MissingExtraError.of("`lemmatise`", "simplemma", "lemmas") from None
    code = {"no": "nb", "bs": "hbs", "hr": "hbs", "sr": "hbs"}.get(language, language)

    def lemma(word: str) -> str:
        try:
            found: str = lemmatize(word, lang=code)
        except ValueError:
            raise InputError(
                f"`lemmatise` is not possible: simplemma does not know the language {language!r}; leave it out"
            ) from None
        return found[:-1] if code == "en" and found in _MISSPELT else found

    return lemma


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

_ELIDING_LANGUAGES = frozenset({"ca", "fr", "it", "lij"})
_OLD_TABLES = {False: inner_characters("'-"), True: inner_characters("-")}  # by whether the apostrophe separates words
_TABLES = {
    "": inner_characters("'-_"),
    "fi": inner_characters("'-_:"),
    "he": inner_characters("'-_\""),
    "sv": inner_characters("'-_:"),
} | dict.fromkeys(("az", "tr"), inner_characters("'-_", folds=False))

# l'homme is two words, and so is whatever follows one of these; aujourd'hui and presqu'île are one, as don't is.
_ELIDED = {
    "fr": "c|d|j|jusqu|l|lorsqu|m|n|puisqu|qu|quoiqu|s|t|y",
    "ga": "b|d|m",
    "gd": "b|d|dh|m",
    "lb": "d|z",
    "lg": "n|e?[bgklmtwyz][wy]?",
}
_SPLIT_AT_APOSTROPHES = frozenset({"ca", "it", "lij"})  # any vowel may be elided, and pronouns follow verbs
# The vowels that a stop word may have lost before an apostrophe (dell'), or before a hyphen (dintr-o).
_LOST_VOWELS = dict.fromkeys(["ca", "fr", "ga", "gd", "it", "lb", "lg", "lij"], "aeio") | {
    "el": "αειουω", "grc": "αειουω", "ro": "aeiuăâî",
}  # fmt: skip


LETTER = r"[^\W\d_]"


class Spelling:
    """How words of a language are cut out of folded text, and which elided words are stop words.

    Args:
        language: a language code.

    Attributes:
        joiners: what may stand between two parts of a word, as a regular expression.
        clitics: words that are cut off at their apostrophe, likewise.
        lost: the vowels that an elided stop word may have lost.
        leads: whether it may have lost an e at its beginning, after an apostrophe: Catalan els is 'ls.
        hyphens: whether words of elided stop words may be joined by hyphens.
    """

    def __init__(self, language: str) -> None:
        self.clitics = _ELIDED.get(language, "")
        self._clitic = re.compile(f"({self.clitics})'(?=.)") if self.clitics else None
        self.lost = _LOST_VOWELS.get(language, "")
        self.hyphens = language == "ro"
        self.leads = language == "ca"
        # UAX 29 lets the middle dot join letters, the colon only in the languages that CLDR names, and the quotation
        # mark between Hebrew letters. A full stop never joins here, and a hyphen does.
        joiners = ["[-_]" if language in _SPLIT_AT_APOSTROPHES else "['_-]"]
        letter, mark = LETTER, _marks()
        if language not in ("el", "grc"):  # where NFKC makes the middle dot of the semicolon
            joiners.append(rf"(?<={letter})·(?={letter})")
        if language in ("fi", "sv"):
            joiners.append(rf"(?<={letter}):(?={letter})")
        if language == "he":
            joiners.append('(?<=[א-ת])"(?=[א-ת])')
        run = rf"[^\W_]+(?:[{mark}]+[^\W_]*)*"
        self.joiners = "|".join(joiners)
        self._pattern = re.compile(rf"{run}(?:(?:{self.joiners}){run})*")

    def words(self, text: str, stop_words: frozenset[str]) -> Iterable[str]:
        """Return the words of a folded text, without elided stop words.

        Args:
            text: the text.
            stop_words: folded stop words; those that are not elided are not removed.
        """
        if "'" not in text and not self.hyphens:
            words: list[str] = self._pattern.findall(text)
            return words
        return self._words(text, stop_words)

    def _words(self, text: str, stop_words: frozenset[str]) -> Iterator[str]:
        for found in self._pattern.finditer(text):
            word = found[0]
            if "'" in word:
                word = word.removesuffix("'s")
                while self._clitic and (elided := self._clitic.match(word)):
                    if not self._is_elided(elided[1], stop_words):
                        yield elided[1]
                    word = word[elided.end() :]
            if self.lost and stop_words:
                begin, end = found.span()
                if text[end : end + 1] == "'" and self._is_elided(word, stop_words):
                    continue
                if self.leads and text[begin - 1 : begin] == "'" and f"e{word}" in stop_words:
                    continue
                if self.hyphens and "-" in word and all(self._is_elided(each, stop_words) for each in word.split("-")):
                    continue
            yield word

    def _is_elided(self, word: str, stop_words: frozenset[str]) -> bool:
        return word in stop_words or any(word + vowel in stop_words for vowel in self.lost)


@cache
def spelling(language: str) -> Spelling:
    """Return how words of a language are cut."""
    return Spelling(language)


class Tokenizer(BaseModel):
    """The tokenizer of one language, which turns a text into a list of tokens.

    Text is NFKC-normalised, and words are folded as their language asks: Turkish I becomes ı, Arabic words lose their
    vowel marks. HTML, addresses (URLs and e-mail), punctuation and emoji leave no tokens. A token is a run of letters
    and digits, which may be joined by hyphens, apostrophes and single underscores; a trailing 's is removed. The page
    docs/text.md has the rules of each language.

    Args:
        language: a code from languages().
        stop_words: words to remove, folded. The elided forms of these words are removed, too.
        min_length: the minimum number of characters of a token.
        keep_numbers: keep tokens without any letter, such as 2024.
        user_dictionary: lines of a jieba dictionary ("word", "word frequency" or "word frequency tag"), for Chinese.
        strip_html: remove HTML tags and decode entities first. Text without HTML is not affected.
        handles: whether @name is the word name, the token @name ("keep"), or nothing.
        hashtags: whether #tag is the word tag, the token #tag ("keep"), its parts ("split"), or nothing.
        links: whether an address is nothing, or the name of its host ("keep").
        emoji: whether an emoji is a token.
        lemmatise: whether a word becomes its base form.
        ngrams: the fewest and the most words of a token.
        phrases: words that are one token, with blanks between them.
        boilerplate: texts that are removed, as `find_boilerplate` returns their words.
        speakers: words that lose their last character, as `find_speakers` returns them.
        rules: the version of the rules. Tokenizers that were saved before there were rules for each language have 1.

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
    handles: Literal["word", "keep", "drop"] = "word"
    hashtags: Literal["word", "keep", "split", "drop"] = "word"
    links: Literal["drop", "keep"] = "drop"
    emoji: bool = False
    lemmatise: bool = False
    ngrams: tuple[int, int] = (1, 1)
    phrases: tuple[str, ...] = ()
    boilerplate: tuple[str, ...] = ()
    speakers: tuple[str, ...] = ()
    rules: Literal[1, 2] = RULES

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
        found = self._pieces(documents)
        return composed(found, self._words_of.__getitem__, self._composer, BOUNDARY) if self._composer else found

    def with_phrases(self, phrases: Iterable[str]) -> Tokenizer:
        """Return a tokenizer that takes phrases, whose words are divided by blanks, for single words."""
        return Tokenizer.model_validate(self.model_dump() | {"phrases": tuple(phrases)})

    def runs(self, documents: Sequence[str]) -> Iterator[list[str] | None]:
        """Yield the words that follow each other in texts, without `ngrams` and `phrases`, and None after each text."""
        return runs(self._pieces(documents, breaks=True), self._words_of.__getitem__, BOUNDARY)

    def with_speakers(self, speakers: Iterable[str]) -> Tokenizer:
        """Return a tokenizer that removes the verb of speech at the end of words."""
        return Tokenizer.model_validate(self.model_dump() | {"speakers": tuple(speakers)})

    def with_boilerplate(self, boilerplate: Iterable[str]) -> Tokenizer:
        """Return a tokenizer that removes texts, whose words are divided by blanks."""
        return Tokenizer.model_validate(self.model_dump() | {"boilerplate": tuple(boilerplate)})

    @property
    def length_of_run(self) -> int:
        """How many words of a text are compared at a time with those of `boilerplate`."""
        return length_of_run(self.language, self.is_segmented)

    def cleaned(self, documents: Sequence[str]) -> list[str]:
        """Return normalised texts without HTML, addresses and boilerplate.

        Raises:
            InputError: a document is not a string.
        """
        texts = self._cleaned(documents)
        return texts if self.boilerplate else [without_addresses(text) for text in texts]

    def _cleaned(self, documents: Sequence[str]) -> list[str]:
        for document in documents:
            if not isinstance(document, str):
                raise InputError(f"expected a text, got {type_with_article(document)}: {brief(document)}")
        if self.strip_html:
            documents = [without_html(text) if "<" in text or "&" in text else text for text in documents]
        prepare = normalise if self.rules == 1 else _prepared
        texts = [text if text.isascii() else prepare(text) for text in documents]
        if self._is_marked:
            texts = [marked(text, self.handles, self.hashtags, self.links, self.emoji) for text in texts]
        if self.boilerplate:
            texts = [self._without_boilerplate(without_addresses(text)) for text in texts]
        return texts

    def _pieces(self, documents: Sequence[str], breaks: bool = False) -> list[bytes] | list[str]:
        texts = self._cleaned(documents)
        if self._segment is None and (breaks or self._composer):
            texts = [_PAUSE.sub(_BREAK, text) for text in texts]
        if self._segment is None:
            return spaced_pieces(without_addresses(joined(texts)), self._table)
        if self.rules > 1:
            texts = [unseen.sub("", text) for text in texts]
        found: list[str] = []
        if self.language == "zh":  # jieba's words do not cross a boundary; ICU's may
            for text in in_blocks(texts):
                found += self._segmented(self._segment, text, torn=self.rules > 1)
            return found
        for text in texts:
            pieces = self._segmented(self._segment, text)
            found += pieces if BOUNDARY not in text else (piece for piece in pieces if piece != BOUNDARY)
            found.append(BOUNDARY)
        return found

    def _segmented(self, segment: Segmenter, text: str, torn: bool = False) -> list[str]:
        """Return the pieces of a text without spaces. If `torn`, words that the segmenter tears are mended."""
        text = without_addresses(text)
        found: list[str] = []
        for part in MARKED.split(text) if self._is_marked else [text]:
            if self._is_marked and MARKED.match(part):
                found.append(part)
            else:
                found += join_runs(list(segment(replace_surrogates(part))), self._joins, segment if torn else None)
        return found

    def tokens_of(self, piece: bytes | str) -> tuple[str, ...]:
        """Return the tokens of a piece."""
        if self._composer and isinstance(piece, str):  # the pieces are tokens already
            return (piece,) if piece != BOUNDARY else ()
        return self._words_of_piece(piece)

    def _words_of_piece(self, piece: bytes | str) -> tuple[str, ...]:
        if not self.lemmatise:
            return self._cut(piece)
        found = ((word, self._lemma(word) if word.isalpha() else word) for word in self._cut(piece))
        return tuple(lemma for word, lemma in found if lemma == word or self._keeps(lemma))

    def _cut(self, piece: bytes | str) -> tuple[str, ...]:
        text = piece.decode("utf-8", "surrogatepass") if isinstance(piece, bytes) else piece
        if self._is_marked and (token := token_of(text)) is not None:
            token = self._fold(token)
            return (token,) if token and token not in self._dropped else ()
        if text.isalpha():  # the most frequent case, and one word in every script
            word = text.casefold()
            if word != text or not self._is_plain:
                word = self._fold(text)
            if self.speakers and word in self._speakers:
                word = word[:-1]
            return (word,) if len(word) >= self.min_length and word not in self._dropped else ()
        if isinstance(piece, str) and (text.casefold() in self._entries or UNSPACED.search(text)):
            word = self._fold(text.strip())
            return (word,) if self._keeps(word) else ()
        return tuple(filter(self._keeps, self._words(self._fold(text))))

    def __reduce__(self) -> tuple[Any, ...]:
        # Workers receive the settings alone, because segmenters cannot be pickled. They keep what they have cached.
        return _restored, (self.model_dump_json(),)

    @property
    def fold(self) -> Callable[[str], str]:
        """The function that folds text that `normalise` returned, letter by letter."""
        return str.casefold if self.rules == 1 else folding(self.language).text

    def fold_word(self, word: str) -> str:
        """Fold a word that `normalise` returned."""
        return self._fold(word)

    @property
    def elides(self) -> bool:
        """Whether an apostrophe separates words, as in French, and does not join them, with few exceptions."""
        return self.language in _ELIDING_LANGUAGES or (self.rules > 1 and self.language in _ELIDED)

    @property
    def is_segmented(self) -> bool:
        """Whether the language is written without spaces, so that a segmenter finds its words."""
        return self.language == "zh" or self.language in ICU_LANGUAGES

    def _keeps(self, word: str) -> bool:
        if len(word) < self.min_length or word in self._dropped:
            return False
        if word.isalpha() or any(map(str.isalpha, word)):
            return True
        return self.keep_numbers and (self.rules == 1 or any(map(str.isalnum, word)))

    def _words(self, text: str) -> Iterable[str]:
        if self.rules > 1:
            return spelling(self.language).words(text, self._dropped)
        words: list[str] = _spaced_words(self.elides).findall(text.replace("_", " "))
        if "'s" in text:
            words = [word.removesuffix("'s") for word in words]
        return words

    @cached_property
    def _dropped(self) -> frozenset[str]:
        return frozenset(self.stop_words)

    @cached_property
    def _fold(self) -> Callable[[str], str]:
        return str.casefold if self.rules == 1 else folding(self.language).word

    @cached_property
    def _is_plain(self) -> bool:
        return self.rules == 1 or folding(self.language).is_plain

    @cached_property
    def _table(self) -> bytes:
        table = _OLD_TABLES[self.elides] if self.rules == 1 else _TABLES.get(self.language, _TABLES[""])
        if not self._is_marked:
            return table
        return bytes(each if chr(each) in MARKS else other for each, other in enumerate(table))

    @cached_property
    def _entries(self) -> frozenset[str]:
        """Entries of the user dictionary that spaced text would not have as one word, such as C++, casefolded."""
        if self.rules == 1:
            return frozenset()
        entries = [entry[1] for entry in map(_ENTRY.fullmatch, self.user_dictionary) if entry]
        folded = {word.casefold() for word in entries if not UNSPACED.search(word)}
        return frozenset(word for word in folded if list(self._words(self._fold(word))) != [self._fold(word)])

    @cached_property
    def _tokens(self) -> Cache[Any, tuple[str, ...]]:
        return Cache(self.tokens_of)

    @cached_property
    def _words_of(self) -> Cache[Any, tuple[str, ...]]:
        return Cache(self._words_of_piece)

    @cached_property
    def _is_marked(self) -> bool:
        return (self.handles, self.hashtags, self.links, self.emoji) != ("word", "word", "drop", False)

    @cached_property
    def _composer(self) -> Composer | None:
        return Composer(self.ngrams, self.phrases) if self.phrases or self.ngrams != (1, 1) else None

    @cached_property
    def _speakers(self) -> frozenset[str]:
        return frozenset(self.speakers)

    @cached_property
    def _without_boilerplate(self) -> Remover:
        return Remover(self.boilerplate, self.length_of_run)

    @cached_property
    def _lemma(self) -> Callable[[str], str]:
        lemma, fold = lemmatiser(self.language), self._fold
        return lambda word: fold(lemma(word))

    @cached_property
    def _joins(self) -> Cache[str, int]:
        # The pieces of spaced scripts are joined again, and split like any spaced text.
        may_join = re.compile(rf"[\w{_marks()}'-]").search
        if self.rules == 1:
            return Cache(lambda piece: not UNSPACED.search(piece) and may_join(piece) is not None)

        entries = self._entries

        def joins(piece: str) -> int:
            if "\u4e00" <= piece[0] <= "\u9fff" and "\u4e00" <= piece[-1] <= "\u9fff":  # nearly all
                return 0
            if UNSPACED.search(piece) or (entries and piece.casefold() in entries):
                return _HAS_SPACED_EDGE * bool(_SPACED_START.match(piece) or _SPACED_START.match(piece[-1]))
            return _JOINS * bool(may_join(piece))

        return Cache(joins)

    @cached_property
    def _segment(self) -> Segmenter | None:
        return segmenter(self.language, self.user_dictionary, self.rules)


def _prepared(text: str) -> str:
    # Of these signs, NFKC makes letters or blanks. ´ stands for an apostrophe.
    if "™" in text or "℠" in text or "´" in text:
        text = text.replace("™", " ").replace("℠", " ").replace("´", "'")
    return normalise(text)


@lru_cache(maxsize=4)
def _restored(settings: str) -> Tokenizer:
    return Tokenizer.model_validate_json(settings)


_A_FILE = "an existing file with one word on each line"
_MOST_NAMED = 3  # words of a list in a warning
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
    preset: str | None = None,
    handles: str | None = None,
    hashtags: str | None = None,
    links: str | None = None,
    emoji: bool | None = None,
    lemmatise: bool = False,
    ngrams: Any = None,
    phrases: Iterable[str] = (),
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
        preset: "social" drops handles, splits hashtags, and takes emoji for words and "rt" for a stop word, where the
            next arguments do not say otherwise.
        handles: what @name becomes: "word" (name), "keep" (@name) or "drop".
        hashtags: what #TwoWords becomes: "word" (twowords), "keep" (#twowords), "split" (two, words) or "drop".
        links: what an address becomes: "drop", or "keep" for the name of its host.
        emoji: whether each emoji is a word.
        lemmatise: whether a word becomes its base form, by simplemma.
        ngrams: the fewest and the most words of a token, such as (1, 2).
        phrases: words that are one token, with blanks between them.
        sample: a few texts, for language="auto".

    Raises:
        InputError: a file cannot be read, or there is a user dictionary for another language than Chinese.
        SettingError: the language or a way is not known, or stop words are to be replaced and none are given.
        MissingExtraError: the language's segmenter, or simplemma, is not installed.

    Examples:
        >>> from topicloom.text import make_tokenizer
        >>> make_tokenizer("en")("The neural topic models of the state-of-the-art")
        ['neural', 'topic', 'models', 'state-of-the-art']
        >>> make_tokenizer("fr", stop_words=["jour"])("L'autre jour, une belle journée")
        ['belle', 'journée']
        >>> make_tokenizer("en", preset="social")("RT @united: #FlightDelay again 😡 http://t.co/x")
        ['flight', 'delay', '😡']
    """
    ways = _social_ways(preset, handles=handles, hashtags=hashtags, links=links, emoji=emoji)
    code = detect_language(sample) if language == "auto" else language_code(language)
    lines: tuple[str, ...] = ()
    if user_dictionary is not None:
        if code != "zh":
            raise InputError(f"`user_dictionary` is for Chinese, and the language is {code!r}; leave it out")
        lines = tuple(normalise(line) for line in _read_list(user_dictionary, "`user_dictionary`", _A_FILE))
    own, removed = _stop_words(stop_words, code, replace_stop_words)
    if preset is not None:
        removed = tuple(sorted({*removed, "rt"}))
    if lemmatise:
        lemmatiser(code)("a")  # raises the error of an unknown language here
    tokenizer = Tokenizer(
        language=code,
        stop_words=removed,
        min_length=min_length,
        keep_numbers=keep_numbers,
        user_dictionary=lines,
        strip_html=strip_html,
        lemmatise=lemmatise,
        ngrams=range_of_ngrams(ngrams),
        phrases=tuple(phrases),
        **ways,
    )
    tokenizer("")  # raises the error of a missing segmenter or a faulty dictionary here, not in a worker
    _warn_of_lost_words(tokenizer, own)
    return tokenizer


_WAYS = {
    "handles": ("word", "keep", "drop"),
    "hashtags": ("word", "keep", "split", "drop"),
    "links": ("drop", "keep"),
    "emoji": (False, True),
}
_SOCIAL = {"handles": "drop", "hashtags": "split", "links": "drop", "emoji": True}


def _social_ways(preset: str | None, **given: Any) -> dict[str, Any]:
    """Return what handles, hashtags, links and emoji become."""
    if preset not in (None, "social"):
        raise SettingError(f"`preset={preset!r}` is not known; the only one is social, for posts on social media")
    usual = {name: ways[0] for name, ways in _WAYS.items()} if preset is None else _SOCIAL
    for name, way in given.items():
        if way is not None and way not in _WAYS[name]:
            raise SettingError(f"`{name}={way!r}` is not known; give {', '.join(map(str, _WAYS[name]))}")
    return {name: usual[name] if way is None else way for name, way in given.items()}


def _warn_of_lost_words(tokenizer: Tokenizer, stop_words: Iterable[str]) -> None:
    """Warn of stop words and of entries of the user dictionary that the tokenizer does not give as one word.

    Args:
        tokenizer: the tokenizer.
        stop_words: the stop words of the user.
    """
    plain = {"stop_words": (), "lemmatise": False, "ngrams": (1, 1), "phrases": (), "boilerplate": (), "speakers": ()}
    cut = tokenizer.model_dump() | plain
    known = _listed(tokenizer.language)
    lists = [
        (
            "`stop_words`: %d of %s %s never removed, because the tokenizer does not give %s as one word, "
            "such as %s; give the words that it gives",
            [word for word in stop_words if word not in known],
            Tokenizer.model_validate(cut | {"min_length": 1, "keep_numbers": True}),
        ),
        (
            "`user_dictionary`: %d of %s %s never found, because the tokenizer does not give %s as one word, "
            "such as %s. Each line is a word; its frequency and its tag may follow, after blanks",
            [entry[1] for entry in map(_ENTRY.fullmatch, tokenizer.user_dictionary) if entry],
            Tokenizer.model_validate(cut),
        ),
    ]
    for message, words, of in lists:
        found = [(word, of(word)) for word in words]
        lost = [(word, tokens) for word, tokens in found if tokens != [_folded_entry(word, of.language)]]
        if lost:
            examples = [
                f"{word!r} ({', '.join(map(repr, tokens)) or 'no word'})" for word, tokens in lost[:_MOST_NAMED]
            ]
            verb, pronoun = ("is", "it") if len(lost) == 1 else ("are", "them")
            logger.warning(message, len(lost), counted(len(words), "word"), verb, pronoun, ", ".join(examples))


def _folded_entry(word: str, language: str) -> str:
    """Return the token that a word of a list stands for: d' is elided before a vowel, and "etc." ends a sentence."""
    return folding(language).word(_prepared(word)).strip(" .'-_་")


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
        # Tokenizers saved before there were these settings left HTML in the text, and had one set of rules.
        settings = {"strip_html": False, "rules": 1, **settings}
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
    return _stop_words(given, language, replace)[1]


def _stop_words(
    given: str | Path | Iterable[str] | None, language: str | None, replace: bool
) -> tuple[list[str], tuple[str, ...]]:
    """Return the user's stop words as they are spelled, and all words to remove."""
    own: list[str] = []
    if given is None or (isinstance(given, str) and given == "none"):
        return [], ()
    if isinstance(given, str) and given == "auto":
        if replace:
            raise SettingError("`replace_stop_words=True` needs the words to use instead; give them by `stop_words`")
    elif isinstance(given, (str, Path)):
        own = _read_list(given, "`stop_words`", f"{_A_FILE} (or, in Python, a list of words)")
    else:
        own = _checked_words(given)
    if language is None:  # the user's own tokens are compared as they are spelled
        return own, tuple(sorted(set(own)))
    found = {_folded_entry(word, language) for word in own}
    if not replace:
        found |= _listed_tokens(language)
    return own, tuple(sorted(found - {""}))


def _listed(language: str) -> frozenset[str]:
    return stop_words(language) | stop_words("en") if language == "zh" else stop_words(language)


@cache
def _listed_tokens(language: str) -> frozenset[str]:
    """Return the tokens of a language's stop words. Words that are cut into several stay as they are."""
    of = Tokenizer(language=language, min_length=1, keep_numbers=True)
    found = [(word, of(word)) for word in _listed(language)]
    return frozenset(tokens[0] if len(tokens) == 1 else _folded_entry(word, language) for word, tokens in found)


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


Fold = Callable[[str], str]


def fold_of(tokenizer: object) -> Fold:
    """Return the function that folds text as a tokenizer does, letter by letter."""
    return tokenizer.fold if isinstance(tokenizer, Tokenizer) else str.casefold


def fold_word_of(tokenizer: object) -> Fold:
    """Return the function that folds a word as a tokenizer does; tokens of the user stay as they are."""
    if not isinstance(tokenizer, Tokenizer):
        return str
    return lambda word: tokenizer.fold_word(normalise(word))


def token_spans(text: str, tokens: Iterable[str], fold: Fold = str.casefold) -> list[Span | None]:
    """Return where each token begins and ends in a text; None for one that is not found.

    Args:
        text: the text.
        tokens: its tokens in their order, normalised and folded, without those that the tokenizer dropped.
        fold: folds text as the tokenizer does.
    """
    folded, places = _folded(text, fold)
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


def excerpt(text: str, words: Iterable[str], length: int, fold: Fold = str.casefold) -> str:
    """Return the part of a text that has the most of some words: at most `length` characters and two ellipses.

    Raises:
        SettingError: `length` is not a whole number from 1.
    """
    require_whole("length", length)
    text = " ".join(text.split())
    if len(text) <= length:
        return text
    folded, places = _folded(text, fold)
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


def _folded(text: str, fold: Fold) -> tuple[str, list[int]]:
    """Return the text as tokenizers compare it, and the place in the text of each of its characters and of the end."""
    if text.isascii():
        return fold(text), list(range(len(text) + 1))
    pieces: list[str] = []
    places: list[int] = []
    start = 0
    while start < len(text):
        end = start + 1
        while end < len(text) and (unicodedata.combining(text[end]) or text[end] == "\u200d"):
            end += 1
        piece = fold(normalise(text[start:end]))
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
