"""Write the pages of the reference: the public names of the package, and its commands."""

from __future__ import annotations

import dataclasses
import inspect
import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, get_args

from sources import MODULES, ROOT, WORDS, api_names, commands, say

import topicloom
from topicloom import text
from topicloom.cli import load_command
from topicloom.settings import ReadableSettings, describe_settings

if TYPE_CHECKING:
    from sources import Writer

HEADINGS = {
    "settings": ("Settings", "设置"),
    "methods": ("Methods and attributes", "方法和属性"),
    "inherited": ("Inherited", "继承的方法和属性"),
    "setting": ("setting", "设置"),
    "default": ("default", "默认"),
    "meaning": ("what it may be, and what it means", "取值和含义"),
    "page": ("The model is described on a page of its own:", "这个模型有专门的页面："),
    "options": ("Options", "选项"),
    "arguments": ("Arguments", "参数"),
    "option": ("option", "选项"),
    "value": ("value", "取值"),
    "means": ("meaning", "含义"),
}
# A word with a trailing underscore would be a link, and a star would begin emphasis.
SPECIAL = re.compile(r"([\\*|]|(?<=\w)_(?!\w))")
SECTION = re.compile(r"(?:(?:\w[\w ]* )?[Aa]rgs|Attributes|Returns|Raises|Yields|Examples?|Notes?|References):")


def find(name: str) -> Any:
    """Return the object with a public name."""
    found: Any = topicloom
    for part in name.split(".")[1:]:
        found = text if found is topicloom and part == "text" else getattr(found, part)
    return found


