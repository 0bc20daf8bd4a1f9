"""Comparisons: resumed after a kill, measured alike, shown in one page, and what is said of several fits."""

from __future__ import annotations

import csv
import inspect
import io
import json
import re
import shutil
import signal
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from scipy.stats import ttest_rel

from forks import Fork, needs_fork
from topicloom import __version__, metrics
from topicloom.corpus import Corpus
from topicloom.corpus.inputs import split
from topicloom.datasets import synthetic_lda
from topicloom.errors import InputError, SettingError
from topicloom.experiments import jobs
from topicloom.experiments.compare import (
    DEFAULT_MODELS,
    Comparison,
    compare,
    estimators,
    paired_difference,
    recommend,
    select_n_topics,
)
from topicloom.experiments.jobs import Evaluator
from topicloom.metrics import topic_returns
from topicloom.metrics.catalogue import measures_of
from topicloom.models import GSM, LDA, estimator_named
from topicloom.reports.comparison_page import csv_lines, curve_of, page
from topicloom.topics.shares import holm

PLANTED = synthetic_lda(n_docs=240, n_topics=3, n_words=60, doc_length=30, random_state=0).corpus
LABELS = [str(row % 3) for row in range(PLANTED.n_docs)]
CORPUS = Corpus.from_counts(PLANTED.counts, PLANTED.vocabulary, labels=LABELS)
QUICK = ["gsm:epochs=2", "lda:epochs=2"]


def rows_of(comparison):
    """Without what depends on the clock."""
    timed = {"seconds", "job_seconds"}
    return [
        {name: value for name, value in row.items() if name not in {*timed, "measures"}}
        | {
            part: {name: value for name, value in found.items() if name not in timed}
            for part, found in row["measures"].items()
        }
        for row in comparison.rows
    ]


def made(values, measure="perplexity_completion", on=("validation", "test")):
    """A comparison whose measures are given, by model, number of topics and seed."""
    rows = [
        {"model": model, "n_topics": k, "seed": seed, "words": [["a"]], "version": "1.0",
         "measures": {part: {measure: value} if part in on else {} for part in ("validation", "test")}}
        for (model, k), each in values.items()
        for seed, value in enumerate(each)
        if value is not None
    ]  # fmt: skip
    models, sizes = list(dict.fromkeys(m for m, _ in values)), list(dict.fromkeys(k for _, k in values))
    return Comparison(rows, models, sizes, 3, {"train": 3, "validation": 1, "test": 1})


def page_of(found, language="en"):
    return page(found._page_content(language), language)


def test_the_parts_are_apart_and_whole():
    parts = split(CORPUS, 0.1, 0.2)
    assert [part.n_docs for part in parts] == [168, 24, 48]
    assert sorted(id for part in parts for id in part.ids) == sorted(CORPUS.ids)
    again = split(CORPUS, 0.1, 0.2)
    assert again.test.ids == parts.test.ids
    sparse_rows = CORPUS.counts.toarray()
    sparse_rows[::4] = 0  # documents without a word are in no part
    some = Corpus.from_counts(sparse_rows, CORPUS.vocabulary)
    kept = [id for row, id in enumerate(some.ids) if row % 4]
    assert sorted(id for part in split(some) for id in part.ids) == sorted(kept)
    with pytest.raises(SettingError, match="together below 1"):
        split(CORPUS, 0.5, 0.5)
    with pytest.raises(InputError, match="too few"):
        split(CORPUS[:3], 0.1, 0.1)


def test_fits_vary_by_samples_and_say_which_topics_return(tmp_path):
    models = {"lda": LDA(epochs=3)}
    found = compare(CORPUS, models, 3, 2, vary="bootstrap", out=tmp_path / "out")
    train = split(CORPUS).train
    sample = train.subset(np.random.default_rng(1).integers(len(train), size=len(train)))
    fits = [LDA(3, epochs=3, random_state=0).fit(each).components_ for each in (train, sample)]
    expected = topic_returns(fits[0], [fits[1]], n_chance=0)
    assert found.rows[0]["returns"] == expected.to_dict()
    assert found.values("returning_topics", "lda", 3).tolist() == [
        expected.mean, topic_returns(fits[1], [fits[0]], n_chance=0).mean,
    ]  # fmt: skip
    html = (tmp_path / "out" / "index.html").read_text()
    assert html.count(f"<td>{expected.shares[0]:.0%}</td><td style=") >= 1
    with pytest.raises(InputError, match='`vary="bootstrap"`'):
        compare(CORPUS, models, 3, 2, out=tmp_path / "out")


def test_every_model_size_and_seed_is_measured(tmp_path):
    results = []
    found = compare(CORPUS, QUICK, [2, 3], 2, out=tmp_path / "out", on_result=lambda *each: results.append(each))
    assert [(n_done, n_all) for n_done, n_all, _ in results] == [(n, 8) for n in range(1, 9)]
    assert not found.failed
    assert {(row["model"], row["n_topics"], row["seed"]) for row in found.rows} == {
        (model, k, seed) for model in QUICK for k in (2, 3) for seed in (0, 1)
    }
    assert {"document_npmi", "topic_diversity", "perplexity_completion", "nmi", "accuracy", "topic_distance"} <= {
        *found.measures
    }
    assert set(found.measures) <= set(measures_of("comparison"))
    for line in found.table("validation"):
        assert line["fits"] == 2
        assert all(np.isfinite(value) for value in line.values() if not isinstance(value, str))
    assert found.table("validation") != found.table("test")
    assert found.documents == {"train": 168, "validation": 24, "test": 48}
    lines = list(csv.DictReader(io.StringIO((tmp_path / "out" / "comparison.csv").read_text())))
    assert len(lines) == 8
    assert float(lines[0]["perplexity_completion"]) == pytest.approx(
        found.table("validation")[0]["perplexity_completion"]
    )


