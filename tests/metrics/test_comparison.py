"""Comparisons by the paired bootstrap: their laws, and beside SciPy's."""

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, strategies as st

from wassemble import InvalidInputError
from wassemble.metrics import (
    LOG_LOSS,
    MEAN,
    Comparison,
    Estimate,
    PairedBootstrap,
    accuracy,
    compare,
    comparison,
    mean_average_precision,
    mean_cost_of_mistakes,
)


@given(st.integers(0, 2**16), st.integers(2, 40))
def test_the_interval_holds_the_difference(seed, n_samples):
    first, second = np.random.default_rng(seed).uniform(size=(2, n_samples))
    found = compare(first, second, n_resamples=300, seed=seed)
    assert found.difference == pytest.approx((first - second).mean())
    assert found.low <= found.difference <= found.high
    assert found.low <= found.high
    assert 0 <= found.sure <= 1
    assert found.n_resamples == 300


def test_standard_error_and_interval_are_those_of_scipy(rng):
    first, second = rng.normal(size=(2, 60))
    found = compare(first, second, n_resamples=20_000, confidence=0.8)
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
    found = compare(first, first - 0.25)
    assert [found.difference, found.low, found.high] == pytest.approx([0.25] * 3)
    assert found.standard_error == pytest.approx(0, abs=1e-12)
    assert found.sure == 1


def test_equal_rules_are_better_half_of_the_time():
    found = compare([1, 0, 1], [1, 0, 1])
    assert (found.difference, found.low, found.high, found.sure) == (0, 0, 0, 0.5)


def test_exchanging_the_rules_changes_the_sign(rng):
    first, second = rng.uniform(size=(2, 30))
    one, other = compare(first, second), compare(second, first)
    assert one.difference == pytest.approx(-other.difference)
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))
    assert one.sure == pytest.approx(1 - other.sure)


def test_a_metric_that_is_a_mean_agrees_with_its_values(rng):
    first, second = rng.dirichlet(np.ones(3), size=(2, 40))
    truth = rng.integers(3, size=40)
    by_metric = compare(first, second, measure=accuracy, truth=truth)
    right = [(scores.argmax(axis=1) == truth).astype(float) for scores in (first, second)]
    by_values = compare(*right)
    for name in ("difference", "standard_error", "low", "high", "sure"):
        expected = getattr(by_values, name)
        assert getattr(by_metric, name) == pytest.approx(expected, abs=1e-12), name


def test_a_metric_is_computed_anew_on_each_resample(rng):
    truth = (rng.uniform(size=(60, 2)) < 0.4).astype(int)
    good = truth + rng.uniform(size=truth.shape)
    bad = rng.uniform(size=truth.shape)
    found = compare(good, bad, measure=mean_average_precision, truth=truth, n_resamples=40)
    expected = mean_average_precision(good, truth) - mean_average_precision(bad, truth)
    assert found.difference == pytest.approx(expected)
    assert found.low < found.difference < found.high
    assert found.low > 0
    assert found.sure == 1


def test_groups_are_drawn_together(rng):
    values = np.repeat(rng.normal(size=10), 20)
    groups = np.repeat(list("abcdefghij"), 20)
    alone = compare(values, np.zeros(200))
    together = compare(values, np.zeros(200), groups=groups)
    once = compare(values[::20], np.zeros(10))
    assert together.standard_error == pytest.approx(once.standard_error)
    assert together.standard_error > 3 * alone.standard_error
    assert together.difference == pytest.approx(alone.difference)


def test_groups_of_unequal_size_agree_in_both_forms(rng):
    first, second = rng.uniform(size=(2, 30))
    groups = rng.integers(7, size=30)
    by_values = compare(first, second, groups=groups)
    by_metric = compare(
        first, second, groups=groups, measure=lambda values, _: values.mean(), truth=np.zeros(30)
    )
    assert by_metric.low == pytest.approx(by_values.low)
    assert by_metric.standard_error == pytest.approx(by_values.standard_error)


def test_one_sample_has_no_spread():
    found = compare([0.5], [0.25])
    assert (found.low, found.high, found.standard_error) == (0.25, 0.25, 0)


def test_resamples_without_a_value_are_left_out_and_counted():
    def metric(answers, truth):
        return mean_cost_of_mistakes(answers, truth, [[0, 1], [3, 0]])

    truth = np.array([0, 1, 0, 0])
    first, second = np.array([1, 0, 0, 0]), np.array([1, 1, 0, 0])
    found = compare(first, second, measure=metric, truth=truth, n_resamples=100)
    assert 10 < found.n_resamples < 100
    assert found.difference == 1
    assert not np.isnan(found.low)


