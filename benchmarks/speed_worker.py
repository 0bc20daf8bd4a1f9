"""Fit one model of this package or of another one, and note the time of every epoch. speed.py runs this.

    python speed_worker.py '{"system": "tomotopy LDA", "threads": 2, ...}' folder

It runs in the environment of the package that it measures. The request names a folder that has the counts as data.npy,
indices.npy and indptr.npy (CSR), and half.npz with the observed halves of held-out documents. Each finished epoch is a
line of steps.jsonl in the other folder. After the epochs that `snapshots` names, topics and theta of half.npz are
written; the clock stands still meanwhile.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp

from peer_tokens import tokens

Request = dict[str, Any]
State = Callable[[], tuple[Any, ...]]  # returns topics, theta and, if the package ranks words, top words


class Enough(Exception):
    """All epochs that were asked for have been measured."""


class Clock:
    """Notes the time of each epoch, writes snapshots, and ends a fit that takes too long."""

    def __init__(self, request: Request, folder: Path) -> None:
        self.folder, self.limit = folder, request["limit"]
        self.snapshots, self.steps = set(request.get("snapshots", ())), request["steps"]
        self.seconds, self.file = request.get("at_least", 0.0), (folder / "steps.jsonl").open("w")
        self.done, self.pause = 0, (0.0, 0.0)
        self.begun = self._now()
        self.write(loaded=0.0, memory=memory())

    def _now(self) -> tuple[float, float]:
        return time.perf_counter(), time.process_time() + of_children()

    def write(self, **row: Any) -> None:
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()

    def start(self) -> None:
        """Start the clock: the documents are in the form that the package trains on."""
        self.write(loaded=self._now()[0] - self.begun[0], memory=memory())
        signal.setitimer(signal.ITIMER_PROF, self.limit)  # ends this process, whatever code is running
        self.begun = self._now()

    def tick(self, state: State | None = None, steps: int = 1, kind: str = "", enough: bool = True) -> None:
        """Note the end of an epoch.

        Args:
            state: returns topics (K, V) and theta of half.npz, for a snapshot, and optionally top words (K, 10).
            steps: epochs since the last call.
            kind: what kind of epoch it was.
            enough: whether the fit may be ended here, by `Enough`.
        """
        now = self._now()
        self.done += steps
        wall, processor = (a - b - c for a, b, c in zip(now, self.begun, self.pause, strict=True))
        self.write(step=self.done, wall=wall, cpu=processor, memory=memory(), kind=kind)
        if state is not None and self.done in self.snapshots:
            self.keep(state)
        if enough and self.done >= self.steps and wall >= self.seconds:
            raise Enough

    def write_fit(self, steps: int) -> None:
        """Note the end of a whole fit of so many epochs."""
        wall, processor = (a - b for a, b in zip(self._now(), self.begun, strict=True))
        self.write(step=steps, wall=wall, cpu=processor, memory=memory(), kind="fit")

    def keep(self, state: State) -> None:
        """Write a snapshot; its time does not count."""
        start = self._now()
        signal.setitimer(signal.ITIMER_PROF, 0)
        beta, theta, *ranked = state()
        arrays = {"beta": np.asarray(beta, np.float32), "theta": np.asarray(theta)} | (
            {"top": ranked[0]} if ranked else {}
        )
        np.savez(self.folder / f"snapshot-{self.done}.npz", **arrays)
        self.pause = tuple(p + b - a for p, a, b in zip(self.pause, start, self._now(), strict=True))  # type: ignore
        spent = self._now()[1] - self.begun[1] - self.pause[1]
        signal.setitimer(signal.ITIMER_PROF, max(0.1, self.limit - spent))


def of_children() -> float:
    """Return the processor seconds of the processes that this one has started."""
    ticks = 0
    for file in Path("/proc/self/task").glob("*/children"):
        for child in file.read_text().split():
            with suppress(OSError):
                ticks += sum(map(int, Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def memory() -> int:
    """Return the peak memory of this process in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def rows_sum_to_1(matrix: Any) -> Any:
    """Return rows divided by their sums."""
    return np.asarray(matrix) / np.sum(matrix, axis=1, keepdims=True)


def in_columns(topics: Any, vocabulary: list[str], n_words: int) -> np.ndarray[Any, Any]:
    """Return topics over a package's own vocabulary as topics over all columns, (K, V)."""
    out = np.zeros((len(topics), n_words), np.float32)
    out[:, np.array(vocabulary).astype(int)] = topics
    return out


