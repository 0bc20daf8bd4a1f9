"""WordVectors: words and their vectors, in memory."""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from ..display import html_table
from ..errors import InputError
from ..files import atomic_file
from ..settings import require_whole

logger = logging.getLogger("topicloom")

Floats: TypeAlias = "npt.NDArray[np.float32]"
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
    """

    def __init__(self, words: Iterable[str], vectors: npt.ArrayLike) -> None:
        self.words = tuple(words)
        self.vectors: Floats = np.array(vectors, np.float32)
        if self.vectors.ndim != 2 or not self.vectors.size or len(self.vectors) != len(self.words):
            raise InputError(
                f"{len(self.words)} words cannot have vectors of shape {self.vectors.shape}; give one row for each word"
            )
        if not np.isfinite(self.vectors).all():
            worst = int((~np.isfinite(self.vectors)).any(1).argmax())
            raise InputError(f"the vector of {self.words[worst]!r} contains a number that is not finite; correct it")
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
        """Return the number of words and the size of a vector, for reports."""
        return {"words": len(self), "size": self.size}

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._places

    def __getitem__(self, word: str) -> Floats:
        vector: Floats = self.vectors[self._places[word]]
        return vector

    def __repr__(self) -> str:
        return f"WordVectors({len(self):,} words of {self.size} dimensions)"

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
        """
        require_whole("top_n", top_n)
        if isinstance(word, str):
            if word not in self:
                raise InputError(f"{word!r} is not among these {len(self):,} words with a vector; give another word")
            near = nearest_rows(self.vectors, self[word], top_n + 1)
            return [self.words[row] for row in near if self.words[row] != word][:top_n]
        return [self.words[row] for row in nearest_rows(self.vectors, word, top_n)]

    def rows(self, vocabulary: Sequence[str], random_state: int = 0, *, log: bool = True) -> Floats:
        """Return the vectors of a vocabulary's words, in their order: (V, L).

        A word without a vector gets a random one, with the mean and the spread of the others in each dimension.

        Args:
            random_state: the seed of the random vectors.
            log: whether to log the share of the words that have a vector.

        Raises:
            InputError: no word has a vector.
        """
        places = np.array([self._places.get(word, -1) for word in vocabulary], np.intp)  # (V,)
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

    def save(self, path: str | Path) -> None:
        """Write the word2vec text format, which `read_word_vectors` and gensim read; compressed if it ends in .gz.

        Raises:
            InputError: a word is empty, contains white space or is not valid Unicode; the format cannot express it.
        """
        broken = next((word for word in self.words if not _fits_text_format(word)), None)
        if broken is not None:
            raise InputError(
                f"the word {broken!r} is empty, contains white space or is not valid Unicode, which the word2vec "
                "format cannot express; leave it out"
            )
        with atomic_file(Path(path)) as temporary:
            opener: Callable[..., Any] = gzip.open if temporary.suffix == ".gz" else open
            with opener(temporary, "wt", encoding="utf-8", newline="\n") as file:
                file.write(f"{len(self)} {self.size}\n")
                for word, vector in zip(self.words, self.vectors, strict=True):
                    file.write(f"{word} {' '.join(map(str, vector))}\n")


def log_share(found: int, wanted: int, where: str) -> None:
    """Log how many of the wanted words have a vector."""
    logger.info("%s of %s words (%.1f %%) found in %s", f"{found:,}", f"{wanted:,}", 100 * found / wanted, where)


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


def _fits_text_format(word: str) -> bool:
    return bool(word) and not any(c in " \t\r\n" or "\ud800" <= c <= "\udfff" for c in word)
