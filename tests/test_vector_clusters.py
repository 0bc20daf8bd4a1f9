"""VectorClusters against scikit-learn's clusters and class-based TF-IDF by brute force."""

from __future__ import annotations

import logging
import math
import sys

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.utils import check_random_state

import topicloom as tl
from command_line import call, refused
from topicloom.errors import InputError, MissingExtraError, SettingError
from topicloom.models.vector_clusters import class_tf_idf

N_GROUPS, N_WORDS = 4, 40


def planted(n_docs=200, seed=0):
    """Documents of three words of their group's ten and one of any, with vectors around the centre of the group."""
    rng = np.random.default_rng(seed)
    group = rng.integers(N_GROUPS, size=n_docs)
    counts = np.zeros((n_docs, N_WORDS), np.int64)
    for row in range(n_docs):
        counts[row, rng.choice(10, size=3, replace=False) + 10 * group[row]] = 1
        counts[row, rng.integers(N_WORDS)] += 1
    vectors = (np.eye(12)[group] + rng.normal(scale=0.15, size=(n_docs, 12))) * rng.uniform(0.5, 2, size=(n_docs, 1))
    return counts, vectors.astype(np.float32), group


COUNTS, VECTORS, GROUP = planted()
CORPUS = tl.Corpus.from_counts(COUNTS, vectors=VECTORS)
NEW_COUNTS, NEW_VECTORS, NEW_GROUP = planted(seed=1)
NEW = tl.Corpus.from_counts(NEW_COUNTS, vectors=NEW_VECTORS)
SEED = int(check_random_state(0).randint(2**31 - 1))  # that which the model draws


def unit(vectors):
    return (vectors / np.linalg.norm(vectors.astype(float), axis=1, keepdims=True)).astype(np.float32)


def fitted(corpus=CORPUS, **settings):
    return tl.VectorClusters(**{"n_topics": N_GROUPS, "random_state": 0, **settings}).fit(corpus)


def weights_by_hand(counts, labels):
    """Equation 3 of the paper, word by word."""
    tokens = [[0] * N_WORDS for _ in range(max(labels) + 1)]
    for row, label in zip(counts, labels, strict=True):
        for word, count in enumerate(row):
            tokens[label][word] += count
    average, totals = sum(map(sum, tokens)) / len(tokens), [sum(column) for column in zip(*tokens, strict=True)]
    rows = []
    for row in tokens:
        idf = [math.log(1 + average / total) if total else 0 for total in totals]
        weights = [count / sum(row) * each for count, each in zip(row, idf, strict=True)]
        rows.append([weight / sum(weights) for weight in weights])
    return np.array(rows)


def test_k_means_against_scikit_learn():
    model = fitted()
    theirs = KMeans(N_GROUPS, n_init=10, random_state=SEED).fit(unit(VECTORS))
    assert adjusted_rand_score(theirs.labels_, model.labels_) == 1
    assert adjusted_rand_score(theirs.predict(unit(NEW_VECTORS)), model.transform(NEW).argmax(1)) == 1
    np.testing.assert_array_equal(model.transform(CORPUS).argmax(1), model.labels_)
    assert model.history_[0]["loss"] == pytest.approx(theirs.inertia_ / len(VECTORS), rel=1e-5)
    centres = np.array([unit(VECTORS)[model.labels_ == k].mean(0) for k in range(N_GROUPS)])
    distances = ((unit(NEW_VECTORS)[:, None] - centres) ** 2).sum(2)
    np.testing.assert_allclose(model.transform(NEW), softmax(-distances / 0.1, axis=1), atol=1e-5)
    soft = fitted(temperature=0.5)
    np.testing.assert_allclose(soft.transform(NEW), softmax(-distances, axis=1), atol=1e-5)
    np.testing.assert_allclose(soft.network_.prior_theta().numpy(), soft.transform(CORPUS).mean(0), atol=1e-6)


