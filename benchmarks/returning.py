"""Do topics come back with another seed, and what does watching them cost: bbc-news, K=20, three seeds.

    python benchmarks/returning.py [--shared DIR]

Costs are the share of processor time that is spent on watching, every fifth epoch; the middle one of three runs.
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
WATCHED = (("document_npmi",), ("c_npmi", "inverted_rbo"), ("c_npmi", "c_v", "c_uci", "inverted_rbo"))


def returning(corpus: tl.Corpus) -> None:
    print("| model | distance | return by distance | return by words |\n|---|---|---|---|")
    for name in VARIANTS:
        runs = [shared.VARIANTS[name].make(N_TOPICS, seed).fit(corpus) for seed in SEEDS]
        found = metrics.stability([run.components_ for run in runs], [run.topic_ids(10) for run in runs])
        shares = f"{found.returning_by_distance:.0%} | {found.returning_by_words:.0%}"
        print(f"| {name} | {found.distance:.2f} | {shares} |", flush=True)


def cost(corpus: tl.Corpus) -> None:
    spent = 0.0
    measure = TopicMonitor.__call__

    def timed(self: TopicMonitor, network: Any) -> dict[str, Any]:
        nonlocal spent
        began = time.process_time()
        try:
            return measure(self, network)
        finally:
            spent += time.process_time() - began

    TopicMonitor.__call__ = timed  # type: ignore[method-assign]
    for names in WATCHED:
        shares = []
        for _ in range(3):
            spent, began = 0.0, time.process_time()
            tl.GSM(N_TOPICS, random_state=0).fit(corpus, monitor=names)
            shares.append(spent / (time.process_time() - began))
        print(f"watching {', '.join(names)}: {sorted(shares)[1]:.1%} of the time of training", flush=True)


def main() -> None:
    options = shared.parser(__doc__).parse_args()
    data = shared.load(options.shared, "bbc-news")
    texts = [" ".join(words) for words in data["train_texts"]]
    cost(tl.Corpus.from_texts(texts, language="en", stop_words=None))
    returning(tl.Corpus.from_counts(data["train"], data["vocab"]))


if __name__ == "__main__":
    main()
