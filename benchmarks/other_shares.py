"""Recover planted topics from corpora of other sizes and forms than those of shares.py: benchmarks/other_shares.md.

    python benchmarks/other_shares.py [--jobs 2] [--variants GSM,ETM] [--kinds titles,steep] [--seeds 2]

No setting was chosen on these corpora, except for a limit of Loom's that the page names. Results are stored in
results/other_shares.jsonl, and a run continues where the last one ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import jobs
import shared
import shares

PAGE = Path(__file__).with_name("other_shares.md")
HEAD = """# Shares of topics in other planted corpora

[shares.md](shares.md) has planted corpora of nine sizes, and settings were chosen while its tables were read. The
corpora of this page differ from them, and no setting was chosen on them, with one exception: a limit of Loom's was
introduced after its first results on seeds 0 to 2 had been read. Seeds 3 and 4 were fitted after that. All models have
their default settings, and as many topics as were planted; "ProdLDA 60 epochs" has `epochs=60` and
`weight_decay=1e-4`. `make bench-other-shares` writes this page.

Documents are drawn from LDA. Shares are drawn from Dirichlet(a) with a between .5 and 1, except those of "steep" and
equal ones. Theta is drawn from Dirichlet(concentration times shares): a small concentration gives each document a
single topic.

"""
FOOT = """
Each cell has the correlation of the planted and the found shares (mean over seeds), and how many topics with at least
3 % of the tokens were not found (total variation distance of .3 or more). The last two columns have the mean of the
correlations and the sum of topics that were not found.
"""
EQUAL = """
## Rare words, few tokens and equal shares

Where all words are rare and documents have few tokens, a model may give one topic a large part of everything, although
all topics are equally large. Nothing was chosen on these corpora either. Each cell has the largest share that the model
finds (mean over seeds), and how many times an equal share this is.

