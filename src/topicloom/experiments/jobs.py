"""Jobs that fit models and measure them on the parts of a corpus. Each result is kept as soon as it is known.

`run_jobs` does them in this process, in worker processes or on the nodes of a Ray cluster. `Evaluator` measures a
model on the validation and test documents.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType
from typing import Any, Literal, NoReturn, Self, TypeAlias

import numpy as np

from ..corpus import Corpus
from ..corpus.corpus import CorpusReference
from ..corpus.inputs import Split, corpus_of, corpus_over, split_by_covariate
from ..corpus.inputs import split as split_at_random
from ..corpus.storage import MANIFEST
from ..errors import InputError, SettingError
from ..evaluation import Documents, GivenReference, ModelInputs
from ..files import atomic_directory, atomic_file, full_disk_names
from ..files.content import DIGESTS, content_digest, holds_corpus
from ..messages import brief
from ..metrics import CATALOGUE, Measure, MeasureInputs, Reference
from ..metrics.catalogue import Use
from ..models.base import TopicModel
from ..processes import (
    Job,
    LocalPool,
    Lost,
    Row,
    Sent,
    Work,
    attempt,
    attempt_sent,
    cluster_pool,
    described,
    name_of,
    row_of_loss,
)
from ..text import CustomTokenizer
from ..topics.saved import CONFIG

Measures = dict[str, float]
Parts: TypeAlias = "Split | Sequence[Any] | str | None"
_Files = dict[str, "bytes | dict[str, bytes]"]  # the content of a file, or the contents of the files of a directory

HELD_OUT = ("validation", "test")
_COMPARED: tuple[Use, ...] = ("comparison",)
_OF_SEVERAL_FITS = {"seconds", "other runs"}  # needs that only the caller, who makes several fits, can meet


def run_jobs(
    jobs: Sequence[Job],
    work: Work,
    file: Path,
    n_jobs: int = 1,
    again: bool = False,
    is_complete: Callable[[Row], bool] | None = None,
    cluster: str | None = None,
) -> Generator[Row, None, None]:
    """Do the jobs that have no result yet, and yield each row as soon as it is kept.

    Args:
        jobs: the jobs, which are started in this order. They need not all have the same names.
        work: does a job and returns its result. With several processes it is pickled.
        file: the file of rows, as JSON lines. An incomplete line, which a killed run may leave, is passed over.
        n_jobs: the number of processes, of one thread each; 1 works in this process.
        again: does finished jobs again.
        is_complete: says whether the files of an earlier result are still there. Otherwise the job is done again.
        cluster: the address of a Ray cluster whose nodes do the jobs in place of processes; `work` has to be a
            `FittingWork` then.

    Raises:
        InputError: the processes cannot start, or `work` cannot be sent to them; or there is no such cluster.
        MissingExtraError: Ray is not installed.
    """
    finished = [] if again else [row for row in latest_rows(file, jobs) if "error" not in row]
    names = _names(jobs)
    done = {_key(row, names) for row in finished if is_complete is None or is_complete(row)}
    waiting = [job for job in jobs if _key(job, names) not in done]
    file.parent.mkdir(parents=True, exist_ok=True)
    if cluster is not None:
        assert isinstance(work, FittingWork)
        rows = _on_cluster(waiting, work, cluster)
    elif n_jobs == 1 or len(waiting) < 2:
        rows = (attempt(work, job) for job in waiting)
    else:
        rows = _in_processes(waiting, work, n_jobs)
    try:
        for row in rows:
            _append(file, row)
            yield row
    finally:
        rows.close()  # ends the processes


# The file of rows.


def read_rows(file: Path) -> list[Row]:
    """Return the rows of a file, without damaged ones; there are none if the file does not exist."""
    rows = []
    for line in file.read_bytes().split(b"\n") if file.exists() else ():
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):  # a run was killed while it wrote this line, or the line is damaged
            continue
        if isinstance(row, dict) and row.pop(DIGESTS, None) in (None, content_digest(row)):
            rows.append(row)
    return rows


def latest_rows(file: Path, jobs: Sequence[Job]) -> list[Row]:
    """Return the last row of each job, in the order of the jobs; an error only if nothing else is known."""
    rows: dict[Any, Row] = {}
    names = _names(jobs)
    for row in read_rows(file):
        key = _key(row, names)
        if "error" not in row or "error" in rows.get(key, row):
            rows[key] = row
    return [rows[key] for key in (_key(job, names) for job in jobs) if key in rows]


def _append(file: Path, row: Row) -> None:
    """Write one whole line and flush it to disk. After an incomplete line, the new one starts on a line of its own."""
    line = (json.dumps(row | {DIGESTS: content_digest(row)}, ensure_ascii=False) + "\n").encode()
    with full_disk_names(file), file.open("ab+") as out:
        if out.tell():
            out.seek(-1, os.SEEK_END)
            line = line if out.read(1) == b"\n" else b"\n" + line
        out.write(line)
        out.flush()
        os.fsync(out.fileno())


def _names(jobs: Sequence[Job]) -> list[str]:
    """Return the names of all jobs, as jobs of several kinds may stand in one file."""
    return list({name: None for job in jobs for name in job})


def _key(row: Row, names: Sequence[str]) -> tuple[Any, ...]:
    """Return what distinguishes a job, or the row of a job, from others with the same names."""
    return tuple(row.get(name) for name in names)


def _named(work: Work) -> str:
    """Return what is sent to other processes, for messages."""
    return "the models and measures" if getattr(work, "own", None) else "the models"


# Jobs in worker processes.


def _in_processes(jobs: Sequence[Job], work: Work, n_jobs: int) -> Generator[Row, None, None]:
    """Do jobs in worker processes, in their order, and yield the row of each job as soon as it is done."""

    def named(number: int) -> str:
        return name_of(jobs[number])

    with LocalPool(attempt_sent, named, n_jobs) as pool:
        sent = pool.share(work, _named(work))
        for number, job in enumerate(jobs):
            pool.begin(number, sent, job)
        while len(pool):
            number, row = pool.next()
            yield row_of_loss(jobs[number], row) if isinstance(row, Lost) else row


# Jobs on the nodes of a Ray cluster.
#
# The files that a job writes come back with its row, so the nodes need not share a file system with this machine. Nodes
# that see the directory of the experiment read the documents there. The others receive them.


def _on_cluster(jobs: Sequence[Job], work: FittingWork, address: str) -> Generator[Row, None, None]:
    """Do jobs on the nodes of a cluster, in their order, and yield the row of each job as soon as it is done."""
    if not jobs:
        return

    def named(number: int) -> str:
        return name_of(jobs[number])

    with cluster_pool(address, _fit_on_node, named) as pool:
        sent = pool.share(work, _named(work))
        parts = None
        for number, job in enumerate(jobs):
            pool.begin(number, sent, job, work.documents.digest, None)
        while len(pool):
            number, done = pool.next()
            if isinstance(done, Lost):
                yield row_of_loss(jobs[number], done)
            elif done is None:
                parts = parts or pool.share(work.documents.read(), "the documents")
                pool.begin(number, sent, jobs[number], work.documents.digest, parts)
            else:
                row, files = done
                _write(work.folder, files)
                yield row


def _fit_on_node(sent: Sent, job: Job, digest: str | None, parts: Sent | None) -> tuple[Row, _Files] | None:
    """Do a job on a node, and return its row and files; None if the documents have to be sent."""
    work: FittingWork = sent.value()
    if parts is not None:
        _receive(sent, parts)
    elif digest is None or work.documents.digest != digest:
        return None
    with TemporaryDirectory(prefix="topicloom-") as folder:
        here = replace(work, folder=Path(folder))
        row = attempt(here, job)
        return row, {str(path.relative_to(folder)): _content(path) for path in here.outputs(job) if path.exists()}


@lru_cache(maxsize=1)
def _receive(sent: Sent, parts: Sent) -> None:
    """Give the work the documents that were sent, once."""
    sent.value().documents.receive(parts.value())


def _content(path: Path) -> bytes | dict[str, bytes]:
    if path.is_file():
        return path.read_bytes()
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def _write(folder: Path, files: _Files) -> None:
    for name, content in files.items():
        if isinstance(content, bytes):
            with atomic_file(folder / name) as temporary:
                temporary.write_bytes(content)
            continue
        with atomic_directory(folder / name, CONFIG, overwrite=True) as directory:
            for file, each in content.items():
                (directory / file).parent.mkdir(parents=True, exist_ok=True)
                (directory / file).write_bytes(each)


# Work that fits models, and its documents.


@dataclass
class SavedParts:
    """Training, validation and test documents in a directory. Each process reads them once.

    Attributes:
        folder: has a directory for each part.
        tokenizer: a tokenizer of the user's own, which is not saved with a corpus.
        coherence: what coherence is measured against; None is the training documents.
    """

    folder: Path
    tokenizer: CustomTokenizer | None = None
    coherence: Reference | None = None

    @classmethod
    def of(cls, parts: Split, folder: Path, coherence: Reference | None = None) -> Self:
        """Save the parts that are not in the directory yet."""
        for name, part in zip(Split._fields, parts, strict=True):
            if not holds_corpus(folder / name):
                part.save(folder / name, overwrite=True)
        own = parts.train.tokenizer
        return cls(folder, own if isinstance(own, CustomTokenizer) else None, coherence)

    def __reduce__(self) -> tuple[Any, ...]:
        return SavedParts, (self.folder, self.tokenizer, self.coherence)  # without the documents that have been read

    @cached_property
    def evaluator(self) -> Evaluator:
        """What fits and measures models; it reads the documents."""
        return Evaluator(self.read(), self.coherence)

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
            about = [(self.folder / name / MANIFEST).read_bytes() for name in Split._fields]
        except OSError:
            return None
        return hashlib.sha256(b"".join(about)).hexdigest()

    def receive(self, parts: Split) -> None:
        """Use these documents, which were sent, and read none."""
        self.evaluator = Evaluator(parts, self.coherence)


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


# The documents of an experiment: its training, validation and test parts, and the measures on these.


def split_documents(
    documents: Any, parts: Parts = None, validation: float = 0.1, test: float = 0.2
) -> tuple[Split, dict[str, Any]]:
    """Divide documents into three parts. Documents without a word are left out.

    Args:
        documents: a Corpus, or anything else that `fit` takes.
        parts: None draws the parts at random, with a fixed seed. The name of a covariate takes the parts from its
            values, which are train, validation (or val, valid, dev) and test. Three corpora, for training, validation
            and test, are used as they are, over the vocabulary of the first; `documents` is then not read.
        validation, test: the shares of the documents, for parts that are drawn.

    Returns:
        the parts, and what a plan says about them: digests of the documents, and how they were divided.

    Raises:
        InputError: the documents cannot be read, a part would be empty, or the covariate has other values.
        SettingError: the shares leave nothing to train on.
    """
    if parts is not None and not isinstance(parts, str):
        found = _own_parts(parts)
        return found, {"corpus": _digest(found), "split": "own parts", **_fields_of(found)}
    corpus = documents if isinstance(documents, Corpus) else corpus_of(documents)
    if parts is None:
        drawn = split_at_random(corpus, validation, test)
        return drawn, {"corpus": corpus.digest, "split": {"validation": validation, "test": test}, **_fields_of(drawn)}
    found = _without_empty(split_by_covariate(corpus, parts))
    return found, {"corpus": corpus.digest, "split": {"column": parts, "digest": _digest(found)}, **_fields_of(found)}


def _digest(parts: Split) -> str:
    return hashlib.sha256(" ".join(part.digest for part in parts).encode()).hexdigest()[:16]


def _fields_of(parts: Split) -> dict[str, Any]:
    """Return, for a plan, digests of the fields of the documents that a model can read, if there are any."""
    fields = {name: digests for name, part in parts._asdict().items() if (digests := part.fields.digests())}
    return {"fields": fields} if fields else {}


def require_same_documents(before: Mapping[str, Any], divided: Mapping[str, Any], kept: str) -> None:
    """Check that a directory has the documents that `split_documents` divided.

    Args:
        before: the plan in the directory. Those of earlier versions do not have the fields of the documents.
        divided: what `split_documents` says about the documents.
        kept: the directory and what it has, as the beginning of a message.

    Raises:
        InputError: it has other documents, or divided them differently.
    """
    for name, value in divided.items():
        if name == "fields" and before.get(name, value) != value:
            raise InputError(f"{kept} with other vectors, times or covariates of the documents; give another directory")
        if name != "fields" and before.get(name) != value:
            raise InputError(f"{kept} with another {name}; give another directory")


def _own_parts(parts: Sequence[Any]) -> Split:
    """Return three parts over the vocabulary of the first."""
    if isinstance(parts, Corpus) or not isinstance(parts, Sequence) or len(parts) != 3:
        raise SettingError(
            "`split` should be three corpora (for training, validation and test) or the name of a covariate"
        )
    train = parts[0] if isinstance(parts[0], Corpus) else corpus_of(parts[0])
    rest = (corpus_over(part, train.vocabulary, train.tokenizer, fractional=True) for part in parts[1:])
    return _without_empty(Split(train, *rest))


def reference_for(given: Any, training: Corpus, name: str = "the reference") -> Reference | None:
    """Return documents as a reference of coherence, or None if there are none.

    Args:
        given: a `metrics.Reference`, a Corpus, or anything else that `fit` takes.
        training: the training documents, whose tokenizer splits texts and whose words are the columns of counts.
        name: the name that results give the documents; a `metrics.Reference` has its own.

    Raises:
        InputError: the documents cannot be read.
    """
    if given is None or isinstance(given, Reference):
        return given
    corpus = given if isinstance(given, Corpus) else corpus_over(given, training.vocabulary, training.tokenizer)
    return CorpusReference(corpus, name, whole=True).reference(ordered=corpus.has_order)


def _without_empty(parts: Split) -> Split:
    """Leave out documents without a word of the vocabulary."""
    kept = Split(*(part.subset(~part.is_empty) if part.is_empty.any() else part for part in parts))
    for name, part in zip(Split._fields, kept, strict=True):
        if not part.n_docs:
            raise InputError(f"the {name} part has no document with a word of the vocabulary; give it some documents")
    return kept


class Evaluator:
    """Fits models on the training part and measures all of them in the same way.

    Topics, with words ranked by the package's rule, are measured against the training documents or `coherence`;
    perplexity and classes are measured on held-out documents. A measure that the documents do not allow is left out
    (see `unavailable`).
    """

    def __init__(self, parts: Split, coherence: Reference | None = None) -> None:
        self.parts = parts
        self._documents = {
            "train": Documents(parts.train, "training documents"),
            "validation": Documents(parts.validation, "validation documents"),
            "test": Documents(parts.test, "test documents"),
        }
        self._reference: CorpusReference | GivenReference = (
            self._documents["train"].reference if coherence is None else GivenReference(coherence)
        )

    @property
    def coherence_against(self) -> str:
        """The name of the documents that coherence is counted in."""
        return self._reference.name

    def fit(self, model: TopicModel, training: Corpus | None = None) -> float:
        """Fit a model on the training part, or on these documents of it, and return the seconds it took."""
        began = time.perf_counter()
        model.fit(self.parts.train if training is None else training)
        return time.perf_counter() - began

    def unavailable(self, name: str, on: str) -> str | None:
        """Return why a measure cannot be taken on a part of this corpus, or None if it can."""
        needs, corpus = CATALOGUE[name].needs, self._documents[on].corpus
        if "labels" in needs and not (any(corpus.labels or ()) and any(self.parts.train.labels or ())):
            return "the corpus has no labels"
        vectors = self.parts.train.vectors
        if "document vectors" in needs and isinstance(self._reference, GivenReference):
            return f"{self._reference.name} has no vectors"
        if "document vectors" in needs and (vectors is None or not vectors.any()):
            return "the documents have no vectors"
        if "token order" in needs:
            return self._reference.order_unknown
        return None

    def measure(
        self, model: TopicModel, on: Sequence[str] = HELD_OUT, uses: Collection[Use] = _COMPARED
    ) -> dict[str, Measures]:
        """Measure a fitted model.

        Args:
            model: the fitted model.
            on: the parts to measure on.
            uses: takes the measures that the catalogue has for these uses.

        Returns:
            for each part, the measures of the topics and those of the part's documents, by name.
        """
        trained = ModelInputs(model, self._documents["train"], self._reference)
        parts = {name: ModelInputs(model, self._documents[name], self._reference, trained) for name in on}
        found: dict[str, Measures] = {name: {} for name in on}
        for measure in CATALOGUE.values():
            if not measure.uses.intersection(uses) or measure.needs & _OF_SEVERAL_FITS:
                continue
            of_documents = measure.group in ("prediction", "classes")
            common = None if of_documents else self._value(measure, "train", trained)
            for part, inputs in parts.items():
                value = self._value(measure, part, inputs) if of_documents else common
                if value is not None:
                    found[part][measure.name] = value
        return found

    def _value(self, measure: Measure, part: str, inputs: ModelInputs) -> float | None:
        if self.unavailable(measure.name, part):
            return None
        try:
            return float(measure.function(inputs))
        except SettingError:  # the model does not have the measure, such as a completion without vectors
            return None


# Measures of the user's own.


@dataclass(frozen=True)
class OwnMeasure:
    """A measure of the user's own, which is taken on the validation and the test documents.

    Attributes:
        name: its name in the tables.
        function: is called with a fitted model and a Corpus, and returns a number; None or NaN is no value.
        better: 1 if higher values are better, -1 if lower ones are.
    """

    name: str
    function: Callable[[TopicModel, Corpus], Any]
    better: Literal[-1, 1]

    def __call__(self, model: TopicModel, documents: Corpus) -> float | None:
        """Take the measure. Return None if there is no value.

        Raises:
            InputError: the function raises an error, or returns something else than a number.
        """
        try:
            value = self.function(model, documents)
            if value is None:
                return None
            if isinstance(value, str | bytes) or np.ndim(value) or np.iscomplexobj(value):
                raise InputError(f"it returned {brief(value)}, which is not a number")
            number = float(value)
        except Exception as error:
            raise InputError(f"the measure {self.name!r} failed: {described(error)}") from None
        return number if math.isfinite(number) else None

    @property
    def entry(self) -> Measure:
        """What tables and pictures show, as an entry of the catalogue."""
        needs: frozenset[str] = frozenset({"theta"})  # it may differ between the parts
        name = self.name
        return Measure(name, name, name, self.better, "own", needs, frozenset(), _taken, column=name)

    @property
    def digest(self) -> str:
        """A digest of the code of the function, which tells whether it was changed; "" if it is not in Python."""
        function: Any = self.function
        while isinstance(function, partial):
            function = function.func
        code = getattr(function if hasattr(function, "__code__") else type(function).__call__, "__code__", None)
        if code is None:
            return ""
        python = sys.implementation.cache_tag  # each version has a code of its own
        return f"{python}:{hashlib.sha256(repr(_code(code)).encode()).hexdigest()[:16]}"

    def is_of(self, digest: str | None) -> bool:
        """Whether a value with this digest was taken by this function, as far as can be known."""
        python = self.digest.partition(":")[0]
        return digest is not None and (digest == self.digest or digest.partition(":")[0] != python)


def _taken(inputs: MeasureInputs) -> NoReturn:
    raise InputError("a measure of your own is taken while models are compared")


def _code(code: CodeType) -> list[Any]:
    """Return what a function does, without its place in the file."""
    constants = [
        _code(each) if isinstance(each, CodeType) else sorted(map(repr, each)) if isinstance(each, frozenset) else each
        for each in code.co_consts
    ]
    return [code.co_code, code.co_names, constants]


def own_measures(given: Mapping[str, Any] | None) -> dict[str, OwnMeasure]:
    """Return the measures that `measures` of `compare` and `tune` names.

    Args:
        given: by name, a function, or (function, "lower") if lower values are better; None for none.

    Raises:
        SettingError: it is no such mapping, or a name is taken.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise SettingError(
            '`measures` should be a dictionary of functions of your own, such as {"topics": lambda model, corpus: 20}; '
            f"it is {brief(given)}"
        )
    made: dict[str, OwnMeasure] = {}
    for name, value in given.items():
        function, better = value if isinstance(value, tuple) and len(value) == 2 else (value, "higher")
        if not isinstance(name, str) or not name.strip() or name != " ".join(name.split()):
            raise SettingError(f"a name in `measures` should be a word or several; it is {name!r:.60}")
        if name in CATALOGUE or name in _COLUMNS or name.removesuffix("_sd") in {*CATALOGUE, *given} - {name}:
            raise SettingError(f"{name!r} in `measures` is a name of the package's own tables; give another name")
        if not callable(function) or better not in ("higher", "lower"):
            raise SettingError(
                f'{name!r} in `measures` should be a function, or (function, "lower") if lower is better; it is '
                f"{brief(value)}"
            )
        made[name] = OwnMeasure(name, function, -1 if better == "lower" else 1)
    return made


_COLUMNS = {"part", "model", "n_topics", "seed", "fits"}  # of tables
