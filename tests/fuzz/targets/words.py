"""Tokenizers, segmenters, and what else reads single texts."""

from __future__ import annotations

import datetime as dt
import unicodedata
from collections import Counter
from functools import cache
from itertools import chain
from typing import Any

import numpy as np

from hostile import PLAIN_WORDS, SEPARATORS, SURROGATES
from topicloom.corpus.fields import parse_times
from topicloom.errors import InputError
from topicloom.text import CustomTokenizer, Pretokenized, Tokenizer, make_tokenizer
from topicloom.text.counting import chunked, count_chunks, counts_of
from topicloom.text.folding import folding
from topicloom.text.languages import language_code, languages
from topicloom.text.recognition import detect_language, other_language
from topicloom.text.strings import is_utf8, normalise, replace_surrogates
from topicloom.text.tokenizing import excerpt, segmenter, token_spans, without_html
from word_breaks import DECLARATION, compared

from ..campaign import Target
from ..case import Case, same

PIECES = [*SEPARATORS, *SURROGATES]
SPACED = [code for code in languages() if code not in ("zh", "ja", "km", "lo", "my", "th")]
USER_DICTIONARY = ("天气很好 10", "北京天气", "market 5 n", "a b 3")


@cache
def tokenizer(language: str, html: bool = True, **settings: Any) -> Tokenizer:
    return make_tokenizer(language, strip_html=html, **settings)


def check_tokens(tokens: list[str], text: str, of: Tokenizer) -> None:
    for token in tokens:
        assert len(token) >= of.min_length and token not in of.stop_words and not any(map(str.isspace, token)), token
    assert tokens == of(text), "another result the second time"


def spaced(case: Case) -> int:
    """Languages that are written with spaces: the tokens of joined texts are the tokens of each."""
    of = tokenizer(case.pick(SPACED), False, keep_numbers=case.chance(0.5), min_length=1 + case.below(3))
    texts = [case.text(PIECES) for _ in range(50)]
    tokens = [of(text) for text in texts]
    same(of("\n".join(texts)), chain.from_iterable(tokens), "token")
    dropped = of._dropped
    for each in tokens:
        for token in each:
            assert len(token) >= of.min_length and token not in dropped and not token.isspace(), token
    return len(texts)


def html(case: Case) -> int:
    of = tokenizer(case.pick(SPACED))
    for _ in range(20):
        text = case.text(PIECES, 20)
        check_tokens(of(text), text, of)
        if "<" not in text and "&" not in text:
            assert without_html(text) == text
        assert len(without_html(text)) <= len(text)
    return 20


def segmented(case: Case, language: str, user_dictionary: tuple[str, ...] = ()) -> int:
    """Languages without spaces: the segmenter loses no character, and the tokens are those of its pieces."""
    of = Tokenizer(
        language=language, user_dictionary=user_dictionary, min_length=1, keep_numbers=True, strip_html=False
    )
    cut = segmenter(language, user_dictionary)
    assert cut is not None
    fold = folding(language).text
    for _ in range(10):
        text = case.text(PIECES)
        whole = replace_surrogates(normalise(text))
        assert "".join(cut(whole)).casefold() == whole.casefold(), f"characters are lost of {text!r}"
        letters = Counter("".join(of(text)))
        known = Counter(fold(whole))
        assert not letters - known, f"new characters {letters - known} in tokens of {text!r}"
    return 10


def chinese(case: Case) -> int:
    return segmented(case, "zh")


def chinese_dictionary(case: Case) -> int:
    return segmented(case, "zh", USER_DICTIONARY)


def icu(case: Case) -> int:
    return segmented(case, case.pick(["ja", "km", "lo", "my", "th"]))


@cache
def words_of(language: str) -> tuple[str, ...]:
    """The words of the Declaration of Human Rights in a language, without signs at their edges."""
    text = unicodedata.normalize("NFC", DECLARATION[language])
    stripped = (
        word.strip("".join({each for each in text if unicodedata.category(each)[0] in "PS"})) for word in text.split()
    )
    return tuple(word for word in stripped if word)


# What stands between two words: nothing that belongs to a word, or a sign that may join them.
APART = [" ", "  ", ", ", "\n", "; ", " – ", " (", ") ", "! ", " «", "» ", "… ", "\t", " \u200b", "\u3000"]
JOINED = ["-", "'", "’", "_", ".", ":", "·", "/", "\u2010", ",", "&", "+", "#", "@ ", '"', "'s ", "' ", " '"]


