"""The page, the table and the picture of speed.py."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import bandwidth
from jobs import Job, markdown
from speed_systems import ALL, BASE, CORPORA, ENDS, GROWTH, ROUNDS, SYSTEMS, limit_of
from speed_text import COVERAGE, CURVES, EQUAL, FLOOR, GROWN, HEAD
from speed_text import ENDS as ENDS_TEXT

Row = dict[str, Any]
REFERENCE, REFERENCE_EPOCHS = "tomotopy LDA", 200  # whose quality is the target of "time to quality"
COLUMNS = ("part", "system", "round", "threads", "docs", "words", "topics", "epoch", "wall", "cpu", "memory", "loading",
           "npmi", "perplexity", "problem")  # fmt: skip
MODELS = {f"ours: {name}": name.replace("-", "") for name in ("GSM", "ETM", "ProdLDA", "W-LDA", "Loom")}
MISSING = "not measured"


def write(rows: list[Row], page: Path) -> None:
    """Write the page, the table and the picture from the results that there are."""
    good = [row for row in rows if "error" not in row]
    table(good, page.with_suffix(".csv"))
    kept = [row for row in good if not disturbed(row, good)]
    draw(kept, page.with_suffix(".png"))
    page.write_text(text(kept, len(good) - len(kept)), encoding="utf-8")


def disturbed(row: Row, rows: list[Row]) -> bool:
    """Whether other work took a core from a fit with two threads, which then wait for each other."""
    if row.get("threads") != 2 or "cpu" not in row:
        return False
    alone = middle(of(rows, "epochs", system=row["system"], threads=1), "cpu")
    return row["wall"] > 1.2 * row["cpu"] or row["cpu"] > 3 * alone


def table(rows: list[Row], path: Path) -> None:
    """Write every measurement as a line of a CSV file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        out.writeheader()
        for row in rows:
            for point in curve_of(row) or ([] if row["part"] == "bandwidth" else [{}]):
                line = row | point
                out.writerow({name: _short(line.get(name, "")) for name in COLUMNS})


def _short(value: Any) -> Any:
    return f"{value:.4g}" if isinstance(value, float) else value


def of(rows: Iterable[Row], part: str, **where: Any) -> list[Row]:
    """Return the rows of a part with these values."""
    return [row for row in rows if row["part"] == part and all(row[name] == value for name, value in where.items())]


def middle(rows: list[Row], name: str) -> float:
    """Return the median of a column; nan without a value."""
    values = [row[name] for row in rows if name in row]
    return float(median(values)) if values else float("nan")


def figure(value: float, pattern: str = "{:.3g}") -> str:
    return "-" if np.isnan(value) else pattern.format(value)


def text(rows: list[Row], n_disturbed: int) -> str:
    """Format the page."""
    counts = _counts()
    sizes = {"docs": len(counts[2]) - 1, "tokens": counts[0].sum(), "words": 5000}
    return (
        HEAD.format(coverage=coverage(rows, n_disturbed), slower=slower(rows), **sizes)
        + epochs(rows, sizes)
        + EQUAL
        + equal(rows)
        + floors(rows, sizes, counts)
        + curves(rows)
        + ends(rows)
        + GROWN.format(**BASE)
        + growth(rows)
    )


def _counts() -> list[Any]:
    from speed import FOLDER

    return [np.load(FOLDER / "20ng" / f"{name}.npy") for name in ("data", "indices", "indptr")]


def coverage(rows: list[Row], n_disturbed: int) -> str:
    """Say how much of the run is done, and how many fits are left out."""
    from speed import all_jobs

    wanted = all_jobs(list(ALL), "")
    whole = {part: sum(job["part"] == part for job in wanted) for part in ALL}
    done = {part: len(of(rows, part)) for part in ALL}
    if done == whole:
        return f"Figures of epochs are medians of {ROUNDS} rounds; those of quality and growth are of one fit each."
    rounds = [len(of(rows, "epochs", round=number)) for number in range(ROUNDS)]
    several = f"{', '.join(map(str, rounds[:-1]))} and {rounds[-1]}"
    return COVERAGE.format(
        each=whole["epochs"] // ROUNDS, several=several, rounds=ROUNDS, missing=MISSING, disturbed=n_disturbed,
        **{f"{part}_done": done[part] for part in ALL}, **whole,
    )  # fmt: skip


def outcome(rows: list[Row], clock: str) -> str:
    """Return the median of a time, or why there is none."""
    value = middle(rows, clock)
    return figure(value) if rows and not np.isnan(value) else problem(rows[0]) if rows else MISSING


def problem(row: Row) -> str:
    """Say why a fit has no time."""
    limit = limit_of(row)
    if row["problem"] == "time" or (not row["problem"] and row["seconds"] > limit):
        return f"> {limit:.0f} s"
    return "memory" if row["problem"] == "memory" else "failed"


