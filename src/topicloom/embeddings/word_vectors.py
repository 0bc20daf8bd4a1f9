"""WordVectors: words and their vectors, read from files, trained on a corpus or given."""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
import re
import struct
import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, Protocol, Self, TypeAlias, runtime_checkable

import joblib
import numpy as np
import numpy.typing as npt

from ..corpus import Corpus
from ..corpus.fields import as_float32, stored_vectors
from ..corpus.frames import read_frame
from ..corpus.inputs import kind_of
from ..display import html_table
from ..errors import InputError, MissingExtraError, SettingError
from ..files import atomic_file
from ..messages import counted
from ..settings import require_seed, require_whole
from ..text import AnyTokenizer, Pretokenized, make_tokenizer
from ..text.counting import Text
from ..text.strings import is_utf8, normalise, numeric_array

logger = logging.getLogger("topicloom")

Floats: TypeAlias = "npt.NDArray[np.float32]"
_WHITE_SPACE = re.compile("[ \t\r\n]+")  # which ends a word, or its line, in the word2vec format
_DIGITS = frozenset(b"0123456789")
_PRECISION_OF_TEXT = 1e-5  # to which files are trusted to have written the numbers of vectors
_NOT_FOUND = 3  # a rank after those of the written form, the word itself, and another form
_SHOWN = 8  # words, and numbers of a vector, in a notebook
OTHER_WORDS = "perhaps they are of another language, or their words have another form (case, lemmas)"


