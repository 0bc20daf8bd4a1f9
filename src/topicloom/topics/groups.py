"""Topics by group: their shares by class, by category or by quantiles of a number, and the topics that differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..corpus.covariates import Categories
from ..corpus.fields import Fields
from ..errors import InputError, SettingError, nearest
from ..metrics.correction import holm
from ..settings import require_whole
from .shares import GroupShares, group_shares, share_cells
from .table import Table
from .words import chosen_topics, names_or_numbers

Array = npt.NDArray[Any]
_PLAIN = 1e9  # from here on, whole numbers are written like others


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
        n_unknown: the number of documents that are left out because their group or all their words are unknown.
    """

    by: str
    groups: list[str]
    shares: GroupShares
    names: list[str]
    differences: list[Difference]
    n_unknown: int = 0

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
        """The name of the column of `table` that has the groups: `by`, unless another column has this name."""
        taken = {"topic", "name", "share", "low", "high", "documents"}
        return f"{self.by} (group)" if self.by in taken else self.by

    def __repr__(self) -> str:
        return f"ByGroup({len(self.groups)} groups by {self.by}, {len(self.names)} topics)"

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
    each other. It also finds groups of equal means whose theta is spread differently, such as that of short documents,
    which is nearer to the average. The p-values of all topics are corrected after Holm.

    Args:
        theta: (n_docs, K) topic shares.
        groups: (n_docs,) the group of each document, from 0 to G - 1; -1 for a document in no group.
        group_names: the G names.
        by: what the documents are grouped by.
        empty: (n_docs,) True for documents without a known word, which are left out.
        names: the K names of the topics.
        level, n_samples, random_state: as for `group_shares`.

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
    return ByGroup(by, list(group_names), shares, known, differences, int((codes < 0).sum()))


def groups_of(fields: Fields, by: str = "class", n_groups: int = 4) -> tuple[npt.NDArray[np.intp], list[str]]:
    """Assign documents to groups.

    Args:
        fields: what is known of the documents.
        by: "class" for their labels, or the name of a covariate. Numbers are divided at their quantiles, into groups of
            about the same size; if there are no more than `n_groups` different numbers, each is a group.
        n_groups: the number of groups into which numbers are divided.

    Returns:
        (n_docs,) the group of each document, -1 if it is unknown; and the names of the groups.

    Raises:
        InputError: the documents have no classes or no such covariate, or no document has a value.
        SettingError: `n_groups` is not a whole number from 2, or `by` is not one name.
    """
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
            else quantile_groups(values, n_groups)
        )
    elif by == "class":
        labels = fields.labels or []
        known = sorted({label for label in labels if label})
        place = {label: code for code, label in enumerate(known)} | {"": -1}
        groups = np.array([place[label] for label in labels], np.intp), known
    else:
        raise InputError(
            f"the documents have no covariate {by!r} (covariates are given when the corpus is made: --covariate COLUMN "
            f"of train, or covariates=... of Corpus); {nearest(by, [*fields.covariates, 'class'])}"
        )
    if not (groups[0] >= 0).any():
        what = "class" if by == "class" else f"value of {by!r}"
        raise InputError(
            f"no document has a {what}, so topics cannot be shown by it; "
            "they are given when the corpus is made: "
            + ("--label COLUMN of train, or labels=... of Corpus" if by == "class" else "covariates=... of Corpus")
        )
    return groups


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
        return codes, [_written(value, 6) for value in distinct]
    inner = np.unique(np.quantile(values[known], np.arange(1, n_groups) / n_groups))
    codes[known] = np.unique(np.searchsorted(inner, values[known], side="left"), return_inverse=True)[1]
    members = [values[codes == group] for group in range(codes.max() + 1)]
    digits = next((d for d in (4, 6, 9) if len({_written(m.max(), d) for m in members}) == len(members)), 17)
    ends = [(_written(m.min(), digits), _written(m.max(), digits)) for m in members]
    return codes, [low if low == high else f"{low} to {high}" for low, high in ends]


def _written(value: float, digits: int) -> str:
    """Return a number with so many significant digits; a whole number with all of them, unless it is very large."""
    return f"{value:.0f}" if value.is_integer() and abs(value) < _PLAIN else f"{value:.{digits}g}"


def _kruskal(column: Array, codes: Array) -> float | None:
    """Return the p-value of the Kruskal-Wallis test; None with fewer than two groups, or if all values are equal."""
    from scipy.stats import kruskal

    inside = codes >= 0
    column, codes = column[inside], codes[inside]
    present = np.unique(codes)
    if len(present) < 2 or len(column) < 3 or np.ptp(column) < 1e-9:
        return None
    return float(kruskal(*(column[codes == group] for group in present)).pvalue)
