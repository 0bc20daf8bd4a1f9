"""The targets, by name."""

from __future__ import annotations

from ..campaign import Target
from . import corpora, files, readers, rows, words

TARGETS: dict[str, Target] = {**readers.TARGETS, **words.TARGETS, **corpora.TARGETS, **rows.TARGETS, **files.TARGETS}
