"""Train by one, two and four processes, and compare what they learn: benchmarks/distributed.md.

    python benchmarks/distributed.py [--corpus bbc-news] [--topics 20] [--models GSM,ETM,WLDA,Loom] [--table]

Every process of a fit has one thread. Results are stored in results/distributed/, and a run continues where the last
one ended. The loss is that of held-out documents after each epoch, which has the same noise in every fit.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from scipy.optimize import linear_sum_assignment

import jobs
import shared
import topicloom as tl
from topicloom.distributed import join

PAGE = Path(__file__).with_name("distributed.md")
RESULTS = Path(__file__).with_name("results") / "distributed"
MODELS = ("GSM", "ETM", "WLDA", "Loom", "DirichletVAE", "ProdLDA", "GMNTM", "BATM")
FITS = [(1, 0), (2, 0), (4, 0), (1, 1), (1, 2)]  # numbers of processes, and seeds
HELD_OUT = 10  # every tenth training document
HEAD = """# Training by several processes

`make bench-distributed` writes this page. Each model is fitted to the training documents of {corpus} with K={topics}
and its default settings, by one process, by two and by four. Every process has one thread, and gloo carries what they
send. Every tenth document is held out. Up to eight processes draw the noise and the order of documents that one process
draws, so that their results differ by rounding alone; only the noise of the held-out loss is drawn by each process.

- loss: the mean and the greatest difference between the curves of the held-out loss, over all epochs but the first, as
  a share of the loss of one process with the same seed. "seeds" is the mean of the same between two seeds of one
  process.
- distance: the mean total variation distance of matched topics, from the fit of one process with the same seed. "seeds"
  is the same between two seeds of one process.
- NPMI: of the topics on the training documents, at relevance .6.
- messages, KiB: all-reduce calls in a step and what they carry, means over the whole fit.
- seconds: of a fit, where {cores} cores are shared by all processes.

"""


def fit(name: str, folder: Path, corpus: str, n_topics: int, seed: int, target: Path) -> None:
    """Fit a model with the ranks that the launcher has started, and store what it has learned."""
    logging.getLogger("topicloom").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    data = shared.load(folder, corpus)
    documents = tl.Corpus.from_counts(data["train"], data["vocab"])
    held = np.arange(documents.n_docs) % HELD_OUT == 0
    sent = {"messages": 0, "bytes": 0}
    plain = dist.all_reduce

    def counted(tensor: torch.Tensor, *args: Any, **options: Any) -> Any:
        sent["messages"] += 1
        sent["bytes"] += tensor.numel() * tensor.element_size()
        return plain(tensor, *args, **options)

    dist.all_reduce = counted
    with join() as ranks:
        began = time.perf_counter()
        model = getattr(tl, name)(n_topics, random_state=seed).fit(documents[~held], validation=documents[held])
        seconds = time.perf_counter() - began
        if ranks.is_first:
            steps = model.state_.step
            row = {
                "loss": [row["validation_loss"] for row in model.history_],
                "npmi": float(tl.metrics.document_npmi(model.topic_ids(10, 0.6).tolist(), documents.counts)),
                "active": model.history_[-1].get("active_topics"),
                "seconds": seconds,
                "messages": sent["messages"] / steps,
                "kib": sent["bytes"] / steps / 1024,
            }
            np.save(target.with_suffix(".npy"), model.components_)
            target.write_text(json.dumps(row))


def launch(name: str, options: argparse.Namespace, n_ranks: int, seed: int) -> Path:
    """Fit a model by so many processes, unless it is done, and return the file of the result."""
    target = RESULTS / f"{options.corpus}-{options.topics}-{name}-{n_ranks}-{seed}.json"
    if target.exists() or options.table:
        return target
    worker = [__file__, "--worker", str(target), "--models", name, "--corpus", options.corpus]
    worker += ["--topics", str(options.topics), "--seed", str(seed), "--shared", str(options.shared)]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(n_ranks)]
    subprocess.run([*torchrun, *worker], check=True)
    print(target.name, target.read_text()[-120:], flush=True)
    return target


def distance(one: Path, other: Path) -> float:
    """Return the mean total variation distance of matched topics."""
    left, right = (np.load(path.with_suffix(".npy")) for path in (one, other))
    distances = np.array([0.5 * np.abs(right - topic).sum(1) for topic in left])
    return float(distances[linear_sum_assignment(distances)].mean())


def difference(one: dict[str, Any], other: dict[str, Any]) -> tuple[float, float]:
    """Return the mean and the greatest relative difference of two curves of the loss, without the first epoch."""
    left, right = np.array(one["loss"])[1:], np.array(other["loss"])[1:]
    relative = np.abs(right / left - 1)
    return float(relative.mean()), float(relative.max())


def table(options: argparse.Namespace, names: list[str]) -> str:
    """Return a row for each model and number of processes."""
    rows = []
    for name in names:
        paths = {each: launch(name, options, *each) for each in FITS}
        if not all(path.exists() for path in paths.values()):
            continue
        found = {each: json.loads(path.read_text()) for each, path in paths.items()}
        pairs = [((1, a), (1, b)) for a, b in ((0, 1), (0, 2), (1, 2))]
        between = [difference(found[a], found[b]) for a, b in pairs]
        apart = np.mean([distance(paths[a], paths[b]) for a, b in pairs])
        for n_ranks in (1, 2, 4):
            mine = [found[n_ranks, seed] for n, seed in FITS if n == n_ranks]
            row: dict[str, Any] = {"model": name, "processes": n_ranks}
            if n_ranks > 1:
                row["loss"] = " / ".join(f"{part:.2%}" for part in difference(found[1, 0], found[n_ranks, 0]))
                row["distance"] = distance(paths[1, 0], paths[n_ranks, 0])
            else:
                row["loss"] = "seeds: " + " / ".join(f"{np.mean(part):.2%}" for part in zip(*between, strict=True))
                row["distance"] = f"seeds: {apart:.3f}"
            row["last loss"] = np.mean([each["loss"][-1] for each in mine])
            row["NPMI"] = np.mean([each["npmi"] for each in mine])
            row["active"] = np.mean([each["active"] for each in mine])
            for key, head in (("messages", "messages"), ("kib", "KiB"), ("seconds", "seconds")):
                row[head] = round(float(np.mean([each[key] for each in mine])), 1)
            rows.append({key: f"{value:.3f}" if isinstance(value, float) else value for key, value in row.items()})
    if not rows:
        return "No model is complete.\n"
    heads = ["model", "processes", "loss", "last loss", "distance", "NPMI", "active", "messages", "KiB", "seconds"]
    return jobs.markdown(heads, [[str(row[head]) for head in heads] for row in rows])


def main() -> None:
    parser = shared.parser(__doc__)
    parser.add_argument("--corpus", default="bbc-news")
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--table", action="store_true", help="only write the page")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = options.models.split(",")
    if options.worker:
        fit(names[0], options.shared, options.corpus, options.topics, options.seed, options.worker)
        return
    RESULTS.mkdir(parents=True, exist_ok=True)
    head = HEAD.format(corpus=options.corpus, topics=options.topics, cores=os.cpu_count())
    PAGE.write_text(head + table(options, names))


if __name__ == "__main__":
    main()
