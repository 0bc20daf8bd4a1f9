"""Nearest documents by the cosine of their vectors, against brute force in double precision."""

from __future__ import annotations

import importlib.util
import logging
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from topicloom.embeddings import neighbours as module
from topicloom.embeddings import proximity
from topicloom.embeddings.eight_bits import RoundedRows, is_fast
from topicloom.embeddings.neighbours import VectorIndex
from topicloom.embeddings.selection import Selection
from topicloom.errors import InputError, MissingExtraError, SettingError

needs_usearch = pytest.mark.skipif(
    importlib.util.find_spec("usearch") is None, reason="the extra neighbours is not installed"
)


def brute_force(vectors, queries, n, own=None):
    """The rule, one document at a time: cosines of double precision, rounded, by descending cosine and ascending id."""
    ids, scores = np.full((len(queries), n), -1), np.zeros((len(queries), n), np.float32)
    rows = [[float(x) for x in row] for row in vectors]
    for place, query in enumerate([float(x) for x in row] for row in queries):
        found = []
        for other, row in enumerate(rows):
            squares = sum(x * x for x in query) ** 0.5 * sum(x * x for x in row) ** 0.5
            if squares and (own is None or own[place] != other):
                cosine = sum(x * y for x, y in zip(query, row, strict=True)) / squares
                found.append((-np.float32(cosine), other))
        for column, (score, other) in enumerate(sorted(found)[:n]):
            ids[place, column], scores[place, column] = other, -score
    return ids, scores


def clustered(n, size=16, seed=0, dtype=np.float16):
    random = np.random.default_rng(seed)
    centres = random.standard_normal((20, size))
    return (centres[random.integers(20, size=n)] + 0.3 * random.standard_normal((n, size))).astype(dtype)


def whole(n, size=3, seed=0, dtype=np.float32):
    """Small whole numbers, whose cosines are exact or nearly so: with many ties, duplicates, multiples and zeros."""
    return np.random.default_rng(seed).integers(-1, 2, (n, size)).astype(dtype)


def check(vectors, n, queries=None, **options):
    index = VectorIndex.of(vectors, **options)
    if queries is None:
        found, expected = index.neighbours(n), brute_force(vectors, vectors, n, own=range(len(vectors)))
    else:
        found, expected = index.nearest(queries, n), brute_force(vectors, queries, n)
    assert (found[0].dtype, found[1].dtype) == (np.int64, np.float32)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1], rtol=0, atol=1e-7)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 64)
    monkeypatch.setattr(module, "_HASHED", 50)
    monkeypatch.setattr(module, "_NUMBERS", 5000)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("n_documents", [1, 2, 31, 63, 64, 65, 128, 300])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_neighbours_are_those_of_brute_force(n_documents, dtype):
    check(clustered(n_documents, dtype=dtype), 5)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("n_queries", [0, 1, 7, 65])
def test_nearest_are_those_of_brute_force(n_queries):
    check(clustered(200), 5, queries=clustered(n_queries, seed=1, dtype=np.float32))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("n", [1, 4, 40, 70])
def test_ties_duplicates_and_zeros(n):
    check(whole(220), n)
    check(whole(220), n, queries=whole(30, seed=1))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("n", [20, 21, 22, 50])
def test_more_neighbours_than_documents(n):
    check(clustered(21), n)
    check(clustered(21), n, queries=clustered(3, seed=1))


@pytest.mark.usefixtures("small_blocks")
def test_vectors_that_single_precision_cannot_tell_apart():
    """More documents than there are spare candidates differ from each other by less than a float32 can hold."""
    random = np.random.default_rng(0)
    vectors = np.ones((150, 8), np.float32) + 1e-6 * random.standard_normal((150, 8)).astype(np.float32)
    vectors[75:] *= np.float32(3)
    double = vectors.astype(np.float64)
    double /= np.linalg.norm(double, axis=1)[:, None]
    cosines = (double @ double.T).astype(np.float32)
    np.fill_diagonal(cosines, -1)
    expected = np.lexsort((np.tile(np.arange(150), (150, 1)), -cosines), axis=1)[:, :6]
    np.testing.assert_array_equal(VectorIndex.of(vectors).neighbours(6)[0], expected)


