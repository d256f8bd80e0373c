"""Transport costs: exact for few labels, entropic for many, of any mass; and divergences."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from scipy.special import kl_div

from wassemble._arrays import log_of, log_quotient
from wassemble._checks import check_positive_number, fail
from wassemble._threads import single_threaded_blas
from wassemble.errors import ConvergenceWarning
from wassemble.kernels import DenseKernel, Kernel, from_cost
from wassemble.metrics.arguments import read_cost, read_masses, read_rows

Reader = Callable[[Any, str], tuple[np.ndarray, tuple[int, ...]]]

_MAX_PAIRS = 250_000
"""Pairs of labels in an exact problem: 500 x 500 take a few seconds."""
_N_ROWS = 256
_MAX_SWEEPS = 2000
_TOLERANCE = 1e-7

_MAX_STEPS = 200
_GAP = 1e-9
"""Between an unbalanced cost and the least one, as a share of the price of moving nothing."""


def wasserstein_distance(
    first: Any, second: Any, cost: Any, epsilon: float | None = None
) -> np.ndarray:
    """Least cost of moving one histogram onto the other (the paper, equation Wdistance).

    No root is taken: with squared distances as cost this is the paper's squared W_2. It is nan
    where either has no answer.

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

    Examples
    --------
    >>> float(wasserstein_distance([0.5, 0.5, 0], [0, 0.5, 0.5], [[0, 1, 2], [1, 0, 1], [2, 1, 0]]))
    1.0
    """
    sources, targets, matrix, shape = _read_pairs(first, second, cost)
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
    _check_size(cost, row, "`epsilon` gives an entropic distance, of any size")
    row_sums = sp.kron(sp.eye_array(len(rows)), np.ones((1, len(columns))))
    column_sums = sp.kron(np.ones((1, len(rows))), sp.eye_array(len(columns)))
    # The last column sum follows from the others; left in, rounding could contradict them.
    solution = linprog(
        cost.ravel(),
        A_eq=sp.vstack([row_sums, column_sums], format="csr")[:-1],
        b_eq=np.append(source, target[:-1]),
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10},
    )
    if solution.status != 0:
        fail(f"the exact distance must be found; histogram {row}: {solution.message}")
    return float(solution.fun)


def _check_size(cost: np.ndarray, row: int, hint: str) -> None:
    if cost.size > _MAX_PAIRS:
        n_source, n_target = cost.shape
        fail(
            f"an exact distance must be between at most {_MAX_PAIRS:,} pairs of labels with mass;"
            f" got {n_source:,} x {n_target:,} at histogram {row}.",
            hint=hint,
        )


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
        log_u, log_v, residual = _find_scalings(source, target, kernel)
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
    _warn_unsettled(worst, "made exact, they give upper bounds of the exact distances all the same")
    return distances


def entropic_distance(
    first: Any, second: Any, cost: Any, epsilon: float, *, mass_penalty: float | None = None
) -> np.ndarray:
    """Least of <C, coupling> - epsilon H(coupling) (the paper, section 3.3), H included.

    With the paper's H (see `coupling_entropy`) it may be negative, and it is not 0 from a
    histogram to itself: `sinkhorn_divergence` is. It is nan where either has no answer.

    Parameters
    ----------
    first, second, cost
        As in `wasserstein_distance`; rows keep their mass if ``mass_penalty`` is given.
    epsilon : float
        Above 0; towards 0 the cost without regularisation is approached.
    mass_penalty : float, optional
        Price of creating and destroying mass: the unbalanced cost, of scores of any mass.

    Examples
    --------
    >>> cost = [[0, 1], [1, 0]]
    >>> entropic_distance([[1, 0], [1, 0]], [[0, 1], [1, 0]], cost, epsilon=0.5)
    array([ 0.5, -0.5])
    """
    epsilon = check_positive_number(epsilon, "epsilon")
    exponent = 1.0
    if mass_penalty is not None:
        mass_penalty = check_positive_number(mass_penalty, "mass_penalty")
        exponent = mass_penalty / (mass_penalty + epsilon)
    sources, targets, matrix, shape = _read_pairs(
        first, second, cost, read_rows if mass_penalty is None else read_masses
    )
    distances = np.full(len(sources), np.nan)
    rows = sources.any(axis=1) & targets.any(axis=1)
    if rows.any():
        p, q, kernel = sources[rows], targets[rows], from_cost(matrix, epsilon)
        log_u, log_v, residual = _find_scalings(p, q, kernel, exponent)
        mass = np.exp(log_v + kernel.log_apply_transpose(log_u)).sum(axis=1)
        # The dual value: flat at its top, so closer than the cost of a coupling not yet settled.
        distances[rows] = (
            _price(p, epsilon * log_u, mass_penalty)
            + _price(q, epsilon * log_v, mass_penalty)
            - epsilon * mass
        )
        _warn_unsettled(residual, "they are lower bounds")
    return distances.reshape(shape)[()]


def _price(masses: np.ndarray, potentials: np.ndarray, mass_penalty: float | None) -> np.ndarray:
    """What a side adds to the dual value: <f, p>, or lambda <1 - exp(-f / lambda), p>."""
    potentials = np.where(masses > 0, potentials, 0)
    if mass_penalty is not None:
        potentials = -mass_penalty * np.expm1(potentials / -mass_penalty)
    return np.einsum("sl,sl->s", masses, potentials)


def sinkhorn_divergence(first: Any, second: Any, cost: Any, epsilon: float) -> np.ndarray:
    """Entropic distance less the mean of both to themselves: 0 for equal histograms.

    From the Wasserstein distance (epsilon towards 0) to half the squared maximum mean
    discrepancy under the kernel -C, -(p - q) C (p - q) / 2 (epsilon towards infinity;
    the paper, appendix D.1, after Feydy et al. 2019).

    Parameters
    ----------
    first, second, cost
        As in `wasserstein_distance`, over the same labels; the cost is symmetric.
    epsilon : float
        Above 0.

    Examples
    --------
    >>> float(sinkhorn_divergence([1, 0], [0, 1], [[0, 3], [3, 0]], epsilon=0.1))
    3.0
    """
    epsilon = check_positive_number(epsilon, "epsilon")
    sources, targets, matrix, shape = _read_pairs(first, second, cost)
    kernel = from_cost(matrix, epsilon, symmetric=True)
    across = np.atleast_1d(entropic_distance(sources, targets, matrix, epsilon))
    own = (_distance_to_itself(rows, kernel, epsilon) for rows in (sources, targets))
    return (across - sum(own) / 2).reshape(shape)[()]


def _distance_to_itself(rows: np.ndarray, kernel: Kernel, epsilon: float) -> np.ndarray:
    """Entropic distance of each row to itself, with one scaling u for both sides.

    Half steps settle in a few sweeps, where sweeps that take turns need thousands.
    """
    log_rows = log_of(rows)
    log_u = log_rows / 2
    for _ in range(_MAX_SWEEPS):
        log_image = kernel.log_apply(log_u)
        residual = float(np.abs(np.exp(log_u + log_image) - rows).sum(axis=1).max())
        if residual <= _TOLERANCE:
            break
        log_u = (log_u + log_quotient(log_rows, log_image)) / 2
    _warn_unsettled(residual, "they are lower bounds")
    return 2 * _price(rows, epsilon * log_u, None) - epsilon


def _find_scalings(
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
    for _ in range(_MAX_SWEEPS):
        log_v = exponent * log_quotient(log_target, kernel.log_apply_transpose(log_u))
        log_kv = kernel.log_apply(log_v)
        settled = exponent * log_quotient(log_source, log_kv)
        off = np.abs(np.exp(log_u + log_kv) - np.exp(settled + log_kv)).sum(axis=1)
        residual = float((off / totals).max())
        if residual <= _TOLERANCE:
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


def _warn_unsettled(residual: float, consequence: str) -> None:
    """Warn if scalings stopped before they settled."""
    if residual > _TOLERANCE:
        warnings.warn(
            f"entropic distances did not settle in {_MAX_SWEEPS} sweeps (marginals off by up"
            f" to {residual:.1g}); {consequence}.",
            ConvergenceWarning,
            stacklevel=4,
        )


def extended_kl(first: Any, second: Any) -> np.ndarray:
    """Sum of p log(p / q) - p + q: the KL divergence of scores of any mass (section 2).

    Of arrays of shape (..., n_labels). At least 0, and 0 for equal scores; infinite where the
    second lacks a label that the first has.

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

    KL is the extended one: mass may be created and destroyed at its price. It costs at most
    ``mass_penalty`` times both masses, which is the price of moving nothing.

    Parameters
    ----------
    first, second, cost
        As in `wasserstein_distance`, of any mass.
    mass_penalty : float
        Above 0. Towards infinity, equal masses give the balanced distance.

    Examples
    --------
    >>> cost = [[0, 1], [1, 0]]
    >>> unbalanced_distance([[1, 0], [4, 0]], [[1, 0], [1, 0]], cost, mass_penalty=2.0).round(4)
    array([0., 2.])
    """
    mass_penalty = check_positive_number(mass_penalty, "mass_penalty")
    sources, targets, matrix, shape = _read_pairs(first, second, cost, read_masses)
    distances = mass_penalty * (sources.sum(axis=1) + targets.sum(axis=1))
    for row in np.flatnonzero(sources.any(axis=1) & targets.any(axis=1)).tolist():
        distances[row] = _least_cost(sources[row], targets[row], matrix, mass_penalty, row)
    return distances.reshape(shape)[()]


def _least_cost(
    source: np.ndarray, target: np.ndarray, cost: np.ndarray, mass_penalty: float, row: int
) -> float:
    rows, columns = np.flatnonzero(source), np.flatnonzero(target)
    p, q, prices = source[rows], target[columns], cost[np.ix_(rows, columns)] / mass_penalty
    _check_size(prices, row, "`entropic_distance` takes any size")
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
    for _ in range(_MAX_STEPS):
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


def _read_pairs(
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
