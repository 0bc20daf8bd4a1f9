"""Tokenizers, stop words and languages."""

from __future__ import annotations

import json
import logging
import pickle
import sys
import time
from importlib.util import find_spec

import numpy as np
import pytest

from topicloom.corpus import Corpus
from topicloom.errors import InputError, MissingExtraError, SettingError
from topicloom.text import (
    CustomTokenizer,
    Pretokenized,
    Tokenizer,
    detect_language,
    languages,
    make_tokenizer,
    stop_words,
    tokenizer_from_settings,
)
from topicloom.text.languages import can_split, language_code
from topicloom.text.recognition import other_language
from topicloom.text.strings import replace_surrogates
from topicloom.text.tokenizing import segmenter, without_html

needs_icu = pytest.mark.skipif(find_spec("icu4py") is None, reason="needs icu4py, of the extra intl")


def words(text, language="en", stop_words=None, **settings):
    return make_tokenizer(language, stop_words, **settings)(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The CAT's state-of-the-art Café", ["the", "cat", "state-of-the-art", "café"]),
        ("snake_case 'quoted' -dash- end-", ["snake_case", "quoted", "dash", "end"]),
        ("don’t it’s dog’s", ["don't", "it", "dog"]),
        ("1990s 2024 3.14 x2", ["1990s", "x2"]),
        ("see https://a.b/c?d=e, www.x.org or me@x.co.uk now", ["see", "or", "now"]),
        ("😀 ❤️ 1️⃣ 👨‍👩‍👧 !!! … —", []),
        ("ｆｕｌｌ ﬁne STRASSE straße", ["full", "fine", "strasse", "strasse"]),
        ("a\0b cd\0ef co\xadop", ["cd", "ef", "coop"]),
        ("a bb", ["bb"]),
        ("", []),
    ],
)
def test_english(text, expected):
    assert words(text) == expected


def test_numbers_and_length_are_settings():
    assert words("in 2024 a b", keep_numbers=True) == ["in", "2024"]
    assert words("in a bit", min_length=3) == ["bit"]
    assert words("x2 x-y x23", min_length=3) == ["x-y", "x23"]


def test_spaced_scripts_keep_their_marks_and_elision_splits():
    assert words("हिन्दी भाषा", "hi") == ["हिन्दी", "भाषा"]
    assert words("می‌خواهم", "fa") == ["می‌خواهم"]
    assert words("dell'arte l’uomo", "it") == ["dell", "arte", "uomo"]
    assert words("об'єкт", "uk") == ["об'єкт"]
    assert "dell" in stop_words("it")


def test_chinese_keeps_english_words_whole():
    text = "我们用Python3和state-of-the-art的GPT-4o模型，don't停！2024年 ＡＢＣ公司 http://a.cn/x这里"
    assert words(text, "zh") == [
        *("我们", "python3", "state-of-the-art", "gpt-4o", "模型", "don't", "abc", "公司", "这里")
    ]  # fmt: skip
    assert words("我们 and 你们 学习 system", "zh", "auto") == ["学习", "system"]
    assert words("\ud800学习", "zh") == ["学习"]


def test_user_dictionary(tmp_path):
    pytest.importorskip("jieba", reason="needs jieba, of the extra zh")
    path = tmp_path / "own.txt"
    path.write_text("# own words\n石墨烯电池 100 n\niPhone手机\nＡＢ芯片组\n", encoding="utf-8")
    tokenizer = make_tokenizer("zh", None, path)
    assert tokenizer("AB芯片组") == tokenizer("ＡＢ芯片组") == ["ab芯片组"]
    assert tokenizer("石墨烯电池和iPhone手机") == ["石墨烯电池", "iphone手机"]
    path.unlink()  # its contents, not its path, are in the settings
    again = tokenizer_from_settings(json.loads(json.dumps(tokenizer.model_dump(mode="json"))))
    assert again("石墨烯电池") == ["石墨烯电池"]
    assert words("石墨烯电池", "zh") != ["石墨烯电池"]


