"""What is in files: JSON, lists of lines, YAML and TOML, with checksums by which damage is noticed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard, TypeVar

from ..errors import InputError, SavedFileError, SettingError
from .writing import atomic_file

# Paths as arguments.


def as_path(value: Any, name: str) -> Path:
    """Return an argument as a path.

    Args:
        value: what was given.
        name: the name of the argument, for the message.

    Raises:
        SettingError: the value is not a path.
    """
    if not isinstance(value, str | os.PathLike):
        raise SettingError(f"`{name}` should be a path, as a text or a Path; it is {value!r:.60}")
    return Path(value)


# What topicloom has written to a directory. Only the names of files are looked at.


def located(source: str | Path | Sequence[str | Path]) -> str | list[str]:
    """Return the absolute paths of a source of documents: a file, or several."""
    if isinstance(source, str | Path):
        return str(Path(source).resolve())
    return [str(Path(each).resolve()) for each in source]


def holds_corpus(directory: str | Path | Sequence[str | Path]) -> TypeGuard[str | Path]:
    """Return whether a path is that of a corpus that `Corpus.save` or the command `prepare` wrote. Several are not."""
    return isinstance(directory, str | Path) and (Path(directory) / "corpus.json").is_file()


def holds_model(directory: str | Path) -> bool:
    """Return whether a directory is a saved model, or a run, which has one in its folder model."""
    folder = Path(directory)
    return (folder / "model" / "config.json").is_file() or (folder / "model.safetensors").is_file()


def holds_stopped_run(directory: str | Path) -> bool:
    """Return whether a directory has checkpoints of a run that is not complete: it was stopped, or is under way."""
    return any((Path(directory) / "checkpoints").glob("checkpoint-*"))


# JSON and lists of lines.


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


# Checksums, by which damage is noticed when a file is read.
#
# A directory that topicloom wrote has a manifest: a JSON file such as config.json. Its entry "sha256" has the checksum
# of each other file, and of the manifest's own content.

VERSION, DIGESTS = "format_version", "sha256"


def file_digest(path: Path) -> str:
    """Return the SHA-256 checksum of a file as 64 hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def content_digest(content: Any) -> str:
    """Return the SHA-256 checksum of a JSON value, which does not depend on its layout or on the order of names."""
    as_read = json.loads(json.dumps(content))  # in which all names are strings
    text = json.dumps(as_read, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def write_manifest(path: Path, content: Mapping[str, Any], files: Iterable[str] = ()) -> None:
    """Write JSON with checksums of its own content and of files beside it.

    Args:
        path: the JSON file.
        content: a dictionary of JSON values.
        files: the names of the other files.

    Raises:
        ValueError: a number is NaN or infinite, which JSON cannot express.
    """
    digests = {name: file_digest(path.parent / name) for name in files}
    whole = {**content, DIGESTS: digests}
    digests[path.name] = content_digest(whole)
    write_json(path, whole)


def read_manifest(path: Path, error: type[SavedFileError], newest: int, sealed: int) -> dict[str, Any]:
    """Read what `write_manifest` wrote, and check its own checksum.

    Args:
        path: the JSON file.
        error: what is raised.
        newest: the newest format version that can be read.
        sealed: the first format version with a checksum of the manifest. In older ones there may be none.

    Returns:
        the content, in which the entry "sha256" has the checksums of the other files.

    Raises:
        SavedFileError: the file is missing or damaged, or its format is newer.
    """
    content = read_json(plain_file(path.parent, path.name, error), error)
    if not isinstance(content, dict):
        raise error.of(path, "is damaged: it is not a JSON object")
    version, digests = content.get(VERSION, 0), content.get(DIGESTS, {})
    if not isinstance(version, int):
        raise error.of(path, f"is damaged: {VERSION!r} is {version!r:.60}")
    if version > newest:
        raise error.newer(path)
    if not isinstance(digests, dict) or not all(isinstance(digest, str) for digest in digests.values()):
        raise error.of(path, f"is damaged: {DIGESTS!r} is {digests!r:.60}")
    if path.name not in digests and version < sealed:
        return content | {DIGESTS: digests}
    others = {name: digest for name, digest in digests.items() if name != path.name}
    if digests.get(path.name) != content_digest(content | {DIGESTS: others}):
        raise error.of(path, "is damaged: its content has changed since it was written")
    return content | {DIGESTS: others}


def check_digests(
    folder: Path, digests: Mapping[str, str], error: type[SavedFileError], most_bytes: int | None = None
) -> None:
    """Check files of a folder against the checksums that were noted when they were written.

    Args:
        folder: the folder.
        digests: the SHA-256 checksum of each file, by the file's name.
        error: what is raised.
        most_bytes: a larger file is not read; that it is there is checked all the same.

    Raises:
        SavedFileError: a file is missing, is not a file of this folder, or has changed since it was written.
    """
    for name, digest in digests.items():
        path = plain_file(folder, name, error)
        if most_bytes is None or path.stat().st_size <= most_bytes:
            try:
                found = file_digest(path)
            except OSError as fault:
                raise error.unreadable(path, fault) from None
            if found != digest:
                raise error.of(path, "is damaged: its content has changed since it was written")


def plain_file(folder: Path, name: str, error: type[SavedFileError]) -> Path:
    """Return the path of a regular file in a folder. A link to a file elsewhere, or a path that leads there, is none.

    Raises:
        SavedFileError: there is no such file.
    """
    path = folder / name
    if name in ("", ".", "..") or any(mark in name for mark in "/\\:\0"):
        raise error(f"{folder} names {name!r} as one of its files, which is not in this directory; do not trust it")
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise error.of(path, "is missing") from None
    except OSError as fault:
        raise error.unreadable(path, fault) from None
    if not stat.S_ISREG(mode):
        raise error.of(path, "is not a file")
    if path.is_symlink() and os.path.dirname(os.path.realpath(path)) != os.path.realpath(folder):
        raise error(f"{path} is a link to a file elsewhere, which is not read; put the file itself there")
    return path


# Directories that another process may replace while they are read, such as a model that is trained every night.

T = TypeVar("T")

_MAX_RETRIES = 5


def read_whole(manifests: Iterable[Path], read: Callable[[], T]) -> T:
    """Return what `read` returns, from one version of the files.

    A directory is replaced as a whole, so its manifest is another file afterwards. Where it was replaced while it was
    read, an error says nothing about the files, and it is read again.

    Args:
        manifests: the manifests in what is read, of which some may not exist.
        read: reads everything.
    """
    paths = list(manifests)
    for _ in range(_MAX_RETRIES):
        before = [file_identity(path) for path in paths]
        try:
            found = read()
        except Exception:
            if [file_identity(path) for path in paths] == before:
                raise
            continue
        if [file_identity(path) for path in paths] == before:
            return found
    return read()


FileIdentity: TypeAlias = tuple[int, int, int]


def file_identity(path: Path) -> FileIdentity | None:
    """Return what differs once a file was replaced or written again; None if there is none."""
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_dev, about.st_ino, about.st_mtime_ns


# Configuration files in YAML or TOML. Neither parser is imported before it is used.


def read_yaml_or_toml(path: Path, example: str = "model: gsm") -> dict[str, Any]:
    """Return the names and values in a .toml, .yaml or .yml file.

    YAML is read by the core schema of version 1.2, in which 1e-3 is a number and `no` is a string (Norwegian); so is a
    whole number with zeros before it, such as the code 007. An alias may stand for a single value only.

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
    except UnicodeDecodeError as error:
        raise InputError(f"{path}, byte {error.start} is not UTF-8; save the file as UTF-8") from None
    found = _parse_toml(text, path) if suffix == ".toml" else _parse_yaml(text, path)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise InputError(f"{path} should contain names with values, such as {example}")
    return {str(name): value for name, value in found.items()}


def _parse_toml(text: str, path: Path) -> Any:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path} is not valid TOML: {error}") from None
    except (ValueError, RecursionError) as error:  # huge numbers, deep nesting
        raise InputError(f"{path} is not valid TOML: {str(error).splitlines()[0]}") from None


def _parse_yaml(text: str, path: Path) -> Any:
    import yaml

    try:
        return yaml.load(text, _yaml_loader())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise InputError(f"{path}{where} is not valid YAML: {error.problem:.200}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # forbidden characters, huge numbers, deep nesting
        raise InputError(f"{path} is not valid YAML: {str(error).splitlines()[0]}") from None


@cache
def _yaml_loader() -> Any:
    """Return a loader for YAML 1.2 that refuses a name which occurs twice.

    PyYAML itself reads YAML 1.1, where 1e-3 is a string, `no` is False, and the last of two equal names wins.
    """
    import yaml

    class Loader(yaml.SafeLoader):
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

    for tag, pattern, first in (
        ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
        ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
        ("int", r"[-+]?(0|[1-9][0-9]*)", list("-+0123456789")),
        ("float", r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?", list("-+.0123456789")),
    ):
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), first)
    return Loader
