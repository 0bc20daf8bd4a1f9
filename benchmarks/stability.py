"""Fit every model with ten seeds on bbc-news, K=20, and count collapsed fits and values that are not finite.

    python benchmarks/stability.py [--jobs 2] [--variants GSM,ETM]

The jobs are those of models.py with more seeds, and the file of results is the same. seeds.md is written from all
results in the file.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import jobs
import models
import shared

PAGE = Path(__file__).with_name("seeds.md")
CORPUS, N_TOPICS, SEEDS = ("bbc-news",), (20,), range(10)
RANGES = {"td6": ("TD .6", 2), "npmi6": ("NPMI .6", 3), "nmi": ("NMI", 3)}
HEAD = """# Ten seeds

This page compares the worst seed of every model with its best, on bbc-news with K=20 and default settings; "ProdLDA 60
epochs" has `epochs=60` and `weight_decay=1e-4`. The figures are from test documents.
`make bench-seeds` writes this page.

- failed: seeds that ended in an error or had a value that is not finite.
- active topics: topics that are the main topic of some training document, in the worst seed.
- active units: dimensions of the latent code whose KL divergence is above .01, in the worst seed.
- duplicates: pairs of topics that share 8 of their 10 top words (relevance .6), in the worst seed.
- The other columns have the lowest / mean / highest value.

"""


def line(variant: str, found: list[dict[str, Any]]) -> list[str]:
    """Return the row of the table for one variant."""
    good = [row for row in found if "error" not in row]
    failed = len(found) - sum(row["finite"] for row in good)
    if not good:
        return [variant, str(len(found)), str(failed)] + ["-"] * (3 + len(RANGES))
    coded = [row for row in good if "units" in row]
    units = f"{min(row['active_units'] for row in coded)} of {coded[0]['units']}" if coded else "-"
    alive = f"{min(row['alive'] for row in good)} of {N_TOPICS[0]}"
    ranges = []
    for name, (_, digits) in RANGES.items():
        values = [row[name] for row in good]
        ranges.append(" / ".join(f"{value:.{digits}f}" for value in (min(values), np.mean(values), max(values))))
    return [variant, str(len(found)), str(failed), alive, units, str(max(row["twins"] for row in good)), *ranges]


def main() -> None:
    parser = shared.parser(__doc__)
    jobs.add_arguments(parser, models.OUT)
    parser.add_argument("--variants", help="names of variants or models, separated by commas; default: all")
    options = parser.parse_args()
    names = [variant.name for variant in shared.variants(options.variants)]
    requested = models.all_jobs(names, CORPUS, N_TOPICS, SEEDS)
    jobs.run(requested, partial(models.fit_and_evaluate, options.shared), options)
    rows = jobs.latest(options.out, models.all_jobs(list(shared.VARIANTS), CORPUS, N_TOPICS, SEEDS))
    header = ["variant", "seeds", "failed", "active topics", "active units", "duplicates"]
    header += [title for title, _ in RANGES.values()]
    by_variant = {name: [row for row in rows if row["variant"] == name] for name in shared.VARIANTS}
    body = [line(name, found) for name, found in by_variant.items() if found]
    PAGE.write_text(HEAD + jobs.markdown(header, body), encoding="utf-8")


if __name__ == "__main__":
    main()
