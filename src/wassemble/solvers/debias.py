"""The step that turns the entropic barycenter into the debiased one (Janati et al. 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from wassemble._arrays import Array, detached, log_quotient, namespace
from wassemble.kernels import Kernel

# Rates of convergence nearer to 1 than this cannot be told from 1.
_SLOWEST = 1e-8


class Correction(Protocol):
    """What happens to line p before it is used."""

    def correct(self, log_p: Array) -> tuple[Array, Any]:
        """Corrected log p, and the correction's own residual per row."""

    def take(self, rows: np.ndarray) -> Correction:
        """The correction for ``rows`` alone, by mask."""


class NoCorrection:
    """Algorithms 1 and 2 as they stand."""

    def correct(self, log_p: Array) -> tuple[Array, float]:
        return log_p, 0.0

    def take(self, rows: np.ndarray) -> NoCorrection:
        return self


@dataclass
class Debiasing:
    """p <- d * p and d <- sqrt(d * p / K d): Algorithm 1 of Janati et al. 2020.

    At the fixed point d * K d = p: the coupling of p with itself, whose entropic blur
    is taken out. For a large epsilon every kernel entry is nearly the same and p creeps
    towards the fixed point in steps far smaller than what is left; the residual is
    therefore the last step over one minus the rate at which steps shrink.
    """

    kernel: Kernel
    log_d: Array  # (n_rows, n_target)
    last_p: np.ndarray | None = None  # (n_rows, n_target)
    last_step: np.ndarray | None = None  # (n_rows,)

    def correct(self, log_p: Array) -> tuple[Array, np.ndarray]:
        """``log_p`` without the kernel's blur, and how much of p is still to come."""
        xp = namespace(log_p)
        log_p = log_p + self.log_d
        self.log_d = log_quotient(self.log_d + log_p, self.kernel.log_apply(self.log_d)) / 2
        return log_p, self._residual(detached(xp.exp(log_p)))

    def _residual(self, p: np.ndarray) -> np.ndarray:
        before = np.zeros_like(p) if self.last_p is None else self.last_p
        step = np.abs(p - before).sum(axis=-1)
        last = np.full_like(step, np.inf) if self.last_step is None else self.last_step
        self.last_p, self.last_step = p, step
        shrinks = 1 - np.divide(step, last, out=np.zeros_like(step), where=last > 0)
        total = p.sum(axis=-1)
        return np.divide(
            step, np.maximum(shrinks, _SLOWEST) * total, out=np.zeros_like(step), where=total > 0
        )

    def take(self, rows: np.ndarray) -> Debiasing:
        last_p = None if self.last_p is None else self.last_p[rows]
        last_step = None if self.last_step is None else self.last_step[rows]
        return Debiasing(self.kernel.take(rows), self.log_d[rows], last_p, last_step)
