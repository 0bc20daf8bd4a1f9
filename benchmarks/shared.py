"""What the benchmarks have in common: corpora, variants of models, the judge, and the figures of a fitted model."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import topicloom as tl
from topicloom.metrics import duplicate_topics
from topicloom.models.inference import log_likelihood

CORPORA = ("20ng", "20news-avitm", "bbc-news", "m10", "cnews10k")
RAW = ("cnews10k", "emnlp2020")  # folders with lines.txt, which the judge does not read
SHORT = ("m10", "cnews10k")  # titles: TD is read under the package's own ranking
RESULTS = Path(__file__).resolve().parent / "results"  # not kept by git
_SPLIT_SEED = 0


@dataclass(frozen=True)
class Variant:
    """A model with what is asked of it beyond its defaults."""

    name: str
    model: str
    settings: dict[str, Any] = field(default_factory=dict)
    word_vectors: bool = False  # started from CBOW vectors of the training documents

    def make(self, n_topics: int, seed: int, data: dict[str, Any] | None = None) -> tl.TopicModel:
        """Raises AttributeError for a model, and SettingError for a setting, that the package does not have."""
        model = getattr(tl, self.model)(n_topics, random_state=seed, **self.settings)
        if self.word_vectors and data is not None:
            model.set_params(word_vectors=_word_vectors(data))
        return model  # type: ignore[no-any-return]


VARIANTS = {
    variant.name: variant
    for variant in (
        Variant("LDA variational", "LDA", {"method": "variational"}),
        Variant("LDA gibbs", "LDA", {"method": "gibbs"}),
        Variant("Loom", "Loom"),
        Variant("GSM", "GSM"),
        Variant("NVDM", "NVDM"),
        Variant("WLDA dirichlet", "WLDA", {"prior": "dirichlet"}),
        Variant("WLDA gmm-std", "WLDA", {"prior": "gmm-std"}),
        Variant("WLDA gmm-ctm", "WLDA", {"prior": "gmm-ctm"}),
        Variant("ETM", "ETM"),
        Variant("ETM cbow", "ETM", word_vectors=True),
        Variant("ETM cbow fixed", "ETM", {"fixed_word_vectors": True}, word_vectors=True),
        Variant("GMNTM", "GMNTM"),
        Variant("DirichletVAE laplace", "DirichletVAE", {"estimator": "laplace"}),
        Variant("DirichletVAE implicit", "DirichletVAE", {"estimator": "implicit"}),
        Variant("DirichletVAE rsvi", "DirichletVAE", {"estimator": "rsvi"}),
        Variant("DirichletVAE weibull", "DirichletVAE", {"estimator": "weibull"}),
        Variant("DirichletVAE icdf", "DirichletVAE", {"estimator": "icdf"}),
        Variant("DirichletVAE sparse", "DirichletVAE", {"sparsity": 0.5}),
        Variant("ProdLDA", "ProdLDA"),
        Variant("NVLDA", "NVLDA"),
        Variant("BATM", "BATM"),
    )
}


def variants(names: str | None = None) -> list[Variant]:
    """Those named in a comma-separated list, by variant or by model; by default all that the package has.

    What the package does not have is told on standard error and left out.
    """
    wanted = None if names is None else [name.strip().lower() for name in names.split(",")]
    if wanted is not None:
        known = {text.lower() for variant in VARIANTS.values() for text in (variant.name, variant.model)}
        if unknown := set(wanted) - known:
            raise SystemExit(f"no such variant: {', '.join(sorted(unknown))}; there are {', '.join(VARIANTS)}")
    found, absent = [], []
    for variant in VARIANTS.values():
        if wanted is not None and not {variant.name.lower(), variant.model.lower()} & set(wanted):
            continue
        try:
            variant.make(2, 0)
        except (AttributeError, tl.InputError) as error:
            absent.append(f"{variant.name} ({error})" if isinstance(error, tl.InputError) else variant.name)
        else:
            found.append(variant)
    if absent:
        print(f"not in the package: {', '.join(absent)}", file=sys.stderr)
    return found


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


def _word_vectors(data: dict[str, Any]) -> Any:
    """Vectors of the training documents; where only their counts are known, the order of words is drawn.

    They are kept in `data` for the next model.
    """
    if "word_vectors" not in data:
        texts = data.get("train_texts")
        if not texts:
            random, words = np.random.default_rng(_SPLIT_SEED), np.array(data["vocab"])
            counts = sp.csr_matrix(data["train"])
            tokens = np.repeat(counts.indices, counts.data.astype(int))
            ends = np.cumsum(np.asarray(counts.sum(1)).ravel()).astype(int)
            texts = [words[random.permutation(ids)].tolist() for ids in np.split(tokens, ends[:-1]) if len(ids)]
        data["word_vectors"] = tl.train_word_vectors(texts)
    return data["word_vectors"]


def held_out(data: dict[str, Any], share: float = 0.15) -> dict[str, Any]:
    """Training documents in the place of both: a part to learn from, and a part to choose settings on."""
    n_docs = data["train"].shape[0]
    order = np.random.default_rng(_SPLIT_SEED).permutation(n_docs)
    held, kept = order[: int(n_docs * share)], order[int(n_docs * share) :]
    labels = data["train_labels"]
    return {name: whole for name, whole in data.items() if name not in ("train_texts", "word_vectors")} | {
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
    """The judge's figures (6: ranked by relevance .6), those of the package's own ranking (own), and signs of collapse.

    alive: topics that are the largest of some training document; twins: pairs of topics that share 8 of 10 words;
    units and active_units: latent dimensions, and those that say something of a document (models that have them).
    """
    ruler = judge(shared)
    observed, scored = ruler.split_counts(data["test"])
    theta_train, theta_half = model.transform(data["train"]), model.transform(observed)
    relevant = model.topic_ids(10, relevance=0.6).tolist()
    own, lifted = model.topic_ids(25).tolist(), model.topic_ids(25, relevance=0.0).tolist()
    row = {
        **ruler.score(
            data,
            model.components_,
            theta_train if data["train_labels"] is not None else None,
            model.transform(data["test"]),
            theta_half,
            scored,
        ),
        "npmi_own": float(ruler.npmi(own, sp.csr_matrix(data["train"])).mean()),
        "td_own": float(ruler.diversity(own)),
        # Over documents that no model has seen: the only NPMI that a choice of topics by NPMI cannot have aimed at.
        "npmi_test": float(ruler.npmi(relevant, sp.csr_matrix(data["test"])).mean()),
        # By lift alone, which is how ProdLDA's authors rank: the rows of B.
        "npmi0": float(ruler.npmi(lifted, sp.csr_matrix(data["train"])).mean()),
        "td0": float(ruler.diversity(lifted)),
        "twins": int(duplicate_topics(np.array(relevant))),
        "twins_own": int(duplicate_topics(model.topic_ids(10))),
        # As perplexity by completion, but by the model's own decoder, which need not be a mixture.
        "own_ppl": completion(model, theta_half, scored),
        "alive": len(np.unique(theta_train.argmax(1))),
    }
    last = model.history_[-1] if model.history_ else {}
    if "active_units_by_divergence" in last:
        row |= {"active_units": last["active_units_by_divergence"], "units": len(last["kl_per_dimension"])}
    return row


def completion(model: tl.TopicModel, theta: Any, scored: Any) -> float:
    """Perplexity of the scored halves given theta of the observed ones, by the model's own likelihood."""
    scored = sp.csr_array(scored)
    total = log_likelihood(model.network_, theta, tl.Corpus.from_counts(scored, model.vocabulary_)).sum()
    return float(np.exp(-total / scored.sum()))