def ours(request: Request, counts: sp.csr_matrix, half: sp.csr_matrix | None, clock: Clock) -> None:
    """Fit a model of this package. An epoch of Loom's counting stage is a pass."""
    import torch

    import topicloom as tl

    torch.set_num_threads(request["threads"])

    class Watch(tl.Callback):
        def on_state(self, state: Any) -> None:
            counting = getattr(state.network, "counting", None)
            counted = counting is not None and counting.passes_done > 0
            ended = not half_is_wanted and (counting is None or counted)
            clock.tick(kind="pass" if counted else "epoch", enough=ended)

    half_is_wanted = bool(request.get("snapshots"))
    corpus = tl.Corpus.load(request["corpus"]) if "corpus" in request else tl.Corpus.from_counts(counts)
    settings = {"random_state": request["seed"], **request["settings"]}
    model = getattr(tl, request["model"])(request["n_topics"], **settings)
    clock.start()
    model.fit(corpus, callbacks=[Watch()])
    if half is not None and half_is_wanted:
        clock.write_fit(clock.done)
        observed = tl.Corpus.from_counts(half, model.vocabulary_)
        clock.keep(lambda: (model.components_, model.transform(observed), model.topic_ids(10)))


def topmost(request: Request, counts: sp.csr_matrix, half: sp.csr_matrix | None, clock: Clock) -> None:
    """Fit a model of TopMost with its own trainer; it reads dense counts."""
    import torch

    import topmost_peer as peer

    torch.set_num_threads(request["threads"])
    torch.manual_seed(request["seed"])
    dense = torch.from_numpy(counts.toarray()).float()
    observed = None if half is None else torch.from_numpy(half.toarray()).float()
    settings = dict(request["settings"])
    loader = torch.utils.data.DataLoader(dense, batch_size=settings.pop("batch_size", 200), shuffle=True)
    kind, n_words = getattr(peer.topmost, request["model"]), counts.shape[1]
    model = kind(n_words, num_topics=request["n_topics"], **settings)

    def state() -> tuple[Any, Any]:
        theta = trainer.test(observed)
        model.train()
        return trainer.get_beta(), theta

    class Loader:
        dataset, epochs = loader.dataset, -1

        def __iter__(self) -> Iterator[Any]:
            self.epochs += 1
            if self.epochs:
                clock.tick(state)
            return iter(loader)

    data = SimpleNamespace(train_dataloader=Loader(), train_data=dense, vocab=np.arange(n_words).astype(str))
    trainer = peer.topmost.BasicTrainer(model, data, epochs=10**6)
    clock.start()
    trainer.train()


def tomotopy(request: Request, counts: sp.csr_matrix, half: sp.csr_matrix | None, clock: Clock) -> None:
    """Fit tomotopy's LDA, a collapsed Gibbs sampler."""
    import tomotopy as tp

    model = tp.LDAModel(k=request["n_topics"], seed=request["seed"] + 1, **request["settings"])
    for document in tokens(counts):
        if document:
            model.add_doc(document)
    model.train(0)

    def state() -> tuple[Any, Any]:
        topics = [model.get_topic_word_dist(k) for k in range(request["n_topics"])]
        documents = [model.make_doc(each) for each in tokens(half)]
        filled = [each for each in documents if len(each.words)]
        theta = filled_rows(np.array(model.infer(filled, workers=request["threads"])[0]), half)
        return in_columns(topics, list(model.used_vocabs), counts.shape[1]), theta

    clock.start()
    while True:
        model.train(1, workers=request["threads"])
        clock.tick(state)


def gensim(request: Request, counts: sp.csr_matrix, half: sp.csr_matrix | None, clock: Clock) -> None:
    """Fit gensim's online LDA; with several threads, LdaMulticore with as many workers."""
    from gensim.models import LdaModel, LdaMulticore

    def pairs(some: sp.csr_matrix) -> list[list[tuple[int, float]]]:
        return [list(zip(row.indices.tolist(), row.data.tolist(), strict=True)) for row in some]

    def state() -> tuple[Any, Any]:
        return model.get_topics(), rows_sum_to_1(model.inference(pairs(half))[0])

    class Passes(list[Any]):
        passes = -1

        def __iter__(self) -> Iterator[Any]:
            self.passes += 1
            if self.passes:
                clock.tick(state)
            return super().__iter__()

    names = {word: str(word) for word in range(counts.shape[1])}
    common = {"num_topics": request["n_topics"], "id2word": names, "random_state": request["seed"]} | request[
        "settings"
    ]
    threads = request["threads"]
    model = LdaModel(**common) if threads == 1 else LdaMulticore(workers=threads, **common)
    model.passes = 10**6
    bows = Passes(pairs(counts))
    clock.start()
    model.update(bows)