@pytest.fixture(params=[(1, False), (2, True)], ids=["1", "2 rounded"])
def compiled_loops(monkeypatch, request):
    """Small tiles for the loops that large corpora use, with one thread, and with two and products of eight bits."""
    pytest.importorskip("numba")
    n_threads, is_rounded = request.param
    monkeypatch.setattr(module, "_FEWEST_PAIRS", 0)
    monkeypatch.setattr(module, "TILE", 64)
    monkeypatch.setattr(module, "is_fast", lambda size: is_rounded)
    monkeypatch.setattr(module, "_NUMBERS_OF_A_CANDIDATE", 1)
    monkeypatch.setattr(module, "_GROUPS", 8)
    monkeypatch.setattr(torch, "get_num_threads", lambda: n_threads)


@pytest.mark.usefixtures("compiled_loops")
@pytest.mark.parametrize("n_documents", [1, 2, 63, 65, 300])
def test_compiled_search_agrees_with_brute_force(n_documents):
    check(clustered(n_documents), 5)
    check(clustered(n_documents, dtype=np.float32), 5, queries=clustered(70, seed=1, dtype=np.float32))


@pytest.mark.usefixtures("compiled_loops")
@pytest.mark.parametrize("n", [1, 4, 70])
def test_compiled_search_with_ties_duplicates_and_zeros(n):
    check(whole(220), n)
    check(whole(220), n, queries=whole(30, seed=1))


@pytest.mark.usefixtures("compiled_loops")
def test_compiled_search_agrees_bit_for_bit(monkeypatch):
    vectors = clustered(1500, 64)
    found = VectorIndex.of(vectors).neighbours(10)
    monkeypatch.setattr(module, "_FEWEST_PAIRS", 1 << 40)
    for one, other in zip(found, VectorIndex.of(vectors).neighbours(10), strict=True):
        np.testing.assert_array_equal(one, other)


