"""Word vectors: reading them from files, training them on a corpus, and looking words up. Files of document vectors."""

from .document_vectors import read_document_vectors
from .word_vectors import WordVectors, read_word_vectors, train_word_vectors

__all__ = ["WordVectors", "read_document_vectors", "read_word_vectors", "train_word_vectors"]
