"""Measure what checkpoints cost at their default interval: the share of the time of a fit, and their size.

    python benchmarks/checkpoints.py

The time that the fit spends in writing is measured within the fit, because the times of two fits differ by more than
that from one call to the next.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import shared
import topicloom as tl
from topicloom.training.callbacks import RunState
from topicloom.training.checkpoints import Checkpoints

FITS: list[tuple[str, int, str, dict[str, Any]]] = [
    ("bbc-news", 20, "Loom", {}),
    ("bbc-news", 20, "GSM", {}),
    ("bbc-news", 20, "LDA", {"method": "gibbs"}),
    ("20ng", 50, "Loom", {}),
    ("20ng", 50, "GSM", {}),
    ("20ng", 50, "ETM", {}),
    ("20ng", 200, "DirichletVAE", {}),
]


class Timed(Checkpoints):
    """Checkpoints that measure how long they take."""

    seconds = 0.0
    written = 0

    def _write(self, state: RunState, finished: bool = False) -> None:
        began = time.perf_counter()
        super()._write(state, finished)
        self.seconds += time.perf_counter() - began
        self.written += 1


def main() -> None:
    given = shared.parser(__doc__).parse_args()
    lines = [
        "# What checkpoints cost",
        "",
        "`make bench-checkpoints` fits models with `checkpoint=DIRECTORY`, whose default interval is one minute. Every",
        "fit writes its final state as well. The last column is the share of the fit that was spent in writing.",
        "",
        "| corpus | K | model | fit, s | written | size, MB | writing, s | share |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, n_topics, model, settings in FITS:
        data = shared.load(given.shared, name)
        corpus = tl.Corpus.from_counts(data["train"], data["vocab"])
        with tempfile.TemporaryDirectory() as folder:
            timed = Timed(folder)
            began = time.perf_counter()
            getattr(tl, model)(n_topics, random_state=0, **settings).fit(corpus, checkpoint=timed)
            seconds = time.perf_counter() - began
            size = max(path.stat().st_size for path in Path(folder).iterdir()) / 1e6
        shown = " ".join([model, *settings.values()])
        lines.append(
            f"| {name} | {n_topics} | {shown} | {seconds:.1f} | {timed.written} | {size:.1f} | {timed.seconds:.3f} | "
            f"{timed.seconds / seconds:.2%} |"
        )
        print(lines[-1], flush=True)
    Path(__file__).with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
