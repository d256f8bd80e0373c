"""Calibration: whether answers given with confidence 0.8 are right 8 times of 10."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wassemble._checks import check_count
from wassemble.metrics.arguments import (
    best_labels,
    divide_rows,
    fill_uniform,
    read_scores,
    read_truth,
)

__all__ = ["CalibrationBins", "calibration_bins", "expected_calibration_error"]


@dataclass(frozen=True, eq=False)
class CalibrationBins:
    """Samples in bins of equal width by their confidence: a reliability diagram.

    Attributes
    ----------
    edges : array of shape (n_bins + 1,)
        From 0 to 1; a bin holds its upper edge.
    confidence, accuracy : arrays of shape (n_bins,)
        Means over the samples of each bin; nan for an empty one.
    count : array of int, shape (n_bins,)
        Number of samples.
    """

    edges: np.ndarray
    confidence: np.ndarray
    accuracy: np.ndarray
    count: np.ndarray


def calibration_bins(scores: Any, truth: Any, n_bins: int = 15) -> CalibrationBins:
    """Mean confidence and accuracy of the samples by confidence (Guo et al. 2017, section 2).

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
        Rows are divided by their sums; confidence is the largest share. A row without an
        answer has confidence ``1 / n_labels`` and is wrong.
    truth : array of int, shape (n_samples,)
    n_bins : int

    Examples
    --------
    >>> bins = calibration_bins([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], [0, 1, 1], n_bins=2)
    >>> bins.count, bins.accuracy.round(3)
    (array([0, 3]), array([ nan, 0.667]))
    """
    table = read_scores(scores)
    truth = read_truth(truth, *table.shape)
    edges = np.linspace(0, 1, check_count(n_bins, "n_bins") + 1)
    confidence = fill_uniform(divide_rows(table)).max(axis=1)
    right = best_labels(table) == truth
    places = np.searchsorted(edges[1:-1], confidence, side="left")
    count = np.bincount(places, minlength=n_bins)
    means = [
        np.divide(
            np.bincount(places, weights=values, minlength=n_bins),
            count,
            out=np.full(n_bins, np.nan),
            where=count > 0,
        )
        for values in (confidence, right)
    ]
    return CalibrationBins(edges, means[0], means[1], count)


def expected_calibration_error(scores: Any, truth: Any, n_bins: int = 15) -> float:
    """Mean gap between confidence and accuracy over the bins (Guo et al. 2017, equation 3).

    Bins count by their samples; see `calibration_bins` for them and for the arguments.

    Examples
    --------
    >>> round(expected_calibration_error([[0.9, 0.1], [0.9, 0.1]], [0, 1]), 3)
    0.4
    """
    bins = calibration_bins(scores, truth, n_bins)
    filled = bins.count > 0
    gaps = np.abs(bins.accuracy[filled] - bins.confidence[filled])
    return float(np.average(gaps, weights=bins.count[filled]))
