"""Words between which mass may move, with the kernels and weights between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from wassemble.kernels import Kernel
from wassemble.kernels.bags import with_bags
from wassemble.kernels.base import connect

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
    n_source, n_target = kernel.shape
    rest = np.array([n_source]), np.array([n_target])
    shape = n_source + 1, n_target + 1
    return with_bags(kernel.embed(shape, np.arange(n_source), np.arange(n_target), rest))
