"""The models, each in a file or a folder of its own; registry.py lists them."""

from .batm import BATM
from .dirichlet import DirichletVAE
from .etm import ETM
from .gmntm import GMNTM
from .gsm import GSM
from .lda import LDA
from .loom import Loom
from .nvdm import NVDM
from .prodlda import NVLDA, ProdLDA
from .registry import MODELS
from .wlda import WLDA

__all__ = ["BATM", "ETM", "GMNTM", "GSM", "LDA", "MODELS", "NVDM", "NVLDA", "WLDA", "DirichletVAE", "Loom", "ProdLDA"]
