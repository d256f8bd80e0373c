"""How kernels store their entries: what cuts, writes, mixes and counts them needs to know.

Solvers never come here: they see products only.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from wassemble._checks import fail
from wassemble.kernels.base import Kernel
from wassemble.kernels.dense import DenseKernel
from wassemble.kernels.diagonal import DiagonalKernel, IdentityKernel
from wassemble.kernels.low_rank import LowRankKernel
from wassemble.kernels.sparse import SparseKernel

__all__ = [
    "check_storage",
    "factors",
    "kept_logs",
    "row_blocks",
    "select_labels",
    "stored_diagonal",
    "stored_entries",
]

# Entries of one block of rows: 16 MB of float64.
_BLOCK = 2**21


def check_storage(kernel: Kernel) -> None:
    """Refuse kernels whose entries are not NumPy's, or not the same for every sample."""
    known = (IdentityKernel, DiagonalKernel, DenseKernel, SparseKernel, LowRankKernel)
    if not isinstance(kernel, known):
        fail(
            f"`kernel` must be one of wassemble's kernels; got {type(kernel).__name__}.",
            hint="`DenseKernel(matrix)` makes one from an array",
        )
    if kernel.n_samples is not None:
        fail(
            "a kernel with label names must be the same for every sample; got one of"
            f" {kernel.n_samples} samples.",
            hint="give a kernel per sample to `fuse` or `solve_barycenter` as it is",
        )
    if kernel.tensor is not None:
        fail(
            "a kernel with label names must hold NumPy entries; got a torch tensor.",
            hint="`kernel.convert(None, numpy_dtype)`; solvers bring it to torch themselves",
        )


def stored_diagonal(kernel: IdentityKernel | DiagonalKernel) -> np.ndarray:
    """The diagonal, ones for the identity."""
    if isinstance(kernel, IdentityKernel):
        return np.ones(kernel.shape[0])
    return np.asarray(kernel.diagonal)


def stored_entries(kernel: Kernel) -> sp.csr_array | None:
    """Entries of an identity, diagonal or sparse kernel, None for any other."""
    if isinstance(kernel, SparseKernel):
        return kernel.to_sparse()
    if isinstance(kernel, IdentityKernel | DiagonalKernel):
        csr = sp.csr_array(sp.diags_array(stored_diagonal(kernel)))
        csr.eliminate_zeros()
        return csr
    return None


def kept_logs(kernel: Kernel) -> np.ndarray | None:
    """Logs of a dense kernel's entries, where it keeps them because they would underflow."""
    return kernel._log_matrix if isinstance(kernel, DenseKernel) else None


def factors(kernel: LowRankKernel) -> tuple[np.ndarray, np.ndarray]:
    """Both factors; the same array twice if the kernel is symmetric."""
    left = kernel._left.to_dense()
    return left, left if kernel.is_symmetric else kernel._right.to_dense()


def row_blocks(kernel: Kernel) -> Iterator[tuple[int, sp.csr_array | np.ndarray]]:
    """The entries, a few rows at a time: the first row's place, and the rows.

    Rows are sparse where the kernel stores them so, else dense.
    """
    entries = stored_entries(kernel)
    if entries is not None:
        yield 0, entries
        return
    step = max(1, _BLOCK // kernel.shape[1])
    for start in range(0, kernel.shape[0], step):
        some = slice(start, start + step)
        if isinstance(kernel, LowRankKernel):
            left, right = factors(kernel)
            yield start, left[some] @ right.T
        else:
            yield start, np.asarray(kernel.to_dense()[some])


def select_labels(kernel: Kernel, rows: np.ndarray, columns: np.ndarray) -> Kernel:
    """The kernel of the source labels ``rows`` and target labels ``columns``, by place.

    Sparse and low-rank kernels stay so; a diagonal one that is no longer diagonal becomes
    sparse.

    Examples
    --------
    >>> select_labels(IdentityKernel(3), np.array([2, 0]), np.array([0, 2])).to_dense()
    array([[0., 1.],
           [1., 0.]])
    """
    same = np.array_equal(rows, columns)
    if isinstance(kernel, IdentityKernel | DiagonalKernel):
        return _select_diagonal(kernel, rows, columns)
    symmetric = kernel.is_symmetric and same
    if isinstance(kernel, SparseKernel):
        csr = kernel.to_sparse()[rows][:, columns]
        csr.sort_indices()
        return SparseKernel._trusted(csr, symmetric=symmetric)
    if isinstance(kernel, LowRankKernel):
        left, right = factors(kernel)
        # Cut out of something larger, the measured error is no longer its own.
        return LowRankKernel(left[rows], None if symmetric else right[columns])
    both = np.ix_(rows, columns)
    logs = kept_logs(kernel)
    return DenseKernel._trusted(
        kernel.to_dense()[both], None if logs is None else logs[both], symmetric=symmetric
    )


def _select_diagonal(
    kernel: IdentityKernel | DiagonalKernel, rows: np.ndarray, columns: np.ndarray
) -> Kernel:
    if np.array_equal(rows, columns):
        if isinstance(kernel, IdentityKernel):
            return IdentityKernel(len(rows))
        return DiagonalKernel(kernel.diagonal[rows])
    places = np.full(kernel.shape[1], -1)
    places[columns] = np.arange(len(columns))
    met = np.flatnonzero(places[rows] >= 0)
    values = stored_diagonal(kernel)[rows[met]]
    shape = len(rows), len(columns)
    return SparseKernel(sp.csr_array((values, (met, places[rows[met]])), shape=shape))
