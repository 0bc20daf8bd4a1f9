"""Posterior collapse on bbc-news: the weight of the divergence, warm-up, and the normalisation of the code.

    python benchmarks/collapse.py [--shared ../shared] [--jobs 1] [--table]

Writes the tables of docs/posterior-collapse.md and of its Chinese version, which are between comments there, and its
three figures. Results are stored in results/collapse.jsonl, and a run continues where the last one ended.

All fits have K = 20. Those of the row "plain" have a loss that is the reconstruction plus kl_weight times the
divergence and nothing else: a random start, no spare topics, no learned shares and no separation term.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import jobs
import shared
import topicloom as tl
from topicloom import metrics
from topicloom.models.inference import device_of
from topicloom.training.batches import BatchReader
from topicloom.training.loop import evaluate

DOCS = Path(__file__).resolve().parents[1] / "docs"
N_TOPICS, WARMUP = 20, 20
NORMS = ("none", "affine", "mean", "fixed")
WEIGHTS = (0, 0.1, 0.3, 1, 3, 10, 30)
MODELS = {"GSM": {"prior": "standard"}, "DirichletVAE": {"estimator": "implicit"}}
PLAIN = {
    "start": "random",
    "spare_topics": 0,
    "learn_shares": False,
    "min_diversity": 0,
    "epochs": 40,
    "learning_rate": 3e-3,
}
CHANGES: dict[str, dict[str, Any]] = {
    "plain": {},
    "learned shares": {"learn_shares": True},
    "spare topics": {"spare_topics": 1.0},
    "separation term": {"min_diversity": 0.77},
}
DEFAULTS = "default settings"  # of everything but the norm, the weight, the warm-up and the prior
VARIANTS = [(change, "none") for change in CHANGES] + [(DEFAULTS, "none"), (DEFAULTS, "mean")]
DIRICHLET = [("none", 1, 0), ("none", 1, WARMUP), ("none", 10, 0), ("affine", 1, 0), ("affine", 10, 0)]
DIRICHLET += [("mean", 1, 0), ("mean", 10, 0), ("mean", 10, WARMUP)]
UNITS = range(0, N_TOPICS + 1, 5)  # the ticks of the figures
EPOCHS = (1, 2, 5, 10, 15, 20, 25, 30, 40)  # of the table
COLUMNS = {  # of the tables: the title and the format of each figure
    "kl": ("KL", "{:.2f}"),
    "kl_training": ("KL in training", "{:.2f}"),
    "units": ("active units", "{}"),
    "kl_test": ("KL, test", "{:.2f}"),
    "reconstruction_test": ("reconstruction, test", "{:.1f}"),
    "npmi": ("NPMI", "{:.3f}"),
    "diversity": ("diversity", "{:.3f}"),
    "nmi": ("NMI", "{:.3f}"),
    "accuracy": ("accuracy", "{:.3f}"),
    "active_topics": ("active topics", "{}"),
    "largest_share": ("largest share", "{:.3f}"),
}
OF_TOPICS = ("npmi", "diversity", "nmi", "accuracy", "active_topics", "largest_share")
COLOURS = {"none": "C3", "affine": "C1", "mean": "C0", "fixed": "C2"}


def a_job(norm: str, weight: float, warmup: int = 0, model: str = "GSM", change: str = "plain", seed: int = 0) -> Any:
    return {"model": model, "norm": norm, "weight": weight, "warmup": warmup, "change": change, "seed": seed}


def all_jobs() -> list[jobs.Job]:
    """Return the jobs in order of importance."""
    warm = [a_job("none", weight, WARMUP) for weight in (1, 3, 10)]
    grid = [a_job(norm, weight) for weight in (1, 10, 30, 0, 3, 0.1, 0.3) for norm in NORMS]
    changed = [a_job(norm, 10, change=change) for change, norm in VARIANTS]
    dirichlet = [a_job(norm, weight, warmup, "DirichletVAE") for norm, weight, warmup in DIRICHLET]
    again = [a_job("none", 10, warmup, seed=1) for warmup in (0, WARMUP)]
    return warm + grid[:16] + changed + grid[16:] + dirichlet + again


def make(job: jobs.Job) -> tl.TopicModel:
    """Return the unfitted model of a job."""
    settings: dict[str, Any] = {"code_norm": job["norm"], "kl_weight": job["weight"], "kl_warmup": job["warmup"]}
    if job["change"] == DEFAULTS:
        settings["prior"] = "laplace"
    else:
        settings |= MODELS[job["model"]] | PLAIN | CHANGES[job["change"]]
    model: tl.TopicModel = getattr(tl, job["model"])(N_TOPICS, random_state=job["seed"], **settings)
    return model


def measure(folder: Path, job: jobs.Job) -> dict[str, Any]:
    """Fit the model of a job, and return its figures; the lists have a number for each epoch."""
    data, model = shared.load(folder, "bbc-news"), make(job)
    start = time.process_time()
    try:
        model.fit(data["train"], vocabulary=data["vocab"])
    except tl.TrainingDivergedError as error:
        return {"seconds": time.process_time() - start, "diverged": str(error)}
    seconds = time.process_time() - start
    test = tl.Corpus.from_counts(data["test"], data["vocab"])
    network = model.network_  # type: ignore[attr-defined]
    reader = BatchReader.of(test, len(test), device_of(network))
    [loss] = evaluate(network, reader, network.loss)
    theta, theta_test = model.transform(data["train"]), model.transform(data["test"])
    last = model.history_[-1]
    return {
        "seconds": seconds,
        "kl_by_epoch": [sum(row["kl_per_dimension"]) for row in model.history_],
        "units_by_epoch": [row["active_units_by_divergence"] for row in model.history_],
        "kl_training": last["divergence"],
        "kl": sum(last["kl_per_dimension"]),
        "units": last["active_units_by_divergence"],
        "active_topics": last["active_topics"],
        "diversity": last["topic_diversity"],
        "kl_test": float(loss.divergence.mean()),
        "reconstruction_test": float(loss.reconstruction.mean()),
        "npmi": float(metrics.document_npmi(model.topic_ids(10), data["train"])),
        "nmi": float(metrics.normalised_mutual_information(data["test_labels"], theta_test.argmax(1))),
        "accuracy": float(
            metrics.classification_accuracy(theta, data["train_labels"], theta_test, data["test_labels"])
        ),
        "largest_share": float(theta_test.max(1).mean()),
    }


class Results:
    """The results of all jobs, by job."""

    def __init__(self, rows: Sequence[dict[str, Any]]) -> None:
        self._rows = {tuple(row[name] for name in a_job("none", 0)): row for row in rows if "error" not in row}

    def of(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return the figures of `a_job(*args, **kwargs)`; an empty row if there are none."""
        return self._rows.get(tuple(a_job(*args, **kwargs).values()), {})

    def line(self, norm: str, name: str) -> list[float]:
        """Return a figure of the plain GSM with each weight."""
        return [self.of(norm, weight).get(name, float("nan")) for weight in WEIGHTS]


