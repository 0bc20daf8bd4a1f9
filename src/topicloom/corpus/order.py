"""The documents of a corpus as tokens in their order, which counts do not have.

Coherence over windows and the training of word vectors need it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from ..errors import InputError
from ..metrics import Reference
from ..text import AnyTokenizer, Pretokenized
from .fields import Fields
from .reference import CorpusReference

if TYPE_CHECKING:
    from .corpus import Corpus


class WithOrder:
    """Methods that return documents as tokens in their order, if their texts or their tokens are known."""

    fields: Fields
    tokenizer: AnyTokenizer

    @property
    def has_order(self) -> bool:
        """Whether the order of the words is known."""
        has_texts = self.fields.texts is not None and not isinstance(self.tokenizer, Pretokenized)
        return has_texts or self.fields.tokens is not None

    def tokens(self) -> Iterator[Sequence[str]]:
        """Return an iterator over the documents' tokens, in their order, including words outside the vocabulary.

        Raises:
            InputError: the corpus has counts only.
        """
        documents: Sequence[Any] | None = self.fields.tokens or self.fields.texts
        if documents is None or not self.has_order:
            raise InputError(
                "the order of the words is not known, because this corpus has counts without texts; give lists of "
                "tokens, or make the corpus from raw texts with `keep_texts=True`"
            )
        return map(self.tokenizer, documents)

    def reference(self, ordered: bool = False) -> Reference:
        """Return the corpus as a reference of coherence measures.

        Args:
            ordered: whether the measure needs the order of words, as `metrics.c_v` does. If so, the texts are split
                once more.

        Raises:
            InputError: the order of words is needed, and the corpus has no texts.
        """
        return self._references.reference(ordered)

    @cached_property
    def _references(self) -> CorpusReference:
        return CorpusReference(cast("Corpus", self))
