"""Compute what a billion documents cost on 64 machines, from rates measured on this one: benchmarks/scale.md.

    python benchmarks/scale.py [--measure GSM 512] [--table]

Three parts: the time and the memory of steps with V=100,000 and K=1,000, each measured in a process of its own; gloo's
all_reduce with two and four processes, beside the simulation of allreduce.py, which is fitted to two of them; and the
figures for 64 machines, in which every all-reduce is simulated, with late machines. docs/scale.md discusses them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import allreduce
import jobs
import shared
import zipf
from allreduce import Link

PAGE = Path(__file__).with_name("scale.md")
OUT = shared.RESULTS / "scale.jsonl"
N_DOCS, N_WORDS, N_TOPICS, WORDS_PER_DOC, RANKS = 10**9, 100_000, 1_000, 60, 64
MODELS, BATCHES = ("GSM", "ETM", "Loom"), (64, 1024)
GLOBAL_BATCHES = (256, 16_384, 131_072)
NETWORKS = {"10 Gbit/s": Link(50e-6, 1.25e9), "100 Gbit/s": Link(20e-6, 12.5e9)}
LATE = 0.05  # relative deviation of the time that the machines take for a step
FASTER = 16  # a machine of 32 cores with so many times the memory bandwidth, which is not measured
SIZES = (1 << 12, 1 << 16, 1 << 20, 1 << 24, 1 << 26)  # bytes of measured messages
ENOUGH = 4  # steps
ENCODER_EVERY = 20  # batches of a counting pass for one in which the encoder learns
KEPT_BYTES = 32 * 4  # of the counts of a document that Loom keeps


class Enough(Exception):
    """Enough steps have been measured."""


def measure(model: str, batch_size: int) -> dict[str, float]:
    """Return processor seconds of a step and of the end of a pass, and the peak memory, with V=100,000 and K=1,000.

    One thread is used, whose processor time depends little on what else the machine does.
    """
    import torch

    import topicloom as tl

    torch.set_num_threads(1)

    class Watch(tl.Callback):
        def __init__(self) -> None:
            self.last, self.parameters = 0.0, 0
            self.steps, self.ends, self.encoder_steps = [], [], []

        def on_step(self, state: Any) -> None:
            now, counting = time.process_time(), getattr(state.network, "counting", None)
            self.parameters = sum(weights.numel() for weights in state.network.parameters())
            # The first batch of a counting pass also prepares the pass; it is counted as its end.
            if counting is not None and counting.started and counting.passes_done and counting.batches_done == 1:
                self.ends.append(now - self.last)
            elif counting is not None and counting.passes_done and counting.batches_done % ENCODER_EVERY == 1:
                self.encoder_steps.append(now - self.last)
            elif self.last and (counting is None or (counting.started and counting.passes_done)):
                self.steps.append(now - self.last)
            self.last = time.process_time()
            if len(self.steps) >= ENOUGH and (counting is None or batches == 2 or self.encoder_steps):
                raise Enough

    batches = 6 if model != "Loom" else 2 if batch_size > BATCHES[0] else ENCODER_EVERY + 1
    corpus = tl.Corpus.load(zipf.corpus(6 * BATCHES[-1], N_WORDS))[: batches * batch_size]
    settings: dict[str, Any] = {"spare_topics": 0, "batch_size": batch_size, "random_state": 0, "epochs": 6}
    if model == "Loom":
        settings |= {"pretrain_share": 0.1, "sample_share": 0.0}  # passes of the counting stage
    before, watch, start = _peak(), Watch(), time.perf_counter()
    fitted = getattr(tl, model)(N_TOPICS, **settings)
    with suppress(Enough):
        fitted.fit(corpus, callbacks=[watch])
    return {
        "seconds": time.perf_counter() - start,
        "step": float(np.median(watch.steps)),
        "end": float(np.median(watch.ends)) if watch.ends else 0.0,
        "encoder_step": float(np.median(watch.encoder_steps)) if watch.encoder_steps else 0.0,
        "memory": _peak() - before,
        "parameters": watch.parameters,
        "non_zeros": corpus.counts.nnz / corpus.n_docs,
    }


def _peak() -> float:
    """Return the peak memory of this process in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024.0 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def work(job: jobs.Job) -> dict[str, Any]:
    """Do one job: a measurement of steps, of messages or of gloo."""
    if job["what"] == "step":
        command = [sys.executable, __file__, "--measure", job["model"], str(job["size"])]
        return dict(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    start = time.perf_counter()
    if job["what"] == "messages":
        return _messages(job["model"]) | {"seconds": time.perf_counter() - start}
    found = allreduce.measured(job["size"], SIZES)
    return {"measured": found, "seconds": time.perf_counter() - start}


def _messages(model: str) -> dict[str, float]:
    """Count what two ranks send in one fit of a small model: messages and bytes of a step, beside its parameters."""
    import torch.multiprocessing as processes

    with tempfile.TemporaryDirectory() as folder:
        context = processes.get_context("spawn")
        ranks = [context.Process(target=_send, args=(rank, model, folder)) for rank in range(2)]
        for each in ranks:
            each.start()
        for each in ranks:
            each.join()
        return dict(json.loads((Path(folder) / "sent.json").read_text()))


def _send(rank: int, model: str, folder: str) -> None:
    import torch
    import torch.distributed as dist

    import topicloom as tl
    from topicloom.distributed import join

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    sent: list[int] = []
    plain, marks = dist.all_reduce, []

    def counted(tensor: Any, *args: Any, **options: Any) -> Any:
        sent.append(tensor.numel() * tensor.element_size())
        return plain(tensor, *args, **options)

    class Watch(tl.Callback):
        def on_step(self, state: Any) -> None:
            counting = getattr(state.network, "counting", None)
            trained = counting is None or (counting.started and counting.batches_done % ENCODER_EVERY == 1)
            marks.append((len(sent), sum(sent), trained, counting is not None and bool(counting.started)))

    dist.all_reduce = counted
    corpus = tl.datasets.synthetic_lda(1280, 5, 500, random_state=0).corpus
    with join():
        fitted = getattr(tl, model)(10, epochs=4, batch_size=64, spare_topics=0, random_state=0)
        fitted.fit(corpus, callbacks=[Watch()])
    if rank == 0:
        steps = [(after[0] - before[0], after[1] - before[1], after[2], after[3]) for before, after in pairwise(marks)]
        chosen = [step for step in steps if step[2] and (model != "Loom" or step[3])]
        others = [step for step in steps if step[3] and not step[2]]
        parameters = sum(weights.numel() for weights in fitted.network_.parameters())
        row = {
            "messages": float(np.median([step[0] for step in chosen])),
            "bytes": float(np.median([step[1] for step in chosen])),
            "bytes_between": float(np.median([step[1] for step in others])) if others else 0.0,
            "messages_between": float(np.median([step[0] for step in others])) if others else 0.0,
            "parameters": parameters,
        }
        (Path(folder) / "sent.json").write_text(json.dumps(row))
    dist.destroy_process_group()


def all_jobs() -> list[jobs.Job]:
    """Return every measurement."""
    steps = [{"what": "step", "model": model, "size": size} for model in MODELS for size in BATCHES]
    sent = [{"what": "messages", "model": model, "size": 0} for model in MODELS]
    return [*steps, *sent, *({"what": "gloo", "model": "-", "size": ranks} for ranks in (2, 4))]


def main() -> None:
    parser = shared.parser(__doc__)
    jobs.add_arguments(parser, OUT)
    parser.add_argument("--measure", nargs=2, metavar=("MODEL", "BATCH"), help="only measure steps, and print them")
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure[0], int(options.measure[1]))))
        return
    options.jobs = 1
    jobs.run(all_jobs(), work, options)
    rows = [row for row in jobs.latest(options.out, all_jobs()) if "error" not in row]
    import scale_page

    PAGE.write_text(scale_page.page(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
