"""Loom beside the Gibbs sampler, the package's other good models and TopMost, on every corpus.

    python benchmarks/best.py [--models Loom,"LDA gibbs 1000"] [--corpora m10,bbc-news] [--topics 20,50] [--seeds 3]

TopMost runs in the environment that `make bench-peers` makes; where there is none it is left out. Cells are kept in
results/best.jsonl, and a run goes on where the last one ended. best.md is written from all that the file has.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

import cells
import shared
from shared import VARIANTS, Variant
from topicloom.metrics import duplicate_topics

PAGE = Path(__file__).with_name("best.md")
OURS, REFERENCE = "Loom", "LDA gibbs 1000"
MODELS = {
    variant.name: variant
    for variant in (
        Variant(OURS, "Loom"),
        Variant(REFERENCE, "LDA", {"method": "gibbs", "epochs": 1000, "n_jobs": 2}),
        Variant("LDA gibbs 200", "LDA", {"method": "gibbs", "epochs": 200, "n_jobs": 2}),
        *(VARIANTS[name] for name in ("LDA variational", "GSM", "ETM", "WLDA dirichlet")),
        *(VARIANTS[name] for name in ("DirichletVAE icdf", "ProdLDA")),
    )
}
PEERS = {"TopMost ProdLDA": "ProdLDA", "TopMost ECRTM": "ECRTM"}
PEER_EPOCHS = 200  # TopMost's default
CHEAPEST_FIRST = ("m10", "bbc-news", "emnlp2020", "cnews10k", "20news-avitm", "20ng")
PLACES = [*product(CHEAPEST_FIRST, (20, 50)), ("20ng", 200)]
SEEDS = 3
THREADS = 2
TIME = 1 / 5  # of the sampler's, at most
BUSY = 0.25  # of a core, taken by other processes meanwhile
RATIOS = ("perplexity", "time", "processor time")
COLUMNS = {
    "seconds": ("wall s", 1), "cpu": ("processor s", 1), "npmi": ("NPMI", 3), "td": ("TD", 2), "npmi6": ("NPMI 6", 3),
    "td6": ("TD 6", 2), "npmi_test": ("NPMI 6, test", 3), "npmi_own": ("NPMI own", 3), "td_own": ("TD own", 2),
    "purity": ("purity", 3), "nmi": ("NMI", 3), "acc": ("accuracy", 3), "own_ppl": ("perplexity", 0),
    "twins": ("twins", 1), "alive": ("alive", 1),
}  # fmt: skip
HEAD = """# Loom beside the others

Each model with its own default settings, the same on every corpus; judged on test documents. Loom's settings were
chosen on parts of the training documents; but these figures were read between rounds of that work, so that where it
looked next, and how far it went where columns pull apart, was not blind to them. `make bench-best` writes this page.

The first table is Loom's mean over seeds less that of the Gibbs sampler with 1,000 iterations (tomotopy's, with two
workers), above 0 being better; for NMI and purity less that of the better of TopMost's models. Perplexity and time are
ratios, Loom's by the sampler's: below 1 and at most {time:g} are better. **✗** marks what is not better, however little
it misses by; the last column counts what is. Time is by the clock; processor time does not count, but says whether the
clock was fair. Seeds: of Loom, the sampler and TopMost, with its epochs where they are not its default. `-`: nothing to
compare, as where a corpus has no labels. `*`: other processes took more than {busy:g} of a core meanwhile, which the
clock saw.

"""
LEGEND = """
In the other tables, mean ± standard deviation over seeds:

- wall s: seconds of fit by the clock, models one after the other on the same machine, with up to two threads each (the
  package takes one where a network is small, scikit-learn one throughout); but where one model's cells were made again,
  those of the others are of another day. A small fit comes before, so that imports do not count. processor s: of all
  threads, those of the sampler's workers as well.
- NPMI of the 10 best words and TD of the 25 best, of three rankings of a topic's words: by probability, by relevance .6
  (`6`), and the package's own (`own`). TopMost's own is by weight; the weights of its ProdLDA are no probabilities, so
  that it has no other ranking.
