"""The loop, on networks small enough to say what each step must do."""

from __future__ import annotations

import doctest
import json
import math
import os
from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from torch import Tensor, nn

import topicloom
from batches import CPU, dense_of
from topicloom.corpus import Corpus
from topicloom.datasets import synthetic_lda
from topicloom.display import progress_bar
from topicloom.errors import OutOfMemoryError, TrainingDivergedError
from topicloom.models import ETM, GMNTM, GSM, LDA, NVDM, Loom
from topicloom.nn.network import EpochOptions, Loss, Player, TopicNetwork
from topicloom.nn.posteriors import Posterior
from topicloom.nn.sparse import Batch
from topicloom.training.batches import BatchReader
from topicloom.training.callbacks import Callback, JsonLines, ProgressBar, RunState
from topicloom.training.loop import evaluate, train_stages
from topicloom.training.state import Adam, Stage, TrainingPlan, TrainingState


class Line(TopicNetwork):
    """One weight; a document's reconstruction is (weight - 1)^2 and its divergence 1. Notes the documents it sees."""

    def __init__(self, change: Callable[[Line, Tensor], Tensor] = lambda network, loss: loss) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.change = change
        self.seen: list[list[int]] = []
        self.evaluations = 0

    def loss(self, batch: Batch) -> Loss:
        if self.training:
            self.seen.append(batch.counts.indices.tolist())
        else:
            self.evaluations += 1
        loss = self.change(self, (self.weight - 1).pow(2).expand(batch.n_docs))
        return Loss(loss, torch.ones(batch.n_docs))

    def posterior(self, batch: Batch) -> Posterior:
        raise NotImplementedError

    def topic_word(self) -> Tensor:
        raise NotImplementedError

    def log_likelihood(self, theta: Tensor, batch: Batch) -> Tensor:
        raise NotImplementedError

    def prior_theta(self) -> Tensor:
        raise NotImplementedError


class Noisy(Line):
    """Its loss is noise from its generator."""

    def loss(self, batch: Batch) -> Loss:
        noise = torch.rand(batch.n_docs, generator=self.generator)
        return Loss(noise + self.weight, torch.zeros(batch.n_docs))


class Watcher(Callback):
    """Notes the learning rate after each step, the weight after each epoch, and the order of events."""

    def __init__(self, state: TrainingState) -> None:
        self.state = state
        self.rates: list[float] = []
        self.weights: list[float] = []
        self.events: list[str] = []

    def on_start(self, model: Any, n_epochs: int, n_batches: int) -> None:
        self.events.append(f"start {model} {n_epochs} {n_batches}")

    def on_batch(self) -> None:
        self.events.append("batch")
        self.rates.append(self.state.optimizers[0].learning_rate)

    def on_epoch(self, row: dict[str, float]) -> None:
        self.events.append(f"epoch {row['epoch']}")
        self.weights.append(self.state.network.weight.item())

    def on_end(self) -> None:
        self.events.append("end")


class StateWatcher(Watcher):
    def on_state(self, state: RunState) -> None:
        assert state.network is self.state.network
        self.events.append("state")


def documents(n_docs: int = 10, batch_size: int = 4) -> BatchReader:
    """Document i is one token of word i."""
    return BatchReader(sparse.csr_array(np.eye(n_docs, dtype=np.float32)), batch_size, CPU)


def run(
    network: TopicNetwork | None = None,
    reader: BatchReader | None = None,
    *,
    seed: int = 0,
    validation: BatchReader | None = None,
    **plan: object,
) -> tuple[TrainingState, Watcher]:
    settings = TrainingPlan(**{"epochs": 3, "learning_rate": 0.1, **plan})
    state = TrainingState.start(network or Line(), settings, seed, CPU)
    watcher = Watcher(state)
    stages = [Stage("training", settings)]
    train_stages(state, reader or documents(), stages, validation=validation, callbacks=[watcher], model="model")
    return state, watcher


# Batches.


