"""What only the recipes of papers use, compared with the equations of the papers in NumPy and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import expit, softmax
from scipy.stats import norm

import topicloom as tl
from batches import batch_of, seeded
from topicloom.datasets import synthetic_lda
from topicloom.errors import InputError, SettingError, TrainingDivergedError
from topicloom.models.gmntm import _mixture
from topicloom.models.portable import portable_inference
from topicloom.models.wlda import full_mixture
from topicloom.nn.decoders import FreeTopics, MLPDecoder, ProductDecoder
from topicloom.nn.dirichlet_posteriors import ImplicitDirichlet, InverseDirichlet, SparsePosterior
from topicloom.nn.encoders import BagEncoder
from topicloom.nn.layers import CodeNorm, stick_breaking
from topicloom.nn.posteriors import DrawnComponentPosterior, GaussianPosterior, MixturePrior
from topicloom.nn.samplers import RefittedMixture
from topicloom.nn.sparse import Batch, mixture_log_likelihood
from topicloom.training.monitors import NotFinite
from topicloom.training.state import Adam, annealed

Array = np.ndarray[Any, Any]
CORPUS = synthetic_lda(n_docs=120, n_topics=4, n_words=60, doc_length=30).corpus
COUNTS = np.random.default_rng(0).poisson(0.7, (6, 9)).astype(float)
QUICK: dict[str, Any] = {"epochs": 2, "random_state": 0, "device": "cpu", "batch_size": 40}


def array(tensor: torch.Tensor | None) -> Array:
    assert tensor is not None
    return tensor.detach().double().numpy()


# An encoder of several widths.


@pytest.mark.parametrize("widths", [(5,), (5, 3), (7, 4, 2), (6, 5, 4, 3)])
def test_an_encoder_has_the_layers_of_its_widths(widths):
    encoder = BagEncoder(torch.ones(9), widths, seeded(), input="raw", activation="relu")
    weights = [(array(encoder.weight), array(encoder.bias))]
    layers = [] if encoder.hidden is None else [encoder.hidden, *encoder.deeper]
    weights += [(array(layer.weight).T, array(layer.bias)) for layer in layers]
    h = COUNTS
    for weight, bias in weights:
        h = np.maximum(h @ weight + bias, 0)
    assert tuple(len(bias) for _, bias in weights) == widths
    assert array(encoder(Batch(batch_of(COUNTS)), None)) == pytest.approx(h, abs=1e-5)


@pytest.mark.parametrize("kind", [tl.GSM, tl.WLDA, tl.DirichletVAE, tl.Loom])
def test_the_widths_of_layers_are_a_setting(kind, tmp_path):
    model = kind(4, hidden_sizes=[12, 5, 7], **QUICK).fit(CORPUS)
    assert [layer.out_features for layer in (model.network_.encoder.hidden, *model.network_.encoder.deeper)] == [5, 7]
    model.save(tmp_path / "model")
    loaded = tl.load(tmp_path / "model", device="cpu")
    assert np.array_equal(loaded.transform(CORPUS), model.transform(CORPUS))
    assert loaded.get_params() == model.get_params()


def test_widths_must_be_whole_numbers():
    for widths in ([], [0], [3.5], 12):
        with pytest.raises(SettingError, match="`hidden_sizes` of GSM should be a list of one or more whole numbers"):
            tl.GSM(4, hidden_sizes=widths).fit(CORPUS)


def test_an_encoder_of_another_depth_is_not_written_as_arrays():
    model = tl.GSM(4, hidden_sizes=(6,), **QUICK).fit(CORPUS)
    with pytest.raises(InputError):
        portable_inference(model)


# The normalisation of the code.


@pytest.mark.parametrize("kind", [tl.ProdLDA, tl.NVLDA, tl.ECRTM, tl.DirichletVAE])
def test_the_code_norm_adds_the_authors_number(kind):
    model = kind.as_published(4, **QUICK).fit(CORPUS)
    eps = {tl.ECRTM: 1e-5}.get(kind, 1e-3)
    norms = [part for part in model.network_.modules() if isinstance(part, CodeNorm)]
    assert norms
    x = np.random.default_rng(1).normal(scale=0.02, size=(50, 4))
    for each in norms:
        assert each.shift is not None
        with torch.no_grad():
            each.shift.zero_()
        expected = (x - x.mean(0)) / np.sqrt(x.var(0) + eps)
        assert array(each.train()(torch.tensor(x).float())) == pytest.approx(expected, abs=1e-5)


# NVLDA and ProdLDA: topics normalised over the topics, and dropout of theta.


def test_topics_are_normalised_over_the_topics():
    """softmax(batch_norm(B)) of the authors' nvlda.py: each word over the topics, with a shift of the word."""
    random = np.random.default_rng(2)
    topics = FreeTopics(torch.zeros(9), 4, seeded(), gain=2.0, norm_eps=1e-3)
    weight, shift = random.normal(size=(9, 4)), random.normal(size=9)
    topics.load_state_dict({**topics.state_dict(), "weight": torch.tensor(weight), "shift": torch.tensor(shift)})
    b = 2 * weight
    normal = (b - b.mean(1, keepdims=True)) / np.sqrt(b.var(1, keepdims=True) + 1e-3) + shift[:, None]
    assert array(topics.deviations()) == pytest.approx(normal, abs=1e-5)
    assert array(topics()) == pytest.approx(softmax(normal, axis=0), abs=1e-6)