def test_words_of_a_user_dictionary_that_are_never_found(tmp_path, caplog):
    pytest.importorskip("jieba", reason="needs jieba, of the extra zh")
    path = tmp_path / "own.txt"
    path.write_text("石墨烯电池 100 n\nB站 5\nC++\n", encoding="utf-8")
    with caplog.at_level(logging.WARNING, "topicloom"):
        make_tokenizer("zh", None, path)
        assert not caplog.messages
        path.write_text("石墨烯电池 100 n\n马克·吐温 3\niPhone 手机\n元宇宙,100\n", encoding="utf-8")
        tokenizer = make_tokenizer("zh", None, path)
    assert tokenizer("马克·吐温谈iPhone 手机") == ["马克", "吐温", "iphone", "手机"]
    assert len(caplog.messages) == 1
    assert "3 of 4 words are never found" in caplog.messages[0]
    assert "such as '马克·吐温' ('马克', '吐温'), 'iPhone 手机' ('iphone', '手机'), " in caplog.messages[0]


def test_entries_with_punctuation_and_rare_characters_are_found(tmp_path, caplog):
    pytest.importorskip("jieba", reason="needs jieba, of the extra zh")
    path = tmp_path / "own.txt"
    path.write_text("C++\nC#\neasy_install\nnode.js\nAT&T\nw底\n𠮷野家\n㐂屋 5 n\niPhone手机\n", encoding="utf-8")
    with caplog.at_level(logging.WARNING, "topicloom"):
        tokenizer = make_tokenizer("zh", None, path)
    assert not caplog.messages
    assert tokenizer("学C++和c#，用easy_install装node.js；AT&T在𠮷野家、㐂屋") == [
        *("c++", "c#", "easy_install", "node.js", "at&t", "𠮷野家", "㐂屋")
    ]  # fmt: skip
    assert tokenizer("w底 W底 IPHONE手机 iphone手机 Node.JS") == ["w底", "w底", "iphone手机", "iphone手机", "node.js"]
    assert words("𠮷", "zh", min_length=1) == ["𠮷"]


def test_a_dictionary_does_not_tear_words_of_other_scripts(tmp_path):
    pytest.importorskip("jieba", reason="needs jieba, of the extra zh")
    path = tmp_path / "own.txt"
    path.write_text("w底\n底a\n", encoding="utf-8")
    tokenizer = make_tokenizer("zh", None, path, min_length=1)
    assert tokenizer("wow底部") == ["wow", "底部"]
    assert tokenizer("海底abc，海底a。") == ["海底", "abc", "海", "底a"]
    assert tokenizer("wow底" * 50) == ["wow", "底"] * 50
    assert words("wifi座 AT恤 at恤 T恤", "zh", min_length=1) == ["wifi", "座", "at", "恤", "at", "恤", "t恤"]


def test_stop_words_that_are_never_removed_are_named(caplog):
    with caplog.at_level(logging.WARNING, "topicloom"):
        found = make_tokenizer("en", ["New York", "john's", "C++", "machine_learning", "Mr.", "it's"])
    assert found("machine_learning mr. dogs") == ["dogs"]
    assert len(caplog.messages) == 1
    assert "3 of 5 words are never removed" in caplog.messages[0]
    assert "'New York' ('new', 'york'), \"john's\" ('john'), 'C++' ('c')" in caplog.messages[0]


def test_saved_tokenizers_keep_their_rules():
    old = {"kind": "language", "language": "tr", "stop_words": ["için"], "strip_html": True}
    again = tokenizer_from_settings(old)
    assert again.rules == 1
    assert again("İçin IŞIK machine_learning") == ["i̇çin", "işik", "machine", "learning"]
    assert tokenizer_from_settings(old | {"language": "fr"})("aujourd'hui") == ["aujourd", "hui"]
    assert tokenizer_from_settings(json.loads(again.model_dump_json())) == again
    assert pickle.loads(pickle.dumps(again))("IŞIK") == ["işik"]
    assert make_tokenizer("tr").rules == 2


