"""One TopMost model, trained by TopMost's own trainer in an environment of its own. `peers.py` starts it.

    python topmost_peer.py '{"model": "ETM", "settings": {}, "n_topics": 50, "epochs": 200, ...}' folder

The first argument says threads and seed as well. The folder has the counts train.npz, test.npz and half.npz (D, V), and
gets out.npz: beta (K, V), theta of the three, the seconds and processor seconds of training, and both of each epoch but
the last.
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

# The package imports these at its top, and ProdLDA, ETM and ECRTM use none of them: stand-ins spare gigabytes.
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


class Timed:
    """A loader that notes when each epoch begins."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self.loader, self.dataset = loader, loader.dataset
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def __iter__(self) -> Iterator[Any]:
        self.wall.append(time.perf_counter())
        self.cpu.append(time.process_time())
        return iter(self.loader)


def main() -> None:
    what, folder = json.loads(sys.argv[1]), Path(sys.argv[2])
    torch.set_num_threads(what["threads"])
    torch.manual_seed(what["seed"])
    parts = {part: sp.load_npz(folder / f"{part}.npz").toarray() for part in ("train", "test", "half")}
    bows = {part: torch.from_numpy(bow).float() for part, bow in parts.items()}  # dense, as BasicDataset has them
    train = bows["train"]
    loader = Timed(DataLoader(train, batch_size=200, shuffle=True))  # type: ignore[arg-type]
    data = SimpleNamespace(train_dataloader=loader, train_data=train, vocab=np.arange(train.shape[1]).astype(str))
    model = getattr(topmost, what["model"])(train.shape[1], num_topics=what["n_topics"], **what["settings"])
    trainer = topmost.BasicTrainer(model, data, epochs=what["epochs"])
    began, began_cpu = time.perf_counter(), time.process_time()
    trainer.train()
    whole = {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - began_cpu}
    thetas = {f"theta_{part}": trainer.test(bow) for part, bow in bows.items()}
    timed = {"wall": np.diff(loader.wall), "cpu": np.diff(loader.cpu)}
    np.savez(folder / "out.npz", beta=trainer.get_beta(), **whole, **timed, **thetas)


if __name__ == "__main__":
    main()