def test_the_recipe_of_nvlda_normalises_its_topics():
    model = tl.NVLDA.as_published(4, **QUICK).fit(CORPUS)
    deviations = array(model.network_.decoder.topics.deviations())
    shift = array(model.network_.decoder.topics.shift)
    assert shift.any()
    assert deviations.mean(1) == pytest.approx(shift, abs=1e-5)
    assert model.components_ == pytest.approx(softmax(deviations, axis=0).T, abs=1e-5)
    assert tl.NVLDA(4, **QUICK).fit(CORPUS).network_.decoder.topics.shift is None


@pytest.mark.parametrize(("kind", "rate"), [(tl.ProdLDA, 0.2), (tl.NVLDA, 0.25)])
def test_the_decoder_lacks_entries_of_theta_in_training(kind, rate, monkeypatch):
    network = kind.as_published(4, **QUICK).fit(CORPUS).network_
    batch = Batch(batch_of(np.repeat(COUNTS[:, :1], CORPUS.n_words, axis=1)[np.zeros(400, int)]))
    seen: list[Array] = []
    score = type(network.decoder).score

    def noted(decoder: Any, theta: torch.Tensor, *more: Any) -> Any:
        seen.append(array(theta))
        return score(decoder, theta, *more)

    monkeypatch.setattr(type(network.decoder), "score", noted)
    network.train()
    network.loss(batch)
    network.eval()
    network.loss(batch)
    trained, inferred = seen
    assert np.mean(trained == 0) == pytest.approx(rate, abs=0.05)
    assert trained.sum(1).mean() == pytest.approx(1, abs=0.1)  # the other entries are raised
    assert inferred.sum(1) == pytest.approx(1, abs=1e-5)


# W-LDA: all pairs of a batch, and a mixture that is fitted to each batch.


def kernel(left: Array, right: Array) -> Array:
    return np.exp(-(np.arccos(np.minimum(np.sqrt(left) @ np.sqrt(right).T, 1 - 1e-6)) ** 2))


def test_the_discrepancy_of_the_recipe_compares_all_pairs(monkeypatch):
    """As mmd_loss of the authors' compute_op.py: means over pairs of different members, and over all pairs."""
    network = tl.WLDA.as_published(4, **QUICK).fit(CORPUS).network_
    prior, batch = np.random.default_rng(3).dirichlet(np.full(4, 0.5), 7), Batch(batch_of(CORPUS.counts[:7]))
    monkeypatch.setattr(network.prior, "sample", lambda n, generator: torch.tensor(prior).float())
    network.train()
    theta = array(network.posterior(batch).point())
    within = [(kernel(t, t).sum() - np.trace(kernel(t, t))) / 42 for t in (prior, theta)]
    expected = sum(within) - 2 * kernel(prior, theta).mean()
    found = network.loss(batch).divergence.detach() / network.nats
    assert found.numpy() == pytest.approx(np.full(7, expected), abs=1e-4)


