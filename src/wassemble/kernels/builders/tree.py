"""Kernels from a hierarchy of labels: how far apart two labels are, up and down the tree."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from wassemble._checks import OneOf, fail, option_or
from wassemble.inputs.words.graphs import Edges, as_edges
from wassemble.kernels.builders.auto_epsilon import Epsilon, choose_epsilon
from wassemble.kernels.builders.cost import from_cost
from wassemble.kernels.builders.spaces import (
    expand_kernel,
    find_nodes,
    note_left_out,
    note_unjoined,
)
from wassemble.kernels.dense import DenseKernel
from wassemble.kernels.named.labelled import LabelledKernel, Names, read_spaces
from wassemble.labels import LabelSpace, enumerate_names

TreeCost = Literal["path", "lin"]


def from_tree(
    source: Names,
    target: Names | None = None,
    *,
    edges: Edges | Iterable[tuple[str, str]],
    epsilon: Epsilon = "auto",
    cost: TreeCost = "path",
    nodes: Mapping[str, str] | None = None,
    leaves: Iterable[str] | None = None,
) -> LabelledKernel:
    """K = exp(-cost / epsilon) with a cost between the nodes of a hierarchy.

    Labels that are no node are joined to the target label of their own name alone.

    Parameters
    ----------
    source, target, epsilon
        As in `kernels.from_word_vectors`.
    edges : Edges or iterable of (parent, child)
        A node may have several parents; no node may be its own ancestor. See `read_edges`.
    cost : {"path", "lin"}
        "path": number of edges from one label up to a common ancestor and down to the
        other, by the shortest way. "lin": 1 - 2 IC(a) / (IC(i) + IC(j)) with the common
        ancestor a of the largest information content IC (Lin 1998), counted in the tree
        itself: IC(c) = 1 - log(descendants of c + 1) / log(number of nodes) (Seco, Veale
        and Hayes 2004). Labels without a common ancestor are never joined.
    nodes : mapping of str to str, optional
        Node of each label whose node has another name.
    leaves : iterable of str, optional
        For "lin": count the information content among these nodes, the labels' and those
        above them only; among all nodes if not given.

    Examples
    --------
    >>> tree = [("animal", "dog"), ("animal", "cat"), ("dog", "husky"), ("dog", "beagle")]
    >>> breeds = from_tree(["husky", "beagle", "cat"], edges=tree, epsilon=2.0)
    >>> (-2 * np.log(breeds.to_dense())).round(3)  # the path costs
    array([[-0.,  2.,  3.],
           [ 2., -0.,  3.],
           [ 3.,  3., -0.]])
    """
    OneOf(get_args(TreeCost))(cost, "cost")
    if leaves is not None and cost != "lin":
        fail(f'`leaves` are counted for the cost "lin" only; got them with {cost!r}.')
    tree = as_edges(edges)
    check_tree(tree)
    source, target = read_spaces(source, target)
    rows, row_nodes = find_nodes(source, tree.nodes, nodes, what=tree.origin)
    columns, column_nodes = find_nodes(target, tree.nodes, nodes, what=tree.origin)
    above = _climb(tree, row_nodes), _climb(tree, column_nodes)
    if cost == "path":
        table = _path_costs(*above)
    else:
        kept = _read_leaves(tree, leaves, np.union1d(row_nodes, column_nodes))
        table = _lin_costs(*above, _information_content(tree, kept), row_nodes, column_nodes)
    value, words = choose_epsilon(epsilon, table.__getitem__, len(table))
    inside = from_cost(table, value, symmetric=source is target)
    kernel = expand_kernel(inside, source, target, rows, columns)
    notes = note_left_out((source, rows), (target, columns), what=tree.origin)
    return LabelledKernel(
        kernel,
        source,
        target,
        f"tree of {tree.origin}, {cost} cost, {words}",
        notes + note_unjoined(kernel, source, target),
    )


def from_descendants(
    source: Names,
    target: Names,
    *,
    edges: Edges | Iterable[tuple[str, str]],
    nodes: Mapping[str, str] | None = None,
) -> LabelledKernel:
    """1 between a label and every target label at or below it: "canid" votes for all of them.

    A label without any below it votes for the nearest above it that have some: a breed that is
    no target label for all kinds of dog.

    Parameters
    ----------
    source, target, edges, nodes
        As in `from_tree`.

    Examples
    --------
    >>> tree = [("animal", "dog"), ("animal", "cat"), ("dog", "husky"), ("dog", "beagle")]
    >>> from_descendants(["dog", "cat"], ["husky", "beagle", "cat"], edges=tree).to_dense()
    array([[1., 1., 0.],
           [0., 0., 1.]])
    """
    tree = as_edges(edges)
    check_ancestry(tree)  # how long edges are does not matter
    source, target = read_spaces(source, target)
    rows, row_nodes = find_nodes(source, tree.nodes, nodes, what=tree.origin)
    columns, column_nodes = find_nodes(target, tree.nodes, nodes, what=tree.origin)
    up, down = _climb(tree, row_nodes), _climb(tree, column_nodes)
    steps = np.full((len(rows), len(columns)), np.inf)  # up from a label, to above a target label
    for node in np.intersect1d(up.ancestors, down.ancestors).tolist():
        (labels, climbed), (below, _) = up.below(node), down.below(node)
        both = np.ix_(labels, below)
        steps[both] = np.minimum(steps[both], climbed[:, None])
    nearest = np.isfinite(steps) & (steps == steps.min(axis=1, keepdims=True))
    inside = DenseKernel(nearest.astype(np.float64))
    kernel = expand_kernel(inside, source, target, rows, columns)
    notes = note_left_out((source, rows), (target, columns), what=tree.origin)
    words = f"descendants in {tree.origin}"
    return LabelledKernel(kernel, source, target, words, notes)


@dataclass(frozen=True, eq=False)
class _Climb:
    """Every ancestor of every label, itself included, sorted by ancestor."""

    labels: np.ndarray
    ancestors: np.ndarray
    steps: np.ndarray
    starts: np.ndarray  # of each node's stretch in the other three, and the end

    @property
    def n_labels(self) -> int:
        return int(self.labels.max()) + 1  # every label is above itself

    def below(self, node: int) -> tuple[np.ndarray, np.ndarray]:
        """Labels below ``node``, and how many steps below it they are."""
        stretch = slice(self.starts[node], self.starts[node + 1])
        return self.labels[stretch], self.steps[stretch]


def _climb(tree: Edges, nodes: np.ndarray) -> _Climb:
    """Ancestors of ``nodes`` with the fewest steps to each, one generation at a time."""
    n_nodes = len(tree.nodes)
    # Sorting by child makes the parents of each node one stretch of an array.
    order = np.argsort(tree.ends, kind="stable")
    parents = tree.starts[order]
    starts = np.searchsorted(tree.ends[order], np.arange(n_nodes + 1))
    keys = np.arange(len(nodes)) * n_nodes + nodes
    generations = [keys]
    seen = keys
    while len(keys):
        labels, at = np.divmod(keys, n_nodes)
        counts = starts[at + 1] - starts[at]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        up = parents[np.repeat(starts[at], counts) + within]
        keys = np.setdiff1d(np.repeat(labels, counts) * n_nodes + up, seen)
        seen = np.union1d(seen, keys)
        generations.append(keys)
    steps = np.repeat(np.arange(len(generations)), [len(keys) for keys in generations])
    labels, ancestors = np.divmod(np.concatenate(generations), n_nodes)
    order = np.argsort(ancestors, kind="stable")
    stretches = np.searchsorted(ancestors[order], np.arange(n_nodes + 1))
    return _Climb(labels[order], ancestors[order], steps[order], stretches)


def _path_costs(up: _Climb, down: _Climb) -> np.ndarray:
    table = np.full((up.n_labels, down.n_labels), np.inf)
    # All pairs below one ancestor at a time: as many in all as pairs have common ancestors.
    for node in np.intersect1d(up.ancestors, down.ancestors).tolist():
        (rows, up_steps), (columns, down_steps) = up.below(node), down.below(node)
        both = np.ix_(rows, columns)
        table[both] = np.minimum(table[both], up_steps[:, None] + down_steps)
    return table


def _lin_costs(
    up: _Climb, down: _Climb, content: np.ndarray, row_nodes: np.ndarray, column_nodes: np.ndarray
) -> np.ndarray:
    shared = np.full((up.n_labels, down.n_labels), -np.inf)
    for node in np.intersect1d(up.ancestors, down.ancestors).tolist():
        both = np.ix_(up.below(node)[0], down.below(node)[0])
        shared[both] = np.maximum(shared[both], content[node])
    total = content[row_nodes][:, None] + content[column_nodes]
    # A root has no content; of two labels only a pair of the same root has none in all.
    similarity = np.divide(2 * shared, total, out=np.ones_like(shared), where=total > 0)
    return np.maximum(1 - similarity, 0)


def _read_leaves(tree: Edges, leaves: Iterable[str] | None, label_nodes: np.ndarray) -> np.ndarray:
    """Nodes that information is counted from, which labels always are."""
    if leaves is None:
        return np.arange(len(tree.nodes))
    names = list(LabelSpace(leaves))
    strange = [name for name in names if name not in tree.nodes]
    if strange:
        fail(f"`leaves` must be nodes of {tree.origin}; got {enumerate_names(strange)}.")
    kept = np.union1d(tree.nodes.places(names), label_nodes)
    return np.unique(_climb(tree, kept).ancestors)


def _information_content(tree: Edges, kept: np.ndarray) -> np.ndarray:
    """Intrinsic information content of each node, counted among the nodes ``kept``."""
    n_below = np.bincount(_climb(tree, kept).ancestors, minlength=len(tree.nodes))  # and itself
    if len(kept) == 1:
        return np.zeros(len(tree.nodes))
    return 1 - np.log(np.maximum(n_below, 1)) / np.log(len(kept))


def check_tree(tree: Edges) -> None:
    """Refuse edges that have weights, or that lead in a ring."""
    if tree.weights is not None:
        fail(
            f"the edges of a tree must have no weights; those of {tree.origin} have.",
            hint=f"{_say_graph()} uses them",
        )
    check_ancestry(tree)


def check_ancestry(tree: Edges) -> None:
    """Refuse edges that lead in a ring."""
    n_nodes = len(tree.nodes)
    graph = sp.csr_array((np.ones(len(tree)), (tree.starts, tree.ends)), shape=(n_nodes, n_nodes))
    _, groups = connected_components(graph, connection="strong")
    looped = np.bincount(groups)[groups] > 1
    looped[tree.starts[tree.starts == tree.ends]] = True
    if looped.any():
        ring = groups == groups[int(looped.argmax())]
        names = [tree.nodes[i] for i in np.flatnonzero(ring).tolist()]
        fail(
            f"no node of {tree.origin} may be its own ancestor; got a ring of"
            f" {enumerate_names(names)}.",
            hint=f"edges go from parent to child; {_say_graph()} takes any graph",
        )


def _say_graph() -> str:
    return option_or("`kernels.from_graph`", graph=True)
