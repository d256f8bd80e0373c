"""Sweeps whose products start in half precision, for devices that multiply it faster.

A product in bfloat16 is off by up to 0.4 percent, and so is what its sweeps settle on: their
own residual would flatter them. They only bring rows near; the sweeps that finish a row, and
its residual, are those of the full precision.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from wassemble._arrays import namespace
from wassemble.kernels import Kernel
from wassemble.solvers.components import Components
from wassemble.solvers.debias import NoCorrection
from wassemble.solvers.log_sweep import LogSweep
from wassemble.solvers.mass import MassRule
from wassemble.solvers.sweeps import Rows
from wassemble.solvers.tiles import Tile

# What bfloat16 resolves, relative to 1: a residual below it says nothing.
_RESOLVED = 2.0**-7
# A row that gets no nearer, by a tenth, in this many sweeps has settled.
_PATIENCE = 16
_NEARER = 0.9


class MixedSweep:
    """Log sweeps in half precision until they bring no row nearer, then in full precision.

    No row finishes in half precision, and at least one of ``max_sweeps`` sweeps is full.
    """

    hopeless = False

    def __init__(
        self,
        tile: Tile,
        mass: MassRule,
        components: Components | None,
        *,
        tolerance: float,
        max_sweeps: int,
    ) -> None:
        self.n_half_sweeps = 0
        self._kernels = [group.kernel for group in tile.groups]
        self._sweep = LogSweep(tile, mass, components, NoCorrection())
        halved = [_halved(kernel) for kernel in self._kernels]
        self._sweep.use(halved)
        self._most = max_sweeps - 1 if halved != self._kernels else 0
        self._is_half = self._most > 0
        self._unfinished = float(np.nextafter(tolerance, np.inf))
        self._goal = max(tolerance, _RESOLVED)
        self._best = np.full(tile.n_rows, np.inf)
        self._since = np.zeros(tile.n_rows)  # the sweep at which a row was last getting nearer

    def step(self, n_sweeps: int = 1, *, watch: bool) -> np.ndarray | None:
        for _ in range(n_sweeps - 1):
            self._one_step(watch=False)
        return self._one_step(watch=watch)

    def _one_step(self, *, watch: bool) -> np.ndarray | None:
        residual = self._sweep.step(watch=watch)
        if not self._is_half:
            return residual
        self.n_half_sweeps += 1
        settled = False
        if residual is not None:
            nearer = residual < _NEARER * self._best
            self._best = np.where(nearer, residual, self._best)
            self._since = np.where(nearer, self.n_half_sweeps, self._since)
            stuck = self.n_half_sweeps - self._since >= _PATIENCE
            settled = bool((stuck | ~(residual > self._goal)).all())
            residual = np.maximum(residual, self._unfinished)
        if settled or self.n_half_sweeps == self._most:
            self._is_half = False
            self._sweep.use(self._kernels)
        return residual

    def relax(self, omega: np.ndarray) -> None:
        """From now on take each row's updates ``omega`` times as far."""
        self._sweep.relax(omega)

    def untrusted(self) -> np.ndarray:
        """No rows."""
        return self._sweep.untrusted()

    def read(self, rows: Any, *, keep_scalings: bool) -> Rows:
        """The state of ``rows``."""
        found = self._sweep.read(rows, keep_scalings=keep_scalings)
        return replace(found, n_half_sweeps=self.n_half_sweeps)

    def keep(self, rows: np.ndarray) -> None:
        """Go on with ``rows`` alone."""
        self._sweep.keep(rows)


def _halved(kernel: Kernel) -> Kernel:
    """``kernel`` with its products in bfloat16; itself if it has none, or entries do not fit.

    bfloat16 has the range of float32, where float16 loses what is below 6e-8.
    """
    if kernel.tensor is None or kernel.is_diagonal:
        return kernel
    return kernel.convert(kernel.tensor, namespace(kernel.tensor).bfloat16)
