"""The collapse watch: its figures by hand, its warnings on models that collapsed, its silence on others."""

from __future__ import annotations

import json
import logging
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import sparse

from topicloom.cli.shell import on_command_line
from topicloom.datasets import synthetic_lda
from topicloom.errors import InputError
from topicloom.metrics import duplicate_topics, topic_diversity
from topicloom.metrics.catalogue import CATALOGUE, measures_of
from topicloom.models import ECRTM, GSM, LDA, NVDM, DirichletVAE, ProdLDA
from topicloom.nn.network import TopicNetwork
from topicloom.nn.posteriors import Posterior
from topicloom.ranking import top_words, word_scores
from topicloom.training.batches import BatchReader
from topicloom.training.loop import evaluated
from topicloom.training.monitors import CollapseWatch

COLUMNS = set(measures_of("watch"))
PLANTED = synthetic_lda(n_docs=300, n_topics=5, n_words=250, doc_length=60)


class Given(Posterior, TopicNetwork):
    """A network, and its posterior, whose answers are given."""

    def __init__(self, theta, topic_word, divergence):
        super().__init__()
        self.theta, self.topics, self.kl = (torch.tensor(x).float() for x in (theta, topic_word, divergence))

    def posterior(self, batch):
        return self

    def point(self):
        return self.theta

    def divergence(self):
        return self.kl

    def topic_word(self):
        return self.topics

    def loss(self, batch): ...

    def log_likelihood(self, theta, batch): ...

    def prior_theta(self): ...


def watch(n_docs=4, n_words=60, n_topics=3, word_counts=None):
    counts = sparse.csr_array(np.ones((n_docs, n_words)))
    word_counts = np.arange(n_words, 0, -1) if word_counts is None else word_counts
    return CollapseWatch.of(BatchReader(counts, n_docs, torch.device("cpu")), word_counts, n_topics)


def test_an_infinite_divergence_can_be_stored():
    theta, topics = np.full((2, 3), 1 / 3), np.full((3, 60), 1 / 60)
    found = watch(n_docs=2)(Given(theta, topics, [[np.inf, 0.5, np.nan], [1.0, 0.5, 0.02]]))
    json.dumps(found, allow_nan=False)
    assert found["kl_per_dimension"][0] > 1e37
    assert found["kl_per_dimension"][1] == 0.5
    assert found["active_units_by_divergence"] == 3


def test_figures_by_hand():
    theta = [[0.6, 0.3, 0.1], [0.5, 0.4, 0.1], [0.9, 0.1, 0], [0.2, 0.8, 0]]  # the main topics are 0 and 1
    topics = np.zeros((3, 60))
    topics[0, :10] = topics[1, 2:12] = topics[2, 50:] = 0.1  # the first two share 8 words; the last is of rare ones
    kl = [[0.5, 0.0, 0.02], [1.5, 0.0, 0.0], [0.0, 0.02, 0.02], [0.0, 0.0, 0.0]]
    assert watch()(Given(theta, topics, kl)) == {
        "kl_per_dimension": [0.5, 0.005, 0.01],
        "active_units_by_divergence": 1,
        "active_topics": 2,
        "largest_share": pytest.approx(2.2 / 4),
        "topic_diversity": pytest.approx(37 / 75),
        "lowest_topic_diversity": pytest.approx(37 / 75),
        "duplicate_topics": 1,
        "frequent_mass": pytest.approx(2 / 3),
    }


def test_the_lowest_diversity_is_that_of_two_rankings():
    random = np.random.default_rng(0)
    word_counts, lower = random.geometric(0.01, 60), set()
    for _ in range(20):
        topics = random.dirichlet(np.full(60, 0.3), 3).astype(np.float32)
        own, relevant = (
            topic_diversity(top_words(word_scores(topics, word_counts, relevance), 25)) for relevance in (None, 0.6)
        )
        found = watch(word_counts=word_counts)(Given(np.eye(3), topics, np.zeros((3, 0))))
        assert (found["topic_diversity"], found["lowest_topic_diversity"]) == (own, min(own, relevant))
        lower.add(own < relevant if own != relevant else None)
    assert lower >= {True, False}


