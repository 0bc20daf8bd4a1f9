"""Tests of differences: corrections for many tests, and paired tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_CONFIDENCE = 0.95  # of the interval of a difference


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjust the p-values of several tests after Holm (1979).

    If only adjusted values below a level count as significant, the chance of any false positive is at most that level,
    however the tests depend on one another.

    Args:
        p_values: one for each test; None if there was no test.

    Returns:
        the adjusted values in the same order, at most 1.

    Examples:
        >>> from topicloom.metrics.significance import holm
        >>> holm([0.01, 0.5, None])
        [0.02, 0.5, None]
    """
    tested = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(tested):
        highest = max(highest, min(1.0, (len(tested) - rank) * p))
        adjusted[place] = highest
    return adjusted


def paired_difference(ours: npt.NDArray[Any], theirs: npt.NDArray[Any]) -> dict[str, Any]:
    """Compare two series of values, pair by pair.

    Args:
        ours, theirs: (n,) values; a pair with NaN or an infinite value is left out.

    Returns:
        difference (the mean of ours minus theirs), low and high (its 95 % confidence interval by Student's t), pairs
        (their number), and p (two-sided, of the paired t-test). What cannot be computed is None: interval and p need at
        least two pairs, and differences that are not all the same.

    Examples:
        >>> import numpy as np
        >>> from topicloom.metrics.significance import paired_difference
        >>> found = paired_difference(np.array([0.5, 0.75, np.nan]), np.array([0.25, 0.25, 0.1]))
        >>> found["difference"], found["pairs"]
        (0.375, 2)
    """
    from scipy.stats import t, ttest_rel

    both = np.isfinite(ours) & np.isfinite(theirs)
    differences = ours[both] - theirs[both]
    n = len(differences)
    mean = float(differences.mean()) if n else None
    row = {"difference": mean, "low": None, "high": None, "pairs": n, "p": None}
    if mean is None or n < 2 or not differences.std() > 0:
        return row
    margin = float(t.ppf((1 + _CONFIDENCE) / 2, n - 1) * differences.std(ddof=1) / np.sqrt(n))
    return row | {"low": mean - margin, "high": mean + margin, "p": float(ttest_rel(ours[both], theirs[both]).pvalue)}
