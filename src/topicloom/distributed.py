"""Training by several processes at once, on one machine or on many.

A process is called a rank, as in PyTorch's distributed package. Every rank calls the same functions in the same order,
and each of them returns the same on all ranks. With a single rank they communicate nothing and return what they are
given. `join` is the function for users.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor

from .errors import LostRankError, SettingError

# The ranks, and what they tell each other.

_SOURCE_PLACE = re.compile(r"^\[[^\]]*\]\s*")  # Messages of gloo begin with a place in its source.


@dataclass(frozen=True)
class Ranks:
    """The ranks that train together.

    Attributes:
        rank: the number of this process, from 0.
        size: the number of processes.
        local_rank: the number of this process among those of its machine, which is the number of its GPU.
        documents: what `fit` receives: "all" documents on every rank, or only the "part" of the rank.
        same_noise: whether every rank draws the noise of the whole batch, as one process does, and uses what belongs to
            its documents.

    Examples:
        >>> import topicloom as tl
        >>> ranks = tl.distributed.Ranks()
        >>> ranks.is_first, ranks.every(7)
        (True, [7])
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    documents: Literal["all", "part"] = "all"
    same_noise: bool = False

    @property
    def is_first(self) -> bool:
        """Whether this is the rank that writes files and shows results."""
        return self.rank == 0

    def sum(self, tensor: Tensor) -> Tensor:
        """Return the sum of the tensors of all ranks, which have the same shape."""
        return self._reduced(tensor, dist.ReduceOp.SUM)

    def max(self, tensor: Tensor) -> Tensor:
        """Return the element-wise maximum of the tensors of all ranks, which have the same shape."""
        return self._reduced(tensor, dist.ReduceOp.MAX)

    def sum_in_place(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all ranks. They are sent together, as one message for each type."""
        if self.size == 1:
            return
        for dtype in {tensor.dtype: None for tensor in tensors}:
            some = [tensor for tensor in tensors if tensor.dtype == dtype]
            total = self.sum(torch.cat([tensor.reshape(-1) for tensor in some]))
            for tensor, part in zip(some, total.split([tensor.numel() for tensor in some]), strict=True):
                tensor.copy_(part.view_as(tensor))

    def of_first(self, tensor: Tensor) -> Tensor:
        """Return the tensor of the first rank; on the others it has the same shape and type."""
        if self.size == 1:
            return tensor
        sent = tensor.detach().clone().contiguous()
        self._call(dist.broadcast, sent, src=0)
        return sent

    def value_of_first(self, value: Any) -> Any:
        """Return the value of the first rank, which JSON can express."""
        if self.size == 1:
            return value
        text = json.dumps(value if self.is_first else None).encode()
        length = self.of_first(torch.tensor(len(text)))
        text = text.ljust(int(length))[: int(length)]
        return json.loads(bytes(self.of_first(torch.frombuffer(bytearray(text), dtype=torch.uint8)).tolist()))

    def every(self, number: int) -> list[int]:
        """Return the numbers of all ranks, in the order of the ranks."""
        own = torch.zeros(self.size, dtype=torch.int64)
        own[self.rank] = number
        numbers: list[int] = self.sum(own).tolist()
        return numbers

    def rows(self, tensor: Tensor) -> Tensor:
        """Return the rows of all ranks, one rank after the other: (n, ...) -> (N, ...)."""
        return tensor if self.size == 1 else self._placed(tensor, self.every(len(tensor)), self.sum)

    def shared(self, generator: torch.Generator) -> torch.Generator:
        """Return a generator that draws the same on all ranks. A single rank uses the given one itself."""
        if self.size == 1 or self.same_noise:
            return generator
        seed = torch.randint(2**62, (1,), generator=generator, device=generator.device)
        return torch.Generator(generator.device).manual_seed(int(self.of_first(seed)))

    def wait(self) -> None:
        """Wait until all ranks have come here."""
        self.max(torch.zeros(1))

    def _placed(self, tensor: Tensor, lengths: Sequence[int], total: Callable[[Tensor], Tensor]) -> Tensor:
        """Return the rows of all ranks as the sum of tensors with zeros for the rows of the others."""
        before, after = sum(lengths[: self.rank]), sum(lengths[self.rank + 1 :])
        padding = [tensor.new_zeros(n, *tensor.shape[1:]) for n in (before, after)]
        return total(torch.cat([padding[0], tensor, padding[1]]))

    def _reduced(self, tensor: Tensor, how: Any) -> Tensor:
        if self.size == 1:
            return tensor
        result = tensor.detach().clone().contiguous()
        self._call(dist.all_reduce, result, op=how)
        return result

    def _call(self, collective: Callable[..., Any], *args: Any, **options: Any) -> None:
        try:
            collective(*args, **options)
        except RuntimeError as error:
            reason = _SOURCE_PLACE.sub("", str(error)).split(". ")[0] or type(error).__name__
            raise LostRankError(
                f"process {self.rank} of {self.size} can no longer reach the others, one of which has probably ended "
                f"({reason:.100}); start all of them again (`resume=True`) to go on from the last checkpoint"
            ) from None


@dataclass(frozen=True)
class Step:
    """The ranks during one step of training, in which they learn from a batch together.

    Attributes:
        ranks: the ranks.
        sizes: the number of documents of the batch on each rank; none if there is only one rank.
        positions: (B,) int64, the places of this rank's documents in the whole batch, ascending. None if the ranks draw
            noise by themselves; the documents of one rank then follow those of the other.

    Examples:
        >>> import topicloom as tl
        >>> step = tl.distributed.Step(tl.distributed.Ranks())
        >>> step.is_shared, step.n_docs(5), step.n_first_half(5)
        (False, 5, 3)
    """

    ranks: Ranks
    sizes: Sequence[int] = ()
    positions: Tensor | None = None

    @property
    def is_shared(self) -> bool:
        """Whether there are several ranks."""
        return bool(self.sizes)

    def n_docs(self, own: int) -> int:
        """Return the number of documents of the batch on all ranks, of which this rank has `own`."""
        return sum(self.sizes) if self.is_shared else own

    def n_first_half(self, own: int) -> int:
        """Return how many documents of the whole batch belong to its first half; a middle one does."""
        if self.is_shared and self.positions is None:
            return sum((size + 1) // 2 for size in self.sizes)
        return (self.n_docs(own) + 1) // 2

    def own_first_half(self, own: int) -> int:
        """Return how many of the documents of this rank belong to the first half; they come first."""
        if self.positions is None:
            return (own + 1) // 2
        return int((self.positions < self.n_first_half(own)).sum())

    def sum(self, x: Tensor) -> Tensor:
        """Return the sum over all ranks. Gradients pass through it."""
        return _sum_with_gradient(x, self.ranks) if self.is_shared else x

    def mean(self, x: Tensor) -> Tensor:
        """Return the mean over the documents of all ranks, (B, ...) -> (...). Gradients pass through it."""
        return self.sum(x.sum(0)) / sum(self.sizes) if self.is_shared else x.mean(0)

    def rows(self, x: Tensor) -> Tensor:
        """Return the rows of the whole batch, (B, ...) -> (N, ...). Gradients pass through it."""
        if self.positions is not None:
            return self.sum(x.new_zeros(sum(self.sizes), *x.shape[1:]).index_copy(0, self.positions, x))
        return self.ranks._placed(x, self.sizes, self.sum) if self.is_shared else x

    def halves(self, x: Tensor) -> Tensor:
        """Return the rows of the whole batch, those of the first half before the others: (B, ...) -> (N, ...)."""
        if not self.is_shared or self.positions is not None:
            return self.rows(x)
        lengths = [(size + 1) // 2 for size in self.sizes], [size // 2 for size in self.sizes]
        own = zip(x.tensor_split([self.own_first_half(len(x))]), lengths, strict=True)
        return torch.cat([self.ranks._placed(half, of_ranks, self.sum) for half, of_ranks in own])

    def drawn(self, draw: Callable[[int], Tensor], n: int) -> Tensor:
        """Return random rows for the n documents of this rank.

        Args:
            draw: draws so many rows, each with the same distribution, from a generator that is the same on all ranks if
                the noise is shared.
            n: the number of documents of this rank.
        """
        if self.positions is None:
            return draw(n)
        with _stepping(_NO_STEP):
            return draw(sum(self.sizes)).index_select(0, self.positions)

    def drawn_for_all(self, draw: Callable[[int], Tensor], n: int) -> Tensor:
        """Return random rows for the whole batch, of which this rank has n documents.

        Args:
            draw: draws so many rows, each with the same distribution, from a generator that is the same on all ranks if
                the noise is shared.
            n: the number of documents of this rank.
        """
        if self.positions is None:
            return self.rows(draw(n))
        with _stepping(_NO_STEP):
            return draw(sum(self.sizes))

    def drawn_entries(self, draw: Callable[[int], Tensor], n: int, lengths: Tensor) -> Tensor:
        """Return random numbers for the n entries of this rank's documents.

        Args:
            draw: draws so many numbers, each with the same distribution, from a generator that is the same on all ranks
                if the noise is shared.
            n: the number of entries.
            lengths: (B,) the number of entries of each document.
        """
        if self.positions is None:
            return draw(n)
        of_all = self.ranks.sum(lengths.new_zeros(sum(self.sizes)).index_copy(0, self.positions, lengths))  # (N,)
        ends = of_all.cumsum(0)
        starts = ends.index_select(0, self.positions) - lengths  # (B,) of this rank's documents among all entries
        own = torch.arange(n, device=lengths.device) + torch.repeat_interleave(
            starts - (lengths.cumsum(0) - lengths), lengths, output_size=n
        )
        return draw(int(ends[-1])).index_select(0, own)

    def own(self, generator: torch.Generator) -> torch.Generator:
        """Return a generator for draws whose number depends on the documents, and which ranks cannot share."""
        if self.positions is None:
            return generator
        seed = int(torch.randint(2**62, (1,), generator=generator, device=generator.device))
        return torch.Generator(generator.device).manual_seed(seed + self.ranks.rank)


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, ranks: Ranks) -> Tensor:
        ctx.ranks = ranks
        return ranks.sum(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.ranks.sum(gradients[0]), None


def _sum_with_gradient(x: Tensor, ranks: Ranks) -> Tensor:
    total: Tensor = _Sum.apply(x, ranks)  # type: ignore[no-untyped-call]
    return total


_ALONE = Ranks()
_NO_STEP = Step(_ALONE)
_RANKS: ContextVar[Ranks] = ContextVar("ranks", default=_ALONE)
_STEP: ContextVar[Step] = ContextVar("step", default=_NO_STEP)


def current() -> Ranks:
    """Return the ranks that this process has joined; one rank if it has joined none.

    Examples:
        >>> import topicloom as tl
        >>> tl.distributed.current().size
        1
    """
    return _RANKS.get()


def step() -> Step:
    """Return the step of training that is being taken; outside of one, and in one process, nothing is shared.

    Examples:
        >>> import topicloom as tl
        >>> tl.distributed.step().is_shared
        False
    """
    return _STEP.get()


@contextmanager
def joined(ranks: Ranks) -> Iterator[Ranks]:
    """Make these the ranks of this context.

    Examples:
        >>> import topicloom as tl
        >>> with tl.distributed.joined(tl.distributed.Ranks(documents="part")):
        ...     tl.distributed.current().documents
        'part'
    """
    token = _RANKS.set(ranks)
    try:
        yield ranks
    finally:
        _RANKS.reset(token)


def stepping(sizes: Sequence[int], positions: Tensor | None = None) -> AbstractContextManager[Step]:
    """Take a step of training with the current ranks.

    Args:
        sizes: the number of documents of the batch on each rank; none if there is only one rank.
        positions: (B,) int64, the places of this rank's documents in the whole batch, ascending. None if the ranks draw
            noise by themselves.

    Examples:
        >>> import topicloom as tl
        >>> with tl.distributed.stepping([4]) as step:
        ...     step.n_docs(4)
        4
    """
    return _stepping(Step(current(), sizes, positions))


@contextmanager
def _stepping(taken: Step) -> Iterator[Step]:
    token = _STEP.set(taken)
    try:
        yield taken
    finally:
        _STEP.reset(token)


# Joining the other ranks.

_TIMEOUT_SECONDS = 1800.0
_MAX_RANKS_WITH_SAME_NOISE = 8
_RANK_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # torchrun and Spark set them


@contextmanager
def join(
    documents: Literal["all", "part"] = "all", same_noise: bool | None = None, timeout: float = _TIMEOUT_SECONDS
) -> Iterator[Ranks]:
    """Train together with the other ranks: in this block, `fit` is one fit of all of them.

    Each rank learns from a part of the documents. A batch consists of the documents of all ranks, so `batch_size`, the
    learning rate and the seed mean the same for any number of ranks. All ranks end with the same topics. Inference is
    not shared: each rank infers what it is given.

    The process group is the one that is initialized already, as in Ray Train; otherwise it is initialized from the
    variables of the environment that torchrun and Spark's TorchDistributor set, with gloo on CPUs and nccl on GPUs.
    Without them, there is one rank, and `fit` is as usual.

    Args:
        documents: what `fit` receives: "all" documents on every rank, of which each takes its part; or only the "part"
            of the rank, over the same vocabulary.
        same_noise: whether every rank draws the noise and the order of the whole batch, as one process does, and uses
            what belongs to its documents. Any number of ranks then learns the same up to rounding, but each rank takes
            as long for the noise as one process does. Otherwise each rank draws its own noise, and the result differs
            as with another seed. None is True for up to 8 ranks. The noise of BATM, and of DirichletVAE with the
            estimators implicit and rsvi, cannot be shared.
        timeout: the seconds after which a rank that does not answer counts as lost.

    Yields:
        the ranks; `ranks.is_first` is true on the one that should save the model.

    Raises:
        SettingError: `documents` is neither, or this process is in such a block already.
        LostRankError: another rank has ended or does not answer.

    Examples:
        >>> import topicloom as tl
        >>> with tl.distributed.join() as ranks:  # one rank, because torchrun has not started this process
        ...     ranks.is_first, ranks.size
        (True, 1)
    """
    if documents not in ("all", "part"):
        raise SettingError(f"`documents={documents!r}` should be 'all' or 'part'")
    if current().size > 1:
        raise SettingError("this process has joined the other ranks already; leave out the second `join`")
    with ExitStack() as stack:
        if not dist.is_available() or not (
            dist.is_initialized() or all(name in os.environ for name in _RANK_VARIABLES)
        ):
            yield stack.enter_context(joined(Ranks(documents=documents)))
            return
        if not dist.is_initialized():
            backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
            dist.init_process_group(backend, timeout=timedelta(seconds=timeout))
            stack.callback(dist.destroy_process_group)
        rank, size = dist.get_rank(), dist.get_world_size()
        local = int(os.environ.get("LOCAL_RANK", rank))
        shared = size <= _MAX_RANKS_WITH_SAME_NOISE if same_noise is None else same_noise
        yield stack.enter_context(joined(Ranks(rank, size, local, documents, shared and size > 1)))
