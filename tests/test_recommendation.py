"""What is said of several fits: paired tests with Holm's correction, and a recommended number of topics."""

from __future__ import annotations

import numpy as np
import pytest

from topicloom.errors import InputError
from topicloom.experiments.compare import recommend
from topicloom.metrics.significance import holm, paired_difference


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