def test_seeds_differ_and_are_what_random_state_says():
    found = compare(CORPUS, {"mine": GSM(epochs=2)}, [3], 2)
    first, second = (row["measures"]["test"]["perplexity_completion"] for row in found.rows)
    assert first != second
    parts = split(CORPUS)
    alone = GSM(3, epochs=2, random_state=1).fit(parts.train)
    assert second == pytest.approx(alone.perplexity(parts.test))
    measured = found.rows[1]["measures"]
    assert measured["validation"]["perplexity_completion"] == pytest.approx(alone.perplexity(parts.validation))
    coherence = metrics.document_npmi(alone.topics(), parts.train)
    theta, learned = alone.transform(parts.test), alone.transform(parts.train)
    accuracy = metrics.classification_accuracy(learned, parts.train.labels, theta, parts.test.labels)
    nmi = metrics.normalised_mutual_information(parts.test.labels, theta.argmax(axis=1))
    for name, expected in (("document_npmi", coherence), ("accuracy", accuracy), ("nmi", nmi)):
        assert measured["test"][name] == pytest.approx(float(expected))


def test_a_finished_fit_is_not_made_again(tmp_path):
    first = compare(CORPUS, QUICK[:1], [2], 1, out=tmp_path)
    results = []
    again = compare(CORPUS, QUICK, [2], 1, out=tmp_path, on_result=lambda *each: results.append(each[2]["model"]))
    assert results == QUICK[1:]
    assert again.rows[0]["seconds"] == first.rows[0]["seconds"]


def test_finished_fits_that_are_left_out_are_named(tmp_path, caplog):
    assert compare(CORPUS, QUICK, [2, 3], 2, out=tmp_path).left_out == ""
    found = compare(CORPUS, QUICK[1:], [2], 1, out=tmp_path)
    assert found.left_out == f"{QUICK[0]}, 3 topics and seed 1"
    assert len(found.others) == 7
    assert f"{tmp_path} has finished fits of {QUICK[0]}, 3 topics and seed 1, which the tables and the" in caplog.text
    caplog.clear()
    assert compare(CORPUS, QUICK, [2, 3], 2, out=tmp_path).left_out == ""
    assert "has finished fits" not in caplog.text


def test_half_a_line_is_passed_over(tmp_path):
    whole = compare(CORPUS, QUICK, [2], 2, out=tmp_path)
    file = tmp_path / "jobs.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:2]) + lines[2][:40])  # killed while writing
    assert rows_of(compare(CORPUS, QUICK, [2], 2, out=tmp_path)) == rows_of(whole)


@needs_fork
def test_killed_and_taken_up_again(tmp_path):
    """A comparison that is killed outright ends with the table of one that was not."""
    CORPUS.save(tmp_path / "corpus")
    out = tmp_path / "out"
    process = Fork(lambda: compare(Corpus.load(tmp_path / "corpus"), QUICK, [2, 3], 2, out=out, n_jobs=2))
    try:
        began = time.monotonic()
        while len(jobs.read_rows(out / "jobs.jsonl")) < 2 and process.poll() is None and time.monotonic() - began < 120:
            time.sleep(0.05)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert 2 <= len(jobs.read_rows(out / "jobs.jsonl")) < 8
    resumed = compare(Corpus.load(tmp_path / "corpus"), QUICK, [2, 3], 2, out=out)
    unbroken = compare(Corpus.load(tmp_path / "corpus"), QUICK, [2, 3], 2)
    for one, other in zip(rows_of(resumed), rows_of(unbroken), strict=True):
        assert one["words"] == other["words"]
        assert one["test"] == pytest.approx(other["test"], rel=1e-4)


def test_another_comparison_is_not_mixed_in(tmp_path):
    compare(CORPUS, QUICK[:1], [2], 1, out=tmp_path)
    with pytest.raises(InputError, match="another corpus"):
        compare(CORPUS[:100], QUICK[:1], [2], 1, out=tmp_path)
    with pytest.raises(InputError, match="another split"):
        compare(CORPUS, QUICK[:1], [2], 1, out=tmp_path, test=0.3)
    with pytest.raises(InputError, match="other settings"):
        compare(CORPUS, {"gsm:epochs=2": GSM(epochs=3)}, [2], 1, out=tmp_path)


def test_a_directory_that_was_emptied_forgets_its_corpus(tmp_path):
    compare(CORPUS, QUICK[1:], [2], 1, out=tmp_path / "out")
    shutil.rmtree(tmp_path / "out")
    found = compare(CORPUS[:120], QUICK[1:], [2], 1, out=tmp_path / "out")
    assert rows_of(found) == rows_of(compare(CORPUS[:120], QUICK[1:], [2], 1))


def test_a_fit_that_fails_is_reported_and_tried_again(tmp_path):
    found = compare(CORPUS, QUICK[:1], [2, 61], 1, out=tmp_path)  # more topics than words
    (failed,) = found.failed
    assert failed["n_topics"] == 61
    assert "vocabulary" in failed["error"]
    assert found.table()[1]["fits"] == 0
    assert found.table()[1]["perplexity_completion"] is None
    assert "1 of 2 fits ended in an error" in (tmp_path / "index.html").read_text()
    results = []
    compare(CORPUS, QUICK[:1], [2, 61], 1, out=tmp_path, on_result=lambda *each: results.append(each[2]["n_topics"]))
    assert results == [61]


