"""Loom: pretraining of a neural topic model, then collapsed counting (CVB0). One file for each part."""

from .model import Loom

__all__ = ["Loom"]
