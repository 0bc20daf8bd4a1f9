"""Other packages' models beside ours on 20 Newsgroups, K=50: time an epoch, and the judge's figures after a full run.

    python benchmarks/peers.py [--peers .venv-peers/bin/python] [--only ETM] [--speed]

TopMost runs in an environment of its own, which `make bench-peers` makes. Times are of a few epochs, theirs and ours in
turns; --speed measures them again and leaves the full runs, kept in results/peers.jsonl, as they are.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from argparse import Namespace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import cells
import models
import shared
from topicloom.training.callbacks import Callback

PAGE = Path(__file__).with_name("peers.md")
CORPUS, N_TOPICS, SEEDS = "20ng", 50, range(3)
BUSY = 1.5  # processes that run or wait, on average of a minute
ROUNDS, EPOCHS = 2, 4  # of the timing: turns, and epochs in each, of which the first does not count
COLUMNS = {"npmi": ("NPMI", 3), "td": ("TD", 2), "npmi6": ("NPMI 6", 3), "td6": ("TD 6", 2), "nmi": ("NMI", 3),
           "purity": ("purity", 3), "acc": ("accuracy", 3)}  # fmt: skip


class Peer(NamedTuple):
    """Another package's model, with its own defaults, and the variant of ours that it stands beside."""

    name: str
    ours: str
    model: str  # TopMost's name
    settings: dict[str, Any]
    epochs: int
    figures: dict[str, float] | None = None  # measured before, to show where there is no full run


class Published(NamedTuple):
    """A peer that does not run here: figures measured before, and the seconds of its epoch on two threads."""

    name: str
    ours: str
    seconds: float
    epochs: int  # that its author advises
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
HEAD = """# Beside other packages

20 Newsgroups, K=50, each with its own default settings, judged on test documents by one judge that belongs to none of
them. Mean ± standard deviation over seeds where there are several. `make bench-peers` writes this page.

NPMI and TD: as each package ranks the words of its topics, TopMost by weight, ours by its own rule; `6`: both by
relevance .6 (ProdLDA's weights in TopMost are deviations from the common words already). Better on: which of NPMI, TD
and NMI are higher for ours.

"""
SPEED = """
## Time an epoch

The least of {counted} epochs, theirs and ours in turns, on the same two cores: processor seconds with one thread, which
depend little on what else the machine does, and seconds with two threads, left out where the machine was busy. Of a
fit: the factor of all the epochs that each takes by default or is advised, which stand in brackets, theirs and ours.

"""
FOOT = """
TopMost is version 1.0.2, with 200 epochs and batches of 200, its defaults; by default its ETM keeps random word vectors
as they are.

¹ Does not run here: `neural-topic-models` 0.1.0, as pip installs it, stops at its import (its modules
`models` and `dataset` are not in the package). Figures after 20 epochs (1,000 advised) were measured before, from its
sources, on the same data, by the same judge, words ranked by probability; ours beside them are ranked by probability
too. Its seconds an epoch, with two threads, are of that run: the factor is between two runs and so a rough one.

² Not run in full here: figures after 200 epochs, measured before on the same data by the same judge.
"""


def full_run(folder: Path, python: Path, cell: cells.Cell) -> dict[str, Any]:
    """Trains a peer for all of its epochs and judges it."""
    peer = next(peer for peer in PEERS if peer.name == cell["peer"])
    made = topmost(folder, python, peer, peer.epochs, 1, cell["seed"])
    data, ruler = shared.load(folder, CORPUS), shared.judge(folder)
    thetas = [made[f"theta_{part}"] for part in ("train", "test", "half")]
    if made["beta"].min() >= 0:
        row = ruler.score(data, made["beta"], *thetas, ruler.split_counts(data["test"])[1])
    else:  # weights, not probabilities
        tops = [list(np.argsort(-row)[:25]) for row in made["beta"]]
        row = ruler.score(data, made["beta"], *thetas[:2], tops=tops)
    return {"seconds": float(made["seconds"]), "epochs": peer.epochs, **row}


def topmost(folder: Path, python: Path, peer: Peer, epochs: int, threads: int, seed: int = 0) -> dict[str, Any]:
    """What topmost_peer.py writes."""
    data = shared.load(folder, CORPUS)
    half, _ = shared.judge(folder).split_counts(data["test"])
    what = {"model": peer.model, "settings": peer.settings, "n_topics": N_TOPICS}
    what |= {"epochs": epochs, "threads": threads, "seed": seed}
    with tempfile.TemporaryDirectory() as place:
        for part, bow in (("train", data["train"]), ("test", data["test"]), ("half", half)):
            sp.save_npz(Path(place) / f"{part}.npz", bow)
        command = [str(python), str(Path(__file__).with_name("topmost_peer.py")), json.dumps(what), place]
        environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        return dict(np.load(Path(place) / "out.npz"))


class Timed(Callback):
    """Notes when each epoch ends, the collapse watch included."""

    def __init__(self) -> None:
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def on_epoch(self, row: dict[str, Any]) -> None:
        self.wall.append(time.perf_counter())
        self.cpu.append(time.process_time())


def our_epochs(folder: Path, variant: str, threads: int) -> Timed:
    """Times of the first few epochs of ours."""
    import torch

    data = shared.load(folder, CORPUS)
    model, timed = shared.VARIANTS[variant].make(N_TOPICS, 0, data), Timed()
    model.set_params(epochs=EPOCHS)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        model.fit(data["train"], vocabulary=data["vocab"], callbacks=[timed])
    finally:
        torch.set_num_threads(before)
    return timed