@needs_icu
@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        (
            "ja",
            "今日は東京へ行きます。don't state-of-the-art",
            ["今日", "東京", "行き", "ます", "don't", "state-of-the-art"],
        ),
        ("th", "น้ำดื่ม ภาษาไทย", ["น้ำ", "ดื่ม", "ภาษา", "ไทย"]),
        ("lo", "ພາສາລາວ", ["ພາສາ", "ລາວ"]),
        ("km", "ភាសាខ្មែរជាភាសា", ["ភាសាខ្មែរ", "ជា", "ភាសា"]),
        ("my", "မြန်မာဘာသာစကား", ["မြန်မာဘာသာ", "စကား"]),
    ],
)
def test_icu_languages(language, text, expected):
    assert words(text, language) == expected


def test_settings_round_trip_and_pickle():
    for tokenizer in (make_tokenizer("en"), make_tokenizer("zh", ["公司"]), Pretokenized(stop_words=("a",))):
        again = tokenizer_from_settings(json.loads(json.dumps(tokenizer.model_dump(mode="json"))))
        assert again == tokenizer == pickle.loads(pickle.dumps(tokenizer))
    chinese = make_tokenizer("zh")
    chinese("公司")
    assert pickle.loads(pickle.dumps(chinese))("学习公司") == chinese("学习公司")


def test_custom_tokenizer_saves_its_name_alone():
    tokenizer = CustomTokenizer.of(str.split, ["b"])
    assert tokenizer("a b  C") == ["a", "C"]
    again = tokenizer_from_settings(tokenizer.model_dump(mode="json"))
    with pytest.raises(
        InputError, match=r"your own tokenizer '.*split'; pass it again: tl.load\(dir, tokenizer=split\)"
    ):
        again("a b")
    with pytest.raises(InputError, match="expected tokens that are strings, got an int: 1"):
        CustomTokenizer.of(lambda text: [1])("a")


def test_pretokenized():
    assert Pretokenized()(["a b", "", "c"]) == ["a b", "c"]
    with pytest.raises(InputError, match="give each document as a list of tokens"):
        Pretokenized()("a b")
    with pytest.raises(InputError, match=r"expected a list of tokens, got a float: 1\.5"):
        Pretokenized()(1.5)


def test_settings_that_cannot_be_read():
    for settings in ({"kind": "other"}, {"language": "en"}, {"kind": "language", "language": "en", "colour": 1}):
        with pytest.raises(InputError, match="the tokenizer's settings cannot be read"):
            tokenizer_from_settings(settings)


def test_stop_words():
    english, chinese = stop_words("en"), stop_words("zh")
    assert {"the", "don't", "isn't", "i'm", "we've", "s", "t"} <= english
    assert not {"system", "research", "computer"} & english
    assert {"的", "没有", "沒有", "如何", "这", "這", "因为", "因為", "與", "们"} <= chinese
    assert not {"the"} & chinese
    assert stop_words("lo") == frozenset()
    for code in languages():
        assert all(word == word.casefold().strip() and word for word in stop_words(code))


def test_stop_words_argument(tmp_path):
    path = tmp_path / "stop.txt"
    path.write_text("CAT\n# no\n\ndog\n", encoding="utf-8")
    assert words("the cat sat", stop_words="auto") == ["cat", "sat"]
    assert words("the cat", stop_words="none") == ["the", "cat"]
    with pytest.raises(
        InputError,
        match=r"`stop_words`: nowhere.txt cannot be read: No such file.*; give an existing file .* \(or, in",
    ):
        words("", stop_words="nowhere.txt")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"`stop_words`: .* is not UTF-8 \(byte 0\); save it as UTF-8"):
        words("", stop_words=path)


