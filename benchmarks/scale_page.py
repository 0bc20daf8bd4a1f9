"""The page of scale.py: what a billion documents cost on 64 machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import allreduce
from allreduce import Link, simulate
from jobs import markdown
from scale import (
    BATCHES,
    ENCODER_EVERY,
    FASTER,
    GLOBAL_BATCHES,
    KEPT_BYTES,
    LATE,
    MODELS,
    N_DOCS,
    N_TOPICS,
    N_WORDS,
    NETWORKS,
    RANKS,
    SIZES,
    WORDS_PER_DOC,
)

DRAWS = 12  # of late machines
HEAD = f"""# A billion documents on 64 machines, computed

`make bench-scale` writes this page; [docs/scale.md](../docs/scale.md) discusses it. The corpus has {N_DOCS:,} documents
of {WORDS_PER_DOC} different words, V={N_WORDS:,} and K={N_TOPICS:,}. Steps, messages and gloo were measured here. The
figures for {RANKS} machines are computed from them, and nothing was run on {RANKS} machines.

## Measured steps

V={N_WORDS:,}, K={N_TOPICS:,}, an encoder of 128 units, one thread; processor seconds. A step costs a fixed part, for
the matrices of V rows, and a part for each document, from a straight line through two batch sizes. "end of a pass" is
what Loom does once a pass, and "encoder" what every {ENCODER_EVERY}th batch takes longer, in which its encoder learns.
Memory is the peak above that before the fit.

"""
GLOO = """
## The simulated all-reduce

The simulation agrees with the closed formula of the ring within {error:.0e} for 2 to 64 machines that arrive at once.
Beside it is gloo's all_reduce between processes of this machine, whose {cores} cores they share. Latency
({latency:.0f} µs) and bandwidth ({bandwidth:.2f} GB/s) come from the shortest and the longest message of two processes;
everything else is predicted. On a busy machine, short messages wait for a core, which the simulation does not know.

"""
MESSAGES = """
## What a step sends

Counted in a fit by two processes, with the bytes that the parameters explain. In the counting stage of Loom, every
{every}th batch trains the encoder. The counts (V, K) are sent once a pass.

"""
COST = f"""
## {RANKS} machines

The time of a pass over all documents, with late machines: the time of a machine for a step deviates by {LATE:.0%}.
"1 core" machines are as fast as one core of this machine; "×{FASTER}" assumes machines {FASTER} times as fast, in
memory bandwidth too. "network" is the share of the time in which no machine computes, or all wait for a late one.

"""
RANKS_HEAD = """
## From one machine to 256

Machines ×{faster}, 100 Gbit/s, batches of {batch:,}; the time of a pass, and the speed
relative to as many times that of one machine.

