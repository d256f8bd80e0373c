"""Arrays, sparse matrices and kernels as kernels."""

from __future__ import annotations

from typing import Any

import scipy.sparse as sp

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
    return DenseKernel(value)
