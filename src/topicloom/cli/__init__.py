"""The command line: a thin shell over the library. Results go to standard output, everything else to standard error.

Heavy modules, PyTorch above all, are imported inside the commands, so that help appears at once.
"""

from . import analyses, apply, edit, explore, figures, outlets, read, searches, serve, show, train
from .shell import app, main

__all__ = [
    "analyses",
    "app",
    "apply",
    "edit",
    "explore",
    "figures",
    "main",
    "outlets",
    "read",
    "searches",
    "serve",
    "show",
    "train",
]
