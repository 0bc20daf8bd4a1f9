"""The targets, by name."""

from __future__ import annotations

from ..campaign import Target
from . import corpora, files, readers, words

TARGETS: dict[str, Target] = {**readers.TARGETS, **words.TARGETS, **corpora.TARGETS, **files.TARGETS}
