"""Measure the speed of training beside other packages: benchmarks/speed.md, speed.csv and speed.png.

    python benchmarks/speed.py [--parts epochs,curves,growth,ends] [--only topica] [--largest 10000] [--minutes 25]

`make bench-speed` makes .venv-peers with the other packages first. Every fit runs in a process of its own, in turn with
those of the others, and one after the other. The parts are `epochs` (20 Newsgroups, K=50, with one and two threads),
`curves` (quality on held-out training documents against time), `growth` (documents, vocabulary and topics), and `ends`
(the quality of TopMost's models at the end of 200 epochs, and when ours reach it). Results are lines of
results/speed.jsonl, and a run continues where the last one ended.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse as sp

import bandwidth
import jobs
import shared
import zipf
from speed_systems import BASE, CORPORA, CURVES, ENDS, GROWTH, ROUNDS, SYSTEMS, limit_of
from topicloom import metrics

OUT = shared.RESULTS / "speed.jsonl"
FOLDER = shared.RESULTS / "speed"
PAGE = Path(__file__).with_name("speed.md")
PARTS = ("epochs", "curves", "growth", "ends")
MEMORY = 11 << 30  # bytes that a fit may take


def corpus_folder(folder: Path, job: jobs.Job) -> tuple[Path, int, dict[str, Any]]:
    """Return the folder of a job's counts, the size of its vocabulary, and the data that its quality needs."""
    if job["part"] == "growth":
        saved = zipf.corpus(job["docs"], job["words"])
        return saved, job["words"], {}
    name = job.get("corpus", "20ng")
    data = shared.load(folder, name)
    if job["part"] in ("curves", "ends"):
        data, name = shared.held_out(data), f"{name}-held-out"
    target = FOLDER / name
    if not (target / "indptr.npy").exists():
        target.mkdir(parents=True, exist_ok=True)
        counts = sp.csr_matrix(data["train"]).astype(np.float32)
        counts.sort_indices()
        observed, _ = shared.independent_metrics(folder).split_counts(data["test"])
        sp.save_npz(target / "half.npz", sp.csr_matrix(observed))
        for part in ("data", "indices", "indptr"):
            np.save(target / f"{part}.npy", getattr(counts, part))
    return target, data["train"].shape[1], data


def work(folder: Path, peers: Path, job: jobs.Job) -> dict[str, Any]:
    """Do one job."""
    began = time.perf_counter()
    if job["part"] == "bandwidth":
        row = {f"{place} {n}": bandwidth.triad(n, size) for n in (1, 2) for place, size in bandwidth.PLACES.items()}
        return row | {"seconds": time.perf_counter() - began}
    system = SYSTEMS[job["system"]]
    source, n_words, data = corpus_folder(folder, job)
    request = {
        "package": system.package, "model": system.model, "settings": system.settings, "n_topics": job["topics"],
        "threads": job["threads"], "seed": 0, "folder": str(source), "n_words": n_words,
        "limit": limit_of(job) * job["threads"], "steps": 3, "at_least": 1.5,
    }  # fmt: skip
    if job["part"] in ("curves", "ends"):
        epochs = [int(number) for number in job["epochs"].split()]
        request |= {"snapshots": epochs, "steps": max(epochs)}
        if system.package == "topicloom":
            request["settings"] = {"epochs": epochs[0]}  # all others are defaults
    elif system.package == "topicloom":
        request |= {"settings": {"epochs": 200} | system.settings}
        if system.model == "Loom":  # one epoch of pretraining and one of counting, and then passes of sampling
            request["settings"] = {"epochs": 200, "pretrain_share": 0.004, "sample_share": 0.99} | system.settings
            request["steps"] = 20 if job["docs"] <= BASE["docs"] else 8  # the first passes take longer
        if job["part"] == "growth":
            request["corpus"] = str(source)  # memory-mapped
    elif system.package == "topica":
        request["steps"] = 20 if system.model == "LDA" else 3
        if job.get("docs", 0) >= 100_000 or job["topics"] >= 200:
            request |= {"steps": 4 if system.model == "LDA" else 2, "interval": 1}
    python = Path(sys.executable) if system.package == "topicloom" else peers
    with tempfile.TemporaryDirectory() as out:
        problem = _run(python, request, Path(out))
        lines = jobs.read(Path(out) / "steps.jsonl")
        row = {"problem": problem, **summary(lines, system.model)}
        for file in sorted(Path(out).glob("snapshot-*.npz"), key=lambda path: int(path.stem.split("-")[1])):
            epoch = int(file.stem.split("-")[1])
            at = [line for line in lines if line.get("step") == epoch][-1]
            found = {"epoch": epoch, "wall": at["wall"], "cpu": at["cpu"], **quality(folder, data, dict(np.load(file)))}
            row.setdefault("curve", []).append(found)
    return row | {"seconds": time.perf_counter() - began}