@pytest.mark.parametrize(
    ("models", "said"),
    [
        ([], "nothing to compare"),
        ("gsm", r"give \['gsm'\]"),
        (GSM(), r"give \[GSM\(\)\]"),
        ([GSM], "a model should be a name such as 'gsm' or a model such as GSM"),
        ([GSM(), GSM(alpha=0.1)], "two models are called 'gsm'"),
        ([GSM(epochs=3), "gsm"], "two models are called 'gsm'"),
        (7, "a list of names"),
        (["gms"], "did you mean gsm"),
        (["gsm:epoch=3"], "did you mean epochs"),
        (["gsm:epochs"], "name=value"),
    ],
)
def test_mistakes_are_one_sentence(models, said):
    with pytest.raises(InputError, match=said):
        compare(CORPUS, models, [2], 1)


@pytest.mark.parametrize("options", [{"n_topics": 1}, {"n_topics": []}, {"n_topics": "20"}, {"n_topics": [2.5]},
                                     {"seeds": 0}, {"seeds": True}, {"n_jobs": 0}, {"n_jobs": "2"}])  # fmt: skip
def test_arguments_that_cannot_be_used(options):
    with pytest.raises(SettingError, match=rf"`{next(iter(options))}(=\w+)?` should be"):
        compare(CORPUS, QUICK, **options)


def test_paired_by_hand():
    found = made({("a", 5): [10.0, 20.0, 30.0], ("b", 5): [11.0, 21.5, 31.5], ("c", 5): [12.0, None, None]})
    b, c = found.paired("perplexity_completion", "a")
    assert (b["model"], b["pairs"]) == ("b", 3)
    assert b["difference"] == pytest.approx(4 / 3)
    # t = mean / (sd / sqrt 3) = (4/3) / (.288675 / 1.732051) = 8, on 2 degrees of freedom
    assert b["p"] == pytest.approx(0.015268, abs=1e-5)
    assert (c["difference"], c["pairs"], c["p"]) == (2.0, 1, None)
    assert found.best("perplexity_completion") == "c"  # of the fits that it has
    with pytest.raises(SettingError, match="`against` should be one of a, b, c"):
        found.paired("perplexity_completion", "d")
    with pytest.raises(SettingError, match="validation"):
        found.table("train")


def test_candidates_are_within_a_deviation_of_the_best():
    found = made({("a", 5): [100.0, 110.0, 120.0], ("a", 10): [112.0, 118.0, 121.0], ("a", 20): [130.0, 131.0, 132.0]})
    assert found.candidates() == {"perplexity_completion": [5, 10]}  # 110 ± 10, 117, 131


def test_active_topics_are_compared_as_shares():
    found = made({("a", 5): [5.0] * 3, ("a", 10): [9.0] * 3, ("a", 20): [12.0] * 3}, "active_topics")
    assert found.candidates() == {"active_topics": [5]}


def test_a_misspelt_measure_is_refused():
    found = made({("a", 5): [1.0], ("b", 5): [2.0]})
    for call in (
        lambda: found.values("perplexty", "a", 5),
        lambda: found.best("perplexty"),
        lambda: found.paired("perplexty", "a"),
    ):
        with pytest.raises(SettingError, match=r"unknown measure 'perplexty'; did you mean .*perplexity"):
            call()
    with pytest.raises(SettingError, match="unknown model 'c'"):
        found.values("perplexity_completion", "c", 5)
    assert np.isnan(found.values("nmi", "a", 5)).all()  # a measure that this corpus does not allow
    assert found.best("nmi") is None


def test_selection_uses_validation_documents_and_testing_uses_others():
    found = made({("a", 5): [1.0, 2.0, 2.1], ("b", 5): [3.0, 4.0, 5.0], ("c", 5): [9.0, 9.0, 9.1]})
    for row in found.rows:  # on test documents, b is the best
        value = {"a": 7.0, "b": 6.0, "c": 8.0}[row["model"]] + row["seed"] ** 2
        row["measures"]["test"]["perplexity_completion"] = value
    assert found.best("perplexity_completion") == "a"
    text = page_of(found)
    compared = text[text.index("<h2>Paired tests") :]
    assert "<td>b</td><td>a</td><td>-1</td>" in compared
    assert "<td>a</td><td>b</td>" not in compared


def test_tests_are_corrected_for_their_number():
    values = {
        ("a", 5): [1.0, 2.0, 3.0],
        ("b", 5): [2.0, 3.1, 4.0],
        ("c", 5): [1.0, 2.5, 3.1],
        ("d", 5): [9.0, None, 9.0],
    }
    rows = {row["model"]: row for row in made(values).paired("perplexity_completion", "a")}
    series = [np.array(each, float) for each in values.values()]
    pairs = [ttest_rel(one, other, nan_policy="omit").pvalue for one, other in combinations(series, 2)]
    p = dict(zip(["b", "c", "d", "bc", "bd", "cd"], holm(pairs), strict=True))
    for model, row in rows.items():
        assert row["p_holm"] == pytest.approx(p[model])
    assert rows["b"]["p_holm"] > 3 * rows["b"]["p"]  # six tests, and not the three of this call
    assert rows["b"]["low"] < rows["b"]["difference"] < rows["b"]["high"]
    text = page_of(made(values))
    assert "p, Holm" in text
    assert "after Holm" in text
    assert "95 % interval" in text


def test_the_page_in_chinese():
    values = {("a", 5): [1.0, 2.0], ("b", 5): [2.0, 3.1], ("a", 9): [1.5, 1.0], ("b", 9): [2.0, 2.2]}
    found = made(values)
    found.rows[-1] = {"model": "b", "n_topics": 9, "seed": 1, "error": "42"}
    text = page_of(found, "zh")
    assert text.startswith('<!doctype html>\n<html lang="zh-CN">')
    body = text[text.index("</style>") :]
    shown = set(re.findall("[A-Za-z]{2,}", re.sub("<.*?>", " ", body)))
    assert shown <= {"topicloom", "Holm"}  # and C_v, p and t
    assert "<h1>主题模型的比较</h1>" in body
    assert "2 个模型，2 种主题数，3 个随机种子；文档：训练 3 篇、验证 1 篇、测试 1 篇。" in body
    assert '<th scope="col">困惑度（文档补全）</th>' in body
    assert "b，9 个主题，随机种子 1：42" in body
    assert "推荐 5 个主题" in body
    assert set(re.findall(r"\d\.\d+", page_of(found))) == set(re.findall(r"\d\.\d+", text))


