"""What kind of array a value is, and the few operations that NumPy and torch spell differently.

Everything else goes through the array API (`array_api_compat`), so that one text
serves both libraries. Nothing here knows about kernels or labels.
"""

import sys
from typing import Any, TypeAlias

import array_api_compat
import numpy as np

Array: TypeAlias = Any
"""A NumPy array or a torch tensor."""

# Types of torch devices that have no float64.
_SINGLE_DEVICES = frozenset({"mps"})
# Types of torch devices whose memory NumPy reads.
_HOST_DEVICES = frozenset({"cpu"})


def namespace(array: Array) -> Any:
    """Array API namespace of ``array``."""
    # NumPy 2 is an array API namespace itself; asking takes longer than a small product.
    return np if isinstance(array, np.ndarray) else array_api_compat.array_namespace(array)


def is_array(value: Any) -> bool:
    """Whether ``value`` is an array of any library of the array API."""
    return hasattr(value, "__array_namespace__") or is_torch_array(value)


def is_torch_array(value: Any) -> bool:
    """Whether ``value`` is a torch tensor."""
    return not isinstance(value, np.ndarray) and array_api_compat.is_torch_array(value)


def is_frame(value: Any) -> bool:
    """Whether ``value`` is a data frame, of whatever library: its columns have names."""
    return not isinstance(value, np.ndarray) and hasattr(type(value), "columns")


def has_names(value: Any) -> bool:
    """Whether ``value`` brings names for its entries: a data frame, or a column with an index."""
    return is_frame(value) or is_series(value)


def is_series(value: Any) -> bool:
    """Whether ``value`` is a column with an index, as pandas has: its entries have names."""
    kind = type(value)
    return hasattr(kind, "iloc") and hasattr(kind, "index") and not is_frame(value)


def find_torch(*values: Any) -> Array | None:
    """First torch tensor among ``values``, looking into lists and tuples; None if there is none."""
    if "torch" not in sys.modules:  # no tensor can exist before torch is imported
        return None
    for value in values:
        if is_torch_array(value):
            return value
        if isinstance(value, list | tuple):
            inner = find_torch(*value)
            if inner is not None:
                return inner
    return None


def convert_like(array: Array, like: Array | None, dtype: Any = None) -> Array:
    """``array`` in the library and on the device of ``like`` (None: NumPy), as ``dtype``."""
    if like is None or not is_torch_array(like):
        return np.asarray(detached(array), dtype=dtype)
    xp = namespace(like)
    narrow = widest_float(like) != xp.float64
    if not is_torch_array(array):
        array = np.asarray(array, order="C")  # ascontiguousarray adds an axis to a scalar
        if narrow and array.dtype == np.float64:
            array = array.astype(np.float32)
        array = xp.asarray(array if array.flags.writeable else array.copy(), device=like.device)
    elif narrow and array.dtype == xp.float64 and dtype is None:
        dtype = xp.float32
    return array.to(like.device, dtype)


def widest_float(like: Array | None) -> Any:
    """float64, or float32 where the device of ``like`` (None: NumPy) has no float64."""
    if like is None or not is_torch_array(like):
        return np.float64
    xp = namespace(like)
    return xp.float32 if like.device.type in _SINGLE_DEVICES else xp.float64


def new_zeros(shape: tuple[int, ...], like: Array | None, dtype: Any = None) -> Array:
    """Zeros in the library and on the device of ``like`` (None: NumPy).

    Of type `widest_float` if ``dtype`` is not given.
    """
    if like is None or not is_torch_array(like):
        return np.zeros(shape, dtype=dtype)
    return namespace(like).zeros(shape, dtype=dtype or widest_float(like), device=like.device)


def widen_half(array: Array) -> Array:
    """``array`` in float32 if it holds half-precision numbers, else as it is."""
    if is_torch_array(array):
        return array.float() if array.is_floating_point() and array.element_size() < 4 else array
    return array.astype(np.float32) if array.dtype == np.float16 else array


def without_gradient(array: Array) -> Array:
    """``array``, outside of any gradient."""
    return array.detach() if is_torch_array(array) else array


def detached(array: Array) -> np.ndarray:
    """Values of ``array`` as a NumPy array, outside of any gradient; half precision widened."""
    if is_torch_array(array):
        return np.asarray(widen_half(array.detach()).cpu().numpy())
    return np.asarray(array)


def is_on_host(array: Array) -> bool:
    """Whether the memory of a torch tensor is NumPy's too."""
    return array.device.type in _HOST_DEVICES - _SINGLE_DEVICES


def has_tangent(array: Array) -> bool:
    """Whether a torch tensor carries a derivative along (forward mode)."""
    from torch.autograd.forward_ad import unpack_dual

    dual = unpack_dual(array)  # type: ignore[no-untyped-call]
    return dual.tangent is not None


def log_of(array: Array) -> Array:
    """Natural logarithm with log 0 = -inf, silent, and with a finite gradient at 0."""
    xp = namespace(array)
    positive = array > 0
    if isinstance(array, np.ndarray):
        out = np.full(array.shape, -np.inf, dtype=np.result_type(array.dtype, np.float32))
        return np.log(array, out=out, where=positive)
    if is_torch_array(array):
        array = widen_half(array)
    # The gradient of log at 0 is infinite, and infinity times a masked 0 is nan: mask first.
    return xp.where(positive, xp.log(xp.where(positive, array, 1.0)), -xp.inf)


def log_quotient(log_a: Array, log_b: Array) -> Array:
    """log(a / b), with 0 for anything over 0: a label out of reach carries nothing."""
    xp = namespace(log_a)
    both = (log_a > -xp.inf) & (log_b > -xp.inf)
    return xp.where(both, xp.where(both, log_a, 0.0) - xp.where(both, log_b, 0.0), -xp.inf)
