"""Fixed points that need no sweeps: every kernel one-to-one."""

from dataclasses import replace

import numpy as np

from wassemble._arrays import Array, convert_like, detached, is_torch_array, log_of, namespace
from wassemble.kernels import DiagonalKernel, IdentityKernel, Kernel
from wassemble.solvers.exchange import agree_on_any
from wassemble.solvers.mass import Balanced, MassRule
from wassemble.solvers.power_means import log_power_mean, mean_of_powers
from wassemble.solvers.sweeps import Rows
from wassemble.solvers.tiles import Group, Tile


def solve_one_to_one(tile: Tile, mass: MassRule, *, keep_scalings: bool) -> Rows:
    """Fixed point for kernels that join no label to more than one.

    With the source labels in the order of the target's, they are diagonal.
    """
    lost = np.zeros(tile.n_rows, dtype=bool)
    groups = []
    for group in tile.groups:
        sources, diagonal = group.kernel.matched_sources()
        if sources is None:
            groups.append(group)
            continue
        leads_nowhere = np.setdiff1d(np.arange(group.kernel.shape[0]), sources)
        lost |= detached(group.histograms[..., leads_nowhere] > 0).any(axis=(0, 2))
        groups.append(_reorder(group, sources, diagonal))
    return _solve_diagonal(replace(tile, groups=groups), mass, lost, keep_scalings=keep_scalings)


def _reorder(group: Group, sources: np.ndarray, diagonal: Array | None) -> Group:
    """The group over the target labels; one that has no source label has no mass."""
    histograms = group.histograms
    xp = namespace(histograms)
    if (sources < 0).any():  # -1 is one more label, at the end
        histograms = xp.concat([histograms, xp.zeros_like(histograms[..., :1])], axis=-1)
    kernel: Kernel = IdentityKernel(len(sources))
    if diagonal is not None:
        kernel = DiagonalKernel(convert_like(diagonal, histograms))
    return replace(group, kernel=kernel, histograms=histograms[..., sources])


def _solve_diagonal(tile: Tile, mass: MassRule, lost: np.ndarray, *, keep_scalings: bool) -> Rows:
    """Fixed point of Algorithm 1 or 2 for diagonal kernels k_l.

    Balanced: the weighted geometric mean, at every sweep (the paper's lemma on K = I,
    which holds for any positive diagonal). Unbalanced, with f the exponent of lines u
    and v: p = (sum_l w_l (k_l^(1 - f) mu_l^f)^(1 / (1 + f)))^(1 + f). A kernel that all
    models share comes out of the sum. ``lost`` are rows with mass on labels that lead nowhere.
    """
    if not _is_plain(tile) or keep_scalings:
        if tile.check is not None:
            tile.check()
        return _solve_in_logs(tile, mass, lost, keep_scalings=keep_scalings)
    p = _plain_fixed_point(tile, mass)
    unreachable = lost | _gated(tile) | _vetoed(tile, p, mass)
    hidden = None
    if not (p.all() or (some := p.any(axis=-1)).all()):
        # Only logs tell what is 0 from what is too small.
        rest = tile.take(np.flatnonzero(~some))
        exact = _solve_in_logs(rest, mass, lost[~some], keep_scalings=False)
        hidden = np.zeros(tile.n_rows, dtype=bool)
        hidden[~some] = exact.hidden
    return Rows(p, None, unreachable, hidden)


def _solve_in_logs(tile: Tile, mass: MassRule, lost: np.ndarray, *, keep_scalings: bool) -> Rows:
    balanced = isinstance(mass, Balanced)
    order = 0.0 if balanced else 1 / (1 + mass.exponent)
    exchange = tile.exchange
    log_sources = namespace(tile.weights).concat(
        [mass.exponent * log_of(g.histograms) + _log_gate(g.kernel, mass) for g in tile.groups]
    )
    log_p = log_power_mean(log_sources, tile.weights, order=order, exchange=exchange)
    xp = namespace(log_p)
    if not keep_scalings:
        log_v = None
    elif balanced:  # u and v grow without end; v = 1 stands for them: each label keeps to itself
        log_v = xp.zeros_like(log_sources)
    else:
        log_v = _log_scalings(log_p, log_sources, mass)
    p = xp.exp(log_p)
    unreachable = agree_on_any(exchange, lost | _gated(tile) | _vetoed(tile, p, mass))
    return Rows(p, log_v, unreachable, detached(xp.any(log_p > -xp.inf, axis=-1)))


def _is_plain(tile: Tile) -> bool:
    """Whether the models share a kernel and all of them count, here and in NumPy."""
    shared = len(tile.groups) == 1 and not is_torch_array(tile.weights) and tile.exchange.is_alone
    return shared and bool((tile.weights > 0).all())


def _plain_fixed_point(tile: Tile, mass: MassRule) -> np.ndarray:
    """The formula in one pass over the histograms, with as few logarithms as there can be."""
    (group,), f = tile.groups, mass.exponent
    kernel = group.kernel
    order = 0.0 if isinstance(mass, Balanced) else f / (1 + f)
    p = mean_of_powers(
        group.histograms, tile.weights, order=order, exponent=1 + f, check=tile.check
    )
    if kernel.diagonal is None:
        return p
    if not isinstance(mass, Balanced):
        p *= kernel.diagonal**mass.order
    if not np.minimum.reduce(kernel.diagonal, axis=None) > 0:
        p[np.broadcast_to(kernel.diagonal <= 0, p.shape)] = 0
    return p


def _log_gate(kernel: Kernel, mass: MassRule) -> Array | float:
    if kernel.diagonal is None:
        return 0.0
    xp, log_k = namespace(kernel.diagonal), log_of(kernel.diagonal)
    open_ = log_k > -xp.inf
    return xp.where(open_, mass.order * xp.where(open_, log_k, 0.0), -xp.inf)


def _vetoed(tile: Tile, p: Array, mass: MassRule) -> np.ndarray | bool:
    """Rows with mass on a label that another model rules out (balanced)."""
    if not isinstance(mass, Balanced) or (p > 0).all():
        return False
    stuck = [detached((group.histograms > 0) & ~(p > 0)).any(axis=(0, 2)) for group in tile.groups]
    return np.logical_or.reduce(stuck)


def _gated(tile: Tile) -> np.ndarray:
    """Rows with mass under a zero of their diagonal."""
    gated = np.zeros(tile.n_rows, dtype=bool)
    for group in tile.groups:
        diagonal = group.kernel.diagonal
        if diagonal is not None and not (diagonal > 0).all():
            stuck = (group.histograms > 0) & ~(diagonal > 0)
            gated |= detached(stuck).any(axis=(0, 2))
    return gated


def _log_scalings(log_p: Array, log_sources: Array, mass: MassRule) -> Array:
    xp = namespace(log_p)
    finite = (log_p > -xp.inf) & (log_sources > -xp.inf)
    difference = xp.where(finite, log_p, 0.0) - xp.where(finite, log_sources, 0.0)
    # v = (p / image)^f and image = k u give log v = f / (1 - f^2) * (log p - log source).
    slope = mass.exponent / (mass.order * (1 + mass.exponent))
    return xp.where(finite, slope * difference, -xp.inf)