def test_each_document_once_an_epoch_in_even_batches():
    state, _ = run()
    assert [len(batch) for batch in state.network.seen] == [4, 3, 3] * 3
    epochs = [list(chain(*state.network.seen[start : start + 3])) for start in (0, 3, 6)]
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    assert epochs[0] != epochs[1] != list(range(10))


def test_the_order_is_the_seeds():
    orders = [run(seed=seed)[0].network.seen for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]


def test_batches_hold_the_counts():
    counts = sparse.random_array((11, 7), density=0.4, format="csr", dtype=np.float32, rng=np.random.default_rng(0))
    batches = [dense_of(batch.counts) for batch in BatchReader(counts, 4, CPU)]
    np.testing.assert_array_equal(torch.cat(batches), counts.toarray())
    assert list(BatchReader(counts[:0], 4, CPU)) == []


def test_split_and_without_empty():
    counts = sparse.csr_array(np.diag([1.0, 0, 2, 3, 0, 4, 5]).astype(np.float32))
    whole = BatchReader(counts, 4, CPU).without_empty()
    assert whole.rows.tolist() == [0, 2, 3, 5, 6]
    for share, n_held in [(0.4, 2), (0.01, 1), (0.99, 4)]:
        kept, held = whole.split(share, torch.Generator().manual_seed(0))
        assert held.n_docs == n_held
        assert sorted([*kept.rows, *held.rows]) == [0, 2, 3, 5, 6]


# Schedules.


def test_one_cycle():
    rates = run(epochs=10, learning_rate=0.5)[1].rates  # 30 steps: up in 3, down in 27
    assert rates[0] == pytest.approx(0.04 * 0.5)
    assert rates[3] == pytest.approx(0.5)
    assert rates[:4] == sorted(rates[:4])
    assert rates[3:] == sorted(rates[3:], reverse=True)
    last = (1 + math.cos(math.pi * (29 / 30 - 0.1) / 0.9)) / 2
    assert rates[-1] == pytest.approx(0.5 * (1e-4 + (1 - 1e-4) * last))


def test_constant_rate():
    assert set(run(schedule="constant")[1].rates) == {0.1}


def test_kl_warmup_rises_step_by_step():
    history = run(epochs=4, kl_weight=2.0, kl_warmup=2.0)[0].history
    assert [row["divergence_weight"] for row in history] == pytest.approx(
        [2 * 2 / 6, 2 * 5 / 6, 2, 2]
    )  # at the last step
    means = [2 * (0 + 1 + 2) / 18, 2 * (3 + 4 + 5) / 18]  # over even steps; ours weigh batches of 4, 3, 3
    divergences = [row["loss"] - row["reconstruction"] for row in history]
    assert divergences[:2] == pytest.approx(means, abs=0.04)
    assert divergences[2:] == pytest.approx([2, 2])


def test_the_optimizer_learns():
    state, _ = run(epochs=40)
    assert state.network.weight.item() == pytest.approx(1, abs=0.05)
    assert not state.network.training
    assert (state.epoch, state.step, len(state.history)) == (40, 120, 40)


# Early stopping.


def scripted(losses: list[float]) -> Callable[[Line, Tensor], Tensor]:
    """Held-out losses as listed, one an epoch."""

    def change(network: Line, loss: Tensor) -> Tensor:
        return loss if network.training else torch.full_like(loss, losses[network.evaluations - 1])

    return change


def test_the_best_weights_come_back():
    network = Line(scripted([5, 3, 2, 4, 2.5, 1]))
    state, watcher = run(network, epochs=10, patience=2, validation=documents(2), schedule="constant")
    assert [row["validation_loss"] for row in state.history] == [6, 4, 3, 5, 3.5]  # and a divergence of 1
    assert network.weight.item() == watcher.weights[2]
    assert len(set(watcher.weights)) == 5


