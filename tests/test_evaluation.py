"""Evaluation of a fitted model: what is measured, on which documents, and what is said where it cannot be."""

from __future__ import annotations

import errno
import json
import shutil
from itertools import combinations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import normalized_mutual_info_score

import topicloom as tl
from command_line import call, refused
from topicloom import metrics
from topicloom.metrics.catalogue import measures_of
from topicloom.models.refitting import documents_of_fit, refit

PETS = "the cat and the dog see a vet , animals and pets eat fish every day at home"
MONEY = "the stock and the bond market move , banks and money earn interest in every year"
RANDOM = np.random.default_rng(0)


def texts(n, seed):
    """Texts of some words of one subject, in any order; the even ones are about pets."""
    random = np.random.default_rng(seed)
    words = [PETS.split(), MONEY.split()]
    return [" ".join(random.choice(words[row % 2], 12)) for row in range(n)]


TRAIN, TEST = texts(60, seed=1), [*texts(20, seed=2), "unheard of"]
LABELS = ["pets", "money"] * 10 + ["pets"]
CORPUS = tl.Corpus.from_texts(TRAIN, language="en", min_df=2, max_df=1.0, labels=["pets", "money"] * 30)
MEASURES = measures_of("evaluation")
OF_WORD_VECTORS = {name for name, measure in MEASURES.items() if "word vectors" in measure.needs}
NEEDS = OF_WORD_VECTORS | {"pooled_npmi", "returning_topics"}
WINDOWED = {name for name, measure in MEASURES.items() if "token order" in measure.needs}


@pytest.fixture(scope="module")
def model():
    return tl.GSM(3, epochs=20, random_state=0).fit(CORPUS)


def whole(found):
    """All figures are finite and go into JSON with their settings."""
    said = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert all(np.isfinite(value) for value in found.values())
    assert all(np.isfinite(figure["value"]) for figure in said["measures"].values())
    return said


def test_all_of_it(model):
    found = tl.evaluate(model, TEST, labels=LABELS, training=CORPUS)
    assert set(found) == set(MEASURES) - NEEDS
    assert set(found.skipped) == NEEDS
    said = whole(found)
    assert (said["documents"], said["empty_documents"], said["held_out"]) == (21, 1, True)
    assert said["measures"]["c_v"]["window"] == 110
    assert said["measures"]["active_topics"]["value"] == metrics.active_topics(model.transform(TEST))


def test_figures_are_those_of_the_functions(model):
    found = tl.evaluate(model, TEST, labels=LABELS, training=CORPUS)
    words, ids, theta = model.topics(25), model.topic_ids(25), model.transform(TEST)
    tokens = [CORPUS.tokenizer(text) for text in TRAIN]
    expected = {
        "document_npmi": metrics.document_npmi(ids, CORPUS.counts),
        "c_v": metrics.c_v(words, tokens),
        "c_npmi": metrics.c_npmi(words, tokens),
        "c_uci": metrics.c_uci(words, tokens),
        "u_mass": metrics.u_mass(words, tokens),
        "topic_diversity": metrics.topic_diversity(ids),
        "topic_uniqueness": metrics.topic_uniqueness(ids),
        "inverted_rbo": metrics.inverted_rbo(ids),
        "perplexity_completion": model.perplexity(TEST),
        "perplexity_bound": model.perplexity(TEST, method="bound"),
        "perplexity_bound_by_document": model.perplexity(TEST, method="bound", average="document"),
        "purity": metrics.purity(LABELS, theta.argmax(axis=1)),
        "accuracy": metrics.classification_accuracy(model.transform(CORPUS), CORPUS.labels, theta, LABELS),
    }
    for name, value in expected.items():
        assert float(found[name]) == pytest.approx(float(value), abs=1e-9), name
    assert found["perplexity_bound"] != pytest.approx(float(found["perplexity_bound_by_document"]))
    divergence = model.latent(TEST[:-1])[1]
    assert found["kl_per_dimension"].per_dimension == pytest.approx(divergence.mean(axis=0), rel=1e-5)


