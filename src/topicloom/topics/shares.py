"""Shares of topics in groups of documents, with intervals, and the words and topics that differ between groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ..corpus.fields import Categories, Fields
from ..errors import InputError, SettingError
from ..messages import counted, nearest
from ..ranking import chosen_topics, names_or_numbers
from ..settings import require_seed, require_whole
from .curves import ShareCurve, share_curve
from .table import Table

Array = npt.NDArray[Any]
Correction = Literal["benjamini-hochberg", "holm"]

# A larger group is resampled in this many random parts of equal size. Their mean has the same standard error, and the
# cost no longer grows with the group.
_MOST_RESAMPLED = 2000
_PRIOR_TOKENS = 500.0  # the strength of the prior of `distinctive_words`
_LEAST_SCORE = 1.96  # of the words of a group; it is not corrected for many words, so a few exceed 3 by chance
_NUMBERS_AT_ONCE = 1 << 24  # in an array of tokens by topics
_SMALLEST_ODDS = 1e-12
_LARGEST_WRITTEN_IN_FULL = 1e9  # larger whole numbers have an exponent
_MOST_NUMBERS = 12  # different ones of a covariate, such as stars or hours, that are groups of their own
_GROUPS_OF_NUMBERS = 4


class GroupShares(NamedTuple):
    """Shares of K topics in G groups of documents.

    Attributes:
        mean: (G, K) the mean of theta over the documents of a group; NaN where a group has no document.
        low, high: (G, K) the interval of this mean; NaN where a group has fewer than two documents.
        n_docs: (G,) the number of documents.
        sampling_error: (G, K) the standard error of the mean by the choice of documents; NaN with fewer than two.
        theta_error: (G, K) the least standard error by the uncertainty of theta (`theta_errors`); None if it is not
            known.
    """

    mean: Array
    low: Array
    high: Array
    n_docs: Array
    sampling_error: Array | None = None
    theta_error: Array | None = None


def group_shares(
    theta: Array, groups: Array, n_groups: int, *, level: float = 0.95, n_samples: int = 1000, random_state: int = 0
) -> GroupShares:
    """Return the shares of topics in groups of documents.

    Documents are drawn with replacement from each group `n_samples` times. The bootstrap interval contains the middle
    part of the means. Deviations from the mean of n documents are multiplied by sqrt(n / (n - 1)), because the
    intervals of small groups would otherwise be too narrow (Hesterberg 2015).

    Most documents have little of a topic and a few have much. A small group often has none of the few, and its
    bootstrap interval is then far too narrow. The interval is therefore the smallest one that contains the bootstrap
    interval and the score interval (Wilson 1927) of n / phi documents. The dispersion phi of a topic is the variance of
    its theta within groups, as a share of m (1 - m), where m is the mean. All groups together estimate it.

    Args:
        theta: (n_docs, K) topic shares.
        groups: (n_docs,) the group of each document, from 0 to n_groups - 1; -1 for a document in no group.
        n_groups: the number of groups G.
        level: the probability that the interval should contain the share.
        n_samples: the number of bootstrap samples.
        random_state: a seed.

    Raises:
        SettingError: `level` is not between 0 and 1, or `n_samples` is not a whole number from 20, or `random_state` is
            no seed.
    """
    if not isinstance(level, float) or not 0 < level < 1:
        raise SettingError(f"`level={level!r}` should be a number between 0 and 1, such as 0.95")
    require_whole("n_samples", n_samples, 20)
    require_seed(random_state)
    random = np.random.default_rng(random_state)
    n_topics = theta.shape[1]
    mean, low, high = (np.full((n_groups, n_topics), np.nan) for _ in range(3))
    order = np.argsort(groups, kind="stable")
    bounds = np.searchsorted(groups[order], np.arange(n_groups + 1))
    variance, rest = np.zeros(n_topics), np.zeros(n_topics)
    errors = np.full((n_groups, n_topics), np.nan)
    for group, (start, end) in enumerate(pairwise(bounds)):
        if end == start:
            continue
        rows = theta[order[start:end]].astype(np.float64)  # (n, K)
        mean[group] = rows.mean(axis=0)
        if len(rows) > 1:
            deviations = _bootstrap_deviations(rows, n_samples, random)  # (n_samples, K)
            ends = np.quantile(deviations, [(1 - level) / 2, (1 + level) / 2], axis=0)
            low[group], high[group] = np.clip(mean[group] + ends, 0, 1)
            of_group = rows.var(axis=0, ddof=1)
            errors[group] = np.sqrt(of_group / len(rows))
            variance += len(rows) * of_group
            rest += (rows * (1 - rows)).sum(axis=0)
    n_docs = np.diff(bounds)
    # The expectations of these sums are phi and 1 - phi times the sum of m (1 - m), with m the true means.
    dispersion = np.divide(variance, variance + rest, out=np.zeros(n_topics), where=variance > 0)
    score_low, score_high = _score_interval(mean, dispersion / np.maximum(n_docs, 1)[:, None], level)
    return GroupShares(mean, np.minimum(low, score_low), np.maximum(high, score_high), n_docs, errors)


def theta_errors(theta: Array, n_tokens: Array, groups: Array, n_groups: int) -> Array:
    """Return the least standard error of the mean of theta in each group that comes from theta itself, (G, K).

    Theta is estimated from the tokens of a document. If the topic of each token were known, the variance of theta_dk
    would be theta_dk (1 - theta_dk) / (N_d + 1), that of a Dirichlet distribution with the counts of N_d tokens. As the
    topics of tokens are not known, the true variance is larger. The documents of a group are independent, given the
    topics.

    Args:
        theta: (n_docs, K) topic shares.
        n_tokens: (n_docs,) how many tokens of each document the model knows.
        groups: (n_docs,) the group of each document; -1 for none.
        n_groups: the number of groups G.

    Returns:
        standard errors; NaN for a group without documents.
    """
    inside = np.flatnonzero(groups >= 0)
    n_docs = np.bincount(groups[inside], minlength=n_groups).astype(np.float64)
    errors = np.empty((n_groups, theta.shape[1]))
    for topic in range(theta.shape[1]):
        shares = theta[inside, topic].astype(np.float64)
        variance = shares * (1 - shares) / (n_tokens[inside] + 1)
        sums = np.bincount(groups[inside], np.maximum(variance, 0), n_groups)
        errors[:, topic] = np.divide(np.sqrt(sums), n_docs, out=np.full(n_groups, np.nan), where=n_docs > 0)
    return errors


def share_cells(shares: GroupShares, group: int, topic: int, names: Sequence[str]) -> dict[str, Any]:
    """Return the cells of a group's share of a topic; None stands for what is not defined."""
    mean, low, high = (float(each[group, topic]) for each in (shares.mean, shares.low, shares.high))
    known = {"share": mean, "low": low, "high": high}
    cells = {name: None if np.isnan(value) else value for name, value in known.items()}
    return {"topic": topic, "name": names[topic], **cells, "documents": int(shares.n_docs[group])}


