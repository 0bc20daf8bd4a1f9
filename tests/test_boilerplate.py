"""Boilerplate, planted into texts at the edges, beside repetitions that are none."""

import logging
import random

import pytest

import topicloom as tl
from topicloom.errors import InputError
from topicloom.text import make_tokenizer
from topicloom.text.boilerplate import Remover, find_boilerplate

OPEN = {"language": "en", "min_df": 1, "max_df": 1.0}
FOOTER = (
    "Copyright 2024 by the Daily Example.\nAll rights reserved; sign up for our evening newsletter at https://a.example"
)
HEADER = "Our editors recommend these articles to every reader of the morning edition"
SIGNATURE = "-- \nJane Roe, Department of Applied Weaving, University of Nowhere, phone 555 0199"
QUOTATION = "two roads diverged in a yellow wood and sorry I could not travel both"
DEFINITION = "is a village in the administrative district of the eastern county"
中文 = "版权声明：本网所有文章未经授权不得转载，责任编辑：王小明，欢迎关注我们的公众号"


def articles(n=400, n_words=30, seed=0):
    """Texts of random words, of which some have the same sentences inside, or repeat a document."""
    rng = random.Random(seed)
    words = ["".join(rng.choices("bcdfgklmnprst", k=3)) + rng.choice("aeiou") + "x" for _ in range(400)]
    texts = []
    for row in range(n):
        own = rng.choices(words, k=n_words)
        if row % 20 == 3:
            own[15:15] = QUOTATION.split()
        if row % 20 == 5:
            own[8:8] = DEFINITION.split()
        texts.append(f"{' '.join(own).capitalize()}.")
    whole = " ".join(rng.choices(words, k=n_words))
    texts[7::25] = [f"{rng.choice(words)} {whole}"] * len(texts[7::25])  # one document again and again
    return texts


def with_boilerplate(texts):
    """The texts with a header, a footer and a signature, each in some of them."""
    rng = random.Random(1)
    found = []
    for row, text in enumerate(texts):
        if row % 5 == 0:
            text = f"{text}\n\n{FOOTER.replace('2024', str(rng.randrange(2000, 2025)))}/{row}"
        if row % 7 == 0:
            text = f"{HEADER.upper()} - {text}"
        if row % 30 == 1:
            text = f"{text}\n{SIGNATURE}"
        found.append(text)
    return found


def runs(text, n=8):
    words = text.lower().split()
    return [tuple(words[place : place + n]) for place in range(len(words) - n + 1)]


def same(one, other):
    return one.vocabulary == other.vocabulary and (one.counts != other.counts).nnz == 0


def test_planted_boilerplate_is_left_out_and_nothing_else(tmp_path):
    plain = articles()
    texts = with_boilerplate(plain)
    wanted = tl.Corpus.from_texts(plain, **OPEN)
    found = tl.Corpus.from_texts(texts, **OPEN, drop_boilerplate=True)
    assert same(found, wanted)
    assert {"diverged", "village"} <= set(found.vocabulary)
    assert list(found.texts) == texts
    assert not same(tl.Corpus.from_texts(texts, **OPEN), wanted)
    assert not tl.Corpus.from_texts(plain, **OPEN, drop_boilerplate=True).tokenizer.boilerplate
    found.save(tmp_path / "corpus")
    tokenizer = tl.Corpus.load(tmp_path / "corpus").tokenizer
    assert tokenizer(f"Rates rise. {FOOTER}") == ["rates", "rise"]
    assert tokenizer(f"Rates rise. {QUOTATION}.")[2:4] == ["roads", "diverged"]


def test_boilerplate_is_reported_unless_there_is_none(caplog):
    caplog.set_level(logging.INFO, "topicloom")
    tl.Corpus.from_texts(articles(), **OPEN)
    assert "boilerplate" not in caplog.text
    tl.Corpus.from_texts(with_boilerplate(articles()), **OPEN)
    assert "3 texts are repeated word for word at the edges of many documents, such as " in caplog.text
    assert "20.0% of 400; `drop_boilerplate=True` leaves out such text" in caplog.text
    caplog.clear()
    tl.Corpus.from_texts(articles(), **OPEN, drop_boilerplate=True)
    assert "no boilerplate was found" in caplog.text


def test_chinese_boilerplate_is_left_out():
    rng = random.Random(0)
    words = [
        "经济",
        "银行",
        "市场",
        "球队",
        "比赛",
        "电影",
        "演员",
        "导演",
        "股票",
        "教练",
        "利率",
        "票房",
        "投资",
        "观众",
        "冠军",
    ]
    plain = ["".join(rng.choices(words, k=20)) + "。" for _ in range(100)]
    texts = [f"{text}{中文}" if row % 4 == 0 else text for row, text in enumerate(plain)]
    how = {"language": "zh", "min_df": 1, "max_df": 1.0}
    assert same(
        tl.Corpus.from_texts(texts, **how, drop_boilerplate=True, ngrams="1-2"),
        tl.Corpus.from_texts(plain, **how, ngrams="1-2"),
    )


def test_removed_words_are_those_of_known_runs():
    rng = random.Random(0)
    for _ in range(200):
        words = rng.choices(["ape", "bee", "cat", "dog", "elk", "fox", "gnu", "7", "hen", "ibis"], k=40)
        known = [" ".join(words[start : start + 8 + start % 5]) for start in rng.sample(range(30), 3)]
        grams = {gram for run in known for gram in runs(run.replace("7", "0"))}
        text = words[rng.randrange(5) :] + rng.choices(words, k=5) + words[5:20]
        is_kept = [True] * len(text)
        for place, gram in enumerate(runs(" ".join(text).replace("7", "0"))):
            if gram in grams:
                is_kept[place : place + 8] = [False] * 8
        removed = Remover(run.replace("7", "0") for run in known)(" ".join(text).upper())
        assert removed.replace("。", "").lower().split() == [w for w, kept in zip(text, is_kept, strict=True) if kept]


def test_a_run_of_numbers_is_no_boilerplate():
    text = "1 2 3 4 5 6 7 8 cats"
    assert Remover(["0 0 0 0 0 0 0 0 cats"])(text) == "1  。 "
    assert Remover(["0 0 0 0 0 0 0 0"])(text) == text


def test_copies_are_compared_without_boilerplate():
    texts = with_boilerplate(articles(n_words=10))
    texts += [texts[0].partition("\n")[0].partition(" - ")[2]]
    corpus = tl.Corpus.from_texts(texts, **OPEN, drop_boilerplate=True, drop_duplicates=True)
    assert corpus.covariates["copies"][0] == 2


def test_few_documents_have_no_boilerplate():
    assert find_boilerplate([f"word{n} {HEADER}" for n in range(9)]) == []
    assert find_boilerplate([""] * 20) == find_boilerplate(["one two"]) == find_boilerplate([]) == []
    assert find_boilerplate([f"own words {n} here we go {'12 34 ' * 20}" for n in range(50)]) == []


def test_own_tokens_keep_their_boilerplate():
    with pytest.raises(InputError, match="`drop_boilerplate` belongs to the built-in tokenizers"):
        tl.Corpus.from_texts([["a", "b"]], min_df=1, drop_boilerplate=True)
    assert make_tokenizer("en").boilerplate == ()
