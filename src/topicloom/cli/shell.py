"""Shared parts of all commands: making a command of a function, printing, and reporting a user's mistakes."""

from __future__ import annotations

import codecs
import copy
import errno
import functools
import gc
import inspect
import io
import json
import logging
import re
import shlex
import sys
import traceback
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from typing import IO, TYPE_CHECKING, Annotated, Any, NoReturn, get_args, get_origin, get_type_hints

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from typer.core import TyperCommand

from ..display import printable
from ..errors import InputError, LostRankError, TrainingDivergedError, TrainingInterrupted
from ..messages import refusal, with_arguments

if TYPE_CHECKING:
    from ..evaluation import Evaluation
    from ..topics.table import Topic

logger = logging.getLogger("topicloom")

# Characters that JSON may contain unescaped, but that could change a terminal.
_ESCAPES = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))}

# Arguments whose options have other names.
_RENAMED = {
    "n_topics": "topics",
    "random_state": "seed",
    "n_jobs": "jobs",
    "n_groups": "groups",
    "alphas": "alpha",
    "top_n": "words",
    "every": "checkpoint_every",
    "start": "from",
    "end": "to",
}
_OPPOSITES = {"day_first": "--month-first"}  # of options that are switched off by another name than --no-...
# Arguments that are options of other commands only.
_ELSEWHERE = {
    "covariates": "--covariate of prepare and train",
    "labels": "--label of prepare and train",
    "resume": "--resume of train",
    "timestamps": "--timestamp of prepare and train",
}
_GAP = 2  # characters between the columns of a table
_KEPT_WORDS = (32, 16, 12, 8, 4, 2)  # words up to the first of these lengths that fits stay unbroken in a narrow table

_REPLACING = "topicloom.similar"  # an error handler of encodings
_SIMILAR = {
    **dict(zip("▁▂▃▄▅▆▇█", "12345678", strict=True)),
    **dict(zip("─━│┃├└┌┐┘┤↑↓‘’“”–—−×", "--||++++++^v''\"\"---x", strict=True)),
    "…": "...", "±": "+-", "≥": ">=", "≤": "<=", "→": "->",
}  # fmt: skip
_numbered: set[str] = set()  # the characters that were printed as their numbers


def say(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a line on standard output or standard error.

    Without a file, typer would write UTF-8 where the encoding is ASCII.
    """
    typer.echo(text, file=sys.stderr if err else sys.stdout, nl=nl)


def spare_narrow_stdout() -> None:
    """Print other characters for those that the encoding of standard output lacks, so that printing never fails."""
    codecs.register_error(_REPLACING, _replaced)
    if (narrow := _narrow_stdout()) is not None:
        narrow.reconfigure(errors=_REPLACING)


def say_what_was_replaced() -> None:
    """Say how to see the characters that were printed as numbers, if any were."""
    if _numbered:
        _numbered.clear()
        logger.warning(
            "the encoding of this output lacks some characters, which are printed as numbers; to see them, set the "
            "environment variable PYTHONIOENCODING to utf-8"
        )


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """Return what is printed for characters that an encoding lacks: similar ones, or their numbers in Unicode."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    _numbered.update(set(lacking).difference(_SIMILAR))
    escaped = (_SIMILAR.get(each) or each.encode("ascii", "backslashreplace").decode() for each in lacking)
    return "".join(escaped), error.end


def _as_printed(text: str) -> str:
    """Return a text as standard output shows it, so that its width is known."""
    if text.isascii() or (narrow := _narrow_stdout()) is None or narrow.errors != _REPLACING:
        return text
    return text.encode(narrow.encoding, _REPLACING).decode(narrow.encoding)


def _narrow_stdout() -> io.TextIOWrapper | None:
    """Return standard output if its encoding lacks characters, as in an old locale."""
    if not isinstance(sys.stdout, io.TextIOWrapper) or codecs.lookup(sys.stdout.encoding).name.startswith("utf"):
        return None
    return sys.stdout


@contextmanager
def exact_stdout() -> Iterator[IO[str]]:
    """Yield standard output for data, in which no character may be replaced.

    Raises:
        InputError: the encoding of standard output lacks a character.
    """
    if (narrow := _narrow_stdout()) is not None:
        narrow.reconfigure(errors="strict")
    try:
        yield sys.stdout
    except UnicodeEncodeError as error:
        raise InputError(
            f"standard output is in {error.encoding}, which has no {error.object[error.start]!a}; give `out`, or set "
            "the environment variable PYTHONIOENCODING to utf-8"
        ) from None


@dataclass(frozen=True)
class OptionGroup:
    """How the fields of a class of options become options of commands. Their help is the docstring of the class.

    Attributes:
        panel: the heading of the options in the help of a command.
        own: for some fields, arguments of `typer.Option`; also "type" and "names", if those of the option differ from
            those of the field.
    """

    panel: str
    own: Mapping[str, Mapping[str, Any]]

    def option(self, name: str, hint: Any) -> Any:
        """Return the annotation from which typer makes the option of a field."""
        kind, description = get_args(hint)
        own = dict(self.own.get(name, {}))
        kind, names = own.pop("type", kind), own.pop("names", ())
        meaning = re.sub(r"`(\w+)`", lambda found: f"--{found[1].replace('_', '-')}", description)
        help = own.pop("help", f"{meaning[0].upper()}{meaning[1:]}.")
        return Annotated[kind, typer.Option(*names, help=help, rich_help_panel=self.panel, **own)]


def _kind(hint: Any) -> Any:
    """Return a type without its annotations."""
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _options_of(hint: Any) -> Iterator[inspect.Parameter]:
    """Yield an option for each field of a dataclass, and of the dataclasses in it."""
    group = next((note for note in get_args(hint) if isinstance(note, OptionGroup)), None)
    hints = get_type_hints(_kind(hint), include_extras=True)
    for field in fields(_kind(hint)):
        own = hints[field.name]
        if is_dataclass(_kind(own)):
            yield from _options_of(own)
        else:
            annotation = own if group is None else group.option(field.name, own)
            yield inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=annotation
            )


