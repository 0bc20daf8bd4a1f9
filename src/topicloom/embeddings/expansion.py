"""Document expansion: a document is given words of the documents whose vectors are nearest (Tao et al. 2006).

Short texts have few words in common, even if they are about the same thing. Their sentence vectors are close. A
document d with the counts x_d therefore gets mu further tokens, with the frequencies of words in its n nearest
documents:

    x'_d = x_d + mu p(w | neighbours of d)

This is Dirichlet smoothing (Zhai & Lafferty 2001) with the neighbours instead of the corpus. Its weight falls by itself
as documents grow longer. The mu tokens are whole: of each word, a document gets the expected number of tokens, rounded
up or down by systematic sampling. All words of 20 neighbours would make a row many times as long.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ..corpus import Corpus
from ..text.counting import Counts
from ..text.strings import rows_of
from .document_vectors import unit_vectors
from .neighbours import Ids, Similarities, VectorIndex

_BLOCK = 4096  # documents whose neighbours' words are counted at a time
_UNITS = 1 << 16  # fractional counts are rounded to multiples of 1 / 65,536, so that sums of them are exact
_GOLDEN = 0.6180339887498949
# Documents share words with their neighbours if the excess over other documents' neighbours is so many standard errors.
_LEAST_EXCESS, _FEWEST_COMPARED, _MOST_COMPARED = 4.0, 200, 1 << 14


@dataclass(frozen=True, eq=False, repr=False)
class ExpandedCorpus(Corpus):
    """Documents whose counts include words of their neighbours.

    Attributes:
        own: (n_docs, V) the documents' own counts.
    """

    own: Counts = field(kw_only=True)

    @property
    def given(self) -> Corpus:
        """The documents without the words of their neighbours."""
        return Corpus(self.own, self.vocabulary, self.fields, self.tokenizer, self.settings)

    def subset(self, rows: Any) -> ExpandedCorpus:
        chosen = np.atleast_1d(np.arange(self.n_docs)[rows])
        some = super().subset(chosen)
        assert isinstance(some, ExpandedCorpus)
        return replace(some, own=rows_of(self.own, chosen))


def given(corpus: Corpus) -> Corpus:
    """Return documents without the words of their neighbours, if they have any."""
    return corpus.given if isinstance(corpus, ExpandedCorpus) else corpus


def shares_words(documents: ExpandedCorpus) -> bool:
    """Return whether documents share more words with their own neighbours than with the neighbours of others.

    If vectors are of other texts, or in another order, the words that documents get have nothing to do with them. The
    share of these words that a document also has is compared with the same share of another document's words. The
    answer is also True for less than 200 documents with words and neighbours, which tell too little.

    >>> import numpy as np
    >>> import topicloom as tl
    >>> from topicloom.embeddings.expansion import DocumentExpansion, shares_words
    >>> random = np.random.default_rng(0)
    >>> group = random.integers(2, size=400)
    >>> counts = random.poisson(np.where(group[:, None] == [0, 0, 1, 1], 2, 0.5))
    >>> vectors = random.normal(group[:, None] * [1, -1], 0.5)
    >>> for rows in (vectors, random.permutation(vectors)):
    ...     corpus = tl.Corpus.from_counts(counts, vectors=rows)
    ...     shares_words(DocumentExpansion(corpus.counts, corpus.vectors, 20, 20).of_training(corpus))
    True
    False
    """
    lent = sp.csr_array(documents.counts - documents.own)  # (D, V)
    n_lent = lent.sum(axis=1)
    compared = np.flatnonzero((n_lent > 0) & (documents.own.sum(axis=1) > 0))
    if len(compared) < _FEWEST_COMPARED:
        return True
    compared = compared[:: -(-len(compared) // _MOST_COMPARED)]
    has = sp.csr_array(documents.own[compared] > 0)  # (n, V)
    shares = sp.csr_array(lent[compared] / n_lent[compared][:, None])  # (n, V)
    others = np.random.default_rng(0).permutation(len(compared))
    excess = has.multiply(shares).sum(axis=1) - has.multiply(shares[others]).sum(axis=1)  # (n,)
    return bool(excess.mean() > _LEAST_EXCESS * excess.std() / np.sqrt(len(excess)))


class DocumentExpansion:
    """Gives documents words of their nearest training documents.

    Args:
        counts: (D, V) the counts of the training documents.
        vectors: (D, E) their vectors; a zero vector stands for no vector. They are kept as float16 with unit length.
        n_neighbours: the number of neighbours n.
        n_tokens: the number mu of tokens that a document gets from them.

    Examples:
        >>> import numpy as np
        >>> import topicloom as tl
        >>> from topicloom.embeddings.expansion import DocumentExpansion
        >>> vectors = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
        >>> corpus = tl.Corpus.from_counts([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]], vectors=vectors)
        >>> expansion = DocumentExpansion(corpus.counts, corpus.vectors, n_neighbours=1, n_tokens=2)
        >>> expansion.of_training(corpus).counts.toarray()
        array([[1., 2., 0.],
               [2., 1., 0.],
               [0., 0., 3.],
               [0., 0., 3.]], dtype=float32)
        >>> new = tl.Corpus.from_counts([[0, 0, 0]], corpus.vocabulary, vectors=vectors[2:3])
        >>> expansion.of_new(new).counts.toarray()
        array([[0., 0., 2.]], dtype=float32)
    """

    def __init__(self, counts: Counts, vectors: npt.NDArray[Any], n_neighbours: int, n_tokens: int) -> None:
        # Rounding to float16 moves a cosine by 1e-3.
        self.counts, self.vectors = counts, unit_vectors(vectors, np.float16)
        self.n_neighbours, self.n_tokens = n_neighbours, n_tokens

    @classmethod
    def of_arrays(
        cls, arrays: dict[str, npt.NDArray[Any]], n_words: int, n_neighbours: int, n_tokens: int
    ) -> DocumentExpansion:
        """Return the expansion with these `arrays`, for documents over `n_words` words.

        Raises:
            ValueError: the arrays do not fit together.
        """
        vectors, parts = arrays["vectors"], tuple(arrays[name] for name in ("data", "indices", "indptr"))
        counts = sp.csr_array(parts, shape=(len(vectors), n_words))
        counts.check_format(full_check=True)
        if vectors.ndim != 2 or not (np.isfinite(counts.data).all() and (counts.data >= 0).all()):
            raise ValueError("the training documents have impossible counts or vectors")
        new = cls.__new__(cls)
        new.counts, new.vectors, new.n_neighbours, new.n_tokens = counts, vectors, n_neighbours, n_tokens
        return new

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return arrays by name, from which `of_arrays` makes the same expansion."""
        return {"vectors": self.vectors} | {name: getattr(self.counts, name) for name in ("data", "indices", "indptr")}

    @cached_property
    def _index(self) -> VectorIndex:
        return VectorIndex.of(self.vectors)

    @property
    def _most(self) -> int:
        """The number of neighbours, or of all training documents if these are fewer."""
        return min(self.n_neighbours, len(self.vectors))

    def of_training(self, corpus: Corpus) -> ExpandedCorpus:
        """Return the training documents with words of their neighbours. A document is no neighbour of its own."""
        return self._expanded(corpus, self._index.neighbours(self._most))

    def of_new(self, corpus: Corpus) -> ExpandedCorpus:
        """Return new documents with words of the training documents that are nearest to them."""
        assert corpus.vectors is not None
        return self._expanded(corpus, self._index.nearest(corpus.vectors, self._most))

    def _expanded(self, corpus: Corpus, found: tuple[Ids, Similarities]) -> ExpandedCorpus:
        neighbours, similarities = found  # (M, n) each
        lent = self.lent(np.where(similarities > 0, neighbours, -1))
        counts = sp.csr_array(corpus.counts + lent)
        counts.sort_indices()
        return ExpandedCorpus(
            counts, corpus.vocabulary, corpus.fields, corpus.tokenizer, corpus.settings, own=corpus.counts
        )

    def lent(self, neighbours: Ids) -> Counts:
        """Return the tokens that documents get from their neighbours, (M, V), whole numbers.

        Args:
            neighbours: (M, n) training documents; -1 for none.
        """
        parts = [self._lent(neighbours[start : start + _BLOCK]) for start in range(0, max(len(neighbours), 1), _BLOCK)]
        return sp.csr_array(sp.vstack(parts, format="csr")) if len(parts) > 1 else parts[0]

    def _lent(self, neighbours: Ids) -> Counts:
        is_known = neighbours >= 0
        starts = np.concatenate([[0], np.cumsum(is_known.sum(axis=1))])
        pattern = (np.ones(int(starts[-1]), np.float64), neighbours[is_known], starts)
        words = sp.csr_array(pattern, shape=(len(neighbours), self.counts.shape[0])) @ self.counts  # (M, V)
        words = sp.csr_array(words)
        words.sort_indices()
        phases = np.modf(_GOLDEN * np.where(is_known, neighbours + 1, 0).sum(axis=1))[0]  # (M,)
        words.data = systematic(words, self.n_tokens, phases)
        words.eliminate_zeros()
        return words


