"""Places of documents on a map, for the page and for pictures. Equal inputs give equal maps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..embeddings.document_vectors import unit_vectors
from ..text.strings import pieces
from .hierarchy import tsne

Array = npt.NDArray[Any]

MOST_PLACED = 100_000  # documents that are placed together
_LANDMARKS = 1200  # documents that t-SNE places; the others are placed among them
_NEIGHBOURS = 5  # landmarks by which another document is placed
_NEIGHBOUR_WIDTH = 0.02  # of the weights of neighbours, as a squared distance between square roots of shares
_VECTOR_WIDTH = 0.1  # the same, as a squared distance between vectors of length 1
_TSNE_STEPS = 350  # more change little on a map of this size
_FEWEST_FOR_TSNE = 12  # documents; fewer are placed by their principal components
_DOCUMENTS_AT_ONCE = 4096
_JITTER = 0.004  # of documents that are placed among others, as a share of the map


def document_positions(theta: Array, vectors: Array | None = None, random_state: int = 0) -> Array:
    """Place documents so that those with similar vectors, or else with similar topics, are near each other.

    A random part of the documents is placed by t-SNE on their vectors of length 1, or on the square roots of their
    shares, and each other document at the mean of its nearest neighbours among these. A document without a vector is
    placed where documents with similar topics are.

    Args:
        theta: (n, K) topic shares.
        vectors: (n, E) the documents' vectors; a zero vector stands for no vector. None places documents by shares, as
            do vectors of fewer than 12 documents.
        random_state: the seed.

    Returns:
        (n, 2) float32 from 0 to 1.
    """
    if vectors is not None and places_by_vectors(vectors):
        known = has_direction(vectors)
        places = np.empty((len(theta), 2), np.float32)
        places[known] = _scattered(unit_vectors(vectors[known]), _VECTOR_WIDTH, random_state)
        if not known.all():
            marks = np.flatnonzero(known)
            marks = np.sort(np.random.default_rng(random_state + 2).permutation(marks)[:_LANDMARKS])
            places[~known] = _among(theta[~known], _roots(theta[marks]), places[marks], _NEIGHBOUR_WIDTH, _roots)
        return places
    if len(theta) < _FEWEST_FOR_TSNE or theta.shape[1] < 2:
        return _principal(_roots(theta))
    return _scattered(theta, _NEIGHBOUR_WIDTH, random_state, _roots)


def _itself(points: Array) -> Array:
    return points


def _roots(theta: Array) -> Array:
    """Return the square roots of shares, whose Euclidean distances are Hellinger's."""
    roots: Array = np.sqrt(theta.astype(np.float32, copy=False))
    return roots


def places_by_vectors(vectors: Array | None) -> bool:
    """Return whether documents with these vectors are placed by them, and not by their shares."""
    return vectors is not None and int(has_direction(vectors).sum()) >= _FEWEST_FOR_TSNE


def has_direction(vectors: Array) -> npt.NDArray[np.bool_]:
    """Return which vectors are not zero, (n,)."""
    return np.concatenate([np.zeros(0, np.bool_), *(part.any(axis=1) for part in pieces(vectors))])


def _scattered(points: Array, width: float, random_state: int, form: Callable[[Array], Array] = _itself) -> Array:
    """Place points (n, L) in the unit square by t-SNE, (n, 2).

    Args:
        points: at least as many as t-SNE needs.
        width: that of the weights of neighbours, as a squared distance.
        random_state: the seed.
        form: what makes points of rows. It gets few at a time, so that there is no copy of all.
    """
    n = len(points)
    chosen = np.sort(np.random.default_rng(random_state).permutation(n)[:_LANDMARKS])
    marks = form(points[chosen])
    start = _principal(marks)
    start = (start - 0.5) * 1e-4 / max(float(start[:, 0].std()), 1e-9)  # so small a spread is usual for t-SNE
    start += 1e-6 * np.random.default_rng(random_state).standard_normal(start.shape)
    with np.errstate(all="ignore"):  # not `catch_warnings`, which other threads would see
        placed = tsne(marks, random_state, start, _TSNE_STEPS)
    if n == len(chosen):
        return _scaled(placed)
    places = _among(points, marks, placed, width, form)
    places[chosen] = placed
    # Documents with the same neighbours would hide each other.
    spread = _JITTER * float(np.abs(placed).max())
    others = np.ones(n, bool)
    others[chosen] = False
    places[others] += spread * np.random.default_rng(random_state + 1).standard_normal((int(others.sum()), 2))
    return _scaled(places)


def _among(points: Array, marks: Array, placed: Array, width: float, form: Callable[[Array], Array] = _itself) -> Array:
    """Place points (n, L) among landmarks (M, L) whose places (M, 2) are known: (n, 2) float32."""
    places = np.empty((len(points), 2), np.float32)
    squares = (marks**2).sum(1)
    n_near = min(_NEIGHBOURS, len(marks))
    for first in range(0, len(points), _DOCUMENTS_AT_ONCE):
        distance = squares - 2 * form(points[first : first + _DOCUMENTS_AT_ONCE]) @ marks.T  # up to a row's constant
        each = np.arange(len(distance))
        nearest = np.empty((len(distance), n_near), np.intp)
        by_distance = np.empty((len(distance), n_near), distance.dtype)
        for rank in range(n_near):  # vectorised, and therefore many times as fast as a partition of each row
            nearest[:, rank] = distance.argmin(axis=1)
            by_distance[:, rank] = distance[each, nearest[:, rank]]
            distance[each, nearest[:, rank]] = np.inf
        by_distance -= by_distance[:, :1]
        weights = np.exp(-by_distance / width)
        weights /= weights.sum(axis=1, keepdims=True)
        places[first : first + _DOCUMENTS_AT_ONCE] = (placed[nearest] * weights[..., None]).sum(1)
    return places


def _principal(points: Array) -> Array:
    """Return the first two principal components (n, 2), from 0 to 1."""
    if len(points) == 0:
        return np.zeros((0, 2), np.float32)
    centred = points - points.mean(0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    axes = vectors[:, ::-1][:, :2]
    axes = axes * np.where(np.take_along_axis(axes, np.abs(axes).argmax(0)[None], 0) > 0, 1, -1)
    place = np.zeros((len(points), 2))
    place[:, : axes.shape[1]] = centred @ axes
    return _scaled(place)


def _scaled(place: Array) -> Array:
    return np.column_stack([to_unit(place[:, axis]) for axis in range(2)]).astype(np.float32)


def to_unit(values: Array) -> Array:
    """Return values (n,) scaled so that they go from 0 to 1; equal values are 0.5."""
    low, high = float(values.min(initial=np.inf)), float(values.max(initial=-np.inf))
    scaled: Array = (values - low) / (high - low) if high > low else np.full(len(values), 0.5)
    return scaled
