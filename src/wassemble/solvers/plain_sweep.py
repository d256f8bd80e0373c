"""Sweeps on the numbers themselves: NumPy, in place, as long as floating point is exact."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from wassemble.kernels import Kernel
from wassemble.kernels.base import EntryRange
from wassemble.solvers.components import Components
from wassemble.solvers.mass import Balanced, MassRule
from wassemble.solvers.power_means import bind_weighted_sum, log_and_exp
from wassemble.solvers.sweeps import Rows, residual
from wassemble.solvers.tiles import Tile
from wassemble.solvers.weights import take_rows


@dataclass(frozen=True)
class PlainLimits:
    """Where plain arithmetic in a floating type loses nothing to underflow or overflow.

    With scalings between ``1 / scaling`` and ``scaling`` and histogram entries of at least
    ``histogram`` (where zeros are not harmless) only sums can lose something, and they are
    watched: of one above its `floor` what underflowed is too small to matter. An order of at
    least ``order`` keeps line p exact to a few units in the last places, on logarithms if it is
    below ``power``.
    """

    scaling: float
    histogram: float
    order: float
    power: float
    smallest_normal: float
    eps: float

    @staticmethod
    def of(dtype: Any) -> PlainLimits:
        """Limits for float32 or float64."""
        return _SINGLE if dtype == np.float32 else _DOUBLE

    def floor(self, kernel: Kernel) -> float:
        """A sum over the labels of ``kernel`` that has lost nothing."""
        factors = [kernel] if kernel.keeps_entries or kernel.keeps_logs else kernel.factors()
        # What one factor lost meets the entries of the next.
        losses = [max(each.shape) * max(each.entries.largest, 1.0) for each in factors or [kernel]]
        return self.smallest_normal / self.eps * math.prod(losses)


# Numbers below which a call into NumPy costs more than what it computes.
_FEW = 4096

_SINGLE = PlainLimits(1e10, 1e-12, 1e-7, 0.05, 2.0**-126, 2.0**-23)
_DOUBLE = PlainLimits(1e100, 1e-60, 1e-7, 1e-7, 2.0**-1022, 2.0**-52)


def unsafe_rows(
    histograms: np.ndarray, entries: EntryRange, mass: MassRule, limits: PlainLimits
) -> np.ndarray | None:
    """Rows of ``(n_models, n_rows, n_source)`` that plain arithmetic need not try; None: none."""
    unsafe = None
    # Where a kernel has zeros, a zero in a histogram may cut labels off.
    if entries.has_zeros and np.minimum.reduce(histograms, axis=None) < limits.histogram:
        unsafe = histograms.min(axis=(0, 2)) < limits.histogram
    if isinstance(mass, Balanced):
        lowest = 1 / histograms.shape[-1]  # of the largest entries of histograms
        if np.maximum.reduce(histograms, axis=None) > limits.scaling:
            large = histograms.max(axis=(0, 2)) > limits.scaling
            unsafe = large if unsafe is None else unsafe | large
    else:
        tops = histograms.max(axis=-1)
        lowest = float(tops.min(initial=np.inf))
        if lowest < limits.histogram or tops.max(initial=0) > limits.scaling:
            outside = ((tops < limits.histogram) | (tops > limits.scaling)).any(axis=0)
            unsafe = outside if unsafe is None else unsafe | outside
    # Over K v an entry below ``low`` may lose digits. One below ``negligible`` does not matter,
    # whatever becomes of it: its u is too small beside that of its row's largest entry.
    low = limits.smallest_normal * histograms.shape[-1] * entries.largest * limits.scaling
    spread = entries.smallest / entries.largest
    share = spread * (limits.eps * spread) ** (1 / mass.exponent)
    if max(lowest, limits.histogram) * share < low:
        negligible = share * histograms.max(axis=-1, keepdims=True)
        lossy = (histograms > 0) & (histograms < low) & (histograms >= negligible)
        if lossy.any():
            unsafe = lossy.any(axis=(0, 2)) if unsafe is None else unsafe | lossy.any(axis=(0, 2))
    return unsafe


class PlainSweep:
    """Sweeps on the numbers themselves, in place.

    Rows that leave the safe range may overflow on their way: floating-point warnings are
    the caller's to silence, and `untrusted` tells which rows they were about.
    """

    checks_numbers: ClassVar[bool] = False
    hopeless = False

    def __init__(self, tile: Tile, mass: MassRule, components: Components | None) -> None:
        self._order, self._exponent = mass.order, mass.exponent
        self._components = components
        self._groups = tile.groups
        dtype = tile.groups[0].histograms.dtype
        self._weights = tile.weights.astype(dtype)
        limits = PlainLimits.of(dtype)
        self._limit = limits.scaling
        self._floors = [limits.floor(group.kernel) for group in tile.groups]
        self._log, self._exp = log_and_exp(dtype)
        self._means_logs = mass.order < limits.power
        self._scale = mass.order * (1 if self._log is np.log else math.log(2))
        self._exchange = tile.exchange
        # What bounds v from below is said of all models, here and elsewhere.
        here = tile.exchange.is_alone
        self._harmless = _harmless(tile.weights, mass, self._limit) if here else 0.0
        size = (tile.n_models, tile.n_rows, tile.groups[0].kernel.shape[1])
        self._starts_at_one = tile.log_v is None
        self._v = np.empty(size, dtype)
        if tile.log_v is not None:
            np.exp(tile.log_v, out=self._v, casting="same_kind")
        self._untrusted = np.zeros(tile.n_rows, dtype=bool)
        self._steps: _LongerSteps | None = None
        self._allocate()

    def restart(self) -> None:
        """Forget all sweeps: start at v = 1 again, from histograms that may have changed."""
        self._starts_at_one, self._steps = True, None
        self._untrusted[:] = False

    def _allocate(self) -> None:
        """Room for what a sweep computes on its way."""
        dtype = self._v.dtype
        self._kv = [np.empty(group.histograms.shape, dtype) for group in self._groups]
        self._u = self._kv  # each takes the place of its K v
        self._images = np.empty_like(self._v)
        self._powers = np.empty_like(self._v)
        self._here = np.empty(self._v.shape[1:], dtype)  # p^order, or log p
        self._mean = self._here  # with what other ranks have
        self._average = bind_weighted_sum(self._weights, self._powers, self._here)
        self._bind()

    def _bind(self) -> None:
        """Products from v to K v, and from u to K^T u."""
        self._to_source = [
            group.kernel.bind(self._v[group.models], kv)
            for group, kv in zip(self._groups, self._kv, strict=True)
        ]
        self._to_target = [
            group.kernel.T.bind(u, self._images[group.models])
            for group, u in zip(self._groups, self._u, strict=True)
        ]

    def step(self, n_sweeps: int = 1, *, watch: bool) -> np.ndarray | None:
        for _ in range(n_sweeps - 1):
            self._sweep(watch=False)
        return self._sweep(watch=watch)

    def _sweep(self, *, watch: bool) -> np.ndarray | None:
        self._update_images()
        found = None
        if watch:
            before = self._images.copy() if self._starts_at_one else self._images * self._v
        self._update_mean()
        self._update_v()
        if watch:
            np.multiply(self._images, self._v, out=self._powers)
            found = residual(before, self._powers, self._p(), self._components)
            self._untrusted |= ~np.isfinite(found)  # logarithms know better
        if self._steps is not None:
            self._steps.stretch_v(self._v)
        self._guard()
        return found

    def _update_images(self) -> None:
        """Line u and the products around it: from v to K^T u."""
        for index, (group, kv, u) in enumerate(zip(self._groups, self._kv, self._u, strict=True)):
            if self._starts_at_one:  # K v is the sum of each row
                np.divide(group.histograms, group.kernel.row_sums, out=u)
            else:
                self._to_source[index]()  # K v: (models, rows, source)
                self._watch_sums(kv, self._floors[index])
                np.divide(group.histograms, kv, out=u)
            if self._exponent != 1:
                power(u, self._exponent, out=u)  # u: (models, rows, source)
            if self._steps is not None:
                self._steps.stretch_u(index, u)
            self._to_target[index]()  # K^T u: (models, rows, target)
            self._watch_sums(self._images[group.models], self._floors[index])

    def _watch_sums(self, sums: np.ndarray, floor: float) -> None:
        """Mark the rows with a sum that may have lost something to underflow."""
        if not np.minimum.reduce(sums, axis=None) >= floor:
            self._untrusted |= ~(sums >= floor).all(axis=(0, 2))

    def _update_mean(self) -> None:
        """The weighted sum of line p."""
        if self._means_logs:
            self._log(self._images, out=self._powers)  # (models, rows, target)
        else:
            power(self._images, self._order, out=self._powers)  # (models, rows, target)
        self._average()
        self._mean = self._exchange.sum(self._here)  # p^order, or log p: (rows, target)
        if self._means_logs and self._order != 0:
            self._leave_geometric_mean()

    def _leave_geometric_mean(self) -> None:
        """From the logarithm of the geometric mean g to that of the mean of a small order.

        That is log(sum w (image / g)^order) / order more. The sum is so close to 1 that only what
        it has above 1 keeps the digits that the division by the order brings to the front.
        """
        self._mean = self._mean.copy()
        self._powers -= self._mean
        self._powers *= self._scale
        np.expm1(self._powers, out=self._powers)
        self._average()
        self._mean += np.log1p(self._exchange.sum(self._here)) / self._scale

    def _update_v(self) -> None:
        """Line v."""
        self._starts_at_one = False
        if self._means_logs:
            np.divide(self._exp(self._mean), self._images, out=self._v)  # (models, rows, target)
            if self._exponent != 1:
                power(self._v, self._exponent, out=self._v)
            return
        # (p / image)^exponent = p^exponent * image^order / image: the exponents sum to 1.
        np.divide(self._powers, self._images, out=self._v)
        p = power(self._mean, self._exponent / self._order)  # p^exponent: (rows, target)
        np.multiply(self._v, p, out=self._v)  # (models, rows, target)

    def _p(self) -> np.ndarray:
        """Line p: (rows, target)."""
        if self._means_logs:
            return np.asarray(self._exp(self._mean))
        return power(self._mean, 1 / self._order)

    def consensus_after(self, n_sweeps: int) -> np.ndarray | None:
        """Line p after so many sweeps from v = 1, without a look; None if it is not trusted.

        The last v, which nobody asks for, is not computed.
        """
        self.restart()
        with np.errstate(all="ignore"):  # what leaves the safe range is not trusted
            for _ in range(n_sweeps - 1):
                self._sweep(watch=False)
            self._update_images()
            self._update_mean()
            p = self._p()
        return None if self._untrusted.any() or not np.isfinite(p).all() else p

    def _guard(self) -> None:
        """Mark the rows whose scalings left the limits; they are not believed from here on."""
        low, high = 1 / self._limit, self._limit
        largest = np.maximum.reduce(self._v, axis=None)
        if largest <= self._harmless and self._steps is None:
            return
        if not (largest <= high and np.minimum.reduce(self._v, axis=None) >= low):
            inside = (self._v >= low) & (self._v <= high)
            self._untrusted |= ~inside.all(axis=(0, 2))

    def relax(self, omega: np.ndarray) -> None:
        """From now on take each row's updates ``omega`` times as far."""
        longer = bool((omega != 1).any())
        self._steps = _LongerSteps.of(omega, self._v, self._u) if longer else None

    def untrusted(self) -> np.ndarray:
        """Rows whose scalings left the limits at some sweep."""
        return self._untrusted

    def read(self, rows: Any, *, keep_scalings: bool) -> Rows:
        """The state of ``rows``; no mass is out of reach where plain arithmetic is trusted."""
        log_v = np.log(self._v[:, rows]) if keep_scalings else None
        return Rows(self._p()[rows], log_v, None)

    def keep(self, rows: np.ndarray) -> None:
        """Go on with ``rows`` alone."""
        self._groups = [group.take(rows) for group in self._groups]
        self._weights = take_rows(self._weights, rows)
        self._v = np.ascontiguousarray(self._v[:, rows])
        self._untrusted = self._untrusted[rows]
        if self._steps is not None:
            self._steps = self._steps.take(rows)
        last_u = self._u
        self._allocate()
        for u, last in zip(self._u, last_u, strict=True):
            u[...] = last[:, rows]  # a longer step starts from it


