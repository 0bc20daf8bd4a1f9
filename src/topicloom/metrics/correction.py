"""Corrections for many tests."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjust the p-values of several tests after Holm (1979).

    If only adjusted values below a level count as significant, the chance of any false positive is at most that level,
    however the tests depend on one another.

    Args:
        p_values: one for each test; None if there was no test.

    Returns:
        the adjusted values in the same order, at most 1.
    """
    tested = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(tested):
        highest = max(highest, min(1.0, (len(tested) - rank) * p))
        adjusted[place] = highest
    return adjusted
