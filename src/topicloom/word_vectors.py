"""Word vectors: trained on a corpus by gensim, or read from word2vec, GloVe and fastText files.

Files are streamed, and with a vocabulary only its rows are kept, so that a file larger than memory can be read.
"""

from __future__ import annotations

import gzip
import logging
import struct
import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, Self, TypeAlias

import joblib
import numpy as np
import numpy.typing as npt

from .corpus import Corpus, Text
from .errors import InputError, MissingExtraError, SettingError
from .files import atomic_file
from .inputs import as_texts, is_matrix
from .text import CustomTokenizer, Pretokenized, Tokenizer, make_tokenizer

logger = logging.getLogger("topicloom")

Floats: TypeAlias = "npt.NDArray[np.float32]"
Row: TypeAlias = "tuple[str, Floats]"
Method = Literal["cbow", "skip-gram"]
_FASTTEXT_MAGIC = struct.pack("<i", 793_712_314)
_LONGEST_WORD = 1 << 16  # bytes; with no blank in so many, a binary file is no list of words
_BLOCK = 1 << 20
_LONGEST_SENTENCE = 10_000  # tokens; gensim passes over what is beyond
_WORST_COUNT = 1 << 40  # a header beyond it is no header


class WordVectors:
    """Words and their vectors; never changed once made, so copies are the same object.

    Args:
        words: n different words.
        vectors: (n, L) finite numbers.

    Attributes:
        words: the n words.
        vectors: (n, L) float32.

    Raises:
        InputError: the numbers of words and rows differ, a word is there twice, or a number is not finite.
    """

    def __init__(self, words: Iterable[str], vectors: npt.ArrayLike) -> None:
        self.words = tuple(words)
        self.vectors: Floats = np.array(vectors, np.float32)
        if self.vectors.ndim != 2 or not self.vectors.size or len(self.vectors) != len(self.words):
            raise InputError(f"{len(self.words)} words cannot have vectors of shape {self.vectors.shape}; give (n, L)")
        if not np.isfinite(self.vectors).all():
            worst = int((~np.isfinite(self.vectors)).any(1).argmax())
            raise InputError(f"the vector of {self.words[worst]!r} holds a number that is not finite; correct it")
        self._places = {word: place for place, word in enumerate(self.words)}
        if len(self._places) < len(self.words):
            raise InputError("a word is there twice; give each word one vector")
        self.vectors.flags.writeable = False

    @property
    def size(self) -> int:
        """L, the dimensions of a vector."""
        return int(self.vectors.shape[1])

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._places

    def __getitem__(self, word: str) -> Floats:
        vector: Floats = self.vectors[self._places[word]]
        return vector

    def __repr__(self) -> str:
        return f"WordVectors({len(self):,} words of {self.size} dimensions)"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def nearest(self, word: str | npt.ArrayLike, top_n: int = 10) -> list[str]:
        """The words whose vectors point most nearly where that of a word does, or where an (L,) vector does.

        Raises:
            InputError: the word has no vector, or the vector is of another size.
        """
        _require_whole("top_n", top_n)
        if isinstance(word, str):
            if word not in self:
                raise InputError(f"{word!r} has no vector among these {len(self):,}; give another word")
            near = nearest_rows(self.vectors, self[word], top_n + 1)
            return [self.words[row] for row in near if self.words[row] != word][:top_n]
        return [self.words[row] for row in nearest_rows(self.vectors, word, top_n)]

    def rows(self, vocabulary: Sequence[str], seed: int = 0, *, log: bool = True) -> Floats:
        """The vectors of a vocabulary's words, in their order: (V, L).

        A word without one gets a random one, of the mean and the spread that the others have in each dimension.

        Args:
            seed: for the random ones.
            log: tells the share of the words that have one.

        Raises:
            InputError: no word has a vector.
        """
        places = np.array([self._places.get(word, -1) for word in vocabulary], np.intp)  # (V,)
        known = places >= 0
        if not known.any():
            raise InputError(f"none of the {len(places):,} words of the vocabulary has a word vector; {_WHY_NONE}")
        if log:
            _log_share(int(known.sum()), len(places), "the word vectors")
        found = self.vectors[places[known]]  # (n, L)
        spread = found.std(0) if len(found) > 1 else np.full(self.size, np.abs(found).mean())
        rows = np.empty((len(places), self.size), np.float32)
        rows[known] = found
        drawn = np.random.default_rng(seed).standard_normal((int((~known).sum()), self.size))
        rows[~known] = found.mean(0) + drawn * spread
        return rows

    def save(self, path: str | Path) -> None:
        """Writes the word2vec text format, which `read_word_vectors` and gensim read; compressed if it ends in .gz."""
        broken = next((word for word in self.words if not word or any(blank in word for blank in " \t\r\n")), None)
        if broken is not None:
            raise InputError(f"the word {broken!r} is empty or holds a blank, which the format cannot; drop it")
        with atomic_file(Path(path)) as temporary:
            opener: Callable[..., Any] = gzip.open if temporary.suffix == ".gz" else open
            with opener(temporary, "wt", encoding="utf-8", newline="\n") as file:
                file.write(f"{len(self)} {self.size}\n")
                for word, vector in zip(self.words, self.vectors, strict=True):
                    file.write(f"{word} {' '.join(map(str, vector))}\n")


