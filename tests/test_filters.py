"""Filters of words: shares are of the documents that have words, and what is dropped is named."""

from __future__ import annotations

import logging
from collections import Counter

import pytest

import topicloom as tl


@pytest.mark.parametrize("n_blank", [0, 1, 10, 1000])
@pytest.mark.parametrize("blank", ["", "   ", "the and of"])
def test_blank_documents_do_not_change_the_vocabulary(n_blank, blank):
    texts = ["cat dog"] * 6 + ["cat fish"] * 4
    options = {"language": "en", "min_df": 0.45, "max_df": 0.7}
    corpus = tl.Corpus.from_texts(texts + [blank] * n_blank, **options)
    assert corpus.vocabulary == ["dog"]
    assert len(corpus) == 10 + n_blank


def test_shares_against_a_plain_count():
    texts = ["apple " * (row % 3) + "plum " * (row % 2) + "pear " * (row % 5 == 0) for row in range(60)]
    has = Counter(word for text in texts for word in set(text.split()))
    n_with_words = sum(bool(text.split()) for text in texts)
    assert n_with_words < len(texts)
    for share in (0.25, 0.5, 0.6, 0.7, 0.8, 0.9):
        kept = tl.Corpus.from_texts(texts, language="en", min_df=1, max_df=share).vocabulary
        assert set(kept) == {word for word, count in has.items() if count <= share * n_with_words}


def test_the_commonest_dropped_words_are_named(caplog):
    caplog.set_level(logging.INFO, "topicloom")
    names = [f"hero{letter}" for letter in "abcdefghijkl"]
    texts = [" ".join(names[: 12 - row % 2]) + f" word{chr(97 + row)}" for row in range(20)]
    tl.Corpus.from_texts(texts, language="en", min_df=1, max_df=0.4)
    (line,) = [record.getMessage() for record in caplog.records if "drops" in record.getMessage()]
    assert line == f"`max_df=0.4` drops 12 words, which are in more documents: {', '.join(names[:10])} and more"
    caplog.clear()
    tl.Corpus.from_texts(["plain cat", "plain dog"], language="en", min_df=1, max_df=1)
    assert "`max_df=1` drops 1 word, which is in more documents: plain" in caplog.text
    caplog.clear()
    tl.Corpus.from_texts(texts, language="en", min_df=1, max_df=1.0)
    assert "drops" not in caplog.text


def test_the_message_about_no_word_counts_documents_that_have_words():
    with pytest.raises(tl.InputError, match=r"^no word is left of 2 in 3 documents with words: "):
        tl.Corpus.from_texts(["cat dog", "", "cat", " ", "dog", ""], language="en", min_df=4)
