"""Fits of a model once more, with another seed, another order of the documents, or a bootstrap sample of them."""

from __future__ import annotations

import json
import logging
import time
from contextlib import suppress
from numbers import Integral
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from ..corpus import Corpus
from ..errors import InputError, ModelFileError, SettingError
from ..files import atomic_file, check_digests, file_digest, read_json, write_json
from ..settings import settings_as_json
from ..text.strings import load_array, write_array
from .base import TopicModel

logger = logging.getLogger("topicloom")

Array = npt.NDArray[Any]
Variation = Literal["seed", "order", "bootstrap"]
VARIATIONS: tuple[Variation, ...] = get_args(Variation)

_MANIFEST = "refits.json"
_WORDS = {"seed": "another seed", "order": "another order of the documents", "bootstrap": "a bootstrap sample"}


def require_variation(vary: Any) -> Variation:
    """Return the name of what differs between fits.

    Raises:
        SettingError: there is no such name.
    """
    if vary not in VARIATIONS:
        raise SettingError(f'`vary` should be "seed", "order" or "bootstrap"; it is {vary!r}')
    found: Variation = vary
    return found


def documents_of_fit(corpus: Corpus, vary: Variation, number: int) -> Corpus:
    """Return the documents of a fit: all of them, all in another order, or as many that are drawn with replacement.

    Args:
        corpus: the documents.
        vary: what differs between the fits.
        number: the number of the fit. Fit 0 has the documents as they are.
    """
    if vary == "seed" or not number:
        return corpus
    generator = np.random.default_rng(number)
    n_docs = corpus.n_docs
    return corpus.subset(generator.permutation(n_docs) if vary == "order" else generator.integers(n_docs, size=n_docs))


def model_of_fit(model: TopicModel, vary: Variation, number: int) -> TopicModel:
    """Return an unfitted model with the settings of another one. Only with "seed", its seed is another one.

    It shows no progress.

    Args:
        model: the model, which may be fitted. If its `random_state` is no number, its seed counts as 0.
        vary: what differs between the fits.
        number: the number of the fit; fit 0 has the seed of the model.
    """
    again: TopicModel = clone(model.origin)
    seed = model.origin.random_state
    first = int(seed) if isinstance(seed, Integral) else 0
    again.set_params(random_state=(first + (number if vary == "seed" else 0)) % 2**32, verbose=0)
    return again


def refit(
    model: TopicModel, corpus: Corpus, n_fits: int, vary: Variation = "seed", folder: str | Path | None = None
) -> list[Array]:
    """Fit a model again, and return the topics of these fits, each (K, V). The log says how long each took.

    Args:
        model: the fitted model.
        corpus: its training documents, over its words.
        n_fits: the number of further fits.
        vary: what differs from the model: its "seed"; the "order" of the documents, with the seed of the model; or the
            documents, which are a "bootstrap" sample, with the seed of the model.
        folder: a directory that keeps the topics. A later call for the same model and documents makes only the fits
            that are missing. None keeps nothing.

    Raises:
        InputError: a fit cannot be made, or the directory cannot be written.
        SettingError: `vary` has no such value.
    """
    require_variation(vary)
    kept = None if folder is None else _Kept(Path(folder), model, corpus)
    found = []
    for number in range(1, n_fits + 1):
        name = f"{vary}-{number}.npy"
        topics = None if kept is None else kept.read(name)
        if topics is None:
            logger.info("fit %d of %d, with %s", number, n_fits, _WORDS[vary])
            began = time.perf_counter()
            again = model_of_fit(model, vary, number)
            again.fit(documents_of_fit(corpus, vary, number))
            topics = again.components_
            logger.info("fit %d of %d took %.1f seconds", number, n_fits, time.perf_counter() - began)
            if kept is not None:
                kept.write(name, topics)
        found.append(topics)
    return found


class _Kept:
    """The topics of fits in a directory, with a note of the settings and documents that they belong to."""

    def __init__(self, folder: Path, model: TopicModel, corpus: Corpus) -> None:
        self.folder = folder
        settings = {name: value for name, value in settings_as_json(model.origin).items() if name != "device"}
        about = {
            "model": type(model.origin).__name__,
            "settings": settings,
            "documents": corpus.counts_digest,
            "fields": corpus.fields.digests(),
        }
        self.about = json.loads(json.dumps(about))  # with lists for tuples and strings for keys, as the file has them
        self.digests: dict[str, str] = {}
        with suppress(InputError):
            before = read_json(folder / _MANIFEST)
            if isinstance(before, dict) and before.get("of") == self.about and isinstance(before.get("files"), dict):
                self.digests = before["files"]

    def read(self, name: str) -> Array | None:
        """Return the topics of a fit; None if there is none, or if its file is damaged."""
        if name not in self.digests:
            return None
        try:
            check_digests(self.folder, {name: self.digests[name]}, ModelFileError)
            return np.array(load_array(self.folder / name, mmap=False))
        except InputError:
            return None

    def write(self, name: str, topics: Array) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        with atomic_file(self.folder / name) as temporary:
            write_array(temporary, topics)
        self.digests[name] = file_digest(self.folder / name)
        write_json(self.folder / _MANIFEST, {"of": self.about, "files": self.digests})
