"""Where the time of training goes, model by model, and how near it is to what the memory and the cores allow.

    python benchmarks/steps.py [--peers .venv-peers/bin/python] [--epochs 5] [--out benchmarks/profile.md]

Every model is trained for a few epochs on 20 Newsgroups, K=50, with one thread, while timers run in the parts of a
step. Without an environment of TopMost, the page has no peers. `make bench-profile` writes the page.
"""

from __future__ import annotations

import logging
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

import bandwidth
import jobs
import peers
import shared
import topicloom as tl
from topicloom.models.loom import collapsed
from topicloom.models.loom import model as loom_model
from topicloom.models.loom.sampling import SamplingStage
from topicloom.models.starting import SpareTopics
from topicloom.nn import decoders, encoders, network, sparse
from topicloom.training import batches, loop, monitors, state
from topicloom.training.callbacks import Callback

PAGE = Path(__file__).with_name("profile.md")
STEP = "the step itself"
# Where the timers are: the part, and the functions that belong to it.
PARTS: dict[str, list[tuple[Any, str]]] = {
    "gather the batch": [(batches.BatchReader, "_batch"), (sparse.SparseCounts, "by_word")],
    "encoder": [(encoders.BagEncoder, "forward")],
    "posterior and draw": [(network.VariationalNetwork, "_free_energy")],
    "topics": [(decoders.MixtureDecoder, "beta_t")],
    "decoder": [(decoders.Decoder, "score")],
    "separation": [(network.SeparationTerm, "forward")],
    "backward: first layer": [(sparse._BagProduct, "backward")],
    "backward: decoder": [(sparse._MixtureLogLikelihood, "backward"), (sparse._ProductLogLikelihood, "backward")],
    "backward: softmax": [(decoders._ColumnSoftmax, "backward")],
    "backward: the rest": [(torch.Tensor, "backward")],
    "check of the gradient": [(loop.FiniteCheck, "allows")],
    "optimizer": [(state.Adam, "step")],
    "counting: draw and reassign": [(collapsed, "recount")],
    "sampling: draw topics": [(SamplingStage, "draw")],
    STEP: [(loop, "_take_step")],
}
OUTSIDE: dict[str, list[tuple[Any, str]]] = {
    "monitors": [(monitors.CollapseWatch, "__call__")],
    "spare topics": [(SpareTopics, "remove"), (collapsed.CollapsedCounts, "_prune")],
    "end of a pass": [(collapsed.CollapsedCounts, "end_pass")],
}


class Timers:
    """The time of each part, without that of the parts that it calls, step by step."""

    def __init__(self) -> None:
        self.steps: list[dict[str, float]] = []
        self.totals: dict[str, float] = defaultdict(float)
        self._inner = [0.0]
        self._step: dict[str, float] = defaultdict(float)

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            self._inner.append(0.0)
            start = time.process_time()
            try:
                return function(*args, **kwargs)
            finally:
                whole = time.process_time() - start
                own = whole - self._inner.pop()
                self._inner[-1] += whole
                self.totals[part] += own
                self._step[part] += own
                if part == STEP:
                    self.steps.append(dict(self._step))
                    self._step.clear()

        return run

    @contextmanager
    def running(self) -> Iterator[None]:
        patches = []
        for part, places in (PARTS | OUTSIDE).items():
            for owner, name in places:
                found = owner.__dict__[name]
                if isinstance(found, staticmethod):
                    new: Any = staticmethod(self.timed(part, found.__func__))
                elif hasattr(found, "func"):  # a cached property
                    patches.append(patch.object(found, "func", self.timed(part, found.func)))
                    continue
                else:
                    new = self.timed(part, found)
                patches.append(patch.object(owner, name, new))
        for each in patches:
            each.start()
        try:
            yield
        finally:
            for each in patches:
                each.stop()

    def per_step(self, stage: str = "") -> dict[str, float]:
        """The lower quartile of the milliseconds of each part; in a stage of Loom, of those that most steps have."""
        found, mark = {}, STAGES.get(stage)
        marks = set(STAGES.values()) - {None}
        steps = [step for step in self.steps[5:] if (mark in step if mark else marks.isdisjoint(step))]
        for part in PARTS:
            times = [step[part] for step in steps if part in step]
            if times and (not stage or 2 * len(times) >= len(steps)):  # what few steps have would count too much
                found[part] = 1e3 * (statistics.quantiles(times, n=4)[0] if len(times) > 1 else times[0])
        return found


