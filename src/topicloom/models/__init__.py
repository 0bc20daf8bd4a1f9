"""The models, each in a file or folder of its own. registry.py lists them. A class is loaded when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .registry import REGISTRY, load_model, load_models

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

__all__ = ["MODELS", *REGISTRY]  # the names that __getattr__ loads


def __getattr__(name: str) -> Any:
    if name == "MODELS":
        return load_models()
    if name in REGISTRY:
        return load_model(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
