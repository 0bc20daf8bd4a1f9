"""The configurations of the papers: each has the settings of its paper, and can be fitted, saved and loaded."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import digamma, gammaln
from sklearn.exceptions import NotFittedError

import topicloom as tl
from command_line import MONEY, PETS, call, refused
from topicloom.datasets import synthetic_lda
from topicloom.errors import InputError, SettingError
from topicloom.models import (
    BATM,
    ECRTM,
    ETM,
    GMNTM,
    GSM,
    LDA,
    MODELS,
    NVDM,
    NVLDA,
    WLDA,
    DirichletVAE,
    GaussianBATM,
    Loom,
    ProdLDA,
)
from topicloom.models.base import published_settings
from topicloom.models.neural import PLAIN_VARIATIONAL
from topicloom.nn.decoders import EmbeddedTopics, FreeTopics, MixtureDecoder, ProductDecoder
from topicloom.nn.dirichlet_posteriors import InverseDirichlet
from topicloom.nn.encoders import BagEncoder, DirichletHead, GaussianHead
from topicloom.nn.layers import CodeNorm
from topicloom.nn.posteriors import MixturePrior
from topicloom.nn.sparse import Batch, SparseCounts
from topicloom.training.monitors import CollapseSign

CORPUS = synthetic_lda(n_docs=150, n_topics=4, n_words=80, doc_length=40).corpus
PUBLISHED = [kind for kind in MODELS if kind not in (LDA, Loom) and not kind.needs_vectors]
# What a configuration does not have: the word vectors of the documents' words.
FURTHER: dict[type, dict[str, Any]] = {
    GaussianBATM: {"word_vectors": tl.WordVectors(CORPUS.vocabulary, np.random.default_rng(0).normal(size=(80, 100)))}
}
# What none of the papers has.
ABSENT = {
    "spare_topics": 0,
    "min_diversity": 0,
    "input_dropout": 0,
    "schedule": "constant",
    "topic_gain": 1,
    "topic_scale": None,
}
PAPERS: dict[type, dict[str, Any]] = {
    GSM: {"prior": "standard", "latent_size": 50, "hidden_size": 256, "activation": "relu", "code_norm": "none"},
    NVDM: {"background": "learned", "hidden_size": 500, "learning_rate": 5e-5, "batch_size": 64, "code_norm": "none"},
    ETM: {
        "prior": "standard",
        "whiten": "none",
        "encoder_input": "l1",
        "hidden_size": 800,
        "activation": "relu",
        "dropout": 0,
        "learning_rate": 5e-3,
        "weight_decay": 1.2e-6,
        "batch_size": 1000,
        "background": False,
    },
    ECRTM: {
        "alpha": 1,
        "code_norm": "shift",
        "hidden_size": 200,
        "activation": "softplus",
        "embedding_size": 200,
        "clustering_weight": 100,
        "clustering_sharpness": 20,
        "temperature": 0.2,
        "encoder_input": "raw",
        "learning_rate": 2e-3,
        "batch_size": 200,
        "epochs": 200,
    },
    WLDA: {
        "decoder": "product",
        "background": "learned",
        "hidden_size": 100,
        "activation": "softplus",
        "noise": 0.2,
        "alpha": 0.1,
        "learning_rate": 2e-3,
        "beta1": 0.99,
    },
    GMNTM: {
        "balance": 0,
        "component_separation": 0,
        "component_variances": True,
        "spread": None,
        "learn_shares": True,
        "code_norm": "none",
    },
    DirichletVAE: {
        "estimator": "rsvi",
        "augmentation": 10,
        "decoder": "product",
        "batch_norm": True,
        "alpha": 0.01,
        "code_norm": "shift",
        "kl_warmup": 100,
        "patience": 30,
        "learning_rate": 1e-3,
        "batch_size": 200,
    },
    ProdLDA: {
        "estimator": "laplace",
        "decoder": "product",
        "batch_norm": True,
        "alpha": 1,
        "code_norm": "shift",
        "hidden_size": 100,
        "activation": "softplus",
        "encoder_input": "raw",
        "dropout": 0.2,
        "learning_rate": 2e-3,
        "beta1": 0.99,
        "batch_size": 200,
        "epochs": 80,
    },
    NVLDA: {
        "estimator": "laplace",
        "decoder": "mixture",
        "alpha": 1,
        "code_norm": "shift",
        "hidden_size": 100,
        "dropout": 0.25,
        "learning_rate": 5e-3,
        "beta1": 0.99,
        "batch_size": 200,
        "epochs": 300,
    },
    BATM: {
        "reconstruction_weight": 0,
        "encoder_input": "tfidf",
        "alpha": 0.02,
        "learning_rate": 1e-4,
        "beta1": 0.5,
        "critic_steps": 5,
        "code_norm": "none",
    },
}
PAPERS[GaussianBATM] = PAPERS[BATM] | {"fixed_word_vectors": True, "whiten": "none"}


def test_every_model_with_a_paper_is_in_the_table():
    assert set(PAPERS) == set(PUBLISHED)


@pytest.mark.parametrize("kind", PUBLISHED)
def test_a_configuration_has_the_settings_of_its_paper(kind):
    settings = kind.as_published().get_params()
    assert settings["n_topics"] == 50
    for name, value in (ABSENT | PAPERS[kind]).items():
        assert settings[name] == value, name
    assert settings["learn_shares"] == (kind is GMNTM)


@pytest.mark.parametrize("kind", PUBLISHED)
def test_only_the_listed_settings_differ_from_the_defaults(kind):
    default, published = kind(50).get_params(), kind.as_published().get_params()
    assert {name for name, value in published.items() if value != default[name]} <= set(kind.published)
    assert {name: published[name] for name in kind.published} == kind.published


@pytest.mark.parametrize("kind", PUBLISHED)
def test_a_configuration_is_fitted_saved_and_loaded(kind, tmp_path):
    further = FURTHER.get(kind, {})
    model = kind.as_published(4, epochs=4, batch_size=50, random_state=0, device="cpu", **further).fit(CORPUS)
    assert len(model.history_) == 4
    for row in model.history_:
        assert all(np.isfinite(np.hstack(list(row.values()))))
    assert np.isfinite(model.components_).all()
    theta = model.transform(CORPUS)
    assert theta.sum(1) == pytest.approx(1, abs=1e-5)
    model.save(tmp_path / "model")
    loaded = tl.load(tmp_path / "model", device="cpu")
    assert loaded.get_params() == model.get_params() | dict.fromkeys(further)
    assert np.array_equal(loaded.components_, model.components_)
    assert loaded.transform(CORPUS) == pytest.approx(theta, abs=1e-6)


def test_overrides_count_more_than_the_paper():
    model = ETM.as_published(7, learning_rate=0.1, dropout=0.5)
    assert (model.n_topics, model.learning_rate, model.dropout, model.hidden_size) == (7, 0.1, 0.5, 800)
    with pytest.raises(SettingError, match="ETM has no setting 'size'"):
        ETM.as_published(size=3)


@pytest.mark.parametrize(("kind", "recipe"), [(GMNTM, "published"), (GMNTM, "zll17"), (DirichletVAE, "published")])
def test_a_width_replaces_the_widths_of_a_recipe(kind, recipe):
    assert kind.as_published(recipe=recipe).hidden_sizes is not None
    for width in (64, 128):  # 128 is the default
        model = kind.as_published(4, recipe=recipe, hidden_size=width, epochs=1, random_state=0)
        assert (model.hidden_size, model.hidden_sizes) == (width, None)
    assert kind.as_published(recipe=recipe, hidden_sizes=[9]).hidden_sizes == [9]


@pytest.mark.parametrize(
    ("kind", "settings", "where"),
    [
        (ETM, {"alpha": 0.3}, "with `prior='standard'`"),
        (ETM, {"topic_scale": 0.5}, "with `start_weights='linear'`"),
        (ETM, {"whiten": "length"}, "without `word_vectors`"),
        (BATM, {"criterion": "bernoulli"}, "with `reconstruction_weight=0`"),
        (BATM, {"target": "tfidf"}, "with `reconstruction_weight=0`"),
        (GSM, {"validation_fraction": 0.2}, "without `patience` and without `schedule='anneal'`"),
        (GSM, {"recipe": "gsb", "spare_topics": 1.0}, "without `construction='softmax'`"),
        (ProdLDA, {"recipe": "zeroshot", "encoder_input": "l1"}, "with `encoder_reads='vectors'`"),
        (WLDA, {"alpha": 0.1, "prior": "gaussian", "noise": 0}, "without `prior='dirichlet'` and without `noise`"),
        (GMNTM, {"hidden_size": 8, "hidden_sizes": [9]}, "with `hidden_sizes`"),
    ],
)
def test_what_a_recipe_does_not_use_is_refused(kind, settings, where):
    with pytest.raises(SettingError, match=re.escape(f"has no effect {where}; leave it out, or change that, too")):
        kind.as_published(4, **settings)


def test_a_configuration_can_be_changed_without_changing_the_class():
    settings = published_settings(GSM)
    settings["hidden_size"] = 3
    assert GSM.published["hidden_size"] == 256


def test_a_subclass_has_the_configuration_of_its_base():
    @dataclasses.dataclass(eq=False, repr=False, kw_only=True)
    class Own(GSM):
        pass

    assert Own.as_published().hidden_size == 256


@pytest.mark.parametrize("kind", [Loom, LDA])
def test_a_model_without_a_paper_is_refused(kind):
    with pytest.raises(SettingError, match=f"{kind.__name__} has no published configuration"):
        kind.as_published()
    assert kind.published == {}


@pytest.mark.parametrize("recipe", ["gsb", "rsb"])
def test_more_epochs_are_no_advice_against_unused_sticks(recipe):
    for kind in ("unused topics", "duplicate topics"):
        sign = CollapseSign(kind, epoch=5, fewer_topics=10)
        assert "epochs" not in GSM.as_published(recipe=recipe).helpful_settings(sign)
        assert "epochs" in GSM.as_published().helpful_settings(sign)


# CombinedTM and ZeroShotTM.

VECTORS = np.random.default_rng(0).normal(size=(150, 12)).astype(np.float32)
# The arguments that CombinedTM and ZeroShotTM have by default in contextualized-topic-models 2.6.1.
AUTHORS = {
    "encoder_input": "raw",
    "hidden_size": 100,
    "activation": "softplus",
    "dropout": 0.2,
    "batch_size": 64,
    "learning_rate": 2e-3,
    "beta1": 0.99,
    "epochs": 100,
    "decoder": "product",
    "batch_norm": True,
    "batch_norm_eps": 1e-5,
    "alpha": 1,
    "estimator": "laplace",
    "neighbour_tokens": 0,
}


@pytest.mark.parametrize(("recipe", "reads"), [("combined", "both"), ("zeroshot", "vectors")])
def test_contextualized_recipes_have_the_settings_of_the_authors(recipe, reads):
    settings = ProdLDA.as_published(10, recipe=recipe).get_params()
    assert settings["n_topics"] == 10
    for name, value in (ABSENT | AUTHORS | {"encoder_reads": reads}).items():
        assert settings[name] == value, name
    assert ProdLDA.as_published(recipe="published").get_params() == ProdLDA.as_published().get_params()


@pytest.mark.parametrize("recipe", ["combined", "zeroshot"])
def test_contextualized_recipes_need_vectors(recipe, tmp_path):
    model = ProdLDA.as_published(4, recipe=recipe, epochs=2, random_state=0, device="cpu")
    with pytest.raises(InputError, match=r"reads the field 'vectors' .* do not have; .*`encoder` or `vectors`"):
        model.fit(CORPUS)
    corpus = CORPUS.with_vectors(VECTORS)
    theta = model.fit(corpus).transform(corpus)
    without_words = tl.Corpus.from_counts(CORPUS.counts * 0, vocabulary=CORPUS.vocabulary, vectors=VECTORS)
    reads_words = not np.array_equal(model.transform(without_words), theta)
    assert reads_words == (recipe == "combined")
    model.save(tmp_path / "model")
    assert np.array_equal(tl.load(tmp_path / "model", device="cpu").transform(corpus), theta)


@pytest.mark.parametrize(
    ("kind", "has"), [(ProdLDA, "'published', 'combined', 'zeroshot'"), (GSM, "'published', 'gsb', 'rsb'")]
)
def test_an_unknown_recipe_is_one_sentence(kind, has):
    with pytest.raises(SettingError, match=f"{kind.__name__} has no recipe 'other'; it has {has}$"):
        kind.as_published(recipe="other")
    with pytest.raises(SettingError, match="LDA has no recipe 'combined'; use its defaults"):
        LDA.as_published(recipe="combined")


def test_completion_is_refused_where_vectors_are_needed():
    corpus = CORPUS.with_vectors(VECTORS)
    model = ProdLDA.as_published(4, recipe="zeroshot", epochs=2, random_state=0, device="cpu")
    with pytest.raises(NotFittedError):
        model.log_likelihood(corpus)
    model.fit(corpus)
    for each in (model, model.merge([0, 1])):
        with pytest.raises(SettingError, match="the vectors of documents, which are made from whole texts"):
            each.perplexity(corpus)
    assert model.perplexity(corpus, "bound") > 1
    found = tl.evaluate(model, corpus)
    assert "perplexity_completion" not in found
    assert "perplexity_bound" in found
    compared = tl.compare(corpus, {"vectors": model}, n_topics=4, seeds=1)
    assert not compared.failed
    with pytest.raises(InputError, match="ProdLDA with these settings has no log_perplexity; give another objective"):
        tl.tune(corpus, model, 4, trials=1, space={"hidden_size": [8]})
    for measures in compared.rows[0]["measures"].values():
        assert np.isfinite(measures["document_npmi"])
        assert "perplexity_completion" not in measures


# The parts that the papers have.


def network(kind: Any, **settings: Any) -> Any:
    settings = FURTHER.get(kind, {}) | settings
    return kind.as_published(4, epochs=1, random_state=0, device="cpu", **settings).fit(CORPUS).network_


def test_nothing_of_a_default_remains_in_the_networks():
    kinds = set()
    for kind in PUBLISHED:
        for part in network(kind).modules():
            kinds.add(type(part))
            if isinstance(part, FreeTopics | EmbeddedTopics):
                assert part.gain == 1
            if isinstance(part, GaussianHead):
                assert part.start == 0
                assert not part.prior_log_var.any()
            if isinstance(part, DirichletHead):
                assert part.plain
            if isinstance(part, CodeNorm):
                assert part.scale is None
                assert part.shift is not None
                assert not part.bounded
            if isinstance(part, BagEncoder):
                assert part.input_dropout == 0
    assert kinds >= {FreeTopics, EmbeddedTopics, GaussianHead, DirichletHead, CodeNorm, BagEncoder}


def test_a_learned_background_learns_the_frequencies_of_the_words():
    frequency = np.asarray(CORPUS.counts.sum(0)).ravel()
    models = (
        NVDM.as_published(4, epochs=15, learning_rate=0.02, random_state=0, device="cpu"),
        WLDA.as_published(4, epochs=15, learning_rate=0.02, random_state=0, device="cpu"),
        GSM(4, background="learned", epochs=15, random_state=0, device="cpu"),
        ETM(4, background="learned", embedding_size=4, epochs=15, random_state=0, device="cpu"),
    )
    for model in models:
        background = model.fit(CORPUS).network_.decoder.topics.background
        assert background.requires_grad
        assert np.corrcoef(background.detach().numpy(), np.log(frequency + 1))[0, 1] > 0.3, type(model).__name__


def test_the_decoders_are_those_of_the_papers():
    for kind in (NVDM, WLDA, DirichletVAE, ProdLDA, ECRTM):
        assert isinstance(network(kind).decoder, ProductDecoder)
    for kind in (GSM, ETM, NVLDA, GMNTM, BATM):
        assert isinstance(network(kind).decoder, MixtureDecoder)


def test_ecrtm_begins_with_the_small_weights_of_its_authors():
    encoder = network(ECRTM, learning_rate=1e-9).encoder  # PyTorch's default: uniform within 1 / sqrt(V)
    bound = encoder.weight.shape[0] ** -0.5
    for weights in (encoder.weight, encoder.bias):
        assert 0.9 * bound < float(weights.detach().abs().max()) <= 1.001 * bound
    assert float(encoder.weight.detach().std()) == pytest.approx(bound / 3**0.5, rel=0.1)


@pytest.mark.parametrize("name", ["softplus", "relu", "tanh"])
def test_the_activation_is_that_of_both_layers(name):
    function = {"softplus": torch.nn.functional.softplus, "relu": torch.relu, "tanh": torch.tanh}[name]
    encoder = BagEncoder(torch.ones(6), 5, torch.Generator().manual_seed(0), input="raw", activation=name)
    counts = SparseCounts(
        indices=torch.tensor([0, 3, 5]),
        values=torch.tensor([2.0, 1.0, 4.0]),
        offsets=torch.tensor([0, 2, 3]),
        n_words=6,
    )
    x = torch.tensor([[2.0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 0, 4]])
    expected = function(encoder.hidden(function(x @ encoder.weight + encoder.bias)))
    assert torch.allclose(encoder(Batch(counts, torch.arange(2)), None), expected, atol=1e-6)


def test_the_divergence_of_gammas_is_that_of_joo_et_al():
    a, prior = torch.tensor([[0.3, 2.0, 0.7]], dtype=torch.float64), torch.tensor([0.5, 0.5, 0.5], dtype=torch.float64)
    x, p = a.numpy(), prior.numpy()
    by_hand = (gammaln(p) - gammaln(x) + (x - p) * digamma(x)).sum()
    gammas = InverseDirichlet(a, prior, of_gammas=True).divergence().sum()
    assert float(gammas) == pytest.approx(by_hand)
    assert float(InverseDirichlet(a, prior).divergence().sum()) < by_hand  # theta does not depend on the sum
    model = DirichletVAE.as_published(
        4, estimator="icdf", divergence="gammas", epochs=2, random_state=0, device="cpu"
    ).fit(CORPUS)
    assert model.network_.of_gammas


def test_a_mixture_prior_with_a_variance_for_each_component():
    pi = torch.tensor([0.5, 0.3, 0.2])
    means = torch.tensor([[2.0, 0.0], [-1.0, 1.0], [0.0, -2.0]])
    variances = torch.tensor([[0.5, 1.5], [0.2, 0.7], [2.0, 1.0]])
    prior = MixturePrior(3, 2, own_variances=True)
    prior.set(pi, means, variances)
    mean, log_var = torch.tensor([[0.4, -0.3], [1.0, 1.0]]), torch.tensor([[-0.5, 0.1], [0.0, -2.0]])
    eta, found = prior.responsibilities(mean, log_var), prior.divergence(mean, log_var).detach()
    for d in range(2):
        kls, scores = [], []
        for c in range(3):
            expected = (log_var[d].exp() + (mean[d] - means[c]) ** 2) / variances[c]
            kls.append(float(0.5 * (expected - 1 + variances[c].log() - log_var[d]).sum()))
            scores.append(float(pi[c].log() - 0.5 * (expected + variances[c].log()).sum()))
        weights = np.exp(scores) / np.exp(scores).sum()
        assert eta[d].detach().numpy() == pytest.approx(weights, abs=1e-5)
        value = sum(w * (kl + math.log(w / float(p))) for w, kl, p in zip(weights, kls, pi, strict=True))
        assert float(found[d].sum()) == pytest.approx(value, abs=1e-4)


def test_equal_variances_are_those_of_one_shared_variance():
    generator = torch.Generator().manual_seed(0)
    pi, means, var = torch.tensor([0.5, 0.5]), torch.randn(2, 3, generator=generator), torch.tensor([0.5, 1.0, 2.0])
    shared, own = MixturePrior(2, 3), MixturePrior(2, 3, own_variances=True)
    shared.set(pi, means, var)
    own.set(pi, means, var.expand(2, -1))
    mean, log_var = torch.randn(4, 3, generator=generator), torch.randn(4, 3, generator=generator)
    assert torch.allclose(shared.responsibilities(mean, log_var), own.responsibilities(mean, log_var), atol=1e-6)
    assert torch.allclose(shared.divergence(mean, log_var), own.divergence(mean, log_var), atol=1e-5)


def test_gmntm_learns_a_matrix_and_a_variance_for_each_component():
    fitted = network(GMNTM)
    assert fitted.projection.weight.requires_grad
    assert fitted.prior.log_var.shape == (4, 4)


# The command line.


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "pets.txt").write_text(f"{PETS}\n{MONEY}\n" * 30, encoding="utf-8")
    return tmp_path / "pets.txt"


def test_a_recipe_on_the_command_line(text):
    out = text.parent / "run"
    options = [
        "--recipe",
        "published",
        "--topics",
        2,
        "--epochs",
        2,
        "--set",
        "hidden_size=8",
        "--set",
        "batch_size=32",
    ]
    done = call("train", text, "--model", "etm", *options, "--out", out, "--quiet", "--doc-topics", "none")
    assert done.exit_code == 0, done.output
    settings = json.loads((out / "model" / "config.json").read_text(encoding="utf-8"))["settings"]
    assert settings["n_topics"] == 2
    assert (settings["hidden_size"], settings["epochs"], settings["batch_size"]) == (8, 2, 32)
    assert (settings["prior"], settings["activation"], settings["learning_rate"]) == ("standard", "relu", 5e-3)
    unused = ("--model", "etm", *options, "--out", text.parent / "unused", "--set", "alpha=0.1")
    refused("train", text, *unused, says=["--set alpha=0.1 has no effect with --set prior=standard; leave it out"])


@pytest.mark.parametrize("model", ["loom", "lda"])
def test_a_recipe_without_a_paper_is_one_sentence(text, model):
    options = ("--model", model, "--recipe", "published", "--out", text.parent / "run")
    refused("train", text, *options, says=["has no published configuration"])
    assert not (text.parent / "run").exists()


def test_a_recipe_that_needs_vectors_on_the_command_line(text):
    np.save(text.parent / "vectors.npy", np.random.default_rng(0).normal(size=(60, 5)))
    own = ("--model", "prodlda", "--recipe", "zeroshot", "--topics", 2, "--epochs", 2, "--out", text.parent / "run")
    refused("train", text, *own, says=["the model reads the field 'vectors' of each document"])
    given = ("--vectors", text.parent / "vectors.npy")
    done = call("train", text, *own, *given, "--quiet")
    assert done.exit_code == 0, done.output
    measured = json.loads((text.parent / "run" / "metrics.json").read_text(encoding="utf-8"))
    assert measured["settings"]["encoder_reads"] == "vectors"
    assert measured["perplexity_completion_training"] is None
    assert measured["perplexity_bound_training"] > 1
    done = call("evaluate", text.parent / "run", "--quiet")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("page", ["published.md", "published.zh-CN.md"])
def test_the_page_names_every_published_setting_and_its_default(page):
    page = (Path(__file__).resolve().parents[1] / "docs" / page).read_text(encoding="utf-8")
    for kind in PUBLISHED:
        section = page.split(f"\n## {kind.__name__}\n")[1].split("\n## ")[0]
        defaults = kind(50).get_params()
        for name, value in kind.published.items():
            if name not in PLAIN_VARIATIONAL or value != PLAIN_VARIATIONAL[name]:
                cells = [f'"{each}"' if isinstance(each, str) else f"{each}" for each in (value, defaults[name])]
                assert f"| `{name}` | `{cells[0]}` | `{cells[1]}` |" in section, f"{kind.__name__}: {name}"
    for name in PLAIN_VARIATIONAL:
        assert f"`{name}`" in page.split("\n## ")[1]
