"""The registry of models: a model joins the package by one line here."""

from __future__ import annotations

from .base import TopicModel
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
