"""Multi-label metrics: by hand, beside scikit-learn, and what the paper's table says."""

import dataclasses
import math

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given, strategies as st

from wassemble import InvalidInputError
from wassemble.metrics import (
    average_precision,
    mean_average_precision,
    precision_recall_f1,
)

# The paper's table MultiPerfs: F1-C, P-C, R-C of its own eight models and of five published.
OWN_ROWS = """
54.6 74.9 43.0 | 55.5 74.2 44.4 | 51.0 71.9 39.5 | 43.8 71.3 31.6
40.7 68.9 28.9 | 57.9 76.7 46.4 | 55.9 78.7 43.4 | 50.7 75.7 38.1
"""
PUBLISHED_ROWS = """
55.7 65.8 51.9 | 55.6 65.4 52.2 | 54.9 69.3 48.6 | 56.9 67.5 52.5 | 58.5 65.2 55.8
"""


def draw_case(seed, n_samples=40, n_labels=6, levels=None):
    rng = np.random.default_rng(seed)
    scores = rng.uniform(size=(n_samples, n_labels))
    if levels:
        scores = np.round(scores * levels) / levels  # equal scores
    truth = (rng.uniform(size=scores.shape) < scores**2).astype(int)
    truth[0] = 1  # every label has a positive
    return scores, truth


@given(st.integers(0, 2**16), st.integers(1, 6), st.sampled_from([None, 4]))
def test_average_precision_is_that_of_scikit_learn(seed, n_labels, levels):
    scores, truth = draw_case(seed, n_labels=n_labels, levels=levels)
    expected = [
        sklearn.metrics.average_precision_score(truth[:, j], scores[:, j]) for j in range(n_labels)
    ]
    found = average_precision(scores, truth)
    np.testing.assert_allclose(found, expected)
    assert mean_average_precision(scores, truth) == pytest.approx(np.mean(expected))
    assert np.all((found > 0) & (found <= 1))


def test_average_precision_by_hand():
    scores, truth = [[0.9], [0.8], [0.7], [0.6]], [[1], [0], [1], [0]]
    assert mean_average_precision(scores, truth) == pytest.approx((1 + 2 / 3) / 2)
    assert mean_average_precision(np.ones((4, 1)), truth) == 0.5  # one threshold for all


def test_labels_without_a_positive_are_left_out_of_the_mean():
    scores, truth = draw_case(0)
    truth[:, 2] = 0
    found = average_precision(scores, truth)
    assert np.flatnonzero(np.isnan(found)).tolist() == [2]
    assert mean_average_precision(scores, truth) == pytest.approx(np.delete(found, 2).mean())
    assert math.isnan(mean_average_precision(scores, np.zeros_like(truth)))


def test_what_is_not_known_is_left_out():
    scores, truth = draw_case(1, n_labels=1)
    known = np.random.default_rng(1).uniform(size=truth.shape) < 0.7
    known[0] = True
    rows = known[:, 0]
    for unknown in (-1, np.nan):
        marked = np.where(known, truth, unknown)
        for metric in (mean_average_precision, precision_recall_f1):
            expected = metric(scores[rows], truth[rows])
            assert metric(scores, marked) == metric(scores, truth, mask=known) == expected
            assert metric(scores, truth) != expected


def test_a_row_without_an_answer_scores_0_for_every_label():
    scores, truth = draw_case(2)
    empty, missing = scores.copy(), scores.copy()
    empty[3], missing[3] = 0, np.nan
    assert mean_average_precision(missing, truth) == mean_average_precision(empty, truth)
    for settings in ({}, {"threshold": 0.0}, {"top_k": 2}):
        found = precision_recall_f1(missing, truth, **settings)
        assert found == precision_recall_f1(empty, truth, **settings)
    everything = precision_recall_f1(np.full((2, 2), np.nan), np.ones((2, 2)), threshold=0.0)
    assert everything.recall_overall == 0


