"""What the processes of test_distributed.py do. They are forked where that is possible, which saves their imports."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import sys
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import topicloom as tl
from topicloom.distributed import Ranks, current, join, joined, stepping
from topicloom.errors import LostRankError
from topicloom.models.loom import model as loom_model
from topicloom.nn.layers import BatchNorm, FoldedNorm
from topicloom.nn.samplers import mmd
from topicloom.training import loop

MODELS = {
    "GSM": {"epochs": 10},
    "ETM": {"epochs": 2, "batch_size": 4, "patience": 1},  # in some batches, a rank has no document
    "WLDA": {"epochs": 2},
    "GMNTM": {"epochs": 4, "pretrain_epochs": 2},
    "BATM": {"epochs": 1},
    "ProdLDA": {"epochs": 1, "batch_norm": True},
    "NVDM": {"epochs": 4},
    "Loom": {"epochs": 16, "background_topics": 0.2},  # one topic, of which a common share is divided at the end
    "GSM with vectors": {"epochs": 6},
    "Loom with vectors": {"epochs": 16},
    "Loom from a subset": {"epochs": 40},
}
SMALL_SUBSET = {"_SUBSET": 100, "_SUBSET_OF_TOPIC": 1, "_MIN_SAMPLING_AFTER_SUBSET": 1}  # constants of Loom


def corpus(n_docs: int = 241, *, vectors: bool = False) -> tl.Corpus:
    """Documents of five topics in the order of their main topic, so that the parts of the ranks differ.

    Args:
        n_docs: the number of documents.
        vectors: whether they have vectors, which are noisy shares of the topics.
    """
    random = np.random.default_rng(0)
    beta = random.dirichlet(np.full(200, 0.05), 5)
    theta = random.dirichlet([0.4, 0.3, 0.2, 0.1, 0.1], n_docs)
    theta = theta[theta.argmax(1).argsort()]
    rows = [random.multinomial(random.integers(0, 60), row @ beta) for row in theta]
    noisy = theta + random.normal(scale=0.1, size=theta.shape) if vectors else None
    return tl.Corpus.from_counts(sp.csr_array(np.stack(rows)), vectors=noisy)


def same_as_one_process(folder: Path) -> None:
    """Batch statistics and gradients of the ranks together are those of one process with all documents."""
    x = torch.randn(11, 6, generator=torch.Generator().manual_seed(0)).requires_grad_()
    prior = torch.softmax(torch.randn(11, 6, generator=torch.Generator().manual_seed(1)), 1)
    weight = torch.randn(4, 6, generator=torch.Generator().manual_seed(2)).requires_grad_()
    first = torch.tensor([0, 1, 2, 6, 7, 8])  # the first halves of both ranks
    both = torch.tensor([0, 1, 2, 6, 7, 8, 3, 4, 5, 9, 10])

    def outcome(taken, own):
        """The loss of the rows `own`, whose sum over the ranks is that of all rows."""
        norm, folded = BatchNorm(6).train(), FoldedNorm(6, 4).train()
        normal = norm(x[own])
        halves = norm.of_halves(x[own]) if taken.is_shared else whole_halves(norm)
        scaled, bias = folded(x[own], weight)
        theta = torch.softmax(halves, 1)
        theta = taken.halves(theta) if taken.is_shared else theta[both]
        distance = mmd(taken.rows(prior[own]), theta, n_first=taken.n_first_half(len(x)))
        share = len(own) / len(x)
        loss = (normal.tanh() @ weight.mT).square().sum() / len(x) + (x[own] @ scaled.mT + bias).sin().sum() / len(x)
        return loss + share * distance, [norm.running_mean, norm.running_var, folded.running_cov]

    def whole_halves(norm):
        out = torch.empty_like(x)
        out[first] = norm.of_halves(torch.cat([x[first], x[first]]))[: len(first)]
        rest = both[len(first) :]
        out[rest] = norm.of_halves(torch.cat([x[rest], x[rest]]))[: len(rest)]
        return out

    ranks = current()
    with stepping([6, 5]) as taken:
        own = torch.arange(6) if ranks.is_first else torch.arange(6, 11)
        loss, running = outcome(taken, own)
        gradients = torch.autograd.grad(loss, [x, weight])
    shared = [ranks.sum(loss), *(ranks.sum(each) for each in gradients), *running]
    with joined(Ranks()), stepping([]) as alone:
        loss, running = outcome(alone, torch.arange(11))
        expected = [loss, *torch.autograd.grad(loss, [x, weight]), *running]
    for one, other in zip(shared, expected, strict=True):
        torch.testing.assert_close(one, other, atol=2e-5, rtol=1e-4)
    assert ranks.value_of_first({"rank": ranks.rank}) == {"rank": 0}
    assert ranks.rows(torch.full((ranks.rank + 1,), ranks.rank)).tolist() == [0, 1, 1]
    own = replace(ranks, same_noise=False)
    drawn = torch.rand(3, generator=own.shared(torch.Generator().manual_seed(ranks.rank)))
    assert torch.equal(ranks.of_first(drawn), drawn)


def refusals(folder: Path) -> None:
    """What several processes cannot do ends in one sentence, and in the same way on all of them."""
    texts, rank = corpus(), current().rank
    for model, documents, message in (
        (tl.LDA(5), texts, "trained by one process"),
        (tl.GSM(5), tl.Corpus.from_counts(texts.counts[:, : 150 + rank]), "different words"),
        (tl.GSM(5), texts[: 200 + rank], "different sizes"),
    ):
        with pytest.raises(tl.InputError, match=message):
            model.fit(documents)
    with pytest.raises(tl.InputError, match="one process"):
        tl.GSM(5).partial_fit(texts)


def own_noise(folder: Path) -> None:
    """Ranks that draw noise by themselves have the same topics, too."""
    with joined(replace(current(), same_noise=False)) as ranks:
        for name in ("GSM", "WLDA", "Loom"):
            model = getattr(tl, name)(5, random_state=0, epochs=3).fit(corpus())
            every = ranks.rows(torch.from_numpy(model.components_)[None])
            assert torch.equal(every[0], every[-1]), f"{name}: the ranks have different topics"
        with pytest.raises(tl.InputError, match="larger `batch_size`"):
            tl.GSM(5, batch_size=1).fit(corpus())


def fits(folder: Path) -> None:
    """Every kind of model, the same as by one process up to rounding where the noise is shared."""
    found = {}
    for name, settings in MODELS.items():
        texts = corpus(vectors=name.endswith("vectors"))
        with mock.patch.dict(vars(loom_model), SMALL_SUBSET if name.endswith("subset") else {}):
            model = getattr(tl, name.split()[0])(5, random_state=0, **settings).fit(texts, monitor=["document_npmi"])
        every = current().rows(torch.from_numpy(model.components_)[None])
        assert torch.equal(every[0], every[-1]), f"{name}: the ranks have different topics"
        found[name] = {"history": model.history_, "topics": model.components_.tolist()}
        assert model.word_counts_.sum() == texts.n_tokens
        assert len(model.transform(texts)) == texts.n_docs
    if current().is_first:
        (folder / f"fits-{current().size}.json").write_text(json.dumps(found))


def held_out(folder: Path) -> None:
    """The loss on held-out documents is that of one process, also where a rank has none of them."""
    texts, one = corpus(), corpus()[[200]]
    losses = []
    for ranks in (current(), Ranks()):
        with joined(ranks):
            model = tl.GSM(5, random_state=0, epochs=2).fit(texts, validation=one)
        losses.append([row["validation_loss"] for row in model.history_])
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


class Dies(tl.Callback):
    """Ends the second process without a word in the counting stage."""

    def on_epoch(self, row):
        if row["epoch"] == 11 and current().rank == 1:
            os._exit(9)


def checkpoints(folder: Path) -> None:
    """A fit is resumed after a process has died, from a checkpoint that all have."""
    saved = tl.Checkpoints(folder / "checkpoints", every="1 epochs")
    try:
        callbacks = [Dies()] if (folder / "dies").exists() else []
        model = tl.Loom(5, random_state=0, **MODELS["Loom"]).fit(corpus(), checkpoint=saved, callbacks=callbacks)
    except LostRankError as error:
        print(error)
        raise SystemExit(3) from None
    if current().is_first:
        epoch = saved.resumed_from.epoch if saved.resumed_from else 0
        np.savez(folder / "topics.npz", topics=model.components_, resumed=epoch)


def out_of_memory(folder: Path) -> None:
    """A rank that runs out of memory by itself says so, and has the topics of its last whole epoch."""

    class Full(tl.Callback):
        def on_epoch(self, row):
            if row["epoch"] == 4 and current().rank == 1:  # some spare topics have been removed, and some are left
                loop._take_step = no_memory

    def no_memory(*arguments):
        raise MemoryError

    model = tl.GSM(5, random_state=0, epochs=10)
    with pytest.raises(LostRankError if current().is_first else tl.OutOfMemoryError, match=r"epoch 5|can no longer"):
        model.fit(corpus(), callbacks=[Full()])
    assert len(model.components_) == 5
    assert [row["epoch"] for row in model.history_] == [1, 2, 3, 4]


def work(tasks: list[str], folder: Path, known: dict[str, str], output: Path) -> None:
    """Do tasks as the process that the environment `known` describes. What it prints is written to a file."""
    os.environ.update(known)
    sys.stdout = sys.stderr = output.open("w", buffering=1, encoding="utf-8")
    logging.getLogger("topicloom").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    functions = (same_as_one_process, refusals, own_noise, fits, held_out, checkpoints, out_of_memory)
    by_name = {function.__name__: function for function in functions}
    with join():
        for task in tasks:
            by_name[task](folder)


def started(tasks: list[str], folder: Path, environments: list[dict[str, str]]) -> list[tuple[int, str]]:
    """Start a process for each environment, and return the exit codes and outputs."""
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    outputs = [folder / f"output-{number}" for number in range(len(environments))]
    processes = [
        context.Process(target=work, args=(tasks, folder, known, output))
        for known, output in zip(environments, outputs, strict=True)
    ]
    for process in processes:
        process.start()
    try:
        for process in processes:
            process.join(300)
        return [
            (process.exitcode, output.read_text(encoding="utf-8"))
            for process, output in zip(processes, outputs, strict=True)
        ]
    finally:
        for process in processes:
            process.kill()
