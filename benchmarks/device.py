"""Compare fits on a GPU with those on the CPU of the same machine.

    python benchmarks/device.py [--variants GSM,Loom] [--large GSM] [--fits Loom] [--table]

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
from torch.profiler import ProfilerActivity, profile

import jobs
import models
import shared
import topicloom as tl

PAGE = Path(__file__).with_name("device.md")
LARGE = "300,000 documents"
EPOCHS = {"20ng": 10, LARGE: 4}
VARIANTS = ("Loom", "GSM", "ETM", "ProdLDA", "NVDM", "GMNTM", "WLDA dirichlet", "DirichletVAE implicit")
VARIANTS += ("DirichletVAE weibull", "BATM")
HEAD = """# On a GPU

`make bench-device` writes this page on a machine with a GPU. {machine} Epochs on the CPU may use all
of its cores.
`pytest tests/test_cuda.py` checks on such a machine that every model trains, is saved, goes on from a checkpoint and
infers as on a CPU.

A GPU brings most if batches are large. With batches of 256 documents, a step takes as long as it takes Python to start
its operations, and the GPU computes for about a tenth of the time.

## An epoch

The corpora are 20 Newsgroups (`20ng`: 11,314 documents, 5,000 words, 111 tokens per document), and synthetic documents
({large}, 20,000 words, 60 tokens per document). K is 50.

- s per epoch: the median of the later half of {epochs} epochs, without validation and measures. An epoch of Loom is one
  of its sampling stage.
- ratio: the CPU's seconds divided by the GPU's.
- kernels: how many operations the GPU does for a batch.
- busy: the share of an epoch in which the GPU computes. The rest is mostly spent on starting operations from Python.
- waits: how often the processor waits for the GPU for a batch. Since the rows with more than one were measured, row
  numbers are copied without waiting.
- GPU memory: the most that PyTorch has reserved, in MiB, which includes the counts.

"""
FITS_HEAD = """
## Whole fits

Fits on 20 Newsgroups with default settings and K=50: one seed on the GPU, with the seconds of elapsed time, and the
means of [models.md](models.md) on a CPU, where the columns are explained. Random numbers differ between the devices, so
that figures differ at least as those of two seeds do.

