"""Fixed points that need no iterations: every kernel diagonal."""

from __future__ import annotations

import numpy as np

from wassemble._arrays import Array, detached, log_of, namespace
from wassemble.kernels import DiagonalKernel
from wassemble.solvers.mass import Balanced, MassRule
from wassemble.solvers.means import log_power_mean
from wassemble.solvers.problem import Tile
from wassemble.solvers.sweeps import Rows

__all__ = ["solve_diagonal"]


def solve_diagonal(tile: Tile, mass: MassRule) -> Rows:
    """Fixed point of Algorithm 1 or 2 for diagonal kernels k_l.

    Balanced: the weighted geometric mean, at every sweep (the paper's lemma on K = I,
    which holds for any positive diagonal). Unbalanced, with f the exponent of lines u
    and v: p = (sum_l w_l (k_l^(1 - f) mu_l^f)^(1 / (1 + f)))^(1 + f).
    """
    xp = namespace(tile.weights)
    logs, unreachable = [], np.zeros(tile.n_rows, dtype=bool)
    for group in tile.groups:
        log_source = log_of(group.histograms)
        if isinstance(group.kernel, DiagonalKernel):
            log_k = group.kernel.log_diagonal
            stuck = (group.histograms > 0) & ~(log_k > -xp.inf)
            unreachable |= detached(xp.any(xp.any(stuck, axis=-1), axis=0))
            logs.append(
                xp.where(log_k > -xp.inf, mass.exponent * log_source, -xp.inf)
                + mass.order * xp.where(log_k > -xp.inf, log_k, 0.0)
            )
        else:
            logs.append(mass.exponent * log_source)
    log_sources = xp.concat(logs)
    if isinstance(mass, Balanced):
        log_p = log_power_mean(log_sources, tile.weights, order=0.0)
        # u and v grow without end; v = 1 stands for them: each label keeps to itself.
        return Rows(xp.exp(log_p), xp.zeros_like(log_sources), unreachable)
    log_p = log_power_mean(log_sources, tile.weights, order=1 / (1 + mass.exponent))
    return Rows(xp.exp(log_p), _log_scalings(log_p, log_sources, mass), unreachable)


def _log_scalings(log_p: Array, log_sources: Array, mass: MassRule) -> Array:
    xp = namespace(log_p)
    finite = (log_p > -xp.inf) & (log_sources > -xp.inf)
    difference = xp.where(finite, log_p, 0.0) - xp.where(finite, log_sources, 0.0)
    # v = (p / image)^f and image = k u give log v = f / (1 - f^2) * (log p - log source).
    slope = mass.exponent / (mass.order * (1 + mass.exponent))
    return xp.where(finite, slope * difference, -xp.inf)
