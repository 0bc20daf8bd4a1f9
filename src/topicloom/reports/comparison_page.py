"""A comparison as a text table, as CSV, and as one self-contained HTML page.

The functions take the values of a comparison and not the object, which is above this package.
"""

from __future__ import annotations

import csv
import io
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from ..display import as_markup
from ..errors import MissingExtraError
from ..metrics import CATALOGUE, Measure
from . import comparison_words as words
from .wording import N_TOPICS, NUMBER_OF_TOPICS, Language, Phrase, joined, title_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

logger = logging.getLogger("topicloom")

# The measures whose course over numbers of topics is drawn, besides those of the user's own.
CURVE_MEASURES = [
    name for name, each in CATALOGUE.items() if (each.column and each.group != "cost") or each.group == "stability"
]
# The plots have style attributes. The page has no script, and loads nothing.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
_STYLE = """
body { --ink: #111; --soft: #555; --line: #ddd; --ground: #fff; color-scheme: light dark; }
@media screen and (prefers-color-scheme: dark) {
  body { --ink: #e9eaec; --soft: #abafb7; --line: #3a3d44; --ground: #131417; }
  .plot { background: #fff; border-radius: 8px; color-scheme: light; }
}
html { background: var(--ground); -webkit-text-size-adjust: 100%; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; color: var(--ink);
  background: var(--ground); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px; }
th, td { padding: .25rem .5rem; text-align: right; border-bottom: 1px solid var(--line); }
th { vertical-align: bottom; line-height: 1.25; max-width: 7rem; overflow-wrap: break-word; }
th:first-child, td:first-child { text-align: left; white-space: nowrap; }
.scroll td:nth-child(n + 3) { line-height: 1.3; }
td.best { font-weight: 700; } td.far { color: var(--soft); }
td.words, .names td:nth-child(-n + 3), .names th:nth-child(-n + 3) { white-space: normal; text-align: left; }
.scroll { overflow-x: auto; } .note { color: var(--soft); } svg { display: block; max-width: 100%; height: auto; }
summary { cursor: pointer; padding: .15rem 0; }
@media (max-width: 40rem) { .plot svg { max-width: none; width: 52rem; } .scroll th { min-width: 4rem; } }
"""


Row = dict[str, Any]
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class PageContent:
    """What the page of a comparison shows.

    Attributes:
        models, n_topics, seeds: what was compared.
        documents: the number of documents in each part.
        versions: the versions of topicloom that made the fits.
        rows: one for each fit, with its words, or with the error that it ended in.
        measures: the measures by name, in the order of the catalogue.
        reference: the name of the documents that coherence is counted in; None is the training documents.
        tables: for "validation" and "test", a row for each model and number of topics, with the mean and the standard
            deviation ("_sd") of each measure.
        values: for "validation" and "test", by measure and by model, (n_sizes, n_seeds) values, which may be NaN.
        paired: by measure, a row for each model that is compared with the best one on the test documents.
        recommended: by model, the recommended number of topics and the reason in words; a model without a measure of
            its topics has none.
    """

    models: list[str]
    n_topics: list[int]
    seeds: int
    documents: dict[str, int]
    versions: list[str]
    rows: list[Row]
    measures: Mapping[str, Measure]
    reference: str | None
    tables: Mapping[str, list[Row]]
    values: Mapping[str, Mapping[str, Mapping[str, Array]]]
    paired: Mapping[str, list[Row]]
    recommended: Mapping[str, tuple[int, str]]

    @property
    def failed(self) -> list[Row]:
        """The fits that ended in an error."""
        return [row for row in self.rows if "error" in row]


def _number(measure: Measure, value: float | None, spread: float | None = None) -> str:
    """Return a number of a table as text: mean ± standard deviation, or a dash if there is none."""
    if value is None:
        return "-"
    digits = measure.digits
    return f"{value:.{digits}f}" + (f" ± {spread:.{digits}f}" if spread is not None else "")


def text_table(lines: Sequence[Row], measures: Mapping[str, Measure]) -> tuple[list[str], list[list[str]]]:
    """Return the headings and rows of a table that fits a terminal; the CSV file and the page have all columns.

    Args:
        lines: a row for each model and number of topics, as `Comparison.table` returns them.
        measures: the measures by name.
    """
    shown = {
        name: measure
        for name, measure in measures.items()
        if measure.column and any(line.get(name) is not None for line in lines)
    }
    rows = []
    for line in lines:
        figures = (_short(_number(measure, line[name], line[f"{name}_sd"])) for name, measure in shown.items())
        rows.append([line["model"], str(line["n_topics"]), *figures])
    return ["model", "K", *(measure.column for measure in shown.values())], rows


