"""Products of unit vectors that are rounded to eight bits, and bounds on the errors.

Processors with instructions for eight-bit products (VNNI) compute them several times as fast as products in single
precision. The bounds show which documents may be nearest, so that a search is as exact as without rounding.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch

_GREATEST = 127
_SLACK = 1e-5  # more than all roundings of the bounds themselves, which are in single precision
_LEAST_GAIN = 2.0  # times as fast as single precision; otherwise more candidates cost more than products save


@dataclass(frozen=True, eq=False)
class RoundedRows:
    """Unit vectors, each rounded to whole multiples of a step of its own.

    Attributes:
        numbers: (n, d) int8.
        steps: (n,) float32.
        errors: (n,) float32; upper bounds on the Euclidean lengths of the rounding errors.
    """

    numbers: torch.Tensor
    steps: torch.Tensor
    errors: torch.Tensor

    @classmethod
    def of(cls, units: torch.Tensor) -> RoundedRows:
        """Round unit vectors (n, d) of float32.

        >>> import torch
        >>> from topicloom.embeddings.eight_bits import RoundedRows
        >>> rounded = RoundedRows.of(torch.tensor([[0.6, -0.8]]))
        >>> rounded.numbers.tolist(), round(float(rounded.steps[0]), 4), bool(rounded.errors[0] < 0.004)
        ([[95, -127]], 0.0063, True)
        """
        steps = units.abs().amax(1).clamp_(min=1e-30) / _GREATEST  # (n,)
        numbers = (units / steps[:, None]).round_()  # (n, d)
        errors = torch.linalg.vector_norm(units - numbers * steps[:, None], dim=1) + _SLACK
        return cls(numbers.to(torch.int8), steps, errors)

    def __len__(self) -> int:
        return len(self.numbers)

    def products(self, others: RoundedRows, out: torch.Tensor | None = None) -> torch.Tensor:
        """Return the products (n, m) of the rounded rows with other ones, float32.

        Args:
            others: m rows.
            out: (n, m) float32, which the result overwrites.
        """
        product = torch._int_mm(self.numbers, others.numbers.T)  # (n, m) int32, exact
        found = torch.empty(product.shape) if out is None else out
        return found.copy_(product).mul_(self.steps[:, None]).mul_(others.steps)

    def bounds(self, greatest: float) -> torch.Tensor:
        """Return (n,) numbers by which true cosines exceed the products of the rounded rows at most.

        Let unit vectors u and v be rounded to u' and v'. Then uv - u'v' = (u - u')v + u'(v - v'), and the inequality of
        Cauchy and Schwarz bounds both products.

        Args:
            greatest: the greatest of the others' errors.
        """
        return self.errors + (1 + self.errors) * greatest


@cache
def is_fast(size: int) -> bool:
    """Return whether products of rounded vectors of `size` dimensions are exact and pay on this processor.

    It is measured, because neither PyTorch nor the processor's name tells reliably. A search finds the same either way.
    """
    random = np.random.default_rng(0)
    few = torch.from_numpy(random.choice([-_GREATEST, _GREATEST], (256, size)).astype(np.int8))
    single = few.float()
    try:
        if not torch.equal(torch._int_mm(few, few.T).double(), few.double() @ few.double().T):
            return False
    except (AttributeError, RuntimeError):  # this version or build of PyTorch has no such products
        return False

    def seconds(of: torch.Tensor, multiply: Any) -> float:
        times = []
        for _ in range(4):
            began = time.perf_counter()
            multiply(of, of.T)
            times.append(time.perf_counter() - began)
        return min(times)

    return seconds(few, torch._int_mm) * _LEAST_GAIN < seconds(single, torch.mm)
