"""A corpus as the reference of coherence measures."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..metrics import Reference
from ..text import Pretokenized

if TYPE_CHECKING:
    from .corpus import Corpus


class CorpusReference:
    """Makes references of coherence measures from a corpus, when they are first asked for, and keeps them.

    Args:
        corpus: the corpus.
        name: the name that results and messages give it.
        documents: the texts or lists of tokens that the corpus was made from, if they are at hand. Otherwise the
            corpus's own texts are used, if it kept them.
    """

    def __init__(self, corpus: Corpus, name: str = "the corpus", documents: Iterable[Any] | None = None) -> None:
        self.corpus, self.name = corpus, name
        self._texts = corpus.texts if documents is None else documents
        self.order_unknown: str | None = None  # why the order of words is not known, as a sentence
        if self._texts is None:
            self.order_unknown = f"the order of words is not known, because {name} has counts but no texts"
        elif documents is None and isinstance(corpus.tokenizer, Pretokenized):
            self.order_unknown = f"the order of words is not known, because the tokens of {name} are not kept"

    def reference(self, ordered: bool) -> Reference:
        """Return the corpus as a `metrics.Reference`.

        Args:
            ordered: whether the order of words is needed.

        Raises:
            InputError: it is needed and not known.
        """
        return self.ordered_documents if ordered else self.documents

    @cached_property
    def documents(self) -> Reference:
        """The words of the vocabulary that each document contains."""
        return Reference.from_counts(self.corpus.counts, self.corpus.vocabulary, self.name)

    @cached_property
    def ordered_documents(self) -> Reference:
        """All tokens of each document in their order, also those that are not in the vocabulary.

        Raises:
            InputError: they are not known.
        """
        if self.order_unknown is not None or self._texts is None:
            raise InputError(self.order_unknown or "")
        return Reference.from_tokens(map(self.corpus.tokenizer, self._texts), self.name)
