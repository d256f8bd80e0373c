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

from dataclasses import dataclass
from typing import Any

import numpy as np

from wassemble._arrays import log_of, log_quotient
from wassemble.solvers.components import Components
from wassemble.solvers.debias import NoCorrection
from wassemble.solvers.log_sweep import LogSweep
from wassemble.solvers.mass import MassRule
from wassemble.solvers.sweeps import Rows
from wassemble.solvers.tiles import Tile

# Numbers in the couplings, or in the Hessians, of samples that are worked on together.
_AT_ONCE = 2**21
# What is added to a Hessian of diagonal 1: of the residual, so that steps stay near enough for
# the second order to be true, and at least so much that no inverse blows up.
_DAMPING = 0.1
_LEAST_DAMPING = 1e-12
# A step is halved until the function falls by this share of what its slope promises.
_FALL = 1e-4
_N_HALVINGS = 12
# What rounding makes of a difference of logarithms, relative to mass.
_ROUNDING = 1e-13
# By how much a direction is stretched to see where it leads in the end.
_FAR = 1e9


class NewtonSweep:
    """Sweeps on logarithms, a Newton step before each but the first.

    Rows start from the scalings of ``tile``; NumPy, one weight per model, all models here.
    """

    def __init__(
        self, tile: Tile, mass: MassRule, components: Components | None, *, tolerance: float
    ) -> None:
        self._tile, self._mass, self._components = tile, mass, components
        self._tolerance = tolerance
        self._sweep = LogSweep(tile, mass, components, NoCorrection())
        self._residual: np.ndarray | None = None
        self.hopeless = np.zeros(tile.n_rows, dtype=bool)
        # Only where a kernel has zeros can the models' mass fail to meet.
        self._may_miss = components is not None and any(
            group.kernel.entries.has_zeros for group in tile.groups
        )

    def step(self, n_sweeps: int = 1, *, watch: bool) -> np.ndarray | None:
        for _ in range(n_sweeps):
            # The scalings of longer steps are not where line v puts them: a sweep comes first.
            if self._residual is not None:
                self._move()
            self._residual = self._sweep.step(watch=True)
        return self._residual if watch else None

    def _move(self) -> None:
        """Take every row a Newton step further."""
        assert self._residual is not None  # a sweep came first
        log_v = self._sweep.log_v.copy()
        n_target = log_v.shape[2]
        most = max(n_target, *(group.kernel.shape[0] for group in self._tile.groups))
        step = max(1, _AT_ONCE // (len(log_v) * most * n_target))
        for start in range(0, len(self._residual), step):
            rows = np.arange(start, min(start + step, len(self._residual)))
            log_v[:, rows] = self._moved(rows)
        self._sweep.move(log_v)

    def _moved(self, rows: np.ndarray) -> np.ndarray:
        """The scalings of ``rows`` after a step; marks those that would go on for ever."""
        assert self._residual is not None
        here = _Point.at(
            self._tile.take(rows), self._sweep.log_v[:, rows], self._mass, self._components
        )
        step = here.newton_step(np.fmin(_DAMPING * self._residual[rows], 1))
        if self._may_miss:
            self.hopeless[rows] |= here.falls_for_ever(step, self._tolerance)
        return here.search(step)

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
        self.hopeless = self.hopeless[rows]
        self._residual = None if self._residual is None else self._residual[rows]


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
    marginals: np.ndarray  # b, (n_models, n_rows, n_target); 0 at labels that are not moved
    log_share: np.ndarray | float  # what makes the models' masses of a component equal

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
        marginals = np.where((marginals > 0).all(axis=0), marginals, 0)
        log_share: np.ndarray | float = 0.0
        if components is not None:
            # Mass that no kernel entry can move stays where it is: sweeps settle on the geometric
            # mean of the models' masses of a component, and so does a step from shares of it.
            log_masses = log_of(components.sums(marginals))
            log_share = np.where(log_masses > -np.inf, (weights * log_masses).sum(0) - log_masses, 0)
            marginals = marginals * np.exp(log_share)
        return _Point(tile, mass, components, weights, log_v, log_kv, log_u, marginals, log_share)

    @property
    def ratio(self) -> float:
        """epsilon / mass_penalty; 0 if mass is kept."""
        return self.mass.order / self.mass.exponent

    def newton_step(self, damping: np.ndarray) -> np.ndarray:
        """By how much Newton's method moves the logs of v, ``(n_models, n_rows, n_target)``.

        Labels are measured in units of sqrt(b), in which a Hessian has the diagonal 1.
        """
        roots = np.sqrt(self.marginals)
        inverses = np.linalg.inv(self._hessians(roots, damping))  # (models, rows, target, target)
        moved = roots.min(axis=0) > 0  # (rows, target)
        consensus = np.sqrt((self.weights * self.marginals).sum(axis=0))  # (rows, target)
        tilt = np.exp(-self.ratio * np.where(moved, self.log_v, 0))
        tilt *= consensus / np.where(moved, roots, 1)
        held = (inverses @ roots[..., None])[..., 0]
        # What the models have in common: sum_l w_l step_l = 0, of steps that lead to one consensus.
        joint = np.einsum("mrj,mrjk,mrk->rjk", self.weights * tilt, inverses, tilt, optimize=True)
        joint[:, *np.diag_indices(joint.shape[-1])] += ~moved
        target = (self.weights * tilt * held).sum(axis=0)
        found = np.linalg.solve(joint, target[..., None])[..., 0]
        step = (inverses @ (tilt * found)[..., None])[..., 0] - held
        return np.where(moved, step / np.where(moved, roots, 1), 0)

    def _hessians(self, roots: np.ndarray, damping: np.ndarray) -> np.ndarray:
        """One for each model and row, ``(n_models, n_rows, n_target, n_target)``."""
        n_models, n_rows, n_target = roots.shape
        hessians = np.empty((n_models, n_rows, n_target, n_target))
        for group, log_u in zip(self.tile.groups, self.log_u, strict=True):
            root = roots[group.models, :, None]
            logs = (self.log_v + self.log_share)[group.models, :, None]
            coupling = np.exp(log_u[..., None] + group.kernel.to_log_dense() + logs)
            coupling = np.where(root > 0, coupling, 0)  # (models, rows, source, target)
            sent = np.sqrt(coupling.sum(axis=-1, keepdims=True))
            units = sent * np.where(root > 0, root, 1)
            scaled = np.divide(coupling, units, out=coupling, where=units > 0)
            np.matmul(scaled.swapaxes(-1, -2), scaled, out=hessians[group.models])
        hessians *= -self.mass.exponent
        if self.components is not None:
            self._pin(hessians, roots)
        diagonal = 1 + self.ratio + np.maximum(damping, _LEAST_DAMPING)
        hessians[..., *np.diag_indices(n_target)] += diagonal[:, None]
        return hessians

    def _pin(self, hessians: np.ndarray, roots: np.ndarray) -> None:
        """Keep v from moving as a whole where that changes nothing: balanced, in a component."""
        assert self.components is not None
        totals = self.components.sums(self.marginals)
        shares = roots / np.sqrt(np.where(totals > 0, totals, 1))
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
        after = self.log_v + step
        if self.ratio == 0:  # a Newton step does not leave it
            return after
        with np.errstate(all="ignore"):  # a label out of reach stays there
            excess = (self.weights * np.expm1(-self.ratio * after)).sum(axis=0)
            shift = np.log1p(excess) / self.ratio
        return np.where(after > -np.inf, after + shift, after)

    def _change(self, after: np.ndarray) -> np.ndarray:
        """By how much the function changes on the way to ``after``, per row."""
        total = np.zeros(after.shape[1])
        for group, old, sent in self._sources():
            there = sent > 0
            new = group.kernel.log_apply(after[group.models])
            change = np.where(there, new, 0) - np.where(there, old, 0)
            if self.mass.order:
                change = np.expm1(self.mass.order * change) / self.mass.order
            total += (self.weights[group.models] * sent * change).sum(axis=(0, 2))
        return total

    def _sources(self) -> Any:
        """For each group, log K v and the mass that leaves each source label."""
        for group, log_kv, log_u in zip(self.tile.groups, self.log_kv, self.log_u, strict=True):
            yield group, log_kv, np.exp(log_u + np.where(log_u > -np.inf, log_kv, 0))

    def falls_for_ever(self, step: np.ndarray, tolerance: float) -> np.ndarray:
        """Rows in which the function falls without end along ``step``, by mask.

        Each source label then loses more, at the best of the labels it reaches, than the others
        gain: no consensus can be reached by all, and no scalings are a fixed point.
        """
        return np.zeros(step.shape[1], dtype=bool)
