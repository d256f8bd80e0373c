"""Sweeps on logarithms: any array library, exact everywhere, with gradients in torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wassemble._arrays import (
    Array,
    convert_like,
    detached,
    log_of,
    log_quotient,
    namespace,
    new_zeros,
    widest_float,
    without_gradient,
)
from wassemble.kernels import Kernel
from wassemble.solvers.components import Components
from wassemble.solvers.debias import Correction
from wassemble.solvers.exchange import agree_on_any
from wassemble.solvers.mass import MassRule
from wassemble.solvers.power_means import log_power_mean
from wassemble.solvers.sweeps import Rows, residual
from wassemble.solvers.tiles import Tile
from wassemble.solvers.weights import take_rows


class LogSweep:
    """Sweeps on logarithms, which are float64 whatever the type of the histograms.

    On a device that has no float64 they are float32.
    """

    hopeless = False

    def __init__(
        self, tile: Tile, mass: MassRule, components: Components | None, correction: Correction
    ) -> None:
        xp = namespace(tile.groups[0].histograms)
        self._mass = mass
        self._components = components
        self._correction = correction
        self._exchange = tile.exchange
        self._log_p: Any = None  # before the first sweep
        self._log_u: list[Array] = []
        self._omega: Array | None = None
        self._groups = tile.groups
        wide = widest_float(tile.weights)
        self._weights = xp.astype(tile.weights, wide)
        self._log_histograms = [log_of(xp.astype(group.histograms, wide)) for group in tile.groups]
        n_target = tile.groups[0].kernel.shape[1]
        if tile.log_v is None:
            size = (tile.n_models, tile.n_rows, n_target)
            self.log_v = new_zeros(size, self._weights)
        else:
            self.log_v = xp.astype(tile.log_v, wide)

    def step(self, n_sweeps: int = 1, *, watch: bool) -> np.ndarray | None:
        for _ in range(n_sweeps - 1):
            self._sweep(watch=False)
        return self._sweep(watch=watch)

    def _sweep(self, *, watch: bool) -> np.ndarray | None:
        xp = namespace(self.log_v)
        exponent = self._mass.exponent
        images: list[Array] = []
        log_us: list[Array] = []
        for group, log_histograms in zip(self._groups, self._log_histograms, strict=True):
            log_kv = group.kernel.log_apply(self.log_v[group.models])  # (models, rows, source)
            log_u = exponent * log_quotient(log_histograms, log_kv)  # (models, rows, source)
            if self._omega is not None:
                log_u = _stretched(self._log_u[len(log_us)], log_u, self._omega)
            log_us.append(log_u)
            images.append(group.kernel.log_apply_transpose(log_u))  # (models, rows, target)
        self._log_u = log_us
        log_images = xp.concat(images)  # (n_models, n_rows, n_target)
        log_p = log_power_mean(
            log_images,
            self._weights,
            order=self._mass.order,
            exchange=self._exchange,
            log_guess=None if self._exchange.is_alone else self._log_p,
        )
        self._log_p, correction_residual = self._correction.correct(log_p)  # (n_rows, n_target)
        old, new = self.log_v, exponent * log_quotient(self._log_p, log_images)
        self.log_v = new if self._omega is None else _stretched(old, new, self._omega)
        if not watch:
            return None
        log_images, log_p = without_gradient(log_images), without_gradient(self._log_p)
        before = xp.exp(without_gradient(old) + log_images)
        after = xp.exp(without_gradient(new) + log_images)
        p = xp.exp(log_p)
        found = detached(residual(before, after, p, self._components))
        empty = p.sum(axis=-1) == 0
        if empty.any():  # mass that is too small to be seen has not come to rest: sweeps raise it
            hidden = detached(empty & xp.any(log_p > -xp.inf, axis=-1))
            found = np.where(hidden, np.inf, found)
        return np.maximum(found, correction_residual)

    def use(self, kernels: Sequence[Kernel]) -> None:
        """Go on with the same kernels in another precision, one per group."""
        pairs = zip(self._groups, kernels, strict=True)
        self._groups = [replace(group, kernel=kernel) for group, kernel in pairs]

    def move(self, log_v: Array) -> None:
        """Go on from other scalings."""
        self.log_v = log_v

    def relax(self, omega: np.ndarray) -> None:
        """From now on take each row's updates ``omega`` times as far."""
        longer = (omega != 1).any()
        self._omega = convert_like(omega, self.log_v)[:, None] if longer else None

    def untrusted(self) -> np.ndarray:
        """No rows: log arithmetic is exact everywhere."""
        return np.zeros(self.log_v.shape[1], dtype=bool)

    def read(self, rows: Any, *, keep_scalings: bool) -> Rows:
        """The state of ``rows``."""
        xp = namespace(self.log_v)
        log_v = self.log_v[:, rows]
        unreachable = None
        for group, log_histograms in zip(self._groups, self._log_histograms, strict=True):
            if group.kernel.entries.has_zeros:
                log_kv = group.kernel.take(rows).log_apply(log_v[group.models])
                stuck = (log_histograms[:, rows] > -xp.inf) & ~(log_kv > -xp.inf)
                found = detached(xp.any(xp.any(stuck, axis=-1), axis=0))
                unreachable = found if unreachable is None else unreachable | found
        if not self._exchange.is_alone:
            here = np.zeros(log_v.shape[1]) if unreachable is None else unreachable
            unreachable = agree_on_any(self._exchange, here)
        log_p = self._log_p[rows]
        hidden = detached(xp.any(log_p > -xp.inf, axis=-1))
        kept = log_v if keep_scalings else None
        return Rows(xp.exp(log_p), kept, unreachable, hidden, in_logs=True)

    def keep(self, rows: np.ndarray) -> None:
        """Go on with ``rows`` alone."""
        self._groups = [group.take(rows) for group in self._groups]
        self._weights = take_rows(self._weights, rows)
        self._log_histograms = [logs[:, rows] for logs in self._log_histograms]
        self.log_v = self.log_v[:, rows]
        self._log_p = None if self._log_p is None else self._log_p[rows]
        self._log_u = [log_u[:, rows] for log_u in self._log_u]
        self._omega = None if self._omega is None else self._omega[rows]
        self._correction = self._correction.take(rows)


def _stretched(old: Array, new: Array, omega: Array) -> Array:
    """``old + omega (new - old)``, with labels out of reach left there."""
    xp = namespace(old)
    both = (old > -xp.inf) & (new > -xp.inf)
    step = xp.where(both, new, 0.0) - xp.where(both, old, 0.0)
    return xp.where(both, old + omega * step, new)