def _short(text: str) -> str:
    """Drop zeros before the decimal point, because a terminal may have only 80 columns."""
    return " ".join(part.replace("0.", ".", 1) if part.lstrip("-").startswith("0.") else part for part in text.split())


def csv_lines(tables: Mapping[str, Sequence[Row]], measures: Sequence[str]) -> str:
    """Return the tables of both parts as CSV, with a column "part".

    Args:
        tables: for "validation" and "test", a row for each model and number of topics.
        measures: the names of the measures.
    """
    out = io.StringIO()
    names = [name for measure in measures for name in (measure, f"{measure}_sd")]
    table = csv.DictWriter(out, ["part", "model", "n_topics", "fits", *names], lineterminator="\n")
    table.writeheader()
    for part, lines in tables.items():
        for line in lines:
            table.writerow({"part": part, **{name: "" if value is None else value for name, value in line.items()}})
    return out.getvalue()


def page(
    found: PageContent,
    language: Language = "en",
    labels: Language | None = None,
    font: str | PathLike[str] | None = None,
) -> str:
    """Return one HTML page with the tables, plots, paired tests and topics.

    Args:
        found: what the page shows.
        language: "en" or "zh", of the page.
        labels: of the labels in the plots; None is that of the page.
        font: a font family or file for the plots; None chooses one that has the characters.
    """
    look = (labels or language, font)
    documents = words.COMMA(language).join(
        words.PART(language, n=number, part=words.PARTS[name](language) if name in words.PARTS else name)
        for name, number in found.documents.items()
    )
    about = words.ABOUT(language, size=_size(found, language), parts=as_markup(documents))
    body = [
        f"<h1>{words.TITLE(language)}</h1>", f"<p>{about}</p>", *_versions(found, language), *_failed(found, language),
        *_table(found, "validation", words.VALIDATION, words.CHOOSE, language),
        *_once(found, language),
        *_n_topics(found, language, *look),
        *_table(found, "test", words.TEST, words.REPORT, language),
        *_heading(words.EVERY_FIT(language), words.MEASURED_ON_TEST(language)),
        _plots(found, words.EVERY_FIT(language), *look),
        *_paired(found, language),
        *_heading(words.TOPICS(language), words.OF_FIRST_SEED(language)), *_topics(found, language),
    ]  # fmt: skip
    code = "zh-CN" if language == "zh" else "en"
    return (
        f'<!doctype html>\n<html lang="{code}"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{words.TITLE(language)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<style>{_STYLE}</style></head>\n<body><main>\n" + "\n".join(body) + "\n</main></body></html>\n"
    )


def _heading(title: str, note: str) -> list[str]:
    return [f"<h2>{title}</h2>", f'<p class="note">{note}</p>']


def _size(found: PageContent, language: Language) -> str:
    """Return how many models, numbers of topics and seeds were compared."""
    numbers = {"model": len(found.models), "number of topics": len(found.n_topics), "seed": found.seeds}
    models, n_topics, seeds = (words.COUNTED[what][n != 1](language, n=n) for what, n in numbers.items())
    return words.SIZE(language, models=models, n_topics=n_topics, seeds=seeds)


def _versions(found: PageContent, language: Language) -> list[str]:
    if not found.versions:
        return []
    said = words.FITTED_BY(language, versions=as_markup(words.AND_VERSION(language).join(found.versions)))
    if len(found.versions) > 1:
        said = joined([f"<strong>{said}</strong>", words.DIFFERENT_VERSIONS(language)], language)
    return [f'<p class="note">{said}</p>']


def _failed(found: PageContent, language: Language) -> list[str]:
    if not found.failed:
        return []
    items = "".join(f"<li>{as_markup(words.FAILED_FIT(language, **row))}</li>" for row in found.failed)
    said = words.FAILED(language, n_failed=len(found.failed), n=len(found.rows))
    return [f"<p>{said}</p><ul>{items}</ul>"]


def measures_once(measures: Mapping[str, Measure]) -> dict[str, Measure]:
    """Return the measures that are the same for all held-out documents."""
    return {name: measure for name, measure in measures.items() if not measure.depends_on_documents}