def test_what_a_model_says_of_each_document(model):
    counts = model.encode(TEST)
    assert (counts != CORPUS.encode(TEST)).nnz == 0
    logs, tokens = model.log_likelihood(TEST, method="bound")
    np.testing.assert_array_equal(tokens, counts.sum(axis=1))
    said = tokens > 0  # all but the last
    assert said.sum() == 20
    by_corpus, by_document = -logs[said].sum() / tokens[said].sum(), -(logs[said] / tokens[said]).mean()
    assert np.log(model.perplexity(TEST, method="bound")) == pytest.approx(by_corpus)
    assert np.log(model.perplexity(TEST, method="bound", average="document")) == pytest.approx(by_document)
    exact = tl.LDA(3, epochs=3, random_state=0).fit(CORPUS)  # whose bound has no noise
    more = exact.perplexity([*TEST, "unheard of", ""], method="bound")
    assert more == pytest.approx(exact.perplexity(TEST[:20], method="bound"))
    halves, scored = model.log_likelihood(TEST)
    assert 0 < scored.sum() < tokens.sum()
    assert np.log(model.perplexity(TEST)) == pytest.approx(-halves.sum() / scored.sum())
    assert model.score(TEST) == pytest.approx(halves.sum() / scored.sum())
    with pytest.raises(tl.InputError, match='"corpus" or "document"'):
        model.perplexity(TEST, average="word")


def test_completion_scores_the_tokens_that_theta_was_not_inferred_from(model):
    observed, scored = (half.toarray() for half in metrics.completion_split(model.encode(TEST)))
    theta = model.transform(observed)
    expected = (scored * np.log(theta @ model.components_)).sum(axis=1)
    logs, tokens = model.log_likelihood(TEST)
    np.testing.assert_allclose(logs, expected, rtol=1e-4)
    np.testing.assert_array_equal(tokens, scored.sum(axis=1))


def test_what_coherence_is_measured_against(model):
    given, trained, other = (
        tl.evaluate(model, TEST, measures=["document_npmi", "c_v", "perplexity_bound"], **corpora)
        for corpora in ({}, {"training": TRAIN}, {"training": TRAIN, "reference": [["cat", "dog"], ["cat", "market"]]})
    )
    names = [found.about["coherence_against"] for found in (given, trained, other)]
    assert names == ["the documents given", "the training corpus", "the reference"]
    assert [found["c_v"].settings["n_documents"] for found in (given, trained, other)] == [20, 60, 2]
    assert given["perplexity_bound"] == trained["perplexity_bound"] == other["perplexity_bound"]
    assert given["document_npmi"] != trained["document_npmi"]
    assert "cat" not in other["c_v"].unseen
    assert len(other["c_v"].unseen) > 10

    counted = metrics.Reference.from_counts(CORPUS.counts, CORPUS.vocabulary, name="the news")
    found = tl.evaluate(model, TEST, reference=counted)
    assert found.about["coherence_against"] == "the news"
    assert found["document_npmi"] == trained["document_npmi"]
    assert set(found.skipped) >= WINDOWED
    assert "the news" in found.skipped["c_v"]


def test_the_order_of_words_is_known_where_texts_are(model, tmp_path):
    CORPUS.save(tmp_path / "kept")
    tokens = [CORPUS.tokenizer(text) for text in TRAIN]
    same = [
        CORPUS,
        tl.Corpus.load(tmp_path / "kept"),
        TRAIN,
        tokens,
        iter(TRAIN),
        tl.metrics.Reference.from_tokens(tokens),
    ]
    values = {float(tl.evaluate(model, TEST, reference=known, measures=["c_v"])["c_v"]) for known in same}
    assert len(values) == 1
    without = tl.Corpus.from_texts(TRAIN, language="en", min_df=2, max_df=1.0, keep_texts=False)
    for unknown in (without, CORPUS.counts, tl.Corpus.from_counts(CORPUS.counts, CORPUS.vocabulary, texts=TRAIN)):
        found = tl.evaluate(model, unknown)
        assert set(found.skipped) >= WINDOWED
        assert set(found) >= {"document_npmi", "u_mass"}


def test_labels(model):
    for labels in (None, [None] * 21, [""] * 21):
        found = tl.evaluate(model, TEST, labels=labels)
        assert {name: found.skipped[name] for name in ("purity", "nmi", "ari", "accuracy")} == dict.fromkeys(
            ("purity", "nmi", "ari", "accuracy"), "no labels were given"
        )
    some = [label if row % 3 else None for row, label in enumerate(LABELS)]
    assert tl.evaluate(model, TEST, labels=some)["purity"].settings["documents"] == 13  # and one without a known word
    assert tl.evaluate(model, CORPUS)["accuracy"].settings["folds"] == 5  # of its own labels
    assert tl.evaluate(model, TEST, labels=LABELS, training=TRAIN)["accuracy"].settings["folds"] == 5
    whole(tl.evaluate(model, TEST, labels=["one"] * 21))
    whole(tl.evaluate(model, TEST, labels=range(21), training=CORPUS))  # classes that training lacks
    with pytest.raises(tl.InputError, match="2 labels and 21 documents"):
        tl.evaluate(model, TEST, labels=["pets", "money"])


