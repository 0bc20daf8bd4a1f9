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
from speed_systems import BASE, GROWTH, SYSTEMS

Row = dict[str, Any]
REFERENCE, REFERENCE_EPOCHS = "tomotopy LDA", 200  # whose quality is the target of "time to quality"
COLUMNS = ("part", "system", "round", "threads", "docs", "words", "topics", "epoch", "wall", "cpu", "memory", "loading",
           "npmi", "perplexity", "problem")  # fmt: skip
MODELS = {f"ours: {name}": name.replace("-", "") for name in ("GSM", "ETM", "ProdLDA", "W-LDA", "Loom")}
HEAD = """# Training speed beside other packages

`make bench-speed` writes this page, [speed.csv](speed.csv) with every measurement, and the picture. Each fit runs in a
process of its own, in turn with those of the other packages. Figures are medians of {rounds} rounds. Other work on the
machine changes elapsed times by far more than processor times, so processor seconds of one thread are compared; elapsed
seconds of two threads stand beside them. Both include the processes that a package starts. An epoch or iteration is one
pass over all documents; the first of a fit is not counted.

{slower}
![quality against time, and the time of an epoch as a corpus grows](speed.png)

Inference, the latency of single documents and corpus building have pages of their own, which the table of
[README.md](README.md) lists.

## An epoch on 20 Newsgroups

{docs:,} documents, {tokens:,.0f} tokens, V={words:,}, K=50. The settings are each package's defaults, except that ours
are measured without spare topics, which a fit removes in its first epochs, and topica's samplers have the Dirichlet
parameter .1 for each topic. ETM of TopMost and topica have random word vectors of 200 dimensions that are not trained,
as is TopMost's default; ours trains 300 dimensions. FASTopic has vectors of documents by latent semantic analysis,
whose making is not timed. "fit" is the default or recommended number of epochs, and processor seconds for all of them.
An epoch of a neural model and an iteration of a sampler do not have the same effect; "Time to a quality" compares what
they reach.

"""
EQUAL = """
## With equal settings

The same model with the same number of topics and threads, encoder widths, batches and dimensions of word vectors; word
vectors are trained by TopMost and by us, and not by topica. Ratios are theirs divided by ours.

"""
FLOOR = """
## Beside the memory's bandwidth

A triad as in STREAM moved {one:.1f} GB/s with one thread and {two:.1f} with two; within caches it was {inside:.0f} GB/s
with one. `bandwidth.py` derives the bytes that a token costs at least, and without any cache. The shares are bytes per
second by either count, divided by the bandwidth of one thread. The topics and the encoder of this corpus fit into the
processor's caches, so "without a cache" may exceed 100 %.

"""
CURVES = """
## Time to a quality

Fits with the defaults and K=50, two threads, one seed, without 15 % of the documents, which are held out. NPMI is that
of the ten top words over the held-out documents, at relevance .6 (or by weight, where topics are no distributions), by
the measure of this package. Perplexity scores one half of each held-out document, given theta of the other half by the
inference of the package that fitted the model. The targets are what
{reference} reaches with {epochs} iterations: NPMI {npmi:.3f} and perplexity {perplexity:,.0f}. Ours and topica's are
whole fits of different lengths, the others snapshots of one fit; the time of snapshots does not count.

"""
GROWN = """
## As a corpus grows

Documents of about 60 words, drawn from 50 planted topics with Zipf's frequencies. One factor differs from D={docs:,},
V={words:,}, K={topics}. Milliseconds of one core per 1,000 documents and epoch; below, peak memory in GiB with the
package's own form of the documents. "> N" is a fit that was ended after N processor seconds without a whole epoch after
the first. "memory" needs more than 11 GiB.

"""


def write(rows: list[Row], page: Path) -> None:
    """Write the page, the table and the picture from the results that there are."""
    good = [row for row in rows if "error" not in row]
    table(good, page.with_suffix(".csv"))
    draw(good, page.with_suffix(".png"))
    page.write_text(text(good), encoding="utf-8")


