"""Missing values in lists and tables."""

from __future__ import annotations

import math
from typing import Any


def is_missing(value: Any) -> bool:
    """Return whether a value stands for an unknown one: None, NaN, NaT or pandas' NA."""
    if value is None:
        return True
    if isinstance(value, float):
        return math.isnan(value)
    if isinstance(value, str | int):
        return False
    try:
        return bool(value != value)
    except TypeError:  # pandas' NA has no truth value
        return True
    except ValueError:  # an array, which is a value that is known
        return False
