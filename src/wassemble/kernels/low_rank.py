"""Kernels that are the product of two thin non-negative factors."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from wassemble._arrays import Array, detached, log_of, namespace, without_gradient
from wassemble._checks import check_nonnegative, check_nonnegative_number, fail
from wassemble.kernels.base import Arrays, EntryRange, Kernel, Shape, keep_entries
from wassemble.kernels.dense import DenseKernel, check_matrix


class LowRankKernel(Kernel):
    """K = left right^T with non-negative factors, applied as two thin products.

    Parameters
    ----------
    left : array of shape (n_source, rank)
        Both factors are copied as by `DenseKernel`.
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

    storages: ClassVar = {
        "low rank": frozenset({"left", "right", "measured_error"}),
        "symmetric low rank": frozenset({"left", "measured_error"}),
    }
    keeps_entries = False

    def __init__(
        self, left: Array, right: Array | None = None, *, measured_error: float | None = None
    ) -> None:
        left_kernel = _read_factor(left, "left")
        right_kernel = left_kernel if right is None else _read_factor(right, "right")
        if left_kernel.shape[1] != right_kernel.shape[1]:
            fail(
                "both factors of a low-rank kernel must have the same number of columns;"
                f" got {left_kernel.shape[1]} and {right_kernel.shape[1]}."
            )
        if (left_kernel.tensor is None) != (right_kernel.tensor is None):
            fail(
                "both factors of a low-rank kernel must be of one array library;"
                " got a NumPy array and a torch tensor."
            )
        if right_kernel.dtype != left_kernel.dtype:
            dtype = namespace(left_kernel.to_dense()).result_type(
                left_kernel.to_dense(), right_kernel.to_dense()
            )
            left_kernel = left_kernel.convert(left_kernel.tensor, dtype)
            right_kernel = right_kernel.convert(right_kernel.tensor, dtype)
        if measured_error is not None:
            measured_error = check_nonnegative_number(measured_error, "measured_error")
        self._hold(left_kernel, right_kernel, measured_error)

    def _hold(self, left: DenseKernel, right: DenseKernel, measured_error: float | None) -> None:
        self._left = left
        self._right = right
        self.shape, self.dtype = (left.shape[0], right.shape[0]), left.dtype
        self.tensor = left.tensor if left.tensor is not None else right.tensor
        self.is_symmetric = left is right
        self.measured_error = measured_error

    @property
    def rank(self) -> int:
        """Number of columns of each factor."""
        return self._left.shape[1]

    @cached_property
    def entries(self) -> EntryRange:
        left, right = detached(self._left.to_dense()), detached(self._right.to_dense())
        with np.errstate(over="ignore"):  # infinity is a true bound
            smallest = float((left @ right.min(axis=0)).min())
            largest = float((left @ right.max(axis=0)).max())
        return EntryRange(smallest, largest, smallest == 0)

    @cached_property
    def T(self) -> LowRankKernel:
        transpose = LowRankKernel._trusted(self._right, self._left, self.measured_error)
        transpose.__dict__["T"] = self
        return transpose

    def apply(self, v: Array) -> Array:
        v = self._read_vectors(v, "v")
        return self._left.apply(self._right.T.apply(v))

    def bind(self, v: np.ndarray, out: np.ndarray) -> Callable[[], object]:
        thin = np.empty((*v.shape[:-1], self.rank), dtype=np.result_type(v, self.dtype))
        first, second = self._right.T.bind(v, thin), self._left.bind(thin, out)

        def multiply() -> None:
            first()
            second()

        return multiply

    def log_apply(self, log_v: Array) -> Array:
        log_v = self._read_vectors(log_v, "log_v")
        return self._left.log_apply(self._right.T.log_apply(log_v))

    def to_dense(self) -> Array:
        return self._left.to_dense() @ self._right.to_dense().T

    def factors(self) -> list[Kernel]:
        return [self._left, self._right.T]

    def _dense_rows(self, some: slice) -> np.ndarray:
        return detached(self._left.to_dense()[some] @ self._right.to_dense().T)

    def _stored_arrays(self) -> tuple[str, Arrays]:
        error = np.nan if self.measured_error is None else self.measured_error
        arrays = {"measured_error": np.array(error), "left": detached(self._left.to_dense())}
        if self.is_symmetric:
            return "symmetric low rank", arrays
        return "low rank", {**arrays, "right": detached(self._right.to_dense())}

    @classmethod
    def _from_stored(cls, storage: str, arrays: Arrays, shape: Shape, *, symmetric: bool) -> Kernel:
        error = arrays["measured_error"]
        if error.dtype.kind != "f" or error.shape != ():
            fail(f"`measured_error` must be a number; got {error!r}.")
        measured = None if np.isnan(error) else float(error)
        return cls(arrays["left"], arrays.get("right"), measured_error=measured)

    def _select(self, rows: np.ndarray, columns: np.ndarray) -> LowRankKernel:
        features = np.arange(self.rank)
        left = self._left._select(rows, features)
        is_symmetric = self._stays_symmetric(rows, columns)
        right = left if is_symmetric else self._right._select(columns, features)
        # Cut out of something larger, the measured error is no longer its own.
        return LowRankKernel._trusted(left, right, None)

    def _power(self, exponent: float) -> DenseKernel:
        return DenseKernel(self.to_dense(), symmetric=self.is_symmetric)._power(exponent)

    def embed(
        self, shape: Shape, rows: np.ndarray, columns: np.ndarray, ones: tuple[Array, Array]
    ) -> LowRankKernel:
        left = _embed_factor(self._left, shape[0], rows, ones[0])
        if self._stays_symmetric(rows, columns) and np.array_equal(*ones):
            return LowRankKernel(left)
        return LowRankKernel(left, _embed_factor(self._right, shape[1], columns, ones[1]))

    def convert(self, like: Array | None, dtype: Any) -> LowRankKernel:
        left = self._left.convert(like, dtype)
        right = left if self.is_symmetric else self._right.convert(like, dtype)
        if left.dtype != right.dtype:  # one factor does not fit: both stay wide
            wide = left.dtype if right.dtype == dtype else right.dtype
            left, right = self._left.convert(like, wide), self._right.convert(like, wide)
        if left is self._left and right is self._right:
            return self
        return LowRankKernel._trusted(left, right, self.measured_error)

    def scaled(self, log_u: Array, log_v: Array) -> LowRankKernel:
        log_u, log_v = self._read_scalings(log_u, log_v)
        # u may overflow where v underflows: share the scale of each column between both.
        shift = (_log_tops(self._right, log_v) - _log_tops(self._left, log_u)) / 2
        left, right = self._left.scaled(log_u, shift), self._right.scaled(log_v, -shift)
        return LowRankKernel._trusted(left, right, None)

    def inner(self, cost: Array) -> Array:
        return ((self._read_cost(cost) @ self._right.to_dense()) * self._left.to_dense()).sum()

    def links(self) -> sp.coo_array:
        left = self._left.links().astype(np.float32).tocsr()
        right = self._right.links().astype(np.float32).tocsr()
        return sp.coo_array(left @ right.T > 0)

    def squared_distance_to_identity(self) -> float:
        left, right = detached(self._left.to_dense()), detached(self._right.to_dense())
        left, right = left.astype(np.float64), right.astype(np.float64)
        square = float(((left.T @ left) * (right.T @ right)).sum())
        return max(0.0, square - 2 * float((left * right).sum()) + len(left))


def _read_factor(value: Any, name: str) -> DenseKernel:
    matrix = keep_entries(check_matrix(value, name, ("row", "column")))
    check_nonnegative(matrix, name, "row {}, column {}".format)
    return DenseKernel._trusted(matrix)


def _embed_factor(
    factor: DenseKernel, n_labels: int, places: np.ndarray, alone: np.ndarray
) -> np.ndarray:
    """The rows of the factor at ``places``, and one more column for each label ``alone``."""
    table = detached(factor.to_dense())
    wide = np.zeros((n_labels, table.shape[1] + len(alone)), dtype=table.dtype)
    wide[places, : table.shape[1]] = table
    wide[alone, table.shape[1] + np.arange(len(alone))] = 1
    return wide


def _log_tops(factor: DenseKernel, log_scaling: Array) -> Array:
    """Log of the largest scaled entry of each column, outside of any gradient; 0 if none."""
    xp = namespace(log_scaling)
    logs = log_of(factor.to_dense()) + log_scaling[:, None]
    tops = xp.max(without_gradient(logs), axis=0)
    return xp.where(xp.isfinite(tops), tops, 0.0)
