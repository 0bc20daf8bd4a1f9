"""Coherence: how well the top words of a topic go together, by a reference corpus or by word vectors.

`c_v`, `c_npmi`, `c_uci`, `u_mass` and `c_w2v` give the values of gensim 4.4's CoherenceModel; docs/coherence.md lists
the cases in which gensim gives no number and these do. `document_npmi` is the form that papers on topic models report.

All return a `Measured`: its value is the mean over topics, and `per_topic` has the value of each.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ..errors import InputError
from .cooccurrence import ORDER_UNKNOWN, Counting, Reference
from .measured import Floats, Measured, TopicWords, first_words

Ids: TypeAlias = npt.NDArray[np.int64]

EPSILON = 1e-12

# Formulas of confirmation, which coherence measures share (Röder, Both & Hinneburg 2015, section 3.3).


def pmi(together: Floats, n_windows: int, epsilon: float) -> Floats:
    """(n, n) log((p(i, j) + epsilon) / (p(i) p(j))).

    Args:
        together: (n, n) windows that contain both words; the diagonal is above 0.
        n_windows: number of windows of the reference.
        epsilon: added to the share of windows that contain a pair.
    """
    joint = together / n_windows
    alone = np.diag(joint)
    return np.asarray(np.log((joint + epsilon) / np.outer(alone, alone)))


def npmi(together: Floats, n_windows: int, epsilon: float) -> Floats:
    """(n, n) pmi / -log(p(i, j) + epsilon); for a pair in every window the formula gives -1."""
    return np.asarray(pmi(together, n_windows, epsilon) / -np.log(together / n_windows + epsilon))


def npmi_without_epsilon(together: Floats, n_windows: int) -> Floats:
    """(n, n) NPMI with its limits: -1 for pairs in no window, 1 for pairs in every window."""
    joint = together / max(n_windows, 1)
    alone = np.diag(joint)
    with np.errstate(divide="ignore", invalid="ignore"):
        values = np.log(joint / np.outer(alone, alone)) / -np.log(joint)
    values[joint == 0] = -1.0
    values[joint >= 1] = 1.0
    return np.asarray(values)


def mean_log_conditional(together: Floats, n_windows: int, epsilon: float) -> float:
    """Mean of log((p(i, j) + epsilon) / p(j)) over the pairs in which j ranks before i; 0 where j is in no window."""
    later, before = np.tril_indices(len(together), -1)
    given = together[before, before]
    seen = given > 0
    joint = together[later, before][seen] / n_windows
    return float(np.log((joint + epsilon) / (given[seen] / n_windows)).sum() / len(given))


def indirect_cosine(values: Floats, repeats: npt.NDArray[np.int64]) -> float:
    """Mean cosine between each word's vector of confirmations and the sum of all these vectors.

    Args:
        values: (n, n) direct confirmations among a topic's n different words.
        repeats: (n,) how often each word is in the topic. It counts as often in the mean, and as an entry of vectors.
    """
    vectors = values * repeats
    return float(np.average(cosines(vectors, repeats @ vectors), weights=repeats))


def cosines(vectors: Floats, other: Floats) -> Floats:
    """(n,) cosines between (n, L) vectors and one vector (L,); 0 where either is zero."""
    norms = np.linalg.norm(vectors, axis=1) * np.linalg.norm(other)
    return np.asarray(np.divide(vectors @ other, norms, out=np.zeros(len(vectors)), where=norms > 0))


def pair_mean(values: Floats) -> float:
    """Mean of a symmetric (n, n) array above its diagonal; 0 if there is no pair."""
    pairs = values[np.triu_indices(len(values), 1)]
    return float(pairs.mean()) if len(pairs) else 0.0


# The measures.


def c_v(
    topics: TopicWords,
    reference: Any,
    *,
    top_n: int = 10,
    window: int | None = 110,
    epsilon: float = EPSILON,
    counting: Counting = "gensim",
) -> Measured:
    """Mean cosine between a word's NPMI vector and the sum of the NPMI vectors of all words of its topic.

    A word's NPMI vector has its NPMI with each word of the topic, counted over windows. A topic of a single word has
    the value 1, which is gensim's.

    Args:
        topics: each topic's words, best first; or word ids, if the reference is made of ids.
        reference: a `topicloom.Corpus` that keeps its texts, documents as lists of tokens, or a `Reference`, which
            remembers what it has counted. For whole documents (window=None), counts are enough.
        top_n: the number of words of a topic that are used.
        window: tokens in a window; None is the whole document.
        epsilon: added to the share of windows that contain a pair, from 1e-15 to 1.
        counting: "gensim" takes a word to be gone when the first of its occurrences leaves the window, until it enters
            again; "exact" counts every window that contains both words.

    Returns:
        Measured, with `per_topic`, `undefined` (topics without a known word) and `unseen`.

    Raises:
        InputError: a setting is impossible, the topics are not lists of words, or the reference cannot be used.

    Source: Röder, Both & Hinneburg 2015, sections 3.3 and 4.

    Examples:
        >>> from topicloom.metrics import c_v
        >>> documents = [["cat", "dog"], ["cat", "dog"], ["rain", "sun"], ["rain", "sun", "cat"]]
        >>> found = c_v([["cat", "dog"], ["cat", "sun"]], documents)
        >>> bool(found.per_topic[0] > found.per_topic[1])
        True
    """

    def confirm(together: Floats, ids: Ids, n_windows: int) -> float:
        _, first, repeats = np.unique(ids, return_index=True, return_counts=True)
        return indirect_cosine(npmi(together[np.ix_(first, first)], n_windows, epsilon), repeats)

    return _over_windows("c_v", topics, reference, confirm, top_n, window, epsilon, counting, least=1)


def c_npmi(
    topics: TopicWords,
    reference: Any,
    *,
    top_n: int = 10,
    window: int | None = 10,
    epsilon: float = EPSILON,
    counting: Counting = "gensim",
) -> Measured:
    """Mean normalised pointwise mutual information (NPMI) of a topic's word pairs, counted over windows.

    log((p(i, j) + epsilon) / (p(i) p(j))) / -log(p(i, j) + epsilon), from about -1 to 1. A pair that is in every window
    has the value -1, because epsilon turns its 0 / 0 into that.

    Args:
        topics: each topic's words, best first; or word ids, if the reference is made of ids.
        reference: a `topicloom.Corpus` that keeps its texts, documents as lists of tokens, or a `Reference`, which
            remembers what it has counted. For whole documents (window=None), counts are enough.
        top_n: the number of words of a topic that are used.
        window: tokens in a window; None is the whole document.
        epsilon: added to the share of windows that contain a pair, from 1e-15 to 1.
        counting: "gensim" takes a word to be gone when the first of its occurrences leaves the window, until it enters
            again; "exact" counts every window that contains both words.

    Returns:
        Measured, with `per_topic`, `undefined` (topics with fewer than two known words) and `unseen`.

    Raises:
        InputError: a setting is impossible, the topics are not lists of words, or the reference cannot be used.

    Source: Bouma 2009; Aletras & Stevenson 2013; Röder, Both & Hinneburg 2015.

    Examples:
        >>> from topicloom.metrics import c_npmi
        >>> documents = [["cat", "dog"], ["cat", "dog"], ["rain", "sun"], ["rain", "sun", "cat"]]
        >>> c_npmi([["cat", "dog"], ["cat", "sun"]], documents).per_topic.round(2).tolist()
        [0.42, -0.29]
    """

    def confirm(together: Floats, ids: Ids, n_windows: int) -> float:
        return pair_mean(npmi(together, n_windows, epsilon))

    return _over_windows("c_npmi", topics, reference, confirm, top_n, window, epsilon, counting)


def c_uci(
    topics: TopicWords,
    reference: Any,
    *,
    top_n: int = 10,
    window: int | None = 10,
    epsilon: float = EPSILON,
    counting: Counting = "gensim",
) -> Measured:
    """Mean pointwise mutual information (PMI) of a topic's word pairs, counted over windows.

    log((p(i, j) + epsilon) / (p(i) p(j))), with the natural logarithm.

    Args:
        topics: each topic's words, best first; or word ids, if the reference is made of ids.
        reference: a `topicloom.Corpus` that keeps its texts, documents as lists of tokens, or a `Reference`, which
            remembers what it has counted. For whole documents (window=None), counts are enough.
        top_n: the number of words of a topic that are used.
        window: tokens in a window; None is the whole document.
        epsilon: added to the share of windows that contain a pair, from 1e-15 to 1.
        counting: "gensim" takes a word to be gone when the first of its occurrences leaves the window, until it enters
            again; "exact" counts every window that contains both words.

    Returns:
        Measured, with `per_topic`, `undefined` (topics with fewer than two known words) and `unseen`.

    Raises:
        InputError: a setting is impossible, the topics are not lists of words, or the reference cannot be used.

    Source: Newman, Lau, Grieser & Baldwin 2010.

    Examples:
        >>> from topicloom.metrics import c_uci
        >>> documents = [["cat", "dog"], ["cat", "dog"], ["rain", "sun"], ["rain", "sun", "cat"]]
        >>> c_uci([["cat", "dog"], ["cat", "sun"]], documents).per_topic.round(2).tolist()
        [0.29, -0.41]
    """

    def confirm(together: Floats, ids: Ids, n_windows: int) -> float:
        return pair_mean(pmi(together, n_windows, epsilon))

    return _over_windows("c_uci", topics, reference, confirm, top_n, window, epsilon, counting)


def u_mass(
    topics: TopicWords,
    reference: Any,
    vocabulary: Sequence[str] | None = None,
    *,
    top_n: int = 10,
    epsilon: float = EPSILON,
) -> Measured:
    """Mean of log((p(i, j) + epsilon) / p(j)) over a topic's pairs in which j ranks before i, counted over documents.

    A word of the vocabulary that no document contains stays in its topic: its pairs count 0 where it ranks first, and
    log(epsilon / p(j)) otherwise. It is listed in `unseen` all the same.

    Args:
        topics: each topic's words, best first; or word ids.
        reference: a `topicloom.Corpus`, (D, V) counts, documents as lists of tokens, or a `Reference`.
        vocabulary: the V words of counts, if topics are words.
        top_n: the number of words of a topic that are used.
        epsilon: added to the share of documents that contain a pair, from 1e-15 to 1.

    Returns:
        Measured, with `per_topic`, `undefined` (topics with fewer than two known words) and `unseen`.

    Raises:
        InputError: a setting is impossible, the topics are not lists of words, or the reference cannot be used.

    Source: Mimno, Wallach, Talley, Leenders & McCallum 2011, with gensim's epsilon in place of their 1 / D.

    Examples:
        >>> from topicloom.metrics import u_mass
        >>> documents = [["cat", "dog"], ["cat", "dog"], ["rain", "sun"], ["rain", "sun", "cat"]]
        >>> u_mass([["cat", "dog"], ["cat", "sun"]], documents).per_topic.round(2).tolist()
        [-0.41, -1.1]
    """

    def confirm(together: Floats, ids: Ids, n_documents: int) -> float:
        return mean_log_conditional(together, n_documents, epsilon)

    settings = {"top_n": top_n, "window": None, "epsilon": epsilon}
    documents = _reference_from(reference, vocabulary, ordered=False)
    return _measure("u_mass", topics, documents, confirm, settings, keep_unseen=True)


def document_npmi(
    topics: TopicWords, reference: Any, top_n: int = 10, *, vocabulary: Sequence[str] | None = None
) -> Measured:
    """Mean normalised pointwise mutual information (NPMI) of a topic's word pairs, counted over whole documents.

    log(p(i, j) / (p(i) p(j))) / -log p(i, j), where p is a share of documents. The value of a pair is -1 if no document
    contains both words, also when one of them is unknown, and 1 if every document does. A topic without a pair has the
    value 0.

    Args:
        topics: each topic's word ids, best first; or words.
        reference: (D, V) counts, a `topicloom.Corpus`, documents as lists of tokens, or a `Reference`, which remembers
            what it has counted.
        top_n: the number of words of a topic that are used.
        vocabulary: the V words of counts, if topics are words.

    Returns:
        Measured, the mean over all topics, with `per_topic` (from -1 to 1) and `unseen`.

    Raises:
        InputError: `top_n` is below 1, the topics are not lists of words, or the reference cannot be used.

    Source: Bouma 2009; Lau, Newman & Baldwin 2014.

    Examples:
        >>> from topicloom.metrics import document_npmi
        >>> documents = [["cat", "dog"], ["cat", "dog"], ["rain", "sun"], ["rain", "sun", "cat"]]
        >>> document_npmi([["cat", "dog"], ["rain", "sun"], ["dog", "sun"]], documents).per_topic.round(2).tolist()
        [0.42, 1.0, -1.0]
    """
    documents = _reference_from(reference, vocabulary, ordered=False)
    words = first_words(topics, top_n)
    settings = {"measure": "document_npmi", "top_n": top_n, "reference": documents.name}
    return _mean_npmi(documents, _ids_of(documents, words), words, settings)


def pooled_npmi(
    topics: TopicWords,
    reference: Any,
    pools: npt.ArrayLike,
    top_n: int = 10,
    *,
    vocabulary: Sequence[str] | None = None,
) -> Measured:
    """NPMI of a topic's word pairs, counted over pools of documents, as if each pool were one document.

    Words of the same topic seldom stand in the same short text, and `document_npmi` is then -1 for many pairs. They
    meet in a pool of texts about the same thing: a text and those whose vectors are nearest. Tweets are pooled by
    hashtag for the same reason (Mehrotra et al. 2013). Each pool is one of the documents of `document_npmi`, so the
    values of the two measures cannot be compared with each other.

    Args:
        topics: each topic's word ids, best first; or words.
        reference: as for `document_npmi`.
        pools: (M, n) the documents of each pool, as rows of the reference; -1 for none. A document may be in several
            pools. `topicloom.evaluate` takes each document with the 20 that are nearest by their vectors.
        top_n: the number of words of a topic that are used.
        vocabulary: the V words of counts, if topics are words.

    Returns:
        Measured, the mean over all topics, with `per_topic` (from -1 to 1) and `unseen`.

    Raises:
        InputError: `top_n` is below 1, the topics are not lists of words, or the reference or the pools cannot be used.

    Examples:
        >>> from topicloom.metrics import document_npmi, pooled_npmi
        >>> documents = [["cat"], ["dog"], ["rain"], ["sun"]]
        >>> document_npmi([["cat", "dog"]], documents)
        -1.0
        >>> pooled_npmi([["cat", "dog"]], documents, pools=[[0, 1], [1, 0], [2, 3], [3, 2]])
        1.0
    """
    documents = _reference_from(reference, vocabulary, ordered=False)
    words = first_words(topics, top_n)
    ids = _ids_of(documents, words)
    known = np.unique(np.concatenate([each[each >= 0] for each in ids])) if ids else np.empty(0, np.int64)
    pooled = documents.pooled(pools, known)
    places = [np.where(each >= 0, np.searchsorted(known, each), -1) for each in ids]
    size = int((np.asarray(pools) >= 0).sum(axis=1).max())
    settings = {"measure": "pooled_npmi", "top_n": top_n, "pool_size": size, "reference": documents.name}
    return _mean_npmi(pooled, places, words, settings)


def _mean_npmi(reference: Reference, ids: list[Ids], words: list[list[Hashable]], settings: dict[str, Any]) -> Measured:
    values = np.zeros(len(words))
    unseen: dict[Hashable, None] = {}
    for number, together in enumerate(_joint_counts(reference, ids, None)):
        values[number] = pair_mean(npmi_without_epsilon(together, reference.n_documents))
        unseen |= {words[number][place]: None for place in np.flatnonzero(np.diag(together) == 0)}
    return Measured.mean(values, unseen=tuple(unseen), **settings, n_documents=reference.n_documents)


def c_w2v(
    topics: TopicWords, vectors: Any, words: Sequence[str] | None = None, *, top_n: int = 10, name: str = ""
) -> Measured:
    """Mean cosine between the vector of each of a topic's words and the mean vector of all its words.

    Args:
        topics: each topic's words; or word ids, which are rows of `vectors`.
        vectors: (V, L) numbers; or anything whose `vectors[word]` is a word's vector and raises KeyError for an unknown
            word, such as gensim's KeyedVectors or `topicloom.WordVectors`.
        words: the word of each row, if the vectors are numbers and the topics are words.
        top_n: the number of words of a topic that are used.
        name: the name that the result gives the vectors.

    Returns:
        Measured, with `per_topic`, `undefined` (topics without a word that has a vector) and `unseen`.

    Raises:
        InputError: words and rows differ in number, or the topics are not lists of words.

    Source: gensim's c_w2v; the idea is from Fang, Macdonald, Ounis & Habel 2016.

    Examples:
        >>> import numpy as np
        >>> from topicloom.metrics import c_w2v
        >>> vectors = np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]])
        >>> c_w2v([["cat", "dog"], ["cat", "rain"]], vectors, ["cat", "dog", "rain"]).per_topic.round(2).tolist()
        [1.0, 0.71]
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
    settings: dict[str, Any] = {"measure": "c_w2v", "top_n": top_n, "vectors": name}
    return Measured.mean(np.array(values), undefined=tuple(undefined), unseen=tuple(unseen), **settings)


