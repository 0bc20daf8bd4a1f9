"""Digests of what each model learns from bbc-news, to show that a change of the code leaves every figure as it was.

`python benchmarks/digests.py` fits the models with K = 20 and one seed, and compares the SHA-256 digests of
`components_` and of theta with those in digests.json, which an earlier commit wrote. `--write` replaces that file, or
with `--only` the digests of some models.
Digests hold for one processor and one version of PyTorch and NumPy; the file names those that it was made with.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import topicloom as tl
from shared import load, parser

FILE = Path(__file__).with_suffix(".json")
K = 20
MODELS: dict[str, Any] = {
    "GSM": lambda: tl.GSM(K, random_state=0),
    "GSM latent_size": lambda: tl.GSM(K, prior="standard", latent_size=30, random_state=0, epochs=10),
    "GSM patience": lambda: tl.GSM(K, patience=2, random_state=0, epochs=20),
    "GSM mlp": lambda: tl.GSM(K, decoder="mlp", random_state=0, epochs=5),
    "NVDM": lambda: tl.NVDM(K, random_state=0, epochs=10),
    "ETM": lambda: tl.ETM(K, random_state=0),
    "WLDA": lambda: tl.WLDA(K, random_state=0),
    "WLDA gmm-ctm": lambda: tl.WLDA(K, prior="gmm-ctm", random_state=0, epochs=10),
    "GMNTM": lambda: tl.GMNTM(K, random_state=0, epochs=20),
    "DirichletVAE": lambda: tl.DirichletVAE(K, random_state=0),
    "DirichletVAE rsvi": lambda: tl.DirichletVAE(K, estimator="rsvi", random_state=0, epochs=10),
    "DirichletVAE weibull": lambda: tl.DirichletVAE(K, estimator="weibull", random_state=0, epochs=10),
    "ProdLDA": lambda: tl.ProdLDA(K, random_state=0, epochs=10),
    "NVLDA": lambda: tl.NVLDA(K, random_state=0, epochs=10),
    "BATM": lambda: tl.BATM(K, random_state=0, epochs=20),
    "LDA variational": lambda: tl.LDA(K, method="variational", random_state=0),
    "LDA gibbs": lambda: tl.LDA(K, method="gibbs", epochs=100, random_state=0),
    "Loom": lambda: tl.Loom(K, random_state=0),
    "Loom seeded": lambda: tl.Loom(K, random_state=0, epochs=12, seed_words={3: ["match", "coach"]}),
}
STREAMED = ("GSM", "Loom", "LDA variational")


def digest(array: Any) -> str:
    """A short digest of the bytes of an array."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--write", action="store_true", help="replace digests.json, or the digests in --only")
    arguments.add_argument("--only", help="models to fit, separated by commas")
    options = arguments.parse_args()
    torch.set_num_threads(1)
    data = load(options.shared, "bbc-news")
    corpus = tl.Corpus.from_counts(data["train"], data["vocab"], labels=data["train_labels"])
    test = tl.Corpus.from_counts(data["test"], data["vocab"])
    found: dict[str, dict[str, Any]] = {}
    names = options.only.split(",") if options.only else [*MODELS, *(f"{name} stream" for name in STREAMED)]
    for name in names:
        began = time.perf_counter()
        if name.endswith(" stream"):
            model = MODELS[name.removesuffix(" stream")]()
            for start in range(0, corpus.n_docs, 400):
                model.partial_fit(corpus[start : start + 400])
        else:
            model = MODELS[name]().fit(corpus)
        seconds = time.perf_counter() - began
        found[name] = {
            "components": digest(model.components_),
            "theta": digest(model.transform(test)),
            "bound": repr(float(model.perplexity(test, method="bound"))),
            "completion": repr(float(model.perplexity(test, method="completion"))),
        }
        print(f"{name}: {seconds:.1f} s", file=sys.stderr, flush=True)
    machine = {"processor": _processor(), "torch": torch.__version__, "numpy": np.__version__}
    before = json.loads(FILE.read_text())
    if options.write:
        kept = before["digests"] if options.only and before["machine"] == machine else {}
        FILE.write_text(json.dumps({"machine": machine, "digests": kept | found}, indent=1) + "\n")
        return
    if before["machine"] != machine:
        print(f"digests.json was made on another machine: {before['machine']}, and this is {machine}")
    different = 0
    for name, values in found.items():
        wrong = [key for key, value in values.items() if before["digests"].get(name, {}).get(key) != value]
        different += bool(wrong)
        print(f"{name:24} {'different: ' + ', '.join(wrong) if wrong else 'the same'}")
    sys.exit(1 if different else 0)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


if __name__ == "__main__":
    main()
