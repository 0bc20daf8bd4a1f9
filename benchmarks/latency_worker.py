"""Infer documents with the models of one package, whenever latency.py asks for it.

    python latency_worker.py gensim folder

It runs in the environment of the package. The folder has counts.npz (D, V), texts.txt and short.txt, a line for each of
D documents. Each line of standard input is the name of a model; the answer is a line of JSON with the times of single
documents and of many. Other packages get tokens or counts that have been made before; ours gets raw text, too.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from peer_tokens import tokens

N_TOPICS = 50
SINGLE = 60  # documents, one after the other, in each round
ENOUGH = 0.4  # seconds for many documents


class Model(NamedTuple):
    """A fitted model.

    Attributes:
        one: infers the short document of this number.
        many: infers the first n documents.
        texts: infers the first n raw texts, or None.
    """

    one: Callable[[int], Any]
    many: Callable[[int], Any]
    texts: Callable[[int], Any] | None = None


def topicloom(folder: Path, counts: sp.csr_matrix, short: sp.csr_matrix) -> dict[str, Model]:
    """Return our models, which are fitted in the first run and loaded in the others."""
    import logging

    import topicloom as tl

    logging.getLogger("topicloom").setLevel(logging.ERROR)
    corpus, found = tl.Corpus.load(folder / "corpus"), {}
    texts, lines = ((folder / name).read_text(encoding="utf-8").splitlines() for name in ("texts.txt", "short.txt"))
    for kind in (kind for kind in tl.MODELS if not kind.needs_vectors):
        if not (folder / kind.__name__).exists():
            epochs = 20 if kind.__name__ in ("LDA", "Loom") else 5
            kind(N_TOPICS, random_state=0, epochs=epochs).fit(corpus).save(folder / kind.__name__)
        model = tl.load(folder / kind.__name__)
        found[kind.__name__] = Model(
            lambda i, model=model: model.transform([lines[i]]),  # type: ignore[misc]
            lambda n, model=model: model.transform(corpus[:n] if n < corpus.n_docs else corpus),  # type: ignore[misc]
            lambda n, model=model: model.transform(texts[:n]),  # type: ignore[misc]
        )
    return found


def topmost(folder: Path, counts: sp.csr_matrix, short: sp.csr_matrix) -> dict[str, Model]:
    """Return TopMost's models after an epoch; they read dense counts."""
    import torch

    import topmost_peer as peer

    dense, rows = (torch.from_numpy(each.toarray()).float() for each in (counts, short))
    loader = torch.utils.data.DataLoader(dense, batch_size=200, shuffle=True)
    data = SimpleNamespace(train_dataloader=loader, train_data=dense, vocab=np.arange(dense.shape[1]).astype(str))
    found = {}
    for name in ("ETM", "ProdLDA"):
        model = getattr(peer.topmost, name)(dense.shape[1], num_topics=N_TOPICS)
        trainer = peer.topmost.BasicTrainer(model, data, epochs=1)
        trainer.train()
        test = trainer.test
        found[f"TopMost {name}"] = Model(lambda i, f=test: f(rows[i : i + 1]), lambda n, f=test: f(dense[:n]))  # type: ignore[misc]
    return found


def tomotopy(folder: Path, counts: sp.csr_matrix, short: sp.csr_matrix) -> dict[str, Model]:
    """Return tomotopy's LDA."""
    import tomotopy as tp

    model, documents, few = tp.LDAModel(k=N_TOPICS, seed=1), list(tokens(counts)), list(tokens(short))
    for document in documents:
        model.add_doc(document)
    model.train(200)

    def infer(some: list[list[str]]) -> Any:
        return model.infer([model.make_doc(each) for each in some])

    return {"tomotopy LDA": Model(lambda i: infer([few[i]]), lambda n: infer(documents[:n]))}


def topica(folder: Path, counts: sp.csr_matrix, short: sp.csr_matrix) -> dict[str, Model]:
    """Return topica's LDA."""
    from topica import LDA

    model, documents, few = LDA(N_TOPICS, seed=1), list(tokens(counts)), list(tokens(short))
    model.fit(documents, iters=200)
    return {"topica LDA": Model(lambda i: model.transform([few[i]]), lambda n: model.transform(documents[:n]))}


def gensim(folder: Path, counts: sp.csr_matrix, short: sp.csr_matrix) -> dict[str, Model]:
    """Return gensim's LDA."""
    from gensim.models import LdaModel

    def bows(some: sp.csr_matrix) -> list[list[tuple[int, int]]]:
        return [list(zip(row.indices.tolist(), row.data.astype(int).tolist(), strict=True)) for row in some]

    documents, few = bows(counts), bows(short)
    model = LdaModel(documents, N_TOPICS, {v: str(v) for v in range(counts.shape[1])}, passes=10, random_state=0)
    return {"gensim LDA": Model(lambda i: model.inference([few[i]]), lambda n: model.inference(documents[:n]))}


def scikit_learn(folder: Path, counts: sp.csr_matrix, short: sp.csr_matrix) -> dict[str, Model]:
    """Return scikit-learn's LDA."""
    from sklearn.decomposition import LatentDirichletAllocation

    model = LatentDirichletAllocation(N_TOPICS, random_state=0).fit(counts)
    return {"scikit-learn LDA": Model(lambda i: model.transform(short[i]), lambda n: model.transform(counts[:n]))}


PACKAGES = {
    "topicloom": topicloom, "TopMost": topmost, "tomotopy": tomotopy, "topica": topica, "gensim": gensim,
    "scikit-learn": scikit_learn,
}  # fmt: skip


def speed(infer: Callable[[int], Any], n_docs: int) -> tuple[float, float]:
    """Return documents per second by the clock, and per second of processor time."""
    n = min(64, n_docs)
    infer(n)
    while True:
        done, start, processor = 0, time.perf_counter(), time.process_time()
        while time.perf_counter() - start < (ENOUGH if n == n_docs else 0) or not done:
            infer(n)
            done += n
        seconds, spent = time.perf_counter() - start, time.process_time() - processor
        if seconds >= ENOUGH or n == n_docs:
            return done / seconds, done / spent
        n = min(n_docs, max(2 * n, int(1.2 * n * ENOUGH / seconds)))


def measure(model: Model, n_docs: int, n_short: int) -> dict[str, Any]:
    """Return the times of a round."""
    single = []
    for i in range(SINGLE + 5):
        start = time.perf_counter()
        model.one(i % n_short)
        single.append(time.perf_counter() - start)
    found: dict[str, Any] = {"single": single[5:], "many": speed(model.many, n_docs)}
    return found | ({"texts": speed(model.texts, n_docs)} if model.texts else {})


def main() -> None:
    folder = Path(sys.argv[2])
    counts, short = (sp.load_npz(folder / name).tocsr() for name in ("counts.npz", "short.npz"))
    models = PACKAGES[sys.argv[1]](folder, counts, short)
    print(json.dumps(list(models)), flush=True)
    for line in sys.stdin:
        print(json.dumps(measure(models[line.strip()], counts.shape[0], short.shape[0])), flush=True)


if __name__ == "__main__":
    main()