def test_vectors(model):
    vectors = tl.WordVectors(CORPUS.vocabulary, RANDOM.normal(size=(len(CORPUS.vocabulary), 5)))
    found = tl.evaluate(model, TEST, word_vectors=vectors, measures=sorted(OF_WORD_VECTORS), top_n=4)
    words = model.topics(4)
    assert float(found["c_w2v"]) == pytest.approx(float(metrics.c_w2v(words, vectors)))
    assert found["embedding_diversity"] == metrics.embedding_diversity(words, vectors)
    assert found["embedding_diversity"].settings["top_n"] == 4


def test_words_of_a_topic_and_their_ranking(model):
    found = tl.evaluate(model, TEST, top_n=5, relevance=1.0)
    assert {found[name].settings["top_n"] for name in set(measures_of("monitor")) - {"c_w2v"}} == {5}
    assert found["topic_diversity"] == metrics.topic_diversity(model.topics(5, relevance=1.0))
    assert found.about["relevance"] == 1.0


def test_documents_without_words(model):
    found = tl.evaluate(model, ["unheard of", ""], labels=["a", "b"], training=CORPUS)
    whole(found)
    assert "no document has a word" in found.skipped["perplexity_bound"]
    assert found.about["empty_documents"] == 2
    whole(tl.evaluate(model, ["unheard of", ""]))  # coherence against nothing


def test_documents_without_words_do_not_change_coherence(tmp_path):
    """A comparison leaves them out; NPMI is computed by hand from the others."""
    some = [" ".join(text.split()[:4]) for text in TRAIN]
    blank = [*some, "", "unheard of", *[""] * 20]
    corpus = tl.Corpus.from_texts(blank, language="en", min_df=2, max_df=1.0)
    found = tl.compare(None, ["lda:epochs=5"], 3, 1, split=(corpus,) * 3, out=tmp_path, keep_models=True)
    model = found.load_model("lda:epochs=5", 3)
    evaluation = tl.evaluate(model, corpus)
    for name in ("document_npmi", "c_v", "c_npmi", "c_uci"):
        if name in found.measures:
            assert found.rows[0]["measures"]["test"][name] == float(evaluation[name])
        assert evaluation[name] == tl.evaluate(model, some)[name]
    documents = [set(row) for row in map(corpus.tokenizer, some) if set(row) & set(corpus.vocabulary)]
    values = []
    for topic in model.topics(10):
        for one, other in combinations(topic, 2):
            p, q = (np.mean([word in each for each in documents]) for word in (one, other))
            both = np.mean([{one, other} <= each for each in documents])
            values.append(np.log(both / (p * q)) / -np.log(both) if both else -1)
    assert float(evaluation["document_npmi"]) == pytest.approx(np.mean(values))
    whole = tl.evaluate(model, corpus, reference=corpus)  # a reference of one's own counts as it is
    assert whole["document_npmi"].settings["n_documents"] == len(blank)
    assert whole["document_npmi"] > evaluation["document_npmi"]


def test_documents_without_words_have_no_topic_to_measure(tmp_path):
    """A comparison leaves them out; the measures of classes are computed by scikit-learn from the others."""
    some = [" ".join(text.split()[:4]) for text in TRAIN]
    labels = [*CORPUS.labels, *["pets", "money", "weather"] * 4]
    corpus = tl.Corpus.from_texts([*some, *[""] * 12], language="en", min_df=2, max_df=1.0, labels=labels)
    found = tl.compare(None, ["lda:epochs=5"], 3, 1, split=(corpus,) * 3, out=tmp_path, keep_models=True)
    model = found.load_model("lda:epochs=5", 3)
    evaluation = tl.evaluate(model, corpus, training=corpus)
    for name in ("purity", "nmi", "ari", "accuracy", "active_topics"):
        assert found.rows[0]["measures"]["test"][name] == float(evaluation[name])
    known = np.asarray(corpus.counts.sum(axis=1)).ravel() > 0
    theta, classes = model.transform(corpus)[known], np.array(labels)[known]
    assert evaluation["nmi"] == pytest.approx(normalized_mutual_info_score(classes, theta.argmax(axis=1)))
    classifier = LogisticRegression(C=10, max_iter=2000).fit(theta, classes)
    assert evaluation["accuracy"] == pytest.approx(classifier.score(theta, classes))
    assert evaluation["largest_share"] == pytest.approx(theta.mean(axis=0).max())
    assert evaluation["nmi"].settings["documents"] == known.sum() < len(labels)