def nearest_rows(rows: npt.ArrayLike, vector: npt.ArrayLike, top_n: int) -> list[int]:
    """Which of the (n, L) rows have the greatest cosine with an (L,) vector, best first; ties in their order.

    Raises:
        InputError: the vector is of another size.
        SettingError: top_n is not a whole number from 1.
    """
    matrix, point = np.asarray(rows, np.float64), np.asarray(vector, np.float64)
    if point.shape != matrix.shape[1:]:
        raise InputError(f"a vector of {matrix.shape[1]} numbers is needed; this has shape {point.shape}")
    _require_whole("top_n", top_n)
    lengths = np.linalg.norm(matrix, axis=1) * np.linalg.norm(point)
    cosine = matrix @ point / np.where(lengths > 0, lengths, 1)
    nearest: list[int] = np.argsort(-cosine, kind="stable")[:top_n].tolist()
    return nearest


def _require_whole(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
        raise SettingError(f"{name}={value!r}: give a whole number from 1")


# Training.


def train_word_vectors(
    X: Corpus | Iterable[Text],
    method: Method = "cbow",
    size: int = 300,
    window: int = 5,
    epochs: int = 20,
    *,
    min_count: int = 1,
    seed: int = 0,
    n_jobs: int = 1,
) -> WordVectors:
    """CBOW or skip-gram vectors (Mikolov et al. 2013), trained by gensim with ten negative samples.

    Args:
        X: a Corpus that kept its texts, which are cut again by its tokenizer and reduced to its vocabulary; or raw
            texts, cut as their language asks; or lists of tokens in their order.
        method: "cbow", or "skip-gram", which is slower and better with rare words.
        size: dimensions L. Few of them bind ETM's topics where its word vectors are fixed.
        window: how many words to either side are a word's context.
        epochs: passes over the corpus.
        min_count: rarer words get no vector.
        seed: the same seed gives the same vectors on the same machine, with n_jobs=1.
        n_jobs: threads (-1: all cores). With more than one, vectors differ from run to run.

    Raises:
        InputError: X has no word order (counts, or a Corpus without texts), or no word is left.
        SettingError: a setting that cannot be.
        MissingExtraError: gensim is not installed.
    """
    if method not in ("cbow", "skip-gram"):
        raise SettingError(f'method={method!r}: give "cbow" or "skip-gram"')
    for name, value in {"size": size, "window": window, "epochs": epochs, "min_count": min_count}.items():
        _require_whole(name, value)
    if n_jobs == 0:
        raise SettingError("n_jobs=0 means nothing; use 1 for one thread, or -1 for all cores")
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
        seed=seed,
        workers=joblib.effective_n_jobs(n_jobs),
        hashfxn=_hash,  # Python's own differs from one process to the next
    )
    model.build_vocab(sentences)
    if not model.wv.index_to_key:
        raise InputError(f"no word is there {min_count} times; give more text, or a smaller min_count")
    model.train(sentences, total_examples=model.corpus_count, epochs=model.epochs)
    return WordVectors(model.wv.index_to_key, model.wv.vectors)


def _hash(word: str) -> int:
    return zlib.crc32(word.encode())


def _sentences(X: Corpus | Iterable[Text]) -> Iterator[list[str]]:
    """Documents as tokens in their order, cut where gensim would stop reading."""
    for tokens in _tokens(X):
        for start in range(0, len(tokens), _LONGEST_SENTENCE):
            yield tokens[start : start + _LONGEST_SENTENCE]