- NPMI 6, test: NPMI 6 over the test documents, not those of training. Loom chooses its topics by NPMI over the latter.
- purity and NMI: of the largest topic of each test document; accuracy: of logistic regression on theta.
- perplexity: half of each test document given, the other half scored, by the model's own decoder. TopMost has none.
- twins: pairs of topics that share 8 of their 10 words (relevance .6; TopMost ProdLDA: weight); alive: topics that are
  the largest of some training document.

theta of the Gibbs sampler's test documents is inferred by mean field, given its topics; on 20ng this does better than
tomotopy's own inference. LDA variational is scikit-learn's. TopMost is version 1.0.2, with 200 epochs, its default,
where its name says nothing else.
"""


def all_cells(names: list[str], places: list[tuple[str, int]], seeds: range) -> list[cells.Cell]:
    """Seed by seed, cheap corpora first; the models of a corpus, K and seed back to back."""
    return [
        {"model": name, "corpus": corpus, "n_topics": n_topics, "seed": seed}
        for seed, (corpus, n_topics), name in product(seeds, places, names)
    ]


def fit_and_judge(folder: Path, python: Path, epochs: int, threads: int, cell: cells.Cell) -> dict[str, Any]:
    """The figures of one cell; `epochs` are TopMost's."""
    if cell["model"] not in MODELS:
        return peer_figures(folder, python, epochs, threads, cell)
    import torch

    torch.set_num_threads(threads)
    data, variant = shared.load(folder, cell["corpus"]), MODELS[cell["model"]]
    variant.make(2, 0).set_params(epochs=2).fit(data["train"][:200], vocabulary=data["vocab"])  # imports, not timed
    others, began = Others(), time.process_time()
    model, seconds = shared.fitted(variant.make(cell["n_topics"], cell["seed"], data), data)
    row = {"seconds": seconds, "cpu": time.process_time() - began, "others": others.cores(), "threads": threads}
    with threadpool_limits(1):  # where a core is busy, the judge's small steps would wait for it
        return row | shared.judged(folder, data, model)


def peer_figures(folder: Path, python: Path, epochs: int, threads: int, cell: cells.Cell) -> dict[str, Any]:
    """The figures of one cell of TopMost."""
    data, ruler = shared.load(folder, cell["corpus"]), shared.judge(folder)
    what = {"model": PEERS[cell["model"].partition(",")[0]], "settings": {}, "n_topics": cell["n_topics"]}
    others = Others()
    made = topmost(data, python, what | {"epochs": epochs, "threads": threads, "seed": cell["seed"]})
    row = {"seconds": float(made["seconds"]), "cpu": float(made["cpu_seconds"]), "others": others.cores()}
    beta, thetas = made["beta"], (made["theta_train"], made["theta_test"])
    tops = np.argsort(-beta)[:, :25].tolist()
    own = {"npmi_own": float(ruler.npmi(tops, sp.csr_matrix(data["train"])).mean()), "td_own": ruler.diversity(tops)}
    with threadpool_limits(1):
        if beta.min() >= 0:
            score = ruler.score(data, beta, *thetas)
            best = np.argsort(-ruler.relevance(beta, data["train"], 0.6))
        else:  # weights, not probabilities
            score, best = ruler.score(data, beta, *thetas, tops=tops), np.array(tops)
    return {
        **row,
        "threads": threads,
        "epochs": epochs,
        **score,
        **own,
        "twins": int(duplicate_topics(best[:, :10])),
        "alive": len(np.unique(thetas[0].argmax(1))),
    }