def odd(n=1500, size=64):
    """Groups of 12 vectors; in one of 40, rounding changes the order. Most of the length of some is in one number."""
    random = np.random.default_rng(2)
    centres = random.standard_normal((n // 12 + 1, size))
    vectors = centres[np.arange(n) // 12] + 0.4 * random.standard_normal((n, size))
    vectors[7:n:100, 0] = 60
    vectors[80:120] = vectors[80] + 0.02 * vectors[80:120]
    vectors[120:130] = vectors[5]
    vectors[60] = 0
    return random.permutation(vectors).astype(np.float32)


@pytest.mark.parametrize("vectors", [clustered(1500, 64), odd()], ids=["clustered", "odd"])
@pytest.mark.parametrize("queries", [None, clustered(400, 64, seed=1)], ids=["all", "others"])
def test_products_of_eight_bits_find_the_same(vectors, queries, monkeypatch):
    pytest.importorskip("numba")
    monkeypatch.setattr(module, "_FEWEST_PAIRS", 0)
    monkeypatch.setattr(module, "TILE", 256)
    monkeypatch.setattr(module, "_NUMBERS_OF_A_CANDIDATE", 1000)
    monkeypatch.setattr(module, "_GROUPS", 8)
    written = []
    write = VectorIndex._write_sorted
    monkeypatch.setattr(VectorIndex, "_write_sorted", lambda *a: [written.append(len(a[1])), write(*a)])

    def found(is_fast):
        monkeypatch.setattr(module, "is_fast", lambda size: is_fast)
        written.clear()
        index = VectorIndex.of(vectors)
        return index.neighbours(10) if queries is None else index.nearest(queries, 10)

    expected, (ids, similarities) = found(False), found(True)
    assert len(written) > 1  # so at least two searches have found some of them
    assert written[0] > 0.8 * len(ids)
    np.testing.assert_array_equal(ids, expected[0])
    np.testing.assert_array_equal(similarities, expected[1])


def test_a_selection_above_floors_says_what_is_incomplete():
    pytest.importorskip("numba")
    similarities = np.random.default_rng(0).standard_normal((3, 200)).astype(np.float32)
    ordered = -np.sort(-similarities, axis=1)
    selection = Selection(Selection.loop(), 3, 4, ordered[[0, 1, 2], [5, 3, 2]])
    selection.add(similarities, 0, 0)
    documents, floors = selection.finish()
    assert sorted(documents[0]) == sorted(np.argsort(-similarities[0])[:4])
    assert floors.tolist() == [ordered[0, 3], np.inf, np.inf]  # three and two exceed the floor, not four
    assert ((documents >= 0) & (documents < 200)).all()


def test_no_products_of_eight_bits_where_all_are_similar(monkeypatch):
    pytest.importorskip("numba")
    monkeypatch.setattr(module, "_FEWEST_PAIRS", 0)
    monkeypatch.setattr(module, "is_fast", lambda size: True)
    monkeypatch.setattr(module, "_GROUPS", 8)
    monkeypatch.setattr(Selection, "__init__", pytest.fail)
    vectors = (1 + 0.01 * np.random.default_rng(0).standard_normal((1500, 64))).astype(np.float32)
    rows = module._Rows(vectors, np.arange(1500), np.linalg.norm(vectors.astype(float), axis=1))
    assert VectorIndex.of(vectors)._selected_by_rounded(Selection.loop(), rows, rows.rows, rows, 11, True) is None


@pytest.mark.parametrize("vectors", [clustered(200, 64), odd(200), np.eye(64, dtype=np.float32), whole(200, 8)])
def test_bounds_on_products_of_eight_bits(vectors):
    """The rounded numbers themselves, with their products and all differences in double precision."""
    vectors = vectors[vectors.any(axis=1)].astype(np.float64)
    units = torch.from_numpy((vectors / np.linalg.norm(vectors, axis=1)[:, None]).astype(np.float32))
    rounded = RoundedRows.of(units)
    kept = rounded.numbers.double() * rounded.steps.double()[:, None]
    lengths = (units.double() - kept).norm(dim=1)
    assert (rounded.numbers.abs().amax(1) == 127).all()
    assert (lengths <= rounded.errors).all()
    assert (rounded.errors < lengths + 2e-5).all()
    products = rounded.products(rounded).double()
    torch.testing.assert_close(products, kept @ kept.T, rtol=0, atol=1e-6)
    excess = units.double() @ units.double().T - products
    assert (excess.abs() <= rounded.bounds(float(rounded.errors.max()))[:, None]).all()


def test_eight_bits_are_used_only_if_products_are_right(monkeypatch):
    single = torch._int_mm
    monkeypatch.setattr(torch, "_int_mm", lambda a, b: single(a, b).clamp(max=1 << 15))  # it saturates
    assert not is_fast.__wrapped__(64)
    monkeypatch.delattr(torch, "_int_mm")
    assert not is_fast.__wrapped__(64)


def test_equal_documents_are_neighbours_of_each_other():
    vectors = np.array([[1, 2], [5, 1], [1, 2], [1, 2]], np.float16)
    ids, scores = VectorIndex.of(vectors).neighbours(2)
    assert ids.tolist() == [[2, 3], [0, 2], [0, 3], [0, 2]]
    assert scores[[0, 2, 3]].tolist() == [[1, 1]] * 3


def test_equal_hashes_do_not_make_vectors_equal(monkeypatch):
    monkeypatch.setattr(module, "_hashes", lambda vectors: np.zeros(len(vectors), np.uint64))
    check(whole(60), 5)


def test_zero_vectors_have_no_neighbours():
    vectors = np.zeros((3, 4), np.float16)
    ids, scores = VectorIndex.of(vectors).neighbours(2)
    assert (ids == -1).all()
    assert not scores.any()
    ids, scores = VectorIndex.of(vectors).nearest(np.ones((1, 4)), 2)
    assert (ids == -1).all()
    assert not scores.any()
    assert VectorIndex.of(vectors[:0]).neighbours(2)[0].shape == (0, 2)


def test_blocks_threads_and_other_queries_change_nothing(monkeypatch):
    vectors, queries = clustered(3000, 64), clustered(100, 64, seed=1)
    ids, scores = VectorIndex.of(vectors).neighbours(10)
    some, some_scores = VectorIndex.of(vectors).nearest(queries, 10)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        for block, numbers in ((32, 1), (160, 70_001), (4096, 1 << 24)):
            monkeypatch.setattr(module, "_BLOCK", block)
            monkeypatch.setattr(module, "_NUMBERS", numbers)
            again, again_scores = VectorIndex.of(vectors).neighbours(10)
            np.testing.assert_array_equal(again, ids)
            np.testing.assert_array_equal(again_scores, scores)  # bit for bit
    finally:
        torch.set_num_threads(threads)
    for start, end in ((0, 1), (1, 100), (50, 53)):
        part, part_scores = VectorIndex.of(vectors).nearest(queries[start:end], 10)
        np.testing.assert_array_equal(part, some[start:end])
        np.testing.assert_array_equal(part_scores, some_scores[start:end])
    own, own_scores = VectorIndex.of(vectors).nearest(vectors[:50], 11)
    assert (own[:, 0] == np.arange(50)).all()
    np.testing.assert_array_equal(own[:, 1:], ids[:50])
    np.testing.assert_array_equal(own_scores[:, 1:], scores[:50])


def test_precision_that_the_user_chose_does_not_matter():
    vectors = clustered(500, 64)
    expected = VectorIndex.of(vectors).neighbours(10)[0]
    chosen = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("medium")
        with torch.autocast("cpu", torch.bfloat16):
            found = VectorIndex.of(vectors).neighbours(10)[0]
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(chosen)
    np.testing.assert_array_equal(found, expected)


def test_memory_mapped_vectors_stay_on_disk(tmp_path):
    vectors = clustered(300)
    np.save(tmp_path / "vectors.npy", vectors)
    mapped = np.load(tmp_path / "vectors.npy", mmap_mode="r")
    index = VectorIndex.of(mapped)
    assert index._vectors is mapped
    np.testing.assert_array_equal(index.neighbours(5)[0], VectorIndex.of(vectors).neighbours(5)[0])


def test_rows_and_columns_in_any_order_of_memory():
    vectors = clustered(100)
    expected = VectorIndex.of(vectors).neighbours(5)[0]
    np.testing.assert_array_equal(VectorIndex.of(np.asfortranarray(vectors)).neighbours(5)[0], expected)
    np.testing.assert_array_equal(VectorIndex.of(vectors[::-1][::-1]).neighbours(5)[0], expected)


@pytest.mark.parametrize("scale", [6e-8, 1e-40, 1e-30, 1e30])
def test_lengths_do_not_matter(scale):
    dtype = np.float16 if scale == 6e-8 else np.float32  # the smallest number of float16
    vectors = (whole(100, 8).astype(np.float64) * scale).astype(dtype)
    np.testing.assert_array_equal(
        VectorIndex.of(vectors).neighbours(7)[0], VectorIndex.of(whole(100, 8)).neighbours(7)[0]
    )


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_a_gpu_finds_the_same():
    vectors = clustered(5000, 64)
    for found, expected in zip(
        VectorIndex.of(vectors, device="cuda").neighbours(10), VectorIndex.of(vectors).neighbours(10), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.zeros(3, np.float32), "shape (3,)"),
        (np.zeros((3, 0), np.float32), "shape (3, 0)"),
        (np.zeros((3, 2), np.int64), "int64"),
        (np.array([[0, 1], [np.nan, 1]], np.float16), "vector 1 contains"),
        (np.array([[0, 1], [1, 1], [np.inf, 1]], np.float32), "vector 2 contains"),
    ],
)
def test_vectors_that_are_refused(vectors, message):
    with pytest.raises(InputError) as caught:
        VectorIndex.of(vectors)
    assert message in str(caught.value)


def test_searches_that_are_refused():
    index = VectorIndex.of(clustered(10))
    for queries, message in (
        (np.zeros(16), "shape"),
        (np.zeros((2, 15)), "vectors of 16 numbers"),
        (np.full((2, 16), np.nan), "query 0 contains"),
    ):
        with pytest.raises(InputError, match=message):
            index.nearest(queries, 2)
    for n in (0, -1, 1.5, True):
        with pytest.raises(SettingError):
            index.neighbours(n)


def recall(found, true):
    return np.mean([len(set(some) & set(every)) / len(every) for some, every in zip(found, true, strict=True)])


@needs_usearch
@pytest.mark.parametrize("part", [150, 500_000])
def test_an_approximate_search_finds_most_of_the_nearest(part, monkeypatch, small_blocks):
    monkeypatch.setattr(proximity, "_PART", part)
    monkeypatch.setattr(proximity, "_BATCH", 64)
    vectors, queries = clustered(400), clustered(30, seed=1, dtype=np.float32)
    index = VectorIndex.of(vectors, "approximate")
    assert index.is_approximate
    for (ids, scores), (true, true_scores) in (
        (index.neighbours(10), brute_force(vectors, vectors, 10, own=range(400))),
        (index.nearest(queries, 10), brute_force(vectors, queries, 10)),
        (index.nearest(queries[:1], 10), brute_force(vectors, queries[:1], 10)),
    ):
        assert (ids.dtype, scores.dtype) == (np.int64, np.float32)
        assert recall(ids, true) > 0.98
        same = ids == true
        np.testing.assert_allclose(scores[same], true_scores[same], rtol=0, atol=1e-7)
        assert (np.diff(scores) <= 0).all()


@needs_usearch
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("n", [4, 70])
def test_an_approximate_search_keeps_ties_duplicates_and_zeros(n):
    vectors = whole(220)  # 26 directions or fewer, which a graph finds all
    ids, scores = VectorIndex.of(vectors, "approximate").neighbours(n)
    true, true_scores = brute_force(vectors, vectors, n, own=range(220))
    np.testing.assert_array_equal(ids, true)
    np.testing.assert_allclose(scores, true_scores, rtol=0, atol=1e-7)


@needs_usearch
@pytest.mark.parametrize("n_documents", [0, 1, 2, 3, 9])
def test_an_approximate_search_of_few_documents(n_documents):
    check(clustered(n_documents), 5, method="approximate")
    check(clustered(n_documents), 5, queries=clustered(2, seed=1), method="approximate")


@needs_usearch
def test_an_approximate_search_is_repeatable(monkeypatch):
    vectors = clustered(3000, 64)
    index = VectorIndex.of(vectors, "approximate")
    expected, few = index.neighbours(10), index.nearest(vectors[:60], 10)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        monkeypatch.setattr(module, "_NUMBERS", 70_001)
        again = VectorIndex.of(vectors, "approximate")
        for found, others in zip(expected, again.neighbours(10), strict=True):
            np.testing.assert_array_equal(found, others)
        for start, end in ((0, 1), (1, 60)):
            for found, others in zip(few, again.nearest(vectors[start:end], 10), strict=True):
                np.testing.assert_array_equal(found[start:end], others)
    finally:
        torch.set_num_threads(threads)


@needs_usearch
def test_threads_and_copies_search_the_same_graphs():
    vectors = clustered(2000, 32)
    index = VectorIndex.of(vectors, "approximate")
    expected = index.nearest(vectors, 10)[0]
    with ThreadPoolExecutor(4) as pool:
        for found, _ in pool.map(lambda _: index.nearest(vectors, 10), range(8)):
            np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(index)).nearest(vectors, 10)[0], expected)


