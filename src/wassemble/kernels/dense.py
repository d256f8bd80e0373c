"""Kernels that store every entry."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from wassemble._arrays import (
    Array,
    convert_like,
    detached,
    is_torch_array,
    log_of,
    namespace,
    widen_half,
    widest_float,
    without_gradient,
)
from wassemble._checks import as_float_array, check_flag, check_nonnegative, fail
from wassemble.kernels.base import EntryRange, Kernel
from wassemble.kernels.log_products import log_product

__all__ = ["DenseKernel"]


class DenseKernel(Kernel):
    """Kernel from a matrix of similarities.

    Parameters
    ----------
    matrix : array of shape (n_source, n_target)
        Finite and non-negative. NumPy or torch; a tensor that requires a gradient gets one.
    symmetric : bool
        Declares that the matrix equals its transpose (checked); the debiased
        barycenter needs it.

    Examples
    --------
    >>> kernel = DenseKernel([[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]])
    >>> kernel.apply_transpose([[0.8, 0.2]])
    array([[0.8, 0.5, 0.2]])
    """

    def __init__(self, matrix: Array, *, symmetric: bool = False) -> None:
        symmetric = check_flag(symmetric, "symmetric")
        matrix = check_matrix(matrix, "kernel")
        check_nonnegative(matrix, "kernel", "source label {}, target label {}".format)
        self._hold(matrix, None, symmetric=symmetric)
        if symmetric:
            _check_symmetric(matrix, "kernel")

    @classmethod
    def from_log(cls, log_matrix: Array, *, symmetric: bool = False) -> DenseKernel:
        """Kernel from log similarities (-inf for none), exact where exp would underflow.

        Examples
        --------
        >>> DenseKernel.from_log([[0.0, -2000.0]]).log_apply([-1.0, 1999.5]).round(3)
        array([-0.026])
        """
        symmetric = check_flag(symmetric, "symmetric")
        log_matrix = check_matrix(log_matrix, "log kernel")
        logs = detached(log_matrix)
        ceiling = float(np.log(np.finfo(logs.dtype).max))
        wrong = np.isnan(logs) | (logs > ceiling)
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            fail(
                f"`log kernel` must be a number below {ceiling:.4g}, the log of the largest"
                f" {logs.dtype}; got {logs[i, j]:g} at source label {i}, target label {j}."
            )
        if symmetric:
            _check_symmetric(log_matrix, "log kernel")
        return cls._trusted(namespace(log_matrix).exp(log_matrix), log_matrix, symmetric=symmetric)

    @classmethod
    def _trusted(
        cls, matrix: Array, log_matrix: Array | None = None, *, symmetric: bool = False
    ) -> DenseKernel:
        kernel = cls.__new__(cls)
        kernel._hold(matrix, log_matrix, symmetric=symmetric)
        return kernel

    def _hold(self, matrix: Array, log_matrix: Array | None, *, symmetric: bool) -> None:
        if not is_torch_array(matrix):
            matrix = matrix.view()
            matrix.flags.writeable = False
        self._matrix = matrix
        self._log_matrix = log_matrix
        self.is_symmetric = symmetric

    @property
    def shape(self) -> tuple[int, int]:
        return tuple(self._matrix.shape)

    @property
    def dtype(self) -> Any:
        return self._matrix.dtype

    @property
    def tensor(self) -> Array | None:
        return self._matrix if is_torch_array(self._matrix) else None

    @cached_property
    def entries(self) -> EntryRange:
        matrix = without_gradient(self._matrix)
        smallest, largest = float(matrix.min()), float(matrix.max())
        if self._log_matrix is not None:
            return EntryRange(smallest, largest, bool((self._log_matrix == -np.inf).any()))
        if smallest == 0:
            positive = matrix[matrix > 0]
            smallest = float(positive.min()) if len(positive) else largest
            return EntryRange(smallest, largest, True)
        return EntryRange(smallest, largest, False)

    @cached_property
    def T(self) -> DenseKernel:
        log_matrix = None if self._log_matrix is None else self._log_matrix.T
        transpose = DenseKernel._trusted(self._matrix.T, log_matrix, symmetric=self.is_symmetric)
        transpose.__dict__["T"] = self
        return transpose

    def apply(self, v: Array) -> Array:
        v = self._read_vectors(v, "v")
        if is_torch_array(v):
            xp = namespace(v)
            dtype = xp.result_type(v, self._matrix)
            return xp.astype(v, dtype, copy=False) @ xp.astype(self._matrix, dtype, copy=False).T
        # One product for all leading axes: a batched matmul would call BLAS once per model.
        rows = v.reshape(-1, v.shape[-1])
        return (rows @ self._matrix.T).reshape(*v.shape[:-1], self.shape[0])

    def bind(self, v: np.ndarray, out: np.ndarray) -> Callable[[], object]:
        rows, image = v.reshape(-1, self.shape[1]), out.reshape(-1, self.shape[0])
        if rows.dtype == self._matrix.dtype == image.dtype:  # `dot` casts nothing and starts sooner
            return partial(np.dot, rows, self._matrix.T, image)
        return partial(np.matmul, rows, self._matrix.T, out=image)

    def log_apply(self, log_v: Array) -> Array:
        log_v = self._read_vectors(log_v, "log_v")
        entries = self.entries
        smallest = entries.smallest if entries.has_zeros and self._log_matrix is None else 0.0
        return log_product(log_v, self._matrix.T, self._log_rows, smallest, entries.largest)

    def _log_rows(self, index: Array) -> Array:
        if self._log_matrix is not None:
            return self._log_matrix[index]
        return log_of(self._matrix[index])

    def to_dense(self) -> Array:
        return self._matrix

    def convert(self, like: Array | None, dtype: Any) -> DenseKernel:
        matrix = convert_like(self._matrix, like)
        fits = self._log_matrix is not None or self.entries.fit(namespace(matrix).finfo(dtype))
        matrix = convert_like(matrix, like, dtype) if fits else matrix
        if matrix is self._matrix:
            return self
        log_matrix = self._log_matrix
        if not fits and widest_float(like) == dtype:  # entries vanish, their logs do not
            log_matrix = log_of(self._matrix)
        if log_matrix is not None:  # logs keep their precision: they are large where K is small
            log_matrix = convert_like(log_matrix, like)
        return DenseKernel._trusted(matrix, log_matrix, symmetric=self.is_symmetric)

    def scaled(self, log_u: Array, log_v: Array) -> DenseKernel:
        log_u, log_v = self._read_scalings(log_u, log_v)
        xp = namespace(log_u)
        logs = self._log_matrix if self._log_matrix is not None else log_of(self._matrix)
        return DenseKernel._trusted(xp.exp(log_u[:, None] + logs + log_v[None, :]))

    def restrict(self, source: np.ndarray) -> DenseKernel:
        log_matrix = None if self._log_matrix is None else self._log_matrix[source]
        return DenseKernel._trusted(self._matrix[source], log_matrix)

    def inner(self, cost: Array) -> Array:
        return (self._matrix * self._read_cost(cost)).sum()

    def links(self) -> sp.coo_array:
        if self._log_matrix is not None:
            return sp.coo_array(~np.isneginf(detached(self._log_matrix)))
        return sp.coo_array(detached(self._matrix) > 0)

    def squared_distance_to_identity(self) -> float:
        matrix = detached(self._matrix)
        return float(np.square(matrix - np.eye(len(matrix), dtype=matrix.dtype)).sum(dtype=float))


def check_matrix(matrix: Array, name: str) -> Array:
    """``matrix`` as a floating array with two axes, neither of them empty."""
    matrix = as_float_array(matrix, name)
    if matrix.ndim != 2:
        fail(
            f"`{name}` must have two axes, source labels by target labels;"
            f" got shape {tuple(matrix.shape)}.",
            hint="a list of matrices gives each model its own kernel; one diagonal per sample is a"
            " `DiagonalKernel`",
        )
    if 0 in matrix.shape:
        fail(
            f"`{name}` must have at least one source and one target label;"
            f" got shape {tuple(matrix.shape)}."
        )
    return widen_half(matrix)


def _check_symmetric(matrix: Array, name: str) -> None:
    values = detached(matrix)
    if values.shape[0] != values.shape[1]:
        fail(f"a symmetric `{name}` must be square; got shape {values.shape}.")
    finite = np.where(np.isfinite(values), values, 0)
    slack = 8 * np.finfo(values.dtype).eps * np.abs(finite).max()
    wrong = ~np.isclose(values, values.T, rtol=0, atol=slack)
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        fail(
            f"a `{name}` declared symmetric must equal its transpose; got {values[i, j]:g} at"
            f" row {i}, column {j} and {values[j, i]:g} at row {j}, column {i}.",
            hint="(K + K.T) / 2 is symmetric",
        )
