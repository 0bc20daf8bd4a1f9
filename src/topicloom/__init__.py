"""topicloom: neural topic models, from raw text to topics a person can read, trust and use.

Names are loaded when they are first used, so that `import topicloom` and the command line start without PyTorch.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

# A thread that waits for another spins for a while before it sleeps; for so long, by default, that beside a second busy
# process a training step takes several times its time. Read when PyTorch is first imported; settings of your own stand.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "3000")

if TYPE_CHECKING:
    from . import datasets, metrics
    from .comparison import Comparison, compare, select_n_topics
    from .corpus import Corpus
    from .errors import InputError, TrainingDivergedError
    from .estimator import TopicModel
    from .evaluation import Evaluation, evaluate
    from .models import BATM, ETM, GMNTM, GSM, LDA, MODELS, NVDM, NVLDA, WLDA, DirichletVAE, Loom, ProdLDA
    from .persistence import load
    from .tuning import Tuning, tune
    from .word_vector_files import read_word_vectors
    from .word_vectors import WordVectors, train_word_vectors

__version__ = "0.1.0"

_HOMES = {
    "BATM": ".models",
    "Comparison": ".comparison",
    "Corpus": ".corpus",
    "DirichletVAE": ".models",
    "ETM": ".models",
    "Evaluation": ".evaluation",
    "GMNTM": ".models",
    "GSM": ".models",
    "InputError": ".errors",
    "LDA": ".models",
    "Loom": ".models",
    "MODELS": ".models",
    "NVDM": ".models",
    "NVLDA": ".models",
    "ProdLDA": ".models",
    "TopicModel": ".estimator",
    "TrainingDivergedError": ".errors",
    "Tuning": ".tuning",
    "WLDA": ".models",
    "WordVectors": ".word_vectors",
    "compare": ".comparison",
    "datasets": ".datasets",
    "evaluate": ".evaluation",
    "load": ".persistence",
    "metrics": ".metrics",
    "read_word_vectors": ".word_vector_files",
    "select_n_topics": ".comparison",
    "train_word_vectors": ".word_vectors",
    "tune": ".tuning",
}

__all__ = [
    "BATM",
    "ETM",
    "GMNTM",
    "GSM",
    "LDA",
    "MODELS",
    "NVDM",
    "NVLDA",
    "WLDA",
    "Comparison",
    "Corpus",
    "DirichletVAE",
    "Evaluation",
    "InputError",
    "Loom",
    "ProdLDA",
    "TopicModel",
    "TrainingDivergedError",
    "Tuning",
    "WordVectors",
    "compare",
    "datasets",
    "evaluate",
    "load",
    "metrics",
    "read_word_vectors",
    "select_n_topics",
    "train_word_vectors",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'topicloom' has no attribute {name!r}")
    module = import_module(_HOMES[name], __name__)
    return module if name in ("datasets", "metrics") else getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
