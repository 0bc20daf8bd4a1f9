"""Corpora: from texts, files and counts; filtered, saved, memory-mapped."""

from __future__ import annotations

import json
import logging
import pickle
import tempfile

import numpy as np
import pytest
import torch
from scipy import sparse

from topicloom.corpus import Corpus
from topicloom.errors import CorpusFileError, InputError, SettingError
from topicloom.files import write_manifest
from topicloom.metrics import document_npmi
from topicloom.preparing import WordOptions
from topicloom.text import CustomTokenizer, Document, Pretokenized, make_tokenizer
from topicloom.text.counting import counts_of

TEXTS = [
    "The cat sat on the mat with the cat.",
    "A dog and a cat.",
    "",
    "Dogs chase the dog; mat, mat!",
    "the of and",
]
DOGS = ["dog", "chase", "dogs"]
OPEN = {"min_df": 1, "max_df": 1.0}


def same(one: Corpus, two: Corpus) -> bool:
    times = [None if corpus.times is None else corpus.times.tolist() for corpus in (one, two)]
    return (
        one.vocabulary == two.vocabulary
        and (one.counts != two.counts).nnz == 0
        and (one.ids, one.labels, times[0]) == (two.ids, two.labels, times[1])
        and list(one.texts or []) == list(two.texts or [])
        and one.tokenizer == two.tokenizer
        and one.settings == two.settings
    )


def broken_after_two():
    yield from TEXTS[:2]
    raise InputError("the reader's own error")


def test_counts_and_rows(caplog):
    with caplog.at_level(logging.WARNING, "topicloom"):
        corpus = Corpus.from_texts(TEXTS, **OPEN, labels=[1, None, "x", "x", "y"])
    assert caplog.messages == ["2 of 5 documents have no word of the vocabulary; they keep their rows"]
    assert corpus.vocabulary == ["cat", "mat", "dog", "chase", "dogs", "sat"]  # by total, then by the alphabet
    np.testing.assert_array_equal(
        corpus.counts.toarray(),
        [[2, 1, 0, 0, 0, 1], [1, 0, 1, 0, 0, 0], [0] * 6, [0, 2, 1, 1, 1, 0], [0] * 6],
    )
    assert corpus.counts.dtype == np.float32
    assert corpus.counts.indices.dtype == corpus.counts.indptr.dtype == np.int32
    assert corpus.counts.has_canonical_format
    assert corpus.is_empty.tolist() == [False, False, True, False, True]
    assert (corpus.n_docs, corpus.n_words, corpus.n_tokens, len(corpus)) == (5, 6, 11, 5)
    assert corpus.ids == ["0", "1", "2", "3", "4"]
    assert corpus.labels == ["1", "", "x", "x", "y"]
    assert list(corpus.texts) == TEXTS
    assert repr(corpus) == "Corpus(5 documents, 6 words, 11 tokens)"
    assert repr(Corpus.from_counts([[1]], ["a"])) == "Corpus(1 document, 1 word, 1 token)"


def test_a_generator_and_tokens_give_the_same():
    corpus = Corpus.from_texts(TEXTS, **OPEN)
    assert same(corpus, Corpus.from_texts((text for text in TEXTS), **OPEN))
    tokens = Corpus.from_texts([corpus.tokenizer(text) for text in TEXTS], **OPEN)
    assert (tokens.counts != corpus.counts).nnz == 0
    assert tokens.tokenizer == Pretokenized()
    assert tokens.texts is None
    dropped = Corpus.from_texts([["A", "b"], ["b"]], **OPEN, stop_words=["A"])
    assert dropped.vocabulary == ["b"]
    assert Corpus.from_texts([["the", "new york"]], **OPEN).vocabulary == ["new york", "the"]


def test_chinese_is_found():
    corpus = Corpus.from_texts(["北京大学的iPhone新闻", "新闻 system"], **OPEN)
    assert corpus.tokenizer.language == "zh"
    assert corpus.vocabulary == ["新闻", "iphone", "system", "北京大学"]


CHINESE = ["北京大学的新闻", "经济增长与利率", "天气预报说明天有雨"] * 5