def slower(rows: list[Row]) -> str:
    """Say where another package is faster than ours, first of all."""
    found = []
    for group in sorted({system.group for system in SYSTEMS.values() if system.group}):
        times = {name: middle(of(rows, "epochs", system=name, threads=1), "cpu") for name in _members(group)}
        own = next(time for name, time in times.items() if name.startswith("ours"))
        found += [f"an epoch of {name} takes {time / own:.2f} of ours" for name, time in times.items() if time < own]
    samplers = [name for name in SYSTEMS if "LDA" in name and not name.startswith("ours") and "Prod" not in name]
    own = middle(of(rows, "epochs", system="ours: Loom", threads=1), "cpu")
    for name in samplers:
        time = middle(of(rows, "epochs", system=name, threads=1), "cpu")
        if time < own:
            found.append(f"an iteration of {name} takes {time / own:.2f} of a sampling pass of Loom")
    reached = _reached(rows)
    for target in ("npmi", "perplexity"):
        fastest = sorted((times[target], name) for name, times in reached.items() if target in times)
        ours = [time for time, name in fastest if name.startswith("ours")]
        ahead = [name for time, name in fastest if not name.startswith("ours") and (not ours or time < ours[0])]
        if ahead:
            names = ", ".join(ahead)
            found.append(f"to the target of {target}, in less processor time than any of our models: {names}")
    lines = "".join(f"- {each}\n" for each in found)
    return f"Where another package is faster:\n\n{lines}" if found else "No other package was faster in this run.\n"


def _members(group: str) -> list[str]:
    return [name for name, system in SYSTEMS.items() if system.group == group]


def epochs(rows: list[Row], sizes: Row) -> str:
    """Format the table of epochs."""
    body = []
    for name, system in SYSTEMS.items():
        one, two = (of(rows, "epochs", system=name, threads=n) for n in (1, 2))
        if system.group:
            continue
        cpu = middle(one, "cpu")
        fit = f"{figure(cpu * system.epochs, '{:.0f}')} s, {system.epochs:,} epochs" if system.epochs else "-"
        body.append([
            name, outcome(one, "cpu"), outcome(two, "wall"), figure(sizes["docs"] / cpu, "{:,.0f}"),
            figure(sizes["tokens"] / cpu / 1e6, "{:.2f}"), figure(middle(one, "memory") / 2**30, "{:.2f}"),
            figure(middle(one, "loading"), "{:.1f}"), fit,
        ])  # fmt: skip
    header = ["model", "1 thread, processor s", "2 threads, elapsed s", "documents/s", "million tokens/s", "peak GiB",
              "loading, s", "whole fit"]  # fmt: skip
    return markdown(header, body)


def equal(rows: list[Row]) -> str:
    """Format the table of equal settings."""
    body = []
    for group in dict.fromkeys(system.group for system in SYSTEMS.values() if system.group):
        names = _members(group)
        times = {n: {name: of(rows, "epochs", system=name, threads=n) for name in names} for n in (1, 2)}
        for name in names:
            line = [group if name == names[0] else "", name.partition(",")[0]]
            for threads, clock in ((1, "cpu"), (2, "wall")):
                found = times[threads][name]
                ratio = middle(found, clock) / middle(times[threads][names[0]], clock)
                line += [outcome(found, clock), figure(ratio, "{:.1f}")]
            body.append([*line, figure(middle(times[1][name], "memory") / 2**30, "{:.2f}")])
    header = ["setting", "model", "1 thread, processor s", "ratio", "2 threads, elapsed s", "ratio", "peak GiB"]
    return markdown(header, body)


def floors(rows: list[Row], sizes: Row, counts: list[Any]) -> str:
    """Format tokens per second beside the bandwidth."""
    triads = of(rows, "bandwidth")
    if not triads:
        return ""
    one, two, inside = (max(row[name] for row in triads) for name in ("memory 1", "memory 2", "cache 1"))
    distinct = bandwidth.distinct_words(*counts[1:], 256)
    body = []
    work = bandwidth.Work(sizes["docs"], sizes["words"], 50, len(counts[1]), sizes["tokens"], 256, distinct)
    for name, model in MODELS.items():
        cost, seconds = bandwidth.traffic(model, work), middle(of(rows, "epochs", system=name, threads=1), "cpu")
        speed = sizes["tokens"] / seconds
        shares = ((f"{each:,.0f}", figure(each * speed / one, "{:.0%}")) for each in cost)
        body.append([name, figure(speed / 1e6, "{:.2f}"), *chain.from_iterable(shares)])
    header = ["model", "million tokens/s", "bytes a token, floor", "share", "bytes a token, without a cache", "share"]
    return FLOOR.format(one=one / 1e9, two=two / 1e9, inside=inside / 1e9) + markdown(header, body)


