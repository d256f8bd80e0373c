"""Kernels that move no mass between labels: the identity and the diagonal ones."""

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
)
from wassemble._checks import as_float_array, check_count, check_nonnegative, fail
from wassemble.kernels.base import EntryRange, Kernel

__all__ = ["DiagonalKernel", "IdentityKernel"]


class IdentityKernel(Kernel):
    """Each label is similar to itself alone.

    Examples
    --------
    >>> IdentityKernel(3).apply([0.2, 0.3, 0.5])
    array([0.2, 0.3, 0.5])
    """

    is_symmetric = True
    is_diagonal = True
    entries = EntryRange(1.0, 1.0, True)
    _is_of_one_library = False

    def __init__(self, n_labels: int) -> None:
        self._n_labels = check_count(n_labels, "n_labels")

    @property
    def shape(self) -> tuple[int, int]:
        return (self._n_labels, self._n_labels)

    @property
    def dtype(self) -> None:
        return None

    @property
    def T(self) -> IdentityKernel:
        return self

    def apply(self, v: Array) -> Array:
        v = self._read_vectors(v, "v")
        return v.clone() if is_torch_array(v) else v.copy()

    def bind(self, v: np.ndarray, out: np.ndarray) -> Callable[[], object]:
        return partial(np.copyto, out, v)

    def log_apply(self, log_v: Array) -> Array:
        return self.apply(log_v)

    def to_dense(self) -> np.ndarray:
        return np.eye(self._n_labels)

    def convert(self, like: Array | None, dtype: Any) -> IdentityKernel:
        return self

    def scaled(self, log_u: Array, log_v: Array) -> DiagonalKernel:
        log_u, log_v = self._read_scalings(log_u, log_v)
        return DiagonalKernel._trusted(namespace(log_u).exp(log_u + log_v))

    def restrict(self, source: np.ndarray) -> IdentityKernel:
        return self

    def inner(self, cost: Array) -> Array:
        return self._read_cost(cost).diagonal().sum()

    def links(self) -> sp.coo_array:
        return sp.coo_array(sp.eye_array(self._n_labels))

    def squared_distance_to_identity(self) -> float:
        return 0.0


class DiagonalKernel(Kernel):
    """Each label is similar to itself alone, by its own amount.

    Parameters
    ----------
    diagonal : array of shape (n_labels,) or (n_samples, n_labels)
        Finite and non-negative. With a sample axis, each sample has its own kernel
        (the paper's best multi-label kernel, section 6.2).

    Examples
    --------
    >>> DiagonalKernel([1.0, 0.5]).apply([0.6, 0.4])
    array([0.6, 0.2])
    """

    is_symmetric = True
    is_diagonal = True

    def __init__(self, diagonal: Array) -> None:
        diagonal = as_float_array(diagonal, "diagonal")
        if diagonal.ndim not in (1, 2) or 0 in diagonal.shape:
            fail(
                "`diagonal` must have shape (n_labels,) or (n_samples, n_labels), none of them 0;"
                f" got shape {tuple(diagonal.shape)}."
            )
        diagonal = widen_half(diagonal)
        place = "label {}" if diagonal.ndim == 1 else "sample {}, label {}"
        check_nonnegative(diagonal, "diagonal", place.format)
        self._hold(diagonal)

    @classmethod
    def _trusted(cls, diagonal: Array) -> DiagonalKernel:
        kernel = cls.__new__(cls)
        kernel._hold(diagonal)
        return kernel

    def _hold(self, diagonal: Array) -> None:
        self.diagonal = diagonal
        self.n_samples = diagonal.shape[0] if diagonal.ndim == 2 else None

    @property
    def shape(self) -> tuple[int, int]:
        return (self.diagonal.shape[-1], self.diagonal.shape[-1])

    @property
    def dtype(self) -> Any:
        return self.diagonal.dtype

    @property
    def tensor(self) -> Array | None:
        return self.diagonal if is_torch_array(self.diagonal) else None

    @cached_property
    def entries(self) -> EntryRange:
        values = detached(self.diagonal)
        positive = values[values > 0]
        largest = float(values.max())
        return EntryRange(float(positive.min()) if positive.size else largest, largest, True)

    @property
    def T(self) -> DiagonalKernel:
        return self

    @cached_property
    def log_diagonal(self) -> Array:
        """Log of the diagonal, -inf for 0."""
        return log_of(self.diagonal)

    def apply(self, v: Array) -> Array:
        return self._read_vectors(v, "v") * self.diagonal

    def bind(self, v: np.ndarray, out: np.ndarray) -> Callable[[], object]:
        return partial(np.multiply, v, self.diagonal, out=out)

    def log_apply(self, log_v: Array) -> Array:
        log_v = self._read_vectors(log_v, "log_v")
        xp = namespace(log_v)
        return xp.astype(log_v + self.log_diagonal, log_v.dtype, copy=False)

    def to_dense(self) -> Array:
        diagonal = self.diagonal
        eye = convert_like(np.eye(self.shape[0]), diagonal, diagonal.dtype)
        return diagonal[..., :, None] * eye

    def convert(self, like: Array | None, dtype: Any) -> DiagonalKernel:
        diagonal = convert_like(self.diagonal, like)
        info = namespace(diagonal).finfo(dtype)
        if self.entries.largest == 0 or self.entries.fit(info):
            diagonal = convert_like(diagonal, like, dtype)
        elif float(info.eps) > float(namespace(self.diagonal).finfo(self.dtype).eps) and (
            widest_float(like) == dtype
        ):
            fail(
                "a diagonal kernel must fit float32 on a device that has no float64; got entries"
                f" from {self.entries.smallest:g} to {self.entries.largest:g}."
            )
        return self if diagonal is self.diagonal else DiagonalKernel._trusted(diagonal)

    def scaled(self, log_u: Array, log_v: Array) -> DiagonalKernel:
        log_u, log_v = self._read_scalings(log_u, log_v)
        if self.n_samples not in (None, 1):
            fail(
                f"a coupling is of one sample; got a kernel of {self.n_samples} samples.",
                hint="`kernel.take(slice(0, 1))` is the kernel of sample 0",
            )
        log_diagonal = self.log_diagonal.reshape(-1)
        return DiagonalKernel._trusted(namespace(log_u).exp(log_u + log_diagonal + log_v))

    def restrict(self, source: np.ndarray) -> DiagonalKernel:
        return self

    def inner(self, cost: Array) -> Array:
        return (self.diagonal * self._read_cost(cost).diagonal()).sum(-1)

    def links(self) -> sp.coo_array:
        used = detached(self.diagonal > 0).reshape(-1, self.shape[0]).any(axis=0)
        return sp.coo_array(sp.diags_array(used.astype(float)))

    def squared_distance_to_identity(self) -> Array:
        squares = np.square(detached(self.diagonal) - 1).sum(axis=-1, dtype=float)
        return float(squares) if self.n_samples is None else squares

    def take(self, rows: Any) -> DiagonalKernel:
        if self.n_samples is None:
            return self
        return DiagonalKernel._trusted(self.diagonal[rows])

    def _check_last_axis(self, array: Array) -> None:
        super()._check_last_axis(array)
        if self.n_samples in (None, 1) or array.ndim == 1:
            return
        if array.shape[-2] not in (1, self.n_samples):
            fail(
                f"a kernel of {self.n_samples} samples applies to arrays with {self.n_samples}"
                f" samples; got shape {tuple(array.shape)}."
            )