@pytest.mark.parametrize("language", ["auto", "en", "de"])
def test_many_texts_that_are_not_split_are_a_warning(caplog, language):
    english = ["the bank raised the interest rates of the loans again this year"] * 90
    Corpus.from_texts([*english, *["央行宣布加息，股市大跌"] * 10], language=language, max_df=1.0)
    remarks = [each for each in caplog.messages if "split" in each]
    assert len(remarks) == 1
    assert remarks[0].startswith("10 of the first 100 texts look Chinese (zh), and are not split into words with")
    caplog.clear()
    Corpus.from_texts([*english, *["央行宣布加息，股市大跌"] * 3], language=language, max_df=1.0)
    Corpus.from_texts([*english, *["央行宣布加息，股市大跌"] * 10], language="zh", max_df=1.0)
    assert not [each for each in caplog.messages if "split" in each]


def test_texts_in_another_language_than_the_one_that_was_named(caplog):
    sentence = r'the texts look Chinese \(zh\), but `language="en"` was given; .*`language="zh"`$'
    with pytest.raises(InputError, match=f"^{sentence}"):
        Corpus.from_texts(CHINESE, language="en")
    assert Corpus.from_texts(CHINESE, language="zh").tokenizer.language == "zh"
    with pytest.raises(InputError, match=f"^no word is left: {sentence}"):
        Corpus.from_texts(CHINESE, tokenizer=make_tokenizer("en"), min_df=6)
    caplog.clear()
    with caplog.at_level(logging.WARNING, "topicloom"):
        Corpus.from_texts(["новости о погоде", "экономика и рынок"], language="en", **OPEN)
    assert len(caplog.messages) == 1
    assert 'the texts look Russian (ru), but `language="en"` was given' in caplog.messages[0]
    caplog.clear()
    with caplog.at_level(logging.WARNING, "topicloom"):
        Corpus.from_texts(["новини про погоду", "економіка та ринок"], language="uk", **OPEN)
        Corpus.from_texts(["the weather", *CHINESE[:1]], language="en", **OPEN)
    assert not caplog.messages


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (["中国经济发展与市场改革", "iPhone 手机 新闻", "北京 上海 广州"], ""),
        (["這個國家的經濟發展", "里程與時間", "中国"], "look like traditional Chinese"),
        (["这 个 国 家 的 经 济 发 展 ， 与 市 场", "北京"], "stand alone between blanks"),
    ],
)
def test_chinese_texts_in_which_words_are_not_found_well(texts, says, caplog):
    pytest.importorskip("rjieba", reason="needs rjieba, of the extra zh")
    with caplog.at_level(logging.WARNING, "topicloom"):
        Corpus.from_texts(texts, language="zh", **OPEN)
    found = [message for message in caplog.messages if "Chinese" in message]
    assert len(found) == bool(says)
    assert all(says in message for message in found)


def test_texts_in_simplified_and_traditional_chinese_get_a_warning(caplog):
    pytest.importorskip("rjieba", reason="needs rjieba, of the extra zh")
    simplified = ["这个国家的经济发展", "电影时间", "学会开车", "买书问题", "长江两岸"] * 40
    traditional = ["這個國家的經濟發展", "電影時間", "學會開車", "買書問題", "長江兩岸"]
    for n, part in ((1, None), (3, "7"), (40, "50")):  # after the texts by which the language is recognised
        caplog.clear()
        Corpus.from_texts(simplified + traditional * n, language="zh", **OPEN)
        found = [message for message in caplog.messages if "traditional" in message]
        expected = (
            part and f"about {part} % of the texts are in traditional Chinese and the others in simplified Chinese"
        )
        assert [message.split(",")[0] for message in found] == [expected] * bool(part)


def test_a_dictionary_of_traditional_words_is_trusted(tmp_path, caplog):
    pytest.importorskip("jieba", reason="needs jieba, of the extra zh")
    (tmp_path / "own.txt").write_text("經濟發展\n", encoding="utf-8")
    with caplog.at_level(logging.WARNING, "topicloom"):
        Corpus.from_texts(["這個國家的經濟發展"], language="zh", user_dictionary=tmp_path / "own.txt", **OPEN)
    assert not caplog.messages


