"""Fit topica's LDA. `best.py` and `unseen.py` run this in an environment of its own.

    python topica_peer.py '{"model": "sparse", "n_topics": 50, "epochs": 1000, "threads": 2, "seed": 0}' folder

The model is the name of a sampler, and the epochs are its iterations. The parameters of theta start at .1 each;
everything else is topica's default, unless "settings" has other arguments of "model", "fit" or "transform". The folder
contains the counts train.npz, test.npz and half.npz, (D, V) each. The script writes out.npz to it: beta (K, V), the
learned alpha (K,), theta of the three sets of documents, and the seconds and processor seconds of the fit.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from topica import LDA

from peer_tokens import tokens

SMALLEST = 1e-9  # probability of words that no training document has


def main() -> None:
    request, folder = json.loads(sys.argv[1]), Path(sys.argv[2])
    parts = {part: sp.load_npz(folder / f"{part}.npz").tocsr() for part in ("train", "test", "half")}
    n_topics, documents = request["n_topics"], {part: list(tokens(counts)) for part, counts in parts.items()}
    settings = {"model": {}, "fit": {}, "transform": {}} | request.get("settings", {})
    fixed = {"sampler": request["model"], "alpha_sum": 0.1 * n_topics}
    fixed |= {"num_threads": request["threads"], "seed": request["seed"]}
    model = LDA(n_topics, **fixed | settings["model"])
    start, start_cpu = time.perf_counter(), time.process_time()
    model.fit(documents["train"], iters=request["epochs"], **settings["fit"])
    totals = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - start_cpu}
    beta = np.full((n_topics, parts["train"].shape[1]), SMALLEST)
    beta[:, np.array(model.vocabulary, int)] = model.topic_word
    thetas = {
        f"theta_{part}": np.asarray(model.transform(some, **settings["transform"])) for part, some in documents.items()
    }
    beta /= beta.sum(1, keepdims=True)
    np.savez(folder / "out.npz", beta=beta, alpha=np.asarray(model.alpha), **totals, **thetas)


if __name__ == "__main__":
    main()