class WordVectors:
    """Words and their vectors. They cannot be changed, so a copy is the same object.

    Args:
        words: n different words.
        vectors: (n, L) finite numbers.

    Attributes:
        words: the n words.
        vectors: (n, L) float32.

    Raises:
        InputError: the numbers of words and rows differ, a word occurs twice, or a number is not finite.

    Examples:
        >>> import topicloom as tl
        >>> vectors = tl.WordVectors(["cat", "dog", "rain"], [[1, 0.1], [0.9, 0.2], [0, 1]])
        >>> vectors
        WordVectors(3 words of 2 dimensions)
        >>> "cat" in vectors, vectors["rain"]
        (True, array([0., 1.], dtype=float32))
        >>> vectors.nearest("cat", top_n=1)
        ['dog']
    """

    def __init__(self, words: Iterable[str], vectors: npt.ArrayLike) -> None:
        self.words = tuple(words)
        given = numeric_array(vectors)
        if given.ndim != 2 or not given.size or len(given) != len(self.words):
            raise InputError(
                f"{len(self.words)} words cannot have vectors of shape {given.shape}; give one row for each word"
            )
        stored = stored_vectors(given, lambda row: f"the vector of {self.words[row]!r}")
        self.vectors: Floats = stored.astype(np.float32, copy=stored is given)
        self._places = {word: place for place, word in enumerate(self.words)}
        if len(self._places) < len(self.words):
            twice = next(word for place, word in enumerate(self.words) if self._places[word] != place)
            raise InputError(f"the word {twice!r} occurs twice; give each word one vector")
        self.vectors.flags.writeable = False

    @property
    def size(self) -> int:
        """L, the dimensions of a vector."""
        return int(self.vectors.shape[1])

    @cached_property
    def digest(self) -> str:
        """The first 16 digits of a SHA-256 hash of the words and their vectors."""
        content = hashlib.sha256(json.dumps([self.size, self.words]).encode())
        content.update(np.ascontiguousarray(self.vectors, "<f4").tobytes())
        return content.hexdigest()[:16]

    def summary(self) -> dict[str, Any]:
        """Return the number of words and the size of a vector, for reports.

        Examples:
            >>> import topicloom as tl
            >>> tl.WordVectors(["cat", "dog"], [[1, 0, 0], [0, 1, 0]]).summary()
            {'words': 2, 'size': 3}
        """
        return {"words": len(self), "size": self.size}

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._places

    def __getitem__(self, word: str) -> Floats:
        vector: Floats = self.vectors[self._places[word]]
        return vector

    def __repr__(self) -> str:
        return f"WordVectors({counted(len(self), 'word')} of {self.size} dimensions)"

    def _repr_html_(self) -> str:
        shown = [[word, " ".join(f"{x:.2f}" for x in self[word][:_SHOWN])] for word in self.words[:_SHOWN]]
        return html_table(["word", f"the first {_SHOWN} numbers"], shown, repr(self))

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def nearest(self, word: str | npt.ArrayLike, top_n: int = 10) -> list[str]:
        """Return the words whose vectors have the greatest cosine with the vector of a word, or with an (L,) vector.

        Raises:
            InputError: the word has no vector, or the vector has another size.
            SettingError: `top_n` is not a whole number from 1.

        Examples:
            >>> import topicloom as tl
            >>> vectors = tl.WordVectors(["cat", "dog", "rain"], [[1, 0.1], [0.9, 0.2], [0, 1]])
            >>> vectors.nearest("cat")
            ['dog', 'rain']
            >>> vectors.nearest([0, 2], top_n=1)
            ['rain']
        """
        require_whole("top_n", top_n)
        if isinstance(word, str):
            if word not in self:
                raise InputError(f"{word!r} is not among these {len(self):,} words with a vector; give another word")
            near = nearest_rows(self.vectors, self[word], top_n + 1)
            return [self.words[row] for row in near if self.words[row] != word][:top_n]
        return [self.words[row] for row in nearest_rows(self.vectors, word, top_n)]

    def rows(
        self,
        vocabulary: Sequence[str],
        random_state: int = 0,
        *,
        written: Mapping[str, str] | None = None,
        log: bool = True,
    ) -> Floats:
        """Return the vectors of a vocabulary's words, in their order: (V, L).

        A word has the vector of its written form, or else of the word itself, or else of the first word here that
        differs from it in case or in what case folding changes, such as straße for strasse. A word without a vector
        gets a random one, with the mean and the spread of the others in each dimension.

        Args:
            vocabulary: the V words.
            random_state: the seed of the random vectors.
            written: the written forms of words, such as Haus for haus; `Corpus.written` has those of a corpus.
            log: whether to log the share of the words that have a vector; if it is less than half, this is a warning.

        Raises:
            InputError: no word has a vector.

        Examples:
            >>> import topicloom as tl
            >>> vectors = tl.WordVectors(["cat", "dog"], [[1, 0], [0, 1]])
            >>> vectors.rows(["dog", "rain", "cat"]).shape
            (3, 2)
            >>> vectors.rows(["dog", "rain", "cat"])[[0, 2]]
            array([[0., 1.],
                   [1., 0.]], dtype=float32)
        """
        places = np.array([self._place(word, written or {}) for word in vocabulary], np.intp)  # (V,)
        known = places >= 0
        if not known.any():
            raise InputError(f"none of the {len(places):,} words of the vocabulary has a word vector; {OTHER_WORDS}")
        if log:
            log_share(int(known.sum()), len(places), "the word vectors")
        found = self.vectors[places[known]]  # (n, L)
        spread = found.std(0) if len(found) > 1 else np.full(self.size, np.abs(found).mean())
        rows = np.empty((len(places), self.size), np.float32)
        rows[known] = found
        drawn = np.random.default_rng(random_state).standard_normal((int((~known).sum()), self.size))
        rows[~known] = found.mean(0) + drawn * spread
        return rows

    def _place(self, word: str, written: Mapping[str, str]) -> int:
        """Return the row of the vector that a word has, or -1."""
        place = self._places.get(written.get(word, word))
        if place is None and (place := self._places.get(word)) is None:
            place = self._folded_places.get(_folded(word), -1)
        return place

    @cached_property
    def _folded_places(self) -> dict[str, int]:
        """The first row of a word with each folded form."""
        places: dict[str, int] = {}
        for place, word in enumerate(self.words):
            places.setdefault(_folded(word), place)
        return places

    def save(self, path: str | Path) -> None:
        """Write the word2vec text format, which `read_word_vectors` and gensim read; compressed if it ends in .gz.

        The format has no words with white space. Phrases are written as gensim writes them, "new york" as new_york.

        Raises:
            InputError: a word is blank or is not valid Unicode, or two words would be written in the same way.

        Examples:
            >>> import topicloom as tl
            >>> import tempfile
            >>> from pathlib import Path
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     path = Path(folder, "vectors.txt")
            ...     tl.WordVectors(["cat", "dog"], [[1, 0], [0, 1]]).save(path)
            ...     print(path.read_text(), end="")
            2 2
            cat 1.0 0.0
            dog 0.0 1.0
        """
        written = {word: _WHITE_SPACE.sub("_", word) for word in self.words}
        self._check_written(written)
        with atomic_file(Path(path)) as temporary:
            opener: Callable[..., Any] = gzip.open if temporary.suffix == ".gz" else open
            with opener(temporary, "wt", encoding="utf-8", newline="\n") as file:
                file.write(f"{len(self)} {self.size}\n")
                for word, vector in zip(self.words, self.vectors, strict=True):
                    file.write(f"{written[word]} {' '.join(map(str, vector))}\n")

    def _check_written(self, written: Mapping[str, str]) -> None:
        """Check how words are written to a file, and log which are written differently.

        Args:
            written: word -> how it is written.

        Raises:
            InputError: a word is blank or is not valid Unicode, or two words would be written in the same way.
        """
        broken = next((word for word in written if not word.strip() or not is_utf8(word)), None)
        if broken is not None:
            raise InputError(
                f"the word {broken!r} is blank or is not valid Unicode, which the word2vec format cannot express; "
                "leave it out"
            )
        phrases = [word for word, each in written.items() if each != word]
        first: dict[str, str] = {}
        for word, each in written.items():
            if first.setdefault(each, word) != word:
                raise InputError(
                    f"the words {first[each]!r} and {word!r} would both be written as {each}, because the word2vec "
                    "format has no words with white space; leave one out"
                )
        if phrases:
            logger.info(
                "%s with white space %s written with _ in its place, such as %s, as gensim writes phrases",
                counted(len(phrases), "word"), "is" if len(phrases) == 1 else "are", written[phrases[0]],
            )  # fmt: skip