def breaks(case: Case) -> int:
    """Words in any order, case and Unicode form, with signs between them: those that ICU finds, or a known reason."""
    language = case.pick([code for code in SPACED if code in DECLARATION and code != "ko"])  # ICU cuts at Hangul
    known = words_of(language)
    of = tokenizer(language, False, stop_words=None, min_length=1, keep_numbers=True)
    for _ in range(10):
        text, may_join = "", True
        for _ in range(2 + case.below(12)):
            word = case.pick(known) if case.chance(0.95) else str(case.below(5000))
            word = case.pick([word, word, word, word.title(), word.upper(), word.lower()])
            # A word of letters is joined on one side, so that each difference has one reason.
            is_plain = not set(word) & set("-\u2010'’_·./")
            joins = may_join and is_plain and case.chance(0.2)
            sign = case.pick(JOINED if joins else APART)
            if sign == "'s " and (of.elides or word[-1].isdigit()):  # l's is two words, and so is 5's for ICU
                sign = ", "
            text += ("" if may_join or is_plain else " ") + word + sign
            may_join = not joins
        text = normalise(unicodedata.normalize(case.pick(["NFC", "NFC", "NFD"]), text))
        for _ in compared(text, language, of(text)):
            pass
    return 10


def anything(case: Case) -> Any:
    """A value that is no text."""
    return case.pick(
        [None, 3, 2.5, float("nan"), b"bytes", True, object(), [], {}, {"a"}, ["a", 1], np.str_("a b"), range(3)]
    )


def custom(case: Case) -> int:
    """Functions and documents of users, which may give anything."""
    for _ in range(20):
        given = [case.text(PIECES, 3) if case.chance(0.9) else anything(case) for _ in range(case.below(6))]
        returned: Any = given if case.chance(0.8) else anything(case)
        for of in (Pretokenized(stop_words=("the",)), CustomTokenizer.of(lambda text, value=returned: value)):
            is_text = isinstance(of, Pretokenized) and isinstance(returned, str)
            right = hasattr(returned, "__iter__") and all(isinstance(each, str) for each in returned) and not is_text
            try:
                found = of(returned)
            except InputError as error:
                assert not right and "\n" not in str(error)
            else:
                assert right
                same(found, [each for each in returned if each.strip() and each not in of.stop_words])
    return 40


def make(case: Case) -> int:
    """Settings of all kinds. Each gives a tokenizer or a refusal."""
    words = case.some(lambda: case.text(PIECES, 3), 5)
    data = case.mutated("\n".join([*PLAIN_WORDS, *words]).encode("utf-8", "replace"))
    path = case.write("words.txt", data)
    stop_words = case.pick(
        [words, path, str(path), "none", "auto", None, case.folder / "no", case.folder, "\0", [1, None]]
    )
    language = case.pick([*languages(), "auto", "zh-TW", "EN_us", "", "\ud800", "中文", case.text(PIECES, 2)])
    dictionary = path if case.chance(0.05) and language_or_none(language) == "zh" else None
    of = make_tokenizer(
        language, stop_words, dictionary, replace_stop_words=case.chance(0.2), sample=[case.text(PIECES)]
    )
    text = case.text(PIECES)
    check_tokens(of(text), text, of)
    assert Tokenizer.model_validate(of.model_dump(mode="json")) == of
    return 1


def language_or_none(language: str) -> str | None:
    try:
        return language_code(language)
    except InputError:
        return None


def counting(case: Case) -> int:
    """Counts of texts, compared with a dictionary for each text."""
    of: Any = tokenizer(case.pick(["en", "de", "fr", "zh"]))
    texts: list[Any] = [case.text(PIECES) for _ in range(case.below(60))]
    if case.chance(0.3):
        of, texts = Pretokenized(), [[case.text(SURROGATES, 3) for _ in range(case.below(5))] for _ in texts]
    expected = [Counter(map(replace_surrogates, of(text))) for text in texts]
    breaks = any("\n" in word or "\r" in word for counts in expected for word in counts)
    try:
        parts = list(count_chunks(chunked(iter(texts)), of, 1))
    except InputError:
        assert breaks
        return 1
    assert not breaks
    row = 0
    for part in parts:
        dense = part.counts.toarray()
        assert len(set(part.words)) == len(part.words)
        for counts in dense:
            same_counts(counts, part.words, expected[row])
            row += 1
    assert row == len(texts), f"{row} rows of {len(texts)} documents"
    words = sorted({word for counts in expected for word in counts})[::2] or ["none"]
    over = counts_of(texts, words, of, 1).toarray()
    assert over.shape == (len(texts), len(words))
    for counts, all_counts in zip(over, expected, strict=True):
        same_counts(counts, words, Counter({word: all_counts[word] for word in words if word in all_counts}))
    return max(1, row)


