"""Work that fits models, in this process, in others or on the nodes of a cluster, and the documents for it."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from ..corpus import Corpus
from ..corpus.split import Split
from ..text import CustomTokenizer
from .protocol import Evaluator
from .workers import Job, Row


@dataclass
class SavedParts:
    """Training, validation and test documents in a directory. Each process reads them once.

    Attributes:
        folder: has a directory for each part.
        tokenizer: a tokenizer of the user's own, which is not saved with a corpus.
    """

    folder: Path
    tokenizer: CustomTokenizer | None = None

    @classmethod
    def of(cls, parts: Split, folder: Path) -> Self:
        """Save the parts that are not in the directory yet."""
        for name, part in zip(Split._fields, parts, strict=True):
            if not (folder / name / "corpus.json").exists():
                part.save(folder / name, overwrite=True)
        own = parts.train.tokenizer
        return cls(folder, own if isinstance(own, CustomTokenizer) else None)

    def __reduce__(self) -> tuple[Any, ...]:
        return SavedParts, (self.folder, self.tokenizer)  # without the documents that have been read

    @cached_property
    def evaluator(self) -> Evaluator:
        """What fits and measures models; it reads the documents."""
        return Evaluator(self.read())

    def read(self) -> Split:
        """Read the documents."""
        parts = [Corpus.load(self.folder / name) for name in Split._fields]
        if self.tokenizer is not None:
            parts = [replace(part, tokenizer=self.tokenizer) for part in parts]
        return Split(*parts)

    @cached_property
    def digest(self) -> str | None:
        """A digest of the documents; None where the directory cannot be read, as on a node without it."""
        try:
            about = [(self.folder / name / "corpus.json").read_bytes() for name in Split._fields]
        except OSError:
            return None
        return hashlib.sha256(b"".join(about)).hexdigest()

    def receive(self, parts: Split) -> None:
        """Use these documents, which were sent, and read none."""
        self.evaluator = Evaluator(parts)


@dataclass
class FittingWork(ABC):
    """The work of jobs that fit and measure models.

    Attributes:
        folder: the directory for the files that it writes.
        documents: what the models are fitted to and measured on.
    """

    folder: Path
    documents: SavedParts

    @abstractmethod
    def __call__(self, job: Job) -> Row:
        """Do a job, and return its result."""

    @abstractmethod
    def outputs(self, job: Job) -> list[Path]:
        """Return the files and directories that a job writes."""
