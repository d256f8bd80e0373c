"""Every kind of kernel, beside the logarithms of its entries from an independent source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy.special import logsumexp

import wassemble as ws

N_SAMPLES = 3
Build = Callable[[np.random.Generator, Any], tuple[ws.Kernel, np.ndarray]]


@dataclass(frozen=True)
class Case:
    """One kernel and the float64 logs of the entries that it was built from."""

    kernel: ws.Kernel
    log_entries: np.ndarray
    dtype: Any
    in_torch: bool

    @property
    def dense(self) -> np.ndarray:
        return np.exp(self.log_entries)

    @property
    def tolerance(self) -> dict[str, float]:
        return {"rtol": 1e-5, "atol": 1e-6} if self.dtype == np.float32 else {"rtol": 1e-12}

    @property
    def log_tolerance(self) -> dict[str, float]:
        """Logs of thousands: their rounding is absolute."""
        return {"rtol": 0, "atol": 2e4 * float(np.finfo(self.dtype).eps)}

    def array(self, values: Any) -> Any:
        """``values`` in the library and floating type of the kernel."""
        values = np.asarray(values, dtype=self.dtype)
        return torch.tensor(values) if self.in_torch else values

    def vectors(self, rng: np.random.Generator, axis: int, *leading: int) -> Any:
        """Positive vectors over the labels of ``axis``, some of their entries 0."""
        values = rng.uniform(0.1, 2, (*leading, self.kernel.shape[axis]))
        values[rng.uniform(size=values.shape) < 0.2] = 0
        return self.array(values)


def values_of(array: Any) -> np.ndarray:
    """Values of a NumPy array or a tensor, float64."""
    array = array.detach().numpy() if isinstance(array, torch.Tensor) else np.asarray(array)
    return array.astype(np.float64)


def log_of(values: np.ndarray) -> np.ndarray:
    values = values_of(values)
    return np.log(values, out=np.full(values.shape, -np.inf), where=values > 0)


def log_image(log_entries: np.ndarray, log_v: Any) -> np.ndarray:
    """log(K exp(log_v)), one log-sum-exp per entry."""
    return logsumexp(log_entries + values_of(log_v)[..., None, :], axis=-1)


def transposed(entries: np.ndarray) -> np.ndarray:
    return np.swapaxes(entries, -1, -2)


# -- the list ------------------------------------------------------------------------


def _identity(rng: np.random.Generator, dtype: Any) -> tuple[ws.Kernel, np.ndarray]:
    return ws.kernels.IdentityKernel(4), log_of(np.eye(4))


def _match(places: list[int], n_target: int) -> Build:
    def build(rng: np.random.Generator, dtype: Any) -> tuple[ws.Kernel, np.ndarray]:
        entries = np.array([[i == j for j in range(n_target)] for i in places], dtype=float)
        return ws.kernels.MatchKernel(places, n_target), log_of(entries)

    return build


def _diagonal(rng: np.random.Generator, dtype: Any) -> tuple[ws.Kernel, np.ndarray]:
    diagonal = np.append(rng.uniform(0.1, 2, 4), 0).astype(dtype)
    return ws.kernels.DiagonalKernel(diagonal), log_of(np.diag(diagonal))


def _diagonal_per_sample(rng: np.random.Generator, dtype: Any) -> tuple[ws.Kernel, np.ndarray]:
    diagonals = rng.uniform(0.1, 2, (N_SAMPLES, 4)).astype(dtype)
    diagonals[1, 2] = 0
    return ws.kernels.DiagonalKernel(diagonals), log_of(np.stack([np.diag(d) for d in diagonals]))


def _dense(*shape: int, symmetric: bool = False, holes: bool = False) -> Build:
    def build(rng: np.random.Generator, dtype: Any) -> tuple[ws.Kernel, np.ndarray]:
        matrix = _matrix(rng, shape, dtype, symmetric=symmetric, holes=holes)
        return ws.kernels.DenseKernel(matrix, symmetric=symmetric), log_of(matrix)

    return build


def _sparse(*shape: int, symmetric: bool = False, holes: bool = False) -> Build:
    def build(rng: np.random.Generator, dtype: Any) -> tuple[ws.Kernel, np.ndarray]:
        matrix = _matrix(rng, shape, dtype, symmetric=symmetric, holes=holes)
        return ws.kernels.SparseKernel(sp.coo_array(matrix), symmetric=symmetric), log_of(matrix)

    return build


def _matrix(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: Any, *, symmetric: bool, holes: bool
) -> np.ndarray:
    matrix = rng.uniform(0.1, 2, shape).astype(dtype)
    if holes:
        matrix[rng.uniform(size=shape) < 0.3] = 0
        matrix[1] = 0
        matrix[:, 2] = 0
    return matrix + matrix.T if symmetric else matrix


def _from_log(rng: np.random.Generator, dtype: Any) -> tuple[ws.Kernel, np.ndarray]:
    logs = rng.uniform(-2000, 0, (4, 5)).astype(dtype)
    logs[0, 0], logs[1, 1] = 0.5, -np.inf
    return ws.kernels.DenseKernel.from_log(logs), logs.astype(np.float64)


def _empty_sparse(rng: np.random.Generator, dtype: Any) -> tuple[ws.Kernel, np.ndarray]:
    return ws.kernels.SparseKernel(sp.csr_array((3, 4), dtype=dtype)), np.full((3, 4), -np.inf)


def _low_rank(rng: np.random.Generator, dtype: Any) -> tuple[ws.Kernel, np.ndarray]:
    left, right = rng.uniform(0.1, 2, (4, 2)).astype(dtype), rng.uniform(0, 2, (6, 2)).astype(dtype)
    left[1, 0] = left[2] = right[3, 1] = 0
    return ws.kernels.LowRankKernel(left, right), log_of(values_of(left) @ values_of(right).T)


def _low_rank_symmetric(rng: np.random.Generator, dtype: Any) -> tuple[ws.Kernel, np.ndarray]:
    left = rng.uniform(0.1, 2, (5, 2)).astype(dtype)
    return ws.kernels.LowRankKernel(left), log_of(values_of(left) @ values_of(left).T)


BUILDERS: dict[str, Build] = {
    "identity": _identity,
    "match": _match([2, 0, 3, 1], 4),
    "match-with-empty-labels": _match([2, -1, 0, -1, 4], 6),
    "match-without-matches": _match([-1, -1], 3),
    "diagonal": _diagonal,
    "diagonal-per-sample": _diagonal_per_sample,
    "dense": _dense(5, 5),
    "dense-symmetric": _dense(5, 5, symmetric=True),
    "dense-rectangular": _dense(3, 6),
    "dense-one-label": _dense(1, 1),
    "dense-with-empty-labels": _dense(5, 4, holes=True),
    "dense-from-log": _from_log,
    "sparse": _sparse(4, 6),
    "sparse-symmetric": _sparse(5, 5, symmetric=True, holes=True),
    "sparse-with-empty-labels": _sparse(5, 4, holes=True),
    "sparse-without-entries": _empty_sparse,
    "low-rank": _low_rank,
    "low-rank-symmetric": _low_rank_symmetric,
}


@cache  # the tests that run over all kernels share them
def make_case(name: str, dtype: Any = np.float64, *, in_torch: bool = False) -> Case:
    """The kernel called ``name`` in `BUILDERS`, the same one at every call."""
    kernel, log_entries = BUILDERS[name](np.random.default_rng(7), dtype)
    if in_torch:
        like = torch.zeros((), dtype=torch.float32 if dtype == np.float32 else torch.float64)
        kernel = kernel.convert(like, like.dtype)
    return Case(kernel, log_entries, dtype, in_torch)


def every_kernel(*, where: Callable[[Case], bool] = lambda case: True, paired: bool = False) -> Any:
    """Parametrises a test's ``case`` over all kernels, floating types and array libraries.

    ``paired``, for laws that take long and for what is refused: each kernel in both types and in
    both libraries, but not in all four pairs, which every class of kernels has between its kernels.
    """
    params = [
        pytest.param(case, id=f"{name}-{np.dtype(dtype).name}{'-torch' if in_torch else ''}")
        for number, name in enumerate(BUILDERS)
        for place, dtype in enumerate((np.float32, np.float64))
        for in_torch in (False, True)
        if not paired or (number + place + in_torch) % 2
        if where(case := make_case(name, dtype, in_torch=in_torch))
    ]
    return pytest.mark.parametrize("case", params)