def same_counts(counts: Any, words: list[str], expected: Counter[str]) -> None:
    found = {words[column]: int(counts[column]) for column in np.flatnonzero(counts)}
    assert found == dict(expected), f"{found} instead of {expected}"


def spans(case: Case) -> int:
    of = tokenizer(case.pick(["en", "fr", "zh", "ja"]), False)
    for _ in range(10):
        text = replace_surrogates(case.text(PIECES, 20))
        tokens = of(text)
        found, end = token_spans(text, tokens), 0
        assert len(found) == len(tokens)
        for span in filter(None, found):
            assert end <= span[1] <= len(text) and span[0] < span[1], f"{span} after {end} in {text!r}"
            end = max(end, span[1])
        length = 1 + case.below(60)
        shown = excerpt(text, tokens, length)
        assert len(shown) <= length + 2, f"{len(shown)} characters of at most {length}"
    return 10


def scripts(case: Case) -> int:
    known = set(languages())
    for _ in range(10):
        texts = [case.text(PIECES) for _ in range(case.below(5))]
        code = detect_language(texts)
        assert code in known, code
        other = other_language(case.pick(["en", "zh", "ja", "ru"]), texts)
        assert other is None or other in known
        for text in texts:
            assert is_utf8(replace_surrogates(text))
    return 10


def times(case: Case) -> int:
    """Dates: what Python writes is read, and anything else is a date or a refusal."""
    for _ in range(20):
        micro = int((case.random.random() - 0.48) * 2 * 10**17)
        moment = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=min(max(micro, -5 * 10**16), 3 * 10**16))
        kind = case.below(4)
        if kind == 0:
            zone = dt.timezone(dt.timedelta(minutes=case.below(1440) - 720))
            written: Any = (
                moment.replace(tzinfo=dt.UTC).astimezone(zone).isoformat() if 1 < moment.year < 9999 else moment
            )
            same(parse_times([written]).tolist(), [moment])
        elif kind == 1:
            written = case.pick([moment, moment.isoformat(" "), np.datetime64(moment), str(moment)])
            same(parse_times([written, None]).tolist(), [moment, None])
        else:
            digits = "".join(case.random.choices("0123456789-:/.T年月日 +eZ", k=case.below(14)))
            odd = case.pick([digits, digits, case.text(PIECES), case.random.random() * 10.0 ** case.below(309),
                10 ** case.below(25),
                             float("inf"), -1e300, b"2021", anything(case), np.float64(1e18),
                             np.datetime64(10**18, "D")])  # fmt: skip
            try:
                found = parse_times([odd])
            except InputError as error:
                assert "\n" not in str(error)
            else:
                assert found.shape == (1,) and found.dtype == "datetime64[us]"
    return 20


TARGETS = {
    "tokenizer.spaced": Target(spaced, "a text", 12),
    "tokenizer.html": Target(html, "a text", 2),
    "tokenizer.chinese": Target(chinese, "a text", 2),
    "tokenizer.dictionary": Target(chinese_dictionary, "a text", 0.7, needs=("jieba",)),
    "tokenizer.icu": Target(icu, "a text", 2, needs=("icu4py",)),
    "tokenizer.breaks": Target(breaks, "a text, compared word by word with ICU", 4, needs=("icu4py",)),
    "tokenizer.custom": Target(custom, "a list of tokens", 3),
    "tokenizer.settings": Target(make, "a list of settings", 0.7, allow_refusal=True),
    "text.counting": Target(counting, "a document, compared word by word", 3),
    "text.spans": Target(spans, "a text", 0.7, needs=("rjieba", "icu4py")),
    "text.languages": Target(scripts, "a few texts", 0.5),
    "corpus.times": Target(times, "a date", 3),
}
