"""One sweep of Algorithms 1 and 2, in two arithmetics.

Both do the same to the samples of a tile:

    u_l = (mu_l / K_l v_l) ** exponent         line u
    p   = power mean of K_l^T u_l, of order    line p
    v_l = (p / K_l^T u_l) ** exponent          line v

`PlainSweep` works on the numbers themselves, in place, in NumPy, and watches that they
stay where floating point is exact; `LogSweep` works on logarithms, in any array
library, and is exact everywhere. When to stop is the loop's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from wassemble._arrays import (
    Array,
    detached,
    is_torch_array,
    log_of,
    log_quotient,
    namespace,
    new_zeros,
)
from wassemble.solvers.components import Components
from wassemble.solvers.debias import Correction
from wassemble.solvers.mass import Balanced, MassRule
from wassemble.solvers.power_means import log_power_mean, weighted_sum
from wassemble.solvers.problem import Tile

__all__ = ["LogSweep", "PlainLimits", "PlainSweep", "Rows", "Sweep"]


@dataclass
class Rows:
    """What a sweep knows of some rows."""

    barycenter: Array  # (n_rows, n_target)
    log_v: Array | None  # (n_models, n_rows, n_target)
    unreachable: np.ndarray  # (n_rows,): some mass cannot arrive


class Sweep(Protocol):
    """A tile under way."""

    def step(self, *, watch: bool) -> np.ndarray | None:
        """Do one sweep; with ``watch``, return each row's residual."""

    def untrusted(self) -> np.ndarray:
        """Rows whose numbers have left the range where this arithmetic is exact."""

    def read(self, rows: Any) -> Rows:
        """The state of ``rows``, by mask."""

    def keep(self, rows: np.ndarray) -> None:
        """Go on with ``rows`` alone, by mask."""


@dataclass(frozen=True)
class PlainLimits:
    """Where plain arithmetic in a floating type loses nothing to underflow or overflow.

    With kernel entries within ``kernel_range`` of each other, scalings between
    ``1 / scaling`` and ``scaling`` and histogram entries of at least ``histogram``
    (where zeros are not harmless), every sum in a sweep stays far above the smallest
    normal number; an order of at least ``order`` keeps line p exact to a few units in
    the last places.
    """

    kernel_range: float
    scaling: float
    histogram: float
    order: float

    @staticmethod
    def of(dtype: Any) -> PlainLimits:
        """Limits for float32 or float64."""
        if dtype == np.float32:
            return PlainLimits(1e-6, 1e10, 1e-12, 0.05)
        return PlainLimits(1e-60, 1e100, 1e-60, 1e-7)


class PlainSweep:
    """Sweeps on the numbers themselves, in place."""

    def __init__(self, tile: Tile, mass: MassRule, components: Components) -> None:
        self._mass = mass
        self._components = components if isinstance(mass, Balanced) else None
        self._groups = tile.groups
        dtype = tile.groups[0].histograms.dtype
        self._weights = tile.weights.astype(dtype, copy=False)
        self._limit = PlainLimits.of(dtype).scaling
        size = (tile.n_models, tile.n_rows, tile.groups[0].kernel.shape[1])
        self._starts_at_one = tile.log_v is None
        self._v = np.empty(size, dtype)
        if tile.log_v is not None:
            np.exp(tile.log_v, out=self._v, casting="same_kind")
        self._p = np.empty(size[1:], dtype)
        self._untrusted = np.zeros(tile.n_rows, dtype=bool)
        self._allocate()

    def _allocate(self) -> None:
        """Room for what a sweep computes on its way."""
        dtype = self._v.dtype
        self._scaled = [np.empty(group.histograms.shape, dtype) for group in self._groups]
        self._images = np.empty_like(self._v)
        self._powers = np.empty_like(self._v)

    def step(self, *, watch: bool) -> np.ndarray | None:
        with np.errstate(all="ignore"):  # rows that leave the safe range are told apart below
            self._update_images()
            if not watch:
                self._update_p_and_v()
                self._guard()
                return None
            before = self._images.copy() if self._starts_at_one else self._images * self._v
            self._update_p_and_v()
            self._guard()
            np.multiply(self._images, self._v, out=self._powers)
            return _residual(before, self._powers, self._p, self._components)

    def _update_images(self) -> None:
        """Line u and the products around it: from v to K^T u."""
        exponent = self._mass.exponent
        for group, scaled in zip(self._groups, self._scaled, strict=True):
            if self._starts_at_one:  # K v is the sum of each row
                ones = np.ones((1, group.kernel.shape[1]), self._v.dtype)
                np.divide(group.histograms, group.kernel.apply(ones), out=scaled)
            else:
                group.kernel.apply(self._v[group.models], out=scaled)
                np.divide(group.histograms, scaled, out=scaled)
            if exponent != 1:  # log2 and exp2 cost half of `numpy.power`
                np.log2(scaled, out=scaled)
                np.multiply(scaled, exponent, out=scaled)
                np.exp2(scaled, out=scaled)
            group.kernel.apply_transpose(scaled, out=self._images[group.models])

    def _update_p_and_v(self) -> None:
        """Lines p and v."""
        order, exponent = self._mass.order, self._mass.exponent
        self._starts_at_one = False
        np.log2(self._images, out=self._powers)
        if order == 0:
            np.exp2(weighted_sum(self._weights, self._powers), out=self._p)
            np.divide(self._p, self._images, out=self._v)
            return
        np.multiply(self._powers, order, out=self._powers)
        np.exp2(self._powers, out=self._powers)
        log_p = weighted_sum(self._weights, self._powers)
        np.log2(log_p, out=log_p)
        log_p /= order
        np.exp2(log_p, out=self._p)
        # (p / image)^exponent = p^exponent * image^order / image: the exponents sum to 1.
        np.divide(self._powers, self._images, out=self._v)
        log_p *= exponent
        np.multiply(self._v, np.exp2(log_p, out=log_p), out=self._v)

    def _guard(self) -> None:
        """Mark the rows whose scalings left the limits; they are not believed from here on."""
        low, high = 1 / self._limit, self._limit
        if not (self._v.min() >= low and self._v.max() <= high):
            inside = (self._v >= low) & (self._v <= high)
            self._untrusted |= ~inside.all(axis=(0, 2))

    def untrusted(self) -> np.ndarray:
        """Rows whose scalings left the limits at some sweep."""
        return self._untrusted

    def read(self, rows: Any) -> Rows:
        """The state of ``rows``; no mass is out of reach where plain arithmetic is trusted."""
        p = self._p[rows]
        return Rows(p, np.log(self._v[:, rows]), np.zeros(len(p), dtype=bool))

    def keep(self, rows: np.ndarray) -> None:
        """Go on with ``rows`` alone."""
        self._groups = [group.take(rows) for group in self._groups]
        self._v = np.ascontiguousarray(self._v[:, rows])
        self._p = self._p[rows]
        self._untrusted = self._untrusted[rows]
        self._allocate()


