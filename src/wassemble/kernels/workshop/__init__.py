"""Builders from what is known about labels to kernels with names."""

from wassemble.kernels.workshop.auto_epsilon import AutoEpsilon
from wassemble.kernels.workshop.from_attributes import kernel_from_attributes
from wassemble.kernels.workshop.from_confusion import kernel_from_confusion
from wassemble.kernels.workshop.from_cooccurrence import kernel_from_cooccurrence
from wassemble.kernels.workshop.from_graph import kernel_from_graph
from wassemble.kernels.workshop.from_names import kernel_from_matching, kernel_from_names
from wassemble.kernels.workshop.from_spelling import kernel_from_spelling
from wassemble.kernels.workshop.from_synonyms import kernel_from_synonyms
from wassemble.kernels.workshop.from_tables import kernel_from_cost_table, kernel_from_ratings
from wassemble.kernels.workshop.from_tree import kernel_from_tree
from wassemble.kernels.workshop.from_word_vectors import kernel_from_word_vectors
from wassemble.kernels.workshop.mix import mix_kernels
from wassemble.kernels.workshop.top_labels import top_label_kernel

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
