"""Parts of networks. They import little besides torch."""

import os

import torch


def _use_one_thread() -> None:
    """Let torch use one thread. After a fork, it would wait forever for the threads of the parent process.

    PyTorch's DataLoader does the same in its worker processes.
    """
    if torch.get_num_threads() > 1:
        torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_use_one_thread)
