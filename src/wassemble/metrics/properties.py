"""What histograms are like: how spread out, how smooth, how far apart (the paper, section 4)."""

from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import entr

from wassemble._checks import fail
from wassemble.metrics.arguments import read_cost, read_rows
from wassemble.metrics.transport import wasserstein_distance

_N_ROWS = 1024
"""Rows per product: bounds the memory next to the histograms themselves."""


def entropy(histograms: Any) -> np.ndarray:
    """Entropy of each histogram in nats (the paper, proposition 1.4).

    Histograms have the shape (..., n_labels); rows are divided by their sums. A row without an
    answer has none: nan.

    Examples
    --------
    >>> entropy([[0.5, 0.5, 0], [1, 0, 0]])
    array([0.69314718, 0.        ])
    """
    rows, shape = read_rows(histograms, "histograms")
    return _nan_without_answer(entr(rows).sum(axis=1), rows).reshape(shape)[()]


def coupling_entropy(coupling: Any) -> float:
    """-sum g (log g - 1) over the entries of a coupling, which regularises (section 3.3).

    For a coupling of mass 1 it is 1 more than the entropy of its entries.

    Examples
    --------
    >>> coupling_entropy([[1.0, 0.0], [0.0, 0.0]])
    1.0
    """
    matrix = read_cost(coupling, "coupling")
    return float((entr(matrix) + matrix).sum())


def smoothness_energy(histograms: Any, squared_distances: Any) -> np.ndarray:
    """Sum over pairs of labels of ``|x_i - x_j|^2 h_i h_j`` (the paper, proposition 1.3).

    Twice the variance of a label's place in the embedding space: the smaller, the closer
    together the labels that share the mass; nan for a row without an answer.

    Parameters
    ----------
    histograms : array of shape (..., n_labels)
        Rows are divided by their sums.
    squared_distances : array of shape (n_labels, n_labels)
        ``|x_i - x_j|^2`` between the labels' embeddings.

    Examples
    --------
    >>> smoothness_energy([[0.5, 0.5, 0], [0.5, 0, 0.5]], [[0, 1, 9], [1, 0, 4], [9, 4, 0]])
    array([0.5, 4.5])
    """
    rows, shape = read_rows(histograms, "histograms")
    squares = read_cost(squared_distances, "squared_distances", n_labels=rows.shape[1])
    energy = np.empty(len(rows))
    for start in range(0, len(rows), _N_ROWS):
        part = rows[start : start + _N_ROWS]
        energy[start : start + _N_ROWS] = np.einsum("sl,sl->s", part @ squares, part)
    return _nan_without_answer(energy, rows).reshape(shape)[()]


def pairwise_diversity(histograms: Any, cost: Any, *, epsilon: float | None = None) -> np.ndarray:
    """Mean Wasserstein distance between two models, per sample (the paper, proposition 1.2).

    Over the pairs of models that both have an answer; nan if there is none.

    Parameters
    ----------
    histograms : array of shape (n_models, n_samples, n_labels), or one array per model
        At least two models over the same labels. Rows are divided by their sums.
    cost : array of shape (n_labels, n_labels)
        Symmetric; squared distances give the paper's squared W_2.
    epsilon : float, optional
        Entropic distances, as in `wasserstein_distance`; exact ones if not given.

    Examples
    --------
    >>> models = [[[1, 0], [1, 0]], [[1, 0], [0, 1]], [[1, 0], [0, 1]]]
    >>> pairwise_diversity(models, [[0, 3], [3, 0]])
    array([0., 2.])
    """
    models = [read_rows(each, "histograms") for each in histograms]
    if len(models) < 2:
        fail(f"`histograms` must hold at least two models; got {len(models)}.")
    shapes = [(*shape, rows.shape[1]) for rows, shape in models]
    if len(set(shapes)) > 1 or len(shapes[0]) != 2:
        fail(
            "`histograms` must have shape (n_models, n_samples, n_labels); got models of shape"
            f" {', '.join(str(shape) for shape in shapes)}."
        )
    matrix = read_cost(cost, n_labels=shapes[0][1])
    if not np.allclose(matrix, matrix.T, rtol=1e-6, atol=0):
        row, column = np.argwhere(~np.isclose(matrix, matrix.T, rtol=1e-6, atol=0))[0]
        fail(
            "`cost` must be symmetric, so that pairs have no order;"
            f" got {matrix[row, column]:g} and {matrix[column, row]:g} between labels"
            f" {row} and {column}."
        )
    total, n_pairs = np.zeros(shapes[0][0]), np.zeros(shapes[0][0])
    for (first, _), (second, _) in combinations(models, 2):
        distance = wasserstein_distance(first, second, matrix, epsilon)
        total += np.nan_to_num(distance)
        n_pairs += ~np.isnan(distance)
    return np.divide(total, n_pairs, out=np.full_like(total, np.nan), where=n_pairs > 0)


def _nan_without_answer(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return np.where(rows.any(axis=1), values, np.nan)
