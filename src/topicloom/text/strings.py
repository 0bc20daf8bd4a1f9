"""Strings and arrays: the normal form of words, and many strings or numbers in memory and on disk."""

from __future__ import annotations

import io
import math
import mmap
import re
import unicodedata
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from pathlib import Path
from tokenize import TokenError
from types import TracebackType
from typing import IO, Any, overload

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ..errors import CorpusFileError, InputError
from ..files import plain_file

# Characters: the normal form of words, and the replacement of what UTF-8 cannot represent.


# Letters of Korean that stand alone, as in ㅋㅋ. NFKC makes parts of syllables of them, which fonts draw differently,
# and joins ㅋㅏ to the syllable 카. Those of half the width are the same letters.
_KOREAN_LETTERS = re.compile("([ㄱ-ㅣㅥ-ㆎ]+)")
_HALF_WIDTH = re.compile("[ﾡ-ﾾￂ-ￇￊ-ￏￒ-ￗￚ-ￜ]")


def normalise(text: str) -> str:
    """Apply NFKC except to single letters of Korean, unify apostrophes and remove soft hyphens."""
    if text.isascii():
        return text
    if _HALF_WIDTH.search(text):
        text = _HALF_WIDTH.sub(lambda letter: chr(int(unicodedata.decomposition(letter[0]).split()[1], 16)), text)
    if _KOREAN_LETTERS.search(text):
        pieces = _KOREAN_LETTERS.split(text)  # the letters are between the other pieces
        pieces[::2] = [unicodedata.normalize("NFKC", piece) for piece in pieces[::2]]
        text = "".join(pieces)
    else:
        text = unicodedata.normalize("NFKC", text)
    # NFKC splits the vowel am in Thai and Lao, which dictionaries do not.
    text = text.replace("\u0e4d\u0e32", "\u0e33").replace("\u0ecd\u0eb2", "\u0eb3")
    return text.replace("’", "'").replace("‘", "'").replace("ʼ", "'").replace("\xad", "")


