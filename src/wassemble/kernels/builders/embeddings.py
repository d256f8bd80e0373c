"""Kernels from vectors of the labels' meaning: dense, nearest-neighbour or low rank."""

import math
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from wassemble._arrays import detached, widen_half
from wassemble._checks import (
    OneOf,
    as_float_array,
    check_count,
    check_flag,
    check_positive_number,
    fail,
)
from wassemble.errors import option
from wassemble.kernels.base import Kernel
from wassemble.kernels.builders.cost import from_cost
from wassemble.kernels.low_rank import LowRankKernel
from wassemble.kernels.places import source_label
from wassemble.kernels.sparse import SparseKernel

Metric = Literal["sqeuclidean", "euclidean", "cosine"]
_METRICS = ("sqeuclidean", "euclidean", "cosine")

# Elements of one block of costs: 16 MB of float64.
_BLOCK = 2**21
# Source labels on which the error of a low-rank kernel is measured.
_N_PROBES = 256
# Share of the squared lengths below which a squared distance has lost half of its digits.
_CANCELLED = 1e-6


def from_embeddings(
    source: Any,
    target: Any = None,
    *,
    epsilon: float,
    metric: Metric = "sqeuclidean",
    unit_norm: bool = False,
    n_neighbors: int | None = None,
    n_features: int | None = None,
    seed: int = 0,
) -> Kernel:
    """K = exp(-distance(x_i, y_j) / epsilon) for label vectors x and y.

    Parameters
    ----------
    source : array of shape (n_source, n_dimensions)
        One vector per source label.
    target : array of shape (n_target, n_dimensions), optional
        One vector per target label; ``source`` if not given.
    epsilon : float
        Entropic regularisation, above 0.
    metric : {"sqeuclidean", "euclidean", "cosine"}
        Dissimilarity. The paper's captioning kernel is "euclidean" with ``unit_norm``.
    unit_norm : bool
        Divide each vector by its length first.
    n_neighbors : int, optional
        Keep only this many nearest target labels of each source label: a `SparseKernel`.
        Without ``target`` a pair is kept if either label is a neighbour of the other.
    n_features : int, optional
        Approximate by this many positive random features: a `LowRankKernel`, whose
        ``measured_error`` says how well (relative Frobenius error on a sample of rows).
        Not for "euclidean".
    seed : int
        Of the random features.

    Examples
    --------
    >>> from_embeddings([[0.0], [1.0], [3.0]], epsilon=1.0, n_neighbors=2)
    SparseKernel(3 source x 3 target labels, float64)
    """
    epsilon = check_positive_number(epsilon, "epsilon")
    OneOf(_METRICS)(metric, "metric")
    if n_neighbors is not None and n_features is not None:
        fail(
            "`n_neighbors` and `n_features` are two ways to shrink a kernel; got both.",
            hint="give one of them",
        )
    seed = check_count(seed, "seed", at_least=0)
    unit = check_flag(unit_norm, "unit_norm") or metric == "cosine"
    x = _check_vectors(source, "source", unit=unit)
    y = x if target is None else _check_vectors(target, "target", unit=unit)
    if x.shape[1] != y.shape[1]:
        fail(
            "`source` and `target` vectors must have the same number of dimensions;"
            f" got {x.shape[1]} and {y.shape[1]}."
        )
    symmetric = target is None
    if n_neighbors is not None:
        n_neighbors = check_count(n_neighbors, "n_neighbors")
        return _nearest(x, y, epsilon, metric, min(n_neighbors, len(y)), symmetric=symmetric)
    if n_features is not None:
        n_features = check_count(n_features, "n_features")
        return _random_features(x, y, epsilon, metric, n_features, seed, symmetric=symmetric)
    cost = np.empty((len(x), len(y)), dtype=np.result_type(x, y))
    for start, block in _blocks(x, y, metric):
        cost[start : start + len(block)] = block
    if symmetric:
        cost = cost + cost.T  # (i, j) and (j, i) are rounded apart
        cost /= 2
        np.fill_diagonal(cost, 0)
    return from_cost(cost, epsilon, symmetric=symmetric)


def _check_vectors(value: Any, name: str, *, unit: bool) -> np.ndarray:
    vectors = as_float_array(value, name)
    if getattr(vectors, "requires_grad", False):
        fail(
            f"`{name}` must not require a gradient, which stops here; got a tensor that does.",
            hint="`kernels.from_cost` of a cost computed in torch keeps it; else `detach()`",
        )
    vectors = detached(widen_half(vectors))
    if vectors.ndim != 2 or 0 in vectors.shape:
        fail(
            f"`{name}` must have shape (n_labels, n_dimensions), none of them 0;"
            f" got shape {vectors.shape}."
        )
    wrong = ~np.isfinite(vectors)
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        fail(f"`{name}` must be finite; got {vectors[i, j]:g} at label {i}, dimension {j}.")
    if unit:
        # By the largest entry first: squares of 1e-200 and 1e200 leave the floating range.
        tops = np.abs(vectors).max(axis=1, keepdims=True)
        if not tops.all():
            fail(
                f"`{name}` must have no zero vector when lengths are divided out;"
                f" got one at label {int(np.argmin(tops))}.",
                hint="drop labels without a vector, or use a metric without unit norm",
            )
        vectors = vectors / tops
        vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def _costs(x: np.ndarray, y: np.ndarray, metric: str) -> np.ndarray:
    """Costs in the precision of the vectors."""
    dtype = np.result_type(x, y)
    with np.errstate(over="ignore", invalid="ignore"):
        squared = _squared_distances(x.astype(np.float64), y.astype(np.float64))
        if metric == "euclidean":
            squared = np.sqrt(squared, out=squared)
        elif metric == "cosine":  # of unit vectors
            squared /= 2
        costs = squared.astype(dtype, copy=False)
    if not np.isfinite(costs).all():
        fail(
            f"distances between label vectors must be finite in {dtype}; got an overflow.",
            hint="scale the vectors down, or use `unit_norm=True`",
        )
    return costs