def test_the_best_is_compared_over_the_same_numbers_of_topics():
    values = {
        ("a", 5): [200.0],
        ("a", 50): [100.0],
        ("b", 5): [210.0],
        ("b", 50): [110.0],
        ("c", 5): [None],
        ("c", 50): [120.0],
    }
    assert made(values).best("perplexity_completion") == "a"  # c has only the easier number of topics
    assert (
        made({("a", 5): [200.0], ("a", 50): [None], ("b", 5): [None], ("b", 50): [100.0]}).best("perplexity_completion")
        == "b"
    )  # no number in common


def test_the_best_of_equal_models_is_seldom_better():
    random, false = np.random.default_rng(0), 0
    for _ in range(200):
        fits = random.normal(100, 1, (8, 4))
        found = made({(str(model), 5): each.tolist() for model, each in enumerate(fits)})
        rows = found.paired("perplexity_completion", found.best("perplexity_completion"))
        false += min(row["p_holm"] for row in rows) < 0.05
    assert false <= 10  # 5 % of 200; with the correction for seven tests there are 14


def test_values_that_share_seeds_have_no_test():
    found = made({("a", 5): [0.2, 0.3, 0.25], ("b", 5): [0.4, 0.41, 0.43]}, "topic_distance")
    (row,) = found.paired("topic_distance", "a")
    assert row["difference"] == pytest.approx(0.49 / 3)
    assert (row["low"], row["high"], row["p"], row["p_holm"], row["pairs"]) == (None, None, None, None, 3)


def test_standard_errors_of_shared_seeds_equal_the_jackknife():
    from topicloom.reports.figures.curves import _means_and_errors

    n = 5
    distances = np.random.default_rng(0).random((n, n))
    distances += distances.T
    np.fill_diagonal(distances, 0)
    without = [np.delete(np.delete(distances, seed, 0), seed, 1).sum() / ((n - 1) * (n - 2)) for seed in range(n)]
    expected = np.sqrt((n - 1) * np.var(without))
    means, errors = _means_and_errors((distances.sum(axis=1) / (n - 1))[None], of_pairs=True)
    assert (means[0], errors[0]) == (pytest.approx(np.mean(without)), pytest.approx(expected))
    assert _means_and_errors(np.array([[0.3, 0.3]]), of_pairs=True)[1].tolist() == [0]  # not known for two seeds
    assert _means_and_errors(np.array([[0.3, 0.4]]))[1] == pytest.approx([0.05])


def test_fits_of_several_versions_are_marked(tmp_path, caplog):
    compare(CORPUS, QUICK[1:], [2], 2, out=tmp_path)
    assert caplog.text == ""
    file = tmp_path / "jobs.jsonl"
    first, second = file.read_text().splitlines()
    older = json.dumps(json.loads(first) | {"version": "0.0.9", "sha256": None})  # the first rows had no checksum
    file.write_text(f"{older}\n{second}\n")
    found = compare(CORPUS, QUICK[1:], [2], 2, out=tmp_path)
    assert found.versions == ["0.0.9", __version__]
    assert f"1 of 2 fits in {tmp_path} were made by topicloom 0.0.9, and this is {__version__}" in caplog.text
    assert f"Fitted by topicloom 0.0.9 and {__version__}" in (tmp_path / "index.html").read_text()


def test_models_are_kept(tmp_path):
    with pytest.raises(InputError, match=r"`keep_models=True` needs a directory.*`out`"):
        compare(CORPUS, QUICK[1:], 2, 1, keep_models=True)
    without = compare(CORPUS, QUICK[1:], 2, 2, out=tmp_path)
    with pytest.raises(InputError, match="compare again with `out` and `keep_models=True`"):
        without.best_model("perplexity_completion")
    found = compare(CORPUS, QUICK[1:], 2, 2, out=tmp_path, keep_models=True)
    assert rows_of(found) == rows_of(without)
    best = min(found.rows, key=lambda row: row["measures"]["validation"]["perplexity_completion"])
    model = found.best_model("perplexity_completion")
    assert model.topics(10) == best["words"]
    assert model.random_state == best["seed"]
    other = found.load_model("lda:epochs=2", 2, 1 - best["seed"], device="cpu")
    assert other.topics(10) == found.rows[1 - best["seed"]]["words"]
    with pytest.raises(InputError, match="has not kept the model 'lda:epochs=2' with 3 topics and seed 0"):
        found.load_model("lda:epochs=2", 3)
    results = []
    compare(CORPUS, QUICK[1:], 2, 2, out=tmp_path, keep_models=True, on_result=lambda *each: results.append(each))
    assert not results


def test_damaged_topics_are_fitted_again(tmp_path):
    whole = compare(CORPUS, QUICK[1:], 2, 2, out=tmp_path)
    file = next((tmp_path / "topics").iterdir())
    file.write_bytes(file.read_bytes()[:100])
    results = []
    again = compare(CORPUS, QUICK[1:], 2, 2, out=tmp_path, on_result=lambda *each: results.append(each))
    assert len(results) == 1
    assert rows_of(again) == rows_of(whole)


