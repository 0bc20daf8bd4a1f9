"""Copies of documents, against a comparison of all pairs."""

import random

import numpy as np
import pytest

import topicloom as tl
from topicloom.errors import InputError
from topicloom.text.duplicates import Copies

OPEN = {"language": "en", "min_df": 1, "max_df": 1.0}


def runs(text):
    words = text.lower().split()
    return {tuple(words[place : place + 3]) for place in range(len(words) - 2)}


def brute_force(texts):
    """The copies of earlier documents that are no copies themselves, by comparing all pairs."""
    found, firsts = {}, []
    for row, text in enumerate(texts):
        near = [
            first
            for first in firsts
            if texts[first].lower() == text.lower()
            or (
                min(len(text.split()), len(texts[first].split())) >= 10
                and len(runs(text) & runs(texts[first])) >= 0.8 * len(runs(text) | runs(texts[first]))
            )
        ]
        if near:
            found[row] = near
        else:
            firsts.append(row)
    return found


def texts_with_copies():
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefgh", k=5)) for _ in range(200)]
    texts = [" ".join(rng.choices(words, k=rng.choice([4, 12, 40, 80]))) for _ in range(150)]
    for _ in range(150):
        copy = rng.choice(texts).split()
        for _ in range(rng.choice([0, 1, 2, 5])):
            copy[rng.randrange(len(copy))] = rng.choice(words)
        texts.append(" ".join(copy).upper())
    return texts


def test_copies_are_those_of_all_pairs():
    texts = texts_with_copies()
    copies = Copies()
    parts = [copies.add(texts[start : start + 7]) for start in range(0, len(texts), 7)]
    wanted = brute_force(texts)
    assert 30 < len(wanted) < 140
    assert copies.first_of.keys() == wanted.keys()
    assert all(first in wanted[row] for row, first in copies.first_of.items())
    assert np.flatnonzero(~np.concatenate(parts)).tolist() == list(wanted)


def test_markup_links_and_case_make_no_difference():
    texts = ["Tom &amp; Jerry: <b>run</b> https://a.example/1", "tom & jerry run", "", "", "新闻 报道。", "新闻报道"]
    copies = Copies()
    copies.add(texts)
    assert copies.first_of == {1: 0, 5: 4}
    assert Copies(limit=3).add([["a"], ["a"], ["b"]]).tolist() == [True, False, True]


def test_dropped_copies_leave_all_fields_in_step():
    texts = ["cat dog", "fish pond", "Cat, dog!", "cat dog", "bird tree"]
    corpus = tl.Corpus.from_texts(texts, **OPEN, drop_duplicates=True, labels="abcde", timestamps=range(2001, 2006))
    assert list(corpus.texts) == ["cat dog", "fish pond", "bird tree"]
    assert (corpus.ids, corpus.labels) == (["0", "1", "4"], ["a", "b", "e"])
    assert corpus.times.astype("datetime64[Y]").astype(str).tolist() == ["2001", "2002", "2005"]
    assert corpus.covariates["copies"].tolist() == [3, 1, 1]
    assert corpus.counts.sum() == 6
    tokens = tl.Corpus.from_texts([["a", "b"], ["a", "b"], ["c"]], min_df=1, max_df=1.0, drop_duplicates=True)
    assert tokens.vocabulary == ["a", "b", "c"]
    with pytest.raises(InputError, match="'copies', and the documents have one already"):
        tl.Corpus.from_texts(texts, **OPEN, drop_duplicates=True, covariates={"copies": [1, 2, 3, 4, 5]})


def test_copies_in_a_file_are_named(tmp_path, caplog):
    path = tmp_path / "a.csv"
    path.write_text("text,label\n" + "cat dog,pets\nfish pond,water\n" * 6)
    with caplog.at_level("INFO", "topicloom"):
        assert tl.Corpus.from_file(path, **OPEN).n_docs == 12
    assert "10 of 12 documents (83.3%) repeat earlier ones (10 word for word)" in caplog.text
    corpus = tl.Corpus.from_file(path, **OPEN, drop_duplicates=True, out=tmp_path / "corpus")
    assert (corpus.n_docs, corpus.labels) == (2, ["pets", "water"])
    assert corpus.covariates["copies"].tolist() == [6, 6]
    assert list(tl.Corpus.load(tmp_path / "corpus").texts) == ["cat dog", "fish pond"]
