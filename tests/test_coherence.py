"""Coherence: by hand on tiny cases, by brute force over windows, and against gensim's CoherenceModel."""

from __future__ import annotations

import json
import tracemalloc
import warnings
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import topicloom as tl
from topicloom import metrics
from topicloom.errors import InputError
from topicloom.metrics import Reference, c_npmi, c_uci, c_v, c_w2v, cooccurrence, document_npmi, u_mass
from topicloom.metrics.cooccurrence import bits_are_faster, joint_document_counts

EPSILON = 1e-12
WINDOWED = [c_v, c_npmi, c_uci]


def made_texts(seed: int, n_words: int = 30, n_docs: int = 25, longest: int = 60) -> list[list[str]]:
    """Documents of all lengths, empty ones among them, with many words that come again."""
    random = np.random.default_rng(seed)
    lengths = random.integers(0, longest, n_docs)
    return [[f"w{i}" for i in random.zipf(1.5, length) % n_words] for length in lengths]


def windows(texts: list[list[str]], window: int | None) -> list[list[str]]:
    """Every window, one after another."""
    return [
        text[start : start + window] if window else text
        for text in texts
        for start in range(max(len(text) - window + 1, 1) if window else 1)
    ]


def joint(reference: Reference, words: str, **settings) -> np.ndarray:
    return reference.joint([np.array([reference.id_of(word) for word in words])], **settings)[0]


# Counting.


def test_windows_by_hand():
    """a b c d in windows of 2: ab bc cd; and x y, no longer than a window, is one."""
    reference = Reference.from_tokens([list("abcd"), list("xy"), list("a"), []])
    assert (reference.n_documents, reference.n_tokens, reference.n_words) == (4, 7, 6)
    assert reference.n_windows(2) == 3 + 1 + 1 + 1
    assert reference.n_windows(None) == 4
    expected = [[2, 1, 0, 0], [1, 2, 1, 0], [0, 1, 2, 1], [0, 0, 1, 1]]
    np.testing.assert_array_equal(joint(reference, "abcd", window=2), expected)
    np.testing.assert_array_equal(joint(reference, "xy", window=2), [[1, 1], [1, 1]])
    np.testing.assert_array_equal(joint(reference, "ax", window=None), [[2, 0], [0, 1]])


def test_a_word_that_comes_again():
    """a b a c in windows of 3: aba bac. gensim takes a to have left with its first occurrence."""
    reference = Reference.from_tokens([list("abac")])
    np.testing.assert_array_equal(joint(reference, "ab", window=3, counting="exact"), [[2, 2], [2, 2]])
    np.testing.assert_array_equal(joint(reference, "ab", window=3, counting="gensim"), [[1, 1], [1, 2]])


@pytest.mark.parametrize("window", [1, 2, 5, 10, 200, None])
def test_exact_counts_by_brute_force(window):
    texts = made_texts(0)
    reference = Reference.from_tokens(texts)
    every = [set(each) for each in windows(texts, window)]
    words = [f"w{i}" for i in (1, 2, 3, 7, 11) if any(f"w{i}" in text for text in texts)]
    expected = [[sum({one, two} <= each for each in every) for one in words] for two in words]
    assert np.array(expected).max() > 1
    assert reference.n_windows(window) == len(every)
    found = reference.joint([np.array([reference.id_of(w) for w in words])], window, "exact")[0]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("window", [10, None])
