"""Newton's method for rows that sweeps bring along slowly.

With one weight per model the scalings v = exp(y) at the fixed point minimise a convex function,

    sum_l w_l sum_s mu_s^exponent (K_l v_l)_s^order / order     (balanced: mu_s log (K_l v_l)_s)

on the set where line v puts them: sum_l w_l v_l^-ratio = 1 with ratio = epsilon / mass_penalty,
or sum_l w_l y_l = 0 if mass is kept. Its gradient are the target marginals b_l of the couplings,
its Hessian is diag(b_l) - exponent P_l^T diag(1 / a_l) P_l for each model alone, with P_l the
coupling and a_l its source marginal. Only the constraint joins the models, so that a step takes
one inverse for each model and one for what they have in common, the consensus. Sweeps need the
more steps the flatter the function is; Newton's method does not see how flat it is.

Every step is followed by a sweep, whose residual, consensus and scalings are the row's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from wassemble._arrays import log_of, log_quotient
from wassemble._threads import single_threaded_blas
from wassemble.kernels import Kernel
from wassemble.solvers.components import Components
from wassemble.solvers.debias import NoCorrection
from wassemble.solvers.log_sweep import LogSweep
from wassemble.solvers.mass import MassRule
from wassemble.solvers.sweeps import Rows
from wassemble.solvers.tiles import Tile
from wassemble.solvers.weights import take_rows

# Numbers in the Hessians of rows that are worked on together.
_AT_ONCE = 2**20
# Hessians serve again as long as a step leaves at most this share of the residual.
_NEARER = 0.5
# What is added to a Hessian of diagonal 1: of the residual, so that steps stay near enough for
# the second order to be true, and at least so much that no inverse blows up.
_DAMPING = 0.1
_LEAST_DAMPING = 1e-12
# A step is halved until the function falls by this share of what its slope promises.
_FALL = 1e-4
_N_HALVINGS = 12
# What rounding makes of a difference of logarithms, relative to mass.
_ROUNDING = 1e-13
# By how much a direction is stretched to see where it leads in the end, whatever the entries of
# kernels are; and the least loss of mass, relative, that is told from rounding.
_FAR = 1e15
_CERTAIN = 1e-9


class NewtonSweep:
    """Sweeps on logarithms, a Newton step before each but the first.

    Rows start from the scalings of ``tile``; NumPy, one weight per model, all models here. Their
    Hessians are in memory at the same time: `rows_at_once` says for how many that is little.
    """

    def __init__(
        self, tile: Tile, mass: MassRule, components: Components | None, *, tolerance: float
    ) -> None:
        self._tile, self._mass, self._components = tile, mass, components
        self._tolerance = tolerance
        self._sweep = LogSweep(tile, mass, components, NoCorrection())
        self._residual: np.ndarray | None = None
        self._curvature: _Curvature | None = None
        self._is_stale = np.ones(tile.n_rows, dtype=bool)
        self.hopeless = np.zeros(tile.n_rows, dtype=bool)
        # Only where a kernel has zeros can the models' mass fail to meet.
        self._may_miss = components is not None and any(
            group.kernel.entries.has_zeros for group in tile.groups
        )

    def step(self, n_sweeps: int = 1, *, watch: bool) -> np.ndarray | None:
        for _ in range(n_sweeps):
            before, after = self._residual, self._swept()
            if before is not None:
                self._is_stale = ~(after < _NEARER * before)
            self._residual = after
        return self._residual if watch else None

    def _swept(self) -> np.ndarray:
        """The residual after a Newton step and a sweep.

        The scalings of longer steps are not where line v puts them: a sweep comes first.
        """
        if self._residual is not None:
            # Of many small matrices: threads would wait for each other. Hessians of very small
            # numbers may leave the range: a step that is no number is not taken.
            with single_threaded_blas(), np.errstate(all="ignore"):
                self._move(self._residual)
        return np.asarray(self._sweep.step(watch=True))

    def _move(self, residual: np.ndarray) -> None:
        """Take every row a Newton step further; mark those that would go on for ever."""
        here = _Point.at(self._tile, self._sweep.log_v, self._mass, self._components)
        if self._curvature is None:
            self._curvature = here.curvature(residual)
        elif self._is_stale.any():
            rows = np.flatnonzero(self._is_stale)
            self._curvature.put(rows, here.take(rows).curvature(residual[rows]))
        step = self._curvature.step_from(here)
        if self._may_miss:
            self.hopeless |= here.falls_for_ever(step, self._tolerance)
            step[:, self.hopeless] = 0  # they end where sweeps brought them
        self._sweep.move(here.search(step))

    def relax(self, omega: np.ndarray) -> None:
        """Nothing: Newton's steps have the length that they need."""

    def untrusted(self) -> np.ndarray:
        """No rows."""
        return self._sweep.untrusted()

    def read(self, rows: Any, *, keep_scalings: bool) -> Rows:
        """The state of ``rows``; mass that cannot meet is out of reach."""
        found = self._sweep.read(rows, keep_scalings=keep_scalings)
        if found.unreachable is not None:
            found.unreachable |= self.hopeless[rows]
        return found

    def keep(self, rows: np.ndarray) -> None:
        """Go on with ``rows`` alone."""
        self._tile = self._tile.take(rows)
        self._sweep.keep(rows)
        self.hopeless, self._is_stale = self.hopeless[rows], self._is_stale[rows]
        self._residual = None if self._residual is None else self._residual[rows]
        self._curvature = None if self._curvature is None else self._curvature.take(rows)