def log_share(found: int, wanted: int, where: str) -> None:
    """Log how many of the wanted words have a vector, as a warning if they are less than half."""
    share = f"{found:,} of {wanted:,} words ({100 * found / wanted:.1f} %) found in {where}"
    if 2 * found < wanted:
        logger.warning("only %s; the others get random vectors, so give vectors of the language of the texts", share)
    else:
        logger.info("%s", share)


class _Wanted:
    """The words whose vectors are needed, each under the best form that was found so far.

    Args:
        vocabulary: the words.
        written: the written forms of words.
    """

    def __init__(self, vocabulary: Iterable[str], written: Mapping[str, str] | None) -> None:
        words = dict.fromkeys(vocabulary)
        self.ranks: dict[str, int] = dict.fromkeys(words, _NOT_FOUND)
        self._of_folded: dict[str, str] = {}
        for word in words:
            self._of_folded.setdefault(_folded(word), word)
        self._of_form = {form: word for word, form in (written or {}).items() if word in words}
        self.vectors: dict[str, Any] = {}

    def match(self, form: str) -> tuple[str, int] | None:
        """Return the word that a form stands for, and the rank of the form; None if no better one is needed."""
        found = [self._of_form.get(form), form if form in self.ranks else None]
        if found == [None, None]:
            found.append(self._of_folded.get(_folded(form)))
        for rank, word in enumerate(found):
            if word is not None and rank < self.ranks[word]:
                return word, rank
        return None

    def __contains__(self, form: object) -> bool:
        return isinstance(form, str) and self.match(form) is not None

    def add(self, form: str, vector: Any) -> None:
        """Keep a vector, if its form is better than those before."""
        if (found := self.match(form)) is not None:
            word, rank = found
            self.ranks[word], self.vectors[word] = rank, vector


def _folded(word: str) -> str:
    return word.lower() if word.isascii() else normalise(word).casefold()


def nearest_rows(rows: npt.ArrayLike, vector: npt.ArrayLike, top_n: int) -> list[int]:
    """Return the indices of the (n, L) rows that have the greatest cosine with an (L,) vector.

    The best comes first, and equally good rows keep their order.

    Raises:
        InputError: the vector has another size.
        SettingError: top_n is not a whole number from 1.
    """
    matrix, point = np.asarray(rows, np.float64), np.asarray(vector, np.float64)
    if point.shape != matrix.shape[1:]:
        raise InputError(f"a vector of {matrix.shape[1]} numbers is needed; this one has shape {point.shape}")
    require_whole("top_n", top_n)
    lengths = np.linalg.norm(matrix, axis=1) * np.linalg.norm(point)
    cosine = matrix @ point / np.where(lengths > 0, lengths, 1)
    nearest: list[int] = np.argsort(-cosine, kind="stable")[:top_n].tolist()
    return nearest


