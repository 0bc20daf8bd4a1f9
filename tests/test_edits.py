"""Edits of topics: merged, dropped, renamed, reduced and split, on models, on views and in files."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import topicloom as tl
from batches import sparse_batch
from topicloom.nn.edited import Regroup, topic_counts
from topicloom.topics.edits import Numbering, checked_edits, numbers_in, read_edits, translated, write_edits

K = 6
PLANTED = tl.datasets.synthetic_lda(n_docs=300, n_topics=K, n_words=90, doc_length=50, random_state=1)
CORPUS = PLANTED.corpus


@pytest.fixture(scope="module")
def model() -> tl.GSM:
    return tl.GSM(n_topics=K, epochs=12, random_state=0, device="cpu").fit(CORPUS)


@pytest.fixture(scope="module")
def theta(model):
    return model.transform(CORPUS)


def close(a, b, tolerance=1e-5):
    np.testing.assert_allclose(a, b, atol=tolerance)


def are_distributions(model):
    close(model.transform(CORPUS).sum(axis=1), 1)
    close(model.components_.sum(axis=1), 1, 1e-4)
    assert (model.components_ >= 0).all()


def test_a_merge_adds_theta_and_averages_words_by_share(model, theta):
    before = copy.deepcopy(model.components_)
    merged = model.merge([4, 1], documents=CORPUS)
    found = merged.transform(CORPUS)
    close(found[:, 1], theta[:, 1] + theta[:, 4])
    close(found[:, [0, 2, 3, 4]], theta[:, [0, 2, 3, 5]])
    a, b = theta[:, 1].mean(), theta[:, 4].mean()
    close(merged.components_[1], (a * before[1] + b * before[4]) / (a + b))
    are_distributions(merged)
    np.testing.assert_array_equal(model.components_, before)  # the trained model is as it was
    assert len(model.edits) == 0


def test_without_documents_words_are_weighted_by_the_models_own_shares(model):
    shares = model.network_.prior_theta().detach().numpy()
    merged = model.merge([0, 2])
    close(merged.components_[0], (shares[[0, 2]] @ model.components_[[0, 2]]) / shares[[0, 2]].sum())


def test_documents_without_known_words_weight_no_words(model):
    expected = model.merge([0, 2]).components_
    for documents in ([], [["nothing", "known"]]):
        close(model.merge([0, 2], documents).components_, expected)
    some = CORPUS.counts[[4, 5, 6]].toarray()
    with_empty = np.concatenate([some, np.zeros((9, some.shape[1]))])
    close(model.merge([0, 2], with_empty).components_, model.merge([0, 2], some).components_)


def test_a_drop_normalises_the_rest(model, theta):
    dropped = model.drop(2)
    kept = np.delete(theta, 2, axis=1)
    total = kept.sum(axis=1, keepdims=True)
    enough = total[:, 0] >= 0.01
    close(dropped.transform(CORPUS)[enough], (kept / total)[enough])
    np.testing.assert_array_equal(dropped.topics(5), [words for k, words in enumerate(model.topics(5)) if k != 2])
    are_distributions(dropped)


def test_documents_of_dropped_topics_alone_get_the_average_shares():
    # Two groups of words that share nothing; LDA gives each document one of them almost entirely.
    counts = np.zeros((60, 9))
    for row in range(60):
        counts[row, 3 * (row % 3) : 3 * (row % 3) + 3] = 400
    lda = tl.LDA(n_topics=3, epochs=30, alpha=0.01, random_state=0).fit(counts)
    theta = lda.transform(counts)
    topic = int(theta[0].argmax())
    assert theta[0, topic] > 0.995
    dropped = lda.drop([topic])
    average = dropped.network_.prior_theta().numpy()
    close(dropped.transform(counts)[0], average)
    close(dropped.transform(counts)[0], dropped.transform(np.zeros((1, 9)))[0])


def test_names_move_with_their_topics(model):
    named = model.rename({0: "  shipping\nnews ", 5: "体育"})
    assert named.topic_names_[0] == "shipping news"
    assert named.topic_names_[5] == "体育"
    assert named.topic_names_[1] == ", ".join(model.topics(3)[1])
    merged = named.merge([3, 5]).drop(1)
    assert merged.topic_names_[2] == "体育"
    assert merged.rename({2: None}).given_names == ["shipping news", None, None, None]
    np.testing.assert_array_equal(named.transform(CORPUS), model.transform(CORPUS))
    assert named.perplexity(CORPUS) == model.perplexity(CORPUS)


def test_a_split_finds_the_topics_that_were_merged(model):
    merged = model.merge([1, 3], documents=CORPUS)
    parts = merged.split(1, into=2, documents=CORPUS)
    are_distributions(parts)
    unit = model.components_ / np.linalg.norm(model.components_, axis=1, keepdims=True)
    found = parts.components_[[1, K - 1]]
    similar = (found / np.linalg.norm(found, axis=1, keepdims=True)) @ unit[[1, 3]].T
    assert similar.max(axis=1).min() > 0.95
    assert sorted(similar.argmax(axis=1)) == [0, 1]
    both = parts.transform(CORPUS)[:, [1, K - 1]].sum(axis=1)
    close(both, merged.transform(CORPUS)[:, 1])
    assert parts.split(1, into=2, documents=CORPUS).n_topics == K + 1
    np.testing.assert_array_equal(
        merged.split(1, into=2, documents=CORPUS, random_state=0).components_, parts.components_
    )


def test_the_parts_of_a_topic_add_up_to_it(model):
    """Their mean by their shares is the topic, and their shares have the sum of its share."""
    before = model.network_.prior_theta().detach().numpy()
    parts = model.split(2, into=3, documents=CORPUS)
    shares, places = parts.network_.prior_theta().numpy(), [2, K, K + 1]
    close(shares[places].sum(), before[2])
    close(np.delete(shares, places), np.delete(before, 2))
    close(shares[places] @ parts.components_[places] / before[2], model.components_[2], 1e-4)
    assert sorted(shares[places], reverse=True) == shares[places].tolist()  # the largest part comes first


def test_the_division_of_counts_among_topics_equals_a_loop():
    random = np.random.default_rng(0)
    counts = CORPUS.counts[:7]
    theta, beta = random.dirichlet(np.ones(4), 7), random.dirichlet(np.ones(counts.shape[1]), 4)
    expected = []
    for d in range(7):
        for place in range(counts.indptr[d], counts.indptr[d + 1]):
            given_word = theta[d] * beta[:, counts.indices[place]]
            expected.append(counts.data[place] * given_word[2] / given_word.sum())
    batch = sparse_batch(counts, np.arange(7), torch.device("cpu"))
    tensors = (torch.from_numpy(each).float().contiguous() for each in (theta, beta.T))
    close(topic_counts(2, *tensors, batch.counts), expected)


def test_topics_without_documents_can_be_merged(model):
    """Their words then weigh the same; so do topics that are left of a model without any share."""
    step = Regroup(torch.tensor([0, 0, 1]), torch.zeros(3))
    topics = torch.tensor([[0.8, 0.2, 0.0], [0.2, 0.2, 0.6], [0.0, 0.5, 0.5]])
    close(step.words(topics), [[0.5, 0.2, 0.3], [0.0, 0.5, 0.5]])
    close(step.average(torch.zeros(3)), [0.5, 0.5])


def test_a_document_keeps_small_shares_after_a_drop():
    """One in a hundred is enough to go by; less is taken for noise."""
    step = Regroup(torch.tensor([0, 1, -1]), torch.full((3,), 1 / 3))
    theta = torch.tensor([[0.015, 0.005, 0.98], [0.004, 0.001, 0.995]])
    close(step.theta(theta, torch.tensor([0.4, 0.6])), [[0.75, 0.25], [0.4, 0.6]])


def test_a_merged_topic_has_the_first_of_two_names(model):
    named = model.rename({4: "later", 2: "sooner"})
    assert named.merge([4, 2]).given_names == [None, None, "sooner", None, None]
    assert named.split(2, into=2, documents=CORPUS).given_names == [None, None, None, None, "later", None, None]


def test_reduce_to_merges_topics_that_share_documents(model):
    """Without documents, it merges the two that are nearest by their words."""
    (by_words,) = model.reduce_to(K - 1).edits[-1]["groups"]
    others = [k for k in range(K) if k not in by_words]
    together = [by_words[0], others[0]]
    theta = np.eye(K, dtype=np.float32)[np.arange(len(CORPUS)) % K]
    theta[:, together] = theta[:, together].mean(axis=1, keepdims=True)  # these two are in the same documents
    documents = replace(model.infer(CORPUS), theta=theta)
    reduced, _ = model.apply_with([{"reduce_to": K - 1}], CORPUS, documents)
    assert reduced.edits[-1]["groups"] == [sorted(together)]


def test_reduce_to_merges_similar_topics(model):
    twin = model.split(0, into=2, documents=CORPUS)
    reduced = twin.reduce_to(3, documents=CORPUS)
    assert reduced.n_topics == 3
    are_distributions(reduced)
    groups = reduced.edits[-1]["groups"]
    assert sum(len(group) - 1 for group in groups) == len(twin.components_) - 3
    close(model.apply(reduced.edits, CORPUS).transform(CORPUS), reduced.transform(CORPUS))
    assert model.reduce_to(2).n_topics == 2


def test_edits_are_replayed_by_the_numbers_of_the_trained_model(model):
    edited = model.merge([1, 3], CORPUS).drop(4, CORPUS).split(1, 2, CORPUS).rename({4: "part", 0: "first"})
    assert edited.edits == [
        {"merge": [1, 3]},
        {"drop": [5]},
        {"split": 1, "into": 2, "random_state": 0},
        {"rename": {6: "part", 0: "first"}},
    ]
    again = model.apply(edited.edits, CORPUS)
    np.testing.assert_array_equal(again.components_, edited.components_)
    np.testing.assert_array_equal(again.transform(CORPUS), edited.transform(CORPUS))
    assert again.topic_names_ == edited.topic_names_
    assert again.merge([0, 4]).edits[-1] == {"merge": [0, 6]}
    edited.edits.clear()
    assert len(edited.edits) == 4


def test_a_merged_topic_is_dropped_by_all_its_numbers(model):
    edited = model.merge([1, 3], CORPUS).split(1, 2, CORPUS).merge([0, 5], CORPUS).drop([0, 1], CORPUS)
    assert edited.edits[2:] == [{"merge": [0, 6]}, {"drop": [0, 6, 1, 3]}]
    again = model.apply(edited.edits, CORPUS)
    np.testing.assert_array_equal(again.components_, edited.components_)


def test_parts_of_several_splits_have_numbers_of_their_own():
    twice = Numbering.start(3).after_split(into=3).after_split(into=2)
    assert (twice.numbers, twice.parts) == ((0, 1, 2, 3, 4, 5), 3)
    assert [twice.column(number) for number in range(6)] == list(range(6))
    merged = twice.regrouped(twice.merged([1, 5]))
    assert [merged.column(number) for number in range(6)] == [0, 1, 2, 3, 4, 1]
    assert merged.numbers == (0, 1, 2, 3, 4)


def test_all_edits_name_topics():
    edits = [{"merge": [0, 1]}, {"drop": [2]}, {"rename": {3: "a"}}, {"split": 4}, {"reduce_to": 2, "groups": [[5, 6]]}]
    assert numbers_in(checked_edits(edits)) == set(range(7))
    assert numbers_in(checked_edits([{"reduce_to": 2}])) == set()


def test_one_list_has_the_numbers_before_its_edits(model):
    once = model.apply([{"merge": [1, 3]}, {"drop": 5}, {"rename": {3: "one and three", 4: "four"}}])
    assert once.given_names == [None, "one and three", None, "four"]
    assert model.apply([{"split": 2, "into": 3}, {"merge": [6, 7]}, {"rename": {7: "b"}}], CORPUS).given_names == [
        *[None] * K,
        "b",
    ]


@pytest.mark.parametrize("name", ["GSM", "ProdLDA", "LDA", "Loom"])
def test_edited_models_are_saved_used_and_copied_like_others(name, tmp_path):
    kind = getattr(tl, name)
    trained = kind(n_topics=4, epochs=2, random_state=0, device="cpu").fit(CORPUS)
    edited = trained.merge([0, 1]).split(2, 2, CORPUS).rename({0: "a"})
    expected = edited.transform(CORPUS)
    edited.save(tmp_path / "model")
    loaded = tl.load(tmp_path / "model")
    for other in (loaded, pickle.loads(pickle.dumps(edited)), copy.deepcopy(edited)):
        close(other.transform(CORPUS), expected)
        assert (other.edits, other.topic_names_, other.fingerprint) == (
            edited.edits,
            edited.topic_names_,
            edited.fingerprint,
        )
    assert loaded.base_.fingerprint == trained.fingerprint
    assert loaded.drop(1).edits == edited.drop(1).edits
    close(loaded.drop(1).components_, edited.drop(1).components_)
    assert type(loaded.base_) is kind
    found = tl.evaluate(loaded, CORPUS)
    assert found["perplexity_completion"] > 1
    assert "perplexity_bound" in found.skipped
    assert loaded.latent(CORPUS)[0].shape[0] == len(CORPUS)
    assert json.loads((tmp_path / "model" / "config.json").read_text())["model"] == name
    saved = tl.topics.saved.read_topics(tmp_path / "model")
    close(saved.components, edited.components_)
    assert saved.names == ["a", None, None, None]
    first, last = loaded.interpolate(CORPUS[0], CORPUS[1], steps=3).theta[[0, -1]]
    close([first, last], expected[[0, 1]], 1e-4)


def test_edits_of_a_loaded_model_keep_its_tokenizer(tmp_path):
    def split(text):
        return text.split()

    corpus = tl.Corpus.from_texts(["A b c", "c d A", "b d"] * 5, tokenizer=split, min_df=1, max_df=1.0)
    tl.GSM(3, epochs=1, hidden_size=4, random_state=0, device="cpu").fit(corpus).drop(0).save(tmp_path / "model")
    loaded = tl.load(tmp_path / "model", tokenizer=split)
    close(loaded.rename({0: "x"}).transform(["A b"]), loaded.transform([["A", "b"]]))


def test_an_edited_model_is_not_trained(model):
    edited = model.drop(0)
    for train in (edited.fit, edited.partial_fit, edited.fit_transform):
        with pytest.raises(tl.InputError, match="an edited model cannot be trained; fit a new model"):
            train(CORPUS)


def test_a_view_is_edited_with_its_documents(model):
    topics = tl.Topics(model, CORPUS)
    edited = topics.merge([0, 1]).split(2, into=2).rename({1: "second"}).drop("second")
    assert len(edited) == len(topics) - 1
    close(edited.documents.theta, edited.model.transform(CORPUS), 1e-4)
    close(edited.shares, edited.documents.theta.mean(axis=0))
    assert len(topics) == K
    assert edited.model.base_.network_ is model.network_
    assert topics.reduce_to(3).n_topics == 3


def test_edits_are_replayed_on_next_months_model(model, tmp_path):
    last = tl.Topics(model, CORPUS).merge([0, 1]).rename({0: "both", 3: "three"})
    shuffled = PLANTED.corpus.subset(slice(0, 250))
    next_model = tl.GSM(n_topics=K, epochs=12, random_state=5, device="cpu").fit(shuffled)
    topics = tl.Topics(next_model, shuffled)
    partner = {pair.old: pair.topic for pair in topics.match(model).pairs}
    replayed = topics.replay(last)
    assert replayed.model.base_.network_ is next_model.network_
    assert replayed.edits == [
        {"merge": [partner[0], partner[1]]},
        {"rename": {partner[0]: "both", partner[4]: "three"}},
    ]
    assert sorted(name for name in replayed.model.given_names if name) == ["both", "three"]
    last.model.save(tmp_path / "last")
    assert topics.replay(tmp_path / "last").edits == replayed.edits
    for unedited in (model, tl.Topics(model, CORPUS)):
        with pytest.raises(tl.InputError, match="the topics of the other model have neither names nor other edits"):
            topics.replay(unedited)


def test_edits_of_a_model_with_other_words_are_not_replayed(model, caplog):
    last = tl.Topics(model, CORPUS).rename({0: "first"})
    words = [f"other{n}" for n in range(CORPUS.n_words - 1)] + CORPUS.vocabulary[-1:]
    foreign = tl.Corpus.from_counts(CORPUS.counts, words)
    other = tl.Topics(tl.GSM(n_topics=K, epochs=2, random_state=0, device="cpu").fit(foreign), foreign)
    with pytest.raises(
        tl.InputError, match=r"have only 1 word in common, with [0-9] % of .* replay the edits of a run of"
    ):
        other.replay(last)


def test_empty_documents_have_the_average_shares_after_edits(model):
    counts = CORPUS.counts[:5].toarray()
    counts[2] = 0
    edited = tl.Topics(model, counts).merge([0, 1]).split(0, into=2)
    close(edited.documents.theta[2], edited.model.network_.prior_theta().numpy())
    close(edited.model.transform(counts), edited.documents.theta, 1e-4)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ({"merge": list(range(K))}, "merging these topics would leave one topic of 6; at least 2 topics must remain"),
        ({"merge": [3]}, "`merge` names topic 3 alone; name at least two different topics"),
        ({"merge": [3, 3]}, "`merge` names topic 3 twice; name each topic once"),
        ({"merge": [3, 30]}, "there is no topic 30; the topics are 0 to 5"),
        ({"merge": "3,4"}, "`merge` needs the numbers of topics"),
        ({"merge": []}, "`merge` names no topic"),
        ({"drop": 6}, "there is no topic 6; the topics are 0 to 5"),
        ({"drop": -1}, "`drop` needs whole numbers from 0; -1 is not one"),
        ({"drop": True}, "`drop` needs whole numbers from 0; True is not one"),
        ({"drop": list(range(K))}, "dropping these topics would leave no topic of 6"),
        ({"drop": list(range(1, K))}, "would leave one topic of 6; at least 2"),
        ({"rename": {2: "  "}}, r"the name of topic 2 is empty; give it a name, or None \(null in"),
        ({"rename": {2: "x", 3: "x"}}, "the name 'x' would be that of topics 2 and 3"),
        ({"rename": {2: "x" * 201}}, "has 201 characters; give it at most 200"),
        ({"rename": {9: "x"}}, "there is no topic 9"),
        ({"rename": "x"}, "`rename` needs topics and names"),
        ({"reduce_to": K}, "`reduce_to` should be fewer than the 6 topics"),
        ({"reduce_to": 1}, "`reduce_to` should be a whole number from 2; it is 1"),
        ({"split": 2, "into": 1}, "`into` should be a whole number from 2"),
        ({"split": 2, "into": 2}, "topic 2 can be split only with documents"),
        ({"split": 2, "onto": 2}, "has no entry 'onto'; did you mean into"),
        ({"melt": 2}, "edit 0 has the entries 'melt'; give each edit one of merge"),
        ("merge", "edit 0 should be a dictionary such as .*; it is 'merge'"),
    ],
)
def test_mistakes_are_one_sentence(model, edit, message):
    with pytest.raises(tl.InputError, match=message) as error:
        model.apply([edit])
    assert "\n" not in str(error.value)


def test_duplicate_names_are_reported_with_their_edits(model):
    edits = [{"merge": [0, 1]}, {"drop": 2}, {"rename": {4: "x", 5: "x"}}]
    with pytest.raises(tl.InputError, match="the name 'x' would be that of topics 4 and 5"):
        model.apply(edits)


def test_later_edits_know_of_earlier_ones(model):
    with pytest.raises(tl.InputError, match="topic 3 was dropped by an earlier edit"):
        model.apply([{"drop": 3}, {"rename": {3: "x"}}])
    with pytest.raises(tl.InputError, match="topics 1 and 2, which are one already"):
        model.apply([{"merge": [1, 2]}, {"merge": [1, 2]}])
    with pytest.raises(
        tl.InputError,
        match="`drop` names topic 2, which another edit merges with 1; name 1 and 2 to drop them all, or take topic 2 ",
    ):
        model.apply([{"merge": [1, 2]}, {"drop": 2}])
    with pytest.raises(tl.InputError, match="topic 0, which another edit merges with 1; name 0, 1 and 2 to drop"):
        model.apply([{"reduce_to": 4, "groups": [[0, 2, 1]]}, {"drop": [0, 2]}])
    assert model.apply([{"merge": [1, 2]}, {"drop": [2, 1]}]).n_topics == K - 2
    with pytest.raises(tl.InputError, match="gives one topic two names"):
        model.apply([{"merge": [1, 2]}, {"rename": {1: "x", 2: "y"}}])


def test_too_few_documents_cannot_be_split(model):
    with pytest.raises(tl.InputError, match="too few documents have words of topic"):
        model.split(0, into=4, documents=CORPUS[:3])


def test_files_keep_edits_and_the_fingerprint(model, tmp_path):
    edits = checked_edits(
        [{"merge": (3, 4)}, {"drop": 5}, {"rename": {3: "1e5", 1: "no", 2: "体育：新闻", 0: None}}, {"reduce_to": 2}]
    )
    write_edits(tmp_path / "edits.yaml", edits, model.fingerprint)
    found = read_edits(tmp_path / "edits.yaml")
    assert found.edits == edits
    found.check(model.fingerprint, "edits.yaml")
    other = tl.GSM(n_topics=K, epochs=1, random_state=1, device="cpu").fit(CORPUS)
    with pytest.raises(tl.InputError, match=r"edits.yaml belongs to another model .*; replay the run of that model"):
        found.check(other.fingerprint, "edits.yaml")
    (tmp_path / "hand.yaml").write_text("edits:\n- merge: [1, 2]\n- split: 4\n  into: 3\n")
    by_hand = read_edits(tmp_path / "hand.yaml")
    assert by_hand.edits == [{"merge": [1, 2]}, {"split": 4, "into": 3, "random_state": 0}]
    by_hand.check(other.fingerprint, "hand.yaml")


def test_many_edits_keep_few_matrices(model):
    """Hundreds of edits of a large model must not keep the topics after each of them."""
    view = tl.Topics(model, CORPUS)
    for number in range(3):
        view = view.split(0, into=2, random_state=number) if number == 2 else view.merge([0, 1]).split(0, into=2)
    network = view.model.network_
    splits = sum(step.kind == "split" for step in network.steps)
    assert sum(beta_t.numel() > 0 for beta_t, _ in network.stages) == splits + 1
    close(view.documents.theta, view.model.transform(CORPUS), 1e-3)
    close(view.components.sum(axis=1), 1)


def test_names_cannot_change_a_terminal(model):
    assert model.rename({0: "red \x1b[31m\x07alarm", 1: "<b>", 2: "👩\u200d🔬"}).topic_names_[:3] == [
        "red [31m alarm",
        "<b>",
        "👩\u200d🔬",
    ]


def test_a_damaged_edited_model_is_one_sentence(model, tmp_path):
    model.merge([0, 1]).save(tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    config = json.loads(path.read_text())
    for damage in (
        {"steps": []},
        {"steps": ["split"]},
        {"columns": [[0, "x"]]},
        {"edits": [{"melt": 1}]},
        {"parts": None},
    ):
        path.write_text(json.dumps(config | {"edited": config["edited"] | damage}))
        with pytest.raises(tl.InputError, match=r"damaged|cannot be used") as error:
            tl.load(tmp_path / "model")
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("merge: [1, 2]\n", "should have the entry 'edits', a list, and may have 'model'"),
        ("- merge: [1, 2]\n", "should contain names with values, such as edits: \\[{merge: "),
        ("edits:\n- merge: [1, 1]\n", "bad.yaml: merge names topic 1 twice"),
        ("edits: [\n", "line .* is not valid YAML"),
        ("edits:\n- rename: {1: a, 1: b}\n", "occurs a second time"),
    ],
)
def test_bad_files_are_one_sentence(tmp_path: Path, text, message):
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(tl.InputError, match=message):
        read_edits(tmp_path / "bad.yaml")


def test_edits_of_another_model_follow_their_topics(model, caplog):
    edits = checked_edits(
        [{"merge": [0, 1]}, {"drop": [2]}, {"split": 3, "into": 2}, {"rename": {0: "a", 5: "b", 6: "part"}}]
    )
    result = translated(edits, {0: 4, 1: 2, 3: 0}, 6, 6)
    assert result.edits == [
        {"merge": [4, 2]},
        {"split": 0, "into": 2, "random_state": 0},
        {"rename": {4: "a", 6: "part"}},
    ]
    assert result.left_out == [
        "the old topic 2, which has no counterpart, is not dropped",
        'no topic has the name of these old ones, as none resembles them: 5 "b"',
    ]
    with caplog.at_level("WARNING", logger="topicloom"):
        edited = model.apply(edits, CORPUS, matching=[4, 2, None, 0, None, None])
    assert edited.given_names == [None, None, "a", None, None, "part"]
    assert "the old topic 2, which has no counterpart, is not dropped" in caplog.text


def test_merging_with_a_vanished_topic_keeps_the_name():
    later = translated([{"merge": [1, 3]}, {"rename": {1: "a"}}, {"drop": [1]}], {3: 0, 2: 1}, 4, 4)
    assert later.edits == [{"rename": {0: "a"}}, {"drop": [0]}]
    assert later.left_out == ["the old topic 1, which has no counterpart, is not merged"]
    sooner = translated([{"rename": {1: "a"}}, {"merge": [1, 3, 2]}], {3: 0, 2: 1}, 4, 4)
    assert sooner.edits == [{"rename": {0: "a"}}, {"merge": [0, 1]}]
    both = translated([{"rename": {1: "a", 3: "b"}}, {"reduce_to": 2, "groups": [[1, 3], [0, 2]]}], {3: 0, 2: 1}, 4, 4)
    assert both.edits == [{"rename": {0: "b"}}]
    assert translated([{"rename": {1: "a"}}, {"merge": [1, 0]}], {3: 0}, 4, 4).left_out[-1].endswith('1 "a"')


def test_replay_names_the_topics_that_resemble_the_old_ones_little(model, caplog, monkeypatch):
    last = tl.Topics(model, CORPUS).rename({3: "three"})
    shuffled = PLANTED.corpus.subset(slice(0, 250))
    topics = tl.Topics(tl.GSM(n_topics=K, epochs=12, random_state=5, device="cpu").fit(shuffled), shuffled)
    partner = {pair.old: pair for pair in topics.match(model).pairs}[3]
    with caplog.at_level("WARNING", logger="topicloom"):
        topics.replay(last)
        assert "resemble little" not in caplog.text
        monkeypatch.setattr("topicloom.topics.matching.WEAK_MATCH", 1.1)
        topics.replay(last)
    assert (
        f"resemble little (similarity in parentheses): {partner.topic} for 3 ({partner.similarity:.2f});" in caplog.text
    )
