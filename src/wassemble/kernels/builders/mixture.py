"""Weighted sums of kernels over the same labels."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from wassemble._arrays import is_frame
from wassemble._checks import check_nonnegative_number, fail
from wassemble.kernels.base import Kernel
from wassemble.kernels.dense import DenseKernel
from wassemble.kernels.diagonal import DiagonalKernel
from wassemble.kernels.named.labelled import LabelledKernel
from wassemble.kernels.sparse import SparseKernel
from wassemble.labels import enumerate_names


def mix(parts: Iterable[tuple[Any, float]]) -> LabelledKernel:
    """The weighted sum of kernels, each divided by its largest entry first.

    So a weight says how much of a kernel goes in, whatever its scale. Weights need not sum
    to 1; a kernel of weight 0 is left out.

    Parameters
    ----------
    parts : iterable of (LabelledKernel or data frame, float)
        Over the same source and the same target labels, in any order; the result has the
        order of the first. Weights are at least 0, and one is above.

    Returns
    -------
    kernel : LabelledKernel
        Diagonal if all parts are, sparse if all are sparse or diagonal, else dense (also
        from low-rank parts). Symmetric if all parts are.

    Examples
    --------
    >>> from wassemble.kernels import IdentityKernel
    >>> a = LabelledKernel(DenseKernel([[2.0, 1.0], [1.0, 2.0]]), ["x", "y"], ["x", "y"], "a")
    >>> b = LabelledKernel(IdentityKernel(2), ["x", "y"], ["x", "y"], "b")
    >>> mix([(a, 0.5), (b, 0.5)]).to_dense()
    array([[1.  , 0.25],
           [0.25, 1.  ]])
    """
    chosen = _read_parts(parts)
    first = chosen[0][0]
    kernels = [labelled.align(first.source, first.target) for labelled, _ in chosen]
    used = [
        (kernel, math.log(weight) - _log_largest(kernel))
        for kernel, (_, weight) in zip(kernels, chosen, strict=True)
        if weight
    ]
    told = (f"{weight:g} x [{labelled.origin}]" for labelled, weight in chosen if weight)
    notes = dict.fromkeys(note for labelled, weight in chosen if weight for note in labelled.notes)
    return LabelledKernel(
        _add(used), first.source, first.target, f"mix of {' + '.join(told)}", notes
    )


def _read_parts(parts: Iterable[tuple[Any, float]]) -> list[tuple[LabelledKernel, float]]:
    chosen = list(parts)
    for part in chosen:
        if not isinstance(part, tuple | list) or len(part) != 2:
            fail(f"kernels are mixed as pairs (kernel, weight); got {part!r}.")
        if not isinstance(part[0], LabelledKernel) and not is_frame(part[0]):
            fail(
                f"kernels that are mixed must have label names; got {type(part[0]).__name__}.",
                hint="`LabelledKernel(kernel, source, target)` gives it names",
            )
    chosen = [
        (
            LabelledKernel(kernel) if is_frame(kernel) else kernel,
            check_nonnegative_number(weight, "weight"),
        )
        for kernel, weight in chosen
    ]
    if not any(weight for _, weight in chosen):
        fail(f"some kernel must have a weight above 0; got {len(chosen)} kernels and none.")
    first = chosen[0][0]
    for kernel, _ in chosen[1:]:
        for side in ("source", "target"):
            own, other = set(getattr(first, side)), set(getattr(kernel, side))
            if own != other:
                fail(
                    f"kernels that are mixed must have the same {side} labels; got"
                    f" {enumerate_names(sorted(own ^ other))} in one of [{first.origin}] and"
                    f" [{kernel.origin}] only.",
                    hint="LabelledKernel(kernel.align(source, target), ...) cuts one to size",
                )
    return chosen


def _log_largest(kernel: Kernel) -> float:
    """Log of the largest entry, exactly: bounds would change the weights."""
    if kernel.keeps_logs:
        return float(kernel.to_log_dense().max())
    largest = max(float(rows.max()) for _, rows in kernel.blocks())
    if largest == 0:
        fail("a kernel that is mixed must have an entry above 0; got one without.")
    return math.log(largest)


def _add(parts: list[tuple[Kernel, float]]) -> Kernel:
    """Sum of kernels times the exponentials of the numbers beside them."""
    kernels = [kernel for kernel, _ in parts]
    dtypes = [kernel.dtype for kernel in kernels if kernel.dtype is not None]
    dtype = np.result_type(*dtypes) if dtypes else np.dtype(np.float64)
    if all(kernel.is_diagonal for kernel in kernels):
        diagonals = [kernel.to_sparse().diagonal() * math.exp(scale) for kernel, scale in parts]
        return DiagonalKernel(np.sum(diagonals, axis=0).astype(dtype))
    symmetric = all(kernel.is_symmetric for kernel in kernels)
    if all(kernel.is_sparse for kernel in kernels):
        total = sp.csr_array(kernels[0].shape, dtype=dtype)
        for kernel, scale in parts:
            total = total + kernel.to_sparse().astype(dtype) * dtype.type(math.exp(scale))
        return SparseKernel(total, symmetric=symmetric)
    if any(kernel.keeps_logs for kernel in kernels):
        logs = np.full(kernels[0].shape, -np.inf)
        for kernel, scale in parts:
            np.logaddexp(logs, kernel.to_log_dense() + scale, out=logs)
        return DenseKernel.from_log(logs, symmetric=symmetric).convert(None, dtype)
    table = np.zeros(kernels[0].shape, dtype=dtype)
    for kernel, scale in parts:
        for start, rows in kernel.blocks():
            block = rows if isinstance(rows, np.ndarray) else rows.toarray()
            table[start : start + len(block)] += block * dtype.type(math.exp(scale))
    return DenseKernel(table, symmetric=symmetric)
