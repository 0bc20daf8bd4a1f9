"""Word vectors: words and their numbers, and how gensim trains them on a corpus."""

from __future__ import annotations

import gzip
import logging
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

import joblib
import numpy as np
import numpy.typing as npt

from ..corpus import Corpus
from ..corpus.inputs import as_texts, is_matrix
from ..errors import InputError, MissingExtraError, SettingError
from ..files import atomic_file
from ..text import (
    CustomTokenizer,
    Pretokenized,
    Tokenizer,
    make_tokenizer,
)
from ..text.counting import Text

logger = logging.getLogger("topicloom")

Floats: TypeAlias = "npt.NDArray[np.float32]"
Method = Literal["cbow", "skip-gram"]
WHY_NONE = "are they of another language, or written in another way (case, lemmas)?"
_LONGEST_SENTENCE = 10_000  # tokens; gensim passes over what is beyond


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
            raise InputError(f"none of the {len(places):,} words of the vocabulary has a word vector; {WHY_NONE}")
        if log:
            log_share(int(known.sum()), len(places), "the word vectors")
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


def log_share(found: int, wanted: int, where: str) -> None:
    """Tells how many of the words that were asked for have a vector."""
    logger.info("%s of %s words (%.1f %%) found in %s", f"{found:,}", f"{wanted:,}", 100 * found / wanted, where)


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