def test_stop_words_are_added_or_replaced(tmp_path):
    path = tmp_path / "own.txt"
    path.write_text("cat\nsat\n")
    (tmp_path / "texts.txt").write_text("\n".join(text or " " for text in TEXTS))
    for given in (["cat", "sat"], path):
        assert Corpus.from_texts(TEXTS, **OPEN, language="en", stop_words=given).vocabulary == ["mat", *DOGS]
        own = Corpus.from_texts(TEXTS, **OPEN, language="en", stop_words=given, replace_stop_words=True)
        assert "the" in own.vocabulary
        assert "cat" not in own.vocabulary
        both = Corpus.from_file(tmp_path / "texts.txt", **OPEN, stop_words=given, replace_stop_words=True)
        assert both.vocabulary == own.vocabulary
    for source in ([["a"]], TEXTS):
        with pytest.raises(SettingError, match=r"`replace_stop_words=True` needs the words"):
            Corpus.from_texts(source, **OPEN, replace_stop_words=True)
    with pytest.raises(InputError, match="`tokenizer` has its own stop words"):
        Corpus.from_texts(TEXTS, tokenizer=make_tokenizer("en"), replace_stop_words=True)


def test_filters():
    def vocabulary(**filters):
        return Corpus.from_texts(
            [["a", "a", "b"], ["a", "b", "c"], ["a", "d", "d", "d"]], **(OPEN | filters)
        ).vocabulary

    assert vocabulary() == ["a", "d", "b", "c"]
    assert vocabulary(min_df=2) == vocabulary(min_df=0.5) == ["a", "b"]
    assert vocabulary(max_df=2) == vocabulary(max_df=0.7) == ["d", "b", "c"]
    assert vocabulary(max_df=1) == ["d", "c"]
    assert vocabulary(remove_top=1) == ["d", "b", "c"]
    assert vocabulary(remove_top=1, max_features=1) == ["d"]
    assert vocabulary(remove_top=2) == ["d", "c"]  # d is frequent, but in one document only
    assert vocabulary(remove_top=3) == ["c"]  # c and d are in one document each, and d occurs more often
    assert vocabulary(min_df=np.int64(2)) == ["a", "b"]


def test_default_filters_keep_words_of_five_documents_to_half():
    times = {"four": 4, "five": 5, "half": 6, "most": 7, "all": 12}
    documents = [[word for word, often in times.items() if row < often] for row in range(12)]
    assert Corpus.from_texts(documents).vocabulary == ["half", "five"]


def test_one_document_may_have_thousands_of_words():
    words = [f"w{number:05}" for number in range(10_000)]
    corpus = Corpus.from_texts([words, words[:5] * 2], **OPEN)
    assert corpus.vocabulary == words
    assert corpus.counts.sum(axis=0).tolist() == [3] * 5 + [1] * 9_995


@pytest.mark.parametrize(
    "filters",
    [
        *({"min_df": True}, {"min_df": -1}, {"min_df": 1.5}, {"max_df": "0.5"}, {"max_df": float("nan")}),
        *({"remove_top": -1}, {"remove_top": 0.5}, {"max_features": 0}, {"max_features": True}),
    ],
)
def test_filters_that_cannot_be(filters):
    (name,) = filters
    with pytest.raises(SettingError, match=f"^`{name}=.*` should be a whole number"):
        Corpus.from_texts(TEXTS, **filters)


def test_no_word_left():
    with pytest.raises(
        InputError,
        match=r"no word is left of 6 in 3 documents with words: `min_df=2` drops 3, `max_df=0.1` drops 3, "
        r"`remove_top=0` drops 0; loosen these filters or give more text",
    ):
        Corpus.from_texts(TEXTS, min_df=2, max_df=0.1)
    with pytest.raises(InputError, match=r"give more text; `max_df=1` is one document, and 1.0 is all of them; of"):
        Corpus.from_texts(TEXTS, min_df=2, max_df=1)
    with pytest.raises(InputError, match=r"`remove_top=9` drops 6.*give more text; of long"):
        Corpus.from_texts(TEXTS, **OPEN, remove_top=9)
    with pytest.raises(
        InputError, match=r"no word was found in 1 document; check the language \(`language`\) and the stop"
    ):
        Corpus.from_texts(["the"], **OPEN)
    with pytest.raises(InputError, match="no documents were given"):
        Corpus.from_texts([])


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("one string", "`texts` is a single string"),
        ({"one", "two"}, "`texts` is a set, which has no order"),
        (["a", None], "document 1: expected a text, got a NoneType"),
        ([float("nan")], "document 0: expected a text, got a float: nan"),
        (["a", ["b"]], "document 1: expected a text, got a list"),
        ([["a"], "b"], "document 1: this document is raw text"),
        ([["a"], ["b", 3]], "document 1: expected tokens that are strings, got an int: 3"),
        ([["a\nb"]], r"the word 'a\\nb' is blank or contains a line break"),
    ],
)
def test_documents_that_cannot_be(texts, message):
    with pytest.raises(InputError, match=message):
        Corpus.from_texts(texts, **OPEN)


