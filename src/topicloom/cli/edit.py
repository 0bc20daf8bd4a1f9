"""Commands that change, name and rate the topics of a run: edit, name and rate."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from .options import (
    LLM,
    Allow,
    AsJson,
    Device,
    FigureLanguage,
    FigureLanguages,
    Font,
    Overwrite,
    Quiet,
    QuietNotes,
    Run,
    Timeout,
    Words,
    mention_edits,
    number_or_name,
    open_topics,
    read_names,
)
from .shell import command, import_models, print_json, print_table, say, show_topics

if TYPE_CHECKING:
    from ..topics.view import Topics

logger = logging.getLogger("topicloom")

_MANY = "; repeatable"


@command(
    panels={
        "Model": ("device", "allow"),
        "Output": ("font", "figure_language", "words", "overwrite", "quiet", "as_json"),
    }
)
def edit(
    run: Run,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the run of the edited topics is written.")],
    edits: Annotated[list[Path] | None, typer.Option(metavar="FILE", help=f"A .yaml file of edits{_MANY}.")] = None,
    merge: Annotated[
        list[str] | None, typer.Option(metavar="TOPIC,TOPIC", help=f"Topics that become one{_MANY}.")
    ] = None,
    drop: Annotated[list[str] | None, typer.Option(metavar="TOPIC", help=f"A topic to remove{_MANY}.")] = None,
    split: Annotated[
        list[str] | None, typer.Option(metavar="TOPIC:PARTS", help=f"A topic to divide, such as 4:3{_MANY}.")
    ] = None,
    rename: Annotated[
        list[str] | None, typer.Option(metavar="TOPIC=NAME", help=f"A name for a topic, such as 3=shipping{_MANY}.")
    ] = None,
    reduce_to: Annotated[
        int | None, typer.Option(metavar="TOPICS", help="Merge similar topics until this many are left.")
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Take the names and edits of another run, whose topics are matched first."),
    ] = None,
    font: Font = None,
    figure_language: FigureLanguage = FigureLanguages.auto,
    words: Words = 10,
    device: Device = "auto",
    allow: Allow = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Merge, drop, split and name topics, and write a new run. All numbers are those that `topics RUN` shows."""
    from ..topics.edits import moves_in_words
    from ..topics.saved import require_place

    given = _direct_edits(merge, drop, split, rename, reduce_to)
    if not edits and replay is None and not given:
        raise InputError(
            "there is nothing to do; give --edits, --merge, --drop, --split, --rename, --reduce-to or --replay"
        )
    if replay is not None and (edits or given):
        raise InputError("--replay cannot be combined with other edits; edit the run that it writes")
    require_place(out, overwrite)
    import_models()
    from ..reports.run import edited_topics
    from ..topics.view import Topics

    if not edits:
        mention_edits(run)
    topics = Topics.from_run(run, device=device, allow=allow or ())
    edited = edited_topics(topics, edits or [], given) if replay is None else topics.replay(replay, allow=allow or ())
    numbers = topics.numbers_in(edited)
    _write(run, out, edited, font, figure_language, words, quiet, as_json, numbers)
    if moved := moves_in_words(numbers):
        logger.info("the numbers of topics changed: %s", moved)


_DOCUMENTS = 5  # of each topic that is named, by default


