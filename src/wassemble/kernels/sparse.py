"""Kernels that store only the entries above 0."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from wassemble._arrays import Array, convert_like, detached, is_torch_array, log_of, namespace
from wassemble._checks import check_flag, check_nonnegative, fail
from wassemble._threads import available_threads, share
from wassemble.kernels.base import Arrays, EntryRange, Kernel, Shape, are_all
from wassemble.kernels.dense import check_axes, refuse_asymmetry
from wassemble.kernels.places import entry_at

# Vectors multiplied at a time: 16 float32 fill a cache line. The more, the less often the
# entries are read; twice as many where they still fit the cache.
_N_VECTORS = 16
_CACHED = 2**18
# Multiplications above which a product is shared among threads.
_SHARED = 2**21


class SparseKernel(Kernel):
    """Kernel from a SciPy sparse matrix; pairs of labels that are not stored have similarity 0.

    Parameters
    ----------
    matrix : scipy.sparse array or matrix of shape (n_source, n_target)
        Any format; copied to CSR, duplicates added up.
    symmetric : bool
        Declares that the matrix equals its transpose (checked).

    Examples
    --------
    >>> import scipy.sparse
    >>> SparseKernel(scipy.sparse.eye_array(3)).apply([0.2, 0.3, 0.5])
    array([0.2, 0.3, 0.5])
    """

    storages: ClassVar = {"sparse": frozenset({"data", "indices", "indptr"})}
    is_sparse = True
    _is_of_one_library = False

    def __init__(self, matrix: sp.sparray | sp.spmatrix, *, symmetric: bool = False) -> None:
        if not sp.issparse(matrix):
            fail(
                f"`SparseKernel` takes a SciPy sparse matrix; got {type(matrix).__name__}.",
                hint="`DenseKernel` takes arrays; scipy.sparse.csr_array(array) makes one sparse",
            )
        symmetric = check_flag(symmetric, "symmetric")
        check_axes(matrix.shape, "kernel")
        csr = sp.csr_array(matrix, copy=True)
        if csr.dtype.kind not in "fiub":
            fail(f"`kernel` must hold real numbers; got a sparse matrix of dtype {csr.dtype}.")
        if csr.dtype not in (np.float32, np.float64):
            csr = csr.astype(np.float32 if csr.dtype == np.float16 else np.float64)
        csr.sum_duplicates()

        def place(stored: int) -> str:
            row = int(np.searchsorted(csr.indptr, stored, side="right")) - 1
            return entry_at(row, csr.indices[stored])

        check_nonnegative(csr.data, "kernel", place)
        csr.eliminate_zeros()
        if max(csr.nnz, *csr.shape) < 2**31:  # half the traffic of 64-bit indices
            csr.indices, csr.indptr = csr.indices.astype(np.int32), csr.indptr.astype(np.int32)
        if symmetric:
            _check_symmetric(csr)
        self._hold(csr, symmetric=symmetric)

    def _hold(self, csr: sp.csr_array, *, symmetric: bool = False) -> None:
        self._csr = csr
        self.shape, self.dtype = (csr.shape[0], csr.shape[1]), csr.dtype
        self._placed: tuple[Array, Array, Array] | None = None
        self.is_symmetric = symmetric

    @property
    def n_stored(self) -> int:
        """Number of stored entries."""
        return int(self._csr.nnz)

    @cached_property
    def entries(self) -> EntryRange:
        if self.n_stored == 0:
            return EntryRange(0.0, 0.0, True)
        data = self._csr.data
        full = self.n_stored == self.shape[0] * self.shape[1]
        return EntryRange(float(data.min()), float(data.max()), not full)

    @cached_property
    def is_one_to_one(self) -> bool:
        csr = self._csr
        return (
            csr.nnz <= min(csr.shape)
            and int(np.diff(csr.indptr).max()) <= 1
            and len(np.unique(csr.indices)) == csr.nnz
        )

    def matched_sources(self) -> tuple[np.ndarray, np.ndarray]:
        if not self.is_one_to_one:
            fail(f"labels must be matched one to one; got {self}.")
        csr, n_target = self._csr, self.shape[1]
        sources, diagonal = np.full(n_target, -1), np.zeros(n_target, csr.dtype)
        sources[csr.indices] = np.flatnonzero(np.diff(csr.indptr))
        diagonal[csr.indices] = csr.data
        return sources, diagonal

    @cached_property
    def T(self) -> SparseKernel:
        csr = self._csr if self.is_symmetric else self._csr.T.tocsr()
        transpose = self._trusted(csr, symmetric=self.is_symmetric)
        transpose.__dict__["T"] = self
        return transpose

    def apply(self, v: Array) -> Array:
        v = self._read_vectors(v, "v")
        if is_torch_array(v):
            return self._apply_torch(v)
        image = np.empty((*v.shape[:-1], self.shape[0]), dtype=np.result_type(v, self.dtype))
        self.bind(v, image)()
        return image

    def bind(self, v: np.ndarray, out: np.ndarray) -> Callable[[], object]:
        rows, image = v.reshape(-1, self.shape[1]), out.reshape(-1, self.shape[0])
        return partial(_multiply, self._blocks(len(rows)), rows, image)

    def _blocks(self, n_vectors: int) -> list[tuple[slice, sp.csr_array]]:
        """Ranges of source labels with about the same number of entries, one per thread."""
        n_blocks = available_threads() if self.n_stored * n_vectors > _SHARED else 1
        if n_blocks == 1:
            return [(slice(None), self._csr)]
        csr = self._csr
        cuts = np.searchsorted(csr.indptr, np.linspace(0, csr.nnz, n_blocks + 1)[1:-1])
        blocks = []
        for start, stop in pairwise([0, *cuts.tolist(), self.shape[0]]):
            first, last = csr.indptr[start], csr.indptr[stop]
            parts = (
                csr.data[first:last],
                csr.indices[first:last],
                csr.indptr[start : stop + 1] - first,
            )
            block = sp.csr_array(parts, shape=(stop - start, self.shape[1]), copy=False)
            blocks.append((slice(start, stop), block))
        return blocks

    def _apply_torch(self, v: Array) -> Array:
        rows, columns, log_data = self._coordinates(v)
        image = v.new_zeros((*v.shape[:-1], self.shape[0]))
        return image.index_add(-1, rows, (v[..., columns] * log_data.exp()).to(v.dtype))

    def _coordinates(self, like: Array) -> tuple[Array, Array, Array]:
        """Rows, columns and logs of the entries on the device of ``like``."""
        if self._placed is None or not _can_meet(self._placed[0], like):
            rows = np.repeat(np.arange(self.shape[0]), np.diff(self._csr.indptr))
            columns = self._csr.indices.astype(np.int64)
            # Kept: sweeps come back to the same device.
            self._placed = (
                convert_like(rows, like),
                convert_like(columns, like),
                # An entry may be too small for the types of the device, its log is not.
                convert_like(log_of(self._csr.data), like),
            )
        return self._placed

    @cached_property
    def _double(self) -> sp.csr_array:
        return self._csr.astype(np.float64, copy=False)

    def log_apply(self, log_v: Array) -> Array:
        log_v = self._read_vectors(log_v, "log_v")
        if is_torch_array(log_v):
            return self._log_apply_torch(log_v)
        rows = log_v.reshape(-1, log_v.shape[-1]).astype(np.float64, copy=False)
        top = rows.max(axis=-1, keepdims=True)
        top[~np.isfinite(top)] = 0
        image = SparseKernel._trusted(self._double).apply(np.exp(rows - top))
        # The same certificate as in `log_product`: too small means maybe underflowed.
        info = np.finfo(np.float64)
        floor = self.shape[1] * info.smallest_normal / info.eps * max(self.entries.largest, 1.0)
        sure = (image >= floor) & (image < np.inf)
        unsure = np.flatnonzero(~sure[:, np.diff(self._csr.indptr) > 0].all(axis=1))
        log_image = log_of(image) + top
        n_together = max(1, _CACHED // max(1, self.n_stored))
        for start in range(0, len(unsure), n_together):
            some = unsure[start : start + n_together]
            log_image[some] = self._exact_log_rows(rows[some])
        return log_image.reshape(*log_v.shape[:-1], self.shape[0]).astype(log_v.dtype, copy=False)

    def _exact_log_rows(self, log_v: np.ndarray) -> np.ndarray:
        """log(K exp(log_v)) of some vectors by a log-sum-exp over the stored entries."""
        csr = self._double
        used = np.flatnonzero(np.diff(csr.indptr))  # reduceat cannot see an empty row
        starts = csr.indptr[used]
        logs = log_v[:, csr.indices] + log_of(csr.data)
        image = np.full((len(log_v), self.shape[0]), -np.inf)
        if len(used):
            top = np.maximum.reduceat(logs, starts, axis=1)
            top[~np.isfinite(top)] = 0
            spread = np.exp(logs - np.repeat(top, np.diff(csr.indptr)[used], axis=1))
            image[:, used] = log_of(np.add.reduceat(spread, starts, axis=1)) + top
        return image

    def _log_apply_torch(self, log_v: Array) -> Array:
        rows, columns, log_data = self._coordinates(log_v)
        logs = log_v[..., columns] + log_data.to(log_v.dtype)
        top = log_v.new_full((*log_v.shape[:-1], self.shape[0]), -float("inf"))
        index = rows.expand(logs.shape)
        top = top.scatter_reduce(-1, index, logs.detach(), "amax")
        top = namespace(top).where(top.isfinite(), top, 0.0)
        spread = (logs - top[..., rows]).exp()
        return log_of(top.new_zeros(top.shape).index_add(-1, rows, spread)) + top

    def factors(self) -> list[Kernel]:
        return [self]

    def to_sparse(self) -> sp.csr_array:
        """The stored entries, not a copy."""
        return self._csr

    def _stored_arrays(self) -> tuple[str, Arrays]:
        csr = self._csr
        return "sparse", {"data": csr.data, "indices": csr.indices, "indptr": csr.indptr}

    @classmethod
    def _from_stored(cls, storage: str, arrays: Arrays, shape: Shape, *, symmetric: bool) -> Kernel:
        for name, kinds in (("data", "f"), ("indices", "i"), ("indptr", "i")):
            if arrays[name].dtype.kind != kinds:
                what = "numbers" if name == "data" else "whole numbers"
                fail(f"`{name}` must hold {what}; got {arrays[name].dtype}.")
        try:
            csr = sp.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
            csr.check_format(full_check=True)
        except (ValueError, TypeError) as error:
            fail(
                f"data, indices and indptr must be those of {shape[0]:,} source and"
                f" {shape[1]:,} target labels ({error})."
            )
        return cls(csr, symmetric=symmetric)

    @classmethod
    def _from_entries(cls, entries: sp.csr_array, *, symmetric: bool) -> SparseKernel:
        return cls(entries, symmetric=symmetric)

    def _select(self, rows: np.ndarray, columns: np.ndarray) -> SparseKernel:
        csr = self._csr if are_all(rows, self.shape[0]) else self._csr[rows]
        if not are_all(columns, self.shape[1]):
            csr = csr[:, columns]
            csr.sort_indices()
        return SparseKernel._trusted(csr, symmetric=self._stays_symmetric(rows, columns))

    def _power(self, exponent: float) -> SparseKernel:
        return SparseKernel(self._csr.power(exponent), symmetric=self.is_symmetric)

    def embed(
        self, shape: Shape, rows: np.ndarray, columns: np.ndarray, ones: tuple[Array, Array]
    ) -> SparseKernel:
        entries = self._csr.tocoo()
        moved = sp.csr_array((entries.data, (rows[entries.row], columns[entries.col])), shape=shape)
        alone = sp.csr_array((np.ones(len(ones[0]), self.dtype), ones), shape=shape)
        is_square = shape[0] == shape[1]
        symmetric = is_square and self._stays_symmetric(rows, columns) and np.array_equal(*ones)
        return SparseKernel(moved + alone, symmetric=symmetric)

    def to_dense(self) -> np.ndarray:
        return self._csr.toarray()

    def convert(self, like: Array | None, dtype: Any) -> SparseKernel:
        # Products with tensors read the CSR arrays as they are.
        if like is not None or dtype == self.dtype or not self.entries.fit(np.finfo(dtype)):
            return self
        return SparseKernel._trusted(self._csr.astype(dtype), symmetric=self.is_symmetric)

    def scaled(self, log_u: Array, log_v: Array) -> SparseKernel:
        log_u, log_v = self._read_scalings(log_u, log_v)
        left, right = detached(log_u), detached(log_v)
        rows = np.repeat(left, np.diff(self._csr.indptr))
        data = np.exp(rows + log_of(self._csr.data.astype(np.float64)) + right[self._csr.indices])
        return SparseKernel._trusted(
            sp.csr_array((data, self._csr.indices, self._csr.indptr), shape=self.shape)
        )

    def inner(self, cost: Array) -> Array:
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self._csr.indptr))
        cost = self._read_cost(cost)
        return (convert_like(self._csr.data, cost) * cost[rows, self._csr.indices]).sum()

    def links(self) -> sp.coo_array:
        return sp.coo_array(self._csr > 0)

    def squared_distance_to_identity(self) -> float:
        return float(((self._double - sp.eye_array(self.shape[0])) ** 2).sum())


def _multiply(
    blocks: list[tuple[slice, sp.csr_array]], rows: np.ndarray, image: np.ndarray
) -> None:
    """Products of every row of ``rows``, a few at a time, so that they stay in the caches."""
    n_vectors = min(2 * _N_VECTORS, max(_N_VECTORS, _CACHED // rows.shape[1]))
    for start in range(0, len(rows), n_vectors):
        some = slice(start, start + n_vectors)
        vectors = np.ascontiguousarray(rows[some].T)

        share([partial(_fill, image[some, labels], block, vectors) for labels, block in blocks])


def _can_meet(kept: Array, like: Array) -> bool:
    """Whether tensors are on one device, and alike in what torch lets gradients see."""
    return kept.device == like.device and kept.is_inference() == like.is_inference()


def _fill(image: np.ndarray, block: sp.csr_array, vectors: np.ndarray) -> None:
    image[...] = (block @ vectors).T


def _check_symmetric(csr: sp.csr_array) -> None:
    if csr.shape[0] != csr.shape[1]:
        fail(f"a symmetric `kernel` must be square; got shape {csr.shape}.")
    difference = abs(csr - csr.T).tocoo()
    slack = 8 * np.finfo(csr.dtype).eps * (csr.data.max() if csr.nnz else 0)
    wrong = difference.data > slack
    if wrong.any():
        refuse_asymmetry(csr, difference.row[wrong][0], difference.col[wrong][0], "kernel")
