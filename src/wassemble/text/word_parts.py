"""Words between which mass may move, with the kernels and weights between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from wassemble.kernels import DenseKernel, Kernel, LowRankKernel, SparseKernel
from wassemble.kernels.bags import with_bags
from wassemble.kernels.base import connect
from wassemble.kernels.parts import factors, stored_entries

__all__ = ["WordPart"]


@dataclass(frozen=True)
class WordPart:
    """Words between which mass may move, and what joins them; it moves nowhere else."""

    models: list[int]  # those that have words here; what follows is in their order
    sources: list[np.ndarray]  # places of each model's words
    target: np.ndarray  # places of the consensus' words
    kernels: list[Kernel]
    weights: np.ndarray  # (n_models,) or (n_models, n_target)
    is_alone: bool  # nothing joins a word of the consensus to another one
    # Words of each model whose mass, but for that of ``sources``, is one more word at the end
    # of the kernels: all that do not take part.
    gathered: list[np.ndarray] | None = None

    @cached_property
    def n_components(self) -> int:
        """Into how many components the kernels divide the words."""
        return int(self._target_components.max()) + 1

    @cached_property
    def components(self) -> list[np.ndarray]:
        """The component that each model's words belong to, by number."""
        by_kernel = {}
        for kernel in self.kernels:
            if id(kernel) not in by_kernel:
                links = kernel.links()
                parts = np.zeros(kernel.shape[0], dtype=np.int64)
                parts[links.row] = self._target_components[links.col]
                by_kernel[id(kernel)] = parts
        return [by_kernel[id(kernel)] for kernel in self.kernels]

    @cached_property
    def members(self) -> list[sp.csr_array]:
        """1 where a model's word belongs to a component: sums over components as products."""
        by_part = {}
        for parts in self.components:
            if id(parts) not in by_part:
                entries = (np.ones(len(parts), np.float32), (np.arange(len(parts)), parts))
                shape = (len(parts), self.n_components)
                by_part[id(parts)] = sp.csr_array(entries, shape=shape)
        return [by_part[id(parts)] for parts in self.components]

    @cached_property
    def kernels_with_rest(self) -> list[Kernel]:
        """The kernels with one more word at the end, similar to itself alone."""
        wide = {id(kernel): _with_rest(kernel) for kernel in self.kernels}
        return [wide[id(kernel)] for kernel in self.kernels]

    @cached_property
    def _target_components(self) -> np.ndarray:
        distinct = {id(kernel): kernel for kernel in self.kernels}
        if not any(kernel.entries.has_zeros for kernel in distinct.values()):
            return np.zeros(self.kernels[0].shape[1], dtype=np.int64)
        return connect([kernel.links() for kernel in distinct.values()])


def _with_rest(kernel: Kernel) -> Kernel:
    stored = stored_entries(kernel)
    if stored is not None:
        return with_bags(SparseKernel(sp.block_diag([stored, np.ones((1, 1), kernel.dtype)])))
    if isinstance(kernel, LowRankKernel):
        return LowRankKernel(*(_with_corner(factor) for factor in factors(kernel)))
    return DenseKernel(_with_corner(np.asarray(kernel.to_dense())))


def _with_corner(table: np.ndarray) -> np.ndarray:
    """One more row and column, with a 1 where they meet."""
    wide = np.pad(table, ((0, 1), (0, 1)))
    wide[-1, -1] = 1
    return wide