@pytest.mark.parametrize("counting", ["gensim", "exact"])
def test_counts_do_not_depend_on_the_block_size(monkeypatch, counting, window):
    texts = made_texts(1, n_docs=40)
    groups = [np.array([0, 1, 2]), np.array([2, 5, 6, 7]), np.array([3, 1]), np.array([4])]
    whole = Reference.from_tokens(texts).joint(groups, window, counting)
    monkeypatch.setattr(cooccurrence, "_TOKENS_AT_ONCE", 17)
    monkeypatch.setattr(cooccurrence, "_DOCUMENTS_AT_ONCE", 3)
    monkeypatch.setattr("topicloom.metrics.cooccurrence._INTERVALS_AT_ONCE", 5)
    monkeypatch.setattr("topicloom.metrics.cooccurrence._OVERLAPS_AT_ONCE", 2)
    monkeypatch.setattr("topicloom.metrics.cooccurrence._NUMBERS_AT_ONCE", 9)
    for one, other in zip(whole, Reference.from_tokens(iter(texts)).joint(groups, window, counting), strict=True):
        assert one.sum() > 0
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("counting", ["gensim", "exact"])
@pytest.mark.parametrize("per_interval", [0, 1e9])
def test_whole_documents_are_counted_as_windows_are(monkeypatch, per_interval, counting):
    """By bits or not; and a document that is longer, of another word, makes windows of the others that hold all."""
    monkeypatch.setattr("topicloom.metrics.cooccurrence._OPERATIONS_PER_INTERVAL", per_interval)
    by_bits = []
    count = joint_document_counts
    monkeypatch.setattr(cooccurrence, "joint_document_counts", lambda *rest: (by_bits.append(rest), count(*rest))[1])
    texts = [*made_texts(3, n_docs=70), [], ["w1"], ["w99", "w1"]]
    longer = ["other"] * (max(map(len, texts)) + 1)
    documents, beside = Reference.from_tokens(texts), Reference.from_tokens([*texts, longer])
    groups = [[documents.id_of(f"w{i}") for i in some] for some in ((1, 2, 5), (99, 1), (3,), ())]
    groups = [np.array(group, np.int64) for group in groups]
    expected = beside.joint(groups, len(longer) - 1, counting)
    assert not by_bits
    found = documents.joint(groups, None, counting)
    assert bool(by_bits) == bool(per_interval)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    in_w1 = sum("w1" in text for text in texts)
    assert found[1].tolist() == [[1, 1], [1, in_w1]]  # w99 is in one document, with w1


def test_bits_are_for_words_that_are_in_many_documents():
    tokens = np.tile(np.arange(20, dtype=np.int32), 500)
    groups = [np.arange(10), np.arange(10, 20)]
    assert bits_are_faster(tokens, 500, groups, 20)
    assert not bits_are_faster(tokens, 500 * 500, groups, 20)
    assert not bits_are_faster(np.full_like(tokens, -1), 500, groups, 20)


def test_a_reference_without_documents():
    nothing = Reference.from_ids([], [0], ["a", "b"])
    for window in (None, 3):
        np.testing.assert_array_equal(nothing.joint([np.array([0, 1])], window)[0], np.zeros((2, 2)))


def test_counts_are_kept(monkeypatch):
    texts = made_texts(2)
    reference, topics = Reference.from_tokens(texts), [["w1", "w2", "w3"], ["w2", "w4"]]
    before = c_npmi(topics, reference)
    calls = []
    count = Reference._count
    monkeypatch.setattr(Reference, "_count", lambda self, *rest: (calls.append(rest[0]), count(self, *rest)))
    np.testing.assert_array_equal(c_npmi(topics, reference).per_topic, before.per_topic)
    c_uci([["w3", "w1"], ["w4"], ["w2"]], reference)  # fewer words, the same windows
    assert calls == []
    after = c_npmi([["w1", "w5"], *topics], reference)
    assert len(calls) == 1
    assert len(calls[0]) == 1  # the new topic alone
    np.testing.assert_array_equal(after.per_topic, c_npmi([["w1", "w5"], *topics], texts).per_topic)


@pytest.mark.parametrize("window", [10, None])
def test_memory_does_not_grow_with_the_reference(monkeypatch, window):
    monkeypatch.setattr(cooccurrence, "_TOKENS_AT_ONCE", 1000)
    monkeypatch.setattr("topicloom.metrics.cooccurrence._NUMBERS_AT_ONCE", 1000)
    groups = [np.arange(5)]

    def peak(n_tokens: int) -> int:
        ids = np.random.default_rng(0).integers(0, 20, n_tokens).astype(np.int32)
        reference = Reference.from_ids(ids, np.arange(0, n_tokens + 1, 50))
        tracemalloc.start()
        reference.joint(groups, window)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(2000)
    assert peak(200_000) < 1.5 * peak(20_000)