def power(values: np.ndarray, exponent: float, out: np.ndarray | None = None) -> np.ndarray:
    """``values ** exponent``: of many numbers by logarithms, at half the cost of `numpy.power`."""
    if values.size < _FEW:
        return np.power(values, exponent, out=out)
    log, exp = log_and_exp(values.dtype)
    out = log(values, out=out)
    np.multiply(out, exponent, out=out)
    return exp(out, out=out)


def _harmless(weights: np.ndarray, mass: MassRule, limit: float) -> float:
    """A largest scaling that rules out too small ones without a look.

    Line v gives sum_l w_l v_l^(-epsilon / mass_penalty) = 1 (unbalanced), so that
    v_l >= w_l^(mass_penalty / epsilon), and sum_l w_l log v_l = 0 (balanced), so that
    v_l >= largest^(1 - 1 / w_l).
    """
    least = float(weights.min())
    if mass.order == 0:
        if least == 0:  # nothing is said of the v of a model that has no say
            return 0.0
        return limit if least >= 0.5 else limit ** (least / (1 - least))
    bounded = least > 0 and math.log(least) * mass.exponent / mass.order >= -math.log(limit)
    return limit if bounded else 0.0


@dataclass
class _LongerSteps:
    """Over-relaxation of u and v, in place: x <- old^(1 - omega) new^omega."""

    omega: np.ndarray  # (n_rows, 1)
    log_v: np.ndarray
    log_u: list[np.ndarray]  # one per group

    @staticmethod
    def of(omega: np.ndarray, v: np.ndarray, u: list[np.ndarray]) -> _LongerSteps:
        omega = omega.astype(v.dtype)[:, None]
        return _LongerSteps(omega, _finite_log2(v), [_finite_log2(values) for values in u])

    def stretch_u(self, index: int, u: np.ndarray) -> None:
        self._stretch(self.log_u[index], u)

    def stretch_v(self, v: np.ndarray) -> None:
        self._stretch(self.log_v, v)

    def _stretch(self, old: np.ndarray, values: np.ndarray) -> None:
        step = _finite_log2(values)
        step -= old
        step *= self.omega
        old += step
        np.exp2(old, out=values)

    def take(self, rows: np.ndarray) -> _LongerSteps:
        log_v, *log_u = (np.ascontiguousarray(x[:, rows]) for x in (self.log_v, *self.log_u))
        return _LongerSteps(self.omega[rows], log_v, log_u)


def _finite_log2(values: np.ndarray) -> np.ndarray:
    """log2 with a finite number for 0, so that 0 stays 0 when it is stretched."""
    return np.maximum(np.log2(values), -1e6, dtype=values.dtype)
