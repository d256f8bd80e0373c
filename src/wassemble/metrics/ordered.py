"""Metrics of labels with an order, and of numbers: how far off, not only whether wrong."""

from typing import Any

import numpy as np

from wassemble._arrays import detached
from wassemble._checks import Number, as_float_array, fail
from wassemble.metrics.arguments import (
    divide_rows,
    histograms_of,
    read_answers,
    read_cost,
    read_positions,
    read_rows,
    read_table_and_truth,
    read_truth,
    weighted_mean,
)


def ranked_probability_score(
    scores: Any, truth: Any, sample_weight: Any = None, *, positions: Any = None
) -> float:
    """Mean squared difference of distribution functions, summed over gaps (Epstein 1969).

    The lower the better, 0 for certainty of the truth; a proper score.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
        Rows are divided by their sums; a row without an answer is uniform.
    truth : array of int, shape (n_samples,)
        Places of the true labels.
    sample_weight : array of shape (n_samples,), optional
    positions : array of shape (n_labels,), optional
        Where labels lie on a line: a gap counts by its width, relative to the mean width. Equally
        far apart, in the order of the columns, if not given.

    Examples
    --------
    >>> ranked_probability_score([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]], [0, 2])  # 0.25 and 1.25
    0.75
    >>> ranked_probability_score([[0.5, 0.5, 0.0]], [2], positions=[0, 1, 4])  # 0.5 / 4 + 1.5
    1.625
    """
    table, truth = read_table_and_truth(scores, truth)
    line = None if positions is None else read_positions(positions, table.shape[1])
    return weighted_mean(squared_distances(table, truth, line), sample_weight)


def squared_distances(scores: np.ndarray, truth: np.ndarray, positions: Any = None) -> np.ndarray:
    """The ranked probability score of each sample; nothing is checked."""
    order = np.arange(scores.shape[1]) if positions is None else np.argsort(positions)
    widths = np.diff(order if positions is None else np.sort(positions))
    below = np.cumsum(histograms_of(scores)[:, order], axis=1)[:, :-1]
    apart = below - (np.argsort(order)[truth][:, None] <= np.arange(below.shape[1]))
    return np.asarray(apart**2 @ (widths / widths.mean() if len(widths) else widths))


def continuous_ranked_probability_score(
    draws: Any, truth: Any, sample_weight: Any = None, *, shares: Any = None
) -> float:
    """E|X - y| - E|X - X'| / 2 with the drawn numbers X, X' and the true y (Gneiting 2007).

    Parameters
    ----------
    draws : array of shape (n_samples, n_draws), or (n_draws,) for all samples
        Numbers drawn from each forecast, or where its mass lies.
    truth : array of shape (n_samples,)
    sample_weight : array of shape (n_samples,), optional
    shares : array of shape (n_samples, n_draws), optional
        Mass of each draw, divided by the sum of its row; equal if not given.

    Examples
    --------
    >>> continuous_ranked_probability_score([[0.0, 2.0]], [1.0])
    0.5
    >>> continuous_ranked_probability_score([0.0, 1.0, 2.0], [0.0], shares=[[0.5, 0.5, 0.0]])
    0.25
    """
    truth = _read_numbers(truth, "truth", 1)
    numbers = detached(as_float_array(draws, "draws"))
    shape = (len(truth), numbers.shape[-1])
    numbers = _read_numbers(np.broadcast_to(numbers, shape), "draws", 2, len(truth))
    mass = np.full(shape, 1 / shape[1])
    if shares is not None:
        mass = divide_rows(read_rows(shares, "shares")[0])
    if mass.shape != shape:
        fail(f"`shares` must have the shape of `draws`, {shape}; got {mass.shape}.")
    order = np.argsort(numbers, axis=1)
    numbers, mass = (np.take_along_axis(each, order, axis=1) for each in (numbers, mass))
    # E|X - X'| / 2 is the integral of F (1 - F).
    below = np.cumsum(mass, axis=1)[:, :-1]
    spread = (np.diff(numbers, axis=1) * below * (1 - below)).sum(axis=1)
    away = (mass * np.abs(numbers - truth[:, None])).sum(axis=1)
    return weighted_mean(away - spread, sample_weight)


def weighted_interval_score(
    quantiles: Any, levels: Any, truth: Any, sample_weight: Any = None
) -> float:
    """Mean over levels of twice the pinball loss of quantiles (Bracher et al. 2021).

    With more and more levels it comes to the continuous ranked probability score.

    Parameters
    ----------
    quantiles : array of shape (n_samples, n_levels)
    levels : array of shape (n_levels,)
        Increasing, above 0 and below 1.
    truth : array of shape (n_samples,)
    sample_weight : array of shape (n_samples,), optional

    Examples
    --------
    >>> weighted_interval_score([[1.0, 2.0, 3.0]], [0.25, 0.5, 0.75], [4.0])
    1.6666666666666667
    """
    return weighted_mean(interval_scores(quantiles, levels, truth), sample_weight)


def interval_scores(quantiles: Any, levels: Any, truth: Any) -> np.ndarray:
    """The weighted interval score of each sample."""
    table, levels, truth = _read_quantiles(quantiles, levels, truth)
    gaps = truth[:, None] - table
    return np.asarray((2 * np.maximum(levels * gaps, (levels - 1) * gaps)).mean(axis=1))