def measures_of_parts(measures: Mapping[str, Measure]) -> dict[str, Measure]:
    """Return the measures that depend on the held-out documents."""
    return {name: measure for name, measure in measures.items() if measure.depends_on_documents}


def _once(found: PageContent, language: Language) -> list[str]:
    """Return the table of what does not depend on the part."""
    measures = measures_once(found.measures)
    if not measures:
        return []
    shown = _rows(words.ONCE(language), found.tables["test"], measures, language)
    reference = as_markup(found.reference or words.TRAINING_DOCUMENTS(language))
    return [*_heading(words.ONCE(language), words.ONCE_NOTE(language, reference=reference)), shown]


def _table(found: PageContent, part: str, title: Phrase, note: Phrase, language: Language) -> list[str]:
    measures = measures_of_parts(found.measures)
    shown = _rows(title(language), found.tables[part], measures, language) if measures else ""
    return [*_heading(title(language), note(language)), shown] if measures else []


def _rows(title: str, lines: Sequence[Row], measures: Mapping[str, Measure], language: Language) -> str:
    """Return a table of measures, with the best mean of each number of topics in bold."""
    titles = [words.MODEL(language), NUMBER_OF_TOPICS(language)]
    titles += [title_of(measure, language) for measure in measures.values()]
    rows = []
    for line in lines:
        columns = []
        for name, measure in measures.items():
            rivals = [other[name] for other in lines if other["n_topics"] == line["n_topics"]]
            better = measure.better
            known = [value * better for value in rivals if value is not None]
            best = line[name] is not None and len(known) > 1 and line[name] * better == max(known)
            text = _number(measure, line[name], line[f"{name}_sd"]).replace("± ", "±\u00a0")
            columns.append(f'<td class="best">{text}</td>' if best else f"<td>{text}</td>")
        rows.append(f"<tr><td>{as_markup(line['model'])}</td><td>{line['n_topics']}</td>{''.join(columns)}</tr>")
    return _scrolled(title, titles, rows)


def _paired(found: PageContent, language: Language) -> list[str]:
    if len(found.models) < 2:
        return []
    rows = []
    for name, lines in found.paired.items():
        measure = found.measures[name]
        for line in lines:
            low, high = (_number(measure, line[end]) for end in ("low", "high"))
            interval = "-" if line["low"] is None else words.INTERVAL(language, low=low, high=high)
            p, p_holm = ("-" if line[each] is None else f"{line[each]:.3f}" for each in ("p", "p_holm"))
            rows.append(
                f"<tr><td>{as_markup(title_of(measure, language))}</td><td>{as_markup(line['model'])}</td>"
                f"<td>{as_markup(line['against'])}</td><td>{_number(measure, line['difference'])}</td>"
                f"<td>{interval}</td><td>{line['pairs']}</td><td>{p}</td><td>{p_holm}</td></tr>"
            )
    titles = [title(language) for title in words.PAIRED_COLUMNS.values()]
    shown = _scrolled(words.PAIRED(language), titles, rows, "names")
    return [*_heading(words.PAIRED(language), words.PAIRED_NOTE(language)), shown]


def _scrolled(title: str, titles: list[str], rows: list[str], style: str = "") -> str:
    head = "".join(f'<th scope="col">{as_markup(title)}</th>' for title in titles)
    return _wide(title, f"<table><tr>{head}</tr>\n" + "\n".join(rows) + "</table>", style)


def _wide(title: str, shown: str, style: str = "") -> str:
    """Return what may be wider than a phone, and is then moved by a finger or by keys."""
    return f'<div class="scroll {style}" role="region" aria-label="{as_markup(title)}" tabindex="0">{shown}</div>'


def _topics(found: PageContent, language: Language) -> list[str]:
    blocks: list[str] = []
    for row in found.rows:
        if "error" in row or row["seed"] != 0:
            continue
        returns = row.get("returns")
        listed = "".join(
            f'<tr><td>{number}</td>{_cells(returns, number)}<td class="words">{as_markup(" ".join(topic))}</td></tr>'
            for number, topic in enumerate(row["words"])
        )
        if returns:
            note = words.RETURNS_NOTE(language, threshold=returns["threshold"])
            others = range(1, len(returns["similarity"][0]) + 1)
            titles = ["", words.RETURNS(language), *(words.OTHER_FIT(language, n=n) for n in others), ""]
            head = "".join(f'<th scope="col">{title}</th>' if title else "<td></td>" for title in titles)
            blocks.append(f'<p class="note">{note}</p>' if not blocks else "")
            listed = f"<tr>{head}</tr>{listed}"
        name = words.TOPICS_OF(language, model=row["model"], n_topics=row["n_topics"])
        blocks.append(
            f"<details><summary>{as_markup(name)}</summary>{_wide(name, f'<table>{listed}</table>')}</details>"
        )
    return blocks


