"""The words that stand for each topic, and the names and numbers of topics: the same for every model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from .errors import SettingError
from .settings import require_whole

Array = npt.NDArray[Any]
Word = TypeVar("Word", str, int)

DEFAULT_RELEVANCE = 0.5
DEFAULT_SHRINKAGE = 50.0  # tokens
_SCORES_AT_ONCE = 1 << 21  # of words in topics, which take 16 MB
NAME_WORDS = 3
NAME_CANDIDATES = 10  # of a topic's words, among which those of its name are


def word_scores(topic_word: Array, word_counts: Array, relevance: float | None = None) -> Array:
    """Score each word for each topic: relevance * log p(w|k) + (1 - relevance) * log (p(w|k) / p(w)).

    Args:
        topic_word: (K, V), rows sum to 1.
        word_counts: (V,) tokens of each word in the training corpus.
        relevance: 1 ranks by probability and 0 by lift; Sievert & Shirley (2014, equation 1) recommend 0.6. None is the
            package's rule, a relevance of 0.5, and 50 tokens more of each word in p(w), so that the lift of a rare word
            has little effect.

    Returns:
        (K, V) scores; the best word has the highest.
    """
    smoothed = word_counts + (DEFAULT_SHRINKAGE if relevance is None else 1.0)
    relevance = DEFAULT_RELEVANCE if relevance is None else relevance
    scores: Array = np.log(topic_word + 1e-12) - (1 - relevance) * np.log(smoothed / smoothed.sum())
    return scores


def top_words(scores: Array, top_n: int) -> npt.NDArray[np.intp]:
    """Return the ids of each topic's best words, best first. Of words with equal scores, the lower id comes first.

    Args:
        scores: (K, V), as `word_scores` returns them.
        top_n: the number of words for each topic.

    Returns:
        (K, min(top_n, V)) word ids.

    >>> top_words(np.array([[0.1, 0.9, 0.5], [0.2, 0.2, 0.3]]), 2).tolist()
    [[1, 2], [2, 0]]
    """
    n_topics, n_words = scores.shape
    n = min(top_n, n_words)
    # Each of the n best groups of words has a word that scores at least as high as the best word of the n-th of them.
    # So the top words are among those that score as high, which are few.
    size = math.isqrt(n_words // n)
    m = n_words // size
    best = scores[:, : m * size].reshape(n_topics, size, m).max(1)  # (K, m)
    floors = -np.partition(-best, n - 1)[:, n - 1]  # (K,)
    rows = []
    for row, floor in zip(scores, floors, strict=True):
        candidates = np.flatnonzero(row >= floor)
        rows.append(candidates[np.argsort(-row[candidates], kind="stable")[:n]])
    return np.stack(rows)


def topic_word_ids(
    components: npt.NDArray[Any], word_counts: npt.NDArray[Any], top_n: int = 10, relevance: float | None = None
) -> npt.NDArray[np.intp]:
    """Rank the words of each topic.

    Args:
        components: (K, V), rows sum to 1.
        word_counts: (V,) tokens of each word in the training corpus.
        top_n: how many words a topic has.
        relevance: 1 ranks words by probability and 0 by lift. None is a relevance of 0.5, with which words of few
            tokens count less.

    Returns:
        (K, min(top_n, V)) columns of components, best first.

    Raises:
        SettingError: `top_n` or `relevance` is out of its range.
    """
    if relevance is not None and not (isinstance(relevance, Real) and 0 <= relevance <= 1):
        raise SettingError(f"`relevance` should be from 0 to 1; it is {relevance!r:.60}")
    require_whole("top_n", top_n)
    n_topics, n_words = components.shape
    at_once = max(1, _SCORES_AT_ONCE // max(1, n_words))
    blocks = (components[first : first + at_once] for first in range(0, max(1, n_topics), at_once))
    return np.concatenate([top_words(word_scores(block, word_counts, relevance), int(top_n)) for block in blocks])


def as_written(vocabulary: Sequence[str], spellings: Mapping[str, str]) -> list[str]:
    """Return the words of a vocabulary as texts write them.

    >>> as_written(["haus", "strasse"], {"strasse": "straße"})
    ['haus', 'straße']
    """
    return [spellings.get(word, word) for word in vocabulary] if spellings else list(vocabulary)


def complete_names(
    given: Sequence[str | None], words: Sequence[Sequence[str]], weights: Sequence[Sequence[float]]
) -> list[str]:
    """Return a name for each topic: the one that it was given, or else three of its words, as `distinct_words` does.

    Args:
        given: the name that each topic was given; None for one without.
        words: the first words of each topic, best first.
        weights: the probability of each of these words in the topic.

    >>> names = complete_names(["pets", None, None], [["cat"], ["rate", "bank", "loan", "tax"], ["rate", "gold"]],
    ...                        [[0.5], [0.2, 0.2, 0.1, 0.1], [0.1, 0.1]])
    >>> names
    ['pets', 'rate, bank, loan', 'gold, rate']
    """
    unnamed = [k for k, name in enumerate(given) if name is None]
    chosen = distinct_words([words[k] for k in unnamed], [weights[k] for k in unnamed], NAME_WORDS)
    names = dict(zip(unnamed, (", ".join(each) for each in chosen), strict=True))
    return [names[k] if name is None else name for k, name in enumerate(given)]


def distinct_words(
    words: Sequence[Sequence[Word]], weights: Sequence[Sequence[float]], n: int, fill: bool = True
) -> list[list[Word]]:
    """Return n words for each topic, so that topics have as few of them in common as possible.

    Each topic asks for its words in their order until it has n, and a word belongs to the topic that gives it the
    highest weight (Gale & Shapley 1962).

    Args:
        words: the words of each topic, best first.
        weights: their weights in the topic; of equal ones, the topic with the lower number counts more.
        n: how many.
        fill: whether a topic that does not get n words has the first of its others at the end.
    """
    owners: dict[Word, tuple[float, int, int]] = {}  # (weight, -topic, rank) of the topic that has the word
    asked = [0] * len(words)
    own: list[set[int]] = [set() for _ in words]  # the ranks of the words that each topic has
    waiting = list(range(len(words)))
    while waiting:
        topic = waiting.pop()
        while len(own[topic]) < n and asked[topic] < len(words[topic]):
            rank = asked[topic]
            asked[topic] += 1
            word, claim = words[topic][rank], (float(weights[topic][rank]), -topic, rank)
            if word in owners and owners[word] > claim:
                continue
            if word in owners:
                _, other, place = owners[word]
                own[-other].discard(place)
                waiting.append(-other)
            owners[word] = claim
            own[topic].add(rank)
    found = []
    for topic, ranks in enumerate(own):
        kept = sorted(ranks)
        kept += [rank for rank in range(len(words[topic])) if rank not in ranks][: n - len(kept)] if fill else []
        found.append([words[topic][rank] for rank in kept])
    return found


def names_or_numbers(names: Sequence[str] | None, n_topics: int) -> list[str]:
    """Return the names of topics, or their numbers if they have none."""
    return [str(topic) for topic in range(n_topics)] if names is None else list(names)


def chosen_topics(topics: Sequence[int] | None, n_topics: int) -> list[int]:
    """Return the given topics, or all.

    >>> chosen_topics(None, 3), chosen_topics([2, 0], 3)
    ([0, 1, 2], [2, 0])

    Raises:
        SettingError: there is no such topic.
    """
    chosen = list(range(n_topics)) if topics is None else [int(topic) for topic in topics]
    for topic in chosen:
        if not 0 <= topic < n_topics:
            raise SettingError(f"there is no topic {topic}; topics are numbered 0 to {n_topics - 1}")
    return chosen
