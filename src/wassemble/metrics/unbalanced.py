"""Transport of scores of any mass, without regularisation (the paper, equation 2)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import kl_div

from wassemble._checks import check_positive_number, fail
from wassemble.errors import ConvergenceWarning
from wassemble.metrics.arguments import read_masses
from wassemble.metrics.transport import read_pairs

__all__ = ["extended_kl", "unbalanced_distance"]

_MAX_PAIRS = 250_000
_MAX_ITERATIONS = 20_000
_GAP = 1e-6
"""Between the cost found and a lower bound of the least one, relative to the mass's price."""


def extended_kl(first: Any, second: Any) -> np.ndarray:
    """Sum of p log(p / q) - p + q: the KL divergence of scores of any mass (section 2).

    Parameters
    ----------
    first, second : arrays of shape (..., n_labels)
        Non-negative.

    Returns
    -------
    divergence : array of shape (...)
        At least 0, and 0 for equal scores; infinite where the second lacks a label that
        the first has.

    Examples
    --------
    >>> extended_kl([[0.5, 0.5], [0, 0]], [[0.5, 0.5], [1, 2]])
    array([0., 3.])
    """
    p, shape = read_masses(first, "first")
    q, other = read_masses(second, "second")
    if shape != other or p.shape[1] != q.shape[1]:
        fail(
            "`first` and `second` must have the same shape;"
            f" got {(*shape, p.shape[1])} and {(*other, q.shape[1])}."
        )
    return kl_div(p, q).sum(axis=1).reshape(shape)[()]


def unbalanced_distance(first: Any, second: Any, cost: Any, mass_penalty: float) -> np.ndarray:
    """Least of <C, g> + mass_penalty (KL(g 1, p) + KL(g^T 1, q)) over couplings g (equation 2).

    KL is the extended one: mass may be created and destroyed at its price.

    Parameters
    ----------
    first, second : arrays of shape (..., n_source) and (..., n_target)
        Non-negative, of any mass.
    cost : array of shape (n_source, n_target)
        Finite and non-negative.
    mass_penalty : float
        Above 0. Towards infinity, equal masses give the balanced distance.

    Returns
    -------
    distance : array of shape (...)
        At most ``mass_penalty`` times both masses, which is the price of moving nothing.

    Examples
    --------
    >>> cost = [[0, 1], [1, 0]]
    >>> unbalanced_distance([[1, 0], [4, 0]], [[1, 0], [1, 0]], cost, mass_penalty=2.0).round(4)
    array([0., 2.])
    """
    mass_penalty = check_positive_number(mass_penalty, "mass_penalty")
    sources, targets, matrix, shape = read_pairs(first, second, cost, read_masses)
    distances = mass_penalty * (sources.sum(axis=1) + targets.sum(axis=1))
    for row in np.flatnonzero(sources.any(axis=1) & targets.any(axis=1)).tolist():
        distances[row] = _least_cost(sources[row], targets[row], matrix, mass_penalty, row)
    return distances.reshape(shape)[()]


def _least_cost(
    source: np.ndarray, target: np.ndarray, cost: np.ndarray, mass_penalty: float, row: int
) -> float:
    rows, columns = np.flatnonzero(source), np.flatnonzero(target)
    p, q, prices = source[rows], target[columns], cost[np.ix_(rows, columns)] / mass_penalty
    if prices.size > _MAX_PAIRS:
        fail(
            f"an unbalanced distance must be between at most {_MAX_PAIRS:,} pairs of labels with"
            f" mass; got {len(rows):,} x {len(columns):,} at row {row}.",
            hint="`entropic_distance` takes any size",
        )
    tiny = np.finfo(float).tiny

    def value(flat: np.ndarray) -> tuple[float, np.ndarray]:
        coupling = flat.reshape(prices.shape)
        sent, arrived = coupling.sum(axis=1), coupling.sum(axis=0)
        total = (prices * coupling).sum() + kl_div(sent, p).sum() + kl_div(arrived, q).sum()
        slope = prices + np.log(np.maximum(sent, tiny) / p)[:, None]
        slope += np.log(np.maximum(arrived, tiny) / q)
        return total, slope.ravel()

    start = np.sqrt(p[:, None] * q / prices.size) * np.exp(-prices / 2)
    found = minimize(
        value,
        start.ravel(),
        jac=True,
        bounds=[(0, None)] * prices.size,
        method="L-BFGS-B",
        options={"maxiter": _MAX_ITERATIONS, "maxfun": _MAX_ITERATIONS, "ftol": 0, "gtol": 1e-9},
    )
    bound = _lower_bound(found.x.reshape(prices.shape), p, q, prices)
    if found.fun - bound > _GAP * (p.sum() + q.sum()):
        warnings.warn(
            f"an unbalanced distance did not settle: row {row} is between"
            f" {mass_penalty * bound:.6g} and {mass_penalty * found.fun:.6g}.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return mass_penalty * float(found.fun)


def _lower_bound(coupling: np.ndarray, p: np.ndarray, q: np.ndarray, prices: np.ndarray) -> float:
    """The dual value of potentials f + g <= C made from the coupling's marginals."""
    f = -np.log(np.maximum(coupling.sum(axis=1), np.finfo(float).tiny) / p)
    g = (prices - f[:, None]).min(axis=0)
    f = (prices - g).min(axis=1)
    return float(-(p @ np.expm1(-f)) - q @ np.expm1(-g))
