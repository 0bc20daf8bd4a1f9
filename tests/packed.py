"""A reader of the data in the explorer's page, written from the description of the format and not from its writer."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import numpy as np

TYPES = {"u1": "<u1", "u2": "<u2", "i4": "<i4", "f2": "<f2", "f4": "<f4", "f8": "<f8"}
IN_PLANES = {"u2", "i4", "f2", "f4"}  # first the lowest bytes of all numbers, then the next ones


def unpack(part: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the values and the arrays of a part of the page."""
    whole = zlib.decompress(base64.b64decode(part))
    first = 4 + int.from_bytes(whole[:4], "little")
    values = json.loads(whole[4:first])
    arrays = {}
    for name, about in values.pop("arrays").items():
        kind = np.dtype(TYPES[about["type"]])
        size = int(np.prod(about["shape"], dtype=np.int64)) * kind.itemsize
        numbers = np.frombuffer(whole, np.uint8, size, first + about["offset"])
        if about["type"] in IN_PLANES:
            numbers = numbers.reshape(kind.itemsize, -1).T
        arrays[name] = np.frombuffer(numbers.tobytes(), kind).reshape(about["shape"])
    return values, arrays
