"""Word vectors in files: the text and binary formats of word2vec, GloVe and fastText.

Files are streamed. With a vocabulary, only its rows are kept, so that a file larger than memory can be read.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Container, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, NamedTuple, TypeAlias

import numpy as np

from ..errors import InputError, MissingExtraError
from .word_vectors import OTHER_WORDS, Floats, WordVectors, log_share

Row: TypeAlias = "tuple[str, Floats]"
_FASTTEXT_MAGIC = struct.pack("<i", 793_712_314)
_LONGEST_WORD = 1 << 16  # bytes; a binary file without a space in so many is not a list of words
_BLOCK = 1 << 20  # bytes read at a time
_LARGEST_COUNT = 1 << 40  # a first line with a larger number is not a header


def read_word_vectors(
    path: str | Path, vocabulary: Iterable[str] | None = None, *, size: int | None = None
) -> WordVectors:
    """Read a word2vec text or binary, GloVe, or fastText (.vec or .bin) file, which may be compressed (.gz).

    The format is recognised by the content. If a word occurs twice, its first row is used.

    Args:
        path: the file.
        vocabulary: the words to keep; others take no memory. For a word that it does not contain, a fastText .bin file
            gives a vector made from the word's parts. The share of the words that were found is logged.
        size: the dimensions that the vectors should have.

    Raises:
        InputError: the file has none of these formats, is damaged (the message names the line), has vectors of another
            size, or contains no word of the vocabulary.
        MissingExtraError: the file is a fastText .bin file, and gensim is not installed.
    """
    file = Path(path)
    wanted = None if vocabulary is None else set(vocabulary)
    if _starts_with(file, _FASTTEXT_MAGIC):
        made = _fasttext_binary(file, wanted)
    else:
        with _opened(file) as stream:
            rows = _rows(stream, str(file), wanted, size)
            kept: dict[str, Floats] = {}
            for word, vector in rows:
                kept.setdefault(word, vector)
        if not kept:
            raise InputError(f"{file} contains no word of the vocabulary ({len(wanted or ()):,} words); {OTHER_WORDS}")
        made = WordVectors(kept, np.stack(list(kept.values())))
    if size is not None and made.size != size:
        raise _other_size(str(file), made.size, size)
    if wanted is not None:
        log_share(len(made), len(wanted), str(file))
    return made


class _Header(NamedTuple):
    n_words: int
    size: int


def _rows(stream: IO[bytes], name: str, wanted: Container[str] | None, size: int | None) -> Iterator[Row]:
    """Yield the rows of a file in any of the three formats."""
    line = stream.readline(_BLOCK)
    if not line.strip():
        raise InputError(f"{name} is empty or begins with an empty line; give a file of word vectors")
    header = _header(line, name)
    if header is None:
        return _text_rows(line, stream, name, wanted, None, size)
    if size not in (None, header.size):
        raise _other_size(name, header.size, size)
    block = stream.read(_BLOCK)
    if not block:
        raise InputError(f"{name} ends after its header, which announces {header.n_words:,} words; download it again")
    if _is_text(block):
        return _text_rows(b"", _Rest(block, stream), name, wanted, header, size)
    return _binary_rows(block, stream, name, wanted, header)


def _header(line: bytes, name: str) -> _Header | None:
    """Return the header in the first line of a file, or None if that line is a row already (GloVe)."""
    fields = line.split()
    if len(fields) == 2 and all(field.removeprefix(b"-").isdigit() for field in fields):
        header = _Header(int(fields[0]), int(fields[1]))
        if not (0 < header.n_words < _LARGEST_COUNT and 0 < header.size < _LARGEST_COUNT):
            raise InputError(
                f"{name}, line 1: the header {_shown(line)} should be the numbers of words and dimensions, both above 0"
            )
        return header
    if len(fields) < 2 or not _is_number(fields[-1]):
        raise InputError(f"{name}, line 1: {_shown(line)} is neither a header nor the row of a word")
    return None


def _is_text(block: bytes) -> bool:
    """Return whether the first row after a header is a line of text, with a number behind a word."""
    fields = block.split(b"\n", 1)[0].split()
    return any(map(_is_number, fields[1:]))


class _Rest:
    """The lines of a stream from which a block was read already."""

    def __init__(self, block: bytes, stream: IO[bytes]) -> None:
        self._block, self._stream = block, stream

    def __iter__(self) -> Iterator[bytes]:
        whole, newline, last = self._block.rpartition(b"\n")
        yield from (whole + newline).splitlines(keepends=True) if newline else ()
        last += self._stream.readline()
        if last:
            yield last
        yield from self._stream


def _text_rows(
    first: bytes,
    lines: Iterable[bytes],
    name: str,
    wanted: Container[str] | None,
    header: _Header | None,
    asked: int | None,
) -> Iterator[Row]:
    """Yield the rows of a text format, 'word n1 n2 ...'. A word may contain spaces, as a few in GloVe's files do."""
    size = None if header is None else header.size
    number, n_rows = 1, 0
    for number, line in enumerate(chain([first] if first else [], lines), 1 if header is None else 2):
        fields = line.rstrip().replace(b"\t", b" ").split(b" ")
        if fields == [b""]:
            continue
        if size is None:
            size = len(fields) - 1
            if asked is not None and size != asked:
                raise _other_size(name, size, asked)
        n_rows += 1
        n_numbers = len(fields) - 1
        if n_numbers < size or (n_numbers > size and all(map(_is_number, fields[1:-size]))):
            raise InputError(
                f"{name}, line {number} has {n_numbers} numbers, but "
                f"{'line 1 has' if header is None else 'the header announces'} {size}; correct or remove the line"
            )
        try:
            word = b" ".join(fields[:-size]).decode()
        except UnicodeDecodeError:
            raise InputError(f"{name}, line {number} is not UTF-8; convert the file to UTF-8") from None
        if wanted is None or word in wanted:
            yield word, _numbers(fields[-size:], name, number)
    if header is not None and n_rows != header.n_words:
        raise InputError(
            f"{name} has {n_rows:,} rows, but its header announces {header.n_words:,} words; download it again"
        )


