"""scikit-learn's own checks of an estimator."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import topicloom as tl
from topicloom.models import GSM, LDA, MODELS, Loom
from topicloom.models.base import TopicModel

# The checks want words of scikit-learn's, where ours name the row and column of the count.
OTHER_WORDS = {
    "check_positive_only_tag_during_fit": "our message names the count; the check wants 'Negative values in data'",
    "check_estimators_nan_inf": "our message says 'nan, which is not finite'; the check wants 'NaN'",
}


def small(kind: type[TopicModel]) -> TopicModel:
    settings = {"epochs": 2, "pretrain_epochs": 2, "hidden_size": 8, "device": "cpu", "fractional_counts": True}
    known = kind().get_params()
    return kind(2, **{name: value for name, value in settings.items() if name in known})


TEXTS = ["the cat and the dog", "stocks and rates", "a dog sees a cat", "rates of stocks", "the dog's cat"] * 8

# All neural models take their input as GSM does.
QUICK = [GSM, LDA, Loom]

quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")


@quiet
@parametrize_with_checks([small(kind) for kind in QUICK], expected_failed_checks=lambda _: OTHER_WORDS)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@quiet
@pytest.mark.slow
@parametrize_with_checks(
    [small(kind) for kind in MODELS if kind not in QUICK and not kind.needs_vectors],
    expected_failed_checks=lambda _: OTHER_WORDS,
)
def test_scikit_learns_checks_of_other_models(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", QUICK)
def test_scikit_learn_can_ask_for_data_frames(kind):
    pandas = pytest.importorskip("pandas")
    texts = pandas.Series(TEXTS, index=range(100, 140))
    model = small(kind).set_output(transform="pandas")
    learned, found = model.fit_transform(texts), model.transform(texts[:3])
    assert list(found.columns) == list(learned.columns) == list(model.get_feature_names_out())
    assert list(found.index) == [100, 101, 102]
    assert np.array_equal(found.to_numpy(), model.set_output(transform="default").transform(texts[:3]))


def test_a_column_of_texts_in_a_table_of_scikit_learn():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": TEXTS, "size": range(40)})
    columns = ColumnTransformer([("topics", small(GSM), "text"), ("rest", "passthrough", ["size"])])
    columns.set_output(transform="pandas").fit(frame)
    assert list(columns.transform(frame[:2]).columns) == ["topics__gsm0", "topics__gsm1", "rest__size"]


def test_global_settings_of_scikit_learn_change_no_results():
    pytest.importorskip("pandas")
    model = small(GSM).set_params(random_state=0).fit(TEXTS)

    def found() -> list[object]:
        split = model.split(0, into=2, documents=TEXTS)
        places = tl.Topics(model, TEXTS).to_datamapplot()["coordinates"]
        return [split.components_.tolist(), places.tolist(), tl.evaluate(model, TEXTS)["c_npmi"]]

    usual = found()
    with sklearn.config_context(transform_output="pandas"):
        assert found() == usual


def test_the_words_of_a_vectorizer_in_a_pipeline():
    """As the README has it."""
    texts = ["the cat and the dog", "a dog and a cat", "the bank cut rates", "the bank raised rates"] * 10
    vectorizer = CountVectorizer()
    pipeline = make_pipeline(vectorizer, LDA(n_topics=2, epochs=2, random_state=0))
    pipeline.fit(texts, lda__vocabulary=vectorizer.fit(texts).get_feature_names_out())
    assert pipeline[1].vocabulary_ == ["and", "bank", "cat", "cut", "dog", "raised", "rates", "the"]
    assert pipeline.transform(texts).shape == (40, 2)


def test_a_generator_is_read_once():
    model = small(GSM).set_params(random_state=0)
    assert np.array_equal(model.fit_transform(text for text in TEXTS), model.transform(TEXTS))
