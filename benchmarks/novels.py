"""Fit every model to the paragraphs of novels and plays without their common words, and write novels.md.

    python benchmarks/novels.py novel.txt sanguo.txt moby.txt [--table]

A file has one paragraph on each line, and blank lines are left out. The texts are not in the repository; novels.md says
which ones were used. Results are stored in results/novels.jsonl, and a run continues where the last one ended.
"""

from __future__ import annotations

import time
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import jobs
import shared
import topicloom as tl
from topicloom.models import model_class

PAGE = Path(__file__).with_name("novels.md")
MODELS = (
    "LDA gibbs", "LDA", "Loom", "GSM", "ETM", "ProdLDA", "NVLDA", "WLDA", "DirichletVAE", "GMNTM", "BATM", "NVDM",
    "ETM even shares", "ETM published", "ProdLDA published",
)  # fmt: skip
K = 20
CORPORA = {  # the language, the largest share of the paragraphs that a word may be in, and the text
    "novel": ("zh", 0.005, "Dream of the Red Chamber, paragraphs"),
    "sanguo": ("zh", 0.005, "Romance of the Three Kingdoms, paragraphs"),
    "moby": ("en", 0.005, "Moby-Dick, four sentences at a time"),
    "shakespeare": ("en", 0.02, "plays of Shakespeare, speeches (tinyshakespeare)"),
}
HEAD = """# Novels and plays without their common words

Paragraphs of a novel are short, and without common words nearly all words are rare. In such texts a model may give one
topic a large part of everything ([docs/shares.md](../docs/shares.md)). Words are in at least 5 paragraphs, and in at
most .5 % of them (2 % of the speeches). K is 20, the seed is 0, and all settings are the defaults; "published" stands
for `as_published`, and "even shares" for `learn_shares=False`. `python benchmarks/novels.py FILES` writes this page.
The texts are public domain and not in the repository.

- largest: the largest mean share of a topic. main topic: the largest part of the documents that have the same main
  topic.
- NPMI: of ten words over the same documents. TD: of 25 words.
- seconds: processor time of the fit.

"""


@cache
def corpus(folder: Path, name: str) -> tl.Corpus:
    """Return the documents of a file."""
    language, max_df, _ = CORPORA[name]
    lines = (folder / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return tl.Corpus.from_texts([line for line in lines if line.strip()], language=language, min_df=5, max_df=max_df)


def work(folder: Path, metrics: Path, job: jobs.Job) -> dict[str, Any]:
    """Fit a model, and return its figures."""
    documents = corpus(folder, job["corpus"])
    name, _, form = job["model"].partition(" ")
    kind: Any = model_class(name)
    make = kind.as_published if form == "published" else kind
    settings = {"gibbs": {"method": "gibbs"}, "even shares": {"learn_shares": False}}.get(form, {})
    start = time.process_time()
    model = make(K, random_state=job["seed"], **settings).fit(documents)
    seconds = time.process_time() - start
    counts = sp.csr_matrix(documents.counts)
    theta = model.transform(documents)[~documents.is_empty]
    tops = model.topic_ids(25).tolist()
    return {
        "seconds": seconds,
        "largest": float(theta.mean(0).max()),
        "main": float(np.bincount(theta.argmax(1)).max() / len(theta)),
        "npmi": float(np.mean(shared.independent_metrics(metrics).npmi([top[:10] for top in tops], counts))),
        "td": len({word for top in tops for word in top}) / (25 * K),
    }


def table(rows: list[dict[str, Any]]) -> str:
    columns = {"largest": 3, "main": 2, "npmi": 3, "td": 2, "seconds": 0}
    header = ["text", "model", "largest", "main topic", "NPMI", "TD", "seconds"]
    body = []
    for name, model in product(CORPORA, MODELS):
        found = [row for row in rows if (row["corpus"], row["model"]) == (name, model) and "error" not in row]
        if found:
            body.append([name, model, *(jobs.spread(found, column, digits) for column, digits in columns.items())])
    return jobs.markdown(header, body)


def main() -> None:
    parser = shared.parser(__doc__)
    jobs.add_arguments(parser, shared.RESULTS / "novels.jsonl")
    parser.add_argument("files", type=Path, nargs="*", help=f"{', '.join(CORPORA)}.txt")
    parser.add_argument("--models", default=",".join(MODELS), help="names, separated by commas")
    options = parser.parse_args()
    if unknown := [str(file) for file in options.files if file.stem not in CORPORA]:
        parser.error(f"{', '.join(unknown)}: the names are those of {', '.join(CORPORA)}")
    for file in options.files:
        requested = [{"model": name, "corpus": file.stem, "seed": 0} for name in options.models.split(",")]
        jobs.run(requested, partial(work, file.parent, options.shared), options)
    every = [{"model": name, "corpus": text, "seed": 0} for text, name in product(CORPORA, MODELS)]
    texts = jobs.markdown(
        ["name", "text", "language"], ([name, about, code] for name, (code, _, about) in CORPORA.items())
    )
    PAGE.write_text(HEAD + texts + "\n" + table(jobs.latest(options.out, every)), encoding="utf-8")


if __name__ == "__main__":
    main()
