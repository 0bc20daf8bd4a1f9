"""Word vectors: reading them from files, training them on a corpus, and looking words up."""

from .files import read_word_vectors
from .training import train_word_vectors
from .word_vectors import WordVectors

__all__ = ["WordVectors", "read_word_vectors", "train_word_vectors"]