MODELS: dict[str, dict[str, Any]] = {
    "GSM": {}, "ETM": {}, "ProdLDA": {}, "NVDM": {}, "WLDA": {}, "GMNTM": {}, "DirichletVAE": {}, "BATM": {},
    "Loom": {"epochs": 30, "pretrain_share": 0.2, "sample_share": 0.4},
}  # fmt: skip
# The stages of Loom, and the part by which their steps are known.
STAGES = {"pretraining": None, "counting": "counting: draw and reassign", "sampling": "sampling: draw topics"}
# TopMost's models, and ours with encoders and word vectors of the same sizes.
EQUAL = (
    ("ProdLDA", {}, "ProdLDA", {"hidden_size": 200}),
    ("ETM", {}, "ETM", {"hidden_size": 800, "embedding_size": 200, "fixed_word_vectors": True}),
    ("ETM", {"train_WE": True}, "ETM", {"hidden_size": 800, "embedding_size": 200}),
    ("ETM", {}, "ETM", {}),
)
SIZES = ("hidden_size", "embedding_size", "critic_size")
CORPUS, K = "20ng", 50
HEAD = """# Where a step's time goes

Training on 20 Newsgroups (11,314 documents, 5,000 words, 866,316 non-zeros), K=50, with the default settings of each
model. `make bench-profile` writes this page. Times are processor times of one thread, because other work on the machine
disturbs them less; each is the lower quartile of all steps. The time of a part is its own, without that of the parts
that it calls. A cell is empty where a model has no such part. Loom's counting and sampling are older than their
compiled passes.
"""
OUTER = """\
A step has {batch} documents, and {sampled:,} after Loom's pretraining. All rows but the last are without spare topics.
Training begins with spare topics, which make twice as many topics in all, or three times as many in Loom. Models other
than Loom remove them after 30, 40 and 50 % of the epochs. Loom has removed them before its sampling stage begins. A few
steps of its last two stages also train the encoder, which is left out.

## Outside of the steps

Shares of the time of a fit of {epochs} epochs with spare topics (Loom: {loom} epochs). Set-up is a larger share here
than in a fit of the default length, which has some 60 epochs.

"""
FLOOR = """
## The floor

With one thread, STREAM's triad moved {memory:.1f} GB/s from memory and {cache:.1f} GB/s within the cache in this run,
and products of matrices reached {products:.0f} GFLOP/s. No step can be faster than the bytes that it has to move, at
the speed of memory, or than its dense products; the longer of the two times is the floor, and the share reached is
the floor divided by the time of the step. `bandwidth.py` derives the bytes and the products: every array that a step
needs is moved once for each use, and a row of weights once for each batch, because caches hold what a batch needs
more than once. Arrays that a cache holds from one step to the next could be moved faster. For Loom it is the floor of
its first stage. Most of the remaining time goes into many small operations, each of which takes some microseconds to
start, and reads one array and writes another.

"""


class Clock(Callback):
    """Notes both times at the end of each epoch."""

    def __init__(self) -> None:
        self.times: list[tuple[float, float]] = []

    def on_epoch(self, row: dict[str, Any]) -> None:
        self.times.append((time.process_time(), time.perf_counter()))
        if len(self.times) == 3:  # no spare topic has been removed before that
            raise KeyboardInterrupt

    @property
    def epoch(self) -> tuple[float, float]:
        """The processor time and the elapsed time of the second epoch."""
        (cpu, wall), (last_cpu, last_wall), _ = self.times
        return last_cpu - cpu, last_wall - wall


def machine() -> dict[str, float]:
    """What one thread reaches: bytes a second from memory and from the cache, and operations a second."""
    places = {name: bandwidth.triad(1, n, clock=time.process_time) for name, n in bandwidth.PLACES.items()}
    return places | {"products": bandwidth.dense_rate()}