@pytest.mark.parametrize("method", ["kmeans", "gmm"])
def test_topics_against_brute_force(method):
    model = fitted(method=method)
    np.testing.assert_allclose(model.components_, weights_by_hand(COUNTS.tolist(), model.labels_.tolist()), atol=1e-6)
    by_weight = np.argsort(-model.components_, axis=1, kind="stable")[:, :5]
    np.testing.assert_array_equal(model.topic_ids(5, relevance=1), by_weight)


def test_a_cluster_without_words_has_those_of_all():
    topics = class_tf_idf(np.array([[2.0, 0.0], [0.0, 0.0], [1.0, 1.0]]))
    np.testing.assert_allclose(topics.sum(1), 1)
    average = 4 / 3
    weights = np.array([3 * math.log(1 + average / 3), math.log(1 + average)])
    np.testing.assert_allclose(topics[1], weights / weights.sum())


def test_a_mixture_has_the_responsibilities_of_scikit_learn():
    model = fitted(method="gmm", n_starts=1)
    theirs = GaussianMixture(N_GROUPS, covariance_type="diag", reg_covar=1e-5, random_state=SEED)
    theirs.fit(unit(VECTORS).astype(float))
    np.testing.assert_allclose(model.transform(NEW), theirs.predict_proba(unit(NEW_VECTORS)), atol=1e-3)
    assert model.history_[0]["loss"] == pytest.approx(-theirs.score(unit(VECTORS)), rel=1e-4)


def test_reduction_against_scikit_learn():
    model = fitted(reduction="pca", reduced_size=3)
    reducer = PCA(3, random_state=SEED).fit(unit(VECTORS))
    theirs = KMeans(N_GROUPS, n_init=10, random_state=SEED).fit(reducer.transform(unit(VECTORS)))
    found = theirs.predict(reducer.transform(unit(NEW_VECTORS)))
    assert adjusted_rand_score(found, model.transform(NEW).argmax(1)) == 1
    few = CORPUS[:6]  # fewer documents than axes
    assert fitted(few, n_topics=2, reduction="pca").transform(few).shape == (6, 2)


def test_umap_is_needed_only_if_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(MissingExtraError, match="maps"):
        fitted(reduction="umap")
    assert fitted().components_.shape == (N_GROUPS, N_WORDS)


def with_outliers():
    """Eight documents with one word of their own, and vectors that are far from all others."""
    far = np.vstack([VECTORS, 3 * np.eye(12)[4:12]]).astype(np.float32)
    counts = np.vstack([COUNTS, np.zeros((8, N_WORDS), np.int64)])
    counts[-8:, 7] = 50
    return tl.Corpus.from_counts(counts, vectors=far)


def test_outliers_add_no_words(caplog):
    corpus = with_outliers()
    with caplog.at_level(logging.INFO, "topicloom"):
        model = fitted(corpus, method="hdbscan", n_topics=9)
    theirs = HDBSCAN(min_cluster_size=10, copy=True).fit(unit(corpus.vectors)).labels_
    np.testing.assert_array_equal(model.labels_, theirs)
    assert (theirs[-8:] == -1).all()
    n_outliers = int((theirs < 0).sum())
    assert f"HDBSCAN finds 4 clusters; {n_outliers} of 208 documents are outliers, whose words no" in caplog.text
    inside = np.flatnonzero(theirs >= 0)
    counts = corpus.counts.toarray()[inside].tolist()
    np.testing.assert_allclose(model.components_, weights_by_hand(counts, theirs[inside].tolist()), atol=1e-6)
    assert model.transform(corpus).shape == (208, N_GROUPS)  # outliers have theta as others do
    assert model.get_params()["n_topics"] == 9


def test_clusters_beyond_n_topics_are_merged_by_their_centres():
    full, fewer = fitted(method="hdbscan", n_topics=9), fitted(method="hdbscan", n_topics=2)
    assert fewer.components_.shape == (2, N_WORDS)
    merged = {(before, after) for before, after in zip(full.labels_, fewer.labels_, strict=True) if before >= 0}
    assert len(merged) == N_GROUPS  # each cluster went into one topic
    np.testing.assert_array_equal(full.labels_ < 0, fewer.labels_ < 0)


