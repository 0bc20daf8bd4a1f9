"""Commands that compare the topics of a run: hierarchy, trends, by and match."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt
import typer
from rich.console import Console

from ..errors import InputError
from ..messages import counted
from .options import (
    Allow,
    AsJson,
    Bins,
    End,
    MinDocuments,
    Overwrite,
    Period,
    QuietNotes,
    Run,
    Start,
    check_new,
    check_table,
    is_for_print,
    mention_edits,
    number_or_name,
    open_topics,
    read_bins,
)
from .shell import command, print_json, print_table, say

if TYPE_CHECKING:
    from ..topics.shares import ByGroup, Correction
    from ..topics.table import Table
    from ..topics.trends import OverTime
    from ..topics.view import Topics


# Bars of text for shares over time, as wide as the terminal

_BARS = "▁▂▃▄▅▆▇█"
_LEAST = 8


def periods_of_a_bar(n_periods: int, n_others: int) -> int:
    """Return how many periods share a bar, so that all bars fit on a line of the terminal.

    Args:
        n_periods: the number of periods.
        n_others: the characters that the other columns need.
    """
    room = max(Console().width - n_others, _LEAST)
    return -(-n_periods // room)


def bars(shares: Sequence[float], n_docs: Sequence[int], each: int = 1) -> str:
    """Draw shares as bars. The largest share has the highest bar, and periods without documents leave a gap.

    Args:
        shares: the share of a topic in each period; NaN where there is no document.
        n_docs: the number of documents in each period.
        each: the number of consecutive periods that share a bar. It shows the mean over their documents.
    """
    values = []
    for start in range(0, len(shares), each):
        part = [(share, n) for share, n in zip(shares[start : start + each], n_docs[start:], strict=False) if n]
        values.append(sum(share * n for share, n in part) / sum(n for _, n in part) if part else None)
    top = max((value for value in values if value is not None), default=0.0) or 1.0
    heights = (None if value is None else min(int(value / top * len(_BARS)), len(_BARS) - 1) for value in values)
    return "".join(" " if height is None else _BARS[height] for height in heights)


logger = logging.getLogger("topicloom")

_PASSAGE = 160  # characters of a document
_MOST_COLUMNS = 8  # the most groups that have a column each
_OTHERS = 41  # characters of the other columns of `trends`, with names of eight characters


class Corrections(StrEnum):
    """Corrections for many tests."""

    benjamini_hochberg = "benjamini-hochberg"
    holm = "holm"


class Linkage(StrEnum):
    """How the distance of two groups of topics is computed from the distances of their topics."""

    average = "average"
    complete = "complete"
    single = "single"


Out = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Write the whole table: .csv, .tsv, .json, .jsonl, .parquet, .xlsx, .tex, .md or .html."
    ),
]
Topic = Annotated[str | None, typer.Option(metavar="TOPIC", help="One topic, by its number or its name, in detail.")]
_WORDS = 5  # to show, by default
WordsOf = Annotated[int, typer.Option(min=1, help="Words to show.")]
Samples = Annotated[int, typer.Option(min=20, help="Bootstrap samples for the intervals.")]
Level = Annotated[float, typer.Option(help="Coverage of the intervals, such as 0.95.")]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same intervals.")]


@command
def hierarchy(
    run: Run,
    groups: Annotated[int | None, typer.Option(min=1, help="Cut the tree into this many groups of topics.")] = None,
    words: WordsOf = _WORDS,
    word_weight: Annotated[
        float, typer.Option(help="Weight of shared words, from 0 to 1; the rest is the weight of shared documents.")
    ] = 0.5,
    method: Annotated[Linkage, typer.Option(help="Linkage of the tree.")] = Linkage.average,
    out: Out = None,
    overwrite: Overwrite = False,
    quiet: QuietNotes = False,
    as_json: AsJson = False,
) -> None:
    """Show which topics belong together, as a tree. Each join has its distance, from 0 to 1."""
    check_table(out, overwrite)
    view = open_topics(run)
    tree = view.hierarchy(word_weight=word_weight, method=method.value, n_words=words)
    cut = None if groups is None else tree.cut(groups)
    if as_json:
        print_json({"run": str(run), "nodes": tree.table().to_dicts(), "order": tree.order, "groups": cut})
    else:
        say(tree.tree(groups, words))
    _write(tree.table(), out)


@command
def trends(
    run: Run,
    period: Period = "auto",
    bins: Bins = None,
    start: Start = None,
    end: End = None,
    min_documents: MinDocuments = None,
    topic: Topic = None,
    words: WordsOf = _WORDS,
    documents: Annotated[
        int, typer.Option(min=0, metavar="N", help="Documents of --topic to show for each period.")
    ] = 0,
    level: Level = 0.95,
    samples: Samples = 1000,
    seed: Seed = 0,
    out: Out = None,
    overwrite: Overwrite = False,
    quiet: QuietNotes = False,
    as_json: AsJson = False,
) -> None:
    """Show the shares of topics over time, and which topics rise, fall or have a burst.

    The tests use the number of documents and allow for what the documents of a period have in common. They have Holm's
    correction for the number of topics. The file of --out has the share of every topic in every period.
    """
    check_table(out, overwrite)
    if documents and topic is None:
        raise InputError("`documents` shows those of one topic; name it by `topic`")
    if words != _WORDS and topic is None:
        raise InputError("`words` shows those of one topic in each period; name it by `topic`")
    view = open_topics(run)
    when: dict[str, Any] = {"bins": read_bins(bins), "start": start, "end": end}
    found = view.over_time(
        period, **when, min_documents=min_documents, level=level, n_samples=samples, random_state=seed
    )
    n_outside = found.periods.n_outside
    n_unknown = found.n_unknown - n_outside
    if topic is not None:
        k = view.number_of(number_or_name(topic))
        found_period = period if bins else found.period
        table, of_words = found.table([k]), view.words_over_time(k, found_period, words, **when)
        of_documents = None
        if documents:
            of_documents = view.documents_over_time(k, found_period, documents, **when, length=_PASSAGE)
        _show_group_shares(run, table, "period", of_words, view.names[k], k, as_json, of_documents)
    elif as_json:
        print_json(
            {
                "run": str(run),
                "period": found.period,
                "periods": found.period_names,
                "documents": found.shares.n_docs.tolist(),
                "sparse": found.sparse.tolist(),
                "min_documents": found.min_documents,
                "without_time_or_words": n_unknown,
                "outside": n_outside,
                "trends": found.trend_table().to_dicts(),
                "bursts": found.burst_table().to_dicts(),
                "shares": found.table().to_dicts(),
            }
        )
    else:
        _show_trends(found, view.shares)
    if not as_json:
        _log_periods(found)
        _log_unknown(n_unknown, "time")
        if n_outside:
            logger.info("%s are left out, because their time is outside", counted(n_outside, "document"))
    if is_for_print(out):
        from ..topics.publication import chosen_language, trends_for_print

        language = chosen_language("auto", view.corpus.tokenizer)
        _write(trends_for_print(found, view.given_names, level, language), out)
    else:
        _write(found.table(), out)


def _show_trends(found: OverTime, shares: npt.NDArray[Any]) -> None:
    """Show a row for each topic: its share, its trend and its bursts if there are any, and its shares as bars."""
    marks = {"rising": "↑ rising", "falling": "↓ falling"}
    n_docs = np.where(found.sparse, 0, found.shares.n_docs).tolist()
    rows_of_trends = list(found.trend_table().rows())
    longest = max((len(row["burst"] or "") for row in rows_of_trends), default=0)  # 0 where no topic has a burst
    has_trends = any(row["trend"] in marks for row in rows_of_trends)
    each = periods_of_a_bar(len(n_docs), _OTHERS + longest + 2 * bool(longest))
    rows = (
        [
            str(row["topic"]),
            f"{shares[row['topic']]:.1%}",
            row["name"],
            *([marks.get(row["trend"], "")] if has_trends else []),
            _p(row["p_holm"]),
            *([row["burst"] or ""] if longest else []),
            bars(found.shares.mean[:, row["topic"]].tolist(), n_docs, each),
        ]
        for row in rows_of_trends
    )
    trend, burst = ["trend"] * has_trends, ["burst"] * bool(longest)
    columns = ["topic", "share", "name", *trend, "p (Holm)", *burst, _span_of_bars(found, each)]
    print_table(columns, rows, n_numbers=2, whole=len(columns) - 1)
    if not has_trends and any(row["p_holm"] is not None for row in rows_of_trends):
        logger.info("no topic rises or falls significantly")


def _span_of_bars(found: OverTime, each: int) -> str:
    """Return the heading of the bars: their span, and the periods of a bar, such as "2024-01 to 2024-12, by month"."""
    names = found.period_names
    if len(names) == 1:
        return names[0]
    n, _, units = found.period.rpartition(" ")
    unit = units.removesuffix("s")
    by = f"{each * int(n or 1)} {unit}s a bar" if each > 1 else f"by {found.period if n else unit}"
    return f"{names[0].split(' to ')[0]} to {names[-1].split(' to ')[-1]}, {by}"


def _log_periods(found: OverTime) -> None:
    """Say which periods are sparse, and whether there are enough others for the tests."""
    from ..topics.trends import FEWEST_FOR_BURSTS, FEWEST_PERIODS

    n_sparse = int((found.sparse & (found.shares.n_docs > 0)).sum())
    if n_sparse:
        logger.info(
            "%s with fewer than %d documents: neither tested nor drawn as a bar (--min-documents)",
            counted(n_sparse, "period"), found.min_documents,
        )  # fmt: skip
    for fewest, what in ((FEWEST_PERIODS, "trends"), (FEWEST_FOR_BURSTS, "bursts")):
        if found.n_tested < fewest:
            logger.info(
                "too few periods for the test of %s: %d %s enough documents, and it needs %d; try a shorter --period",
                what, found.n_tested, "has" if found.n_tested == 1 else "have", fewest,
            )  # fmt: skip


@command
def by(
    run: Run,
    covariate: Annotated[
        str,
        typer.Argument(metavar="[COVARIATE]", help="A covariate, or class, or the column of the labels."),
    ] = "class",
    covariates: Annotated[
        str | None, typer.Option("--covariate", metavar="COLUMN", help="The same as COVARIATE, as `train` names it.")
    ] = None,
    groups: Annotated[
        int | None,
        typer.Option(
            min=2, help="Groups into which numbers are divided, at quantiles; 4 by default, or up to 12 single numbers."
        ),
    ] = None,
    topic: Topic = None,
    words: WordsOf = _WORDS,
    crosstab: Annotated[
        bool, typer.Option("--crosstab", help="Show a table of topics and groups: shares, and which differ.")
    ] = False,
    correction: Annotated[
        Corrections | None,
        typer.Option(
            help="Correction of the p-values of --crosstab for all topics and groups; benjamini-hochberg by default."
        ),
    ] = None,
    level: Level = 0.95,
    samples: Samples = 1000,
    seed: Seed = 0,
    out: Out = None,
    overwrite: Overwrite = False,
    quiet: QuietNotes = False,
    as_json: AsJson = False,
) -> None:
    """Show the shares of topics by class or by another covariate. Topics that differ most come first.

    Differences are tested by Kruskal-Wallis, with Holm's correction for the number of topics. The file of --out has the
    share of every topic in every group, with its interval.
    """
    from ..corpus.fields import Categories

    check_table(out, overwrite)
    if covariates is not None:
        if covariate not in ("class", covariates):
            raise InputError(f"COVARIATE is {covariate} and --covariate is {covariates}; give one of them")
        covariate = covariates
    if words != _WORDS and (topic is None or crosstab):
        raise InputError("`words` shows those of one topic in each group; name it by `topic`, without `crosstab`")
    if correction is not None and not crosstab:
        raise InputError("`correction` is that of the table of `crosstab`; give that, too, or leave it out")
    correction = correction or Corrections.benjamini_hochberg
    view = open_topics(run)
    found = view.by(covariate, n_groups=groups, level=level, n_samples=samples, random_state=seed)
    if groups is not None and isinstance(view.documents.fields.covariates.get(covariate), Categories | None):
        logger.warning("--groups does nothing, because the values of %r are not numbers", covariate)
    title = view.label_column or found.column if covariate == found.column == "class" else found.column
    what = title if covariate == "class" else covariate
    differences = found.difference_table()
    if crosstab:
        chosen = None if topic is None else [view.number_of(number_or_name(topic))]
        table = found.cross_table(chosen, correction=correction.value)
        if as_json:
            print_json({"run": str(run), "by": covariate, "correction": correction.value, "cells": table.to_dicts()})
        else:
            _show_cross_table(table, found, correction.value, title)
            _log_unknown(found.n_unknown, what)
        _write(_groups_for_print(found, view, level, title, correction.value) if is_for_print(out) else table, out)
        return
    if topic is not None:
        k = view.number_of(number_or_name(topic))
        of_words = view.words_by(k, covariate, words, groups)
        _show_group_shares(run, found.table([k]), found.column, of_words, view.names[k], k, as_json, title=title)
    elif as_json:
        print_json(
            {
                "run": str(run),
                "by": covariate,
                "groups": found.groups,
                "documents": found.shares.n_docs.tolist(),
                "without_group_or_words": found.n_unknown,
                "differences": differences.to_dicts(),
                "shares": found.table().to_dicts(),
            }
        )
    else:
        few = len(found.groups) <= _MOST_COLUMNS
        means = found.shares.mean
        rows = (
            [str(row["topic"]), row["name"]]
            + (
                [_share(means[g, row["topic"]]) for g in range(len(found.groups))]
                if few
                else [f"{row['highest']}", f"{row['lowest']}", _share(row["difference"])]
            )
            + [_p(row["p_holm"])]
            for row in differences.rows()
        )
        columns = found.groups if few else ["highest", "lowest", "difference"]
        print_table(["topic", "name", *columns, "p (Holm)"], rows, n_numbers=1)
        _log_unknown(found.n_unknown, what)
    _write(_groups_for_print(found, view, level, title) if is_for_print(out) else found.table(), out)


def _groups_for_print(
    found: ByGroup, view: Topics, level: float, title: str, correction: Correction | None = None
) -> Table:
    from ..topics.publication import chosen_language, groups_for_print

    language = chosen_language("auto", view.corpus.tokenizer)
    known = None if title == found.column else title
    return groups_for_print(found, view.given_names, level, language, title=known, correction=correction)


@command
def match(
    run: Run,
    old_run: Annotated[Path, typer.Argument(help="The older run that the topics are compared with.")],
    threshold: Annotated[float, typer.Option(help="Similarity, from 0 to 1, below which a topic is new.")] = 0.2,
    edits: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the old names as edits (.yaml), which the command edit takes."),
    ] = None,
    out: Out = None,
    allow: Allow = None,
    overwrite: Overwrite = False,
    quiet: QuietNotes = False,
    as_json: AsJson = False,
) -> None:
    """Match the topics of a run with those of an older run, and show which ones are new or gone."""
    check_new(edits, overwrite)
    check_table(out, overwrite and not (out is None and edits))
    mention_edits(run)
    from ..topics.matching import match as match_topics
    from ..topics.matching import warn_of_few_documents
    from ..topics.saved import read_topics

    new, old = read_topics(run), read_topics(old_run)
    warn_of_few_documents(len(new.components), new.n_documents, len(old.components), old.n_documents)
    found = match_topics(
        new.components, new.vocabulary, old.components, old.vocabulary, threshold=threshold, names=new.topic_names,
        old_names=old.topic_names, given=old.given_names,
    )  # fmt: skip
    if edits is not None and not found.renames():
        raise InputError(f"none of the topics of {old_run} that have partners has a name; name them first")
    if as_json:
        print_json(
            {"run": str(run), "old_run": str(old_run), "shared_words": found.n_shared, **_matches(found.table())}
        )
    else:
        rows = (
            [
                _text(row["topic"]),
                _text(row["name"]),
                _status(row, threshold),
                _text(row["old"]),
                _text(row["old_name"]),
                f"{row['similarity']:.2f}",
            ]
            for row in found.table().rows()
        )
        print_table(["topic", "name", "", "old", "old name", "similarity"], rows, n_numbers=1)
    logger.info("%s", found.table().title)
    _write(found.table(), out)
    if edits is not None:
        from ..models.loading import load
        from ..topics.edits import write_edits

        write_edits(edits, [{"rename": found.renames()}], load(run, device="cpu", allow=allow or ()).fingerprint)
        apply = shlex.join(["topicloom", "edit", str(run), "--edits", str(edits)])
        logger.info("wrote %s, which %s --out RUN applies", edits, apply)


def _write(table: Table, out: Path | None) -> None:
    if out is not None:
        table.save(out)
        logger.info("wrote %s", out)


def _show_group_shares(
    run: Path,
    shares: Table,
    column: str,
    words: Table,
    name: str,
    topic: int,
    as_json: bool,
    documents: Table | None = None,
    title: str | None = None,
) -> None:
    """Show one topic in each period or group: its share with the interval, its typical words, and its documents."""
    typical: dict[str, list[str]] = {}
    first = next(iter(words.columns))
    for row in words.rows():
        typical.setdefault(row[first], []).append(row["word"])
    if as_json:
        print_json(
            {
                "run": str(run),
                "topic": topic,
                "name": name,
                "shares": shares.to_dicts(),
                "words": words.to_dicts(),
                **({} if documents is None else {"documents": documents.to_dicts()}),
            }
        )
        return
    rows = (
        [
            row[column],
            _share(row["share"]),
            "" if row["low"] is None else f"{row['low']:.1%} to {row['high']:.1%}",
            f"{row['documents']:,}",
            " ".join(typical.get(row[column], [])),
        ]
        for row in shares.rows()
    )
    print_table([title or column, "share", "interval", "documents", f"words typical of topic {topic}, {name}"], rows)
    if sentence := _error_sentence(shares):
        logger.info("%s", sentence)
    if documents is not None:
        lines = (
            [row["period"], row["id"], _share(row["share"]), _text(row["text"]) or " ".join(row["words"])]
            for row in documents.rows()
        )
        print_table(["period", "document", "share", "text"], lines)


def _error_sentence(shares: Table) -> str:
    """Return how large the standard errors of a topic's shares are, in a sentence; "" if they are not known."""
    pairs = [(row.get("sampling_error"), row.get("theta_error")) for row in shares.rows()]
    known = [pair for pair in pairs if None not in pair]
    if not known:
        return ""
    sampling, theta = (sorted(column)[len(known) // 2] for column in zip(*known, strict=True))
    return (
        f"standard errors of a share (median): {100 * sampling:.2f} points by the choice of documents, which the "
        f"intervals describe, and at least {100 * theta:.2f} by the uncertainty of theta"
    )


def _matches(table: Table) -> dict[str, Any]:
    rows = table.to_dicts()
    return {
        "topics": [row for row in rows if row["status"] != "gone"],
        "gone": [r for r in rows if r["status"] == "gone"],
    }


def _status(row: dict[str, Any], threshold: float) -> str:
    near = row["status"] == "new" and row["similarity"] >= threshold  # its partner has become two topics
    return f"new, near {row['nearest']}" if near else str(row["status"])


def _show_cross_table(table: Table, found: ByGroup, correction: str, title: str) -> None:
    """Show topics as rows and groups as columns; of many groups, a row for each difference that survives."""
    marks = {"higher": " ↑", "lower": " ↓", None: ""}
    cells = list(table.rows())
    n_found = sum(cell["differs"] is not None for cell in cells)
    if len(found.groups) <= _MOST_COLUMNS:
        lines = []
        for start in range(0, len(cells), len(found.groups)):
            row = cells[start : start + len(found.groups)]
            shown = [f"{_share(c['share'])}{marks[c['differs']]}" for c in row]
            lines.append([str(row[0]["topic"]), row[0]["name"], *shown])
        print_table(["topic", "name", *found.groups], lines, n_numbers=1)
    else:
        some = sorted((c for c in cells if c["differs"]), key=lambda c: c["p_corrected"])
        print_table(
            ["topic", "name", title, "documents", "share", "lift", "p"],
            (
                [str(c["topic"]), c["name"], c[found.column], f"{c['documents']:,}",
                 f"{_share(c['share'])}{marks[c['differs']]}", f"{c['lift']:.2f}", _p(c["p_corrected"])]
                for c in some
            ),
            n_numbers=1,
        )  # fmt: skip
    logger.info(
        "↑ or ↓: the share is above or below that of all documents (%d of %d; %s, 5 %%)",
        n_found,
        len(cells),
        correction,
    )


def _log_unknown(n_unknown: int, what: str) -> None:
    if n_unknown:
        left_out, whose = counted(n_unknown, "document is", "documents are"), "its" if n_unknown == 1 else "their"
        logger.info("%s left out, because %s %s or all %s words are unknown", left_out, whose, what, whose)


def _share(value: float | None) -> str:
    return "" if value is None or value != value else f"{value:.1%}"


def _p(value: float | None) -> str:
    return "" if value is None else "<.001" if value < 0.001 else f"{value:.3f}".removeprefix("0")


def _text(value: Any) -> str:
    return "" if value is None else str(value)
