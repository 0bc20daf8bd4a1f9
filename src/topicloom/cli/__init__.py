"""The command line: a thin shell over the library. Results go to standard output, everything else to standard error.

A command's module is loaded when the command runs, and PyTorch only inside the commands, so that help appears at once.
"""

from __future__ import annotations

import atexit
import gc
import sys
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from .._version import __version__
from ..errors import without_torch
from ..processes import limit_spinning
from .shell import PlainCommand, say, say_what_was_replaced, spare_narrow_stdout


class CommandEntry(NamedTuple):
    """A command in the help of the program."""

    module: str  # the module in this package; its function has the name of the command
    summary: str  # the first paragraph of the command's own help


# First the commands that make a run, then those that use one.
COMMANDS = {
    "demo": CommandEntry("train", "Train on the documentation of this Python's standard library, and show the topics."),
    "prepare": CommandEntry("train", "Turn text into a corpus of word counts, to train on it more than once."),
    "train": CommandEntry("train", "Train a model, write its run directory, and show the topics."),
    "topics": CommandEntry("show", "Show the topics of a run."),
    "infer": CommandEntry(
        "apply", "Find the topics of new documents: a row for each, in their order, with the share of every topic."
    ),
    "evaluate": CommandEntry(
        "apply",
        "Measure a run (coherence, diversity, completion perplexity, ...); print a table and add it to metrics.json.",
    ),
    "update": CommandEntry(
        "apply", "Add documents to a run, say what is new in them, and learn new topics beside the old ones if asked."
    ),
    "merge": CommandEntry(
        "apply",
        "Make one run of several: the documents of all, and their topics, of which similar ones are joined.",
    ),
    "documents": CommandEntry(
        "show",
        "Show documents of a topic, or of each, with the words in them that are most typical of it; or outliers.",
    ),
    "tokens": CommandEntry("show", "Show a document with its tokens in the colours of their topics."),
    "find": CommandEntry(
        "show", "Find the topics of a word or of a text, or the documents that are nearest to it in meaning."
    ),
    "nearest": CommandEntry("views", "Show the words and the topics that are nearest to a word or a topic."),
    "name": CommandEntry(
        "edit", "Name the topics of a run by a rule, by a function of your own, or by a language model."
    ),
    "rate": CommandEntry(
        "edit", "Rate topics by a language model: which word does not belong, and which documents fit."
    ),
    "edit": CommandEntry(
        "edit",
        "Merge, drop, split and name topics, and write a new run. All numbers are those that `topics RUN` shows.",
    ),
    "hierarchy": CommandEntry(
        "analyses", "Show which topics belong together, as a tree. Each join has its distance, from 0 to 1."
    ),
    "trends": CommandEntry(
        "analyses", "Show the shares of topics over time, and which topics rise, fall or have a burst."
    ),
    "by": CommandEntry(
        "analyses", "Show the shares of topics by class or by another covariate. Topics that differ most come first."
    ),
    "match": CommandEntry(
        "analyses", "Match the topics of a run with those of an older run, and show which ones are new or gone."
    ),
    "explore": CommandEntry("views", "Write the topics of a run as one HTML page, to look at, to edit and to send."),
    "figures": CommandEntry(
        "views",
        "Draw the pictures of a run: maps, word clouds, interpolation, sparsity, similarity and topics over time.",
    ),
    "serve": CommandEntry(
        "views",
        "Serve a run until it is interrupted: the explorer, its documents with their search, and inference.",
    ),
    "export": CommandEntry("views", "Write the topics of a run for people or for another program."),
    "compare": CommandEntry(
        "searches",
        "Fit several models and measure them in the same way; write tables, a CSV file and a page with plots.",
    ),
    "select-topics": CommandEntry("searches", "Fit a model with several numbers of topics, and recommend one of them."),
    "tune": CommandEntry(
        "searches", "Search for a model's best settings with Optuna, on documents that are not used for training."
    ),
    "vectors": CommandEntry("views", "Train word vectors (CBOW or skip-gram) on texts, for example for an ETM."),
    "models": CommandEntry(
        "show", "List the models, or the settings of one: what each may be, its default, and what it means."
    ),
}


class Commands(TyperGroup):
    """The commands. The help lists their summaries; a command is loaded when it is called."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name, entry in COMMANDS.items():
            self.add_command(TyperCommand(name, help=entry.summary))

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] in COMMANDS:
            self.add_command(load_command(args[0]))
        return super().resolve_command(ctx, args)


def load_command(name: str) -> Any:
    """Import the module of a command, and return the command."""
    function = getattr(import_module(f".{COMMANDS[name].module}", __name__), name.replace("-", "_"))
    single = typer.Typer(add_completion=False)
    single.command(name, cls=PlainCommand)(function)
    return get_command(single)


app = typer.Typer(
    cls=Commands,
    help="Neural topic models: from raw text to topics that people can read, trust and use.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _version(version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False) -> None:
    if version:
        say(f"topicloom {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command `topicloom`."""
    limit_spinning()  # only here, because the library never changes the environment of a process
    spare_narrow_stdout()
    atexit.register(gc.freeze)  # the process ends without a search for garbage, which takes a second with PyTorch
    try:
        app(prog_name="topicloom")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        say(f"topicloom: error: {without_torch('this command')}", err=True)
        sys.exit(2)
    finally:
        say_what_was_replaced()