def scikit_learn(request: Request, counts: sp.csr_matrix, half: sp.csr_matrix | None, clock: Clock) -> None:
    """Fit scikit-learn's LDA, batch variational Bayes by default, or online."""
    from sklearn.decomposition import LatentDirichletAllocation

    n_topics, settings = request["n_topics"], request["settings"]
    batch_size = settings.get("batch_size", 128) if settings.get("learning_method") == "online" else counts.shape[0]
    batches = -(-counts.shape[0] // batch_size)

    class Timed(LatentDirichletAllocation):  # type: ignore[misc]
        calls = 0

        def _em_step(self, *args: Any, **kwargs: Any) -> Any:
            out = super()._em_step(*args, **kwargs)
            self.calls += 1
            if self.calls % batches == 0:
                clock.tick(lambda: (rows_sum_to_1(self.components_), self.transform(half)))
            return out

    jobs = None if request["threads"] == 1 else request["threads"]
    model = Timed(n_topics, max_iter=10**6, random_state=request["seed"], n_jobs=jobs, **settings)
    clock.start()
    model.fit(counts)


def topica(request: Request, counts: sp.csr_matrix, half: sp.csr_matrix | None, clock: Clock) -> None:
    """Fit a model of topica. It gives no topics before its fit ends, so a snapshot is a whole fit."""
    import topica as package

    documents = package.Corpus.from_documents(list(tokens(counts)))
    name, n_topics = request["model"], request["n_topics"]
    settings, extra, interval = {**request["settings"], "seed": request["seed"] + 1}, {}, 1
    random, more = np.random.default_rng(0), ()
    if name == "LDA":
        interval = request.get("interval", 5)
        extra = {"progress_interval": interval}
        if not request.get("snapshots"):
            extra["num_samples"] = 1  # otherwise iterations follow whose samples are averaged
        settings |= {"num_threads": request["threads"]}
        if "alpha_each" in settings:
            settings["alpha_sum"] = settings.pop("alpha_each") * n_topics
    elif name == "ETM":  # random word vectors, as in TopMost
        more = (random.normal(size=(counts.shape[1], 200)), [str(word) for word in range(counts.shape[1])])
    elif name == "FASTopic":  # vectors of documents: latent semantic analysis
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfTransformer

        filled = TfidfTransformer().fit_transform(counts[np.diff(counts.indptr) > 0])
        more = (TruncatedSVD(min(384, counts.shape[1] - 1), n_iter=2, random_state=0).fit_transform(filled),)
    model = getattr(package, name)(n_topics, **settings)
    last = 0

    def progress(iteration: int, total: int, _: Any) -> None:
        nonlocal last
        clock.tick(steps=iteration - last, enough=False)
        last = iteration

    steps = max(request["snapshots"]) if request.get("snapshots") else request["steps"]
    clock.start()
    model.fit(documents, *more, iters=steps, progress=progress, **extra)
    clock.write_fit(steps)
    if request.get("snapshots") and half is not None:
        clock.done = steps

        def state() -> tuple[Any, Any]:
            topics = in_columns(model.topic_word, list(model.vocabulary), counts.shape[1])
            if name == "FASTopic":  # has no theta of a half of a document, as it reads no words
                return topics, np.zeros((0, n_topics))
            return topics, filled_rows(model.transform(list(tokens(half))), half)

        clock.keep(state)


def filled_rows(theta: Any, half: sp.csr_matrix) -> Any:
    """Return theta of all documents, if a package leaves out those without words."""
    filled = np.diff(half.indptr) > 0
    if len(theta) == half.shape[0]:
        return theta
    whole = np.full((half.shape[0], theta.shape[1]), 1 / theta.shape[1])
    whole[filled] = theta
    return whole


PACKAGES = {
    "topicloom": ours,
    "TopMost": topmost,
    "tomotopy": tomotopy,
    "gensim": gensim,
    "scikit-learn": scikit_learn,
    "topica": topica,
}


def main() -> None:
    request, folder = json.loads(sys.argv[1]), Path(sys.argv[2])
    os.environ["TQDM_DISABLE"] = "1"
    source = Path(request["folder"])
    arrays = [np.load(source / f"{name}.npy", mmap_mode="r") for name in ("data", "indices", "indptr")]
    counts = sp.csr_matrix(tuple(arrays), shape=(len(arrays[2]) - 1, request["n_words"]), copy=False)
    half = sp.load_npz(source / "half.npz").tocsr() if request.get("snapshots") else None
    clock = Clock(request, folder)
    with suppress(Enough):
        PACKAGES[request["package"]](request, counts, half, clock)
    os._exit(0)  # without waiting for workers


if __name__ == "__main__":
    main()
