"""Points of many dimensions as points of a plane, for maps."""

from __future__ import annotations

import warnings
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from ..errors import InputError, MissingExtraError, SettingError

Projection = Literal["tsne", "pca", "umap"]
PROJECTIONS: tuple[str, ...] = get_args(Projection)

_FEWEST = 5  # points; t-SNE and UMAP need some neighbours
_PERPLEXITY = 30.0


def project(points: npt.ArrayLike, method: Projection = "tsne", random_state: int = 0) -> npt.NDArray[np.float64]:
    """Return points of a plane in which neighbours among the given points are neighbours again.

    Args:
        points: (n, L), finite.
        method: "pca" keeps large distances: it is a view of the points from the direction in which they differ most
            (principal component analysis). "tsne" keeps neighbourhoods (van der Maaten & Hinton 2008). "umap" does so
            too (McInnes, Healy & Melville 2018), and needs the package umap-learn. Fewer than five points, or points
            that are all the same, always have a "pca".
        random_state: the seed of "tsne" and "umap".

    Returns:
        (n, 2), centred; the same for the same points and seed.

    Raises:
        InputError: `points` is no matrix of finite numbers.
        SettingError: there is no such method.
        MissingExtraError: "umap" without umap-learn.
    """
    if method not in PROJECTIONS:
        raise SettingError(f"`projection={method!r}` should be one of {', '.join(PROJECTIONS)}")
    rows = np.asarray(points, np.float64)
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise InputError(f"a map needs a matrix of finite numbers; this one has shape {rows.shape}")
    rows = rows - rows.mean(axis=0) if len(rows) else rows
    if method == "pca" or len(np.unique(rows, axis=0)) < _FEWEST:
        return _pca(rows)
    placed = tsne(rows, random_state) if method == "tsne" else _umap(rows, random_state)
    placed -= placed.mean(axis=0)
    return placed


def _pca(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    from sklearn.decomposition import PCA

    n_axes = min(2, *rows.shape)
    plane = np.zeros((len(rows), 2))
    if n_axes:
        with np.errstate(invalid="ignore", divide="ignore"):  # equal points have no variance to explain
            plane[:, :n_axes] = PCA(n_axes, svd_solver="full").fit_transform(rows)
    return plane


def tsne(
    rows: npt.NDArray[Any], random_state: int, start: npt.NDArray[Any] | None = None, n_steps: int = 1000
) -> npt.NDArray[np.float64]:
    """Return points of a plane by t-SNE, (n, 2).

    Args:
        rows: (n, L), at least three.
        random_state: the seed.
        start: (n, 2) where the points begin; None is their principal components.
        n_steps: of the optimisation.
    """
    from sklearn.manifold import TSNE

    perplexity = min(_PERPLEXITY, (len(rows) - 1) / 3)
    init: Any = "pca" if start is None else start.astype(np.float32)
    model = TSNE(init=init, perplexity=perplexity, max_iter=n_steps, random_state=random_state, n_jobs=1)
    placed: npt.NDArray[Any] = np.asarray(model.fit_transform(rows))  # whatever scikit-learn is set to return
    return placed.astype(np.float64)


def _umap(rows: npt.NDArray[np.float64], random_state: int) -> npt.NDArray[np.float64]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of packages that umap-learn could use as well
        try:
            from umap import UMAP
        except ImportError:
            raise MissingExtraError.of("a map by UMAP", "umap-learn", "maps") from None
        model = UMAP(n_neighbors=min(15, len(rows) - 1), min_dist=0.1, random_state=random_state, n_jobs=1)
        placed: npt.NDArray[Any] = np.asarray(model.fit_transform(rows))
    return placed.astype(np.float64)