def cells(row: dict[str, Any], names: Sequence[str]) -> list[str]:
    """Return figures of a result as text."""
    missing = "diverged" if "diverged" in row else "-"
    return [COLUMNS[name][1].format(row[name]) if name in row else missing for name in names]


def table(first: Sequence[str], names: Sequence[str], rows: Sequence[tuple[list[str], dict[str, Any]]]) -> str:
    """Return a table of figures; each row begins with the cells of the columns `first`."""
    header = [*first, *(COLUMNS[name][0] for name in names)]
    return jobs.markdown(header, [head + cells(row, names) for head, row in rows])


def table_of_weights(results: Results) -> str:
    columns = [("KL", "kl", NORMS), ("units", "units", NORMS), ("KL in training", "kl_training", NORMS[2:])]
    header = ["kl_weight", *(f"{title}, {norm}" for title, _, norms in columns for norm in norms)]
    rows = []
    for weight in WEIGHTS:
        figures = (cells(results.of(norm, weight), [name]) for _, name, norms in columns for norm in norms)
        rows.append([f"{weight:g}", *(cell for [cell] in figures)])
    return jobs.markdown(header, rows)


def table_of_epochs(results: Results) -> str:
    rows = []
    for (weight, seed), warmup in product(((1, 0), (3, 0), (10, 0), (10, 1)), (0, WARMUP)):
        row = results.of("none", weight, warmup, seed=seed)
        kl, units = row.get("kl_by_epoch", []), row.get("units_by_epoch", [])
        shown = [f"{kl[e - 1]:.2f} ({units[e - 1]})" if e <= len(kl) else "-" for e in EPOCHS]
        rows.append([f"{weight:g}", f"{warmup}", f"{seed}", *shown, *cells(row, ["kl_test", "reconstruction_test"])])
    epochs = [f"epoch {epoch}" for epoch in EPOCHS]
    return jobs.markdown(["kl_weight", "kl_warmup", "seed", *epochs, "KL, test", "reconstruction, test"], rows)


def tables(results: Results) -> dict[str, str]:
    """Return the tables of the page by name."""
    grid = [([norm, f"{weight:g}"], results.of(norm, weight)) for norm in NORMS for weight in WEIGHTS]
    changed = [([change, norm], results.of(norm, 10, change=change)) for change, norm in VARIANTS]
    dirichlet = [
        ([norm, f"{weight:g}", f"{warmup}"], results.of(norm, weight, warmup, model="DirichletVAE"))
        for norm, weight, warmup in DIRICHLET
    ]
    return {
        "weights": table_of_weights(results),
        "epochs": table_of_epochs(results),
        "trade-off": table(["code_norm", "kl_weight"], ["kl_test", "reconstruction_test", *OF_TOPICS], grid),
        "changes": table(["settings", "code_norm"], ["kl", "units", *OF_TOPICS], changed),
        "dirichlet": table(["code_norm", "kl_weight", "kl_warmup"], ["kl", "units", *OF_TOPICS], dirichlet),
    }


