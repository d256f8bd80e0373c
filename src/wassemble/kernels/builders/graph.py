"""Kernels from a graph of words or labels: the cost of the cheapest way between two of them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from wassemble._checks import OneOf, check_flag, check_positive_number, fail
from wassemble.inputs.words.graphs import Edges, as_edges
from wassemble.kernels.base import Kernel
from wassemble.kernels.builders.auto_epsilon import Epsilon, choose_epsilon
from wassemble.kernels.builders.cost import PairCosts, from_cost
from wassemble.kernels.builders.spaces import (
    expand_kernel,
    find_nodes,
    note_left_out,
    note_unjoined,
)
from wassemble.kernels.named.labelled import LabelledKernel, Names, read_spaces
from wassemble.labels import LabelSpace

WeightMeaning = Literal["cost", "similarity"]

# Path costs computed together: nodes times source labels.
_BLOCK = 2**24


def from_graph(
    source: Names,
    target: Names | None = None,
    *,
    edges: Edges | Iterable[tuple[Any, ...]] | Any,
    epsilon: Epsilon = "auto",
    weights: WeightMeaning = "cost",
    directed: bool | None = None,
    cutoff: float | None = None,
    nodes: Mapping[str, str] | None = None,
) -> LabelledKernel:
    """K = exp(-cost of the cheapest path / epsilon) between the nodes of a graph.

    Labels that are no node are joined to the target label of their own name alone, labels
    without a path between them not at all.

    Parameters
    ----------
    source, target, epsilon, nodes
        As in `kernels.from_tree`; a kernel from a directed graph is never symmetric.
    edges : Edges, iterable of (a, b) or (a, b, weight), or networkx graph
        See `read_edges`. Of a networkx graph the attribute "weight" is used, 1 where an
        edge has none. Of several edges between two nodes the cheapest counts.
    weights : {"cost", "similarity"}
        What a weight is: the cost of an edge, or a similarity s, for a cost of 1 / s. Both
        above 0. An edge without a weight costs 1.
    directed : bool, optional
        Edges lead from the first node to the second only. As a networkx graph says, else
        False, if not given.
    cutoff : float, optional
        Never join labels that are further apart than this: a `SparseKernel`, found faster.

    Examples
    --------
    >>> links = [("cat", "pet", 1.0), ("dog", "pet", 1.0), ("dog", "wolf", 4.0)]
    >>> from_graph(["cat", "dog", "wolf"], edges=links, epsilon=2.0).to_dense().round(3)
    array([[1.   , 0.368, 0.05 ],
           [0.368, 1.   , 0.135],
           [0.05 , 0.135, 1.   ]])
    """
    OneOf(get_args(WeightMeaning))(weights, "weights")
    limit = np.inf if cutoff is None else check_positive_number(cutoff, "cutoff")
    graph, is_directed = _read_graph(edges)
    if directed is not None:
        is_directed = check_flag(directed, "directed")
    source, target = read_spaces(source, target)
    rows, row_nodes = find_nodes(source, graph.nodes, nodes, what=graph.origin)
    columns, column_nodes = find_nodes(target, graph.nodes, nodes, what=graph.origin)
    links = _cost_matrix(graph, weights, directed=is_directed)
    blocks = _path_costs(links, row_nodes, column_nodes, limit)
    symmetric = source is target and not is_directed
    kernel: Kernel
    if cutoff is None:
        table = np.concatenate([block for _, block in blocks])
        if symmetric:
            table = np.minimum(table, table.T)  # sums of weights round by their order
        value, words = choose_epsilon(epsilon, table.__getitem__, len(table))
        kernel = from_cost(table, value, symmetric=symmetric)
    else:
        finite = ((first, block, np.isfinite(block)) for first, block in blocks)
        pairs = PairCosts.join(finite, (len(rows), len(columns)))
        spaces = LabelSpace(_pick(source, rows)), LabelSpace(_pick(target, columns))
        kernel, words = pairs.to_kernel(epsilon, *spaces, symmetric=symmetric)
        words = f"cut off at {limit:g}, {words}"
    meaning = "" if graph.weights is None else f", weights are {weights}"
    kernel = expand_kernel(kernel, source, target, rows, columns)
    notes = note_left_out((source, rows), (target, columns), what=graph.origin)
    return LabelledKernel(
        kernel,
        source,
        target,
        f"graph of {graph.origin}{meaning}, {words}",
        notes + note_unjoined(kernel, source, target),
    )


def _read_graph(edges: Any) -> tuple[Edges, bool]:
    """The edges, and whether they lead one way only."""
    # Any networkx graph has these; asking for the class would import the library.
    if hasattr(edges, "is_directed") and hasattr(edges, "adjacency"):
        triples = edges.edges(data="weight", default=1.0)
        return Edges(triples, origin=str(edges.name or "graph")), bool(edges.is_directed())
    return as_edges(edges), False


def _cost_matrix(graph: Edges, weights: str, *, directed: bool) -> sp.csr_array:
    if weights == "similarity" and graph.weights is None:
        fail(f"edges whose weights are similarities must have weights; {graph.origin} has none.")
    costs = np.ones(len(graph)) if graph.weights is None else graph.weights
    if (costs <= 0).any():
        wrong = int((costs <= 0).argmax())
        fail(
            f"the weight of an edge must be above 0; got {costs[wrong]:g} from"
            f" {graph.nodes[graph.starts[wrong]]!r} to {graph.nodes[graph.ends[wrong]]!r}."
        )
    if weights == "similarity":
        costs = 1 / costs
    starts, ends = graph.starts, graph.ends
    if not directed:
        starts, ends, costs = (
            np.concatenate(both) for both in ((starts, ends), (ends, starts), (costs, costs))
        )
    # A sparse matrix adds up what comes twice: of several edges only the cheapest goes in.
    order = np.lexsort((costs, ends, starts))
    # SciPy's search takes 32-bit places, and not every version brings others to that.
    starts, ends, costs = starts[order].astype("i4"), ends[order].astype("i4"), costs[order]
    first = np.append(True, (np.diff(starts) != 0) | (np.diff(ends) != 0))
    n_nodes = len(graph.nodes)
    return sp.csr_array((costs[first], (starts[first], ends[first])), shape=(n_nodes, n_nodes))


def _path_costs(
    links: sp.csr_array, starts: np.ndarray, ends: np.ndarray, limit: float
) -> Iterator[tuple[int, np.ndarray]]:
    """Costs of the cheapest paths, a few source labels at a time."""
    step = max(1, _BLOCK // links.shape[0])
    for first in range(0, len(starts), step):
        some = starts[first : first + step]
        yield first, dijkstra(links, indices=some, limit=limit)[:, ends]


def _pick(space: LabelSpace, places: np.ndarray) -> list[str]:
    return [space[place] for place in places.tolist()]