# Kinds of reference.


def test_ids_and_tokens_are_the_same_reference(tmp_path):
    texts = made_texts(3)
    vocabulary = sorted({word for text in texts for word in text})
    number = {word: i for i, word in enumerate(vocabulary)}
    ids = np.array([number[word] for text in texts for word in text], np.uint16)
    offsets = np.cumsum([0, *map(len, texts)])
    np.save(tmp_path / "ids.npy", ids)
    mapped = Reference.from_ids(np.load(tmp_path / "ids.npy", mmap_mode="r"), offsets, vocabulary)
    topics = [["w1", "w2", "w3"], ["w4", "w2", "w9"]]
    numbered = np.array([[number[word] for word in topic] for topic in topics])
    for measure in (*WINDOWED, u_mass):
        expected = measure(topics, texts).per_topic
        np.testing.assert_array_equal(measure(topics, mapped).per_topic, expected)
        np.testing.assert_array_equal(measure(numbered, Reference.from_ids(ids, offsets)).per_topic, expected)


def test_a_token_that_is_no_word_takes_its_place():
    with_gap = Reference.from_ids([0, -1, 1], [0, 3])
    assert joint_of_ids(with_gap, [0, 1], 2)[0, 1] == 0
    assert joint_of_ids(with_gap, [0, 1], 3)[0, 1] == 1


def joint_of_ids(reference: Reference, ids: list[int], window: int) -> np.ndarray:
    return reference.joint([np.array(ids)], window)[0]


def test_counts_are_documents():
    texts = made_texts(4)
    vocabulary = sorted({word for text in texts for word in text})
    counts = np.array([[text.count(word) for word in vocabulary] for text in texts])
    topics = [["w1", "w2", "w3"], ["w4", "w2", "w9"]]
    numbered = [[vocabulary.index(word) for word in topic] for topic in topics]
    expected = u_mass(topics, texts).per_topic
    zeros = sp.csr_array(counts)
    zeros.data[:3] = 0  # explicit zeros are no words
    for given in (counts, sp.csr_array(counts), sp.csc_array(counts), sp.coo_array(counts)):
        np.testing.assert_allclose(u_mass(topics, given, vocabulary).per_topic, expected, rtol=1e-12)
        np.testing.assert_allclose(u_mass(numbered, given).per_topic, expected, rtol=1e-12)
    np.testing.assert_array_equal(u_mass(numbered, zeros).per_topic, u_mass(numbered, zeros.toarray()).per_topic)