def _filled(hint: Any, given: dict[str, Any]) -> Any:
    """Return a dataclass with the given values of its options, which are removed from `given`."""
    parts = get_type_hints(_kind(hint), include_extras=True)
    values = {
        name: _filled(part, given) if is_dataclass(_kind(part)) else given.pop(name) for name, part in parts.items()
    }
    return _kind(hint)(**values)


def command(
    function: Callable[..., None] | None = None, *, panels: Mapping[str, Sequence[str]] | None = None
) -> Callable[..., Any]:
    """Make a function a command of typer.

    A parameter that is a dataclass becomes one option for each of its fields, so that commands can share options. A
    parameter `context` gets the context of the call. A mistake of the user prints one line and ends the process with an
    exit code.

    Args:
        function: the function; without it, a decorator is returned.
        panels: the headings of a long help, each with the names of its parameters. The other parameters come first,
            in the order of the function.
    """
    if function is None:
        return functools.partial(command, panels=panels)
    groups: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    shared: list[inspect.Parameter] = []
    hints = get_type_hints(function, include_extras=True)
    wanted = inspect.signature(function).parameters
    for name, parameter in wanted.items():
        if name == "context":
            continue
        if not is_dataclass(_kind(hints[name])):
            parameters.append(parameter.replace(annotation=hints[name], kind=parameter.KEYWORD_ONLY))
            continue
        groups[name] = hints[name]
        shared += _options_of(hints[name])

    @functools.wraps(function)
    def run(context: typer.Context, **given: Any) -> None:
        for name, group in groups.items():
            given[name] = _filled(group, given)
        known = context.command.params
        options = [option for parameter in known for option in (*parameter.opts, *parameter.secondary_opts)]
        log_to_stderr(given.get("quiet", False), options)
        if "context" in wanted:
            given["context"] = context
        try:
            function(**given)
        except InputError as error:
            stop(on_command_line(str(error), options), 2)
        except (TrainingDivergedError, LostRankError) as error:
            stop(on_command_line(str(error), options), 1)
        except (MemoryError, RuntimeError) as error:
            if not _is_out_of_memory(error):
                raise
            reason = "".join(f" ({line})" for line in str(error).splitlines()[:1])
            stop(f"there is too little memory{reason}; give less at once, or run it where there is more memory", 1)
        except TrainingInterrupted as stopped:
            stop(str(stopped), 128 + stopped.signal)
        except KeyboardInterrupt as interrupted:
            stop(str(interrupted) or "interrupted", 130)
        except BrokenPipeError:
            raise  # a closed pipe, such as `| head`, is no mistake; typer ends quietly
        except OSError as error:
            stop(reason_of(error), 2)

    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    ordered = _under_headings(parameters, shared, panels or {})
    run.__doc__ = _unwrapped(inspect.getdoc(function) or "")
    run.__signature__ = inspect.Signature([context, *ordered])  # type: ignore[attr-defined]
    return run


def _unwrapped(text: str) -> str:
    """Return a text with a line for each paragraph. typer joins the lines of the first paragraph only."""
    return "\n\n".join(" ".join(paragraph.split("\n")) for paragraph in text.split("\n\n"))


