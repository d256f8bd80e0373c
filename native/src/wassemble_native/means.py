"""Weighted power means in one pass over their numbers."""

import ctypes
from functools import lru_cache

import numpy as np

from wassemble_native.library import function

# Of `Powers` in means.h: terms of its polynomial, length and largest exponent of its table.
_N_TERMS = 9
_N_POWERS = 32
_HIGHEST = 1
# Bias of the exponent of a float32.
_BIAS = 127


class MeanStruct(ctypes.Structure):
    """`Mean` of means.h."""

    _fields_ = (
        ("n_models", ctypes.c_int64),
        ("n_rows", ctypes.c_int64),
        ("n_labels", ctypes.c_int64),
        ("values", ctypes.c_void_p),
        ("model_step", ctypes.c_int64),
        ("weights", ctypes.c_void_p),
        ("weight_steps", ctypes.c_int64 * 3),
        ("order", ctypes.c_double),
        ("exponent", ctypes.c_double),
        ("near_one", ctypes.c_void_p),
        ("of_two", ctypes.c_void_p),
        ("means", ctypes.c_void_p),
    )


def take_means(
    values: np.ndarray, weights: np.ndarray, *, order: float, exponent: float
) -> np.ndarray | None:
    """(sum over models of w x^order)^exponent; order 0 is the geometric mean.

    Parameters
    ----------
    values : array of shape (n_models, n_rows, n_labels)
        In float32 or float64.
    weights : array of shape (n_models, 1 or n_rows, 1 or n_labels)
        All above 0.

    Returns
    -------
    means : array of shape (n_rows, n_labels), or None
        None if some value is negative or not finite, or some value or mean is below the normal
        numbers of its type.
    """
    if values.dtype not in (np.float32, np.float64) or values.ndim != 3 or weights.ndim != 3:
        raise ValueError("values and weights must have three axes, in float32 or float64")
    n_models, n_rows, n_labels = values.shape
    axes = ((n_models,), (1, n_rows), (1, n_labels))
    if any(n not in allowed for n, allowed in zip(weights.shape, axes, strict=True)):
        raise ValueError("weights must fit values")
    if not (
        values.strides[2] == values.itemsize and values.strides[1] == n_labels * values.itemsize
    ):
        values = np.ascontiguousarray(values)  # models may lie apart, rows must not
    weights = np.ascontiguousarray(weights, values.dtype)
    steps = [
        0 if n == 1 else stride // weights.itemsize
        for n, stride in zip(weights.shape, weights.strides, strict=True)
    ]
    means = np.empty((n_rows, n_labels), values.dtype)
    has_table = values.dtype == np.float32 and 0 < order <= 1
    near_one, of_two = _tabulate(order) if has_table else (None, None)
    struct = MeanStruct(
        n_models,
        n_rows,
        n_labels,
        values.ctypes.data,
        values.strides[0] // values.itemsize,
        weights.ctypes.data,
        (ctypes.c_int64 * 3)(*steps),
        order,
        exponent,
        *(None if each is None else each.ctypes.data for each in (near_one, of_two)),
        means.ctypes.data,
    )
    return None if function("means", values.dtype)(ctypes.addressof(struct)) else means


@lru_cache(maxsize=64)
def _tabulate(order: float) -> tuple[np.ndarray, np.ndarray]:
    """What `Powers` of means.h has of an order; shorter vectors have no use for it."""

    def slope(offset: np.ndarray) -> np.ndarray:
        return np.expm1(order * np.log1p(offset)) / offset

    near_one = np.polynomial.Chebyshev.interpolate(
        slope, _N_TERMS - 1, (np.sqrt(0.5) - 1, np.sqrt(2) - 1)
    ).convert(kind=np.polynomial.Polynomial)
    exponents = _HIGHEST - (_HIGHEST + _BIAS - np.arange(_N_POWERS)) % _N_POWERS
    return near_one.coef.astype(np.float32), np.exp2(order * exponents).astype(np.float32)
