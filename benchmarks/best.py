"""Compare Loom with Gibbs samplers, other good models of the package and TopMost, on every corpus.

    python benchmarks/best.py [--models Loom,"LDA gibbs 1000"] [--corpora m10,bbc-news] [--topics 20,50] [--seeds 3]

TopMost and topica run in the environment that `make bench-best` makes, and are left out without it. Results are
stored in results/best.jsonl, and a run continues where the last one ended. best.md is written from all results in the
file.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

import jobs
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
PEER_EPOCHS = 200  # TopMost's default


@dataclass(frozen=True)
class Peer:
    """A model of another package.

    Attributes:
        script: fits the model in its own environment.
        model: the name by which the script knows it.
        epochs: epochs or iterations.
        is_mixture: whether p(w | d) = sum_k theta_dk beta_kw, so that perplexity follows from theta and beta.
        settings: other settings than the defaults, as the script expects them.
    """

    script: str
    model: str
    epochs: int
    is_mixture: bool = False
    settings: dict[str, Any] = field(default_factory=dict)


TOPMOST = {f"TopMost {name}": Peer("topmost_peer.py", name, PEER_EPOCHS) for name in ("ProdLDA", "ECRTM")}
STRONGEST = "topica 1000"
TOPICA = {
    STRONGEST: Peer("topica_peer.py", "sparse", 1000, is_mixture=True),
    "topica 200": Peer("topica_peer.py", "sparse", 200, is_mixture=True),
    "topica WarpLDA 1000": Peer("topica_peer.py", "warp", 1000, is_mixture=True),
}
PEERS = TOPICA | TOPMOST
CHEAPEST_FIRST = ("m10", "bbc-news", "emnlp2020", "cnews10k", "20news-avitm", "20ng")
CASES = [*product(CHEAPEST_FIRST, (20, 50)), ("20ng", 200)]  # corpus and K
SEEDS = 3
MAX_TIME_RATIO = 1 / 5  # Loom's processor time divided by the sampler's
MAX_OTHER_CORES = 0.25  # cores that other processes may use during a fit
RATIOS = ("perplexity", "time", "processor time")
COLUMNS = {
    "seconds": ("wall s", 1), "cpu": ("processor s", 1), "npmi": ("NPMI", 3), "td": ("TD", 2), "npmi6": ("NPMI .6", 3),
    "td6": ("TD .6", 2), "npmi_test": ("NPMI .6, test", 3), "npmi_own": ("NPMI own", 3), "td_own": ("TD own", 2),
    "purity": ("purity", 3), "nmi": ("NMI", 3), "acc": ("accuracy", 3), "own_ppl": ("perplexity", 0),
    "twins": ("duplicates", 1), "alive": ("active", 1),
}  # fmt: skip
HEAD = """# Loom compared with other models

All models have their own default settings, which are the same on every corpus. The figures are from test documents. The
settings of Loom were chosen on parts of the training documents. However, the figures of this page were read between
rounds of that work. They influenced what was tried next and, where columns disagreed, how large a change was made.
`make bench-best` writes this page.

Each of the first tables compares Loom with a strong Gibbs sampler of 1,000 iterations:

- Most columns have the mean of Loom over seeds minus that of the sampler. Above 0, Loom is better.
- perplexity, time and processor time are ratios, Loom divided by the sampler. A perplexity below 1 and a processor time
  of at most {time:g} count as better. The times are those of the first seed; those of other seeds may be from another
  day. Loom and topica ran one after the other on the same machine, with one thread each. tomotopy ran with two threads,
  on another day. The time is elapsed time. It does not count, because other processes disturb it.
- **✗** marks a figure that is not better, however small the difference is. The last column counts those that are.
- seeds: the number of seeds of Loom and of the sampler.
- `-`: the figure is missing, for example because a corpus has no labels.
- `*`: other processes used more than {busy:g} of a core during a fit, which affects the elapsed time.
"""
SUMMARIES = {
    REFERENCE: """
## Loom and tomotopy's sampler

For NMI and purity, the better of TopMost's models takes the place of the sampler. The third number of seeds is that
of TopMost, with its epochs if they are not its default; with 0, TopMost has not been fitted, and the columns have no
figure.

""",
    STRONGEST: """
## Loom and topica

topica 0.62 learns its Dirichlet parameters, averages five states of the sampler, and infers theta of new documents by
sampling.

