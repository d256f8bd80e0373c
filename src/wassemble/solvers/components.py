"""Which target labels the kernels join: mass never crosses from one component to another."""

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from wassemble._arrays import Array, convert_like, is_torch_array
from wassemble.kernels import Kernel
from wassemble.kernels.base import connect
from wassemble.solvers.exchange import ALONE, Exchange, agree_on_any


class Components:
    """Connected components of the target labels under a set of kernels, of all ranks.

    A balanced problem whose models put different mass on a component has no
    solution; Algorithm 1 then settles on the geometric mean of those masses (for
    K = I: of each label's mass). Convergence is judged inside components for this
    reason.
    """

    def __init__(self, kernels: Sequence[Kernel], exchange: Exchange = ALONE) -> None:
        self.n_components = 1
        has_zeros = any(kernel.entries.has_zeros for kernel in kernels)
        if agree_on_any(exchange, np.array([has_zeros]))[0]:
            alone = len(kernels) == 1
            self._labels = (
                kernels[0].target_components if alone else connect([k.links() for k in kernels])
            )
            if not exchange.is_alone:
                self._labels = connect([_links_of(each) for each in exchange.gather(self._labels)])
            self.n_components = int(self._labels.max()) + 1
            self._order = np.argsort(self._labels, kind="stable")
            self._starts = np.searchsorted(self._labels[self._order], np.arange(self.n_components))

    @property
    def labels(self) -> np.ndarray | None:
        """Number of the component of each label, from 0; None: there is one."""
        return None if self.n_components == 1 else self._labels

    def sums(self, values: Array) -> Array:
        """For each label the sum of ``values`` over its component (last axis), broadcastable."""
        if self.n_components == 1:
            return values.sum(axis=-1, keepdims=True)
        if is_torch_array(values):
            labels = convert_like(self._labels, values)
            totals = values.new_zeros((*values.shape[:-1], self.n_components))
            return totals.index_add(-1, labels, values)[..., labels]
        totals = np.add.reduceat(values[..., self._order], self._starts, axis=-1)
        return totals[..., self._labels]


def _links_of(labels: np.ndarray) -> sp.coo_array:
    """Components as a pattern of links: a row for each of them."""
    columns = np.arange(len(labels))
    return sp.coo_array((np.ones(len(labels)), (labels, columns)))