def test_chinese_tokens():
    texts = [["经济", "增长", "市场"], ["市场", "经济"], ["足球", "比赛"]]
    value = u_mass([["经济", "市场"]], texts)
    assert float(value) == pytest.approx(np.log((2 / 3 + EPSILON) / (2 / 3)), abs=1e-9)
    assert c_npmi([["足球", "比赛"]], texts).unseen == ()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Reference.from_tokens("a text"), "list of documents"),
        (lambda: Reference.from_tokens(["a text"]), "lists of tokens"),
        (lambda: Reference.from_ids([0.5], [0, 1]), "whole numbers"),
        (lambda: Reference.from_ids([0, 1], [0, 1]), "from 0 to the number of ids, which is 2"),
        (lambda: Reference.from_ids([0, 1], [0, 2, 1, 2]), "must rise"),
        (lambda: Reference.from_ids([0, 3], [0, 2], ["a", "b"]), "from 0 to 3"),
        (lambda: Reference.from_ids([0, -2], [0, 2]), "from -2"),
        (lambda: Reference.from_ids([0, 1], [0, 2], ["a", "a"]), "twice"),
        (lambda: Reference.from_counts(np.eye(2), ["a"]), "1 word, and the counts have 2 columns"),
        (lambda: c_v([["a", "b"]], sp.eye_array(2)), "order of words"),
        (lambda: c_v([[0, 1]], Reference.from_counts(np.eye(2))), "order of words"),
        (lambda: c_v(["a", "b"], [["a", "b"]]), "'a' is not a topic"),
        (lambda: c_v([["a", "b"]], [["a", "b"]], window=0), "window=0"),
        (lambda: c_v([["a", "b"]], [["a", "b"]], top_n=0), "top_n=0"),
        (lambda: c_v([["a", "b"]], [["a", "b"]], epsilon=0), "epsilon=0"),
        (lambda: c_v([["a", "b"]], [["a", "b"]], counting="other"), "counting='other'"),
        (lambda: c_w2v([["a"]], np.eye(2), ["a"]), "1 words and 2 vectors"),
    ],
)
def test_what_cannot_be_is_said(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# A corpus, and what cannot be a reference.

ENGLISH = [
    "the cat sees a dog and a bird",
    "a dog and the cat",
    "stocks and bonds fall",
    "bonds rise , stocks fall",
] * 3


@pytest.mark.parametrize("measure", [*WINDOWED, u_mass, document_npmi], ids=lambda measure: measure.__name__)
def test_a_corpus_is_a_reference(measure):
    corpus = tl.Corpus.from_texts(ENGLISH, language="en", min_df=2, max_df=1.0)
    topics = [["cat", "dog", "bird"], ["stocks", "bonds", "fall", "rise"]]
    tokens = [corpus.tokenizer(text) for text in ENGLISH]
    found = measure(topics, corpus)
    np.testing.assert_array_equal(found.per_topic, measure(topics, tokens).per_topic)
    assert (found.per_topic != 0).all()
    assert found.settings["reference"] == "the corpus"


@pytest.mark.parametrize("measure", WINDOWED, ids=lambda measure: measure.__name__)
def test_windows_need_texts_for_the_order_of_words(measure):
    corpus = tl.Corpus.from_texts(ENGLISH, language="en", min_df=2, max_df=1.0, keep_texts=False)
    with pytest.raises(
        InputError, match="the order of words is not known, because the corpus has counts without texts"
    ):
        measure([["cat", "dog"]], corpus)
    with pytest.raises(InputError, match="counts do not include the order of words"):
        measure([[0, 1]], corpus.counts)
    whole = measure([["cat", "dog", "bird"]], corpus, window=None)  # needs no order
    tokens = [corpus.tokenizer(text) for text in ENGLISH]
    np.testing.assert_array_equal(whole.per_topic, measure([["cat", "dog", "bird"]], tokens, window=None).per_topic)


@pytest.mark.parametrize("measure", [*WINDOWED, u_mass, document_npmi], ids=lambda measure: measure.__name__)
@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (pd.DataFrame({"text": [["cat"], ["dog"]]}), "a data frame cannot be the reference corpus"),
        ({"cat": ["dog"]}, "of type dict"),
        ([{"text": "cat dog"}], "document 0 of the reference corpus is of type dict"),
        ([["cat", "dog"], "cat dog"], "document 1 of the reference corpus is a string"),
        ([["cat"], [["cat", "dog"]]], "something else than tokens"),
        ([3, 4], "document 0 of the reference corpus is of type int"),
        ([[0.0, 2.0], [1.0, 0.0]], "contains the number 0.0"),
        ([[0, 2], [1, 0]], "both must be words or both must be ids"),
        ([tl.Corpus.from_counts([[1, 2]], ["cat", "dog"])], "document 0 of the reference corpus is of type Corpus"),
        (None, "of type NoneType"),
    ],
)
def test_what_cannot_be_a_reference_is_refused(measure, reference, message):
    with pytest.raises(InputError, match=message):
        measure([["cat", "dog"]], reference)


def test_words_and_ids_are_not_mixed_up():
    counts = sp.csr_array([[1, 1], [0, 2]])
    for measure in (u_mass, document_npmi):
        with pytest.raises(InputError, match="only word ids; give it the vocabulary"):
            measure([["cat", "dog"]], counts)
        with pytest.raises(InputError, match="topics have words such as 0"):
            measure([[0, 1]], [["cat", "dog"]])


# Values by hand.

# Windows of 2: ab ba ac | bc | empty: a in 3 of 5, b in 3, c in 2; ab 2, ac 1, bc 1. Whole documents: a in 1 of 3.
BY_HAND = [list("abac"), list("bc"), []]