def test_patience_begins_after_the_warm_up():
    network = Line(scripted([1, 5, 4, 6, 7, 1]))  # the lowest loss is that of an epoch whose divergence weighs little
    state, watcher = run(network, epochs=10, patience=2, kl_warmup=2, validation=documents(2), schedule="constant")
    assert [row["validation_loss"] for row in state.history] == [2, 6, 5, 7, 8]
    assert network.weight.item() == watcher.weights[2]


def test_without_a_patience_nothing_stops():
    state, watcher = run(Line(scripted([1, 2, 3, 4])), epochs=4, validation=documents(2))
    assert len(state.history) == 4
    assert state.network.weight.item() == watcher.weights[3]


# What is not finite.


def test_large_raw_counts_are_not_blamed_on_the_learning_rate():
    counts = synthetic_lda(50, 3, 20, doc_length=20, random_state=0).corpus.counts.toarray() * 1e6
    model = NVDM.as_published(3, epochs=1, random_state=0)
    with pytest.raises(TrainingDivergedError, match=r"try `encoder_input='log1p'`$"):
        model.fit(counts)
    model.set_params(encoder_input="log1p").fit(counts)
    assert np.isfinite(model.components_).all()


def spoiled(at_step: int, factor: float) -> Callable[[Line, Tensor], Tensor]:
    return lambda network, loss: loss * factor if len(network.seen) == at_step else loss


def spoiled_from(step: int) -> Callable[[Line, Tensor], Tensor]:
    return lambda network, loss: loss * math.nan if len(network.seen) >= step else loss


def infinite_gradient(network: Line, loss: Tensor) -> Tensor:
    return loss + (network.weight * 0).abs().sqrt() if len(network.seen) == 8 else loss


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (spoiled(8, math.nan), "the loss"),
        (spoiled(8, math.inf), "the loss"),
        (infinite_gradient, "the gradient"),
        (spoiled_from(8), "the loss"),
    ],
    ids=["nan", "infinity", "gradient", "twice"],
)
@pytest.mark.parametrize("deferred", [False, True])  # as on a CPU and as on a GPU
def test_training_stops_at_the_first_value_that_is_not_finite(change, what, deferred, monkeypatch):
    monkeypatch.setattr("topicloom.training.loop.defers", lambda device: deferred)
    plan = TrainingPlan(epochs=5, learning_rate=0.1)
    state = TrainingState.start(Line(change), plan, 0, CPU)
    watcher = Watcher(state)
    with pytest.raises(TrainingDivergedError, match=f"epoch 3, batch 2: {what} is not finite") as caught:
        train_stages(state, documents(), [Stage("training", plan)], callbacks=[watcher])
    assert "\n" not in str(caught.value)
    assert state.network.weight.item() == watcher.weights[-1]
    assert (state.epoch, len(state.history)) == (2, 2)
    assert watcher.events[-2:] == ["batch", "end"]


def test_values_that_are_not_finite_are_in_no_snapshot(monkeypatch):
    """On a GPU, a step that is not finite changes nothing, and a snapshot before it is noticed says so."""
    taken: list[float] = []

    class Snapshots(Callback):
        def on_step(self, state: RunState) -> None:
            weight = state.network.weight.item()
            assert math.isfinite(weight)
            taken.append(weight)
            if len(taken) > 7:
                state.snapshot()

    monkeypatch.setattr("topicloom.training.loop.defers", lambda device: True)
    plan = TrainingPlan(epochs=5, learning_rate=0.1)
    state = TrainingState.start(Line(spoiled(7, math.nan)), plan, 0, CPU)
    with pytest.raises(TrainingDivergedError, match="epoch 3, batch 1"):
        train_stages(state, documents(), [Stage("training", plan)], callbacks=[Snapshots()])
    assert len(taken) == 8  # the seventh step is not noticed at once
    assert taken[5] == taken[6] == taken[7] == state.network.weight.item()


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory: you tried ..."),
        MemoryError(),
    ],
    ids=["device", "cpu", "python"],
)
def test_too_little_memory_is_one_sentence(error):
    def fail(network: Line, loss: Tensor) -> Tensor:
        if len(network.seen) == 8:
            raise error
        return loss

    plan = TrainingPlan(epochs=5, learning_rate=0.1)
    state = TrainingState.start(Line(fail), plan, 0, CPU)
    watcher = Watcher(state)
    where = "epoch 3, batch 2: cpu has too little memory for 3 documents at once; try `batch_size=2`"
    with pytest.raises(OutOfMemoryError, match=where):
        train_stages(state, documents(), [Stage("training", plan)], callbacks=[watcher], remedies=GSM(3).remedies)
    assert state.network.weight.item() == watcher.weights[-1]
    assert (state.epoch, state.step, state.batch) == (2, 6, 0)


