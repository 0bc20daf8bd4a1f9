"""A corpus as a directory of arrays, texts and JSON, which can be memory-mapped.

corpus.json          sizes, the names of the fields, the filters, the tokenizer, and the checksums of all files
vocabulary.txt       a word on each line
data.npy, indices.npy, indptr.npy      the counts as CSR
ids, labels, texts   NAME.utf8 and NAME.offsets.npy
times.npy, vectors.npy, covariate-0.npy, ...
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ..errors import CorpusFileError, InputError
from ..files import (
    check_digests,
    plain_file,
    put_back,
    read_lines,
    read_manifest,
    read_whole,
    write_lines,
    write_manifest,
)
from ..text import AnyTokenizer, TextEncoder, tokenizer_from_settings
from ..text.counting import Counts
from ..text.strings import StoredTexts, damaged, load_array, pieces, write_array, write_texts
from .fields import Categories, Covariate, Fields, compact, row_numbers

MANIFEST, VOCABULARY = "corpus.json", "vocabulary.txt"
FORMAT_VERSION = 2  # the first has no checksums
_CHECKED_BYTES = 1 << 26  # of a file that is checked against its checksum without being asked for


class _Contents(Protocol):
    """What is saved of a corpus."""

    @property
    def counts(self) -> Counts: ...
    @property
    def vocabulary(self) -> list[str]: ...
    @property
    def fields(self) -> Fields: ...
    @property
    def tokenizer(self) -> AnyTokenizer: ...
    @property
    def settings(self) -> dict[str, Any]: ...


def save_into(corpus: _Contents, folder: Path, further: Mapping[str, Any] | None = None) -> None:
    """Write a corpus to a folder. Counts and texts that are there already, because it was built there, stay.

    The checksums of all files in the folder are noted, also of those that others wrote there.

    Args:
        corpus: the corpus.
        folder: an existing folder.
        further: further entries of corpus.json.
    """
    fields, (n_docs, n_words) = corpus.fields, corpus.counts.shape
    for name in ("data", "indices", "indptr"):
        if not (folder / f"{name}.npy").exists():
            write_array(folder / f"{name}.npy", getattr(corpus.counts, name))
    write_lines(folder / VOCABULARY, corpus.vocabulary)
    strings = {"ids": fields.ids, "labels": fields.labels, "texts": fields.texts}
    if fields.ids == row_numbers(n_docs):
        strings["ids"] = None
    for name, column in strings.items():
        if column is not None and not (folder / f"{name}.utf8").exists():
            write_texts(folder, name, column)
    arrays = {"times": None if fields.times is None else fields.times.astype(np.int64), "vectors": fields.vectors}
    for name, array in arrays.items():
        if array is not None and not (folder / f"{name}.npy").exists():
            write_array(folder / f"{name}.npy", array)
    covariates = [
        _write_covariate(folder / f"covariate-{number}.npy", name, covariate)
        for number, (name, covariate) in enumerate(fields.covariates.items())
    ]
    about = {
        "format_version": FORMAT_VERSION,
        "n_docs": n_docs,
        "n_words": n_words,
        "fields": {name: column is not None for name, column in (strings | arrays).items()},
        "covariates": covariates,
        **({} if fields.encoder is None else {"encoder": fields.encoder.as_json()}),
        "settings": corpus.settings,
        "tokenizer": corpus.tokenizer.model_dump(mode="json"),
    }
    write_manifest(folder / MANIFEST, {**about, **(further or {})}, sorted(entry.name for entry in folder.iterdir()))


def remove_texts(folder: Path) -> None:
    """Remove the texts from a folder in which a corpus is built."""
    for name in ("texts.utf8", "texts.offsets.npy"):
        (folder / name).unlink(missing_ok=True)


def load_parts(folder: Path, mmap: bool, verify: bool | None = None) -> dict[str, Any]:
    """Return the arguments of the `Corpus` that was saved in `folder`.

    Args:
        folder: where the corpus was saved.
        mmap: whether arrays and texts stay on disk and are read when they are needed.
        verify: as for `Corpus.load`.

    Raises:
        CorpusFileError: the folder holds no corpus, one of a newer format, or a damaged one; the message names the
            file.
    """
    return read_whole([folder / MANIFEST], lambda: _load_parts(folder, mmap, verify))


def _load_parts(folder: Path, mmap: bool, verify: bool | None) -> dict[str, Any]:
    put_back(folder)
    if not (folder / MANIFEST).is_file():
        raise CorpusFileError(f"{folder} is not a saved corpus (it has no {MANIFEST}); check the path")
    about = read_manifest(folder / MANIFEST, CorpusFileError, FORMAT_VERSION, sealed=2)
    if not _is_sound(about):
        raise damaged(folder / MANIFEST)
    if verify is not False:
        check_digests(folder, about["sha256"], CorpusFileError, None if verify else _CHECKED_BYTES)
    n_docs, n_words = about["n_docs"], about["n_words"]
    path = plain_file(folder, VOCABULARY, CorpusFileError)
    try:
        words = read_lines(path)
    except UnicodeDecodeError:
        raise damaged(path) from None
    if len(words) != n_words or len(set(words)) != n_words:
        raise damaged(path)
    ids, labels, texts = (
        StoredTexts.load(folder, name, n_docs, mmap) if about["fields"].get(name) else None
        for name in ("ids", "labels", "texts")
    )
    times, vectors = (
        _column(folder / f"{name}.npy", n_docs, mmap, kind, n_axes) if about["fields"].get(name) else None
        for name, kind, n_axes in (("times", "i", 1), ("vectors", "f", 2))
    )
    fields = Fields(
        row_numbers(n_docs) if ids is None else compact(ids),
        None if labels is None else compact(labels),
        None if times is None else times.view("datetime64[us]"),
        texts,
        None,
        vectors,
        dict(_read_covariate(folder, number, each, n_docs, mmap) for number, each in enumerate(about["covariates"])),
        _encoder(folder, about.get("encoder")),
    )
    return {
        "counts": _counts(folder, n_docs, n_words, mmap),
        "vocabulary": words,
        "fields": fields,
        "tokenizer": _tokenizer(folder, about["tokenizer"]),
        "settings": about["settings"],
    }


def _tokenizer(folder: Path, settings: dict[str, Any]) -> AnyTokenizer:
    try:
        return tokenizer_from_settings(settings)
    except InputError as error:
        raise CorpusFileError.of(folder / MANIFEST, f"is damaged: {error}") from None


def _encoder(folder: Path, about: Any) -> TextEncoder | None:
    try:
        return None if about is None else TextEncoder.from_json(about)
    except (LookupError, TypeError, ValueError):
        raise damaged(folder / MANIFEST) from None


def _is_sound(about: dict[str, Any]) -> bool:
    """Return whether the contents of corpus.json have the types that they should have."""
    kinds = {
        "format_version": int,
        "n_docs": int,
        "n_words": int,
        "fields": dict,
        "covariates": list,
        "settings": dict,
        "tokenizer": dict,
    }
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
    shaped = indptr.ndim == 1 and indptr.dtype.kind == "i" and len(indptr) == n_docs + 1 > 0
    if not shaped or indptr[0] != 0 or (np.diff(indptr) < 0).any():
        raise damaged(folder / "indptr.npy")
    sound = {
        "indices.npy": indices.ndim == 1
        and indices.dtype.kind == "i"
        and len(indices) == indptr[-1]
        and all(part.min() >= 0 and part.max() < n_words for part in pieces(indices)),
        "data.npy": data.ndim == 1
        and data.dtype.kind == "f"
        and len(data) == indptr[-1]
        and all(part.min() > 0 and np.isfinite(part.max()) for part in pieces(data)),
    }
    for name, is_sound in sound.items():
        if not is_sound:
            raise damaged(folder / name)
    return sparse.csr_array((data, indices, indptr), shape=(n_docs, n_words))


def _column(path: Path, n_docs: int, mmap: bool, kind: str, n_axes: int = 1) -> npt.NDArray[Any]:
    """Read an array with a row for each document.

    Args:
        kind: the kind of its numbers, as NumPy's dtypes call it.
        n_axes: its number of axes.
    """
    column = load_array(path, mmap)
    if column.ndim != n_axes or len(column) != n_docs or column.dtype.kind != kind:
        raise damaged(path)
    if n_axes == 2 and not all(np.isfinite(part).all() for part in pieces(column)):
        raise CorpusFileError.of(path, "is damaged: it contains a number that is not finite")
    return column


def _write_covariate(path: Path, name: str, covariate: Covariate) -> dict[str, Any]:
    """Write the numbers of a covariate; return its entry in corpus.json."""
    if isinstance(covariate, Categories):
        write_array(path, covariate.codes)
        return {"name": name, "categories": list(covariate.names)}
    write_array(path, covariate)
    return {"name": name, "categories": None}


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