def _numbers(fields: list[bytes], name: str, number: int) -> Floats:
    try:
        vector = np.array(fields, np.float32)
    except ValueError:
        wrong = next(field for field in fields if not _is_number(field))
        raise InputError(f"{name}, line {number}: {_shown(wrong)} is not a number") from None
    if not np.isfinite(vector).all():
        raise InputError(f"{name}, line {number}: a number is not finite; correct or remove the line")
    return vector


def _binary_rows(
    block: bytes, stream: IO[bytes], name: str, wanted: Container[str] | None, header: _Header
) -> Iterator[Row]:
    """Yield the rows of the binary format: a word, a space and 4 L bytes; some writers add a line feed to each row."""
    place, n_bytes = 0, 4 * header.size
    for number in range(1, header.n_words + 1):
        blank = block.find(b" ", place)
        while blank < 0 or blank + 1 + n_bytes > len(block):
            more = stream.read(_BLOCK)
            if not more:
                raise InputError(
                    f"{name} is incomplete: its header announces {header.n_words:,} words, but it ends in word "
                    f"{number:,}; download it again"
                )
            block, place = block[place:] + more, 0
            blank = block.find(b" ")
            if blank < 0 and len(block) > _LONGEST_WORD:
                raise InputError(f"{name} is damaged at word {number:,}, which is too long; download it again")
        try:
            word = block[place:blank].lstrip(b"\n").decode()
        except UnicodeDecodeError:
            raise InputError(
                f"{name}, word {number:,} is not UTF-8; the file is damaged, so download it again"
            ) from None
        place = blank + 1 + n_bytes
        if wanted is None or word in wanted:
            vector = np.frombuffer(block, "<f4", header.size, blank + 1)
            if not np.isfinite(vector).all():
                raise InputError(f"{name}, word {number:,} ({word!r}): a number is not finite; download the file again")
            yield word, vector.astype(np.float32)


def _fasttext_binary(file: Path, wanted: set[str] | None) -> WordVectors:
    try:
        from gensim.models.fasttext import load_facebook_vectors
    except ImportError:
        raise MissingExtraError.of("reading a fastText .bin file", "gensim", "vectors") from None
    _check_dictionary(file)
    try:
        loaded = load_facebook_vectors(str(file))
    except Exception as error:  # a damaged file leads to errors of many kinds in gensim
        raise InputError(
            f"{file} cannot be read as fastText: {(str(error) or repr(error)).splitlines()[0]:.200}"
        ) from None
    if wanted is None:
        return WordVectors(loaded.index_to_key, loaded.vectors)
    kept = {word: loaded.get_vector(word) for word in sorted(wanted) if word in loaded}
    if not kept:
        raise InputError(f"{file} contains no word of the vocabulary ({len(wanted):,} words); {OTHER_WORDS}")
    return WordVectors(kept, np.stack(list(kept.values())))


def _check_dictionary(file: Path) -> None:
    """Check that a fastText .bin file has as many words as it announces: gensim reads on for ever if it has fewer.

    A head of 64 bytes is followed by the number of words (int32), 24 further bytes, and for each word its bytes, a zero
    and 9 further bytes.
    """
    with _opened(file) as stream:
        head = stream.read(92)
        block, place = b"", 0
        for number in range(int.from_bytes(head[64:68], "little", signed=True)):
            end = block.find(b"\0", place)
            while end < 0 or end + 10 > len(block):
                more = stream.read(_BLOCK)
                if not more or len(block) - place > _LONGEST_WORD + _BLOCK:
                    raise InputError(
                        f"{file} cannot be read as fastText: it ends in word {number + 1:,} of its dictionary; "
                        "download it again"
                    )
                block, place = block[place:] + more, 0
                end = block.find(b"\0")
            place = end + 10


@contextmanager
def _opened(file: Path) -> Iterator[IO[bytes]]:
    """Open a file, compressed or not, and turn errors of reading into InputError."""
    try:
        with gzip.open(file) if file.suffix.lower() == ".gz" else file.open("rb") as stream:
            yield stream  # type: ignore[misc]
    except FileNotFoundError:
        raise InputError(f"{file} does not exist; check the path") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InputError(f"{file} is not a complete gzip file; download it again") from None
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}") from None


def _starts_with(file: Path, magic: bytes) -> bool:
    with _opened(file) as stream:
        return stream.read(len(magic)) == magic


def _other_size(name: str, size: int, asked: int | None) -> InputError:
    return InputError(f"{name} has vectors of {size} numbers, not {asked}; correct the size that is asked for")


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _shown(line: bytes) -> str:
    return repr(line[:40].decode("utf-8", "replace").rstrip())
