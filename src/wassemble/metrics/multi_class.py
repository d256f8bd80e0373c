"""Metrics of predictions with one true label per sample: right, sure of it, and at what cost."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from wassemble._arrays import log_of
from wassemble._checks import check_count, check_nonnegative_number, fail
from wassemble._pictures import new_axes
from wassemble.metrics.arguments import (
    best_labels,
    histograms_of,
    read_answers,
    read_cost,
    read_sample_weight,
    read_table_and_truth,
    read_truth,
    weighted_mean,
)

_FLOOR = float(np.finfo(np.float64).eps)
"""Shares of a true label below it count as it, as in scikit-learn."""


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


def are_right(scores: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """1 for each sample whose answer is the true label, else 0; nothing is checked."""
    return (best_labels(np.nan_to_num(scores)) == truth).astype(np.float64)


def top_k_accuracy(scores: Any, truth: Any, sample_weight: Any = None, *, top_k: int = 5) -> float:
    """Share of the samples whose true label is among the ``top_k`` largest scores.

    Of equal scores the first are the larger ones, so that ``top_k=1`` is `accuracy`. All
    labels of a row without an answer are wrong.

    Parameters
    ----------
    scores, truth, sample_weight
        As in `accuracy`; scores are a table.
    top_k : int
        From 1 to ``n_labels``.

    Examples
    --------
    >>> top_k_accuracy([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]], [1, 2], top_k=2)
    0.5
    """
    table, truth = read_table_and_truth(scores, truth)
    if check_count(top_k, "top_k") > table.shape[1]:
        fail(f"`top_k` must be at most the number of labels, {table.shape[1]}; got {top_k}.")
    return weighted_mean(are_right_of_top(table, truth, top_k), sample_weight)


def are_right_of_top(scores: np.ndarray, truth: np.ndarray, top_k: int) -> np.ndarray:
    """1 for each sample whose true label is among the best ones, else 0; nothing is checked."""
    table = np.nan_to_num(scores)
    own = np.take_along_axis(table, truth[:, None], axis=1)
    earlier = np.arange(table.shape[1]) < truth[:, None]
    n_before = ((table > own) | ((table == own) & earlier)).sum(axis=1)
    return ((n_before < top_k) & table.any(axis=1)).astype(np.float64)


def log_loss(scores: Any, truth: Any, sample_weight: Any = None, *, floor: float = _FLOOR) -> float:
    """Mean of -log of the true label's share of its row, in nats (Good 1952).

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
        Rows are divided by their sums; a row without an answer is uniform.
    truth, sample_weight
        As in `accuracy`.
    floor : float
        Shares below it count as it, as in scikit-learn: one true label with a score of 0
        would make the loss infinite. 0 lets it.

    Examples
    --------
    >>> round(log_loss([[0.5, 0.5], [0.25, 0.75]], [0, 0]), 4)  # log(2) and log(4)
    1.0397
    """
    table, truth = read_table_and_truth(scores, truth)
    floor = check_nonnegative_number(floor, "floor")
    return weighted_mean(log_losses(table, truth, floor), sample_weight)


def log_losses(scores: np.ndarray, truth: np.ndarray, floor: float = _FLOOR) -> np.ndarray:
    """-log of the true label's share, for each sample; nothing is checked."""
    own = histograms_of(scores)[np.arange(len(truth)), truth]
    return 0.0 - log_of(np.maximum(own, floor))


def brier_score(scores: Any, truth: Any, sample_weight: Any = None) -> float:
    """Mean squared distance between histograms and the truth, from 0 to 2 (Brier 1950).

    The squares are summed over all labels, also over two: twice what scikit-learn returns
    for two labels by default. Arguments as in `log_loss`.

    Examples
    --------
    >>> brier_score([[0.5, 0.25, 0.25]], [0])
    0.375
    """
    table, truth = read_table_and_truth(scores, truth)
    return weighted_mean(squared_gaps(table, truth), sample_weight)


