"""Paths as arguments."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..errors import SettingError


def as_path(value: Any, name: str) -> Path:
    """Return an argument as a path.

    Args:
        value: what was given.
        name: the name of the argument, for the message.

    Raises:
        SettingError: the value is not a path.
    """
    if not isinstance(value, str | os.PathLike):
        raise SettingError(f"`{name}` should be a path, as a text or a Path; it is {value!r:.60}")
    return Path(value)
