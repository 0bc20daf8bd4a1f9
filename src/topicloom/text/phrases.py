"""Tokens of several words: n-grams, and phrases whose words attract each other.

Phrases are pairs of neighbouring words with a high normalised pointwise mutual information (NPMI) [1]. They are found
in two passes, so that there are phrases of three and four words, too [2].

[1] G. Bouma. Normalized (Pointwise) Mutual Information in Collocation Extraction. GSCL 2009.
[2] T. Mikolov et al. Distributed Representations of Words and Phrases and their Compositionality. NeurIPS 2013.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from ..errors import SettingError
from .languages import UNSPACED
from .marks import is_marked

_LEAST_NPMI = 0.4  # of two words that become one, from -1 to 1
_FEWEST = 5  # occurrences of a phrase
_MOST_WORDS = 5  # of an n-gram
_MOST_PAIRS = 2_000_000  # that are counted at a time

Run = Sequence[str]
"""Words that follow each other, without a stop word, a number or the end of a sentence between them."""


def one_token(words: Iterable[str]) -> str:
    """Return words as one token: with blanks between them, but not between characters of scripts without blanks.

    >>> one_token(["customer", "service"]), one_token(["人工", "智能"])
    ('customer service', '人工智能')
    """
    token = ""
    for word in words:
        joined = not token or (UNSPACED.match(token[-1]) and UNSPACED.match(word[0]))
        token += word if joined else f" {word}"
    return token


def range_of_ngrams(given: Any) -> tuple[int, int]:
    """Read the lengths of n-grams: (1, 2), "1-2", 2 or None for words alone.

    Raises:
        SettingError: they are no such lengths.

    >>> range_of_ngrams("1-2"), range_of_ngrams((2, 3)), range_of_ngrams(None)
    ((1, 2), (2, 3), (1, 1))
    """
    if given is None:
        return 1, 1
    parts = given.split("-") if isinstance(given, str) else list(given) if isinstance(given, tuple | list) else [given]
    try:
        first, last = (int(str(parts[0])), int(str(parts[-1]))) if len(parts) in (1, 2) else (0, 0)  # no fractions
    except ValueError:
        first = last = 0
    if not 1 <= first <= last <= _MOST_WORDS:
        raise SettingError(
            f"`ngrams={given!r}` should be the fewest and the most words of a token, up to {_MOST_WORDS}, such as 1-2"
        )
    return first, last


class Composer:
    """Make tokens of the words of a run: phrases become one word each, and n-grams are made of the result.

    Args:
        ngrams: the fewest and the most words of a token.
        phrases: the words of each phrase, with blanks between them.

    Examples:
        >>> from topicloom.text.phrases import Composer
        >>> Composer((1, 2), ["new york"])(["new", "york", "city"])
        ['new york', 'new york city', 'city']
    """

    def __init__(self, ngrams: tuple[int, int] = (1, 1), phrases: Iterable[str] = ()) -> None:
        self._first, self._last = ngrams
        self._phrases = frozenset(tuple(phrase.split()) for phrase in phrases)
        self._begins = {phrase[0] for phrase in self._phrases}
        self._longest = max(map(len, self._phrases), default=0)

    def __call__(self, run: Run) -> list[str]:
        """Return the tokens of a run."""
        words = self.joined(run) if self._phrases else [(word,) for word in run]
        if self._last == 1:
            return [one_token(each) for each in words]
        return [
            one_token(word for each in words[start : start + n] for word in each)
            for start in range(len(words))
            for n in range(self._first, self._last + 1)
            if start + n <= len(words)
        ]

    def joined(self, run: Run) -> list[tuple[str, ...]]:
        """Return the words of each token of a run, in which phrases are tokens."""
        found: list[tuple[str, ...]] = []
        place = 0
        while place < len(run):
            n_words = 1
            if run[place] in self._begins:
                for n in range(min(self._longest, len(run) - place), 1, -1):
                    if tuple(run[place : place + n]) in self._phrases:
                        n_words = n
                        break
            found.append(tuple(run[place : place + n_words]))
            place += n_words
        return found


def composed(
    pieces: Iterable[Any], tokens_of: Callable[[Any], tuple[str, ...]], composer: Composer, boundary: str
) -> list[str]:
    """Return the tokens of documents, with a boundary after each document.

    Args:
        pieces: the pieces of the texts, with a boundary after each. A piece without a token ends a run.
        tokens_of: the tokens of a piece.
        composer: makes tokens of a run.
        boundary: the boundary.
    """
    found: list[str] = []
    for run in runs(pieces, tokens_of, boundary):
        if run is None:
            found.append(boundary)
        else:
            found += composer(run)
    return found


def runs(
    pieces: Iterable[Any], tokens_of: Callable[[Any], tuple[str, ...]], boundary: str
) -> Iterator[list[str] | None]:
    """Yield the runs of documents, and None at the end of each document."""
    ends = (boundary, boundary.encode())
    run: list[str] = []
    for piece in pieces:
        is_end = piece in ends
        tokens = () if is_end else tokens_of(piece)
        if tokens and not is_marked(piece):
            run += tokens
            continue
        if not is_end and piece.isspace():  # between words of other scripts in Chinese text
            continue
        if run:
            yield run
            run = []
        if tokens:
            yield list(tokens)
        if is_end:
            yield None


def find_phrases(runs_of: Callable[[], Iterable[Run]]) -> list[str]:
    """Return the phrases of texts: the words of each, with blanks between them, the most frequent first.

    Args:
        runs_of: returns the runs; it is called twice.

    Examples:
        >>> from topicloom.text.phrases import find_phrases
        >>> texts = [["new", "york", "city"], ["city"], ["city"], ["city"]] * 5
        >>> find_phrases(lambda: texts)
        ['new york']
    """
    known: dict[str, int] = {}
    for _ in range(2):
        composer = Composer(phrases=known)
        words: Counter[str] = Counter()
        pairs: Counter[tuple[str, str]] = Counter()
        for run in runs_of():
            names = [" ".join(each) for each in composer.joined(run)]
            words.update(names)
            pairs.update(pairwise(names))
            if len(pairs) > _MOST_PAIRS:
                pairs = Counter({pair: n for pair, n in pairs.items() if n > 1})
        total = words.total()
        found = {
            f"{first} {second}": n
            for (first, second), n in pairs.items()
            if n >= _FEWEST and first != second and _npmi(n, words[first], words[second], total) >= _LEAST_NPMI
        }
        if not found:
            break
        known |= found
    return sorted(known, key=lambda phrase: (-known[phrase], phrase))


def _npmi(both: int, first: int, second: int, total: int) -> float:
    if both >= total:
        return 1.0
    return math.log(both * total / (first * second)) / -math.log(both / total)
