"""Calls of the command line, and two texts for them."""

from __future__ import annotations

import csv
from typing import Any

from typer.testing import CliRunner

from topicloom.cli import app

PETS = "the cat and the dog see a vet , animals and pets eat fish"
MONEY = "the stock and the bond market move , banks and money earn interest"


def call(*arguments: Any, stdin: str | None = None) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin, catch_exceptions=False)


def refused(*arguments: Any, says: list[str], code: int = 2, stdin: str | None = None) -> None:
    """The call ends with this exit code and one line that has each of these words; no traceback."""
    result = call(*arguments, stdin=stdin)
    assert result.exit_code == code, result.output
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("topicloom: error: ")
    for word in says:
        assert word in last


def shown(*arguments: Any) -> str:
    """The call succeeds; return what it prints."""
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))
