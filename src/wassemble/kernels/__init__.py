"""Kernels: how similar each source label is to each target label, as operators."""

from wassemble.kernels.base import EntryRange, Kernel, distance_to_identity
from wassemble.kernels.builders.attributes import from_attributes
from wassemble.kernels.builders.auto_epsilon import AutoEpsilon
from wassemble.kernels.builders.confusion import from_confusion
from wassemble.kernels.builders.cooccurrence import from_cooccurrence
from wassemble.kernels.builders.cost import from_cost
from wassemble.kernels.builders.embeddings import from_embeddings
from wassemble.kernels.builders.graph import from_graph
from wassemble.kernels.builders.mixture import mix
from wassemble.kernels.builders.names import from_matching, from_names
from wassemble.kernels.builders.spelling import from_spelling
from wassemble.kernels.builders.synonyms import from_synonyms
from wassemble.kernels.builders.tables import from_cost_table, from_ratings
from wassemble.kernels.builders.top import top_labels
from wassemble.kernels.builders.tree import from_tree
from wassemble.kernels.builders.word_vectors import from_word_vectors
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
    "from_matching",
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
