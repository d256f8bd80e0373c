"""Arrays, sparse matrices and kernels as kernels."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

from wassemble._checks import fail
from wassemble.kernels.base import Kernel
from wassemble.kernels.dense import DenseKernel
from wassemble.kernels.sparse import SparseKernel

__all__ = ["as_kernel"]


def as_kernel(value: Any) -> Kernel:
    """``value`` if it is a kernel, else the dense or sparse kernel of that matrix."""
    if isinstance(value, Kernel):
        return value
    if sp.issparse(value):
        return SparseKernel(value)
    if type(value).__name__ == "LabelledKernel":  # which is made of what this gives
        fail(
            "a kernel with label names must go with predictions that have names; got arrays.",
            hint="`labelled.align(source, target)` is the bare kernel of labels in that order",
        )
    return DenseKernel(value)
