"""Planted topics: the synthetic experiment of W-LDA's paper (Nan et al. 2019, section 4), for every model.

    python benchmarks/synthetic.py [--jobs 2] [--variants GSM,ETM]

10,000 documents are drawn from LDA with 5 topics over 100 words, topics and theta from Dirichlet(.1); a model's topics
are paired with the planted ones so that the sum of total variations is least. Each seed draws a corpus of its own.
"""

from __future__ import annotations

import time
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

import cells
import shared
from topicloom.datasets import Synthetic, synthetic_lda

PAGE = Path(__file__).with_name("synthetic.md")
N_TOPICS, SEEDS = 5, range(3)
FOUND = 0.1  # total variation under which a topic counts as recovered
HEAD = """# Planted topics

The synthetic experiment of W-LDA's paper: 10,000 documents of some 60 words drawn from LDA, 100 words, 5 topics,
topics and theta ~ Dirichlet(.1). Each found topic is paired with a planted one; their distance is the total variation,
half the sum of absolute differences, from 0 to 1. Default settings, three seeds, each with a corpus of its own. `make
bench-synthetic` writes this page.

recovered: topics within .1 of the planted one, in each seed; largest: the worst topic of the worst seed; mean: of all
topics and seeds; theta: lowest correlation over topics and seeds of found and planted shares of the documents; s:
processor seconds of fit, in one thread.

"""


@cache
def planted(seed: int) -> Synthetic:
    return synthetic_lda(10_000, N_TOPICS, 100, alpha=0.1, eta=0.1, random_state=seed)


def recover(cell: cells.Cell) -> dict[str, Any]:
    """How far a fitted model's topics are from the planted ones."""
    made = planted(cell["seed"])
    data = {"train": made.corpus.counts, "vocab": made.corpus.vocabulary}
    model = shared.VARIANTS[cell["variant"]].make(N_TOPICS, cell["seed"], data)
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(made.corpus)
    seconds = {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    distance = np.abs(made.topics[:, None] - model.components_[None]).sum(2) / 2  # (K, K)
    pairs = linear_sum_assignment(distance)
    theta = model.transform(made.corpus)[:, pairs[1]]
    correlation = [float(np.corrcoef(theta[:, k], made.theta[:, k])[0, 1]) for k in range(N_TOPICS)]
    return {**seconds, "distances": distance[pairs].tolist(), "correlation": min(correlation)}


def line(variant: str, found: list[dict[str, Any]]) -> list[str]:
    """The row of the table for the seeds of one variant."""
    good = [row for row in found if "error" not in row]
    if not good:
        return [variant, "failed", "-", "-", "-", "-"]
    distances = np.array([row["distances"] for row in good])  # (seeds, K)
    recovered = (f"{(row < FOUND).sum()}" for row in distances)
    theta = f"{min(row['correlation'] for row in good):.3f}"
    seconds = cells.spread(good, "cpu", 1)
    failed = f", {len(found) - len(good)} failed" if len(good) < len(found) else ""
    return [
        variant, f"{', '.join(recovered)} of {N_TOPICS}{failed}", f"{distances.max():.3f}", f"{distances.mean():.3f}",
        theta, seconds,
    ]  # fmt: skip


def main() -> None:
    parser = shared.parser(__doc__)
    cells.arguments(parser, shared.RESULTS / "synthetic.jsonl")
    parser.add_argument("--variants", help="names of variants or models; all by default")
    options = parser.parse_args()
    names = [variant.name for variant in shared.variants(options.variants)]
    cells.run([{"variant": name, "seed": seed} for seed, name in product(SEEDS, names)], recover, options)
    rows = cells.latest(options.out, [{"variant": name, "seed": seed} for name in shared.VARIANTS for seed in SEEDS])
    header = ["variant", "recovered", "largest", "mean", "theta", "s"]
    by_variant = {name: [row for row in rows if row["variant"] == name] for name in shared.VARIANTS}
    body = [line(name, found) for name, found in by_variant.items() if found]
    PAGE.write_text(HEAD + cells.markdown(header, body), encoding="utf-8")


if __name__ == "__main__":
    main()
