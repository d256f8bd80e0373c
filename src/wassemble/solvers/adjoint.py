"""The way back through the sweeps: from gradients of the consensus to those of its inputs.

NumPy, on the numbers themselves: plain sweeps that keep all they compute are gone through from
the last to the first. Whoever wants a gradient in torch asks `wassemble.solvers.gradients`.

With G_x the gradient of the logarithm of x, each line of a sweep turns around:

    G_p = f sum_l G_v_l + p grad_p          line v, and what was asked of p
    G_a = w_l (v_l a_l / p) G_p - f G_v     line p (v_l a_l / p is 1 if balanced); a_l = K_l^T u_l
    G_u = u_l K_l (G_a / a_l)               line u
    G_v = v_l K_l^T (-f G_u / K_l v_l)      of the sweep before

What is pulled from line to line is G_v / -f, and what is summed for the histograms is G_u: that
spares two passes over the numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wassemble.solvers.components import Components
from wassemble.solvers.mass import MassRule
from wassemble.solvers.plain_sweep import PlainLimits, PlainSweep
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

    def of_rows(self, rows: slice | np.ndarray, dtype: Any) -> Gradients:
        """Room for some rows, in ``dtype``; what they share starts at 0."""

        def room(grad: np.ndarray | None) -> np.ndarray | None:
            return None if grad is None else np.zeros(grad.shape, dtype)

        return Gradients(
            [None if h is None else room(h[:, rows]) for h in self.histograms],
            [room(kernel) for kernel in self.kernels],
            None if self.weights is None else room(take_rows(self.weights, rows)),
            None if self.log_v is None else room(self.log_v[:, rows]),
        )

    def put_rows(self, rows: slice | np.ndarray, found: Gradients) -> None:
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
class Record:
    """What the sweeps of a tile computed, one after the other along the first axis.

    If they start at v = 1, that v and its K v, the sums of the kernel's rows, are not filled in.
    """

    v: np.ndarray  # (n_sweeps + 1, n_models, n_rows, n_target): before the first, after each
    images: np.ndarray  # (n_sweeps, n_models, n_rows, n_target)
    p: np.ndarray  # (n_sweeps, n_rows, n_target)
    kv: list[np.ndarray]  # one per group, (n_sweeps, models, n_rows, source)
    u: list[np.ndarray]  # one per group, (n_sweeps, models, n_rows, source)

    @staticmethod
    def of(tile: Tile, n_sweeps: int) -> Record:
        """Room for the sweeps of ``tile``, in the type of its histograms."""
        n_target, dtype = tile.groups[0].kernel.shape[1], tile.groups[0].histograms.dtype
        size = (tile.n_models, tile.n_rows, n_target)
        sources = [(n_sweeps, *group.histograms.shape) for group in tile.groups]
        return Record(
            np.empty((n_sweeps + 1, *size), dtype),
            np.empty((n_sweeps, *size), dtype),
            np.empty((n_sweeps, *size[1:]), dtype),
            [np.empty(each, dtype) for each in sources],
            [np.empty(each, dtype) for each in sources],
        )

    @staticmethod
    def of_arrays(arrays: Sequence[np.ndarray]) -> Record:
        """The record that is in `arrays`."""
        n_groups = (len(arrays) - 3) // 2
        v, images, p, *sources = arrays
        return Record(v, images, p, sources[:n_groups], sources[n_groups:])

    def arrays(self) -> list[np.ndarray]:
        """All that is kept."""
        return [self.v, self.images, self.p, *self.kv, *self.u]

    def take(self, rows: np.ndarray) -> Record:
        """What was kept of some rows, by mask."""
        return Record.of_arrays([np.compress(rows, each, axis=-2) for each in self.arrays()])


class RecordedSweep(PlainSweep):
    """Plain sweeps, as many as were announced, all of whose numbers are kept.

    They may go further than `PlainSweep` lets them, because all numbers are looked at.
    """

    def __init__(
        self, tile: Tile, mass: MassRule, components: Components | None, n_sweeps: int
    ) -> None:
        self.record = Record.of(tile, n_sweeps)
        self._n_done = 0
        super().__init__(tile, mass, components)
        self._least = PlainLimits.of(self._v.dtype).smallest_normal
        if not self._starts_at_one:
            self.record.v[0] = self._v

    def _sweep(self, *, watch: bool) -> np.ndarray | None:
        record, place = self.record, self._n_done
        self._v, self._images = record.v[place], record.images[place]
        self._kv = [kv[place] for kv in record.kv]
        self._u = [u[place] for u in record.u]
        self._bind()
        found = super()._sweep(watch=watch)
        record.p[place] = self._p()
        self._n_done += 1
        return found

    def _update_v(self) -> None:
        self._v = self.record.v[self._n_done + 1]
        super()._update_v()

    def _guard(self) -> None:
        """Distrust the rows with a number that is not normal; sums are looked at on the way.

        An infinite sum shows as a quotient of 0, or of two infinities.
        """
        self._watch_sums(self._v, self._least)
        if not np.maximum.reduce(self._v, axis=None) < np.inf:
            self._untrusted |= ~(self._v < np.inf).all(axis=(0, 2))
        for group, u in zip(self._groups, self._u, strict=True):
            if not np.minimum.reduce(u, axis=None) >= self._least:
                fine = (u >= self._least) | (group.histograms == 0)
                self._untrusted |= ~fine.all(axis=(0, 2))


class Adjoint:
    """The way back through the recorded sweeps of a tile."""

    def __init__(self, tile: Tile, mass: MassRule, record: Record) -> None:
        self._groups = tile.groups
        self._order, self._exponent = mass.order, mass.exponent
        self._dtype = tile.groups[0].histograms.dtype
        self._weights = tile.weights.astype(self._dtype)
        self._starts_at_one = tile.log_v is None
        self._record = record
        self._size = record.v.shape[1:]
        # What passes from line to line on the way back; products are bound to it once.
        self._grads = np.empty(self._size, self._dtype)  # of K^T u
        self._pulled = np.empty(self._size, self._dtype)  # of log v, over -exponent
        self._g_u = [np.empty(group.histograms.shape, self._dtype) for group in self._groups]
        pairs = list(zip(self._groups, self._g_u, strict=True))
        self._to_source = [g.kernel.bind(self._grads[g.models], g_u) for g, g_u in pairs]
        self._to_target = [g.kernel.T.bind(g_u, self._pulled[g.models]) for g, g_u in pairs]

    def unroll(
        self, grad_p: np.ndarray | None, grad_log_v: np.ndarray | None, into: Gradients
    ) -> None:
        """Add the gradients of a fixed number of sweeps to ``into``."""
        pulled = None
        if grad_log_v is not None:
            pulled = np.divide(grad_log_v, -self._exponent, dtype=self._dtype)
        for place in reversed(range(len(self._record.p))):
            goes_on = place > 0 or into.log_v is not None
            self._back(place, grad_p, pulled, into, goes_on=goes_on)
            grad_p, pulled = None, self._pulled
        if into.log_v is not None:
            into.log_v -= self._exponent * self._pulled
        self._end(into)

    def settle(
        self, grad_p: np.ndarray, into: Gradients, *, tolerance: float, max_sweeps: int
    ) -> None:
        """Add the gradients at a fixed point to ``into``; one sweep, from there, was recorded.

        Sweeps that stay where they are go back the same way again and again: what comes back
        is summed until it adds nothing, and goes to the inputs once.
        """
        nothing = Gradients.nothing(len(self._groups))
        pulled, total = self._pulled, np.zeros(self._size, self._dtype)
        self._back(0, grad_p, None, nothing)
        for _ in range(max_sweeps):
            total += pulled
            if (_sizes(pulled) <= tolerance * _sizes(total)).all():
                break
            self._back(0, None, pulled, nothing)
        self._back(0, grad_p, total, into, goes_on=False)
        self._end(into)

    def _back(
        self,
        place: int,
        grad_p: np.ndarray | None,
        pulled: np.ndarray | None,
        into: Gradients,
        *,
        goes_on: bool = True,
    ) -> None:
        """Through one sweep: what reaches the inputs is added, what reaches v is pulled.

        ``pulled`` is not kept. Gradients of histograms are those of their logarithms over the
        exponent until the `_end`.
        """
        self._back_to_images(place, grad_p, pulled, into)
        v = None if place == 0 and self._starts_at_one else self._record.v[place]
        for index in range(len(self._groups)):
            self._back_through_group(place, index, v, into, goes_on=goes_on)
        if goes_on and v is not None:
            self._pulled *= v

    def _back_to_images(
        self, place: int, grad_p: np.ndarray | None, pulled: np.ndarray | None, into: Gradients
    ) -> None:
        """Lines v and p: the gradient of K^T u."""
        p, images = self._record.p[place], self._record.images[place]
        g_p = np.zeros(p.shape, self._dtype) if grad_p is None else grad_p * p
        if pulled is not None:  # -exponent G_v, once it is scaled
            if self._exponent != 1:
                pulled *= self._exponent**2
            g_p -= np.add.reduce(pulled, axis=0)
        grads = self._grads
        if self._order == 0:
            if into.weights is not None:
                _add_over(into.weights, np.log(images) * g_p)
            np.multiply(self._weights, g_p, out=grads)
        else:
            np.multiply(images, self._record.v[place + 1], out=grads)
            grads *= np.divide(g_p, p, out=g_p)
            if into.weights is not None:
                _add_over(into.weights, grads / self._order)
            grads *= self._weights
        if pulled is not None:
            grads += pulled
        grads /= images

    def _back_through_group(
        self, place: int, index: int, v: np.ndarray | None, into: Gradients, *, goes_on: bool
    ) -> None:
        """Line u of models that share a kernel, to what is pulled; gradients of K."""
        group, g_u, u = self._groups[index], self._g_u[index], self._record.u[index][place]
        self._to_source[index]()
        g_u *= u
        histograms, kernel = into.histograms[index], into.kernels[index]
        if histograms is not None:
            histograms += g_u
        if not goes_on and kernel is None:
            return
        g_u /= group.kernel.row_sums if v is None else self._record.kv[index][place]
        if goes_on:
            self._to_target[index]()
        if kernel is not None:
            kernel += _outer(u, self._grads[group.models])
            # The gradient of K v is that of its logarithm, -exponent G_u, over K v.
            to_v = g_u.sum(axis=(0, 1))[:, None] if v is None else _outer(g_u, v[group.models])
            to_v *= self._exponent
            kernel -= to_v

    def _end(self, into: Gradients) -> None:
        """Gradients of histograms from those of their logarithms; 0 where they or weights are 0."""
        for group, grad in zip(self._groups, into.histograms, strict=True):
            if grad is not None:
                if self._exponent != 1:
                    np.multiply(grad, self._exponent, out=grad)
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
