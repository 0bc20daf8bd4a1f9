"""What topicloom has written to a directory, by the files that are in it. Nothing is read."""

from __future__ import annotations

from pathlib import Path


def holds_corpus(directory: str | Path) -> bool:
    """Return whether a directory is a corpus that `Corpus.save` or the command `prepare` wrote."""
    return (Path(directory) / "corpus.json").is_file()


def holds_model(directory: str | Path) -> bool:
    """Return whether a directory is a saved model, or a run, which has one in its folder model."""
    folder = Path(directory)
    return (folder / "model" / "config.json").is_file() or (folder / "model.safetensors").is_file()


def holds_stopped_run(directory: str | Path) -> bool:
    """Return whether a directory has checkpoints of a run that is not complete: it was stopped, or is under way."""
    return any((Path(directory) / "checkpoints").glob("checkpoint-*"))
