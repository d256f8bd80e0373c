"""Some words of a part one by one, all others as one: what truncation leaves of the kernels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from wassemble.kernels import DenseKernel, Kernel, SparseKernel
from wassemble.text.word_parts import WordPart

__all__ = ["gather_others"]

# Differences of sums below this share of them are rounding.
_ROUNDING = 1e-5


def gather_others(whole: WordPart, sources: list[np.ndarray], target: np.ndarray) -> WordPart:
    """The part with only some of its words, and one more that stands for all others.

    What a word is similar to among the others in all, it is similar to in the one, so that
    no mass stays in the words that take part because the way out was cut. Among themselves
    the others are taken to be alike.

    Parameters
    ----------
    whole : WordPart
    sources : one int array per model of the part
        Places of its words that take part, by number in ``whole.sources``.
    target : int array
        The same in ``whole.target``.
    """
    cut: dict[int, Kernel] = {}
    for kernel, source in zip(whole.kernels, sources, strict=True):
        if id(kernel) not in cut:
            cut[id(kernel)] = _cut(kernel, source, target)
    weights = whole.weights
    if weights.ndim == 2:
        # Those of the others: their mean.
        is_other = np.ones(weights.shape[1], dtype=bool)
        is_other[target] = False
        mean = weights[:, is_other].mean(axis=1, keepdims=True)
        weights = np.hstack([weights[:, target], mean])
    return replace(
        whole,
        sources=[places[own] for places, own in zip(whole.sources, sources, strict=True)],
        target=whole.target[target],
        kernels=[cut[id(kernel)] for kernel in whole.kernels],
        weights=weights,
        gathered=whole.sources,
    )


def _cut(kernel: Kernel, source: np.ndarray, target: np.ndarray) -> Kernel:
    n_others = max(kernel.shape[0] - len(source), 1)
    rows, columns = (np.asarray(each.row_sums, np.float64) for each in (kernel, kernel.T))
    to_others, from_others = rows[source], columns[target]
    some = None
    if len(source) and len(target):
        some = kernel.select(source, target)
        to_others = _rest(to_others, some.row_sums)
        from_others = _rest(from_others, some.T.row_sums)
    among = _rest(rows.sum(), rows[source].sum() + from_others.sum())
    last = np.append(from_others, among)[None] / n_others
    if some is not None and some.is_sparse:
        whole = sp.block_array(
            [[some.to_sparse(), to_others[:, None]], [last[:, :-1], last[:, -1:]]]
        )
        return SparseKernel(sp.csr_array(whole, dtype=kernel.dtype))
    table = np.empty((len(source) + 1, len(target) + 1), dtype=kernel.dtype)
    if some is not None:
        table[:-1, :-1] = some.to_dense()
    else:
        table[:-1, :-1] = 0
    table[:-1, -1] = to_others
    table[-1] = last
    return DenseKernel._trusted(table)


def _rest(whole: np.ndarray, part: np.ndarray) -> np.ndarray:
    """``whole - part``, 0 where that is rounding."""
    rest = whole - np.asarray(part, np.float64)
    return np.where(rest > _ROUNDING * whole, rest, 0)
