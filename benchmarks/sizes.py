"""How time and quality of Loom and topica change with the number of topics and of documents: sizes.md and sizes.png.

    python benchmarks/sizes.py [--jobs 2] [--parts topics,documents] [--systems Loom] [--largest 100000] [--minutes 30]

topica runs in the environment that `make bench-sizes` makes. Every fit has one thread, so that the processor times of
two fits at once can be compared. Results are lines of results/sizes.jsonl, and a run continues where the last one
ended.
"""

from __future__ import annotations

import sys
import time
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import best
import jobs
import shared
import topicloom as tl

OUT, PAGE = shared.RESULTS / "sizes.jsonl", Path(__file__).with_name("sizes.md")
SOURCE = shared.RESULTS / "sizes" / "planted.npz"  # the topics from which documents are drawn
TOPICS = (2, 5, 10, 20, 50, 100, 200, 500, 1000)
DOCUMENTS = (200, 1_000, 10_000, 100_000, 1_000_000)
N_PLANTED, ALPHA, LENGTH = 50, 0.1, 60
N_TEST = 2_000
SYSTEMS = {"Loom": None, "topica 1000": best.TOPICA["topica 1000"]}
MOST = {"topica 1000": 100_000}  # documents; more would take hours
_AT_ONCE = 20_000  # documents that are drawn together
COLUMNS = {
    "topics": {"cpu": ("processor s", 1), "own_ppl": ("perplexity", 0), "npmi": ("NPMI", 3), "td": ("TD", 2)},
    "documents": {
        "cpu": ("processor s", 1), "excess": ("perplexity / that of the truth", 3),
        "distance": ("distance of topics", 3), "found": ("topics found", 0),
    },
}  # fmt: skip
PANELS = {  # columns and titles of the figure
    "topics": (("cpu", "processor seconds"), ("own_ppl", "perplexity"), ("npmi", "NPMI of top words")),
    "documents": (
        ("cpu", "processor seconds"), ("excess", "perplexity / that of the truth"), ("distance", "distance of topics"),
    ),
}  # fmt: skip
FOUND = 0.5  # a planted topic at a smaller distance counts as found
HEAD = f"""# Few and many topics, few and many documents

`make bench-sizes` writes this page. Loom has its default settings, and topica's Gibbs sampler 1,000 iterations. Each
fit has one thread; the times are processor seconds, of one machine with two cores. K above 100 and topica with 100,000
documents were measured on another day, when the machine was faster, and Loom with 1,000,000 later, when it was busy.

![time and quality](sizes.png)

- **Topics**: 20 Newsgroups (11,314 training documents), K from 2 to 1,000. Perplexity, NPMI and TD (by probability) are
  those of [best.md](best.md), on test documents.
- **Documents**: 200 to 1,000,000 documents of {LENGTH} words on average, drawn from {N_PLANTED} planted topics. These
  are the topics of a Gibbs sampler on 20 Newsgroups, and theta is drawn from Dirichlet({ALPHA:g}). K is {N_PLANTED}.
  The perplexity of {N_TEST:,} further documents, over the words that training documents have, is divided by that of the
  planted topics and theta, which no model can know. The distance is the mean total variation between each planted topic
  and its topic in the best matching. A topic at a distance below {FOUND:g} is found.

topica was not fitted to 1,000,000 documents, which would take it hours.

"""


@cache
def planted_topics(folder: Path) -> np.ndarray[Any, Any]:
    """Return the topics (K, V) of a Gibbs sampler on 20 Newsgroups."""
    if not SOURCE.exists():
        data = shared.load(folder, "20ng")
        model = tl.LDA(N_PLANTED, method="gibbs", epochs=300, random_state=0)
        model.fit(data["train"], vocabulary=data["vocab"])
        SOURCE.parent.mkdir(parents=True, exist_ok=True)
        np.savez(SOURCE, topics=model.components_)
    topics: np.ndarray[Any, Any] = np.load(SOURCE)["topics"].astype(np.float64)
    topics /= topics.sum(1, keepdims=True)
    return topics