def _cells(returns: Mapping[str, Any] | None, topic: int) -> str:
    """Return the cells that say in which other seeds a topic returns; similar partners are darker."""
    if returns is None:
        return ""
    cells = [f"<td>{returns['shares'][topic]:.0%}</td>"]
    for similarity in returns["similarity"][topic]:
        if similarity < returns["threshold"]:
            cells.append(f'<td class="far">{similarity:.2f}</td>')
        else:  # from pale blue to blue
            depth = (similarity - returns["threshold"]) / max(1 - returns["threshold"], 1e-9)
            red, green, blue = (
                round(pale + depth * (dark - pale)) for pale, dark in ((222, 33), (235, 113), (247, 181))
            )
            look = f"background:rgb({red},{green},{blue});color:{'#fff' if depth > 0.93 else '#000'}"
            cells.append(f'<td style="{look}">{similarity:.2f}</td>')
    return "".join(cells)


def _plots(found: PageContent, title: str, labels: Language, font: str | PathLike[str] | None) -> str:
    try:
        return _plot(title, _svg(_panels, found, labels, font))
    except ImportError as error:
        missing = MissingExtraError.of("the plots of a comparison", "matplotlib", "viz")
        said = str(error if isinstance(error, MissingExtraError) else missing)
        logger.warning("%s", said)
        return f'<p class="note">{as_markup(said)}</p>'


def _plot(title: str, picture: str) -> str:
    return _wide(title, f'<div role="img" aria-label="{as_markup(title)}">{picture}</div>', "plot")


def _svg(
    draw: Callable[[PageContent, Language, str | PathLike[str] | None], Figure],
    found: PageContent,
    labels: Language,
    font: str | PathLike[str] | None,
) -> str:
    from . import figures

    return figures.svg(draw(found, labels, font))


def _panels(found: PageContent, language: Language, font: str | PathLike[str] | None) -> Figure:
    """Draw a panel for each measure, with a dot for every fit, a row for each model and a colour for each n_topics."""
    from .figures import dot_panels
    from .figures.style import label_language

    language = label_language(language, font)
    panels: dict[str, Any] = {
        title_of(found.measures[name], language): {
            N_TOPICS(language, n=k): {model: by_model[model][row].tolist() for model in found.models}
            for row, k in enumerate(found.n_topics)
        }
        for name, by_model in found.values["test"].items()
    }
    return dot_panels(panels, font=font)


def _n_topics(found: PageContent, language: Language, labels: Language, font: str | PathLike[str] | None) -> list[str]:
    """Return the curve over numbers of topics and the recommendation for each model, if there are several numbers."""
    if len(found.n_topics) < 2:
        return []
    items = "".join(
        f"<li>{as_markup(words.RECOMMENDED(language, model=model, reason=reason))}</li>"
        for model, (_, reason) in found.recommended.items()
    )
    try:
        curve = _plot(words.NUMBERS_OF_TOPICS(language), _svg(curve_of, found, labels, font))
    except ImportError:  # which _plots reports
        curve = ""
    return [*_heading(words.NUMBERS_OF_TOPICS(language), words.CURVE(language)), curve, f"<ul>{items}</ul>"]


def curve_of(found: PageContent, language: Language = "en", font: str | PathLike[str] | None = None) -> Figure:
    """Draw the measures of validation documents by number of topics.

    Args:
        found: what the page shows.
        language: "en" or "zh", of the labels.
        font: a font family or file; None chooses one that has the characters.

    Raises:
        ImportError: matplotlib is not installed.
    """
    from .figures.curves import n_topics_curve

    shown = [*CURVE_MEASURES, *(name for name, measure in found.measures.items() if measure.group == "own")]
    values = {found.measures[name]: found.values["validation"][name] for name in shown if name in found.measures}
    recommended = {model: n_topics for model, (n_topics, _) in found.recommended.items()}
    return n_topics_curve(values, found.n_topics, recommended, font=font, language=language)
