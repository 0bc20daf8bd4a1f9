"""Compare ensembles with single fits: three ensembles of five fits of a model, K=20, bbc-news and so-titles.

    python benchmarks/ensembles.py [--corpora bbc-news] [--model gsm] [--shared DIR]

Of so-titles, 3,000 titles are drawn, and a quarter of them is held out.
"""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

import shared
import topicloom as tl
from topicloom.metrics import topic_returns
from topicloom.models import estimator_named

N_TOPICS, N_FITS, N_ENSEMBLES, N_TITLES = 20, 5, 3, 3000
_COMPARED = 6  # fits whose topics are matched with each other
MEASURES = ("document_npmi", "topic_diversity", "nmi", "purity", "perplexity_completion")


def parts(folder: Path, name: str) -> tuple[tl.Corpus, tl.Corpus]:
    """Return the training and the test documents."""
    if name != "so-titles":
        data = shared.load(folder, name)
        train, test = (
            tl.Corpus.from_counts(data[part], data["vocab"], labels=data[f"{part}_labels"])
            for part in ("train", "test")
        )
        return train, test
    whole = tl.Corpus.from_file(folder / "data" / name / "titles.csv", text="text", label="label", language="en")
    rows = np.random.default_rng(0).permutation(np.flatnonzero(~whole.is_empty))[:N_TITLES]
    return whole.subset(np.sort(rows[N_TITLES // 4 :])), whole.subset(np.sort(rows[: N_TITLES // 4]))


def measured(model: tl.TopicModel, train: tl.Corpus, test: tl.Corpus) -> dict[str, float]:
    found = tl.evaluate(model, test, training=train, measures=MEASURES)
    return {"topics": len(model.components_), **{name: float(found[name]) for name in MEASURES}}


def line(name: str, rows: list[dict[str, float]], models: list[Any]) -> str:
    """Return a row of the table: means and standard deviations, and the share of topics that return in another one."""
    returns = [
        topic_returns(a.components_, [b.components_], n_chance=0).mean for a, b in permutations(models[:_COMPARED], 2)
    ]
    cells = []
    for measure in rows[0]:
        values = [row[measure] for row in rows]
        digits = {"topics": 1, "perplexity_completion": 0}.get(measure, 3)
        cells.append(f"{np.mean(values):.{digits}f} ± {np.std(values, ddof=1):.{digits}f}")
    return f"| {name} | {' | '.join(cells)} | {np.mean(returns):.2f} |"


def main() -> None:
    parser = shared.parser(__doc__)
    parser.add_argument("--corpora", default="bbc-news,so-titles", help="names, separated by commas")
    parser.add_argument("--model", default="gsm", help="a model, with settings after a colon")
    options = parser.parse_args()
    for corpus in options.corpora.split(","):
        train, test = parts(options.shared, corpus)
        print(f"{corpus}: {train}")
        print("| | topics | NPMI | TD | NMI | purity | perplexity | return |\n|---|---|---|---|---|---|---|---|")
        fits = [
            estimator_named(options.model).set_params(n_topics=N_TOPICS, random_state=100 * group + fit).fit(train)
            for group in range(N_ENSEMBLES)
            for fit in range(N_FITS)
        ]
        groups = [fits[first : first + N_FITS] for first in range(0, len(fits), N_FITS)]
        ensembles = [tl.Ensemble.of(group, train) for group in groups]
        for name, models in ((options.model, fits), ("ensemble", ensembles)):
            print(line(name, [measured(model, train, test) for model in models], models), flush=True)


if __name__ == "__main__":
    main()
