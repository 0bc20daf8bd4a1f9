"""Texts in pieces: what is counted fast is what a plain tokenizer finds, document by document and word by word."""

from __future__ import annotations

import pickle
import re
from collections import Counter
from importlib.util import find_spec
from itertools import groupby

import numpy as np
import pytest

from topicloom.text import Pretokenized, Tokenizer, counting, make_tokenizer, tokenizing
from topicloom.text.counting import OpenCounter, counts_of
from topicloom.text.folding import folding, unseen
from topicloom.text.languages import ICU_LANGUAGES, UNSPACED
from topicloom.text.strings import normalise, replace_surrogates
from topicloom.text.tokenizing import _marks, without_addresses, without_html, without_torn_words

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

settings.register_profile("suite", derandomize=True, database=None, deadline=None, max_examples=80)
settings.load_profile("suite")

URL = re.compile(r"(?:(?:https?|ftp)://|\bwww\.)[!-~]+", re.IGNORECASE)
EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]++@[\w-]+(?:\.[\w-]+)+", re.ASCII)
WORD = rf"\w[\w{_marks()}]*"
WORDS = {True: re.compile(rf"{WORD}(?:-{WORD})*"), False: re.compile(rf"{WORD}(?:['-]{WORD})*")}
needs_icu = pytest.mark.skipif(find_spec("icu4py") is None, reason="needs icu4py, of the extra intl")
LANGUAGES = ["en", "fr", "de", "ar", "hi", "ko", "zh", "ja", "th"]

ADDRESSES = st.lists(
    st.sampled_from(
        [*"a@.b-+ é_shfw:/ßİı\n", "http", "https", "ftp", "tp://", "://", "www.", "WWW.", "Ftp://", "xhttps://", "@a.b"]
    ),
    max_size=14,
).map("".join)
MIXED = st.lists(
    st.sampled_from(
        [
            *"aA'’-_. \n\x1e\x1c\x85\xa0é\u0308ſßİŉʼ中文测试的日本カナไทยກາລำဗမာ한글עבר0１²½𝐀ẛ—“”\ud83d\ude00@/:<&;>",
            "'s",
            "https://x.y",
            "www.a",
            "iPhone-6",
            "don't",
            "l'homme",
            "&amp;",
            "<b>",
            "covid-19",
            "北京大学",
            "T恤",
            "\r\n",
            "a@b.c",
            "中a国-b",
            "x" * 70,
        ]
    ),
    max_size=25,
).map("".join)
ANY = st.text(st.characters()) | MIXED


RUN = rf"(?!_)\w(?:(?!_)[\w{_marks()}])*"
JOINED = {each: re.compile(rf"{RUN}(?:(?:[{each}]|(?<=[^\W\d_])·(?=[^\W\d_])){RUN})*") for each in ("_'-", "_-")}
ELIDED = re.compile("(?:[cdjlmnsty]|qu|(?:jus|lors|puis|quoi)qu)'")


def new_words(of: Tokenizer, part: str) -> list[str]:
    """The words of spaced text by the rules of each language, one after another."""
    fold = folding(of.language).word
    found: list[str] = []
    # Marks and joiners belong to words, which other characters of ASCII separate.
    part = " ".join(
        map(fold, re.sub(r"[\0-\x7f]", lambda each: each[0] if re.match(r"[\w'-]", each[0]) else " ", part).split())
    )
    for match in JOINED["_'-"].finditer(part):
        word = match[0].removesuffix("'s")
        while of.language == "fr" and (elided := ELIDED.match(word)) and elided.end() < len(word):
            found += [elided[0][:-1]] * (not lost_vowel(of, elided[0][:-1]))
            word = word[elided.end() :]
        if not (of.language == "fr" and part[match.end() : match.end() + 1] == "'" and lost_vowel(of, word)):
            found.append(word)
    return found


def lost_vowel(of: Tokenizer, word: str) -> bool:
    return any(word + vowel in of.stop_words for vowel in ("", *"aeio"))


def plain_tokens(of: Tokenizer, text: str) -> list[str]:
    """The tokens of a text, as the documentation of `Tokenizer` defines them."""

    def spaced(part: str) -> list[str]:
        if of.rules > 1:
            return new_words(of, part)
        return [word.removesuffix("'s") for word in WORDS[of.elides].findall(part.casefold().replace("_", " "))]

    text = without_html(text) if of.strip_html else text
    if of.rules > 1:
        text = re.sub("[™℠]", " ", text).replace("´", "'")
    text = EMAIL.sub(" ", URL.sub(" ", normalise(text)))
    fold = str.casefold if of.rules == 1 else folding(of.language).word
    if of._segment is None:
        words = spaced(text)
    else:
        words = []
        if of.rules == 1:
            cut = of._segment(replace_surrogates(text))
        else:
            cut = list(of._segment(replace_surrogates(unseen.sub("", text))))
            cut = (
                without_torn_words(cut, bytes(map(of._joins.__getitem__, cut)), of._joins, of._segment)[0]
                if of.language == "zh"
                else cut
            )
        for unspaced, group in groupby(cut, key=lambda part: UNSPACED.search(part) is not None):
            parts = list(group)
            words += [fold(part.strip()) for part in parts] if unspaced else spaced("".join(parts))
    return [
        word
        for word in words
        if len(word) >= of.min_length
        and word not in of.stop_words
        and (any(map(str.isalpha, word)) or (of.keep_numbers and (of.rules == 1 or any(map(str.isalnum, word)))))
    ]


