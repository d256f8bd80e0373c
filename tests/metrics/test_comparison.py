"""The paired bootstrap: its laws, and beside SciPy's."""

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, strategies as st

from wassemble import InvalidInputError
from wassemble.metrics import (
    accuracy,
    bootstrap,
    mean_average_precision,
    mean_cost_of_mistakes,
    paired_bootstrap,
)


@given(st.integers(0, 2**16), st.integers(2, 40))
def test_the_interval_holds_the_difference(seed, n_samples):
    first, second = np.random.default_rng(seed).uniform(size=(2, n_samples))
    found = paired_bootstrap(first, second, n_resamples=300, seed=seed)
    assert found.difference == pytest.approx((first - second).mean())
    assert found.low <= found.difference <= found.high
    assert found.low <= found.high
    assert 0 <= found.p_better <= 1
    assert found.n_resamples == 300


def test_standard_error_and_interval_are_those_of_scipy(rng):
    first, second = rng.normal(size=(2, 60))
    found = paired_bootstrap(first, second, n_resamples=20_000, confidence=0.8)
    expected = scipy.stats.bootstrap(
        (first - second,),
        np.mean,
        n_resamples=20_000,
        confidence_level=0.8,
        method="percentile",
        rng=1,
    )
    assert found.standard_error == pytest.approx(expected.standard_error, rel=0.02)
    assert found.low == pytest.approx(expected.confidence_interval.low, abs=0.02)
    assert found.high == pytest.approx(expected.confidence_interval.high, abs=0.02)
    plain = (first - second).std() / np.sqrt(60)
    assert found.standard_error == pytest.approx(plain, rel=0.02)


def test_samples_are_paired(rng):
    first = rng.normal(size=50) * 100
    found = paired_bootstrap(first, first - 0.25)
    assert [found.difference, found.low, found.high] == pytest.approx([0.25] * 3)
    assert found.standard_error == pytest.approx(0, abs=1e-12)
    assert found.p_better == 1


def test_equal_rules_are_better_half_of_the_time():
    found = paired_bootstrap([1, 0, 1], [1, 0, 1])
    assert (found.difference, found.low, found.high, found.p_better) == (0, 0, 0, 0.5)


def test_exchanging_the_rules_changes_the_sign(rng):
    first, second = rng.uniform(size=(2, 30))
    one, other = paired_bootstrap(first, second), paired_bootstrap(second, first)
    assert one.difference == pytest.approx(-other.difference)
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))
    assert one.p_better == pytest.approx(1 - other.p_better)


def test_a_seed_gives_the_same_answer_in_any_pieces(rng, monkeypatch):
    first, second = rng.uniform(size=(2, 30))
    whole = paired_bootstrap(first, second, seed=3)
    monkeypatch.setattr(bootstrap, "_N_DRAWS", 100)
    assert paired_bootstrap(first, second, seed=3) == whole
    assert paired_bootstrap(first, second, seed=4).low != whole.low


def test_a_metric_that_is_a_mean_agrees_with_its_values(rng):
    first, second = rng.dirichlet(np.ones(3), size=(2, 40))
    truth = rng.integers(3, size=40)
    by_metric = paired_bootstrap(first, second, metric=accuracy, truth=truth)
    right = [(scores.argmax(axis=1) == truth).astype(float) for scores in (first, second)]
    by_values = paired_bootstrap(*right)
    for name in ("difference", "standard_error", "low", "high", "p_better"):
        expected = getattr(by_values, name)
        assert getattr(by_metric, name) == pytest.approx(expected, abs=1e-12), name


def test_a_metric_is_computed_anew_on_each_resample(rng):
    truth = (rng.uniform(size=(60, 2)) < 0.4).astype(int)
    good = truth + rng.uniform(size=truth.shape)
    bad = rng.uniform(size=truth.shape)
    found = paired_bootstrap(good, bad, metric=mean_average_precision, truth=truth, n_resamples=40)
    expected = mean_average_precision(good, truth) - mean_average_precision(bad, truth)
    assert found.difference == pytest.approx(expected)
    assert found.low < found.difference < found.high
    assert found.low > 0
    assert found.p_better == 1