def test_columns_of_another_length():
    with pytest.raises(InputError, match="there are 2 ids and 5 documents; give one for each"):
        Corpus.from_texts(TEXTS, **OPEN, ids=["a", "b"])


def test_own_tokenizer():
    corpus = Corpus.from_texts(TEXTS, **OPEN, tokenizer=lambda text: text.split(), stop_words=["the"])
    assert isinstance(corpus.tokenizer, CustomTokenizer)
    assert "mat," in corpus.vocabulary
    assert "the" not in corpus.vocabulary
    other = Corpus.from_texts(TEXTS, **OPEN, tokenizer=make_tokenizer("en", None))
    assert "the" in other.vocabulary
    with pytest.raises(InputError, match="`tokenizer` has its own stop words"):
        Corpus.from_texts(TEXTS, tokenizer=make_tokenizer("en"), stop_words=None)
    with pytest.raises(InputError, match="`user_dictionary` belongs to"):
        Corpus.from_texts(TEXTS, tokenizer=str.split, user_dictionary="own.txt")


def test_a_language_without_effect_is_reported(caplog):
    for texts, options, why in (
        (["a cat", "a dog"], {"tokenizer": str.split}, "`tokenizer` splits the texts"),
        ([["cat", "dog"], ["cat"]], {}, "the documents are lists of tokens"),
    ):
        Corpus.from_texts(texts, min_df=1, max_df=1.0, **options)
        assert not caplog.messages
        Corpus.from_texts(texts, min_df=1, max_df=1.0, language="en", **options)
        assert caplog.messages == [f"`language` has no effect, because {why}; leave it out"]
        caplog.clear()


def test_workers_change_nothing(monkeypatch):
    monkeypatch.setattr("topicloom.text.counting._CHUNK_DOCUMENTS", 7)
    texts = [f"w{i % 13} v{i % 5} v{i % 5} u{i}" for i in range(100)]
    one = Corpus.from_texts(texts, min_df=2, n_jobs=1, progress=True)
    assert same(one, Corpus.from_texts(texts, min_df=2, n_jobs=2))
    monkeypatch.setattr("topicloom.text.counting._SERIAL_SECONDS", 1e-9)  # begins here, goes on in workers
    assert same(one, Corpus.from_texts(texts, min_df=2))
    own = Corpus.from_texts(texts, min_df=2, n_jobs=2, tokenizer=lambda text: text.split())
    assert (own.counts != one.counts).nnz == 0
    with pytest.raises(InputError, match="document 99: expected a text"):
        Corpus.from_texts([*texts[:-1], 5], n_jobs=2)
    with pytest.raises(InputError, match="the reader's own error"):
        Corpus.from_texts(broken_after_two(), n_jobs=2)
    with pytest.raises(SettingError, match=r"`n_jobs=0` is not possible"):
        Corpus.from_texts(texts, n_jobs=0)


def test_the_spool_goes_to_disk(monkeypatch):
    from topicloom.corpus import building

    gone = []

    class Spool(tempfile.SpooledTemporaryFile):
        def rollover(self):
            gone.append(self)
            super().rollover()

    monkeypatch.setattr(building.tempfile, "SpooledTemporaryFile", Spool)
    expected = Corpus.from_texts(TEXTS, **OPEN)
    assert not gone
    monkeypatch.setattr(building, "_SPOOL_IN_MEMORY", 1)
    monkeypatch.setattr("topicloom.text.counting._CHUNK_CHARACTERS", 10)
    assert same(expected, Corpus.from_texts(TEXTS, **OPEN))
    assert gone


def test_columns_of_a_file(tmp_path):
    (tmp_path / "a.csv").write_text("text,kind,when\ncat dog,x,1999\ndog bird,,\n", encoding="utf-8")
    corpus = Corpus.from_file(tmp_path / "a.csv", min_df=1, max_df=1.0, label="kind", timestamp="when")
    assert (corpus.ids, corpus.labels) == (["0", "1"], ["x", ""])
    assert [str(time)[:10] for time in corpus.times] == ["1999-01-01", "NaT"]