def test_a_single_batch_is_read_only_once():
    reader, generator = documents(10, batch_size=4), torch.Generator().manual_seed(0)
    order = reader.draw_order(generator)
    (first,) = reader.with_batches_of(20).ordered(order)
    (again,) = reader.with_batches_of(10).ordered(reader.draw_order(generator))
    assert again is first
    assert first.rows.tolist() == list(range(10))  # whatever the order
    assert not list(reader.with_batches_of(20).ordered(order, skip=1))
    parts = [batch.rows.tolist() for batch in reader.ordered(order)]
    assert [row for part in parts for row in part] == order.tolist()
    assert [len(part) for part in parts] == [4, 3, 3]


def test_enlarged_batches_are_not_blamed_on_the_setting():
    def fail(network: Line, loss: Tensor) -> Tensor:
        raise MemoryError

    class Large(Line):
        def epoch_options(self) -> EpochOptions:
            return EpochOptions(min_batch_size=1_000)

    plan = TrainingPlan(epochs=1, learning_rate=0.1)
    state = TrainingState.start(Large(fail), plan, 0, CPU)
    with pytest.raises(OutOfMemoryError, match=r"keep fewer words \(`max_features`\)$"):
        train_stages(state, documents(), [Stage("training", plan)], remedies=GSM(3).remedies)


def test_other_errors_of_a_step_stay_what_they_are():
    def fail(network: Line, loss: Tensor) -> Tensor:
        raise RuntimeError("shapes cannot be multiplied")

    plan = TrainingPlan(epochs=1, learning_rate=0.1)
    with pytest.raises(RuntimeError, match=r"^shapes cannot be multiplied$"):
        train_stages(TrainingState.start(Line(fail), plan, 0, CPU), documents(), [Stage("training", plan)])


# Several players.


class Duel(Line):
    """Two weights, one a player: each loss is of both weights, so that it has a gradient of the other's too."""

    def __init__(self, every: int = 1, spoiled_at: int | None = None) -> None:
        super().__init__()
        self.rival = nn.Parameter(torch.zeros(1))
        self.every = every
        self.spoiled_at = spoiled_at
        self.moves: list[tuple[str, int]] = []  # who moved, at which batch
        self.rival_sizes: list[int] = []  # documents of the batches that the rival saw

    def players(self) -> list[Player]:
        return [
            Player([self.weight], self.loss),
            Player([self.rival], self.rival_loss, "rival", every=self.every, after=self.clip),
        ]

    def loss(self, batch: Batch) -> Loss:
        self.moves.append(("line", len(self.seen)))
        own = super().loss(batch)
        return Loss(own.reconstruction, own.divergence, {"both": 0 * batch.counts.totals + self.weight * self.rival})

    def rival_loss(self, batch: Batch) -> Loss:
        self.moves.append(("rival", len(self.seen) - 1))
        self.rival_sizes.append(batch.n_docs)
        # Of each document, its only word: means over other documents than the rival saw would show.
        words = batch.counts.indices.to(self.rival.dtype)
        loss = words + (self.rival - self.weight + 3).pow(2)
        if len(self.rival_sizes) == self.spoiled_at:
            loss = loss * math.nan
        return Loss(loss, torch.zeros(batch.n_docs), {"word": words})

    def clip(self) -> None:
        with torch.no_grad():
            self.rival.clamp_(min=-0.25)