def _score_interval(mean: Array, scale: Array, level: float) -> tuple[Array, Array]:
    """Return the ends of the score interval (Wilson 1927) of a mean m whose variance is scale * m (1 - m)."""
    from scipy.special import ndtri

    square = float(ndtri((1 + level) / 2)) ** 2 * scale
    middle = mean + square / 2
    margin = np.sqrt(square * np.maximum(mean * (1 - mean), 0) + square**2 / 4)
    return (middle - margin) / (1 + square), (middle + margin) / (1 + square)


def _bootstrap_deviations(rows: Array, n_samples: int, random: np.random.Generator) -> Array:
    """Return by how much the means of bootstrap samples differ from the mean of the (n, K) rows: (n_samples, K)."""
    sizes = np.ones(len(rows))
    if len(rows) > _MOST_RESAMPLED:
        starts = np.linspace(0, len(rows), _MOST_RESAMPLED, endpoint=False).astype(np.intp)
        rows = np.add.reduceat(rows[random.permutation(len(rows))], starts, axis=0)
        sizes = np.diff(np.append(starts, sizes.sum()))
    n = len(rows)
    picks = random.integers(n, size=(n_samples, n)) + n * np.arange(n_samples)[:, None]
    drawn = np.bincount(picks.ravel(), minlength=n_samples * n).reshape(n_samples, n).astype(np.float64)
    means = drawn @ rows / (drawn @ sizes)[:, None]
    deviations: Array = (means - rows.sum(axis=0) / sizes.sum()) * np.sqrt(n / (n - 1))
    return deviations


