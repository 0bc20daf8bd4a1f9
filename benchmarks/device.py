"""Compare the seconds per epoch of GSM on a GPU with those on the CPU of the same machine.

python benchmarks/device.py [--bow ../shared/data/20ng/train_bow.npz]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from rich.console import Console
from rich.table import Table

import topicloom as tl


def epoch_seconds(X: Any, device: str, batch_size: int, epochs: int) -> float:
    """Return the median seconds of an epoch."""
    model = tl.GSM(50, random_state=0, device=device, batch_size=batch_size, epochs=epochs).fit(X)
    return float(np.median([row["seconds"] for row in model.history_]))


def main() -> None:
    shared = Path(__file__).resolve().parents[2] / "shared"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bow", type=Path, default=shared / "data" / "20ng" / "train_bow.npz", help="counts")
    options = parser.parse_args()
    devices = ["cuda", "cpu"] if torch.cuda.is_available() else ["cpu"]
    drawn = tl.datasets.synthetic_lda(300_000, 50, 20_000, doc_length=60, random_state=0).corpus
    table = Table("corpus", "batch", *(f"{device}, s per epoch" for device in devices))
    for name, X, sizes, epochs in (
        (options.bow.parent.name, sp.load_npz(options.bow), (256, 2048), 10),
        (repr(drawn), drawn, (1024, 8192), 3),
    ):
        for size in sizes:
            table.add_row(name, str(size), *(f"{epoch_seconds(X, device, size, epochs):.3f}" for device in devices))
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
