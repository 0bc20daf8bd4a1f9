"""Chinese names with a verb of speech."""

import logging

import pytest

import topicloom as tl
from topicloom.text.speakers import find_speakers, has_speeches

STORY = ["贾政道：明天下雨。贾政笑道：北海道下雪。", "贾政看见北海下雪。", "人们知道贾政开玩笑。贾政看书。"] * 20
WORDS = {"language": "zh", "min_df": 1, "max_df": 1.0}


@pytest.mark.parametrize("ngrams", [None, "1-2"])
def test_verbs_of_speech_are_cut_off_names(caplog, ngrams, tmp_path):
    caplog.set_level(logging.INFO, "topicloom")
    corpus = tl.Corpus.from_texts(STORY, **WORDS, ngrams=ngrams)
    assert corpus.tokenizer.speakers == ("贾政笑", "贾政道")
    assert "2 names with a verb of speech are cut, such as 贾政道 to 贾政" in caplog.text
    column = corpus.counts[:, [corpus.vocabulary.index("贾政")]].sum(axis=1)
    assert column.tolist() == [text.count("贾政") for text in STORY]
    assert {"北海道", "北海"} <= set(corpus.vocabulary)
    corpus.save(tmp_path / "corpus")
    assert tl.Corpus.load(tmp_path / "corpus").tokenizer("贾政道：“好。”")[0] == "贾政"


def test_words_of_a_user_dictionary_keep_their_verb(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("贾政道 1000\n贾政 1000\n贾政笑 1000\n", encoding="utf-8")
    assert tl.Corpus.from_texts(STORY, **WORDS, user_dictionary=path).tokenizer.speakers == ()


def test_other_words_keep_their_last_character():
    counts = {
        "北海": 90,
        "北海道": 3,
        "随身": 9,
        "随身听": 3,
        "不用": 50,
        "不用说": 9,
        "不用问": 3,
        "人行": 70,
        "人行道": 9,
    }
    assert find_speakers(counts | {"哈哈": 50, "哈哈笑": 3, "哈哈道": 4, "打交道": 9, "开玩笑": 4}) == []
    names = {f"贾{name}": 9 for name in "珍琏蓉芹环兰赦敬瑞蔷"}
    many = names | {name + verb: 2 for name in names for verb in "道笑"}
    assert set(find_speakers(many | {"包勇": 6, "包勇道": 2, "贾母": 5, "贾母道": 2, "就是": 90, "就是说": 3})) == {
        word for word in many if len(word) == 3
    } | {"包勇道"}


def test_news_has_no_speeches():
    assert not has_speeches(["据新华社报道：今天下雨。他们知道：明天也下雨。"] * 50)
    assert tl.Corpus.from_texts(["贾政道明天下雨", "贾政笑了，贾政道"] * 30, **WORDS).tokenizer.speakers == ()


def test_corpora_with_different_names_are_joined():
    other = [text.replace("贾政", "黛玉") for text in STORY]
    one, two, plain = (tl.Corpus.from_texts(texts, **WORDS) for texts in (STORY, other, ["明天下雨"] * 5))
    both = tl.Corpus.concatenate([one, two, plain])
    assert set(both.tokenizer.speakers) == {"贾政道", "贾政笑", "黛玉道", "黛玉笑"}
    assert both.counts.sum() == one.counts.sum() + two.counts.sum() + plain.counts.sum()
