"""Products of a matrix with exponentials, computed in logarithms without loss.

Leaves to others: which matrix, and why.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from wassemble._arrays import Array, is_torch_array, log_of, namespace, new_zeros, without_gradient

# Elements of one block of the exact fallback; half a mebibyte of float64 stays in cache.
_BLOCK = 2**16


def log_sum_exp(logs: Array) -> Array:
    """log(sum(exp(logs))) over the last axis; -inf for a row of -inf."""
    xp = namespace(logs)
    top = _finite_top(logs)
    return log_of(xp.sum(xp.exp(logs - top), axis=-1)) + top[..., 0]


def log_product(
    logs: Array,
    matrix: Array,
    log_columns: Callable[[Array], Array],
    smallest: float = 0.0,
    largest: float = 1.0,
) -> Array:
    """log(exp(logs) @ matrix), exact wherever the exact value is representable.

    The max-shifted product does the work at the speed of a plain one. It is exact to
    rounding wherever its value is well above the smallest normal number: every term
    that underflowed is then too small to matter. The entries where it is not get a
    true log-sum-exp.

    Parameters
    ----------
    logs : array of shape (..., n_in)
    matrix : array of shape (n_in, n_out)
        Non-negative; entries may have underflowed to 0.
    log_columns : callable
        Index array of shape (n,) to the true logs of those columns, ``(n, n_in)``.
    smallest : float
        At most the smallest true entry above 0; 0 if entries may have underflowed.
    largest : float
        At least the largest entry.
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
