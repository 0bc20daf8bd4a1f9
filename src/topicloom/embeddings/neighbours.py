"""VectorIndex: the nearest documents of each document, by the cosine of their vectors."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cached_property, partial
from importlib.util import find_spec
from threading import Lock
from typing import Any, NamedTuple, Self, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch

from ..corpus.fields import stored_vectors
from ..errors import InputError, SettingError
from ..nn.execution import helper_threads, one_thread, run_on_threads, without_gradients
from ..settings import require_whole
from .eight_bits import RoundedRows, is_fast
from .proximity import ProximityGraphs
from .selection import TILE, Selection, keep_best, padded, ranked, ranking_loop

Ids: TypeAlias = npt.NDArray[np.int64]
Similarities: TypeAlias = npt.NDArray[np.float32]
T = TypeVar("T", torch.Tensor, RoundedRows)

logger = logging.getLogger("topicloom")

METHODS = ("auto", "exact", "approximate")
_MANY = 200_000  # documents: "auto" searches more of them approximately
_BLOCK = 2048  # rows of a block: two blocks have 16 MB of similarities, which stay in the processor's cache
_SPARE = 4  # candidates beyond those wanted, for similarities that single precision cannot tell apart
_SPARE_OF_GRAPHS = 12  # the same for graphs, whose distances have eight bits
_KEPT_NUMBERS = 1 << 26  # unit vectors of at most so many numbers are kept (256 MB)
_SEARCHED_NUMBERS = 1 << 27  # unit vectors of at most so many numbers are computed once in a search
_FEWEST_PAIRS = 1 << 25  # pairs of a query and a document for which loading the compiled loops pays
_PILOTS = 64  # queries that show how many candidates are needed if products have eight bits
_NUMBERS_OF_A_CANDIDATE = 1 << 15  # with fewer numbers of documents for each candidate, single precision is faster
_SPARE_ABOVE = 3  # times as many documents as needed should exceed the estimated floor
_RANK = 7  # of the floor among the sampled documents; with a lower rank, more searches have to be repeated
_GROUPS = 64  # groups of sampled documents; only the greatest similarity of each is ranked
_FEW = 16  # queries whose similarities with all documents are computed at once
_NUMBERS = 1 << 21  # numbers of double precision in memory at a time
_HASHED = 4096  # rows that are read at a time


class VectorIndex:
    """The vectors of n documents, and a search for those with the greatest cosine.

    `VectorIndex.of` makes it. An exact search finds the candidates by products of matrices in single precision, or in
    eight bits where the processor is fast at them. Bounds on the rounding errors show that none is missing. An
    approximate search finds most of them, by graphs (`ProximityGraphs`), which the first search makes; the neighbours
    of all documents are completed by the documents whose neighbour a document is. In both, double precision computes
    the similarities of the candidates. The result depends neither on the other queries nor on the number of threads.
    That of an exact search does not depend on the device either.

    A vector of zeros has no direction. It has no neighbours and is nobody's neighbour.

    Attributes:
        n_documents: n.
        size: d, the dimensions of a vector.
        is_approximate: whether a search finds most of the nearest documents and not all.

    Examples:
        >>> import numpy as np
        >>> from topicloom.embeddings.neighbours import VectorIndex
        >>> index = VectorIndex.of(np.array([[1, 0], [3, 4], [2, 0], [0, 0]], np.float32))
        >>> ids, similarities = index.nearest(np.array([[0, 2]], np.float32), 2)
        >>> ids, similarities
        (array([[1, 0]]), array([[0.8, 0. ]], dtype=float32))
        >>> ids, similarities = index.neighbours(2)
        >>> ids
        array([[ 2,  1],
               [ 0,  2],
               [ 0,  1],
               [-1, -1]])
    """

    def __init__(self, vectors: npt.NDArray[Any], method: str, device: str | torch.device | None) -> None:
        self.n_documents: int = vectors.shape[0]
        self.size: int = vectors.shape[1]
        self._method = method
        is_possible = method == "auto" and self.n_documents > _MANY and find_spec("usearch") is not None
        self.is_approximate: bool = method == "approximate" or is_possible
        self._vectors = vectors
        self._device = torch.device("cpu" if device is None else device)
        self._groups = _groups_of(vectors)
        # A bound on the error of a cosine in single precision: the products' sum in any order, and the unit vectors.
        self._error = (self.size + 8) * 2.0**-24

    @classmethod
    def of(cls, vectors: npt.NDArray[Any], method: str = "auto", *, device: str | torch.device | None = None) -> Self:
        """Make an index of vectors, which stay where they are: they may be memory-mapped.

        Args:
            vectors: (n, d) finite numbers, float16 or float32; one row for each document.
            method: "exact", "approximate", which needs `pip install 'topicloom[neighbours]'`, or "auto". The last is
                exact for up to 200,000 documents and where the extra is not installed.
            device: where an exact search computes products of matrices: "cpu" or "cuda".

        Raises:
            InputError: the array has another shape or type, or contains a number that is not finite.
            SettingError: there is no such method.
        """
        if method not in METHODS:
            raise SettingError(f"`method={method!r:.60}` should be one of {', '.join(METHODS)}")
        given = np.asanyarray(vectors)
        if given.ndim != 2 or given.shape[1] == 0 or given.dtype not in (np.float16, np.float32):
            raise InputError(
                f"vectors of shape {given.shape} and type {given.dtype} cannot be searched; give one row of float16 or "
                "float32 for each document"
            )
        return cls(given, method, device)

    def __len__(self) -> int:
        return self.n_documents

    def __getstate__(self) -> dict[str, Any]:
        """Return what copies keep: all but the graphs and the unit vectors, which are made again."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_graphs", "_units")}

    def __repr__(self) -> str:
        return f"VectorIndex({self.n_documents:,} vectors of {self.size} dimensions)"

    @property
    def is_directed(self) -> npt.NDArray[np.bool_]:
        """(n_documents,) True for documents whose vector is not zero."""
        directed: npt.NDArray[np.bool_] = self._groups.group >= 0
        return directed

    def similarities(self, query: npt.NDArray[Any]) -> Similarities:
        """Return the cosine of each document with one query, in the order of the documents.

        The numbers are those that `nearest` returns.

        Args:
            query: (d,) finite numbers.

        Returns:
            (n_documents,) cosines from -1 to 1; 0 if the document or the query is zero.

        Raises:
            InputError: the query has another shape, or contains a number that is not finite.
        """
        points = self._points(np.asanyarray(query)[None])
        found = np.zeros(self.n_documents, np.float32)
        if not points.lengths[0] or not len(self._groups.first):
            return found
        documents = _Rows(self._vectors, self._groups.first, self._groups.lengths)
        step = max(1, _NUMBERS // self.size)
        places = (np.arange(start, min(start + step, len(documents))) for start in range(0, len(documents), step))
        scores = np.concatenate([_cosines(points, np.array([0]), documents, near[None])[0] for near in places])
        found[self.is_directed] = scores[self._groups.group[self.is_directed]]
        return found

    def nearest(self, queries: npt.NDArray[Any], n: int) -> tuple[Ids, Similarities]:
        """Return the n documents that are nearest to each query, the nearest first.

        Of documents with the same similarity, the one with the smaller id comes first. The result for a query does not
        depend on the other queries.

        Args:
            queries: (Q, d) finite numbers.
            n: how many documents to return for each query.

        Returns:
            (Q, n) ids, which are row numbers of the index's vectors, and (Q, n) cosines from -1 to 1. If fewer than n
            documents have a direction, and if the query is zero, the rest is filled with the id -1 and the
            similarity 0.

        Raises:
            InputError: the queries have another shape, or contain a number that is not finite.
            SettingError: n is not a whole number from 1.
            MissingExtraError: the search is approximate, and the extra `neighbours` is not installed.
        """
        require_whole("n", n)
        points = self._points(np.asanyarray(queries))
        ids, similarities = _blank(len(points), n)
        self._search(points, points.nonzero(), n, ids, similarities)
        return ids, similarities

    def _points(self, given: npt.NDArray[Any]) -> _Rows:
        """Return queries (Q, d) after a check."""
        if given.ndim != 2 or given.shape[1] != self.size or given.dtype.kind not in "fiu":
            raise InputError(
                f"queries of shape {given.shape} and type {given.dtype} cannot be compared with vectors of {self.size} "
                "numbers; give one row of as many numbers for each query"
            )
        given = stored_vectors(given, lambda row: f"query {row}")
        return _Rows(given, np.arange(len(given)), _lengths_of(given, "query"))

    def neighbours(self, n: int) -> tuple[Ids, Similarities]:
        """Return the n documents that are nearest to each indexed document, without the document itself.

        Another document with an equal vector is a neighbour like others. The order is that of `nearest`.

        Args:
            n: how many neighbours to return for each document.

        Returns:
            (n_documents, n) ids and (n_documents, n) cosines. Where a document has fewer neighbours, and where its
            vector is zero, the rest is filled with the id -1 and the similarity 0.

        Raises:
            SettingError: n is not a whole number from 1.
            MissingExtraError: the search is approximate, and the extra `neighbours` is not installed.
        """
        require_whole("n", n)
        groups = self._groups
        if self._method == "auto" and not self.is_approximate and len(groups.first) > _MANY:
            logger.info(
                "The exact search for the nearest of %s documents takes about %s; an approximate search takes minutes: "
                "pip install 'topicloom[neighbours]'",
                f"{self.n_documents:,}",
                self._duration(),
            )
        ids, similarities = _blank(len(groups.first), n + 1)
        points = _Rows(self._vectors, groups.first, groups.lengths)
        self._search(points, np.arange(len(groups.first)), n + 1, ids, similarities)
        found, scores = _blank(self.n_documents, n)
        for start in range(0, self.n_documents, _HASHED):
            rows = np.arange(start, min(start + _HASHED, self.n_documents))
            rows = rows[groups.group[rows] >= 0]
            near, score = ids[groups.group[rows]], similarities[groups.group[rows]]
            kept = near != rows[:, None]
            kept[kept.all(axis=1), -1] = False  # a row that its document is not in has one too many
            found[rows], scores[rows] = near[kept].reshape(-1, n), score[kept].reshape(-1, n)
        return found, scores

    def _search(self, points: _Rows, places: Ids, n: int, ids: Ids, similarities: Similarities) -> None:
        """Write the n nearest documents of the points at some places to the rows of the same places."""
        if not len(self._groups.first) or not len(places):
            return
        documents = _Rows(self._vectors, self._groups.first, self._groups.lengths)
        wanted = min(n, len(documents))
        if self.is_approximate:
            self._search_graphs(points, places, documents, wanted, n, ids, similarities)
            return
        with without_gradients(), _single_precision(), ExitStack() as stack:
            symmetric = points.array is documents.array and len(places) == len(documents)
            compiles = self._device.type == "cpu" and len(places) * len(documents) >= _FEWEST_PAIRS
            loop = Selection.loop() if compiles else None
            if loop is None:
                candidates, floors = self._candidates(points, places, documents, wanted, symmetric)
            else:
                n_helpers = torch.get_num_threads() - 1
                stack.enter_context(one_thread())  # threads of one product would wait for each other
                stack.enter_context(helper_threads(n_helpers))
                is_small = documents.array.size <= _SEARCHED_NUMBERS
                if is_small and is_fast(self.size):
                    found = self._selected_by_rounded(loop, points, places, documents, wanted, symmetric)
                    if found is not None:
                        places, _, _ = self._write_exact(
                            points, places, documents, *found, wanted, n, ids, similarities
                        )
                        symmetric = False
                candidates, floors = self._selected(loop, points, places, documents, wanted, symmetric)
                if is_small:
                    places, candidates, floors = self._write_exact(
                        points, places, documents, candidates, floors, wanted, n, ids, similarities
                    )
            step = max(1, _NUMBERS // (candidates.shape[1] * self.size))
            for start in range(0, len(places), step):
                part = slice(start, start + step)
                queries, near = places[part], candidates[part]
                scores = _cosines(points, queries, documents, near)
                # Every document that is not a candidate has at most the floor, but for rounding.
                least = -np.partition(-scores, wanted - 1, axis=1)[:, wanted - 1]
                is_sure = floors[part] + self._error < least
                self._write(queries[is_sure], near[is_sure], scores[is_sure], n, ids, similarities)
                if not is_sure.all():
                    self._search_among_equals(
                        points, queries[~is_sure], documents, least[~is_sure], n, ids, similarities
                    )

    @cached_property
    def _units(self) -> torch.Tensor:
        """The unit vectors (G, d) of the documents, float32; kept, so that a single query takes little time."""
        documents = _Rows(self._vectors, self._groups.first, self._groups.lengths)
        starts = range(0, len(documents), _BLOCK)
        places = (np.arange(start, min(start + _BLOCK, len(documents))) for start in starts)
        return torch.cat([documents.units(each, self._device) for each in places])

    @cached_property
    def _graphs(self) -> ProximityGraphs:
        documents = _Rows(self._vectors, self._groups.first, self._groups.lengths)
        return ProximityGraphs(
            len(documents),
            self.size,
            lambda start, end: documents.units(np.arange(start, end), torch.device("cpu")).numpy(),
            torch.get_num_threads(),
        )

    def _search_graphs(
        self, points: _Rows, places: Ids, documents: _Rows, wanted: int, n: int, ids: Ids, similarities: Similarities
    ) -> None:
        """Do as `_search` with candidates from graphs."""
        graphs = self._graphs
        are_documents = points.rows is documents.rows
        m = min(wanted + _SPARE_OF_GRAPHS, len(documents))
        near = np.zeros((len(places), m), np.int32 if len(documents) < 2**31 else np.int64)
        scores = np.full((len(places), m), -np.inf, np.float32)  # -inf: none was found
        step = max(1, _NUMBERS // (m * self.size))

        def cosines_of(queries: Ids, found: Ids) -> Similarities:
            parts = [slice(start, start + step) for start in range(0, len(queries), step)]
            return np.concatenate(
                list(pool.map(lambda part: _cosines(points, queries[part], documents, found[part]), parts))
            )

        with ThreadPoolExecutor(torch.get_num_threads()) as pool:
            for part in _parts(len(places)):
                queries = places[part]
                found, distances = graphs.nearest(points.units(queries, torch.device("cpu")).numpy(), m)
                if are_documents:  # each is its own nearest one
                    is_missing = ((found != queries[:, None]) | np.isinf(distances)).all(axis=1)
                    found[is_missing, -1], distances[is_missing, -1] = queries[is_missing], 0
                cosines = cosines_of(queries, found)
                cosines[np.isinf(distances)] = -np.inf
                best = np.lexsort((found, -cosines), axis=1)
                near[part], scores[part] = np.take_along_axis(found, best, 1), np.take_along_axis(cosines, best, 1)
        if are_documents:
            _complete(near, scores)
        for part in _parts(len(places)):
            self._write(places[part], near[part, :wanted].astype(np.int64), scores[part, :wanted], n, ids, similarities)

    def _duration(self) -> str:
        """Return about how long the exact search for the neighbours of all documents takes, measured on a block."""
        groups = self._groups
        documents = _Rows(self._vectors, groups.first, groups.lengths)
        block = documents.units(np.arange(min(_BLOCK, len(documents))), self._device)
        float((block @ block.T).amax())  # the first product takes longer
        began = time.perf_counter()
        float((block @ block.T).amax())
        hours = (
            (time.perf_counter() - began) * (len(documents) / len(block)) ** 2 / 3600
        )  # choosing takes as long again
        minutes = max(1, round(60 * hours))
        return f"{hours:.0f} hours" if hours >= 1.5 else f"{minutes} minute{'s' * (minutes > 1)}"

    def _block_of(self, documents: _Rows, n: int) -> Callable[[int], torch.Tensor]:
        """Return a function from a document to the unit vectors of it and those after it, (up to n, d)."""
        kept: dict[int, torch.Tensor] = {}

        def block(first: int) -> torch.Tensor:
            if first in kept:
                return kept[first]
            units = documents.units(np.arange(first, min(first + n, len(documents))), self._device)
            if len(documents) * self.size <= _SEARCHED_NUMBERS:
                kept[first] = units
            return units

        return block

    def _candidates(
        self, points: _Rows, places: Ids, documents: _Rows, wanted: int, symmetric: bool
    ) -> tuple[Ids, Similarities]:
        """Return the (Q, m) best documents by single precision, and the (Q,) cosines that no other document exceeds."""
        m = min(wanted + _SPARE, len(documents))
        is_small = len(documents) * self.size <= _KEPT_NUMBERS
        if is_small and not symmetric and len(places) <= _FEW:
            best = (points.units(places, self._device) @ self._units.T).topk(m)
            least = best.values[:, -1].cpu().numpy()
            return best.indices.cpu().numpy(), least if m < len(documents) else np.full_like(least, -np.inf)
        scores = torch.full((len(places), m), -torch.inf, device=self._device)
        ids = torch.zeros((len(places), m), dtype=torch.int64, device=self._device)
        block = self._block_of(documents, _BLOCK)
        for start in range(0, len(places), _BLOCK):
            queries = block(start) if symmetric else points.units(places[start : start + _BLOCK], self._device)
            end = start + len(queries)
            for first in range(start if symmetric else 0, len(documents), _BLOCK):
                others = block(first)
                last = first + len(others)
                product = padded(queries) @ padded(others).T
                keep_best(scores[start:end], ids[start:end], product, len(others), first)
                if symmetric and first != start:
                    keep_best(scores[first:last], ids[first:last], product.T, len(queries), start)
        floors = scores.amin(1).cpu().numpy() if m < len(documents) else np.full(len(places), -np.inf, np.float32)
        return ids.cpu().numpy(), floors

    def _selected(
        self, loop: Callable[..., None], points: _Rows, places: Ids, documents: _Rows, wanted: int, symmetric: bool
    ) -> tuple[Ids, Similarities]:
        """Do as `_candidates` by a compiled loop."""
        m = min(wanted + _SPARE, len(documents))
        block = self._block_of(documents, TILE)
        candidates, floors = _selected_in_tiles(
            Selection(loop, len(places), m),
            block if symmetric else lambda start: points.units(places[start : start + TILE], self._device),
            len(places),
            block,
            len(documents),
            lambda queries, others, out: torch.mm(queries, others.T, out=out),
            symmetric,
        )
        return candidates, floors if m < len(documents) else np.full_like(floors, -np.inf)

    def _selected_by_rounded(
        self, loop: Callable[..., None], points: _Rows, places: Ids, documents: _Rows, wanted: int, symmetric: bool
    ) -> tuple[Ids, Similarities] | None:
        """Do as `_selected` by products of eight bits; None if too many documents are about as similar as the best.

        A floor is infinite where the candidates are not complete.
        """
        block = self._block_of(documents, TILE)
        rounded = [RoundedRows.of(block(first)) for first in range(0, len(documents), TILE)]
        greatest = max(float(each.errors.max()) for each in rounded)
        pilots = points.units(places[:: max(1, len(places) // _PILOTS)], self._device)
        best = torch.full((len(pilots), wanted), -torch.inf)  # (P, wanted)
        for first in range(0, len(documents), TILE):
            best = torch.cat([best, pilots @ block(first).T], 1).topk(wanted).values
        of_pilots = RoundedRows.of(pilots)
        floor = (best[:, -1] - of_pilots.bounds(greatest))[:, None]  # (P, 1)
        counts = sum((of_pilots.products(each) >= floor).sum(1) for each in rounded)  # (P,)
        assert isinstance(counts, torch.Tensor)
        m = int(1.1 * float(counts.float().quantile(0.97))) + 2  # the few other queries are searched again
        if m > len(documents) * self.size // _NUMBERS_OF_A_CANDIDATE or m * 2 * _GROUPS > len(documents):
            return None
        queries = rounded
        if not symmetric:
            starts = range(0, len(places), TILE)
            queries = [RoundedRows.of(points.units(places[at : at + TILE], self._device)) for at in starts]
        sampled = np.arange(0, len(documents), max(1, m * _SPARE_ABOVE // _RANK))
        sample = RoundedRows.of(documents.units(sampled[: len(sampled) // _GROUPS * _GROUPS], self._device))
        estimated = np.empty(len(places), np.float32)

        def estimate(number: int) -> None:
            highest = queries[number].products(sample).unflatten(1, (-1, _GROUPS)).amax(1)  # (b, _GROUPS)
            estimated[number * TILE : (number + 1) * TILE] = highest.topk(_RANK).values[:, -1].numpy()

        run_on_threads([partial(estimate, number) for number in range(len(queries))])
        candidates, floors = _selected_in_tiles(
            Selection(loop, len(places), m, estimated),
            lambda start: queries[start // TILE],
            len(places),
            lambda first: rounded[first // TILE],
            len(documents),
            RoundedRows.products,
            symmetric,
        )
        return candidates, floors + torch.cat([each.bounds(greatest) for each in queries]).numpy()

    def _write_exact(
        self,
        points: _Rows,
        places: Ids,
        documents: _Rows,
        candidates: Ids,
        floors: Similarities,
        wanted: int,
        n: int,
        ids: Ids,
        similarities: Similarities,
    ) -> tuple[Ids, Ids, Similarities]:
        """Write the best candidates of most points by a compiled loop; return the others with their candidates."""
        loop = ranking_loop()
        assert loop is not None  # because the other loop could be compiled
        of_documents = documents.single(), documents.lengths
        of_points = of_documents if points.rows is documents.rows else (points.single(), points.lengths)
        found = ranked(loop, of_points, places, of_documents, candidates)
        is_sure = found.is_exact & (floors + self._error < found.cosines[:, wanted - 1])
        self._write_sorted(places[is_sure], found.documents[is_sure], found.cosines[is_sure], n, ids, similarities)
        return places[~is_sure], candidates[~is_sure], floors[~is_sure]

    def _search_among_equals(
        self,
        points: _Rows,
        places: Ids,
        documents: _Rows,
        least: Similarities,
        n: int,
        ids: Ids,
        similarities: Similarities,
    ) -> None:
        """Do as `_search` for points with so many similar documents that the candidates do not suffice.

        Args:
            least: (Q,) cosines that at least n documents reach.
        """
        step = 64
        for start in range(0, len(places), step):
            part = places[start : start + step]
            floor = torch.from_numpy(least[start : start + step] - np.float32(2 * self._error)).to(self._device)
            queries = points.units(part, self._device)
            rows, near = [], []
            for first in range(0, len(documents), _BLOCK):
                others = documents.units(np.arange(first, min(first + _BLOCK, len(documents))), self._device)
                row, column = (queries @ others.T >= floor[:, None]).nonzero().T.cpu().numpy()
                rows.append(row)
                near.append(column + first)
            row, column = np.concatenate(rows), np.concatenate(near)
            for which, place in enumerate(part):
                mine = column[row == which]
                at_once = max(1, _NUMBERS // self.size)
                scores = [
                    _cosines(points, np.array([place]), documents, mine[None, at : at + at_once])
                    for at in range(0, len(mine), at_once)
                ]
                self._write(np.array([place]), mine[None], np.concatenate(scores, axis=1), n, ids, similarities)

    def _write(
        self, places: Ids, near: Ids, scores: Similarities, n: int, ids: Ids, similarities: Similarities
    ) -> None:
        """Replace candidates, which stand for equal vectors, by their documents, and write the best n in order."""
        order = np.lexsort((near, -scores), axis=1)
        near, scores = np.take_along_axis(near, order, 1), np.take_along_axis(scores, order, 1)
        self._write_sorted(places, near, scores, n, ids, similarities)

    def _write_sorted(
        self, places: Ids, near: Ids, scores: Similarities, n: int, ids: Ids, similarities: Similarities
    ) -> None:
        """Do as `_write` with candidates that are sorted."""
        groups, near, scores = self._groups, near[:, :n], scores[:, :n]
        sizes = np.where(np.isneginf(scores), 0, np.minimum(groups.sizes[near], n))  # (Q, up to n)
        is_single, width = (sizes == 1).all(axis=1), near.shape[1]
        some = places[is_single]
        ids[some, :width], similarities[some, :width] = groups.first[near[is_single]], scores[is_single]
        if is_single.all():
            return
        places, near, scores, sizes = (each[~is_single] for each in (places, near, scores, sizes))
        total = sizes.sum(axis=1)
        row = np.repeat(np.arange(len(places)), total)
        flat, ends = sizes.ravel(), np.cumsum(sizes)
        within = np.arange(ends[-1]) - np.repeat(ends - flat, flat)
        document = groups.members[np.repeat(groups.starts[near].ravel(), flat) + within]
        score = np.repeat(scores.ravel(), flat)
        order = np.lexsort((document, -score, row))
        rank = np.arange(len(row)) - np.repeat(np.cumsum(total) - total, total)
        best = rank < n
        ids[places[row[best]], rank[best]] = document[order][best]
        similarities[places[row[best]], rank[best]] = score[order][best]


class _Rows(NamedTuple):
    """Rows of an array, and their Euclidean lengths in double precision."""

    array: npt.NDArray[Any]
    rows: Ids
    lengths: npt.NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.rows)

    def nonzero(self) -> Ids:
        """Return the places of rows that are not zero."""
        return np.flatnonzero(self.lengths)

    def units(self, places: Ids, device: torch.device) -> torch.Tensor:
        """Return the rows at some places, scaled to length 1: float32."""
        part = _double(self.array[self.rows[places]]) / self.lengths[places, None]
        return torch.from_numpy(part.astype(np.float32)).to(device)

    def single(self) -> npt.NDArray[np.float32]:
        """Return all rows in single precision, which holds both types of vectors exactly."""
        chosen = self.array if len(self.rows) == len(self.array) else self.array[self.rows]
        return torch.from_numpy(np.ascontiguousarray(chosen)).float().numpy()


class _Groups(NamedTuple):
    """Groups of documents with equal vectors, in the order of their first documents; without vectors of zeros.

    Attributes:
        group: (n,) the group of each document, or -1.
        first: (G,) the first document of each group.
        sizes: (G,) the number of its documents.
        starts: (G,) the place of its first document in `members`.
        members: the documents of the first group in ascending order, then those of the next.
        lengths: (G,) the Euclidean length of the vector.
    """

    group: Ids
    first: Ids
    sizes: Ids
    starts: Ids
    members: Ids
    lengths: npt.NDArray[np.float64]


def _groups_of(vectors: npt.NDArray[Any]) -> _Groups:
    lengths = _lengths_of(vectors, "vector")
    directed = np.flatnonzero(lengths)
    key = _hashes(vectors)[directed]
    order = np.argsort(key, kind="stable")
    is_new = np.ones(len(order), bool)
    is_new[1:] = key[order][1:] != key[order][:-1]
    # The first document of each run of equal hashes; the others belong to it if their vectors are equal.
    leader = directed[order][np.maximum.accumulate(np.where(is_new, np.arange(len(order)), 0))]
    first_of = np.arange(len(vectors))
    first_of[directed[order]] = leader
    followers = directed[order][~is_new]
    for start in range(0, len(followers), _HASHED):
        part = followers[start : start + _HASHED]
        differs = (vectors[part] != vectors[first_of[part]]).any(axis=1)
        first_of[part[differs]] = part[differs]  # by chance: it stays alone
    first, group_of_directed, sizes = np.unique(first_of[directed], return_inverse=True, return_counts=True)
    group = np.full(len(vectors), -1)
    group[directed] = group_of_directed
    members = directed[np.argsort(group_of_directed, kind="stable")]
    return _Groups(group, first, sizes, np.cumsum(sizes) - sizes, members, lengths[first])


def _lengths_of(vectors: npt.NDArray[Any], what: str) -> npt.NDArray[np.float64]:
    """Return the Euclidean lengths of rows.

    Raises:
        InputError: a number is not finite.
    """
    lengths = np.empty(len(vectors))
    for part in _parts(len(vectors)):
        numbers = _double(vectors[part])
        lengths[part] = np.sqrt(np.einsum("nd,nd->n", numbers, numbers))
    if not np.isfinite(lengths).all():
        row = int(np.isfinite(lengths).argmin())
        raise InputError(f"{what} {row} contains a number that is not finite; correct it")
    return lengths


def _hashes(vectors: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Return a number for each row that is the same for equal rows."""
    width = vectors.shape[1]
    factors = np.random.default_rng(0).integers(1, 2**63, width, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    found = np.empty(len(vectors), np.uint64)
    for part in _parts(len(vectors)):
        rows = np.ascontiguousarray(vectors[part])
        bits = rows.view(np.uint16 if rows.dtype == np.float16 else np.uint32).astype(np.uint64)
        found[part] = np.einsum("nd,d->n", bits, factors)
    return found


def _parts(n: int) -> Iterator[slice]:
    return (slice(start, min(start + _HASHED, n)) for start in range(0, n, _HASHED))


def _double(numbers: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    if numbers.dtype == np.float16:  # PyTorch converts this type ten times as fast as NumPy
        converted: npt.NDArray[np.float64] = torch.from_numpy(np.array(numbers)).double().numpy()
        return converted
    return numbers.astype(np.float64)


def _cosines(points: _Rows, queries: Ids, documents: _Rows, near: Ids) -> Similarities:
    """Return the (Q, m) cosines of queries and their candidates, rounded from double precision.

    Each sum is computed by itself and in the order of the dimensions, so it does not depend on the others.
    """
    left = _double(points.array[points.rows[queries]])
    right = _double(documents.array[documents.rows[near]])
    lengths = points.lengths[queries, None] * documents.lengths[near]
    cosines: Similarities = (np.einsum("qd,qmd->qm", left, right) / lengths).astype(np.float32)
    return cosines


def _selected_in_tiles(
    selection: Selection,
    queries: Callable[[int], T],
    n_queries: int,
    documents: Callable[[int], T],
    n_documents: int,
    multiply: Callable[[T, T, torch.Tensor], torch.Tensor],
    symmetric: bool,
) -> tuple[Ids, Similarities]:
    """Select documents for each query by products of blocks of both.

    Args:
        selection: what selects.
        queries, documents: functions from a row to the block of `TILE` rows that begins there.
        n_queries, n_documents: the number of rows.
        multiply: a function that writes the products of a block of queries and one of documents to its last argument.
        symmetric: whether the queries are the documents, and each block of pairs is needed once.
    """
    lock = Lock()

    def select_from(first: int) -> None:
        others, tile = documents(first), torch.empty(TILE * TILE)
        for start in range(0, first + 1 if symmetric else n_queries, TILE):
            block = queries(start)
            out = tile[: len(block) * len(others)].view(len(block), len(others))
            product = multiply(block, others, out).numpy()
            with lock:  # two tiles may belong to the same queries
                selection.add(product, start, first, both_ways=symmetric and start < first)

    run_on_threads([partial(select_from, first) for first in reversed(range(0, n_documents, TILE))])
    return selection.finish()


def _blank(rows: int, n: int) -> tuple[Ids, Similarities]:
    return np.full((rows, n), -1), np.zeros((rows, n), np.float32)


def _complete(near: npt.NDArray[Any], scores: Similarities) -> None:
    """Let a document that was found for others find them, too, if they are near enough; in place.

    Args:
        near: (D, m) documents that were found for each document, best first, without a repetition.
        scores: (D, m) their similarities, which are the same both ways; -inf where there is none.
    """
    n_documents, m = near.shape
    starts = np.arange(0, near.size + 1, m, dtype=near.dtype if near.size < 2**31 else np.int64)
    finders = sp.csr_array((scores.ravel(), near.ravel(), starts), shape=(n_documents, n_documents)).tocsc()
    for part in _parts(n_documents):
        size = part.stop - part.start
        bounds = finders.indptr[part.start : part.stop + 1]
        row = np.concatenate([np.repeat(np.arange(size), m), np.repeat(np.arange(size), np.diff(bounds))])
        other = np.concatenate([near[part].ravel(), finders.indices[bounds[0] : bounds[-1]]])
        score = np.concatenate([scores[part].ravel(), finders.data[bounds[0] : bounds[-1]]])
        order = np.lexsort((other, -score, row))
        order = order[~np.isneginf(score[order])]
        row, other, score = row[order], other[order], score[order]
        is_new = np.ones(len(row), bool)
        is_new[1:] = (row[1:] != row[:-1]) | (other[1:] != other[:-1])
        row, other, score = row[is_new], other[is_new], score[is_new]
        counts = np.bincount(row, minlength=size)
        rank = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        best = rank < m
        near[part], scores[part] = 0, -np.inf
        near[part][row[best], rank[best]], scores[part][row[best], rank[best]] = other[best], score[best]


@contextmanager
def _single_precision() -> Iterator[None]:
    """A context in which products of matrices use all 24 bits of single precision, whatever the user has chosen."""
    chosen = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(chosen)
