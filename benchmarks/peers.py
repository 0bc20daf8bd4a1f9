"""Compare models of other packages with ours on 20 Newsgroups, K=50: time per epoch, and figures after a full run.

    python benchmarks/peers.py [--peers .venv-peers/bin/python] [--only ETM] [--speed]

TopMost runs in an environment of its own, which `make bench-peers` makes. Times are those of a few epochs of the peer
and of our model in turn. --speed measures only the times, and does not run the full fits, whose results are stored in
results/peers.jsonl.
"""

from __future__ import annotations

import os
import time
from argparse import Namespace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import jobs
import models
import shared
from topicloom.training.callbacks import Callback

PAGE = Path(__file__).with_name("peers.md")
CORPUS, N_TOPICS, SEEDS = "20ng", 50, range(3)
MAX_LOAD = 1.5  # mean number of processes in the last minute, above which two threads are not timed
ROUNDS, EPOCHS = 2, 4  # turns of the timing, and epochs in each turn, without the first
COLUMNS = {"npmi": ("NPMI", 3), "td": ("TD", 2), "npmi6": ("NPMI .6", 3), "td6": ("TD .6", 2), "nmi": ("NMI", 3),
           "purity": ("purity", 3), "acc": ("accuracy", 3)}  # fmt: skip


class Peer(NamedTuple):
    """A model of another package, with its own defaults, and our variant that it is compared with."""

    name: str
    ours: str
    model: str  # the name of the model in TopMost
    settings: dict[str, Any]
    epochs: int
    figures: dict[str, float] | None = None  # of an earlier run, shown without a full run


class Published(NamedTuple):
    """A peer that does not run here, with figures of an earlier run and its seconds per epoch with two threads."""

    name: str
    ours: str
    seconds: float
    epochs: int  # as its author recommends
    figures: dict[str, float]


PEERS = (
    Peer("TopMost ProdLDA", "ProdLDA", "ProdLDA", {}, 200,
         {"npmi": 0.240, "td": 0.809, "purity": 0.543, "nmi": 0.486, "acc": 0.664}),
    Peer("TopMost ETM", "ETM", "ETM", {}, 200,
         {"npmi": 0.106, "td": 0.942, "purity": 0.154, "nmi": 0.078, "acc": 0.283}),
    Peer("TopMost ETM, word vectors trained", "ETM", "ETM", {"train_WE": True}, 200),
)  # fmt: skip
PUBLISHED = (
    Published("neural-topic-models GSM", "GSM", 9.6, 1000,
              {"npmi": 0.105, "td": 0.134, "purity": 0.327, "nmi": 0.415, "acc": 0.424}),
    Published("neural-topic-models WTM", "WLDA dirichlet", 6.5, 1000,
              {"npmi": 0.087, "td": 0.126, "purity": 0.276, "nmi": 0.306, "acc": 0.278}),
    Published("neural-topic-models ETM", "ETM", 9.3, 1000,
              {"npmi": 0.067, "td": 0.074, "purity": 0.218, "nmi": 0.327, "acc": 0.309}),
)  # fmt: skip
HEAD = """# Comparison with other packages

All models have the default settings of their package. They are evaluated on the test documents of 20 Newsgroups, K=50,
with the same measures, from an implementation (`judge.py`) that belongs to none of the packages. Figures of several
seeds are given as mean ± standard deviation. `make bench-peers` writes this page.

- NPMI and TD: the words of a topic are ranked as each package does, in TopMost by weight, and in ours by its own rule.
- NPMI .6 and TD .6: both are ranked by relevance .6. The weights of ProdLDA in TopMost are deviations from the common
  words already.
- better on: those of NPMI, TD and NMI that are higher for our model.

"""
SPEED = """
## Time per epoch

The table compares our models with peers, the models of other packages. It has the shortest of {counted} epochs. The
epochs of the peer and of our model were timed in turn, on the same two cores. With one thread it is processor time,
which depends little on what else the machine does. With two threads it is elapsed time, which was not measured
while the machine was busy. "whole fit" is the factor for all epochs of a fit, with the default or recommended number of
epochs of the peer and of our model in brackets.

"""
FOOT = """
TopMost is version 1.0.2, with its defaults: 200 epochs, batches of 200, and in its ETM random word vectors that are not
trained.

¹ This package does not run here: `neural-topic-models` 0.1.0, installed with pip, fails at import, because its modules
`models` and `dataset` are missing. Its figures after 20 epochs (1,000 are recommended) are from an earlier run of its
sources, on the same data and with the same measures, with words ranked by probability. Our figures below them also rank
words by probability. Its seconds per epoch, with two threads, are from that run. The factor compares two separate runs,
and is therefore rough.

² This model was not run in full here. Its figures after 200 epochs are from an earlier run on the same data and with
the same measures.
"""


