"""scikit-learn's own checks of an estimator."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

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
    [small(kind) for kind in MODELS if kind not in QUICK], expected_failed_checks=lambda _: OTHER_WORDS
)
def test_scikit_learns_checks_of_other_models(estimator, check):
    check(estimator)
