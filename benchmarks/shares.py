"""Recover planted topics of unequal shares with every model, and classes of unequal sizes: benchmarks/shares.md.

    python benchmarks/shares.py [--jobs 2] [--variants GSM,ETM] [--seeds 3] [--topics 5,10,20] [--lengths 10,60,300]

Shares are drawn from Dirichlet(a) with a between .5 and 1. A topic is found if its total variation distance from the
planted one is below .3 after matching. Results are stored in results/shares.jsonl, and a run continues where the last
one ended.
"""

# ruff: noqa: E501, as rows of tables are long lines

from __future__ import annotations

import time
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import f1_score

import jobs
import shared
import topicloom as tl

PAGE = Path(__file__).with_name("shares.md")
N_DOCS = {10: 5000, 60: 2000, 300: 1000}
N_WORDS, ETA, COMMON = 1000, 0.05, 0.2  # a fifth of the tokens are common words, whose frequencies follow Zipf's law
COUNTED = 0.03  # a topic with this share of the tokens should be found
FOUND = 0.3  # total variation
NAMES = (
    "LDA gibbs", "Loom", "GSM", "ETM", "WLDA dirichlet", "GMNTM", "DirichletVAE implicit", "DirichletVAE weibull",
    "ProdLDA", "ProdLDA 60 epochs", "BATM", "NVDM",
)  # fmt: skip
RARE_DOCS, RARE_WORDS = 2200, 3000
RARE = {20: 8, 10: 4}  # K, and the median number of tokens of a document
ZIPF = {"20ng": 20, "bbc-news": 20}  # corpora with classes, and K
PAIRED_SEEDS = 10  # of the models that are compared with even shares, on corpora with classes
EARLIER = {"learn_shares": False, "spare_topics": 0, "code_norm": "fixed"}  # even shares by force
HEAD = """# Shares of topics

A topic model should say how large its topics are. All models have their default settings; `make bench-shares` writes
this page, and [shares_tried.md](shares_tried.md) has what else was tried. "even shares" in a name stands for `learn_shares=False`, `spare_topics=0` and `code_norm="fixed"`, with which
all topics have nearly equal shares by force. "ProdLDA 60 epochs" has `epochs=60` and `weight_decay=1e-4`.

## Planted topics

Documents are drawn from LDA with 1,000 words. The shares of K topics are drawn from Dirichlet(a), where a is drawn
between .5 and 1, and theta from Dirichlet(shares). A fifth of the tokens are common words. There are 5,000 documents of
10 tokens, 2,000 of 60 and 1,000 of 300. Each found topic is paired with a planted one, so that the sum of total
variation distances is minimal.

- correlation: of the planted and the found shares, mean and lowest over all corpora and seeds.
- found: topics with at least 3 % of the tokens whose distance is below .3.
- distance: the mean distance of these topics.
- the other columns: correlation, and topics not found, by K and document length.
- seconds: processor time of a fit.

The rows of "even shares" have the present defaults of all other settings. In the corpora of 5 topics and 300 tokens, one
(seed 1) has nearly all tokens in three topics. A model with five topics then has copies of one of them, and the
correlation compares a single copy with the planted topic.

"""
RARE_HEAD = """
## Rare words, few tokens and equal shares

In a novel whose common words were left out, paragraphs have few tokens, and a word is in a handful of paragraphs. Nothing
then tells one topic from another in many documents, and a model may give all of them to one topic. These planted corpora
are of that kind: 2,200 documents whose lengths are lognormal (median 8 tokens with K = 20, 4 with K = 10), 3,000 words,
no common words, topics of equal shares, and theta from Dirichlet(1 / K).

- largest: the largest mean share of a topic; planted topics have 1 / K.
- main topic: the largest part of the documents that have the same main topic.
- distance: the mean distance of planted and found topics.

"""
SKEWED = """
## Classes of unequal sizes

The training documents of corpora with classes are drawn so that the sizes of classes follow Zipf's law: the class of
rank r, in a random order of classes, has 1 / r of the documents of the largest. The test documents are drawn alike.

- NMI: of main topics and classes on test documents. F1: the mean over classes of the F1 score of logistic regression on
  theta.
- topics per class: every topic is given to the class that has most of its weight. A class of the share s should have
  about s K topics; the figure is the worst ratio, in either direction, over classes that should have at least one. If K
  topics were given to classes at random, in proportion to the sizes of classes, it would be 2.8 on average on both
  corpora, and at most 1.5 in 3 % (20ng) and 7 % (bbc-news) of the draws. The best whole numbers have 1.4 and 1.1.
- largest, smallest: the shares of the largest and smallest topic.

"""