def test_too_few_clusters_are_refused_in_a_sentence():
    noise = np.random.default_rng(0).normal(size=(40, 12)).astype(np.float32)
    with pytest.raises(InputError, match=r"HDBSCAN finds .* in 40 documents; try a lower `min_cluster_size`") as caught:
        fitted(tl.Corpus.from_counts(COUNTS[:40], vectors=noise), method="hdbscan")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"method": "gmm"},
        {"method": "hdbscan", "n_topics": 9},
        {"reduction": "pca", "reduced_size": 3},
        {"reduction": "pca", "method": "gmm"},
    ],
)
def test_a_saved_model_is_the_same_bit_for_bit(settings, tmp_path):
    model = fitted(**settings)
    model.save(tmp_path / "model")
    loaded = tl.load(tmp_path / "model", device="cpu")
    edited = model.merge([0, 2]).rename({1: "one"})
    edited.save(tmp_path / "edited")
    for one, other in ((model, loaded), (edited, tl.load(tmp_path / "edited", device="cpu"))):
        np.testing.assert_array_equal(one.transform(NEW), other.transform(NEW))
        np.testing.assert_array_equal(one.components_, other.components_)
    theta = model.transform(NEW)
    np.testing.assert_allclose(edited.transform(NEW)[:, 0], theta[:, 0] + theta[:, 2], atol=1e-6)


def test_theta_follows_vectors_alone(caplog):
    model = fitted()
    theta = model.transform(NEW)
    wordless = tl.Corpus.from_counts(np.zeros_like(NEW_COUNTS), vectors=NEW_VECTORS)
    np.testing.assert_array_equal(model.transform(wordless), theta)
    assert not caplog.messages
    some = NEW_VECTORS.copy()
    some[[3, 5]] = 0
    found = model.transform(tl.Corpus.from_counts(NEW_COUNTS, vectors=some))
    assert caplog.messages[1:] == ["2 of 200 documents have no vector; they get the model's average shares"]
    np.testing.assert_allclose(found[[3, 5]], np.tile(model.transform(CORPUS).mean(0), (2, 1)), atol=1e-6)
    np.testing.assert_allclose(np.delete(found, [3, 5], 0), np.delete(theta, [3, 5], 0), atol=1e-6)


def test_documents_without_words_or_vectors_teach_nothing():
    counts, vectors = np.vstack([COUNTS, COUNTS[:2]]), np.vstack([VECTORS, VECTORS[:2]])
    counts[-1], vectors[-2] = 0, 0
    model = fitted(tl.Corpus.from_counts(counts, vectors=vectors))
    np.testing.assert_array_equal(model.components_, fitted().components_)
    assert model.labels_[-2:].tolist() == [-1, -1]


def test_documents_without_vectors_are_refused():
    with pytest.raises(
        InputError, match="groups documents by their vectors, and these have none; give `encoder` or `vectors`"
    ):
        fitted(COUNTS)
    with pytest.raises(InputError, match="vectors"):
        fitted().transform(NEW_COUNTS)


def test_texts_are_encoded():
    texts = ["cat dog", "dog mouse", "cat mouse", "loan bank", "bank rate", "rate loan"] * 3

    def encode(texts):
        return np.array([[text.count("a") + 1, text.count("d") * 3, len(text) % 5] for text in texts], np.float32)

    model = tl.VectorClusters(2, random_state=0).fit(texts, encoder=encode)
    assert model.transform(texts).shape == (18, 2)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"seed_words": {0: ["w1"]}}, "cannot use `seed_words`"),
        ({"method": "dbscan"}, "`method` of VectorClusters"),
        ({"temperature": 0.0}, "`temperature` of VectorClusters should be greater than 0"),
    ],
)
def test_what_it_cannot_do_is_refused(settings, says):
    with pytest.raises(SettingError, match=says):
        fitted(**settings)