def _under_headings(
    own: Sequence[inspect.Parameter], shared: Sequence[inspect.Parameter], panels: Mapping[str, Sequence[str]]
) -> list[inspect.Parameter]:
    """Return the parameters of a command in the order of its help, with the headings of panels."""
    by_name = {parameter.name: parameter for parameter in own}
    below = []
    for heading, names in panels.items():
        for parameter in map(by_name.pop, names):
            kind, option = get_args(parameter.annotation)[:2]
            option = copy.copy(option)  # it may be shared by commands
            option.rich_help_panel = heading
            below.append(parameter.replace(annotation=Annotated[kind, option]))
    return [*by_name.values(), *shared, *below]


def on_command_line(message: str, options: Iterable[str]) -> str:
    """Rewrite arguments that a message names in backquotes as options of a command.

    `n_topics=6` becomes --topics 6, `overwrite=True` becomes --overwrite, and `header=False` becomes --no-header. A
    setting of the model that has no option of its own becomes --set name=value, if the command has --set. An argument
    that is an option of another command becomes that option, with the name of the command. Other arguments lose their
    backquotes.

    Args:
        message: the message.
        options: the options of the command, such as "--topics".

    >>> on_command_line("try `n_topics=6` or `alpha=0.1`", ["--topics", "--set"])
    'try --topics 6 or --set alpha=0.1'
    """
    known = set(options)

    def written(name: str, value: str | None) -> str | None:
        option = f"--{_RENAMED.get(name, name).replace('_', '-')}"
        opposite = _OPPOSITES.get(name, option.replace("--", "--no-", 1))
        if value == "False" and opposite in known:
            return opposite
        if option in known:
            return option if value in (None, "True") else f"{option} {_quoted(_unquoted(value))}"
        if value is not None and "--set" in known:
            return f"--set {shlex.quote(f'{name}={_unquoted(value)}')}"
        return _ELSEWHERE.get(name)

    return with_arguments(message, written)


def _quoted(value: str) -> str:
    return f'"{value}"' if value == "'" else shlex.quote(value)


def _unquoted(value: str) -> str:
    """Return a Python literal in the form of the command line, a text without its quotation marks."""
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if quoted else value


def refusal_of_option(error: Exception) -> str:
    """Return the reason why typer refuses the value of an option, in plain words.

    >>> refusal_of_option(typer.BadParameter("'many' is not a valid integer."))
    "'many' is not a whole number"
    """
    message = str(getattr(error, "message", error))
    problems = getattr(error.__cause__, "errors", None)  # newer versions of typer use Pydantic
    if problems is not None:
        return printable(refusal(problems()[0]))
    message = re.sub(r"a valid integer\b.*", "a whole number", message)
    return re.sub(r"a valid (number|float)\b.*", "a number", message)


def reason_of(error: Exception) -> str:
    """Return the message of an error. For errors of the system, leave out their number."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    if place := error.filename2 or error.filename:  # for a copy, the file that is written
        return f"{place}: {error.strerror}"
    # Standard output has no file name.
    return "the output has no space left" if error.errno == errno.ENOSPC else error.strerror


def _is_out_of_memory(error: Exception) -> bool:
    """Return whether Python, NumPy or PyTorch, which is not imported here, ran out of memory."""
    return isinstance(error, MemoryError) or "can't allocate memory" in str(error) or "out of memory" in str(error)


class PlainCommand(TyperCommand):
    """A command that reports mistakes in plain words, including negative numbers, which are read as options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except Exception as error:  # some versions of typer contain click, and others import it
            option = str(getattr(error, "option_name", ""))
            if re.fullmatch(r"-\d", option):
                ctx.fail(f"There is no option {option}; topics and documents are numbered from 0.")
            if isinstance(getattr(error, "message", None), str):
                error.message = refusal_of_option(error)  # type: ignore[attr-defined]
            raise


def show_topics(topics: list[Topic], numbers: Sequence[int | None] = ()) -> None:
    """Print topics.

    Args:
        topics: the topics.
        numbers: the present number of each topic of before an edit; where one has changed, a column shows the old ones.
    """
    shares = ("" if topic["share"] is None else f"{topic['share']:.1%}" for topic in topics)
    named = any(topic["name"] is not None for topic in topics)
    described = any(topic.get("sentence") for topic in topics)
    agreed = any("agreement" in topic for topic in topics)
    old: dict[int, list[str]] = {}
    for number, new in enumerate(numbers):
        if new is not None:
            old.setdefault(new, []).append(str(number))
    was = any(old.get(topic["topic"]) != [str(topic["topic"])] for topic in topics) if numbers else False
    rows = (
        [
            str(topic["topic"]), *(["+".join(old.get(topic["topic"], []))] if was else []), share,
            *([f"{topic['agreement']:.0%}"] if agreed else []), *([topic["name"] or ""] if named else []),
            " ".join(topic["words"]),
            *([topic.get("sentence") or ""] if described else []),
        ]
        for topic, share in zip(topics, shares, strict=True)
    )  # fmt: skip
    head = [
        "topic",
        *(["was"] if was else []),
        "share",
        *(["agreement"] if agreed else []),
        *(["name"] if named else []),
        "words",
    ]
    print_table([*head, *(["sentence"] if described else [])], rows, n_numbers=2 + was)


