"""Varimax rotation, which makes the dimensions of a Gaussian code readable.

N(0, I) looks the same from all directions, so a model with this prior describes documents as well after any rotation of
its code. Documents do not: most are near a corner, edge or face of a simplex whose corners are topics, so that their
coordinates have heavy tails in a single rotation. Rohe & Zeng 2023, "Vintage factor analysis with Varimax performs
statistical inference", show when varimax finds it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

_STEPS, _TOLERANCE = 200, 1e-6
# In a direction in which the codes hardly differ, the noise of the posterior counts this much, so that a draw of theta
# does not leave the range of floating-point numbers.
_NOISE_SHARE = 0.003
_LEAST_WEIGHT = 0.1  # a topic that no document comes close to has its corner very far away


@dataclass(frozen=True)
class TopicSimplex:
    """The simplex that codes lie in, (K, L) corners, and coordinates of codes in it.

    The coordinates of a code z are y = z A + a, where y_k is large if z is near corner k. They satisfy
    sum_k w_k y_k = 1, and w_k y_k are the barycentric coordinates of z.

    Attributes:
        linear: A, (L, K).
        shift: a, (K,).
        corners: (K, L) the code at which topic k is read. All coordinates but y_k are 0, and y_k is 1 / w_k or 10,
            whichever is less, or the largest y_k of a document if that is more than both.
        weights: w, (K,), of the length 1.
    """

    linear: Tensor
    shift: Tensor
    corners: Tensor
    weights: Tensor


def varimax(x: Tensor) -> Tensor:
    """Return the rotation R, (K, K), that gives the columns of x R the largest variance of squares.

    Kaiser 1958, "The varimax criterion for analytic rotation in factor analysis", without his normalisation of rows. A
    step is that of the power method.

    Args:
        x: (N, K) of any floating-point type.
    """
    rotation = torch.eye(x.shape[1], dtype=x.dtype)  # (K, K)
    before = 0.0
    for _ in range(_STEPS):
        y = x @ rotation  # (N, K)
        left, values, right = torch.linalg.svd(x.mT @ (y**3 - y * (y**2).mean(0)))
        rotation = left @ right
        total = float(values.sum())
        if total <= before * (1 + _TOLERANCE):
            break
        before = total
    return rotation


def centred_basis(n: int, dtype: torch.dtype) -> Tensor:
    """Return n - 1 orthonormal columns with the sum 0, (n, n - 1)."""
    centring = torch.eye(n, dtype=dtype) - 1 / n
    basis: Tensor = torch.linalg.svd(centring)[0][:, :-1]
    return basis


def topic_simplex(codes: Tensor, variance: Tensor) -> TopicSimplex:
    """Return the simplex with K corners in which the codes of documents lie.

    Args:
        codes: (N, K) the codes, each with the sum 0, so that they have K - 1 dimensions.
        variance: (K,) the mean variance of their posteriors.

    Returns:
        a simplex whose tensors are of double precision, on the CPU.
    """
    codes, variance = codes.double().cpu(), variance.double().cpu()
    n, k = codes.shape
    basis = centred_basis(k, codes.dtype)  # (K, K - 1)
    x = torch.cat([torch.ones(n, 1, dtype=codes.dtype), codes @ basis], 1)  # (N, K)
    moments = x.mT @ x / n
    moments[1:, 1:] += _NOISE_SHARE * basis.mT @ (variance[:, None] * basis)
    values, vectors = torch.linalg.eigh(moments)
    values = values.clamp_min(1e-12 * values.amax())  # codes may be equal, and their posteriors certain
    white, colour = (vectors * values**power @ vectors.mT for power in (-0.5, 0.5))  # (K, K) both
    rotation = varimax(x @ white)
    mixing, unmixing = white @ rotation, rotation.mT @ colour  # y = x mixing, x = y unmixing
    y = x @ mixing  # (N, K)
    sign = torch.where((y**3).mean(0) < 0, -1.0, 1.0).to(codes.dtype)  # the documents of a topic are the heavy tail
    mixing, unmixing, y = mixing * sign, sign[:, None] * unmixing, y * sign
    weights = unmixing[:, 0]  # the means of y
    directions = unmixing[:, 1:] @ basis.mT  # (K, K)
    corner = torch.where(weights > _LEAST_WEIGHT, 1 / weights, 1 / _LEAST_WEIGHT)  # y_k where all others are 0
    length = torch.maximum(corner, y.amax(0))  # as documents have noise, some are beyond the corner
    return TopicSimplex(basis @ mixing[1:], mixing[0], length[:, None] * directions, weights)