def test_a_refitted_mixture_has_the_moments_of_its_batch():
    random = np.random.default_rng(4)
    centres = np.array([[6.0, 0, 0], [0, 6, 0], [0, 0, 6]])
    mix = np.array([[1.0, 0.8, 0], [0, 0.5, 0], [0.3, 0, 1]])
    codes = np.vstack([centre + random.normal(size=(400, 3)) @ mix for centre in centres])
    prior = RefittedMixture(3, spread=1.0, fit=full_mixture)
    prior.prepare(torch.tensor(codes).float())
    order = array(prior.means).argmax(1)
    for place, k in enumerate(order):
        own = codes[400 * k : 400 * (k + 1)]
        assert array(prior.means)[place] == pytest.approx(own.mean(0), abs=0.05)
        assert array(prior.covariances)[place] == pytest.approx(np.cov(own.T, bias=True), abs=0.05)
    logs = np.log(array(prior.sample(4000, seeded())))  # softmax(z) up to a constant
    z = codes - codes.mean(1, keepdims=True)
    assert np.cov((logs - logs.mean(1, keepdims=True)).T) == pytest.approx(np.cov(z.T), abs=0.4)
    before = array(prior.means)
    prior.prepare(torch.zeros(2, 3))  # too few documents
    assert np.array_equal(array(prior.means), before)


def test_a_mixture_of_few_documents_can_be_drawn_from():
    random = np.random.default_rng(7)
    codes = 20 * random.normal(size=(60, 20))  # three documents for each component, whose covariances are singular
    prior = RefittedMixture(20, spread=1.0, fit=full_mixture)
    prior.prepare(torch.tensor(codes).float())
    prior.weights.copy_(torch.eye(20)[0])
    theta = array(prior.sample(100, seeded()))
    assert theta.sum(1) == pytest.approx(np.ones(100), abs=1e-5)


def test_a_refitted_mixture_is_a_prior_of_documents(tmp_path):
    model = tl.WLDA(3, prior="gmm-batch", **QUICK).fit(CORPUS)
    model.save(tmp_path / "model")
    loaded = tl.load(tmp_path / "model", device="cpu")
    assert np.array_equal(loaded.transform(CORPUS), model.transform(CORPUS))
    assert np.isfinite(model.history_[-1]["mmd"])


# GSB and RSB: theta by breaking sticks.


def broken(eta: Array) -> Array:
    """The stick-breaking construction, one topic after the other: (B, K - 1) -> (B, K)."""
    left, parts = np.ones(len(eta)), []
    for column in eta.T:
        parts.append(column * left)
        left = left - parts[-1]
    return np.stack([*parts, left], axis=1)


def test_sticks_are_broken_in_turn():
    logits = np.random.default_rng(5).normal(scale=3, size=(20, 5))
    assert array(stick_breaking(torch.tensor(logits))) == pytest.approx(broken(expit(logits)), abs=1e-12)
    assert array(stick_breaking(torch.full((1, 3), -200.0))).tolist() == [[0, 0, 0, 1]]


@pytest.mark.parametrize("recipe", ["gsb", "rsb"])
def test_the_recipes_break_sticks_at_fractions_of_the_code(recipe):
    model = tl.GSM.as_published(4, recipe=recipe, latent_size=3, **QUICK).fit(CORPUS)
    network, z = model.network_, np.random.default_rng(6).normal(size=(10, 3))
    if recipe == "gsb":
        vectors = array(network.projection.weight)[:-1]
    else:
        weight, bias = array(network.projection.next.weight), array(network.projection.next.bias)
        vectors = [array(network.projection.first)]
        for _ in range(2):
            vectors.append(np.tanh(weight @ vectors[-1] + bias))
    expected = broken(expit(z @ np.array(vectors).T))
    assert array(network.to_theta(torch.tensor(z).float())) == pytest.approx(expected, abs=1e-5)
    assert array(network.prior_theta()) == pytest.approx([0.5, 0.25, 0.125, 0.125], abs=1e-6)