def test_stop_words_of_the_user_are_added_to_the_language(tmp_path):
    path = tmp_path / "stop.txt"
    path.write_text("CAT\n# no\n\ndog\n", encoding="utf-8")
    assert words("the cat dog sat", stop_words=path) == ["sat"]
    assert words("the cat sat", stop_words=np.array(["Sat"])) == words("the cat sat", stop_words=["ＳＡＴ"]) == ["cat"]
    assert words("一个新闻的公司 and the system", "zh", ["公司"]) == ["新闻", "system"]
    assert words("the cat dog sat", stop_words=path, replace_stop_words=True) == ["the", "sat"]
    assert words("the cat", stop_words=None, replace_stop_words=True) == ["the", "cat"]
    assert words("一个新闻 and the system", "zh", ["新闻"], replace_stop_words=True) == ["一个", "and", "the", "system"]
    with pytest.raises(SettingError, match=r"`replace_stop_words=True` needs the words"):
        words("", stop_words="auto", replace_stop_words=True)


def test_languages():
    assert {"en", "zh", "ja", "th", "lo", "km", "my", "it", "ko"} <= set(languages())
    assert [language_code(name) for name in ("zh-CN", "zh_TW", "cn", "en-US", "Chinese", "english", "no")] == [
        *("zh", "zh", "zh", "en", "zh", "en", "nb")
    ]  # fmt: skip
    with pytest.raises(SettingError, match=r"`language='klingon'` is not known; .*auto"):
        make_tokenizer("klingon")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Plain English text", "en"),
        ("", "en"),
        ("中文新闻 about iPhone", "zh"),
        ("本文の東京です", "ja"),
        ("ภาษาไทย", "th"),
        ("ພາສາລາວ", "lo"),
        ("ភាសាខ្មែរ", "km"),
        ("မြန်မာ", "my"),
        ("한국어 문서", "ko"),
        ("новости о погоде", "ru"),
        ("أخبار الطقس اليوم", "ar"),
        ("The word 中文 means the Chinese language, of course", "en"),
    ],
)
def test_detect_language(text, code):
    assert detect_language([text]) == code


def test_missing_extras_are_reported_at_once(monkeypatch):
    segmenter.cache_clear()
    for module in ("rjieba", "jieba", "icu4py.breakers"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"Chinese text needs rjieba: pip install 'topicloom\[zh\]'"):
        make_tokenizer("zh")
    with pytest.raises(MissingExtraError, match=r"needs icu4py: pip install 'topicloom\[intl\]'"):
        make_tokenizer("ja")


def test_user_dictionary_faults(tmp_path):
    path = tmp_path / "own.txt"
    with pytest.raises(InputError, match=r"`user_dictionary` is for Chinese, and the language is 'en'"):
        make_tokenizer("en", user_dictionary=path)
    with pytest.raises(InputError, match=r"`user_dictionary`: .* cannot be read"):
        make_tokenizer("zh", user_dictionary=path)


def test_not_a_string():
    with pytest.raises(InputError, match="expected a text, got a float: nan"):
        Tokenizer(language="en")(float("nan"))


def test_time_is_linear_on_long_runs():
    start = time.perf_counter()
    for text in ("a" * 1_000_000, "a-" * 500_000, "a." * 500_000, "@" * 1_000_000, "www." * 250_000):
        words(text)
    assert time.perf_counter() - start < 5


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('<p class="x">Good <b>news</b> at <a href="http://a.b/c">home</a></p>', ["good", "news", "at", "home"]),
        ("<!DOCTYPE html><HTML><Body>one<br/>two<br />three</BODY ></html>", ["one", "two", "three"]),
        ("<style>p { color: red }</style>seen<script type='x'>var hidden = 1 < 2;</script><!-- note > -->", ["seen"]),
        ("<input disabled name=x>typed<o:p></o:p><img\nsrc=a.png>", ["typed"]),
        ("fish &amp; chips&nbsp;&mdash; caf&eacute;&#39;s &lt;br&gt; &amp;quot;", ["fish", "chips", "café"]),
        ("<script>no end, so it is text", ["no", "end", "so", "it", "is", "text"]),
    ],
)  # fmt: skip
def test_html_leaves_no_tokens(text, expected):
    assert words(text) == expected