def _tokens(X: Corpus | Iterable[Text]) -> Iterator[list[str]]:
    if isinstance(X, Corpus):
        if X.texts is None or isinstance(X.tokenizer, Pretokenized):
            raise InputError(
                "this corpus holds counts and not the order of its words, which word vectors are trained on; give the "
                "lists of tokens, or a corpus made of raw texts with keep_texts=True"
            )
        known = dict(zip(X.vocabulary, X.vocabulary, strict=True))  # one string a word, whatever the number of tokens
        for text in X.texts:
            yield [known[word] for word in X.tokenizer(text) if word in known]
        return
    if is_matrix(X):
        raise InputError("counts have no word order, which word vectors are trained on; give texts or lists of tokens")
    documents = iter(as_texts(X))
    first = list(islice(documents, 200))
    cut: Tokenizer | CustomTokenizer | Pretokenized = Pretokenized()
    if any(isinstance(document, str) for document in first):
        cut = make_tokenizer(sample=[document for document in first if isinstance(document, str)])
    same: dict[str, str] = {}
    for number, document in enumerate(chain(first, documents)):
        try:
            yield [same.setdefault(word, word) for word in cut(document)]
        except InputError as error:
            raise InputError(f"document {number}: {error}") from None


# Reading.


def read_word_vectors(
    path: str | Path, vocabulary: Iterable[str] | None = None, *, size: int | None = None
) -> WordVectors:
    """Reads word2vec text or binary, GloVe, or fastText (.vec or .bin) files, also with .gz; content tells them apart.

    Of a word that is there twice the first row counts.

    Args:
        path: the file.
        vocabulary: keeps these words only, and memory with them; a fastText .bin file makes vectors of unseen words
            from their parts. The share that was found is logged.
        size: the dimensions that the vectors should have.

    Raises:
        InputError: the file is not such a file, is damaged (the line is named), has vectors of another size, or holds
            no word of the vocabulary.
        MissingExtraError: a fastText .bin file without gensim.
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
            raise InputError(f"{file} holds no word of the vocabulary ({len(wanted or ()):,} words); {_WHY_NONE}")
        made = WordVectors(kept, np.stack(list(kept.values())))
    if size is not None and made.size != size:
        raise _other_size(str(file), made.size, size)
    if wanted is not None:
        _log_share(len(made), len(wanted), str(file))
    return made


def _log_share(found: int, wanted: int, where: str) -> None:
    logger.info("%s of %s words (%.1f %%) found in %s", f"{found:,}", f"{wanted:,}", 100 * found / wanted, where)


_WHY_NONE = "are they of another language, or written in another way (case, lemmas)?"


class _Header(NamedTuple):
    n_words: int
    size: int


def _rows(stream: IO[bytes], name: str, wanted: Container[str] | None, size: int | None) -> Iterator[Row]:
    """The rows of a file, whichever of the three formats it has."""
    line = stream.readline(_BLOCK)
    if not line.strip():
        raise InputError(f"{name} is empty, or begins with a blank line; word vectors are needed")
    header = _header(line, name)
    if header is None:
        return _text_rows(line, stream, name, wanted, None, size)
    if size not in (None, header.size):
        raise _other_size(name, header.size, size)
    block = stream.read(_BLOCK)
    if not block:
        raise InputError(f"{name} ends after its header, which says {header.n_words:,} words; make it again")
    if _is_text(block, header.size):
        return _text_rows(b"", _Rest(block, stream), name, wanted, header, size)
    return _binary_rows(block, stream, name, wanted, header)


def _header(line: bytes, name: str) -> _Header | None:
    """The words and dimensions that a file's first line says, or None where it is a row already (GloVe)."""
    fields = line.split()
    if len(fields) == 2 and all(field.removeprefix(b"-").isdigit() for field in fields):
        header = _Header(int(fields[0]), int(fields[1]))
        if not (0 < header.n_words < _WORST_COUNT and 0 < header.size < _WORST_COUNT):
            raise InputError(f"{name}, line 1: a header of {_shown(line)}; it should be words and dimensions, above 0")
        return header
    if len(fields) < 2 or not _is_number(fields[-1]):
        raise InputError(f"{name}, line 1: {_shown(line)} is neither a header (words and dimensions) nor a word's row")
    return None


def _is_text(block: bytes, size: int) -> bool:
    """Whether the first row after a header is a line of text: a word and `size` fields, all of them printable."""
    line = block.split(b"\n", 1)[0]
    if b"\0" in line or any(byte < 32 and byte not in b"\t\r" for byte in line):
        return False
    return len(line.split()) > 1 or size == 1