def test_documents_with_a_vector_alone_have_a_topic():
    counts, vectors = np.tile(np.eye(2, dtype=int), (10, 1)), np.tile(np.eye(2, 3), (10, 1))
    model = tl.VectorClusters(2, random_state=0, device="cpu").fit(tl.Corpus.from_counts(counts, vectors=vectors))
    counts[:2], counts[2:4], vectors[2:4] = 0, 0, 0
    given = tl.Corpus.from_counts(counts, model.vocabulary_, vectors=vectors, labels=["one", "two"] * 10)
    purity = tl.evaluate(model, given)["purity"]
    assert (float(purity), purity.settings["documents"]) == (1.0, 18)


def test_one_document_is_named_in_the_singular(model, caplog):
    title = tl.evaluate(model, TEST[:1], training=CORPUS, measures=["topic_diversity"]).title
    assert "3 topics: 1 held-out document (0 without a known word)" in title
    tl.Corpus.from_texts(["cat dog", "?"], language="en", min_df=1, max_df=1.0)
    assert caplog.messages == ["1 of 2 documents has no word of the vocabulary; it keeps its row"]


def test_weights_have_a_completion():
    weights = sparse.csr_array(CORPUS.counts * 0.5)
    model = tl.GSM(2, epochs=1, fractional_counts=True, random_state=0).fit(weights)
    found = tl.evaluate(model, weights)
    assert found["perplexity_completion"] == model.perplexity(weights) > 1
    assert found["perplexity_bound"] > 1


def test_a_model_of_presence_has_no_bound_perplexity():
    model = tl.GSM(2, epochs=1, criterion="bernoulli", random_state=0).fit(CORPUS)
    found = tl.evaluate(model, CORPUS)
    assert found["perplexity_completion"] == model.perplexity(CORPUS)
    assert {"perplexity_bound", "perplexity_bound_by_document"} <= set(found.skipped)
    assert 'method="completion"' in found.skipped["perplexity_bound"]
    with pytest.raises(tl.InputError, match=r"perplexity_bound cannot be measured: .*cross_entropy"):
        tl.evaluate(model, CORPUS, measures=["perplexity_bound"])


@pytest.mark.parametrize("kind", [kind for kind in tl.MODELS if not kind.needs_vectors])
def test_every_model_can_be_evaluated(kind):
    model = kind(2, epochs=2, random_state=0).fit(CORPUS)
    found = tl.evaluate(model, CORPUS)
    whole(found)
    coded = {"kl_per_dimension", "active_units_by_divergence", "active_units_by_variance"}
    assert set(MEASURES) - set(found) <= coded | NEEDS
    assert ("kl_per_dimension" in found) == ("kl_per_dimension" in model.history_[-1])
    mean, divergence = model.latent(CORPUS)
    assert (len(mean), len(divergence)) == (60, 60)
    assert mean.shape[1] >= 2
    assert divergence.shape[1] in (0, mean.shape[1], mean.shape[1] + 1)  # GMNTM's has a column more, of the component
    if divergence.size:  # the watch sees all documents of so small a corpus
        assert divergence.mean(axis=0) == pytest.approx(model.history_[-1]["kl_per_dimension"], abs=1e-4)


def test_it_is_shown_with_a_line_for_each(model, monkeypatch, capsys):
    from topicloom.cli.shell import print_evaluation

    monkeypatch.setenv("COLUMNS", "150")
    found = tl.evaluate(model, TEST)
    print_evaluation(found)
    for shown in (capsys.readouterr().out, repr(found)):
        lines = shown.strip().splitlines()
        for name in MEASURES:
            assert sum(line.split()[0] == name for line in lines) == 1
        assert any("c_npmi" in line and "window 10" in line for line in lines)
        assert lines[0].strip() == (
            "GSM, 3 topics: 21 documents (1 without a known word); coherence against the documents given"
        )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"measures": ["c_w"]}, "unknown measure 'c_w' in `measures`; did you mean"),
        ({"measures": "c_v"}, "list of measures"),
        ({"measures": ["purity"]}, "purity cannot be measured: no labels were given"),
        ({"measures": ["c_w2v"]}, "no word vectors"),
        ({"top_n": 0}, "`top_n=0` should be a whole number"),
        ({"relevance": 2}, "`relevance` should be from 0 to 1"),
    ],
)
def test_what_cannot_be_is_said(model, options, says):
    with pytest.raises(tl.InputError, match=says):
        tl.evaluate(model, TEST, **options)


