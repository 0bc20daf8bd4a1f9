"""Compare fits on a GPU with those on the CPU of the same machine.

    python benchmarks/device.py [--variants GSM,Loom] [--epochs 5] [--fits Loom] [--table]

The first table has the median seconds of an epoch, the second the figures of whole fits with default settings. Results
are stored in results/device.jsonl, and device.md is written from all results in the file.
"""

from __future__ import annotations

import time
import warnings
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import jobs
import shared
import topicloom as tl
from topicloom.training.callbacks import Callback

PAGE = Path(__file__).with_name("device.md")
LARGE = "300,000 documents"
EPOCHS = {"20ng": 6, LARGE: 3}
HEAD = """# On a GPU

`make bench-device` writes this page on a machine with a GPU. {machine} The CPU's threads are as many as its cores.

## An epoch

The corpora are 20 Newsgroups (`20ng`: 11,314 documents, 5,000 words, 111 tokens per document), and synthetic documents
({large}, 20,000 words, 60 tokens per document). K is 50.

- s per epoch: the median. An epoch of Loom is a pass of its counting and sampling stages.
- ratio: the CPU's seconds divided by the GPU's.
- kernels per step: how many operations a step of gradient descent starts on the GPU.
- busy: the share of the time in which the GPU computes. The rest is spent on starting operations from Python.
- GPU memory: the most that PyTorch has reserved, in MiB, which includes the counts.

"""
FITS_HEAD = """
## Whole fits

Fits on 20 Newsgroups with default settings, K=50, and one seed. Random numbers differ between the devices, so that
figures differ as those of two seeds do. The columns are those of [models.md](models.md), with seconds of elapsed time.

"""
FIGURES = {
    "seconds": ("seconds", 1), "npmi": ("NPMI", 3), "td": ("TD", 3), "npmi6": ("NPMI .6", 3), "td6": ("TD .6", 3),
    "purity": ("purity", 3), "nmi": ("NMI", 3), "acc": ("accuracy", 3), "own_ppl": ("perplexity", 0),
    "alive": ("active", 0),
}  # fmt: skip