def speed(folder: Path, python: Path, cell: cells.Cell) -> dict[str, Any]:
    """Least seconds an epoch, theirs and ours in turns, with one thread (processor time) and with two (wall clock).

    On a machine that is busy with something else two threads are not tried: their clock would say little.
    """
    ways = [(1, "cpu"), (2, "wall")][: 2 if os.getloadavg()[0] < BUSY else 1]
    peer = next(peer for peer in (*PEERS, *PUBLISHED) if peer.name == cell["peer"])
    began, times = time.perf_counter(), {}
    for _, (threads, clock) in product(range(ROUNDS), ways):
        if isinstance(peer, Peer):
            theirs = topmost(folder, python, peer, EPOCHS + 1, threads)
            times.setdefault(f"theirs_{threads}", []).extend(theirs[clock][1:].tolist())
        ours = our_epochs(folder, peer.ours, threads)
        times.setdefault(f"ours_{threads}", []).extend(np.diff(getattr(ours, clock)).tolist())
    return {"seconds": time.perf_counter() - began} | {name: min(values) for name, values in times.items()}


def better(ours: list[dict[str, Any]], theirs: list[dict[str, Any]], npmi: str, td: str) -> str:
    """Which of three measures are higher for ours, on average; `npmi` and `td` are the columns of ours to take."""
    pairs = (("NPMI", npmi, "npmi"), ("TD", td, "td"), ("NMI", "nmi", "nmi"))
    means = ((title, np.mean([row[a] for row in ours]), np.mean([row[b] for row in theirs])) for title, a, b in pairs)
    return ", ".join(title for title, mine, other in means if mine > other) or "none"


def page(ours: dict[str, list[dict[str, Any]]], theirs: dict[str, list[dict[str, Any]]], times: dict[str, Any]) -> str:
    """The tables, from the cells there are."""
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
            verdict = better(mine, found, *own)
            for name, rows, said in ((peer.name + mark, found, ""), (f"ours: {peer.ours}", shown, verdict)):
                figures = (cells.spread(rows, column, digits) for column, (_, digits) in COLUMNS.items())
                quality.append([name, str(len(rows)), *figures, said])
        row = times.get(peer.name, {})
        if isinstance(peer, Published) and row:
            row = {"theirs_3": peer.seconds, "ours_3": min(row[name] for name in ("ours_1", "ours_2") if name in row)}
        for way, what in ((1, "1, processor"), (2, "2, clock"), (3, "theirs 2")):
            if f"ours_{way}" in row and f"theirs_{way}" in row:
                a, b = row[f"theirs_{way}"], row[f"ours_{way}"]
                epochs = shared.VARIANTS[peer.ours].make(N_TOPICS, 0).epochs
                whole = f"{a * peer.epochs / (b * epochs):.0f} ({peer.epochs}, {epochs})"
                name = peer.name + mark.replace(" ²", "")
                clock.append([name, peer.ours, what, f"{a:.2f}", f"{b:.2f}", f"{a / b:.1f}", whole])
    header = ["model", "seeds", *(title for title, _ in COLUMNS.values()), "better on"]
    tables = HEAD + cells.markdown(header, quality) + SPEED.format(counted=ROUNDS * (EPOCHS - 1))
    return (
        tables
        + cells.markdown(["theirs", "ours", "threads", "theirs, s", "ours, s", "factor", "of a fit"], clock)
        + FOOT
    )


def main() -> None:
    parser = shared.parser(__doc__)
    cells.arguments(parser, shared.RESULTS / "peers.jsonl")
    python = Path(__file__).resolve().parents[1] / ".venv-peers" / "bin" / "python"
    parser.add_argument("--peers", type=Path, default=python, help="the interpreter that has TopMost")
    parser.add_argument("--only", default="", help="peers with this in their name")
    parser.add_argument("--speed", action="store_true", help="measure the times again, and run nothing in full")
    options = parser.parse_args()
    options.jobs = 1  # a second process would spoil the times
    made = {variant.name for variant in shared.variants()}
    chosen = [peer for peer in (*PEERS, *PUBLISHED) if options.only.lower() in peer.name.lower()]
    timed = Namespace(**vars(options) | {"out": options.out.with_name("speed.jsonl"), "again": True})
    here = [{"peer": peer.name} for peer in chosen if peer.ours in made]
    cells.run(here, partial(speed, options.shared, options.peers), timed)
    ours = models.all_cells([name for name in shared.VARIANTS if name in made], (CORPUS,), (N_TOPICS,), SEEDS)
    ours = [cell for cell in ours if cell["variant"] in {peer.ours for peer in (*PEERS, *PUBLISHED)}]
    theirs = [{"peer": peer.name, "seed": 0} for peer in PEERS]
    if not options.speed:
        asked = {peer.name: peer.ours for peer in chosen}
        judged = Namespace(**vars(options) | {"out": models.OUT})
        mine = [cell for cell in ours if cell["variant"] in asked.values()]
        cells.run(mine, partial(models.fit_and_judge, options.shared), judged)
        full = [cell for cell in theirs if cell["peer"] in asked]
        cells.run(full, partial(full_run, options.shared, options.peers), options)
    text = page(
        _by("variant", cells.latest(models.OUT, ours)),
        _by("peer", cells.latest(options.out, theirs)),
        {row["peer"]: row for row in cells.latest(timed.out, [{"peer": peer.name} for peer in (*PEERS, *PUBLISHED)])},
    )
    PAGE.write_text(text, encoding="utf-8")


def _by(name: str, rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The rows that did not fail, by the value of a column."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if "error" not in row:
            groups.setdefault(row[name], []).append(row)
    return groups


if __name__ == "__main__":
    main()