def test_a_model_that_is_not_fitted_or_none():
    with pytest.raises(tl.InputError, match="this GSM is not fitted yet; call fit before evaluate"):
        tl.evaluate(tl.GSM(3), CORPUS)
    with pytest.raises(tl.InputError, match="`model` should be a fitted topic model; it is of type list"):
        tl.evaluate([], CORPUS)


def test_the_table_has_plain_rows(model):
    rows = {row["name"]: row for row in tl.evaluate(model, TEST).table()}
    assert json.loads(json.dumps(rows)) == rows
    assert set(rows) == set(MEASURES)
    assert rows["c_npmi"]["title"] == "C_NPMI"
    assert rows["c_npmi"]["settings"]["window"] == 10
    assert rows["c_npmi"]["skipped"] is None
    assert isinstance(rows["active_topics"]["value"], int)
    assert (rows["purity"]["value"], rows["purity"]["skipped"]) == (None, "no labels were given")


def test_a_topics_own_values_are_there(model):
    found = tl.evaluate(model, TEST)
    for name in ("document_npmi", "c_v", "c_npmi", "c_uci", "u_mass"):
        assert found[name] == pytest.approx(found[name].per_topic.mean())
        assert len(found.to_dict()["measures"][name]["per_topic"]) == 3


def test_a_single_text_is_no_list(model):
    with pytest.raises(tl.InputError, match="list of texts"):
        tl.evaluate(model, "one text")


# The command.


def write_jsonl(path, documents, labels):
    lines = (json.dumps({"body": text, "class": label}) for text, label in zip(documents, labels, strict=True))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def run(tmp_path):
    """A run, and what it was trained on beside it."""
    write_jsonl(tmp_path / "train.jsonl", TRAIN, ["pets", "money"] * 30)
    columns = ("--text", "body", "--label", "class")
    made = call("train", tmp_path / "train.jsonl", *columns, "--model", "gsm", "--topics", 2, "--epochs", 3,
                "--max-df", "1.0", "--out", tmp_path / "run", "--quiet")  # fmt: skip
    assert made.exit_code == 0, made.output
    return tmp_path / "run"


def evaluations(run):
    return json.loads((run / "metrics.json").read_text())["evaluations"]


def test_a_run_is_measured_on_what_it_was_trained_on(run):
    before = json.loads((run / "metrics.json").read_text())
    result = call("evaluate", run)
    assert result.exit_code == 0, result.output
    assert str(run / "metrics.json") in result.stderr
    after = json.loads((run / "metrics.json").read_text())
    assert {name: after[name] for name in before} == before | {"sha256": after["sha256"]}
    found = evaluations(run)["training"]
    assert set(found["measures"]) == set(MEASURES) - NEEDS
    assert (found["documents"], found["held_out"]) == (60, False)
    assert found["measures"]["accuracy"]["folds"] == 5
    assert found["measures"]["document_npmi"]["value"] == pytest.approx(before["document_npmi"])
    assert found["measures"]["perplexity_bound"]["value"] == pytest.approx(before["perplexity_bound_training"])
    lines = [line.split() for line in result.stdout.splitlines()]
    shown = {line[0]: line[1] for line in lines if len(line) > 1}
    assert shown["c_npmi"] == f"{found['measures']['c_npmi']['value']:.4f}"


def test_metrics_json_has_one_definition_of_diversity(run):
    found = json.loads((run / "metrics.json").read_text())
    assert found["topic_diversity"] == found["final"]["topic_diversity"]
    assert found["final"]["lowest_topic_diversity"] <= found["topic_diversity"]


def test_a_run_is_measured_on_new_texts(run, tmp_path):
    write_jsonl(tmp_path / "test.jsonl", TEST, LABELS)
    (tmp_path / "test.txt").write_text("\n".join(TEST) + "\n", encoding="utf-8")
    (tmp_path / "labels.txt").write_text("\n".join([f"{LABELS[0]}\u2028", *LABELS[1:]]) + "\n", encoding="utf-8")
    columns = ("--text", "body", "--label", "class")
    result = call("evaluate", run, tmp_path / "test.jsonl", *columns, "--json", "--quiet")
    assert (result.exit_code, result.stderr) == (0, "")
    said = json.loads(result.stdout)
    assert (said["documents"], said["held_out"], said["coherence_against"]) == (21, True, "the training corpus")
    assert said["measures"]["accuracy"]["training_documents"] == 60
    model = tl.load(run)
    assert said["measures"]["perplexity_completion"]["value"] == pytest.approx(
        model.perplexity(TEST, method="completion")
    )
    assert call("evaluate", run, tmp_path / "test.txt", "--labels", tmp_path / "labels.txt").exit_code == 0
    assert call("evaluate", run).exit_code == 0
    found = evaluations(run)
    assert list(found) == [str(tmp_path / "test.jsonl"), str(tmp_path / "test.txt"), "training"]
    one, other, _ = found.values()
    assert one["measures"] == other["measures"]
    assert one["measures"]["c_v"] == found["training"]["measures"]["c_v"] | {"reference": "the training corpus"}


