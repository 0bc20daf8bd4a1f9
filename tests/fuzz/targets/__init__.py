"""The targets, by name."""

from __future__ import annotations

from ..campaign import Target
from . import corpora, files, readers, rows, sources, words

TARGETS: dict[str, Target] = {
    name: target
    for module in (readers, words, corpora, rows, files, sources)
    for name, target in module.TARGETS.items()
}
