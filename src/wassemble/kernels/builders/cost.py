"""Kernels from costs."""

from __future__ import annotations

import math

import numpy as np

from wassemble._arrays import Array, detached, is_frame, is_torch_array
from wassemble._checks import check_positive_number, fail
from wassemble.errors import option
from wassemble.kernels.dense import DenseKernel, check_matrix
from wassemble.kernels.places import entry_at

__all__ = ["from_cost"]


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
    for wrong, must in (
        (np.isnan(values), "must not be nan"),
        (values < 0, "must not be negative"),
    ):
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            fail(
                f"`cost` {must}; got {values[i, j]:g} at {entry_at(i, j)}.",
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
