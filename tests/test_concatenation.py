"""Several corpora as one: their words, their counts and their fields."""

from __future__ import annotations

import logging
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

import topicloom as tl
from topicloom.corpus import Corpus
from topicloom.corpus.fields import Categories
from topicloom.errors import InputError, SettingError
from topicloom.text import CustomTokenizer

MAY = ["a cat sees a dog", "the dog sleeps", "cats and a dog", ""]
JUNE = ["the fox sees a cat", "fox and hen", "the hen sleeps"]
OPEN = {"min_df": 1, "max_df": 1.0, "language": "en"}


def may(**options) -> Corpus:
    return Corpus.from_texts(MAY, **(OPEN | options))


def june(**options) -> Corpus:
    return Corpus.from_texts(JUNE, **(OPEN | options))


def dense(corpus: Corpus) -> np.ndarray:
    return corpus.counts.toarray()


def split_at_spaces(text: str) -> list[str]:
    return text.split()


def test_the_union_keeps_the_order_of_the_corpora():
    both = Corpus.concatenate([may(), june()])
    new = [word for word in june().vocabulary if word not in may().vocabulary]
    assert new  # or nothing is tested
    assert both.vocabulary == may().vocabulary + new
    whole = Corpus.from_texts(MAY + JUNE, **OPEN)
    assert set(both.vocabulary) == set(whole.vocabulary)
    np.testing.assert_array_equal(dense(both), dense(whole.over(both.vocabulary)))
    assert both.counts.dtype == np.float32
    assert both.counts.indices.dtype == both.counts.indptr.dtype
    assert both.counts.has_canonical_format
    assert list(both.texts) == MAY + JUNE
    assert both.settings == may().settings
    assert both.tokenizer == may().tokenizer
    assert isinstance(Corpus.concatenate(iter([may()])), Corpus)


def test_the_first_vocabulary_stays():
    both = Corpus.concatenate([may(), june(min_df=2)], vocabulary="first")
    assert both.vocabulary == may().vocabulary
    np.testing.assert_array_equal(dense(both)[len(MAY) :], june().over(may().vocabulary).counts.toarray())
    assert both.settings == may().settings
    model = tl.GSM(n_topics=2, epochs=1, random_state=0).fit(may())
    assert model.infer(both).theta.shape == (7, 2)


@pytest.mark.parametrize("vocabulary", ["union", "first"])
def test_words_that_one_corpus_filtered_out_are_counted_again(vocabulary, tmp_path):
    two = {"min_df": 2}
    assert "cat" not in june(**two).vocabulary
    assert "fox" not in may(**two).vocabulary
    one, other = Corpus.from_texts(["cat hen", "cat dog", "dog"], **(OPEN | two)), june(**two)
    other.save(tmp_path / "june")
    for given in (other, Corpus.load(tmp_path / "june")):
        both = Corpus.concatenate([one, given], vocabulary)
        assert dense(both)[:, both.vocabulary.index("cat")].tolist() == [1, 1, 0, 1, 0, 0]
        if vocabulary == "union":
            assert dense(both)[:, both.vocabulary.index("hen")].tolist() == [1, 0, 0, 0, 1, 1]


def test_words_that_cannot_be_counted_again_are_reported(caplog):
    parts = [may(min_df=2), june(min_df=2, keep_texts=False), june(min_df=2, keep_texts=False)]
    with caplog.at_level(logging.WARNING, "topicloom"):
        both = Corpus.concatenate(parts)
    said = "the texts of corpora 1, 2 are not known, so the words that the filters left out of corpora 1, 2"
    assert said in caplog.text
    assert "corpus 1 has no texts, so the texts of the others are left out" in caplog.text
    assert both.texts is None
    assert not both.has_order
    caplog.clear()
    whole = [may(keep_texts=False), june(keep_texts=False)]
    with caplog.at_level(logging.WARNING, "topicloom"):
        Corpus.concatenate(whole)
        Corpus.concatenate([Corpus.from_counts([[1, 2]], ["a", "b"]), Corpus.from_counts([[3]], ["b"])])
    assert "not known" not in caplog.text  # no filter left a word out


