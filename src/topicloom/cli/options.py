"""Options that commands share, and how their text is read."""

from __future__ import annotations

import ast
import functools
import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ..display import plain_reason
from ..errors import InputError, nearest
from .shell import stop


class DocTopics(StrEnum):
    """The formats of doc_topics."""

    csv = "csv"
    parquet = "parquet"
    none = "none"


class Recipe(StrEnum):
    """Where the settings come from that are not given."""

    default = "default"
    published = "published"


class FigureLanguages(StrEnum):
    """The languages of pictures."""

    auto = "auto"
    en = "en"
    zh = "zh"


class Sampler(StrEnum):
    """How tuning proposes settings."""

    tpe = "tpe"
    random = "random"


def count_or_share(value: Any) -> Any:
    """'5' is a number of documents, '0.5' a share of them."""
    try:
        return int(value) if str(value).isdecimal() else float(value)
    except ValueError:
        raise typer.BadParameter(f"{value!r} is neither a whole number of documents nor a share such as 0.5") from None


def _apply_config(context: typer.Context, path: Path | None) -> dict[str, Any]:
    """Make the values in a file the defaults of the options with their names; return its settings of the model."""
    if path is None:
        return {}
    from ..config import read_config

    try:
        found = read_config(path)
        settings = found.pop("settings", None) or {}
        if not isinstance(settings, dict):
            raise InputError(f"{path}: settings should be names with values; it is {settings!r}")
        defaults = (_default(context, name, value) for name, value in found.items() if value is not None)
        context.default_map = dict(defaults)
    except InputError as error:
        message = str(error)
        stop(message if str(path) in message else f"{path}: {message}", 2)
    return {str(name): value for name, value in settings.items()}


def _default(context: typer.Context, name: str, value: Any) -> tuple[str, Any]:
    """An option's own name, and its value as the command line would have it."""
    options = {opt.removeprefix("--"): option for option in context.command.params for opt in option.opts}
    known = [option for option in options if option not in ("config", "help", "set", "-q")]
    if name.replace("_", "-") not in known:
        raise InputError(f"there is no option {name!r}; {nearest(name, [*known, 'settings'])}")
    option = options[name.replace("_", "-")]
    several = value if isinstance(value, list) else [value]
    repeatable = getattr(option, "multiple", False)
    if any(isinstance(each, dict | list | None) for each in several) or (isinstance(value, list) and not repeatable):
        wanted = "a value, or a list of them" if repeatable else "a single value"
        raise InputError(f"{name} should be {wanted}; it is {value!r}")
    text = [str(each) for each in several] if repeatable else str(value)
    try:
        option.process_value(context, text)
    except typer.BadParameter as error:
        raise InputError(f"{name} cannot be {text!r}: {plain_reason(error.message).rstrip('.')}") from None
    return option.name, text


_file = functools.partial(typer.Option, rich_help_panel="The file")
_words = functools.partial(typer.Option, rich_help_panel="The words")
_documents = functools.partial(_words, parser=count_or_share, metavar="COUNT|SHARE")


@dataclass(frozen=True)
class Reading:
    """How a file is read. The names are those of the arguments of `topicloom.text.read`."""

    text: Annotated[str, _file(metavar="COLUMN", help="Column with the text.")] = "text"
    id: Annotated[str | None, _file(metavar="COLUMN", help="Column with the documents' ids.")] = None
    label: Annotated[str | None, _file(metavar="COLUMN", help="Column with the documents' classes.")] = None
    timestamp: Annotated[str | None, _file(metavar="COLUMN", help="Column with the documents' times.")] = None
    format: Annotated[
        str | None, _file(help="txt, md, csv, tsv, xlsx, jsonl or parquet, if the file's name does not show it.")
    ] = None
    encoding: Annotated[str, _file(help="Encoding of text files, such as gb18030.")] = "utf-8"
    errors: Annotated[
        str,
        _file(
            help="What to do with bytes that are not in the encoding: strict (an error), replace or ignore.",
        ),
    ] = "strict"
    delimiter: Annotated[
        str | None,
        _file(metavar="CHARACTER", help="Separates the fields of a .csv or .tsv file; recognised by default."),
    ] = None
    header: Annotated[
        bool,
        _file(
            "--header/--no-header",
            help="Whether the first line of a table names its columns; if not, they are 1, 2, ...",
        ),
    ] = True
    quoting: Annotated[
        bool,
        _file(
            "--quoting/--no-quoting",
            help="Whether quotation marks enclose fields of a .csv or .tsv file, or are a part of the text.",
        ),
    ] = True


