"""Training by several processes at once, on one machine or on many.

Each process (a rank) learns from its own part of the documents, and all of them have the same weights after every
step. Start the processes with torchrun, Ray Train or Spark, and call `fit` in a `join` block; `topicloom train` under
torchrun does so by itself. docs/distributed.md shows how.
"""

from .join import join
from .ranks import Ranks, current

__all__ = ["Ranks", "current", "join"]
