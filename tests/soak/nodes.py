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
from topicloom.experiments.jobs import SavedParts
from topicloom.experiments.tune import tune
from topicloom.processes import ClusterPool

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
    original, digest = ClusterPool.next, SavedParts.digest
    again = Again()
    logging.getLogger("topicloom.workers").addHandler(again)
    losing: list[threading.Thread] = []

    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        out = Path(temporary) / "out"

        def following(calls: ClusterPool[Any, Any]) -> Any:
            nonlocal n_ended
            found = original(calls)
            n_ended += 1
            if n_ended == lose_after:
                before.update(work.finished(out) if (out / "jobs.jsonl").exists() else ())
                losing.append(threading.Thread(target=nodes.lose))
                losing[0].start()
            return found

        hidden = property(lambda parts: "elsewhere") if lose_after is None else digest
        with patch.object(ClusterPool, "next", following), patch.object(SavedParts, "digest", hidden):
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


def fit_together(folder: Path) -> None:
    """What each process does that trains: it fits the models, and the first one saves the topics."""
    from topicloom.distributed import join

    logging.getLogger("topicloom").setLevel(logging.ERROR)
    corpus = Corpus.load(folder / "corpus")
    with join() as ranks:
        models = {name: getattr(tl, name)(5, random_state=0, **set_).fit(corpus) for name, set_ in TRAINED.items()}
        if ranks.is_first:
            np.savez(folder / "topics.npz", **{name: model.components_ for name, model in models.items()})


def trained(folder: Path) -> dict[str, bytes]:
    """The topics that were saved, whose file is removed."""
    with np.load(folder / "topics.npz") as found:
        topics = {name: found[name].tobytes() for name in found}
    (folder / "topics.npz").unlink()
    return topics


def by_torchrun(folder: Path) -> dict[str, bytes]:
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", __file__, "--fit", str(folder)]
    subprocess.run(command, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"}, stdout=subprocess.DEVNULL)
    return trained(folder)


def by_ray_train(folder: Path, address: str) -> dict[str, bytes]:
    """The recipe of docs/distributed.md."""
    from ray.train import RunConfig, ScalingConfig
    from ray.train.torch import TorchTrainer

    ray.init(address, log_to_driver=False, logging_level="ERROR", runtime_env={"env_vars": {"OMP_NUM_THREADS": "1"}})
    try:
        scaling, run = ScalingConfig(num_workers=2), RunConfig(storage_path=str(folder / "train"))
        TorchTrainer(lambda: fit_together(folder), scaling_config=scaling, run_config=run).fit()
    finally:
        ray.shutdown()
    return trained(folder)


def report(
    counts: dict[str, Counts], sent: dict[str, Counts], same: bool, seconds: dict[str, float], all_: float
) -> str:
    kinds = {"prepare": "documents", "compare": "fits", "tune": "trials"}
    rows = []
    for name, each in counts.items():
        cells = [f"`{name}`", f"{WORK[name].n_all:,} {kinds[name]}", *map(str, asdict(each).values())]
        cells += [f"{sent[name].different} of {sent[name].runs}", f"{seconds[name]:.0f}"]
        rows.append(f"| {' | '.join(cells)} |")
    lines = [
        "# Work over a Ray cluster that loses a node",
        "",
        f"`make soak-ray` did each kind of work over a local cluster of two nodes (Ray {ray.__version__}, one core and "
        "80 MiB of object store each), and killed the second node after a random number of calls had ended (topicloom "
        f"{tl.__version__}, Python {platform.python_version()}, {os.cpu_count()} processors, {all_ / 60:.0f} minutes). "
        "The results had to be those of local worker processes, bit for bit but for times: the files of the corpus; "
        "measures, topics and models of all fits; values, settings and the best model of the search. The node was not "
        "told to end, and Ray needs about ten seconds to notice that it is gone.",
        "",
        "| command | finished at the end | runs | nodes lost | calls made again | lost at the end | finished before "
        "the loss, and lost | different results | different when documents are sent | seconds, median |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
        *rows,
        "",
        "In the column before the last, no node could read the directory of the experiment, so that its documents were "
        "sent through the object store. `prepare` always sends its texts.",
        "",
        f"Two workers of Ray Train and two processes of torchrun fitted {' and '.join(TRAINED)}: the topics were "
        f"{'the same bit for bit' if same else 'different'}.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--losses", type=int, default=9, help="in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--report", type=Path, help="the Markdown file for the counts")
    parser.add_argument("--fit", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit is not None:
        fit_together(options.fit)
        return
    logging.getLogger("topicloom").setLevel(logging.ERROR)
    logging.getLogger("topicloom.workers").setLevel(logging.WARNING)
    drawn, began = random.Random(options.seed), time.monotonic()
    counts, sent = {name: Counts() for name in WORK}, {name: Counts() for name in WORK}
    seconds: dict[str, list[float]] = {name: [] for name in WORK}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_texts(folder, N_DOCUMENTS)
        Corpus.from_file(folder / "few.txt", min_df=1, out=folder / "corpus")
        together = by_torchrun(folder)
        nodes = Nodes()
        try:
            for name, work in WORK.items():
                work.run(folder, folder / f"local-{name}", n_jobs=2)
                expected = work.result(folder / f"local-{name}")
                run_over(nodes, work, folder, expected, sent[name], None)
                for _ in range(options.losses // len(WORK)):
                    start = time.monotonic()
                    run_over(nodes, work, folder, expected, counts[name], drawn.randint(1, work.n_calls // 2))
                    seconds[name].append(time.monotonic() - start)
                print(name, asdict(counts[name]), asdict(sent[name]), seconds[name], flush=True)
            nodes.complete()
            same = by_ray_train(folder, nodes.cluster.address) == together
        finally:
            nodes.cluster.shutdown()
    medians = {name: float(np.median(each)) for name, each in seconds.items()}
    written = report(counts, sent, same, medians, time.monotonic() - began)
    print(written)
    if options.report is not None:
        options.report.write_text(written, encoding="utf-8")
    faults = sum(each.lost + each.finished_lost + each.different for each in [*counts.values(), *sent.values()])
    sys.exit(bool(faults) or not same)


if __name__ == "__main__":
    main()