@pytest.mark.usefixtures("small_blocks")
def test_documents_find_those_that_found_them():
    random = np.random.default_rng(0)
    similar = random.permutation(130 * 130).reshape(130, 130).astype(np.float32)
    similar = np.minimum(similar, similar.T)
    near = np.argsort(random.random((130, 130)), axis=1)[:, :6].astype(np.int32)
    scores = np.take_along_axis(similar, near, 1)
    near[3, 2:], scores[3, 2:] = 0, -np.inf
    expected = []
    for row in range(130):
        known = {int(other) for other, score in zip(near[row], scores[row], strict=True) if score > -np.inf}
        known |= {
            other
            for other in range(130)
            for place in range(6)
            if near[other, place] == row and scores[other, place] > -np.inf
        }
        expected.append(sorted((-float(similar[row, other]), other) for other in known)[:6])
    module._complete(near, scores)
    for row, best in enumerate(expected):
        assert near[row, : len(best)].tolist() == [other for _, other in best]
        assert scores[row, : len(best)].tolist() == [-score for score, _ in best]
        assert (scores[row, len(best) :] == -np.inf).all()


@needs_usearch
def test_many_documents_are_searched_approximately(monkeypatch):
    monkeypatch.setattr(module, "_MANY", 50)
    assert not VectorIndex.of(clustered(50)).is_approximate
    assert VectorIndex.of(clustered(51)).is_approximate
    assert not VectorIndex.of(clustered(51), "exact").is_approximate


def test_without_the_extra_a_line_estimates_the_time(monkeypatch, caplog):
    monkeypatch.setattr(module, "_MANY", 50)
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with caplog.at_level(logging.INFO, "topicloom"):
        for n, method in ((50, "auto"), (51, "exact")):
            VectorIndex.of(clustered(n), method).neighbours(3)
        assert not caplog.messages
        index = VectorIndex.of(clustered(51))
        ids, _ = index.neighbours(3)
    np.testing.assert_array_equal(ids, brute_force(clustered(51), clustered(51), 3, own=range(51))[0])
    (line,) = caplog.messages
    assert "51 documents takes about 1 minute" in line
    assert "pip install 'topicloom[neighbours]'" in line


def test_an_approximate_search_without_usearch_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "usearch.index", None)
    with pytest.raises(MissingExtraError, match="usearch"):
        VectorIndex.of(clustered(10), "approximate").neighbours(2)


def test_a_method_that_does_not_exist():
    with pytest.raises(SettingError, match="auto, exact, approximate"):
        VectorIndex.of(clustered(10), "fast")