def _finder(vectors: Any, words: Sequence[str] | None) -> Callable[[Hashable], Floats | None]:
    """Return a function from a word to its vector, or to None if it has no vector."""
    if getattr(vectors, "ndim", 0) != 2:
        rows: dict[Hashable, int] | None = None
    elif words is not None and len(words) != len(vectors):
        raise InputError(f"there are {len(words)} words and {len(vectors)} vectors; give one for each")
    else:
        rows = {word: row for row, word in enumerate(range(len(vectors)) if words is None else words)}

    def find(word: Hashable) -> Floats | None:
        try:
            return np.asarray(vectors[word if rows is None else rows[word]], np.float64)
        except KeyError:
            return None

    return find


# The steps of every measure that counts in a reference corpus (Röder, Both & Hinneburg 2015, section 3): cut topics to
# their first words, count the words together, and score each topic.


def _over_windows(
    name: str,
    topics: TopicWords,
    reference: Any,
    confirm: Callable[[Floats, Ids, int], float],
    top_n: int,
    window: int | None,
    epsilon: float,
    counting: Counting,
    *,
    least: int = 2,
) -> Measured:
    """Measure a coherence that is counted over windows; the arguments are those of `c_v` and `_measure`."""
    settings = {"top_n": top_n, "window": window, "epsilon": epsilon, "counting": counting}
    known = _reference_from(reference, ordered=window is not None)
    return _measure(name, topics, known, confirm, settings, least=least)


