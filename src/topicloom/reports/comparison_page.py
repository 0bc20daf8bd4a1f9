"""A comparison as a text table, as CSV, and as one self-contained HTML page."""

from __future__ import annotations

import csv
import io
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from ..display import as_markup, counted
from ..errors import InputError, MissingExtraError
from ..metrics import CATALOGUE

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

logger = logging.getLogger("topicloom")

# The plots have style attributes. The page has no script, and loads nothing.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; color: #111; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px; }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
td.best { font-weight: 700; } td.words { white-space: normal; text-align: left; }
.scroll { overflow-x: auto; } .note { color: #555; } svg { max-width: 100%; height: auto; }
"""


class Comparison(Protocol):
    """The attributes of a comparison that a page needs; `topicloom.Comparison` has them."""

    @property
    def models(self) -> list[str]: ...

    @property
    def n_topics(self) -> list[int]: ...

    @property
    def seeds(self) -> int: ...

    @property
    def documents(self) -> dict[str, int]: ...

    @property
    def rows(self) -> list[dict[str, Any]]: ...

    @property
    def failed(self) -> list[dict[str, Any]]: ...

    @property
    def measures(self) -> list[str]: ...

    @property
    def versions(self) -> list[str]: ...

    def values(self, measure: str, model: str, n_topics: int, on: str = "test") -> npt.NDArray[np.float64]: ...

    def table(self, on: str = "test") -> list[dict[str, Any]]: ...

    def paired(self, measure: str, against: str, on: str = "test") -> list[dict[str, Any]]: ...

    def best(self, measure: str, on: str = "validation") -> str | None: ...

    def recommend(self, model: str | None = None) -> Any: ...


def figure(name: str, value: float | None, spread: float | None = None) -> str:
    """Return a figure as text for a table: mean ± standard deviation, or a dash if there is none."""
    if value is None:
        return "-"
    digits = CATALOGUE[name].digits
    return f"{value:.{digits}f}" + (f" ± {spread:.{digits}f}" if spread is not None else "")


def text_table(found: Comparison, on: str) -> tuple[list[str], list[list[str]]]:
    """Return the headings and rows of a table that fits a terminal; the CSV file and the page have all columns.

    Args:
        found: the comparison.
        on: "validation" or "test".
    """
    lines = found.table(on)
    names = [
        name for name in found.measures if CATALOGUE[name].column and any(line.get(name) is not None for line in lines)
    ]
    rows = []
    for line in lines:
        figures = (_short(figure(name, line[name], line[f"{name}_sd"])) for name in names)
        rows.append([line["model"], str(line["n_topics"]), *figures])
    return ["model", "K", *(CATALOGUE[name].column for name in names)], rows


def _short(text: str) -> str:
    """Drop zeros before the decimal point, because a terminal may have only 80 columns."""
    return " ".join(part.replace("0.", ".", 1) if part.lstrip("-").startswith("0.") else part for part in text.split())


def csv_lines(found: Comparison) -> str:
    """Return the tables of both parts as CSV, with a column `part`."""
    out = io.StringIO()
    names = [name for measure in found.measures for name in (measure, f"{measure}_sd")]
    table = csv.DictWriter(out, ["part", "model", "n_topics", "fits", *names], lineterminator="\n")
    table.writeheader()
    for part in ("validation", "test"):
        for line in found.table(part):
            table.writerow({"part": part, **{name: "" if value is None else value for name, value in line.items()}})
    return out.getvalue()


def page(found: Comparison) -> str:
    """Return one HTML page with the tables, plots, paired tests and topics."""
    parts = ", ".join(f"{number} {name}" for name, number in found.documents.items())
    body = [
        "<h1>Comparison of topic models</h1>",
        f"<p>{_size(found)}; documents: "
        f"{as_markup(parts)}. Mean ± standard deviation over seeds; the best mean of each number of topics is bold. "
        "No single column says which model is better: C_v alone, for example, rewards topics that are all alike.</p>",
        *_versions(found),
        *_failed(found),
        "<h2>Validation documents</h2>", '<p class="note">Choose models and settings by these figures.</p>',
        _table(found, "validation"),
        *_n_topics(found),
        "<h2>Test documents</h2>", '<p class="note">Report these figures for the models that were chosen.</p>',
        _table(found, "test"),
        "<h2>Every fit</h2>", '<p class="note">Measured on test documents.</p>', _plots(found),
        *_paired(found),
        "<h2>Topics</h2>", '<p class="note">Topics of the first seed.</p>', *_topics(found),
    ]  # fmt: skip
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Comparison of topic models</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<style>{_STYLE}</style></head>\n<body>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def _size(found: Comparison) -> str:
    """Return how many models, numbers of topics and seeds were compared."""
    n_topics = counted(len(found.n_topics), "number of topics", "numbers of topics")
    return f"{counted(len(found.models), 'model')}, {n_topics}, {counted(found.seeds, 'seed')}"


def _versions(found: Comparison) -> list[str]:
    if not found.versions:
        return []
    said = f"Fitted by topicloom {as_markup(' and '.join(found.versions))}."
    if len(found.versions) > 1:
        said = f"<strong>{said}</strong> Figures of different versions may not be comparable."
    return [f'<p class="note">{said}</p>']


def _failed(found: Comparison) -> list[str]:
    if not found.failed:
        return []
    items = "".join(
        f"<li>{as_markup(row['model'])}, {row['n_topics']} topics, seed {row['seed']}: {as_markup(row['error'])}</li>"
        for row in found.failed
    )
    return [f"<p>{len(found.failed)} of {len(found.rows)} fits ended in an error:</p><ul>{items}</ul>"]


def _table(found: Comparison, part: str) -> str:
    lines = found.table(part)
    head = "".join(f"<th>{as_markup(CATALOGUE[name].title)}</th>" for name in found.measures)
    rows = []
    for line in lines:
        columns = []
        for name in found.measures:
            rivals = [other[name] for other in lines if other["n_topics"] == line["n_topics"]]
            better = CATALOGUE[name].better
            known = [value * better for value in rivals if value is not None]
            best = line[name] is not None and len(known) > 1 and line[name] * better == max(known)
            text = figure(name, line[name], line[f"{name}_sd"])
            columns.append(f'<td class="best">{text}</td>' if best else f"<td>{text}</td>")
        rows.append(f"<tr><td>{as_markup(line['model'])}</td><td>{line['n_topics']}</td>{''.join(columns)}</tr>")
    return _scrolled(f"<th>model</th><th>topics</th>{head}", rows)


def _paired(found: Comparison) -> list[str]:
    if len(found.models) < 2:
        return []
    rows = []
    for name in (name for name in found.measures if name != "topic_distance"):
        best = found.best(name, "validation")
        for line in found.paired(name, best, "test") if best else ():
            low, high = (figure(name, line[end]) for end in ("low", "high"))
            interval = "-" if line["low"] is None else f"{low} to {high}"
            p, p_holm = ("-" if line[each] is None else f"{line[each]:.3f}" for each in ("p", "p_holm"))
            rows.append(
                f"<tr><td>{as_markup(CATALOGUE[name].title)}</td><td>{as_markup(line['model'])}</td><td>{as_markup(line['against'])}</td>"
                f"<td>{figure(name, line['difference'])}</td><td>{interval}</td><td>{line['pairs']}</td>"
                f"<td>{p}</td><td>{p_holm}</td></tr>"
            )
    titles = ("measure", "model", "against", "difference", "95 % interval", "pairs", "p", "p, Holm")
    head = "".join(f"<th>{title}</th>" for title in titles)
    note = (
        "For each measure, the model that is best on the validation documents is compared with every other model on "
        "the test documents. Fits with the same seed and number of topics are paired. The interval is that of the mean "
        "difference, by Student's t, and p is that of a two-sided paired t-test. The last column corrects p after Holm "
        "for the tests of all pairs of models by the same measure, because the best model is chosen by the same fits; "
        "rely on it. With few pairs, only large differences are significant."
    )
    return ["<h2>Paired tests</h2>", f'<p class="note">{note}</p>', _scrolled(head, rows)]


def _scrolled(head: str, rows: list[str]) -> str:
    return f'<div class="scroll"><table><tr>{head}</tr>\n' + "\n".join(rows) + "</table></div>"


def _topics(found: Comparison) -> list[str]:
    blocks = []
    for row in found.rows:
        if "error" in row or row["seed"] != 0:
            continue
        words = "".join(
            f'<tr><td>{number}</td><td class="words">{as_markup(" ".join(topic))}</td></tr>'
            for number, topic in enumerate(row["words"])
        )
        name = f"{as_markup(row['model'])}, {row['n_topics']} topics"
        blocks.append(f"<details><summary>{name}</summary><table>{words}</table></details>")
    return blocks


def _plots(found: Comparison) -> str:
    try:
        return _svg(_panels, found)
    except ImportError as error:
        missing = MissingExtraError.of("the plots of a comparison", "matplotlib", "viz")
        said = str(error if isinstance(error, MissingExtraError) else missing)
        logger.warning("%s", said)
        return f'<p class="note">{as_markup(said)}</p>'


def _svg(draw: Callable[[Comparison], Figure], found: Comparison) -> str:
    from . import figures

    return figures.svg(draw(found))


def _panels(found: Comparison) -> Figure:
    """Draw a panel for each measure, with a dot for every fit, a row for each model and a colour for each n_topics."""
    from .figures import dot_panels

    panels: dict[str, Any] = {
        CATALOGUE[name].title: {
            f"{k} topics": {model: found.values(name, model, k).tolist() for model in found.models}
            for k in found.n_topics
        }
        for name in found.measures
    }
    return dot_panels(panels)


def _n_topics(found: Comparison) -> list[str]:
    """Return the curve over numbers of topics and the recommendation for each model, if there are several numbers."""
    if len(found.n_topics) < 2:
        return []
    items = "".join(
        f"<li>{as_markup(model)}: {as_markup(said.reason)}</li>" for model, said in _recommended(found).items()
    )
    try:
        curve = _svg(curve_of, found)
    except ImportError:  # which _plots reports
        curve = ""
    note = "Means over seeds on validation documents, with standard errors. A dotted line marks the recommended number."
    return ["<h2>Numbers of topics</h2>", f'<p class="note">{note}</p>', curve, f"<ul>{items}</ul>"]


def curve_of(found: Comparison) -> Figure:
    """Draw the measures of validation documents by number of topics.

    Raises:
        ImportError: matplotlib is not installed.
    """
    from .n_topics_curve import MEASURES, n_topics_curve

    values = {
        name: {
            model: np.stack([found.values(name, model, k, "validation") for k in found.n_topics])
            for model in found.models
        }
        for name in MEASURES
        if name in found.measures
    }
    return n_topics_curve(values, found.n_topics, {model: said.n_topics for model, said in _recommended(found).items()})


def _recommended(found: Comparison) -> dict[str, Any]:
    """Return the recommendation for each model that has one."""
    recommended = {}
    for model in found.models:
        with suppress(InputError):  # no fit of the model has the measures
            recommended[model] = found.recommend(model)
    return recommended