def floors(corpus: tl.Corpus, rates: dict[str, float], steps: dict[str, float]) -> str:
    """Return the shortest time of a step that memory and cores allow, beside the milliseconds that were measured."""
    batch, tokens, rows = min(256, corpus.n_docs), float(corpus.counts.sum()), []
    distinct = bandwidth.distinct_words(corpus.counts.indices, corpus.counts.indptr, batch)
    for name, step in steps.items():
        model, _, stage = name.partition(" ")
        if stage in ("counting", "sampling"):  # their bytes depend on how many topics the documents have
            continue
        model, kind = getattr(tl, model)(K), "GSM" if model == "Loom" else model
        own = {size: value for size in SIZES if (value := getattr(model, size, None))}
        work = bandwidth.Work(corpus.n_docs, corpus.n_words, K, corpus.counts.nnz, tokens, batch, distinct, **own)
        moved = bandwidth.traffic(kind, work).floor
        by_memory = 1e3 * moved * tokens / work.steps / rates["memory"]
        by_products = 1e3 * bandwidth.dense(kind, work) / rates["products"]
        rows.append([
            f"`{name}`", f"{moved:,.0f}", f"{by_memory:.2f}", f"{by_products:.2f}", f"{step:.2f}",
            f"{100 * max(by_memory, by_products) / step:.0f} %",
        ])  # fmt: skip
    header = ["model", "bytes a token", "memory, ms", "products, ms", "step, ms", "share reached"]
    return FLOOR.format(**{name: rate / 1e9 for name, rate in rates.items()}) + jobs.markdown(header, rows)


def profiled(corpus: tl.Corpus, epochs: int, rates: dict[str, float]) -> Iterator[str]:
    """Yield the tables of the parts of a step, of what is outside the steps, and of the floors."""
    parts: dict[str, dict[str, float]] = {}
    outside = []
    for name, settings in MODELS.items():
        for spare in (0.0, None):
            chosen = {"epochs": epochs} | settings | ({} if spare is None else {"spare_topics": spare})
            model, timers = getattr(tl, name)(K, random_state=0, **chosen), Timers()
            start = time.process_time()
            with timers.running():
                model.fit(corpus)
            whole = time.process_time() - start
            for stage in STAGES if name == "Loom" else ("",):
                column, found = f"{name} {stage}".strip(), timers.per_step(stage)
                parts.setdefault(column, found)["sum" if spare == 0 else "sum, with spare topics"] = sum(found.values())
            if spare is None:
                shares = [timers.totals[part] for part in OUTSIDE]
                rest = whole - sum(timers.totals.values())
                outside.append([f"`{name}`", *(f"{100 * each / whole:.0f} %" for each in (*shares, rest))])
        print(name, whole, flush=True)
    names = [*(part for part in PARTS if any(part in row for row in parts.values())), "sum", "sum, with spare topics"]
    yield "\n## Milliseconds of a step, by its parts\n\n"
    yield jobs.markdown(
        ["part", *(f"`{name}`" for name in parts)],
        [[part, *(f"{row[part]:.2f}" if part in row else "" for row in parts.values())] for part in names],
    )
    sizes = {"batch": min(256, corpus.n_docs), "sampled": loom_model._COUNTING_BATCH}
    yield "\n" + OUTER.format(epochs=epochs, loom=MODELS["Loom"]["epochs"], **sizes)
    yield jobs.markdown(["model", *OUTSIDE, "set-up and all else"], outside)
    yield floors(corpus, rates, {name: row["sum"] for name, row in parts.items()})


