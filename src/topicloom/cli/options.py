"""Options that commands share, and the runs and documents that they name."""

from __future__ import annotations

import ast
import functools
import json
import logging
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from ..files import holds_corpus
from ..messages import counted, nearest
from .shell import muted, refusal_of_option, stop

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ..corpus import Corpus
    from ..corpus.parts import Split
    from ..models.base import TopicModel
    from ..topics.view import Topics


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
    from ..files.content import read_config

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
        raise InputError(f"{name} cannot be {text!r}: {refusal_of_option(error).rstrip('.')}") from None
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
NTopics = Annotated[int, typer.Option(help="Number of topics.")]
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


# The runs that commands read, and the files that they write.

logger = logging.getLogger("topicloom")


def open_topics(run: Path, allow: Iterable[str] | None = None, device: str = "cpu") -> Topics:
    """Return the topics of a run with its documents."""
    from ..topics.view import Topics

    mention_edits(run)
    return Topics.from_run(run, device=device, allow=allow or ())


def mention_edits(run: Path) -> None:
    """Say that a run has edits which were made in the service: all other commands show the topics of the run itself."""
    from ..topics.saved import EDITS

    path = run / EDITS
    if not path.is_file():
        return
    from ..topics.edits import read_edits

    with suppress(InputError):  # a file that cannot be read is no reason to show nothing
        if read_edits(path).edits:
            apply = shlex.join(["topicloom", "edit", str(run), "--edits", str(path)])
            logger.info(
                "the edits in %s, which were made in the service, are not applied; %s --out NEW_RUN writes a run with "
                "them", path, apply,
            )  # fmt: skip


def check_new(path: Path | None, overwrite: bool) -> None:
    """Raise InputError if a file exists that may not be replaced."""
    if path is not None and path.exists() and not overwrite:
        raise InputError(f"{path} already exists; give another name, or --overwrite to replace it")


def check_table(path: Path | None, overwrite: bool) -> None:
    """Check the file of a table before anything takes time."""
    if path is not None:
        from ..topics.table import require_format

        require_format(path)
        check_new(path, overwrite)


# The corpus that a command works on.


def need_order(measures: Iterable[str]) -> bool:
    from ..metrics import CATALOGUE

    return any("token order" in CATALOGUE[name].needs for name in measures)


def check_source(source: str, options: Reading) -> None:
    """Read the first document of a file, so that a wrong name or column is found before PyTorch is loaded."""
    from ..text import read

    reading = {field.name: getattr(options, field.name) for field in fields(Reading)}
    if holds_corpus(source):
        _refuse_options(source, reading)
    elif source != "-":
        with muted():  # what is wrong with the file is said when it is read whole
            next(read(source, **reading), None)


def open_corpus(source: str, options: Preparing, progress: bool, keep_texts: bool = False) -> Corpus:
    from ..corpus import Corpus

    if not holds_corpus(source):
        return Corpus.from_file(source, **asdict(options), keep_texts=keep_texts, progress=progress)
    _refuse_options(source, asdict(options))
    return Corpus.load(source)


def _refuse_options(source: str, options: Mapping[str, Any]) -> None:
    """Raise InputError if an option of reading or of counting was given for a saved corpus."""
    changed = [name for name, value in options.items() if value != getattr(Preparing(), name)]
    if changed:
        options_of = {"n_jobs": "--jobs", "header": "--no-header", "quoting": "--no-quoting"}
        option = options_of.get(changed[0], "--" + changed[0].replace("_", "-"))
        raise InputError(f"{option} cannot be applied to {source}, which is a saved corpus; use it with prepare")