def replace_surrogates(text: str) -> str:
    r"""Replace each lone surrogate by U+FFFD, so that the text can be written as UTF-8.

    Lone surrogates come from JSON escapes such as "\ud800" and from file names that are not UTF-8. The two halves of a
    surrogate pair are joined to the character that they stand for.
    """
    if is_utf8(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def plain_string(value: Any) -> str:
    """Return a value as a string, and a whole number without ".0": class 2 of svmlight is read as the number 2.0.

    >>> plain_string(2.0), plain_string(2.5), plain_string("2.0")
    ('2', '2.5', '2.0')
    """
    is_float = isinstance(value, float | np.floating)
    return str(int(value)) if is_float and abs(value) < _EXACT and value == int(value) else str(value)


_EXACT = 1e15  # str() writes larger numbers with an exponent


def is_utf8(text: str) -> bool:
    """Whether a text can be written as UTF-8, which is true unless it contains a surrogate."""
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def require_utf8(text: str, what: str) -> str:
    r"""Return a text in which the halves of surrogate pairs are joined, so that it can be written as UTF-8.

    Args:
        text: the text.
        what: what the text is, for the message.

    Raises:
        InputError: the text contains a lone surrogate.

    Examples:
        >>> from topicloom.text.strings import require_utf8
        >>> require_utf8("\ud83d\ude00" + "!", "the title") == "😀!"
        True
    """
    if is_utf8(text):
        return text
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError as error:
        half = error.object[error.start : error.start + 2].decode("utf-16-le", "surrogatepass")
        raise InputError(
            f"{what} contains {half!a}, a lone surrogate, which is half a character and cannot be written to a file; "
            "correct or remove it"
        ) from None


_MOST_DIGITS = 18  # of a number of a row


class Strings(Sequence[str]):
    """A sequence of strings that equals any list, tuple or other sequence of the same strings."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Strings | list | tuple):
            return NotImplemented
        return len(self) == len(other) and all(ours == theirs for ours, theirs in zip(self, other, strict=True))


class RowNumbers(Strings):
    """The numbers of rows as strings, such as "0", "1", ..., which are made when they are read.

    Args:
        rows: the numbers.
    """

    def __init__(self, rows: range | npt.NDArray[np.intp]) -> None:
        self._rows = rows

    def take(self, rows: npt.NDArray[np.intp]) -> RowNumbers:
        """Select some of the strings."""
        return RowNumbers(np.asarray(self._rows)[rows])

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[str]:
        return map(str, map(int, self._rows))

    def __contains__(self, value: object) -> bool:
        """Return whether a string is among these, without making all of them."""
        if not isinstance(value, str) or not value.isdecimal() or len(value) > _MOST_DIGITS:
            return False
        return str(int(value)) == value and int(value) in self._rows

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> RowNumbers: ...
    def __getitem__(self, index: int | slice) -> str | RowNumbers:
        return RowNumbers(self._rows[index]) if isinstance(index, slice) else str(int(self._rows[index]))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, RowNumbers):
            return bool(np.array_equal(self._rows, other._rows))
        return super().__eq__(other)

    def __repr__(self) -> str:
        return f"RowNumbers({len(self):,} strings)"


# Memory-mapped arrays, whose pages count as memory of the process until they are released.

_AT_ONCE = 1 << 20  # numbers of a piece


def release(*arrays: npt.NDArray[Any]) -> None:
    """Give back the memory of arrays that are mapped from files for reading. They are read again when they are used.

    Other arrays, and systems that know no such advice, are left alone.
    """
    for each in arrays:
        mapped = _mapping_of(each)
        if mapped is not None and hasattr(mapped, "madvise"):
            mapped.madvise(mmap.MADV_DONTNEED)


def _mapping_of(array: npt.NDArray[Any]) -> mmap.mmap | None:
    """Return the mapped file that an array is a part of, if it is mapped for reading alone."""
    base: Any = array
    while isinstance(base, np.ndarray):
        if base.flags.writeable:
            return None
        base = base.base
    return base if isinstance(base, mmap.mmap) else None


def asked_rows(rows: Any) -> Any:
    """Return the rows in the brackets after a corpus, for which scikit-learn writes [rows, ...].

    Raises:
        IndexError: there is another second index, such as that of a word.
    """
    if not isinstance(rows, tuple):
        return rows
    if len(rows) == 2 and (rows[1] is Ellipsis or rows[1] == slice(None)):
        return rows[0]
    raise IndexError(
        "a corpus is indexed by its documents alone; give a list for several, such as corpus[[1, 2]], and select words "
        "with `over`"
    )


def rows_of(counts: sparse.csr_array, rows: npt.NDArray[np.intp]) -> sparse.csr_array:
    """Return some rows of counts. Consecutive rows of memory-mapped counts stay on disk."""
    if len(rows) == 0 or (np.diff(rows) != 1).any() or _mapping_of(counts.indices) is None:
        return counts[rows]
    indptr = counts.indptr[rows[0] : rows[-1] + 2]
    part = slice(indptr[0], indptr[-1])
    made = sparse.csr_array((len(rows), counts.shape[1]), dtype=counts.dtype)
    # The constructor would copy what is a small part of an array.
    made.data, made.indices, made.indptr = counts.data[part], counts.indices[part], indptr - indptr[0]
    return made


def pieces(array: npt.NDArray[Any]) -> Iterator[npt.NDArray[Any]]:
    """Yield an array in pieces of a million numbers or fewer, and release what has been read of it."""
    rows = max(1, _AT_ONCE // max(1, math.prod(array.shape[1:])))
    for start in range(0, len(array), rows):
        yield array[start : start + rows]
        release(array)


def unmasked(given: Any) -> Any:
    """Return NaN in place of the numbers that a mask hides. Without the mask, NumPy would show what is behind it."""
    if not isinstance(given, np.ma.MaskedArray) or not given.mask.any():
        return given
    return np.where(given.mask, np.nan, given.data)


def numeric_array(given: Any) -> npt.NDArray[Any]:
    """Return numbers as an array of their own type, or of float64 if this is no type of numbers.

    They may be a tensor, also on a GPU, with a gradient or of bfloat16; or a sequence or a column of arrays or tensors.
    What a mask hides is NaN.

    Raises:
        TypeError, ValueError, OverflowError, RuntimeError: they are no numbers, or their rows differ in length.
    """
    if hasattr(given, "detach"):
        tensor = given.detach().cpu()
        try:
            found: npt.NDArray[Any] = tensor.numpy()
        except TypeError:  # NumPy has no bfloat16
            found = tensor.float().numpy()
        return found
    if isinstance(given, list | tuple) and any(hasattr(each, "detach") for each in given):
        given = [numeric_array(each) for each in given]
    found = np.asarray(unmasked(given))
    if found.dtype.kind == "O" and found.ndim == 1:  # such as a column whose cells are arrays
        found = np.array([numeric_array(each) for each in found])
    if found.dtype.kind in "cmM" or (found.dtype.kind == "O" and found.ndim == 0):
        raise TypeError(f"{type(given).__name__} of {found.dtype} is no array of real numbers")
    return found if found.dtype.kind in "biuf" else np.asarray(found, np.float64)


# Many strings in one UTF-8 file. The offsets at which they begin let each be read from disk alone.


class StoredTexts(Strings):
    """A sequence of strings that are decoded on access.

    Args:
        blob: the strings in UTF-8, of shape (n_bytes,) and type uint8.
        starts: the byte at which each string begins, of shape (n,).
        ends: the byte after the last one of each string, of shape (n,).
    """

    def __init__(self, blob: npt.NDArray[np.uint8], starts: npt.NDArray[Any], ends: npt.NDArray[Any]) -> None:
        self._blob = blob
        self._starts = starts
        self._ends = ends

    @classmethod
    def load(cls, folder: Path, name: str, count: int, mmap: bool = True) -> StoredTexts:
        """Open the files that a TextWriter of this name wrote.

        Args:
            folder: the folder of the files.
            name: the files' name.
            count: the number of strings that are expected.
            mmap: leave the strings on disk.

        Raises:
            CorpusFileError: a file is missing or damaged, or the number of strings is not `count`.
        """
        path = plain_file(folder, f"{name}.utf8", CorpusFileError)
        offsets = load_array(folder / f"{name}.offsets.npy", mmap)
        rising = offsets.ndim == 1 and offsets.dtype.kind == "i" and bool((np.diff(offsets) >= 0).all())
        if not rising or len(offsets) != count + 1 or offsets[0] != 0:
            raise damaged(folder / f"{name}.offsets.npy")
        if path.stat().st_size != offsets[-1]:
            raise damaged(path)
        # An empty file cannot be mapped.
        blob = np.memmap(path, np.uint8, "r") if mmap and offsets[-1] > 0 else np.fromfile(path, np.uint8)
        return cls(blob, offsets[:-1], offsets[1:])

    def take(self, rows: npt.NDArray[np.intp]) -> StoredTexts:
        """Select some of the strings without reading them."""
        return StoredTexts(self._blob, self._starts[rows], self._ends[rows])

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> StoredTexts: ...
    def __getitem__(self, index: int | slice) -> str | StoredTexts:
        if isinstance(index, slice):
            return StoredTexts(self._blob, self._starts[index], self._ends[index])
        start, end = self._starts.item(index), self._ends.item(index)
        plain = self._blob.view(np.ndarray)  # slices of a memmap are memmaps, which take longer to make
        return plain[start:end].tobytes().decode("utf-8", "replace")

    def __repr__(self) -> str:
        return f"StoredTexts({len(self):,} strings, {self._blob.nbytes:,} bytes)"


class TextWriter:
    """Collect strings as UTF-8, in the files that StoredTexts.load opens, or in memory if no folder is given."""

    def __init__(self, folder: Path | None = None, name: str = "texts") -> None:
        self._folder, self._name = folder, name
        self._file: IO[bytes] = io.BytesIO() if folder is None else (folder / f"{name}.utf8").open("wb")
        self._offsets = array("q", [0])

    def __enter__(self) -> TextWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()

    def append(self, text: str) -> None:
        """Add one string; lone surrogates become U+FFFD."""
        self.extend([text])

    def extend(self, texts: Sequence[str]) -> None:
        """Add strings; lone surrogates become U+FFFD."""
        try:
            encoded = [text.encode() for text in texts]
        except UnicodeEncodeError:
            encoded = [replace_surrogates(text).encode() for text in texts]
        self._file.write(b"".join(encoded))
        self._offsets.extend(accumulate(map(len, encoded), initial=self._offsets.pop()))

    def finish(self) -> StoredTexts:
        """Return all strings, and complete the files in the folder."""
        offsets = np.frombuffer(self._offsets, np.int64)
        if self._folder is None:
            assert isinstance(self._file, io.BytesIO)
            return StoredTexts(np.frombuffer(self._file.getvalue(), np.uint8), offsets[:-1], offsets[1:])
        self._file.flush()
        write_array(self._folder / f"{self._name}.offsets.npy", offsets)
        return StoredTexts.load(self._folder, self._name, len(offsets) - 1)


class ArrayWriter:
    """A one-dimensional array that is filled from its start, in a .npy file, or in memory if no folder is given.

    The file is written and not memory-mapped, because writing to mapped memory ends the process by a signal if the disk
    is full.

    Args:
        folder: the folder of the file.
        name: the file's name without its suffix.
        length: the length of the array.
        dtype: the type of its numbers.

    Attributes:
        array: the array, once all of it is written; an array on disk is memory-mapped.
    """

    array: npt.NDArray[Any]

    def __init__(self, folder: Path | None, name: str, length: int, dtype: Any) -> None:
        self._path, self._dtype, self._length = folder and folder / f"{name}.npy", np.dtype(dtype), length

    def __enter__(self) -> ArrayWriter:
        self._n_written = 0
        if self._path is None:
            self.array = np.empty(self._length, self._dtype)
        else:
            self._file = self._path.open("wb")
            descr = np.lib.format.dtype_to_descr(self._dtype)
            header = {"descr": descr, "fortran_order": False, "shape": (self._length,)}
            np.lib.format.write_array_header_1_0(self._file, header)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._path is not None:
            self._file.close()
            if kind is None:
                self.array = load_array(self._path, mmap=True)

    def append(self, part: npt.NDArray[Any]) -> None:
        """Write the next numbers."""
        part = part.astype(self._dtype, copy=False)
        if self._path is None:
            self.array[self._n_written : self._n_written + len(part)] = part
        else:
            self._file.write(part.tobytes())
        self._n_written += len(part)


def write_texts(folder: Path, name: str, texts: Iterable[str]) -> None:
    """Write strings to the files that StoredTexts.load opens."""
    left = iter(texts)
    with TextWriter(folder, name) as writer:
        while some := list(islice(left, 1000)):
            writer.extend(some)
        writer.finish()


def write_array(place: Path | IO[bytes], array: Any) -> None:
    """Write a NumPy array in the form .npy.

    Args:
        place: the path of a new file, or an open file.
        array: the array.

    Raises:
        OSError: the array cannot be written completely.
    """
    if isinstance(place, Path):
        with place.open("wb") as file:
            return write_array(file, array)
    # numpy.save writes into a file itself, and does not notice if its last part does not fit on the disk.
    writer: Any = _OnlyWrites(place.write)
    np.lib.format.write_array(writer, np.asanyarray(array), allow_pickle=False)


@dataclass(frozen=True)
class _OnlyWrites:
    write: Callable[[bytes], int]  # all that NumPy calls


def load_array(path: Path, mmap: bool) -> npt.NDArray[Any]:
    """Read a .npy file, which cannot contain objects.

    Raises:
        CorpusFileError: the file is missing, cut short or of another format, or the system does not let it be read.
    """
    plain_file(path.parent, path.name, CorpusFileError)
    try:
        loaded = np.load(path, mmap_mode="r" if mmap else None, allow_pickle=False)
    except OSError as error:  # such as too many open files
        raise CorpusFileError.unreadable(path, error) from None
    except (ValueError, EOFError, TypeError, OverflowError, MemoryError, SyntaxError, LookupError, TokenError):
        raise damaged(path) from None  # a damaged header is evaluated as a literal, which can raise any of these
    if not isinstance(loaded, np.ndarray) or not loaded.dtype.isnative:
        raise damaged(path)
    return loaded


def damaged(path: Path) -> CorpusFileError:
    """Return the error for a damaged file of a saved corpus."""
    return CorpusFileError.of(path, "is damaged or cut short")