def draw(topics: np.ndarray[Any, Any], n_docs: int, seed: int) -> tuple[sp.csr_matrix, np.ndarray[Any, Any]]:
    """Return the counts of documents drawn from topics (K, V), and their theta (n_docs, K)."""
    random, parts, thetas = np.random.default_rng(seed), [], []
    upto = topics.cumsum(1)
    for start in range(0, n_docs, _AT_ONCE):
        n = min(_AT_ONCE, n_docs - start)
        lengths = np.maximum(2, random.lognormal(np.log(LENGTH) - 0.125, 0.5, n).astype(int))
        theta = random.dirichlet(np.full(len(topics), ALPHA), n)
        docs, uniform = np.repeat(np.arange(n), lengths), random.random(lengths.sum())
        of_tokens = random.random(len(docs))
        below = theta.cumsum(1)
        chosen = np.minimum((below[docs] < of_tokens[:, None]).sum(1), len(topics) - 1)  # topic of each token
        words = np.empty(len(docs), int)
        for k in range(len(topics)):
            where = chosen == k
            words[where] = np.searchsorted(upto[k], uniform[where] * upto[k, -1])
        counts = sp.coo_matrix((np.ones(len(docs), np.float32), (docs, np.minimum(words, topics.shape[1] - 1))))
        parts.append(sp.csr_matrix(counts, shape=(n, topics.shape[1])))
        thetas.append(theta.astype(np.float32))
    return sp.vstack(parts, format="csr"), np.concatenate(thetas)


def planted_data(folder: Path, n_docs: int) -> dict[str, Any]:
    """Return training and test documents from the planted topics, as `shared.load` does."""
    topics = planted_topics(folder)
    train, _ = draw(topics, n_docs, seed=1)
    test, theta = draw(topics, N_TEST, seed=2)
    vocabulary = [f"w{number}" for number in range(topics.shape[1])]
    return {
        "train": train,
        "test": test,
        "theta": theta,
        "vocab": vocabulary,
        "train_labels": None,
        "test_labels": None,
    }


def perplexity(theta: np.ndarray[Any, Any], beta: np.ndarray[Any, Any], scored: Any) -> float:
    """Return exp(-mean log p(w | d)) of counts (D, V), with p(w | d) = theta_d beta."""
    scored = sp.coo_matrix(scored)
    probability = np.einsum("nk,kn->n", theta[scored.row], beta[:, scored.col])
    return float(np.exp(-(scored.data * np.log(probability + 1e-30)).sum() / scored.data.sum()))


def work(folder: Path, python: Path, job: jobs.Job) -> dict[str, Any]:
    """Return the figures of one job."""
    import torch

    torch.set_num_threads(1)
    peer, name = SYSTEMS[job["system"]], job["part"]
    data = shared.load(folder, "20ng") if name == "topics" else planted_data(folder, job["size"])
    n_topics = job["size"] if name == "topics" else N_PLANTED
    observed, scored = shared.independent_metrics(folder).split_counts(data["test"])
    seen = np.asarray(sp.csr_matrix(data["train"]).sum(0)).ravel() > 0  # topica does not know the other words
    if peer is not None:
        result = best.fit_peer(folder, data, python, peer, n_topics, peer.epochs, 1, job["seed"])
        row = {"seconds": float(result["seconds"]), "cpu": float(result["cpu_seconds"])}
        if name == "topics":
            return row | best.peer_scores(folder, data, peer, result)
        beta, theta = result["beta"], result["theta_half"]
    else:
        tl.Loom(2, epochs=2, random_state=0).fit(data["train"][:600], vocabulary=data["vocab"])  # loads numba
        start = time.process_time()
        model, seconds = shared.fit(tl.Loom(n_topics, random_state=job["seed"]), data)
        row = {"seconds": seconds, "cpu": time.process_time() - start}
        if name == "topics":
            return row | shared.evaluate(folder, data, model)
        beta, theta = model.components_, model.transform(observed)
    truth = planted_topics(folder)
    _, distance = shared.matched(truth, beta)
    scored = sp.csr_matrix(scored).multiply(seen)
    excess = perplexity(theta, beta, scored) / perplexity(data["theta"], truth, scored)
    return row | {"excess": excess, "distance": float(distance.mean()), "found": int((distance < FOUND).sum())}