@cache
def planted(n_topics: int, length: int, seed: int) -> tuple[sp.csr_matrix, np.ndarray, np.ndarray]:
    """Draw counts (D, V), topics (K, V) and theta (D, K)."""
    random = np.random.default_rng(1000 * seed + 10 * n_topics + length)
    shares = np.maximum(random.dirichlet(np.full(n_topics, random.uniform(0.5, 1))), 1e-3)
    shares = np.sort(shares / shares.sum())[::-1]
    zipf = 1 / np.arange(1, N_WORDS + 1)
    topics = (1 - COMMON) * random.dirichlet(np.full(N_WORDS, ETA), n_topics) + COMMON * zipf / zipf.sum()
    theta = random.dirichlet(shares, N_DOCS[length])
    mixed = theta @ topics
    counts = np.stack([random.multinomial(length, row / row.sum()) for row in mixed])
    return sp.csr_matrix(counts), topics, theta


def recover(job: jobs.Job) -> dict[str, Any]:
    """Fit a model to planted topics, and return how well it finds their shares."""
    return recovered(make(job), *planted(job["n_topics"], job["length"], job["seed"]))


def rare(job: jobs.Job) -> dict[str, Any]:
    """Fit a model to planted topics of rare words and equal shares, and return the largest share that it finds."""
    counts, topics, _ = planted_rare(job["n_topics"], job["seed"])
    model = make(job)
    start = time.process_time()
    model.fit(counts, vocabulary=[f"w{word}" for word in range(counts.shape[1])])
    seconds = time.process_time() - start
    _, distance = shared.matched(topics, model.components_)
    theta = model.transform(counts)
    return {
        "seconds": seconds,
        "cpu": seconds,
        "largest": float(theta.mean(0).max()),
        "main": float(np.bincount(theta.argmax(1)).max() / len(theta)),
        "distance": float(distance.mean()),
    }


@cache
def planted_rare(n_topics: int, seed: int) -> tuple[sp.csr_matrix, np.ndarray, np.ndarray]:
    """Draw counts (D, V) of words that occur, topics (K, V) of equal shares, and theta (D, K)."""
    random = np.random.default_rng([seed, n_topics, RARE_WORDS])
    topics = random.dirichlet(np.full(RARE_WORDS, ETA), n_topics)
    theta = random.dirichlet(np.full(n_topics, 1 / n_topics), RARE_DOCS)
    lengths = np.ceil(random.lognormal(np.log(RARE[n_topics]), 0.8, RARE_DOCS)).astype(int)
    return *drawn_documents(topics, theta, lengths, random), theta


def drawn_documents(
    topics: np.ndarray, theta: np.ndarray, lengths: np.ndarray, random: np.random.Generator
) -> tuple[sp.csr_matrix, np.ndarray]:
    """Draw the counts (D, V') of documents of such lengths (D,) from topics (K, V) and theta (D, K).

    Only the V' words that occur are kept, also in the topics (K, V') that are returned.
    """
    mixed = theta @ topics  # (D, V)
    drawn = (random.multinomial(n, row / row.sum()) for n, row in zip(lengths, mixed, strict=True))
    counts = sp.csr_matrix(np.stack([row.astype(np.int32) for row in drawn]))
    occurs = np.asarray(counts.sum(0)).ravel() > 0
    topics = topics[:, occurs]
    return counts[:, occurs], topics / topics.sum(1, keepdims=True)


