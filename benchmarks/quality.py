"""Compare quality and speed of GSM with the Gibbs sampler on 20 Newsgroups, one after the other in one process.

    python benchmarks/quality.py [--shared ../shared] [--seeds 3]

The measures are those of ../shared/judge/judge.py, which is independent of the package. tomotopy's LDA with 200
iterations and two workers is timed before each pair of fits, and times are given as ratios, because machines differ.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import shared
import topicloom as tl

COLUMNS = ("seconds", "npmi", "td", "npmi6", "td6", "purity", "nmi", "acc", "ppl")


def sampler_seconds(data: dict[str, Any], n_topics: int, seed: int) -> float:
    """Return the training time of tomotopy's sampler alone, without the work that the package does around it."""
    import tomotopy

    model = tomotopy.LDAModel(k=n_topics, seed=seed)
    counts = data["train"]
    for first, end in zip(counts.indptr[:-1], counts.indptr[1:], strict=True):
        words = np.repeat(counts.indices[first:end], counts.data[first:end].astype(int))
        if len(words):
            model.add_doc(words.astype(str).tolist())
    start = time.perf_counter()
    model.train(200, workers=2)
    return time.perf_counter() - start


def main() -> None:
    parser = shared.parser(__doc__)
    parser.add_argument("--corpus", default="20ng")
    parser.add_argument("--topics", type=int, default=50, help="number of topics")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds")
    options = parser.parse_args()
    data = shared.load(options.shared, options.corpus)
    table = Table("model", "seed", *COLUMNS, "time / sampler's 200", title=f"{options.corpus}, K={options.topics}")
    for seed in range(options.seeds):
        reference = sampler_seconds(data, options.topics, seed)
        for name, model in (
            ("GSM", tl.GSM(options.topics, random_state=seed)),
            ("LDA gibbs 200", tl.LDA(options.topics, method="gibbs", epochs=200, n_jobs=2, random_state=seed)),
        ):
            fitted, seconds = shared.fit(model, data)
            row = {"seconds": seconds} | shared.evaluate(options.shared, data, fitted)
            figures = [f"{row.get(column, float('nan')):.4g}" for column in COLUMNS]
            table.add_row(name, str(seed), *figures, f"{seconds / reference:.2f}")
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
