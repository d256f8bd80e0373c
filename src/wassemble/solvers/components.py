"""Which target labels the kernels join: mass never crosses from one component to another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from wassemble.kernels import Kernel

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
            n_target = kernels[0].shape[1]
            # Each label is a node: the target's first, then each kernel's source labels.
            links = sp.vstack([kernel.links() for kernel in kernels], format="csr")
            n_nodes = n_target + links.shape[0]
            corner = sp.csr_array((n_target, n_target))
            graph = sp.block_array(
                [[corner, None], [links, sp.csr_array((n_nodes - n_target,) * 2)]]
            )
            _, labels = connected_components(graph, directed=False)
            _, self._labels = np.unique(labels[:n_target], return_inverse=True)
            self.n_components = int(self._labels.max()) + 1
            self._order = np.argsort(self._labels, kind="stable")
            self._starts = np.searchsorted(self._labels[self._order], np.arange(self.n_components))

    def sums(self, values: np.ndarray) -> np.ndarray:
        """For each label the sum of ``values`` over its component (last axis), broadcastable."""
        if self.n_components == 1:
            return values.sum(axis=-1, keepdims=True)
        totals = np.add.reduceat(values[..., self._order], self._starts, axis=-1)
        return totals[..., self._labels]
