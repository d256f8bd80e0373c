"""The step that turns the entropic barycenter into the debiased one (Janati et al. 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from wassemble._arrays import Array, detached, log_quotient, namespace
from wassemble.kernels import Kernel

__all__ = ["Correction", "Debiasing", "NoCorrection"]


class Correction(Protocol):
    """What happens to line p before it is used."""

    def correct(self, log_p: Array) -> tuple[Array, Any]:
        """Corrected log p, and the correction's own residual per row."""

    def take(self, rows: np.ndarray) -> Correction:
        """The correction for ``rows`` alone, by mask."""


class NoCorrection:
    """Algorithms 1 and 2 as they stand."""

    def correct(self, log_p: Array) -> tuple[Array, float]:
        """``log_p`` itself."""
        return log_p, 0.0

    def take(self, rows: np.ndarray) -> NoCorrection:
        """Itself."""
        return self


@dataclass
class Debiasing:
    """p <- d * p and d <- sqrt(d * p / K d): Algorithm 1 of Janati et al. 2020.

    At the fixed point d * K d = p: the coupling of p with itself, whose entropic blur
    is taken out.
    """

    kernel: Kernel
    log_d: Array  # (n_rows, n_target)

    def correct(self, log_p: Array) -> tuple[Array, np.ndarray]:
        """``log_p`` without the kernel's blur, and how far d is from its fixed point."""
        xp = namespace(log_p)
        log_p = log_p + self.log_d
        log_kd = self.kernel.log_apply(self.log_d)
        p, own = detached(xp.exp(log_p)), detached(xp.exp(self.log_d + log_kd))
        self.log_d = log_quotient(self.log_d + log_p, log_kd) / 2
        total = p.sum(axis=-1)
        change = np.abs(own - p).sum(axis=-1)
        return log_p, np.divide(change, total, out=np.zeros_like(total), where=total > 0)

    def take(self, rows: np.ndarray) -> Debiasing:
        """The correction for ``rows`` alone."""
        return Debiasing(self.kernel, self.log_d[rows])
