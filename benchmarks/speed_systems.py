"""The models that speed.py measures, of this package and of others, and their settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

ROUNDS = 3
BASE = {"docs": 10_000, "words": 20_000, "topics": 50}
GROWTH = {"docs": (10_000, 100_000, 1_000_000), "words": (2_000, 20_000, 100_000), "topics": (20, 200, 1_000)}
ALL = ("epochs", "curves", "growth")
LIMITS = {
    "epochs": 30.0,
    "curves": 30.0,
    "growth": 12.0,
    "ends": 2000.0,
}  # processor seconds of training, for each thread
LARGE = {"docs": {100_000: 60.0, 1_000_000: 150.0}, "words": {100_000: 60.0}, "topics": {1_000: 60.0}}  # in growth


@dataclass(frozen=True)
class System:
    """A model of a package.

    Attributes:
        package: the name of the package.
        model: its class.
        settings: those that differ from the package's defaults.
        group: the models that do the same, with equal settings; "" for defaults.
        epochs: of a fit, by default or as the package recommends.
        parts: what is measured.
        note: the settings, for the page.
    """

    package: str
    model: str
    settings: dict[str, Any] = field(default_factory=dict)
    group: str = ""
    epochs: int = 0
    parts: tuple[str, ...] = ALL
    note: str = ""


def limit_of(job: dict[str, Any]) -> float:
    """Return the processor seconds, for each thread, after which the fit of a job is ended."""
    longer = [limits.get(job[factor], 0.0) for factor, limits in LARGE.items()] if job["part"] == "growth" else []
    return max(LIMITS[job["part"]], *longer) if longer else LIMITS[job["part"]]


_ETM, _PROD = "ETM, 800 units, batches of 200", "ProdLDA, 200 units, batches of 200"
_PLAIN = {"spare_topics": 0}
_WIDE = _PLAIN | {"hidden_size": 800, "batch_size": 200, "embedding_size": 200}
SYSTEMS = {
    "ours: GSM": System("topicloom", "GSM", _PLAIN, epochs=60, note="without spare topics"),
    "ours: ETM": System("topicloom", "ETM", _PLAIN, epochs=60, note="without spare topics"),
    "ours: ProdLDA": System("topicloom", "ProdLDA", _PLAIN, epochs=30, note="without spare topics"),
    "ours: W-LDA": System("topicloom", "WLDA", _PLAIN, epochs=60, note="without spare topics"),
    "ours: Loom": System("topicloom", "Loom", _PLAIN, epochs=125, note="a pass of the sampling stage"),
    "TopMost ETM": System("TopMost", "ETM", epochs=200),
    "TopMost ProdLDA": System("TopMost", "ProdLDA", epochs=200),
    "gensim LDA": System("gensim", "LdaModel", epochs=20),
    "scikit-learn LDA": System("scikit-learn", "LDA", epochs=10),
    "scikit-learn LDA, online": System("scikit-learn", "LDA", {"learning_method": "online"}, epochs=20),
    "tomotopy LDA": System("tomotopy", "LDA", epochs=1000),
    "topica sparse LDA": System("topica", "LDA", {"alpha_each": 0.1}, epochs=1000),
    "topica WarpLDA": System("topica", "LDA", {"alpha_each": 0.1, "sampler": "warp"}, epochs=1000),
    "topica ETM, EM": System("topica", "ETM", epochs=0),
    "topica ProdLDA": System("topica", "ProdLDA", epochs=200),
    "topica FASTopic": System("topica", "FASTopic", epochs=200),
    "ours: ETM, equal": System(
        "topicloom",
        "ETM",
        _WIDE,
        _ETM,
        60,
        ("epochs",),
    ),
    "TopMost ETM, equal": System("TopMost", "ETM", {"train_WE": True}, _ETM, 200, ("epochs",)),
    "topica ETM, VAE, equal": System("topica", "ETM", {"inference": "vae", "batch_size": 200}, _ETM, 200, ("epochs",)),
    "ours: ProdLDA, equal": System(
        "topicloom", "ProdLDA", _PLAIN | {"hidden_size": 200, "batch_size": 200}, _PROD, 60, ("epochs",)
    ),
    "TopMost ProdLDA, equal": System("TopMost", "ProdLDA", {}, _PROD, 200, ("epochs",)),
    "topica ProdLDA, equal": System("topica", "ProdLDA", {"hidden_size": 200}, _PROD, 200, ("epochs",)),
}
CURVES = {
    "ours: GSM": [5, 10, 20, 60],
    "ours: ETM": [5, 10, 20, 60],
    "ours: ProdLDA": [5, 10, 20, 60],
    "ours: W-LDA": [5, 10, 20, 60],
    "ours: Loom": [40, 80, 155, 286],
    "TopMost ETM": [5, 10, 20, 40],
    "TopMost ProdLDA": [5, 10, 20, 40, 80],
    "gensim LDA": [1, 2, 5, 10, 20],
    "scikit-learn LDA": [2, 5, 10, 20],
    "scikit-learn LDA, online": [2, 5, 10, 20],
    "tomotopy LDA": [10, 20, 50, 100, 200, 500, 1000],
    "topica sparse LDA": [20, 50, 100, 200],
    "topica WarpLDA": [20, 50, 100, 200, 500],
    "topica ETM, EM": [2, 5, 10],
    "topica ProdLDA": [5, 10, 20],
    "topica FASTopic": [20, 50],
}
# The fits of TopMost that run to their end, and the lengths of the other fits that are compared with them.
_OURS = [1, 2, 3, 5, 10, 20]
ENDS = {
    "TopMost ProdLDA": [1, 2, 5, 10, 20, 50, 100, 150, 200],
    "ours: GSM": _OURS,
    "ours: ETM": _OURS,
    "ours: ProdLDA": _OURS,
    "ours: W-LDA": _OURS,
    "ours: Loom": [5, 10, 20, 40, 80, 155],
    "TopMost ETM": [1, 2, 5, 10, 20, 50, 100, 150, 200],
    "topica FASTopic": [200],
    "topica ProdLDA": [100],
    "topica ETM, EM": [50],
}
CORPORA = ("20ng",)  # in ENDS