def print_table(head: list[str], rows: Iterable[Iterable[str]], n_numbers: int = 0, whole: int | None = None) -> None:
    """Print columns under a head. The first `n_numbers` columns are right-aligned; column `whole` is never broken."""
    _print(head, rows, range(n_numbers), whole)


def print_evaluation(found: Evaluation) -> None:
    """Print an evaluation as a table with a line for each measure."""
    _print(["measure", "value", "settings"], found.lines(), [1], title=found.title)


def _print(
    head: Sequence[str],
    rows: Iterable[Iterable[str]],
    numbers: Container[int],
    whole: int | None = None,
    title: str | None = None,
) -> None:
    """Print columns, at most as wide as the terminal. `numbers` are the columns that are right-aligned."""
    cells = [[_as_printed(printable(cell)) for cell in row] for row in rows]
    console = Console(markup=False, highlight=False)
    console.width = max(console.width, (_GAP + 2) * len(head) - _GAP)  # two, since some characters are that wide
    widths = _widths([head, *cells], console.width, whole)
    table = Table(box=None, padding=0, header_style="bold", title=title, title_justify="left", title_style="")
    for index, (name, width) in enumerate(zip(head, widths, strict=True)):
        if index:  # a gap is a column of its own: before rich 15, padding takes space at the edges, too
            table.add_column(width=_GAP)
        # Names may differ only at their ends, so they are not cut.
        table.add_column(name, justify="right" if index in numbers else "left", overflow="fold", width=width)
    for row in cells:
        table.add_row(*[part for cell in row for part in ("", cell)][1:])
    console.print(table)


def _widths(rows: Sequence[Sequence[str]], available: int, unbroken: int | None = None) -> list[int]:
    """Return the widths of columns whose lines break between words. Long words are broken only if nothing else fits.

    Args:
        rows: the cells, below the names of the columns.
        available: the characters of a line, at least two for each column, beside the gaps.
        unbroken: a column whose cells stay whole if that is possible. Its name may be broken.
    """
    columns = list(zip(*rows, strict=True))
    whole = [max(cell_len(line) for cell in column for line in cell.split("\n")) for column in columns]
    words = [max((cell_len(word) for cell in column for word in cell.split()), default=0) for column in columns]
    available -= _GAP * (len(columns) - 1)
    kept = [[min(word, longest) for word in words] for longest in _KEPT_WORDS]
    shortest = kept[-1]
    if unbroken is not None:
        cell = max((cell_len(row[unbroken]) for row in rows[1:]), default=0)
        kept = [[*each[:unbroken], max(each[unbroken], cell), *each[unbroken + 1 :]] for each in kept]
    least = next((each for each in kept if sum(each) <= available), shortest)
    most = max(whole)
    while sum(widths := [min(wide, max(most, word)) for wide, word in zip(whole, least, strict=True)]) > available:
        most -= 1
    return widths


def print_json(value: Any) -> None:
    say(json.dumps(value, ensure_ascii=_narrow_stdout() is not None).translate(_ESCAPES))


def import_models() -> None:
    """Import PyTorch and what else all models need, without searches for garbage.

    Later searches leave out what was imported here.
    """
    if "torch" in sys.modules:
        return
    gc.disable()
    try:
        from ..models import base  # noqa: F401
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def muted() -> Iterator[None]:
    logger.disabled = True
    try:
        yield
    finally:
        logger.disabled = False


class _Stderr(logging.Handler):
    """Print log records on standard error. Arguments of Python become options of the running command."""

    def __init__(self, options: list[str]) -> None:
        super().__init__()
        self.options = options

    def emit(self, record: logging.LogRecord) -> None:
        say(printable(on_command_line(record.getMessage(), self.options)), err=True)
        if record.exc_info:
            say(printable("".join(traceback.format_exception(*record.exc_info))), err=True, nl=False)


def log_to_stderr(quiet: bool, options: list[str]) -> None:
    logger.handlers = [_Stderr(options)]
    logger.propagate = bool(logging.root.handlers)  # an encoder's module that sets up logging would repeat each line
    logger.setLevel(logging.ERROR if quiet else logging.INFO)


def stop(message: str, code: int) -> NoReturn:
    if message:
        say(printable(f"topicloom: error: {message}"), err=True)
    raise typer.Exit(code)
