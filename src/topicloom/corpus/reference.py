"""A corpus as the reference of coherence measures."""

from __future__ import annotations

from functools import cached_property, partial
from typing import TYPE_CHECKING

from ..errors import InputError
from ..metrics import Reference
from ..metrics.cooccurrence import Total
from .mapped import release

if TYPE_CHECKING:
    from .corpus import Corpus


class CorpusReference:
    """A corpus as the reference of coherence measures. References are made when they are first needed, and kept.

    Args:
        corpus: the corpus.
        name: the name of the corpus in results and messages.
        total: returns the sum of an array over the processes that train together; `documents` are then those of all.
            `ordered_documents` are always those of this process.

    Attributes:
        order_unknown: a sentence that says why the order of the words is not known; None if it is known.
    """

    def __init__(self, corpus: Corpus, name: str = "the corpus", *, total: Total | None = None) -> None:
        self.corpus, self.name, self.total = corpus, name, total
        why = None if corpus.has_order else f"the order of words is not known, because {name} has counts without texts"
        self.order_unknown: str | None = why

    def reference(self, ordered: bool) -> Reference:
        """Return the corpus as a `metrics.Reference`.

        Args:
            ordered: whether the order of words is needed.

        Raises:
            InputError: the order of words is needed, and it is not known.
        """
        return self.ordered_documents if ordered else self.documents

    @cached_property
    def documents(self) -> Reference:
        """The words of the vocabulary that each document contains."""
        counts = self.corpus.counts
        return Reference.from_counts(
            counts,
            self.corpus.vocabulary,
            self.name,
            after_piece=partial(release, counts.data, counts.indices),
            total=self.total,
        )

    @cached_property
    def ordered_documents(self) -> Reference:
        """All tokens of each document in their order, including those that are not in the vocabulary.

        Raises:
            InputError: the order of words is not known.
        """
        if self.order_unknown is not None:
            raise InputError(self.order_unknown)
        return Reference.from_tokens(self.corpus.tokens(), self.name)