# Word vectors in files: the text and binary formats of word2vec, GloVe and fastText.
#
# Files are streamed. With a vocabulary, only its rows are kept, so that a file larger than memory can be read.

Row: TypeAlias = "tuple[str, Floats]"
_FASTTEXT_MAGIC = struct.pack("<i", 793_712_314)
_LONGEST_WORD = 1 << 16  # bytes; a binary file without a space in so many is not a list of words
_BLOCK = 1 << 20  # bytes read at a time
_LARGEST_COUNT = 1 << 40  # a first line with a larger number is not a header


def read_word_vectors(
    path: str | Path,
    vocabulary: Iterable[str] | None = None,
    *,
    size: int | None = None,
    written: Mapping[str, str] | None = None,
) -> WordVectors:
    r"""Read a word2vec text or binary, GloVe, or fastText (.vec or .bin) file, which may be compressed (.gz).

    The format is recognised by the content. If a word occurs twice, its first row is used.

    Args:
        path: the file.
        vocabulary: the words to keep; others take no memory. A word gets the vector of its written form, or else of the
            word itself, or else of the first word in the file that differs from it in case or in what case folding
            changes, such as straße for strasse. For a word that it does not contain, a fastText .bin file gives a
            vector made from the word's parts. The share of the words that were found is logged; if it is less than
            half, this is a warning.
        size: the dimensions that the vectors should have.
        written: the written forms of words, such as Haus for haus; `Corpus.written` has those of a corpus.

    Raises:
        InputError: the file has none of these formats, is damaged (the message names the line), has vectors of another
            size, or contains no word of the vocabulary.
        MissingExtraError: the file is a fastText .bin file, and gensim is not installed.

    Examples:
        >>> import topicloom as tl
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "glove.txt")
        ...     _ = path.write_text("cat 1 0.1\ndog 0.9 0.2\nrain 0 1\n")
        ...     every, some = tl.read_word_vectors(path), tl.read_word_vectors(path, vocabulary=["rain", "snow"])
        >>> every
        WordVectors(3 words of 2 dimensions)
        >>> some.words
        ('rain',)
    """
    file = Path(path)
    wanted = None if vocabulary is None else _Wanted(vocabulary, written)
    if _starts_with(file, _FASTTEXT_MAGIC):
        made = _fasttext_binary(file, wanted)
    else:
        with _opened(file) as stream:
            rows = _rows(stream, str(file), wanted, size)
            kept: dict[str, Floats] = {} if wanted is None else wanted.vectors
            for word, vector in rows:
                if wanted is None:
                    kept.setdefault(word, vector)
                else:
                    wanted.add(word, vector)
        if not kept:
            n_words = 0 if wanted is None else len(wanted.ranks)
            raise InputError(f"{file} contains no word of the vocabulary ({counted(n_words, 'word')}); {OTHER_WORDS}")
        made = WordVectors(kept, np.stack(list(kept.values())))
    if size is not None and made.size != size:
        raise _other_size(str(file), made.size, size)
    if wanted is not None:
        log_share(len(made), len(wanted.ranks), str(file))
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
        return _text_rows(b"", _LinesAfterBlock(block, stream), name, wanted, header, size)
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


class _LinesAfterBlock:
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
        given = np.array(fields, np.float64)
    except ValueError:
        wrong = next(field for field in fields if not _is_number(field))
        raise InputError(f"{name}, line {number}: {_shown(wrong)} is not a number") from None
    vector, is_lost = as_float32(given)
    if is_lost.any():
        is_lost &= ~np.isclose(vector, given, rtol=_PRECISION_OF_TEXT, atol=0)
        # The shortest text of the least number of 32 bits, 1e-45, is far from its value, 1.4e-45.
        is_lost &= [float(str(stored)) != text for stored, text in zip(vector, given, strict=True)]
    if not np.isfinite(given).all():
        is_lost |= np.isinf(given) & [not _DIGITS.isdisjoint(field) for field in fields]  # 1e400, and not inf
        if not is_lost.any():
            raise InputError(f"{name}, line {number}: a number is not finite; correct or remove the line")
    if is_lost.any():
        wrong = fields[int(is_lost.argmax())]
        raise InputError(
            f"{name}, line {number}: {_shown(wrong)} is a number that 32-bit floating point cannot hold; correct or "
            "remove the line"
        )
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