def test_texts_that_the_model_does_not_know_are_refused(run, tmp_path):
    (tmp_path / "other.txt").write_text("新闻报道\n" * 30, encoding="utf-8")
    says = ["30 of the 30 documents contain no word", "look Chinese (zh)", "trained on English (en)", "--force"]
    refused("evaluate", run, tmp_path / "other.txt", says=says)
    (tmp_path / "mixed.txt").write_text("新闻报道\n" * 30 + f"{TEST[0]}\n" * 10, encoding="utf-8")
    refused("evaluate", run, tmp_path / "mixed.txt", says=["30 of the 40 documents contain no word"])
    assert "evaluations" not in json.loads((run / "metrics.json").read_text())
    assert call("evaluate", run, tmp_path / "mixed.txt", "--force").exit_code == 0
    tl.Corpus.from_file(tmp_path / "mixed.txt", language="zh", min_df=1, max_df=1.0).save(tmp_path / "corpus")
    refused("evaluate", run, tmp_path / "corpus", says=["30 of the 40 documents contain no word", "Chinese"])


def test_a_reference_and_vectors(run, tmp_path):
    tl.Corpus.from_texts(TEST, language="en", min_df=1, max_df=1.0).save(tmp_path / "corpus")
    words = tl.load(run).vocabulary_
    vectors = "\n".join(f"{word} {number}.5 1.0" for number, word in enumerate(words))
    (tmp_path / "vectors.txt").write_text(vectors + "\n", encoding="utf-8")
    names = ("--measures", "c_v, c_w2v,embedding_diversity", "--words", "5")
    options = ("--reference", tmp_path / "corpus", "--word-vectors", tmp_path / "vectors.txt", "--json")
    result = call("evaluate", run, *names, *options)
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert list(said["measures"]) == ["c_v", "c_w2v", "embedding_diversity"]
    assert {figure["top_n"] for figure in said["measures"].values()} == {5}
    assert said["measures"]["c_v"]["n_documents"] == 21
    assert said["reference_from"] == str(tmp_path / "corpus")


def test_a_bare_model_is_measured_and_stays_as_it_is(run, tmp_path):
    (tmp_path / "test.txt").write_text("\n".join(TEST) + "\n", encoding="utf-8")
    before = sorted(path.name for path in (run / "model").iterdir())
    result = call("evaluate", run / "model", tmp_path / "test.txt")
    assert result.exit_code == 0, result.output
    assert "does not name its documents" in result.stderr
    assert "perplexity_bound" in result.stdout
    assert sorted(path.name for path in (run / "model").iterdir()) == before


def test_a_run_on_a_prepared_corpus(tmp_path):
    write_jsonl(tmp_path / "train.jsonl", TRAIN, ["pets", "money"] * 30)
    columns = ("--text", "body", "--label", "class", "--max-df", "1.0", "--quiet")
    assert call("prepare", tmp_path / "train.jsonl", *columns, "--out", tmp_path / "corpus").exit_code == 0
    arguments = ("--topics", 2, "--epochs", 1, "--out", tmp_path / "run", "--quiet")
    assert call("train", tmp_path / "corpus", *arguments).exit_code == 0
    assert call("evaluate", tmp_path / "run").exit_code == 0
    assert set(evaluations(tmp_path / "run")["training"]["measures"]) == set(MEASURES) - NEEDS


def test_training_is_watched_from_the_command_line(tmp_path):
    (tmp_path / "train.txt").write_text("\n".join(TRAIN) + "\n", encoding="utf-8")
    arguments = ("train", tmp_path / "train.txt", "--topics", 2, "--max-df", "1.0", "--epochs", 4, "--quiet", "--out")
    assert call(*arguments, tmp_path / "a", "--monitor", "c_npmi,topic_diversity", "--monitor-every", 2).exit_code == 0
    rows = [json.loads(line) for line in (tmp_path / "a" / "log.jsonl").read_text().splitlines()]
    assert ["c_npmi" in row for row in rows] == [False, True, False, True]
    assert ["topic_diversity" in row for row in rows] == [True, True, False, True]
    assert call(*arguments, tmp_path / "b").exit_code == 0
    rows = [json.loads(line) for line in (tmp_path / "b" / "log.jsonl").read_text().splitlines()]
    assert ["document_npmi" in row for row in rows] == [False, False, False, True]
    assert call(*arguments, tmp_path / "c", "--monitor", "none").exit_code == 0
    assert "npmi" not in (tmp_path / "c" / "log.jsonl").read_text()
    refused(
        *arguments, tmp_path / "d", "--monitor", "c_vv", says=["unknown measure 'c_vv' in --monitor", "did you mean"]
    )
    assert not (tmp_path / "d").exists()


