"""A comparison as a table of text and as one page that needs nothing else."""

from __future__ import annotations

import csv
import io
import logging
from html import escape
from typing import TYPE_CHECKING, Any

from ..errors import MissingExtraError
from ..experiments.comparison import BETTER

if TYPE_CHECKING:
    from ..experiments.comparison import Comparison

logger = logging.getLogger("topicloom")

TITLES = {
    "document_npmi": "NPMI (documents)", "c_v": "C_v", "c_npmi": "C_NPMI", "topic_diversity": "diversity",
    "topic_uniqueness": "uniqueness", "redundancy": "redundancy", "perplexity": "perplexity", "purity": "purity",
    "nmi": "NMI", "ari": "ARI", "accuracy": "accuracy", "active_topics": "topics alive", "seconds": "seconds",
    "topic_distance": "distance to other seeds",
}  # fmt: skip
IN_TERMINAL = {
    "document_npmi": "NPMI", "topic_diversity": "diversity", "perplexity": "perplexity", "nmi": "NMI",
    "accuracy": "accuracy", "seconds": "seconds",
}  # fmt: skip
_DIGITS = {"perplexity": 0, "seconds": 1, "active_topics": 1}
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; color: #111; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px; }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
td.best { font-weight: 700; } td.words { white-space: normal; text-align: left; }
.scroll { overflow-x: auto; } .note { color: #555; } svg { max-width: 100%; height: auto; }
"""


def figure(name: str, value: float | None, spread: float | None = None) -> str:
    """A figure as a table shows it: mean ± standard deviation, a dash where there is none."""
    if value is None:
        return "-"
    digits = _DIGITS.get(name, 3)
    return f"{value:.{digits}f}" + (f" ± {spread:.{digits}f}" if spread is not None else "")


def text_table(found: Comparison, on: str = "test") -> tuple[list[str], list[list[str]]]:
    """The head and the rows of a table that a terminal holds: its other columns are in the CSV file and on the page."""
    lines = found.table(on)
    names = [name for name in IN_TERMINAL if any(line.get(name) is not None for line in lines)]
    rows = []
    for line in lines:
        figures = (_short(figure(name, line[name], line[f"{name}_sd"])) for name in names)
        rows.append([line["model"], str(line["n_topics"]), *figures])
    return ["model", "K", *(IN_TERMINAL[name] for name in names)], rows


def _short(text: str) -> str:
    """Without zeros before the point: eighty columns are few."""
    return " ".join(part.replace("0.", ".", 1) if part.lstrip("-").startswith("0.") else part for part in text.split())


def csv_lines(found: Comparison) -> str:
    """Both parts' tables as CSV, with a column `part`."""
    out = io.StringIO()
    names = [name for measure in found.measures for name in (measure, f"{measure}_sd")]
    table = csv.DictWriter(out, ["part", "model", "n_topics", "fits", *names], lineterminator="\n")
    table.writeheader()
    for part in ("validation", "test"):
        for line in found.table(part):
            table.writerow({"part": part, **{name: "" if value is None else value for name, value in line.items()}})
    return out.getvalue()


def page(found: Comparison) -> str:
    """One HTML page: the tables, the plots, the paired tests and the topics."""
    parts = ", ".join(f"{number} {name}" for name, number in found.documents.items())
    body = [
        "<h1>Comparison of topic models</h1>",
        f"<p>{len(found.models)} models, {len(found.n_topics)} numbers of topics, {found.seeds} seeds; documents: "
        f"{escape(parts)}. Mean ± standard deviation over seeds; the best mean of each number of topics is bold. "
        "No one column says which model is better: C_v alone rewards topics that are all alike.</p>",
        *_failed(found),
        "<h2>Test documents</h2>", _table(found, "test"),
        "<h2>Validation documents</h2>", '<p class="note">Choose by these.</p>', _table(found, "validation"),
        "<h2>Every fit</h2>", _plots(found),
        "<h2>Paired tests</h2>", _paired(found),
        "<h2>Topics</h2>", '<p class="note">Of the first seed.</p>', *_topics(found),
    ]  # fmt: skip
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Comparison of topic models</title>'
        f"<style>{_STYLE}</style></head>\n<body>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def _failed(found: Comparison) -> list[str]:
    if not found.failed:
        return []
    items = "".join(
        f"<li>{escape(row['model'])}, {row['n_topics']} topics, seed {row['seed']}: {escape(row['error'])}</li>"
        for row in found.failed
    )
    return [f"<p>{len(found.failed)} of {len(found.rows)} fits ended in an error:</p><ul>{items}</ul>"]


def _table(found: Comparison, part: str) -> str:
    lines = found.table(part)
    head = "".join(f"<th>{escape(TITLES[name])}</th>" for name in found.measures)
    rows = []
    for line in lines:
        cells = []
        for name in found.measures:
            rivals = [other[name] for other in lines if other["n_topics"] == line["n_topics"]]
            known = [value * BETTER[name] for value in rivals if value is not None]
            best = line[name] is not None and len(known) > 1 and line[name] * BETTER[name] == max(known)
            text = figure(name, line[name], line[f"{name}_sd"])
            cells.append(f'<td class="best">{text}</td>' if best else f"<td>{text}</td>")
        rows.append(f"<tr><td>{escape(line['model'])}</td><td>{line['n_topics']}</td>{''.join(cells)}</tr>")
    return _scrolled(f"<th>model</th><th>topics</th>{head}", rows)


def _paired(found: Comparison) -> str:
    rows = []
    for name in (name for name in found.measures if name != "topic_distance"):
        best = found.best(name)
        for line in found.paired(name, best) if best else ():
            p = "-" if line["p"] is None else f"{line['p']:.3f}"
            rows.append(
                f"<tr><td>{escape(TITLES[name])}</td><td>{escape(line['model'])}</td><td>{escape(line['against'])}</td>"
                f"<td>{figure(name, line['difference'])}</td><td>{line['pairs']}</td><td>{p}</td></tr>"
            )
    head = "".join(f"<th>{t}</th>" for t in ("measure", "model", "against the best", "difference", "pairs", "p"))
    note = (
        "Fits with the same seed and number of topics are pairs; two-sided paired t-test, not corrected for the number "
        "of tests. Few pairs show only large differences."
    )
    return f'<p class="note">{note}</p>' + _scrolled(head, rows)


def _scrolled(head: str, rows: list[str]) -> str:
    return f'<div class="scroll"><table><tr>{head}</tr>\n' + "\n".join(rows) + "</table></div>"


def _topics(found: Comparison) -> list[str]:
    blocks = []
    for row in found.rows:
        if "error" in row or row["seed"] != 0:
            continue
        words = "".join(
            f'<tr><td>{number}</td><td class="words">{escape(" ".join(topic))}</td></tr>'
            for number, topic in enumerate(row["words"])
        )
        name = f"{escape(row['model'])}, {row['n_topics']} topics"
        blocks.append(f"<details><summary>{name}</summary><table>{words}</table></details>")
    return blocks


def _plots(found: Comparison) -> str:
    try:
        return _drawn(found)
    except ImportError:
        error = MissingExtraError.of("the plots of a comparison", "matplotlib", "viz")
        logger.warning("%s", error)
        return f'<p class="note">{escape(str(error))}</p>'


def _drawn(found: Comparison) -> str:
    """A panel for each measure: every fit a dot, by model, a colour for each number of topics."""
    from . import figures

    panels: dict[str, Any] = {
        TITLES[name]: {
            f"{k} topics": {model: found.values(name, model, k).tolist() for model in found.models}
            for k in found.n_topics
        }
        for name in found.measures
    }
    return figures.svg(figures.dot_panels(panels))
