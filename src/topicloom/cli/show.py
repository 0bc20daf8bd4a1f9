"""Commands that show the models, the topics and the documents of a run. They load PyTorch only if they need it."""

from __future__ import annotations

import itertools
import json
import logging
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..display import printable
from ..errors import InputError
from .options import (
    Allow,
    AsJson,
    Encoder,
    Overwrite,
    Run,
    Words,
    check_table,
    mention_edits,
    number_or_name,
    open_topics,
)
from .shell import command, print_json, print_table, say, show_topics

if TYPE_CHECKING:
    from ..topics.table import Table
    from ..topics.view import Topics

logger = logging.getLogger("topicloom")

_FOUND_LENGTH = 200  # characters of a text that is found


class DocumentChoice(StrEnum):
    """The choice of documents of a topic."""

    typical = "typical"
    diverse = "diverse"
    recent = "recent"


@command
def documents(
    run: Run,
    topic: Annotated[str | None, typer.Argument(help="The number or the name of a topic; by default, each.")] = None,
    n: Annotated[
        int | None, typer.Option("--n", "-n", min=1, help="Number of documents; by default 5 of a topic, 20 outliers.")
    ] = None,
    outliers: Annotated[
        bool, typer.Option("--outliers", help="Show the documents that fit no topic, worst first.")
    ] = False,
    kind: Annotated[
        DocumentChoice,
        typer.Option(
            help="typical: about the topic, in its words; diverse: typical, but different; recent: the latest."
        ),
    ] = DocumentChoice.typical,
    length: Annotated[
        int,
        typer.Option(
            min=20,
            help="Show at most this many characters of a text: the passage with the most typical words.",
        ),
    ] = 200,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the table; its end says how, such as .csv or .xlsx.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Show documents of a topic, or of each, with the words in them that are most typical of it; or outliers."""
    check_table(out, overwrite)
    if outliers and topic is not None:
        raise InputError("`outliers` shows documents that fit no topic; leave out the topic")
    if outliers and kind is not DocumentChoice.typical:
        raise InputError(f"--kind {kind.value} chooses documents of a topic; leave it out with `outliers`")
    topics = open_topics(run)
    if outliers:
        _show_outliers(run, topics, 20 if n is None else n, length, out, as_json)
        return
    n = 5 if n is None else n
    rows_of_all: list[dict[str, Any]] = []
    numbers = range(topics.n_topics) if topic is None else [topics.number_of(number_or_name(topic))]
    shown = []
    for number in numbers:
        found = topics.documents_of(number, n, kind.value, length=length)
        rows_of_all += [{"topic": number, "name": topics.names[number], **row} for row in found.rows()]
        if as_json:
            shown.append({"topic": number, "name": topics.names[number], "documents": found.to_dicts()})
            continue
        if topic is None:
            say(f"{'' if number == 0 else chr(10)}topic {number}: {printable(topics.names[number])}")
        names = [name for name in ("id", "share", "label", "time", "words", "text") if any(map(_is_known, found[name]))]
        rows = ([_cell(name, row[name]) for name in names] for row in found.rows())
        print_table(names or ["no document has more of this topic than of the average topic"], rows)
    if as_json:
        print_json({"run": str(run), **({"topics": shown} if topic is None else shown[0])})
    if out is not None:
        from ..topics.table import Table

        columns = ("topic", "name", "document", "id", "share", "label", "time", "words", "text")
        _save(Table.of(rows_of_all, "Documents of the topics", columns), out)


def _show_outliers(run: Path, topics: Topics, n: int, length: int, out: Path | None, as_json: bool) -> None:
    from ..topics.table import OUTLIER

    found = topics.outliers(n, length=length)
    if as_json:
        print_json({"run": str(run), "documents": found.to_dicts()})
    else:
        known = ("id", "fit", "topic", "share", "similarity", "label", "time", "text")
        names = [name for name in known if any(map(_is_known, found[name]))]
        print_table(names, ([_cell(name, row[name]) for name in names] for row in found))
    logger.info("%s; a document with a fit below %g fits no topic", found.title.partition(": ")[2], OUTLIER)
    if out is not None:
        _save(found, out)


def _save(table: Table, out: Path) -> None:
    table.save(out)
    logger.info("wrote %s", out)


@command
def tokens(
    run: Run,
    document: Annotated[str, typer.Argument(help="The number or the id of a document, or a new text.")],
    encoder: Encoder = None,
    allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Show a document with its tokens in the colours of their topics."""
    from rich.console import Console

    topics = open_topics(run, allow, encoder=encoder)
    found = topics.topics_of(_number_or_text(topics, document))
    if as_json:
        shares = [{"topic": k, "name": name, "share": round(share, 6)} for k, name, share in found.topics]
        each = [token._asdict() for token in found.tokens]
        print_json({"run": str(run), "text": found.text, "topics": shares, "tokens": each})
    else:
        Console(highlight=False).print(found)


@command
def find(
    run: Run,
    query: Annotated[
        str,
        typer.Argument(
            metavar="WORD|TEXT",
            help="A word, or a text in quotation marks; with --documents also the number or the id of a document.",
        ),
    ],
    n: Annotated[int, typer.Option("--n", "-n", min=1, help="Number of topics or documents.")] = 5,
    documents: Annotated[
        bool, typer.Option("--documents", help="Find documents of similar meaning, by their vectors.")
    ] = False,
    encoder: Encoder = None,
    allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Find the topics of a word or of a text, or the documents that are nearest to it in meaning."""
    topics = open_topics(run, allow, encoder=encoder)
    if documents:
        near = topics.find_documents(_number_or_text(topics, query), n, length=_FOUND_LENGTH)
        if as_json:
            print_json({"run": str(run), "query": query, "documents": near.to_dicts()})
            return
        names = [
            "id",
            "similarity",
            *(name for name in ("topic", "label", "time", "text") if any(map(_is_known, near[name]))),
        ]
        print_table(names, ([_cell(name, row[name]) for name in names] for row in near.rows()))
        return
    found = topics.find_topics(query, n)
    if as_json:
        print_json({"run": str(run), "query": query, "topics": found.to_dicts()})
        return
    named = any(topics.given_names)  # other names only repeat the first words
    rows = (
        [str(row["topic"]), f"{row['weight']:.1%}", *([row["name"]] if named else []), " ".join(row["words"])]
        for row in found.rows()
    )
    print_table(["topic", "weight", *(["name"] if named else []), "words"], rows, n_numbers=2)


def _number_or_text(topics: Topics, given: str) -> int | str:
    """Return the number of a document, if `given` is one and no id; and else an id or a text."""
    return int(given) if given.isdecimal() and given not in topics.documents.ids else given


def _is_known(value: object) -> bool:
    return value is not None and value != ""


def _cell(name: str, value: object) -> str:
    if name in ("similarity", "fit"):
        return f"{value:.{3 if name == 'similarity' else 4}f}"
    if name == "share":
        return "" if value is None else f"{value:.1%}"
    if name == "time" and value is not None:
        return str(value)[:10]
    text = " ".join(map(str, value)) if isinstance(value, list) else str("" if value is None else value)
    return printable(text)  # so that a user's text cannot change the terminal


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
    from ..models import REGISTRY

    if name is None:
        summaries = {kind: entry.summary for kind, entry in REGISTRY.items()}
        if as_json:
            print_json({"models": [{"name": kind, "summary": summary} for kind, summary in summaries.items()]})
        else:
            print_table(["model", "what it is"], summaries.items())
        return
    from ..models import model_class
    from ..settings import describe_settings

    kind = model_class(name)
    settings = describe_settings(kind)
    if as_json:
        print_json({"model": kind.__name__, "settings": [asdict(setting) for setting in settings]})
    else:
        rows = []
        for group, several in itertools.groupby(settings, lambda setting: setting.group):
            rows += [[group.upper(), "", ""]] if group else []
            rows += [[each.name, json.dumps(each.default), f"{each.type}: {each.meaning}"] for each in several]
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
    from ..topics.saved import ANSWERS, read_shares, read_topics
    from ..topics.table import describe

    mention_edits(run)
    saved = read_topics(run)
    sentences: list[str | None] = []
    if (answers := run / ANSWERS).is_file():
        from ..topics.language_model import LanguageModelAnswers

        sentences = LanguageModelAnswers(answers).sentences_of(saved)
    found = describe(saved, read_shares(run, len(saved.components)), words, relevance, sentences)
    if as_json:
        print_json({"run": str(run), "topics": found})
    else:
        show_topics(found)