def interval_coverage(
    quantiles: Any, levels: Any, truth: Any, sample_weight: Any = None, *, share: float = 0.95
) -> float:
    """How often the truth is inside the middle interval that holds ``share`` of the mass.

    A calibrated forecast has ``share`` of them inside. Arguments as in
    `weighted_interval_score`; both ends of the interval must be among the levels.

    Examples
    --------
    >>> interval_coverage([[1, 2, 3], [1, 2, 3]], [0.25, 0.5, 0.75], [2, 4], share=0.5)
    0.5
    """
    table, levels, truth = _read_quantiles(quantiles, levels, truth)
    share = Number(above=0, below=1)(share, "share")
    ends = [(1 - share) / 2, (1 + share) / 2]
    places = [int(np.abs(levels - end).argmin()) for end in ends]
    if not np.allclose(levels[places], ends):
        fail(
            f"the levels {ends[0]:g} and {ends[1]:g} must be among those of the quantiles; got"
            f" {', '.join(f'{level:g}' for level in levels)}."
        )
    low, high = (table[:, place] for place in places)
    return weighted_mean(((low <= truth) & (truth <= high)).astype(np.float64), sample_weight)


def quadratic_kappa(
    scores: Any, truth: Any, sample_weight: Any = None, *, positions: Any = None
) -> float:
    """Cohen's kappa with quadratic weights: 1 for right answers, 0 for those of chance.

    Squared distances between answer and truth count (Cohen 1968). A sample without an answer is as
    far off as can be.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels), or of int and shape (n_samples,)
        The answer is the label of the largest score; or the answers themselves.
    truth : array of int, shape (n_samples,)
    sample_weight : array of shape (n_samples,), optional
    positions : array of shape (n_labels,), optional
        Where labels lie on a line; one step apart, in their order, if not given.

    Examples
    --------
    >>> round(quadratic_kappa([0, 1, 2, 2], [0, 1, 2, 1]), 3)
    0.8
    """
    places, n_labels = read_answers(scores)
    truth = read_truth(truth, len(places), n_labels)
    n_known = 0 if positions is None else len(positions)
    n_labels = n_labels or max(int(truth.max()) + 1, int(places.max()) + 1, n_known)
    line = read_positions(range(n_labels) if positions is None else positions, n_labels)
    true = line[truth]
    farthest = np.where(true * 2 > line.min() + line.max(), line.min(), line.max())
    answers = np.where(places < 0, farthest, line[places])
    squares = (answers - true) ** 2
    means = [weighted_mean(each, sample_weight) for each in (answers, true)]
    spreads = [
        weighted_mean((each - mean) ** 2, sample_weight)
        for each, mean in zip((answers, true), means, strict=True)
    ]
    # The mean square of two that are drawn apart: both variances, and the squared distance.
    chance = sum(spreads) + (means[0] - means[1]) ** 2
    return float("nan") if chance == 0 else 1 - weighted_mean(squares, sample_weight) / chance


def expected_cost(scores: Any, truth: Any, cost: Any, sample_weight: Any = None) -> float:
    """Mean cost of the labels, each counted by its share: W1 to the truth if costs are distances.

    Parameters
    ----------
    scores : array of shape (n_samples, n_labels)
        Rows are divided by their sums; a row without an answer is uniform.
    truth : array of int, shape (n_samples,)
    cost : array of shape (n_labels, n_labels)
        Cost of each label (column) for each true label (row), such as steps in a tree, or
        `LabelSpace.distances`.
    sample_weight : array of shape (n_samples,), optional

    Examples
    --------
    >>> steps = [[0, 2, 4], [2, 0, 4], [4, 4, 0]]  # husky, beagle, car
    >>> expected_cost([[0.5, 0.25, 0.25]], [0], steps)
    1.5
    """
    table, truth = read_table_and_truth(scores, truth)
    matrix = read_cost(cost, n_labels=table.shape[1])
    return weighted_mean(np.einsum("sl,sl->s", histograms_of(table), matrix[truth]), sample_weight)


def _read_quantiles(
    quantiles: Any, levels: Any, truth: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    truth = _read_numbers(truth, "truth", 1)
    table = _read_numbers(quantiles, "quantiles", 2, len(truth))
    levels = _read_numbers(levels, "levels", 1, table.shape[1])
    if not ((levels > 0) & (levels < 1)).all() or not (np.diff(levels) > 0).all():
        fail(f"`levels` must increase, above 0 and below 1; got {levels.tolist()}.")
    if not (np.diff(table, axis=1) >= 0).all():
        sample = int((np.diff(table, axis=1) < 0).any(axis=1).argmax())
        fail(f"`quantiles` must not fall from level to level; they do at sample {sample}.")
    return table, levels, truth


def _read_numbers(values: Any, name: str, n_axes: int, length: int | None = None) -> np.ndarray:
    """Finite float64 of so many axes, the first (of ``levels``: the only) of this length."""
    array = detached(as_float_array(values, name)).astype(np.float64)
    if array.ndim != n_axes or not array.size or (length is not None and len(array) != length):
        must = f"{n_axes} axes" if length is None else f"{n_axes} axes, the first of {length}"
        fail(f"`{name}` must have {must}; got shape {array.shape}.")
    if not np.isfinite(array).all():
        fail(f"`{name}` must be finite; got {array[~np.isfinite(array)][0]}.")
    return array
