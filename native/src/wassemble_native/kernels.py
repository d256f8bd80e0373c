"""Kernels as the library multiplies them: scaled by a power of two, laid out for its vectors."""

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from wassemble_native.library import n_lanes

# Below every exponent: entries were lost.
_LOST = -1e6
_LN2 = math.log(2)


class MatrixStruct(ctypes.Structure):
    """`Matrix` of products.h."""

    _fields_ = (
        ("n_in", ctypes.c_int64),
        ("n_out", ctypes.c_int64),
        ("panels", ctypes.c_void_p),
        ("entries", ctypes.c_void_p),
        ("inputs", ctypes.c_void_p),
        ("starts", ctypes.c_void_p),
        ("least", ctypes.c_double),
    )


class KernelStruct(ctypes.Structure):
    """`Kernel` of products.h."""

    _fields_ = (
        ("n_source", ctypes.c_int64),
        ("n_target", ctypes.c_int64),
        ("n_factors", ctypes.c_int64),
        ("has_zeros", ctypes.c_int64),
        ("to_source", MatrixStruct * 2),
        ("to_target", MatrixStruct * 2),
        ("sums", ctypes.c_void_p),
        ("top", ctypes.c_double),
        ("scale", ctypes.c_double),
        ("sure", ctypes.c_double),
        ("least_most", ctypes.c_double),
    )


@dataclass(frozen=True)
class _Scaled:
    """A factor times 2^shift, its largest entry near 2^top; what is too small is 0."""

    matrix: np.ndarray | sp.csr_array
    shift: int
    least: float
    has_zeros: bool


class PackedKernel:
    """A kernel, ready for the library.

    Parameters
    ----------
    factors : one or two matrices
        Dense or sparse, finite and non-negative; the kernel is their product.
    in_logs : sequence of bool
        Which of them (dense ones) are given as natural logarithms.
    dtype : float32 or float64
        In which numbers are multiplied.
    """

    def __init__(
        self, factors: Sequence[Any], dtype: Any, *, in_logs: Sequence[bool] = (False, False)
    ) -> None:
        self.dtype = np.dtype(dtype)
        if self.dtype not in (np.float32, np.float64) or len(factors) not in (1, 2):
            raise ValueError("a kernel has one or two factors, in float32 or float64")
        if len(factors) == 2 and factors[0].shape[1] != factors[1].shape[0]:
            raise ValueError("factors must fit each other")
        self.shape = (int(factors[0].shape[0]), int(factors[-1].shape[1]))
        self.arrays: list[np.ndarray] = []  # what the structure points to
        info = np.finfo(self.dtype)
        n_terms = max(max(factor.shape) for factor in factors)
        top = (info.maxexp - 3 - math.ceil(math.log2(n_terms))) // 2
        scaled = [
            _scale(factor, top, self.dtype, in_logs=logs)
            for factor, logs in zip(factors, in_logs, strict=False)
        ]
        # Each sum has lost less than what is 2^-digits of this; with a factor after it, so has
        # what comes between, if its largest number is not below `least_most`.
        sure = top + info.minexp + 2 + info.nmant + math.log2(n_terms)
        if len(scaled) == 2:
            sure += 17 + math.log2(n_terms)
        self.is_exact = all(factor.least > _LOST for factor in scaled)
        self.struct = KernelStruct(
            *self.shape,
            len(factors),
            any(factor.has_zeros for factor in scaled),
            (MatrixStruct * 2)(*(self._lay_out(f) for f in reversed(scaled))),
            (MatrixStruct * 2)(*(self._lay_out(f, transposed=True) for f in scaled)),
            self._sums(scaled[0], top) if len(scaled) == 1 else None,
            top,
            sum(factor.shift for factor in scaled),
            2.0**sure,
            2.0 ** (2 * top - 16),
        )

    def _keep(self, array: np.ndarray) -> int:
        """Address of an array that lives as long as this."""
        self.arrays.append(array)
        return array.ctypes.data

    def _lay_out(self, factor: _Scaled, *, transposed: bool = False) -> MatrixStruct:
        """The factor as it is applied to targets or, transposed, to sources."""
        matrix = factor.matrix.T if transposed else factor.matrix
        n_out, n_in = matrix.shape
        if isinstance(factor.matrix, np.ndarray):
            panels = self._keep(_panels(matrix, self.dtype))
            return MatrixStruct(n_in, n_out, panels, None, None, None, factor.least)
        csr = sp.csr_array(matrix)
        types = (self.dtype, np.dtype(np.int32), np.dtype(np.int64))
        # An array of length 0 has an address too, but the library takes null for dense.
        arrays = [
            np.append(array.astype(dtype), dtype.type(0))
            for array, dtype in zip((csr.data, csr.indices, csr.indptr), types, strict=True)
        ]
        last = self.arrays[-len(arrays) :]
        if len(last) == len(arrays) and all(map(np.array_equal, arrays, last)):
            arrays = last  # of a symmetric kernel one copy is enough, and half as much is read
        entries, inputs, starts = map(self._keep, arrays)
        return MatrixStruct(n_in, n_out, None, entries, inputs, starts, factor.least)

    def _sums(self, factor: _Scaled, top: int) -> int:
        """Sums over target labels, at the scale of a vector of 2^top."""
        sums = np.asarray(factor.matrix.sum(axis=1, dtype=np.float64)).reshape(-1)
        padded = np.zeros(_padded(len(sums), n_lanes(self.dtype)), self.dtype)
        padded[: len(sums)] = np.ldexp(sums, top)
        return self._keep(padded)