def test_lists_of_tokens_keep_their_order():
    one = Corpus.from_texts([["a", "b"], ["b"]], min_df=1, max_df=1.0)
    other = Corpus.from_texts([["c", "b"]], min_df=1, max_df=1.0)
    both = Corpus.concatenate([one, other])
    assert list(both.tokens()) == [["a", "b"], ["b"], ["c", "b"]]
    assert both.vocabulary == ["b", "a", "c"]
    np.testing.assert_array_equal(dense(both), [[1, 1, 0], [1, 0, 0], [1, 0, 1]])


def test_fields_that_only_some_have_are_unknown_of_the_others(tmp_path):
    one = may(
        ids=list("abcd"), labels=["x", None, "y", "x"], covariates={"price": [1, 2, 3, None], "kind": list("aabb")}
    )
    other = june(timestamps=["2021", None, "2022"], covariates={"kind": ["c", None, "a"], "place": [None] * 3})
    other.save(tmp_path / "june")
    for given in (other, Corpus.load(tmp_path / "june")):
        both = Corpus.concatenate([one, given])
        both.save(tmp_path / "both", overwrite=True)
        for found in (both, Corpus.load(tmp_path / "both")):
            assert found.ids == [*"abcd", "0", "1", "2"]
            assert found.labels == ["x", "", "y", "x", "", "", ""]
            assert np.datetime_as_string(found.times, "Y").tolist() == ["NaT"] * 4 + ["2021", "NaT", "2022"]
            np.testing.assert_array_equal(found.covariates["price"], [1, 2, 3, *[np.nan] * 4])
            assert found.covariates["kind"].names == ("a", "b", "c")
            assert found.covariates["kind"].values() == ["a", "a", "b", "b", "c", None, "a"]
            assert np.isnan(found.covariates["place"]).all()
            assert list(found.texts) == MAY + JUNE


def test_an_empty_column_takes_the_type_of_the_others():
    one, other = may(covariates={"kind": [None] * 4}), june(covariates={"kind": list("abc")})
    joined = Corpus.concatenate([one, other]).covariates["kind"]
    assert isinstance(joined, Categories)
    assert joined.values() == [None] * 4 + list("abc")


def test_documents_without_ids_of_their_own_are_numbered_anew(caplog):
    with caplog.at_level(logging.WARNING, "topicloom"):
        assert Corpus.concatenate([may(), june()]).ids == [str(row) for row in range(7)]
        whole = may()
        assert Corpus.concatenate([whole[2:], whole[:2]]).ids == ["2", "3", "0", "1"]
    assert "id" not in caplog.text.replace("vocabulary", "")
    with caplog.at_level(logging.WARNING, "topicloom"):
        Corpus.concatenate([may(ids=list("abcd")), june(ids=list("axy"))])
    assert "the id 'a' occurs 2 times" in caplog.text


def test_vectors_are_joined():
    one, other = may(vectors=np.ones((4, 3))), june(vectors=np.zeros((3, 3)))
    joined = Corpus.concatenate([one, other]).vectors
    assert joined.dtype == np.float32
    np.testing.assert_array_equal(joined, np.r_[np.ones((4, 3)), np.zeros((3, 3))])


def test_many_ids_take_little_memory(monkeypatch):
    monkeypatch.setattr("topicloom.corpus.fields.MOST_IN_A_LIST", 5)
    both = Corpus.concatenate([may(ids=list("abcd")), june(ids=list("xyz"))])
    assert not isinstance(both.ids, list)
    assert both.ids == list("abcdxyz")


def test_of_equal_custom_tokenizers_the_callable_one_is_kept(tmp_path, caplog):
    own = {"tokenizer": split_at_spaces, "language": "auto"}
    one, other = may(**own), june(**own)
    one.save(tmp_path / "may")
    other.save(tmp_path / "june")
    loaded = [Corpus.load(tmp_path / name) for name in ("may", "june")]
    both = Corpus.concatenate([loaded[0], other])
    assert both.encode(["fox"]).sum() == 1
    with caplog.at_level(logging.WARNING, "topicloom"):
        assert Corpus.concatenate(loaded).vocabulary == both.vocabulary  # it cannot split texts, and has not to
    assert "function" not in caplog.text
    filtered = [may(**own, min_df=2), june(**own, min_df=2)]
    for number, corpus in enumerate(filtered):
        corpus.save(tmp_path / str(number))
    with caplog.at_level(logging.WARNING, "topicloom"):
        Corpus.concatenate([Corpus.load(tmp_path / "0"), Corpus.load(tmp_path / "1")])
    assert (
        "the tokenizer's function is not known, so the words that the filters left out of corpora 0, 1" in caplog.text
    )


