"""As in `scipy.sparse.csgraph`: connected components alone."""

import sys
from typing import Any

import numpy as np

from .. import fill
from . import coo_array


def connected_components(
    graph: Any, directed: bool = True, connection: str = "weak"
) -> tuple[int, np.ndarray]:
    """How many parts the graph has, and the part of each node."""
    edges = coo_array(graph)
    kept = edges.data != 0
    starts, ends, n_nodes = edges.row[kept], edges.col[kept], edges.shape[0]
    is_strong = directed and connection == "strong"
    first = _reach_both_ways(starts, ends, n_nodes) if is_strong else _spread(starts, ends, n_nodes)
    _, part = np.unique(first, return_inverse=True)
    return int(part.max(initial=-1)) + 1, part.astype(np.int32)


def _spread(starts: np.ndarray, ends: np.ndarray, n_nodes: int) -> np.ndarray:
    """The first node of each node's part, whichever way edges go."""
    first, before = np.arange(n_nodes), None
    while before is None or (first != before).any():
        before = first.copy()
        lower = np.minimum(first[starts], first[ends])
        np.minimum.at(first, starts, lower)
        np.minimum.at(first, ends, lower)
        first = first[first]
    return first


def _reach_both_ways(starts: np.ndarray, ends: np.ndarray, n_nodes: int) -> np.ndarray:
    """The first node that each node reaches, and is reached by."""
    reach, before = np.eye(n_nodes, dtype=bool), None
    reach[starts, ends] = True
    while before is None or (reach != before).any():
        before = reach
        reach = reach @ reach
    return (reach & reach.T).argmax(axis=1)


fill(sys.modules[__name__])
