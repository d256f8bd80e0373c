"""Which target labels the kernels join: mass never crosses from one component to another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wassemble.kernels import Kernel
from wassemble.kernels.base import connect

__all__ = ["Components"]


class Components:
    """Connected components of the target labels under a set of kernels.

    A balanced problem whose models put different mass on a component has no
    solution; Algorithm 1 then settles on the geometric mean of those masses (for
    K = I: of each label's mass). Convergence is judged inside components for this
    reason.
    """

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        self.n_components = 1
        if any(kernel.entries.has_zeros for kernel in kernels):
            alone = len(kernels) == 1
            self._labels = (
                kernels[0].target_components if alone else connect([k.links() for k in kernels])
            )
            self.n_components = int(self._labels.max()) + 1
            self._order = np.argsort(self._labels, kind="stable")
            self._starts = np.searchsorted(self._labels[self._order], np.arange(self.n_components))

    def sums(self, values: np.ndarray) -> np.ndarray:
        """For each label the sum of ``values`` over its component (last axis), broadcastable."""
        if self.n_components == 1:
            return values.sum(axis=-1, keepdims=True)
        totals = np.add.reduceat(values[..., self._order], self._starts, axis=-1)
        return totals[..., self._labels]
