"""Prepare, compare and tune over a Ray cluster of two nodes on this machine, one of which is lost in the middle.

    python tests/soak/nodes.py [--losses 9] [--seed 0] [--report benchmarks/ray.md]

Each kind of work first runs in local worker processes. Then it runs over the cluster, as often as asked for. After a
random number of its calls has ended, the node without the head is killed; a new one replaces it for the next run. Once,
each kind runs while no node can read the directory of the experiment. Results have to be those of the local workers.
At last, two workers of Ray Train and two processes of torchrun fit the same models.
"""

from __future__ import annotations

import argparse
import logging
import os
import platform
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import ray
from kills import comparison, corpora, files_of, fits, search, trials, write_texts
from ray.cluster_utils import Cluster

import topicloom as tl
from topicloom.corpus import Corpus
from topicloom.experiments.compare import compare
from topicloom.experiments.fitting import SavedParts
from topicloom.experiments.tune import tune
from topicloom.processes.cluster import NodeCalls

NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
N_DOCUMENTS = 200_000  # of the corpus that is prepared, which are about 30 chunks
MODELS, N_TOPICS, SEEDS = ["gsm:epochs=40", "lda:epochs=20"], [2, 3], 3
TRAINED = {"GSM": {"epochs": 5}, "Loom": {"epochs": 16}}


def prepared(folder: Path, out: Path, **where: Any) -> None:
    Corpus.from_file(folder / "many.txt", min_df=1, out=out, **where)


def compared(folder: Path, out: Path, **where: Any) -> None:
    compare(Corpus.load(folder / "corpus"), MODELS, N_TOPICS, SEEDS, out=out, keep_models=True, **where)


def tuned(folder: Path, out: Path, n_jobs: int = 1, **where: Any) -> None:
    tune(Corpus.load(folder / "corpus"), "gsm:epochs=40", 3, trials=12, at_once=4, out=out, **where)


@dataclass(frozen=True)
class Work:
    """What is done over the cluster.

    Attributes:
        run: does it, given the folder of the texts, a directory, and where it is done.
        result: what has to be the same as that of local workers.
        finished: what is finished in the directory; `n_all` of them at the end.
        n_all: how many are finished at the end, as the report has it.
        n_calls: how many calls to nodes it takes at least.
    """

    run: Callable[..., None]
    result: Callable[[Path], Any]
    finished: Callable[[Path], set[Any]]
    n_all: int
    n_calls: int


WORK = {
    "prepare": Work(prepared, files_of, corpora, N_DOCUMENTS, 30),
    "compare": Work(compared, comparison, fits, 12, 12),
    "tune": Work(tuned, search, trials, 12, 12),
}


@dataclass
class Counts:
    """What happened to one kind of work. Nothing but `runs`, `nodes_lost` and `again` should be more than 0."""

    runs: int = 0
    nodes_lost: int = 0
    again: int = 0  # calls that were made again
    lost: int = 0  # documents, fits or trials that are not there at the end, or are there twice
    finished_lost: int = 0  # fits that were finished when the node was lost, and not there at the end
    different: int = 0  # results that differ from those of local workers


class Nodes:
    """A cluster of two nodes, the second of which can be lost."""

    def __init__(self) -> None:
        self.cluster = Cluster(initialize_head=True, head_node_args=NODE | {"include_dashboard": False})
        self.second: Any = None

    def complete(self) -> None:
        """Add the second node if it is not there, and wait for it."""
        if self.second is None:
            self.second = self.cluster.add_node(**NODE)
            self.cluster.wait_for_nodes()

    def lose(self) -> None:
        self.cluster.remove_node(self.second, allow_graceful=False)
        self.second = None


class Again(logging.Handler):
    """Counts the calls that are made again."""

    def __init__(self) -> None:
        super().__init__()
        self.n = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.n += "done again" in record.getMessage()


def run_over(nodes: Nodes, work: Work, folder: Path, expected: Any, counts: Counts, lose_after: int | None) -> None:
    """Do the work over the cluster, and lose a node after some calls, or see that no node reads the directory."""
    nodes.complete()
    n_ended, before = 0, set()
    original, digest = NodeCalls.next, SavedParts.digest
    again = Again()
    logging.getLogger("topicloom.workers").addHandler(again)
    losing: list[threading.Thread] = []

    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        out = Path(temporary) / "out"

        def following(calls: NodeCalls[Any, Any]) -> Any:
            nonlocal n_ended
            found = original(calls)
            n_ended += 1
            if n_ended == lose_after:
                before.update(work.finished(out) if (out / "jobs.jsonl").exists() else ())
                losing.append(threading.Thread(target=nodes.lose))
                losing[0].start()
            return found

        hidden = property(lambda parts: "elsewhere") if lose_after is None else digest
        with patch.object(NodeCalls, "next", following), patch.object(SavedParts, "digest", hidden):
            work.run(folder, out, cluster=nodes.cluster.address)
        for thread in losing:
            thread.join()
        counts.runs += 1
        counts.nodes_lost += len(losing)
        counts.again += again.n
        finished = work.finished(out)
        if work.run is prepared:
            counts.lost += abs(N_DOCUMENTS - Corpus.load(out).n_docs)
        else:
            counts.lost += abs(work.n_all - len(finished))
        counts.finished_lost += len(before - finished)
        counts.different += work.result(out) != expected
    logging.getLogger("topicloom.workers").removeHandler(again)
