"""Kernels that store every entry."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, ClassVar, NoReturn

import numpy as np
import scipy.sparse as sp

from wassemble._arrays import (
    Array,
    convert_like,
    detached,
    is_torch_array,
    log_of,
    namespace,
    new_zeros,
    widen_half,
    widest_float,
    without_gradient,
)
from wassemble._checks import as_float_array, check_flag, check_nonnegative, fail
from wassemble.kernels.base import Arrays, EntryRange, Kernel, Shape, are_all, keep_entries
from wassemble.kernels.places import entry_at

# Elements of one block of the exact fallback; half a mebibyte of float64 stays in cache.
_BLOCK = 2**16
# Rows of a symmetric matrix that are cut out together.
_STRIP = 64
_SIDES = ("row", "column")


class DenseKernel(Kernel):
    """Kernel from a matrix of similarities.

    Parameters
    ----------
    matrix : array of shape (n_source, n_target)
        Finite and non-negative. NumPy or torch; a tensor that requires a gradient gets one.
        An array is copied if it has at most 4 million entries. A larger one, and a tensor, are
        kept as they are: they must not be changed any more.
    symmetric : bool
        Declares that the matrix equals its transpose (checked); the debiased
        barycenter needs it.

    Examples
    --------
    >>> kernel = DenseKernel([[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]])
    >>> kernel.apply_transpose([[0.8, 0.2]])
    array([[0.8, 0.5, 0.2]])
    """

    storages: ClassVar = {
        "dense": frozenset({"matrix"}),
        "dense in logs": frozenset({"log_matrix", "dtype"}),
    }

    def __init__(self, matrix: Array, *, symmetric: bool = False) -> None:
        symmetric = check_flag(symmetric, "symmetric")
        matrix = keep_entries(check_matrix(matrix, "kernel"))
        check_nonnegative(matrix, "kernel", entry_at)
        self._hold(matrix, symmetric=symmetric)
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
        log_matrix = keep_entries(check_matrix(log_matrix, "log kernel"))
        logs = detached(log_matrix)
        ceiling = float(np.log(np.finfo(logs.dtype).max))
        wrong = np.isnan(logs) | (logs > ceiling)
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            fail(
                f"`log kernel` must be a number below {ceiling:.4g}, the log of the largest"
                f" {logs.dtype}; got {logs[i, j]:g} at {entry_at(i, j)}."
            )
        if symmetric:
            _check_symmetric(log_matrix, "log kernel")
        return cls._trusted(namespace(log_matrix).exp(log_matrix), log_matrix, symmetric=symmetric)

    def _hold(
        self, matrix: Array, log_matrix: Array | None = None, *, symmetric: bool = False
    ) -> None:
        if not is_torch_array(matrix):
            matrix = matrix.view()
            matrix.flags.writeable = False
        self._matrix = matrix
        self._log_matrix = log_matrix
        self.shape, self.dtype = tuple(matrix.shape), matrix.dtype
        self.tensor = matrix if is_torch_array(matrix) else None
        self.is_symmetric = symmetric
        self.keeps_logs = log_matrix is not None
        self.keeps_entries = not self.keeps_logs

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

    def factors(self) -> list[Kernel]:
        return [self]

    def to_log_dense(self) -> Array:
        return log_of(self._matrix) if self._log_matrix is None else self._log_matrix

    def with_storage(self, table: Array) -> DenseKernel:
        """The kernel of other entries, or logarithms of entries, than it has, unchecked."""
        if self._log_matrix is None:
            return DenseKernel._trusted(table, symmetric=self.is_symmetric)
        xp = namespace(table)
        matrix = xp.astype(xp.exp(table), self.dtype, copy=False)
        return DenseKernel._trusted(matrix, table, symmetric=self.is_symmetric)

    def _stored_arrays(self) -> tuple[str, Arrays]:
        if self._log_matrix is None:
            return "dense", {"matrix": detached(self._matrix)}
        dtype = np.array(str(self.dtype).removeprefix("torch."))
        return "dense in logs", {"log_matrix": detached(self._log_matrix), "dtype": dtype}

    @classmethod
    def _from_stored(cls, storage: str, arrays: Arrays, shape: Shape, *, symmetric: bool) -> Kernel:
        if storage == "dense":
            _check_shape(arrays["matrix"], shape)
            return cls(arrays["matrix"], symmetric=symmetric)
        dtype = str(arrays["dtype"])
        if dtype not in ("float32", "float64"):
            fail(f"`dtype` must be float32 or float64; got {dtype!r}.")
        _check_shape(arrays["log_matrix"], shape)
        exact = cls.from_log(arrays["log_matrix"], symmetric=symmetric)
        return exact.convert(None, np.dtype(dtype))

    @classmethod
    def _from_entries(cls, entries: sp.csr_array, *, symmetric: bool) -> DenseKernel:
        return cls(entries.toarray(), symmetric=symmetric)

    def _select(self, rows: np.ndarray, columns: np.ndarray) -> DenseKernel:
        symmetric = self._stays_symmetric(rows, columns)
        cut = partial(_cut_symmetric if symmetric else _cut, rows=rows, columns=columns)
        log_matrix = None if self._log_matrix is None else cut(self._log_matrix)
        matrix = cut(self._matrix)
        return DenseKernel._trusted(matrix, log_matrix, symmetric=symmetric)

    def _power(self, exponent: float) -> DenseKernel:
        tiny = float(np.finfo(detached(self._matrix[:1]).dtype).smallest_normal)
        may_vanish = self.entries.largest > 0 and self.entries.smallest < tiny ** (1 / exponent)
        if self._log_matrix is None and not may_vanish:
            return DenseKernel(self._matrix**exponent, symmetric=self.is_symmetric)
        logs = namespace(self._matrix).astype(self.to_log_dense(), widest_float(self.tensor))
        made = DenseKernel.from_log(logs * exponent, symmetric=self.is_symmetric)
        return made.convert(self.tensor, self.dtype)

    def embed(
        self, shape: Shape, rows: np.ndarray, columns: np.ndarray, ones: tuple[Array, Array]
    ) -> DenseKernel:
        symmetric = self._stays_symmetric(rows, columns) and np.array_equal(*ones)

        def widen(table: np.ndarray, nothing: float, one: float) -> np.ndarray:
            wide = np.full(shape, nothing, dtype=table.dtype)
            wide[np.ix_(rows, columns)] = table
            wide[ones] = one
            return wide

        matrix = widen(detached(self._matrix), 0, 1)
        logs = None if self._log_matrix is None else widen(detached(self._log_matrix), -np.inf, 0)
        return DenseKernel._trusted(matrix, logs, symmetric=symmetric)

    def convert(self, like: Array | None, dtype: Any) -> DenseKernel:
        matrix = convert_like(self._matrix, like)
        xp = namespace(matrix)
        if self._log_matrix is not None and xp.finfo(dtype).eps < xp.finfo(matrix.dtype).eps:
            # Entries that had vanished are numbers again in the wider type.
            logs = convert_like(self._log_matrix, like, dtype)
            return DenseKernel._trusted(xp.exp(logs), logs, symmetric=self.is_symmetric)
        fits = self._log_matrix is not None or self.entries.fit(xp.finfo(dtype))
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
        return DenseKernel._trusted(xp.exp(log_u[:, None] + self.to_log_dense() + log_v[None, :]))

    def inner(self, cost: Array) -> Array:
        return (self._matrix * self._read_cost(cost)).sum()

    def links(self) -> sp.coo_array:
        if self._log_matrix is not None:
            return sp.coo_array(~np.isneginf(detached(self._log_matrix)))
        return sp.coo_array(detached(self._matrix) > 0)

    def squared_distance_to_identity(self) -> float:
        matrix = detached(self._matrix)
        return float(np.square(matrix - np.eye(len(matrix), dtype=matrix.dtype)).sum(dtype=float))


def check_matrix(
    matrix: Array, name: str, sides: tuple[str, str] = ("source label", "target label")
) -> Array:
    """``matrix`` as a floating array with two axes, neither of them empty."""
    matrix = as_float_array(matrix, name)
    check_axes(tuple(matrix.shape), name, sides)
    return widen_half(matrix)


def check_axes(
    shape: tuple[int, ...], name: str, sides: tuple[str, str] = ("source label", "target label")
) -> None:
    """Refuse the shape of a matrix that does not have two axes, neither of them empty."""
    if len(shape) != 2:
        fail(
            f"`{name}` must have two axes, {sides[0]}s by {sides[1]}s; got shape {shape}.",
            hint="a list of matrices gives each model its own kernel; one diagonal per sample is a"
            " `DiagonalKernel`",
        )
    if 0 in shape:
        fail(f"`{name}` must have at least one {sides[0]} and one {sides[1]}; got shape {shape}.")


def _cut(table: Array, rows: np.ndarray, columns: np.ndarray) -> Array:
    """Some rows and columns; each row in one piece, so that it can be cut again as fast."""
    all_rows, all_columns = are_all(rows, table.shape[0]), are_all(columns, table.shape[1])
    rows, columns = convert_like(rows, table), convert_like(columns, table)
    if all_columns:
        return table if all_rows else table[rows]
    return table[rows[:, None], columns]


def _cut_symmetric(table: Array, rows: np.ndarray, columns: np.ndarray) -> Array:
    """The same of a symmetric one: entries far apart in memory are read once for both halves."""
    if is_torch_array(table) or are_all(rows, table.shape[0]):
        return _cut(table, rows, columns)
    cut = np.empty((len(rows), len(rows)), dtype=table.dtype)
    for start in range(0, len(rows), _STRIP):
        stop = start + _STRIP
        strip = table[rows[start:stop, None], columns[start:]]
        cut[start:stop, start:] = strip
        cut[stop:, start:stop] = strip[:, _STRIP:].T
    return cut


def _check_shape(matrix: np.ndarray, shape: Shape) -> None:
    if matrix.shape != shape:
        fail(f"the entries of a kernel must have its shape, {shape}; got {matrix.shape}.")


def _check_symmetric(matrix: Array, name: str) -> None:
    values = detached(matrix)
    if values.shape[0] != values.shape[1]:
        fail(f"a symmetric `{name}` must be square; got shape {values.shape}.")
    finite = np.where(np.isfinite(values), values, 0)
    slack = 8 * np.finfo(values.dtype).eps * np.abs(finite).max()
    wrong = ~np.isclose(values, values.T, rtol=0, atol=slack)
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        refuse_asymmetry(values, i, j, name)


def refuse_asymmetry(matrix: Any, i: int, j: int, name: str) -> NoReturn:
    """Refuse a matrix whose entry (i, j) is not the one at (j, i)."""
    fail(
        f"a `{name}` declared symmetric must equal its transpose; got {matrix[i, j]:g} at"
        f" {entry_at(i, j, _SIDES)} and {matrix[j, i]:g} at {entry_at(j, i, _SIDES)}.",
        hint="(K + K.T) / 2 is symmetric",
    )


def log_sum_exp(logs: Array) -> Array:
    """log(sum(exp(logs))) over the last axis; -inf for a row of -inf."""
    xp = namespace(logs)
    top = _finite_top(logs)
    return log_of(xp.sum(xp.exp(logs - top), axis=-1)) + top[..., 0]


def log_product(
    logs: Array,  # (..., n_in)
    matrix: Array,  # (n_in, n_out)
    log_columns: Callable[[Array], Array],
    smallest: float = 0.0,
    largest: float = 1.0,
) -> Array:
    """log(exp(logs) @ matrix), exact wherever the exact value is representable.

    The max-shifted product does the work at the speed of a plain one. It is exact to
    rounding wherever its value is well above the smallest normal number: every term
    that underflowed is then too small to matter. The entries where it is not get a
    true log-sum-exp: ``log_columns`` gives the true logs of columns, ``(n, n_in)``, by their
    places. No true entry above 0 is below ``smallest``, which is 0 if entries may have
    underflowed, and none is above ``largest``.
    """
    xp = namespace(logs)
    flat = xp.reshape(logs, (-1, logs.shape[-1]))
    top = _finite_top(flat)
    info = xp.finfo(matrix.dtype)
    shifted = flat - top
    if info.eps < xp.finfo(flat.dtype).eps:  # what underflows in the narrower type need not here
        shifted = xp.astype(shifted, matrix.dtype)
    # An infinite image is not sure. Some libraries flag what lies beyond the end of small matrices
    # as invalid; a true nan would not be sure either.
    with np.errstate(over="ignore", invalid="ignore"):
        image = xp.astype(xp.exp(shifted), matrix.dtype, copy=False) @ matrix
    # A term that underflowed may have met the largest entry.
    floor = matrix.shape[0] * float(info.smallest_normal) / float(info.eps) * max(largest, 1.0)
    sure = (image >= floor) & (image < xp.inf)
    if smallest > 0:  # where no term can have underflowed, 0 is 0
        lowest = xp.min(xp.where(flat > -xp.inf, flat, xp.inf), axis=-1, keepdims=True)
        sure = sure | ((image == 0) & (lowest - top > math.log(floor / smallest)))
    all_sure = bool(xp.all(sure))
    # The image may be too small for the type of the logs; its log is not.
    log_image = log_of(image if all_sure else xp.where(sure, image, 1.0))
    log_image = xp.astype(log_image, logs.dtype, copy=False) + top
    if not all_sure:
        log_image = _mend(log_image, flat, xp.nonzero(~sure), log_columns)
    return xp.reshape(log_image, (*logs.shape[:-1], matrix.shape[1]))


def _mend(
    log_image: Array, logs: Array, pairs: tuple[Array, Array], log_columns: Callable[[Array], Array]
) -> Array:
    """``log_image`` with the (row, column) ``pairs`` computed by a true log-sum-exp."""
    if is_torch_array(log_image):
        log_image = log_image.clone()  # the gradient needs the old values untouched
    rows, columns = pairs
    step = max(1, _BLOCK // logs.shape[-1])
    for start in range(0, rows.shape[0], step):
        row, column = rows[start : start + step], columns[start : start + step]
        exact = log_sum_exp(logs[row] + log_columns(column))
        log_image[row, column] = namespace(exact).astype(exact, log_image.dtype, copy=False)
    return log_image


def _finite_top(logs: Array) -> Array:
    """Largest entry of each row, kept as an axis, outside of any gradient; 0 if none is finite."""
    xp = namespace(logs)
    if logs.shape[-1] == 0:
        return new_zeros((*logs.shape[:-1], 1), logs, logs.dtype)
    top = xp.max(without_gradient(logs), axis=-1, keepdims=True)
    return xp.where(xp.isfinite(top), top, 0.0)