""",
}
GSM_MARGIN = 0.02  # by which NMI may be lower than that of GSM
GSM_TITLE = f"NMI of GSM, less {GSM_MARGIN:g}".replace("0.", ".")
REASONS = {
    "TD": "the differences are as small as the spread of seeds",
    "TD .6": "the difference is as small as the spread of seeds",
    "NPMI .6, test": "there are few test documents, and the differences are smaller than the spread of seeds",
    "accuracy": "the differences are smaller than the spread of seeds",
    "NMI": "the difference is smaller than the spread of seeds",
    "purity": "the difference is smaller than the spread of seeds",
    "perplexity": "on 20ng, Loom takes a third of the sampling passes that small corpora have; with all of them, "
    "perplexity is .9 % lower, and a fit takes twice as long. On titles, the reason is not known: sampling with counts "
    "that follow each token was hardly better there ([loom.md](loom.md), held-out documents)",
    "processor time": "a fit of a small corpus has 286 passes. On titles, the compiled loop that draws topics takes a "
    "quarter of the time of a fit, and pretraining two fifths; what is left is spread over many small operations",
    GSM_TITLE: "theta of Loom follows the tokens, so that the main topic of some documents of 20ng is one of common "
    "words; the encoder of GSM is trained to find the subject. What raises NMI also raises perplexity or lowers TD: "
    "with 3 steps of refinement instead of 10, NMI on 20ng is .56 instead of .50, and perplexity 7 % higher; with one "
    "background topic instead of two, NMI is .55, and perplexity .4 % higher ([loom.md](loom.md), held-out documents, "
    "K=50)",
}
MISSES = """
## Where Loom is not better than topica, and where its NMI is more than .02 below that of GSM

In brackets: the difference or the ratio, as in the table above.

"""
LEGEND = """
## All models

The tables below have the mean ± standard deviation over seeds. Not every model that is described here has been run yet.
The fits of GSM and those of topica with 200 iterations were measured on other days than those of the others, and the
fits of GSM beside other fits.


- wall s: elapsed seconds of the fit. The models ran one after the other on the same machine, with up to two
  threads each (Loom and topica with one, and scikit-learn always with one). If the fits of one model were repeated,
  those of the others are from another day. A small fit runs first, so that imports are not included.
- processor s: seconds of all threads, including those of the sampler's workers.
- NPMI and TD: coherence of the 10 top words and diversity of the 25 top words of the topics. The words are ranked in
  three ways: by probability, by relevance .6 (`.6`), and by the package's own rule (`own`). TopMost's own ranking is by
  weight. The weights of its ProdLDA are not probabilities, so that it has no other ranking.
- NPMI .6, test: NPMI .6 over the test documents instead of the training documents. Loom selects its topics by NPMI over
  the training documents.
- purity and NMI: of the main topics of the test documents. accuracy: of logistic regression on theta.
- perplexity: half of each test document is given, and the other half is scored with the model's own decoder. TopMost
  has none.
- duplicates: pairs of topics that share 8 of their 10 top words (relevance .6; TopMost ProdLDA: weight).
- active: topics that are the main topic of some training document.

For the Gibbs sampler, theta of the test documents is inferred by mean field given its topics. On 20ng this is better
than tomotopy's own inference. LDA variational is scikit-learn's. TopMost is version 1.0.2, with 200 epochs, its
default, unless its name says otherwise. topica has 200 or 1,000 iterations of its sparse sampler, or 1,000 of WarpLDA;
with 200, it does not learn the Dirichlet parameters, because it begins to learn them after the 200th. topica infers its
theta itself.
"""
# Of other authors, on the same documents.
PUBLISHED = {
    ("20ng", 50): """
Published figures on this corpus with K=50, as their authors measured them. Models marked with * use
pretrained sentence vectors.