def test_tables_of_other_kinds(tmp_path):
    (tmp_path / "a.csv").write_text("x;cat, dog\ny;'dog' bird\n", encoding="utf-8")
    corpus = Corpus.from_file(tmp_path / "a.csv", **OPEN, text="2", label="1", header=False, delimiter=";")
    assert (corpus.vocabulary, corpus.labels) == (["dog", "bird", "cat"], ["x", "y"])


def test_save_and_load(tmp_path):
    corpus = Corpus.from_texts(TEXTS, **OPEN, ids="abcde", labels="vwxyz", timestamps=range(2001, 2006))
    corpus.save(tmp_path / "corpus")
    for mmap in (True, False):
        assert same(corpus, Corpus.load(tmp_path / "corpus", mmap=mmap))
    with pytest.raises(InputError, match="already holds files"):
        corpus.save(tmp_path / "corpus")
    loaded = Corpus.load(tmp_path / "corpus")
    loaded.save(tmp_path / "corpus", overwrite=True)  # over the files that it is mapped from
    assert same(corpus, Corpus.load(tmp_path / "corpus"))
    assert same(corpus, pickle.loads(pickle.dumps(loaded)))


def test_mapping_copies_nothing(tmp_path):
    Corpus.from_texts(TEXTS, **OPEN).save(tmp_path / "corpus")
    corpus = Corpus.load(tmp_path / "corpus")
    for name in ("data", "indices", "indptr"):
        array = getattr(corpus.counts, name)
        mapped = np.asarray(array)
        while not isinstance(mapped, np.memmap):
            assert mapped.base is not None, f"{name} was copied"
            mapped = mapped.base
        assert np.shares_memory(array, mapped)
        assert not array.flags.writeable
    assert len(corpus.texts) == 5
    assert corpus.texts[0] == TEXTS[0]
    assert corpus.texts[-1] == TEXTS[-1]
    assert list(corpus.texts[1:3]) == TEXTS[1:3]
    with pytest.raises(IndexError):
        corpus.texts[5]


def test_texts_that_are_all_empty_or_have_no_utf8(tmp_path):
    Corpus.from_counts([[1.0]], texts=[""]).save(tmp_path / "a")
    assert list(Corpus.load(tmp_path / "a").texts) == [""]
    corpus = Corpus.from_texts(["fine \ud800"], **OPEN)
    assert list(corpus.texts) == ["fine \ufffd"]


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"ids": ["a", "b\ud800"]}, "the id of document 1"),
        ({"labels": ["\udfff", "b"]}, "the label of document 0"),
        ({"covariates": {"shop": ["a", "\ud800"]}}, "the covariate 'shop' of document 1"),
        ({"covariates": {"shop\ud800": [1, 2]}}, "the name of a covariate"),
    ],
)
def test_fields_that_no_file_can_hold_are_refused(fields, what):
    makers = [
        lambda: Corpus.from_texts(["cat", "dog"], **OPEN, **fields),
        lambda: Corpus.from_counts([[1], [1]], **fields),
        lambda: Corpus.from_documents([Document("cat", each) for each in fields["ids"]], WordOptions(**OPEN)),
    ]
    for make in makers if "ids" in fields else makers[:2]:
        with pytest.raises(InputError, match=rf"^{what} contains '.u[a-f0-9]{{4}}', a lone surrogate"):
            make()


def test_surrogates_of_texts_are_saved_as_the_replacement_character(tmp_path):
    tokens = [["a\ud800", "a\ud801", "b"], ["a\ud802", "\ud83d\ude00"]]
    corpus = Corpus.from_texts(tokens, **OPEN, stop_words=["c\ud800"])
    assert corpus.vocabulary == ["a\ufffd", "b", "😀"]
    np.testing.assert_array_equal(corpus.counts.toarray(), [[2, 1, 0], [1, 0, 1]])
    np.testing.assert_array_equal(corpus.encode([["a\ud805", "b"]]).toarray(), [[1, 1, 0]])
    corpus.save(tmp_path / "tokens")
    assert same(corpus, Corpus.load(tmp_path / "tokens"))
    (tmp_path / "a.jsonl").write_text('{"text": "cat \\ud800", "id": "\\ud83d\\ude00"}\n')
    corpus = Corpus.from_file(tmp_path / "a.jsonl", **OPEN, stop_words=["dog\ud800"])
    assert (corpus.ids, list(corpus.texts)) == (["😀"], ["cat \ufffd"])
    corpus.save(tmp_path / "texts")
    assert same(corpus, Corpus.load(tmp_path / "texts"))
    with pytest.raises(InputError, match=r"the word '.ud800' contains a lone surrogate"):
        Corpus.from_counts([[1]], ["\ud800"])