class Clock(Callback):
    """Notes how long each epoch takes, of every stage."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def on_start(self, model: Any, n_epochs: int, n_batches: int) -> None:
        self.last, self.n_batches = time.perf_counter(), n_batches

    def on_epoch(self, row: dict[str, Any]) -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        now = time.perf_counter()
        self.seconds.append(now - self.last)
        self.last = now


@cache
def counts(folder: Path, name: str) -> Any:
    """Return the documents of a corpus."""
    if name == LARGE:
        return tl.datasets.synthetic_lda(300_000, 50, 20_000, doc_length=60, random_state=0).corpus
    return shared.load(folder, name)["train"]


def measure(folder: Path, job: jobs.Job) -> dict[str, Any]:
    """Return the figures of one job: of epochs, or of a whole fit."""
    variant = shared.VARIANTS[job["variant"]]
    common = {"torch": torch.__version__, "gpu": torch.cuda.get_device_name(), "cores": torch.get_num_threads()}
    if job["task"] == "fit":
        data = shared.load(folder, job["corpus"])
        model = variant.make(job["n_topics"], 0, data).set_params(device=job["device"])
        model, seconds = shared.fit(model, data)
        return common | {"seconds": seconds, **shared.evaluate(folder, data, model)}
    X, epochs = counts(folder, job["corpus"]), EPOCHS[job["corpus"]]
    settings = {"device": job["device"], "batch_size": job["batch_size"], "epochs": epochs}
    if job["variant"] == "Loom":  # one pass of pretraining, and then some of counting and sampling
        settings |= {"epochs": 2 * epochs, "pretrain_share": 0.2}
    clock, start = Clock(), time.perf_counter()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    variant.make(job["n_topics"], 0).set_params(**settings).fit(X, callbacks=[clock])
    row = common | {"seconds": float(np.median(clock.seconds)), "whole": time.perf_counter() - start}
    if job["device"] == "cuda":
        row["memory"] = torch.cuda.max_memory_reserved() / 2**20
        row |= profiled(variant, X, job["n_topics"], settings | {"epochs": 4 if job["variant"] == "Loom" else 1})
    return row


def profiled(variant: shared.Variant, X: Any, n_topics: int, settings: dict[str, Any]) -> dict[str, float]:
    """Return the kernels per step of a short fit, the share of its epochs in which the GPU computes, and its waits."""
    from torch.profiler import ProfilerActivity, profile

    if hasattr(X, "__len__") and len(X) > 50_000:
        X = X[:50_000]
    clock = Clock()
    model = variant.make(n_topics, 0).set_params(**settings)
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        model.fit(X, callbacks=[clock])
    kernels = [event for event in found.events() if str(event.device_type).endswith("CUDA")]
    busy = sum(event.device_time for event in kernels) / 1e6
    n_steps = len(clock.seconds) * clock.n_batches
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        variant.make(n_topics, 0).set_params(**settings).fit(X)
        torch.cuda.set_sync_debug_mode("default")
    waits = sum("synchroni" in str(each.message) for each in seen)
    return {"kernels": len(kernels) / n_steps, "busy": busy / sum(clock.seconds), "waits": waits / n_steps}


def epoch_lines(rows: list[dict[str, Any]]) -> list[list[str]]:
    """Return the rows of the table of epochs."""
    cases: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    for row in rows:
        if row["task"] == "epochs" and "error" not in row:
            cases.setdefault((row["corpus"], row["variant"], row["batch_size"]), {})[row["device"]] = row
    lines = []
    for (corpus, variant, batch), found in cases.items():
        if len(found) == 2:
            gpu, cpu = found["cuda"], found["cpu"]
            ratio = f"{cpu['seconds'] / gpu['seconds']:.1f}"
            figures = [f"{gpu['seconds']:.3f}", f"{cpu['seconds']:.3f}", ratio, f"{gpu['kernels']:.0f}"]
            lines.append([corpus, variant, f"{batch:,}", *figures, f"{gpu['busy']:.2f}", f"{gpu['memory']:.0f}"])
    return lines


def fit_lines(rows: list[dict[str, Any]]) -> list[list[str]]:
    """Return the rows of the table of whole fits."""
    return [
        [row["variant"], row["device"], *(f"{row[name]:.{digits}f}" for name, (_, digits) in FIGURES.items())]
        for row in sorted(rows, key=lambda row: (row["variant"], row["device"]))
        if row["task"] == "fit" and "error" not in row
    ]


def main() -> None:
    parser = shared.parser(__doc__)
    jobs.add_arguments(parser, shared.RESULTS / "device.jsonl")
    parser.add_argument("--variants", help="names of variants, separated by commas")
    parser.add_argument("--large", default="GSM,ETM,ProdLDA,Loom", help="variants that are fitted to the large corpus")
    parser.add_argument("--fits", default="Loom,GSM,ETM,ProdLDA", help="variants that are fitted whole")
    options = parser.parse_args()
    if not options.table and not torch.cuda.is_available():
        raise SystemExit("this machine has no GPU that PyTorch can use")
    names = [each.name for each in shared.variants(options.variants)]
    cases = [(name, "20ng", size) for name in names for size in (256, 2048)]
    cases += [(name, LARGE, 8192) for name in filter(None, options.large.split(","))]
    requested = [
        {"task": "epochs", "variant": name, "corpus": corpus, "n_topics": 50, "batch_size": size, "device": device}
        for name, corpus, size in cases
        for device in ("cuda", "cpu")
    ]
    requested += [
        {"task": "fit", "variant": name, "corpus": "20ng", "n_topics": 50, "device": device}
        for name in filter(None, options.fits.split(","))
        for device in ("cuda", "cpu")
    ]
    options.jobs = 1
    jobs.run(requested, partial(measure, options.shared), options)
    rows = [row for row in jobs.read(options.out) if "error" not in row]
    last = rows[-1]
    machine = f"It had one {last['gpu']} and {last['cores']} CPU cores, with PyTorch {last['torch']}."
    titles = ["corpus", "model", "batch", "CUDA, s per epoch", "CPU, s per epoch", "ratio", "kernels per step", "busy"]
    page = HEAD.format(machine=machine, large=LARGE)
    page += jobs.markdown([*titles, "GPU memory"], epoch_lines(rows))
    page += FITS_HEAD + jobs.markdown(["model", "device", *(name for name, _ in FIGURES.values())], fit_lines(rows))
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
