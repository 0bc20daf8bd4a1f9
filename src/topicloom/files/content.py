"""JSON files, and text files with one entry on each line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..errors import InputError
from .writing import atomic_file


def write_json(path: Path, value: Any) -> None:
    r"""Write `value` as readable JSON. A surrogate without its partner is written as an escape, such as \ud800.

    Raises:
        ValueError: a number is NaN or infinite, which JSON cannot express.
    """
    with atomic_file(path) as temporary:
        text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
        temporary.write_bytes(text.encode("utf-8", "backslashreplace"))  # which is JSON's own way of escaping


def read_json(path: Path, error: type[InputError] = InputError) -> Any:
    """Read JSON.

    Args:
        path: the file.
        error: what is raised.

    Raises:
        InputError: the file does not exist, or it is not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise error(f"{path} does not exist; check the path") from None
    except (ValueError, RecursionError) as fault:  # numbers with too many digits, and nesting too deep, included
        raise error(f"{path} is not readable JSON: {fault}") from None


def write_lines(path: Path, lines: list[str]) -> None:
    """Write each string as one line of UTF-8.

    Raises:
        InputError: a string contains a line break, or a surrogate that UTF-8 cannot express.
    """
    for number, line in enumerate(lines):
        if "\n" in line or "\r" in line:
            raise InputError(f"entry {number} of {path} contains a line break: {line!r}; remove it")
        if any("\ud800" <= character <= "\udfff" for character in line):
            raise InputError(f"entry {number} of {path} is not valid Unicode: {line!r}; correct or remove it")
    with atomic_file(path) as temporary:
        temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


def read_lines(path: Path) -> list[str]:
    """Read what `write_lines` wrote. Only line feeds end a line."""
    text = path.read_text(encoding="utf-8")
    return text.removesuffix("\n").split("\n") if text else []