def _fasttext_binary(file: Path, wanted: _Wanted | None) -> WordVectors:
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
    for form in loaded.index_to_key:
        if form in wanted:
            wanted.add(form, loaded.get_vector(form))
    unseen = (word for word in wanted.ranks if word not in wanted.vectors)
    kept = wanted.vectors | {word: loaded.get_vector(word) for word in unseen if word in loaded}
    if not kept:
        raise InputError(
            f"{file} contains no word of the vocabulary ({counted(len(wanted.ranks), 'word')}); {OTHER_WORDS}"
        )
    kept = dict(sorted(kept.items()))
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


# Word vectors in other forms: dictionaries, files, and those of gensim.


@runtime_checkable
class KeyedVectors(Protocol):
    """Word vectors of gensim: `vectors` has a row for each word of `index_to_key`."""

    index_to_key: Any
    vectors: Any


def as_word_vectors(
    vectors: WordVectors | Mapping[str, Any] | KeyedVectors | str | Path,
    vocabulary: Iterable[str] | None = None,
    *,
    size: int | None = None,
    written: Mapping[str, str] | None = None,
) -> WordVectors:
    """Return word vectors as `WordVectors`.

    Args:
        vectors: WordVectors, which are returned as they are; a dictionary of words and their (L,) vectors; gensim's
            KeyedVectors; or the path of a file that `read_word_vectors` can read.
        vocabulary: the words that are needed. Of a dictionary, gensim's vectors and a file, no others are kept.
        size: the dimensions that the vectors of a file should have.
        written: the written forms of words, as for `read_word_vectors`.

    Raises:
        InputError: `vectors` is something else, contains none of the words, or has vectors that cannot be used.
    """
    if isinstance(vectors, WordVectors):
        return vectors
    if isinstance(vectors, str | Path):
        return read_word_vectors(vectors, vocabulary, size=size, written=written)
    pairs: Iterable[tuple[Any, Any]]
    if isinstance(vectors, Mapping):
        pairs = vectors.items()
    elif isinstance(vectors, KeyedVectors):
        pairs = zip(vectors.index_to_key, vectors.vectors, strict=True)
    else:
        raise InputError(
            "word vectors should be WordVectors, a dictionary of words and vectors, gensim's KeyedVectors (model.wv), "
            f"or the path of a file; these are of type {type(vectors).__name__}"
        )
    kept: list[tuple[Any, Any]]
    if vocabulary is None:
        kept = list(pairs)
    else:
        wanted = _Wanted(vocabulary, written)
        for word, vector in pairs:
            if word in wanted:
                wanted.add(word, vector)
        kept = list(wanted.vectors.items())
        if not kept:
            raise InputError(
                f"none of the {len(wanted.ranks):,} words of the vocabulary has a word vector; {OTHER_WORDS}"
            )
    rows: list[npt.NDArray[Any]] = []
    for word, vector in kept:
        rows.append(_row(word, vector, len(rows[0]) if rows else None))
    return WordVectors([word for word, _ in kept], rows)


def _row(word: Any, vector: Any, size: int | None) -> npt.NDArray[Any]:
    """Return a vector as (L,) numbers, L being `size` where it is known."""
    if not isinstance(word, str):
        raise InputError(f"the words of word vectors should be strings; {word!r} is of type {type(word).__name__}")
    try:
        row = numeric_array(vector)
    except (TypeError, ValueError):
        raise InputError(f"the vector of {word!r} does not consist of numbers; correct it") from None
    if row.ndim != 1 or len(row) != (len(row) if size is None else size):
        wanted = "one dimension" if size is None else f"{size} numbers, as the first vector has"
        raise InputError(f"the vector of {word!r} has shape {row.shape}; it should have {wanted}")
    return row


# Training word vectors on texts, by gensim.

_LONGEST_SENTENCE = 10_000  # tokens; gensim ignores the rest of a longer one


