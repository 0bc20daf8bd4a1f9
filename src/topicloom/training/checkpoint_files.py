"""Checkpoints as files: the state of a run, and what it is the state of.

A checkpoint is one file in the format of safetensors: the tensors of a `Snapshot`, and JSON with its values, the
identity of the fit and a checksum of all of it in the metadata. Nothing in it is executed when it is read.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from ..corpus import Corpus
from ..distributed.ranks import current
from ..errors import ModelFileError, SettingError
from ..files import atomic_file
from ..settings.values import describe_value
from .state import Continuation, Snapshot
from .surroundings import versions

FORMAT_VERSION = 1
_ONE_PROCESS = "1 of 1"
_SETTINGS_WITHOUT_EFFECT = ("device", "verbose")
_METADATA, _DIGEST = "topicloom", "sha256"


@dataclass(frozen=True)
class Identity:
    """What a fit is a fit of. A checkpoint continues a fit with the same identity alone.

    Attributes:
        model: the model's class.
        settings: a description of each setting on which the result depends.
        documents: a digest of the counts and words.
        validation: a digest of the held-out documents that were given, or None.
        versions: of topicloom, Python and the packages that compute.
        process: the number of this process and how many train together, such as "1 of 4".
    """

    model: str
    settings: dict[str, str]
    documents: str
    validation: str | None
    versions: dict[str, str]
    process: str = _ONE_PROCESS

    @classmethod
    def of(cls, model: Any, corpus: Corpus, validation: Corpus | None) -> Identity:
        """Return the identity of a fit of an estimator.

        Raises:
            SettingError: a setting has a value that cannot be compared, such as a function without a name.
        """
        kind = type(model)
        try:
            settings = {
                name: describe_value(value)
                for name, value in model.get_params(deep=False).items()
                if name not in _SETTINGS_WITHOUT_EFFECT
            }
        except OSError as error:
            raise SettingError(f"{error.filename} cannot be read: {error.strerror}") from None
        held_out = None if validation is None else validation.counts_digest
        process = f"{current().rank + 1} of {current().size}"
        return cls(
            f"{kind.__module__}.{kind.__qualname__}", settings, corpus.counts_digest, held_out, versions(), process
        )

    def difference(self, other: Identity) -> str | None:
        """Return in what another fit differs, as the end of a sentence about that fit; None if it is the same."""
        if other.model != self.model:
            return f"is a fit of {other.model}, not of {self.model}"
        for name in sorted({*self.versions, *other.versions}):
            there, here = (each.versions.get(name, "missing") for each in (other, self))
            if there != here:
                return f"was written with {name} {there}, and here it is {here}"
        for name in sorted({*self.settings, *other.settings}):
            there, here = (each.settings.get(name, "missing") for each in (other, self))
            if there != here:
                return f"has another setting: {name} is {there:.80}, not {here:.80}"
        if other.process != self.process:
            return f"was written by process {other.process}, and this is process {self.process}"
        if other.documents != self.documents:
            return "is a fit of other documents"
        if other.validation != self.validation:
            return "has other documents for validation"
        return None


@dataclass(frozen=True)
class Checkpoint:
    """The state of a run in a file.

    Attributes:
        identity: what the run is a fit of.
        snapshot: the state.
        finished: whether training has finished.
        seconds: for how long the model had been trained.
    """

    identity: Identity
    snapshot: Snapshot
    finished: bool
    seconds: float

    def without_tensors(self) -> Checkpoint:
        """Return what is known of the checkpoint, without the state itself, which can be large."""
        return replace(self, snapshot=replace(self.snapshot, tensors={}))

    @property
    def history(self) -> list[dict[str, Any]]:
        """The rows of the finished epochs."""
        rows: list[dict[str, Any]] = self.snapshot.values["history"]
        return rows

    @property
    def epoch(self) -> int:
        """The number of finished epochs that are recorded; of a Gibbs sampler, its iterations."""
        return int(self.history[-1]["epoch"]) if self.history else 0

    def write(self, path: Path) -> None:
        """Write the file, whole or not at all.

        Raises:
            OSError: the file cannot be written, for example because the disk is full.
        """
        text = json.dumps(
            {
                "format_version": FORMAT_VERSION,
                "identity": asdict(self.identity),
                "finished": self.finished,
                "seconds": self.seconds,
                "continued": None if self.snapshot.continued is None else asdict(self.snapshot.continued),
                "values": self.snapshot.values,
            }
        )
        metadata = {_METADATA: text, _DIGEST: _digest(text, self.snapshot.tensors)}
        with atomic_file(path) as temporary:
            try:
                save_file(self.snapshot.tensors, temporary, metadata)
            except SafetensorError as error:  # which safetensors raises for a full disk
                raise OSError(f"{path} cannot be written: {error}") from error


def read_checkpoint(path: Path) -> Checkpoint:
    """Read what `Checkpoint.write` wrote.

    Raises:
        ModelFileError: the file is missing or damaged, or a newer version wrote it.
        OSError: the system does not let the file be read, which says nothing about its content.
    """
    try:
        with path.open("rb"):  # because safetensors calls a file missing that may not be opened
            pass
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        text = metadata[_METADATA]
        if metadata[_DIGEST] != _digest(text, tensors):
            raise ModelFileError(f"{path} is damaged: its content has changed since it was written")
        content = json.loads(text)
        if content["format_version"] > FORMAT_VERSION:
            raise ModelFileError.newer(path)
        continued = content["continued"]
        snapshot = Snapshot(tensors, content["values"], None if continued is None else Continuation(**continued))
        return Checkpoint(Identity(**content["identity"]), snapshot, content["finished"], content["seconds"])
    except FileNotFoundError:
        raise ModelFileError(f"{path} does not exist; check the path") from None
    except OSError as error:
        raise OSError(f"{path} cannot be read ({error.strerror or error}); correct that, and try again") from None
    except (SafetensorError, KeyError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, ModelFileError):
            raise
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelFileError(f"{path} is damaged: {reason}") from None


def _digest(text: str, tensors: Mapping[str, torch.Tensor]) -> str:
    """Return a checksum of the text, and of the names, types, shapes and contents of the tensors."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        label = f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode()
        digest.update(struct.pack("<Q", len(label)) + label)
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