def test_each_player_changes_its_own_weights_alone():
    for frozen, moved in (("rival", "weight"), ("weight", "rival")):
        network = Duel()
        network.players = lambda network=network, moved=moved: [
            player for player in Duel.players(network) if player.parameters[0] is getattr(network, moved)
        ]
        state, _ = run(network)
        assert getattr(network, frozen).item() == 0
        assert getattr(network, frozen).grad is None
        assert getattr(network, moved).item() != 0
        assert len(state.optimizers) == 1


def test_players_move_in_turn_and_as_often_as_they_say():
    network = Duel(every=2)
    state, _ = run(network, epochs=2)  # six steps
    assert network.moves == [
        *[("line", 0), ("rival", 0), ("line", 1), ("line", 2), ("rival", 2)],
        *[("line", 3), ("line", 4), ("rival", 4), ("line", 5)],
    ]
    assert [
        int(optimizer.state[weight]["step"])
        for optimizer, weight in zip(state.optimizers, (network.weight, network.rival), strict=True)
    ] == [6, 3]
    assert all(optimizer.learning_rate > 0 for optimizer in state.optimizers)


def test_after_is_called_after_each_move():
    network = Duel()
    run(network, epochs=5, schedule="constant")
    assert network.rival.item() == -0.25  # its loss would have it at -2 and below
    free = Duel()
    free.clip = lambda: None
    run(free, epochs=5, schedule="constant")
    assert free.rival.item() < -0.5


def test_terms_of_another_player_have_its_name_and_documents():
    network = Duel(every=3)
    state, _ = run(network, epochs=2, learning_rate=1e-9)
    for row, sizes, seen in zip(state.history, ([4], [4]), (network.seen[0], network.seen[3]), strict=True):
        assert network.rival_sizes[:1] == sizes
        assert row["rival_word"] == pytest.approx(np.mean(seen))
        assert row["rival_loss"] == pytest.approx(row["rival_reconstruction"] + row["rival_word"], rel=1e-6)
        assert row["rival_reconstruction"] == pytest.approx(np.mean(seen) + 9, rel=1e-5)
        assert row["loss"] == pytest.approx(row["reconstruction"] + row["divergence"] + row["both"], rel=1e-6)
        assert "rival_both" not in row


@pytest.mark.parametrize("deferred", [False, True])
def test_a_player_that_diverges_stops_training_and_restores_all(deferred, monkeypatch):
    monkeypatch.setattr("topicloom.training.loop.defers", lambda device: deferred)
    network = Duel(spoiled_at=5)  # the second step of the second epoch; the first player has moved by then
    plan = TrainingPlan(epochs=5, learning_rate=0.1, schedule="constant")
    state = TrainingState.start(network, plan, 0, CPU)
    with pytest.raises(TrainingDivergedError, match="epoch 2, batch 2: the loss is not finite"):
        train_stages(state, documents(), [Stage("training", plan)])
    whole, short = Duel(), TrainingPlan(1, 0.1, "constant")
    train_stages(TrainingState.start(whole, plan, 0, CPU), documents(), [Stage("training", short)])
    assert (network.weight.item(), network.rival.item()) == (whole.weight.item(), whole.rival.item())
    assert (state.epoch, len(state.history)) == (1, 1)


# Denormal numbers.


def flushed() -> bool:
    return (torch.tensor([1e-39]) * 1).item() == 0


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_denormals_are_flushed_in_training_and_only_there(before, fails):
    inside = []

    def change(network: Line, loss: Tensor) -> Tensor:
        inside.append(flushed())
        return loss * math.nan if fails else loss

    torch.set_flush_denormal(before)
    try:
        if fails:
            with pytest.raises(TrainingDivergedError):
                run(Line(change))
        else:
            run(Line(change))
        assert set(inside) == {True}
        assert flushed() == before
    finally:
        torch.set_flush_denormal(False)