def full_run(folder: Path, python: Path, job: jobs.Job) -> dict[str, Any]:
    """Train a peer for all of its epochs, and evaluate it."""
    peer = next(peer for peer in PEERS if peer.name == job["peer"])
    result = topmost(folder, python, peer, peer.epochs, 1, job["seed"])
    data, independent = shared.load(folder, CORPUS), shared.independent_metrics(folder)
    thetas = [result[f"theta_{part}"] for part in ("train", "test", "half")]
    if result["beta"].min() >= 0:
        row = independent.score(data, result["beta"], *thetas, independent.split_counts(data["test"])[1])
    else:  # weights, not probabilities
        tops = [list(np.argsort(-row)[:25]) for row in result["beta"]]
        row = independent.score(data, result["beta"], *thetas[:2], tops=tops)
    return {"seconds": float(result["seconds"]), "epochs": peer.epochs, **row}


def topmost(folder: Path, python: Path, peer: Peer, epochs: int, threads: int, seed: int = 0) -> dict[str, Any]:
    """Train a model of TopMost with topmost_peer.py, and return the arrays that it writes."""
    request = {"model": peer.model, "settings": peer.settings, "n_topics": N_TOPICS}
    request |= {"epochs": epochs, "threads": threads, "seed": seed}
    return shared.run_peer(folder, shared.load(folder, CORPUS), python, "topmost_peer.py", request)


