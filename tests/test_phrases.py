"""Handles, hashtags, emoji, base forms, n-grams and phrases."""

import itertools

import pytest

import topicloom as tl
from topicloom.errors import InputError, SettingError
from topicloom.text import make_tokenizer, tokenizer_from_settings

OPEN = {"min_df": 1, "max_df": 1.0}
POST = "RT @United: #FlightDelay AGAIN &amp; 😡 http://www.t.co/x 👍🏽 🇺🇸 #COVID19 mail a@b.com"


def test_posts_as_the_preset_reads_them():
    assert make_tokenizer("en", preset="social")(POST) == ["flight", "delay", "😡", "👍", "🇺🇸", "covid19", "mail"]
    chinese = make_tokenizer("zh", preset="social", handles="keep")
    assert chinese("@张三: #人工智能# 今天开幕 😀 http://t.cn/abc #AI") == ["@张三", "人工智能", "开幕", "😀", "ai"]


def test_emoji_on_keys_are_words_if_they_are_digits():
    assert make_tokenizer("en", emoji=True)("1\ufe0f\u20e3 rain *\u20e3 #\ufe0f\u20e3") == ["1\u20e3", "rain"]


@pytest.mark.parametrize(
    ("option", "tokens"),
    [
        ({}, "rt united flightdelay covid19 mail"),
        ({"handles": "keep"}, "rt @united flightdelay covid19 mail"),
        ({"handles": "drop"}, "rt flightdelay covid19 mail"),
        ({"hashtags": "keep"}, "rt united #flightdelay #covid19 mail"),
        ({"hashtags": "split"}, "rt united flight delay covid19 mail"),
        ({"hashtags": "drop"}, "rt united mail"),
        ({"links": "keep"}, "rt united flightdelay t.co covid19 mail"),
        ({"emoji": True}, "rt united flightdelay 😡 👍 🇺🇸 covid19 mail"),
        ({"preset": "social", "emoji": False, "handles": "word"}, "united flight delay covid19 mail"),
    ],
)
def test_each_option_of_posts(option, tokens):
    assert " ".join(make_tokenizer("en", **option)(POST)) == tokens


def test_ngrams_do_not_cross_what_separates_words():
    tokenizer = make_tokenizer("en", ngrams=(1, 2))
    words = [["old", "customer", "service"], ["rude", "staff"]]
    wanted = [word for run in words for word in [*run, *(f"{a} {b}" for a, b in itertools.pairwise(run))]]
    assert sorted(tokenizer("old customer service. Rude staff")) == sorted(wanted)
    assert make_tokenizer("en", ngrams="1-2", emoji=True)("rude 😡 staff 😡😡") == ["rude", "😡", "staff", "😡", "😡"]
    assert make_tokenizer("en", ngrams="2")("state of the art models") == ["art models"]
    assert make_tokenizer("zh", ngrams="2")("人工 智能") == ["人工智能"]


def test_phrases_are_joined_in_old_and_new_texts():
    texts = ["the customer service is rude", "service for a customer", "rude staff", "staff was late"] * 6
    texts += ["my customer service was late"] * 4
    corpus = tl.Corpus.from_texts(texts, language="en", phrases=True, **OPEN)
    assert "customer service" in corpus.vocabulary
    assert "customer service" in corpus.tokenizer.phrases
    again = tokenizer_from_settings(corpus.tokenizer.model_dump(mode="json"))
    assert again("Customer service, new staff") == ["customer service", "new", "staff"]
    counts = dict(zip(corpus.vocabulary, corpus.counts.sum(0).tolist(), strict=True))
    assert (counts["customer service"], counts["customer"], counts["service"]) == (10, 6, 6)


def test_base_forms_of_words():
    pytest.importorskip("simplemma")
    tokenizer = make_tokenizer("en", lemmatise=True)
    assert tokenizer("The flights were delayed, and this was doing") == ["flight", "delay"]
    doubled = tokenizer("cancelled cancelling labelled modelling preferred travelling installed fulfilled controlled")
    assert doubled == ["cancel", "cancel", "label", "model", "prefer", "travel", "install", "fulfill", "control"]
    assert make_tokenizer("de", lemmatise=True)("Die Häuser") == ["haus"]
    with pytest.raises(InputError, match="simplemma does not know the language 'zh'"):
        make_tokenizer("zh", lemmatise=True)


def test_wrong_values_are_refused():
    for option in (
        {"preset": "x"},
        {"handles": "split"},
        {"ngrams": "2-1"},
        {"ngrams": (0, 1)},
        {"ngrams": "a"},
        {"ngrams": 1.5},
    ):
        with pytest.raises(SettingError, match=f"`{next(iter(option))}="):
            make_tokenizer("en", **option)
    with pytest.raises(InputError, match="`ngrams` belongs to the built-in tokenizers"):
        tl.Corpus.from_texts([["a", "b"]], ngrams=(1, 2), **OPEN)


def test_a_saved_model_reads_posts_alike(tmp_path):
    texts = ["#RudeStaff at the customer service 😡", "@united rude staff", "customer service late 😡"] * 8
    corpus = tl.Corpus.from_texts(texts, preset="social", ngrams="1-2", language="en", **OPEN)
    assert {"😡", "customer service", "rude staff"} <= set(corpus.vocabulary)
    model = tl.LDA(2, random_state=0).fit(corpus)
    model.save(tmp_path / "model")
    loaded = tl.load(tmp_path / "model")
    assert (loaded.transform(texts[:3]) == model.transform(corpus[:3])).all()
    assert (loaded.transform(["😡"]) != loaded.transform(["rude staff"])).any()
