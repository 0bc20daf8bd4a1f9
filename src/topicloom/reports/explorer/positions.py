"""Positions of topics and documents on maps. Equal inputs give equal maps."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from ...topics.projection import tsne

Array = npt.NDArray[Any]

_LANDMARKS = 1200  # documents that t-SNE places; the others are placed among them
_NEIGHBOURS = 5
_STEPS = 350  # of t-SNE; more change little on a map of this size
_FEWEST = 12  # documents; fewer are placed by their principal components
_CHUNK = 4096
_WIDTH = 0.02  # of the weights of neighbours, as a squared distance between square roots of shares
_JITTER = 0.004  # of documents that are placed among others, as a share of the map

_GAP = 1.06  # between the centres of two circles, in sums of their radii
_MOVES = 300  # of overlapping circles at most
_GOLDEN_ANGLE = 2.399963  # in radians; its multiples are spread evenly over the circle


def topic_positions(distances: Array, shares: Array) -> Array:
    """Place topics by classical scaling of their distances, so that circles of their shares hardly overlap.

    Args:
        distances: (K, K).
        shares: (K,) the shares of the topics.

    Returns:
        (K, 2) positions and (K,) radii as one array (K, 3), within the unit square.
    """
    n = len(distances)
    radii = 0.5 * np.sqrt(np.maximum(shares, 1e-4) / max(float(shares.sum()), 1e-9) / np.pi)
    centred = distances**2 - (distances**2).mean(0) - (distances**2).mean(1)[:, None] + (distances**2).mean()
    values, vectors = np.linalg.eigh(-0.5 * centred)
    place = np.zeros((n, 2))
    for axis in range(min(2, n)):
        vector = vectors[:, -1 - axis]
        vector = vector * (1 if vector[np.abs(vector).argmax()] > 0 else -1)
        place[:, axis] = vector * np.sqrt(max(values[-1 - axis], 0.0))
    # Few topics are far from all others; ranks in part keep the rest from being crowded in the middle.
    for axis in range(2):
        ranks = np.argsort(np.argsort(place[:, axis], kind="stable"), kind="stable") / max(n - 1, 1)
        place[:, axis] = 0.5 * _to_unit(place[:, axis]) + 0.5 * ranks
    place = _apart(place, radii)
    low, high = (place - radii[:, None]).min(0), (place + radii[:, None]).max(0)
    scale = 1 / max(float((high - low).max()), 1e-9)
    place = (place - low) * scale + (1 - (high - low) * scale) / 2
    return np.column_stack([place, radii * scale]).astype(np.float32)


def _apart(place: Array, radii: Array) -> Array:
    """Move circles apart where they overlap, each as little as possible."""
    n = len(place)
    if n < 2:
        return place
    needed = (radii[:, None] + radii) * _GAP
    angle = np.arange(n) * _GOLDEN_ANGLE  # directions for circles with the same centre
    place = place + 1e-6 * np.column_stack([np.cos(angle), np.sin(angle)])
    for _ in range(_MOVES):
        apart = place[:, None] - place  # (n, n, 2)
        distance = np.sqrt((apart**2).sum(-1)) + 1e-12
        overlap = np.maximum(needed - distance, 0)
        np.fill_diagonal(overlap, 0)
        if overlap.max() < 1e-4:
            break
        place = place + 0.4 * (apart / distance[..., None] * overlap[..., None]).sum(1)
    return place


def document_positions(theta: Array) -> Array:
    """Place documents so that those with similar topics are near each other.

    A random part of the documents is placed by t-SNE on the square roots of their shares, and each other document at
    the mean of its nearest neighbours among these.

    Args:
        theta: (n, K) topic shares.

    Returns:
        (n, 2) float32 from 0 to 1.
    """
    n = len(theta)
    roots = np.sqrt(theta.astype(np.float32))
    if n < _FEWEST or theta.shape[1] < 2:
        return _principal(roots)
    chosen = np.sort(np.random.default_rng(0).permutation(n)[:_LANDMARKS])
    marks = roots[chosen]
    start = _principal(marks)
    start = (start - 0.5) * 1e-4 / max(float(start[:, 0].std()), 1e-9)  # so small a spread is usual for t-SNE
    start += 1e-6 * np.random.default_rng(0).standard_normal(start.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        placed = tsne(marks, 0, start, _STEPS)
    if n == len(chosen):
        return _scaled(placed)
    places = np.empty((n, 2), np.float32)
    squares = (marks**2).sum(1)
    for first in range(0, n, _CHUNK):
        distance = squares - 2 * roots[first : first + _CHUNK] @ marks.T  # up to a constant for each row
        nearest = np.argpartition(distance, _NEIGHBOURS - 1, axis=1)[:, :_NEIGHBOURS]
        by_distance = np.take_along_axis(distance, nearest, axis=1)
        by_distance -= by_distance.min(axis=1, keepdims=True)
        weights = np.exp(-by_distance / _WIDTH)
        weights /= weights.sum(axis=1, keepdims=True)
        places[first : first + _CHUNK] = (placed[nearest] * weights[..., None]).sum(1)
    places[chosen] = placed
    # Documents with the same neighbours would hide each other.
    spread = _JITTER * float(np.abs(placed).max())
    others = np.ones(n, bool)
    others[chosen] = False
    places[others] += spread * np.random.default_rng(1).standard_normal((int(others.sum()), 2))
    return _scaled(places)


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
    return np.column_stack([_to_unit(place[:, axis]) for axis in range(2)]).astype(np.float32)


def _to_unit(values: Array) -> Array:
    low, high = float(values.min(initial=np.inf)), float(values.max(initial=-np.inf))
    scaled: Array = (values - low) / (high - low) if high > low else np.full(len(values), 0.5)
    return scaled
