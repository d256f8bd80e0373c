"""Rules as one straight computation, for arrays of any library of the array API.

Nothing is checked or chosen, and no loop ends by itself: what is written here can be written down
once and run elsewhere. `Rule.unroll` is made of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from wassemble._arrays import Array, log_of, log_quotient, namespace
from wassemble.kernels import Kernel
from wassemble.solvers.power_means import log_power_mean

if TYPE_CHECKING:
    from wassemble.solvers.rules import Barycenter

# Logarithm below which a product is as good as 0: that of a model without any mass.
_LEAST = -80.0


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
    """K v: the first entry of each row of K times the number that it meets, the second ...

    Labels go first meanwhile, so that the numbers of all samples are fetched at once. Rows with
    about as many entries are summed together, so that few are added in vain.
    """
    xp, last = namespace(v), v.ndim - 1
    v = xp.permute_dims(v, (last, *range(last)))
    counts, groups = np.diff(csr.indptr), _by_length(np.diff(csr.indptr))
    sums = [_sum_entries(csr, v, rows, n_entries) for n_entries, rows in groups]
    together = np.concatenate([[], *(rows for _, rows in groups)]).astype(int)
    place = np.full(csr.shape[0], len(together))
    place[together] = np.arange(len(together))
    if not counts.all():  # one more row, for labels without entries
        sums.append(xp.sum(v, axis=0)[None] * 0.0)
    image = sums[0] if len(sums) == 1 else xp.take(xp.concat(sums, axis=0), place, axis=0)
    return xp.permute_dims(image, (*range(1, v.ndim), 0))


def _sum_entries(csr: sp.csr_array, v: Array, rows: np.ndarray, n_entries: int) -> Array:
    """What some rows of K, of so many entries at most, make of ``v``."""
    counts, starts = np.diff(csr.indptr)[rows], csr.indptr[rows]
    total: Any = None
    for nth in range(n_entries):
        places = starts + np.minimum(nth, counts - 1)
        entries = np.where(counts > nth, csr.data[places], 0)
        met = namespace(v).take(v, csr.indices[places], axis=0)
        part = met * entries.reshape(-1, *[1] * (v.ndim - 1))
        total = part if total is None else total + part
    return total


def _by_length(counts: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """Rows with entries, by how many they have: lengths that differ by a quarter at most."""
    groups = []
    left = np.flatnonzero(counts)
    while len(left):
        longest = int(counts[left].max())
        belongs = counts[left] >= 0.75 * longest
        groups.append((longest, left[belongs]))
        left = left[~belongs]
    return groups


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
    """Line p after the sweeps of ``rule``, all on logarithms; by its formula where there is one.

    Without ``exact``, products are made of the numbers themselves. That is right where every
    similarity is above 0 and the floating type holds what comes up on the way.
    """
    if all(kernel.is_one_to_one for kernel in kernels) and (
        (rule.is_balanced or rule.stops_at_tolerance) and not rule.debias
    ):
        return _mean_one_to_one(rule, histograms, kernels, weights)
    how = _Exact() if exact or rule.debias else _Quick()
    xp = namespace(histograms[0])
    groups = _group(kernels)
    log_mu = [log_of(xp.stack([histograms[model] for model in models])) for _, models in groups]
    order = np.argsort(np.concatenate([models for _, models in groups]))
    mass = rule.mass
    log_v: list[Any] = [None] * len(groups)
    log_d: Any = None
    for _ in range(rule.max_sweeps):
        images = []
        for (kernel, _), own, scaling in zip(groups, log_mu, log_v, strict=True):
            log_kv = kernel.log_row_sums if scaling is None else how.log_multiply(kernel, scaling)
            images.append(how.log_multiply(kernel.T, how.log_quotient(own, log_kv) * mass.exponent))
        log_images = xp.concat(images)
        if not np.array_equal(order, np.arange(len(order))):  # as the weights are
            log_images = xp.take(log_images, order, axis=0)
        log_p = how.log_mean(log_images, weights, mass.order)
        if rule.debias:
            log_p, log_d = _debias(kernels[0], log_p, log_d)
        log_v = [how.log_quotient(log_p, image) * mass.exponent for image in images]
    return xp.exp(log_p)


def _group(kernels: Sequence[Kernel]) -> list[tuple[Kernel, list[int]]]:
    """Each kernel with the models that share it."""
    groups: dict[int, tuple[Kernel, list[int]]] = {}
    for model, kernel in enumerate(kernels):
        groups.setdefault(id(kernel), (kernel, []))[1].append(model)
    return list(groups.values())


def _debias(kernel: Kernel, log_p: Array, log_d: Array | None) -> tuple[Array, Array]:
    """Line p without the blur of the kernel, and what takes it out; see `debias.Debiasing`."""
    if log_d is None:
        return log_p, log_quotient(log_p, kernel.log_row_sums) * 0.5
    log_p = log_p + log_d
    return log_p, log_quotient(log_d + log_p, _Exact().log_multiply(kernel, log_d)) * 0.5


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


class _Exact:
    """Logarithms of numbers of any range, where nothing is minus infinity."""

    log_quotient = staticmethod(log_quotient)

    def log_multiply(self, kernel: Kernel, log_v: Array) -> Array:
        """log(K exp(log_v)), relative to the largest entry of each row."""
        if kernel.is_identity:
            return log_v
        xp = namespace(log_v)
        top = xp.max(log_v, axis=-1, keepdims=True)
        top = xp.where(top > -xp.inf, top, 0.0)
        if kernel.keeps_logs:
            return self._log_sums(kernel.to_log_dense(), log_v)
        return log_of(multiply(kernel, xp.exp(log_v - top))) + top

    def _log_sums(self, log_matrix: np.ndarray, log_v: Array) -> Array:
        """The same for entries that would underflow, which takes all pairs of labels."""
        xp = namespace(log_v)
        pairs = log_v[..., None, :] + log_matrix
        top = xp.max(pairs, axis=-1)
        top = xp.where(top > -xp.inf, top, 0.0)
        return log_of(xp.sum(xp.exp(pairs - top[..., None]), axis=-1)) + top

    def log_mean(self, log_images: Array, weights: Array, order: float) -> Array:
        """Line p."""
        return log_power_mean(log_images, weights, order=order)


class _Quick:
    """Logarithms of numbers that stay in range, none of which is 0 but whole histograms."""

    def log_quotient(self, log_a: Array, log_b: Array) -> Array:
        """log(a / b); a model without any mass has some scaling or other."""
        return log_a - namespace(log_a).maximum(log_b, _LEAST)

    def log_multiply(self, kernel: Kernel, log_v: Array) -> Array:
        """log(K exp(log_v))."""
        xp = namespace(log_v)
        return xp.log(multiply(kernel, xp.exp(log_v)))

    def log_mean(self, log_images: Array, weights: Array, order: float) -> Array:
        """Line p."""
        xp = namespace(log_images)
        if order == 0:
            return xp.sum(log_images * weights, axis=0)
        return xp.log(xp.sum(xp.exp(log_images * order) * weights, axis=0)) * (1 / order)