@command(
    panels={
        "Language model": ("llm", "model", "name_language", "documents", "timeout"),
        "Output": ("device", "allow", "font", "figure_language", "words", "overwrite", "quiet", "as_json"),
    }
)
def name(
    run: Run,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the run with names is written; by default, names are only shown."),
    ] = None,
    rule: Annotated[
        str, typer.Option(metavar="words|phrase|MODULE:FUNCTION", help="Distinctive words, a phrase, or your function.")
    ] = "words",
    topics: Annotated[
        str | None, typer.Option(metavar="TOPIC,TOPIC", help="These topics only; by default those without a name.")
    ] = None,
    llm: Annotated[str | None, LLM] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="The name of the language model there.")
    ] = None,
    name_language: Annotated[
        str, typer.Option(metavar="CODE", help="The language of its names, such as de; auto: that of the texts.")
    ] = "auto",
    documents: Annotated[
        int, typer.Option(min=0, help="Typical documents of each topic that it gets, or that your function gets.")
    ] = _DOCUMENTS,
    timeout: Timeout = None,
    font: Font = None,
    figure_language: FigureLanguage = FigureLanguages.auto,
    words: Words = 10,
    device: Device = "auto",
    allow: Allow = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Name the topics of a run by a rule, by a function of your own, or by a language model.

    A language model (--llm) gets the words of each topic and parts of typical documents, and writes a name and a
    sentence. Its key is TOPICLOOM_LLM_KEY in the environment.
    """
    if out is not None:
        from ..topics.saved import require_place

        require_place(out, overwrite)
    if documents != _DOCUMENTS and llm is None and ":" not in rule:
        raise InputError(f"`rule={rule!r}` gets no documents; leave out `documents`, or give `llm` or a function")
    namer: Any = _function(rule) if ":" in rule else rule
    view = open_topics(run, allow, device)
    chosen = None if topics is None else [number_or_name(each) for each in read_names(topics)]
    named = view.name(
        namer, topics=chosen, n_documents=documents, llm=llm, model=model, name_language=name_language,
        timeout=timeout, progress=not quiet,
    )  # fmt: skip
    _write(run, out, named, font, figure_language, words, quiet, as_json)


@command(
    panels={
        "Questions": ("questions", "documents", "repeats", "topics", "seed"),
        "Output": ("timeout", "allow", "quiet", "as_json"),
    }
)
def rate(
    run: Run,
    llm: Annotated[str, LLM],
    model: Annotated[
        list[str], typer.Option("--model", metavar="NAME", help="The name of the language model there; repeatable.")
    ],
    questions: Annotated[int, typer.Option(min=1, help="Planted words that it is asked for in each topic.")] = 2,
    documents: Annotated[
        int, typer.Option(min=0, help="Typical documents of a topic, and as many others; 0 asks for words only.")
    ] = 3,
    repeats: Annotated[int, typer.Option(min=1, help="Orders in which each question is asked.")] = 2,
    topics: Annotated[
        str | None, typer.Option(metavar="TOPIC,TOPIC", help="These topics only; all by default.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of what is planted, and of the orders.")] = 0,
    timeout: Timeout = None,
    allow: Allow = None,
    quiet: QuietNotes = False,
    as_json: AsJson = False,
) -> None:
    """Rate topics by a language model: which word does not belong, and which documents fit.

    Intruders are planted at random. The shares of right answers, their intervals and the agreement between orders and
    between models are shown, and kept in the run with all prompts. The key is TOPICLOOM_LLM_KEY in the environment.
    """
    view = open_topics(run, allow)
    chosen = None if topics is None else [number_or_name(each) for each in read_names(topics)]
    found = view.rate(
        llm, model, topics=chosen, n_questions=questions, n_documents=documents, repeats=repeats, random_state=seed,
        timeout=timeout, progress=not quiet,
    )  # fmt: skip
    if as_json:
        print_json({"run": str(run), **found.to_dict()})
        return
    named = any(view.given_names)  # other names only repeat the first words
    rows = (
        [
            str(row["topic"]),
            *map(_share, (row["word_intrusion"], row["document_fit"])),
            *([row["name"]] if named else []),
            " ".join(row["words"]),
        ]
        for row in found.table().rows()
    )
    print_table(["topic", "words", "documents", *(["name"] if named else []), "top words"], rows, n_numbers=3)
    say()
    for line in found.lines():
        say(line)


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.0%}"


def _write(
    run: Path,
    out: Path | None,
    topics: Topics,
    font: str | None,
    figure_language: FigureLanguages,
    words: int,
    quiet: bool,
    as_json: bool,
    numbers: Sequence[int | None] = (),
) -> None:
    """Write and show edited topics; `numbers` are the present ones of the topics of before."""
    from ..files import lock_directory
    from ..reports.run import options_of, write_edited
    from ..topics.table import describe

    if out is not None:
        with lock_directory(out):
            options = replace(options_of(run), font=font, figure_language=figure_language.value)
            write_edited(run, out, topics, options)
    found = describe(topics.model, topics.shares, words, sentences=topics.sentences)
    if as_json:
        moved = {"numbers": list(numbers)} if numbers else {}
        print_json({"run": None if out is None else str(out), "topics": found, "edits": topics.edits, **moved})
    elif not quiet:
        show_topics(found, numbers)
    if out is not None:
        logger.info("the run is in %s", out)


def _direct_edits(
    merge: list[str] | None,
    drop: list[str] | None,
    split: list[str] | None,
    rename: list[str] | None,
    reduce_to: int | None,
) -> list[dict[str, Any]]:
    """Return the edits that options name. Names come before `reduce_to`, so that merged topics keep them."""
    edits: list[dict[str, Any]] = [{"merge": _numbers(text, "--merge")} for text in merge or []]
    edits += [{"drop": _numbers(text, "--drop")} for text in drop or []]
    for text in split or []:
        topic, _, parts = text.partition(":")
        if not parts.isdecimal():
            raise InputError(f"--split {text}: give a topic and the number of its parts, such as 4:3")
        if int(parts) < 2:
            raise InputError(f"--split {text}: a topic can be divided into 2 parts or more, not into {int(parts)}")
        edits.append({"split": _number(topic, f"--split {text}"), "into": int(parts)})
    names: dict[int, str | None] = {}
    for text in rename or []:
        topic, equals, new = text.partition("=")
        if not equals:
            raise InputError(f"--rename {text}: give a topic and its name, such as 3=shipping")
        number = _number(topic, f"--rename {text}")
        if number in names:
            raise InputError(f"--rename {text}: topic {number} has two names; give it one")
        if not new.strip():
            raise InputError(f"--rename {text}: the name of topic {number} is empty; give it one, such as 3=shipping")
        names[number] = new
    edits += [{"rename": names}] if names else []
    return edits + ([] if reduce_to is None else [{"reduce_to": reduce_to}])


def _numbers(text: str, option: str) -> list[int]:
    return [_number(part, f"{option} {text}") for part in read_names(text)]


def _number(text: str, where: str) -> int:
    if not text.strip().isdecimal():
        raise InputError(f"{where}: {text.strip()!r} is not the number of a topic")
    return int(text)


def _function(text: str) -> Any:
    """Return the function that MODULE:FUNCTION names; the current directory is searched first."""
    from ..settings import import_named

    found = import_named(text, "module:function, such as my_names:name")
    if not callable(found):
        module, _, name = text.partition(":")
        raise InputError(f"the module {module!r} has no function {name!r}; check the name")
    return found