def test_html_without_ampersands_is_reported(caplog):
    caplog.set_level(logging.INFO, "topicloom")
    texts = [f"the spokesman said quot;parcel {i % 7} came late quot; and left" for i in range(12)]
    Corpus.from_texts(
        [text.replace("quot;", "&quot;") for text in texts] + ["a quot of twelve words"] * 3, min_df=1, max_df=1.0
    )
    assert "ampersand" not in caplog.text
    Corpus.from_texts([*texts, *["nothing of the kind"] * 3], min_df=1, max_df=1.0)
    assert "12 of 15 texts have HTML without its ampersand, such as quot; for &quot; so 'quot' is a word" in caplog.text


@pytest.mark.parametrize(
    "text",
    [
        *(
            "a < b",
            "if x <b and c> d",
            "i <3 you",
            "the <unk> token",
            "x <y> z",
            "mail <me@x.org>",
            "at <http://x.y/z>",
        ),
        *("AT&T", "Q&A; next", "see http://x.y/?a=1&copy=2&lt=3", "<- back ->", "a <<< b >>> c", "中文<新闻>"),
    ],
)
def test_text_without_html_stays_as_it_is(text):
    assert without_html(text) == text


def test_strip_html_is_saved_with_the_tokenizer():
    text = "<p>news</p>"
    plain = make_tokenizer("en", None, strip_html=False)
    assert plain("<br>news") == ["br", "news"]
    for tokenizer in (plain, make_tokenizer("en", None)):
        settings = json.loads(json.dumps(tokenizer.model_dump(mode="json")))
        assert tokenizer_from_settings(settings) == tokenizer == pickle.loads(pickle.dumps(tokenizer))
        assert tokenizer_from_settings(settings)(text) == tokenizer(text)
    del settings["strip_html"]  # saved before the setting existed, by a tokenizer that left HTML in the text
    assert not tokenizer_from_settings(settings).strip_html


def test_time_is_linear_on_hostile_html():
    start = time.perf_counter()
    for piece in ("<", "<!--", "<script>", "<a ", "<a b=", "<a b", "&amp", "&", "<p " + "=" * 50, "<x:y", "< p a ="):
        words(piece * (60_000 // len(piece)))
        words("<p " + piece.replace("<", "") * (60_000 // len(piece)))
    assert time.perf_counter() - start < 5


def test_surrogates_are_joined_or_replaced():
    assert replace_surrogates("a\ud83d\ude00\ud800b") == "a😀\ufffdb"
    assert replace_surrogates("中文 text 😀") == "中文 text 😀"


CHINESE = ["北京大学的新闻", "经济增长与利率", "天气预报说明天有雨"]
RUSSIAN = ["новости о погоде", "экономика и рынок"]
ENGLISH = ["the weather report", "an economy that grows"]


@pytest.mark.parametrize(
    ("language", "texts", "other"),
    [
        *(("en", CHINESE, "zh"), ("fr", [*CHINESE, ENGLISH[0]], "zh"), ("th", CHINESE, "zh"), ("en", RUSSIAN, "ru")),
        *(("zh", ["ข่าวอากาศวันนี้"], "th"), ("zh", ["今日の東京はとても寒いです"], "ja"), ("zh", RUSSIAN, "ru")),
        *(("zh", CHINESE, None), ("uk", RUSSIAN, None), ("zh", ENGLISH, None), ("ru", ENGLISH, None), ("en", [], None)),
        *(("en", [*ENGLISH, *CHINESE[:2]], None), ("en", ["", " "], None), ("fr", ["été à Noël"], None)),
        ("ja", ["東京都知事選挙結果", "今日は寒いですね、とても", "首相会見全文掲載"], None),
    ],
)
def test_texts_in_another_language(language, texts, other):
    assert other_language(language, texts) == other


def test_which_tokenizers_find_words():
    assert can_split("en", "ru")
    assert can_split("ja", "th")
    assert not can_split("en", "zh")
    assert not can_split("zh", "th")
