"""Resamples: beside a plain loop, their laws, and intervals."""

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, strategies as st

from wassemble import InvalidInputError
from wassemble.metrics import Resamples, percentile_interval, resamples, student_interval


def loop_means(counts, values):
    """Mean of the drawn values, resample by resample."""
    found = []
    for times in counts.astype(int):
        drawn = [value for value, n in zip(values, times, strict=True) for _ in range(n)]
        found.append(np.mean(drawn, axis=0))
    return np.array(found)


def all_counts(drawn):
    return np.concatenate(list(drawn.blocks()))


@given(st.integers(0, 2**16), st.integers(1, 12), st.integers(1, 4))
def test_means_are_those_of_a_plain_loop(seed, n_samples, n_groups):
    rng = np.random.default_rng(seed)
    values, groups = rng.normal(size=(n_samples, 2)), rng.integers(n_groups, size=n_samples)
    for given_groups in ((), (groups,)):
        drawn = Resamples.draw(n_samples, *given_groups, n_resamples=20, seed=seed)
        counts = all_counts(drawn)
        assert counts.shape == (20, n_samples)
        np.testing.assert_allclose(drawn.means(values), loop_means(counts, values))
        np.testing.assert_allclose(drawn.means(values[:, 0]), drawn.means(values)[:, 0])


def test_as_many_samples_are_drawn_as_there_are():
    counts = all_counts(Resamples.draw(7, n_resamples=50))
    assert (counts.sum(axis=1) == 7).all()
    assert counts.mean(axis=0) == pytest.approx(np.ones(7), abs=0.5)
    assert len(Resamples.draw(7, n_resamples=50)) == 50


def test_groups_of_one_are_single_samples():
    alone, grouped = Resamples.draw(9, seed=5), Resamples.draw(9, list("abcdefghi"), seed=5)
    np.testing.assert_array_equal(all_counts(alone), all_counts(grouped))


def test_samples_of_a_group_are_drawn_together():
    counts = all_counts(Resamples.draw(6, ["b", "a", "b", "c", "a", "b"]))
    for members in ([0, 2, 5], [1, 4]):
        assert (counts[:, members] == counts[:, members[:1]]).all()
    assert (counts[:, [0, 1, 3]].sum(axis=1) == 3).all()


def test_two_ways_to_group_multiply():
    raters, items = [0, 0, 1, 1], [0, 1, 0, 1]
    counts = all_counts(Resamples.draw(4, raters, items, seed=2))
    # 2 raters and 2 items are drawn, so that 4 answers of this full table are.
    assert (counts.sum(axis=1) == 4).all()
    np.testing.assert_array_equal(counts[:, 0] * counts[:, 3], counts[:, 1] * counts[:, 2])


def test_a_resample_without_a_sample_has_no_mean():
    # Rater 0 saw item 0 and rater 1 saw item 1: rater 0 may be drawn with item 1.
    means = Resamples.draw(2, [0, 1], [0, 1]).means(np.array([1.0, 5.0]))
    assert 0 < np.isnan(means).sum() < 1000
    low, high = student_interval(3.0, means, n_groups=2)
    assert np.isfinite([low, high, *percentile_interval(means)]).all()


def test_samples_are_drawn_in_proportion_to_their_weights():
    counts = all_counts(Resamples.draw(4, sample_weight=[0, 1, 1, 2], n_resamples=4000))
    assert counts.mean(axis=0) == pytest.approx([0, 1, 1, 2], abs=0.06)


def test_a_seed_gives_the_same_means_in_any_pieces(rng, monkeypatch):
    values, groups = rng.normal(size=20), np.arange(20) % 4
    cases = ((), (groups,), (groups, np.arange(20) % 5))
    whole = [Resamples.draw(20, *each, seed=3).means(values) for each in cases]
    monkeypatch.setattr(resamples, "MOST_DRAWS", 150)
    for each, expected in zip(cases, whole, strict=True):
        drawn = Resamples.draw(20, *each, seed=3)
        assert len(list(drawn.blocks())) > 100
        np.testing.assert_allclose(drawn.means(values), expected)
        assert (Resamples.draw(20, *each, seed=4).means(values) != expected).any()


def test_an_interval_of_a_constant_is_that_constant():
    for confidence in (0.5, 0.95):
        assert percentile_interval(np.full(30, 0.3), confidence) == (0.3, 0.3)
    assert student_interval(0.3, np.full(30, 0.3), n_groups=3) == pytest.approx((0.3, 0.3))
    drawn = Resamples.draw(8).means(np.full(8, 0.25))
    assert percentile_interval(drawn) == (0.25, 0.25)


def test_percentiles_are_numpys_and_leave_nan_out(rng):
    drawn = rng.normal(size=101)
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert percentile_interval(drawn) == (low, high)
    assert percentile_interval(np.append(drawn, np.nan)) == (low, high)
    assert np.isnan(percentile_interval(np.full(3, np.nan))).all()


def test_students_interval_is_scipys_within_its_limits(rng):
    drawn = rng.normal(2, 0.5, size=200)
    expected = scipy.stats.t.interval(0.95, 4, loc=2, scale=drawn.std())
    assert student_interval(2.0, drawn, n_groups=5) == pytest.approx(expected)
    low, high = student_interval(2.0, drawn, n_groups=5, limits=(1.9, 2.1))
    assert (low, high) == (1.9, 2.1)


def test_bad_input_is_named():
    with pytest.raises(InvalidInputError, match=r"each of the 2 samples; got shape \(1,\)"):
        Resamples.draw(2, ["a"])
    with pytest.raises(InvalidInputError, match="`n_resamples` must be at least 2; got 1"):
        Resamples.draw(2, n_resamples=1)
    with pytest.raises(InvalidInputError, match="`seed` must be at least 0; got -1"):
        Resamples.draw(2, seed=-1)
    with pytest.raises(InvalidInputError, match="`sample_weight` must not be given with `groups`"):
        Resamples.draw(2, [0, 1], sample_weight=[1, 1])
