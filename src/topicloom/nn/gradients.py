"""The context in which networks are trained, whatever contexts of PyTorch the caller is in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch


@contextmanager
def with_gradients() -> Iterator[None]:
    """Turn gradients on and automatic mixed precision off, which the caller may have set otherwise.

    Inside `torch.no_grad` or `torch.inference_mode`, PyTorch records no gradients, and autocast would compute products
    of matrices with 8 bits of precision. The function is also a decorator.
    """
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        for device in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        yield
