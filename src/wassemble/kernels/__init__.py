"""Kernels: how similar each source label is to each target label, as operators."""

from wassemble.kernels.base import EntryRange, Kernel
from wassemble.kernels.convert import as_kernel
from wassemble.kernels.dense import DenseKernel
from wassemble.kernels.diagonal import DiagonalKernel, IdentityKernel
from wassemble.kernels.from_cost import distance_to_identity, kernel_from_cost
from wassemble.kernels.from_embeddings import kernel_from_embeddings
from wassemble.kernels.low_rank import LowRankKernel
from wassemble.kernels.sparse import SparseKernel

__all__ = [
    "DenseKernel",
    "DiagonalKernel",
    "EntryRange",
    "IdentityKernel",
    "Kernel",
    "LowRankKernel",
    "SparseKernel",
    "as_kernel",
    "distance_to_identity",
    "kernel_from_cost",
    "kernel_from_embeddings",
]