def with_column(
    source: str, options: Preparing, column: str | None, option: str, *, numbers: bool = False
) -> Callable[[Corpus], Corpus]:
    """Read a column of a file. Return a function that adds it to the file's corpus as a covariate.

    A saved corpus has its covariates, so nothing is read.

    Args:
        source: the file, or a saved corpus.
        options: how the file is read.
        column: the name of the column, or None for none.
        option: the option that names it, for messages.
        numbers: whether a column of numbers is a covariate of numbers; otherwise they are categories.
    """
    if column is None or holds_corpus(source):
        return lambda corpus: corpus
    if source == "-":
        raise InputError(f"`{option}` needs a file, because standard input can be read only once")
    from ..corpus.fields import Fields, spelled_numbers
    from ..text import read

    reading = {field.name: getattr(options, field.name) for field in fields(Reading)}
    try:
        with muted():
            values = [document.label for document in read(source, **reading | {"label": column})]
    except InputError as error:
        raise InputError(str(error).replace("`label`", f"`{option}`")) from None
    if not any(values):
        raise InputError(
            f"no document of {source} has a value of {column!r}; check the name of the column (`{option}`)"
        )

    def add(corpus: Corpus) -> Corpus:
        known = Fields.of(corpus.n_docs, covariates={column: spelled_numbers(values) if numbers else values})
        return replace(corpus, fields=replace(corpus.fields, covariates={**corpus.covariates, **known.covariates}))

    return add


def with_covariates(source: str, options: Preparing, columns: Sequence[str]) -> Callable[[Corpus], Corpus]:
    """Read columns of a file, and return a function that adds them to the file's corpus as covariates.

    Args:
        source: the file, or a saved corpus, which has to have them.
        options: how the file is read.
        columns: the names of the columns.
    """
    steps = [with_column(source, options, column, "covariate", numbers=True) for column in columns]

    def add(corpus: Corpus) -> Corpus:
        for step in steps:
            corpus = step(corpus)
        missing = [column for column in columns if column not in corpus.covariates]
        if missing:
            raise InputError(
                f"the corpus {source} has no covariate {missing[0]!r}; {nearest(missing[0], corpus.covariates)}"
                if corpus.covariates
                else f"the corpus {source} has no covariates; make it again with `prepare --covariate`"
            )
        return corpus

    return add


def with_document_vectors(source: str, options: Reading, path: Path | None) -> Callable[[Corpus], Corpus]:
    """Read the vectors of documents, and return a function that adds them to the corpus of the documents.

    Their number is checked before the texts are counted.

    Args:
        source: the file of the documents, or a saved corpus.
        options: how the file is read.
        path: the file of the vectors; None for none.
    """
    if path is None:
        return lambda corpus: corpus
    vectors = document_vectors(source, options, path)
    return lambda corpus: replace(corpus, fields=replace(corpus.fields, vectors=vectors))


def document_vectors(source: str, options: Reading, path: Path) -> npt.NDArray[np.float32]:
    """Read the vectors of documents, of which there is one for each.

    Args:
        source, options: as for `with_document_vectors`.
        path: the file of the vectors.
    """
    if source == "-":
        raise InputError("`document_vectors` needs a file of documents, because standard input can be read only once")
    from ..corpus import Corpus
    from ..embeddings import read_document_vectors
    from ..text import read

    vectors = read_document_vectors(path)
    if holds_corpus(source):
        n_docs = Corpus.load(source).n_docs
    else:
        reading = {field.name: getattr(options, field.name) for field in fields(Reading)}
        with muted():
            n_docs = sum(1 for _ in read(source, **reading))
    if len(vectors) != n_docs:
        raise InputError(
            f"{path} has {counted(len(vectors), 'row')}, and {source} has {counted(n_docs, 'document')}; give a row "
            "for each document, in the same order"
        )
    return vectors


# The documents that `train` does not learn from: those whose loss is measured, and those that it does not use.