def curve_of(row: Row) -> list[Row]:
    """Return the points of a fit. A fit of ours has one, after the epochs of its setting."""
    ours = {"epoch": int(row["epochs"])} if row["system"].startswith("ours") and row["epochs"] else {}
    return [point | ours for point in row.get("curve", ())]


def points(rows: list[Row], name: str, part: str = "curves", **where: Any) -> list[Row]:
    """Return the points of a model's curve, in the order of their time."""
    found = [point for row in of(rows, part, system=name, **where) for point in curve_of(row)]
    return sorted(found, key=lambda point: point["cpu"])


def _targets(rows: list[Row]) -> Row:
    return next((point for point in points(rows, REFERENCE) if point["epoch"] == REFERENCE_EPOCHS), {})


def _reached(rows: list[Row]) -> dict[str, dict[str, float]]:
    """Return the processor seconds in which each model reaches the targets."""
    targets, found = _targets(rows), {}
    for name in SYSTEMS:
        curve, times = points(rows, name), {}
        for measure, sign in (("npmi", 1), ("perplexity", -1)):
            values = [(point["cpu"], sign * point[measure]) for point in curve if measure in point]
            hits = [seconds for seconds, value in values if targets and value >= sign * targets[measure]]
            if hits:
                times[measure] = hits[0]
        found[name] = times
    return found


def curves(rows: list[Row]) -> str:
    """Format the table of time to a quality."""
    targets, body = _targets(rows), []
    reached = _reached(rows)
    for name in (name for name, system in SYSTEMS.items() if "curves" in system.parts):
        curve, fits = points(rows, name), of(rows, "curves", system=name)
        if not curve:
            body.append([name, problem(fits[0]) if fits else MISSING, *[""] * 6])
            continue
        last = curve[-1]
        npmi = max(point["npmi"] for point in curve)
        perplexity = min((point["perplexity"] for point in curve if "perplexity" in point), default=float("nan"))
        body.append([
            name, *(figure(reached[name].get(measure, float("nan")), "{:.1f}") for measure in ("npmi", "perplexity")),
            f"{npmi:.3f}", figure(perplexity, "{:,.0f}"),
            f"{last['epoch']}", f"{last['cpu']:.0f}", f"{last['wall']:.0f}",
        ])  # fmt: skip
    header = ["model", "processor s to NPMI", "to perplexity", "best NPMI", "best perplexity", "longest, epochs",
              "processor s", "elapsed s"]  # fmt: skip
    aims = f"NPMI {targets['npmi']:.3f} and perplexity {targets['perplexity']:,.0f}" if targets else MISSING
    head = CURVES.format(reference=REFERENCE, epochs=REFERENCE_EPOCHS, aims=aims)
    return head + markdown(header, body)


def ends(rows: list[Row]) -> str:
    """Format the tables of the time to TopMost's quality at its end."""
    if not of(rows, "ends"):
        return ""
    out = ENDS_TEXT
    for corpus in CORPORA:
        curve = {name: points(rows, name, "ends", corpus=corpus) for name in ENDS}
        last = {name: curve[f"TopMost {name}"][-1:] for name in ("ETM", "ProdLDA")}
        targets = [("ETM", "npmi_probability"), ("ETM", "npmi"), ("ProdLDA", "npmi_own")]
        known = [(name, ranking) for name, ranking in targets if last[name]]
        if not known:
            continue
        head = [
            f"{name} after {last[name][0]['epoch']} epochs{ENDS_RANKINGS[ranking]} {_own(last[name][0], ranking):.3f}"
            for name, ranking in known
        ]
        body = []
        for name, found in curve.items():
            if not found:
                continue
            line = [name]
            for target, ranking in known:
                aim = last[target][0]
                hits = [point["cpu"] for point in found if _own(point, ranking) >= _own(aim, ranking)]
                line.append(f"{hits[0]:.1f} s, {hits[0] / aim['cpu']:.3f}" if hits else "-")
            longest = max(found, key=lambda point: int(point["epoch"]))
            aims = [(ranking, _own(last[target][0], ranking)) for target, ranking in known]
            diverse = [
                point["cpu"]
                for point in found
                if point.get("td", 0.0) >= DIVERSE and all(_own(point, ranking) >= aim for ranking, aim in aims)
            ]
            line.append(f"{diverse[0]:.1f} s" if diverse else "-")
            best = (max(_own(point, ranking) for point in found) for _, ranking in targets)
            body.append([*line, " / ".join(f"{value:.3f}" for value in best), f"{longest['epoch']}",
                         f"{longest['cpu']:.0f}"])  # fmt: skip
        columns = ["model", *(f"to {each}, share" for each in head), f"to all, TD at least {DIVERSE}", "best NPMI",
                   "longest, epochs", "processor s"]  # fmt: skip
        out += f"{corpus}:\n\n" + markdown(columns, body) + "\n"
    return out.rstrip("\n") + "\n"