def test_groups_are_drawn_together(rng):
    values = np.repeat(rng.normal(size=10), 20)
    groups = np.repeat(list("abcdefghij"), 20)
    alone = paired_bootstrap(values, np.zeros(200))
    together = paired_bootstrap(values, np.zeros(200), groups=groups)
    once = paired_bootstrap(values[::20], np.zeros(10))
    assert together.standard_error == pytest.approx(once.standard_error)
    assert together.standard_error > 3 * alone.standard_error
    assert together.difference == pytest.approx(alone.difference)


def test_groups_of_unequal_size_agree_in_both_forms(rng):
    first, second = rng.uniform(size=(2, 30))
    groups = rng.integers(7, size=30)
    by_values = paired_bootstrap(first, second, groups=groups)
    by_metric = paired_bootstrap(
        first, second, groups=groups, metric=lambda values, _: values.mean(), truth=np.zeros(30)
    )
    assert by_metric.low == pytest.approx(by_values.low)
    assert by_metric.standard_error == pytest.approx(by_values.standard_error)


def test_one_sample_has_no_spread():
    found = paired_bootstrap([0.5], [0.25])
    assert (found.low, found.high, found.standard_error) == (0.25, 0.25, 0)


def test_resamples_without_a_value_are_left_out_and_counted():
    def metric(answers, truth):
        return mean_cost_of_mistakes(answers, truth, [[0, 1], [3, 0]])

    truth = np.array([0, 1, 0, 0])
    first, second = np.array([1, 0, 0, 0]), np.array([1, 1, 0, 0])
    found = paired_bootstrap(first, second, metric=metric, truth=truth, n_resamples=100)
    assert 10 < found.n_resamples < 100
    assert found.difference == 1
    assert not np.isnan(found.low)


def test_bad_input_is_named():
    with pytest.raises(
        InvalidInputError, match="both rules must have the same samples; got 2 and 1"
    ):
        paired_bootstrap([1, 2], [1])
    with pytest.raises(
        InvalidInputError, match=r"`second` must hold one value.*got shape \(1, 2\)"
    ):
        paired_bootstrap([1, 2], [[1, 2]])
    with pytest.raises(InvalidInputError, match="`first` must be finite; got nan at sample 1"):
        paired_bootstrap([1, np.nan], [1, 2])
    with pytest.raises(InvalidInputError, match="`truth` must be given with `metric`; got none"):
        paired_bootstrap([1], [1], metric=accuracy)
    with pytest.raises(InvalidInputError, match="`truth` must come with a `metric`"):
        paired_bootstrap([1], [1], truth=[1])
    with pytest.raises(
        InvalidInputError, match=r"the same samples; got shapes \(1,\), \(2,\), \(1,\)"
    ):
        paired_bootstrap([1], [1, 0], metric=accuracy, truth=[1])
    with pytest.raises(InvalidInputError, match=r"each of the 2 samples; got shape \(1,\)"):
        paired_bootstrap([1, 2], [1, 2], groups=["a"])
    with pytest.raises(InvalidInputError, match="`confidence` must be between 0 and 1; got 95"):
        paired_bootstrap([1, 2], [1, 2], confidence=95)
    with pytest.raises(InvalidInputError, match="`n_resamples` must be at least 2; got 1"):
        paired_bootstrap([1, 2], [1, 2], n_resamples=1)
    with pytest.raises(InvalidInputError, match=r"must be finite on all samples; .* is nan"):
        paired_bootstrap([1], [1], metric=lambda *_: np.nan, truth=[1])
    with pytest.raises(InvalidInputError, match="`first` must hold at least one sample; got none"):
        paired_bootstrap([], [], metric=accuracy, truth=[])
    calls = iter([1.0, 0.0])
    with pytest.raises(InvalidInputError, match="on some resamples; got nan on all but 0"):
        paired_bootstrap([1], [1], metric=lambda *_: next(calls, np.nan), truth=[1])