def test_a_posterior_without_a_divergence_has_no_units():
    found = watch()(Given(np.eye(3), np.full((3, 60), 1 / 60), np.zeros((3, 0))))
    assert found.keys() == COLUMNS - {"kl_per_dimension", "active_units_by_divergence"}


def test_an_error_of_a_measure_is_not_hidden(monkeypatch):
    def refuse(inputs):
        raise InputError("it cannot be measured")

    monkeypatch.setitem(CATALOGUE, "active_topics", replace(CATALOGUE["active_topics"], function=refuse))
    with pytest.raises(InputError, match="cannot be measured"):
        watch()(Given(np.full((4, 3), 1 / 3), np.full((3, 60), 1 / 60), np.zeros((4, 0))))


def test_duplicates_are_pairs_with_eight_words_of_ten():
    words = np.arange(10)
    assert duplicate_topics(np.stack([words, words + 2, words + 3, words + 30])) == 2  # 8 and 9 words; 0 and 3 share 7
    assert duplicate_topics(np.stack([words, words[::-1], words])) == 3
    assert duplicate_topics(np.stack([words[:5], words[1:6]])) == 1  # a vocabulary of few words: 4 of 5


def test_all_models_are_measured_by_the_same_code():
    for model in (GSM(5, epochs=1, random_state=0), LDA(5, epochs=2, random_state=0)):
        rows = model.fit(PLANTED.corpus).history_
        assert all(row.keys() >= COLUMNS for row in rows)
        again = model.collapse_watch(BatchReader(PLANTED.corpus.counts, 300, torch.device("cpu")))
        found = evaluated(model.network_, torch.device("cpu"), again)
        assert found == {name: rows[-1][name] for name in found}


def test_the_sampler_is_measured_at_its_end():
    pytest.importorskip("tomotopy")
    rows = LDA(5, method="gibbs", epochs=30, random_state=0).fit(PLANTED.corpus).history_
    assert [row.keys() >= COLUMNS for row in rows] == [False, False, True]


def test_the_sampler_refuses_more_tokens_than_fit_into_memory():
    pytest.importorskip("tomotopy")
    with pytest.raises(InputError, match=r'keeps every token in memory.*`method="variational"`'):
        LDA(2, method="gibbs").fit(np.full((8, 8), 2.0**24))


# Warnings.


def warnings_of(model, caplog, corpus=PLANTED.corpus):
    caplog.clear()
    with caplog.at_level(logging.WARNING, "topicloom"):
        model.fit(corpus)
    return caplog.messages


def test_healthy_models_are_silent(caplog):
    assert warnings_of(GSM(5, epochs=30, random_state=0), caplog) == []
    assert warnings_of(LDA(5, random_state=0), caplog) == []


def test_a_warning_names_the_setting_that_made_a_model_collapse(caplog):
    topics, duplicates, alike = warnings_of(GSM(5, epochs=20, weight_decay=10.0, random_state=0), caplog)
    assert topics.endswith(" of 5 topics are not the main topic of any document; try `weight_decay=0.0` or `epochs=60`")
    assert " of topics share at least 8 of their 10 top words; try `weight_decay=0.0`" in duplicates
    assert "the topics are alike: their 125 top words are only " in alike
    said = on_command_line(topics, ["--epochs", "--set"])
    assert said.endswith("; try --set weight_decay=0.0 or --epochs 60")


def test_a_small_corpus_gives_no_warning(caplog):
    assert warnings_of(GSM(5, epochs=2, weight_decay=1.0, random_state=0), caplog, PLANTED.corpus[:24]) == []
    few_words = synthetic_lda(n_docs=100, n_topics=2, n_words=30, doc_length=20).corpus
    warnings = warnings_of(GSM(4, weight_decay=1.0, random_state=0), caplog, few_words)
    assert not any("top words" in warning for warning in warnings)


def test_more_topics_than_documents_give_a_warning(caplog):
    more = "there are more topics (30) than documents (20); try `n_topics=4` or more documents"
    for model in (GSM(30, epochs=1, random_state=0), LDA(30, epochs=1, random_state=0)):
        assert warnings_of(model, caplog, PLANTED.corpus[:20]) == [more]
    one = "there are more topics (2) than documents (1); try more documents"
    assert warnings_of(GSM(2, epochs=1, random_state=0), caplog, PLANTED.corpus[:1]) == [one]
    assert warnings_of(GSM(2, epochs=1, random_state=0), caplog, PLANTED.corpus[:2]) == []