class _Rest:
    """A stream some of which was read already, by lines."""

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
    """word n1 n2 ... a line; a word may hold blanks, as a few of GloVe's do."""
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
                f"{name}, line {number}: {n_numbers} numbers, and "
                f"{'line 1 has' if header is None else 'the header says'} {size}; correct or drop the line"
            )
        try:
            word = b" ".join(fields[:-size]).decode()
        except UnicodeDecodeError:
            raise InputError(f"{name}, line {number}: not UTF-8; convert the file to UTF-8") from None
        if wanted is None or word in wanted:
            yield word, _numbers(fields[-size:], name, number)
    if header is not None and n_rows != header.n_words:
        raise InputError(
            f"{name}: the header says {header.n_words:,} words, and there are {n_rows:,} rows; download it again"
        )


def _numbers(fields: list[bytes], name: str, number: int) -> Floats:
    try:
        vector = np.array(fields, np.float32)
    except ValueError:
        wrong = next(field for field in fields if not _is_number(field))
        raise InputError(f"{name}, line {number}: {_shown(wrong)} is not a number") from None
    if not np.isfinite(vector).all():
        raise InputError(f"{name}, line {number}: a number is not finite; correct or drop the line")
    return vector


def _binary_rows(
    block: bytes, stream: IO[bytes], name: str, wanted: Container[str] | None, header: _Header
) -> Iterator[Row]:
    """word, a blank, and 4 L bytes for each; some writers put a line feed after each row."""
    place, n_bytes = 0, 4 * header.size
    for number in range(1, header.n_words + 1):
        blank = block.find(b" ", place)
        while blank < 0 or blank + 1 + n_bytes > len(block):
            more = stream.read(_BLOCK)
            if not more:
                raise InputError(
                    f"{name} is cut short: the header says {header.n_words:,} words, and word {number:,} is not whole"
                )
            block, place = block[place:] + more, 0
            blank = block.find(b" ")
            if blank < 0 and len(block) > _LONGEST_WORD:
                raise InputError(f"{name} is damaged at word {number:,}: no word is that long; download it again")
        try:
            word = block[place:blank].lstrip(b"\n").decode()
        except UnicodeDecodeError:
            raise InputError(f"{name}, word {number:,}: not UTF-8; the file is damaged") from None
        place = blank + 1 + n_bytes
        if wanted is None or word in wanted:
            vector = np.frombuffer(block, "<f4", header.size, blank + 1)
            if not np.isfinite(vector).all():
                raise InputError(f"{name}, word {number:,} ({word!r}): a number is not finite; the file is damaged")
            yield word, vector.astype(np.float32)


def _fasttext_binary(file: Path, wanted: set[str] | None) -> WordVectors:
    try:
        from gensim.models.fasttext import load_facebook_vectors
    except ImportError:
        raise MissingExtraError.of("a fastText .bin file", "gensim", "vectors") from None
    try:
        loaded = load_facebook_vectors(str(file))
    except Exception as error:  # gensim raises whatever the damage leads to
        raise InputError(f"{file} cannot be read as fastText: {(str(error) or repr(error)).splitlines()[0]}") from None
    if wanted is None:
        return WordVectors(loaded.index_to_key, loaded.vectors)
    kept = {word: loaded.get_vector(word) for word in sorted(wanted) if word in loaded}
    if not kept:
        raise InputError(f"{file} holds no word of the vocabulary ({len(wanted):,} words); {_WHY_NONE}")
    return WordVectors(kept, np.stack(list(kept.values())))


@contextmanager
def _opened(file: Path) -> Iterator[IO[bytes]]:
    """The file's bytes, with errors of the file as sentences."""
    try:
        with gzip.open(file) if file.suffix.lower() == ".gz" else file.open("rb") as stream:
            yield stream  # type: ignore[misc]
    except FileNotFoundError:
        raise InputError(f"{file} does not exist; check the path") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InputError(f"{file} is not a whole gzip file; download it again") from None
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}") from None


def _starts_with(file: Path, magic: bytes) -> bool:
    with _opened(file) as stream:
        return stream.read(len(magic)) == magic


def _other_size(name: str, size: int, asked: int | None) -> InputError:
    return InputError(f"{name} has vectors of {size} numbers, and {asked} are asked for (embedding_size); leave it out")


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _shown(line: bytes) -> str:
    return repr(line[:40].decode("utf-8", "replace").rstrip())