| model | purity | NMI | TD |
| --- | --- | --- | --- |
| ECRTM | .560 | .524 | .964 |
| FASTopic* | .583 | .528 | .980 |
| NeuroMax* | .623 | .570 | .912 |
| HiCOT* | .626 | .583 | .852 |
"""
}


def all_jobs(names: list[str], cases: list[tuple[str, int]], seeds: range) -> list[jobs.Job]:
    """Return the jobs ordered by seed and then by case, so that the models of a case run one after the other."""
    return [
        {"model": name, "corpus": corpus, "n_topics": n_topics, "seed": seed}
        for seed, (corpus, n_topics), name in product(seeds, cases, names)
    ]


def fit_and_evaluate(folder: Path, python: Path, epochs: int, threads: int, job: jobs.Job) -> dict[str, Any]:
    """Return the figures of one job; `epochs` applies to TopMost."""
    if job["model"] not in MODELS:
        return peer_figures(folder, python, epochs, threads, job)
    import torch

    torch.set_num_threads(threads)
    data, variant = shared.load(folder, job["corpus"]), MODELS[job["model"]]
    # A small fit first, so that the time of imports is not measured.
    variant.make(2, 0).set_params(epochs=2).fit(data["train"][:200], vocabulary=data["vocab"])
    others, start = OtherProcesses(), time.process_time()
    model, seconds = shared.fit(variant.make(job["n_topics"], job["seed"], data), data)
    row = {"seconds": seconds, "cpu": time.process_time() - start, "others": others.cores(), "threads": threads}
    with threadpool_limits(1):  # the measures have small steps, which would wait for a busy core
        return row | shared.evaluate(folder, data, model)


def peer_figures(folder: Path, python: Path, epochs: int, threads: int, job: jobs.Job) -> dict[str, Any]:
    """Return the figures of one job of another package; `epochs` applies to TopMost."""
    data = shared.load(folder, job["corpus"])
    name = job["model"].partition(",")[0]
    epochs = epochs if name in TOPMOST else PEERS[name].epochs
    others = OtherProcesses()
    result = fit_peer(folder, data, python, PEERS[name], job["n_topics"], epochs, threads, job["seed"])
    row = {"seconds": float(result["seconds"]), "cpu": float(result["cpu_seconds"]), "others": others.cores()}
    return row | {"threads": threads, "epochs": epochs, **peer_scores(folder, data, PEERS[name], result)}


def fit_peer(
    folder: Path, data: dict[str, Any], python: Path, peer: Peer, n_topics: int, epochs: int, threads: int, seed: int
) -> dict[str, Any]:
    """Run the script of a peer, and return the arrays that it writes."""
    request = {"model": peer.model, "settings": peer.settings, "n_topics": n_topics, "epochs": epochs}
    return shared.run_peer(folder, data, python, peer.script, request | {"threads": threads, "seed": seed})


def peer_scores(folder: Path, data: dict[str, Any], peer: Peer, result: dict[str, Any]) -> dict[str, Any]:
    """Return the measures of the arrays of a peer. Weights of topics that are not probabilities have fewer measures."""
    independent = shared.independent_metrics(folder)
    beta, thetas = result["beta"], (result["theta_train"], result["theta_test"])
    tops = np.argsort(-beta)[:, :25].tolist()
    npmi_own = float(independent.npmi(tops, sp.csr_matrix(data["train"])).mean())
    found = {"npmi_own": npmi_own, "td_own": independent.diversity(tops), "alive": len(np.unique(thetas[0].argmax(1)))}
    if data["train_labels"] is None:
        thetas = (None, thetas[1])
    with threadpool_limits(1):
        if beta.min() < 0:  # weights
            found |= independent.score(data, beta, *thetas, tops=tops)
            best = np.array(tops)
        else:
            halves = (result["theta_half"], independent.split_counts(data["test"])[1]) if peer.is_mixture else ()
            found |= independent.score(data, beta, *thetas, *halves)
            if peer.is_mixture:
                found["own_ppl"] = found.pop("ppl")
            best = np.argsort(-independent.relevance(beta, data["train"], 0.6))
            coherence = independent.npmi(best[:, :10].tolist(), sp.csr_matrix(data["test"]))
            found["npmi_test"] = float(coherence.mean())
    return found | {"twins": int(duplicate_topics(best[:, :10]))}


class OtherProcesses:
    """Measure how many cores other processes use, from the time when this object is made."""

    def __init__(self) -> None:
        self.start = self._now()

    def cores(self) -> float:
        """Return the mean number of cores; nan if the system does not report processor time."""
        wall, busy, own = (now - then for now, then in zip(self._now(), self.start, strict=True))
        return round((busy - own) / wall, 2)

    def _now(self) -> tuple[float, float, float]:
        """Return the seconds of the clock, of all processors' work, and of this process with its children."""
        stat = Path("/proc/stat")
        ticks = stat.read_text().split()[1:9] if stat.exists() else ["nan"] * 8
        busy = sum(float(tick) for number, tick in enumerate(ticks) if number not in (3, 4))  # not idle, not waiting
        return time.perf_counter(), busy / os.sysconf("SC_CLK_TCK"), sum(os.times()[:4])