DIVERSE = 0.75  # what counts as distinct topics
ENDS_RANKINGS = {"npmi_probability": " by probability,", "npmi": " at .6,", "npmi_own": ","}


def _own(point: Row, ranking: str) -> float:
    """Return the NPMI by a ranking; that by probability or by weight, if the package has no ranking of its own."""
    return float(point.get(ranking, point["npmi_probability"]))


def cells() -> list[tuple[str, Job]]:
    """Return the cells of growth with their titles."""
    return [(f"{short}={value:,}", BASE | {factor: value}) for short, (factor, values) in
            zip("DVK", GROWTH.items(), strict=True) for value in values]  # fmt: skip


def growth(rows: list[Row]) -> str:
    """Format the tables of growth."""
    out = ""
    if not of(rows, "growth"):
        return f"This part was {MISSING} in this run.\n"
    for title in ("time", "memory"):
        body = []
        for name, system in SYSTEMS.items():
            if "growth" not in system.parts:
                continue
            line = [name]
            for _, cell in cells():
                found = of(rows, "growth", system=name, **cell)
                line.append(_cell(found[0], title) if found else MISSING)
            body.append(line)
        out += markdown(["model", *(name for name, _ in cells())], body) + "\n"
    return out.rstrip("\n") + "\n"


def _cell(row: Row, title: str) -> str:
    if title == "memory":
        return figure(row["memory"] / 2**30, "{:.2f}") if not row["problem"] or row["problem"] == "time" else ""
    if "cpu" in row:
        return figure(1e6 * row["cpu"] / row["docs"], "{:.3g}")
    return problem(row)


def draw(rows: list[Row], path: Path) -> None:
    """Draw quality against time, and the time of an epoch against the three sizes."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

    names = [name for name, system in SYSTEMS.items() if not system.group]
    import matplotlib

    palette = matplotlib.colormaps["tab20"].colors  # type: ignore[attr-defined]
    styles = {
        name: {"color": palette[(2 * n) % 20 + (2 * n) // 20], "linestyle": "-" if name.startswith("ours") else "--",
               "linewidth": 2.0 if name.startswith("ours") else 1.1, "marker": "o" if name.startswith("ours") else "."}
        for n, name in enumerate(names)
    }  # fmt: skip
    picture = Figure((13, 8.2), layout="constrained", dpi=110)
    axes = picture.subplots(2, 3)
    for place, (measure, title) in enumerate((("npmi", "NPMI, held-out documents"), ("perplexity", "perplexity"))):
        for name in names:
            curve = [point for point in points(rows, name) if measure in point]
            axes[0, place].plot([p["cpu"] for p in curve], [p[measure] for p in curve], markersize=4, **styles[name])
        axes[0, place].set(xscale="log", xlabel="processor seconds, two threads", title=title)
        axes[0, place].xaxis.set(
            major_locator=LogLocator(subs=(1, 2, 5)), major_formatter=ScalarFormatter(), minor_formatter=NullFormatter()
        )
    axes[0, 1].set_ylim(top=3000)
    axes[0, 2].axis("off")
    handles = [axes[0, 2].plot([], [], **styles[name])[0] for name in names]
    axes[0, 2].legend(handles, names, loc="center", fontsize=9, frameon=False)
    titles = {"docs": "documents D", "words": "vocabulary V", "topics": "topics K"}
    for place, (factor, values) in enumerate(GROWTH.items()):
        for name in names:
            cell = (of(rows, "growth", system=name, **(BASE | {factor: value})) for value in values)
            found = [(row[0][factor], row[0]["cpu"] / row[0]["docs"]) for row in cell if row and "cpu" in row[0]]
            axes[1, place].plot(*zip(*found, strict=True) if found else ([], []), markersize=4, **styles[name])
        axes[1, place].set(xscale="log", yscale="log", xlabel=titles[factor])
        axes[1, place].set_title("processor seconds a document and epoch", fontsize=10)
    for axis in axes.flat:
        if not any(len(line.get_xdata()) for line in axis.lines) and axis is not axes[0, 2]:
            axis.set(xscale="linear", yscale="linear", xticks=[], yticks=[])
            axis.text(0.5, 0.5, MISSING, transform=axis.transAxes, ha="center")
        axis.spines[["top", "right"]].set_visible(False)
    picture.savefig(path)
