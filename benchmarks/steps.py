"""Where the time of training goes, model by model, and how near it is to what the memory and the cores allow.

    python benchmarks/steps.py [--threads 1,2] [--models GSM,ETM] [--out benchmarks/profile.md]

Every model is trained for a few epochs on 20 Newsgroups, K=50, while timers run in the parts of a step. The time of a
part is its own, without that of the parts that it calls. Other work on the machine disturbs single steps, so the page
has the lower quartile of the steps, and not their mean.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from topicloom.models.loom import counting, network
from topicloom.models.spare_topics import SpareTopics
from topicloom.nn import decoders, encoders, product, separation, softmax, sparse
from topicloom.nn import network as networks
from topicloom.training import batches, collapse, finite, loop

PAGE = Path(__file__).with_name("profile.md")
STEP = "the step itself"
# Where the timers are: the part, and the functions that belong to it.
PARTS: dict[str, list[tuple[Any, str]]] = {
    "gather the batch": [(batches.BatchReader, "_batch"), (sparse.SparseCounts, "by_word")],
    "encoder": [(encoders.BagEncoder, "forward")],
    "posterior and draw": [(networks.VariationalNetwork, "_free_energy")],
    "topics": [(decoders.MixtureDecoder, "beta_t")],
    "decoder": [(decoders.Decoder, "score")],
    "separation": [(separation.SeparationTerm, "forward")],
    "backward: first layer": [(sparse._BagProduct, "backward")],
    "backward: decoder": [(sparse._MixtureLogLikelihood, "backward"), (product._ProductLogLikelihood, "backward")],
    "backward: softmax": [(softmax._ColumnSoftmax, "backward")],
    "backward: the rest": [(torch.Tensor, "backward")],
    "check of the gradient": [(finite.FiniteCheck, "allows")],
    "optimizer": [(torch.optim.Adam, "step")],
    "counting: reassign": [(network, "reassign")],
    "counting: draw": [(counting, "draw_counts")],
    "counting: Dirichlet": [(counting, "dirichlet_step")],
    STEP: [(loop, "_move")],
}
OUTSIDE: dict[str, list[tuple[Any, str]]] = {
    "monitors": [(collapse.CollapseWatch, "__call__")],
    "spare topics": [(SpareTopics, "remove"), (counting.CollapsedCounts, "_prune")],
    "end of a pass": [(counting.CollapsedCounts, "end_pass")],
}


class Timers:
    """The time of each part, without that of the parts that it calls, step by step."""

    def __init__(self) -> None:
        self.steps: list[dict[str, float]] = []
        self.totals: dict[str, float] = defaultdict(float)
        self._inner = [0.0]
        self._step: dict[str, float] = defaultdict(float)

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            self._inner.append(0.0)
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                whole = time.perf_counter() - start
                own = whole - self._inner.pop()
                self._inner[-1] += whole
                self.totals[part] += own
                self._step[part] += own
                if part == STEP:
                    self.steps.append(dict(self._step))
                    self._step.clear()

        return run

    @contextmanager
    def running(self) -> Iterator[None]:
        patches = []
        for part, places in (PARTS | OUTSIDE).items():
            for owner, name in places:
                found = owner.__dict__[name]
                if isinstance(found, staticmethod):
                    new: Any = staticmethod(self.timed(part, found.__func__))
                elif hasattr(found, "func"):  # a cached property
                    patches.append(patch.object(found, "func", self.timed(part, found.func)))
                    continue
                else:
                    new = self.timed(part, found)
                patches.append(patch.object(owner, name, new))
        for each in patches:
            each.start()
        try:
            yield
        finally:
            for each in patches:
                each.stop()

    def per_step(self) -> dict[str, float]:
        """The lower quartile of the milliseconds of each part, over the steps that have it."""
        found = {}
        for part in PARTS:
            times = [step[part] for step in self.steps[5:] if part in step]
            if times:
                found[part] = 1e3 * (statistics.quantiles(times, n=4)[0] if len(times) > 1 else times[0])
        return found
