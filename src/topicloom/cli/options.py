"""Options that several commands share, and reading the runs and documents that they name."""

from __future__ import annotations

import ast
import functools
import json
import logging
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from ..files import holds_corpus
from ..messages import counted, nearest
from ..preparing import ReadOptions, WordOptions
from .shell import OptionGroup, muted, refusal_of_option, stop

if TYPE_CHECKING:
    from ..corpus import Corpus
    from ..corpus.fields import Vectors
    from ..corpus.inputs import Split
    from ..models.base import TopicModel
    from ..text import Document
    from ..topics.view import Topics


class DocTopics(StrEnum):
    """The formats of doc_topics."""

    csv = "csv"
    parquet = "parquet"
    none = "none"


class Recipe(StrEnum):
    """The source of settings that are not given."""

    default = "default"
    published = "published"
    combined = "combined"
    zeroshot = "zeroshot"
    gsb = "gsb"
    rsb = "rsb"
    zll17 = "zll17"


class FigureLanguages(StrEnum):
    """The languages of pictures."""

    auto = "auto"
    en = "en"
    zh = "zh"


class SearchMethod(StrEnum):
    """The methods by which tuning proposes settings."""

    tpe = "tpe"
    random = "random"


def count_or_share(value: Any) -> Any:
    """Read '5' as a number of documents, and '0.5' as a share of them."""
    try:
        return int(value) if str(value).isdecimal() else float(value)
    except ValueError:
        raise typer.BadParameter(f"{value!r} is neither a whole number of documents nor a share such as 0.5") from None


def _apply_config(context: typer.Context, path: Path | None) -> dict[str, Any]:
    """Make the values in a file the defaults of the options with these names. Return its settings of the model."""
    if path is None:
        return {}
    from ..files.content import read_yaml_or_toml

    try:
        found = read_yaml_or_toml(path)
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
    """Return the name of an option, and its value in the form of the command line."""
    options = {opt.removeprefix("--"): option for option in context.command.params for opt in option.opts}
    known = [option for option in options if option not in ("config", "help", "set", "-q")]
    if name.replace("_", "-") not in known:
        raise InputError(f"there is no option {name!r}; {nearest(name, [*known, 'settings'])}")
    option = options[name.replace("_", "-")]
    several = value if isinstance(value, list) else [value]
    repeatable = getattr(option, "multiple", False) or option.nargs == -1
    if any(isinstance(each, dict | list | None) for each in several) or (isinstance(value, list) and not repeatable):
        wanted = "a value, or a list of them" if repeatable else "a single value"
        raise InputError(f"{name} should be {wanted}; it is {value!r}")
    text = [str(each) for each in several] if repeatable else str(value)
    try:
        option.process_value(context, text)
    except typer.BadParameter as error:
        raise InputError(f"{name} cannot be {text!r}: {refusal_of_option(error).rstrip('.')}") from None
    return option.name, text


_DOCUMENTS = {"parser": count_or_share, "metavar": "COUNT|SHARE"}

Reading = Annotated[
    ReadOptions,
    OptionGroup(
        "The file",
        {
            **{name: {"metavar": "COLUMN"} for name in ("text", "id", "label", "timestamp")},
            "delimiter": {"metavar": "CHARACTER"},
            "header": {"names": ("--header/--no-header",)},
            "sheet": {"metavar": "NAME|NUMBER"},
            "quotechar": {"metavar": "CHARACTER"},
            "escapechar": {"metavar": "CHARACTER"},
            "quoting": {"names": ("--quoting/--no-quoting",)},
            "split_texts": {"metavar": "PIECES"},
            "day_first": {"names": ("--day-first/--month-first",)},
            "date_format": {"metavar": "FORMAT"},
        },
    ),
]
_Words = Annotated[
    WordOptions,
    OptionGroup(
        "The words",
        {
            "min_df": _DOCUMENTS,
            "max_df": _DOCUMENTS,
            # A command takes words and functions only by the names of files and modules.
            "stop_words": {
                "type": str,
                "metavar": "auto|none|FILE",
                "help": "A file of words to remove besides the language's stop words; none removes no words.",
            },
            "replace_stop_words": {"names": ("--replace-stop-words",)},
            "user_dictionary": {"type": Path | None, "metavar": "FILE"},
            "tokenizer": {
                "type": str | None,
                "metavar": "MODULE:FUNCTION",
                "help": "Your own function from a text to its tokens, such as my_tokenizer:split.",
            },
            "preset": {"metavar": "social"},
            "handles": {"metavar": "word|keep|drop"},
            "hashtags": {"metavar": "word|keep|split|drop"},
            "links": {"metavar": "drop|keep"},
            "emoji": {"names": ("--emoji/--no-emoji",)},
            "lemmatise": {"names": ("--lemmatise", "--lemmatize")},
            "ngrams": {"type": str | None, "metavar": "N|N-N"},
            "phrases": {"names": ("--phrases",)},
            "drop_duplicates": {"names": ("--drop-duplicates",)},
            "drop_boilerplate": {"names": ("--drop-boilerplate",)},
        },
    ),
]
_workers = functools.partial(typer.Option, rich_help_panel="Workers")


