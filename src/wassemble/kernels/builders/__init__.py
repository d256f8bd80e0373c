"""Builders from what is known about labels to kernels with names."""

from wassemble.kernels.builders.attributes import kernel_from_attributes
from wassemble.kernels.builders.auto_epsilon import AutoEpsilon
from wassemble.kernels.builders.confusion import kernel_from_confusion
from wassemble.kernels.builders.cooccurrence import kernel_from_cooccurrence
from wassemble.kernels.builders.graph import kernel_from_graph
from wassemble.kernels.builders.mixture import mix_kernels
from wassemble.kernels.builders.names import kernel_from_matching, kernel_from_names
from wassemble.kernels.builders.spelling import kernel_from_spelling
from wassemble.kernels.builders.synonyms import kernel_from_synonyms
from wassemble.kernels.builders.tables import kernel_from_cost_table, kernel_from_ratings
from wassemble.kernels.builders.top import top_label_kernel
from wassemble.kernels.builders.tree import kernel_from_tree
from wassemble.kernels.builders.word_vectors import kernel_from_word_vectors

__all__ = [
    "AutoEpsilon",
    "kernel_from_attributes",
    "kernel_from_confusion",
    "kernel_from_cooccurrence",
    "kernel_from_cost_table",
    "kernel_from_graph",
    "kernel_from_matching",
    "kernel_from_names",
    "kernel_from_ratings",
    "kernel_from_spelling",
    "kernel_from_synonyms",
    "kernel_from_tree",
    "kernel_from_word_vectors",
    "mix_kernels",
    "top_label_kernel",
]