def rows_at_once(tile: Tile) -> int:
    """Rows of ``tile`` whose Hessians take little memory."""
    sizes = [group.kernel.shape for group in tile.groups]
    return max(1, _AT_ONCE // (tile.n_models * max(max(size) * size[1] for size in sizes)))


@dataclass
class _Curvature:
    """Inverse Hessians of some rows, in units in which the models' are added up.

    Label j of model l is measured in sqrt(p_j) v_lj^-ratio.
    """

    units: np.ndarray  # (n_models, n_rows, n_target)
    each: np.ndarray  # (n_models, n_rows, n_target, n_target)
    joint: np.ndarray  # (n_rows, n_target, n_target)

    def step_from(self, here: _Point) -> np.ndarray:
        """By how much Newton's method moves the logs of v, ``(n_models, n_rows, n_target)``."""
        moved = (self.units > 0) & (here.marginals > 0)
        units = np.where(moved, self.units, 1)
        held = _apply(self.each, here.marginals / units)
        # Steps of all models to one consensus, such that sum_l w_l step_l = 0.
        consensus = _apply(self.joint, (here.weights * held).sum(axis=0))
        return np.where(moved, (_apply(self.each, consensus) - held) / units, 0)

    def put(self, rows: np.ndarray, other: _Curvature) -> None:
        """Replace what is known of ``rows``."""
        self.units[:, rows], self.each[:, rows] = other.units, other.each
        self.joint[rows] = other.joint

    def take(self, rows: np.ndarray) -> _Curvature:
        return _Curvature(self.units[:, rows], self.each[:, rows], self.joint[rows])


def _apply(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return np.asarray((matrices @ vectors[..., None])[..., 0])


def _invert(matrices: np.ndarray) -> np.ndarray:
    """Inverses of positive definite matrices, by Cholesky's factors: half the work of `inv`."""
    each = matrices.reshape(-1, *matrices.shape[-2:]).copy()
    for matrix in each:
        factor, failed = dpotrf(matrix.T, clean=0)  # nothing is transposed: it is symmetric
        # Rounding may leave something that is not positive.
        matrix[...] = np.linalg.inv(matrix) if failed else dpotri(factor, overwrite_c=1)[0].T
    is_lower = np.tri(each.shape[-1], dtype=bool)
    return np.where(is_lower, each, each.swapaxes(-1, -2)).reshape(matrices.shape)


def _diagonal(matrices: np.ndarray) -> np.ndarray:
    """The diagonals, to be written to."""
    return np.asarray(np.einsum("...jj->...j", matrices))


def _share_out(
    kernel: Kernel, log_v: np.ndarray, log_kv: np.ndarray, log_share: np.ndarray
) -> np.ndarray:
    """Log of K v with v times a share; one share for all labels comes out of the product."""
    if log_share.shape[-1] == 1:
        return log_kv + log_share
    return np.asarray(kernel.log_apply(log_v + log_share))


@dataclass
class _Point:
    """Scalings of some rows, and what the function does there."""

    tile: Tile
    mass: MassRule
    components: Components | None
    weights: np.ndarray  # (n_models, 1 or n_rows, 1)
    log_v: np.ndarray  # (n_models, n_rows, n_target)
    log_kv: list[np.ndarray]  # (models, n_rows, n_source), one per group
    log_u: list[np.ndarray]  # (models, n_rows, n_source), one per group
    sent: list[np.ndarray]  # a, (models, n_rows, n_source), one per group
    marginals: np.ndarray  # b, (n_models, n_rows, n_target); 0 at labels that are not moved
    # What makes the models' masses of a component equal, (n_models, n_rows, 1 or n_target).
    log_share: np.ndarray

    @staticmethod
    def at(tile: Tile, log_v: np.ndarray, mass: MassRule, components: Components | None) -> _Point:
        weights = tile.weights[..., :1].astype(np.float64)
        pairs = [(group, log_v[group.models]) for group in tile.groups]
        log_kv = [group.kernel.log_apply(logs) for group, logs in pairs]
        log_u = [
            mass.exponent * log_quotient(log_of(group.histograms.astype(np.float64)), logs)
            for group, logs in zip(tile.groups, log_kv, strict=True)
        ]
        images = [
            group.kernel.log_apply_transpose(logs)
            for group, logs in zip(tile.groups, log_u, strict=True)
        ]
        marginals = np.exp(np.concatenate(images) + log_v)
        log_share = np.zeros((*log_v.shape[:2], 1))
        if components is not None:
            marginals = np.where((marginals > 0).all(axis=0), marginals, 0)
            # Mass that no kernel entry can move stays where it is: sweeps settle on the geometric
            # mean of the models' masses of a component, and so does a step from shares of it.
            masses = components.sums(marginals)  # of a component with none, nothing is moved
            log_masses = np.log(np.where(masses > 0, masses, 1))
            log_share = (weights * log_masses).sum(axis=0) - log_masses
            marginals = marginals * np.exp(log_share)
        sent = [
            np.exp(own_u + _share_out(group.kernel, own_v, own_kv, log_share[group.models]))
            for (group, own_v), own_u, own_kv in zip(pairs, log_u, log_kv, strict=True)
        ]
        return _Point(
            tile, mass, components, weights, log_v, log_kv, log_u, sent, marginals, log_share
        )

    def take(self, rows: np.ndarray) -> _Point:
        """The point of ``rows`` alone."""

        def cut(arrays: list[np.ndarray]) -> list[np.ndarray]:
            return [each[:, rows] for each in arrays]

        return replace(
            self,
            tile=self.tile.take(rows),
            weights=take_rows(self.weights, rows),
            log_v=self.log_v[:, rows],
            log_kv=cut(self.log_kv),
            log_u=cut(self.log_u),
            sent=cut(self.sent),
            marginals=self.marginals[:, rows],
            log_share=self.log_share[:, rows],
        )

    @property
    def ratio(self) -> float:
        """The quotient epsilon / mass_penalty; 0 if mass is kept."""
        return self.mass.order / self.mass.exponent

    def curvature(self, residual: np.ndarray) -> _Curvature:
        """The inverse Hessians here."""
        moved = self.marginals > 0
        tilt = np.where(moved, np.exp(-self.ratio * np.where(moved, self.log_v, 0)), 0)
        units = tilt * np.sqrt((self.weights * self.marginals).sum(axis=0))
        damping = np.clip(_DAMPING * residual, _LEAST_DAMPING, 1)
        each = _invert(self._hessians(units, damping))
        # Labels that a model does not reach say nothing of it.
        _diagonal(each)[...] *= moved
        joint = np.einsum("mr,mrjk->rjk", np.broadcast_to(self.weights, units.shape)[..., 0], each)
        _diagonal(joint)[...] += ~moved.any(axis=0)
        return _Curvature(units, each, _invert(joint))

    def _hessians(self, units: np.ndarray, damping: np.ndarray) -> np.ndarray:
        """One for each model and row, ``(n_models, n_rows, n_target, n_target)``."""
        n_models, n_rows, n_target = units.shape
        hessians = np.empty((n_models, n_rows, n_target, n_target))
        log_columns = log_quotient(self.log_v + self.log_share, log_of(units))
        for group, log_u, sent in zip(self.tile.groups, self.log_u, self.sent, strict=True):
            log_rows = log_quotient(log_u, log_of(sent) / 2)
            scaled = group.kernel.to_log_dense() + log_columns[group.models, :, None]
            scaled += log_rows[..., None]  # (models, rows, source, target)
            np.exp(scaled, out=scaled)
            np.matmul(scaled.swapaxes(-1, -2), scaled, out=hessians[group.models])
        hessians *= -self.mass.exponent
        moved = units > 0
        safe = np.where(moved, units, 1)  # whose square may be too small for a number
        marginals = np.where(moved, self.marginals / safe / safe, 1)
        if self.components is not None:
            self._pin(hessians, marginals * units)
        _diagonal(hessians)[...] += (1 + self.ratio + damping)[:, None] * marginals
        return hessians

    def _pin(self, hessians: np.ndarray, marginals: np.ndarray) -> None:
        """Keep v from moving as a whole where that changes nothing: balanced, in a component."""
        assert self.components is not None
        totals = self.components.sums(self.marginals)
        shares = marginals / np.sqrt(np.where(totals > 0, totals, 1))
        joined = shares[..., None] * shares[..., None, :]
        labels = self.components.labels
        hessians += joined if labels is None else np.where(labels[:, None] == labels, joined, 0)

    def search(self, step: np.ndarray) -> np.ndarray:
        """The logs of v after as much of ``step`` as makes the function fall; maybe none."""
        slope = (self.weights * self.marginals * step).sum(axis=(0, 2))
        slack = _ROUNDING * self.marginals.sum(axis=(0, 2))
        length = np.where(np.isfinite(step).all(axis=(0, 2)), 1.0, 0.0)
        for _ in range(_N_HALVINGS):
            after = self._after(np.where(length[:, None] > 0, step, 0) * length[:, None])
            rises = ~(self._change(after) <= _FALL * length * slope + slack)
            if not rises.any():
                return after
            length = np.where(rises, length / 2, length)
        return np.where(rises[:, None], self.log_v, after)

    def _after(self, step: np.ndarray) -> np.ndarray:
        """The logs of v moved by ``step``, back where line v puts them."""
        if self.ratio == 0:
            return self.log_v + self._balanced(step)
        after = self.log_v + step
        there = after > -np.inf
        # Relative to the smallest: no power overflows, and their sum is not 0.
        least = np.where(there.any(axis=0), np.where(there, after, np.inf).min(axis=0), 0)
        above = np.where(there, after - least, 0)
        excess = (self.weights * np.where(there, np.expm1(-self.ratio * above), -1)).sum(axis=0)
        shift = np.log1p(np.where(there.any(axis=0), excess, 0)) / self.ratio
        return np.where(there, above + shift, -np.inf)

    def _balanced(self, step: np.ndarray) -> np.ndarray:
        """``step`` without what rounding adds to sum_l w_l step_l = 0."""
        return step - (self.weights * step).sum(axis=0)

    def _change(self, after: np.ndarray) -> np.ndarray:
        """By how much the function changes on the way to ``after``, per row."""
        total = np.zeros(after.shape[1])
        for group, old, sent in zip(self.tile.groups, self.log_kv, self.sent, strict=True):
            there = sent > 0
            new = group.kernel.log_apply(after[group.models])
            change = np.where(there, new, 0) - np.where(there, old, 0)
            if self.mass.order:
                change = np.expm1(self.mass.order * change) / self.mass.order
            total += (self.weights[group.models] * sent * change).sum(axis=(0, 2))
        return total

    def falls_for_ever(self, step: np.ndarray, tolerance: float) -> np.ndarray:
        """Rows in which the function falls without end along ``step``, by mask.

        Sent to the label where it gains most, the mass of all models together still loses: no
        consensus is within reach of all, and sweeps drift along for ever.
        """
        step = np.where(self.log_v > -np.inf, self._balanced(step), -np.inf)
        length = np.abs(np.where(step > -np.inf, step, 0)).max(axis=(0, 2))[:, None]
        far = step * (_FAR / np.where(length > 0, length, 1))
        gained = np.zeros(len(length))
        for group, sent in zip(self.tile.groups, self.sent, strict=True):
            best = np.where(sent > 0, group.kernel.log_apply(far[group.models]), 0)
            gained += (self.weights[group.models] * sent * best).sum(axis=(0, 2))
        mass = self.sent[0][0].sum(axis=-1)
        return np.asarray(gained < -max(tolerance, _CERTAIN) * _FAR * mass)
