"""Fit Loom to large corpora, with the topics found in a subset of the documents, and in all of them.

    python benchmarks/subsets.py [--cases titles-1000000,posts-300000] [--seeds 2] [--shared DIR] [--table]

Titles and posts are recombined from those of so-titles and ag-news, as in waterfall.py; 5,000 of them are held out. The
planted documents have the words of two topics each, whose shares fall as 1/n. Figures are appended to
results/subsets.jsonl, and the tables in subsets.md are made from all of them.
"""

from __future__ import annotations

import csv
import time
from contextlib import nullcontext
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
import torch

import jobs
import shared
import topicloom as tl
from topicloom.models.loom import model as loom_model
from waterfall import recombined

OUT = shared.RESULTS / "subsets.jsonl"
PAGE = Path(__file__).with_name("subsets.md")
SOURCES = {"titles": ("so-titles/titles.csv", 10), "posts": ("ag-news/articles.csv", 30)}  # and words of a document
CASES = ("planted-300000", "posts-300000", "titles-300000", "titles-1000000")
N_TEST, N_LABELLED = 5_000, 20_000  # held-out documents; training documents on which accuracy depends
N_PLANTED_WORDS, N_PLANTED_TOKENS = 5_000, 15
COLUMNS = {
    "seconds": ("processor s", 0), "ppl": ("perplexity", 0), "nmi": ("NMI", 3), "purity": ("purity", 3),
    "acc": ("accuracy", 3), "npmi_own": ("NPMI", 3), "td_own": ("TD", 3),
}  # fmt: skip
PLANTED_COLUMNS = {
    "seconds": ("processor s", 0), "mean_distance": ("mean distance", 3), "lost": ("lost topics", 1),
    "correlation": ("correlation of shares", 3),
}  # fmt: skip
HEAD = """# Topics from a subset of a large corpus

`make bench-subsets` writes this page. Loom finds the topics of a corpus of at least 131,072 documents in a subset of
65,536 documents ([docs/models/loom.md](../docs/models/loom.md#training)). Here, it is compared with Loom that reads all
documents in all passes: K={n_topics}, one thread, means over seeds, with standard deviations if there are several.

Titles and posts are recombined from those of so-titles (20 classes) and ag-news (4 classes), as in
[waterfall.md](waterfall.md); 5,000 of them are held out, and all figures are those of judge.py on them. NPMI and TD are
those of the words that the package shows. These documents are an easy case, because a subset has nearly all of the
20,000 titles or 7,600 articles that they consist of. The planted documents below, and those of
[sizes.md](sizes.md), are drawn one by one.

"""
PLANTED_HEAD = """
The planted documents have 15 words of two topics each. The shares of the topics fall as 1/n: the largest has 22 % of
all words, and the smallest {smallest:.2f} %. A distance is the total variation between a planted topic and the one that
is matched with it; a topic is lost if it is above .3. The last column correlates planted shares with those that are
inferred.

"""


@cache
def counted(folder: Path, case: str) -> dict[str, Any]:
    """Return the documents of titles or posts, in the form of `shared.load`."""
    name, _, n_docs = case.partition("-")
    file, n_words = SOURCES[name]
    with (folder / "data" / file).open(encoding="utf-8", newline="") as stream:
        rows = [(row["text"], row["label"]) for row in csv.DictReader(stream)]
    classes = len({label for _, label in rows})
    corpus = tl.Corpus.from_texts(recombined(rows, int(n_docs) + N_TEST, n_words))
    filled = np.flatnonzero(~corpus.is_empty)
    order = np.random.default_rng(0).permutation(filled)
    parts = {"test": order[:N_TEST], "train": np.sort(order[N_TEST:])}
    counts = sp.csr_matrix(corpus.counts).astype(np.float32)
    data: dict[str, Any] = {"vocab": list(corpus.vocabulary), "train_texts": None}
    for part, chosen in parts.items():
        data |= {part: counts[chosen], f"{part}_labels": chosen % classes}
    return data


