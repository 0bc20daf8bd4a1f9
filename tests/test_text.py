"""Tokenizers, stop words and languages."""

from __future__ import annotations

import json
import pickle
import sys
import time

import numpy as np
import pytest

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
from topicloom.text.languages import language_code


def words(text, language="en", stop_words=None, **settings):
    return make_tokenizer(language, stop_words, **settings)(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The CAT's state-of-the-art Café", ["the", "cat", "state-of-the-art", "café"]),
        ("snake_case 'quoted' -dash- end-", ["snake", "case", "quoted", "dash", "end"]),
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
    path = tmp_path / "own.txt"
    path.write_text("# own words\n石墨烯电池 100 n\niPhone手机\n", encoding="utf-8")
    tokenizer = make_tokenizer("zh", None, path)
    assert tokenizer("石墨烯电池和iPhone手机") == ["石墨烯电池", "iphone手机"]
    path.unlink()  # its contents, not its path, are in the settings
    again = tokenizer_from_settings(json.loads(json.dumps(tokenizer.model_dump(mode="json"))))
    assert again("石墨烯电池") == ["石墨烯电池"]
    assert words("石墨烯电池", "zh") != ["石墨烯电池"]


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
    with pytest.raises(InputError, match="a token is an int, not a string: 1"):
        CustomTokenizer.of(lambda text: [1])("a")


def test_pretokenized():
    assert Pretokenized()(["a b", "", "c"]) == ["a b", "c"]
    with pytest.raises(InputError, match="give each document as a list of tokens"):
        Pretokenized()("a b")
    with pytest.raises(InputError, match="a list of tokens is needed, and this is a float"):
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
    assert words("the cat dog sat", stop_words=path) == ["the", "sat"]
    assert words("the cat sat", stop_words=np.array(["The"])) == ["cat", "sat"]
    assert words("the cat sat", stop_words="auto") == ["cat", "sat"]
    assert words("the cat", stop_words="none") == ["the", "cat"]
    with pytest.raises(InputError, match=r"stop_words: nowhere.txt cannot be read: No such file"):
        words("", stop_words="nowhere.txt")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"stop_words: .* is not UTF-8 \(byte 0\); save it as UTF-8"):
        words("", stop_words=path)


def test_languages():
    assert {"en", "zh", "ja", "th", "lo", "km", "my", "it", "ko"} <= set(languages())
    assert [language_code(name) for name in ("zh-CN", "zh_TW", "en-US", "Chinese", "english", "no")] == [
        *("zh", "zh", "en", "zh", "en", "nb")
    ]  # fmt: skip
    with pytest.raises(SettingError, match=r"language='klingon' is not known; .*auto"):
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


def test_missing_extras_are_told_at_once(monkeypatch):
    from topicloom.text import tokenizers

    tokenizers._segmenter.cache_clear()
    for module in ("rjieba", "jieba", "icu4py.breakers"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"Chinese text needs rjieba: pip install 'topicloom\[zh\]'"):
        make_tokenizer("zh")
    with pytest.raises(MissingExtraError, match=r"needs icu4py: pip install 'topicloom\[intl\]'"):
        make_tokenizer("ja")


def test_user_dictionary_faults(tmp_path):
    path = tmp_path / "own.txt"
    with pytest.raises(InputError, match="user_dictionary is for Chinese, and the language is 'en'"):
        make_tokenizer("en", user_dictionary=path)
    with pytest.raises(InputError, match=r"user_dictionary: .* cannot be read"):
        make_tokenizer("zh", user_dictionary=path)


def test_not_a_string():
    with pytest.raises(InputError, match="a text is needed, and this is a float: nan"):
        Tokenizer(language="en")(float("nan"))


def test_time_is_linear_on_long_runs():
    start = time.perf_counter()
    for text in ("a" * 1_000_000, "a-" * 500_000, "a." * 500_000, "@" * 1_000_000, "www." * 250_000):
        words(text)
    assert time.perf_counter() - start < 5
