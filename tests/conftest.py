"""What all tests share."""

from __future__ import annotations

import torch

# The networks here are so small that a second thread costs more than it brings, above all beside other workers.
torch.set_num_threads(1)
