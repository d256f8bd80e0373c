"""Algorithm 1 to a tolerance as the library had it at first: longer steps, in NumPy.

Over-relaxation of u and v, with an omega for each row that is learned from its residuals; rows
leave as they finish. What is faster today is measured against it.
"""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from wassemble.solvers.tiles import SWEPT_FLOAT64, rows_per_tile

# Sweeps over which a rate is measured, and windows without a change after each change.
_WINDOW = 8
_REST = 2
_SLOW = 0.6
_LARGEST = 1.97


def solve_by_longer_steps(
    histograms: np.ndarray, kernel: np.ndarray, tolerance: float
) -> np.ndarray:
    """The consensus of ``(n_models, n_samples, n_labels)`` of one kernel, on one thread."""
    n_models, n_samples, n_labels = histograms.shape
    n_rows = rows_per_tile(n_models, n_labels, SWEPT_FLOAT64)
    with threadpool_limits(1, user_api="blas"):
        tiles = [
            _solve_tile(histograms[:, start : start + n_rows], kernel, tolerance)
            for start in range(0, n_samples, n_rows)
        ]
    return np.concatenate(tiles)


def _solve_tile(histograms: np.ndarray, kernel: np.ndarray, tolerance: float) -> np.ndarray:
    found = np.empty(histograms.shape[1:])
    index, sweeps, n_sweeps = np.arange(len(found)), _Sweeps(histograms, kernel), 0
    while len(index):
        n_sweeps += 1
        watch = sweeps.confirms or n_sweeps <= 2 * _WINDOW or n_sweeps % _WINDOW == 0
        residual = sweeps.step(watch=watch)
        if residual is None:
            continue
        finished = sweeps.hold_back(residual <= tolerance)
        found[index[finished]] = sweeps.p[finished]
        sweeps.learn(n_sweeps, residual)
        if finished.any():
            index = index[~finished]
            sweeps.keep(~finished)
    return found


class _Sweeps:
    """Rows under way: u and v as logs of base 2 once steps are longer than 1."""

    def __init__(self, histograms: np.ndarray, kernel: np.ndarray) -> None:
        self.mu, self.kernel, self.transposed = histograms, kernel, kernel.T.copy()
        self.v = np.ones_like(histograms)
        self.log_u = self.log_v = None
        n_rows = histograms.shape[1]
        self.omega, self.last = np.ones(n_rows), np.full(n_rows, np.inf)
        self.rest = np.full(n_rows, _REST - 1)
        self.confirms = False
        self.p = np.empty(0)

    def step(self, *, watch: bool) -> np.ndarray | None:
        u = self.mu / (self.v @ self.transposed)
        u, self.log_u = self._stretched(u, self.log_u)
        image = u @ self.kernel
        self.p = np.exp2(np.log2(image).mean(axis=0))
        before, after = self.v * image, np.broadcast_to(self.p, image.shape)
        self.v, self.log_v = self._stretched(self.p / image, self.log_v)
        if not watch:
            return None
        before = before * (after.sum(axis=-1) / before.sum(axis=-1))[..., None]
        return np.abs(before - after).sum(axis=-1).max(axis=0) / self.p.sum(axis=-1)

    def _stretched(
        self, new: np.ndarray, old: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """``old^(1 - omega) new^omega``, where some omega is above 1."""
        if not (self.omega > 1).any():
            return new, None
        logs = np.log2(np.maximum(new, 1e-300))
        if old is not None:
            logs = old + self.omega[:, None] * (logs - old)
        return np.exp2(logs), logs

    def hold_back(self, finished: np.ndarray) -> np.ndarray:
        """Rows that finish; those on longer steps do one more sweep as it is."""
        held = finished & (self.omega > 1)
        self.confirms = bool(held.any())
        self.omega = np.where(held, 1.0, self.omega)
        return finished & ~held

    def learn(self, n_sweeps: int, residual: np.ndarray) -> None:
        if n_sweeps % _WINDOW:
            return
        with np.errstate(all="ignore"):
            rate = (residual / self.last) ** (1 / _WINDOW)
            plain = (rate + self.omega - 1) ** 2 / (rate * self.omega**2)
            best = np.minimum(2 / (1 + np.sqrt(np.maximum(1 - plain, 0))), _LARGEST)
        self.last = residual
        self.rest = self.rest - 1
        changed = (self.rest < 0) & (rate > _SLOW) & (rate < 1) & (best > self.omega + 0.01)
        self.omega = np.where(changed, best, self.omega)
        self.rest = np.where(changed, _REST, np.maximum(self.rest, 0))

    def keep(self, rows: np.ndarray) -> None:
        self.mu, self.v = self.mu[:, rows], self.v[:, rows]
        self.log_u, self.log_v = (
            None if logs is None else logs[:, rows] for logs in (self.log_u, self.log_v)
        )
        self.omega, self.last, self.rest = self.omega[rows], self.last[rows], self.rest[rows]
