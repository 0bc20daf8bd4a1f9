"""How well the top words of a topic go together, by how often they meet in a reference corpus or by their vectors.

`c_v`, `c_npmi`, `c_uci`, `u_mass` and `c_w2v` are what gensim 4.4's CoherenceModel computes; docs/coherence.md says
where gensim has no number and these have one. `document_npmi` is the form that topic-model papers report.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from .confirmation import (
    cosines,
    indirect_cosine,
    mean_log_conditional,
    npmi,
    npmi_without_epsilon,
    pair_mean,
    pmi,
)
from .cooccurrence import Counting, Reference
from .pipeline import (
    Coherence,
    Floats,
    Ids,
    Topics,
    first_words,
    ids_of,
    measure,
    meetings,
    of_documents,
    of_sequences,
)

EPSILON = 1e-12


def c_v(
    topics: Topics,
    reference: Reference | Iterable[Sequence[Hashable]],
    *,
    top_n: int = 10,
    window: int | None = 110,
    epsilon: float = EPSILON,
    counting: Counting = "gensim",
) -> Coherence:
    """Cosine between each word's NPMI with the topic's words and the sum of those of all its words, over windows.

    The word alone in its topic has 1, as in gensim.

    Args:
        topics: each topic's words, best first; or word ids, of a reference made of ids.
        reference: a `Reference`, which keeps what it counted, or documents as lists of tokens.
        top_n: words of a topic that count.
        window: tokens in a window; None is the whole document.
        epsilon: added to the share of windows that hold a pair, from 1e-15 to 1.
        counting: "gensim", or "exact" (see `Reference.joint`).

    Raises:
        ValueError: a setting that cannot be, or topics that are no lists of words.

    Source: Röder, Both & Hinneburg 2015, sections 3.3 and 4.
    """

    def confirm(together: Floats, ids: Ids, n_windows: int) -> float:
        _, first, repeats = np.unique(ids, return_index=True, return_counts=True)
        return indirect_cosine(npmi(together[np.ix_(first, first)], n_windows, epsilon), repeats)

    settings = {"top_n": top_n, "window": window, "epsilon": epsilon, "counting": counting}
    return measure("c_v", topics, of_sequences(reference), confirm, settings, least=1)


def c_npmi(
    topics: Topics,
    reference: Reference | Iterable[Sequence[Hashable]],
    *,
    top_n: int = 10,
    window: int | None = 10,
    epsilon: float = EPSILON,
    counting: Counting = "gensim",
) -> Coherence:
    """Mean normalised pointwise mutual information of a topic's word pairs, over windows; settings as in `c_v`.

    log((p(i, j) + epsilon) / (p(i) p(j))) / -log(p(i, j) + epsilon), from about -1 to 1; a pair that is in every
    window has -1, which is what the formula gives it.

    Source: Bouma 2009; Aletras & Stevenson 2013; Röder, Both & Hinneburg 2015.
    """

    def confirm(together: Floats, ids: Ids, n_windows: int) -> float:
        return pair_mean(npmi(together, n_windows, epsilon))

    settings = {"top_n": top_n, "window": window, "epsilon": epsilon, "counting": counting}
    return measure("c_npmi", topics, of_sequences(reference), confirm, settings)


def c_uci(
    topics: Topics,
    reference: Reference | Iterable[Sequence[Hashable]],
    *,
    top_n: int = 10,
    window: int | None = 10,
    epsilon: float = EPSILON,
    counting: Counting = "gensim",
) -> Coherence:
    """Mean pointwise mutual information of a topic's word pairs, over windows; settings as in `c_v`.

    log((p(i, j) + epsilon) / (p(i) p(j))), natural logarithm.

    Source: Newman, Lau, Grieser & Baldwin 2010.
    """

    def confirm(together: Floats, ids: Ids, n_windows: int) -> float:
        return pair_mean(pmi(together, n_windows, epsilon))

    settings = {"top_n": top_n, "window": window, "epsilon": epsilon, "counting": counting}
    return measure("c_uci", topics, of_sequences(reference), confirm, settings)


def u_mass(
    topics: Topics,
    reference: Any,
    vocabulary: Sequence[str] | None = None,
    *,
    top_n: int = 10,
    epsilon: float = EPSILON,
) -> Coherence:
    """Mean of log((p(i, j) + epsilon) / p(j)) over a topic's pairs with j ranked before i, over documents.

    A word of the vocabulary that no document holds stays in its topic, as in gensim: its pairs have 0 where it is the
    one ranked before, and log(epsilon / p(j)) otherwise. It is reported as unseen all the same.

    Args:
        topics: each topic's words, best first; or word ids.
        reference: (D, V) counts, a `Reference`, or documents as lists of tokens.
        vocabulary: the V words of counts, where topics are words.
        top_n: words of a topic that count.
        epsilon: added to the share of documents that hold a pair, from 1e-15 to 1.

    Raises:
        ValueError: as `c_v`.

    Source: Mimno, Wallach, Talley, Leenders & McCallum 2011, with gensim's epsilon for their 1 / D.
    """

    def confirm(together: Floats, ids: Ids, n_documents: int) -> float:
        return mean_log_conditional(together, n_documents, epsilon)

    settings = {"top_n": top_n, "window": None, "epsilon": epsilon}
    return measure("u_mass", topics, of_documents(reference, vocabulary), confirm, settings, keep_unseen=True)


def c_w2v(
    topics: Topics, vectors: Any, words: Sequence[str] | None = None, *, top_n: int = 10, name: str = ""
) -> Coherence:
    """Mean cosine between the vector of each of a topic's words and the mean vector of them all.

    Args:
        topics: each topic's words; or word ids, which are rows of `vectors`.
        vectors: (V, L) numbers, or anything that gives a word's vector by `vectors[word]` and otherwise raises
            KeyError, such as gensim's KeyedVectors or `topicloom.WordVectors`.
        words: the word of each row, where vectors are numbers and topics are words.
        top_n: words of a topic that count.
        name: what the result calls the vectors.

    Raises:
        ValueError: words and rows differ in number, or topics that are no lists of words.

    Source: gensim's c_w2v; the idea is of Fang, Macdonald, Ounis & Habel 2016.
    """
    find = _finder(vectors, words)
    values, undefined = [], []
    unseen: dict[Hashable, None] = {}
    for number, topic in enumerate(first_words(topics, top_n)):
        found = {word: find(word) for word in dict.fromkeys(topic)}
        unseen |= {word: None for word, vector in found.items() if vector is None}
        known = [vector for word in topic if (vector := found[word]) is not None]
        if not known:
            undefined.append(number)
        values.append(float(cosines(np.stack(known), np.mean(known, axis=0)).mean()) if known else 0.0)
    return Coherence(np.array(values), "c_w2v", top_n, reference=name, unseen=tuple(unseen), undefined=tuple(undefined))


def document_npmi(topics: Topics, counts: Any, top_n: int = 10, *, vocabulary: Sequence[str] | None = None) -> Floats:
    """Normalised pointwise mutual information of a topic's word pairs, over whole documents.

    log(p(i, j) / (p(i) p(j))) / -log p(i, j), with p the share of documents; -1 for words that never meet, unseen ones
    among them, 1 for words in every document; 0 for a topic without a pair.

    Args:
        topics: each topic's word ids, best first; or words.
        counts: (D, V) counts of the reference corpus, or a `Reference`, which keeps what it counted.
        top_n: words of a topic that count.
        vocabulary: the V words, where topics are words.

    Returns:
        (K,) means over the pairs of each topic, from -1 to 1.

    Source: Bouma 2009; Lau, Newman & Baldwin 2014.
    """
    reference = of_documents(counts, vocabulary)
    n_documents, ids = reference.n_documents, ids_of(reference, first_words(topics, top_n))
    return np.array([pair_mean(npmi_without_epsilon(met, n_documents)) for met in meetings(reference, ids, None)])


def _finder(vectors: Any, words: Sequence[str] | None) -> Callable[[Hashable], Floats | None]:
    """A function from a word to its vector, None where it has none."""
    if getattr(vectors, "ndim", 0) != 2:
        rows: dict[Hashable, int] | None = None
    elif words is not None and len(words) != len(vectors):
        raise ValueError(f"there are {len(words)} words and {len(vectors)} vectors; give one for each")
    else:
        rows = {word: row for row, word in enumerate(range(len(vectors)) if words is None else words)}

    def find(word: Hashable) -> Floats | None:
        try:
            return np.asarray(vectors[word if rows is None else rows[word]], np.float64)
        except KeyError:
            return None

    return find
