"""The state of the counting and sampling stages that a checkpoint needs besides `state_dict()`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor
from torch.nn.functional import pad

from .counting import RESIZED, CollapsedCounts
from .cvb0 import CountingPass
from .documents import from_tensors, tensors_of

_COUNTERS = ("n_passes", "passes_done", "batches_done")


def run_state(counts: CollapsedCounts) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return what changes in a run of training and is not in `state_dict()`: tensors and JSON values."""
    tensors = tensors_of(counts.document_topics)
    values: dict[str, Any] = {name: getattr(counts, name) for name in _COUNTERS}
    values |= {"started": bool(counts.started), "n_topics": len(counts.alpha), "is_outdated": counts.is_outdated}
    if counts.word_totals is not None:
        tensors["word_totals"] = counts.word_totals
    if counts.divided_alpha is not None:
        tensors["divided_alpha"] = counts.divided_alpha
    if counts.sampling is not None:
        sampled, values["sampling"] = counts.sampling.state()
        tensors |= sampled
    if counts.pruning.kept is not None:
        tensors["kept"] = counts.pruning.kept
    if counts.current_pass is not None:
        tensors |= {f"pass.{name}": tensor for name, tensor in counts.current_pass.state().items()}
    return tensors, values


def load_run_state(counts: CollapsedCounts, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
    """Take back what `run_state` returned, and give all buffers the shapes that `state_dict()` had then.

    Args:
        counts: a new object, prepared by `keep_documents` if the other one was.
        tensors, values: what `run_state` returned.
    """
    counts.word_totals = tensors.get("word_totals")
    counts.divided_alpha = tensors.get("divided_alpha")
    counts.document_topics = from_tensors(tensors, values["n_topics"])
    for name in _COUNTERS:
        setattr(counts, name, values[name])
    counts.is_outdated = values.get("is_outdated", False)
    if counts.sampling is not None:
        counts.sampling.load_state(tensors, values["sampling"])
    counts.pruning.kept = tensors.get("kept")
    for name in RESIZED:
        buffer = getattr(counts, name)
        setattr(counts, name, buffer.new_zeros(*buffer.shape[:-1], values["n_topics"]))
    if values["started"]:
        counts.seed_counts = counts.pruning.select(pad(counts.seed_counts, (0, counts.pruning.n_spare)))
    sums = {name.removeprefix("pass."): tensor for name, tensor in tensors.items() if name.startswith("pass.")}
    if sums:
        counts.current_pass = CountingPass.from_state(sums)
    if values["started"] and not counts.has_spare:
        counts.selector = None
