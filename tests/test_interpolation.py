"""The path between two documents: its ends are the documents themselves, whatever the model."""

import numpy as np
import pytest
import torch

import topicloom as tl
from topicloom.datasets import synthetic_lda
from topicloom.errors import InputError, SettingError
from topicloom.models.inference import Interpolation

PLANTED = synthetic_lda(n_docs=60, n_topics=3, n_words=40, doc_length=20)
CORPUS = PLANTED.corpus
VARIANTS = [
    *((kind.__name__, {}) for kind in tl.MODELS if not kind.needs_vectors),
    ("GSM", {"latent_size": 4, "prior": "standard"}),
    ("GSM", {"decoder": "mlp"}),
    ("WLDA", {"decoder": "product"}),
    ("DirichletVAE", {"estimator": "laplace"}),
    ("DirichletVAE", {"estimator": "weibull"}),
    ("DirichletVAE", {"sparsity": 0.5}),
    ("LDA", {"method": "gibbs"}),
]


def fitted(name, **settings):
    kind = getattr(tl, name)
    known = kind(3).get_params()
    small = {key: value for key, value in {"hidden_size": 8, "pretrain_epochs": 1}.items() if key in known}
    return kind(3, epochs=3, random_state=0, **small | settings).fit(CORPUS)


@pytest.fixture(scope="module")
def gsm():
    return fitted("GSM")


@pytest.mark.parametrize(("name", "settings"), VARIANTS, ids=lambda each: str(each))
def test_the_ends_are_the_two_documents(name, settings):
    if settings.get("method") == "gibbs":
        pytest.importorskip("tomotopy")
    model = fitted(name, **settings)
    path = model.interpolate(CORPUS[3], CORPUS[7], steps=5)
    assert np.abs(path.theta[0] - model.transform(CORPUS[3])[0]).max() < 1e-5
    assert np.abs(path.theta[-1] - model.transform(CORPUS[7])[0]).max() < 1e-5
    assert path.theta.sum(1) == pytest.approx(np.ones(5), abs=1e-5)
    np.testing.assert_allclose(path.codes[[0, -1]], model.latent(CORPUS[[3, 7]])[0], atol=1e-4)
    np.testing.assert_allclose(np.diff(path.codes, n=2, axis=0), 0, atol=1e-4)  # a straight line
    assert [len(words) for words in path.words] == [10] * 5
    assert path.positions.tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert repr(path) == "Interpolation(5 steps, 3 topics)"


def test_the_midpoint_of_a_gaussian_path_decodes_the_mean(gsm):
    path = gsm.interpolate(CORPUS[3], CORPUS[7], steps=3)
    middle = gsm.latent(CORPUS[[3, 7]])[0].mean(0, keepdims=True)
    with torch.inference_mode():
        expected = gsm.network_.to_theta(torch.from_numpy(middle)).numpy()
    np.testing.assert_allclose(path.theta[1:2], expected, atol=1e-5)


@pytest.mark.parametrize("name", ["GSM", "ProdLDA", "NVDM", "LDA", "Loom"])
def test_words_have_the_probabilities_that_the_likelihood_uses(name):
    """The logarithm of a weight is the log likelihood of a document that consists of this word alone."""
    model = fitted(name)
    path = model.interpolate(CORPUS[3], CORPUS[7], steps=2, top_n=4)
    from topicloom.models.inference import log_likelihood

    for theta, words, weights in zip(path.theta, path.words, path.weights, strict=True):
        counts = np.zeros((4, CORPUS.n_words), np.float32)
        counts[range(4), [model.vocabulary_.index(word) for word in words]] = 1
        found = log_likelihood(model.network_, np.repeat(theta[None], 4, 0), model.documents(counts))
        np.testing.assert_allclose(np.log(weights), found, atol=1e-4)


def test_words_belong_to_the_topic_that_explains_them(gsm):
    path = gsm.interpolate(CORPUS[3], CORPUS[7])
    word = gsm.vocabulary_.index(path.words[2][0])
    assert path.word_topics[2, 0] == (path.theta[2] * gsm.components_[:, word]).argmax()


def test_documents_come_in_any_form(gsm):
    texts = [" ".join(CORPUS.vocabulary[:5]), " ".join(CORPUS.vocabulary[5:9])]
    corpus = tl.Corpus.from_texts(texts * 20, min_df=1, max_df=1.0, stop_words=None, language="en")
    model = tl.GSM(2, epochs=2, hidden_size=8, random_state=0).fit(corpus)
    path = model.interpolate(*texts, steps=2)
    assert isinstance(path, Interpolation)
    assert [end.texts[0] for end in path.ends] == texts
    same = model.interpolate([texts[0]], corpus[1], steps=2)
    np.testing.assert_allclose(same.theta, path.theta, atol=1e-6)


def test_what_cannot_be_used(gsm):
    empty = np.zeros((1, CORPUS.n_words))
    with pytest.raises(InputError, match="`a` should be one document; it has 2"):
        gsm.interpolate(CORPUS[:2], CORPUS[0])
    with pytest.raises(InputError, match="`b` contains no word that the model knows"):
        gsm.interpolate(CORPUS[0], empty)
    with pytest.raises(SettingError, match="`steps=1` should be a whole number from 2"):
        gsm.interpolate(CORPUS[0], CORPUS[1], steps=1)
    with pytest.raises(SettingError, match="`top_n=0` should be a whole number from 1"):
        gsm.interpolate(CORPUS[0], CORPUS[1], top_n=0)
