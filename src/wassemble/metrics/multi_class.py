"""Metrics of predictions with one true label per sample."""

from __future__ import annotations

from typing import Any

import numpy as np

from wassemble._arrays import log_of
from wassemble._checks import check_count, check_nonnegative_number, fail
from wassemble.metrics.arguments import (
    divide_rows,
    fill_uniform,
    read_answers,
    read_scores,
    read_truth,
    weighted_mean,
)

__all__ = ["accuracy", "brier_score", "log_loss", "top_k_accuracy"]


def accuracy(scores: Any, truth: Any, sample_weight: Any = None) -> float:
    """Share of the samples whose answer is the true label.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels), or of int and shape (n_samples,)
        The answer is the label of the largest score, the first of equal ones; or the
        answers themselves, as `choose_best` gives them. No answer is a wrong answer.
    truth : array of int, shape (n_samples,)
        Places of the true labels.
    sample_weight : array of shape (n_samples,), optional

    Examples
    --------
    >>> accuracy([[0.7, 0.3], [0.4, 0.6], [0, 0]], [0, 0, 0])
    0.3333333333333333
    """
    answers, n_labels = read_answers(scores)
    truth = read_truth(truth, len(answers), n_labels)
    return weighted_mean((answers == truth).astype(np.float64), sample_weight)


def top_k_accuracy(scores: Any, truth: Any, sample_weight: Any = None, *, top_k: int = 5) -> float:
    """Share of the samples whose true label is among the ``top_k`` largest scores.

    Of equal scores the first are the larger ones, so that ``top_k=1`` is `accuracy`. All
    labels of a row without an answer are wrong.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
    truth : array of int, shape (n_samples,)
    sample_weight : array of shape (n_samples,), optional
    top_k : int
        From 1 to ``n_labels``.

    Examples
    --------
    >>> top_k_accuracy([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]], [1, 2], top_k=2)
    0.5
    """
    table = read_scores(scores)
    truth = read_truth(truth, *table.shape)
    if check_count(top_k, "top_k") > table.shape[1]:
        fail(f"`top_k` must be at most the number of labels, {table.shape[1]}; got {top_k}.")
    own = np.take_along_axis(table, truth[:, None], axis=1)
    earlier = np.arange(table.shape[1]) < truth[:, None]
    n_before = ((table > own) | ((table == own) & earlier)).sum(axis=1)
    return weighted_mean(((n_before < top_k) & table.any(axis=1)).astype(float), sample_weight)


def log_loss(
    scores: Any,
    truth: Any,
    sample_weight: Any = None,
    *,
    floor: float = float(np.finfo(np.float64).eps),
) -> float:
    """Mean of -log of the true label's share of its row, in nats (Good 1952).

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
        Rows are divided by their sums; a row without an answer is uniform.
    truth : array of int, shape (n_samples,)
    sample_weight : array of shape (n_samples,), optional
    floor : float
        Shares below it count as it, as in scikit-learn: one true label with a score of 0
        would make the loss infinite. 0 lets it.

    Examples
    --------
    >>> round(log_loss([[0.5, 0.5], [0.25, 0.75]], [0, 0]), 4)  # log(2) and log(4)
    1.0397
    """
    table = read_scores(scores)
    truth = read_truth(truth, *table.shape)
    histograms = fill_uniform(divide_rows(table))
    own = np.take_along_axis(histograms, truth[:, None], axis=1)[:, 0]
    return weighted_mean(
        0.0 - log_of(np.maximum(own, check_nonnegative_number(floor, "floor"))), sample_weight
    )


def brier_score(scores: Any, truth: Any, sample_weight: Any = None) -> float:
    """Mean squared distance between histograms and the truth, from 0 to 2 (Brier 1950).

    The squares are summed over all labels, also over two: twice what scikit-learn returns
    for two labels by default.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
        Rows are divided by their sums; a row without an answer is uniform.
    truth : array of int, shape (n_samples,)
    sample_weight : array of shape (n_samples,), optional

    Examples
    --------
    >>> brier_score([[0.5, 0.25, 0.25]], [0])
    0.375
    """
    table = read_scores(scores)
    truth = read_truth(truth, *table.shape)
    gaps = fill_uniform(divide_rows(table))
    gaps[np.arange(len(truth)), truth] -= 1
    return weighted_mean(np.einsum("sl,sl->s", gaps, gaps), sample_weight)
