"""Vectors of texts that an encoder has made, kept in a directory under the digests of the texts."""

from __future__ import annotations

import hashlib
import os
import shutil
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from ..errors import CorpusFileError, InputError
from ..files import read_json, write_json

_ABOUT, _RECORDS, _VECTORS = "encoder.json", "texts.bin", "vectors.f16"
# The vector of a text that has a checksum is whole, so a process can be killed while it writes.
_RECORD = np.dtype([("key", "S16"), ("checksum", "<u4")])
_PIECE = 1 << 12  # vectors that are read at a time

Keys = npt.NDArray[np.bytes_]
Half = npt.NDArray[np.float16]


def keys_of(texts: Iterable[str]) -> Keys:
    """Return the digest of each text, (n,) bytes; that of a text without a visible character is empty."""
    digests = [
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() if text.strip() else b""
        for text in texts
    ]
    return np.array(digests, "S16")


class VectorCache:
    """Vectors of one encoder in a directory, to which further ones are added. One process opens it at a time.

    Args:
        folder: the directory, which is made if there is none.
        about: what identifies the encoder, as JSON values.
        size: the length of a vector.

    Raises:
        InputError: the directory has files that are no such vectors.
    """

    def __init__(self, folder: Path, about: dict[str, Any], size: int) -> None:
        self.folder, self.size = folder, size
        names = {entry.name for entry in folder.iterdir()} if folder.is_dir() else set()
        if names and _ABOUT not in names:
            raise InputError(f"{folder} holds other files (no {_ABOUT}) and takes no vectors; give another place")
        folder.mkdir(parents=True, exist_ok=True)
        if not names:
            write_json(folder / _ABOUT, about)
        self._parts = [self._whole_records()]
        self._n = len(self._parts[0])
        self._files: tuple[IO[bytes], IO[bytes]] | None = None

    @staticmethod
    def about(folder: Path) -> Any:
        """Return what identifies the encoder of the vectors in a directory; None if it has none."""
        try:
            return read_json(folder / _ABOUT, CorpusFileError) if (folder / _ABOUT).is_file() else None
        except CorpusFileError:
            return None

    @staticmethod
    def remove(folder: Path) -> None:
        """Remove the vectors in a directory, if it has any."""
        if (folder / _ABOUT).is_file():
            shutil.rmtree(folder)

    def __len__(self) -> int:
        return self._n

    def _records(self) -> npt.NDArray[Any]:
        self._parts = [np.concatenate(self._parts)]
        return self._parts[0]

    def _whole_records(self) -> npt.NDArray[Any]:
        """Return the records whose vectors are there."""
        sizes = [
            path.stat().st_size if path.exists() else 0 for path in map(self.folder.joinpath, (_RECORDS, _VECTORS))
        ]
        n = min(sizes[0] // _RECORD.itemsize, sizes[1] // (2 * self.size))
        return np.fromfile(self.folder / _RECORDS, _RECORD, n) if n else np.zeros(0, _RECORD)

    def _vectors(self) -> Half:
        if not len(self):
            return np.zeros((0, self.size), np.float16)
        return np.memmap(self.folder / _VECTORS, np.float16, "r", shape=(len(self), self.size))

    def find(self, keys: Keys) -> npt.NDArray[np.int64]:
        """Return the row of each text, (n,); -1 if its vector is not there or damaged. Empty texts have none."""
        rows = np.full(len(keys), -1, np.int64)
        if not len(self) or not len(keys):
            return rows
        # Of several records of a text, the last one counts: an earlier one was damaged.
        records = self._records()
        known, last = np.unique(records["key"][::-1], return_index=True)
        places = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        found = known[places] == keys
        rows[found] = len(self) - 1 - last[places[found]]
        rows[keys == b""] = -1
        vectors, checksums = self._vectors(), records["checksum"]
        for row in np.unique(rows[rows >= 0]).tolist():
            if zlib.crc32(vectors[row].tobytes()) != checksums[row]:
                rows[rows == row] = -1
        return rows

    def read(self, rows: npt.NDArray[np.int64], into: Half) -> None:
        """Copy the vectors of some rows, (n, size). A row of -1 gets zeros."""
        vectors = self._vectors()
        for first in range(0, len(rows), _PIECE):
            part = rows[first : first + _PIECE]
            known = part >= 0
            piece = into[first : first + len(part)]
            piece[known], piece[~known] = vectors[part[known]], 0

    def append(self, keys: Keys, vectors: Half) -> None:
        """Add the vectors of texts, (n, size), and write them to disk."""
        if self._files is None:
            self._files = self._opened()
        records = np.zeros(len(keys), _RECORD)
        records["key"] = keys
        records["checksum"] = [zlib.crc32(vector.tobytes()) for vector in vectors]
        for file, array in zip(self._files, (vectors, records), strict=True):  # a record promises its vector
            file.write(np.ascontiguousarray(array).tobytes())
            file.flush()
            os.fsync(file.fileno())
        self._parts.append(records)
        self._n += len(records)

    def _opened(self) -> tuple[IO[bytes], IO[bytes]]:
        """Open both files behind their last whole entries."""
        sizes = {_VECTORS: 2 * self.size * len(self), _RECORDS: _RECORD.itemsize * len(self)}
        files = []
        for name, size in sizes.items():
            file = (self.folder / name).open("ab")
            file.truncate(size)
            files.append(file)
        return files[0], files[1]

    def close(self) -> None:
        """Close the files."""
        for file in self._files or ():
            file.close()
        self._files = None