@pytest.mark.parametrize("construction", ["stick_breaking", "recurrent"])
def test_learned_shares_are_those_of_the_mean_code(construction, tmp_path):
    model = tl.GSM(4, construction=construction, **QUICK).fit(CORPUS)
    network = model.network_
    with torch.no_grad():
        network.shares.logits.copy_(torch.tensor([0.3, -1.0, 2.0, 0.1]))
    assert array(network.to_theta(torch.zeros(1, 4)))[0] == pytest.approx(softmax([0.3, -1.0, 2.0, 0.1]), abs=1e-6)
    model.save(tmp_path / "model")
    assert np.array_equal(tl.load(tmp_path / "model", device="cpu").transform(CORPUS), model.transform(CORPUS))
    for prior in ({"alpha": 0.3}, {"prior": "laplace"}):
        with pytest.raises(SettingError, match=f'`construction="{construction}"` needs `prior="standard"`'):
            tl.GSM(4, construction=construction, **prior).fit(CORPUS)


# GMNTM of zll17, and its criteria.


def mlp_decoder() -> MLPDecoder:
    background = torch.tensor(np.random.default_rng(7).normal(size=9)).float()
    return MLPDecoder(background, 3, (6, 5, 4), seeded(), activation="relu", gain=1.0)


def test_a_decoder_has_the_layers_of_its_widths():
    decoder, theta = mlp_decoder(), np.random.default_rng(8).dirichlet(np.ones(3), 5)
    h = theta
    for layer in (decoder.hidden, *decoder.deeper):
        h = np.maximum(h @ array(layer.weight).T + array(layer.bias), 0)
    expected = softmax(h @ array(decoder.topics.weight).T + array(decoder.topics.background), axis=1)
    assert array(decoder.log_probabilities(torch.tensor(theta).float()).exp()) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("criterion", ["bce_softmax", "bce_sigmoid"])
def test_the_criteria_of_zll17_are_those_of_pytorch(criterion):
    decoder, theta = mlp_decoder(), torch.tensor(np.random.default_rng(9).dirichlet(np.ones(3), 6)).float()
    product = ProductDecoder(FreeTopics(torch.ones(9), 3, seeded(1), gain=1.0))
    for own in (decoder, product):
        logits = own.logits(theta)
        p = torch.softmax(logits, dim=1) if criterion == "bce_softmax" else torch.sigmoid(logits)
        present = (COUNTS > 0).astype(float)  # PyTorch's function refuses counts above 1
        terms = torch.nn.functional.binary_cross_entropy(p, torch.tensor(present).float(), reduction="none")
        assert array(own.score(theta, batch_of(present), criterion)) == pytest.approx(-array(terms.sum(1)), rel=1e-4)
        by_hand = (COUNTS * np.log(array(p)) + (1 - COUNTS) * np.log1p(-array(p))).sum(1)
        assert array(own.score(theta, batch_of(COUNTS), criterion)) == pytest.approx(by_hand, rel=1e-4)


@pytest.mark.parametrize("criterion", ["bce_softmax", "bce_sigmoid"])
def test_the_criteria_of_zll17_train_models(criterion):
    for model in (tl.GSM(4, criterion=criterion, **QUICK), tl.ProdLDA(4, criterion=criterion, **QUICK)):
        model.fit(CORPUS)
        assert np.isfinite([row["loss"] for row in model.history_]).all()
        with pytest.raises(SettingError, match='a criterion other than "cross_entropy"'):
            model.perplexity(CORPUS, "bound")


def mixture(pi: Array, means: Array, variances: Array) -> MixturePrior:
    prior = MixturePrior(*means.shape, own_variances=True)
    prior.set(*(torch.tensor(part).float() for part in (pi, means, variances)))
    return prior


