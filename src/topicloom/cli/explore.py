"""The command that writes the page of a run: explore."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError
from .files import check_new, open_topics
from .options import Allow, Overwrite, Quiet, Run
from .shell import command

logger = logging.getLogger("topicloom")


@command
def explore(
    run: Run,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The page, an .html file; RUN/explorer.html by default.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="The heading; by default the name of the run.")] = None,
    texts: Annotated[bool, typer.Option("--texts/--no-texts", help="Put the documents' texts in the page.")] = True,
    documents: Annotated[
        int,
        typer.Option(
            min=1,
            help="The largest number of documents in the page; if there are more, this many are drawn at random.",
        ),
    ] = 100_000,
    allow: Allow = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Write the topics of a run as one HTML page, to look at, to edit and to send."""
    from ..reports.place import PAGE

    place = out or run / PAGE
    if place.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{place} does not end in .html; give a name that does")
    check_new(out, overwrite)
    from ..reports.explorer import PageOptions, write_page
    from ..topics.run_metrics import read_metrics

    topics = open_topics(run, allow)
    options = PageOptions(title or run.resolve().name, texts=texts, most_documents=documents)
    size = write_page(place, topics, options, read_metrics(run))
    logger.info("wrote %s (%.1f MB)", place, size / 1e6)