def topmost(data: dict[str, Any], python: Path, what: dict[str, Any]) -> dict[str, Any]:
    """What topmost_peer.py writes."""
    with tempfile.TemporaryDirectory() as place:
        for part, bow in (("train", data["train"]), ("test", data["test"]), ("half", data["test"][:1])):
            sp.save_npz(Path(place) / f"{part}.npz", sp.csr_matrix(bow))
        command = [str(python), str(Path(__file__).with_name("topmost_peer.py")), json.dumps(what), place]
        environment = os.environ | {"OMP_NUM_THREADS": str(what["threads"])}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError((done.stderr.strip() or f"ended with {done.returncode}").splitlines()[-1])
        return dict(np.load(Path(place) / "out.npz"))


class Others:
    """Cores that other processes take from now on, on average; nan where the system does not say."""

    def __init__(self) -> None:
        self.began = self._now()

    def cores(self) -> float:
        wall, busy, own = (now - then for now, then in zip(self._now(), self.began, strict=True))
        return round((busy - own) / wall, 2)

    def _now(self) -> tuple[float, float, float]:
        """Seconds of the clock, of all processors' work, and of the work of this process and its children."""
        stat = Path("/proc/stat")
        ticks = stat.read_text().split()[1:9] if stat.exists() else ["nan"] * 8
        busy = sum(float(tick) for number, tick in enumerate(ticks) if number not in (3, 4))  # not idle, not waiting
        return time.perf_counter(), busy / os.sysconf("SC_CLK_TCK"), sum(os.times()[:4])


def mean(rows: list[dict[str, Any]], name: str) -> float:
    """The mean over seeds; nan where there is none."""
    return float(np.mean([row.get(name, np.nan) for row in rows])) if rows else np.nan


def busy(rows: list[dict[str, Any]]) -> str:
    """A star where other processes ran beside a fit."""
    return " *" if any(row.get("others", 0) > BUSY for row in rows) else ""


def compared(by_model: dict[str, list[dict[str, Any]]]) -> dict[str, tuple[float, bool | None]]:
    """Of each column of the summary, how Loom compares, and whether that is better; None for what does not count."""
    ours, sampler = by_model.get(OURS, []), by_model.get(REFERENCE, [])
    figures: dict[str, tuple[float, bool | None]] = {}
    for name in ("npmi", "td", "npmi6", "td6", "npmi_test", "acc"):
        lead = mean(ours, name) - mean(sampler, name)
        figures[COLUMNS[name][0]] = lead, lead > 0
    ratio = mean(ours, "own_ppl") / mean(sampler, "own_ppl")
    figures["perplexity"] = ratio, ratio < 1
    for name in ("nmi", "purity"):
        peers = [mean(rows, name) for model, rows in by_model.items() if model not in MODELS]
        lead = mean(ours, name) - max((value for value in peers if np.isfinite(value)), default=np.nan)
        figures[COLUMNS[name][0]] = lead, lead > 0
    ratio = mean(ours, "seconds") / mean(sampler, "seconds")
    figures["time"] = ratio, ratio <= TIME
    figures["processor time"] = mean(ours, "cpu") / mean(sampler, "cpu"), None
    return figures


def summary_line(corpus: str, n_topics: int, by_model: dict[str, list[dict[str, Any]]]) -> list[str]:
    """The row of the summary for a corpus and K."""
    figures = {title: pair for title, pair in compared(by_model).items() if np.isfinite(pair[0])}
    shown = {
        title: format(value, ".3f" if title in RATIOS else "+.3f") + (" **✗**" if good is False else "")
        for title, (value, good) in figures.items()
    }
    if "time" in shown:
        shown["time"] += busy(by_model[OURS] + by_model[REFERENCE])
    theirs = [rows for model, rows in by_model.items() if model not in MODELS]
    seeds = ", ".join(str(len(by_model.get(model, []))) for model in (OURS, REFERENCE))
    seeds += f", {max(map(len, theirs), default=0)}"
    if short := sorted({row["epochs"] for rows in theirs for row in rows} - {PEER_EPOCHS}):
        seeds += f" ({', '.join(map(str, short))} epochs)"
    counted = [good for _, good in figures.values() if good is not None]
    reached = f"{sum(counted)} of {len(counted)}"
    return [corpus, str(n_topics), seeds, *(shown.get(title, "-") for title in compared({})), reached]


