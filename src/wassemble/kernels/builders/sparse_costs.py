"""Kernels from costs of some pairs of labels only; other pairs are never joined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from wassemble._checks import fail
from wassemble.errors import option
from wassemble.kernels.builders.auto_epsilon import choose_epsilon
from wassemble.kernels.sparse import SparseKernel
from wassemble.labels import LabelSpace

__all__ = ["PairCosts"]


@dataclass(frozen=True, eq=False)
class PairCosts:
    """Costs of pairs of labels, each pair once: ``costs[k]`` from ``rows[k]`` to ``columns[k]``.

    A sparse matrix could not tell a cost of 0 from no cost.
    """

    rows: np.ndarray
    columns: np.ndarray
    costs: np.ndarray
    shape: tuple[int, int]

    def of_rows(self, places: np.ndarray) -> np.ndarray:
        """Costs of some source labels as a dense array, infinite where there is none."""
        number = np.full(self.shape[0], -1)
        number[places] = np.arange(len(places))
        used = number[self.rows] >= 0
        table = np.full((len(places), self.shape[1]), np.inf)
        table[number[self.rows[used]], self.columns[used]] = self.costs[used]
        return table

    def to_kernel(
        self, epsilon: Any, source: LabelSpace, target: LabelSpace, *, symmetric: bool
    ) -> tuple[SparseKernel, str]:
        """K = exp(-cost / epsilon), and the words that tell of the epsilon.

        The names are for errors. A symmetric kernel has the larger of both similarities.
        """
        value, words = choose_epsilon(epsilon, self.of_rows, self.shape[0])
        values = np.exp(-self.costs / value)
        if not values.all():
            k = int((values == 0).argmax())
            fail(
                f"every pair must have a similarity above 0 in float64; got"
                f" exp(-{self.costs[k]:.3g} / {value:g}) = 0 at source label"
                f" {source[self.rows[k]]!r}, target label {target[self.columns[k]]!r}.",
                hint=f"take a larger {option('epsilon')}, or leave out pairs that cost so much",
            )
        matrix = sp.csr_array((values, (self.rows, self.columns)), shape=self.shape)
        if symmetric:
            matrix = matrix.maximum(matrix.T)
        return SparseKernel(matrix, symmetric=symmetric), words