def train_word_vectors(
    X: Corpus | Iterable[Text],
    method: Literal["cbow", "skip-gram"] = "cbow",
    size: int = 300,
    window: int = 5,
    epochs: int = 20,
    *,
    min_count: int = 1,
    random_state: int = 0,
    n_jobs: int = 1,
) -> WordVectors:
    """Train CBOW or skip-gram vectors (Mikolov et al. 2013) with ten negative samples.

    Args:
        X: a Corpus that kept its texts or tokens, of which the words of its vocabulary are used; raw texts, which are
            tokenized according to their language; or lists of tokens in the order of the text.
        method: "cbow", or "skip-gram", which is slower and better for rare words.
        size: the dimensions L of a vector. A small number restricts the topics of an ETM whose word vectors are fixed.
        window: the number of words to either side that are a word's context.
        epochs: the number of passes over the texts.
        min_count: a word that occurs less often gets no vector.
        random_state: a seed. The same seed gives the same vectors on the same machine if n_jobs is 1.
        n_jobs: the number of threads; -1 uses all cores. With more than one, vectors differ from run to run.

    Raises:
        InputError: X has no word order (it is counts, or a Corpus without texts), or no word occurs often enough.
        SettingError: an argument cannot have its value.
        MissingExtraError: gensim is not installed.

    Examples:
        >>> import topicloom as tl
        >>> texts = ["cats and dogs eat fish", "dogs and cats see birds", "rain and snow fall"] * 5
        >>> tl.train_word_vectors(texts, size=8, epochs=2)
        WordVectors(8 words of 8 dimensions)
    """
    if method not in ("cbow", "skip-gram"):
        raise SettingError(f'`method={method!r}` should be "cbow" or "skip-gram"')
    for name, value in {"size": size, "window": window, "epochs": epochs, "min_count": min_count}.items():
        require_whole(name, value)
    require_seed(random_state)
    if n_jobs == 0:
        raise SettingError("`n_jobs=0` has no meaning; use 1 for one thread, or -1 for all cores")
    try:
        from gensim.models import Word2Vec
    except ImportError:
        raise MissingExtraError.of("training word vectors", "gensim", "vectors") from None
    sentences = list(_sentences(X))
    model = Word2Vec(
        vector_size=size,
        window=window,
        min_count=min_count,
        sg=int(method == "skip-gram"),
        negative=10,
        epochs=epochs,
        seed=int(random_state),
        workers=joblib.effective_n_jobs(n_jobs),
        hashfxn=_hash,  # the hash of Python differs from one process to the next
    )
    model.build_vocab(sentences)
    if not model.wv.index_to_key:
        raise InputError(f"no word occurs {min_count} times; give more text, or a smaller `min_count`")
    model.train(sentences, total_examples=model.corpus_count, epochs=model.epochs)
    return WordVectors(model.wv.index_to_key, model.wv.vectors)


def _hash(word: str) -> int:
    return zlib.crc32(word.encode("utf-8", "surrogatepass"))


def _sentences(X: Corpus | Iterable[Text]) -> Iterator[list[str]]:
    """Yield documents as tokens in their order, divided where gensim would stop reading."""
    for tokens in _tokens(X):
        for start in range(0, len(tokens), _LONGEST_SENTENCE):
            yield tokens[start : start + _LONGEST_SENTENCE]


def _tokens(X: Corpus | Iterable[Text]) -> Iterator[list[str]]:
    kind = kind_of(X)
    if isinstance(X, Corpus):
        known = dict(zip(X.vocabulary, X.vocabulary, strict=True))  # one string for a word, however often it occurs
        for tokens in X.tokens():
            yield [known[word] for word in tokens if word in known]
        return
    if kind == "counts":
        raise InputError("counts have no word order, which training word vectors needs; give texts or lists of tokens")
    documents = iter(read_frame(X).texts if kind == "frame" else X)
    first = list(islice(documents, 200))
    tokenize: AnyTokenizer = Pretokenized()
    if any(isinstance(document, str) for document in first):
        tokenize = make_tokenizer(sample=[document for document in first if isinstance(document, str)])
    same: dict[str, str] = {}
    for number, document in enumerate(chain(first, documents)):
        try:
            yield [same.setdefault(word, word) for word in tokenize(document)]  # type: ignore[arg-type]
        except InputError as error:
            raise InputError(f"document {number}: {error}") from None
