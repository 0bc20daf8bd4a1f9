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
    from .corpus import Corpus
    from .errors import InputError, TrainingDivergedError
    from .estimator import TopicModel
    from .models import GSM, LDA, MODELS
    from .persistence import load

__version__ = "0.1.0"

_HOMES = {
    "Corpus": ".corpus",
    "GSM": ".models",
    "InputError": ".errors",
    "LDA": ".models",
    "MODELS": ".models",
    "TopicModel": ".estimator",
    "TrainingDivergedError": ".errors",
    "datasets": ".datasets",
    "load": ".persistence",
    "metrics": ".metrics",
}

__all__ = [
    "GSM",
    "LDA",
    "MODELS",
    "Corpus",
    "InputError",
    "TopicModel",
    "TrainingDivergedError",
    "datasets",
    "load",
    "metrics",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'topicloom' has no attribute {name!r}")
    module = import_module(_HOMES[name], __name__)
    return module if name in ("datasets", "metrics") else getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
