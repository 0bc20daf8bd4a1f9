"""A fit is whole or not: neither other threads nor interruptions and errors get a mixture of two models."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.exceptions import NotFittedError

import topicloom as tl
from kinds import params
from topicloom.models import MODELS
from topicloom.models.neural import NeuralTopicModel
from topicloom.training.callbacks import Callback


def corpus(n_docs: int, n_topics: int, n_words: int, prefix: str) -> tl.Corpus:
    counts = tl.datasets.synthetic_lda(n_docs, n_topics, n_words, doc_length=20, random_state=0).corpus.counts
    words = [f"{prefix}{'abcdefghij'[n // 10]}{'abcdefghij'[n % 10]}" for n in range(n_words)]
    return tl.Corpus.from_counts(counts[:, :n_words], words[: counts.shape[1]])


FIRST, SECOND = corpus(80, 3, 30, "first"), corpus(90, 4, 40, "second")
BOTH = tl.Corpus.from_counts(
    sparse.hstack([FIRST.counts[:9], SECOND.counts[:9]]).tocsr(), [*FIRST.vocabulary, *SECOND.vocabulary]
)
SMALL = {
    "random_state": 0, "device": "cpu", "epochs": 4, "batch_size": 20, "pretrain_epochs": 1, "embedding_size": 8,
    "hidden_size": 16,
}  # fmt: skip


def make(kind: type[tl.TopicModel], n_topics: int = 3, **settings: Any) -> tl.TopicModel:
    known = kind().get_params()
    return kind(n_topics, **{name: value for name, value in SMALL.items() if name in known}, **settings)


THREE = pytest.mark.parametrize("kind", params([tl.GSM, tl.LDA, tl.Loom]))
COUNTING = [kind for kind in MODELS if not kind.needs_vectors]
NEURAL = pytest.mark.parametrize("kind", params(kind for kind in COUNTING if issubclass(kind, NeuralTopicModel)))
EVERY = pytest.mark.parametrize("kind", params(COUNTING))


def equal(one: Any, other: Any) -> bool:
    return type(one) is type(other) and np.array_equal(np.asarray(one), np.asarray(other))


def learned(model: tl.TopicModel) -> dict[str, Any]:
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


def saved_and_loaded(model: tl.TopicModel, folder: Any) -> tl.TopicModel:
    model.save(folder, overwrite=True)
    return tl.load(folder, device="cpu")


# Threads.

READS: dict[str, Callable[[Any], Any]] = {
    "theta": lambda model: model.transform(BOTH),
    "table": lambda model: model.transform(BOTH),  # a data frame
    "infer": lambda model: model.infer(BOTH).theta,
    "perplexity": lambda model: model.perplexity(BOTH),
    "bound": lambda model: model.perplexity(BOTH, method="bound"),
    "score": lambda model: model.score(BOTH),
    "latent": lambda model: model.latent(BOTH)[0],
    "interpolate": lambda model: model.interpolate(BOTH.subset([0]), BOTH.subset([1])).words,
    "encode": lambda model: model.encode(BOTH).toarray(),
    "topics": lambda model: model.topics(5),
    "names": lambda model: model.topic_names_,
    "fingerprint": lambda model: model.fingerprint,
    "merge": lambda model: model.merge([0, 1]).transform(BOTH),
    "origin": lambda model: model.rename({0: "a"}).base_.topics(3),
    "html": lambda model: model._repr_html_(),
}


@contextmanager
def refitted_at(model: tl.TopicModel, access: int, after: dict[str, Any]) -> Iterator[list[int]]:
    """Let a fit end in another thread just before an attribute of the model is read for the n-th time."""
    kind, left = type(model), [access]

    def read(self: Any, name: str) -> Any:
        if self is model:
            if left[0] == 0:
                object.__setattr__(model, "__dict__", after)
            left[0] -= 1
        return object.__getattribute__(self, name)

    kind.__getattribute__ = read  # type: ignore[method-assign]
    try:
        yield left
    finally:
        del kind.__getattribute__


@THREE
@pytest.mark.parametrize("name", READS)
def test_a_fit_may_end_at_any_moment_of_a_call(kind, name):
    read, models = READS[name], [copy.copy(model) for model in FITTED[kind]]
    for each in models if name == "table" else ():
        each.set_output(transform="pandas")
    expected = [read(model) for model in models]
    assert not equal(*expected)
    for access in range(1000):
        model = copy.copy(models[0])
        with refitted_at(model, access, dict(vars(models[1]))) as left:
            found = read(model)
        assert any(equal(found, each) for each in expected), access
        if left[0] >= 0:
            break
    assert 1 < access < 999


class _Fitted(dict[type[tl.TopicModel], list[tl.TopicModel]]):
    def __missing__(self, kind: type[tl.TopicModel]) -> list[tl.TopicModel]:
        self[kind] = [make(kind).fit(FIRST), make(kind, 4).fit(SECOND)]
        return self[kind]


FITTED = _Fitted()


@THREE
def test_eight_threads_get_the_old_or_the_new_answer(kind):
    old, new = (model.transform(BOTH) for model in FITTED[kind])
    model, done, found = make(kind).fit(FIRST), threading.Event(), []

    def ask() -> None:
        while not done.is_set():
            found.append(model.transform(BOTH))
        found.append(model.transform(BOTH))

    with ThreadPoolExecutor(8) as pool:
        asking = [pool.submit(ask) for _ in range(8)]
        try:
            model.set_params(n_topics=4).fit(SECOND)
        finally:
            done.set()
        for each in asking:
            each.result()
    kinds = [equal(theta, old) + 2 * equal(theta, new) for theta in found]
    assert set(kinds) == {1, 2}
    assert equal(model.transform(BOTH), new)


@EVERY
def test_a_fit_uses_the_settings_of_its_start(kind):
    model, seen = make(kind), []

    class Setter(Callback):
        def on_start(self, learner, n_epochs, n_batches):
            self.learner = learner
            model.set_params(n_topics=5, seed_words={0: ["no such word"]}).set_output(transform="pandas")

        def on_epoch(self, row):
            seen.append((hasattr(model, "components_"), self.learner.n_topics, self.learner.vocabulary_))

    model.fit(FIRST, callbacks=[Setter()])
    assert {(fitted, n_topics) for fitted, n_topics, _ in seen} == {(False, 3)}
    assert seen[-1][2] is model.vocabulary_
    assert model.components_.shape == (3, FIRST.n_words)
    assert (model.n_topics, model.settings_["n_topics"], model.settings_["seed_words"]) == (5, 3, None)
    assert list(model.transform(BOTH).columns) == [f"{kind.__name__.lower()}{n}" for n in range(3)]
    assert equal(model.components_, make(kind).fit(FIRST).components_)


def test_callbacks_see_the_topics_that_are_learned():
    model, seen = make(tl.LDA).fit(SECOND), []
    before = model.topics()

    class Watcher(Callback):
        def on_start(self, learner, n_epochs, n_batches):
            self.learner = learner

        def on_epoch(self, row):
            seen.append((self.learner.topics(), model.topics()))

    model.fit(FIRST, callbacks=[Watcher()])
    assert [old for _, old in seen] == [before] * 4
    assert seen[-1][0] == model.topics() != before


@THREE
def test_of_two_fits_at_once_the_last_to_end_wins(kind):
    model = make(kind)

    class Other(Callback):
        def on_epoch(self, row):
            if row["epoch"] == 2:
                model.set_params(n_topics=4).fit(SECOND)
                assert equal(model.transform(BOTH), FITTED[kind][1].transform(BOTH))

    model.fit(FIRST, callbacks=[Other()])
    assert equal(model.transform(BOTH), FITTED[kind][0].transform(BOTH))
    assert model.vocabulary_ == FIRST.vocabulary
    assert len(model.history_) == 4


# Errors and interruptions.


class Stop(Callback):
    """Stops in the middle of an epoch, if the model has batches, or at its end."""

    def __init__(self, epoch: int, error: type[BaseException] = KeyboardInterrupt) -> None:
        self.epochs, self.stop, self.error = 0, epoch, error

    def on_batch(self) -> None:
        if self.epochs == self.stop - 1:
            raise self.error

    def on_epoch(self, row: dict[str, Any]) -> None:
        self.epochs += 1


@NEURAL
def test_a_stop_within_an_epoch_leaves_the_last_whole_one(kind, interrupted_after, caplog, tmp_path):
    model, whole = make(kind), make(kind)
    with pytest.raises(KeyboardInterrupt) as caught:
        model.fit(FIRST, callbacks=[Stop(3)])
    with pytest.raises(KeyboardInterrupt):
        whole.fit(FIRST, callbacks=[interrupted_after(2)])
    assert caught.value.__notes__ == ["The model has the state after epoch 2, and `transform` warns of that."]
    assert equal(model.components_, whole.components_)
    assert (len(model.history_), model.stopped_after_) == (2, 2)
    theta = whole.transform(FIRST)
    for marked in (model, saved_and_loaded(model, tmp_path / "model"), model.rename({0: "a"})):
        caplog.clear()
        assert equal(marked.transform(FIRST), theta)
        assert caplog.messages == ["the training of this model was stopped after epoch 2; fit it again to finish it"]
    caplog.clear()
    model.fit(FIRST).transform(FIRST)
    assert not hasattr(model, "stopped_after_")
    assert not any("was stopped" in message for message in caplog.messages)


@EVERY
def test_whatever_stops_a_fit_the_earlier_model_stays(kind):
    model = make(kind).fit(SECOND)
    before, theta = learned(model), model.transform(SECOND)

    class Fails(Callback):
        def __init__(self, error):
            self.error = error

        def on_state(self, state):
            if len(model.history_) == 4:
                raise self.error

    for error in (KeyboardInterrupt, MemoryError, ZeroDivisionError):
        with pytest.raises(error) as caught:
            model.set_params(n_topics=4).fit(FIRST, callbacks=[Fails(error)])
        assert caught.value.__notes__ == ["The model is as it was before this fit."]
        assert learned(model) == before
        assert equal(model.transform(SECOND), theta)


def test_an_earlier_model_survives_a_fit_that_diverges():
    model = make(tl.GSM).fit(FIRST)
    theta = model.transform(FIRST)
    with pytest.raises(tl.TrainingDivergedError, match=r"; the model is as it was before this fit$") as found:
        model.set_params(learning_rate=1e30).fit(FIRST)
    assert f"try `learning_rate={tl.GSM().learning_rate:g}`" in str(found.value)
    assert equal(model.transform(FIRST), theta)
    assert not hasattr(model, "stopped_after_")


def test_a_first_fit_that_diverges_says_what_is_left(monkeypatch):
    left = 13  # of four steps an epoch, the first of which learns clusters

    class Spoils(Callback):
        def on_step(self, state):
            nonlocal left
            left -= 1
            if not left:
                next(state.network.parameters()).data.fill_(torch.nan)

    model = make(tl.GSM)
    said = "the model has the state after epoch 2, and `transform` warns of that$"
    with pytest.raises(tl.TrainingDivergedError, match=said) as caught:
        model.fit(FIRST, callbacks=[Spoils()])
    assert "\n" not in str(caught.value)
    assert model.stopped_after_ == 2
    assert np.isfinite(model.transform(FIRST)).all()


def test_lda_stopped_in_a_pass_has_the_last_whole_one(interrupted_after, monkeypatch):
    model, whole, measured = make(tl.LDA), make(tl.LDA), tl.LDA._measured
    with pytest.raises(KeyboardInterrupt):
        whole.fit(FIRST, callbacks=[interrupted_after(2)])

    def measure(self: Any, *given: Any) -> Any:
        if len(self.history_) == 2:
            raise KeyboardInterrupt
        return measured(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(tl.LDA, "_measured", measure)
        with pytest.raises(KeyboardInterrupt):
            model.fit(FIRST)
    assert equal(model.components_, whole.components_)
    assert (len(model.history_), model.stopped_after_) == (2, 2)


@pytest.mark.skipif(find_spec("tomotopy") is None, reason="needs tomotopy, of the extra eval")
def test_a_gibbs_sampler_that_is_stopped_has_its_topics(interrupted_after):
    model = make(tl.LDA, method="gibbs").set_params(epochs=50)
    with pytest.raises(KeyboardInterrupt):
        model.fit(FIRST, callbacks=[interrupted_after(20)])
    assert model.stopped_after_ == 20
    assert equal(model.components_, make(tl.LDA, method="gibbs").set_params(epochs=20).fit(FIRST).components_)


def test_a_fit_stopped_after_its_last_epoch_is_complete(interrupted_after):
    model = make(tl.GSM)
    with pytest.raises(KeyboardInterrupt) as caught:
        model.fit(FIRST, callbacks=[interrupted_after(4)])
    assert caught.value.__notes__ == ["The model has the state after epoch 4."]
    assert not hasattr(model, "stopped_after_")


# Learning in parts.


@EVERY
@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_a_failed_partial_fit_leaves_the_model_as_it_was(kind, error, monkeypatch):
    model, twin = (make(kind).partial_fit(FIRST) for _ in range(2))
    before, theta, seen = learned(model), model.transform(FIRST), []

    def fail(*given: Any) -> None:  # the weights have changed by then
        seen.append(model.transform(FIRST))
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(kind, "adopt_network", fail)
        with pytest.raises(error):
            model.partial_fit(FIRST.subset(range(40)))
    assert equal(seen[0], theta)
    assert learned(model) == before
    for each in (model, twin):
        each.partial_fit(FIRST)
    assert equal(model.components_, twin.components_)
    assert equal(model.word_counts_, 2 * FIRST.counts.sum(axis=0))


def test_a_failed_first_partial_fit_leaves_nothing(monkeypatch):
    model = make(tl.GSM)
    monkeypatch.setattr(tl.GSM, "adopt_network", lambda *given: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.partial_fit(FIRST)
    with pytest.raises(NotFittedError):
        model.transform(FIRST)


def test_partial_fits_at_once_lose_no_documents_unsaid(monkeypatch):
    model, adopt, others = make(tl.GSM).partial_fit(FIRST), tl.GSM.adopt_network, [True]

    def adopt_late(self: Any, network: Any) -> None:
        if others.pop() if others else False:
            model.partial_fit(FIRST)
        adopt(self, network)

    monkeypatch.setattr(tl.GSM, "adopt_network", adopt_late)
    with pytest.raises(tl.InputError, match="another thread has trained this model meanwhile"):
        model.partial_fit(FIRST)
    assert equal(model.word_counts_, 2 * FIRST.counts.sum(axis=0))


def test_edited_models_outlive_the_training_of_their_origin(tmp_path):
    model = make(tl.GSM).fit(FIRST)
    edited = model.merge([0, 1])
    before = edited.transform(FIRST), edited.base_.transform(FIRST)
    model.partial_fit(FIRST)
    model.set_params(n_topics=4).fit(SECOND)
    assert equal(edited.transform(FIRST), before[0])
    assert equal(edited.base_.transform(FIRST), before[1])
    loaded = saved_and_loaded(edited, tmp_path / "edited")
    assert equal(loaded.transform(FIRST), before[0])
    assert loaded.base_.n_topics == 3


# The defaults of PyTorch belong to the user.


def use_all(kind: type[tl.TopicModel], folder: Any) -> list[Any]:
    model = make(kind).fit(FIRST)
    edited = model.merge([0, 1], FIRST).split(0, 2, FIRST)
    loaded = [saved_and_loaded(each, folder) for each in (model, edited)]
    found = [model.perplexity(BOTH), model.latent(BOTH)[0], model.fingerprint]
    found += [each.transform(BOTH) for each in (model, edited, *loaded)]
    return [
        *found,
        *map(float, tl.evaluate(model, FIRST, measures=["perplexity_completion", "topic_diversity"]).values()),
    ]


@THREE
def test_the_default_device_of_torch_does_not_matter(kind, tmp_path):
    expected = use_all(kind, tmp_path / "model")
    torch.set_default_device("meta")
    try:
        found = use_all(kind, tmp_path / "model")
        assert torch.get_default_device().type == "meta"
    finally:
        torch.set_default_device(None)
    assert all(equal(*pair) for pair in zip(found, expected, strict=True))


@EVERY
def test_every_model_learns_whatever_the_default_device_is(kind):
    expected = make(kind).partial_fit(FIRST)
    with torch.device("meta"):
        found = make(kind).partial_fit(FIRST)
    assert equal(found.components_, expected.components_)