@dataclass(frozen=True)
class HeldOut:
    """What `train` is told about documents that it does not learn from.

    Attributes:
        split: the column that says the part of each document: train, validation or test.
        validation: a file of validation documents, or a saved corpus of them.
        reading: how the file is read, as for `topicloom.text.read`; only what is not the default.
    """

    split: str | None = None
    validation: str | None = None
    reading: Mapping[str, Any] | None = None

    @classmethod
    def recorded(cls, source: Any) -> HeldOut:
        """Return what a run has noted in the entry `source` of its metrics.json."""
        noted = source if isinstance(source, Mapping) else {}
        return cls(noted.get("split"), noted.get("validation"), noted.get("reading"))

    def __bool__(self) -> bool:
        return self.split is not None or self.validation is not None

    def options(self) -> dict[str, str]:
        """Return the options that were given, in a form that any directory understands."""
        if self.validation is not None:
            return {"validation": str(Path(self.validation).resolve())}
        return {} if self.split is None else {"split": self.split}

    def check(self, model: TopicModel) -> None:
        """Find mistakes before anything takes time; the first document of the file is read."""
        if self.validation is None:
            return
        if self.split is not None:
            raise InputError("`split` and `validation` both say which documents are for validation; give one of them")
        if not model.uses_validation:
            raise InputError(f"{type(model).__name__} has no loss by epoch to measure; leave `validation` out")
        if self.validation == "-":
            raise InputError("the validation documents cannot be on standard input; give a file by `validation`")
        if not holds_corpus(self.validation):
            from ..text import read

            with muted():
                next(read(self.validation, **(self.reading or {})), None)

    def with_parts(self, source: str, options: Preparing) -> Callable[[Corpus], Corpus]:
        """Read the column of the parts, and return a function that adds it to the corpus of the source."""
        return with_column(source, options, self.split, "split")

    def divide(
        self, corpus: Corpus, model: TopicModel, covariates: Sequence[str] | None = None
    ) -> tuple[Corpus, Corpus | None]:
        """Return the documents for training, and those for validation over the same words, if there are any.

        Args:
            corpus: the documents of the source, with their parts.
            model: the model that is to be trained.
            covariates: the covariates that the documents keep, if they were read from a file; None keeps all.
        """
        if self.split is None:
            return corpus, self.documents(corpus)
        from ..corpus.parts import split_by_covariate

        parts = split_by_covariate(corpus, self.split)
        if covariates is not None and self.split not in covariates:
            parts = type(parts)(*(_without(part, self.split) for part in parts))
        return parts.train, self.measured(parts, model)

    def measured(self, parts: Split, model: TopicModel) -> Corpus | None:
        """Return the part whose loss is measured, and say how many documents are in each part."""
        sizes = {name: part.n_docs for name, part in parts._asdict().items()}
        if not sizes["train"]:
            raise InputError(f"no document has 'train' as {self.split!r}; name the documents to learn from (`split`)")
        unused = [f"{sizes['test']} for testing"] if sizes["test"] else []
        if sizes["validation"] and not model.uses_validation:
            unused.insert(0, f"{sizes['validation']} for validation ({type(model).__name__} has no loss by epoch)")
        measured = parts.validation if sizes["validation"] and model.uses_validation else None
        used = [f"{counted(sizes['train'], 'document')} for training"]
        used += [] if measured is None else [f"{sizes['validation']} for validation"]
        logger.info("%s%s", ", ".join(used), f"; not used: {', '.join(unused)}" if unused else "")
        return measured

    def documents(self, corpus: Corpus) -> Corpus | None:
        """Return the documents of the file over the words of a corpus, with the covariates that this has."""
        if self.validation is None:
            return None
        from ..corpus import Corpus
        from ..corpus.inputs import documents_of_file

        if holds_corpus(self.validation):
            found = Corpus.load(self.validation).over(corpus.vocabulary)
        else:
            reading = self.reading or {}
            fields = corpus.fields.kinds()
            found = next(documents_of_file(self.validation, corpus.vocabulary, corpus.tokenizer, reading, fields))
        n_empty = int(found.is_empty.sum())
        without = f"; without a word of the training documents, and not measured: {n_empty}" if n_empty else ""
        logger.info("%s for validation%s", counted(found.n_docs, "document"), without)
        return found


def _without(corpus: Corpus, covariate: str) -> Corpus:
    others = {name: values for name, values in corpus.covariates.items() if name != covariate}
    return replace(corpus, fields=replace(corpus.fields, covariates=others))