def test_load_faults(tmp_path):
    with pytest.raises(InputError, match="is not a saved corpus"):
        Corpus.load(tmp_path)
    folder = tmp_path / "corpus"
    corpus = Corpus.from_texts(TEXTS, **OPEN)
    for name in ("data.npy", "indptr.npy", "vocabulary.txt", "texts.utf8", "texts.offsets.npy"):
        corpus.save(folder, overwrite=True)
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[:-4])
        for verify, said in ((None, "its content has changed"), (False, "cut short")):
            with pytest.raises(CorpusFileError, match=f"{name} is damaged.*{said}.*; make the corpus again"):
                Corpus.load(folder, verify=verify)
        (folder / name).unlink()
        with pytest.raises(CorpusFileError, match=f"{name} is missing; make the corpus again"):
            Corpus.load(folder)
    corpus.save(folder, overwrite=True)
    path = folder / "corpus.json"
    about = json.loads(path.read_text())
    write_manifest(path, about | {"format_version": 99})
    with pytest.raises(CorpusFileError, match=r"corpus.json was written by a newer version of topicloom; install"):
        Corpus.load(folder)
    del about["n_docs"]
    write_manifest(path, about)
    with pytest.raises(CorpusFileError, match=r"corpus.json is damaged or cut short"):
        Corpus.load(folder)


def test_large_files_are_checked_on_request(tmp_path, monkeypatch):
    monkeypatch.setattr("topicloom.corpus.storage._CHECKED_BYTES", 10)
    Corpus.from_texts(TEXTS, **OPEN).save(tmp_path)
    content = (tmp_path / "texts.utf8").read_bytes()
    (tmp_path / "texts.utf8").write_bytes(b"C" + content[1:])
    assert Corpus.load(tmp_path).texts[0][0] == "C"
    with pytest.raises(CorpusFileError, match=r"texts\.utf8 is damaged"):
        Corpus.load(tmp_path, verify=True)


def test_from_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,text,label\n" + "".join(f'd{i},"{text}",x\n' for i, text in enumerate(TEXTS)))
    corpus = Corpus.from_file(path, **OPEN)
    assert corpus.ids == ["d0", "d1", "d2", "d3", "d4"]
    assert corpus.labels == ["x"] * 5
    written = Corpus.from_file(path, **OPEN, out=tmp_path / "corpus")
    assert same(corpus, written)
    assert not written.counts.data.flags.writeable
    assert same(corpus, Corpus.load(tmp_path / "corpus"))
    with pytest.raises(InputError, match="already holds files"):
        Corpus.from_file(path, out=tmp_path / "corpus")
    bare = Corpus.from_file(path, **OPEN, keep_texts=False, out=tmp_path / "corpus", overwrite=True)
    assert bare.texts is None
    with pytest.raises(InputError, match="no word is left"):
        Corpus.from_file(path, out=tmp_path / "other")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.csv", "corpus"]  # nothing half-made is left


@pytest.mark.parametrize("make", [np.array, sparse.csr_matrix, sparse.coo_array, sparse.csc_array, sparse.lil_matrix])
def test_from_counts(make):
    given = make(np.array([[0, 2, 0], [0, 0, 0], [1, 0, 3]]))
    before = given.copy()
    corpus = Corpus.from_counts(given, ["a", "b", "c"], labels=[1, 2, 3])
    np.testing.assert_array_equal(corpus.counts.toarray(), [[0, 2, 0], [0, 0, 0], [1, 0, 3]])
    assert corpus.counts.dtype == np.float32
    assert corpus.is_empty.tolist() == [False, True, False]
    assert corpus.labels == ["1", "2", "3"]
    corpus.counts.data[:] = 9
    assert abs(given - before).sum() == 0
    assert Corpus.from_counts(given).vocabulary == ["word0", "word1", "word2"]


