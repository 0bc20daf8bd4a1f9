"""The documents of a run, kept in its folder documents/: a saved Corpus over the model's words, and theta.npy.

They are read without PyTorch, and their counts, texts and theta stay on disk until they are needed.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..corpus import Corpus
from ..corpus.fields import FieldKind
from ..corpus.mapped import pieces
from ..corpus.saving import MANIFEST, save_into
from ..errors import CorpusFileError
from ..files import atomic_directory, read_json
from ..text.storage import load_array
from .document_topics import DocumentTopics
from .saved import find_model, weights_digest

DOCUMENTS, THETA = "documents", "theta.npy"
_MODEL = "model"  # the entry of corpus.json with the checksum of the model's weights
_MOST_BYTES = 1 << 30  # of counts and theta, that a run keeps without being asked to
_CORPUS_FILE = re.compile(
    r"corpus\.json|vocabulary\.txt|(data|indices|indptr|times|vectors|theta|covariate-\d+)\.npy"
    r"|(ids|labels|texts)\.(utf8|offsets\.npy)"
)


def is_too_large(corpus: Corpus, n_topics: int) -> bool:
    """Return whether the documents of a run are so large that it keeps them only if it is asked to."""
    counts = corpus.counts
    return bool(corpus.n_docs * n_topics * 4 + counts.data.nbytes + counts.indices.nbytes > _MOST_BYTES)


def holds_only_documents(folder: Path) -> bool:
    """Return whether a folder has nothing but what `write_stored` writes, so that a new run may replace it."""
    return folder.is_dir() and all(_CORPUS_FILE.fullmatch(entry.name) for entry in folder.iterdir())


def write_stored(run: Path, corpus: Corpus, theta: npt.NDArray[Any], *, texts: bool = True) -> None:
    """Write documents with their topics, and the checksum of the model that they belong to.

    Args:
        run: a directory with a saved model, and without documents.
        corpus: the documents, over the model's words.
        theta: (n_docs, K) their topic shares.
        texts: whether the texts are written, if they are known.
    """
    kept = corpus if texts else replace(corpus, fields=replace(corpus.fields, texts=None))
    with atomic_directory(run / DOCUMENTS, MANIFEST) as staged:
        np.save(staged / THETA, np.asarray(theta, np.float32))
        save_into(kept, staged, {_MODEL: weights_digest(find_model(run))})


def known_covariates(run: Path) -> dict[str, FieldKind]:
    """Return the kinds of the covariates of a run's documents; nothing if the run does not hold its documents.

    Raises:
        CorpusFileError: the file that says them is damaged.
    """
    path = run / DOCUMENTS / MANIFEST
    if not path.is_file():
        return {}
    about = read_json(path, CorpusFileError)
    try:
        kinds = {each["name"]: each["categories"] for each in about["covariates"]}
        return {str(name): 1 if names is None else tuple(map(str, names)) for name, names in kinds.items()}
    except (KeyError, TypeError):
        raise CorpusFileError.of(path, "is damaged") from None


def read_stored(run: Path, vocabulary: list[str], n_topics: int) -> tuple[Corpus, DocumentTopics]:
    """Read the documents of a run.

    Args:
        run: the run directory.
        vocabulary: the words of its model.
        n_topics: the number of topics of its model.

    Raises:
        CorpusFileError: the run keeps no documents, or they are damaged or of another model.
    """
    folder = run / DOCUMENTS
    if not (folder / MANIFEST).is_file():
        raise CorpusFileError(
            f"{run} does not hold its documents (no {DOCUMENTS}/{MANIFEST}); train it again without "
            "--no-documents, or give the documents in Python: topicloom.Topics(model, documents)"
        )
    corpus = Corpus.load(folder)
    theta = load_array(folder / THETA, mmap=True)
    model = read_json(folder / MANIFEST).get(_MODEL)
    belongs = model in (None, weights_digest(find_model(run))) and corpus.vocabulary == vocabulary
    if not belongs or theta.shape != (corpus.n_docs, n_topics) or theta.dtype.kind != "f":
        raise CorpusFileError(f"{folder} does not belong to the model in {run}; train the run again")
    if not all(np.isfinite(part).all() for part in pieces(theta)):
        raise CorpusFileError.of(folder / THETA, "is damaged: it contains a number that is not finite")
    return corpus, DocumentTopics(theta, corpus.is_empty, corpus.fields)
