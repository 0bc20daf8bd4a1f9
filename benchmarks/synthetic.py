"""Recover planted topics with every model: the synthetic experiment of Nan et al. 2019 (W-LDA), section 4, and pairs
of topics that have part of their words in common.

    python benchmarks/synthetic.py [--jobs 2] [--variants GSM,ETM] [--peers .venv-peers/bin/python]

The topics of a model are paired with the planted ones so that the sum of the total variations is minimal. Each seed has
its own corpus. topica runs in the environment of other packages, and is left out without it.
"""

from __future__ import annotations

import time
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import best
import jobs
import shared
from topicloom.datasets import synthetic_lda

PAGE = Path(__file__).with_name("synthetic.md")
SEEDS = range(3)
N_TOPICS = 5
MAX_DISTANCE = 0.1  # total variation below which a topic counts as recovered
PEER = best.STRONGEST
COMMON = (0.3, 0.5, 0.7)  # the shares of their words that the two topics of a theme have in common
N_THEMES, N_THEME_WORDS, N_THEME_DOCS, THEME_LENGTH = 5, 1000, 2000, 60
STOP_WORDS = 0.2  # the share of the tokens that are common words, whose frequencies follow Zipf's law
HEAD = """# Planted topics

All models have their default settings and three seeds, and each seed has its own corpus; "ProdLDA 60 epochs" has
`epochs=60` and `weight_decay=1e-4`. Each found topic is paired with a planted one. Their distance is the total
variation, half the sum of the absolute differences, between 0 and 1. topica's sparse sampler has 1,000 iterations,
and a Dirichlet parameter of .1 for each topic at first; it infers theta itself. `make bench-synthetic` writes this
page.

## Five topics

This is the synthetic experiment of W-LDA's paper: 10,000 documents of some 60 words are drawn from LDA with 100 words
and 5 topics, where topics and theta ~ Dirichlet(.1).

- recovered: topics with a distance of less than .1 from the planted topic, for each seed.
- largest distance: that of the worst topic of the worst seed.
- mean distance: the mean over all topics and seeds.
- theta: the correlation of found and planted topic shares of the documents, the lowest over topics and seeds.
- seconds: processor time of the fit, with one thread.

"""


THEMES = """
## Two topics of one theme

2,000 documents of 60 words are drawn from LDA with 1,000 words and 10 topics in pairs, theta ~ Dirichlet(.1). A fifth
of the tokens are common words, whose frequencies follow Zipf's law. The other words of a topic are drawn from
Dirichlet(.05), and the two topics of a pair have a share of them in common: 30, 50 or 70 %.

- told apart: pairs of which both topics are found, for each seed. A topic is found if its distance from the planted one
  is less than half of the distance between the two topics of the pair.
- distance: the mean over all topics and seeds.

"""


@cache
def planted(seed: int) -> tuple[sp.csr_array, np.ndarray, np.ndarray]:
    """Draw the counts (D, V), topics (K, V) and theta (D, K) of a seed."""
    drawn = synthetic_lda(10_000, N_TOPICS, 100, alpha=0.1, eta=0.1, random_state=seed)
    return drawn.corpus.counts, drawn.topics, drawn.theta


@cache
def themes(common: float, seed: int) -> tuple[sp.csr_array, np.ndarray, np.ndarray]:
    """Draw the counts (D, V), topics (K, V) and theta (D, K) of a seed, where topics 2n and 2n + 1 have one theme."""
    random, zipf = np.random.default_rng(seed), 1 / np.arange(1, N_THEME_WORDS + 1)
    theme = random.dirichlet(np.full(N_THEME_WORDS, 0.05), N_THEMES).repeat(2, axis=0)  # (K, V)
    own = random.dirichlet(np.full(N_THEME_WORDS, 0.05), 2 * N_THEMES)
    topics = (1 - STOP_WORDS) * (common * theme + (1 - common) * own) + STOP_WORDS * zipf / zipf.sum()
    theta = random.dirichlet(np.full(2 * N_THEMES, 0.1), N_THEME_DOCS)
    counts = random.multinomial(THEME_LENGTH, theta @ topics)
    return sp.csr_array(counts.astype(np.float32)), topics, theta


