"""The selection of the greatest of many similarities, which an exact search computes in tiles.

`keep_best` consists of PyTorch operations and runs on every device. `Selection` does the same by loops that numba
compiles for the CPU. It keeps up to twice as many candidates of each query as needed, and removes the worse half when
there is no room for another one. `ranked` sorts candidates by cosines of double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from ..nn.execution import compiled

CHUNK = 32  # similarities of which only the greatest is compared at first
STEP = 16  # the same for the compiled loop
TILE = 1024  # documents on each side of a tile of `Selection`: 4 MB of similarities

Array = np.ndarray[Any, Any]


def padded(rows: torch.Tensor) -> torch.Tensor:
    """Append rows of zeros up to a whole number of chunks."""
    return torch.nn.functional.pad(rows, (0, 0, 0, -len(rows) % CHUNK))


def keep_best(scores: torch.Tensor, ids: torch.Tensor, product: torch.Tensor, n_columns: int, first: int) -> None:
    """Keep the best of some (Q, m) scores and of a block of new ones, in place; the last score of a row is the least.

    Args:
        scores, ids: (Q, m); -inf where there is none yet.
        product: (at least Q, at least n_columns) new scores, of documents first, first + 1 ...; with padding.
        n_columns: the number of documents in the block.
        first: the first of them.
    """
    n_rows, m = scores.shape
    # Column c is in chunk c % n_chunks. Both ways compare neighbours in memory with one instruction.
    n_chunks = product.shape[1] // CHUNK
    chunks = product.unflatten(1, (CHUNK, n_chunks))
    greatest = chunks.amax(1) if product.is_contiguous() else product.T.unflatten(0, (CHUNK, n_chunks)).amax(0).T
    floor = scores[:, -1]
    if bool(torch.isinf(floor).any()):
        if n_columns % CHUNK or n_chunks < m:
            both = torch.cat([scores, product[:n_rows, :n_columns]], 1)
            best, place = both.topk(m)
            columns = torch.arange(first, first + n_columns, device=ids.device).expand(n_rows, -1)
            ids.copy_(torch.cat([ids, columns], 1).gather(1, place))
            scores.copy_(best)
            return
        # The m best chunks have m scores that are no less than this; the floor itself is one of them.
        floor = greatest[:n_rows].topk(m).values[:, -1]
        floor = floor.nextafter(torch.full_like(floor, -torch.inf))
    row, chunk = (greatest[:n_rows] > floor[:, None]).nonzero().T
    found = chunks[row, :, chunk]
    hit, turn = (found > floor[row, None]).nonzero().T
    row, column, score = row[hit], turn * n_chunks + chunk[hit], found[hit, turn]
    real = column < n_columns
    row, column, score = row[real], column[real], score[real]
    if not len(row):
        return
    counts = torch.bincount(row, minlength=n_rows)
    changed = counts.nonzero()[:, 0]
    within = torch.arange(len(row), device=row.device) - (counts.cumsum(0) - counts)[row]
    place = torch.zeros_like(counts)
    place[changed] = torch.arange(len(changed), device=row.device)
    width = m + int(counts.max())
    new_scores = torch.full((len(changed), width), -torch.inf, device=scores.device)
    new_ids = torch.zeros((len(changed), width), dtype=torch.int64, device=scores.device)
    new_scores[:, :m], new_ids[:, :m] = scores[changed], ids[changed]
    new_scores[place[row], m + within], new_ids[place[row], m + within] = score, column + first
    best, kept = new_scores.topk(m)
    scores[changed], ids[changed] = best, new_ids.gather(1, kept)


class Selection:
    """The m greatest similarities of each of Q queries, and their documents.

    Args:
        loop: the compiled loop, as `Selection.loop` returns it.
        n_queries: Q.
        n: m, the number of documents to select for each query. At least as many should be compared with it.
        floors: (Q,) similarities that m documents should exceed. With good estimates, less is compared. Where fewer
            documents exceed them, the result is not complete. None: all similarities count.

    >>> import numpy as np
    >>> from topicloom.embeddings.selection import Selection
    >>> if loop := Selection.loop():
    ...     selection = Selection(loop, n_queries=1, n=2)
    ...     selection.add(np.array([[0.1, 0.9, -1.0, 0.8]], np.float32), 0, 0)
    ...     documents, floors = selection.finish()
    ...     assert sorted(documents[0]) == [1, 3] and floors == np.float32([0.8])
    """

    def __init__(self, loop: Callable[..., None], n_queries: int, n: int, floors: Array | None = None) -> None:
        self.n, self._loop = n, loop
        self._kept = _Kept(
            np.empty((n_queries, 2 * n), np.float32),
            np.empty((n_queries, 2 * n), np.int32),
            np.zeros(n_queries, np.int32),
            np.full(n_queries, -np.inf, np.float32) if floors is None else floors.copy(),
        )

    @staticmethod
    def loop() -> Callable[..., None] | None:
        """Return the compiled loop, or None if it cannot be compiled."""
        return compiled(_select_loop, _select_example)

    def add(self, product: Array, first_row: int, first_column: int, *, both_ways: bool = False) -> None:
        """Add the similarities of a tile, each of a query and a document.

        Args:
            product: (b, c) similarities.
            first_row: the query of the first row.
            first_column: the document of the first column.
            both_ways: whether the queries are the documents, and each similarity belongs to both. The documents of the
                rows must then differ from those of the columns.
        """
        self._loop(product, first_row, first_column, self._kept, self.n, both_ways)

    def finish(self) -> tuple[Array, Array]:
        """Return the selected documents, (Q, m) in any order, and the similarities that no others exceed, (Q,).

        The second are infinite, and the first are any documents, where less than m documents exceed the floor.
        """
        scores, ids, sizes, _ = self._kept
        scores[np.arange(scores.shape[1]) >= sizes[:, None]] = -np.inf
        is_short = sizes < self.n
        ids[is_short], scores[is_short] = 0, np.inf
        best = np.argpartition(-scores, self.n - 1, axis=1)[:, : self.n]
        return np.take_along_axis(ids, best, 1).astype(np.int64), np.take_along_axis(scores, best, 1).min(axis=1)


class _Kept(NamedTuple):
    """Similarities that may be among the greatest ones of Q queries, and their documents."""

    scores: Array  # (Q, 2m)
    ids: Array  # (Q, 2m)
    sizes: Array  # (Q,) how many there are
    floors: Array  # (Q,) a similarity that m of them reach; others have to exceed it


def _select_loop(product: Array, first_row: int, first_column: int, kept: _Kept, n: int, for_columns: bool) -> None:
    scores, ids, sizes, floors = kept
    room, n_rows, n_columns = scores.shape[1], product.shape[0], product.shape[1]

    def halve(mine: Array, names: Array) -> Any:  # Hoare's selection: the n greatest come first
        low, high = 0, room - 1
        while low < high:
            pivot, i, j = mine[(low + high) >> 1], low, high
            while i <= j:
                while mine[i] > pivot:
                    i += 1
                while mine[j] < pivot:
                    j -= 1
                if i <= j:
                    mine[i], mine[j] = mine[j], mine[i]
                    names[i], names[j] = names[j], names[i]
                    i += 1
                    j -= 1
            if n - 1 <= j:
                high = j
            elif n - 1 >= i:
                low = i
            else:
                break
        return mine[n - 1]

    for i in range(n_rows):
        row, similarities = first_row + i, product[i]
        floor = floors[row]
        for start in range(0, n_columns, STEP):
            end, hits = min(start + STEP, n_columns), np.int32(0)
            if end < start + STEP:
                hits = np.int32(1)
            elif for_columns:  # loops of a known length are faster
                for c in range(STEP):
                    hits += np.int32(similarities[start + c] > min(floor, floors[first_column + start + c]))
            else:
                for c in range(STEP):
                    hits += np.int32(similarities[start + c] > floor)
            if not hits:
                continue
            for c in range(start, end):
                score, column = similarities[c], first_column + c
                if score > floor:
                    size = sizes[row]
                    scores[row, size], ids[row, size] = score, column
                    sizes[row] = size + 1
                    if size + 1 == room:
                        floor, sizes[row] = halve(scores[row], ids[row]), n
                if for_columns and score > floors[column]:
                    size = sizes[column]
                    scores[column, size], ids[column, size] = score, row
                    sizes[column] = size + 1
                    if size + 1 == room:
                        floors[column], sizes[column] = halve(scores[column], ids[column]), n
        floors[row] = floor


def _select_example() -> tuple[Any, ...]:
    """Return arguments of `_select_loop` for one query and one document."""
    kept = _Kept(
        np.zeros((1, 2), np.float32), np.zeros((1, 2), np.int32), np.zeros(1, np.int32), np.zeros(1, np.float32)
    )
    return np.zeros((1, 1), np.float32), 0, 0, kept, 1, False


class Ranking(NamedTuple):
    """The candidates of Q queries in the order of their cosines.

    Attributes:
        documents: (Q, m) the nearest first; of equal cosines, the document with the smaller number first.
        cosines: (Q, m) rounded from double precision.
        is_exact: (Q,) whether any way of adding gives the same rounded cosines.
    """

    documents: Array
    cosines: Array
    is_exact: Array


def ranked(
    loop: Callable[..., None],
    points: tuple[Array, Array],
    queries: Array,
    documents: tuple[Array, Array],
    near: Array,
) -> Ranking:
    """Compute the cosines of queries and their candidates in double precision, and sort them.

    Args:
        loop: the compiled loop, as `ranking_loop` returns it.
        points: (P, d) vectors of float32, and their lengths (P,).
        queries: (Q,) the rows of the queries.
        documents: (D, d) vectors of float32, and their lengths (D,).
        near: (Q, m) the candidates.
    """
    found = Ranking(near.copy(), np.empty(near.shape, np.float32), np.empty(len(near), np.bool_))
    loop(*points, queries, *documents, found)
    return found


def ranking_loop() -> Callable[..., None] | None:
    """Return the compiled loop of `ranked`, or None if it cannot be compiled."""
    return compiled(_rank_loop, _rank_example)


def _rank_loop(
    points: Array, lengths: Array, queries: Array, documents: Array, document_lengths: Array, out: Ranking
) -> None:
    near, cosines, is_exact = out
    n, size = near.shape[1], documents.shape[1]
    # A bound on the difference of two sums in different order; the square roots and quotients add a few roundings.
    error = (2 * size + 16) * 2.0**-53
    for q in range(len(queries)):
        query, of_query = points[queries[q]], lengths[queries[q]]
        found, scores, is_same = near[q], cosines[q], True
        for i in range(n):
            document, total = documents[found[i]], 0.0
            for d in range(size):
                total += np.float64(query[d]) * np.float64(document[d])
            cosine = total / (of_query * document_lengths[found[i]])
            is_same &= np.float32(cosine - error) == np.float32(cosine + error)
            score, name, j = np.float32(cosine), found[i], i
            while j > 0 and (scores[j - 1] < score or (scores[j - 1] == score and found[j - 1] > name)):
                scores[j], found[j] = scores[j - 1], found[j - 1]
                j -= 1
            scores[j], found[j] = score, name
        is_exact[q] = is_same


def _rank_example() -> tuple[Any, ...]:
    """Return arguments of `_rank_loop` for one query and one document."""
    row, one, first = np.ones((1, 1), np.float32), np.ones(1), np.zeros(1, np.int64)
    return row, one, first, row, one, Ranking(np.zeros((1, 1), np.int64), row.copy(), np.ones(1, np.bool_))