def _squared_distances(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """|x|^2 + |y|^2 - 2 x y by one product, and again by differences where that cancels."""
    lengths = np.square(x).sum(axis=1)[:, None] + np.square(y).sum(axis=1)
    squared = x @ y.T
    squared *= -2
    squared += lengths
    cancelled = ~(squared > _CANCELLED * lengths)
    if np.count_nonzero(cancelled) > squared.size / 8:
        return np.asarray(cdist(x, y, "sqeuclidean"))
    rows, columns = np.nonzero(cancelled)
    squared[rows, columns] = np.square(x[rows] - y[columns]).sum(axis=1)
    return squared


def _blocks(x: np.ndarray, y: np.ndarray, metric: str) -> Iterator[tuple[int, np.ndarray]]:
    step = max(1, _BLOCK // len(y))
    for start in range(0, len(x), step):
        yield start, _costs(x[start : start + step], y, metric)


def _nearest(
    x: np.ndarray, y: np.ndarray, epsilon: float, metric: str, n_kept: int, *, symmetric: bool
) -> SparseKernel:
    columns = np.empty((len(x), n_kept), dtype=np.int64)
    costs = np.empty((len(x), n_kept), dtype=np.result_type(x, y))
    for start, cost in _blocks(x, y, metric):
        stop = start + len(cost)
        nearest = np.argpartition(cost, n_kept - 1, axis=1)[:, :n_kept]
        columns[start:stop] = nearest
        costs[start:stop] = np.take_along_axis(cost, nearest, axis=1)
    values = np.exp(costs / -epsilon)
    if not values.all():
        row, k = np.argwhere(values == 0)[0]
        fail(
            f"every kept neighbour must have a similarity above 0 in {values.dtype}; got"
            f" exp(-{costs[row, k]:.3g} / {epsilon:g}) = 0 at {source_label(row)}.",
            hint=f"take a larger {option('epsilon')} or fewer {option('n_neighbors')}",
        )
    rows = np.repeat(np.arange(len(x)), n_kept)
    matrix = sp.csr_array((values.ravel(), (rows, columns.ravel())), shape=(len(x), len(y)))
    if symmetric:
        matrix = matrix.maximum(matrix.T)
    return SparseKernel(matrix, symmetric=symmetric)


def _random_features(
    x: np.ndarray,
    y: np.ndarray,
    epsilon: float,
    metric: str,
    n_features: int,
    seed: int,
    *,
    symmetric: bool,
) -> LowRankKernel:
    """Positive random features of the Gaussian kernel (Choromanski et al. 2021, lemma 1).

    exp(-|x - y|^2 / 2) = E[exp(w x - |x|^2) exp(w y - |y|^2)] over standard normal w.
    Subtracting the mean vector first changes no distance and lowers the variance;
    orthogonal directions lower it further.
    """
    if metric == "euclidean":
        fail(
            'random features need a Gaussian kernel; got metric "euclidean".',
            hint='use "sqeuclidean" or "cosine", or `n_neighbors`',
        )
    # The cosine cost of unit vectors is half their squared distance.
    scale = math.sqrt((1.0 if metric == "cosine" else 2.0) / epsilon)
    centre = y.mean(axis=0)
    directions = _orthogonal_normals(n_features, x.shape[1], np.random.default_rng(seed))

    def features(vectors: np.ndarray) -> np.ndarray:
        z = (vectors - centre) * scale
        logs = z @ directions.T - np.square(z).sum(axis=1, keepdims=True)
        return (np.exp(logs) / math.sqrt(n_features)).astype(vectors.dtype)

    probes = np.random.default_rng(seed).permutation(len(x))[:_N_PROBES]
    exact = np.exp(_costs(x[probes], y, metric) / -epsilon)
    with np.errstate(all="ignore"):  # whatever leaves the floating range ends in the error
        left = features(x)
        right = left if symmetric else features(y)
        error = float(np.linalg.norm(left[probes] @ right.T - exact) / np.linalg.norm(exact))
    if not math.isfinite(error):
        fail(
            "random features and the kernel they stand for must neither overflow nor vanish;"
            f" got one that does in {left.dtype} at epsilon {epsilon:g}.",
            hint=f"take a larger {option('epsilon')}, `unit_norm=True`, or {option('n_neighbors')}",
        )
    return LowRankKernel(left, None if symmetric else right, measured_error=error)


def _orthogonal_normals(n_features: int, n_dimensions: int, rng: np.random.Generator) -> np.ndarray:
    """Rows that are standard normal one by one and orthogonal within each block."""
    blocks = []
    for start in range(0, n_features, n_dimensions):
        rows = min(n_dimensions, n_features - start)
        directions, triangle = np.linalg.qr(rng.standard_normal((n_dimensions, n_dimensions)))
        # LAPACK fixes signs its own way: without this no direction is uniform on the sphere.
        directions *= np.sign(np.diag(triangle))
        lengths = np.linalg.norm(rng.standard_normal((rows, n_dimensions)), axis=1)
        blocks.append(directions.T[:rows] * lengths[:, None])
    return np.concatenate(blocks)
