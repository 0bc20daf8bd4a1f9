"""Numbers that are given: each is stored exactly, or refused."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
import torch
from scipy import sparse

import topicloom as tl
from topicloom.embeddings import read_document_vectors
from topicloom.errors import InputError

MOST = 2**24
TEXTS = ["cat apple", "dog pear", "bird plum"]
OPEN = {"language": "en", "min_df": 1, "max_df": 1.0}


@pytest.mark.parametrize(
    ("count", "fault"),
    [
        (16777217, "16777217, which is more than 16,777,216"), (16777216.5, "16777216.5, which is not a whole number"),
        (1e-50, "1e-50, which is not a whole number"), (1e300, "1e[+]300, which is more than 16,777,216"),
        (2**63 - 1, "9223372036854775807, which is more than"), (np.inf, "inf, which is not finite"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, sparse.coo_array, sparse.csc_matrix])
def test_counts_are_checked_as_they_are_given(count, fault, kind):
    matrix = np.eye(3, dtype=type(count)) * count if isinstance(count, float) else np.eye(3, dtype=np.int64) * count
    with pytest.raises(InputError, match=f"the count in row 0, column 0 is {fault}"):
        tl.Corpus.from_counts(kind(matrix))
    with pytest.raises(InputError, match=f"the count in row 0, column 0 is {fault}"):
        tl.GSM(2).fit(kind(matrix))


@pytest.mark.parametrize("dtype", ["u1", "i2", "u4", "i8", "u8", "f2", "f4", "f8", "g"])
@pytest.mark.parametrize("is_sparse", [True, False])
def test_counts_against_exact_integers(dtype, is_sparse):
    random_ = random.Random(1)
    largest = int(np.iinfo(dtype).max) if dtype[0] in "iu" else 2**11 if dtype == "f2" else 2**30
    for _ in range(200):
        near = random_.choice([0, 3, 100, MOST - 2, MOST, largest])
        # Python integers and fractions say what the array holds.
        held = np.array([[min(max(near + random_.randrange(-2, 4), 0), largest), 1]]).astype(dtype)
        exact = Fraction(*held[0, 0].as_integer_ratio()) if held.dtype.kind == "f" else Fraction(int(held[0, 0]))
        if is_sparse and dtype == "f2":
            continue  # SciPy has no sparse matrices of this type
        given = sparse.csr_array(held) if is_sparse else held
        if exact > MOST:
            with pytest.raises(InputError, match=f"column 0 is {exact}, which is more than 16,777,216"):
                tl.Corpus.from_counts(given)
        else:
            found = tl.Corpus.from_counts(given).counts
            assert found.dtype == np.float32
            assert Fraction(*found[0, 0].as_integer_ratio()) == exact


def test_sums_of_duplicates_are_exact():
    entries = (np.array([MOST, 1], np.float32), ([0, 0], [0, 0]))
    with pytest.raises(InputError, match="is 16777217, which is more than"):
        tl.Corpus.from_counts(sparse.coo_array(entries, shape=(1, 2)))
    # Four times 2**62 is 0 in 64 bits.
    entries = (np.full(4, 2**62), np.zeros(4, np.int32), [0, 4])
    with pytest.raises(InputError, match="is 18446744073709551616, which is more than"):
        tl.Corpus.from_counts(sparse.csr_array(entries, shape=(1, 2)))


@pytest.mark.parametrize("dtype", [">i4", ">u8", ">f4", ">f8", "<f8"])
def test_either_order_of_bytes_is_read(dtype):
    assert tl.Corpus.from_counts(np.array([[3, 0], [1, 2]], dtype)).counts.toarray().tolist() == [[3, 0], [1, 2]]


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.lil_array])
def test_a_matrix_that_is_given_stays_as_it_is(kind):
    given = kind(np.array([[0, 3], [1, 2]]))
    corpus = tl.Corpus.from_counts(given)
    corpus.counts.data[:] = 7
    assert given.toarray().tolist() == [[0, 3], [1, 2]]
    # Unsorted columns and a stored zero.
    arrays = np.array([2, 1, 0]), np.array([1, 0, 0]), np.array([0, 2, 3])
    given = sparse.csr_array(tuple(map(np.copy, arrays)), shape=(2, 2))
    assert tl.Corpus.from_counts(given).counts.toarray().tolist() == [[1, 2], [0, 0]]
    for before, after in zip(arrays, (given.data, given.indices, given.indptr), strict=True):
        np.testing.assert_array_equal(before, after)


def test_weights_are_rounded_and_not_lost():
    assert tl.Corpus.from_counts([[0.1, 2.0**30 + 1]], fractional=True).counts.data.tolist() == [
        float(np.float32(0.1)), 2.0**30,
    ]  # fmt: skip
    for weight in (1e-50, 1e-40, 1e300):
        with pytest.raises(InputError, match=r"row 0, column 1 is .*, which is too large or too small for 32-bit"):
            tl.Corpus.from_counts([[1.0, weight]], fractional=True)


def test_vectors_are_rounded_and_not_lost(tmp_path):
    vectors = np.array([[0.1, 2], [0, 1], [1, 1]])
    assert tl.Corpus.from_texts(TEXTS, **OPEN, vectors=vectors).vectors.tolist() == vectors.astype(np.float32).tolist()
    for number, fault in ((1e300, "1e+300, which 32-bit"), (1e-50, "1e-50, which 32-bit"), (np.nan, "not finite")):
        vectors[1, 0] = number
        with pytest.raises(InputError, match="the vector of document 1 contains") as found:
            tl.Corpus.from_texts(TEXTS, **OPEN, vectors=vectors.tolist())
        assert fault in str(found.value)
        np.save(tmp_path / "v.npy", vectors)
        with pytest.raises(InputError, match=r"row 1 of .* contains") as found:
            read_document_vectors(tmp_path / "v.npy")
        assert fault in str(found.value) or "not finite" in fault


def test_vectors_of_extreme_lengths_are_refused(tmp_path):
    """In float32, the square of 1e20 overflows, and PyTorch's normalize divides by 1e-12 or more."""
    rows = np.array([[0.6, 0.8], [1.0, 0.0], [0.0, 0.0]])
    for scale in (2.0**-39, 2.0**62):
        found = tl.Corpus.from_texts(TEXTS, **OPEN, vectors=rows * scale).vectors
        np.testing.assert_array_equal(torch.nn.functional.normalize(torch.tensor(found), dim=1), np.float32(rows))
    for scale in (2.0**-41, 2.0**64):
        assert not np.allclose(torch.nn.functional.normalize(torch.tensor(np.float32(rows * scale)), dim=1), rows)
        with pytest.raises(InputError, match=r"vector of document 0 has the length .*; scale the vectors, for example"):
            tl.Corpus.from_texts(TEXTS, **OPEN, vectors=rows * scale)
        np.save(tmp_path / "v.npy", np.float32(rows[::-1] * scale))
        with pytest.raises(InputError, match=r"row 1 of .*v.npy has the length"):
            read_document_vectors(tmp_path / "v.npy")


