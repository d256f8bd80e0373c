"""Kernels from vectors of the labels' meaning: dense, nearest-neighbour or low rank."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
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
from wassemble.kernels.builders.cost import from_cost, local_bandwidths
from wassemble.kernels.low_rank import LowRankKernel
from wassemble.kernels.places import source_label
from wassemble.kernels.sparse import SparseKernel

Metric = Literal["sqeuclidean", "euclidean", "cosine"]
_METRICS = ("sqeuclidean", "euclidean", "cosine")

# Elements of one block of costs: 16 MB of float64.
_BLOCK = 2**21
# Source labels on which the error of a low-rank kernel is measured.
_N_PROBES = 256
# Target labels that shares of landmarks are fitted to, at least; and for each landmark.
_N_FITTED, _N_FITTED_EACH = 1000, 4
# Steps of that fit: three times as many take a fifth off the error at most.
_N_STEPS = 200
# Share of the squared lengths below which a squared distance has lost half of its digits.
_CANCELLED = 1e-6


def from_embeddings(
    source: Any,
    target: Any = None,
    *,
    epsilon: float,
    metric: Metric = "sqeuclidean",
    unit_norm: bool = False,
    local_bandwidth: int | None = None,
    n_neighbors: int | None = None,
    n_features: int | None = None,
    n_landmarks: int | None = None,
    seed: int = 0,
) -> Kernel:
    """K = exp(-cost(x_i, y_j) / epsilon) for label vectors x and y.

    Parameters
    ----------
    source : array of shape (n_source, n_dimensions)
        One vector per source label.
    target : array of shape (n_target, n_dimensions), optional
        One vector per target label; ``source`` if not given.
    epsilon : float
        Entropic regularisation, above 0.
    metric : {"sqeuclidean", "euclidean", "cosine"}
        The cost: the squared distance, the distance, or 1 - cosine, which is half the squared
        distance of unit vectors. The paper's captioning kernel is "sqeuclidean" with
        ``unit_norm``.
    unit_norm : bool
        Divide each vector by its length first.
    local_bandwidth : int, optional
        Give each label a bandwidth s, its distance to its neighbour of this number, such as 5,
        among the target labels: K = exp(-d^2 / (epsilon s_i s_j)) (Zelnik-Manor and Perona 2004).
        Labels in crowded places are then told apart as well as lonely ones, and epsilon has no
        unit. Other metrics than "sqeuclidean" have the roots of such costs as s.
    n_neighbors : int, optional
        Keep only this many nearest target labels of each source label: a `SparseKernel`.
        Without ``target`` a pair is kept if either label is a neighbour of the other.
    n_features : int, optional
        Approximate by this many positive random features: a `LowRankKernel`, whose
        ``measured_error`` says how well (relative Frobenius error on a sample of rows).
        Not for "euclidean", and not with ``local_bandwidth``.
    n_landmarks : int, optional
        Approximate through this many target labels, drawn at random (Nystrom's method): each
        source label is a mixture of them. A `LowRankKernel` with its ``measured_error``, usually
        less than that of as many random features; slower to build. For every metric.
    seed : int
        Of the random features, or landmarks.

    Examples
    --------
    >>> from_embeddings([[0.0], [1.0], [3.0]], epsilon=1.0, n_neighbors=2)
    SparseKernel(3 source x 3 target labels, float64)
    """
    epsilon = check_positive_number(epsilon, "epsilon")
    ways = {"n_neighbors": n_neighbors, "n_features": n_features, "n_landmarks": n_landmarks}
    given = {name: check_count(n, name) for name, n in ways.items() if n is not None}
    if len(given) > 1:
        fail(
            f"{' and '.join(f'`{name}`' for name in given)} are two ways to shrink a kernel;"
            " got both.",
            hint="give one of them",
        )
    if n_features is not None and local_bandwidth is not None:
        fail(
            "random features need one bandwidth for all labels; got `local_bandwidth`.",
            hint="use `n_landmarks` or `n_neighbors`",
        )
    seed = check_count(seed, "seed", at_least=0)
    costs = EmbeddingCosts.read(
        source, target, metric=metric, unit_norm=unit_norm, local_bandwidth=local_bandwidth
    )
    if n_features is not None:
        return _random_features(costs, epsilon, n_features, seed)
    if n_landmarks is not None:
        return _landmarks(costs, epsilon, min(n_landmarks, len(costs.y)), seed)
    return costs.to_kernel(epsilon, n_neighbors)


@dataclass(frozen=True, eq=False)
class EmbeddingCosts:
    """Costs between label vectors, of some source labels at a time."""

    x: np.ndarray
    y: np.ndarray  # ``x`` itself where there is no other target
    metric: str
    # Roots of the costs to a neighbour, of the source and the target labels.
    widths: tuple[np.ndarray, np.ndarray] | None = None

    @classmethod
    def read(
        cls,
        source: Any,
        target: Any,
        *,
        metric: Metric,
        unit_norm: bool,
        local_bandwidth: int | None,
    ) -> EmbeddingCosts:
        """Checked vectors and their bandwidths."""
        OneOf(_METRICS)(metric, "metric")
        unit = check_flag(unit_norm, "unit_norm") or metric == "cosine"
        x = _check_vectors(source, "source", unit=unit)
        y = x if target is None else _check_vectors(target, "target", unit=unit)
        if x.shape[1] != y.shape[1]:
            fail(
                "`source` and `target` vectors must have the same number of dimensions;"
                f" got {x.shape[1]} and {y.shape[1]}."
            )
        if local_bandwidth is None:
            return cls(x, y, metric)
        neighbor = check_count(local_bandwidth, "local_bandwidth")
        among = cls(y, y, metric)._widths(neighbor)
        widths = (among if y is x else cls(x, y, metric)._widths(neighbor), among)
        return cls(x, y, metric, widths)

    @property
    def is_symmetric(self) -> bool:
        """Whether source and target labels are the same."""
        return self.x is self.y

    def of(self, rows: Any, columns: Any = slice(None)) -> np.ndarray:
        """Costs from some source labels to some target labels, in the vectors' precision."""
        cost = _costs(self.x[rows], self.y[columns], self.metric)
        if self.widths is not None:
            cost /= self.widths[0][rows][:, None]
            cost /= self.widths[1][columns]
        return cost

    def blocks(self, columns: Any = slice(None)) -> Iterator[tuple[int, np.ndarray]]:
        """Costs block by block, each with the place of its first source label."""
        step = max(1, _BLOCK // len(self.y[columns]))
        for start in range(0, len(self.x), step):
            yield start, self.of(slice(start, start + step), columns)

    def to_kernel(self, epsilon: float, n_neighbors: int | None = None) -> Kernel:
        """K = exp(-cost / epsilon), of all pairs or of the nearest target labels."""
        if n_neighbors is not None:
            return _nearest(self, epsilon, min(n_neighbors, len(self.y)))
        cost = np.empty((len(self.x), len(self.y)), dtype=np.result_type(self.x, self.y))
        for start, block in self.blocks():
            cost[start : start + len(block)] = block
        if self.is_symmetric:
            cost = cost + cost.T  # (i, j) and (j, i) are rounded apart
            cost /= 2
            np.fill_diagonal(cost, 0)
        return from_cost(cost, epsilon, symmetric=self.is_symmetric)

    def _widths(self, neighbor: int) -> np.ndarray:
        costs = [local_bandwidths(block, neighbor) for _, block in self.blocks()]
        return np.sqrt(np.concatenate(costs))


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


def _nearest(costs: EmbeddingCosts, epsilon: float, n_kept: int) -> SparseKernel:
    kept = []
    for _, cost in costs.blocks():
        nearest = np.argpartition(cost, n_kept - 1, axis=1)[:, :n_kept]
        kept.append((nearest, np.take_along_axis(cost, nearest, axis=1)))
    columns, cost = (np.concatenate(part) for part in zip(*kept, strict=True))
    values = np.exp(cost / -epsilon)
    if not values.all():
        row, k = np.argwhere(values == 0)[0]
        fail(
            f"every kept neighbour must have a similarity above 0 in {values.dtype}; got"
            f" exp(-{cost[row, k]:.3g} / {epsilon:g}) = 0 at {source_label(row)}.",
            hint=f"take a larger {option('epsilon')} or fewer {option('n_neighbors')}",
        )
    rows, shape = np.repeat(np.arange(len(cost)), n_kept), (len(costs.x), len(costs.y))
    matrix = sp.csr_array((values.ravel(), (rows, columns.ravel())), shape=shape)
    if costs.is_symmetric:
        matrix = matrix.maximum(matrix.T)
    return SparseKernel(matrix, symmetric=costs.is_symmetric)


def _random_features(
    costs: EmbeddingCosts, epsilon: float, n_features: int, seed: int
) -> LowRankKernel:
    """Positive random features of the Gaussian kernel (Choromanski et al. 2021, lemma 1).

    exp(-|x - y|^2 / 2) = E[exp(w x - |x|^2) exp(w y - |y|^2)] over standard normal w.
    Subtracting the mean vector first changes no distance and lowers the variance;
    orthogonal directions lower it further.
    """
    if costs.metric == "euclidean":
        fail(
            'random features need a Gaussian kernel; got metric "euclidean".',
            hint='use "sqeuclidean" or "cosine", `n_landmarks` or `n_neighbors`',
        )
    # The cosine cost of unit vectors is half their squared distance.
    scale = math.sqrt((1.0 if costs.metric == "cosine" else 2.0) / epsilon)
    centre = costs.y.mean(axis=0)
    directions = _orthogonal_normals(n_features, costs.x.shape[1], np.random.default_rng(seed))

    def features(vectors: np.ndarray) -> np.ndarray:
        z = (vectors - centre) * scale
        logs = z @ directions.T - np.square(z).sum(axis=1, keepdims=True)
        return (np.exp(logs) / math.sqrt(n_features)).astype(vectors.dtype)

    with np.errstate(all="ignore"):  # whatever leaves the floating range ends in the error
        left = features(costs.x)
        right = left if costs.is_symmetric else features(costs.y)
        error = _measure_error(left, right, costs, epsilon, seed)
    if not math.isfinite(error):
        fail(
            "random features and the kernel they stand for must neither overflow nor vanish;"
            f" got one that does in {left.dtype} at epsilon {epsilon:g}.",
            hint=f"take a larger {option('epsilon')}, `unit_norm=True`, or {option('n_neighbors')}",
        )
    return LowRankKernel(left, None if costs.is_symmetric else right, measured_error=error)


def _measure_error(
    left: np.ndarray, right: np.ndarray, costs: EmbeddingCosts, epsilon: float, seed: int
) -> float:
    """Relative Frobenius error of ``left right^T`` on a sample of source labels."""
    probes = np.random.default_rng(seed).permutation(len(costs.x))[:_N_PROBES]
    exact = np.exp(costs.of(probes) / -epsilon)
    return float(np.linalg.norm(left[probes] @ right.T - exact) / np.linalg.norm(exact))


def _landmarks(costs: EmbeddingCosts, epsilon: float, n_landmarks: int, seed: int) -> LowRankKernel:
    """Shares of landmarks, times the similarity of landmarks and target labels.

    Nystrom's method has shares of any sign, and with them negative similarities, which no
    coupling can have. Here they are the non-negative ones of least squared error, over a sample
    of target labels, by the multiplicative steps of Lee and Seung (2001).
    """
    # Seeded apart from the labels that the error is measured on.
    order = np.random.default_rng((seed, 1)).permutation(len(costs.y))
    landmarks = order[:n_landmarks]
    fitted = order[: max(_N_FITTED, _N_FITTED_EACH * n_landmarks)]
    among = EmbeddingCosts(
        costs.y, costs.y, costs.metric, costs.widths and (costs.widths[1], costs.widths[1])
    )
    right = np.exp(among.of(slice(None), landmarks) / -epsilon)
    wanted = np.concatenate(
        [np.exp(block / -epsilon) @ right[fitted] for _, block in costs.blocks(fitted)]
    )
    lonely = np.flatnonzero(~wanted.any(axis=1))
    if len(lonely):
        fail(
            f"every source label must be similar to some landmark; got {source_label(lonely[0])},"
            f" which is similar to none in {wanted.dtype} at epsilon {epsilon:g}.",
            hint=f"take a larger {option('epsilon')}, more `n_landmarks`, or `n_neighbors`",
        )
    shares, overlap = wanted.copy(), right[fitted].T @ right[fitted]
    for _ in range(_N_STEPS):
        shares *= wanted / np.maximum(shares @ overlap, np.finfo(shares.dtype).tiny)
    error = _measure_error(shares, right, costs, epsilon, seed)
    return LowRankKernel(shares, right, measured_error=error)


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