def test_npmi_and_uci_by_hand():
    pairs = {"ab": (2, 3, 3), "ac": (1, 3, 2), "bc": (1, 3, 2)}
    pmi = {pair: np.log((both / 5) / (one / 5 * two / 5)) for pair, (both, one, two) in pairs.items()}
    npmi = {pair: pmi[pair] / -np.log(pairs[pair][0] / 5) for pair in pairs}
    topics = [list("ab"), list("ca"), list("abc")]
    expected = [pmi["ab"], pmi["ac"], sum(pmi.values()) / 3]
    result = c_uci(topics, BY_HAND, window=2)
    np.testing.assert_allclose(result.per_topic, expected, atol=1e-9)
    assert float(result) == pytest.approx(np.mean(expected))
    expected = [npmi["ab"], npmi["ac"], sum(npmi.values()) / 3]
    np.testing.assert_allclose(c_npmi(topics, BY_HAND, window=2).per_topic, expected, atol=1e-9)
    np.testing.assert_allclose(c_npmi([list("abc")], BY_HAND, window=2, top_n=2).per_topic, expected[:1], atol=1e-9)


def test_c_v_by_hand():
    ab = np.log((2 / 5) / (9 / 25)) / -np.log(2 / 5)
    own = np.log((3 / 5) / (9 / 25)) / -np.log(3 / 5)  # 1
    assert own == pytest.approx(1)
    vector, whole = np.array([own, ab]), np.array([own + ab, own + ab])
    expected = vector @ whole / np.sqrt((vector @ vector) * (whole @ whole))
    assert float(c_v([list("ab")], BY_HAND, window=2)) == pytest.approx(expected, abs=1e-9)


def test_u_mass_by_hand():
    """b in 2 documents of 3, a and c: a in 1, c in 2; ab 1, bc 2. The word ranked before is the condition."""
    assert float(u_mass([list("ba")], BY_HAND)) == pytest.approx(np.log(1 / 2), abs=1e-9)
    assert float(u_mass([list("ab")], BY_HAND)) == pytest.approx(0, abs=1e-9)
    assert float(u_mass([list("bac")], BY_HAND)) == pytest.approx((np.log(1 / 2) + 0 + 0) / 3, abs=1e-9)


def test_words_that_never_meet():
    texts = [["a"], ["b"], ["a"]]
    assert float(c_uci([["a", "b"]], texts)) == pytest.approx(np.log(EPSILON / (2 / 9)))
    assert float(u_mass([["a", "b"]], texts)) == pytest.approx(np.log(EPSILON / (2 / 3)))
    assert float(c_npmi([["a", "b"]], texts)) == pytest.approx(np.log(EPSILON / (2 / 9)) / -np.log(EPSILON))


def test_c_w2v_by_hand():
    vectors = {"x": np.array([1.0, 0.0]), "y": np.array([0.0, 2.0]), "zero": np.zeros(2)}
    # The mean of x and y is (1/2, 1): cosines 1 / sqrt(5) and 2 / sqrt(5).
    expected = 1.5 / np.sqrt(5)
    result = c_w2v([["x", "y"], ["x"], ["x", "gone", "y"], ["gone"], [], ["zero", "zero"]], vectors)
    np.testing.assert_allclose(result.per_topic, [expected, 1, expected, 0, 0, 0])
    assert (result.unseen, result.undefined) == (("gone",), (3, 4))
    assert float(result) == pytest.approx((2 * expected + 1 + 0) / 4)
    array = np.stack(list(vectors.values()))
    assert float(c_w2v([["x", "y"]], array, list(vectors))) == pytest.approx(expected)
    assert float(c_w2v([[0, 1]], array)) == pytest.approx(expected)
    assert c_w2v([[0, -1, 7]], array).unseen == (-1, 7)


# What no pair can be made of.