def squared_gaps(scores: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Squared distance between histogram and truth, for each sample; nothing is checked."""
    gaps = histograms_of(scores)
    gaps[np.arange(len(truth)), truth] -= 1
    return np.einsum("sl,sl->s", gaps, gaps)


@dataclass(frozen=True, eq=False)
class CalibrationBins:
    """Samples in bins of equal width by their confidence: a reliability diagram."""

    edges: np.ndarray  # (n_bins + 1,), from 0 to 1; a bin holds its upper edge
    confidence: np.ndarray  # (n_bins,): mean over the samples of each bin; nan for an empty one
    accuracy: np.ndarray  # the same
    count: np.ndarray  # (n_bins,): number of samples, or sum of their weights

    def plot(self, ax: Any = None) -> Any:
        """Draw how right samples are by how sure; the axes, of matplotlib.

        On the dotted line, accuracy is what confidence promises. A dot is as large as its share
        of the samples.
        """
        axes = new_axes(ax)
        axes.plot([0, 1], [0, 1], ":", color="grey")
        full = self.count > 0
        size = 300 * self.count[full] / self.count.sum()
        axes.plot(self.confidence[full], self.accuracy[full], linewidth=1)
        axes.scatter(self.confidence[full], self.accuracy[full], s=size)
        axes.set(xlabel="confidence", ylabel="accuracy", xlim=(0, 1.02), ylim=(0, 1.02))
        return axes


def calibration_bins(
    scores: Any, truth: Any, sample_weight: Any = None, *, n_bins: int = 15
) -> CalibrationBins:
    """Mean confidence and accuracy of the samples by confidence (Guo et al. 2017, section 2).

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
        Rows are divided by their sums; confidence is the largest share. A row without an
        answer has confidence ``1 / n_labels`` and is wrong.
    truth, sample_weight
        As in `accuracy`.
    n_bins : int

    Examples
    --------
    >>> bins = calibration_bins([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], [0, 1, 1], n_bins=2)
    >>> bins.count, bins.accuracy.round(3)
    (array([0, 3]), array([ nan, 0.667]))
    """
    table, truth = read_table_and_truth(scores, truth)
    edges = np.linspace(0, 1, check_count(n_bins, "n_bins") + 1)
    confidence = histograms_of(table).max(axis=1)
    right = best_labels(table) == truth
    places = np.searchsorted(edges[1:-1], confidence, side="left")
    weight = None if sample_weight is None else read_sample_weight(sample_weight, len(truth))
    count = np.bincount(places, weights=weight, minlength=n_bins)
    means = [
        np.divide(
            np.bincount(
                places, weights=values if weight is None else weight * values, minlength=n_bins
            ),
            count,
            out=np.full(n_bins, np.nan),
            where=count > 0,
        )
        for values in (confidence, right)
    ]
    return CalibrationBins(edges, means[0], means[1], count)


def expected_calibration_error(
    scores: Any, truth: Any, sample_weight: Any = None, *, n_bins: int = 15
) -> float:
    """Mean gap between confidence and accuracy over the bins (Guo et al. 2017, equation 3).

    Bins count by their samples; see `calibration_bins` for them and for the arguments.

    Examples
    --------
    >>> round(expected_calibration_error([[0.9, 0.1], [0.9, 0.1]], [0, 1]), 3)
    0.4
    """
    bins = calibration_bins(scores, truth, sample_weight, n_bins=n_bins)
    filled = bins.count > 0
    gaps = np.abs(bins.accuracy[filled] - bins.confidence[filled])
    return float(np.average(gaps, weights=bins.count[filled]))


def mean_cost(scores: Any, truth: Any, cost: Any) -> float:
    """Mean over the samples of the cost of the answer (empirical risk; Elkan 2001).

    Parameters
    ----------
    scores : array of shape (n_samples, n_answers), or of int and shape (n_samples,)
        The answer is the label of the largest score, the first of equal ones; or the
        answers themselves, as `choose_least_cost` gives them. No answer costs as much as
        the worst one: with cost 1 for each mistake, this is 1 - `accuracy`.
    truth : array of int, shape (n_samples,)
        Places of the true labels, rows of ``cost``.
    cost : array of shape (n_labels, n_answers)
        Cost of each answer (column) for each true label (row): the user's own, or steps in
        a tree. Finite and non-negative.

    Examples
    --------
    >>> steps = [[0, 2, 4], [2, 0, 4], [4, 4, 0]]  # husky, beagle, car
    >>> mean_cost([[0.6, 0.3, 0.1], [0.6, 0.3, 0.1]], [0, 1], steps)
    1.0
    """
    return float(costs_of_answers(scores, truth, read_cost(cost))[0].mean())


def mean_cost_of_mistakes(scores: Any, truth: Any, cost: Any) -> float:
    """Mean cost over the samples with a wrong answer; nan if there are none.

    How bad mistakes are, whatever their number: the hierarchical distance of a mistake of
    Bertinetto et al. 2020, if ``cost`` is a height in a tree. Arguments as in `mean_cost`,
    with a square cost.

    Examples
    --------
    >>> steps = [[0, 2, 4], [2, 0, 4], [4, 4, 0]]  # husky, beagle, car
    >>> mean_cost_of_mistakes([[0.6, 0.3, 0.1], [0.6, 0.3, 0.1]], [0, 1], steps)
    2.0
    """
    matrix = read_cost(cost)
    if matrix.shape[0] != matrix.shape[1]:
        fail(
            "`cost` must be square, answers being labels, to tell mistakes;"
            f" got shape {matrix.shape}."
        )
    costs, right = costs_of_answers(scores, truth, matrix)
    return float("nan") if right.all() else float(costs[~right].mean())


def costs_of_answers(scores: Any, truth: Any, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cost of each sample's answer, and whether it is the truth."""
    answers, _ = read_answers(scores, cost.shape[1])
    truth = read_truth(truth, len(answers), cost.shape[0])
    costs = np.where(answers >= 0, cost[truth, answers], cost.max(axis=1)[truth])
    return costs, answers == truth