def table(rows: list[Row], path: Path) -> None:
    """Write every measurement as a line of a CSV file."""
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        out.writeheader()
        for row in rows:
            for point in row.get("curve") or ([] if row["part"] == "bandwidth" else [{}]):
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


def text(rows: list[Row]) -> str:
    """Format the page."""
    counts = _counts()
    sizes = {"docs": len(counts[2]) - 1, "tokens": counts[0].sum(), "words": 5000}
    rounds = max((row["round"] for row in of(rows, "epochs")), default=0) + 1
    return (
        HEAD.format(rounds=rounds, slower=slower(rows), **sizes)
        + epochs(rows, sizes)
        + EQUAL
        + equal(rows)
        + floors(rows, sizes, counts)
        + curves(rows)
        + GROWN.format(**BASE)
        + growth(rows)
    )


def _counts() -> list[Any]:
    from speed import FOLDER

    return [np.load(FOLDER / "20ng" / f"{name}.npy") for name in ("data", "indices", "indptr")]


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
            found.append(f"an iteration of {name} takes {time / own:.2f} of a counting pass of Loom")
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
        if system.group or not one:
            continue
        cpu = middle(one, "cpu")
        fit = f"{system.epochs:,}: {figure(cpu * system.epochs, '{:.0f}')}" if system.epochs else "-"
        body.append([
            name, figure(cpu), figure(middle(two, "wall")), figure(sizes["docs"] / cpu, "{:,.0f}"),
            figure(sizes["tokens"] / cpu / 1e6, "{:.2f}"), figure(middle(one, "memory") / 2**30, "{:.2f}"),
            figure(middle(one, "loading"), "{:.1f}"), fit,
        ])  # fmt: skip
    header = ["model", "1 thread, processor s", "2 threads, elapsed s", "documents/s", "million tokens/s", "peak GiB",
              "loading, s", "fit: epochs, s"]  # fmt: skip
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
                own, time = middle(times[threads][names[0]], clock), middle(times[threads][name], clock)
                line += [figure(time), figure(time / own, "{:.1f}")]
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


def points(rows: list[Row], name: str) -> list[Row]:
    """Return the points of a model's curve, in the order of their time."""
    found = [point for row in of(rows, "curves", system=name) for point in row.get("curve", ())]
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
    if not targets:
        return ""
    reached = _reached(rows)
    for name in SYSTEMS:
        curve = points(rows, name)
        if not curve:
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
    aims = {measure: targets[measure] for measure in ("npmi", "perplexity")}
    head = CURVES.format(reference=REFERENCE, epochs=REFERENCE_EPOCHS, **aims)
    return head + markdown(header, body)


def cells() -> list[tuple[str, Job]]:
    """Return the cells of growth with their titles."""
    return [(f"{short}={value:,}", BASE | {factor: value}) for short, (factor, values) in
            zip("DVK", GROWTH.items(), strict=True) for value in values]  # fmt: skip


def growth(rows: list[Row]) -> str:
    """Format the tables of growth."""
    out = ""
    for title in ("time", "memory"):
        body = []
        for name, system in SYSTEMS.items():
            if "growth" not in system.parts:
                continue
            line = [name]
            for _, cell in cells():
                found = of(rows, "growth", system=name, **cell)
                line.append(_cell(found[0], title) if found else "")
            body.append(line)
        out += markdown(["model", *(name for name, _ in cells())], body) + "\n"
    return out.rstrip("\n") + "\n"


def _cell(row: Row, title: str) -> str:
    if title == "memory":
        return figure(row["memory"] / 2**30, "{:.2f}") if not row["problem"] or row["problem"] == "time" else ""
    if "cpu" in row:
        return figure(1e6 * row["cpu"] / row["docs"], "{:.3g}")
    from speed import LIMITS

    return {"time": f"> {LIMITS['growth']:.0f} s", "memory": "memory"}.get(row["problem"], "failed")


def draw(rows: list[Row], path: Path) -> None:
    """Draw quality against time, and the time of an epoch against the three sizes."""
    from matplotlib.figure import Figure

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
        axis.spines[["top", "right"]].set_visible(False)
    picture.savefig(path)
