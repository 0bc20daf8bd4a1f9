"""Training of word vectors on the texts of a corpus, by gensim."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Literal

import joblib

from ..corpus import Corpus
from ..corpus.frames import read_frame
from ..corpus.inputs import kind_of
from ..errors import InputError, MissingExtraError, SettingError
from ..settings import require_seed, require_whole
from ..text import AnyTokenizer, Pretokenized, make_tokenizer
from ..text.counting import Text
from .word_vectors import WordVectors

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
