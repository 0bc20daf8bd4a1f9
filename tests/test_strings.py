"""Ids and labels of many documents: a sequence of strings in place of a list."""

from __future__ import annotations

import numpy as np
import pytest

import topicloom as tl
from topicloom.corpus import fields
from topicloom.corpus.fields import compact, row_numbers
from topicloom.text.strings import RowNumbers, StoredTexts

COUNTS = np.eye(6, dtype=np.float32)
IDS = ["a", "é", "", "10", "d", "a"]
LABELS = ["x", "y", "", "y", "x", "z"]


@pytest.fixture(params=["lists", "sequences"])
def most(request, monkeypatch):
    """How many strings are kept in a list: six, or none."""
    monkeypatch.setattr(fields, "MOST_IN_A_LIST", 6 if request.param == "lists" else 0)
    return request.param


def test_row_numbers_behave_as_a_list(most):
    found, expected = row_numbers(12), [str(row) for row in range(12)]
    assert isinstance(found, RowNumbers)
    assert found == expected
    assert expected == found
    assert found == tuple(expected)
    assert found != expected[:-1]
    assert found != [*expected[:-1], "x"]
    assert found == row_numbers(12)
    assert (found[3], found[-1], found.index("7"), len(found)) == ("3", "11", 7, 12)
    assert found[2:4] == ["2", "3"]
    assert [name in found for name in ("0", "11", "12", "-1", "03", "x", "²", "1" * 5000)] == [True, True] + [False] * 6
    taken = found.take(np.array([5, 5, 0]))
    assert (list(taken), "5" in taken, "1" in taken) == (["5", "5", "0"], True, False)
    with pytest.raises(IndexError):
        found[12]


def test_strings_are_kept_as_they_are(most):
    found = compact(IDS)
    assert isinstance(found, list) == (most == "lists")
    assert isinstance(found, StoredTexts) == (most == "sequences")
    assert found == IDS
    assert found == IDS
    assert (found.index("10"), "é" in found, found.count("a"), found != IDS[::-1]) == (3, True, 2, True)


@pytest.mark.parametrize("ids", [IDS, None])
def test_either_form_gives_the_same_ids_and_labels(most, ids, tmp_path):
    corpus = tl.Corpus.from_counts(COUNTS, ids=ids, labels=LABELS)
    corpus.save(tmp_path / "corpus")
    rows, names = [4, 1, 1], list("012345") if ids is None else IDS
    for each in (corpus, tl.Corpus.load(tmp_path / "corpus"), tl.Corpus.load(tmp_path / "corpus", mmap=False)):
        part = each[rows]
        assert (each.ids, each.labels) == (names, LABELS)
        assert (part.ids, part.labels) == ([names[row] for row in rows], [LABELS[row] for row in rows])
        assert each.digest == corpus.digest
        assert (isinstance(each.ids, list), isinstance(each.labels, list)) == (most == "lists",) * 2
    assert (tmp_path / "corpus" / "ids.utf8").exists() == (ids is not None)


def test_a_file_without_ids_has_no_list_of_them(most, tmp_path):
    (tmp_path / "texts.txt").write_text("red sea\nblue sea\n" * 3)
    corpus = tl.Corpus.from_file(tmp_path / "texts.txt", language="en", min_df=1, max_df=1.0)
    assert corpus.ids == list("012345")
    assert isinstance(corpus.ids, list if most == "lists" else RowNumbers)