def test_own_parts(tmp_path):
    given = [CORPUS[:100], CORPUS[100:150], CORPUS[150:]]
    found = compare(None, QUICK[1:], 2, 1, split=given, out=tmp_path)
    assert found.documents == {"train": 100, "validation": 50, "test": 90}
    names = ["train"] * 100 + ["val"] * 50 + ["test"] * 90
    corpus = Corpus.from_counts(CORPUS.counts, CORPUS.vocabulary, labels=LABELS, covariates={"part": names})
    assert rows_of(compare(corpus, QUICK[1:], 2, 1, split="part")) == rows_of(found)
    with pytest.raises(InputError, match="another corpus"):
        compare(None, QUICK[1:], 2, 1, out=tmp_path, split=given[::-1])


WORDS = [f"{'cat dog pet' if row % 2 else 'bank money loan'} w{row % 3}" for row in range(40)]


def split_at_blanks(text):
    return text.split()


@pytest.mark.parametrize("kind", ["texts of counts", "own tokenizer"])
def test_texts_whose_tokens_are_not_known_without_help(kind):
    corpus = Corpus.from_texts(WORDS, tokenizer=split_at_blanks, min_df=1, max_df=1.0)
    if kind == "texts of counts":
        corpus = Corpus.from_counts(corpus.counts, corpus.vocabulary, texts=WORDS)
    found = compare(corpus, QUICK[1:], 2, 1)
    assert not found.failed
    assert ("c_v" in found.measures) == (kind == "own tokenizer")


def test_coherence_is_counted_in_a_reference_of_your_own(tmp_path):
    """For lists of tokens, whose order a comparison does not keep; gensim counts C_v in the same reference."""
    models = pytest.importorskip("gensim.models")
    dictionaries = pytest.importorskip("gensim.corpora")
    tokens = [text.split() for text in WORDS]
    reference = [*(each[::-1] for each in tokens[:30]), ["cat", "bank", "unseen"], []]
    corpus = Corpus.from_texts(tokens, min_df=1, max_df=1.0)
    assert "c_v" not in compare(corpus, QUICK[1:], 2, 1).measures
    found = compare(corpus, QUICK[1:], 2, 2, reference=reference, out=tmp_path, n_jobs=2)
    assert not found.failed
    for row in found.rows:
        words = dictionaries.Dictionary(reference)
        gensim = models.CoherenceModel(
            topics=row["words"], texts=reference, dictionary=words, coherence="c_v", topn=10, processes=1
        )
        assert row["measures"]["test"]["c_v"] == pytest.approx(gensim.get_coherence(), abs=1e-9)
    with pytest.raises(InputError, match="another reference"):
        compare(corpus, QUICK[1:], 2, 1, reference=reference[:-1], out=tmp_path)
    with pytest.raises(InputError, match="another reference"):
        compare(corpus, QUICK[1:], 2, 1, out=tmp_path)
    kept = compare(corpus, QUICK[1:], 2, 1, reference=metrics.Reference.from_tokens(reference), out=tmp_path)
    assert kept.rows[0]["measures"]["test"]["c_v"] == found.rows[0]["measures"]["test"]["c_v"]


def test_a_reference_is_named_where_its_figures_are(tmp_path):
    named = metrics.Reference.from_tokens([text.split() for text in WORDS], name="Wikipedia <2026>")
    for reference, says in (
        (named, "Wikipedia &lt;2026&gt;"),
        (WORDS, "the reference"),
        (None, "the training documents"),
    ):
        found = compare(WORDS, QUICK[1:], 2, 1, reference=reference, out=tmp_path / says[:9])
        assert f"on their words in {says}. They" in (tmp_path / says[:9] / "index.html").read_text()
        caption = found.publication_table().caption
        assert caption.endswith(" Coherence is counted in Wikipedia <2026>.") == (reference is named)
        assert ("Coherence" in caption) == (reference is not None)
    assert (
        "一致性在 Wikipedia <2026> 中统计。"
        in replace(found, coherence_against=named.name).publication_table(table_language="zh").caption
    )
    assert "Coherence" not in replace(found, coherence_against="x").publication_table(measures=["c_v"][:0]).caption


def entropy_of_shares(model, corpus):
    theta = model.transform(corpus)
    return float(-(theta * np.log(theta)).sum(axis=1).mean())


def test_measures_of_ones_own_stand_in_all_tables(tmp_path):
    factor = 2.0  # a closure, which goes to the processes
    own = {"entropy": entropy_of_shares, "double": (lambda model, corpus: factor * corpus.n_docs, "lower")}
    found = compare(CORPUS, QUICK, [2, 3], 2, out=tmp_path, n_jobs=2, keep_models=True, measures=own)
    assert not found.failed
    assert found.measures[-2:] == ["entropy", "double"]
    parts = split(CORPUS)
    for row in found.rows:
        model = found.load_model(row["model"], row["n_topics"], row["seed"])
        for part in ("validation", "test"):
            expected = entropy_of_shares(model, getattr(parts, part))
            assert row["measures"][part]["entropy"] == pytest.approx(expected, rel=1e-5)
    mean = np.mean([row["measures"]["test"]["entropy"] for row in found.rows[:1] + found.rows[4:5]])
    assert found.table()[0]["entropy"] == pytest.approx(mean)
    assert found.values("double", QUICK[0], 2).tolist() == [96, 96]
    of_model = {name: found.values("entropy", name, 2, "validation").mean() + found.values(
        "entropy", name, 3, "validation").mean() for name in QUICK}  # fmt: skip
    assert found.best("entropy") == max(of_model, key=of_model.get)
    assert {"entropy", "double_sd"} <= {
        *csv.DictReader(io.StringIO((tmp_path / "comparison.csv").read_text())).fieldnames
    }
    html = (tmp_path / "index.html").read_text()
    assert html.count('<th scope="col">entropy</th>') == 2  # validation and test
    assert "<td>entropy</td>" in html[html.index("<h2>Paired tests") :]
    latex = found.publication_table(measures=["entropy", "double"], decimals={"double": 0}).to_latex()
    assert "& entropy & double" in latex
    assert r"96 $\pm$ 0" in latex
    assert f"{mean:.2f}" in latex
    assert {"entropy", "double"} <= set(found.candidates())


