"""Optimal transport between two sets of points, by Sinkhorn's algorithm (Cuturi 2013), with exact gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_ROUNDS = 10  # rounds of scaling between two checks; the scales are then absorbed, so that they stay near 1


def squared_distances(x: Tensor, y: Tensor) -> Tensor:
    """Return the squared Euclidean distances of points, (N, L) and (M, L) -> (N, M).

    >>> import torch
    >>> squared_distances(torch.tensor([[0.0, 3.0]]), torch.tensor([[4.0, 0.0], [0.0, 3.0]]))
    tensor([[25.,  0.]])
    """
    return torch.addmm((x**2).sum(1, keepdim=True) + (y**2).sum(1), x, y.mT, alpha=-2).clamp_min(0)


def transport_plan(
    cost: Tensor,
    rows: Tensor,
    columns: Tensor,
    sharpness: float,
    *,
    tolerance: float = 5e-3,
    max_rounds: int = 1000,
) -> Tensor:
    """Return the plan P that minimises <P, cost> - H(P) / sharpness, where H is the entropy (Cuturi 2013).

    P has the form exp(f_i + g_j - sharpness cost_ij), and f and g are found by Sinkhorn's algorithm. The gradient is
    that of the exact plan, by the implicit function theorem, so it does not depend on the number of rounds.

    Args:
        cost: (N, M).
        rows: (N,) the positive sums of the rows of P, with the sum 1.
        columns: (M,) the positive sums of the columns of P, with the sum 1.
        sharpness: the inverse of the weight of the entropy. With a large value, P comes near the cheapest plan.
        tolerance: the sum of the absolute errors of the columns' sums at which the algorithm ends. The sums of the rows
            have no error but that of rounding.
        max_rounds: the largest number of rounds.

    Returns:
        (N, M), which can be differentiated once with respect to cost, rows and columns.

    >>> import torch
    >>> cost = torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])
    >>> plan = transport_plan(cost, torch.tensor([0.5, 0.5]), torch.tensor([0.3, 0.3, 0.4]), 100.0)
    >>> (plan.round(decimals=2) + 0.0).tolist()
    [[0.30000001192092896, 0.20000000298023224, 0.0], [0.0, 0.10000000149011612, 0.4000000059604645]]
    """
    out: Tensor = _Plan.apply(cost, rows, columns, sharpness, tolerance, max_rounds)  # type: ignore[no-untyped-call]
    return out


class _Plan(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, cost: Tensor, rows: Tensor, columns: Tensor, sharpness: float, tolerance: float, max_rounds: int
    ) -> Tensor:
        tiny = torch.finfo(cost.dtype).tiny
        log_plan = -sharpness * cost  # (N, M)
        log_rows, log_columns = rows.log()[:, None], columns.log()  # (N, 1), (M,)
        plan, done = log_plan, 0
        while True:
            # In logarithms, so that no number underflows: the columns, and then the rows, get their sums.
            log_plan = log_plan + (log_columns - log_plan.logsumexp(0))
            log_plan = log_plan + (log_rows - log_plan.logsumexp(1, keepdim=True))
            plan = log_plan.exp()
            done += 1
            if done >= max_rounds or (plan.sum(0) - columns).abs().sum() <= tolerance:
                break
            by_row, by_column = torch.ones_like(rows), torch.ones_like(columns)
            for _ in range(_ROUNDS):
                by_column = columns / (by_row @ plan).clamp_min(tiny)
                by_row = rows / (plan @ by_column).clamp_min(tiny)
            log_plan = log_plan + by_row.clamp_min(tiny).log()[:, None] + by_column.clamp_min(tiny).log()
            done += _ROUNDS
        ctx.sharpness = sharpness
        ctx.save_for_backward(plan)
        return plan

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradients.

        With dP = P (df_i + dg_j - sharpness dcost_ij), the sums of rows and columns give linear equations for df and
        dg. Their matrix is symmetric, so the gradients x of the rows' sums and y of those of the columns solve
        rows x + P y = r and P^T x + columns y = c, where r and c are the sums of P grad.
        """
        (plan,) = ctx.saved_tensors
        weighted = plan * grad  # (N, M)
        wide = len(plan) <= plan.shape[1]
        p, w = (plan, weighted) if wide else (plan.mT, weighted.mT)  # (S, B): few rows, many columns
        a, b = p.sum(1), p.sum(0)  # (S,), (B,)
        r, c = w.sum(1), w.sum(0)
        b = b.clamp_min(torch.finfo(b.dtype).tiny)
        matrix = (torch.diag(a) - (p / b) @ p.mT).double()  # (S, S); constants are its null space
        a = a.double()
        x = _solved(matrix + torch.outer(a, a), (r - p @ (c / b)).double()).to(p)
        y = (c - x @ p) / b
        of_rows, of_columns = (x, y) if wide else (y, x)
        of_log = weighted - plan * (of_rows[:, None] + of_columns)
        return -ctx.sharpness * of_log, of_rows, of_columns, None, None, None


def _solved(matrix: Tensor, right: Tensor) -> Tensor:
    """Return x (S,) with matrix x = right, for a symmetric matrix (S, S).

    If nothing is transported between groups of points, each group has a null space of its own, and the matrix is
    singular. The gradients of the costs are then the same for all solutions, of which the shortest is returned.
    """
    x: Tensor
    x, problem = torch.linalg.solve_ex(matrix, right)
    if int(problem) and bool(matrix.isfinite().all()):
        x = torch.linalg.pinv(matrix, hermitian=True) @ right
    return x
