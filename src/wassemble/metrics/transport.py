"""Wasserstein distances between histograms: exact for few labels, entropic for many."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from wassemble._arrays import log_of, log_quotient
from wassemble._checks import check_positive_number, fail
from wassemble.errors import ConvergenceWarning
from wassemble.kernels import DenseKernel, Kernel, from_cost
from wassemble.metrics.arguments import read_cost, read_rows

__all__ = ["TOLERANCE", "find_scalings", "read_pairs", "warn_unsettled", "wasserstein_distance"]

Reader = Callable[[Any, str], tuple[np.ndarray, tuple[int, ...]]]

_MAX_PAIRS = 250_000
"""Pairs of labels in an exact problem: 500 x 500 take a few seconds."""
_N_ROWS = 256
_MAX_ITERATIONS = 2000
TOLERANCE = 1e-7


def wasserstein_distance(
    first: Any, second: Any, cost: Any, epsilon: float | None = None
) -> np.ndarray:
    """Least cost of moving one histogram onto the other (the paper, equation Wdistance).

    No root is taken: with squared distances as cost this is the paper's squared W_2.

    Parameters
    ----------
    first, second : arrays of shape (..., n_source) and (..., n_target)
        One histogram each, or as many of one as of the other. Rows are divided by their
        sums.
    cost : array of shape (n_source, n_target)
        Finite and non-negative.
    epsilon : float, optional
        Not given: exact, by linear programming (HiGHS) on the labels with mass, of which
        there may be 250,000 pairs, or 500 on either side. Given: <C, coupling> of the
        entropic coupling (Cuturi 2013), without the entropy itself, after the coupling was
        given the exact marginals (Altschuler, Weed and Rigollet 2017, algorithm 2): at
        least the exact distance, and close to it for a small epsilon.

    Returns
    -------
    distance : array of shape (...)
        nan where either has no answer.

    Examples
    --------
    >>> float(wasserstein_distance([0.5, 0.5, 0], [0, 0.5, 0.5], [[0, 1, 2], [1, 0, 1], [2, 1, 0]]))
    1.0
    """
    sources, targets, matrix, shape = read_pairs(first, second, cost)
    distances = np.full(len(sources), np.nan)
    rows = np.flatnonzero(sources.any(axis=1) & targets.any(axis=1))
    if epsilon is None:
        for row in rows.tolist():
            distances[row] = _exact(sources[row], targets[row], matrix, row)
    else:
        epsilon = check_positive_number(epsilon, "epsilon")
        distances[rows] = _entropic(sources[rows], targets[rows], matrix, epsilon)
    return distances.reshape(shape)[()]


def _exact(source: np.ndarray, target: np.ndarray, cost: np.ndarray, row: int) -> float:
    rows, columns = np.flatnonzero(source), np.flatnonzero(target)
    source, target, cost = source[rows], target[columns], cost[np.ix_(rows, columns)]
    if len(rows) == 1 or len(columns) == 1:
        return float(source @ cost @ target)  # there is only one coupling
    if cost.size > _MAX_PAIRS:
        fail(
            f"an exact distance must be between at most {_MAX_PAIRS:,} pairs of labels with mass;"
            f" got {len(rows):,} x {len(columns):,} at histogram {row}.",
            hint="`epsilon` gives an entropic distance, of any size",
        )
    row_sums = sp.kron(sp.eye_array(len(rows)), np.ones((1, len(columns))))
    column_sums = sp.kron(np.ones((1, len(rows))), sp.eye_array(len(columns)))
    # The last column sum follows from the others; left in, rounding could contradict them.
    found = linprog(
        cost.ravel(),
        A_eq=sp.vstack([row_sums, column_sums], format="csr")[:-1],
        b_eq=np.append(source, target[:-1]),
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10},
    )
    if found.status != 0:
        fail(f"the exact distance must be found; histogram {row}: {found.message}")
    return float(found.fun)


def _entropic(
    sources: np.ndarray, targets: np.ndarray, cost: np.ndarray, epsilon: float
) -> np.ndarray:
    kernel = from_cost(cost, epsilon)
    costed = DenseKernel.from_log(log_of(cost) - cost / epsilon)
    distances = np.empty(len(sources))
    worst = 0.0
    for start in range(0, len(sources), _N_ROWS):
        part = slice(start, start + _N_ROWS)
        source, target = sources[part], targets[part]
        log_source, log_target = log_of(source), log_of(target)
        log_u, log_v, residual = find_scalings(source, target, kernel)
        worst = max(worst, residual)
        # Altschuler et al., algorithm 2: shrink what is too large, then add what is missing.
        moved = np.exp(log_u + kernel.log_apply(log_v))
        log_u = log_u + np.minimum(log_quotient(log_source, log_of(moved)), 0)
        arrived = np.exp(log_v + kernel.log_apply_transpose(log_u))
        log_v = log_v + np.minimum(log_quotient(log_target, log_of(arrived)), 0)
        rest = np.maximum(source - np.exp(log_u + kernel.log_apply(log_v)), 0)
        due = np.maximum(target - np.exp(log_v + kernel.log_apply_transpose(log_u)), 0)
        left = rest.sum(axis=1)
        added = np.einsum("st,st->s", rest @ cost, due) / np.where(left > 0, left, 1)
        distances[part] = np.exp(log_u + costed.log_apply(log_v)).sum(axis=1) + added
    warn_unsettled(worst, "made exact, they give upper bounds of the exact distances all the same")
    return distances


def find_scalings(
    sources: np.ndarray, targets: np.ndarray, kernel: Kernel, exponent: float = 1.0
) -> tuple[np.ndarray, np.ndarray, float]:
    """Logs of the scalings u and v of entropic couplings, and how far u is from settled.

    ``exponent`` is 1 for balanced mass, else mass_penalty / (mass_penalty + epsilon). The
    target marginals are right; the residual is by how much the worst source marginal is
    off, L1 and relative to its mass.
    """
    log_source, log_target = log_of(sources), log_of(targets)
    totals = sources.sum(axis=1)
    log_u = exponent * log_quotient(log_source, kernel.log_apply(np.zeros_like(targets)))
    for _ in range(_MAX_ITERATIONS):
        log_v = exponent * log_quotient(log_target, kernel.log_apply_transpose(log_u))
        log_kv = kernel.log_apply(log_v)
        settled = exponent * log_quotient(log_source, log_kv)
        off = np.abs(np.exp(log_u + log_kv) - np.exp(settled + log_kv)).sum(axis=1)
        residual = float((off / totals).max())
        if residual <= TOLERANCE:
            break
        log_u = settled
        if exponent < 1:
            # Sejourne et al. 2022: without it, the total mass settles slowly.
            log_u = log_u + _mass_shift((sources, log_u), (targets, log_v), power=1 / exponent - 1)
    return log_u, log_v, residual


def _mass_shift(*sides: tuple[np.ndarray, np.ndarray], power: float) -> np.ndarray:
    """How far log u must go up, and log v down, for the best dual value."""
    one, other = (
        np.log((masses * np.exp(-power * np.where(masses > 0, logs, 0))).sum(axis=1))
        for masses, logs in sides
    )
    return (one - other)[:, None] / (2 * power)


def warn_unsettled(residual: float, consequence: str) -> None:
    """Warn if scalings stopped before they settled."""
    if residual > TOLERANCE:
        warnings.warn(
            f"entropic distances did not settle in {_MAX_ITERATIONS} sweeps (marginals off by up"
            f" to {residual:.1g}); {consequence}.",
            ConvergenceWarning,
            stacklevel=4,
        )


def read_pairs(
    first: Any, second: Any, cost: Any, read: Reader = read_rows
) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[int, ...]]:
    """Rows of both sides, the cost between their labels, and the leading shape."""
    sources, shape = read(first, "first")
    targets, other = read(second, "second")
    matrix = read_cost(cost)
    if shape != other:
        fail(f"`first` and `second` must hold as many histograms; got {shape} and {other}.")
    if matrix.shape != (sources.shape[1], targets.shape[1]):
        fail(
            "`cost` must have a row for each label of `first` and a column for each of `second`,"
            f" shape {(sources.shape[1], targets.shape[1])}; got {matrix.shape}."
        )
    return sources, targets, matrix, shape