class EpochTimer(Callback):
    """Record the time at the end of each epoch, which includes the measures of collapse."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def on_epoch(self, row: dict[str, Any]) -> None:
        self.wall.append(time.perf_counter())
        self.cpu.append(time.process_time())


def our_epochs(folder: Path, variant: str, threads: int) -> EpochTimer:
    """Time the first epochs of our model."""
    import torch

    data = shared.load(folder, CORPUS)
    model, timer = shared.VARIANTS[variant].make(N_TOPICS, 0, data), EpochTimer()
    model.set_params(epochs=EPOCHS)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        model.fit(data["train"], vocabulary=data["vocab"], callbacks=[timer])
    finally:
        torch.set_num_threads(before)
    return timer


def speed(folder: Path, python: Path, job: jobs.Job) -> dict[str, Any]:
    """Return the shortest time per epoch of a peer and of our model, measured in turn.

    With one thread it is processor time, and with two threads wall-clock time. Two threads are not timed on a busy
    machine, because elapsed time would mean little.
    """
    modes = [(1, "cpu"), (2, "wall")][: 2 if os.getloadavg()[0] < MAX_LOAD else 1]
    peer = next(peer for peer in (*PEERS, *PUBLISHED) if peer.name == job["peer"])
    start, times = time.perf_counter(), {}
    for _, (threads, clock) in product(range(ROUNDS), modes):
        if isinstance(peer, Peer):
            theirs = topmost(folder, python, peer, EPOCHS + 1, threads)
            times.setdefault(f"theirs_{threads}", []).extend(theirs[clock][1:].tolist())
        ours = our_epochs(folder, peer.ours, threads)
        times.setdefault(f"ours_{threads}", []).extend(np.diff(getattr(ours, clock)).tolist())
    return {"seconds": time.perf_counter() - start} | {name: min(values) for name, values in times.items()}


def better(ours: list[dict[str, Any]], theirs: list[dict[str, Any]], npmi: str, td: str) -> str:
    """Name the measures whose mean is higher for our model; `npmi` and `td` are the columns to use of our rows."""
    pairs = (("NPMI", npmi, "npmi"), ("TD", td, "td"), ("NMI", "nmi", "nmi"))
    means = ((title, np.mean([row[a] for row in ours]), np.mean([row[b] for row in theirs])) for title, a, b in pairs)
    return ", ".join(title for title, mine, other in means if mine > other) or "none"


def page(ours: dict[str, list[dict[str, Any]]], theirs: dict[str, list[dict[str, Any]]], times: dict[str, Any]) -> str:
    """Format the page from the available results."""
    quality, clock = [], []
    for peer in (*PEERS, *PUBLISHED):
        mine = ours.get(peer.ours, [])
        if isinstance(peer, Published):
            found, mark, own = [peer.figures], " ¹", ("npmi", "td")
        else:
            found, mark, own = theirs.get(peer.name, []), "", ("npmi_own", "td_own")
            if not found and peer.figures:
                found, mark = [peer.figures], " ²"
        if found and mine:
            shown = [row | {"npmi": row[own[0]], "td": row[own[1]]} for row in mine]
            better_on = better(mine, found, *own)
            for name, rows, last in ((peer.name + mark, found, ""), (f"ours: {peer.ours}", shown, better_on)):
                figures = (jobs.spread(rows, column, digits) for column, (_, digits) in COLUMNS.items())
                quality.append([name, str(len(rows)), *figures, last])
        row = times.get(peer.name, {})
        if isinstance(peer, Published) and row:
            row = {"theirs_3": peer.seconds, "ours_3": min(row[name] for name in ("ours_1", "ours_2") if name in row)}
        for mode, label in ((1, "1, processor"), (2, "2, clock"), (3, "peer 2")):
            if f"ours_{mode}" in row and f"theirs_{mode}" in row:
                a, b = row[f"theirs_{mode}"], row[f"ours_{mode}"]
                epochs = shared.VARIANTS[peer.ours].make(N_TOPICS, 0).epochs
                whole = f"{a * peer.epochs / (b * epochs):.0f} ({peer.epochs}, {epochs})"
                name = peer.name + mark.replace(" ²", "")
                clock.append([name, peer.ours, label, f"{a:.2f}", f"{b:.2f}", f"{a / b:.1f}", whole])
    header = ["model", "seeds", *(title for title, _ in COLUMNS.values()), "better on"]
    clock_header = ["peer", "our model", "threads", "peer, s", "ours, s", "factor", "whole fit"]
    tables = HEAD + jobs.markdown(header, quality) + SPEED.format(counted=ROUNDS * (EPOCHS - 1))
    return tables + jobs.markdown(clock_header, clock) + FOOT


def main() -> None:
    parser = shared.parser(__doc__)
    jobs.add_arguments(parser, shared.RESULTS / "peers.jsonl")
    shared.add_peers(parser, "TopMost")
    parser.add_argument("--only", default="", help="only peers whose name contains this text")
    parser.add_argument("--speed", action="store_true", help="measure only the times, and run no full fit")
    options = parser.parse_args()
    options.jobs = 1  # with a second process, times would be wrong
    available = {variant.name for variant in shared.variants()}
    chosen = [peer for peer in (*PEERS, *PUBLISHED) if options.only.lower() in peer.name.lower()]
    timed = Namespace(**vars(options) | {"out": options.out.with_name("speed.jsonl"), "again": True})
    timing = [{"peer": peer.name} for peer in chosen if peer.ours in available]
    jobs.run(timing, partial(speed, options.shared, options.peers), timed)
    ours = models.all_jobs([name for name in shared.VARIANTS if name in available], (CORPUS,), (N_TOPICS,), SEEDS)
    ours = [job for job in ours if job["variant"] in {peer.ours for peer in (*PEERS, *PUBLISHED)}]
    theirs = [{"peer": peer.name, "seed": 0} for peer in PEERS]
    if not options.speed:
        requested = {peer.name: peer.ours for peer in chosen}
        evaluated = Namespace(**vars(options) | {"out": models.OUT})
        mine = [job for job in ours if job["variant"] in requested.values()]
        jobs.run(mine, partial(models.fit_and_evaluate, options.shared), evaluated)
        full = [job for job in theirs if job["peer"] in requested]
        jobs.run(full, partial(full_run, options.shared, options.peers), options)
    text = page(
        _by("variant", jobs.latest(models.OUT, ours)),
        _by("peer", jobs.latest(options.out, theirs)),
        {row["peer"]: row for row in jobs.latest(timed.out, [{"peer": peer.name} for peer in (*PEERS, *PUBLISHED)])},
    )
    PAGE.write_text(text, encoding="utf-8")


def _by(name: str, rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Group the rows that did not fail by the value of a column."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if "error" not in row:
            groups.setdefault(row[name], []).append(row)
    return groups


if __name__ == "__main__":
    main()
