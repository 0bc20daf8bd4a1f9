"""Two or more runs as one: their documents, and their topics, of which similar ones are joined."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import digamma, polygamma

from ..corpus import Corpus
from ..corpus.concatenation import tokenizer_difference
from ..corpus.fields import Categories
from ..errors import InputError, SettingError
from ..files import as_path, lock_directory
from ..messages import counted, joined
from ..models.inference import each_batch
from ..models.lda import LDA
from ..nn.mean_field import MeanFieldNetwork, mean_field_network
from ..settings import require_seed
from ..text.languages import language_name
from ..topics.language_model import LanguageModelAnswers
from ..topics.matching import match, warn_of_small
from ..topics.saved import MERGED, TRAINED_ON, read_metrics, require_place, trained_on
from ..topics.table import Table
from ..topics.view import Topics
from ..training.batches import choose_device
from .run import RunOptions, options_of, write
from .updating import is_repeated

logger = logging.getLogger("topicloom")

Array = npt.NDArray[Any]
RUN = "run"  # the covariate that says from which run a document is

# Two halves of ag-news had 15 topics each (Loom and Loom, Loom and GSM). All pairs above it were of one subject.
JOINED_FROM = 0.3
_MOST_DOCUMENTS = 10_000  # alpha and the unknown words are learned from a sample of this size
_STEPS = 10
_LEAST_ALPHA, _MOST_ALPHA = 1e-3, 10.0
_FIXED_POINT_STEPS, _NEWTON_STEPS = 30, 5
_SMALLEST = 1e-12
_NUMBERS_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class TopicOrigin:
    """Where a topic of a merged run is from.

    Attributes:
        topic: its number.
        numbers: its number in each run; None for a run without it.
        similarity: the lowest similarity at which it was joined; or, if it stands alone, that with `nearest`.
        nearest: the most similar topic, if the topic stands alone.
    """

    topic: int
    numbers: tuple[int | None, ...]
    similarity: float
    nearest: int | None

    @property
    def is_joined(self) -> bool:
        """Whether it consists of topics of several runs."""
        return sum(number is not None for number in self.numbers) > 1


@dataclass(frozen=True, eq=False)
class MergedRuns:
    """What `merge` has made of several runs.

    Attributes:
        topics: the topics of the new run, with the documents of all runs.
        runs: the names of the runs, which the documents have as the covariate "run".
        origins: where each topic is from.
        shares: (R, K) the share of each topic in the documents of each run; NaN for a run without a document.
        n_documents: the number of documents from each run.
        n_repeated: how many documents were left out, because an earlier run has them.
        renamed: the new name of each topic whose name an earlier topic has, by number.

    Examples:
        >>> import topicloom as tl
        >>> texts = ["cat dog mouse", "rain sun snow", "bank loan price"] * 8
        >>> topics = tl.Topics(tl.LDA(3, random_state=0).fit(texts), texts)
        >>> found = tl.MergedRuns(topics, ["may", "june"], [], topics.shares[None], [12, 12], 0, {})
        >>> found.sentences()
        ['12 documents of may and 12 documents of june', '0 topics: 0 joined, 0 of may alone, 0 of june alone']
    """

    topics: Topics
    runs: list[str]
    origins: list[TopicOrigin]
    shares: Array
    n_documents: list[int]
    n_repeated: int
    renamed: dict[int, str]

    @property
    def joined(self) -> list[TopicOrigin]:
        """The topics that consist of topics of several runs."""
        return [origin for origin in self.origins if origin.is_joined]

    def table(self) -> Table:
        """Return a row for each topic.

        The columns are topic, name, status (joined or alone), similarity and nearest (see `TopicOrigin`), and for each
        run the number of the topic there, and its share of the run's documents (None if an earlier run has them all).
        """
        rows = []
        for origin, name, shares in zip(self.origins, self.topics.names, self.shares.T.tolist(), strict=True):
            status = "joined" if origin.is_joined else "alone"
            row: dict[str, Any] = {"topic": origin.topic, "name": name, "status": status}
            row |= {"similarity": origin.similarity, "nearest": origin.nearest}
            for run, number, share in zip(self.runs, origin.numbers, shares, strict=True):
                row |= {f"topic in {run}": number, f"share in {run}": None if math.isnan(share) else share}
            rows.append(row)
        return Table.of(rows, "Topics of the merged runs")

    def sentences(self) -> list[str]:
        """Return what was merged, in sentences."""
        documents = joined(
            [f"{counted(n, 'document')} of {run}" for run, n in zip(self.runs, self.n_documents, strict=True)]
        )
        n_joined = len(self.joined)
        found = [documents]
        if self.n_repeated:
            found.append(f"{counted(self.n_repeated, 'document')} left out, because an earlier run has them")
        alone = Counter(
            next(run for run, number in zip(self.runs, origin.numbers, strict=True) if number is not None)
            for origin in self.origins
            if not origin.is_joined
        )
        kept = "".join(f", {alone[run]} of {run} alone" for run in self.runs)
        found.append(f"{counted(len(self.origins), 'topic')}: {n_joined} joined{kept}")
        if self.renamed:
            names = ", ".join(f"{topic} is {name!r}" for topic, name in self.renamed.items())
            found.append(f"topics that had the name of another one have a new name: {names}")
        return found

    def as_json(self) -> dict[str, Any]:
        """Return what was merged as values for JSON; metrics.json has them."""
        return {
            "runs": self.runs,
            "documents": self.n_documents,
            "repeated": self.n_repeated,
            "topics": [
                {
                    "topic": each.topic, "numbers": list(each.numbers), "similarity": round(each.similarity, 4),
                    "nearest": each.nearest,
                }
                for each in self.origins
            ],
        }  # fmt: skip


def merge(
    runs: Iterable[str | Path],
    out: str | Path,
    *,
    threshold: float = JOINED_FROM,
    keep_repeated: bool = False,
    random_state: int = 0,
    device: str = "auto",
    allow: Iterable[str] = (),
    overwrite: bool = False,
    options: RunOptions | None = None,
) -> MergedRuns:
    """Make one run of several, with the documents of all and with their topics.

    Topics of two runs that `match` pairs become one topic, and the others stay beside them. The topics of the first run
    keep their numbers and names; those of the next run that have no partner follow. The models may be of different
    classes and know different words. The merged model is an LDA model with these topics, which infers the shares of all
    documents. A joined topic is the mean of its parts, weighted by their tokens. A word that a run does not know counts
    as missing in its topics: its probability there is learned from all documents, while those of the other words keep
    their proportions.

    Args:
        runs: two or more runs that keep their documents.
        out: the directory of the new run.
        threshold: the similarity, from 0 to 1, below which topics are not joined.
        keep_repeated: whether a document that an earlier run has is kept too.
        random_state: the seed of the sample of documents from which the words that a run does not know are learned.
        device: where the model runs.
        allow: modules that may be imported for a model's class, its tokenizer or its encoder.
        overwrite: whether `out` may replace an earlier run.
        options: what is written; None is what the first run has.

    Raises:
        InputError: a run cannot be read; the runs differ in their language, the splitting of texts or the encoder; or
            they have no word in common.
        SettingError: there are fewer than two runs, or a setting cannot be used.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> import topicloom as tl
        >>> from topicloom.reports.run import write
        >>> may = ["cat dog mouse", "rain sun snow"] * 12
        >>> june = ["cat mouse dog", "bank loan price"] * 12
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     runs = [Path(folder, "may"), Path(folder, "june")]
        ...     for run, texts in zip(runs, (may, june)):
        ...         model = tl.LDA(2, random_state=0).fit(texts)
        ...         corpus = model.documents(texts)
        ...         _ = write(run, model, corpus, model.infer(corpus), 0.0)
        ...     found = tl.merge(runs, Path(folder, "both"))
        >>> len(found.topics), len(found.joined), found.runs
        (3, 1, ['may', 'june'])
    """
    require_seed(random_state)
    places = [as_path(run, "runs") for run in ([runs] if isinstance(runs, str | Path) else runs)]
    target, names = as_path(out, "out"), _names_of(places)
    if target.resolve() in [place.resolve() for place in places]:
        raise SettingError(f"`out` is {target}, one of the runs; give another directory")
    require_place(target, overwrite)
    allow = (allow,) if isinstance(allow, str) else tuple(allow)
    with lock_directory(target):
        found = [Topics.from_run(place, device=device, allow=allow) for place in places]
        _require_alike(found, [str(place) for place in places])
        for each, place in zip(found, places, strict=True):
            warn_of_small(str(place), len(each), len(each.documents))
        # The words of the first run in their order, then the further ones of the second, and so on.
        pool = _TopicPool(found[0], list(dict.fromkeys(word for each in found for word in each.vocabulary)))
        for each, place in zip(found[1:], places[1:], strict=True):
            pool.add(each, threshold, str(place))
        abouts = [read_metrics(place) for place in places]
        corpus, n_documents = _documents(found, names, [MERGED in about for about in abouts], keep_repeated)
        topics, alpha = completed(pool.topics(), pool.known, corpus, random_state=random_state, device=device)
        model = LDA.of_topics(
            topics, corpus, alpha, random_state=random_state, device=device, neighbour_tokens=0,
            fractional_counts=not corpus.is_whole,
        )  # fmt: skip
        given, renamed = pool.names(names)
        whole = Topics.of(model, corpus, model.infer(corpus))
        if given:
            whole = whole.apply([{"rename": given}])
        whole.answers = _answers(found)
        ends = np.cumsum([0, *n_documents])
        shares = np.full((len(found), len(whole)), np.nan)
        for row, (first, last) in enumerate(pairwise(ends.tolist())):
            if last > first:
                shares[row] = whole.documents[first:last].shares
        n_repeated = sum(len(each.corpus) for each in found) - len(corpus)
        result = MergedRuns(whole, names, pool.origins(), shares, n_documents, n_repeated, renamed)
        readings = [trained_on(about).get("reading", {}) for about in abouts]
        further: dict[str, Any] = {MERGED: result.as_json()}
        if all(reading == readings[0] for reading in readings):  # `update` reads a file in the same way
            further[TRAINED_ON] = {"reading": readings[0]}
        chosen = options or options_of(places[0])
        write(target, whole.model, corpus, whole.documents, 0.0, chosen, answers=whole.answers, further=further)
    return result


def _names_of(places: Sequence[Path]) -> list[str]:
    """Return a name for each run: that of its directory or, if two have the same, its path."""
    if len(places) < 2:
        raise SettingError(f"{counted(len(places), 'run')} cannot be merged; give two or more")
    resolved = [place.resolve() for place in places]
    if twice := next((place for place, n in Counter(resolved).items() if n > 1), None):
        raise SettingError(f"`runs` names {places[resolved.index(twice)]} twice; name each run once")
    names = [place.name for place in resolved]
    return names if len(set(names)) == len(names) else [str(place) for place in places]


# What the runs must have in common


def _require_alike(found: Sequence[Topics], names: Sequence[str]) -> None:
    """Check that the documents of all runs can be read by one model.

    Raises:
        InputError: the runs differ in their language, the splitting of texts, or the encoder of their vectors.
    """
    first = found[0].corpus
    for each, name in zip(found[1:], names[1:], strict=True):
        corpus = each.corpus
        languages = [getattr(one.tokenizer, "language", None) for one in (first, corpus)]
        if None not in languages and languages[0] != languages[1]:
            one, other = (language_name(str(language)) for language in languages)
            raise InputError(
                f"{names[0]} has texts in {one}, and {name} in {other}; only runs of one language can be merged"
            )
        if difference := tokenizer_difference(first.tokenizer, corpus.tokenizer):
            raise InputError(
                f"{names[0]} and {name} split texts in different ways: {difference}; train both with the same options"
            )
        if first.vectors is None or corpus.vectors is None:
            continue
        if first.encoder is not None and corpus.encoder is not None:
            first.encoder.require_same(corpus.encoder, name, names[0])
        if first.vectors.shape[1] != corpus.vectors.shape[1]:
            raise InputError(
                f"the vectors of {names[0]} have {first.vectors.shape[1]:,} numbers, and those of {name} "
                f"{corpus.vectors.shape[1]:,}; encode both with the same encoder"
            )


# The documents


def _documents(
    found: Sequence[Topics], names: Sequence[str], are_merged: Sequence[bool], keep_repeated: bool
) -> tuple[Corpus, list[int]]:
    """Return the documents of all runs over all words, and their numbers. Their texts are counted again."""
    given = [each.corpus for each in found]
    has_vectors = [corpus.vectors is not None for corpus in given]
    if any(has_vectors) and not all(has_vectors):
        logger.warning(
            "only %s has vectors, so the merged run keeps none",
            joined([name for name, has in zip(names, has_vectors, strict=True) if has]),
        )
    parts: list[Corpus] = []
    for name, corpus, is_merged in zip(names, given, are_merged, strict=True):
        fields = corpus.fields
        if not all(has_vectors):
            fields = replace(fields, vectors=None, encoder=None)
        if not is_merged:  # a merged run says already from which runs its documents are
            if RUN in fields.covariates:
                logger.warning(
                    "%s has a covariate %r, which the merged run replaces by the names of the runs; rename it to keep "
                    "it", name, RUN,
                )  # fmt: skip
            run = Categories(np.zeros(len(corpus), np.int32), (name,))
            fields = replace(fields, covariates={**fields.covariates, RUN: run})
        # Filters may differ, as the words are those of the runs.
        part = replace(corpus, fields=fields, settings=given[0].settings)
        if not keep_repeated:
            known = np.zeros(len(part), np.bool_)
            for earlier in given[: len(parts)]:
                known |= is_repeated(earlier, corpus)
            part = part[~known] if known.any() else part
        parts.append(part)
    whole = Corpus.concatenate(parts)
    if any(corpus.settings != given[0].settings for corpus in given):
        whole = replace(whole, settings={})
    return whole, [len(part) for part in parts]


# The topics


class _TopicPool:
    """The topics of runs, one run after another.

    Args:
        first: the first run.
        words: the V words of all runs, those of the first run before the further ones of the second, and so on.

    Attributes:
        numbers: the number of each topic in each run so far, None for a run without it.
        given: the names that its parts were given, each with the number of the run.
        known: (K, V) True for a word that a run with the topic knows.
    """

    def __init__(self, first: Topics, words: list[str]) -> None:
        self.words, self.columns = words, {word: column for column, word in enumerate(words)}
        self.numbers: list[list[int | None]] = []
        self.given: list[list[tuple[str, int]]] = []
        self.known = np.empty((0, len(words)), np.bool_)
        self._sums, self._weights = np.empty((0, len(words))), np.empty((0, len(words)))
        self._similarity: list[list[float]] = []  # at which each topic was joined
        self._nearest: list[tuple[float, int | None]] = []
        self._n_runs = self._n_words = 0  # so far
        self._take(first, [None] * len(first))

    def add(self, run: Topics, threshold: float, name: str) -> None:
        """Join the topics of another run with those that they match, and put the others behind them."""
        n_words = self._n_words
        if all(self.columns[word] >= n_words for word in run.vocabulary):
            raise InputError(
                f"{name} has no word in common with the runs before it; only runs of similar texts can be merged"
            )
        found = match(
            run.components, run.vocabulary, self.topics()[:, :n_words], self.words[:n_words], threshold=threshold
        )
        places = self._take(run, [pair.old for pair in found.pairs])
        for pair, place in zip(found.pairs, places, strict=True):
            if pair.old is None:
                self._nearest[place] = float(found.similarity[pair.topic, pair.nearest]), pair.nearest
            else:
                self._similarity[place].append(pair.similarity)
        for old, best in enumerate(found.similarity.argmax(axis=0).tolist()):
            if found.similarity[best, old] > self._nearest[old][0]:
                self._nearest[old] = float(found.similarity[best, old]), places[best]

    def _take(self, run: Topics, partners: Sequence[int | None]) -> list[int]:
        """Add the topics of a run to their partners, or as new topics, and return where each is."""
        places = []
        for partner in partners:
            if partner is None:
                self.numbers.append([None] * self._n_runs)
                self.given.append([])
                self._similarity.append([])
                self._nearest.append((0.0, None))
            places.append(len(self.numbers) - 1 if partner is None else partner)
        for row in self.numbers:
            row.append(None)
        more = len(self.numbers) - len(self.known), len(self.words)
        self.known = np.vstack([self.known, np.zeros(more, np.bool_)])
        self._sums, self._weights = (np.vstack([each, np.zeros(more)]) for each in (self._sums, self._weights))
        columns = [self.columns[word] for word in run.vocabulary]
        n_tokens = np.asarray(run.corpus.counts.sum(axis=1)).ravel() @ run.documents.theta.astype(np.float64)
        for topic, place in enumerate(places):
            weight = max(float(n_tokens[topic]), 1.0)
            self.numbers[place][self._n_runs] = topic
            self.known[place, columns] = True
            self._sums[place, columns] += weight * run.components[topic]
            self._weights[place, columns] += weight
            if (name := run.given_names[topic]) is not None:
                self.given[place].append((name, self._n_runs))
        self._n_runs += 1
        self._n_words = max(self._n_words, 1 + max(columns))
        return places

    def topics(self) -> Array:
        """Return the topics (K, V): the mean of their parts that know a word, and 0 where none does."""
        mean = np.divide(self._sums, self._weights, out=np.zeros_like(self._sums), where=self._weights > 0)
        topics: Array = mean / np.maximum(mean.sum(axis=1, keepdims=True), _SMALLEST)
        return topics

    def origins(self) -> list[TopicOrigin]:
        """Return where each topic is from."""
        return [
            TopicOrigin(topic, tuple(numbers), min(similarity), None)
            if similarity
            else TopicOrigin(topic, tuple(numbers), *nearest)
            for topic, (numbers, similarity, nearest) in enumerate(
                zip(self.numbers, self._similarity, self._nearest, strict=True)
            )
        ]

    def names(self, runs: Sequence[str]) -> tuple[dict[int, str], dict[int, str]]:
        """Return the name of each topic with one, and those names that differ from the given ones.

        A topic gets the first name that its parts were given. If an earlier topic has it, its run is added.
        """
        names: dict[int, str] = {}
        changed: dict[int, str] = {}
        for topic, given in enumerate(self.given):
            if not given:
                continue
            name, run = given[0]
            if name in names.values():
                name = f"{name} ({runs[run]})"
                while name in names.values():
                    name += "*"
                changed[topic] = name
            names[topic] = name
        return names, changed


def completed(
    topics: Array, known: npt.NDArray[np.bool_], corpus: Corpus, *, random_state: int = 0, device: str = "auto"
) -> tuple[Array, Array]:
    """Return topics with the words that they do not know, (K, V), and the Dirichlet parameter of theta, (K,).

    Both are learned by variational EM for LDA, in which the known words of a topic keep their proportions.

    Args:
        topics: (K, V) rows sum to 1 over the known words.
        known: (K, V) True for a word whose probability in the topic is known.
        corpus: documents over these words.
        random_state: the seed of the sample of documents, if there are very many.
        device: where theta is inferred.
    """
    rows = np.flatnonzero(~corpus.is_empty)
    if len(rows) > _MOST_DOCUMENTS:
        rows = np.sort(np.random.default_rng(random_state).choice(rows, _MOST_DOCUMENTS, replace=False))
    part = corpus[rows]
    frequency = corpus.word_counts + _SMALLEST
    frequency /= frequency.sum()
    beta = np.where(known, topics * (known @ frequency)[:, None], frequency)
    alpha = np.full(len(topics), 1 / len(topics))
    for _ in range(_STEPS):
        network = mean_field_network(beta + _SMALLEST, alpha).on(choose_device(device), seed=0)
        gamma = _gamma(network, part)
        expected_log = digamma(gamma) - digamma(gamma.sum(axis=1, keepdims=True))
        alpha = _dirichlet_parameter(expected_log.mean(axis=0), alpha)
        if known.all():
            continue
        tokens = _expected_tokens(part.counts, np.exp(expected_log), beta)
        of_known = (tokens * known).sum(axis=1, keepdims=True) + 1
        beta = np.where(known, topics * of_known, tokens + frequency)
        beta /= beta.sum(axis=1, keepdims=True)
    return beta + _SMALLEST, alpha


def _gamma(network: MeanFieldNetwork, corpus: Corpus) -> Array:
    """Return the parameters of q(theta) of documents, (n_docs, K)."""
    parts = each_batch(network, corpus, lambda batch: network.gamma_of(batch.counts))
    gamma: Array = np.concatenate(list(parts)).astype(np.float64)
    return gamma


def _expected_tokens(counts: sp.csr_array, weights: Array, beta: Array) -> Array:
    """Return how many tokens of each word the topics have, (K, V), given weights (D, K) of the topics in documents."""
    by_word = np.ascontiguousarray(beta.T)
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    ratio = np.empty(counts.nnz)
    step = max(1, _NUMBERS_AT_ONCE // len(beta))
    for start in range(0, counts.nnz, step):
        one = slice(start, start + step)
        mass = np.einsum("nk,nk->n", weights[rows[one]], by_word[counts.indices[one]])
        ratio[one] = counts.data[one] / np.maximum(mass, 1e-300)
    sums = sp.csr_array((ratio, counts.indices, counts.indptr), shape=counts.shape).T @ weights  # (V, K)
    tokens: Array = (sums * by_word).T
    return tokens


def _dirichlet_parameter(mean_log: Array, alpha: Array) -> Array:
    """Return the most likely Dirichlet parameter, given the means of log theta, by Minka's fixed point (2000)."""
    for _ in range(_FIXED_POINT_STEPS):
        target = digamma(alpha.sum()) + mean_log
        x = np.where(target >= -2.22, np.exp(target) + 0.5, -1 / (target - digamma(1.0)))  # Minka's start
        for _ in range(_NEWTON_STEPS):
            x = x - (digamma(x) - target) / polygamma(1, x)
        alpha = np.clip(x, _LEAST_ALPHA, _MOST_ALPHA)
    return alpha


def _answers(found: Sequence[Topics]) -> LanguageModelAnswers:
    """Return what language models said about the topics of all runs."""
    answers = LanguageModelAnswers()
    for each in reversed(found):
        answers.answers |= each.answers.answers
    for each in found:
        answers.sentences += [about for about in each.answers.sentences if about not in answers.sentences]
    return answers
