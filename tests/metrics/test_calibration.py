"""Calibration by hand, and as the sum that the definition writes."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from wassemble import InvalidInputError
from wassemble.metrics import accuracy, calibration_bins, expected_calibration_error


def test_bins_by_hand():
    scores = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.45, 0.55]]
    bins = calibration_bins(scores, [0, 1, 1, 0], n_bins=4)
    np.testing.assert_array_equal(bins.edges, [0, 0.25, 0.5, 0.75, 1])
    np.testing.assert_array_equal(bins.count, [0, 0, 2, 2])
    np.testing.assert_allclose(bins.confidence, [np.nan, np.nan, 0.625, 0.85])
    np.testing.assert_allclose(bins.accuracy, [np.nan, np.nan, 0.5, 0.5])
    error = expected_calibration_error(scores, [0, 1, 1, 0], n_bins=4)
    assert error == pytest.approx((2 * 0.125 + 2 * 0.35) / 4)


def test_a_bin_holds_its_upper_edge():
    bins = calibration_bins([[0.5, 0.5], [1, 0]], [0, 0], n_bins=2)
    np.testing.assert_array_equal(bins.count, [1, 1])


def test_a_row_without_an_answer_is_wrong_with_the_confidence_of_a_uniform_one():
    bins = calibration_bins([[0, 0, 0, 0]], [0], n_bins=1)
    assert bins.confidence == 0.25
    assert bins.accuracy == 0


def test_sure_and_right_is_calibrated_and_sure_and_wrong_is_not():
    assert expected_calibration_error(np.eye(5), np.arange(5)) == 0
    assert expected_calibration_error(np.eye(5), np.arange(5)[::-1]) == pytest.approx(0.8)


@given(st.integers(0, 2**16), st.integers(1, 20))
def test_error_is_the_sum_of_the_definition(seed, n_bins):
    rng = np.random.default_rng(seed)
    scores, truth = rng.dirichlet(np.ones(4), size=40), rng.integers(4, size=40)
    confidence, right = scores.max(axis=1), scores.argmax(axis=1) == truth
    expected = 0.0
    for low, high in [(m / n_bins, (m + 1) / n_bins) for m in range(n_bins)]:
        inside = (confidence > low) & (confidence <= high)
        expected += abs(right[inside].sum() - confidence[inside].sum()) / 40
    bins = calibration_bins(scores, truth, n_bins=n_bins)
    found = expected_calibration_error(7 * scores, truth, n_bins=n_bins)
    assert found == pytest.approx(expected)
    assert 0 <= found <= 1
    assert bins.count.sum() == 40
    assert np.nansum(bins.count * bins.accuracy) / 40 == pytest.approx(accuracy(scores, truth))


def test_no_bins_are_refused():
    with pytest.raises(InvalidInputError, match="`n_bins` must be at least 1; got 0"):
        calibration_bins([[1, 0]], [0], n_bins=0)


def test_weights_count_as_repetitions(rng):
    scores, truth = rng.dirichlet(np.ones(3), size=30), rng.integers(3, size=30)
    weight = rng.integers(3, size=30)
    rows = np.repeat(np.arange(30), weight)
    found = expected_calibration_error(scores, truth, weight, n_bins=4)
    assert found == pytest.approx(expected_calibration_error(scores[rows], truth[rows], n_bins=4))
    assert calibration_bins(scores, truth, weight).count.sum() == weight.sum()
