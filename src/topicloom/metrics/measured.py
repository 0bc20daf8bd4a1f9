"""The type of every measured value: a number together with its settings."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ..errors import InputError
from .cooccurrence import ORDER_UNKNOWN, Counting, Reference


class Measured(float):
    """A number together with the settings of its measurement.

    It is a `float` in every other respect, so it can be averaged, compared, pickled and written as JSON.

    Attributes:
        settings: what the value depends on, such as the number of words or the size of the reference corpus, by name.
        per_topic: (K,) float64, the value of each topic, or None for a measure that has no value for a single topic.
        per_dimension: (L,) float64, the value of each latent dimension, or None.
        undefined: indices of topics that have no value. Their entry in `per_topic` is 0, and the mean leaves them out.
        unseen: words of the topics that the reference corpus or the word vectors do not contain, each once.

    Examples:
        >>> from topicloom.metrics import Measured
        >>> found = Measured(0.5, top_n=10)
        >>> found, found.settings, found + 1
        (0.5, {'top_n': 10}, 1.5)
    """

    settings: dict[str, Any]
    per_topic: Any
    per_dimension: Any
    undefined: tuple[int, ...]
    unseen: tuple[Hashable, ...]

    def __new__(
        cls,
        value: float,
        /,
        *,
        per_topic: Any = None,
        per_dimension: Any = None,
        undefined: tuple[int, ...] = (),
        unseen: tuple[Hashable, ...] = (),
        **settings: Any,
    ) -> Measured:
        measured = super().__new__(cls, value)
        measured.settings = settings
        measured.per_topic, measured.per_dimension = per_topic, per_dimension
        measured.undefined, measured.unseen = undefined, unseen
        return measured

    @classmethod
    def mean(cls, per_topic: Any, *, undefined: tuple[int, ...] = (), **rest: Any) -> Measured:
        """The mean over the topics that have a value, or 0 when none has.

        Args:
            per_topic: (K,) float64.
            undefined: indices of the topics that the mean leaves out.
            rest: the settings, and `unseen`.
        """
        values = np.delete(per_topic, list(undefined))
        value = float(values.mean()) if len(values) else 0.0
        return cls(value, per_topic=per_topic, undefined=undefined, **rest)

    def to_dict(self) -> dict[str, Any]:
        """Return the value, the settings and everything else as values for JSON.

        A value that is not finite becomes None, and numpy scalars become plain numbers.
        """
        found = {"value": float(self) if math.isfinite(self) else None, **self.settings}
        if self.per_topic is not None:
            words = [word.item() if isinstance(word, np.generic) else word for word in self.unseen]
            found |= {"per_topic": self.per_topic.tolist(), "undefined": list(self.undefined), "unseen": words}
        if self.per_dimension is not None:
            found["per_dimension"] = self.per_dimension.tolist()
        return found


# The steps of every coherence measure (Röder, Both & Hinneburg 2015, section 3): cut topics to their first words, count
# the words together, and score each topic.

TopicWords: TypeAlias = Iterable[Iterable[Hashable]]
Floats: TypeAlias = npt.NDArray[np.float64]
Ids: TypeAlias = npt.NDArray[np.int64]


def measure(
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
    chosen, n_windows = ids_of(reference, words), reference.n_windows(settings["window"])
    values, undefined = np.zeros(len(words)), []
    unseen: dict[Hashable, None] = {}
    counted = joint_counts(reference, chosen, settings["window"], settings.get("counting", "exact"))
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


def joint_counts(
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


def ids_of(reference: Reference, topics: list[list[Hashable]]) -> list[Ids]:
    """Return the ids of each topic's words in the reference, -1 for unknown words.

    Raises:
        InputError: no word is known because topics are words and the reference has ids, or the other way round.
    """
    found = [np.array([reference.id_of(word) for word in topic], np.int64) for topic in topics]
    if not any((ids >= 0).any() for ids in found):
        for word in (topic[0] for topic in topics if topic):
            reference.require_kind_of(word)
    return found


def check_top_n(top_n: int) -> None:
    """Raise InputError if the number of top words is below 1."""
    if top_n < 1:
        raise InputError(f"`top_n={top_n}` leaves no word; give 1 or more")


def first_words(topics: TopicWords, top_n: int) -> list[list[Hashable]]:
    """Return the first `top_n` words of each topic.

    Raises:
        InputError: `top_n` is below 1, topics or a topic are not a list, or a topic contains numbers that are no ids.
    """
    check_top_n(top_n)
    if isinstance(topics, np.ndarray) and topics.ndim == 2 and topics.dtype.kind in "iu":
        ids: list[list[Hashable]] = topics[:, :top_n].tolist()
        return ids
    if not isinstance(topics, Iterable):
        raise InputError(f"{topics!r} is no list of topics; give one, each topic a list of words or of word ids")
    cut = []
    for topic in topics:
        if isinstance(topic, str) or not isinstance(topic, Iterable):
            raise InputError(f"{topic!r} is not a topic; give a list of topics, each a list of words or of word ids")
        cut.append(list(islice(topic, top_n)))
        for word in cut[-1]:
            if any(isinstance(part, float | np.floating) for part in (word if isinstance(word, tuple) else (word,))):
                raise InputError(
                    f"topic {len(cut) - 1} contains {word!r}, which is neither a word nor the number of one; give the "
                    "words alone, such as model.topics()"
                )
    return cut


def reference_from(given: Any, vocabulary: Sequence[str] | None = None, *, ordered: bool) -> Reference:
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
