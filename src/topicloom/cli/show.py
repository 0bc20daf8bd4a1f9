"""Commands that show the models and the topics of a run. They load PyTorch only if they need it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from .files import mention_edits
from .options import AsJson, Run, Words
from .shell import command, print_json, print_table, show_topics


@command
def models(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[MODEL]",
            help="The model whose settings to show, such as etm; or module:Class.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the models, or the settings of one: what each may be, its default, and what it means."""
    from ..models.registry import REGISTRY

    if name is None:
        summaries = {kind: entry.summary for kind, entry in REGISTRY.items()}
        if as_json:
            print_json({"models": [{"name": kind, "summary": summary} for kind, summary in summaries.items()]})
        else:
            print_table(["model", "what it is"], summaries.items())
        return
    from ..models.persistence import model_class
    from ..settings import describe_settings

    kind = model_class(name)
    settings = describe_settings(kind)
    if as_json:
        print_json({"model": kind.__name__, "settings": [asdict(setting) for setting in settings]})
    else:
        rows = ([s.name, json.dumps(s.default), f"{s.type}: {s.meaning}"] for s in settings)
        print_table(["setting", "default", "what it may be, and what it means"], rows)


@command
def topics(
    run: Run,
    words: Words = 10,
    relevance: Annotated[
        float | None,
        typer.Option(
            help="1 ranks words by probability; a lower value prefers words that are rare elsewhere.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the topics of a run."""
    from ..topics.run_metrics import read_shares
    from ..topics.saved import read_topics
    from ..topics.tables import describe

    mention_edits(run)
    saved = read_topics(run)
    found = describe(saved, read_shares(run, len(saved.components)), words, relevance)
    if as_json:
        print_json({"run": str(run), "topics": found})
    else:
        show_topics(found)