HEALTHY = {
    "epoch": 30, "active_topics": 5, "largest_share": 0.3, "duplicate_topics": 0, "topic_diversity": 0.9,
    "frequent_mass": 0.3,
}  # fmt: skip


def advice(model, **row):
    return list(watch(n_docs=50, n_words=250, n_topics=5).advice(model, HEALTHY | row))


@pytest.mark.parametrize("model", [GSM(5), LDA(5)])
def test_advice_names_settings_that_the_model_has(model):
    assert advice(model) == []
    collapsed = {"kl_per_dimension": [0.0] * 5, "active_units_by_divergence": 0, "active_topics": 1}
    sentences = advice(model, **collapsed, duplicate_topics=3, topic_diversity=0.2, frequent_mass=0.9)
    assert len(sentences) == 5
    starts = (
        "posterior collapse: only 0 of 5",
        "4 of 5 topics are no",
        "3 pairs",
        "the topics are alike: their 125 top words are only 25 different ones",
        "the 50 most frequent words have 90",
    )
    for sentence, start in zip(sentences, starts, strict=True):
        assert sentence.startswith(start)
        advised = [text.strip("`").split("=") for text in re.split(", | or ", sentence.partition("try ")[2])]
        now = model.get_params()
        assert advised
        assert all(repr(now[name]) != value for name, value in advised)
        options = on_command_line(sentence, ["--topics", "--epochs", "--remove-top", "--set"])
        assert "`" not in options
        for name, value in advised:
            option = {"n_topics": "--topics ", "epochs": "--epochs "}.get(name, f"--set {name}=")
            assert option + value in options


def test_topics_are_alike_only_if_the_vocabulary_allows_more_words():
    many = watch(n_docs=500, n_words=250, n_topics=100)  # 250 words can be a tenth of 2,500 top words
    healthy = HEALTHY | {"active_topics": 100}
    assert not list(many.advice(GSM(100), healthy | {"topic_diversity": 0.04}))
    (said,) = many.advice(GSM(100), healthy | {"topic_diversity": 0.02})
    assert said.startswith("the topics are alike: their 2,500 top words are only 50 different ones; try ")


def test_advice_comes_back_to_the_defaults_first():
    diversity = f"{(1 + GSM().min_diversity) / 2:.2f}"
    (said,) = advice(GSM(5, learning_rate=0.001, background=False, epochs=5), duplicate_topics=1, epoch=5)
    assert said == (
        "1 pair of topics shares at least 8 of their 10 top words; "
        f"try `background=True`, `learning_rate=0.01`, `min_diversity={diversity}` or `epochs=60`"
    )


def test_advice_names_the_start_and_the_norm_first():
    idle = {"kl_per_dimension": [0.0] * 5, "active_units_by_divergence": 0}
    (said,) = advice(GSM(5, background=False, code_norm="none", start="random"), **idle)
    assert "; try `start='clusters'`, `code_norm='mean'`, `background=True`" in said
    (said,) = advice(ECRTM(5), **idle)  # whose defaults are those of its paper
    assert "start" not in said
    assert "code_norm" not in said


@pytest.mark.parametrize(("n_docs", "length", "warns"), [(99, 1000, True), (98, 1000, False), (99, 100, False)])
def test_a_document_that_outweighs_many_others_gives_a_warning(n_docs, length, warns, caplog):
    random = np.random.default_rng(0)
    counts = np.vstack([random.multinomial(20, np.full(30, 1 / 30), n_docs), random.multinomial(length, np.eye(30)[3])])
    with caplog.at_level(logging.WARNING, "topicloom"):
        GSM(2, epochs=1, hidden_size=4, random_state=0).fit(counts)
    expected = f"document {n_docs} has 34 % of all tokens, so the topics follow it more than other documents"
    assert [expected in message for message in caplog.messages if "of all tokens" in message] == [True] * warns


