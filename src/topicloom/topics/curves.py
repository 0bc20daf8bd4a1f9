"""The share of topics as a smooth function of a number, such as a price or an age, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ..ranking import chosen_topics, names_or_numbers
from .table import Table

Array = npt.NDArray[Any]

_KNOTS = (0.05, 0.275, 0.5, 0.725, 0.95)  # quantiles (Harrell 2015, table 2.3)
_FEWEST_VALUES = 5  # different numbers that a curve needs
_MOST_VALUES = 1000  # more different numbers are averaged in groups of equal size
_MOST_STEPS = 50  # of Newton's method
_MOST_POINTS = 60  # of a curve
_RIDGE = 1e-5  # keeps coefficients finite where all documents of a part of the range have a share of 0


@dataclass(frozen=True, eq=False)
class ShareCurve:
    """Shares of K topics as smooth functions of a number, at P points.

    Attributes:
        by: the name of the number.
        values: (P,) the points, ascending, from the 1 % quantile of the documents' numbers to the 99 % quantile.
        mean: (P, K) the expected share.
        low, high: (P, K) its interval, for each point alone.
        n_docs: the number of documents.
        names: the K names of the topics.
    """

    by: str
    values: Array
    mean: Array
    low: Array
    high: Array
    n_docs: int
    names: list[str]

    def table(self, topics: Sequence[int] | None = None) -> Table:
        """Return a row for each topic and point: value, topic, name, share, low, high.

        Args:
            topics: these topics only.

        Raises:
            SettingError: there is no such topic.
        """
        rows = [
            {
                "value": float(value), "topic": k, "name": self.names[k], "share": float(self.mean[point, k]),
                "low": float(self.low[point, k]), "high": float(self.high[point, k]),
            }
            for k in chosen_topics(topics, len(self.names))
            for point, value in enumerate(self.values)
        ]  # fmt: skip
        return Table.of(rows, f"Shares of topics by {self.by}", ("value", "topic", "name", "share", "low", "high"))


def share_curve(
    theta: Array,
    values: Array,
    *,
    by: str = "value",
    empty: npt.NDArray[np.bool_] | None = None,
    names: Sequence[str] | None = None,
    level: float = 0.95,
) -> ShareCurve | None:
    """Return the shares of topics as smooth functions of a number; None if it has fewer than 5 different values.

    The model of each topic is a fractional logit (Papke & Wooldridge 1996): the logit of its expected share is a
    natural cubic spline with knots at the 5, 27.5, 50, 72.5 and 95 % quantiles (Harrell 2015). Beyond the outer knots,
    it is a straight line. The variance at each point is the larger one of the sandwich estimate and of the estimate
    with one dispersion for all documents, since the first is too small where few documents have most of a topic.

    Args:
        theta: (n_docs, K) topic shares.
        values: (n_docs,) the number of each document; documents whose number is not finite are left out.
        by: the name of the number.
        empty: (n_docs,) True for documents without a known word, which are left out.
        names: the K names of the topics.
        level: the probability that the interval at a point should contain the expected share.

    Examples:
        >>> import numpy as np
        >>> from topicloom.topics.curves import share_curve
        >>> price = np.linspace(1, 10, 200)
        >>> theta = np.stack([price / 12, 1 - price / 12], axis=1)
        >>> curve = share_curve(theta, price)
        >>> bool(curve.mean[0, 0] < 0.2 < 0.7 < curve.mean[-1, 0])
        True
    """
    from scipy.stats import t as student

    known = np.isfinite(values) if empty is None else np.isfinite(values) & ~empty
    numbers = values[known]
    different, codes = np.unique(numbers, return_inverse=True)
    if len(different) < _FEWEST_VALUES:
        return None
    if len(different) > _MOST_VALUES:  # groups of numbers next to each other
        bounds = np.quantile(numbers, np.linspace(0, 1, _MOST_VALUES + 1)[1:-1])
        codes = np.unique(np.searchsorted(bounds, numbers, side="left"), return_inverse=True)[1]
        different = np.bincount(codes, numbers) / np.bincount(codes)
    n = np.bincount(codes).astype(np.float64)  # (J,)
    members = sp.csr_array((np.ones(len(codes)), (codes, np.arange(len(codes)))), shape=(len(n), len(codes)))
    shares = theta[known].astype(np.float64)
    total, squares = members @ shares, members @ shares**2  # (J, K)
    start, end = np.quantile(numbers, (0.01, 0.99))
    knots = np.unique(np.quantile(numbers, _KNOTS))
    if len(knots) < 3:  # most documents have the same number
        knots = np.unique(np.quantile(different, _KNOTS))
    inside = different[(different >= start) & (different <= end)]
    if len(inside) > _MOST_POINTS:  # half of the points evenly along the axis, half evenly among the documents
        even = np.linspace(start, end, _MOST_POINTS // 2)
        by_docs = np.quantile(numbers, np.linspace(0.01, 0.99, _MOST_POINTS))
        inside = np.unique(np.concatenate([even, by_docs[::2]]))
    basis, at_points = natural_spline(different, knots), natural_spline(inside, knots)
    eta, error = _fractional_logit(basis, n, total, squares, at_points)
    margin = float(student.ppf((1 + level) / 2, max(len(codes) - basis.shape[1], 1))) * error
    mean, low, high = (_expit(each) for each in (eta, eta - margin, eta + margin))
    return ShareCurve(by, inside, mean, low, high, len(codes), names_or_numbers(names, theta.shape[1]))


def natural_spline(x: Array, knots: Array) -> Array:
    """Return a basis of the natural cubic splines with these knots at each x, (n, number of knots).

    The basis is that of Hastie, Tibshirani & Friedman (2009), equations 5.4 and 5.5, over x scaled to the knots.
    """
    width = knots[-1] - knots[0]
    x, places = (x - knots[0]) / width, (knots - knots[0]) / width
    cubes = np.maximum(x[:, None] - places, 0) ** 3
    chords = (cubes[:, :-1] - cubes[:, -1:]) / (places[-1] - places[:-1])
    return np.column_stack([np.ones(len(x)), x, chords[:, :-1] - chords[:, -1:]])


def _expit(values: Array) -> Array:
    return 1 / (1 + np.exp(-values))


def _fractional_logit(basis: Array, n: Array, total: Array, squares: Array, at_points: Array) -> tuple[Array, Array]:
    """Fit the topics by Newton steps; return the logit at each point and its standard error, both (P, K).

    Args:
        basis: (J, p) the row of each distinct number.
        n: (J,) its documents.
        total, squares: (J, K) sums of the shares and of their squares over these documents.
        at_points: (P, p) the rows at which the logit is wanted.
    """
    size, width = n.sum(), basis.shape[1]
    # Columns that are orthogonal and of the same size: the penalty then hardly changes what the documents determine.
    change = np.linalg.inv(np.linalg.qr(np.sqrt(n / size)[:, None] * basis, mode="r"))
    basis, at_points = basis @ change, at_points @ change
    mean = np.clip(total.sum(axis=0) / size, 1e-6, 1 - 1e-6)
    weights = np.zeros((width, total.shape[1]))
    weights[0] = np.log(mean / (1 - mean)) / basis[0, 0]  # the first column is constant
    penalty = np.full(width, _RIDGE)
    penalty[0] = 0
    hessian = np.zeros((total.shape[1], width, width))
    fitted = np.tile(mean, (len(n), 1))
    for _ in range(_MOST_STEPS):
        fitted = np.clip(_expit(np.clip(basis @ weights, -30, 30)), 1e-9, 1 - 1e-9)  # (J, K)
        curvature = n[:, None] * fitted * (1 - fitted)
        scale = curvature.sum(axis=0)  # the penalty is a part of the information of a topic
        hessian = np.einsum("jp,jk,jq->kpq", basis, curvature, basis, optimize=True)
        hessian += np.eye(width) * penalty * scale[:, None, None]
        gradient = basis.T @ (total - n[:, None] * fitted) - penalty[:, None] * scale * weights
        step = np.linalg.solve(hessian, gradient.T[:, :, None])[:, :, 0].T
        step *= np.minimum(1, 5 / np.maximum(np.abs(step).max(axis=0), 1e-12))
        weights += step
        if np.abs(step).max() < 1e-8:
            break
    residual = np.maximum(squares - 2 * fitted * total + n[:, None] * fitted**2, 0)
    inverse = np.linalg.inv(hessian)
    meat = np.einsum("jp,jk,jq->kpq", basis, residual, basis, optimize=True)
    sandwich = inverse @ meat @ inverse * (size / max(size - width, 1))
    dispersion = (residual / (fitted * (1 - fitted))).sum(axis=0) / max(size - width, 1)
    pooled = inverse * dispersion[:, None, None]
    variances = [np.einsum("ip,kpq,iq->ik", at_points, each, at_points, optimize=True) for each in (sandwich, pooled)]
    return np.clip(at_points @ weights, -30, 30), np.sqrt(np.maximum(*variances))
