"""More topics than were asked for, and which of them are left."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

# (topics (n, V), word counts (V,), how many to keep, which must stay (n,)) -> which to keep, ascending
Choice = Callable[[Tensor, Tensor, int, Tensor], Tensor]
_STAGES = 3  # the spare topics go in so many parts: what is left has passes to take over their documents
_CROWDED = 1 / 3  # of the passes, after which the last of them go


class SpareTopics:
    """Which of K' topics are left, until they are the K that were asked for.

    Args:
        n_topics: K.
        n_spare: K' - K.
    """

    def __init__(self, n_topics: int, n_spare: int) -> None:
        self.n_topics, self.n_spare = n_topics, n_spare
        self.left: Tensor | None = None  # (n,) of the K'; None for all of them

    def of_left(self, tensor: Tensor) -> Tensor:
        """(..., K') -> (..., n), of the topics that are left."""
        return tensor if self.left is None else tensor[..., self.left]

    def n_left(self, done: int, n_passes: int) -> int:
        """How many topics there should be when so many of the passes are done."""
        stage = int(_STAGES * done / max(1.0, _CROWDED * n_passes))
        return self.n_topics + round(self.n_spare * max(0.0, 1 - stage / _STAGES))

    def most_used(self, usage: Tensor, held: Tensor) -> Tensor:
        """The K of those left that documents have most, and those held (n,) bool: ascending."""
        first = usage + held * usage.sum()
        return first.argsort(descending=True)[: self.n_topics].sort()[0]

    def keep(self, which: Tensor, seeded: Tensor) -> Tensor:
        """Only these of the topics left stay.

        Args:
            which: (m,) ascending.
            seeded: (n,) bool, of the topics left, those that must be at their index in the end.

        Returns:
            The same; when they are the last K, in the order in which they stay.
        """
        which = which.to(seeded.device)
        before = torch.arange(len(seeded), device=seeded.device) if self.left is None else self.left
        if len(which) == self.n_topics:
            places = torch.arange(self.n_topics, device=which.device)
            own = torch.isin(places, before[which[seeded[which]]])  # (K,) whether a seeded topic belongs there
            order = torch.empty_like(which)
            order[own], order[~own] = which[seeded[which]], which[~seeded[which]]
            which = order
        self.left = before[which]
        return which


def narrowed(wide: Mapping[str, Tensor], wanted: Mapping[str, Tensor], left: Tensor) -> dict[str, Tensor]:
    """Weights (.., K', ..) as weights of a network of the K topics that are left (K,): those that differ in size."""
    weights = dict(wide)
    for name, goal in wanted.items():
        for dim, (size, needed) in enumerate(zip(wide[name].shape, goal.shape, strict=True)):
            if size != needed:
                weights[name] = weights[name].index_select(dim, left)
    return weights
