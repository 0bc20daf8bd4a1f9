"""ProximityGraphs: an approximate search for the nearest of many vectors."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import MissingExtraError

Units: TypeAlias = Callable[[int, int], npt.NDArray[np.float32]]

_PART = 500_000  # vectors of a graph, at most
_BATCH = 4096  # vectors that are added at a time
_LINKS = 16  # of a vector in its graph
_BREADTH = 64  # vectors that are looked at while a vector is added
_SEARCHED = 56  # and while the nearest of a graph are searched, at least


class ProximityGraphs:
    """Graphs that link each vector to near ones (HNSW, Malkov & Yashunin 2018), by the library usearch.

    A search walks along the links towards the query. It finds most of the nearest vectors, not all.

    The vectors are divided into at least two parts of equal size, and each part gets a graph. One thread makes a graph,
    so that the same vectors give the same graphs, whatever the number of threads.

    Args:
        n: the number of vectors.
        size: d, their dimensions.
        units: returns the vectors from one row to another, scaled to length 1: (rows, d).
        n_threads: how many threads make graphs, and search.

    Raises:
        MissingExtraError: usearch is not installed.
    """

    def __init__(self, n: int, size: int, units: Units, n_threads: int) -> None:
        parts = max(2, -(-n // _PART))
        edges = [n * part // parts for part in range(parts + 1)]
        stopped = Event()

        def graph(part: int) -> Any:
            made = _empty(size)
            for start in range(edges[part], edges[part + 1], _BATCH):
                end = min(start + _BATCH, edges[part + 1])
                if stopped.is_set():
                    break
                made.add(np.arange(start, end, dtype=np.uint64), units(start, end), threads=1)
            return made

        _empty(size)  # raises here, in the caller's thread
        with ThreadPoolExecutor(min(parts, n_threads)) as pool:
            try:
                self._graphs = list(pool.map(graph, range(parts)))
            finally:
                stopped.set()  # Ctrl-C does not wait for whole graphs
        self._n_threads = n_threads
        self._lock = Lock()  # usearch allows one search of a graph at a time

    def nearest(
        self, queries: npt.NDArray[np.float32], m: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
        """Return the rows of vectors near to queries of length 1 (Q, d), and their distances, (Q, m) each.

        They are ordered by distance and row. Where fewer are found, the rest has the row 0 and an infinite distance.
        The result for a query does not depend on the others.
        """
        found_rows, found_distances = [], []
        for graph in self._graphs:
            if not len(graph):
                continue
            given = queries if len(queries) > 1 else np.repeat(queries, 2, axis=0)  # usearch returns no rows for one
            with self._lock:
                graph.expansion_search = max(_SEARCHED, m)
                found = graph.search(given, min(m, len(graph)), threads=self._n_threads)
            is_found = np.arange(found.keys.shape[1]) < np.asarray(found.counts)[:, None]
            found_rows.append(np.where(is_found, found.keys, 0).astype(np.int64))
            found_distances.append(np.where(is_found, found.distances, np.inf).astype(np.float32))
        rows, distances = np.concatenate(found_rows, axis=1), np.concatenate(found_distances, axis=1)
        rows, distances = rows[: len(queries)], distances[: len(queries)]
        order = np.lexsort((rows, distances), axis=1)[:, :m]
        return np.take_along_axis(rows, order, 1), np.take_along_axis(distances, order, 1)


def _empty(size: int) -> Any:
    try:
        from usearch.index import Index
    except ImportError:
        raise MissingExtraError.of("an approximate search", "usearch", "neighbours") from None
    return Index(
        ndim=size,
        metric="ip",
        dtype="i8",
        connectivity=_LINKS,
        expansion_add=_BREADTH,
        expansion_search=_SEARCHED,
        enable_key_lookups=False,
    )
