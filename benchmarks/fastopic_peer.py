"""Train FASTopic with the package of its authors. `transport.py` runs this in an environment of its own.

    python fastopic_peer.py '{"settings": {}, "n_topics": 50, "epochs": 200, "threads": 1, "seed": 0}' folder

The folder contains the counts train.npz and test.npz, (D, V) each, and vectors.npz with the vectors of the same
documents, `train` and `test`, (D, E) each. The script writes out.npz to it: beta (K, V), theta of both sets of
documents, and the seconds and processor seconds of training.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

# The package imports these. Vectors are given, and nothing is drawn, so empty modules do.
for name, parts in (("sentence_transformers", ["SentenceTransformer"]), ("fastopic._plot", [])):
    module = ModuleType(name)
    for part in parts:
        setattr(module, part, type(part, (), {}))
    sys.modules[name] = module

import numpy as np  # noqa: E402
import scipy.sparse as sp  # noqa: E402
import torch  # noqa: E402
from fastopic import FASTopic  # noqa: E402


def main() -> None:
    request, folder = json.loads(sys.argv[1]), Path(sys.argv[2])
    torch.set_num_threads(request["threads"])
    torch.manual_seed(request["seed"])
    np.random.seed(request["seed"])  # noqa: NPY002  # the package shuffles by it
    counts = sp.load_npz(folder / "train.npz")
    with np.load(folder / "vectors.npz") as file:
        vectors: dict[str, Any] = {part: file[part].astype(np.float32) for part in ("train", "test")}
    words = {"train_bow": counts, "vocab": [str(column) for column in range(counts.shape[1])]}
    given = SimpleNamespace(preprocess=lambda documents: words)  # the documents are counted already
    encoder = SimpleNamespace(encode=lambda documents, **_: vectors["train"])
    model = FASTopic(
        request["n_topics"], preprocess=given, doc_embed_model=encoder, device="cpu", **request["settings"]
    )
    start, start_cpu = time.perf_counter(), time.process_time()
    model.fit([""] * counts.shape[0], epochs=request["epochs"], preset_doc_embeddings=vectors["train"])
    totals = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - start_cpu}
    thetas = {f"theta_{part}": model.transform(doc_embeddings=torch.from_numpy(each)) for part, each in vectors.items()}
    np.savez(folder / "out.npz", beta=model.get_beta(), **totals, **thetas)


if __name__ == "__main__":
    main()
