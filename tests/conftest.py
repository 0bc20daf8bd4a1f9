"""What all tests share."""

from __future__ import annotations

import logging

import pytest
import torch

# The networks here are so small that a second thread costs more than it brings, above all beside other workers.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _own_log():
    """The command line sets up the log; later tests find it as it was."""
    log = logging.getLogger("topicloom")
    handlers, level = log.handlers, log.level
    yield
    log.handlers, log.disabled = handlers, False
    log.setLevel(level)
