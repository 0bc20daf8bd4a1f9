"""Signs that training fails. The training loop and the collapse watch find them; a model names remedies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

CollapseKind = Literal["few documents", "idle dimensions", "unused topics", "duplicate topics", "frequent words"]


@dataclass(frozen=True)
class CollapseSign:
    """A sign that the topics are unused or not distinct.

    Attributes:
        kind: what is wrong. With "few documents" there are fewer documents than topics.
        epoch: the number of epochs of the training.
        fewer_topics: a number of topics that may help.
    """

    kind: CollapseKind
    epoch: int
    fewer_topics: int


@dataclass(frozen=True)
class NotFinite:
    """A loss or a gradient is not finite.

    Attributes:
        at_first_step: whether it is that of the first step, which no earlier step can have caused.
    """

    at_first_step: bool


@dataclass(frozen=True)
class TooLittleMemory:
    """A batch does not fit into the memory of the device.

    Attributes:
        smaller_batch: a number of documents that may fit; None if smaller batches do not help.
    """

    smaller_batch: int | None


Sign = CollapseSign | NotFinite | TooLittleMemory


class Advised(Protocol):
    """A model, as the collapse watch sees it."""

    n_topics: int

    def remedies(self, sign: Sign) -> str:
        """Return what to try against a sign, as a clause such as "try `epochs=120`"."""
