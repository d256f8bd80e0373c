"""Kernels: how similar each source label is to each target label, as operators."""

from wassemble.kernels.base import EntryRange, Kernel, distance_to_identity
from wassemble.kernels.builders import (
    AutoEpsilon,
    kernel_from_attributes,
    kernel_from_confusion,
    kernel_from_cooccurrence,
    kernel_from_cost_table,
    kernel_from_graph,
    kernel_from_matching,
    kernel_from_names,
    kernel_from_ratings,
    kernel_from_spelling,
    kernel_from_synonyms,
    kernel_from_tree,
    kernel_from_word_vectors,
    mix_kernels,
    top_label_kernel,
)
from wassemble.kernels.builders.cost import kernel_from_cost
from wassemble.kernels.builders.embeddings import kernel_from_embeddings
from wassemble.kernels.convert import as_kernel
from wassemble.kernels.dense import DenseKernel
from wassemble.kernels.diagonal import DiagonalKernel
from wassemble.kernels.low_rank import LowRankKernel
from wassemble.kernels.match import IdentityKernel, MatchKernel
from wassemble.kernels.named.account import KernelAccount
from wassemble.kernels.named.files import load_kernel
from wassemble.kernels.named.labelled import LabelledKernel
from wassemble.kernels.sparse import SparseKernel

__all__ = [
    "AutoEpsilon",
    "DenseKernel",
    "DiagonalKernel",
    "EntryRange",
    "IdentityKernel",
    "Kernel",
    "KernelAccount",
    "LabelledKernel",
    "LowRankKernel",
    "MatchKernel",
    "SparseKernel",
    "as_kernel",
    "distance_to_identity",
    "kernel_from_attributes",
    "kernel_from_confusion",
    "kernel_from_cooccurrence",
    "kernel_from_cost",
    "kernel_from_cost_table",
    "kernel_from_embeddings",
    "kernel_from_graph",
    "kernel_from_matching",
    "kernel_from_names",
    "kernel_from_ratings",
    "kernel_from_spelling",
    "kernel_from_synonyms",
    "kernel_from_tree",
    "kernel_from_word_vectors",
    "load_kernel",
    "mix_kernels",
    "top_label_kernel",
]
