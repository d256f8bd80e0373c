"""Kernels: how similar each source label is to each target label, as operators."""

from wassemble.kernels.base import (
    EntryRange as EntryRange,
    Kernel as Kernel,
    as_kernel as as_kernel,
    distance_to_identity as distance_to_identity,
)
from wassemble.kernels.builders.auto_epsilon import AutoEpsilon as AutoEpsilon
from wassemble.kernels.builders.confusion import from_confusion as from_confusion
from wassemble.kernels.builders.cooccurrence import from_cooccurrence as from_cooccurrence
from wassemble.kernels.builders.cost import from_cost as from_cost
from wassemble.kernels.builders.embeddings import from_embeddings as from_embeddings
from wassemble.kernels.builders.graph import from_graph as from_graph
from wassemble.kernels.builders.mixture import mix as mix
from wassemble.kernels.builders.names import from_names as from_names
from wassemble.kernels.builders.scales import from_scales as from_scales
from wassemble.kernels.builders.spelling import from_spelling as from_spelling
from wassemble.kernels.builders.synonyms import from_synonyms as from_synonyms
from wassemble.kernels.builders.tables import (
    from_attributes as from_attributes,
    from_cost_table as from_cost_table,
    from_ratings as from_ratings,
)
from wassemble.kernels.builders.top import top_labels as top_labels
from wassemble.kernels.builders.tree import (
    from_descendants as from_descendants,
    from_tree as from_tree,
)
from wassemble.kernels.builders.word_vectors import from_word_vectors as from_word_vectors
from wassemble.kernels.dense import DenseKernel as DenseKernel
from wassemble.kernels.diagonal import DiagonalKernel as DiagonalKernel
from wassemble.kernels.low_rank import LowRankKernel as LowRankKernel
from wassemble.kernels.match import IdentityKernel as IdentityKernel, MatchKernel as MatchKernel
from wassemble.kernels.named.account import KernelAccount as KernelAccount
from wassemble.kernels.named.files import load as load
from wassemble.kernels.named.labelled import LabelledKernel as LabelledKernel
from wassemble.kernels.sparse import SparseKernel as SparseKernel