# Callbacks and evaluation.


def test_callbacks_are_called_in_order():
    _, watcher = run(epochs=2)
    assert watcher.events == ["start model 2 3", *["batch"] * 3, "epoch 1", *["batch"] * 3, "epoch 2", "end"]


def test_a_stage_that_is_not_recorded_shows_its_states_only():
    plan = TrainingPlan(epochs=2, learning_rate=0.1)
    state = TrainingState.start(Line(), plan, 0, CPU)
    watcher = StateWatcher(state)
    stages = [Stage("pretraining", plan, recorded=False), Stage("training", plan)]
    train_stages(state, documents(), stages, callbacks=[watcher], model="model")
    epochs = [event for event in watcher.events if event != "batch"]
    assert epochs == ["start model 2 3", "state", "state", "epoch 1", "state", "epoch 2", "state", "end"]
    assert watcher.events.count("batch") == 6


@pytest.mark.parametrize("kind", [GSM, GMNTM, LDA, Loom])
def test_the_example_of_a_callback_runs(kind):
    examples = doctest.DocTestParser().get_examples(Callback.__doc__)
    example = next(each.source for each in examples if each.source.startswith("class"))
    names = {"topicloom": topicloom}
    exec(example, names)
    corpus = synthetic_lda(n_docs=60, n_words=20, random_state=0).corpus
    watcher = names["FirstTopic"]()
    kind(3, epochs=2, random_state=0, device="cpu").fit(corpus, callbacks=[watcher])
    assert len(watcher.best) == 5
    assert set(watcher.best) <= set(corpus.vocabulary)


def test_json_lines_are_the_history(tmp_path):
    model = GSM(2, epochs=3, device="cpu").fit(np.eye(6), callbacks=[JsonLines(tmp_path / "log.jsonl")])
    lines = (tmp_path / "log.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == model.history_


@pytest.mark.skipif(os.name == "nt", reason="Windows has no limit of a file's size")
def test_rows_are_written_whole_or_not_at_all(tmp_path):
    import resource

    log = JsonLines(tmp_path / "log.jsonl")
    log.on_epoch({"epoch": 1})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20, limits[1]))  # in the middle of the next row
        with pytest.raises(OSError, match=r"log\.jsonl"):
            log.on_epoch({"epoch": 2})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    log.on_epoch({"epoch": 3})
    assert log.path.read_text() == '{"epoch": 1}\n{"epoch": 3}\n'


def test_a_pipe_gets_no_progress(capfd):
    with pytest.raises(ValueError, match="an error"), progress_bar(True):
        raise ValueError("an error")
    bar = ProgressBar()
    bar.on_start(model=None, n_epochs=2, n_batches=1)
    bar.on_epoch({"epoch": 1, "loss": 5.25})
    bar.on_end()
    assert capfd.readouterr().err == ""


def test_the_progress_bar_keeps_the_last_loss():
    bar = ProgressBar()
    bar.on_start(None, 3, 1)
    for row in ({"epoch": 1, "loss": 2.5}, {"epoch": 2}):
        bar.on_epoch(row)
    (task,) = bar._bar.tasks
    bar.on_end()
    assert (task.completed, task.fields["loss"]) == (2, "loss 2.50")


def test_evaluation_leaves_the_generator_alone():
    state, _ = run(Noisy())
    before = state.network.generator.get_state()
    first, second = (
        [loss.total() for loss in evaluate(state.network, documents(), state.network.loss)] for _ in range(2)
    )
    torch.testing.assert_close(first, second, atol=0, rtol=0)
    assert torch.equal(state.network.generator.get_state(), before)


def test_watching_held_out_documents_does_not_change_training():
    plain, watched = run(Noisy()), run(Noisy(), validation=documents(3))
    assert plain[1].weights == watched[1].weights
    assert [row["loss"] for row in plain[0].history] == [row["loss"] for row in watched[0].history]


