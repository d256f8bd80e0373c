"""Entropic transport costs, balanced and unbalanced, and the divergence made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from wassemble._arrays import log_of, log_quotient
from wassemble._checks import check_positive_number
from wassemble.kernels import Kernel, from_cost
from wassemble.metrics.arguments import read_masses, read_rows
from wassemble.metrics.transport import TOLERANCE, find_scalings, read_pairs, warn_unsettled

__all__ = ["entropic_distance", "sinkhorn_divergence"]

_MAX_ITERATIONS = 2000


def entropic_distance(
    first: Any, second: Any, cost: Any, epsilon: float, *, mass_penalty: float | None = None
) -> np.ndarray:
    """Least of <C, coupling> - epsilon H(coupling) (the paper, section 3.3), H included.

    With the paper's H (see `coupling_entropy`) it may be negative, and it is not 0 from a
    histogram to itself: `sinkhorn_divergence` is.

    Parameters
    ----------
    first, second : arrays of shape (..., n_source) and (..., n_target)
        One histogram each, or as many of one as of the other. Rows are divided by their
        sums, but not if ``mass_penalty`` is given.
    cost : array of shape (n_source, n_target)
        Finite and non-negative.
    epsilon : float
        Above 0; towards 0 the cost without regularisation is approached.
    mass_penalty : float, optional
        Price of creating and destroying mass: the unbalanced cost, of scores of any mass.

    Returns
    -------
    distance : array of shape (...)
        nan where either has no answer.

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
    sources, targets, matrix, shape = read_pairs(
        first, second, cost, read_rows if mass_penalty is None else read_masses
    )
    distances = np.full(len(sources), np.nan)
    rows = sources.any(axis=1) & targets.any(axis=1)
    if rows.any():
        p, q, kernel = sources[rows], targets[rows], from_cost(matrix, epsilon)
        log_u, log_v, residual = find_scalings(p, q, kernel, exponent)
        mass = np.exp(log_v + kernel.log_apply_transpose(log_u)).sum(axis=1)
        # The dual value: flat at its top, so closer than the cost of a coupling not yet settled.
        distances[rows] = (
            _price(p, epsilon * log_u, mass_penalty)
            + _price(q, epsilon * log_v, mass_penalty)
            - epsilon * mass
        )
        warn_unsettled(residual, "they are lower bounds")
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
    first, second : arrays of shape (..., n_labels)
        Histograms over the same labels. Rows are divided by their sums.
    cost : array of shape (n_labels, n_labels)
        Symmetric, finite and non-negative.
    epsilon : float
        Above 0.

    Returns
    -------
    divergence : array of shape (...)
        nan where either has no answer.

    Examples
    --------
    >>> float(sinkhorn_divergence([1, 0], [0, 1], [[0, 3], [3, 0]], epsilon=0.1))
    3.0
    """
    epsilon = check_positive_number(epsilon, "epsilon")
    sources, targets, matrix, shape = read_pairs(first, second, cost)
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
    for _ in range(_MAX_ITERATIONS):
        log_image = kernel.log_apply(log_u)
        residual = float(np.abs(np.exp(log_u + log_image) - rows).sum(axis=1).max())
        if residual <= TOLERANCE:
            break
        log_u = (log_u + log_quotient(log_rows, log_image)) / 2
    warn_unsettled(residual, "they are lower bounds")
    return 2 * _price(rows, epsilon * log_u, None) - epsilon
