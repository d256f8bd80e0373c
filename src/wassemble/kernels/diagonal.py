"""Kernels that move no mass between labels."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, ClassVar

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
from wassemble._checks import as_float_array, check_nonnegative, fail
from wassemble.kernels.base import Arrays, EntryRange, Kernel, Shape, keep_entries
from wassemble.kernels.sparse import SparseKernel


class DiagonalKernel(Kernel):
    """Each label is similar to itself alone, by its own amount.

    Parameters
    ----------
    diagonal : array of shape (n_labels,) or (n_samples, n_labels)
        Finite and non-negative. With a sample axis, each sample has its own kernel
        (the paper's best multi-label kernel, section 6.2). Copied as by `DenseKernel`.

    Examples
    --------
    >>> DiagonalKernel([1.0, 0.5]).apply([0.6, 0.4])
    array([0.6, 0.2])
    """

    storages: ClassVar = {"diagonal": frozenset({"diagonal"})}
    is_symmetric = True
    is_diagonal = True
    is_sparse = True
    diagonal: Array

    def __init__(self, diagonal: Array) -> None:
        diagonal = as_float_array(diagonal, "diagonal")
        if diagonal.ndim not in (1, 2) or 0 in diagonal.shape:
            fail(
                "`diagonal` must have shape (n_labels,) or (n_samples, n_labels), none of them 0;"
                f" got shape {tuple(diagonal.shape)}."
            )
        diagonal = keep_entries(widen_half(diagonal))
        place = "label {}" if diagonal.ndim == 1 else "sample {}, label {}"
        check_nonnegative(diagonal, "diagonal", place.format)
        self._hold(diagonal)

    def _hold(self, diagonal: Array) -> None:
        self.diagonal = diagonal
        self.shape, self.dtype = (diagonal.shape[-1], diagonal.shape[-1]), diagonal.dtype
        self.tensor = diagonal if is_torch_array(diagonal) else None
        self.n_samples = diagonal.shape[0] if diagonal.ndim == 2 else None

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

    def to_sparse(self) -> sp.csr_array:
        self._check_one_sample("entries are those")
        csr = sp.csr_array(sp.diags_array(detached(self.diagonal).reshape(-1)))
        csr.eliminate_zeros()
        return csr

    def factors(self) -> list[Kernel] | None:
        return None if self.n_samples is not None else [SparseKernel._trusted(self.to_sparse())]

    def _stored_arrays(self) -> tuple[str, Arrays]:
        return "diagonal", {"diagonal": detached(self.diagonal)}

    @classmethod
    def _from_stored(cls, storage: str, arrays: Arrays, shape: Shape, *, symmetric: bool) -> Kernel:
        return cls(arrays["diagonal"])

    @classmethod
    def _from_entries(cls, entries: sp.csr_array, *, symmetric: bool) -> DiagonalKernel:
        coo = entries.tocoo()
        if entries.shape[0] != entries.shape[1] or (coo.row != coo.col).any():
            fail("a diagonal kernel must join each label to itself alone; got another pair.")
        return cls(entries.diagonal())

    def _select(self, rows: np.ndarray, columns: np.ndarray) -> Kernel:
        if np.array_equal(rows, columns) and len(np.unique(rows)) == len(rows):
            return DiagonalKernel._trusted(self.diagonal[..., convert_like(rows, self.diagonal)])
        return SparseKernel(self.to_sparse())._select(rows, columns)

    def _power(self, exponent: float) -> DiagonalKernel:
        return DiagonalKernel(self.diagonal**exponent)

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
        self._check_one_sample("a coupling is")
        log_diagonal = self.log_diagonal.reshape(-1)
        return DiagonalKernel._trusted(namespace(log_u).exp(log_u + log_diagonal + log_v))

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

    def _check_one_sample(self, what: str) -> None:
        if self.n_samples not in (None, 1):
            fail(
                f"{what} of one sample; got a kernel of {self.n_samples} samples.",
                hint="`kernel.take(slice(0, 1))` is the kernel of sample 0",
            )

    def _check_last_axis(self, array: Array) -> None:
        super()._check_last_axis(array)
        if self.n_samples in (None, 1) or array.ndim == 1:
            return
        if array.shape[-2] not in (1, self.n_samples):
            fail(
                f"a kernel of {self.n_samples} samples applies to arrays with {self.n_samples}"
                f" samples; got shape {tuple(array.shape)}."
            )
