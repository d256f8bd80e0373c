"""Metrics of ordered labels and of numbers: closed forms, and what they must agree with."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from wassemble import InvalidInputError, metrics

LEVELS = np.array([0.025, 0.25, 0.5, 0.75, 0.975])


def test_the_ranked_probability_score_is_the_square_of_steps_for_the_sure():
    scores = np.eye(4)[[0, 0, 0, 3]]
    each = [metrics.ranked_probability_score(scores[[i]], [2]) for i in range(4)]
    assert each == [2, 2, 2, 1]  # a sure answer costs its distance
    np.testing.assert_allclose(metrics.ranked_probability_score(scores, [2] * 4), 7 / 4)
    weighted = metrics.ranked_probability_score(scores, [2] * 4, [0, 0, 0, 1])
    assert weighted == 1


def test_no_histogram_is_expected_to_score_better_than_the_true_one(rng):
    truth = np.repeat(np.arange(4), [10, 20, 30, 40])
    true = np.tile([0.1, 0.2, 0.3, 0.4], (100, 1))
    others = rng.dirichlet(np.ones(4), 50)
    best = metrics.ranked_probability_score(true, truth)
    for other in others:
        assert metrics.ranked_probability_score(np.tile(other, (100, 1)), truth) > best


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_the_continuous_score_is_the_mean_distance_less_half_of_that_among_draws(seed):
    rng = np.random.default_rng(seed)
    draws, truth = rng.normal(size=(3, 7)), rng.normal(size=3)
    away = np.abs(draws - truth[:, None]).mean()
    spread = np.abs(draws[:, :, None] - draws[:, None]).mean() / 2
    found = metrics.continuous_ranked_probability_score(draws, truth)
    assert found == pytest.approx(away - spread)
    shares = rng.dirichlet(np.ones(7), 3)
    expected = (shares * np.abs(draws - truth[:, None])).sum(axis=1)
    pairs = np.abs(draws[:, :, None] - draws[:, None])
    expected -= np.einsum("si,sj,sij->s", shares, shares, pairs) / 2
    found = metrics.continuous_ranked_probability_score(draws, truth, shares=shares)
    assert found == pytest.approx(expected.mean())


def test_on_labels_one_apart_the_continuous_score_is_the_ranked_one(rng):
    scores, truth = rng.dirichlet(np.ones(5), 20), rng.integers(5, size=20)
    found = metrics.continuous_ranked_probability_score(np.arange(5.0), truth, shares=scores)
    assert found == pytest.approx(metrics.ranked_probability_score(scores, truth))


def test_interval_scores_come_to_the_continuous_score_with_many_levels(rng):
    draws, truth = np.sort(rng.normal(size=(5, 2000)), axis=1), rng.normal(size=5)
    levels = (np.arange(2000) + 0.5) / 2000
    found = metrics.weighted_interval_score(draws, levels, truth)
    expected = metrics.continuous_ranked_probability_score(draws, truth)
    assert found == pytest.approx(expected, rel=1e-3)


def test_interval_scores_are_widths_and_penalties_of_intervals(rng):
    table, truth = np.sort(rng.normal(size=(6, 5)), axis=1), rng.normal(size=6)
    total = 0.5 * np.abs(truth - table[:, 2])
    for low, high, alpha in ((0, 4, 0.05), (1, 3, 0.5)):  # Bracher et al. 2021, equation 1
        outside = np.maximum(table[:, low] - truth, 0) + np.maximum(truth - table[:, high], 0)
        total += alpha / 2 * (table[:, high] - table[:, low] + 2 / alpha * outside)
    found = metrics.weighted_interval_score(table, LEVELS, truth)
    assert found == pytest.approx((total / 2.5).mean())


def test_coverage_counts_truths_inside():
    table = np.tile([0.0, 1.0, 2.0, 3.0, 4.0], (4, 1))
    truth = [0.0, 2.5, 3.5, 5.0]
    assert metrics.interval_coverage(table, LEVELS, truth) == 0.75
    assert metrics.interval_coverage(table, LEVELS, truth, share=0.5) == 0.25
    assert metrics.interval_coverage(table, LEVELS, truth, [0, 0, 0, 1]) == 0


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_quadratic_kappa_is_that_of_the_table_of_both(seed):
    rng = np.random.default_rng(seed)
    answers, truth = rng.integers(4, size=(2, 30))
    weight = rng.uniform(0.1, 1, 30)
    table = np.zeros((4, 4))
    np.add.at(table, (answers, truth), weight / weight.sum())
    squares = np.subtract.outer(np.arange(4), np.arange(4)) ** 2
    chance = np.outer(table.sum(axis=1), table.sum(axis=0))
    expected = 1 - (squares * table).sum() / (squares * chance).sum()
    assert metrics.quadratic_kappa(answers, truth, weight) == pytest.approx(expected)
    assert metrics.quadratic_kappa(np.eye(4)[answers], truth, weight) == pytest.approx(expected)


def test_no_answer_is_as_far_off_as_can_be():
    scores = np.eye(4)[[0, 1, 2, 3, 0]]
    truth = [0, 1, 2, 3, 1]
    scores[4] = 0
    far = np.array([0, 1, 2, 3, 3])
    assert metrics.quadratic_kappa(scores, truth) == metrics.quadratic_kappa(far, truth)
    assert np.isnan(metrics.quadratic_kappa([1, 1], [1, 1]))


def test_expected_cost_is_that_of_the_answer_for_the_sure(rng):
    cost = rng.uniform(size=(3, 3))
    answers, truth = rng.integers(3, size=(2, 10))
    found = metrics.expected_cost(np.eye(3)[answers], truth, cost)
    assert found == pytest.approx(metrics.mean_cost(answers, truth, cost))


@pytest.mark.parametrize("name", ["rps", "quadratic_kappa"])
def test_measures_know_them_by_name(name, rng):
    scores, truth = rng.dirichlet(np.ones(3), 30), rng.integers(3, size=30)
    known = metrics.measure(name, "multiclass")
    assert known.is_ordered
    value = {"rps": metrics.ranked_probability_score, "quadratic_kappa": metrics.quadratic_kappa}
    assert known.value(scores, truth) == pytest.approx(value[name](scores, truth))
    assert known.is_loss == (name == "rps")
    assert not metrics.ACCURACY.is_ordered


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: metrics.weighted_interval_score([[2, 1]], [0.1, 0.9], [1]), "must not fall"),
        (lambda: metrics.weighted_interval_score([[1, 2]], [0.9, 0.1], [1]), "must increase"),
        (lambda: metrics.weighted_interval_score([[1, 2]], [0.5], [1]), "the first of 2"),
        (lambda: metrics.weighted_interval_score([[1, np.nan]], [0.1, 0.9], [1]), "be finite"),
        (lambda: metrics.interval_coverage([[1, 2]], [0.1, 0.9], [1]), "0.025 and 0.975"),
        (
            lambda: metrics.continuous_ranked_probability_score([[1, 2]], [1], shares=[[1]]),
            "the shape of `draws`",
        ),
    ],
)
def test_what_is_no_forecast_is_refused(call, words):
    with pytest.raises(InvalidInputError, match=words):
        call()
