"""The documents that `train` does not learn from: those whose loss is measured, and those that it does not use."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..display import counted
from ..errors import InputError
from ..files import holds_corpus
from .corpora import with_column
from .options import Preparing
from .shell import muted

if TYPE_CHECKING:
    from ..corpus import Corpus
    from ..corpus.split import Split
    from ..models.base import TopicModel

logger = logging.getLogger("topicloom")


@dataclass(frozen=True)
class HeldOut:
    """What `train` is told about documents that it does not learn from.

    Attributes:
        split: the column that says the part of each document: train, validation or test.
        validation: a file of validation documents, or a saved corpus of them.
        reading: how the file is read, as for `topicloom.text.read`; only what is not the default.
    """

    split: str | None = None
    validation: str | None = None
    reading: Mapping[str, Any] | None = None

    @classmethod
    def recorded(cls, source: Any) -> HeldOut:
        """Return what a run has noted in the entry `source` of its metrics.json."""
        noted = source if isinstance(source, Mapping) else {}
        return cls(noted.get("split"), noted.get("validation"), noted.get("reading"))

    def __bool__(self) -> bool:
        return self.split is not None or self.validation is not None

    def options(self) -> dict[str, str]:
        """Return the options that were given, in a form that any directory understands."""
        if self.validation is not None:
            return {"validation": str(Path(self.validation).resolve())}
        return {} if self.split is None else {"split": self.split}

    def check(self, model: TopicModel) -> None:
        """Find mistakes before anything takes time; the first document of the file is read."""
        if self.validation is None:
            return
        if self.split is not None:
            raise InputError("`split` and `validation` both say which documents are for validation; give one of them")
        if not model.uses_validation:
            raise InputError(f"{type(model).__name__} has no loss by epoch to measure; leave `validation` out")
        if self.validation == "-":
            raise InputError("the validation documents cannot be on standard input; give a file by `validation`")
        if not holds_corpus(self.validation):
            from ..text import read

            with muted():
                next(read(self.validation, **(self.reading or {})), None)

    def with_parts(self, source: str, options: Preparing) -> Callable[[Corpus], Corpus]:
        """Read the column of the parts, and return a function that adds it to the corpus of the source."""
        return with_column(source, options, self.split, "split")

    def divide(
        self, corpus: Corpus, model: TopicModel, covariates: Sequence[str] | None = None
    ) -> tuple[Corpus, Corpus | None]:
        """Return the documents for training, and those for validation over the same words, if there are any.

        Args:
            corpus: the documents of the source, with their parts.
            model: the model that is to be trained.
            covariates: the covariates that the documents keep, if they were read from a file; None keeps all.
        """
        if self.split is None:
            return corpus, self.documents(corpus)
        from ..corpus.split import split_by_covariate

        parts = split_by_covariate(corpus, self.split)
        if covariates is not None and self.split not in covariates:
            parts = type(parts)(*(_without(part, self.split) for part in parts))
        return parts.train, self.measured(parts, model)

    def measured(self, parts: Split, model: TopicModel) -> Corpus | None:
        """Return the part whose loss is measured, and say how many documents are in each part."""
        sizes = {name: part.n_docs for name, part in parts._asdict().items()}
        if not sizes["train"]:
            raise InputError(f"no document has 'train' as {self.split!r}; name the documents to learn from (`split`)")
        unused = [f"{sizes['test']} for testing"] if sizes["test"] else []
        if sizes["validation"] and not model.uses_validation:
            unused.insert(0, f"{sizes['validation']} for validation ({type(model).__name__} has no loss by epoch)")
        measured = parts.validation if sizes["validation"] and model.uses_validation else None
        used = [f"{counted(sizes['train'], 'document')} for training"]
        used += [] if measured is None else [f"{sizes['validation']} for validation"]
        logger.info("%s%s", ", ".join(used), f"; not used: {', '.join(unused)}" if unused else "")
        return measured

    def documents(self, corpus: Corpus) -> Corpus | None:
        """Return the documents of the file over the words of a corpus, with the covariates that this has."""
        if self.validation is None:
            return None
        from ..corpus import Corpus
        from ..corpus.reading import documents_of_file

        if holds_corpus(self.validation):
            found = Corpus.load(self.validation).over(corpus.vocabulary)
        else:
            reading = self.reading or {}
            fields = corpus.fields.kinds()
            found = next(documents_of_file(self.validation, corpus.vocabulary, corpus.tokenizer, reading, fields))
        n_empty = int(found.is_empty.sum())
        without = f"; without a word of the training documents, and not measured: {n_empty}" if n_empty else ""
        logger.info("%s for validation%s", counted(found.n_docs, "document"), without)
        return found


def _without(corpus: Corpus, covariate: str) -> Corpus:
    others = {name: values for name, values in corpus.covariates.items() if name != covariate}
    return replace(corpus, fields=replace(corpus.fields, covariates=others))
