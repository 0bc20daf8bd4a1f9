"""The table of the literature: every place in the code and every command of it exists, in both languages."""

from __future__ import annotations

import ast
import re
import shlex
from functools import cache
from pathlib import Path

import click
import pytest

import topicloom as tl
from topicloom.cli import load_command
from topicloom.metrics import CATALOGUE
from topicloom.models import model_class
from topicloom.models.base import published_settings
from topicloom.reports.figures import KINDS
from topicloom.settings import check_settings, from_text

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path(tl.__file__).parent
PAGES = ("literature.md", "literature.zh-CN.md")


def rows(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found = re.findall(r"^\| (.+?) \| `(\S+): (\w+)` \| (.+) \|$", text, re.MULTILINE)
    assert len(found) >= 70
    reasons = re.findall(r"^\| (.+?) \| ([^`].*) \|$", text.rpartition("## ")[2], re.MULTILINE)[1:]
    assert len(found) == len(re.findall(r"^\| (?!---)", text, re.MULTILINE)) - 7 - len(reasons)  # no row is unread
    assert all(len(reason) > 15 for _, reason in reasons)
    return found, reasons


@cache
def names_in(file):
    tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
    targets = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef | ast.FunctionDef)} | {
        each.id for each in targets if isinstance(each, ast.Name)
    }


@pytest.mark.parametrize("page", PAGES)
def test_every_place_in_the_code_exists(page):
    for what, file, name, _ in rows(page)[0]:
        assert (PACKAGE / file).is_file(), what
        assert name in names_in(file), f"{what}: {file} has no {name}"


@pytest.mark.parametrize("page", PAGES)
def test_every_command_exists_and_its_values_are_allowed(page):
    make = (ROOT / "Makefile").read_text(encoding="utf-8")
    for what, shown in [(row[0], row[3]) for row in rows(page)[0]] + rows(page)[1]:
        commands = re.findall(r"`([^`]+)`", shown)
        pages = re.findall(r"\]\(([^)#\s]+)", shown)
        assert commands or pages, what
        assert all((ROOT / "docs" / each).is_file() for each in pages), what
        for command in commands:
            program, *words = shlex.split(command)
            if program == "make":
                assert re.search(rf"^{words[0]}:", make, re.MULTILINE), what
            elif program == "topicloom":
                check(words, what)
            else:
                assert callable(getattr(tl, re.fullmatch(r"tl\.(\w+)\(.*\)", command)[1])), what


def check(words, what):
    """Parse the words as the command line does, and check the values that it would check later."""
    command = load_command(words[0])
    with click.Context(command, resilient_parsing=False) as context:
        parsed, rest, _ = command.make_parser(context).parse_args(list(words[1:]))
    assert not rest, what
    settings = dict(each.split("=") for each in parsed.get("settings") or [])
    kind = model_class(parsed.get("model") or "loom")
    if "recipe" in parsed:
        published_settings(kind, parsed["recipe"])
    if settings:
        check_settings(kind(**from_text(kind, {name: read(value) for name, value in settings.items()})))
    for name in filter(None, str(parsed.get("measures") or "").split(",")):
        assert name in CATALOGUE, what
    for name in filter(None, str(parsed.get("kind") or "").split(",")):
        assert name in KINDS, what
    for name in filter(None, str(parsed.get("models") or "").split(",")):
        model_class(name)


def read(value):
    from topicloom.cli.options import read_setting

    return read_setting(f"name={value}")[1]


def test_both_languages_have_the_same_places():
    first, second = ([row[1:3] for row in rows(page)[0]] for page in PAGES)
    assert first == second
