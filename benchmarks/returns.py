"""Measure how many topics return with another seed, order or sample of the documents: bbc-news, K=20.

    python benchmarks/returns.py [--variants GSM,ETM] [--shared DIR]

The last column has the topics of two fits on shuffled texts: each token of the corpus is put into a document at random,
so that words have nothing to do with each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

import shared
import topicloom as tl
from topicloom.metrics import TopicReturns, topic_returns
from topicloom.models.refitting import documents_of_fit

N_TOPICS = 20
VARIANTS = "GSM,ProdLDA,Loom,ETM,LDA variational,LDA gibbs"
FITS: tuple[tuple[Any, int], ...] = (("seed", 4), ("order", 3), ("bootstrap", 3))


def shuffled(counts: sp.csr_array, seed: int) -> sp.csr_array:
    """Return documents of the same lengths with the tokens of the corpus in random places."""
    n_docs = counts.shape[0]
    rows = np.repeat(np.arange(n_docs), np.asarray(counts.sum(axis=1)).ravel().astype(int))
    words = np.random.default_rng(seed).permutation(np.repeat(counts.indices, counts.data.astype(int)))
    return sp.csr_array(sp.coo_array((np.ones(len(rows)), (rows, words)), shape=counts.shape))


def cell(found: TopicReturns) -> str:
    low, high = found.interval or (np.nan, np.nan)
    return f"{found.mean:.2f} ({low:.2f} to {high:.2f})"


def main() -> None:
    parser = shared.parser(__doc__)
    parser.add_argument("--variants", default=VARIANTS, help="names of variants or models, separated by commas")
    options = parser.parse_args()
    data = shared.load(options.shared, "bbc-news")
    corpus = tl.Corpus.from_counts(data["train"], data["vocab"])
    noise = [tl.Corpus.from_counts(shuffled(sp.csr_array(data["train"]), 100 + seed), data["vocab"]) for seed in (0, 1)]
    print("| model | seed | order | bootstrap | by chance | shuffled |\n|---|---|---|---|---|---|")
    for variant in shared.variants(options.variants):

        def topics(documents: tl.Corpus, seed: int = 0, variant: shared.Variant = variant) -> Any:
            return variant.make(N_TOPICS, seed).fit(documents).components_

        first = topics(corpus)
        found = [
            topic_returns(
                first,
                [
                    topics(documents_of_fit(corpus, vary, 99 + n), n if vary == "seed" else 0)
                    for n in range(1, n_fits + 1)
                ],
            )
            for vary, n_fits in FITS
        ]
        random = topic_returns(topics(noise[0], 0), [topics(noise[1], 1)])
        shown = [*map(cell, found), f"{found[0].chance:.2f}", f"{random.mean:.2f}"]
        print(f"| {variant.name} | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    main()