def test_a_changed_measure_is_taken_again(tmp_path):
    fitted = []

    def call(**measures):
        fitted.clear()
        compare(CORPUS, QUICK[1:], 2, 2, out=tmp_path, measures=measures, on_result=lambda *each: fitted.append(each))
        return len(fitted)

    assert call() == 2
    assert call(a=lambda model, corpus: 1.0) == 2  # a new measure needs the models
    other_place = lambda m, c: 1.0  # noqa: E731  # the same code on another line
    assert call(a=other_place) == 0
    assert call(a=lambda m, c: 2.0) == 2
    assert call(a=partial(other_place)) == 2
    assert call(a=other_place) == 0
    assert call() == 0


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_models_that_were_kept_are_measured_without_a_fit(tmp_path, monkeypatch, n_jobs):
    """The values are those that a comparison with the measure from the beginning has."""
    words = np.array(CORPUS.vocabulary)
    texts = [" ".join(np.repeat(words, row)) for row in CORPUS.counts.toarray().astype(int)]
    corpus = Corpus.from_texts(texts, tokenizer=str.split)
    own = {"entropy": entropy_of_shares, "of text": lambda model, _: float(model.transform(texts[:1])[0, 0])}
    expected = compare(corpus, QUICK, 2, 2, measures=own)
    kept = compare(corpus, QUICK, 2, 2, out=tmp_path, keep_models=True)
    monkeypatch.setattr(Evaluator, "fit", None)
    for measures in ({"entropy": lambda model, corpus: 1.0}, own):
        found = compare(corpus, QUICK, 2, 2, out=tmp_path, n_jobs=n_jobs, measures=measures)
        assert not found.failed
        assert [row["seconds"] for row in found.rows] == [row["seconds"] for row in kept.rows]
    for row, other in zip(found.rows, expected.rows, strict=True):
        for part, values in other["measures"].items():
            assert row["measures"][part] == pytest.approx(values | {"seconds": row["seconds"]})
    (gone,) = (tmp_path / "models").glob("lda*-2-1")
    shutil.rmtree(gone)
    found = compare(corpus, QUICK, 2, 2, out=tmp_path, measures={"new": lambda model, corpus: 2.0})
    np.testing.assert_array_equal(found.values("new", QUICK[1], 2), [2, np.nan])  # its model would have to be fitted


def test_the_curve_shows_measures_of_ones_own():
    pytest.importorskip("matplotlib")
    own = {"$a$ and $\\b": lambda model, corpus: float(model.n_topics), "none": lambda model, corpus: None}
    found = compare(CORPUS, QUICK[1:], [2, 3], 1, measures=own)
    drawn = {axes.get_title(): axes for axes in curve_of(found._page_content("en")).axes}
    assert drawn["$a$ and $\\b"].get_lines()[0].get_ydata().tolist() == [2, 3]
    assert {"none", "NPMI (documents)"} <= set(drawn)


def test_a_measure_that_cannot_be_sent_is_refused():
    lock = threading.Lock()
    with pytest.raises(InputError, match=r"^the models and measures cannot be sent .*lock.*, or use `n_jobs=1`$"):
        compare(CORPUS, QUICK, 2, 1, n_jobs=2, measures={"mine": lambda model, corpus: lock})