def _measure(
    name: str,
    topics: TopicWords,
    reference: Reference,
    confirm: Callable[[Floats, Ids, int], float],
    settings: dict[str, Any],
    *,
    least: int = 2,
    keep_unseen: bool = False,
) -> Measured:
    """Measure the coherence of each topic that has enough words in the reference, and take the mean.

    Args:
        name: of the measure.
        topics: each topic's words, best first.
        reference: the corpus to count in.
        confirm: gives a topic's value from its counts: windows that contain two of its n words (n, n), the words'
            ids (n,), and the number of all windows.
        settings: settings of the result; this function uses `top_n`, `window`, `epsilon` and `counting`.
        least: the number of words that a topic needs to have a value.
        keep_unseen: keep words of the vocabulary that no window contains.

    Returns:
        Measured, with `per_topic`, `undefined` (topics with fewer than `least` known words) and `unseen`.

    Raises:
        InputError: a setting is impossible, or the topics are not lists of words.
    """
    if not 1e-15 <= settings["epsilon"] <= 1:
        raise InputError(f"`epsilon={settings['epsilon']}` is impossible; give a number from 1e-15 to 1")
    words = first_words(topics, settings["top_n"])
    chosen, n_windows = _ids_of(reference, words), reference.n_windows(settings["window"])
    values, undefined = np.zeros(len(words)), []
    unseen: dict[Hashable, None] = {}
    counted = _joint_counts(reference, chosen, settings["window"], settings.get("counting", "exact"))
    for number, (topic, ids, together) in enumerate(zip(words, chosen, counted, strict=True)):
        seen = np.diag(together) > 0
        unseen |= {word: None for word, known in zip(topic, seen, strict=True) if not known}
        kept = np.flatnonzero(ids >= 0 if keep_unseen else seen)
        if len(kept) < least:
            undefined.append(number)
        else:
            values[number] = confirm(together[np.ix_(kept, kept)], ids[kept], n_windows)
    return Measured.mean(
        values,
        undefined=tuple(undefined),
        unseen=tuple(unseen),
        measure=name,
        **settings,
        reference=reference.name,
        n_documents=reference.n_documents,
        n_tokens=reference.n_tokens,
        n_windows=n_windows,
    )


