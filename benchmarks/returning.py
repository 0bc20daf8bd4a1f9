"""Measure how many topics return with another seed, and what monitoring coherence costs: bbc-news, K=20, three seeds.

    python benchmarks/returning.py [--shared DIR]

The cost is the share of processor time that is spent on measuring topics after every fifth epoch, the median of three
runs.
"""

from __future__ import annotations

import time
from typing import Any

import shared
import topicloom as tl
from topicloom import metrics
from topicloom.training.monitors import TopicMonitor

N_TOPICS, SEEDS = 20, range(3)
VARIANTS = ("GSM", "ETM", "WLDA dirichlet", "ProdLDA", "LDA variational", "LDA gibbs")
MONITORED = (("document_npmi",), ("c_npmi", "inverted_rbo"), ("c_npmi", "c_v", "c_uci", "inverted_rbo"))


def returning(corpus: tl.Corpus) -> None:
    """Print a table of the stability of topics over seeds."""
    print("| model | distance | return by distance | return by words |\n|---|---|---|---|")
    for name in VARIANTS:
        runs = [shared.VARIANTS[name].make(N_TOPICS, seed).fit(corpus) for seed in SEEDS]
        found = metrics.stability([run.components_ for run in runs], [run.topic_ids(10) for run in runs])
        shares = f"{found.returning_by_distance:.0%} | {found.returning_by_words:.0%}"
        print(f"| {name} | {found.distance:.2f} | {shares} |", flush=True)


def cost(corpus: tl.Corpus) -> None:
    """Print the share of the time of training that each set of measures takes."""
    spent = 0.0
    measure = TopicMonitor.__call__

    def timed(self: TopicMonitor, network: Any) -> dict[str, Any]:
        nonlocal spent
        start = time.process_time()
        try:
            return measure(self, network)
        finally:
            spent += time.process_time() - start

    TopicMonitor.__call__ = timed  # type: ignore[method-assign]
    for names in MONITORED:
        shares = []
        for _ in range(3):
            spent, start = 0.0, time.process_time()
            tl.GSM(N_TOPICS, random_state=0).fit(corpus, monitor=names)
            shares.append(spent / (time.process_time() - start))
        print(f"monitoring {', '.join(names)}: {sorted(shares)[1]:.1%} of the time of training", flush=True)


def main() -> None:
    options = shared.parser(__doc__).parse_args()
    data = shared.load(options.shared, "bbc-news")
    texts = [" ".join(words) for words in data["train_texts"]]
    cost(tl.Corpus.from_texts(texts, language="en", stop_words=None))
    returning(tl.Corpus.from_counts(data["train"], data["vocab"]))


if __name__ == "__main__":
    main()