@pytest.mark.parametrize("n_jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_measure_that_fails_costs_no_fit(tmp_path, caplog, n_jobs):
    def seed_0_fails(model, corpus):
        return 1 / model.random_state

    values = {"none": None, "nan": np.nan, "text": "7", "list": [1.0], "tensor": np.float32(3)}
    own = {name: partial(lambda value, model, corpus: value, value) for name, value in values.items()}
    own["inverse"] = seed_0_fails
    found = compare(CORPUS, QUICK[1:], 2, 2, out=tmp_path, measures=own, n_jobs=n_jobs)
    assert not found.failed
    assert np.isfinite(found.values("document_npmi", QUICK[1], 2)).all()
    for name in ("none", "nan", "text", "list"):
        assert np.isnan(found.values(name, QUICK[1], 2)).all()
        assert found.best(name) is None
    assert found.values("tensor", QUICK[1], 2).tolist() == [3, 3]
    assert np.isnan(found.values("inverse", QUICK[1], 2)).tolist() == [True, False]
    for says in (
        "the measure 'text' failed: it returned '7', which is not a number; so it has no value in 2 of 2 fits, first",
        "the measure 'inverse' failed: ZeroDivisionError: division by zero; so it has no value in 1 of 2 fits, first",
    ):
        assert f"{says} in {QUICK[1]} with 2 topics and seed 0" in caplog.text
    assert "'nan'" not in caplog.text
    json.loads((tmp_path / "jobs.jsonl").read_text().splitlines()[0], parse_constant=pytest.fail)  # no NaN
    results = []
    compare(
        CORPUS,
        QUICK[1:],
        2,
        2,
        out=tmp_path,
        measures={"inverse": seed_0_fails},
        on_result=lambda *each: results.append(each[2]["seed"]),
    )
    assert results == [0]  # what failed is tried again


@pytest.mark.parametrize(
    ("measures", "said"),
    [
        (["purity"], "a dictionary of functions of your own"),
        ({"purity": len}, "'purity' in `measures` is a name of the package's own tables"),
        ({"purity_sd": len}, "'purity_sd' in `measures` is a name"),
        ({"a": len, "a_sd": len}, "'a_sd' in `measures` is a name"),
        ({"fits": len}, "'fits' in `measures` is a name"),
        ({"a": 3}, "'a' in `measures` should be a function"),
        ({"a": (len, "less")}, "'a' in `measures` should be a function"),
        ({" a": len}, "a name in `measures` should be a word or several"),
        ({1: len}, "a name in `measures` should be a word or several; it is 1"),
    ],
)
def test_measures_that_cannot_be_taken(measures, said):
    with pytest.raises(SettingError, match=said):
        compare(CORPUS, QUICK, 2, 1, measures=measures)


def test_a_table_for_a_paper_of_chosen_measures():
    found = made({("a", 5): [1.0, 2.0, 2.5], ("b", 5): [3.0, 4.0, 5.125]}, "nmi")
    for row in found.rows:
        row["measures"]["test"]["perplexity_completion"] = 1234.5678
    table = found.publication_table(measures=["perplexity_completion", "nmi"], decimals={"nmi": 3})
    assert list(table.columns) == ["Model", "$K$", "Perplexity", "NMI"]
    assert table["Perplexity"] == ["1235 ± 0"] * 2
    assert [str(cell) for cell in table["NMI"]] == ["1.833 ± 0.764", "4.042 ± 1.063"]
    assert list(found.publication_table(decimals=1)["Perplexity"]) == ["1234.6 ± 0.0"] * 2
    assert list(found.publication_table()["Perplexity"]) == ["1235 ± 0"] * 2
    for options, said in (
        ({"measures": ["nmy"]}, "unknown measure 'nmy' in `measures`; did you mean nmi"),
        ({"measures": "nmi"}, r"`measures` should be a list of measures; give \['nmi'\]"),
        ({"measures": ["purity"]}, "no fit has a value of purity; leave it out of `measures`"),
        ({"decimals": {"purity": 2}}, "unknown measure 'purity' in `decimals`"),
        ({"decimals": -1}, "`decimals=-1` should be a whole number from 0"),
        ({"decimals": {"nmi": "2"}}, "`decimals='2'` should be"),
        ({"on": "train"}, "validation"),
    ):
        with pytest.raises(InputError, match=said):
            found.publication_table(**options)


def test_what_fit_takes_is_taken():
    found = compare(WORDS, [LDA(epochs=1)], 2, 1)
    assert found.models == ["lda"]
    assert not found.failed
    assert select_n_topics(WORDS, 2, "lda:epochs=1", seeds=1).n_topics == [2]


def test_the_default_models_name_both_kinds_of_lda():
    assert [name for name in DEFAULT_MODELS if name.startswith("lda")] == ["lda:method=gibbs", "lda:method=variational"]
    assert list(estimators(DEFAULT_MODELS)) == list(DEFAULT_MODELS)
    assert inspect.signature(select_n_topics).parameters["model"].default == "loom"


def test_it_is_printed_in_a_line_and_saved_anywhere(tmp_path):
    found = made({("a", 5): [1.0, None, 2.0], ("b", 5): [2.0, 2.0, 2.0]})
    assert repr(found) == "Comparison(2 models, 1 number of topics, 3 seeds, 5 fits, 0 failed)"
    found.save(str(tmp_path / "new" / "folder"))
    assert {path.name for path in (tmp_path / "new" / "folder").iterdir()} == {
        "comparison.csv", "comparison.md", "comparison.tex", "index.html",
    }  # fmt: skip


def test_documents_without_a_label_are_no_class():
    some = ["", *LABELS[1:]]
    corpus = Corpus.from_counts(PLANTED.counts, PLANTED.vocabulary, labels=some)
    evaluator = Evaluator(split(corpus))
    model = GSM(3, epochs=2, random_state=0).fit(evaluator.parts.train)
    found = evaluator.measure(model)
    known = [row for row, label in enumerate(evaluator.parts.test.labels) if label]
    theta = model.transform(evaluator.parts.test)[known]
    expected = metrics.purity([evaluator.parts.test.labels[row] for row in known], theta.argmax(axis=1))
    assert found["test"]["purity"] == pytest.approx(float(expected))
    assert evaluator.unavailable("c_v", "test") is not None
    assert "c_v" not in found["test"]


def test_numbers_of_topics(tmp_path):
    pytest.importorskip("matplotlib")
    found = select_n_topics(CORPUS, [2, 3], "lda:epochs=2", seeds=2, out=tmp_path)
    assert found.recommend().n_topics in (2, 3)
    assert found.recommend().reason in (tmp_path / "index.html").read_text()
    assert (tmp_path / "n_topics.png").stat().st_size > 1000
    assert found.models == ["lda:epochs=2"]
    chosen = found.candidates()
    assert {"document_npmi", "perplexity_completion", "topic_distance"} <= set(chosen)
    assert "seconds" not in chosen
    assert all(set(sizes) <= {2, 3} and sizes for sizes in chosen.values())


@pytest.mark.draws
def test_the_page_needs_nothing_else():
    pytest.importorskip("matplotlib")
    found = compare(CORPUS, {"a <b> & 主题": GSM(epochs=2)}, [2], 2)
    text = page_of(found)
    assert "a &lt;b&gt; &amp; 主题" in text
    assert "<b>" not in text
    assert "<svg" in text
    assert "src=" not in text
    assert 'href="http' not in text
    assert csv_lines({on: found.table(on) for on in ("validation", "test")}, found.measures).count("\n") == 3


def test_processes_give_the_same_for_models_of_your_own_too(tmp_path, monkeypatch):
    """A model class that is only in the current directory, by its name and as an estimator."""
    (tmp_path / "own_gsm.py").write_text("from topicloom.models import GSM\n\nclass Own(GSM):\n    pass\n")
    monkeypatch.chdir(tmp_path)
    own = estimator_named("own_gsm:Own:epochs=2")
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each not in ("", str(tmp_path))])
    models = {"lda": LDA(epochs=2), "own_gsm:Own:epochs=2": own}
    alone = compare(CORPUS, models, [2], 2)
    together = compare(CORPUS, models, [2], 2, n_jobs=2, out=tmp_path / "out", keep_models=True)
    assert not together.failed
    for one, other in zip(rows_of(alone), rows_of(together), strict=True):
        assert one["words"] == other["words"]
    assert len(json.loads((tmp_path / "out" / "comparison.json").read_text())["models"]) == 2
    assert type(together.load_model("own_gsm:Own:epochs=2", 2)) is type(own)
    again = compare(CORPUS, ["own_gsm:Own:epochs=2"], [2], 1, n_jobs=2, out=tmp_path / "out", keep_models=True)
    assert [row["words"] for row in again.rows] == [together.rows[1]["words"]]


