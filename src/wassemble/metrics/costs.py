"""What wrong answers cost, where a husky taken for a beagle is not a husky taken for a car."""

from __future__ import annotations

from typing import Any

import numpy as np

from wassemble._checks import fail
from wassemble.metrics.arguments import read_answers, read_cost, read_truth

__all__ = ["mean_cost", "mean_cost_of_mistakes"]


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
    return float(_costs(scores, truth, read_cost(cost))[0].mean())


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
    costs, right = _costs(scores, truth, matrix)
    return float("nan") if right.all() else float(costs[~right].mean())


def _costs(scores: Any, truth: Any, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cost of each sample's answer, and whether it is the truth."""
    answers, _ = read_answers(scores, cost.shape[1])
    truth = read_truth(truth, len(answers), cost.shape[0])
    costs = np.where(answers >= 0, cost[truth, answers], cost.max(axis=1)[truth])
    return costs, answers == truth
