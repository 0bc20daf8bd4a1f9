"""The type of every measured value, a number together with its settings; and the top words of topics."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import InputError

TopicWords: TypeAlias = Iterable[Iterable[Hashable]]  # K topics of words or of word ids, also as an array (K, n)
Floats: TypeAlias = npt.NDArray[np.float64]


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


# The words of topics, which measures of coherence and of diversity read.


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