def test_it_has_no_perplexity_and_no_stream(tmp_path):
    model = fitted()
    for call_it in (model.perplexity, model.log_likelihood, model.score):
        with pytest.raises(SettingError, match="has no perplexity"):
            call_it(NEW)
    with pytest.raises(SettingError, match="has no perplexity; give an objective without log_perplexity"):
        tl.tune(CORPUS, tl.VectorClusters(), N_GROUPS, trials=1, space={"temperature": [0.1]})
    with pytest.raises(InputError, match="no partial_fit"):
        tl.VectorClusters(2).partial_fit(CORPUS)
    labelled = NEW.with_labels([f"g{k}" for k in NEW_GROUP])
    found = tl.evaluate(model, labelled, training=CORPUS.with_labels([f"g{k}" for k in GROUP]))
    assert found["purity"] > 0.95
    assert "has no perplexity" in found.skipped["perplexity_completion"]


@pytest.mark.parametrize(
    ("changed", "others", "where"),
    [
        ({"neighbour_tokens": 5}, {}, "in a model that groups documents by their vectors"),
        ({"neighbours": 5}, {}, "in a model that groups documents by their vectors"),
        ({"infer_with_neighbours": True}, {}, "in a model that groups documents by their vectors"),
        ({"temperature": 1.0}, {"method": "gmm"}, "with `method='gmm'` without `reduction='umap'`"),
        ({"reduced_size": 3}, {}, "without a `reduction`"),
        ({"n_starts": 1}, {"method": "hdbscan"}, "with `method='hdbscan'`"),
        ({"min_cluster_size": 20}, {}, "without `method='hdbscan'`"),
    ],
)
def test_settings_without_effect_give_a_warning(changed, others, where, caplog):
    usual = fitted(**others)
    assert not caplog.messages
    ((name, value),) = changed.items()
    model = fitted(**others, **changed)
    assert caplog.messages == [f"`{name}={value!r}` has no effect {where}"]
    np.testing.assert_array_equal(model.components_, usual.components_)
    np.testing.assert_array_equal(model.transform(CORPUS), usual.transform(CORPUS))


def test_settings_with_an_effect_give_no_warning(caplog):
    fitted(temperature=1.0, reduction="pca", reduced_size=3, n_starts=1, neighbour_tokens=0)
    fitted(method="hdbscan", min_cluster_size=20)
    assert not caplog.messages


def test_a_fit_goes_on_from_its_checkpoint(tmp_path):
    model = tl.VectorClusters(N_GROUPS, random_state=0).fit(CORPUS, checkpoint=tmp_path)
    again = tl.VectorClusters(N_GROUPS, random_state=0).fit(CORPUS, checkpoint=tmp_path)
    np.testing.assert_array_equal(model.components_, again.components_)
    assert again.history_ == model.history_
    with pytest.raises(InputError, match="no epochs can be added"):
        tl.VectorClusters(N_GROUPS, random_state=0).fit(CORPUS, checkpoint=tl.Checkpoints(tmp_path, more_epochs=5))


def test_compare_measures_it_beside_other_models():
    corpus = CORPUS.with_labels([f"g{k}" for k in GROUP])
    models = {"clusters": tl.VectorClusters(), "lda": tl.LDA(epochs=2)}
    found = tl.compare(corpus, models, n_topics=N_GROUPS, seeds=1)
    assert not found.failed
    assert found.values("purity", "clusters", N_GROUPS)[0] > 0.95
    assert np.isnan(found.values("perplexity_completion", "clusters", N_GROUPS)).all()
    assert "clusters" in found._repr_html_()


def test_the_command_line_trains_it(tmp_path):
    texts = [" ".join(f"w{'abcd'[v // 10]}{'abcdefghij'[v % 10]}" for v in np.flatnonzero(row)) for row in COUNTS]
    (tmp_path / "texts.txt").write_text("\n".join(texts), "utf-8")
    np.save(tmp_path / "vectors.npy", VECTORS)
    train = ["train", tmp_path / "texts.txt", "--model", "vectorclusters", "--topics", N_GROUPS]
    refused(*train, "--out", tmp_path / "none", says=["groups documents by their vectors"])
    call(*train, "--vectors", tmp_path / "vectors.npy", "--out", tmp_path / "run", "--seed", 0)
    model = tl.load(tmp_path / "run")
    corpus = tl.Corpus.from_texts(texts, language="en", min_df=1, vectors=VECTORS)
    assert adjusted_rand_score(model.transform(corpus).argmax(1), GROUP) > 0.9
