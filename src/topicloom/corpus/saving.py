"""A corpus as a directory of arrays, texts and JSON, which can be memory-mapped.

corpus.json          sizes, the names of the fields, the filters and the tokenizer
vocabulary.txt       a word on each line
data.npy, indices.npy, indptr.npy      the counts as CSR
ids, labels, texts   NAME.utf8 and NAME.offsets.npy
times.npy, vectors.npy, covariate-0.npy, ...
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ..errors import InputError
from ..files import read_json, read_lines, write_json, write_lines
from ..text import tokenizer_from_settings
from ..text.storage import StoredTexts, damaged, load_array, write_texts
from .fields import Categories, Covariate, Fields, numbers

if TYPE_CHECKING:
    from .corpus import Corpus

FORMAT_VERSION = 1
_AT_ONCE = 1 << 24  # entries of a memory-mapped array that are checked at a time


def save_into(corpus: Corpus, folder: Path) -> None:
    """Write a corpus to a folder. Counts and texts that are there already, because it was built there, stay.

    Args:
        corpus: the corpus.
        folder: an existing folder.
    """
    fields = corpus.fields
    for name in ("data", "indices", "indptr"):
        if not (folder / f"{name}.npy").exists():
            np.save(folder / f"{name}.npy", getattr(corpus.counts, name))
    write_lines(folder / "vocabulary.txt", corpus.vocabulary)
    strings = {"ids": fields.ids, "labels": fields.labels, "texts": fields.texts}
    if fields.ids == numbers(corpus.n_docs):
        strings["ids"] = None
    for name, column in strings.items():
        if column is not None and not (folder / f"{name}.utf8").exists():
            write_texts(folder, name, column)
    arrays = {"times": None if fields.times is None else fields.times.astype(np.int64), "vectors": fields.vectors}
    for name, array in arrays.items():
        if array is not None:
            np.save(folder / f"{name}.npy", array)
    covariates = [
        _write_covariate(folder / f"covariate-{number}.npy", name, covariate)
        for number, (name, covariate) in enumerate(fields.covariates.items())
    ]
    about = {
        "format_version": FORMAT_VERSION,
        "n_docs": corpus.n_docs,
        "n_words": corpus.n_words,
        "fields": {name: column is not None for name, column in (strings | arrays).items()},
        "covariates": covariates,
        "settings": corpus.settings,
        "tokenizer": corpus.tokenizer.model_dump(mode="json"),
    }
    write_json(folder / "corpus.json", about)


def load_parts(folder: Path, mmap: bool) -> dict[str, Any]:
    """Return the arguments of the `Corpus` that was saved in `folder`.

    Args:
        folder: where the corpus was saved.
        mmap: whether arrays and texts stay on disk and are read when they are needed.

    Raises:
        InputError: the folder holds no corpus, one of a newer version, or a damaged one; the message names the file.
    """
    if not (folder / "corpus.json").is_file():
        raise InputError(f"{folder} is not a saved corpus (it has no corpus.json); check the path")
    about = read_json(folder / "corpus.json")
    if not isinstance(about, dict) or not isinstance(about.get("format_version"), int):
        raise damaged(folder / "corpus.json")
    if about["format_version"] > FORMAT_VERSION:
        raise InputError(f"{folder} was written by a newer topicloom; upgrade with pip install -U topicloom")
    if not _is_sound(about):
        raise damaged(folder / "corpus.json")
    n_docs, n_words = about["n_docs"], about["n_words"]
    try:
        words = read_lines(folder / "vocabulary.txt")
    except (OSError, UnicodeDecodeError):
        raise damaged(folder / "vocabulary.txt") from None
    if len(words) != n_words or len(set(words)) != n_words:
        raise damaged(folder / "vocabulary.txt")
    ids, labels, texts = (
        StoredTexts.load(folder, name, n_docs, mmap) if about["fields"].get(name) else None
        for name in ("ids", "labels", "texts")
    )
    times, vectors = (
        _column(folder / f"{name}.npy", n_docs, mmap, kind, n_axes) if about["fields"].get(name) else None
        for name, kind, n_axes in (("times", "i", 1), ("vectors", "f", 2))
    )
    fields = Fields(
        numbers(n_docs) if ids is None else list(ids),
        None if labels is None else list(labels),
        None if times is None else times.view("datetime64[us]"),
        texts,
        None,
        vectors,
        dict(_read_covariate(folder, number, each, n_docs, mmap) for number, each in enumerate(about["covariates"])),
    )
    return {
        "counts": _counts(folder, n_docs, n_words, mmap),
        "vocabulary": words,
        "fields": fields,
        "tokenizer": tokenizer_from_settings(about["tokenizer"]),
        "settings": about["settings"],
    }


def _is_sound(about: dict[str, Any]) -> bool:
    """Return whether the contents of corpus.json have the types that they should have."""
    kinds = {"n_docs": int, "n_words": int, "fields": dict, "covariates": list, "settings": dict, "tokenizer": dict}
    return all(isinstance(about.get(name), kind) for name, kind in kinds.items()) and all(
        isinstance(each, dict)
        and isinstance(each.get("name"), str)
        and (
            each.get("categories") is None
            or (isinstance(each["categories"], list) and all(isinstance(name, str) for name in each["categories"]))
        )
        for each in about["covariates"]
    )


def _counts(folder: Path, n_docs: int, n_words: int, mmap: bool) -> sparse.csr_array:
    """Read the counts. Each number is checked, because one that is out of range would crash compiled code."""
    data, indices, indptr = (load_array(folder / f"{name}.npy", mmap) for name in ("data", "indices", "indptr"))
    sound = {
        "indptr.npy": indptr.ndim == 1
        and indptr.dtype.kind == "i"
        and len(indptr) == n_docs + 1
        and indptr[0] == 0
        and bool((np.diff(indptr) >= 0).all()),
        "indices.npy": indices.ndim == 1
        and indices.dtype.kind == "i"
        and len(indices) == indptr[-1]
        and all(part.min() >= 0 and part.max() < n_words for part in _pieces(indices)),
        "data.npy": data.ndim == 1
        and data.dtype.kind == "f"
        and len(data) == indptr[-1]
        and all(part.min() > 0 and np.isfinite(part.max()) for part in _pieces(data)),
    }
    for name, is_sound in sound.items():
        if not is_sound:
            raise damaged(folder / name)
    return sparse.csr_array((data, indices, indptr), shape=(n_docs, n_words))


def _pieces(array: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    return [array[start : start + _AT_ONCE] for start in range(0, len(array), _AT_ONCE)]


def _column(path: Path, n_docs: int, mmap: bool, kind: str, n_axes: int = 1) -> npt.NDArray[Any]:
    """Read an array with a row for each document.

    Args:
        kind: the kind of its numbers, as NumPy's dtypes call it.
        n_axes: its number of axes.
    """
    column = load_array(path, mmap)
    if column.ndim != n_axes or len(column) != n_docs or column.dtype.kind != kind:
        raise damaged(path)
    return column


def _write_covariate(path: Path, name: str, covariate: Covariate) -> dict[str, Any]:
    """Write the numbers of a covariate; return its entry in corpus.json."""
    categorical = isinstance(covariate, Categories)
    np.save(path, covariate.codes if isinstance(covariate, Categories) else covariate)
    return {"name": name, "categories": list(covariate.names) if categorical else None}  # type: ignore[union-attr]


def _read_covariate(folder: Path, number: int, about: dict[str, Any], n_docs: int, mmap: bool) -> tuple[str, Covariate]:
    """Read a covariate; `about` is its entry in corpus.json."""
    path = folder / f"covariate-{number}.npy"
    names = about.get("categories")
    column = _column(path, n_docs, mmap, "f" if names is None else "i")
    if names is None:
        return about["name"], column
    if len(column) and not -1 <= column.min() <= column.max() < len(names):
        raise damaged(path)
    return about["name"], Categories(column, tuple(names))
