"""Search of documents by meaning: those whose vectors are nearest to the vector of a text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..corpus import Corpus
from ..errors import InputError
from ..text import TextEncoder
from ..text.strings import replace_surrogates
from ..text.tokenizing import without_html

if TYPE_CHECKING:  # it needs PyTorch
    from ..embeddings.neighbours import VectorIndex

Similarities = npt.NDArray[np.float32]


class VectorSearch:
    """Compares texts and documents with the vectors of a corpus. Threads can share it.

    The search is exact: all documents are compared.

    Args:
        corpus: documents with vectors.

    Raises:
        InputError: the documents have no vectors.

    Examples:
        >>> import topicloom as tl
        >>> from topicloom.topics.search import VectorSearch
        >>> def encode(texts):
        ...     return [["cat" in text or "dog" in text, "rain" in text] for text in texts]
        >>> corpus = tl.Corpus.from_texts(["the dog", "the rain", "cat, rain"], encoder=encode, language="en", min_df=1)
        >>> VectorSearch(corpus).similarities("cats").round(2)
        array([1.  , 0.  , 0.71], dtype=float32)
    """

    def __init__(self, corpus: Corpus) -> None:
        if corpus.vectors is None:
            raise InputError(
                "the documents have no vectors, so they cannot be searched by meaning; make the corpus with `encoder`"
            )
        self.corpus, self.vectors, self.encoder = corpus, corpus.vectors, corpus.encoder

    @cached_property
    def index(self) -> VectorIndex:
        """The vectors of the documents."""
        from ..embeddings.neighbours import VectorIndex

        return VectorIndex.of(self.vectors, "exact")  # for few queries, graphs are not worth making

    @cached_property
    def rows(self) -> npt.NDArray[np.intp]:
        """The documents that have a vector, in ascending order."""
        return np.flatnonzero(self.index.is_directed)

    def vector_of(self, text: str) -> npt.NDArray[np.float16]:
        """Return the vector of a text, (E,).

        Raises:
            InputError: the encoder of the documents is not known or cannot be used, or it gives the text no vector.
        """
        if self.encoder is None:
            raise InputError(
                "it is not known which encoder made the vectors of the documents, so a text cannot be compared with "
                "them; give `encoder`"
            )
        prepare = without_html if getattr(self.corpus.tokenizer, "strip_html", False) else replace_surrogates
        vector: npt.NDArray[np.float16] = self.encoder.encode([text], prepare=prepare)[0]
        if not vector.any():
            raise InputError(f"{self.encoder.name} gives {text.strip()!r:.60} no vector; give another text")
        return vector

    def similarities(self, text: str) -> Similarities:
        """Return the cosine of each document with a text, (n_docs,); 0 for a document without a vector.

        Raises:
            InputError: the encoder of the documents is not known or cannot be used, or it gives the text no vector.
        """
        return self.index.similarities(self.vector_of(text))

    def similarities_of(self, row: int) -> Similarities:
        """Return the cosine of each document with one of them, (n_docs,).

        Raises:
            InputError: the document has no vector.
        """
        vector = np.asarray(self.vectors[row])
        if not vector.any():
            raise InputError(f"document {row} has no vector, so it cannot be compared with others; give another one")
        return self.index.similarities(vector)


def with_encoder(corpus: Corpus, encoder: Any = None, allow: Iterable[str] = ()) -> Corpus:
    """Return a corpus that was read from disk, with an encoder that can encode texts.

    Args:
        corpus: the documents.
        encoder: the encoder of their vectors, as `TextEncoder.of` takes it; None is the one that the corpus names.
        allow: the modules that may be imported for it, and the addresses to which texts may be sent.

    Raises:
        InputError: the encoder is not that of the vectors.
    """
    known = corpus.encoder
    if encoder is not None:
        found = TextEncoder.of(encoder, getattr(corpus.tokenizer, "language", None))
        if known is not None:
            found.require_same(known, "the documents", "this encoder")
        elif corpus.vectors is not None and corpus.vectors.shape[1] != found.size:
            raise InputError(
                f"the vectors of the documents have {corpus.vectors.shape[1]:,} numbers, and those of {found.name} "
                f"have {found.size:,}; give the encoder that made them"
            )
    elif known is not None:
        found = known.allowed({allow} if isinstance(allow, str) else set(allow))
    else:
        return corpus
    if corpus.vectors is None:
        return corpus
    return replace(corpus, fields=replace(corpus.fields, encoder=found))
