"""A comparison as a text table, as CSV, and as one self-contained HTML page."""

from __future__ import annotations

import csv
import io
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from ..display import as_markup
from ..errors import InputError, MissingExtraError
from ..metrics import CATALOGUE
from . import comparison_words as words
from .figure_words import N_TOPICS, TOPICS, characters
from .figures.style import letter, with_room
from .fonts import fonts_for, label_language
from .wording import Language, joined, title_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

    from matplotlib.figure import Figure


# The curve of measures over numbers of topics, which shows why one of them is recommended.

MEASURES = [
    name for name, each in CATALOGUE.items() if (each.column and each.group != "cost") or each.group == "stability"
]
_COLUMNS = 3
_WIDEST = 10  # the ratio of the largest to the smallest number of topics up to which the axis is linear


def n_topics_curve(
    values: Mapping[str, Mapping[str, npt.NDArray[np.float64]]],
    n_topics: Sequence[int],
    recommended: Mapping[str, int],
    *,
    font: str | PathLike[str] | None = None,
    language: Language = "en",
) -> Figure:
    """Draw a panel for each measure and a line for each model: the mean over seeds, with its standard error.

    Args:
        values: by measure and by model, (n_sizes, n_seeds) values, which may be NaN.
        n_topics: the numbers of topics, one for each row of the values.
        recommended: the recommended number of topics of each model, drawn as a vertical line.
        font, language: as for `topic_pages`.
    """
    language = label_language(language, font)
    order = np.argsort(n_topics)
    sizes = np.asarray(n_topics)[order]
    columns = min(_COLUMNS, max(1, len(values)))
    rows = max(1, -(-len(values) // columns))
    figure = Figure(figsize=(4 * columns, 2.8 * rows), layout="constrained")
    with_room(figure)
    all_axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes in all_axes[len(values) :]:
        axes.set_visible(False)
    for axes, (name, by_model) in zip(all_axes, values.items(), strict=False):
        for number, (model, of_fits) in enumerate(by_model.items()):
            means, errors = _means_and_errors(of_fits[order], "other runs" in CATALOGUE[name].needs)
            colour = f"C{number % 10}"
            axes.errorbar(sizes, means, yerr=errors, color=colour, marker="o", markersize=4, capsize=3, label=model)
            if model in recommended:
                axes.axvline(recommended[model], color=colour, linestyle=":", linewidth=1)
        axes.set_title(title_of(CATALOGUE[name], language), fontsize=9)
        if sizes[-1] > _WIDEST * sizes[0]:
            axes.set_xscale("log")
        axes.set_xticks(sizes, [str(k) for k in sizes])
        axes.minorticks_off()
        axes.tick_params(labelsize=8)
        axes.set_xlabel(TOPICS(language), fontsize=8)
        axes.grid(alpha=0.3)
    models = list(next(iter(values.values()), {}))
    if len(models) > 1:
        all_axes[0].legend(frameon=False, prop={"family": fonts_for(models, font), "size": 7})
    letter(figure, fonts_for([*models, *characters(language)], font))
    return figure


def _means_and_errors(
    of_fits: npt.NDArray[np.float64], of_pairs: bool = False
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the mean and the standard error of each row; NaN and 0 where they are not known.

    Args:
        of_fits: (n_sizes, n_seeds) values, which may be NaN.
        of_pairs: whether the value of a seed is a mean over the pairs that it forms with the other seeds. The mean of
            all pairs is then a U-statistic. Its standard error by the jackknife (Arvesen 1969) is 2 (n - 1) / (n - 2)
            times that of n independent values, and not known for two seeds.
    """
    means, errors = np.full(len(of_fits), np.nan), np.zeros(len(of_fits))
    for row, values in enumerate(of_fits):
        known = values[np.isfinite(values)]
        if len(known):
            means[row] = known.mean()
        n = len(known)
        if n > 1 + of_pairs:
            errors[row] = known.std(ddof=1) / np.sqrt(n) * (2 * (n - 1) / (n - 2) if of_pairs else 1)
    return means, errors


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

    def recommend(self, model: str | None = None, language: Language = "en") -> Any: ...


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


def page(
    found: Comparison,
    language: Language = "en",
    labels: Language | None = None,
    font: str | PathLike[str] | None = None,
) -> str:
    """Return one HTML page with the tables, plots, paired tests and topics.

    Args:
        found: the comparison.
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
        *_heading(words.VALIDATION(language), words.CHOOSE(language)), _table(found, "validation", language),
        *_n_topics(found, language, *look),
        *_heading(words.TEST(language), words.REPORT(language)), _table(found, "test", language),
        *_heading(words.EVERY_FIT(language), words.MEASURED_ON_TEST(language)), _plots(found, *look),
        *_paired(found, language),
        *_heading(words.TOPICS(language), words.OF_FIRST_SEED(language)), *_topics(found, language),
    ]  # fmt: skip
    code = "zh-CN" if language == "zh" else "en"
    return (
        f'<!doctype html>\n<html lang="{code}"><head><meta charset="utf-8"><title>{words.TITLE(language)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<style>{_STYLE}</style></head>\n<body>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def _heading(title: str, note: str) -> list[str]:
    return [f"<h2>{title}</h2>", f'<p class="note">{note}</p>']


def _size(found: Comparison, language: Language) -> str:
    """Return how many models, numbers of topics and seeds were compared."""
    numbers = {"model": len(found.models), "number of topics": len(found.n_topics), "seed": found.seeds}
    models, n_topics, seeds = (words.COUNTED[what][n != 1](language, n=n) for what, n in numbers.items())
    return words.SIZE(language, models=models, n_topics=n_topics, seeds=seeds)


def _versions(found: Comparison, language: Language) -> list[str]:
    if not found.versions:
        return []
    said = words.FITTED_BY(language, versions=as_markup(words.AND_VERSION(language).join(found.versions)))
    if len(found.versions) > 1:
        said = joined([f"<strong>{said}</strong>", words.DIFFERENT_VERSIONS(language)], language)
    return [f'<p class="note">{said}</p>']


def _failed(found: Comparison, language: Language) -> list[str]:
    if not found.failed:
        return []
    items = "".join(f"<li>{as_markup(words.FAILED_FIT(language, **row))}</li>" for row in found.failed)
    said = words.FAILED(language, n_failed=len(found.failed), n=len(found.rows))
    return [f"<p>{said}</p><ul>{items}</ul>"]


def _table(found: Comparison, part: str, language: Language) -> str:
    lines = found.table(part)
    titles = [words.MODEL(language), words.N_TOPICS(language)]
    titles += [title_of(CATALOGUE[name], language) for name in found.measures]
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
    return _scrolled(titles, rows)


def _paired(found: Comparison, language: Language) -> list[str]:
    if len(found.models) < 2:
        return []
    rows = []
    for name in (name for name in found.measures if name != "topic_distance"):
        best = found.best(name, "validation")
        for line in found.paired(name, best, "test") if best else ():
            low, high = (figure(name, line[end]) for end in ("low", "high"))
            interval = "-" if line["low"] is None else words.INTERVAL(language, low=low, high=high)
            p, p_holm = ("-" if line[each] is None else f"{line[each]:.3f}" for each in ("p", "p_holm"))
            rows.append(
                f"<tr><td>{as_markup(title_of(CATALOGUE[name], language))}</td><td>{as_markup(line['model'])}</td>"
                f"<td>{as_markup(line['against'])}</td><td>{figure(name, line['difference'])}</td>"
                f"<td>{interval}</td><td>{line['pairs']}</td><td>{p}</td><td>{p_holm}</td></tr>"
            )
    titles = [title(language) for title in words.PAIRED_COLUMNS.values()]
    return [*_heading(words.PAIRED(language), words.PAIRED_NOTE(language)), _scrolled(titles, rows)]


def _scrolled(titles: list[str], rows: list[str]) -> str:
    head = "".join(f"<th>{as_markup(title)}</th>" for title in titles)
    return f'<div class="scroll"><table><tr>{head}</tr>\n' + "\n".join(rows) + "</table></div>"


def _topics(found: Comparison, language: Language) -> list[str]:
    blocks = []
    for row in found.rows:
        if "error" in row or row["seed"] != 0:
            continue
        listed = "".join(
            f'<tr><td>{number}</td><td class="words">{as_markup(" ".join(topic))}</td></tr>'
            for number, topic in enumerate(row["words"])
        )
        name = as_markup(words.TOPICS_OF(language, model=row["model"], n_topics=row["n_topics"]))
        blocks.append(f"<details><summary>{name}</summary><table>{listed}</table></details>")
    return blocks


def _plots(found: Comparison, labels: Language, font: str | PathLike[str] | None) -> str:
    try:
        return _svg(_panels, found, labels, font)
    except ImportError as error:
        missing = MissingExtraError.of("the plots of a comparison", "matplotlib", "viz")
        said = str(error if isinstance(error, MissingExtraError) else missing)
        logger.warning("%s", said)
        return f'<p class="note">{as_markup(said)}</p>'


def _svg(
    draw: Callable[[Comparison, Language, str | PathLike[str] | None], Figure],
    found: Comparison,
    labels: Language,
    font: str | PathLike[str] | None,
) -> str:
    from . import figures

    return figures.svg(draw(found, labels, font))


def _panels(found: Comparison, language: Language, font: str | PathLike[str] | None) -> Figure:
    """Draw a panel for each measure, with a dot for every fit, a row for each model and a colour for each n_topics."""
    from .figures import dot_panels
    from .fonts import label_language

    language = label_language(language, font)
    panels: dict[str, Any] = {
        title_of(CATALOGUE[name], language): {
            N_TOPICS(language, n=k): {model: found.values(name, model, k).tolist() for model in found.models}
            for k in found.n_topics
        }
        for name in found.measures
    }
    return dot_panels(panels, font=font)


def _n_topics(found: Comparison, language: Language, labels: Language, font: str | PathLike[str] | None) -> list[str]:
    """Return the curve over numbers of topics and the recommendation for each model, if there are several numbers."""
    if len(found.n_topics) < 2:
        return []
    reasons = {model: said.reason for model, said in _recommended(found, language).items()}
    items = "".join(
        f"<li>{as_markup(words.RECOMMENDED(language, model=model, reason=reason))}</li>"
        for model, reason in reasons.items()
    )
    try:
        curve = _svg(curve_of, found, labels, font)
    except ImportError:  # which _plots reports
        curve = ""
    return [*_heading(words.NUMBERS_OF_TOPICS(language), words.CURVE(language)), curve, f"<ul>{items}</ul>"]


def curve_of(found: Comparison, language: Language = "en", font: str | PathLike[str] | None = None) -> Figure:
    """Draw the measures of validation documents by number of topics.

    Args:
        found: the comparison.
        language, font: of the labels, as for `topicloom.figures.topic_pages`.

    Raises:
        ImportError: matplotlib is not installed.
    """

    values = {
        name: {
            model: np.stack([found.values(name, model, k, "validation") for k in found.n_topics])
            for model in found.models
        }
        for name in MEASURES
        if name in found.measures
    }
    recommended = {model: said.n_topics for model, said in _recommended(found, language).items()}
    return n_topics_curve(values, found.n_topics, recommended, font=font, language=language)


def _recommended(found: Comparison, language: Language) -> dict[str, Any]:
    """Return the recommendation for each model that has one."""
    recommended = {}
    for model in found.models:
        with suppress(InputError):  # no fit of the model has the measures
            recommended[model] = found.recommend(model, language)
    return recommended