def own_members(kind: type) -> dict[str, Any]:
    """Return the documented public methods and properties that a class itself defines."""
    fields = {each.name for each in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    return {
        name: each
        for name, each in vars(kind).items()
        if not name.startswith("_")
        and not name.endswith("_request")
        and name not in fields
        and inspect.getdoc(member(each))
        and is_member(each)
    }


def is_member(each: Any) -> bool:
    return inspect.isroutine(member(each)) or is_property(each)


def member(each: Any) -> Any:
    """Return the function of a method or a property."""
    if isinstance(each, classmethod | staticmethod):
        return each.__func__
    return getattr(each, "fget", None) or getattr(each, "func", None) or each


def inherited(kind: type) -> dict[str, str]:
    """Return the public members of the package's bases, by name, with the base's public name."""
    known = {find(name): name for name in api_names() if inspect.isclass(find(name))}
    found: dict[str, str] = {}
    for base in kind.__mro__[1:]:
        if base in known:
            for name in own_members(base):
                if name not in vars(kind):
                    found.setdefault(name, known[base])
    return found


# Docstrings to reStructuredText.


def inline(words: str, owner: str = "") -> str:
    """Return a line of a docstring as reStructuredText: names in backquotes become links or code.

    Args:
        words: the line.
        owner: the public name of the class whose members need no prefix.
    """
    parts = re.split(r"`([^`]+)`", words)
    parts[::2] = [SPECIAL.sub(r"\\\1", part) for part in parts[::2]]
    parts[1::2] = [named(part, owner) for part in parts[1::2]]
    line = "".join(parts)
    return re.sub(r"\bdocs/([\w/-]+)\.md\b", lambda found: f":doc:`/{found[1]}`", line)


def named(code: str, owner: str) -> str:
    """Return a link to a public name, or code."""
    name = re.sub(r"^tl\.", "topicloom.", code).removesuffix("()")
    for each in (name, f"topicloom.{name}", f"{owner}.{name}"):
        head, _, last = each.rpartition(".")
        if each in api_names():
            return f":py:obj:`{code} <{each}>`"
        if head in api_names() and inspect.isclass(find(head)) and last in own_members(find(head)):
            return f":py:obj:`{code} <{each}>`"
    return f"``{code}``"


def to_rst(lines: list[str], owner: str = "", drop_args: bool = False) -> list[str]:
    """Return the lines of a docstring as reStructuredText that napoleon reads.

    Args:
        lines: the docstring.
        owner: the public name of the class that it is about.
        drop_args: leave out the sections of arguments, which a table of settings replaces.
    """
    out: list[str] = []
    section, entry, code, doctest, skip = "", -1, -1, False, False
    for number, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        bare = line.strip()
        if bare and indent == 0:
            section, entry = (bare, -1) if SECTION.fullmatch(bare) else ("", -1)
            skip = drop_args and bool(re.fullmatch(r"(?:\w[\w ]* )?[Aa]rgs:", section))
        if skip:
            continue
        doctest = bool(bare) and (doctest or bare.startswith(">>>"))
        if code >= 0 and bare and indent < code:
            code = -1
        before = next((each for each in reversed(lines[:number]) if each.strip()), "")
        starts = (
            bare
            and bare[:2] not in ("- ", "* ")
            and number
            and not lines[number - 1].strip()
            and before.rstrip().endswith(":")
        )
        if starts and code < 0 and not doctest and indent > len(before) - len(before.lstrip()):
            out += [f"{' ' * (indent - 4)}.. code-block:: python", ""]
            code = indent
        if not bare or doctest or code >= 0 or section == bare:
            out.append(line)
            continue
        if section and entry < 0:
            entry = indent
        name = re.match(r"\s+\*{0,2}[\w., ]+: ", line) if section and indent == entry else None
        has_names = not section.startswith(("Returns", "Yields", "Example", "Note", "Reference"))
        head = name[0] if name and has_names else line[:indent]
        out.append(head + inline(line[len(head) :], owner))
    return out


# Pages.


def title(words: str, mark: str) -> list[str]:
    return [words, mark * (2 * len(words)), ""]


def table_of_settings(kind: type, language: str) -> list[str]:
    lines: list[str] = []
    group = None
    for setting in describe_settings(kind):
        if setting.group != group:
            group = setting.group
            lines += ["", f".. rubric:: {group or HEADINGS['settings'][0]}", ""]
            heads = (say(HEADINGS[each], language) for each in ("setting", "default", "meaning"))
            lines += [".. list-table::", "   :header-rows: 1", "   :widths: 22 14 64", "   :class: settings", ""]
            lines += row(*heads)
        lines += row(
            f"``{setting.name}``", f"``{setting.default!r}``", f"*{plain(setting.type)}*: {inline(setting.meaning)}"
        )
    return [*lines, ""]


def plain(words: str) -> str:
    return SPECIAL.sub(r"\\\1", words.replace("`", ""))


def row(*cells: str) -> list[str]:
    first, *rest = cells
    return [f"   * - {first}", *(f"     - {cell}" for cell in rest)]


def write_reference(writer: Writer) -> None:
    """Write a page for each public name, and one for each module."""
    language = writer.language
    for name, (page, _) in api_names().items():
        if name.removeprefix("topicloom.") in MODULES:
            continue
        found, short = find(name), name.removeprefix("topicloom.")
        lines = [".. highlight:: python", "", *title(short, "=")]
        if inspect.isclass(found):
            lines += of_class(name, found, language)
        elif inspect.isroutine(found):
            lines += [f".. autofunction:: {name}", ""]
        else:
            lines += [f".. py:data:: {name}", "", *value(found)]
        writer.write(f"{page}.rst", "\n".join(lines))
    for module in MODULES:
        found = find(f"topicloom.{module}")
        names = {name: page for name, (page, group) in api_names().items() if group == f"topicloom.{module}"}
        lines = [
            ".. highlight:: python",
            "",
            *title(f"topicloom.{module}", "="),
            f".. py:module:: topicloom.{module}",
            "",
        ]
        lines += [*to_rst((inspect.getdoc(found) or "").splitlines()), ""]
        lines += [".. list-table::", "   :widths: 34 66", ""]
        for name, page in names.items():
            about = (inspect.getdoc(find(name)) or "").split("\n\n")[0].replace("\n", " ")
            about = inline(about) if inspect.isclass(find(name)) or inspect.isroutine(find(name)) else "Data."
            lines += row(f":doc:`{name.rpartition('.')[2]} </{page}>`", about)
        lines += ["", ".. toctree::", "   :hidden:", "", *(f"   /{page}" for page in names.values())]
        writer.write(f"reference/{module}/index.rst", "\n".join(lines) + "\n")


def of_class(name: str, kind: type, language: str) -> list[str]:
    lines: list[str] = []
    if "models" in kind.__module__ and (page := model_page(name)):
        lines += [f"{say(HEADINGS['page'], language)} :doc:`/models/{page}`", ""]
    directive = "autoexception" if issubclass(kind, BaseException) else "autoclass"
    bases = ["   :show-inheritance:"] if kind.__bases__ != (object,) else []
    lines += [f".. {directive}:: {name}", *bases, ""]
    if issubclass(kind, ReadableSettings):
        lines += [*title(say(HEADINGS["settings"], language), "-"), *table_of_settings(kind, language)]
    members = own_members(kind)
    if members:
        lines += title(say(HEADINGS["methods"], language), "-")
    for each, its in members.items():
        lines += [f".. {'autoproperty' if is_property(its) else 'automethod'}:: {name}.{each}", ""]
    if found := inherited(kind):
        lines += [*title(say(HEADINGS["inherited"], language), "-"), ".. list-table::", "   :widths: 30 70", ""]
        for each, base in sorted(found.items()):
            about = (inspect.getdoc(member(vars(find(base))[each])) or "").split("\n\n")[0].replace("\n", " ")
            lines += row(f":py:obj:`{each} <{base}.{each}>`", inline(about, base))
        lines += [""]
    return lines


def is_property(each: Any) -> bool:
    return isinstance(each, property | cached_property)


def model_page(name: str) -> str | None:
    """Return the page in docs/models about the module of a model, or None if there is none."""
    found = {path.stem for path in (ROOT / "docs" / "models").glob("*.md")}
    module = find(name).__module__.split(".")[2:]
    return next((part for part in module if part in found), None) if module else None


def value(found: Any) -> list[str]:
    """Return a line that says what a public name that is neither a class nor a function holds."""
    parts = found if isinstance(found, dict | tuple | list) else get_args(found) or [found]
    shown = [str(getattr(part, "__name__", part)) for part in parts]
    return ["   " + ", ".join(f"``{part}``" for part in shown), ""]


# The command line.


def write_commands(writer: Writer) -> None:
    """Write a page for each command, and a list of them."""
    language = writer.language
    lines = [f"# {say(WORDS['cli'], language)}", "", "```sh", "topicloom COMMAND --help", "```", ""]
    lines += ["| | |", "|---|---|"]
    for name, summary in commands().items():
        lines.append(f"| [`topicloom {name}`]({name}.md) | {cell(summary)} |")
        writer.write(f"reference/cli/{name}.md", command_page(name, language))
    lines += ["", "```{toctree}", ":hidden:", "", *commands(), "```"]
    writer.write("reference/cli/index.md", "\n".join(lines) + "\n")


def command_page(name: str, language: str) -> str:
    command: Any = load_command(name)
    usage = command.get_usage(command.context_class(command, info_name=f"topicloom {name}"))
    lines = [f"# topicloom {name}", "", "```text", usage.removeprefix("Usage: "), "```", ""]
    lines += [escaped(command.help or ""), ""]
    panels: dict[str, list[Any]] = {}
    for each in command.params:
        if not getattr(each, "hidden", False):
            argument = type(each).__name__.endswith("Argument")
            usual = say(HEADINGS["arguments" if argument else "options"], language)
            panels.setdefault(getattr(each, "rich_help_panel", None) or usual, []).append(each)
    for panel, options in panels.items():
        heads = " | ".join(say(HEADINGS[each], language) for each in ("option", "value", "means"))
        lines += [f"## {panel}", "", f"| {heads} |", "|---|---|---|"]
        for each in options:
            given = [*each.opts, *each.secondary_opts]
            if type(each).__name__.endswith("Argument"):
                given = [each.metavar or each.name]
            names = " ".join(f"`{one}`" for one in given)
            default = each.default if each.show_default and not callable(each.default) else None
            words = cell(each.help or "")
            if isinstance(default, str | int | float) and not isinstance(default, bool) and str(default):
                words += f" `[{default}]`"
            lines.append(f"| {names} | {value_of(each)} | {words} |")
        lines.append("")
    return "\n".join(lines)


def value_of(option: Any) -> str:
    """Return what an option takes, as its help shows it."""
    if getattr(option, "is_flag", False):
        return ""
    if option.metavar:
        return f"`{option.metavar}`"
    kind = option.type_descriptor.annotation
    return f"`{getattr(kind, '__name__', str(kind)).lower()}`"


def escaped(words: str) -> str:
    return re.sub(r"([\\*_<>\[\]])", r"\\\1", words)


def cell(words: str) -> str:
    return escaped(" ".join(words.split())).replace("|", r"\|")
