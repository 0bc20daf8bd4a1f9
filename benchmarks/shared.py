"""Code that the benchmarks share: corpora, variants of models, and the evaluation of a fitted model."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

import topicloom as tl
from topicloom.metrics import duplicate_topics
from topicloom.models.inference import log_likelihood

CORPORA = ("20ng", "20news-avitm", "bbc-news", "m10", "cnews10k")
RAW = ("cnews10k", "emnlp2020")  # folders with lines.txt, which judge.py cannot read
SHORT = ("m10", "cnews10k")  # titles, whose TD is measured with the package's own ranking
RESULTS = Path(__file__).resolve().parent / "results"
_SPLIT_SEED = 0


@dataclass(frozen=True)
class Variant:
    """A model with the settings in which it differs from the defaults."""

    name: str
    model: str
    settings: dict[str, Any] = field(default_factory=dict)
    word_vectors: bool = False  # start from CBOW vectors of the training documents

    def make(self, n_topics: int, seed: int, data: dict[str, Any] | None = None) -> tl.TopicModel:
        """Make the unfitted model.

        Raises:
            AttributeError: the package has no such model.
            SettingError: the model has no such setting.
        """
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
        Variant("WLDA gaussian", "WLDA", {"prior": "gaussian"}),
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
        Variant("ProdLDA 60 epochs", "ProdLDA", {"epochs": 60, "weight_decay": 1e-4}),
        Variant("NVLDA", "NVLDA"),
        Variant("BATM", "BATM"),
        Variant("GaussianBATM", "GaussianBATM"),
        Variant("GaussianBATM cbow fixed", "GaussianBATM", {"fixed_word_vectors": True}, word_vectors=True),
    )
}


def variants(names: str | None = None) -> list[Variant]:
    """Return the variants that a comma-separated list names by variant or by model; None selects all.

    Variants that the package does not have are left out and named on standard error.
    """
    wanted = None if names is None else [name.strip().lower() for name in names.split(",")]
    if wanted is not None:
        known = {text.lower() for variant in VARIANTS.values() for text in (variant.name, variant.model)}
        if unknown := set(wanted) - known:
            raise SystemExit(f"unknown variant: {', '.join(sorted(unknown))}; choose from {', '.join(VARIANTS)}")
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
    """Return a parser with the option `--shared`, the folder of the corpora and of judge.py."""
    made = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    default = Path(__file__).resolve().parents[2] / "shared"
    made.add_argument("--shared", type=Path, default=default, help="folder that contains data/ and judge/judge.py")
    return made


def add_peers(made: argparse.ArgumentParser, packages: str) -> None:
    """Add the option `--peers`: the Python of the environment that the Makefile makes with these packages."""
    python = Path(__file__).resolve().parents[1] / ".venv-peers" / "bin" / "python"
    made.add_argument("--peers", type=Path, default=python, help=f"Python interpreter with {packages}")


def run_peer(
    shared: Path,
    data: dict[str, Any],
    python: Path,
    script: str,
    request: dict[str, Any],
    vectors: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Let another package learn from the training documents, and return the arrays that its script writes.

    Args:
        shared: the folder of judge.py.
        data: what `load` or `held_out` returns.
        python: the interpreter with the package.
        script: a file beside this one, such as topmost_peer.py. It gets the request as JSON, and a folder with the
            counts train.npz, test.npz and half.npz (the observed halves of the test documents).
        request: what the script fits; "threads" is the number of threads of OpenMP, too.
        vectors: the vectors of the documents "train" and "test", which the script finds as vectors.npz.

    Raises:
        RuntimeError: the script ended in an error, whose last line is the message.
    """
    observed, _ = independent_metrics(shared).split_counts(data["test"])
    with tempfile.TemporaryDirectory() as folder:
        for part, counts in (("train", data["train"]), ("test", data["test"]), ("half", observed)):
            sp.save_npz(Path(folder) / f"{part}.npz", sp.csr_matrix(counts))
        if vectors is not None:
            np.savez(Path(folder) / "vectors.npz", **vectors)
        command = [str(python), str(Path(__file__).with_name(script)), json.dumps(request), folder]
        environment = os.environ | {"OMP_NUM_THREADS": str(request["threads"])}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError((done.stderr.strip() or f"ended with {done.returncode}").splitlines()[-1])
        return dict(np.load(Path(folder) / "out.npz"))


@cache
def independent_metrics(shared: Path) -> Any:
    """Return the module judge.py, which implements the measures independently of the package."""
    sys.path.insert(0, str(shared / "judge"))
    import judge as module

    return module


@cache
def load(shared: Path, name: str) -> dict[str, Any]:
    """Return the train and test counts, vocab, train_labels and test_labels (None if the corpus has no labels).

    A corpus of raw lines has no test documents of its own. A fifth of its documents, drawn with a fixed seed, is used.
    """
    if name not in RAW:
        return independent_metrics(shared).load(name, shared / "data")  # type: ignore[no-any-return]
    corpus = tl.Corpus.from_file(shared / "data" / name / "lines.txt")
    counts = sp.csr_matrix(corpus.counts[~corpus.is_empty]).astype(np.float32)
    whole = {"train": counts, "vocab": corpus.vocabulary, "train_labels": None}
    return held_out(whole, 0.2)