def test_a_mistake_of_evaluate_is_one_line(run, tmp_path):
    refused("evaluate", tmp_path, says=["holds no saved model"])
    refused("evaluate", run, tmp_path / "nosuch.txt", says=["nosuch.txt does not exist"])
    refused("evaluate", run, "--measures", "c_x", says=["'c_x'", "did you mean"])
    refused("evaluate", run, "--measures", "c_w2v", says=["c_w2v cannot be measured", "no word vectors"])
    (tmp_path / "labels.txt").write_text("pets\nmoney\n")
    refused("evaluate", run, "--labels", tmp_path / "labels.txt", says=["2 labels and 60 documents"])
    (tmp_path / "labels.txt").write_bytes(b"pets\n\xff\n")
    refused("evaluate", run, "--labels", tmp_path / "labels.txt", says=["labels.txt, byte 5", "UTF-8"])
    refused("evaluate", run, "--labels", tmp_path / "nosuch", says=["nosuch", "No such file"])
    refused("evaluate", run, "--reference", tmp_path / "nosuch", says=["nosuch does not exist"])
    assert "evaluations" not in json.loads((run / "metrics.json").read_text())
    assert call("evaluate", run, "--words", "0").exit_code == 2


def test_training_documents_that_only_the_run_has(run, tmp_path):
    usual = json.loads(call("evaluate", run, "--json").stdout)
    write_jsonl(tmp_path / "train.jsonl", TRAIN[:50], ["pets", "money"] * 25)
    changed = call("evaluate", run, "--json")
    assert json.loads(changed.stdout) == usual
    said = f"those that {run / 'documents'} holds, because {tmp_path / 'train.jsonl'} has changed: 60 documents"
    assert said in changed.stderr
    refused("evaluate", run, "--label", "body", says=["has changed"])  # which the run does not hold
    (tmp_path / "train.jsonl").unlink()
    assert json.loads(call("evaluate", run, "--json").stdout) == usual
    piped = ("-", "--format", "txt", "--model", "lda", "--topics", 2, "--epochs", 1, "--max-df", "1.0", "--min-df", 1)
    made = call("train", *piped, "--out", tmp_path / "piped", stdin="\n".join(TRAIN))
    assert made.exit_code == 0, made.output
    found = call("evaluate", tmp_path / "piped", "--json", "--quiet")
    assert (found.exit_code, found.stderr, json.loads(found.stdout)["documents"]) == (0, "", 60)


