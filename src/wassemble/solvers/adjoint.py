"""The way back through the sweeps: from gradients of the consensus to those of its inputs.

NumPy, on the numbers themselves. Nothing is kept from the way there: the sweeps of a tile are
done again, recorded, and gone through from the last to the first. Whoever wants a gradient in
torch asks `wassemble.solvers.gradients`.

With G_x the gradient of the logarithm of x, each line of a sweep turns around:

    G_p = f sum_l G_v_l + p grad_p          line v, and what was asked of p
    G_a = w_l (v_l a_l / p) G_p - f G_v     line p (v_l a_l / p is 1 if balanced); a_l = K_l^T u_l
    G_u = u_l K_l (G_a / a_l)               line u
    G_v = v_l K_l^T (-f G_u / K_l v_l)      of the sweep before
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wassemble.solvers.mass import MassRule
from wassemble.solvers.plain_sweep import PlainLimits, power
from wassemble.solvers.power_means import log_and_exp, weighted_sum
from wassemble.solvers.tiles import Tile
from wassemble.solvers.weights import take_rows


@dataclass
class Gradients:
    """Gradients of the inputs of a tile; None: nobody asked."""

    histograms: list[np.ndarray | None]  # one per group
    kernels: list[np.ndarray | None]  # one per group
    weights: np.ndarray | None
    log_v: np.ndarray | None  # of the start

    @staticmethod
    def nothing(n_groups: int) -> Gradients:
        """Nobody asked for any."""
        return Gradients([None] * n_groups, [None] * n_groups, None, None)

    def of_rows(self, rows: np.ndarray, dtype: Any) -> Gradients:
        """Room for some rows, in ``dtype``; what they share starts at 0."""

        def room(grad: np.ndarray | None) -> np.ndarray | None:
            return None if grad is None else np.zeros(grad.shape, dtype)

        return Gradients(
            [None if h is None else room(h[:, rows]) for h in self.histograms],
            [room(kernel) for kernel in self.kernels],
            None if self.weights is None else room(take_rows(self.weights, rows)),
            None if self.log_v is None else room(self.log_v[:, rows]),
        )

    def put_rows(self, rows: np.ndarray, found: Gradients) -> None:
        """Write down what belongs to ``rows`` alone."""
        pairs = [*zip(self.histograms, found.histograms, strict=True), (self.log_v, found.log_v)]
        if self.weights is not None and self.weights.shape[1] > 1:
            pairs.append((self.weights, found.weights))
        for mine, other in pairs:
            if mine is not None:
                mine[:, rows] = other

    def add_shared(self, found: Gradients) -> None:
        """Add what all rows share."""
        pairs = [*zip(self.kernels, found.kernels, strict=True)]
        if self.weights is not None and self.weights.shape[1] == 1:
            pairs.append((self.weights, found.weights))
        for mine, other in pairs:
            if mine is not None and other is not None:
                np.add(mine, other, out=mine)


@dataclass
class _Sweep:
    """What one sweep computed."""

    v: np.ndarray | None  # before it; None: 1 everywhere
    kv: list[np.ndarray]  # one per group, (models, rows, source)
    u: list[np.ndarray]  # one per group, (models, rows, source)
    images: np.ndarray  # (n_models, n_rows, n_target)
    p: np.ndarray  # (n_rows, n_target)
    next_v: np.ndarray  # (n_models, n_rows, n_target)


class Adjoint:
    """The sweeps of a tile in NumPy, recorded, and the way back through them."""

    def __init__(self, tile: Tile, mass: MassRule, n_sweeps: int) -> None:
        self._groups = tile.groups
        self._order, self._exponent = mass.order, mass.exponent
        self._dtype = tile.groups[0].histograms.dtype
        self._weights = tile.weights.astype(self._dtype)
        self._size = (tile.n_models, tile.n_rows, tile.groups[0].kernel.shape[1])
        self._sweeps: list[_Sweep] = []
        #: Rows, by mask, of which nothing was lost to underflow or overflow.
        self.trusted = np.ones(tile.n_rows, dtype=bool)
        self._limits = PlainLimits.of(self._dtype)
        self._floors = [self._limits.floor(group.kernel) for group in tile.groups]
        v = None if tile.log_v is None else np.exp(tile.log_v).astype(self._dtype)
        while len(self._sweeps) < n_sweeps and 2 * self.trusted.sum() > tile.n_rows:
            self._sweeps.append(self._do(v))
            self._watch(self._sweeps[-1])
            v = self._sweeps[-1].next_v
        if len(self._sweeps) < n_sweeps:  # too few are left
            self.trusted[:] = False

    def _do(self, v: np.ndarray | None) -> _Sweep:
        images = np.empty(self._size, self._dtype)
        kvs, us = [], []
        for group in self._groups:
            u = np.empty(group.histograms.shape, self._dtype)
            kv = np.empty_like(u) if v is not None else group.kernel.row_sums
            if v is not None:
                group.kernel.bind(v[group.models], kv)()
            np.divide(group.histograms, kv, out=u)
            if self._exponent != 1:
                power(u, self._exponent, out=u)
            group.kernel.T.bind(u, images[group.models])()
            kvs.append(kv)
            us.append(u)
        p, next_v = self._mean(images)
        return _Sweep(v, kvs, us, images, p, next_v)

    def _mean(self, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lines p and v."""
        if self._order == 0:
            log, exp = log_and_exp(self._dtype)
            logs = log(images)
            p = exp(weighted_sum(self._weights, logs))
            return p, np.divide(p, images, out=logs)
        v = power(images, self._order)
        mean = weighted_sum(self._weights, v)  # p^order
        v /= images
        v *= power(mean, self._exponent / self._order)
        return power(mean, 1 / self._order), v

    def _watch(self, sweep: _Sweep) -> None:
        """Distrust the rows with a number that is not normal, or with a sum that lost something.

        An infinite sum shows as a quotient of 0.
        """
        least = self._limits.smallest_normal
        self._distrust(sweep.next_v, least)
        if not sweep.next_v.max() < np.inf:
            self.trusted &= (sweep.next_v < np.inf).all(axis=(0, 2))
        self._distrust(sweep.p[None], least)
        for group, kv, u, floor in zip(self._groups, sweep.kv, sweep.u, self._floors, strict=True):
            self._distrust(kv if kv.ndim == 3 else kv[None, None], floor)
            self._distrust(sweep.images[group.models], floor)
            if not u.min() >= least:
                self.trusted &= ((u >= least) | (group.histograms == 0)).all(axis=(0, 2))

    def _distrust(self, values: np.ndarray, least: float) -> None:
        if not values.min() >= least:
            self.trusted &= (values >= least).all(axis=(0, 2))

    def unroll(
        self, grad_p: np.ndarray | None, grad_log_v: np.ndarray | None, into: Gradients
    ) -> None:
        """Add the gradients of a fixed number of sweeps to ``into``."""
        g_v = None if grad_log_v is None else grad_log_v.astype(self._dtype)
        room = np.empty(self._size, self._dtype) if g_v is None else g_v
        for sweep in reversed(self._sweeps):
            ends_here = sweep is self._sweeps[0] and into.log_v is None
            self._back(sweep, grad_p, g_v, into, None if ends_here else room)
            grad_p, g_v = None, room
        if into.log_v is not None:
            into.log_v += room
        self._end(into)

    def settle(
        self, grad_p: np.ndarray, into: Gradients, *, tolerance: float, max_sweeps: int
    ) -> None:
        """Add the gradients at a fixed point to ``into``; one sweep, from there, was recorded.

        Sweeps that stay where they are go back the same way again and again: what comes back
        is summed until it adds nothing, and goes to the inputs once.
        """
        (sweep,) = self._sweeps
        nothing = Gradients.nothing(len(self._groups))
        g_v, total = np.empty(self._size, self._dtype), np.zeros(self._size, self._dtype)
        self._back(sweep, grad_p, None, nothing, g_v)
        for _ in range(max_sweeps):
            total += g_v
            if (_sizes(g_v) <= tolerance * _sizes(total)).all():
                break
            self._back(sweep, None, g_v, nothing, g_v)
        self._back(sweep, grad_p, total, into, None)
        self._end(into)

    def _back(
        self,
        sweep: _Sweep,
        grad_p: np.ndarray | None,
        g_v: np.ndarray | None,
        into: Gradients,
        before: np.ndarray | None,
    ) -> None:
        """Through one sweep: what reaches the inputs is added, what reaches v goes to ``before``.

        That may be the room of ``g_v``, which is not kept. Gradients of histograms are those of
        their logarithms until the `_end`.
        """
        grads = self._back_to_images(sweep, grad_p, g_v, into)
        for place, group in enumerate(self._groups):
            self._back_through_group(sweep, place, grads[group.models], into, before)
        if before is not None and sweep.v is not None:
            before *= sweep.v

    def _back_to_images(
        self, sweep: _Sweep, grad_p: np.ndarray | None, g_v: np.ndarray | None, into: Gradients
    ) -> np.ndarray:
        """Lines v and p: the gradient of K^T u."""
        g_p = np.zeros(sweep.p.shape, self._dtype) if grad_p is None else grad_p * sweep.p
        if g_v is not None:
            if self._exponent != 1:
                g_v *= self._exponent
            g_p += g_v.sum(axis=0)
        grads = self._back_through_mean(sweep, g_p, into)
        if g_v is not None:
            grads -= g_v
        grads /= sweep.images
        return grads

    def _back_through_mean(self, sweep: _Sweep, g_p: np.ndarray, into: Gradients) -> np.ndarray:
        """Line p: the gradients of the logarithms of K^T u."""
        if self._order == 0:
            if into.weights is not None:
                _add_over(into.weights, np.log(sweep.images) * g_p)
            return np.multiply(self._weights, g_p, out=np.empty(self._size, self._dtype))
        shares = sweep.images * sweep.next_v
        shares *= g_p / sweep.p
        if into.weights is not None:
            _add_over(into.weights, shares / self._order)
        shares *= self._weights
        return shares

    def _back_through_group(
        self,
        sweep: _Sweep,
        place: int,
        grads: np.ndarray,
        into: Gradients,
        before: np.ndarray | None,
    ) -> None:
        """Line u of models that share a kernel, to their part of ``before``; gradients of K."""
        group, u = self._groups[place], sweep.u[place]
        g_u = np.empty_like(u)
        group.kernel.bind(grads, g_u)()
        g_u *= u
        g_u *= -self._exponent
        histograms, kernel = into.histograms[place], into.kernels[place]
        if histograms is not None:
            histograms -= g_u
        if before is None and kernel is None:
            return
        g_u /= sweep.kv[place]  # the gradient of K v
        if before is not None:
            group.kernel.T.bind(g_u, before[group.models])()
        if kernel is not None:
            kernel += _outer(u, grads)
            v = sweep.v
            kernel += g_u.sum(axis=(0, 1))[:, None] if v is None else _outer(g_u, v[group.models])

    def _end(self, into: Gradients) -> None:
        """Gradients of histograms from those of their logarithms; 0 where they or weights are 0."""
        for group, grad in zip(self._groups, into.histograms, strict=True):
            if grad is not None:
                np.divide(grad, group.histograms, out=grad, where=group.histograms > 0)
        if into.weights is not None:
            into.weights[self._weights == 0] = 0


def _outer(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Sum over models and rows of left right^T."""
    return left.reshape(-1, left.shape[-1]).T @ right.reshape(-1, right.shape[-1])


def _add_over(total: np.ndarray, values: np.ndarray) -> None:
    """Add ``values`` to ``total``, summed over the axes along which it is the same."""
    axes = tuple(axis for axis in (1, 2) if total.shape[axis] == 1)
    total += values.sum(axis=axes, keepdims=True)


def _sizes(values: np.ndarray) -> np.ndarray:
    """Sum of the absolute values of each row."""
    return np.abs(values).sum(axis=(0, 2))
