"""Kernels that are the product of two thin non-negative factors."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from wassemble._arrays import Array, detached, is_torch_array, namespace
from wassemble._checks import fail
from wassemble.kernels.base import EntryRange, Kernel
from wassemble.kernels.dense import DenseKernel

__all__ = ["LowRankKernel"]


class LowRankKernel(Kernel):
    """K = left right^T with non-negative factors, applied as two thin products.

    Parameters
    ----------
    left : array of shape (n_source, rank)
    right : array of shape (n_target, rank), optional
        ``left`` if not given: the kernel is then symmetric.
    measured_error : float, optional
        Relative Frobenius error against the kernel this one stands for, where the
        builder measured it.

    Examples
    --------
    >>> LowRankKernel([[1.0], [2.0]], [[3.0], [0.0], [1.0]]).to_dense()
    array([[3., 0., 1.],
           [6., 0., 2.]])
    """

    def __init__(
        self, left: Array, right: Array | None = None, *, measured_error: float | None = None
    ) -> None:
        try:
            left_kernel = DenseKernel(left)
            right_kernel = left_kernel if right is None else DenseKernel(right)
        except ValueError as error:
            words = str(error).replace("`kernel`", "each factor of a low-rank kernel", 1)
            words = words.replace("target label", "column").replace("source label", "row")
            fail(words)
        if left_kernel.shape[1] != right_kernel.shape[1]:
            fail(
                "both factors of a low-rank kernel must have the same number of columns;"
                f" got {left_kernel.shape[1]} and {right_kernel.shape[1]}."
            )
        self._hold(left_kernel, right_kernel, measured_error)

    @classmethod
    def _trusted(
        cls, left: DenseKernel, right: DenseKernel, measured_error: float | None
    ) -> LowRankKernel:
        kernel = cls.__new__(cls)
        kernel._hold(left, right, measured_error)
        return kernel

    def _hold(self, left: DenseKernel, right: DenseKernel, measured_error: float | None) -> None:
        self._left = left
        self._right = right
        self.is_symmetric = left is right
        self.measured_error = measured_error

    @property
    def shape(self) -> tuple[int, int]:
        return (self._left.shape[0], self._right.shape[0])

    @property
    def rank(self) -> int:
        """Number of columns of each factor."""
        return self._left.shape[1]

    @property
    def dtype(self) -> Any:
        return self._left.dtype

    @property
    def tensor(self) -> Array | None:
        return self._left.tensor if self._left.tensor is not None else self._right.tensor

    @cached_property
    def entries(self) -> EntryRange:
        left, right = detached(self._left.to_dense()), detached(self._right.to_dense())
        smallest = float((left @ right.min(axis=0)).min())
        largest = float((left @ right.max(axis=0)).max())
        return EntryRange(smallest, largest, smallest == 0)

    @cached_property
    def T(self) -> LowRankKernel:
        transpose = LowRankKernel._trusted(self._right, self._left, self.measured_error)
        transpose.__dict__["T"] = self
        return transpose

    def apply(self, v: Array, *, out: np.ndarray | None = None) -> Array:
        v = v if is_torch_array(v) else np.asarray(v)
        self._check_last_axis(v)
        return self._left.apply(self._right.T.apply(v), out=out)

    def log_apply(self, log_v: Array) -> Array:
        log_v = log_v if is_torch_array(log_v) else np.asarray(log_v)
        self._check_last_axis(log_v)
        return self._left.log_apply(self._right.T.log_apply(log_v))

    def to_dense(self) -> Array:
        return self._left.to_dense() @ self._right.to_dense().T

    def convert(self, like: Array | None, dtype: Any) -> LowRankKernel:
        left = self._left.convert(like, dtype)
        right = left if self.is_symmetric else self._right.convert(like, dtype)
        if left is self._left and right is self._right:
            return self
        return LowRankKernel._trusted(left, right, self.measured_error)

    def scaled(self, log_u: Array, log_v: Array) -> LowRankKernel:
        flat = namespace(log_u).zeros(self.rank, dtype=log_u.dtype)
        left, right = self._left.scaled(log_u, flat), self._right.scaled(log_v, flat)
        return LowRankKernel._trusted(left, right, None)

    def inner(self, cost: Array) -> Array:
        return ((cost @ self._right.to_dense()) * self._left.to_dense()).sum()

    def links(self) -> sp.coo_array:
        left = self._left.links().astype(np.float32).tocsr()
        right = self._right.links().astype(np.float32).tocsr()
        return sp.coo_array(left @ right.T)

    def squared_distance_to_identity(self) -> float:
        left, right = detached(self._left.to_dense()), detached(self._right.to_dense())
        left, right = left.astype(np.float64), right.astype(np.float64)
        square = float(((left.T @ left) * (right.T @ right)).sum())
        return max(0.0, square - 2 * float((left * right).sum()) + len(left))