# What is said of several fits: paired tests with Holm's correction, and a recommended number of topics.


def test_holm_by_hand():
    # sorted .01, .03, .04 times 3, 2, 1: .03, .06, .04, of which the last may not be below the one before
    assert holm([0.04, 0.01, None, 0.03]) == pytest.approx([0.06, 0.03, None, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([None]) == [None]
    assert holm([]) == []


def test_an_interval_by_hand():
    found = paired_difference(np.array([11.0, 21.5, 31.5, np.nan]), np.array([10.0, 20.0, 30.0, 4.0]))
    # mean 4/3, sd .288675, t(.975, 2) = 4.302653: the margin is 4.302653 * .288675 / sqrt 3 = .717109
    assert (found["difference"], found["pairs"]) == (pytest.approx(4 / 3), 3)
    assert (found["low"], found["high"]) == pytest.approx((4 / 3 - 0.717109, 4 / 3 + 0.717109), abs=1e-5)
    same = paired_difference(np.array([2.0, 3.0]), np.array([1.0, 2.0]))
    assert same == {"difference": 1.0, "low": None, "high": None, "pairs": 2, "p": None}


def fits(**by_measure):
    return {name: {k: np.array(each, float) for k, each in values.items()} for name, values in by_measure.items()}


def test_the_smallest_number_within_a_standard_error_of_both():
    found = recommend(fits(
        perplexity_completion={5: [130, 132, 134], 10: [103, 104, 105], 20: [100, 103, 106], 50: [101, 104, 107]},
        document_npmi={5: [.1, .1, .1], 10: [.19, .2, .21], 20: [.19, .2, .21], 50: [.1, .1, .1]},
    ))  # fmt: skip
    assert found.n_topics == 10  # perplexity 104 against 103 ± 1.73; the NPMI is the best
    assert (
        "smallest number that is within one standard error of the best by completion perplexity and NPMI"
        in found.reason
    )
    assert "completion perplexity 104 (the best is 103 with 20) and NPMI 0.200 (the best)" in found.reason
    assert str(found) == found.reason
    assert "tried" not in found.reason


def test_a_compromise_where_the_measures_disagree():
    found = recommend(fits(
        perplexity_completion={5: [200.0], 10: [120.0], 50: [100.0]},
        document_npmi={5: [0.3], 10: [0.25], 50: [0.1]},
    ))  # fmt: skip
    assert found.n_topics == 10  # losses: 1 and 0; .2 and .25; 0 and 1
    assert "compromise" in found.reason
    assert "completion perplexity is best with 50 topics (100) and NPMI is best with 5 topics (0.300)" in found.reason


def test_a_standard_error_of_a_single_fit_is_not_known():
    values = {5: [120.0], 20: [100.0], 50: [101.0]}
    found = recommend(fits(perplexity_completion=values))
    assert found.n_topics == 20
    said = "The standard error counts as 0, because the best number has a single fit; try several seeds."
    assert said in found.reason
    disagree = fits(perplexity_completion=values, document_npmi={5: [0.3], 20: [0.2], 50: [0.1]})
    assert "compromise" in recommend(disagree).reason
    assert said in recommend(disagree).reason
    twice = recommend(fits(perplexity_completion={k: each * 2 for k, each in values.items()}))
    assert "single fit" not in twice.reason


def test_the_edge_of_what_was_tried_is_said():
    found = recommend(fits(perplexity_completion={5: [200.0], 50: [100.0]}, document_npmi={5: [0.1], 50: [0.2]}))
    assert found.n_topics == 50
    assert "It is the largest number that was tried, so try larger ones too" in found.reason


def test_the_edge_counts_failed_numbers_too():
    values = {5: [np.nan], 10: [100.0], 50: [200.0]}
    found = recommend(fits(perplexity_completion=values))
    assert found.n_topics == 10
    assert "tried" not in found.reason


def test_a_single_number_is_no_choice():
    found = recommend(fits(perplexity_completion={5: [200.0, 202.0]}, document_npmi={5: [0.1, 0.2]}))
    assert found.n_topics == 5
    assert found.reason == (
        "Only one number of topics was tried, so there is nothing to choose from; try several numbers. "
        "5 topics have completion perplexity 201 and NPMI 0.150."
    )


def test_failed_fits_are_left_out():
    found = recommend(fits(
        perplexity_completion={5: [np.nan, np.nan], 10: [100.0, np.nan]},
        document_npmi={5: [np.nan, np.nan], 10: [0.2, 0.1]},
    ))  # fmt: skip
    assert found.n_topics == 10
    assert found.reason.startswith(
        "Only the fits with 10 topics could be measured, so there is nothing to choose from;"
    )
    with pytest.raises(InputError, match="no fit has a perplexity or a coherence"):
        recommend(fits(perplexity_completion={5: [np.nan]}))
    assert recommend(fits(document_npmi={5: [0.1], 10: [0.2]})).n_topics == 10