def group_word_counts(
    counts: sp.csr_array, theta: Array, components: Array, groups: Array, n_groups: int, topic: int
) -> sp.csr_array:
    """Return how many tokens of each word a topic is expected to have in each group of documents.

    Every token of word w in document d belongs to topic k with probability theta_dk beta_kw / sum_j theta_dj beta_jw.

    Args:
        counts: (n_docs, V) CSR.
        theta: (n_docs, K) topic shares.
        components: (K, V) topics, whose rows sum to 1.
        groups: (n_docs,) the group of each document; -1 for none.
        n_groups: the number of groups G.
        topic: the number of the topic.

    Returns:
        (G, V) CSR, expected numbers of tokens.
    """
    by_word = np.ascontiguousarray(components.T)  # (V, K)
    step = max(1, _NUMBERS_AT_ONCE // theta.shape[1])  # tokens
    rows = np.repeat(np.arange(len(theta)), np.diff(counts.indptr))
    tokens = np.zeros(counts.nnz)
    for start in range(0, counts.nnz, step):
        part = slice(start, start + step)
        row, word = rows[part], counts.indices[part]
        mixture = np.einsum("nk,nk->n", theta[row], by_word[word], dtype=np.float64)
        ours = counts.data[part] * theta[row, topic].astype(np.float64) * by_word[word, topic]
        np.divide(ours, mixture, out=tokens[part], where=mixture > 0)
    inside = groups[rows] >= 0
    places = (groups[rows[inside]], counts.indices[inside])
    expected: sp.csr_array = sp.coo_array((tokens[inside], places), (n_groups, counts.shape[1])).tocsr()
    return expected


def distinctive_words(ours: Array, total: Array) -> Array:
    """Score how much more one group uses each word than all others together.

    The score is the z-value of the log odds ratio with an informative Dirichlet prior, which is proportional to the
    counts of all groups (Monroe, Colaresi & Quinn 2008, "Fightin' Words", equations 16 and 22). A rare word has a small
    score even where only one group uses it.

    Args:
        ours: (V,) the number of tokens of each word in the group.
        total: (V,) the number of tokens of each word in all groups.

    Returns:
        (V,) scores; a higher one is more typical of the group.
    """
    scores = np.zeros(len(total))
    used = total > 0
    if not used.any():
        return scores
    prior = _PRIOR_TOKENS * total[used] / total.sum()
    inside, outside = ours[used] + prior, np.maximum(total[used] - ours[used], 0) + prior
    odds_inside = inside / (inside.sum() - inside + _SMALLEST_ODDS)
    odds_outside = outside / (outside.sum() - outside + _SMALLEST_ODDS)
    scores[used] = (np.log(odds_inside) - np.log(odds_outside)) / np.sqrt(1 / inside + 1 / outside)
    return scores


def words_of_groups(
    group_counts: sp.csr_array, vocabulary: list[str], top_n: int = 10
) -> list[list[tuple[str, float, float]]]:
    """Return the words that each group uses more than the others: (word, score, tokens), best first.

    Args:
        group_counts: (G, V) as `group_word_counts` returns it. If there is a single group, its most frequent words are
            returned, with their tokens as the score.
        vocabulary: the V words.
        top_n: the number of words for each group; a group has fewer if it uses fewer words more than the others.
    """
    total = np.asarray(group_counts.sum(axis=0)).ravel()
    found = []
    for group in range(group_counts.shape[0]):
        ours = group_counts[[group]].toarray().ravel()
        score = distinctive_words(ours, total) if group_counts.shape[0] > 1 else ours
        candidates = np.flatnonzero((score >= _LEAST_SCORE) if group_counts.shape[0] > 1 else ours > 0)
        best = candidates[np.argsort(-score[candidates], kind="stable")[:top_n]]
        found.append([(vocabulary[word], float(score[word]), float(ours[word])) for word in best])
    return found


def words_by_group(
    counts: sp.csr_array,
    theta: Array,
    components: Array,
    vocabulary: list[str],
    groups: Array,
    group_names: Sequence[str],
    topic: int,
    column: str,
    n_words: int = 10,
) -> Table:
    """Return the words that each group of documents uses more for a topic than the other groups.

    Args:
        counts: (n_docs, V) CSR.
        theta: (n_docs, K) topic shares.
        components: (K, V) topics, whose rows sum to 1.
        vocabulary: the V words.
        groups: (n_docs,) the group of each document; -1 for none.
        group_names: the G names.
        topic: the number of the topic.
        column: what the column with the names of the groups is called.
        n_words: the number of words for each group.

    Returns:
        a table with this column, word, score (see `distinctive_words`) and tokens (expected).
    """
    expected = group_word_counts(counts, theta, components, groups, len(group_names), topic)
    rows = [
        {column: name, "word": word, "score": score, "tokens": tokens}
        for name, words in zip(group_names, words_of_groups(expected, vocabulary, n_words), strict=True)
        for word, score, tokens in words
    ]
    return Table.of(rows, f"Words of topic {topic} by {column}", (column, "word", "score", "tokens"))


# Topics by group: their shares by class, by category or by quantiles of a number, and the topics that differ.


@dataclass(frozen=True)
class Difference:
    """How the share of a topic differs between groups.

    Attributes:
        topic: its number.
        highest, lowest: the groups with the largest and the smallest share, among groups with documents.
        difference: between these two shares.
        p: of the Kruskal-Wallis test that theta has the same distribution in all groups; None where it is not defined.
        p_holm: p corrected after Holm (1979) for the tests of all topics.
    """

    topic: int
    highest: str | None
    lowest: str | None
    difference: float | None
    p: float | None
    p_holm: float | None


@dataclass(frozen=True, eq=False, repr=False)
class ByGroup:
    """Shares of topics by group.

    Attributes:
        by: what the documents are grouped by, such as "class".
        groups: the G names of the groups.
        shares: mean, low and high, (G, K), and n_docs, (G,).
        names: the K names of the topics.
        differences: one for each topic.
        n_main: (G, K) the number of documents of each group whose largest topic it is.
        p: (G, K) of the test that the share of a group is that of all documents; NaN where there is no test.
        n_unknown: the number of documents that are left out because their group or all their words are unknown.
        curve: the shares as smooth functions of the covariate, if it has numbers and at least 5 different ones.
    """

    by: str
    groups: list[str]
    shares: GroupShares
    names: list[str]
    differences: list[Difference]
    n_main: Array
    p: Array
    n_unknown: int = 0
    curve: ShareCurve | None = None

    def cross_table(
        self, topics: Sequence[int] | None = None, *, correction: Correction = "benjamini-hochberg"
    ) -> Table:
        """Return a row for each topic and group, with its share, its lift, and whether it differs from all documents.

        Each group is compared with all documents by a permutation test, which takes documents to be independent. The
        p-values of all topics and groups are corrected together. "benjamini-hochberg" bounds the expected part of false
        ones among the differences by 5 %; "holm" bounds the chance of even one false difference by 5 %.

        The columns are topic, name, the group (`column`), documents, main_documents (whose largest topic it is), share,
        low, high, lift (the share divided by that of all documents), p, p_corrected, and differs: "higher", "lower" or
        None.

        Args:
            topics: these topics only; the correction still counts all.
            correction: "benjamini-hochberg" or "holm".

        Raises:
            SettingError: there is no such topic or correction.
        """
        from scipy.stats import false_discovery_control

        if correction not in get_args(Correction):
            raise SettingError(
                f"`correction={correction!r}` is unknown; {nearest(str(correction), get_args(Correction))}"
            )
        corrected, known = np.full(self.p.shape, np.nan), np.isfinite(self.p)
        if known.any():
            given = self.p[known]
            corrected[known] = (
                false_discovery_control(given) if correction == "benjamini-hochberg" else holm(given.tolist())
            )
        n_docs = self.shares.n_docs
        total = np.nansum(self.shares.mean * n_docs[:, None], axis=0) / max(int(n_docs.sum()), 1)
        rows = []
        for k in chosen_topics(topics, len(self.names)):
            for g, group in enumerate(self.groups):
                cells = share_cells(self.shares, g, k, self.names)
                p, adjusted = (None if np.isnan(each[g, k]) else float(each[g, k]) for each in (self.p, corrected))
                lift = None if cells["share"] is None or not total[k] else cells["share"] / float(total[k])
                differs = None
                if adjusted is not None and adjusted < 0.05 and lift is not None:
                    differs = "higher" if lift > 1 else "lower"
                rows.append(
                    {
                        "topic": k, "name": self.names[k], self.column: group, "documents": cells["documents"],
                        "main_documents": int(self.n_main[g, k]), "share": cells["share"], "low": cells["low"],
                        "high": cells["high"], "lift": lift, "p": p, "p_corrected": adjusted, "differs": differs,
                    }
                )  # fmt: skip
        return Table.of(rows, f"Topics by {self.by} (p_corrected by {correction}, for all topics and groups)")

    def table(self, topics: Sequence[int] | None = None) -> Table:
        """Return a row for each topic and group.

        The columns are the group (`column`), topic, name, share, low, high and documents.

        Args:
            topics: these topics only.

        Raises:
            SettingError: there is no such topic.
        """
        rows = [
            {self.column: group, **share_cells(self.shares, g, k, self.names)}
            for k in chosen_topics(topics, len(self.names))
            for g, group in enumerate(self.groups)
        ]
        return Table.of(rows, f"Shares of topics by {self.by}")

    def difference_table(self) -> Table:
        """Return a row for each topic, the greatest difference first.

        The columns are topic, name, highest, lowest, difference, p and p_holm.
        """
        ranked = sorted(self.differences, key=lambda each: (-(each.difference or 0), each.topic))
        rows = [
            {
                "topic": each.topic, "name": self.names[each.topic], "highest": each.highest, "lowest": each.lowest,
                "difference": each.difference, "p": each.p, "p_holm": each.p_holm,
            }
            for each in ranked
        ]  # fmt: skip
        return Table.of(rows, f"Topics by {self.by} (Kruskal-Wallis test; p_holm is corrected for all topics)")

    @property
    def column(self) -> str:
        """The name of the column of tables that has the groups: `by`, unless another column has this name."""
        taken = ("topic", "name", "share", "low", "high", "documents")
        of_cross_table = ("main_documents", "lift", "p", "p_corrected", "differs")
        return f"{self.by} (group)" if self.by in taken + of_cross_table else self.by

    def __repr__(self) -> str:
        return f"ByGroup({counted(len(self.groups), 'group')} by {self.by}, {len(self.names)} topics)"

    def _repr_html_(self) -> str:
        return self.difference_table()._repr_html_()


def by_group(
    theta: Array,
    groups: Array,
    group_names: Sequence[str],
    by: str = "group",
    *,
    empty: npt.NDArray[np.bool_] | None = None,
    names: Sequence[str] | None = None,
    level: float = 0.95,
    n_samples: int = 1000,
    random_state: int = 0,
) -> ByGroup:
    """Return the shares of topics by group, and how topics differ between groups.

    The Kruskal-Wallis test compares the ranks of all documents by their theta, and takes documents to be independent of
    each other. It also detects groups with equal means and different spreads: the theta of short documents, for
    example, is closer to the average. The p-values of all topics are corrected after Holm.

    Args:
        theta: (n_docs, K) topic shares.
        groups: (n_docs,) the group of each document, from 0 to G - 1; -1 for a document in no group.
        group_names: the G names.
        by: what the documents are grouped by.
        empty: (n_docs,) True for documents without a known word, which are left out.
        names: the K names of the topics.
        level: the probability that an interval should contain the share.
        n_samples: the number of bootstrap samples.
        random_state: a seed.

    Raises:
        SettingError: an argument cannot have its value.
    """
    codes = groups if empty is None else np.where(empty, -1, groups)
    shares = group_shares(theta, codes, len(group_names), level=level, n_samples=n_samples, random_state=random_state)
    tested = [_kruskal(column, codes) for column in theta.T]
    full = np.flatnonzero(shares.n_docs)
    differences = []
    for topic, (p, adjusted) in enumerate(zip(tested, holm(tested), strict=True)):
        column = shares.mean[full, topic]
        if len(full) < 2:
            differences.append(Difference(topic, None, None, None, p, adjusted))
            continue
        high, low = int(column.argmax()), int(column.argmin())
        highest, lowest = group_names[full[high]], group_names[full[low]]
        differences.append(Difference(topic, highest, lowest, float(column[high] - column[low]), p, adjusted))
    known = names_or_numbers(names, theta.shape[1])
    n_main = np.zeros(shares.mean.shape, np.intp)
    np.add.at(n_main, (codes[codes >= 0], theta[codes >= 0].argmax(axis=1)), 1)
    return ByGroup(
        by, list(group_names), shares, known, differences, n_main, _permutation_tests(theta, codes, shares),
        int((codes < 0).sum()),
    )  # fmt: skip


def by_covariate(
    theta: Array,
    fields: Fields,
    covariate: str = "class",
    *,
    label: str | None = None,
    n_groups: int | None = None,
    most_groups: int | None = None,
    empty: npt.NDArray[np.bool_] | None = None,
    names: Sequence[str] | None = None,
    level: float = 0.95,
    n_samples: int = 1000,
    random_state: int = 0,
) -> ByGroup:
    """Return the shares of topics by the class or a covariate of the documents, as groups and, for numbers, as curves.

    Args:
        theta: (n_docs, K) topic shares.
        fields: what is known of the documents.
        covariate: "class" for their labels, or the name of a covariate.
        label: a further name of the labels, such as "section"; see `groups_of`.
        n_groups: the number of groups into which numbers are divided at their quantiles; see `groups_of`.
        most_groups: of more groups, those with the most documents are returned; None returns all.
        empty: (n_docs,) True for documents without a known word, which are left out.
        names: the K names of the topics.
        level: the probability that an interval should contain the share.
        n_samples: the number of bootstrap samples.
        random_state: a seed.

    Raises:
        InputError: the documents have no classes or no such covariate, or no document has a value.
        SettingError: an argument cannot have its value.

    Examples:
        >>> import numpy as np
        >>> from topicloom.corpus.fields import Fields
        >>> from topicloom.topics.shares import by_covariate
        >>> price = np.arange(100.0)
        >>> theta = np.stack([price / 200, 1 - price / 200], axis=1)
        >>> found = by_covariate(theta, Fields.of(100, covariates={"price": price}), "price", n_groups=2)
        >>> found.groups, found.shares.mean[:, 0].round(3).tolist(), found.curve is None
        (['0 to 49', '50 to 99'], [0.122, 0.372], False)
    """
    groups, group_names = groups_of(fields, covariate, n_groups, label)
    if most_groups is not None and len(group_names) > most_groups:
        sizes = np.bincount(groups[groups >= 0], minlength=len(group_names))
        kept = np.sort(np.argsort(-sizes, kind="stable")[:most_groups])
        place = np.full(len(group_names) + 1, -1, np.intp)  # the last entry is that of no group
        place[kept] = np.arange(len(kept))
        groups, group_names = place[groups], [group_names[group] for group in kept.tolist()]
    found = by_group(
        theta, groups, group_names, covariate, empty=empty, names=names, level=level, n_samples=n_samples,
        random_state=random_state,
    )  # fmt: skip
    values = fields.covariates.get(covariate)
    if values is None or isinstance(values, Categories):
        return found
    return replace(found, curve=share_curve(theta, values, by=covariate, empty=empty, names=names, level=level))


def groups_of(
    fields: Fields, by: str = "class", n_groups: int | None = None, label: str | None = None
) -> tuple[npt.NDArray[np.intp], list[str]]:
    """Assign documents to groups.

    Args:
        fields: what is known of the documents.
        by: "class" for their labels, or the name of a covariate. Numbers are divided at their quantiles, into groups of
            about the same size; if there are no more than `n_groups` different numbers, each is a group.
        n_groups: the number of groups into which numbers are divided. None is 4, but if there are at most 12
            different numbers, such as stars, each is a group.
        label: the name of the column that the labels were read from, which is as good as "class"; a covariate of this
            name comes first.

    Returns:
        (n_docs,) the group of each document, -1 if it is unknown; and the names of the groups.

    Raises:
        InputError: the documents have no classes or no such covariate, or no document has a value.
        SettingError: `n_groups` is not a whole number from 2, or `by` is not one name.
    """
    if n_groups is not None:
        require_whole("n_groups", n_groups, 2)
    if not isinstance(by, str):
        raise SettingError(
            f"`covariate` should be the name of one covariate; it is {by!r:.60}. For several, give a covariate that "
            "holds their combinations, or regress the shares in `document_table()` on them"
        )
    if by in fields.covariates:
        values = fields.covariates[by]
        groups = (
            (values.codes.astype(np.intp), list(values.names))
            if isinstance(values, Categories)
            else quantile_groups(values, _default_groups(values) if n_groups is None else n_groups)
        )
    elif by in ("class", label):
        labels = fields.labels or []
        known = sorted({label for label in labels if label})
        place = {label: code for code, label in enumerate(known)} | {"": -1}
        groups = np.array([place[label] for label in labels], np.intp), known
    else:
        names = sorted(fields.covariates)
        of_labels = {"class": "class (their labels)"}
        if label is not None:
            of_labels = {label: f"{label} (their labels)", "class": "class (their labels)"}
        raise InputError(
            f"the documents have no covariate {by!r}, and covariates are given when the corpus is made (`covariates`); "
            f"{nearest(by, [*names, *of_labels], [*names, *of_labels.values()])}"
        )
    if not (groups[0] >= 0).any():
        is_class = by in ("class", label) and by not in fields.covariates
        what = "class" if is_class else f"value of {by!r}"
        raise InputError(
            f"no document has a {what}, so topics cannot be shown by it; they are given when the corpus is made "
            f"({'`labels`' if is_class else '`covariates`'})"
        )
    return groups


def _default_groups(values: Array) -> int:
    n_different = len(np.unique(values[np.isfinite(values)]))
    return n_different if 2 <= n_different <= _MOST_NUMBERS else _GROUPS_OF_NUMBERS


def quantile_groups(values: Array, n_groups: int = 4) -> tuple[npt.NDArray[np.intp], list[str]]:
    """Divide numbers at their quantiles.

    Args:
        values: (n,) numbers; those that are not finite belong to no group.
        n_groups: the number of groups. There are fewer where quantiles coincide.

    Returns:
        (n,) groups, -1 for none; and their names: the range of the numbers in each group, such as "1.5 to 3".
    """
    known = np.isfinite(values)
    codes = np.full(len(values), -1, np.intp)
    distinct = np.unique(values[known])
    if len(distinct) <= n_groups:
        codes[known] = np.searchsorted(distinct, values[known])
        digits = _digits(distinct.tolist())
        return codes, [_written(value, digits) for value in distinct.tolist()]
    inner = np.unique(np.quantile(values[known], np.arange(1, n_groups) / n_groups))
    codes[known] = np.unique(np.searchsorted(inner, values[known], side="left"), return_inverse=True)[1]
    members = [values[codes == group] for group in range(codes.max() + 1)]
    digits = _digits([m.max() for m in members], least=4)
    ends = [(_written(m.min(), digits), _written(m.max(), digits)) for m in members]
    return codes, [low if low == high else f"{low} to {high}" for low, high in ends]


def _digits(values: Sequence[float], least: int = 6) -> int:
    """Return with how many significant digits different numbers are written differently."""
    choices = [digits for digits in (4, 6, 9) if digits >= least]
    return next((digits for digits in choices if len({_written(v, digits) for v in values}) == len(values)), 17)


def _written(value: float, digits: int) -> str:
    """Return a number with `digits` significant digits; a whole number has all of them unless it is very large."""
    return f"{value:.0f}" if value.is_integer() and abs(value) < _LARGEST_WRITTEN_IN_FULL else f"{value:.{digits}g}"


def _kruskal(column: Array, codes: Array) -> float | None:
    """Return the p-value of the Kruskal-Wallis test; None with fewer than two groups, or if all values are equal."""
    from scipy.stats import kruskal

    inside = codes >= 0
    column, codes = column[inside], codes[inside]
    present = np.unique(codes)
    if len(present) < 2 or len(column) < 3 or np.ptp(column) < 1e-9:
        return None
    return float(kruskal(*(column[codes == group] for group in present)).pvalue)


def _permutation_tests(theta: Array, codes: Array, shares: GroupShares) -> Array:
    """Return the p-value of each group and topic, (G, K): does the group have another share than all documents?

    The documents of a group are compared with as many that are drawn without replacement from all. The variance
    and the skewness of their mean are known exactly, and its distribution is taken to be a gamma distribution (Mielke &
    Berry 2007). NaN where a group has no document or all of them.
    """
    from scipy.special import ndtr

    found = np.full(shares.mean.shape, np.nan)
    rows = theta[codes >= 0].astype(np.float64)
    n = shares.n_docs.astype(np.float64)[:, None]
    if len(rows) < 3:
        return found
    mean, variance = rows.mean(axis=0), rows.var(axis=0, ddof=1)
    third = ((rows - mean) ** 3).sum(axis=0) * len(rows) / ((len(rows) - 1) * (len(rows) - 2))  # k-statistic, (K,)
    varies = variance > 1e-18
    spread = np.sqrt(np.where(varies, variance, 1))
    part = n / len(rows)
    error = np.sqrt(np.maximum(1 - part, 0) / np.maximum(n, 1)) * spread
    known = (n > 0) & (part < 1) & varies
    skewness = (1 - 2 * part) * third / spread**3 / np.sqrt(np.maximum(n * (1 - part), 1e-9))
    with np.errstate(invalid="ignore"):
        distance = np.divide(shares.mean - mean, error, out=np.zeros(found.shape), where=known)
    scores = normal_scores(distance, skewness)
    found[known] = 2 * ndtr(-np.abs(scores[known]))
    return found


def normal_scores(values: Array, skewness: Array) -> Array:
    """Return standardised gamma variables as standard normal ones (Wilson & Hilferty 1931)."""
    skewness = np.where(np.abs(skewness) < 1e-6, 1e-6, skewness)
    scores: Array = 6 / skewness * (np.cbrt(np.maximum(skewness * values / 2 + 1, 1e-12)) - 1) + skewness / 6
    return scores


# Tests of many topics, or of many pairs of models, at once.


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjust the p-values of several tests after Holm (1979).

    If only adjusted values below a level count as significant, the chance of any false positive is at most that level,
    however the tests depend on one another.

    Args:
        p_values: one for each test; None if there was no test.

    Returns:
        the adjusted values in the same order, at most 1.

    Examples:
        >>> from topicloom.topics.shares import holm
        >>> holm([0.01, 0.5, None])
        [0.02, 0.5, None]
    """
    tested = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(tested):
        highest = max(highest, min(1.0, (len(tested) - rank) * p))
        adjusted[place] = highest
    return adjusted
