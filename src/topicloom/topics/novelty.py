"""What is new in documents: those that are near to far more of the other new documents than of the old ones.

Documents are compared by their vectors, and without vectors by the TF-IDF weights of all their words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ..corpus import Corpus
from ..corpus.concatenation import can_split
from ..text.counting import chunked, count_chunks

_N_NEAREST = 15  # documents that are looked at around each one
_LEAST_SHARE = 1 / 3  # of new documents among the nearest ones
_LEAST_RATIO = 4.0  # of the share of new documents that are near to that of old ones
_LEAST_SIMILAR = 0.05  # by TF-IDF: documents with less in common are not near
_FEWEST_NEW = 3  # by TF-IDF, of the nearest documents, which may be fewer than 15
_MOST_OLD = 20_000  # old documents that are compared by words; more are sampled
_BLOCK = 512  # documents whose words are compared at a time


def form_something_new(old: Corpus, new: Corpus, tokenizer: Any, seed: int = 0) -> npt.NDArray[np.bool_]:
    """Return which new documents form something that the old ones do not have, (n_new,).

    At least a third of the 15 documents that are nearest to such a document are new, and four times as many as there
    would be if old and new documents were alike. A topic that merely has more documents than before is not new.

    Args:
        old: documents.
        new: others. Vectors are used if both have them, and otherwise all words of the texts.
        tokenizer: the tokenizer, for words that the corpora leave out.
        seed: of a sample of very many old documents.

    >>> import topicloom as tl
    >>> old = tl.Corpus.from_texts(["cat dog", "dog mouse", "rain sun", "sun snow"] * 10, language="en", min_df=1)
    >>> new = tl.Corpus.from_texts(["cat dog", "virus fever"] * 6, language="en", min_df=1)
    >>> form_something_new(old, new, old.tokenizer)[:2]
    array([False,  True])
    """
    if len(new) < 2 or not len(old):
        return np.zeros(len(new), np.bool_)
    if old.vectors is not None and new.vectors is not None:
        ids, similar = _near_by_vectors(old, new)
        n_old, fewest = len(old), 1
    else:
        if len(old) > _MOST_OLD:
            old = old[np.sort(np.random.default_rng(seed).choice(len(old), _MOST_OLD, replace=False))]
        ids, similar = _near_by_words(old, new, tokenizer)
        n_old, fewest = len(old), _FEWEST_NEW
    n_near = similar.sum(axis=1)
    n_new = ((ids >= n_old) & similar).sum(axis=1)
    of_new, of_old = n_new / (len(new) - 1), np.maximum((n_near - n_new) / n_old, 1e-12)  # the shares that are near
    is_new = (n_new >= _LEAST_SHARE * n_near) & (of_new >= _LEAST_RATIO * of_old) & (n_new >= fewest)
    return np.asarray(is_new)


def _near_by_vectors(old: Corpus, new: Corpus) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the nearest documents of new ones among all, (n_new, 15), and which of them are there."""
    from ..embeddings.neighbours import VectorIndex  # it needs PyTorch

    assert old.vectors is not None
    assert new.vectors is not None
    parts = [np.asarray(each, np.float32) for each in (old.vectors, new.vectors)]
    index = VectorIndex.of(np.concatenate(parts))
    ids, _ = index.nearest(parts[1], min(_N_NEAREST + 1, len(index)))
    own = np.arange(len(old), len(old) + len(new))[:, None]
    return ids, (ids >= 0) & (ids != own)


def _near_by_words(old: Corpus, new: Corpus, tokenizer: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the same by the cosine of TF-IDF weights."""
    weights = _tf_idf([old, new], tokenizer)
    units, n_old = weights.T.tocsr(), len(old)
    found, similar = [], []
    for first in range(n_old, weights.shape[0], _BLOCK):
        cosines = (weights[first : first + _BLOCK] @ units).toarray()  # (B, n)
        rows = np.arange(len(cosines))
        cosines[rows, first + rows] = 0  # a document is not near to itself
        n_nearest = min(_N_NEAREST, cosines.shape[1] - 1)
        ids = np.argpartition(-cosines, n_nearest, axis=1)[:, :n_nearest]
        found.append(ids)
        similar.append(np.take_along_axis(cosines, ids, axis=1) >= _LEAST_SIMILAR)
    return np.concatenate(found), np.concatenate(similar)


def _tf_idf(corpora: Sequence[Corpus], tokenizer: Any) -> sp.csr_array:
    """Return TF-IDF weights of all documents with length 1, over the words of at least two of them."""
    from sklearn.feature_extraction.text import TfidfTransformer

    columns: dict[str, int] = {}
    whole = can_split(tokenizer) and all(corpus.texts is not None for corpus in corpora)
    parts: list[tuple[Iterable[str], Any]] = []
    for corpus in corpora:
        if whole:
            assert corpus.texts is not None
            parts += [(part.words, part.counts) for part in count_chunks(chunked(corpus.texts), tokenizer)]
        else:
            parts.append((corpus.vocabulary, corpus.counts))
    placed = [(np.array([columns.setdefault(word, len(columns)) for word in words], np.int64), c) for words, c in parts]
    blocks = [
        sp.csr_array((c.data, places[c.indices], c.indptr), shape=(c.shape[0], len(columns))) for places, c in placed
    ]
    counts = sp.csr_array(sp.vstack(blocks, format="csr"))
    counts = counts[:, np.flatnonzero(np.bincount(counts.indices, minlength=len(columns)) >= 2)]
    return sp.csr_array(TfidfTransformer(sublinear_tf=True).fit_transform(counts))