def mean(rows: list[dict[str, Any]], name: str) -> float:
    """Return the mean of a column over seeds; nan without a value."""
    return float(np.mean([row.get(name, np.nan) for row in rows])) if rows else np.nan


def busy_mark(rows: list[dict[str, Any]]) -> str:
    """Return a star if other processes were busy during a fit."""
    return " *" if any(row.get("others", 0) > MAX_OTHER_CORES for row in rows) else ""


def first_seed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of seed 0, whose fits ran in one run, or all rows without such a row."""
    return [row for row in rows if row["seed"] == 0] or rows


def compare(
    by_model: dict[str, list[dict[str, Any]]], reference: str = REFERENCE
) -> dict[str, tuple[float, bool | None]]:
    """Return the figure of each column of a summary, and whether Loom is better; None if it does not count."""
    ours, sampler = by_model.get(OURS, []), by_model.get(reference, [])
    figures: dict[str, tuple[float, bool | None]] = {}
    for name in ("npmi", "td", "npmi6", "td6", "npmi_test", "acc"):
        difference = mean(ours, name) - mean(sampler, name)
        figures[COLUMNS[name][0]] = difference, difference > 0
    ratio = mean(ours, "own_ppl") / mean(sampler, "own_ppl")
    figures["perplexity"] = ratio, ratio < 1
    for name in ("nmi", "purity"):
        peers = [mean(rows, name) for model, rows in by_model.items() if is_other(model, reference)]
        difference = mean(ours, name) - max((value for value in peers if np.isfinite(value)), default=np.nan)
        figures[COLUMNS[name][0]] = difference, difference > 0
    ours, sampler = first_seed(ours), first_seed(sampler)
    ratio = mean(ours, "seconds") / mean(sampler, "seconds")
    figures["time"] = ratio, None
    ratio = mean(ours, "cpu") / mean(sampler, "cpu")
    figures["processor time"] = ratio, ratio <= MAX_TIME_RATIO
    return figures


def is_other(model: str, reference: str) -> bool:
    """Return whether Loom's clusters are compared with those of this model: the reference, or a model of TopMost."""
    return model == reference if reference in TOPICA else model.partition(",")[0] in TOPMOST


def summary_line(
    corpus: str, n_topics: int, by_model: dict[str, list[dict[str, Any]]], reference: str = REFERENCE
) -> list[str]:
    """Return the row of a summary for a corpus and K."""
    figures = {title: pair for title, pair in compare(by_model, reference).items() if np.isfinite(pair[0])}
    shown = {
        title: format(value, ".3f" if title in RATIOS else "+.3f") + (" **✗**" if good is False else "")
        for title, (value, good) in figures.items()
    }
    if "time" in shown:
        shown["time"] += busy_mark(first_seed(by_model[OURS]) + first_seed(by_model[reference]))
    seeds = ", ".join(str(len(by_model.get(model, []))) for model in (OURS, reference))
    if reference == REFERENCE:
        theirs = [rows for model, rows in by_model.items() if is_other(model, reference)]
        seeds += f", {max(map(len, theirs), default=0)}"
        if epochs := sorted({row["epochs"] for rows in theirs for row in rows} - {PEER_EPOCHS}):
            seeds += f" ({', '.join(map(str, epochs))} epochs)"
    counted = [good for _, good in figures.values() if good is not None]
    better = f"{sum(counted)} of {len(counted)}"
    return [corpus, str(n_topics), seeds, *(shown.get(title, "-") for title in compare({})), better]


def missed(cases: dict[tuple[str, int], dict[str, list[dict[str, Any]]]]) -> list[list[str]]:
    """Return a row for each measure by which Loom is not better than topica: the measure, where, and why.

    Args:
        cases: for each corpus and K, the rows of each model.
    """
    where: dict[str, list[str]] = {title: [] for title in REASONS}
    for (corpus, n_topics), by_model in cases.items():
        figures = compare(by_model, STRONGEST) if by_model.get(STRONGEST) else {}
        above = mean(by_model.get(OURS, []), "nmi") - (mean(by_model.get("GSM", []), "nmi") - GSM_MARGIN)
        for title, (value, good) in (figures | {GSM_TITLE: (above, above >= 0)}).items():
            if good is False and np.isfinite(value):
                shown = format(value, ".3f" if title in RATIOS else "+.3f")
                where.setdefault(title, []).append(f"{corpus} {n_topics} ({shown})")
    return [[title, ", ".join(found), REASONS.get(title, "")] for title, found in where.items() if found]


