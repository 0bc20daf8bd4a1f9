"""Compare ECRTM and FASTopic with the packages of their authors, with the same documents, settings and vectors.

    python benchmarks/transport.py [--peers .venv-peers/bin/python] [--corpora bbc-news] [--topics 50] [--epochs 200]

TopMost 1.0.2 and fastopic 1.0.1 run in an environment of their own, which `make bench-published` makes. The words of a
topic are ranked as the authors rank them, by the row of beta. Writes transport.md.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize

import jobs
import shared
import topicloom as tl
from topicloom.models import model_class

OUT = shared.RESULTS / "transport.jsonl"
PAGE = Path(__file__).with_name("transport.md")
MODELS = ("ECRTM", "FASTopic")
_VECTOR_SIZE = 128
SEEDS = range(3)
COLUMNS = {"nmi": ("NMI", 3), "purity": ("purity", 3), "acc": ("accuracy", 3), "td": ("TD", 2), "npmi": ("NPMI", 3),
           "cpu": ("seconds", 0)}  # fmt: skip
HEAD = f"""# ECRTM and FASTopic beside the packages of their authors

`make bench-published` writes this page. The authors' packages are TopMost 1.0.2 and fastopic 1.0.1. Documents, settings
(`as_published`) and epochs are the same. FASTopic has the same vectors of documents in both packages: latent semantic
analysis of the training documents' tf-idf, {_VECTOR_SIZE} numbers of length 1. Figures are those of test documents, as
mean ± standard deviation over seeds, from an implementation (`judge.py`) that belongs to none of the packages. NPMI and
TD rank words as the authors do, by the row of beta. Seconds are processor time with one thread.
[docs/published.md](../docs/published.md) says what differs.

"""


def score(folder: Path, data: dict[str, Any], beta: Any, thetas: tuple[Any, Any]) -> dict[str, Any]:
    """Return the figures of topics and shares. Words are ranked by the rows of beta."""
    tops = [list(np.argsort(-row)[:25]) for row in beta]
    figures: dict[str, Any] = shared.independent_metrics(folder).score(data, beta, *thetas, tops=tops)
    return figures


def vectors_of(data: dict[str, Any]) -> dict[str, Any]:
    """Return vectors of the documents by latent semantic analysis, (D, E) float32 for "train" and "test"."""
    weights = TfidfTransformer(sublinear_tf=True).fit(data["train"])
    analysis = TruncatedSVD(_VECTOR_SIZE, random_state=0).fit(weights.transform(data["train"]))
    made = {part: analysis.transform(weights.transform(data[part])) for part in ("train", "test")}
    return {part: normalize(each).astype(np.float32) for part, each in made.items()}


def theirs(folder: Path, python: Path, job: jobs.Job, data: dict[str, Any]) -> dict[str, Any]:
    """Fit the model of the authors' package."""
    request = {"model": job["model"], "settings": {}, "n_topics": job["topics"], "epochs": job["epochs"]}
    request |= {"threads": 1, "seed": job["seed"]}
    script, vectors = ("topmost_peer.py", None)
    if model_class(job["model"]).needs_vectors:
        script, vectors = "fastopic_peer.py", vectors_of(data)
    result = shared.run_peer(folder, data, python, script, request, vectors)
    figures = score(folder, data, result["beta"], (result["theta_train"], result["theta_test"]))
    return {"seconds": float(result["seconds"]), "cpu": float(result["cpu_seconds"]), **figures}


def ours(folder: Path, job: jobs.Job, data: dict[str, Any]) -> dict[str, Any]:
    """Fit our model with the settings of the authors."""
    train, test = (tl.Corpus.from_counts(sp.csr_array(data[part]), data["vocab"]) for part in ("train", "test"))
    kind = model_class(job["model"])
    if kind.needs_vectors:
        vectors = vectors_of(data)
        train, test = train.with_vectors(vectors["train"]), test.with_vectors(vectors["test"])
    model = kind.as_published(job["topics"], epochs=job["epochs"], random_state=job["seed"])
    start, start_cpu = time.perf_counter(), time.process_time()
    model.set_params(device="cpu").fit(train)
    seconds = {"seconds": time.perf_counter() - start, "cpu": time.process_time() - start_cpu}
    beta = getattr(model, "word_shares_", model.components_)
    return seconds | score(folder, data, beta, (model.transform(train), model.transform(test)))


def fit_and_score(folder: Path, python: Path, job: jobs.Job) -> dict[str, Any]:
    """Return the figures of one job."""
    data = shared.load(folder, job["corpus"])
    return ours(folder, job, data) if job["package"] == "ours" else theirs(folder, python, job, data)


def requested(options: argparse.Namespace) -> list[jobs.Job]:
    """Return the jobs in their order."""
    corpora, models = options.corpora.split(","), options.models.split(",")
    chosen = product(corpora, range(options.seeds), models, ("ours", "authors"))
    return [
        {"corpus": c, "seed": s, "model": m, "package": p, "topics": options.topics, "epochs": options.epochs}
        for c, s, m, p in chosen
    ]


def page(rows: list[dict[str, Any]]) -> str:
    """Format the page, with a row for each package, model, corpus and length of training that has results."""
    keys = ("corpus", "topics", "epochs", "model", "package")
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        if "error" not in row:
            groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    body = [
        [*map(str, group), str(len(found)), *(jobs.spread(found, name, n) for name, (_, n) in COLUMNS.items())]
        for group, found in groups.items()
    ]
    return HEAD + jobs.markdown([*keys, "seeds", *(title for title, _ in COLUMNS.values())], body)


def main() -> None:
    parser = shared.parser(__doc__)
    jobs.add_arguments(parser, OUT)
    shared.add_peers(parser, "TopMost 1.0.2 and fastopic 1.0.1")
    parser.add_argument("--corpora", default="bbc-news,20ng", help="names, separated by commas")
    parser.add_argument("--models", default=",".join(MODELS), help="names, separated by commas")
    parser.add_argument("--topics", type=int, default=50, help="number of topics")
    parser.add_argument("--epochs", type=int, default=200, help="number of epochs of both packages")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="number of seeds")
    options = parser.parse_args()
    jobs.run(requested(options), partial(fit_and_score, options.shared, options.peers), options)
    PAGE.write_text(page(jobs.read(options.out)), encoding="utf-8")


if __name__ == "__main__":
    main()