def test_the_component_of_a_draw_follows_bayes_rule():
    random = np.random.default_rng(10)
    pi, means, variances = random.dirichlet(np.ones(3)), random.normal(size=(3, 2)), random.gamma(2, size=(3, 2))
    z = random.normal(size=(7, 2))
    joint = pi * norm.pdf(z[:, None], means, np.sqrt(variances)).prod(2)  # (7, 3)
    eta = joint / joint.sum(1, keepdims=True)
    prior = mixture(pi, means, variances)
    assert array(prior.component_of(torch.tensor(z).float())) == pytest.approx(eta, abs=1e-5)
    mean, var = random.normal(size=(7, 2)), random.gamma(2, size=(7, 2))
    kl = (np.log(variances) - np.log(var[:, None]) + (var[:, None] + (mean[:, None] - means) ** 2) / variances - 1) / 2
    expected = (eta * (kl.sum(2) + np.log(eta / pi))).sum(1)
    drawn = DrawnComponentPosterior(
        *(torch.tensor(part).float() for part in (mean, np.log(var))), prior, torch.softmax, torch.tensor(z).float()
    )
    assert array(drawn.divergence().sum(1)) == pytest.approx(expected, rel=1e-4)


def test_the_recipe_of_zll17_has_the_parts_of_its_code():
    model = tl.GMNTM.as_published(4, recipe="zll17", pretrain_epochs=1, **QUICK).fit(CORPUS)
    network = model.network_
    widths = [network.decoder.hidden, *network.decoder.deeper]
    assert [layer.out_features for layer in widths] == [2000, 500, 500]
    assert [layer.out_features for layer in (network.encoder.hidden, *network.encoder.deeper)] == [500, 2000]
    batch = Batch(batch_of(CORPUS.counts[:5]))
    network.train()
    assert isinstance(network.posterior(batch), DrawnComponentPosterior)
    mu = array(network.prior.means)
    unit = mu / np.linalg.norm(mu, axis=1, keepdims=True)
    shares = softmax(mu @ array(network.projection.weight).T + array(network.shares.logits), axis=1)
    expected = 1e7 / 512 * ((unit @ unit.T).sum() + (shares @ shares.T).sum())
    assert array(network.loss(batch).extras["mutual_distance"]) == pytest.approx(np.full(5, expected), rel=1e-4)
    network.eval()
    assert type(network.posterior(batch)) is GaussianPosterior


def test_gmntm_advises_tfidf_where_long_documents_overflow():
    counts = CORPUS.counts.toarray() * 300
    model = tl.GMNTM.as_published(4, recipe="zll17", pretrain_epochs=2, **QUICK)
    with pytest.raises(TrainingDivergedError, match=r"try `encoder_input='tfidf'`$"):
        model.fit(counts)
    model.set_params(encoder_input="log1p")
    assert model.remedies(NotFinite(at_first_step=True)).endswith("try `encoder_input='tfidf'`")
    model.set_params(encoder_input="tfidf").fit(counts)
    assert np.isfinite([row["loss"] for row in model.history_]).all()
    assert "tfidf" not in model.remedies(NotFinite(at_first_step=False))


# ETM: the constant in the logarithm, the initial weights, clipping and annealing.


def test_the_recipe_of_etm_adds_the_authors_constant_in_training():
    network = tl.ETM.as_published(4, embedding_size=8, **QUICK).fit(CORPUS).network_
    theta, counts = np.random.default_rng(11).dirichlet(np.ones(4), 5), CORPUS.counts[:5].toarray()
    p = theta @ array(network.topic_word())
    for mode, constant in ((True, 1e-6), (False, 1e-10)):
        score = network.decoder.train(mode).log_likelihood(torch.tensor(theta).float(), batch_of(counts))
        assert array(score) == pytest.approx((counts * np.log(p + constant)).sum(1), rel=1e-6)
    far = torch.zeros(1, 60)
    assert float(mixture_log_likelihood(torch.ones(1, 1), far.mT, batch_of(np.ones((1, 60))), 1e-6)) == pytest.approx(
        60 * np.log(1e-6), rel=1e-5
    )


