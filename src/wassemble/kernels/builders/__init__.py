"""Builders from what is known about labels to kernels with names."""

from wassemble.kernels.builders.attributes import from_attributes
from wassemble.kernels.builders.auto_epsilon import AutoEpsilon
from wassemble.kernels.builders.confusion import from_confusion
from wassemble.kernels.builders.cooccurrence import from_cooccurrence
from wassemble.kernels.builders.graph import from_graph
from wassemble.kernels.builders.mixture import mix
from wassemble.kernels.builders.names import from_names
from wassemble.kernels.builders.spelling import from_spelling
from wassemble.kernels.builders.synonyms import from_synonyms
from wassemble.kernels.builders.tables import from_cost_table, from_ratings
from wassemble.kernels.builders.top import top_labels
from wassemble.kernels.builders.tree import from_tree
from wassemble.kernels.builders.word_vectors import from_word_vectors

__all__ = [
    "AutoEpsilon",
    "from_attributes",
    "from_confusion",
    "from_cooccurrence",
    "from_cost_table",
    "from_graph",
    "from_names",
    "from_ratings",
    "from_spelling",
    "from_synonyms",
    "from_tree",
    "from_word_vectors",
    "mix",
    "top_labels",
]
