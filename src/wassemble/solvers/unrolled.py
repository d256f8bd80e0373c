"""Rules as one straight computation, for arrays of NumPy and nodes of a graph.

Nothing is checked or chosen, and no loop ends by itself: what is written here can be written down
once and run elsewhere. `Rule.unroll` is made of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from wassemble._arrays import Array, log_of, log_quotient, namespace
from wassemble.kernels import Kernel
from wassemble.solvers.power_means import log_power_mean

if TYPE_CHECKING:
    from wassemble.solvers.rules import Barycenter

_Group: TypeAlias = tuple[Kernel, list[int]]
"""A kernel, and the places of the models that share it."""

# What 0 is divided by in its place; above the smallest numbers of float32, which are slow.
_TINY = 1e-37


def multiply(kernel: Kernel, v: Array) -> Array:
    """K v, by products, gathers and sums."""
    if kernel.is_identity:
        return v
    if kernel.diagonal is not None:
        return v * kernel.diagonal
    if kernel.is_one_to_one:
        places, similarity = kernel.T.matched_sources()
        image = _take_or_zero(v, places)
        return image if similarity is None else image * similarity
    for factor in reversed(kernel.factors() or []):
        if factor.is_sparse:
            v = _multiply_sparse(factor.to_sparse(), v)
        else:
            v = namespace(v).matmul(v, np.ascontiguousarray(factor.to_dense().T))
    return v


def _take_or_zero(v: Array, places: np.ndarray | None) -> Array:
    """Entries at ``places``, 0 for -1; None is for all of them."""
    if places is None:
        return v
    known = namespace(v).take(v, np.maximum(places, 0), axis=-1)
    return known if (places >= 0).all() else known * (places >= 0).astype(np.float64)


def _multiply_sparse(csr: sp.csr_array, v: Array) -> Array:
    """K v: the numbers that each row of K meets are gathered, and multiplied by its entries.

    Labels go first meanwhile, so that the numbers of all samples are fetched at once.
    """
    xp = namespace(v)
    columns = xp.permute_dims(xp.reshape(v, (-1, csr.shape[1])), (1, 0))
    tables = list(_tables(csr))
    parts = [
        xp.matmul(entries[:, None, :], xp.take(columns, places, axis=0))
        for _, places, entries in tables
    ]
    image = xp.concat(parts, axis=0)
    order = np.concatenate([rows for rows, _, _ in tables])
    if not np.array_equal(order, np.arange(len(order))):
        image = xp.take(image, np.argsort(order), axis=0)
    lead = [-1 if size is None else size for size in v.shape[:-1]]
    return xp.reshape(xp.permute_dims(image, (2, 1, 0)), (*lead, csr.shape[0]))


def _tables(csr: sp.csr_array) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Rows of K, and for each as many places and entries as the longest of them has.

    So few at a time that what they meet takes about as much memory as all labels together.
    """
    counts, starts = np.diff(csr.indptr), csr.indptr[:-1]
    indices, data = np.append(csr.indices, 0), np.append(csr.data, 0)
    for longest, alike in _by_length(np.maximum(counts, 1)):
        n_parts = math.ceil(len(alike) * longest / csr.shape[1])
        for rows in np.array_split(alike, n_parts):
            nth = np.arange(longest)
            at = np.where(nth < counts[rows, None], starts[rows, None] + nth, csr.nnz)
            yield rows, indices[at], data[at]