def test_the_recipe_of_etm_begins_with_linear_layers():
    network = tl.ETM.as_published(4, embedding_size=30, **QUICK | {"learning_rate": 1e-9}).fit(CORPUS).network_
    topics, layer = network.decoder.topics, network.encoder
    for weights, bound in ((topics.word_vectors, 30**-0.5), (topics.topic_vectors, 30**-0.5), (layer.weight, 60**-0.5)):
        assert np.abs(array(weights)).max() == pytest.approx(bound, rel=0.05)
        assert array(weights).std() == pytest.approx(bound / 3**0.5, rel=0.1)


def test_large_gradients_are_scaled_down():
    random = np.random.default_rng(12)
    weights = [torch.nn.Parameter(torch.zeros(size)) for size in (3, 5)]
    gradients = [random.normal(size=size) for size in (3, 5)]
    norm_of_all = np.sqrt(sum((gradient**2).sum() for gradient in gradients))
    for clip, factor in ((0.5, 0.5 / norm_of_all), (1e3, 1.0), (None, 1.0)):
        optimizer = Adam(weights, lr=1e-3, beta1=0.9, weight_decay=0.0, clip_norm=clip, fused=True)
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.grad = torch.tensor(gradient).float()
        optimizer.step()
        for moments, gradient in zip(optimizer.moments().values(), gradients, strict=True):
            assert array(moments["exp_avg"]) == pytest.approx(0.1 * factor * gradient, rel=1e-4)


def test_the_rate_is_annealed_as_in_the_code_of_etm():
    losses = np.round(np.random.default_rng(13).normal(size=60).cumsum() + 50, 2).tolist()
    rate, seen = 0.4, list[float]()
    for loss in losses:
        if len(seen) > 10 and loss > min(seen[:-10]) and rate > 1e-5:
            rate /= 4
        seen.append(loss)
    assert annealed(0.4, losses) == pytest.approx(rate)
    model = tl.GSM(4, schedule="anneal", **QUICK | {"epochs": 15, "learning_rate": 0.2}).fit(CORPUS)
    lost = [row["validation_loss"] for row in model.history_]
    rates = [row["learning_rate"] for row in model.history_]
    assert rates == pytest.approx([annealed(0.2, lost[:epoch]) for epoch in range(15)])
    with pytest.raises(InputError, match="`schedule='anneal'` needs at least two documents"):
        tl.GSM(2, schedule="anneal").fit(CORPUS[:1])


def test_a_mixture_starts_with_topics_that_no_document_has():
    random = np.random.default_rng(14)
    codes, shares = random.normal(size=(50, 3)), np.eye(3)[random.integers(2, size=50)]  # the third has none
    pi, means, variances = _mixture(codes, shares, 0, even=False, shared=False)
    for part in (pi.log(), means, variances.log()):
        assert np.isfinite(array(part)).all()


# Limits that the page of DirichletVAE documents.


def test_the_inverse_distribution_function_is_biased_as_documented():
    """The gradient of E[theta_1] of Dirichlet(a, b) with respect to (log a, log b) is ab / (a + b)^2 (1, -1)."""
    for (a, b), least, most in (((30.0, 0.05), 0.3, 0.42), ((0.2, 0.2), 0.0, 0.05)):
        log = torch.tensor([[a, b]]).log().repeat(60_000, 1).requires_grad_()
        theta = InverseDirichlet(log.exp(), torch.ones(2)).sample(seeded()).theta[:, 0]
        found = array(torch.autograd.grad(theta.sum(), log)[0]).mean(0)
        exact = a * b / (a + b) ** 2 * np.array([1, -1])
        assert least <= np.linalg.norm(found - exact) / np.linalg.norm(exact) <= most


def test_theta_of_sparse_documents_is_no_mean():
    weights = ImplicitDirichlet(torch.tensor([[3.0, 1.0]]).repeat(20_000, 1), torch.ones(2))
    posterior = SparsePosterior(weights, torch.zeros(20_000, 2), 0.5, 0.5).exact()
    assert array(posterior.point())[0, 0] == pytest.approx(0.75)
    both, first, second, none = 0.75, 1.0, 0.0, 0.75  # the mean of theta_1 by which topics are present
    drawn = array(posterior.sample(seeded()).theta)[:, 0]
    assert drawn.mean() == pytest.approx((both + first + second + none) / 4, abs=0.01)
