"""The corpus that a command works on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InputError
from .options import Preparing, Reading

if TYPE_CHECKING:
    from ..corpus import Corpus


def need_order(measures: Iterable[str]) -> bool:
    from ..metrics import CATALOGUE

    return any("token order" in CATALOGUE[name].needs for name in measures)


def check_source(source: str, options: Reading) -> None:
    """Read the first document of a file, so that a wrong name or column is found before PyTorch is loaded."""
    from ..text import read

    if source != "-" and not (Path(source) / "corpus.json").is_file() and not is_model(source):
        reading = {field.name: getattr(options, field.name) for field in fields(Reading)}
        documents = read(source, **reading)
        next(documents, None)


def is_model(source: str) -> bool:
    """Whether a path is a run or a saved model."""
    return (Path(source) / "model" / "config.json").is_file() or (Path(source) / "model.safetensors").is_file()


def open_corpus(source: str, options: Preparing, progress: bool, keep_texts: bool = False) -> Corpus:
    from ..corpus import Corpus

    if is_model(source):
        raise InputError(f"{source} is a trained model; give the text, or show the model by topics or infer")
    if not (Path(source) / "corpus.json").is_file():
        return Corpus.from_file(source, **asdict(options), keep_texts=keep_texts, progress=progress)
    changed = [name for name in asdict(options) if getattr(options, name) != getattr(Preparing(), name)]
    if changed:
        options_of = {"n_jobs": "--jobs", "header": "--no-header", "quoting": "--no-quoting"}
        option = options_of.get(changed[0], "--" + changed[0].replace("_", "-"))
        raise InputError(f"{source} is a saved corpus, to which {option} does not apply; give it to prepare")
    return Corpus.load(source)