def compared(folder: Path, python: Path, corpus: tl.Corpus, rounds: int) -> Iterator[str]:
    """Yield the table of seconds per epoch beside TopMost, with equal sizes."""
    rows = []
    for model, settings, ours, own in EQUAL:
        equal = own
        if "fixed_word_vectors" in own:  # TopMost draws them
            drawn = np.random.default_rng(0).normal(size=(corpus.n_words, own["embedding_size"]))
            equal = own | {"word_vectors": tl.WordVectors(corpus.vocabulary, drawn)}
        found: dict[str, list[tuple[float, float]]] = {}
        threads_tried = (1, 2) if os.getloadavg()[0] < peers.MAX_LOAD else (1,)
        for threads in threads_tried:
            for _ in range(rounds):
                peer = peers.Peer("", "", model, settings, 0)
                theirs = peers.topmost(folder, python, peer, 4, threads)
                found.setdefault(f"theirs {threads}", []).append((theirs["cpu"].min(), theirs["wall"].min()))
                torch.set_num_threads(threads)
                for spare in (0.0, 1.0):
                    clock = Clock()
                    fresh = getattr(tl, ours)(K, random_state=0, epochs=10, spare_topics=spare, **equal)
                    with suppress(KeyboardInterrupt):
                        fresh.fit(corpus, callbacks=[clock])
                    found.setdefault(f"ours {threads} {spare:.0f}", []).append(clock.epoch)
        torch.set_num_threads(1)
        best = {name: np.array(values).min(0) for name, values in found.items()}
        for threads, column, kind in ((1, 0, "1"), (2, 1, "2")):
            if threads not in threads_tried:
                continue
            their, plain, spare = (best[f"{who} {threads}{width}"][column] for who, width in
                                   (("theirs", ""), ("ours", " 0"), ("ours", " 1")))  # fmt: skip
            described = ", ".join(f"{name}={value}" for name, value in own.items()) or "defaults"
            row = [f"{model}, trained word vectors" if settings else model, described, kind]
            rows.append([*row, *(f"{each:.2f}" for each in (their, plain, spare)), f"{their / plain:.1f}",
                         f"{their / spare:.1f}"])  # fmt: skip
            print(rows[-1], flush=True)
    yield (
        "\n## Beside TopMost\n\nSeconds per epoch, the shortest of those that were measured in turn; ratios are "
        "TopMost's seconds divided by ours. TopMost's encoders have 200 units (ProdLDA) and 800 (ETM), and its word "
        "vectors 200 dimensions. With spare topics, our models have 100 topics in these epochs. Seconds of one thread "
        "are processor time, and those of two threads elapsed time, which is left out if the machine is busy.\n\n"
    )
    yield jobs.markdown(
        ["TopMost", "ours", "threads", "TopMost, s", "ours, s", "with spare topics, s", "ratio", "ratio, spare topics"],
        rows,
    )


def product_memory() -> str:
    """Return the memory of a product decoder's loss and gradient with a large vocabulary, from a process of its own."""
    code = """
import sys, torch
sys.path.insert(0, "src")
import numpy as np, scipy.sparse as sp
from topicloom.nn.sparse import product_log_likelihood
from topicloom.training.batches import sparse_counts
V, B, K = 100_000, 256, 50
def documents(V):
    words = np.sort(np.random.default_rng(0).integers(0, V // 60, (B, 60)) + np.arange(60) * (V // 60))
    return sp.csr_array((np.ones(B * 60, np.float32), words.ravel(), np.arange(B + 1) * 60), shape=(B, V))
counts = documents(V)
batch = sparse_counts(counts, np.arange(B), torch.device("cpu"))
def run(V, batch):
    theta = torch.rand(B, K).softmax(1).requires_grad_(); weight = torch.randn(V, K, requires_grad=True)
    product_log_likelihood(theta, weight, torch.zeros(V, requires_grad=True), batch).sum().backward()
few = sparse_counts(documents(600), np.arange(B), torch.device("cpu"))
run(600, few)
def status(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name))
open("/proc/self/clear_refs", "w").write("5")  # the peak starts again; it would be that of the parent process
before = status("VmRSS")
run(V, batch)
print(status("VmHWM") - before)
"""
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    used, dense, table = int(done.stdout) / 1024, 256 * 1e5 * 4 / 2**20, 1e5 * 50 * 4 / 2**20
    return (
        f"\n## Memory of the product decoder\n\nThe loss of a product of experts and its gradient, for 256 documents, "
        f"100,000 words and 50 topics, raise the peak memory by {used:.0f} MiB. One (B, V) array takes {dense:.0f} "
        f"MiB, and one (V, K) array {table:.0f} MiB. There is one of the former; the rest are weights, their gradient, "
        "and copies of both.\n"
    )


def main() -> None:
    parser = shared.parser(__doc__)
    shared.add_peers(parser, "TopMost")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=2, help="turns of the comparison")
    parser.add_argument("--out", type=Path, default=PAGE)
    options = parser.parse_args()
    logging.disable()
    torch.set_num_threads(1)
    data = shared.load(options.shared, CORPUS)
    corpus = tl.Corpus.from_counts(data["train"], data["vocab"])
    tl.GSM(K, epochs=1).fit(corpus)  # imports and caches
    text = [HEAD, *profiled(corpus, options.epochs, machine()), product_memory()]
    if options.peers.exists():
        text += compared(options.shared, options.peers, corpus, options.rounds)
    load = f"load {os.getloadavg()[1]:.1f}"
    text.append(f"\nOn {os.cpu_count()} cores, torch {torch.__version__}; {load}. No GPU was used.\n")
    options.out.write_text("".join(text), encoding="utf-8")


if __name__ == "__main__":
    main()
