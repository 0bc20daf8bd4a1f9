"""The command line: a thin shell over the library. Results go to standard output, all else to standard error.

What is heavy (PyTorch above all) is imported inside the commands, so that help comes at once.
"""

from . import runs, searches
from .shell import app, main

__all__ = ["app", "main", "runs", "searches"]
