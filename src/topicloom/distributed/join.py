"""Joining the other ranks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Literal

import torch
import torch.distributed as dist

from ..errors import SettingError
from .ranks import Ranks, current, joined

_TIMEOUT = 1800.0
_MOST_WITH_SAME_NOISE = 8
_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # which torchrun and Spark set


@contextmanager
def join(
    documents: Literal["all", "part"] = "all", same_noise: bool | None = None, timeout: float = _TIMEOUT
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
            as long for the noise as one process does. Otherwise each rank draws its own, which is another draw of the
            same. None is True for up to 8 ranks. (BATM, and DirichletVAE with the estimators implicit and rsvi, have
            noise that cannot be shared.)
        timeout: after how many seconds a rank that does not answer is taken for lost.

    Yields:
        the ranks; `ranks.is_first` is true on the one that should save the model.

    Raises:
        SettingError: `documents` is neither, or this process is in such a block already.
        LostRankError: another rank has ended or does not answer.
    """
    if documents not in ("all", "part"):
        raise SettingError(f"`documents={documents!r}` should be 'all' or 'part'")
    if current().size > 1:
        raise SettingError("this process has joined the other ranks already; leave out the second `join`")
    with ExitStack() as stack:
        if not dist.is_available() or not (dist.is_initialized() or all(name in os.environ for name in _VARIABLES)):
            yield stack.enter_context(joined(Ranks(documents=documents)))
            return
        if not dist.is_initialized():
            backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
            dist.init_process_group(backend, timeout=timedelta(seconds=timeout))
            stack.callback(dist.destroy_process_group)
        rank, size = dist.get_rank(), dist.get_world_size()
        local = int(os.environ.get("LOCAL_RANK", rank))
        shared = size <= _MOST_WITH_SAME_NOISE if same_noise is None else same_noise
        yield stack.enter_context(joined(Ranks(rank, size, local, documents, shared and size > 1)))
