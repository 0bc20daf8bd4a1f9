"""Fit a model of turftopic to given vectors. `vectors.py` runs this in an environment of its own.

    python turftopic_peer.py '{"model": "GMM", "settings": {}, "n_topics": 20, "threads": 1, "seed": 0}' folder

The model is a class of turftopic with its default settings, unless "settings" has others. The folder contains the
counts train.npz and test.npz, (D, V) each, and vectors.npz with unit vectors of the documents, `train` and `test`,
(D, E) each, and of the words, `words` (V, E). The script writes out.npz to it: beta (K, V), which are weights that may
be negative, theta of both sets of documents, and the seconds and processor seconds of the fit.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.feature_extraction.text import CountVectorizer

from peer_tokens import tokens

MODULES = {
    "GMM": "gmm",
    "SemanticSignalSeparation": "decomp",
    "KeyNMF": "keynmf",
    "AutoEncodingTopicModel": "ctm",
}


class WordVectors:
    """An encoder that knows the vectors of the words, whose names are their numbers."""

    def __init__(self, vectors: Any) -> None:
        self.vectors = vectors

    def encode(self, texts: Any, **_: Any) -> Any:
        return self.vectors[[int(text) for text in texts]]


def main() -> None:
    request, folder = json.loads(sys.argv[1]), Path(sys.argv[2])
    torch.set_num_threads(request["threads"])
    counts = {part: sp.load_npz(folder / f"{part}.npz").tocsr() for part in ("train", "test")}
    documents = {part: [" ".join(document) for document in tokens(some)] for part, some in counts.items()}
    with np.load(folder / "vectors.npz") as file:
        vectors: dict[str, Any] = {part: file[part].astype(np.float32) for part in ("train", "test", "words")}
    kind = getattr(importlib.import_module(f"turftopic.models.{MODULES[request['model']]}"), request["model"])
    words = [str(word) for word in range(counts["train"].shape[1])]
    model = kind(
        request["n_topics"],
        encoder=WordVectors(vectors["words"]),
        vectorizer=CountVectorizer(vocabulary=words, token_pattern=r"\S+"),
        random_state=request["seed"],
        **request["settings"],
    )
    start, start_cpu = time.perf_counter(), time.process_time()
    theta = model.fit_transform(documents["train"], embeddings=vectors["train"])
    totals = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - start_cpu}
    new = model.transform(documents["test"], embeddings=vectors["test"])
    np.savez(folder / "out.npz", beta=model.components_, theta_train=theta, theta_test=new, **totals)


if __name__ == "__main__":
    main()