@cache
def planted(n_docs: int, n_topics: int) -> tuple[sp.csr_matrix, np.ndarray, np.ndarray]:
    """Return counts, the planted topics (K, V), and their shares (K,)."""
    random = np.random.default_rng(5)
    common = 1 / np.arange(1, N_PLANTED_WORDS + 1) ** 0.9
    topics = 0.7 * random.dirichlet(np.full(N_PLANTED_WORDS, 0.02), n_topics) + 0.3 * common / common.sum()
    sizes = 1 / np.arange(1, n_topics + 1)
    pairs = random.choice(n_topics, (n_docs, 2), p=sizes / sizes.sum())
    is_second = random.random((n_docs, N_PLANTED_TOKENS)) > random.beta(4, 1, n_docs)[:, None]
    topic = np.take_along_axis(pairs, is_second.astype(int), 1)  # (D, tokens)
    draws, words = random.random(topic.shape), np.empty(topic.shape, np.int64)
    for k, row in enumerate(topics.cumsum(1)):
        words[topic == k] = np.searchsorted(row, draws[topic == k] * row[-1])
    documents = np.repeat(np.arange(n_docs), N_PLANTED_TOKENS)
    counts = sp.csr_matrix((np.ones(words.size, np.float32), (documents, words.ravel())), (n_docs, N_PLANTED_WORDS))
    return counts, topics, np.bincount(topic.ravel(), minlength=n_topics) / topic.size


def fitted(model: tl.TopicModel, counts: Any, vocabulary: list[str], reads: str) -> float:
    """Fit a model, and return the processor time."""
    torch.set_num_threads(1)
    without_subset = patch.multiple(loom_model, _SUBSET=1 << 40, MAX_DENSE_COUNTS=1 << 60)
    start = time.process_time()
    with without_subset if reads == "all" else nullcontext():
        model.fit(counts, vocabulary=vocabulary)
    return time.process_time() - start


def fit_and_evaluate(folder: Path, job: dict[str, Any]) -> dict[str, Any]:
    model = tl.Loom(job["n_topics"], random_state=job["seed"])
    if job["case"].startswith("planted"):
        counts, topics, sizes = planted(int(job["case"].partition("-")[2]), job["n_topics"])
        seconds = fitted(model, counts, [f"w{word}" for word in range(N_PLANTED_WORDS)], job["reads"])
        found, distances = shared.matched(topics, model.components_)
        shares = model.transform(counts[:50_000]).mean(0)[found]
        return {
            "seconds": seconds,
            "mean_distance": float(distances.mean()),
            "lost": int((distances > 0.3).sum()),
            "correlation": float(np.corrcoef(sizes, shares)[0, 1]),
            "smallest": float(sizes.min()),
        }
    data = counted(folder, job["case"])
    seconds = fitted(model, data["train"], data["vocab"], job["reads"])
    some = np.random.default_rng(1).permutation(data["train"].shape[0])[:N_LABELLED]
    fewer = data | {"train": data["train"][some], "train_labels": data["train_labels"][some]}
    figures = shared.evaluate(folder, fewer, model)
    return {"seconds": seconds} | {name: float(figures[name]) for name in COLUMNS if name != "seconds"}


def table(rows: list[dict[str, Any]], columns: dict[str, tuple[str, int]]) -> str:
    lines = [f"| documents | topics from | seeds | {' | '.join(name for name, _ in columns.values())} |"]
    lines.append("|---" * (len(columns) + 3) + "|")
    for case in dict.fromkeys(row["case"] for row in rows):
        for reads in ("all", "subset"):
            own = [row for row in rows if (row["case"], row["reads"]) == (case, reads)]
            if own:
                name, _, n_docs = case.partition("-")
                cells = [jobs.spread(own, column, digits) for column, (_, digits) in columns.items()]
                lines.append(f"| {int(n_docs):,} {name} | {reads} | {len(own)} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = shared.parser(__doc__)
    jobs.add_arguments(parser, OUT)
    parser.add_argument("--cases", default=",".join(CASES), help="names, separated by commas")
    parser.add_argument("--topics", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    asked = [
        {"case": case, "n_topics": options.topics, "reads": reads, "seed": seed}
        for case in options.cases.split(",")
        for seed in range(options.seeds)
        for reads in ("subset", "all")
    ]
    jobs.run(asked, partial(fit_and_evaluate, options.shared), options)
    rows = [row for row in jobs.read(options.out) if row["n_topics"] == options.topics and "error" not in row]
    rows.sort(key=lambda row: CASES.index(row["case"]))
    sown = [row for row in rows if row["case"].startswith("planted")]
    page = HEAD.format(n_topics=options.topics) + table([row for row in rows if row not in sown], COLUMNS)
    if sown:
        page += PLANTED_HEAD.format(smallest=100 * sown[0]["smallest"]) + table(sown, PLANTED_COLUMNS)
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