@dataclass(frozen=True)
class Preparing:
    """How text becomes a corpus."""

    reading: Reading = ReadOptions()  # noqa: RUF009
    words: _Words = WordOptions()  # noqa: RUF009
    n_jobs: Annotated[
        int | None,
        _workers(
            "--jobs", help="Processes that count words and, in compare and select-topics, fit models; -1 is all cores."
        ),
    ] = None
    cluster: Annotated[
        str | None,
        _workers(
            metavar="auto|ADDRESS",
            help="A Ray cluster, whose nodes do the work of --jobs; train fits its model on this machine.",
        ),
    ] = None

    def values(self) -> dict[str, Any]:
        """Return the value of every option, by the option's name in Python."""
        return {**vars(self.reading), **vars(self.words), "n_jobs": self.n_jobs, "cluster": self.cluster}


Source = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE",
        help="A .txt file (one document on each line), a table (.csv, .tsv, .xlsx, .jsonl, .json, .parquet), a .md, "
        ".docx, .pdf, .eml or .mbox file, a folder or .zip of such texts, several of these, or - for standard input.",
        show_default=False,
    ),
]
Documents = Annotated[
    list[str],
    typer.Argument(metavar="SOURCE", help="A corpus that prepare wrote, or any text that prepare takes."),
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
TopicCount = Annotated[int, typer.Option(help="Number of topics.")]
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
CoherenceReference = Annotated[
    str | None, typer.Option("--reference", metavar="FILE", help="Other documents to measure coherence against.")
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
        "--vectors",
        metavar="FILE",
        help="A .npy or .npz file with a vector, that is, a row of numbers, for each document.",
    ),
]
Encoder = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        metavar="NAME",
        help="What gives each text a vector: sentence-transformers:NAME, model2vec:NAME, "
        "module:function, https://host/v1#model, or auto.",
    ),
]
EncoderCache = Annotated[
    Path | None,
    typer.Option(
        "--encoder-cache",
        metavar="DIR",
        help="Where vectors are kept while texts are encoded; by default, the folder .vectors beside the output.",
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
Period = Annotated[
    str,
    typer.Option(
        "--period",
        "--every",
        metavar="UNIT",
        help="hour, day, week, month, quarter, year, decade, several such as '2 weeks', or auto: at most 40 periods.",
    ),
]
Bins = Annotated[
    str | None,
    typer.Option(metavar="N|DATE,DATE", help="In place of --period, a number of bins, or the dates that divide them."),
]
Start = Annotated[str | None, typer.Option("--from", metavar="DATE", help="Leave out documents before this date.")]
End = Annotated[
    str | None,
    typer.Option("--to", metavar="DATE", help="Leave out documents after this date; 2024-05 is all of May."),
]
MinDocuments = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Periods with fewer documents are not tested; by default a tenth of the median period's, at most 30.",
    ),
]
LLM = typer.Option(
    "--llm",
    metavar="URL",
    help="Service of a language model with OpenAI's interface, such as http://localhost:11434/v1.",
)
Timeout = Annotated[
    float | None, typer.Option(metavar="SECONDS", help="How long to wait for an answer; by default 120 seconds.")
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


def read_bins(text: str | None) -> int | list[str] | None:
    """Read '12' as a number of bins, and '2024-01,2024-07,2025-01' as dates."""
    if text is None:
        return None
    names = read_names(text)
    is_number = len(names) == 1 and names[0].removeprefix("-").isdecimal()
    return int(names[0]) if is_number else names


def number_or_name(text: str) -> int | str:
    """'3' -> 3, 'shipping' -> 'shipping': a topic by its number or its name."""
    return int(text) if text.removeprefix("-").isdecimal() else text


def read_setting(text: str) -> tuple[str, Any]:
    """Split 'name=value'. The value is read as JSON, as a Python literal, or, if it is a list or a mapping, as YAML.

    Anything else is a string. YAML is the form of `--config`: {3: [match, coach]}.
    """
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise InputError(f"--set {text}: give a name and a value, such as --set batch_size=64")
    for parse in (json.loads, ast.literal_eval):
        try:
            return name, parse(value)
        except (ValueError, SyntaxError):
            continue
    if value.lstrip().startswith(("{", "[")):
        import yaml

        with suppress(yaml.YAMLError):
            return name, yaml.safe_load(value)
    return name, value


# Runs and files

logger = logging.getLogger("topicloom")


def open_topics(
    run: Path, allow: Iterable[str] | None = None, device: str = "cpu", encoder: str | None = None
) -> Topics:
    """Return the topics of a run with its documents."""
    from ..topics.view import Topics

    mention_edits(run)
    return Topics.from_run(run, device=device, allow=allow or (), encoder=encoder)


def mention_edits(run: Path) -> None:
    """Tell the user if a run has edits from the service. Commands show the topics of the run without these edits."""
    from ..topics.saved import EDITS

    path = run / EDITS
    if not path.is_file():
        return
    from ..topics.edits import read_edits

    with suppress(InputError):  # a file that cannot be read is no reason to show nothing
        if read_edits(path).edits:
            apply = shlex.join(["topicloom", "edit", str(run), "--edits", str(path)])
            logger.info(
                "the edits in %s, which were made in the service, are not applied; to write a run with them, use %s "
                "--out NEW_RUN", path, apply,
            )  # fmt: skip


def check_new(path: Path | None, overwrite: bool) -> None:
    """Raise InputError if a file exists that may not be replaced."""
    if path is not None and path.exists() and not overwrite:
        raise InputError(f"{path} already exists; give another name, or --overwrite to replace it")


def check_out(out: Path | None, overwrite: bool) -> None:
    """Raise InputError if the file of `out` exists and may not be replaced, or if there is none to replace."""
    if out is None and overwrite:
        raise InputError("`overwrite` replaces the file of `out`; give that, too, or leave it out")
    check_new(out, overwrite)


def check_table(path: Path | None, overwrite: bool, excel: bool = False) -> None:
    """Check the file of a table before anything takes time."""
    if path is not None:
        from ..topics.table import require_format

        require_format(path, excel=excel)
    check_out(path, overwrite)


def is_for_print(path: Path | None) -> bool:
    """Whether a table in this file goes into a paper as it is."""
    return path is not None and path.suffix.lower() in (".tex", ".md")


# Documents


def need_order(measures: Iterable[str]) -> bool:
    from ..metrics import CATALOGUE

    return any("token order" in CATALOGUE[name].needs for name in measures)


@dataclass(frozen=True)
class GivenDocuments:
    """The documents of a command, from a file or a saved corpus. A file is read only once.

    Attributes:
        source: the file or several, "-" for standard input, or the directory of the corpus.
        options: how text becomes a corpus.
        columns: the columns that become covariates, each with the option that names it.
        documents: the documents of a file, which can be read once; None for a saved corpus.
        vectors: (n_docs, E) a vector for each document; None for none.
        vectors_file: the file of the vectors.
        encoder: what gives each document its vector, by its name; None for nothing.
        encoder_cache: the directory that keeps vectors while the documents are encoded.
    """

    source: str | list[str]
    options: Preparing
    columns: Mapping[str, str]
    documents: Iterator[Document] | None
    vectors: Vectors | None = None
    vectors_file: Path | None = None
    encoder: str | None = None
    encoder_cache: Path | None = None

    @classmethod
    def opened(
        cls,
        source: str | list[str],
        options: Preparing,
        *,
        covariates: Sequence[str] = (),
        split: str | None = None,
        vectors: Path | None = None,
        encoder: str | None = None,
        encoder_cache: Path | None = None,
        may_be_corpus: bool = True,
    ) -> GivenDocuments:
        """Open a file and read its first document, so that a wrong name or column is found before PyTorch is loaded.

        Standard input is not read yet, because its first document may arrive late.

        Args:
            source: the file or several, "-" for standard input, or a saved corpus.
            options: how text becomes a corpus. A saved corpus allows none of them.
            covariates: the columns with covariates.
            split: the column that says the part of each document; None for none.
            vectors: a file with a vector for each document; None for none.
            encoder: what gives each document its vector, by its name; None for nothing.
            encoder_cache: a directory that keeps vectors while the documents are encoded.
            may_be_corpus: whether a saved corpus is accepted.
        """
        from ..text.reading import documents_in

        _refuse_both(vectors, encoder)
        if encoder_cache is not None and encoder is None:
            raise InputError("`encoder_cache` keeps the vectors of an `encoder`; give that, too, or leave it out")
        columns = dict.fromkeys(covariates, "covariate") | ({} if split is None else {split: "split"})
        documents = None
        if may_be_corpus and holds_corpus(source):
            _refuse_options(source, options.values())
        else:
            documents = documents_in(source, options.reading, columns)
            documents = documents if source == "-" else chain([next(documents)], documents)
        if vectors is None:
            return cls(source, options, columns, documents, encoder=encoder, encoder_cache=encoder_cache)
        from ..embeddings import read_document_vectors

        return cls(source, options, columns, documents, read_document_vectors(vectors), vectors)

    def corpus(
        self, *, progress: bool, keep_texts: bool = False, out: Path | None = None, overwrite: bool = False
    ) -> Corpus:
        """Count the words of the documents, and write the counts to `out` if it is given; or load the saved corpus.

        This works once, because the documents of a file can be read only once.
        """
        from ..corpus import Corpus

        if self.documents is not None:
            return Corpus.from_documents(
                self._as_many_as_vectors(self.documents), self.options.words, times=self.options.reading,
                vectors=self.vectors, encoder=self.encoder, encoder_cache=self.encoder_cache, out=out,
                overwrite=overwrite, keep_texts=keep_texts, n_jobs=self.options.n_jobs, cluster=self.options.cluster,
                progress=progress,
            )  # fmt: skip
        assert isinstance(self.source, str)
        corpus = Corpus.load(self.source)
        for name, option in self.columns.items():
            if option == "covariate" and name not in corpus.covariates:
                raise InputError(
                    f"the corpus {self.source} has no covariate {name!r}; {nearest(name, corpus.covariates)}"
                    if corpus.covariates
                    else f"the corpus {self.source} has no covariates; make it again with `prepare --covariate`"
                )
        if self.encoder is not None:
            return corpus.with_vectors(encoder=self.encoder, encoder_cache=self.encoder_cache, progress=progress)
        if self.vectors is None:
            return corpus
        require_rows(self.vectors, self.vectors_file, corpus.n_docs, self.source)
        return replace(corpus, fields=replace(corpus.fields, vectors=self.vectors, encoder=None))

    def _as_many_as_vectors(self, documents: Iterator[Document]) -> Iterator[Document]:
        """Yield documents, and check at the end that each has a vector."""
        n_docs = 0
        for n_docs, document in enumerate(documents, 1):  # noqa: B007
            yield document
        if self.vectors is not None:
            require_rows(self.vectors, self.vectors_file, n_docs, self.source)


def cache_beside(out: Path | None, given: Path | None, encoder: str | None) -> Path | None:
    """Return the directory that keeps an encoder's vectors: the one that was given, or .vectors beside the output."""
    return given if given is not None or out is None or encoder is None else out.absolute().parent / ".vectors"


def one_or_several(sources: list[str]) -> str | list[str]:
    """Return the only source of a command, or all of them."""
    return sources[0] if len(sources) == 1 else sources


def require_rows(vectors: Vectors, path: Path | None, n_docs: int, source: str | list[str]) -> None:
    """Raise InputError if a file of vectors has more or fewer rows than there are documents."""
    if len(vectors) != n_docs:
        source = source if isinstance(source, str) else f"{source[0]} and the other files"
        raise InputError(
            f"{path} has {counted(len(vectors), 'row')}, and {source} has {counted(n_docs, 'document')}; give a row "
            "for each document, in the same order"
        )


def check_source(source: str | list[str], reading: ReadOptions, optional: Collection[str] = ()) -> None:
    """Read the first document of a file, so that a wrong name or column is found before PyTorch is loaded.

    `optional` has the options that may not suit the file, as `documents_in` takes them.

    The file is opened again later, because the covariates to read are known only when the model is loaded or, for
    validation documents, when the training documents are counted.
    """
    if holds_corpus(source):
        _refuse_options(source, vars(reading))
    elif source != "-":
        from ..text.reading import documents_in

        with muted():  # warnings follow when the whole file is read
            next(documents_in(source, reading, optional=optional), None)


def _refuse_options(source: str | Path, options: Mapping[str, Any]) -> None:
    """Raise InputError if an option of reading or of counting was given for a saved corpus."""
    defaults = Preparing().values()
    changed = [name for name, value in options.items() if value != defaults[name]]
    if changed:
        options_of = {"n_jobs": "--jobs", "header": "--no-header", "quoting": "--no-quoting"}
        option = options_of.get(changed[0], "--" + changed[0].replace("_", "-"))
        raise InputError(f"{option} cannot be applied to {source}, which is a saved corpus; use it with prepare")


def _refuse_both(vectors: Path | None, encoder: str | None) -> None:
    if encoder is not None and vectors is not None:
        raise InputError("`document_vectors` and `encoder` both give vectors; give one of them")


def vectors_or_encoder(
    source: str | list[str],
    reading: ReadOptions,
    path: Path | None,
    encoder: str | None,
    optional: Collection[str] = (),
) -> Vectors | None:
    """Read a file with one vector for each new document; None if there is no file.

    The documents are counted first, so that a mistake is found before results are written.

    Args:
        source: the file of the documents, or a saved corpus.
        reading: how the file is read.
        path: the file of the vectors.
        encoder: the name of an encoder, which excludes a file.
        optional: the options that may not suit the file, as `documents_in` takes them.
    """
    _refuse_both(path, encoder)
    if path is None:
        return None
    if source == "-":
        raise InputError("`document_vectors` needs a file of documents, because standard input can be read only once")
    from ..corpus import Corpus
    from ..embeddings import read_document_vectors
    from ..text.reading import documents_in

    vectors = read_document_vectors(path)
    if holds_corpus(source):
        n_docs = Corpus.load(source).n_docs
    else:
        with muted():
            n_docs = sum(1 for _ in documents_in(source, reading, optional=optional))
    require_rows(vectors, path, n_docs, source)
    return vectors


# Validation and test documents


_ROLES = ("id", "label", "timestamp")  # columns that validation documents have like the others


@dataclass(frozen=True)
class HeldOut:
    """The options of `train` that name validation and test documents.

    Attributes:
        split: the column that says the part of each document: train, validation or test.
        validation: a file of validation documents, or a saved corpus of them.
        reading: the options of reading that differ from the defaults.
    """

    split: str | None = None
    validation: str | None = None
    reading: Mapping[str, Any] | None = None

    @classmethod
    def recorded(cls, source: Any) -> HeldOut:
        """Return the options in the entry `source` of a run's metrics.json."""
        noted = source if isinstance(source, Mapping) else {}
        return cls(noted.get("split"), noted.get("validation"), noted.get("reading"))

    def __bool__(self) -> bool:
        return self.split is not None or self.validation is not None

    def options(self) -> dict[str, str]:
        """Return the options that were given, with absolute paths."""
        if self.validation is not None:
            return {"validation": str(Path(self.validation).resolve())}
        return {} if self.split is None else {"split": self.split}

    def check(self, model: TopicModel) -> None:
        """Find mistakes before anything takes time. This reads the first document of the file."""
        if self.validation is None:
            return
        if self.split is not None:
            raise InputError("`split` and `validation` both say which documents are for validation; give one of them")
        if not model.uses_validation:
            raise InputError(f"{type(model).__name__} has no loss by epoch to measure; leave `validation` out")
        if self.validation == "-":
            raise InputError("the validation documents cannot be on standard input; give a file by `validation`")
        if not holds_corpus(self.validation):
            from ..text.reading import options_of_others

            options = ReadOptions(**(self.reading or {}))
            check_source(self.validation, options, options_of_others(_ROLES))

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
        from ..corpus.inputs import split_by_covariate

        parts = split_by_covariate(corpus, self.split)
        if covariates is not None and self.split not in covariates:
            parts = type(parts)(*(_without(part, self.split) for part in parts))
        return parts.train, self.measured(parts, model)

    def measured(self, parts: Split, model: TopicModel) -> Corpus | None:
        """Return the part whose loss is measured, and log how many documents are in each part."""
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
        """Return the documents of the file over the words of a corpus, with the covariates of that corpus."""
        if self.validation is None:
            return None
        from ..corpus import Corpus
        from ..corpus.inputs import documents_of_file
        from ..text.reading import options_of_others

        if holds_corpus(self.validation):
            found = Corpus.load(self.validation).over(corpus.vocabulary)
        else:
            reading = self.reading or {}
            fields = corpus.fields.kinds()
            found = next(
                documents_of_file(
                    self.validation, corpus.vocabulary, corpus.tokenizer, reading, fields,
                    optional=options_of_others(_ROLES),
                )
            )  # fmt: skip
        n_empty = int(found.is_empty.sum())
        without = f"; without a word of the training documents, and not measured: {n_empty}" if n_empty else ""
        logger.info("%s for validation%s", counted(found.n_docs, "document"), without)
        return found


def _without(corpus: Corpus, covariate: str) -> Corpus:
    others = {name: values for name, values in corpus.covariates.items() if name != covariate}
    return replace(corpus, fields=replace(corpus.fields, covariates=others))