def test_figures_by_hand():
    scores = [[0.9, 0.8, 0.1], [0.7, 0.2, 0.6], [0.1, 0.9, 0.5]]
    truth = [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    found = precision_recall_f1(scores, truth)
    # Hits, decided, positive: 2 2 3 | 1 2 2 | 1 2 1.
    assert found.precision_per_class == pytest.approx((1 + 1 / 2 + 1 / 2) / 3)
    assert found.recall_per_class == pytest.approx((2 / 3 + 1 / 2 + 1) / 3)
    assert found.f1_per_class == pytest.approx((4 / 5 + 1 / 2 + 2 / 3) / 3)
    assert found.precision_overall == pytest.approx(4 / 6)
    assert found.recall_overall == pytest.approx(4 / 6)
    assert found.f1_overall == pytest.approx(4 / 6)
    precision, recall = found.precision_per_class, found.recall_per_class
    assert found.f1_of_means == pytest.approx(2 / (1 / precision + 1 / recall))
    assert found.n_labels == 3


@given(st.integers(0, 2**16), st.integers(2, 6))
def test_figures_are_those_of_scikit_learn(seed, n_labels):
    scores, truth = draw_case(seed, n_samples=8, n_labels=n_labels)
    limits = np.random.default_rng(seed).uniform(size=n_labels)
    found = precision_recall_f1(scores, truth, threshold=limits)
    for average, kind in (("macro", "per_class"), ("micro", "overall")):
        expected = sklearn.metrics.precision_recall_fscore_support(
            truth, (scores >= limits).astype(int), average=average, zero_division=0
        )
        for name, value in zip(("precision", "recall", "f1"), expected[:3], strict=True):
            assert getattr(found, f"{name}_{kind}") == pytest.approx(value)
    assert all(0 <= value <= 1 for value in dataclasses.astuple(found)[:-1])


def test_labels_without_a_positive_count_overall_only():
    truth, scores = [[1, 0], [1, 0]], [[1, 1], [1, 0]]
    found = precision_recall_f1(scores, truth)
    assert found.n_labels == 1
    assert found.precision_per_class == found.f1_of_means == 1
    assert found.precision_overall == pytest.approx(2 / 3)
    none = precision_recall_f1(scores, np.zeros((2, 2)))
    assert all(math.isnan(value) for value in dataclasses.astuple(none)[:-1])


def test_a_label_that_is_never_decided_has_precision_0():
    found = precision_recall_f1([[0.9, 0.1]], [[1, 1]])
    assert found.precision_per_class == 0.5
    assert precision_recall_f1([[0.1]], [[1]]).f1_of_means == 0


def test_top_k_decides_the_largest_scores_above_0():
    scores = [[0.4, 0.3, 0.2, 0.1], [0.2, 0.2, 0.2, 0.2], [0.9, 0, 0, 0]]
    decided = [[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 0, 0]]
    found = precision_recall_f1(scores, decided, top_k=2)
    assert found.f1_overall == found.f1_per_class == 1
    assert found.n_labels == 2
    both = precision_recall_f1(scores, decided, top_k=2, threshold=0.35)
    assert both.recall_overall == pytest.approx(2 / 5)
    assert precision_recall_f1(scores, decided, top_k=9).recall_overall == 1


def test_the_papers_own_f1_per_class_is_the_harmonic_mean_and_the_published_one_is_not():
    def gap(rows):
        table = [[float(x) for x in row.split()] for row in rows.replace("\n", "|").split("|")]
        return [abs(f1 - 2 / (1 / p + 1 / r)) for f1, p, r in filter(None, table)]

    assert len(gap(OWN_ROWS)) == 8
    assert max(gap(OWN_ROWS)) < 0.1
    assert min(gap(PUBLISHED_ROWS)) > 1.5


@given(st.integers(0, 2**16))
def test_order_of_samples_and_labels_does_not_matter(seed):
    scores, truth = draw_case(seed, n_samples=10, n_labels=4)
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(10), rng.permutation(4)
    moved = scores[rows][:, columns], truth[rows][:, columns]
    np.testing.assert_allclose(average_precision(*moved), average_precision(scores, truth)[columns])
    found, expected = precision_recall_f1(*moved), precision_recall_f1(scores, truth)
    np.testing.assert_allclose(dataclasses.astuple(found), dataclasses.astuple(expected))


@pytest.mark.parametrize("metric", [mean_average_precision, precision_recall_f1])
def test_bad_truth_is_named(metric):
    with pytest.raises(InvalidInputError, match=r"the shape of `scores`, \(1, 2\); got \(2,\)"):
        metric([[1, 0]], [1, 0])
    with pytest.raises(InvalidInputError, match="not known; got 2 at sample 0, label 1"):
        metric([[1, 0]], [[1, 2]])
    with pytest.raises(InvalidInputError, match=r"`mask` must be True or False.*got int64"):
        metric([[1, 0]], [[1, 0]], mask=[[1, 0]])


def test_bad_thresholds_are_named():
    with pytest.raises(InvalidInputError, match=r"each of the 2 labels; got shape \(3,\)"):
        precision_recall_f1([[1, 0]], [[1, 0]], threshold=[1, 2, 3])
    with pytest.raises(InvalidInputError, match="`threshold` must not be nan; got nan at label 1"):
        precision_recall_f1([[1, 0]], [[1, 0]], threshold=[0.5, np.nan])
    with pytest.raises(InvalidInputError, match="`top_k` must be at least 1; got 0"):
        precision_recall_f1([[1, 0]], [[1, 0]], top_k=0)


def test_weighted_average_precision_is_scikit_learns(rng):
    truth = (rng.uniform(size=(60, 4)) < 0.4).astype(float)
    scores = rng.integers(0, 8, size=(60, 4)) / 8  # many ties
    weight = rng.integers(0, 4, size=60).astype(float)
    expected = [
        sklearn.metrics.average_precision_score(truth[:, j], scores[:, j], sample_weight=weight)
        for j in range(4)
    ]
    np.testing.assert_allclose(average_precision(scores, truth, weight), expected)
