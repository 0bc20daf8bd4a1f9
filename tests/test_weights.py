"""The weight of the divergence has the name of what it weighs, and a weight without an effect gives a warning."""

from __future__ import annotations

import logging
import math
from functools import partial

import numpy as np
import pytest

from topicloom.cli.shell import on_command_line
from topicloom.datasets import synthetic_lda
from topicloom.models import BATM, ETM, GMNTM, GSM, LDA, MODELS, NVDM, WLDA, DirichletVAE, Loom, ProdLDA
from topicloom.models.autoencoders import VariationalTopicModel
from topicloom.models.neural import NeuralTopicModel
from topicloom.settings import describe_settings
from topicloom.training.monitors import CollapseWatch

CORPUS = synthetic_lda(n_docs=60, n_topics=3, n_words=30, doc_length=20).corpus
SMALL = {"n_topics": 3, "epochs": 1, "hidden_size": 8, "random_state": 0, "device": "cpu"}


def names_of(kind):
    return {setting.name for setting in describe_settings(kind)}


@pytest.mark.parametrize(
    "kind", [kind for kind in MODELS if issubclass(kind, NeuralTopicModel) and not kind.needs_vectors]
)
def test_only_variational_models_weigh_a_kl_divergence(kind):
    variational = issubclass(kind, VariationalTopicModel)
    assert {"kl_weight", "kl_warmup"} & names_of(kind) == ({"kl_weight", "kl_warmup"} if variational else set())


@pytest.mark.parametrize(("kind", "name", "default"), [(WLDA, "mmd_weight", 0.2), (BATM, "critic_weight", 0.1)])
def test_the_weight_of_a_discrepancy_is_in_the_plan(kind, name, default):
    assert kind(**SMALL).training_plan().kl_weight == default
    model = kind(**SMALL, **{name: 0.7}).fit(CORPUS)
    assert model.training_plan().kl_weight == 0.7
    assert model.history_[-1]["divergence_weight"] == 0.7


@pytest.mark.parametrize(("learn_shares", "factor"), [(True, 0.5), (False, 2)])
@pytest.mark.parametrize(("kind", "name"), [(WLDA, "mmd_weight"), (BATM, "critic_weight")])
def test_the_collapse_watch_knows_these_weights(kind, name, learn_shares, factor):
    row = {"epoch": 60, "active_topics": 2, "largest_share": 0.3, "frequent_mass": 0.3}
    row |= {"duplicate_topics": 0, "topic_diversity": 0.9}
    model = kind(5, learn_shares=learn_shares)
    watch = CollapseWatch.of(model.build_reader(CORPUS, _State()), CORPUS.counts.sum(axis=0), 5)
    (sentence,) = watch.advice(model, row)
    assert f"`{name}={factor * getattr(model, name)!r}`" in sentence
    model.set_params(**{name: 0.01, "learn_shares": True})
    assert f"try `{name}={getattr(kind(5), name)!r}`" in next(watch.advice(model, row))


@pytest.mark.parametrize(
    ("kind", "risen"), [(GSM, 9), (partial(DirichletVAE, estimator="weibull"), 9), (DirichletVAE, 3)]
)
def test_the_default_weight_rises_for_three_quarters_of_training(kind, risen):
    model = kind(**SMALL | {"epochs": 12, "kl_weight": 2.0}).fit(CORPUS)
    weights = [row["divergence_weight"] for row in model.history_]  # at the last batch of each epoch
    assert 0 < weights[0] < weights[1] < weights[risen - 1] < 2
    assert weights[risen:] == [2] * (12 - risen)


def test_a_stream_has_no_warm_up_by_default():
    model = GSM(**SMALL).partial_fit(CORPUS)
    assert model.history_[-1]["divergence_weight"] == model.kl_weight
    assert GSM(**SMALL, kl_warmup=2.0).partial_fit(CORPUS).history_[-1]["divergence_weight"] < 1


@pytest.mark.parametrize("length", [10, 400])
def test_the_warm_up_of_loom_ends_before_its_pretraining(length):
    model = Loom(**SMALL | {"epochs": 60, "pretrain_share": 28 / 60, "sample_share": 4 / 60}).fit(
        synthetic_lda(40, 3, 60, length).corpus
    )
    n_pretraining, n_counting, *_ = model.stage_epochs(model.word_statistics())
    weights = [row["divergence_weight"] for row in model.history_]
    assert weights.index(model.kl_weight) == math.ceil((n_pretraining + n_counting) / 4)
    assert weights.index(model.kl_weight) < n_pretraining
    assert set(weights[n_pretraining:]) == {1.0}  # the loss of the later stages is the bound


def test_loom_pretrains_with_half_of_the_weight_by_default():
    model = Loom(**SMALL | {"epochs": 32, "pretrain_share": 0.125, "sample_share": 0.0}).fit(CORPUS)
    words = model.word_statistics()
    assert model.stage_epochs(words)[:2] == Loom().stage_epochs(words)[:2] == (4, 28)
    weights = [row["divergence_weight"] for row in model.history_[:4]]  # at the last batch of each epoch
    assert 0.4 * model.kl_weight < max(weights) <= 0.5 * model.kl_weight