def pools_of(vectors: npt.NDArray[Any], n_neighbours: int = 20, most: int = 20_000) -> Ids:
    """Return documents, each with those whose vectors are nearest.

    Args:
        vectors: (D, E) a vector for each document; a zero vector stands for no vector.
        n_neighbours: the number n of nearest documents.
        most: the greatest number of pools. If more documents have vectors, every second or third of them has a pool,
            and so on, but a pool consists of the nearest ones of all documents.

    Returns:
        (M, 1 + n) documents, the one that has the pool first; -1 for none.

    >>> import numpy as np
    >>> from topicloom.embeddings.expansion import pools_of
    >>> pools_of(np.array([[1, 0], [0, 1], [0, 0], [3, 1]], np.float32), n_neighbours=1)
    array([[0, 3],
           [1, 3],
           [3, 0]])
    """
    directed = np.flatnonzero(vectors.any(axis=1))
    if not len(directed):
        return np.empty((0, 1 + n_neighbours), np.int64)
    index = VectorIndex.of(vectors)
    if len(directed) <= most:
        return np.concatenate([directed[:, None], index.neighbours(n_neighbours)[0][directed]], axis=1)
    centres = directed[:: -(-len(directed) // most)]
    found = index.nearest(np.asarray(vectors[centres]), 1 + n_neighbours)[0]
    is_other = found != centres[:, None]
    is_other[is_other.all(axis=1), -1] = False  # equal vectors have taken the place of the document itself
    others = found[is_other].reshape(len(centres), n_neighbours)
    return np.concatenate([centres[:, None], others], axis=1)


def systematic(weights: Counts, n_drawn: int, phases: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Draw tokens in proportion to weights, by systematic sampling (Madow 1949).

    A row of weights is cut into `n_drawn` intervals of equal weight. The point at the `phases` of each interval lies in
    a word, of which a token is drawn. The number of tokens of a word is therefore the expected number, rounded up or
    down, and a row does not depend on other rows.

    Args:
        weights: (M, V) non-negative numbers; those that are not whole are rounded to multiples of 1 / 65,536.
        n_drawn: the number of tokens for each row that has a weight.
        phases: (M,) numbers from 0 to 1.

    Returns:
        (N,) the number of tokens at each non-zero of `weights`.
    """
    units = np.rint(weights.data.astype(np.float64) * _UNITS).astype(np.int64)  # (N,)
    lengths = np.diff(weights.indptr)
    ends = np.concatenate([[0], np.cumsum(units)])  # exact
    before = np.repeat(ends[weights.indptr[:-1]], lengths)  # (N,)
    totals = np.repeat(ends[weights.indptr[1:]] - ends[weights.indptr[:-1]], lengths).clip(1)
    phase = np.repeat(phases, lengths)
    first, last = (np.floor(n_drawn * ((edge - before) / totals) + phase) for edge in (ends[:-1], ends[1:]))  # (N,)
    drawn: npt.NDArray[np.float32] = (last - first).astype(np.float32)
    return drawn
