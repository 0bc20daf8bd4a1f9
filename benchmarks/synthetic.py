"""Recover planted topics with every model: the synthetic experiment of Nan et al. 2019 (W-LDA), section 4.

    python benchmarks/synthetic.py [--jobs 2] [--variants GSM,ETM]

10,000 documents are drawn from LDA with 5 topics and 100 words; topics and theta are drawn from Dirichlet(.1). The
topics of a model are paired with the planted ones so that the sum of the total variations is minimal. Each seed has its
own corpus.
"""

from __future__ import annotations

import time
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

import jobs
import shared
from topicloom.datasets import Synthetic, synthetic_lda

PAGE = Path(__file__).with_name("synthetic.md")
N_TOPICS, SEEDS = 5, range(3)
MAX_DISTANCE = 0.1  # total variation below which a topic counts as recovered
HEAD = """# Planted topics

This is the synthetic experiment of W-LDA's paper: 10,000 documents of some 60 words are drawn from LDA with 100 words
and 5 topics, where topics and theta ~ Dirichlet(.1). Each found topic is paired with a planted one. Their distance is
the total variation, half the sum of the absolute differences, between 0 and 1. All models have their default settings
and three seeds, and each seed has its own corpus. `make bench-synthetic` writes this page.

- recovered: topics with a distance of less than .1 from the planted topic, for each seed.
- largest distance: that of the worst topic of the worst seed.
- mean distance: the mean over all topics and seeds.
- theta: the correlation of found and planted topic shares of the documents, the lowest over topics and seeds.
- seconds: processor time of the fit, with one thread.

"""


@cache
def planted(seed: int) -> Synthetic:
    """Draw the corpus of a seed."""
    return synthetic_lda(10_000, N_TOPICS, 100, alpha=0.1, eta=0.1, random_state=seed)


def recover(job: jobs.Job) -> dict[str, Any]:
    """Fit a model, and return the distances of its topics from the planted ones."""
    drawn = planted(job["seed"])
    data = {"train": drawn.corpus.counts, "vocab": drawn.corpus.vocabulary}
    model = shared.VARIANTS[job["variant"]].make(N_TOPICS, job["seed"], data)
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(drawn.corpus)
    seconds = {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    distance = np.abs(drawn.topics[:, None] - model.components_[None]).sum(2) / 2  # (K, K)
    pairs = linear_sum_assignment(distance)
    theta = model.transform(drawn.corpus)[:, pairs[1]]
    correlation = [float(np.corrcoef(theta[:, k], drawn.theta[:, k])[0, 1]) for k in range(N_TOPICS)]
    return {**seconds, "distances": distance[pairs].tolist(), "correlation": min(correlation)}


def line(variant: str, found: list[dict[str, Any]]) -> list[str]:
    """Return the row of the table for one variant."""
    good = [row for row in found if "error" not in row]
    if not good:
        return [variant, "failed", "-", "-", "-", "-"]
    distances = np.array([row["distances"] for row in good])  # (seeds, K)
    recovered = (f"{(row < MAX_DISTANCE).sum()}" for row in distances)
    theta = f"{min(row['correlation'] for row in good):.3f}"
    seconds = jobs.spread(good, "cpu", 1)
    failed = f", {len(found) - len(good)} failed" if len(good) < len(found) else ""
    return [
        variant, f"{', '.join(recovered)} of {N_TOPICS}{failed}", f"{distances.max():.3f}", f"{distances.mean():.3f}",
        theta, seconds,
    ]  # fmt: skip


def main() -> None:
    parser = shared.parser(__doc__)
    jobs.add_arguments(parser, shared.RESULTS / "synthetic.jsonl")
    parser.add_argument("--variants", help="names of variants or models, separated by commas; default: all")
    options = parser.parse_args()
    names = [variant.name for variant in shared.variants(options.variants)]
    jobs.run([{"variant": name, "seed": seed} for seed, name in product(SEEDS, names)], recover, options)
    rows = jobs.latest(options.out, [{"variant": name, "seed": seed} for name in shared.VARIANTS for seed in SEEDS])
    header = ["variant", "recovered", "largest distance", "mean distance", "theta", "seconds"]
    by_variant = {name: [row for row in rows if row["variant"] == name] for name in shared.VARIANTS}
    body = [line(name, found) for name, found in by_variant.items() if found]
    PAGE.write_text(HEAD + jobs.markdown(header, body), encoding="utf-8")


if __name__ == "__main__":
    main()
