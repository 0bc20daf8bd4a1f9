"""The corpus that a command works on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..display import counted
from ..errors import InputError, nearest
from ..files import holds_corpus
from .options import Preparing, Reading
from .shell import muted

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ..corpus import Corpus


def need_order(measures: Iterable[str]) -> bool:
    from ..metrics import CATALOGUE

    return any("token order" in CATALOGUE[name].needs for name in measures)


def check_source(source: str, options: Reading) -> None:
    """Read the first document of a file, so that a wrong name or column is found before PyTorch is loaded."""
    from ..text import read

    reading = {field.name: getattr(options, field.name) for field in fields(Reading)}
    if holds_corpus(source):
        _refuse_options(source, reading)
    elif source != "-":
        with muted():  # what is wrong with the file is said when it is read whole
            next(read(source, **reading), None)


def open_corpus(source: str, options: Preparing, progress: bool, keep_texts: bool = False) -> Corpus:
    from ..corpus import Corpus

    if not holds_corpus(source):
        return Corpus.from_file(source, **asdict(options), keep_texts=keep_texts, progress=progress)
    _refuse_options(source, asdict(options))
    return Corpus.load(source)


def _refuse_options(source: str, options: Mapping[str, Any]) -> None:
    """Raise InputError if an option of reading or of counting was given for a saved corpus."""
    changed = [name for name, value in options.items() if value != getattr(Preparing(), name)]
    if changed:
        options_of = {"n_jobs": "--jobs", "header": "--no-header", "quoting": "--no-quoting"}
        option = options_of.get(changed[0], "--" + changed[0].replace("_", "-"))
        raise InputError(f"{option} cannot be applied to {source}, which is a saved corpus; use it with prepare")


def with_column(
    source: str, options: Preparing, column: str | None, option: str, *, numbers: bool = False
) -> Callable[[Corpus], Corpus]:
    """Read a column of a file. Return a function that adds it to the file's corpus as a covariate.

    A saved corpus has its covariates, so nothing is read.

    Args:
        source: the file, or a saved corpus.
        options: how the file is read.
        column: the name of the column, or None for none.
        option: the option that names it, for messages.
        numbers: whether a column of numbers is a covariate of numbers; otherwise they are categories.
    """
    if column is None or holds_corpus(source):
        return lambda corpus: corpus
    if source == "-":
        raise InputError(f"`{option}` needs a file, because standard input can be read only once")
    from ..corpus.covariates import spelled_numbers
    from ..corpus.fields import Fields
    from ..text import read

    reading = {field.name: getattr(options, field.name) for field in fields(Reading)}
    try:
        with muted():
            values = [document.label for document in read(source, **reading | {"label": column})]
    except InputError as error:
        raise InputError(str(error).replace("`label`", f"`{option}`")) from None
    if not any(values):
        raise InputError(
            f"no document of {source} has a value of {column!r}; check the name of the column (`{option}`)"
        )

    def add(corpus: Corpus) -> Corpus:
        known = Fields.of(corpus.n_docs, covariates={column: spelled_numbers(values) if numbers else values})
        return replace(corpus, fields=replace(corpus.fields, covariates={**corpus.covariates, **known.covariates}))

    return add


def with_covariates(source: str, options: Preparing, columns: Sequence[str]) -> Callable[[Corpus], Corpus]:
    """Read columns of a file, and return a function that adds them to the file's corpus as covariates.

    Args:
        source: the file, or a saved corpus, which has to have them.
        options: how the file is read.
        columns: the names of the columns.
    """
    steps = [with_column(source, options, column, "covariate", numbers=True) for column in columns]

    def add(corpus: Corpus) -> Corpus:
        for step in steps:
            corpus = step(corpus)
        missing = [column for column in columns if column not in corpus.covariates]
        if missing:
            raise InputError(
                f"the corpus {source} has no covariate {missing[0]!r}; {nearest(missing[0], corpus.covariates)}"
                if corpus.covariates
                else f"the corpus {source} has no covariates; make it again with `prepare --covariate`"
            )
        return corpus

    return add


def with_document_vectors(source: str, options: Reading, path: Path | None) -> Callable[[Corpus], Corpus]:
    """Read the vectors of documents, and return a function that adds them to the corpus of the documents.

    Their number is checked before the texts are counted.

    Args:
        source: the file of the documents, or a saved corpus.
        options: how the file is read.
        path: the file of the vectors; None for none.
    """
    if path is None:
        return lambda corpus: corpus
    vectors = document_vectors(source, options, path)
    return lambda corpus: replace(corpus, fields=replace(corpus.fields, vectors=vectors))


def document_vectors(source: str, options: Reading, path: Path) -> npt.NDArray[np.float32]:
    """Read the vectors of documents, of which there is one for each.

    Args:
        source, options: as for `with_document_vectors`.
        path: the file of the vectors.
    """
    if source == "-":
        raise InputError("`document_vectors` needs a file of documents, because standard input can be read only once")
    from ..corpus import Corpus
    from ..embeddings import read_document_vectors
    from ..text import read

    vectors = read_document_vectors(path)
    if holds_corpus(source):
        n_docs = Corpus.load(source).n_docs
    else:
        reading = {field.name: getattr(options, field.name) for field in fields(Reading)}
        with muted():
            n_docs = sum(1 for _ in read(source, **reading))
    if len(vectors) != n_docs:
        raise InputError(
            f"{path} has {counted(len(vectors), 'row')}, and {source} has {counted(n_docs, 'document')}; give a row "
            "for each document, in the same order"
        )
    return vectors
