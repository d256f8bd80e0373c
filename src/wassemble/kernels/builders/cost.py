"""Kernels from costs: of all pairs of labels, or of some pairs, others being never joined."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from wassemble._arrays import Array, detached, is_frame, is_torch_array
from wassemble._checks import check_nonnegative, check_positive_number, fail, option
from wassemble.kernels.builders.auto_epsilon import choose_epsilon
from wassemble.kernels.dense import DenseKernel, check_matrix
from wassemble.kernels.places import entry_at
from wassemble.kernels.sparse import SparseKernel
from wassemble.labels import LabelSpace


def from_cost(cost: Array, epsilon: float, *, symmetric: bool = False) -> DenseKernel:
    """K = exp(-cost / epsilon), kept in logarithms where it would underflow.

    Parameters
    ----------
    cost : array of shape (n_source, n_target)
        Dissimilarities, at least 0; infinity for pairs that must never be joined.
    epsilon : float
        Entropic regularisation, above 0: the larger, the further mass travels.
    symmetric : bool
        Declares that the cost equals its transpose (checked).

    Examples
    --------
    >>> from_cost([[0.0, 1.0], [1.0, 0.0]], epsilon=1.0).to_dense().round(3)
    array([[1.   , 0.368],
           [0.368, 1.   ]])
    """
    epsilon = check_positive_number(epsilon, "epsilon")
    if is_frame(cost):
        fail(
            "`cost` must be an array, for the kernel will have no names; got a data frame.",
            hint="`kernels.from_cost_table` keeps names; `.to_numpy()` drops them",
        )
    cost = check_matrix(cost, "cost")
    values = detached(cost)
    check_nonnegative(
        values,
        "cost",
        entry_at,
        infinite=True,
        hint="a cost is a dissimilarity; similarities make a `DenseKernel` as they are",
    )
    largest = float(values.max(initial=0.0, where=np.isfinite(values)))
    if math.isinf(largest / epsilon):
        fail(
            f"`cost` / {option('epsilon')} must be finite in float64 where the cost is;"
            f" got {largest:g} / {epsilon:g}."
        )
    if is_torch_array(cost):
        return DenseKernel.from_log(-cost.double() / epsilon, symmetric=symmetric).convert(
            cost, cost.dtype
        )
    info = np.finfo(cost.dtype)
    tiny = float(info.smallest_normal)
    if tiny < epsilon < float(info.max) and math.exp(-largest / epsilon) > tiny:
        return DenseKernel(np.exp(cost / -epsilon), symmetric=symmetric)
    # float64 even for float32 costs: -1e4 has an absolute error of 5e-4 in float32.
    exact = DenseKernel.from_log(cost.astype(np.float64) / -epsilon, symmetric=symmetric)
    return exact.convert(None, cost.dtype)


def local_bandwidths(cost: np.ndarray, neighbor: int) -> np.ndarray:
    """Each row's cost of its neighbour of this number, ``(n_source,)``.

    What costs nothing is the label itself or its double, no neighbour. A label with fewer
    neighbours has the cost of the last of them, one without any 1.

    Examples
    --------
    >>> local_bandwidths(np.array([[0.0, 3.0, 1.0], [3.0, 0.0, 2.0], [0.0, 0.0, 0.0]]), 2)
    array([3., 3., 1.])
    """
    apart = np.where(cost > 0, cost, np.inf)
    nearest = np.partition(apart, min(neighbor, cost.shape[1]) - 1, axis=1)[:, :neighbor]
    furthest = np.where(np.isfinite(nearest), nearest, 0).max(axis=1)
    return np.where(furthest > 0, furthest, 1).astype(cost.dtype)


@dataclass(frozen=True, eq=False)
class PairCosts:
    """Costs of pairs of labels, each pair once: ``costs[k]`` from ``rows[k]`` to ``columns[k]``.

    A sparse matrix could not tell a cost of 0 from no cost.
    """

    rows: np.ndarray
    columns: np.ndarray
    costs: np.ndarray
    shape: tuple[int, int]

    @classmethod
    def join(
        cls, blocks: Iterable[tuple[int, np.ndarray, np.ndarray]], shape: tuple[int, int]
    ) -> PairCosts:
        """The costs of some source labels at a time: the first's place, costs, which are kept."""
        pieces = []
        for start, block, kept in blocks:
            rows, columns = np.nonzero(kept)
            pieces.append((rows + start, columns, block[rows, columns]))
        rows, columns, costs = (np.concatenate(part) for part in zip(*pieces, strict=True))
        return cls(rows, columns, costs, shape)

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
