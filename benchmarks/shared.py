"""What the benchmarks have in common: corpora, the judge, and one row of figures for a fitted model."""

from __future__ import annotations

import argparse
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import topicloom as tl
from topicloom.collapse import duplicates

CORPORA = ("20ng", "20news-avitm", "bbc-news", "m10", "cnews10k")
RAW = ("cnews10k", "emnlp2020")  # folders with lines.txt, which the judge does not read
_SPLIT_SEED = 0


def parser(description: str | None) -> argparse.ArgumentParser:
    """A parser that knows where corpora and judge are."""
    made = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    made.add_argument("--shared", type=Path, default=Path(__file__).resolve().parents[2] / "shared")
    return made


@cache
def judge(shared: Path) -> Any:
    """The module judge.py."""
    sys.path.insert(0, str(shared / "judge"))
    import judge as module

    return module


@cache
def load(shared: Path, name: str) -> dict[str, Any]:
    """train and test counts, vocab, train_labels and test_labels (None where there are none).

    A corpus of raw lines has no test documents of its own: a fifth, drawn with a fixed seed, stands for them.
    """
    if name not in RAW:
        return judge(shared).load(name, shared / "data")  # type: ignore[no-any-return]
    corpus = tl.Corpus.from_file(shared / "data" / name / "lines.txt")
    counts = sp.csr_matrix(corpus.counts[~corpus.is_empty]).astype(np.float32)
    whole = {"train": counts, "vocab": corpus.vocabulary, "train_labels": None}
    return held_out(whole, 0.2)


def held_out(data: dict[str, Any], share: float = 0.15) -> dict[str, Any]:
    """Training documents in the place of both: a part to learn from, and a part to choose settings on."""
    n_docs = data["train"].shape[0]
    order = np.random.default_rng(_SPLIT_SEED).permutation(n_docs)
    held, kept = order[: int(n_docs * share)], order[int(n_docs * share) :]
    labels = data["train_labels"]
    return data | {
        "train": data["train"][kept],
        "test": data["train"][held],
        "train_labels": None if labels is None else labels[kept],
        "test_labels": None if labels is None else labels[held],
    }


def fitted(model: tl.TopicModel, data: dict[str, Any]) -> tuple[tl.TopicModel, float]:
    """The model, and the seconds that fit took."""
    began = time.perf_counter()
    model.fit(data["train"], vocabulary=data["vocab"])
    return model, time.perf_counter() - began


def judged(shared: Path, data: dict[str, Any], model: tl.TopicModel) -> dict[str, float]:
    """The judge's figures (6: ranked by relevance .6), and those of the package's own ranking (own)."""
    ruler = judge(shared)
    observed, scored = ruler.split_counts(data["test"])
    counts = sp.csr_matrix(data["train"])
    own = model.topic_ids(25).tolist()
    return {
        **ruler.score(
            data,
            model.components_,
            model.transform(data["train"]) if data["train_labels"] is not None else None,
            model.transform(data["test"]),
            model.transform(observed),
            scored,
        ),
        "npmi_own": float(ruler.npmi(own, counts).mean()),
        "td_own": float(ruler.diversity(own)),
        "twins": duplicates(model.topic_ids(10, relevance=0.6)),
        "twins_own": duplicates(model.topic_ids(10)),
        # As perplexity by completion, but by the model's own decoder, which need not be a mixture.
        "own_ppl": completion(model, observed, scored),
    }


def completion(model: tl.TopicModel, observed: Any, scored: Any) -> float:
    """Perplexity of the scored halves given theta of the observed ones, by the model's own likelihood."""
    scored = sp.csr_array(scored)
    total = model._log_likelihood(model.transform(observed), scored).sum()
    return float(np.exp(-total / scored.sum()))