class _State:
    """What a reader is built for."""

    device, seed = "cpu", 0
    network = type("Network", (), {"fields": ()})


def warnings_of(model, caplog):
    caplog.clear()
    with caplog.at_level(logging.WARNING, "topicloom"):
        model.fit(CORPUS)
    return [message for message in caplog.messages if "less effect" in message]


@pytest.mark.parametrize("changed", [{"kl_weight": 0.5}, {"kl_warmup": 3.0}])
@pytest.mark.parametrize(
    "make",
    [
        GSM,
        NVDM,
        *(
            partial(DirichletVAE, estimator=estimator)
            for estimator in ("laplace", "implicit", "rsvi", "weibull", "icdf")
        ),
    ],
)
def test_a_weight_with_little_effect_gives_a_warning(make, changed, caplog):
    model = make(**SMALL, **changed, code_norm="fixed")
    (sentence,) = warnings_of(model, caplog)
    assert on_command_line(sentence, ["--set"]) == (
        "kl_weight and kl_warmup have less effect with --set code_norm=fixed, because the divergence from the "
        "prior changes less; try --set code_norm=mean"
    )
    advised = make(**SMALL, **changed, code_norm="mean").fit(CORPUS)
    assert not np.array_equal(advised.components_, model.components_)  # the advice changes something


def without_effect(model, caplog):
    caplog.clear()
    with caplog.at_level(logging.WARNING, "topicloom"):
        model.fit(CORPUS)
    return [message for message in caplog.messages if "no effect" in message]


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (DirichletVAE(**SMALL, augmentation=9), "`augmentation=9` has no effect without `estimator='rsvi'`"),
        (
            DirichletVAE(**SMALL, estimator="laplace", divergence="gammas"),
            "`divergence='gammas'` has no effect with `estimator='laplace'`",
        ),
        (ProdLDA(**SMALL, temperature=0.1), "`temperature=0.1` has no effect without a `sparsity`"),
        (ETM(**SMALL, whiten="full"), "`whiten='full'` has no effect without `word_vectors`"),
        (GSM(**SMALL, decoder_size=8), "`decoder_size=8` has no effect without `decoder='mlp'`"),
        (ETM(**SMALL, prior="standard", alpha=0.1), "`alpha=0.1` has no effect with `prior='standard'`"),
        (
            GSM(**SMALL, shares_prior=1.0, learn_shares=False),
            "`shares_prior=1.0` has no effect without `learn_shares`",
        ),
        (LDA(3, epochs=1, n_jobs=2), "`n_jobs=2` has no effect without `method='gibbs'`"),
        (LDA(3, method="gibbs", epochs=10, batch_size=9), "`batch_size=9` has no effect with `method='gibbs'`"),
    ],
)
def test_a_setting_without_effect_gives_a_warning(model, says, caplog):
    assert without_effect(model, caplog) == [says]


@pytest.mark.parametrize(
    "model",
    [
        DirichletVAE(**SMALL, estimator="rsvi", augmentation=9),
        DirichletVAE(**SMALL, sparsity=0.5, temperature=0.1),
        DirichletVAE.as_published(3, estimator="icdf", epochs=1, kl_warmup=0),  # it has the paper's `augmentation`
        GSM(**SMALL, decoder="mlp", decoder_size=8),
        GSM(**SMALL, shares_prior=1.0),
    ],
)
def test_a_setting_with_an_effect_gives_no_warning(model, caplog):
    assert without_effect(model, caplog) == []


def test_a_warm_up_longer_than_training_gives_a_warning(caplog):
    model = GSM(**SMALL | {"epochs": 4, "kl_weight": 2.0, "kl_warmup": 10.0})
    with caplog.at_level(logging.WARNING, "topicloom"):
        model.fit(CORPUS)
    (sentence,) = [message for message in caplog.messages if "warm-up" in message]
    assert sentence == (
        "the warm-up is longer than the training, so the weight of the divergence rises only to 0.8, not 2; try "
        "`kl_warmup=3`"
    )
    assert model.history_[-1]["divergence_weight"] <= 0.8
    caplog.clear()
    with caplog.at_level(logging.WARNING, "topicloom"):
        model.set_params(kl_warmup=3.0).fit(CORPUS)
    assert not [message for message in caplog.messages if "warm-up" in message]
    assert model.history_[-1]["divergence_weight"] == 2.0


@pytest.mark.parametrize(
    "make",
    [
        partial(GSM, code_norm="fixed"),
        partial(GSM, kl_weight=0.5),
        partial(WLDA, code_norm="fixed", mmd_weight=0.5),
        partial(GMNTM, code_norm="fixed", kl_weight=0.5, pretrain_epochs=1),
        partial(DirichletVAE, code_norm="fixed", kl_weight=0.5, sparsity=0.3),
    ],
)
def test_a_weight_with_an_effect_gives_none(make, caplog):
    assert warnings_of(make(**SMALL), caplog) == []