def _run(python: Path, request: dict[str, Any], out: Path) -> str:
    """Run a fit, and return what went wrong, if anything did."""
    threads = str(request["threads"])
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS", "NUMBA_NUM_THREADS")
    command = [str(python), str(Path(__file__).with_name("speed_worker.py")), json.dumps(request), str(out)]

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))

    environment = os.environ | dict.fromkeys(names, threads)
    with (out / "stderr").open("w+") as errors:  # not a pipe, which workers that are left would hold open
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True,
            preexec_fn=limited,
        )  # fmt: skip
        try:
            process.wait(timeout=60 + 8 * request["limit"])
            errors.seek(0)
            said = errors.read()
        except subprocess.TimeoutExpired:
            said = "clock"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # workers that it has left
            process.wait()
    if process.returncode == 0:
        return ""
    if process.returncode == -signal.SIGPROF or said == "clock":
        return "time"
    if "MemoryError" in said or "alloc" in said:
        return "memory"
    return (said.strip().splitlines() or [f"ended with {process.returncode}"])[-1][:200]


def summary(lines: list[dict[str, Any]], model: str) -> dict[str, Any]:
    """Return the median time of an epoch without the first, the peak memory and the time of loading."""
    steps = [line for line in lines if "step" in line and line["kind"] != "fit"]
    before, after = {"step": 0, "wall": 0.0, "cpu": 0.0}, steps
    rates: dict[str, list[float]] = {"wall": [], "cpu": []}
    for line in after:
        done = line["step"] - before["step"]
        if done > 0 and (model != "Loom" or line["kind"] == "pass"):
            for clock, values in rates.items():
                values.append((line[clock] - before[clock]) / done)
        before = line
    row: dict[str, Any] = {"loading": max((line.get("loaded", 0.0) for line in lines), default=0.0)}
    row["memory"] = max((line["memory"] for line in lines), default=0)
    row["epochs_measured"] = len(rates["wall"])
    for clock, values in rates.items():
        if values:
            row[clock] = median(values[1:] or values)
    return row


def quality(folder: Path, data: dict[str, Any], kept: dict[str, Any]) -> dict[str, float]:
    """Return NPMI of the topics on the held-out documents, and the perplexity of their second halves."""
    beta, theta = kept["beta"], kept["theta"]
    independent = shared.independent_metrics(folder)
    held = sp.csr_array(data["test"])
    weights = beta.min() < 0 or not np.allclose(beta.sum(1), 1, atol=1e-2)
    ranked = beta if weights else independent.relevance(beta, data["train"], 0.6)
    tops = {"npmi": np.argsort(-ranked)[:, :10], "npmi_probability": np.argsort(-beta)[:, :10]}
    tops |= {"npmi_own": kept["top"]} if "top" in kept else {}  # as the package ranks words
    row = {name: float(metrics.document_npmi(top.tolist(), held)) for name, top in tops.items()}
    row["td"] = float(metrics.topic_diversity(np.argsort(-ranked)[:, :25].tolist()))
    if len(theta) == held.shape[0] and not weights:
        scored = sp.csr_matrix(independent.split_counts(data["test"])[1]).tocoo()
        mixed = np.einsum("nk,nk->n", theta[scored.row], beta.T[scored.col])
        row["perplexity"] = float(np.exp(-(scored.data * np.log(np.maximum(mixed, 1e-12))).sum() / scored.data.sum()))
    return row


