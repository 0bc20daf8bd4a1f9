"""Plant documents that fit no topic, and measure whether `Topics.outliers` finds them.

    python benchmarks/outliers.py --encoders .venv-vectors/bin/python [--only so-titles:ag]

A case is a corpus and what is planted: titles of a class that training lacks (class20), texts of another corpus (ag,
so, 20ng), or texts whose words were exchanged with those of others (shuffled). Loom learns 20 topics of three quarters
of the corpus. Planted documents are 2 % of the rest ("new"), or 2 % of the training documents themselves ("in
training"). Each is measured without and with vectors (WordLlama). One line for each is printed: AUC and precision at 50
of the score, those of 1 minus the largest share, and the shares of both kinds that have a fit below .05.

The criteria and the number of similar documents were chosen on m10 and ag-news, and the others examined afterwards.
"""

from __future__ import annotations

import csv
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

import shared
import topicloom as tl

CASES = (
    "m10:class1", "m10:shuffled", "ag-news:so", "ag-news:shuffled", "so-titles:ag", "so-titles:class20",
    "so-titles:class7", "so-titles:shuffled", "bbc-news:20ng", "bbc-news:shuffled",
)  # fmt: skip
FILES = {"so-titles": "titles.csv", "ag-news": "articles.csv"}
OTHERS = {"ag": "ag-news", "so": "so-titles"}
Rows = list[tuple[str, str]]


def rows_of(folder: Path, name: str) -> Rows:
    """Return texts and classes."""
    if name in FILES:
        with (folder / name / FILES[name]).open(encoding="utf-8", newline="") as file:
            return [(row["text"], row["label"]) for row in csv.DictReader(file) if row["text"].strip()]
    lines = (line.rstrip("\n").split("\t") for line in (folder / name / "corpus.tsv").open(encoding="utf-8"))
    return [(line[0], line[2]) for line in lines]


def exchanged(texts: list[str], random: Any) -> list[str]:
    """Return texts of the same lengths with the words of all of them, in random order."""
    pool = [word for text in texts for word in text.split()]
    random.shuffle(pool)
    left = iter(pool)
    return [" ".join(next(left) for _ in text.split()) for text in texts]


def newsgroups(folder: Path, known: set[str], n: int, random: Any) -> list[str]:
    """Return posts of 20 Newsgroups with their known words, at least 20 of them."""
    counts = sp.csr_array(sp.load_npz(folder / "20ng" / "test_bow.npz"))
    words = (folder / "20ng" / "vocab.txt").read_text(encoding="utf-8").split("\n")
    found = []
    for row in random.permutation(counts.shape[0]):
        part = counts[[row]].tocsr()
        text = [words[i] for i, n_of in zip(part.indices, part.data, strict=True) if words[i] in known
                for _ in range(int(n_of))]  # fmt: skip
        if len(text) >= 20:
            found.append(" ".join(text))
        if len(found) == n:
            break
    return found


def made(folder: Path, case: str) -> tuple[list[str], list[str], list[str], list[str]]:
    """Return the training texts, the planted ones among them, the new texts and the planted ones among these."""
    corpus, kind = case.split(":")
    rows = rows_of(folder, corpus)
    held_out = kind.removeprefix("class") if kind.startswith("class") else None
    kept = [text for text, label in rows if label != held_out]
    order = np.random.default_rng(0).permutation(len(kept))
    n = int(0.75 * len(kept))
    train, new = ([kept[i] for i in part] for part in (order[:n], order[n:]))

    def planted(n: int, seed: int) -> list[str]:
        random = np.random.default_rng(seed)
        if kind == "shuffled":
            return exchanged([new[i] for i in random.permutation(len(new))[:n]], random)
        if kind == "20ng":
            return newsgroups(folder, {word for text in train for word in text.split()}, n, random)
        if held_out is None:
            source = [text for text, _ in rows_of(folder, OTHERS[kind])]
        else:
            source = [text for text, label in rows if label == held_out]
        return [source[i] for i in random.permutation(len(source))[:n]]

    return train, planted(int(0.02 * len(train)), 2), new, planted(max(50, int(0.02 * len(new))), 1)


def encoded(python: Path, texts: list[str]) -> Any:
    with tempfile.TemporaryDirectory() as place:
        source, target = Path(place, "texts.json"), Path(place, "vectors.npy")
        source.write_text(json.dumps(texts), encoding="utf-8")
        script = str(Path(__file__).with_name("encode.py"))
        subprocess.run([str(python), script, "wordllama", str(source), str(target)], check=True)
        return np.load(target).astype(np.float32)


def figures(is_planted: Any, score: Any) -> str:
    first = np.argsort(-score, kind="stable")[:50]
    return f"AUC {roc_auc_score(is_planted, score):.3f}, precision {is_planted[first].mean():.2f}"


def measure(folder: Path, python: Path, case: str) -> None:
    train, inside, new, planted = made(folder, case)
    vectors = encoded(python, train + inside + new + planted)
    for place in ("new", "in training"):
        texts = train if place == "new" else train + inside
        options = (
            {"language": "en"} if case.split(":")[0] in FILES else {"tokenizer": str.split, "min_df": 1, "max_df": 1.0}
        )
        for has_vectors in (False, True):
            corpus = tl.Corpus.from_texts(texts, **options)
            corpus = corpus.with_vectors(vectors[: len(texts)]) if has_vectors else corpus
            model = tl.Loom(20, random_state=0).fit(corpus)
            topics, judged = tl.Topics(model, corpus), None
            if place == "new":
                judged = model.documents(new + planted, vectors=vectors[len(train + inside) :] if has_vectors else None)
            found = topics.outliers(None, X=judged)
            rows = np.array(
                [row for row, topic in zip(found["document"], found["topic"], strict=True) if topic is not None]
            )
            is_planted = rows >= (len(new) if place == "new" else len(train))
            share = np.array([each for each in found["share"] if each is not None])
            is_outlier = np.array(found["outlier"])[: len(rows)]
            planted_part, others = is_outlier[is_planted].mean(), is_outlier[~is_planted].mean()
            print(
                f"{case}, {place}, {'vectors' if has_vectors else 'words'}:",
                f"{figures(is_planted, -np.arange(len(rows)))}; largest share: {figures(is_planted, 1 - share)};",
                f"outliers: {planted_part:.0%} of the planted, {others:.1%} of the others",
                flush=True,
            )


if __name__ == "__main__":
    parser = shared.parser(__doc__)
    parser.add_argument("--encoders", type=Path, required=True, help="Python of the environment with the encoders")
    parser.add_argument("--only", help="cases, such as so-titles:ag")
    given = parser.parse_args()
    for case in CASES if given.only is None else given.only.split(","):
        measure(given.shared / "data", given.encoders, case)
