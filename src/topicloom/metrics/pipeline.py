"""What coherence measures have in common: a topic's words, how often they meet, a value for each topic, and its mean.

Source: the four stages of Röder, Both & Hinneburg 2015, section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .cooccurrence import Counting, Reference

Topics: TypeAlias = Iterable[Iterable[Hashable]]
Floats: TypeAlias = npt.NDArray[np.float64]
Ids: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Coherence:
    """The coherence of topics, with what it was measured by; as a float, the mean.

    Attributes:
        per_topic: (K,) always finite; 0 where `undefined`.
        measure: its name.
        top_n: words of a topic that count, from the first.
        window: tokens in a window; None is the whole document, or no window at all.
        epsilon: added to the share of windows that hold a pair.
        counting: how words that come again in a window were counted (see `Reference.joint`).
        reference: the reference corpus by its name, or what stands for it.
        n_documents: of the reference.
        n_tokens: of the reference.
        n_windows: of the reference.
        unseen: words of the topics that the reference never holds, each once; all measures leave them out of their
            topic, but see `u_mass`.
        undefined: topics with too few known words for a value, which the mean leaves out.
    """

    per_topic: Floats
    measure: str
    top_n: int
    window: int | None = None
    epsilon: float | None = None
    counting: str | None = None
    reference: str = ""
    n_documents: int | None = None
    n_tokens: int | None = None
    n_windows: int | None = None
    unseen: tuple[Hashable, ...] = ()
    undefined: tuple[int, ...] = ()

    @property
    def mean(self) -> float:
        """Over the topics that have a value; 0 when none has."""
        values = np.delete(self.per_topic, list(self.undefined))
        return float(values.mean()) if len(values) else 0.0

    def __float__(self) -> float:
        return self.mean

    def to_dict(self) -> dict[str, Any]:
        """Everything and the mean, in types that JSON knows (word ids become plain integers)."""
        plain = {"per_topic": self.per_topic.tolist(), "undefined": list(self.undefined)}
        words = [word.item() if isinstance(word, np.generic) else word for word in self.unseen]
        return {"mean": self.mean, **asdict(self), **plain, "unseen": words}


def measure(
    name: str,
    topics: Topics,
    reference: Reference,
    confirm: Callable[[Floats, Ids, int], float],
    settings: dict[str, Any],
    *,
    least: int = 2,
    keep_unseen: bool = False,
) -> Coherence:
    """The coherence of each topic of which the reference holds at least `least` words.

    Args:
        name: of the measure.
        topics: each topic's words, best first.
        reference: where they are counted.
        confirm: a topic's value from how often its n words meet (n, n), their ids (n,), and the number of windows.
        settings: those of the result; `top_n`, `window`, `epsilon` and `counting` are used here.
        least: words that a value needs.
        keep_unseen: leaves words in that are known and in no window.
    """
    if not 1e-15 <= settings["epsilon"] <= 1:
        raise ValueError(f"epsilon={settings['epsilon']} is not from 1e-15 to 1")
    words = first_words(topics, settings["top_n"])
    chosen, n_windows = ids_of(reference, words), reference.n_windows(settings["window"])
    values, undefined = np.zeros(len(words)), []
    unseen: dict[Hashable, None] = {}
    counted = meetings(reference, chosen, settings["window"], settings.get("counting", "exact"))
    for number, (topic, ids, together) in enumerate(zip(words, chosen, counted, strict=True)):
        seen = np.diag(together) > 0
        unseen |= {word: None for word, known in zip(topic, seen, strict=True) if not known}
        kept = np.flatnonzero(ids >= 0 if keep_unseen else seen)
        if len(kept) < least:
            undefined.append(number)
        else:
            values[number] = confirm(together[np.ix_(kept, kept)], ids[kept], n_windows)
    return Coherence(
        values,
        name,
        **settings,
        reference=reference.name,
        n_documents=reference.n_documents,
        n_tokens=reference.n_tokens,
        n_windows=n_windows,
        unseen=tuple(unseen),
        undefined=tuple(undefined),
    )


def meetings(
    reference: Reference, chosen: list[Ids], window: int | None, counting: Counting = "exact"
) -> Iterator[Floats]:
    """Of each topic of n words, repeated or unknown ones among them, (n, n) windows that hold both."""
    groups = [np.unique(ids[ids >= 0]) for ids in chosen]
    for ids, group, counts in zip(chosen, groups, reference.joint(groups, window, counting), strict=True):
        known = np.flatnonzero(ids >= 0)
        at = np.searchsorted(group, ids[known])
        together = np.zeros((len(ids), len(ids)))
        together[np.ix_(known, known)] = counts[np.ix_(at, at)]
        yield together


def ids_of(reference: Reference, topics: list[list[Hashable]]) -> list[Ids]:
    """Word ids in the reference, -1 for what it does not know."""
    return [np.array([reference.id_of(word) for word in topic], np.int64) for topic in topics]


def first_words(topics: Topics, top_n: int) -> list[list[Hashable]]:
    """The first words of each topic."""
    if top_n < 1:
        raise ValueError(f"top_n={top_n} leaves no word; give 1 or more")
    cut = []
    for topic in topics:
        if isinstance(topic, str) or not isinstance(topic, Iterable):
            raise ValueError(f"{topic!r} is not a topic; give a list of topics, each a list of words or of word ids")
        cut.append(list(islice(topic, top_n)))
    return cut


def of_sequences(reference: Reference | Iterable[Sequence[Hashable]]) -> Reference:
    """A reference that knows the order of words."""
    if isinstance(reference, Reference):
        return reference
    if sp.issparse(reference):
        raise ValueError("counts do not know the order of words; give lists of tokens, or a Reference")
    return Reference.from_tokens(reference)


def of_documents(reference: Any, vocabulary: Sequence[str] | None) -> Reference:
    """A reference from counts, sparse or dense, or from lists of tokens."""
    if isinstance(reference, Reference):
        return reference
    if sp.issparse(reference) or getattr(reference, "ndim", 0) == 2:
        return Reference.from_counts(reference, vocabulary)
    return Reference.from_tokens(reference)