@dataclass(frozen=True)
class Preparing(Reading):
    """How text becomes a corpus; the names are those of `Corpus.from_file`."""

    language: Annotated[
        str,
        _words(
            help="Language of the texts, such as zh, en or fr; auto recognises the script.",
        ),
    ] = "auto"
    min_df: Annotated[float, _documents(help="Keep only words in at least this number or share of documents.")] = 5
    max_df: Annotated[float, _documents(help="Keep only words in at most this number or share of documents.")] = 0.5
    max_features: Annotated[int | None, _words(help="Keep only this many words, the most frequent ones.")] = None
    remove_top: Annotated[int, _words(help="Drop this many words, those that occur in the most documents.")] = 0
    stop_words: Annotated[
        str,
        _words(
            metavar="auto|none|FILE",
            help="A file of words to remove besides the language's stop words; none removes no words.",
        ),
    ] = "auto"
    replace_stop_words: Annotated[
        bool, _words("--replace-stop-words", help="Remove the words of --stop-words only, not the language's own.")
    ] = False
    user_dictionary: Annotated[
        Path | None, _words(metavar="FILE", help="Words that Chinese segmentation keeps whole.")
    ] = None
    tokenizer: Annotated[
        str | None,
        _words(
            metavar="MODULE:FUNCTION", help="Your own function from a text to its tokens, such as my_tokenizer:split."
        ),
    ] = None
    n_jobs: Annotated[
        int | None,
        _words(
            "--jobs", help="Processes that count words and, in compare and select-topics, fit models; -1 is all cores."
        ),
    ] = None
    cluster: Annotated[
        str | None,
        _words(
            metavar="auto|ADDRESS",
            help="A Ray cluster, whose nodes do the work of --jobs; train fits its model on this machine.",
        ),
    ] = None


Source = Annotated[
    str,
    typer.Argument(
        help="A .txt (one document on each line), .md, .csv, .tsv, .xlsx, .jsonl or .parquet file, "
        "a folder of .txt and .md files, or - for standard input. Text files may be compressed (.gz)."
    ),
]
Run = Annotated[Path, typer.Argument(help="Directory that train, edit or name wrote.")]
Config = Annotated[
    Any,
    typer.Option(
        "--config",
        metavar="FILE",
        help="A .yaml or .toml file with these options and settings of the model; the command line overrides it.",
        parser=Path,
        callback=_apply_config,
        is_eager=True,
    ),
]
Model = Annotated[str, typer.Option(help="The model's name, such as gsm or lda, or module:Class for one of your own.")]
Topics = Annotated[int, typer.Option(help="Number of topics.")]
Epochs = Annotated[
    int | None,
    typer.Option(
        help="Passes over the documents; each model has its own default. On more than 100,000 tokens, Loom makes fewer."
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same model.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1 or mps.")]
Words = Annotated[int, typer.Option(min=1, help="Words to show of each topic.")]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow", metavar="MODULE", help="Run the code of this module, which has your model class or tokenizer."
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what an earlier call wrote.")]
Covariates = Annotated[
    list[str] | None,
    typer.Option(
        "--covariate", metavar="COLUMN", help="Column with a number or a category of each document; repeatable."
    ),
]
DocumentVectors = Annotated[
    Path | None,
    typer.Option(
        "--document-vectors",
        metavar="FILE",
        help="A .npy or .npz file with a row of numbers for each document, for models that read vectors.",
    ),
]
Excel = Annotated[
    bool,
    typer.Option("--excel", help="Write CSV files in which Excel recognises UTF-8 and takes no text for a formula."),
]
Font = Annotated[
    str | None, typer.Option(metavar="NAME|FILE", help="Font for the pictures, such as one with Chinese characters.")
]
FigureLanguage = Annotated[
    FigureLanguages,
    typer.Option(
        help="Language of titles, labels and notes in the pictures; auto is zh for Chinese texts, and otherwise en."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
QuietNotes = Annotated[bool, typer.Option("--quiet", "-q", help="Print the result and errors only.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def read_numbers(text: str) -> list[int]:
    """'20,50' -> [20, 50]"""
    try:
        found = [int(part) for part in read_names(text)]
    except ValueError:
        found = []
    if not found or min(found) < 2:
        raise InputError(f"--topics {text}: give whole numbers from 2, such as 20,50")
    return found


def read_weights(text: str) -> dict[str, float]:
    """'a=1,b=-0.5' -> {'a': 1.0, 'b': -0.5}"""
    pairs = [part.partition("=") for part in read_names(text)]
    try:
        return {name: float(value) for name, _, value in pairs}
    except ValueError:
        raise InputError(f"--objective {text}: give measures with weights, such as topic_diversity=0.5") from None


def read_names(text: str) -> list[str]:
    """'a,b' -> ['a', 'b']"""
    return [name.strip() for name in text.split(",") if name.strip()]


def number_or_name(text: str) -> int | str:
    """'3' -> 3, 'shipping' -> 'shipping': a topic by its number or its name."""
    return int(text) if text.removeprefix("-").isdecimal() else text


def read_setting(text: str) -> tuple[str, Any]:
    """'name=value': the value is read as JSON or as a Python literal, and is else the string that it is."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InputError(f"--set {text}: give a name and a value, such as --set batch_size=64")
    for parse in (json.loads, ast.literal_eval):
        try:
            return name, parse(value)
        except (ValueError, SyntaxError):
            continue
    return name, value