def all_jobs(parts: list[str], only: str) -> list[jobs.Job]:
    """Return the jobs, each round after the other, so that packages alternate."""
    chosen = [name for name in SYSTEMS if only.lower() in name.lower()]
    empty = {"docs": 0, "words": 0, "topics": 50, "threads": 1, "epochs": "", "round": 0}
    found = [{"part": "bandwidth", "system": "", **empty}]
    later, ends = [], list[jobs.Job]()  # further rounds, after a first result of everything
    for number in range(ROUNDS):
        for threads in (1, 2):
            places = {"part": "epochs", "round": number, "threads": threads}
            these = [{**empty, "system": name, **places} for name in chosen if "epochs" in SYSTEMS[name].parts]
            (later if number else found).extend(these)
    for name in (name for name in chosen if "curves" in SYSTEMS[name].parts):
        found += [
            {**empty, "part": "curves", "system": name, "threads": 2, "epochs": each} for each in fits(CURVES, name)
        ]
    for corpus in CORPORA:
        for name in (name for name in ENDS if name in chosen):
            places = {"part": "ends", "system": name, "corpus": corpus}
            ends.extend({**empty, **places, "epochs": each} for each in fits(ENDS, name))
    for factor, values in GROWTH.items():
        for value in values:
            cell = {**empty, "part": "growth", **BASE, factor: value}
            found += [{**cell, "system": name} for name in chosen if "growth" in SYSTEMS[name].parts]
    found += [*later, *ends, {"part": "bandwidth", "system": "", **empty, "round": 1}]
    unique = {json.dumps(job, sort_keys=True): job for job in found if job["part"] in (*parts, "bandwidth")}
    return list(unique.values())


def stored(out: Path) -> list[dict[str, Any]]:
    """Return the results of the page: those of `all_jobs`, and fits of other lengths until the present ones are made.

    The lengths of a model's fits end with its default, which may have changed since the fits of a curve were made.
    """
    present = all_jobs(list(PARTS), "")
    rows = jobs.latest(out, present)
    done, wanted = Counter(map(_curve, rows)), Counter(map(_curve, present))
    names = {name for job in present for name in job}
    earlier = [
        {name: row[name] for name in names if name in row}
        for row in jobs.read(out)
        if row.get("part") in ("curves", "ends") and done[_curve(row)] < wanted[_curve(row)]
    ]
    return rows + jobs.latest(
        out, [job for number, job in enumerate(earlier) if job not in [*present, *earlier[:number]]]
    )


def _curve(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["part"], row["system"], row.get("corpus", "")


def fits(lengths: dict[str, list[int]], name: str) -> list[str]:
    """Return the epochs of each fit of a system: one fit for each length, or one of which snapshots are kept."""
    whole = SYSTEMS[name].package in ("topicloom", "topica")
    return [str(each) for each in lengths[name]] if whole else [" ".join(map(str, lengths[name]))]


def main() -> None:
    parser = shared.parser(__doc__)
    jobs.add_arguments(parser, OUT)
    shared.add_peers(parser, "the other packages")
    parser.add_argument("--parts", default=",".join(PARTS), help="parts, separated by commas")
    parser.add_argument("--only", default="", help="only systems whose name contains this text")
    parser.add_argument("--largest", type=int, default=max(GROWTH["docs"]), help="most documents")
    options = parser.parse_args()
    options.jobs = 1  # with a second process, times would be wrong
    chosen = [job for job in all_jobs(options.parts.split(","), options.only) if job["docs"] <= options.largest]
    jobs.run(chosen, partial(work, options.shared, options.peers), options)
    corpus_folder(options.shared, {"part": "epochs"})  # the page counts the tokens of 20 Newsgroups
    import speed_page

    speed_page.write(stored(options.out), PAGE)


if __name__ == "__main__":
    main()
