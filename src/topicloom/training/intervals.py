"""How often something is done in training: after some time, or after some epochs."""

from __future__ import annotations

import re

from ..errors import SettingError

_INTERVAL = re.compile(r"(\d+(?:\.\d+)?)\s*(s|sec|seconds?|min|minutes?|h|hours?|epochs?)")
_SECONDS = {"s": 1, "m": 60, "h": 3600}


def read_interval(every: str) -> tuple[float | None, int | None]:
    """Return the seconds or the epochs of an interval, and None for the other.

    Args:
        every: such as "90s", "10min", "2 hours" or "5 epochs".

    Raises:
        SettingError: it is no such interval, or it is zero.
    """
    found = _INTERVAL.fullmatch(str(every).strip())
    number = float(found[1]) if found else 0.0
    if found is None or not number or (found[2].startswith("epoch") and not number.is_integer()):
        raise SettingError(
            f"`every={every!r}` should be a time or a number of epochs, such as '10min', '90s' or '5 epochs'"
        )
    if found[2].startswith("epoch"):
        return None, int(number)
    return number * _SECONDS[found[2][0]], None