@pytest.mark.parametrize("measure", [*WINDOWED, u_mass])
def test_topics_without_a_pair(measure):
    texts = made_texts(5)
    good = ["w1", "w2", "w3"]
    topics = [good, ["w1"], [], ["nowhere"], ["nowhere", "w2", "nowhere"]]
    result = measure(topics, texts)
    assert result.unseen == ("nowhere",)
    assert np.isfinite(result.per_topic).all()
    lone = measure is c_v  # a word is in perfect accord with itself, as gensim has it
    np.testing.assert_allclose(result.per_topic[1:], [lone, 0, 0, lone])
    assert result.undefined == ((2, 3) if lone else (1, 2, 3, 4))
    assert float(result) == pytest.approx(result.per_topic[[0, 1, 4]].mean() if lone else result.per_topic[0])
    assert float(measure([[], ["nowhere"]], texts)) == 0
    assert float(measure([], texts)) == 0
    assert float(measure([good], [])) == 0
    assert float(measure([good], [[], []])) == 0
    # A word never seen takes nothing from its topic.
    np.testing.assert_array_equal(measure([[*good, "nowhere"]], texts).per_topic, result.per_topic[:1])


def test_a_known_word_in_no_document():
    """Only u_mass has a value for it, gensim's."""
    ids, offsets, words = [0, 1, 0], [0, 2, 3], ["a", "b", "never"]
    reference = Reference.from_ids(ids, offsets, words)
    for measure in WINDOWED:
        result = measure([["a", "never", "b"]], reference)
        assert result.unseen == ("never",)
        np.testing.assert_array_equal(result.per_topic, measure([["a", "b"]], reference).per_topic)
    result = u_mass([["a", "never", "b"]], reference)
    expected = np.mean([np.log(EPSILON / 1), np.log((1 / 2 + EPSILON) / 1), 0])
    assert float(result) == pytest.approx(expected, abs=1e-9)
    assert result.unseen == ("never",)


# Results.


def test_a_result_says_how_it_was_taken():
    texts = made_texts(6)
    reference = Reference.from_tokens(texts, name="made")
    result = c_v([["w1", "w2"], ["nowhere"]], reference, top_n=5, window=7)
    about = result.to_dict()
    assert json.loads(json.dumps(about)) == about
    assert about["value"] == float(result) == result.per_topic[0]
    expected = {
        "measure": "c_v",
        "top_n": 5,
        "window": 7,
        "epsilon": EPSILON,
        "counting": "gensim",
        "reference": "made",
        "n_documents": len(texts),
        "n_tokens": sum(map(len, texts)),
        "n_windows": len(windows(texts, 7)),
        "unseen": ["nowhere"],
        "undefined": [1],
    }
    assert {name: about[name] for name in expected} == expected
    numbered = c_uci(np.array([[0, 99]]), Reference.from_ids([0], [0, 1])).to_dict()
    assert json.loads(json.dumps(numbered))["unseen"] == [99]
    assert u_mass([["w1", "w2"]], texts).settings["window"] is None


# Whole documents.


def test_document_npmi_of_words_and_of_references():
    counts = sp.csr_array([[2, 1, 1, 0], [1, 0, 1, 0], [0, 3, 1, 0], [0, 0, 1, 0]])
    by_id = document_npmi([[0, 1], [1, 2]], counts)
    by_word = document_npmi([["a", "b"], ["b", "c"]], counts, vocabulary=list("abcd"))
    np.testing.assert_array_equal(by_word.per_topic, by_id.per_topic)
    reference = Reference.from_counts(counts)
    np.testing.assert_array_equal(document_npmi([[0, 1], [1, 2]], reference).per_topic, by_id.per_topic)
    # A word in no document, and one that there is not, meet no other.
    found = document_npmi([[0, 3], [0, 9], [], [0]], counts)
    np.testing.assert_array_equal(found.per_topic, [-1, -1, 0, 0])
    assert (found, found.unseen, found.undefined) == (-0.5, (3, 9), ())
    assert (document_npmi([], counts), len(document_npmi([], counts).per_topic)) == (0, 0)


# gensim.


@pytest.fixture(scope="module")
def gensim() -> ModuleType:
    return pytest.importorskip("gensim", reason="gensim, whose values these are to be, is not installed")