"""


@dataclass(frozen=True)
class Rates:
    """What was measured of a model."""

    fixed: float  # seconds of a step without documents
    per_doc: float
    end: float  # seconds at the end of a pass
    encoder: float  # seconds that a step which trains the encoder takes longer than the others, in Loom
    memory: float  # bytes
    parameters: float
    messages: float  # of a step that trains by gradients
    messages_between: float  # of a step that does not

    @property
    def gradient(self) -> float:
        """Bytes of the gradients that are sent."""
        return 4 * self.parameters


def rates(rows: list[dict[str, Any]], model: str) -> Rates | None:
    """Return the rates of a model, or None if a measurement is missing."""
    steps = {row["size"]: row for row in rows if row["what"] == "step" and row["model"] == model}
    sent = [row for row in rows if row["what"] == "messages" and row["model"] == model]
    if len(steps) < len(BATCHES) or not sent:
        return None
    low, high = steps[BATCHES[0]], steps[BATCHES[-1]]
    per_doc = max(0.0, (high["step"] - low["step"]) / (BATCHES[-1] - BATCHES[0]))
    parameters = low["parameters"] - (N_WORDS * N_TOPICS if model == "Loom" else 0)  # its topics have no gradients
    fixed = max(0.0, low["step"] - per_doc * BATCHES[0])
    between = sent[0]["messages_between"]
    encoder = max(0.0, low.get("encoder_step", 0.0) - low["step"])
    return Rates(fixed, per_doc, low["end"], encoder, low["memory"], parameters, sent[0]["messages"], between)


@dataclass(frozen=True)
class Cost:
    """What a pass over all documents costs."""

    seconds: float
    computing: float  # seconds of one machine
    sent: float  # bytes that each machine sends

    @property
    def waiting(self) -> float:
        return 1 - self.computing / self.seconds


def cost(model: str, rate: Rates, batch: int, link: Link, faster: float, n_ranks: int = RANKS) -> Cost:
    """Return the cost of a pass; every all-reduce is simulated, as a ring."""
    steps, computing = N_DOCS / batch, (rate.fixed + rate.per_doc * batch / n_ranks) / faster
    small, volume = simulate("ring", 64.0, [0.0] * n_ranks, link), 2 * (n_ranks - 1) / n_ranks
    learning = rate.encoder / faster
    trained = synchronised(computing + learning, rate.gradient, n_ranks, link) + (rate.messages - 1) * small
    if model != "Loom":
        return Cost(steps * trained, steps * computing, steps * volume * rate.gradient)
    counts = 4.0 * (N_WORDS * N_TOPICS + N_WORDS + N_TOPICS)
    between = synchronised(computing, 64.0, n_ranks, link) + (rate.messages_between - 1) * small
    some = steps / ENCODER_EVERY
    end = rate.end / faster
    seconds = some * trained + (steps - some) * between + end + simulate("ring", counts, [0.0] * n_ranks, link)
    return Cost(seconds, steps * computing + some * learning + end, volume * (some * rate.gradient + counts))


def synchronised(computing: float, size: float, n_ranks: int, link: Link) -> float:
    """Return the mean time from the start of a step to the end of its all-reduce, with late machines."""
    random = np.random.default_rng(0)
    arrivals = computing * np.exp(random.normal(0, LATE, (DRAWS, n_ranks)))
    return float(np.mean([simulate("ring", size, row.tolist(), link) for row in arrivals]))


def page(rows: list[dict[str, Any]]) -> str:
    """Format the page from the measurements that there are."""
    found = {model: rate for model in MODELS if (rate := rates(rows, model)) is not None}
    body = [
        [model, f"{rate.fixed:.3f}", f"{1e3 * rate.per_doc:.2f}", f"{rate.end:.1f}" if rate.end else "-",
         f"{rate.encoder:.2f}" if rate.encoder else "-",
         f"{rate.memory / 2**30:.1f}", f"{rate.parameters / 1e6:.0f}"]
        for model, rate in found.items()
    ]  # fmt: skip
    header = ["model", "fixed part, s", "per document, ms", "end of a pass, s", "encoder, s", "memory, GiB",
              "million gradients"]  # fmt: skip
    return HEAD + markdown(header, body) + gloo(rows) + messages(rows) + machines(found)


def gloo(rows: list[dict[str, Any]]) -> str:
    """Format the comparison of the simulation with the closed formula and with gloo."""
    times = {row["size"]: row["measured"] for row in rows if row["what"] == "gloo"}
    if len(times) < 2:
        return ""
    link, cores = allreduce.calibrated(SIZES, times[2]), allreduce.n_cores()
    sizes = [(p, Link(1e-5, 1e9), 1e6 * p) for p in (2, 3, 4, 8, 64)]
    pairs = [(simulate("ring", s, [0.0] * p, li), allreduce.closed_form("ring", s, p, li)) for p, li, s in sizes]
    error = max(abs(a / b - 1) for a, b in pairs)
    body = []
    for number, size in enumerate(SIZES):
        line = [f"{size / 1024:,.0f}"]
        for n_ranks in (2, 4):
            real = times[n_ranks][number]
            simulated = simulate("ring", size, [0.0] * n_ranks, link, cores=cores)
            line += [f"{1e3 * real:.2f}", f"{1e3 * simulated:.2f}", f"{simulated / real:.2f}"]
        body.append(line)
    names = (f"{what}, {p} processes" for p in (2, 4) for what in ("gloo, ms", "simulated, ms", "ratio"))
    head = GLOO.format(error=error, cores=cores, latency=1e6 * link.latency, bandwidth=link.bandwidth / 1e9)
    return head + markdown(["message, KiB", *names], body)


def messages(rows: list[dict[str, Any]]) -> str:
    """Format what a step sends."""
    body = [
        [row["model"], f"{row['messages']:.0f}", f"{row['bytes']:,.0f}", f"{4 * row['parameters']:,.0f}",
         f"{row['messages_between']:.0f}", f"{row['bytes_between']:.0f}"]
        for row in rows if row["what"] == "messages"
    ]  # fmt: skip
    header = ["model", "messages", "bytes", "4 × parameters", "messages between", "bytes between"]
    return MESSAGES.format(every=ENCODER_EVERY) + markdown(header, body)


def machines(found: dict[str, Rates]) -> str:
    """Format the tables of the cluster."""
    body = []
    for model, rate in found.items():
        for batch in GLOBAL_BATCHES:
            line = [model, f"{batch:,}"]
            for faster in (1, FASTER):
                costs = [cost(model, rate, batch, link, faster) for link in NETWORKS.values()]
                line += [f"{_time(each.seconds)} ({each.waiting:.0%})" for each in costs]
            body.append([*line, f"{costs[0].sent / 1e12:.2f}"])
    titles = (f"{speed}, {name} (network)" for speed in ("1 core", f"×{FASTER}") for name in NETWORKS)
    text = COST + markdown(["model", "batch", *titles, "sent by each, TB"], body) + memory(found)
    sizes, batch, link = (1, 4, 16, 64, 256), GLOBAL_BATCHES[-1], NETWORKS["100 Gbit/s"]
    lines = []
    for model, rate in found.items():
        times = [cost(model, rate, batch, link, FASTER, n).seconds for n in sizes]
        pairs = zip(sizes, times, strict=True)
        lines.append([model, *(f"{_time(time)} ({times[0] / time / n:.0%})" for n, time in pairs)])
    head = RANKS_HEAD.format(faster=FASTER, batch=batch)
    return text + head + markdown(["model", *map(str, sizes)], lines)


def memory(found: dict[str, Rates]) -> str:
    """Format the memory of a machine, in GiB."""
    per_rank, body = N_DOCS / RANKS, []
    for model, rate in found.items():
        sent = 2 * max(rate.gradient, 4.0 * N_WORDS * N_TOPICS if model == "Loom" else 0.0)
        kept = KEPT_BYTES * per_rank if model == "Loom" else 0.0
        mapped = 8 * WORDS_PER_DOC * per_rank
        figures = (rate.memory, sent, kept, rate.memory + sent + kept, mapped)
        body.append([model, *(f"{value / 2**30:.1f}" for value in figures)])
    header = ["model", "fit, measured", "message and its copy", "counts of its documents", "sum", "corpus on its disk"]
    head = f"\nMemory of each of {RANKS} machines, GiB, with batches of 64 documents a machine:\n\n"
    return head + markdown(header, body)


def _time(seconds: float) -> str:
    """Return a duration in a suitable unit."""
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 86400:.1f} d" if seconds > 172800 else f"{seconds / 3600:.1f} h"
