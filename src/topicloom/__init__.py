"""topicloom: neural topic models, from raw text to topics that people can read, trust and use.

The main names are `Corpus` (documents as counts of words), the models (`Loom`, `GSM`, `ETM`, `LDA` and others), `load`
(reads a saved model), `Topics` (topics with documents, to read and edit them), `evaluate`, `compare`,
`select_n_topics`, `tune`, and the modules `datasets`, `metrics` and `figures`. An example:

    import topicloom as tl

    model = tl.Loom(n_topics=20, random_state=0).fit(["a text", "another text", ...])
    for words in model.topics():
        print(*words)

Names are loaded when they are first used, so that `import topicloom` and the command line start without PyTorch.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from ._version import __version__

if _TYPE_CHECKING:
    from typing import Any

    from . import datasets as datasets
    from . import distributed as distributed
    from . import metrics as metrics
    from .corpus import Corpus as Corpus
    from .embeddings import WordVectors as WordVectors
    from .embeddings import read_word_vectors as read_word_vectors
    from .embeddings import train_word_vectors as train_word_vectors
    from .errors import CorpusFileError as CorpusFileError
    from .errors import InputError as InputError
    from .errors import LostRankError as LostRankError
    from .errors import ModelFileError as ModelFileError
    from .errors import OutOfMemoryError as OutOfMemoryError
    from .errors import StateNotSavedError as StateNotSavedError
    from .errors import TrainingDivergedError as TrainingDivergedError
    from .errors import TrainingInterrupted as TrainingInterrupted
    from .evaluation import Evaluation as Evaluation
    from .evaluation import evaluate as evaluate
    from .experiments.compare import Comparison as Comparison
    from .experiments.compare import compare as compare
    from .experiments.compare import select_n_topics as select_n_topics
    from .experiments.tune import Tuning as Tuning
    from .experiments.tune import tune as tune
    from .models import BATM as BATM
    from .models import ECRTM as ECRTM
    from .models import ETM as ETM
    from .models import GMNTM as GMNTM
    from .models import GSM as GSM
    from .models import LDA as LDA
    from .models import MODELS as MODELS
    from .models import NVDM as NVDM
    from .models import NVLDA as NVLDA
    from .models import WLDA as WLDA
    from .models import DirichletVAE as DirichletVAE
    from .models import FASTopic as FASTopic
    from .models import GaussianBATM as GaussianBATM
    from .models import Loom as Loom
    from .models import ProdLDA as ProdLDA
    from .models import VectorClusters as VectorClusters
    from .models.autoencoders import VariationalTopicModel as VariationalTopicModel
    from .models.base import TopicModel as TopicModel
    from .models.ensemble import Ensemble as Ensemble
    from .models.etm import EmbeddedTopicModel as EmbeddedTopicModel
    from .models.loading import load as load
    from .models.neural import NeuralTopicModel as NeuralTopicModel
    from .reports import figures as figures
    from .reports.figures.networks import diagram as diagram
    from .reports.merging import MergedRuns as MergedRuns
    from .reports.merging import merge as merge
    from .reports.updating import Update as Update
    from .reports.updating import update as update
    from .topics.document_topics import DocumentTopics as DocumentTopics
    from .topics.view import Topics as Topics
    from .training.callbacks import Callback as Callback
    from .training.checkpoints import Checkpoints as Checkpoints

# Each public name and the module that it is loaded from. datasets, distributed, figures and metrics are modules.
_MODULES = {
    "datasets": ".datasets",
    "distributed": ".distributed",
    "figures": ".reports.figures",
    "metrics": ".metrics",
    "Corpus": ".corpus",
    "WordVectors": ".embeddings",
    "read_word_vectors": ".embeddings",
    "train_word_vectors": ".embeddings",
    "CorpusFileError": ".errors",
    "InputError": ".errors",
    "LostRankError": ".errors",
    "ModelFileError": ".errors",
    "OutOfMemoryError": ".errors",
    "StateNotSavedError": ".errors",
    "TrainingDivergedError": ".errors",
    "TrainingInterrupted": ".errors",
    "Evaluation": ".evaluation",
    "evaluate": ".evaluation",
    "compare": ".experiments.compare",
    "select_n_topics": ".experiments.compare",
    "Comparison": ".experiments.compare",
    "Tuning": ".experiments.tune",
    "tune": ".experiments.tune",
    "MODELS": ".models",
    "BATM": ".models",
    "DirichletVAE": ".models",
    "ECRTM": ".models",
    "ETM": ".models",
    "FASTopic": ".models",
    "GMNTM": ".models",
    "GaussianBATM": ".models",
    "GSM": ".models",
    "LDA": ".models",
    "Loom": ".models",
    "NVDM": ".models",
    "NVLDA": ".models",
    "ProdLDA": ".models",
    "VectorClusters": ".models",
    "WLDA": ".models",
    "TopicModel": ".models.base",
    "Ensemble": ".models.ensemble",
    "EmbeddedTopicModel": ".models.etm",
    "NeuralTopicModel": ".models.neural",
    "VariationalTopicModel": ".models.autoencoders",
    "load": ".models.loading",
    "MergedRuns": ".reports.merging",
    "merge": ".reports.merging",
    "diagram": ".reports.figures.networks",
    "Update": ".reports.updating",
    "update": ".reports.updating",
    "DocumentTopics": ".topics.document_topics",
    "Topics": ".topics.view",
    "Callback": ".training.callbacks",
    "Checkpoints": ".training.checkpoints",
}

__all__ = ["__version__", *_MODULES]  # names that are loaded below


def __getattr__(name: str) -> "Any":
    if name not in _MODULES:
        raise AttributeError(f"module 'topicloom' has no attribute {name!r}")
    try:
        module = _import_module(_MODULES[name], __name__)
        return module if name in ("datasets", "distributed", "figures", "metrics") else getattr(module, name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        from .errors import without_torch

        raise without_torch(f"`{name}`") from None


def __dir__() -> list[str]:
    return sorted(__all__)