def test_from_counts_mends_a_copy():
    data, indices, indptr = np.array([1.0, 0, 2, 3]), np.array([2, 1, 0, 2]), np.array([0, 4])
    given = sparse.csr_array((data, indices.astype(np.int64), indptr.astype(np.int64)), shape=(1, 3))
    corpus = Corpus.from_counts(given)
    assert corpus.counts.indices.tolist() == [0, 2]
    assert corpus.counts.data.tolist() == [2, 4]
    assert corpus.counts.indices.dtype == corpus.counts.indptr.dtype == np.int32
    assert given.nnz == 4
    assert given.indices.tolist() == [2, 1, 0, 2]


MAPPINGS = [{"c": 2, "a": 0, "b": 1}, {2: "c", 0: "a", 1: "b"}, {"c": np.int64(2), "a": 0, "b": 1}]


@pytest.mark.parametrize("vocabulary", MAPPINGS)
def test_a_mapping_as_vocabulary_has_the_order_of_its_numbers(vocabulary):
    assert Corpus.from_counts([[1, 2, 3]], vocabulary).vocabulary == ["a", "b", "c"]
    counts = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1]])
    assert document_npmi([["a", "b"]], counts, vocabulary=vocabulary) == pytest.approx(1)


@pytest.mark.parametrize(
    ("counts", "options", "message"),
    [
        ([[1, 2], [0, -3]], {}, "the count in row 1, column 1 is -3, which is negative"),
        ([[1, 2], [float("nan"), 0]], {}, "the count in row 1, column 0 is nan, which is not finite"),
        ([[1, float("inf")]], {}, "the count in row 0, column 1 is inf, which is not finite"),
        (
            [[0], [0], [0.5]],
            {},
            r"the count in row 2, column 0 is 0.5, which is not a whole number \(`fractional",
        ),
        ([[-0.5]], {"fractional": True}, "negative"),
        ([1, 2], {}, r"counts have shape \(2,\); give \(documents, words\), with at least one of each"),
        (np.zeros((0, 3)), {}, "counts have shape"),
        ([["a"]], {}, "counts are of type <U1; give numbers"),
        ([[1, 2]], {"vocabulary": ["a"]}, "the vocabulary has 1 word, and the counts have 2 columns"),
        ([[1, 2, 3]], {"vocabulary": ["a", "b", "a"]}, "the vocabulary contains 'a' twice"),
        ([[1, 2]], {"vocabulary": {"a", "b"}}, "is a set, which has no order"),
        ([[1, 2]], {"vocabulary": {"a": 3, "b": 5}}, "mapping that does not number the columns"),
        ([[1, 2]], {"vocabulary": {"a": 0, "b": 0}}, "mapping that does not number the columns"),
        ([[1]], {"vocabulary": ["a\n"]}, "blank or contains a line break"),
        ([[1]], {"texts": []}, "there are 0 texts and 1 documents; give one for each"),
        ([[1]], {"ids": "ab"}, "there are 2 ids and 1 documents; give one for each"),
    ],
)
def test_counts_that_cannot_be(counts, options, message):
    with pytest.raises(InputError, match=message):
        Corpus.from_counts(counts, **options)


def test_fractional_counts():
    assert Corpus.from_counts([[0.5]], fractional=True).counts.data.tolist() == [0.5]


def test_subset(tmp_path):
    corpus = Corpus.from_texts(TEXTS, **OPEN, labels="vwxyz")
    corpus.save(tmp_path / "corpus")
    for source in (corpus, Corpus.load(tmp_path / "corpus")):
        some = source[[3, 0]]
        np.testing.assert_array_equal(some.counts.toarray(), corpus.counts.toarray()[[3, 0]])
        assert (some.ids, some.labels, list(some.texts)) == (["3", "0"], ["y", "v"], [TEXTS[3], TEXTS[0]])
        assert source[1:3].ids == ["1", "2"]
        assert source[-1].ids == ["4"]
        assert source.subset(~source.is_empty).ids == ["0", "1", "3"]
        with pytest.raises(IndexError):
            source[[7]]
    some.save(tmp_path / "some")
    assert same(some, Corpus.load(tmp_path / "some"))


