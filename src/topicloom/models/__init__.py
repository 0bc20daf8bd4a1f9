"""The models, each in a file or folder of its own. A model is added to the package by one line of `REGISTRY`.

A class is loaded when it is first used, so that listing the models does not need PyTorch.
"""

from __future__ import annotations

import inspect
import json
import re
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import InputError
from ..messages import similar

if TYPE_CHECKING:
    from .base import TopicModel
    from .batm import BATM as BATM
    from .batm import GaussianBATM as GaussianBATM
    from .dirichlet import DirichletVAE as DirichletVAE
    from .ecrtm import ECRTM as ECRTM
    from .etm import ETM as ETM
    from .fastopic import FASTopic as FASTopic
    from .gmntm import GMNTM as GMNTM
    from .gsm import GSM as GSM
    from .lda import LDA as LDA
    from .loom import Loom as Loom
    from .nvdm import NVDM as NVDM
    from .prodlda import NVLDA as NVLDA
    from .prodlda import ProdLDA as ProdLDA
    from .vector_clusters import VectorClusters as VectorClusters
    from .wlda import WLDA as WLDA

    MODELS: tuple[type[TopicModel], ...]


class Entry(NamedTuple):
    """A model of the package."""

    module: str  # the module of its class, in this package
    summary: str  # one line for tables


REGISTRY = {
    "Loom": Entry(
        "loom", "The default: neural pretraining, collapsed counting, Gibbs sampling; an encoder infers new documents."
    ),
    "GSM": Entry("gsm", "Gaussian softmax topic model (Miao, Grefenstette & Blunsom 2017)."),
    "ETM": Entry("etm", "Embedded topic model (Dieng, Ruiz & Blei 2020)."),
    "ECRTM": Entry("ecrtm", "Topics as clusters of word vectors (Wu, Dong, Nguyen & Luu 2023)."),
    "FASTopic": Entry("fastopic", "Transport from vectors of documents to topics and words (Wu et al. 2024)."),
    "WLDA": Entry("wlda", "Wasserstein autoencoder for topics (Nan, Ding, Nallapati & Xiang 2019)."),
    "GMNTM": Entry("gmntm", "Gaussian mixture neural topic model: VaDE (Jiang et al. 2017) for word counts."),
    "DirichletVAE": Entry("dirichlet", "Dirichlet variational autoencoder (Burkhardt & Kramer 2019)."),
    "ProdLDA": Entry("prodlda", "Product of experts (Srivastava & Sutton 2017)."),
    "NVLDA": Entry("prodlda", "DirichletVAE with the Laplace estimator (Srivastava & Sutton 2017)."),
    "NVDM": Entry("nvdm", "Neural variational document model (Miao, Yu & Blunsom 2016)."),
    "BATM": Entry("batm", "Bidirectional adversarial topic model (Wang et al. 2020), with a reconstruction term."),
    "GaussianBATM": Entry(
        "batm", "Gaussian-BAT: topics are Gaussian distributions over word vectors (Wang et al. 2020)."
    ),
    "LDA": Entry("lda", "Latent Dirichlet allocation (Blei, Ng & Jordan 2003): variational Bayes or Gibbs sampling."),
    "VectorClusters": Entry(
        "vector_clusters",
        "Clusters of the documents' vectors, with words by c-TF-IDF, as in BERTopic (Grootendorst 2022).",
    ),
}

# Models that are made of fits of other ones. They are found by their names, but not listed among the models.
COMBINED = {"Ensemble": Entry("ensemble", "Several fits of a model, and the topics on which they agree.")}


# What models are called in papers and other packages, and what they are here. Only messages use these names.
_ELSEWHERE = {
    "avitm": "ProdLDA",
    "bertopic": "VectorClusters",
    "combinedtm": "ProdLDA with `recipe='combined'`",
    "nvdm-gsm": "GSM",
    "top2vec": "VectorClusters",
    "vade": "GMNTM",
    "zeroshottm": "ProdLDA with `recipe='zeroshot'`",
}


def load_model(name: str) -> type[TopicModel]:
    """Return the class of a model, given its exact name."""
    model: type[TopicModel] = getattr(import_module(f".{(REGISTRY | COMBINED)[name].module}", __name__), name)
    return model


def load_models() -> tuple[type[TopicModel], ...]:
    """Return the classes of all models, sorted by name."""
    return tuple(load_model(name) for name in sorted(REGISTRY, key=str.lower))


def model_class(name: str) -> type[TopicModel]:
    """Return the class of a model.

    Args:
        name: a model of this package, in upper or lower case; or "module:Class" for a class of your own. The module is
            imported from the current directory, or from where Python finds modules.

    Raises:
        InputError: there is no such model, or the module cannot be imported.
    """
    if ":" in name:
        return imported_model(name)
    known = {each.lower(): each for each in REGISTRY | COMBINED}
    if name.lower() in _ELSEWHERE:
        raise InputError(f"there is no model {name!r}; take {_ELSEWHERE[name.lower()]}")
    if name.lower() not in known:
        choice = (
            f"choose one of {', '.join(sorted(map(str.lower, REGISTRY)))}, or give a class of your own as module:Class"
        )
        raise InputError(f"there is no model {name!r}; {similar(name.lower(), known) or choice}")
    return load_model(known[name.lower()])


def estimator_named(text: str) -> TopicModel:
    """Return an estimator from a name with settings, such as "lda:method=gibbs+epochs=500" or "my_file:MyModel:a=1".

    Raises:
        InputError: there is no such model, it has no such setting, or the text cannot be read.
    """
    from ..settings import from_text

    name, *rest = text.split(":")
    if rest and "=" not in rest[0] and name.lower() not in map(str.lower, REGISTRY | COMBINED):
        name, rest = f"{name}:{rest[0]}", rest[1:]
    kind = model_class(name)
    settings: dict[str, Any] = {}
    # A "+" separates settings only before a name and "=", so that 1e+0 is one number.
    for part in filter(None, re.split(r"\+(?=[A-Za-z_]\w*=)", ":".join(rest))):
        setting, equals, value = part.partition("=")
        if not equals:
            raise InputError(f"{text}: {part!r} is not a setting; write {name}:name=value+name=value")
        try:
            settings[setting] = json.loads(value)
        except ValueError:
            settings[setting] = value
    return kind(**from_text(kind, settings))


def imported_model(name: str) -> type[TopicModel]:
    """Import the class that "module:Class" names. The current directory is searched first."""
    from ..settings import import_named
    from .base import TopicModel

    kind = import_named(name, "module:Class, such as my_model:MyModel")
    module_name, _, class_name = name.partition(":")
    if not (isinstance(kind, type) and issubclass(kind, TopicModel)):
        raise InputError(f"the module {module_name!r} has no model {class_name!r}; name a subclass of TopicModel")
    if inspect.isabstract(kind):
        missing = ", ".join(sorted(kind.__abstractmethods__))
        raise InputError(f"{class_name} of the module {module_name!r} is not complete; define {missing} in it")
    return kind


__all__ = ["MODELS", *REGISTRY]  # the names that __getattr__ loads


def __getattr__(name: str) -> Any:
    if name == "MODELS":
        return load_models()
    if name in REGISTRY:
        return load_model(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