class LogSweep:
    """Sweeps on logarithms, which are float64 whatever the type of the histograms."""

    def __init__(
        self, tile: Tile, mass: MassRule, components: Components | None, correction: Correction
    ) -> None:
        xp = namespace(tile.groups[0].histograms)
        self._mass = mass
        self._components = components if isinstance(mass, Balanced) else None
        self._correction = correction
        self._groups = tile.groups
        self._weights = xp.astype(tile.weights, xp.float64)
        self._log_histograms = [
            log_of(xp.astype(group.histograms, xp.float64)) for group in tile.groups
        ]
        n_target = tile.groups[0].kernel.shape[1]
        if tile.log_v is None:
            size = (tile.n_models, tile.n_rows, n_target)
            like = self._weights if is_torch_array(self._weights) else None
            self._log_v = new_zeros(size, like, xp.float64)
        else:
            self._log_v = xp.astype(tile.log_v, xp.float64)

    def step(self, *, watch: bool) -> np.ndarray | None:
        xp = namespace(self._log_v)
        exponent = self._mass.exponent
        images = []
        for group, log_histograms in zip(self._groups, self._log_histograms, strict=True):
            log_kv = group.kernel.log_apply(self._log_v[group.models])
            log_u = exponent * log_quotient(log_histograms, log_kv)
            images.append(group.kernel.log_apply_transpose(log_u))
        log_images = xp.concat(images)
        log_p = log_power_mean(log_images, self._weights, order=self._mass.order)
        self._log_p, correction_residual = self._correction.correct(log_p)
        old, self._log_v = self._log_v, exponent * log_quotient(self._log_p, log_images)
        if not watch:
            return None
        values = [
            xp.exp(logs) for logs in (old + log_images, self._log_v + log_images, self._log_p)
        ]
        before, after, p = (detached(value) for value in values)
        residual = _residual(before, after, p, self._components)
        return np.maximum(residual, correction_residual)

    def untrusted(self) -> np.ndarray:
        """No rows: log arithmetic is exact everywhere."""
        return np.zeros(self._log_v.shape[1], dtype=bool)

    def read(self, rows: Any) -> Rows:
        """The state of ``rows``."""
        xp = namespace(self._log_v)
        log_p, log_v = self._log_p[rows], self._log_v[:, rows]
        unreachable = np.zeros(log_p.shape[0], dtype=bool)
        for group, log_histograms in zip(self._groups, self._log_histograms, strict=True):
            if group.kernel.entries.has_zeros:
                log_kv = group.kernel.take(rows).log_apply(log_v[group.models])
                stuck = (log_histograms[:, rows] > -xp.inf) & ~(log_kv > -xp.inf)
                unreachable |= detached(xp.any(xp.any(stuck, axis=-1), axis=0))
        return Rows(xp.exp(log_p), log_v, unreachable)

    def keep(self, rows: np.ndarray) -> None:
        """Go on with ``rows`` alone."""
        self._groups = [group.take(rows) for group in self._groups]
        self._log_histograms = [logs[:, rows] for logs in self._log_histograms]
        self._log_v = self._log_v[:, rows]
        self._correction = self._correction.take(rows)


def _residual(
    before: np.ndarray,
    after: np.ndarray,
    p: np.ndarray,
    components: Components | None,
) -> np.ndarray:
    """How far each row is from the fixed point, relative to its mass.

    ``before`` and ``after`` are the couplings' target marginals, ``(n_models, n_rows,
    n_target)``, with the scalings v before and after this sweep; at the fixed point
    they are equal. Balanced: compared as shares of each component, because mass that
    no kernel entry can move stays where it is for ever.
    """
    with np.errstate(all="ignore"):
        if components is not None:
            shares = components.sums(after) / components.sums(before)
            before = before * np.where(np.isfinite(shares), shares, 0)
        change = np.abs(before - after).sum(axis=-1).max(axis=0)
        total = p.sum(axis=-1)
        return np.where((change == 0) & np.isfinite(total), 0, change / total)
