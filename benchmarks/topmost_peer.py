"""Train one TopMost model with TopMost's own trainer. `peers.py` and `best.py` run this in an environment of its own.

    python topmost_peer.py '{"model": "ETM", "settings": {}, "n_topics": 50, "epochs": 200, ...}' folder

The first argument also has the number of threads and the seed. The folder contains the counts train.npz, test.npz and
half.npz, (D, V) each. The script writes out.npz to it: beta (K, V), theta of the three sets of documents, the seconds
and processor seconds of training, and both for each epoch except the last.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

# TopMost imports these packages, but ProdLDA, ETM and ECRTM do not use them. Empty modules save gigabytes of packages.
for name in (
    "fastopic", "gensim", "gensim.corpora", "gensim.downloader", "gensim.models", "gensim.models.nmf",
    "sentence_transformers", "torchvision", "torchvision.datasets", "torchvision.datasets.utils",
):  # fmt: skip
    sys.modules[name] = MagicMock()

import numpy as np  # noqa: E402
import scipy.sparse as sp  # noqa: E402
import topmost  # noqa: E402
import torch  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402


class TimedLoader:
    """A data loader that records the time at the start of each epoch."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self.loader, self.dataset = loader, loader.dataset
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def __iter__(self) -> Iterator[Any]:
        self.wall.append(time.perf_counter())
        self.cpu.append(time.process_time())
        return iter(self.loader)


def main() -> None:
    request, folder = json.loads(sys.argv[1]), Path(sys.argv[2])
    torch.set_num_threads(request["threads"])
    torch.manual_seed(request["seed"])
    parts = {part: sp.load_npz(folder / f"{part}.npz").toarray() for part in ("train", "test", "half")}
    bows = {part: torch.from_numpy(bow).float() for part, bow in parts.items()}  # dense, as in BasicDataset
    train = bows["train"]
    loader = TimedLoader(DataLoader(train, batch_size=200, shuffle=True))  # type: ignore[arg-type]
    data = SimpleNamespace(train_dataloader=loader, train_data=train, vocab=np.arange(train.shape[1]).astype(str))
    model = getattr(topmost, request["model"])(train.shape[1], num_topics=request["n_topics"], **request["settings"])
    trainer = topmost.BasicTrainer(model, data, epochs=request["epochs"])
    start, start_cpu = time.perf_counter(), time.process_time()
    trainer.train()
    totals = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - start_cpu}
    thetas = {f"theta_{part}": trainer.test(bow) for part, bow in bows.items()}
    epochs = {"wall": np.diff(loader.wall), "cpu": np.diff(loader.cpu)}
    np.savez(folder / "out.npz", beta=trainer.get_beta(), **totals, **epochs, **thetas)


if __name__ == "__main__":
    main()
