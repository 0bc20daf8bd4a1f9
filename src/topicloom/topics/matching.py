"""Matching the topics of two runs, so that this month's topics get last month's names."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError, SettingError
from ..messages import counted
from ..metrics import jensen_shannon
from ..metrics.stability import characteristic_words
from ..ranking import names_or_numbers
from .table import Table

logger = logging.getLogger("topicloom")

Array = npt.NDArray[Any]

# Models with 10 and 30 topics (Loom, GSM, ProdLDA, ETM) were fitted to both halves of a corpus, news and documentation.
# Of the pairs of topics without a common word among their eight best, 99 % had a similarity below .19. Of the partners
# with three such words or more, 90 % were above .17 to .43, depending on the model and the texts. That was measured
# over the words that both runs know. Over all words, they are lower by .01 to .02 (documentation; Loom and ProdLDA).
DEFAULT_THRESHOLD = 0.2
WEAK_MATCH = 0.35  # below it, many partners are right, and many others are wrong
_LEAST_SHARED = 0.5  # the probability that the shared words should have in the topics of each run
# For each topic. Of 20 topics (variational LDA, news), none found a partner in a run of 5,000 documents with 15
# documents for each topic, and 1 to 4 with 30 to 100.
_FEW_DOCUMENTS = 50
_HARDLY_SHARED = 0.1  # below it, the runs have different subjects or languages


@dataclass(frozen=True)
class TopicMatch:
    """A topic and its partner.

    Attributes:
        topic: the number of the topic in the new run.
        old: the number of its partner in the old run; None if the topic is new.
        similarity: with the partner, or with the most similar old topic if the topic is new.
        nearest: the most similar old topic, which can be the partner of another topic.
    """

    topic: int
    old: int | None
    similarity: float
    nearest: int


@dataclass(frozen=True, eq=False, repr=False)
class Matches:
    """The topics of a run, with their partners among the topics of an older run.

    Attributes:
        pairs: one for each topic of the new run.
        gone: the topics of the old run that have no partner.
        similarity: (K, L) similarity of every new topic and every old topic, from 0 to 1.
        names, old_names: the names of the topics of the new and of the old run.
        given: the name that each topic of the old run was given; None for one without.
        n_shared: the number of words that both runs know.
        shared_probability: the probability of these words in the topics of the new run, and in those of the old one.
        threshold: the similarity below which topics are not matched.
    """

    pairs: list[TopicMatch]
    gone: list[int]
    similarity: Array
    names: list[str]
    old_names: list[str]
    given: list[str | None]
    n_shared: int
    shared_probability: tuple[float, float]
    threshold: float

    @property
    def new(self) -> list[int]:
        """The topics without a partner."""
        return [pair.topic for pair in self.pairs if pair.old is None]

    def renames(self) -> dict[int, str]:
        """Return the names that the partners of topics were given, as `rename` takes them.

        Topics whose partner was not named are left out: its first words would be a wrong name once words change.
        """
        found = ((pair.topic, self.given[pair.old]) for pair in self.pairs if pair.old is not None)
        return {topic: name for topic, name in found if name is not None}

    def require_shared(self) -> None:
        """Check that the runs share enough words for edits of one to make sense in the other.

        Raises:
            InputError: the words that both runs know have less than a tenth of the probability in the topics of one.
        """
        if min(self.shared_probability) < _HARDLY_SHARED:
            raise InputError(
                f"the two runs have only {_shared_words(self.n_shared, self.shared_probability)}, so that the edits of "
                "one mean nothing in the other; replay the edits of a run of similar texts"
            )

    def counterparts(self) -> list[int | None]:
        """Return the new topic that each topic of the old run has become; None for one that is gone."""
        found: list[int | None] = [None] * self.similarity.shape[1]
        for pair in self.pairs:
            if pair.old is not None:
                found[pair.old] = pair.topic
        return found

    def weak(self, old: Collection[int]) -> list[TopicMatch]:
        """Return the pairs of these old topics whose similarity is weak."""
        return [pair for pair in self.pairs if pair.old in old and pair.similarity < WEAK_MATCH]

    def table(self) -> Table:
        """Return a row for each topic, and then one for each old topic that is gone.

        The columns are topic, name, status (matched, new or gone), old, old_name, similarity and nearest.
        """
        rows = [
            {
                "topic": pair.topic,
                "name": self.names[pair.topic],
                "status": "new" if pair.old is None else "matched",
                "old": pair.old,
                "old_name": None if pair.old is None else self.old_names[pair.old],
                "similarity": pair.similarity,
                "nearest": pair.nearest,
            }
            for pair in self.pairs
        ]
        rows += [
            {
                "topic": None, "name": None, "status": "gone", "old": old, "old_name": self.old_names[old],
                "similarity": float(self.similarity[:, old].max()), "nearest": None,
            }
            for old in self.gone
        ]  # fmt: skip
        return Table.of(
            rows,
            f"{counted(len(self.pairs) - len(self.new), 'topic')} matched, {len(self.new)} new, {len(self.gone)} gone",
        )

    def __repr__(self) -> str:
        n_new = len(self.new)
        return f"Matches({counted(len(self.pairs) - n_new, 'topic')} matched, {n_new} new, {len(self.gone)} gone)"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def match(
    components: Array,
    vocabulary: Sequence[str],
    old_components: Array,
    old_vocabulary: Sequence[str],
    *,
    threshold: float = DEFAULT_THRESHOLD,
    names: Sequence[str] | None = None,
    old_names: Sequence[str] | None = None,
    given: Sequence[str | None] | None = None,
) -> Matches:
    """Match the topics of two runs one to one by the Hungarian method.

    The similarity of two topics is 1 minus the square root of the Jensen-Shannon divergence (base 2) of what is
    characteristic of them. That is p(w|k) log(p(w|k) / p(w)) where it is positive, normalised, over the words w of
    either run; p(w) is the mean of the run's topics. Words that all topics have would otherwise make all topics
    similar. A word that only one of the runs knows has probability 0 in the topics of the other.

    Two topics can be partners only if their similarity is at least `threshold`. Among all such assignments, the one
    with the greatest sum of similarities above the threshold is chosen. A warning says so if the shared words have less
    than half of the probability in the topics of either run.

    Args:
        components: (K, V) the topics of the new run.
        vocabulary: its V words.
        old_components, old_vocabulary: (L, U) and U, of the old run.
        threshold: the similarity below which a topic is new, from 0 to 1.
        names, old_names: the names of the topics.
        given: the names that topics of the old run were given, None for a topic without one; by default `old_names`.

    Raises:
        InputError: the runs have no word in common.
        SettingError: `threshold` is not from 0 to 1.
    """
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0 <= threshold <= 1:
        raise SettingError(f"`threshold={threshold!r}` should be from 0 to 1")
    places = {word: column for column, word in enumerate(old_vocabulary)}
    shared = [(column, places[word]) for column, word in enumerate(vocabulary) if word in places]
    if not shared:
        raise InputError(
            "the two runs have no word in common, so their topics cannot be matched; match runs of one language"
        )
    ours, theirs = map(list, zip(*shared, strict=True))
    new_part, old_part = (
        float(topics[:, columns].sum() / topics.sum())
        for topics, columns in ((components, ours), (old_components, theirs))
    )
    if min(new_part, old_part) < _LEAST_SHARED:
        logger.warning(
            "the two runs have only %s, so that partners may be wrong or missing; match runs of similar texts",
            _shared_words(len(shared), (new_part, old_part)),
        )
    n_new, n_only_old = len(vocabulary), len(old_vocabulary) - len(shared)
    only_old = np.setdiff1d(np.arange(len(old_vocabulary)), theirs)
    one = np.zeros((len(components), n_new + n_only_old))  # over the words of the new run, and then the others
    one[:, :n_new] = characteristic_words(components)
    other = np.zeros((len(old_components), n_new + n_only_old))
    characteristic = characteristic_words(old_components)
    other[:, ours], other[:, n_new:] = characteristic[:, theirs], characteristic[:, only_old]
    similarity = 1 - jensen_shannon(one, other)
    gains = np.where(similarity >= threshold, similarity - threshold + 1e-9, 0)
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(gains, maximize=True)
    partner = {int(k): int(old) for k, old in zip(rows, columns, strict=True) if gains[k, old] > 0}
    nearest = similarity.argmax(axis=1).tolist()
    pairs = []
    for topic in range(len(components)):
        old = partner.get(topic)
        near = nearest[topic]
        pairs.append(TopicMatch(topic, old, float(similarity[topic, near if old is None else old]), near))
    gone = sorted(set(range(len(old_components))) - set(partner.values()))
    new_names, known_names = (
        names_or_numbers(given, len(matrix)) for given, matrix in ((names, components), (old_names, old_components))
    )
    given = (old_names or [None] * len(old_components)) if given is None else given
    return Matches(
        pairs, gone, similarity, new_names, known_names, list(given), len(shared), (new_part, old_part), threshold
    )


def warn_of_few_documents(n_new: int, new_documents: int | None, n_old: int, old_documents: int | None) -> None:
    """Warn if a run has so few documents for each topic that its topics change with the seed.

    Args:
        n_new, n_old: the number of topics of the new and of the old run.
        new_documents, old_documents: the number of their training documents; None if it is not known.
    """
    warn_of_small("the new run", n_new, new_documents)
    warn_of_small("the old run", n_old, old_documents)


def warn_of_small(run: str, n_topics: int, n_documents: int | None) -> None:
    """Warn if a run has so few documents for each topic that its topics change with the seed."""
    if n_documents is not None and n_documents < _FEW_DOCUMENTS * n_topics:
        logger.warning(
            "%s has %s topics of %s, so its topics change much with the seed, and partners may be wrong or "
            "missing; train it on more documents, or with fewer topics",
            run,
            n_topics,
            counted(n_documents, "document"),
        )


def _shared_words(n_shared: int, probability: tuple[float, float]) -> str:
    new, old = (f"{100 * part:.0f} %" for part in probability)
    words = counted(n_shared, "word")
    return f"{words} in common, with {new} of the probability in the new topics and {old} in the old ones"
