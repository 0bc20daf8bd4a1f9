"""Vectors of documents: files of NumPy that another program has made, and unit lengths."""

from __future__ import annotations

import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..corpus.fields import Vectors, document_vectors
from ..errors import InputError
from ..text.strings import pieces

_NAME = "vectors"  # of the array in an .npz file with several
# What NumPy raises for a damaged file; the header of an array is evaluated as a literal.
_FAULTS = (
    OSError, ValueError, EOFError, LookupError, SyntaxError, TypeError, OverflowError, MemoryError, RuntimeError,
    tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def read_document_vectors(path: str | Path) -> Vectors:
    """Read an .npy file, or an .npz file with one array or one that is called "vectors".

    Returns:
        (n_docs, E) float16 or float32; an .npy file of these types is memory-mapped.

    Raises:
        InputError: the file cannot be read, or has another shape, or a number that is not finite; the message names
            its row.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import numpy as np
        >>> from topicloom.embeddings import read_document_vectors
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.save(Path(folder, "vectors.npy"), np.ones((3, 2), np.float32))
        ...     read_document_vectors(Path(folder, "vectors.npy")).shape
        (3, 2)
    """
    file = Path(path)
    if file.suffix.lower() not in (".npy", ".npz"):
        raise InputError(f"{file} ends in neither .npy nor .npz; save the vectors with numpy.save")
    try:
        array = _array_of(file)
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{file} does not exist; check the path") from None
    except PermissionError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}; correct that, and try again") from None
    except _FAULTS:
        raise InputError(
            f"{file} cannot be read as an array of numbers; save the vectors with numpy.save, as one array of float32 "
            "with a row for each document"
        ) from None
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError(f"{file} has an array of shape {array.shape}; save one row of numbers for each document")
    if array.dtype.kind not in "fiu":
        raise InputError(f"{file} has an array of type {array.dtype}; save numbers")
    return document_vectors(array, lambda row: f"row {row} of {file}")


def _array_of(file: Path) -> Any:
    found = np.load(file, mmap_mode="r", allow_pickle=False)
    if isinstance(found, np.ndarray):
        return found
    with found:
        names = found.files
        if len(names) > 1 and _NAME not in names:
            raise InputError(f"{file} has the arrays {', '.join(names[:5])}; name the one to read {_NAME!r}")
        return found[_NAME if _NAME in names else names[0]] if names else np.empty(0)


def unit_vectors(vectors: npt.NDArray[Any], dtype: type[np.floating[Any]] = np.float32) -> npt.NDArray[Any]:
    """Return vectors (D, E) with length 1 in a type of floating point; zero vectors stay zero."""
    units, first = np.empty(vectors.shape, dtype), 0
    for part in pieces(vectors):
        rows = np.asarray(part, np.float64)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        units[first : first + len(part)] = rows / np.where(lengths > 0, lengths, 1)
        first += len(part)
    return units
