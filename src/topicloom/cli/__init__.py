"""The command line: a thin shell over the library. Results go to standard output, everything else to standard error.

Heavy modules, PyTorch above all, are imported inside the commands, so that help appears at once.
"""

from typer.models import CommandInfo

from . import analyses, apply, edit, exporting, searches, show, train, views
from .shell import app, main

_ORDER = (  # of the commands in the help: from texts to a run, then what people do with a run
    "demo", "prepare", "train", "topics", "infer", "evaluate", "documents", "tokens", "find", "nearest", "name", "edit",
    "hierarchy", "trends", "by", "match", "explore", "figures", "serve", "export", "compare", "select-topics", "tune",
    "vectors", "models",
)  # fmt: skip


def _place(command: CommandInfo) -> int:
    name = command.name or getattr(command.callback, "__name__", "").replace("_", "-")
    return _ORDER.index(name) if name in _ORDER else len(_ORDER)


app.registered_commands.sort(key=_place)

__all__ = [
    "analyses",
    "app",
    "apply",
    "edit",
    "exporting",
    "main",
    "searches",
    "show",
    "train",
    "views",
]