def theirs(measure: str, topics: list[list[str]], texts: list[list[str]], window: int | None = None, **settings):
    """(K,) gensim's values"""
    from gensim.corpora import Dictionary
    from gensim.models.coherencemodel import CoherenceModel

    model = CoherenceModel(
        topics=topics,
        texts=texts,
        coherence=measure,
        window_size=window,
        processes=1,
        **{"dictionary": Dictionary(texts), **settings},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # gensim divides by zero, and takes the mean of nothing
        return np.array(model.get_coherence_per_topic()), model.get_coherence()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("window", [None, 1, 2, 7])
@pytest.mark.parametrize("measure", WINDOWED, ids=lambda measure: measure.__name__)
def test_windowed_measures_are_gensims(gensim, measure, window, seed):
    """Words that come again in windows and in topics, empty documents, and documents longer than the window."""
    texts = made_texts(seed, longest=150)
    random = np.random.default_rng(seed)
    topics = [[f"w{i}" for i in random.integers(0, 12, 6)] for _ in range(5)]
    expected, mean = theirs(measure.__name__, topics, texts, window)
    result = measure(topics, texts, **({} if window is None else {"window": window}))
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(result.per_topic, expected, atol=1e-9)
    assert float(result) == pytest.approx(mean, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_u_mass_is_gensims(gensim, seed):
    texts = made_texts(seed)
    topics = [[f"w{i}" for i in row] for row in np.random.default_rng(seed).integers(0, 12, (5, 6))]
    expected, mean = theirs("u_mass", topics, texts)
    np.testing.assert_allclose(u_mass(topics, texts).per_topic, expected, atol=1e-9)
    assert float(u_mass(topics, texts)) == pytest.approx(mean, abs=1e-9)


def test_c_w2v_is_gensims(gensim):
    from gensim.models import KeyedVectors

    texts = made_texts(0)
    words = [f"w{i}" for i in range(1, 9)]
    vectors = KeyedVectors(5)
    vectors.add_vectors(words[:-1], np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32))
    topics = [["w1", "w2", "w3"], ["w4"], ["w5", "w8", "w6"], ["w1", "w1", "w2"]]  # w8 has no vector
    expected, mean = theirs("c_w2v", topics, texts, keyed_vectors=vectors)
    result = c_w2v(topics, vectors)
    np.testing.assert_allclose(result.per_topic, expected, atol=1e-6)
    assert float(result) == pytest.approx(mean, abs=1e-6)
    assert result.unseen == ("w8",)
    assert float(c_w2v(topics, vectors.vectors, words[:-1])) == pytest.approx(float(result))


def test_odd_topics_are_gensims_where_it_has_a_value(gensim):
    from gensim.corpora import Dictionary

    texts = made_texts(0)
    for topic in (["w1"], ["w1", "w1"], ["w1", "w2", "w1"], ["w1", "nowhere", "w2"]):
        for measure in (*WINDOWED, u_mass):
            expected, _ = theirs(measure.__name__, [topic], texts)
            if np.isfinite(expected).all():
                np.testing.assert_allclose(measure([topic], texts).per_topic, expected, atol=1e-9)
            else:
                assert measure([topic], texts).undefined == (0,)
    # A word that gensim's dictionary knows, and no document holds.
    words = sorted({word for text in texts for word in text})
    dictionary, topic = Dictionary([*texts, ["never"]]), ["w1", "never", "w2", "w3"]
    ids = [words.index(word) for text in texts for word in text]
    reference = Reference.from_ids(ids, np.cumsum([0, *map(len, texts)]), [*words, "never"])
    for measure in WINDOWED:
        expected, _ = theirs(measure.__name__, [topic], texts, dictionary=dictionary)
        assert not np.isfinite(expected).any()
        assert np.isfinite(measure([topic], reference).per_topic).all()
    expected, _ = theirs("u_mass", [topic], texts, dictionary=dictionary)
    np.testing.assert_allclose(u_mass([topic], reference).per_topic, expected, atol=1e-9)


def test_public_names():
    assert {"Measured", "Reference", *(measure.__name__ for measure in (*WINDOWED, u_mass, c_w2v))} <= set(
        metrics.__all__
    )
    assert all(hasattr(metrics, name) for name in metrics.__all__)
