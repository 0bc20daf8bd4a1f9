"""Topics as Gaussian distributions over word vectors, against scipy's densities."""

from __future__ import annotations

import numpy as np
import torch
from scipy.stats import multivariate_normal

from topicloom import Corpus, GaussianBATM, WordVectors, load
from topicloom.nn.decoders import GaussianTopics


def test_topics_are_densities_over_the_vocabulary():
    generator = torch.Generator().manual_seed(0)
    background = torch.randn(12, generator=generator)
    topics = GaussianTopics(background, 3, 4, generator)
    with torch.no_grad():
        topics.log_scale.normal_(generator=generator)
        topics.weight.normal_(generator=generator)
    vectors, means, scales = (
        tensor.detach().double().numpy() for tensor in (topics.word_vectors, topics.topic_vectors, topics.scales)
    )
    for k in range(3):
        density = multivariate_normal(means[k], np.diag(scales[k] ** 2)).pdf(vectors) * np.exp(background.numpy())
        np.testing.assert_allclose(topics().detach().numpy()[:, k], density / density.sum(), rtol=1e-3)


def test_initial_topics_follow_the_inner_product_with_their_mean():
    topics = GaussianTopics(torch.zeros(12), 3, 4, torch.Generator().manual_seed(0), word_vectors=torch.eye(12)[:, :4])
    inner = topics.word_vectors @ topics.topic_vectors.mT - (topics.word_vectors**2).sum(1, keepdim=True) / 2  # (V, K)
    torch.testing.assert_close(topics(), inner.softmax(0))


def test_words_of_one_direction_share_a_topic():
    """Words of two groups never occur together with others of their group, so only their vectors join them."""
    rng = np.random.default_rng(0)
    vocabulary = [f"{group}{word}" for group in "ab" for word in range(10)]
    directions = np.repeat(np.eye(2), 10, axis=0) @ rng.normal(size=(2, 8))
    vectors = WordVectors(vocabulary, directions + 0.1 * rng.normal(size=(20, 8)))
    documents = [[vocabulary[word]] * 20 for _ in range(10) for word in range(20)]
    corpus = Corpus.from_tokens(documents) if hasattr(Corpus, "from_tokens") else Corpus.from_texts(documents)
    model = GaussianBATM(
        2,
        word_vectors=vectors,
        fixed_word_vectors=True,
        min_diversity=0.0,
        epochs=20,
        batch_size=16,
        random_state=0,
        device="cpu",
    ).fit(corpus)
    main = model.transform(documents[:20]).argmax(1)
    assert len(set(main[:10])) == len(set(main[10:])) == 1
    assert main[0] != main[-1]


def test_a_loaded_model_has_its_gaussians(tmp_path):
    documents = [["cat", "dog", "cat"], ["bank", "rate", "rate"]] * 20
    model = GaussianBATM(2, embedding_size=6, epochs=2, random_state=0, device="cpu").fit(documents)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model", device="cpu")
    np.testing.assert_array_equal(again.topic_means_, model.topic_means_)
    np.testing.assert_array_equal(again.topic_scales_, model.topic_scales_)
    assert again.word_embeddings_.shape == (4, 6)
    assert (model.topic_scales_ > 0).all()


def test_default_vectors_are_smaller_and_saved_models_keep_theirs(tmp_path):
    documents = [["cat", "dog", "cat"], ["bank", "rate", "rate"]] * 20
    for settings, size in (({}, 100), ({"embedding_size": 300}, 300)):
        model = GaussianBATM(2, epochs=1, random_state=0, device="cpu", **settings).fit(documents)
        assert model.word_embeddings_.shape == (4, size)
        model.save(tmp_path / str(size))
        again = load(tmp_path / str(size), device="cpu")
        np.testing.assert_array_equal(again.transform(documents), model.transform(documents))
        assert again.topic_means_.shape == (2, size)
