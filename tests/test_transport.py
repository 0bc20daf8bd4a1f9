"""Transport plans, compared with linear programming, and their gradients, with finite differences."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from scipy.spatial.distance import cdist

from topicloom.nn.transport import squared_distances, transport_plan


def problem(n: int, m: int, dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(n)
    cost, a, b = (torch.rand(*size, generator=generator, dtype=dtype) for size in ((n, m), (n,), (m,)))
    return cost, torch.softmax(a, 0), torch.softmax(b, 0)


@pytest.mark.parametrize(("n", "m"), [(4, 7), (7, 4), (1, 3)])
def test_a_sharp_plan_is_that_of_linear_programming(n, m):
    cost, a, b = problem(n, m)
    plan = transport_plan(cost, a, b, 2000.0, tolerance=1e-10, max_rounds=100_000)
    sums = np.vstack([np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))])
    best = linprog(cost.numpy().ravel(), A_eq=sums, b_eq=np.r_[a, b])
    assert plan.numpy().ravel() == pytest.approx(best.x, abs=1e-6)


def test_a_blunt_plan_is_that_of_independent_masses():
    cost, a, b = problem(4, 6)
    assert torch.allclose(transport_plan(cost, a, b, 1e-9), torch.outer(a, b), atol=1e-8)


def test_a_plan_has_the_sums_and_the_least_regularised_cost():
    cost, a, b = problem(3, 5)
    plan = transport_plan(cost, a, b, 5.0, tolerance=1e-12)
    assert torch.allclose(plan.sum(1), a)
    assert torch.allclose(plan.sum(0), b)

    def value(p):
        return float((p * cost).sum() + (p * p.log()).sum() / 5.0)

    for i, j in pairwise(range(5)):  # moves that keep all sums
        for step in (1e-4, -1e-4):
            other = plan.clone()
            other[0, i] += step
            other[1, i] -= step
            other[0, j] -= step
            other[1, j] += step
            assert value(other) > value(plan)


@pytest.mark.parametrize(("n", "m"), [(3, 5), (5, 3)])
def test_gradients_are_finite_differences(n, m):
    inputs = [each.requires_grad_() for each in problem(n, m)]

    def of(cost, a, b):
        return transport_plan(cost, a / a.sum(), b / b.sum(), 5.0, tolerance=1e-13, max_rounds=10_000)

    assert torch.autograd.gradcheck(of, inputs, atol=1e-6)


@pytest.mark.parametrize(("n", "m"), [(12, 4), (4, 12), (4, 2)])
def test_gradients_of_separate_groups_are_those_of_each_group(n, m):
    cost, _, _ = problem(n, m)
    weights = torch.rand(n, m, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    parts = [(slice(0, n // 2), slice(0, m // 2)), (slice(n // 2, n), slice(m // 2, m))]
    far = torch.full_like(cost, 2000.0)
    for part in parts:
        far[part] = 0

    def gradient(cost, weights):
        cost = cost.detach().clone().requires_grad_()
        n, m = cost.shape
        plan = transport_plan(cost, cost.new_full((n,), 1 / n), cost.new_full((m,), 1 / m), 1.0, tolerance=1e-12)
        (plan * weights).sum().backward()
        return cost.grad

    expected = torch.zeros_like(cost)
    for part in parts:
        expected[part] = gradient(cost[part], weights[part]) / 2  # each group has half of the mass
    torch.testing.assert_close(gradient(cost + far, weights), expected, atol=1e-9, rtol=0)


def test_far_points_in_single_precision_have_a_finite_plan():
    cost, a, b = problem(5, 40, torch.float32)
    cost = (40 * cost).requires_grad_()  # up to 800 with the sharpness
    plan = transport_plan(cost, a, b, 20.0)
    assert torch.allclose(plan.sum(1), a, atol=1e-5)
    assert float((plan.sum(0) - b).abs().sum().detach()) < 0.05
    (plan * cost).sum().backward()
    assert cost.grad.isfinite().all()


def test_distances_are_those_of_scipy():
    random = np.random.default_rng(0)
    x, y = (torch.from_numpy(random.normal(size=(n, 3))) for n in (4, 6))
    assert squared_distances(x, y).numpy() == pytest.approx(cdist(x, y, "sqeuclidean"))