def test_bad_input_is_named():
    with pytest.raises(
        InvalidInputError, match=r"the same samples; got shapes \(2,\), \(1,\), \(2,\)"
    ):
        compare([1, 2], [1])
    with pytest.raises(
        InvalidInputError, match=r"`second` must hold one value.*got shape \(1, 2\)"
    ):
        compare([1, 2], [[1, 2]])
    with pytest.raises(InvalidInputError, match="`first` must be finite; got nan at sample 1"):
        compare([1, np.nan], [1, 2])
    with pytest.raises(InvalidInputError, match="`truth` must be given with `measure`; got none"):
        compare([1], [1], measure=accuracy)
    with pytest.raises(InvalidInputError, match="`truth` must come with a `measure`"):
        compare([1], [1], truth=[1])
    with pytest.raises(
        InvalidInputError, match=r"the same samples; got shapes \(1,\), \(2,\), \(1,\)"
    ):
        compare([1], [1, 0], measure=accuracy, truth=[1])
    with pytest.raises(InvalidInputError, match=r"each of the 2 samples; got shape \(1,\)"):
        compare([1, 2], [1, 2], groups=["a"])
    with pytest.raises(InvalidInputError, match="`confidence` must be above 0 and below 1; got 95"):
        compare([1, 2], [1, 2], confidence=95)
    with pytest.raises(InvalidInputError, match="`n_resamples` must be at least 2; got 1"):
        compare([1, 2], [1, 2], n_resamples=1)
    with pytest.raises(InvalidInputError, match="must be finite on all samples; got nan and nan"):
        compare([1], [1], measure=lambda *_: np.nan, truth=[1])
    with pytest.raises(InvalidInputError, match="`first` must hold at least one sample; got none"):
        compare([], [], measure=accuracy, truth=[])

    def distinct(values, _):
        return 1.0 if len(set(values.tolist())) == len(values) else np.nan

    with pytest.raises(InvalidInputError, match="on some resamples; got nan on all but 0"):
        compare(np.arange(40), np.arange(40), measure=distinct, truth=np.zeros(40))


def test_a_comparison_is_a_plain_loop_over_the_drawn_samples(rng):
    first, second = rng.dirichlet(np.ones(3), size=(2, 20))
    truth = rng.integers(3, size=20)
    bootstrap = PairedBootstrap(LOG_LOSS, truth, n_resamples=50, seed=1)
    found = bootstrap.estimate(first).minus(bootstrap.estimate(second))
    [counts] = bootstrap.resamples.blocks()
    rows = [np.repeat(np.arange(20), times.astype(int)) for times in counts]
    drawn = [LOG_LOSS.value(second[i], truth[i]) - LOG_LOSS.value(first[i], truth[i]) for i in rows]
    assert found.standard_error == pytest.approx(np.std(drawn))
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])))
    assert found.sure == np.mean(np.array(drawn) > 0)
    assert found.n_resamples == 50


def test_of_two_losses_the_lower_one_is_better():
    truth = np.zeros(30, dtype=int)
    good, bad = np.full((30, 2), [0.9, 0.1]), np.full((30, 2), [0.6, 0.4])
    found = compare(good, bad, truth, measure="log_loss")
    assert found.difference == pytest.approx(np.log(0.9 / 0.6))
    assert (found.is_better, found.is_worse, found.sure, found.verdict) == (
        True,
        False,
        1,
        "better",
    )
    assert compare(bad, good, truth, measure="log_loss").is_worse


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (Comparison(0.2, 0.05, 0.1, 0.3, 1), "better"),
        (Comparison(0.2, 0.15, -0.1, 0.5, 0.875), "likely better, not surely"),
        (Comparison(0.1, 0.15, -0.2, 0.4, 0.75), "as good, within noise"),
        (Comparison(-0.2, 0.15, -0.5, 0.1, 0.125), "worse, by more than one standard error"),
    ],
)
def test_a_verdict_says_what_the_figures_do(found, verdict):
    assert found.verdict == verdict
    assert found.reverse().reverse() == found
    assert found.reverse().is_worse == found.is_better


def test_no_difference_is_not_shown_with_a_minus():
    assert str(Comparison(0.0, 0.0, 0.0, 0.0, 0.5).reverse()).startswith("+0.0000 (")


def test_weights_count_as_repetitions(rng):
    scores = rng.uniform(size=12)
    weight = np.repeat([1.0, 3.0], 6)
    weighted = PairedBootstrap(MEAN, scores, sample_weight=weight).estimate(scores)
    assert weighted.score == pytest.approx(np.average(scores, weights=weight))
    low, high = weighted.interval
    assert low < weighted.score < high
    assert np.mean(weighted.drawn) == pytest.approx(weighted.score, abs=0.02)


def test_a_mean_of_estimates_is_their_mean_on_each_resample(rng):
    bootstrap = PairedBootstrap(MEAN, np.zeros(30))
    first, second = rng.normal(size=(2, 30))
    found = Estimate.mean([bootstrap.estimate(first), bootstrap.estimate(second)])
    expected = bootstrap.estimate((first + second) / 2)
    assert found.score == pytest.approx(expected.score)
    assert found.standard_error == pytest.approx(expected.standard_error)


def test_very_many_samples_are_drawn_fewer_times(monkeypatch):
    monkeypatch.setattr(comparison, "MOST_DRAWS", 3000)
    for n_samples, n_resamples in ((2, 1000), (20, 150), (1000, 100)):
        assert len(PairedBootstrap(MEAN, np.zeros(n_samples)).resamples) == n_resamples
    assert len(PairedBootstrap(MEAN, np.zeros(1000), n_resamples=300).resamples) == 300