def recovered(model: tl.TopicModel, counts: sp.csr_matrix, topics: np.ndarray, theta: np.ndarray) -> dict[str, Any]:
    """Fit a model to counts (D, V), and compare its topics and shares with the planted topics (K, V) and theta (D, K)."""
    start = time.process_time()
    model.fit(counts, vocabulary=[f"w{word}" for word in range(counts.shape[1])])
    seconds = time.process_time() - start
    columns, distance = shared.matched(topics, model.components_)
    true, found = theta.mean(0), model.transform(counts).mean(0)[columns]
    counted = true >= COUNTED
    return {
        "seconds": seconds,
        "cpu": seconds,
        "correlation": float(np.corrcoef(true, found)[0, 1]),
        "lost": int((distance[counted] >= FOUND).sum()),
        "counted": int(counted.sum()),
        "distance": float(distance[counted].mean()),
        "largest": float(found.max()),
    }


def zipf_sample(labels: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return documents of which the class `order[r]` has 1 / (r + 1) as many as the class `order[0]`."""
    members = [np.flatnonzero(labels == label) for label in order]
    largest = min(len(each) * (rank + 1) for rank, each in enumerate(members))
    return np.sort(np.concatenate([each[: round(largest / (rank + 1))] for rank, each in enumerate(members)]))


def skewed(folder: Path, job: jobs.Job) -> dict[str, Any]:
    """Fit a model to a corpus whose classes follow Zipf's law."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import normalized_mutual_info_score

    data = shared.load(folder, job["corpus"])
    classes, train_labels = np.unique(data["train_labels"], return_inverse=True)
    test_labels = np.searchsorted(classes, data["test_labels"])
    order = np.random.default_rng(job["seed"]).permutation(len(classes))
    train, test = zipf_sample(train_labels, order), zipf_sample(test_labels, order)
    model = make(job)
    start = time.process_time()
    model.fit(data["train"][train], vocabulary=data["vocab"])
    seconds = time.process_time() - start
    theta, theta_test = model.transform(data["train"][train]), model.transform(data["test"][test])
    labels = train_labels[train]
    weight = np.stack([theta[labels == label].sum(0) for label in range(len(classes))])  # (classes, K)
    n_owned = np.bincount(weight.argmax(0), minlength=len(classes))
    wanted = np.bincount(labels, minlength=len(classes)) / len(labels) * job["n_topics"]
    clear = wanted >= 1
    ratio = np.maximum(n_owned[clear], 0.5) / wanted[clear]
    predicted = LogisticRegression(max_iter=2000).fit(theta, labels).predict(theta_test)
    return {
        "seconds": seconds,
        "cpu": seconds,
        "nmi": float(normalized_mutual_info_score(test_labels[test], theta_test.argmax(1))),
        "f1": float(f1_score(test_labels[test], predicted, average="macro")),
        "ratio": float(np.maximum(ratio, 1 / ratio).max()),
        "largest": float(theta.mean(0).max()),
        "smallest": float(theta.mean(0).min()),
    }


def make(job: jobs.Job) -> tl.TopicModel:
    """Make the unfitted model of a job."""
    name = job["variant"]
    if name.endswith(" even shares"):
        base = shared.VARIANTS[name.removesuffix(" even shares")].make(job["n_topics"], job["seed"])
        return base.set_params(**EARLIER)  # type: ignore[no-any-return]
    return shared.VARIANTS[name].make(job["n_topics"], job["seed"])


def work(folder: Path, job: jobs.Job) -> dict[str, Any]:
    if job.get("rare"):
        return rare(job)
    return skewed(folder, job) if "corpus" in job else recover(job)


def rare_table(rows: list[dict[str, Any]], names: list[str]) -> str:
    """Return the table of planted corpora of rare words, or nothing without rows."""
    columns = {"largest": ("largest", 3), "main": ("main topic", 2), "distance": ("distance", 2)}
    header = ["model", "seeds", *(f"{title}, K={k}" for k in RARE for title, _ in columns.values())]
    body = []
    for name in names:
        good = [row for row in rows if row["variant"] == name and "error" not in row]
        cells = [[row for row in good if row["n_topics"] == k] for k in RARE]
        if good:
            figures = [jobs.spread(cell, column, digits) for cell in cells for column, (_, digits) in columns.items()]
            body.append([name, str(max(map(len, cells))), *figures])
    return RARE_HEAD + jobs.markdown(header, body) if body else ""


def planted_table(rows: list[dict[str, Any]], names: list[str]) -> str:
    cells = sorted({(row["n_topics"], row["length"]) for row in rows})
    header = ["model", "correlation", "found", "distance", *(f"K={k}, {n} tokens" for k, n in cells), "seconds"]
    body = []
    for name in names:
        good = [row for row in rows if row["variant"] == name and "error" not in row]
        if not good:
            continue
        correlation = [row["correlation"] for row in good]
        lost, counted = sum(row["lost"] for row in good), sum(row["counted"] for row in good)
        by_cell = [[row for row in good if (row["n_topics"], row["length"]) == cell] for cell in cells]
        body.append([
            name, f"{np.mean(correlation):.2f} (lowest {min(correlation):.2f})", f"{counted - lost} of {counted}",
            f"{np.mean([row['distance'] for row in good]):.2f}",
            *(
                f"{np.mean([r['correlation'] for r in cell]):.2f}, {sum(r['lost'] for r in cell)}" if cell else "-"
                for cell in by_cell
            ),
            jobs.spread(good, "cpu", 1),
        ])  # fmt: skip
    return jobs.markdown(header, body)


PAIRED_HEAD = """
The differences of these models from even shares, with the same documents and seed: mean and standard error. With even
shares, a large class has to have many topics. With learned shares, it can also have a few large ones, so that topics per
class are further from the sizes.

"""


def paired_table(rows: list[dict[str, Any]], names: list[str]) -> str:
    """Return the table of differences from even shares, or nothing if there are fewer than two pairs of fits."""
    found = {(r["corpus"], r["variant"], r["seed"]): r for r in rows if "corpus" in r and "error" not in r}
    body = []
    for corpus, name in product(ZIPF, names):
        seeds = [s for c, n, s in found if (c, n) == (corpus, name) and (c, f"{n} even shares", s) in found]
        if len(seeds) < 2:
            continue
        pairs = [(found[corpus, name, seed], found[corpus, f"{name} even shares", seed]) for seed in sorted(seeds)]
        cells = []
        for column in ("nmi", "f1", "ratio"):
            changes = [ours[column] - even[column] for ours, even in pairs]
            cells.append(f"{np.mean(changes):+.3f} ± {np.std(changes, ddof=1) / len(changes) ** 0.5:.3f}")
        body.append([corpus, name, str(len(seeds)), *cells])
    header = ["corpus", "model", "seeds", "NMI", "F1", "topics per class"]
    return PAIRED_HEAD + jobs.markdown(header, body) if body else ""


def skewed_table(rows: list[dict[str, Any]], names: list[str]) -> str:
    header = ["corpus", "model", "seeds", "NMI", "F1", "topics per class", "largest", "smallest"]
    body = []
    for corpus, name in product(ZIPF, names):
        good = [r for r in rows if r.get("corpus") == corpus and r["variant"] == name and "error" not in r]
        good = list({row["seed"]: row for row in good}.values())
        if good:
            figures = [
                jobs.spread(good, column, digits)
                for column, digits in (("nmi", 3), ("f1", 3), ("ratio", 2), ("largest", 3), ("smallest", 4))
            ]
            body.append([corpus, name, str(len(good)), *figures])
    return jobs.markdown(header, body)


def main() -> None:
    parser = shared.parser(__doc__)
    jobs.add_arguments(parser, shared.RESULTS / "shares.jsonl")
    parser.add_argument("--variants", default=",".join(NAMES), help="names of variants, separated by commas")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rare-seeds", type=int, default=1, help="seeds of the corpora of rare words")
    parser.add_argument("--topics", default="5,10,20")
    parser.add_argument("--lengths", default="10,60,300")
    parser.add_argument("--corpora", default=",".join(ZIPF), help="corpora with classes; empty for none")
    options = parser.parse_args()
    names = options.variants.split(",")
    if unknown := set(names) - set(shared.VARIANTS):
        parser.error(f"there is no variant {', '.join(sorted(unknown))}; choose from {', '.join(shared.VARIANTS)}")
    earlier = [f"{name} even shares" for name in ("GSM", "ETM", "WLDA dirichlet") if name in names]
    topics, lengths = (list(map(int, text.split(","))) for text in (options.topics, options.lengths))
    requested: list[jobs.Job] = []
    for seed in range(options.seeds):
        requested += [
            {"variant": name, "n_topics": k, "length": length, "seed": seed}
            for k, length, name in product(topics, lengths, [*names, *earlier])
        ]
        requested += [
            {"variant": name, "corpus": corpus, "n_topics": ZIPF[corpus], "seed": seed}
            for corpus, name in product(filter(None, options.corpora.split(",")), [*names, *earlier])
        ]
    requested += [
        {"variant": name, "corpus": corpus, "n_topics": ZIPF[corpus], "seed": seed}
        for seed in range(options.seeds, PAIRED_SEEDS)
        for corpus in filter(None, options.corpora.split(","))
        for each in earlier
        for name in (each.removesuffix(" even shares"), each)
    ]
    rare_jobs = [
        {"variant": name, "n_topics": k, "rare": True, "seed": seed}
        for seed, k, name in product(range(options.rare_seeds), RARE, names)
    ]
    jobs.run([*rare_jobs, *requested], partial(work, options.shared), options)
    order = [*shared.VARIANTS, *(f"{name} even shares" for name in shared.VARIANTS)]
    every = [
        {"variant": name, "n_topics": k, "length": length, "seed": seed}
        for name, k, length, seed in product(order, (5, 10, 20), N_DOCS, range(3))
    ] + [
        {"variant": name, "corpus": corpus, "n_topics": k, "seed": seed}
        for name, (corpus, k), seed in product(order, ZIPF.items(), range(3))
    ]
    more = [
        {"variant": name, "corpus": corpus, "n_topics": k, "seed": seed}
        for name, (corpus, k), seed in product(order, ZIPF.items(), range(PAIRED_SEEDS))
    ]
    pairs = jobs.latest(options.out, more)
    rows = jobs.latest(options.out, every)
    planned = len(NAMES) + len(earlier)
    planned *= 3 * (9 + len(ZIPF))
    rows = list({(r["variant"], r.get("corpus"), r["n_topics"], r.get("length"), r["seed"]): r for r in rows}.values())
    missing = f"The tables have {len(rows)} of {planned} fits so far; cells without one are left out.\n\n"
    missing = missing if len(rows) < planned else ""
    all_rare = product(order, RARE, range(3))
    rare_rows = jobs.latest(
        options.out, [{"variant": name, "n_topics": k, "rare": True, "seed": seed} for name, k, seed in all_rare]
    )
    first = planted_table([row for row in rows if "length" in row], order)
    PAGE.write_text(
        HEAD
        + missing
        + first
        + rare_table(rare_rows, order)
        + SKEWED
        + skewed_table(rows, order)
        + paired_table(pairs, order),
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
