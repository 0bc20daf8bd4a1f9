"""Ten seeds of every model on bbc-news with K=20: does any of them collapse, or end in a number that is none?

    python benchmarks/stability.py [--jobs 2] [--variants GSM,ETM]

The cells are those of models.py, in the same file, with more seeds. seeds.md is written from all that the file has.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import cells
import models
import shared

PAGE = Path(__file__).with_name("seeds.md")
CORPUS, N_TOPICS, SEEDS = ("bbc-news",), (20,), range(10)
RANGES = {"td6": ("TD 6", 2), "npmi6": ("NPMI 6", 3), "nmi": ("NMI", 3)}
HEAD = """# Ten seeds

bbc-news, K=20, default settings, judged on test documents: the worst of the seeds beside the best. `make bench-seeds`
writes this page.

failed: seeds that ended in an error or in a number that is not finite; alive: topics that are the largest of some
training document, in the worst seed; units: dimensions of the latent code that say something of a document (KL above
.01), in the worst seed; twins: pairs of topics that share 8 of their 10 words (relevance .6), in the worst seed. The
rest is lowest / mean / highest.

"""


def line(variant: str, found: list[dict[str, Any]]) -> list[str]:
    """The row of the table for the seeds of one variant."""
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
    cells.arguments(parser, models.OUT)
    parser.add_argument("--variants", help="names of variants or models; all by default")
    options = parser.parse_args()
    names = [variant.name for variant in shared.variants(options.variants)]
    cells.run(models.all_cells(names, CORPUS, N_TOPICS, SEEDS), partial(models.fit_and_judge, options.shared), options)
    rows = cells.latest(options.out, models.all_cells(list(shared.VARIANTS), CORPUS, N_TOPICS, SEEDS))
    header = ["variant", "seeds", "failed", "alive", "units", "twins", *(title for title, _ in RANGES.values())]
    by_variant = {name: [row for row in rows if row["variant"] == name] for name in shared.VARIANTS}
    body = [line(name, found) for name, found in by_variant.items() if found]
    PAGE.write_text(HEAD + cells.markdown(header, body), encoding="utf-8")


if __name__ == "__main__":
    main()