def page(rows: list[dict[str, Any]]) -> str:
    """Format the page: the summary, and a table for each corpus and K."""
    lines: dict[str, list[list[str]]] = {REFERENCE: [], STRONGEST: []}
    tables = []
    cases = {}
    for corpus, n_topics in sorted(CASES, key=lambda case: CHEAPEST_FIRST.index(case[0])):
        here = [row for row in rows if (row["corpus"], row["n_topics"]) == (corpus, n_topics)]
        found = {name: [row for row in here if row["model"] == name] for name in {row["model"]: 0 for row in here}}
        good = {name: [row for row in seeds if "error" not in row] for name, seeds in found.items()}
        if not here:
            continue
        cases[corpus, n_topics] = good
        for reference, summary in lines.items():
            if good.get(reference):
                summary.append(summary_line(corpus, n_topics, good, reference))
        body = []
        for name, seeds in found.items():
            failed = len(seeds) - len(good[name])
            note = f" ({failed} of {len(seeds)} failed)" if failed else ""
            figures = (jobs.spread(good[name], column, digits) for column, (_, digits) in COLUMNS.items())
            wall, *rest = figures
            body.append([name + note, str(len(good[name])), wall + busy_mark(good[name]), *rest])
        header = ["model", "seeds", *(title for title, _ in COLUMNS.values())]
        tables.append(
            f"\n## {corpus}, K={n_topics}\n\n{jobs.markdown(header, body)}{PUBLISHED.get((corpus, n_topics), '')}"
        )
    header = ["corpus", "K", "seeds", *compare({}), "better on"]
    head = HEAD.format(time=MAX_TIME_RATIO, busy=MAX_OTHER_CORES)
    summaries = (text + jobs.markdown(header, lines[name]) for name, text in SUMMARIES.items() if lines[name])
    misses = MISSES + jobs.markdown(["measure", "not better on", "why"], missed(cases))
    return head + "".join(summaries) + misses + LEGEND + "".join(tables)


def chosen(names: str | None, peers: list[str]) -> list[str]:
    """Return the models that a comma-separated list names, or all, in the order of the page."""
    available = [*MODELS, *peers]
    if names is None:
        return available
    wanted = {name.strip().lower() for name in names.split(",")}
    known = {name.partition(",")[0].lower() for name in (*MODELS, *PEERS)}
    if wanted - known:
        raise SystemExit(
            f"unknown model: {', '.join(sorted(wanted - known))}; choose from {', '.join((*MODELS, *PEERS))}"
        )
    return [name for name in available if name.partition(",")[0].lower() in wanted]


def main() -> None:
    parser = shared.parser(__doc__)
    jobs.add_arguments(parser, shared.RESULTS / "best.jsonl")
    parser.set_defaults(jobs=1)  # with a second process, times would be wrong
    parser.add_argument("--page", type=Path, default=PAGE, help="page to write")
    shared.add_peers(parser, "TopMost and topica")
    parser.add_argument("--peer-epochs", type=int, default=PEER_EPOCHS, help="epochs of TopMost; 0 leaves it out")
    parser.add_argument("--models", help="names of models, separated by commas; default: all")
    parser.add_argument("--corpora", default=",".join(CHEAPEST_FIRST), help="names, separated by commas")
    parser.add_argument("--topics", default="20,50,200", help="numbers of topics; only 20ng has 200")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="number of seeds")
    parser.add_argument("--threads", type=int, default=1, help="threads of a fit")
    options = parser.parse_args()
    epochs = options.peer_epochs
    peers = [name if epochs == PEER_EPOCHS else f"{name}, {epochs} epochs" for name in TOPMOST] if epochs else []
    peers += TOPICA
    if not options.peers.exists() and not options.table:
        print(f"TopMost and topica are left out, because {options.peers} does not exist", file=sys.stderr)
        peers = []
    corpora, topics = options.corpora.split(","), set(map(int, options.topics.split(",")))
    cases = [case for case in CASES if case[0] in corpora and case[1] in topics]
    requested = all_jobs(chosen(options.models, peers), cases, range(options.seeds))
    work = partial(fit_and_evaluate, options.shared, options.peers, epochs, options.threads)
    jobs.run(requested, work, options)
    others = sorted({row["model"] for row in jobs.read(options.out)} - {*MODELS, *PEERS})
    shown = all_jobs([*MODELS, *PEERS, *others], CASES, range(max(SEEDS, options.seeds)))
    options.page.write_text(page(jobs.latest(options.out, shown)), encoding="utf-8")


if __name__ == "__main__":
    main()
