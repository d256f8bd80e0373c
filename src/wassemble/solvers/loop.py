"""The loop around the sweeps: who has finished, and how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from wassemble.solvers.status import Status
from wassemble.solvers.sweeps import Rows, Sweep

__all__ = ["Ending", "Stopping", "run"]

# Sweeps that are all watched; later ones are watched in steps, so that watching stays cheap.
_N_WATCHED = 16
_WATCH_STEP = 8


@dataclass(frozen=True)
class Stopping:
    """When rows stop: at ``tolerance`` (None: never before) or after ``max_iterations``."""

    max_iterations: int
    tolerance: float | None

    def watches(self, sweep: int) -> bool:
        """Whether the residual is looked at after this sweep."""
        if sweep == self.max_iterations:
            return True
        return self.tolerance is not None and (sweep <= _N_WATCHED or sweep % _WATCH_STEP == 0)


@dataclass
class Ending:
    """Rows that finished together."""

    index: np.ndarray  # their places in the tile
    rows: Rows
    status: np.ndarray
    residual: np.ndarray
    n_iterations: int


def run(
    sweep: Sweep, n_rows: int, stopping: Stopping, finish: Callable[[Ending], None]
) -> np.ndarray:
    """Sweep until every row has finished; return the rows that need another arithmetic.

    ``finish`` receives rows as they finish; they leave the batch.
    """
    index = np.arange(n_rows)
    handed_over = []
    for n_iterations in range(1, stopping.max_iterations + 1):
        watch = stopping.watches(n_iterations)
        residual = sweep.step(watch=watch)
        if residual is None:
            continue
        untrusted = sweep.untrusted()
        finished = ~(residual > stopping.tolerance) if stopping.tolerance else ~(residual >= 0)
        if n_iterations == stopping.max_iterations:
            finished[:] = True
        finished &= ~untrusted
        if finished.any():
            rows = sweep.read(finished)
            status = _judge(residual[finished], rows, stopping)
            finish(Ending(index[finished], rows, status, residual[finished], n_iterations))
        handed_over.append(index[untrusted])
        going_on = ~(finished | untrusted)
        if not going_on.any():
            break
        if not going_on.all():
            sweep.keep(going_on)
            index = index[going_on]
    return np.concatenate(handed_over)


def _judge(residual: np.ndarray, rows: Rows, stopping: Stopping) -> np.ndarray:
    converged = residual <= stopping.tolerance if stopping.tolerance else np.False_
    status = np.where(converged, Status.CONVERGED, Status.MAX_ITERATIONS)
    status = np.where(rows.unreachable, Status.UNREACHABLE_MASS, status)
    return np.where(np.isfinite(residual), status, Status.DIVERGED).astype(np.int8)