def test_the_advised_weight_is_the_default_of_the_estimator():
    (said,) = advice(DirichletVAE(5, kl_weight=10.0), active_topics=1)
    assert said.endswith("; try `kl_weight=0.1` or `epochs=120`")
    (said,) = advice(DirichletVAE(5, kl_weight=10.0, estimator="laplace"), active_topics=1)
    assert "try `kl_weight=1.0` or" in said
    (said,) = advice(DirichletVAE(5), active_topics=1)
    assert "kl_weight" not in said


def test_the_advice_does_not_make_a_warm_up_shorter():
    idle = {"kl_per_dimension": [0.0] * 5, "active_units_by_divergence": 0}
    assert "kl_warmup" not in advice(GSM(5), **idle)[0]  # which has one of 45 epochs
    assert "try `kl_warmup=30`" in advice(GSM(5, kl_warmup=0.0), **idle)[0]


def test_early_stopping_leads_to_advice_on_patience_not_epochs():
    (said,) = advice(GSM(5, patience=4, epochs=60), duplicate_topics=1, epoch=30)
    assert "`patience=8`" in said
    assert "epochs" not in said
    (said,) = advice(GSM(5, patience=4, epochs=60), duplicate_topics=1, epoch=60)
    assert "`epochs=120`" in said


@pytest.mark.parametrize("kind", [NVDM, ProdLDA])
def test_advice_agrees_in_number_and_offers_separation_only_where_useful(kind):
    row = HEALTHY | {"active_topics": 14, "duplicate_topics": 3, "frequent_mass": 0.9}
    sentences = list(watch(n_docs=100, n_words=250, n_topics=20).advice(kind(20), row))
    assert [re.findall("`n_topics=.*?`", said) for said in sentences] == [["`n_topics=14`"]] * 3
    assert not any("min_diversity" in said for said in sentences)
    (said,) = watch(n_docs=100, n_words=250, n_topics=20).advice(
        kind(20, min_diversity=0.5), HEALTHY | {"duplicate_topics": 1, "active_topics": 20}
    )
    assert "try `min_diversity=0.0`" in said  # the default


def test_one_pair_more_is_one_topic_less():
    for pairs, n_topics in ((1, 19), (3, 18), (190, 2)):
        row = HEALTHY | {"active_topics": 20, "duplicate_topics": pairs}
        (said,) = watch(n_docs=100, n_words=250, n_topics=20).advice(LDA(20), row)
        assert f"`n_topics={n_topics}`" in said


@pytest.mark.parametrize(("mass", "warns"), [(0.67, False), (0.69, True)])
def test_too_many_frequent_words_means_halfway_from_corpus_to_all(mass, warns):
    usual = sum(range(201, 251)) / sum(range(1, 251))  # of the 50 most frequent words: .359
    assert (1 + usual) / 2 == pytest.approx(0.68, abs=0.001)
    assert bool(advice(GSM(5), frequent_mass=mass)) == warns


@pytest.mark.parametrize(("share", "n_topics", "warns"), [(0.31, 20, True), (0.29, 20, False), (0.45, 10, False)])
def test_a_topic_that_swallows_the_corpus_is_named(share, n_topics, warns):
    row = HEALTHY | {"active_topics": n_topics, "largest_share": share}
    for kind, remedies in ((GSM, "`learn_shares=False` or `n_topics=40`"), (LDA, "`n_topics=40`")):
        said = list(watch(n_docs=100, n_words=250, n_topics=n_topics).advice(kind(n_topics), row))
        start = "one topic has 31% of the text, and equal shares would be 5%; if the texts do not explain it, try "
        assert said == [start + remedies] * warns


def test_training_keeps_topics_as_diverse_as_requested():
    corpus = synthetic_lda(n_docs=400, n_topics=4, n_words=1000, doc_length=40, random_state=1).corpus
    ends = {}
    for asked in (0.0, 0.95):
        model = GSM(8, min_diversity=asked, epochs=25, random_state=0, device="cpu").fit(corpus)
        ends[asked] = model.history_[-1]["lowest_topic_diversity"]
        weights = [row.get("separation_weight") for row in model.history_]
        assert (weights == [None] * 25) == (asked == 0)
    assert ends[0.95] > ends[0.0] + 0.03