def _word_vectors(data: dict[str, Any]) -> Any:
    """Return word vectors that were trained on the training documents.

    If only the counts of the documents are known, the order of words is random. The vectors are stored in `data` for
    the next model.
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
    """Split the training documents into a part to learn from and a part ("test") to choose settings on."""
    n_docs = data["train"].shape[0]
    order = np.random.default_rng(_SPLIT_SEED).permutation(n_docs)
    test, train = order[: int(n_docs * share)], order[int(n_docs * share) :]
    labels, texts = data["train_labels"], data.get("train_texts")
    return {name: whole for name, whole in data.items() if name != "word_vectors"} | {
        "train_texts": [texts[row] for row in train] if texts else None,
        "train": data["train"][train],
        "test": data["train"][test],
        "train_labels": None if labels is None else labels[train],
        "test_labels": None if labels is None else labels[test],
    }


def fit(model: tl.TopicModel, data: dict[str, Any]) -> tuple[tl.TopicModel, float]:
    """Fit a model, and return it with the seconds that the fit took."""
    start = time.perf_counter()
    model.fit(data["train"], vocabulary=data["vocab"])
    return model, time.perf_counter() - start


def matched(planted: np.ndarray, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which found topic each planted one is in the best matching, and their total variation distance, (K,) each.

    Args:
        planted, found: (K, V) topics, rows sum to 1.
    """
    distance = np.abs(planted[:, None] - found[None]).sum(2) / 2  # (K, K)
    rows, columns = linear_sum_assignment(distance)
    return columns, distance[rows, columns]


def evaluate(shared: Path, data: dict[str, Any], model: tl.TopicModel) -> dict[str, float]:
    """Return the figures of a fitted model.

    These are the measures of judge.py and signs of collapse. The keys are those of stored results:
        npmi, td: with words ranked by probability; npmi6, td6: by relevance .6; npmi_own, td_own: by the package's own
            rule; npmi0, td0: by relevance 0.
        npmi_test: npmi6 over the test documents.
        own_ppl: perplexity by document completion with the model's own decoder.
        alive: topics that are the main topic of some training document.
        twins, twins_own: pairs of topics that share 8 of their 10 top words, by relevance .6 and by the own rule.
        bound_ratio: the perplexity of the evidence lower bound divided by own_ppl, if the model has a bound.
        units, active_units: latent dimensions, and those whose KL divergence is above .01, if the model has them.
    """
    independent = independent_metrics(shared)
    observed, scored = independent.split_counts(data["test"])
    theta_train, theta_half = model.transform(data["train"]), model.transform(observed)
    relevant = model.topic_ids(10, relevance=0.6).tolist()
    own, lifted = model.topic_ids(25).tolist(), model.topic_ids(25, relevance=0.0).tolist()
    row = {
        **independent.score(
            data,
            model.components_,
            theta_train if data["train_labels"] is not None else None,
            model.transform(data["test"]),
            theta_half,
            scored,
        ),
        "npmi_own": float(independent.npmi(own, sp.csr_matrix(data["train"])).mean()),
        "td_own": float(independent.diversity(own)),
        # NPMI over documents that no model has seen. A model that selects topics by NPMI cannot optimise this one.
        "npmi_test": float(independent.npmi(relevant, sp.csr_matrix(data["test"])).mean()),
        # Words ranked by lift alone. The authors of ProdLDA rank in this way, by the rows of B.
        "npmi0": float(independent.npmi(lifted, sp.csr_matrix(data["train"])).mean()),
        "td0": float(independent.diversity(lifted)),
        "twins": int(duplicate_topics(np.array(relevant))),
        "twins_own": int(duplicate_topics(model.topic_ids(10))),
        # Perplexity by document completion with the model's own decoder, which need not be a mixture.
        "own_ppl": completion_perplexity(model, theta_half, scored),
        "alive": len(np.unique(theta_train.argmax(1))),
    }
    last = model.history_[-1] if model.history_ else {}
    if "active_units_by_divergence" in last:
        row |= {"active_units": last["active_units_by_divergence"], "units": len(last["kl_per_dimension"])}
    if isinstance(model, tl.VariationalTopicModel):
        test = tl.Corpus.from_counts(data["test"], model.vocabulary_)
        row["bound_ratio"] = model.perplexity(test, method="bound") / row["own_ppl"]
    return row


def completion_perplexity(model: tl.TopicModel, theta: Any, scored: Any) -> float:
    """Return the perplexity of the scored halves given theta of the observed halves, with the model's own decoder."""
    scored = sp.csr_array(scored)
    total = log_likelihood(model.network_, theta, tl.Corpus.from_counts(scored, model.vocabulary_)).sum()
    return float(np.exp(-total / scored.sum()))
