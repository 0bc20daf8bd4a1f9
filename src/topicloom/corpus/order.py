"""The order of a corpus's words, which coherence over windows and word vectors need and counts do not have."""

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
    """Reads documents as tokens in their order, if their texts or their lists of tokens are known."""

    fields: Fields
    tokenizer: AnyTokenizer

    @property
    def has_order(self) -> bool:
        """Whether the order of the words is known."""
        has_texts = self.fields.texts is not None and not isinstance(self.tokenizer, Pretokenized)
        return has_texts or self.fields.tokens is not None

    def tokens(self) -> Iterator[Sequence[str]]:
        """Yield each document's tokens in their order, words outside the vocabulary among them.

        Raises:
            InputError: only counts are known.
        """
        documents: Sequence[Any] | None = self.fields.tokens or self.fields.texts
        if documents is None or not self.has_order:
            raise InputError(
                "the order of the words is not known, because this corpus holds counts without texts; give lists of "
                "tokens, or make the corpus of raw texts with keep_texts=True"
            )
        return map(self.tokenizer, documents)

    def reference(self, ordered: bool = False) -> Reference:
        """Return the corpus as a reference, which is how measures of coherence read a corpus that they are given.

        Args:
            ordered: whether the order of words is needed, as for `metrics.c_v`; the texts are then split once more.

        Raises:
            InputError: the order of words is needed, and the corpus has no texts.
        """
        return self._references.reference(ordered)

    @cached_property
    def _references(self) -> CorpusReference:
        return CorpusReference(cast("Corpus", self))