def page(rows: list[dict[str, Any]]) -> str:
    """The summary, and a table for each corpus and K."""
    lines, tables = [], []
    for corpus, n_topics in sorted(PLACES, key=lambda place: CHEAPEST_FIRST.index(place[0])):
        here = [row for row in rows if (row["corpus"], row["n_topics"]) == (corpus, n_topics)]
        found = {name: [row for row in here if row["model"] == name] for name in {row["model"]: 0 for row in here}}
        good = {name: [row for row in seeds if "error" not in row] for name, seeds in found.items()}
        if not here:
            continue
        lines.append(summary_line(corpus, n_topics, good))
        body = []
        for name, seeds in found.items():
            failed = len(seeds) - len(good[name])
            note = f" ({failed} of {len(seeds)} failed)" if failed else ""
            figures = (cells.spread(good[name], column, digits) for column, (_, digits) in COLUMNS.items())
            wall, *rest = figures
            body.append([name + note, str(len(good[name])), wall + busy(good[name]), *rest])
        header = ["model", "seeds", *(title for title, _ in COLUMNS.values())]
        tables.append(f"\n## {corpus}, K={n_topics}\n\n{cells.markdown(header, body)}")
    header = ["corpus", "K", "seeds", *compared({}), "better on"]
    return HEAD.format(time=TIME, busy=BUSY) + cells.markdown(header, lines) + LEGEND + "".join(tables)


def chosen(names: str | None, peers: list[str]) -> list[str]:
    """The models named in a comma-separated list, all by default, in the order of the page."""
    there = [*MODELS, *peers]
    if names is None:
        return there
    wanted = {name.strip().lower() for name in names.split(",")}
    known = {name.partition(",")[0].lower() for name in (*MODELS, *PEERS)}
    if wanted - known:
        raise SystemExit(
            f"no such model: {', '.join(sorted(wanted - known))}; there are {', '.join((*MODELS, *PEERS))}"
        )
    return [name for name in there if name.partition(",")[0].lower() in wanted]


def main() -> None:
    parser = shared.parser(__doc__)
    cells.arguments(parser, shared.RESULTS / "best.jsonl")
    parser.set_defaults(jobs=1)  # a second process would spoil the times
    python = Path(__file__).resolve().parents[1] / ".venv-peers" / "bin" / "python"
    parser.add_argument("--page", type=Path, default=PAGE, help="the page to write")
    parser.add_argument("--peers", type=Path, default=python, help="the interpreter that has TopMost")
    parser.add_argument("--peer-epochs", type=int, default=PEER_EPOCHS, help="TopMost's epochs; 0 leaves it out")
    parser.add_argument("--models", help="names of models; all by default")
    parser.add_argument("--corpora", default=",".join(CHEAPEST_FIRST))
    parser.add_argument("--topics", default="20,50,200", help="200 is for 20ng alone")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    options = parser.parse_args()
    epochs = options.peer_epochs
    peers = [name if epochs == PEER_EPOCHS else f"{name}, {epochs} epochs" for name in PEERS] if epochs else []
    if peers and not options.peers.exists() and not options.table:
        print(f"TopMost is left out: there is no {options.peers}", file=sys.stderr)
        peers = []
    corpora, topics = options.corpora.split(","), set(map(int, options.topics.split(",")))
    places = [place for place in PLACES if place[0] in corpora and place[1] in topics]
    asked = all_cells(chosen(options.models, peers), places, range(options.seeds))
    threads = THREADS if options.jobs == 1 else 1
    cells.run(asked, partial(fit_and_judge, options.shared, options.peers, epochs, threads), options)
    others = sorted({row["model"] for row in cells.read(options.out)} - {*MODELS, *PEERS})
    whole = all_cells([*MODELS, *PEERS, *others], PLACES, range(max(SEEDS, options.seeds)))
    options.page.write_text(page(cells.latest(options.out, whole)), encoding="utf-8")


if __name__ == "__main__":
    main()