def _by_length(counts: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Rows by how many entries they have: lengths that differ by a quarter at most."""
    left = np.arange(len(counts))
    while len(left):
        longest = int(counts[left].max())
        belongs = counts[left] >= 0.75 * longest
        yield longest, left[belongs]
        left = left[~belongs]


def carry(kernel: Kernel, histograms: Array, *, keeps_mass: bool) -> Array:
    """A model on the target labels: ``K^T (mu / K 1)`` for histograms, ``K^T mu`` for scores."""
    if not keeps_mass or kernel.is_identity:
        return multiply(kernel.T, histograms)
    log_sums = np.asarray(kernel.log_row_sums)
    leads = log_sums > -np.inf
    if kernel.keeps_logs:
        shares = np.exp(np.where(leads, kernel.to_log_dense().T - np.where(leads, log_sums, 0), 0))
        return namespace(histograms).matmul(histograms, (shares * leads).T)
    return multiply(
        kernel.T, histograms * np.where(leads, np.exp(-np.where(leads, log_sums, 0)), 0)
    )


def sweep(
    rule: Barycenter,
    histograms: Sequence[Array],
    kernels: Sequence[Kernel],
    weights: Array,
    *,
    exact: bool,
) -> Array:
    """Line p after the sweeps of ``rule``; by its formula where there is one.

    With ``exact`` all is computed on logarithms. Without, on the numbers themselves: that is right
    where the floating type holds what comes up on the way and, for balanced mass, where every
    similarity is above 0.
    """
    if rule.n_top is not None:
        histograms = [_keep_top(own, rule.n_top, rescale=rule.is_balanced) for own in histograms]
    if all(kernel.is_one_to_one for kernel in kernels) and (
        (rule.is_balanced or rule.stops_at_tolerance) and not rule.debias
    ):
        return _mean_one_to_one(rule, histograms, kernels, weights)
    groups = _group(kernels)
    places = np.concatenate([models for _, models in groups])
    if not np.array_equal(places, np.arange(len(places))):
        weights = namespace(weights).take(weights, places, axis=0)
    run = _sweep_in_logs if exact or rule.debias else _sweep_plainly
    return run(rule, histograms, groups, weights)


def _keep_top(own: Array, n_top: int, *, rescale: bool) -> Array:
    """All but the largest scores set to 0; of equal ones at the border all are kept."""
    xp = namespace(own)
    if n_top >= own.shape[-1]:
        return own
    bound = xp.sort(own, axis=-1)[:, -n_top][:, None]
    kept = xp.where(own >= bound, own, 0.0)
    if not rescale:
        return kept
    return kept * (xp.sum(own, axis=1) / xp.sum(kept, axis=1))[:, None]


def _sweep_in_logs(
    rule: Barycenter, histograms: Sequence[Array], groups: Sequence[_Group], weights: Array
) -> Array:
    """On logarithms; models go first."""
    xp, mass = namespace(histograms[0]), rule.mass
    log_mu = [log_of(xp.stack([histograms[model] for model in models])) for _, models in groups]
    log_v: list[Any] = [None] * len(groups)
    log_d: Any = None
    for _ in range(rule.max_sweeps):
        images = []
        for (kernel, _), own, scaling in zip(groups, log_mu, log_v, strict=True):
            log_kv = kernel.log_row_sums if scaling is None else _log_multiply(kernel, scaling)
            images.append(_log_multiply(kernel.T, log_quotient(own, log_kv) * mass.exponent))
        log_p = log_power_mean(xp.concat(images), weights, order=mass.order)
        if rule.debias:
            log_p, log_d = _debias(groups[0][0], log_p, log_d)
        log_v = [log_quotient(log_p, image) * mass.exponent for image in images]
    return xp.exp(log_p)


def _sweep_plainly(
    rule: Barycenter, histograms: Sequence[Array], groups: Sequence[_Group], weights: Array
) -> Array:
    """On the numbers themselves; samples go first, so that the models of a group are one table."""
    xp, mass = namespace(histograms[0]), rule.mass
    mu = [xp.stack([histograms[model] for model in models], axis=1) for _, models in groups]
    v: list[Any] = [None] * len(groups)
    for _ in range(rule.max_sweeps):
        images = []
        for (kernel, _), own, scaling in zip(groups, mu, v, strict=True):
            kv = np.exp(kernel.log_row_sums) if scaling is None else multiply(kernel, scaling)
            images.append(multiply(kernel.T, _quotient(own, kv) ** mass.exponent))
        if rule.is_balanced:
            log_p = _weigh(xp.concat([xp.log(image) for image in images], axis=1), weights)
            p = xp.exp(log_p)
            v = [_quotient(p, image) for image in images]
        else:
            powers = [image**mass.order for image in images]
            p = _weigh(xp.concat(powers, axis=1), weights) ** (1 / mass.order)
            # (p / image)^exponent, as exponent + order is 1: no power is taken twice.
            v = [
                p**mass.exponent * _quotient(power, image)
                for power, image in zip(powers, images, strict=True)
            ]
    return xp.reshape(p, (-1, p.shape[-1]))


def _quotient(a: Array, b: Array) -> Array:
    """The quotient, with 0 for 0 / 0: a label out of reach carries nothing."""
    return a / namespace(a).maximum(b, _TINY)


def _weigh(values: Array, weights: Array) -> Array:
    """The weighted sum over models, ``(n_samples, 1, n_target)``; ``weights`` have models first."""
    if weights.shape[2] == 1:
        return namespace(values).matmul(namespace(weights).permute_dims(weights, (1, 2, 0)), values)
    by_label = namespace(weights).permute_dims(weights, (1, 0, 2))
    return namespace(values).sum(values * by_label, axis=1, keepdims=True)


def _group(kernels: Sequence[Kernel]) -> list[_Group]:
    """Each kernel with the models that share it."""
    groups: dict[int, _Group] = {}
    for model, kernel in enumerate(kernels):
        groups.setdefault(id(kernel), (kernel, []))[1].append(model)
    return list(groups.values())


def _debias(kernel: Kernel, log_p: Array, log_d: Array | None) -> tuple[Array, Array]:
    """Line p without the blur of the kernel, and what takes it out; see `debias.Debiasing`."""
    if log_d is None:
        return log_p, log_quotient(log_p, kernel.log_row_sums) * 0.5
    log_p = log_p + log_d
    return log_p, log_quotient(log_d + log_p, _log_multiply(kernel, log_d)) * 0.5


def _mean_one_to_one(
    rule: Barycenter, histograms: Sequence[Array], kernels: Sequence[Kernel], weights: Array
) -> Array:
    """The fixed point for kernels that join no label to more than one; see `closed_form`."""
    xp, mass = namespace(histograms[0]), rule.mass
    sources = []
    for kernel, own in zip(kernels, histograms, strict=True):
        places, similarity = kernel.matched_sources()
        source = _take_or_zero(own, places) ** mass.exponent
        if similarity is not None:
            gate = np.where(similarity > 0, similarity**mass.order, 0)
            source = source * gate
        sources.append(source)
    order = 0.0 if rule.is_balanced else 1 / (1 + mass.exponent)
    return xp.exp(log_power_mean(log_of(xp.stack(sources)), weights, order=order))


def _log_multiply(kernel: Kernel, log_v: Array) -> Array:
    """log(K exp(log_v)), relative to the largest entry of each row."""
    if kernel.is_identity:
        return log_v
    xp = namespace(log_v)
    if kernel.keeps_logs:
        return _log_sums(kernel.to_log_dense(), log_v)
    top = xp.max(log_v, axis=-1, keepdims=True)
    top = xp.where(top > -xp.inf, top, 0.0)
    return log_of(multiply(kernel, xp.exp(log_v - top))) + top


def _log_sums(log_matrix: np.ndarray, log_v: Array) -> Array:
    """The same for entries that would underflow, which takes all pairs of labels."""
    xp = namespace(log_v)
    pairs = log_v[..., None, :] + log_matrix
    top = xp.max(pairs, axis=-1)
    top = xp.where(top > -xp.inf, top, 0.0)
    return log_of(xp.sum(xp.exp(pairs - top[..., None]), axis=-1)) + top
