"""`train` in several processes that a launcher such as torchrun has started; the first one writes the run."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from ..errors import InputError
from .outcome import Outcome


def are_several() -> bool:
    """Whether a launcher has started this process together with others."""
    size = os.environ.get("WORLD_SIZE", "")
    return size.isdecimal() and int(size) > 1


@contextmanager
def together(outcome: Outcome, source: str) -> Iterator[Outcome]:
    """Join the other processes, if there are any, and yield what this process does with the run.

    Raises:
        InputError: the documents cannot be read by more than one process.
    """
    if not are_several():
        yield outcome
        return
    if source == "-":
        raise InputError("several processes cannot read standard input; give a file, or a corpus that prepare wrote")
    from ..distributed import join

    with join() as ranks:
        if not ranks.is_first:
            logging.getLogger("topicloom").setLevel(logging.ERROR)
            outcome = replace(outcome, helps=True, quiet=True)
        yield outcome