def test_new_texts_and_other_vocabularies():
    corpus = Corpus.from_texts(TEXTS, **OPEN)
    counts = corpus.encode(["", "mat cat unknown CAT", "unknown"])
    np.testing.assert_array_equal(counts.toarray(), [[0] * 6, [2, 1, 0, 0, 0, 0], [0] * 6])
    assert counts.dtype == np.float32
    assert corpus.encode([]).shape == (0, 6)
    np.testing.assert_array_equal(counts_of([["b", "b"]], ["a", "b"], Pretokenized()).toarray(), [[0, 2]])
    with pytest.raises(InputError, match="document 1: expected a text"):
        corpus.encode(["a", 3])
    aligned = corpus.over(["new", "dog", "cat"]).counts
    np.testing.assert_array_equal(aligned.toarray(), [[0, 0, 2], [0, 1, 1], [0] * 3, [0, 1, 0], [0] * 3])


def test_importing_needs_no_torch():
    import subprocess
    import sys

    code = (
        "import sys, types; package = types.ModuleType('topicloom'); package.__path__ = [sys.argv[1]]; "
        "sys.modules['topicloom'] = package; import topicloom.datasets; sys.exit('torch' in sys.modules)"
    )
    from topicloom import errors

    folder = errors.__file__.removesuffix("/errors.py")
    assert subprocess.run([sys.executable, "-c", code, folder], check=False).returncode == 0


def test_a_wrong_date_is_found_before_texts_are_counted(tmp_path):
    rows = [f"a cat,{'soon' if row == 250 else 2021}\n" for row in range(30_000)]
    (tmp_path / "a.csv").write_text("text,timestamp\n" + "".join(rows))
    counted = []

    def tokens(text):
        counted.append(text)
        return text.split()

    with pytest.raises(InputError, match="the timestamp of document 250 is 'soon', which cannot be read as a date"):
        Corpus.from_file(tmp_path / "a.csv", tokenizer=tokens)
    assert len(counted) < 300


def test_another_vocabulary_is_by_column():
    corpus = Corpus.from_texts([["cat", "dog", "cat"], ["dog"]], **OPEN)
    found = corpus.over({"cat": 1, "dog": 0})
    assert found.vocabulary == ["dog", "cat"]
    assert found.counts.toarray().tolist() == [[1, 2], [1, 0]]
    for vocabulary, said in (("cat", "a list of words"), (["cat", "cat", "dog"], "twice"), ({"cat", "dog"}, "order")):
        with pytest.raises(InputError, match=said):
            corpus.over(vocabulary)


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ({"first": "a cat", "second": "a dog"}, r"list\(texts\.values\(\)\)"),
        (np.ones((2, 3)), "Corpus.from_counts"),
        (sparse.csr_array(np.ones((2, 3))), "Corpus.from_counts"),
        ([[], [(0, 2), (1, 1)]], r"corpus2csc\(bags"),
    ],
)
def test_what_has_documents_and_is_no_list_of_texts(texts, said):
    with pytest.raises(InputError, match=said):
        Corpus.from_texts(texts, **OPEN)


def test_new_texts_are_those_that_a_corpus_is_made_of():
    corpus = Corpus.from_texts(TEXTS, **OPEN)
    with pytest.raises(InputError, match="single string"):
        corpus.encode("the cat")
    assert corpus.encode(np.array(["a cat", None], object)).sum() == 1  # a missing value of a column is no text


def test_a_second_index_is_not_left_out_in_silence():
    corpus = Corpus.from_texts(TEXTS, **OPEN)
    assert corpus[[1, 2], ...].ids == corpus[[1, 2], :].ids == ["1", "2"]
    for rows in ((1, 2), (slice(2), 0), ()):
        with pytest.raises(IndexError, match=r"corpus\[\[1, 2\]\]"):
            corpus[rows]


def test_tensors_are_labels_and_covariates():
    classes = torch.tensor([0, 1])
    corpus = Corpus.from_counts(np.ones((2, 2)), ids=classes, labels=classes, covariates={"class": classes})
    assert corpus.ids == corpus.labels == ["0", "1"]
    assert corpus.covariates["class"].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("word", [None, float("nan")])
def test_every_column_has_a_word(word):
    with pytest.raises(InputError, match="the word of column 1 in `vocabulary` is"):
        Corpus.from_counts(np.ones((2, 2)), ["cat", word])


@pytest.mark.parametrize("n_jobs", ["two", True, 1.5])
def test_a_number_of_workers_is_whole(n_jobs):
    with pytest.raises(SettingError, match="n_jobs"):
        Corpus.from_texts(TEXTS, **OPEN, n_jobs=n_jobs)
