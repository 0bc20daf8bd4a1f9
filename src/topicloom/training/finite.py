"""Whether all losses and gradients are finite, found out without waiting for a GPU in every step."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from .adam import Adam

_READ_EVERY = 64  # moves


class FiniteCheck:
    """Finds the first move of an epoch whose loss or gradient is not finite.

    On a CPU, every move is checked before it is made. Reading a result from a GPU would make the processor wait for it
    in every step. There, the number of the first such move stays on the device. From that move on, the optimizers
    change nothing (`found_inf` of PyTorch's fused Adam), and the number is read at every 64th move and when it is asked
    for.

    Args:
        device: the device of the network.
    """

    def __init__(self, device: torch.device) -> None:
        self.deferred = defers(device)
        self._moves: list[str] = []
        # 0 as long as all is finite. For the loss of the n-th move it is 2 n, and for its gradient 2 n - 1.
        self._first = torch.zeros((), dtype=torch.int64, device=device)

    def allows(self, optimizer: Adam, total: Tensor, parameters: Sequence[nn.Parameter], move: str) -> bool:
        """Return whether an optimizer may make a move; a move that is checked later has no effect if it may not.

        Args:
            optimizer: the optimizer.
            total: (B,) the loss of each document.
            parameters: the weights, which have their gradients.
            move: where this is, as in "epoch 1, batch 2".
        """
        self._moves.append(move)
        gradients = [p.grad for p in parameters if p.grad is not None]
        finite = torch.isfinite(torch.nn.utils.get_total_norm(gradients) + total.sum())  # ()
        if not self.deferred and bool(finite):
            return True
        number = 2 * len(self._moves) - total.isfinite().all().long()  # ()
        self._first = torch.where((self._first == 0) & ~finite, number, self._first)
        if self.deferred:
            optimizer.found_inf = (self._first > 0).float()
        return self.deferred

    def first(self, *, wait: bool = False) -> tuple[str, str] | None:
        """Return the first move whose loss or gradient is not finite, and which of them it is; None if there is none.

        Args:
            wait: whether to read a result that is checked later in any case, and not only at every 64th move.
        """
        if self.deferred and not wait and len(self._moves) % _READ_EVERY:
            return None
        first = int(self._first)
        return (self._moves[(first - 1) // 2], "the gradient" if first % 2 else "the loss") if first else None


def defers(device: torch.device) -> bool:
    """Return whether moves are checked later. Other devices than CUDA have no fused Adam, which skips steps."""
    return device.type == "cuda"