def _scale(factor: Any, top: int, dtype: np.dtype, *, in_logs: bool) -> _Scaled:
    """The factor times the power of two that brings its largest entry near 2^top.

    In its own type if that is ``dtype``, else in float64: kernels that serve once, such as those
    of the likeliest words, are not read more often than they must be.
    """
    values = np.asarray(factor.data if sp.issparse(factor) else factor)
    if in_logs or values.dtype != dtype:
        values = values.astype(np.float64)
    largest = float(values.max(initial=-np.inf))
    nothing = -np.inf if in_logs else 0
    has_zeros = sp.issparse(factor) or not values.min(initial=np.inf) > nothing
    positive = values > nothing if has_zeros else np.True_
    if not largest > nothing:
        shift, values = 0, np.zeros_like(values)
    elif in_logs:
        shift = top - math.floor(largest / _LN2)
        values = np.exp2(values / _LN2 + shift)
    else:
        shift = top - (math.frexp(largest)[1] - 1)
        values = values * 2.0 ** (shift // 2)  # the whole of it may be too large for a number
        values *= 2.0 ** (shift - shift // 2)
    values, least = _without_tiny(values, positive, dtype)
    if sp.issparse(factor):
        values = sp.csr_array((values, factor.indices, factor.indptr), shape=factor.shape)
    return _Scaled(values, shift, least, has_zeros)


def _without_tiny(
    values: np.ndarray, positive: np.ndarray | np.bool_, dtype: np.dtype
) -> tuple[np.ndarray, float]:
    """Numbers without those that are too small for ``dtype``, and the exponent of the smallest.

    ``positive`` says which were above 0 before they were scaled.
    """
    smallest = float(values.min(where=positive, initial=np.inf))
    if smallest == np.inf:
        return values, 0
    normal = float(np.finfo(dtype).smallest_normal)
    if smallest < normal:
        return np.where(values >= normal, values, 0), _LOST
    return values, math.frexp(smallest)[1] - 1


def _panels(matrix: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """``matrix``, (n_out, n_in), as (n_out / lanes, n_in, lanes), rounded up with zeros."""
    n_out, n_in = matrix.shape
    lanes = n_lanes(dtype)
    panels = np.zeros((_padded(n_out, lanes) // lanes, n_in, lanes), dtype)
    n_whole, rest = divmod(n_out, lanes)
    whole = matrix[: n_out - rest].reshape(n_whole, lanes, n_in)
    panels[:n_whole] = whole.transpose(0, 2, 1)
    if rest:
        panels[n_whole, :, :rest] = matrix[n_out - rest :].T
    return panels


def _padded(n: int, step: int) -> int:
    return -(-n // step) * step
