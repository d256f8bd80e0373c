"""The few array operations that NumPy and torch spell differently.

Everything else goes through the array API (`array_api_compat`), so that one text
serves both libraries. Nothing here knows about kernels or labels.
"""

from __future__ import annotations

import sys
from typing import Any, TypeAlias

import array_api_compat
import numpy as np

__all__ = [
    "Array",
    "convert_like",
    "detached",
    "find_torch",
    "is_torch_array",
    "log_of",
    "log_quotient",
    "namespace",
    "new_zeros",
]

Array: TypeAlias = Any
"""A NumPy array or a torch tensor."""


def namespace(array: Array) -> Any:
    """Array API namespace of ``array``."""
    # NumPy 2 is an array API namespace itself; asking takes longer than a small product.
    return np if isinstance(array, np.ndarray) else array_api_compat.array_namespace(array)


def is_torch_array(value: Any) -> bool:
    """Whether ``value`` is a torch tensor."""
    return not isinstance(value, np.ndarray) and array_api_compat.is_torch_array(value)


def find_torch(*values: Any) -> Array | None:
    """First torch tensor among ``values``, looking into lists and tuples; None if there is none."""
    if "torch" not in sys.modules:  # no tensor can exist before torch is imported
        return None
    for value in values:
        if is_torch_array(value):
            return value
        if isinstance(value, list | tuple):
            found = find_torch(*value)
            if found is not None:
                return found
    return None


def convert_like(array: Array, like: Array | None, dtype: Any = None) -> Array:
    """``array`` in the library and on the device of ``like`` (None: NumPy), as ``dtype``."""
    if like is None or not is_torch_array(like):
        return np.asarray(detached(array), dtype=dtype)
    xp = namespace(like)
    if not is_torch_array(array):
        array = np.asarray(array, order="C")  # ascontiguousarray adds an axis to a scalar
        array = xp.asarray(array if array.flags.writeable else array.copy(), device=like.device)
    array = array.to(like.device)
    return array if dtype is None else xp.astype(array, dtype, copy=False)


def new_zeros(shape: tuple[int, ...], like: Array | None, dtype: Any = None) -> Array:
    """Zeros in the library and on the device of ``like`` (None: NumPy); float64 by default."""
    if like is None:
        return np.zeros(shape, dtype=dtype)
    xp = namespace(like)
    return xp.zeros(shape, dtype=dtype or xp.float64, device=like.device)


def detached(array: Array) -> np.ndarray:
    """Values of ``array`` as a NumPy array, outside of any gradient."""
    if is_torch_array(array):
        return np.asarray(array.detach().cpu().numpy())
    return np.asarray(array)


def log_of(array: Array) -> Array:
    """Natural logarithm with log 0 = -inf, silent, and with a finite gradient at 0."""
    xp = namespace(array)
    positive = array > 0
    if not is_torch_array(array):
        out = np.full(array.shape, -np.inf, dtype=np.result_type(array.dtype, np.float32))
        return np.log(array, out=out, where=positive)
    # The gradient of log at 0 is infinite, and infinity times a masked 0 is nan: mask first.
    return xp.where(positive, xp.log(xp.where(positive, array, 1.0)), -xp.inf)


def log_quotient(log_a: Array, log_b: Array) -> Array:
    """log(a / b), with 0 for anything over 0: a label out of reach carries nothing."""
    xp = namespace(log_a)
    both = (log_a > -xp.inf) & (log_b > -xp.inf)
    return xp.where(both, xp.where(both, log_a, 0.0) - xp.where(both, log_b, 0.0), -xp.inf)