def all_jobs(parts: list[str], systems: list[str], largest: float, seeds: range) -> list[jobs.Job]:
    """Return the jobs, from small to large."""
    sizes = {"topics": TOPICS, "documents": DOCUMENTS}
    found = [
        {"part": part, "size": size, "system": system, "seed": seed}
        for part in parts
        for seed, size, system in product(seeds, sizes[part], systems)
        if part == "topics" or size <= min(largest, MOST.get(system, largest))
    ]
    return sorted(found, key=lambda job: (job["seed"], job["size"] / sizes[job["part"]][-1]))


def page(rows: list[dict[str, Any]]) -> str:
    """Format the page."""
    text = HEAD
    for part, title in (("topics", "K"), ("documents", "documents")):
        columns = COLUMNS[part]
        body = []
        for size, system in product(sorted({row["size"] for row in rows if row["part"] == part}), SYSTEMS):
            here = [row for row in rows if (row["part"], row["size"], row["system"]) == (part, size, system)]
            good = [row for row in here if "error" not in row]
            if here:
                figures = (jobs.spread(good, column, digits) for column, (_, digits) in columns.items())
                body.append([f"{size:,}", system, str(len(good)), *figures])
        header = [title, "model", "seeds", *(heading for heading, _ in columns.values())]
        text += f"## {part.capitalize()}\n\n{jobs.markdown(header, body)}\n"
    return text.rstrip() + "\n"


def figure(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw time and quality against the number of topics, and against the number of documents."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter

    canvas, grid = plt.subplots(2, 3, figsize=(11, 6.2), layout="constrained")
    for axes_of_part, (part, panels) in zip(grid, PANELS.items(), strict=True):
        for axes, (column, title) in zip(axes_of_part, panels, strict=True):
            for system in SYSTEMS:
                of_size: dict[int, list[float]] = {}
                for row in rows:
                    if (row["part"], row["system"]) == (part, system) and column in row:
                        of_size.setdefault(row["size"], []).append(row[column])
                sizes = sorted(of_size)
                axes.plot(sizes, [float(np.mean(of_size[size])) for size in sizes], marker="o", ms=4, label=system)
            axes.set(xscale="log", xlabel=part, title=title, yscale="log" if column == "cpu" else "linear")
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.spines[["top", "right"]].set_visible(False)
            axes.grid(alpha=0.3, lw=0.5)
    grid[0, 0].legend(frameon=False, fontsize=8)
    canvas.savefig(path, dpi=110)


def main() -> None:
    parser = shared.parser(__doc__)
    jobs.add_arguments(parser, OUT)
    shared.add_peers(parser, "topica")
    parser.add_argument("--parts", default="topics,documents", help="what changes, separated by commas")
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="names, separated by commas")
    parser.add_argument("--largest", type=int, default=DOCUMENTS[-1], help="most documents")
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds")
    options = parser.parse_args()
    systems = options.systems.split(",")
    if not options.peers.exists() and not options.table:
        print(f"topica is left out, because {options.peers} does not exist", file=sys.stderr)
        systems = [name for name in systems if SYSTEMS[name] is None]
    requested = all_jobs(options.parts.split(","), systems, options.largest, range(options.seeds))
    if not options.table:
        planted_topics(options.shared)  # before processes need it
    jobs.run(requested, partial(work, options.shared, options.peers), options)
    rows = jobs.latest(
        options.out, all_jobs(["topics", "documents"], list(SYSTEMS), DOCUMENTS[-1], range(options.seeds))
    )
    PAGE.write_text(page(rows), encoding="utf-8")
    figure(rows, PAGE.with_suffix(".png"))


if __name__ == "__main__":
    main()