"""
FIGURES = {
    "seconds": ("seconds", 1), "npmi": ("NPMI", 3), "td": ("TD", 3), "npmi6": ("NPMI .6", 3), "td6": ("TD .6", 3),
    "purity": ("purity", 3), "nmi": ("NMI", 3), "acc": ("accuracy", 3), "own_ppl": ("perplexity", 0),
    "alive": ("active", 0),
}  # fmt: skip


@cache
def counts(folder: Path, name: str) -> Any:
    """Return the documents of a corpus."""
    if name == LARGE:
        return tl.datasets.synthetic_lda(300_000, 50, 20_000, doc_length=60, random_state=0).corpus
    return shared.load(folder, name)["train"]


def measure(folder: Path, profiled: list[str], job: jobs.Job) -> dict[str, Any]:
    """Return the figures of one job: of epochs, or of a whole fit. `profiled` has the variants whose kernels count."""
    variant = shared.VARIANTS[job["variant"]]
    common = {"torch": torch.__version__, "gpu": torch.cuda.get_device_name(), "cores": torch.get_num_threads()}
    if job["task"] == "fit":
        data = shared.load(folder, job["corpus"])
        model = variant.make(job["n_topics"], 0, data).set_params(device=job["device"])
        model, seconds = shared.fit(model, data)
        return common | {"seconds": seconds, **shared.evaluate(folder, data, model)}
    X, epochs = counts(folder, job["corpus"]), EPOCHS[job["corpus"]]
    settings = {"device": job["device"], "batch_size": job["batch_size"], "epochs": epochs}
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    model = variant.make(job["n_topics"], 0).set_params(**settings).fit(X)
    whole = time.perf_counter() - start
    # The first epochs may have spare topics.
    seconds = [row["seconds"] for row in model.history_[len(model.history_) // 2 :]]
    row = common | {"seconds": float(np.median(seconds)), "whole": whole}
    if job["device"] == "cuda":
        n_steps = -(-X.shape[0] // job["batch_size"])
        memory = torch.cuda.max_memory_reserved() / 2**20
        row |= {"memory": memory}
        # Loom's stages follow from the number of epochs, so that fits of two and three epochs cannot be compared.
        if job["corpus"] != LARGE and job["variant"] in profiled:
            row |= gpu_use(variant, X, job["n_topics"], settings, n_steps)
    return row


def gpu_use(variant: shared.Variant, X: Any, n_topics: int, settings: dict[str, Any], n_steps: int) -> dict[str, float]:
    """Return the kernels of a step, the seconds in which the GPU computes in a step, and how often a step waits.

    What happens once in a fit is left out by subtracting a fit of one epoch less.
    """
    found = []
    for epochs in (2, 3):
        model = variant.make(n_topics, 0).set_params(**settings | {"epochs": epochs})
        with warnings.catch_warnings(record=True) as seen, profile(activities=[ProfilerActivity.CUDA]) as profiled:
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")
            model.fit(X)
            torch.cuda.set_sync_debug_mode("default")
        kernels = [event for event in profiled.events() if str(event.device_type).endswith("CUDA")]
        waits = sum("called a synchronizing" in str(each.message) for each in seen)
        found.append((len(kernels), sum(event.device_time for event in kernels) / 1e6, waits))
    kernels, busy, waits = ((after - before) / n_steps for before, after in zip(*found, strict=True))
    return {"n_steps": n_steps, "kernels": kernels, "busy": busy, "waits": waits}


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
            use = ["-"] * 3
            if gpu.get("kernels") and variant != "Loom":
                busy = gpu["busy"] * gpu["n_steps"] / gpu["seconds"]
                use = [f"{gpu['kernels']:.0f}", f"{busy:.2f}", f"{gpu['waits']:.1f}"]
            figures = [f"{gpu['seconds']:.3f}", f"{cpu['seconds']:.3f}", f"{cpu['seconds'] / gpu['seconds']:.1f}"]
            lines.append([corpus, variant, f"{batch:,}", *figures, *use, f"{gpu['memory']:.0f}"])
    return lines


def fit_lines(rows: list[dict[str, Any]]) -> list[list[str]]:
    """Return the rows of the table of whole fits, each followed by the means of the same fits in models.md."""
    lines = []
    for row in sorted((row for row in rows if row["task"] == "fit"), key=lambda row: str(row["variant"])):
        same = jobs.latest(models.OUT, models.all_jobs([row["variant"]], ("20ng",), (50,), range(3)))
        averages = [float(np.mean([other[name] for other in same])) for name in FIGURES]
        lines.append([row["variant"], row["device"], "1", *formatted([row[name] for name in FIGURES])])
        lines.append(["", "cpu", str(len(same)), "-", *formatted(averages)[1:]])
    return lines


def formatted(figures: list[float]) -> list[str]:
    """Return the figures of a fit, with the digits of their columns."""
    return [f"{figure:.{digits}f}" for figure, (_, digits) in zip(figures, FIGURES.values(), strict=True)]


def main() -> None:
    parser = shared.parser(__doc__)
    jobs.add_arguments(parser, shared.RESULTS / "device.jsonl")
    parser.add_argument("--variants", default=",".join(VARIANTS), help="names of variants, separated by commas")
    parser.add_argument(
        "--large",
        default="GSM,ETM,ProdLDA,Loom",
        help="variants that are also fitted with larger batches and to the large corpus",
    )
    parser.add_argument("--fits", default="Loom,GSM,ETM,ProdLDA", help="variants that are fitted whole")
    parser.add_argument("--profiled", default="GSM,ETM,ProdLDA,NVDM", help="variants whose kernels are counted (slow)")
    options = parser.parse_args()
    if not options.table and not torch.cuda.is_available():
        raise SystemExit("this machine has no GPU that PyTorch can use")
    lists = (options.variants, options.large, options.fits, options.profiled)
    names, large, whole, profiled = (list(filter(None, text.split(","))) for text in lists)
    cases = [(name, "20ng", size) for name in names for size in (256, 2048) if size == 256 or name in large]
    cases += [(name, LARGE, 8192) for name in large]
    requested = [
        {"task": "epochs", "variant": name, "corpus": corpus, "n_topics": 50, "batch_size": size, "device": device}
        for name, corpus, size in cases
        for device in ("cuda", "cpu")
    ]
    requested += [
        {"task": "fit", "variant": name, "corpus": "20ng", "n_topics": 50, "device": "cuda"} for name in whole
    ]
    options.jobs = 1
    jobs.run(requested, partial(measure, options.shared, profiled), options)
    rows = [row for row in jobs.read(options.out) if "error" not in row]
    last = rows[-1]
    machine = f"It had one {last['gpu']}, {last['cores']} CPU cores and PyTorch {last['torch']}."
    titles = ["corpus", "model", "batch", "CUDA, s per epoch", "CPU, s per epoch", "ratio", "kernels", "busy"]
    page = HEAD.format(machine=machine, large=LARGE, epochs=EPOCHS["20ng"])
    page += jobs.markdown([*titles, "waits", "GPU memory"], epoch_lines(rows))
    if fits := fit_lines(rows):
        page += FITS_HEAD + jobs.markdown(["model", "device", "seeds", *(name for name, _ in FIGURES.values())], fits)
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
