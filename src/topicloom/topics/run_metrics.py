"""metrics.json of a run: what was measured, and the topics' shares of the documents, with a checksum of its content."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import ModelFileError
from ..files import plain_file, read_manifest, write_manifest

METRICS, TOPICS = "metrics.json", "topics.csv"
_FORMAT_VERSION = 1  # runs without it have no checksum, and the shares are in topics.csv alone


def write_metrics(run: Path, content: Mapping[str, Any]) -> None:
    """Write metrics.json of a run."""
    write_manifest(run / METRICS, {**content, "format_version": _FORMAT_VERSION})


def read_metrics(run: Path) -> dict[str, Any]:
    """Return the contents of metrics.json of a run; nothing if the run is a model alone.

    Raises:
        ModelFileError: the file is missing, damaged or of a newer format.
    """
    if not (run / METRICS).exists() and not (run / TOPICS).exists():
        return {}
    return read_manifest(run / METRICS, ModelFileError, _FORMAT_VERSION, sealed=1)


def read_shares(run: Path, n_topics: int) -> list[float] | None:
    """Return the topics' shares of the training documents; None if they are not known, or are those of another model.

    Raises:
        ModelFileError: metrics.json, or topics.csv of an older run, is damaged.
    """
    metrics = read_metrics(run)
    shares = metrics["shares"] if "shares" in metrics else _shares_in_table(run)
    return shares if shares is not None and len(shares) == n_topics else None


def _shares_in_table(run: Path) -> list[float] | None:
    path = run / TOPICS
    if not path.exists():
        return None
    try:
        with plain_file(run, TOPICS, ModelFileError).open(encoding="utf-8-sig", newline="") as file:
            return [float(row["share"]) for row in csv.DictReader(file)]
    except (KeyError, ValueError, TypeError, csv.Error):
        raise ModelFileError.of(path, "is damaged") from None
