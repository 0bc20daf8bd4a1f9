"""The models, each in a file of its own. A new one joins by a line in MODELS."""

from ..estimator import TopicModel
from .gsm import GSM
from .lda import LDA

MODELS: tuple[type[TopicModel], ...] = (GSM, LDA)

__all__ = ["GSM", "LDA", "MODELS"]
