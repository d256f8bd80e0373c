"""Transport of scores of any mass, without regularisation (the paper, equation 2)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.special import kl_div

from wassemble._checks import check_positive_number, fail
from wassemble._threads import single_threaded_blas
from wassemble.errors import ConvergenceWarning
from wassemble.metrics.arguments import read_masses
from wassemble.metrics.transport import read_pairs

__all__ = ["extended_kl", "unbalanced_distance"]

_MAX_PAIRS = 250_000
_MAX_SWEEPS = 200
_GAP = 1e-9
"""Between the value and the least cost, as a share of the price of moving nothing."""


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
    with single_threaded_blas():  # for systems this small, more threads wait for each other
        potentials, gap = _solve_dual(p, q, prices)
    if gap > _GAP * (p.sum() + q.sum()):
        warnings.warn(
            f"an unbalanced distance did not settle: row {row} is known to {gap:.1g} of"
            " `mass_penalty` only.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return max(0.0, -mass_penalty * float(np.append(p, q) @ np.expm1(-potentials)))


def _solve_dual(p: np.ndarray, q: np.ndarray, prices: np.ndarray) -> tuple[np.ndarray, float]:
    """Potentials f and g of largest sum p (1 - exp(-f)) + sum q (1 - exp(-g)), f + g <= prices.

    A primal-dual interior-point method: the multipliers of the constraints are the coupling.
    The second number is the coupling's cost less the value, so the value is below the least
    cost by no more.
    """
    masses, n_source = np.append(p, q), len(p)
    potentials = np.full(len(masses), -0.5)  # below every price
    room = prices + 1
    coupling = np.outer(p, q) / max(p.sum(), q.sum())
    for _ in range(_MAX_SWEEPS):
        kept = masses * np.exp(-potentials)
        gap = float((coupling * room).sum() + kl_div(_sums(coupling), kept).sum())
        if gap <= _GAP * masses.sum():
            break
        aim = 0.1 * (coupling * room).mean() / room  # the coupling of a tenth of the gap
        curved = coupling / room
        hessian = np.diag(kept + _sums(curved))
        hessian[:n_source, n_source:] = curved
        hessian[n_source:, :n_source] = curved.T
        step = np.linalg.solve(hessian, kept - _sums(aim))
        closer = step[:n_source, None] + step[n_source:]
        more = aim - coupling + curved * closer
        # Nine tenths of the way to the nearest wall, and not so far that exp is not nearly linear.
        walls = max((closer / room).max(), (-more / coupling).max(), 0.9 * np.abs(step).max())
        length = min(1.0, 0.9 / walls)
        potentials = potentials + length * step
        coupling = coupling + length * more
        room = prices - potentials[:n_source, None] - potentials[n_source:]
    return potentials, gap


def _sums(matrix: np.ndarray) -> np.ndarray:
    return np.append(matrix.sum(axis=1), matrix.sum(axis=0))
