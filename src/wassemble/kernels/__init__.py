"""Kernels: how similar each source label is to each target label, as operators."""

from wassemble.kernels.base import EntryRange, Kernel, distance_to_identity
from wassemble.kernels.builders import (
    AutoEpsilon,
    from_attributes,
    from_confusion,
    from_cooccurrence,
    from_cost_table,
    from_graph,
    from_names,
    from_ratings,
    from_spelling,
    from_synonyms,
    from_tree,
    from_word_vectors,
    mix,
    top_labels,
)
from wassemble.kernels.builders.cost import from_cost
from wassemble.kernels.builders.embeddings import from_embeddings
from wassemble.kernels.convert import as_kernel
from wassemble.kernels.dense import DenseKernel
from wassemble.kernels.diagonal import DiagonalKernel
from wassemble.kernels.low_rank import LowRankKernel
from wassemble.kernels.match import IdentityKernel, MatchKernel
from wassemble.kernels.named.account import KernelAccount
from wassemble.kernels.named.files import load
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
    "from_attributes",
    "from_confusion",
    "from_cooccurrence",
    "from_cost",
    "from_cost_table",
    "from_embeddings",
    "from_graph",
    "from_names",
    "from_ratings",
    "from_spelling",
    "from_synonyms",
    "from_tree",
    "from_word_vectors",
    "load",
    "mix",
    "top_labels",
]
