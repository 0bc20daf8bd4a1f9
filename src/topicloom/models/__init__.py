"""The models, each in a file or folder of its own. A model is added to the package by one line of `REGISTRY`.

A class is loaded when it is first used, so that listing the models does not need PyTorch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .base import TopicModel
    from .batm import BATM as BATM
    from .batm import GaussianBATM as GaussianBATM
    from .dirichlet import DirichletVAE as DirichletVAE
    from .etm import ETM as ETM
    from .gmntm import GMNTM as GMNTM
    from .gsm import GSM as GSM
    from .lda import LDA as LDA
    from .loom import Loom as Loom
    from .nvdm import NVDM as NVDM
    from .prodlda import NVLDA as NVLDA
    from .prodlda import ProdLDA as ProdLDA
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
}


def load_model(name: str) -> type[TopicModel]:
    """Return the class of a model, given its exact name."""
    model: type[TopicModel] = getattr(import_module(f".{REGISTRY[name].module}", __name__), name)
    return model


def load_models() -> tuple[type[TopicModel], ...]:
    """Return the classes of all models, sorted by name."""
    return tuple(load_model(name) for name in sorted(REGISTRY, key=str.lower))


__all__ = ["MODELS", *REGISTRY]  # the names that __getattr__ loads


def __getattr__(name: str) -> Any:
    if name == "MODELS":
        return load_models()
    if name in REGISTRY:
        return load_model(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
