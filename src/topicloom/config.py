"""Configuration files for training, in YAML or TOML."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

from .errors import InputError


def read_config(path: Path, example: str = "model: gsm") -> dict[str, Any]:
    """Return the names and values in a .toml, .yaml or .yml file.

    YAML is read by the core schema of version 1.2, in which 1e-3 is a number and `no` is a string (Norwegian). An alias
    may stand for a single value only.

    Args:
        path: the file.
        example: what the file may contain, for the message about a file without names.

    Raises:
        InputError: the file does not exist or cannot be read; the message names the line and the column.
    """
    suffix = path.suffix.lower()
    if suffix not in (".toml", ".yaml", ".yml"):
        raise InputError(f"{path} ends in neither .toml nor .yaml; give a name that does")
    if not path.is_file():
        raise InputError(f"{path} does not exist; check the path")
    try:
        text = path.read_bytes().decode("utf-8-sig")
        found = tomllib.loads(text) if suffix == ".toml" else yaml.load(text, _Loader)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}, byte {error.start} is not UTF-8; save the file as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is not valid TOML: {error}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise InputError(f"{path}{where} is not valid YAML: {error.problem:.200}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # forbidden characters, huge numbers, deep nesting
        kind = "TOML" if suffix == ".toml" else "YAML"
        raise InputError(f"{path} is not valid {kind}: {str(error).splitlines()[0]}") from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise InputError(f"{path} should contain names with values, such as {example}")
    return {str(name): value for name, value in found.items()}


class _Loader(yaml.SafeLoader):
    """A loader for YAML 1.2 that refuses a name which occurs twice.

    PyYAML itself reads YAML 1.1, where 1e-3 is a string, `no` is False, and the last of two equal names wins.
    """

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  # the name is PyYAML's; it is filled below

    def compose_node(self, parent: Any, index: Any) -> Any:
        is_alias = self.check_event(yaml.events.AliasEvent)
        node = super().compose_node(parent, index)
        if is_alias and node is not None and not isinstance(node, yaml.nodes.ScalarNode):
            # Aliases of lists could stand for billions of values, and for a list inside itself.
            problem = "an alias may stand for a single value only; write the list or the names out"
            raise yaml.composer.ComposerError(None, None, problem, node.start_mark)
        return node

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for name, _ in node.value:
            if isinstance(name.value, str) and name.value in seen:
                problem = f"the name {name.value!r:.60} occurs a second time"
                raise yaml.constructor.ConstructorError(None, None, problem, name.start_mark)
            seen.add(name.value if isinstance(name.value, str) else None)
        return super().construct_mapping(node, deep)


for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?(0|[1-9][0-9]*)", list("-+0123456789")),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", list("-+.0123456789")),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), _first)
