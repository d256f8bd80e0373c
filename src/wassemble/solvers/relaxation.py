"""Longer steps where sweeps converge slowly, chosen per row from its own residuals.

Algorithms 1 and 2 update two blocks in turn, u and v. Near the fixed point they shrink the
error by a rate per sweep; taking each update ``omega`` times as far (successive
over-relaxation) shrinks it by ``omega - 1`` at the best omega, 2 / (1 + sqrt(1 - rate)):
about the square root of the sweeps (Young 1971; for Sinkhorn, Lehmann et al. 2021). The
fixed point does not move; where there are several, longer steps may end at another one, and
nobody should ask for them. Rows that gain nothing, or that have not settled into a rate,
stay at omega 1.
"""

from __future__ import annotations

import numpy as np

# Sweeps over which a rate is measured, and windows without a change after each change: a
# new omega first stirs up errors that the old one had put to rest.
_WINDOW = 8
_REST = 2
# Rates below this are fast enough; omegas above this amplify rounding too much.
_SLOW = 0.6
_LARGEST = 1.97
# A row whose residual grows this often goes back to omega 1 for good.
_PATIENCE = 4


class Relaxation:
    """The omega of each row, learned from its residuals as it is swept; 1 if not ``active``."""

    def __init__(self, n_rows: int, *, active: bool = True) -> None:
        self._active = np.full(n_rows, active)
        self.omega = np.ones(n_rows)
        self._last = np.full(n_rows, np.inf)
        self._rest = np.full(n_rows, _REST - 1)
        self._failures = np.zeros(n_rows, dtype=np.int64)

    def hold_back(self, finished: np.ndarray) -> bool:
        """Take rows on longer steps out of ``finished``, back to omega 1; whether there were any.

        Their residual at omega 1 speaks of u and v alike.
        """
        held = finished & (self.omega > 1)
        if not held.any():
            return False
        finished &= ~held
        self.omega = np.where(held, 1.0, self.omega)
        self._rest = np.where(held, _REST, self._rest)
        return True

    def end(self, rows: np.ndarray) -> bool:
        """Bring rows back to omega 1 for good; return whether some omega changed."""
        self._active = self._active & ~rows
        changed = bool((self.omega[rows] > 1).any())
        self.omega = np.where(rows, 1.0, self.omega)
        return changed

    def update(self, n_sweeps: int, residual: np.ndarray) -> bool:
        """Learn from the residuals after a sweep; return whether some omega changed."""
        if not self._active.any() or n_sweeps % _WINDOW:
            return False
        with np.errstate(all="ignore"):  # residuals of 0 are about to leave
            rate = (residual / self._last) ** (1 / _WINDOW)
        self._last = residual.copy()
        self._rest -= 1
        ready = (self._rest < 0) & np.isfinite(rate) & self._active
        grew = ready & (rate >= 1) & (self.omega > 1)
        self._failures += grew
        omega = np.where(grew, 1.0, self._better(rate))
        hopeful = (rate > _SLOW) & (rate < 1) & (self._failures < _PATIENCE)
        changed = ready & (grew | hopeful) & (np.abs(omega - self.omega) > 0.01)
        # A rate of about omega - 1 is the best there is: a smaller omega would only wait.
        changed &= grew | (omega > self.omega)
        self.omega = np.where(changed, omega, self.omega)
        self._rest = np.where(changed, _REST, np.maximum(self._rest, 0))
        return bool(changed.any())

    def _better(self, rate: np.ndarray) -> np.ndarray:
        """Best omega for what a rate at the present omega says of the rate at omega 1."""
        with np.errstate(all="ignore"):
            plain = (rate + self.omega - 1) ** 2 / (rate * self.omega**2)
            best = 2 / (1 + np.sqrt(np.maximum(1 - plain, 0)))
        return np.minimum(np.where(np.isfinite(best), best, 1.0), _LARGEST)

    def keep(self, rows: np.ndarray) -> None:
        """Go on with ``rows`` alone, by mask."""
        self._active = self._active[rows]
        self.omega, self._last = self.omega[rows], self._last[rows]
        self._rest, self._failures = self._rest[rows], self._failures[rows]
