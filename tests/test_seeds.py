"""Seeded topics: a topic that was given words is about them, and keeps its index."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest

from kinds import RELATIVES
from topicloom.datasets import synthetic_lda
from topicloom.errors import SettingError
from topicloom.models import BATM, ETM, GMNTM, GSM, LDA, MODELS, DirichletVAE
from topicloom.models.loading import load

N_TOPICS = 5
CORPUS, TOPICS, THETA = synthetic_lda(n_docs=400, n_topics=N_TOPICS, n_words=100, doc_length=60, alpha=0.1)
WORDS = CORPUS.vocabulary
PLACES = {3: 0, 1: 4}  # seeded topic -> planted topic


def best_words(planted, n_words=5):
    """The words that stand out in a planted topic."""
    lift = TOPICS[planted] / TOPICS.sum(0) * (TOPICS[planted] > np.sort(TOPICS[planted])[-10])
    return [WORDS[word] for word in np.argsort(-lift)[:n_words]]


SEEDS = {topic: best_words(planted) for topic, planted in PLACES.items()}
SMALL = {"epochs": 30, "batch_size": 64, "hidden_size": 32}  # where a model has them


def make(kind, **settings):
    known = kind().get_params()
    small = {name: value for name, value in SMALL.items() if name in known}
    return kind(N_TOPICS, **{"random_state": 0, "device": "cpu", "seed_words": SEEDS, **small, **settings})


QUICK = {"LDA": {"epochs": 5}}
SEEDED = [kind for kind in MODELS if not kind.needs_vectors]
SLOW = {*RELATIVES, BATM, DirichletVAE, ETM, GMNTM}
CASES = [
    pytest.param(
        partial(make, kind, **QUICK.get(kind.__name__, {})),
        id=kind.__name__,
        marks=pytest.mark.slow if kind in SLOW else (),
    )
    for kind in SEEDED
]
CASES += [
    pytest.param(
        partial(make, LDA, method="gibbs", epochs=60),
        id="LDA-gibbs",
        marks=pytest.mark.skipif(find_spec("tomotopy") is None, reason="needs tomotopy, of the extra eval"),
    ),
]


def nearest_planted(model, topic):
    return int(np.abs(TOPICS - model.components_[topic]).sum(axis=1).argmin())


@pytest.mark.parametrize("make_seeded", CASES)
def test_a_seeded_topic_keeps_its_place(make_seeded, tmp_path):
    model = make_seeded().fit(CORPUS)
    assert {topic: nearest_planted(model, topic) for topic in SEEDS} == PLACES
    theta = model.transform(CORPUS)
    for topic, planted in PLACES.items():
        assert np.corrcoef(theta[:, topic], THETA[:, planted])[0, 1] > 0.8
        assert len(set(model.topics(10)[topic]) - set(SEEDS[topic])) >= 5  # others than the seeds have followed
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model", device="cpu")
    assert loaded.get_params()["seed_words"] == SEEDS
    np.testing.assert_allclose(loaded.components_, model.components_, atol=1e-7)


@pytest.mark.parametrize("kind", SEEDED)
@pytest.mark.parametrize(
    ("seeds", "says"),
    [
        (
            {1: ["nosuch", WORDS[0]]},
            "outside the vocabulary: 'nosuch'; give other words, or keep these with a lower `min",
        ),
        (
            {1: [f"{WORDS[0]}s", "nosuch"]},
            rf"outside the vocabulary: '{WORDS[0]}s' \(did you mean {WORDS[0]}.*\?\), 'no",
        ),
        ({1: [WORDS[0].upper()]}, rf"outside the vocabulary: '{WORDS[0].upper()}' \(did you mean {WORDS[0]}\?\)"),
        ({N_TOPICS: [WORDS[0]]}, "`seed_words` names topic 5; topics are numbered 0 to 4"),
        ({-1: [WORDS[0]]}, "topic -1"),
        ([WORDS[0]], r"`seed_words` .* should be a dictionary such as {3: \["),
        ({1: []}, "`seed_words` has no words for topic 1; give some, or leave the topic out"),
        ({1: WORDS[0]}, r"`seed_words` .* should have a list at \[1\]; it is {1: "),
        ({"1": [WORDS[0]]}, "`seed_words` .* should have as keys a whole number"),
    ],
)
def test_seeds_that_cannot_be_are_refused_in_a_sentence(kind, seeds, says):
    with pytest.raises(SettingError, match=says) as caught:
        make(kind, seed_words=seeds).fit(CORPUS)
    assert "\n" not in str(caught.value)


def test_a_decoder_without_a_matrix_of_topics_takes_no_seeds():
    with pytest.raises(SettingError, match="no topic-word matrix to seed"):
        make(GSM, decoder="mlp").fit(CORPUS)


@pytest.mark.parametrize("kind", [GSM, LDA])
def test_a_word_may_be_given_to_two_topics(kind):
    shared = best_words(0, 1)
    model = make(kind, seed_words={0: shared, 1: shared}, epochs=2).fit(CORPUS)
    top = model.components_[:, WORDS.index(shared[0])].argsort()[::-1]
    assert set(top[:2]) == {0, 1}


def test_no_seeds_are_no_seeds():
    plain = make(LDA, seed_words=None, epochs=2).fit(CORPUS)
    np.testing.assert_array_equal(make(LDA, seed_words={}, epochs=2).fit(CORPUS).components_, plain.components_)


def test_a_stream_keeps_its_seeds():
    model = make(LDA)
    for start in range(0, 400, 50):
        model.partial_fit(CORPUS[start : start + 50])
    assert {topic: nearest_planted(model, topic) for topic in SEEDS} == PLACES
