"""The three parts of a corpus: drawn at random, by a covariate, or given."""

from __future__ import annotations

import numpy as np
import pytest

from topicloom.corpus import Corpus
from topicloom.corpus.inputs import split
from topicloom.datasets import synthetic_lda
from topicloom.errors import InputError, SettingError
from topicloom.experiments.jobs import split_documents

PLANTED = synthetic_lda(n_docs=60, n_topics=3, n_words=30, doc_length=20, random_state=0).corpus
NAMES = (["train"] * 6 + ["Val"] * 2 + ["test"] * 2) * 6


def with_column(values):
    return Corpus.from_counts(PLANTED.counts, PLANTED.vocabulary, covariates={"part": values})


def test_parts_that_are_drawn():
    parts, plan = split_documents(PLANTED)
    assert [part.ids for part in parts] == [part.ids for part in split(PLANTED)]
    assert plan == {"corpus": PLANTED.digest, "split": {"validation": 0.1, "test": 0.2}}


def test_parts_of_a_covariate():
    parts, plan = split_documents(with_column(NAMES), "part")
    assert [part.n_docs for part in parts] == [36, 12, 12]
    assert parts.validation.ids[:2] == ["6", "7"]
    assert plan["split"]["column"] == "part"
    assert plan != split_documents(with_column(NAMES[::-1]), "part")[1]  # the same counts, divided in another way


@pytest.mark.parametrize(
    ("values", "name", "said"),
    [
        (NAMES, "parts", "did you mean part"),
        ([*NAMES[:-1], "dev2"], "part", "document 59 has 'dev2' as 'part'; it should be train, validation or test"),
        ([*NAMES[:-1], None], "part", "document 59 has None"),
        ([1.0] * 60, "part", "are numbers"),
        (["train"] * 60, "part", "the validation part has no document"),
    ],
)
def test_covariates_that_are_no_parts(values, name, said):
    with pytest.raises(InputError, match=said):
        split_documents(with_column(values), name)


def test_own_parts_are_read_over_the_training_words():
    train = Corpus.from_texts(["cat dog", "dog bird cat"] * 5, min_df=1, max_df=1.0)
    validation = Corpus.from_texts(["cat fish", "fish", "bird bird cat"], min_df=1, max_df=1.0)
    parts, plan = split_documents(None, (train, validation, ["dog dog cat", "bird"]))
    assert all(part.vocabulary == train.vocabulary for part in parts)
    assert parts.validation.ids == ["0", "2"]  # "fish" is no word of the training documents
    np.testing.assert_array_equal(parts.test.counts.toarray(), train.encode(["dog dog cat", "bird"]).toarray())
    assert plan["split"] == "own parts"
    assert plan != split_documents(None, (train, validation, ["dog", "bird"]))[1]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((PLANTED, PLANTED), "three corpora"),
        (PLANTED, "three corpora"),
        (7, "three corpora"),
        ((PLANTED, PLANTED, [["nothing", "known"]]), "the test part has no document with a word"),
    ],
)
def test_own_parts_that_cannot_be_used(given, said):
    with pytest.raises(InputError, match=said):
        split_documents(PLANTED, given)


def test_shares_that_leave_nothing():
    with pytest.raises(SettingError, match="together below 1"):
        split_documents(PLANTED, None, 0.5, 0.5)
