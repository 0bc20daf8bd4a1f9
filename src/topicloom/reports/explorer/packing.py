"""The binary format of the page's data: named arrays and JSON values, deflated and in base64.

A part is an unsigned 32-bit length, so many bytes of JSON, and the arrays, each of which starts at a multiple of eight
bytes. All numbers are little-endian. Under "arrays", the JSON has the type, the shape and the offset of each array. The
bytes of arrays whose elements have two or four of them are stored in planes, first all lowest bytes and then the next
ones, because the planes of exponents deflate well.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_TYPES = {"u1": np.uint8, "u2": np.uint16, "i4": np.int32, "f2": np.float16, "f4": np.float32, "f8": np.float64}
_IN_PLANES = {"u2", "i4", "f2", "f4"}
_LEVEL = 6


def pack(values: Mapping[str, Any], arrays: Mapping[str, Array] | None = None) -> str:
    """Return a part as text: values that JSON knows, and arrays of the types u1, u2, i4, f2, f4 and f8.

    Raises:
        TypeError: an array is of another type.
    """
    described, blocks, offset = {}, [], 0
    for name, array in (arrays or {}).items():
        kind = f"{array.dtype.kind}{array.dtype.itemsize}"
        if kind not in _TYPES:
            raise TypeError(f"the array {name!r} is of type {array.dtype}")
        data = np.ascontiguousarray(array, dtype=np.dtype(_TYPES[kind]).newbyteorder("<"))
        block = data.tobytes()
        if kind in _IN_PLANES:
            block = np.frombuffer(block, np.uint8).reshape(-1, data.dtype.itemsize).T.tobytes()
        described[name] = {"type": kind, "shape": list(array.shape), "offset": offset}
        blocks.append(block + bytes(-len(block) % 8))
        offset += len(blocks[-1])
    text = json.dumps({**values, "arrays": described}, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    head = text.encode("utf-8", "replace")
    head += b" " * (-(4 + len(head)) % 8)
    whole = len(head).to_bytes(4, "little") + head + b"".join(blocks)
    return base64.b64encode(zlib.compress(whole, _LEVEL)).decode("ascii")


def unpack(part: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the values and the arrays of a part that `pack` made."""
    whole = zlib.decompress(base64.b64decode(part))
    length = int.from_bytes(whole[:4], "little")
    values = json.loads(whole[4 : 4 + length])
    arrays = {}
    for name, about in values.pop("arrays").items():
        kind = np.dtype(_TYPES[about["type"]]).newbyteorder("<")
        size = int(np.prod(about["shape"], dtype=np.int64)) * kind.itemsize
        start = 4 + length + about["offset"]
        block = whole[start : start + size]
        if about["type"] in _IN_PLANES:
            block = np.frombuffer(block, np.uint8).reshape(kind.itemsize, -1).T.tobytes()
        arrays[name] = np.frombuffer(block, kind).reshape(about["shape"])
    return values, arrays
