"""The models, each in a file of its own. A new one joins by a line in MODELS."""

from ..estimator import TopicModel
from .batm import BATM
from .dirichlet import DirichletVAE
from .etm import ETM
from .gmntm import GMNTM
from .gsm import GSM
from .lda import LDA
from .loom import Loom
from .nvdm import NVDM
from .prodlda import NVLDA, ProdLDA
from .wlda import WLDA

MODELS: tuple[type[TopicModel], ...] = (BATM, DirichletVAE, ETM, GMNTM, GSM, LDA, Loom, NVDM, NVLDA, ProdLDA, WLDA)

__all__ = ["BATM", "ETM", "GMNTM", "GSM", "LDA", "MODELS", "NVDM", "NVLDA", "WLDA", "DirichletVAE", "Loom", "ProdLDA"]