def write_tables(page: Path, found: dict[str, str]) -> None:
    """Replace the tables of the page, each of which is between two comments."""
    text = page.read_text(encoding="utf-8")
    for name, table in found.items():
        comments = rf"(<!-- table {name} -->\n).*?(<!-- end -->)"
        text = re.sub(comments, lambda match, table=table: match[1] + table + match[2], text, flags=re.DOTALL)
    page.write_text(text, encoding="utf-8")


def figures(results: Results, folder: Path) -> None:
    """Draw the three figures of the page."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    places, names = range(len(WEIGHTS)), [f"{weight:g}" for weight in WEIGHTS]

    def two_panels() -> Any:
        canvas, panels = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
        for axes in panels:
            axes.spines[["top", "right"]].set_visible(False)
            axes.grid(alpha=0.3, lw=0.5)
        return canvas, panels

    canvas, (left, right) = two_panels()
    for norm in NORMS:
        style = {"color": COLOURS[norm], "marker": "o", "ms": 4, "label": f'code_norm="{norm}"'}
        left.plot(places, results.line(norm, "kl"), **style)
        right.plot(places, results.line(norm, "units"), **style)
    left.set(yscale="symlog", ylim=(0, None), ylabel="nats", title="KL per document")
    right.set(ylim=(-0.5, N_TOPICS + 1), ylabel=f"of {N_TOPICS}", title="active units", yticks=UNITS)
    for axes in (left, right):
        axes.set_xticks(places, names)
        axes.set_xlabel("kl_weight")
    right.legend(frameon=False, fontsize=8, loc="lower left")
    canvas.savefig(folder / "collapse-weights.png", dpi=100)

    canvas, (left, right) = two_panels()
    for weight, colour in ((1, "C0"), (3, "C1"), (10, "C3")):
        for warmup, line in ((0, "-"), (WARMUP, "--")):
            row = results.of("none", weight, warmup)
            style = {"color": colour, "ls": line, "label": f"kl_weight={weight}, kl_warmup={warmup}"}
            for axes, name in ((left, "kl_by_epoch"), (right, "units_by_epoch")):
                axes.plot(range(1, len(row.get(name, [])) + 1), row.get(name, []), **style)
    left.set(xlabel="epoch", ylabel="nats", title="KL per document")
    right.set(xlabel="epoch", ylabel=f"of {N_TOPICS}", title="active units", ylim=(-0.5, N_TOPICS + 1), yticks=UNITS)
    left.legend(frameon=False, fontsize=7)
    canvas.savefig(folder / "collapse-epochs.png", dpi=100)

    canvas, (left, right) = two_panels()
    for norm in NORMS:
        x, y = results.line(norm, "kl_test"), results.line(norm, "reconstruction_test")
        left.plot(x, y, color=COLOURS[norm], marker="o", ms=4, label=f'code_norm="{norm}"')
        if norm == "none":
            for place, name in zip(zip(x, y, strict=True), names, strict=True):
                beside = (20 if name == "30" else 4, 4)  # the points of 10 and 30 are the same
                left.annotate(name, place, xytext=beside, textcoords="offset points", fontsize=7, color=COLOURS[norm])
    left.set(xscale="symlog", xlim=(0, None), xlabel="KL per test document, nats", title="trade-off")
    left.set_ylabel("reconstruction loss, nats")
    left.legend(frameon=False, fontsize=8)
    for name, label, colour in (("npmi", "NPMI", "C4"), ("diversity", "diversity", "C5"), ("nmi", "NMI", "C6")):
        for norm, line in (("none", "-"), ("mean", "--")):
            style = {"color": colour, "ls": line, "marker": "o", "ms": 3, "label": f"{label}, {norm}"}
            right.plot(places, results.line(norm, name), **style)
    right.set_xticks(places, names)
    right.set(xlabel="kl_weight", title="topics", ylim=(None, 1))
    right.legend(frameon=False, fontsize=7, ncols=3, loc="upper center")
    canvas.savefig(folder / "collapse-trade-off.png", dpi=100)


def main() -> None:
    parser = shared.parser(__doc__)
    jobs.add_arguments(parser, shared.RESULTS / "collapse.jsonl")
    parser.set_defaults(jobs=1)
    options = parser.parse_args()
    requested = all_jobs()
    jobs.run(requested, partial(measure, options.shared), options)
    results = Results(jobs.latest(options.out, requested))
    for page in ("posterior-collapse.md", "posterior-collapse.zh-CN.md"):
        write_tables(DOCS / page, tables(results))
    figures(results, DOCS / "figures")


if __name__ == "__main__":
    main()