@given(ADDRESSES | ANY)
@settings(max_examples=600)
def test_addresses_are_those_of_plain_expressions(text):
    text = normalise(text)
    assert without_addresses(text) == EMAIL.sub(" ", URL.sub(" ", text))


@pytest.mark.parametrize(
    "language", [pytest.param(each, marks=[needs_icu] if each in ICU_LANGUAGES else []) for each in LANGUAGES]
)
@given(text=ANY, other=MIXED, open=st.booleans(), rules=st.sampled_from([1, 2]))
def test_tokens_are_those_of_plain_expressions(language, text, other, open, rules):
    rest = {"min_length": 1, "keep_numbers": True, "stop_words": None, "strip_html": False} if open else {}
    tokenizer = make_tokenizer(language, **rest)
    tokenizer = Tokenizer.model_validate(tokenizer.model_dump() | {"rules": rules})
    expected = [plain_tokens(tokenizer, each) for each in (text, other)]
    assert [tokenizer(text), tokenizer(other)] == expected
    found: list[list[str]] = [[]]
    for piece in tokenizer.pieces([text, other]):
        if piece in (tokenizing.BOUNDARY, tokenizing.BOUNDARY.encode()):
            found.append([])
        else:
            found[-1] += tokenizer.tokens_of(piece)
    assert found == [*expected, []]


@needs_icu
@given(st.lists(MIXED, min_size=1, max_size=4), st.sampled_from(LANGUAGES))
def test_counts_are_those_of_the_tokens(texts, language):
    tokenizer = make_tokenizer(language, None, min_length=1)
    expected = [Counter(plain_tokens(tokenizer, text)) for text in texts]
    known = sorted({word for row in expected for word in row})[::2]
    counts = counts_of(texts, known, tokenizer)
    assert counts.toarray().tolist() == [[row[word] for word in known] for row in expected]
    assert counts.has_canonical_format
    assert counts.data.all()
    part = OpenCounter(tokenizer)(0, texts)
    assert sorted(part.words) == sorted(set().union(*expected))
    assert [
        {word: n for word, n in zip(part.words, row, strict=True) if n} for row in part.counts.toarray().tolist()
    ] == expected


def test_little_is_remembered(monkeypatch):
    monkeypatch.setattr(counting, "_MOST", 20)
    monkeypatch.setattr("topicloom.text.tokenizing._MOST", 20)
    tokenizer = make_tokenizer("en", None)
    counter = OpenCounter(tokenizer)
    vocabulary = [f"word{n}" for n in range(100)]
    for n in range(100):
        text = f"word{n} word{(n + 1) % 100} word{n} {'y' * 100}{n}"
        assert tokenizer(text) == text.split()
        part = counter(0, [text])
        assert dict(zip(part.words, part.counts.toarray()[0], strict=True)) == Counter(text.split())
        counts = counts_of([text], vocabulary, tokenizer).toarray()[0]
        assert counts[n] == 2
        assert counts.sum() == 3
    assert max(len(counter._columns), len(tokenizer._tokens)) < 30


def test_a_vocabulary_that_changes_is_looked_up_again():
    tokenizer = make_tokenizer("en", None)
    vocabulary = ["cat", "dog"]
    assert counts_of(["cat dog dog"], vocabulary, tokenizer).toarray().tolist() == [[1, 2]]
    vocabulary[0] = "cow"
    assert counts_of(["cat dog dog"], vocabulary, tokenizer).toarray().tolist() == [[0, 2]]
    vocabulary.append("cat")
    assert counts_of(["cat dog dog"], vocabulary, tokenizer).toarray().tolist() == [[0, 2, 1]]
    assert counts_of([["dog"]], vocabulary, Pretokenized()).toarray().tolist() == [[0, 1, 0]]


def test_workers_keep_what_they_have_cached():
    tokenizer = make_tokenizer("en")
    sent = pickle.dumps(tokenizer)
    assert pickle.loads(sent) is pickle.loads(sent)
    assert pickle.loads(sent) == tokenizer


def test_more_words_than_columns_and_fewer_give_the_same():
    tokenizer, words = make_tokenizer("en", None), [f"w{n}" for n in range(50)]
    generator = np.random.default_rng(0)
    drawn = generator.integers(0, 50, (30, 20))
    texts = [" ".join(words[n] for n in row) for row in drawn]
    together = counts_of(texts, words, tokenizer)
    alone = [counts_of([text], words, tokenizer) for text in texts]
    assert np.array_equal(together.toarray(), [np.bincount(row, minlength=50) for row in drawn])
    assert np.array_equal(together.toarray(), np.concatenate([each.toarray() for each in alone]))
    assert together.has_sorted_indices
    assert all((np.diff(row.indices) > 0).all() for row in alone)