@pytest.mark.parametrize(
    ("corpora", "options", "says"),
    [
        (lambda: [], {}, "`corpora` is empty; give a list such as"),
        (may, {}, "`corpora` is a single corpus; give a list such as"),
        (lambda: "may", {}, "`corpora` is 'may'; give a list"),
        (lambda: {may()}, {}, "give a list"),
        (lambda: [may(), JUNE], {}, "corpus 1 of `corpora` is .*; make a corpus of it by Corpus.from_texts"),
        (lambda: [may(), june()], {"vocabulary": ["cat"]}, r"`vocabulary=\['cat'\]` should be 'union' or 'first'"),
        (lambda: [may(), june(min_df=2)], {}, r"corpus 0 \(`min_df=1`\) and corpus 1 \(`min_df=2`\) differ"),
        (
            lambda: [Corpus.from_counts([[1]], ["a"]), Corpus.from_texts([["a"]], min_df=1, max_df=1.0)],
            {},
            r"corpus 0 \(without filters\) and corpus 1 \(`min_df=1`\) differ",
        ),
        (lambda: [may(), june(language="fr")], {}, "`language` is 'en' in one, and 'fr' in the other; make both"),
        (
            lambda: [may(), june(stop_words=["hen"])],
            {"vocabulary": "first"},
            "the tokenizers of corpus 0 and corpus 1 differ: 'hen' is in `stop_words` of one alone",
        ),
        (
            lambda: [may(), Corpus.from_counts([[1]])],
            {},
            "one splits texts by the rules of a language, and the other takes lists",
        ),
        (
            lambda: [may(vectors=np.ones((4, 2))), june()],
            {},
            "corpus 0 has a vector for each document, and corpus 1 has none; make it with `vectors`",
        ),
        (
            lambda: [june(), may(vectors=np.ones((4, 2)))],
            {},
            "corpus 1 has a vector for each document, and corpus 0 has none",
        ),
        (
            lambda: [may(vectors=np.ones((4, 2))), june(vectors=np.ones((3, 5)))],
            {},
            "the vectors of corpus 1 have 5 numbers, and those of corpus 0 2; make both with the same model",
        ),
        (
            lambda: [may(covariates={"price": [1, 2, 3, 4]}), june(covariates={"price": list("abc")})],
            {},
            "the covariate 'price' has numbers in corpus 0 and categories in corpus 1; give it the same type in both",
        ),
    ],
)
def test_corpora_that_cannot_be_joined(corpora, options, says):
    with pytest.raises(InputError, match=says):
        Corpus.concatenate(corpora(), **options)


def test_another_name_of_the_vocabulary_is_a_wrong_setting():
    with pytest.raises(SettingError, match="should be 'union' or 'first'"):
        Corpus.concatenate([may()], "intersection")


def test_different_functions_of_one_name_are_refused():
    one = Corpus.from_texts(MAY, tokenizer=lambda text: text.split(), min_df=1, max_df=1.0)
    assert Corpus.concatenate([one, one]).n_docs == 8
    two = Corpus.from_texts(JUNE, tokenizer=lambda text: list(text), min_df=1, max_df=1.0)
    assert isinstance(two.tokenizer, CustomTokenizer)
    named = two.tokenizer.model_copy(update={"name": one.tokenizer.name})
    with pytest.raises(InputError, match="they are different functions of the name"):
        Corpus.concatenate([one, Corpus(two.counts, two.vocabulary, two.fields, named, two.settings)])


def test_no_matrix_is_dense(tmp_path):
    """Both corpora as dense matrices would take 4.8 GB."""
    n_docs, n_words = 20_000, 30_000
    rows = np.arange(n_docs)
    counts = sparse.csr_array((np.ones(n_docs), (rows, rows % n_words)), shape=(n_docs, n_words))
    parts = [Corpus.from_counts(counts, [f"{name}{word}" for word in range(n_words)]) for name in "ab"]
    parts[1].save(tmp_path / "part")
    tracemalloc.start()
    try:
        both = Corpus.concatenate([parts[0], Corpus.load(tmp_path / "part")])
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()
    assert both.shape == (2 * n_docs, 2 * n_words)
    assert both.n_tokens == 2 * n_docs
