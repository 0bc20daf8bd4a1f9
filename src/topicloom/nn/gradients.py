"""The contexts in which networks are trained and used, whatever contexts of PyTorch the caller is in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch


@contextmanager
def full_precision() -> Iterator[None]:
    """Turn automatic mixed precision off: it would compute products of matrices with 8 bits of precision."""
    with ExitStack() as stack:
        for device in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        yield


@contextmanager
def with_gradients() -> Iterator[None]:
    """Turn gradients on, which `torch.no_grad` and `torch.inference_mode` turn off, in full precision.

    The function is also a decorator.
    """
    with full_precision(), torch.inference_mode(False), torch.enable_grad():
        yield


@contextmanager
def without_gradients() -> Iterator[None]:
    """Turn gradients off, in full precision."""
    with full_precision(), torch.inference_mode():
        yield