def recover(folder: Path, python: Path, job: jobs.Job) -> dict[str, Any]:
    """Fit a model, and return the distances of its topics from the planted ones."""
    counts, topics, true = themes(job["common"], job["seed"]) if job["common"] else planted(job["seed"])
    n_topics, n_words = topics.shape
    data = {"train": counts, "test": counts[:20], "vocab": [f"w{word}" for word in range(n_words)]}
    if job["variant"] == PEER:
        fitted = best.fit_peer(folder, data, python, best.PEERS[PEER], n_topics, 1000, 1, job["seed"])
        found, theta = fitted["beta"], fitted["theta_train"]
        seconds = {"seconds": float(fitted["seconds"]), "cpu": float(fitted["cpu_seconds"])}
    else:
        model = shared.VARIANTS[job["variant"]].make(n_topics, job["seed"], data)
        wall, cpu = time.perf_counter(), time.process_time()
        model.fit(counts, vocabulary=data["vocab"])
        seconds = {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
        found, theta = model.components_, model.transform(counts)
    columns, distance = shared.matched(topics, found)
    correlation = [float(np.corrcoef(theta[:, k], true[:, row])[0, 1]) for row, k in enumerate(columns)]
    twins = np.abs(topics[::2] - topics[1::2]).sum(1) / 2 if job["common"] else np.empty(0)  # (K / 2,)
    apart = int((distance.reshape(-1, 2).max(1) < twins / 2).sum()) if job["common"] else 0
    return {**seconds, "distances": distance.tolist(), "correlation": min(correlation), "apart": apart}


def theme_line(variant: str, found: list[dict[str, Any]]) -> list[str]:
    """Return the row of the second table for one variant."""
    cells = []
    for common in COMMON:
        rows = [row for row in found if row["common"] == common and "error" not in row]
        apart = ", ".join(str(row["apart"]) for row in rows)
        cells += [
            f"{apart} of {N_THEMES}" if rows else "-",
            f"{np.mean([row['distances'] for row in rows]):.3f}" if rows else "-",
        ]
    return [variant, *cells]


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
    shared.add_peers(parser, "topica")
    parser.add_argument("--variants", help="names of variants or models, separated by commas; default: all")
    options = parser.parse_args()
    wanted = None if options.variants is None else [name.strip() for name in options.variants.split(",")]
    ours = None if wanted is None else ",".join(name for name in wanted if name != PEER)
    names = [variant.name for variant in shared.variants(ours)]
    names += [PEER] if options.peers.exists() and (wanted is None or PEER in wanted) else []
    every = [*shared.VARIANTS, PEER]

    def listed(variants: list[str]) -> list[jobs.Job]:
        return [
            {"variant": name, "common": common, "seed": seed}
            for seed, common, name in product(SEEDS, (0.0, *COMMON), variants)
        ]

    jobs.run(listed(names), partial(recover, options.shared, options.peers), options)
    rows = jobs.latest(options.out, listed(every))
    header = ["variant", "recovered", "largest distance", "mean distance", "theta", "seconds"]
    by_variant = {name: [row for row in rows if row["variant"] == name] for name in every}
    plain = {name: [row for row in found if not row["common"]] for name, found in by_variant.items()}
    themed = {name: [row for row in found if row["common"]] for name, found in by_variant.items()}
    columns = [f"{title}, {common:.0%}" for common in COMMON for title in ("told apart", "distance")]
    PAGE.write_text(
        HEAD
        + jobs.markdown(header, [line(name, found) for name, found in plain.items() if found])
        + THEMES
        + jobs.markdown(["variant", *columns], [theme_line(name, found) for name, found in themed.items() if found]),
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
