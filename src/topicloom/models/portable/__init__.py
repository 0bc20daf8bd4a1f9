"""The inference of a fitted model as arrays, for programs without PyTorch, such as the explorer's page."""

from .arrays import PortableInference, PortableRegroup
from .export import portable_inference

__all__ = ["PortableInference", "PortableRegroup", "portable_inference"]