def test_results_that_cannot_be_written_are_shown(run, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device", str(run / "metrics.json"))

    monkeypatch.setattr("topicloom.reports.run.write_metrics", full)
    result = call("evaluate", run, "--measures", "topic_diversity")
    assert (result.exit_code, "topic_diversity" in result.stdout) == (0, True)
    why = f"the results are not stored, because {run / 'metrics.json'} cannot be written (No space left on device)\n"
    assert result.stderr.endswith(why)


def test_training_documents_that_are_no_longer_there(run, tmp_path):
    shutil.rmtree(run / "documents")
    (tmp_path / "test.txt").write_text("\n".join(TEST) + "\n", encoding="utf-8")
    write_jsonl(tmp_path / "train.jsonl", TRAIN[:50], ["pets", "money"] * 25)
    refused("evaluate", run, says=["train.jsonl has changed: 60 documents in training, 50 now"])
    result = call("evaluate", run, tmp_path / "test.txt", "--json")
    assert "has changed" in result.stderr
    assert json.loads(result.stdout)["coherence_against"] == "the documents given"
    (tmp_path / "train.jsonl").unlink()
    refused("evaluate", run, says=["train.jsonl does not exist"])
    (run / "metrics.json").write_text("[]")
    refused("evaluate", run, says=["metrics.json is damaged"])


@pytest.mark.parametrize("vectors", [3, "vectors.txt"])
def test_vectors_that_are_none(model, vectors):
    with pytest.raises(tl.InputError, match=r"`word_vectors` should be WordVectors or a mapping.*read_word_vectors"):
        tl.evaluate(model, [["w1", "w2"]], word_vectors=vectors)


# Topics that return in further fits


def test_topics_that_return_in_further_fits(tmp_path):
    model = tl.LDA(2, random_state=3, epochs=3).fit(CORPUS)
    found = tl.evaluate(model, CORPUS, measures=["returning_topics"], stability=2, vary=["seed", "order"])
    again = [tl.LDA(2, random_state=3 + seed, epochs=3).fit(CORPUS).components_ for seed in (1, 2)]
    expected = metrics.topic_returns(model.components_, again)
    np.testing.assert_array_equal(found.stability["seed"].similarity, expected.similarity)
    assert found["returning_topics"] == min(each.mean for each in found.stability.values())
    assert list(found.stability_table().columns)[2:] == ["returns", "seed 1", "seed 2", "order 1", "order 2"]
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["stability"]["seed"]["share"] == expected.mean
    found = tl.evaluate(model, CORPUS, measures=["topic_diversity"], stability=1)
    assert (list(found), list(found.stability)) == (["topic_diversity"], ["seed"])


def test_documents_of_fits():
    order, sample = (documents_of_fit(CORPUS, vary, 1) for vary in ("order", "bootstrap"))
    assert sorted(order.ids) == sorted(CORPUS.ids)
    assert order.ids != CORPUS.ids
    assert len(sample) == len(CORPUS)
    assert set(sample.ids) < set(CORPUS.ids)
    assert documents_of_fit(CORPUS, "order", 0) is documents_of_fit(CORPUS, "seed", 1) is CORPUS


def test_further_fits_that_are_kept_are_not_made_again(tmp_path, caplog):
    model = tl.LDA(2, random_state=0, epochs=1).fit(CORPUS)

    def fits(n, of=model):
        caplog.clear()
        with caplog.at_level("INFO", "topicloom"):
            topics = refit(of, CORPUS, n, "seed", tmp_path)
        return topics, sum("took" in record.message for record in caplog.records)

    first, n_first = fits(1)
    both, n_both = fits(2)
    assert (n_first, n_both, fits(2)[1]) == (1, 1, 0)
    np.testing.assert_array_equal(first[0], both[0])
    (tmp_path / "seed-1.npy").write_bytes(b"damaged")
    mended, n_mended = fits(2)
    assert n_mended == 1
    np.testing.assert_array_equal(mended, both)
    assert fits(1, tl.LDA(2, random_state=1, epochs=1).fit(CORPUS))[1] == 1  # of another model
    seeded = tl.LDA(2, random_state=0, epochs=1, seed_words={1: [CORPUS.vocabulary[0]]}).fit(CORPUS)
    assert [fits(1, seeded)[1], fits(1, seeded)[1]] == [1, 0]


def test_further_fits_have_other_seeds_than_a_numpy_seed():
    plain, numpy = (refit(tl.LDA(2, random_state=seed, epochs=1).fit(CORPUS), CORPUS, 1) for seed in (1, np.int64(1)))
    np.testing.assert_array_equal(plain, numpy)


def test_stability_and_vary_are_checked(model):
    wrong = (
        ({"stability": -1}, "`stability=-1` should"),
        ({"stability": 1.5}, "`stability=1.5` should"),
        ({"stability": 1, "vary": "seeds"}, "`vary`"),
        ({"vary": ()}, "`vary`"),
        ({"vary": 3}, "`vary` should"),
    )
    for options, message in wrong:
        with pytest.raises(tl.InputError, match=message):
            tl.evaluate(model, CORPUS, **options)


@pytest.mark.draws
def test_stability_of_a_run_is_stored_and_kept(run):
    shown = json.loads(call("evaluate", run, "--measures", "returning_topics", "--stability", 2, "--json").stdout)
    stored = json.loads((run / "metrics.json").read_text(encoding="utf-8"))["evaluations"]["training"]
    assert stored["stability"] == shown["stability"]
    assert len(stored["stability"]["seed"]["similarity"][0]) == 2
    assert sorted(path.name for path in (run / "refits").iterdir()) == ["refits.json", "seed-1.npy", "seed-2.npy"]
    assert (run / "stability.png").stat().st_size > 1000
    call("evaluate", run, "--measures", "topic_diversity")
    again = json.loads((run / "metrics.json").read_text(encoding="utf-8"))["evaluations"]["training"]
    assert again["stability"] == stored["stability"]
    refused("evaluate", run, "--stability", 1, "--vary", "seeds", says=["--vary", "bootstrap"])