def test_a_corpus_on_disk_trains_the_same(tmp_path):
    corpus = synthetic_lda(n_docs=60, n_words=20).corpus
    corpus.save(tmp_path / "corpus")
    mapped = Corpus.load(tmp_path / "corpus", mmap=True)
    one, two = (GSM(3, epochs=2, random_state=0, device="cpu").fit(each) for each in (corpus, mapped))
    np.testing.assert_array_equal(one.components_, two.components_)
    np.testing.assert_array_equal(one.transform(corpus), two.transform(mapped))


def test_small_networks_train_on_one_thread_and_restore_it():
    seen = []

    class Watch(Callback):
        def on_batch(self):
            seen.append(torch.get_num_threads())

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        GSM(2, epochs=1, random_state=0).fit(np.ones((4, 3)), callbacks=[Watch()])
        assert (set(seen), torch.get_num_threads()) == ({1}, 2)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("fused", [True, False])
def test_adam_is_that_of_pytorch(fused):
    random = torch.Generator().manual_seed(0)
    mine = [torch.nn.Parameter(torch.randn(size, generator=random)) for size in (7, 5, 2)]
    theirs = [torch.nn.Parameter(weight.detach().clone()) for weight in mine]
    own = Adam(mine, lr=0.01, beta1=0.8, weight_decay=0.01, fused=fused)
    reference = torch.optim.Adam(theirs, lr=0.01, betas=(0.8, 0.999), weight_decay=0.01, fused=fused)
    for step in range(4):
        own.learning_rate = reference.param_groups[0]["lr"] = 0.01 / (step + 1)
        for weight, other in zip(mine[: 2 + step // 2], theirs, strict=False):  # the last has no gradient at first
            weight.grad = torch.randn(weight.shape, generator=random)
            other.grad = weight.grad.clone()
        if step == 2:  # as after a checkpoint
            own.take({number: dict(moments) for number, moments in own.moments().items()})
        own.step()
        reference.step()
        own.zero_grad()
        reference.zero_grad()
        assert all(torch.equal(a, b) for a, b in zip(mine, theirs, strict=True))
    assert mine[0].grad is None


@pytest.mark.parametrize(
    "context", [torch.no_grad, torch.inference_mode, lambda: torch.autocast("cpu", torch.bfloat16)]
)
def test_a_fit_is_the_same_in_any_context_of_pytorch(context) -> None:
    def fitted() -> GSM:
        return GSM(3, epochs=2, random_state=0).fit(corpus).partial_fit(corpus)

    corpus = synthetic_lda(n_docs=60, n_topics=3, random_state=0).corpus
    expected = fitted()
    with context():
        model = fitted()
    np.testing.assert_array_equal(model.components_, expected.components_)
    np.testing.assert_array_equal(model.transform(corpus), expected.transform(corpus))


@pytest.mark.parametrize("kind", [GSM, ETM, Loom, LDA])
def test_a_fitted_model_is_used_in_full_precision(kind, tmp_path) -> None:
    """Under the caller's autocast, products of matrices would have 8 bits of precision."""
    corpus = synthetic_lda(n_docs=60, n_topics=3, random_state=0).corpus
    model = kind(3, epochs=2, random_state=0).fit(corpus)
    model.save(tmp_path / "model")

    def used() -> list[Any]:
        loaded = topicloom.load(tmp_path / "model", device="cpu")
        edited = model.merge([0, 1], corpus).split(0, documents=corpus)
        path = model.interpolate(corpus[:1], corpus[1:2])
        return [
            model.transform(corpus),
            model.perplexity(corpus),
            model.perplexity(corpus, method="bound"),
            model.latent(corpus)[0],
            model.infer(corpus).theta,
            loaded.components_,
            edited.components_,
            edited.transform(corpus),
            path.theta,
            path.weights,
        ]

    expected = used()
    with torch.autocast("cpu", torch.bfloat16):
        found = used()
    for name, one, other in zip(range(len(found)), found, expected, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=str(name))