def _joint_counts(
    reference: Reference, chosen: list[Ids], window: int | None, counting: Counting = "exact"
) -> Iterator[Floats]:
    """Yield, for each topic of n words, (n, n) the windows that contain two of them; 0 for unknown words (id -1)."""
    groups = [np.unique(ids[ids >= 0]) for ids in chosen]
    for ids, group, counts in zip(chosen, groups, reference.joint(groups, window, counting), strict=True):
        known = np.flatnonzero(ids >= 0)
        at = np.searchsorted(group, ids[known])
        together = np.zeros((len(ids), len(ids)))
        together[np.ix_(known, known)] = counts[np.ix_(at, at)]
        yield together


def _ids_of(reference: Reference, topics: list[list[Hashable]]) -> list[Ids]:
    """Return the ids of each topic's words in the reference, -1 for unknown words.

    Raises:
        InputError: no word is known because topics are words and the reference has ids, or the other way round.
    """
    found = [np.array([reference.id_of(word) for word in topic], np.int64) for topic in topics]
    if not any((ids >= 0).any() for ids in found):
        for word in (topic[0] for topic in topics if topic):
            reference.require_kind_of(word)
    return found


def _reference_from(given: Any, vocabulary: Sequence[str] | None = None, *, ordered: bool) -> Reference:
    """Turn what a measure was given into a `Reference`.

    Args:
        given: a `Reference`; an object with a method `reference(ordered)` that returns one, such as a
            `topicloom.Corpus`; lists of tokens; or, if the order of words is not needed, (D, V) counts.
        vocabulary: the V words of counts, if topics are words.
        ordered: whether the order of words is needed.

    Raises:
        InputError: `given` is something else, or an iterator that was read before; or the order of words is needed and
            not known.
    """
    if isinstance(given, Reference):
        return given
    if hasattr(given, "columns"):
        raise InputError(
            "a data frame cannot be the reference corpus; give a Corpus, a list of token lists, or an array of counts"
        )
    if callable(getattr(given, "reference", None)):
        found: Reference = given.reference(ordered)
        return found
    if sp.issparse(given) or getattr(given, "ndim", 0) == 2:
        matrix = given if sp.issparse(given) else np.asarray(given)
        if matrix.dtype.kind in "biuf":
            if ordered:
                raise InputError(ORDER_UNKNOWN)
            return Reference.from_counts(matrix, vocabulary)
    if isinstance(given, Mapping | bytes) or not isinstance(given, Iterable):
        kind = type(given).__name__
        raise InputError(f"the reference corpus is of type {kind}; give a Corpus, a Reference or a list of token lists")
    read = Reference.from_tokens(given)
    if isinstance(given, Iterator) and not read.n_documents:
        raise InputError("the reference corpus is an iterator without documents, which may have been read before")
    return read
