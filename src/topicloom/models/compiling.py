"""Loops over documents that numba compiles for the CPU, if it is installed (the extra `fast`)."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable
from functools import cache
from typing import Any

_log = logging.getLogger("topicloom")
_FAST = {"reassoc", "contract", "nsz", "arcp"}  # sums in any order, so that they are vectorised; NaN stays NaN
# A compiled loop has two forms: one that is vectorised, and one for arrays that may overlap, which adds in another
# order. It takes the second one if two arrays begin within a few hundred bytes, as small ones can by chance. With this
# many numbers between an array and any other one, the sums are always the same.
DISTANCE = 256
# In a process that has not loaded numba, which takes .4 seconds, only many documents gain from it. Larger corpora are
# read in batches of 1,024 documents.
FEWEST_DOCUMENTS = 512


@cache
def compiled(function: Callable[..., None], example: Callable[[], tuple[Any, ...]]) -> Callable[..., None] | None:
    """Return a function as compiled by numba, cached on disk if possible, or None if it cannot be compiled.

    Args:
        function: a loop.
        example: returns its arguments for a document of one word. The compiled function is called once with them,
            because the first call reveals most problems of an installation.
    """
    if importlib.util.find_spec("numba") is None:
        return None
    reason: Exception | None = None
    for on_disk in (True, False):
        try:
            import numba

            if getattr(numba.config, "DISABLE_JIT", False):  # the plain Python loop would take a thousand times as long
                return None
            loop = numba.njit(nogil=True, fastmath=_FAST, error_model="numpy", cache=on_disk)(function)
            loop(*example())
            return loop
        except Exception as error:  # whatever fails, there is another implementation
            reason = error
    warn(str(reason))
    return None


@cache
def warn(reason: str) -> None:
    """Warn once, however many loops cannot be compiled for the same reason."""
    _log.warning("numba is installed but cannot be used, so Loom and LDA are slower: %s", reason)