@pytest.mark.parametrize(
    "number", [2**53 + 1, str(2**53 + 1), "1e400", "1e-400", "2020_10", 10**400, np.int64(2**53 + 1)]
)
def test_covariates_are_exact_or_categories(number):
    corpus = tl.Corpus.from_texts(TEXTS, **OPEN, covariates={"x": [1.5, number, 2]})
    assert corpus.covariates["x"].values() == ["1.5", str(number), "2"]


CODES = [
    (["01234", "94110", ""], "01234"), (["7", "007"], "007"), (["+4930123456", "5"], "+4930123456"),
    (["12E3", "N/A", "12"], "12E3"), (["-05", "5"], "-05"), (["00", "1"], "00"),
]  # fmt: skip


@pytest.mark.parametrize(("written", "code"), CODES)
def test_codes_in_files_are_categories(written, code, tmp_path, caplog):
    (tmp_path / "a.csv").write_text("x,text\n" + "".join(f"{each},cat\n" for each in written), "utf-8")
    with caplog.at_level("INFO", "topicloom"):
        corpus = tl.Corpus.from_file(tmp_path / "a.csv", covariates=["x"], **OPEN)
    assert corpus.covariates["x"].values() == [each if each not in ("", "N/A") else None for each in written]
    assert f"{code!r} in document {written.index(code)} is a code" in caplog.text


def test_numbers_with_commas_or_signs_are_categories_and_named(tmp_path, caplog):
    for written, first in (
        (["5", "1.234,50", "n/a", "-2,13"], 1),
        (["1,234", "1,234,567", "5", ""], 0),
        (["10%", "12.5 %", "0", ""], 0),
        (["3", "€10", "-$1,234.50", "20 €", "5元"], 1),
    ):
        (tmp_path / "a.csv").write_text("x;text\n" + "".join(f"{each};cat\n" for each in written), "utf-8")
        corpus = tl.Corpus.from_file(tmp_path / "a.csv", covariates=["x"], **OPEN)
        assert written[first] in corpus.covariates["x"].values()
        said = f"its numbers have commas or signs, such as {written[first]!r} in document {first}; write them"
        assert said in caplog.text
    for written in (["a, b", "c", "3"], ["1.2.3", "10.0.0.1", "2.0"], ["5% more", "10%", "%"]):
        caplog.clear()
        (tmp_path / "a.csv").write_text("x;text\n" + "".join(f"{each};cat\n" for each in written), "utf-8")
        tl.Corpus.from_file(tmp_path / "a.csv", covariates=["x"], **OPEN)
        assert "commas or signs" not in caplog.text


def test_numbers_in_files_are_no_codes(tmp_path):
    written = ["0", "-0", "0.5", "-.5", "+5", "-3", "1e+05", "1.5e5", "2E-3", "100", "+1.5"]
    (tmp_path / "a.csv").write_text("x,text\n" + "".join(f"{each},cat\n" for each in written), "utf-8")
    corpus = tl.Corpus.from_file(tmp_path / "a.csv", covariates=["x"], **OPEN)
    assert corpus.covariates["x"].tolist() == [float(Fraction(each)) for each in written]


def test_covariates_that_are_numbers():
    given = [2**53, "1e5", "0.1", "0", "0e5", -0.0, "inf", 2**54, 1e300]
    corpus = tl.Corpus.from_counts(np.eye(len(given)), covariates={"x": given})
    assert corpus.covariates["x"].tolist() == [2.0**53, 1e5, 0.1, 0, 0, 0, np.inf, 2.0**54, 1e300]
    with pytest.raises(InputError, match=r"the covariate 'x' is 1e\+300 in document 8, which 32-bit"):
        corpus.fields.array("x")