"""


@dataclass(frozen=True)
class Kind:
    """A kind of corpus: sizes, the least and the greatest length of documents, and how topics and theta are drawn."""

    meaning: str
    n_topics: int
    n_docs: int
    n_words: int
    shortest: int
    longest: int
    eta: float  # Dirichlet parameter of the topics
    common: float  # share of the common words in all topics
    concentration: float
    are_lognormal: bool = False  # lengths
    are_zipf: bool = False  # words of topics
    are_equal: bool = False  # shares
    median: float = 40  # of lognormal lengths, with equal shares
    decay: float = 0.0  # the topic of rank r has a share in proportion to r ** -decay


# fmt: off
KINDS = {
    "steep": Kind("shares fall as rank to the power of -1.5", 10, 3000, 1000, 30, 89, 0.05, 0.2, 1.0, decay=1.5),
    "mixed lengths": Kind("lognormal lengths; topics of few words", 8, 4000, 3000, 5, 600, 0.02, 0.3, 1.0, True, True),
    "single topics": Kind("nearly all of a document is one topic", 10, 3000, 1000, 20, 59, 0.05, 0.4, 0.02),
    "few long": Kind("few long documents", 12, 250, 1500, 800, 800, 0.05, 0.25, 2.0),
    "titles": Kind("many titles", 15, 20000, 2000, 6, 12, 0.03, 0.1, 0.5),
    "many topics": Kind("topics of few words", 30, 4000, 4000, 40, 159, 0.02, 0.2, 1.0, False, True),
    "rare words": Kind("equal shares", 15, 2500, 4000, 1, 60, 0.05, 0.0, 1.0, True, False, True, 6),
    "30 rare topics": Kind("equal shares", 30, 3000, 6000, 1, 90, 0.03, 0.0, 1.0, True, False, True, 9),
    "rare single topics": Kind("equal shares", 12, 2000, 5000, 1, 40, 0.1, 0.0, 0.1, True, False, True, 5),
}
# fmt: on


def planted(kind: Kind, seed: int) -> tuple[sp.csr_matrix, np.ndarray, np.ndarray]:
    """Draw counts (D, V) of the words that occur, topics (K, V) and theta (D, K)."""
    random = np.random.default_rng([seed, kind.n_topics, kind.n_docs])
    k, v = kind.n_topics, kind.n_words
    part = np.maximum(random.dirichlet(np.full(k, random.uniform(0.5, 1))), 1e-3)
    part = np.arange(1, k + 1) ** -kind.decay if kind.decay else np.ones(k) if kind.are_equal else part
    part = part / part.sum()
    lengths = random.integers(kind.shortest, kind.longest + 1, kind.n_docs)
    if kind.are_lognormal:
        lengths = np.clip(
            random.lognormal(np.log(kind.median) if kind.are_equal else 3.7, 0.9, kind.n_docs),
            kind.shortest,
            kind.longest,
        ).astype(int)
    zipf = 1 / np.arange(1, v + 1) / (1 / np.arange(1, v + 1)).sum()
    base = 0.5 * random.permutation(zipf) + 0.5 / v if kind.are_zipf else np.full(v, 1 / v)
    topics = (1 - kind.common) * random.dirichlet(kind.eta * v * base, k) + kind.common * zipf
    theta = random.dirichlet(kind.concentration * part, kind.n_docs)
    return *shares.drawn_documents(topics, theta, lengths, random), theta


def work(job: jobs.Job) -> dict[str, Any]:
    """Fit a model to a corpus, and return how well it finds the topics."""
    kind = KINDS[job["kind"]]
    model = shared.VARIANTS[job["variant"]].make(kind.n_topics, job["seed"])
    return shares.recovered(model, *planted(kind, job["seed"]))


def equal_table(rows: list[dict[str, Any]]) -> str:
    """Return the table of the kinds with equal shares, or nothing without results."""
    names = [name for name, kind in KINDS.items() if kind.are_equal]
    body = []
    for variant in shared.VARIANTS:
        own = [row for row in rows if row["variant"] == variant and row["kind"] in names and "error" not in row]
        cells = []
        for name in names:
            largest = [row["largest"] for row in own if row["kind"] == name]
            mean = np.mean(largest) if largest else np.nan
            cells.append(f"{mean:.3f}, {mean * KINDS[name].n_topics:.1f}" if largest else "-")
        if own:
            body.append([variant, str(len({row["seed"] for row in own})), *cells])
    return EQUAL + jobs.markdown(["model", "seeds", *names], body) if body else ""


def table(rows: list[dict[str, Any]]) -> str:
    names = [name for name, kind in KINDS.items() if not kind.are_equal]
    rows = [row for row in rows if row["kind"] in names]
    body = []
    for name in shared.VARIANTS:
        own = [row for row in rows if row["variant"] == name and "error" not in row]
        cells = [[row for row in own if row["kind"] == kind] for kind in names]
        if own:
            seeds = max(len({row["seed"] for row in cell}) for cell in cells)
            figures = [_cell(cell) for cell in cells]
            mean = f"{np.mean([row['correlation'] for row in own]):.2f}"
            lost = f"{sum(row['lost'] for row in own)} of {sum(row['counted'] for row in own)}"
            body.append([name, str(seeds), *figures, mean, lost])
    return jobs.markdown(["model", "seeds", *names, "correlation", "not found"], body)


def _cell(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return "-"
    return f"{np.mean([row['correlation'] for row in rows]):.2f}, {sum(row['lost'] for row in rows)}"


def _described(kind: Kind) -> list[str]:
    sizes = [f"{kind.n_topics}", f"{kind.n_docs:,}", f"{kind.n_words:,}", f"{kind.shortest} to {kind.longest}"]
    return [*sizes, f"{kind.common:.0%}", f"{kind.concentration:g}", kind.meaning]


def main() -> None:
    parser = shared.parser(__doc__)
    jobs.add_arguments(parser, shared.RESULTS / "other_shares.jsonl")
    parser.add_argument("--variants", default=",".join(shares.NAMES), help="names of variants, separated by commas")
    parser.add_argument("--kinds", default=",".join(KINDS), help="kinds of corpora, separated by commas")
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    keys = product(range(options.seeds), options.kinds.split(","), options.variants.split(","))
    jobs.run([{"kind": kind, "variant": name, "seed": seed} for seed, kind, name in keys], work, options)
    keys = product(KINDS, shared.VARIANTS, range(10))
    rows = jobs.latest(options.out, [{"kind": kind, "variant": name, "seed": seed} for kind, name, seed in keys])
    header = ["corpus", "topics", "documents", "words", "tokens", "common words", "concentration", "what differs"]
    sizes = jobs.markdown(header, ([name, *_described(kind)] for name, kind in KINDS.items()))
    PAGE.write_text(HEAD + sizes + "\n" + table(rows) + FOOT + equal_table(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
